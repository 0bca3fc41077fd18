"""Rows in cells that are declared empty, as an expression that an engine evaluates."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from .._arrays import run_starts
from .._types import BoolArray, IntArray
from ..domain import Zeros
from .expressions import Lookups

__all__ = ["skip_empty_cells"]

# A table is searched by the intervals of one attribute if no combination of the others has more.
_MOST_INTERVALS = 8

# Engines that evaluate only the branch of a condition that holds; plans with many joins are slow.
_MOST_CONDITIONS = {"duckdb": 1024, "pyspark": 1024}


def skip_empty_cells(
    frame: Any, zeros: Sequence[Zeros], names: Sequence[str], lookups: Lookups
) -> Any:
    """The frame with -1 as the first code of rows that are in a forbidden cell.

    Parameters
    ----------
    frame : narwhals LazyFrame
    zeros : sequence of Zeros
    names : sequence of str
        Columns of codes, in the order of the attributes; they may be negative.
    lookups : Lookups
        Without tables yet; its prefix differs from that of any column.
    """
    # Privacy: as in `Domain.encode_columns`. A row is skipped for its own codes and the public
    # declaration alone. Whether the search is by conditions or by a join follows from the
    # declaration too. Each key of a join occurs once, so no row is doubled.
    early = Lookups(f"{lookups.prefix}early_", lookups.engine)
    kept: list[Any] = []
    rows: dict[str, Any] = {}
    for number, each in enumerate(zeros):
        search = _Search(each, [names[axis] for axis in each.axes])
        row = search.row(early)
        if search.is_wide:
            # As a column, so that its expression is not repeated in every condition.
            rows[f"{lookups.prefix}row{number}"] = row
            row = nw.col(f"{lookups.prefix}row{number}")
        kept.append(search.allowed(row, lookups))
    frame = early.joined(frame)
    frame = frame.with_columns(**rows) if rows else frame
    first = nw.when(functools.reduce(operator.and_, kept)).then(nw.col(names[0]))
    return lookups.joined(frame).with_columns(**{names[0]: first.otherwise(nw.lit(-1))})


class _Search:
    """Finds out whether a row is in an allowed cell; anything where a code is negative.

    Parameters
    ----------
    zeros : Zeros
    names : sequence of str
        Columns of codes of its attributes.
    """

    def __init__(self, zeros: Zeros, names: Sequence[str]) -> None:
        table = zeros.allowed
        classes = [_classes(table, axis) for axis in range(table.ndim)]
        # The attribute with the most classes is searched by intervals of its codes.
        axis = int(np.argmax([len(firsts) for firsts, _ in classes]))
        self._own, self._class_of = nw.col(names[axis]), classes[axis]
        others = [other for other in range(table.ndim) if other != axis]
        self.is_wide = len(others) > 1
        self._others = [nw.col(names[other]) for other in others]
        self._classes = [classes[other][1] for other in others]
        if self.is_wide:
            # One row for each combination of classes of the other attributes.
            for other in others:
                table = table.take(classes[other][0], axis=other)
        self._sizes = [table.shape[other] for other in others]
        self._rows = np.moveaxis(table, axis, -1).reshape(-1, table.shape[axis])

    def row(self, lookups: Lookups) -> Any:
        """Number of the combination of the other attributes."""
        if not self.is_wide:
            return self._others[0] if self._others else nw.lit(0)
        row: Any = nw.lit(0)
        for code, size, class_of in zip(self._others, self._sizes, self._classes, strict=True):
            row = row * size + _looked_up(code, class_of, lookups)
        return row

    def allowed(self, row: Any, lookups: Lookups) -> Any:
        """Whether the cell is allowed."""
        starts, stops = _intervals(self._rows)
        if starts.shape[1] <= _MOST_INTERVALS:
            inside = [
                (self._own >= _looked_up(row, starts[:, place], lookups))
                & (self._own < _looked_up(row, stops[:, place], lookups))
                for place in range(starts.shape[1])
            ]
            return functools.reduce(operator.or_, inside)
        firsts, class_of = self._class_of
        cells = self._rows.take(firsts, axis=1).astype(np.int64)
        cell = row * len(firsts) + _looked_up(self._own, class_of, lookups)
        return _looked_up(cell, cells.ravel(), lookups) == 1


def _classes(table: BoolArray, axis: int) -> tuple[IntArray, IntArray]:
    """Codes with the same allowed cells: one of each class, and the class of each code."""
    rows = np.packbits(np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1), axis=1)
    _, firsts, class_of = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return firsts.astype(np.int64), class_of.ravel().astype(np.int64)


def _intervals(rows: BoolArray) -> tuple[IntArray, IntArray]:
    """Where runs of allowed codes begin and end in each row; empty ones fill up."""
    edges = np.diff(np.pad(rows.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    most = max(int((edges == 1).sum(axis=1).max()), 1)
    ends = []
    for sign in (1, -1):
        found, code = np.nonzero(edges == sign)
        place = np.arange(len(found)) - np.searchsorted(found, found)
        table = np.zeros((len(rows), most), dtype=np.int64)
        table[found, place] = code
        ends.append(table)
    return ends[0], ends[1]


def _looked_up(key: Any, values: NDArray[np.integer], lookups: Lookups) -> Any:
    """The value for each key 0, 1, ...: by conditions if it seldom changes, else by a join."""
    starts = run_starts(values).tolist()
    if len(starts) <= _MOST_CONDITIONS.get(lookups.engine, lookups.most_conditions):
        return _piecewise(key, [(start, int(values[start])) for start in starts])
    return lookups.add(key.cast(nw.Int64), list(enumerate(values.tolist())))


def _piecewise(key: Any, pieces: Sequence[tuple[int, int]]) -> Any:
    """The value of the last piece that begins at or before each key: a tree of conditions."""
    if len(pieces) == 1:
        return nw.lit(pieces[0][1])
    middle = len(pieces) // 2
    below, above = _piecewise(key, pieces[:middle]), _piecewise(key, pieces[middle:])
    return nw.when(key < pieces[middle][0]).then(below).otherwise(above)
