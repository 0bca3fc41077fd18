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

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from ..domain import Domain
from .query_text import QueryText
from .regions import Region, axis_of, everything, region_of_range, region_of_values

__all__ = ["first_moment", "parse", "regions_of"]

Query = Mapping[str, Any] | str | None


def parse(query: Query, domain: Domain) -> dict[int, np.ndarray]:
    """Weights of a query, one vector for each attribute that it constrains.

    Parameters
    ----------
    query : dict, str or None
        None and the empty dict ask for all records. In a dict the value for a column is

        - a tuple ``(a, b)``: the closed range from a to b. ``None`` or an infinity leaves an end
          open. On a continuous `Numeric` a partly covered bin counts in proportion, so a range of
          length zero covers nothing; on ``integer=True`` the range means the integers from a to b,
          and a partly covered bin counts by its share of integers; on an ordered `Categorical` the
          categories from a to b. A range never contains the missing cell.
        - a list, set or array: any of these values (``None`` in it is the missing cell).
        - a scalar: this value; in a `Categorical` with a taxonomy the name of a group stands for
          all categories in it. A continuous `Numeric` refuses scalars and lists: a single number
          covers no part of a bin, so ask for a range.
        - None: the missing cell, if the attribute is nullable.

        A string is written as for ``DataFrame.query``: ``=``, ``==``, ``!=``, ``<``, ``<=``,
        ``>``, ``>=``, ``in``, ``not in``, chains such as ``30 <= age < 40``, joined by ``and`` or
        ``&``, parentheses around a condition, backticks around column names that are not
        identifiers, ``None`` for the missing cell. On a continuous column ``<`` and ``<=`` are the
        same. Several conditions on one column intersect; conditions that contradict each other give
        weight zero everywhere. As in pandas, ``!=`` and ``not in`` keep missing values and the
        comparisons drop them.
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
    regions = regions_of(query, domain)
    return {axis: region.weights() for axis, region in sorted(regions.items())}


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
        For each code of ``column`` its weight times the mean of the values covered: the middle of
        the covered part of a bin, the mean of the covered integers, the category itself.

    Raises
    ------
    ValueError
        As in `parse`, or if ``column`` has no numbers.
    """
    regions = regions_of(query, domain)
    axis = axis_of(column, domain)
    region = regions.setdefault(axis, everything(column, domain.attributes[axis]))
    regions[axis] = region = region.without_missing()
    moment = region.moment()
    return {axis: region.weights() for axis, region in sorted(regions.items())}, moment


def _from_dict(query: Mapping[str, Any], domain: Domain) -> dict[int, Region]:
    regions: dict[int, Region] = {}
    for column, value in query.items():
        axis = axis_of(column, domain)
        attribute = domain.attributes[axis]
        if isinstance(value, tuple):
            if len(value) != 2:
                raise ValueError(
                    f"The range for column {column!r} must be a tuple (low, high), got {value!r}. "
                    "For a set of values use a list."
                )
            regions[axis] = region_of_range(column, attribute, *value)
        elif isinstance(value, list | AbstractSet | range):
            regions[axis] = region_of_values(column, attribute, value)
        elif isinstance(value, Mapping):
            raise ValueError(f"The condition on column {column!r} cannot be a dict: {value!r}.")
        elif hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0:
            regions[axis] = region_of_values(column, attribute, value.tolist())
        else:
            regions[axis] = region_of_values(column, attribute, [value])
    return regions


def regions_of(query: Query, domain: Domain) -> dict[int, Region]:
    """The region of each attribute that a query constrains, by its position."""
    if query is None:
        return {}
    if isinstance(query, str):
        return QueryText(query, domain).regions()
    if isinstance(query, Mapping):
        return _from_dict(query, domain)
    raise TypeError(
        f"A query must be a dict or a string, got {query!r} of type {type(query).__name__}."
    )
