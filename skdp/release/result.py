"""Results: an answer with its error bar, and how numbers with an error are written."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, overload

import numpy as np

_Query = str | Mapping[Any, Any] | None


@dataclass(frozen=True, repr=False)
class QueryResult:
    """An answer with its error bar; ``float(result)`` is the value.

    Attributes
    ----------
    value : float
        The answer; never clamped, so a count may be negative. NaN for a statistic of no records.
        Of dates a Timestamp, of an ordered categorical a category; so are the ends.
    std : float
        Standard deviation of the noise in it; an upper bound where several measurements were
        combined. Of dates a Timedelta; NaN where nothing is known of it.
    lower, upper : float
        Ends of the interval; never beyond what is possible, such as a count below zero.
    guarantee : str
        What the interval covers, in words.
    sampling_std : float, default=0.0
        With ``interval="population"``, the standard deviation of the statistic over random samples
        of as many records. The interval covers it and the noise.
    """

    value: Any
    std: Any
    lower: Any
    upper: Any
    guarantee: str
    sampling_std: Any = 0.0

    def __float__(self) -> float:
        return float(self.value)

    def __repr__(self) -> str:
        value, lower, upper = self._shown()
        return f"QueryResult({value}, interval {lower} to {upper})"

    def _repr_html_(self) -> str:
        value, lower, upper = map(html.escape, self._shown())
        return (
            f"<b>{value}</b> <span>({lower} to {upper})</span>"
            f"<details><summary>what the interval covers</summary>"
            f"{html.escape(self.guarantee)}</details>"
        )

    def _shown(self) -> tuple[str, str, str]:
        """The three numbers, in digits that the error does not make meaningless."""
        numbers = self.value, self.lower, self.upper
        if not all(isinstance(each, float | int | np.number) for each in numbers):
            return str(self.value), str(self.lower), str(self.upper)
        reach = max(self.upper - self.value, self.value - self.lower)
        if math.isnan(reach):
            reach = self.upper - self.lower
        value, lower, upper = (rounded_to(each, reach) for each in numbers)
        return value, lower, upper


def rounded_to(number: float, error: float) -> str:
    """A number as text, without the digits below the first three of its error."""
    if not (math.isfinite(number) and math.isfinite(error) and error > 0):
        return f"{number:,.6g}"
    decimals = 2 - math.floor(math.log10(error))
    return f"{round(number, decimals) + 0.0:,.{min(max(decimals, 0), 15)}f}"


# --- what type checkers know of a statistic: one query has one answer, with its interval or without


class _OfRecords(Protocol):
    @overload
    def __call__(
        self, query: _Query = None, *, return_interval: Literal[True], **how: Any
    ) -> QueryResult: ...
    @overload
    def __call__(
        self, query: _Query = None, *, return_interval: Literal[False] = False, **how: Any
    ) -> float: ...
    @overload
    def __call__(self, query: Any, **how: Any) -> Any: ...


class _OfColumn(Protocol):
    @overload
    def __call__(
        self, column: str, query: _Query = None, *, return_interval: Literal[True], **how: Any
    ) -> QueryResult: ...
    @overload
    def __call__(self, column: Any = None, query: Any = None, **how: Any) -> Any: ...


def of_records(method: Callable[..., Any]) -> _OfRecords:
    """Mark a method that answers ``query``; it stays as it is."""
    return method


def of_a_column(method: Callable[..., Any]) -> _OfColumn:
    """Mark a method that answers ``column, query``; it stays as it is."""
    return method
