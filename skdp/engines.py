"""Rows that stay in a query engine: their schema, and counts of coded rows that it makes.

A :class:`LazyRows` knows names and types of the columns of a lazy frame of Polars, DuckDB, Dask or
PySpark, and never a value. Rows become codes where they are: by expressions that the engine
evaluates, or in Dask, whose partitions are frames of pandas, by the code for frames in memory. Only
distinct coded rows with their counts come back.

Values must not raise here either. Every expression is total: numbers are made finite before they
are compared or cast, divisors are constants or at least one, and casts that may fail are not used.
An engine can still fail, for want of memory or because the frame's own plan does. Whether and how
it does may depend on values, so its message is withheld.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skdp.exceptions import DomainError, EngineError
from skdp.frames import Frame, as_frame, check_unique, is_dask, narwhals_kind, type_name

__all__ = [
    "CodedRows",
    "Encoder",
    "LabelledSums",
    "LazyColumn",
    "LazyRows",
    "floor_positive",
    "part_of",
    "read_rows",
    "search_sorted",
]

# Codes of several columns are packed into one int64 while their cells stay below this.
_KEY_LIMIT = 2**62
_ENGINES = {"polars": "Polars", "duckdb": "DuckDB", "dask": "Dask", "pyspark": "PySpark"}
_INTEGER_RANGES = {
    f"{sign}Int{bits}": (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for sign in ("", "U")
    for bits in (8, 16, 32, 64, 128)
}
# The first engine of Polars that keeps no more than it needs of a large frame.
_POLARS_STREAMING = (1, 23)
# A value is looked up by conditions in a table of up to so many, by a join in a longer one.
# Polars evaluates both sides of every condition, the others only the one that holds.
_MOST_CONDITIONS = {"polars": 8, "duckdb": 64, "pyspark": 64}
# Where a number that is cast to an integer loses its fraction; DuckDB rounds it.
_TRUNCATING = ("polars", "pyspark")


def _floor(value: Any) -> Any:
    """Largest integer below, where int64 holds it; engines cast by rounding or by truncation."""
    near = value.cast(nw.Int64)
    return near - nw.when(near > value).then(nw.lit(1)).otherwise(nw.lit(0))


def floor_positive(value: Any, engine: str) -> Any:
    """The same of a number that is not negative, without writing it thrice where it can be."""
    return value.cast(nw.Int64) if engine in _TRUNCATING else _floor(value)


def _divided(value: Any, divisor: float, engine: str) -> Any:
    """A finite number by a constant, rounded once."""
    if engine == "polars":
        # It multiplies by the reciprocal of what it knows to be constant: 147 / 49 is below 3.
        return value / (value * 0.0 + divisor)
    return value / divisor


class LazyColumn:
    """One column of a lazy frame: its name and type, and expressions for its codes.

    Parameters
    ----------
    name : str
    kind : str
        As of :class:`skdp.frames.Column`, and "decimal", which is no plain number in every
        engine.
    dtype : str
        The name of the type, for messages.
    engine : str
    lookups : Lookups, default=None
        Where long tables of values are put, to be joined with the rows.
    """

    def __init__(
        self, name: str, kind: str, dtype: str, engine: str, lookups: _Lookups | None = None
    ) -> None:
        self.name = name
        self.kind = kind
        self.dtype = dtype
        self.engine = engine
        self._lookups = lookups

    def collecting(self, lookups: _Lookups) -> LazyColumn:
        """The same column, with a place for long tables."""
        return LazyColumn(self.name, self.kind, self.dtype, self.engine, lookups)

    def number(self) -> nw.Expr:
        """Values as float64, each the nearest one."""
        value = nw.col(self.name)
        if self.kind == "decimal" and self.engine == "polars":
            # A cast of older versions rounds twice; text is read to the nearest.
            value = value.cast(nw.String)
        return value.cast(nw.Float64)

    def binned(
        self, lower: float, upper: float, bins: int, *, integer: bool, missing: int
    ) -> nw.Expr:
        """Bin of each number, as :class:`skdp.Numeric` defines it, in float64 step by step.

        Parameters
        ----------
        lower, upper : float
        bins : int
        integer : bool
            Whether only the integer part of a number counts.
        missing : int
            Code where there is no number.
        """
        if self.kind == "null":
            return nw.lit(missing)
        value = self.number()
        gone = value.is_null() | value.is_nan()
        # What is missing gets a number first: some engines raise where they cast a NaN.
        x = nw.when(gone).then(nw.lit(lower)).otherwise(value)
        # Not by clip, which writes the whole expression twice where it asks for null first.
        x = nw.max_horizontal(nw.min_horizontal(x, nw.lit(upper)), nw.lit(lower))
        if integer:
            x = _floor(x) if lower < 0 else floor_positive(x, self.engine)
            x = x.cast(nw.Float64)
        x = x - lower
        if not (integer and bins == upper - lower + 1):
            x = _divided(x * float(bins), upper - lower, self.engine)
        code = nw.min_horizontal(floor_positive(x, self.engine), nw.lit(bins - 1))
        return nw.when(gone).then(nw.lit(missing)).otherwise(code)

    def looked_up(self, codes: Mapping[Any, int], *, unknown: int, missing: int) -> nw.Expr:
        """Code of each value in a table of them.

        Parameters
        ----------
        codes : mapping of str, int, float or bool to int
            Values equal in Python are equal here: 1, 1.0 and True, but not "1".
        unknown : int
            Code of values that are not in the table.
        missing : int
            Code where there is no value.
        """
        if self.kind == "null":
            return nw.lit(missing)
        value = nw.col(self.name)
        gone = value.is_null()
        if self.kind == "boolean":
            yes, no = (nw.lit(codes.get(truth, unknown)) for truth in (True, False))
            return (
                nw.when(gone)
                .then(nw.lit(missing))
                .otherwise(nw.when(value).then(yes).otherwise(no))
            )
        table: dict[Any, int] = {}
        joins = True
        if self.kind == "string":
            texts = {key: code for key, code in codes.items() if isinstance(key, str)}
            if self.engine == "duckdb":
                # Bytes, as the column is: see `_text_as_bytes`.
                table.update((key.encode(), code) for key, code in texts.items())
            else:
                table.update(texts)
                value = value.cast(nw.String)
        else:
            plain = {key: code for key, code in codes.items() if not isinstance(key, str)}
            if self.dtype in _INTEGER_RANGES:
                low, high = _INTEGER_RANGES[self.dtype]
                table.update(
                    (int(key), code)
                    for key, code in plain.items()
                    if key == int(key) and low <= key <= high
                )
                joins = low >= -(2**63) and high < 2**63
                value = value.cast(nw.Int64) if joins else value
            else:
                # So that there is one zero.
                value = value.cast(nw.Float64) + 0.0
                gone = gone | value.is_nan()
                table.update((float(key), code) for key, code in plain.items() if _is_float(key))
        items = sorted(table.items())
        found: Any
        if joins and self._lookups is not None and len(items) > self._lookups.most_conditions:
            joined = self._lookups.add(value, items)
            found = nw.when(joined.is_null()).then(nw.lit(unknown)).otherwise(joined)
        else:
            found = search_sorted(value, items, unknown)
        return nw.when(gone).then(nw.lit(missing)).otherwise(found)


def _is_float(value: Any) -> bool:
    """Whether a number is a float64 without loss."""
    try:
        return float(value) == value
    except OverflowError:
        return False


def search_sorted(value: Any, table: Sequence[tuple[Any, float]], unknown: float) -> Any:
    """Binary search of each value in a sorted table: a tree of conditions."""
    if not table:
        return nw.lit(unknown)
    if len(table) == 1:
        key, code = table[0]
        return nw.when(value == nw.lit(key)).then(nw.lit(code)).otherwise(nw.lit(unknown))
    middle = len(table) // 2
    below = search_sorted(value, table[:middle], unknown)
    above = search_sorted(value, table[middle:], unknown)
    return nw.when(value < nw.lit(table[middle][0])).then(below).otherwise(above)


class _Lookups:
    """Tables of values and their codes, to be joined with the rows of an engine.

    Parameters
    ----------
    prefix : str
        The beginning of no column's name.
    engine : str
    """

    def __init__(self, prefix: str, engine: str) -> None:
        self._prefix = prefix
        self._engine = engine
        self.most_conditions = _MOST_CONDITIONS[engine]
        self._tables: list[tuple[Any, Sequence[tuple[Any, int]]]] = []

    def add(self, value: Any, items: Sequence[tuple[Any, int]]) -> nw.Expr:
        """Enter a table, and get the column that will hold the code of each value, or null."""
        self._tables.append((value, items))
        return nw.col(f"{self._prefix}found{len(self._tables) - 1}")

    def joined(self, frame: nw.LazyFrame) -> nw.LazyFrame:
        """The rows with all tables joined. Values in a table differ: no row occurs twice."""
        for number, (value, items) in enumerate(self._tables):
            key, found = f"{self._prefix}key{number}", f"{self._prefix}found{number}"
            small = nw.from_native(_TABLES[self._engine](nw.to_native(frame), key, found, items))
            frame = frame.with_columns(**{key: value}).join(small, on=key, how="left")
        return frame


def _polars_table(native: Any, key: str, found: str, items: Sequence[tuple[Any, int]]) -> Any:
    values, codes = zip(*items, strict=True)
    return nw.get_native_namespace(nw.from_native(native)).LazyFrame({key: values, found: codes})


def _duckdb_table(native: Any, key: str, found: str, items: Sequence[tuple[Any, int]]) -> Any:
    def literal(value: Any) -> str:
        if isinstance(value, bytes):
            return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
        return f"'{value!r}'::{'DOUBLE' if isinstance(value, float) else 'BIGINT'}"

    values, codes = (", ".join(map(literal, column)) for column in zip(*items, strict=True))
    # A relation of one row, whatever the rows are, in the connection that holds them.
    one = native.limit(0).aggregate("count(*) AS n")
    return one.select(f"unnest([{values}]) AS {key}, unnest([{codes}]) AS {found}")


def _pyspark_table(native: Any, key: str, found: str, items: Sequence[tuple[Any, int]]) -> Any:
    kind = {str: "string", int: "bigint", float: "double"}[type(items[0][0])]
    return native.sparkSession.createDataFrame(list(items), f"{key} {kind}, {found} bigint")


def _text_as_bytes(frame: nw.LazyFrame, names: Sequence[str]) -> nw.LazyFrame:
    """A relation of DuckDB with columns of text as UTF-8: bytes are compared byte by byte.

    Text is compared by the collation of the column or of the connection, to which "a" and "A", or
    "a" and "á", may be equal.
    """
    if not names:
        return frame
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    changed = ", ".join(f"encode({name}::VARCHAR) AS {name}" for name in quoted)
    return nw.from_native(nw.to_native(frame).select(f"* REPLACE ({changed})"))


_TABLES = {"polars": _polars_table, "duckdb": _duckdb_table, "pyspark": _pyspark_table}


class Encoder(Protocol):
    """What is needed of a domain: how each column becomes codes."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of codes of each column."""

    def expressions(self, rows: LazyRows) -> list[Any]:
        """Codes of each column as expressions of an engine; negative where there is none."""

    def encode_columns(self, frame: Frame) -> NDArray[np.int32]:
        """Codes of rows in memory; negative where there is none. Never raises."""


class LazyRows:
    """Columns of a lazy frame: the schema, which is all that is known of it here.

    It answers the questions that :class:`skdp.frames.Frame` answers before a charge.

    Parameters
    ----------
    frame : narwhals LazyFrame, or Dask DataFrame
    columns : mapping of str to LazyColumn
    engine : {"polars", "duckdb", "dask", "pyspark"}
    """

    n_unnamed = 0

    def __init__(self, frame: Any, columns: Mapping[str, LazyColumn], engine: str) -> None:
        self._frame = frame
        self._columns = dict(columns)
        self.engine = engine

    @property
    def library(self) -> str:
        """What :func:`skdp.frames.build_frame` builds for ``like=`` these rows."""
        return "polars" if self.engine == "polars" else "pandas"

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

    def with_column(self, name: str, values: Any) -> LazyRows:
        """Refuse a separate column: its rows cannot be matched to those of an engine.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(
            f"The rows are a lazy frame of {_ENGINES[self.engine]}, whose rows have no order that "
            f"{name!r}, given separately, could be matched to. Add it to the frame as a column, "
            "declare it in the domain and name it in target=."
        )

    def coded(
        self,
        encoder: Encoder,
        *,
        unit: str | None = None,
        most: int = 1,
        key: int = 0,
    ) -> CodedRows:
        """Turn every row into codes, in the engine; nothing is computed yet.

        Parameters
        ----------
        encoder : Domain
            Of some of these columns.
        unit : str, default=None
            Column that tells whose a row is: of each person at most ``most`` rows are kept, the
            first by a hash of unit and codes; rows without a unit are not.
        most : int
        key : int below 2**64
            Secret key of the hash.

        Raises
        ------
        EngineError
            If the engine refuses the plan.
        """
        if self.engine == "dask":
            return _PartitionedCodes(self._frame[list(self.names)], encoder)
        prefix = "skdp_"
        # Also where names differ by no more than case, which some engines do not tell apart.
        while any(name.lower().startswith(prefix) for name in self._frame.collect_schema()):
            prefix += "_"
        lookups = _Lookups(prefix, self.engine)
        columns = {name: each.collecting(lookups) for name, each in self._columns.items()}
        expressions = encoder.expressions(LazyRows(self._frame, columns, self.engine))
        codes = {f"{prefix}{place}": code.cast(nw.Int64) for place, code in enumerate(expressions)}
        names = list(codes)

        def prepared() -> Any:
            rows = self._frame
            if self.engine == "duckdb":
                kinds = self.kinds.items()
                rows = _text_as_bytes(rows, [name for name, kind in kinds if kind == "string"])
            rows = lookups.joined(rows)
            if unit is None:
                return rows.with_columns(**codes).select(*names)
            owner = nw.col(unit)
            if self.engine == "pyspark" and self.kinds[unit] == "string":
                # Without a collation, under which two persons would be one.
                owner = owner.cast(nw.String)
            known = ~owner.is_null()
            if self.dtypes[unit] in ("Float32", "Float64"):
                known = known & ~owner.is_nan()
            frame = rows.filter(known).with_columns(**codes, **{f"{prefix}unit": owner})
            frame = frame.select(f"{prefix}unit", *names).filter(
                *(nw.col(name) >= 0 for name in names)
            )
            return _BOUNDS[self.engine](frame, f"{prefix}unit", names, most, key).select(*names)

        return _EngineCodes(_guarded(self.engine, prepared), names, encoder.shape, self.engine)

    def __repr__(self) -> str:
        return f"LazyRows({self.engine}, columns={self.kinds})"


class CodedRows:
    """Coded rows that stay in an engine: private, and asked for counts and sums only.

    Rows with a negative code, on any attribute, do not count. Every method raises EngineError if
    the engine fails.
    """

    shape: tuple[int, ...]

    def count(self, axes: Sequence[int]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Distinct rows of the attributes ``axes``, and how many rows each stands for.

        Parameters
        ----------
        axes : sequence of distinct int

        Returns
        -------
        codes : ndarray of int32, shape (m, len(axes))
            In no order.
        counts : ndarray of int64, shape (m,)
        """
        packing = _Packing([self.shape[axis] for axis in axes])
        *keys, counts = self._tally(
            lambda codes, zero: packing.keys([codes[a] for a in axes], zero)
        )
        return packing.codes(keys), counts

    def cells(self, sides: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Occupied cells of a grid of parts of equal width, and how many rows are in each.

        Parameters
        ----------
        sides : sequence of int
            Parts of each attribute: part p of s begins at the code ``p * size // s``.

        Returns
        -------
        cells : ndarray of int64, shape (m,)
            Their numbers in lexicographic order, ascending.
        counts : ndarray of int64, shape (m,)
        """
        _, (cells,), counts = self._tally_parts(sides)
        order = np.argsort(cells, kind="stable")
        return cells[order], counts[order]

    def parts(self, sides: Sequence[int]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Distinct rows of parts of the attributes, and how many rows each stands for.

        Parameters
        ----------
        sides : sequence of int
            Parts of each attribute, as for `cells`.

        Returns
        -------
        parts : ndarray of int32, shape (m, d)
            In no order.
        counts : ndarray of int64, shape (m,)
        """
        packing, keys, counts = self._tally_parts(sides)
        return packing.codes(keys), counts

    def _tally_parts(
        self, sides: Sequence[int]
    ) -> tuple[_Packing, list[NDArray[np.int64]], NDArray[np.int64]]:
        """Distinct rows of parts, packed, and their counts."""
        packing = _Packing(sides)
        *keys, counts = self._tally(functools.partial(_keys_of_parts, packing, self.shape, sides))
        return packing, keys, counts

    def sums_by_label(self, terms: LabelledSums) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows of each label, and sums of their terms: exact integers.

        Parameters
        ----------
        terms : LabelledSums

        Returns
        -------
        counts : ndarray of int64, shape (k,)
        sums : ndarray of int64, shape (k, d)
        """
        raise NotImplementedError

    def _tally(self, keys: Keys) -> list[NDArray[np.int64]]:
        """Distinct keys of the rows, a column each, and last their counts.

        ``keys`` gets the columns of codes, arrays or expressions, and a zero of the same kind.
        """
        raise NotImplementedError


Keys = Callable[[Sequence[Any], Any], list[Any]]


class LabelledSums(Protocol):
    """Integers of each row, one for each attribute, to be added up by a label of the row.

    The two methods must agree. Dask sends the object to workers.
    """

    @property
    def n_labels(self) -> int:
        """Labels are 0, 1, ..., below this."""

    def of_codes(self, codes: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows of each label, (k,), and sums of their terms, (k, d), for rows in memory."""

    def of_frame(self, frame: Any, names: Sequence[str], skipped: Any, engine: str) -> Any:
        """A lazy frame with a column "label", and the terms in place of the codes.

        Parameters
        ----------
        frame : narwhals LazyFrame
        names : sequence of str
            Its columns of codes, in the order of the attributes.
        skipped : narwhals Expr
            Whether a row does not count: its label must be negative.
        engine : {"polars", "duckdb", "pyspark"}
        """


def _keys_of_parts(
    packing: _Packing,
    shape: Sequence[int],
    sides: Sequence[int],
    codes: Sequence[Any],
    zero: Any,
) -> list[Any]:
    """Keys of rows of parts. No method: Dask sends it to workers, which need not get the frame."""
    parts = [
        zero if side == 1 else part_of(column, size, side)
        for column, size, side in zip(codes, shape, sides, strict=True)
    ]
    return packing.keys(parts, zero)


def part_of(column: Any, size: int, side: int) -> Any:
    """The part of each code: the largest p with p * size // side <= code.

    That is p * size < (code + 1) * side.

    Parameters
    ----------
    column : array of int64, or expression
        Codes, not negative.
    size, side : int
        Number of codes and of parts.
    """
    return _quotient((column + 1) * side - 1, size)


def _quotient(value: Any, divisor: int) -> Any:
    """Integer part of a quotient of integers that are not negative, below 2**45 and 2**22.

    A half more keeps the quotient of floats away from the integers by 0.5 / divisor, which is more
    than rounding moves it within these limits, twice where an engine takes the reciprocal.
    """
    if isinstance(value, nw.Expr):
        return _floor((value.cast(nw.Float64) + 0.5) / float(divisor))
    return value // divisor


class _EngineCodes(CodedRows):
    """Coded rows as a lazy frame with a column of integers for each attribute."""

    def __init__(
        self, frame: nw.LazyFrame, names: Sequence[str], shape: Sequence[int], engine: str
    ) -> None:
        self._frame = frame
        self._names = list(names)
        self._engine = engine
        self.shape = tuple(shape)

    @property
    def _skipped(self) -> Any:
        return functools.reduce(operator.or_, (nw.col(name) < 0 for name in self._names))

    def _tally(self, keys: Keys) -> list[NDArray[np.int64]]:
        # The rows to be skipped become one more group, which saves a filter.
        named = {
            f"key{number}": nw.when(self._skipped).then(nw.lit(-1)).otherwise(key)
            for number, key in enumerate(keys([nw.col(name) for name in self._names], nw.lit(0)))
        }
        found = self._group(self._frame.with_columns, named, {"count": nw.len()})
        known = found["key0"] >= 0
        return [found[name][known].astype(np.int64, copy=False) for name in [*named, "count"]]

    def sums_by_label(  # noqa: D102
        self, terms: LabelledSums
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        k, names = terms.n_labels, self._names
        found = self._group(
            lambda **key: terms.of_frame(self._frame, names, self._skipped, self._engine),
            {"label": nw.col("label")},
            {"count": nw.len(), **{name: nw.col(name).sum() for name in names}},
        )
        known = found["label"] >= 0
        place = found["label"][known].astype(np.int64)
        counts = np.zeros(k, dtype=np.int64)
        sums = np.zeros((k, len(names)), dtype=np.int64)
        counts[place] = found["count"][known]
        for axis, name in enumerate(names):
            sums[place, axis] = found[name][known]
        return counts, sums

    def _group(
        self, prepare: Callable[..., Any], keys: Mapping[str, Any], sums: Mapping[str, Any]
    ) -> dict[str, NDArray[Any]]:
        wanted = [*keys, *(name for name in sums if name != "count")]
        return _guarded(
            self._engine,
            lambda: _collect(
                prepare(**keys)
                .select(*wanted)
                .group_by(*keys)
                .agg(*(total.alias(name) for name, total in sums.items())),
                self._engine,
            ),
        )


class _PartitionedCodes(CodedRows):
    """Coded rows in the partitions of a Dask frame, each a frame of pandas on some worker."""

    def __init__(self, frame: Any, encoder: Encoder) -> None:
        self._frame = frame
        self._encoder = encoder
        self.shape = encoder.shape

    def _tally(self, keys: Keys) -> list[NDArray[np.int64]]:
        zero = np.zeros(0, dtype=np.int64)
        empty = keys([zero] * len(self.shape), zero)
        names = [f"key{number}" for number in range(len(empty))]
        meta = pd.DataFrame(dict.fromkeys([*names, "count"], zero))
        found = self._sum(_tally_partition, (keys,), meta, names)
        return [found[name].to_numpy() for name in [*names, "count"]]

    def sums_by_label(  # noqa: D102
        self, terms: LabelledSums
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        zero = np.zeros(0, dtype=np.int64)
        names = [f"sum{axis}" for axis in range(len(self.shape))]
        meta = pd.DataFrame(dict.fromkeys(["label", "count", *names], zero))
        found = self._sum(_sums_of_partition, (terms,), meta, ["label"])
        found = found.set_index("label").reindex(range(terms.n_labels), fill_value=0)
        return found["count"].to_numpy(), found[names].to_numpy()

    def _sum(
        self, kernel: Callable[..., Any], arguments: tuple[Any, ...], meta: Any, by: list[str]
    ) -> pd.DataFrame:
        """What a kernel makes of each partition, summed by some of its columns."""
        return _guarded(
            "dask",
            lambda: (
                self._frame.map_partitions(kernel, self._encoder, *arguments, meta=meta)
                .groupby(by, sort=False)
                .sum()
                .reset_index()
                .compute()
            ),
        )


def _represented(part: pd.DataFrame, encoder: Encoder) -> NDArray[np.int32]:
    codes = encoder.encode_columns(as_frame(part))
    return codes[(codes >= 0).all(axis=1)]


def _tally_partition(part: pd.DataFrame, encoder: Encoder, keys: Keys) -> pd.DataFrame:
    """Distinct keys of the rows of one partition, and their counts."""
    codes = _represented(part, encoder).astype(np.int64)
    found = keys(list(codes.T), np.zeros(len(codes), dtype=np.int64))
    named = {f"key{number}": key for number, key in enumerate(found)}
    return pd.DataFrame(named).groupby(list(named), sort=False).size().reset_index(name="count")


def _sums_of_partition(part: pd.DataFrame, encoder: Encoder, terms: LabelledSums) -> pd.DataFrame:
    """Counts and sums of the rows of one partition, a row for each label."""
    counts, sums = terms.of_codes(_represented(part, encoder))
    named = {f"sum{axis}": sums[:, axis] for axis in range(sums.shape[1])}
    return pd.DataFrame({"label": np.arange(len(counts)), "count": counts, **named})


class _Packing:
    """Rows of codes as one or a few int64 numbers each.

    Attributes
    ----------
    stages : list of list of int
        Positions of the attributes that share a number.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = list(sizes)
        self.stages: list[list[int]] = [[]]
        cells = 1
        for place, size in enumerate(sizes):
            if cells * size > _KEY_LIMIT:
                self.stages.append([])
                cells = 1
            self.stages[-1].append(place)
            cells *= size

    def keys(self, columns: Sequence[Any], start: Any) -> list[Any]:
        """Pack columns of codes, arrays or expressions, beginning with a zero."""
        packed = []
        for stage in self.stages:
            key = start
            for place in stage:
                key = key * self._sizes[place] + columns[place]
            packed.append(key)
        return packed

    def codes(self, keys: Sequence[NDArray[np.int64]]) -> NDArray[np.int32]:
        """The rows of codes of packed numbers."""
        codes = np.empty((len(keys[0]), len(self._sizes)), dtype=np.int32, order="F")
        for stage, key in zip(self.stages, keys, strict=True):
            rest = key
            for place in reversed(stage):
                rest, codes[:, place] = np.divmod(rest, self._sizes[place])
        return codes


# Privacy of the bounds below. Whether a row is kept depends on the rows of the same person and on
# a secret key only: equal rows of a person are numbered (which of them gets which number changes
# nothing), each gets a hash of person, codes and number, and the first of each person stay.


def _bound_polars(frame: Any, unit: str, names: list[str], most: int, key: int) -> Any:
    pl: Any = nw.get_native_namespace(frame)
    number, order = f"{unit}_number", f"{unit}_order"
    native = nw.to_native(frame).with_columns(
        pl.int_range(pl.len()).over(unit, *names).alias(number)
    )
    hashed = pl.struct(unit, *names, number).hash(key)
    native = native.with_columns(hashed.alias(order))
    return nw.from_native(native.filter(pl.col(order).rank("ordinal").over(unit) <= most))


def _bound_duckdb(frame: Any, unit: str, names: list[str], most: int, key: int) -> Any:
    row, number, order = ", ".join([unit, *names]), f"{unit}_number", f"{unit}_order"
    relation = nw.to_native(frame)
    relation = relation.select(f"*, row_number() OVER (PARTITION BY {row}) AS {number}")
    relation = relation.select(f"*, hash({row}, {number}, {key}::UBIGINT) AS {order}")
    rank = f"row_number() OVER (PARTITION BY {unit} ORDER BY {order})"
    relation = relation.select(f"*, {rank} AS {unit}_rank")
    return nw.from_native(relation.filter(f"{unit}_rank <= {most}"))


def _bound_pyspark(frame: Any, unit: str, names: list[str], most: int, key: int) -> Any:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    row, number, order = [unit, *names], f"{unit}_number", f"{unit}_order"
    equal = Window.partitionBy(*row).orderBy(F.lit(0))
    native = nw.to_native(frame).withColumn(number, F.row_number().over(equal))
    # Spark's integers have a sign.
    native = native.withColumn(order, F.xxhash64(*row, number, F.lit(key - 2**63)))
    rank = F.row_number().over(Window.partitionBy(unit).orderBy(order))
    return nw.from_native(native.withColumn(f"{unit}_rank", rank).filter(f"{unit}_rank <= {most}"))


_BOUNDS = {"polars": _bound_polars, "duckdb": _bound_duckdb, "pyspark": _bound_pyspark}


def _guarded(engine: str, ask: Callable[[], Any]) -> Any:
    """What the engine answers; its failures without its words, which may quote values."""
    try:
        return ask()
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException:
        # Also panics of Rust, which are no Exception. The error is raised below, outside of
        # this block, so that it does not carry the engine's error as its context.
        pass
    raise EngineError(
        f"{_ENGINES[engine]} failed to count the rows. Its message is withheld, because it may "
        "quote values of the data: run the plan of the frame by itself to read it. What was "
        "charged for this fit stays spent, and nothing was released. If memory was short, declare "
        "fewer columns or bins: every distinct coded row takes 16 bytes and 4 more for each column."
    )


def _collect(frame: nw.LazyFrame, engine: str) -> dict[str, NDArray[Any]]:
    """Run a plan: its columns, which hold integers or numbers without gaps."""
    if engine == "polars":
        version = tuple(map(int, nw.get_native_namespace(frame).__version__.split(".")[:2]))
        options: dict[str, Any] = {"engine": "streaming"} if version >= _POLARS_STREAMING else {}
        table = frame.collect(**options)
    else:
        # To pandas PySpark converts in a way that newer pandas warns of.
        table = frame.collect(backend="pyarrow" if engine == "pyspark" else "pandas")
    return {name: table[name].to_numpy() for name in table.columns}


def read_rows(data: Any) -> Frame | LazyRows:
    """Read a container of rows, lazy frames of the supported engines included.

    Parameters
    ----------
    data : as for :func:`skdp.frames.as_frame`, or a lazy frame
        Of Polars, DuckDB, Dask or PySpark. Only its schema is read.

    Raises
    ------
    TypeError, ValueError, DomainError
        As :func:`skdp.frames.as_frame`; also for lazy frames of other libraries, and for a plan
        whose columns cannot be told.
    """
    if isinstance(data, LazyRows):
        return data
    if is_dask(data):
        return _dask_rows(data)
    frame = nw.from_native(data, pass_through=True, allow_series=True)
    # What is in memory, or nothing that narwhals knows, is the other reader's.
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
    if engine not in _ENGINES:
        raise TypeError(
            f"Lazy frames of {name} are not supported. Use Polars, DuckDB, Dask or PySpark (`pip "
            "install 'skdp[duckdb]'`, `'skdp[dask]'`, `'skdp[spark]'`), or collect the frame first."
        )
    schema = None
    try:
        schema = frame.collect_schema()
    except Exception:
        # Raised below, without the engine's error as its context: a plan may hold values.
        pass
    if schema is None:
        raise DomainError(
            f"{_ENGINES[engine]} cannot tell the columns of this lazy frame: its plan fails before "
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
    # Python objects inside an engine are nothing that it could look at.
    return "other" if kind == "object" else kind
