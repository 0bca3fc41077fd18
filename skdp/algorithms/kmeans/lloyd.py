"""What algorithms of k-means share: k-means on released points, and a private round.

`Task` is what an algorithm is given, `Clustering` what it releases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..._random import NoiseSource
from ..._validation import BoolArray, CodeArray, FloatArray, IntArray, batches
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from ...mechanisms.laplace import max_norm_noise, max_norm_variance
from .sketch import Cells, Leaves

# --- nearest centroids of points, in blocks that fit into a cache

# Numbers in one block of a distance matrix: fits into a core's cache.
BLOCK = 1 << 19


def blocks(n: int, width: int) -> list[slice]:
    """Blocks of n rows, each of which stands for ``width`` numbers."""
    return batches(n, max(1, BLOCK // width))


def nearest(points: NDArray, centroids: FloatArray) -> IntArray:
    """Index of the nearest centroid of every row, the first among equals.

    Parameters
    ----------
    points : ndarray of shape (n, d)
    centroids : ndarray of shape (k, d)
        With integer points and integer centroids the result is exact.
    """
    labels = np.empty(len(points), dtype=np.int64)
    weights = -2.0 * centroids.T
    norms = (centroids**2).sum(axis=1)
    for block in blocks(len(points), sum(centroids.shape)):
        labels[block] = np.argmin(points[block].astype(np.float64) @ weights + norms, axis=1)
    return labels


def nearest_distances(points: CodeArray, candidates: IntArray) -> IntArray:
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
    for block in blocks(len(points), n_sets * k):
        rows = points[block].astype(np.float64)
        table = (norms - 2.0 * rows @ flat.T).reshape(len(rows), n_sets, k)
        least = table.min(axis=2) + (rows**2).sum(axis=1)[:, None]
        totals += least.astype(np.int64).sum(axis=0)
    return totals


def _nearest_of_each(
    points: FloatArray, norms: FloatArray, centroids: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Nearest centroid and squared distance to it, for every point and start: (m, s) each."""
    n_starts, k, d = centroids.shape
    flat = centroids.reshape(n_starts * k, d)
    labels = np.empty((len(points), n_starts), dtype=np.int64)
    squared = np.empty((len(points), n_starts))
    offsets = (flat**2).sum(axis=1)
    for block in blocks(len(points), n_starts * k):
        table = (offsets - 2 * points[block] @ flat.T).reshape(-1, n_starts, k)
        labels[block] = table.argmin(axis=2)
        least = np.take_along_axis(table, labels[block][:, :, None], axis=2)[:, :, 0]
        squared[block] = np.maximum(least + norms[block, None], 0.0)
    return labels, squared


# --- starting centroids of k-means: greedy k-means++, and sphere packing without data

# Sphere packing: steps of the search for the radius, and failed tries allowed for one radius.
_BISECTIONS = 12
_MOST_FAILURES = 40


def kmeans_plus_plus(
    points: FloatArray, weights: FloatArray, k: int, n_starts: int, generator: np.random.Generator
) -> FloatArray:
    """Starts by greedy k-means++ on weighted points, (n_starts, k, d).

    Parameters
    ----------
    points : ndarray of float64, shape (m, d)
    weights : ndarray of float64, shape (m,)
        Negative ones count as zero; if none is positive, all points have equal weight.
    k, n_starts : int
    generator : numpy.random.Generator
    """
    mass = np.maximum(weights, 0.0)
    if not mass.any():
        mass = np.ones(len(points))
    norms = (points**2).sum(axis=1)
    trials = 2 + int(math.log(k))
    chosen = np.empty((n_starts, k), dtype=np.int64)

    def draw(cumulated: FloatArray, size: int) -> IntArray:
        at = generator.random(size) * cumulated[-1]
        return np.minimum(np.searchsorted(cumulated, at, side="right"), len(points) - 1)

    def distances(candidates: IntArray) -> FloatArray:
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
    """Starts spread over the box by sphere packing, without any data, (n_starts, k, d).

    Uniform points at least a away from every side of the box and 2a away from each other, for the
    largest a for which few enough tries fail, found by bisection. The last complete set is kept.

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
    starts = np.empty((n_starts, k, len(size)))
    for start in range(n_starts):
        low, high = 0.0, float(size.max()) / 2
        found = generator.random((k, len(size))) * size
        for _ in range(_BISECTIONS):
            radius = (low + high) / 2
            packed = _packed(size, k, radius, generator)
            if packed is None:
                high = radius
            else:
                low, found = radius, packed
        starts[start] = found
    return starts - 0.5


def _packed(
    size: FloatArray, k: int, radius: float, generator: np.random.Generator
) -> FloatArray | None:
    """Random points that keep their distances for one radius; None if too many tries fail."""
    margin = np.minimum(radius, size / 2)
    points = np.empty((k, len(size)))
    placed = failures = 0
    while True:
        for candidate in margin + generator.random((16, len(size))) * (size - 2 * margin):
            apart = ((points[:placed] - candidate) ** 2).sum(axis=1)
            if placed and apart.min() < 4 * radius**2:
                failures += 1
                if failures > _MOST_FAILURES:
                    return None
                continue
            points[placed] = candidate
            placed += 1
            if placed == k:
                return points


# --- k-means with many starts

# K-means with many starts: iterations before the worse half is dropped, and how many run to the
# end.
_TRIAL_ITERATIONS = 4
_FINALISTS = 4


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
    n_starts, k, _ = starts.shape
    centroids = starts.copy()
    top = np.array(shape, dtype=np.float64) - 1
    norms = (points**2).sum(axis=1)
    costs = np.empty(n_starts)
    for some in batches(n_starts, max(1, (BLOCK * 4) // max(1, len(points) * k))):
        active = np.arange(some.start, some.stop)
        for iteration in range(max_iter + 1):
            current = centroids[active]
            labels, squared = _nearest_of_each(points, norms, current)
            costs[active] = weights @ squared
            if iteration == max_iter:
                break
            means = _means(points, weights, labels, current)
            moved = np.clip(means, 0.0, top)
            still = np.abs(moved - current).max(axis=(1, 2)) > 1e-6 * top.max() + 1e-9
            centroids[active] = moved
            active = active[still]
            if not len(active):
                break
    return centroids, costs


def _means(
    points: FloatArray, weights: FloatArray, labels: IntArray, current: FloatArray
) -> FloatArray:
    """Weighted means of the clusters of each start, (s, k, d); without weight, ``current``.

    ``labels``, (m, s), is the cluster of each point for each start.
    """
    n_starts, k, d = current.shape
    size = n_starts * k
    flat = (labels + np.arange(n_starts) * k).ravel()
    mass = np.bincount(flat, weights=np.repeat(weights, n_starts), minlength=size)
    means = current.reshape(size, d).copy()
    good = mass > 0
    for axis in range(d):
        sums = np.bincount(
            flat, weights=np.repeat(weights * points[:, axis], n_starts), minlength=size
        )
        means[good, axis] = sums[good] / mass[good]
    return means.reshape(n_starts, k, d)


def best_kmeans(
    points: FloatArray, weights: FloatArray, starts: FloatArray, shape: Sequence[int]
) -> tuple[FloatArray, float]:
    """Centroids of the best start on released points, and their cost.

    All starts run for a few iterations, then the better half continues, and so on, until at most
    ``_FINALISTS`` are left, which run to the end.
    """
    centroids = starts
    while len(centroids) > _FINALISTS:
        centroids, costs = lloyd_on_cells(points, weights, centroids, shape, _TRIAL_ITERATIONS)
        centroids = centroids[np.argsort(costs, kind="stable")[: (len(centroids) + 1) // 2]]
    centroids, costs = lloyd_on_cells(points, weights, centroids, shape)
    best = int(np.argmin(costs))
    return centroids[best], float(costs[best])


# A further cluster must lower the squared distances by more than it does in evenly spread points,
# where they fall with k to the power of -2/d: by this much in the exponent.
_CLUSTERED = 0.15


def validity(points: FloatArray, weights: FloatArray, centroids: FloatArray) -> float:
    """Mean squared distance to the nearest centroid, times k to the power of 2/d + 0.15.

    In units of that to the mean; smaller is better; infinite without positive weight, or without
    distances.
    """
    total = weights.sum()
    if total <= 0:
        return math.inf
    norms = (points**2).sum(axis=1)
    middle = (weights @ points / total)[None]
    within, all_of_them = (
        float(weights @ _nearest_of_each(points, norms, each[None])[1][:, 0])
        for each in (centroids, middle)
    )
    if not 0 < within < all_of_them:
        return math.inf
    k, d = centroids.shape
    return within / all_of_them * float(k ** (2 / d + _CLUSTERED))


def ray_turi(points: FloatArray, weights: FloatArray, centroids: FloatArray) -> float:
    """Validity of Ray and Turi: mean squared distance over the least squared gap of centroids.

    Smaller is better; infinite for coinciding centroids or without positive weight.
    """
    total = weights.sum()
    gaps = ((centroids[:, None] - centroids) ** 2).sum(axis=2)[np.triu_indices(len(centroids), 1)]
    if total <= 0 or not gaps.size or gaps.min() <= 0:
        return math.inf
    norms = (points**2).sum(axis=1)
    _, squared = _nearest_of_each(points, norms, centroids[None])
    return max(float(weights @ squared[:, 0]), 0.0) / float(total) / float(gaps.min())


# ------------------------------------------------------------------------------------------------
# Noisy counts and sums of clipped residuals: all that private k-means reads of the rows.
#
def residual_sums(
    points: IntArray | CodeArray,
    centroids: IntArray,
    reach: IntArray | None,
    labels: IntArray | None = None,
) -> tuple[IntArray, IntArray]:
    """Exact number of points of each centroid, and sums of their differences to it: private.

    Parameters
    ----------
    points : ndarray of int, shape (n, d)
    centroids : ndarray of int64, shape (k, d)
    reach : ndarray of int64, shape (k,), or None
        Largest L1 norm of a difference: a longer one is shrunk, toward zero on each axis. None
        shrinks none.
    labels : ndarray of int64, shape (n,), default=None
        Centroid of each point; None: the nearest.

    Returns
    -------
    counts : ndarray of int64, shape (k,)
    sums : ndarray of int64, shape (k, d)
    """
    k, d = centroids.shape
    counts = np.zeros(k, dtype=np.int64)
    sums = np.zeros((k, d), dtype=np.int64)
    for block in blocks(len(points), k + 2 * d):
        rows = points[block]
        own = nearest(rows, centroids.astype(np.float64)) if labels is None else labels[block]
        residual = rows - centroids[own]
        if reach is not None:
            clipped(residual, np.abs(residual).sum(axis=1), reach[own])
        counts += np.bincount(own, minlength=k)
        for axis in range(d):
            # Exact in floats: partial sums are integers below 2**53.
            added = np.bincount(own, weights=residual[:, axis], minlength=k)
            sums[:, axis] += added.astype(np.int64)
    return counts, sums


def clipped(residual: IntArray, length: IntArray, limit: IntArray) -> None:
    """Shrink rows, in place, whose L1 norm ``length`` is above their limit."""
    far = np.flatnonzero(length > limit)
    # Toward zero, so that the sum of absolute values cannot exceed the limit.
    shrunk = np.abs(residual[far]) * limit[far, None] // length[far, None]
    residual[far] = np.sign(residual[far]) * shrunk


@dataclass(frozen=True)
class Round:
    """The release of one private round.

    Attributes
    ----------
    counts : ndarray of int64, shape (k,)
    sums : ndarray of float64, shape (k, d)
        Noisy sums of the clipped differences to the frozen centroids.
    count_variance : float
    sum_variances : ndarray of float64, shape (k,)
        Variance of the noise of the sums of a cluster, in the mean over the axes.
    """

    counts: IntArray
    sums: FloatArray
    count_variance: float
    sum_variances: FloatArray

    def averaged(self, guessed: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Counts averaged with guessed ones, by precision, and whether they exceed their noise.

        The variance of what was guessed is a guess itself.
        """
        guess = (0.3 * guessed) ** 2 + (0.01 * guessed.mean()) ** 2
        precision = 1 / self.count_variance + 1 / guess
        counts = (self.counts / self.count_variance + guessed / guess) / precision
        return counts, counts > 3 / np.sqrt(precision)


def noisy_round(
    points: IntArray | CodeArray,
    centroids: IntArray,
    reach: IntArray,
    epsilon_count: Fraction,
    epsilon_sum: Fraction,
    source: NoiseSource,
    labels: IntArray | None = None,
    ends: IntArray | None = None,
) -> Round:
    """Release how many points each centroid has, and the sums of their clipped residuals.

    Privacy. With centroids and labels frozen, a record belongs to one cluster j. It changes one
    count by 1 (``epsilon_count``), and the sums of cluster j by an integer vector whose absolute
    values sum to at most reach[j]: a longer residual is shrunk toward zero in integer arithmetic,
    record by record (``epsilon_sum``). Clusters are disjoint, so the cost does not grow with k.
    Where noise of the largest change is smaller, by public and released numbers, nothing is
    clipped: with all axes scaled to one width by whole numbers, no sum changes by more than it.

    Parameters
    ----------
    points : ndarray of int, shape (n, d)
    centroids : ndarray of int64, shape (k, d)
        Released earlier, or public.
    reach : ndarray of int64, shape (k,)
        At least 1: largest L1 norm of a residual, computed from releases.
    epsilon_count, epsilon_sum : Fraction
    source : NoiseSource
    labels : as for `residual_sums`
        A function of a record and of what was released before.
    ends : ndarray of int64, shape (2, d), default=None
        Least and largest coordinates of points: public.
    """
    k, d = centroids.shape
    variances = np.array([discrete_laplace_variance(epsilon_sum, int(each)) for each in reach])
    scale, width = np.ones((k, d), dtype=np.int64), np.zeros(k, dtype=np.int64)
    if ends is not None:
        farthest = np.maximum(np.maximum(centroids - ends[0], ends[1] - centroids), 1)
        widest = farthest.max(axis=1, keepdims=True)
        scaled = widest // farthest
        of_cube = np.array([max_norm_variance(d, epsilon_sum, int(each)) for each in widest[:, 0]])
        of_cube *= (1 / scaled**2).mean(axis=1)
        cubes = of_cube < variances
        scale[cubes], width = scaled[cubes], np.where(cubes, widest[:, 0], 0)
        reach = np.where(cubes, farthest.sum(axis=1), reach)
        variances = np.minimum(of_cube, variances)
    counts, sums = residual_sums(points, centroids, reach, labels)
    noisy_counts = discrete_laplace(counts, epsilon_count, random_state=source)
    noisy_sums = np.empty((k, d))
    for j in range(k):
        add, most = (max_norm_noise, width[j]) if width[j] else (discrete_laplace, reach[j])
        noisy_sums[j] = add(sums[j] * scale[j], epsilon_sum, int(most), random_state=source)
    noisy_sums /= scale
    return Round(noisy_counts, noisy_sums, discrete_laplace_variance(epsilon_count), variances)


# ------------------------------------------------------------------------------------------------
# What an algorithm is given and what it releases, and the best centroids on released points.


# More clusters than this get no starts where there are fewer points.
_MANY = 500


@dataclass(frozen=True)
class Task:
    """Private points, and the public parameters of the clustering.

    Attributes
    ----------
    points : ndarray of int, shape (n, d)
        Codes below ``shape``: private. They may lie in a file.
    shape : tuple of int
    clusters : tuple of int
        Numbers of clusters to choose from, ascending.
    parts : mapping of str to Fraction
        The budget, by name.
    n_records : int or None
        Public number of records, or None.
    n_init : int
        Starts on released points.
    n_rounds : int or None
        Rounds of "lloyd", "lloyd-improved" and "genetic"; None for those of the algorithm.
    init : ndarray of float64, shape (k, d), or None
        Public starting centroids in codes, instead of drawn ones.
    source : NoiseSource
        Source of the noise, and of all other secret randomness.
    generator : numpy.random.Generator
        Generator for post-processing, and for starts.
    theta : float
        Records times epsilon for one cell of a grid.
    n_blocks : int or None
        Blocks of sample and aggregate, or None.
    progress : callable
        Is told, as text, which step begins, in numbers that are public or released.
    """

    points: CodeArray
    shape: tuple[int, ...]
    clusters: tuple[int, ...]
    parts: Mapping[str, Fraction]
    n_records: int | None
    n_init: int
    n_rounds: int | None
    init: FloatArray | None
    source: NoiseSource
    generator: np.random.Generator
    theta: float = 10.0
    n_blocks: int | None = None
    progress: Callable[[str], None] = lambda text: None

    @property
    def n_axes(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def measure_total(self) -> int:
        """Number of records, at least 1: the public one, or a noisy one.

        Each call without a public number spends the part "records": an algorithm calls it once.
        """
        if self.n_records is not None:
            return max(1, self.n_records)
        epsilon = self.parts["records"]
        return max(1, int(discrete_laplace(len(self.points), epsilon, random_state=self.source)))

    @property
    def total_variance(self) -> float:
        """Variance of the number of records that `measure_total` gives."""
        part = self.parts.get("records")
        return discrete_laplace_variance(part) if part else 0.0

    def starts(self, k: int) -> FloatArray:
        """Starts that do not look at any data, (n_init, k, d)."""
        if self.init is not None:
            return self.init[None]
        return sphere_packing(self.shape, k, self.n_init, self.generator)

    def greedy_starts(
        self, points: FloatArray, weights: FloatArray, k: int, n: int, ranges: IntArray
    ) -> FloatArray:
        """Starts on released points: two thirds by k-means++, one third spread over ranges."""
        if self.init is not None:
            return self.init[None]
        greedy = n - n // 3
        starts = kmeans_plus_plus(points, weights, k, greedy, self.generator)
        if greedy < n:
            low, high = ranges.T
            spread = sphere_packing(tuple(high - low), k, n - greedy, self.generator)
            starts = np.concatenate([starts, low + spread])
        return starts


@dataclass(frozen=True)
class Clustering:
    """The release of an algorithm.

    Attributes
    ----------
    centroids : ndarray of float64, shape (k, d)
        In codes.
    counts : ndarray of float64, shape (k,), or None
        Noisy numbers of records of the clusters.
    cells : Cells or None
        The noisy grid.
    edges : list of ndarray or None
        Edges of the grid.
    cell_epsilon : Fraction or None
        The noise of the cells.
    validity : dict of int to float, or None
        Validity of every number of clusters tried.
    leaves : Leaves or None
        Boxes of a noisy tree, in parts of the axes that ``edges`` separate.
    """

    centroids: FloatArray
    counts: FloatArray | None = None
    cells: Cells | None = None
    edges: list[IntArray] | None = None
    cell_epsilon: Fraction | None = None
    validity: dict[int, float] | None = None
    leaves: Leaves | None = None


def cluster_released(
    task: Task,
    points: FloatArray,
    weights: FloatArray,
    ranges: IntArray | None = None,
    cloud: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[FloatArray, dict[int, float] | None]:
    """Best centroids on released points, for the most valid number of clusters.

    Parameters
    ----------
    task : Task
    points : ndarray of float64, shape (m, d)
        If there are none, one point in the middle of the box is used.
    weights : ndarray of float64, shape (m,)
        May be negative.
    ranges : ndarray of int64, shape (d, 2), default=None
        Start by k-means++ on the points as well, and by sphere packing in these ranges of codes.
        None: by sphere packing in the whole box.
    cloud : tuple of ndarray, default=None
        Points and positive weights on which numbers of clusters are compared, by `validity`. None:
        on the released points, by the validity of Ray and Turi, as the dissertation does.

    Returns
    -------
    centroids : ndarray of float64, shape (k, d)
    validity : dict of int to float, or None
        None where there was no choice.
    """
    if not len(points):
        points = (np.array([task.shape], dtype=np.float64) - 1) / 2
        weights = np.ones(1)
    found = {}
    filled = points[weights > 0]
    for k in task.clusters:
        if task.init is None and 0 < len(filled) <= k and k > _MANY:
            # Nothing to search for, and starts for so many clusters would take long.
            found[k] = filled[np.arange(k) % len(filled)]
            continue
        if ranges is None:
            starts = task.starts(k)
        else:
            starts = task.greedy_starts(points, weights, k, task.n_init, ranges)
        found[k] = best_kmeans(points, weights, starts, task.shape)[0]
    if len(found) == 1:
        return found[task.clusters[0]], None
    valid = {
        k: validity(*cloud, c) if cloud else ray_turi(points, weights, c) for k, c in found.items()
    }
    return found[min(valid, key=lambda k: valid[k])], valid


def cluster_masses(points: FloatArray, weights: FloatArray, centroids: FloatArray) -> FloatArray:
    """Sum of the weights of the released points that are nearest to each centroid."""
    labels = nearest(points, centroids)
    return np.bincount(labels, weights=weights, minlength=len(centroids)).astype(np.float64)
