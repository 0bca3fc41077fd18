"""CountTable: the distinct coded rows of a data set and how often each occurs.

It is the last object that holds exact counts, and is meant to be a local variable of ``fit``.
Everything an algorithm needs to know of the records goes through it, and nothing forms a cell
number of the full domain, so that domains of 1e88 cells cost no more than their distinct rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import BoolArray, CodeArray, IntArray, batches, integer_sums, run_starts
from .passes import (
    KEY_LIMIT,
    Column,
    Groups,
    Marginal,
    Tallies,
    check_axes,
    marginals_of,
    plan_blocks,
    plan_pass,
    regroup,
    split,
    unpack,
)

# Below this many cells a key is counted by position instead of sorted.
_DENSE_CELLS = 2**16

# Distinct rows of parts that wait to be merged.
_MERGED = 2**20

# Cells of a block of several tables: about twice the rows within these limits, because their sums
# over a block take time too.
_BLOCK_CELLS = (2**10, 2**16)


def parts_of(codes: CodeArray) -> Iterator[CodeArray]:
    """Rows without a negative code, some at a time: they may lie in a file."""
    for each in batches(len(codes)):
        part = np.asarray(codes[each])
        fits = (part >= 0).all(axis=1)
        yield part if fits.all() else part[fits]


@dataclass(frozen=True, eq=False, repr=False)
class CountTable:
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

    def where(self, axis: int, code: int) -> CountTable:
        """The rows with one code of an attribute, which has no other code afterwards."""
        inside = self.codes[:, axis] == code
        codes = self.codes[inside]
        codes[:, axis] = 0
        shape = (*self.shape[:axis], 1, *self.shape[axis + 1 :])
        return CountTable(codes, self.counts[inside], shape)

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
        low, high = _BLOCK_CELLS
        most = min(max(2 * self.n_rows, low), high)
        for some in split(marginals_of(self.shape, sets)):
            found: dict[int, IntArray] = {}
            for blocks in split(plan_blocks(some, most)):
                tallies = Tallies(some, blocks)
                self._fill(tallies)
                found.update(tallies.tables())
            yield from (found[number] for number in range(len(some)))

    def _fill(self, tallies: Tallies) -> None:
        """Add all rows to tallies."""
        weights = None if (self.counts == 1).all() else self.counts
        for part in batches(self.n_rows):
            codes = {axis: self.codes[part, axis] for axis in tallies.axes}
            counts = None if weights is None else weights[part]
            tallies.add(codes, len(self.counts[part]), counts)

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


# --- rows that are too many to hold as a table: counts of a few attributes at a time

# Cells of all tables that are remembered: 128 megabytes.
_KEPT_CELLS = 2**24

# Larger tables are counted by their distinct rows, where nobody needs all cells.
_WHOLE_CELLS = 2**22


class ProjectedCounts:
    """Counts of rows that are too many to hold, requested for a few attributes at a time.

    It has the interface of :class:`CountTable`, without the rows. Which tables are requested
    depends on public facts and earlier releases, never on counts.

    Parameters
    ----------
    tables : RowTables
        Of all rows.
    changed : mapping of int to Column, default=None
        New codes of some attributes. Rows with a negative one do not count in tables of the
        attribute.
    conditions : collection of int, default=()
        Those of them whose rows with a negative code count in no table.
    """

    def __init__(
        self,
        tables: RowTables,
        changed: Mapping[int, Column] | None = None,
        conditions: Collection[int] = (),
    ) -> None:
        self._tables = tables
        self._changed = dict(changed or {})
        self.shape = tuple(
            self._changed[axis].size if axis in self._changed else size
            for axis, size in enumerate(tables.shape)
        )
        self._conditions = {
            axis: Column(axis, 1, np.where(self._changed[axis].groups() < 0, -1, 0))
            for axis in conditions
        }

    @property
    def n(self) -> int:
        """Exact number of records: private."""
        return int(self.dense(()))

    def project(self, axes: Sequence[int]) -> CountTable:
        """As :meth:`CountTable.project`."""
        self._foresee(axes)
        return next(self.project_many([axes]))

    def project_many(self, sets: Sequence[Sequence[int]]) -> Iterator[CountTable]:
        """As :meth:`CountTable.project_many`."""
        kept = [tuple(check_axes(axes, len(self.shape))) for axes in sets]
        small = [math.prod(self.shape[axis] for axis in axes) <= _WHOLE_CELLS for axes in kept]
        whole = [(axes, [None] * len(axes)) for axes, fits in zip(kept, small, strict=True) if fits]
        tables = self.regrouped_many(whole)
        for axes, fits in zip(kept, small, strict=True):
            yield CountTable.from_dense(next(tables)) if fits else self._distinct(axes)

    def dense(self, axes: Sequence[int] | None = None) -> IntArray:
        """As :meth:`CountTable.dense`."""
        kept = list(range(len(self.shape)) if axes is None else axes)
        return self.regrouped(kept, [None] * len(kept))

    def regrouped(self, axes: Sequence[int], groups: Groups) -> IntArray:
        """As :meth:`CountTable.regrouped`."""
        self._foresee(axes)
        return next(self.regrouped_many([(axes, groups)]))

    def regrouped_many(self, sets: Sequence[tuple[Sequence[int], Groups]]) -> Iterator[IntArray]:
        """As :meth:`CountTable.regrouped_many`."""
        through: dict[Column, Column] = {}
        asked, shapes = [], []
        for each in marginals_of(self.shape, sets):
            for column in each.columns:
                if column not in through:
                    through[column] = self._through(column)
            others = [own for axis, own in self._conditions.items() if axis not in each.axes]
            asked.append(Marginal((*(through[column] for column in each.columns), *others)))
            shapes.append(each.shape)
        for table, shape in zip(self._tables.ask(asked), shapes, strict=True):
            yield table.reshape(shape)

    def where(self, axis: int, code: int) -> ProjectedCounts:
        """As :meth:`CountTable.where`."""
        only = np.full(self.shape[axis], -1, dtype=np.int64)
        only[code] = 0
        return self.recode(axis, only)

    def recode(self, axis: int, codes_of: NDArray[np.integer]) -> ProjectedCounts:
        """As :meth:`CountTable.recode`."""
        dropped = {axis} if codes_of.min() < 0 else set()
        return self._after(axis, codes_of, {*self._conditions, *dropped})

    def without(self, axis: int, codes_of: NDArray[np.integer]) -> ProjectedCounts:
        """As `recode`, where no row has a code that is dropped.

        Then tables of other attributes need not know of this one.
        """
        return self._after(axis, codes_of, self._conditions)

    def _after(
        self, axis: int, codes_of: NDArray[np.integer], conditions: Collection[int]
    ) -> ProjectedCounts:
        column = self._through(Column(axis, int(codes_of.max()) + 1, codes_of))
        return ProjectedCounts(self._tables, {**self._changed, axis: column}, conditions)

    def _through(self, column: Column) -> Column:
        """A column of these rows as one of all rows."""
        before = self._changed.get(column.axis)
        if before is None:
            return column
        groups = before.groups()
        if column.group is not None:
            groups = np.where(groups < 0, -1, column.group[groups])
        return Column(column.axis, column.size, groups)

    def remember(self, sets: Sequence[Sequence[int]]) -> None:
        """Announce sets of attributes: one pass counts the tables of all of them, if these fit."""
        self._tables.remember((*{*axes, *self._conditions},) for axes in sets)

    def _foresee(self, axes: Sequence[int]) -> None:
        self._tables.foresee({*axes, *self._conditions})

    def _distinct(self, axes: tuple[int, ...]) -> CountTable:
        """A table of many cells by its distinct rows."""
        whole = (*axes, *(axis for axis in self._conditions if axis not in axes))
        codes, counts = self._tables.count(whole)
        columns = [
            self._changed[axis].groups()[column] if axis in self._changed else column
            for axis, column in zip(whole, codes.T, strict=True)
        ]
        sizes = [self.shape[axis] for axis in whole]
        table = CountTable.from_codes(np.stack(columns, axis=1), sizes, counts)
        return table.project(range(len(axes)))


Counts = CountTable | ProjectedCounts


class RowTables:
    """Tables of many coded rows: many from one pass, and those that fit are remembered.

    What is counted and remembered follows from what is asked for and from the domain.

    Parameters
    ----------
    codes : ndarray of int, shape (n, d)
        Rows with a negative code do not count.
    shape : sequence of int
    together : sequence of int
        Attributes that most tables contain.

    Attributes
    ----------
    shape : tuple of int
        Number of codes of each attribute.
    """

    def __init__(
        self, codes: CodeArray, shape: Sequence[int], together: Sequence[int] = ()
    ) -> None:
        self._codes = codes
        self.shape = tuple(shape)
        self._columns = [Column(axis, size) for axis, size in enumerate(shape)]
        self._together = set(together)
        self._known: dict[tuple[int, ...], IntArray] = {}
        # Remembered tables by each of their attributes.
        self._with: dict[int, list[tuple[int, ...]]] = {}

    def count(self, axes: tuple[int, ...]) -> tuple[CodeArray, IntArray]:
        """Distinct rows of some attributes, and how many rows each stands for."""
        found = CountTable.merged(
            (each[:, axes] for each in parts_of(self._codes)), [self.shape[axis] for axis in axes]
        )
        return found.codes, found.counts

    def tables(self, marginals: Sequence[Marginal]) -> list[IntArray]:
        """Counts of all cells of many tables, from one pass over the rows."""
        tallies = Tallies(marginals, plan_pass(marginals))
        for part in parts_of(self._codes):
            tallies.add({axis: part[:, axis] for axis in tallies.axes}, len(part))
        found = tallies.tables()
        return [found[number] for number in range(len(marginals))]

    def foresee(self, axes: set[int]) -> None:
        """Before one small table is asked for: count all pairs, or all singles, if these fit.

        Parameters
        ----------
        axes : set of int
        """
        asked = len(axes - self._together)
        if asked > 2 or self._holding(tuple(axes)) is not None:
            return
        others = [axis for axis in range(len(self.shape)) if axis not in self._together]
        for width in range(2, max(asked, 1) - 1, -1):
            chosen = itertools.combinations(others, min(width, len(others)))
            sets = [tuple(sorted({*each, *self._together})) for each in chosen]
            if self._fits(sets):
                self._keep(sets)
                return

    def ask(self, marginals: Sequence[Marginal]) -> Iterator[IntArray]:
        """The tables, in their order.

        Parameters
        ----------
        marginals : sequence of Marginal
        """
        self.remember(each.axes for each in marginals)
        holding = [self._holding(each.axes) for each in marginals]
        # From here on nothing is looked up, so that other requests may come in between.
        known = [None if axes is None else (axes, self._known[axes]) for axes in holding]
        rest = [each for each, found in zip(marginals, known, strict=True) if found is None]
        counted = (table for some in split(rest) for table in self.tables(some))
        for each, found in zip(marginals, known, strict=True):
            yield next(counted) if found is None else _margin(*found, each)

    def remember(self, sets: Iterable[Sequence[int]]) -> None:
        """Count the tables of sets of attributes in one pass and hold them, if all fit."""
        wanted = dict.fromkeys(tuple(sorted(axes)) for axes in sets)
        unknown = [axes for axes in wanted if self._holding(axes) is None]
        if unknown and self._fits(unknown):
            self._keep(unknown)

    def _holding(self, axes: Sequence[int]) -> tuple[int, ...] | None:
        """The smallest remembered table on these attributes and perhaps others."""
        if (whole := tuple(sorted(axes))) in self._known:
            return whole
        if axes:
            near = min((self._with.get(axis, []) for axis in axes), key=len)
        else:
            near = list(self._known)
        found = [held for held in near if set(held).issuperset(axes)]
        return min(found, key=lambda held: self._known[held].size, default=None)

    def _cells(self, sets: Sequence[tuple[int, ...]]) -> int:
        return sum(math.prod(self.shape[axis] for axis in axes) for axes in sets)

    def _fits(self, sets: Sequence[tuple[int, ...]]) -> bool:
        """Whether the tables over codes may be held."""
        return self._cells(sets) <= _KEPT_CELLS

    def _keep(self, sets: Sequence[tuple[int, ...]]) -> None:
        """Count tables over codes, in one pass, and remember them."""
        if self._cells([*self._known, *sets]) > _KEPT_CELLS:
            self._known, self._with = {}, {}
        raw = [Marginal(tuple(self._columns[axis] for axis in axes)) for axes in sets]
        for axes, table in zip(sets, self.tables(raw), strict=True):
            self._known[axes] = table
            for axis in axes:
                self._with.setdefault(axis, []).append(axes)


def _margin(axes: tuple[int, ...], table: IntArray, wanted: Marginal) -> IntArray:
    """A margin of a table over codes, by the groups of its columns."""
    others = tuple(place for place, axis in enumerate(axes) if axis not in wanted.axes)
    left = [axis for axis in axes if axis in wanted.axes]
    summed = np.asarray(table.sum(axis=others))
    return regroup(summed.transpose([left.index(axis) for axis in wanted.axes]), wanted.columns)
