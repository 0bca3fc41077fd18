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

from .._validation import BoolArray, FloatArray, IntArray, as_level, running_sums
from ..domain import Categorical, Numeric
from ..domain.query import Query, attribute_of, parse_all
from .basis import without_negatives
from .grouping import Cases, Groups, spans_of, view_of
from .result import QueryResult
from .statistics import BINS, NOTHING, Estimates, Statistics, said_of

# --- values up to which a share of counts lies


def pieces_of(attribute: Numeric | Categorical) -> tuple[IntArray, FloatArray, FloatArray]:
    """Parts of codes in the order of their values: the codes, and where each part begins and ends.

    Special values cut the bins they lie in.
    """
    special = np.array(attribute.special, dtype=np.float64)
    bins = attribute.n_values - len(special)
    positions = attribute.contents.positions(special) if isinstance(attribute, Numeric) else special
    cuts = np.unique([*range(bins + 1), *positions])
    inside = cuts[:-1].astype(np.int64)
    codes: IntArray = np.append(np.arange(bins, attribute.n_values), inside).astype(np.int64)
    starts: FloatArray = np.append(np.zeros(len(special)), cuts[:-1] - inside).astype(np.float64)
    stops: FloatArray = np.append(np.ones(len(special)), cuts[1:] - inside).astype(np.float64)
    # Special values at the same place by their size, and before what follows.
    after = np.append(special, np.full(len(inside), np.inf))
    order = np.lexsort((after, np.append(positions, cuts[:-1])))
    return codes[order], starts[order], stops[order]


def value_below(attribute: Numeric | Categorical, counts: FloatArray, share: float) -> float:
    """The value up to which a share of the counts lies, of categories the code; NaN of none.

    Parameters
    ----------
    attribute : Numeric or Categorical
    counts : ndarray of float64, shape (n_values,)
        Not negative.
    share : float
        In [0, 1].
    """
    if not counts.any():
        return math.nan
    codes, starts, stops = pieces_of(attribute)
    heights = counts[codes] * (stops - starts)
    running = running_sums(heights)
    target = share * running[-1]
    # The first part that reaches it, and how far into it.
    place = np.searchsorted(running[1:-1], target, side="left")
    code, height = int(codes[place]), heights[place]
    if isinstance(attribute, Categorical):
        return float(code)
    if code >= attribute.bins:
        return float(attribute.special[code - attribute.bins])
    inside = np.clip((target - running[place]) / height, 0.0, 1.0) if height > 0 else 0.0
    inside = starts[place] + inside * (stops[place] - starts[place])
    return float(attribute.contents.values_at(np.array([code]), np.array([inside]))[0])


# --- intervals

_PLACES = 40  # at which the errors of numbers of records below are computed


def quantiles(asked: Statistics, column: str, shares: Sequence[float], query: Any) -> list[Any]:
    """Quantiles of a column among the records of a query, with intervals if they are asked for.

    Raises
    ------
    TypeError, ValueError
        If a share is no number or lies outside of (0, 1), or the categories have no order.
    """
    shares = [as_level(each, "q") for each in shares]
    attribute, confidence = attribute_of(column, asked.domain), asked.confidence
    named = isinstance(attribute, Categorical)
    if named and not attribute.ordered:
        raise ValueError(
            f"The categories of column {column!r} have no order, so it has no quantiles. Count "
            "its categories, or declare Categorical(..., ordered=True)."
        )
    groups = Groups([column], asked.domain, by_code=True)
    if query is None:
        counts = view_of(asked.release, groups)
    else:
        counts = asked.sums_of(
            Cases([*groups.within(query, [])]).mapped(asked.roundest.rounded), 0
        )[:, 0]
    counts = counts[: attribute.n_values]
    least, most = spans_of(attribute)
    # Codes in the order of their values: special values lie among the bins.
    order = np.argsort(least, kind="stable")
    rising = without_negatives(counts, order)
    values = np.array([value_below(attribute, rising, share) for share in shares])
    if confidence is None:
        return _categories(attribute, values) if named else attribute.shown(values).tolist()
    present = parse_all([query], asked.domain)[0].replaced(asked.roundest.rounded)
    said = said_of(asked.release, confidence, present.cuts)
    ends, texts = np.zeros((2, len(shares))), []
    for place, share in enumerate(shares):
        balance = np.cumsum(counts[order]) - share * counts.sum()
        variance = _variances(asked, column, present, order, rising, share)
        reach = confidence.quantile * np.sqrt(variance)
        possible: BoolArray = balance + reach >= 0
        possible[1:] &= (balance - reach)[:-1] <= 0
        held = np.flatnonzero(possible) if possible.any() else np.arange(len(balance))
        first, last = order[held[[0, -1]]]
        ends[:, place] = least[first], most[last]
        nothing = 1 < len(balance) == held[-1] - held[0] + 1
        anywhere = not named and attribute.bins < attribute.upper - attribute.lower
        texts.append(said + NOTHING * bool(nothing) + BINS * bool(anywhere))
    low, high = np.fmin(ends[0], values), np.fmax(ends[1], values)
    if named:
        each = (_categories(attribute, of) for of in (values, low, high))
        return [QueryResult(of, math.nan, *on) for of, *on in zip(*each, texts, strict=True)]
    std = (high - low) / (2.0 * confidence.quantile)
    return Estimates(values, std, low, high, texts).results(attribute.shown)


def _categories(attribute: Categorical, codes: FloatArray) -> list[Any]:
    """Categories of codes; None of nan."""
    return [None if math.isnan(each) else attribute.categories[int(each)] for each in codes]


def _variances(
    asked: Statistics, column: str, query: Query, order: IntArray, rising: FloatArray, share: float
) -> FloatArray:
    """Variance of the balance after each code.

    It is computed at places evenly spread by the share below; elsewhere the larger one of the
    places on either side counts.
    """
    n, domain = len(order), asked.domain
    below = np.cumsum(rising[order])
    wanted = np.append(np.linspace(0.0, 1.0, _PLACES), share) * below[-1]
    # A little less: where codes are empty, rounding would decide which of them it is.
    at = np.unique(np.minimum(np.searchsorted(below, wanted * (1.0 - 1e-9)), n - 1))
    ranks = np.argsort(order)
    axis = domain.index(domain.structure.base_of(column))
    of_places = []
    for place in at.tolist():
        vector = np.zeros(domain[column].size)
        vector[:n] = (ranks <= place) - share
        of_places.append(query.times(axis, domain.structure.lifted(column, vector)))
    known = asked.release.variance(of_places)
    left = np.maximum(np.searchsorted(at, np.arange(n), side="right") - 1, 0)
    right = np.minimum(np.searchsorted(at, np.arange(n)), len(at) - 1)
    return np.maximum(known[left], known[right])
