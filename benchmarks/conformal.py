"""Conformal sets and intervals: coverage and size, with and without privacy.

A private model (additive, epsilon 1) is fitted to half of the rows of a table. In each repetition
some of the other rows calibrate it, and the rest are predicted: sets of labels on Adult,
electricity, phoneme and the tenure of NIST's excerpt (three classes), intervals of the hours in
Adult, the income of ACSIncome, and generated targets. Beside the private calibration stands split
conformal prediction with the exact quantile of the same scores. A coverage passes if it is at least
nominal minus two standard errors of the mean over repetitions.

Run as ``python -m benchmarks.conformal --out conformal.json``; ``--tables``, ``--epsilon``,
``--rows``, ``--level`` and ``--runs`` choose.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks import _data, _fidelity_tables, regression
from skdp import Domain, PrivateAdditiveClassifier, PrivateAdditiveRegressor
from skdp._random import noise_source
from skdp.exceptions import InsecureSeedWarning
from skdp.kernels.conformal import BINS, covered_bins, measure_scores
from skdp.model_selection import PrivateConformalClassifier, PrivateConformalRegressor

CLASSIFIERS = ("adult", "electricity", "phoneme", "nist")
REGRESSORS = tuple(regression.TABLES)
MOST_ROWS = 60_000


class Scored(NamedTuple):
    """Scores of new rows under a model.

    Attributes
    ----------
    scores : ndarray of shape (n_rows,)
        Of the true targets.
    sizes : callable (threshold) -> ndarray of shape (n_rows,)
        Number of labels in each set, or length of each interval as a part of the range.
    edges : ndarray
        Ends of the bins of scores.
    """

    scores: NDArray[np.float64]
    sizes: Callable[[float], NDArray[np.float64]]
    edges: NDArray[np.float64]


def _halves(rows: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    mixed = rows.sample(min(len(rows), MOST_ROWS), random_state=seed).reset_index(drop=True)
    return mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :].reset_index(drop=True)


def classes(name: str) -> Scored:
    """Sets of labels on a table of real records."""
    table = _fidelity_tables.load(name)
    train, new = _halves(table.rows, 0)
    return _of_labels(table.domain, table.target, train, new)


def _of_labels(domain: Domain, target: str, train: pd.DataFrame, new: pd.DataFrame) -> Scored:
    model = PrivateAdditiveClassifier(1, domain=domain, target=target, random_state=0)
    model.fit(train.drop(columns=target), train[target])
    sets = PrivateConformalClassifier(model)
    sets.estimator_ = model
    X = new.drop(columns=target)
    targets, known = sets._targets(new[target].to_numpy(dtype=object))
    assert known.all()
    shares = model.predict_proba(X)
    return Scored(
        sets._score(X, targets),
        lambda threshold: (1 - shares <= threshold).sum(axis=1),
        sets._edges(),
    )


def numbers(name: str) -> Scored:
    """Intervals of a number."""
    domain, rows, target = regression.TABLES[name]()
    train, new = _halves(rows, 0)
    model = PrivateAdditiveRegressor(1, domain=domain, target=target, random_state=0)
    model.fit(train.drop(columns=target), train[target])
    ends = PrivateConformalRegressor(model)
    ends.estimator_ = model
    low, high = ends._range(model)
    X = new.drop(columns=target)
    middle = np.clip(model.predict(X), low, high)

    def lengths(threshold: float) -> NDArray[np.float64]:
        upper, lower = np.minimum(middle + threshold, high), np.maximum(middle - threshold, low)
        return (upper - lower) / (high - low)

    targets = new[target].to_numpy(dtype=float)
    return Scored(ends._score(X, targets), lengths, ends._edges())


def repeated(
    scored: Scored, n_rows: int, epsilon: Fraction, level: Fraction, runs: int
) -> NDArray[np.float64]:
    """Coverage and mean size, private and exact, of each repetition: shape (runs, 4)."""
    rng = np.random.default_rng(0)
    bins = np.minimum(np.searchsorted(scored.edges[1:], scored.scores), BINS - 1)
    found = []
    for seed in range(runs):
        order = rng.permutation(len(bins))
        here, new = order[:n_rows], order[n_rows:]
        counts = measure_scores(bins[here], epsilon, noise_source(seed))
        private = scored.edges[covered_bins(counts, 1 - level)]
        rank = -(-level * (n_rows + 1) // 1)
        exact = np.sort(scored.scores[here])[int(rank) - 1] if rank <= n_rows else np.inf
        found.append(
            [
                measure
                for threshold in (private, exact)
                for measure in (
                    (scored.scores[new] <= threshold).mean(),
                    scored.sizes(threshold)[new].mean(),
                )
            ]
        )
    return np.array(found)


def main() -> None:
    """Run the benchmark."""
    tables = (*CLASSIFIERS, *REGRESSORS)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=tables, choices=tables)
    parser.add_argument("--epsilon", nargs="+", type=float, default=(0.1, 0.5, 1.0))
    parser.add_argument("--rows", nargs="+", type=int, default=(500, 2_000))
    parser.add_argument("--level", nargs="+", type=float, default=(0.9,))
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    warnings.simplefilter("ignore", InsecureSeedWarning)
    results = []
    for name in options.tables:
        scored = classes(name) if name in CLASSIFIERS else numbers(name)
        print(f"{name}: {len(scored.scores)} rows to calibrate and to predict")
        for n_rows in options.rows:
            if n_rows >= len(scored.scores):
                print(f"  {n_rows:6} rows: the table has too few")
                continue
            for level in options.level:
                for epsilon in options.epsilon:
                    exact = Fraction(repr(epsilon)), Fraction(repr(level))
                    found = repeated(scored, n_rows, *exact, options.runs)
                    means = found.mean(axis=0)
                    error = found[:, 0].std() / np.sqrt(options.runs)
                    passed = means[0] >= level - 2 * error
                    print(
                        f"  {n_rows:6} rows, level {level:g}, epsilon {epsilon:<4g} coverage "
                        f"{means[0]:.4f} +- {error:.4f} (exact {means[2]:.4f}), size "
                        f"{means[1]:.3f} (exact {means[3]:.3f}){'' if passed else '  TOO LOW'}",
                        flush=True,
                    )
                    results.append([name, n_rows, level, epsilon, *means.tolist(), error])
    _data.write_json(options.out, "conformal", results)


if __name__ == "__main__":
    main()
