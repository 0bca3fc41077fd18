"""Decoded values as a column of a given type, in NumPy, pandas, Polars and PyArrow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._types import BoolArray, FloatArray
from ..domain.values import MAX_INTEGER, is_missing
from .columns import numpy_column
from .holding import ColumnType, Held, scaled


@dataclass(frozen=True)
class ColumnPlan:
    """What a column of the output looks like: its type, and what the domain says of its values.

    Attributes
    ----------
    type : ColumnType
    held : Held
    categories : tuple
        Of a category, in the order of the output.
    """

    type: ColumnType
    held: Held
    categories: tuple[Any, ...] = ()


def cast_column(values: pd.Series, plan: ColumnPlan, library: str) -> Any:
    """Decoded values as a column of the library: an array, Series or array of Arrow.

    Parameters
    ----------
    values : Series
        As a domain decodes them.
    plan : ColumnPlan
        Its type is not "own".
    library : {"numpy", "pandas", "polars", "pyarrow"}
    """
    missing = values.isna().to_numpy()
    if library == "pandas" and plan.type.flavour.startswith("arrow:"):
        found = plan.type.but(flavour=plan.type.flavour.partition(":")[2])
        data = _to_arrow(_neutral(values, missing, plan), missing, found, plan)
        return pd.Series(pd.arrays.ArrowExtensionArray(data))
    if library == "pandas" and _is_text(values, plan.type):
        return values
    return _MAKERS[library](_neutral(values, missing, plan), missing, plan.type, plan)


def _is_text(values: pd.Series, found: ColumnType) -> bool:
    """Whether values have the type of pandas for text already, as the most frequent ones do."""
    return found.kind == "text" and bool(values.dtype == _string_dtype(found.flavour))


def _neutral(values: pd.Series, missing: BoolArray, plan: ColumnPlan) -> NDArray[Any]:
    """Values as an array that every library reads; where one is missing, the entry is arbitrary."""
    kind = plan.type.kind
    if kind in ("integer", "boolean"):
        filled = _filled(values, missing, plan.held.low)
        if kind == "boolean":
            return filled.astype(bool)
        return filled.astype(np.int64).astype(_integer_dtype(plan.type))
    if kind == "float":
        return _rounded(_filled(values, missing, np.nan).astype(np.float64), plan)
    if kind == "decimal":
        return _decimals(_filled(values, missing, plan.held.low), plan)
    if kind == "category":
        return _positions(values, missing, plan.categories)
    if kind in ("date", "datetime", "period"):
        unit = "D" if kind == "date" else plan.type.unit if kind == "datetime" else "s"
        naive = (
            values.dt.tz_convert("UTC").dt.tz_localize(None)
            if isinstance(values.dtype, pd.DatetimeTZDtype)
            else values
        )
        return naive.to_numpy().astype(f"M8[{unit}]")
    if kind == "text" and plan.held.kind in ("day", "time"):
        return _iso(values, missing, plan.held.kind)
    objects = _objects(values, plan.held.kind)
    if kind == "text":
        objects = np.array([str(value) for value in objects], dtype=object)
    objects[missing] = None
    return objects


def _filled(values: pd.Series, missing: BoolArray, filling: Any) -> NDArray[Any]:
    if isinstance(values.dtype, np.dtype) and values.dtype != object:
        array = values.to_numpy()
        return np.where(missing, filling, array) if missing.any() else array
    return np.asarray(values.to_numpy(dtype=object, na_value=filling).tolist())


def _integer_dtype(found: ColumnType) -> Any:
    if found.bits > 64:
        return np.int64
    return np.dtype(f"{'i' if found.signed else 'u'}{found.bits // 8}")


def _rounded(values: FloatArray, plan: ColumnPlan) -> NDArray[Any]:
    """Floats of fewer bits, which rounding carries neither out of the range nor to another bin."""
    dtype = np.dtype(f"f{plan.type.bits // 8}")
    rounded = values.astype(dtype)
    if plan.type.bits == 64 or plan.held.grid:
        # 19.99 is the nearest float to it, whatever is beside that.
        return rounded
    back = np.where(rounded > values, -np.inf, np.inf).astype(dtype)
    moved = np.nextafter(rounded, back)
    astray = _astray(rounded.astype(np.float64), values, plan)
    # A special value, or a bin that has no number of this type, stays at the nearest.
    moves = astray & ~_astray(moved.astype(np.float64), values, plan)
    rounded[moves] = moved[moves]
    outside = (rounded.astype(np.float64) < plan.held.low) | (
        rounded.astype(np.float64) > plan.held.high
    )
    rounded[outside] = moved[outside]
    return rounded


def _decimals(values: NDArray[Any], plan: ColumnPlan) -> NDArray[Any]:
    scale, held = plan.type.scale, plan.held
    low, high = math.ceil(scaled(held.low, scale)), math.floor(scaled(held.high, scale))
    drawn = values.astype(np.float64)
    if max(abs(low), abs(high)) < MAX_INTEGER:
        units = np.rint(drawn * 10**scale).astype(np.int64).astype(object)
    else:
        units = np.array([round(scaled(value, scale)) for value in values.tolist()], dtype=object)
    rounded = np.array([unit / 10**scale for unit in units], dtype=np.float64)
    astray = _astray(rounded, drawn, plan)
    units[astray] -= np.sign(rounded - drawn)[astray].astype(int)
    result = np.empty(len(values), dtype=object)
    for place, unit in enumerate(units.tolist()):
        result[place] = Decimal(min(max(unit, low), high)).scaleb(-scale)
    return result


def _astray(rounded: FloatArray, drawn: FloatArray, plan: ColumnPlan) -> BoolArray:
    """Which numbers are in another bin since they were rounded: an edge may have a meaning."""
    attribute = plan.held.attribute
    if attribute is None:
        return np.zeros(len(drawn), dtype=bool)
    before, after = (attribute.encode(numpy_column(x, "")) for x in (drawn, rounded))
    return before != after


def _positions(values: pd.Series, missing: BoolArray, categories: Sequence[Any]) -> NDArray[Any]:
    """Positions of values in a list of categories, -1 where missing."""
    codes, uniques = pd.factorize(values)
    index = {category: place for place, category in enumerate(categories)}
    table = np.array([*(index[value] for value in uniques), -1], dtype=np.int64)
    return np.where(missing, -1, table[codes])


def _objects(values: pd.Series, kind: str) -> NDArray[Any]:
    """Python objects: dates for whole days."""
    if kind == "day":
        return values.dt.date.to_numpy(dtype=object, copy=True)
    if kind == "number" and isinstance(values.dtype, np.dtype) and values.dtype != object:
        return np.array([*values.tolist(), None], dtype=object)[:-1]
    return values.astype(object).to_numpy(copy=True)


def _iso(values: pd.Series, missing: BoolArray, kind: str) -> NDArray[Any]:
    texts = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        if not missing[place]:
            texts[place] = (value.date() if kind == "day" else value).isoformat()
    return texts


def _to_numpy(
    array: NDArray[Any], missing: BoolArray, found: ColumnType, plan: ColumnPlan
) -> NDArray[Any]:
    if found.kind == "text":
        if found.flavour == "T":
            return array.astype(np.dtypes.StringDType())
        return array.astype(f"U{found.bits}")
    if found.kind in ("integer", "float") and found.flavour in ("<", ">"):
        return array.astype(f"{found.flavour}{array.dtype.str[1:]}")
    if found.kind == "datetime":
        array[missing] = np.datetime64("NaT", "us")
    return array


def _to_pandas(
    array: NDArray[Any], missing: BoolArray, found: ColumnType, plan: ColumnPlan
) -> pd.Series:
    kind = found.kind
    if kind == "category":
        dtype = pd.CategoricalDtype(_index(plan), ordered=found.ordered)
        return pd.Series(pd.Categorical.from_codes(array, dtype=dtype))
    if found.flavour == "masked":
        masked: Any = pd.arrays.BooleanArray if kind == "boolean" else pd.arrays.IntegerArray
        masked = pd.arrays.FloatingArray if kind == "float" else masked
        return pd.Series(masked(array, missing))
    if kind == "text":
        return pd.Series(array, dtype=_string_dtype(found.flavour))
    if kind in ("datetime", "period"):
        array[missing] = np.datetime64("NaT", "us")
        series = pd.Series(array)
        if kind == "period":
            return series.dt.to_period(found.unit)
        return series.dt.tz_localize("UTC").dt.tz_convert(found.zone) if found.zone else series
    return pd.Series(array, dtype=object if kind == "object" else None)


def _index(plan: ColumnPlan) -> pd.Index:
    """The categories, in a type as near to that of the input's as can hold them."""
    values = plan.type.values
    objects = pd.Series(list(plan.categories))
    if values is None or values.kind == "own":
        return pd.Index(objects)
    return pd.Index(cast_column(objects, ColumnPlan(values, plan.held), "pandas"))


def _string_dtype(flavour: str) -> Any:
    storage, _, missing = flavour.partition(":")
    if missing == "NA":
        return pd.StringDtype(storage)
    return pd.StringDtype(storage, na_value=np.nan)


def _to_polars(array: NDArray[Any], missing: BoolArray, found: ColumnType, plan: ColumnPlan) -> Any:
    import polars as pl

    kind, dtype = found.kind, polars_dtype(found, plan)
    if kind == "category":
        names = np.array([*plan.categories, None], dtype=object)
        return pl.Series(names[array].tolist(), dtype=pl.String).cast(dtype)
    if kind == "object":
        return pl.Series(array.tolist(), dtype=pl.Object)
    if kind in ("text", "decimal"):
        array[missing] = None
        return pl.Series(array.tolist(), dtype=dtype)
    if kind in ("date", "datetime"):
        # As numbers of days, or of units since 1970 in UTC, as Polars stores them.
        array = array.astype(np.int64)
        if kind == "date":
            array = np.where(missing, 0, array).astype(np.int32)
    series = pl.Series(array).cast(dtype)
    if not missing.any():
        return series
    return pl.select(pl.when(pl.Series(~missing)).then(series)).to_series()


def polars_dtype(found: ColumnType, plan: ColumnPlan) -> Any:
    """The type of Polars."""
    import polars as pl

    if found.kind == "category":
        return pl.Enum(plan.categories) if found.flavour == "Enum" else pl.Categorical()
    if found.kind == "decimal":
        return pl.Decimal(found.precision, found.scale)
    if found.kind == "datetime":
        unit: Any = found.unit
        return pl.Datetime(unit, found.zone or None)
    if found.kind in ("integer", "float"):
        sign = "U" if found.kind == "integer" and not found.signed else ""
        return getattr(pl, f"{sign}{'Int' if found.kind == 'integer' else 'Float'}{found.bits}")
    named = {"boolean": "Boolean", "text": "String", "date": "Date", "object": "Object"}
    return getattr(pl, named[found.kind])


def _to_arrow(array: NDArray[Any], missing: BoolArray, found: ColumnType, plan: ColumnPlan) -> Any:
    import pyarrow as pa

    dtype = arrow_dtype(found, plan)
    if found.kind == "category":
        listed = pa.array(_index_objects(plan), dtype.value_type)
        index = pa.array(np.where(missing, 0, array), mask=missing).cast(dtype.index_type)
        return pa.DictionaryArray.from_arrays(index, listed, ordered=found.ordered)
    if found.kind in ("text", "decimal"):
        array[missing] = None
        return pa.array(array.tolist(), dtype)
    if found.kind == "datetime":
        ticks = np.where(missing, 0, array.astype("i8"))
        return pa.array(ticks, pa.int64(), mask=missing).cast(dtype)
    if found.kind == "date":
        days = np.where(missing, 0, array.astype("i8")).astype(np.int32)
        return pa.array(days, pa.int32(), mask=missing).cast(pa.date32()).cast(dtype)
    return pa.array(array, dtype, mask=missing)


def _index_objects(plan: ColumnPlan) -> list[Any]:
    values = plan.type.values
    if values is not None and values.kind == "decimal":
        held = pd.Series(list(plan.categories))
        return _neutral(held, held.isna().to_numpy(), ColumnPlan(values, plan.held)).tolist()
    return list(plan.categories)


def arrow_dtype(found: ColumnType, plan: ColumnPlan) -> Any:
    """The type of Arrow."""
    import pyarrow as pa

    kind, bits = found.kind, found.bits
    if kind == "category":
        index = getattr(pa, f"{'' if found.signed else 'u'}int{bits}")()
        values = found.values
        if values is None or values.kind == "own":
            values_type = pa.array(list(plan.categories)).type
        else:
            values_type = arrow_dtype(values, plan)
        return pa.dictionary(index, values_type, found.ordered)
    if kind == "decimal":
        return getattr(pa, f"decimal{bits}")(found.precision, found.scale)
    if kind == "datetime":
        return pa.timestamp(found.unit, found.zone or None)
    if kind in ("text", "date"):
        return getattr(pa, found.flavour)()
    if kind == "boolean":
        return pa.bool_()
    return getattr(
        pa,
        f"{'' if found.signed or kind == 'float' else 'u'}"
        f"{'int' if kind == 'integer' else 'float'}{bits}",
    )()


_MAKERS = {"numpy": _to_numpy, "pandas": _to_pandas, "polars": _to_polars, "pyarrow": _to_arrow}


def plain_objects(column: pd.Series) -> NDArray:
    """Python objects, None where missing."""
    array = column.astype(object).to_numpy(copy=True)
    array[column.isna().to_numpy()] = None
    return array


def plain_column(column: pd.Series) -> tuple[Any, Any]:
    """Values and narwhals type of one column, for libraries without pandas' types."""
    dtype = column.dtype
    target: Any
    if pd.api.types.is_bool_dtype(dtype):
        target = nw.Boolean
    elif pd.api.types.is_integer_dtype(dtype):
        target = nw.Int64
    elif pd.api.types.is_float_dtype(dtype):
        target = nw.Float64
    else:
        values = [None if is_missing(v) else str(v) for v in column.astype(object)]
        return values, nw.String
    if column.isna().any():
        return plain_objects(column).tolist(), target
    return column.to_numpy(), target
