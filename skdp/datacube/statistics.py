"""Counts, sums and means from a cube, with the intervals that synopses have.

The column that a cube sums is an axis of `CubeModel` after the dimensions, with its ends as codes;
so its sums and means are asked for as those of a numeric dimension are.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from .._validation import free_name
from ..domain import Categorical, Domain, Numeric
from ..exceptions import DomainError
from ..kernels import cuboids
from ..mechanisms._noise import BoundedGrid
from ..release.queries import parse_parts
from ..release.statistics.column_values import Numbers, Selected
from ..release.statistics.estimates import (
    answer_queries,
    answer_sums,
    errors_of,
    linear,
    means_of,
    sums_and_counts,
    telling_cuts,
)
from ..release.statistics.moments import means_with_error, sums_with_error
from ..release.statistics.with_errors import count_results, mean_results, sum_results
from ..rows import code_rows, weighted_tables

# --- sums and means of a bounded column over the cells of cuboids, exact in integers
#
# Every value is rounded to a grid by itself, so that what a record adds depends on its own value
# alone. The value is coded like a dimension, with a code for each number of the grid: so engines
# code it too, and rows of a person that are equal in all that is read are interchangeable.


def value_grid(domain, measure, value, resolution):
    """The grid of integers to which the summed column is rounded, and its origin.

    The grid is None for counts, and the origin for sums; for means the grid is one of distances to
    the origin, the lower end of the range.
    """
    if measure == "count":
        if value is not None or resolution is not None:
            raise ValueError(
                "value and resolution belong to measure='sum' and 'mean'; with measure='count' "
                "leave them out."
            )
        return None, None
    if value not in domain.names:
        raise DomainError(
            f"measure={measure!r} needs value=, a Numeric column of the domain, which has "
            f"{list(domain.names)}; got {value!r}."
        )
    attribute = domain[value]
    if not isinstance(attribute, Numeric):
        raise DomainError(
            f"value={value!r} is declared Categorical; sums and means need a Numeric column, whose "
            "range bounds what a record adds."
        )
    if not attribute.summable:
        raise DomainError(f"value={value!r} holds dates, which have no sum; use measure='count'.")
    # Special values may lie outside of the range.
    reach = [Fraction(end) for end in (attribute.lower, attribute.upper, *attribute.special)]
    low, high = min(reach), max(reach)
    if measure == "sum":
        return BoundedGrid.of(low, high, resolution), None
    if low == high:
        raise DomainError(f"value={value!r} can only be {attribute.lower!r}: its mean is known.")
    return BoundedGrid.of(0, high - low, resolution), low


def _coded_attribute(attribute, grid, origin):
    """The summed column as it is coded: a code for each number of the grid, or each integer.

    Also a function from its codes to the integers that records add.
    """
    origin = origin or Fraction(0)
    special = [float(value) for value in attribute.special]
    if attribute.integer:
        coded = Numeric(attribute.lower, attribute.upper, integer=True, special=attribute.special)

        def numbers(codes):
            return grid.encode(codes + float(attribute.lower - origin))

    else:
        low, high = (
            round((Fraction(end) - origin) / grid.step)
            for end in (attribute.lower, attribute.upper)
        )
        # Bin j holds what is rounded to the number low + j of the grid.
        ends = [float(origin + (place - Fraction(1, 2)) * grid.step) for place in (low, high + 1)]
        coded = Numeric(ends[0], ends[1], bins=high - low + 1, special=attribute.special)

        def numbers(codes):
            return codes.astype(np.int64) + low

    if not special:
        return coded, numbers
    added = grid.encode(np.array(special) - float(origin))

    def with_special(codes):
        place = codes.astype(np.int64) - coded.bins
        return np.where(place < 0, numbers(codes), added[np.maximum(place, 0)])

    return coded, with_special


def check_value(plan, attribute):
    """Refuse a summed column that cannot be coded, before anything is spent."""
    _coded_attribute(attribute, plan._grid, plan._origin)


def exact_sums(rows, plan, value, attribute, contributions):
    """Exact integers of each source of the plan, by its mask: private.

    Parameters
    ----------
    rows : Frame or LazyRows
    plan : CubePlan
    value : str
        Name of the summed column, which may be a dimension too.
    attribute : Numeric
        The column as declared.
    contributions : Contributions or None

    Returns
    -------
    dict of int to ndarray of int64
        Sums; of a mean the sums of the distances to the lower end and of those to the upper end,
        one after the other. A record that the dimensions cannot represent, or without a value, adds
        nothing.
    """
    coded, numbers = _coded_attribute(attribute, plan._grid, plan._origin)
    names = plan.domain.names
    again = free_name(value, {*names, *rows.names} if value in names else ())
    if again != value:
        rows = rows.with_again(value, again)
    domain = Domain({**{name: plan.domain[name] for name in names}, again: coded})
    codes = code_rows(rows, domain, contributions)
    dimensions = [cuboids.dimensions_of(mask) for mask in plan._masks]
    if plan._measure == "sum":
        (found,) = weighted_tables(codes, domain.shape, dimensions, lambda each: [numbers(each)])
        return dict(zip(plan._masks, found, strict=True))
    reach = plan._sensitivity

    def both(each):
        to_lower = numbers(each)
        return [to_lower, reach - to_lower]

    pairs = zip(*weighted_tables(codes, domain.shape, dimensions, both), strict=True)
    return {mask: np.stack(pair) for mask, pair in zip(plan._masks, pairs, strict=True)}


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
        Selected({**weights, axis: np.ones(len(ends))}, [Numbers(axis, ends, zero, zero)])
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
