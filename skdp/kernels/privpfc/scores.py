"""PrivPfC: exact scores of many grids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._types import CodeArray, IntArray
from ...rows import Counts, CountTable, ProjectedCounts
from .quality import Options, Quality

__all__ = ["grid_scores"]

# Positions of one counting pass, and cells of a shared table.
_CHUNK = 2**20
_TABLE_CELLS = 2**18


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
    # Grids over the same predictors share one table of counts, grouped as finely as all of them
    # need together; it is far smaller than the rows.
    used = grids > 0
    order = np.lexsort((*grids.T[::-1], *used.T[::-1]))
    ordered = used[order]
    starts = np.flatnonzero(
        np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)])
    ).tolist()
    scores = np.zeros(len(grids), dtype=np.int64)
    rows = None if isinstance(table, ProjectedCounts) else _Rows(table, options)
    for begin, end in zip(starts, [*starts[1:], len(grids)], strict=True):
        axes = np.flatnonzero(ordered[begin]).tolist()
        members = order[begin:end]
        if rows is not None:
            _score_set(rows, axes, grids, members, quality, scores)
            continue
        # The rows by these predictors and the label alone.
        some = _Rows(table.project([*axes, len(table.shape) - 1]), [options[axis] for axis in axes])
        _score_set(some, range(len(axes)), grids[:, axes], members, quality, scores)
    return scores


class _Rows:
    """Columns of groups of the rows, made when first needed."""

    def __init__(self, table: CountTable, options: Sequence[Options]) -> None:
        self.codes = table.codes
        self.n_classes = table.shape[-1]
        self.label = self.codes[:, -1].astype(np.int32)
        self.options = options
        # Sums of counts are whole numbers below 2**53.
        self.weights = table.counts.astype(np.float64)
        self._columns: dict[tuple[int, bytes], CodeArray] = {}
        self._joins: dict[tuple[int, tuple[int, ...]], tuple[int, IntArray, list[CodeArray]]] = {}

    def join(self, axis: int, used: tuple[int, ...]) -> tuple[int, IntArray, list[CodeArray]]:
        """The coarsest grouping that refines the ``used`` options of a predictor.

        Returns its number of groups, the group of each code, and for each of the options the
        group of each of its groups.
        """
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
            self._joins[key] = (size, joined, maps)
        return self._joins[key]

    def column(self, axis: int, used: tuple[int, ...]) -> CodeArray:
        """Group of each row under the join."""
        joined = self.join(axis, used)[1]
        # Many sets of options have the same join.
        name = (axis, joined.tobytes())
        if name not in self._columns:
            self._columns[name] = joined.astype(np.int32)[self.codes[:, axis]]
        return self._columns[name]


def _score_set(
    rows: _Rows,
    axes: Sequence[int],
    grids: NDArray[np.int16],
    members: IntArray,
    quality: Quality,
    scores: IntArray,
) -> None:
    """Write the scores of the grids numbered ``members``, which all use the same predictors."""
    used = [tuple(np.unique(grids[members, axis]).tolist()) for axis in axes]
    joins = [rows.join(axis, options) for axis, options in zip(axes, used, strict=True)]
    widths = [join[0] for join in joins]
    n_classes = rows.n_classes
    cells = math.prod(widths)
    if cells * n_classes > _TABLE_CELLS and len(members) > 1:
        # Too many cells together: part the grids at the predictor that has most to gain.
        position = max(range(len(axes)), key=lambda place: (len(used[place]) > 1) * widths[place])
        options = used[position]
        low = grids[members, axes[position]] < options[len(options) // 2]
        for half in (members[low], members[~low]):
            _score_set(rows, axes, grids, half, quality, scores)
        return
    columns: list[NDArray[Any]] = [
        rows.column(axis, options) for axis, options in zip(axes, used, strict=True)
    ]
    # With the label in front, the counts of one class lie together.
    if cells * n_classes <= _TABLE_CELLS:
        key = rows.label.copy()
        for column, width in zip(columns, widths, strict=True):
            key *= np.int32(width)
            key += column
        flat = np.bincount(key, weights=rows.weights, minlength=cells * n_classes)
        counts = flat.reshape(n_classes, cells)
        occupied = np.flatnonzero(counts.any(axis=0))
        weights: NDArray[Any] = counts[:, occupied]
        rest: NDArray[Any] = occupied
        for position in reversed(range(len(axes))):
            rest, columns[position] = np.divmod(rest, widths[position])
    else:
        weights = np.zeros((n_classes, len(rows.label)))
        weights[rows.label, np.arange(len(rows.label))] = rows.weights
    mapped = [
        {option: mapping[column] for option, mapping in zip(options, join[2], strict=True)}
        for options, join, column in zip(used, joins, columns, strict=True)
    ]
    sizes = [rows.options[axis].sizes for axis in axes]
    n_cells = weights.shape[1]
    at_once = max(1, _CHUNK // max(1, n_cells))
    for begin in range(0, len(members), at_once):
        part = members[begin : begin + at_once]
        keys = np.zeros((len(part), n_cells), dtype=np.int64)
        offsets = np.zeros(len(part) + 1, dtype=np.int64)
        for number, choice in enumerate(grids[part][:, axes].tolist()):
            key_of = keys[number]
            size = 1
            for position, option in enumerate(choice):
                width = int(sizes[position][option])
                if position:
                    key_of *= width
                key_of += mapped[position][option]
                size *= width
            key_of += offsets[number]
            offsets[number + 1] = offsets[number] + size
        positions = keys.ravel()
        total = int(offsets[-1])
        by_class = np.empty((n_classes, total))
        for label in range(n_classes):
            each = np.broadcast_to(weights[label], keys.shape).ravel()
            by_class[label] = np.bincount(positions, weights=each, minlength=total)
        # An empty cell scores nothing, and most cells of fine grids are empty.
        occupied = np.flatnonzero(by_class.any(axis=0))
        cell_scores = quality.score(*two_largest(by_class[:, occupied].T))
        sums = np.concatenate([[0], np.cumsum(cell_scores)])
        scores[part] = np.diff(sums[np.searchsorted(occupied, offsets)])


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
