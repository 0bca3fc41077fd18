"""Which of many random times is the least, decided exactly.

Every time is a function of one uniform number V. Its first 64 bits give a bracket in floating-point
arithmetic; where brackets overlap, further bits are drawn and the times are computed as decimals,
until one is below all others.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._random import NoiseSource
from .._types import FloatArray, IntArray
from ._inversion import decimal_context

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


# --- private selection of k candidates together: the set, or the sequence, is what is selected
#
# Both are exponential mechanisms on all sets or sequences of k candidates, sampled exactly: those
# of equal utility form classes whose sizes are known, a class is selected by a race, and one of its
# members uniformly. Ranks count from 0, the best first, ties by position.

# Classes that are entered into the race at once.
_BLOCK = 2**20


def canonical_set(
    behind: NDArray[np.uint64], k: int, rate: Fraction, source: NoiseSource
) -> IntArray:
    """Ranks of a set drawn with P proportional to exp(rate * (least inside - largest outside)).

    Parameters
    ----------
    behind : ndarray of uint64, shape (n,)
        How far each score is behind the best, in ascending order.
    k : int
        Size of the set, at most n.
    rate : Fraction
    source : NoiseSource

    Returns
    -------
    ndarray of int64, shape (k,)
        In ascending order.
    """
    # A class is given by the rank i of the best candidate outside and the rank j of the worst
    # inside. Of the j - i - 1 between them, k - i - 1 are inside. The best set, where i = k and
    # j = k - 1, is the first entry.
    n = behind.size
    if k == n:
        return np.arange(n, dtype=np.int64)
    lead = int(behind[k] - behind[k - 1])
    logs, margin = logarithms_of(np.log(np.arange(1, n + 1, dtype=np.float64)))
    factorials = np.append(0.0, logs)
    race = Race(source)
    race.enter(np.array([float(rate) * lead]), 0.0)
    n_columns = n - k
    for start in range(0, k * n_columns, _BLOCK):
        entries = np.arange(start, min(start + _BLOCK, k * n_columns))
        first, last = entries // n_columns, k + entries % n_columns
        gaps = (behind[last] - behind[first]).astype(np.float64)
        sizes = factorials[last - first - 1] - factorials[k - first - 1] - factorials[last - k]
        race.enter(sizes - float(rate) * gaps, 3 * margin)

    def log_weight(entry: int, context: decimal.Context) -> decimal.Decimal:
        if entry == 0:
            return _product(rate, lead, context)
        i, j = (entry - 1) // n_columns, k + (entry - 1) % n_columns
        size = context.create_decimal(math.comb(j - i - 1, k - i - 1))
        gap = int(behind[j] - behind[i])
        return context.subtract(context.ln(size), _product(rate, gap, context))

    entry = race.winner(log_weight)
    if entry == 0:
        return np.arange(k, dtype=np.int64)
    i, j = (entry - 1) // n_columns, k + (entry - 1) % n_columns
    between = _distinct(np.full(k - i - 1, j - i - 1), source)
    ranks = [*range(i), *sorted(i + 1 + place for place in between), j]
    return np.array(ranks, dtype=np.int64)


def joint_sequence(
    behind: NDArray[np.uint64], k: int, rate: Fraction, source: NoiseSource
) -> IntArray:
    """Ranks of a sequence drawn with P proportional to exp(-rate * loss).

    The loss is the largest distance, over places, from the score at a place of the true sequence
    down to the score at that place of this one.

    Parameters
    ----------
    behind : ndarray of uint64, shape (n,)
        How far each score is behind the best, in ascending order.
    k : int
        Length of the sequence, at most n.
    rate : Fraction
    source : NoiseSource

    Returns
    -------
    ndarray of int64, shape (k,)
    """
    # Draw an integer v >= 0 with P proportional to N(v) exp(-rate v), where N(v) sequences lose at
    # most v; then one of these uniformly. A sequence that loses L gets a probability proportional
    # to the sum of exp(-rate v) over v >= L, that is, to exp(-rate L).
    #
    # Place i can hold the n_i(v) candidates that are at most v behind the true one, and n_i grows
    # with i, so that N(v) is the product of n_i(v) - i. It is constant between the losses that some
    # candidate has at some place.
    at_no_loss = np.searchsorted(behind, behind[:k], side="right")
    losses, growth = [], []
    for i in range(k):
        further = behind[at_no_loss[i] :]
        losses.append(further - behind[i])
        sizes = np.arange(at_no_loss[i], behind.size, dtype=np.float64) - i
        growth.append(np.log1p(1 / sizes))
    every = np.concatenate(losses)
    order = np.argsort(every, kind="stable")
    first_sizes = np.log((at_no_loss - np.arange(k)).astype(np.float64))
    logs, margin = logarithms_of(np.concatenate([first_sizes, np.concatenate(growth)[order]]))
    values, firsts = np.unique(every[order], return_index=True)
    starts = np.append(np.uint64(0), values)
    log_numbers = logs[k - 1 + np.append(firsts, every.size)]
    race = Race(source)
    race.enter(log_numbers + _log_spans(starts, rate), margin)

    def log_weight(entry: int, context: decimal.Context) -> decimal.Decimal:
        reach = _reach(behind, k, starts[entry]).tolist()
        number = context.create_decimal(math.prod(each - i for i, each in enumerate(reach)))
        weight = context.subtract(context.ln(number), _product(rate, int(starts[entry]), context))
        if entry + 1 == starts.size:
            return weight
        length = int(starts[entry + 1]) - int(starts[entry])
        left = context.exp(context.minus(_product(rate, length, context)))
        return context.add(weight, context.ln(context.subtract(decimal.Decimal(1), left)))

    within = starts[race.winner(log_weight)]
    return np.array(_distinct(_reach(behind, k, within), source), dtype=np.int64)


def _reach(behind: NDArray[np.uint64], k: int, loss: np.uint64) -> IntArray:
    """How many candidates each place can hold without losing more than ``loss``."""
    # Without overflow: nothing is further behind than the last.
    room = behind[-1] - behind[:k]
    limits = behind[:k] + np.minimum(room, loss)
    return np.searchsorted(behind, limits, side="right").astype(np.int64)


def _log_spans(starts: NDArray[np.uint64], rate: Fraction) -> FloatArray:
    """Log of the sum of exp(-rate v) over each piece of the integers, but for a constant."""
    lengths = np.diff(starts).astype(np.float64)
    spans = np.append(np.log(-np.expm1(-float(rate) * lengths)), 0.0)
    logs: FloatArray = spans - float(rate) * starts.astype(np.float64)
    return logs


def _product(rate: Fraction, gap: int, context: decimal.Context) -> decimal.Decimal:
    return context.divide(
        context.create_decimal(rate.numerator * gap), context.create_decimal(rate.denominator)
    )


def _distinct(reach: IntArray, source: NoiseSource) -> list[int]:
    """Different integers, the i-th below reach[i], uniformly; ``reach`` does not decrease.

    A shuffle of Fisher and Yates whose deck grows, of which only moved cards are kept.
    """
    if not reach.size:
        return []
    picks = source.below(reach - np.arange(reach.size))
    moved: dict[int, int] = {}
    drawn = []
    for i, pick in enumerate(picks.tolist()):
        place = i + pick
        drawn.append(moved.get(place, place))
        moved[place] = moved.pop(i, i)
    return drawn
