"""Scales: on which numbers are cut into bins of equal width, and spread evenly within a bin."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._types import FloatArray
from ...exceptions import DomainError
from ..values import digits

__all__ = ["SCALES", "Linear", "LogScale", "Scale", "SqrtScale", "scale_of"]

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
