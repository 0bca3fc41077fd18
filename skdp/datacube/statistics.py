"""Counts, sums and means from a cube, with the intervals that synopses have.

The column that a cube sums is an axis of `CubeModel` after the dimensions, with its ends as codes;
so its sums and means are asked for as those of a numeric dimension are.
"""

from __future__ import annotations

import numpy as np

from ..domain import Categorical, Domain
from ..release.queries import parse_parts
from ..release.statistics.answers import answer_queries, answer_sums, means_of, sums_and_counts
from ..release.statistics.column_values import Numbers, Selected
from ..release.statistics.estimates import linear, telling_cuts
from ..release.statistics.linear_errors import errors_of
from ..release.statistics.sums import means_with_error, sums_with_error
from ..release.statistics.with_errors import count_results, mean_results, sum_results

__all__ = ["check_counted", "counts", "means", "sums", "with_value"]

_ANY_SPREAD = " The values are taken to vary as much as their range and their mean allow."


def check_counted(plan):
    """Raise ValueError for a cube that has no counts."""
    if plan._measure == "sum":
        raise ValueError(
            "A cube of sums does not know how many records there are. Fit one with measure='mean', "
            "which gives counts, sums and means."
        )


def with_value(plan, value):
    """The domain of a cube of means with the summed column, whose codes are its two ends."""
    low, high = map(float, plan._range)
    ends = Categorical([high, low])
    return Domain({**dict(plan.domain.items()), value: ends})


def counts(model, plan, value, queries, confidence):
    """Numbers of records for each query: floats, or results if there is a confidence."""
    check_counted(plan)
    if confidence is None:
        return answer_queries(model, plan.domain, queries)
    return count_results(model, plan.domain, queries, confidence)


def sums(model, plan, value, column, queries, confidence):
    """Sums of a column for each query."""
    if _of_dimension(plan, value, column):
        if confidence is None:
            return sums_and_counts(model, plan.domain, column, queries)[0]
        return sum_results(model, plan.domain, column, queries, confidence)
    if plan._measure == "sum" and confidence is not None and confidence.population:
        raise ValueError(
            "A cube of sums does not know how much values vary, so it has no intervals for a "
            "population. Fit one with measure='mean'."
        )
    cases = [_cases(plan, query) for query in queries]
    found = answer_sums(model, [_summed(case) for case in cases])
    if confidence is None:
        return found
    with_error = _sums_of_ends if plan._measure == "mean" else _plain_sums
    return [
        with_error(model, plan, case, each, confidence)
        for case, each in zip(cases, found.reshape(-1, 1), strict=True)
    ]


def _sums_of_ends(model, plan, case, value, confidence):
    return _told(sums_with_error(model, [case], value, confidence), confidence)


def _plain_sums(model, plan, case, value, confidence):
    """A sum of which only the signs of its terms are known."""
    bounds = -np.inf if plan._grid.lower < 0 else 0.0, np.inf if plan._grid.upper > 0 else 0.0
    parts = _summed(case)
    errors = errors_of(model, [parts], confidence)
    found = linear(value, errors, np.zeros(1), bounds, confidence, model.total)
    return telling_cuts(found, parts).results()[0]


def means(model, plan, value, column, queries, confidence):
    """Means of a column for each query."""
    if _of_dimension(plan, value, column):
        if confidence is not None:
            return mean_results(model, plan.domain, column, queries, confidence)
        values = means_of(
            plan.domain, column, *sums_and_counts(model, plan.domain, column, queries)
        )
        return plan.domain[column].shown(values)
    if plan._measure != "mean":
        raise ValueError("A cube of sums knows no means. Fit one with measure='mean'.")
    cases = [_cases(plan, query) for query in queries]
    count = answer_sums(model, [[each.weights for each in case] for case in cases])
    total = answer_sums(model, [_summed(case) for case in cases])
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.clip(np.where(count > 0, total / count, np.nan), *plan._range)
    if confidence is None:
        return found
    return [
        _told(means_with_error(model, plan.domain, [case], each, many, confidence), confidence)
        for case, each, many in zip(cases, found.reshape(-1, 1), count.reshape(-1, 1), strict=True)
    ]


def _of_dimension(plan, value, column):
    """Whether a sum is one over the codes of a dimension, in a cube of counts."""
    if plan._measure == "count" and column is not None:
        return True
    if plan._measure == "count":
        raise ValueError(
            "A cube of counts needs column=, the numeric dimension to be summed. For sums of "
            "another column fit one with measure='sum' or 'mean'."
        )
    if column not in (None, value):
        raise ValueError(f"This cube knows sums of {value!r} only, got column={column!r}.")
    return False


def _cases(plan, query):
    """Disjoint conjunctions of a query, with the numbers of the summed column."""
    ends = np.array(plan._range[::-1]) if plan._measure == "mean" else np.ones(1)
    zero = np.zeros(len(ends))
    axis = len(plan.domain)
    return [
        Selected.of({**weights, axis: np.ones(len(ends))}, [Numbers(axis, ends, zero, zero)])
        for weights in parse_parts(query, plan.domain)
    ]


def _summed(case):
    """Weights whose answers add up to the sum of the column."""
    return [each.times((of.axis, of.mean)) for each in case for of in each.numbers]


def _told(found, confidence):
    """The one result of estimates."""
    if confidence.population:
        found = found._replace(guarantee=found.guarantee + _ANY_SPREAD)
    return found.results()[0]
