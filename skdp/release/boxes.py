"""BoxModel: noisy counts over boxes, records spread evenly inside each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from .._validation import CodeArray, FloatArray, IntArray, free_name
from ..domain import Domain
from ..domain.query import Query, Weights
from ..hierarchy import noise_quantile
from .basis import by_attributes
from .files import Arrays, Facts, packed, unpacked
from .intervals import Boxes, Cut, Intervals, checked_counts
from .model import Answers, KnownLaw, Reach, Release, added, are_shares, semidefinite
from .result import range_label
from .rows import DrawsRecords, inverse

# Numbers held at once while a batch of queries is answered: they fit into a core's cache.
_CHUNK = 1 << 18
# Shares of a box this near to 0 or 1 are rounding errors.
_WHOLE = 1e-12


class BoxModel(DrawsRecords, KnownLaw, Release):
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
        What is known about the errors. None: nothing, and there are no intervals.
    """

    kind: ClassVar[str] = "boxes"

    def __init__(
        self, boxes: Boxes, counts: Any, shape: Sequence[int], intervals: Intervals | None = None
    ) -> None:
        boxes.check_volume(shape)
        self.boxes = boxes
        self.shape = tuple(int(size) for size in shape)
        self.counts = checked_counts(counts, len(boxes))
        self.intervals = Intervals() if intervals is None else intervals
        self.intervals.check(len(boxes))
        self._sides: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_sides": {}}

    @property
    def total(self) -> float:  # type: ignore[override]
        """Estimated number of records, the sum of the counts."""
        return float(self.counts.sum(dtype=np.float64))

    def sides(self, axis: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The distinct intervals of the boxes on one axis: starts, stops, index per box.

        Trees cut few places per axis, so that there are far fewer of them than boxes.
        """
        if axis not in self._sides:
            stride = self.shape[axis] + 1
            lower, upper = self.boxes.lower[:, axis].astype(np.int64), self.boxes.upper[:, axis]
            pairs, place = np.unique(lower * stride + upper, return_inverse=True)
            self._sides[axis] = pairs // stride, pairs % stride, place.reshape(-1)
        return self._sides[axis]

    def _covered_intervals(self, queries: Sequence[Weights], axis: int) -> np.ndarray:
        """Share of every distinct interval of an axis, shape (n_intervals, n_queries)."""
        starts, stops, _ = self.sides(axis)
        sums = np.zeros((self.shape[axis] + 1, len(queries)))
        np.cumsum(np.stack([query[axis] for query in queries], axis=1), axis=0, out=sums[1:])
        covered: np.ndarray = (sums[stops] - sums[starts]) / (stops - starts)[:, None]
        return covered

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
        counts = self.counts.astype(np.float64)
        step = max(1, _CHUNK // max(len(counts), *self.shape))
        parts = [queries[at : at + step] for at in range(0, len(queries), step)]
        return np.concatenate([np.zeros(0), *(counts @ self._means(part) for part in parts)])

    def covariances(self, blocks: Sequence[Sequence[Query]]) -> FloatArray:
        """Covariances of the errors: the noise, and the uneven spread inside cut boxes."""
        k = len(blocks[0])
        noise = self.intervals.variances(len(self.boxes))
        found = np.empty((len(blocks), k, k))
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
        # Of shares of cells any part may be met.
        products = [
            block[i] if i == j and are_shares(block[i]) else _product(block[i], block[j])
            for block in blocks
            for i, j in pairs
        ]
        both = self._means(products).T.reshape(n, len(first), -1)
        more = (both - mean[:, first] * mean[:, second]) @ scatter
        found = np.zeros((n, k, k))
        found[:, first, second] = found[:, second, first] = more
        return found

    def _means(self, queries: Sequence[Query]) -> FloatArray:
        """Mean weight of the cells of each box, (n_boxes, n_queries)."""

        def of(products: Sequence[Weights]) -> FloatArray:
            found = np.empty((len(products), len(self.boxes)))
            for axes, members in by_attributes(products).items():
                covered = np.ones((len(self.boxes), len(members)))
                for axis in axes:
                    shares = self._covered_intervals([products[i] for i in members], axis)
                    covered *= shares[self.sides(axis)[2]]
                found[members] = covered.T
            return found

        return added(queries, of).T

    def _reach(self, queries: Sequence[Query], level: float) -> Reach:
        cuts = [self._cut(query) for query in queries]
        found = [self.intervals.reach(cut, 1.0 - level) for cut in cuts]
        below, above = np.array(found).reshape(-1, 2).T
        inside = any((cut.high > cut.low).any() for cut in cuts)
        text = (
            f"For a query fixed before looking at the release, with probability about "
            f"{100 * level:g}%: the interval covers the noise"
        )
        whole = ", the only error: the query cuts through no box."
        text += self.intervals.covers if inside else whole
        return Reach(np.sqrt(self.variance(queries)), below, above, text)

    def _cut(self, query: Query) -> Cut:
        """How a union of disjoint conjunctions cuts the boxes.

        The sums of the least and of the largest weights bound the weights of the union. A box
        whose mean is 0 or 1 has no other weights than this, where weights are shares.
        """
        mean, low, high = self._means([query])[:, 0], *np.zeros((2, len(self.boxes)))
        for weights in query.products:
            least, most = np.ones((2, len(self.boxes)))
            for axis, vector in sorted(weights.items()):
                starts, stops, place = self.sides(axis)
                # Extremes of each range; one more entry: a range may stop at the end.
                ends, padded = np.stack([starts, stops], axis=1).ravel(), np.append(vector, 0.0)
                small, large = (
                    extreme.reduceat(padded, ends)[::2][place]
                    for extreme in (np.minimum, np.maximum)
                )
                # Of factors of any sign, an extreme product is one of extreme factors.
                products = [least * small, least * large, most * small, most * large]
                least, most = np.minimum.reduce(products), np.maximum.reduce(products)
            low += least
            high += most
        if len(query.products) > 1 and are_shares(query):
            mean = np.clip(mean, 0.0, 1.0)
            mean[mean < _WHOLE], mean[mean > 1.0 - _WHOLE] = 0.0, 1.0
            high = np.where(mean == 0.0, 0.0, np.minimum(high, 1.0))
            low = np.where(mean == 1.0, 1.0, np.minimum(low, high))
            high = np.where(mean == 1.0, 1.0, high)
        return Cut(mean, low, high, self.counts)

    def from_uniform(self, u: FloatArray) -> tuple[CodeArray, list[IntArray]]:
        """Records, and their boxes: in proportion to positive counts, evenly inside.

        If no count is positive, the cells of the whole domain are equally likely.
        """
        lower, upper = self.boxes.lower, self.boxes.upper
        mass = np.maximum(self.counts, 0) * 1.0
        mass = mass if mass.any() else (upper - lower).prod(axis=1, dtype=np.float64)
        chosen = inverse(mass, u[:, -1])
        lower, upper = lower[chosen], upper[chosen]
        inside = np.floor(u[:, :-1] * (upper - lower)).astype(np.int32)
        return np.minimum(lower + inside, upper - 1), [chosen]

    def view(self, axes: Sequence[int]) -> np.ndarray:
        """Expected counts for every combination of the codes of one or two attributes."""
        lower, upper = self.boxes.lower[:, axes], self.boxes.upper[:, axes]
        density = self.counts / (upper - lower).prod(axis=1, dtype=np.float64)
        # Every box adds its density at its corners with alternating signs; running sums along
        # the axes spread it over the box.
        table = np.zeros([self.shape[axis] + 1 for axis in axes])
        for corner in np.ndindex(*(2,) * len(axes)):
            at = np.where(np.array(corner, dtype=bool), upper, lower)
            np.add.at(table, tuple(at.T), (-1.0) ** sum(corner) * density)
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
            starts, stops, place = self.sides(axis)
            ends = zip(starts.tolist(), stops.tolist(), strict=True)
            labels = [range_label(domain.attributes[axis], *each) for each in ends]
            columns[name] = np.array(labels, dtype=object)[place]
        columns[free_name("count", columns)] = self.counts
        return pd.DataFrame(columns)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a file keeps: JSON values, and numeric arrays."""
        facts, arrays = self.intervals.to_arrays()
        own = {"lower": self.boxes.lower, "upper": self.boxes.upper, "counts": self.counts}
        return facts, {**own, **arrays}

    @classmethod
    def from_arrays(cls, shape: tuple[int, ...], facts: Facts, arrays: Arrays) -> BoxModel:
        """The inverse of `to_arrays`; ValueError for anything that does not fit together."""
        intervals = Intervals.from_arrays(facts, arrays)
        boxes = Boxes(arrays["lower"], arrays["upper"])
        return cls(boxes, arrays["counts"], shape, intervals)


# More terms of noise than this make an answer nearly normal.
_MOST_TERMS = 2**20


class StrategyModel(BoxModel):
    """Estimated counts of all cells, from measured weighted sums of cells: HDMM.

    Parameters
    ----------
    counts : ndarray of float64, shape (n_cells,)
        In row-major order.
    shape : sequence of int
    strategy : sequence of ndarray, shape (m_i, n_i)
        Measured sums on each attribute: weights of the codes, which sum to 1 for each code. What
        was measured are their products.
    variance : float
        Of the noise of one measurement, in whole numbers.
    unit : float
        What the whole number 1 stands for, in records.
    """

    kind: ClassVar[str] = "strategy"

    def __init__(
        self,
        counts: Any,
        shape: Sequence[int],
        strategy: Sequence[FloatArray],
        variance: float,
        unit: float,
    ) -> None:
        cells = np.indices(tuple(shape)).reshape(len(shape), -1).T
        super().__init__(Boxes(cells, cells + 1), counts, shape)
        self.strategy = [np.asarray(each, dtype=np.float64) for each in strategy]
        self.noise, self.unit = float(variance), float(unit)
        for size, each in zip(self.shape, self.strategy, strict=True):
            if each.ndim != 2 or each.shape[1] != size or np.linalg.matrix_rank(each) < size:
                raise ValueError("its strategy does not determine the counts")
        if not (0 <= self.noise < math.inf and 0 < self.unit <= 1):
            raise ValueError("its noise is not a variance")
        # From weights of the codes to weights of the measurements.
        self._inverses = [np.linalg.pinv(each) for each in self.strategy]

    @property
    def covers(self) -> str:
        """What variances cover, in words."""
        return "the noise"

    def covariances(self, blocks: Sequence[Sequence[Query]]) -> FloatArray:
        """Covariances of the noise in the answers of each block."""
        return np.stack([self._covariance(queries) for queries in blocks])

    def _covariance(self, queries: Sequence[Query]) -> FloatArray:
        def of(products: Sequence[Weights]) -> FloatArray:
            found = np.full((len(products),) * 2, self.noise * self.unit**2)
            for axis in range(len(self.shape)):
                weights = np.stack([self._weights(each, axis) for each in products])
                found *= weights @ weights.T
            return found

        # Sums over the products of both queries.
        return added(queries, lambda products: added(queries, lambda _: of(products)).T)

    def _weights(self, product: Weights, axis: int) -> FloatArray:
        """Weights of the measurements on an axis in the answer of a product."""
        found: FloatArray = product.get(axis, np.ones(self.shape[axis])) @ self._inverses[axis]
        return found

    def _reach(self, queries: Sequence[Query], level: float) -> Reach:
        found = Answers.reach(self, queries, level)
        if len(queries) > 1 or math.prod(map(len, self.strategy)) > _MOST_TERMS:
            return found
        terms = sum(
            reduce(np.multiply.outer, [self._weights(each, i) for i in range(len(self.shape))])
            for each in queries[0].products
        )
        # The law is that of whole numbers.
        weights = np.ravel(terms) * self.unit
        half = np.array([noise_quantile(weights, np.full(len(weights), self.noise), level)])
        text = f"at least {100 * level:g}% for a query fixed before looking at the release"
        return Reach(found.std, half, half, f"{text}, by the law of the noise.")

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a file keeps: JSON values, and numeric arrays."""
        own = {"counts": self.counts, "strategy": self.strategy}
        return packed({"variance": self.noise, "unit": self.unit, **own})

    @classmethod
    def from_arrays(cls, shape: tuple[int, ...], facts: Facts, arrays: Arrays) -> StrategyModel:
        """The inverse of `to_arrays`; ValueError for anything that does not fit together."""
        held = unpacked(facts, arrays)
        return cls(held["counts"], shape, held["strategy"], held["variance"], held["unit"])


def _product(one: Query, two: Query) -> Query:
    """The query whose weights are the products of those of two."""
    times = (reduce(lambda made, of: made.times(*of), each.items(), one) for each in two.products)
    return reduce(Query.plus, times)
