"""HDPView: scores of all cuts of all blocks, and the private choice among them.

Scores are vectors in grid steps: block by block, within a block attribute by attribute, and within
an attribute its cuts from left to right.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ..._arrays import exclusive_cumsum, integer_sums, running_sums
from ..._random import NoiseSource
from ..._types import CodeArray, IntArray
from ...mechanisms import noisy_max
from ..splitting import Blocks, inner_cuts
from ..stop_test import GRID
from .errors import (
    capped_product,
    cells_of,
    error_steps,
    sums_above,
)
from .parameters import SENSITIVITY

__all__ = ["SCORES", "choose_cuts"]

# Number of scores held at once: arrays of this length stay in the cache.
_CUTS_AT_ONCE = 2**18


def _slots(blocks: Blocks, axis: int, column: CodeArray) -> tuple[IntArray, IntArray]:
    """A slot for each code of each block: the ends of the blocks, and the slot of each row."""
    ends = running_sums(blocks.sides[:, axis])
    return ends, (ends[:-1] - blocks.lower[:, axis])[blocks.block] + column[blocks.row]


def _imbalance(blocks: Blocks, columns: Sequence[CodeArray], counts: IntArray) -> IntArray:
    """How many records a uniform block would put on the wrong side of each cut, rounded down."""
    sides = blocks.sides
    first = exclusive_cumsum((sides - 1).ravel()).reshape(sides.shape)
    scores = np.zeros(int((sides - 1).sum()), dtype=np.int64)
    x = counts[blocks.row]
    for axis, column in enumerate(columns):
        # The cut before a slot has the slots of its block up to there on its left. Numbers of a
        # block are repeated: looking them up costs more for many codes.
        side = sides[:, axis]
        begin, slot = _slots(blocks, axis, column)
        sums = running_sums(integer_sums(slot, int(begin[-1]), x))
        left = np.arange(begin[-1]) - np.repeat(begin[:-1], side)
        # S n_left / n = S left / side, in whole records and a remainder of part / side. Products of
        # records and codes could overflow and are not formed.
        quotient, remainder = np.divmod(blocks.total, side)
        in_left = sums[:-1] - np.repeat(sums[begin[:-1]], side) - np.repeat(quotient, side) * left
        part, n_codes = np.repeat(remainder, side) * left, np.repeat(side, side)
        whole = part // n_codes
        part = GRID * (part - whole * n_codes)
        steps = part // n_codes
        uneven = part > steps * n_codes
        steps = GRID * (in_left - whole) - steps
        score = np.where(steps > 0, steps - uneven, -steps)
        # The first slot of a block is no cut.
        cut = left > 0
        scores[(np.repeat(first[:, axis], side) + left - 1)[cut]] = score[cut]
    return scores


def _imbalance_range(sides: IntArray) -> IntArray:
    """Length of the interval in which one record moves all imbalances of a block.

    A record on the left moves S_left - S f, f = left / side, by 1 - f and one on the right by -f:
    at most 1 - 1 / side, up or down; in grid steps by at most the next integer.
    """
    return 2 * (GRID - GRID // sides.max(axis=1))


def _remaining_error(blocks: Blocks, columns: Sequence[CodeArray], counts: IntArray) -> IntArray:
    """Minus the sum of the aggregation errors of the two parts that each cut leaves."""
    sides = blocks.sides
    rest = cells_of(sides)[1]
    scores = np.repeat(-2 * GRID * blocks.total, (sides - 1).sum(axis=1))
    # The error of a sparse part is 2 S - 2 S c / n. Where the second term rounds to zero even for
    # all records in the smallest part, all cuts of the block are equal and no row need be read.
    # This is the usual case in wide tables. (The 1 allows for rounding in floats.)
    occupied = np.bincount(blocks.block, minlength=len(sides))
    share = (4 * GRID + 1) * blocks.total.astype(float) * occupied
    uneven = np.flatnonzero(share > rest.min(axis=1))
    first = exclusive_cumsum((sides - 1).ravel()).reshape(sides.shape)[uneven]
    blocks, rest = blocks.select(uneven), rest[uneven]
    x = counts[blocks.row]
    for axis, column in enumerate(columns):
        begin, slot = _slots(blocks, axis, column)
        owner, left = inner_cuts(blocks.sides[:, axis])
        parts = _Parts(owner, slot, int(begin[-1]), blocks.block, x, rest[owner, axis])
        low, high = begin[owner], begin[owner + 1]
        score = -(parts.errors(low, low + left) + parts.errors(low + left, high))
        scores[first[owner, axis] + left - 1] = score
    return scores


class _Parts:
    """Parts of blocks, as ranges of slots: their aggregation errors.

    Parameters
    ----------
    owner : ndarray of int64, shape (n_cuts,)
        Block of each cut.
    slot, block, x : ndarray of int64, shape (n_rows,)
        Slot, block and count of each row.
    slice_cells : ndarray of int64, shape (n_cuts,)
        Cells in a slice of width 1 of the block of each cut.
    """

    def __init__(
        self,
        owner: IntArray,
        slot: IntArray,
        n_slots: int,
        block: IntArray,
        x: IntArray,
        slice_cells: IntArray,
    ) -> None:
        self._owner, self._slot, self._block, self._x = owner, slot, block, x
        self._slice_cells = slice_cells
        self._sums = running_sums(integer_sums(slot, n_slots, x))
        self._rows = running_sums(np.bincount(slot, minlength=n_slots))

    def errors(self, low: IntArray, high: IntArray) -> IntArray:
        """Error of the slots from ``low`` to ``high``, excluded, of the block of each cut."""
        total = self._sums[high] - self._sums[low]
        n_heavy = self._rows[high] - self._rows[low]
        cells = capped_product(high - low, self._slice_cells)
        heavy = total.copy()
        dense = np.flatnonzero(total > cells)
        if len(dense):
            needed = np.zeros(self._block.max() + 1, dtype=bool)
            needed[self._owner[dense]] = True
            inside = needed[self._block]
            heavy[dense], n_heavy[dense] = sums_above(
                self._slot[inside],
                self._x[inside],
                low[dense],
                high[dense],
                total[dense] // cells[dense],
            )
        return error_steps(heavy, n_heavy, total, cells)


def _remaining_error_range(sides: IntArray) -> IntArray:
    """Length of the interval in which one record moves all remaining errors of a block.

    A record lies in one part of each cut and moves the error of a part of n cells by at most
    2 (1 - 1 / n), up or down; in grid steps by at most the next integer. The largest part of any
    cut lacks one slice of the longest axis.
    """
    largest = capped_product(cells_of(sides)[1].min(axis=1), np.maximum(sides.max(axis=1) - 1, 1))
    return 2 * (SENSITIVITY - SENSITIVITY // largest)


SCORES = {
    "imbalance": (_imbalance, _imbalance_range),
    "error": (_remaining_error, _remaining_error_range),
}


def choose_cuts(
    blocks: Blocks,
    columns: Sequence[CodeArray],
    counts: IntArray,
    score: str,
    epsilon: Fraction,
    noise: NoiseSource,
) -> IntArray:
    """Private choice of one cut in each block, counted from the first cut of the block."""
    sides = blocks.sides
    n_cuts = (sides - 1).sum(axis=1)
    if len(blocks) > 1 and int(n_cuts.sum()) > _CUTS_AT_ONCE:
        half = np.arange(len(sides)) < len(sides) // 2
        halves = [blocks.select(np.flatnonzero(part)) for part in (half, ~half)]
        return np.concatenate(
            [choose_cuts(part, columns, counts, score, epsilon, noise) for part in halves]
        )
    score_of, range_of = SCORES[score]
    scores, score_range = score_of(blocks, columns, counts), range_of(sides)
    chosen = np.zeros(len(sides), dtype=np.int64)
    # Privacy. Released: one cut of each block. A record lies in one block, so the choices of one
    # depth compose in parallel; its choice costs epsilon, because the score range, a function of
    # the public shape of the block, bounds how far apart one record can move two scores. A block
    # of two cells has one cut, and nothing to choose.
    for value in np.unique(score_range[n_cuts > 1]):
        members = (score_range == value) & (n_cuts > 1)
        begin = exclusive_cumsum(n_cuts[members])
        candidates = scores[np.repeat(members, n_cuts)]
        winners = noisy_max(candidates, epsilon, int(value), starts=begin, random_state=noise)
        chosen[members] = winners - begin
    return chosen
