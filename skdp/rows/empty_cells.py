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
    codes = [nw.col(name) for name in names]
    allowed = [_allowed(each, [codes[axis] for axis in each.axes], lookups) for each in zeros]
    kept = functools.reduce(operator.and_, allowed)
    first = nw.when(kept).then(codes[0]).otherwise(nw.lit(-1))
    return lookups.joined(frame).with_columns(**{names[0]: first})


def _allowed(zeros: Zeros, codes: Sequence[Any], lookups: Lookups) -> Any:
    """Whether a row is in an allowed cell; anything where a code is negative."""
    table = zeros.allowed
    classes = [_classes(table, axis) for axis in range(table.ndim)]
    axis = int(np.argmax([len(firsts) for firsts, _ in classes]))
    others = [other for other in range(table.ndim) if other != axis]
    # One row for each combination of classes of the other attributes.
    rows = table
    for other in others:
        rows = rows.take(classes[other][0], axis=other)
    shape = [rows.shape[other] for other in others]
    rows = np.moveaxis(rows, axis, -1).reshape(-1, table.shape[axis])
    row: Any = nw.lit(0)
    for other, size in zip(others, shape, strict=True):
        row = row * size + _looked_up(codes[other], classes[other][1], lookups)
    starts, stops = _intervals(rows)
    if starts.shape[1] <= _MOST_INTERVALS:
        inside = [
            (codes[axis] >= _looked_up(row, starts[:, place], lookups))
            & (codes[axis] < _looked_up(row, stops[:, place], lookups))
            for place in range(starts.shape[1])
        ]
        return functools.reduce(operator.or_, inside)
    firsts, class_of = classes[axis]
    cells = rows.take(firsts, axis=1).astype(np.int64)
    cell = row * len(firsts) + _looked_up(codes[axis], class_of, lookups)
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
    if len(starts) <= lookups.most_conditions:
        return _piecewise(key, [(start, int(values[start])) for start in starts])
    return lookups.add(key, list(enumerate(values.tolist())))


def _piecewise(key: Any, pieces: Sequence[tuple[int, int]]) -> Any:
    """The value of the last piece that begins at or before each key: a tree of conditions."""
    if len(pieces) == 1:
        return nw.lit(pieces[0][1])
    middle = len(pieces) // 2
    below, above = _piecewise(key, pieces[:middle]), _piecewise(key, pieces[middle:])
    return nw.when(key < pieces[middle][0]).then(below).otherwise(above)
