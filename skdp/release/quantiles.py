"""Quantiles of a column with intervals: values up to which shares of the records lie.

The q-quantile is the first value x up to which at least a share q of the records lies. A value
stays in the interval if the sum of (1 if at most x, else 0) - q over the records may be zero or
more, and that up to the value before zero or less (R. S. Woodruff, "Confidence intervals for
medians and other position measures", Journal of the American Statistical Association 47, 1952).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._validation import BoolArray, FloatArray, as_level, running_sums
from ..domain import Categorical, Numeric
from ..domain.query import attribute_of, parse_all
from ..hierarchy import without_negatives
from .grouping import Groups, spans_of
from .result import QueryResult
from .statistics import BINS, NOTHING, Estimates, Statistics, said_of

# --- values up to which a share of counts lies


def as_shares(q: Any) -> tuple[list[float], bool]:
    """Shares as a list, and whether there was only one without a list.

    Raises
    ------
    TypeError, ValueError
        If one is no number or lies outside of (0, 1).
    """
    single = np.ndim(q) == 0
    return [as_level(each, "q") for each in ([q] if single else list(q))], single


def value_below(attribute: Numeric | Categorical, counts: FloatArray, share: float) -> Any:
    """The value up to which a share of the counts lies; NaN, or None, if none is positive.

    Parameters
    ----------
    attribute : Numeric or Categorical
    counts : ndarray of float64, shape (n_values,)
        Not negative.
    share : float
        In [0, 1].
    """
    if isinstance(attribute, Categorical):
        running = running_sums(counts)
        place = np.searchsorted(running[1:-1], share * running[-1], side="left")
        return attribute.categories[place] if counts.any() else None
    if not counts.any():
        return math.nan
    special = np.array(attribute.special, dtype=np.float64)
    order = np.argsort(special)
    special, weights = special[order], running_sums(counts[attribute.bins :][order])
    running = running_sums(counts[: attribute.bins])
    target = share * (running[-1] + weights[-1])
    if len(special):
        target = max(target, np.nextafter(0.0, 1.0))
        # What lies before each special value.
        position = attribute.contents.positions(special)
        before = np.interp(position, np.arange(len(running)), running) + weights[:-1]
        passed = np.searchsorted(before, target, side="left")
        if passed and target <= before[passed - 1] + weights[passed] - weights[passed - 1]:
            return float(special[passed - 1])
        target = np.clip(target - weights[passed], 0.0, running[-1])
    # The first bin that reaches it, and how far into it.
    place = np.searchsorted(running[1:-1], target, side="left")
    height = running[place + 1] - running[place]
    inside = np.clip((target - running[place]) / height, 0.0, 1.0) if height > 0 else 0.0
    return float(attribute.contents.values_at(np.array([place]), np.array([inside]))[0])


# --- intervals

_PLACES = 40  # at which the errors of numbers of records below are computed


def quantiles(asked: Statistics, column: str, shares: Sequence[float], query: Any) -> list[Any]:
    """Quantiles of a column among the records of a query, with intervals if they are asked for.

    Raises
    ------
    ValueError
        If the categories of the column have no order.
    """
    ranked = _Ranked(asked, column, query)
    return [ranked.found(share) for share in shares]


class _Ranked:
    """The codes of a column in the order of their values, and the records of a query with each."""

    def __init__(self, asked: Statistics, column: str, query: Any) -> None:
        self.asked, self.domain, self.column, self.query = asked, asked.domain, column, query
        self.attribute = attribute = attribute_of(column, self.domain)
        self.named = isinstance(attribute, Categorical)
        if self.named and not attribute.ordered:
            raise ValueError(
                f"The categories of column {column!r} have no order, so it has no quantiles. Count "
                "its categories, or declare Categorical(..., ordered=True)."
            )
        groups = Groups([column], self.domain, by_code=True)
        counts = Statistics(asked.release, self.domain, None).groups(groups, query, None)[0]
        self.counts: FloatArray = counts[: attribute.n_values]
        self.low, self.high = spans_of(attribute)
        # Special values lie among the bins.
        self.order = np.argsort(self.low, kind="stable")
        self.rising = without_negatives(self.counts, self.order)

    def found(self, share: float) -> Any:
        """The quantile, with its interval if there is a confidence."""
        attribute, confidence = self.attribute, self.asked.confidence
        value, named = value_below(attribute, self.rising, share), self.named
        if confidence is None:
            return value if named else attribute.shown(np.array([value])).tolist()[0]
        balance = np.cumsum(self.counts[self.order]) - share * self.counts.sum()
        variance, cut = self._variances(share)
        reach = confidence.quantile * np.sqrt(variance)
        possible: BoolArray = balance + reach >= 0
        possible[1:] &= (balance - reach)[:-1] <= 0
        held = np.flatnonzero(possible) if possible.any() else np.arange(len(balance))
        first, last = self.order[held[[0, -1]]].tolist()
        text = said_of(self.asked.release, confidence, cut)
        if 1 < len(balance) == held[-1] - held[0] + 1:
            text += NOTHING
        if named:
            low, high = attribute.categories[first], attribute.categories[last]
            return QueryResult(value, math.nan, low, high, text)
        text += BINS * bool(attribute.bins < attribute.upper - attribute.lower)
        low, high = float(self.low[first]), float(self.high[last])
        if not math.isnan(value):
            low, high = min(low, value), max(high, value)
        numbers = (value, (high - low) / (2.0 * confidence.quantile), low, high)
        found = Estimates._make([*(np.array([each]) for each in numbers), [text]])
        return found.results(attribute.shown)[0]

    def _variances(self, share: float) -> tuple[FloatArray, bool]:
        """Variance of the balance after each code, and whether the query cuts bins.

        It is computed at places evenly spread by the share below; elsewhere the larger one of the
        places on either side counts.
        """
        n = len(self.order)
        below = np.cumsum(self.rising[self.order])
        wanted = np.append(np.linspace(0.0, 1.0, _PLACES), share) * below[-1]
        # A little less: where codes are empty, rounding would decide which of them it is.
        at = np.unique(np.minimum(np.searchsorted(below, wanted * (1.0 - 1e-9)), n - 1))
        ranks = np.argsort(self.order)
        [present] = parse_all([self.query], self.domain)
        structure = self.domain.structure
        axis = self.domain.index(structure.base_of(self.column))
        asked = []
        for place in at.tolist():
            vector = np.zeros(self.attribute.size)
            vector[:n] = (ranks <= place) - share
            asked.append(present.times(axis, structure.lifted(self.column, vector)))
        known = self.asked.release.variance(asked)
        left = np.maximum(np.searchsorted(at, np.arange(n), side="right") - 1, 0)
        right = np.minimum(np.searchsorted(at, np.arange(n)), len(at) - 1)
        return np.maximum(known[left], known[right]), present.cuts
