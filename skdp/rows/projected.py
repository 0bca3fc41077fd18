"""ProjectedCounts: counts of rows that stay in an engine, asked for a few attributes at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from .._types import IntArray
from .coded import CodedRows
from .counts import CountTable
from .passes import Column, Groups, Marginal, check_axes, marginals_of, regroup, split

__all__ = ["Counts", "EngineTables", "ProjectedCounts"]

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
