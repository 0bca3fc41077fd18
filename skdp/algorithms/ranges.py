"""Where the numbers of a column lie, from noisy counts of numbers of about the same size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from .._random import NoiseSource
from .._validation import FloatArray, IntArray, dyadic_floor
from ..mechanisms import discrete_laplace


@dataclass(frozen=True)
class Tuning:
    """Constants; tests/test_ranges.py measures what they give.

    Attributes
    ----------
    share : Fraction
        Part of epsilon for the ranges of all columns that need one.
    widths : tuple of int
        Numbers of neighbouring cells that are also looked at together, for thin tails.
    false : float
        Probability that noise alone makes any of them count as occupied; less far from the densest.
    beyond : int
        Cells by which the range reaches beyond the occupied ones, each about twice as far from 0.
    """

    share: Fraction = Fraction(1, 10)
    widths: tuple[int, ...] = tuple(3**power for power in range(3))
    false: float = 0.01
    beyond: int = 2


TUNING = Tuning()

# What noise must not make stand out.
_KINDS = ("zeros", "the densest cells", "those beside them")


def find_range(
    counts: IntArray, edges: FloatArray, epsilon: Fraction, source: NoiseSource
) -> tuple[float, float, bool]:
    """A range that contains the bulk of the numbers.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_cells,)
        Records in each cell of a public lattice.
    edges : ndarray of float64, shape (n_cells + 1,)
        With an edge at 0.
    epsilon : Fraction
    source : NoiseSource

    Returns
    -------
    lower, upper : float
        Edges of the lattice. Beyond the occupied cells the range does not cross 0.
    found : bool
        False if nothing but zeros stands out: the range is then a guess, around the cells with the
        largest noisy counts, or of zeros alone.
    """
    # Privacy. Released: a noisy count of every cell of the public lattice, empty ones included. A
    # record with a number is in one cell, one without in none: L1 sensitivity 1, epsilon in all.
    # Windows, thresholds and range are computed from the noisy counts and public numbers.
    noisy = discrete_laplace(counts, epsilon, random_state=source)
    rate = float(dyadic_floor(epsilon))
    zero = int(np.searchsorted(edges, 0.0))
    # Zeros, which many columns have, by themselves; the other cells from 0 outwards.
    sides = {1: noisy[zero + 1 :], -1: noisy[:zero][::-1]}
    zeros = bool(noisy[zero] >= _least(1, 1) / rate)
    main, start, stop, found, likely = _densest(sides, rate)
    places = [zero] if zeros else []
    if likely or not zeros:
        for sign, cells in sides.items():
            reached = _reached(cells, start, rate)
            reached += [start, stop - 1] if sign == main else []
            places += [zero + sign * (each + 1) for each in reached]
    first, last = min(places), max(places)
    lower = edges[max(first - TUNING.beyond, 0)]
    upper = edges[min(last + 1 + TUNING.beyond, len(counts))]
    if edges[first] >= 0:
        lower = max(lower, 0.0)
    if edges[last + 1] <= 0:
        upper = min(upper, 0.0)
    return float(lower), float(upper), found


def _densest(sides: Mapping[int, IntArray], rate: float) -> tuple[int, int, int, bool, bool]:
    """Sign, first cell and end of the narrowest window that stands out; whether one does.

    And whether it is at least as likely as not that it holds more than noise.
    """
    number = sum(len(cells) for cells in sides.values())
    for width in TUNING.widths:
        sums = {sign: _sums(cells, width) for sign, cells in sides.items()}
        main = max(sums, key=lambda sign: int(sums[sign].max()))
        start = int(np.argmax(sums[main]))
        found = bool(sums[main][start] >= _least(width, number) / rate)
        if found:
            break
    likely = found or bool(sums[main][start] >= _least(width, number, 0.5) / rate)
    return main, start, start + width, found, likely


def _reached(cells: IntArray, start: int, rate: float) -> list[int]:
    """The nearest and the farthest cell from 0 of what stands out, on one side of it.

    The chance that noise alone stands out falls with the square of the distance from the densest
    numbers, on both sides of 0 alike: far away, where it would do harm, it hardly ever does, and
    nearby fewer records are found.
    """
    found = []
    for width in TUNING.widths:
        sums = _sums(cells, width)
        places = np.arange(len(sums))
        apart = np.abs(places - start) + 1
        full = np.flatnonzero(sums >= _least(width, 4 * apart * (apart + 1)) / rate)
        # Numbers become fewer towards both ends: they are in the near part of a window.
        found += np.where(full < start, np.minimum(full + width - 1, start), full).tolist()
    return [min(found), max(found)] if found else []


def _sums(cells: IntArray, width: int) -> IntArray:
    return np.convolve(cells, np.ones(width, dtype=np.int64), "valid")


def _least(width: int, tests: Any, false: float = TUNING.false) -> Any:
    """Sum of noises of rate 1 that hardly any window reaches (Chernoff; for one cell exactly)."""
    log = np.log(len(_KINDS) * np.asarray(tests) * len(TUNING.widths) / false)
    if width == 1:
        return log
    slopes = np.linspace(0.01, 0.99, 99)
    noise = width * np.log1p(-(slopes**2))
    return ((log[..., None] - noise) / slopes).min(axis=-1)
