"""Reading the column, the domain and the queries of a histogram."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..domain import Categorical, Domain, Numeric
from ..exceptions import DomainError
from ..rows import list_entries


def as_table(X: Any) -> Any:
    """One column as a table; everything else as it is."""
    if hasattr(X, "to_frame") and not hasattr(X, "columns"):
        return X.to_frame()
    if isinstance(X, np.ndarray) and X.ndim == 1:
        return X[:, None]
    if isinstance(X, list | tuple):
        # Entry by entry: a list in the place of a number is an odd value, and no other table.
        lengths = {_length(row) for row in X}
        return X if len(lengths) == 1 and min(lengths) > 1 else list_entries(X)[:, None]
    return X


def _length(row: Any) -> int:
    plain = type(row) in (list, tuple) or (type(row) is np.ndarray and row.ndim == 1)
    return len(row) if plain else 0


def only_attribute(domain: Domain) -> Any:
    """The attribute of a domain that must have just one."""
    if len(domain.names) != 1:
        raise DomainError(
            f"A RangeTreeHistogram has one attribute, but there are {len(domain.names)}: "
            f"{list(domain.names)[:8]}. Select a column, and declare its domain alone."
        )
    return domain.attributes[0]


def declared_attribute(declared: Any) -> Any:
    """The attribute, before there are rows to name it."""
    if isinstance(declared, Domain):
        return only_attribute(declared)
    if isinstance(declared, Numeric | Categorical):
        return declared
    if isinstance(declared, list | tuple) and len(declared) == 1:
        return declared[0]
    raise TypeError(
        f"domain must be a Domain of one column, a Numeric or a Categorical, got {declared!r}."
    )


def as_condition(query: Any, name: str) -> Any:
    """A query about the one column, as synopses understand it."""
    if query is None or isinstance(query, str | Mapping):
        return query
    return {name: query}


def as_list(query: Any) -> tuple[list[Any], bool]:
    """The queries, and whether there may be several: a list, or an array of ranges."""
    if isinstance(query, np.ndarray):
        return [tuple(ends) for ends in query.tolist()], True
    return (query, True) if isinstance(query, list) else ([query], False)


def as_numbers(attribute: Numeric, values: Any) -> np.ndarray:
    """Values on the number line of an attribute: numbers, or dates."""
    if attribute.summable:
        return np.asarray(values, dtype=np.float64)
    # Entry by entry: text, dates and Timestamps have no common type.
    given = np.asarray(values, dtype=object)
    numbers = [attribute.number(value, "of the histogram") for value in given.ravel().tolist()]
    return np.array(numbers, dtype=np.float64).reshape(given.shape)
