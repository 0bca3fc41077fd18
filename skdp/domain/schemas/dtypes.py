"""Dtype listings: names and types of columns, of any frame library; no value is read.

Libraries are recognised by the module of their objects, so that none is imported.
"""

from __future__ import annotations

import datetime
import enum
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from ...exceptions import DomainError
from ..values import is_missing
from .field import Field, checked_names
from .words import meaning

__all__ = ["fields_of_dtypes", "is_listing", "of_dtype"]

_RENAME = (
    "Rename the columns first: `frame.columns.map(str)` makes all names text, and "
    "`[f'c{i}' for i in range(frame.shape[1])]` makes them different."
)
_NUMPY_KINDS = {"i": "integer", "u": "integer", "f": "number", "b": "boolean", "O": "object"}
_PYTHON_TYPES: dict[type, str] = {
    int: "integer",
    float: "number",
    Decimal: "number",
    bool: "boolean",
    str: "category",
    datetime.datetime: "datetime",
    datetime.date: "date",
    object: "object",
}
# Dask's mark for categories that are not in the type.
_UNKNOWN = "__UNKNOWN_CATEGORIES__"


def library(thing: Any) -> str:
    """Name of the library that defines an object or class."""
    owner = thing if isinstance(thing, type) else type(thing)
    return str(owner.__module__).partition(".")[0]


def is_listing(source: Any) -> bool:
    """Whether an object names columns and their types."""
    if isinstance(source, np.ndarray | pd.DataFrame | pd.Series):
        return True
    if isinstance(source, np.dtype):
        return source.names is not None
    if isinstance(source, str | bytes | type):
        return False
    names = ("collect_schema", "dtypes", "types", "schema")
    return any(hasattr(source, name) for name in names) or library(source) in (
        "polars",
        "pyarrow",
        "narwhals",
    )


def fields_of_dtypes(source: Any) -> list[Field]:
    """Columns of a frame, a schema, a mapping or pairs of names and types.

    Raises
    ------
    DomainError
        If it lists no columns, or names are repeated or are not strings.
    """
    pairs = _pairs(source)
    checked_names([name for name, _, _ in pairs], _RENAME)
    fields = []
    for name, dtype, nullable in pairs:
        field = of_dtype(name, dtype)
        if nullable is not None:
            field.nullable = nullable
        fields.append(field)
    return fields


def _pairs(source: Any) -> list[tuple[Any, Any, bool | None]]:
    """(name, type, whether the schema says that values may be missing)."""
    if isinstance(source, np.ndarray):
        return _array_pairs(source)
    if isinstance(source, np.dtype):
        return [(name, source[name], None) for name in source.names or ()]
    if isinstance(source, pd.Series):
        return [(name, dtype, None) for name, dtype in source.items()]
    if hasattr(source, "collect_schema"):  # Polars and narwhals
        return [(name, dtype, None) for name, dtype in source.collect_schema().items()]
    if isinstance(source, Mapping):
        return [(name, dtype, None) for name, dtype in source.items()]
    if library(source) == "duckdb":
        return list(zip(source.columns, source.types, [None] * len(source.columns), strict=True))
    schema = getattr(source, "schema_arrow", None) or getattr(source, "schema", None)
    if hasattr(source, "fields"):  # a schema of Spark
        schema = source
    if schema is not None and hasattr(schema, "fields"):
        return [(field.name, field.dataType, bool(field.nullable)) for field in schema.fields]
    if library(schema if schema is not None else source) == "pyarrow":
        columns = schema if schema is not None else source
        return [(field.name, field.type, bool(field.nullable)) for field in columns]
    if hasattr(source, "dtypes"):  # pandas, Dask and what is like them
        dtypes = source.dtypes
        listed = dtypes.items() if hasattr(dtypes, "items") else dtypes
        return [(name, dtype, None) for name, dtype in listed]
    if isinstance(source, Iterable):
        pairs = list(source)
        if all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
            return [(name, dtype, None) for name, dtype in pairs]
    raise DomainError(
        f"{type(source).__name__} does not list columns and types. Give a frame, its `dtypes`, a "
        "Polars or Arrow schema, or a dict of names and types."
    )


def _array_pairs(array: Any) -> list[tuple[Any, Any, bool | None]]:
    if array.dtype.names is not None:
        return [(name, array.dtype[name], None) for name in array.dtype.names]
    if array.ndim != 2:
        raise DomainError(f"An array of rows has two dimensions, got shape {array.shape}.")
    return [(f"x{position}", array.dtype, None) for position in range(array.shape[1])]


def of_dtype(name: str, dtype: Any) -> Field:
    """What one type says about a column.

    Parameters
    ----------
    name : str
    dtype : type, dtype or str
        Of NumPy, pandas, Polars, Arrow, DuckDB, Spark, narwhals or Python, or its name.
    """
    if isinstance(dtype, str):
        kind, said = meaning(dtype)
        loose = kind == "datetime" and "64" in dtype
        return Field(name, kind, dtype, nullable=_may_lack(dtype), loose=loose, **said)
    if isinstance(dtype, type) and issubclass(dtype, enum.Enum):
        values = [member.value for member in dtype]
        return Field(name, "category", dtype.__name__, categories=values, nullable=True)
    if isinstance(dtype, type) and dtype in _PYTHON_TYPES:
        lacks = dtype not in (int, bool)
        return Field(name, _PYTHON_TYPES[dtype], dtype.__name__, nullable=lacks)
    if isinstance(dtype, type) and issubclass(dtype, np.generic):
        dtype = np.dtype(dtype)
    if isinstance(dtype, np.dtype):
        return _of_numpy(name, dtype)
    if isinstance(dtype, pd.api.extensions.ExtensionDtype):
        return _of_pandas(name, dtype)
    return _of_other(name, dtype)


def _may_lack(dtype: str) -> bool:
    """Whether a column of this type, named as in NumPy, can have missing values."""
    return not re.fullmatch(r"u?int\d*|bool|integer|boolean", dtype.strip())


def _of_numpy(name: str, dtype: np.dtype[Any]) -> Field:
    if dtype.kind == "M":
        return Field(name, "datetime", str(dtype), nullable=True, loose=True)
    kind = "category" if dtype.kind in "UT" else _NUMPY_KINDS.get(dtype.kind, "unknown")
    return Field(name, kind, str(dtype), nullable=dtype.kind not in "iub")


def _of_pandas(name: str, dtype: Any) -> Field:
    if isinstance(dtype, pd.CategoricalDtype):
        return _with_categories(name, dtype.categories, dtype, ordered=bool(dtype.ordered))
    if isinstance(dtype, pd.DatetimeTZDtype):
        return Field(name, "datetime", str(dtype), tz=str(dtype.tz), nullable=True)
    if isinstance(dtype, pd.PeriodDtype):
        units = {"D": "day", "W": "week", "M": "month", "Q": "quarter", "Y": "year", "A": "year"}
        unit = units.get(str(dtype).partition("[")[2][:1])
        kind = "date" if unit else "unknown"
        return Field(name, kind, str(dtype), unit=unit, nullable=True)
    if isinstance(dtype, pd.SparseDtype):
        return of_dtype(name, dtype.subtype)
    if isinstance(dtype, pd.ArrowDtype):
        field = _of_other(name, dtype.pyarrow_dtype)
        field.type = str(dtype)
        return field
    if isinstance(dtype, pd.StringDtype):
        return Field(name, "category", str(dtype), nullable=True)
    kind, said = meaning(str(dtype))
    return Field(name, kind, str(dtype), nullable=True, **said)


def _with_categories(name: str, categories: Any, dtype: Any, *, ordered: bool) -> Field:
    """A column of a categorical type, which may or may not list its categories."""
    values = None if categories is None else list(categories)
    if values is not None and _UNKNOWN in values[:1]:
        values = None
    text = str(dtype) if isinstance(dtype, pd.CategoricalDtype) else type(dtype).__name__
    listed = values if values and not any(is_missing(value) for value in values) else None
    return Field(name, "category", text, categories=listed, ordered=ordered, nullable=True)


def _of_other(name: str, dtype: Any) -> Field:
    """Types of Polars, narwhals, Arrow, DuckDB and Spark."""
    home = library(dtype)
    if home in ("polars", "narwhals"):
        text = str(dtype)
        if text.startswith("Enum") and hasattr(dtype, "categories"):
            categories = dtype.categories
            return _with_categories(name, categories, dtype, ordered=True)
    elif home == "duckdb" or "duckdb" in home:
        text = str(dtype)
        if text.startswith("ENUM"):
            values = dict(dtype.children)["values"]
            return Field(name, "category", "ENUM", categories=list(values), nullable=True)
    elif hasattr(dtype, "simpleString"):
        text = dtype.simpleString()
        if text == "timestamp":
            text = "timestamptz"  # Spark's timestamps are instants
    else:
        text = str(dtype)
    kind, said = meaning(text)
    if text.casefold().startswith("binary"):
        kind = "unknown"  # bytes, not a column with two values
    return Field(name, kind, text, nullable=True, loose=False, **said)
