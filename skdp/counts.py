"""CountTable: the distinct coded rows of a data set and how often each occurs.

This is the last private thing: exact counts, meant to be a local variable of ``fit``. Everything
an algorithm needs to know of the records goes through it, and nothing forms a cell number of the
full domain, so that domains of 1e88 cells cost no more than their distinct rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp._random import NoiseSource
from skdp.domain import Domain
from skdp.engines import CodedRows, LazyRows
from skdp.frames import Frame

__all__ = ["Contributions", "CountTable", "code_rows", "count_rows"]

# Keys are int64; a group of columns is packed into one key while its cells stay below this.
_KEY_LIMIT = 2**62
# Below this many cells a key is counted by position instead of sorted.
_DENSE_CELLS = 2**16
# Dense views beyond this are a mistake of the caller: 2**27 int64 cells are one gigabyte.
_DENSE_LIMIT = 2**27


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

    codes: NDArray[np.int32]
    counts: NDArray[np.int64]
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
            If the shapes do not fit together, codes are no integers or reach the attribute's
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
        keep: NDArray[np.bool_] | None = None
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

    @property
    def n(self) -> int:
        """Exact number of records: private."""
        return int(self.counts.sum())

    @property
    def n_rows(self) -> int:
        """Number of distinct rows: private."""
        return len(self.counts)

    def project(self, axes: Sequence[int]) -> CountTable:
        """Sum the counts over all attributes but ``axes``; rows come out sorted in that order.

        Parameters
        ----------
        axes : sequence of distinct int
            Attributes to keep, in the order wanted. None at all gives one row with the total.
        """
        kept = self._axes(axes)
        sizes = tuple(self.shape[axis] for axis in kept)
        columns = [self.codes[:, axis] for axis in kept]
        return CountTable(*_group(columns, len(self.counts), sizes, self.counts), sizes)

    def recode(self, axis: int, codes_of: NDArray[np.integer]) -> CountTable:
        """Give the codes of one attribute other numbers.

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

    def dense(self, axes: Sequence[int] | None = None) -> NDArray[np.int64]:
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
        kept = self._axes(range(len(self.shape)) if axes is None else axes)
        sizes = tuple(self.shape[axis] for axis in kept)
        cells = math.prod(sizes)
        if cells > _DENSE_LIMIT:
            raise ValueError(
                f"A dense array of shape {sizes} has {cells} cells, more than {_DENSE_LIMIT}; "
                "work with the rows of codes, or project to fewer attributes first."
            )
        key = _pack([self.codes[:, axis] for axis in kept], len(self.counts), sizes)
        return _count_keys(key, cells, self.counts).reshape(sizes)

    def _axes(self, axes: Sequence[int]) -> list[int]:
        kept = [int(axis) for axis in axes]
        if len(set(kept)) != len(kept) or any(not 0 <= axis < len(self.shape) for axis in kept):
            raise ValueError(
                f"axes must be distinct numbers in 0..{len(self.shape) - 1}, got {kept}."
            )
        return kept

    def __repr__(self) -> str:
        # No counts and no number of rows: reprs end up in logs.
        return f"CountTable(shape={self.shape})"


@dataclass(frozen=True)
class Contributions:
    """A bound on what one person contributes.

    Attributes
    ----------
    unit : str
        Column that tells whose a row is.
    most : int
        How many rows of a person are kept.
    source : NoiseSource
        Which ones: fresh coins, or a fresh key of a hash where an engine holds the rows.
    """

    unit: str
    most: int
    source: NoiseSource


def code_rows(
    rows: Frame | LazyRows, domain: Domain, contributions: Contributions | None = None
) -> NDArray[np.int32] | CodedRows:
    """Code the rows that the domain can represent, and keep so many of each person.

    Parameters
    ----------
    rows : Frame or LazyRows
        With the columns of the domain, and the unit of ``contributions``.
    domain : Domain
    contributions : Contributions, default=None
        None keeps all rows.

    Returns
    -------
    codes : ndarray of int32, shape (n, d), or CodedRows
        In memory rows with a negative code are dropped where contributions are bounded, else
        they are left for the reader to drop; in an engine they never count.
    """
    # Privacy. Which rows of a person are kept is decided by that person's own rows and by coins
    # or a key that are drawn without looking at any row. So, whatever the coins, a person more
    # with any number of rows adds at most `most` rows to what is counted and takes none away:
    # `most` steps between neighbours in records. What loses epsilon / most for each record loses
    # epsilon for the person.
    own = rows.select(domain.names)
    if contributions is None:
        return own.coded(domain) if isinstance(own, LazyRows) else domain.encode(own)
    bound = contributions
    if isinstance(rows, LazyRows):
        key = int(bound.source.words(1)[0])
        return rows.coded(domain, unit=bound.unit, most=bound.most, key=key)
    codes = domain.encode(own)
    owners = rows.column(bound.unit).identities()
    known = np.flatnonzero((codes >= 0).all(axis=1) & (owners >= 0))
    order = known[np.lexsort((bound.source.words(len(known)), owners[known]))]
    ordered = owners[order]
    place = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    return codes[np.sort(order[place < bound.most])]


def count_rows(
    rows: Frame | LazyRows, domain: Domain, contributions: Contributions | None = None
) -> CountTable:
    """Count the distinct coded rows, in memory or in the engine that holds the rows.

    Parameters
    ----------
    rows : Frame or LazyRows
        With the columns of the domain, and the unit of ``contributions``.
    domain : Domain
    contributions : Contributions, default=None
        A bound on the rows of each person.

    Raises
    ------
    EngineError
        If an engine fails; the text does not depend on values.
    """
    coded = code_rows(rows, domain, contributions)
    if isinstance(coded, CodedRows):
        codes, counts = coded.count(range(len(domain)))
        return CountTable.from_codes(codes, domain.shape, counts)
    return CountTable.from_codes(coded, domain.shape)


def _pack(columns: Sequence[NDArray], n: int, sizes: Sequence[int]) -> NDArray[np.int64]:
    """Mixed-radix number of each row, first column most significant."""
    key = np.zeros(n, dtype=np.int64)
    for column, size in zip(columns, sizes, strict=True):
        key *= size
        key += column
    return key


def _count_keys(
    key: NDArray[np.int64], cells: int, weights: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """Total weight at each of ``cells`` positions, in integers."""
    if weights is None:
        return np.bincount(key, minlength=cells).astype(np.int64, copy=False)
    if int(weights.sum()) < 2**53:
        # Counts are not negative, so no partial sum is larger, and all are exact in float64.
        return np.bincount(key, weights=weights, minlength=cells).astype(np.int64)
    total = np.zeros(cells, dtype=np.int64)
    np.add.at(total, key, weights)
    return total


def _unique(
    key: NDArray[np.int64], cells: int, weights: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sorted distinct keys and their total weights."""
    if not len(key):
        return key, np.zeros(0, dtype=np.int64)
    if cells <= max(_DENSE_CELLS, 2 * len(key)):
        total = _count_keys(key, cells, weights)
        present = np.flatnonzero(total)
        return present, total[present]
    if weights is None:
        ordered = np.sort(key)
        starts = _starts(ordered)
        return ordered[starts], np.diff(starts, append=len(ordered))
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    starts = _starts(ordered)
    return ordered[starts], np.add.reduceat(weights[order], starts)


def _starts(ordered: NDArray[np.int64]) -> NDArray[np.intp]:
    """Positions where a new value begins in a sorted array that is not empty."""
    return np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))


def _group(
    columns: Sequence[NDArray],
    n: int,
    sizes: Sequence[int],
    weights: NDArray[np.int64] | None,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Distinct rows in lexicographic order and their total weights.

    As many columns as fit are packed into one int64 key. Where more columns follow, the key is
    replaced by its rank among the keys present: ranks keep the order and are below n, so there is
    room for the next columns. A stage remembers its distinct keys to turn ranks back into codes.
    """
    stages: list[tuple[list[int], NDArray[np.int64]]] = []
    key = np.zeros(n, dtype=np.int64)
    cells = 1
    members: list[int] = []
    for axis, size in enumerate(sizes):
        if cells * size > _KEY_LIMIT:
            present, key = np.unique(key, return_inverse=True)
            stages.append((members, present))
            cells, members = max(1, len(present)), []
        key = key * size + columns[axis]
        cells *= size
        members.append(axis)

    distinct, counts = _unique(key, cells, weights)
    codes = np.empty((len(distinct), len(sizes)), dtype=np.int32, order="F")
    rest = _unpack(distinct, members, sizes, codes)
    for axes, present in reversed(stages):
        rest = _unpack(present[rest], axes, sizes, codes)
    return codes, counts.astype(np.int64, copy=False)


def _unpack(
    key: NDArray[np.int64], axes: Sequence[int], sizes: Sequence[int], codes: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Write the codes of the packed ``axes`` and return what is left of the key: a rank."""
    for axis in reversed(axes):
        key, codes[:, axis] = np.divmod(key, sizes[axis])
    return key
