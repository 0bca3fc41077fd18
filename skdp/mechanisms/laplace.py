"""Discrete Laplace, geometric and K-norm noise, bounded sums, and their exact sampler.

The exact sampler of all noise: discrete Laplace and geometric, by inversion with tables.

The distribution is sampled exactly. A uniform number U in [0, 1) is a stream of random bits without
end; the draw is the number of thresholds below U. Only as many bits are drawn as the decision
needs: 16 bits look up a table of 65,536 buckets, a bucket that holds a threshold draws 48 bits
more, and a word that equals the first 64 bits of a threshold draws further words until it differs.
Thresholds are known as intervals of integers (`decimal.exp` is correctly rounded), narrowed until
every requested bit is certain. No floating-point number is used.

All thresholds are irrational (non-constant rational functions of e**q, q rational), so comparison
with a dyadic number is always settled in finite time.

Large scales would need large tables. With r = exp(-rate) and S = 2**b, a geometric number of
ratio r is S * H + L, where H is geometric of ratio r**S and L, independent of it, has a
distribution proportional to r**l on {0, ..., S - 1}: the binary digits are drawn in groups, the
topmost carrying the sign.
"""

from __future__ import annotations

import decimal
import math
import numbers
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import ndtri

from .._random import Call, NoiseSource, Tape, noise_source
from .._validation import (
    BoolArray,
    FloatArray,
    IntArray,
    as_epsilon,
    as_fraction,
    as_integer,
    dyadic_floor,
)

# Noise is kept within +-LIMIT. At the smallest rate accepted, 2**-50, it would pass the limit
# with probability below exp(-2**62 * 2**-50) = exp(-4096).
LIMIT = 2**62 - 1
_LEAST_RATE = Fraction(1, 2**50)
# For at least this many draws, tables of 65,536 buckets are built.
_MANY = 2**12
_CHUNK = 2**16
# Most values times rate of noise of the largest change: a draw takes about exp(4) tries then.
_MOST_RATES = 8
# The sentinel of a bucket that cannot decide; codes are never near it.
_UNDECIDED = np.iinfo(np.int16).min


def decimal_context(digits: int) -> decimal.Context:
    """Decimal arithmetic with this many digits, independent of the user's settings."""
    return decimal.Context(
        prec=digits,
        rounding=decimal.ROUND_HALF_EVEN,
        Emin=decimal.MIN_EMIN,
        Emax=decimal.MAX_EMAX,
        traps=[],
    )


# Neighbouring digit groups need the same few powers. Here as below ``typed``: a float and a
# Fraction may be equal, but are read as different numbers (see `as_fraction`).
@lru_cache(maxsize=256, typed=True)
def exp_interval(numerator: int, denominator: int, bits: int) -> tuple[int, int]:
    """Integers lo <= exp(-numerator / denominator) * 2**bits <= hi, at most 3 apart."""
    if numerator >= bits * denominator:  # exp(-bits) < 2**-bits
        return 0, 1
    # Ten digits beyond the bits: the division is off by less than bits * 10**-digits and the
    # exponential and the product by half a unit of the last digit each, so the scaled value is
    # off by far less than 1, and truncation takes less than 1 more.
    digits = bits * 302 // 1000 + 12 + len(str(bits))
    context = decimal_context(digits)
    quotient = context.divide(decimal.Decimal(-numerator), decimal.Decimal(denominator))
    scaled = int(context.multiply(context.exp(quotient), decimal.Decimal(1 << bits)))
    return max(scaled - 1, 0), scaled + 2


class _Thresholds:
    """Ascending thresholds of one distribution, to any number of bits.

    With E(e) = exp(-rate * e), threshold i is (E(e_i) - shift) / divisor, or one minus that where
    ``mirrored``. By ``kind``, shift and divisor are

    - "tail": 0 and 1;
    - "signed": 0 and 1 + E(1);
    - "digit": E(span) and 1 - E(span).

    Parameters
    ----------
    rate : Fraction
    kind : {"tail", "signed", "digit"}
    runs : sequence of (start, step, count, mirrored)
        Consecutive thresholds have the exponents start, start + step, ..., ``count`` of them,
        in this order where mirrored and from last to first where not, so that they ascend.
    span : int
        Exponent at which the distribution of a digit ends.
    """

    def __init__(
        self, rate: Fraction, kind: str, runs: Sequence[tuple[int, int, int, bool]], span: int = 0
    ) -> None:
        self.numerator, self.denominator = rate.as_integer_ratio()
        self.kind = kind
        self.span = span
        self.exponents: list[int] = []
        self.mirrored: list[bool] = []
        floors: list[int] = []
        ladder: list[int] = []
        begin = None
        for start, step, count, mirrored in runs:
            # Without lower digits, both signs use the same thresholds.
            if (start, step) != begin or len(ladder) < count:
                ladder = self._ladder(start, step, count)
                begin = (start, step)
            exponents = list(range(start, start + step * count, step))
            if mirrored:
                self.exponents += exponents
                floors += [2**64 - 1 - floor for floor in ladder[:count]]
            else:
                self.exponents += exponents[::-1]
                floors += ladder[count - 1 :: -1]
            self.mirrored += [mirrored] * count
        self.first_words: NDArray[np.uint64] = np.array(floors, dtype=np.uint64)

    def _power(self, exponent: int, precision: int) -> tuple[int, int]:
        """Bounds of E(exponent), scaled by 2**precision."""
        return exp_interval(self.numerator * exponent, self.denominator, precision)

    def floor(self, index: int, bits: int) -> int:
        """First ``bits`` bits of threshold ``index``: floor(threshold * 2**bits)."""
        plain = self._plain_floor(self.exponents[index], bits)
        # A mirrored threshold 1 - t is irrational too, so its bits are those of t inverted.
        return 2**bits - 1 - plain if self.mirrored[index] else plain

    def _plain_floor(self, exponent: int, bits: int) -> int:
        precision = bits + 64
        while True:
            low, high = self._scaled(self._power(exponent, precision), precision)
            shift = self._shift(precision)
            low, high = (
                (low - shift[1]) >> (precision - bits),
                (high - shift[0]) >> (precision - bits),
            )
            if low == high:
                return low
            precision *= 2

    def _divisor(self, precision: int) -> tuple[int, int]:
        one = 1 << precision
        if self.kind == "tail":
            return one, one
        if self.kind == "signed":
            low, high = self._power(1, precision)
            return one + low, one + high
        low, high = self._power(self.span, precision)
        # At least 1: at a precision too low to distinguish E(span) from 1, the bounds are wide but
        # correct.
        return max(one - high, 1), one - low

    def _scaled(self, value: tuple[int, int], precision: int) -> tuple[int, int]:
        """Bounds of ``value`` / divisor, scaled by 2**precision as ``value`` is."""
        low, high = self._divisor(precision)
        return (value[0] << precision) // high, -((-value[1] << precision) // low)

    def _shift(self, precision: int) -> tuple[int, int]:
        """Bounds of shift / divisor."""
        if self.kind != "digit":
            return 0, 0
        return self._scaled(self._power(self.span, precision), precision)

    def _ladder(self, start: int, step: int, count: int) -> list[int]:
        """First 64 bits of thresholds with evenly spaced exponents, by repeated products.

        A product of lower bounds, truncated, is a lower bound of the next E(e) / divisor. With
        ``top`` above the first of them, its error grows by at most 3 top (error of the ratio)
        and 1 (truncation) a step. The rare threshold that this leaves undecided is computed
        separately.
        """
        # The divisor of a digit can be as small as the rate.
        precision = 128 + self.denominator.bit_length()
        power, high = self._scaled(self._power(start, precision), precision)
        ratio = self._power(step, precision)[0]
        error = high - power
        growth = 3 * ((high >> precision) + 1) + 1
        shift_low, shift_high = self._shift(precision)
        drop = precision - 64
        floors = []
        for k in range(count):
            floor = (power - shift_high) >> drop
            if floor != (power + error - shift_low) >> drop:
                floor = self._plain_floor(start + step * k, 64)
            floors.append(floor)
            power = power * ratio >> precision
            error += growth
        return floors


class _Table:
    """Draws one digit group: thresholds, the code of every cell between them, and buckets.

    Parameters
    ----------
    thresholds : _Thresholds
    codes : ndarray of int64, shape (len(thresholds) + 1,)
        Code that is drawn when U falls into a cell. A negative code -1 - h stands for magnitude h
        with a minus sign.
    tails : ndarray of bool, or None
        Cells that stand for "this magnitude or more".
    limit : int
        Largest magnitude returned.
    """

    def __init__(
        self, thresholds: _Thresholds, codes: IntArray, tails: BoolArray | None, limit: int
    ) -> None:
        self.thresholds = thresholds
        self.codes = codes
        self.tails = tails
        self.limit = limit
        self._ends = np.append(thresholds.first_words, np.uint64(2**64 - 1))

    @cached_property
    def buckets(self) -> NDArray[np.int16]:
        """Code of each leading 16 bits, or the sentinel where they cannot decide."""
        first = (self.thresholds.first_words >> np.uint64(48)).astype(np.int64)
        widths = np.diff(first, prepend=0, append=2**16)
        buckets = np.repeat(self.codes.astype(np.int16), widths)
        # The first words are floors, so a threshold just above the left edge of a bucket counts as
        # inside: that bucket is undecided too.
        buckets[first] = _UNDECIDED
        return buckets

    @cached_property
    def _only(self) -> NDArray[np.int32]:
        """The only threshold in each undecided bucket, or -1 where there are several."""
        only = np.full(2**16, -1, dtype=np.int32)
        buckets, places, counts = np.unique(
            self.thresholds.first_words >> np.uint64(48), return_index=True, return_counts=True
        )
        only[buckets[counts == 1]] = places[counts == 1]
        return only

    def fill(self, source: NoiseSource, out: IntArray) -> None:
        """Draw into ``out`` by buckets."""
        half_words = source.half_words(out.size)
        codes = self.buckets.take(half_words)
        out[:] = codes
        slow = np.flatnonzero(codes == _UNDECIDED)
        if slow.size:
            buckets = half_words.take(slow)
            words = source.words(slow.size) >> np.uint64(16)
            words |= buckets.astype(np.uint64) << np.uint64(48)
            out[slow] = self.decide(source, words, self._cells_in(buckets, words))

    def _cells_in(self, buckets: NDArray[np.uint16], words: NDArray[np.uint64]) -> IntArray:
        """Cells of words in these buckets, mostly without a search."""
        cells = self._only.take(buckets).astype(np.int64)
        crowded = np.flatnonzero(cells < 0)
        cells += self.thresholds.first_words.take(cells, mode="clip") < words
        cells[crowded] = np.searchsorted(self.thresholds.first_words, words[crowded])
        return cells

    def decide(
        self, source: NoiseSource, words: NDArray[np.uint64], cells: IntArray | None = None
    ) -> IntArray:
        """Codes of draws whose first 64 bits are ``words``, and their cells if they are known."""
        if cells is None:
            cells = np.searchsorted(self.thresholds.first_words, words)
        for position in np.flatnonzero(self._ends[cells] == words):
            cells[position] = self._refine(source, words[position])
        codes: IntArray = self.codes[cells]
        if self.tails is not None:
            beyond = np.flatnonzero(self.tails[cells])
            if beyond.size:
                # A geometric number that has reached h starts again from h; magnitude and
                # sign are independent, so the same table draws the rest, its sign ignored.
                rest = self.decide(source, source.words(beyond.size))
                rest ^= rest >> 63
                sign = codes[beyond] >> 63
                total = np.minimum((codes[beyond] ^ sign) + rest, self.limit)
                codes[beyond] = total ^ sign
        return codes

    def _refine(self, source: NoiseSource, word: np.uint64) -> int:
        """Cell of a draw whose first 64 bits equal those of some threshold."""
        low = int(np.searchsorted(self.thresholds.first_words, word, side="left"))
        high = int(np.searchsorted(self.thresholds.first_words, word, side="right"))
        drawn, bits = int(word), 64
        while low < high:
            drawn = drawn << 64 | int(source.words(1)[0])
            bits += 64
            floors = [self.thresholds.floor(i, bits) for i in range(low, high)]
            above = sum(floor > drawn for floor in floors)
            low += sum(floor < drawn for floor in floors)
            high -= above
        return low


class _Sampler:
    """A distribution split into digit groups.

    Parameters
    ----------
    rate : Fraction
        The ratio of the distribution is exp(-rate).
    signed : bool
        Discrete Laplace if true, one-sided geometric if not.
    many : bool
        True: few large tables with buckets, for many draws. False: small tables searched by
        64-bit words, which cost less to build.
    """

    def __init__(self, rate: Fraction, signed: bool, many: bool) -> None:
        self.many = many
        # A distribution of rate at least `whole` is one group. Others get a top group of rate `top`
        # to 2 * top, and lower groups of at most 2**widest thresholds. The top group has thresholds
        # down to probability exp(-depth). With buckets, exp(-12) < 2**-16: the tail lies in the
        # outermost buckets, which draw further bits anyway.
        whole, top, widest, depth = (
            (Fraction(1, 400), Fraction(1, 100), 10, 12)
            if many
            else (Fraction(1, 4), Fraction(1, 4), 5, 6)
        )
        shift = 0
        if rate < whole:
            while rate.numerator << shift < top * rate.denominator:
                shift += 1
        groups = -(-shift // widest)
        self.widths = [shift // groups + (i < shift % groups) for i in range(groups)]
        self.top = _top_table(rate, 2**shift, signed, depth, LIMIT >> shift)
        self.digits = []
        for width in self.widths:
            shift -= width
            self.digits.append(_digit_table(rate, 2**shift, 2**width))

    def draw(self, source: NoiseSource, size: int) -> IntArray:
        """Return ``size`` independent draws."""
        if not self.many:
            out = self.top.decide(source, source.words(size))
            for width, table in zip(self.widths, self.digits, strict=True):
                self._append(out, table.decide(source, source.words(size)), width)
            return out
        out = np.empty(size, dtype=np.int64)
        digit = np.empty(min(size, _CHUNK), dtype=np.int64)
        for start in range(0, size, _CHUNK):
            block = out[start : start + _CHUNK]
            self.top.fill(source, block)
            for width, table in zip(self.widths, self.digits, strict=True):
                low = digit[: block.size]
                table.fill(source, low)
                self._append(block, low, width)
        return out

    @staticmethod
    def _append(high: IntArray, low: IntArray, width: int) -> None:
        # -1 - x is the bitwise complement of x, so a negative number appends complemented
        # digits.
        signs = high >> 63
        signs &= 2**width - 1
        low ^= signs
        high <<= width
        high |= low


def _top_table(rate: Fraction, step: int, signed: bool, depth: int, limit: int) -> _Table:
    """Table of the top group, of ratio exp(-rate * step), with the sign if ``signed``.

    The discrete Laplace number X is at least 0 with probability 1 / (1 + r), and then geometric;
    else -1 - X is. With H the top group, R = r**step:
    P(X < 0, H >= h) = r R**h / (1 + r) and P(X >= 0, H >= h) = R**h / (1 + r).
    """
    count = int(depth / (rate * step)) + 1
    if signed:
        thresholds = _Thresholds(
            rate, "signed", [(1, step, count + 1, False), (step, step, count, True)]
        )
        codes = np.arange(-count - 1, count + 1, dtype=np.int64)
        tails = np.zeros(codes.size, dtype=bool)
        tails[[0, -1]] = True
    else:
        thresholds = _Thresholds(rate, "tail", [(step, step, count, False)])
        codes = np.arange(count, -1, -1, dtype=np.int64)
        tails = codes == count
    return _Table(thresholds, codes, tails, limit)


def _digit_table(rate: Fraction, step: int, size: int) -> _Table:
    """Table of a lower group: P(L >= l) = (R**l - R**size) / (1 - R**size), R = exp(-rate*step)."""
    thresholds = _Thresholds(rate, "digit", [(step, step, size - 1, False)], span=step * size)
    return _Table(thresholds, np.arange(size - 1, -1, -1, dtype=np.int64), None, size - 1)


# A large table takes 128 kB per group, at most a few groups: about 25 MB in total.
@lru_cache(maxsize=64, typed=True)
def _large_sampler(epsilon: Any, sensitivity: Any, signed: bool) -> _Sampler:
    return _Sampler(noise_rate(epsilon, sensitivity), signed, many=True)


@lru_cache(maxsize=1024, typed=True)
def _small_sampler(epsilon: Any, sensitivity: Any, signed: bool) -> _Sampler:
    return _Sampler(noise_rate(epsilon, sensitivity), signed, many=False)


def draw_noise(
    epsilon: Any, sensitivity: Any, signed: bool, source: NoiseSource, size: int
) -> IntArray:
    """Integers of discrete Laplace noise at an exact rate."""
    # Equal keys of one of these types mean the same number; others (True equals 1) are checked
    # first. A float is read as the decimal that prints it, an equal Fraction is not, so they share
    # no key.
    if type(epsilon) not in (int, float, Fraction):
        epsilon = as_epsilon(epsilon)
    if type(sensitivity) not in (int, Fraction):
        sensitivity = as_sensitivity(sensitivity)
    # The choice depends on the size alone, so that equal seeds give equal noise, regardless of what
    # has been cached.
    sampler = _large_sampler if size >= _MANY else _small_sampler
    return sampler(epsilon, sensitivity, signed).draw(source, size)


def as_sensitivity(sensitivity: Any) -> Fraction:
    """A checked sensitivity: a positive exact number."""
    if isinstance(sensitivity, (bool, np.bool_)) or not isinstance(sensitivity, numbers.Rational):
        raise TypeError(
            "sensitivity must be an integer or a Fraction, so that the scale is exact; got "
            f"{sensitivity!r} of type {type(sensitivity).__name__}. Measure in units in which "
            "one record changes the value by an integer, or pass fractions.Fraction."
        )
    value = Fraction(int(sensitivity.numerator), int(sensitivity.denominator))
    if value <= 0:
        raise ValueError(
            f"sensitivity must be positive, got {sensitivity!r}: it is the largest change that "
            "one record can make to a value."
        )
    return value


def noise_rate(epsilon: Any, sensitivity: Any) -> Fraction:
    """Exact rate dyadic_floor(epsilon) / sensitivity of the noise."""
    rate = dyadic_floor(as_epsilon(epsilon)) / as_sensitivity(sensitivity)
    if rate < _LEAST_RATE:
        raise ValueError(
            f"epsilon={float(epsilon):g} with sensitivity={float(sensitivity):g} asks for noise "
            f"of scale {float(1 / rate):.3g}, which does not fit into 64-bit integers (largest "
            "scale 2**50). Use a larger epsilon, or measure in coarser units."
        )
    return rate


# ------------------------------------------------------------------------------------------------
# Noise on integers: discrete Laplace and geometric noise, threshold tests, and bounded sums.
#
# Noise is drawn exactly by `_inversion`.


# --- answers of queries as integers, clamped

# Values, noisy values, answers and thresholds are clamped to +-REACH: beyond it, noise of any
# admitted scale decides as for the limit itself, and sums with noise (below 2**62) fit into 64
# bits.
REACH = 2**60


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
    """A checked array of integers; what is no integer is refused with a remedy."""
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


def max_norm_noise(
    values: ArrayLike, epsilon: Any, sensitivity: Any = 1, *, random_state: Any = None
) -> IntArray:
    """Add exact noise to integers of which one record may change each by as much as any other.

    `discrete_laplace` pays for the sum of all changes, this for the largest one: where a record
    changes all of d values by about as much, its variance is about a sixth.

    Parameters
    ----------
    values : array-like of int
        True values, of any shape. Beyond +-2**60 they are clamped.
    epsilon : number or Fraction
        Privacy parameter. The noise is drawn at its dyadic floor, never above.
    sensitivity : int or Fraction, default=1
        Largest absolute change of any value when one record is added or removed. Where epsilon is
        above 8 sensitivities for each value, less of it is spent: a draw would take too long.
    random_state : None, int or NoiseSource, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    ndarray of int64
        ``values`` plus noise z, clamped to +-2**60. P(z) is proportional to r**max(abs(z)) with
        r = exp(-epsilon / sensitivity).

    Raises
    ------
    TypeError, ValueError
        As by `discrete_laplace`.

    References
    ----------
    M. Hardt, K. Talwar, "On the geometry of differential privacy", STOC 2010 (K-norm mechanism);
    J. Awan, A. Slavkovic, "Structure and sensitivity in differential privacy: comparing K-norm
    mechanisms", JASA 116, 2021.
    """
    # Privacy. Released: values + z, clamped. One record changes the values by d with max |d| <=
    # sensitivity; by the triangle inequality the probability of any sum changes by the factor
    # r**-max(|d|) <= exp(eps_d) at most, eps_d = dyadic_floor(epsilon) <= epsilon. Clamping as in
    # `discrete_laplace`. The law is exact: given a radius R with P(R) ~ (2R + 1)**n r**R, z is
    # uniform in the cube [-R, R]**n, so P(z) ~ sum of r**R over R >= max |z| ~ r**max |z|. A sum of
    # n + 1 geometric numbers has P(R) ~ (R + 1) ... (R + n) r**R, and is kept with probability
    # (2R + 1)**n / ((2R + 2) ... (2R + 2n)), by one uniform integer for each factor.
    array = as_integers(values, "values", "Round each record to a grid before summing.")
    source, n = noise_source(random_state), array.size
    rate = _max_norm_rate(n, epsilon, sensitivity)
    if isinstance(source, Tape):
        return source.answer(Call("max_norm", clamped(array).astype(np.int64), rate))[()]
    while True:
        radius = int(draw_noise(rate, 1, False, source, n + 1).sum())
        if (source.below(2 * radius + 2 * np.arange(1, n + 1)) <= 2 * radius).all():
            break
    noise = source.below(2 * radius + 1, array.shape) - radius
    return clamped(noise + clamped(array).astype(np.int64))[()]


def max_norm_variance(n: int, epsilon: Any, sensitivity: Any = 1) -> float:
    """Variance of each of the n noises of `max_norm_noise`, for small epsilon / sensitivity."""
    return (n + 1) * (n + 2) / 3 / float(_max_norm_rate(n, epsilon, sensitivity)) ** 2


def _max_norm_rate(n: int, epsilon: Any, sensitivity: Any) -> Fraction:
    return min(noise_rate(epsilon, sensitivity), Fraction(_MOST_RATES, max(n, 1)))


def clamped(array: NDArray[Any]) -> NDArray[Any]:
    """The array, where noise cannot leave 64 bits."""
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
    count = math.prod(as_integer(length, "size", 0) for length in shape)
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


def noise_reach(low: FloatArray, high: FloatArray, variances: FloatArray, tail: float) -> float:
    """What a sum of noises exceeds with a probability of about ``tail``.

    The sum is ``sum max(low_i z_i, high_i z_i)``, with independent discrete Laplace noises z_i and
    low_i <= high_i of any sign; equal slopes give a weighted sum. Its law lies between the normal
    one and that of a single noise, as far as its excess kurtosis does, whose 0.75th power is within
    2% for sums of n equal noises; unequal slopes add the skewness, as Cornish and Fisher do.

    Parameters
    ----------
    low, high : ndarray of float64, shape (n,)
    variances : ndarray of float64, shape (n,)
        Of the noises.
    tail : float
        At most 0.5.
    """
    used = (low != 0) | (high != 0)
    low, high, variances = low[used], high[used], variances[used]
    # A mean slope, and half the difference of the slopes times the size of the noise.
    middle, half, scale = (low + high) / 2, (high - low) / 2, np.sqrt(variances / 2)
    square, other = middle**2, half**2
    variance = float((square + other / 2) @ variances)
    if variance <= 0:
        return 0.0
    kurtosis = float(square**2 @ (variances + 3 * variances**2)) / variance**2
    skewness = float(((12 * square + 2 * other) * half) @ (scale * variances / 2)) / variance**1.5
    normal, single = -float(ndtri(tail)), -math.log(2 * tail) / math.sqrt(2)
    standard = normal + (single - normal) * min(kurtosis / 3, 1.0) ** 0.75
    standard += skewness * (normal**2 - 1) / 6
    reach = float(half @ scale) + math.sqrt(variance) * standard
    # Noise is whole: the sum of equally steep ones is a multiple of their slope.
    steep = np.maximum(np.abs(low), np.abs(high))
    largest = float(steep.max())
    whole = largest * math.ceil(reach / largest - 0.5)
    return whole if (steep == largest).all() else max(reach, whole)


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


# --- randomised response: noise before anything is collected

# Bits of the weight of the truth, and the most codes that fit beside it.
_TRUTH, _MOST_CODES = 40, 2**22


def _response_weights(n_codes: int, epsilon: Any) -> tuple[int, int]:
    """Weights of the truth and of each other code: their ratio is at most exp(epsilon)."""
    if not 2 <= as_integer(n_codes, "n_codes") <= _MOST_CODES:
        raise ValueError(f"n_codes must lie between 2 and {_MOST_CODES:,}, got {n_codes}.")
    exact = as_epsilon(epsilon)
    truth = 1 << _TRUTH
    other = exp_interval(exact.numerator, exact.denominator, _TRUTH)[1]
    if other >= truth:
        raise ValueError(f"epsilon={epsilon!r} is too little: reports would say nothing.")
    return truth, other


def randomised_response(
    codes: ArrayLike, n_codes: int, epsilon: Any, *, random_state: Any = None
) -> IntArray:
    """What each record reports of its code where no one is trusted with it: local privacy.

    The guarantee is another one than that of all other functions here: whatever a record's code is,
    its report has any value with probabilities within a factor of exp(epsilon), even for who
    collects it. That it reports is not hidden. It is far less accurate than `discrete_laplace`.

    Parameters
    ----------
    codes : array-like of int, shape (n,)
        Each from 0 to ``n_codes`` - 1; others count as the nearest of these.
    n_codes : int
        From 2 to 4,194,304.
    epsilon : number or Fraction
    random_state : None, int or NoiseSource, default=None
        Seed of the reports. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    ndarray of int64, shape (n,)
        The code itself, exp(epsilon) times as often as each other code.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of the wrong type or out of range.

    References
    ----------
    S. L. Warner, "Randomized response: a survey technique for eliminating evasive answer bias",
    JASA 60, 1965; D. Su, dissertation, Purdue 2016, section 2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.mechanisms import randomised_response, response_counts
    >>> reports = randomised_response(np.repeat([0, 1], [9_000, 1_000]), 2, epsilon=1.0)
    >>> bool(abs(response_counts(reports, 2, epsilon=1.0)[0] - 9_000) < 1_000)
    True
    """
    # Privacy. Whole numbers below the sum of all weights are equally likely: the first ones, as
    # many as the weight of the truth, report it; each other code has an equal number. So two
    # probabilities of one report differ by the ratio of the weights, at most exp(epsilon).
    truth, other = _response_weights(n_codes, epsilon)
    n_codes = int(n_codes)
    own = np.clip(as_integers(as_answers(codes), "codes", "Give codes."), 0, n_codes - 1)
    if own.ndim != 1:
        raise ValueError(f"codes must be one for each record, got an array of shape {own.shape}.")
    drawn = noise_source(random_state).below(truth + (n_codes - 1) * other, len(own))
    shift = np.where(drawn < truth, 0, 1 + (drawn - truth) // other)
    reports: IntArray = (own.astype(np.int64) + shift) % n_codes
    return reports


def response_counts(reports: ArrayLike, n_codes: int, epsilon: Any) -> FloatArray:
    """Unbiased counts of the codes from what records reported.

    Parameters
    ----------
    reports : array-like of int, shape (n,)
        From `randomised_response`.
    n_codes, epsilon
        As given there.

    Returns
    -------
    ndarray of float64, shape (n_codes,)
        They sum to n, and may be negative.
    """
    truth, other = _response_weights(n_codes, epsilon)
    total = float(truth + (int(n_codes) - 1) * other)
    found = np.bincount(np.asarray(reports), minlength=int(n_codes)).astype(np.float64)
    counts: FloatArray = (found * total - found.sum() * other) / (truth - other)
    return counts
