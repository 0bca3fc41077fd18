"""Curves of the fidelity benchmark: error over epsilon and over the number of rows.

The error of a point is the root mean square error of the ranges that belong to a table, divided by
its rows. Of a table without ranges it is the mean total variation of the released two-way
marginals.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks._fidelity_releases import Release, attempts
from benchmarks._fidelity_results import Options, Result, ratio_of, result_of
from benchmarks._fidelity_tables import RANGES, Table, subsample
from benchmarks.views import range_weights, rmse
from skdp.rows import CountTable

__all__ = ["Point", "curves", "dominance", "draw"]

EPSILONS = (0.05, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
_PARTS = (64, 16, 4, 1)
# Epsilon of the curves over the number of rows, where none is given.
_FIXED = 1.0
_CURVES = ("nist", "adult", "electricity", "phoneme", "nltcs", "acs", *RANGES)
RIVALS = ("independent", "cells", "uniform", "privtree", "MarginalSynthesizer")
_WORSE = 1.03
_ALLOWED_ERRORS = 2.0
_HALF_A_RECORD = 0.5


class Point(NamedTuple):
    """Errors of a method at one epsilon and number of rows, one for each run."""

    method: str
    epsilon: float
    n_rows: int
    errors: list[float]


class Truth:
    """What the error of a release of a table is measured against."""

    def __init__(self, table: Table) -> None:
        self.exact = CountTable.from_codes(table.codes, table.domain.shape)
        self.weights = self.answers = None
        if table.ranges is not None:
            self.weights = range_weights(table.ranges, table.ranges.queries)
            self.answers = table.ranges.true_answers()

    def error(self, made: Release) -> float:
        """Error of the ranges, or mean total variation of the pairs; as a share of the rows."""
        n = max(self.exact.n, 1)
        if self.weights is not None:
            return rmse(made.answer(self.weights) - self.answers) / n
        pairs = itertools.combinations(range(len(self.exact.shape)), 2)
        distances = [np.abs(made.view(pair) - self.exact.dense(pair)).sum() / 2 for pair in pairs]
        return float(np.mean(distances)) / n


def points(
    table: Table, methods: Sequence[str], epsilons: Sequence[float], runs: int
) -> Iterator[Point]:
    """Errors of all methods at all epsilons; a method that does not fit the table is left out."""
    truth = Truth(table)
    for epsilon in epsilons:
        for method in methods:
            made = attempts(method, table, epsilon, runs, quiet=True)
            errors = [truth.error(each) for each in made]
            if errors:
                yield Point(method, epsilon, len(table.rows), errors)


def _with_rivals(options: Options) -> list[str]:
    return list(dict.fromkeys([*options.methods, *RIVALS]))


def curves(options: Options) -> Iterator[Result]:
    """Errors over epsilon, and over the number of rows at a fixed epsilon; one picture a table."""
    methods = _with_rivals(options)
    epsilons = options.of_epsilon(EPSILONS)
    fixed = _FIXED if _FIXED in epsilons else epsilons[0]
    for table in options.of_tables(_CURVES):
        over_epsilon = []
        for point in points(table, methods, epsilons, options.runs):
            over_epsilon.append(point)
            yield _result(table, point, "error")
        over_rows = []
        for part in _PARTS:
            some = subsample(table, len(table.rows) // part, seed=part)
            for point in points(some, methods, [fixed], options.runs):
                over_rows.append(point)
                yield _result(table, point, f"error, {point.n_rows} rows")
        if options.pictures is not None:
            draw(table.name, over_epsilon, over_rows, options.methods, options.pictures)


def _result(table: Table, point: Point, measure: str) -> Result:
    return result_of("curves", table, point.method, point.epsilon, measure, point.errors)


def dominance(options: Options) -> Iterator[Result]:
    """Error as a ratio to that of each baseline: at most 3% and two standard errors above 1.

    Smaller errors than half a record count as half a record: at a large epsilon the noise of cells
    is exactly 0.
    """
    methods = _with_rivals(options)
    for table in options.of_tables(_CURVES):
        for epsilon in options.of_epsilon(EPSILONS):
            made = points(table, methods, [epsilon], options.runs)
            least = _HALF_A_RECORD / len(table.rows)
            found = {each.method: [max(e, least) for e in each.errors] for each in made}
            for method in options.methods:
                for rival in RIVALS:
                    if rival != method and {rival, method} <= set(found):
                        yield ratio_of(
                            "dominance", table, method, epsilon, f"ratio to {rival}",
                            found[method], found[rival], _WORSE, allowed_errors=_ALLOWED_ERRORS,
                        )  # fmt: skip


def draw(
    name: str,
    over_epsilon: Sequence[Point],
    over_rows: Sequence[Point],
    main: Sequence[str],
    folder: Path,
) -> Path:
    """Draw both curves of a table, log axes and bars of one standard error, into a PNG file."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    _panel(axes[0], over_epsilon, "epsilon", main)
    _panel(axes[1], over_rows, "n_rows", main)
    axes[0].set(xlabel="epsilon", ylabel="error, share of the rows", title=name)
    fixed = over_rows[0].epsilon if over_rows else _FIXED
    axes[1].set(xlabel="rows", title=f"epsilon {fixed:g}")
    axes[0].legend(fontsize="small")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"fidelity-{name.replace('/', '-')}.png"
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path


def _panel(ax: Any, drawn: Sequence[Point], x: str, main: Sequence[str]) -> None:
    """One curve for each method; those of the baselines are dashed."""
    for method in dict.fromkeys(point.method for point in drawn):
        mine = [point for point in drawn if point.method == method]
        mine.sort(key=lambda point: getattr(point, x))
        spread = [
            statistics.stdev(each.errors) / len(each.errors) ** 0.5 if len(each.errors) > 1 else 0.0
            for each in mine
        ]
        ax.errorbar(
            [getattr(point, x) for point in mine],
            [statistics.fmean(point.errors) for point in mine],
            yerr=spread,
            label=method,
            linestyle="-" if method in main else "--",
            linewidth=1.8 if method in main else 1.0,
            marker="o",
            markersize=3,
        )
    ax.set(xscale="log", yscale="log")
