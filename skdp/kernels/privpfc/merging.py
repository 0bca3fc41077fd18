"""PrivPfC: groupings that follow the labels, by merging values with similar shares of them.

Public groupings know nothing of the labels: where one cut matters, they divide all the rest as
finely. With enough records it pays to count every predictor by label first, with noise, and then
to merge two groups with similar shares of the labels again and again: neighbours in the order, or
any two of categories without order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ..._random import noise_source
from ..._types import FloatArray, IntArray
from ..._validation import split_epsilon
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from ...rows import Counts

__all__ = ["FINEST", "Line", "merged_groupings", "merging_budget"]

# Values are counted in at most this many groups.
FINEST = 256
# Numbers of groups that are offered.
_SIZES = (2, 3, 4, 5, 6, 8, 12, 16, 24, 32)
# Share of the budget of the grid, and the least product of that budget and the noisy number of
# records: in all, and for each predictor that is counted.
_SHARE = Fraction(2, 5)
_FROM = 3_000
_FROM_EACH = 600
# A predictor of many groups gets more budget: in proportion to this power of their number.
_POWER = 1 / 3


class Line(NamedTuple):
    """How the values of a predictor may be merged."""

    groups: IntArray  # finest group of each code
    n_groups: int  # of these may be merged, and are numbered from 0; others stay alone
    ordered: bool  # whether only neighbours may be merged


def merging_budget(lines: Sequence[Line], n_records: float, epsilon: Fraction) -> Fraction:
    """Share of ``epsilon``, the budget of the grid, that pays for merging; 0 if none does.

    It depends on public facts and the noisy number of records alone.
    """
    needed = max(_FROM, _FROM_EACH * len(_measured(lines)))
    pays = bool(_measured(lines)) and n_records * float(epsilon) >= needed
    return epsilon * _SHARE if pays else Fraction(0)


def merged_groupings(
    table: Counts,
    lines: Sequence[Line],
    most: int,
    epsilon: Fraction,
    *,
    random_state: Any = None,
) -> list[list[IntArray]]:
    """Groupings of every predictor that follow the labels, at the cost of ``epsilon``.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        The predictors in order, and the class as the last attribute.
    lines : sequence of Line
        One for each predictor.
    most : int
        Largest number of groups.
    epsilon : Fraction
    random_state : None, int or NoiseSource

    Returns
    -------
    groupings : list of list of ndarray of shape (n_codes,)
        For each predictor the group of each code, from few groups to many.
    """
    # Privacy. Released: for each predictor with something to merge the numbers of records by group
    # and label. A record is in one cell of the counts of a predictor (sensitivity 1); every cell,
    # empty ones too, gets its own noise. The predictors share the budget in proportions that
    # follow from public numbers of groups, and are composed one after the other. Merging is
    # post-processing of these counts.
    source = noise_source(random_state)
    measured = _measured(lines)
    weights = {str(axis): round(lines[axis].n_groups ** _POWER, 2) for axis in measured}
    parts = split_epsilon(epsilon, weights)
    label = len(table.shape) - 1
    wanted = [((axis, label), (lines[axis].groups, None)) for axis in measured]
    result: list[list[IntArray]] = [[] for _ in lines]
    for axis, exact in zip(measured, table.regrouped_many(wanted), strict=True):
        noisy = discrete_laplace(exact, parts[str(axis)], random_state=source)
        variance = discrete_laplace_variance(parts[str(axis)])
        result[axis] = _groupings(noisy, lines[axis], most, variance)
    return result


def _measured(lines: Sequence[Line]) -> list[int]:
    """Predictors with something to merge."""
    return [axis for axis, line in enumerate(lines) if line.n_groups > 2]


def _groupings(noisy: IntArray, line: Line, most: int, variance: float) -> list[IntArray]:
    """Groupings into the offered numbers of groups, from few to many."""
    n = line.n_groups
    alone = np.arange(len(noisy) - n)
    result = []
    for groups in _merges(noisy[:n].astype(np.float64), variance, line.ordered):
        size = int(groups.max()) + 1
        if size in _SIZES and size < n and size + len(alone) <= most:
            result.append(np.concatenate([groups, size + alone])[line.groups])
    return result[::-1]


def _merges(counts: FloatArray, variance: float, ordered: bool) -> Iterator[IntArray]:
    """Group of each row, every row alone at first, then after each merge of two groups.

    Two groups of n and m records, whose shares of the labels differ by the vector d, lose
    n m / (n + m) |d|^2 of the Gini index when they are merged. What chance and noise add to
    |d|^2 on average is taken off.
    """
    n_rows, n_classes = counts.shape
    overall = np.maximum(counts.sum(axis=0), 1.0)
    impurity = 1 - np.sum((overall / overall.sum()) ** 2)
    sums = counts.copy()
    noise = np.full(n_rows, n_classes * variance)
    groups = np.arange(n_rows)
    while len(sums) > 1:
        yield groups
        # A group has at least as many records as its noise can hide.
        n = np.maximum(sums.sum(axis=1), np.sqrt(noise) + 1)
        shares = np.maximum(sums, 0.0) + 1e-9
        shares /= shares.sum(axis=1, keepdims=True)
        chance = impurity / n + noise / n**2
        if ordered:
            low = np.arange(len(sums) - 1)
            high = low + 1
        else:
            low, high = np.triu_indices(len(sums), 1)
        apart = np.sum((shares[low] - shares[high]) ** 2, axis=1) - chance[low] - chance[high]
        best = int(np.argmin(apart * n[low] * n[high] / (n[low] + n[high])))
        kept, gone = int(low[best]), int(high[best])
        sums[kept] += sums[gone]
        noise[kept] += noise[gone]
        sums = np.delete(sums, gone, axis=0)
        noise = np.delete(noise, gone)
        groups = np.where(groups == gone, kept, groups - (groups > gone))
