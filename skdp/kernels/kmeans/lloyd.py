"""K-means on released points: free post-processing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..._types import FloatArray, IntArray
from .assign import BLOCK, nearest_of_each

__all__ = ["best_kmeans", "calinski_harabasz", "lloyd_on_cells", "ray_turi", "swapped"]

# K-means with many starts: iterations before the worse half is dropped, and how many run to the
# end.
_TRIAL_ITERATIONS = 4
_FINALISTS = 4
# Swaps that are tried one after the other.
_MOST_SWAPS = 12
# A swap is tried if the gain, before Lloyd's algorithm adds to it, is this share of the loss.
_PROMISING = 0.7


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


def swapped(
    points: FloatArray, weights: FloatArray, centroids: FloatArray, shape: Sequence[int]
) -> FloatArray:
    """Centroids after swaps that lower the cost: one of two close ones moves to a wide cluster.

    Lloyd's algorithm cannot leave a solution in which two centroids share a cluster and one has
    two. Each try removes the centroids that are missed least and halves as many clusters, those
    that gain most; half as many if that did not help.

    Parameters
    ----------
    points : ndarray of float64, shape (m, d)
    weights : ndarray of float64, shape (m,)
        Not negative.
    centroids : ndarray of float64, shape (k, d)
    shape : sequence of int
    """
    if len(centroids) < 2:
        return centroids
    norms = (points**2).sum(axis=1)
    _, squared = nearest_of_each(points, norms, centroids[None])
    cost, most = float(weights @ squared[:, 0]), len(centroids)
    for _ in range(_MOST_SWAPS):
        removed, halved, halves = _swaps(points, weights, centroids, most)
        if not len(removed):
            break
        tried = centroids.copy()
        tried[halved], tried[removed] = halves[:, 0], halves[:, 1]
        found, costs = lloyd_on_cells(points, weights, tried[None], shape)
        if costs[0] < (1 - 1e-6) * cost:
            centroids, cost = found[0], float(costs[0])
        else:
            most = len(removed) // 2
    return centroids


def _swaps(
    points: FloatArray, weights: FloatArray, centroids: FloatArray, most: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Centroids to remove, clusters to halve instead, and the means of their halves, (s, 2, d)."""
    k, d = centroids.shape
    lost, labels = np.zeros(k), np.empty(len(points), dtype=np.int64)
    flat = centroids.T
    offsets = (centroids**2).sum(axis=1)
    step = max(1, BLOCK // k)
    for first in range(0, len(points), step):
        block = slice(first, first + step)
        table = offsets - 2 * points[block] @ flat
        two = np.argpartition(table, 1, axis=1)[:, :2]
        near = np.take_along_axis(table, two, axis=1)
        labels[block] = two[:, 0]
        lost += np.bincount(two[:, 0], weights[block] * (near[:, 1] - near[:, 0]), minlength=k)
    mass = np.bincount(labels, weights, minlength=k)
    gained, halves = np.zeros(k), np.repeat(centroids[:, None], 2, axis=1)
    offset = points - centroids[labels]
    moments = [np.bincount(labels, weights * column**2, minlength=k) for column in offset.T]
    widest = np.argmax(moments, axis=0)
    upper = offset[np.arange(len(points)), widest[labels]] > 0
    half = 2 * labels + upper
    size = np.bincount(half, weights, minlength=2 * k).reshape(k, 2)
    sums = [np.bincount(half, weights * column, minlength=2 * k) for column in offset.T]
    means = np.stack(sums, axis=1).reshape(k, 2, d) / np.maximum(size, 1e-9)[:, :, None]
    whole = (size.min(axis=1) > 0) & (mass > 0)
    gained[whole] = (size * (means**2).sum(axis=2)).sum(axis=1)[whole]
    halves += means
    worst, least = np.argsort(-gained, kind="stable"), np.argsort(lost, kind="stable")
    removed: list[int] = []
    halved: list[int] = []
    for j in worst.tolist():
        spare = [i for i in least.tolist() if i != j and i not in removed and i not in halved]
        if not spare or len(removed) >= most or j in removed:
            break
        if gained[j] <= _PROMISING * lost[spare[0]]:
            break
        removed.append(spare[0])
        halved.append(j)
    return np.array(removed, dtype=np.int64), np.array(halved, dtype=np.int64), halves[halved]


def calinski_harabasz(points: FloatArray, weights: FloatArray, centroids: FloatArray) -> float:
    """Reciprocal of the ratio of Calinski and Harabasz, but for the number of points.

    The squared distances to the centroids times k - 1, over those from the centroids to the mean.
    Smaller is better; infinite without positive weight, or without distances of either kind.
    """
    total = weights.sum()
    if total <= 0:
        return math.inf
    norms = (points**2).sum(axis=1)
    middle = (weights @ points / total)[None]
    within, all_of_them = (
        float(weights @ nearest_of_each(points, norms, each[None])[1][:, 0])
        for each in (centroids, middle)
    )
    if not 0 < within < all_of_them:
        return math.inf
    return (len(centroids) - 1) * within / (all_of_them - within)


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
