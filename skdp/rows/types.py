"""ColumnType: the type of a column in words that NumPy, pandas, Polars and PyArrow share.

It is read from a type alone, never from a value. It holds no object of a library, so that a stored
release loads where that library is absent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["OWN", "ColumnType", "type_of"]


@dataclass(frozen=True)
class ColumnType:
    """The type of a column.

    Attributes
    ----------
    kind : str
        "integer", "float", "decimal", "boolean", "text", "category", "date", "datetime", "period",
        "object", or "own": the type that the domain decodes to.
    bits : int
        Size of integers, floats and decimals; of a dictionary of Arrow, the size of its indices;
        of text in NumPy, its number of characters.
    signed : bool
        For integers, and for the indices of a dictionary.
    flavour : str
        Which of several types of the library that hold the same values.
    precision, scale : int
        Digits of a decimal, and digits after its point.
    unit, zone : str
        Resolution and time zone of a datetime; the unit of a period is its frequency.
    ordered : bool
        Of a category.
    values : ColumnType or None
        Type of the categories of a category, where the library has one.
    """

    kind: str
    bits: int = 0
    signed: bool = True
    flavour: str = ""
    precision: int = 0
    scale: int = 0
    unit: str = ""
    zone: str = ""
    ordered: bool = False
    values: ColumnType | None = None

    def but(self, **changes: Any) -> ColumnType:
        """The same type with some fields changed."""
        return replace(self, **changes)


OWN = ColumnType("own")


def type_of(data: Any, library: str) -> ColumnType:
    """Type of an array or a series.

    Parameters
    ----------
    data : array, Series or ChunkedArray
    library : {"numpy", "pandas", "polars", "pyarrow"}
    """
    if library == "pyarrow":
        return _of_arrow(data.type)
    return {"numpy": _of_numpy, "pandas": _of_pandas, "polars": _of_polars}[library](data.dtype)


def _of_numpy(dtype: np.dtype) -> ColumnType:
    kind = dtype.kind
    if kind in "iu":
        return ColumnType("integer", 8 * dtype.itemsize, kind == "i", dtype.byteorder)
    if kind == "f":
        # Long doubles hold no more of a drawn number than float64 does.
        return ColumnType("float", min(8 * dtype.itemsize, 64), flavour=dtype.byteorder)
    if kind == "M":
        return ColumnType("datetime", unit=np.datetime_data(dtype)[0])
    named = {"b": ColumnType("boolean"), "O": ColumnType("object")}
    named["U"] = ColumnType("text", dtype.itemsize // 4, flavour="U")
    named["T"] = ColumnType("text", flavour="T")
    return named.get(kind, OWN)


def _of_pandas(dtype: Any) -> ColumnType:
    if isinstance(dtype, np.dtype):
        found = _of_numpy(dtype)
        return found if found.kind == "text" else found.but(flavour="numpy")
    if isinstance(dtype, pd.ArrowDtype):
        found = _of_arrow(dtype.pyarrow_dtype)
        return found if found is OWN else found.but(flavour=f"arrow:{found.flavour}")
    if isinstance(dtype, pd.CategoricalDtype):
        values = _of_pandas(dtype.categories.dtype)
        return ColumnType("category", ordered=bool(dtype.ordered), values=values)
    if isinstance(dtype, pd.StringDtype):
        # pandas before 2.3 has one kind of missing value only.
        missing = "NA" if getattr(dtype, "na_value", pd.NA) is pd.NA else "nan"
        return ColumnType("text", flavour=f"{dtype.storage}:{missing}")
    if isinstance(dtype, pd.DatetimeTZDtype):
        return ColumnType("datetime", flavour="numpy", unit=dtype.unit, zone=str(dtype.tz))
    if isinstance(dtype, pd.PeriodDtype):
        # As it is written within a type: "M", where the frequency itself may be called "ME".
        return ColumnType("period", unit=str(dtype).partition("[")[2].rstrip("]"))
    if pd.api.types.is_bool_dtype(dtype):
        return ColumnType("boolean", flavour="masked")
    inner = getattr(dtype, "numpy_dtype", None)
    if isinstance(inner, np.dtype) and inner.kind in "iuf":
        return _of_numpy(inner).but(flavour="masked")
    return OWN


_SIZED = {
    **{f"Int{bits}": ColumnType("integer", bits) for bits in (8, 16, 32, 64, 128)},
    **{f"UInt{bits}": ColumnType("integer", bits, False) for bits in (8, 16, 32, 64, 128)},
    **{f"Float{bits}": ColumnType("float", bits) for bits in (16, 32, 64)},
    "Boolean": ColumnType("boolean"),
    "String": ColumnType("text"),
    "Date": ColumnType("date"),
    "Object": ColumnType("object"),
    "Categorical": ColumnType("category", flavour="Categorical"),
    "Enum": ColumnType("category", flavour="Enum", ordered=True),
}


def _of_polars(dtype: Any) -> ColumnType:
    """Type of a Polars column."""
    name = type(dtype).__name__
    if name == "Decimal":
        # Older versions allow a decimal without a precision, which has the largest.
        digits = 38 if dtype.precision is None else dtype.precision
        return ColumnType("decimal", 128, precision=digits, scale=dtype.scale)
    if name == "Datetime":
        return ColumnType("datetime", unit=dtype.time_unit, zone=dtype.time_zone or "")
    return _SIZED.get(name, OWN)


def _of_arrow(dtype: Any) -> ColumnType:
    """Type of an Arrow column."""
    text = str(dtype)
    if text.startswith("dictionary"):
        index = dtype.index_type
        return ColumnType(
            "category",
            index.bit_width,
            str(index).startswith("int"),
            ordered=bool(dtype.ordered),
            values=_of_arrow(dtype.value_type),
        )
    if text.startswith("decimal"):
        digits = {"precision": dtype.precision, "scale": dtype.scale}
        return ColumnType("decimal", dtype.bit_width, **digits)
    if text.startswith("timestamp"):
        return ColumnType("datetime", unit=dtype.unit, zone=dtype.tz or "")
    if text in ("string", "large_string", "string_view"):
        return ColumnType("text", flavour=text)
    if text.startswith("date"):
        return ColumnType("date", flavour=text.partition("[")[0])
    # "halffloat", "float" and "double" in Arrow's own words.
    floats = {"halffloat": 16, "float": 32, "double": 64}
    if text in floats:
        return ColumnType("float", floats[text])
    if text == "bool":
        return ColumnType("boolean")
    if text.startswith(("int", "uint")) and hasattr(dtype, "bit_width"):
        return ColumnType("integer", dtype.bit_width, text.startswith("int"))
    return OWN
