"""From rows to counts: code each record, keep a few rows of each person, count or add up.

There is one way to code: the public description that each attribute gives of its codes is applied
to columns in memory. A lazy frame is read once, in batches, and leaves nothing but small integers,
in a temporary file without a name where they are many.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._validation import BoolArray, CodeArray, IntArray
from ..domain import Domain
from .counts import MERGED_ROWS, CountTable, ProjectedCounts, parts_of
from .frame import Frame, LazyRows
from .persons import Contributions, few_of_each, identities, some_of_each

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
