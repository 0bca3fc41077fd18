"""PGkM and GkM: k-means by a genetic algorithm (PrivGene), and by sample and aggregate (GUPT).

PGkM: k-means by the genetic algorithm of PrivGene (Zhang and others).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..._random import NoiseSource
from ..._validation import CodeArray, IntArray
from ...mechanisms import discrete_laplace, noisy_max, top_k
from .lloyd import best_kmeans, kmeans_plus_plus, nearest_distances
from .task import Clustering, Task

__all__ = [
    "block_centroids",
    "genetic",
    "genetic_rounds",
    "sample_aggregate",
]

_POPULATION = 200
_SURVIVORS = 10
# The rounds of PrivGene grow with N epsilon; more than this many only cost time.
_MOST_ROUNDS = 30
# Scores are computed from this many bits of a coordinate: their sums stay far below 2**62.
_GENETIC_BITS = 10


def genetic_rounds(epsilon: float, n_records: int) -> int:
    """Rounds of the genetic algorithm, 1.25e-3 N epsilon / 10, from 8 to 30."""
    return int(min(_MOST_ROUNDS, max(8, 1.25e-3 * n_records * epsilon / _SURVIVORS)))


def genetic(task: Task) -> Clustering:
    """Selection, crossover and mutation of whole sets of centroids (PGkM).

    Privacy. A score is minus the sum over the records of the squared distance to the nearest
    centroid, in coarse integers, so a record moves all scores of a round down by between 0 and the
    largest such distance in the box, which is a range of that length. Each round releases the
    ordered survivors by one selection of several winners; the rounds share the part "rounds"
    equally, and the last selects one. Crossover and mutation see released candidates only.
    """
    (k,) = task.clusters
    d = task.n_axes
    bits = max(0, (max(task.shape) - 1).bit_length() - _GENETIC_BITS)
    points = task.points >> bits
    top = np.maximum(np.array(task.shape, dtype=np.int64) - 1 >> bits, 0)
    rounds = task.n_rounds
    if rounds is None:
        rounds = genetic_rounds(float(task.parts["rounds"]), task.measure_total())
    epsilon = task.parts["rounds"] / rounds
    draw = task.generator
    population = draw.integers(0, top + 1, size=(_POPULATION, k, d))
    if task.init is not None:
        population[0] = np.clip(np.rint(task.init / 2**bits), 0, top)
    for number in range(rounds):
        task.progress(f"round {number + 1} of {rounds}")
        scores = -nearest_distances(points, population)
        # Upper bound of the distance of any point of the box to its nearest centroid.
        corner = (np.maximum(population, top - population) ** 2).sum(axis=2).min(axis=1)
        reach = max(1, int(corner.max()))
        if number == rounds - 1:
            best = population[noisy_max(scores, epsilon, reach, random_state=task.source)]
            break
        chosen = top_k(scores, _SURVIVORS, epsilon, reach, random_state=task.source)
        population = _offspring(population[chosen], top, 0.25 * 0.9**number, draw)
    return Clustering((best + 0.5) * 2**bits - 0.5)


def _offspring(
    parents: IntArray, top: IntArray, spread: float, draw: np.random.Generator
) -> IntArray:
    """A new population: pairs of parents swap their tails, and one number of each child changes."""
    n_parents, k, d = parents.shape
    flat = parents.reshape(n_parents, k * d)
    couples = np.array([draw.permutation(n_parents)[:2] for _ in range(_POPULATION // 2)])
    first, second = flat[couples[:, 0]], flat[couples[:, 1]]
    cut = draw.integers(1, max(2, k * d), size=len(couples))
    tail = np.arange(k * d) >= cut[:, None]
    children = np.concatenate([np.where(tail, second, first), np.where(tail, first, second)])
    place = draw.integers(0, k * d, size=len(children))
    width = top[place % d]
    rows = np.arange(len(children))
    step = np.rint(draw.uniform(-spread, spread, size=len(children)) * width).astype(np.int64)
    children[rows, place] = np.clip(children[rows, place] + step, 0, width)
    return children.reshape(-1, k, d)


# ------------------------------------------------------------------------------------------------
# GkM: sample and aggregate, after GUPT (Mohan and others).


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
    values = np.sort(task.points[:, axis])
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
    found = block_centroids(task.points, task.shape, k, n_blocks, task.source, task.generator)
    epsilon = task.parts["centroids"] / (k * d)
    centroids = np.empty((k, d))
    for axis, (low, high) in enumerate(ranges):
        sums = (np.clip(found[:, :, axis], low, high) - low).sum(axis=0)
        noisy = discrete_laplace(sums, epsilon, max(1, high - low), random_state=task.source)
        centroids[:, axis] = low + np.clip(noisy / n_blocks, 0, high - low)
    return Clustering(centroids)
