"""Columns as expressions: codes inside engines, and decoded values in every library.

Decoded values as a column of a given type, in NumPy, pandas, Polars and PyArrow.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._validation import BoolArray, FloatArray
from ..domain.bins import bin_positions
from ..domain.clock import Clock
from ..domain.values import MAX_INTEGER, is_exact_float, is_missing
from .columns import numpy_column
from .frame import ColumnType, Held, scaled


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


# ------------------------------------------------------------------------------------------------
# Codes as expressions that an engine evaluates to code a column.
#
# Values must not raise here either. Every expression is total: numbers are made finite before they
# are compared or cast, divisors are constants or at least one, and casts that may fail are not
#   used.


# --- integer quotients that engines and NumPy compute alike


def _floor(value: Any) -> Any:
    """Largest integer below, where int64 holds it; engines cast by rounding or by truncation."""
    near = value.cast(nw.Int64)
    return near - nw.when(near > value).then(nw.lit(1)).otherwise(nw.lit(0))


def _quotient(value: Any, divisor: int) -> Any:
    """Integer part of a quotient of integers that are not negative, below 2**45 and 2**22.

    Adding a half keeps the quotient of floats 0.5 / divisor away from the integers. Within these
    limits that is more than rounding can move it, even twice where an engine takes the reciprocal.
    """
    if isinstance(value, nw.Expr):
        return _floor((value.cast(nw.Float64) + 0.5) / float(divisor))
    return value // divisor


# --- dates and times of a column in an engine, as numbers of a clock
#
# Engines differ in what they know of calendars and time zones. So they only say how many seconds
# and microseconds a value is from 1970. Everything else is arithmetic with integers, as in memory.

# Moments further away than a domain can declare are moved to the ends, so that nothing overflows:
# seconds from 1970 to the beginning of the year 1 and to the end of the year 9999.
_FIRST = -62_135_596_800
_LAST = 253_402_300_799
_A_DAY = 86_400
# Days from 0000-03-01, where a cycle of 400 years begins, to 1970-01-01.
_CYCLE_START = 719_468


def _lazy_number(moment: tuple[nw.Expr, nw.Expr], clock: Clock, let: Callable[[Any], Any]) -> Any:
    """Units of a clock of a column of an engine, as an expression; null where missing.

    Parameters
    ----------
    moment : tuple of expressions
        Whole seconds since 1970, and the microseconds beyond them.
    clock : Clock
    let : callable
        Makes a column of an expression, so that it is not repeated.
    """
    seconds, micros = moment
    unit = clock.unit
    if unit == "microsecond":
        return seconds * 1_000_000 + micros
    if unit == "millisecond":
        return seconds * 1000 + _quotient(micros, 1000)
    if unit in ("second", "minute", "hour"):
        length = {"second": 1, "minute": 60, "hour": 3600}[unit]
        shift = _CYCLE_START * _A_DAY // length
        return _quotient(seconds + shift * length, length) - shift
    # Days since the beginning of a cycle, not negative.
    days = let(_quotient(seconds + _CYCLE_START * _A_DAY, _A_DAY))
    if unit == "day":
        return days - _CYCLE_START
    if unit == "week":
        shift = _CYCLE_START // 7
        return _quotient(days - _CYCLE_START + 3 + shift * 7, 7) - shift
    months = _months(days, let)
    if unit == "month":
        return months - 1970 * 12
    return _quotient(months, 3) - 1970 * 4 if unit == "quarter" else _quotient(months, 12) - 1970


def _months(days: Any, let: Callable[[Any], Any]) -> Any:
    """Months since January of the year 0, of days since 0000-03-01."""
    # Years from March to February, so that the leap day is the last one: a cycle has 146,097 days,
    # and the months of a year 153 days in five.
    cycle = let(_quotient(days, 146_097))
    day = let(days - cycle * 146_097)
    year = let(
        _quotient(
            day - _quotient(day, 1460) + _quotient(day, 36_524) - _quotient(day, 146_096), 365
        )
    )
    rest = day - (year * 365 + _quotient(year, 4) - _quotient(year, 100))
    return let((cycle * 400 + year) * 12 + _quotient(rest * 5 + 2, 153) + 2)


def _moment_columns(
    frame: nw.LazyFrame, engine: str, columns: Mapping[str, str], prefix: str
) -> nw.LazyFrame:
    """The rows with two more columns for each column of dates.

    Parameters
    ----------
    frame : narwhals LazyFrame
    engine : str
    columns : mapping of str to str
        Names of columns and of their types.
    prefix : str
        The new columns are this and "seconds" or "micros" with the place of the column: whole
        seconds since 1970, and the microseconds beyond them.
    """
    return nw.from_native(_ENGINES[engine](nw.to_native(frame), columns, prefix))


def _polars(frame: Any, columns: Mapping[str, str], prefix: str) -> Any:
    pl = nw.get_native_namespace(nw.from_native(frame))
    schema = frame.collect_schema()
    made = []
    for place, (name, dtype) in enumerate(columns.items()):
        ticks = pl.col(name).cast(pl.Int64)
        if dtype == "Date":
            seconds, rest = ticks.clip(_FIRST // _A_DAY, _LAST // _A_DAY) * _A_DAY, ticks * 0
        else:
            unit = schema[name].time_unit
            a_second = {"ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}[unit]
            seconds, rest = (ticks // a_second).clip(_FIRST, _LAST), ticks % a_second
            rest = rest * 1000 if unit == "ms" else rest // (a_second // 1_000_000)
        made += [seconds.alias(f"{prefix}seconds{place}"), rest.alias(f"{prefix}micros{place}")]
    return frame.with_columns(*made)


def _duckdb(frame: Any, columns: Mapping[str, str], prefix: str) -> Any:
    made = ["*"]
    types = dict(zip(frame.columns, map(str, frame.types), strict=True))
    for place, (name, dtype) in enumerate(columns.items()):
        value = column = '"' + name.replace('"', '""') + '"'
        a_second = 1_000_000
        # An infinity has no distance from 1970, but a sign.
        before = f"{column}::VARCHAR LIKE '-%'"
        if types[name] in ("TIMESTAMP_S", "TIMESTAMP_MS"):
            # They reach further than microseconds. All that may be asked of a value beyond these
            # is a comparison: the rest fails, and as text it makes the whole database unusable.
            first, last = (f"'{day}'::{types[name]}" for day in ("0001-01-01", "9999-12-31"))
            near = f"CASE WHEN {column} BETWEEN {first} AND {last} THEN {column} END"
            value, before = f"({near})::TIMESTAMP", f"{column} < '1970-01-01'::{types[name]}"
        if dtype == "Date":
            ticks, a_second = f"({column} - DATE '1970-01-01') * {_A_DAY}", 1
        else:
            ticks = f"epoch_us({value})"
        # The remainder has the sign of the number.
        rest = f"(({ticks}) % {a_second} + {a_second}) % {a_second}"
        clipped = f"greatest(least((({ticks}) - {rest}) // {a_second}, {_LAST}), {_FIRST})"
        ends = f"CASE WHEN {before} THEN {_FIRST} ELSE {_LAST} END"
        made += [
            f"(CASE WHEN {column} IS NULL THEN NULL WHEN isfinite({value}) THEN {clipped} "
            f"ELSE {ends} END)::BIGINT AS {prefix}seconds{place}",
            f"coalesce({rest}, 0)::BIGINT AS {prefix}micros{place}",
        ]
    return frame.select(", ".join(made))


def _pyspark(frame: Any, columns: Mapping[str, str], prefix: str) -> Any:
    made = ["*"]
    for place, name in enumerate(columns):
        column = "`" + name.replace("`", "``") + "`"
        kind = frame.schema[name].dataType.typeName()
        a_second = 1 if kind == "date" else 1_000_000
        # Without a zone: the distance in wall-clock time, whatever the session's zone is.
        ticks = f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {column})"
        if kind == "date":
            ticks = f"CAST(unix_date({column}) AS BIGINT) * {_A_DAY}"
        elif kind == "timestamp":
            ticks = f"unix_micros({column})"
        rest = f"pmod({ticks}, {a_second}L)"
        # Not below the first second: since Spark 4 an overflow is an error, and would tell of it.
        whole = f"(greatest({ticks}, {_FIRST}L * {a_second}L) - {rest})"
        clipped = f"greatest(least({whole} DIV {a_second}L, {_LAST}L), {_FIRST}L)"
        # The greatest and the least leave nulls out.
        made += [
            f"CASE WHEN {column} IS NULL THEN NULL ELSE {clipped} END AS {prefix}seconds{place}",
            f"{rest} AS {prefix}micros{place}",
        ]
    return frame.selectExpr(*made)


_ENGINES = {"polars": _polars, "duckdb": _duckdb, "pyspark": _pyspark}


# --- expressions of a column

_INTEGER_RANGES = {
    f"{sign}Int{bits}": (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for sign in ("", "U")
    for bits in (8, 16, 32, 64, 128)
}


# Tables of at most this many values are searched by conditions, longer ones by a join. Polars
# evaluates both branches of every condition, the others only the one that holds.
_MOST_CONDITIONS = {"polars": 8, "duckdb": 64, "pyspark": 64}


# Engines that truncate a number when it is cast to an integer; DuckDB rounds it.
_TRUNCATING = ("polars", "pyspark")


def floor_positive(value: Any, engine: str) -> Any:
    """The same for a non-negative number, without repeating its expression where possible."""
    return value.cast(nw.Int64) if engine in _TRUNCATING else _floor(value)


def _divided(value: Any, divisor: float, engine: str) -> Any:
    """A finite number by a constant, rounded once."""
    if engine == "polars":
        # It multiplies by the reciprocal of a known constant, which makes 147 / 49 less than 3.
        return value / (value * 0.0 + divisor)
    return value / divisor


class LazyColumn:
    """One column of a lazy frame: its name and type, and expressions for its codes.

    Parameters
    ----------
    name : str
    kind : str
        As of :class:`skdp.tables.Column`, and "decimal", which is no plain number in every
        engine.
    dtype : str
        The name of the type, for messages.
    engine : str
    lookups : Lookups, default=None
        Collects long tables of values, to be joined with the rows.
    """

    def __init__(
        self, name: str, kind: str, dtype: str, engine: str, lookups: Lookups | None = None
    ) -> None:
        self.name = name
        self.kind = kind
        self.dtype = dtype
        self.engine = engine
        self._lookups = lookups

    @property
    def guessed(self) -> bool:
        """As of :class:`skdp.tables.Column`. Dask looks at values; other engines have a schema."""
        return self.engine == "dask"

    # Values that were prepared for this column, each of which mentions those before it.
    _prepared = 0

    def collecting(self, lookups: Lookups) -> LazyColumn:
        """The same column, with a place for long tables."""
        return LazyColumn(self.name, self.kind, self.dtype, self.engine, lookups)

    @property
    def _exact(self) -> bool:
        """Whether the engine has 64-bit integers in the column itself."""
        low, high = _INTEGER_RANGES.get(self.dtype, (0, 2**64))
        return type(self) is LazyColumn and low >= -(2**63) and high < 2**63

    def number(self) -> nw.Expr:
        """Values as float64, each the nearest one."""
        value = nw.col(self.name)
        if self.kind == "decimal" and self.engine == "polars":
            # A cast of older versions rounds twice; text is read to the nearest.
            value = value.cast(nw.String)
        return value.cast(nw.Float64)

    def instants(self, clock: Clock) -> LazyColumn:
        """The column of the numbers of units of a clock, for a column with a type of dates."""
        if self.kind == "null":
            return self
        assert self._lookups is not None
        lookups, made = self._lookups, [0]

        def let(value: Any) -> nw.Expr:
            made[0] += 1
            return lookups.prepare(value, made[0] - 1)

        # Expressions for bins mention the number many times.
        value = let(_lazy_number(lookups.moment(self.name, self.dtype), clock, let))
        return _Numbers(self.name, self.engine, value, lookups, made[0])

    def binned(
        self,
        lower: float,
        upper: float,
        bins: int,
        *,
        integer: bool,
        missing: int,
        edges: Sequence[float] | None = None,
        special: Sequence[float] = (),
    ) -> nw.Expr:
        """Bin of each number, as :class:`skdp.Numeric` defines it, in float64 step by step.

        Parameters
        ----------
        lower, upper : float
        bins : int
        integer : bool
            Whether numbers go to the nearest integer first, halves up.
        missing : int
            Code where there is no number.
        edges : sequence of float, default=None
            Where bins are uneven, the edges between two of them.
        special : sequence of float
            Numbers whose codes come after those of the bins.
        """
        if self.kind == "null":
            return nw.lit(missing)
        value = self.number()
        gone = value.is_null() | value.is_nan()
        one_each = integer and edges is None and bins == upper - lower + 1
        if one_each and self._exact and max(-lower, upper) < 2**53:
            # Rounding to float64 moves no integer across these bounds.
            value = nw.col(self.name).cast(nw.Int64)
            gone = value.is_null()
            low, high = (nw.lit(int(end), nw.Int64) for end in (lower, upper))
            code: Any = nw.max_horizontal(nw.min_horizontal(value, high), low) - low
        elif edges is None:
            code = self._evenly_binned(value, gone, lower, upper, bins, integer=integer)
        else:
            if self._lookups is not None and len(edges) > 1:
                value = self._lookups.prepare(value, self._prepared)
                gone = value.is_null() | value.is_nan()
            code = _between(value, edges, 0)
        for place, number in enumerate(special):
            code = nw.when(value == nw.lit(number)).then(nw.lit(bins + place)).otherwise(code)
        return nw.when(gone).then(nw.lit(missing)).otherwise(code)

    def _evenly_binned(
        self, value: Any, gone: Any, lower: float, upper: float, bins: int, *, integer: bool
    ) -> Any:
        # Missing values get a number first, because some engines raise when they cast a NaN.
        x = nw.when(gone).then(nw.lit(lower)).otherwise(value)
        # Not with clip, which repeats the whole expression to test for null first.
        x = nw.max_horizontal(nw.min_horizontal(x, nw.lit(upper)), nw.lit(lower))
        if integer:
            x = x + nw.lit(0.5)
            x = _floor(x) if lower < 0 else floor_positive(x, self.engine)
            x = x.cast(nw.Float64)
        one_each = integer and bins == upper - lower + 1
        divide = functools.partial(_divided, engine=self.engine)
        x = bin_positions(x, lower, upper, bins, one_each=one_each, divide=divide)
        return nw.min_horizontal(floor_positive(x, self.engine), nw.lit(bins - 1))

    def looked_up(self, codes: Mapping[Any, int], *, unknown: int, missing: int) -> nw.Expr:
        """Code of each value in a table of them.

        Parameters
        ----------
        codes : mapping of str, int, float or bool to int
            Values equal in Python are equal here: 1, 1.0 and True, but not "1".
        unknown : int
            Code of values that are not in the table.
        missing : int
            Code where there is no value.
        """
        if self.kind == "null":
            return nw.lit(missing)
        value = nw.col(self.name)
        gone = value.is_null()
        if self.kind == "boolean":
            yes, no = (nw.lit(codes.get(truth, unknown)) for truth in (True, False))
            return (
                nw.when(gone)
                .then(nw.lit(missing))
                .otherwise(nw.when(value).then(yes).otherwise(no))
            )
        table: dict[Any, int] = {}
        joins = True
        if self.kind == "string":
            texts = {key: code for key, code in codes.items() if isinstance(key, str)}
            if self.engine == "duckdb":
                # Bytes, as the column is: see `text_as_bytes`.
                table.update((key.encode(), code) for key, code in texts.items())
            else:
                table.update(texts)
                value = value.cast(nw.String)
        else:
            plain = {key: code for key, code in codes.items() if not isinstance(key, str)}
            if self.dtype in _INTEGER_RANGES:
                low, high = _INTEGER_RANGES[self.dtype]
                table.update(
                    (int(key), code)
                    for key, code in plain.items()
                    if key == int(key) and low <= key <= high
                )
                joins = low >= -(2**63) and high < 2**63
                value = value.cast(nw.Int64) if joins else value
            else:
                # So that there is one zero.
                value = value.cast(nw.Float64) + 0.0
                gone = gone | value.is_nan()
                table.update(
                    (float(key), code) for key, code in plain.items() if is_exact_float(key)
                )
        items = sorted(table.items())
        found: Any
        if joins and self._lookups is not None and len(items) > self._lookups.most_conditions:
            joined = self._lookups.add(value, items)
            found = nw.when(joined.is_null()).then(nw.lit(unknown)).otherwise(joined)
        else:
            found = search_sorted(value, items, unknown)
        return nw.when(gone).then(nw.lit(missing)).otherwise(found)


class _Numbers(LazyColumn):
    """Numbers that were computed from a column."""

    def __init__(
        self, name: str, engine: str, value: nw.Expr, lookups: Lookups, prepared: int
    ) -> None:
        super().__init__(name, "numeric", "Int64", engine, lookups)
        self._value = value
        self._prepared = prepared

    def number(self) -> nw.Expr:
        return self._value.cast(nw.Float64)


def _between(value: Any, edges: Sequence[float], below: int) -> Any:
    """``below`` plus the number of edges up to each value: a tree of conditions."""
    if not edges:
        # Keys of many cells are products of such positions: 32 bits are too few.
        return nw.lit(below, nw.Int64)
    middle = len(edges) // 2
    left = _between(value, edges[:middle], below)
    right = _between(value, edges[middle + 1 :], below + middle + 1)
    return nw.when(value < nw.lit(edges[middle])).then(left).otherwise(right)


def search_sorted(value: Any, table: Sequence[tuple[Any, float]], unknown: float) -> Any:
    """Binary search of each value in a sorted table: a tree of conditions."""
    if not table:
        return nw.lit(unknown)
    if len(table) == 1:
        key, code = table[0]
        return nw.when(value == nw.lit(key)).then(nw.lit(code)).otherwise(nw.lit(unknown))
    middle = len(table) // 2
    below = search_sorted(value, table[:middle], unknown)
    above = search_sorted(value, table[middle:], unknown)
    return nw.when(value < nw.lit(table[middle][0])).then(below).otherwise(above)


class Lookups:
    """What is computed of the rows of an engine before their codes.

    Tables of values and their codes, which are joined with the rows; moments of dates; and other
    values that would otherwise be repeated in an expression.

    Parameters
    ----------
    prefix : str
        A prefix with which no column's name begins.
    engine : str
    """

    def __init__(self, prefix: str, engine: str) -> None:
        self.prefix = prefix
        self.engine = engine
        self.most_conditions = _MOST_CONDITIONS[engine]
        self._tables: list[tuple[Any, Sequence[tuple[Any, int]]]] = []
        self._values: dict[int, dict[str, Any]] = {}
        self._moments: dict[str, str] = {}

    def moment(self, name: str, dtype: str) -> tuple[nw.Expr, nw.Expr]:
        """Whole seconds since 1970 of a column of dates, and the microseconds beyond them."""
        self._moments[name] = dtype
        place = list(self._moments).index(name)
        return nw.col(f"{self.prefix}seconds{place}"), nw.col(f"{self.prefix}micros{place}")

    def prepare(self, value: Any, depth: int = 0) -> nw.Expr:
        """Compute a value once, for expressions that mention it often; returns its column.

        Parameters
        ----------
        value : expression
        depth : int, default=0
            More than that of all prepared values that it mentions.
        """
        level = self._values.setdefault(depth, {})
        name = f"{self.prefix}value{depth}_{len(level)}"
        level[name] = value
        return nw.col(name)

    def add(self, value: Any, items: Sequence[tuple[Any, int]]) -> nw.Expr:
        """Add a table; returns the column that will hold the code of each value, or null."""
        self._tables.append((value, items))
        return nw.col(f"{self.prefix}found{len(self._tables) - 1}")

    def joined(self, frame: nw.LazyFrame) -> nw.LazyFrame:
        """The rows with all of it. Values in a table differ: no row occurs twice."""
        if self._moments:
            frame = _moment_columns(frame, self.engine, self._moments, self.prefix)
        # As few steps as possible: engines take long to plan many.
        for depth in sorted(self._values):
            frame = frame.with_columns(**self._values[depth])
        for number, (value, items) in enumerate(self._tables):
            key, found = f"{self.prefix}key{number}", f"{self.prefix}found{number}"
            small = nw.from_native(_TABLES[self.engine](nw.to_native(frame), key, found, items))
            frame = frame.with_columns(**{key: value}).join(small, on=key, how="left")
        return frame


def _polars_table(native: Any, key: str, found: str, items: Sequence[tuple[Any, int]]) -> Any:
    values, codes = zip(*items, strict=True)
    return nw.get_native_namespace(nw.from_native(native)).LazyFrame({key: values, found: codes})


def _duckdb_table(native: Any, key: str, found: str, items: Sequence[tuple[Any, int]]) -> Any:
    def literal(value: Any) -> str:
        if isinstance(value, bytes):
            return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
        return f"'{value!r}'::{'DOUBLE' if isinstance(value, float) else 'BIGINT'}"

    values, codes = (", ".join(map(literal, column)) for column in zip(*items, strict=True))
    # A relation of one row, whatever the rows are, in the connection that holds them.
    one = native.limit(0).aggregate("count(*) AS n")
    return one.select(f"unnest([{values}]) AS {key}, unnest([{codes}]) AS {found}")


def _pyspark_table(native: Any, key: str, found: str, items: Sequence[tuple[Any, int]]) -> Any:
    kind = {str: "string", int: "bigint", float: "double"}[type(items[0][0])]
    return native.sparkSession.createDataFrame(list(items), f"{key} {kind}, {found} bigint")


def text_as_bytes(frame: nw.LazyFrame, names: Sequence[str]) -> nw.LazyFrame:
    """A relation of DuckDB with columns of text as UTF-8: bytes are compared byte by byte.

    Text is compared by the collation of the column or of the connection, to which "a" and "A", or
    "a" and "á", may be equal.
    """
    if not names:
        return frame
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    changed = ", ".join(f"encode({name}::VARCHAR) AS {name}" for name in quoted)
    return nw.from_native(nw.to_native(frame).select(f"* REPLACE ({changed})"))


_TABLES = {"polars": _polars_table, "duckdb": _duckdb_table, "pyspark": _pyspark_table}


def part_of(column: Any, size: int, side: int) -> Any:
    """The part of each code: the largest p with p * size // side <= code.

    That is p * size < (code + 1) * side.

    Parameters
    ----------
    column : array of int64, or expression
        Codes, not negative.
    size, side : int
        Number of codes and of parts.
    """
    return _quotient((column + 1) * side - 1, size)


def part_between(column: Any, edges: Sequence[int]) -> Any:
    """How many of the ascending edges each code has reached.

    Parameters
    ----------
    column : array of int64, or expression
        Codes.
    edges : list of int
    """
    if isinstance(column, nw.Expr):
        return _between(column, edges, 0)
    return np.searchsorted(edges, column, side="right")
