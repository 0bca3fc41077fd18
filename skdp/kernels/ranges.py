"""Where the numbers of a column lie, from noisy counts of numbers of about the same size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .._random import NoiseSource
from .._types import FloatArray, IntArray
from .._validation import dyadic_floor
from ..mechanisms import discrete_laplace

__all__ = ["TUNING", "find_range"]


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
        Probability that noise alone makes any of them count as occupied.
    beyond : int
        Cells by which the range reaches beyond the occupied ones, each about twice as far from 0.
    """

    share: Fraction = Fraction(1, 10)
    widths: tuple[int, ...] = (1, 3, 9)
    false: float = 0.01
    beyond: int = 2


TUNING = Tuning()


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
        False if nothing stands out: the range is then around the one with the largest noisy count.
    """
    # Privacy. Released: a noisy count of every cell of the public lattice, empty ones included. A
    # record with a number is in one cell, one without in none: L1 sensitivity 1, epsilon in all.
    # Windows, thresholds and range are computed from the noisy counts and public numbers.
    noisy = discrete_laplace(counts, epsilon, random_state=source)
    rate = float(dyadic_floor(epsilon))
    first, last = len(counts), -1
    for width in TUNING.widths:
        sums = np.convolve(noisy, np.ones(width, dtype=np.int64), "valid")
        full = np.flatnonzero(sums >= _least(width, len(counts)) / rate)
        if width == 1 and len(full):
            first, last = int(full[0]), int(full[-1])
        elif width > 1:
            # Beside the cells that were found, the strongest window on each side.
            for side in (full[full > last], full[full + width <= first]):
                if len(side):
                    best = int(side[np.argmax(sums[side])])
                    first, last = min(first, best), max(last, best + width - 1)
    found = last >= first
    if not found:
        first = last = int(np.argmax(noisy))
    lower = edges[max(first - TUNING.beyond, 0)]
    upper = edges[min(last + 1 + TUNING.beyond, len(counts))]
    if edges[first] >= 0:
        lower = max(lower, 0.0)
    if edges[last + 1] <= 0:
        upper = min(upper, 0.0)
    return float(lower), float(upper), found


def _least(width: int, number: int) -> float:
    """Sum of noises of rate 1 that hardly any window reaches (Chernoff; for one cell exactly)."""
    log = math.log(number * len(TUNING.widths) / TUNING.false)
    if width == 1:
        return log
    slopes = np.linspace(0.01, 0.99, 99)
    return float(((log - width * np.log1p(-(slopes**2))) / slopes).min())
