"""PrivPfC: exact scores of many grids, counted together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._arrays import running_sums
from ..._types import FloatArray, IntArray
from ..._validation import dyadic_floor
from ...rows import Counts
from .candidates import Options

__all__ = ["UNIT", "Quality", "grid_scores", "two_largest"]

# --- PrivPfC: the quality of a grid
#
# It is the expected number of correct predictions of a classifier that predicts, in each cell, the
# class with the largest noisy count. It is defined by an integer table, so that its range is exact
# and no floating-point error affects the privacy.
#
# With many records these are the predictions for the very records that decide the majorities, and
# the finest grid always wins. A quality with a *penalty* takes off, in each cell, about what its
# majority gains by being chosen from the same records.

# Scores are in units of 1/4096 of a record.
UNIT = 4096
# Longest quality table; differences beyond it count as certain wins.
_QUALITY_CELLS = 2**20
# Scores of cells with a largest count below this are looked up.
_LOOKED_UP_COUNTS = 256
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
        large = np.flatnonzero(largest >= _LOOKED_UP_COUNTS)
        scores = self._small.take(largest * _LOOKED_UP_COUNTS + second, mode="clip")
        scores[large] = self._score(largest[large], second[large])
        return scores

    @cached_property
    def _small(self) -> IntArray:
        """Scores of cells of small counts, which are most."""
        return self._score(*np.divmod(np.arange(_LOOKED_UP_COUNTS**2), _LOOKED_UP_COUNTS))

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
    return min(_QUALITY_CELLS, math.ceil(45 / rate) + 2)


# --- scores of many grids, counted together

# Cells by label of a table that several grids share, and of all grids that are scored at once.
_TABLE_CELLS = 2**18
_CHUNK = 2**20


def grid_scores(
    table: Counts,
    options: Sequence[Options],
    families: Sequence[NDArray[np.int16]],
    quality: Quality,
) -> IntArray:
    """Exact integer score of every grid.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        The predictors in order, and the class as the last attribute.
    options : sequence of Options
        One for each predictor.
    families : sequence of ndarray of shape (n_grids, n_predictors)
        Grids that are counted together; quickest where few predictors differ in a family.
    quality : Quality

    Returns
    -------
    scores : ndarray of shape (n_grids,), int64
        Of all families, one after the other.
    """
    # Rows are read once for each family: its table has the coarsest grouping of each predictor that
    # all of its grids can use, and is summed over one predictor after the other.
    label = len(table.shape) - 1
    joins = _Joins(options)
    grids = np.concatenate(families)
    starts = np.cumsum([0, *map(len, families)])
    batches = [
        part
        for first, last in pairwise(starts.tolist())
        for part in joins.batches(grids, np.arange(first, last), table.shape[label])
    ]
    asked = [
        ((*axes, label), (*(join.groups for join in shared), None)) for _, axes, shared in batches
    ]
    scores = np.zeros(len(grids), dtype=np.int64)
    for (batch, axes, shared), counts in zip(batches, table.regrouped_many(asked), strict=True):
        # Sums of counts are whole numbers below 2**53, which the floats of a product hold.
        flat = counts.reshape(len(counts), -1).astype(np.float64)
        sizes = [*counts.shape[1:], 1]
        chosen = sorted(zip(grids[batch][:, axes].tolist(), batch.tolist(), strict=True))
        numbers: list[int] = []
        tables: list[FloatArray] = []
        for number, cells in _summed(flat, shared, sizes, chosen):
            numbers.append(number)
            tables.append(cells)
            if sum(each.size for each in tables) > _CHUNK:
                scores[numbers] = _scored(tables, quality)
                numbers, tables = [], []
        if numbers:
            scores[numbers] = _scored(tables, quality)
    return scores


def _summed(
    counts: FloatArray,
    joins: Sequence[_Join],
    sizes: Sequence[int],
    chosen: Sequence[tuple[list[int], int]],
    place: int = 0,
) -> Iterator[tuple[int, FloatArray]]:
    """Number and counts by class (a row each) and cell of grids whose options are given in order.

    What grids with the same first options share is summed once.
    """
    if place == len(joins):
        for _, number in chosen:
            yield number, counts
        return
    for option, same in groupby(chosen, key=lambda each: each[0][place]):
        # The next predictor, or the class, comes first afterwards, and this one last.
        summed = (counts.T @ joins[place].maps[option]).reshape(sizes[place], -1)
        yield from _summed(summed, joins, sizes, list(same), place + 1)


def _scored(tables: Sequence[FloatArray], quality: Quality) -> IntArray:
    """Score of each grid from its counts."""
    cells = quality.score(*two_largest(np.concatenate(tables, axis=1).T))
    ends = np.cumsum([0, *(each.shape[1] for each in tables)])
    return np.diff(running_sums(cells)[ends])


class _Join(NamedTuple):
    """The coarsest grouping that refines several options of a predictor."""

    groups: IntArray  # group of each code
    maps: dict[int, FloatArray]  # for each option, 1 where one of these groups is in one of its own


class _Joins:
    """Joins of options, each made once."""

    def __init__(self, options: Sequence[Options]) -> None:
        self._options = options
        self._made: dict[tuple[int, tuple[int, ...]], _Join] = {}
        # Equal groups are one array.
        self._groups: dict[tuple[int, bytes], IntArray] = {}

    def join(self, axis: int, used: tuple[int, ...]) -> _Join:
        """The coarsest grouping that refines the ``used`` options of a predictor."""
        if (axis, used) not in self._made:
            options = self._options[axis]
            every = {option: options.groups[option - 1] for option in used if option}
            joined = np.zeros_like(next(iter(every.values())))
            for groups in every.values():
                pairs = joined * (int(groups.max()) + 1) + groups
                joined = np.unique(pairs, return_inverse=True)[1].reshape(-1)
            joined = self._groups.setdefault((axis, joined.tobytes()), joined)
            maps = {}
            for option in used:
                maps[option] = np.zeros((int(joined.max()) + 1, int(options.sizes[option])))
                maps[option][joined, every[option] if option else 0] = 1.0
            self._made[axis, used] = _Join(joined, maps)
        return self._made[axis, used]

    def batches(
        self, grids: NDArray[np.int16], numbers: IntArray, n_classes: int
    ) -> Iterator[tuple[IntArray, list[int], list[_Join]]]:
        """One grid alone, or several that together need few cells.

        Yields their numbers, and the predictors that they use with the joins of their options.
        """
        todo = [numbers]
        while todo:
            batch = todo.pop()
            used = {
                axis: tuple(np.unique(grids[batch, axis]).tolist())
                for axis in np.flatnonzero(grids[batch].any(axis=0)).tolist()
            }
            joins = {axis: self.join(axis, options) for axis, options in used.items()}
            widths = {axis: int(each.groups.max()) + 1 for axis, each in joins.items()}
            if math.prod(widths.values()) * n_classes <= _TABLE_CELLS or len(batch) == 1:
                # The widest first, so that little is left to sum.
                axes = sorted(used, key=lambda axis: -widths[axis])
                yield batch, axes, [joins[axis] for axis in axes]
                continue
            # Too many cells together: divide at the predictor with several options that is widest.
            axis = max(used, key=lambda axis: (len(used[axis]) > 1) * widths[axis])
            low = grids[batch, axis] < used[axis][len(used[axis]) // 2]
            todo += [batch[~low], batch[low]]


def two_largest(counts: NDArray[Any]) -> tuple[IntArray, IntArray]:
    """Largest and second largest count of each row; counts are whole numbers below 2**53."""
    n_classes = counts.shape[1]
    if n_classes == 1:
        largest = counts[:, 0].astype(np.int64)
        return largest, np.zeros_like(largest)
    if n_classes == 2:
        first, second = counts[:, 0], counts[:, 1]
        return np.maximum(first, second).astype(np.int64), np.minimum(first, second).astype(
            np.int64
        )
    ends = np.partition(counts, n_classes - 2, axis=1)[:, n_classes - 2 :].astype(np.int64)
    return ends[:, 1], ends[:, 0]
