"""K-means on released points: free post-processing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..._types import FloatArray, IntArray
from .assign import BLOCK, nearest_of_each

__all__ = ["best_kmeans", "lloyd_on_cells", "ray_turi"]

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
    step = max(1, (BLOCK * 4) // max(1, len(points) * k))
    for first in range(0, n_starts, step):
        active = np.arange(first, min(first + step, n_starts))
        for iteration in range(max_iter + 1):
            current = centroids[active]
            labels, squared = nearest_of_each(points, norms, current)
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


def ray_turi(points: FloatArray, weights: FloatArray, centroids: FloatArray) -> float:
    """Validity of Ray and Turi: mean squared distance over the least squared gap of centroids.

    Smaller is better; infinite for coinciding centroids or without positive weight.
    """
    total = weights.sum()
    gaps = ((centroids[:, None] - centroids) ** 2).sum(axis=2)[np.triu_indices(len(centroids), 1)]
    if total <= 0 or not gaps.size or gaps.min() <= 0:
        return math.inf
    norms = (points**2).sum(axis=1)
    _, squared = nearest_of_each(points, norms, centroids[None])
    return max(float(weights @ squared[:, 0]), 0.0) / float(total) / float(gaps.min())
