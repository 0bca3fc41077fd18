"""`Column`: the values of one column, of NumPy, pandas, Polars or PyArrow.

What a column may hold is known from its type alone, never from a value. Each library gives its
columns in one of four forms (`Values`), and everything else is the same for all of them: a value's
key, its number, its moment and its code are functions of this value alone, and none of them raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._foreign import attempt
from .._keys import NO_KEY, TICKS, Moments, micros_of, rescaled, written_all
from .._validation import BoolArray, CodeArray, FloatArray
from ..domain.attributes import Coding
from ..domain.dates import Clock
from ..domain.values import is_missing, number_in


class Values(NamedTuple):
    """Values of a column.

    Attributes
    ----------
    form : {"numbers", "texts", "moments", "objects"}
    array : ndarray
        Numbers or booleans of any type; positions of texts in ``uniques``, -1 where missing;
        microseconds since 1970, in UTC where there is a zone; or an array of Python objects.
    missing : ndarray of bool, or None
        Of numbers and moments: which are missing; None: none is, but for NaN.
    uniques : list of str
        Texts; one may stand there twice, or not occur.
    exact : ndarray of bool, or None
        Of moments: which are whole microseconds, so that no two moments became one.
    """

    form: str
    array: NDArray[Any]
    missing: BoolArray | None = None
    uniques: Sequence[str] = ()
    exact: BoolArray | None = None


# Types for which equal values have one key, so that it is enough to look at one of them.
_PLAIN = {str, int, float, bool, type(None), np.str_, np.bool_, np.float64, np.int64}


class Column:
    """One column of a frame.

    Parameters
    ----------
    data : array or series of the library; None for a column of a lazy frame
    library : {"numpy", "pandas", "polars", "pyarrow"}
    kind : str
        One of "numeric", "boolean", "string", "object" (anything), "temporal" (dates and times
        without a time zone), "zoned" (with one), "time" (of the day), "duration", "null" (no value
        at all) and "other" (bytes, lists, intervals). A dictionary column has the kind of its
        categories.
    dtype : str
        The library's own name of the type, for messages.
    """

    def __init__(self, data: Any, library: str, kind: str, dtype: str) -> None:
        self.data = data
        self.library = library
        self.kind = kind
        self.dtype = dtype

    def __len__(self) -> int:
        return len(self.data)

    def read(self) -> Values:
        """The values in one of four forms. Never raises: what cannot be read is missing."""
        # A warning of NumPy about an overflow would reveal a value, as an error would.
        with np.errstate(all="ignore"):
            found: Values | None = attempt(lambda: _READERS[self.library](self), None)
        if found is not None:
            return found
        # A value that the library cannot convert: they are read one by one.
        return _objects(exact_objects(self.data))

    def codes(self, coding: Coding) -> CodeArray:
        """Code of each value, -1 where there is none. Never raises."""
        if coding.place is not None:
            clock = coding.clock
            return coding.place(self.numbers() if clock is None else self.instants(clock))
        positions, uniques = self.factorize()
        codes = [coding.code_of(value) for value in uniques]
        return np.array([*codes, coding.missing], dtype=np.int32)[positions]

    def numbers(self) -> FloatArray:
        """Values as float64, NaN where missing or not a number. Never raises or warns."""
        values = self.read()
        if values.form == "numbers":
            return _floats(values)
        return self._each(values, number_in)

    def instants(self, clock: Clock) -> FloatArray:
        """Dates and times as whole units of a clock, NaN where missing or no date. Never raises."""
        values = self.read()
        if values.form == "moments":
            numbers = clock.numbers(values.array).astype(np.float64)
            numbers[values.missing] = np.nan
            return numbers

        def unit(value: Any) -> float:
            micros = clock.moment(value)
            return math.nan if micros is None else float(clock.numbers(np.array([micros]))[0])

        return self._each(values, unit)

    def _each(self, values: Values, number: Callable[[Any], float]) -> FloatArray:
        positions, uniques = _factorized(values)
        return np.array([*map(number, uniques), np.nan], dtype=np.float64)[positions]

    def factorize(self) -> tuple[NDArray[np.intp], list[Any]]:
        """Values as positions in a list of distinct values; -1 where missing. Never raises.

        The list may hold values that do not occur, and the same value twice. Moments are written
        out, in UTC.
        """
        return _factorized(self.read())

    def objects(self) -> list[Any]:
        """Values as exact Python objects, None where one is missing."""
        values = self.read()
        if values.form == "objects":
            return values.array.tolist()
        if values.form == "moments":
            found = values.array.astype("M8[us]").astype(object).tolist()
        elif values.form == "texts":
            held = [*values.uniques, None]
            return [held[position] for position in values.array.tolist()]
        else:
            found = values.array.tolist()
        if values.missing is not None:
            for place in np.flatnonzero(values.missing):
                found[place] = None
        return found

    def values(self) -> tuple[NDArray, BoolArray]:
        """Values as a NumPy array, and a mask of the missing ones.

        Numbers and booleans without gaps keep their type, those with gaps are float64, all
        others hold Python objects.
        """
        values = self.read()
        if values.form == "numbers":
            floats = _floats(values)
            missing = np.isnan(floats)
            return (floats if missing.any() else values.array), missing
        positions, uniques = _factorized(values)
        return object_array([*uniques, None])[positions], positions < 0


def _floats(values: Values) -> FloatArray:
    with np.errstate(all="ignore"):
        floats: FloatArray = values.array.astype(np.float64)
    if values.missing is not None:
        floats[values.missing] = np.nan
    return floats


def _factorized(values: Values) -> tuple[NDArray[np.intp], list[Any]]:
    array, missing = values.array, values.missing
    if values.form == "texts":
        return array, list(values.uniques)
    if values.form == "objects":
        if set(map(type, array.tolist())) <= _PLAIN:
            held = _texts(array)
            return held.array, list(held.uniques)
        # One by one: what a subclass calls equal would decide how others are coded.
        gaps = np.fromiter(map(is_missing, array), bool, len(array))
        return np.where(gaps, -1, np.arange(len(array))), array.tolist()
    if array.dtype.kind in "iu" and (span := _small_span(array)) is not None:
        codes, uniques = span
    else:
        codes, uniques = pd.factorize(array)
    listed = written_all(uniques) if values.form == "moments" else uniques.tolist()
    return (codes if missing is None else np.where(missing, -1, codes)), listed


def _small_span(array: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[Any]] | None:
    """Integers close together are their own positions; None for others."""
    if not array.size:
        return None
    low, high = array.min(), array.max()
    if int(high) - int(low) >= array.size // 64:
        return None
    # Unsigned differences are right in any type.
    first = np.asarray(low).astype(np.uint64)
    every = first + np.arange(int(high) - int(low) + 1, dtype=np.uint64)
    return (array.astype(np.uint64) - first).view(np.int64), every.astype(array.dtype)


def exact_objects(data: Any) -> list[Any]:
    """Values of a library as Python objects; what it cannot convert is no value of any kind.

    Some dates, durations and bytes make libraries raise an error that quotes them.
    """
    name = next(each for each in ("to_pylist", "to_list", "tolist") if hasattr(data, each))
    found: list[Any] | None = attempt(getattr(data, name), None)
    if found is None:
        found = []
        for place in range(len(data)):
            found += attempt(getattr(data[place : place + 1], name), [NO_KEY])
    return found


# --- the four libraries


def _read_numpy(column: Column) -> Values:
    masked = isinstance(column.data, np.ma.MaskedArray)
    return _of_array(np.asarray(column.data), np.ma.getmaskarray(column.data) if masked else None)


def _of_array(array: NDArray[Any], missing: BoolArray | None = None) -> Values:
    kind = array.dtype.kind
    if kind in "biuf":
        wide = kind == "f" and array.dtype.itemsize > 8
        return Values("numbers", array.astype(np.float64) if wide else array, missing)
    if kind == "M":
        gaps = np.isnat(array)
        return _moments(micros_of(array), gaps if missing is None else gaps | missing)
    if kind in "UT":
        texts = array.astype(object)
        if missing is not None:
            texts[missing] = None
        return _texts(texts)
    if kind == "m":
        return _objects([NO_KEY] * len(array))
    objects = array.astype(object, copy=missing is not None)
    if missing is not None:
        objects[missing] = None
    return Values("objects", objects)


def _moments(found: Moments, missing: BoolArray) -> Values:
    return Values("moments", found.micros, missing, exact=found.exact)


def _objects(values: Sequence[Any]) -> Values:
    return Values("objects", object_array(values))


def _texts(objects: NDArray[Any]) -> Values:
    """Texts of an array of objects, which holds nothing but text and None, or plain values."""
    # With a gap at the end: where all are text, pandas 2 compares them up to their first NUL.
    codes, uniques = pd.factorize(np.append(objects, [None]))
    return Values("texts", codes[:-1], uniques=list(uniques))


def _read_pandas(column: Column) -> Values:
    series = column.data
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        codes = series.cat.codes.to_numpy().astype(np.intp)
        return _taken(Column(pd.Series(dtype.categories), "pandas", column.kind, ""), codes)
    if isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "storage", "") == "pyarrow":
        return _of_arrow(series.array.__arrow_array__())
    if isinstance(dtype, pd.PeriodDtype):
        return _of_array(series.dt.start_time.to_numpy())
    if isinstance(dtype, pd.DatetimeTZDtype):
        return _of_array(series.dt.tz_convert(None).to_numpy())
    if isinstance(dtype, np.dtype):
        array = series.to_numpy()
        if dtype.kind == "c":
            # One complex number makes pandas turn all others into complex ones.
            array = np.where(array.imag == 0, array.real, np.nan)
        return _of_array(array)
    missing = series.isna().to_numpy()
    if isinstance(dtype, pd.StringDtype):
        return _texts(series.to_numpy(dtype=object, na_value=None))
    inner = getattr(dtype, "numpy_dtype", None)
    if inner is not None and np.dtype(inner).kind in "biuf":
        return Values("numbers", series.to_numpy(dtype=inner, na_value=0), missing)
    return _objects(list(series))


def _taken(held: Column, positions: NDArray[np.intp]) -> Values:
    """Values by their positions among held ones; -1 where missing."""
    values, gaps = held.read(), positions < 0
    if values.form == "objects":
        return Values("objects", np.append(values.array, [None])[positions])
    if values.form == "texts":
        return Values("texts", np.append(values.array, -1)[positions], uniques=values.uniques)
    array = np.append(values.array, np.zeros(1, values.array.dtype))[positions]
    missing = gaps if values.missing is None else gaps | np.append(values.missing, True)[positions]
    exact = None if values.exact is None else np.append(values.exact, False)[positions]
    return Values(values.form, array, missing, exact=exact)


def _read_polars(column: Column) -> Values:
    series = nw.from_native(column.data, series_only=True)
    dtype: Any = series.dtype
    missing = series.is_null().to_numpy()
    if column.kind in ("temporal", "zoned"):
        length = TICKS["D"] if dtype == nw.Date else TICKS[dtype.time_unit]
        ticks = column.data.to_physical().fill_null(0).to_numpy().astype(np.int64)
        return _moments(rescaled(ticks, length), missing)
    if column.kind in ("numeric", "boolean"):
        if column.dtype.startswith(("Decimal", "Int128", "UInt128")):
            # A cast of older versions rounds twice; text is read to the nearest float.
            return Values("numbers", series.cast(nw.String).cast(nw.Float64).to_numpy())
        filled = series.fill_null(False if column.kind == "boolean" else 0)
        return Values("numbers", filled.to_numpy(), missing if missing.any() else None)
    if column.kind == "string":
        text = series.cast(nw.String)
        uniques = text.drop_nulls().unique().to_list()
        coded = nw.to_native(text.cast(nw.Enum(uniques))).to_physical()
        positions = nw.from_native(coded, series_only=True).cast(nw.Int64).fill_null(-1)
        return Values("texts", positions.to_numpy().astype(np.intp, copy=False), uniques=uniques)
    return _objects(exact_objects(column.data))


def _read_arrow(column: Column) -> Values:
    return _of_arrow(column.data)


def _of_arrow(data: Any) -> Values:
    name = str(data.type)
    if name.startswith("dictionary") and arrow_kind(data.type) != "string":
        data = data.cast(data.type.value_type)
        name = str(data.type)
    kind = arrow_kind(data.type)
    missing = np.asarray(data.is_null())
    if kind in ("temporal", "zoned"):
        if name.startswith("date32"):
            ticks, length = data.cast("int32").cast("int64"), TICKS["D"]
        else:
            unit = "ms" if name.startswith("date64") else data.type.unit
            ticks, length = data.cast("int64"), TICKS[unit]
        return _moments(rescaled(np.asarray(ticks.fill_null(0)), length), missing)
    if kind in ("numeric", "boolean"):
        if name.startswith("decimal"):
            # Through text, which is read to the nearest float; a cast multiplies by a power of 0.1.
            floats = data.cast("string").cast("float64").to_numpy(zero_copy_only=False)
            return Values("numbers", floats.astype(np.float64))
        filled = data.fill_null(False if kind == "boolean" else 0)
        array = np.asarray(filled.to_numpy(zero_copy_only=False))
        return Values("numbers", array, missing if missing.any() else None)
    if kind == "string":
        return _arrow_texts(data)
    return _objects(exact_objects(data))


def _arrow_texts(data: Any) -> Values:
    chunks = data.chunks if hasattr(data, "chunks") else [data]
    uniques: list[str] = []
    codes: list[NDArray[np.intp]] = [np.zeros(0, dtype=np.intp)]
    for chunk in chunks:
        coded = chunk if str(chunk.type).startswith("dictionary") else chunk.dictionary_encode()
        # Indices may be unsigned, which have no -1.
        found = coded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
        codes.append(np.where(found < 0, -1, found + len(uniques)).astype(np.intp))
        uniques += _arrow_strings(coded.dictionary)
    return Values("texts", np.concatenate(codes), uniques=uniques)


def _arrow_strings(texts: Any) -> list[str]:
    """Texts as Python text; bytes of files that are not UTF-8 are kept, as in names of files."""
    found: list[str] | None = attempt(texts.to_pylist, None)
    if found is not None:
        return found
    raw = texts.cast(str(texts.type).replace("string", "binary")).to_pylist()
    return [each.decode(errors="surrogateescape") for each in raw]


_READERS: dict[str, Callable[[Column], Values]] = {
    "numpy": _read_numpy,
    "pandas": _read_pandas,
    "polars": _read_polars,
    "pyarrow": _read_arrow,
}


# --- kinds, by types alone

_NUMPY_KINDS = {
    **dict.fromkeys("iuf", "numeric"),
    **dict.fromkeys("UT", "string"),
    "b": "boolean",
    "O": "object",
    "M": "temporal",
    "m": "duration",
}


def numpy_kind(dtype: np.dtype, name: str) -> str:
    """Kind of a NumPy type; ``name`` is what messages call the data."""
    if dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} has type {dtype}. Give the real and the "
            "imaginary part as two columns."
        )
    return _NUMPY_KINDS.get(dtype.kind, "other")


def arrow_kind(dtype: Any) -> str:
    """Kind of an Arrow type."""
    name = str(dtype)
    if name.startswith("dictionary"):
        return arrow_kind(dtype.value_type)
    if name.startswith("timestamp"):
        return "temporal" if dtype.tz is None else "zoned"
    plain = name.partition("[")[0].partition("(")[0].partition("<")[0]
    kinds = {"bool": "boolean", "null": "null", "duration": "duration"}
    kinds |= dict.fromkeys(("halffloat", "float", "double"), "numeric")
    kinds |= dict.fromkeys(("string", "large_string", "string_view"), "string")
    kinds |= dict.fromkeys(("date32", "date64"), "temporal")
    kinds |= dict.fromkeys(("time32", "time64"), "time")
    if plain.startswith(("int", "uint", "decimal")) and hasattr(dtype, "bit_width"):
        return "numeric"
    return kinds.get(plain, "other")


def narwhals_kind(dtype: Any) -> str:
    """Kind of a narwhals type."""
    if dtype.is_numeric():
        return "numeric"
    if dtype == nw.Boolean:
        return "boolean"
    if dtype in (nw.String, nw.Categorical) or isinstance(dtype, nw.Enum) or dtype == nw.Enum:
        return "string"
    if dtype == nw.Object:
        return "object"
    if isinstance(dtype, nw.Datetime):
        return "temporal" if dtype.time_zone is None else "zoned"
    kinds = {nw.Date: "temporal", nw.Time: "time", nw.Duration: "duration"}
    return next((kind for each, kind in kinds.items() if dtype == each), "other")


def pandas_kind(dtype: Any, name: str) -> str:
    """Kind of a type of pandas.

    The native type decides: for columns of objects narwhals looks at values.
    """
    if isinstance(dtype, pd.CategoricalDtype):
        return pandas_kind(dtype.categories.dtype, name)
    if isinstance(dtype, pd.SparseDtype):
        raise TypeError(
            f"Column {name!r} is sparse ({dtype}), but dense data is required. Use "
            "`.sparse.to_dense()` on it first."
        )
    if isinstance(dtype, np.dtype):
        return "numeric" if dtype.kind == "c" else numpy_kind(dtype, f"column {name!r}")
    if isinstance(dtype, pd.DatetimeTZDtype):
        return "zoned"
    if isinstance(dtype, pd.PeriodDtype):
        return "temporal"
    if isinstance(dtype, pd.ArrowDtype):
        return arrow_kind(dtype.pyarrow_dtype)
    if isinstance(dtype, pd.StringDtype):
        return "string"
    inner = getattr(dtype, "numpy_dtype", None)
    return "other" if inner is None else numpy_kind(np.dtype(inner), f"column {name!r}")


def type_name(dtype: Any) -> str:
    """Name of a type of Polars or narwhals for messages; the categories of an Enum are values."""
    return str(dtype).partition("(categories")[0]


def make_column(data: Any, library: str, name: str) -> Column:
    """A column of a library; ``name`` is what messages call it."""
    if library == "pyarrow":
        return Column(data, library, arrow_kind(data.type), str(data.type))
    if library == "numpy":
        return Column(data, library, numpy_kind(data.dtype, name), str(data.dtype))
    if library == "pandas":
        return Column(data, library, pandas_kind(data.dtype, name), str(data.dtype))
    null = str(data.dtype) == "Null"
    kind = "null" if null else narwhals_kind(nw.from_native(data, series_only=True).dtype)
    return Column(data, library, kind, type_name(data.dtype))


def object_array(values: Sequence[Any]) -> NDArray[Any]:
    """A one-dimensional array of objects, also where they are lists or arrays themselves."""
    array = np.empty(len(values), dtype=object)
    for position, value in enumerate(values):
        array[position] = value
    return array
