"""GkM: sample and aggregate, after GUPT (Mohan and others)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..._random import NoiseSource
from ..._types import CodeArray, IntArray
from ...mechanisms import discrete_laplace, noisy_max
from .lloyd import best_kmeans, kmeans_plus_plus
from .task import Clustering, Task

__all__ = ["block_centroids", "sample_aggregate"]

# Candidate ends of the range of an axis.
_CANDIDATES = 64
# The range leaves out the lowest and the highest twentieth of the records.
_TAIL = 20


def block_centroids(
    points: CodeArray,
    shape: tuple[int, ...],
    k: int,
    n_blocks: int,
    source: NoiseSource,
    generator: np.random.Generator,
) -> IntArray:
    """Centroids of every block of a random partition of the points: private, (blocks, k, d).

    Each point draws its block independently and in secret: adding a record changes one block. The
    centroids of a block are ordered along the first axis, so that those of different blocks
    correspond. A block without points answers with the middle of the box.
    """
    d = len(shape)
    block = source.record_below(n_blocks, len(points), points)
    order = np.argsort(block, kind="stable")
    ends = np.cumsum(np.bincount(block, minlength=n_blocks))
    found = np.empty((n_blocks, k, d), dtype=np.int64)
    for number, chosen in enumerate(np.split(order, ends[:-1])):
        mine = points[chosen].astype(np.float64)
        if not len(mine):
            mine = (np.array([shape], dtype=np.float64) - 1) / 2
        weights = np.ones(len(mine))
        starts = kmeans_plus_plus(mine, weights, k, 3, generator)
        centroids = np.rint(best_kmeans(mine, weights, starts, shape)[0]).astype(np.int64)
        found[number] = centroids[np.lexsort(centroids.T[::-1])]
    return found


def _private_range(task: Task, axis: int, epsilon: Fraction) -> tuple[int, int]:
    """Codes between which nearly all points lie on an axis; costs ``epsilon``.

    Privacy. Two selections. With a of the records below a candidate and b not below, its score
    for the lower end is -|(T - 1) a - b|, T = 20: adding a record moves the inner number by T - 1
    or -1, so every score by at most T - 1 up or down, a range of 2 (T - 1).
    """
    size = task.shape[axis]
    edges = np.unique(np.arange(_CANDIDATES + 1) * size // _CANDIDATES)
    values = np.sort(task.rows[:, axis])
    below = np.searchsorted(values, edges, side="left")
    above = len(values) - below
    ends = [
        int(
            edges[noisy_max(-np.abs(score), epsilon / 2, 2 * (_TAIL - 1), random_state=task.source)]
        )
        for score in ((_TAIL - 1) * below - above, (_TAIL - 1) * above - below)
    ]
    low, high = min(ends), max(ends)
    return min(low, size - 1), min(max(high, low + 1), size - 1)


def sample_aggregate(task: Task) -> Clustering:
    """Mean of the centroids of N^0.4 blocks (GkM), within a range learned by half of epsilon.

    Privacy. The number of blocks is public, or follows from the noisy number of records. A record
    changes one block, whose k centroids, clipped to the released range, move a sum of each axis
    by at most its width: k d sums at equal parts of "centroids". The ranges of the axes are two
    selections each, at equal parts of "range".
    """
    (k,) = task.clusters
    d = task.n_axes
    n_blocks = task.n_blocks or round(task.measure_total() ** 0.4)
    ranges = [_private_range(task, axis, task.parts["range"] / d) for axis in range(d)]
    found = block_centroids(task.rows, task.shape, k, n_blocks, task.source, task.generator)
    epsilon = task.parts["centroids"] / (k * d)
    centroids = np.empty((k, d))
    for axis, (low, high) in enumerate(ranges):
        sums = (np.clip(found[:, :, axis], low, high) - low).sum(axis=0)
        noisy = discrete_laplace(sums, epsilon, max(1, high - low), random_state=task.source)
        centroids[:, axis] = low + np.clip(noisy / n_blocks, 0, high - low)
    return Clustering(centroids)
