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
    n_bins = attribute.n_values - len(attribute.special)
    special = np.array(attribute.special, dtype=np.float64)
    order = np.argsort(special)
    special, weights = special[order], running_sums(counts[n_bins:][order])
    running = running_sums(counts[:n_bins])
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
    if isinstance(attribute, Categorical):
        return float(place)
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
    attribute, confidence = attribute_of(column, asked.domain), asked.confidence
    named = isinstance(attribute, Categorical)
    if named and not attribute.ordered:
        raise ValueError(
            f"The categories of column {column!r} have no order, so it has no quantiles. Count "
            "its categories, or declare Categorical(..., ordered=True)."
        )
    groups = Groups([column], asked.domain, by_code=True)
    counts = Statistics(asked.release, asked.domain, None).groups(groups, query, None)[0]
    counts = counts[: attribute.n_values]
    least, most = spans_of(attribute)
    # Codes in the order of their values: special values lie among the bins.
    order = np.argsort(least, kind="stable")
    rising = without_negatives(counts, order)
    values = np.array([value_below(attribute, rising, share) for share in shares])
    if confidence is None:
        return _categories(attribute, values) if named else attribute.shown(values).tolist()
    ends, texts = np.zeros((2, len(shares))), []
    for place, share in enumerate(shares):
        balance = np.cumsum(counts[order]) - share * counts.sum()
        variance, cut = _variances(asked, column, query, order, rising, share)
        reach = confidence.quantile * np.sqrt(variance)
        possible: BoolArray = balance + reach >= 0
        possible[1:] &= (balance - reach)[:-1] <= 0
        held = np.flatnonzero(possible) if possible.any() else np.arange(len(balance))
        first, last = order[held[[0, -1]]]
        ends[:, place] = least[first], most[last]
        nothing = 1 < len(balance) == held[-1] - held[0] + 1
        anywhere = not named and attribute.bins < attribute.upper - attribute.lower
        said = said_of(asked.release, confidence, cut)
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
    asked: Statistics,
    column: str,
    query: Any,
    order: IntArray,
    rising: FloatArray,
    share: float,
) -> tuple[FloatArray, bool]:
    """Variance of the balance after each code, and whether the query cuts bins.

    It is computed at places evenly spread by the share below; elsewhere the larger one of the
    places on either side counts.
    """
    n, domain = len(order), asked.domain
    below = np.cumsum(rising[order])
    wanted = np.append(np.linspace(0.0, 1.0, _PLACES), share) * below[-1]
    # A little less: where codes are empty, rounding would decide which of them it is.
    at = np.unique(np.minimum(np.searchsorted(below, wanted * (1.0 - 1e-9)), n - 1))
    ranks = np.argsort(order)
    [present] = parse_all([query], domain)
    axis = domain.index(domain.structure.base_of(column))
    of_places = []
    for place in at.tolist():
        vector = np.zeros(domain[column].size)
        vector[:n] = (ranks <= place) - share
        of_places.append(present.times(axis, domain.structure.lifted(column, vector)))
    known = asked.release.variance(of_places)
    left = np.maximum(np.searchsorted(at, np.arange(n), side="right") - 1, 0)
    right = np.minimum(np.searchsorted(at, np.arange(n)), len(at) - 1)
    return np.maximum(known[left], known[right]), present.cuts
