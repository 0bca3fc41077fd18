"""PrivPfC: the quality of a grid.

It is the expected number of correct predictions of a classifier that predicts, in each cell, the
class with the largest noisy count. It is defined by an integer table, so that its range is exact
and no floating-point error affects the privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..._types import FloatArray, IntArray
from ..._validation import dyadic_floor

__all__ = ["UNIT", "Quality"]

# Scores are in units of 1/4096 of a record.
UNIT = 4096
# Longest quality table; differences beyond it count as certain wins.
_LONGEST_TABLE = 2**20


@dataclass(frozen=True)
class Quality:
    """Integer table of the expected number of correct predictions in a cell.

    A cell whose two largest class counts are n1 >= n2 scores ``UNIT * n2 + table[n1 - n2]``; past
    its end the table goes on with steps of ``UNIT``.

    Parameters
    ----------
    table : ndarray of shape (length,), int64
    """

    table: IntArray

    @classmethod
    def for_counts(cls, epsilon: Fraction) -> Quality:
        """The table for counts with discrete Laplace noise of budget ``epsilon``."""
        rate = float(dyadic_floor(epsilon))
        x = np.arange(_table_length(rate), dtype=np.float64)
        # Distribution of the difference of the noises of two counts.
        r = math.exp(-rate)
        law = (math.tanh(rate / 2)) ** 2 * r**x * (x + 1 / math.tanh(rate))
        below = 0.5 + np.cumsum(law) - law / 2 - law[0] / 2
        return cls._from_distribution(x, below)

    @classmethod
    def of_the_paper(cls, epsilon: Fraction) -> Quality:
        """The table for Laplace noise of scale 1 / epsilon, as in the dissertation."""
        rate = float(epsilon)
        x = np.arange(_table_length(rate), dtype=np.float64)
        return cls._from_distribution(x, 1 - np.exp(-rate * x) / 2 * (1 + rate * x / 2))

    @classmethod
    def _from_distribution(cls, x: FloatArray, below: FloatArray) -> Quality:
        return cls(np.rint(UNIT * x * np.minimum(below, 1.0)).astype(np.int64))

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
        return int(changes.max() - changes.min())

    def score(self, largest: IntArray, second: IntArray) -> IntArray:
        """Score of each cell from its two largest class counts."""
        difference = largest - second
        last = len(self.table) - 1
        inside = np.minimum(difference, last)
        return UNIT * (second + difference - inside) + self.table[inside]


def _table_length(rate: float) -> int:
    # Beyond 45 / rate the smaller count wins with a probability below 1e-17.
    return min(_LONGEST_TABLE, math.ceil(45 / rate) + 2)
