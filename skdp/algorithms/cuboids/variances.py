"""Variances of cuboids: after weighted least squares, and from the one best source.

A cuboid C has n_C cells; if it is measured, each of its cells gets noise of the variance v_C.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from .lattice import Lattice, dimensions_of


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


# --- weighted sums of cells of any cuboids: the law of their noise
#
# A question is a sum of products: for some sets of dimensions one weight for each code, multiplied
# over the dimensions and summed over the cells. Its interactions S have the weights prod_{i in S}
# (q_i - mean q_i) * prod_{i not in S} mean q_i, so that its error is known exactly from those of
# the interactions, and so is the weight that it gives to each cell of each measured cuboid. Codes
# with the same weights are treated together: a box has two kinds in each dimension.

Weights = Mapping[int, FloatArray]


class Terms(NamedTuple):
    """Independent noises in an answer: their weights and variances, and how many of each."""

    weight: FloatArray
    variance: FloatArray
    times: FloatArray

    @property
    def total(self) -> float:
        """Variance of the sum."""
        return float((self.times * self.weight**2) @ self.variance)


class Functional:
    """A weighted sum of cells of published cuboids.

    Parameters
    ----------
    cube : Lattice
    parts : sequence of dict of int to ndarray of float64, shape (n_i,)
        Products to be added up: real weights for the codes of some dimensions.
    factors : sequence of float
        A factor for each part.
    """

    def __init__(self, cube: Lattice, parts: Sequence[Weights], factors: Sequence[float]) -> None:
        self._cube = cube
        self._factors = factors
        self._axes = sorted({axis for part in parts for axis in part})
        self._own = [sum(1 << axis for axis in part) for part in parts]
        self._number: dict[int, FloatArray] = {}
        # Weights of each part for each kind of code of an axis, and their means over the codes.
        self._weights: list[dict[int, tuple[FloatArray, float]]] = [{} for _ in parts]
        for axis in self._axes:
            plain = np.ones(cube.sizes[axis])
            listed = np.stack([np.asarray(part.get(axis, plain), float) for part in parts])
            kinds, number = np.unique(listed, axis=1, return_counts=True)
            self._number[axis] = number.astype(np.float64)
            for own, row in zip(self._weights, kinds, strict=True):
                own[axis] = row, float(row @ number) / cube.sizes[axis]

    def variance(self, interactions: FloatArray) -> float:
        """Variance of the answer, from `interaction_variances` or their simulation."""
        total = 0.0
        for mask in self._interactions_within(self._all):
            times = self._outer([self._number[axis] for axis in dimensions_of(mask)])
            square = float((self._component(mask) ** 2 * times).sum())
            total += float(interactions[self._cube.position[mask]]) * square
        return total

    def terms(self, noise: FloatArray, interactions: FloatArray) -> Terms:
        """Weights of the noise in the measured cuboids after weighted least squares.

        Parameters
        ----------
        noise : ndarray of float64, shape (m,)
            Variance in each cell of a measured cuboid, inf for those not measured.
        interactions : ndarray of float64, shape (m,)
            From `interaction_variances`.
        """
        cube, known, found = self._cube, {}, []
        for place in np.flatnonzero(np.isfinite(noise)).tolist():
            mask = int(cube.masks[place])
            inside = mask & self._all
            if inside not in known:
                known[inside] = self._summed(inside, interactions)
            weight = known[inside] / (noise[place] * cube.cells[place])
            found.append(self._of_source(place, weight, noise))
        return _joined(found)

    def terms_of_sources(self, noise: FloatArray, source: Sequence[int]) -> Terms:
        """The same where each cuboid is summed from one measured cuboid.

        Parameters
        ----------
        noise : as for `terms`
        source : sequence of int
            Position of the measured cuboid for each part.
        """
        found = []
        for place in sorted(set(source)):
            inside = int(self._cube.masks[place]) & self._all
            axes = dimensions_of(inside)
            weight = np.zeros([len(self._number[axis]) for axis in axes])
            for factor, own, each in zip(self._factors, self._weights, source, strict=True):
                if each == place:
                    weight += factor * self._outer([own[axis][0] for axis in axes])
            found.append(self._of_source(place, weight, noise))
        return _joined(found)

    def cells(self, measured: Sequence[int]) -> int:
        """Number of weights that `terms` would compute, for measured cuboids by their masks."""
        sizes = {axis: len(number) for axis, number in self._number.items()}
        return sum(
            math.prod(sizes[axis] for axis in dimensions_of(mask & self._all)) for mask in measured
        )

    @property
    def _all(self) -> int:
        return sum(1 << axis for axis in self._axes)

    def _interactions_within(self, inside: int) -> set[int]:
        """The sets of dimensions, among some, whose interactions matter to a part."""
        found = set()
        for own in self._own:
            subsets = [0]
            for axis in dimensions_of(own & inside):
                subsets += [each | 1 << axis for each in subsets]
            found.update(subsets)
        return found

    def _component(self, mask: int) -> FloatArray:
        """Weights of the interactions of a set of dimensions."""
        axes = dimensions_of(mask)
        result = np.zeros([len(self._number[axis]) for axis in axes])
        for factor, own, held in zip(self._factors, self._own, self._weights, strict=True):
            # A part without one of the dimensions does not depend on their interactions.
            if not mask & ~own:
                rest = math.prod(mean for axis, (_, mean) in held.items() if not mask >> axis & 1)
                inside = self._outer([held[axis][0] - held[axis][1] for axis in axes])
                result += factor * rest * inside
        return result

    def _summed(self, inside: int, interactions: FloatArray) -> FloatArray:
        """Weights of all interactions within some dimensions, spread over these."""
        cube, axes = self._cube, dimensions_of(inside)
        result = np.zeros([len(self._number[axis]) for axis in axes])
        for mask in self._interactions_within(inside):
            place = cube.position[mask]
            shape = [len(self._number[axis]) if mask >> axis & 1 else 1 for axis in axes]
            # The inverse of the precision with which they are known.
            known = interactions[place] * cube.cells[place]
            result += known * self._component(mask).reshape(shape)
        return result

    def _of_source(self, place: int, weight: FloatArray, noise: FloatArray) -> Terms:
        """Terms of one measured cuboid."""
        mask = int(self._cube.masks[place])
        axes = dimensions_of(mask & self._all)
        times = self._outer([self._number[axis] for axis in axes])
        others = math.prod(self._cube.sizes[axis] for axis in dimensions_of(mask & ~self._all))
        flat = np.ravel(weight)
        return Terms(flat, np.full(len(flat), noise[place]), np.ravel(times) * others)

    @staticmethod
    def _outer(vectors: Sequence[FloatArray]) -> FloatArray:
        return functools.reduce(np.multiply.outer, vectors, np.ones(()))


def _joined(terms: Sequence[Terms]) -> Terms:
    return Terms(*(np.concatenate(each) for each in zip(*terms, strict=True)))
