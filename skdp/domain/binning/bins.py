"""Bins: where a range of numbers is cut, and the bin of each number."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._types import CodeArray, FloatArray, IntArray
from ...exceptions import DomainError
from ..values import MAX_BINS, MAX_INTEGER, as_float, as_int, digits, some
from .scales import Linear, Scale

__all__ = [
    "EvenBins",
    "UnevenBins",
    "bin_positions",
    "check_even_integers",
    "check_integer_bins",
    "check_real_bins",
    "declared_edges",
    "declared_range",
    "declared_special",
    "frozen",
    "scale_edges",
]


# Each is compared with every value.
_MOST_SPECIAL = 256


@dataclass(frozen=True)
class EvenBins:
    """Bins of equal width: the code of x is ``floor((x - lower) * bins / (upper - lower))``."""

    lower: float
    upper: float
    bins: int
    integer: bool

    @property
    def one_each(self) -> bool:
        """Whether there is a bin for each integer."""
        return self.integer and self.bins == self.upper - self.lower + 1

    def encode(self, x: FloatArray) -> CodeArray:
        """Bin of each number of the range; ``x`` is overwritten."""
        x = bin_positions(
            x,
            self.lower,
            self.upper,
            self.bins,
            one_each=self.one_each,
            divide=lambda numbers, divisor: np.divide(numbers, divisor, out=numbers),
        )
        codes = x.astype(np.int32)
        np.minimum(codes, self.bins - 1, out=codes)
        return codes

    def edges_at(self, positions: IntArray) -> NDArray[Any]:
        """Left ends of bins; at ``bins`` the end of the last (after ``upper`` for integers)."""
        if self.integer:
            return self._first_integer(positions)
        edges = self.lower + positions * ((self.upper - self.lower) / self.bins)
        return np.where(positions == self.bins, self.upper, edges)

    def _first_integer(self, positions: IntArray) -> IntArray:
        """Smallest integer in each bin: the formula solved for x, in exact arithmetic."""
        if self.one_each:
            return int(self.lower) + positions
        span = int(self.upper - self.lower)
        first = int(self.lower) - (-positions * span) // self.bins
        # The last bin is closed: it ends after `upper`.
        return np.where(positions == self.bins, int(self.upper) + 1, first)


@dataclass(frozen=True, eq=False)
class UnevenBins:
    """Bins between given edges: bin j is ``[edges[j], edges[j + 1])``, the last one closed.

    The last edge is ``upper``, or ``upper + 1`` for integers.
    """

    edges: NDArray[Any]

    @property
    def bins(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    def encode(self, x: FloatArray) -> CodeArray:
        """Bin of each number of the range."""
        return np.searchsorted(self.inner(), x, side="right").astype(np.int32)

    def edges_at(self, positions: IntArray) -> NDArray[Any]:
        """Left ends of bins; at ``bins`` the end of the last (after ``upper`` for integers)."""
        return self.edges[positions]

    def inner(self) -> FloatArray:
        """The edges between two bins."""
        return self.edges[1:-1].astype(np.float64)


def bin_positions(
    x: Any,
    lower: float,
    upper: float,
    bins: int,
    *,
    one_each: bool,
    divide: Callable[[Any, float], Any],
) -> Any:
    """Positions of numbers in units of bins of equal width: the integer part is the code.

    The one formula for arrays and for expressions of engines, which must agree bit for bit.

    Parameters
    ----------
    x : array of float64, which is overwritten, or expression
        Numbers within the range.
    one_each : bool
        Whether there is a bin for each integer.
    divide : callable
        How numbers are divided by a constant, rounded once.
    """
    x -= lower
    if not one_each:
        x *= float(bins)
        x = divide(x, upper - lower)
    return x


def declared_edges(given: Any, lower: Any, upper: Any, bins: Any, *, integer: bool) -> NDArray[Any]:
    """The edges of a declaration, as `UnevenBins` has them."""
    if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
        raise DomainError(f"edges must be a list of numbers, got {given!r}.")
    read = as_int if integer else as_float
    listed = [read(edge, f"edges[{place}]") for place, edge in enumerate(given)]
    if len(listed) < 2:
        raise DomainError(f"edges needs at least two numbers, got {listed!r}.")
    if len(listed) - 1 > MAX_BINS:
        raise DomainError(f"edges declare at most {MAX_BINS} bins.")
    for place, (left, right) in enumerate(zip(listed[:-1], listed[1:], strict=True)):
        if not left < right:
            raise DomainError(
                f"edges must increase, but edges[{place}]={digits(left)} is followed by "
                f"{digits(right)}. Sort them, and give each once."
            )
    for name, value, end in (("lower", lower, listed[0]), ("upper", upper, listed[-1])):
        if value is not None and as_float(value, name) != end:
            raise DomainError(
                f"{name}={value!r} differs from the {'first' if name == 'lower' else 'last'} of "
                f"edges, {digits(end)}. Leave it out: the range follows from edges."
            )
    if bins is not None and as_int(bins, "bins") != len(listed) - 1:
        raise DomainError(
            f"bins={bins!r}, but edges declare {len(listed) - 1} bins. Leave bins out."
        )
    if not math.isfinite(float(listed[-1]) - float(listed[0])):
        raise DomainError(
            f"The range from {listed[0]!r} to {listed[-1]!r} is too wide for float64."
        )
    if integer:
        if max(abs(listed[0]), abs(listed[-1])) > MAX_INTEGER:
            raise DomainError("edges of integers must lie within -2**53..2**53.")
        return np.array([*listed[:-1], listed[-1] + 1], dtype=np.int64)
    return np.array(listed, dtype=np.float64) + 0.0


def scale_edges(scale: Scale, lower: float, upper: float, bins: int, integer: bool) -> NDArray[Any]:
    """Edges that are equally far apart on a scale; each bin of integers holds at least one."""
    assert not isinstance(scale, Linear)
    end = upper + 1 if integer else upper
    places = np.linspace(0.0, float(scale.forward(np.float64(end))), bins + 1)
    # Twelve digits, because the last bits of a logarithm differ between machines.
    edges = np.array([float(f"{edge:.12g}") for edge in scale.inverse(places).tolist()])
    edges[0], edges[-1] = lower, end
    if not integer:
        _check_apart(edges, lower, upper)
        return edges
    whole = np.ceil(edges).astype(np.int64)
    # Where the scale cuts finer than integers, each bin gets one.
    steps = np.arange(bins + 1)
    whole = np.maximum.accumulate(whole - steps) + steps
    return np.minimum(whole, int(end) - bins + steps)


def _check_apart(edges: FloatArray, lower: float, upper: float) -> None:
    if (np.diff(edges) < 8 * np.spacing(np.maximum(np.abs(edges[:-1]), np.abs(edges[1:])))).any():
        raise DomainError(
            f"{len(edges) - 1} bins between {lower!r} and {upper!r} are narrower than float64 can "
            "tell apart; use fewer bins."
        )


def check_integer_bins(low: int, high: int, bins: int | None) -> int:
    """Number of bins over integers; None is one for each."""
    span = high - low
    if max(abs(low), abs(high)) > MAX_INTEGER or (span > MAX_BINS - 1 and bins is None):
        raise DomainError(
            f"The integers {low} to {high} are too many for one code each; bounds up to 2**53 "
            "with fewer bins are possible: give bins=, such as bins=32, with scale='log' where "
            "most values are small, or edges=[...]."
        )
    if bins is None:
        return span + 1
    if bins > span + 1:
        raise DomainError(
            f"bins={bins} exceeds the number of integers from {low} to {high} ({span + 1}): some "
            "bins would be empty. Use bins=None for one per integer."
        )
    return bins


def check_even_integers(low: int, high: int, bins: int) -> None:
    """Refuse what the formula of even bins cannot compute exactly."""
    if bins != high - low + 1 and bins * (high - low) >= MAX_INTEGER:
        raise DomainError(
            f"bins={bins} over the integers {low} to {high} cannot be computed exactly in "
            "float64; use fewer bins, or integer=False."
        )


def check_real_bins(low: float, high: float, bins: int) -> None:
    """Refuse even bins that float64 cannot tell apart."""
    span = high - low
    if not math.isfinite(span * bins):
        raise DomainError(f"The range from {low!r} to {high!r} is too wide for float64.")
    if span / bins < 8 * float(np.spacing(max(abs(low), abs(high)))):
        raise DomainError(
            f"{bins} bins between {low!r} and {high!r} are narrower than float64 can tell apart; "
            "use fewer bins."
        )


def frozen(cuts: NDArray[Any]) -> NDArray[Any]:
    """An array that cannot be changed."""
    cuts.setflags(write=False)
    return cuts


def declared_range(lower: Any, upper: Any, integer: bool) -> tuple[float, float]:
    """The range of a declaration."""
    for name, value in (("lower", lower), ("upper", upper)):
        if value is None:
            raise DomainError(
                f"{name} must be a number, got None: Numeric needs lower and upper, or edges. "
                "Declare the range that is publicly known; values beyond it are clipped. If nobody "
                "knows it, leave out both: a synthesizer can find it, for a part of epsilon."
            )
    low, high = as_float(lower, "lower"), as_float(upper, "upper")
    if low > high or (low == high and not integer):
        raise DomainError(f"Numeric needs lower < upper, got lower={lower!r} and upper={upper!r}.")
    if integer:
        return as_int(lower, "lower"), as_int(upper, "upper")
    return low, high


def declared_special(given: Any, integer: bool) -> tuple[float, ...]:
    """The special values as plain numbers, in the declared order."""
    if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
        raise DomainError(f"special must be a list of numbers, such as [0, 999], got {given!r}.")
    values = tuple(
        as_int(value, "A special value of integer=True")
        if integer
        else as_float(value, "A special value") + 0.0
        for value in given
    )
    repeated = [value for value in set(values) if values.count(value) > 1]
    if repeated:
        raise DomainError(f"special values must differ, but {some(repeated)} is repeated.")
    if len(values) > _MOST_SPECIAL:
        raise DomainError(
            f"special takes at most {_MOST_SPECIAL} values, got {len(values)}. Use a Categorical "
            "for columns with a list of values."
        )
    return values
