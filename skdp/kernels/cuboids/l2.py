"""L2 consistency: the tables that agree with each other and are closest in weighted squares.

A table is the sum of its interactions, one part for each set S of its dimensions, which sums to
zero along every dimension of S. Summing a table C over the dimensions outside S keeps the
interactions of S and destroys no other information about them, so least squares decouples: the
estimate for S is the mean of these sums over all measured C that contain S, with weights
1 / (v_C n_C), minus the parts of smaller sets (the means along each axis).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..._types import FloatArray
from .lattices import Lattice, axis_of, dimensions_of


def consistent_l2(
    cube: Lattice, tables: Mapping[int, NDArray], noise: FloatArray
) -> dict[int, FloatArray]:
    """Tables that agree with each other and are closest to the noisy ones in weighted squares.

    The best linear unbiased estimate of every published cuboid: each measured cuboid is weighted
    by the inverse of its noise variance. Exact, in O(d * prod(n_i + 1)) operations.

    Parameters
    ----------
    cube : Lattice
    tables : mapping of int to ndarray
        Noisy table of each measured cuboid.
    noise : ndarray of float64, shape (m,)
        Variance of the noise in each cell of a measured cuboid, inf for those not measured.

    Returns
    -------
    dict of int to ndarray of float64
        The published cuboids that the measured ones determine.
    """
    result = _interactions(cube, *_pool_downward(cube, tables, noise))
    # Add the interactions of all smaller sets, spread evenly over the dimensions they lack.
    for i, size in enumerate(cube.sizes):
        for mask in result:
            if mask >> i & 1:
                result[mask] += np.expand_dims(result[mask ^ 1 << i], axis_of(mask, i)) / size
    return result


def _pool_downward(
    cube: Lattice, tables: Mapping[int, NDArray], noise: FloatArray
) -> tuple[dict[int, FloatArray], dict[int, float]]:
    """For each cuboid the weighted sum of the measured ones above it, and the sum of weights."""
    weighted: dict[int, FloatArray] = {}
    precision: dict[int, float] = {}
    for mask, table in tables.items():
        place = cube.position[mask]
        weight = 1.0 / (noise[place] * cube.cells[place])
        weighted[mask] = weight * np.asarray(table, dtype=np.float64)
        precision[mask] = float(weight)
    # After dimension i, a cuboid without i holds the sums from those that have it.
    for i in range(len(cube.sizes)):
        for mask in [mask for mask in weighted if mask >> i & 1]:
            smaller = mask ^ 1 << i
            summed = weighted[mask].sum(axis=axis_of(mask, i))
            if smaller in weighted:
                weighted[smaller] += summed
                precision[smaller] += precision[mask]
            else:
                weighted[smaller], precision[smaller] = summed, precision[mask]
    return weighted, precision


def _interactions(
    cube: Lattice, weighted: dict[int, FloatArray], precision: dict[int, float]
) -> dict[int, FloatArray]:
    """Estimated interactions of every published cuboid that the measured ones determine."""
    result: dict[int, FloatArray] = {}
    for mask, place in cube.position.items():
        if not cube.published[place]:
            continue
        # Cuboids below come first: one that is missing leaves those above it undetermined.
        if not all(mask ^ 1 << i in result for i in dimensions_of(mask)):
            continue
        if not cube.freedom[place]:
            result[mask] = np.zeros(cube.shape(mask))
        elif mask in weighted:
            result[mask] = without_means(weighted[mask] / precision[mask])
    return result


def without_means(table: FloatArray) -> FloatArray:
    """The residual of a table after subtracting the means along every axis.

    It is the interaction of all dimensions of the table.
    """
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table
