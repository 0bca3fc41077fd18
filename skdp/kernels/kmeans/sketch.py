"""The first release of "auto": a noisy grid or tree, and a cloud of points that represents it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..._arrays import exclusive_cumsum
from ..._types import BoolArray, FloatArray, IntArray
from ...mechanisms import discrete_laplace_variance
from ..grid import grid_size
from .cells import Cells, grid_edges, measure_cells
from .ranges import DIM, MOST_FLAT, Binned, Margins, measure_margins
from .task import Clustering, Task
from .tree import measure_tree

__all__ = ["Cloud", "Sketch", "first_sketch", "grid_sketch", "weighted_sums"]

# Records per unit of noise that a cell of the grid should have.
_THETA = 5.0
_MOST_CELLS = 2**15
# A cell is kept if it reaches the first share of the threshold by itself, or the second one if its
# neighbourhood stands out.
_ALONE, _AMONG = 1.2, 0.4
# How far a neighbourhood must stand out, in standard deviations of its noise.
_CROWDED = 2.0
# The other cells are added up in blocks with these numbers of cells along every axis; a block is
# kept if it exceeds this many standard deviations.
_BLOCKS = (2, 4, 8)
_BLOCK_STANDS_OUT = 4.0
# Share of the grid or tree in the budget if rounds follow.
_SHARE_FLAT = Fraction(4, 5)
_SHARE = Fraction(9, 20)
# Share of the margins: at least the first, and up to the second one for so many records per unit of
# noise in each. In flat data with few records a grid needs less.
_MARGIN_SHARE, _MOST_SHARE = Fraction(2, 25), Fraction(3, 10)
_MARGINS_TELL = 30
_FLAT_SHARE, _FLAT_TELLS = Fraction(1, 20), 20
# The grid is better if this part of the ranges is filled, in the geometric mean: if less is, its
# cells are too wide for the clusters or for the bulk before a long tail.
_FILLED = 0.3
# Most that is spent on margins where ranges seem narrow.
_RANGES = Fraction(3, 5)
# Points of a cloud, at least one for each box.
_CLOUD = 4096
# Points for each requested cluster, where these are more, but no more than records.
_CLOUD_EACH = 100


@dataclass(frozen=True)
class Cloud:
    """Weighted points that represent the records, from released numbers.

    Attributes
    ----------
    points : ndarray of float64, shape (m, d)
        In codes.
    weights : ndarray of float64, shape (m,)
        Positive, with the number of records as their sum.
    """

    points: FloatArray
    weights: FloatArray


@dataclass(frozen=True)
class Sketch:
    """A released grid or tree, and the input for k-means from it.

    Attributes
    ----------
    release : Clustering
        Without centroids.
    centers : ndarray of float64, shape (m, d)
        Means of the boxes that are not empty.
    masses : ndarray of float64, shape (m,)
    cloud : Cloud
    ranges : ndarray of int64, shape (d, 2)
        Codes that nearly all records are between.
    left : Fraction
        Budget for rounds.
    """

    release: Clustering
    centers: FloatArray
    masses: FloatArray
    cloud: Cloud
    ranges: IntArray
    left: Fraction

    @classmethod
    def of(
        cls,
        task: Task,
        n: int,
        release: Clustering,
        boxes: tuple[IntArray, IntArray, FloatArray],
        margins: Margins | None,
        ranges: IntArray,
        left: Fraction,
    ) -> Sketch:
        """A cloud of points in boxes, in proportion to their counts.

        Along an axis they are spread in proportion to its margin, or evenly without margins.
        """
        lower, upper, masses = boxes
        size = max(_CLOUD, min(_CLOUD_EACH * max(task.clusters), n))
        each = np.maximum(np.rint(size * masses / max(masses.sum(), 1.0)).astype(np.int64), 1)
        box = np.repeat(np.arange(len(each)), each)
        rank = np.arange(len(box)) - np.repeat(exclusive_cumsum(each), each)
        points = np.empty((len(box), lower.shape[1]))
        for axis in range(lower.shape[1]):
            # Equal steps, in a random order of its own on every axis.
            order = np.lexsort((task.generator.random(len(box)), box))
            u = np.empty(len(box))
            u[order] = (rank + 0.5) / each[box]
            low, high = lower[box, axis], upper[box, axis]
            if margins is None:
                points[:, axis] = low - 0.5 + u * (high - low)
            else:
                points[:, axis] = margins.quantiles(axis, low, high, u)
        centers = weighted_sums(points, np.ones(len(box)), box, len(each)) / each[:, None]
        weights = (n * masses / max(masses.sum(), 1.0) / each)[box]
        return cls(release, centers, masses, Cloud(points, weights), ranges, left)


def weighted_sums(
    values: FloatArray, weights: FloatArray, labels: IntArray, size: int
) -> FloatArray:
    """Weighted sums of rows by label, (size, d)."""
    columns = [np.bincount(labels, weights * column, minlength=size) for column in values.T]
    return np.stack(columns, axis=1)


def first_sketch(task: Task, n: int, budget: Fraction, rounds: bool, few: bool) -> Sketch:
    """Margins, if they stand out from their noise, and a grid or a tree.

    Privacy. The margins return what they spent, and the grid or tree, with the rounds that follow,
    gets the rest. Which of both it is depends on public facts and on released numbers: that of the
    records and the margins.

    Parameters
    ----------
    task : Task
    n : int
        Public or released number of records.
    budget : Fraction
    rounds : bool
        Whether a part of the budget is left for rounds.
    few : bool
        Whether there are so few records that a grid may be better in flat data.
    """
    binned = Binned.of(task.points, task.shape)
    margins, d = Margins.even(binned.edges), task.n_axes
    flat = d <= MOST_FLAT
    least, tell = (_FLAT_SHARE, _FLAT_TELLS) if flat and few else (_MARGIN_SHARE, _MARGINS_TELL)
    share = min(max(least, Fraction(tell * d, n) / budget), _MOST_SHARE)
    if n * share * budget >= DIM * d:
        margins, binned, spent = measure_margins(
            task.points, binned, n, share * budget, budget * _RANGES, flat and few, task.source
        )
        budget -= spent
    epsilon = budget * (_SHARE_FLAT if flat else _SHARE) if rounds else budget
    cells = _n_cells(n, epsilon, d)
    if flat and few and margins.filled.prod() >= _FILLED**d and margins.near:
        # Cells as small as in ranges without empty ends.
        cells = max(cells, min(cells * margins.loose, _MOST_CELLS / 2))
        return _grid_sketch(task, n, margins.ranges, cells, epsilon, budget - epsilon)
    return _tree_sketch(task, n, binned, margins, epsilon, budget - epsilon)


def grid_sketch(task: Task, n: int, epsilon: Fraction) -> Sketch:
    """A grid of the whole box, for all of epsilon, where records are known to fill the box."""
    whole = np.array([[0, size] for size in task.shape])
    cells = _n_cells(n, epsilon, task.n_axes)
    return _grid_sketch(task, n, whole, cells, epsilon, Fraction(0))


def _n_cells(n: int, epsilon: Fraction, n_axes: int) -> float:
    """Cells that so many records pay for."""
    return min(max(grid_size("extended", n, epsilon, n_axes, _THETA), 4.0), _MOST_CELLS)


def _grid_sketch(
    task: Task, n: int, ranges: IntArray, size: float, epsilon: Fraction, left: Fraction
) -> Sketch:
    """A noisy grid; cells that stand out, and blocks of the others that do so together."""
    low, high = ranges.T
    inner = grid_edges((high - low).tolist(), size)
    edges = [
        np.unique(np.concatenate([[0], first + edge, [last]]))
        for first, edge, last in zip(low, inner, task.shape, strict=True)
    ]
    n_cells = math.prod(len(edge) - 1 for edge in edges)
    # Of a larger grid only the cells above the threshold are released.
    dense = n_cells <= _MOST_CELLS
    threshold = _threshold(n_cells, epsilon)
    cells = measure_cells(task.points, edges, epsilon, None if dense else threshold, task.source)
    within = ((cells.lower >= low) & (cells.upper <= high)).all(axis=1)
    out = within & _standing_out(cells.counts, edges, threshold, epsilon)
    kept = cells.select(out)
    lower, upper, masses = kept.lower, kept.upper, kept.counts.astype(np.float64)
    if dense:
        blocks = _standing_blocks(cells.select(~out & within), edges, epsilon)
        lower = np.concatenate([lower, blocks[0]])
        upper = np.concatenate([upper, blocks[1]])
        masses = np.concatenate([masses, blocks[2]])
    release = Clustering(np.empty(0), None, cells, edges, epsilon)
    return Sketch.of(task, n, release, (lower, upper, masses), None, ranges, left)


def _threshold(n_cells: int, epsilon: Fraction) -> int:
    """Noise that one empty cell of a grid reaches on average."""
    return max(1, math.ceil(math.log(max(n_cells / 2, 1)) / float(epsilon)))


def _tree_sketch(
    task: Task, n: int, binned: Binned, margins: Margins, epsilon: Fraction, left: Fraction
) -> Sketch:
    """A tree that is cut by margins."""
    leaves = measure_tree(binned, margins, n, max(task.clusters), epsilon, task.source)
    release = Clustering(np.empty(0), None, None, margins.edges, None, leaves=leaves)
    filled = leaves.counts > 0
    lower, upper = (
        np.stack([edge[bins] for edge, bins in zip(margins.edges, ends[filled].T, strict=True)], 1)
        for ends in (leaves.lower, leaves.upper)
    )
    boxes = lower, upper, leaves.counts[filled]
    return Sketch.of(task, n, release, boxes, margins, margins.ranges, left)


def _standing_out(
    counts: IntArray, edges: list[IntArray], threshold: int, epsilon: Fraction
) -> BoolArray:
    """Cells that are almost surely not empty, by their own count or with their neighbours.

    In a dense grid a cell below the threshold is kept as well if the cells around it, 3 on every
    axis, stand out together. Otherwise the sparse rims of clusters would be lost.
    """
    sides = [len(edge) - 1 for edge in edges]
    if len(sides) > 3 or len(counts) != math.prod(sides):
        return counts >= threshold
    around = counts.reshape(sides)
    for axis, side in enumerate(sides):
        sums = np.concatenate([np.zeros_like(around.take([0], axis)), around.cumsum(axis)], axis)
        at = np.arange(side)
        upper, lower = np.minimum(at + 2, side), np.maximum(at - 1, 0)
        around = sums.take(upper, axis) - sums.take(lower, axis)
    noise = math.sqrt((3 ** len(sides) - 1) * discrete_laplace_variance(epsilon))
    crowded = around.ravel() >= threshold + _CROWDED * noise
    return (counts >= _ALONE * threshold) | (crowded & (counts >= _AMONG * threshold))


def _standing_blocks(
    cells: Cells, edges: list[IntArray], epsilon: Fraction
) -> tuple[IntArray, IntArray, FloatArray]:
    """Blocks of cells whose counts stand out together: sparse records far from the others.

    Small blocks first; cells of blocks that do not stand out are added to larger blocks.
    """
    noise = discrete_laplace_variance(epsilon)
    sides = np.array([len(edge) - 1 for edge in edges])
    lower, upper = [cells.lower[:0]], [cells.upper[:0]]
    counts = [np.empty(0)]
    for length in _BLOCKS:
        places = cells.places // length
        key = np.ravel_multi_index(tuple(places.T), tuple(-(-sides // length)))
        _, first, block, number = np.unique(
            key, return_index=True, return_inverse=True, return_counts=True
        )
        total = np.bincount(block, cells.counts, minlength=len(first))
        out = total > _BLOCK_STANDS_OUT * np.sqrt(number * noise)
        chosen = places[first[out]] * length
        for ends, place in ((lower, chosen), (upper, np.minimum(chosen + length, sides))):
            ends.append(np.stack([edge[at] for edge, at in zip(edges, place.T, strict=True)], 1))
        counts.append(total[out])
        cells = cells.select(~out[block])
    return np.concatenate(lower), np.concatenate(upper), np.concatenate(counts)
