"""PMost ("publishing most"): bring as many cuboids as possible within a bound on the variance."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from ..._types import FloatArray
from .lattices import Lattice
from .plans import Covers, Plan, equal_shares


def plan_pmost(
    cube: Lattice, limit: float, noise_of: Callable[[int], float], weights: FloatArray | None = None
) -> Plan:
    """Sources with equal budgets that bring most cuboids within a bound on the variance.

    For every number of sources a greedy cover chooses them. The set with the largest total worth
    of cuboids within the bound wins; ties are broken by the smaller variances.

    Parameters
    ----------
    cube : Lattice
    limit : float
        Bound on the cell variance of a cuboid.
    noise_of : callable
        Noise variance in the cells of each of s sources with equal budgets.
    weights : ndarray of float64, shape (m,), optional
        Worth of publishing each cuboid; all the same by default.

    Raises
    ------
    ValueError
        If no cuboid can meet the bound.
    """
    covers = Covers.of(cube)
    worth = np.ones(len(cube)) if weights is None else weights
    worth = worth[cube.published]
    best: tuple[float, float, list[int]] | None = None
    for count in range(1, int(cube.published.sum()) + 1):
        # 1e-9: so that a bound copied from the figures of a plan is met.
        threshold = limit * (1 + 1e-9) / noise_of(count)
        if threshold < 1:
            break
        chosen = list(itertools.islice(covers.greedy(threshold, worth), count))
        growth = covers.growth[chosen].min(axis=0)
        # If the cover needs fewer sources, their budgets are larger and more may meet the bound.
        precise = growth <= limit * (1 + 1e-9) / noise_of(len(chosen))
        gain = float(worth[precise].sum())
        spread = float(worth[precise] @ growth[precise]) * noise_of(len(chosen))
        if best is None or (gain, -spread) > (best[0], -best[1]):
            best = (gain, spread, chosen)
    if best is None or best[0] <= 0:
        raise ValueError(
            f"No cuboid can be published with a cell variance of at most {limit:g}: the whole of "
            f"epsilon in one cuboid gives {noise_of(1):.6g}. Raise max_variance, or epsilon."
        )
    return equal_shares(cube, best[2])
