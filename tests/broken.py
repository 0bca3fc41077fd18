"""Mechanisms with known errors, each beside its repaired twin, for testing the auditor.

All of them are simulations with NumPy's generator: fast, vectorised over trials, and not private
in a stricter sense either. Numbers that they release are rounded to a public grid (`on_grid`),
which hides what floating-point noise would tell. ``make(rng)`` gives ``mechanism(data, n) -> n
outputs``.

The sparse vector algorithms are numbered as in D. Su, Differentially Private Data Publishing for
Data Analysis (Purdue, 2016), chapter 5; epsilon and the sensitivity are 1, the threshold is 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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


def sparse_vector(rng, threshold_scale, query_scale, cutoff=None, release_comparison=False):
    """The loop that Algorithms 17 to 22 share; they differ in these parameters."""

    def mechanism(answers, n):
        rho = rng.laplace(0, threshold_scale, n)
        found = np.zeros(n, dtype=int)
        out = np.full((n, len(answers)), -np.inf if release_comparison else SILENT, float)
        active = np.ones(n, dtype=bool)
        for i, answer in enumerate(answers):
            noisy = answer + (rng.laplace(0, query_scale, n) if query_scale else 0.0)
            above = active & (noisy >= rho)
            # NaN stands for "below" beside numbers.
            said = (on_grid(noisy), np.nan) if release_comparison else (ABOVE, BELOW)
            out[:, i] = np.where(active, np.where(above, *said), out[:, i])
            if cutoff is not None:
                found += above
                active &= found < cutoff
        return out

    return mechanism


def algorithm_17(cutoff):
    return partial(sparse_vector, threshold_scale=2, query_scale=4 * cutoff, cutoff=cutoff)


# The other algorithms of the thesis, which break the guarantee.
ALGORITHM_19 = partial(sparse_vector, threshold_scale=2, query_scale=2, release_comparison=True)
ALGORITHM_20 = partial(sparse_vector, threshold_scale=4, query_scale=4 / 3, cutoff=2)
ALGORITHM_21 = partial(sparse_vector, threshold_scale=2, query_scale=0)
ALGORITHM_22 = partial(sparse_vector, threshold_scale=2, query_scale=2)


def laplace(rng, scale):
    return lambda value, n: on_grid(value + rng.laplace(0, scale, n))


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


ONE, TWO = algorithm_17(1), algorithm_17(2)
CELL = [0.5, 0.5]
BROKEN = {
    "Algorithm 19, c=1": Variant(
        partial(ALGORITHM_19, cutoff=1), [0] * 5, [1, 1, 1, 1, 0], ONE, ratio=4.8966
    ),
    "Algorithm 20, c=2": Variant(
        ALGORITHM_20, [0, 0, 0, 0, 1, 1], [1, 1, 1, 1, 0, 0], TWO, ratio=18.416
    ),
    "Algorithm 21": Variant(ALGORITHM_21, [0, 1], [1, 0], ONE, ratio=np.inf),
    "Algorithm 22, t=2": Variant(ALGORITHM_22, [0, 0, 1, 1], [1, 1, 0, 0], TWO, ratio=4.6161),
    "Laplace, scale 25% too small": Variant(
        partial(laplace, scale=0.75), 0, 1, partial(laplace, scale=1.0), ratio=np.exp(4 / 3)
    ),
    "exact N divides": Variant(
        mean_over_exact_size, np.ones(5), np.ones(4), mean_over_noisy_size, 100_000, ratio=np.inf
    ),
    "exact N decides the shape": Variant(
        *(partial(grid_counts, exact_size=True), [CELL] * 40, [CELL] * 41),
        *(partial(grid_counts, exact_size=False), 20_000, np.inf),
    ),
}
