"""Scores of all cuts of all blocks, and the private choice among them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ..._random import NoiseSource
from ..._types import CodeArray, IntArray
from ...mechanisms import (
    noisy_max,
)
from ..splitting import starts
from .errors import (
    above_threshold_in_ranges,
    capped_product,
    cells_of,
    error_steps,
    group_sums,
    running_sums,
)
from .parameters import GRID, SENSITIVITY

__all__ = ["Blocks", "SCORES", "choose_cuts"]

# Scores held at once.
_CUTS_AT_ONCE = 2**22


class Blocks(NamedTuple):
    """Blocks of one depth, with the rows that lie in them."""

    lower: IntArray  # (n_blocks, d)
    upper: IntArray
    total: IntArray  # (n_blocks,): records
    row: IntArray  # (n_rows,): positions in the table
    block: IntArray  # (n_rows,): block of each

    def select(self, kept: IntArray) -> Blocks:
        """Some of the blocks, in increasing order, with their rows."""
        number = np.full(len(self.lower), -1)
        number[kept] = np.arange(len(kept))
        block = number[self.block]
        inside = np.flatnonzero(block >= 0)
        return Blocks(
            self.lower[kept], self.upper[kept], self.total[kept], self.row[inside], block[inside]
        )


class _Cuts(NamedTuple):
    """All cuts of one attribute in some blocks; rows are counted in slots, one for each code."""

    owner: IntArray  # block of each cut
    left: IntArray  # codes in its left part
    begin: IntArray  # first slot of the block; the cut is at begin + left
    end: IntArray
    slot: IntArray  # (n_rows,)
    n_slots: int


def _cuts(blocks: Blocks, axis: int, column: CodeArray) -> _Cuts:
    side = blocks.upper[:, axis] - blocks.lower[:, axis]
    offset = starts(side)
    owner = np.repeat(np.arange(len(side)), side - 1)
    left = np.arange(1, len(owner) + 1) - starts(side - 1)[owner]
    slot = (offset - blocks.lower[:, axis])[blocks.block] + column[blocks.row]
    begin = offset[owner]
    return _Cuts(owner, left, begin, begin + side[owner], slot, int(side.sum()))


def _imbalance(blocks: Blocks, columns: Sequence[CodeArray], counts: IntArray) -> IntArray:
    """How many records a uniform block would put on the wrong side of each cut, rounded down."""
    sides = blocks.upper - blocks.lower
    first = starts((sides - 1).ravel()).reshape(sides.shape)
    scores = np.zeros(int((sides - 1).sum()), dtype=np.int64)
    x = counts[blocks.row]
    for axis, column in enumerate(columns):
        cuts = _cuts(blocks, axis, column)
        sums = running_sums(group_sums(cuts.slot, x, cuts.n_slots))
        in_left = sums[cuts.begin + cuts.left] - sums[cuts.begin]
        side = cuts.end - cuts.begin
        # S n_left / n = S left / side, in whole records and a rest of part / side; products of
        # records and codes, which might overflow, are not formed.
        quotient, remainder = np.divmod(blocks.total[cuts.owner], side)
        whole, part = np.divmod(remainder * cuts.left, side)
        excess = in_left - quotient * cuts.left - whole
        scores[first[cuts.owner, axis] + cuts.left - 1] = np.where(
            excess > 0,
            GRID * excess + -GRID * part // side,
            GRID * part // side - GRID * excess,
        )
    return scores


def _imbalance_range(sides: IntArray) -> IntArray:
    """Length of the interval in which one record moves all imbalances of a block.

    A record on the left moves S_left - S f, f = left / side, by 1 - f and one on the right by -f:
    at most 1 - 1 / side, up or down; in grid steps by at most the next integer.
    """
    return 2 * (GRID - GRID // sides.max(axis=1))


def _remaining_error(blocks: Blocks, columns: Sequence[CodeArray], counts: IntArray) -> IntArray:
    """Minus the sum of the aggregation errors of the two parts that each cut leaves."""
    sides = blocks.upper - blocks.lower
    rest = cells_of(sides)[1]
    scores = np.repeat(-2 * GRID * blocks.total, (sides - 1).sum(axis=1))
    # The error of a sparse part is 2 S - 2 S c / n. Where the second term rounds to zero even for
    # all records in the smallest part, all cuts of the block are equal and no row need be read:
    # the usual case in wide tables. (The 1 is for the rounding of the floats.)
    occupied = np.bincount(blocks.block, minlength=len(sides))
    share = (4 * GRID + 1) * blocks.total.astype(float) * occupied
    uneven = np.flatnonzero(share > rest.min(axis=1))
    first = starts((sides - 1).ravel()).reshape(sides.shape)[uneven]
    blocks, rest = blocks.select(uneven), rest[uneven]
    x = counts[blocks.row]
    for axis, column in enumerate(columns):
        cuts = _cuts(blocks, axis, column)
        sums = running_sums(group_sums(cuts.slot, x, cuts.n_slots))
        rows = running_sums(np.bincount(cuts.slot, minlength=cuts.n_slots))
        middle = cuts.begin + cuts.left
        score = np.zeros(len(middle), dtype=np.int64)
        for low, high in ((cuts.begin, middle), (middle, cuts.end)):
            total, n_heavy = sums[high] - sums[low], rows[high] - rows[low]
            cells = capped_product(high - low, rest[cuts.owner, axis])
            heavy = total.copy()
            dense = np.flatnonzero(total > cells)
            if len(dense):
                needed = np.zeros(len(blocks.total), dtype=bool)
                needed[cuts.owner[dense]] = True
                inside = needed[blocks.block]
                heavy[dense], n_heavy[dense] = above_threshold_in_ranges(
                    cuts.slot[inside],
                    x[inside],
                    low[dense],
                    high[dense],
                    total[dense] // cells[dense],
                )
            score -= error_steps(heavy, n_heavy, total, cells)
        scores[first[cuts.owner, axis] + cuts.left - 1] = score
    return scores


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
    sides = blocks.upper - blocks.lower
    n_cuts = (sides - 1).sum(axis=1)
    if len(sides) > 1 and int(n_cuts.sum()) > _CUTS_AT_ONCE:
        half = np.arange(len(sides)) < len(sides) // 2
        halves = [blocks.select(np.flatnonzero(part)) for part in (half, ~half)]
        return np.concatenate(
            [choose_cuts(part, columns, counts, score, epsilon, noise) for part in halves]
        )
    score_of, range_of = SCORES[score]
    scores, score_range = score_of(blocks, columns, counts), range_of(sides)
    first = starts(n_cuts)
    chosen = np.zeros(len(sides), dtype=np.int64)
    # Privacy. Released: one cut of each block. A record lies in one block, so the choices of one
    # depth compose in parallel; its choice costs epsilon, because the score range, a function of
    # the public shape of the block, bounds how far apart one record can move two scores. A block
    # of two cells has one cut, and nothing to choose.
    for value in np.unique(score_range[n_cuts > 1]):
        members = np.flatnonzero((score_range == value) & (n_cuts > 1))
        lengths = n_cuts[members]
        begin = starts(lengths)
        candidates = np.repeat(first[members] - begin, lengths) + np.arange(lengths.sum())
        winners = noisy_max(
            scores[candidates], epsilon, int(value), starts=begin, random_state=noise
        )
        chosen[members] = winners - begin
    return chosen
