"""PrivPfC: exact scores of many grids, counted together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._arrays import run_starts, running_sums
from ..._types import CodeArray, IntArray
from ...rows import Counts, CountTable, ProjectedCounts
from .options import Options
from .quality import Quality

__all__ = ["grid_scores", "two_largest"]

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
