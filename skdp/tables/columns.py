"""`Column`: the values of one column, of NumPy, pandas, Polars or PyArrow.

What a column may hold is known from its type alone, never from a value. There is one route from any
library to typed values (`Values`), one from these to codes, and one to persons (`identities`).

Privacy. A value's key, number, moment, code and person are functions of this value and of the
column's type; none of them raises. Where a step sees many values at once, as to list the
distinct ones, this decides how often a function is asked, never what it is asked of: values of one
plain type stand for each other where they are equal, all others stand for themselves.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._keys import NO_KEY, is_missing, micros_of, number_in, written
from .._validation import BoolArray, CodeArray, FloatArray, attempt
from ..domain.attributes import Coding
from ..domain.dates import Clock

# Types of which equal values have one key and are one person; no text is equal to a number.
# They are known by their numbers: a class may say that it equals another.
_TEXTS = (id(str), id(np.str_), id(type(None)))
_PLAIN = (*_TEXTS, *map(id, (int, float, bool, np.bool_, np.float64, np.int64)))


class Values(NamedTuple):
    """Values of a column: numbers, moments, or positions in a list.

    Attributes
    ----------
    array : ndarray
        Numbers or booleans of any type; with ``exact`` microseconds since 1970, in UTC where there
        is a zone; with ``listed`` positions in it, -1 where missing.
    missing : ndarray of bool, or None
        Of numbers and moments: which are missing; None: none is, but for NaN.
    listed : list, or None
        Python objects; one may stand there twice, or not occur.
    exact : ndarray of bool, or None
        Of moments: which are whole microseconds, so that no two moments became one.
    """

    array: NDArray[Any]
    missing: BoolArray | None = None
    listed: list[Any] | None = None
    exact: BoolArray | None = None

    def distinct(self) -> tuple[NDArray[Any], list[Any]]:
        """Positions in a list of values, -1 or that of a missing value where missing."""
        if self.listed is not None:
            return self.array, self.listed
        found = self.close(64)
        if found is None:
            codes, uniques = pd.factorize(self.array)
            found = codes if self.missing is None else np.where(self.missing, -1, codes), uniques
        positions, uniques = found
        plain = uniques.tolist()
        return positions, plain if self.exact is None else [*map(written, plain)]

    def close(self, rows: int) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Integers close together are their own positions among all between; None for others.

        Parameters
        ----------
        rows : int
            How many there are at least for each of those between.
        """
        if self.listed is not None or self.array.dtype.kind not in "iu" or not self.array.size:
            return None
        low, high = int(self.array.min()), int(self.array.max())
        if high - low >= self.array.size // rows:
            return None
        # Unsigned differences are right in any type.
        unsigned = f"u{self.array.dtype.itemsize}"
        first = np.array(low, dtype=self.array.dtype)
        positions = (self.array.astype(unsigned) - first.astype(unsigned)).astype(np.intp)
        every = first.astype(np.uint64) + np.arange(high - low + 1, dtype=np.uint64)
        if self.missing is not None:
            positions[self.missing] = -1
        return positions, every.astype(self.array.dtype)

    def factorize(self) -> tuple[NDArray[Any], list[Any]]:
        """As `distinct`, with -1 wherever a value is missing."""
        positions, listed = self.distinct()
        gaps = np.array([*map(is_missing, listed), True])
        return (np.where(gaps[positions], -1, positions) if gaps[:-1].any() else positions), listed

    def floats(self) -> FloatArray:
        """Numbers as float64, NaN where missing."""
        with np.errstate(all="ignore"):
            floats: FloatArray = self.array.astype(np.float64)
        if self.missing is not None:
            floats[self.missing] = np.nan
        return floats

    def each(self, number: Callable[[Any], float]) -> FloatArray:
        """A number of each value, NaN where missing."""
        positions, listed = self.distinct()
        return np.array([*map(number, listed), np.nan], dtype=np.float64)[positions]

    def taken(self, positions: NDArray[np.intp]) -> Values:
        """Values at positions; missing at -1."""

        def take(array: NDArray[Any], gap: Any) -> NDArray[Any]:
            return np.append(array, np.array([gap], dtype=array.dtype))[positions]

        if self.listed is not None:
            return Values(take(self.array, -1), listed=self.listed)
        missing = np.zeros(len(self.array), dtype=bool) if self.missing is None else self.missing
        exact = None if self.exact is None else take(self.exact, False)
        return Values(take(self.array, 0), take(missing, True), exact=exact)


@dataclass(eq=False, repr=False)
class Column:
    """One column of a frame.

    Parameters
    ----------
    data : array or series of the library; of a lazy frame the name of the column there
    library : {"numpy", "pandas", "polars", "pyarrow", "lazy"}
    kind : str
        One of "numeric", "boolean", "string", "object" (anything), "temporal" (dates and times
        without a time zone), "zoned" (with one), "time" (of the day), "duration", "null" (no value
        at all) and "other" (bytes, lists, intervals). A dictionary column has the kind of its
        categories.
    dtype : str
        The library's own name of the type, for messages.
    """

    data: Any
    library: str
    kind: str
    dtype: str

    def __len__(self) -> int:
        return len(self.data)

    def read(self, exactly: bool = False) -> Values:
        """The values. Never raises: what cannot be read is missing.

        Parameters
        ----------
        exactly : bool, default=False
            Whether decimal numbers are given with all their digits, as Python objects; else as the
            nearest floats.
        """
        of = {"pandas": _of_pandas, "polars": _of_polars, "pyarrow": _of_arrow}
        # A warning of NumPy about an overflow would reveal a value, as an error would.
        with np.errstate(all="ignore"):
            found: Values | None = attempt(
                lambda: of.get(self.library, _of_numpy)(self.data, exactly), None
            )
        # A type that has no other way than value by value.
        return listed_values(exact_objects(self.data)) if found is None else found

    def codes(self, coding: Coding) -> CodeArray:
        """Code of each value, -1 where there is none. Never raises."""
        if coding.place is None:
            positions, listed = self.read().distinct()
            codes = [*map(coding.code_of, listed), coding.missing]
            return np.array(codes, dtype=np.int32).take(positions)
        values = self._numeric(coding.clock)
        close = values.close(4)
        if close is None:
            return coding.place(values.floats())
        positions, uniques = close
        return coding.place(np.append(uniques, np.nan)).take(positions)

    def declared(self, attribute: Any) -> pd.Series:
        """Values as `fit` reads them: known, `other` or clipped; see `Attribute.counted`."""
        # Privacy. Each record by itself: types follow from the attribute alone.
        coding = attribute.coding()
        numbers = None if coding.place is None else self.numbers(coding.clock)
        return attribute.counted(self.codes(coding), numbers)

    def numbers(self, clock: Clock | None = None) -> FloatArray:
        """Values as float64, NaN where missing or not a number. Never raises or warns.

        With a clock, dates and times as whole units of it, NaN where missing or no date.
        """
        return self._numeric(clock).floats()

    def _numeric(self, clock: Clock | None) -> Values:
        """Values as numbers, or of dates and times as whole units of a clock."""
        values = self.read()
        if clock is None:
            plain = values.listed is None and values.exact is None
            return values if plain else Values(values.each(number_in))
        if values.exact is not None:
            return Values(clock.numbers(values.array), values.missing)

        def unit(value: Any) -> float:
            micros = clock.moment(value)
            return math.nan if micros is None else float(clock.numbers(np.array([micros]))[0])

        return Values(values.each(unit))

    def factorize(self) -> tuple[NDArray[Any], list[Any]]:
        """Values as positions in a list of distinct values; -1 where missing. Never raises.

        The list may hold values that do not occur, and the same value twice. Moments are written
        out, in UTC.
        """
        return self.read().factorize()

    def objects(self) -> list[Any]:
        """Values as exact Python objects, None where one is missing."""
        values = self.read(exactly=True)
        if values.listed is not None:
            positions, listed = values.factorize()
            return object_array([*listed, None])[positions].tolist()
        moments = values.array.astype("M8[us]") if values.exact is not None else values.array
        found = moments.astype(object)
        if values.missing is not None:
            found[values.missing] = None
        return found.tolist()


def exact_objects(data: Any) -> NDArray[Any]:
    """Values of a library as Python objects; what it cannot convert is no value of any kind.

    Some dates, durations and bytes make libraries raise an error that quotes them.
    """
    name = next(each for each in ("to_pylist", "to_list", "tolist") if hasattr(data, each))
    found: list[Any] | None = attempt(getattr(data, name), None)
    if found is None:
        found = []
        for place in range(len(data)):
            found += attempt(getattr(data[place : place + 1], name), [NO_KEY])
    return object_array(found)


def object_array(values: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """A one-dimensional array of objects, also where they are lists or arrays themselves."""
    return np.fromiter(values, dtype=object, count=len(values))


# --- from each library to values


def listed_values(objects: NDArray[Any]) -> Values:
    """Python objects as positions in a list of some of them.

    Equal values of one plain type share a position; all others stand alone, because what they call
    equal would decide how others are read. So True, 1 and 1.0 are three values, whichever is first.
    """
    values = objects.tolist()
    kinds = set(map(id, map(type, values)))
    parts: list[Any] = [slice(None)]
    if len(kinds.difference(_TEXTS)) > 1 or not kinds.issubset(_PLAIN):
        own_kinds = np.fromiter(map(id, map(type, values)), dtype=np.int64, count=len(objects))
        parts = [np.flatnonzero(own_kinds == kind) for kind in _PLAIN]
    positions = np.zeros(len(objects), dtype=np.intp)
    alone = np.ones(len(objects), dtype=bool)
    listed: list[Any] = []
    for own in parts:
        # With a gap at the end: where all are text, pandas 2 compares them up to their first NUL.
        codes, found = pd.factorize(np.append(objects[own], [None]))
        positions[own] = np.where(codes[:-1] < 0, -1, codes[:-1] + len(listed))
        listed += map(_alike, found.tolist())
        alone[own] = False
    positions[alone] = np.arange(alone.sum()) + len(listed)
    return Values(positions, listed=listed + objects[alone].tolist())


def _alike(value: Any) -> Any:
    """One of a plain value and its equals, whichever of them it is."""
    # Privacy. The first of equal values stands for all: -0.0 or NumPy's text of another record.
    if isinstance(value, float):
        return value + 0.0
    return str(value) if isinstance(value, np.str_) else value


def _of_numpy(array: NDArray[Any], exactly: bool = True) -> Values:
    mask = np.ma.getmaskarray(array) if isinstance(array, np.ma.MaskedArray) else None
    array = np.asarray(array)
    kind = array.dtype.kind
    if kind in "biuf":
        wide = kind == "f" and array.dtype.itemsize > 8
        return Values(array.astype(np.float64) if wide else array, mask)
    if kind == "M":
        gaps = np.isnat(array)
        found = micros_of(array)
        return Values(found.micros, gaps if mask is None else gaps | mask, exact=found.exact)
    # Durations are no value of any kind.
    objects = object_array([NO_KEY] * len(array)) if kind == "m" else array.astype(object)
    if mask is not None:
        objects[mask] = None
    return listed_values(objects)


def _of_pandas(series: Any, exactly: bool) -> Values:
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        codes = series.cat.codes.to_numpy().astype(np.intp)
        return Column(pd.Series(dtype.categories), "pandas", "", "").read(exactly).taken(codes)
    if isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "storage", "") == "pyarrow":
        return _of_arrow(series.array.__arrow_array__(), exactly)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return _of_numpy(series.dt.tz_convert(None).to_numpy())
    if isinstance(dtype, np.dtype):
        array = series.to_numpy()
        # One complex number makes pandas turn all others into complex ones.
        real = np.where(array.imag == 0, array.real, np.nan) if dtype.kind == "c" else array
        return _of_numpy(real)
    inner = getattr(dtype, "numpy_dtype", None)
    if inner is not None and np.dtype(inner).kind in "biuf":
        return Values(series.to_numpy(dtype=inner, na_value=0), series.isna().to_numpy())
    return listed_values(series.to_numpy(dtype=object, na_value=None))


def _of_polars(series: Any, exactly: bool) -> Values:
    if str(series.dtype) == "Object":
        # Arrow would be given a pointer.
        return listed_values(exact_objects(series))
    return _of_arrow(series.to_arrow(), exactly)


def _of_arrow(data: Any, exactly: bool) -> Values:
    kind, coded = kind_of(data.type), str(data.type).startswith("dictionary")
    if kind == "string":
        return _of_arrow_text(data, coded)
    if coded:
        data = data.cast(data.type.value_type)
    if kind in ("temporal", "zoned"):
        return _of_numpy(data.to_numpy(zero_copy_only=False))
    decimal = str(data.type).startswith("decimal")
    if kind not in ("numeric", "boolean") or (decimal and exactly):
        return listed_values(exact_objects(data))
    missing = np.asarray(data.is_null()) if data.null_count else None
    if decimal:
        # Through text, which is read to the nearest float; a cast multiplies by a power of 0.1.
        data = data.cast("string").cast("float64")
    if data.null_count:
        data = data.fill_null(False if kind == "boolean" else 0)
    return Values(data.to_numpy(zero_copy_only=False), missing)


def _of_arrow_text(data: Any, coded: bool) -> Values:
    listed: list[Any] = []
    positions = [np.zeros(0, dtype=np.int32)]
    for chunk in getattr(data, "chunks", [data]):
        dictionary = chunk if coded else chunk.dictionary_encode()
        # In front of the texts of each chunk stands what is missing. Indices may be unsigned.
        own = np.asarray(dictionary.indices.cast("int32").fill_null(-1))
        positions.append(own + (len(listed) + 1))
        listed += [None, *_arrow_strings(dictionary.dictionary)]
    return Values(np.concatenate(positions), listed=listed)


def _arrow_strings(texts: Any) -> list[Any]:
    """Texts as Python text; bytes of files that are not UTF-8 are kept, as in names of files."""
    found: list[Any] | None = attempt(texts.to_pylist, None)
    if found is not None:
        return found
    raw = texts.cast(str(texts.type).replace("string", "binary")).to_pylist()
    return [None if each is None else each.decode(errors="surrogateescape") for each in raw]


# --- kinds, by the names of types alone

_KINDS = {
    "boolean": r"bool(ean)?",
    "numeric": r"(u?int|float|complex)\d+|float|double|halffloat|decimal.*",
    "string": r"(large_)?str(ing)?(_view|dtype)?\d*(\[\w+\])?|(categorical|enum).*",
    "temporal": r"(date|datetime|timestamp)\d*(\[\w+\])?|datetime\(.*time_zone=none\)|period.*",
    "zoned": r"(datetime|timestamp).*",
    "time": r"time\d*(\[\w+\])?",
    "duration": r"(duration|timedelta).*",
    "object": "object",
    "null": "null",
}


def kind_of(dtype: Any, column: str = "") -> str:
    """Kind of a type of any library; ``column`` is what messages call the data."""
    if isinstance(dtype, pd.SparseDtype):
        raise TypeError(
            f"Column {column!r} is sparse ({dtype}), but dense data is required. Use "
            "`.sparse.to_dense()` on it first."
        )
    # Of dictionaries that of their values. Not by narwhals, which looks at values of objects.
    if isinstance(dtype, pd.CategoricalDtype):
        return kind_of(dtype.categories.dtype, column)
    if isinstance(dtype, pd.ArrowDtype):
        return kind_of(dtype.pyarrow_dtype)
    if str(dtype).startswith("dictionary"):
        return kind_of(dtype.value_type)
    name = dtype.name if isinstance(dtype, np.dtype) else type_name(dtype)
    found = (kind for kind, names in _KINDS.items() if re.fullmatch(names, name.lower()))
    return next(found, "other")


def type_name(dtype: Any) -> str:
    """Name of a type for messages; the categories of an Enum are values."""
    return str(dtype).partition("(categories")[0]


def refuse_complex(dtype: np.dtype, name: str) -> None:
    """ValueError for a NumPy type of complex numbers; ``name`` is what messages call the data."""
    if dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} has type {dtype}. Give the real and the "
            "imaginary part as two columns."
        )


def make_column(data: Any, library: str, name: str) -> Column:
    """A column of a library; ``name`` is what messages call it."""
    dtype = data.type if library == "pyarrow" else data.dtype
    if library == "numpy":
        refuse_complex(dtype, name)
    return Column(data, library, kind_of(dtype, name), type_name(dtype))
