"""PrivPfC: exact scores of many grids, counted together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._arrays import run_starts, running_sums
from ..._types import CodeArray, FloatArray, IntArray
from ..._validation import dyadic_floor
from ...rows import Counts, CountTable, ProjectedCounts
from .candidates import Options

__all__ = ["UNIT", "Quality", "grid_scores", "two_largest"]

# --- PrivPfC: the quality of a grid
#
# It is the expected number of correct predictions of a classifier that predicts, in each cell, the
# class with the largest noisy count. It is defined by an integer table, so that its range is exact
# and no floating-point error affects the privacy.
#
# With many records these are the predictions for the very records that decide the majorities, and
# the finest grid always wins. A quality with a *penalty* takes off, in each cell, about what its
# majority gains by being chosen from the same records.

# Scores are in units of 1/4096 of a record.
UNIT = 4096
# Longest quality table; differences beyond it count as certain wins.
_LONGEST_TABLE = 2**20
# Scores of cells with a largest count below this are looked up.
_SMALL = 256
# Density of the standard normal law at 0.
_NORMAL = 1 / math.sqrt(2 * math.pi)
# Most that rounding to units adds to the length of the interval of changes.
_ROUNDING = 3


@dataclass(frozen=True)
class Quality:
    """Integer table of the expected number of correct predictions in a cell.

    A cell whose two largest class counts are n1 >= n2 scores ``UNIT * n2 + table[n1 - n2]``; past
    its end the table goes on with steps of ``UNIT``.

    The penalty is a share of `_optimism`. All of it suits a classifier that trusts every cell;
    those that smooth the cells gain from finer grids.

    Parameters
    ----------
    table : ndarray of shape (length,), int64
    penalty : float, default=0.0
        Share of the optimism that is taken off.
    noise : float, default=0.0
        Variance of the difference of the noises of two counts, for the penalty.
    """

    table: IntArray
    penalty: float = 0.0
    noise: float = 0.0

    @classmethod
    def for_counts(cls, epsilon: Fraction, penalty: float = 0.0) -> Quality:
        """The table for counts with discrete Laplace noise of budget ``epsilon``."""
        rate = float(dyadic_floor(epsilon))
        x = np.arange(_table_length(rate), dtype=np.float64)
        # Distribution of the difference of the noises of two counts.
        r = math.exp(-rate)
        law = (math.tanh(rate / 2)) ** 2 * r**x * (x + 1 / math.tanh(rate))
        below = 0.5 + np.cumsum(law) - law / 2 - law[0] / 2
        return cls(_scaled(x, below), penalty, 4 * r / (1 - r) ** 2)

    @classmethod
    def of_the_paper(cls, epsilon: Fraction) -> Quality:
        """The table for Laplace noise of scale 1 / epsilon, as in the dissertation."""
        rate = float(epsilon)
        x = np.arange(_table_length(rate), dtype=np.float64)
        return cls(_scaled(x, 1 - np.exp(-rate * x) / 2 * (1 + rate * x / 2)))

    @property
    def score_range(self) -> int:
        """Length of the interval that holds the changes of all scores when a record is added.

        Only one cell of each grid changes. If the record's class is (or becomes) the largest,
        the difference x grows and the score changes by a step s(x) of the table; if it is (or
        becomes) the second, the difference falls and the score changes by UNIT - s(x - 1);
        otherwise by nothing. If one class overtakes another, their names are exchanged but the
        sorted counts are not. Hence all changes, of all grids, lie between the least and the
        largest of s, UNIT - s and 0.
        """
        # Past the end of the table every step is UNIT.
        steps = np.append(np.diff(self.table), UNIT)
        changes = np.concatenate([steps, UNIT - steps, [0]])
        length = int(changes.max() - changes.min())
        if not self.penalty:
            return length
        # Privacy. The penalty is P = c (n / s) f(z), f the normal density, s^2 = 1 + noise + n and
        # z = x / s. Adding a record moves (n, x) to (n + 1, x + 1) or (n + 1, x - 1), so P changes
        # by dP/dn + dP/dx or dP/dn - dP/dx at a point between them. There |dP/dx| is
        # c (n / s^2) z f(z) <= c f(1); with r = n / s^2 < 1, dP/dn is (c / s) f(z) (1 - r/2 +
        # r z^2/2), which is positive and at most c f(0) / s: (1 - r/2 + r u) exp(-u) <= 1 for
        # u >= 0, as 1 - r/2 + r u <= 1 + u. So the interval grows by at most 2 c f(1) +
        # c f(0) / sqrt(1 + noise), and by the rounding of P.
        slope = 2 * _NORMAL * math.exp(-1 / 2) + _NORMAL / math.sqrt(1 + self.noise)
        return length + math.ceil(UNIT * self._factor * slope) + _ROUNDING

    @property
    def _factor(self) -> float:
        return math.sqrt(2) * self.penalty

    def score(self, largest: IntArray, second: IntArray) -> IntArray:
        """Score of each cell from its two largest class counts."""
        large = np.flatnonzero(largest >= _SMALL)
        scores = self._small.take(largest * _SMALL + second, mode="clip")
        scores[large] = self._score(largest[large], second[large])
        return scores

    @cached_property
    def _small(self) -> IntArray:
        """Scores of cells of small counts, which are most."""
        return self._score(*np.divmod(np.arange(_SMALL**2), _SMALL))

    def _score(self, largest: IntArray, second: IntArray) -> IntArray:
        difference = np.maximum(largest - second, 0)
        last = len(self.table) - 1
        inside = np.minimum(difference, last)
        scores = UNIT * (second + difference - inside) + self.table[inside]
        if self.penalty:
            penalty = self._factor * _optimism(largest + second, difference, self.noise)
            scores -= np.rint(UNIT * penalty).astype(np.int64)
        return scores


def _optimism(n: IntArray, difference: IntArray, noise: float) -> FloatArray:
    """Correct predictions that a cell of n records owes to deciding over its own records.

    Left out of its cell, a record changes the majority if the (noisy) difference of the counts is
    nearly zero. Its density there is that of a normal law with the variance of the noise and of
    drawing n records. For labels like coin flips, without noise, the mean over the differences is
    the mean gain of the majority, about 0.4 sqrt(n), divided by sqrt(2).
    """
    spread = np.sqrt(1 + noise + n)
    return _NORMAL * n / spread * np.exp(-((difference / spread) ** 2) / 2)


def _scaled(x: FloatArray, below: FloatArray) -> IntArray:
    return np.rint(UNIT * x * np.minimum(below, 1.0)).astype(np.int64)


def _table_length(rate: float) -> int:
    # Beyond 45 / rate the smaller count wins with a probability below 1e-17.
    return min(_LONGEST_TABLE, math.ceil(45 / rate) + 2)


# --- scores of many grids, counted together

# Positions of one counting pass, and cells of a shared table.
_CHUNK = 2**20
_TABLE_CELLS = 2**18
# Rows whose keys are made together, in the cache of a processor.
_AT_ONCE = 2**14


def grid_scores(
    table: Counts,
    options: Sequence[Options],
    grids: NDArray[np.int16],
    quality: Quality,
) -> IntArray:
    """Exact integer score of every grid.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        The predictors in order, and the class as the last attribute.
    options : sequence of Options
        One for each predictor.
    grids : ndarray of shape (n_grids, n_predictors)
    quality : Quality

    Returns
    -------
    scores : ndarray of shape (n_grids,), int64
    """
    # Grids over the same predictors share one table of counts, with the coarsest grouping that all
    # of them can use; it is far smaller than the rows.
    used = grids > 0
    order = np.lexsort((*grids.T[::-1], *used.T[::-1]))
    ordered = used[order]
    starts = run_starts(ordered).tolist()
    scores = np.zeros(len(grids), dtype=np.int64)
    sets = [np.flatnonzero(ordered[begin]).tolist() for begin in starts]
    parts: Iterator[CountTable] | None = None
    if isinstance(table, ProjectedCounts):
        # The rows by some predictors and the label alone.
        parts = table.project_many([[*axes, len(table.shape) - 1] for axes in sets])
    else:
        rows = _Rows(table, options)
    for begin, end, axes in zip(starts, [*starts[1:], len(grids)], sets, strict=True):
        members = order[begin:end]
        places = axes
        if parts is not None:
            rows = _Rows(next(parts), [options[axis] for axis in axes])
            places = list(range(len(axes)))
        scores[members] = _set_scores(rows, places, grids[members][:, axes], quality)
    return scores


def _set_scores(
    rows: _Rows, axes: Sequence[int], choices: NDArray[np.int16], quality: Quality
) -> IntArray:
    """Scores of grids over the same predictors.

    Parameters
    ----------
    rows : _Rows
    axes : sequence of int
    choices : ndarray of int16, shape (n_grids, len(axes))
        Option of each of these predictors.
    quality : Quality
    """
    scores = np.zeros(len(choices), dtype=np.int64)
    for batch, used in _batches(rows, axes, choices):
        cells = _SharedCells(rows, axes, used)
        at_once = max(1, _CHUNK // max(1, cells.number))
        for begin in range(0, len(batch), at_once):
            part = batch[begin : begin + at_once]
            scores[part] = cells.scores(choices[part], quality)
    return scores


def _batches(
    rows: _Rows, axes: Sequence[int], choices: NDArray[np.int16]
) -> Iterator[tuple[IntArray, list[tuple[int, ...]]]]:
    """Subsets of a set of grids: one grid alone, or several that together need few cells.

    Yields their numbers, and the options that they use of each predictor.
    """
    todo = [np.arange(len(choices))]
    while todo:
        batch = todo.pop()
        used = [tuple(np.unique(column).tolist()) for column in choices[batch].T]
        widths = [rows.join(axis, options).size for axis, options in zip(axes, used, strict=True)]
        if math.prod(widths) * rows.n_classes <= _TABLE_CELLS or len(batch) == 1:
            yield batch, used
            continue
        # Too many cells together: divide at the predictor with several options that is widest.
        gain = [(len(options) > 1) * width for options, width in zip(used, widths, strict=True)]
        position = gain.index(max(gain))
        options = used[position]
        low = choices[batch, position] < options[len(options) // 2]
        todo += [batch[~low], batch[low]]


class _Join(NamedTuple):
    """The coarsest grouping that refines several options of a predictor."""

    size: int  # number of groups
    groups: IntArray  # group of each code
    maps: list[CodeArray]  # for each option, its group of each of these groups


class _Rows:
    """Columns of groups of the rows, made when first needed."""

    def __init__(self, table: CountTable, options: Sequence[Options]) -> None:
        self.codes = table.codes
        self.n_classes = table.shape[-1]
        self.label = self.codes[:, -1].astype(np.int32)
        self.options = options
        # Sums of counts are whole numbers below 2**53.
        self.weights = table.counts.astype(np.float64)
        self.alone = bool((table.counts == 1).all())
        self.key = np.empty(len(self.label), dtype=np.int64)
        self._columns: dict[tuple[int, bytes], CodeArray] = {}
        self._joins: dict[tuple[int, tuple[int, ...]], _Join] = {}

    def join(self, axis: int, used: tuple[int, ...]) -> _Join:
        """The coarsest grouping that refines the ``used`` options of a predictor."""
        key = (axis, used)
        if key not in self._joins:
            groups = [self.options[axis].groups[option - 1] for option in used]
            joined = groups[-1]
            size = int(joined.max()) + 1
            for other in groups[:-1]:
                pairs = joined * (int(other.max()) + 1) + other
                distinct, inverse = np.unique(pairs, return_inverse=True)
                if len(distinct) > size:
                    joined, size = inverse.reshape(-1), len(distinct)
            maps = []
            for other in groups:
                mapping = np.zeros(size, dtype=np.int32)
                mapping[joined] = other
                maps.append(mapping)
            self._joins[key] = _Join(size, joined, maps)
        return self._joins[key]

    def column(self, axis: int, used: tuple[int, ...]) -> CodeArray:
        """Group of each row under the join."""
        joined = self.join(axis, used).groups
        # Many sets of options have the same join.
        name = (axis, joined.tobytes())
        if name not in self._columns:
            self._columns[name] = joined.astype(np.int32)[self.codes[:, axis]]
        return self._columns[name]


class _SharedCells:
    """Cells that are fine enough for several grids, and their counts by class.

    Parameters
    ----------
    rows : _Rows
    axes : sequence of int
    used : sequence of tuple of int
        The options that the grids use of each of these predictors.
    """

    def __init__(self, rows: _Rows, axes: Sequence[int], used: Sequence[tuple[int, ...]]) -> None:
        joins = [rows.join(axis, options) for axis, options in zip(axes, used, strict=True)]
        columns = [rows.column(axis, options) for axis, options in zip(axes, used, strict=True)]
        widths = [join.size for join in joins]
        self._n_classes = rows.n_classes
        # Counts of each class (a row) in each cell.
        self._weights: NDArray[Any]
        if math.prod(widths) * rows.n_classes <= _TABLE_CELLS:
            self._weights, columns = _occupied(rows, columns, widths)
        else:
            # Every row is a cell by itself.
            self._weights = np.zeros((rows.n_classes, len(rows.label)))
            self._weights[rows.label, np.arange(len(rows.label))] = rows.weights
        # Group of each cell under each option of each predictor.
        self._groups = [
            {option: mapping[column] for option, mapping in zip(options, join.maps, strict=True)}
            for options, join, column in zip(used, joins, columns, strict=True)
        ]
        self._sizes = [rows.options[axis].sizes for axis in axes]

    @property
    def number(self) -> int:
        """Number of cells."""
        return self._weights.shape[1]

    def scores(self, choices: NDArray[np.int16], quality: Quality) -> IntArray:
        """Score of each grid, counted from the cells all at once."""
        keys, offsets = self._keys(choices)
        positions = keys.ravel()
        total = int(offsets[-1])
        by_class = np.empty((self._n_classes, total))
        for label in range(self._n_classes):
            each = np.broadcast_to(self._weights[label], keys.shape).ravel()
            by_class[label] = np.bincount(positions, weights=each, minlength=total)
        # An empty cell scores nothing, and most cells of fine grids are empty.
        occupied = np.flatnonzero(by_class.any(axis=0))
        cell_scores = quality.score(*two_largest(by_class[:, occupied].T))
        sums = running_sums(cell_scores)
        return np.diff(sums[np.searchsorted(occupied, offsets)])

    def _keys(self, choices: NDArray[np.int16]) -> tuple[IntArray, IntArray]:
        """Cell of each grid that a shared cell belongs to, and the first cell of each grid.

        The cells of all grids are numbered one grid after the other.
        """
        keys = np.zeros((len(choices), self.number), dtype=np.int64)
        offsets = np.zeros(len(choices) + 1, dtype=np.int64)
        for number, choice in enumerate(choices.tolist()):
            key_of = keys[number]
            size = 1
            for position, option in enumerate(choice):
                width = int(self._sizes[position][option])
                if position:
                    key_of *= width
                key_of += self._groups[position][option]
                size *= width
            key_of += offsets[number]
            offsets[number + 1] = offsets[number] + size
        return keys, offsets


def _occupied(
    rows: _Rows, columns: Sequence[CodeArray], widths: Sequence[int]
) -> tuple[NDArray[Any], list[Any]]:
    """Counts by class in the occupied cells of a table, and the groups of these cells."""
    cells = math.prod(widths)
    # With the label in front, the counts of one class lie together.
    for start in range(0, len(rows.label), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        key = rows.label[part].copy()
        for column, width in zip(columns, widths, strict=True):
            key *= np.int32(width)
            key += column[part]
        rows.key[part] = key
    weights = None if rows.alone else rows.weights
    flat = np.bincount(rows.key, weights, minlength=cells * rows.n_classes)
    counts = flat.reshape(rows.n_classes, cells)
    occupied = np.flatnonzero(counts.any(axis=0))
    places = list(np.unravel_index(occupied, widths)) if widths else []
    return counts[:, occupied].astype(np.float64), places


def two_largest(counts: NDArray[Any]) -> tuple[IntArray, IntArray]:
    """Largest and second largest count of each row; counts are whole numbers below 2**53."""
    n_classes = counts.shape[1]
    if n_classes == 1:
        largest = counts[:, 0].astype(np.int64)
        return largest, np.zeros_like(largest)
    if n_classes == 2:
        first, second = counts[:, 0], counts[:, 1]
        return np.maximum(first, second).astype(np.int64), np.minimum(first, second).astype(
            np.int64
        )
    ends = np.partition(counts, n_classes - 2, axis=1)[:, n_classes - 2 :].astype(np.int64)
    return ends[:, 1], ends[:, 0]
