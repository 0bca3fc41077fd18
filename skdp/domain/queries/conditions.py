"""Conditions: a dict or a text becomes the region of each column that it constrains."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from .alternatives import conjunctions
from .regions import Region, Schema, attribute_of, region_of_range, region_of_values
from .text import read_query

__all__ = ["NamedQuery", "Query", "parts_of", "regions_of", "with_names"]

Query = Any


@dataclass(frozen=True)
class NamedQuery:
    """A query text and what ``@name`` in it stands for."""

    text: str
    names: Mapping[str, Any]

    def __repr__(self) -> str:
        return repr(self.text)


def with_names(query: Query, names: Mapping[str, Any] | None) -> Query:
    """A query, or each of a list of queries, with values for ``@name``.

    Raises
    ------
    TypeError
        If ``names`` is not a mapping of texts.
    """
    if names is None:
        return query
    if not isinstance(names, Mapping) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"names must be a mapping of names to values, got {names!r}.")
    if isinstance(query, list | tuple):
        return [with_names(one, names) for one in query]
    return NamedQuery(query, names) if isinstance(query, str) else query


def parts_of(query: Query, schema: Schema) -> list[dict[str, Region]]:
    """Disjoint conjunctions whose union a query asks for: the region of each column in them.

    Parameters
    ----------
    query : dict, str, NamedQuery or None
        As for `skdp.release.parse`.
    schema : Schema
        The columns that may be named, such as a domain.

    Raises
    ------
    ValueError
        As `skdp.release.parse`, or if there would be too many conjunctions.
    TypeError
        If the query is neither a dict nor a string.
    """
    if query is None:
        return [{}]
    if isinstance(query, str):
        return conjunctions(read_query(query, schema))
    if isinstance(query, NamedQuery):
        return conjunctions(read_query(query.text, schema, query.names))
    if isinstance(query, Mapping):
        return [_from_dict(query, schema)]
    raise TypeError(
        f"A query must be a dict or a string, got a value of type {type(query).__name__}. It names "
        "columns and values, such as {'age': (0, 17)} or 'age < 18'; a mask of rows is not a query."
    )


def regions_of(query: Query, schema: Schema) -> dict[str, Region]:
    """The region of each column that a query constrains, where it is one conjunction.

    Raises
    ------
    ValueError
        As `parts_of`, or if the query is a union over several columns.
    TypeError
        As `parts_of`.
    """
    parts = parts_of(query, schema)
    if len(parts) > 1:
        raise ValueError(
            f"The query {query!r} joins conditions on several columns by 'or'. Here a query must "
            "be a conjunction: conditions joined by 'and', with 'or' and 'not' only between "
            "conditions on one column."
        )
    return parts[0]


def _from_dict(query: Mapping[str, Any], schema: Schema) -> dict[str, Region]:
    regions: dict[str, Region] = {}
    for column, value in query.items():
        attribute = attribute_of(column, schema)
        if isinstance(value, tuple):
            if len(value) != 2:
                raise ValueError(
                    f"The range for column {column!r} must be a tuple (low, high), got {value!r}. "
                    "For a set of values use a list."
                )
            regions[column] = region_of_range(column, attribute, *value)
        elif isinstance(value, list | AbstractSet | range):
            regions[column] = region_of_values(column, attribute, value)
        elif isinstance(value, Mapping):
            raise ValueError(f"The condition on column {column!r} cannot be a dict: {value!r}.")
        elif hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0:
            regions[column] = region_of_values(column, attribute, value.tolist())
        else:
            regions[column] = region_of_values(column, attribute, [value])
    return regions
