"""CountTable: the distinct coded rows of a data set and how often each occurs.

It is the last object that holds exact counts, and is meant to be a local variable of ``fit``.
Everything an algorithm needs to know of the records goes through it, and nothing forms a cell
number of the full domain, so that domains of 1e88 cells cost no more than their distinct rows.
"""

from __future__ import annotations

import itertools
import math
import mmap
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import CodeArray, IntArray, batches, integer_sums, run_starts
from .passes import Batch, Groups, check_axes, counted, marginals_of, plan_blocks, split

# From codes to integers.
Numbers = Callable[[IntArray], IntArray]

# Rows are packed into int64 keys of fewer cells than this.
_KEY_LIMIT = 2**62

# Below this many cells a key is counted by position instead of sorted.
_DENSE_CELLS = 2**16

# Cells of all tables that are remembered.
_KEPT_CELLS = 2**24

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
        self._known: dict[tuple[int, ...], CountTable] = {}

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

    def regrouped_many(self, sets: Sequence[tuple[Sequence[int], Groups]]) -> Iterator[IntArray]:
        """As :meth:`Projections.regrouped_many`; margins of remembered tables take no pass."""
        holding = [self._holding(axes) for axes, _ in sets]
        rest = [each for each, held in zip(sets, holding, strict=True) if held is None]
        counted = super().regrouped_many(rest)
        for (axes, groups), held in zip(sets, holding, strict=True):
            if held is None:
                yield next(counted)
            else:
                yield self._known[held].regrouped([held.index(axis) for axis in axes], groups)

    def _holding(self, axes: Sequence[int]) -> tuple[int, ...] | None:
        """The smallest remembered table on these attributes and perhaps others."""
        found = [held for held in self._known if set(held).issuperset(axes)]
        return min(found, key=lambda held: len(self._known[held].counts), default=None)

    def remember(self, sets: Sequence[Sequence[int]]) -> None:
        """Announce sets of attributes: one pass counts the tables of all of them, if these fit."""
        wanted = list(dict.fromkeys(tuple(sorted(each)) for each in sets))
        if sum(math.prod(self.shape[axis] for axis in axes) for axes in wanted) <= _KEPT_CELLS:
            tables = self.regrouped_many([(axes, [None] * len(axes)) for axes in wanted])
            self._known = dict(zip(wanted, map(CountTable.from_dense, tables), strict=True))

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
