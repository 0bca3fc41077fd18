"""From rows to counts: code each record, keep a few rows of each person, count or add up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import batches
from .._random import NoiseSource
from .._types import CodeArray, IntArray
from ..domain import Domain
from .coded import CodedRows, first_unfit
from .counts import CountTable
from .frames import Frame
from .lazy import LazyRows
from .passes import Codes, Tallies, marginals_of, plan_pass, split
from .projected import Counts, EngineTables, ProjectedCounts

__all__ = [
    "MOST_AT_ONCE",
    "Coded",
    "Contributions",
    "code_rows",
    "count_rows",
    "few_of_each",
    "weighted_rows",
    "weighted_tables",
]

# An engine returns the whole table for domains of at most this many cells, all of which may be
# occupied: one gigabyte.
MOST_AT_ONCE = 2**24

# Rows of domains of at most this many cells are counted cell by cell, without sorting.
_FEW_CELLS = 2**20
# Stands in every column of a row that breaks a rule, where it is told from other unfit rows.
_BROKEN = -2


@dataclass(frozen=True)
class Contributions:
    """A bound on what one person contributes.

    Attributes
    ----------
    unit : str
        Column that identifies the person a row belongs to.
    most : int
        How many rows of a person are kept.
    source : NoiseSource
        Randomness that decides which rows are kept: fresh random words, or a fresh hash key where
        an engine holds the rows.
    """

    unit: str
    most: int
    source: NoiseSource


def code_rows(
    rows: Frame | LazyRows, domain: Domain, contributions: Contributions | None = None
) -> CodeArray | CodedRows:
    """Code the rows that the domain can represent, and keep a few of each person.

    Parameters
    ----------
    rows : Frame or LazyRows
        Whose schema was checked: with the columns of the domain, and the unit of
        ``contributions``.
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
    bound = contributions
    if isinstance(rows, LazyRows):
        if bound is None:
            return rows.select(domain.names).coded(domain)
        key = int(bound.source.words(1)[0])
        used = rows.select([*domain.names, bound.unit])
        return used.coded(domain, unit=bound.unit, most=bound.most, key=key)
    return _in_memory(rows, domain, bound)[1]


def _in_memory(
    rows: Frame, domain: Domain, bound: Contributions | None, broken: int = -1
) -> tuple[CodeArray, CodeArray, IntArray | None]:
    """Codes of all rows and of those that are kept, and the owner of each, if they are bounded."""
    codes = domain.encode_columns(rows.select(domain.names), broken=broken)
    if bound is None:
        return codes, codes, None
    owners = rows.column(bound.unit).identities()
    return codes, _some_of_each(codes, owners, bound), owners


def _some_of_each(codes: CodeArray, owners: IntArray, bound: Contributions) -> CodeArray:
    """The rows that are kept of each person, in their order."""
    known = np.flatnonzero((codes >= 0).all(axis=1) & (owners >= 0))
    coins = bound.source.record_words(len(known), codes[known], owners[known])
    return codes[np.sort(known[few_of_each(owners[known], coins, bound.most)])]


def few_of_each(owners: IntArray, coins: NDArray[Any], most: int) -> IntArray:
    """Positions of at most ``most`` rows of each owner, those with the least coins; by owner."""
    order = np.lexsort((coins, owners))
    ordered = owners[order]
    place = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    return order[place < most]


def count_rows(
    rows: Frame | LazyRows,
    domain: Domain,
    contributions: Contributions | None = None,
    *,
    together: Sequence[int] | None = None,
) -> Counts:
    """Count the distinct coded rows: as `Coded.counts`, where nobody asks what was skipped."""
    return Coded(rows, domain, contributions).counts(together)


class Coded:
    """Coded rows, kept and skipped: private, in memory or in the engine that holds the rows.

    Parameters
    ----------
    rows : Frame or LazyRows
        Whose schema was checked: with the columns of the domain, and the unit of
        ``contributions``.
    domain : Domain
    contributions : Contributions, default=None
        A bound on the rows of each person.

    Raises
    ------
    EngineError
        If an engine fails; the text does not depend on values.
    """

    def __init__(
        self, rows: Frame | LazyRows, domain: Domain, contributions: Contributions | None = None
    ) -> None:
        self._domain, self._bound = domain, contributions
        self._codes: CodeArray | CodedRows
        self._unfit = None if isinstance(rows, LazyRows) else rows.unfit
        # Records of a file that could not be read; None if the rows are not those of a file.
        self.unread = None if self._unfit is None else int(self._unfit.sum())
        if isinstance(rows, LazyRows):
            self._codes = code_rows(rows, domain, contributions)
        else:
            self._every, self._codes, self._owners = _in_memory(
                rows, domain, contributions, _BROKEN
            )

    def cells(self) -> IntArray:
        """How many rows are kept; are skipped for each attribute; and because they break a rule.

        Returns
        -------
        ndarray of int64, shape (len(domain) + 2,)
            Exact and private.
        """
        # Privacy. A row counts in one cell: that of what is kept, or that of the first attribute
        # for which it has no code, or that of the rules that it breaks. So a record more changes
        # one cell by 1. Of a person the first `most` rows count, in the order of the cells, so that
        # skipped ones fill what the kept ones leave: a function of this person's rows alone, so a
        # person more adds at most `most` to all cells together and takes none away. Rows without a
        # unit are nobody's, may be many of one person, and count nowhere.
        if isinstance(self._codes, CodedRows):
            return self._codes.cells_of_all()
        cells = first_unfit(self._every)
        if self._bound is not None and self._owners is not None:
            known = self._owners >= 0
            cells = cells[known]
            # The least cell is that of the rows that are kept.
            cells = cells[few_of_each(self._owners[known], cells, self._bound.most)]
        elif self._unfit is not None:
            cells = cells[~self._unfit]
        return np.bincount(cells, minlength=len(self._domain) + 2)

    def counts(self, together: Sequence[int] | None = None) -> Counts:
        """Count the distinct rows that are kept.

        Parameters
        ----------
        together : sequence of int, default=None
            For algorithms that need projections only: attributes that most of the projections
            contain, or an empty list. Where an engine holds the rows and the domain has more than
            2**24 cells, only the tables asked for are counted, so that memory is bounded whatever
            the rows are. The choice depends on the domain alone. None: the whole table is returned.
        """
        domain, coded = self._domain, self._codes
        if isinstance(coded, CodedRows):
            if together is not None and domain.size > MOST_AT_ONCE:
                return ProjectedCounts(EngineTables(coded, together))
            codes, counts = coded.count(range(len(domain)))
            return CountTable.from_codes(codes, domain.shape, counts)
        return CountTable.from_codes(coded, domain.shape)


def weighted_rows(
    rows: Frame | LazyRows, domain: Domain, contributions: Contributions | None = None
) -> tuple[CodeArray, IntArray]:
    """Coded rows and how many records each stands for, in no order.

    Equal rows are merged only where that costs little: in an engine, and in small domains.

    Parameters
    ----------
    rows, domain, contributions
        As for `count_rows`.
    """
    coded = code_rows(rows, domain, contributions)
    if isinstance(coded, CodedRows):
        return coded.count(range(len(domain)))
    if domain.size <= _FEW_CELLS:
        table = CountTable.from_codes(coded, domain.shape)
        return table.codes, table.counts
    if any(coded[:, axis].min(initial=0) < 0 for axis in range(len(domain))):
        coded = np.asfortranarray(coded[(coded >= 0).all(axis=1)])
    return coded, np.ones(len(coded), dtype=np.int64)


# --- sums of integers of the rows over the cells of many tables, in memory or batch by batch


def weighted_tables(
    coded: CodeArray | CodedRows,
    shape: Sequence[int],
    sets: Sequence[Sequence[int]],
    numbers: Callable[[IntArray], Sequence[IntArray]],
) -> list[list[IntArray]]:
    """Sums over the cells of many tables of integers that the last attribute decides.

    Parameters
    ----------
    coded : ndarray of int32, shape (n, d), or CodedRows that give batches
        Rows with a negative code are skipped.
    shape : tuple of int
        Number of codes of each attribute.
    sets : sequence of sequence of distinct int
        Attributes of each table, without the last attribute.
    numbers : callable
        Turns codes of the last attribute into one array of integers or several.

    Returns
    -------
    list of list of ndarray of int64
        For each of these arrays the tables, in the order of ``sets``. They are exact.

    Raises
    ------
    EngineError
        If an engine fails.
    """
    last = len(shape) - 1
    many = len(numbers(np.zeros(0, dtype=np.int64)))
    found: list[list[IntArray]] = [[] for _ in range(many)]
    for some in split(marginals_of(shape, [(axes, [None] * len(axes)) for axes in sets])):
        blocks = plan_pass(some)
        tallies = [Tallies(some, blocks) for _ in range(many)]

        def add(codes: Codes, n_rows: int, to: list[Tallies] = tallies) -> None:
            for each, weights in zip(
                to, numbers(np.asarray(codes[last], dtype=np.int64)), strict=True
            ):
                each.add(codes, n_rows, weights)

        axes = sorted({*tallies[0].axes, last})
        if isinstance(coded, CodedRows):
            coded.each_batch(axes, add)
        else:
            for codes in _batches(coded, axes):
                add(codes, len(codes[last]))
        for tables, each in zip(found, tallies, strict=True):
            by_number = each.tables()
            tables += [by_number[number] for number in range(len(some))]
    return found


def _batches(coded: CodeArray, axes: Sequence[int]) -> Iterator[Codes]:
    for each in batches(len(coded)):
        part = coded[each]
        part = part[(part >= 0).all(axis=1)]
        yield {axis: part[:, axis] for axis in axes}
