"""Boxes that are divided level by level, and the stop test of PrivTree and HDPView.

What several kernels share: boxes of codes that are divided, and the cuts between their codes.

HDPView, PrivTree and the kd-trees of DPCube divide boxes level by level. All boxes of one level are
treated at once: their contents lie in one long array, box after box, so that a few NumPy calls sum
over all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import (
    CodeArray,
    FloatArray,
    IntArray,
    dyadic_floor,
    exclusive_cumsum,
    integer_sums,
    running_sums,
)


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


# ------------------------------------------------------------------------------------------------
# The stop test of PrivTree and HDPView ("converge test"), and the privacy loss on one path.
#
# Both divide a block while a number of it, minus a bias that grows with the depth, exceeds a
# threshold under noise. A record lies in one block of each level. Because the biased numbers on its
# path fall by at least the bias per level, the privacy loss of all tests together is bounded,
# whatever their number: `converge_loss` computes the bound, `certified_test` the least noise for a
# budget.


# The numbers that are tested are rounded to multiples of 1/GRID records: a public step, small
# against the noise.
GRID = 4
# Noise of this rate is practically zero. For much higher rates the loss cannot be certified:
# exp(-rate) is zero in floats, and the loss is not a number.
_NO_NOISE = Fraction(512)


def split_gain(low: IntArray, high: IntArray, rate: float) -> FloatArray:
    """Log-ratio of P(high + N > 0) to P(low + N > 0), low <= high, N discrete Laplace.

    P(b + N > 0) is r**(1 - b) / (1 + r) for b <= 0 and 1 - r**b / (1 + r) for b >= 0, where
    r = exp(-rate). Nothing cancels, so the relative precision is full however small the rate.
    """
    base = rate * np.maximum(low, 0)
    rise = rate * (np.maximum(high, 0) - np.maximum(low, 0))
    above = np.log1p(-np.exp(-base) * np.expm1(-rise) / (math.exp(-rate) - np.expm1(-base)))
    return above + rate * (np.minimum(high, 0) - np.minimum(low, 0))


def converge_loss(rate: float, sensitivity: int, delta: int, floor: int) -> float:
    r"""Upper bound of the privacy loss of all converge tests on one path.

    A block at level k whose error is a splits if max(a - k delta, floor) + N exceeds 0, where N is
    discrete Laplace with r = exp(-rate). All in grid steps, relative to the threshold.

    Parameters
    ----------
    rate : float
        Epsilon of the noise for one grid step.
    sensitivity : int
        Largest change of an error by one record.
    delta : int
        Bias for each level, at least 1.
    floor : int
        Smallest biased error, relative to the threshold.

    Returns
    -------
    float
        A bound for every table, neighbour and sequence of cuts, of any depth.

    Notes
    -----
    Let a_i and a'_i be the biased errors of the record's blocks in the two tables. Both sequences
    fall by at least delta per level, since no sub-block has a larger error than its block, and
    \|a_i - a'_i\| <= s. Let l(x) be the log-ratio of a split at max(x, floor) to one at max(x - s,
    floor); it grows up to floor + s and falls from there, P(b + N > 0) being log-concave.

    If the stop at the end does not favour the first table, only splits with a_i > floor count, by
    at most l(a_i) each: the loss is a sum of l over points at least delta apart. The largest such
    sum is found from the top down.

    Else the stop happens with z = a'_k > floor and counts for its log-ratio from max(z - s, floor)
    to z, which grows with z; the splits above it count for at most l(z + s + j delta), j >= 1,
    which falls with z. So on an interval of z the stop at its right end and the splits at its left
    end are a bound, and not every z need be visited. From max(floor, 0) + s on the stop is
    constant.
    """
    s = sensitivity

    def split(x: IntArray) -> FloatArray:
        return split_gain(np.maximum(x - s, floor), np.maximum(x, floor), rate)

    def splits_from(x: IntArray) -> FloatArray:
        # l(x) + l(x + delta) + ...: terms until r**(x - s) is below exp(-40), and from there the
        # geometric series that bounds the rest, l(y) <= r**(y - s) (1 - r**s) / r.
        n_terms = max(math.ceil((40 / rate + s - int(x[0])) / delta), 1)
        total = split(x[:, None] + delta * np.arange(n_terms)).sum(axis=1)
        beyond = rate * (x + delta * n_terms - s)
        rest = np.exp(rate - beyond) * math.expm1(-rate * s) / math.expm1(-rate * delta)
        return total + rest

    best = {floor + s + 1: 0.0}
    for x in range(floor + s, floor, -1):
        if x + delta > floor + s:
            chain = float(splits_from(np.array([x]))[0])
        else:
            chain = float(split(np.array([x]))[0]) + best[x + delta]
        best[x] = max(chain, best[x + 1])

    left = np.unique(np.linspace(floor + 1, max(floor, 0) + s, 513).astype(np.int64))
    right = np.append(left[1:] - 1, left[-1])
    # N is symmetric, so P(b + N <= 0) = P((1 - b) + N > 0).
    stop = split_gain(1 - right, 1 - np.maximum(right - s, floor), rate)
    worst = max(best[floor + 1], float(np.max(stop + splits_from(left + delta + s))))
    # The terms are off by some units in the last place of a double, a few parts in 1e14: the
    # margin is ten thousand times that.
    return worst * (1 + 1e-9)


class StopTest(NamedTuple):
    """Noise, bias and floor of a test, and its privacy loss.

    Attributes
    ----------
    rate : Fraction
        Epsilon of the discrete Laplace noise for one grid step.
    delta, floor : int
        Bias for each level, and smallest biased number relative to the threshold, in grid steps.
    loss : float
        Certified bound of the privacy loss of all tests on one path.
    """

    rate: Fraction
    delta: int
    floor: int
    loss: float


class InRecords:
    """Noise and bias of a test in records, for parameters that count them in grid steps."""

    rate: Fraction
    delta_steps: int

    @property
    def lam(self) -> float:
        """Scale of the noise of a test."""
        return float(1 / (self.rate * GRID))

    @property
    def delta(self) -> float:
        """Bias for each level."""
        return self.delta_steps / GRID


def certified_test(
    epsilon: Fraction, most: Fraction, test: Callable[[float], tuple[int, int]], sensitivity: int
) -> StopTest:
    """The test with the least noise whose tests on a path lose at most epsilon, by bisection.

    Parameters
    ----------
    epsilon : Fraction
    most : Fraction
        Rates above this, or above 512, are not considered.
    test : callable
        Bias and floor, in grid steps, for a rate; see `converge_loss`.
    sensitivity : int
    """

    def tested(rate: Fraction) -> StopTest:
        delta, floor = test(float(rate))
        return StopTest(rate, delta, floor, converge_loss(float(rate), sensitivity, delta, floor))

    # The noise is drawn at the dyadic floor of a rate, so only such rates are considered.
    high = low = dyadic_floor(min(most, _NO_NOISE))
    while tested(low).loss > epsilon:
        high, low = low, dyadic_floor(low / 2)
    while (middle := dyadic_floor((low + high) / 2)) > low:
        if tested(middle).loss <= epsilon:
            low = middle
        else:
            high = middle
    return tested(low)


def quiet_floor(rate: float, n_parts: int) -> int:
    """Floor, relative to the threshold, for which empty regions stay in few blocks.

    At -eta a block of ``n_parts`` parts is divided with probability r**(1 + eta) / (1 + r),
    r = exp(-rate): here at most one in twice the number of parts. So an empty block has half a
    divided part on average, at any epsilon.
    """
    eta = math.ceil(math.log(2 * n_parts / (1 + math.exp(-rate))) / rate) - 1
    return -max(eta, 0)
