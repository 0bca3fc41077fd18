"""Private selection of an integer on a long line, where the score has few steps.

Quantiles are selected among all integers within their bounds, up to 2**62 of them, but between
neighbouring data points the score does not change. `select_on_line` is `permute_and_flip` on all
these integers, at the cost of one draw for each piece of constant score.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._random import Call, NoiseSource, Tape, noise_source
from .._types import FloatArray, IntArray
from .._validation import as_integer
from ._inversion import decimal_context, noise_rate
from ._race import least_time
from ._selection import as_range, as_scores

# Length of the longest line.
MOST_INTEGERS = 2**62
# Far above the rounding errors of the logarithms below, in units of 1 + rate * gap.
_MARGIN = 1e-11
# 64 random bits cannot make up for a delay of more than this, on any piece.
_LONGEST = 1e4


class Pieces(Protocol):
    """Pieces of constant score of a line, of which few are worth listing: private."""

    @property
    def n_pieces(self) -> int:
        """How many there are."""
        ...

    @property
    def widest(self) -> int:
        """Number of integers of the widest."""
        ...

    def within(self, gap: int | None) -> tuple[IntArray, IntArray, IntArray]:
        """First integers, scores and widths of pieces, in order.

        At least of all whose score is at most ``gap`` below the best; None: of all.
        """
        ...


class _Listed(NamedTuple):
    """Pieces that are listed already."""

    starts: IntArray
    scores: IntArray
    widths: IntArray

    @property
    def n_pieces(self) -> int:
        return len(self.starts)

    @property
    def widest(self) -> int:
        return int(self.widths.max())

    def within(self, gap: int | None) -> tuple[IntArray, IntArray, IntArray]:
        return self


def select_on_line(
    starts: ArrayLike,
    scores: ArrayLike,
    size: int,
    epsilon: Any,
    score_range: int,
    *,
    random_state: Any = None,
) -> int:
    """Select one of the integers 0, ..., size - 1 by permute-and-flip, exactly.

    Parameters
    ----------
    starts : array-like of int, shape (n_pieces,)
        First integer of each piece on which the score is constant; the first is 0, and they
        increase strictly. Where the pieces begin may depend on the data.
    scores : array-like of int, shape (n_pieces,)
        Exact score of the integers of each piece, within +-2**61; larger is better.
    size : int
        Public number of integers, at most 2**62.
    epsilon : number or Fraction
        Privacy parameter. The noise is drawn at its dyadic floor.
    score_range : int
        The range R, as in `noisy_max`, over all integers of the line.
    random_state : None, int or NoiseSource, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    int
        The selected integer.

    Raises
    ------
    TypeError
        If starts or scores are not integers, or a parameter has the wrong type.
    ValueError
        If there is no piece, starts do not begin with 0 or do not increase, or a parameter is out
        of range.

    References
    ----------
    R. McKenna, D. Sheldon, "Permute-and-flip: a new mechanism for differentially private
    selection", NeurIPS 2020.
    A. Smith, "Privacy-preserving statistical estimation with optimal convergence rates", STOC 2011
    (quantiles by the exponential mechanism on the gaps between data points).

    Examples
    --------
    >>> from skdp.mechanisms import select_on_line
    >>> found = select_on_line([0, 500, 510], [-900, 0, -900], 10**15, 1.0, score_range=2)
    >>> 500 <= found < 510
    True
    """
    exact = as_scores(scores)
    if int(exact.min()) < -(2**61) or int(exact.max()) > 2**61:
        raise ValueError("scores must lie within +-2**61. Measure them in coarser units.")
    length = as_integer(size, "size", 1, meaning="it is the number of integers on the line.")
    if length > MOST_INTEGERS:
        raise ValueError(f"size must be at most 2**62, got {length}.")
    first = _as_starts(starts, exact.size, length)
    pieces = _Listed(first, exact.astype(np.int64), np.diff(first, append=length))
    return select_on_pieces(pieces, length, epsilon, score_range, random_state=random_state)


def select_on_pieces(
    pieces: Pieces, size: int, epsilon: Any, score_range: int, *, random_state: Any = None
) -> int:
    """Select as `select_on_line` does, where not all pieces are worth listing.

    Parameters
    ----------
    pieces : Pieces
    size, epsilon, score_range, random_state
        As there.
    """
    # Privacy. Every integer of the line passes a coin of probability p = exp(-eps_d / R * gap) and
    # a uniform one of those that pass is released: permute_and_flip on ``size`` public candidates,
    # with its loss. Only its computation is shorter: give each integer a uniform time in (0, 1);
    # the first to pass wins. In a piece of w integers nobody passes before time t with probability
    # (1 - t p)**w, so its first time is T = (1 - U**(1/w)) / p for one uniform U, the piece with
    # the least T wins (the best integers always pass, so that T < 1 there), and all its integers
    # are equally likely.
    width = as_range(score_range)
    rate = noise_rate(epsilon, width)
    source = noise_source(random_state)
    if isinstance(source, Tape):
        values = np.stack(pieces.within(None)[:2], axis=1)
        return int(source.answer(Call("line", values, rate, (width, size))))
    start, integers = _earliest(pieces, rate, source)
    return start + source.below(integers)


def _as_starts(starts: ArrayLike, n_pieces: int, size: int) -> IntArray:
    array = np.asarray(starts)
    if array.dtype.kind not in "iu":
        raise TypeError(f"starts must be integers, got {array.dtype}.")
    if array.shape != (n_pieces,):
        raise ValueError(
            f"starts must have one integer for each of the {n_pieces} scores, got shape "
            f"{array.shape}."
        )
    first = array.astype(np.int64)
    if first[0] != 0 or int(first[-1]) >= size or (np.diff(first) < 1).any():
        raise ValueError(
            f"starts must begin with 0, increase strictly, and stay below size={size}."
        )
    return first


def _earliest(pieces: Pieces, rate: Fraction, source: NoiseSource) -> tuple[int, int]:
    """Start and width of the piece with the least log T = log(1 - (1 - V)**(1/w)) + rate * gap.

    V is uniform, and 64 bits of each give an interval for T. Where intervals overlap, more bits
    are drawn.
    """
    # The winner has V / w <= exp(-rate * gap). Far behind, that needs 64 bits that are all zero.
    bits = 64 * math.log(2) + math.log(pieces.widest)
    most = math.ceil((bits + 1) / float(rate))
    starts, scores, widths = pieces.within(most)
    gaps = int(scores.max()) - scores
    racing = np.flatnonzero(gaps <= most)
    words = source.words(racing.size)
    zeros = _zero_words(pieces.n_pieces - racing.size, source)
    if zeros:
        starts, scores, widths = pieces.within(None)
        gaps = int(scores.max()) - scores
        racing, behind = np.flatnonzero(gaps <= most), np.flatnonzero(gaps > most)
        racing = np.concatenate([racing, behind[zeros]])
        words = np.pad(words, (0, len(zeros)))
    starts, widths, gaps = starts[racing], widths[racing], gaps[racing]
    delay = np.minimum(float(rate) * gaps, _LONGEST)
    with np.errstate(divide="ignore"):
        # (1 - V)**(1/w) <= 1 - V / w, and the least T is below 1: the others cannot win.
        least = np.log(words.astype(np.float64)) - 64 * math.log(2) - np.log(widths) + delay
        margin = _MARGIN * (1 + delay)
        able = np.flatnonzero(least <= margin)
        low, high = (_log_first(words[able], extra, widths[able]) for extra in (0, 1))
    low, high = low + delay[able] - margin[able], high + delay[able] + margin[able]
    close = np.flatnonzero(low <= high.min())
    left = {int(able[place]): int(words[able[place]]) for place in close}
    first = least_time(
        left,
        lambda piece: (
            lambda word, bits: _log_time(word, bits, int(widths[piece]), int(gaps[piece]) * rate)
        ),
        source,
    )
    return int(starts[first]), int(widths[first])


def _zero_words(n: int, source: NoiseSource) -> list[int]:
    """Which of n random words are zero, without drawing all of them unless one may be."""
    # The first of them is word i with probability q (1 - q)**i, q = 2**-64: another word is i with
    # probability q, and none of i words is zero with the rest. Those after it are drawn.
    first = int(source.words(1)[0]) if n else 0
    if first >= n or not source.words(first).all():
        return []
    rest = np.flatnonzero(source.words(n - first - 1) == 0)
    return [first, *(first + 1 + rest).tolist()]


def _log_first(words: NDArray[np.uint64], extra: int, widths: IntArray) -> FloatArray:
    """Floating-point log(1 - (1 - V)**(1/w)) at V = (words + extra) / 2**64."""
    # What is subtracted is an exact integer, so that V near 1 keeps its precision too.
    rest = (~words).astype(np.float64) + (1 - extra)
    small = words < np.uint64(2**63)
    v = np.where(small, words.astype(np.float64) + extra, 0.0) * 2.0**-64
    logs = np.where(small, np.log1p(-v), np.log(rest * 2.0**-64))
    times: FloatArray = np.log(-np.expm1(logs / widths))
    return times


def _log_time(word: int, bits: int, width: int, delay: Fraction) -> tuple[Any, Any]:
    """Bounds of log T for V between word and word + 1, over 2**bits, as decimals."""
    digits = 2 * (bits * 302 // 1000) + 80
    context = decimal_context(digits)
    number = context.create_decimal
    shift = context.divide(number(delay.numerator), number(delay.denominator))
    # 1 - U**(1/w) is at least 2**-bits / w, so the subtraction leaves more than half of the digits.
    error = number(f"1e-{digits // 2}")
    bounds = []
    for end, sign in ((word, -1), (word + 1, 1)):
        rest = context.divide(number(2**bits - end), number(2**bits))
        power = context.exp(context.divide(context.ln(rest), number(width)))
        time = context.add(context.ln(context.subtract(number(1), power)), shift)
        bounds.append(context.add(time, context.multiply(error, number(sign))))
    return bounds[0], bounds[1]
