"""Layout: what drawn rows look like: container, order and names of columns, types.

The layout of rows follows from the kind of container, the names of its columns and the domain. The
types of the columns are no part of it, because libraries choose them by looking at the values: one
missing value makes pandas turn integers into floats.

The layout of a public table without rows takes its types too:

* A type of this table, where it can hold all values of the domain. Otherwise the next wider one: a
  larger integer, a nullable type where plain integers have a missing cell, float64.
* Categories are those of the domain. Only where the type says that they have an order (an ordered
  ``category``, an Enum), and they are exactly the domain's, that order is kept.

No value is read in either case, and all draws have the same types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..domain import Domain
from .casts import ColumnPlan, cast_column, plain_column, plain_objects
from .frames import Frame, as_column
from .holding import OWN, ColumnType, Held, held_type, own_type, type_of
from .lazy import LazyRows

__all__ = ["Layout", "labels_like"]


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
    >>> from skdp.rows import as_frame
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
        types = _types_of(rows)
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


def _types_of(rows: Frame) -> dict[str, tuple[ColumnType, Sequence[Any] | None]]:
    """Type of each column; and the categories of types that list them in a declared order."""
    columns = {name: rows.column(name) for name in rows.names}
    types: dict[str, tuple[ColumnType, Sequence[Any] | None]] = {}
    for name, column in columns.items():
        # A label that was given separately may be of another library.
        if column.library == rows.library:
            types[name] = (type_of(column.data, rows.library), _declared(column.data))
    return types


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
