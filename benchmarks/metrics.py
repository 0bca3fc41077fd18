"""Errors and coverage of private metrics, on generated and on real scores.

Each release is of 9,000 rows at epsilon 0.5. Scores are generated (five shapes, of which the
constants of the release were chosen) or those of two models on rows of a real table that they were
not trained on.

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
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skdp
from skdp._random import noise_source
from skdp.exceptions import InsecureSeedWarning
from skdp.model_selection import private_score

from . import _data

EPSILON, N_ROWS, N_RELEASES, LEVEL = 0.5, 9_000, 200, 0.95
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


def generated() -> Iterator[Scored]:
    """Five shapes of scores."""
    rng = np.random.default_rng(0)
    positive = N_ROWS // 5
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


def real() -> Iterator[Scored]:
    """Scores of two models on rows that they were not trained on, a fifth of them positive."""
    rng = np.random.default_rng(0)
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
        "f1": exact.f1_score(each.truth, guess, zero_division=0.0),
        "balanced_accuracy": exact.balanced_accuracy_score(each.truth, guess),
        "log_loss": exact.log_loss(each.truth, clipped),
        "brier_score": exact.brier_score_loss(each.truth, each.score),
    }


def _private(name: str, each: Scored, source: Any) -> skdp.QueryResult:
    labels = name in ("f1", "balanced_accuracy")
    given = (each.score > 0.5).astype(int) if labels else each.score
    return private_score(each.truth, given, name, epsilon=EPSILON, level=LEVEL, random_state=source)


def _row(cells: list[str]) -> None:
    print("  ".join(f"{cell:>20}" for cell in cells), flush=True)


def measure_classes(releases: int) -> None:
    """Mean absolute error and coverage of every metric."""
    names = ("roc_auc", "f1", "balanced_accuracy", "log_loss", "brier_score")
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=N_RELEASES)
    releases = parser.parse_args().releases
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureSeedWarning)
        measure_classes(releases)
    print(f"{time.process_time() - start:.0f} s of CPU time")


if __name__ == "__main__":
    main()
