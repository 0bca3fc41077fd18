"""`Frame` and `LazyRows`: the columns of a table of any library, in memory or lazy; `PublicTable`.

Only names and types are looked at until a column is read. Libraries are recognised by narwhals,
which imports none of them.
"""

from __future__ import annotations

import copy
import importlib.util
import itertools
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.exceptions import DataConversionWarning

from .._validation import BATCH_ROWS, BoolArray, FloatArray, attempt, some
from ..domain import Date, Domain
from ..exceptions import DomainError, EngineError
from .columns import Column, kind_of, make_column, object_array, refuse_complex, type_name

# Where a frame of pandas that was read from a file says, in its ``attrs``, which records fit no
# domain: a byte for each. And the name of its index, which says which of them a row is.
UNFIT = "skdp.unfit"

#: What a guarantee assumes of a table whose types decide what its values mean.
TYPES_DECLARED = "the types of the columns were declared, not inferred from the records"


# Kinds of columns that a guessing reader may have made of text: with keys that the text has not.
_GUESSED = frozenset(["boolean", "temporal", "zoned", "time"])


def assumed(kinds: Iterable[str]) -> str:
    """What a guarantee assumes of columns in memory of these kinds."""
    # Privacy. Codes follow from keys, which numbers and text keep whatever reader guessed their
    # type. Others do not: by all records DuckDB's sniffer makes booleans of "yes", and it and
    # parsers of dates make dates of "01/03/2024", which nobody can see in a frame. So neighbours
    # are tables of one schema.
    return TYPES_DECLARED if _GUESSED.intersection(kinds) else ""


class Rows:
    """Columns of a table by name: what is known of it before a charge.

    Parameters
    ----------
    columns : mapping of str to Column
        Those of an array have a position only, and come first; they are called x0, x1, ...
    n_unnamed : int, default=0
        How many these are.
    """

    # Column that identifies the person a row belongs to, where contributions are bounded.
    privacy_id: str | None = None
    # Whether dates are declared, which a reader may have found in other columns than of dates.
    dated = False
    # Records that fit no domain, because they could not be read from a file; None: there are none.
    unfit: BoolArray | None = None

    def __init__(self, columns: Mapping[str, Column], n_unnamed: int = 0) -> None:
        self.columns = dict(columns)
        self.n_unnamed = n_unnamed

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.columns)

    @property
    def named(self) -> tuple[str, ...]:
        """The names that were given, without the columns that have a position only."""
        return self.names[self.n_unnamed :]

    @property
    def kinds(self) -> dict[str, str]:
        """Kind of each column: the schema."""
        return {name: column.kind for name, column in self.columns.items()}

    @property
    def dtypes(self) -> dict[str, str]:
        """The library's name of each column's type, for messages."""
        return {name: column.dtype for name, column in self.columns.items()}

    def column(self, name: str) -> Column:
        """One column by name; KeyError if there is none."""
        return self.columns[name]

    def _with(self, columns: Mapping[str, Column], n_unnamed: int = 0) -> Self:
        rows = copy.copy(self)
        rows.columns, rows.n_unnamed = dict(columns), n_unnamed
        return rows

    def select(self, names: Sequence[str]) -> Self:
        """The columns of these names, in this order."""
        return self._with({name: self.columns[name] for name in names})

    def with_again(self, name: str, again: str) -> Self:
        """The rows with a column once more, under another name."""
        return self._with({**self.columns, again: self.columns[name]}, self.n_unnamed)


class Frame(Rows):
    """Columns of equal length, read from any container in memory.

    Parameters
    ----------
    columns : mapping of str to Column
    n_rows : int
    library : {"numpy", "pandas", "polars", "pyarrow"}
        What :func:`build_frame` builds for ``like=`` this frame.
    n_unnamed : int, default=0
        As for `Rows`.
    unfit : ndarray of bool, shape (n_rows,), default=None
        Records that fit no domain, because they could not be read from a file. None: there are
        none.
    """

    def __init__(
        self,
        columns: Mapping[str, Column],
        n_rows: int,
        library: str,
        n_unnamed: int = 0,
        unfit: BoolArray | None = None,
    ) -> None:
        super().__init__(columns, n_unnamed)
        if not columns:
            how = "while a minimum of 1 is required."
            raise ValueError(f"Found array with 0 feature(s) (shape=({n_rows}, 0)) {how}")
        self.n_rows = n_rows
        self.library = library
        self.unfit = unfit

    def __len__(self) -> int:
        return self.n_rows

    @property
    def assumes(self) -> str:
        """What the guarantee assumes of where the rows come from."""
        # Privacy. Persons survive no inference: "01" and "1" are merged as integers, or 18-digit
        # integers as floats where one record has none. Dates may have been text in this table and
        # not in its neighbour. Files of the command line, which have marks, are read as text.
        if self.unfit is not None:
            return ""
        guessed = self.dated or self.privacy_id is not None
        return TYPES_DECLARED if guessed else assumed(self.kinds.values())

    def each_batch(self, use: Callable[[Frame], None]) -> None:
        """Call ``use`` on all rows."""
        use(self)

    def numbers(self) -> FloatArray:
        """All columns as numbers, side by side; NaN where there is none."""
        return np.column_stack([column.numbers() for column in self.columns.values()])

    def with_names(self, names: Sequence[str]) -> Frame:
        """Name the unnamed columns, in order of position."""
        every = [*names, *self.named]
        check_unique(every)
        return self._with(dict(zip(every, self.columns.values(), strict=True)))

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
        if name in self.columns:
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
        return self._with({**self.columns, name: column}, self.n_unnamed)


# --- containers in memory


def _narwhals(data: Any) -> Any:
    """A frame or series of narwhals; what it does not know, and Dask, is returned as it is."""
    if _is_dask(data):
        return data
    try:
        return nw.from_native(data, pass_through=True, allow_series=True)
    except nw.exceptions.DuplicateError as error:
        check_unique(getattr(data, "column_names", getattr(data, "columns", ())))
        raise DomainError(str(error)) from error


def _is_dask(data: Any) -> bool:
    """Whether this is of Dask, which only some versions of narwhals know."""
    return type(data).__module__.startswith("dask.")


def _in_memory(data: Any) -> Any:
    """As `_narwhals`; TypeError for what is lazy, whose plan values could make fail."""
    frame = _narwhals(data)
    if isinstance(frame, nw.LazyFrame) or _is_dask(data):
        raise TypeError(
            f"{type(data).__name__} is lazy, and only tables in memory are supported here, where "
            "each row is read by itself. Collect it first (`.collect()`, `.compute()`, `.df()`, "
            "`.toPandas()`, as the library has it)."
        )
    return frame


def _library(frame: Any) -> str:
    name: str = frame.implementation.name.lower()
    if name in ("pandas", "polars", "pyarrow"):
        return name
    raise TypeError(
        f"Frames of {name} are not supported. Convert to pandas, Polars or PyArrow first."
    )


def as_frame(data: Any) -> Frame:
    """Read a container of rows.

    Parameters
    ----------
    data : pandas, Polars or PyArrow table, 2-D array, or list of rows
        A pandas frame whose column names are all not strings counts as an array, as in
        scikit-learn. Rows that were read before are returned as they are.

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
    if isinstance(data, Rows):
        return data  # type: ignore[return-value]
    if issparse(data):
        raise TypeError(
            "Sparse data was passed, but dense data is required: every cell, zero or not, takes "
            "part in the release. Use `.toarray()` to convert it."
        )
    frame = _in_memory(data)
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
        refuse_complex(array.dtype, "the array")
        raise _not_two_dimensional(array.ndim)
    columns = {
        f"x{place}": make_column(array[:, place], "numpy", "the array")
        for place in range(array.shape[1])
    }
    return Frame(columns, len(array), "numpy", n_unnamed=len(columns))


def _from_dataframe(frame: nw.DataFrame) -> Frame:
    library = _library(frame)
    native = nw.to_native(frame)
    names = list(frame.columns)
    texts = [isinstance(name, str) for name in names]
    if any(texts) and not all(texts):
        types = sorted({type(name).__name__ for name in names})
        raise TypeError(
            "Column names are only supported if all of them are strings, but the frame has "
            f"names of types {types}. Convert them with `df.columns = df.columns.astype(str)`."
        )
    columns = {
        # By position, which works for any column name.
        str(name) if text else f"x{place}": make_column(
            nw.to_native(frame[:, place]), library, name
        )
        for place, (name, text) in enumerate(zip(names, texts, strict=True))
    }
    marks = getattr(native, "attrs", {}).get(UNFIT)
    unfit = None if marks is None else _unfit(native, marks)
    return Frame(columns, len(frame), library, 0 if all(texts) else len(columns), unfit)


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
    series = _in_memory(values)
    if isinstance(series, nw.Series):
        return make_column(nw.to_native(series), _library(series), name)
    if values is None or isinstance(values, str | bytes | Mapping):
        raise TypeError(f"{name!r} must be a Series, a 1-D array or a list, got {type(values)}.")
    if not isinstance(series, nw.DataFrame):
        array = list_entries(values) if _is_list(values) else as_array(values)
        if array.ndim == 1:
            return make_column(array, "numpy", name)
        values = array
    shape = values.shape
    if len(shape) != 2 or shape[1] != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {shape} instead.")
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of y "
        "to (n_samples, ), for example using ravel().",
        DataConversionWarning,
        stacklevel=3,
    )
    return next(iter(as_frame(values).columns.values()))


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
    if isinstance(values, pd.Series) and isinstance(dtype, np.dtype) and dtype.kind != "c":
        return values.to_numpy()
    plain = isinstance(values, np.ndarray) and not isinstance(values, np.ma.MaskedArray | np.matrix)
    if plain and (values.ndim == 1 or values.shape[1:] == (1,)):
        refuse_complex(values.dtype, name)
        return values.reshape(-1)
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
        if (type(entry) is list or type(entry) is tuple) and len(entry) == 1:
            entries[position] = entry[0]
        elif type(entry) is np.ndarray and entry.shape in ((), (1,)):
            entries[position] = entry.reshape(-1)[0]
    return object_array(entries)


def _list_array(values: Sequence[Any]) -> NDArray[Any]:
    """A list of values, or of rows of equal length, as an array of objects.

    What is no row among rows, such as None, is a row without values.
    """
    found = {place: _row(value) for place, value in enumerate(values)}
    rows = {place: row for place, row in found.items() if row is not None}
    if not rows:
        return object_array(values)
    shapes = {row.shape if isinstance(row, np.ndarray) else (len(row),) for row in rows.values()}
    if len(shapes) == 1 and all(len(shape) != 1 for shape in shapes):
        return np.asarray(values)
    # An error of NumPy would quote the number of rows.
    if len({shape[:1] for shape in shapes}) > 1:
        raise ValueError("Expected 2D array, got a list of rows of different lengths.")
    array = np.full((len(values), shapes.pop()[0]), None, dtype=object)
    for position, row in rows.items():
        array[position] = object_array(row)
    return array


def _row(value: Any) -> Any:
    """A row of values in a list of rows; None for what is none. Never raises."""
    # By its type: what a value says of its class, or how long it is, may raise.
    kind = type(value)
    if kind is list or kind is tuple or issubclass(kind, np.ndarray):
        return value
    return attempt(partial(tuple, value), None) if issubclass(kind, list | tuple) else None


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


# --- tables that are public


class PublicTable:
    """Declares that the rows of a table are public: whoever sees them learns nothing private.

    Nothing that an estimator learns from them is charged to a ledger or protected. Rows that were
    published, such as the public sample of an earlier survey, are public. Private records are not,
    even if they are those of other people.

    Parameters
    ----------
    frame : table or 2-D array
        Rows in memory, of any library that ``fit`` takes. They are not copied, and must not be
        changed afterwards.

    Attributes
    ----------
    frame : table or ndarray

    Raises
    ------
    TypeError
        If ``frame`` is no table in memory.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp import PublicTable
    >>> PublicTable(pd.DataFrame({"age": [31, 45], "sex": ["F", "M"]}))
    PublicTable(2 rows, 2 columns)
    """

    def __init__(self, frame: Any) -> None:
        rows = as_frame(frame)
        self.frame = frame
        self._shape = rows.n_rows, len(rows.names)

    def __repr__(self) -> str:
        n_rows, n_columns = self._shape
        return f"PublicTable({n_rows:,} rows, {n_columns:,} columns)"

    def __deepcopy__(self, memo: dict[int, Any]) -> PublicTable:
        # scikit-learn copies parameters for each clone; these rows never change.
        return self


# --- lazy frames, which are read batch by batch


class LazyRows(Rows):
    """The columns of a lazy frame: only its schema is known until its rows are read in batches.

    Parameters
    ----------
    columns : mapping of str to Column
        Their data is the name that they have in the frame.
    frame : narwhals LazyFrame, or Dask DataFrame
    engine : {"polars", "duckdb", "dask", "pyspark"}
    """

    # Privacy. An engine does not tell where it has its types from: a scan of a CSV file without
    # declared types takes them from the records. Codes do not depend on it, but an engine may have
    # lost what a record holds before it gives it, so the loss says what is assumed.
    assumes = TYPES_DECLARED

    def __init__(self, columns: Mapping[str, Column], frame: Any, engine: str) -> None:
        super().__init__(columns)
        self._frame = frame
        self.engine, self._batches = _ENGINES[engine]
        # What `build_frame` builds for ``like=`` these rows.
        self.library = "polars" if engine == "polars" else "pandas"

    def with_column(self, name: str, values: Any) -> LazyRows:
        """Refuse a separate column: its rows cannot be matched to those of an engine."""
        raise TypeError(
            f"The rows are a lazy frame of {self.engine}, whose rows have no order that "
            f"{name!r}, given separately, could be matched to. Add it to the frame as a column, "
            "declare it in the domain and name it in target=."
        )

    def each_batch(self, use: Callable[[Frame], None]) -> None:
        """Call ``use`` on all rows, some at a time, in no order.

        Raises
        ------
        EngineError
            If the engine fails; the text does not depend on values.
        """
        wanted = list(dict.fromkeys(column.data for column in self.columns.values()))

        def run() -> bool:
            for native in self._batches(self._frame, wanted):
                batch = as_frame(native)
                # Of the kind of the schema: a part may have types of its own.
                columns = {
                    name: replace(batch.column(each.data), kind=each.kind)
                    for name, each in self.columns.items()
                }
                use(Frame(columns, len(batch), batch.library))
            return True

        # An engine can fail, for lack of memory or because the frame's own plan fails. Whether and
        # how it does may depend on values.
        if not attempt(run, False):
            raise EngineError(
                f"{self.engine} failed to give the rows. Its message is withheld, because "
                "it may quote values of the data: run the plan of the frame by itself to read it. "
                "What was charged for this fit stays spent, and nothing was released. If memory or "
                "space for temporary files was short, declare fewer columns or bins."
            )


def _polars_batches(frame: nw.LazyFrame, names: list[str]) -> Iterator[Any]:
    native: Any = nw.to_native(frame.select(*names))
    if hasattr(native, "collect_batches"):
        yield from native.collect_batches(
            chunk_size=BATCH_ROWS, maintain_order=False, engine="streaming"
        )
    else:
        yield native.collect()


def _duckdb_batches(frame: nw.LazyFrame, names: list[str]) -> Iterator[Any]:
    import pyarrow as pa

    native: Any = nw.to_native(frame.select(*names))
    # The first name is that of DuckDB 1.5 and newer.
    read = getattr(native, "to_arrow_reader", None) or native.fetch_arrow_reader
    for batch in read(BATCH_ROWS):
        yield pa.Table.from_batches([batch])


def _dask_batches(frame: Any, names: list[str]) -> Iterator[Any]:
    for part in range(frame.npartitions):
        yield frame[names].get_partition(part).compute()


def _pyspark_batches(frame: nw.LazyFrame, names: list[str]) -> Iterator[Any]:
    native: Any = nw.to_native(frame)
    made = []
    for name in names:
        quoted = "`" + name.replace("`", "``") + "`"
        zoned = native.schema[name].dataType.typeName() == "timestamp"
        # In UTC, whatever the zones of the session and of this machine are.
        moment = f"timestampadd(MICROSECOND, unix_micros({quoted}), TIMESTAMP_NTZ'1970-01-01')"
        made.append(f"{moment} AS {quoted}" if zoned else quoted)
    rows = native.selectExpr(*made).toLocalIterator()
    while held := list(itertools.islice(rows, BATCH_ROWS)):
        yield _of_tuples(held, names)


def _of_tuples(rows: Sequence[Sequence[Any]], names: Sequence[str]) -> pd.DataFrame:
    """Rows of Python objects, each of which is read by itself."""
    columns = {
        name: pd.Series(object_array([row[place] for row in rows]), dtype=object)
        for place, name in enumerate(names)
    }
    return pd.DataFrame(columns, columns=list(names))


_ENGINES: dict[str, tuple[str, Callable[[Any, list[str]], Iterator[Any]]]] = {
    "polars": ("Polars", _polars_batches),
    "duckdb": ("DuckDB", _duckdb_batches),
    "dask": ("Dask", _dask_batches),
    "pyspark": ("PySpark", _pyspark_batches),
}


def read_rows(data: Any) -> Frame | LazyRows:
    """Read a container of rows, lazy frames of the supported engines included.

    Parameters
    ----------
    data : as for :func:`skdp.tables.as_frame`, or a lazy frame
        Of Polars, DuckDB, Dask or PySpark. Only its schema is read.

    Raises
    ------
    TypeError, ValueError, DomainError
        As :func:`skdp.tables.as_frame`; also for lazy frames of other libraries, and for a plan
        whose columns cannot be determined.
    """
    if _is_dask(data) and isinstance(getattr(data, "_meta", None), pd.DataFrame):
        # An empty frame of pandas that has the types.
        rows = as_frame(data._meta)
        if rows.n_unnamed:
            raise TypeError("Column names must be text: `df.columns = df.columns.astype(str)`.")
        columns = {name: replace(each, data=name) for name, each in rows.columns.items()}
        return LazyRows(columns, data, "dask")
    frame = _narwhals(data)
    # Frames in memory, and types that narwhals does not know, are left to the other reader.
    return _lazy_rows(frame) if isinstance(frame, nw.LazyFrame) else as_frame(data)


def _lazy_rows(frame: nw.LazyFrame) -> LazyRows:
    name = frame.implementation.name.lower()
    engine = "pyspark" if name == "pyspark_connect" else name
    if engine not in _ENGINES:
        raise TypeError(
            f"Lazy frames of {name} are not supported. Use Polars, DuckDB, Dask or PySpark (`pip "
            "install 'skdp[duckdb]'`, `'skdp[dask]'`, `'skdp[spark]'`), or collect the frame first."
        )
    if engine == "duckdb" and importlib.util.find_spec("pyarrow") is None:
        # As Python objects, far dates and times would be other values, and memory not bounded.
        raise TypeError("DuckDB is read through PyArrow: `pip install 'skdp[duckdb]'`.")
    # Without the engine's error as context: a plan may hold values.
    schema = attempt(frame.collect_schema, None)
    if schema is None:
        raise DomainError(
            f"{_ENGINES[engine][0]} cannot tell the columns of this lazy frame: its plan fails "
            "before any row is read, for example because a file or a column does not exist. Run it "
            "by itself to see why. Nothing was read or spent."
        )
    if not schema:
        raise ValueError("Found a lazy frame with 0 feature(s), while a minimum of 1 is required.")
    if engine != "polars":
        # Where the engine allows the same name twice.
        check_unique(nw.to_native(frame).columns)
    # Of columns without any value, whose type narwhals does not know.
    native: Any = nw.to_native(frame)
    own = {
        "polars": lambda: native.collect_schema().values(),
        "duckdb": lambda: native.types,
        "pyspark": lambda: [each.dataType.typeName() for each in native.schema],
    }[engine]()
    columns = {}
    for (name, dtype), found in zip(schema.items(), own, strict=True):
        null = str(found).strip('"').lower() in ("null", "void")
        columns[name] = Column(name, "lazy", "null" if null else kind_of(dtype), type_name(dtype))
    return LazyRows(columns, frame, engine)


# --- what is kept of a table that was read, so that drawn rows can look alike


class Layout:
    """What drawn rows have in common with a table that was read: its library, order and names.

    Parameters
    ----------
    X : container
        As given to ``fit``: of pandas the names of its index and of its columns are kept.
    rows : Frame or LazyRows
        What was read of it, with the names of the domain. Columns that the domain does not have
        are left out. Columns of the domain that the rows lack stand where the domain declares
        them.
    domain : Domain

    Attributes
    ----------
    library : {"numpy", "pandas", "polars", "pyarrow"}
    names : tuple of str
        Columns in the order of the output.
    given : tuple of str
        Those that the rows had.
    days : frozenset of str
        Columns of whole days: other libraries than pandas have a type for them.
    axes : tuple of (name, name)
        Names of the index and of the columns, of pandas.

    Examples
    --------
    >>> from skdp import Domain, Numeric
    >>> from skdp.tables import as_frame, build_frame
    >>> domain = Domain({"a": Numeric(0, 9, integer=True), "b": Numeric(0, 1)})
    >>> given = pd.DataFrame({"b": np.zeros(3, "f4"), "a": np.zeros(3, "i1")})
    >>> rows = domain.decode([[1, 1]], 0)
    >>> build_frame(rows, like=Layout(given, as_frame(given), domain)).dtypes.to_dict()
    {'b': dtype('float64'), 'a': dtype('int64')}
    """

    def __init__(self, X: Any, rows: Frame | LazyRows, domain: Domain) -> None:
        self.library = rows.library
        names = [name for name in rows.names if name in domain.columns]
        self.given = tuple(names)
        for place, name in enumerate(domain.columns):
            if name not in names:
                names.insert(place, name)
        self.names = tuple(names)
        self.days = frozenset(n for n in names if isinstance(domain.declared(n), Date))
        self.axes: tuple[Any, ...] = (None, None)
        if isinstance(X, pd.DataFrame):
            # None for an index of several levels, which is not kept.
            axes = (X.index, X.columns)
            self.axes = tuple(each.name if each.nlevels == 1 else None for each in axes)
