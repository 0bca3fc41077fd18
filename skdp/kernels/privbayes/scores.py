"""Scores of attribute-parent pairs as exact integers, and their ranges under one record.

A score is computed from the exact counts ``C[g, x]`` of an attribute's codes x and its parents'
combinations g (of codes, or of public groups of codes). Write C_x and C_g for its margins and n for
the number of records. A record that is added falls into one cell (g0, x0).

The paper takes these scores per record, for a known n, and bounds what replacing one record
changes. Here records are added or removed and n is private, so all scores are on the scale of
counts, where the bounds do not depend on n.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Protocol

import numpy as np

from ..._types import IntArray

__all__ = ["SCORES", "Entropy", "Independence", "MaximumJoint", "Score"]

# Products of two counts stay exact in 64 bits below this number of records.
_SAFE = 1 << 30


class Score(Protocol):
    """An integer score of exact counts, its range for `noisy_max`, and the largest of any total."""

    score_range: int
    most_range: int

    def __call__(self, counts: IntArray) -> int:
        """Score of exact counts, shape (n_parent_groups, size); private."""
        ...


class Independence:
    """Score "R": L1 distance between the joint counts and those of independence.

    ``floor(sum |C[g, x] - C_g C_x / n|)``, which is 2 n times the paper's R; 0 without records.

    Parameters
    ----------
    total : int
        Not used: the score has the same range for any number of records.
    """

    # Privacy. Let M = C - C_g C_x / n. With p = C_x / n, q = C_g / n and one record more in
    # (g0, x0), the matrix M changes by exactly n / (n + 1) (e_g0 - q)(e_x0 - p)': expand
    # (n q + e_g0)(n p + e_x0)' / (n + 1). Its L1 norm is n / (n + 1) * 2 (1 - q_g0) * 2 (1 - p_x0),
    # below 4. So the sum changes by less than 4, up or down, its floor by at most 4: the range
    # is 8. (Both signs occur: with rare codes the change comes close to 4 either way.)
    score_range = most_range = 8

    def __init__(self, total: int) -> None:
        pass

    def __call__(self, counts: IntArray) -> int:
        """See `Score`."""
        n = int(counts.sum())
        if n == 0:
            return 0
        exact = counts if n < _SAFE else counts.astype(object)
        product = exact.sum(axis=1)[:, None] * exact.sum(axis=0)[None, :]
        return int(np.abs(n * exact - product).sum()) // n


class MaximumJoint:
    """Score "F": closeness to a distribution in which the parents determine a binary attribute.

    With H = floor(total / 2), records of parents' combinations are divided among the two codes of
    the attribute: a counts those of code 0 where the combination goes to code 0, b those of code 1
    where it goes to code 1. The score is ``-ceil(min max(H - a, 0) + max(H - b, 0))``, n times the
    paper's F. The paper gives each combination to one code as a whole, by dynamic programming over
    n states; here one may be split in proportion, which needs sorting only. The minimum is never
    larger, and differs by at most one combination's records.

    Parameters
    ----------
    total : int
        The released number of records.
    """

    # Privacy. H is fixed: it comes from a release. For any fixed division of the combinations into
    # shares, a record adds to a or to b its combination's share, a number in [0, 1]: the sum
    # lies lower by a number in [0, 1]. The same divisions are possible before and after, so the
    # minimum over them also falls by a number in [0, 1], and the integer score rises by 0 or 1: the
    # range is 1. (With the true n in place of 2 H it would be 3/2, and 2 if records are replaced.)
    score_range = most_range = 1

    def __init__(self, total: int) -> None:
        self.half = max(int(total), 0) // 2

    def __call__(self, counts: IntArray) -> int:
        """See `Score`."""
        # The best pairs (a, b) lie on a chain of segments: combinations go to code 0 in the order
        # of their share of it. The sum is convex along the chain and linear between its corners
        # and the places where a or b passes H.
        half = self.half
        a, b = 0, int(counts[:, 1].sum())
        best = max(half - a, 0) + max(half - b, 0)
        for zero, one in _by_share(counts):
            if a < half < a + zero:
                best = min(best, max(half - b - ((half - a) * -one // zero), 0))
            if b - one < half < b:
                best = min(best, max(half - a - ((b - half) * zero // one), 0))
            a, b = a + zero, b - one
            best = min(best, max(half - a, 0) + max(half - b, 0))
        return -best


def _by_share(counts: IntArray) -> list[tuple[int, int]]:
    """Counts of the two codes, those with the largest share of code 0 first, exactly."""
    found: dict[Fraction, list[int]] = {}
    for zero, one in counts[counts.any(axis=1)].tolist():
        sums = found.setdefault(Fraction(zero, zero + one), [0, 0])
        sums[0] += zero
        sums[1] += one
    return [(found[share][0], found[share][1]) for share in sorted(found, reverse=True)]


class Entropy:
    """Score "mutual_information": n times the mutual information of attribute and parents.

    In units of 2**-20 nats: ``sum f(C[g, x]) - sum f(C_g) - sum f(C_x) + f(n)`` with an integer
    function f close to ``c log c``, see `_entropy_steps`.

    Parameters
    ----------
    total : int
        The released number of records. Counts above it or above 2**36 have the largest slope.
    """

    # Privacy. Let s(c) = f(c + 1) - f(c): a fixed table of integers that never decreases, from 0
    # to a largest G. A record changes the score by [s(n) - s(C_x0)] - [s(C_g0) - s(C[g0, x0])]. No
    # margin is below its cell or above n, so both brackets lie in [0, G] and the range is 2 G. G
    # is about log(total) + 1 nats; without the limit no bound would hold for all n, because the
    # change grows with log n. No logarithm of a private count is computed in floats.

    # Slopes are at most log(2**36) + 1 for any total, which is below 26.
    most_range = 2 * 26 << 20

    def __init__(self, total: int) -> None:
        limit = min(max(int(total), 2), _MOST_COUNTED)
        self._starts, self._values, self._slopes = _entropy_steps(limit)
        self.score_range = 2 * int(self._slopes[-1])

    def __call__(self, counts: IntArray) -> int:
        """See `Score`."""
        n = counts.sum(keepdims=True)
        joint, *margins = (
            int(self._f(part).sum()) for part in (counts, counts.sum(axis=0), counts.sum(axis=1))
        )
        return joint - sum(margins) + int(self._f(n).sum())

    def _f(self, counts: IntArray) -> IntArray:
        step = np.searchsorted(self._starts, counts, side="right") - 1
        return self._values[step] + self._slopes[step] * (counts - self._starts[step])


# Bits behind the point of `Entropy`, and the largest count with a slope of its own: values stay
# within 64 bits.
_BITS, _MOST_COUNTED = 20, 2**36
# Counts up to this have a slope each; above, steps grow by this ratio.
_EXACT, _RATIO = 4096, 1 + 2.0**-10


def _entropy_steps(limit: int) -> tuple[IntArray, IntArray, IntArray]:
    """Starts, values and slopes of the pieces of an integer function close to c log c.

    It is linear between its starts, where its error is that of rounding the slopes down; between
    them it exceeds ``c log c`` by at most c / 2**23.
    """
    starts = list(range(min(limit, _EXACT) + 1))
    while starts[-1] < limit:
        starts.append(min(int(starts[-1] * _RATIO) + 1, limit))
    # math.log, one by one: vectorised logarithms may differ in the last bit by position.
    exact = [c * math.log(c) if c else 0.0 for c in starts]
    slopes = [
        math.floor((above - below) / (end - start) * 2**_BITS)
        for start, end, below, above in zip(
            starts[:-1], starts[1:], exact[:-1], exact[1:], strict=True
        )
    ]
    slope = np.maximum.accumulate(np.array(slopes, dtype=np.int64))
    start = np.array(starts[:-1], dtype=np.int64)
    value = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(slope * np.diff(starts))[:-1]])
    return start, value, slope


SCORES: dict[str, type[Independence] | type[MaximumJoint] | type[Entropy]] = {
    "R": Independence,
    "F": MaximumJoint,
    "mutual_information": Entropy,
}
