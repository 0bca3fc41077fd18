"""Whole counts near expected ones: sums of a line or a table are off by less than one."""

from __future__ import annotations

import numpy as np

from ..._arrays import exclusive_cumsum, running_sums
from ..._types import BoolArray, FloatArray, IntArray

__all__ = ["round_line", "round_lines", "round_table", "shuffled_line"]

# Expected counts this near to a whole number are that number.
_EXACT = 1e-9
# Units that are moved between columns of a table at most; sums of columns are rarely off.
_MOVES = 1000


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
    return round_lines(expected, np.array([len(expected)]), np.array([total]), generator)


def shuffled_line(expected: FloatArray, total: int, generator: np.random.Generator) -> IntArray:
    """Positions in random order, each as often as `round_line` says; (total,)."""
    counts = round_line(expected, total, generator)
    return generator.permutation(np.repeat(np.arange(len(counts)), counts))


def round_lines(
    expected: FloatArray, lengths: IntArray, totals: IntArray, generator: np.random.Generator
) -> IntArray:
    """Whole counts of consecutive lines, each with its own sum; see `round_line`.

    Parameters
    ----------
    expected : ndarray of shape (n,)
        The lines one after the other.
    lengths : ndarray of int, shape (n_lines,)
        At least 1 each.
    totals : ndarray of int, shape (n_lines,)
    generator : numpy.random.Generator

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    reach = running_sums(expected)
    first = exclusive_cumsum(lengths)
    low, high = reach[first], reach[first + lengths]
    line = np.repeat(np.arange(len(lengths)), lengths)
    # Exactly 1 at the end of each line, and at zeros before it.
    share = (reach[1:] - low[line]) / np.where(high > low, high - low, 1.0)[line]
    offset = _offset(generator, len(lengths))
    stops = np.floor(share * totals[line] + offset[line]).astype(np.int64)
    counts = np.diff(stops, prepend=0)
    counts[first] = stops[first]
    return counts


def _offset(generator: np.random.Generator, size: int) -> FloatArray:
    """Uniform, but clear of the ends, where the rounding errors of sums would show."""
    return _EXACT + (1 - 2 * _EXACT) * generator.random(size)


def round_table(expected: FloatArray, rows: IntArray, generator: np.random.Generator) -> IntArray:
    """Whole counts of a table whose row sums are given.

    Each cell, and each sum of a column, is the next whole number below or above what is expected;
    rows have their sums exactly. Zeros stay zeros.

    Parameters
    ----------
    expected : ndarray of shape (n_rows, n_columns)
        Not negative.
    rows : ndarray of int, shape (n_rows,)
        Sums of the rows of ``expected``.
    generator : numpy.random.Generator

    Returns
    -------
    ndarray of int64, shape (n_rows, n_columns)

    Notes
    -----
    What a column was given too little or too much is carried to the next row, whose cells to round
    up are a systematic sample by their fractions and what was carried. The columns that are then
    off by one or more are repaired along alternating paths. These exist, because the constraints
    are those of a flow (M. Bacharach, "Matrix rounding problems", 1966).

    Examples
    --------
    >>> round_table(np.full((2, 4), 0.5), np.array([2, 2]), np.random.default_rng(0)).sum(axis=0)
    array([1, 1, 1, 1])
    """
    base = np.floor(expected + _EXACT)
    fraction = expected - base
    fraction[fraction < _EXACT] = 0.0
    up = np.zeros(expected.shape, dtype=bool)
    carried = np.zeros(expected.shape[1])
    missing = rows - base.sum(axis=1).astype(np.int64)
    for row in np.flatnonzero(missing > 0).tolist():
        cells = np.flatnonzero(fraction[row])
        wanted = fraction[row, cells]
        chance = _chances(wanted, carried[cells])
        chosen = cells[_sampled(chance, int(missing[row]), generator)]
        up[row, chosen] = True
        carried[cells] += wanted
        carried[chosen] -= 1.0
    _repair(up, fraction, generator)
    counts: IntArray = base.astype(np.int64) + up
    return counts


def _chances(fraction: FloatArray, carried: FloatArray) -> FloatArray:
    """Probabilities with the sum of the fractions, higher where a column was given too little.

    What is carried is limited alike in both directions, which keeps counts nearly unbiased.
    """
    room = np.minimum(fraction, 1.0 - fraction)
    change = np.clip(carried, -room, room)
    more, less = change.clip(min=0.0).sum(), -change.clip(max=0.0).sum()
    if more > less:
        return fraction + np.where(change > 0, change * (less / more), change)
    return fraction + np.where(change < 0, change * (more / max(less, _EXACT)), change)


def _sampled(chance: FloatArray, number: int, generator: np.random.Generator) -> IntArray:
    """Positions of a systematic sample; of so many also where the sum of chances is rounded."""
    chosen = np.flatnonzero(round_line(chance, number, generator))
    return chosen if len(chosen) == number else np.argsort(-chance, kind="stable")[:number]


def _repair(up: BoolArray, fraction: FloatArray, generator: np.random.Generator) -> None:
    """Move units between columns until each sum is off by less than one."""
    off = up.sum(axis=0) - fraction.sum(axis=0)
    for _ in range(_MOVES):
        worst = int(np.argmax(np.round(np.abs(off), 6)))
        if abs(off[worst]) < 1.0 - _EXACT:
            return
        down = (fraction > 0) & ~up
        if off[worst] > 0:
            path = _path(up, down, worst, off < -_EXACT, generator)
        else:
            path = _path(down, up, worst, off > _EXACT, generator)
        if not path:
            return
        for row, one, other in path:
            up[row, [one, other]] = up[row, [other, one]]
        moved = np.sign(off[worst])
        off[worst] -= moved
        off[path[0][2]] += moved


def _path(
    held: BoolArray,
    vacant: BoolArray,
    start: int,
    ends: BoolArray,
    generator: np.random.Generator,
) -> list[tuple[int, int, int]]:
    """Moves (row, from column, to column) from a column to one of the ends; the last comes first.

    A row can move from a column where it is held to one where it is vacant.
    """
    came = np.full(len(ends), -1)
    came[start] = start
    queue = [start]
    for column in queue:
        reached = np.flatnonzero(vacant[held[:, column]].any(axis=0) & (came < 0))
        came[reached] = column
        queue += reached.tolist()
        goals = reached[ends[reached]]
        if len(goals):
            at, moves = int(goals[0]), []
            while at != start:
                before = int(came[at])
                rows = np.flatnonzero(held[:, before] & vacant[:, at])
                moves.append((int(generator.choice(rows)), before, at))
                at = before
            return moves
    return []
