"""Tables that are given back: drawn rows, completed and cut tables, and plain cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse

from .columns import Column, object_array
from .frame import Layout, as_array, as_frame

# Drawn values are columns of pandas in the types that the domain declares; other libraries get them
# with narwhals. Types never depend on the values drawn or on the records.


def build_frame(columns: Mapping[str, Any], like: Any) -> Any:
    """Build a table of the same library as ``like``.

    Parameters
    ----------
    columns : mapping of str to 1-D array or pandas Series
        Missing values are None, NaN or pandas.NA; in Polars and PyArrow they become null.
    like : Layout, Frame, container, or name of a library
        A layout decides library and order, and columns that it does not know come last. Anything
        else decides the library only.

    Returns
    -------
    table : pandas, Polars or PyArrow table, or 2-D array
        For NumPy, int64 or bool where all columns have that type, float64 where all are other
        numbers, objects otherwise (None where missing). Columns that mix text and numbers become
        text in Polars and PyArrow, which have no such type.
    """
    if not isinstance(like, Layout):
        return _table(columns, like if isinstance(like, str) else as_frame(like).library)
    known = [name for name in like.names if name in columns]
    order = [*known, *(name for name in columns if name not in like.names)]
    table = _table({name: columns[name] for name in order}, like.library, like.days)
    if like.library == "pandas":
        table.index.name, table.columns.name = like.axes
    return table


def _table(columns: Mapping[str, Any], library: str, days: frozenset[str] = frozenset()) -> Any:
    # Rows are matched by position, whatever index a Series has.
    series = {n: pd.Series(values).reset_index(drop=True) for n, values in columns.items()}
    if library == "pandas":
        return pd.DataFrame(series)
    if library == "numpy":
        return _array(pd.DataFrame(series))
    typed = {name: _typed(column, name in days) for name, column in series.items()}
    data = {name: values for name, (_, values) in typed.items()}
    schema = {name: dtype for name, (dtype, _) in typed.items()}
    backend: Any = library
    return nw.to_native(nw.from_dict(data, schema, backend=backend))


def _typed(column: pd.Series, day: bool) -> tuple[Any, Any]:
    """Type and values in Polars or PyArrow: numbers, booleans, moments in microseconds, or text."""
    tests, dtype, gaps = pd.api.types, column.dtype, column.isna().any()
    if tests.is_datetime64_any_dtype(dtype):
        zoned = getattr(dtype, "tz", None) is not None
        plain = column.dt.tz_convert("UTC") if zoned else column
        kind = nw.Date() if day else nw.Datetime("us", "UTC" if zoned else None)
        return kind, _plain_objects(plain.dt.date if day else plain).tolist()
    known = {nw.Boolean: tests.is_bool_dtype, nw.Int64: tests.is_integer_dtype}
    known |= {nw.Float64: tests.is_numeric_dtype}
    found = next((each for each, test in known.items() if test(dtype)), None)
    if found is None:
        return nw.String(), [None if each is None else str(each) for each in _plain_objects(column)]
    return found(), _plain_objects(column).tolist() if gaps else column.to_numpy()


def _array(frame: pd.DataFrame) -> NDArray[Any]:
    """Columns as a 2-D array of one type, which does not depend on values."""
    tests, dtypes = pd.api.types, {*frame.dtypes}
    if all(map(tests.is_datetime64_dtype, dtypes)):
        return frame.to_numpy("M8[us]")
    if all(map(tests.is_numeric_dtype, dtypes)):
        alike = dtypes in ({np.dtype(bool)}, {np.dtype(np.int64)})
        return frame.astype(dtypes.pop() if alike else np.float64).to_numpy()
    return np.column_stack([_plain_objects(column) for _, column in frame.items()])


def _plain_objects(column: pd.Series) -> Any:
    """Python objects, None where missing."""
    array = column.astype(object).to_numpy(copy=True)
    array[column.isna().to_numpy()] = None
    return array


# --- cutting


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
    """Rows of a container by position, as a container of the same library.

    Parameters
    ----------
    data : table, Series, array, sparse matrix or list
        For lists an array of objects is given.
    positions : ndarray of int
        May repeat rows.
    """
    return _taken(_rows_of(data), positions)


def row_taker(data: Any) -> tuple[int, Callable[[NDArray[np.integer]], Any]]:
    """How many rows a container has, and a function that takes some of them by position.

    Parameters
    ----------
    data : table, Series, array, sparse matrix or list

    Returns
    -------
    n_rows : int
    take : callable (positions) -> container
        Of the same library, for lists an array of objects. A pandas index is reset.

    Raises
    ------
    TypeError
        If rows cannot be taken by position.
    """
    rows = _rows_of(data)
    if not rows.shape:
        raise TypeError(f"Rows of a {type(data).__name__} cannot be taken by position.")

    def take(positions: NDArray[np.integer]) -> Any:
        taken = _taken(rows, positions)
        return taken.reset_index(drop=True) if hasattr(taken, "reset_index") else taken

    return rows.shape[0], take


def _taken(rows: Any, positions: NDArray[np.integer]) -> Any:
    known = isinstance(rows, nw.DataFrame | nw.Series)
    return nw.to_native(rows[positions.tolist()]) if known else rows[positions]


def _rows_of(data: Any) -> Any:
    """The same rows, such that taking some of them never fails for a value of another.

    One complex number makes pandas turn all others into complex ones, with which a model of others
    may fail for every row. Of Arrow's dictionaries that differ between chunks none may hold a gap.
    """
    if isinstance(data, pd.DataFrame):
        data = data.copy(deep=False)
        for place, dtype in enumerate(data.dtypes):
            own = data.iloc[:, place]
            if getattr(dtype, "kind", "") == "c":
                real = [each.real if each.imag == 0 else each for each in own.tolist()]
                data.isetitem(place, object_array(real))
            elif str(dtype).startswith("dictionary"):
                data.isetitem(place, own.astype(pd.ArrowDtype(dtype.pyarrow_dtype.value_type)))
    if nw.dependencies.is_pyarrow_table(data):
        for place, (name, own) in enumerate(zip(data.column_names, data.columns, strict=True)):
            if str(own.type).startswith("dictionary"):
                data = data.set_column(place, name, own.cast(own.type.value_type))
    native = nw.from_native(data, pass_through=True, eager_only=True, allow_series=True)
    if isinstance(native, nw.DataFrame | nw.Series):
        return native
    return data.tocsr() if issparse(data) else as_array(data)


# --- plain columns: every cell of a table as a float64 number, or as a text, whatever the table is


def as_numbers(X: Any) -> Any:
    """All cells as float64, each read by itself: NaN where there is no number.

    Foreign steps in front of a private one are known to be silent on such columns only: on
    columns of objects, nullable columns and those of Arrow, a single value can make them raise. So
    start with ``FunctionTransformer(as_numbers)``; `skdp.inspection.assert_private` asks for it.

    Parameters
    ----------
    X : array-like or frame of shape (n_rows, n_columns)
        Text is read as Python's ``float`` reads it.

    Returns
    -------
    ndarray of float64, or pandas DataFrame where columns have names

    Raises
    ------
    TypeError, ValueError
        For what is no dense table. No value is looked at.

    Examples
    --------
    >>> import pandas as pd
    >>> as_numbers(pd.DataFrame({"age": [31, "40", "n/a"]}))["age"].tolist()
    [31.0, 40.0, nan]
    """
    return _plain(X, Column.numbers)


def as_texts(X: Any) -> Any:
    """All cells as Python text, each read by itself: empty where there is no text.

    So no value decides the type of columns that are joined in front of a private step. See
    `as_numbers`.

    Parameters
    ----------
    X : array-like or frame of shape (n_rows, n_columns)
        Numbers are not text.

    Returns
    -------
    ndarray of objects, or pandas DataFrame where columns have names

    Raises
    ------
    TypeError, ValueError
        For what is no dense table. No value is looked at.

    Examples
    --------
    >>> import pandas as pd
    >>> as_texts(pd.DataFrame({"sex": ["f", None, ["m"], 3]}))["sex"].tolist()
    ['f', '', '', '']
    """
    return _plain(X, _texts)


def _plain(X: Any, read: Callable[[Column], NDArray[Any]]) -> Any:
    # Privacy. These run before anything is charged, so no exception, type or shape may depend on a
    # cell: the types of the result are the same whatever came in, and every cell depends on itself.
    rows = as_frame(X)
    columns = {name: read(rows.column(name)) for name in rows.names}
    if rows.n_unnamed:
        return np.column_stack(list(columns.values()))
    # With its type, because pandas would infer one from the values.
    return pd.DataFrame(
        {key: pd.Series(cells, dtype=cells.dtype) for key, cells in columns.items()}
    )


def _texts(column: Column) -> NDArray[Any]:
    # The method of str itself: what a subclass does when it is read would depend on a value.
    found = column.objects()
    return object_array([str.__str__(v) if issubclass(type(v), str) else "" for v in found])
