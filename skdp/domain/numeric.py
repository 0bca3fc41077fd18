"""Numeric: a range of numbers, cut into bins."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from .._arrays import run_starts
from .._types import CodeArray, FloatArray, IntArray
from ..exceptions import DomainError
from .attribute import MISSING_LABEL, Attribute, Level, halvings
from .reading import Column, LazyColumn
from .taxonomy import Taxonomy
from .values import MAX_BINS, MAX_INTEGER, as_flag, as_float, as_int, digits

__all__ = ["Numeric"]

DEFAULT_BINS = 32


# From this many bins on, intervals that grow with the distance from 0 are offered.
_LOG_BINS = 128


class Numeric(Attribute):
    """A range of numbers, cut into bins of equal width.

    The code of x is ``floor((x - lower) * bins / (upper - lower))`` in float64; the last bin is
    closed. Numbers outside the range, infinities included, are clipped to its ends.

    Parameters
    ----------
    lower, upper : float
        Publicly known range, both ends included. ``lower < upper``, except that an integer
        attribute may have a single value.
    bins : int, optional
        Number of bins. Default: one per integer if ``integer``, else 32.
    integer : bool, default=False
        Values are integers: fractions are rounded down first, and each bin holds the integers
        that the formula maps to it, about equally many, at least one. ``lower`` and ``upper``
        must be integers. Sampled values are integers too.
    nullable : bool, default=False
        Whether a missing value has a cell of its own, the last code. Otherwise records without
        this value are skipped.

    Attributes
    ----------
    size : int
        Number of codes, the missing cell included.
    inferred : bool
        Whether it was read from data, by `Domain.infer`; False if it was declared.

    Raises
    ------
    DomainError
        If the parameters declare no usable range.

    Examples
    --------
    >>> Numeric(17, 90, integer=True).size
    74
    >>> Numeric(0, 200_000, bins=50).labels()[:2]
    ['[0, 4000)', '[4000, 8000)']
    """

    lower: float
    upper: float
    bins: int
    integer: bool

    def __init__(
        self,
        lower: float,
        upper: float,
        bins: int | None = None,
        *,
        integer: bool = False,
        nullable: bool = False,
    ) -> None:
        integer = as_flag(integer, "integer")
        nullable = as_flag(nullable, "nullable")
        low, high = as_float(lower, "lower"), as_float(upper, "upper")
        if low > high or (low == high and not integer):
            raise DomainError(
                f"Numeric needs lower < upper, got lower={lower!r} and upper={upper!r}."
            )
        n_bins = None if bins is None else as_int(bins, "bins")
        if n_bins is not None and not 1 <= n_bins <= MAX_BINS:
            raise DomainError(f"bins must be in 1..{MAX_BINS}, got {bins!r}.")
        if integer:
            low, high = as_int(lower, "lower"), as_int(upper, "upper")
            n_bins = _check_integer_bins(low, high, n_bins)
        else:
            n_bins = DEFAULT_BINS if n_bins is None else n_bins
            _check_real_bins(low, high, n_bins)
        self._set(lower=low, upper=high, bins=n_bins, integer=integer, nullable=nullable)

    @property
    def n_values(self) -> int:
        """Number of bins."""
        return self.bins

    @property
    def _one_each(self) -> bool:
        return self.integer and self.bins == self.upper - self.lower + 1

    @property
    def edges(self) -> NDArray:
        """Bin j is ``[edges[j], edges[j + 1])``: array of shape (bins + 1,).

        float64, the last edge being ``upper``, which belongs to the last bin; for an integer
        attribute int64, the last edge being ``upper + 1``.
        """
        positions = np.arange(self.bins + 1)
        if self.integer:
            return self._first_integer(positions)
        edges = self.lower + positions * ((self.upper - self.lower) / self.bins)
        edges[-1] = self.upper
        return edges

    @property
    def centers(self) -> FloatArray:
        """Middle of each bin; for an integer attribute the mean of its integers."""
        edges = self.edges.astype(np.float64)
        return edges[:-1] + (np.diff(edges) - self.integer) / 2

    def _first_integer(self, positions: IntArray) -> IntArray:
        """Smallest integer in each bin: the formula solved for x, in exact arithmetic."""
        if self._one_each:
            return int(self.lower) + positions
        span = int(self.upper - self.lower)
        first = int(self.lower) - (-positions * span) // self.bins
        # The last bin is closed: it ends after `upper`.
        return np.where(positions == self.bins, int(self.upper) + 1, first)

    def encode(self, column: Column) -> CodeArray:  # noqa: D102
        return self._encode(self._numbers(column))

    def expression(self, column: LazyColumn) -> Any:  # noqa: D102
        missing = self.bins if self.nullable else -1
        return column.binned(
            float(self.lower), float(self.upper), self.bins, integer=self.integer, missing=missing
        )

    def _encode(self, values: FloatArray) -> CodeArray:
        # Clipping first changes no code and keeps infinities out of the arithmetic.
        x = np.clip(values, self.lower, self.upper)
        missing = np.isnan(x)
        some_missing = bool(missing.any())
        if some_missing:
            x[missing] = self.lower
        if self.integer:
            np.floor(x, out=x)
        x = bin_positions(
            x,
            self.lower,
            self.upper,
            self.bins,
            one_each=self._one_each,
            divide=lambda x, divisor: np.divide(x, divisor, out=x),
        )
        codes = x.astype(np.int32)
        np.minimum(codes, self.bins - 1, out=codes)
        if some_missing:
            codes[missing] = self.bins if self.nullable else -1
        return codes

    def decode(self, codes: ArrayLike, rng: np.random.Generator) -> pd.Series:  # noqa: D102
        positions = np.asarray(codes, dtype=np.int64)
        missing = positions >= self.bins
        positions = np.where(missing, 0, positions)
        if self.integer:
            first = self._first_integer(positions)
            width = self._first_integer(positions + 1) - first
            drawn: Any = first + rng.integers(0, width)
            if self.nullable:
                drawn = pd.array(drawn, dtype="Int64")
                drawn[missing] = pd.NA
            return pd.Series(drawn)
        step = (self.upper - self.lower) / self.bins
        values = self.lower + (positions + rng.random(len(positions))) * step
        # Rounding can carry a draw at an edge into the next bin; its bin's middle is safe.
        astray = self._encode(values) != positions
        values[astray] = self.lower + (positions[astray] + 0.5) * step
        values[missing] = np.nan
        return pd.Series(values)

    def labels(self) -> list[str]:  # noqa: D102
        if self._one_each:
            texts = [str(value) for value in self.edges[:-1]]
        else:
            edges = [digits(edge) for edge in self.edges.tolist()]
            texts = [f"[{low}, {high})" for low, high in zip(edges[:-1], edges[1:], strict=True)]
            if not self.integer:
                texts[-1] = texts[-1][:-1] + "]"
        return texts + [MISSING_LABEL] * self.nullable

    def span_label(self, start: int, stop: int) -> str:
        """Text for the values of the bins from ``start`` up to ``stop``, exclusive."""
        if self.integer:
            low, high = self._first_integer(np.array([start, stop])).tolist()
        else:
            step = (self.upper - self.lower) / self.bins
            low = self.lower + start * step
            high = self.upper if stop == self.bins else self.lower + stop * step
        closed = stop == self.bins and not self.integer
        return f"[{digits(low)}, {digits(high)}{']' if closed else ')'}"

    def hierarchy(self) -> tuple[Taxonomy, IntArray]:  # noqa: D102
        return Taxonomy.dyadic(self), np.arange(self.bins)

    def _families(
        self, limit: int, against_rest: bool
    ) -> Iterator[list[tuple[IntArray, list[str]]]]:
        codes = np.arange(self.bins, dtype=np.int64)
        yield [self._spans(groups) for groups in halvings(codes, self.bins, limit)]
        if self.bins < _LOG_BINS or not (self.upper >= 0 and self.lower <= self.upper / 100):
            return
        # In a finely divided range from about 0 (or below) to a large number, values often crowd
        # near 0: money, durations. Positions are on a scale that is linear within each octave of
        # the distance from 0 in bins: 0, 1, 2, 4, 8, ... bins away are equally far apart.
        zero = int(self._encode(np.zeros(1))[0])
        away = np.abs(codes - zero)
        octave = np.frexp(away.astype(np.float64))[1]
        start = np.where(away > 0, np.exp2(octave - 1.0), 0.0)
        position = octave + np.where(away > 0, (away - start) / np.maximum(start, 1.0), 0.0)
        position *= np.where(codes < zero, -1, 1)
        # A left edge belongs to the interval on its right, on both sides of 0.
        span = position[-1] + 1 - position[0]
        levels = []
        for depth in range(1, (limit if limit > 1 else 1).bit_length()):
            groups = np.floor((position - position[0]) / span * 2**depth).astype(np.int64)
            groups = np.unique(groups, return_inverse=True)[1].astype(np.int64)
            levels.append(self._spans(groups))
        yield levels

    def equal_parts(self, n_parts: int) -> Level:
        """Merge the bins into ``n_parts`` groups, as equal as possible.

        Parameters
        ----------
        n_parts : int
            At most the number of bins. The missing cell, if there is one, is a further group.
        """
        codes = np.arange(self.bins, dtype=np.int64)
        groups, texts = self._spans(codes * n_parts // self.bins)
        if self.nullable:
            return Level(np.append(groups, n_parts), [*texts, MISSING_LABEL])
        return Level(groups, texts)

    def _spans(self, groups: IntArray) -> tuple[IntArray, list[str]]:
        """Groups of consecutive bins with their labels."""
        starts = run_starts(groups)
        stops = np.append(starts[1:], self.bins)
        if self._one_each:
            values = (int(self.lower) + starts, int(self.lower) + stops - 1)
            texts = [
                str(low) if low == high else f"{low} to {high}"
                for low, high in zip(*(part.tolist() for part in values), strict=True)
            ]
        else:
            texts = [
                self.span_label(low, high)
                for low, high in zip(starts.tolist(), stops.tolist(), strict=True)
            ]
        return groups, texts

    def _refusal(self, kind: str) -> str | None:
        if kind in ("numeric", "boolean", "object", "null", "decimal"):
            return None
        if kind == "string":
            return (
                "is declared Numeric but holds text; convert it to numbers, or declare it "
                "Categorical"
            )
        if kind in ("temporal", "zoned"):
            return "is declared Numeric but holds dates or times; declare it Date or Datetime"
        if kind == "duration":
            return (
                "is declared Numeric but holds durations or times of the day; convert it to a "
                "number, such as minutes"
            )
        return "is declared Numeric but does not hold numbers; convert it to numbers"

    def number(self, value: Any, column: str) -> float | int:
        """A value of a query as a number; integers stay exact.

        Parameters
        ----------
        value : int or float
        column : str
            For messages.

        Raises
        ------
        ValueError
            If it cannot be compared with the column.
        """
        if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
            raise ValueError(
                f"Column {column!r} is numeric and cannot be compared with {value!r} of type "
                f"{type(value).__name__}."
            )
        if isinstance(value, numbers.Integral):
            return int(value)
        number = float(value)
        if math.isnan(number):
            raise ValueError(
                f"Column {column!r} cannot be compared with nan. For missing values ask for None, "
                "if the column is nullable."
            )
        return number

    def _numbers(self, column: Column) -> FloatArray:
        """Values on the number line, NaN where there is none."""
        return column.numbers()

    def _diagnose(self, column: Column) -> dict[str, int]:
        values = self._numbers(column)
        missing = int(np.isnan(values).sum())
        return {
            "below": int((values < self.lower).sum()),
            "above": int((values > self.upper).sum()),
            "to_other": 0,
            "to_missing": missing if self.nullable else 0,
            "skipped": 0 if self.nullable else missing,
        }

    def _to_data(self) -> dict[str, Any]:
        return {
            "type": "numeric",
            "lower": self.lower,
            "upper": self.upper,
            "bins": self.bins,
            "integer": self.integer,
            "nullable": self.nullable,
        }

    def _key(self) -> tuple[Any, ...]:
        return (self.lower, self.upper, self.bins, self.integer, self.nullable)

    def __repr__(self) -> str:
        parts = [digits(self.lower), digits(self.upper)]
        if not self._one_each:
            parts.append(f"bins={self.bins}")
        parts += [f"{name}=True" for name in ("integer", "nullable") if getattr(self, name)]
        return f"Numeric({', '.join(parts)})"


def bin_positions(
    x: Any,
    lower: float,
    upper: float,
    bins: int,
    *,
    one_each: bool,
    divide: Callable[[Any, float], Any],
) -> Any:
    """Positions of numbers in units of bins: the integer part is the code.

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


def _check_integer_bins(low: int, high: int, bins: int | None) -> int:
    span = high - low
    if max(abs(low), abs(high)) > MAX_INTEGER or span > MAX_BINS - 1 and bins is None:
        raise DomainError(
            f"The integers {low} to {high} are too many for one code each; bounds up to 2**53 "
            "with fewer bins are possible: give bins=."
        )
    if bins is None:
        return span + 1
    if bins > span + 1:
        raise DomainError(
            f"bins={bins} exceeds the number of integers from {low} to {high} ({span + 1}): some "
            "bins would be empty. Use bins=None for one per integer."
        )
    if bins != span + 1 and bins * span >= MAX_INTEGER:
        raise DomainError(
            f"bins={bins} over the integers {low} to {high} cannot be computed exactly in "
            "float64; use fewer bins, or integer=False."
        )
    return bins


def _check_real_bins(low: float, high: float, bins: int) -> None:
    span = high - low
    if not math.isfinite(span * bins):
        raise DomainError(f"The range from {low!r} to {high!r} is too wide for float64.")
    if span / bins < 8 * float(np.spacing(max(abs(low), abs(high)))):
        raise DomainError(
            f"{bins} bins between {low!r} and {high!r} are narrower than float64 can tell apart; "
            "use fewer bins."
        )
