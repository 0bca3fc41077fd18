"""The public lattice of ``bins="auto"``: fine bins of a column, finer near zero.

Widths are 1, 2 and 5 times powers of ten, and edges are multiples of them: the numbers that people
ask about. The bin at x has the largest width that is at most a fiftieth of the size of x, so that
its values differ by two percent at most, with two exceptions. Up to a stated share of the range all
bins around 0 have the same width. And no bin is wider than a width that is chosen as small as the
number of bins allows; where the range does not reach near 0, this is the width of all.

All arithmetic is in whole numbers, so that the edges are the same on every machine. They are not
stored with a release, which says "auto": this module must never give other edges for a range.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from ..._types import FloatArray

__all__ = ["MOST_BINS", "exponent_edges", "lattice_edges"]

MOST_BINS = 1024

# A bin is at most this part of its values wide: two percent.
_PARTS = 50
# Widths stay the same up to this part of the largest number, in powers of ten; the first that fits.
_DECADES = (4, 3, 2, 1, 0)


@functools.lru_cache(maxsize=256)
def lattice_edges(lower: float, upper: float, least: Fraction = Fraction(0)) -> FloatArray:
    """Edges of at most `MOST_BINS` bins from ``lower`` to ``upper``; cannot be changed.

    Parameters
    ----------
    lower, upper : float
        ``lower < upper``, both finite.
    least : Fraction, default=0
        Least width of a bin: the distance of the numbers of a grid.
    """
    low, high = Fraction(lower), Fraction(upper)
    largest = max(abs(low), abs(high))
    # Edges must differ as floats.
    least = max(least, 8 * Fraction(float(np.spacing(max(abs(lower), abs(upper))))))
    fine = max((high - low) / MOST_BINS, least)
    for decades in _DECADES:
        near = max(_at_most(largest / (_PARTS * 10**decades)), _at_least(least))
        for far in range(_at_least(fine), _at_least(largest / _PARTS) + 1):
            pieces = list(_pieces(low, high, min(near, far), far))
            if sum(last - first + 1 for first, last, _ in pieces) < MOST_BINS:
                return _edges(lower, upper, pieces)
    raise AssertionError("one width for all bins fits always")


def _width(index: int) -> Fraction:
    """..., 0.5, 1, 2, 5, 10, ...; 1 at 0."""
    power, digit = divmod(index, 3)
    return (1, 2, 5)[digit] * Fraction(10) ** power


def _at_most(x: Fraction) -> int:
    """Index of the largest width that is at most x."""
    # The logarithm is near; whole numbers decide.
    index = 3 * (len(str(x.numerator)) - len(str(x.denominator)) + 1)
    while _width(index) > x:
        index -= 1
    return index


def _at_least(x: Fraction) -> int:
    """Index of the smallest width that is at least x."""
    index = _at_most(x)
    return index if _width(index) == x else index + 1


def _pieces(low: Fraction, high: Fraction, near: int, far: int) -> Iterator[tuple[int, int, int]]:
    """Edges between low and high, as multiples from first to last of the width of an index.

    From 0 the widths are that of ``near``, from 50 times a width on that one, up to that of
    ``far``; on both sides of 0.
    """
    for index in range(near, far + 1):
        width = _width(index)
        start = _PARTS if index > near else 0
        # The end of a piece is the start of the next.
        end = math.inf if index == far else _PARTS * _width(index + 1) / width - 1
        for sign, left, right in ((1, low, high), (-1, -high, -low)):
            # 0 is on the first side alone.
            first = max(start, int(sign < 0), math.floor(left / width) + 1)
            last = int(min(end, math.ceil(right / width) - 1))
            if first <= last:
                yield (first, last, index) if sign > 0 else (-last, -first, index)


def _edges(lower: float, upper: float, pieces: list[tuple[int, int, int]]) -> FloatArray:
    inner: list[tuple[float, float]] = []
    for first, last, index in pieces:
        width = _width(index)
        # A quotient of whole numbers is the float nearest to the decimal number.
        numbers = (k * width.numerator / width.denominator for k in range(first, last + 1))
        inner += [(number, float(width)) for number in numbers]
    inner.sort()
    # No sliver at an end: its records lie in the bin beside it.
    while inner and inner[0][0] - lower < inner[0][1] / 2:
        del inner[0]
    while inner and upper - inner[-1][0] < inner[-1][1] / 2:
        del inner[-1]
    edges = np.array([lower, *(number for number, _ in inner), upper])
    edges.setflags(write=False)
    return edges


@functools.cache
def exponent_edges() -> FloatArray:
    """0 and 1, 2 and 5 times all powers of ten from 1e-100 to 1e100, of both signs.

    Cells of numbers of about the same size, for a column whose range is not known.
    """
    ends = [float(f"{digit}e{power}") for power in range(-100, 100) for digit in (1, 2, 5)]
    edges = np.array([*(-end for end in [1e100, *ends[::-1]]), 0.0, *ends, 1e100])
    edges.setflags(write=False)
    return edges
