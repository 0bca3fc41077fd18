"""The only dataframe code: columns in, columns out, for NumPy, pandas, Polars and PyArrow.

A :class:`Frame` knows containers, column names, kinds of columns and missing values; it knows
nothing of domains. Libraries are recognised by narwhals, which imports none of them; where a
library has a faster way than the common one (dictionary encoding), the column of that library
uses it through its own methods.
"""

from __future__ import annotations

import datetime
import numbers
import sys
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.exceptions import DataConversionWarning

from skdp.exceptions import DomainError

__all__ = [
    "Column",
    "Frame",
    "as_array",
    "as_column",
    "as_frame",
    "as_labels",
    "build_frame",
    "check_unique",
    "column_names",
    "is_dask",
    "is_missing",
    "narwhals_kind",
    "object_array",
    "row_taker",
    "select_columns",
    "take_rows",
    "type_name",
]


# What is read as a number in columns of objects; text as Python's float reads it.
_NUMBERS = (int, float, str, np.integer, np.floating, np.bool_, Decimal, numbers.Real)


# What may tell whose a row is.
_TELLING = (str, bytes, numbers.Real, Decimal, np.bool_, np.datetime64, datetime.date, uuid.UUID)


# Types whose equal values are one value.
_PLAIN = {str, bytes, int, float, bool, type(None), np.str_, np.bool_, np.float64, np.int64}


def is_missing(value: Any) -> bool:
    """Whether one value stands for "no value": None, NaN, NaT, pandas.NA."""
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    try:
        # NaN and NaT are the values that differ from themselves; a signalling decimal NaN
        # refuses the comparison.
        return isinstance(value, numbers.Number | np.generic) and not bool(value == value)
    except Exception:
        return True


def _number(value: Any) -> float:
    """One object as a float; NaN if it is not a number. Never raises."""
    if type(value) is float:
        return value
    try:
        # Durations count as integers in NumPy's class tree, but have a unit.
        if isinstance(value, _NUMBERS) and not isinstance(value, np.timedelta64):
            try:
                return float(value)
            except OverflowError:
                # An integer too large for a float lies outside of every range, on the side of its
                # sign.
                return float("inf") if value > 0 else float("-inf")  # type: ignore[operator]
    except Exception:
        pass
    return float("nan")


class Column:
    """One column of a frame.

    Parameters
    ----------
    data : array or series of the library
    kind : str
        One of "numeric", "boolean", "string", "object" (anything, told apart value by value),
        "temporal", "null" (no value at all) and "other" (neither numbers nor text: bytes, lists,
        intervals). A dictionary (categorical) column has the kind of its categories.
    dtype : str
        The library's own name of the type, for messages.
    """

    def __init__(self, data: Any, kind: str, dtype: str) -> None:
        self.data = data
        self.kind = kind
        self.dtype = dtype

    def __len__(self) -> int:
        return len(self.data)

    def numbers(self) -> NDArray[np.float64]:
        """Values as float64, NaN where missing or not a number. Never raises or warns.

        Only columns of kind "numeric" and "boolean" are converted as a whole; in other columns
        each value is read by itself, text as Python's ``float`` reads it.
        """
        if self.kind in ("numeric", "boolean"):
            try:
                # A warning of NumPy about an overflow would tell of a value, as an error would.
                with np.errstate(all="ignore"):
                    return self._floats()
            except Exception:
                # An unusual storage type: read the values one by one below.
                pass
        elif self.kind == "object":
            # One by one and not by distinct values: 1 and complex(1) are equal, but only one of
            # them is a real number, and a record's code may not depend on other records.
            return np.array([_number(value) for value in self._objects()], dtype=np.float64)
        codes, uniques = self.factorize()
        table = np.array([_number(value) for value in uniques] + [np.nan], dtype=np.float64)
        return table[codes]

    def factorize(self) -> tuple[NDArray[np.intp], list[Any]]:
        """Values as positions in a list of distinct values; -1 where missing. Never raises.

        The list may hold values that do not occur, and the same value twice.
        """
        try:
            if self.kind == "object" and not set(map(type, self._objects())) <= _PLAIN:
                return self._factorize_mixed()
            return self._factorize()
        except Exception:
            # Unhashable or otherwise unruly objects: each value stands for itself.
            return _list_factorize(self._objects())

    def _factorize_mixed(self) -> tuple[NDArray[np.intp], list[Any]]:
        # Objects of types that may say what they like of hash and equality stand for themselves: as
        # one of several equal values, such an object would decide what the others are.
        values = object_array(self._objects())
        plain = np.fromiter((type(value) in _PLAIN for value in values), bool, len(values))
        codes = np.empty(len(values), dtype=np.intp)
        codes[plain], uniques = pd.factorize(values[plain])
        alone, others = _list_factorize(values[~plain])
        codes[~plain] = np.where(alone < 0, -1, alone + len(uniques))
        return codes, [*uniques, *others]

    def identities(self) -> NDArray[np.intp]:
        """A number for each value, the same for equal values; -1 where there is none to tell.

        Values that are neither text nor numbers nor dates, and may not know what equals them,
        count as missing.
        """
        # Objects one by one and not by distinct values: complex(1) equals 1 and tells nobody, and
        # whether a person is told apart may not depend on which of the two comes first.
        codes, uniques = (
            _list_factorize(self._objects()) if self.kind == "object" else self.factorize()
        )
        numbers_: dict[Any, int] = {}
        # The list may hold a value twice, but a person must have one number.
        table = [_identity(value, numbers_) for value in uniques]
        return np.array([*table, -1], dtype=np.intp)[codes]

    def objects(self) -> list[Any]:
        """Values as Python objects, exact; a missing one is what its library has for it."""
        return list(self._objects())

    def values(self) -> tuple[NDArray, NDArray[np.bool_]]:
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
        table = np.empty(len(uniques) + 1, dtype=object)
        for position, value in enumerate(uniques):
            table[position] = value
        return table[codes], codes < 0

    def _floats(self) -> NDArray[np.float64]:
        raise NotImplementedError

    def _factorize(self) -> tuple[NDArray[np.intp], list[Any]]:
        raise NotImplementedError

    def _objects(self) -> Sequence[Any]:
        raise NotImplementedError


def _identity(value: Any, known: dict[Any, int]) -> int:
    """Number of a value that tells persons apart, a new one where it is new; else -1."""
    try:
        if isinstance(value, _TELLING) and not is_missing(value):
            return known.setdefault(value, len(known))
    except Exception:  # an unruly object: what it raises would depend on a value
        pass
    return -1


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
    that one record without text would change which others are equal. A missing value, put behind
    the others, leaves no such choice.
    """
    if values.dtype != object:
        return pd.factorize(values)
    codes, uniques = pd.factorize(np.append(values, [None]))
    return codes[:-1], uniques


class _NumpyColumn(Column):
    def _floats(self) -> NDArray[np.float64]:
        if isinstance(self.data, np.ma.MaskedArray):
            return np.ma.filled(self.data.astype(np.float64), np.nan)
        return self.data.astype(np.float64)

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
    def _floats(self) -> NDArray[np.float64]:
        if isinstance(self.data.dtype, pd.CategoricalDtype):
            raise TypeError("by dictionary")
        if isinstance(self.data.dtype, np.dtype):
            return self.data.to_numpy().astype(np.float64)
        return self.data.to_numpy(dtype=np.float64, na_value=np.nan)

    def _factorize(self) -> tuple[NDArray[np.intp], list[Any]]:
        if isinstance(self.data.dtype, pd.CategoricalDtype):
            return self.data.cat.codes.to_numpy().astype(np.intp), list(self.data.cat.categories)
        if isinstance(self.data.dtype, np.dtype):
            codes, uniques = _array_factorize(self.data.to_numpy())
        elif self.kind == "string" and "pyarrow" not in str(
            getattr(self.data.dtype, "storage", "")
        ):
            codes, uniques = _array_factorize(self.data.to_numpy(dtype=object, na_value=None))
        else:
            codes, uniques = pd.factorize(self.data.array)
        return codes, list(uniques)

    def _objects(self) -> Sequence[Any]:
        return list(self.data.array)


class _PolarsColumn(Column):
    def _floats(self) -> NDArray[np.float64]:
        series = nw.from_native(self.data, series_only=True)
        if self.dtype.startswith("Decimal"):
            # A cast of older versions rounds twice; text is read to the nearest float.
            series = series.cast(nw.String)
        return series.cast(nw.Float64).to_numpy()

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
        return self.data.to_list()


class _ArrowColumn(Column):
    def _floats(self) -> NDArray[np.float64]:
        if self.dtype.startswith("dictionary"):
            raise TypeError("by dictionary")
        if self.dtype.startswith("decimal"):
            # Through text, which is read to the nearest float; a cast multiplies by a power of 0.1.
            numbers_ = self.data.cast("string").cast("float64")
            return numbers_.to_numpy(zero_copy_only=False).astype(np.float64)
        # A checked cast would raise for integers beyond 2**53: an error that depends on a value.
        numbers_ = self.data.cast("float64", safe=False)
        return numbers_.to_numpy(zero_copy_only=False).astype(np.float64)

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
        uniques = data.chunks[-1].dictionary.to_pylist() if data.chunks else []
        return np.concatenate(codes), uniques

    def _objects(self) -> Sequence[Any]:
        return self.data.to_pylist()


def _numpy_kind(dtype: np.dtype, name: str) -> str:
    """Kind of a NumPy type; ``name`` is how messages call the data."""
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
        "m": "temporal",
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
    if dtype.is_temporal():
        return "temporal"
    return "other"


def type_name(dtype: Any) -> str:
    """Name of a type of Polars or narwhals for messages; the categories of an Enum are values."""
    return str(dtype).partition("(categories")[0]


def _pandas_kind(dtype: Any, data: Any, name: str) -> str:
    # The native type decides, not narwhals: for object columns narwhals looks at values, and a
    # schema error must not depend on one.
    if isinstance(dtype, pd.CategoricalDtype):
        categories = dtype.categories
        return _pandas_kind(categories.dtype, categories.to_series(), name)
    if isinstance(dtype, pd.SparseDtype):
        raise TypeError(
            f"Column {name!r} is sparse ({dtype}), but dense data is required. Use "
            "`.sparse.to_dense()` on it first."
        )
    if isinstance(dtype, np.dtype):
        return _numpy_kind(dtype, f"column {name!r}")
    if isinstance(dtype, pd.PeriodDtype | pd.DatetimeTZDtype):
        return "temporal"
    if isinstance(dtype, pd.ArrowDtype) and str(dtype.pyarrow_dtype) == "null":
        return "null"
    return narwhals_kind(nw.from_native(data, series_only=True).dtype)


def _pandas_column(data: Any, name: str) -> Column:
    return _PandasColumn(data, _pandas_kind(data.dtype, data, name), str(data.dtype))


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
    return _ArrowColumn(data, narwhals_kind(nw.from_native(probe, series_only=True).dtype), dtype)


def _numpy_column(data: NDArray, name: str) -> Column:
    return _NumpyColumn(data, _numpy_kind(data.dtype, name), str(data.dtype))


_COLUMN_MAKERS = {
    "numpy": _numpy_column,
    "pandas": _pandas_column,
    "polars": _polars_column,
    "pyarrow": _arrow_column,
}


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
    """

    def __init__(
        self,
        names: Sequence[str | None],
        columns: Sequence[Column],
        n_rows: int,
        library: str,
    ) -> None:
        check_unique(name for name in names if name is not None)
        self._names = tuple(names)
        self._columns = tuple(columns)
        self.n_rows = n_rows
        self.library = library

    def __len__(self) -> int:
        return self.n_rows

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
        return Frame(tuple(names), columns, self.n_rows, self.library)

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
        return Frame(full, self._columns, self.n_rows, self.library)

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
                f"[{self.n_rows}, {len(column)}]"
            )
        return Frame((*self._names, name), (*self._columns, column), self.n_rows, self.library)

    def __repr__(self) -> str:
        return f"Frame({self.library}, columns={self.kinds})"


def _quote(names: Iterable[str], limit: int = 8) -> str:
    """Names for a message, cut after a few."""
    shown = [repr(name) for name in names]
    more = len(shown) - limit
    return ", ".join(shown[:limit]) + (f" and {more} more" if more > 0 else "")


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
        read entry by entry, whatever the others are: an entry that is a list of one value stands
        for that value, and one of several is a value that no domain declares.
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
        return _COLUMN_MAKERS[_library(series)](nw.to_native(series), name)
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
    array = _entries(values) if _is_list(values) else as_array(values)
    if array.ndim == 2 and array.shape[-1] == 1:
        _warn_column_vector()
        array = array.reshape(-1)
    if array.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {array.shape} instead.")
    return _numpy_column(array, name)


def _warn_column_vector() -> None:
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of y "
        "to (n_samples, ), for example using ravel().",
        DataConversionWarning,
        stacklevel=4,
    )


def as_array(data: Any) -> NDArray[Any]:
    """An array-like as an array whose type does not depend on a value.

    Lists become arrays of objects: NumPy makes text of all numbers in a list because of one text
    among them, so that one record would change how the others compare. Masked arrays keep their
    mask.
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
        Arrays keep their type, everything else becomes Python objects: a gap makes floats of
        integers elsewhere, which are no longer exact.

    Raises
    ------
    TypeError, ValueError
        For other containers and shapes; no value is looked at.
    """
    if isinstance(values, np.ndarray) and not isinstance(values, np.ma.MaskedArray | np.matrix):
        if values.ndim == 2 and values.shape[1] == 1:
            return values[:, 0]
        if values.ndim == 1:
            return values
    dtype = getattr(values, "dtype", None)
    if isinstance(values, pd.Series) and isinstance(dtype, np.dtype):
        return values.to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataConversionWarning)
        return object_array(as_column(values, name).objects())


def object_array(values: Sequence[Any]) -> NDArray[Any]:
    """A one-dimensional array of objects, also where they are lists or arrays themselves."""
    array = np.empty(len(values), dtype=object)
    for position, value in enumerate(values):
        array[position] = value
    return array


def _is_list(data: Any) -> bool:
    """Whether this is a plain sequence of Python, whose entries have no common type."""
    return isinstance(data, Sequence) and not (
        isinstance(data, str | bytes | memoryview) or hasattr(data, "__array__")
    )


def _entries(values: Iterable[Any]) -> NDArray[Any]:
    """Entries of a list, each by itself: a list of one value stands for that value."""
    entries = list(values)
    for position, entry in enumerate(entries):
        # Exact types: what others do when they are looked into would depend on a value.
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
    if any(isinstance(row, np.ndarray) and row.ndim != 1 for row in rows):
        return np.asarray(values)
    lengths = {len(row) for row in rows}
    if len(lengths) > 1:
        raise ValueError("Expected 2D array, got a list of rows of different lengths.")
    array = np.empty((len(rows), lengths.pop()), dtype=object)
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
    if array.ndim != 2:
        _numpy_kind(array.dtype, "the array")
        raise _not_two_dimensional(array.ndim)
    if array.shape[1] == 0:
        raise _no_features(array.shape)
    columns = [_numpy_column(array[:, j], "the array") for j in range(array.shape[1])]
    return Frame([None] * len(columns), columns, len(array), "numpy")


def is_dask(data: Any) -> bool:
    """Whether this is a frame of Dask, of which narwhals knows in some versions only."""
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
        # By position, which also finds columns of odd names.
        natives = [native.iloc[:, position] for position in range(len(names))]
    elif library == "polars":
        natives = [native.get_column(name) for name in names]
    else:
        natives = [native.column(position) for position in range(len(names))]
    make = _COLUMN_MAKERS[library]
    columns = [make(series, name) for series, name in zip(natives, names, strict=True)]
    known = [str(name) if text else None for name, text in zip(names, texts, strict=True)]
    return Frame(known, columns, len(frame), library)


def check_unique(names: Iterable[Any]) -> None:
    """Raise DomainError for names that occur more than once."""
    counts = Counter(str(name) for name in names)
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise DomainError(
            f"Column names must be unique, but {_quote(repeated)} occur more than once. Rename or "
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


def build_frame(columns: Mapping[str, Any], like: Any) -> Any:
    """Build a table of the same library as ``like``.

    Parameters
    ----------
    columns : mapping of str to 1-D array or pandas Series
        Missing values are None, NaN or pandas.NA; in Polars and PyArrow they become null.
    like : Frame, container, or name of a library
        Decides the library only: names, order and types are those of ``columns``.

    Returns
    -------
    table : pandas, Polars or PyArrow table, or 2-D array
        For NumPy, int64 where all columns are integers without gaps, bool where all are boolean,
        float64 where all are numbers, objects otherwise (None where missing). Columns that mix
        text and numbers become text in Polars and PyArrow, which have no such type.
    """
    library: Any = like if isinstance(like, str) else as_frame(like).library
    # Rows are matched by position, whatever index a Series has.
    series = {n: pd.Series(values).reset_index(drop=True) for n, values in columns.items()}
    if library == "pandas":
        return pd.DataFrame(series)
    if library == "numpy":
        return _build_array(list(series.values()))
    data: dict[str, Any] = {}
    schema: dict[str, Any] = {}
    for name, column in series.items():
        data[name], schema[name] = _plain(column)
    return nw.to_native(nw.from_dict(data, schema, backend=library))


def select_columns(data: Any, names: Sequence[str]) -> Any:
    """Columns of a table by name, as a table of the same library; arrays come back as they are.

    Parameters
    ----------
    data : table, or anything else
        A pandas frame whose column names are not strings counts as an array.
    names : sequence of str
    """
    frame = nw.from_native(data, pass_through=True, eager_only=True)
    if not isinstance(frame, nw.DataFrame) or as_frame(data).n_unnamed:
        return data
    return nw.to_native(frame.select(*names))


def take_rows(data: Any, positions: NDArray[np.integer]) -> Any:
    """Rows of a table or array by position, as a table of the same library.

    Parameters
    ----------
    data : table or array-like
    positions : ndarray of int
        May repeat rows.
    """
    frame = nw.from_native(data, pass_through=True, eager_only=True)
    if isinstance(frame, nw.DataFrame):
        return nw.to_native(frame[positions.tolist()])
    return as_array(data)[positions]


def column_names(data: Any) -> list[str] | None:
    """Names of the columns of a table; None for arrays and whatever else has none."""
    frame = nw.from_native(data, pass_through=True, eager_only=True)
    if not isinstance(frame, nw.DataFrame) or not all(isinstance(n, str) for n in frame.columns):
        return None
    return list(frame.columns)


def row_taker(data: Any) -> tuple[int, Callable[[NDArray[np.integer]], Any]]:
    """How many rows a container has, and a function that takes some of them by position.

    Parameters
    ----------
    data : table, Series, array, sparse matrix or list

    Returns
    -------
    n_rows : int
    take : callable (positions) -> container
        Of the same library, for lists an array of objects. An index of pandas is numbered anew.

    Raises
    ------
    TypeError
        If rows cannot be taken by position.
    """
    native = nw.from_native(data, pass_through=True, eager_only=True, allow_series=True)
    if isinstance(native, nw.DataFrame | nw.Series):

        def take(positions: NDArray[np.integer]) -> Any:
            taken = nw.to_native(native[positions.tolist()])
            return taken.reset_index(drop=True) if hasattr(taken, "reset_index") else taken

        return len(native), take
    rows: Any = data.tocsr() if issparse(data) else as_array(data)
    if rows.ndim < 1:
        raise TypeError(f"Rows of a {type(data).__name__} cannot be taken by position.")
    return rows.shape[0], lambda positions: rows[positions]


def _build_array(series: Sequence[pd.Series]) -> NDArray:
    kinds = [_pandas_kind(column.dtype, column, "") for column in series]
    gaps = any(column.isna().any() for column in series)
    n_rows = len(series[0]) if series else 0
    if all(kind in ("numeric", "boolean") for kind in kinds):
        integers = all(pd.api.types.is_integer_dtype(column.dtype) for column in series)
        dtype: Any = np.int64 if integers and not gaps else np.float64
        if all(kind == "boolean" for kind in kinds) and not gaps:
            dtype = bool
        array = np.empty((n_rows, len(series)), dtype=dtype)
        for place, column in enumerate(series):
            if isinstance(column.dtype, np.dtype):
                array[:, place] = column.to_numpy()
            elif column.isna().any():
                array[:, place] = column.to_numpy(dtype=np.float64, na_value=np.nan)
            else:
                array[:, place] = column.to_numpy(dtype=dtype)
        return array
    array = np.empty((n_rows, len(series)), dtype=object)
    for place, column in enumerate(series):
        array[:, place] = _objects(column)
    return array


def _objects(column: pd.Series) -> NDArray:
    """Python objects, None where missing."""
    array = column.astype(object).to_numpy(copy=True)
    array[column.isna().to_numpy()] = None
    return array


def _plain(column: pd.Series) -> tuple[Any, Any]:
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
        return _objects(column).tolist(), target
    return column.to_numpy(), target
