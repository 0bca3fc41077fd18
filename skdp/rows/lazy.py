"""LazyRows: the columns of a lazy frame of Polars, DuckDB, Dask or PySpark.

Only names and types are known, never a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw

from .._foreign import reraise_interrupts
from ..domain import Domain
from ..exceptions import DomainError
from .batches import gives_batches
from .bounds import BOUNDS
from .coded import ENGINES, CodedRows, EngineCodes, guarded
from .columns import narwhals_kind, type_name
from .empty_cells import skip_empty_cells
from .expressions import LazyColumn, Lookups, text_as_bytes
from .frames import Frame, as_frame, check_unique, is_dask
from .partitioned import PartitionedCodes

__all__ = ["LazyRows", "read_rows"]


class LazyRows:
    """The columns of a lazy frame: only its schema is known here.

    It offers what :class:`skdp.rows.Frame` offers before a charge.

    Parameters
    ----------
    frame : narwhals LazyFrame, or Dask DataFrame
    columns : mapping of str to LazyColumn
    engine : {"polars", "duckdb", "dask", "pyspark"}
    """

    n_unnamed = 0
    # Column that identifies the person a row belongs to, where contributions are bounded.
    unit: str | None = None

    def __init__(self, frame: Any, columns: Mapping[str, LazyColumn], engine: str) -> None:
        self._frame = frame
        self._columns = dict(columns)
        self.engine = engine

    @property
    def library(self) -> str:
        """What :func:`skdp.rows.build_frame` builds for ``like=`` these rows."""
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
        self,
        domain: Domain,
        *,
        unit: str | None = None,
        most: int = 1,
        key: int = 0,
    ) -> CodedRows:
        """Turn every row into codes, in the engine; nothing is computed yet.

        Parameters
        ----------
        domain : Domain
            Of some of these columns.
        unit : str, default=None
            Column that identifies the person a row belongs to: of each person at most ``most``
            rows are kept, the first by a hash of unit and codes; rows without a unit are not.
        most : int
        key : int below 2**64
            Secret key of the hash.

        Raises
        ------
        EngineError
            If the engine refuses the plan.
        """
        if self.engine == "dask":
            return PartitionedCodes(self._frame[list(self.names)], domain)
        prefix = "skdp_"
        # This includes names that differ in case only, which some engines treat as equal.
        while any(name.lower().startswith(prefix) for name in self._frame.collect_schema()):
            prefix += "_"
        lookups = Lookups(prefix, self.engine)
        columns = {name: each.collecting(lookups) for name, each in self._columns.items()}
        expressions = domain.expressions(LazyRows(self._frame, columns, self.engine))
        codes = {f"{prefix}{place}": code.cast(nw.Int64) for place, code in enumerate(expressions)}
        names = list(codes)

        cell, owner_name = f"{prefix}cell", f"{prefix}unit"
        unfit: list[Any] = [
            nw.when(nw.col(name) < 0).then(nw.lit(place)).otherwise(nw.lit(len(names) + 1))
            for place, name in enumerate(names, 1)
        ]

        def told(coded: Any) -> Any:
            """With the cell of each row, kept or skipped; its code is negative if it is skipped."""
            coded = coded.with_columns(**{cell: nw.min_horizontal(*unfit)})
            if domain.structure.zeros:
                found = Lookups(f"{prefix}empty_", self.engine)
                coded = skip_empty_cells(coded, domain.structure.zeros, names, found)
            fits: Any = nw.when(nw.col(cell) > len(names), nw.col(names[0]) >= 0).then(nw.lit(0))
            return coded.with_columns(**{cell: fits.otherwise(nw.col(cell)).cast(nw.Int64)})

        def prepared() -> tuple[Any, Any]:
            rows = self._frame
            if self.engine == "duckdb":
                kinds = self.kinds.items()
                rows = text_as_bytes(rows, [name for name, kind in kinds if kind == "string"])
            rows = lookups.joined(rows)
            if unit is None:
                frame = told(rows.with_columns(**codes).select(*names))
                one = frame.select(cell=nw.col(cell), rows=nw.lit(1).cast(nw.Int64))
                return frame.select(*names), one
            owner = nw.col(unit)
            if self.engine == "pyspark" and self.kinds[unit] == "string":
                # Without a collation, which could merge two persons.
                owner = owner.cast(nw.String)
            known = ~owner.is_null()
            if self.dtypes[unit] in ("Float32", "Float64"):
                known = known & ~owner.is_nan()
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
    data : as for :func:`skdp.rows.as_frame`, or a lazy frame
        Of Polars, DuckDB, Dask or PySpark. Only its schema is read.

    Raises
    ------
    TypeError, ValueError, DomainError
        As :func:`skdp.rows.as_frame`; also for lazy frames of other libraries, and for a plan whose
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
