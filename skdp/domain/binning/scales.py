"""Scales: on which numbers are cut into bins of equal width, and spread evenly within a bin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ..._types import FloatArray, IntArray
from ...exceptions import DomainError
from ..values import MAX_INTEGER, as_float, as_int, digits

SCALES = ("linear", "log", "sqrt")

# From 0 on, a log scale is linear up to about this share of the range.
_LINEAR_SHARE = 1000.0


class Linear:
    """Numbers as they are."""

    def forward(self, x: Any) -> FloatArray:
        """Place on the scale of each number."""
        return np.asarray(x, dtype=np.float64)

    def inverse(self, t: Any) -> FloatArray:
        """Number at each place."""
        return np.asarray(t, dtype=np.float64)

    def density(self, x: Any) -> FloatArray:
        """Derivative of `forward`."""
        return np.ones(np.shape(x))

    def mean(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Mean of numbers between ``low`` and ``high`` whose places are uniform."""
        return low + (high - low) / 2


class LogScale:
    """``log(1 + (x - origin) / unit)``: ``log(x / origin)`` where both are the same.

    Parameters
    ----------
    origin, unit : float
    """

    def __init__(self, origin: float, unit: float) -> None:
        self.origin = origin
        self.unit = unit

    def forward(self, x: Any) -> FloatArray:  # noqa: D102
        return np.log1p(np.maximum(np.subtract(x, self.origin), 0.0) / self.unit)

    def inverse(self, t: Any) -> FloatArray:  # noqa: D102
        return self.origin + self.unit * np.expm1(t)

    def density(self, x: Any) -> FloatArray:  # noqa: D102
        return 1.0 / (np.maximum(np.subtract(x, self.origin), 0.0) + self.unit)

    def mean(self, low: FloatArray, high: FloatArray) -> FloatArray:  # noqa: D102
        base = low - self.origin + self.unit
        growth = (high - low) / base
        # growth / log1p(growth), which is 1 at 0.
        ratio = np.divide(growth, np.log1p(growth), out=np.ones_like(growth), where=growth > 0)
        return np.clip(self.origin - self.unit + base * ratio, low, high)


class SqrtScale:
    """``sqrt(x - origin)``.

    Parameters
    ----------
    origin : float
    """

    def __init__(self, origin: float) -> None:
        self.origin = origin

    def forward(self, x: Any) -> FloatArray:  # noqa: D102
        return np.sqrt(np.maximum(np.subtract(x, self.origin), 0.0))

    def inverse(self, t: Any) -> FloatArray:  # noqa: D102
        return self.origin + np.square(t)

    def density(self, x: Any) -> FloatArray:  # noqa: D102
        return 0.5 / np.maximum(self.forward(x), 1e-150)

    def mean(self, low: FloatArray, high: FloatArray) -> FloatArray:  # noqa: D102
        a, b = self.forward(low), self.forward(high)
        return np.clip(self.origin + (a * a + a * b + b * b) / 3, low, high)


Scale = Linear | LogScale | SqrtScale


def scale_of(name: str, lower: float, upper: float) -> Scale:
    """The scale of a declared name over a range."""
    if name not in SCALES:
        raise DomainError(f"scale must be 'linear', 'log' or 'sqrt', got {name!r}.")
    if name == "linear":
        return Linear()
    if name == "sqrt":
        return SqrtScale(lower)
    if lower < 0:
        raise DomainError(
            f"scale='log' needs lower >= 0, got lower={digits(lower)}. Use scale='sqrt', or a "
            "positive lower with the other values in special=[...], such as special=[0]."
        )
    if upper <= 0:
        raise DomainError(f"scale='log' needs upper > 0, got upper={digits(upper)}.")
    return LogScale(lower, lower if lower > 0 else upper / _LINEAR_SHARE)


# --- grids: the numbers that a column can hold, where these are multiples of a step


@dataclass(frozen=True)
class Grid:
    """The numbers ``(k * numerator + offset) / denominator`` for whole k from first to last.

    The quotient of integers below 2**53 is the float nearest to the decimal number.
    """

    first: int
    last: int
    numerator: int = 1
    offset: int = 0
    denominator: int = 1

    def value(self, k: Any) -> FloatArray:
        """Number at each place; places between two numbers are allowed."""
        return (np.asarray(k) * self.numerator + self.offset) / self.denominator

    def place(self, x: Any) -> FloatArray:
        """Place of each number, between two whole places where it is none of the grid."""
        return (np.asarray(x, dtype=np.float64) * self.denominator - self.offset) / self.numerator

    def at_least(self, x: Any) -> IntArray:
        """Place of the smallest number that is at least x; ``last + 1`` where there is none."""
        wanted = np.asarray(x, dtype=np.float64)
        near = np.clip(np.nan_to_num(np.ceil(self.place(wanted))), self.first, self.last + 1)
        k = near.astype(np.int64)
        # Rounding is off by one place at most; twice, to be safe.
        for _ in range(2):
            k = np.where((k > self.first) & (self.value(k - 1) >= wanted), k - 1, k)
            k = np.where((k <= self.last) & (self.value(k) < wanted), k + 1, k)
        return k

    def at_most(self, x: Any) -> IntArray:
        """Place of the largest number that is at most x; ``first - 1`` where there is none."""
        wanted = np.asarray(x, dtype=np.float64)
        k = self.at_least(wanted)
        return np.where((k <= self.last) & (self.value(k) == wanted), k, k - 1)

    def step(self) -> float:
        """Distance of two neighbours."""
        return self.numerator / self.denominator


def declared_grid(
    lower: float, upper: float, *, integer: bool, step: Any, decimals: Any
) -> tuple[Grid | None, float | int | None, int | None]:
    """The grid of a declaration, with ``step`` and ``decimals`` as plain numbers."""
    if step is None and decimals is None:
        return (Grid(int(lower), int(upper)) if integer else None), None, None
    if step is not None and decimals is not None:
        raise DomainError("step and decimals say the same: give one of them.")
    if decimals is not None:
        if integer:
            raise DomainError(
                f"integer=True has no decimals, got decimals={decimals!r}: leave one of them out."
            )
        places = as_int(decimals, "decimals")
        if not -15 <= places <= 15:
            raise DomainError(f"decimals must be in -15..15, got {decimals!r}.")
        width, origin, plain = Fraction(10) ** -places, Fraction(0), None
    else:
        plain = as_int(step, "step") if integer else as_float(step, "step")
        if plain <= 0:
            raise DomainError(f"step must be positive, got {step!r}.")
        # As written: 0.1 is a tenth.
        width, origin, places = Fraction(repr(plain)), Fraction(repr(lower)), None
    below = math.ceil((Fraction(repr(lower)) - origin) / width)
    above = math.floor((Fraction(repr(upper)) - origin) / width)
    if above < below:
        raise DomainError(
            f"No multiple of {digits(float(width))} lies between {digits(lower)} and "
            f"{digits(upper)}: use a smaller step, or more decimals."
        )
    denominator = math.lcm(width.denominator, origin.denominator)
    grid = Grid(below, above, int(width * denominator), int(origin * denominator), denominator)
    ends = [abs(k * grid.numerator + grid.offset) for k in (below - 1, above + 1)]
    if max(*ends, denominator, above - below) >= MAX_INTEGER:
        raise DomainError(
            f"The values from {digits(lower)} to {digits(upper)} in steps of "
            f"{digits(float(width))} are more than float64 can tell apart: use a larger step, or "
            "fewer decimals."
        )
    return grid, plain, places
