"""Column: the values of one column, of NumPy, pandas, Polars or PyArrow.

The kind of values that a column can hold is known from its type alone, never from a value. Where a
library has a faster way than the common one (dictionary encoding), its column uses that.
"""

from __future__ import annotations

import datetime
import math
import numbers
import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._foreign import reraise_interrupts
from .._validation import BoolArray, FloatArray, IntArray
from ..domain.clock import TICKS, Clock, micros_of, rescaled
from ..domain.values import MAX_INTEGER, digits, is_missing, number_written

# --- dates and times of a column in memory, as numbers of a clock
#
# What one value is never depends on another, and no value raises: text that is no date, and a date
# that does not exist, are missing.
#
# Columns with a type of dates are read as the integers that they store. As Python objects, some of
# their values raise an error that quotes them, and Polars even prints one: the years after 9999.

_Moments = tuple[IntArray, BoolArray]


def _single_moments(values: Sequence[Any], clock: Clock) -> _Moments:
    """Moments of Python objects and text, each by itself, and which are missing."""
    micros = np.zeros(len(values), dtype=np.int64)
    missing = np.ones(len(values), dtype=bool)
    for place, value in enumerate(values):
        found = clock.moment(value)
        if found is not None:
            micros[place] = found
            missing[place] = False
    return micros, missing


def _as_numbers(moments: _Moments, clock: Clock) -> FloatArray:
    """Units of a clock as float64, NaN where missing."""
    micros, missing = moments
    numbers = clock.numbers(micros).astype(np.float64)
    numbers[missing] = np.nan
    return numbers


def _pandas_moments(series: pd.Series) -> _Moments | None:
    """Moments of a column of pandas with a type of dates; None for other types."""
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        found = _pandas_moments(pd.Series(dtype.categories))
        if found is None:
            return None
        codes = series.cat.codes.to_numpy()
        return np.append(found[0], 0)[codes], np.append(found[1], True)[codes]
    if isinstance(dtype, pd.PeriodDtype):
        return micros_of(series.dt.start_time.to_numpy())
    if isinstance(dtype, pd.DatetimeTZDtype):
        return micros_of(series.dt.tz_convert(None).to_numpy())
    if isinstance(dtype, pd.ArrowDtype):
        array: Any = series.array
        return _arrow_moments(array.__arrow_array__())
    if isinstance(dtype, np.dtype) and dtype.kind == "M":
        return micros_of(series.to_numpy())
    return None


def _arrow_moments(data: Any) -> _Moments | None:
    """Moments of a column of Arrow with a type of dates; None for other types."""
    data = _without_dictionary(data)
    name = str(data.type)
    if name.startswith("date32"):
        ticks, length = data.cast("int32").cast("int64"), TICKS["D"]
    elif name.startswith("date64"):
        ticks, length = data.cast("int64"), TICKS["ms"]
    elif name.startswith("timestamp"):
        ticks, length = data.cast("int64"), TICKS[data.type.unit]
    else:
        return None
    missing = np.asarray(data.is_null())
    return rescaled(np.asarray(ticks.fill_null(0)), length), missing


def _arrow_ticks(data: Any) -> _Moments:
    """Integers that are equal for equal values, of a column of dates or durations."""
    data = _without_dictionary(data)
    ticks = data.cast(f"int{data.type.bit_width}").cast("int64")
    return np.asarray(ticks.fill_null(0)), np.asarray(data.is_null())


def _arrow_objects(data: Any) -> list[Any]:
    """Values of Arrow as Python objects. Never raises; what Python cannot hold is missing.

    Files hold text that is not UTF-8, and dates beyond the year 9999, of which Arrow raises an
    error that quotes them. Such text keeps its bytes, as names of files do.
    """
    data = _without_dictionary(data)
    name = str(data.type)
    if "string" in name and "<" not in name:
        values = data.cast(name.replace("string", "binary")).to_pylist()
        return [None if each is None else each.decode(errors="surrogateescape") for each in values]
    span = _python_span(name.partition("[")[0], getattr(data.type, "unit", "ms"), "tz=" in name)
    if span is None:
        return _one_by_one(
            lambda place: data.slice(place, 1).to_pylist(), data.to_pylist, len(data)
        )
    ticks, missing = _arrow_ticks(data)
    held = np.flatnonzero(~missing & (ticks >= span[0]) & (ticks <= span[1]))
    return _in_places(data.take(held).to_pylist(), held, len(data))


def _python_span(kind: str, unit: str, zoned: bool = False) -> tuple[int, int] | None:
    """First and last tick of a type of dates or durations that Python holds; None for others."""
    of_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}.get(unit, 1)
    day = 86_400 * of_second
    if kind.startswith("date32"):
        day = 1
    elif kind.startswith("time") and not kind.startswith("timestamp"):
        return 0, day - 1
    elif kind.startswith("duration"):
        return _in_64_bits(-999_999_999 * day), _in_64_bits(999_999_999 * day)
    elif not kind.startswith(("date64", "timestamp")):
        return None
    # In a zone, the last day may not have come yet, or be over.
    first, last = datetime.date.min.toordinal() + zoned, datetime.date.max.toordinal() - zoned
    unix = datetime.date(1970, 1, 1).toordinal()
    return _in_64_bits((first - unix) * day), _in_64_bits((last + 1 - unix) * day - 1)


def _in_64_bits(number: int) -> int:
    return min(max(number, -(2**63)), 2**63 - 1)


def _one_by_one(
    one: Callable[[int], list[Any]], whole: Callable[[], list[Any]], n: int
) -> list[Any]:
    """Values as a library gives them; None for each that raises by itself, as in lists of text."""
    try:
        return list(whole())
    except BaseException as error:
        reraise_interrupts(error)
    found: list[Any] = []
    for place in range(n):
        try:
            found += one(place)
        except BaseException as error:
            reraise_interrupts(error)
            found.append(None)
    return found


def _in_places(values: Iterable[Any], places: IntArray, n: int) -> list[Any]:
    """Values at some places of a list, None at the others."""
    found: list[Any] = [None] * n
    for place, value in zip(places.tolist(), values, strict=True):
        found[place] = value
    return found


def _without_dictionary(data: Any) -> Any:
    """A column of Arrow as one of the values of its dictionary."""
    return data.cast(data.type.value_type) if str(data.type).startswith("dictionary") else data


# --- columns of any type

# Types that are read as a number in columns of objects.
_NUMBERS = (int, float, np.integer, np.floating, np.bool_, Decimal, numbers.Real)


# Types that may identify the person a row belongs to.
_TELLING = (str, bytes, numbers.Real, Decimal, np.bool_, np.datetime64, datetime.date, uuid.UUID)


# Types for which equal values are interchangeable.
_PLAIN = {str, bytes, int, float, bool, type(None), np.str_, np.bool_, np.float64, np.int64}


def _number(value: Any) -> float:
    """One object as a float; NaN if it is not a number. Never raises."""
    if type(value) is float:
        return value
    try:
        if isinstance(value, str):
            return number_written(value)
        # Durations count as integers in NumPy's class tree, but have a unit.
        if isinstance(value, _NUMBERS) and not isinstance(value, np.timedelta64):
            try:
                return float(value)
            except OverflowError:
                # An integer too large for a float lies outside of every range, on the side of its
                # sign.
                return float("inf") if value > 0 else float("-inf")  # type: ignore[operator]
    except BaseException as error:
        reraise_interrupts(error)
    return float("nan")


class Column:
    """One column of a frame.

    Parameters
    ----------
    data : array or series of the library
    kind : str
        One of "numeric", "boolean", "string", "object" (anything, examined value by value),
        "temporal" (dates and times without a time zone), "zoned" (with one), "duration" (durations
        and times of the day), "null" (no value at all) and "other" (neither numbers nor text:
        bytes, lists, intervals). A dictionary (categorical) column has the kind of its categories.
    dtype : str
        The library's own name of the type, for messages.
    """

    # Library of the data.
    library = "numpy"
    # Whether its type may have been chosen by looking at values, as readers of files do.
    guessed = True
    # Whether one record with text makes text of the numbers of others, however they are written.
    mixes = True

    def __init__(self, data: Any, kind: str, dtype: str) -> None:
        self.data = data
        self.kind = kind
        self.dtype = dtype

    def __len__(self) -> int:
        return len(self.data)

    def numbers(self) -> FloatArray:
        """Values as float64, NaN where missing or not a number. Never raises or warns.

        Only columns of kind "numeric" and "boolean" are converted as a whole; in other columns
        each value is read by itself, text as `number_written` reads it.
        """
        if self.kind in ("numeric", "boolean"):
            try:
                # A NumPy warning about an overflow would reveal a value, as an error would.
                with np.errstate(all="ignore"):
                    return self._floats()
            except BaseException as error:
                reraise_interrupts(error)
                # An unusual storage type: read the values one by one below.
        elif self.kind == "object":
            # One by one, not by distinct values: 1 and complex(1) are equal, but only one of
            # them is a real number, and a record's code may not depend on other records.
            return np.array([_number(value) for value in self._objects()], dtype=np.float64)
        codes, uniques = self.factorize()
        table = np.array([_number(value) for value in uniques] + [np.nan], dtype=np.float64)
        return table[codes]

    def instants(self, clock: Clock) -> FloatArray:
        """Dates and times as whole units of a clock, NaN where missing or no date. Never raises.

        In columns of text, objects and numbers each value is read by itself, see `Clock.moment`.
        """
        if self.kind in ("temporal", "zoned"):
            try:
                found = self._moments()
                if found is not None:
                    return _as_numbers(found, clock)
            except BaseException as error:
                reraise_interrupts(error)
                # A value that the library cannot convert: read them one by one below.
        elif self.kind == "object":
            return _as_numbers(_single_moments(self._objects(), clock), clock)
        codes, uniques = self.factorize()
        table = _as_numbers(_single_moments([*uniques, None], clock), clock)
        return table[codes]

    def factorize(self) -> tuple[NDArray[np.intp], list[Any]]:
        """Values as positions in a list of distinct values; -1 where missing. Never raises.

        The list may hold values that do not occur, and the same value twice.
        """
        try:
            if self.kind == "object" and not set(map(type, self._objects())) <= _PLAIN:
                return self._factorize_mixed()
            return self._factorize()
        except BaseException as error:
            reraise_interrupts(error)
            # Objects that cannot be hashed or compared: each value stands for itself.
            return _list_factorize(self._objects())

    def _factorize_mixed(self) -> tuple[NDArray[np.intp], list[Any]]:
        # Objects of types that may define hash and equality arbitrarily stand for themselves: as
        # one of several equal values, such an object would decide how the others are coded.
        values = object_array(self._objects())
        plain = np.fromiter((type(value) in _PLAIN for value in values), bool, len(values))
        codes = np.empty(len(values), dtype=np.intp)
        codes[plain], uniques = pd.factorize(values[plain])
        alone, others = _list_factorize(values[~plain])
        codes[~plain] = np.where(alone < 0, -1, alone + len(uniques))
        return codes, [*uniques, *others]

    def identities(self) -> NDArray[np.intp]:
        """A number for each value, the same for equal values; -1 where it identifies no person.

        An integer and the text that writes it are the same. What a reader of files may have changed
        identifies nobody: floats of 2**53 and more, infinities, truth values, text that writes one
        of these, and in columns of objects text that writes a number in another form than its
        shortest, such as "01". Nor do values that are neither text nor numbers nor dates, whose
        equality may be unreliable.
        """
        # Privacy. Whose a row is follows from its own value and the type of the column, so that in
        # tables of one schema no record changes it for another. No two values that were written
        # apart have one key: what a reader may have merged (12e45678 and 9e456781 are both
        # infinite) is nobody's, a public rule. Such rows do not count, and a person more adds at
        # most the bound, as in `code_rows`.
        if self.kind in ("temporal", "zoned", "duration"):
            # Not as objects: some dates raise an error that quotes them.
            ticks, missing = self._ticks()
            return np.where(missing, -1, pd.factorize(ticks)[0])
        # Objects one by one, not by distinct values: complex(1) equals 1 but identifies no person,
        # and whether a person is recognised may not depend on which of the two comes first.
        codes, uniques = (
            _list_factorize(self._objects()) if self.kind == "object" else self.factorize()
        )
        known: dict[Any, int] = {}
        # The list may hold a value twice, but a person must have one number.
        table = [_identity(value, known, self.kind == "string") for value in uniques]
        return np.array([*table, -1], dtype=np.intp)[codes]

    def objects(self) -> list[Any]:
        """Values as exact Python objects; a missing value is whatever the library uses for it."""
        return list(self._objects())

    def values(self) -> tuple[NDArray, BoolArray]:
        """Values as a NumPy array, and a mask of the missing ones.

        Numeric and boolean columns without gaps keep their type where NumPy has it, those with
        gaps are float64, all others hold Python objects.
        """
        if self.kind in ("numeric", "boolean"):
            floats = self.numbers()
            missing = np.isnan(floats)
            if missing.any():
                return floats, missing
            exact = np.asarray(self.data)
            return (exact if exact.dtype != object else floats), missing
        codes, uniques = self.factorize()
        return object_array([*uniques, None])[codes], codes < 0

    def _floats(self) -> FloatArray:
        raise NotImplementedError

    def _moments(self) -> _Moments | None:
        """Moments of a column whose type says how they are stored, else None."""
        raise NotImplementedError

    def _ticks(self) -> _Moments:
        """Integers that are equal for equal dates or durations, and which are missing."""
        raise NotImplementedError

    def _factorize(self) -> tuple[NDArray[np.intp], list[Any]]:
        raise NotImplementedError

    def _objects(self) -> Sequence[Any]:
        raise NotImplementedError


# Text that some reader of files takes for a number or a truth value, if all of a column is such.
_GUESSABLE = re.compile(
    r"\s*(?:[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|0x[0-9a-f]+|inf|infinity|nan)|true|false)\s*",
    re.ASCII | re.IGNORECASE,
)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)


def _identity(value: Any, known: dict[Any, int], typed: bool) -> int:
    """Number of a value that identifies a person, a new number for a new value; else -1."""
    try:
        if isinstance(value, _TELLING) and not is_missing(value):
            key = _person(value, typed)
            return -1 if key is None else known.setdefault(key, len(known))
    except BaseException as error:  # an object that cannot be hashed: it depends on a value
        reraise_interrupts(error)
    return -1


def _person(value: Any, typed: bool) -> Any:
    """What a value says of the person of its row: a number, a text or a pair; None for nobody.

    Parameters
    ----------
    value : object
    typed : bool
        Whether the type of the column holds nothing but text.
    """
    if isinstance(value, str):
        return _person_of_text(str.__str__(value), typed)
    if isinstance(value, bool | np.bool_ | np.timedelta64):
        return None
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, Decimal):
        return value if value.is_finite() else None
    if isinstance(value, numbers.Real):
        # NaN was missing. From 2**53 on a float may stand for several integers, and it may be near
        # several fractions.
        number = float(value)
        return number if number == value and abs(number) < MAX_INTEGER else None
    # Apart from numbers: NumPy takes 1970-01-01 for equal to 0.
    return "", value


def _person_of_text(text: str, typed: bool) -> Any:
    if _GUESSABLE.fullmatch(text) is None:
        # Where text is no number, Arrow reads a field without anything as empty text.
        return text or None
    # One text in a file makes pandas read the numbers around it as text, and one gap as floats:
    # whoever is written as an integer or a short fraction is the same in all three.
    if _INTEGER.fullmatch(text):
        whole = int(text)
        if str(whole) == text:
            return whole
        return text if typed else None
    try:
        number = float(text)
    except ValueError:  # a truth value, or hexadecimal digits, which Arrow reads
        return text if typed and "x" in text.lower() else None
    if not math.isfinite(number) or abs(number) >= MAX_INTEGER:
        return None
    if digits(number) == text:
        return number
    # A type of text alone holds it as it was written. Among objects, pandas may have read the same
    # text as a number elsewhere: it reads large files in parts, each with types of its own.
    return text if typed else None


def _list_factorize(values: Iterable[Any]) -> tuple[NDArray[np.intp], list[Any]]:
    """Positions and values, one for each value that is not missing."""
    uniques: list[Any] = []
    codes: list[int] = []
    for value in values:
        if is_missing(value):
            codes.append(-1)
        else:
            codes.append(len(uniques))
            uniques.append(value)
    return np.array(codes, dtype=np.intp), uniques


def _array_factorize(values: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Positions and distinct values of an array, each value by itself.

    Where all objects are text, and only there, pandas 2 compares them up to their first NUL, so
    that one record without text would change which others are equal. A missing value, appended
    after the others, prevents this.
    """
    if values.dtype.kind in "iu" and values.size:
        # Close together, they are their own positions. Unsigned differences are right in any type,
        # and a column of a table is read from afar only once.
        values = np.ascontiguousarray(values)
        low, high = values.min(), values.max()
        if int(high) - int(low) < values.size // 64:
            first = np.asarray(low).astype(np.uint64)
            every = first + np.arange(int(high) - int(low) + 1, dtype=np.uint64)
            return (values.astype(np.uint64) - first).view(np.int64), every.astype(values.dtype)
    if values.dtype != object:
        # A long double beyond the range of doubles becomes infinite; a warning would tell of it.
        with np.errstate(all="ignore"):
            return pd.factorize(values)
    codes, uniques = pd.factorize(np.append(values, [None]))
    return codes[:-1], uniques


class _NumpyColumn(Column):
    def _floats(self) -> FloatArray:
        if isinstance(self.data, np.ma.MaskedArray):
            return np.ma.filled(self.data.astype(np.float64), np.nan)
        return self.data.astype(np.float64)

    def _moments(self) -> _Moments | None:
        micros, missing = micros_of(np.asarray(self.data))
        return micros, missing | np.ma.getmaskarray(self.data)

    def _ticks(self) -> _Moments:
        array = np.asarray(self.data)
        return array.astype(np.int64), np.isnat(array) | np.ma.getmaskarray(self.data)

    def _factorize(self) -> tuple[NDArray[np.intp], list[Any]]:
        values = np.asarray(self.data)
        if self.kind == "string":
            values = values.astype(object)
        codes, uniques = _array_factorize(values)
        if isinstance(self.data, np.ma.MaskedArray):
            codes = np.where(np.ma.getmaskarray(self.data), -1, codes)
        return codes, uniques.tolist()

    def _objects(self) -> Sequence[Any]:
        values = np.asarray(self.data).astype(object)
        if isinstance(self.data, np.ma.MaskedArray):
            values[np.ma.getmaskarray(self.data)] = None
        return list(values)


class _PandasColumn(Column):
    library = "pandas"

    def _floats(self) -> FloatArray:
        if isinstance(self.data.dtype, pd.CategoricalDtype):
            raise TypeError("by dictionary")
        if isinstance(self.data.dtype, np.dtype):
            return self.data.to_numpy().astype(np.float64)
        return self.data.to_numpy(dtype=np.float64, na_value=np.nan)

    def _moments(self) -> _Moments | None:
        return _pandas_moments(self.data)

    def _ticks(self) -> _Moments:
        if isinstance(self.data.dtype, pd.ArrowDtype):
            array: Any = self.data.array
            return _arrow_ticks(array.__arrow_array__())
        if isinstance(self.data.dtype, pd.CategoricalDtype):
            ticks = self.data.cat.codes.to_numpy().astype(np.int64)
            return ticks, ticks < 0
        stored: Any = self.data.array
        return stored.asi8, self.data.isna().to_numpy()

    def _factorize(self) -> tuple[NDArray[np.intp], list[Any]]:
        if isinstance(self.data.dtype, pd.CategoricalDtype):
            codes = self.data.cat.codes.to_numpy().astype(np.intp)
            return codes, _pandas_objects(self.data.cat.categories.array)
        if isinstance(self.data.dtype, np.dtype):
            codes, uniques = _array_factorize(self.data.to_numpy())
        elif self.kind == "string" and "pyarrow" not in str(
            getattr(self.data.dtype, "storage", "")
        ):
            codes, uniques = _array_factorize(self.data.to_numpy(dtype=object, na_value=None))
        else:
            codes, uniques = pd.factorize(self.data.array)
            return codes, _pandas_objects(uniques)
        return codes, list(uniques)

    def _objects(self) -> Sequence[Any]:
        if isinstance(self.data.dtype, pd.CategoricalDtype):
            codes, uniques = self._factorize()
            return [None if code < 0 else uniques[code] for code in codes.tolist()]
        return _pandas_objects(self.data.array)


def _pandas_objects(array: Any) -> list[Any]:
    """Values of a column of pandas as Python objects. Never raises."""
    dtype = array.dtype
    stored = isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "storage", "") == "pyarrow"
    return _arrow_objects(array.__arrow_array__()) if stored else list(array)


class _PolarsColumn(Column):
    library = "polars"
    mixes = False

    def _floats(self) -> FloatArray:
        series = nw.from_native(self.data, series_only=True)
        if self.dtype.startswith("Decimal"):
            # A cast of older versions rounds twice; text is read to the nearest float.
            series = series.cast(nw.String)
        return series.cast(nw.Float64).to_numpy()

    def _moments(self) -> _Moments | None:
        dtype = nw.from_native(self.data, series_only=True).dtype
        if dtype == nw.Date:
            length = TICKS["D"]
        elif isinstance(dtype, nw.Datetime):
            length = TICKS[dtype.time_unit]
        else:
            return None
        missing = self.data.is_null().to_numpy()
        return rescaled(
            self.data.to_physical().fill_null(0).to_numpy().astype(np.int64), length
        ), missing

    def _ticks(self) -> _Moments:
        ticks = self.data.to_physical().fill_null(0).to_numpy()
        return ticks.astype(np.int64), self.data.is_null().to_numpy()

    def _factorize(self) -> tuple[NDArray[np.intp], list[Any]]:
        series = nw.from_native(self.data, series_only=True)
        if self.kind in ("numeric", "boolean"):
            # Through NumPy, with gaps filled, so that integers stay exact.
            gaps = series.is_null().to_numpy()
            filled = series.fill_null(False if self.kind == "boolean" else 0)
            codes, uniques = pd.factorize(filled.to_numpy())
            return np.where(gaps, -1, codes), uniques.tolist()
        if self.kind != "string":
            return _list_factorize(self._objects())
        text = series.cast(nw.String)
        uniques = text.drop_nulls().unique().to_list()
        coded = nw.to_native(text.cast(nw.Enum(uniques))).to_physical()
        positions = nw.from_native(coded, series_only=True).cast(nw.Int64).fill_null(-1)
        return positions.to_numpy().astype(np.intp, copy=False), uniques

    def _objects(self) -> Sequence[Any]:
        dtype = nw.from_native(self.data, series_only=True).dtype
        kind = {"Date": "date32", "Datetime": "timestamp"}.get(name := type(dtype).__name__, "")
        # The time of a day is always one.
        kind = kind or ("duration" if name == "Duration" else "")
        zoned = getattr(dtype, "time_zone", None) is not None
        span = _python_span(kind, getattr(dtype, "time_unit", "s"), zoned)
        if span is None:
            data = self.data
            return _one_by_one(lambda at: data[at : at + 1].to_list(), data.to_list, len(data))
        ticks, missing = self._ticks()
        held = np.flatnonzero(~missing & (ticks >= span[0]) & (ticks <= span[1]))
        return _in_places(self.data[held].to_list(), held, len(self.data))


class _ArrowColumn(Column):
    library = "pyarrow"
    mixes = False

    def _floats(self) -> FloatArray:
        if self.dtype.startswith("dictionary"):
            raise TypeError("by dictionary")
        if self.dtype.startswith("decimal"):
            # Through text, which is read to the nearest float; a cast multiplies by a power of 0.1.
            numbers_ = self.data.cast("string").cast("float64")
            return numbers_.to_numpy(zero_copy_only=False).astype(np.float64)
        # A checked cast would raise for integers beyond 2**53: an error that depends on a value.
        numbers_ = self.data.cast("float64", safe=False)
        return numbers_.to_numpy(zero_copy_only=False).astype(np.float64)

    def _moments(self) -> _Moments | None:
        return _arrow_moments(self.data)

    def _ticks(self) -> _Moments:
        return _arrow_ticks(self.data)

    def _factorize(self) -> tuple[NDArray[np.intp], list[Any]]:
        data = self.data
        if not self.dtype.startswith("dictionary"):
            data = data.dictionary_encode()
        data = data.unify_dictionaries()
        codes: list[NDArray[np.intp]] = [np.zeros(0, dtype=np.intp)]
        for chunk in data.chunks:
            # Indices may be unsigned, which have no -1.
            positions = chunk.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
            codes.append(positions.astype(np.intp, copy=False))
        uniques = _arrow_objects(data.chunks[-1].dictionary) if data.chunks else []
        return np.concatenate(codes), uniques

    def _objects(self) -> Sequence[Any]:
        return _arrow_objects(self.data)


def numpy_kind(dtype: np.dtype, name: str) -> str:
    """Kind of a NumPy type; ``name`` is what messages call the data."""
    if dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} has type {dtype}. Give the real and the "
            "imaginary part as two columns."
        )
    kinds = {
        "b": "boolean",
        "i": "numeric",
        "u": "numeric",
        "f": "numeric",
        "U": "string",
        "T": "string",
        "O": "object",
        "M": "temporal",
        "m": "duration",
    }
    return kinds.get(dtype.kind, "other")


def narwhals_kind(dtype: Any) -> str:
    """Kind of a column, see :class:`Column`, by its narwhals type."""
    if dtype.is_numeric():
        return "numeric"
    if dtype == nw.Boolean:
        return "boolean"
    if dtype in (nw.String, nw.Categorical) or isinstance(dtype, nw.Enum) or dtype == nw.Enum:
        return "string"
    if dtype == nw.Object:
        return "object"
    if dtype == nw.Date:
        return "temporal"
    if isinstance(dtype, nw.Datetime):
        return "temporal" if dtype.time_zone is None else "zoned"
    return "duration" if dtype.is_temporal() else "other"


def type_name(dtype: Any) -> str:
    """Name of a type of Polars or narwhals for messages; the categories of an Enum are values."""
    return str(dtype).partition("(categories")[0]


def pandas_kind(dtype: Any, data: Any, name: str) -> str:
    """What kind of values a column of pandas has."""
    # The native type decides, not narwhals: for object columns narwhals looks at values, and a
    # schema error must not depend on one.
    if isinstance(dtype, pd.CategoricalDtype):
        categories = dtype.categories
        return pandas_kind(categories.dtype, categories.to_series(), name)
    if isinstance(dtype, pd.SparseDtype):
        raise TypeError(
            f"Column {name!r} is sparse ({dtype}), but dense data is required. Use "
            "`.sparse.to_dense()` on it first."
        )
    if isinstance(dtype, np.dtype):
        return numpy_kind(dtype, f"column {name!r}")
    if isinstance(dtype, pd.DatetimeTZDtype):
        return "zoned"
    if isinstance(dtype, pd.PeriodDtype):
        return "temporal"
    if isinstance(dtype, pd.ArrowDtype):
        stored = dtype.pyarrow_dtype
        if str(stored) == "null":
            return "null"
        if str(stored).startswith("dictionary"):
            return pandas_kind(pd.ArrowDtype(stored.value_type), data, name)
        if str(stored).startswith("date64"):
            return "temporal"
        data = pd.Series([], dtype=dtype)
    return narwhals_kind(nw.from_native(data, series_only=True).dtype)


def _pandas_column(data: Any, name: str) -> Column:
    if isinstance(data.dtype, np.dtype) and data.dtype.kind == "c":
        # One complex number makes pandas turn all others into complex ones, which are real still.
        values = data.to_numpy()
        real = np.where(values.imag == 0, values.real, np.nan)
        return _PandasColumn(pd.Series(real), "numeric", str(data.dtype))
    return _PandasColumn(data, pandas_kind(data.dtype, data, name), str(data.dtype))


def _polars_column(data: Any, name: str) -> Column:
    kind = "null" if str(data.dtype) == "Null" else None
    kind = kind or narwhals_kind(nw.from_native(data, series_only=True).dtype)
    return _PolarsColumn(data, kind, type_name(data.dtype))


def _arrow_column(data: Any, name: str) -> Column:
    dtype = str(data.type)
    if dtype == "null":
        return _ArrowColumn(data, "null", dtype)
    probe = data
    if dtype.startswith("dictionary"):
        # The kind of a dictionary column is that of its values, known from the type alone.
        probe = data.slice(0, 0).cast(data.type.value_type)
    if str(probe.type).startswith("date64"):
        return _ArrowColumn(data, "temporal", dtype)
    return _ArrowColumn(data, narwhals_kind(nw.from_native(probe, series_only=True).dtype), dtype)


def numpy_column(data: NDArray, name: str) -> Column:
    """A column of an array."""
    return _NumpyColumn(data, numpy_kind(data.dtype, name), str(data.dtype))


COLUMN_MAKERS = {
    "numpy": numpy_column,
    "pandas": _pandas_column,
    "polars": _polars_column,
    "pyarrow": _arrow_column,
}


def object_array(values: Sequence[Any]) -> NDArray[Any]:
    """A one-dimensional array of objects, also where they are lists or arrays themselves."""
    array = np.empty(len(values), dtype=object)
    for position, value in enumerate(values):
        array[position] = value
    return array
