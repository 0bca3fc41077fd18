"""Variances of cuboids: after weighted least squares, and from the one best source.

A cuboid C has n_C cells; if it is measured, each of its cells gets noise of the variance v_C.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..._types import FloatArray
from .lattices import Lattice, dimensions_of

__all__ = [
    "best_sources",
    "blue_variances",
    "box_variances",
    "cell_variances",
    "derive",
    "interaction_variances",
]


def interaction_variances(cube: Lattice, noise: FloatArray) -> FloatArray:
    """Variance of the interactions after weighted least squares.

    Parameters
    ----------
    cube : Lattice
    noise : ndarray of float64, shape (m,)
        Variance of the noise in each cell of a measured cuboid, inf for those not measured.

    Returns
    -------
    ndarray of float64, shape (m,)
        For each set S of dimensions the number u_S such that the estimated interactions S (a
        table over S that sums to zero along each axis) have the covariance u_S times the
        projection onto such tables. inf where no measured cuboid contains S, 0 where S has a
        dimension of one value and hence no interactions.

    Notes
    -----
    Tables split into orthogonal spaces of interactions, one for each set S of dimensions, and
    least squares decouples: the interactions S are estimated from all measured cuboids C that
    contain S, with weights 1 / (v_C n_C). With Omega_S the sum of these, u_S = 1 / (n_S Omega_S).
    """
    precision = cube.above @ (1.0 / (noise * cube.cells))
    result = np.zeros(len(cube))
    free = cube.freedom > 0
    with np.errstate(divide="ignore"):
        result[free] = 1.0 / (cube.cells[free] * precision[free])
    return result


def cell_variances(cube: Lattice, interactions: FloatArray) -> FloatArray:
    """Variance in each cell of every cuboid, from those of the interactions.

    A cell of A is the sum over S in A of its interaction S times n_S / n_A, and the projection
    has prod_{i in S} (1 - 1 / n_i) on its diagonal.
    """
    return (cube.below @ (cube.freedom * cube.cells * interactions)) / cube.cells**2


def blue_variances(cube: Lattice, noise: FloatArray) -> FloatArray:
    """Cell variance of every cuboid after weighted least squares.

    Parameters
    ----------
    cube : Lattice
    noise : ndarray of float64, shape (m,)
        Variance of the noise in each cell of a measured cuboid, inf for those not measured.

    Returns
    -------
    ndarray of float64, shape (m,)
        inf where the measured cuboids do not determine the cuboid.
    """
    return cell_variances(cube, interaction_variances(cube, noise))


def box_variances(
    cube: Lattice, mask: int, interactions: FloatArray, weights: Sequence[FloatArray]
) -> FloatArray:
    """Variance of weighted sums of cells of one cuboid, exactly.

    Parameters
    ----------
    cube : Lattice
    mask : int
        The cuboid.
    interactions : ndarray of float64, shape (m,)
        From `interaction_variances`.
    weights : sequence of ndarray of float64, shape (k_i, n_i)
        For each dimension of the cuboid k_i vectors of weights.

    Returns
    -------
    ndarray of float64, shape (k_1, k_2, ...)
        For each combination of vectors q_1, q_2, ...: the variance of the sum of the cells
        weighted by the product q_1 q_2 ...

    Notes
    -----
    n_A**-2 * sum over S in A of n_S**2 u_S * prod_{i in S} (|q_i|**2 - (sum q_i)**2 / n_i) *
    prod_{i not in S} (sum q_i)**2.
    """
    dimensions = dimensions_of(mask)
    result = np.zeros((2,) * len(dimensions))
    for corner in itertools.product((0, 1), repeat=len(dimensions)):
        part = sum(1 << i for i, inside in zip(dimensions, corner, strict=True) if inside)
        place = cube.position[part]
        result[corner] = cube.cells[place] ** 2 * interactions[place]
    for vectors in weights:
        squared_sum = vectors.sum(axis=1) ** 2
        inside = (vectors**2).sum(axis=1) - squared_sum / vectors.shape[1]
        # Takes the axis of one dimension from the front and puts its vectors at the end.
        factors = np.stack([squared_sum, np.maximum(inside, 0.0)])
        result = np.tensordot(result, factors, axes=([0], [0]))
    return result / cube.cells[cube.position[mask]] ** 2


def best_sources(cube: Lattice, noise: FloatArray) -> tuple[FloatArray, NDArray[np.intp]]:
    """Cell variance of every cuboid when it is summed from the one best source above it.

    Returns
    -------
    variances : ndarray of float64, shape (m,)
        inf where no measured cuboid is above.
    source : ndarray of int, shape (m,)
        Position of that source, -1 for none.
    """
    best = np.full(len(cube), np.inf)
    source = np.full(len(cube), -1, dtype=np.intp)
    # Small tables first: in a tie, the sums are shorter.
    measured = np.flatnonzero(np.isfinite(noise))
    for place in measured[np.argsort(cube.cells[measured], kind="stable")]:
        below = cube.below_of(place)
        variance = noise[place] * cube.cells[place] / cube.cells[below]
        better = variance < best[below] * (1 - 1e-12)
        best[below[better]] = variance[better]
        source[below[better]] = place
    return best, source


# --- publishing without consistency: every cuboid is summed from its one best source


def derive(
    cube: Lattice, tables: Mapping[int, NDArray], noise: FloatArray
) -> dict[int, FloatArray]:
    """Sum every published cuboid from its one best source; cuboids need not agree.

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
        The published cuboids that lie below a measured one.
    """
    _, source = best_sources(cube, noise)
    return {
        mask: _sum_to(tables[int(cube.masks[source[place]])], int(cube.masks[source[place]]), mask)
        for mask, place in cube.position.items()
        if cube.published[place] and source[place] >= 0
    }


def _sum_to(table: NDArray, mask: int, target: int) -> FloatArray:
    """Sum a table over the dimensions of ``mask`` that ``target`` lacks."""
    axes = tuple(
        axis for axis, dimension in enumerate(dimensions_of(mask)) if not target >> dimension & 1
    )
    return np.asarray(table.sum(axis=axes), dtype=np.float64)
