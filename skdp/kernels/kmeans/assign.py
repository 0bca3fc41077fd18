"""Nearest centroids of points, in blocks that fit into a cache."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._types import CodeArray, FloatArray, IntArray

__all__ = ["BLOCK", "nearest", "nearest_distances", "nearest_of_each"]

# Numbers in one block of a distance matrix: fits into a core's cache.
BLOCK = 1 << 19


def nearest(points: NDArray, centroids: FloatArray) -> IntArray:
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
    step = max(1, BLOCK // (k + points.shape[1]))
    for first in range(0, len(points), step):
        block = points[first : first + step].astype(np.float64)
        labels[first : first + step] = np.argmin(block @ weights + norms, axis=1)
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
    step = max(1, BLOCK // (n_sets * k))
    for first in range(0, len(points), step):
        block = points[first : first + step].astype(np.float64)
        table = (norms - 2.0 * block @ flat.T).reshape(len(block), n_sets, k)
        least = table.min(axis=2) + (block**2).sum(axis=1)[:, None]
        totals += least.astype(np.int64).sum(axis=0)
    return totals


def nearest_of_each(
    points: FloatArray, norms: FloatArray, centroids: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Nearest centroid and squared distance to it, for every point and start: (m, s) each."""
    n_starts, k, d = centroids.shape
    flat = centroids.reshape(n_starts * k, d)
    labels = np.empty((len(points), n_starts), dtype=np.int64)
    squared = np.empty((len(points), n_starts))
    offsets = (flat**2).sum(axis=1)
    step = max(1, BLOCK // (n_starts * k))
    for first in range(0, len(points), step):
        block = points[first : first + step]
        table = (offsets - 2 * block @ flat.T).reshape(len(block), n_starts, k)
        where = table.argmin(axis=2)
        labels[first : first + step] = where
        least = np.take_along_axis(table, where[:, :, None], axis=2)[:, :, 0]
        squared[first : first + step] = np.maximum(least + norms[first : first + step, None], 0.0)
    return labels, squared
