"""Tallies: exact counts of many tables, added up from batches of rows."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._types import IntArray
from .packing import pack
from .passes import Block, Column, Marginal

__all__ = ["Codes", "Tallies", "regroup"]

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

    def __init__(self, marginals: Sequence[Marginal], blocks: Sequence[Block]) -> None:
        self.marginals = list(marginals)
        self._blocks = list(blocks)
        self._starts = [0, *itertools.accumulate(block.cells for block in self._blocks)]
        self.cells: IntArray = np.zeros(self._starts[-1], dtype=np.int64)
        columns = dict.fromkeys(column for block in self._blocks for column in block.columns)
        self._lookups = {column: _lookup(column) for column in columns}
        self.axes = sorted({column.axis for column in columns})

    @property
    def empty(self) -> Callable[[], Tallies]:
        """Makes tallies of the same cells without rows, also after a journey to a worker."""
        return functools.partial(Tallies, self.marginals, self._blocks)

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

    def keys(self, codes: Sequence[Any], zero: Any) -> list[Any]:
        """Where each row is counted among :attr:`cells`, one number for each block.

        Parameters
        ----------
        codes : sequence of expressions
            Codes of all attributes. Columns must not have groups.
        zero : expression
        """
        return [
            pack([codes[column.axis] for column in block.columns], block.shape, zero) + start
            for block, start in zip(self._blocks, self._starts, strict=False)
        ]

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
                    known[held] = _joined(each), math.prod(column.width for column in held)
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
    joined: NDArray[Any] = keys[0][0].astype(np.int32 if cells < 2**31 else np.int64)
    for key, number in keys[1:]:
        joined *= number
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
