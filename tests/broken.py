"""Mechanisms with known errors, each beside its repaired twin, for testing the auditor.

All of them are simulations with NumPy's generator: fast, vectorised over trials, and not private
in a stricter sense either. Numbers that they release are rounded to a public grid (`on_grid`),
which hides what floating-point noise would tell. ``make(rng)`` gives ``mechanism(data, n) -> n
outputs``.

The sparse vector algorithms are numbered as in D. Su, Differentially Private Data Publishing for
Data Analysis (Purdue, 2016), chapter 5; epsilon and the sensitivity are 1, the threshold is 0.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

BELOW, ABOVE, SILENT = 0, 1, -1
GRID = 2.0**-12


def on_grid(values):
    """Round to multiples of a public number: true and noisy values share one lattice."""
    return np.rint(values / GRID) * GRID


def two_sided(rng, scale, shape):
    """Integer noise with the law of the discrete Laplace distribution."""
    noise = rng.geometric(-np.expm1(-1 / scale), (2, *np.atleast_1d(shape)))
    return noise[0] - noise[1]


def sparse_vector(
    rng,
    threshold_scale,
    query_scale,
    cutoff=None,
    *,
    refreshed_scale=None,
    release_scale=None,
    release_comparison=False,
    one_sided=False,
):
    """The loop that Algorithms 17 to 23 share; they differ in these parameters."""

    def noise(scale, n):
        return rng.exponential(scale, n) if one_sided else rng.laplace(0, scale, n)

    numeric = release_comparison or release_scale is not None

    def mechanism(answers, n):
        rho = noise(threshold_scale, n)
        found = np.zeros(n, dtype=int)
        out = np.full((n, len(answers)), -np.inf if numeric else SILENT, float if numeric else "i1")
        active = np.ones(n, dtype=bool)
        for i, answer in enumerate(answers):
            noisy = answer + (noise(query_scale, n) if query_scale else 0.0)
            above = active & (noisy >= rho)
            if release_comparison:
                answered = on_grid(noisy)
            elif release_scale is not None:
                answered = on_grid(answer + noise(release_scale, n))
            else:
                answered = ABOVE
            # NaN stands for "below" beside numbers.
            out[:, i] = np.where(
                active, np.where(above, answered, np.nan if numeric else BELOW), out[:, i]
            )
            if refreshed_scale is not None:
                rho = np.where(above, noise(refreshed_scale, n), rho)
            if cutoff is not None:
                found += above
                active &= found < cutoff
        return out

    return mechanism


def algorithm_17(rng, cutoff):
    return sparse_vector(rng, 2.0, 4.0 * cutoff, cutoff)


def algorithm_18(rng, cutoff):
    return sparse_vector(rng, 2.0 * cutoff, 4.0 * cutoff, cutoff, refreshed_scale=2.0 * cutoff)


def algorithm_19(rng, cutoff):
    return sparse_vector(rng, 2.0, 2.0 * cutoff, cutoff, release_comparison=True)


def algorithm_20(rng, cutoff):
    return sparse_vector(rng, 4.0, 4.0 / 3.0, cutoff)


def algorithm_21(rng):
    return sparse_vector(rng, 2.0, 0.0)


def algorithm_22(rng):
    return sparse_vector(rng, 2.0, 2.0)


def algorithm_23(rng, cutoff, shares=(0.25, 0.5, 0.25), monotonic=False, one_sided=False):
    """Shares of epsilon for the threshold, the comparisons and the released answers."""
    first, second, third = shares
    return sparse_vector(
        rng,
        1 / first,
        (1 if monotonic else 2) * cutoff / second,
        cutoff,
        release_scale=cutoff / third if third else None,
        one_sided=one_sided,
    )


def first_above(rng, threshold_scale, query_scale, one_sided=False):
    """Place of the first of many equal answers, then one more, that is above; cutoff 1.

    ``data`` is (m, v, w): m answers of v and then one of w. Given the threshold's noise the first
    positive among the equal ones has a geometric place, so that a thousand answers cost as much
    as one.
    """

    def exceeds(level):
        tail = np.exp(-np.abs(level) / query_scale)
        if one_sided:
            return np.where(level > 0, tail, 1.0)
        return np.where(level > 0, tail / 2, 1 - tail / 2)

    def mechanism(data, n):
        m, v, w = data
        scale = threshold_scale
        rho = rng.exponential(scale, n) if one_sided else rng.laplace(0, scale, n)
        place = rng.geometric(np.maximum(exceeds(rho - v), 1e-300))
        last = rng.random(n) < exceeds(rho - w)
        return np.where(place <= m, place, np.where(last, m + 1, m + 2))

    return mechanism


def laplace(rng, scale):
    return lambda value, n: on_grid(value + rng.laplace(0, scale, n))


def exponential_mechanism(rng):
    """Selection at epsilon 1 where all scores move up by 0 to 1."""

    def mechanism(scores, n):
        weight = np.exp(np.asarray(scores, float))
        return rng.choice(len(scores), size=n, p=weight / weight.sum())

    return mechanism


def mean_over_exact_size(rng):
    """A noisy sum divided by the exact number of records: the quotients lie on a lattice."""

    def mechanism(records, n):
        return (np.sum(records) + two_sided(rng, 1.0, n)) / len(records)

    return mechanism


def mean_over_noisy_size(rng):
    """Half of epsilon each for the sum and the size."""

    def mechanism(records, n):
        size = np.maximum(len(records) + two_sided(rng, 2.0, n), 1)
        return (np.sum(records) + two_sided(rng, 2.0, n)) / size

    return mechanism


def grid_counts(rng, exact_size):
    """Noisy counts on a square grid whose side follows from the number of records."""

    def mechanism(points, n):
        points = np.asarray(points)
        # A public guess of the size, or the exact one, which decides the shape of the output.
        size = len(points) if exact_size else 40
        side = int(np.ceil(np.sqrt(size / 10)))
        cells = np.minimum((points * side).astype(int), side - 1)
        counts = np.bincount(cells[:, 0] * side + cells[:, 1], minlength=side * side)
        return on_grid(counts + rng.laplace(0, 1, (n, side * side)))

    return mechanism


def k_means_round(rng, in_place, centroids=(0.0, 1.0)):
    """One round of Lloyd's iteration on [-1, 1]: noisy count and sum of each cluster.

    One record adds at most (1, 1) to one cluster, so Laplace noise of scale 2 is 1-DP; but only
    if all records are assigned before any centroid moves.
    """

    def mechanism(records, n):
        x, times = np.unique(records, return_counts=True)
        where = np.tile(np.asarray(centroids), (n, 1))
        frozen = where.copy()
        out = np.empty((n, 2 * len(centroids)))
        for j in range(len(centroids)):
            reference = where if in_place else frozen
            nearest = np.abs(x[None, :, None] - reference[:, None, :]).argmin(axis=2) == j
            count = nearest @ times + rng.laplace(0, 2, n)
            total = nearest @ (times * x) + rng.laplace(0, 2, n)
            where[:, j] = np.clip(total / np.maximum(count, 1), -1, 1)
            out[:, 2 * j], out[:, 2 * j + 1] = on_grid(count), on_grid(total)
        return out

    return mechanism


def centroids_of(rng, skip_empty, centroids=(-0.5, 0.5)):
    """New centroids of one round; ``skip_empty`` keeps an empty cluster's centroid as it is."""

    def mechanism(records, n):
        x = np.asarray(records)
        nearest = np.abs(x[:, None] - np.asarray(centroids)).argmin(axis=1)
        out = np.empty((n, len(centroids)))
        for j, old in enumerate(centroids):
            members = x[nearest == j]
            if skip_empty and not len(members):
                out[:, j] = old
                continue
            count = len(members) + rng.laplace(0, 2, n)
            total = members.sum() + rng.laplace(0, 2, n)
            out[:, j] = on_grid(np.clip(total / np.maximum(count, 1), -1, 1))
        return out

    return mechanism


def aggregation_error(counts):
    return np.abs(counts - counts.mean()).sum()


def cut_law(counts):
    """Law of one private bisection at epsilon 1: the exponential mechanism on aggregation error.

    For every pair of neighbours the scores move within an interval of length 4 (1 - 1/m), m being
    the larger side's greatest possible size.
    """
    counts = np.asarray(counts, dtype=float)
    size = len(counts)
    score = np.array(
        [-aggregation_error(counts[:p]) - aggregation_error(counts[p:]) for p in range(1, size)]
    )
    weight = np.exp((score - score.max()) / (4 * (1 - 1 / max(size - 1, 2))))
    return weight / weight.sum()


def bisections_law(counts, levels):
    """Law of the cuts of a histogram, ``levels`` deep, every block on its own."""
    if levels == 0 or len(counts) < 2:
        return {(): 1.0}
    law = {}
    for p, probability in enumerate(cut_law(counts), start=1):
        for left, a in bisections_law(counts[:p], levels - 1).items():
            for right, b in bisections_law(counts[p:], levels - 1).items():
                law[p, left, right] = probability * a * b
    return law


def bisections(rng, levels):
    """Cuts ``levels`` deep; with kappa = 1 paid for, a second level is one too many."""

    def mechanism(counts, n):
        law = bisections_law(counts, levels)
        return rng.choice(len(law), size=n, p=np.fromiter(law.values(), float))

    return mechanism


def checked_sum(rng, check):
    """A noisy sum of records in [0, 10]; ``check`` raises for others instead of clipping."""

    def mechanism(records, n):
        records = np.asarray(records, dtype=float)
        if check and (records > 10).any():
            raise ValueError("records must lie in [0, 10]")
        return on_grid(np.clip(records, 0, 10).sum() + rng.laplace(0, 10, n))

    return mechanism


@dataclass(frozen=True)
class Variant:
    """A broken mechanism, the pair of inputs that betrays it, and its repaired twin."""

    make: Callable[[np.random.Generator], Callable[[Any, int], Any]]
    dataset: Any
    neighbour: Any
    repaired: Callable[[np.random.Generator], Callable[[Any, int], Any]]
    n_trials: int = 1_000_000
    # Ratio of the probabilities of one telling event, where it is known.
    ratio: float | None = None
    options: dict[str, Any] = field(default_factory=dict)


def _low_high(m, low, k, high):
    return [low] * m + [high] * k


ANSWERS = {"relation": "answers"}

BROKEN = {
    "Algorithm 19, c=1": Variant(
        lambda rng: algorithm_19(rng, 1),
        _low_high(4, 0, 1, 0),
        _low_high(4, 1, 1, 0),
        lambda rng: algorithm_23(rng, 1),
        ratio=4.8966,
    ),
    "Algorithm 20, c=1": Variant(
        lambda rng: algorithm_20(rng, 1),
        _low_high(4, 0, 1, 1),
        _low_high(4, 1, 1, 0),
        lambda rng: algorithm_17(rng, 1),
        ratio=5.3333,
    ),
    "Algorithm 20, c=2": Variant(
        lambda rng: algorithm_20(rng, 2),
        _low_high(4, 0, 2, 1),
        _low_high(4, 1, 2, 0),
        lambda rng: algorithm_17(rng, 2),
        ratio=18.416,
    ),
    "Algorithm 20, c=5": Variant(
        lambda rng: algorithm_20(rng, 5),
        _low_high(4, 0, 5, 1),
        _low_high(4, 1, 5, 0),
        lambda rng: algorithm_17(rng, 5),
        ratio=161.83,
    ),
    "Algorithm 20, c=3, monotone queries": Variant(
        lambda rng: algorithm_20(rng, 3),
        _low_high(6, 0, 3, 0),
        _low_high(6, 1, 3, 0),
        lambda rng: algorithm_23(rng, 3, (0.5, 0.5, 0), monotonic=True),
        ratio=11.405,
    ),
    "Algorithm 21": Variant(
        algorithm_21, [0, 1], [1, 0], lambda rng: algorithm_17(rng, 1), ratio=np.inf
    ),
    "Algorithm 22, t=2": Variant(
        algorithm_22,
        _low_high(2, 0, 2, 1),
        _low_high(2, 1, 2, 0),
        lambda rng: algorithm_17(rng, 2),
        ratio=4.6161,
    ),
    "Algorithm 22, t=3": Variant(
        algorithm_22,
        _low_high(3, 0, 3, 0),
        _low_high(3, 1, 3, -1),
        lambda rng: algorithm_17(rng, 3),
        ratio=13.69,
    ),
    "Algorithm 22, t=4, monotone queries": Variant(
        algorithm_22,
        _low_high(4, 0, 4, 0),
        _low_high(4, 1, 4, 0),
        lambda rng: algorithm_23(rng, 4, (0.5, 0.5, 0), monotonic=True),
        ratio=5.739,
    ),
    "monotone noise on general queries": Variant(
        lambda rng: first_above(rng, 2.0, 2.0),
        (1000, -6, 1),
        (1000, -5, 0),
        lambda rng: first_above(rng, 2.0, 4.0),
        n_trials=4_000_000,
        ratio=4.48169,
        options=ANSWERS,
    ),
    "Laplace, scale 25% too small": Variant(
        lambda rng: laplace(rng, 0.75), 0, 1, lambda rng: laplace(rng, 1.0), ratio=np.exp(4 / 3)
    ),
    "exact N divides": Variant(
        mean_over_exact_size,
        np.ones(5),
        np.ones(4),
        mean_over_noisy_size,
        n_trials=100_000,
        ratio=np.inf,
    ),
    "exact N decides the shape": Variant(
        lambda rng: grid_counts(rng, True),
        np.full((40, 2), 0.5),
        np.full((41, 2), 0.5),
        lambda rng: grid_counts(rng, False),
        n_trials=20_000,
        ratio=np.inf,
    ),
    "in-place centroid updates": Variant(
        lambda rng: k_means_round(rng, True),
        [-1.0] * 40,
        [-1.0] * 40 + [0.49],
        lambda rng: k_means_round(rng, False),
        ratio=np.exp(1.49),
    ),
    "skipped empty cluster": Variant(
        lambda rng: centroids_of(rng, True),
        [-0.5] * 5,
        [-0.5] * 5 + [0.5],
        lambda rng: centroids_of(rng, False),
        n_trials=20_000,
        ratio=np.inf,
    ),
    "one cut more than paid for": Variant(
        lambda rng: bisections(rng, 2),
        [7, 7, 6, 1],
        [7, 7, 7, 1],
        lambda rng: bisections(rng, 1),
    ),
    "exception that depends on a value": Variant(
        lambda rng: checked_sum(rng, True),
        [5.0, 7.0],
        [5.0, 7.0, 99.0],
        lambda rng: checked_sum(rng, False),
        n_trials=20_000,
        ratio=np.inf,
    ),
}


# --- exact laws of noise and of sparse vectors


def geometric_law(ratio, size):
    """Geometric noise clamped at ``size``: comparisons with smaller numbers do not show it."""
    return {k: (1 - ratio) * ratio**k for k in range(size)} | {size: ratio**size}


def sparse_vector_probability(
    pattern, answers, threshold_scale, query_scale, *, released_below=None
):
    """Probability that a sparse vector with Laplace noise answers with ``pattern``.

    By Gauss-Legendre integration over the noise of the threshold, between the kinks of the
    integrand; the error is about 1e-13 relative. With ``released_below`` the last answer, which is
    above, must also be released with its noise and be at most this.
    """
    answers = [float(answer) for answer in answers[: len(pattern)]]
    kinks = {0.0, *answers} | ({released_below} if released_below is not None else set())
    nodes, weights = _pieces(sorted(kinks), threshold_scale, query_scale)
    value = np.exp(-np.abs(nodes) / threshold_scale) / (2 * threshold_scale)
    last = len(pattern) - 1 if released_below is not None else len(pattern)
    groups = Counter(itertools.islice(zip(map(bool, pattern), answers, strict=True), last))
    for (above, answer), times in groups.items():
        value = value * _exceeds(nodes - answer, query_scale, above) ** times
    if released_below is not None:
        beyond = _exceeds(np.array([released_below - answers[-1]]), query_scale, True)
        above = _exceeds(nodes - answers[-1], query_scale, True)
        value = value * np.maximum(above - beyond, 0)
    return float(weights @ value)


def _exceeds(level, scale, above):
    """P(noise >= level), or of the complement."""
    if not scale:
        return ((level <= 0) == above).astype(float)
    level = level if above else -level
    small = np.exp(-np.abs(level) / scale) / 2
    return np.where(level > 0, small, 1 - small)


def _pieces(kinks, *scales):
    """Nodes and weights of Gauss-Legendre quadrature between the kinks and far beyond them."""
    widest, finest = max(scales), min(scale for scale in scales if scale)
    edges = [kinks[0] - 60 * widest, *kinks, kinks[-1] + 60 * widest]
    x, w = np.polynomial.legendre.leggauss(40)
    nodes, weights = [], []
    for low, high in itertools.pairwise(edges):
        cells = max(1, math.ceil((high - low) / (2 * finest)))
        for left, right in itertools.pairwise(np.linspace(low, high, cells + 1)):
            half = (right - left) / 2
            nodes.append(left + half * (x + 1))
            weights.append(half * w)
    return np.concatenate(nodes), np.concatenate(weights)


def sparse_vector_law(answers, *scales, cutoff=None):
    """Distribution of all patterns of a sparse vector that stops after ``cutoff`` above."""
    law, todo = {}, [()]
    while todo:
        pattern = todo.pop()
        if len(pattern) == len(answers) or (cutoff is not None and sum(pattern) >= cutoff):
            law[pattern] = sparse_vector_probability(pattern, answers, *scales)
        else:
            todo += [(*pattern, True), (*pattern, False)]
    return law
