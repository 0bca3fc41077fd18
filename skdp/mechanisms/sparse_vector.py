"""Sparse vectors and sparse counts: what is above a threshold is found, the rest not released.

A sparse vector finds the queries above a threshold, and pays only for those.

With the names of Lyu, Su and Li: SVT-S is `SparseVector`, SVT-DPBook its ``variant="dwork-roth"``
(fresh threshold noise after each answer), and SVT with retraversal (SVT-ReTr)
`sparse_vector_top_k`.

Everything is computed on integers, and the noise is drawn exactly.
"""

from __future__ import annotations

import math
import numbers
import os
import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._random import Call, NoiseSource, Tape, noise_source, process_mark
from .._validation import (
    BoolArray,
    CodeArray,
    FloatArray,
    IntArray,
    as_between,
    as_epsilon,
    as_fraction,
    as_integer,
    as_level,
    check_choice,
    check_flag,
    dyadic_floor,
    run_starts,
    split_epsilon,
)
from ..accounting import PrivacyLoss, charge
from .laplace import (
    REACH,
    as_answers,
    as_integers,
    as_sensitivity,
    clamped,
    discrete_laplace,
    discrete_laplace_variance,
    draw_noise,
    exp_interval,
    geometric,
    geometric_variance,
    least_reach,
    noise_rate,
)

_CHUNK = 2**16


class SparseVector:
    """Find the queries of a stream that are above a threshold; negative answers are free.

    The whole epsilon is spent when the object is made. It then answers any number of queries,
    possibly chosen after earlier answers, until ``cutoff`` of them were positive.

    Parameters
    ----------
    epsilon : number or Fraction
        Privacy parameter of everything that the object will ever answer.
    threshold : number or array-like of shape (n_queries,)
        One public threshold for all queries, or one for each query in order.
    cutoff : int
        Number of positive answers after which queries are refused.
    sensitivity : int or Fraction, default=1
        Largest change of one query when one record is added or removed. Round what each record adds
        to a public step, and measure in steps: a sum of floats can change by more than its terms, a
        sum of integers cannot.
    monotonic : bool, default=False
        One record moves all queries in the same direction, as it does all counts. The noise of
        a query is then half as wide. This is not checked: a stream that breaks it cannot
        be detected, and costs up to twice the part "comparisons" of epsilon.
    ratio : number, default=None
        Budget of the comparisons divided by that of the threshold. None takes the ratio of least
        variance, (2 cutoff)**(2/3), or cutoff**(2/3) for monotonic queries.
    answer_share : number, default=0
        Part of epsilon, at least 0 and below 1, for noisy answers of the positive queries.
    expected_queries : int, default=None
        Public guess of the length of the stream. The threshold is then raised, where it is too
        low for the noise, until this many queries with true answers of 0 would give cutoff / 2
        positives on average. It costs nothing, and privacy does not depend on it. It prevents noise
        from using up the positives.
    variant : {"standard", "dwork-roth"}, default="standard"
        "dwork-roth" draws new noise for the threshold after each positive answer, and therefore
        needs ``cutoff`` times as much of it: more noise for the same guarantee.
    noise : {"one-sided", "two-sided"}, default="one-sided"
        One-sided geometric noise, or two-sided discrete Laplace noise of twice its variance, as in
        the literature.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged with epsilon when the object is made.
    random_state : None, int or NoiseSource, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Attributes
    ----------
    privacy_loss : PrivacyLoss
        Parts "threshold", "comparisons" and "answers".
    remaining : int
        Positive answers left.
    n_queries : int
        Queries answered so far.
    positives : ndarray of int64, shape (n_positives,)
        Places in the stream of all positive answers so far.
    gaps : ndarray of int64, shape (n_positives,)
        How far each was above its threshold, under the noise of the comparison. It is free.
    answers : ndarray of int64, shape (n_positives,)
        Their noisy answers; empty without ``answer_share``.
    comparison_std : float
        Standard deviation of the noise between a query and its threshold.
    query_scale : float
        Scale of the noise of a query, 2 ``cutoff`` times the sensitivity over the part
        "comparisons", or half of it for monotonic queries.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of the wrong type or out of range. Nothing is spent.
    BudgetExceededError
        If the ledger cannot pay.

    Notes
    -----
    The noise is one-sided, and its known mean is subtracted: at equal epsilon the
    comparison has half the variance that Laplace noise gives. Algorithm 23 of the reference is
    ``noise="two-sided"``, Algorithm 18 is ``variant="dwork-roth", noise="two-sided"`` (both
    with discrete noise). A gap is an unbiased noisy answer minus the threshold, but only large gaps
    are released: given that the answer was positive, a gap is too high on average.

    The object can be neither copied nor pickled, and refuses to work in a forked process: two
    copies with the same noisy threshold would answer ``cutoff`` positive queries each.

    References
    ----------
    Cynthia Dwork, Aaron Roth, "The algorithmic foundations of differential privacy", 2014,
    section 3.6.
    Dong Su, "Differentially private data publishing for data analysis", Purdue University, 2016,
    chapter 5.
    Z. Ding, Y. Wang, D. Zhang, D. Kifer, "Free gap information from the differentially private
    sparse vector and noisy max mechanisms", PVLDB 13(3), 2019.

    Examples
    --------
    >>> from skdp.mechanisms import SparseVector
    >>> above = SparseVector(epsilon=1.0, threshold=1000, cutoff=2, monotonic=True)
    >>> above.query(12), above.query(90_000)
    (False, True)
    >>> above.remaining
    1
    >>> above.query_many([0, 3, 80_000, 5]).tolist()
    [False, False, True]
    """

    # Privacy. Released: the signs of q + nu - (T + rho), the gaps of positives, and noisy answers.
    # Let D, D' be neighbours, and pair rho on D with rho + s on D', every nu of a negative query
    # with itself and nu of a positive query with nu + s + q(D) - q(D'), which leaves every gap as
    # it is; s = sensitivity D. Then q(D') + nu < T + rho + s where q(D) + nu < T + rho: negatives
    # stay negative, and cost nothing however many there are. Both shifts are upward: s for rho, at
    # most 2 s for each of at most c nu. Geometric noise pays exp(rate) per unit of an upward shift
    # and is defined there: eps1 for rho at rate eps1 / s, eps2 for all nu at rate eps2 / (2 c s).
    # Monotonic queries: if q(D) <= q(D') for all, nu shifts by s + q(D) - q(D') <= s; if q(D) >=
    # q(D') for all, rho needs no shift and nu shifts by q(D) - q(D') <= s; so the rate eps2 / (c s)
    # is enough. The noisy answers are discrete Laplace, eps3 / c each. Offsets are public. Adaptive
    # queries: the argument holds given the past.
    # "dwork-roth" is c runs in sequence of cutoff 1 with epsilon / c.

    def __init__(
        self,
        epsilon: Any,
        threshold: Any,
        cutoff: int,
        sensitivity: Any = 1,
        monotonic: bool = False,
        *,
        ratio: Any = None,
        answer_share: Any = 0,
        expected_queries: int | None = None,
        variant: str = "standard",
        noise: str = "one-sided",
        ledger: Any = None,
        random_state: Any = None,
    ) -> None:
        exact = as_epsilon(epsilon)
        self._cutoff = as_integer(
            cutoff, "cutoff", 1, meaning="it is how many positive answers epsilon pays for."
        )
        check_flag(monotonic, "monotonic")
        check_choice(variant, "variant", ("standard", "dwork-roth"))
        check_choice(noise, "noise", ("one-sided", "two-sided"))
        self._monotonic = bool(monotonic)
        self._refreshing = variant == "dwork-roth"
        self._one_sided = noise == "one-sided"
        self._shift = as_sensitivity(sensitivity)
        width = (1 if monotonic else 2) * self._cutoff
        told = "it is the part of epsilon for noisy answers."
        share = as_between(answer_share, "answer_share", 0, Fraction(999, 1000), meaning=told)
        parts = self._divide(exact, share, ratio, width)
        self._scale_noise(parts, width)
        least = None
        if expected_queries is not None:
            count = as_integer(expected_queries, "expected_queries", 1, meaning="it is a length.")
            least = self._raise(count)
        self._thresholds = self._as_thresholds(threshold, least)

        self._source = noise_source(random_state)
        self.privacy_loss = PrivacyLoss(exact, parts, seeded=self._source.seeded)
        charge(ledger, "SparseVector", self.privacy_loss)
        self._lock = threading.Lock()
        self._process = process_mark()
        self._count = 0
        self._found: list[tuple[int, int, int | None]] = []
        self._serial = self._source.serial() if isinstance(self._source, Tape) else 0
        self._noisy = self._draw_threshold()

    # Public choices, made before anything is spent

    def _divide(
        self, epsilon: Fraction, share: Fraction, ratio: Any, width: int
    ) -> dict[str, Fraction]:
        """Epsilon of the threshold, of the comparisons, and of the noisy answers."""
        if ratio is None:
            # Minimises (1 / eps1)**2 + (width / eps2)**2 for a given sum; any rational number near
            # it will do.
            least = 1 if self._refreshing else Fraction(round(width ** (2 / 3) * 2**20), 2**20)
            odds = Fraction(least)
        else:
            odds = as_fraction(ratio, "ratio")
            if odds <= 0:
                raise ValueError(f"ratio must be positive, got {ratio!r}.")
        shares = {
            "threshold": (1 - share) / (1 + odds),
            "comparisons": (1 - share) * odds / (1 + odds),
            "answers": share,
        }
        return split_epsilon(epsilon, shares)

    def _scale_noise(self, parts: dict[str, Fraction], width: int) -> None:
        """Set epsilon and sensitivity of each kind of noise, and the offset of the comparisons.

        Noise too wide to be drawn is refused here, before anything is spent.
        """
        shift, cutoff = self._shift, self._cutoff
        self._threshold_noise = (parts["threshold"], shift * (cutoff if self._refreshing else 1))
        self._query_noise = (parts["comparisons"], shift * width)
        self._answer_noise = (parts["answers"], shift * cutoff) if "answers" in parts else None
        for each in (self._threshold_noise, self._query_noise, self._answer_noise):
            if each is not None:
                geometric_variance(*each)
        self._offset = 0
        if self._one_sided:
            # The mean of the difference, to a whole step: public, like any change of threshold.
            self._offset = round(_mean(*self._query_noise) - _mean(*self._threshold_noise))

    def query(self, value: Any) -> bool:
        """Answer one query.

        Parameters
        ----------
        value : int
            Its true answer. Beyond +-2**60 it is clamped.

        Returns
        -------
        bool
            Whether it is above the threshold, under noise.

        Raises
        ------
        TypeError
            If ``value`` is not an integer.
        ValueError
            If there is no threshold left for it.
        RuntimeError
            If all positive answers have been given.
        """
        return bool(self.query_many([value])[0])

    def query_many(self, values: ArrayLike) -> BoolArray:
        """Answer queries one after the other, as `query` would, in vectorised steps.

        Parameters
        ----------
        values : array-like of shape (n,)
            True answers, as in `query`.

        Returns
        -------
        ndarray of bool, shape (m,)
            The answers. It ends with the last positive answer available: if m < n, the
            queries from place m on were not answered.

        Raises
        ------
        TypeError, ValueError, RuntimeError
            As in `query`; for the thresholds, if there are fewer than queries. Nothing has been
            answered then.
        """
        array = as_answers(values)
        if array.ndim != 1:
            raise ValueError(
                f"query_many takes a one-dimensional array of answers, got shape {array.shape}."
            )
        if array.size == 0:
            return np.zeros(0, dtype=np.bool_)
        steps = self._integers(array)
        with self._lock:
            self._check()
            if self._thresholds.ndim and self._count + len(steps) > len(self._thresholds):
                raise ValueError(
                    f"{len(self._thresholds)} thresholds were given and {self._count} queries "
                    f"answered, so there are none left for {len(steps)} more. Give one threshold "
                    "for each query, or a single one for all."
                )
            answered: list[BoolArray] = []
            begin = 0
            while begin < len(steps) and self.remaining:
                answered.append(self._answer_chunk(steps[begin : begin + _CHUNK]))
                begin += _CHUNK
        return np.concatenate(answered)

    def _answer_chunk(self, steps: IntArray) -> BoolArray:
        thresholds = self._thresholds
        if thresholds.ndim:
            thresholds = thresholds[self._count : self._count + len(steps)]
        places, gaps = self._compare(steps - thresholds - self._offset)
        last = len(steps)
        if len(places) == self.remaining:
            last = places[-1] + 1
        out = np.zeros(last, dtype=np.bool_)
        out[places] = True
        extra: list[int | None] = [None] * len(places)
        if self._answer_noise is not None and places:
            extra = discrete_laplace(
                steps[places], *self._answer_noise, random_state=self._source
            ).tolist()
        # Comparisons are made at thresholds that may have been raised; gaps are not.
        shown = np.clip(gaps + self._lift(places), -REACH, REACH).tolist()
        self._found += [
            (self._count + place, gap, answer)
            for place, gap, answer in zip(places, shown, extra, strict=True)
        ]
        self._count += last
        return out

    def _compare(self, noisy: IntArray) -> tuple[list[int], IntArray]:
        """Places of the positives among answers less thresholds, and their noisy gaps."""
        if isinstance(self._source, Tape):
            kind = (self._shift, self._one_sided, self._refreshing, self._monotonic)
            rates = (noise_rate(*self._threshold_noise), noise_rate(*self._query_noise))
            call = Call("stream", noisy, rates[1], (self._serial, rates[0], self.remaining, *kind))
            forced: tuple[list[int], IntArray] = self._source.answer(call)
            return forced
        current = noise_source(self._source)
        if isinstance(current, Tape):
            current.refuse(
                "A SparseVector that was made before the recorded run answers in it, and the law "
                "of its answers cannot be seen. Make it in the run."
            )
        noisy += self._draw(len(noisy), self._query_noise)
        if not self._refreshing:
            noisy -= self._noisy
            places = np.flatnonzero(noisy >= 0)[: self.remaining].tolist()
            return places, noisy[places]
        places, begin = [], 0
        while begin < len(noisy) and len(places) < self.remaining:
            above = noisy[begin:] >= self._noisy
            first = int(above.argmax())
            if not above[first]:
                break
            begin += first + 1
            places.append(begin - 1)
            noisy[begin - 1] -= self._noisy
            self._noisy = self._draw_threshold()
        return places, noisy[places]

    def _draw_threshold(self) -> Any:
        # A tape answers whole comparisons, with the noise of the threshold included.
        if isinstance(self._source, Tape):
            return 0
        return self._draw(1, self._threshold_noise)[0]

    def _lift(self, places: list[int]) -> Any:
        """How far the thresholds of the chunk were raised at ``places``."""
        if self._raised.ndim:
            return self._raised[[self._count + place for place in places]]
        return self._raised

    def _draw(self, size: int, noise: tuple[Fraction, Fraction]) -> IntArray:
        if self._one_sided:
            return geometric(size, *noise, random_state=self._source)
        zeros = np.zeros(size, dtype=np.int64)
        return discrete_laplace(zeros, *noise, random_state=self._source)

    def _check(self) -> None:
        if process_mark() != self._process:
            raise RuntimeError(
                f"This sparse vector was made in process {self._process[0]}; process {os.getpid()} "
                "has a copy of its noisy threshold, and both together would give too many "
                "positive answers. Make one in the process that uses it."
            )
        if not self.remaining:
            raise RuntimeError(
                f"All {self._cutoff} positive answers have been given, and with them epsilon="
                f"{float(self.privacy_loss.epsilon):g}. Make a new SparseVector, which costs "
                "its own epsilon, or allow more positives with cutoff=."
            )

    # Answers and thresholds as integers

    @staticmethod
    def _integers(array: NDArray[Any]) -> IntArray:
        remedy = "Round what each record adds to a public step, and measure in steps."
        return clamped(as_integers(array, "answers", remedy)).astype(np.int64)

    @staticmethod
    def _steps(value: Fraction) -> int:
        """A public level, upward: no integer lies between the two."""
        return max(-REACH, min(math.ceil(value), REACH))

    def _as_thresholds(self, threshold: Any, least: int | None) -> IntArray:
        if isinstance(threshold, numbers.Real):
            wanted = np.array(self._steps(as_fraction(threshold, "threshold")))
        else:
            array = np.asarray(threshold)
            numeric = array.dtype.kind in "iuf" and bool(np.isfinite(array).all())
            if array.ndim > 1 or not array.size or not numeric:
                raise ValueError(
                    "threshold must be one finite number, or a one-dimensional array with one for "
                    f"each query, got {threshold!r}."
                )
            whole = np.ceil(array).clip(-REACH, REACH) if array.dtype.kind == "f" else array
            wanted = clamped(whole).astype(np.int64)
        used = wanted if least is None else np.maximum(wanted, least)
        self._raised = used - wanted
        return used

    def _raise(self, count: int) -> int:
        """Threshold at which ``count`` queries of 0 give cutoff / 2 positives.

        Only the noise of the queries counts: it is much wider than that of the threshold.
        """
        rate = 1 / _scale(*self._query_noise)
        # P(nu >= t) is exp(-rate t), for two-sided noise exp(-rate t) / (1 + exp(-rate)).
        usual = math.log(2 * count / self._cutoff)
        if not self._one_sided:
            usual -= math.log1p(math.exp(-rate))
        mean = _mean(*self._query_noise) if self._one_sided else 0.0
        return math.ceil(max(usual, 0.0) / rate - mean)

    # What has been released

    @property
    def remaining(self) -> int:
        """Positive answers left."""
        return self._cutoff - len(self._found)

    @property
    def n_queries(self) -> int:
        """Queries answered so far."""
        return self._count

    @property
    def positives(self) -> IntArray:
        """Places in the stream of all positive answers so far."""
        return np.array([place for place, _, _ in self._found], dtype=np.int64)

    @property
    def gaps(self) -> IntArray:
        """Noisy distances of the positive queries above their thresholds."""
        return np.array([gap for _, gap, _ in self._found], dtype=np.int64)

    @property
    def answers(self) -> IntArray:
        """Noisy answers of the positive queries; empty without ``answer_share``."""
        paid = [answer for _, _, answer in self._found if answer is not None]
        return np.array(paid, dtype=np.int64)

    @property
    def comparison_std(self) -> float:
        """Standard deviation of the noise between a query and its threshold."""
        variance = geometric_variance if self._one_sided else discrete_laplace_variance
        total = variance(*self._query_noise) + variance(*self._threshold_noise)
        return math.sqrt(total)

    @property
    def query_scale(self) -> float:
        """Scale of the noise of a query."""
        return _scale(*self._query_noise)

    def negative_below(self, level: float = 0.95) -> int:
        """What the true answers of all negative queries are below, with probability ``level``.

        Parameters
        ----------
        level : float, default=0.95
            For all of them together: they share the noise of the threshold.

        Returns
        -------
        int

        Raises
        ------
        ValueError
            If there are several thresholds or noises of it, or noise is two-sided.
        """
        if not self._one_sided or self._refreshing or self._thresholds.ndim:
            raise ValueError(
                "negative_below needs one threshold, variant='standard' and noise='one-sided'."
            )
        # Negative: value + nu < T + offset + rho, and nu is at least 0. P(rho >= t) is
        # exp(-rate t).
        rate = 1 / _scale(*self._threshold_noise)
        most = math.ceil(-math.log1p(-as_level(level)) / rate)
        return int(self._thresholds) + self._offset + most

    def __repr__(self) -> str:
        seeded = ", seeded: no guarantee" if self.privacy_loss.seeded else ""
        return (
            f"<SparseVector: epsilon={float(self.privacy_loss.epsilon):g}, {self._count} queries "
            f"answered, {self.remaining} of {self._cutoff} positives left{seeded}>"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A SparseVector cannot be copied or pickled: copies share its noisy threshold and "
            "would together give more positive answers than epsilon pays for. Keep one object, "
            "and publish its answers, positives and gaps."
        )


def sparse_vector_top_k(
    values: ArrayLike,
    k: int,
    epsilon: Any,
    threshold: Any,
    sensitivity: Any = 1,
    monotonic: bool = False,
    *,
    raise_by: Any = 0,
    max_passes: int = 1000,
    random_state: Any = None,
    **options: Any,
) -> IntArray:
    """Select up to k large values by a sparse vector that goes over the list repeatedly.

    Parameters
    ----------
    values : array-like of shape (n,)
        True answers of all queries, as `SparseVector.query_many` takes them. They are tested in
        this order, so shuffle a sorted list first; the shuffle may be public.
    k : int
        Number of positives to look for.
    epsilon : number or Fraction
        Privacy parameter of the whole selection.
    threshold : number
        Public threshold.
    sensitivity, monotonic
        As in `SparseVector`.
    raise_by : number, default=0
        Raises the threshold by this many scales of the noise of a query (``query_scale`` of a
        `SparseVector`), which the dissertation calls 1D to 5D. A high threshold gives few false
        positives, and what is missed now may be found in a later pass.
    max_passes : int, default=1000
        Public limit; fewer than k are returned if it is reached.
    random_state : None, int or NoiseSource, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.
    **options
        Further parameters of `SparseVector`: ``ratio``, ``variant``, ``noise``,
        ``ledger``.

    Returns
    -------
    ndarray of int64, shape (at most k,)
        Positions in ``values``, in the order in which they were found.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of the wrong type or out of range.
    BudgetExceededError
        If a ledger is given and cannot pay.

    Notes
    -----
    If all queries are known in advance, `top_k` is more accurate at the same epsilon; this function
    is for comparison.

    References
    ----------
    Dong Su, "Differentially private data publishing for data analysis", Purdue University, 2016,
    section 5.4.

    Examples
    --------
    >>> from skdp.mechanisms import sparse_vector_top_k
    >>> chosen = sparse_vector_top_k([5, 90_000, 7, 60_000], k=2, epsilon=1.0, threshold=30_000)
    >>> sorted(chosen.tolist())
    [1, 3]
    """
    # Privacy. One run of a sparse vector with cutoff k on a longer, adaptively chosen stream: the
    # queries that earlier answers left over. Negatives are free, so passes are too.
    passes = as_integer(
        max_passes, "max_passes", 1, meaning="it limits how often the list is gone over."
    )
    if not isinstance(threshold, numbers.Real):
        raise TypeError(f"threshold must be one number here, got {threshold!r}.")
    level = as_fraction(threshold, "threshold")
    lift = as_fraction(raise_by, "raise_by")
    for name in ("expected_queries", "answer_share"):
        if name in options:
            raise TypeError(f"sparse_vector_top_k takes no {name}: use SparseVector.")
    array = as_answers(values)
    if array.ndim != 1:
        raise ValueError(f"values must be one-dimensional, got shape {array.shape}.")
    # Of the wrong type: refused before anything is spent.
    SparseVector._integers(array[:1])
    vector = SparseVector(
        epsilon, level, k, sensitivity, monotonic, random_state=random_state, **options
    )
    # The scale is public, and nothing was compared with the lower threshold.
    vector._thresholds = np.array(vector._steps(level + lift * Fraction(str(vector.query_scale))))
    left = np.arange(array.size)
    found: list[IntArray] = []
    for _ in range(passes):
        if not (vector.remaining and left.size):
            break
        above = np.flatnonzero(vector.query_many(array[left]))
        found.append(left[above])
        left = np.delete(left, above)
    return np.concatenate([np.zeros(0, dtype=np.int64), *found])


def _scale(epsilon: Fraction, sensitivity: Fraction) -> float:
    return float(sensitivity / dyadic_floor(epsilon))


def _mean(epsilon: Fraction, sensitivity: Fraction) -> float:
    """Mean of geometric noise."""
    rate = 1 / _scale(epsilon, sensitivity)
    return -math.exp(-rate) / math.expm1(-rate)


# ------------------------------------------------------------------------------------------------
# How accurate selections are: bounds before they are made, and errors where the truth is known.
#
# With the names of Su's dissertation, section 5.4: alpha_SVT is `sparse_vector_alpha`, alpha_EM
# `exponential_alpha`, FNR `false_negative_rate` and SER `score_error_rate`.


def sparse_vector_alpha(n_queries: int, epsilon: Any, beta: float = 0.05) -> float:
    """Distance from the threshold that a sparse vector decides rightly, by its published bound.

    Parameters
    ----------
    n_queries : int
        Length of the stream, of counts of which only the last is near or above the threshold.
    epsilon : number or Fraction
        For one positive answer.
    beta : float, default=0.05
        Probability of an error.

    Returns
    -------
    float
        8 (log n + log(2 / beta)) / epsilon: all answers below the threshold less this are negative,
        and those above it and this are positive, with probability 1 - beta.

    Examples
    --------
    >>> from skdp.mechanisms import exponential_alpha, sparse_vector_alpha
    >>> round(sparse_vector_alpha(1000, 1.0)), round(exponential_alpha(1000, 1.0))
    (85, 10)
    """
    n, share = as_integer(n_queries, "n_queries", 1), _as_beta(beta)
    return 8 * (math.log(n) + math.log(2 / share)) / float(as_epsilon(epsilon))


def exponential_alpha(n_queries: int, epsilon: Any, beta: float = 0.05) -> float:
    """Half the lead at which the exponential mechanism selects the right one of many counts.

    Parameters
    ----------
    n_queries : int
        At least 2.
    epsilon : number or Fraction
    beta : float, default=0.05
        Probability of an error.

    Returns
    -------
    float
        (log(n - 1) + log((1 - beta) / beta)) / epsilon, for counts that move either way: the one
        that is larger than all others by twice this is selected with probability 1 - beta.
    """
    n, share = as_integer(n_queries, "n_queries", 2), _as_beta(beta)
    return (math.log(n - 1) + math.log((1 - share) / share)) / float(as_epsilon(epsilon))


def false_negative_rate(values: ArrayLike, selected: ArrayLike, k: int) -> float:
    """Share of the k largest values that a selection misses: exact, for public values only.

    Parameters
    ----------
    values : array-like of shape (n,)
        True values. Among equal ones it does not matter which are selected.
    selected : array-like of int, shape (at most k,)
        Positions that were selected, as of `top_k` or `sparse_vector_top_k`.
    k : int

    Returns
    -------
    float

    Examples
    --------
    >>> from skdp.mechanisms import false_negative_rate, score_error_rate
    >>> values = [50, 40, 30, 20]
    >>> false_negative_rate(values, [0, 2], k=2), round(score_error_rate(values, [0, 2], k=2), 2)
    (0.5, 0.11)
    """
    found, best = _selected(values, selected, k)
    return 1 - min(int((found >= best.min()).sum()), len(best)) / len(best)


def score_error_rate(values: ArrayLike, selected: ArrayLike, k: int) -> float:
    """By how much less selected values are on average than the k largest: for public values only.

    Parameters
    ----------
    values, selected, k
        As for `false_negative_rate`.

    Returns
    -------
    float
        1 less the mean of the selected values divided by that of the k largest; 1 where none is
        selected.
    """
    found, best = _selected(values, selected, k)
    return 1 - float(found.mean() / best.mean()) if found.size else 1.0


def _selected(values: ArrayLike, selected: ArrayLike, k: int) -> tuple[FloatArray, FloatArray]:
    """The selected values, and the k largest."""
    given, places = np.asarray(values, dtype=np.float64), np.asarray(selected)
    n = as_integer(k, "k", 1)
    if given.ndim != 1 or n > given.size or len(np.unique(places)) != places.size:
        raise ValueError(
            f"k={k} of {given.size} values were to be selected, each once: got {places.size} "
            "positions. Give one-dimensional values, and each position once."
        )
    chosen: IntArray = places.astype(np.int64).ravel()
    return given[chosen], np.sort(given)[-n:]


def _as_beta(beta: Any) -> float:
    return float(as_between(beta, "beta", 1e-300, 1 - 1e-9, meaning="it is a probability."))


# ------------------------------------------------------------------------------------------------
# `sparse_counts`: noisy counts of all cells of a huge domain; the large ones are released.
#
# Noise on every cell, a threshold, and no list of the cells: the empty cells that pass are drawn
# directly.


# --- the false cells of a huge table: how many, and which, reach a threshold by noise alone
#
# How many is a binomial number, drawn exactly like all noise (see `_inversion`): a uniform number
# is compared with the distribution function, which is known as intervals of integers, and both get
# more bits until the comparison is certain. No floating-point number is used.

# Weights are multiples of 2**-(bits + 96), and followed outward until they are below this many: a
# weight that is always rounded up does not fall to zero.
_GUARD = 96
_NEGLIGIBLE = 2**32


# Bounds of the ratio of two neighbouring weights, as quotients of integers.
_Step = tuple[tuple[int, int], tuple[int, int]]


class _Distribution(NamedTuple):
    """Bounds of a distribution function, scaled to integers.

    Attributes
    ----------
    first : int
        The smallest number that has bounds.
    begins, ends : list of int
        Upper bounds of P(number < first + i), and lower bounds of P(number <= first + i).
    """

    first: int
    begins: list[int]
    ends: list[int]


def draw_false_count(n_cells: int, rate: Fraction, threshold: int, source: NoiseSource) -> int:
    """How many of ``n_cells`` independent noises reach the threshold: an exact binomial number.

    Parameters
    ----------
    n_cells : int
        Any positive number, also beyond 64 bits.
    rate : Fraction
        Rate of the discrete Laplace noise.
    threshold : int
        At least 1.
    source : NoiseSource
    """
    drawn = bits = 0
    while True:
        drawn = drawn << 64 | int(source.words(1)[0])
        bits += 64
        # The uniform number lies between drawn and drawn + 1, in units of 2**-bits.
        known = _distribution(n_cells, rate, threshold, bits)
        place = bisect_right(known.ends, drawn)
        if place < len(known.ends) and known.begins[place] <= drawn:
            return known.first + place


def draw_cells(shape: Sequence[int], count: int, source: NoiseSource) -> CodeArray:
    """``count`` different cells, uniform among all sets of that many, in lexicographic order.

    Cells are drawn independently, code by code, until enough of them are different.
    """
    cells = np.empty((0, len(shape)), dtype=np.int32)
    while len(cells) < count:
        fresh = np.empty((count - len(cells), len(shape)), dtype=np.int32)
        for axis, size in enumerate(shape):
            fresh[:, axis] = source.below(size, len(fresh))
        cells = np.concatenate([cells, fresh])
        order, starts = _distinct_rows(cells)
        cells = cells[order[starts]]
    return cells


def _distinct_rows(rows: NDArray[np.integer]) -> tuple[IntArray, IntArray]:
    """Lexicographic order of rows, equal ones in their present order, and where each run begins."""
    order = np.lexsort(rows.T[::-1])
    if not len(rows):
        return order, np.zeros(0, dtype=np.int64)
    return order, run_starts(rows[order])


@lru_cache(maxsize=8)
def _distribution(n_cells: int, rate: Fraction, threshold: int, bits: int) -> _Distribution:
    """Bounds of the binomial distribution function, scaled by 2**bits, where its mass lies.

    Weights are multiples of the probabilities: 1 near the mean, and from there outward by
    P(k + 1) / P(k) = (n - k) / (k + 1) * odds. Divided by their sum they are the probabilities.
    """
    # Rounding errors add up to at most the square of the number of steps, and the weights left out
    # to about 2**32 times that number: far less than 2**96 units.
    unit = bits + _GUARD
    # Bounds of p / (1 - p), p = r**threshold / (1 + r), scaled by 2**precision; the precision.
    # Relative to 1 / n_cells the bounds are as close as ``unit`` bits allow: odds far below that do
    # not matter, however small they are.
    precision = unit + n_cells.bit_length()
    one = 1 << precision
    r_low, r_high = exp_interval(rate.numerator, rate.denominator, precision)
    x_low, x_high = exp_interval(rate.numerator * threshold, rate.denominator, precision)
    low = (x_low << precision) // (one + r_high - x_low)
    high = -((-x_high << precision) // (one + r_low - x_high))
    start = (n_cells + 1) * low // (low + (1 << precision))
    down, below = _weights(_downward(start, n_cells, low, high, precision), unit)
    up, above = _weights(_upward(start, n_cells, low, high, precision), unit)
    middle = [(1 << unit, 1 << unit)]
    lows, highs = zip(*(down[::-1] + middle + up), strict=True)
    sums, tops = list(accumulate(lows)), list(accumulate(highs, initial=below))
    total_low, total_high = sums[-1], tops[-1] + above
    ends = [(each << bits) // total_high for each in sums]
    if not above:
        ends[-1] = 1 << bits
    begins = [-(-(each << bits) // total_low) for each in tops[:-1]]
    return _Distribution(start - len(down), begins, ends)


def _upward(start: int, n_cells: int, low: int, high: int, precision: int) -> Iterator[_Step]:
    for k in range(start, n_cells):
        part = (k + 1) << precision
        yield ((n_cells - k) * low, part), ((n_cells - k) * high, part)


def _downward(start: int, n_cells: int, low: int, high: int, precision: int) -> Iterator[_Step]:
    for k in range(start, 0, -1):
        part, left = k << precision, n_cells - k + 1
        yield (part, left * high), (part, left * low)


def _weights(steps: Iterator[_Step], unit: int) -> tuple[list[tuple[int, int]], int]:
    """Bounds of the weights on one side of the middle, and of the sum of those that are left out.

    Ratios fall from the middle outward, so what is left out is less than a geometric series.
    """
    low = high = 1 << unit
    found: list[tuple[int, int]] = []
    for (a, b), (c, d) in steps:
        if high < _NEGLIGIBLE and c < d:
            return found, high * c // (d - c) + 1
        low, high = low * a // b, -(-high * c // d)
        found.append((low, high))
    return found, 0


# --- the mechanism


def sparse_counts(
    codes: ArrayLike,
    counts: ArrayLike,
    shape: Sequence[int],
    epsilon: Any,
    threshold: int,
    *,
    max_false: Any = 200_000,
    random_state: Any = None,
) -> tuple[CodeArray, IntArray]:
    """Release the noisy counts of a huge table that reach a public threshold.

    The result has exactly the distribution of this: add discrete Laplace noise to the count of
    every cell of the domain, the empty ones included, and keep the cells whose noisy count is at
    least ``threshold``. Time and memory depend on the rows and on the number of released cells,
    not on the size of the domain, which may have 1e30 cells.

    Parameters
    ----------
    codes : array-like of int, shape (n_rows, n_columns)
        Cells that hold records. Rows with a code outside ``shape`` are left out; counts of equal
        rows are added up.
    counts : array-like of int, shape (n_rows,)
        How many records each row stands for. Counts are clamped to 0 and 2**60.
    shape : sequence of int
        Public number of codes of each column, up to 2**31.
    epsilon : number or Fraction
        Privacy parameter of the whole table. The noise is drawn at its dyadic floor.
    threshold : int
        Public threshold, from 1 to 2**60: cells with a noisy count of at least this are released.
        `least_threshold` finds one that keeps false cells rare.
    max_false : number, default=200_000
        Largest expected number of empty cells that noise alone lifts to the threshold, as if all
        cells of the domain were empty. Raise it only if that many rows fit into memory.
    random_state : None, int or NoiseSource, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    codes : ndarray of int32, shape (n_released, n_columns)
        Released cells in lexicographic order.
    noisy : ndarray of int64, shape (n_released,)
        Their noisy counts, each between ``threshold`` and 2**60.

    Raises
    ------
    TypeError
        If codes or counts are not integers, or a parameter has the wrong type.
    ValueError
        If ``codes``, ``counts`` and ``shape`` do not fit together, if a parameter is out of range,
        or if more than ``max_false`` false cells are expected. The message then gives the least
        threshold that is accepted. All this depends on public sizes only.

    Notes
    -----
    With r = exp(-epsilon), an empty cell reaches the threshold t with probability
    p = r**t / (1 + r), and then has the noisy count t + G, where G is geometric. Among all n cells
    of the domain, Binomial(n, p) noises reach the threshold, in a uniformly random set of cells.
    Such a set is drawn without looking at the records; its members that hold records are
    dropped, since those cells get noise of their own.

    A cell that is missing from the release has an unknown, not a zero count. Its noisy count was
    below the threshold.

    References
    ----------
    G. Cormode, C. Procopiuc, D. Srivastava, T. T. L. Tran, "Differentially private summaries for
    sparse data", ICDT 2012.

    Examples
    --------
    >>> from skdp.mechanisms import least_threshold, sparse_counts
    >>> shape = (100,) * 15
    >>> threshold = least_threshold(100**15, epsilon=1.0, expected_false=1e-9)
    >>> threshold
    90
    >>> cells, noisy = sparse_counts([[7] * 15, [8] * 15], [500, 1], shape, 1.0, threshold)
    >>> cells[:, 0].tolist()
    [7]
    """
    # Privacy. Released: the cells with count + noise >= threshold, and these noisy counts, in an
    # order that the cells determine: a function of the noisy counts of all cells of the domain.
    # One record changes the count of one cell by 1, so sensitivity is 1 and the cost eps_d =
    # dyadic_floor(epsilon). False cells are drawn for the whole domain and dropped where records
    # are, which leaves independent noise on the empty cells however many those are. Clamping the
    # counts moves no two of them further apart; no error depends on a row.
    rate = noise_rate(epsilon, 1)
    level = as_integer(threshold, "threshold", 1, meaning="cells below it are not released.")
    if level > REACH:
        raise ValueError(f"threshold must be at most 2**60, the largest count, got {threshold!r}.")
    sizes = tuple(
        as_integer(size, "shape", 1, meaning="every column has a code.") for size in shape
    )
    if not sizes or max(sizes) > 2**31:
        raise ValueError(
            f"shape must give at least one column and at most 2**31 codes for each, got {shape!r}."
        )
    n_cells = math.prod(sizes)
    least = least_threshold(n_cells, epsilon, max_false)
    if level < least:
        raise ValueError(
            f"More than max_false={max_false} empty cells are expected to reach threshold="
            f"{threshold} by noise alone, because the domain is large for epsilon="
            f"{float(epsilon):g}. Use a threshold of at least {least}, a larger epsilon, or raise "
            "max_false if that many rows fit into memory."
        )
    # Codes and counts as integer arrays that fit together.
    n_columns = len(sizes)
    rows = as_integers(codes, "codes", "Encode values as positions in their column's domain.")
    weights = as_integers(counts, "counts", "Count whole records.")
    if rows.size == 0 and weights.size == 0:
        rows = rows.reshape(0, n_columns)
    if rows.ndim != 2 or rows.shape[1] != n_columns or weights.shape != rows.shape[:1]:
        raise ValueError(
            f"codes must have shape (n_rows, {n_columns}), as many columns as shape, and counts "
            f"shape (n_rows,); got {rows.shape} and {weights.shape}."
        )
    source = noise_source(random_state)
    occupied, exact = _joined(rows, weights, sizes)
    if isinstance(source, Tape):
        table = np.column_stack([occupied, exact])
        released: tuple[CodeArray, IntArray] = source.answer(
            Call("sparse_counts", table, rate, (sizes, level))
        )
        return released
    false = draw_cells(sizes, draw_false_count(n_cells, rate, level, source), source)
    excess = draw_noise(epsilon, 1, False, source, len(false))
    noisy = discrete_laplace(exact, epsilon, random_state=source)
    return _released(
        np.concatenate([occupied, false]),
        np.concatenate([noisy, np.minimum(excess, REACH - level) + level]),
        level,
    )


def least_threshold(n_cells: int, epsilon: Any, expected_false: Any) -> int:
    """Smallest threshold at which `sparse_counts` expects few false cells.

    Parameters
    ----------
    n_cells : int
        Public number of cells of the domain, of any size.
    epsilon : number or Fraction
        Privacy parameter of `sparse_counts`; its dyadic floor is used.
    expected_false : number
        Largest expected number of cells that noise alone lifts to the threshold, if all cells are
        empty. Below 1 it is about the probability that there is any such cell.

    Returns
    -------
    int
        Smallest t >= 1 with ``n_cells`` P(noise >= t) <= ``expected_false``, exactly; about
        ln(n_cells / expected_false) / epsilon.

    Raises
    ------
    TypeError
        If a parameter has the wrong type.
    ValueError
        If a parameter is not positive, or the noise does not fit into 64 bits.

    Examples
    --------
    >>> from skdp.mechanisms import least_threshold
    >>> least_threshold(10**20, epsilon=1.0, expected_false=10)
    44
    """
    number = as_integer(n_cells, "n_cells", 1)
    expected = as_fraction(expected_false, "expected_false (max_false)")
    if expected <= 0:
        raise ValueError(
            f"expected_false (max_false) must be positive, got {expected_false!r}: no threshold "
            "makes it zero."
        )
    return least_reach(expected / number, noise_rate(epsilon, 1))


def _joined(
    rows: NDArray[np.integer], weights: NDArray[np.integer], shape: tuple[int, ...]
) -> tuple[CodeArray, IntArray]:
    """Distinct rows within the domain in lexicographic order, and their counts."""
    # A cell gets noise once, however its records were divided among the rows.
    inside = ((rows >= 0) & (rows < np.array(shape))).all(axis=1)
    cells = rows[inside].astype(np.int32)
    order, starts = _distinct_rows(cells)
    if not starts.size:
        return cells, np.zeros(0, dtype=np.int64)
    each = np.maximum(clamped(weights[inside][order]).astype(np.int64), 0)
    sums = np.add.reduceat(each, starts)
    # Sums beyond 64 bits have wrapped around.
    huge = np.add.reduceat(each.astype(np.float64), starts) > 2.0**61
    return cells[order[starts]], np.where(huge, REACH, np.minimum(sums, REACH))


def _released(cells: CodeArray, noisy: IntArray, threshold: int) -> tuple[CodeArray, IntArray]:
    """The first of equal cells, hence not the false one, if it reaches the threshold; sorted."""
    order, starts = _distinct_rows(cells)
    first = order[starts]
    first = first[noisy[first] >= threshold]
    return cells[first], noisy[first]
