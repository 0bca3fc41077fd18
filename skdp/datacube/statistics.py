"""Sums of a column: exact in integers before the noise, and questions to them after it.

The column of which a cube has means is an axis of `CubeModel` after the dimensions, with its ends
as codes; so its sums and means are asked for as those of a dimension are, through a synopsis.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from .._validation import free_name
from ..domain import Categorical, Domain, Numeric
from ..domain.queries.text import with_names
from ..exceptions import DomainError
from ..kernels import cuboids
from ..mechanisms._noise import BoundedGrid
from ..release.queries import parse_parts
from ..release.statistics.estimates import (
    Confidence,
    answer_sums,
    errors_of,
    linear,
    listed,
    telling_cuts,
)
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


def check_counted(plan):
    """Raise ValueError for a cube that has no counts."""
    if plan._measure == "sum":
        raise ValueError(
            "A cube of sums does not know how many records there are. Fit one with measure='mean', "
            "which gives counts, sums and means."
        )


def with_value(plan, value):
    """The domain of a cube of means with the summed column, and the name of that.

    Its codes are the ends of the range. Queries cannot mean it: it has a name of its own.
    """
    low, high = map(float, plan._range)
    name = free_name(f"value of {value}", plan.domain.names)
    return Domain({**dict(plan.domain.items()), name: Categorical([high, low])}), name


def is_summed(plan, value, column):
    """Whether a sum is one of the summed column, and not of a dimension in a cube of counts."""
    if plan._measure == "count":
        if column is None:
            raise ValueError(
                "A cube of counts needs column=, the numeric dimension to be summed. For sums of "
                "another column fit one with measure='sum' or 'mean'."
            )
        return False
    if column not in (None, value):
        raise ValueError(f"This cube knows sums of {value!r} only, got column={column!r}.")
    return True


def plain_sums(model, plan, query, names=None, **how):
    """Sums of a cube of sums, where only the signs of their terms are known."""
    queries, single = listed(with_names(query, names))
    confidence = Confidence.asked(**{"return_interval": False, **how})
    if confidence is not None and confidence.population:
        raise ValueError(
            "A cube of sums does not know how much values vary, so it has no intervals for a "
            "population. Fit one with measure='mean'."
        )
    cases = [parse_parts(each, plan.domain) for each in queries]
    found = answer_sums(model, cases)
    if confidence is None:
        return found.tolist()[0] if single else found
    bounds = -np.inf if plan._grid.lower < 0 else 0.0, np.inf if plan._grid.upper > 0 else 0.0
    results = []
    for parts, value in zip(cases, found.reshape(-1, 1), strict=True):
        errors = errors_of(model, [parts], confidence)
        told = linear(value, errors, np.zeros(1), bounds, confidence, model.total)
        results += telling_cuts(told, parts).results()
    return results[0] if single else results
