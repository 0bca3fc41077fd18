"""Noise on integers: discrete Laplace and geometric noise, threshold tests, and bounded sums.

Noise is drawn exactly by `_inversion`.
"""

from __future__ import annotations

import decimal
import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar

from .._random import Call, Tape, noise_source
from .._types import BoolArray, FloatArray, IntArray
from .._validation import as_fraction
from ._inversion import decimal_context, draw_noise, noise_rate

# --- answers of queries as integers: clamped integers, or rounded to a declared lattice

# Values, noisy values, answers and thresholds are clamped to +-REACH: beyond it, noise of any
# admitted scale decides as for the limit itself, and sums with noise (below 2**62) fit into 64
# bits.
REACH = 2**60
# Answers on a lattice are clamped to this many steps, where doubles still hold half steps.
LATTICE_REACH = 2**51
# Up to this, the error of one floating-point division is less than a step.
LATTICE_SURE = 2**46


def as_answers(values: ArrayLike) -> NDArray[Any]:
    """Answers as an array; Python integers of any size keep their type.

    NumPy turns integers beyond 64 bits into floats or objects, so that the type of a whole list
    would depend on one value.
    """
    if isinstance(values, np.ndarray):
        return values
    array = np.asarray(values)
    if array.dtype.kind not in "fO" or array.ndim != 1:
        return array
    listed: list[Any] = list(values)  # type: ignore[arg-type]
    if not all(isinstance(v, int | np.integer) and not isinstance(v, bool) for v in listed):
        return array
    return np.array([max(-REACH, min(int(v), REACH)) for v in listed], dtype=np.int64)


def as_held(value: Any, name: str) -> Fraction:
    """A number as its binary floating-point value, not as its decimal text."""
    rounded = as_fraction(value, name)
    return Fraction(value) if isinstance(value, float) else rounded


def as_lattice(lattice: Any) -> Fraction:
    step = as_held(lattice, "lattice")
    if not Fraction(1, 10**280) <= step <= 10**280:
        raise ValueError(
            f"lattice must be positive and within 1e-280 and 1e280, got {lattice!r}: it is the "
            "step to which real answers are rounded."
        )
    return step


def round_to_lattice(array: NDArray[Any], step: Fraction) -> IntArray:
    """Nearest multiple of ``step``, halves upward, exactly: floor(value / step + 1/2).

    Exact, so that values at most m steps apart get codes at most m apart; a plain floating-point
    quotient may add one.
    """
    if array.dtype.kind in "iu":
        array = np.clip(array, 0 if array.dtype.kind == "u" else -(2**53), 2**53)
    values = array.astype(np.float64)
    values[np.isnan(values)] = -np.inf
    with np.errstate(over="ignore"):
        quotients = np.clip(values / float(step), -2.0 * LATTICE_REACH, 2.0 * LATTICE_REACH)
    below = np.floor(quotients)
    fractions = quotients - below
    codes = below.astype(np.int64) + (fractions >= 0.5)
    # Step and quotient are each rounded once; results close to a half are computed exactly.
    size = np.abs(quotients)
    doubt = np.abs(fractions - 0.5) <= size * 2.0**-50
    doubt |= (size > LATTICE_SURE) & (size < 1.5 * LATTICE_REACH)
    for i in np.flatnonzero(doubt & (size < 1.5 * LATTICE_REACH)):
        codes[i] = math.floor(Fraction(float(values[i])) / step + Fraction(1, 2))
    return np.clip(codes, -LATTICE_REACH, LATTICE_REACH)


# --- the integer grid on which `bounded_sum` adds real numbers exactly


class BoundedGrid(NamedTuple):
    """A grid that maps bounded real numbers to integers, so that sums are exact.

    Attributes
    ----------
    lower, upper : Fraction
        Values are clipped to these.
    step : Fraction
        Width of the grid: the integer k means k * step.
    """

    lower: Fraction
    upper: Fraction
    step: Fraction

    @classmethod
    def of(cls, lower: Any, upper: Any, resolution: Any = None) -> BoundedGrid:
        """Check the public parameters of `bounded_sum`, and choose the grid."""
        low, high = as_fraction(lower, "lower"), as_fraction(upper, "upper")
        if low >= high:
            raise ValueError(f"lower must be below upper, got lower={lower!r}, upper={upper!r}.")
        reach = max(abs(low), abs(high))
        # Within this range no step of the computation underflows or overflows to NaN.
        if not Fraction(1, 10**280) <= reach <= 10**280:
            raise ValueError(
                f"The bounds {lower!r} and {upper!r} are too small or too large for floating-point "
                "numbers. Measure in other units."
            )
        if resolution is None:
            finest = reach / 2**20
            step = Fraction(2) ** (finest.numerator.bit_length() - finest.denominator.bit_length())
            if step > finest:
                step /= 2
        else:
            step = as_fraction(resolution, "resolution")
            if not 0 < step <= 2 * reach:
                raise ValueError(
                    "resolution must be positive and not coarser than the bounds, got "
                    f"{resolution!r} for bounds {float(low)!r} and {float(high)!r}."
                )
            # Keeps the sum of up to 2**32 records within 64 bits.
            if reach / step > 2**30:
                raise ValueError(
                    f"resolution={resolution!r} is finer than 2**-30 of the bounds {float(low)!r} "
                    f"and {float(high)!r}. Use a coarser one: the noise hides larger differences."
                )
        return cls(low, high, step)

    @property
    def sensitivity(self) -> int:
        """Largest absolute integer."""
        return max(abs(round(self.lower / self.step)), abs(round(self.upper / self.step)))

    @np.errstate(all="ignore")
    def encode(self, values: NDArray[Any]) -> IntArray:
        """Integer of each number; NaN counts as the number nearest to zero. Never raises."""
        clean = values.astype(np.float64)
        clean[np.isnan(clean)] = 0.0
        np.clip(clean, float(self.lower), float(self.upper), out=clean)
        low, high = round(self.lower / self.step), round(self.upper / self.step)
        return np.clip(np.rint(clean / float(self.step)), low, high).astype(np.int64)


# --- the noise

# Variances are at least this, for weights by precision: far below one record squared, and far
# enough above the smallest float for products and quotients.
_LEAST_VARIANCE = 1e-12


def as_integers(values: ArrayLike, name: str, remedy: str) -> NDArray[np.integer]:
    array = np.asarray(values)
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers of at most 64 bits, got {array.dtype}. {remedy}")
    return array


def discrete_laplace(
    values: ArrayLike, epsilon: Any, sensitivity: Any = 1, *, random_state: Any = None
) -> IntArray:
    """Add exact discrete Laplace noise to integers.

    Parameters
    ----------
    values : array-like of int
        True values, of any shape. Beyond +-2**60 they are clamped.
    epsilon : number or Fraction
        Privacy parameter. The noise is drawn at its dyadic floor, never above.
    sensitivity : int or Fraction, default=1
        Largest sum of absolute changes over all ``values`` when one record is added or removed.
    random_state : None, int or NoiseSource, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    ndarray of int64
        ``values`` plus independent noise, in the same shape (a scalar for a scalar), clamped to
        +-2**60. P(noise = k) is (1 - r) / (1 + r) * r**abs(k) with
        r = exp(-epsilon / sensitivity).

    Raises
    ------
    TypeError
        If ``values`` are not integers, or a parameter has the wrong type.
    ValueError
        If epsilon or sensitivity are not positive, or the noise does not fit into 64 bits.

    References
    ----------
    A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally utility-maximizing privacy
    mechanisms", SIAM Journal on Computing 41(6), 2012.

    Examples
    --------
    >>> from skdp.mechanisms import discrete_laplace
    >>> noisy = discrete_laplace([120, 0, 7], epsilon=1.0)
    >>> noisy.shape
    (3,)
    """
    # Privacy. Released: values + noise, clamped. One record changes the values by d with
    # sum |d| <= sensitivity; the probability of any sum changes by the factor
    # r**-sum(|d|) <= exp(eps_d) at most, eps_d = dyadic_floor(epsilon) <= epsilon. Clamping the
    # values moves no two of them further apart; clamping the result is post-processing, and hides
    # the limit of the noise itself: noise at +-LIMIT carries every value beyond +-REACH. None of
    # this raises: an error would reveal the value.
    array = as_integers(
        values, "values", "Round each record to a grid before summing (see bounded_sum)."
    )
    source = noise_source(random_state)
    if isinstance(source, Tape):
        exact = clamped(array).astype(np.int64)
        return source.answer(Call("discrete_laplace", exact, noise_rate(epsilon, sensitivity)))[()]
    noise = draw_noise(epsilon, sensitivity, True, source, array.size).reshape(array.shape)
    noise += clamped(array).astype(np.int64, copy=False)
    return clamped(noise)[()]


def clamped(array: NDArray[Any]) -> NDArray[Any]:
    # Checking first costs less than copying.
    if array.dtype.itemsize < 8 or array.size == 0:
        return array
    if int(array.min()) >= -REACH and int(array.max()) <= REACH:
        return array
    return np.clip(array, -REACH if array.dtype.kind == "i" else 0, REACH)


def above_threshold(
    values: ArrayLike,
    epsilon: Any,
    threshold: int,
    sensitivity: Any = 1,
    *,
    random_state: Any = None,
) -> BoolArray:
    """Test whether integers plus exact discrete Laplace noise exceed a public threshold.

    Only the results of the tests are released, not the noisy values. A test costs at most
    ``epsilon``, and less the farther the value is from the threshold. An algorithm whose total cost
    is below the sum of the epsilons has to prove it.

    Parameters
    ----------
    values : array-like of int
        True values, of any shape. Beyond +-2**60 they are clipped.
    epsilon : number or Fraction
        Largest privacy loss of a test if its value changes by ``sensitivity``. The noise is that of
        `discrete_laplace` at this epsilon.
    threshold : int
        Public threshold; a noisy value equal to it is not above.
    sensitivity : int or Fraction, default=1
        Largest change of a value when one record is added or removed.
    random_state : None, int or NoiseSource, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    ndarray of bool
        Same shape as ``values``; True where the noisy value is above the threshold.

    Raises
    ------
    TypeError
        If ``values`` are not integers, or a parameter has the wrong type.
    ValueError
        If epsilon or sensitivity are not positive, or the noise does not fit into 64 bits.

    Examples
    --------
    >>> from skdp.mechanisms import above_threshold
    >>> above_threshold([3, 900], epsilon=1.0, threshold=100).tolist()
    [False, True]
    """
    # Privacy. Released: the side of each value + noise, a function of what discrete_laplace
    # releases; so no more than that. The exact loss of a side is the log ratio of two tails.
    source = noise_source(random_state)
    if isinstance(source, Tape):
        array = as_integers(values, "values", "Round them to a grid.")
        exact = clamped(array).astype(np.int64)
        return source.answer(
            Call("threshold", exact, noise_rate(epsilon, sensitivity), (math.floor(threshold),))
        )
    noisy = discrete_laplace(values, epsilon, sensitivity, random_state=source)
    sides: BoolArray = np.asarray(noisy > threshold)
    return sides


def geometric(
    size: int | tuple[int, ...], epsilon: Any, sensitivity: Any = 1, *, random_state: Any = None
) -> IntArray:
    """Exact one-sided geometric noise.

    Parameters
    ----------
    size : int or tuple of int
        Shape of the result.
    epsilon : number or Fraction
        Privacy parameter. The noise is drawn at its dyadic floor, never above.
    sensitivity : int or Fraction, default=1
        Largest shift that the noise must hide at ``epsilon``.
    random_state : None, int or NoiseSource, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    ndarray of int64
        P(k) = (1 - r) * r**k for k >= 0 with r = exp(-epsilon / sensitivity).

    Raises
    ------
    TypeError
        If a parameter has the wrong type.
    ValueError
        If one is not positive, or the noise does not fit into 64 bits.

    Notes
    -----
    Added to a count this is not private by itself, since the result is never below the count. Use
    it for selection (`noisy_max`), which reveals only the order of noisy values.

    Examples
    --------
    >>> from skdp.mechanisms import geometric
    >>> int(geometric(1000, epsilon=1.0).min())
    0
    """
    shape = size if isinstance(size, tuple) else (size,)
    if any(
        isinstance(length, bool) or not isinstance(length, (int, np.integer)) for length in shape
    ):
        raise TypeError(f"size must be an int or a tuple of ints, got {size!r}.")
    if any(length < 0 for length in shape):
        raise ValueError(f"size must not be negative, got {size!r}.")
    count = math.prod(int(length) for length in shape)
    source = noise_source(random_state)
    if isinstance(source, Tape):
        source.refuse(
            "geometric() gives bare noise, and a replay cannot see what it is added to. Use "
            "noisy_max, top_k, permute_and_flip or exponential; or audit the mechanism with "
            "skdp.audit.audit."
        )
    return draw_noise(epsilon, sensitivity, False, source, count).reshape(shape)


def discrete_laplace_variance(epsilon: Any, sensitivity: Any = 1) -> float:
    """Variance of the noise of `discrete_laplace`, as drawn.

    Parameters
    ----------
    epsilon : number or Fraction
        Privacy parameter; its dyadic floor is used.
    sensitivity : int or Fraction, default=1
        As in `discrete_laplace`.

    Returns
    -------
    float
        2 r / (1 - r)**2 with r = exp(-epsilon / sensitivity), about 2 (sensitivity / epsilon)**2
        for small epsilon; at least 2e-12.

    Examples
    --------
    >>> from skdp.mechanisms import discrete_laplace_variance
    >>> round(discrete_laplace_variance(1.0), 4)
    1.8413
    """
    return 2.0 * geometric_variance(epsilon, sensitivity)


def geometric_variance(epsilon: Any, sensitivity: Any = 1) -> float:
    """Variance of the noise of `geometric`, as drawn.

    Parameters
    ----------
    epsilon : number or Fraction
        Privacy parameter; its dyadic floor is used.
    sensitivity : int or Fraction, default=1
        As in `geometric`.

    Returns
    -------
    float
        r / (1 - r)**2 with r = exp(-epsilon / sensitivity): half that of `discrete_laplace`. At
        least 1e-12, so that measurements can be weighted by their precision at any epsilon: where
        the formula gives less (epsilon / sensitivity above 27.6) the noise is zero except for one
        draw in 10**12, and from 745 on the floating-point exponential itself is zero.

    Examples
    --------
    >>> from skdp.mechanisms import geometric_variance
    >>> round(geometric_variance(1.0), 4)
    0.9207
    """
    rate = float(noise_rate(epsilon, sensitivity))
    return max(math.exp(-rate) / math.expm1(-rate) ** 2, _LEAST_VARIANCE)


def discrete_laplace_quantile(p: float, epsilon: Any, sensitivity: Any = 1) -> int:
    """Smallest k such that the noise of `discrete_laplace` stays within +-k with probability p.

    Parameters
    ----------
    p : float
        Probability, at least 0 and below 1.
    epsilon : number or Fraction
        Privacy parameter; its dyadic floor is used.
    sensitivity : int or Fraction, default=1
        As in `discrete_laplace`.

    Returns
    -------
    int
        Smallest k >= 0 for which noise between -k and k has a probability of at least p, exactly.

    Raises
    ------
    TypeError
        If a parameter has the wrong type.
    ValueError
        If ``p`` is not in [0, 1), or epsilon or sensitivity are not positive.

    Examples
    --------
    >>> from skdp.mechanisms import discrete_laplace_quantile
    >>> discrete_laplace_quantile(0.95, epsilon=0.1)
    30
    """
    rate = noise_rate(epsilon, sensitivity)
    level = as_fraction(p, "p")
    if not 0 <= level < 1:
        raise ValueError(f"p must be at least 0 and below 1, got {p!r}.")
    # Noise beyond +-k is k + 1 or more, on either side.
    return least_reach((1 - level) / 2, rate) - 1


def least_reach(probability: Fraction, rate: Fraction) -> int:
    """Smallest k >= 1 such that noise is k or more with at most this probability, exactly."""
    # P(noise >= k) = r**k / (1 + r), so k is the first integer at or above
    # -ln((1 + r) probability) / rate. That number is not an integer (e**rational is
    # transcendental), so bounds of it agree on the ceiling once they are close enough.
    digits = 40
    while True:
        with decimal.localcontext(decimal_context(digits)):
            exact_rate = decimal.Decimal(rate.numerator) / rate.denominator
            inverse = decimal.Decimal(probability.denominator) / probability.numerator
            r = (-exact_rate).exp() if exact_rate < 10**6 else decimal.Decimal(0)
            steps = (inverse / (1 + r)).ln() / exact_rate
            margin = (abs(steps) + 1 / exact_rate) * decimal.Decimal(10) ** (6 - digits)
            low, high = math.ceil(steps - margin), math.ceil(steps + margin)
        if low == high or high <= 1:
            return max(high, 1)
        digits *= 2


def noise_bound(
    low: FloatArray, high: FloatArray, epsilons: FloatArray, times: FloatArray, alpha: float
) -> float:
    """What ``sum max(low z, high z)`` exceeds with probability at most ``alpha`` (Chernoff).

    The noises z are discrete Laplace, ``times`` of each kind; ``low <= high`` have any sign.
    """
    largest = float((epsilons / np.maximum(np.abs(low), np.abs(high))).min())
    base = float(times @ np.log(np.tanh(epsilons / 2)))

    def bound(u: float) -> float:
        t = u * largest
        # With a = low, b = high and e of a noise, E exp(t max(a z, b z)) is
        # tanh(e/2) (sum_{k>=0} exp((tb - e)k) + sum_{k>0} exp(-(ta + e)k)).
        moment = np.log(-1 / np.expm1(t * high - epsilons) + 1 / np.expm1(epsilons + t * low))
        return (base + float(times @ moment) + math.log(1 / alpha)) / t

    # Any t gives a valid bound.
    with np.errstate(over="ignore"):
        found = minimize_scalar(
            bound, bounds=(1e-6, 1 - 1e-9), method="bounded", options={"xatol": 1e-4}
        )
    return float(found.fun)


def bounded_sum(
    values: ArrayLike,
    lower: Any,
    upper: Any,
    epsilon: Any,
    *,
    resolution: Any = None,
    random_state: Any = None,
) -> float:
    """Release the sum of real numbers, one per record, in exact integer arithmetic.

    Parameters
    ----------
    values : array-like of numbers
        One number per record. Each is clipped to [lower, upper]; NaN counts as the number of the
        interval that is nearest to zero.
    lower, upper : number
        Public bounds, ``lower < upper``.
    epsilon : number or Fraction
        Privacy parameter. The noise is drawn at its dyadic floor, never above.
    resolution : number, optional
        Width of the grid to which each value is rounded, in the units of ``values``. By default
        the largest power of two that is at most ``max(abs(lower), abs(upper)) / 2**20``: fine
        compared with the noise, and integers within bounds below 2**20 are kept exactly.
    random_state : None, int or NoiseSource, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    float
        A multiple of the resolution: the sum of the rounded values plus discrete Laplace noise of
        scale max(abs(lower), abs(upper)) / epsilon.

    Raises
    ------
    TypeError
        If ``values`` are not numbers, or a parameter has the wrong type.
    ValueError
        If the bounds are reversed, or the resolution is not positive, too coarse for the
        bounds or finer than 2**-30 of them.

    Notes
    -----
    The rounding moves the sum by at most ``len(values) * resolution / 2``.

    Examples
    --------
    >>> from skdp.mechanisms import bounded_sum
    >>> total = bounded_sum([17.5, 40.0, 22.25], lower=0, upper=50, epsilon=1.0)
    >>> isinstance(total, float)
    True
    """
    # Privacy. Every record becomes, by itself, an integer k in [k_low, k_high], whatever its
    # value (NaN and infinities included); released is the integer sum + noise times a public
    # constant. Adding or removing a record changes the integer sum by at most
    # max(|k_low|, |k_high|), exactly: no float sum is formed, whose rounding would depend on all
    # records together. Cost: epsilon of discrete_laplace at that sensitivity.
    grid = BoundedGrid.of(lower, upper, resolution)
    array = np.asarray(values)
    if array.size == 0:
        array = array.astype(np.float64)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"values must be numbers, got {array.dtype}.")
    if array.ndim != 1:
        raise ValueError(
            f"values must be one-dimensional, one number per record, got shape {array.shape}."
        )
    total = discrete_laplace(
        grid.encode(array).sum(dtype=np.int64), epsilon, grid.sensitivity, random_state=random_state
    )
    return float(int(total) * grid.step)
