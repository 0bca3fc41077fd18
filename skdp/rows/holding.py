"""Which type of column can hold the values that a domain draws: a public rule.

It depends on the type of the input and on the domain alone, never on the values drawn, so that
every draw has the same types.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from .._random import sampling_generator
from ..domain import Categorical, Date, Datetime, Identifier, Numeric

# --- ColumnType: the type of a column in words that NumPy, pandas, Polars and PyArrow share
#
# It is read from a type alone, never from a value. It holds no object of a library, so that a
# stored release loads where that library is absent.


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


# --- what a column holds

# Integers that are exact in floats of this many bits.
_EXACT = {16: 2**11, 32: 2**24, 64: 2**53}

# First and last whole day that nanoseconds in 64 bits hold.
_FIRST_DAY, _LAST_DAY = np.datetime64("1677-09-22"), np.datetime64("2262-04-10")

# Most digits of a decimal, by its bits.
_DIGITS = {32: 9, 64: 18, 128: 38, 256: 76}


@dataclass(frozen=True)
class Held:
    """What is publicly known of the values that an attribute decodes to.

    Attributes
    ----------
    kind : {"number", "boolean", "text", "mixed", "day", "time"}
        "day" for dates without a time of day.
    low, high : int, float or datetime64
        Range of numbers; of dates and times as ``numpy.datetime64``, in UTC where they have a zone.
    whole : bool
        Whether all numbers are integers.
    gaps : bool
        Whether a value may be missing.
    categories : tuple
        The declared categories; empty if there are none.
    ordered : bool
        Whether the order of the categories is declared to be meaningful.
    grid : bool
        Whether `step` or `decimals` is declared.
    attribute : Attribute or None
        The declaration itself, of numbers, which must keep their bins if they are rounded, and of
        dates.
    """

    kind: str
    low: Any = 0
    high: Any = 0
    whole: bool = False
    gaps: bool = False
    categories: tuple[Any, ...] = ()
    ordered: bool = False
    grid: bool = False
    attribute: Any = None

    @classmethod
    def by(cls, attribute: Any) -> Held:
        """What an attribute of a domain decodes to."""
        if isinstance(attribute, Identifier):
            # Fresh ones count up from 1, or are text.
            plain = attribute.format is None
            return cls("number" if plain else "text", 1, 2**31 - 1, plain)
        if isinstance(attribute, Date | Datetime):
            return cls._of_dates(attribute)
        if isinstance(attribute, Categorical):
            return cls._of_categories(attribute)
        return cls._of_numbers(attribute)

    @classmethod
    def _of_dates(cls, attribute: Date | Datetime) -> Held:
        ends = attribute.shown([attribute.lower, attribute.upper, *attribute.special])
        if ends.tz is not None:
            ends = ends.tz_convert("UTC").tz_localize(None)
        kind = "day" if isinstance(attribute, Date) else "time"
        low, high = ends.min().to_datetime64(), ends.max().to_datetime64()
        return cls(kind, low, high, gaps=attribute.nullable, attribute=attribute)

    @classmethod
    def _of_categories(cls, attribute: Categorical) -> Held:
        categories: tuple[Any, ...] = attribute.categories
        same: Any = {"categories": categories, "ordered": attribute.ordered}
        if all(isinstance(value, str) for value in categories):
            return cls("text", gaps=attribute.nullable, **same)
        # The type of decoded values is the same for any codes, so for none.
        dtype = attribute.decode(np.zeros(0, dtype=np.int64), sampling_generator(0)).dtype
        if not pd.api.types.is_numeric_dtype(dtype):
            return cls("mixed", gaps=attribute.nullable, **same)
        kind = "boolean" if pd.api.types.is_bool_dtype(dtype) else "number"
        whole = kind == "boolean" or pd.api.types.is_integer_dtype(dtype)
        return cls(kind, min(categories), max(categories), whole, attribute.nullable, **same)

    @classmethod
    def _of_numbers(cls, attribute: Numeric) -> Held:
        ends = [attribute.lower, attribute.upper, *attribute.special]
        grid = attribute.step is not None or attribute.decimals is not None
        whole = attribute.integer or _on_whole_grid(attribute)
        low, high = min(ends), max(ends)
        return cls("number", low, high, whole, attribute.nullable, grid=grid, attribute=attribute)


def _on_whole_grid(attribute: Numeric) -> bool:
    """Whether ``step`` or ``decimals`` allow integers only."""
    parts = list(attribute.special)
    if attribute.step is not None:
        parts += [attribute.step, attribute.lower]
    elif attribute.decimals is None or attribute.decimals > 0:
        return False
    return all(float(part).is_integer() for part in parts)


def held_type(wanted: ColumnType, held: Held, library: str) -> ColumnType:
    """The wanted type, or the next wider one that can hold the values of the domain.

    Parameters
    ----------
    wanted : ColumnType
        That of the input.
    held : Held
    library : {"numpy", "pandas", "polars", "pyarrow"}
        Of the output.
    """
    rule = _RULES.get(wanted.kind)
    return OWN if rule is None else rule(wanted, held, library)


def own_type(held: Held, library: str) -> ColumnType:
    """The type of the domain itself.

    It is that to which values are decoded, but that dates are dates in every library.
    """
    if held.kind not in ("day", "time") or library == "pandas":
        return OWN
    zone = (held.attribute.tz or "") if held.kind == "time" else ""
    if library == "numpy":
        return OWN if zone else ColumnType("datetime", unit="us")
    if held.kind == "day":
        return ColumnType("date", flavour="date32" if library == "pyarrow" else "")
    return ColumnType("datetime", unit="us", zone=zone)


def _integer(wanted: ColumnType, held: Held, library: str) -> ColumnType:
    if held.kind not in ("number", "boolean"):
        return OWN
    if not held.whole:
        return _float(_plain_float(wanted), held, library)
    for bits in (8, 16, 32, 64, 128):
        signed = wanted.signed or held.low < 0
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        if bits >= wanted.bits and low <= held.low and held.high <= high:
            if bits > max(64, wanted.bits):
                break
            return _with_gaps(wanted.but(bits=bits, signed=signed), held, library)
    return _float(_plain_float(wanted), held, library)


def _plain_float(wanted: ColumnType) -> ColumnType:
    return ColumnType("float", 64, flavour=wanted.flavour)


def _with_gaps(found: ColumnType, held: Held, library: str) -> ColumnType:
    """Integers and truth values, in a type that has missing values where they are needed."""
    if held.gaps and library == "numpy":
        return ColumnType("float", 64, flavour=found.flavour)
    if held.gaps and found.flavour == "numpy":
        return found.but(flavour="masked")
    return found


def _float(wanted: ColumnType, held: Held, library: str) -> ColumnType:
    if held.kind not in ("number", "boolean"):
        return OWN
    largest = max(abs(held.low), abs(held.high))
    for bits in (16, 32, 64):
        if bits < wanted.bits:
            continue
        dtype = np.dtype(f"f{bits // 8}").type
        exact = held.whole and not held.categories
        most = _EXACT[bits] if exact else float(np.finfo(dtype).max)
        # A category stands for itself: it is not rounded.
        if largest <= most and all(float(dtype(value)) == value for value in held.categories):
            return wanted.but(bits=bits)
    return OWN


def _decimal(wanted: ColumnType, held: Held, library: str) -> ColumnType:
    if held.kind not in ("number", "boolean"):
        return OWN
    if any(scaled(value, wanted.scale).denominator != 1 for value in held.categories):
        return OWN
    low = math.ceil(scaled(held.low, wanted.scale))
    high = math.floor(scaled(held.high, wanted.scale))
    if low > high:
        return OWN
    digits = max(len(str(abs(low))), len(str(abs(high))), wanted.precision)
    fitting = [bits for bits in sorted(_DIGITS) if bits >= wanted.bits and _DIGITS[bits] >= digits]
    if not fitting or (library == "polars" and digits > 38):
        return OWN
    return wanted.but(bits=fitting[0], precision=digits)


def scaled(value: Any, scale: int) -> Fraction:
    """A declared number, as it is written, in units of the last digit of a decimal."""
    written = value if isinstance(value, int) else Decimal(repr(float(value)))
    return Fraction(written) * Fraction(10) ** scale


def _boolean(wanted: ColumnType, held: Held, library: str) -> ColumnType:
    if held.whole and held.low >= 0 and held.high <= 1:
        return _with_gaps(wanted, held, library)
    return OWN


def _text(wanted: ColumnType, held: Held, library: str) -> ColumnType:
    if held.kind == "mixed":
        return OWN
    if library == "numpy" and held.gaps:
        return ColumnType("object")
    # As wide as the declared texts. NumPy makes the input's type as wide as its longest text, which
    # may be that of one record.
    longest = max((len(str(value)) for value in held.categories), default=32)
    return wanted.but(bits=longest) if wanted.flavour == "U" else wanted


def _category(wanted: ColumnType, held: Held, library: str) -> ColumnType:
    if not held.categories:
        # A range of numbers has no list of categories: the type of the values.
        return OWN if wanted.values is None else held_type(wanted.values, held, library)
    if library == "polars":
        # Polars has categories of text only.
        return wanted if held.kind == "text" else OWN
    # A missing cell is no category.
    listed = replace(held, gaps=False)
    values = OWN if wanted.values is None else held_type(wanted.values, listed, library)
    bits = wanted.bits
    if bits:
        # A dictionary of Arrow, whose indices must reach the last category.
        while 2 ** (bits - wanted.signed) < len(held.categories):
            bits *= 2
    return wanted.but(values=values, bits=bits)


def _date(wanted: ColumnType, held: Held, library: str) -> ColumnType:
    if held.kind == "day":
        return wanted
    if held.kind != "time":
        return OWN
    flavour = "arrow:" if wanted.flavour.startswith("arrow:") else ""
    return ColumnType("datetime", flavour=flavour, unit="us")


def _datetime(wanted: ColumnType, held: Held, library: str) -> ColumnType:
    if held.kind not in ("day", "time"):
        return OWN
    # 64 bits of nanoseconds reach from 1677 to 2262.
    narrow = held.low.astype("M8[D]") < _FIRST_DAY or held.high.astype("M8[D]") > _LAST_DAY
    return wanted.but(unit="us") if narrow and wanted.unit == "ns" else wanted


_RULES = {
    "integer": _integer,
    "float": _float,
    "decimal": _decimal,
    "boolean": _boolean,
    "text": _text,
    "category": _category,
    "date": _date,
    "datetime": _datetime,
    "period": _datetime,
    "object": lambda wanted, held, library: wanted,
}
