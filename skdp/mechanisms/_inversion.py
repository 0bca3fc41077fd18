"""The exact sampler of all noise: discrete Laplace and geometric, by inversion with tables.

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
import numbers
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._random import NoiseSource
from .._types import BoolArray, IntArray
from .._validation import as_epsilon, dyadic_floor

# Noise is kept within +-LIMIT. At the smallest rate accepted, 2**-50, it would pass the limit
# with probability below exp(-2**62 * 2**-50) = exp(-4096).
LIMIT = 2**62 - 1
_LEAST_RATE = Fraction(1, 2**50)
# For at least this many draws, tables of 65,536 buckets are built.
_MANY = 2**12
_CHUNK = 2**16
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
