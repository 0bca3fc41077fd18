"""Weighted records taken whole numbers of times, so that sums over them stay as expected."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._types import CodeArray, FloatArray, IntArray
from .rounding import round_line
from .strata import sort_within

__all__ = ["count_rows", "similar_first"]

# Shares of records this near to 0 or 1 are decided.
_DECIDED = 1e-9
# Pairs of records that are decided at once, by sums that none of them has changed yet.
_AT_ONCE = 64
# How strongly an error of the sums turns a decision.
_PULL = 0.3
# Where there are more records than this many for each one taken, a sample of them competes.
_RIVALS = 8


def similar_first(rows: CodeArray, shape: Sequence[int]) -> IntArray:
    """An order of rows of codes in which neighbours agree in many columns: few codes first."""
    order = np.arange(len(rows))
    for axis in np.argsort(shape, kind="stable")[::-1].tolist():
        order = sort_within(order, rows[:, axis])
    return order


def count_rows(
    weights: FloatArray,
    number: int,
    order: IntArray,
    features: Sequence[IntArray],
    generator: np.random.Generator,
) -> IntArray:
    """How often each weighted record is taken: its expected number, rounded up or down.

    Parameters
    ----------
    weights : ndarray of shape (n_rows,)
        Not negative, not all zero.
    number : int
        Sum of the counts.
    order : ndarray of int, shape (n_rows,)
        An order in which neighbours are similar.
    features : sequence of ndarray of int, shape (n_rows,)
        Counts of the records by each of these are kept near the expected ones.
    generator : numpy.random.Generator

    Returns
    -------
    ndarray of int64, shape (n_rows,)

    Notes
    -----
    The pivotal method (J.-C. Deville and Y. Tille, "Unequal probability sampling without
    replacement through a splitting method", 1998): of two records whose shares are undecided one
    takes from the other until one of them is decided. Here, the errors so far turn the decision
    which of them takes. If there are many more records than are taken, a systematic sample of them
    competes.
    """
    expected = weights[order] / weights.sum() * number
    held = expected
    if number * _RIVALS < len(weights):
        held = round_line(expected, number * _RIVALS, generator) / _RIVALS
    counts = np.floor(held + _DECIDED)
    share = held - counts
    starts = np.cumsum([0, *(int(feature.max(initial=0)) + 1 for feature in features)])
    lines = np.stack(
        [feature[order] + start for feature, start in zip(features, starts, strict=False)], axis=1
    )
    error = np.zeros(starts[-1])
    if held is not expected:
        error = sum_lines(lines, held - expected, len(error))
    counts += _decide(share, lines, error, generator)
    taken = np.zeros(len(order), dtype=np.int64)
    taken[order] = counts.astype(np.int64)
    return taken


def sum_lines(lines: IntArray, weights: FloatArray, size: int) -> FloatArray:
    """Sums of weights by features, (size,)."""
    found: FloatArray = np.zeros(size)
    for column in lines.T:
        found += np.bincount(column, weights=weights, minlength=size)
    return found


def _decide(
    share: FloatArray, lines: IntArray, error: FloatArray, generator: np.random.Generator
) -> FloatArray:
    """Zeros and ones for shares whose sum is whole; ``share`` and ``error`` change."""
    live = np.flatnonzero((share > _DECIDED) & (share < 1 - _DECIDED))
    while len(live) > 1:
        half = len(live) // 2
        at_once = min(_AT_ONCE, max(1, half // _AT_ONCE))
        for start in range(0, half, at_once):
            pair = live[2 * start : 2 * min(start + at_once, half)]
            _contest(pair[::2], pair[1::2], share, lines, error, generator)
        live = live[(share[live] > _DECIDED) & (share[live] < 1 - _DECIDED)]
    return np.rint(share)


def _contest(
    one: IntArray,
    two: IntArray,
    share: FloatArray,
    lines: IntArray,
    error: FloatArray,
    generator: np.random.Generator,
) -> None:
    """One record of each pair takes from the other as much as it can hold or the other has."""
    mine, other = share[one], share[two]
    full = mine + other >= 1.0
    rise, fall = np.where(full, 1.0 - mine, other), np.where(full, 1.0 - other, mine)
    first, second = lines[one], lines[two]
    differ = first != second
    pull = ((error[first] - error[second]) * differ).sum(axis=1) / np.maximum(differ.sum(axis=1), 1)
    chance = fall / (rise + fall) - _PULL * pull
    step = np.where(generator.random(len(one)) < chance, rise, -fall)
    share[one] += step
    share[two] -= step
    moved = np.broadcast_to(step[:, None], first.shape)[differ]
    np.add.at(error, first[differ], moved)
    np.subtract.at(error, second[differ], moved)
