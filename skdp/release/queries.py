"""Queries: a dict or a string becomes one weight vector for each constrained attribute.

A query is a conjunction of one condition per attribute, so that its answer on a box of the domain
is a product over the attributes. A weight is the share of a code's cell that the condition covers:
1 or 0 for a category, a fraction for a bin that a range cuts.

Two forms are read::

    {"age": (30, 40), "sex": "Female", "job": ["clerk", "cook"]}
    "30 <= age <= 40 and sex == 'Female' and job in ['clerk', 'cook']"

Strings go through a tokenizer and parser of our own; nothing in them is ever executed.
"""

from __future__ import annotations

import numpy as np

from ..domain import Domain
from ..domain.conditions import Query, regions_of
from ..domain.regions import attribute_of, everything
from ..domain.rules import TotalOf

__all__ = ["first_moment", "moments", "parse", "reach_of"]


def parse(query: Query, domain: Domain) -> dict[int, np.ndarray]:
    """Weights of a query, one vector for each attribute that it constrains.

    Parameters
    ----------
    query : dict, str or None
        None and the empty dict ask for all records. In a dict the value for a column is

        - a tuple ``(a, b)``: the closed range from a to b. ``None`` or an infinity leaves an end
          open. On a continuous `Numeric` a partly covered bin counts in proportion (on the
          ``scale`` of its bins), so a range of length zero covers nothing but special values;
          on ``integer=True`` the range means the integers from a to b, and a partly covered bin
          counts by its share of integers; on an ordered `Categorical` the categories from a to b. A
          range never contains the missing cell.
        - a list, set or array: any of these values (``None`` in it is the missing cell).
        - a scalar: this value; in a `Categorical` with a taxonomy the name of a group stands for
          all categories in it. A special value of a `Numeric` is its cell; with ``step`` or
          ``decimals`` a single number is its share of the bin. Otherwise a continuous `Numeric`
          refuses scalars and lists: a single number covers no part of a bin, so ask for a range.
        - None: the missing cell, if the attribute is nullable.

        A string is written as for ``DataFrame.query``: ``=``, ``==``, ``!=``, ``<``, ``<=``,
        ``>``, ``>=``, ``in``, ``not in``, chains such as ``30 <= age < 40``, joined by ``and`` or
        ``&``, parentheses around a condition, backticks around column names that are not
        identifiers, ``None`` for the missing cell. On a continuous column ``<`` and ``<=`` are the
        same but for special values. Several conditions on one column intersect; conditions that
        contradict each other give weight zero everywhere. As in pandas, ``!=`` and ``not in`` keep
        missing values and the comparisons drop them.
    domain : Domain
        The public schema.

    Returns
    -------
    dict of int to ndarray of float64
        Position of the attribute in the domain -> vector of its ``size`` weights in [0, 1].

    Raises
    ------
    ValueError
        Unknown column, unknown category, reversed range, a comparison that the attribute does not
        support, or a string that cannot be read; the message says where and what to do.
    TypeError
        If the query is neither a dict nor a string.

    Examples
    --------
    >>> from skdp import Categorical, Domain, Numeric
    >>> domain = Domain({"pay": Numeric(0, 80, bins=4), "sex": Categorical(["F", "M"])})
    >>> parse("10 <= pay < 50 and sex == 'F'", domain)
    {0: array([0.5, 1. , 0.5, 0. ]), 1: array([1., 0.])}
    """
    return _by_axis(domain, domain.structure.weights_of(query, domain))


def first_moment(
    query: Query, domain: Domain, column: str
) -> tuple[dict[int, np.ndarray], np.ndarray]:
    """Weights of a query, and the same for one column with every cell weighted by its value.

    Parameters
    ----------
    query : dict, str or None
        As in `parse`.
    domain : Domain
    column : str
        A `Numeric`, or a `Categorical` whose categories are numbers.

    Returns
    -------
    weights : dict of int to ndarray of float64
        As from `parse`; it always has a vector for ``column``, with 0 for the missing cell.
    moment : ndarray of float64
        For each code of ``column`` its weight times the mean of the values covered: the mean of
        the covered part of a bin, the mean of the covered integers, the category itself.

    Raises
    ------
    ValueError
        As in `parse`, or if ``column`` has no numbers.
    """
    attribute = attribute_of(column, domain)
    regions = regions_of(query, domain)
    region = regions.pop(column, None) or everything(column, attribute)
    region = region.without_missing()
    structure = domain.structure
    base = structure.base_of(column)
    moment, own = (structure.lifted(column, part) for part in (region.moment(), region.weights()))
    found = structure.weights_of_regions(regions)
    moment = moment * found.get(base, 1.0)
    found[base] = own * found.get(base, 1.0)
    return _by_axis(domain, found), moment


def moments(
    query: Query, domain: Domain, column: str
) -> tuple[dict[int, np.ndarray], list[dict[int, np.ndarray]]]:
    """Weights of the records with a value in a column, and weights whose answers add up to its sum.

    Parameters
    ----------
    query, domain, column
        As in `first_moment`; the column may also be a total, whose sum is that of its parts.

    Returns
    -------
    present : dict of int to ndarray of float64
    terms : list of dict
        One for each part of a total, else one.
    """
    rule = domain.structure.derived.get(column) if isinstance(column, str) else None
    if not isinstance(rule, TotalOf):
        present, moment = first_moment(query, domain, column)
        axis = domain.index(domain.structure.base_of(column))
        return present, [{**present, axis: moment}]
    present = parse(query, domain)
    for part in rule.parts:
        axis, attribute = domain.index(part), domain[part]
        known = (np.arange(attribute.size) < attribute.n_values).astype(np.float64)
        present[axis] = present[axis] * known if axis in present else known
    terms = [
        {**present, domain.index(part): first_moment(query, domain, part)[1]} for part in rule.parts
    ]
    return present, terms


def reach_of(column: str, domain: Domain) -> tuple[float, float]:
    """Smallest and largest value that a mean of a column can have."""
    weights, moment = first_moment(None, domain, column)
    [held] = weights.values()
    seen = moment[held > 0]
    return float(seen.min()), float(seen.max())


def _by_axis(domain: Domain, weights: dict[str, np.ndarray]) -> dict[int, np.ndarray]:
    found = {domain.index(name): vector for name, vector in weights.items()}
    return dict(sorted(found.items()))
