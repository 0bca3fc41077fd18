"""Weighted sums of cells of any cuboids: the law of their noise.

A question is a sum of products: for some sets of dimensions one weight for each code, multiplied
over the dimensions and summed over the cells. Its interactions S have the weights prod_{i in S}
(q_i - mean q_i) * prod_{i not in S} mean q_i, so that its error is known exactly from those of the
interactions, and so is the weight that it gives to each cell of each measured cuboid. Codes with
the same weights are treated together: a box has two kinds in each dimension.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..._types import FloatArray
from .lattices import Lattice, dimensions_of

__all__ = ["Functional", "Terms"]

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
