"""Conditions: a dict or a text becomes the region of each column that it constrains."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from .query_text import QueryText
from .regions import Region, Schema, attribute_of, region_of_range, region_of_values

__all__ = ["Query", "regions_of"]

Query = Mapping[str, Any] | str | None


def regions_of(query: Query, schema: Schema) -> dict[str, Region]:
    """The region of each column that a query constrains.

    Parameters
    ----------
    query : dict, str or None
        As for `skdp.release.parse`.
    schema : Schema
        The columns that may be named, such as a domain.

    Raises
    ------
    ValueError
        As `skdp.release.parse`.
    TypeError
        If the query is neither a dict nor a string.
    """
    if query is None:
        return {}
    if isinstance(query, str):
        return QueryText(query, schema).regions()
    if isinstance(query, Mapping):
        return _from_dict(query, schema)
    raise TypeError(
        f"A query must be a dict or a string, got {query!r} of type {type(query).__name__}."
    )


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
