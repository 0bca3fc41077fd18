"""Questions one at a time: answered from what is known where that is good enough, else paid for."""

from __future__ import annotations

import math
import threading
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from ._random import noise_source
from ._validation import CodeArray, as_between, as_epsilon, as_fraction, as_integer, as_level
from .accounting import PrivacyLedger, PrivacyLoss, charge
from .base import AnswersStatistics, match_rows
from .domain.query import Query
from .mechanisms import (
    SparseVector,
    discrete_laplace,
    discrete_laplace_quantile,
    discrete_laplace_variance,
)
from .release import QueryResult, Synopsis, parse
from .release.model import product_of_weights
from .release.statistics import Confidence, possible_ends

__all__ = ["Curator"]

# Weights of records are whole multiples of one part in this many, so that counts are integers.
_STEPS = 2**10
# Answers of a release beyond this many records are clamped, far from where integers overflow.
_MOST_RECORDS = 2**40


class Curator:
    """Answers counting queries as they come, and pays only where a release is too far off.

    For each query the curator first works out what is known: the answer of a release, corrected by
    the answers that were paid for since. A sparse vector compares it with the records. Where it is
    within the threshold, it is the answer, at no further cost. Otherwise the count itself is
    released with fresh noise, and improves what is known about later queries.

    Parameters
    ----------
    rows : array-like or frame of shape (n_rows, n_features)
        The records, in memory. Columns that the release does not have are not read.
    release : Synopsis, or fitted synthesizer or DataCube
        What is known at first: a release that was paid for, or made of public rows.
    epsilon : number or Fraction
        Privacy budget of everything that the curator will ever answer, spent when it is made.
    threshold : number
        Error of a known answer, in records, beyond which it is worth paying. Public.
    max_paid : int
        Number of answers that epsilon pays for. After them the curator refuses.
    answer_share : number, default=0.5
        Part of epsilon for the answers that are paid for; the rest pays for the comparisons.
    expected_queries : int, default=None
        Public guess of the number of queries; see `skdp.mechanisms.SparseVector`. It raises a
        threshold at which noise alone would use up the paid answers.
    level : float, default=0.95
        Probability with which intervals hold.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read.
    random_state : None, int or NoiseSource, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Attributes
    ----------
    privacy_loss : PrivacyLoss
        Parts "threshold" and "comparisons" of the sparse vector, and "answers".
    remaining : int
        Paid answers left.
    history : pandas.DataFrame
        All answers so far: ``query``, ``value``, ``std`` and whether it was ``paid``.

    Raises
    ------
    DomainError, TypeError, ValueError
        If the rows do not have the columns of the release, or a parameter is out of range. Nothing
        is spent.
    BudgetExceededError
        If the ledger cannot pay; no value has been read.

    Notes
    -----
    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: the
    release and all parameters. *Released*: which answers are paid for, and these. *Cost*: all of
    epsilon, when the curator is made.

    Let D and D' be neighbours, and fix everything that is released: whether each answer is paid
    for, and the paid answers. The analyst may choose each query by what was released before.

    1. A query's known answer h follows from the release, the earlier paid answers and the query.
       All of these are fixed, so h is the same number on D and D'.
    2. A record counts with its weight in the query, between 0 and 1 and rounded to a multiple of
       1/1024 by itself, so the count q changes by at most 1, and ``|q - h|`` by at most 1, up or
       down: the differences are not monotonic, though counts are.
    3. The sparse vector tests ``|q - h| + nu >= T + rho``. The noise nu stands *outside* the
       absolute value. Inside it the left side would never be negative, so each positive answer
       would reveal that rho >= -T, a fact about the noise that makes negative answers free. T, the
       sensitivity 1 and the number c of positive answers are fixed beforehand, so that all signs
       together cost the parts "threshold" and "comparisons", with noise for 2c.
    4. A paid answer is q with fresh discrete Laplace noise, independent of rho and every nu, at a
       c-th of the part "answers". Neither the noisy difference nor its gap is released.
    5. Given what was released before, the noises of 3 and 4 are independent. The probability of all
       that is fixed is therefore a product: that of the signs on a fixed list of queries, which is
       an average over rho, times those of the paid answers. The factors change by at most
       exp(threshold + comparisons) and exp(answers / c) each, c of them: exp(epsilon) in all.
    6. After c paid answers nothing is answered. Copies, which would share rho, are refused.

    The curator holds the records: it stays with the data owner, and only answers go out. It cannot
    be copied or pickled.

    A known answer is off by no more than its interval says, for all known answers together, by the
    law of rho alone: if the comparison is negative, ``|q - h| < T + rho``.

    References
    ----------
    Dong Su, "Differentially private data publishing for data analysis", Purdue University, 2016,
    sections 2.5, 5.1 and 5.5.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp import Curator, MarginalSynthesizer
    >>> people = pd.DataFrame({"age": [30] * 4_000 + [70] * 4_000, "ill": ["no", "yes"] * 4_000})
    >>> domain = {"age": (18, 90), "ill": ["no", "yes"]}
    >>> release = MarginalSynthesizer(epsilon=0.5, domain=domain).fit(people)
    >>> curator = Curator(people, release, epsilon=1.0, threshold=300, max_paid=5)
    >>> answer = curator.ask("age >= 60 and ill == 'yes'")
    >>> bool(abs(answer.value - 2_000) < 1_000), curator.remaining
    (True, 5)
    """

    def __init__(
        self,
        rows: Any,
        release: Any,
        *,
        epsilon: Any,
        threshold: Any,
        max_paid: int,
        answer_share: Any = 0.5,
        expected_queries: int | None = None,
        level: float = 0.95,
        ledger: PrivacyLedger | None = None,
        random_state: Any = None,
    ) -> None:
        known = release._asked() if isinstance(release, AnswersStatistics) else release
        if not isinstance(known, Synopsis):
            raise TypeError(
                "release must be a Synopsis, or a fitted synthesizer or DataCube, got "
                f"{type(release).__name__}."
            )
        if known.privacy_loss is not None and known.privacy_loss.max_rows_per_id is not None:
            raise ValueError(
                "The release protects persons, but a Curator protects single records. Make "
                "one row of each person before the release."
            )
        exact, self._level = as_epsilon(epsilon), as_level(level)
        share = as_between(answer_share, "answer_share", Fraction(1, 1000), Fraction(999, 1000))
        max_paid = as_integer(max_paid, "max_paid", 1)
        limit = as_fraction(threshold, "threshold")
        if limit <= 0:
            raise ValueError(
                f"threshold must be positive, got {threshold!r}: every answer would be paid for. "
                "Give the error, in records, up to which a known answer will do."
            )
        matched, domain = match_rows(rows, None, known.counted, None, structure=True, spare=True)
        self._source = noise_source(random_state)
        self._signs = SparseVector(
            exact * (1 - share),
            limit * _STEPS,
            max_paid,
            sensitivity=_STEPS,
            expected_queries=expected_queries,
            random_state=self._source,
        )
        parts = {**self._signs.privacy_loss.parts, "answers": exact * share}
        # One record changes each of the paid answers, so each has an equal part.
        self._each = parts["answers"] / max_paid
        self._variance = discrete_laplace_variance(self._each, _STEPS) / _STEPS**2
        seeded, assumes = self._source.seeded, matched.assumes
        self.privacy_loss = PrivacyLoss(exact, parts, seeded=seeded, assumes=assumes)
        charge(ledger, "Curator", self.privacy_loss)
        self._release = known
        self._paid: list[tuple[Query, float]] = []
        self._answers: list[tuple[Any, QueryResult, bool]] = []
        self._lock = threading.Lock()
        codes = domain.encode_columns(matched)
        self._codes: CodeArray = codes[(codes >= 0).all(axis=1)]

    def ask(self, query: Any) -> QueryResult:
        """Answer a counting query: with what is known, or at the price of one paid answer.

        Parameters
        ----------
        query : str, dict or None
            A condition as for :meth:`skdp.Synopsis.count`, one at a time. A bin that it cuts counts
            in proportion, for the records too.

        Returns
        -------
        QueryResult
            With an interval for the count that holds with probability ``level``.

        Raises
        ------
        ValueError
            If the query does not fit the domain. Nothing is used up.
        RuntimeError
            If all paid answers have been given.
        """
        with self._lock:
            if not self.remaining:
                raise RuntimeError(
                    f"All {len(self._paid)} answers that epsilon="
                    f"{float(self.privacy_loss.epsilon):g} pays for have been given. Ask the "
                    "release itself, or make a new Curator, which costs its own epsilon."
                )
            weights = parse(query, self._release.counted)
            # Privacy. `value` and `std` follow from the release, the query and paid answers. The
            # count and its distance from `value` are local; only the sign of the noisy comparison
            # and, after a positive one, the count with fresh noise leave. See the class.
            value, std = self._known(weights)
            count = self._count(weights)
            steps = round(min(max(value, -_MOST_RECORDS), _MOST_RECORDS) * _STEPS)
            paid = self._signs.query(abs(count - steps))
            if paid:
                noisy = discrete_laplace(count, self._each, _STEPS, random_state=self._source)
                value, std = int(noisy) / _STEPS, math.sqrt(self._variance)
                self._paid.append((weights, value))
                half = discrete_laplace_quantile(self._level, self._each, _STEPS) / _STEPS
                law = "by the exact law of the noise; paid for."
            else:
                half = self._signs.negative_below(self._level) / _STEPS
                law = "for all known answers together, by the law of the threshold's noise."
            cut = " Bins covered in part count in proportion." * weights.cuts
            guarantee = f"at least {100 * self._level:g}%, {law}{cut}{self._release.about}"
            level = Confidence(self._level)
            low, high = possible_ends(np.float64(value), half, half, level)
            answer = QueryResult(value, std, float(low), float(high), guarantee)
            self._answers.append((query, answer, paid))
            return answer

    def _count(self, query: Query) -> int:
        """Exact count in steps: private. Each record's weight is rounded by itself."""
        every = np.ones(len(self._codes))
        weights = sum(product_of_weights(self._codes, every, each) for each in query.products)
        return int(np.rint(np.clip(weights, 0.0, 1.0) * _STEPS).astype(np.int64).sum())

    def _known(self, query: Query) -> tuple[float, float]:
        """The answer of release and paid answers together, by least squares, and its std."""
        model, queries = self._release.model, [*(each for each, _ in self._paid), query]
        *expected, value = model.answer(queries).tolist()
        try:
            covariance = model.covariance(queries)
        except ValueError:
            # A network has no law of its errors: a paid answer says nothing of other queries.
            same = [answer for each, answer in self._paid if _same(each, query)]
            return (same[-1], math.sqrt(self._variance)) if same else (value, math.inf)
        variance = float(covariance[-1, -1])
        if self._paid and np.isfinite(covariance).all():
            errors = np.array([answer for _, answer in self._paid]) - expected
            measured = covariance[:-1, :-1] + self._variance * np.eye(len(errors))
            gain = np.linalg.lstsq(measured, covariance[:-1, -1], rcond=None)[0]
            value += float(gain @ errors)
            variance -= float(gain @ covariance[:-1, -1])
        return value, math.sqrt(max(variance, 0.0))

    @property
    def remaining(self) -> int:
        """Paid answers left."""
        return self._signs.remaining

    @property
    def history(self) -> pd.DataFrame:
        """All answers so far."""
        rows = [(query, each.value, each.std, paid) for query, each, paid in self._answers]
        return pd.DataFrame(rows, columns=["query", "value", "std", "paid"])

    def __repr__(self) -> str:
        seeded = ", seeded: no guarantee" if self.privacy_loss.seeded else ""
        return (
            f"<Curator: epsilon={float(self.privacy_loss.epsilon):g}, {len(self._answers)} "
            f"answers, {len(self._paid)} of them paid for, {self.remaining} left{seeded}>"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A Curator cannot be copied or pickled: it holds the records, and copies would share "
            "the noise of its threshold. Keep one object, and publish its answers."
        )


def _same(first: Query, second: Query) -> bool:
    """Whether two queries have the same weights."""
    return len(first.products) == len(second.products) and all(
        one.keys() == other.keys() and all(np.array_equal(one[axis], other[axis]) for axis in one)
        for one, other in zip(first.products, second.products, strict=True)
    )
