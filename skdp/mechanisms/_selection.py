"""Private selection among candidates with integer scores, exactly.

All selections rely on one condition. Let d_i be the change of score i when one record is added; if
for every pair of neighbouring data sets all d_i lie in one interval of length R (it may differ
from pair to pair), the scores have range R. R is the sensitivity where the record moves all scores
in one direction, and twice the sensitivity in general.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from .._random import Call, NoiseSource, Tape, noise_source
from .._types import FloatArray, IntArray
from .._validation import as_epsilon, as_integer, check_choice
from ._inversion import LIMIT, noise_rate
from ._noise import as_integers, discrete_laplace, geometric
from ._race import canonical_set, joint_sequence

_METHODS = ("one-shot", "peeling", "canonical", "joint", "auto")
# Those that select k candidates as one.
_TOGETHER = {"canonical": canonical_set, "joint": joint_sequence}
# At this rate nothing but the best is ever selected, and its product with any difference of 64-bit
# scores fits into a floating-point number.
_MOST_RATE = Fraction(2**30)
# What "auto" spends on its choice; below this k, and with more classes of sets than this, it takes
# one round of noise and spends nothing: chosen on generated lists of eight shapes.
_AUTO_SHARE, _A_SET_FROM, _MOST_CLASSES = Fraction(6, 100), 4, 2**27
# "joint" holds the losses of all candidates at all places at once.
_MOST_LOSSES = 2**24


def check_method(method: str, k: int, n_scores: int) -> None:
    """Refuse a method of `top_k` that does not exist or cannot select ``k`` of so many scores."""
    check_choice(method, "method", _METHODS)
    if method == "joint" and k * n_scores > _MOST_LOSSES:
        raise ValueError(
            f'k times the number of scores is {k * n_scores}, and method="joint" takes at most '
            f"{_MOST_LOSSES}: use another method."
        )


def as_scores(scores: ArrayLike) -> NDArray[np.integer]:
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
    array = as_scores(scores)
    width = as_range(score_range)
    first = None if starts is None else _as_starts(starts, array.size)
    source = noise_source(random_state)
    if isinstance(source, Tape):
        winners = _recorded(source, array, epsilon, width, first)
        return int(winners[0]) if first is None else winners
    noisy = geometric(array.size, epsilon, width, random_state=source)
    if first is None:
        return int(np.argmax(noisy - _deficits(array, array.max())))
    lengths = np.diff(first, append=array.size)
    if array.dtype == np.int64 and -LIMIT <= int(array.min()) and int(array.max()) <= LIMIT:
        # Noise is at most LIMIT: the sum fits into 64 bits.
        noisy += array
    else:
        noisy -= _deficits(array, np.repeat(np.maximum.reduceat(array, first), lengths))
    best = np.repeat(np.maximum.reduceat(noisy, first), lengths)
    candidates = np.flatnonzero(noisy == best)
    return candidates[np.searchsorted(candidates, first)].astype(np.int64)


def _recorded(
    tape: Tape,
    scores: NDArray[np.integer],
    epsilon: Any,
    width: int,
    starts: IntArray | None = None,
) -> IntArray:
    """Let the tape choose: one candidate in each segment."""
    first = np.zeros(1, dtype=np.int64) if starts is None else starts
    call = Call("selection", _exact(scores), noise_rate(epsilon, width), (width, first))
    winners: IntArray = tape.answer(call)
    return winners


def _exact(scores: NDArray[np.integer]) -> IntArray:
    # Unsigned scores beyond the signed range are all lowered by 2**63: only differences matter.
    if int(scores.max()) > np.iinfo(np.int64).max:
        return (scores ^ np.uint64(2**63)).view(np.int64)
    return scores.astype(np.int64)


def _as_starts(starts: ArrayLike, size: int) -> IntArray:
    array = np.asarray(starts)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise ValueError("starts must be a one-dimensional array of integers, not empty.")
    first = array.astype(np.int64)
    if first[0] != 0 or first[-1] >= size or (np.diff(first) < 1).any():
        raise ValueError(
            "starts must begin with 0 and increase strictly, and stay below the number of "
            f"scores, {size}: every segment needs at least one candidate."
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
    method : {"one-shot", "peeling", "canonical", "joint", "auto"}, default="auto"
        "auto": "one-shot" if ``ordered``, if ``k`` is below 4, or if k times the number of scores
        exceeds 2**27. Else 6% of epsilon measure how far the scores fall from the first to the k-th
        and on to the last; of "one-shot" and "canonical" the one is taken that would lose less on a
        smooth list with these falls. "one-shot": one round of geometric noise of rate
        epsilon / (k R) on all scores. "peeling": k rounds of the `exponential` mechanism at
        epsilon / k among the remaining candidates, the usual baseline in the literature; slower and
        less accurate. "canonical": the canonical Lipschitz mechanism, which selects the set of k as
        one; much more accurate where neighbouring scores around the k-th are more than a few
        R / epsilon apart, and where the noise of one round would drown all but the few largest
        scores; less accurate between. In time proportional to k n. "joint": the joint exponential
        mechanism, which selects the sequence of k as one; rarely the best.
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
        an order, or a parameter is out of range. For "joint", if k times the number of scores
        exceeds 2**24.

    References
    ----------
    M. Shekelyan, G. Loukides, "Differentially private top-k selection via canonical Lipschitz
    mechanism", 2022. J. Gillenwater, M. Joseph, A. Munoz Medina, M. Ribero, "A joint exponential
    mechanism for differentially private top-k", ICML 2022. Both are stated there for other
    neighbours or truncated; here with the coefficient epsilon / (2 R) on the untruncated utility.

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
    array = as_scores(scores)
    width = as_range(score_range)
    count = as_integer(k, "k", 1, meaning="it is the number of candidates to select.")
    if count > array.size:
        raise ValueError(f"k={count} candidates were asked for, but there are {array.size}.")
    check_method(method, count, array.size)
    if not isinstance(ordered, bool):
        raise TypeError(f"ordered must be True or False, got {ordered!r}.")
    if ordered and method == "canonical":
        raise ValueError(
            'method="canonical" selects a set, which has no order: pass ordered=False, or take '
            '"one-shot" or "joint".'
        )
    source = noise_source(random_state)
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
        chosen = _together(array, count, epsilon, width, method, source)
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
    scores: NDArray[np.integer], k: int, epsilon: Any, width: int, method: str, source: NoiseSource
) -> IntArray:
    """Select the set or the sequence of k candidates as one thing."""
    # Privacy. The exponential mechanism on all sets, with utility (least score inside - largest
    # outside), or on all sequences, with utility -max over i of (i-th largest score - score at
    # place i). If all scores change by numbers in [lo, lo + R], so do least, largest and i-th
    # largest ones; their differences and the maximum of these then change by numbers in [-R, R],
    # an interval of length 2 R. So the coefficient eps_d / (2 R) costs eps_d.
    rate = min(noise_rate(epsilon, 2 * width), _MOST_RATE)
    if isinstance(source, Tape):
        recorded: IntArray = source.answer(
            Call("top_k, together", _exact(scores), rate, (width, k))
        )
        return recorded
    behind = scores.max().astype(np.uint64) - scores.astype(np.uint64)
    order = np.argsort(behind, kind="stable")
    return order[_TOGETHER[method](behind[order], k, rate, source)].astype(np.int64)


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
    array = as_scores(scores)
    width = as_range(score_range)
    source = noise_source(random_state)
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
    array = as_scores(scores)
    width = as_range(score_range)
    source = noise_source(random_state)
    if isinstance(source, Tape):
        return int(_recorded(source, array, epsilon, width)[0])
    gaps = _deficits(array, array.max())
    while True:
        proposed = source.below(array.size, size=array.size)
        noise = geometric(array.size, epsilon, width, random_state=source)
        accepted = np.flatnonzero(noise >= gaps[proposed])
        if accepted.size:
            return int(proposed[accepted[0]])
