"""Fitting readings to a first part of the trials: bins, projections, a classifier."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from .._random import sampling_generator
from .._types import FloatArray, IntArray
from ._readings import LARGEST, Atoms, Binned, Column, Statistic, Structure, Tuple
from ._trials import Outputs, Vocabulary
from ._written import written_readings

_ATOMS = 4096  # single values that one reading distinguishes
_COLUMNS = 64  # columns examined one by one


def fit_columns(fitting: tuple[Outputs, ...]) -> list[Column]:
    """The numbers to examine one by one: all, or those that differ most."""
    d = max(part.numbers.shape[1] for part in fitting)
    columns = [Column(j, "output" if d == 1 else f"output[{j}]") for j in range(d)]
    if d > _COLUMNS:
        both = Outputs.concatenate(list(fitting))
        side = np.repeat([0, 1], [len(part) for part in fitting])
        apart = _separation(both.numbers.astype(float), side)
        columns = [columns[j] for j in np.sort(np.argsort(-apart)[:_COLUMNS])]
    return columns


def fit_written(
    fitting: tuple[Outputs, ...],
    columns: list[Column],
    numbers: Sequence[float],
    representation: bool,
) -> list[Any]:
    """Readings of the representation of numbers, alone and together with their size."""
    readings = written_readings(fitting, columns, numbers, representation)
    if not readings:
        return []
    both = Outputs.concatenate(list(fitting))
    bins = {
        column: _coarsened(Binned(column, _cuts(column(both))), both, 16)
        for column in {reading.column for reading in readings}
    }
    return readings + [
        Tuple([bins[reading.column], reading], f"({reading.name}, how it is written)", opaque=True)
        for reading in readings
    ]


def fit_readings(
    fitting: tuple[Outputs, ...], vocabulary: Vocabulary, columns: list[Column]
) -> list[Any]:
    """Readings of size and structure, fitted on a first part of the trials."""
    both = Outputs.concatenate(list(fitting))
    side = np.repeat([0, 1], [len(part) for part in fitting])
    readings: list[Any] = []
    structured = len(vocabulary.tokens) > 1
    if structured:
        readings += [Structure(vocabulary, coarse=False), Structure(vocabulary, coarse=True)]
    d = both.numbers.shape[1]
    if d == 0:
        return readings
    fine = [Binned(column, _cuts(column(both))) for column in columns]
    readings += fine
    readings += [reading for column in columns if (reading := _atoms(column, both)) is not None]
    extra = [Structure(vocabulary, coarse=False)] if structured else []
    if d > 1:
        readings += _joint(fine, extra, both, side)
    elif structured:
        readings.append(Tuple([*fine, *extra], "(structure, output)"))
    return readings


def _joint(fine: list[Binned], extra: list[Any], both: Outputs, side: IntArray) -> list[Any]:
    """Readings of several numbers together."""
    d = both.numbers.shape[1]
    rows = both.numbers.astype(float)
    statistics = [
        Statistic("sum of the outputs", lambda x: np.nansum(x, axis=1), d),
        Statistic("largest output", lambda x: _filled(x, -np.inf).max(axis=1), d),
        Statistic("smallest output", lambda x: _filled(x, np.inf).min(axis=1), d),
        Statistic("place of the largest output", lambda x: _filled(x, -np.inf).argmax(axis=1), d),
    ]
    finite = np.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)
    statistics += [
        Statistic(f"projection on the {name}", partial(_project, weights=w), d)
        for name, w in _directions(finite, side)
    ]
    statistics.append(_additive(fine, extra, both, side))
    joint: list[Any] = [Binned(statistic, _cuts(statistic(both))) for statistic in statistics]
    # Constant numbers, such as parameters of the release, add nothing to a tuple.
    parts = [reading for reading in fine if np.ptp(reading(both)) > 0] or fine[:1]
    if len(parts) > 12:
        # Many numbers: tuples of the most informative ones, so that tuples repeat.
        apart = _separation(rows[:, [reading.statistic.index for reading in parts]], side)
        parts = [parts[j] for j in np.sort(np.argsort(-apart)[:6])]
    for level in (2, 4, 8, 16):
        coarse = [_coarsened(reading, both, level) for reading in parts]
        if level == 2 or any(
            a.size != b.size for a, b in zip(coarse, joint[-1].parts[: len(coarse)], strict=True)
        ):
            joint.append(Tuple([*coarse, *extra], f"tuple of outputs in {level} bins"))
    joint.append(Tuple([*parts, *extra], "tuple of outputs"))
    distinct = len(np.unique(joint[-1](both)))
    if distinct > len(both) / 20:
        joint += _boosted(both, side, d)
    return joint


def _additive(fine: list[Binned], extra: list[Any], both: Outputs, side: IntArray) -> Statistic:
    """Sum of the log likelihood ratios of the single numbers.

    For independent noise on each number this is the log likelihood ratio itself, the best possible
    statistic.
    """
    tables = []
    for reading in fine:
        codes = reading(both)
        here = [np.bincount(codes[side == s], minlength=reading.size) + 0.5 for s in (0, 1)]
        # Bins seen a few times carry little evidence: shrink toward a ratio of one.
        weight = (here[0] + here[1]) / (here[0] + here[1] + 20)
        tables.append(weight * np.log((here[0] / here[0].sum()) / (here[1] / here[1].sum())))

    def score(rows: NDArray[Any]) -> FloatArray:
        outputs = Outputs(np.zeros(len(rows), dtype=np.int64), rows, rows)
        return np.sum(
            [table[reading(outputs)] for table, reading in zip(tables, fine, strict=True)], axis=0
        )

    return Statistic("additive likelihood score", score, both.numbers.shape[1])


def _boosted(both: Outputs, side: IntArray, d: int) -> list[Binned]:
    """The score of a classifier that separates the two sides, if one can be fitted."""
    half = len(both) // 2
    train = sampling_generator(0).permutation(len(both))[: min(half, 40_000)]
    model = HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=15, min_samples_leaf=50, early_stopping=False, random_state=0
    )
    rows = _without_infinities(both.numbers)
    # The classifier rejects columns with fewer than two values, which carry no information.
    known = np.array(
        [j for j, x in enumerate(rows[train].T) if len(np.unique(x[np.isfinite(x)])) > 1], dtype=int
    )
    if not len(known):
        return []
    # One thread: in many short steps, threads would mostly wait for each other, especially if other
    # processes run.
    with threadpool_limits(1, user_api="openmp"):
        model.fit(rows[np.ix_(train, known)], side[train])

    def score(x: NDArray[Any]) -> FloatArray:
        x = _without_infinities(x)[:, known]
        with threadpool_limits(1, user_api="openmp"):
            return model.decision_function(x)

    statistic = Statistic("score of a boosted classifier", score, d)
    return [Binned(statistic, _cuts(statistic(both)))]


def _without_infinities(rows: NDArray[Any]) -> FloatArray:
    rows = np.asarray(rows, dtype=float)
    return np.where(np.isinf(rows), np.sign(rows) * 1e300, rows)


def _directions(finite: FloatArray, side: IntArray) -> list[tuple[str, FloatArray]]:
    """Directions along which the two clouds of outputs may differ."""
    d = finite.shape[1]
    scale = finite.std(axis=0) + 1e-12
    means = finite[side == 0].mean(axis=0) - finite[side == 1].mean(axis=0)
    directions = [("difference of the means", means / scale**2)]
    if d <= 200:
        covariance = np.cov(finite / scale, rowvar=False) + 1e-3 * np.eye(d)
        directions.append(("discriminant", np.linalg.solve(covariance, means / scale) / scale))
    signs = sampling_generator(0).integers(0, 2, size=(3, d)) * 2 - 1
    directions += [(f"random direction {i}", row / scale) for i, row in enumerate(signs)]
    return directions


def _project(rows: FloatArray, weights: FloatArray) -> FloatArray:
    return np.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0) @ weights


def _filled(rows: FloatArray, value: float) -> FloatArray:
    return np.where(np.isnan(rows), value, rows)


def _separation(rows: FloatArray, side: IntArray) -> FloatArray:
    """How far apart each column lies on the two sides, in standard errors."""
    rows = np.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)
    here, there = rows[side == 0], rows[side == 1]
    spread = here.std(axis=0) + there.std(axis=0) + 1e-12
    return np.abs(here.mean(axis=0) - there.mean(axis=0)) / spread


def _cuts(values: NDArray[Any]) -> FloatArray:
    """Bin edges: single values if they are few, else quantiles, dense in both tails."""
    values = np.asarray(values, dtype=float)
    # Infinite values have bins of their own: from infinity on, and below the smallest number.
    ends = [end for end in (-LARGEST, np.inf) if np.any(values == (end if end > 0 else -np.inf))]
    values = values[np.isfinite(values)]
    if not len(values):
        return np.array(ends or [0.0])
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= 512:
        # Values beyond all of these, which later trials may have, get a separate bin.
        last = distinct[-1]
        beyond = last + 1 if last == np.rint(last) else np.nextafter(last, np.inf)
        return np.union1d(distinct, [beyond, *ends])
    tails = np.geomspace(1 / len(values), 1 / 256, 24)
    levels = np.concatenate([tails, np.linspace(1 / 256, 255 / 256, 255), 1 - tails])
    edges = np.quantile(values, np.unique(levels))
    atoms = distinct[counts > max(len(values) / 500, 5)]
    return np.unique(np.concatenate([edges, atoms, np.nextafter(atoms, np.inf), ends]))


def _coarsened(fine: Binned, both: Outputs, level: int) -> Binned:
    """The same number in about ``level`` bins of equal mass."""
    if len(fine.cuts) <= level:
        return fine
    values = np.asarray(fine.statistic(both), dtype=float)
    values = values[np.isfinite(values)]
    cuts = np.unique(np.quantile(values, np.arange(1, level) / level, method="higher"))
    return Binned(fine.statistic, cuts)


def _atoms(column: Column, both: Outputs) -> Atoms | None:
    """The frequent single values of a column, unless its bins are single values already."""
    values = np.asarray(column(both), dtype=float)
    values = values[np.isfinite(values)]
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= 512:
        return None
    frequent = np.argsort(-counts)[:_ATOMS]
    frequent = frequent[counts[frequent] >= 3]
    return Atoms(column, np.sort(distinct[frequent])) if len(frequent) else None
