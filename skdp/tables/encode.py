"""From rows to counts: code each record, keep a few rows of each person, count or add up."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._random import NoiseSource
from .._validation import CodeArray, IntArray, batches
from ..domain import Domain
from .coded import CodedRows
from .counts import CountTable
from .frame import Frame
from .lazy import LazyRows
from .passes import (
    Codes,
    Column,
    Groups,
    Marginal,
    Tallies,
    check_axes,
    first_unfit,
    marginals_of,
    plan_pass,
    regroup,
    split,
)

# --- projectedCounts: counts of rows that stay in an engine, asked for a few attributes at a time

# Cells of all tables that are remembered: 128 megabytes.
_KEPT_CELLS = 2**24

# Larger tables are counted by their distinct rows, where nobody needs all cells.
_DENSE_CELLS = 2**22


class ProjectedCounts:
    """Counts of rows that are too many to hold, requested for a few attributes at a time.

    It has the interface of :class:`CountTable`, without the rows. Which tables are requested
    depends on public facts and earlier releases, never on counts.

    Parameters
    ----------
    tables : EngineTables
        Of all rows.
    changed : mapping of int to Column, default=None
        New codes of some attributes. Rows with a negative one do not count in tables of the
        attribute.
    conditions : collection of int, default=()
        Those of them whose rows with a negative code count in no table.
    """

    def __init__(
        self,
        tables: EngineTables,
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
        small = [math.prod(self.shape[axis] for axis in axes) <= _DENSE_CELLS for axes in kept]
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


class EngineTables:
    """Tables of rows in an engine: many from one pass, and those that fit are remembered.

    What is counted and remembered follows from what is asked for and from the domain.

    Parameters
    ----------
    rows : CodedRows
    together : sequence of int
        Attributes that most tables contain.

    Attributes
    ----------
    shape : tuple of int
        Number of codes of each attribute.
    """

    def __init__(self, rows: CodedRows, together: Sequence[int] = ()) -> None:
        self._rows = rows
        self._columns = [Column(axis, size) for axis, size in enumerate(rows.shape)]
        self._together = set(together)
        self._known: dict[tuple[int, ...], IntArray] = {}
        # Remembered tables by each of their attributes.
        self._with: dict[int, list[tuple[int, ...]]] = {}
        self.shape = rows.shape

    def count(self, axes: tuple[int, ...]) -> tuple[NDArray[np.int32], IntArray]:
        """As :meth:`CodedRows.count`."""
        return self._rows.count(axes)

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
        counted = (table for some in split(rest) for table in self._rows.tables(some))
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
        for axes, table in zip(sets, self._rows.tables(raw), strict=True):
            self._known[axes] = table
            for axis in axes:
                self._with.setdefault(axis, []).append(axes)


def _margin(axes: tuple[int, ...], table: IntArray, wanted: Marginal) -> IntArray:
    """A margin of a table over codes, by the groups of its columns."""
    others = tuple(place for place, axis in enumerate(axes) if axis not in wanted.axes)
    left = [axis for axis in axes if axis in wanted.axes]
    summed = np.asarray(table.sum(axis=others))
    return regroup(summed.transpose([left.index(axis) for axis in wanted.axes]), wanted.columns)


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
    privacy_id : str
        Column that identifies the person a row belongs to.
    most : int
        How many rows of a person are kept.
    source : NoiseSource
        Randomness that decides which rows are kept: fresh random words, or a fresh hash key where
        an engine holds the rows.
    """

    privacy_id: str
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
        used = rows.select([*domain.names, bound.privacy_id])
        return used.coded(domain, privacy_id=bound.privacy_id, most=bound.most, key=key)
    return _in_memory(rows, domain, bound)[1]


def _in_memory(
    rows: Frame, domain: Domain, bound: Contributions | None, broken: int = -1
) -> tuple[CodeArray, CodeArray, IntArray | None]:
    """Codes of all rows and of those that are kept, and the owner of each, if they are bounded."""
    codes = domain.encode_columns(rows.select(domain.names), broken=broken)
    if bound is None:
        return codes, codes, None
    owners = rows.column(bound.privacy_id).identities()
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
