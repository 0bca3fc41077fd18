"""From rows to counts: records are coded, a few of each person kept, the coded rows counted.

`CountTable` holds the distinct coded rows and how often each occurs. It is the last object that
holds exact counts, and is meant to be a local variable of ``fit``. Everything an algorithm needs to
know of the records goes through it, and nothing forms a cell number of the full domain, so that
domains of 1e88 cells cost no more than their distinct rows.

There is one way to code: the public description that each attribute gives of its codes is applied
to columns in memory. A lazy frame is read once, in batches, and leaves nothing but small integers,
in a temporary file without a name where they are many.
"""

from __future__ import annotations

import functools
import itertools
import math
import mmap
import operator
import tempfile
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import BoolArray, CodeArray, IntArray, batches, integer_sums, run_starts
from ..domain import Domain
from .frame import Frame, LazyRows
from .persons import Contributions, few_of_each, identities, some_of_each

# From codes to integers.
Numbers = Callable[[IntArray], IntArray]

# Rows are packed into int64 keys of fewer cells than this.
_KEY_LIMIT = 2**62

# Below this many cells a key is counted by position instead of sorted.
_DENSE_CELLS = 2**16

# Larger tables are counted by their distinct rows, where nobody needs all cells.
_WHOLE_CELLS = 2**22

# Most cells of a block of several tables, which then fits into a processor's cache.
_BLOCK_CELLS = 2**14

# Rows of a part, and distinct rows of parts that wait to be merged.
MERGED_ROWS = 2**20


def parts_of(codes: CodeArray, n_rows: int | None = None) -> Iterator[CodeArray]:
    """Rows without a negative code, some at a time: they may lie in a file."""
    for each in batches(len(codes), n_rows):
        part = np.asarray(codes[each])
        fits = (part >= 0).all(axis=1)
        yield part if fits.all() else part[fits]
        if isinstance(codes.base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            # Else all of the file would stay in memory after a pass.
            codes.base.madvise(mmap.MADV_DONTNEED)


class Projections:
    """Dense tables of exact counts, of a few attributes each."""

    shape: tuple[int, ...]

    def batches(self) -> Iterator[Batch]:
        """All rows, some at a time."""
        raise NotImplementedError

    def regrouped(
        self, axes: Sequence[int], groups: Sequence[NDArray[np.integer] | None]
    ) -> IntArray:
        """Exact counts of all cells of groups of codes, as `dense` gives those of codes.

        Parameters
        ----------
        axes : sequence of distinct int
        groups : sequence of (ndarray of int or None)
            Group of each code, 0, 1, ... without gaps; None for the codes themselves.
        """
        return next(self.regrouped_many([(axes, groups)]))

    def regrouped_many(self, sets: Sequence[tuple[Sequence[int], Groups]]) -> Iterator[IntArray]:
        """Exact counts as `regrouped` gives them, of many sets of attributes together.

        Rows are read in a few passes, each for as many sets as are held at once in bounded memory;
        sets that share columns share work.

        Parameters
        ----------
        sets : sequence of (sequence of distinct int, sequence of (ndarray of int or None))
            Attributes and groups of each set. Use the same array for the same groups.

        Yields
        ------
        ndarray of int64
            Counts of each set, in the order of ``sets``.

        Raises
        ------
        ValueError
            If a set is not of distinct attributes, or has more than 2**27 cells.
        """
        for some in split(marginals_of(self.shape, sets)):
            found: dict[int, IntArray] = {}
            for blocks in split(plan_blocks(some, _BLOCK_CELLS)):
                found |= counted(self.batches(), some, blocks)
            yield from (found[number] for number in range(len(some)))

    def dense(self, axes: Sequence[int] | None = None) -> IntArray:
        """Exact counts of all cells, as an array with one axis per attribute.

        Parameters
        ----------
        axes : sequence of distinct int, optional
            Attributes to keep; all by default.

        Raises
        ------
        ValueError
            If the array would have more than 2**27 cells.
        """
        kept = range(len(self.shape)) if axes is None else axes
        return self.regrouped(kept, [None] * len(kept))


class CountTable(Projections):
    """Distinct rows of codes in lexicographic order, with their exact counts.

    Use :meth:`from_codes` to build one from the codes of records; the constructor trusts that
    rows are distinct and sorted.

    Parameters
    ----------
    codes : ndarray of shape (m, d), int32
        Distinct rows in lexicographic order.
    counts : ndarray of shape (m,), int64
        How many records have each row.
    shape : tuple of int
        Number of codes of each of the d attributes.
    """

    def __init__(self, codes: ArrayLike, counts: ArrayLike, shape: Sequence[int]) -> None:
        self.codes: CodeArray = np.asarray(codes, dtype=np.int32)
        self.counts: IntArray = np.asarray(counts, dtype=np.int64)
        self.shape = tuple(int(size) for size in shape)
        _check_shapes(self.codes, self.counts, self.shape)

    @classmethod
    def from_codes(
        cls, codes: ArrayLike, shape: Sequence[int], counts: ArrayLike | None = None
    ) -> CountTable:
        """Count the distinct rows of ``codes``.

        Parameters
        ----------
        codes : array-like of shape (n, d), integers
            One row per record. A row with a negative code is a record that the domain cannot
            represent; it is dropped.
        shape : sequence of int
            Number of codes of each attribute.
        counts : array-like of shape (n,), optional
            Number of records that each row stands for; one each by default.

        Raises
        ------
        ValueError
            If the shapes do not fit together, codes are not integers or not below the attribute's
            size, or counts are negative.
        """
        rows = np.asarray(codes)
        # Products of Python's integers cannot overflow.
        shape = [int(size) for size in shape]
        weights = np.asarray(np.ones(len(rows)) if counts is None else counts, dtype=np.int64)
        _check_shapes(rows, weights, shape)
        if not np.issubdtype(rows.dtype, np.integer) and rows.size:
            raise ValueError(f"codes must be integers, got {rows.dtype}.")
        if weights.min(initial=1) < 0:
            raise ValueError("counts must not be negative.")
        keep: Any = True if weights.all() else weights > 0
        # Column by column: on the Fortran-ordered arrays of Domain.encode each test is one scan.
        for axis, size in enumerate(shape):
            column = rows[:, axis]
            if column.max(initial=-1) >= size:
                raise ValueError(f"Codes of attribute {axis} must lie below its size {size}.")
            if column.min(initial=0) < 0:
                keep = keep & (column >= 0)
        if keep is not True:
            rows, weights = rows[keep], weights[keep]
        return cls._of(rows, shape, weights)

    @classmethod
    def _of(cls, rows: CodeArray, shape: Sequence[int], weights: IntArray) -> CountTable:
        columns, counts = _distinct(list(rows.T), shape, weights)
        codes = np.array(columns, dtype=np.int32).reshape(len(shape), len(counts))
        return cls(codes.T, counts, shape)

    @classmethod
    def merged(cls, parts: Iterable[CodeArray], shape: Sequence[int]) -> CountTable:
        """Count the distinct rows of many arrays of codes, in memory for the distinct rows alone.

        Parameters
        ----------
        parts : iterable of ndarray of int, shape (n_i, d)
            As `from_codes` takes them.
        shape : sequence of int
        """
        held = [cls.from_codes(np.zeros((0, len(shape)), dtype=np.int32), shape)]
        for part in parts:
            held.append(cls.from_codes(part, shape))
            # Merged when they are as many, so that each row is sorted a few times only.
            if sum(len(each.counts) for each in held[1:]) > max(len(held[0].counts), MERGED_ROWS):
                held = [_joined(held)]
        filled = [each for each in held if len(each.counts)] or held[:1]
        return filled[0] if len(filled) == 1 else _joined(filled)

    @classmethod
    def from_dense(cls, counts: IntArray) -> CountTable:
        """The occupied cells of an array with one axis for each attribute.

        Parameters
        ----------
        counts : ndarray of int64
        """
        return cls(np.argwhere(counts), counts[counts != 0], counts.shape)

    @property
    def n(self) -> int:
        """Exact number of records: private."""
        return int(self.counts.sum())

    def standing_for(self, n: int) -> CountTable:
        """The same rows, of a public table, as if they were of so many records."""
        reach = np.rint(np.cumsum(self.counts) * (n / max(self.n, 1))).astype(np.int64)
        return CountTable(self.codes, np.diff(reach, prepend=0), self.shape)

    def project(self, axes: Sequence[int]) -> CountTable:
        """Sum the counts over all attributes except ``axes``; the rows are sorted in that order.

        Parameters
        ----------
        axes : sequence of distinct int
            Attributes to keep, in the order wanted. An empty sequence gives one row with the total.
        """
        kept = check_axes(axes, len(self.shape))
        sizes = [self.shape[axis] for axis in kept]
        return CountTable._of(self.codes[:, kept], sizes, self.counts)

    def recode(self, axis: int, codes_of: NDArray[np.integer]) -> CountTable:
        """Renumber the codes of one attribute.

        Parameters
        ----------
        axis : int
        codes_of : ndarray of int, shape (size,)
            New code of each code; rows with a negative one are dropped. The new size is the
            largest plus one.
        """
        size = int(codes_of.max()) + 1
        if size == self.shape[axis] and (codes_of == np.arange(size)).all():
            return self
        codes = self.codes.copy(order="F")
        codes[:, axis] = codes_of[codes[:, axis]]
        shape = (*self.shape[:axis], size, *self.shape[axis + 1 :])
        return CountTable.from_codes(codes, shape, self.counts)

    def batches(self) -> Iterator[Batch]:
        """As :meth:`Projections.batches`."""
        single = (self.counts == 1).all()
        for part in batches(len(self.counts)):
            yield self.codes[part], None if single else self.counts[part]


def _check_shapes(codes: CodeArray, counts: IntArray, shape: Sequence[int]) -> None:
    if codes.shape != (len(counts), len(shape)) or counts.ndim != 1:
        raise ValueError(
            "A CountTable needs codes of shape (m, d), m counts and d attribute sizes, got shapes "
            f"{codes.shape}, {counts.shape} and {len(shape)} sizes."
        )


def _joined(tables: Sequence[CountTable]) -> CountTable:
    codes = np.concatenate([each.codes for each in tables])
    counts = np.concatenate([each.counts for each in tables])
    return CountTable.from_codes(codes, tables[0].shape, counts)


def _distinct(
    rows: Sequence[NDArray[Any]], sizes: Sequence[int], weights: IntArray
) -> tuple[Sequence[NDArray[Any]], IntArray]:
    """Distinct rows in lexicographic order, column by column, and their total weights.

    As many columns as fit are packed into one int64 key. Where more columns follow, the key is
    replaced by its rank among the keys present: ranks keep the order and are below n, so there is
    room for the next columns.
    """
    fits = sum(cells <= _KEY_LIMIT for cells in itertools.accumulate(sizes, operator.mul))
    key = np.zeros(len(weights), dtype=np.int64)
    for column, size in zip(rows[:fits], sizes, strict=False):
        key *= size
        key += column
    if fits == len(sizes):
        distinct, counts = _totals(key, math.prod(sizes), weights)
        return _unpacked(distinct, sizes), counts
    present, first, rank = np.unique(key, return_index=True, return_inverse=True)
    if len(present) == len(key):
        # No two rows are equal: the other columns only follow in this order.
        return [column[first] for column in rows], weights[first]
    left = [len(present), *sizes[fits:]]
    (ranks, *others), counts = _distinct([rank, *rows[fits:]], left, weights)
    return [*_unpacked(present[ranks], sizes[:fits]), *others], counts


def _totals(key: IntArray, cells: int, weights: IntArray) -> tuple[IntArray, IntArray]:
    """Sorted distinct keys and their total weights."""
    if cells <= max(_DENSE_CELLS, 2 * len(key)):
        total = integer_sums(key, cells, weights)
        present = np.flatnonzero(total)
        return present, total[present]
    if (weights == 1).all():
        return np.unique(key, return_counts=True)
    order = np.argsort(key)
    ordered = key[order]
    starts = run_starts(ordered)
    return ordered[starts], np.add.reduceat(weights[order], starts)


def _unpacked(key: IntArray, sizes: Sequence[int]) -> list[CodeArray]:
    """The codes of each column that were packed into keys."""
    columns = []
    for size in reversed(sizes):
        # Faster than `divmod`, whose remainder is a second division.
        whole = key // size
        columns.append((key - whole * size).astype(np.int32))
        key = whole
    return columns[::-1]


class ProjectedCounts(Projections):
    """Counts of rows that are too many to hold as a table, for a few attributes at a time.

    Which tables are asked for depends on public facts and earlier releases, never on counts.

    Parameters
    ----------
    codes : ndarray of int, shape (n, d)
        One row for each record, perhaps in a file. Rows with a negative code do not count.
    shape : sequence of int
    recoded : mapping of int to ndarray of int, default=None
        New codes of some attributes; rows with a negative one do not count.
    number : callable, default=None
        Turns codes of the last attribute into integers, which are added up in place of records.
    """

    def __init__(
        self,
        codes: CodeArray,
        shape: Sequence[int],
        recoded: Mapping[int, NDArray[np.integer]] | None = None,
        number: Numbers | None = None,
    ) -> None:
        self._codes, self._shape, self._number = codes, tuple(shape), number
        self._recoded = dict(recoded or {})
        self.shape = tuple(
            int(self._recoded[axis].max()) + 1 if axis in self._recoded else size
            for axis, size in enumerate(shape)
        )

    @property
    def n(self) -> int:
        """Exact number of records: private."""
        return sum(len(codes) for codes, _ in self.batches())

    def batches(self) -> Iterator[Batch]:
        """As :meth:`Projections.batches`."""
        for part in parts_of(self._codes):
            if self._recoded:
                part = part.astype(np.int32)
                for axis, codes_of in self._recoded.items():
                    part[:, axis] = codes_of[part[:, axis]]
                part = part[(part >= 0).all(axis=1)]
            yield part, self._number and self._number(part[:, -1].astype(np.int64))

    def project(self, axes: Sequence[int]) -> CountTable:
        """As :meth:`CountTable.project`."""
        kept = check_axes(axes, len(self.shape))
        sizes = [self.shape[axis] for axis in kept]
        if math.prod(sizes) <= _WHOLE_CELLS:
            return CountTable.from_dense(self.dense(kept))
        return CountTable.merged((codes[:, kept] for codes, _ in self.batches()), sizes)

    def recode(self, axis: int, codes_of: NDArray[np.integer]) -> ProjectedCounts:
        """As :meth:`CountTable.recode`."""
        before = self._recoded.get(axis, np.arange(self._shape[axis]))
        after = np.where(before < 0, -1, codes_of[before])
        return ProjectedCounts(self._codes, self._shape, {**self._recoded, axis: after})


def weighted_tables(
    codes: CodeArray, shape: Sequence[int], sets: Sequence[Sequence[int]], number: Numbers
) -> list[IntArray]:
    """Sums over the cells of many tables of integers that the last attribute decides: exact.

    Parameters
    ----------
    codes : ndarray of int, shape (n, d)
        Rows with a negative code are skipped.
    shape : tuple of int
        Number of codes of each attribute.
    sets : sequence of sequence of distinct int
        Attributes of each table, without the last attribute.
    number : callable
        Turns codes of the last attribute into integers.
    """
    rows = ProjectedCounts(codes, shape, number=number)
    return list(rows.regrouped_many([(axes, [None] * len(axes)) for axes in sets]))


# ------------------------------------------------------------------------------------------------
# Many tables counted together in few passes over rows of codes.
#
# A pass counts as many of the tables that are asked for as fit into a bounded number of cells.
# Within a pass, tables that share attributes are the margins of a block, the joint table of a few
# more attributes: all pairs of four columns take one key and one count per row instead of six. What
# is counted together follows from public sizes alone.

# Cells of all tables, and of all blocks, of one pass: 128 megabytes each.
PASS_CELLS = 2**24

# Larger tables are an error of the caller: 2**27 int64 cells are one gigabyte.
_MOST_CELLS = 2**27

# Blocks that are searched for one that has a table among its margins.
_LOOKED_AT = 8

Groups = Sequence[NDArray[np.integer] | None]


# Rows of codes, none of them negative, and the records that each stands for; None: one each.
Batch = tuple[CodeArray, IntArray | None]


@dataclass(frozen=True, eq=False)
class Axis:
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

    @functools.cached_property
    def _lookup(self) -> NDArray[np.integer] | None:
        if self.group is None:
            return None
        numbers = np.where(self.group < 0, self.size, self.group)
        return numbers.astype(np.min_scalar_type(self.width))

    def numbers(self, codes: NDArray[np.integer]) -> NDArray[np.integer]:
        """Number of each code in its column; dropped ones have the last."""
        return codes if self._lookup is None else self._lookup.take(codes)


@dataclass(frozen=True, eq=False)
class Marginal:
    """A table to be counted: one axis for each column, in this order."""

    columns: tuple[Axis, ...]

    @functools.cached_property
    def cells(self) -> int:
        """Number of cells."""
        return math.prod(column.size for column in self.columns)


@dataclass(eq=False)
class Block:
    """Columns that are counted jointly, and the tables that are margins of their joint table.

    Attributes
    ----------
    parts : list of tuple of Axis
        The columns, in the order of the axes; those of a part occur together in other blocks too.
    members : list of int
        Numbers of the tables.
    """

    parts: list[tuple[Axis, ...]]
    members: list[int] = field(default_factory=list)

    @functools.cached_property
    def columns(self) -> list[Axis]:
        """The columns in the order of the axes."""
        return [column for part in self.parts for column in part]

    @functools.cached_property
    def cells(self) -> int:
        """Number of cells."""
        return math.prod(column.width for column in self.columns)


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
    known: dict[Hashable, Axis] = {}
    found = []
    for axes, groups in sets:
        columns = []
        for axis, group in zip(check_axes(axes, len(shape)), groups, strict=True):
            size = shape[axis] if group is None else int(group.max()) + 1
            columns.append(known.setdefault((axis, id(group)), Axis(axis, size, group)))
        found.append(Marginal(tuple(columns)))
        if found[-1].cells > _MOST_CELLS:
            raise ValueError(
                f"A dense array of the attributes {tuple(axes)} has {found[-1].cells} cells, more "
                f"than {_MOST_CELLS}; work with the rows of codes, or project to fewer attributes "
                "first."
            )
    return found


def check_axes(axes: Sequence[int], n_attributes: int) -> list[int]:
    """Distinct numbers of attributes as a list of integers; ValueError for others."""
    kept = [int(axis) for axis in axes]
    if len(set(kept)) != len(kept) or any(not 0 <= axis < n_attributes for axis in kept):
        raise ValueError(f"axes must be distinct numbers in 0..{n_attributes - 1}, got {kept}.")
    return kept


Piece = TypeVar("Piece", Marginal, Block)


def split(pieces: Iterable[Piece], most: int | None = None) -> list[list[Piece]]:
    """Cut tables or blocks, in their order, into passes of few cells, or of one piece.

    Parameters
    ----------
    pieces : iterable of Marginal or of Block
    most : int, default=None
        Cells of a pass; 2**24 by default.
    """
    parts: list[list[Piece]] = []
    cells = 0
    for piece in pieces:
        cells += piece.cells
        if not parts or cells > (PASS_CELLS if most is None else most):
            parts.append([])
            cells = piece.cells
        parts[-1].append(piece)
    return parts


# Columns that are counted jointly, and the numbers of the tables on them.
_Joined = tuple[set[Axis], list[int]]


def plan_blocks(marginals: Sequence[Marginal], most: int) -> list[Block]:
    """Blocks of few cells that together have all tables as margins.

    The columns are put into groups whose joint tables have at most the root of the cells of a
    block. Tables on the same groups are put into one block as long as it stays small. All pairs of
    two groups are such a block.

    Parameters
    ----------
    marginals : sequence of Marginal
    most : int
        Cells of a block that has more than one table.
    """
    columns = dict.fromkeys(column for each in marginals for column in each.columns)
    group = _group_of(columns, math.isqrt(most))
    groups = [frozenset(group[column] for column in each.columns) for each in marginals]
    joined: list[_Joined] = []
    # The last ones on some groups, which have room for more tables on these, and all by columns.
    last: dict[frozenset[int], _Joined] = {}
    on: dict[Axis, list[_Joined]] = {column: [] for column in columns}
    # Tables on many groups first: those on fewer may be among their margins.
    for number in sorted(range(len(marginals)), key=lambda number: -len(groups[number])):
        wanted = marginals[number].columns
        near = min((on[column] for column in wanted), key=len, default=joined)
        found = next((each for each in near[-_LOOKED_AT:] if each[0].issuperset(wanted)), None)
        if found is None:
            found = last.get(groups[number])
            if found is None or math.prod(c.width for c in found[0].union(wanted)) > most:
                found = last[groups[number]] = set(), []
                joined.append(found)
            for column in set(wanted).difference(found[0]):
                on[column].append(found)
            found[0].update(wanted)
        found[1].append(number)
    # In the order in which columns are asked for, those of a group side by side.
    order = {column: (group[column], place) for place, column in enumerate(columns)}
    blocks = []
    for held, members in joined:
        parts = itertools.groupby(sorted(held, key=order.__getitem__), group.__getitem__)
        blocks.append(Block([tuple(part) for _, part in parts], members))
    return blocks


def _group_of(columns: Iterable[Axis], most: int) -> dict[Axis, int]:
    """Group of each column, wide columns first."""
    group, cells = 0, 1
    found = {}
    for column in sorted(columns, key=lambda column: -column.width):
        cells *= column.width
        if cells > most:
            group, cells = group + 1, column.width
        found[column] = group
    return found


def counted(
    batches: Iterable[Batch], marginals: Sequence[Marginal], blocks: Sequence[Block]
) -> dict[int, IntArray]:
    """Exact counts of the tables of some blocks, by their numbers, in one pass.

    Memory is that of the cells, which are public, and of one batch.

    Parameters
    ----------
    batches : iterable of Batch
    marginals : sequence of Marginal
    blocks : sequence of Block
        Some or all of the blocks that were planned for them.
    """
    joint = [np.zeros(block.cells, dtype=np.int64) for block in blocks]
    for codes, weights in batches:
        for counts, key in zip(joint, _keys(codes, blocks), strict=True):
            # Exact sums of integers; faster than `bincount`, whose result would have to be added.
            np.add.at(counts, key, 1 if weights is None else weights)
    found = {}
    for block, counts in zip(blocks, joint, strict=True):
        table = counts.reshape([column.width for column in block.columns])
        for number in block.members:
            found[number] = _margin(table, block.columns, marginals[number].columns)
    return found


def _keys(codes: CodeArray, blocks: Sequence[Block]) -> Iterator[NDArray[np.integer]]:
    """Cell of each row in each block; what blocks share is computed once."""

    @functools.cache
    def column_of(column: Axis) -> _Key:
        return column.numbers(codes[:, column.axis]), column.width

    @functools.cache
    def part_of(part: tuple[Axis, ...]) -> _Key:
        return _as_one_key([column_of(column) for column in part], len(codes))

    for block in blocks:
        yield _as_one_key([part_of(part) for part in block.parts], len(codes))[0]


# Numbers of the rows, and how many there can be.
_Key = tuple[NDArray[np.integer], int]


def _as_one_key(keys: Sequence[_Key], n_rows: int) -> _Key:
    """One number of each row from several; zero, if there is none."""
    if not keys:
        return np.zeros(n_rows, dtype=np.int32), 1
    joined, cells = keys[0]
    for key, number in keys[1:]:
        cells *= number
        joined = joined.astype(np.int32 if cells < 2**31 else np.int64)
        joined *= joined.dtype.type(number)
        joined += key
    return joined, cells


def _margin(joint: IntArray, columns: Sequence[Axis], wanted: Sequence[Axis]) -> IntArray:
    """Sums over all columns but the wanted ones, in their order."""
    inside = tuple(slice(column.size) if column in wanted else slice(None) for column in columns)
    others = tuple(place for place, column in enumerate(columns) if column not in wanted)
    left = [column for column in columns if column in wanted]
    summed: IntArray = np.asarray(joint[inside].sum(axis=others))
    return np.asarray(summed.transpose([left.index(each) for each in wanted]), order="C")


# ------------------------------------------------------------------------------------------------
# Records coded, kept and counted.

Counts = CountTable | ProjectedCounts

# Rows of lazy frames are loaded as a table of their distinct rows where the domain has at most this
# many cells, all of which may be occupied: one gigabyte.
MOST_AT_ONCE = 2**24

# Rows of domains of at most this many cells are counted cell by cell, without sorting.
_FEW_CELLS = 2**20
# Stands in every column of a row that breaks a rule, where it is told from other unfit rows.
_BROKEN = -2
# Bytes of codes that are held in memory before they go to a file.
_HELD_BYTES = 2**26


class _Store:
    """Rows of codes that are added batch by batch; many, in a file that nobody can open."""

    def __init__(self, shape: Sequence[int]) -> None:
        self._dtype = np.dtype(np.int16 if max(shape, default=0) <= 2**15 else np.int32)
        # Column by column, as they are counted.
        self._parts = [np.zeros((len(shape), 0), dtype=np.int32)]
        self._file: Any = None

    def add(self, codes: CodeArray, kept: BoolArray) -> None:
        """Add the rows that are kept."""
        self._parts.append(codes.T if kept.all() else codes.T.compress(kept, axis=1))
        if len(self._parts) > 2 and sum(part.nbytes for part in self._parts) > _HELD_BYTES:
            self._write()

    def _write(self) -> None:
        self._file = self._file or tempfile.TemporaryFile()  # noqa: SIM115
        for part in self._parts:
            self._file.write(np.ascontiguousarray(part.T, dtype=self._dtype).data)
        self._parts = self._parts[:1]

    def codes(self) -> CodeArray:
        """All rows: ndarray of int, shape (n, d)."""
        if self._file is None:
            parts = self._parts
            return parts[1].T if len(parts) == 2 else np.concatenate(parts, axis=1).T
        self._write()
        width = len(self._parts[0])
        with self._file as file:
            shape = file.tell() // (self._dtype.itemsize * width), width
            file.flush()
            # The map outlives the file, which has no name.
            return np.memmap(file, dtype=self._dtype, mode="r", shape=shape)


class Coded:
    """Coded rows, kept and skipped: private.

    Parameters
    ----------
    rows : Frame or LazyRows
        Whose schema was checked: with the columns of the domain, and the unit of
        ``contributions``.
    domain : Domain
    contributions : Contributions, default=None
        A bound on the rows of each person; None keeps all rows.
    part : int, default=None
        Rows without a code of this attribute, and lines that cannot be read, are not there at all.

    Attributes
    ----------
    codes : ndarray of int, shape (n, d)
        Rows that are kept.
    cells : ndarray of int64, shape (len(domain) + 2,)
        How many rows are kept; are skipped for each attribute; and because they break a rule. Exact
        and private.
    unread : int or None
        Records of a file that could not be read; None if the rows are not those of a file.

    Raises
    ------
    EngineError
        If an engine fails; the text does not depend on values.
    """

    def __init__(
        self,
        rows: Frame | LazyRows,
        domain: Domain,
        contributions: Contributions | None = None,
        part: int | None = None,
    ) -> None:
        self._domain, self._lazy = domain, isinstance(rows, LazyRows)
        self.unread = None if rows.unfit is None or part is not None else int(rows.unfit.sum())
        # Privacy. A row counts in one cell: that of what is kept, or that of the first attribute
        # for which it has no code, or that of the rules that it breaks. So a record more changes
        # one cell by 1. Of a person the first `most` rows count, in the order of the cells, so that
        # skipped ones fill what the kept ones leave: a function of this person's rows alone, so a
        # person more adds at most `most` to all cells together and takes none away. Rows without a
        # unit are nobody's, may be many of one person, and count nowhere.
        self.cells: IntArray = np.zeros(len(domain) + 2, dtype=np.int64)
        store = _Store(domain.shape)
        owners: list[IntArray] = [np.zeros(0, dtype=np.int64)]
        known: dict[object, int] = {}

        def use(batch: Frame) -> None:
            codes = domain.encode_columns(batch.select(domain.names), broken=_BROKEN)
            if contributions is None:
                unfit = first_unfit(codes)
                there = np.ones(len(codes), bool) if part is None else codes[:, part] != -1
                if batch.unfit is not None:
                    there &= ~batch.unfit
                self._count(unfit[there])
                store.add(codes, unfit == 0)
            else:
                found = identities(batch.column(contributions.privacy_id), known)
                owners.append(found[found >= 0])
                store.add(codes, found >= 0)

        names = [*domain.names, *([] if contributions is None else [contributions.privacy_id])]
        rows.select(list(dict.fromkeys(names))).each_batch(use)
        self.codes = store.codes()
        if contributions is not None:
            persons, unfit = np.concatenate(owners), first_unfit(self.codes)
            # The least cell is that of the rows that are kept.
            self._count(unfit[few_of_each(persons, unfit, contributions.most)])
            self.codes = some_of_each(self.codes, persons, contributions)

    def _count(self, unfit: IntArray) -> None:
        self.cells += np.bincount(unfit, minlength=len(self.cells))

    def counts(self, together: Sequence[int] | None = None) -> Counts:
        """Count the distinct rows that are kept.

        Parameters
        ----------
        together : sequence of int, default=None
            Not None: the algorithm needs projections only. Where the rows are lazy and the domain
            has more than 2**24 cells, only the tables asked for are counted, so that memory is
            bounded whatever the rows are. The choice depends on the domain alone. None: the whole
            table is returned.
        """
        shape = self._domain.shape
        if not self._lazy:
            return CountTable.from_codes(self.codes, shape)
        if together is not None and self._domain.size > MOST_AT_ONCE:
            return ProjectedCounts(self.codes, shape)
        return CountTable.merged(parts_of(self.codes, MERGED_ROWS), shape)


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


def count_rows(
    rows: Frame | LazyRows,
    domain: Domain,
    contributions: Contributions | None = None,
    *,
    together: Sequence[int] | None = None,
) -> Counts:
    """Count the distinct coded rows: as `Coded.counts`, where nobody asks what was skipped."""
    return Coded(rows, domain, contributions).counts(together)


def weighted_rows(
    rows: Frame | LazyRows, domain: Domain, contributions: Contributions | None = None
) -> tuple[CodeArray, IntArray]:
    """Coded rows and how many records each stands for, in no order.

    Equal rows are merged where they are too many for memory, and in small domains.

    Parameters
    ----------
    rows, domain, contributions
        As for `Coded`.
    """
    coded = Coded(rows, domain, contributions)
    if isinstance(coded.codes, np.memmap) or domain.size <= _FEW_CELLS:
        table = CountTable.merged(parts_of(coded.codes, MERGED_ROWS), domain.shape)
        return table.codes, table.counts
    return coded.codes, np.ones(len(coded.codes), dtype=np.int64)
