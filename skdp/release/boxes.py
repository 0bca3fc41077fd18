"""BoxModel: noisy counts over boxes, records spread evenly in each, and how far both are off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from .._validation import CodeArray, FloatArray, IntArray, as_epsilon, free_name
from ..domain import Domain
from ..domain.query import Query, Weights
from ..mechanisms import discrete_laplace_variance
from ..mechanisms.laplace import noise_reach
from .files import Arrays, Facts, demand, fraction, packed, unpacked
from .marginals import inverse
from .model import (
    KnownLaw,
    Reach,
    Release,
    added,
    are_shares,
    by_attributes,
    kept,
    semidefinite,
)
from .result import range_label
from .sampling import DrawsRecords

# Numbers held at once while a batch of queries is answered: they fit into a core's cache.
_CHUNK = 1 << 18
# Shares of a box this near to 0 or 1 are rounding errors.
_WHOLE = 1e-12

# --- read-only copies of arrays that a release holds

_MAX_COUNT = 2.0**53


def _whole(values: Any, name: str, dtype: type) -> np.ndarray:
    """A read-only copy of codes, depths or places."""
    array = np.asarray(values)
    most = np.iinfo(np.int32).max
    whole = array.dtype.kind in "iu" and 0 <= array.min(initial=0) <= array.max(initial=0) <= most
    demand(whole, f"{name} must be whole numbers, not negative, that fit into 32 bits.")
    return _frozen(array, dtype)


def _frozen(values: Any, dtype: type) -> np.ndarray:
    """A read-only copy."""
    array: np.ndarray = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array


def checked_counts(counts: Any, n_boxes: int) -> np.ndarray:
    """A read-only copy of released counts, one for each box."""
    counts = np.asarray(counts)
    fits = counts.dtype.kind in "iuf" and counts.shape == (n_boxes,)
    fits = fits and bool((np.abs(counts.astype(np.float64)) <= _MAX_COUNT).all())
    one = f"one number for each of the {n_boxes} boxes, none beyond 2**53"
    demand(fits, f"counts must hold {one}, got the shape {counts.shape} and {counts.dtype}.")
    return _frozen(counts, np.float64 if counts.dtype.kind == "f" else np.int64)


class Boxes:
    """Disjoint boxes of integer codes that cover a domain.

    Parameters
    ----------
    lower, upper : array-like of int, shape (n_boxes, n_attributes)
        Box i holds the codes ``lower[i, j] <= code < upper[i, j]`` of attribute j.

    Attributes
    ----------
    lower, upper : ndarray of int32, read-only

    Raises
    ------
    ValueError
        If the shapes differ or a box is empty.
    """

    def __init__(self, lower: Any, upper: Any) -> None:
        self.lower = _whole(lower, "lower", np.int32)
        self.upper = _whole(upper, "upper", np.int32)
        alike = self.lower.shape == self.upper.shape and self.lower.ndim == 2 and self.lower.size
        demand(
            alike and (self.lower < self.upper).all(),
            "lower and upper must have the shape (n_boxes, n_attributes), with at least one of "
            f"each, and lower < upper everywhere, got {self.lower.shape} and {self.upper.shape}.",
        )

    def __len__(self) -> int:
        return len(self.lower)

    def check_volume(self, shape: Sequence[int]) -> None:
        """Check that the boxes lie in the domain and that their sizes add up to it.

        If they are also disjoint, which is not checked, they form a partition.

        Parameters
        ----------
        shape : sequence of int
            Sizes of the attributes.

        Raises
        ------
        ValueError
            If they do not.
        """
        n = self.lower.shape[1]
        demand(n == len(shape), f"The boxes have {n} attributes and the domain {len(shape)}.")
        inside = (self.upper <= np.array(shape, dtype=np.int64)).all()
        demand(inside, "A box reaches beyond the domain.")
        cells = math.prod(shape)
        # A domain may have 1e88 cells.
        kind = np.int64 if len(self) * cells < 1 << 63 else object
        covered = int((self.upper - self.lower).astype(kind).prod(axis=1).sum())
        demand(
            covered == cells,
            f"The boxes do not add up to the domain: they cover {covered / cells:.9g} of it.",
        )


# Of the cells of each box the mean, the smallest and the largest weight that a query has.
Cut = tuple[FloatArray, FloatArray, FloatArray]


# --- what is known about the errors of answers over boxes


@dataclass(frozen=True)
class LeafErrorBound:
    r"""Upper bounds on the aggregation errors of all boxes at once, free with a noisy stop test.

    A box that stopped at its test number n (counted over the whole run, 1, 2, ...) has, with
    probability at least 1 - mu for all boxes together, an aggregation error of at most
    ``theta + depth * delta + lam * log(n (n + 1) / (2 mu))``: the tests use fresh noise, and the
    failure probabilities mu / (n (n + 1)) sum to mu. The bound uses nothing private, only the
    released shape of the tree.

    Parameters
    ----------
    theta, delta, lam : float
        Threshold, bias per level and noise scale of the stop test, in records. Include in ``theta``
        any error that the test rounds away.
    depth : ndarray of int, shape (n_boxes,)
        Level of each box; the root has 0.
    test_number : ndarray of int, shape (n_boxes,)
        Number of the test that stopped each box; 0 for a box of one cell, which has no
        aggregation error and needs no test.
    step : float, default=0.0
        Lattice step of a discrete test noise; 0 for a continuous one. Its tail
        ``P(noise >= t) <= r**(t / step) / (1 + r)`` with ``r = exp(-step / lam)`` replaces
        ``exp(-t / lam) / 2``.
    """

    theta: float
    delta: float
    lam: float
    depth: np.ndarray
    test_number: np.ndarray
    step: float = 0.0

    def __post_init__(self) -> None:
        for name in ("depth", "test_number"):
            object.__setattr__(self, name, _whole(getattr(self, name), name, np.int64))
        alike = self.depth.ndim == 1 and self.depth.shape == self.test_number.shape
        demand(alike, "depth and test_number must have the same length.")
        numbers = (self.theta, self.delta, self.lam, self.step)
        fits = all(0 <= number < math.inf for number in numbers)
        demand(fits, f"theta, delta, lam and step must be finite and not negative, got {numbers}.")

    def bounds(self, mu: float) -> np.ndarray:
        """Bounds that hold for all boxes together with probability at least 1 - mu.

        Parameters
        ----------
        mu : float
            In (0, 1).

        Returns
        -------
        ndarray of float64, shape (n_boxes,)
        """
        ratio = math.exp(-self.step / self.lam) if self.lam > 0 else 1.0
        number = np.maximum(self.test_number, 1).astype(np.float64)
        tail = np.log(number * (number + 1) / ((1 + ratio) * mu))
        bound = self.theta + self.depth * self.delta + self.lam * np.maximum(tail, 0.0)
        return np.where(self.test_number > 0, bound, 0.0)


_Spread = LeafErrorBound | Literal["any"] | None


class Intervals:
    r"""How far the truth may lie from an answer over boxes.

    An answer has two errors: the noise in the counts, which is discrete Laplace, independent in
    each box, and the uneven spread of the records inside boxes that the query cuts.

    Box i holds S_i records, released as c_i = S_i + z_i with known noise z_i, and X_i of them
    meet the query (a weighted number, if bins are covered in part). With w_i the mean weight
    of its cells, a_i the smallest and b_i the largest, X_i lies between a_i S_i and b_i S_i. Where
    aggregation errors are bounded, it also differs from w_i S_i by at most half the bound times
    b_i - a_i, together h_i. So X_i lies between ``g(S_i) = max(a_i S_i, w_i S_i - h_i)``, convex
    with slopes in [a_i, w_i], and ``f(S_i) = min(b_i S_i, w_i S_i + h_i)``, concave with slopes in
    [w_i, b_i], and

        ``f(S_i) <= f(c_i) + max(-w_i z_i, -b_i z_i)``,
        ``g(S_i) >= g(c_i) - max(a_i z_i, w_i z_i)``.

    Summed over all boxes, the released counts give the ends and the last terms a noise of known
    distribution. The bounds on the aggregation errors, which hold for all boxes together, get half
    of ``1 - level`` and each side a quarter. Where nothing bounds them, h_i is infinite, the slopes
    are a_i and b_i, and each side gets half. The minimum with b_i S_i matters: most boxes of a wide
    table are empty.

    Parameters
    ----------
    epsilon : number or array-like, default=None
        Epsilon of the discrete Laplace noise in the counts (sensitivity 1), which is drawn at its
        dyadic floor: one for all boxes or one for each. Without it there are no intervals.
    spread : LeafErrorBound or "any", default=None
        Released bounds on the aggregation errors, or "any": nothing is known about boxes except
        that no cell holds fewer than 0 records. None: intervals cover the noise alone.
    measured : array-like of int, shape (n_boxes,), default=None
        Where the counts are estimates from these and other measurements: the counts with the
        noise of ``epsilon``, which is independent of what the boxes are. Intervals are built on
        them, and extended to the answer where need be. Needs ``spread="any"``.

    Attributes
    ----------
    epsilons : list of Fraction
        The different ones; empty where the noise is not known.
    """

    def __init__(self, epsilon: Any = None, spread: _Spread = None, measured: Any = None) -> None:
        demand(measured is None or spread == "any", "measured needs any spread")
        self.spread = spread
        self.measured = None if measured is None else np.asarray(measured)
        listed = [epsilon] if np.ndim(epsilon) == 0 else list(epsilon)
        known = [] if epsilon is None else [*dict.fromkeys(listed)]
        self.epsilons = [as_epsilon(each, "noise_epsilon") for each in known]
        place = {each: number for number, each in enumerate(known)}
        self._index = np.array([place.get(each, 0) for each in listed], dtype=np.int64)
        # Refuses what cannot be drawn.
        variances = [discrete_laplace_variance(each) for each in self.epsilons]
        self._variances = np.array(variances or [0.0])

    def check(self, n_boxes: int) -> None:
        """Raise ValueError if this does not fit the number of boxes."""
        n = len(self._index)
        demand(
            not self.epsilons or n in (1, n_boxes),
            f"noise_epsilon must be one number or one for each of the {n_boxes} boxes, got {n}.",
        )
        if isinstance(self.spread, LeafErrorBound):
            n = len(self.spread.depth)
            demand(n == n_boxes, f"leaf_errors bounds {n} boxes, but there are {n_boxes}.")
        if self.measured is not None:
            self.measured = checked_counts(self.measured, n_boxes)

    @property
    def covers(self) -> str:
        """What is covered where a query cuts boxes."""
        uneven = "the uneven spread of records"
        if self.spread is None:
            return f". It does not cover {uneven} in boxes that the query cuts."
        spread = "any spread of the records" if self.spread == "any" else uneven
        return f" and {spread} in boxes that the query cuts."

    def variances(self, n_boxes: int) -> FloatArray:
        """Variance of the noise in each box.

        Raises
        ------
        ValueError
            If it is not known.
        """
        demand(
            self.epsilons,
            "This release does not say how its noise is distributed, so it has no intervals. Ask "
            "for the plain count.",
        )
        return self._variances[np.broadcast_to(self._index, n_boxes)]

    def scatter(self, counts: np.ndarray) -> FloatArray:
        """By how many records of each box its cells may differ, where a variance covers that.

        The number of records of a box that meet a query then has, beside the noise, the variance
        of so many records that all lie in one cell, anywhere in the box.
        """
        if self.spread is None:
            return np.zeros(len(counts))
        most = np.maximum(counts, 0.0)
        if isinstance(self.spread, LeafErrorBound):
            most = np.minimum(most, self.spread.bounds(0.05) / 2)
        return most

    def reach(self, cut: Cut, counts: np.ndarray, alpha: float) -> tuple[float, float]:
        """Reach of an interval below and above the answer, which it leaves with ``alpha``."""
        mean, low, high = cut
        if self.spread is None:
            low = high = mean
        inner, uneven = (low, high), np.full(len(mean), math.inf)
        if isinstance(self.spread, LeafErrorBound) and (high > low).any():
            alpha /= 2
            inner, uneven = (mean, mean), (high - low) * self.spread.bounds(alpha) / 2
        value, variances = float(mean @ counts), self.variances(len(mean))
        counts = counts if self.measured is None else self.measured
        least = np.maximum(low * counts, mean * counts - uneven).sum()
        most = np.minimum(high * counts, mean * counts + uneven).sum()
        below = value - float(least) + noise_reach(low, inner[0], variances, alpha / 2)
        above = float(most) - value + noise_reach(inner[1], high, variances, alpha / 2)
        # With unlucky noise the answer itself could fall outside; the interval then reaches to it.
        return max(0.0, below), max(0.0, above)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a file keeps: JSON values, and numeric arrays."""
        spread = vars(self.spread) if isinstance(self.spread, LeafErrorBound) else self.spread
        epsilons = [str(each) for each in self.epsilons]
        own = {"noise_epsilon": epsilons, "epsilon_of": self._index, "spread": spread}
        return packed({**own, "measured": self.measured})

    @classmethod
    def from_arrays(cls, facts: Facts, arrays: Arrays) -> Intervals:
        """The inverse of `to_arrays`; ValueError for what does not fit together."""
        held = unpacked(facts, arrays)
        index = _whole(held["epsilon_of"], "epsilon_of", np.int64)
        known = [fraction(text) for text in held["noise_epsilon"]]
        spread = held["spread"]
        bound = spread if spread in (None, "any") else LeafErrorBound(**spread)
        epsilon = [known[i] for i in index.tolist()] if known else None
        return cls(epsilon, bound, held["measured"])


# --- the model


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

    @property
    def total(self) -> float:  # type: ignore[override]
        """Estimated number of records, the sum of the counts."""
        return float(self.counts.sum(dtype=np.float64))

    @kept
    def sides(self, axis: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The distinct intervals of the boxes on one axis: starts, stops, index per box.

        Trees cut few places per axis, so that there are far fewer of them than boxes.
        """
        stride = self.shape[axis] + 1
        lower, upper = self.boxes.lower[:, axis].astype(np.int64), self.boxes.upper[:, axis]
        pairs, place = np.unique(lower * stride + upper, return_inverse=True)
        return pairs // stride, pairs % stride, place.reshape(-1)

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
                    starts, stops, place = self.sides(axis)
                    sums = np.zeros((self.shape[axis] + 1, len(members)))
                    each = np.stack([products[i][axis] for i in members], axis=1)
                    np.cumsum(each, axis=0, out=sums[1:])
                    covered *= ((sums[stops] - sums[starts]) / (stops - starts)[:, None])[place]
                found[members] = covered.T
            return found

        return added(queries, of).T

    def _reach(self, queries: Sequence[Query], level: float) -> Reach:
        cuts = [self._cut(query) for query in queries]
        found = [self.intervals.reach(cut, self.counts, 1.0 - level) for cut in cuts]
        below, above = np.array(found).reshape(-1, 2).T
        inside = any((high > low).any() for _, low, high in cuts)
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
        return mean, low, high

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
            fits = each.ndim == 2 and each.shape[1] == size <= np.linalg.matrix_rank(each)
            demand(fits, "its strategy does not determine the counts")
        fits = 0 <= self.noise < math.inf and 0 < self.unit <= 1
        demand(fits, "its noise is not a variance")
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
        half, n = np.zeros(len(queries)), range(len(self.shape))
        for place, query in enumerate(queries):
            each = (map(self._weights, [part] * len(n), n) for part in query.products)
            weights = np.ravel(sum(reduce(np.multiply.outer, one) for one in each))
            noise = np.full(len(weights), self.noise)
            half[place] = self.unit * noise_reach(weights, weights, noise, (1.0 - level) / 2)
        text = f"About {100 * level:g}% for a query fixed before looking at the release"
        std = np.sqrt(self.variance(queries))
        return Reach(std, half, half, f"{text}, by a law between normal and a single noise.")

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
