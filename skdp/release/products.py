"""Products of weights: what marginals answer, and covariances of the errors of many at once.

An error is a sum of independent ones: of the total, of each single column, and of each set of two
and more columns. Of each the covariance of two products is an inner product of what the products
have there, times how much of it meets their other conditions (`docs/theory/marginals`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from .._validation import BoolArray, FloatArray, IntArray
from ..domain.query import Query, Weights, weights_in
from .basis import by_attributes, cut_shares, under

__all__ = ["Products", "covariances", "lumps"]

Axes = tuple[int, ...]
# Weights of codes, (n_codes, n), of some columns.
Stacked = dict[int, FloatArray]
# Covariances of errors of some products with others.
Covariance = Callable[[IntArray, IntArray], FloatArray]
# Features of some weights, (n_features, n): of the field of a column, and of chance.
Features = tuple[FloatArray, ...]

# Variance of the records of a bin that a question cuts, as a part of the square of those that stand
# out of its neighbours: all of them may lie at one number, on either side of its end.
_LUMP = 0.3
# What rounding may leave of zero: of a weight, and of the variance of the weights of a group.
_ROUNDING = 1e-9
# Most columns of a set that was not measured whose deviation is allowed for.
_MOST_TOGETHER = 3
# Numbers of the widest column that are computed together.
_AT_ONCE = 1 << 20


class Part(NamedTuple):
    """One product of weights: of codes, and what is constant."""

    factor: float
    weights: dict[int, FloatArray]


def _parts(model: Any, products: Sequence[Weights]) -> list[Part]:
    """Weights without columns that do not matter; an array is looked at once."""
    vectors: dict[int, dict[int, FloatArray]] = {}
    for weights in products:
        for axis, vector in weights.items():
            vectors.setdefault(axis, {})[id(vector)] = vector
    seen = {axis: _alone(model, axis, own) for axis, own in vectors.items()}
    found = []
    for weights in products:
        factor, left = 1.0, {}
        for axis, vector in weights.items():
            alike, inside = seen[axis][id(vector)]
            factor *= alike
            if inside is not None:
                left[axis] = inside
        factor *= _allowed(model, left)
        found.append(Part(factor, left if factor else {}))
    return found


def _alone(
    model: Any, axis: int, vectors: Mapping[int, FloatArray]
) -> dict[int, tuple[float, FloatArray | None]]:
    """The weight that all codes of a column have, or 1 and the weights of those possible."""
    allowed = model.possible.get((axis,), True)
    table = np.array([*vectors.values()], dtype=np.float64)
    inside = table if allowed is True else table[:, allowed]
    alike = (inside == inside[:, :1]).all(axis=1) | (axis not in model.columns)
    table *= allowed
    return {
        name: (first, None) if constant else (1.0, weights)
        for name, first, constant, weights in zip(
            vectors, inside[:, 0].tolist(), alike.tolist(), table, strict=True
        )
    }


def _allowed(model: Any, weights: Weights) -> bool:
    """Whether public rules leave any record that meets the conditions."""
    for axes, allowed in model.possible.items():
        if len(axes) > 1 and all(axis in weights for axis in axes):
            chosen = [np.flatnonzero(weights[axis]) for axis in axes]
            if not allowed[np.ix_(*chosen)].any():
                return False
    return True


class Asked:
    """Products of weights of the same columns: what of an error of some meets the others."""

    def __init__(self, model: Any, axes: Axes, weights: Stacked) -> None:
        self._model, self._axes, self._weights = model, axes, weights
        self.means = {axis: model.mean_of(axis, axes) @ weights[axis] for axis in axes}
        self.shared = len(axes) > 2 and axes not in model.coefficients.looks
        self._shares: dict[frozenset[int], FloatArray] = {}

    @property
    def rows(self) -> FloatArray:
        """Share of the rows under the weights."""
        return self._rows_with(frozenset(), {})

    def _rows_with(self, key: frozenset[int], kept: Stacked) -> FloatArray:
        if key not in self._shares:
            self._shares[key] = self._model.of_rows(self._axes, self._weights | kept)
        return self._shares[key]

    def answers(self) -> FloatArray:
        """Expected counts, of at least one column."""
        model, axes, weights = self._model, self._axes, self._weights
        if model.cells is not None:
            return model.total * self.rows
        if len(axes) == 1:
            alone: FloatArray = model.columns[axes[0]].counts @ weights[axes[0]]
            return alone
        found = model.total * self.rows
        for axis in axes:
            residual = model.column_residual(axis)
            alone = residual @ weights[axis] - self.means[axis] * residual.sum()
            found += alone * self.outside((axis,))
        for part in model.measured(axes):
            hats = [
                model.bases[axis].coefficients(weights[axis], size)
                for axis, size in zip(part, model.sizes(part), strict=True)
            ]
            found += under(model.corrected(part), hats) * self.outside(part)
        if self.shared:
            # Corrections that are shared out leave no count below zero.
            plain = np.all([(each >= 0).all(axis=0) for each in weights.values()], axis=0)
            found = np.where(plain, np.maximum(found, 0.0), found)
        return found

    def among(self, axis: int) -> FloatArray:
        """Share of the rows with weight on a column that meets the conditions on the others."""
        if len(self._axes) == 1:
            return np.ones(1)
        alone = self._model.of_rows((axis,), self._weights)
        return np.divide(self.rows, alone, out=np.zeros_like(alone), where=alone > 0)

    def outside(self, part: Axes) -> FloatArray:
        """How much of an error of some columns meets the conditions on the others.

        Where no table holds all of them, as much as of the rows with weight on these columns, and
        of one record more: where rows have nothing in common, nothing is corrected. So sums and
        counts under one condition are shared out alike, and means agree with both. Counts are not
        negative then. They need not add up to those of fewer columns.
        """
        means = [self.means[axis] for axis in self._axes if axis not in part]
        others: FloatArray = np.prod(means, axis=0) if means else np.ones(1)
        if not self.shared or not part or not means:
            return others
        rows = max(self._model.total, 1.0)
        kept = {axis: _on(self._weights[axis]) for axis in part}
        # Conditions are their own; only values are replaced.
        key = frozenset(a for a in part if not np.array_equal(kept[a], self._weights[a]))
        meeting = self._model.of_rows(part, kept)
        return (rows * self._rows_with(key, kept) + others) / (rows * meeting + 1.0)


class _Given:
    """Weights of the codes of one column, (n_codes, n), in all products that have any."""

    def __init__(self, model: Any, axis: int, weights: FloatArray) -> None:
        self.basis, self.column, self.weights = model.bases[axis], model.columns[axis], weights
        self._features: dict[int | None, Features] = {}
        self._squares: dict[Any, FloatArray] = {}

    @functools.cached_property
    def are_shares(self) -> BoolArray:
        """Whether the weights are shares of codes."""
        found: BoolArray = (self.weights.min(axis=0) >= 0) & (self.weights.max(axis=0) <= 1)
        return found

    @functools.cached_property
    def cut(self) -> FloatArray:
        """`cut_shares` of the weights."""
        cut = ((self.weights > 0) & (self.weights < 1)).any()
        return cut_shares(self.weights) if cut else np.zeros((1, 1))

    @functools.cached_property
    def cuts(self) -> bool:
        """Whether any code is covered in part."""
        return bool(self.cut.any())

    @functools.cached_property
    def shares(self) -> FloatArray:
        """Shares of the records, as far as the weights are shares of codes."""
        found: FloatArray = self.basis.mass @ self.weights
        return found

    @functools.cached_property
    def noise(self) -> FloatArray:
        """Standard deviations of the counts of the column under the weights."""
        found: FloatArray = np.sqrt(self.column.variance(self.weights))
        return found

    @functools.cached_property
    def ends(self) -> Features:
        """Features of the codes that are covered in part."""
        ends: Features = self.basis.ends(self.cut)
        return ends

    def features(self, size: int | None = None) -> Features:
        """Features of the weights, or of their means in so many groups."""
        if size not in self._features:
            weights = self.weights
            if size is not None:
                weights = self.basis.means(weights, size)[self.basis.ladder.groups(size)]
            self._features[size] = self.basis.features(weights)
        return self._features[size]

    def inner(self, law: int, sizes: tuple[Any, Any], i: IntArray, j: IntArray) -> FloatArray:
        """Inner products of features of weights i in some groups with those of weights j."""
        first, second = (self.features(size)[law] for size in sizes)
        ends = self.ends[law] if self.cuts and sizes == (None, None) else None
        if not np.array_equal(i, j):
            found = _inner(first, second, i, j)
            return found if ends is None else found + _inner(ends, ends, i, j)
        key = law, frozenset(sizes)
        if key not in self._squares:
            found = np.einsum("kp,kp->p", first, second)
            self._squares[key] = found if ends is None else found + (ends**2).sum(axis=0)
        return self._squares[key][i]


def covariances(model: Any, blocks: Sequence[Sequence[Query]]) -> FloatArray:
    """Covariances of the errors of the answers of each block of equally many, (n_blocks, k, k)."""
    k = max(map(len, blocks), default=1)
    found = np.zeros((len(blocks), k, k))
    every = (query for block in blocks for query in block)
    step = max(1, _AT_ONCE // (k * max(map(len, weights_in(every)), default=1)))
    for start in range(0, len(blocks), step):
        found[start : start + step] = _of_blocks(model, blocks[start : start + step])
    return found


def _of_blocks(model: Any, blocks: Sequence[Sequence[Query]]) -> FloatArray:
    n, k = len(blocks), len(blocks[0])
    numbers = np.array([len(query.products) for block in blocks for query in block])
    owner = np.repeat(np.arange(n * k), numbers)
    of_block = numbers.reshape(n, k).sum(axis=1)
    starts = np.cumsum(of_block) - of_block
    # Each product with those before it in its block, and with itself.
    before = np.arange(len(owner)) - np.repeat(starts, of_block) + 1
    i = np.repeat(np.arange(len(owner)), before)
    j = np.arange(len(i)) - np.repeat(np.cumsum(before), before) + i + 1
    products = [each for block in blocks for query in block for each in query.products]
    told = Products(model, products).covariances(i, j)
    # Of two different products both orders count.
    twice = np.flatnonzero(i != j)
    i, j = np.append(i, j[twice]), np.append(j, i[twice])
    places = owner[i] * k + owner[j] % k
    sums = np.bincount(places, np.append(told, told[twice]), n * k * k)
    found: FloatArray = sums.astype(np.float64, copy=False).reshape(n, k, k)
    diagonal = np.arange(k)
    found[:, diagonal, diagonal] = np.maximum(found[:, diagonal, diagonal], 0.0)
    return found


class Products:
    """Products of weights: what is answered, and the independent errors that they have.

    Parameters
    ----------
    model : ViewsModel
    products : sequence of mapping of int to ndarray
    """

    def __init__(self, model: Any, products: Sequence[Weights]) -> None:
        self.model, self.parts = model, _parts(model, products)
        alike = by_attributes([part.weights for part in self.parts])
        self.groups = {axes: np.array(own) for axes, own in alike.items()}
        self.factors = np.array([part.factor for part in self.parts])
        self.given: dict[int, _Given] = {}
        # Where the weights of each product stand.
        self.at: dict[int, IntArray] = {}
        for axis in dict.fromkeys(axis for axes in self.groups for axis in axes):
            self._give(axis)

    def answers(self) -> FloatArray:
        """Expected counts under the weights."""
        found = np.zeros(len(self.parts))
        for axes, members in self.groups.items():
            asked = self._asked(axes, members).answers() if axes else self.model.total
            found[members] = self.factors[members] * asked
        return found

    def covariances(self, i: IntArray, j: IntArray) -> FloatArray:
        """Covariances of the errors of products i with those of products j."""
        found = np.zeros(len(i))
        for times, covariance in self._terms():
            scale = times[i] * times[j]
            both = np.flatnonzero(scale)
            if len(both):
                found[both] += scale[both] * covariance(i[both], j[both])
        return found

    def _give(self, axis: int) -> None:
        """Stack the weights of a column; products of groups share most of them."""
        own = [place for place, part in enumerate(self.parts) if axis in part.weights]
        vectors = [self.parts[place].weights[axis] for place in own]
        # Beside other columns means are others.
        beside = [tuple(sorted(self.parts[place].weights)) for place in own]
        keys = [
            (id(vector), id(self.model.mean_of(axis, axes)))
            for axes, vector in zip(beside, vectors, strict=True)
        ]
        places: dict[Any, int] = {}
        at = [places.setdefault(key, len(places)) for key in keys]
        first = np.unique(at, return_index=True)[1]
        weights = np.stack([vectors[place] for place in first.tolist()], axis=1)
        self.given[axis] = _Given(self.model, axis, weights)
        self.at[axis] = np.zeros(len(self.parts), dtype=np.int64)
        self.at[axis][own] = at

    def weights(self, axes: Axes, members: IntArray) -> Stacked:
        """Weights of some products."""
        return {axis: self.given[axis].weights[:, self.at[axis][members]] for axis in axes}

    def _terms(self) -> Iterator[tuple[FloatArray, Covariance]]:
        """Independent errors: how often each product has them, and their covariances."""
        n = len(self.parts)
        times: dict[Axes, FloatArray] = {}
        means = {axis: np.zeros(given.weights.shape[1]) for axis, given in self.given.items()}
        for axes, members in self.groups.items():
            asked, factors = self._asked(axes, members), self.factors[members]
            for axis in axes:
                means[axis][self.at[axis][members]] = asked.means[axis]
                if self.given[axis].cuts:
                    cut = np.zeros(n)
                    cut[members] = factors * asked.among(axis)
                    yield cut, self._within_codes(axis)
            for part in _sets(self.model, axes):
                times.setdefault(part, np.zeros(n))[members] = factors * asked.outside(part)
        for part, often in times.items():
            if not part:
                yield often, lambda i, j: np.full(len(i), self.model.total_variance)
            elif len(part) == 1:
                yield often, self._of_one(part[0], means[part[0]])
            else:
                yield often, self._of_several(part, np.flatnonzero(often))

    def _asked(self, axes: Axes, members: IntArray) -> Asked:
        return Asked(self.model, axes, self.weights(axes, members))

    def _within_codes(self, axis: int) -> Covariance:
        """Records of a code that a range cuts may lie anywhere in it."""
        given, at = self.given[axis], self.at[axis]
        own = (given.cut > 0) * lumps(given.column.counts)[:, None]
        return lambda i, j: _inner(own, own, at[i], at[j])

    def _of_one(self, axis: int, means: FloatArray) -> Covariance:
        given, at = self.given[axis], self.at[axis]
        own = given.weights - means
        other = given.column.covariance(own)
        return lambda i, j: _inner(own, other, at[i], at[j])

    def _of_several(self, axes: Axes, members: IntArray) -> Covariance:
        """Of two and more columns: what measured coefficients leave open, and what is beyond."""
        model, at = self.model, [self.at[axis] for axis in axes]
        given = [self.given[axis] for axis in axes]
        # Of how many groups of each column the means have features; what tables of groups answer is
        # taken off.
        grouped: list[tuple[int | None, ...]] = [(None,) * len(axes)]
        coefficients = []
        if axes in model.coefficients.looks:
            sizes = model.sizes(axes)
            both = list(zip(given, sizes, strict=True))
            coefficients = [each.basis.coefficients(each.weights, size) for each, size in both]
            whole = all(each.basis.is_whole(size) and not each.cuts for each, size in both)
            grouped = [] if whole else [*grouped, sizes]
        scales = self.records**2 * model.believed.scale(axes), self.records

        def beyond(i: IntArray, j: IntArray) -> FloatArray:
            found = np.zeros(len(i))
            for (law, scale), one, other in product(enumerate(scales), grouped, grouped):
                told = np.full(len(i), scale if one is other else -scale)
                for place, each, *sizes in zip(at, given, one, other, strict=True):
                    told *= each.inner(law, (sizes[0], sizes[1]), place[i], place[j])
                found += told
            return found

        density, lost = np.ones(len(self.parts)), np.zeros(len(self.parts))
        if coefficients:
            hats = [each[:, to[members]] for each, to in zip(coefficients, at, strict=True)]
            lost[members] = model.lost(axes, hats)
        if len(axes) == 2 and grouped:
            density[members] = self._density(axes, members, beyond)

        def covariance(i: IntArray, j: IntArray) -> FloatArray:
            found: FloatArray = density[i] * density[j] * beyond(i, j)
            if coefficients:
                variance = model.believed.belief(axes).variance
                pairs = zip(coefficients, at, strict=True)
                found += under(variance, [each[:, to[i]] * each[:, to[j]] for each, to in pairs])
            return found + lost[i] * lost[j]

        return covariance

    @property
    def records(self) -> float:
        """Number of records, at least one."""
        return max(self.model.total, 1.0)

    def _density(self, axes: Axes, members: IntArray, beyond: Covariance) -> FloatArray:
        """How densely records lie under two conditions, as a part of independent columns' counts.

        As in the rows, and at least as in columns whose shares are as large as noise lets them be.
        Where records lie densely, what is not known of them is more. It is no more than the columns
        allow, and the groups of a table.
        """
        given = [(self.given[axis], self.at[axis][members]) for axis in axes]
        plain: BoolArray = np.logical_and(*(each.are_shares[at] for each, at in given))
        expected = np.prod([each.shares[at] for each, at in given], axis=0)
        first, second = (np.hypot(each.shares, each.noise / self.records)[at] for each, at in given)
        rows = self.model.of_rows(axes, self.weights(axes, members))
        found = np.maximum(rows, first * second) / np.maximum(expected, 1e-12)
        found = np.where(plain, found, 1.0)
        known = axes in self.model.coefficients.looks
        most = self._left_by_table(axes, members) if known else _most(self.records, first, second)
        own = np.where(plain, found**2 * beyond(members, members), 0.0)
        found = found * np.sqrt(np.minimum(most / np.maximum(own, 1e-300), 1.0))
        return found

    def _left_by_table(self, axes: Axes, members: IntArray) -> FloatArray:
        """Variance that a table leaves to counts whose conditions cut its groups.

        Of the records of a group that one condition cuts, the table says how many meet the other.
        """
        sides = []
        for axis, size in zip(axes, self.model.sizes(axes), strict=True):
            basis = self.given[axis].basis
            weights = self.given[axis].weights[:, self.at[axis][members]]
            means, squares = basis.means(weights, size), basis.means(weights**2, size)
            held = basis.ladder.sums(basis.mass, size)[:, None] > 0
            sides.append((means, held & (squares - means**2 > _ROUNDING)))
        table, found = self.model.rows_in_groups(axes), np.zeros(len(members))
        for counts, (own, cut), (other, _) in ((table, *sides), (table.T, *reversed(sides))):
            records = counts.sum(axis=1)[:, None]
            share = np.divide(counts @ other, records, out=np.zeros_like(own), where=records > 0)
            found += (cut * _most(records, own, share)).sum(axis=0)
        return found


def _on(weights: FloatArray) -> FloatArray:
    """One for each code with a weight, beyond what rounding leaves of zero."""
    return 1.0 * (np.abs(weights) > _ROUNDING * np.abs(weights).max(axis=0))


def _sets(model: Any, axes: Axes) -> Iterator[Axes]:
    """Sets of columns that have an error of their own: of few columns, and measured ones."""
    for order in range(min(len(axes), _MOST_TOGETHER) + 1):
        yield from combinations(axes, order)
    yield from (part for part in model.measured(axes) if len(part) > _MOST_TOGETHER)


def lumps(counts: FloatArray) -> FloatArray:
    """Deviations of the parts of codes that a range covers in part.

    Records of a code may lie anywhere in it, the more so the more its count differs from those of
    its neighbours.
    """
    counts = np.maximum(counts, 0.0)
    steps = np.abs(np.diff(counts)) / np.maximum(counts[1:] + counts[:-1], 1e-300)
    return math.sqrt(_LUMP) * counts * np.maximum(np.append(steps, 0.0), np.append(0.0, steps))


def _most(records: float | FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Variance of counts of two columns that may be anything that the columns allow."""
    expected = first * second
    high = np.minimum(first, second) - expected
    low = expected - np.maximum(first + second - 1.0, 0.0)
    half = np.maximum(records * np.maximum(high, low), 1.0)
    return half**2 / 3.0


def _inner(first: FloatArray, second: FloatArray, i: IntArray, j: IntArray) -> FloatArray:
    """Inner products of columns i of one array with columns j of another."""
    if first.shape[1] ** 2 <= 8 * len(i):
        whole: FloatArray = (first.T @ second)[i, j]
        return whole
    if np.array_equal(i, j):
        same: FloatArray = np.einsum("kp,kp->p", first, second)[i]
        return same
    return np.einsum("kp,kp->p", first[:, i], second[:, j])
