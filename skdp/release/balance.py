"""Swaps inside strata that bring counts of pairs of columns near what is expected."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .._types import FloatArray, IntArray

__all__ = ["swap_codes"]

# How far apart in the order of the rows those are that may swap; one pass for each.
_DISTANCES = (27, 9, 3, 1)
# Errors that a swap must take away at least: equal seeds give equal rows on every machine.
_ROUNDING = 1e-6
# Swaps that are decided at once, by counts that none of them has changed yet.
_AT_ONCE = 64


def swap_codes(
    codes: NDArray[np.int32],
    rows: IntArray,
    stratum: NDArray[np.int32] | None,
    others: Sequence[NDArray[np.int32]],
    expected: Sequence[FloatArray],
    most: int,
) -> None:
    """Swap codes of a column between rows of a stratum where that lowers the squared errors.

    The errors are those of the counts of the column's codes together with each of the others.

    Parameters
    ----------
    codes : ndarray of int32, shape (n_rows,)
        Of the column; changed in place.
    rows : ndarray of int, shape (n_rows,)
        An order of the rows in which strata are contiguous. Neighbours swap.
    stratum : ndarray of int32, shape (n_rows,), or None
        None: all rows are one stratum.
    others : sequence of ndarray of int32, shape (n_rows,)
        Codes of other columns.
    expected : sequence of ndarray, shape (size of the other column, size of the column)
    most : int
        Pairs of rows that are looked at in each of a few passes, about.
    """
    if not others or len(rows) < 2:
        return
    width = expected[0].shape[1]
    starts = np.cumsum([0, *(table.size for table in expected)])
    error = np.concatenate(
        [
            np.bincount(other * np.int32(width) + codes, minlength=table.size) - table.ravel()
            for other, table in zip(others, expected, strict=True)
        ]
    )
    tables = list(zip(others, starts[:-1], strict=True))
    for distance in _DISTANCES:
        one, two = _neighbours(rows, distance, most)
        differ = codes[one] != codes[two]
        if stratum is not None:
            differ &= stratum[one] == stratum[two]
        one, two = one[differ], two[differ]
        # Line of the counts that a row is part of, in the table of each other column.
        lines = [
            np.stack([other[side] * width + start for other, start in tables])
            for side in (one, two)
        ]
        n_batches = -(-len(one) // _AT_ONCE)
        for batch in range(n_batches):
            some = slice(batch, None, n_batches)
            _swap(codes, error, one[some], two[some], lines[0][:, some], lines[1][:, some])


def _neighbours(rows: IntArray, distance: int, most: int) -> tuple[IntArray, IntArray]:
    """Disjoint pairs of rows at a distance in their order."""
    n_blocks = len(rows) // (2 * distance)
    stride = max(1, n_blocks * distance // most)
    starts = 2 * distance * np.arange(0, n_blocks, stride)
    place = (starts[:, None] + np.arange(distance)).ravel()
    return rows[place], rows[place + distance]


def _swap(
    codes: NDArray[np.int32],
    error: FloatArray,
    one: IntArray,
    two: IntArray,
    first: IntArray,
    second: IntArray,
) -> None:
    """Swap the codes of those pairs of rows for which the errors then are smaller."""
    own, other = codes[one], codes[two]
    change = error[first + other] - error[first + own] + 2.0
    change += error[second + own] - error[second + other]
    better = np.flatnonzero((change * (first != second)).sum(axis=0) < -_ROUNDING)
    if not len(better):
        return
    first, second, own, other = first[:, better], second[:, better], own[better], other[better]
    np.add.at(error, np.concatenate([first + other, second + own]), 1.0)
    np.subtract.at(error, np.concatenate([first + own, second + other]), 1.0)
    codes[one[better]], codes[two[better]] = other, own
