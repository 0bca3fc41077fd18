"""Many tables counted together in few passes over the rows; Parquet files.

Parquet files: their columns, and their rows in DuckDB or in memory.

DuckDB and PyArrow are optional. What they say about a file they cannot read is not passed on,
because it may quote bytes of it.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib.util
import itertools
import math
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._validation import CodeArray, IntArray, batches
from .frame import check_unique

_MAGIC = b"PAR1"
_SUFFIXES = {".parquet", ".pq"}
# Files of at most this many bytes are loaded if PyArrow is installed: rows in memory are counted
# faster than by an engine, which reads a wide table once for every few columns. The release is the
# same.
_LOADED = 1 << 28
_UNREADABLE = "{} is not a Parquet file, or it is damaged."


class ParquetFile:
    """The columns of a Parquet file; no value is read until its rows are asked for.

    DuckDB counts files of more than 256 MiB where they are, and all files if PyArrow is missing.

    Parameters
    ----------
    path : str or path-like

    Attributes
    ----------
    names : list of str
        Names of the columns of the top level.

    Raises
    ------
    ValueError
        If it is not a Parquet file, is damaged, names a column twice, or neither DuckDB nor PyArrow
        is installed.
    OSError
        If it cannot be opened.
    """

    names: list[str]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        with open(path, "rb"):
            pass  # raises what files raise, with the name of the file
        if not is_parquet_file(path):
            raise ValueError(_UNREADABLE.format(self._path))
        check_library()
        self._relation: Any = None
        if _has("duckdb"):
            self._relation, self.names = self._opened(self._scan)
        self._empty: Any = None
        if _has("pyarrow"):
            scanned = self.names if self._relation is not None else None
            self._empty, self.names = self._opened(self._read_schema)
            if scanned != self.names:
                # DuckDB renames columns whose names differ in case only.
                self._relation = None
        check_unique(self.names)

    def empty(self, columns: Sequence[str]) -> Any:
        """A table of these columns without rows: names and types."""
        if self._lazy(columns):
            return self._relation.select(_listed(columns)).limit(0)
        return self._empty.select(list(columns))

    def schema(self, columns: Sequence[str]) -> Any:
        """A table of these columns without rows, in memory."""
        if self._empty is None:
            return self.empty(columns).df()
        return self._empty.select(list(columns))

    def rows(self, columns: Sequence[str]) -> Any:
        """These columns: lazy in DuckDB, or in memory."""
        if self._lazy(columns):
            return self._relation.select(_listed(columns))
        return self.table(columns)

    def table(self, columns: Sequence[str]) -> Any:
        """These columns in memory: a table of PyArrow if it is installed, of pandas otherwise."""
        if self._empty is None:
            return self._relation.select(_listed(columns)).df()
        from pyarrow import parquet

        return parquet.read_table(self._path, columns=list(columns), partitioning=None)

    def _lazy(self, columns: Sequence[str]) -> bool:
        """Whether DuckDB counts these columns where they are."""
        if self._relation is None or self._empty is None:
            return self._relation is not None
        if os.path.getsize(self._path) <= _LOADED:
            return False
        # A column that was written without any value has no type; DuckDB calls it an integer.
        return all(str(self._empty.schema.field(name).type) != "null" for name in columns)

    def _opened(self, read: Callable[[], tuple[Any, list[str]]]) -> tuple[Any, list[str]]:
        """What a library reads of the columns; damaged files raise almost anything."""
        found = None
        with contextlib.suppress(Exception):
            found = read()
        # Raised here, without the library's error as its context.
        if found is None:
            raise ValueError(_UNREADABLE.format(self._path))
        return found

    def _scan(self) -> tuple[Any, list[str]]:
        import duckdb

        # What does not fit into memory is written to a folder that only this user can read, and
        # that is gone when the process ends.
        spill = tempfile.mkdtemp(prefix="skdp-")
        weakref.finalize(self, shutil.rmtree, spill, ignore_errors=True)
        # A connection of its own; * ? [ in the name of a file are not patterns.
        self._connection = duckdb.connect(config={"temp_directory": spill})
        name = re.sub(r"([*?\[])", r"[\1]", self._path)
        relation = self._connection.read_parquet(name, hive_partitioning=False)
        return relation, list(relation.columns)

    def _read_schema(self) -> tuple[Any, list[str]]:
        from pyarrow import parquet

        empty = parquet.read_schema(self._path).remove_metadata().empty_table()
        return empty, list(empty.column_names)


def is_parquet_name(path: str | os.PathLike[str]) -> bool:
    """Whether the name of a file ends in .parquet or .pq."""
    return Path(path).suffix.lower() in _SUFFIXES


def is_parquet_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins and ends like a Parquet file."""
    with open(path, "rb") as file:
        if file.read(4) != _MAGIC:
            return False
        # A table has 12 more bytes at least.
        if file.seek(0, os.SEEK_END) < 12:
            return False
        file.seek(-4, os.SEEK_END)
        return file.read(4) == _MAGIC


def write_parquet(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a table to a Parquet file.

    Parameters
    ----------
    frame : pandas.DataFrame
        Objects of mixed types become text.
    path : str or path-like
        An existing file is replaced.

    Raises
    ------
    ValueError
        If neither DuckDB nor PyArrow is installed.
    """
    check_library()
    plain = frame.copy(deep=False)
    for name, column in frame.items():
        if column.dtype == object or isinstance(column.dtype, pd.IntervalDtype):
            plain[name] = _plain(column)
    if _has("pyarrow"):
        plain.to_parquet(path, index=False, engine="pyarrow")
        return
    import duckdb

    with (
        tempfile.TemporaryDirectory(prefix="skdp-") as spill,
        duckdb.connect(config={"temp_directory": spill}) as connection,
    ):
        connection.from_df(plain).write_parquet(os.fspath(path))


def _plain(column: pd.Series) -> pd.Series:
    """A column of objects as one of a type that files have."""
    present = [value for value in column if not pd.isna(value)]
    if all(isinstance(value, str) for value in present):
        return column
    better = column.infer_objects()
    if better.dtype != object and not isinstance(better.dtype, pd.IntervalDtype):
        return better
    texts = [None if pd.isna(value) else str(value) for value in column]
    return pd.Series(texts, index=column.index, dtype=object)


def check_library() -> None:
    """Raise ValueError if no library for Parquet is installed."""
    if not (_has("duckdb") or _has("pyarrow")):
        raise ValueError(
            "Parquet files need DuckDB or PyArrow: `pip install 'skdp[duckdb]'` (larger than "
            "memory) or `pip install 'skdp[parquet]'`. CSV files need neither."
        )


def _has(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


def _listed(columns: Sequence[str]) -> str:
    """Names of columns in SQL."""
    return ", ".join('"' + name.replace('"', '""') + '"' for name in columns)


# ------------------------------------------------------------------------------------------------
# Which tables one pass over the rows counts, and which of them one key of a row can answer.
#
# Many tables of a few attributes are asked for together. A pass counts as many of them as fit into
#   a
# bounded number of cells. Within a pass, tables that share attributes are the margins of a block,
# the joint table of a few more attributes: all pairs of four columns take one key and one count per
# row instead of six. What is counted together follows from public sizes alone.


# --- rows of codes as integers: mixed-radix numbers, the first column most significant

# Keys are int64; a group of columns is packed into one key while its cells stay below this.
KEY_LIMIT = 2**62


def pack(columns: Sequence[Any], sizes: Sequence[int], start: Any) -> Any:
    """Number of each row, as arrays or as expressions of an engine.

    Parameters
    ----------
    columns : sequence of arrays or expressions
        Codes, one entry for each size.
    sizes : sequence of int
        Number of codes of each column.
    start : array of int64, or expression
        Zeros, as many as there are rows.
    """
    key = copy.copy(start)
    for column, size in zip(columns, sizes, strict=True):
        key *= size
        key += column
    return key


def unpack(key: IntArray, axes: Sequence[int], sizes: Sequence[int], codes: CodeArray) -> IntArray:
    """Write the codes of the packed ``axes`` and return the rest of the key, a rank."""
    left = np.empty_like(key)
    for part in batches(len(key)):
        rest = key[part]
        for axis in reversed(axes):
            whole = rest // sizes[axis]
            # Faster than `divmod`, whose remainder is a second division.
            codes[part, axis] = rest - whole * sizes[axis]
            rest = whole
        left[part] = rest
    return left


class Packing:
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
            if cells * size > KEY_LIMIT:
                self.stages.append([])
                cells = 1
            self.stages[-1].append(place)
            cells *= size

    def keys(self, columns: Sequence[Any], start: Any) -> list[Any]:
        """Pack columns of codes, arrays or expressions, beginning with a zero."""
        return [
            pack([columns[p] for p in stage], [self._sizes[p] for p in stage], start)
            for stage in self.stages
        ]

    def codes(self, keys: Sequence[IntArray]) -> CodeArray:
        """The rows of codes of packed numbers."""
        codes = np.empty((len(keys[0]), len(self._sizes)), dtype=np.int32, order="F")
        for stage, key in zip(self.stages, keys, strict=True):
            unpack(key, stage, self._sizes, codes)
        return codes


# --- one pass over the rows

# Cells of a block of several tables in a pass, which then fits into a processor's cache.
_BLOCK_CELLS = 2**18

# Cells of all tables, and of all blocks, of one pass: 128 megabytes each.
PASS_CELLS = 2**24

# Larger tables are an error of the caller: 2**27 int64 cells are one gigabyte.
_MOST_CELLS = 2**27

# Blocks that are searched for one that has a table among its margins.
_LOOKED_AT = 8

Groups = Sequence[NDArray[np.integer] | None]


@dataclass(frozen=True, eq=False)
class Column:
    """An attribute as it is counted: by its codes, or by groups of them.

    Attributes
    ----------
    axis : int
    size : int
        Number of groups.
    group : ndarray of int, optional
        Group of each code; a record with a negative one does not count. None: the codes.
    """

    axis: int
    size: int
    group: NDArray[np.integer] | None = None

    @functools.cached_property
    def width(self) -> int:
        """Number of groups, and one more for records that do not count."""
        return self.size + (self.group is not None and bool((self.group < 0).any()))

    def groups(self) -> NDArray[np.integer]:
        """Group of each code, where there are groups."""
        return np.arange(self.size) if self.group is None else self.group


@dataclass(frozen=True, eq=False)
class Marginal:
    """A table to be counted: one axis for each column, in this order."""

    columns: tuple[Column, ...]

    @functools.cached_property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the columns."""
        return tuple(column.size for column in self.columns)

    @property
    def axes(self) -> tuple[int, ...]:
        """Attributes, one for each column."""
        return tuple(column.axis for column in self.columns)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)


def marginals_of(
    shape: Sequence[int], sets: Sequence[tuple[Sequence[int], Groups]]
) -> list[Marginal]:
    """Tables asked for by attributes and groups of their codes.

    Parameters
    ----------
    shape : sequence of int
        Number of codes of each attribute.
    sets : sequence of (sequence of distinct int, sequence of (ndarray of int or None))
        As for :meth:`CountTable.regrouped`. Equal columns are recognised where they have the same
        array of groups.

    Raises
    ------
    ValueError
        If axes are not distinct attributes, if there are more or fewer groups than axes, or if a
        table would have more than 2**27 cells.
    """
    known: dict[Hashable, Column] = {}
    found = []
    for axes, groups in sets:
        kept = check_axes(axes, len(shape))
        columns = []
        for axis, group in zip(kept, groups, strict=True):
            key = (axis, None if group is None else id(group))
            if key not in known:
                size = shape[axis] if group is None else int(group.max()) + 1
                known[key] = Column(axis, size, group)
            columns.append(known[key])
        found.append(Marginal(tuple(columns)))
        check_cells(found[-1].shape)
    return found


def first_unfit(codes: CodeArray) -> IntArray:
    """Cell of each row: 0 if it is kept, 1 + the first attribute without a code, or that of rules.

    Rows that break a rule have codes below -1, and come after the last attribute.
    """
    n, d = codes.shape
    cells = np.zeros(n, dtype=np.int64)
    for axis in range(d - 1, -1, -1):
        cells[codes[:, axis] < 0] = axis + 1
    if d:
        cells[codes[:, 0] < -1] = d + 1
    return cells


def check_axes(axes: Sequence[int], n_attributes: int) -> list[int]:
    """Distinct numbers of attributes as a list of integers; ValueError for others."""
    kept = [int(axis) for axis in axes]
    if len(set(kept)) != len(kept) or any(not 0 <= axis < n_attributes for axis in kept):
        raise ValueError(f"axes must be distinct numbers in 0..{n_attributes - 1}, got {kept}.")
    return kept


def check_cells(shape: Sequence[int]) -> int:
    """Number of cells of a dense table; ValueError if it has more than 2**27."""
    cells = math.prod(shape)
    if cells > _MOST_CELLS:
        raise ValueError(
            f"A dense array of shape {tuple(shape)} has {cells} cells, more than {_MOST_CELLS}; "
            "work with the rows of codes, or project to fewer attributes first."
        )
    return cells


@dataclass(eq=False)
class _Block:
    """Columns that are counted jointly, and the tables that are margins of their joint table.

    Attributes
    ----------
    parts : list of list of Column
        The columns, in the order of the axes; those of a part occur together in other blocks too.
    members : list of int
        Numbers of the tables.
    """

    parts: list[list[Column]]
    members: list[int] = field(default_factory=list)

    @functools.cached_property
    def columns(self) -> list[Column]:
        """The columns in the order of the axes."""
        return [column for part in self.parts for column in part]

    @functools.cached_property
    def shape(self) -> tuple[int, ...]:
        """Widths of the columns."""
        return tuple(column.width for column in self.columns)

    @functools.cached_property
    def cells(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)


Piece = TypeVar("Piece", Marginal, _Block)


def split(pieces: Sequence[Piece], most: int | None = None) -> Iterator[list[Piece]]:
    """Cut tables or blocks, in their order, into passes of few cells, or of one piece.

    Parameters
    ----------
    pieces : sequence of Marginal or of Block
    most : int, default=None
        Cells of a pass; 2**24 by default.
    """
    most = PASS_CELLS if most is None else most
    part: list[Piece] = []
    cells = 0
    for piece in pieces:
        if part and cells + piece.cells > most:
            yield part
            part, cells = [], 0
        part.append(piece)
        cells += piece.cells
    if part:
        yield part


def plan_pass(marginals: Sequence[Marginal]) -> list[_Block]:
    """Blocks of one pass: as large as is useful, if all together are within its limit."""
    most = _BLOCK_CELLS
    while True:
        blocks = plan_blocks(marginals, most)
        if most < 2 or sum(block.cells for block in blocks) <= PASS_CELLS:
            return blocks
        most //= 4


def plan_blocks(marginals: Sequence[Marginal], most: int) -> list[_Block]:
    """Blocks of few cells that together have all tables as margins.

    Parameters
    ----------
    marginals : sequence of Marginal
    most : int
        Cells of a block that has more than one table.
    """
    return _Cover(marginals, most).blocks


class _Cover:
    """Collects tables into blocks.

    The columns are put into groups whose joint tables have at most the root of the cells of a
    block. Tables on the same groups are neighbours: they are put into one block as long as it stays
    small. All pairs of two groups are such a block.
    """

    def __init__(self, marginals: Sequence[Marginal], most: int) -> None:
        self._most = most
        self.blocks: list[_Block] = []
        self._with: dict[Column, list[tuple[_Block, set[Column]]]] = {}
        # Each column once, in the order in which they are asked for.
        columns = dict.fromkeys(column for each in marginals for column in each.columns)
        self._width = {column: column.width for column in columns}
        self._order = {column: place for place, column in enumerate(columns)}
        self._group = _group_of(self._width, math.isqrt(most))
        near: dict[tuple[int, ...], list[int]] = {}
        for number, each in enumerate(marginals):
            groups = tuple(sorted({self._group[column] for column in each.columns}))
            near.setdefault(groups, []).append(number)
        # Tables on many groups first: those on fewer may be among their margins.
        for groups in sorted(near, key=lambda groups: (-len(groups), groups)):
            self._collect(near[groups], marginals)

    def _collect(self, numbers: Sequence[int], marginals: Sequence[Marginal]) -> None:
        """Put tables on the same groups into blocks."""
        joined: set[Column] = set()
        members: list[int] = []
        for number in numbers:
            columns = set(marginals[number].columns)
            block = self._holding(marginals[number].columns)
            if block is not None:
                block.members.append(number)
                continue
            wider = joined | columns
            if members and math.prod(self._width[column] for column in wider) > self._most:
                self._close(joined, members)
                wider, members = columns, []
            joined, members = wider, [*members, number]
        if members:
            self._close(joined, members)

    def _holding(self, columns: Sequence[Column]) -> _Block | None:
        """A finished block that has all these columns, if one is found quickly."""
        if not columns:
            return self.blocks[0] if self.blocks else None
        near = min((self._with.get(column, []) for column in columns), key=len)
        found = (block for block, whole in near[:_LOOKED_AT] if whole.issuperset(columns))
        return next(found, None)

    def _close(self, columns: set[Column], members: list[int]) -> None:
        """Make a block of these columns, those of a group side by side."""
        parts: dict[int, list[Column]] = {}
        for column in sorted(columns, key=self._order.__getitem__):
            parts.setdefault(self._group[column], []).append(column)
        block = _Block([parts[group] for group in sorted(parts)], members)
        self.blocks.append(block)
        for column in columns:
            self._with.setdefault(column, []).append((block, columns))


def _group_of(widths: dict[Column, int], most: int) -> dict[Column, int]:
    """Group of each column: the first with room for it, wide columns first."""
    cells: list[int] = []
    found = {}
    for column in sorted(widths, key=lambda column: -widths[column]):
        width = widths[column]
        fits = (place for place, held in enumerate(cells) if held * width <= most)
        place = next(fits, len(cells))
        if place == len(cells):
            cells.append(1)
        cells[place] *= width
        found[column] = place
    return found


# --- Tallies: exact counts of many tables, added up from batches of rows

Codes = Mapping[int, NDArray[np.integer]]

# Numbers of the rows, and how many there can be.
_Key = tuple[NDArray[np.integer], int]


class Tallies:
    """Counts of many tables while rows are added batch by batch.

    Memory is that of the cells, which are public, and of one batch.

    Parameters
    ----------
    marginals : sequence of Marginal
    blocks : sequence of Block
        Some or all of the blocks that were planned for them.

    Attributes
    ----------
    marginals : list of Marginal
    cells : ndarray of int64
        Counts of the cells of all blocks, one block after the other.
    axes : list of int
        Attributes whose codes are needed, ascending.
    """

    def __init__(self, marginals: Sequence[Marginal], blocks: Sequence[_Block]) -> None:
        self.marginals = list(marginals)
        self._blocks = list(blocks)
        self._starts = [0, *itertools.accumulate(block.cells for block in self._blocks)]
        self.cells: IntArray = np.zeros(self._starts[-1], dtype=np.int64)
        columns = dict.fromkeys(column for block in self._blocks for column in block.columns)
        self._lookups = {column: _lookup(column) for column in columns}
        self.axes = sorted({column.axis for column in columns})

    @property
    def empty(self) -> Callable[[], Tallies]:
        """Makes tallies of the same cells without rows, also after a journey to a worker."""
        return functools.partial(Tallies, self.marginals, self._blocks)

    def add(self, codes: Codes, n_rows: int, weights: IntArray | None = None) -> None:
        """Count a batch of rows.

        Parameters
        ----------
        codes : mapping of int to ndarray of int, shape (n_rows,)
            Codes of each attribute of :attr:`axes`; none is negative.
        n_rows : int
        weights : ndarray of int64, shape (n_rows,), default=None
            Number of records that each row stands for; one each by default.
        """
        # Exact sums of integers; faster than `bincount`, whose result would have to be added.
        step: Any = 1 if weights is None else weights
        keys = self._keys_of_parts(codes)
        for place, block in enumerate(self._blocks):
            start, stop = self._starts[place : place + 2]
            parts = [keys[id(part)] for part in block.parts]
            np.add.at(self.cells[start:stop], _joined(parts, n_rows), step)

    def keys(self, codes: Sequence[Any], zero: Any) -> list[Any]:
        """Where each row is counted among :attr:`cells`, one number for each block.

        Parameters
        ----------
        codes : sequence of expressions
            Codes of all attributes. Columns must not have groups.
        zero : expression
        """
        return [
            pack([codes[column.axis] for column in block.columns], block.shape, zero) + start
            for block, start in zip(self._blocks, self._starts, strict=False)
        ]

    def tables(self) -> dict[int, IntArray]:
        """The tables that the blocks have, by their numbers."""
        found = {}
        for place, block in enumerate(self._blocks):
            joint = self.cells[self._starts[place] : self._starts[place + 1]].reshape(block.shape)
            for number in block.members:
                found[number] = _margin(joint, block.columns, self.marginals[number].columns)
        return found

    def _keys_of_parts(self, codes: Codes) -> dict[int, _Key]:
        """Packed columns of each part, by its identity."""
        columns = {
            column: codes[column.axis] if lookup is None else lookup.take(codes[column.axis])
            for column, lookup in self._lookups.items()
        }
        known: dict[tuple[Column, ...], _Key] = {}
        found = {}
        for block in self._blocks:
            for part in block.parts:
                held = tuple(part)
                if held not in known:
                    each = [(columns[column], column.width) for column in held]
                    cells = math.prod(column.width for column in held)
                    known[held] = each[0] if len(each) == 1 else (_joined(each), cells)
                found[id(part)] = known[held]
        return found


def _lookup(column: Column) -> NDArray[np.integer] | None:
    """Number of each code in its column, in a small type; dropped codes have the last one."""
    if column.group is None:
        return None
    numbers = np.where(column.group < 0, column.size, column.group)
    return numbers.astype(np.min_scalar_type(column.width))


def _joined(keys: Sequence[_Key], n_rows: int = 0) -> NDArray[np.integer]:
    """One number of each row from several; zero, if there is none."""
    if not keys:
        return np.zeros(n_rows, dtype=np.int64)
    cells = math.prod(number for _, number in keys)
    joined: NDArray[Any] = keys[0][0].astype(np.int32 if cells < 2**31 else np.int64, copy=False)
    for key, number in keys[1:]:
        joined = joined * joined.dtype.type(number)
        joined += key
    return joined


def _margin(joint: IntArray, columns: Sequence[Column], wanted: Sequence[Column]) -> IntArray:
    """Sums over all columns but the wanted ones, in their order."""
    inside = tuple(slice(column.size) if column in wanted else slice(None) for column in columns)
    others = tuple(place for place, column in enumerate(columns) if column not in wanted)
    left = [column for column in columns if column in wanted]
    summed: IntArray = np.asarray(joint[inside].sum(axis=others))
    return np.asarray(summed.transpose([left.index(each) for each in wanted]), order="C")


def regroup(table: IntArray, columns: Sequence[Column]) -> IntArray:
    """A table over codes as one over the groups of its columns.

    Parameters
    ----------
    table : ndarray of int64
        One axis for each column, over the codes of its attribute.
    columns : sequence of Column
    """
    for place, column in enumerate(columns):
        if column.group is None:
            continue
        order = np.argsort(column.group, kind="stable")
        present, starts = np.unique(column.group[order], return_index=True)
        sums = np.add.reduceat(table.take(order, axis=place), starts, axis=place)
        shape = list(table.shape)
        shape[place] = column.size
        table = np.zeros(shape, dtype=np.int64)
        known = np.flatnonzero(present >= 0)
        np.moveaxis(table, place, 0)[present[known]] = np.moveaxis(sums, place, 0)[known]
    return table
