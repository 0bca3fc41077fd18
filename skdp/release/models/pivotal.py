"""Weighted records taken whole numbers of times, so that counts of them stay near the expected."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..._types import BoolArray, CodeArray, FloatArray, IntArray
from .rounding import round_line
from .strata import sort_within

__all__ = ["count_records", "similar_first"]

# Shares of records this near to 0 or 1 are decided.
_DECIDED = 1e-9
# Pairs of records that are decided at once, by errors that none of them has changed yet.
_AT_ONCE = 64
# Where there are more records than this many for each one taken, a sample of them competes.
_RIVALS = 8
# Exchanges at the end: the error that starts one, their number, and the records looked at.
_NEAR = 1.0
_EXCHANGES = 1000
_SEEN, _TRIED = 256, 16
# Digits of errors that are compared, so that equal seeds give equal rows on every machine.
_DIGITS = 6


def similar_first(rows: CodeArray, shape: Sequence[int]) -> IntArray:
    """An order of records in which neighbours agree in many columns, those of few codes first."""
    order = np.arange(len(rows))
    for axis in np.argsort(shape, kind="stable")[::-1].tolist():
        order = sort_within(order, rows[:, axis])
    return order


def count_records(
    weights: FloatArray,
    number: int,
    order: IntArray,
    features: Sequence[NDArray[np.integer]],
    n_sure: int,
    generator: np.random.Generator,
) -> IntArray:
    """How often each weighted record is taken: its expected number, rounded up or down.

    Parameters
    ----------
    weights : ndarray of shape (n_records,)
        Not negative, not all zero.
    number : int
        Sum of the counts.
    order : ndarray of int, shape (n_records,)
        An order in which neighbours are similar.
    features : sequence of ndarray of int, shape (n_records,)
        Counts of records by each of these are kept near the expected ones.
    n_sure : int
        For the first features, errors that are left are removed by exchanges.
    generator : numpy.random.Generator

    Returns
    -------
    ndarray of int64, shape (n_records,)

    Notes
    -----
    The pivotal method: of two records whose shares are undecided, one takes from the other until
    one of them is decided. Here the errors so far turn the decision which of them takes. If there
    are many more records than are taken, only a systematic sample of them competes.

    References
    ----------
    J.-C. Deville and Y. Tille, "Unequal probability sampling without replacement through a
    splitting method", Biometrika 85 (1998).
    """
    expected = weights[order] * (number / weights.sum())
    held = expected
    if number * _RIVALS < len(weights):
        held = round_line(expected, number * _RIVALS, generator) / _RIVALS
    counts = np.floor(held + _DECIDED)
    live = np.flatnonzero(held - counts > _DECIDED)
    starts = np.cumsum([0, *(int(feature.max(initial=0)) + 1 for feature in features)])
    lines = np.empty((len(live), len(features)), dtype=np.int64)
    error = np.zeros(starts[-1])
    for position, feature in enumerate(features):
        lines[:, position] = feature[order[live]] + starts[position]
        if held is not expected:
            off = np.bincount(feature[order], weights=held - expected)
            error[starts[position] : starts[position + 1]] = off
    taken = _decide((held - counts)[live], lines, error, generator)
    _exchange(taken, lines[:, :n_sure], starts[: n_sure + 1], error, generator)
    counts[live] += taken
    result = np.zeros(len(order), dtype=np.int64)
    result[order] = counts.astype(np.int64)
    return result


def _decide(
    share: FloatArray, lines: IntArray, error: FloatArray, generator: np.random.Generator
) -> BoolArray:
    """Which records are taken, with their shares as probabilities; the shares sum to an integer."""
    live = np.arange(len(share))
    while len(live) > 1:
        half = len(live) // 2
        at_once = min(_AT_ONCE, max(1, half // _AT_ONCE))
        for start in range(0, half, at_once):
            pair = live[2 * start : 2 * min(start + at_once, half)]
            _contest(pair[::2], pair[1::2], share, lines, error, generator)
        live = live[(share[live] > _DECIDED) & (share[live] < 1.0 - _DECIDED)]
    taken: BoolArray = share > 0.5
    return taken


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
    step = np.where(generator.random(len(one)) < fall / (rise + fall) - pull, rise, -fall)
    share[one] += step
    share[two] -= step
    moved = np.broadcast_to(step[:, None], first.shape)[differ]
    np.add.at(error, first[differ], moved)
    np.subtract.at(error, second[differ], moved)


def _exchange(
    taken: BoolArray,
    lines: IntArray,
    starts: IntArray,
    error: FloatArray,
    generator: np.random.Generator,
) -> None:
    """Exchange records that are taken for others until no count is off by more than `_NEAR`."""
    error = error[: starts[-1]].copy()
    limit = np.full(len(error), _NEAR)
    columns = np.asfortranarray(lines)
    for _ in range(_EXCHANGES if len(error) and len(taken) else 0):
        worst = int(np.argmax(np.round(np.abs(error) - limit, _DIGITS)))
        if abs(error[worst]) <= limit[worst]:
            return
        column = columns[:, np.searchsorted(starts, worst, side="right") - 1]
        inside = np.flatnonzero(column == worst)
        outside = generator.integers(0, len(column), _SEEN)
        outside = outside[column[outside] != worst]
        gives, takes = (inside, outside) if error[worst] > 0 else (outside, inside)
        out = _highest(error, columns, gives[taken[gives]], generator)
        into = _highest(-error, columns, takes[~taken[takes]], generator)
        # Of a count that no exchange improves, no more is asked.
        limit[worst] = np.inf
        if not len(out) or not len(into):
            continue
        first, second = columns[out][:, None], columns[into][None]
        change = ((error[second] - error[first] + 1.0) * (first != second)).sum(axis=2)
        least = int(np.argmin(np.round(change, _DIGITS)))
        one, two = np.unravel_index(least, change.shape)
        if change[one, two] < -(10.0**-_DIGITS):
            limit[worst] = _NEAR
            taken[out[one]], taken[into[two]] = False, True
            error[columns[out[one]]] -= 1.0
            error[columns[into[two]]] += 1.0


def _highest(
    error: FloatArray, lines: IntArray, records: IntArray, generator: np.random.Generator
) -> IntArray:
    """The records with the highest errors, in a sample of them."""
    if len(records) > _SEEN:
        records = records[generator.integers(0, len(records), _SEEN)]
    score = np.round(error[lines[records]].sum(axis=1), _DIGITS)
    return records[np.argsort(-score, kind="stable")[:_TRIED]]
