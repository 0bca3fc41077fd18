"""Products of weights: what marginals answer, and covariances of the errors of many at once.

An error is a sum of independent ones: of the total, of each single column, and of each set of two
and more columns. Of each the covariance of two products is an inner product of what the products
have there, times how much of it meets their other conditions (`docs/theory/marginals`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from .._validation import BoolArray, FloatArray, IntArray, ratio
from ..domain.query import Query, Weights, is_cut, weights_in
from .basis import ColumnEstimate
from .model import by_attributes, kept, under
from .prior import ROUNDING, ColumnBasis, cut_shares

Axes = tuple[int, ...]
# Weights of codes, (n_codes, n), of some columns.
Stacked = dict[int, FloatArray]
# Covariances of errors of some products with others.
Covariance = Callable[[IntArray, IntArray], FloatArray]
# Features of some weights, (n_features, n): of the field of a column, and of chance.
Features = tuple[FloatArray, ...]

# Most columns of a set that was not measured whose deviation is allowed for.
_MOST_TOGETHER = 3
# Numbers of the widest column that are computed together.
_AT_ONCE = 1 << 20


class Asked:
    """Products of weights of the same columns: what of an error of some meets the others."""

    def __init__(self, products: Products, axes: Axes, members: IntArray) -> None:
        self._model, self.axes, self.members = products.model, axes, members
        self._given = {axis: (products.given[axis], products.at[axis][members]) for axis in axes}
        self._weights: Stacked = {axis: of.weights[:, at] for axis, (of, at) in self._given.items()}
        mean_of = self._model.mean_of
        self.means = {axis: mean_of(axis, axes) @ each for axis, each in self._weights.items()}
        self.shared = len(axes) > 2 and axes not in self._model.coefficients.looks
        self._shares: dict[frozenset[int], FloatArray] = {}

    @property
    def rows(self) -> FloatArray:
        """Share of the rows under the weights."""
        return self._rows_with(frozenset(), {})

    def _rows_with(self, key: frozenset[int], kept: Stacked) -> FloatArray:
        if key not in self._shares:
            self._shares[key] = self._model.of_rows(self.axes, self._weights | kept)
        return self._shares[key]

    def answers(self) -> FloatArray:
        """Expected counts."""
        model, axes, weights = self._model, self.axes, self._weights
        if not axes:
            return np.full(len(self.members), model.total)
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
            both = zip((self._given[axis] for axis in part), model.sizes(part), strict=True)
            coefs = [given.coefficients(size)[:, at] for (given, at), size in both]
            found += under(model.corrected(part), coefs) * self.outside(part)
        if self.shared:
            # Corrections that are shared out leave no count below zero.
            plain = np.all([(each >= 0).all(axis=0) for each in weights.values()], axis=0)
            found = np.where(plain, np.maximum(found, 0.0), found)
        return found

    def among(self, axis: int) -> FloatArray:
        """Share of the rows with weight on a column that meets the conditions on the others."""
        if len(self.axes) == 1:
            return np.ones(1)
        return ratio(self.rows, self._model.of_rows((axis,), self._weights))

    def outside(self, part: Axes) -> Any:
        """How much of an error of some columns meets the conditions on the others, 1 or (n,).

        Where no table holds all of them, as much as of the rows with weight on these columns, and
        of one record more: where rows have nothing in common, nothing is corrected. So sums and
        counts under one condition are shared out alike, and means agree with both. Counts are not
        negative then. They need not add up to those of fewer columns.
        """
        means = [self.means[axis] for axis in self.axes if axis not in part]
        others: Any = math.prod(means)
        if not self.shared or not part or not means:
            return others
        rows = max(self._model.total, 1.0)
        # One for each code with a weight, beyond what rounding leaves of zero.
        sizes = {axis: np.abs(self._weights[axis]) for axis in part}
        kept = {axis: 1.0 * (each > ROUNDING * each.max(axis=0)) for axis, each in sizes.items()}
        # Conditions are their own; only values are replaced.
        key = frozenset(a for a in part if not np.array_equal(kept[a], self._weights[a]))
        meeting = self._model.of_rows(part, kept)
        return (rows * self._rows_with(key, kept) + others) / (rows * meeting + 1.0)


class _Given:
    """Weights of the codes of one column, (n_codes, n), in all products that have any."""

    def __init__(self, model: Any, axis: int, weights: FloatArray) -> None:
        self.basis: ColumnBasis = model.bases[axis]
        self.column: ColumnEstimate = model.columns[axis]
        self.weights = weights
        self.cut = cut_shares(weights) if is_cut(weights) else np.zeros((1, 1))
        # Whether any code is covered in part.
        self.cuts = bool(self.cut.any())

    @functools.cached_property
    def are_shares(self) -> BoolArray:
        """Whether the weights are shares of codes."""
        found: BoolArray = (self.weights.min(axis=0) >= 0) & (self.weights.max(axis=0) <= 1)
        return found

    @functools.cached_property
    def shares(self) -> FloatArray:
        """Means of the weights over the records: shares of these, if they are shares of codes."""
        found: FloatArray = self.basis.mass @ self.weights
        return found

    @functools.cached_property
    def spread(self) -> FloatArray:
        """Variances of the weights over the records."""
        found: FloatArray = np.maximum(self.basis.mass @ self.weights**2 - self.shares**2, 0.0)
        return found

    @functools.cached_property
    def covariance(self) -> FloatArray:
        """Covariances of the counts of the column with sums under the weights."""
        return self.column.covariance(self.weights)

    @functools.cached_property
    def noise(self) -> FloatArray:
        """Standard deviations of the counts of the column under the weights."""
        variance = np.einsum("kp,kp->p", self.weights, self.covariance)
        found: FloatArray = np.sqrt(np.maximum(variance, 0.0))
        return found

    @kept
    def means(self, size: int) -> FloatArray:
        """Means of the weights in so many groups."""
        return self.basis.means(self.weights, size)

    def coefficients(self, size: int) -> FloatArray:
        """Coefficients of these means."""
        return self.basis.coefficients(self.means(size))

    @kept
    def _features(self, size: int | None) -> Features:
        """Features of the weights, and with groups those of their means in so many groups."""
        weights = self.weights
        if size is not None:
            grouped = self.means(size)[self.basis.groups(size)]
            weights = np.concatenate([weights, grouped], axis=1)
        return self.basis.features(weights)

    def inner(self, size: int | None, i: IntArray, j: IntArray) -> FloatArray:
        """Inner products of features of weights i with those of weights j, (2, n_pairs, n).

        By the field of a column, and by chance. With groups also of those of the weights with those
        of their means in so many groups, of these with those of the weights, and of the means.
        """
        shifts = (0, self.weights.shape[1]) if size is not None else (0,)
        pairs = [(i + a, j + b) for a, b in product(shifts, shifts)]
        first, second = (np.concatenate(each) for each in zip(*pairs, strict=True))
        laws = self._features(size)
        found = np.array([_inner(law, law, first, second) for law in laws])
        found = found.reshape(len(found), len(shifts) ** 2, len(i))
        if self.cuts:
            found[:, 0] += [_inner(each, each, i, j) for each in self.basis.ends(self.cut)]
        return found


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
    told = model.asked(products).covariances(i, j)
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
        self.model, self.products, self.records = model, products, max(model.total, 1.0)
        if model.possible:
            products = [*map(_Rules(model).applied, products)]
        self.given: dict[int, _Given] = {}
        # Where the weights of each product stand.
        self.at: dict[int, IntArray] = {}
        # Columns that matter to each: a weight that all possible codes have is a factor.
        held: list[list[int]] = [[] for _ in products]
        factors = [1.0] * len(products)
        for axis in sorted({axis for weights in products for axis in weights}):
            # Products of groups share most arrays.
            vectors = {id(each[axis]): each[axis] for each in products if axis in each}
            places = {name: place for place, name in enumerate(vectors)}
            at = [places.get(id(each.get(axis)), 0) for each in products]
            table = np.array([*vectors.values()], dtype=np.float64).T
            allowed = model.possible.get((axis,))
            inside = table if allowed is None else table[allowed]
            alike = ((inside == inside[0]).all(axis=0) | (axis not in model.columns)).tolist()
            first = inside[0].tolist()
            for place, (each, own) in enumerate(zip(products, at, strict=True)):
                if axis in each and alike[own]:
                    factors[place] *= first[own]
                elif axis in each:
                    held[place].append(axis)
            if not all(alike):
                weights = table if allowed is None else table * allowed[:, None]
                self.given[axis], self.at[axis] = _Given(model, axis, weights), np.array(at)
        self.factors = np.array(factors)
        groups = by_attributes(held).items()
        self._asked = [Asked(self, axes, np.array(own)) for axes, own in groups]

    def answers(self) -> FloatArray:
        """Expected counts under the weights."""
        found = np.zeros(len(self.factors))
        for asked in self._asked:
            found[asked.members] += self.factors[asked.members] * asked.answers()
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

    def _terms(self) -> Iterator[tuple[FloatArray, Covariance]]:
        """Independent errors: how often each product has them, and their covariances."""
        n = len(self.factors)
        times: dict[Axes, FloatArray] = {}
        means = {axis: np.zeros(n) for axis in self.given}
        for asked in self._asked:
            members, factors = asked.members, self.factors[asked.members]
            for axis in asked.axes:
                means[axis][members] = asked.means[axis]
                if self.given[axis].cuts:
                    cut = np.zeros(n)
                    cut[members] = factors * asked.among(axis)
                    yield cut, self._within_codes(axis)
            for part in _sets(self.model, asked.axes):
                times.setdefault(part, np.zeros(n))[members] = factors * asked.outside(part)
        for part, often in times.items():
            if not part:
                yield often, lambda i, j: np.full(len(i), self.model.total_variance)
            elif len(part) == 1:
                yield often, self._of_one(part[0], means[part[0]])
            else:
                yield often, self._of_several(part, np.flatnonzero(often))

    def _within_codes(self, axis: int) -> Covariance:
        """Records of a code that a range cuts may lie anywhere in it."""
        given, at = self.given[axis], self.at[axis]
        own = (given.cut > 0) * self.model.lumps(axis)[:, None]
        return lambda i, j: _inner(own, own, at[i], at[j])

    def _of_one(self, axis: int, means: FloatArray) -> Covariance:
        """Of the counts of a column, less the means of the weights times their sum."""
        given, at, of_total = self.given[axis], self.at[axis], self.model.of_total(axis)
        beside, whole = (of_total @ given.weights)[at], of_total.sum()

        def covariance(i: IntArray, j: IntArray) -> FloatArray:
            found = _inner(given.weights, given.covariance, at[i], at[j])
            return found - means[i] * beside[j] - means[j] * (beside[i] - means[i] * whole)

        return covariance

    def _of_several(self, axes: Axes, members: IntArray) -> Covariance:
        """Of two and more columns: what measured coefficients leave open, and what is beyond."""
        model, known = self.model, axes in self.model.coefficients.looks
        given, at = [self.given[axis] for axis in axes], [self.at[axis] for axis in axes]
        # What tables of groups answer is taken off.
        sizes = model.sizes(axes) if known else (None,) * len(axes)
        signs = np.array([1.0, -1.0, -1.0, 1.0] if known else [1.0])
        both = list(zip(given, sizes, strict=True))
        whole = known and all(each.basis.is_whole(size) and not each.cuts for each, size in both)
        field = model.believed.distance(axes) / model.believed.reach(axes)
        scales = np.array([self.records**2 * field, self.records])

        def beyond(i: IntArray, j: IntArray) -> FloatArray:
            pairs = zip(both, at, strict=True)
            told = (each.inner(size, to[i], to[j]) for (each, size), to in pairs)
            found: FloatArray = np.einsum(
                "l,s,lsn->n", scales, signs, functools.reduce(np.multiply, told)
            )
            return found

        (density, own), lost = np.ones((2, len(self.factors))), np.zeros(len(self.factors))
        if not whole:
            own[members] = beyond(members, members)
            if len(axes) == 2:
                density[members] = self._density(axes, members, own[members])
        coefs = [each.coefficients(size) for each, size in both] if known else []
        if known:
            of_members = [coef[:, to[members]] for coef, to in zip(coefs, at, strict=True)]
            lost[members] = model.lost(axes, of_members)

        def covariance(i: IntArray, j: IntArray) -> FloatArray:
            found = np.zeros(len(i))
            if not whole:
                each = own[i] if np.array_equal(i, j) else beyond(i, j)
                found += density[i] * density[j] * each
            if known:
                pairs = [
                    coef[:, to[i]] * coef[:, to[j]] for coef, to in zip(coefs, at, strict=True)
                ]
                found += under(model.believed.belief(axes).variance, pairs)
            return found + lost[i] * lost[j]

        return covariance

    def _density(self, axes: Axes, members: IntArray, own: FloatArray) -> FloatArray:
        """How densely records lie under two conditions, as a part of independent columns' counts.

        As in the rows, and at least as in columns whose shares are as large as noise lets them be.
        Where records lie densely, what is not known of them is more. It is no more than the columns
        allow, and the groups of a table. Of weights that are no shares a covariance is at most the
        product of two spreads, and as likely anything between: both laws hold, and precisions add.
        """
        given = [(self.given[axis], self.at[axis][members]) for axis in axes]
        plain: BoolArray = np.logical_and(*(each.are_shares[at] for each, at in given))
        shares = [each.shares[at] for each, at in given]
        expected = np.maximum(shares[0] * shares[1], 1e-12)
        first, second = (np.hypot(each.shares, each.noise / self.records)[at] for each, at in given)
        if axes in self.model.coefficients.looks:
            rows, most, far = self._where_cut(axes, members, shares)
        else:
            weights = (each.weights[:, at] for each, at in given)
            rows = self.model.of_rows(axes, dict(zip(axes, weights, strict=True))) / expected
            one, other = (each.spread[at] for each, at in given)
            most, far = _most(self.records, first, second), self.records**2 * one * other / 3.0
        dense = np.maximum(rows, first * second / expected)
        found = np.where(plain, dense, self.model.believed.any_pair(axes))
        own = np.maximum(found**2 * own, 1e-300)
        found *= np.sqrt(np.where(plain, np.minimum(most / own, 1.0), far / (own + far)))
        return found

    def _where_cut(
        self, axes: Axes, members: IntArray, shares: Sequence[FloatArray]
    ) -> Sequence[FloatArray]:
        """Of conditions that cut groups of a table, how densely records lie in these groups.

        And the variances that the table leaves, if weights are shares, and else: of the records of
        a group that one condition cuts, it says how many meet the other, or how other weights vary.
        All are alike for the two sides of a cut.
        """
        sides = []
        for axis, size, share in zip(axes, self.model.sizes(axes), shares, strict=True):
            given, at = self.given[axis], self.at[axis][members]
            means = given.means(size)
            within = given.basis.within(given.weights, means)
            sides.append((means[:, at], np.where(within > ROUNDING, within, 0.0)[:, at], share))
        table, found = self.model.rows_in_groups(axes), np.zeros((4, len(members)))
        for counts, own, other in zip((table, table.T), sides, sides[::-1], strict=True):
            (mean, within, _), (condition, inner, share) = own, other
            if within.any():
                records, both = counts.sum(axis=1)[:, None], counts @ condition
                met = ratio(both, np.broadcast_to(records, both.shape))
                apart = records * (counts @ (condition**2 + inner)) - both**2
                found += [
                    ((within > 0) * _most(records, mean, met)).sum(axis=0),
                    (within * np.maximum(apart, 0.0)).sum(axis=0) / 3.0,
                    (within * both).sum(axis=0),
                    (within * records).sum(axis=0) * share,
                ]
        *most, there, expected = found
        return there / np.maximum(expected, 1e-12), *most


class _Rules:
    """Codes that rules forbid beside the other weights of a product do not matter to it.

    Weights have the mean of the possible codes there, so that what all of these have is a factor,
    and what nothing is allowed beside is 0. What is known worst comes first: of two conditions that
    are one by the rules the better known counts. Products of groups share most weights: what
    follows from the same ones is found once, and equal weights are one array.
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    def applied(self, weights: Weights) -> Weights:
        """A product of weights under all rules between its columns."""
        found = dict(weights)
        for axes in self._model.possible:
            if not {*axes} <= {*found} & {*self._model.columns}:
                continue
            met = np.ix_(*(np.flatnonzero(weights[axis]) for axis in axes))
            if not self._model.possible[axes][met].any():
                found[axes[0]] = np.zeros_like(found[axes[0]])
            own = {axis: np.asarray(found[axis], np.float64).tobytes() for axis in axes}
            known = {axis: -self._variance(axis, own[axis]) for axis in axes}
            for axis in sorted(axes, key=known.__getitem__):
                others = (own[each] for each in axes if each != axis)
                own[axis] = self._among(axis, own[axis], self._near(axes, axis, *others))
            found |= {axis: self._array(each) for axis, each in own.items()}
        return found

    @kept
    def _array(self, weights: bytes) -> FloatArray:
        return np.frombuffer(weights)

    @kept
    def _variance(self, axis: int, weights: bytes) -> float:
        """Variance of the count of a column under weights."""
        return float(self._model.columns[axis].variance(self._array(weights)))

    @kept
    def _near(self, axes: Axes, axis: int, *others: bytes) -> bytes:
        """Codes of a column that are possible beside some of those with weights of the others."""
        place, allowed = axes.index(axis), self._model.possible[axes]
        met = [np.flatnonzero(self._array(each)) for each in others]
        met.insert(place, np.arange(allowed.shape[place]))
        near: BoolArray = allowed[np.ix_(*met)].any(axis=tuple({*range(len(axes))} - {place}))
        return near.tobytes()

    @kept
    def _among(self, axis: int, weights: bytes, near: bytes) -> bytes:
        """Weights with the mean of near codes for all others; of conditions only if they agree."""
        each, here = self._array(weights), np.frombuffer(near, dtype=bool)
        own, is_condition = each[here], np.isin(each, (0.0, 1.0)).all()
        alike = (own == own[:1]).all()
        if own.any() and (cut_shares(each[:, None]).any() or (is_condition and not alike)):
            return weights
        mass = self._model.bases[axis].mass[here]
        mean = own[:1].sum() if alike else np.average(own, weights=mass)
        return np.where(here, each, mean).tobytes()


def _sets(model: Any, axes: Axes) -> Iterator[Axes]:
    """Sets of columns that have an error of their own: of few columns, and measured ones."""
    for order in range(min(len(axes), _MOST_TOGETHER) + 1):
        yield from combinations(axes, order)
    yield from (part for part in model.measured(axes) if len(part) > _MOST_TOGETHER)


def _most(records: float | FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Variance of counts of two columns that may be anything that the columns allow."""
    expected = first * second
    high = np.minimum(first, second) - expected
    low = expected - np.maximum(first + second - 1.0, 0.0)
    return np.maximum(records * np.maximum(high, low), 1.0) ** 2 / 3.0


def _inner(first: FloatArray, second: FloatArray, i: IntArray, j: IntArray) -> FloatArray:
    """Inner products of columns i of one array with columns j of another."""
    if first.shape[1] ** 2 <= 8 * len(i):
        whole: FloatArray = (first.T @ second)[i, j]
        return whole
    return np.einsum("kp,kp->p", first[:, i], second[:, j])
