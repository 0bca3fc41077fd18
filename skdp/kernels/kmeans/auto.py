"""The recommended private k-means: a noisy grid or tree, then rounds that measure residuals."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ..._types import BoolArray, FloatArray, IntArray
from ...mechanisms import discrete_laplace_variance
from ..grid import grid_size
from .assign import nearest
from .cells import Cells, grid_edges, measure_cells
from .lloyd import best_kmeans, lloyd_on_cells
from .rows import noisy_round
from .task import Clustering, Task, cluster_masses, cluster_released
from .tree import Binned, Margins, measure_margins, measure_tree

__all__ = ["auto"]

# Up to so many dimensions data are flat: cells are small, and one round is enough. Few records are
# counted in a grid then: N epsilon / k at most.
_MOST_FLAT = 3
_GRID_PAYS = 400
# Records per unit of noise that a cell of the grid should have.
_THETA = 5.0
_MOST_CELLS = 2**15
# A cell is kept from this part of the threshold on by itself, and among crowded neighbours.
_ALONE, _AMONG = 0.8, 0.3
# How far neighbours have to stand out together, in standard deviations of their noise.
_CROWDED = 2.0
# The other cells are added up in blocks of so many on every axis, and a block is kept from so
# many standard deviations on.
_BLOCKS = (2, 4, 8)
_BLOCK_STANDS_OUT = 3.0
# Budget of the grid or tree where rounds follow.
_SHARE_FLAT = Fraction(4, 5)
_SHARE = Fraction(9, 20)
# Budget of the margins, where they have so many records per unit of noise.
_MARGIN_SHARE = Fraction(2, 25)
_MARGINS_PAY = 20
# Rounds follow if N epsilon / k^2 is larger.
_ROUNDS_PAY_FLAT = 40
_ROUNDS_PAY = 10
# Points of a cloud, at least one for each box.
_CLOUD = 4096
# Residuals are clipped at a multiple of their mean L1 norm: the largest for which noise adds at
# most this part to the mean squared distance.
_REACHES = (2.0, 1.5, 1.0)
_LITTLE = 0.0005
_COUNT_SHARE = Fraction(3, 50)
# Beyond three dimensions a first round takes this part of what the tree leaves.
_FIRST_ROUND = Fraction(2, 5)
# It measures more centroids than wanted, as far as their noise allows.
_SPLIT = 6
_MOST_SPLIT = 60
_SPLIT_NOISE = 0.15
_SPLIT_STARTS = 6
# So many of the best on the means go on to the cloud.
_FINALISTS = 4


def auto(task: Task) -> Clustering:
    """The recommended algorithm: grid or tree, many starts on it, rounds of clipped residuals.

    Privacy: the number of records, then the grid, or margins and tree, then one or two rounds,
    each with its budget; how the budget is divided is decided by the first release and public
    facts. The radii to which residuals are clipped, the starts and the number of clusters are
    read from releases.
    """
    flat = task.n_axes <= _MOST_FLAT
    n = task.total()
    budget = task.parts["clustering"]
    k = max(task.clusters)
    rounds = n * float(budget) / k**2 > (_ROUNDS_PAY_FLAT if flat else _ROUNDS_PAY)
    few = n * float(budget) <= _GRID_PAYS * k
    sketch = (_grid if flat and few else _tree)(task, n, budget, rounds)
    release = sketch.release
    centroids, validity = cluster_released(task, sketch.centers, sketch.masses, greedy=True)
    counts = cluster_masses(sketch.centers, sketch.masses, centroids)
    if rounds and len(sketch.centers):
        cloud, left = sketch.cloud, sketch.left
        if not flat:
            cloud, centroids = _first_round(task, sketch, centroids, left * _FIRST_ROUND)
            left -= left * _FIRST_ROUND
        measured = _round(task, cloud, centroids, left)
        centroids, counts = measured.means, measured.counts
    return replace(release, centroids=centroids, counts=counts, validity=validity)


@dataclass(frozen=True)
class _Cloud:
    """Weighted points that stand for the records, by what has been released.

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
class _Sketch:
    """A grid or tree as it goes on to k-means.

    Attributes
    ----------
    release : Clustering
        Without centroids.
    centers : ndarray of float64, shape (m, d)
        Means of the boxes that are not empty.
    masses : ndarray of float64, shape (m,)
    cloud : _Cloud
    left : Fraction
        Budget for rounds.
    """

    release: Clustering
    centers: FloatArray
    masses: FloatArray
    cloud: _Cloud
    left: Fraction

    @classmethod
    def of(
        cls,
        task: Task,
        n: int,
        release: Clustering,
        boxes: tuple[IntArray, IntArray, FloatArray],
        margins: Margins | None,
        left: Fraction,
    ) -> _Sketch:
        """Points in boxes of codes, in proportion to their counts.

        Along an axis they lie as its margin says, or evenly.
        """
        lower, upper, masses = boxes
        each = np.maximum(np.rint(_CLOUD * masses / max(masses.sum(), 1.0)).astype(np.int64), 1)
        box = np.repeat(np.arange(len(each)), each)
        rank = np.arange(len(box)) - np.repeat(np.cumsum(each) - each, each)
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
        centers = _sums(points, np.ones(len(box)), box, len(each)) / each[:, None]
        weights = (n * masses / max(masses.sum(), 1.0) / each)[box]
        return cls(release, centers, masses, _Cloud(points, weights), left)


def _sums(values: FloatArray, weights: FloatArray, labels: IntArray, size: int) -> FloatArray:
    """Weighted sums of rows by label, (size, d)."""
    columns = [np.bincount(labels, weights * column, minlength=size) for column in values.T]
    return np.stack(columns, axis=1)


def _grid(task: Task, n: int, budget: Fraction, rounds: bool) -> _Sketch:
    """A noisy grid; cells that stand out, and blocks of the others that do so together."""
    epsilon = budget * _SHARE_FLAT if rounds else budget
    size = grid_size("extended", n, epsilon, task.n_axes, _THETA)
    edges = grid_edges(task.shape, min(max(size, 4.0), _MOST_CELLS))
    n_cells = math.prod(len(edge) - 1 for edge in edges)
    # Of a larger grid only the cells above the threshold are released.
    dense = n_cells <= _MOST_CELLS
    threshold = max(1, math.ceil(math.log(max(n_cells / 2, 1)) / float(epsilon)))
    cells = measure_cells(task.points, edges, epsilon, None if dense else threshold, task.source)
    out = _standing_out(cells.counts, edges, threshold, epsilon)
    kept = cells.select(out)
    lower, upper, masses = kept.lower, kept.upper, kept.counts.astype(np.float64)
    if dense:
        blocks = _standing_blocks(cells.select(~out), edges, epsilon)
        lower = np.concatenate([lower, blocks[0]])
        upper = np.concatenate([upper, blocks[1]])
        masses = np.concatenate([masses, blocks[2]])
    release = Clustering(np.empty(0), None, cells, edges, epsilon)
    return _Sketch.of(task, n, release, (lower, upper, masses), None, budget - epsilon)


def _tree(task: Task, n: int, budget: Fraction, rounds: bool) -> _Sketch:
    """Margins, if they stand out of their noise, and a tree that is cut by them."""
    binned = Binned.of(task.points, task.shape)
    margins = Margins.even(binned.edges)
    share = budget * _MARGIN_SHARE
    if n * float(share) > _MARGINS_PAY * task.n_axes:
        margins = measure_margins(binned, n, share, task.source)
        budget -= share
    flat = task.n_axes <= _MOST_FLAT
    epsilon = budget * (_SHARE_FLAT if flat else _SHARE) if rounds else budget
    leaves = measure_tree(binned, margins, n, epsilon, task.source)
    release = Clustering(np.empty(0), None, None, margins.edges, None, leaves=leaves)
    filled = leaves.counts > 0
    lower, upper = (
        np.stack([edge[bins] for edge, bins in zip(margins.edges, ends[filled].T, strict=True)], 1)
        for ends in (leaves.lower, leaves.upper)
    )
    boxes = lower, upper, leaves.counts[filled]
    return _Sketch.of(task, n, release, boxes, margins, budget - epsilon)


def _standing_out(
    counts: IntArray, edges: list[IntArray], threshold: int, epsilon: Fraction
) -> BoolArray:
    """Cells that are hardly empty: by their own count, or with the help of their neighbours.

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
    """Blocks of cells whose counts stand out together: sparse records far from the crowd.

    Small blocks first; cells of blocks that do not stand out go on to larger ones.
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


@dataclass(frozen=True)
class _Measured:
    """What a round tells.

    Attributes
    ----------
    cloud : _Cloud
        With the counts and means of the clusters as measured.
    means : ndarray of float64, shape (k, d)
    counts : ndarray of float64, shape (k,)
    sure : ndarray of bool, shape (k,)
        Whether the count stands out of its noise.
    """

    cloud: _Cloud
    means: FloatArray
    counts: FloatArray
    sure: BoolArray


def _first_round(
    task: Task, sketch: _Sketch, centroids: FloatArray, budget: Fraction
) -> tuple[_Cloud, FloatArray]:
    """A round with more centroids than wanted, then k-means on the cloud that it corrects.

    The means inside parts of a cluster show where the boxes were too coarse, and let starts
    compete again on better points.
    """
    k, d = centroids.shape
    n = float(sketch.cloud.weights.sum())
    affordable = int(_SPLIT_NOISE * float(budget) * n / d)
    parts = min(_SPLIT * k, len(sketch.masses), affordable, _MOST_SPLIT)
    if parts <= k or task.init is not None:
        measured = _round(task, sketch.cloud, centroids, budget)
        candidates = measured.means[None]
    else:
        starts = task.greedy_starts(sketch.centers, sketch.masses, parts, _SPLIT_STARTS)
        finer = best_kmeans(sketch.centers, sketch.masses, starts, task.shape)[0]
        measured = _round(task, sketch.cloud, finer, budget)
        candidates = centroids[None]
        means, counts = measured.means[measured.sure], measured.counts[measured.sure]
        if len(means) >= k:
            starts = np.concatenate(
                [task.greedy_starts(means, counts, k, task.n_init), centroids[None]]
            )
            found = lloyd_on_cells(means, counts, starts, task.shape)
            best = np.argsort(found[1], kind="stable")[:_FINALISTS]
            candidates = np.concatenate([candidates, found[0][best]])
    cloud = measured.cloud
    return cloud, best_kmeans(cloud.points, cloud.weights, candidates, task.shape)[0]


def _round(task: Task, cloud: _Cloud, centroids: FloatArray, budget: Fraction) -> _Measured:
    """One private round; the cloud says how far to clip and what is known of the counts."""
    k, d = centroids.shape
    n = float(cloud.weights.sum())
    frozen = np.rint(centroids).astype(np.int64)
    labels = nearest(cloud.points, frozen.astype(np.float64))
    mass: FloatArray = np.bincount(labels, cloud.weights, minlength=k).astype(np.float64)
    residual = cloud.points - frozen[labels]
    length = np.abs(residual).sum(axis=1)
    # Mean L1 norms; that of an almost empty cluster leans on all.
    prior = 0.05 * n / k
    total = np.bincount(labels, cloud.weights * length, minlength=k)
    spread: FloatArray = (total + prior * (cloud.weights @ length) / n) / (mass + prior)
    epsilon_count = budget * _COUNT_SHARE
    epsilon_sum = budget - epsilon_count
    factor = _reach(spread, mass, n, d, float(epsilon_sum))
    reach = np.clip(np.ceil(factor * spread), 1, sum(task.shape)).astype(np.int64)
    released = noisy_round(task.points, frozen, reach, epsilon_count, epsilon_sum, task.source)

    # Two views of the same count, weighted by their precision; that of the cloud is guessed.
    guess = (0.3 * mass) ** 2 + (0.01 * n / k) ** 2
    precision = 1 / released.count_variance + 1 / guess
    counts = (released.counts / released.count_variance + mass / guess) / precision
    sure = counts > 3 / np.sqrt(precision)
    size = np.maximum(counts, 1.0)
    expected = _sums(residual, cloud.weights, labels, k) / np.maximum(mass, 1e-9)[:, None]
    steps = np.where(sure[:, None], released.sums / size[:, None] - expected, 0.0)
    steps = _pooled(steps, released.sum_variances / size**2, sure)

    top = np.array(task.shape) - 1.0
    moved = frozen + expected + steps
    points = np.clip(cloud.points + steps[labels], 0.0, top)
    scale = np.where(sure, counts / np.maximum(mass, 1e-9), 1.0)[labels]
    means = np.clip(moved, 0.0, top)
    return _Measured(_Cloud(points, cloud.weights * scale), means, counts, sure)


def _reach(spread: FloatArray, mass: FloatArray, n: float, d: int, epsilon: float) -> float:
    """How far to clip, in mean L1 norms: far, unless noise would matter."""
    size = np.maximum(mass, 0.05 * n / len(mass))
    noise = 2 * d**2 * float(mass @ (spread / (epsilon * size)) ** 2)
    fitting = [reach for reach in _REACHES if reach**2 * noise <= _LITTLE * (mass @ spread**2)]
    return fitting[0] if fitting else _REACHES[-1]


def _pooled(steps: FloatArray, noise: FloatArray, sure: BoolArray) -> FloatArray:
    """Steps shrunk by their common spread: of many short ones the noisiest shrink most.

    The spread beyond the noise is estimated by the method of moments, weighted by precision and
    repeated, because the weights depend on it.
    """
    squares = (steps**2).mean(axis=1)
    spread = float(np.median(squares)) + 1e-9
    for _ in range(8):
        weights = sure / (spread + noise) ** 2
        if not weights.any():
            break
        spread = max(float(weights @ (squares - noise) / weights.sum()), 0.0) + 1e-9
    return steps * (spread / (spread + noise))[:, None]
