"""Errors of answers from marginals: covariances of many products of weights at once.

An error is a sum of independent ones: of the total, of each single column, and of each set of two
and more columns. Of each the covariance of two products is an inner product of what the products
have there, times how much of it meets their other conditions (`docs/theory/marginals`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from .._validation import BoolArray, FloatArray, IntArray
from .basis import cut_shares, under

__all__ = ["Asked", "Part", "errors", "stacked"]

Axes = tuple[int, ...]
# Weights of codes, (n_codes, n), of some columns.
Stacked = dict[int, FloatArray]
# Covariances of errors of some products with others.
Covariance = Callable[[IntArray, IntArray], FloatArray]

# Variance of the records of a bin that a question cuts, as a part of the square of those that stand
# out of its neighbours: all of them may lie at one number, on either side of its end.
_HEAP = 0.3
# Least density of the records of two columns, as a part of that of independent ones, by which what
# is not known of them is scaled.
_LEAST_DENSITY = 0.3
# Most columns of a set that was not measured whose deviation is allowed for.
_MOST_TOGETHER = 3


class Part(NamedTuple):
    """One product of weights: of codes, and what is constant."""

    factor: float
    weights: dict[int, FloatArray]


def stacked(parts: Sequence[Part]) -> Iterator[tuple[Axes, IntArray, Stacked]]:
    """Which parts are of the same columns, and their weights (n_codes, n)."""
    groups: dict[Axes, list[int]] = {}
    for place, part in enumerate(parts):
        groups.setdefault(tuple(sorted(part.weights)), []).append(place)
    for axes, members in groups.items():
        columns = {
            axis: np.stack([parts[i].weights[axis] for i in members], axis=1) for axis in axes
        }
        yield axes, np.array(members), columns


class Asked:
    """Products of weights of the same columns: what of an error of some meets the others."""

    def __init__(self, model: Any, axes: Axes, weights: Stacked) -> None:
        self._model, self._axes, self._weights = model, axes, weights
        self.means = {axis: model.mean(axis, axes, weights[axis]) for axis in axes}
        self.shared = len(axes) > 2 and axes not in model.coefficients.looks
        self._shares: dict[frozenset[int], FloatArray] = {}

    def among(self, axis: int) -> FloatArray:
        """Share of the rows with weight on a column that meets the conditions on the others."""
        if len(self._axes) == 1:
            return np.ones(1)
        alone = self._model.of_rows((axis,), self._weights)
        share = self._model.of_rows(self._axes, self._weights)
        return np.divide(share, alone, out=np.zeros_like(share), where=alone > 0)

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
        kept = {axis: (self._weights[axis] != 0).astype(np.float64) for axis in part}
        # Conditions are their own; only values are replaced.
        key = frozenset(a for a in part if not np.array_equal(kept[a], self._weights[a]))
        if key not in self._shares:
            self._shares[key] = self._model.of_rows(self._axes, self._weights | kept)
        meeting = self._model.of_rows(part, kept)
        return (rows * self._shares[key] + others) / (rows * meeting + 1.0)


def errors(model: Any, parts: Sequence[Part], i: IntArray, j: IntArray) -> FloatArray:
    """Covariances of the errors of products i of weights with products j."""
    found = np.zeros(len(i))
    for members, times, covariance in _terms(model, parts):
        place = np.full(len(parts), -1)
        place[members] = np.arange(len(members))
        both = (place[i] >= 0) & (place[j] >= 0)
        if both.any():
            one, other = place[i[both]], place[j[both]]
            found[both] += times[one] * times[other] * covariance(one, other)
    return found


def _terms(model: Any, parts: Sequence[Part]) -> Iterator[tuple[IntArray, FloatArray, Covariance]]:
    """Independent errors: which products have them, how often, and their covariances."""
    parts, summed = _without_sums(model, parts)
    for each in summed.values():
        yield np.array([*each]), np.ones(len(each)), _inner(np.stack([*each.values()], axis=1))
    found: dict[Axes, list[Any]] = {}
    for axes, members, weights in stacked(parts):
        factors = np.array([parts[place].factor for place in members.tolist()])
        asked = Asked(model, axes, weights)
        for part in _sets(model, axes):
            own = {axis: weights[axis] for axis in part}
            if len(part) == 1:
                own = {axis: own[axis] - asked.means[axis] for axis in part}
            found.setdefault(part, []).append((members, factors * asked.outside(part), own))
        for axis in axes:
            cut = cut_shares(weights[axis]) > 0
            if cut.any():
                within = _inner(cut * _heaps(model.columns[axis].counts)[:, None])
                yield members, factors * asked.among(axis), within
    for part, several in found.items():
        members, times = (np.concatenate([each[place] for each in several]) for place in (0, 1))
        own = {a: np.concatenate([each[2][a] for each in several], axis=1) for a in part}
        yield members, times, _term(model, part, own)


def _sets(model: Any, axes: Axes) -> Iterator[Axes]:
    """Sets of columns that have an error of their own: of few columns, and measured ones."""
    for order in range(min(len(axes), _MOST_TOGETHER) + 1):
        yield from combinations(axes, order)
    yield from (part for part in model.measured(axes) if len(part) > _MOST_TOGETHER)


def _heaps(counts: FloatArray) -> FloatArray:
    """Deviations of the parts of codes that a range covers in part.

    Records of a code may lie anywhere in it, the more so the more its count differs from those of
    its neighbours.
    """
    counts = np.maximum(counts, 0.0)
    steps = np.abs(np.diff(counts)) / np.maximum(counts[1:] + counts[:-1], 1e-300)
    found: FloatArray = np.maximum(np.append(steps, 0.0), np.append(0.0, steps)) * counts
    return math.sqrt(_HEAP) * found


def _term(model: Any, axes: Axes, weights: Stacked) -> Covariance:
    """Covariances of the errors of a set of columns under weights."""
    if not axes:
        return lambda i, j: np.full(len(i), model.total_variance)
    if len(axes) == 1:
        [own] = weights.values()
        return _inner(own, model.columns[axes[0]].covariance(own))
    return _of_several(model, axes, weights)


def _of_several(model: Any, axes: Axes, weights: Stacked) -> Covariance:
    """Of two and more columns: what measured coefficients leave open, and what is beyond."""
    vectors, bases = [*weights.values()], [model.bases[axis] for axis in axes]
    cuts = [cut_shares(vector) for vector in vectors]
    features = [[basis.features(*of) for basis, *of in zip(bases, vectors, cuts, strict=True)]]
    look, n = axes in model.coefficients.looks, vectors[0].shape[1]
    hats = model.hats(axes, vectors) if look else []
    if look:
        # What tables of groups answer is taken off.
        sizes = model.sizes(axes)
        grouped = [b.within(w, size) for b, w, size in zip(bases, vectors, sizes, strict=True)]
        features.append([b.features(w) for b, w in zip(bases, grouped, strict=True)])
        whole = all(basis.is_whole(size) for basis, size in zip(bases, sizes, strict=True))
        if whole and not any(cut.any() for cut in cuts):
            features = []
    records = max(model.total, 1.0)
    scales = records**2 * model.believed.scale(axes), records

    def beyond(i: IntArray, j: IntArray) -> FloatArray:
        found = np.zeros(len(i))
        for law, scale in enumerate(scales):
            for one in features:
                for other in features:
                    told = np.full(len(i), scale if one is other else -scale)
                    for a, b in zip(one, other, strict=True):
                        told *= _inner(a[law], b[law])(i, j)
                    found += told
        return found

    density = np.ones(n)
    if len(axes) == 2 and features:
        shares = [basis.mass @ vector for basis, vector in zip(bases, vectors, strict=True)]
        plain = _are_shares(vectors)
        density = np.where(plain, _density(model.of_rows(axes, weights), *shares), 1.0)
        if not look:
            own = density**2 * beyond(np.arange(n), np.arange(n))
            most = np.where(plain, _most(records, *shares), np.inf)
            density *= np.sqrt(np.minimum(most / np.maximum(own, 1e-300), 1.0))

    def covariance(i: IntArray, j: IntArray) -> FloatArray:
        found: FloatArray = density[i] * density[j] * beyond(i, j)
        if look:
            variance = model.believed.belief(axes).variance
            found += under(variance, [hat[:, i] * hat[:, j] for hat in hats])
        return found

    return covariance


def _density(rows: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """What the rows say of counts of two columns, as a part of independent columns' counts.

    Where records lie densely, what is not known of them is more.
    """
    return np.maximum(rows / np.maximum(first * second, 1e-12), _LEAST_DENSITY)


def _most(records: float, first: FloatArray, second: FloatArray) -> FloatArray:
    """Variance of counts of two columns that may be anything that the columns allow."""
    expected = first * second
    high = np.minimum(first, second) - expected
    low = expected - np.maximum(first + second - 1.0, 0.0)
    half = np.maximum(records * np.maximum(high, low), 1.0)
    most: FloatArray = half**2 / 3.0
    return most


def _are_shares(vectors: Sequence[FloatArray]) -> BoolArray:
    """For each product whether all weights are shares of codes."""
    each = [(vector.min(axis=0) >= 0) & (vector.max(axis=0) <= 1) for vector in vectors]
    found: BoolArray = np.all(each, axis=0)
    return found


def _inner(first: FloatArray, second: FloatArray | None = None) -> Covariance:
    """Inner products of columns of one array with those of another."""
    other = first if second is None else second

    def inner(i: IntArray, j: IntArray) -> FloatArray:
        if first.shape[1] ** 2 <= 8 * len(i):
            whole: FloatArray = (first.T @ other)[i, j]
            return whole
        return np.einsum("kp,kp->p", first[:, i], other[:, j])

    return inner


def _without_sums(model: Any, parts: Sequence[Part]) -> tuple[list[Part], dict[Any, Any]]:
    """Parts without those that measured sums answer, and features of the noise of these."""
    left: list[Part] = []
    summed: dict[tuple[int, int], dict[int, FloatArray]] = {}
    for place, part in enumerate(parts):
        for axis, by in model.summed(tuple(sorted(part.weights))):
            known = model.sums[axis, by]
            told, fits = known.told(part.weights[axis][:, None])
            if fits[0]:
                whole, of_value, none = part.factor * told[:, 0]
                w = part.weights[by]
                value, missing = np.sqrt(known.variances)
                both = np.concatenate([value * of_value * w, missing * (none - whole) * w])
                summed.setdefault((axis, by), {})[place] = both
                left.append(Part(float(whole), {by: w}))
                break
        else:
            left.append(part)
    return left, summed
