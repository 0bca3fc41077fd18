"""BoxModel: noisy counts over boxes, records spread evenly inside each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from .._validation import CodeArray, FloatArray, IntArray, free_name
from ..domain import Domain
from ..domain.query import Query
from .intervals import (
    Boxes,
    Cut,
    Intervals,
    KnownNoise,
    checked_counts,
    intervals_from_arrays,
    range_extreme,
)
from .model import (
    Covariances,
    Reach,
    Weights,
    added,
    by_attributes,
    semidefinite,
    warn_of_zero,
    with_cut_bins,
)
from .result import range_label
from .rounding import codes_under, count_records, draw_in_ranges, places
from .tree_density import inverse, inverse_rows

__all__ = ["BoxModel", "boxes_given", "spread_evenly"]

# Numbers held at once while a batch of queries is answered: they fit into a core's cache.
_CHUNK = 1 << 18
# Rounded rows keep the counts of the sides of boxes on at most this many axes.
_ROUNDED = 64
# Vectors of weights that are kept while many questions are asked.
_SEEN = 2000
# Shares of a box this near to 0 or 1 are rounding errors.
_WHOLE = 1e-12


class BoxModel(Covariances):
    """Noisy counts over boxes, records spread evenly inside each box.

    Parameters
    ----------
    boxes : Boxes
        A partition of the domain.
    counts : array-like of int or float, shape (n_boxes,)
        The released counts.
    shape : sequence of int
        Sizes of the attributes.
    intervals : Intervals, default=None
        What is known about the errors: :class:`KnownNoise`, :class:`BoundedSpread`
        or :class:`AnySpread`. None: nothing, and there are no intervals.
    """

    kind: ClassVar[str] = "boxes"
    independent: ClassVar[bool] = True

    def __init__(
        self,
        boxes: Boxes,
        counts: Any,
        shape: Sequence[int],
        intervals: Intervals | None = None,
    ) -> None:
        boxes.check_volume(shape)
        self.boxes = boxes
        self.shape = tuple(int(size) for size in shape)
        self.counts = checked_counts(counts, len(boxes))
        self.intervals = KnownNoise() if intervals is None else intervals
        self.intervals.check(len(boxes))
        self._sides: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_sides": {}}

    @property
    def total(self) -> float:
        """Estimated number of records, the sum of the counts."""
        return float(self.counts.sum(dtype=np.float64))

    def _axis_intervals(self, axis: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The distinct intervals of the boxes on one axis: starts, stops, index per box.

        Trees cut few places per axis, so that there are far fewer of them than boxes.
        """
        if axis not in self._sides:
            starts, start_at = np.unique(self.boxes.lower[:, axis], return_inverse=True)
            stops, stop_at = np.unique(self.boxes.upper[:, axis], return_inverse=True)
            pairs, inverse = np.unique(
                start_at.astype(np.int64) * len(stops) + stop_at, return_inverse=True
            )
            self._sides[axis] = (
                starts[pairs // len(stops)].astype(np.int64),
                stops[pairs % len(stops)].astype(np.int64),
                inverse.reshape(-1),
            )
        return self._sides[axis]

    def _covered_intervals(self, queries: Sequence[Weights], axis: int) -> np.ndarray:
        """Share of every distinct interval of an axis, shape (n_intervals, n_queries)."""
        starts, stops, _ = self._axis_intervals(axis)
        sums = np.zeros((self.shape[axis] + 1, len(queries)))
        np.cumsum(np.stack([query[axis] for query in queries], axis=1), axis=0, out=sums[1:])
        covered: np.ndarray = (sums[stops] - sums[starts]) / (stops - starts)[:, None]
        return covered

    def _covered(self, queries: Sequence[Weights], axes: Sequence[int]) -> np.ndarray:
        """Share of every box under queries on the same axes, shape (n_boxes, n_queries)."""
        share: np.ndarray | None = None
        for axis in axes:
            factor = self._covered_intervals(queries, axis)[self._axis_intervals(axis)[2]]
            share = factor if share is None else np.multiply(share, factor, out=share)
        return np.ones((len(self.boxes), len(queries))) if share is None else share

    @property
    def about(self) -> str:
        """What was released, in words."""
        return f"noisy counts of {len(self.boxes):,} groups of records"

    @property
    def covers(self) -> str:
        """What variances cover, in words."""
        return "the noise" + self.intervals.covers.rstrip(".")

    def answer(self, queries: Sequence[Query]) -> FloatArray:
        """Sum of the expected counts under the weights, one float for each query."""
        return added(queries, self._answer)

    def _answer(self, products: Sequence[Weights]) -> FloatArray:
        counts = self.counts.astype(np.float64)
        answers = np.empty(len(products))
        for axes, members in by_attributes(products).items():
            table = self._projected(axes, counts)
            rows = len(self.boxes) if table is None else max(len(table), 1)
            step = max(1, _CHUNK // max([rows, *(self.shape[axis] for axis in axes)]))
            for first in range(0, len(members), step):
                part = members[first : first + step]
                batch = [products[i] for i in part]
                if table is None:
                    answers[part] = counts @ self._covered(batch, axes)
                else:
                    answers[part] = self._answer_projected(table, batch, axes)
        return answers

    def _projected(self, axes: Sequence[int], counts: np.ndarray) -> np.ndarray | None:
        """Sums over boxes with equal intervals on these axes, if that leaves fewer numbers.

        For a grid only its projection is left. None if there are no fewer numbers than boxes.
        """
        sides = [len(self._axis_intervals(axis)[0]) for axis in axes]
        if math.prod(sides) >= len(self.boxes):
            return None
        if not axes:
            return counts.sum(keepdims=True)
        flat = np.ravel_multi_index([self._axis_intervals(axis)[2] for axis in axes], sides)
        return np.bincount(flat, weights=counts, minlength=math.prod(sides))

    def _answer_projected(
        self, table: np.ndarray, batch: Sequence[Weights], axes: Sequence[int]
    ) -> np.ndarray:
        """Answers to queries on the same axes, from the sums of `_projected`."""
        left = table[None]
        for axis in axes:
            covered = self._covered_intervals(batch, axis)
            left = left.reshape(len(left), len(covered), -1)
            if len(left) == 1:
                left = covered.T @ left[0]
            else:
                left = np.einsum("sq,qsr->qr", covered, left)
        return left.reshape(-1)

    def variance(self, queries: Sequence[Query]) -> FloatArray:
        """Variance of each answer: of the noise, and of the uneven spread inside cut boxes."""
        found: FloatArray = self.covariances([[query] for query in queries])[:, 0, 0]
        return found

    def covariances(self, blocks: Sequence[Sequence[Query]]) -> FloatArray:
        """Covariance of the errors of the answers of each block, as `variance`."""
        k = len(blocks[0])
        noise, found = self.noise_variances(), np.empty((len(blocks), k, k))
        scatter = self.intervals.scatter(self.counts) ** 2
        step = max(1, _CHUNK // (len(self.boxes) * k))
        for first in range(0, len(blocks), step):
            part = blocks[first : first + step]
            mean = self._means([query for block in part for query in block])
            mean = mean.reshape(len(noise), len(part), k).transpose(1, 2, 0)
            found[first : first + step] = (mean * noise) @ mean.swapaxes(1, 2)
            if scatter.any():
                found[first : first + step] += self._scattered(part, mean, scatter)
        return semidefinite(found) if scatter.any() else found

    def _scattered(
        self, blocks: Sequence[Sequence[Query]], mean: FloatArray, scatter: FloatArray
    ) -> FloatArray:
        """Covariances of what the records of a box have, where they all lie in one cell of it."""
        n, k, _ = mean.shape
        first, second = np.triu_indices(k)
        pairs = list(zip(first.tolist(), second.tolist(), strict=True))
        products = [_product(block[i], block[j]) for block in blocks for i, j in pairs]
        both = self._means(products).T.reshape(n, len(first), -1)
        for place in np.flatnonzero(first == second).tolist():
            for number, block in enumerate(blocks):
                own = mean[number, first[place]]
                # Of shares of cells any part may be met.
                if _are_shares(block[first[place]].products) and own.max() <= 1.0 + _WHOLE:
                    both[number, place] = own
        more = (both - mean[:, first] * mean[:, second]) @ scatter
        found = np.zeros((n, k, k))
        found[:, first, second] = found[:, second, first] = more
        return found

    def _means(self, queries: Sequence[Query]) -> FloatArray:
        """Mean weight of the cells of each box, (n_boxes, n_queries)."""

        def of(products: Sequence[Weights]) -> FloatArray:
            found = np.empty((len(products), len(self.boxes)))
            for axes, members in by_attributes(products).items():
                found[members] = self._covered([products[i] for i in members], axes).T
            return found

        return added(queries, of).T

    def reach(self, queries: Sequence[Query], level: float) -> Reach:
        """How far counts may be off: the noise, and uneven boxes as far as `intervals` covers them.

        One answer has the exact law of its noise. The sum of the noise of several is taken as
        Gaussian, which is quicker.
        """
        return with_cut_bins(self, self._reach, queries, level)

    def _reach(self, queries: Sequence[Query], level: float) -> Reach:
        exact = len(queries) == 1
        seen: dict[Any, Any] = {}
        cuts = (self._cut(query.products, seen) for query in queries)
        alpha = 1.0 - level
        found = [
            (self.intervals.reach(cut, alpha, exact), (cut.high > cut.low).any()) for cut in cuts
        ]
        below, above = np.array([each[:2] for each, _ in found]).reshape(-1, 2).T
        law = found[0][0][2] if exact else "its sum taken as Gaussian"
        text = (
            f"For a query fixed before looking at the release, with probability "
            f"{self.intervals.sure if exact else 'about'} {100 * level:g}%: the interval covers "
            f"the noise ({law})"
        )
        if any(cut for _, cut in found):
            text += self.intervals.covers
        else:
            text += ", the only error: the query cuts through no box."
        return Reach(np.sqrt(self.variance(queries)), below, above, text)

    def _cut(self, parts: Sequence[Weights], seen: dict[Any, Any]) -> Cut:
        """How a union of disjoint conjunctions cuts the boxes; ``seen`` is for many of them.

        The sums of the least and of the largest weights bound the weights of the union. A box
        whose mean is 0 or 1 has no other weights than this, where weights are shares.
        """
        if len(seen) > _SEEN:
            seen.clear()
        mean, low, high = (np.zeros(len(self.boxes)) for _ in range(3))
        for weights in parts:
            share, least, most = (np.ones(len(self.boxes)) for _ in range(3))
            for axis in sorted(weights):
                factor, small, large = self._factor(axis, weights[axis], seen)
                share *= factor
                if weights[axis].min() >= 0 and least.min() >= 0:
                    least, most = least * small, most * large
                else:
                    # Of factors of any sign, an extreme product is one of extreme factors.
                    products = [least * small, least * large, most * small, most * large]
                    least, most = np.minimum.reduce(products), np.maximum.reduce(products)
            mean += share
            low += least
            high += most
        if len(parts) > 1 and _are_shares(parts):
            mean = np.clip(mean, 0.0, 1.0)
            mean[mean < _WHOLE], mean[mean > 1.0 - _WHOLE] = 0.0, 1.0
            high = np.where(mean == 0.0, 0.0, np.minimum(high, 1.0))
            low = np.where(mean == 1.0, 1.0, np.minimum(low, high))
            high = np.where(mean == 1.0, 1.0, high)
        return Cut(mean, low, high, self.counts)

    @property
    def noise_epsilon(self) -> tuple[Fraction, ...] | None:
        """Epsilon of the noise, one for all boxes or one for each; None where it is not known."""
        return None if self.intervals.law is None else self.intervals.law.epsilons

    def noise_variances(self) -> np.ndarray:
        """Variance of the noise in each box; ValueError where it is not known."""
        return self.intervals.variances(len(self.boxes))

    def _factor(
        self, axis: int, vector: np.ndarray, seen: dict[Any, Any]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean, smallest and largest weight of one axis in every box; ``seen`` holds known ones."""
        starts, stops, place = self._axis_intervals(axis)
        key = axis, vector.tobytes()
        if key not in seen:
            mean = self._covered_intervals([{axis: vector}], axis)[:, 0]
            low, high = (
                range_extreme(vector, starts, stops, extreme)
                for extreme in (np.minimum, np.maximum)
            )
            seen[key] = mean, low, high
        mean, low, high = (each[place] for each in seen[key])
        return mean, low, high

    def sample_codes(
        self, n_samples: int, generator: np.random.Generator, weights: Weights | None = None
    ) -> np.ndarray:
        """Draw records: a box in proportion to its positive count, a cell evenly in the box.

        If no count is positive, the cells of the whole domain are equally likely. Under weights
        a box counts with its positive count times the share that they cover, and its cells in
        proportion to their weights. Where no covered count is positive, each column is drawn by
        itself, and a warning says so.
        """
        if weights:
            return self._sample_under(n_samples, generator, weights)
        positive = np.maximum(self.counts, 0).astype(np.float64)
        if not positive.any():
            shape = np.array(self.shape, dtype=np.int32)
            return generator.integers(0, shape, size=(n_samples, len(shape)), dtype=np.int32)
        chosen = generator.choice(len(positive), size=n_samples, p=positive / positive.sum())
        return generator.integers(
            self.boxes.lower[chosen], self.boxes.upper[chosen], dtype=np.int32
        )

    def _sample_under(
        self, n_samples: int, generator: np.random.Generator, weights: Weights
    ) -> np.ndarray:
        unknown = np.full((n_samples, len(self.shape)), -1, dtype=np.int32)
        mass = np.maximum(self.counts, 0) * self._covered([weights], sorted(weights))[:, 0]
        if not mass.any():
            warn_of_zero("each column is drawn by itself")
            return self._each_alone(unknown, generator, weights)
        chosen = inverse(mass, generator.random(n_samples))
        return self._inside(unknown, chosen, generator, weights)

    def round_codes(
        self, n_samples: int, generator: np.random.Generator, weights: Weights | None = None
    ) -> np.ndarray:
        """Records of boxes whose counts are the expected ones, rounded; see `sample_codes`.

        Counts of the boxes by their sides on one axis are also near what is expected. Inside a box,
        records are spread evenly over the codes of each axis.
        """
        weights = weights or {}
        mass = np.maximum(self.counts, 0) * self._covered([weights], sorted(weights))[:, 0]
        if weights and not mass.any():
            return self._sample_under(n_samples, generator, weights)
        boxes = self.boxes
        if not mass.any():
            boxes, mass = Boxes([[0] * len(self.shape)], [self.shape]), np.ones(1)
        live = np.flatnonzero(mass)
        sides = [axis for axis in range(len(self.shape)) if len(live) > 1]
        sides = [axis for axis in sides if len(self._axis_intervals(axis)[0]) > 1][:_ROUNDED]
        features = [self._axis_intervals(axis)[2][live] for axis in sides]
        order = np.arange(len(live))
        counts = count_records(mass[live], n_samples, order, features, len(features), generator)
        held = live[counts > 0]
        codes = spread_evenly(
            boxes.lower[held], boxes.upper[held], counts[counts > 0], weights, generator
        )
        return codes[generator.permutation(n_samples)]

    def sample_given(
        self, known: np.ndarray, generator: np.random.Generator, weights: Weights | None = None
    ) -> np.ndarray:
        """Fill rows of codes where they are -1; see `Model` and `sample_codes`."""
        weights = {} if weights is None else weights
        codes = np.array(known, dtype=np.int32)
        covered = {axis: self._covered([weights], [axis])[:, 0] for axis in weights}
        mass = np.maximum(self.counts, 0).astype(np.float64)
        chosen = boxes_given(self.boxes, mass, codes, covered, generator)
        lost, found = np.flatnonzero(chosen < 0), np.flatnonzero(chosen >= 0)
        codes[lost] = self._each_alone(codes[lost], generator, weights)
        codes[found] = self._inside(codes[found], chosen[found], generator, weights)
        return codes

    def _inside(
        self,
        known: np.ndarray,
        chosen: np.ndarray,
        generator: np.random.Generator,
        weights: Weights,
    ) -> np.ndarray:
        """Unknown codes drawn in the boxes that were chosen."""
        lower, upper = self.boxes.lower[chosen], self.boxes.upper[chosen]
        codes = generator.integers(lower, upper, dtype=np.int32)
        for axis, vector in weights.items():
            u = generator.random(len(codes))
            codes[:, axis] = draw_in_ranges(vector, lower[:, axis], upper[:, axis], u)
        return np.where(known < 0, codes, known).astype(np.int32, copy=False)

    def _each_alone(
        self, known: np.ndarray, generator: np.random.Generator, weights: Weights
    ) -> np.ndarray:
        """Unknown codes drawn column by column, where boxes know nothing of a condition."""
        codes = known.copy()
        for axis in range(len(self.shape)) if len(known) else ():
            unknown = np.flatnonzero(known[:, axis] < 0)
            codes[unknown, axis] = codes_under(
                self.view([axis]), weights.get(axis), len(unknown), generator
            )
        return codes

    def view(self, axes: Sequence[int]) -> np.ndarray:
        """Expected counts for every combination of the codes of one or two attributes."""
        lower = self.boxes.lower[:, axes].astype(np.int64)
        upper = self.boxes.upper[:, axes].astype(np.int64)
        density = self.counts / (upper - lower).prod(axis=1, dtype=np.float64)
        # Every box adds its density at its corners with alternating signs; running sums along
        # the axes spread it over the box.
        padded = tuple(self.shape[axis] + 1 for axis in axes)
        table = np.zeros(math.prod(padded))
        for corner in np.ndindex(*(2,) * len(axes)):
            at = np.where(np.array(corner, dtype=bool), upper, lower)
            flat = np.ravel_multi_index(tuple(at.T), padded)
            sign = (-1.0) ** sum(corner)
            table += np.bincount(flat, weights=sign * density, minlength=len(table))
        table = table.reshape(padded)
        for axis in range(len(axes)):
            table = np.cumsum(table, axis=axis)
        return table[tuple(slice(-1) for _ in axes)]

    def rectangles(self, axes: Sequence[int]) -> np.ndarray:
        """Distinct boxes on a few axes, int32 of shape (n, n_axes, 2): first code, stop code."""
        sides = np.stack([self.boxes.lower[:, axes], self.boxes.upper[:, axes]], axis=2)
        return np.unique(sides, axis=0)

    def to_frame(self, domain: Domain) -> pd.DataFrame:
        """One row for each box: its range in every attribute, and its count."""
        columns: dict[str, Any] = {}
        for axis, name in enumerate(domain.names):
            starts, stops, inverse = self._axis_intervals(axis)
            labels = np.array(
                [
                    range_label(domain.attributes[axis], int(start), int(stop))
                    for start, stop in zip(starts, stops, strict=True)
                ],
                dtype=object,
            )
            columns[name] = labels[inverse]
        columns[free_name("count", columns)] = self.counts
        return pd.DataFrame(columns)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a file keeps: JSON values, and numeric arrays."""
        facts, arrays = self.intervals.to_arrays()
        own = {"lower": self.boxes.lower, "upper": self.boxes.upper, "counts": self.counts}
        return facts, {**own, **arrays}

    @classmethod
    def from_arrays(
        cls, shape: tuple[int, ...], facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> BoxModel:
        """The inverse of `to_arrays`; ValueError for anything that does not fit together."""
        intervals = intervals_from_arrays(facts, arrays)
        boxes = Boxes(arrays["lower"], arrays["upper"])
        return cls(boxes, arrays["counts"], shape, intervals)


def _are_shares(parts: Sequence[Weights]) -> bool:
    """Whether all weights lie in [0, 1], as those of queries do."""
    return all(_is_share(vector) for weights in parts for vector in weights.values())


def _product(one: Query, two: Query) -> Query:
    """The query whose weights are the products of those of two."""
    found = []
    for first, second in itertools.product(one.products, two.products):
        both = {**first, **second}
        both |= {axis: first[axis] * second[axis] for axis in first.keys() & second.keys()}
        found.append(both)
    return Query(tuple(found))


def _is_share(vector: np.ndarray) -> bool:
    return bool(((vector >= 0) & (vector <= 1)).all())


# --- boxes that hold the known codes of rows, drawn in proportion to what they say of the rows

# Numbers that are held at once: one for each box and row.
_HELD = 1 << 22


def boxes_given(
    boxes: Boxes,
    mass: FloatArray,
    known: CodeArray,
    covered: Mapping[int, FloatArray],
    generator: np.random.Generator,
) -> IntArray:
    """A box for each row of known codes, among those that hold them.

    Parameters
    ----------
    boxes : Boxes
    mass : ndarray of shape (n_boxes,)
        Positive counts; boxes with 0 are never drawn.
    known : ndarray of int, shape (n_rows, n_attributes)
        Codes, -1 where they are unknown.
    covered : mapping of int to ndarray of shape (n_boxes,)
        Share of each box that a condition covers, by attribute; it counts where the code is
        unknown.
    generator : numpy.random.Generator

    Returns
    -------
    ndarray of int, shape (n_rows,)
        -1 where no box has mass. A box counts with its mass times the shares covered, over its
        width in each known attribute.
    """
    live = np.flatnonzero(mass > 0)
    chosen = np.full(len(known), -1, dtype=np.int64)
    if not len(live) or not len(known):
        return chosen
    axes = np.flatnonzero((known >= 0).any(axis=0) | np.isin(np.arange(known.shape[1]), [*covered]))
    distinct, at = np.unique(known[:, axes], axis=0, return_inverse=True)
    at, u = at.reshape(-1), generator.random(len(known))
    step = max(1, _HELD // len(live))
    for start in range(0, len(distinct), step):
        part = distinct[start : start + step]
        log = np.tile(np.log(mass[live]), (len(part), 1))
        for place, axis in enumerate(axes.tolist()):
            code, (lower, upper) = part[:, place, None], boxes.sides(axis, live)
            with np.errstate(divide="ignore"):
                told = np.where((lower <= code) & (code < upper), -np.log(upper - lower), -np.inf)
                untold = np.log(covered[axis][live]) if axis in covered else 0.0
            log += np.where(code >= 0, told, untold)
        largest = log.max(axis=1)
        possible = np.isfinite(largest)
        log[~possible], largest[~possible] = 0.0, 0.0
        mine = np.flatnonzero((at >= start) & (at < start + len(part)))
        mine = mine[possible[at[mine] - start]]
        weight = np.exp(log - largest[:, None])
        chosen[mine] = live[inverse_rows(weight, at[mine] - start, u[mine])]
    return chosen


# --- codes spread evenly inside boxes


def spread_evenly(
    lower: CodeArray,
    upper: CodeArray,
    counts: IntArray,
    weights: Mapping[int, FloatArray],
    generator: np.random.Generator,
) -> CodeArray:
    """Codes inside boxes, those of each axis spread evenly; box after box.

    The records of a box divide each of its sides into as many equal parts as there are records, and
    each part has one of them. Which ones come together differs from box to box, at random.

    Parameters
    ----------
    lower, upper : ndarray of int32, shape (n_boxes, n_attributes)
        First codes, and codes after the last.
    counts : ndarray of int, shape (n_boxes,)
        Number of records in each box, at least 1.
    weights : mapping of int to ndarray
        Codes of these attributes are spread in proportion to the weights.
    generator : numpy.random.Generator

    Returns
    -------
    ndarray of int32, shape (sum of counts, n_attributes)
    """
    number = int(counts.sum())
    codes = np.empty((number, lower.shape[1]), dtype=np.int32, order="F")
    of_box = np.repeat(np.arange(len(counts)), counts)
    for axis in range(codes.shape[1]):
        first, stop = lower[:, axis].astype(np.int64), upper[:, axis].astype(np.int64)
        if (stop == first + 1).all():
            codes[:, axis] = first[of_box]
            continue
        place = places(counts, generator.random(len(counts)), generator)
        u = (place + generator.random(number)) / counts[of_box]
        if axis in weights:
            codes[:, axis] = draw_in_ranges(weights[axis], first[of_box], stop[of_box], u)
        else:
            drawn = first[of_box] + np.floor(u * (stop - first)[of_box]).astype(np.int64)
            codes[:, axis] = np.minimum(drawn, (stop - 1)[of_box])
    return codes
