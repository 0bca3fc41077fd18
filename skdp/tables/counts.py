"""CountTable: the distinct coded rows of a data set and how often each occurs.

It is the last object that holds exact counts, and is meant to be a local variable of ``fit``.
Everything an algorithm needs to know of the records goes through it, and nothing forms a cell
number of the full domain, so that domains of 1e88 cells cost no more than their distinct rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import BoolArray, CodeArray, IntArray, batches, integer_sums, run_starts
from .passes import (
    KEY_LIMIT,
    Groups,
    Tallies,
    check_axes,
    marginals_of,
    plan_blocks,
    regroup,
    split,
    unpack,
)

# Below this many cells a key is counted by position instead of sorted.
_DENSE_CELLS = 2**16

# Cells of all tables that are remembered: 128 megabytes.
_KEPT_CELLS = 2**24

# Larger tables are counted by their distinct rows, where nobody needs all cells.
_WHOLE_CELLS = 2**22

# Distinct rows of parts that wait to be merged.
_MERGED = 2**20

# Fewest and most cells of a block of several tables.
_BLOCK_CELLS = (2**10, 2**16)


def parts_of(codes: CodeArray) -> Iterator[CodeArray]:
    """Rows without a negative code, some at a time: they may lie in a file."""
    for each in batches(len(codes)):
        part = np.asarray(codes[each])
        fits = (part >= 0).all(axis=1)
        yield part if fits.all() else part[fits]


class _Projections:
    """Dense tables of exact counts, of a few attributes each."""

    shape: tuple[int, ...]

    @property
    def _block_cells(self) -> int:
        """Most cells of a block of several tables."""
        return 2**18

    def _fill(self, tallies: Tallies) -> None:
        """Add all rows to tallies."""
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
            for blocks in split(plan_blocks(some, self._block_cells)):
                tallies = Tallies(some, blocks)
                self._fill(tallies)
                found.update(tallies.tables())
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


@dataclass(frozen=True, eq=False, repr=False)
class CountTable(_Projections):
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

    codes: CodeArray
    counts: IntArray
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        codes = np.asarray(self.codes, dtype=np.int32)
        counts = np.asarray(self.counts, dtype=np.int64)
        shape = tuple(int(size) for size in self.shape)
        if codes.ndim != 2 or counts.shape != codes.shape[:1] or codes.shape[1] != len(shape):
            raise ValueError(
                "A CountTable needs codes of shape (m, d), m counts and d attribute sizes, got "
                f"shapes {codes.shape}, {counts.shape} and {len(shape)} sizes."
            )
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "shape", shape)

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
        sizes = tuple(int(size) for size in shape)
        if rows.ndim != 2 or rows.shape[1] != len(sizes):
            raise ValueError(
                f"codes must have one column for each of the {len(sizes)} attributes, got an "
                f"array of shape {rows.shape}."
            )
        weights = None if counts is None else np.asarray(counts, dtype=np.int64)
        if weights is not None and weights.shape != rows.shape[:1]:
            raise ValueError(
                f"counts must have one entry per row, got {weights.shape} for {len(rows)} rows."
            )
        if not np.issubdtype(rows.dtype, np.integer) and rows.size:
            raise ValueError(f"codes must be integers, got {rows.dtype}.")
        keep: BoolArray | None = None
        if weights is not None:
            if len(weights) and weights.min() < 0:
                raise ValueError("counts must not be negative.")
            keep = weights > 0
        # Column by column: on the Fortran-ordered arrays of Domain.encode each test is one scan.
        for axis, size in enumerate(sizes):
            column = rows[:, axis]
            if not len(column):
                continue
            if column.max() >= size:
                raise ValueError(f"Codes of attribute {axis} must lie below its size {size}.")
            if column.min() < 0:
                keep = column >= 0 if keep is None else keep & (column >= 0)
        if keep is not None:
            rows = rows[keep]
            weights = None if weights is None else weights[keep]
        return cls(
            *_group([rows[:, axis] for axis in range(len(sizes))], len(rows), sizes, weights), sizes
        )

    @classmethod
    def merged(cls, parts: Iterable[CodeArray], shape: Sequence[int]) -> CountTable:
        """Count the distinct rows of many arrays of codes, in memory for the distinct rows alone.

        Parameters
        ----------
        parts : iterable of ndarray of int, shape (n_i, d)
            As `from_codes` takes them.
        shape : sequence of int
        """
        held = cls.from_codes(np.zeros((0, len(shape)), dtype=np.int32), shape)
        waiting: list[CountTable] = []
        for part in parts:
            waiting.append(cls.from_codes(part, shape))
            # Merged when they are as many, so that each row is sorted a few times only.
            if sum(each.n_rows for each in waiting) > max(held.n_rows, _MERGED):
                held, waiting = _joined([held, *waiting]), []
        return _joined([held, *waiting])

    @classmethod
    def from_dense(cls, counts: IntArray) -> CountTable:
        """The occupied cells of an array with one axis for each attribute.

        Parameters
        ----------
        counts : ndarray of int64
        """
        cells = np.flatnonzero(counts)
        codes = np.empty((len(cells), counts.ndim), dtype=np.int32, order="F")
        unpack(cells, range(counts.ndim), counts.shape, codes)
        return cls(codes, counts.ravel()[cells], counts.shape)

    @property
    def n(self) -> int:
        """Exact number of records: private."""
        return int(self.counts.sum())

    @property
    def n_rows(self) -> int:
        """Number of distinct rows: private."""
        return len(self.counts)

    def project(self, axes: Sequence[int]) -> CountTable:
        """Sum the counts over all attributes except ``axes``; the rows are sorted in that order.

        Parameters
        ----------
        axes : sequence of distinct int
            Attributes to keep, in the order wanted. An empty sequence gives one row with the total.
        """
        kept = check_axes(axes, len(self.shape))
        sizes = tuple(self.shape[axis] for axis in kept)
        columns = [self.codes[:, axis] for axis in kept]
        return CountTable(*_group(columns, len(self.counts), sizes, self.counts), sizes)

    def project_many(self, sets: Sequence[Sequence[int]]) -> Iterator[CountTable]:
        """Projections to many sets of attributes, one after the other.

        Parameters
        ----------
        sets : sequence of sequences of distinct int
        """
        return (self.project(axes) for axes in sets)

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

    @property
    def _block_cells(self) -> int:
        # About twice the rows within limits, because sums over a block take time too.
        low, high = _BLOCK_CELLS
        return min(max(2 * self.n_rows, low), high)

    def _fill(self, tallies: Tallies) -> None:
        weights = None if (self.counts == 1).all() else self.counts
        for part in batches(self.n_rows):
            codes = {axis: self.codes[part, axis] for axis in tallies.axes}
            counts = None if weights is None else weights[part]
            tallies.add(codes, len(self.counts[part]), counts)

    def __repr__(self) -> str:
        # No counts and no number of rows: reprs end up in logs.
        return f"CountTable(shape={self.shape})"


def _joined(tables: Sequence[CountTable]) -> CountTable:
    codes = np.concatenate([each.codes for each in tables])
    counts = np.concatenate([each.counts for each in tables])
    return CountTable.from_codes(codes, tables[0].shape, counts)


def _unique(key: IntArray, cells: int, weights: IntArray | None) -> tuple[IntArray, IntArray]:
    """Sorted distinct keys and their total weights."""
    if not len(key):
        return key, np.zeros(0, dtype=np.int64)
    if cells <= max(_DENSE_CELLS, 2 * len(key)):
        total = integer_sums(key, cells, weights)
        present = np.flatnonzero(total)
        return present, total[present]
    if weights is None:
        ordered = np.sort(key)
        starts = run_starts(ordered)
        return ordered[starts], np.diff(starts, append=len(ordered))
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    starts = run_starts(ordered)
    return ordered[starts], np.add.reduceat(weights[order], starts)


def _group(
    columns: Sequence[NDArray], n: int, sizes: Sequence[int], weights: IntArray | None
) -> tuple[CodeArray, IntArray]:
    """Distinct rows in lexicographic order and their total weights.

    As many columns as fit are packed into one int64 key. Where more columns follow, the key is
    replaced by its rank among the keys present: ranks keep the order and are below n, so there is
    room for the next columns. A stage remembers its distinct keys to turn ranks back into codes.
    """
    stages: list[tuple[list[int], IntArray]] = []
    key = np.zeros(n, dtype=np.int64)
    cells = 1
    members: list[int] = []
    left = dict(enumerate(columns))
    for axis, size in enumerate(sizes):
        if cells * size > KEY_LIMIT:
            present, key = np.unique(key, return_inverse=True)
            stages.append((members, present))
            cells, members = max(1, len(present)), []
            if cells == n:
                # No two rows are equal: the other columns only follow in this order.
                break
        key = key * size + left.pop(axis)
        cells *= size
        members.append(axis)

    distinct, counts = _unique(key, cells, weights)
    codes = np.empty((len(distinct), len(sizes)), dtype=np.int32, order="F")
    rest = unpack(distinct, members, sizes, codes)
    for axes, present in reversed(stages):
        rest = unpack(present[rest], axes, sizes, codes)
    if left:
        order = np.argsort(key)
        for axis, column in left.items():
            codes[:, axis] = column[order]
    return codes, counts.astype(np.int64, copy=False)


class ProjectedCounts(_Projections):
    """Counts of rows that are too many to hold as a table, for a few attributes at a time.

    Which tables are asked for depends on public facts and earlier releases, never on counts.

    Parameters
    ----------
    codes : ndarray of int, shape (n, d)
        One row for each record, perhaps in a file. Rows with a negative code do not count.
    shape : sequence of int
    recoded : mapping of int to ndarray of int, default=None
        New codes of some attributes; rows with a negative one do not count.
    """

    def __init__(
        self,
        codes: CodeArray,
        shape: Sequence[int],
        recoded: Mapping[int, NDArray[np.integer]] | None = None,
    ) -> None:
        self._codes, self._shape = codes, tuple(shape)
        self._recoded = dict(recoded or {})
        self.shape = tuple(
            int(self._recoded[axis].max()) + 1 if axis in self._recoded else size
            for axis, size in enumerate(shape)
        )
        self._known: dict[tuple[int, ...], IntArray] = {}

    @property
    def n(self) -> int:
        """Exact number of records: private."""
        return sum(map(len, self._parts()))

    def _parts(self) -> Iterator[CodeArray]:
        for part in parts_of(self._codes):
            if self._recoded:
                part = part.astype(np.int32)
                for axis, codes_of in self._recoded.items():
                    part[:, axis] = codes_of[part[:, axis]]
                part = part[(part >= 0).all(axis=1)]
            yield part

    def _fill(self, tallies: Tallies) -> None:
        for part in self._parts():
            tallies.add({axis: part[:, axis] for axis in tallies.axes}, len(part))

    def project(self, axes: Sequence[int]) -> CountTable:
        """As :meth:`CountTable.project`."""
        return next(self.project_many([axes]))

    def project_many(self, sets: Sequence[Sequence[int]]) -> Iterator[CountTable]:
        """As :meth:`CountTable.project_many`."""
        kept = [check_axes(axes, len(self.shape)) for axes in sets]
        small = [math.prod(self.shape[axis] for axis in axes) <= _WHOLE_CELLS for axes in kept]
        whole = [(axes, [None] * len(axes)) for axes, fits in zip(kept, small, strict=True) if fits]
        tables = self.regrouped_many(whole)
        for axes, fits in zip(kept, small, strict=True):
            if fits:
                yield CountTable.from_dense(next(tables))
            else:
                sizes = [self.shape[axis] for axis in axes]
                yield CountTable.merged((part[:, axes] for part in self._parts()), sizes)

    def regrouped_many(self, sets: Sequence[tuple[Sequence[int], Groups]]) -> Iterator[IntArray]:
        """As :meth:`CountTable.regrouped_many`; margins of remembered tables take no pass."""
        holding = [self._holding(axes) for axes, _ in sets]
        rest = [each for each, held in zip(sets, holding, strict=True) if held is None]
        counted = super().regrouped_many(rest)
        for each, held in zip(sets, holding, strict=True):
            yield next(counted) if held is None else self._margin(held, *each)

    def _holding(self, axes: Sequence[int]) -> tuple[int, ...] | None:
        """The smallest remembered table on these attributes and perhaps others."""
        found = [held for held in self._known if set(held).issuperset(axes)]
        return min(found, key=lambda held: self._known[held].size, default=None)

    def _margin(self, held: tuple[int, ...], axes: Sequence[int], groups: Groups) -> IntArray:
        (marginal,) = marginals_of(self.shape, [(axes, groups)])
        left = [axis for axis in held if axis in axes]
        others = tuple(place for place, axis in enumerate(held) if axis not in axes)
        table = np.asarray(self._known[held].sum(axis=others))
        return regroup(table.transpose([left.index(axis) for axis in axes]), marginal.columns)

    def recode(self, axis: int, codes_of: NDArray[np.integer]) -> ProjectedCounts:
        """As :meth:`CountTable.recode`."""
        before = self._recoded.get(axis, np.arange(self._shape[axis]))
        after = np.where(before < 0, -1, codes_of[before])
        return ProjectedCounts(self._codes, self._shape, {**self._recoded, axis: after})

    def remember(self, sets: Sequence[Sequence[int]]) -> None:
        """Announce sets of attributes: one pass counts the tables of all of them, if these fit."""
        wanted = list(dict.fromkeys(tuple(sorted(each)) for each in sets))
        if sum(math.prod(self.shape[axis] for axis in axes) for axes in wanted) <= _KEPT_CELLS:
            whole: list[tuple[Sequence[int], Groups]] = [
                (axes, [None] * len(axes)) for axes in wanted
            ]
            self._known = dict(zip(wanted, list(self.regrouped_many(whole)), strict=True))

    def __repr__(self) -> str:
        return f"ProjectedCounts(shape={self.shape})"
