"""Building, slicing and completing tables, in the library of the user's table; plain cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse

from .._foreign import reraise_interrupts
from ..domain import Domain
from ..domain.values import fill_series
from .columns import Column, object_array, pandas_kind
from .expressions import ColumnPlan, cast_column, plain_column, plain_objects
from .frame import (
    OWN,
    ColumnType,
    Frame,
    Held,
    as_array,
    as_column,
    as_frame,
    held_type,
    own_type,
    type_of,
)
from .lazy import LazyRows

# --- layout: what drawn rows look like: container, order and names of columns, types
#
# The layout of rows follows from the kind of container, the names of its columns and the domain.
# The types of the columns are no part of it, because libraries choose them by looking at the
# values: one missing value makes pandas turn integers into floats.
#
# The layout of a public table without rows takes its types too:
#
# * A type of this table, where it can hold all values of the domain. Otherwise the next wider one:
#   a larger integer, a nullable type where plain integers have a missing cell, float64.
# * Categories are those of the domain. Only where the type says that they have an order (an ordered
#   ``category``, an Enum), and they are exactly the domain's, that order is kept.
#
# No value is read in either case, and all draws have the same types.


class Layout:
    """Container, order and types of the columns of a table.

    Parameters
    ----------
    library : {"numpy", "pandas", "polars", "pyarrow"}
        Of the container.
    plans : mapping of str to ColumnPlan
        Of each column, in the order of the output.
    given : sequence of str
        Names of the columns that the rows had.
    index, columns : object, default=None
        For pandas: names of the index and of the column index.

    Examples
    --------
    >>> from skdp import Domain, Numeric
    >>> from skdp.tables import as_frame
    >>> domain = Domain({"a": Numeric(0, 9, integer=True), "b": Numeric(0, 1)})
    >>> given = pd.DataFrame({"b": np.zeros(3, "f4"), "a": np.zeros(3, "i1")})
    >>> rows = domain.decode([[1, 1]], 0)
    >>> Layout.of(given, as_frame(given), domain).build(rows).dtypes.to_dict()
    {'b': dtype('float64'), 'a': dtype('int64')}
    >>> Layout.like(given, as_frame(given), domain).build(rows).dtypes.to_dict()
    {'b': dtype('float32'), 'a': dtype('int8')}
    """

    def __init__(
        self,
        library: str,
        plans: Mapping[str, ColumnPlan],
        *,
        given: Sequence[str] = (),
        index: Any = None,
        columns: Any = None,
    ) -> None:
        self.library = library
        self.given = tuple(name for name in plans if name in set(given))
        self._plans = dict(plans)
        self._index = index
        self._columns = columns

    @classmethod
    def of(cls, X: Any, rows: Frame | LazyRows, domain: Domain) -> Layout:
        """Layout of rows over a domain: the types are those of the domain.

        Parameters
        ----------
        X : container
            As given to ``fit``.
        rows : Frame or LazyRows
            What was read of it, with the names of the domain. Columns that the domain does not have
            are left out. Columns of the domain that the rows lack stand where the domain declares
            them.
        domain : Domain
        """
        return cls._of(X, rows, domain, {})

    @classmethod
    def like(cls, table: Any, rows: Frame, domain: Domain) -> Layout:
        """Layout of a table over a domain, with its types where they can hold the domain.

        Parameters
        ----------
        table : container
        rows : Frame
            What was read of it, with the names of the domain.
        domain : Domain
        """
        # Type of each column; and the categories of types that list them in a declared order.
        columns = {name: rows.column(name) for name in rows.names}
        types: dict[str, tuple[ColumnType, Sequence[Any] | None]] = {}
        for name, column in columns.items():
            # A label that was given separately may be of another library.
            if column.library == rows.library:
                types[name] = (type_of(column.data, rows.library), _declared(column.data))
        if rows.library == "numpy":
            types = _types_of_array(table, rows, types)
        return cls._of(table, rows, domain, types)

    @classmethod
    def _of(
        cls,
        X: Any,
        rows: Frame | LazyRows,
        domain: Domain,
        types: Mapping[str, tuple[ColumnType, Sequence[Any] | None]],
    ) -> Layout:
        library = rows.library
        plans = {}
        for name in _ordered(rows.names, domain.columns):
            held = Held.by(domain.declared(name))
            wanted, declared = types.get(name, (OWN, None))
            found = held_type(wanted, held, library)
            if found.kind == "own":
                found = own_type(held, library)
            plans[name] = _plan(found, held, declared)
        index, columns = None, None
        if isinstance(X, pd.DataFrame):
            index = cls.index_name(X)
            columns = X.columns.name if X.columns.nlevels == 1 else None
        return cls(library, plans, given=rows.names, index=index, columns=columns)

    @staticmethod
    def index_name(data: pd.DataFrame | pd.Series) -> Any:
        """Name of the index; None for an index of several levels, which is not kept."""
        return data.index.name if data.index.nlevels == 1 else None

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in the order of the output."""
        return tuple(self._plans)

    def build(self, columns: Mapping[str, Any]) -> Any:
        """A table of drawn columns.

        Parameters
        ----------
        columns : mapping of str to Series
            As the domain decodes them. Columns that the layout does not know have their own types
            and come last.
        """
        known = [name for name in self._plans if name in columns]
        order = [*known, *(name for name in columns if name not in self._plans)]
        made = {name: self.column(name, columns[name]) for name in order}
        if self.library == "numpy":
            return self._build_array(made)
        if self.library == "pandas":
            frame = pd.DataFrame(made)
            frame.index.name, frame.columns.name = self._index, self._columns
            return frame
        if self.library == "polars":
            import polars as pl

            return pl.DataFrame([series.alias(name) for name, series in made.items()])
        import pyarrow as pa

        return pa.table(made)

    def column(self, name: str, values: Any) -> Any:
        """One drawn column: an array for NumPy, otherwise a Series or an array of Arrow."""
        series = pd.Series(values).reset_index(drop=True)
        plan = self._plans.get(name)
        if plan is not None and plan.type != OWN:
            return cast_column(series, plan, self.library)
        if self.library in ("pandas", "numpy"):
            return series
        data, dtype = plain_column(series)
        backend: Any = self.library
        return nw.to_native(nw.new_series("", data, dtype, backend=backend))

    def __repr__(self) -> str:
        types = {name: plan.type for name, plan in self._plans.items()}
        return f"Layout({self.library}, {types}, index={self._index!r}, columns={self._columns!r})"

    def _build_array(self, made: Mapping[str, Any]) -> NDArray[Any]:
        dtype = _common_dtype([self._dtype_of(name, values) for name, values in made.items()])
        n_rows = len(next(iter(made.values())))
        array = np.empty((n_rows, len(made)), dtype=dtype)
        for place, values in enumerate(made.values()):
            array[:, place] = _entries(values, dtype)
        return array

    def _dtype_of(self, name: str, values: Any) -> np.dtype:
        """NumPy's type of a column; that of the domain is the type that values are decoded to."""
        if isinstance(values, np.ndarray):
            return values.dtype
        if not pd.api.types.is_numeric_dtype(values.dtype):
            return np.dtype(object)
        # Nullable integers and truth values have gaps, which are NaN.
        return values.dtype if isinstance(values.dtype, np.dtype) else np.dtype(np.float64)


def labels_like(drawn: pd.Series, labels: NDArray[Any], y: Any, domain: Domain, name: str) -> Any:
    """Drawn labels as a Series of the library of ``y`` if that is one, with the domain's type.

    Parameters
    ----------
    drawn : Series
        As the domain decodes them.
    labels : ndarray
        The same as an array, which comes back where ``y`` is an array or a list.
    y : array, Series or list
        As given to ``fit``. Neither its values nor its type are read.
    domain : Domain
    name : str
        Column of the labels.
    """
    if not isinstance(nw.from_native(y, pass_through=True, allow_series=True), nw.Series):
        return labels
    column = as_column(y, name)
    rows = Frame([name], [column], len(column), column.library)
    made = Layout.of(y, rows, domain.select([name])).column(name, drawn)
    if column.library == "pandas":
        made.name, made.index.name = y.name, Layout.index_name(y)
    return made.alias(y.name) if column.library == "polars" else made


def _types_of_array(X: Any, rows: Any, types: dict[str, Any]) -> dict[str, Any]:
    """Lists have no type; the columns of an array, and its labels, have one."""
    if not hasattr(X, "__array__"):
        return {}
    return dict.fromkeys(rows.names, types[rows.names[0]])


def _declared(data: Any) -> Sequence[Any] | None:
    """Categories of an ordered pandas category, or of an Enum of Polars."""
    dtype: Any = getattr(data, "dtype", None)
    if isinstance(dtype, pd.CategoricalDtype):
        return list(dtype.categories) if dtype.ordered else None
    return dtype.categories.to_list() if type(dtype).__name__ == "Enum" else None


def _plan(found: ColumnType, held: Held, declared: Sequence[Any] | None) -> ColumnPlan:
    """The categories of a category are those of the domain, in a declared order."""
    if found.kind != "category":
        return ColumnPlan(found, held)
    listed = {category: category for category in held.categories}
    if declared is not None and len(declared) == len(listed) and set(declared) == set(listed):
        return ColumnPlan(found, held, tuple(listed[category] for category in declared))
    # The declared order says nothing about other categories.
    ordered = found.ordered if declared is None else held.ordered
    return ColumnPlan(found.but(ordered=ordered), held, held.categories)


def _ordered(given: Sequence[str], declared: Sequence[str]) -> list[str]:
    """Declared columns in the order of the input; those that it lacks at their declared place."""
    names = [name for name in given if name in set(declared)]
    for place, name in enumerate(declared):
        if name not in names:
            names.insert(place, name)
    return names


def _common_dtype(dtypes: Sequence[np.dtype]) -> np.dtype:
    """One type for the columns of an array."""
    if len(set(dtypes)) == 1:
        return dtypes[0]
    kinds = {"number" if dtype.kind in "biuf" else dtype.kind for dtype in dtypes}
    if len(kinds) == 1 and kinds <= {"number", "U"}:
        return np.result_type(*dtypes)
    # Dates differ only where those of one column are too far away for nanoseconds.
    return np.dtype("M8[us]" if kinds == {"M"} else object)


def _entries(values: Any, dtype: np.dtype) -> NDArray[Any]:
    """A column as an array of a type that can hold it."""
    if isinstance(values, np.ndarray):
        # NumPy makes integers, not dates, of nanoseconds.
        dates = dtype.kind == "O" and values.dtype.kind == "M"
        return values.astype("M8[us]") if dates else values
    if dtype.kind == "O":
        return plain_objects(values)
    if isinstance(values.dtype, np.dtype):
        return values.to_numpy()
    if dtype.kind == "f":
        return values.to_numpy(dtype=dtype, na_value=np.nan)
    return values.to_numpy(dtype=dtype)


def build_frame(columns: Mapping[str, Any], like: Any) -> Any:
    """Build a table of the same library as ``like``.

    Parameters
    ----------
    columns : mapping of str to 1-D array or pandas Series
        Missing values are None, NaN or pandas.NA; in Polars and PyArrow they become null.
    like : Layout, Frame, container, or name of a library
        A layout decides library, order and types. Anything else decides the library only: names,
        order and types are those of ``columns``.

    Returns
    -------
    table : pandas, Polars or PyArrow table, or 2-D array
        For NumPy, int64 where all columns are integers without gaps, bool where all are boolean,
        float64 where all are numbers, objects otherwise (None where missing). Columns that mix
        text and numbers become text in Polars and PyArrow, which have no such type.
    """
    if isinstance(like, Layout):
        return like.build(columns)
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
        data[name], schema[name] = plain_column(column)
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
        Of the same library, for lists an array of objects. A pandas index is reset.

    Raises
    ------
    TypeError
        If rows cannot be taken by position.
    """
    if isinstance(data, pd.DataFrame):
        data = _with_real_columns(data)
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


def _with_real_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame, with columns of objects for complex ones, in which real numbers are floats again.

    One complex number makes pandas turn all others into complex ones, with which a model of others
    may fail for every row.
    """
    places = [
        place
        for place, dtype in enumerate(frame.dtypes)
        if isinstance(dtype, np.dtype) and dtype.kind == "c"
    ]
    if not places:
        return frame
    columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
    for place in places:
        values = frame.iloc[:, place].tolist()
        own = [each.real if each.imag == 0 else each for each in values]
        columns[place] = pd.Series(own, index=frame.index, name=frame.columns[place], dtype=object)
    found = pd.concat(columns, axis=1)
    found.columns = frame.columns
    return found


def _build_array(series: Sequence[pd.Series]) -> NDArray:
    kinds = [pandas_kind(column.dtype, column, "") for column in series]
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
        array[:, place] = plain_objects(column)
    return array


# --- tables completed by drawn values: what was given stays what it is


def complete_table(
    given: Any, columns: Mapping[str, pd.Series], order: Sequence[str], like: Any = None
) -> Any:
    """A table of the library of ``given`` with more columns.

    Parameters
    ----------
    given : table
        Its columns are taken as they are, if they have names.
    columns : mapping of str to Series
        New columns, one value for each row of ``given``.
    order : sequence of str
        All columns of the result.
    like : Layout, optional
        What the new columns look like, if it is of the same library.
    """
    rows = as_frame(given)
    if rows.library == "numpy":
        own = {name: pd.Series(rows.column(name).objects()) for name in order if name in rows.names}
        kept = {name: values.infer_objects() for name, values in own.items()}
        return build_frame({name: columns.get(name, kept.get(name)) for name in order}, "numpy")
    same = isinstance(like, Layout) and like.library == rows.library
    fresh = build_frame(columns, like if same else rows.library)
    if rows.library == "pandas":
        parts = [given, fresh.set_axis(given.index)]
        return pd.concat(parts, axis=1)[list(order)]
    table = nw.from_native(given, eager_only=True)
    drawn = nw.from_native(fresh, eager_only=True)
    table = table.with_columns(*(drawn[name] for name in columns))
    return nw.to_native(table.select(*order))


def fill_table(
    given: Any,
    drawn: Mapping[str, pd.Series],
    gaps: Mapping[str, NDArray[np.bool_]],
    domain: Domain,
) -> Any:
    """A table with drawn values in its gaps, and otherwise as it is.

    Parameters
    ----------
    given : table or 2-D array
    drawn : mapping of str to Series
        A value for each row of the columns with gaps.
    gaps : mapping of str to ndarray of bool
        Which rows lack a value.
    domain : Domain
    """
    rows = as_frame(given)
    if rows.library == "numpy" and not rows.named:
        array = np.array(as_array(given))
        places = {name: place for place, name in enumerate(domain.names_for(rows.n_unnamed) or ())}
        for name, gap in gaps.items():
            array[gap, places[name]] = plain_objects(drawn[name][gap])
        return array
    if not gaps:
        return given
    fresh = Layout.like(given, rows, domain).build(drawn)
    if rows.library == "pandas":
        table = given.copy()
        for name, gap in gaps.items():
            table[name] = fill_series(given[name], fresh[name], gap)
        return table
    table, new = (nw.from_native(each, eager_only=True) for each in (given, fresh))
    columns = (_filled(table[name], new[name], gap) for name, gap in gaps.items())
    return nw.to_native(table.with_columns(*columns))


def _filled(own: Any, drawn: Any, gap: NDArray[np.bool_]) -> Any:
    """A column of Polars or PyArrow with other values where it has gaps."""
    mask = nw.new_series("", ~gap, nw.Boolean, backend=own.implementation)
    try:
        return own.zip_with(mask, drawn).alias(own.name)
    except BaseException as error:
        reraise_interrupts(error)
        # Of two types: one value by one.
        pairs = zip(gap.tolist(), own.to_list(), drawn.to_list(), strict=True)
        values = [new if missing else old for missing, old, new in pairs]
        return nw.new_series(own.name, values, backend=own.implementation)


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

    Encoders of scikit-learn with declared categories of text are known to be silent on such columns
    only: a single list in a cell makes them raise. See `as_numbers`.

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
    if column.kind == "string":
        codes, uniques = column.factorize()
        return object_array([*map(_text, uniques), ""])[codes]
    if column.kind == "object":
        return object_array([_text(value) for value in column.objects()])
    return object_array([""] * len(column))


def _text(value: Any) -> str:
    # The method of str itself: what a subclass does when it is read would depend on a value.
    return str.__str__(value) if issubclass(type(value), str) else ""
