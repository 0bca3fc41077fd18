"""`QueryResult`: an answer with its error bar; text for codes and ranges of codes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..domain import Categorical, Numeric


def range_label(attribute: Numeric | Categorical, start: int, stop: int) -> str:
    """Text for the codes from start to stop (exclusive)."""
    if stop - start == attribute.size > 1:
        return "any"
    labels, last = attribute.labels(), min(stop, attribute.n_values)
    if isinstance(attribute, Categorical):
        shown = labels[start:last]
        if attribute.ordered and len(shown) > 1:
            shown = [f"{shown[0]} to {shown[-1]}"]
        elif len(shown) > 5:
            shown = [*shown[:3], f"... ({len(shown)} in all)"]
        texts = [", ".join(shown)] if shown else []
    else:
        texts = labels[max(start, attribute.bins) : last]
        if start < attribute.bins:
            texts.insert(0, attribute.span_label(start, min(last, attribute.bins)))
    return " or ".join([*texts, *["missing"] * (stop > last)])


def group_labels(attribute: Numeric | Categorical) -> list[Any]:
    """The value shown for each code in a table of groups; None for the missing cell."""
    if isinstance(attribute, Categorical):
        labels = list(attribute.categories)
    else:
        edges: list[Any] = attribute.shown(attribute.edges).tolist()
        bins = pd.IntervalIndex.from_breaks(edges, closed="left")
        special = attribute.shown(np.array(attribute.special)).tolist()
        labels = [*(edges[:-1] if attribute.one_each else bins), *special]
    return labels + [None] * attribute.nullable


# ------------------------------------------------------------------------------------------------
# Results: an answer with its error bar, and how numbers with an error are written.


@dataclass(frozen=True, repr=False, slots=True)
class QueryResult:
    """An answer with its error bar; ``float(result)`` is the value.

    Attributes
    ----------
    value : float
        The answer; never clamped, so a count may be negative, though what is printed of it lies in
        the interval. NaN for a statistic of no records.
        Of dates a Timestamp, of an ordered categorical a category; so are the ends.
    std : float
        Standard deviation of the error of the answer: the noise, and what else the release covers;
        of functions of several answers that of a normal law with the same interval. Of dates a
        Timedelta; NaN where nothing is known of it.
    lower, upper : float
        Ends of the interval; never beyond what is possible, such as a count below zero. They are
        equal only where the answer is certain.
    guarantee : str
        What the interval covers, in words.
    sampling_std : float, default=0.0
        Of private scores, their standard deviation over random samples of as many records, which
        the interval covers beside the noise.
    """

    value: Any
    std: Any
    lower: Any
    upper: Any
    guarantee: str
    sampling_std: Any = 0.0

    def __float__(self) -> float:
        return float(self.value)

    @property
    def shown(self) -> Any:
        """The value as it is printed: moved into its interval, where the value itself is linear."""
        if isinstance(self.value, float | int | np.number) and self.lower <= self.upper:
            return min(max(self.value, self.lower), self.upper)
        return self.value

    def __str__(self) -> str:
        value, lower, upper = self._shown()
        return f"{value} [{lower}, {upper}]"

    def __repr__(self) -> str:
        value, lower, upper = self._shown()
        return f"QueryResult({value}, interval {lower} to {upper})"

    def _shown(self) -> list[str]:
        """The three numbers, in digits that the error does not make meaningless."""
        numbers = [self.shown, self.lower, self.upper]
        if not all(isinstance(each, float | int | np.number) for each in numbers):
            if isinstance(self.lower, pd.Timestamp):
                step = "D" if self.upper - self.lower > pd.Timedelta(2, "D") else "s"
                numbers = [each.round(step) for each in numbers]
            return [str(each).removesuffix(" 00:00:00") for each in numbers]
        reach = max(self.upper - self.value, self.value - self.lower)
        if math.isnan(reach):
            reach = self.upper - self.lower
        return [rounded_to(each, reach) for each in numbers]


class Answer(float):
    """An answer as a number, which prints its interval; it computes as any other float."""

    __slots__ = ("_ask",)
    _ask: Callable[[], QueryResult]

    def __new__(cls, value: float, ask: Callable[[], QueryResult]) -> Answer:  # noqa: D102
        made = super().__new__(cls, value)
        made._ask = ask
        return made

    @property
    def interval(self) -> QueryResult:
        """The answer with its interval, found when it is asked for."""
        return self._ask()

    def __str__(self) -> str:
        try:
            return str(self._ask())
        except ValueError:
            # The release does not describe its noise.
            return repr(self)

    def __reduce__(self) -> Any:
        return float, (float(self),)


def rounded_to(number: float, error: float) -> str:
    """A number as text, without the digits below the first two of its error."""
    if not (math.isfinite(number) and math.isfinite(error) and error > 0):
        return f"{number:,.6g}"
    decimals = 1 - math.floor(math.log10(error))
    return f"{round(number, decimals) + 0.0:,.{min(max(decimals, 0), 15)}f}"
