"""HDPView: aggregation errors of many blocks at once, in exact integers."""

from __future__ import annotations

import numpy as np

from ..._arrays import running_sums
from ..._types import IntArray
from ..stop_test import GRID

__all__ = [
    "MANY_CELLS",
    "capped_product",
    "cells_of",
    "error_steps",
    "sums_above",
]

# Numbers of cells are only compared with numbers of records, so they are capped here.
MANY_CELLS = 2**61


def capped_product(a: IntArray, b: IntArray) -> IntArray:
    """Products of positive numbers up to MANY_CELLS, capped there."""
    fits = a <= MANY_CELLS // b
    return np.where(fits, a * np.where(fits, b, 1), MANY_CELLS)


def cells_of(sides: IntArray) -> tuple[IntArray, IntArray]:
    """Cells of each block, and of a slice of it of width 1 on each axis; capped at MANY_CELLS."""
    d = sides.shape[1]
    before, after = np.ones_like(sides), np.ones_like(sides)
    for axis in range(1, d):
        before[:, axis] = capped_product(before[:, axis - 1], sides[:, axis - 1])
        after[:, d - 1 - axis] = capped_product(after[:, d - axis], sides[:, d - axis])
    rest = capped_product(before, after)
    return capped_product(rest[:, 0], sides[:, 0]), rest


def error_steps(heavy: IntArray, n_heavy: IntArray, total: IntArray, cells: IntArray) -> IntArray:
    """Aggregation errors in grid steps, rounded to the nearest, exactly.

    Deviations above the mean and below it are equal, so the error of n cells with the sum S is
    2 (A - c S / n), where c occupied cells with the sum A lie above the mean S / n. In a block of
    no more records than cells these are all occupied cells.
    """
    if 4 * GRID * int(total.max(initial=0)) * int(n_heavy.max(initial=0)) >= MANY_CELLS:
        total, n_heavy, cells = total.astype(object), n_heavy.astype(object), cells.astype(object)
    spread = (4 * GRID * total * n_heavy + cells - 1) // (2 * cells)
    return 2 * GRID * heavy - spread.astype(np.int64)


def sums_above(
    slot: IntArray, x: IntArray, start: IntArray, stop: IntArray, threshold: IntArray
) -> tuple[IntArray, IntArray]:
    """Sum and number of the x above a threshold with start <= slot < stop, for many queries.

    A range of slots is a union of nodes of a binary tree over all slots, at most two on each
    level. On each level the rows are sorted by node and then by value, so that two binary
    searches in them and running sums answer a node.
    """
    values, rank = np.unique(x, return_inverse=True)
    least = np.searchsorted(values, threshold, side="right")
    width = len(values) + 1
    node, start, stop = slot, start.copy(), stop.copy()
    total, number = np.zeros_like(start), np.zeros_like(start)
    active = np.arange(len(start))
    while len(active):
        key = node * width + rank
        order = np.argsort(key, kind="stable")
        node, rank, x, key = node[order], rank[order], x[order], key[order]
        running = running_sums(x)
        odd_start = active[start[active] % 2 == 1]
        odd_stop = active[stop[active] % 2 == 1]
        for query, taken in ((odd_start, start[odd_start]), (odd_stop, stop[odd_stop] - 1)):
            low = np.searchsorted(key, taken * width + least[query])
            high = np.searchsorted(key, (taken + 1) * width)
            total[query] += running[high] - running[low]
            number[query] += high - low
        node, start, stop = node >> 1, (start + 1) >> 1, stop >> 1
        active = active[start[active] < stop[active]]
    return total, number
