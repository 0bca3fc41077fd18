"""Errors and coverage of private metrics, on generated and on real scores.

Each release is of 9,000 rows at epsilon 0.5. Scores are generated (five shapes, of which the
constants of the release were chosen) or those of two models on rows of a real table that they were
not trained on. The reference is the usual histogram: equal public bins, noise on each count.

Run as ``python -m benchmarks.metrics``; ``--releases 40`` is quicker.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import metrics as exact
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skdp
from skdp._random import noise_source
from skdp.exceptions import InsecureSeedWarning
from skdp.mechanisms import discrete_laplace
from skdp.model_selection import private_score

from . import _data

EPSILON, N_ROWS, N_RELEASES, LEVEL = 0.5, 9_000, 200, 0.95
REFERENCE_BINS = (16, 64, 256)
# Where log losses are clipped.
CLIP = 0.001

Floats = NDArray[np.float64]


class Scored(NamedTuple):
    """True classes and the scores of a model."""

    name: str
    truth: NDArray[np.int64]
    score: Floats


def _sigmoid(x: Floats) -> Floats:
    return 1 / (1 + np.exp(-x))


def generated(share: float = 0.2, seed: int = 0) -> Iterator[Scored]:
    """Five shapes of scores."""
    rng = np.random.default_rng(seed)
    positive = round(N_ROWS * share)
    negative = N_ROWS - positive
    leaves = np.array([0.02, 0.08, 0.15, 0.3, 0.55, 0.9])
    pairs = {
        "spread": (rng.beta(2, 5, negative), rng.beta(4, 3, positive)),
        "narrow, weak": (
            _sigmoid(rng.normal(-1.4, 0.2, negative)),
            _sigmoid(rng.normal(-1.25, 0.2, positive)),
        ),
        "strong": (
            _sigmoid(rng.normal(-5, 2.5, negative)),
            _sigmoid(rng.normal(2, 2.5, positive)),
        ),
        "six leaves": (
            rng.choice(leaves, negative, p=[0.4, 0.25, 0.15, 0.1, 0.07, 0.03]),
            rng.choice(leaves, positive, p=[0.05, 0.1, 0.15, 0.2, 0.2, 0.3]),
        ),
        "constant": (np.full(negative, 0.2), np.full(positive, 0.2)),
    }
    truth = np.repeat([0, 1], [negative, positive])
    for name, parts in pairs.items():
        yield Scored(name, truth, np.concatenate(parts))


def _tables() -> Iterator[tuple[str, pd.DataFrame, NDArray[np.int64]]]:
    for name, label in (("adult", "income"), ("electricity", "class"), ("phoneme", "Class")):
        table = _data.frame(name)
        truth = table[label].astype(str)
        positive = truth.value_counts().index[-1]
        features = pd.get_dummies(table.drop(columns=label))
        if name == "adult":
            rest = table.drop(columns=label)
            numbers = rest.apply(pd.to_numeric, errors="coerce")
            wide = numbers.notna().mean() > 0.99
            few = rest.loc[:, ~wide]
            features = numbers.loc[:, wide].fillna(0).join(pd.get_dummies(few))
        yield name, features.astype(float), (truth == positive).to_numpy(dtype=np.int64)


def real(seed: int = 0) -> Iterator[Scored]:
    """Scores of two models on rows that they were not trained on, a fifth of them positive."""
    rng = np.random.default_rng(seed)
    for name, features, truth in _tables():
        order = rng.permutation(len(truth))
        train, test = np.split(order, [len(order) // 2])
        for kind, model in (
            ("logistic", make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))),
            ("boosted", HistGradientBoostingClassifier(random_state=0)),
        ):
            model.fit(features.iloc[train].to_numpy(), truth[train])
            ones, zeros = test[truth[test] == 1], test[truth[test] == 0]
            # A small table gives rows more than once.
            chosen = np.concatenate(
                [
                    rng.choice(part, size, replace=len(part) < size)
                    for part, size in ((zeros, N_ROWS * 4 // 5), (ones, N_ROWS // 5))
                ]
            )
            score = model.predict_proba(features.iloc[chosen].to_numpy())[:, 1]
            yield Scored(f"{name}, {kind}", truth[chosen], score)


def _exact_values(each: Scored) -> dict[str, float]:
    clipped = np.clip(each.score, CLIP, 1 - CLIP)
    guess = (each.score > 0.5).astype(int)
    return {
        "roc_auc": exact.roc_auc_score(each.truth, each.score),
        "average_precision": exact.average_precision_score(each.truth, each.score),
        "f1": exact.f1_score(each.truth, guess, zero_division=0.0),
        "balanced_accuracy": exact.balanced_accuracy_score(each.truth, guess),
        "log_loss": exact.log_loss(each.truth, clipped),
        "brier_score": exact.brier_score_loss(each.truth, each.score),
    }


def _private(name: str, each: Scored, source: Any) -> skdp.QueryResult:
    labels = name in ("f1", "balanced_accuracy")
    given = (each.score > 0.5).astype(int) if labels else each.score
    return private_score(each.truth, given, name, epsilon=EPSILON, level=LEVEL, random_state=source)


def _plain_auc(each: Scored, n_bins: int, source: Any) -> float:
    """The area under the curve of equal bins."""
    place = np.minimum((each.score * n_bins).astype(int), n_bins - 1)
    counts = np.bincount(each.truth * n_bins + place, minlength=2 * n_bins)
    noisy = discrete_laplace(counts, EPSILON, random_state=source).reshape(2, n_bins)
    negative, positive = np.maximum(noisy, 0)
    below = np.cumsum(negative) - negative / 2
    return float((below * positive).sum() / max(negative.sum() * positive.sum(), 1))


def _row(cells: list[str]) -> None:
    print("  ".join(f"{cell:>20}" for cell in cells), flush=True)


def measure_classes(releases: int) -> None:
    """Mean absolute error and coverage of every metric."""
    names = ("roc_auc", "average_precision", "f1", "balanced_accuracy", "log_loss", "brier_score")
    source = noise_source(1)
    print(f"mean absolute error / coverage of {LEVEL:.0%} intervals, {releases} releases")
    _row(["scores", *names])
    for each in [*generated(), *real()]:
        truth = _exact_values(each)
        cells = [each.name]
        for name in names:
            found = [_private(name, each, source) for _ in range(releases)]
            cells.append(_judged(found, truth[name]))
        _row(cells)


def _judged(found: list[skdp.QueryResult], truth: float) -> str:
    error = np.mean([abs(float(one) - truth) for one in found])
    covered = np.mean([one.lower <= truth <= one.upper for one in found])
    return f"{error:.4f} / {covered:.3f}"


def measure_reference(releases: int) -> None:
    """Mean absolute error of the area under the curve beside equal bins, and CPU time."""
    source = noise_source(2)
    print("roc_auc: ours beside equal public bins")
    _row(["scores", "ours", *(f"{n} bins" for n in REFERENCE_BINS)])
    for each in [*generated(), *real()]:
        truth = _exact_values(each)["roc_auc"]
        ours = [float(_private("roc_auc", each, source)) for _ in range(releases)]
        cells = [f"{np.mean(np.abs(np.array(ours) - truth)):.4f}"]
        for n_bins in REFERENCE_BINS:
            plain = [_plain_auc(each, n_bins, source) for _ in range(releases)]
            cells.append(f"{np.mean(np.abs(np.array(plain) - truth)):.4f}")
        _row([each.name, *cells])


def measure_numbers(releases: int) -> None:
    """R2 and mean absolute error of two regressors of the hours of work in Adult."""
    rng = np.random.default_rng(0)
    table = _data.frame("adult")
    target = pd.to_numeric(table["hours-per-week"]).to_numpy(dtype=float)
    other = table.drop(columns=["hours-per-week", "native-country", "fnlwgt"])
    features = pd.get_dummies(other.astype({"age": float, "education-num": float})).astype(float)
    order = rng.permutation(len(table))
    cut = min(20_000, len(order) // 2)
    train, test = order[:cut], order[cut : cut + N_ROWS]
    domain, source = (0.0, 99.0), noise_source(3)
    print("numbers: hours of work in Adult, range 0 to 99")
    for name, model in (
        ("ridge", Ridge()),
        ("boosted", HistGradientBoostingRegressor(random_state=0)),
    ):
        model.fit(features.iloc[train].to_numpy(), target[train])
        guess = np.clip(model.predict(features.iloc[test].to_numpy()), *domain)
        values = {
            "r2": exact.r2_score(target[test], guess),
            "mean_absolute_error": exact.mean_absolute_error(target[test], guess),
        }
        cells = [name]
        for metric, truth in values.items():
            given = {"domain": domain, "epsilon": EPSILON, "random_state": source}
            found = [private_score(target[test], guess, metric, **given) for _ in range(releases)]
            cells += [metric, f"{truth:.4f}", _judged(found, truth)]
        _row(cells)


def measure_sampling(releases: int) -> None:
    """Coverage of the value on the population, of samples of 9,000 rows of generated scores."""
    print("coverage of the population's value, interval='population'")
    names = ("roc_auc", "average_precision", "log_loss", "brier_score")
    source = noise_source(4)
    _row(["scores", *names])
    rounds = [list(generated(seed=seed)) for seed in range(1, releases + 1)]
    for place in range(len(rounds[0])):
        samples = [one[place] for one in rounds]
        values = pd.DataFrame([_exact_values(one) for one in samples]).mean()
        cells = [samples[0].name]
        for name in names:
            found = [
                private_score(
                    one.truth,
                    one.score,
                    name,
                    epsilon=EPSILON,
                    interval="population",
                    random_state=source,
                )
                for one in samples
            ]
            covered = np.mean([one.lower <= values[name] <= one.upper for one in found])
            cells.append(f"{covered:.3f}")
        _row(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=N_RELEASES)
    releases = parser.parse_args().releases
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureSeedWarning)
        measure_classes(releases)
        measure_reference(releases)
        measure_numbers(releases)
        measure_sampling(releases)
    print(f"{time.process_time() - start:.0f} s of CPU time")


if __name__ == "__main__":
    main()
