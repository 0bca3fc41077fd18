"""Starting centroids of k-means: greedy k-means++, and sphere packing without data."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..._types import FloatArray, IntArray

__all__ = ["kmeans_plus_plus", "sphere_packing"]

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
