"""Boxes that hold the known codes of rows, drawn in proportion to what they say of the rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .._arrays import running_sums
from .._types import BoolArray, CodeArray, FloatArray, IntArray
from .boxes import Boxes
from .draws import draw_in_ranges

__all__ = ["boxes_given"]

# Bits that are held at once: one for each box and row.
_BITS = 1 << 25


def boxes_given(
    boxes: Boxes,
    mass: FloatArray,
    known: CodeArray,
    covered: Mapping[int, FloatArray],
    generator: np.random.Generator,
) -> IntArray:
    """A box for each row of known codes, among those that hold them.

    Parameters
    ----------
    boxes : Boxes
    mass : ndarray of shape (n_boxes,)
        Positive counts; boxes with 0 are never drawn.
    known : ndarray of int, shape (n_rows, n_attributes)
        Codes, -1 where they are unknown.
    covered : mapping of int to ndarray of shape (n_boxes,)
        Share of each box that a condition covers, by attribute; it counts where the code is
        unknown.
    generator : numpy.random.Generator

    Returns
    -------
    ndarray of int, shape (n_rows,)
        -1 where no box has mass. A box counts with its mass times the shares covered, over its
        width in each known attribute.
    """
    live = np.flatnonzero(mass > 0)
    chosen = np.full(len(known), -1, dtype=np.int64)
    if not len(live) or not len(known):
        return chosen
    axes = np.flatnonzero((known >= 0).any(axis=0) | np.isin(np.arange(known.shape[1]), [*covered]))
    lower = boxes.lower[live][:, axes].astype(np.int64)
    upper = boxes.upper[live][:, axes].astype(np.int64)
    with np.errstate(divide="ignore"):
        told_log = -np.log(upper - lower)
        untold_log = np.zeros_like(told_log)
        for place, axis in enumerate(axes.tolist()):
            if axis in covered:
                untold_log[:, place] = np.log(covered[axis][live])
    distinct, at = np.unique(known[:, axes], axis=0, return_inverse=True)
    at = at.reshape(-1)
    order = np.argsort(at, kind="stable")
    reach = running_sums(np.bincount(at, minlength=len(distinct)))
    u = generator.random(len(known))
    step = max(1, _BITS // len(live))
    for start in range(0, len(distinct), step):
        part = distinct[start : start + step]
        row, box = np.nonzero(_holding(part, lower, upper))
        log = np.log(mass[live])[box]
        for place in range(len(axes)):
            told = part[row, place] >= 0
            log += np.where(told, told_log[box, place], untold_log[box, place])
        possible = np.isfinite(log)
        row, box, log = row[possible], box[possible], log[possible]
        if not len(row):
            continue
        # Rows ascend: the boxes of a row are neighbours.
        ends = running_sums(np.bincount(row, minlength=len(part)))
        first, stop = ends[:-1], ends[1:]
        some = stop > first
        largest = np.zeros(len(part))
        largest[some] = np.maximum.reduceat(log, first[some])
        weight = np.exp(log - largest[row])
        asking = order[reach[start] : reach[start + len(part)]]
        mine = at[asking] - start
        asking, mine = asking[some[mine]], mine[some[mine]]
        drawn = draw_in_ranges(weight, first[mine], stop[mine], u[asking])
        chosen[asking] = live[box[drawn]]
    return chosen


def _holding(rows: CodeArray, lower: IntArray, upper: IntArray) -> BoolArray:
    """Which boxes hold the known codes of which rows, (n_rows, n_boxes)."""
    n_boxes = len(lower)
    held = np.full((len(rows), (n_boxes + 7) // 8), 255, dtype=np.uint8)
    for place in range(rows.shape[1]):
        codes, at = np.unique(rows[:, place], return_inverse=True)
        inside = (lower[:, place] <= codes[:, None]) & (codes[:, None] < upper[:, place])
        inside[codes < 0] = True
        held &= np.packbits(inside, axis=1)[at.reshape(-1)]
    return np.unpackbits(held, axis=1, count=n_boxes).view(bool)
