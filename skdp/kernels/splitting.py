"""What algorithms that divide boxes of codes have in common."""

from __future__ import annotations

import numpy as np

from .._types import FloatArray, IntArray

__all__ = ["halves", "medians", "slots", "starts"]


def starts(lengths: IntArray) -> IntArray:
    """Where each of consecutive segments begins."""
    return np.cumsum(lengths) - lengths


def slots(lower: IntArray, upper: IntArray, axis: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Codes of each box along its axis, counted one after the other.

    Returns the sides, what is added to a code to get its slot, and the first codes.
    """
    each = np.arange(len(axis))
    begin = lower[each, axis]
    side = upper[each, axis] - begin
    return side, np.cumsum(side) - side - begin, begin


def medians(sums: FloatArray, side: IntArray) -> IntArray:
    """Codes on the left of the cut that halves the sums of each box best, from 1 to side - 1."""
    owner = np.repeat(np.arange(len(side)), side - 1)
    left = np.arange(1, len(owner) + 1) - (np.cumsum(side - 1) - (side - 1))[owner]
    start = np.cumsum(side) - side
    running = np.concatenate([[0.0], np.cumsum(sums)])
    low, high = running[start], running[start + side]
    lopsided = np.abs(2 * running[start[owner] + left] - (low + high)[owner])
    off_centre = np.abs(2 * left - side[owner])
    order = np.lexsort((off_centre, lopsided, owner))
    return left[order[np.cumsum(side - 1) - (side - 1)]]


def halves(
    lower: IntArray, upper: IntArray, axis: IntArray, cut: IntArray
) -> tuple[IntArray, IntArray]:
    """Both halves of each box, one after the other; the right one begins at the cut."""
    each = np.arange(len(axis))
    lower, upper = np.repeat(lower, 2, axis=0), np.repeat(upper, 2, axis=0)
    upper[2 * each, axis] = cut
    lower[2 * each + 1, axis] = cut
    return lower, upper
