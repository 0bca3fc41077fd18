"""Which tables one pass over the rows counts, and which of them one key of a row can answer.

Many tables of a few attributes are asked for together. A pass counts as many of them as fit into a
bounded number of cells. Within a pass, tables that share attributes are the margins of a block,
the joint table of a few more attributes: all pairs of four columns take one key and one count per
row instead of six. What is counted together follows from public sizes alone.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Block",
    "Column",
    "Groups",
    "Marginal",
    "check_axes",
    "check_cells",
    "marginals_of",
    "plan_blocks",
    "plan_pass",
    "split",
]

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

    @property
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
class Block:
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


Piece = TypeVar("Piece", Marginal, Block)


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


def plan_pass(marginals: Sequence[Marginal]) -> list[Block]:
    """Blocks of one pass: as large as is useful, if all together are within its limit."""
    most = _BLOCK_CELLS
    while True:
        blocks = plan_blocks(marginals, most)
        if most < 2 or sum(block.cells for block in blocks) <= PASS_CELLS:
            return blocks
        most //= 4


def plan_blocks(marginals: Sequence[Marginal], most: int) -> list[Block]:
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
        self.blocks: list[Block] = []
        self._with: dict[Column, list[tuple[Block, set[Column]]]] = {}
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

    def _holding(self, columns: Sequence[Column]) -> Block | None:
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
        block = Block([parts[group] for group in sorted(parts)], members)
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
