"""Coefficients of noisy tables in one orthonormal basis of nested groups of codes.

Tables of several columns are measured over groups of codes. The groups of a column are nested, and
each level has groups of equally many *units*, its finest groups. In the tensor product of
orthonormal bases that follow these levels, every measured table is a set of coefficients with one
known variance, for each subset of its columns. Looks at the same coefficient are averaged by their
precision; that is the best linear unbiased estimate from everything measured, and its errors are
uncorrelated (`docs/theory/marginals`). Post-processing of released numbers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import BoolArray, FloatArray, IntArray

__all__ = ["Coefficients", "EffectLaw", "Ladder", "Look", "MeasuredSums", "along", "basis_of"]

Axes = tuple[int, ...]

# Variances of effects that are told apart: how many, and the least as a part of that of the noise.
_EFFECTS, _LEAST_EFFECT = 60, 1e-3
# Steps until their law hardly changes, and most groups that it is found from.
_STEPS, _MOST_GROUPS = 50, 4000
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


class Ladder(NamedTuple):
    """Nested groups of the codes of a column.

    Attributes
    ----------
    units : ndarray of int64, shape (n_codes,)
        Unit of each code; consecutive units belong together. Some units may hold no code.
    sizes : tuple of int
        Number of groups of each level, from 1 to the number of units. Each divides the next.
    """

    units: IntArray
    sizes: tuple[int, ...]

    @property
    def n_units(self) -> int:
        """Number of units."""
        return self.sizes[-1]

    def groups(self, size: int) -> IntArray:
        """Group of each code at the level that has so many groups."""
        return self.units // (self.n_units // size)

    def sums(self, values: FloatArray, size: int | None = None) -> FloatArray:
        """Sums of values of codes over the groups of a level, by default over units."""
        size = self.n_units if size is None else size
        found = np.bincount(self.groups(size), weights=values, minlength=size)
        return found.astype(np.float64, copy=False)


@functools.cache
def basis_of(sizes: tuple[int, ...]) -> FloatArray:
    """Orthonormal functions of units, one a column: those of coarser levels first.

    The first ``sizes[level]`` functions are constant on the groups of that level.
    """
    n_units = sizes[-1]
    found = [np.full((n_units, 1), n_units**-0.5)]
    for coarse, fine in zip(sizes[:-1], sizes[1:], strict=True):
        parts = fine // coarse
        # Contrasts of the parts of one group: Helmert's.
        contrasts = np.zeros((parts, parts - 1))
        for column in range(parts - 1):
            contrasts[: column + 1, column] = 1.0
            contrasts[column + 1, column] = -(column + 1.0)
        contrasts /= np.sqrt((contrasts**2).sum(axis=0))
        block = np.kron(np.eye(coarse), contrasts)
        found.append(np.repeat(block, n_units // fine, axis=0) / math.sqrt(n_units // fine))
    matrix = np.concatenate(found, axis=1)
    matrix.flags.writeable = False
    return matrix


class Look(NamedTuple):
    """Averaged coefficients of one subset of columns, without those of its subsets.

    Attributes
    ----------
    values, precision : ndarray of float64
        One axis a column, over all functions but the constant one. Precision 0: not measured.
    """

    values: FloatArray
    precision: FloatArray

    @property
    def variances(self) -> FloatArray:
        """Variance of each coefficient; 0 where it was not measured."""
        found = np.zeros_like(self.precision)
        np.divide(1.0, self.precision, out=found, where=self.precision > 0)
        return found


class Coefficients:
    """What noisy tables tell of each subset of columns.

    Parameters
    ----------
    ladders : mapping of int to Ladder
        Of every column that tables hold.
    """

    def __init__(self, ladders: Mapping[int, Ladder]) -> None:
        self.ladders = dict(ladders)
        self.looks: dict[Axes, Look] = {}
        # The finest tables: numbers of groups of each column.
        self.grids: dict[Axes, tuple[int, ...]] = {}

    def over(self, ladders: Mapping[int, Ladder]) -> Coefficients:
        """The same looks, over ladders of the same sizes."""
        found = Coefficients(ladders)
        found.looks, found.grids = dict(self.looks), dict(self.grids)
        return found

    def add(self, axes: Axes, counts: NDArray[Any], variance: float) -> None:
        """Add a noisy table, one axis a column over the groups of some level.

        Parameters
        ----------
        axes : tuple of int
            Ascending.
        counts : ndarray
        variance : float
            Of the noise of a cell.
        """
        sizes = counts.shape
        self._remember(axes, sizes)
        hat = self._forward(axes, np.asarray(counts, dtype=np.float64))
        for inner in _subsets(len(axes)):
            part = tuple(axes[place] for place in inner)
            at = tuple(slice(1, None) if position in inner else 0 for position in range(len(axes)))
            outside = math.prod(sizes[p] for p in range(len(axes)) if p not in inner)
            inside = math.prod(sizes[p] / self.ladders[axes[p]].n_units for p in inner)
            self.average(
                part,
                hat[at] * math.sqrt(outside * inside),
                variance * outside * inside,
            )

    def _remember(self, axes: Axes, sizes: tuple[int, ...]) -> None:
        for order in range(2, len(axes) + 1):
            for inner in combinations(range(len(axes)), order):
                part = tuple(axes[place] for place in inner)
                grid = tuple(sizes[place] for place in inner)
                if math.prod(grid) > math.prod(self.grids.get(part, (0,))):
                    self.grids[part] = grid

    def average(self, axes: Axes, values: FloatArray, variance: float) -> None:
        """Average equally precise values of the coarser coefficients with those known."""
        shape = np.shape(values)
        known = self.looks.get(axes)
        if known is None:
            self.looks[axes] = Look(np.array(values), np.full(shape, 1.0 / variance))
            return
        if any(new > old for new, old in zip(shape, known.values.shape, strict=True)):
            wide = tuple(max(two) for two in zip(shape, known.values.shape, strict=True))
            grown = Look(np.zeros(wide), np.zeros(wide))
            place = tuple(slice(0, size) for size in known.values.shape)
            grown.values[place], grown.precision[place] = known
            self.looks[axes] = known = grown
        place = tuple(slice(0, size) for size in shape)
        before = known.precision[place]
        after = before + 1.0 / variance
        known.values[place] = (known.values[place] * before + values / variance) / after
        known.precision[place] = after

    def _forward(self, axes: Axes, table: FloatArray) -> FloatArray:
        """Coefficients of a table of groups, in the basis of these groups."""
        for place, axis in enumerate(axes):
            table = along(self.functions(axis, table.shape[place]).T, table, place)
        return table

    def functions(self, axis: int, size: int) -> FloatArray:
        """Orthonormal functions of the groups of a level."""
        sizes = self.ladders[axis].sizes
        return basis_of(sizes[: sizes.index(size) + 1])

    def of_table(self, axes: Axes, counts: FloatArray) -> FloatArray:
        """Coefficients of a table over the groups of some level of each column."""
        inside = math.prod(
            size / self.ladders[axis].n_units for axis, size in zip(axes, counts.shape, strict=True)
        )
        hat = self._forward(axes, counts) * math.sqrt(inside)
        return hat[tuple(slice(1, None) for _ in axes)]

    def table(
        self, axes: Axes, sizes: Sequence[int], columns: Mapping[int, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Counts of groups from everything measured, and their variances from the looks.

        Parameters
        ----------
        axes : tuple of int
            Ascending.
        sizes : sequence of int
            Groups of each column.
        columns : mapping of int to ndarray
            Counts of the groups of each column alone, which replace the looks at it.

        Returns
        -------
        counts, variances : ndarray of float64
            Coefficients that were not measured are zero in both.
        """
        hat, spread = np.zeros(tuple(sizes)), np.zeros(tuple(sizes))
        for inner in _subsets(len(axes)):
            look = self.looks.get(tuple(axes[place] for place in inner))
            if look is None or len(inner) == 1:
                continue
            outside = math.prod(sizes[p] for p in range(len(axes)) if p not in inner)
            inside = math.prod(sizes[p] / self.ladders[axes[p]].n_units for p in inner)
            values = look.values[tuple(slice(0, sizes[p] - 1) for p in inner)]
            at = tuple(
                slice(1, 1 + values.shape[inner.index(position)]) if position in inner else 0
                for position in range(len(axes))
            )
            hat[at] = values / math.sqrt(outside * inside)
            cut = tuple(slice(0, size) for size in values.shape)
            spread[at] = look.variances[cut] / (outside * inside)
        for place, axis in enumerate(axes):
            functions = self.functions(axis, sizes[place])
            hat = along(functions, hat, place)
            spread = along(functions**2, spread, place)
        for place, axis in enumerate(axes):
            pure = (columns[axis] - columns[axis].mean()) * sizes[place] / math.prod(sizes)
            shape = [1] * len(axes)
            shape[place] = -1
            hat = hat + pure.reshape(shape)
        return hat, spread


def _subsets(n: int) -> Iterator[tuple[int, ...]]:
    for order in range(n + 1):
        yield from combinations(range(n), order)


def along(matrix: FloatArray, table: FloatArray, place: int) -> FloatArray:
    """Multiply along one axis of a table."""
    return np.moveaxis(np.tensordot(matrix, table, axes=(1, place)), 0, place)


class EffectLaw(NamedTuple):
    """The law of the variances of groups of effects that were seen with noise, all groups together.

    Attributes
    ----------
    variances, shares : ndarray of float64, shape (n_variances,)
        Variances that the effects of a group may have, and how many groups have them.
    """

    variances: FloatArray
    shares: FloatArray

    @classmethod
    def fitted(
        cls, energies: FloatArray, numbers: IntArray, noises: FloatArray, most: float = math.inf
    ) -> EffectLaw:
        """The likeliest law, where one more group would be of any order of size.

        Maximum likelihood of a mixture, by expectation and maximization [1]_.

        Parameters
        ----------
        energies : ndarray of float64, shape (n_groups,)
            Sums of squares of noisy effects; at least one group.
        numbers : ndarray of int, shape (n_groups,)
            How many effects.
        noises : ndarray of float64, shape (n_groups,)
            Variance of the noise of an effect.
        most : float, default=inf
            Largest variance that effects can have.

        References
        ----------
        .. [1] N. Laird. Nonparametric maximum likelihood estimation of a mixing distribution.
           Journal of the American Statistical Association 73(364), 1978.
        """
        most = min(float(np.maximum(energies / np.maximum(numbers, 1), noises).max()), most)
        least = _LEAST_EFFECT * min(float(noises.min()), most)
        tried = np.append(0.0, np.geomspace(least, most, _EFFECTS))
        shares = even = np.full(len(tried), 1.0 / len(tried))
        # Places of a low-discrepancy sequence: no pattern of a table has its period.
        places = (np.arange(min(len(energies), _MOST_GROUPS)) * _GOLDEN % 1.0) * len(energies)
        some = np.unique(places.astype(np.int64)) if len(energies) > _MOST_GROUPS else slice(None)
        likely = cls(tried, even)._likelihoods(energies[some], numbers[some], noises[some])
        for _ in range(_STEPS):
            expected = shares * (likely.T @ (1.0 / (likely @ shares)))
            shares = (expected + even) / (len(likely) + 1)
        return cls(tried, shares)

    def told(
        self, energies: FloatArray, numbers: IntArray, noises: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What is expected of groups, of any shape.

        Returns
        -------
        shares, variances, deviations : ndarray of float64
            Of a noisy effect what is true; of the true effects the variance, and the standard
            deviation of that.
        """
        found = self._likelihoods(energies, numbers, noises) * self.shares
        found /= found.sum(axis=-1, keepdims=True)
        mean = found @ self.variances
        spread = np.sqrt(np.maximum(found @ self.variances**2 - mean**2, 0.0))
        true = self.variances / (self.variances + noises[..., None])
        return (found * true).sum(axis=-1), mean, spread

    def _likelihoods(
        self, energies: FloatArray, numbers: IntArray, noises: FloatArray
    ) -> FloatArray:
        """Of each variance, up to a factor."""
        whole = self.variances + noises[..., None]
        logs = -0.5 * (numbers[..., None] * np.log(whole) + energies[..., None] / whole)
        found: FloatArray = np.exp(logs - logs.max(axis=-1, keepdims=True))
        return found


# Values in measured sums are rounded by up to a part in a million of their range.
_AFFINE = 1e-5


class MeasuredSums(NamedTuple):
    """Noisy sums of a number for each code of another column.

    Attributes
    ----------
    values : ndarray of float64, shape (n_codes,)
        Of each code of the number, less their middle; 0 for codes without a value.
    has_value, missing : ndarray of bool, shape (n_codes,)
        Codes with a value, and those without one that records can have.
    sums, n_missing : ndarray of float64, shape (n_groups,)
        Of the values, and the number of records without one.
    variances : tuple of float
        Of a sum, and of a number of records without a value: 0 if all have one.
    """

    values: FloatArray
    has_value: BoolArray
    missing: BoolArray
    sums: FloatArray
    n_missing: FloatArray
    variances: tuple[float, float]

    def told(self, weights: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Weights of codes, (n_codes, n), as those of records with a value, of it, and of others.

        Returns
        -------
        ndarray of float64, shape (3, n), and for each whether these are the weights.
        """
        basis = np.stack([self.has_value, self.values, self.missing], axis=1).astype(np.float64)
        scale = np.maximum(np.abs(basis).max(axis=0), 1e-300)
        found = np.linalg.lstsq(basis / scale, weights, rcond=None)[0] / scale[:, None]
        away = np.abs(basis @ found - weights).max(axis=0)
        return found, away <= _AFFINE * np.abs(weights).max(axis=0)
