"""PrivPfC: the private selection of one grid."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._random import noise_source
from ..._types import FloatArray, IntArray
from ..._validation import as_share, split_epsilon
from ...mechanisms import discrete_laplace, discrete_laplace_variance, exponential, noisy_max
from ...rows import Counts, CountTable
from ..additive import column_shares
from .candidates import (
    TUNING,
    Options,
    candidate_grids,
    cell_limit,
    neighbouring_grids,
    paper_grids,
)
from .scores import UNIT, Quality, grid_scores

__all__ = [
    "Line",
    "measure_grid_counts",
    "merged_groupings",
    "merging_budget",
    "privpfc_parts",
    "select_grid",
]

# Its bound on the change of the quality, 1.1 in either direction.
_PAPER_RANGE = math.ceil(2.2 * UNIT)


def privpfc_parts(epsilon: Fraction, shares: Any = (0.03, 0.37, 0.60)) -> dict[str, Fraction]:
    """Parts of epsilon for the number of records, the choice of the grid, and the counts.

    Parameters
    ----------
    epsilon : Fraction
    shares : sequence of three numbers
        In proportion; by default those of the dissertation.

    Raises
    ------
    TypeError, ValueError
        If they are not three positive numbers, or one is less than a thousandth of their sum.
    """
    names = ("total", "grid", "counts")
    if not isinstance(shares, tuple | list) or len(shares) != len(names):
        raise ValueError(
            "shares must be three numbers, for the number of records, the choice of the grid and "
            f"the counts, got {shares!r}."
        )
    parts = split_epsilon(epsilon, dict(zip(names, shares, strict=True)))
    for name in names:
        as_share(parts.get(name, 0) / epsilon, f"the part {name!r} of shares={shares!r}")
    return parts


def select_grid(
    table: Counts,
    options: Sequence[Options],
    n_records: float,
    parts: dict[str, Fraction],
    *,
    max_grids: int = 10_000,
    selection: str = "auto",
    merged: bool = False,
    random_state: Any = None,
) -> NDArray[np.int16]:
    """Select a grid at the cost of ``parts["grid"]``.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        The predictors in order, and the class as the last attribute.
    options : sequence of Options
    n_records : float
        Noisy number of records.
    parts : dict
        From :func:`privpfc_parts`.
    max_grids : int, default=10_000
    selection : {"auto", "paper"}, default="auto"
    merged : bool, default=False
        Whether the options hold groupings that follow the labels of these records.
    random_state : None, int or NoiseSource

    Returns
    -------
    grid : ndarray of shape (n_predictors,)
        Option number of each predictor.
    """
    # Privacy. Candidates, the number of selections and the kind of quality depend on public facts,
    # the noisy number of records and what was released before, hence cost nothing. All scores of
    # a selection change within one interval of length `score_range` when a record is added (proof
    # there), so each noisy maximum costs its budget; equal budgets add up to the part "grid". The
    # exponential mechanism takes exp(epsilon q / 2.2) for the dissertation's sensitivity of 1.1:
    # 2.2 exceeds the range.
    source = noise_source(random_state)
    first = [each.first for each in options]
    limit = cell_limit(n_records, parts["counts"], table.shape[-1], selection)
    if selection == "paper":
        families = paper_grids([each.sizes for each in first], limit, max_grids)
        scores = grid_scores(table, first, families, Quality.of_the_paper(parts["counts"]))
        best = exponential(scores, parts["grid"], _PAPER_RANGE, random_state=source)
        return np.concatenate(families)[best]
    signal = n_records * float(parts["grid"])
    further = min(max(int(signal / TUNING.further), 0), TUNING.most_further)
    penalty = 2 * TUNING.penalty if merged else TUNING.penalty if further else 0.0
    quality = Quality.for_counts(parts["counts"], penalty)
    budget = parts["grid"] / (1 + further)
    families = candidate_grids(first, limit, max_grids, random_state=source)
    for left in range(further, -1, -1):
        scores = grid_scores(table, options, families, quality)
        best = noisy_max(scores, budget, quality.score_range, random_state=source)
        grid = np.concatenate(families)[best]
        if left:
            most = max(1, max_grids // TUNING.near)
            families = neighbouring_grids(grid, options, limit, most, random_state=source)
    return grid


# --- PrivPfC: the noisy counts of the selected grid


def measure_grid_counts(
    table: CountTable,
    groups: Sequence[IntArray],
    sizes: Sequence[int],
    epsilon: Fraction,
    *,
    random_state: Any = None,
) -> IntArray:
    """Noisy number of records in each cell and class.

    Parameters
    ----------
    table : CountTable
        The predictors that the grid uses, in order, and the class as the last attribute.
    groups : sequence of ndarray
        Group of each code of each predictor.
    sizes : sequence of int
        Number of groups of each predictor.
    epsilon : Fraction

    Returns
    -------
    counts : ndarray of shape (*sizes, n_classes), int64
    """
    # Privacy. A record is in one cell and one class, so adding it changes one count by one; every
    # count, empty ones included, gets its own noise. Cost: epsilon, once.
    n_classes = table.shape[-1]
    codes = [group[table.codes[:, axis]] for axis, group in enumerate(groups)]
    stacked = np.stack([*codes, table.codes[:, -1].astype(np.int64)], axis=1)
    shape = (*(int(size) for size in sizes), n_classes)
    exact = CountTable.from_codes(stacked, shape, table.counts).dense()
    return discrete_laplace(exact, epsilon, random_state=random_state)


# --- PrivPfC: groupings that follow the labels, by merging values with similar shares of them
#
# Public groupings know nothing of the labels: where one cut matters, they divide all the rest as
# finely. With enough records it pays to count every predictor by label first, with noise, and then
# to merge two groups with similar shares of the labels again and again: neighbours in the order, or
# any two of categories without order.


class Line(NamedTuple):
    """How the values of a predictor may be merged."""

    groups: IntArray  # finest group of each code
    n_groups: int  # of these may be merged, and are numbered from 0; others stay alone
    ordered: bool  # whether only neighbours may be merged


def merging_budget(lines: Sequence[Line], n_records: float, epsilon: Fraction) -> Fraction:
    """Share of ``epsilon``, the budget of the grid, that pays for merging; 0 if none does.

    It depends on public facts and the noisy number of records alone.
    """
    needed = max(TUNING.further, TUNING.each * len(_measured(lines)))
    pays = bool(_measured(lines)) and n_records * float(epsilon) >= needed
    return epsilon * TUNING.merging if pays else Fraction(0)


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
    shares = column_shares([lines[axis].n_groups for axis in measured])
    parts = {axis: epsilon * share for axis, share in zip(measured, shares, strict=True)}
    label = len(table.shape) - 1
    wanted = [((axis, label), (lines[axis].groups, None)) for axis in measured]
    result: list[list[IntArray]] = [[] for _ in lines]
    for axis, exact in zip(measured, table.regrouped_many(wanted), strict=True):
        noisy = discrete_laplace(exact, parts[axis], random_state=source)
        variance = discrete_laplace_variance(parts[axis])
        result[axis] = _groupings(noisy, lines[axis], most, variance)
    return result


def _measured(lines: Sequence[Line]) -> list[int]:
    """Predictors with something to merge."""
    return [axis for axis, line in enumerate(lines) if line.n_groups > 2]


def _groupings(noisy: IntArray, line: Line, most: int, variance: float) -> list[IntArray]:
    """Groupings into the offered numbers of groups, from few to many."""
    n = line.n_groups
    alone = np.arange(len(noisy) - n)
    # Two numbers of groups for each doubling.
    offered = {round(2 ** (half / 2)) for half in range(2, 2 * TUNING.merged.bit_length())}
    result = []
    for groups in _merges(noisy[:n].astype(np.float64), variance, line.ordered):
        size = int(groups.max()) + 1
        if size in offered and size < n and size <= TUNING.merged and size + len(alone) <= most:
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
