"""PrivPfC: the quality of a grid.

It is the expected number of correct predictions of a classifier that predicts, in each cell, the
class with the largest noisy count. It is defined by an integer table, so that its range is exact
and no floating-point error affects the privacy.

With many records these are the predictions for the very records that decide the majorities, and
the finest grid always wins. A quality with a *penalty* takes off, in each cell, about what its
majority gains by being chosen from the same records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from ..._types import FloatArray, IntArray
from ..._validation import dyadic_floor

__all__ = ["UNIT", "Quality"]

# Scores are in units of 1/4096 of a record.
UNIT = 4096
# Longest quality table; differences beyond it count as certain wins.
_LONGEST_TABLE = 2**20
# Scores of cells with a largest count below this are looked up.
_SMALL = 256
# Density of the standard normal law at 0.
_NORMAL = 1 / math.sqrt(2 * math.pi)
# Most that rounding to units adds to the length of the interval of changes.
_ROUNDING = 3


@dataclass(frozen=True)
class Quality:
    """Integer table of the expected number of correct predictions in a cell.

    A cell whose two largest class counts are n1 >= n2 scores ``UNIT * n2 + table[n1 - n2]``; past
    its end the table goes on with steps of ``UNIT``.

    The penalty is a share of `_optimism`. All of it suits a classifier that trusts every cell;
    those that smooth the cells gain from finer grids.

    Parameters
    ----------
    table : ndarray of shape (length,), int64
    penalty : float, default=0.0
        Share of the optimism that is taken off.
    noise : float, default=0.0
        Variance of the difference of the noises of two counts, for the penalty.
    """

    table: IntArray
    penalty: float = 0.0
    noise: float = 0.0

    @classmethod
    def for_counts(cls, epsilon: Fraction, penalty: float = 0.0) -> Quality:
        """The table for counts with discrete Laplace noise of budget ``epsilon``."""
        rate = float(dyadic_floor(epsilon))
        x = np.arange(_table_length(rate), dtype=np.float64)
        # Distribution of the difference of the noises of two counts.
        r = math.exp(-rate)
        law = (math.tanh(rate / 2)) ** 2 * r**x * (x + 1 / math.tanh(rate))
        below = 0.5 + np.cumsum(law) - law / 2 - law[0] / 2
        return cls(_scaled(x, below), penalty, 4 * r / (1 - r) ** 2)

    @classmethod
    def of_the_paper(cls, epsilon: Fraction) -> Quality:
        """The table for Laplace noise of scale 1 / epsilon, as in the dissertation."""
        rate = float(epsilon)
        x = np.arange(_table_length(rate), dtype=np.float64)
        return cls(_scaled(x, 1 - np.exp(-rate * x) / 2 * (1 + rate * x / 2)))

    @property
    def score_range(self) -> int:
        """Length of the interval that holds the changes of all scores when a record is added.

        Only one cell of each grid changes. If the record's class is (or becomes) the largest,
        the difference x grows and the score changes by a step s(x) of the table; if it is (or
        becomes) the second, the difference falls and the score changes by UNIT - s(x - 1);
        otherwise by nothing. If one class overtakes another, their names are exchanged but the
        sorted counts are not. Hence all changes, of all grids, lie between the least and the
        largest of s, UNIT - s and 0.
        """
        # Past the end of the table every step is UNIT.
        steps = np.append(np.diff(self.table), UNIT)
        changes = np.concatenate([steps, UNIT - steps, [0]])
        length = int(changes.max() - changes.min())
        if not self.penalty:
            return length
        # Privacy. The penalty is P = c (n / s) f(z), f the normal density, s^2 = 1 + noise + n and
        # z = x / s. Adding a record moves (n, x) to (n + 1, x + 1) or (n + 1, x - 1), so P changes
        # by dP/dn + dP/dx or dP/dn - dP/dx at a point between them. There |dP/dx| is
        # c (n / s^2) z f(z) <= c f(1); with r = n / s^2 < 1, dP/dn is (c / s) f(z) (1 - r/2 +
        # r z^2/2), which is positive and at most c f(0) / s: (1 - r/2 + r u) exp(-u) <= 1 for
        # u >= 0, as 1 - r/2 + r u <= 1 + u. So the interval grows by at most 2 c f(1) +
        # c f(0) / sqrt(1 + noise), and by the rounding of P.
        slope = 2 * _NORMAL * math.exp(-1 / 2) + _NORMAL / math.sqrt(1 + self.noise)
        return length + math.ceil(UNIT * self._factor * slope) + _ROUNDING

    @property
    def _factor(self) -> float:
        return math.sqrt(2) * self.penalty

    def score(self, largest: IntArray, second: IntArray) -> IntArray:
        """Score of each cell from its two largest class counts."""
        large = np.flatnonzero(largest >= _SMALL)
        scores = self._small.take(largest * _SMALL + second, mode="clip")
        scores[large] = self._score(largest[large], second[large])
        return scores

    @cached_property
    def _small(self) -> IntArray:
        """Scores of cells of small counts, which are most."""
        return self._score(*np.divmod(np.arange(_SMALL**2), _SMALL))

    def _score(self, largest: IntArray, second: IntArray) -> IntArray:
        difference = np.maximum(largest - second, 0)
        last = len(self.table) - 1
        inside = np.minimum(difference, last)
        scores = UNIT * (second + difference - inside) + self.table[inside]
        if self.penalty:
            penalty = self._factor * _optimism(largest + second, difference, self.noise)
            scores -= np.rint(UNIT * penalty).astype(np.int64)
        return scores


def _optimism(n: IntArray, difference: IntArray, noise: float) -> FloatArray:
    """Correct predictions that a cell of n records owes to deciding over its own records.

    Left out of its cell, a record changes the majority if the (noisy) difference of the counts is
    nearly zero. Its density there is that of a normal law with the variance of the noise and of
    drawing n records. For labels like coin flips, without noise, the mean over the differences is
    the mean gain of the majority, about 0.4 sqrt(n), divided by sqrt(2).
    """
    spread = np.sqrt(1 + noise + n)
    return _NORMAL * n / spread * np.exp(-((difference / spread) ** 2) / 2)


def _scaled(x: FloatArray, below: FloatArray) -> IntArray:
    return np.rint(UNIT * x * np.minimum(below, 1.0)).astype(np.int64)


def _table_length(rate: float) -> int:
    # Beyond 45 / rate the smaller count wins with a probability below 1e-17.
    return min(_LONGEST_TABLE, math.ceil(45 / rate) + 2)
