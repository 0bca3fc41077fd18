"""Confidence bounds on proportions, and on the ratio of two of them."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaincinv, gammaln, logsumexp

from .._types import FloatArray, IntArray

__all__ = ["BOUNDS", "clopper_pearson", "log_ratio_bound", "sharper_method"]


def clopper_pearson(count: IntArray | int, n: int, tail: float) -> tuple[FloatArray, FloatArray]:
    """Lower and upper confidence bounds of a binomial proportion, each missed at rate ``tail``.

    Parameters
    ----------
    count : int or array of int
        Successes.
    n : int
        Trials.
    tail : float
        Largest probability that the lower (and, separately, the upper) bound is wrong.

    Returns
    -------
    lower, upper : float or array, shaped like ``count``
    """
    count = np.asarray(count)
    inner = np.clip(count, 1, n)
    lower = np.where(count > 0, betaincinv(inner, n - inner + 1, tail), 0.0)
    inner = np.clip(count, 0, n - 1)
    upper = np.where(count < n, betaincinv(inner + 1, n - inner, 1 - tail), 1.0)
    return lower[()], upper[()]


def _separate_bound(more: int, less: int, n: int, alpha: float) -> float:
    """Bound each of the two proportions by itself."""
    lower, _ = clopper_pearson(more, n, alpha / 2)
    _, upper = clopper_pearson(less, n, alpha / 2)
    return float(np.log(lower / upper)) if lower > 0 else -np.inf


def _conditional_bound(more: int, less: int, n: int, alpha: float) -> float:
    """Bound the odds ratio given the total, as Fisher's exact test does, then the ratio.

    Given ``more + less``, the distribution of ``more`` depends on the odds ratio ``psi`` alone, and
    ``p / q = psi / (1 + q (psi - 1))`` is increasing in psi and decreasing in q. Nine tenths of
    alpha bound psi, one tenth bounds q. For rare events this is sharper than two separate bounds,
    which assume that both proportions are at their worst end at once.
    """
    total = more + less
    if more == 0 or more <= less or total == 2 * n:
        return -np.inf
    # Beyond this many standard deviations the terms are zero in double precision.
    reach = int(40 * np.sqrt(total)) + 100
    low, high = max(total - n, 0, more - reach), min(n, total, more + reach)
    i = np.arange(low, high + 1)
    terms = -(gammaln(i + 1) + gammaln(n - i + 1) + gammaln(total - i + 1))
    terms -= gammaln(n - total + i + 1)

    def excess(log_psi: float) -> float:
        weights = terms + i * log_psi
        return float(logsumexp(weights[i >= more]) - logsumexp(weights)) - np.log(0.9 * alpha)

    guess = np.log(more / max(less, 1))
    left, right = -1.0, guess + 1.0
    if excess(left) > 0:
        return -np.inf
    while excess(right) < 0:
        right += 1.0
    psi = np.exp(brentq(excess, left, right, xtol=1e-9) - 1e-8)
    _, upper = clopper_pearson(less, n, 0.1 * alpha)
    return float(np.log(psi / (1 + upper * (psi - 1)))) if psi > 1 else -np.inf


BOUNDS = {"separate": _separate_bound, "conditional": _conditional_bound}


def log_ratio_bound(more: int, less: int, n: int, alpha: float, method: str = "separate") -> float:
    """Lower bound on ``log(p / q)``, wrong with probability at most ``alpha``.

    ``more`` of ``n`` trials with success probability p succeeded and ``less`` of ``n`` with q.
    """
    return BOUNDS[method](more, less, n, alpha)


def sharper_method(more: float, less: float, size: int, n: int, alpha: float) -> str:
    """Method with the larger expected bound for ``n`` new trials, from counts among ``size``."""
    here, there = (min(round(count * n / size), n) for count in (more, less))
    return max(BOUNDS, key=lambda method: BOUNDS[method](here, there, n, alpha))
