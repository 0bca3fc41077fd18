r"""Kernels of private k-means on integer points: noisy grids, k-means on them, noisy rounds.

Points are rows of integer codes in a box ``shape``; all axes have (nearly) the same unit, so that
Euclidean distance is measured in codes. Coordinates are below 2**21 and dimensions below 2**9:
squared distances to integer centroids stay below 2**53, so that float64 computes them exactly in
any order. That matters for privacy, not only for beauty: where a record is counted depends on
that record and on the frozen centroids alone, never on how many rows the matrix has.

Privacy (neighbours add or remove one record). *Grids*: a record lies in one cell, so noise of
sensitivity 1 in every cell, empty ones included, costs epsilon once; dropping noisy counts below a
public threshold is post-processing. *Rounds*: all assignments of a round use the same frozen
centroids, so a record is counted in one cluster; it adds 1 to one count, and to the sums of the
same cluster integers whose absolute values sum to at most a public bound. Empty clusters get the
same noise. Rounds compose sequentially. Everything computed from what has been released is free.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from .._random import NoiseSource
from ..mechanisms import discrete_laplace, discrete_laplace_variance
from ..rows import CodedRows
from .kmeans_rows import _BLOCK, Points, residual_sums

__all__ = [
    "Cells",
    "Points",
    "Round",
    "best_kmeans",
    "count_points",
    "cover",
    "even_edges",
    "full_grid_edges",
    "grid_edges",
    "kmeans_plus_plus",
    "lloyd_on_cells",
    "measure_cells",
    "nearest",
    "nearest_distances",
    "noisy_round",
    "ray_turi",
    "residual_sums",
    "sphere_packing",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# Cells whose noise is drawn at once.
_CELLS_AT_ONCE = 1 << 18
# K-means with many starts: iterations before the worse half is given up, and how many run on.
_TRIAL_ITERATIONS = 4
_FINALISTS = 4


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

    def select(self, keep: NDArray[np.bool_]) -> Cells:
        """Some of the cells."""
        return Cells(self.lower[keep], self.upper[keep], self.places[keep], self.counts[keep])


# -- assignment


def nearest(points: NDArray, centroids: FloatArray) -> NDArray[np.int64]:
    """Index of the nearest centroid of every row, the first among equals.

    Parameters
    ----------
    points : ndarray of shape (n, d)
    centroids : ndarray of shape (k, d)
        With integer points and integer centroids the result is exact.
    """
    labels = np.empty(len(points), dtype=np.int64)
    k = len(centroids)
    weights = -2.0 * centroids.T
    norms = (centroids**2).sum(axis=1)
    step = max(1, _BLOCK // (k + points.shape[1]))
    for first in range(0, len(points), step):
        block = points[first : first + step].astype(np.float64)
        labels[first : first + step] = np.argmin(block @ weights + norms, axis=1)
    return labels


def nearest_distances(points: NDArray[np.int32], candidates: NDArray[np.int64]) -> IntArray:
    """Sum over the points of the squared distance to the nearest centroid of each candidate set.

    Parameters
    ----------
    points : ndarray of int32, shape (n, d)
    candidates : ndarray of int64, shape (s, k, d)

    Returns
    -------
    ndarray of int64, shape (s,)
        Exact.
    """
    n_sets, k, d = candidates.shape
    flat = candidates.reshape(n_sets * k, d).astype(np.float64)
    norms = (flat**2).sum(axis=1)
    totals = np.zeros(n_sets, dtype=np.int64)
    step = max(1, _BLOCK // (n_sets * k))
    for first in range(0, len(points), step):
        block = points[first : first + step].astype(np.float64)
        table = (norms - 2.0 * block @ flat.T).reshape(len(block), n_sets, k)
        least = table.min(axis=2) + (block**2).sum(axis=1)[:, None]
        totals += least.astype(np.int64).sum(axis=0)
    return totals


# -- grids


def even_edges(size: int, parts: int) -> IntArray:
    """First codes of parts of an axis, of equal width up to rounding, and the end."""
    return np.arange(parts + 1, dtype=np.int64) * size // parts


def grid_edges(shape: Sequence[int], n_cells: float) -> list[IntArray]:
    """Edges of a grid of about cubic cells, at least ``n_cells`` of them where codes suffice.

    Parameters
    ----------
    shape : sequence of int
        Codes of each axis.
    n_cells : float
        With axes of equal length each has ceil(n_cells^(1/d)) parts.
    """
    longest = max(shape)
    low, high = 1, longest

    def sides(parts: int) -> list[int]:
        return [min(size, max(1, -(-parts * size // longest))) for size in shape]

    while low < high:
        middle = (low + high) // 2
        if math.prod(sides(middle)) >= n_cells:
            high = middle
        else:
            low = middle + 1
    return [even_edges(size, side) for size, side in zip(shape, sides(low), strict=True)]


def full_grid_edges(shape: Sequence[int], n_cells: float) -> list[IntArray]:
    """Edges of a grid of at least ``n_cells`` cells, cut as the dissertation's authors do.

    Axis by axis, those with the fewest codes first: with M cells still wanted of the j axes left,
    ceil(M^(1/j)) parts, and M divided by them. Later axes may stay whole, so that the number of
    cells stays close to ``n_cells`` in any dimension.
    """
    edges: list[IntArray] = [np.empty(0, dtype=np.int64)] * len(shape)
    wanted = max(1.0, n_cells)
    for done, axis in enumerate(np.argsort(shape, kind="stable")):
        size = shape[axis]
        parts = max(1, min(size, math.ceil(wanted ** (1 / (len(shape) - done)) - 1e-9)))
        edges[axis] = even_edges(size, parts)
        wanted = max(1.0, wanted / parts)
    return edges


def count_points(points: Points) -> int:
    """Exact number of points: private."""
    if isinstance(points, CodedRows):
        return int(points.count(())[1].sum())
    return len(points)


def _count_cells(points: Points, edges: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Numbers of the occupied cells of a grid, ascending, and their exact counts."""
    sides = [len(edge) - 1 for edge in edges]
    if isinstance(points, CodedRows):
        # All grids here have parts of equal width, up to the rounding that `cells` shares.
        return points.cells(sides)
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

    Noise is drawn for every cell of the grid, a block of cells at a time: the law of the result
    is exactly that of the full noisy grid with the small counts removed, and no more than a block
    is held, however few cells remain.

    Parameters
    ----------
    points : ndarray of int32, shape (n, d), or CodedRows
    edges : list of ndarray of int64
        First codes of the parts of each axis, of equal width, and the end.
    epsilon : Fraction
        Cost: a record is in one cell.
    threshold : int or None
        Public, or computed from earlier releases.
    source : NoiseSource
    """
    sides = [len(edge) - 1 for edge in edges]
    total = math.prod(sides)
    present, occupied = _count_cells(points, edges)
    if total <= _CELLS_AT_ONCE:
        exact = np.zeros(total, dtype=np.int64)
        exact[present] = occupied
        noisy = discrete_laplace(exact, epsilon, random_state=source)
        kept = np.arange(total) if threshold is None else np.flatnonzero(noisy >= threshold)
        counts = noisy[kept]
    else:
        kept_blocks, count_blocks = [], []
        for first in range(0, total, _CELLS_AT_ONCE):
            stop = min(first + _CELLS_AT_ONCE, total)
            exact = np.zeros(stop - first, dtype=np.int64)
            start, end = np.searchsorted(present, [first, stop])
            exact[present[start:end] - first] = occupied[start:end]
            noisy = discrete_laplace(exact, epsilon, random_state=source)
            here = (
                np.arange(len(noisy)) if threshold is None else np.flatnonzero(noisy >= threshold)
            )
            kept_blocks.append(here + first)
            count_blocks.append(noisy[here])
        kept, counts = np.concatenate(kept_blocks), np.concatenate(count_blocks)
    places = np.empty((len(kept), len(sides)), dtype=np.int64)
    rest = kept
    for axis in range(len(sides) - 1, -1, -1):
        rest, places[:, axis] = np.divmod(rest, sides[axis])
    lower = np.stack([edge[places[:, axis]] for axis, edge in enumerate(edges)], axis=1)
    upper = np.stack([edge[places[:, axis] + 1] for axis, edge in enumerate(edges)], axis=1)
    return Cells(lower, upper, places, counts)


# -- k-means on what has been released: free


def kmeans_plus_plus(
    points: FloatArray, weights: FloatArray, k: int, n_starts: int, generator: np.random.Generator
) -> FloatArray:
    """Starts by greedy k-means++ on weighted points, (n_starts, k, d).

    Parameters
    ----------
    points : ndarray of float64, shape (m, d)
    weights : ndarray of float64, shape (m,)
        Negative ones count as zero; if none is positive all points weigh the same.
    k, n_starts : int
    generator : numpy.random.Generator
    """
    mass = np.maximum(weights, 0.0)
    if not mass.any():
        mass = np.ones(len(points))
    norms = (points**2).sum(axis=1)
    trials = 2 + int(math.log(k))
    chosen = np.empty((n_starts, k), dtype=np.int64)

    def draw(cumulated: FloatArray, size: int) -> NDArray[np.int64]:
        at = generator.random(size) * cumulated[-1]
        return np.minimum(np.searchsorted(cumulated, at, side="right"), len(points) - 1)

    def distances(candidates: NDArray[np.int64]) -> FloatArray:
        squared = norms[candidates][:, None] - 2 * points[candidates] @ points.T + norms
        return np.maximum(squared, 0.0)

    cumulated = np.cumsum(mass)
    for start in range(n_starts):
        chosen[start, 0] = draw(cumulated, 1)[0]
        closest = distances(chosen[start, :1])[0]
        for j in range(1, k):
            potential = np.cumsum(mass * closest)
            candidates = draw(potential if potential[-1] > 0 else cumulated, trials)
            reached = np.minimum(distances(candidates), closest)
            best = int(np.argmin(reached @ mass))
            chosen[start, j], closest = candidates[best], reached[best]
    return points[chosen]


def sphere_packing(
    shape: Sequence[int], k: int, n_starts: int, generator: np.random.Generator
) -> FloatArray:
    """Starts spread over the box by sphere packing, blind to the data, (n_starts, k, d).

    Uniform points at least a away from every side of the box and 2a away from each other, for the
    largest a for which few enough tries fail, found by bisection. Failures are counted, and the
    last complete set is kept.

    Parameters
    ----------
    shape : sequence of int
    k, n_starts : int
    generator : numpy.random.Generator

    References
    ----------
    D. Su, dissertation, Purdue 2016, algorithm 12.
    """
    size = np.array(shape, dtype=np.float64)
    most_failures = 40
    starts = np.empty((n_starts, k, len(size)))
    for start in range(n_starts):
        low, high = 0.0, float(size.max()) / 2
        found = generator.random((k, len(size))) * size
        for _ in range(12):
            radius = (low + high) / 2
            margin = np.minimum(radius, size / 2)
            points = np.empty((k, len(size)))
            placed = failures = 0
            while placed < k and failures <= most_failures:
                tries = margin + generator.random((16, len(size))) * (size - 2 * margin)
                for candidate in tries:
                    apart = ((points[:placed] - candidate) ** 2).sum(axis=1)
                    if placed and apart.min() < 4 * radius**2:
                        failures += 1
                        if failures > most_failures:
                            break
                        continue
                    points[placed] = candidate
                    placed += 1
                    if placed == k:
                        break
            if placed == k:
                low, found = radius, points
            else:
                high = radius
        starts[start] = found
    return starts - 0.5


def lloyd_on_cells(
    points: FloatArray,
    weights: FloatArray,
    starts: FloatArray,
    shape: Sequence[int],
    max_iter: int = 40,
) -> tuple[FloatArray, FloatArray]:
    """Lloyd's algorithm on signed weighted points from several starts at once.

    Parameters
    ----------
    points : ndarray of float64, shape (m, d)
    weights : ndarray of float64, shape (m,)
        With negative weights the iteration need not converge; it ends after ``max_iter``. A
        cluster whose weight is not positive keeps its centroid.
    starts : ndarray of float64, shape (s, k, d)
    shape : sequence of int
        Centroids are projected into the box.
    max_iter : int, default=40

    Returns
    -------
    centroids : ndarray of float64, shape (s, k, d)
        The last of each start.
    costs : ndarray of float64, shape (s,)
        Weighted sums of squared distances to them.
    """
    n_starts, k, d = starts.shape
    centroids = starts.copy()
    top = np.array(shape, dtype=np.float64) - 1
    norms = (points**2).sum(axis=1)
    costs = np.empty(n_starts)
    step = max(1, (_BLOCK * 4) // max(1, len(points) * k))
    for first in range(0, n_starts, step):
        active = np.arange(first, min(first + step, n_starts))
        for iteration in range(max_iter + 1):
            current = centroids[active]
            labels, squared = _label_all(points, norms, current)
            costs[active] = weights @ squared
            if iteration == max_iter:
                break
            flat = (labels + np.arange(len(active)) * k).ravel()
            size = len(active) * k
            tiled = np.repeat(weights, len(active))
            mass = np.bincount(flat, weights=tiled, minlength=size)
            means = current.reshape(size, d).copy()
            good = mass > 0
            for axis in range(d):
                sums = np.bincount(
                    flat, weights=np.repeat(weights * points[:, axis], len(active)), minlength=size
                )
                means[good, axis] = sums[good] / mass[good]
            moved = np.clip(means, 0.0, top).reshape(len(active), k, d)
            still = np.abs(moved - current).max(axis=(1, 2)) > 1e-6 * top.max() + 1e-9
            centroids[active] = moved
            active = active[still]
            if not len(active):
                break
    return centroids, costs


def _label_all(
    points: FloatArray, norms: FloatArray, centroids: FloatArray
) -> tuple[NDArray[np.int64], FloatArray]:
    """Nearest centroid and squared distance to it, for every point and start: (m, s) each."""
    n_starts, k, d = centroids.shape
    flat = centroids.reshape(n_starts * k, d)
    labels = np.empty((len(points), n_starts), dtype=np.int64)
    squared = np.empty((len(points), n_starts))
    offsets = (flat**2).sum(axis=1)
    step = max(1, _BLOCK // (n_starts * k))
    for first in range(0, len(points), step):
        block = points[first : first + step]
        table = (offsets - 2 * block @ flat.T).reshape(len(block), n_starts, k)
        where = table.argmin(axis=2)
        labels[first : first + step] = where
        least = np.take_along_axis(table, where[:, :, None], axis=2)[:, :, 0]
        squared[first : first + step] = np.maximum(least + norms[first : first + step, None], 0.0)
    return labels, squared


def best_kmeans(
    points: FloatArray, weights: FloatArray, starts: FloatArray, shape: Sequence[int]
) -> tuple[FloatArray, float]:
    """Centroids of the best start on released points, and their cost.

    Many starts take turns: a few iterations of all, then the better half goes on, until at most
    ``_FINALISTS`` are left, which run to the end.
    """
    centroids = starts
    while len(centroids) > _FINALISTS:
        centroids, costs = lloyd_on_cells(points, weights, centroids, shape, _TRIAL_ITERATIONS)
        centroids = centroids[np.argsort(costs, kind="stable")[: (len(centroids) + 1) // 2]]
    centroids, costs = lloyd_on_cells(points, weights, centroids, shape)
    best = int(np.argmin(costs))
    return centroids[best], float(costs[best])


def ray_turi(points: FloatArray, weights: FloatArray, centroids: FloatArray) -> float:
    """Validity of Ray and Turi: mean squared distance over the least squared gap of centroids.

    Smaller is better; infinite for coinciding centroids or without positive weight.
    """
    total = weights.sum()
    gaps = ((centroids[:, None] - centroids) ** 2).sum(axis=2)[np.triu_indices(len(centroids), 1)]
    if total <= 0 or not gaps.size or gaps.min() <= 0:
        return math.inf
    norms = (points**2).sum(axis=1)
    _, squared = _label_all(points, norms, centroids[None])
    return max(float(weights @ squared[:, 0]), 0.0) / float(total) / float(gaps.min())


# -- rounds on the private points


@dataclass(frozen=True)
class Round:
    """What one private round releases.

    Attributes
    ----------
    counts : ndarray of int64, shape (k,)
    sums : ndarray of int64, shape (k, d)
        Noisy sums of the clipped differences to the frozen centroids.
    count_variance : float
    sum_variances : ndarray of float64, shape (k,)
        Variance of the noise of each sum of a cluster.
    """

    counts: IntArray
    sums: IntArray
    count_variance: float
    sum_variances: FloatArray


def noisy_round(
    points: Points,
    centroids: IntArray,
    reach: IntArray,
    epsilon_count: Fraction,
    epsilon_sum: Fraction,
    source: NoiseSource,
) -> Round:
    """Release how many points each centroid has, and the sums of their clipped residuals.

    Privacy. With the centroids frozen, a record belongs to one cluster j. It changes one count by
    1 (``epsilon_count``), and the sums of cluster j by an integer vector whose absolute values
    sum to at most reach[j]: a longer residual is shrunk toward zero in integer arithmetic, record
    by record (``epsilon_sum``). Clusters are disjoint, so the cost does not grow with k.

    Parameters
    ----------
    points : ndarray of int32, shape (n, d), or CodedRows
    centroids : ndarray of int64, shape (k, d)
        Released earlier, or public.
    reach : ndarray of int64, shape (k,)
        At least 1: largest L1 norm of a residual, computed from releases.
    epsilon_count, epsilon_sum : Fraction
    source : NoiseSource
    """
    k = len(centroids)
    counts, sums = residual_sums(points, centroids, reach)
    noisy_counts = discrete_laplace(counts, epsilon_count, random_state=source)
    noisy_sums = np.empty_like(sums)
    variances = np.empty(k)
    for j in range(k):
        sensitivity = int(reach[j])
        noisy_sums[j] = discrete_laplace(sums[j], epsilon_sum, sensitivity, random_state=source)
        variances[j] = discrete_laplace_variance(epsilon_sum, sensitivity)
    return Round(noisy_counts, noisy_sums, discrete_laplace_variance(epsilon_count), variances)


# -- a partition of the whole box, for the synopsis


def cover(places: IntArray, sides: Sequence[int]) -> tuple[IntArray, IntArray, IntArray]:
    """Complete some cells of a grid to a partition of it into boxes.

    Gaps are closed axis by axis: between two neighbouring values that cells with equal earlier
    places have on an axis lies one box. There are at most 2d + 1 boxes for a cell, plus one.

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
