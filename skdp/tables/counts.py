"""CountTable: the distinct coded rows of a data set and how often each occurs.

It is the last object that holds exact counts, and is meant to be a local variable of ``fit``.
Everything an algorithm needs to know of the records goes through it, and nothing forms a cell
number of the full domain, so that domains of 1e88 cells cost no more than their distinct rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import BoolArray, CodeArray, IntArray, batches, integer_sums, run_starts
from .passes import KEY_LIMIT, Groups, Tallies, check_axes, marginals_of, plan_blocks, split, unpack

# Below this many cells a key is counted by position instead of sorted.
_DENSE_CELLS = 2**16

# Cells of a block of several tables: about twice the rows within these limits, because their sums
# over a block take time too.
_BLOCK_CELLS = (2**10, 2**16)


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
