"""Quantiles of sums of noise with a known distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy.optimize import minimize_scalar

from ..._random import sampling_generator
from ..._validation import dyadic_floor
from ...mechanisms import discrete_laplace_quantile

_MAX_DRAWS = 2_000_000


def range_extreme(
    vector: np.ndarray, starts: np.ndarray, stops: np.ndarray, extreme: np.ufunc
) -> np.ndarray:
    """Minimum or maximum of ``vector[start:stop]`` for many ranges, by doubling windows."""
    result = np.empty(len(starts))
    levels = np.frexp((stops - starts).astype(np.float64))[1] - 1
    window, width = vector, 1
    for level in range(int(levels.max()) + 1):
        here = levels == level
        result[here] = extreme(window[starts[here]], window[stops[here] - width])
        if 2 * width <= len(vector):
            window = extreme(window[:-width], window[width:])
            width *= 2
    return result


def noise_quantile(
    low: np.ndarray,
    high: np.ndarray,
    epsilons: Sequence[Fraction],
    index: np.ndarray,
    alpha: float,
) -> tuple[float, str]:
    """Bound that a sum of asymmetric noises exceeds with probability at most ``alpha``, and why.

    The sum is ``sum max(low_i z_i, high_i z_i)`` with z_i discrete Laplace of the epsilon that
    ``index`` says, low_i <= high_i of any sign; equal slopes give a weighted sum. The smaller of
    two bounds is taken. Chernoff: ``min_t (sum K_i(t) + log(1 / alpha)) / t`` with the exact
    cumulant functions K_i. Monte Carlo: an order statistic of B draws of the public noise,
    ``4.8 sqrt(B alpha)`` ranks above the plain quantile, so that it is too small with probability
    1e-6 at most; its seed is fixed, so that equal queries get equal intervals.
    """
    if not len(high):
        return 0.0, "none in this answer"
    # The noise is symmetric: a straight slope and its negative are the same.
    straight = low == high
    low, high = (np.where(straight, np.abs(each), each) for each in (low, high))
    if len(high) == 1 and straight[0]:
        steps = discrete_laplace_quantile(1 - 2 * alpha, epsilons[int(index[0])])
        return float(high[0]) * steps, "its exact law"
    # Boxes with the same slopes, as those covered entirely, are treated together. Slopes are
    # compared after scaling and rounding at the twelfth digit, the steeper one up and the
    # other down: that can only widen the interval. Equal slopes stay equal.
    scale = float(np.maximum(np.abs(low), np.abs(high)).max())
    steep = np.ceil(high / scale * 1e12 - 1e-3) / 1e12
    flat = np.where(straight, steep, np.floor(low / scale * 1e12) / 1e12)
    kinds, number = np.unique(np.stack([flat, steep, index], axis=1), axis=0, return_counts=True)
    a, b = kinds[:, 0], kinds[:, 1]
    e = np.array([float(dyadic_floor(epsilon)) for epsilon in epsilons])[kinds[:, 2].astype(int)]
    felt = (a != 0) | (b != 0)
    a, b, e, number = (part[felt] for part in (a, b, e, number))
    bound = scale * chernoff(a, b, e, number, alpha)
    simulated = scale * _simulated_quantile(a, b, e, number, alpha)
    if simulated < bound:
        return simulated, "its exact law simulated, too narrow with probability 1e-6"
    return bound, "a bound on its exact law"


def chernoff(
    a: np.ndarray, b: np.ndarray, e: np.ndarray, number: np.ndarray, alpha: float
) -> float:
    """Chernoff bound on the upper quantile; ``number`` of each kind, any t gives a valid one."""
    largest = float((e / np.maximum(np.abs(a), np.abs(b))).min())
    base = float(number @ np.log(np.tanh(e / 2)))

    def bound(u: float) -> float:
        t = u * largest
        # E exp(t max(a z, b z)) = tanh(e/2) (sum_{k>=0} exp((tb - e)k) + sum_{k>0} exp(-(ta + e)k))
        moment = np.log(-1 / np.expm1(t * b - e) + 1 / np.expm1(e + t * a))
        return (base + float(number @ moment) + math.log(1 / alpha)) / t

    with np.errstate(over="ignore"):
        found = minimize_scalar(
            bound, bounds=(1e-6, 1 - 1e-9), method="bounded", options={"xatol": 1e-4}
        )
    return float(found.fun)


def _simulated_quantile(
    a: np.ndarray, b: np.ndarray, e: np.ndarray, number: np.ndarray, alpha: float
) -> float:
    """Order statistic of the simulated sum; infinity if that would take too many draws."""
    straight = a == b
    symmetric = bool(straight.all())
    if symmetric:  # both tails serve
        alpha = 2 * alpha
    terms = int(np.where(straight, 1, number).sum())
    draws = int(max(20_000, 200 / alpha))
    if draws * terms > _MAX_DRAWS:
        draws = int(max(4_000, 100 / alpha))
    # The generator of sums overflows if the scale of the noise is astronomical.
    if draws * terms > _MAX_DRAWS or float((number / e).max()) > 1e15:
        return math.inf
    generator = sampling_generator(20220901)
    success = -np.expm1(-e)
    total = np.zeros(draws)
    for i in np.flatnonzero(straight & (number > 1)):
        # A sum of n geometric variables is negative binomial, their difference discrete Laplace.
        noise = generator.negative_binomial(number[i], success[i], draws)
        total += (noise - generator.negative_binomial(number[i], success[i], draws)) * b[i]
    single = np.flatnonzero(~straight | (number == 1))
    single = np.repeat(single, number[single])
    step = max(1, 1_000_000 // draws)
    for first in range(0, len(single), step):
        part = single[first : first + step]
        size = (draws, len(part))
        noise = generator.geometric(success[part], size) - generator.geometric(success[part], size)
        total += np.maximum(noise, 0) @ b[part] + np.minimum(noise, 0) @ a[part]
    if symmetric:
        total = np.abs(total)
    rank = math.ceil(draws * (1 - alpha) + 4.8 * math.sqrt(draws * alpha))
    return float(np.partition(total, rank - 1)[rank - 1])
