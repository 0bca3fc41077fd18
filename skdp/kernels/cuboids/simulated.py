"""Variances of reconstructions without a closed form (L1 and Linf), by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from ..._random import sampling_generator
from ..._types import FloatArray
from .l2 import without_means
from .lattices import Lattice

__all__ = ["simulated_interactions"]


def simulated_interactions(
    cube: Lattice,
    rates: Mapping[int, float],
    reconstruct: Callable[[dict[int, FloatArray]], dict[int, FloatArray]],
    runs: int,
) -> FloatArray:
    """Variance of the interactions of a reconstruction without closed form, from noise alone.

    The error of a reconstruction that commutes with adding consistent tables does not depend on
    the truth, and it is the same for all cells of a cuboid: so noise on an empty cube gives the
    variances, with all cells and runs pooled. No data are read.

    Parameters
    ----------
    cube : Lattice
    rates : mapping of int to float
        The noise of each measured cuboid is discrete Laplace of ratio exp(-rate).
    reconstruct : callable
        From noisy tables to tables that agree.
    runs : int
        Number of simulated reconstructions.

    Returns
    -------
    ndarray of float64, shape (m,)
        As from `interaction_variances`.
    """
    rng = sampling_generator(2)
    squares: dict[int, float] = {}
    for _ in range(runs):
        noisy = {}
        for mask, rate in rates.items():
            # The difference of two geometric numbers has the discrete Laplace distribution.
            one, other = rng.geometric(-math.expm1(-rate), (2, *cube.shape(mask)))
            noisy[mask] = (one - other).astype(np.float64)
        for mask, table in reconstruct(noisy).items():
            squares[mask] = squares.get(mask, 0.0) + float((without_means(table) ** 2).sum())
    variances = np.where(cube.freedom > 0, np.inf, 0.0)
    for mask, total in squares.items():
        place = cube.position[mask]
        if cube.freedom[place]:
            variances[place] = total / (runs * cube.freedom[place])
    return variances
