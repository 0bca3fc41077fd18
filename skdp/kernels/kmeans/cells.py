"""Noisy grids over integer points, and their completion to a partition of the box."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..._random import NoiseSource
from ..._types import BoolArray, FloatArray, IntArray
from ...mechanisms import discrete_laplace
from ...rows import CodedRows
from ..grid import even_edges, least_parts
from .rows import Points

__all__ = [
    "Cells",
    "count_cells",
    "cover",
    "even_edges",
    "full_grid_edges",
    "grid_edges",
    "measure_cells",
]

# Cells whose noise is drawn at once.
_CELLS_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class Cells:
    """Released cells: boxes of codes and their noisy counts.

    Attributes
    ----------
    lower, upper : ndarray of int64, shape (m, d)
        Codes of cell i on axis j: ``lower[i, j] <= code < upper[i, j]``.
    places : ndarray of int64, shape (m, d)
        Their positions in the grid, in lexicographic order.
    counts : ndarray of int64, shape (m,)
        Noisy, may be negative.
    """

    lower: IntArray
    upper: IntArray
    places: IntArray
    counts: IntArray

    @property
    def centers(self) -> FloatArray:
        """Middles of the cells, (m, d)."""
        return (self.lower + self.upper - 1) / 2

    def select(self, keep: BoolArray) -> Cells:
        """Some of the cells."""
        return Cells(self.lower[keep], self.upper[keep], self.places[keep], self.counts[keep])


def grid_edges(shape: Sequence[int], n_cells: float) -> list[IntArray]:
    """Edges of a grid of about cubic cells, at least ``n_cells`` of them if there are enough codes.

    Parameters
    ----------
    shape : sequence of int
        Codes of each axis.
    n_cells : float
        With axes of equal length each has ceil(n_cells^(1/d)) parts.
    """
    longest = max(shape)

    def sides(parts: int) -> list[int]:
        return [min(size, max(1, -(-parts * size // longest))) for size in shape]

    parts = least_parts(longest, lambda parts: math.prod(sides(parts)) >= n_cells)
    return [even_edges(size, side) for size, side in zip(shape, sides(parts), strict=True)]


def full_grid_edges(shape: Sequence[int], n_cells: float) -> list[IntArray]:
    """Edges of a grid of at least ``n_cells`` cells, cut as the dissertation's authors do.

    Axis by axis, those with the fewest codes first: while j axes are left and M cells are still
    needed, the next axis gets ceil(M^(1/j)) parts, and M is divided by them. Later axes may stay
    whole, so that the number of cells stays close to ``n_cells`` in any dimension.
    """
    edges: list[IntArray] = [np.empty(0, dtype=np.int64)] * len(shape)
    wanted = max(1.0, n_cells)
    for done, axis in enumerate(np.argsort(shape, kind="stable")):
        size = shape[axis]
        parts = max(1, min(size, math.ceil(wanted ** (1 / (len(shape) - done)) - 1e-9)))
        edges[axis] = even_edges(size, parts)
        wanted = max(1.0, wanted / parts)
    return edges


def count_cells(points: Points, edges: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Numbers of the occupied cells of a grid, ascending, and their exact counts."""
    sides = [len(edge) - 1 for edge in edges]
    if isinstance(points, CodedRows):
        # Parts of equal width, up to the rounding that `cells` shares, need no search.
        even = [even_edges(int(edge[-1]), side) for edge, side in zip(edges, sides, strict=True)]
        return points.cells(
            [
                side if np.array_equal(edge, same) else edge
                for edge, side, same in zip(edges, sides, even, strict=True)
            ]
        )
    key = np.zeros(len(points), dtype=np.int64)
    for axis, (edge, side) in enumerate(zip(edges, sides, strict=True)):
        if side > 1:
            key *= side
            key += np.searchsorted(edge[1:-1], points[:, axis], side="right")
    if math.prod(sides) <= _CELLS_AT_ONCE:
        exact = np.bincount(key, minlength=1)
        present = np.flatnonzero(exact)
        return present, exact[present]
    return np.unique(key, return_counts=True)


def measure_cells(
    points: Points,
    edges: Sequence[IntArray],
    epsilon: Fraction,
    threshold: int | None,
    source: NoiseSource,
) -> Cells:
    """Noisy count of every cell of a grid, or of those that reach a threshold.

    Noise is drawn for every cell of the grid, a block of cells at a time: the distribution of the
    result is exactly that of the full noisy grid with the small counts removed. Only one block is
    held at a time.

    Parameters
    ----------
    points : ndarray of int32, shape (n, d), or CodedRows
    edges : list of ndarray of int64
        First codes of the parts of each axis, and the end.
    epsilon : Fraction
        Cost of the counts, because a record is in one cell.
    threshold : int or None
        Public, or computed from earlier releases.
    source : NoiseSource
    """
    sides = [len(edge) - 1 for edge in edges]
    present, occupied = count_cells(points, edges)
    kept_blocks, count_blocks = [], []
    total = math.prod(sides)
    for first in range(0, total, _CELLS_AT_ONCE):
        stop = min(first + _CELLS_AT_ONCE, total)
        exact = np.zeros(stop - first, dtype=np.int64)
        here = slice(*np.searchsorted(present, [first, stop]))
        exact[present[here] - first] = occupied[here]
        noisy = discrete_laplace(exact, epsilon, random_state=source)
        kept = np.arange(len(noisy)) if threshold is None else np.flatnonzero(noisy >= threshold)
        kept_blocks.append(kept + first)
        count_blocks.append(noisy[kept])
    kept, counts = np.concatenate(kept_blocks), np.concatenate(count_blocks)
    places = np.stack(np.unravel_index(kept, sides), axis=1)
    lower = np.stack([edge[places[:, axis]] for axis, edge in enumerate(edges)], axis=1)
    upper = np.stack([edge[places[:, axis] + 1] for axis, edge in enumerate(edges)], axis=1)
    return Cells(lower, upper, places, counts)


def cover(places: IntArray, sides: Sequence[int]) -> tuple[IntArray, IntArray, IntArray]:
    """Complete some cells of a grid to a partition of it into boxes.

    Gaps are closed axis by axis: one box lies between two neighbouring values on an axis, among
    cells that agree on the earlier axes. There are at most 2d + 1 boxes for a cell, plus one.

    Parameters
    ----------
    places : ndarray of int64, shape (m, d)
        Distinct cells, in lexicographic order.
    sides : sequence of int
        Cells of the grid along each axis.

    Returns
    -------
    lower, upper : ndarray of int64, shape (n, d)
        Boxes of places; the cells come first, in their order.
    index : ndarray of int64, shape (n,)
        Position of the cell that a box is, -1 for gaps.
    """
    m, d = places.shape
    whole = np.array(sides, dtype=np.int64)
    lower, upper, index = [places], [places + 1], [np.arange(m)]
    if m == 0:
        return np.zeros((1, d), dtype=np.int64), whole[None], np.array([-1])
    starts_parent = np.zeros(m, dtype=bool)
    starts_parent[0] = True
    for axis in range(d):
        starts_child = starts_parent.copy()
        starts_child[1:] |= places[1:, axis] != places[:-1, axis]
        rows = np.flatnonzero(starts_child)
        value = places[rows, axis]
        is_first = starts_parent[rows]
        is_last = np.append(is_first[1:], True)
        before = np.where(is_first, 0, np.append(0, value[:-1] + 1))
        gaps = [(rows, before, value), (rows[is_last], value[is_last] + 1, None)]
        for at, low, high in gaps:
            stop = np.full(len(at), sides[axis]) if high is None else high
            open_gap = low < stop
            boxes_low = np.zeros((int(open_gap.sum()), d), dtype=np.int64)
            boxes_high = np.tile(whole, (len(boxes_low), 1))
            boxes_low[:, :axis] = places[at[open_gap], :axis]
            boxes_high[:, :axis] = places[at[open_gap], :axis] + 1
            boxes_low[:, axis] = low[open_gap]
            boxes_high[:, axis] = stop[open_gap]
            lower.append(boxes_low)
            upper.append(boxes_high)
            index.append(np.full(len(boxes_low), -1))
        starts_parent = starts_child
    return np.concatenate(lower), np.concatenate(upper), np.concatenate(index)
