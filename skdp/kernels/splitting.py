"""What several kernels share: boxes of codes that are divided, and the cuts between their codes.

HDPView, PrivTree and the kd-trees of DPCube divide boxes level by level. All boxes of one level are
treated at once: their contents lie in one long array, box after box, so that a few NumPy calls sum
over all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import exclusive_cumsum, integer_sums, running_sums
from .._types import CodeArray, FloatArray, IntArray


def renumbered(kept: IntArray, size: int) -> IntArray:
    """New number of each of ``size`` items: 0, 1, ... for those kept, -1 for the others."""
    number = np.full(size, -1)
    number[kept] = np.arange(len(kept))
    return number


@dataclass(frozen=True)
class Blocks:
    """Boxes of one level, with the rows of the table that lie in them: private.

    Attributes
    ----------
    lower, upper : ndarray of int64, shape (m, d)
        Codes; the upper ends are excluded.
    total : ndarray of int64, shape (m,)
        Exact number of records.
    row : ndarray of int64, shape (n,)
        Positions in the table.
    block : ndarray of int64, shape (n,)
        The box of each of these rows.
    """

    lower: IntArray
    upper: IntArray
    total: IntArray
    row: IntArray
    block: IntArray

    @classmethod
    def whole(cls, shape: Sequence[int], counts: IntArray) -> Blocks:
        """The whole domain as one box; row i of the table stands for ``counts[i]`` records."""
        lower, upper = np.zeros((1, len(shape)), dtype=np.int64), np.array([shape], dtype=np.int64)
        n_rows = len(counts)
        return cls.counted(
            lower, upper, np.arange(n_rows), np.zeros(n_rows, dtype=np.int64), counts
        )

    @classmethod
    def counted(
        cls, lower: IntArray, upper: IntArray, row: IntArray, block: IntArray, counts: IntArray
    ) -> Blocks:
        """Boxes with the totals of their rows."""
        return cls(lower, upper, integer_sums(block, len(lower), counts[row]), row, block)

    def __len__(self) -> int:
        return len(self.lower)

    @property
    def sides(self) -> IntArray:
        """Number of codes of each box along each axis."""
        return self.upper - self.lower

    def select(self, kept: IntArray) -> Blocks:
        """Some of the boxes, in increasing order, with their rows."""
        block = renumbered(kept, len(self))[self.block]
        inside = np.flatnonzero(block >= 0)
        return Blocks(
            self.lower[kept], self.upper[kept], self.total[kept], self.row[inside], block[inside]
        )

    def halved(self, axis: IntArray, cut: IntArray, codes: CodeArray, counts: IntArray) -> Blocks:
        """Both parts of each box, one after the other.

        Parameters
        ----------
        axis, cut : ndarray of int64, shape (m,)
            The right part of a box begins at the code ``cut`` of its ``axis``.
        codes, counts
            Those of the table.
        """
        each = np.arange(len(axis))
        lower, upper = np.repeat(self.lower, 2, axis=0), np.repeat(self.upper, 2, axis=0)
        upper[2 * each, axis] = cut
        lower[2 * each + 1, axis] = cut
        right = codes[self.row, axis[self.block]] >= cut[self.block]
        return Blocks.counted(lower, upper, self.row, 2 * self.block + right, counts)


@dataclass(frozen=True)
class Slots:
    """A slot for each code of each box along one of its axes, box after box.

    Attributes
    ----------
    side, begin : ndarray of int64, shape (m,)
        Number of codes of each box along its axis, and the first of them.
    of_row : ndarray of int64, shape (n,)
        Slot of each row.
    """

    side: IntArray
    begin: IntArray
    of_row: IntArray

    @classmethod
    def along(cls, blocks: Blocks, axis: IntArray, codes: CodeArray) -> Slots:
        """Slots along ``axis[i]`` in box i."""
        each = np.arange(len(axis))
        begin = blocks.lower[each, axis]
        side = blocks.upper[each, axis] - begin
        offset = exclusive_cumsum(side) - begin
        code = codes[blocks.row, axis[blocks.block]]
        return cls(side, begin, offset[blocks.block] + code)

    def sums(self, values: NDArray[Any]) -> IntArray:
        """Sum of the values of the rows of each slot."""
        return integer_sums(self.of_row, int(self.side.sum()), values)


def inner_cuts(side: IntArray) -> tuple[IntArray, IntArray]:
    """All cuts of segments: the segment of each, and the codes on the left, 1 to side - 1."""
    owner = np.repeat(np.arange(len(side)), side - 1)
    left = np.arange(1, len(owner) + 1) - np.repeat(exclusive_cumsum(side - 1), side - 1)
    return owner, left


def medians(sums: FloatArray, side: IntArray) -> IntArray:
    """Codes on the left of the cut that best halves the sums of each box, from 1 to side - 1.

    In a tie it is the cut nearest to the middle.

    Parameters
    ----------
    sums : ndarray of float64, shape (side.sum(),)
        A number for each slot.
    side : ndarray of int64, shape (m,)
        Slots of each box, at least 2.
    """
    owner, left = inner_cuts(side)
    start = exclusive_cumsum(side)
    running = running_sums(sums)
    low, high = running[start], running[start + side]
    lopsided = np.abs(2 * running[start[owner] + left] - (low + high)[owner])
    off_centre = np.abs(2 * left - side[owner])
    order = np.lexsort((off_centre, lopsided, owner))
    return left[order[exclusive_cumsum(side - 1)]]
