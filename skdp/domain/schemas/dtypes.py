"""Dtype listings: names and types of columns, of any frame library; no value is read.

Libraries are recognised by the module of their objects, so that none is imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ...exceptions import DomainError
from ..categorical import declared_categories
from ..values import is_missing
from .cells import meaning
from .field import Field

# Dask's mark for categories that are not in the type.
_UNKNOWN = "__UNKNOWN_CATEGORIES__"
_UNITS = {"D": "day", "W": "week", "M": "month", "Q": "quarter", "Y": "year", "A": "year"}


def library(thing: Any) -> str:
    """Name of the library that defines an object or class."""
    owner = thing if isinstance(thing, type) else type(thing)
    return str(owner.__module__).partition(".")[0]


def fields_of_dtypes(source: Any) -> Iterator[Field]:
    """Columns of a frame, lazy frame, array, schema, or mapping from names to types.

    Raises
    ------
    DomainError
        If it lists no columns and types.
    """
    for name, dtype, *nullable in _pairs(source):
        field = of_dtype(name, dtype)
        field.nullable = nullable[0] if nullable else field.nullable
        yield field


def _pairs(source: Any) -> Iterable[tuple[Any, ...]]:
    """(name, type), and whether values may be missing if the schema says so."""
    if isinstance(source, np.ndarray) and source.dtype.names is None:
        if source.ndim != 2:
            raise DomainError(f"An array of rows has two dimensions, got shape {source.shape}.")
        return [(f"x{position}", source.dtype) for position in range(source.shape[1])]
    if isinstance(source, np.ndarray | np.dtype):
        dtype: Any = getattr(source, "dtype", source)
        return [(name, dtype[name]) for name in dtype.names or ()]
    if isinstance(source, pd.DataFrame):
        source = source.dtypes
    if hasattr(source, "collect_schema"):  # Polars and narwhals
        source = source.collect_schema()
    if isinstance(source, Mapping | pd.Series):
        return source.items()
    if library(source) == "duckdb":
        return zip(source.columns, source.types, strict=True)
    schema = getattr(source, "schema_arrow", None) or getattr(source, "schema", None)
    if schema is None or hasattr(source, "fields"):
        schema = source
    if hasattr(schema, "fields"):  # Spark
        return [(field.name, field.dataType, bool(field.nullable)) for field in schema.fields]
    if library(schema) == "pyarrow":
        return [(field.name, field.type, bool(field.nullable)) for field in schema]
    listed = getattr(source, "dtypes", source)  # pandas, Dask and what is like them
    if hasattr(listed, "items"):
        return listed.items()
    pairs = list(listed) if isinstance(listed, Iterable) else [listed]
    if all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
        return pairs
    raise DomainError(
        f"{type(source).__name__} does not list columns and types. Give a frame, its `dtypes`, a "
        "Polars or Arrow schema, or a dict of names and types."
    )


def of_dtype(name: str, dtype: Any) -> Field:
    """What one type says about a column.

    Parameters
    ----------
    name : str
    dtype : type, dtype or str
        Of NumPy, pandas, Polars, Arrow, DuckDB, Spark, narwhals or Python, or its name.
    """
    if isinstance(dtype, pd.SparseDtype):
        return of_dtype(name, dtype.subtype)
    text = dtype.__name__ if isinstance(dtype, type) else str(dtype)
    # NumPy names its types otherwise than it writes them; Spark says what it means.
    said = dtype.name if isinstance(dtype, np.dtype) else text.removesuffix("[pyarrow]")
    said = dtype.simpleString() if hasattr(dtype, "simpleString") else said
    text = said if hasattr(dtype, "simpleString") else text
    kind, more = meaning(said)
    field = Field(name, kind, text, nullable=True, **more)
    if isinstance(dtype, str | type | np.dtype):
        field.nullable = not re.fullmatch(r"u?int\d*|bool_?|integer|boolean", said.strip())
        field.loose = kind == "datetime" and "64" in said
    elif said == "timestamp":
        field.tz = "UTC"  # Spark's timestamps are instants
    elif said.startswith("binary"):
        field.kind = "unknown"  # bytes, not a column with two values
    if isinstance(dtype, pd.PeriodDtype):
        field.unit = _UNITS.get(said.partition("[")[2][:1])
        field.kind = "date" if field.unit else "unknown"
    try:
        listed, ordered = declared_categories(dtype)
    except DomainError:  # it does not say which
        return field
    if library(dtype) in ("duckdb", "_duckdb") and said.startswith("ENUM"):
        listed = dict(dtype.children)["values"]
    if listed is not dtype:
        field.kind, field.type, field.ordered = "category", text.partition("(")[0], ordered
        known = listed and listed[0] != _UNKNOWN and not any(map(is_missing, listed))
        field.categories = list(listed) if known else None
    return field
