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
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from .._validation import CodeArray, IntArray

# Cells of all tables, and of all blocks, of one pass: 128 megabytes each.
PASS_CELLS = 2**24

# Larger tables are an error of the caller: 2**27 int64 cells are one gigabyte.
_MOST_CELLS = 2**27

# Blocks that are searched for one that has a table among its margins.
_LOOKED_AT = 8

Groups = Sequence[NDArray[np.integer] | None]


# Rows of codes, none of them negative, and the records that each stands for; None: one each.
Batch = tuple[CodeArray, IntArray | None]


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

    @functools.cached_property
    def _lookup(self) -> NDArray[np.integer] | None:
        if self.group is None:
            return None
        numbers = np.where(self.group < 0, self.size, self.group)
        return numbers.astype(np.min_scalar_type(self.width))

    def numbers(self, codes: NDArray[np.integer]) -> NDArray[np.integer]:
        """Number of each code in its column; dropped ones have the last."""
        return codes if self._lookup is None else self._lookup.take(codes)


@dataclass(frozen=True, eq=False)
class Marginal:
    """A table to be counted: one axis for each column, in this order."""

    columns: tuple[Column, ...]

    @functools.cached_property
    def cells(self) -> int:
        """Number of cells."""
        return math.prod(column.size for column in self.columns)


@dataclass(eq=False)
class Block:
    """Columns that are counted jointly, and the tables that are margins of their joint table.

    Attributes
    ----------
    parts : list of tuple of Column
        The columns, in the order of the axes; those of a part occur together in other blocks too.
    members : list of int
        Numbers of the tables.
    """

    parts: list[tuple[Column, ...]]
    members: list[int] = field(default_factory=list)

    @functools.cached_property
    def columns(self) -> list[Column]:
        """The columns in the order of the axes."""
        return [column for part in self.parts for column in part]

    @functools.cached_property
    def cells(self) -> int:
        """Number of cells."""
        return math.prod(column.width for column in self.columns)


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
        columns = []
        for axis, group in zip(check_axes(axes, len(shape)), groups, strict=True):
            size = shape[axis] if group is None else int(group.max()) + 1
            columns.append(known.setdefault((axis, id(group)), Column(axis, size, group)))
        found.append(Marginal(tuple(columns)))
        if found[-1].cells > _MOST_CELLS:
            raise ValueError(
                f"A dense array of the attributes {tuple(axes)} has {found[-1].cells} cells, more "
                f"than {_MOST_CELLS}; work with the rows of codes, or project to fewer attributes "
                "first."
            )
    return found


def check_axes(axes: Sequence[int], n_attributes: int) -> list[int]:
    """Distinct numbers of attributes as a list of integers; ValueError for others."""
    kept = [int(axis) for axis in axes]
    if len(set(kept)) != len(kept) or any(not 0 <= axis < n_attributes for axis in kept):
        raise ValueError(f"axes must be distinct numbers in 0..{n_attributes - 1}, got {kept}.")
    return kept


Piece = TypeVar("Piece", Marginal, Block)


def split(pieces: Iterable[Piece], most: int | None = None) -> list[list[Piece]]:
    """Cut tables or blocks, in their order, into passes of few cells, or of one piece.

    Parameters
    ----------
    pieces : iterable of Marginal or of Block
    most : int, default=None
        Cells of a pass; 2**24 by default.
    """
    parts: list[list[Piece]] = []
    cells = 0
    for piece in pieces:
        cells += piece.cells
        if not parts or cells > (PASS_CELLS if most is None else most):
            parts.append([])
            cells = piece.cells
        parts[-1].append(piece)
    return parts


# Columns that are counted jointly, and the numbers of the tables on them.
_Joined = tuple[set[Column], list[int]]


def plan_blocks(marginals: Sequence[Marginal], most: int) -> list[Block]:
    """Blocks of few cells that together have all tables as margins.

    The columns are put into groups whose joint tables have at most the root of the cells of a
    block. Tables on the same groups are put into one block as long as it stays small. All pairs of
    two groups are such a block.

    Parameters
    ----------
    marginals : sequence of Marginal
    most : int
        Cells of a block that has more than one table.
    """
    columns = dict.fromkeys(column for each in marginals for column in each.columns)
    group = _group_of(columns, math.isqrt(most))
    groups = [frozenset(group[column] for column in each.columns) for each in marginals]
    joined: list[_Joined] = []
    # The last ones on some groups, which have room for more tables on these, and all by columns.
    last: dict[frozenset[int], _Joined] = {}
    on: dict[Column, list[_Joined]] = {column: [] for column in columns}
    # Tables on many groups first: those on fewer may be among their margins.
    for number in sorted(range(len(marginals)), key=lambda number: -len(groups[number])):
        wanted = marginals[number].columns
        near = min((on[column] for column in wanted), key=len, default=joined)
        found = next((each for each in near[-_LOOKED_AT:] if each[0].issuperset(wanted)), None)
        if found is None:
            found = last.get(groups[number])
            if found is None or math.prod(c.width for c in found[0].union(wanted)) > most:
                found = last[groups[number]] = set(), []
                joined.append(found)
            for column in set(wanted).difference(found[0]):
                on[column].append(found)
            found[0].update(wanted)
        found[1].append(number)
    # In the order in which columns are asked for, those of a group side by side.
    order = {column: (group[column], place) for place, column in enumerate(columns)}
    blocks = []
    for held, members in joined:
        parts = itertools.groupby(sorted(held, key=order.__getitem__), group.__getitem__)
        blocks.append(Block([tuple(part) for _, part in parts], members))
    return blocks


def _group_of(columns: Iterable[Column], most: int) -> dict[Column, int]:
    """Group of each column, wide columns first."""
    group, cells = 0, 1
    found = {}
    for column in sorted(columns, key=lambda column: -column.width):
        cells *= column.width
        if cells > most:
            group, cells = group + 1, column.width
        found[column] = group
    return found


def counted(
    batches: Iterable[Batch], marginals: Sequence[Marginal], blocks: Sequence[Block]
) -> dict[int, IntArray]:
    """Exact counts of the tables of some blocks, by their numbers, in one pass.

    Memory is that of the cells, which are public, and of one batch.

    Parameters
    ----------
    batches : iterable of Batch
    marginals : sequence of Marginal
    blocks : sequence of Block
        Some or all of the blocks that were planned for them.
    """
    joint = [np.zeros(block.cells, dtype=np.int64) for block in blocks]
    for codes, weights in batches:
        for counts, key in zip(joint, _keys(codes, blocks), strict=True):
            # Exact sums of integers; faster than `bincount`, whose result would have to be added.
            np.add.at(counts, key, 1 if weights is None else weights)
    found = {}
    for block, counts in zip(blocks, joint, strict=True):
        table = counts.reshape([column.width for column in block.columns])
        for number in block.members:
            found[number] = _margin(table, block.columns, marginals[number].columns)
    return found


def _keys(codes: CodeArray, blocks: Sequence[Block]) -> Iterator[NDArray[np.integer]]:
    """Cell of each row in each block; what blocks share is computed once."""

    @functools.cache
    def column_of(column: Column) -> _Key:
        return column.numbers(codes[:, column.axis]), column.width

    @functools.cache
    def part_of(part: tuple[Column, ...]) -> _Key:
        return _joined([column_of(column) for column in part], len(codes))

    for block in blocks:
        yield _joined([part_of(part) for part in block.parts], len(codes))[0]


# Numbers of the rows, and how many there can be.
_Key = tuple[NDArray[np.integer], int]


def _joined(keys: Sequence[_Key], n_rows: int) -> _Key:
    """One number of each row from several; zero, if there is none."""
    if not keys:
        return np.zeros(n_rows, dtype=np.int32), 1
    joined, cells = keys[0]
    for key, number in keys[1:]:
        cells *= number
        joined = joined.astype(np.int32 if cells < 2**31 else np.int64)
        joined *= joined.dtype.type(number)
        joined += key
    return joined, cells


def _margin(joint: IntArray, columns: Sequence[Column], wanted: Sequence[Column]) -> IntArray:
    """Sums over all columns but the wanted ones, in their order."""
    inside = tuple(slice(column.size) if column in wanted else slice(None) for column in columns)
    others = tuple(place for place, column in enumerate(columns) if column not in wanted)
    left = [column for column in columns if column in wanted]
    summed: IntArray = np.asarray(joint[inside].sum(axis=others))
    return np.asarray(summed.transpose([left.index(each) for each in wanted]), order="C")
