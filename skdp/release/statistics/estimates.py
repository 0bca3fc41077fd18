"""Estimates: linear answers and ratios of them, with intervals that stay within what is possible.

The interval of a ratio A / B is the set of r for which A - r B could be zero (Fieller). The error
of A - r B is at most that of A - r' B at the estimate r', plus |r - r'| times that of B. So where
these two reach e and b, the interval reaches e / (B - b); where b is B or more, nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._types import FloatArray, IntArray
from ..models.intervals import IN_PROPORTION, Errors
from ..models.model import Weights
from ..result import QueryResult
from .confidence import Confidence

__all__ = ["Estimates", "joined", "linear", "ratios", "telling_cuts"]


_NOTHING = (
    " The noise in the number of records is as large as the number itself: the release says "
    "nothing beyond what was declared."
)


class Estimates(NamedTuple):
    """Estimates with their errors: an array of each, and what the intervals cover."""

    value: FloatArray
    std: FloatArray
    sampling_std: FloatArray
    lower: FloatArray
    upper: FloatArray
    guarantee: str

    @property
    def std_error(self) -> FloatArray:
        """Standard deviation of noise and sampling together."""
        return np.hypot(self.std, self.sampling_std)

    def at(self, places: IntArray) -> Estimates:
        """Some of the estimates, in another order."""
        return Estimates(
            self.value[places],
            self.std[places],
            self.sampling_std[places],
            self.lower[places],
            self.upper[places],
            self.guarantee,
        )

    def columns(self, shown: Callable[[FloatArray], Any] | None = None) -> dict[str, Any]:
        """Columns of a table; ``shown`` makes what users see of numbers."""
        ends = {"lower": self.lower, "upper": self.upper}
        if shown is None:
            return {"std_error": self.std_error, **ends}
        error = shown(self.std_error) - shown(np.zeros(1))[0]
        return {"std_error": error, **{name: shown(each) for name, each in ends.items()}}

    def results(self, shown: Callable[[FloatArray], Any] | None = None) -> list[QueryResult]:
        """One result for each estimate; ``shown`` makes what users see of numbers."""
        columns = [self.value, self.std, self.sampling_std, self.lower, self.upper]
        if shown is not None:
            value, lower, upper = (shown(columns[place]) for place in (0, 3, 4))
            zero = shown(np.zeros(1))[0]
            spread = [[each - zero for each in shown(columns[place])] for place in (1, 2)]
            rows = zip(value, *spread, lower, upper, strict=True)
        else:
            rows = zip(*(column.tolist() for column in columns), strict=True)
        return [
            QueryResult(value, std, lower, upper, self.guarantee, sampling)
            for value, std, sampling, lower, upper in rows
        ]


def linear(
    value: FloatArray,
    errors: Errors,
    sampling_variance: FloatArray,
    bounds: tuple[Any, Any],
    confidence: Confidence,
    total: float,
    reach: Any = 0.0,
) -> Estimates:
    """Estimates that are linear in the counts.

    Parameters
    ----------
    value : ndarray of float64
    errors : Errors
        Of the noise.
    sampling_variance : ndarray of float64
        Variance over samples.
    bounds : tuple of float or ndarray
        Smallest and largest possible value.
    confidence : Confidence
    total : float
        Number of records.
    reach : float or ndarray, default=0.0
        How far the value may be off besides.
    """
    sampling = confidence.sampling_std(sampling_variance, total)
    below, above = (
        confidence.with_sampling(each, sampling) + reach for each in (errors.below, errors.above)
    )
    lower, upper = np.clip(value - below, *bounds), np.clip(value + above, *bounds)
    return Estimates(value, errors.std, sampling, lower, upper, errors.guarantee + confidence.text)


def ratios(
    value: FloatArray,
    count: FloatArray,
    errors: Errors,
    count_errors: Errors,
    sampling_variance: FloatArray,
    bounds: tuple[Any, Any],
    confidence: Confidence,
    total: float,
    reach: Any = 0.0,
) -> Estimates:
    """Ratios of linear answers.

    Parameters
    ----------
    value : ndarray of float64
        NaN where there is no estimate.
    count : ndarray of float64
        The denominators.
    errors : Errors
        Of the numerators less the values times the denominators.
    count_errors : Errors
        Of the denominators.
    sampling_variance, bounds, confidence, total, reach
        As for `linear`.
    """
    sure = count - count_errors.below
    known = (sure > 0) & np.isfinite(value)
    divisor = np.where(known, sure, 1.0)
    sampling = confidence.sampling_std(np.where(known, sampling_variance, 0.0), total)
    below, above = (
        confidence.with_sampling(each / divisor, sampling) + reach
        for each in (errors.below, errors.above)
    )
    lowest, highest = (np.broadcast_to(each, value.shape) for each in bounds)
    middle = np.where(known, value, 0.0)
    lower = np.where(known, np.clip(middle - below, lowest, highest), lowest)
    upper = np.where(known, np.clip(middle + above, lowest, highest), highest)
    # Of numbers within bounds, no standard deviation is larger.
    std = np.where(known, errors.std / np.where(known, count, 1.0), np.inf)
    std = np.minimum(std, (highest - lowest) / 2)
    text = errors.guarantee + confidence.text
    text += _NOTHING * bool(len(known) and not known.all())
    return Estimates(value, std, sampling, lower, upper, text)


def telling_cuts(found: Estimates, queries: Iterable[Weights]) -> Estimates:
    """The same, with a guarantee that says so if a query covers a bin in part.

    Parameters
    ----------
    found : Estimates
    queries : iterable of mapping of int to ndarray
        Weights of conjunctions.
    """
    if IN_PROPORTION in found.guarantee or not any(
        ((vector > 0) & (vector < 1)).any() for weights in queries for vector in weights.values()
    ):
        return found
    return found._replace(guarantee=found.guarantee + IN_PROPORTION)


def joined(each: Sequence[Estimates]) -> Estimates:
    """Several estimates as one."""
    texts = {one.guarantee for one in each}
    return Estimates(
        np.concatenate([one.value for one in each]),
        np.concatenate([one.std for one in each]),
        np.concatenate([one.sampling_std for one in each]),
        np.concatenate([one.lower for one in each]),
        np.concatenate([one.upper for one in each]),
        max(sorted(texts), key=len, default=""),
    )
