"""Private selection: one winner, a set of winners, pieces of a line, buckets.

Which of many random times is the least, decided exactly.

Every time is a function of one uniform number V. Its first 64 bits give a bracket in floating-point
arithmetic; where brackets overlap, further bits are drawn and the times are computed as decimals,
until one is below all others.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from .._random import Call, NoiseSource, Tape, noise_source
from .._validation import (
    BoolArray,
    FloatArray,
    IntArray,
    as_epsilon,
    as_integer,
    check_choice,
    check_flag,
)
from .laplace import LIMIT, as_integers, decimal_context, discrete_laplace, geometric, noise_rate

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


# --- private selection of k candidates together: the set is what is selected
#
# An exponential mechanism on all sets of k candidates, sampled exactly: those of equal utility form
# classes whose sizes are known, a class is selected by a race, and one of its members uniformly.
# Ranks count from 0, the best first, ties by position.

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
    between = _distinct(k - i - 1, j - i - 1, source)
    ranks = [*range(i), *sorted(i + 1 + place for place in between), j]
    return np.array(ranks, dtype=np.int64)


def _product(rate: Fraction, gap: int, context: decimal.Context) -> decimal.Decimal:
    return context.divide(
        context.create_decimal(rate.numerator * gap), context.create_decimal(rate.denominator)
    )


def _distinct(count: int, size: int, source: NoiseSource) -> list[int]:
    """So many different integers below ``size``, uniformly.

    A shuffle of Fisher and Yates, of which only moved cards are kept.
    """
    if not count:
        return []
    picks = source.below(size - np.arange(count))
    moved: dict[int, int] = {}
    drawn = []
    for i, pick in enumerate(picks.tolist()):
        place = i + pick
        drawn.append(moved.get(place, place))
        moved[place] = moved.pop(i, i)
    return drawn


# ------------------------------------------------------------------------------------------------
# Private selection among candidates with integer scores, exactly.
#
# All selections rely on one condition. Let d_i be the change of score i when one record is added;
#   if
# for every pair of neighbouring data sets all d_i lie in one interval of length R (it may differ
# from pair to pair), the scores have range R. R is the sensitivity where the record moves all
#   scores
# in one direction, and twice the sensitivity in general.


METHODS = ("one-shot", "peeling", "canonical", "auto")
# At this rate nothing but the best is ever selected, and its product with any difference of 64-bit
# scores fits into a floating-point number.
_MOST_RATE = Fraction(2**30)
# What "auto" spends on its choice; below this k, and with more classes of sets than this, it takes
# one round of noise and spends nothing: chosen on generated lists of eight shapes.
_AUTO_SHARE, _A_SET_FROM, _MOST_CLASSES = Fraction(6, 100), 4, 2**27


def as_scores(scores: ArrayLike) -> NDArray[np.integer]:
    """Checked scores: one-dimensional integers, at least one."""
    array = as_integers(
        scores,
        "scores",
        "Quantise them by a public grid: np.floor(scores / grid).astype(np.int64), and give "
        "score_range in grid units, rounded up and one more.",
    )
    if array.ndim != 1 or array.size == 0:
        raise ValueError(
            f"scores must be a one-dimensional array of at least one score, got shape "
            f"{array.shape}."
        )
    return array


def as_range(score_range: Any) -> int:
    """A checked range of scores: a positive integer."""
    return as_integer(
        score_range,
        "score_range",
        1,
        meaning="it bounds how much the changes of two scores by one record can differ, in the "
        "units of the integer scores.",
    )


def _deficits(scores: NDArray[np.integer], best: Any) -> IntArray:
    """How far each score is below ``best``, exactly.

    Differences of 64-bit integers wrap around in unsigned arithmetic to the right value. Noise
    never reaches 2**62, so a score further behind than that always loses.
    """
    gaps = np.asarray(best).astype(np.uint64) - scores.astype(np.uint64)
    return np.minimum(gaps, np.uint64(LIMIT + 1)).astype(np.int64)


def noisy_max(
    scores: ArrayLike,
    epsilon: Any,
    score_range: int,
    *,
    starts: ArrayLike | None = None,
    random_state: Any = None,
) -> Any:
    """Select a candidate with a high score: report the largest score plus geometric noise.

    Parameters
    ----------
    scores : array-like of int, shape (n_candidates,)
        Exact integer scores; larger is better.
    epsilon : number or Fraction
        Privacy parameter of one selection. The noise is drawn at its dyadic floor.
    score_range : int
        The range R: when one record is added, the changes of all scores lie in one interval of
        this length. The sensitivity if all scores move in the same direction, else twice it.
    starts : array-like of int, optional
        Where consecutive segments of ``scores`` begin (the first is 0, strictly increasing); one
        candidate is selected in each. Each selection costs ``epsilon``; if a record can change
        the scores of one segment only, all together cost ``epsilon``.
    random_state : None, int or NoiseSource, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    int or ndarray of int64, shape (n_segments,)
        Position in ``scores`` of the winner; with ``starts`` one per segment, also counted from
        the beginning of ``scores``.

    Raises
    ------
    TypeError
        If scores are not integers, or a parameter has the wrong type.
    ValueError
        If there is no score, or a parameter is out of range.

    Notes
    -----
    Ties of noisy scores go to the lowest index, which needs no randomness and costs no privacy.
    The expected loss is usually about half that of `exponential`.

    Examples
    --------
    >>> from skdp.mechanisms import noisy_max
    >>> noisy_max([3, 900, 5], epsilon=1.0, score_range=1)
    1
    """
    # Privacy. Released: the index of the largest score + G, G geometric of rate eps_d / R. Let all
    # changes lie in [lo, lo + R]. Give the winner's noise lo + R - d_i more, between 0 and R: it
    # then is lo + R ahead of where it was and the others at most that, so it still wins, ties
    # included. Geometric noise pays exp(rate) per unit of upward shift, exp(eps_d) in all; only
    # this one direction is needed, hence one-sided noise.
    array, width, source = _entered(scores, score_range, random_state)
    if starts is None:
        if isinstance(source, Tape):
            return int(_recorded(source, array, epsilon, width)[0])
        noisy = geometric(array.size, epsilon, width, random_state=source)
        return int(np.argmax(noisy - _deficits(array, array.max())))
    first = _as_starts(starts, array.size)
    if isinstance(source, Tape):
        return _recorded(source, array, epsilon, width, first)
    noisy = geometric(array.size, epsilon, width, random_state=source)
    lengths = np.diff(first, append=array.size)
    if array.dtype == np.int64 and -LIMIT <= int(array.min()) and int(array.max()) <= LIMIT:
        # Noise is at most LIMIT: the sum fits into 64 bits.
        noisy += array
    else:
        noisy -= _deficits(array, np.repeat(np.maximum.reduceat(array, first), lengths))
    best = np.repeat(np.maximum.reduceat(noisy, first), lengths)
    candidates = np.flatnonzero(noisy == best)
    return candidates[np.searchsorted(candidates, first)].astype(np.int64)


def _entered(
    scores: ArrayLike, score_range: Any, random_state: Any
) -> tuple[NDArray[np.integer], int, NoiseSource]:
    """Checked scores, their checked range, and the source of the noise."""
    return as_scores(scores), as_range(score_range), noise_source(random_state)


def _recorded(
    tape: Tape, scores: NDArray[np.integer], epsilon: Any, width: int, starts: Any = (0,)
) -> IntArray:
    """Let the tape choose: one candidate in each segment."""
    public = width, np.asarray(starts, dtype=np.int64)
    call = Call("selection", _exact(scores), noise_rate(epsilon, width), public)
    winners: IntArray = tape.answer(call)
    return winners


def _exact(scores: NDArray[np.integer]) -> IntArray:
    # Unsigned scores beyond the signed range are all lowered by 2**63: only differences matter.
    if int(scores.max()) > np.iinfo(np.int64).max:
        return (scores ^ np.uint64(2**63)).view(np.int64)
    return scores.astype(np.int64)


def _as_starts(starts: ArrayLike, size: int) -> IntArray:
    """Checked starts of consecutive pieces of ``size`` candidates."""
    first = as_integers(starts, "starts", "They are places.").astype(np.int64)
    increasing = first.ndim == 1 and first.size and first[0] == 0 and (np.diff(first) > 0).all()
    if not increasing or first[-1] >= size:
        raise ValueError(
            "starts must be one-dimensional, begin with 0, increase strictly, and stay below the "
            f"number of candidates, {size}: every piece has at least one."
        )
    return first


def top_k(
    scores: ArrayLike,
    k: int,
    epsilon: Any,
    score_range: int,
    *,
    method: str = "auto",
    ordered: bool = True,
    random_state: Any = None,
) -> IntArray:
    """Select k candidates with high scores, in order.

    Parameters
    ----------
    scores : array-like of int, shape (n_candidates,)
        Exact integer scores; larger is better.
    k : int
        How many to select; at most the number of candidates.
    epsilon : number or Fraction
        Privacy parameter of the whole selection. The noise is drawn at its dyadic floor.
    score_range : int
        The range R, as in `noisy_max`.
    method : {"one-shot", "peeling", "canonical", "auto"}, default="auto"
        "auto": "one-shot" if ``ordered``, if ``k`` is below 4, or if k times the number of scores
        exceeds 2**27. Else 6% of epsilon measure how far the scores fall from the first to the k-th
        and on to the last; of "one-shot" and "canonical" the one is taken that would lose less on a
        smooth list with these falls. "one-shot": one round of geometric noise of rate
        epsilon / (k R) on all scores. "peeling": k rounds of the `exponential` mechanism at
        epsilon / k among the remaining candidates, the usual baseline in the literature; slower and
        less accurate. "canonical": the canonical Lipschitz mechanism, which selects the set of k as
        one; much more accurate where neighbouring scores around the k-th are more than a few
        R / epsilon apart, and where the noise of one round would drown all but the few largest
        scores; less accurate between. In time proportional to k n.
    ordered : bool, default=True
        Whether the winners are best first. "canonical" selects a set and needs ``ordered=False``.
    random_state : None, int or NoiseSource, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    ndarray of int64, shape (k,)
        Positions of the winners: best first, where the order is part of what is private, or
        ascending if not ``ordered``.

    Raises
    ------
    TypeError
        If scores are not integers, or a parameter has the wrong type.
    ValueError
        If ``k`` is less than 1 or more than there are scores, ``method`` is unknown or cannot give
        an order, or a parameter is out of range.

    References
    ----------
    M. Shekelyan, G. Loukides, "Differentially private top-k selection via canonical Lipschitz
    mechanism", 2022; stated there for other neighbours, here with the coefficient
    epsilon / (2 R) on the untruncated utility.

    Examples
    --------
    >>> from skdp.mechanisms import top_k
    >>> top_k([3, 900, 5, 400], k=2, epsilon=2.0, score_range=1).tolist()
    [1, 3]
    >>> top_k([3, 900, 5, 400], 2, 1.0, 1, method="canonical", ordered=False).tolist()
    [1, 3]
    """
    # Privacy. Released: the ordered indices of the k largest of score + G, G geometric of rate
    # eps_d / (k R). As in noisy_max, raising the noise of each of the k winners by at most R keeps
    # the same winners in the same order; k raises cost k R eps_d / (k R) = eps_d. The other methods
    # have their arguments beside them.
    array, width, source = _entered(scores, score_range, random_state)
    count = as_integer(k, "k", 1, meaning="it is the number of candidates to select.")
    if count > array.size:
        raise ValueError(f"k={count} candidates were asked for, but there are {array.size}.")
    check_choice(method, "method", METHODS)
    check_flag(ordered, "ordered")
    if ordered and method == "canonical":
        raise ValueError(
            'method="canonical" selects a set, which has no order: pass ordered=False, or take '
            '"one-shot".'
        )
    if method == "auto":
        method = "one-shot"
        few = array.size * count <= _MOST_CLASSES
        if few and not ordered and _A_SET_FROM <= count < array.size:
            method, epsilon = _best_method(array, count, as_epsilon(epsilon), width, source)
    if method == "peeling":
        chosen = _peel(array, count, epsilon, width, source)
    elif method == "one-shot":
        chosen = _one_shot(array, count, epsilon, width, source)
    else:
        chosen = _together(array, count, epsilon, width, source)
    # A set is drawn by ranks, whose true order must not show: ``ordered`` is false for it.
    return chosen if ordered else np.sort(chosen)


def _one_shot(
    scores: NDArray[np.integer], k: int, epsilon: Any, width: int, source: NoiseSource
) -> IntArray:
    if isinstance(source, Tape):
        call = Call("top_k", _exact(scores), noise_rate(epsilon, k * width), (width, k))
        recorded: IntArray = source.answer(call)
        return recorded
    noise = geometric(scores.size, epsilon, k * width, random_state=source)
    # Sorting the negated values stably leaves equal ones in order of index.
    order = np.argsort(_deficits(scores, scores.max()) - noise, kind="stable")
    return order[:k].astype(np.int64)


def _best_method(
    scores: NDArray[np.integer], k: int, epsilon: Fraction, width: int, source: NoiseSource
) -> tuple[str, Fraction]:
    """The method that "auto" stands for, and what is left of epsilon."""
    # Privacy. Released: how far the scores fall from the first to the k-th, and from there to the
    # last. If all changes of scores lie in [lo, lo + R], so do those of the three, and each fall
    # changes by at most R; where only the k-th moves, both do: sensitivity 2 R at the share. The
    # losses are computed from that, and what follows spends the rest. Where none of it is asked
    # is public.
    ranked = np.sort(_deficits(scores, scores.max()))
    falls = np.array([ranked[k - 1], ranked[-1] - ranked[k - 1]])
    noisy = discrete_laplace(falls, _AUTO_SHARE * epsilon, 2 * width, random_state=source)
    left = (1 - _AUTO_SHARE) * epsilon
    rate = float(min(left / width, _MOST_RATE))
    one_round, a_set = _losses(np.maximum(noisy, 0).astype(np.float64), k, scores.size, rate)
    return "one-shot" if one_round <= a_set else "canonical", left


def _losses(falls: FloatArray, k: int, n: int, rate: float) -> tuple[float, float]:
    """Expected total score that one round of noise and a set miss on a smooth list.

    Parameters
    ----------
    falls : ndarray of shape (2,)
        From the first of n scores to the k-th, and on to the last; in between in proportion to the
        logarithm of the rank.
    k, n : int
    rate : float
        Epsilon over the range of the scores.
    """
    # Beyond the k-th in runs, more and more ranks together.
    runs = np.append(np.arange(k, min(k + 8, n)), np.rint(np.geomspace(k, n - 1, 64)))
    starts = np.unique(runs.astype(np.int64))
    lengths = np.diff(starts, append=n)
    ranks = np.append(np.arange(1, k + 1), starts + (lengths + 1) / 2)
    scores = np.interp(np.log(ranks), np.log([1, k, n]), [0.0, -falls[0], -falls.sum()])
    sizes = np.append(np.ones(k), lengths)
    best = scores[:k].sum()
    # One round: whatever is above a threshold, and the rest by how far it is below.
    scale = k / rate
    low, high = scores[-1], scores[0] + scale * np.log(n)
    for _ in range(50):
        middle = (low + high) / 2
        shares = np.exp(np.minimum(0.0, (scores - middle) / scale))
        low, high = (middle, high) if sizes @ shares > k else (low, middle)
    # A set: classes by the best rank outside and the worst inside, as in `canonical_set`.
    outside = np.arange(k)[:, None]
    inside, between = k - outside - 1, starts - outside - 1
    numbers = gammaln(between + 1) - gammaln(inside + 1) - gammaln(between - inside + 1)
    weights = numbers + np.log(lengths) - rate / 2 * (scores[:k, None] - scores[k:])
    sums = np.append(0.0, np.cumsum(sizes * scores))
    mixed = inside / np.maximum(between, 1) * (sums[k:-1] - sums[1 : k + 1, None])
    found = sums[:k, None] + scores[k:] + mixed
    lead = rate / 2 * (scores[k - 1] - scores[k])
    most = max(weights.max(), lead)
    weights = np.exp(weights - most)
    missed = (weights * (best - found)).sum() / (weights.sum() + np.exp(lead - most))
    return float(best - sizes * shares @ scores), float(missed)


def _together(
    scores: NDArray[np.integer], k: int, epsilon: Any, width: int, source: NoiseSource
) -> IntArray:
    """Select the set of k candidates as one thing."""
    # Privacy. The exponential mechanism on all sets, with utility (least score inside - largest
    # outside). If all scores change by numbers in [lo, lo + R], so do the least and the largest of
    # any of them; their difference then changes by a number in [-R, R], an interval of length 2 R.
    # So the coefficient eps_d / (2 R) costs eps_d.
    rate = min(noise_rate(epsilon, 2 * width), _MOST_RATE)
    if isinstance(source, Tape):
        recorded: IntArray = source.answer(
            Call("top_k, together", _exact(scores), rate, (width, k))
        )
        return recorded
    behind = scores.max().astype(np.uint64) - scores.astype(np.uint64)
    order = np.argsort(behind, kind="stable")
    return order[canonical_set(behind[order], k, rate, source)].astype(np.int64)


def _peel(
    scores: NDArray[np.integer], k: int, epsilon: Any, width: int, source: NoiseSource
) -> IntArray:
    # Privacy. k selections in sequence, each by the exponential mechanism at epsilon / k among
    # public candidates: those that the earlier, released selections left over.
    share = as_epsilon(epsilon) / k
    left = np.arange(scores.size)
    chosen = np.empty(k, dtype=np.int64)
    for place in range(k):
        winner = exponential(scores[left], share, width, random_state=source)
        chosen[place] = left[winner]
        left = np.delete(left, winner)
    return chosen


def permute_and_flip(
    scores: ArrayLike, epsilon: Any, score_range: int, *, random_state: Any = None
) -> int:
    """Select a candidate by permute-and-flip, exactly.

    Parameters
    ----------
    scores : array-like of int, shape (n_candidates,)
        Exact integer scores; larger is better.
    epsilon : number or Fraction
        Privacy parameter. The noise is drawn at its dyadic floor.
    score_range : int
        The range R, as in `noisy_max`; the coefficient is epsilon / R.
    random_state : None, int or NoiseSource, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    int
        Position of the selected candidate.

    Raises
    ------
    TypeError
        If scores are not integers, or a parameter has the wrong type.
    ValueError
        If there is no score, or a parameter is out of range.

    References
    ----------
    R. McKenna, D. Sheldon, "Permute-and-flip: a new mechanism for differentially private
    selection", NeurIPS 2020.

    Examples
    --------
    >>> from skdp.mechanisms import permute_and_flip
    >>> permute_and_flip([3, 900, 5], epsilon=1.0, score_range=1)
    1
    """
    # Privacy. Going through the candidates in random order and keeping the first that passes a coin
    # of probability p_i = exp(-eps_d / R * (best - score_i)) selects a uniform member of the set
    # that passes, for coins thrown all at once; the best always passes. The distribution equals
    # report-noisy-max with exponential noise of that rate, which the argument of noisy_max covers.
    # A coin of probability exp(-rate * gap), exactly: a geometric number reaches the gap.
    array, width, source = _entered(scores, score_range, random_state)
    if isinstance(source, Tape):
        return int(_recorded(source, array, epsilon, width)[0])
    noise = geometric(array.size, epsilon, width, random_state=source)
    passed = np.flatnonzero(noise >= _deficits(array, array.max()))
    return int(passed[source.below(passed.size)])


def exponential(
    scores: ArrayLike, epsilon: Any, score_range: int, *, random_state: Any = None
) -> int:
    """Select a candidate by the exponential mechanism, exactly.

    Parameters
    ----------
    scores : array-like of int, shape (n_candidates,)
        Exact integer scores; larger is better.
    epsilon : number or Fraction
        Privacy parameter. The noise is drawn at its dyadic floor.
    score_range : int
        The range R, as in `noisy_max`; P(i) is proportional to exp(epsilon / R * score_i).
    random_state : None, int or NoiseSource, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    int
        Position of the selected candidate.

    Raises
    ------
    TypeError
        If scores are not integers, or a parameter has the wrong type.
    ValueError
        If there is no score, or a parameter is out of range.

    Notes
    -----
    `noisy_max` and `permute_and_flip` cost the same and usually lose about half as much.

    References
    ----------
    F. McSherry, K. Talwar, "Mechanism design via differential privacy", FOCS 2007.

    Examples
    --------
    >>> from skdp.mechanisms import exponential
    >>> exponential([3, 900, 5], epsilon=1.0, score_range=1)
    1
    """
    # Privacy. With changes in [lo, lo + R], every weight exp(rate * score) and their sum change by
    # factors within [exp(rate lo), exp(rate (lo + R))], so each probability by at most
    # exp(rate R) = exp(eps_d).
    # Sampling: propose a uniform candidate, accept it if a geometric number reaches its gap to the
    # best (probability exp(-rate * gap), exactly); the first accepted one has the required
    # distribution. One round of n proposals contains an accepted one with probability at least 1 -
    # (1 - 1/n)**n > 0.63 for any scores, since the best is always accepted: 1.6 rounds on average
    # at most.
    array, width, source = _entered(scores, score_range, random_state)
    if isinstance(source, Tape):
        return int(_recorded(source, array, epsilon, width)[0])
    gaps = _deficits(array, array.max())
    while True:
        proposed = source.below(array.size, size=array.size)
        noise = geometric(array.size, epsilon, width, random_state=source)
        accepted = np.flatnonzero(noise >= gaps[proposed])
        if accepted.size:
            return int(proposed[accepted[0]])


# ------------------------------------------------------------------------------------------------
# Choosing a partition of a line into buckets by noisy costs: the first step of DAWA.


# Sums of costs and noise up to this fit into 64 bits.
_SAFE = 2**60


def choose_buckets(
    costs: Sequence[ArrayLike],
    n_bins: int,
    epsilon: Any,
    score_range: int,
    *,
    penalty: int = 0,
    random_state: Any = None,
) -> IntArray:
    """Choose consecutive buckets of bins with a small sum of noisy costs.

    Parameters
    ----------
    costs : sequence of array-like of int
        Exact costs of the candidate buckets of 1, 2, 4, 8, ... bins. Each array has either one
        cost for every first bin (``n_bins - length + 1`` costs), or, in all arrays, one for every
        ``length`` bins (``ceil(n_bins / length)`` costs; the last bucket may be shorter).
    n_bins : int
    epsilon : number or Fraction
        Privacy parameter of the choice. The noise is drawn at its dyadic floor.
    score_range : int
        The range R: when one record is added, the costs of the buckets that hold it change by
        amounts that lie in one interval of length R, and no other cost changes.
    penalty : int, default=0
        Public cost of each bucket, added to the exact one.
    random_state : None, int or NoiseSource, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    ndarray of int64, shape (n_buckets + 1,)
        Edges of the buckets, from 0 to ``n_bins``.

    Raises
    ------
    TypeError
        If costs are not integers, or a parameter has the wrong type.
    ValueError
        If the arrays have other lengths, or a parameter is out of range.

    References
    ----------
    C. Li, M. Hay, G. Miklau, Y. Wang: A Data- and Workload-Aware Algorithm for Range Queries
    Under Differential Privacy, PVLDB 7, 2014.

    Examples
    --------
    >>> from skdp.mechanisms import choose_buckets
    >>> costs = [[0, 0, 0, 0], [0, 9000, 0], [9000]]
    >>> choose_buckets(costs, 4, epsilon=1.0, score_range=2, penalty=500)
    array([0, 2, 4])
    """
    # Privacy. Released: the partition whose noisy costs, cost - G of each bucket with G geometric
    # of rate eps_d / R, have the least sum. Every partition has exactly one bucket that holds the
    # record, and with it its cost moves by some d in [lo, lo + R]. Raise the noise of that bucket
    # of the winner by d - lo, between 0 and R: the winner then moves by lo, as do all partitions
    # with the same bucket, and every other one by lo at least, so it still wins; ties go to a
    # public order. Geometric noise pays exp(rate) per unit, exp(eps_d) in all. The costs are
    # not released.
    size = as_integer(n_bins, "n_bins", 1)
    arrays = [as_integers(each, "costs", "Scale and round them.") for each in costs]
    lengths = [len(each) for each in arrays]
    _check_lengths(lengths, size)
    width = as_range(score_range)
    rate = noise_rate(epsilon, width)
    extra = as_integer(penalty, "penalty", 0)
    # Unsigned and signed 64-bit integers together would become floating-point numbers.
    wide = any(each.dtype == np.uint64 for each in arrays)
    exact = np.concatenate([each.astype(object if wide else np.int64) for each in arrays])
    source = noise_source(random_state)
    if isinstance(source, Tape):
        # The tape adds noise to scores, of which the largest wins.
        public = (width, size, tuple(lengths), extra)
        edges: IntArray = source.answer(Call("buckets", -exact, rate, public))
        return edges
    noise = geometric(exact.size, epsilon, width, random_state=source)
    return least_cost_edges(_differences(exact, noise, size, extra), lengths, size, extra)


def _differences(exact: NDArray[Any], noise: IntArray, size: int, penalty: int) -> NDArray[Any]:
    """Costs minus noise, as Python integers where sums of them may not fit into 64 bits."""
    largest = int(noise.max()) + max(int(exact.max()), -int(exact.min())) + penalty
    if largest * (size + 1) < _SAFE:
        return exact.astype(np.int64) - noise
    return exact.astype(object) - noise.astype(object)


def _has_all_starts(lengths: Sequence[int], n_bins: int) -> bool:
    return list(lengths) == [n_bins - 2**k + 1 for k in range(n_bins.bit_length())]


def _check_lengths(lengths: Sequence[int], n_bins: int) -> None:
    aligned = [-(-n_bins // 2**k) for k in range(len(lengths))]
    if lengths and (_has_all_starts(lengths, n_bins) or (lengths == aligned and aligned[-1] == 1)):
        return
    raise ValueError(
        f"costs must have one array for each of the lengths 1, 2, 4, ... with one cost for every "
        f"first bin or for every length bins of {n_bins}, got arrays of {list(lengths)} costs."
    )


def least_cost_edges(
    costs: NDArray[Any], lengths: Sequence[int], n_bins: int, penalty: int
) -> IntArray:
    """Edges of the buckets with the least sum of costs, each bucket ``penalty`` dearer.

    Parameters
    ----------
    costs : ndarray of int
        Of all candidates, those of one length after those of another.
    lengths : sequence of int
        Number of candidates of 1, 2, 4, ... bins.
    n_bins, penalty : int
    """
    tables = np.split(costs + penalty, np.cumsum(lengths)[:-1])
    if _has_all_starts(lengths, n_bins):
        return _of_all_starts(tables, n_bins)
    return _of_aligned(tables, n_bins)


def _of_all_starts(tables: Sequence[NDArray[Any]], n_bins: int) -> IntArray:
    """Dynamic programme over the end of the last bucket; ties go to the shortest last bucket."""
    ending = np.zeros((n_bins + 1, len(tables)), dtype=tables[0].dtype)
    for k, table in enumerate(tables):
        ending[2**k :, k] = table
    back = 2 ** np.arange(len(tables))
    best = np.zeros(n_bins + 1, dtype=tables[0].dtype)
    last = np.zeros(n_bins + 1, dtype=np.int64)
    for stop in range(1, n_bins + 1):
        fits = min(len(tables), stop.bit_length())
        sums = best[stop - back[:fits]] + ending[stop, :fits]
        choice = int(sums.argmin())
        best[stop], last[stop] = sums[choice], back[choice]
    edges = [n_bins]
    while edges[-1]:
        edges.append(edges[-1] - int(last[edges[-1]]))
    return np.array(edges[::-1], dtype=np.int64)


def _of_aligned(tables: Sequence[NDArray[Any]], n_bins: int) -> IntArray:
    """Dynamic programme up a binary tree; ties go to the whole bucket."""
    best = tables[0]
    whole: list[BoolArray] = [np.ones(len(best), dtype=bool)]
    for table in tables[1:]:
        halves = best[::2].copy()
        halves[: len(best) // 2] += best[1::2]
        whole.append(table <= halves)
        best = np.where(whole[-1], table, halves)
    reached = np.ones(1, dtype=bool)
    starts = []
    for k in reversed(range(len(tables))):
        starts.append(np.flatnonzero(reached & whole[k]) << k)
        if k:
            reached = np.repeat(reached & ~whole[k], 2)[: len(tables[k - 1])]
    return np.append(np.sort(np.concatenate(starts)), n_bins).astype(np.int64)


# ------------------------------------------------------------------------------------------------
# Private selection of an integer on a long line, where the score has few steps.
#
# Quantiles are selected among all integers within their bounds, up to 2**62 of them, but between
# neighbouring data points the score does not change. `select_on_line` is `permute_and_flip` on all
# these integers, at the cost of one draw for each piece of constant score.


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
    first = _as_starts(starts, length)
    if first.size != exact.size:
        raise ValueError(f"{first.size} starts were given for {exact.size} scores.")
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
