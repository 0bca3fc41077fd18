"""Many tables counted together in few passes over rows of codes.

A pass counts as many of the tables that are asked for as fit into a bounded number of cells. Within
a pass, tables that share attributes are the margins of a block, the joint table of a few more
attributes: all pairs of four columns take one key and one count per row instead of six. What is
counted together follows from public sizes alone.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._validation import CodeArray, IntArray, batches

# Keys are int64; a group of columns is packed into one key while its cells stay below this.
KEY_LIMIT = 2**62


def unpack(key: IntArray, axes: Sequence[int], sizes: Sequence[int], codes: CodeArray) -> IntArray:
    """Write the codes of the packed ``axes`` and return the rest of the key, a rank."""
    left = np.empty_like(key)
    for part in batches(len(key)):
        rest = key[part]
        for axis in reversed(axes):
            whole = rest // sizes[axis]
            # Faster than `divmod`, whose remainder is a second division.
            codes[part, axis] = rest - whole * sizes[axis]
            rest = whole
        left[part] = rest
    return left


# --- one pass over the rows

# Cells of a block of several tables in a pass, which then fits into a processor's cache.
_BLOCK_CELLS = 2**18

# Cells of all tables, and of all blocks, of one pass: 128 megabytes each.
PASS_CELLS = 2**24

# Larger tables are an error of the caller: 2**27 int64 cells are one gigabyte.
_MOST_CELLS = 2**27

# Blocks that are searched for one that has a table among its margins.
_LOOKED_AT = 8

Groups = Sequence[NDArray[np.integer] | None]


@dataclass(frozen=True, eq=False)
class Column:
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

    def groups(self) -> NDArray[np.integer]:
        """Group of each code, where there are groups."""
        return np.arange(self.size) if self.group is None else self.group


@dataclass(frozen=True, eq=False)
class Marginal:
    """A table to be counted: one axis for each column, in this order."""

    columns: tuple[Column, ...]

    @functools.cached_property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the columns."""
        return tuple(column.size for column in self.columns)

    @property
    def axes(self) -> tuple[int, ...]:
        """Attributes, one for each column."""
        return tuple(column.axis for column in self.columns)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)


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
    known: dict[Hashable, Column] = {}
    found = []
    for axes, groups in sets:
        kept = check_axes(axes, len(shape))
        columns = []
        for axis, group in zip(kept, groups, strict=True):
            key = (axis, None if group is None else id(group))
            if key not in known:
                size = shape[axis] if group is None else int(group.max()) + 1
                known[key] = Column(axis, size, group)
            columns.append(known[key])
        found.append(Marginal(tuple(columns)))
        check_cells(found[-1].shape)
    return found


def check_axes(axes: Sequence[int], n_attributes: int) -> list[int]:
    """Distinct numbers of attributes as a list of integers; ValueError for others."""
    kept = [int(axis) for axis in axes]
    if len(set(kept)) != len(kept) or any(not 0 <= axis < n_attributes for axis in kept):
        raise ValueError(f"axes must be distinct numbers in 0..{n_attributes - 1}, got {kept}.")
    return kept


def check_cells(shape: Sequence[int]) -> int:
    """Number of cells of a dense table; ValueError if it has more than 2**27."""
    cells = math.prod(shape)
    if cells > _MOST_CELLS:
        raise ValueError(
            f"A dense array of shape {tuple(shape)} has {cells} cells, more than {_MOST_CELLS}; "
            "work with the rows of codes, or project to fewer attributes first."
        )
    return cells


@dataclass(eq=False)
class _Block:
    """Columns that are counted jointly, and the tables that are margins of their joint table.

    Attributes
    ----------
    parts : list of list of Column
        The columns, in the order of the axes; those of a part occur together in other blocks too.
    members : list of int
        Numbers of the tables.
    """

    parts: list[list[Column]]
    members: list[int] = field(default_factory=list)

    @functools.cached_property
    def columns(self) -> list[Column]:
        """The columns in the order of the axes."""
        return [column for part in self.parts for column in part]

    @functools.cached_property
    def shape(self) -> tuple[int, ...]:
        """Widths of the columns."""
        return tuple(column.width for column in self.columns)

    @functools.cached_property
    def cells(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)


Piece = TypeVar("Piece", Marginal, _Block)


def split(pieces: Sequence[Piece], most: int | None = None) -> Iterator[list[Piece]]:
    """Cut tables or blocks, in their order, into passes of few cells, or of one piece.

    Parameters
    ----------
    pieces : sequence of Marginal or of Block
    most : int, default=None
        Cells of a pass; 2**24 by default.
    """
    most = PASS_CELLS if most is None else most
    part: list[Piece] = []
    cells = 0
    for piece in pieces:
        if part and cells + piece.cells > most:
            yield part
            part, cells = [], 0
        part.append(piece)
        cells += piece.cells
    if part:
        yield part


def plan_pass(marginals: Sequence[Marginal]) -> list[_Block]:
    """Blocks of one pass: as large as is useful, if all together are within its limit."""
    most = _BLOCK_CELLS
    while True:
        blocks = plan_blocks(marginals, most)
        if most < 2 or sum(block.cells for block in blocks) <= PASS_CELLS:
            return blocks
        most //= 4


def plan_blocks(marginals: Sequence[Marginal], most: int) -> list[_Block]:
    """Blocks of few cells that together have all tables as margins.

    Parameters
    ----------
    marginals : sequence of Marginal
    most : int
        Cells of a block that has more than one table.
    """
    return _Cover(marginals, most).blocks


class _Cover:
    """Collects tables into blocks.

    The columns are put into groups whose joint tables have at most the root of the cells of a
    block. Tables on the same groups are neighbours: they are put into one block as long as it stays
    small. All pairs of two groups are such a block.
    """

    def __init__(self, marginals: Sequence[Marginal], most: int) -> None:
        self._most = most
        self.blocks: list[_Block] = []
        self._with: dict[Column, list[tuple[_Block, set[Column]]]] = {}
        # Each column once, in the order in which they are asked for.
        columns = dict.fromkeys(column for each in marginals for column in each.columns)
        self._width = {column: column.width for column in columns}
        self._order = {column: place for place, column in enumerate(columns)}
        self._group = _group_of(self._width, math.isqrt(most))
        near: dict[tuple[int, ...], list[int]] = {}
        for number, each in enumerate(marginals):
            groups = tuple(sorted({self._group[column] for column in each.columns}))
            near.setdefault(groups, []).append(number)
        # Tables on many groups first: those on fewer may be among their margins.
        for groups in sorted(near, key=lambda groups: (-len(groups), groups)):
            self._collect(near[groups], marginals)

    def _collect(self, numbers: Sequence[int], marginals: Sequence[Marginal]) -> None:
        """Put tables on the same groups into blocks."""
        joined: set[Column] = set()
        members: list[int] = []
        for number in numbers:
            columns = set(marginals[number].columns)
            block = self._holding(marginals[number].columns)
            if block is not None:
                block.members.append(number)
                continue
            wider = joined | columns
            if members and math.prod(self._width[column] for column in wider) > self._most:
                self._close(joined, members)
                wider, members = columns, []
            joined, members = wider, [*members, number]
        if members:
            self._close(joined, members)

    def _holding(self, columns: Sequence[Column]) -> _Block | None:
        """A finished block that has all these columns, if one is found quickly."""
        if not columns:
            return self.blocks[0] if self.blocks else None
        near = min((self._with.get(column, []) for column in columns), key=len)
        found = (block for block, whole in near[:_LOOKED_AT] if whole.issuperset(columns))
        return next(found, None)

    def _close(self, columns: set[Column], members: list[int]) -> None:
        """Make a block of these columns, those of a group side by side."""
        parts: dict[int, list[Column]] = {}
        for column in sorted(columns, key=self._order.__getitem__):
            parts.setdefault(self._group[column], []).append(column)
        block = _Block([parts[group] for group in sorted(parts)], members)
        self.blocks.append(block)
        for column in columns:
            self._with.setdefault(column, []).append((block, columns))


def _group_of(widths: dict[Column, int], most: int) -> dict[Column, int]:
    """Group of each column: the first with room for it, wide columns first."""
    cells: list[int] = []
    found = {}
    for column in sorted(widths, key=lambda column: -widths[column]):
        width = widths[column]
        fits = (place for place, held in enumerate(cells) if held * width <= most)
        place = next(fits, len(cells))
        if place == len(cells):
            cells.append(1)
        cells[place] *= width
        found[column] = place
    return found


# --- Tallies: exact counts of many tables, added up from batches of rows

Codes = Mapping[int, NDArray[np.integer]]

# Numbers of the rows, and how many there can be.
_Key = tuple[NDArray[np.integer], int]


class Tallies:
    """Counts of many tables while rows are added batch by batch.

    Memory is that of the cells, which are public, and of one batch.

    Parameters
    ----------
    marginals : sequence of Marginal
    blocks : sequence of Block
        Some or all of the blocks that were planned for them.

    Attributes
    ----------
    marginals : list of Marginal
    cells : ndarray of int64
        Counts of the cells of all blocks, one block after the other.
    axes : list of int
        Attributes whose codes are needed, ascending.
    """

    def __init__(self, marginals: Sequence[Marginal], blocks: Sequence[_Block]) -> None:
        self.marginals = list(marginals)
        self._blocks = list(blocks)
        self._starts = [0, *itertools.accumulate(block.cells for block in self._blocks)]
        self.cells: IntArray = np.zeros(self._starts[-1], dtype=np.int64)
        columns = dict.fromkeys(column for block in self._blocks for column in block.columns)
        self._lookups = {column: _lookup(column) for column in columns}
        self.axes = sorted({column.axis for column in columns})

    def add(self, codes: Codes, n_rows: int, weights: IntArray | None = None) -> None:
        """Count a batch of rows.

        Parameters
        ----------
        codes : mapping of int to ndarray of int, shape (n_rows,)
            Codes of each attribute of :attr:`axes`; none is negative.
        n_rows : int
        weights : ndarray of int64, shape (n_rows,), default=None
            Number of records that each row stands for; one each by default.
        """
        # Exact sums of integers; faster than `bincount`, whose result would have to be added.
        step: Any = 1 if weights is None else weights
        keys = self._keys_of_parts(codes)
        for place, block in enumerate(self._blocks):
            start, stop = self._starts[place : place + 2]
            parts = [keys[id(part)] for part in block.parts]
            np.add.at(self.cells[start:stop], _joined(parts, n_rows), step)

    def tables(self) -> dict[int, IntArray]:
        """The tables that the blocks have, by their numbers."""
        found = {}
        for place, block in enumerate(self._blocks):
            joint = self.cells[self._starts[place] : self._starts[place + 1]].reshape(block.shape)
            for number in block.members:
                found[number] = _margin(joint, block.columns, self.marginals[number].columns)
        return found

    def _keys_of_parts(self, codes: Codes) -> dict[int, _Key]:
        """Packed columns of each part, by its identity."""
        columns = {
            column: codes[column.axis] if lookup is None else lookup.take(codes[column.axis])
            for column, lookup in self._lookups.items()
        }
        known: dict[tuple[Column, ...], _Key] = {}
        found = {}
        for block in self._blocks:
            for part in block.parts:
                held = tuple(part)
                if held not in known:
                    each = [(columns[column], column.width) for column in held]
                    cells = math.prod(column.width for column in held)
                    known[held] = each[0] if len(each) == 1 else (_joined(each), cells)
                found[id(part)] = known[held]
        return found


def _lookup(column: Column) -> NDArray[np.integer] | None:
    """Number of each code in its column, in a small type; dropped codes have the last one."""
    if column.group is None:
        return None
    numbers = np.where(column.group < 0, column.size, column.group)
    return numbers.astype(np.min_scalar_type(column.width))


def _joined(keys: Sequence[_Key], n_rows: int = 0) -> NDArray[np.integer]:
    """One number of each row from several; zero, if there is none."""
    if not keys:
        return np.zeros(n_rows, dtype=np.int64)
    cells = math.prod(number for _, number in keys)
    joined: NDArray[Any] = keys[0][0].astype(np.int32 if cells < 2**31 else np.int64, copy=False)
    for key, number in keys[1:]:
        joined = joined * joined.dtype.type(number)
        joined += key
    return joined


def _margin(joint: IntArray, columns: Sequence[Column], wanted: Sequence[Column]) -> IntArray:
    """Sums over all columns but the wanted ones, in their order."""
    inside = tuple(slice(column.size) if column in wanted else slice(None) for column in columns)
    others = tuple(place for place, column in enumerate(columns) if column not in wanted)
    left = [column for column in columns if column in wanted]
    summed: IntArray = np.asarray(joint[inside].sum(axis=others))
    return np.asarray(summed.transpose([left.index(each) for each in wanted]), order="C")


def regroup(table: IntArray, columns: Sequence[Column]) -> IntArray:
    """A table over codes as one over the groups of its columns.

    Parameters
    ----------
    table : ndarray of int64
        One axis for each column, over the codes of its attribute.
    columns : sequence of Column
    """
    for place, column in enumerate(columns):
        if column.group is None:
            continue
        order = np.argsort(column.group, kind="stable")
        present, starts = np.unique(column.group[order], return_index=True)
        sums = np.add.reduceat(table.take(order, axis=place), starts, axis=place)
        shape = list(table.shape)
        shape[place] = column.size
        table = np.zeros(shape, dtype=np.int64)
        known = np.flatnonzero(present >= 0)
        np.moveaxis(table, place, 0)[present[known]] = np.moveaxis(sums, place, 0)[known]
    return table
