"""Sparse vector: find the queries above a threshold, and pay only for those.

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
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._random import Call, Tape, noise_source, process_mark
from .._validation import (
    BoolArray,
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
    geometric,
    geometric_variance,
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
