"""The false cells of a huge table: how many, and which, reach a threshold by noise alone.

How many is a binomial number, drawn exactly like all noise (see `_inversion`): a uniform number is
compared with the distribution function, which is known as intervals of integers, and both get more
bits until the comparison is certain. No floating-point number is used.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import run_starts
from .._random import NoiseSource
from .._types import CodeArray, IntArray
from ._inversion import exp_interval

__all__ = ["distinct_rows", "draw_cells", "draw_false_count"]

# Weights are multiples of 2**-(bits + 96), and followed outward until they are below this many: a
# weight that is always rounded up does not fall to zero.
_GUARD = 96
_NEGLIGIBLE = 2**32


class _Step(NamedTuple):
    """Bounds of the ratio of two neighbouring weights, as quotients of integers."""

    low: tuple[int, int]
    high: tuple[int, int]


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
        order, starts = distinct_rows(cells)
        cells = cells[order[starts]]
    return cells


def distinct_rows(rows: NDArray[np.integer]) -> tuple[IntArray, IntArray]:
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
    low, high, precision = _odds(n_cells, rate, threshold, unit)
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


def _odds(n_cells: int, rate: Fraction, threshold: int, unit: int) -> tuple[int, int, int]:
    """Bounds of p / (1 - p), p = r**threshold / (1 + r), scaled by 2**precision; the precision.

    Relative to 1 / n_cells the bounds are as close as ``unit`` bits allow: odds far below that do
    not matter, however small they are.
    """
    precision = unit + n_cells.bit_length()
    one = 1 << precision
    r_low, r_high = exp_interval(rate.numerator, rate.denominator, precision)
    x_low, x_high = exp_interval(rate.numerator * threshold, rate.denominator, precision)
    low = (x_low << precision) // (one + r_high - x_low)
    high = -((-x_high << precision) // (one + r_low - x_high))
    return low, high, precision


def _upward(start: int, n_cells: int, low: int, high: int, precision: int) -> Iterator[_Step]:
    for k in range(start, n_cells):
        part = (k + 1) << precision
        yield _Step(((n_cells - k) * low, part), ((n_cells - k) * high, part))


def _downward(start: int, n_cells: int, low: int, high: int, precision: int) -> Iterator[_Step]:
    for k in range(start, 0, -1):
        part, left = k << precision, n_cells - k + 1
        yield _Step((part, left * high), (part, left * low))


def _weights(steps: Iterator[_Step], unit: int) -> tuple[list[tuple[int, int]], int]:
    """Bounds of the weights on one side of the middle, and of the sum of those that are left out.

    Ratios fall from the middle outward, so what is left out is less than a geometric series.
    """
    low = high = 1 << unit
    found: list[tuple[int, int]] = []
    for step in steps:
        (a, b), (c, d) = step
        if high < _NEGLIGIBLE and c < d:
            return found, high * c // (d - c) + 1
        low, high = low * a // b, -(-high * c // d)
        found.append((low, high))
    return found, 0
