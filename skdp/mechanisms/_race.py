"""Which of many random times is the least, decided exactly.

Every time is a function of one uniform number V. Its first 64 bits give a bracket in floating-point
arithmetic; where brackets overlap, further bits are drawn and the times are computed as decimals,
until one is below all others.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._random import NoiseSource
from .._types import FloatArray
from ._inversion import decimal_context

__all__ = ["Race", "least_time", "logarithms_of"]

# Gives bounds of one time for V between word and word + 1, over 2**bits: (word, bits).
Bounds = Callable[[int, int], tuple[Any, Any]]
# The exact log weight of an entry, in a context of decimals, to about its last digit.
LogWeight = Callable[[int, decimal.Context], decimal.Decimal]
# Far above the relative error of a few floating-point operations.
_ERROR = 2.0**-48


def least_time(left: dict[int, int], bounds: Callable[[int], Bounds], source: NoiseSource) -> int:
    """The entry with the least time, among those that 64 bits of V cannot tell apart.

    Parameters
    ----------
    left : dict of int to int
        The first 64 bits of the V of each entry.
    bounds : callable
        From an entry to the bounds of its time.
    source : NoiseSource
    """
    bits = 64
    while len(left) > 1:
        bits += 64
        left = {entry: word << 64 | int(source.words(1)[0]) for entry, word in left.items()}
        ends = {entry: bounds(entry)(word, bits) for entry, word in left.items()}
        best = min(end[1] for end in ends.values())
        left = {entry: word for entry, word in left.items() if ends[entry][0] <= best}
    return next(iter(left))


class Race:
    """Select an entry with a probability proportional to its weight, exactly.

    Entry s has the time -log(1 - V) / W_s, an exponential variable of rate W_s, so that it is the
    first with a probability proportional to W_s. Entries come in blocks; of each block only what
    may still win is kept.

    Parameters
    ----------
    source : NoiseSource
    """

    def __init__(self, source: NoiseSource) -> None:
        self._source = source
        self._entered = 0
        self._best = math.inf
        # Entry, first word, and the least logarithm that its time can have.
        self._kept: dict[int, tuple[int, float]] = {}

    def enter(self, log_weights: FloatArray, margin: float) -> None:
        """Enter a block of weights, each known by its logarithm to within ``margin``."""
        words = self._source.words(log_weights.size)
        low, high = (_log_exponential(words, extra) - log_weights for extra in (0, 1))
        # Infinite for the word 0, whose time may be arbitrarily small.
        slack = margin + _ERROR * (100 + np.abs(log_weights) + np.abs(low))
        low, high = low - slack, high + slack
        self._best = min(self._best, float(high.min(initial=math.inf)))
        close = np.flatnonzero(low <= self._best)
        self._kept |= {
            self._entered + place: (int(words[place]), float(low[place]))
            for place in close.tolist()
        }
        self._entered += log_weights.size

    def winner(self, log_weight: LogWeight) -> int:
        """The entry that came first, counted over all blocks."""
        left = {entry: word for entry, (word, low) in self._kept.items() if low <= self._best}
        return least_time(
            left,
            lambda entry: lambda word, bits: _log_bounds(word, bits, entry, log_weight),
            self._source,
        )


def _log_exponential(words: NDArray[np.uint64], extra: int) -> FloatArray:
    """Floating-point log(-log(1 - V)) at V = (words + extra) / 2**64."""
    # What is subtracted is an exact integer, so that V near 1 keeps its precision too.
    rest = (~words).astype(np.float64) + (1 - extra)
    small = words < np.uint64(2**63)
    v = np.where(small, words.astype(np.float64) + extra, 0.0) * 2.0**-64
    with np.errstate(divide="ignore"):
        times: FloatArray = np.log(-np.where(small, np.log1p(-v), np.log(rest * 2.0**-64)))
    return times


def _log_bounds(word: int, bits: int, entry: int, log_weight: LogWeight) -> tuple[Any, Any]:
    digits = 2 * (bits * 302 // 1000) + 80
    context = decimal_context(digits)
    number = context.create_decimal
    weight = log_weight(entry, context)
    # -log(1 - V) is at least 2**-bits, so it keeps more than half of the digits, and log weights of
    # 64-bit scores have fewer than 30 digits before the point.
    error = number(f"1e-{digits // 2 - 30}")
    bounds = []
    for end, sign in ((word, -1), (word + 1, 1)):
        rest = context.divide(number(2**bits - end), number(2**bits))
        time = context.ln(context.minus(context.ln(rest)))
        bounds.append(
            context.add(context.subtract(time, weight), context.multiply(error, number(sign)))
        )
    return bounds[0], bounds[1]


def logarithms_of(steps: FloatArray) -> tuple[FloatArray, float]:
    """Running sums of logarithms, and the largest error that they can have.

    Parameters
    ----------
    steps : ndarray of float
        Each within 2**-50 of what it stands for, relatively to 64.

    Returns
    -------
    sums : ndarray of float
    error : float
    """
    # Multiples of 2**-20 add up exactly below 2**33; what they leave is too small to lose much.
    coarse = np.round(steps * 2.0**20) * 2.0**-20
    sums: FloatArray = np.cumsum(coarse) + np.cumsum(steps - coarse)
    return sums, steps.size * 2.0**-43 + _ERROR * float(np.abs(sums).max(initial=0.0))
