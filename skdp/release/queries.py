"""Queries: a dict or a string becomes weights of codes, one vector for each constrained attribute.

The answer to a conjunction of one condition per attribute on a box of the domain is a product over
the attributes. A weight is the share of a code's cell that the condition covers: 1 or 0 for a
category, a fraction for a bin that a range cuts. Any other query is a union of disjoint
conjunctions, and its answer is the sum of theirs.

Two forms are read::

    {"age": (30, 40), "sex": "Female", "job": ["clerk", "cook"]}
    "30 <= age <= 40 and (sex == 'Female' or job in ['clerk', 'cook'])"

Strings go through a tokenizer and parser of our own; nothing in them is ever executed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..domain import Domain, Numeric
from ..domain.queries.regions import Region, attribute_of, everything
from ..domain.queries.text import Query, parts_of, regions_of

# Conditions and texts that a reader of many queries keeps.
_MAX_KNOWN = 10_000
_PLAIN = frozenset([int, float, str, bool, type(None)])


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
        ``>``, ``>=``, ``in``, ``not in``, chains such as ``30 <= age < 40``, ``between 30 and 40``
        (both ends included), ``is null`` and ``is not null``, joined by ``and``, ``or``, ``not``
        or ``&``, ``|``, ``~``, with parentheses, backticks around column names that are not
        identifiers, ``None`` for the missing cell. ``not`` binds first, then ``and``, then ``or``.
        On a continuous column ``<`` and ``<=`` are the same but for special values. Conditions
        that contradict each other give weight zero everywhere. As in pandas, ``!=``, ``not in``
        and ``not`` keep missing values and the comparisons drop them. At most 1,000 conditions,
        50 parentheses or negations inside each other, and 1,000,000 characters.
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
        support, or a string that cannot be read; the message says where and what to do. Also a
        union over several columns, which has no such weights: see `parse_parts`.
    TypeError
        If the query is neither a dict nor a string.

    Examples
    --------
    >>> from skdp import Categorical, Domain, Numeric
    >>> domain = Domain({"pay": Numeric(0, 80, bins=4), "sex": Categorical(["F", "M"])})
    >>> parse("10 <= pay < 50 and sex == 'F'", domain)
    {0: array([0.5, 1. , 0.5, 0. ]), 1: array([1., 0.])}
    """
    return weights_of(regions_of(query, domain), domain)


def parse_parts(query: Query, domain: Domain) -> list[dict[int, np.ndarray]]:
    """Weights of disjoint conjunctions whose union a query asks for.

    Parameters
    ----------
    query : dict, str or None
        As in `parse`, with ``or`` and ``not`` between conditions on any columns.
    domain : Domain
        The public schema.

    Returns
    -------
    list of dict of int to ndarray of float64
        Each as from `parse`; one or more. The answer to the query is the sum of theirs.

    Raises
    ------
    ValueError
        As in `parse`, or if there would be more than 1,000 conjunctions.
    TypeError
        As in `parse`.

    Examples
    --------
    >>> from skdp import Categorical, Domain, Numeric
    >>> domain = Domain({"pay": Numeric(0, 80, bins=4), "sex": Categorical(["F", "M"])})
    >>> for weights in parse_parts("pay < 30 or sex == 'F'", domain):
    ...     print(weights)
    {0: array([0. , 0.5, 1. , 1. ]), 1: array([1., 0.])}
    {0: array([1. , 0.5, 0. , 0. ])}
    """
    return [weights_of(regions, domain) for regions in parts_of(query, domain)]


class QueryReader:
    """Reads many queries; conditions that repeat are weighed once.

    Parameters
    ----------
    domain : Domain
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self._known: dict[Any, dict[int, np.ndarray]] = {}
        self._texts: dict[str, list[dict[int, np.ndarray]]] = {}

    def parts(self, query: Query) -> list[dict[int, np.ndarray]]:
        """As `parse_parts`."""
        if isinstance(query, str):
            return self._text(query)
        if type(query) is not dict:
            return parse_parts(query, self.domain)
        found: dict[int, np.ndarray] = {}
        for column, value in query.items():
            key = _key(column, value)
            known = None if key is None else self._known.get(key)
            if known is None:
                known = parse({column: value}, self.domain)
                if key is not None and len(self._known) < _MAX_KNOWN:
                    self._known[key] = known
            for axis, vector in known.items():
                found[axis] = found[axis] * vector if axis in found else vector
        return [found if len(found) < 2 else dict(sorted(found.items()))]

    def _text(self, text: str) -> list[dict[int, np.ndarray]]:
        found = self._texts.get(text)
        if found is None:
            found = parse_parts(text, self.domain)
            if len(self._texts) < _MAX_KNOWN:
                self._texts[text] = found
        return found


def _key(column: Any, value: Any) -> Any:
    """What a condition in a dict is recognised by; None for other than numbers and texts."""
    kind = type(value)
    if kind is tuple and len(value) == 2:
        kinds = type(value[0]), type(value[1])
        return (column, value, *kinds) if _PLAIN.issuperset(kinds) else None
    return (column, value, kind) if kind in _PLAIN else None


def weights_of(regions: Mapping[str, Region], domain: Domain) -> dict[int, np.ndarray]:
    """Weights of a conjunction, as from `parse`."""
    return _by_axis(domain, domain.structure.weights_of_regions(regions))


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
    return _first_moment(regions_of(query, domain), domain, column)


def _first_moment(
    regions: Mapping[str, Region], domain: Domain, column: str
) -> tuple[dict[int, np.ndarray], np.ndarray]:
    attribute = attribute_of(column, domain)
    region = regions.get(column) or everything(column, attribute)
    region = region.without_missing()
    structure = domain.structure
    base = structure.base_of(column)
    moment, own = (structure.lifted(column, part) for part in (region.moment(), region.weights()))
    others = {name: each for name, each in regions.items() if name != column}
    found = structure.weights_of_regions(others)
    moment = moment * found.get(base, 1.0)
    found[base] = own * found.get(base, 1.0)
    return _by_axis(domain, found), moment


def moments(
    regions: Mapping[str, Region], domain: Domain, column: str
) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
    """Weights of a conjunction's records with a value in a column, and those of its sum."""
    present, moment = _first_moment(regions, domain, column)
    return present, {**present, domain.index(domain.structure.base_of(column)): moment}


def reach_of(column: str, domain: Domain) -> tuple[float, float]:
    """Smallest and largest value that a mean of a column can have."""
    attribute = attribute_of(column, domain)
    if isinstance(attribute, Numeric):
        ends = attribute.contents.span(np.arange(attribute.bins))
        low, high = (np.append(each, attribute.special).astype(np.float64) for each in ends)
        return float(low.min()), float(high.max())
    weights, moment = first_moment(None, domain, column)
    [held] = weights.values()
    seen = moment[held > 0]
    return float(seen.min()), float(seen.max())


def _by_axis(domain: Domain, weights: dict[str, np.ndarray]) -> dict[int, np.ndarray]:
    found = {domain.index(name): vector for name, vector in weights.items()}
    return dict(sorted(found.items()))
