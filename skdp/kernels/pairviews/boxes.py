"""Boxes of cells: exact counts of boxes, and how boxes are divided into parts of equal mass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..._arrays import exclusive_cumsum
from ..._types import FloatArray, IntArray
from ..splitting import inner_cuts

__all__ = ["box_counts", "divide", "leaf_numbers", "prefix_sums"]


def prefix_sums(counts: NDArray[np.integer]) -> IntArray:
    """Sums of all cells before each corner, from which `box_counts` takes the counts of boxes."""
    sums = np.zeros([size + 1 for size in counts.shape], dtype=np.int64)
    sums[(slice(1, None),) * counts.ndim] = counts
    for axis in range(counts.ndim):
        np.cumsum(sums, axis=axis, out=sums)
    return sums


def box_counts(sums: IntArray, low: IntArray, high: IntArray) -> IntArray:
    """Exact counts of boxes from prefix sums."""
    result = np.zeros(len(low), dtype=np.int64)
    for corner in np.ndindex(*(2,) * sums.ndim):
        at = np.where(np.array(corner, dtype=bool), high, low)
        sign = -1 if (sums.ndim - sum(corner)) % 2 else 1
        result += sign * sums[tuple(at.T)]
    return result


def divide(
    low: IntArray, high: IntArray, wanted: FloatArray, cumulated: Sequence[FloatArray]
) -> tuple[IntArray, IntArray, IntArray]:
    """Divide boxes into about ``wanted`` near-square boxes of equal mass.

    Every box has at least two cells and wants at least two parts; it then gets two or more.

    Parameters
    ----------
    low, high : ndarray of int64, shape (n_boxes, n_axes)
    wanted : ndarray of float64, shape (n_boxes,)
    cumulated : sequence of ndarray
        Mass before each edge of each axis, ascending.

    Returns
    -------
    above, low, high
        Position of the parent, and the new boxes; those of one parent are consecutive.
    """
    n_axes = low.shape[1]
    width = high - low
    extent = np.stack(
        [mass[high[:, axis]] - mass[low[:, axis]] for axis, mass in enumerate(cumulated)], axis=1
    )
    parts = _parts_per_axis(width, extent, wanted)
    starts, edges, numbers = [], [], []
    for axis in range(n_axes):
        cuts, number = _cuts(low[:, axis], high[:, axis], parts[:, axis], cumulated[axis])
        starts.append(exclusive_cumsum(number + 1))
        edges.append(cuts)
        numbers.append(number)
    children = np.prod(np.stack(numbers, axis=1), axis=1)
    above = np.repeat(np.arange(len(low)), children)
    local = np.arange(len(above)) - exclusive_cumsum(children)[above]
    child_low = np.empty((len(above), n_axes), dtype=np.int64)
    child_high = np.empty_like(child_low)
    for axis in reversed(range(n_axes)):
        local, at = np.divmod(local, numbers[axis][above])
        at = at + starts[axis][above]
        child_low[:, axis], child_high[:, axis] = edges[axis][at], edges[axis][at + 1]
    return above, child_low, child_high


def _parts_per_axis(width: IntArray, extent: FloatArray, wanted: FloatArray) -> IntArray:
    """How many parts each axis of each box is cut into."""
    n_axes = width.shape[1]
    parts = np.ones_like(width)
    left = wanted.copy()
    # Axes in the order of their width: parts that do not fit a narrow axis go to the others.
    order = np.argsort(width, axis=1, kind="stable")
    rows = np.arange(len(width))
    for step in range(n_axes):
        axis = order[:, step]
        rest = order[:, step:]
        mean = np.exp(np.log(np.take_along_axis(extent, rest, axis=1)).mean(axis=1))
        side = left ** (1.0 / (n_axes - step)) * extent[rows, axis] / mean
        most = np.minimum(width[rows, axis], np.floor(left + 1e-6))
        whole = np.clip(np.rint(side), 1, np.maximum(most, 1.0))
        parts[rows, axis] = whole.astype(np.int64)
        left = np.maximum(left / parts[rows, axis], 1.0)
    return parts


def _cuts(
    low: IntArray, high: IntArray, parts: IntArray, cumulated: FloatArray
) -> tuple[IntArray, IntArray]:
    """Edges of equal mass along one axis of each box.

    Returns
    -------
    edges : ndarray of int64
        Those of one box after the other, each with its two ends.
    number : ndarray of int64, shape (n_boxes,)
        How many parts each box has; fewer than wanted where edges coincide.
    """
    box, local = inner_cuts(parts)
    start, stop = cumulated[low], cumulated[high]
    target = start[box] + (stop - start)[box] * local / parts[box]
    cut = np.searchsorted(cumulated, target)
    # The nearer of the two edges around the target, inside the box; there always is one.
    last = len(cumulated) - 1
    cut -= target - cumulated[cut - 1] < cumulated[np.minimum(cut, last)] - target
    cut = np.clip(cut, low[box] + 1, high[box] - 1)
    everything = np.concatenate([low, cut, high])
    owner = np.concatenate([np.arange(len(low)), box, np.arange(len(low))])
    key = np.unique(owner * np.int64(len(cumulated)) + everything)
    number = np.bincount(key // len(cumulated), minlength=len(low)) - 1
    return key % len(cumulated), number


def leaf_numbers(lower: IntArray, upper: IntArray, shape: Sequence[int]) -> IntArray:
    """Number of the box that each cell lies in; the boxes are disjoint and cover the table."""
    grid = np.zeros([size + 1 for size in shape], dtype=np.int64)
    for corner in np.ndindex(*(2,) * len(shape)):
        at = np.where(np.array(corner, dtype=bool), upper, lower)
        np.add.at(grid, tuple(at.T), (-1) ** sum(corner) * np.arange(len(lower)))
    for axis in range(len(shape)):
        np.cumsum(grid, axis=axis, out=grid)
    return grid[(slice(-1),) * len(shape)]
