"""Quantiles of a column with intervals, by inverting those of the numbers of records below.

The q-quantile is the first value x up to which at least a share q of the records lies. A value
stays in the interval if the sum of (1 if at most x, else 0) - q over the records may be zero or
more, and that up to the value before zero or less (R. S. Woodruff, "Confidence intervals for
medians and other position measures", Journal of the American Statistical Association 47, 1952;
here without a ratio).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._validation import BoolArray, FloatArray, IntArray, as_level, running_sums, snapped
from ..domain import Categorical, Domain, Numeric
from ..domain.bins import Spread
from ..domain.query import parts_of
from ..domain.regions import Region, attribute_of, everything
from ..hierarchy import without_negatives
from .estimates import Confidence, errors_of
from .grouping import Groups, grouped_sums, view_of
from .intervals import Errors
from .model import Model, Weights
from .query import weights_of
from .result import QueryResult

# --- distribution function and quantiles of a column, from counts of its codes


def categories_below(attribute: Categorical, counts: FloatArray, shares: FloatArray) -> np.ndarray:
    """Categories up to which the shares of the counts lie, in their declared order."""
    running = running_sums(counts)
    bins = np.searchsorted(running[1:], shares * running[-1], side="left")
    return np.array(attribute.categories, dtype=object)[bins.clip(0, len(running) - 2)]


def values_below(attribute: Numeric, counts: FloatArray, shares: FloatArray) -> FloatArray:
    """Values up to which the shares of the counts lie.

    Parameters
    ----------
    attribute : Numeric
    counts : ndarray of float64, shape (n_values,)
        Not negative, with a positive sum.
    shares : ndarray of float64, shape (m,)
        In [0, 1].
    """
    running, special, weights = _split(attribute, counts)
    target = shares * (running[-1] + weights.sum())
    held = attribute.contents
    if not len(special):
        return held.values_at(*_place(running, target))
    # What lies before each special value, and with it.
    target = np.maximum(target, np.nextafter(0.0, 1.0))
    position = position_of(attribute, special, closed=False)
    before = np.interp(position, np.arange(len(running)), running)
    before += running_sums(weights)[:-1]
    passed = np.searchsorted(before, target, side="left")
    last = np.maximum(passed - 1, 0)
    at_special = (passed > 0) & (target <= before[last] + weights[last])
    rest = np.clip(target - running_sums(weights)[passed], 0.0, running[-1])
    return np.where(at_special, special[last], held.values_at(*_place(running, rest)))


def _split(attribute: Numeric, counts: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Running sums of the bins; special values in ascending order and their counts."""
    special = np.array(attribute.special, dtype=np.float64)
    order = np.argsort(special)
    weights = counts[attribute.bins : attribute.n_values][order]
    return running_sums(counts[: attribute.bins]), special[order], weights


def _place(running: FloatArray, target: FloatArray) -> tuple[np.ndarray, FloatArray]:
    """The first bin that reaches each target, and how far into it."""
    bins = np.searchsorted(running[1:], target, side="left").clip(0, len(running) - 2)
    height = running[bins + 1] - running[bins]
    inside = np.divide(target - running[bins], height, out=np.zeros_like(target), where=height > 0)
    return bins, np.clip(inside, 0.0, 1.0)


def position_of(attribute: Numeric, values: np.ndarray, *, closed: bool) -> np.ndarray:
    """Values as positions in bins, clipped; ``closed`` counts an integer itself as passed."""
    if np.isnan(values).any():
        raise ValueError("NaN cannot be an end of a range; use an infinity for an open end.")
    if attribute.special or attribute.uneven or attribute.step or attribute.decimals is not None:
        inside = np.clip(values, attribute.lower, attribute.upper)
        inside = np.where(values > attribute.upper, np.inf, inside)
        held = attribute.contents
        if isinstance(held, Spread):
            return held.positions(np.minimum(inside, attribute.upper))
        return held.positions(np.where(values < attribute.lower, -np.inf, inside), closed=closed)
    if attribute.integer:
        values = np.floor(values) + 1 if closed else np.ceil(values)
    return snapped(np.interp(values, attribute.edges, np.arange(attribute.n_values + 1)))


# Places whose errors are computed, evenly by the share below; then, so many times at most, those at
# the ends of the interval.
_PLACES, _REFINED = 4, 3
_ROUNDING = 1e-9
_NOTHING = " It may be any value that was declared: there are too few records for this noise."
_BINS = " Numbers may lie anywhere in their bins."


def as_shares(q: Any) -> tuple[list[float], bool]:
    """Shares as a list, and whether there was only one without a list.

    Raises
    ------
    TypeError, ValueError
        If one is no number or lies outside of (0, 1).
    """
    single = np.ndim(q) == 0
    return [as_level(each, "q") for each in ([q] if single else list(q))], single


def quantiles(
    model: Model,
    domain: Domain,
    column: str,
    query: Any,
    shares: Sequence[float],
    confidence: Confidence | None,
) -> list[Any]:
    """Quantiles, or results with intervals of them.

    Raises
    ------
    ValueError
        If the categories of the column have no order.
    """
    attribute = attribute_of(column, domain)
    if isinstance(attribute, Categorical) and not attribute.ordered:
        raise ValueError(
            f"The categories of column {column!r} have no order, so it has no quantiles. Count its "
            "categories, or declare Categorical(..., ordered=True)."
        )
    ranked = _Ranked(model, domain, column, query, attribute)
    if confidence is None:
        return [ranked.shown(ranked.value(share)) for share in shares]
    return [ranked.result(share, confidence) for share in shares]


class _Ranked:
    """The codes of a column in the order of their values, and the records of a query with each."""

    def __init__(
        self, model: Model, domain: Domain, column: str, query: Any, attribute: Any
    ) -> None:
        self.model, self.domain, self.column, self.attribute = model, domain, column, attribute
        groups = Groups([column], domain)
        counts = view_of(model, groups) if query is None else grouped_sums(model, groups, query)[0]
        self.counts = np.asarray(counts, dtype=np.float64)[: attribute.n_values]
        self.parts = [self._present(part) for part in parts_of(query, domain)]
        self.spans = None if isinstance(attribute, Categorical) else _spans(attribute)
        self.order = _by_value(attribute, self.spans)
        self.rising = without_negatives(self.counts, self.order)

    def _present(self, regions: Mapping[str, Region]) -> Weights:
        """Weights of the records of a conjunction that have a value."""
        region = regions.get(self.column) or everything(self.column, self.attribute)
        return weights_of({**regions, self.column: region.without_missing()}, self.domain)

    def value(self, share: float) -> Any:
        """The quantile; NaN (of categories None) if the release has no such records."""
        if not self.rising.any():
            return None if isinstance(self.attribute, Categorical) else math.nan
        if isinstance(self.attribute, Categorical):
            return categories_below(self.attribute, self.rising, np.array([share]))[0]
        return float(values_below(self.attribute, self.rising, np.array([share]))[0])

    def shown(self, value: Any) -> Any:
        """A value as users see it."""
        if isinstance(self.attribute, Categorical):
            return value
        return self.attribute.shown(np.array([value])).tolist()[0]

    def result(self, share: float, confidence: Confidence) -> QueryResult:
        """The quantile with its interval."""
        value = self.value(share)
        balance = np.cumsum(self.counts[self.order]) - share * self.counts.sum()
        errors = self._errors(share, balance, confidence)
        variance = np.array(max(self.counts.sum(), 0.0) * share * (1.0 - share))
        sampling = confidence.sampling_std(variance, self.model.total)
        noise = self._ends(balance, errors.below, errors.above)
        ends = self._ends(
            balance,
            confidence.with_sampling(errors.below, sampling),
            confidence.with_sampling(errors.above, sampling),
        )
        text = errors.guarantee + confidence.text
        if len(balance) > 1 and ends == (int(self.order[0]), int(self.order[-1])):
            text += _NOTHING
        if isinstance(self.attribute, Categorical):
            low, high = (self.attribute.categories[code] for code in ends)
            return QueryResult(value, math.nan, low, high, text, math.nan)
        low, high = self._numbers(value, ends)
        inner = self._numbers(value, noise)
        text += _BINS * bool(self.attribute.bins < self.attribute.upper - self.attribute.lower)
        twice = 2.0 * confidence.quantile
        std = (inner[1] - inner[0]) / twice
        spread = math.sqrt(max((high - low) ** 2 - (inner[1] - inner[0]) ** 2, 0.0)) / twice
        zero = self.shown(0.0)
        return QueryResult(
            self.shown(value),
            self.shown(std) - zero,
            self.shown(low),
            self.shown(high),
            text,
            self.shown(spread) - zero,
        )

    def _errors(self, share: float, balance: FloatArray, confidence: Confidence) -> Errors:
        """Errors of the balance after each code: exact where the interval ends.

        Between places with known errors the larger of both counts: far up a column errors shrink
        to that of the number of records within a few codes.
        """
        n = len(self.order)
        below = np.cumsum(self.rising[self.order])
        wanted = np.append(np.linspace(0.0, 1.0, _PLACES), share) * below[-1]
        # A little less: where codes are empty, rounding would decide which of them it is.
        wanted *= 1.0 - _ROUNDING
        places = set(np.minimum(np.searchsorted(below, wanted), n - 1).tolist())
        rank = np.empty(n, dtype=np.int64)
        rank[self.order] = np.arange(n)
        known: dict[int, tuple[float, float, float]] = {}
        for _ in range(_REFINED):
            new = sorted(places - known.keys())
            if not new:
                break
            asked = [self._balance(rank <= k, share) for k in new]
            found = errors_of(self.model, asked, confidence)
            triples = zip(found.std, found.below, found.above, strict=True)
            known |= dict(zip(new, triples, strict=True))
            at = np.array(sorted(known))
            table = np.array([known[k] for k in at.tolist()])
            left = np.searchsorted(at, np.arange(n), side="right") - 1
            right = np.minimum(np.searchsorted(at, np.arange(n)), len(at) - 1)
            std, less, more = np.maximum(table[np.maximum(left, 0)], table[right]).T
            first, last = self._held(balance, less, more)
            places |= {min(max(k, 0), n - 1) for k in (first - 1, first, last, last + 1)}
        return Errors(std, less, more, found.guarantee)

    def _balance(self, below: BoolArray, share: float) -> list[Weights]:
        """Weights of (1 if below, else 0) less a share."""
        vector = np.zeros(self.attribute.size)
        vector[: len(below)] = below - share
        structure = self.domain.structure
        axis = self.domain.index(structure.base_of(self.column))
        lifted = structure.lifted(self.column, vector)
        return [{**part, axis: part[axis] * lifted} for part in self.parts]

    def _ends(self, balance: FloatArray, below: FloatArray, above: FloatArray) -> tuple[int, int]:
        """First and last code that the quantile may have."""
        first, last = self._held(balance, below, above)
        return int(self.order[first]), int(self.order[last])

    def _held(self, balance: FloatArray, below: FloatArray, above: FloatArray) -> tuple[int, int]:
        """First and last place, in the order of values, that the quantile may have."""
        possible = balance + above >= 0
        possible[1:] &= (balance - below)[:-1] <= 0
        held = np.flatnonzero(possible)
        if not len(held):
            held = np.arange(len(balance))
        return int(held[0]), int(held[-1])

    def _numbers(self, value: float, codes: tuple[int, int]) -> tuple[float, float]:
        """The interval from the smallest number of one code to the largest of another."""
        assert self.spans is not None
        low, high = float(self.spans[0][codes[0]]), float(self.spans[1][codes[1]])
        return (low, high) if math.isnan(value) else (min(low, value), max(high, value))


def _by_value(attribute: Any, spans: tuple[FloatArray, FloatArray] | None) -> IntArray:
    """Codes of the values in ascending order; special values lie among the bins."""
    if spans is None:
        return np.arange(attribute.n_values)
    return np.argsort(spans[0], kind="stable")


def _spans(attribute: Numeric) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest number of each code."""
    special = np.array(attribute.special, dtype=np.float64)
    low, high = attribute.contents.span(np.arange(attribute.bins))
    return np.append(low, special).astype(np.float64), np.append(high, special).astype(np.float64)
