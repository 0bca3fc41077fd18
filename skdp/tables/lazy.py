"""LazyRows: the columns of a lazy frame of Polars, DuckDB, Dask or PySpark.

Only names and types are known, never a value.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._foreign import reraise_interrupts
from .._validation import BoolArray, CodeArray, IntArray, run_starts
from ..domain import Domain, Zeros
from ..domain.values import MAX_INTEGER
from ..exceptions import DomainError
from .coded import (
    ENGINES,
    CodedRows,
    EngineCodes,
    Keys,
    LabelledSums,
    gives_batches,
    guarded,
)
from .columns import narwhals_kind, type_name
from .expressions import LazyColumn, Lookups, text_as_bytes
from .frame import TYPES_DECLARED, Frame, as_frame, check_unique, is_dask
from .passes import Tallies, first_unfit

# --- bounding the rows of each person, inside an engine

# Privacy of the bounds below. Whether a row is kept depends on the rows of the same person and on
# a secret key only: equal rows of a person are numbered (which of them gets which number changes
# nothing), each gets a hash of person, codes and number, and the first of each person stay.


def _bound_polars(frame: Any, privacy_id: str, names: list[str], most: int, key: int) -> Any:
    pl: Any = nw.get_native_namespace(frame)
    number, order = f"{privacy_id}_number", f"{privacy_id}_order"
    native = nw.to_native(frame).with_columns(
        pl.int_range(pl.len()).over(privacy_id, *names).alias(number)
    )
    hashed = pl.struct(privacy_id, *names, number).hash(key)
    native = native.with_columns(hashed.alias(order))
    return nw.from_native(native.filter(pl.col(order).rank("ordinal").over(privacy_id) <= most))


def _bound_duckdb(frame: Any, privacy_id: str, names: list[str], most: int, key: int) -> Any:
    row, number, order = (
        ", ".join([privacy_id, *names]),
        f"{privacy_id}_number",
        f"{privacy_id}_order",
    )
    relation = nw.to_native(frame)
    relation = relation.select(f"*, row_number() OVER (PARTITION BY {row}) AS {number}")
    relation = relation.select(f"*, hash({row}, {number}, {key}::UBIGINT) AS {order}")
    rank = f"row_number() OVER (PARTITION BY {privacy_id} ORDER BY {order})"
    relation = relation.select(f"*, {rank} AS {privacy_id}_rank")
    return nw.from_native(relation.filter(f"{privacy_id}_rank <= {most}"))


def _bound_pyspark(frame: Any, privacy_id: str, names: list[str], most: int, key: int) -> Any:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    row, number, order = [privacy_id, *names], f"{privacy_id}_number", f"{privacy_id}_order"
    equal = Window.partitionBy(*row).orderBy(F.lit(0))
    native = nw.to_native(frame).withColumn(number, F.row_number().over(equal))
    # Spark's integers have a sign.
    native = native.withColumn(order, F.xxhash64(*row, number, F.lit(key - 2**63)))
    rank = F.row_number().over(Window.partitionBy(privacy_id).orderBy(order))
    return nw.from_native(
        native.withColumn(f"{privacy_id}_rank", rank).filter(f"{privacy_id}_rank <= {most}")
    )


BOUNDS = {"polars": _bound_polars, "duckdb": _bound_duckdb, "pyspark": _bound_pyspark}


# --- rows in cells that are declared empty, as an expression that an engine evaluates

# A table is searched by the intervals of one attribute if no combination of the others has more.
_MOST_INTERVALS = 8

# Engines that evaluate only the branch of a condition that holds; plans with many joins are slow.
_MOST_CONDITIONS = {"duckdb": 1024, "pyspark": 1024}


def _skip_empty_cells(
    frame: Any, zeros: Sequence[Zeros], names: Sequence[str], lookups: Lookups
) -> Any:
    """The frame with -1 as the first code of rows that are in a forbidden cell.

    Parameters
    ----------
    frame : narwhals LazyFrame
    zeros : sequence of Zeros
    names : sequence of str
        Columns of codes, in the order of the attributes; they may be negative.
    lookups : Lookups
        Without tables yet; its prefix differs from that of any column.
    """
    # Privacy: as in `Domain.encode_columns`. A row is skipped for its own codes and the public
    # declaration alone. Whether the search is by conditions or by a join follows from the
    # declaration too. Each key of a join occurs once, so no row is doubled.
    early = Lookups(f"{lookups.prefix}early_", lookups.engine)
    kept: list[Any] = []
    rows: dict[str, Any] = {}
    for number, each in enumerate(zeros):
        search = _Search(each, [names[axis] for axis in each.axes])
        row = search.row(early)
        if search.is_wide:
            # As a column, so that its expression is not repeated in every condition.
            rows[f"{lookups.prefix}row{number}"] = row
            row = nw.col(f"{lookups.prefix}row{number}")
        kept.append(search.allowed(row, lookups))
    frame = early.joined(frame)
    frame = frame.with_columns(**rows) if rows else frame
    first = nw.when(functools.reduce(operator.and_, kept)).then(nw.col(names[0]))
    return lookups.joined(frame).with_columns(**{names[0]: first.otherwise(nw.lit(-1))})


class _Search:
    """Finds out whether a row is in an allowed cell; anything where a code is negative.

    Parameters
    ----------
    zeros : Zeros
    names : sequence of str
        Columns of codes of its attributes.
    """

    def __init__(self, zeros: Zeros, names: Sequence[str]) -> None:
        table = zeros.allowed
        classes = [_classes(table, axis) for axis in range(table.ndim)]
        # The attribute with the most classes is searched by intervals of its codes.
        axis = int(np.argmax([len(firsts) for firsts, _ in classes]))
        self._own, self._class_of = nw.col(names[axis]), classes[axis]
        others = [other for other in range(table.ndim) if other != axis]
        self.is_wide = len(others) > 1
        self._others = [nw.col(names[other]) for other in others]
        self._classes = [classes[other][1] for other in others]
        if self.is_wide:
            # One row for each combination of classes of the other attributes.
            for other in others:
                table = table.take(classes[other][0], axis=other)
        self._sizes = [table.shape[other] for other in others]
        self._rows = np.moveaxis(table, axis, -1).reshape(-1, table.shape[axis])

    def row(self, lookups: Lookups) -> Any:
        """Number of the combination of the other attributes."""
        if not self.is_wide:
            return self._others[0] if self._others else nw.lit(0)
        row: Any = nw.lit(0)
        for code, size, class_of in zip(self._others, self._sizes, self._classes, strict=True):
            row = row * size + _looked_up(code, class_of, lookups)
        return row

    def allowed(self, row: Any, lookups: Lookups) -> Any:
        """Whether the cell is allowed."""
        starts, stops = _intervals(self._rows)
        if starts.shape[1] <= _MOST_INTERVALS:
            inside = [
                (self._own >= _looked_up(row, starts[:, place], lookups))
                & (self._own < _looked_up(row, stops[:, place], lookups))
                for place in range(starts.shape[1])
            ]
            return functools.reduce(operator.or_, inside)
        firsts, class_of = self._class_of
        cells = self._rows.take(firsts, axis=1).astype(np.int64)
        cell = row * len(firsts) + _looked_up(self._own, class_of, lookups)
        return _looked_up(cell, cells.ravel(), lookups) == 1


def _classes(table: BoolArray, axis: int) -> tuple[IntArray, IntArray]:
    """Codes with the same allowed cells: one of each class, and the class of each code."""
    rows = np.packbits(np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1), axis=1)
    _, firsts, class_of = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return firsts.astype(np.int64), class_of.ravel().astype(np.int64)


def _intervals(rows: BoolArray) -> tuple[IntArray, IntArray]:
    """Where runs of allowed codes begin and end in each row; empty ones fill up."""
    edges = np.diff(np.pad(rows.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    most = max(int((edges == 1).sum(axis=1).max()), 1)
    ends = []
    for sign in (1, -1):
        found, code = np.nonzero(edges == sign)
        place = np.arange(len(found)) - np.searchsorted(found, found)
        table = np.zeros((len(rows), most), dtype=np.int64)
        table[found, place] = code
        ends.append(table)
    return ends[0], ends[1]


def _looked_up(key: Any, values: NDArray[np.integer], lookups: Lookups) -> Any:
    """The value for each key 0, 1, ...: by conditions if it seldom changes, else by a join."""
    starts = run_starts(values).tolist()
    if len(starts) <= _MOST_CONDITIONS.get(lookups.engine, lookups.most_conditions):
        return _piecewise(key, [(start, int(values[start])) for start in starts])
    return lookups.add(key.cast(nw.Int64), list(enumerate(values.tolist())))


def _piecewise(key: Any, pieces: Sequence[tuple[int, int]]) -> Any:
    """The value of the last piece that begins at or before each key: a tree of conditions."""
    if len(pieces) == 1:
        return nw.lit(pieces[0][1])
    middle = len(pieces) // 2
    below, above = _piecewise(key, pieces[:middle]), _piecewise(key, pieces[middle:])
    return nw.when(key < pieces[middle][0]).then(below).otherwise(above)


# --- PartitionedCodes: the partitions of a Dask frame, coded and counted where they are


class _PartitionedCodes(CodedRows):
    """Coded rows in the partitions of a Dask frame, each a frame of pandas on some worker."""

    _engine = "dask"

    def __init__(self, frame: Any, domain: Domain) -> None:
        self._frame = frame
        self._domain = domain
        self.shape = domain.shape

    def cells_of_all(self) -> IntArray:  # noqa: D102
        zero = np.zeros(0, dtype=np.int64)
        meta = pd.DataFrame({"cell": zero, "count": zero})
        found = self._sum(_cells_of_partition, (), meta, ["cell"]).set_index("cell")["count"]
        cells: IntArray = found.reindex(range(len(self.shape) + 2), fill_value=0).to_numpy()
        return cells

    def _tally(self, keys: Keys) -> list[IntArray]:
        zero = np.zeros(0, dtype=np.int64)
        empty = keys([zero] * len(self.shape), zero)
        names = [f"key{number}" for number in range(len(empty))]
        meta = pd.DataFrame(dict.fromkeys([*names, "count"], zero))
        found = self._sum(_tally_partition, (keys,), meta, names)
        return [found[name].to_numpy() for name in [*names, "count"]]

    def _fill(self, tallies: Tallies) -> None:
        zero = np.zeros(0, dtype=np.int64)
        meta = pd.DataFrame({"cell": zero, "count": zero})
        found = self._sum(_fill_partition, (tallies.empty,), meta, ["cell"])
        tallies.cells[found["cell"].to_numpy()] = found["count"].to_numpy()

    def sums_by_label(  # noqa: D102
        self, terms: LabelledSums
    ) -> tuple[IntArray, IntArray]:
        zero = np.zeros(0, dtype=np.int64)
        names = [f"sum{axis}" for axis in range(len(self.shape))]
        meta = pd.DataFrame(dict.fromkeys(["label", "count", *names], zero))
        found = self._sum(_sums_of_partition, (terms,), meta, ["label"])
        found = found.set_index("label").reindex(range(terms.n_labels), fill_value=0)
        return found["count"].to_numpy(), found[names].to_numpy()

    def _sum(
        self, kernel: Callable[..., Any], arguments: tuple[Any, ...], meta: Any, by: list[str]
    ) -> pd.DataFrame:
        """The result of a kernel on each partition, summed by some of its columns."""
        return guarded(
            self._engine,
            lambda: (
                self._frame.map_partitions(kernel, self._domain, *arguments, meta=meta)
                .groupby(by, sort=False)
                .sum()
                .reset_index()
                .compute()
            ),
        )


def _represented(part: pd.DataFrame, domain: Domain) -> CodeArray:
    codes = domain.encode_columns(as_frame(part))
    return codes[(codes >= 0).all(axis=1)]


def _cells_of_partition(part: pd.DataFrame, domain: Domain) -> pd.DataFrame:
    """Cells of the rows of one partition, kept and skipped, and how many rows each has."""
    found = first_unfit(domain.encode_columns(as_frame(part), broken=-2))
    cells, counts = np.unique(found, return_counts=True)
    return pd.DataFrame({"cell": cells, "count": counts})


def _tally_partition(part: pd.DataFrame, domain: Domain, keys: Keys) -> pd.DataFrame:
    """Distinct keys of the rows of one partition, and their counts."""
    codes = _represented(part, domain).astype(np.int64)
    found = keys(list(codes.T), np.zeros(len(codes), dtype=np.int64))
    named = {f"key{number}": key for number, key in enumerate(found)}
    return pd.DataFrame(named).groupby(list(named), sort=False).size().reset_index(name="count")


def _fill_partition(
    part: pd.DataFrame, domain: Domain, empty: Callable[[], Tallies]
) -> pd.DataFrame:
    """Cells of tallies that the rows of one partition add to, and how many rows each gets."""
    codes = _represented(part, domain)
    tallies = empty()
    tallies.add(dict(enumerate(codes.T)), len(codes))
    cells = np.flatnonzero(tallies.cells)
    return pd.DataFrame({"cell": cells, "count": tallies.cells[cells]})


def _sums_of_partition(part: pd.DataFrame, domain: Domain, terms: LabelledSums) -> pd.DataFrame:
    """Counts and sums of the rows of one partition, a row for each label."""
    counts, sums = terms.of_codes(_represented(part, domain))
    named = {f"sum{axis}": sums[:, axis] for axis in range(sums.shape[1])}
    return pd.DataFrame({"label": np.arange(len(counts)), "count": counts, **named})


# --- the table


class LazyRows:
    """The columns of a lazy frame: only its schema is known here.

    It offers what :class:`skdp.tables.Frame` offers before a charge.

    Parameters
    ----------
    frame : narwhals LazyFrame, or Dask DataFrame
    columns : mapping of str to LazyColumn
    engine : {"polars", "duckdb", "dask", "pyspark"}
    """

    n_unnamed = 0
    # Privacy. The types of a lazy frame decide what its values mean and whether the schema fits,
    # and an engine does not tell where it has them from: a scan of a CSV file without declared
    # types takes them from the records, so that one record may change all codes. Neighbours are
    # therefore tables of one schema, and the loss says that this is assumed.
    assumes = TYPES_DECLARED
    # Column that identifies the person a row belongs to, where contributions are bounded.
    privacy_id: str | None = None

    def __init__(self, frame: Any, columns: Mapping[str, LazyColumn], engine: str) -> None:
        self._frame = frame
        self._columns = dict(columns)
        self.engine = engine

    @property
    def library(self) -> str:
        """What :func:`skdp.tables.build_frame` builds for ``like=`` these rows."""
        return "polars" if self.engine == "polars" else "pandas"

    @property
    def in_batches(self) -> bool:
        """Whether the engine returns rows batch by batch, which sums of values need."""
        return self.engine != "dask" and gives_batches(self._frame, self.engine)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names."""
        return tuple(self._columns)

    @property
    def named(self) -> tuple[str, ...]:
        """Column names: all columns have one."""
        return self.names

    @property
    def kinds(self) -> dict[str, str]:
        """Kind of each column."""
        return {name: column.kind for name, column in self._columns.items()}

    @property
    def dtypes(self) -> dict[str, str]:
        """Name of each column's type, for messages."""
        return {name: column.dtype for name, column in self._columns.items()}

    def column(self, name: str) -> LazyColumn:
        """One column by name.

        Raises
        ------
        KeyError
            If there is none of that name.
        """
        return self._columns[name]

    def select(self, names: Sequence[str]) -> LazyRows:
        """The columns of these names, in this order."""
        return LazyRows(self._frame, {name: self.column(name) for name in names}, self.engine)

    def with_again(self, name: str, again: str) -> LazyRows:
        """The rows with a column once more, under another name."""
        return LazyRows(self._frame, {**self._columns, again: self.column(name)}, self.engine)

    def with_column(self, name: str, values: Any) -> LazyRows:
        """Refuse a separate column: its rows cannot be matched to those of an engine.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(
            f"The rows are a lazy frame of {ENGINES[self.engine]}, whose rows have no order that "
            f"{name!r}, given separately, could be matched to. Add it to the frame as a column, "
            "declare it in the domain and name it in target=."
        )

    def coded(
        self, domain: Domain, *, privacy_id: str | None = None, most: int = 1, key: int = 0
    ) -> CodedRows:
        """Turn every row into codes, in the engine; nothing is computed yet.

        Parameters
        ----------
        domain : Domain
            Of some of these columns.
        privacy_id : str, default=None
            Column that identifies the person a row belongs to: of each person at most ``most``
            rows are kept, the first by a hash of the id and the codes; rows without an id are not.
        most : int
        key : int below 2**64
            Secret key of the hash.

        Raises
        ------
        EngineError
            If the engine refuses the plan.
        """
        if self.engine == "dask":
            return _PartitionedCodes(self._frame[list(self.names)], domain)
        prefix = "skdp_"
        # This includes names that differ in case only, which some engines treat as equal.
        while any(name.lower().startswith(prefix) for name in self._frame.collect_schema()):
            prefix += "_"
        lookups = Lookups(prefix, self.engine)
        columns = {name: each.collecting(lookups) for name, each in self._columns.items()}
        expressions = domain.expressions(LazyRows(self._frame, columns, self.engine))
        codes = {f"{prefix}{place}": code.cast(nw.Int64) for place, code in enumerate(expressions)}
        names = list(codes)

        cell, owner_name = f"{prefix}cell", f"{prefix}privacy_id"
        none: Any = nw.lit(len(names) + 1)
        # With `none` once more: in Spark the least of a single column is an error.
        unfit: list[Any] = [none] + [
            nw.when(nw.col(name) < 0).then(nw.lit(place)).otherwise(none)
            for place, name in enumerate(names, 1)
        ]

        def told(coded: Any) -> Any:
            """With the cell of each row, kept or skipped; its code is negative if it is skipped."""
            coded = coded.with_columns(**{cell: nw.min_horizontal(*unfit)})
            if domain.structure.zeros:
                found = Lookups(f"{prefix}empty_", self.engine)
                coded = _skip_empty_cells(coded, domain.structure.zeros, names, found)
            fits: Any = nw.when(nw.col(cell) > len(names), nw.col(names[0]) >= 0).then(nw.lit(0))
            return coded.with_columns(**{cell: fits.otherwise(nw.col(cell)).cast(nw.Int64)})

        def prepared() -> tuple[Any, Any]:
            rows = self._frame
            if self.engine == "duckdb":
                kinds = self.kinds.items()
                rows = text_as_bytes(rows, [name for name, kind in kinds if kind == "string"])
            rows = lookups.joined(rows)
            if privacy_id is None:
                frame = told(rows.with_columns(**codes).select(*names))
                one = frame.select(cell=nw.col(cell), rows=nw.lit(1).cast(nw.Int64))
                return frame.select(*names), one
            owner = nw.col(privacy_id)
            if self.engine == "pyspark" and self.kinds[privacy_id] == "string":
                # Without a collation, which could merge two persons.
                owner = owner.cast(nw.String)
            known = ~owner.is_null()
            if self.dtypes[privacy_id] in ("Float32", "Float64"):
                # As in memory: from 2**53 on a float may stand for several integers.
                known = known & ~owner.is_nan() & (owner.abs() < float(MAX_INTEGER))
            frame = rows.filter(known).with_columns(**codes, **{owner_name: owner})
            frame = told(frame.select(owner_name, *names))
            # The first rows of each person by their cells; see `Coded.cells`.
            count = f"{prefix}count"
            of_each = frame.group_by(owner_name, cell).agg(nw.len().cast(nw.Int64).alias(count))
            before = nw.col(count).cum_sum().over(owner_name, order_by=cell) - nw.col(count)
            room = nw.max_horizontal(nw.lit(most) - before, nw.lit(0))
            first = of_each.select(cell=nw.col(cell), rows=nw.min_horizontal(nw.col(count), room))
            frame = frame.filter(nw.col(cell) == 0).select(owner_name, *names)
            return BOUNDS[self.engine](frame, owner_name, names, most, key).select(*names), first

        frame, cells = guarded(self.engine, prepared)
        return EngineCodes(frame, cells, names, domain.shape, self.engine)

    def __repr__(self) -> str:
        return f"LazyRows({self.engine}, columns={self.kinds})"


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
        whose
        columns cannot be determined.
    """
    if isinstance(data, LazyRows):
        return data
    if is_dask(data):
        return _dask_rows(data)
    frame = nw.from_native(data, pass_through=True, allow_series=True)
    # Frames in memory, and types that narwhals does not know, are left to the other reader.
    return _lazy_rows(frame) if isinstance(frame, nw.LazyFrame) else as_frame(data)


def _dask_rows(data: Any) -> LazyRows:
    # An empty frame of pandas that has the types.
    empty = data._meta
    rows = as_frame(empty)
    if rows.n_unnamed:
        raise TypeError(
            "Column names must be strings. Convert them with `df.columns = df.columns.astype(str)`."
        )
    columns = {
        name: LazyColumn(name, rows.kinds[name], rows.dtypes[name], "dask") for name in rows.names
    }
    return LazyRows(data, columns, "dask")


def _lazy_rows(frame: nw.LazyFrame) -> LazyRows:
    name = frame.implementation.name.lower()
    engine = "pyspark" if name == "pyspark_connect" else name
    if engine not in ENGINES:
        raise TypeError(
            f"Lazy frames of {name} are not supported. Use Polars, DuckDB, Dask or PySpark (`pip "
            "install 'skdp[duckdb]'`, `'skdp[dask]'`, `'skdp[spark]'`), or collect the frame first."
        )
    schema = None
    try:
        schema = frame.collect_schema()
    except BaseException as error:
        reraise_interrupts(error)
        # Raised below, without the engine's error as its context: a plan may hold values.
    if schema is None:
        raise DomainError(
            f"{ENGINES[engine]} cannot tell the columns of this lazy frame: its plan fails before "
            "any row is read, for example because a file or a column does not exist. Try "
            "`.collect_schema()` on it. Nothing was read or spent."
        )
    if not schema:
        raise ValueError("Found a lazy frame with 0 feature(s), while a minimum of 1 is required.")
    if engine != "polars":
        # Where the engine allows the same name twice.
        check_unique(nw.to_native(frame).columns)
    columns = {
        name: LazyColumn(name, _kind(frame, name, dtype, engine), type_name(dtype), engine)
        for name, dtype in schema.items()
    }
    return LazyRows(frame, columns, engine)


def _kind(frame: nw.LazyFrame, name: str, dtype: Any, engine: str) -> str:
    """Kind of a column, by its type alone."""
    if dtype == nw.Decimal:
        return "decimal"
    if dtype == nw.Unknown:
        native: Any = nw.to_native(frame)
        if engine == "polars":
            found = str(native.collect_schema()[name])
        elif engine == "duckdb":
            found = str(native.types[native.columns.index(name)])
        else:
            found = native.schema[name].dataType.typeName()
        return "null" if found.strip('"').lower() in ("null", "void") else "other"
    kind = narwhals_kind(dtype)
    # An engine cannot evaluate Python objects.
    return "other" if kind == "object" else kind
