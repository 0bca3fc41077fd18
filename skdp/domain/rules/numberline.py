"""What rules need to know of numbers: the values of each code, and which lines they are on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._validation import FloatArray
from ...exceptions import DomainError
from ..bins import Points
from ..categorical import Categorical
from ..dates import Date, Datetime
from ..numeric import Numeric
from .declared import AtMost


def spans(attribute: Numeric | Categorical) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest number of each code; nan for the missing cell.

    Parameters
    ----------
    attribute : Numeric, or Categorical whose categories are numbers
    """
    if isinstance(attribute, Categorical):
        values = np.full(attribute.size, np.nan)
        values[: attribute.n_values] = [float(value) for value in attribute.categories]
        return values, values
    return attribute.span(np.arange(attribute.size))


def number_of(attribute: Numeric, value: Any) -> float | None:
    """Place of a declared value on the number line; None if it has none there."""
    if isinstance(attribute, Date | Datetime):
        try:
            return float(attribute.number(value, ""))
        except ValueError:
            return None
    return None if isinstance(value, str | bool) else float(value)


def code_of(attribute: Numeric | Categorical, value: Any) -> int | None:
    """The code that stands for a declared value alone; None if there is none."""
    if isinstance(attribute, Categorical):
        try:
            return attribute.index_of(value)
        except KeyError:
            return None
    number = number_of(attribute, value)
    if number is None:
        return None
    low, high = spans(attribute)
    alone = np.flatnonzero((low == number) & (high == number))
    return int(alone[-1]) if len(alone) else None


def line_of(attribute: Numeric | Categorical) -> tuple[Any, ...] | None:
    """What tells number lines apart; None for categories that are not numbers."""
    if isinstance(attribute, Categorical):
        plain = all(not isinstance(value, str | bool) for value in attribute.categories)
        return ("number",) if plain else None
    if isinstance(attribute, Date | Datetime):
        return type(attribute).__name__, attribute.unit, attribute.tz
    return ("number",)


def grid_of(attribute: Numeric | Categorical) -> tuple[Any, ...]:
    """What tells grids of values apart: integers, multiples of a step, all numbers."""
    if isinstance(attribute, Categorical):
        return ("categories", attribute.categories)
    contents = attribute.contents
    if not isinstance(contents, Points):
        return ("numbers",)
    grid = contents.grid
    apart = [x for x in attribute.special if grid.at_most(x) != grid.at_least(x)]
    return ("grid", grid.numerator, grid.offset % grid.numerator, grid.denominator, *apart)


def check_same_line(rule: AtMost, one: Any, other: Any) -> None:
    """Refuse a comparison of columns whose values have no common order."""
    lines = line_of(one), line_of(other)
    for name, line in zip((rule.column, rule.bound), lines, strict=True):
        if line is None:
            raise DomainError(
                f"{rule!r}: column {name!r} holds text or flags, which have no place on a number "
                "line. Use forbid() for combinations of categories."
            )
    if lines[0] != lines[1]:
        words = [" ".join(filter(None, line)) for line in lines]  # type: ignore[arg-type]
        raise DomainError(
            f"{rule!r} compares columns on different number lines, {words[0]!r} and {words[1]!r}. "
            "Declare both in the same way, for dates with the same unit."
        )


def check_chains(above: Mapping[str, Sequence[str]], declared: Mapping[str, Any]) -> None:
    """Refuse chains of `at_most` in which a value between two others may not exist.

    Between 5.6 and 5.9 there is a number, but no integer: a column that has others below it and
    above it must be on their grid of values.
    """
    for column, bounds in above.items():
        below = [other for other, others in above.items() if column in others]
        chain = [*below, column, *bounds]
        if below and len({grid_of(declared[name]) for name in chain}) > 1:
            raise DomainError(
                f"Rules of at_most put {column!r} between {below[0]!r} and {bounds[0]!r}, but "
                "their values are not on one grid (integers, multiples of one step, or all "
                "numbers), so there may be none between two others. Declare the columns of a "
                "chain alike, or leave out one of its rules."
            )
