"""The algorithms behind `DPKMeans`, and a list of all.

Here are DPLloyd, DPLloyd-Impr, UGkM, MkM, EUGkM, Hybrid, PGkM and GkM; the default is in `auto`.

Every algorithm takes a `Task`, spends exactly ``task.parts`` on its points and returns a
`Clustering`, which holds releases only. `algorithm_parts` gives the parts, which are computed from
public parameters, never from the data. Decisions that depend on the number of records (the size of
a grid, the number of rounds or blocks) use a noisy number, released first, or a public one: the
exact number would show in the shape of the release.

References
----------
D. Su, "Differentially private data publishing for data analysis", Purdue 2016, chapter 4;
A. Blum, C. Dwork, F. McSherry, K. Nissim, "Practical privacy: the SuLQ framework", PODS 2005
(DPLloyd); P. Mohan and others, "GUPT", SIGMOD 2012 (sample and aggregate); J. Zhang and others,
"PrivGene", SIGMOD 2013 (genetic).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ..._random import NoiseSource
from ..._validation import CodeArray, FloatArray, IntArray, split_epsilon
from ...mechanisms import discrete_laplace, noisy_max, top_k
from ..grid import grid_size
from .auto import auto
from .lloyd import (
    Clustering,
    Task,
    best_kmeans,
    cluster_masses,
    cluster_released,
    kmeans_plus_plus,
    nearest_distances,
    residual_sums,
    sphere_packing,
)
from .sketch import full_grid_edges, measure_cells

# --- DPLloyd and DPLloyd-Impr: Lloyd's algorithm with noise in every round

# Rounds of DPLloyd, by default.
_ROUNDS = 5
# Mean normalised coordinate of a centroid, estimated by Su on simulated data.
_RHO = 0.225


def lloyd_round(
    task: Task, centroids: FloatArray, epsilon: Fraction, weight: float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """One round with unclipped coordinates: centroids and noisy counts.

    ``weight`` is the budget of the count over that of one axis.

    Privacy: assignments use the frozen centroids, so a record is in one cluster. It changes one
    count by 1 (``epsilon_count``) and, on every axis, one sum of coordinates centred in the box by
    at most half the axis (``epsilon_axis`` each): epsilon_count + d * epsilon_axis = epsilon in
    all. Empty clusters get the same noise.
    """
    frozen = np.rint(centroids).astype(np.int64)
    k, d = frozen.shape
    epsilon_axis = epsilon / (d + Fraction(weight).limit_denominator(1000))
    epsilon_count = epsilon - d * epsilon_axis
    exact, residuals = residual_sums(task.points, frozen, None)
    counts = discrete_laplace(exact, epsilon_count, random_state=task.source)
    moved = frozen.astype(np.float64)
    for axis, size in enumerate(task.shape):
        # Each row adds twice its distance to the middle of the axis: an integer of at most
        # size - 1.
        centred = 2 * (residuals[:, axis] + frozen[:, axis] * exact) + (1 - size) * exact
        sums = discrete_laplace(centred, epsilon_axis, max(1, size - 1), random_state=task.source)
        # If the noisy count is not positive, the sums are only noise, and the centroid stays.
        mean = np.divide(sums, counts, out=np.zeros(k), where=counts > 0)
        moved[:, axis] = np.where(counts > 0, (mean + size - 1) / 2, moved[:, axis])
    return np.clip(moved, 0.0, np.array(task.shape) - 1.0), counts.astype(np.float64)


def count_weight(n_axes: int) -> float:
    """Best budget of the count over that of one axis, (4 d rho^2)^(1/3)."""
    return float((4 * n_axes * _RHO**2) ** (1 / 3))


def _all_rounds(task: Task, centroids: FloatArray, rounds: int, weight: float) -> Clustering:
    """Rounds that share the part "rounds" equally."""
    counts = np.zeros(len(centroids))
    for number in range(rounds):
        task.progress(f"round {number + 1} of {rounds}")
        centroids, counts = lloyd_round(task, centroids, task.parts["rounds"] / rounds, weight)
    return Clustering(centroids, counts)


def lloyd(task: Task) -> Clustering:
    """DPLloyd: Lloyd's algorithm with noise in every round; uniform starts, equal budgets.

    Privacy: the rounds compose sequentially, each costs an equal part of "rounds".
    """
    (k,) = task.clusters
    centroids = task.init
    if centroids is None:
        centroids = task.generator.random((k, task.n_axes)) * (np.array(task.shape) - 1)
    return _all_rounds(task, centroids, task.n_rounds or _ROUNDS, 1.0)


def lloyd_rounds(epsilon: float, n_records: int, k: int, n_axes: int) -> int:
    """Number of rounds, 2 to 7: each has enough budget to keep the error below 0.004 r^2."""
    least = math.sqrt(500 * k**3 * (n_axes + count_weight(n_axes)) ** 3) / n_records
    return int(min(7, max(2, epsilon // least)))


def lloyd_improved(task: Task) -> Clustering:
    """DPLloyd-Impr: sphere-packing starts, the best split of a round, and rounds by epsilon.

    Privacy: the number of rounds follows from the noisy or public number of records; the rounds
    share the part "rounds" equally.
    """
    (k,) = task.clusters
    centroids = task.init
    if centroids is None:
        centroids = sphere_packing(task.shape, k, 1, task.generator)[0]
    rounds = task.n_rounds
    if rounds is None:
        epsilon = float(task.parts["rounds"])
        rounds = lloyd_rounds(epsilon, task.measure_total(), k, task.n_axes)
    return _all_rounds(task, centroids, rounds, count_weight(task.n_axes))


# --- UGkM, MkM and EUGkM: k-means on a noisy grid; Hybrid: EUGkM, then a round of DPLloyd-Impr

# Largest number of cells of a grid that is released in full: bounds memory.
_MOST_CELLS = 2**18


def grid(task: Task, rule: str, n_records: int, epsilon: Fraction) -> Clustering:
    """K-means on the signed cells of a noisy grid: UGkM, MkM and EUGkM by the rule for its size.

    Privacy: a record lies in one cell, and every cell gets noise of sensitivity 1: epsilon.

    Parameters
    ----------
    task : Task
    rule : {"uniform", "m-estimator", "extended"}
        See `skdp.algorithms.grid.grid_size`.
    n_records : int
        Public or released.
    epsilon : Fraction
    """
    n_cells = grid_size(rule, n_records, epsilon, task.n_axes, task.theta)
    edges = full_grid_edges(task.shape, min(max(n_cells, 2.0), _MOST_CELLS))
    cells = measure_cells(task.points, edges, epsilon, None, task.source)
    weights = cells.counts.astype(np.float64)
    centroids, validity = cluster_released(task, cells.centers, weights)
    counts = cluster_masses(cells.centers, weights, centroids)
    return Clustering(centroids, counts, cells, edges, epsilon, validity)


# Share of the variance of the grid that remains after the round, and of that of the round: Su's
# regression of errors on simulated data.
_GRID_SURVIVES, _ROUND_ADDS = 0.14, 0.42


def hybrid_share(
    epsilon: float, n_records: int, k: int, n_axes: int, theta: float
) -> Fraction | None:
    """Share of the grid, if less error is expected with a round than without, else None.

    The expected squared errors of a centroid on [-1, 1]^d are theoretical: V, the variance of
    a grid, and R, that of a round with the best split of its budget. After a round 0.14 V and
    0.42 R are left; the grid alone keeps all of V.

    Parameters
    ----------
    epsilon : float
    n_records : int
    k, n_axes : int
    theta : float
        Of the grid.

    Notes
    -----
    In the dissertation R is that of a round with an equal split, which is worse. Rounds alone are
    not compared, as in the dissertation's algorithm: their error depends on their starts, which the
    formula does not include. If the V of the grid alone were multiplied by 0.14 too, a round would
    never follow, since a part of a budget cannot give less variance.
    """
    growth = 2 * n_axes / (2 + n_axes)

    def grid_error(budget: float) -> float:
        scale = 3 * theta**growth * (n_records * budget) ** (4 / (2 + n_axes))
        return 2 * n_axes * float(k ** ((n_axes - 2) / n_axes)) / scale

    def round_error(budget: float) -> float:
        return 2 * k**2 * (n_axes + count_weight(n_axes)) ** 3 / (n_records * budget) ** 2

    shares = [Fraction(i, 20) for i in range(1, 20)]
    errors = [
        _GRID_SURVIVES * grid_error(float(f) * epsilon)
        + _ROUND_ADDS * round_error(float(1 - f) * epsilon)
        for f in shares
    ]
    best = int(np.argmin(errors))
    return shares[best] if errors[best] < grid_error(epsilon) else None


def hybrid(task: Task) -> Clustering:
    """An extended grid, then one improved Lloyd round from its centroids if it reduces the error.

    Privacy: the share of the grid follows from public facts and the noisy number of records; grid
    and round compose sequentially.
    """
    n = task.measure_total()
    epsilon = task.parts["clustering"]
    share = hybrid_share(float(epsilon), n, max(task.clusters), task.n_axes, task.theta)
    if share is None:
        return grid(task, "extended", n, epsilon)
    first, rest = grid(task, "extended", n, share * epsilon), epsilon - share * epsilon
    weight = count_weight(task.n_axes)
    centroids, counts = lloyd_round(task, first.centroids, rest, weight)
    return replace(first, centroids=centroids, counts=counts)


# --- PGkM: k-means by the genetic algorithm of PrivGene

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


# --- GkM: sample and aggregate, after GUPT

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


# --- the list of all

# Share of epsilon for the number of records, where it is not public.
_RECORDS_SHARE = Fraction(1, 50)


def algorithm_parts(
    algorithm: str, epsilon: Fraction, n_records: int | None, n_blocks: int | None = None
) -> dict[str, Fraction]:
    """Parts of the budget, from public parameters alone.

    With a public number of blocks, sample and aggregate need not know that of the records.
    """
    _, shares, needs_total = ALGORITHMS[algorithm]
    sized = n_blocks is not None and algorithm == "sample-aggregate"
    if needs_total and n_records is None and not sized:
        left = 1 - _RECORDS_SHARE
        shares = {name: share * left for name, share in shares.items()}
        shares["records"] = _RECORDS_SHARE
    return split_epsilon(epsilon, shares)


def _by_rule(rule: str) -> Callable[[Task], Clustering]:
    return lambda task: grid(task, rule, task.measure_total(), task.parts["grid"])


_ONE = Fraction(1)
_HALF = Fraction(1, 2)
# Name: the algorithm, the shares of its parts, and whether it must know the number of records.
ALGORITHMS: dict[str, tuple[Callable[[Task], Clustering], dict[str, Fraction], bool]] = {
    "auto": (auto, {"clustering": _ONE}, True),
    "lloyd": (lloyd, {"rounds": _ONE}, False),
    "lloyd-improved": (lloyd_improved, {"rounds": _ONE}, True),
    "uniform-grid": (_by_rule("uniform"), {"grid": _ONE}, True),
    "m-estimator": (_by_rule("m-estimator"), {"grid": _ONE}, True),
    "extended-grid": (_by_rule("extended"), {"grid": _ONE}, True),
    "hybrid": (hybrid, {"clustering": _ONE}, True),
    "sample-aggregate": (sample_aggregate, {"range": _HALF, "centroids": _HALF}, True),
    "genetic": (genetic, {"rounds": _ONE}, True),
}

# Algorithms that release a grid, on which the number of clusters can be chosen.
GRID_ALGORITHMS = ("auto", "uniform-grid", "m-estimator", "extended-grid", "hybrid")
