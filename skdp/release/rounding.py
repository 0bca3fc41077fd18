"""Whole counts near expected ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .._validation import BoolArray, FloatArray, IntArray, running_sums

# Expected counts this near to a whole number are that number.
_NEAR = 1e-9


def round_line(expected: FloatArray, total: int, generator: np.random.Generator) -> IntArray:
    """Whole counts with a given sum, in proportion to expected ones.

    Each count, and each sum of the first few counts, is the next whole number below or above what
    is expected. On average it is what is expected. Zeros stay zeros.

    Parameters
    ----------
    expected : ndarray of shape (n,)
        Not negative; not all zero if ``total`` is positive.
    total : int
    generator : numpy.random.Generator

    Returns
    -------
    ndarray of int64, shape (n,)

    References
    ----------
    Systematic sampling: W. G. Madow, "On the theory of systematic sampling, II" (1949).

    Examples
    --------
    >>> round_line(np.array([1.0, 0.0, 2.0, 1.0]), 8, np.random.default_rng(0))
    array([2, 0, 4, 2])
    """
    reach = running_sums(expected)
    # Exactly 1 at the end, and at zeros before it.
    share = reach[1:] / (reach[-1] if reach[-1] > 0 else 1.0)
    # Clear of the ends, where the rounding errors of sums would show.
    offset = _NEAR + (1 - 2 * _NEAR) * generator.random(1)
    stops = np.floor(share * total + offset).astype(np.int64)
    counts: IntArray = np.diff(stops, prepend=0)
    return counts


def shuffled_line(expected: FloatArray, total: int, generator: np.random.Generator) -> IntArray:
    """Positions in random order, each as often as `round_line` says; (total,)."""
    counts = round_line(expected, total, generator)
    return generator.permutation(np.repeat(np.arange(len(counts)), counts))


# --- weighted records taken whole numbers of times, so that counts of them stay near the expected

# Pairs of records that are decided at once, by errors that none of them has changed yet.
_AT_ONCE = 64
# Where there are more records than this many for each one taken, a sample of them competes.
_RIVALS = 8


def count_records(
    weights: FloatArray,
    number: int,
    order: IntArray,
    features: Sequence[NDArray[np.integer]],
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
    counts = np.floor(held + _NEAR)
    live = np.flatnonzero(held - counts > _NEAR)
    starts = np.cumsum([0, *(int(feature.max(initial=0)) + 1 for feature in features)])
    lines = np.empty((len(live), len(features)), dtype=np.int64)
    error = np.zeros(starts[-1])
    for position, feature in enumerate(features):
        lines[:, position] = feature[order[live]] + starts[position]
        if held is not expected:
            off = np.bincount(feature[order], weights=held - expected)
            error[starts[position] : starts[position + 1]] = off
    taken = _decide((held - counts)[live], lines, error, generator)
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
            # One of each pair takes from the other as much as it can hold or the other has.
            one, two = pair[::2], pair[1::2]
            mine, other = share[one], share[two]
            full = mine + other >= 1.0
            rise, fall = np.where(full, 1.0 - mine, other), np.where(full, 1.0 - other, mine)
            first, second = lines[one], lines[two]
            differ = first != second
            pull = ((error[first] - error[second]) * differ).sum(axis=1)
            pull /= np.maximum(differ.sum(axis=1), 1)
            risen = generator.random(len(one)) < fall / (rise + fall) - pull
            step = np.where(risen, rise, -fall)
            share[one] += step
            share[two] -= step
            moved = np.broadcast_to(step[:, None], first.shape)[differ]
            np.add.at(error, first[differ], moved)
            np.subtract.at(error, second[differ], moved)
        live = live[(share[live] > _NEAR) & (share[live] < 1.0 - _NEAR)]
    taken: BoolArray = share > 0.5
    return taken
