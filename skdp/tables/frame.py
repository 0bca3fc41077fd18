"""`Frame`: the columns of a table in memory, and the types that hold a domain.

Frame: the columns of a table in memory, read from any container.

Libraries are recognised by narwhals, which imports none of them.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.exceptions import DataConversionWarning

from .._random import sampling_generator
from .._validation import BoolArray, FloatArray
from ..domain import Categorical, Date, Datetime, Identifier, Numeric
from ..domain.values import some
from ..exceptions import DomainError
from .columns import COLUMN_MAKERS, Column, numpy_column, numpy_kind, object_array

# Where a frame of pandas that was read from a file says, in its ``attrs``, which records fit no
# domain: a byte for each. And the name of its index, which says which of them a row is.
UNFIT = "skdp.unfit"

#: What a guarantee assumes of a table whose types decide what its values mean.
TYPES_DECLARED = "the types of the columns were declared, not inferred from the records"


class Frame:
    """Columns of equal length with optional names, read from any container.

    Parameters
    ----------
    names : sequence of (str or None)
        None for the columns of an array, which have a position only.
    columns : sequence of Column
    n_rows : int
    library : {"numpy", "pandas", "polars", "pyarrow"}
        What :func:`build_frame` builds for ``like=`` this frame.
    unfit : ndarray of bool, shape (n_rows,), default=None
        Records that fit no domain, because they could not be read from a file. None: there are
        none.
    """

    # Column that identifies the person a row belongs to, where contributions are bounded.
    privacy_id: str | None = None

    def __init__(
        self,
        names: Sequence[str | None],
        columns: Sequence[Column],
        n_rows: int,
        library: str,
        unfit: BoolArray | None = None,
    ) -> None:
        check_unique(name for name in names if name is not None)
        self._names = tuple(names)
        self._columns = tuple(columns)
        self.n_rows = n_rows
        self.library = library
        self.unfit = unfit

    def __len__(self) -> int:
        return self.n_rows

    @property
    def assumes(self) -> str:
        """What the guarantee assumes of where the rows come from."""
        # Privacy. A reader that infers types merges persons, "01" and "1" as integers, or 18-digit
        # integers as floats where one record has none: nobody can tell afterwards. So where persons
        # are protected, neighbours are tables of one schema. Files of the command line, which have
        # marks, are read as text.
        return "" if self.privacy_id is None or self.unfit is not None else TYPES_DECLARED

    @property
    def names(self) -> tuple[str, ...]:
        """Column names; columns of arrays are called x0, x1, ... by position."""
        return tuple(
            f"x{position}" if name is None else name for position, name in enumerate(self._names)
        )

    @property
    def named(self) -> tuple[str, ...]:
        """The names that were given, without the columns that have a position only."""
        return tuple(name for name in self._names if name is not None)

    @property
    def n_unnamed(self) -> int:
        """Number of columns that have a position but no name."""
        return sum(name is None for name in self._names)

    @property
    def kinds(self) -> dict[str, str]:
        """Kind of each column: the schema."""
        return {name: c.kind for name, c in zip(self.names, self._columns, strict=True)}

    @property
    def dtypes(self) -> dict[str, str]:
        """The library's name of each column's type, for messages."""
        return {name: c.dtype for name, c in zip(self.names, self._columns, strict=True)}

    def numbers(self) -> FloatArray:
        """All columns as numbers, side by side; NaN where there is none."""
        return np.column_stack([column.numbers() for column in self._columns])

    def column(self, name: str) -> Column:
        """One column by name.

        Raises
        ------
        KeyError
            If there is none of that name.
        """
        try:
            return self._columns[self.names.index(name)]
        except ValueError:
            raise KeyError(name) from None

    def select(self, names: Sequence[str]) -> Frame:
        """The columns of these names, in this order."""
        columns = [self.column(name) for name in names]
        return Frame(tuple(names), columns, self.n_rows, self.library, self.unfit)

    def with_again(self, name: str, again: str) -> Frame:
        """The rows with a column once more, under another name."""
        columns = (*self._columns, self.column(name))
        return Frame((*self._names, again), columns, self.n_rows, self.library, self.unfit)

    def with_names(self, names: Sequence[str]) -> Frame:
        """Name the unnamed columns, in order of position.

        Raises
        ------
        ValueError
            If there are not as many names as unnamed columns.
        """
        if len(names) != self.n_unnamed:
            raise ValueError(f"{self.n_unnamed} columns have no name, got {len(names)} names.")
        rest = iter(names)
        full = [next(rest) if name is None else name for name in self._names]
        return Frame(full, self._columns, self.n_rows, self.library, self.unfit)

    def with_column(self, name: str, values: Any) -> Frame:
        """Append a column, such as the labels of a supervised fit.

        Parameters
        ----------
        name : str
        values : Series, 1-D array or list of length n_rows
            Rows are matched by position. An array of one column is taken with scikit-learn's
            ``DataConversionWarning``.

        Raises
        ------
        ValueError
            If the length differs, the values are not one-dimensional, or the name is taken.
        """
        if name in self._names:
            raise ValueError(
                f"Column {name!r} is in the frame already, and was given separately too. Drop it "
                "from the frame, or do not pass it separately."
            )
        column = as_column(values, name)
        if len(column) != self.n_rows:
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: "
                f"{name!r} has more or fewer rows than the others. How many is private."
            )
        columns = (*self._columns, column)
        return Frame((*self._names, name), columns, self.n_rows, self.library, self.unfit)

    def __repr__(self) -> str:
        return f"Frame({self.library}, columns={self.kinds})"


def _library(frame: Any) -> str:
    implementation = frame.implementation
    if implementation.is_pandas():
        return "pandas"
    if implementation.is_polars():
        return "polars"
    if implementation.is_pyarrow():
        return "pyarrow"
    raise TypeError(
        f"Frames of {implementation.name.lower()} are not supported. Convert to pandas, Polars or "
        "PyArrow first."
    )


def as_column(values: Any, name: str) -> Column:
    """Read a Series, 1-D array or list as one column.

    Parameters
    ----------
    values : Series, 1-D array or list
        An array of one column is taken with scikit-learn's ``DataConversionWarning``. A list is
        read entry by entry, independently of the other entries: an entry that is a list of one
        value stands for that value, and one of several is a value that no domain declares.
    name : str
        What messages call it.

    Raises
    ------
    TypeError, ValueError
        For other containers and shapes.
    """
    if issparse(values):
        raise TypeError(f"{name!r} is sparse, but dense data is required. Use `.toarray()`.")
    series = nw.from_native(values, pass_through=True, allow_series=True)
    if isinstance(series, nw.Series):
        return COLUMN_MAKERS[_library(series)](nw.to_native(series), name)
    if isinstance(series, nw.DataFrame):
        frame = as_frame(values)
        if len(frame.names) != 1:
            raise ValueError(
                f"y should be a 1d array, got an array of shape {(len(frame), len(frame.names))} "
                "instead."
            )
        _warn_column_vector()
        return frame.column(frame.names[0])
    if values is None or isinstance(values, str | bytes | Mapping):
        raise TypeError(f"{name!r} must be a Series, a 1-D array or a list, got {type(values)}.")
    array = list_entries(values) if _is_list(values) else as_array(values)
    if array.ndim == 2 and array.shape[-1] == 1:
        _warn_column_vector()
        array = array.reshape(-1)
    if array.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {array.shape} instead.")
    return numpy_column(array, name)


def _warn_column_vector() -> None:
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of y "
        "to (n_samples, ), for example using ravel().",
        DataConversionWarning,
        stacklevel=4,
    )


def as_array(data: Any) -> NDArray[Any]:
    """An array-like as an array whose type does not depend on a value.

    Lists become arrays of objects. One text in a list makes NumPy turn all its numbers into text,
    so that one record would change how the others compare. Masked arrays keep their mask.
    """
    if _is_list(data):
        return _list_array(list(data))
    array = data if isinstance(data, np.ndarray) else np.asarray(data)
    if isinstance(array, np.matrix):
        raise TypeError("np.matrix is not supported. Convert to a numpy array with np.asarray.")
    return array


def as_labels(values: Any, name: str = "y") -> NDArray[Any]:
    """Labels as a one-dimensional array, in which no label depends on another.

    Parameters
    ----------
    values : Series, table or array of one column, 1-D array or list
        As in :func:`as_column`.
    name : str, default="y"
        What messages call it.

    Returns
    -------
    ndarray of shape (n_rows,)
        Arrays keep their type, everything else becomes Python objects, because a gap would turn
        integers into floats, which are not exact.

    Raises
    ------
    TypeError, ValueError
        For other containers and shapes and arrays of complex numbers; no value is looked at.
    """
    dtype = getattr(values, "dtype", None)
    # pandas takes the type of a Series from the records: one complex label makes all complex.
    if isinstance(dtype, np.dtype) and not isinstance(values, pd.Series):
        numpy_kind(dtype, name)
    if isinstance(values, np.ndarray) and not isinstance(values, np.ma.MaskedArray | np.matrix):
        if values.ndim == 2 and values.shape[1] == 1:
            return values[:, 0]
        if values.ndim == 1:
            return values
    if isinstance(values, pd.Series) and isinstance(dtype, np.dtype) and dtype.kind != "c":
        return values.to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataConversionWarning)
        return object_array(as_column(values, name).objects())


def _is_list(data: Any) -> bool:
    """Whether this is a plain sequence of Python, whose entries have no common type."""
    return isinstance(data, Sequence) and not (
        isinstance(data, str | bytes | memoryview) or hasattr(data, "__array__")
    )


def list_entries(values: Iterable[Any]) -> NDArray[Any]:
    """Entries of a list, each by itself: a list of one value stands for that value."""
    entries = list(values)
    for position, entry in enumerate(entries):
        # Exact types only: what a subclass does when it is read would depend on a value.
        if type(entry) in (list, tuple) and len(entry) == 1:
            entries[position] = entry[0]
        elif type(entry) is np.ndarray and entry.shape in ((), (1,)):
            entries[position] = entry.reshape(-1)[0]
    return object_array(entries)


def _list_array(values: Sequence[Any]) -> NDArray[Any]:
    """A list of values, or of rows of equal length, as an array of objects."""
    rows = [row for row in values if isinstance(row, list | tuple | np.ndarray)]
    if not rows or len(rows) < len(values):
        return object_array(values)
    shapes = {row.shape if isinstance(row, np.ndarray) else (len(row),) for row in rows}
    if len(shapes) == 1 and all(len(shape) != 1 for shape in shapes):
        return np.asarray(values)
    # An error of NumPy would quote the number of rows.
    if len({shape[:1] for shape in shapes}) > 1:
        raise ValueError("Expected 2D array, got a list of rows of different lengths.")
    array = np.empty((len(rows), len(rows[0])), dtype=object)
    for position, row in enumerate(rows):
        for place, value in enumerate(row):
            array[position, place] = value
    return array


def as_frame(data: Any) -> Frame:
    """Read a container of rows.

    Parameters
    ----------
    data : pandas, Polars or PyArrow table, 2-D array, or list of rows
        A pandas frame whose column names are all not strings counts as an array, as in
        scikit-learn. A :class:`Frame` is returned as it is.

    Raises
    ------
    TypeError
        For lazy frames, sparse matrices, mappings and other containers, and for column names of
        which only some are strings.
    ValueError
        For data that is not two-dimensional, has no columns, or is complex.
    DomainError
        For repeated column names.
    """
    if isinstance(data, Frame):
        return data
    if issparse(data):
        raise TypeError(
            "Sparse data was passed, but dense data is required: every cell, zero or not, takes "
            "part in the release. Use `.toarray()` to convert it."
        )
    if is_dask(data):
        raise _lazy_refused(data)
    try:
        frame = nw.from_native(data, pass_through=True, allow_series=True)
    except nw.exceptions.DuplicateError as error:
        check_unique(getattr(data, "column_names", getattr(data, "columns", ())))
        raise DomainError(str(error)) from error
    if isinstance(frame, nw.LazyFrame):
        raise _lazy_refused(data)
    if isinstance(frame, nw.Series):
        raise _not_two_dimensional(1)
    if isinstance(frame, nw.DataFrame):
        return _from_dataframe(frame)
    if data is None or isinstance(data, Mapping | str | bytes) or np.isscalar(data):
        raise TypeError(
            "Expected a pandas, Polars or PyArrow table or a 2-D array, got "
            f"{type(data).__name__}. Make it a frame first, for example with pandas.DataFrame; a "
            "file by pandas.read_parquet, or larger than memory by duckdb.read_parquet (`pip "
            "install 'skdp[duckdb]'`)."
        )
    array = as_array(data)
    if array.dtype.names:
        raise TypeError(
            f"Structured arrays are not supported (fields {some(array.dtype.names)}). Make it a "
            "frame with pandas.DataFrame(X)."
        )
    if array.ndim != 2:
        numpy_kind(array.dtype, "the array")
        raise _not_two_dimensional(array.ndim)
    if array.shape[1] == 0:
        raise _no_features(array.shape)
    columns = [numpy_column(array[:, j], "the array") for j in range(array.shape[1])]
    return Frame([None] * len(columns), columns, len(array), "numpy")


def is_dask(data: Any) -> bool:
    """Whether this is a frame of Dask, which only some versions of narwhals know."""
    dask = sys.modules.get("dask.dataframe")
    return dask is not None and isinstance(data, dask.DataFrame)


def _lazy_refused(data: Any) -> TypeError:
    return TypeError(
        f"{type(data).__name__} is lazy, and only frames in memory are supported here, where each "
        "row is read by itself. Collect it first (`.collect()`, `.compute()`, `.df()`, "
        "`.toPandas()`, as the library has it)."
    )


def _from_dataframe(frame: nw.DataFrame) -> Frame:
    library = _library(frame)
    native = nw.to_native(frame)
    names = list(frame.columns)
    if not names:
        raise _no_features(frame.shape)
    texts = [isinstance(name, str) for name in names]
    if any(texts) and not all(texts):
        types = sorted({type(name).__name__ for name in names})
        raise TypeError(
            "Column names are only supported if all of them are strings, but the frame has "
            f"names of types {types}. Convert them with `df.columns = df.columns.astype(str)`."
        )
    if library == "pandas":
        # By position, which works for any column name.
        natives = [native.iloc[:, position] for position in range(len(names))]
    elif library == "polars":
        natives = [native.get_column(name) for name in names]
    else:
        natives = [native.column(position) for position in range(len(names))]
    make = COLUMN_MAKERS[library]
    columns = [make(series, name) for series, name in zip(natives, names, strict=True)]
    known = [str(name) if text else None for name, text in zip(names, texts, strict=True)]
    marks = getattr(native, "attrs", {}).get(UNFIT)
    return Frame(
        known, columns, len(frame), library, None if marks is None else _unfit(native, marks)
    )


def _unfit(native: Any, marks: bytes) -> BoolArray:
    """The marks of the rows of a frame, which may be some of those read, in any order."""
    if native.index.name != UNFIT:
        raise ValueError(
            "Which records cannot be read is known by their index, and the frame has another one "
            "than it was read with. Keep that index, or remove the frame's attrs."
        )
    unfit = np.frombuffer(marks, dtype=bool)
    # An index is a value of its record, and values never raise: a row that was not read is unfit.
    places = pd.RangeIndex(len(unfit)).get_indexer(native.index)
    return np.append(unfit, True)[places]


def check_unique(names: Iterable[Any]) -> None:
    """Raise DomainError for names that occur more than once."""
    counts = Counter(str(name) for name in names)
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise DomainError(
            f"Column names must be unique, but {some(repeated)} occur more than once. Rename or "
            "drop the repeated columns."
        )


def _not_two_dimensional(ndim: int) -> ValueError:
    if ndim > 2:
        return ValueError(f"Found array with dim {ndim}, while dim <= 2 is required.")
    return ValueError(
        f"Expected 2D array, got {ndim}D array instead. Reshape your data either using "
        "array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it "
        "contains a single sample."
    )


def _no_features(shape: tuple[int, ...]) -> ValueError:
    return ValueError(
        f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required."
    )


# ------------------------------------------------------------------------------------------------
# Which type of column can hold the values that a domain draws: a public rule.
#
# It depends on the type of the input and on the domain alone, never on the values drawn, so that
# every draw has the same types.


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
