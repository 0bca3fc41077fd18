"""PGkM: k-means by the genetic algorithm of PrivGene (Zhang and others)."""

from __future__ import annotations

import numpy as np

from ..._types import IntArray
from ...mechanisms import noisy_max, top_k
from .lloyd import nearest_distances
from .task import Clustering, Task

__all__ = ["genetic", "genetic_rounds"]

_POPULATION = 200
_SURVIVORS = 10
# The rounds of PrivGene grow with N epsilon; more than this many only cost time.
_MOST_ROUNDS = 30
# Scores are computed from this many bits of a coordinate: their sums stay far below 2**62.
_GENETIC_BITS = 10


def genetic_rounds(epsilon: float, n_records: int) -> int:
    """Rounds of the genetic algorithm, 1.25e-3 N epsilon / 10, from 8 to 30."""
    return int(min(_MOST_ROUNDS, max(8, 1.25e-3 * n_records * epsilon / _SURVIVORS)))


def genetic(task: Task, rounds: int | None = None) -> Clustering:
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
    points = task.rows >> bits
    top = np.maximum(np.array(task.shape, dtype=np.int64) - 1 >> bits, 0)
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
