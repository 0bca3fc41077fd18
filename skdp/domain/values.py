"""Plain values: categories, numbers and flags as they are declared; gaps that are filled."""

from __future__ import annotations

import enum
import math
import numbers
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from .._validation import as_number, plain_text
from ..exceptions import DomainError

Category: TypeAlias = str | int | bool | float


# An array over the codes of a column must fit into memory.
MAX_BINS = 2**24


# Integers up to this are exact in float64, in which every engine computes bins.
MAX_INTEGER = 2**53


def refuse_placeholder(value: Any, what: str) -> None:
    """Refuse the dots that `Domain.propose` leaves to be filled in, in code or in JSON."""
    if value is ... or (isinstance(value, str) and value == "..."):
        how = "Replace it by what is publicly known, never by what the records hold."
        raise DomainError(f"{what} is still `...`, a placeholder. {how}")


def plain_category(value: Any, what: str) -> Category:
    """A category as a plain Python value; members of an Enum stand for their values."""
    if value is ...:
        refuse_placeholder(value, what)
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, np.bool_ | np.number):
        value = value.item()
    if isinstance(value, str):
        return plain_text(value, what)
    if isinstance(value, numbers.Integral):
        return value if isinstance(value, bool) else int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    how = "Convert it to text, here and in the data; for gaps use nullable=True."
    kinds = "categories must be str, int, bool or finite float"
    raise DomainError(f"{what} {value!r} has type {type(value).__name__}; {kinds}. {how}")


def as_int(value: Any, name: str) -> int:
    """A declared integer."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return int(value)
    number = as_float(value, name)
    if number != math.floor(number):
        raise DomainError(f"{name} must be an integer, got {value!r}.")
    return int(number)


def as_float(value: Any, name: str) -> float:
    """A declared finite number."""
    refuse_placeholder(value, name)
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise DomainError(f"{name} must be a number, got {value!r} of type {type(value).__name__}.")
    number = as_number(value, name)
    if not math.isfinite(number):
        how = "Declare the range that is publicly known; values beyond it are clipped."
        raise DomainError(f"{name} must be finite, got {value!r}. {how}")
    return number + 0.0  # no negative zero


def as_list(value: Any, name: str) -> list[Any]:
    """A declared list of values."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise DomainError(f"{name} must be a list of values, got {value!r}.")
    return list(value)


def as_flag(value: Any, name: str) -> bool:
    """A declared truth value."""
    if not isinstance(value, bool | np.bool_):
        raise DomainError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def digits(value: float) -> str:
    """Shortest text of a number, integers without a decimal point."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return repr(value)


def some(values: Sequence[Any], limit: int = 8) -> str:
    """A few values, for messages and reprs."""
    more = len(values) - limit
    return ", ".join(repr(v) for v in values[:limit]) + (f", ... ({more} more)" if more > 0 else "")
