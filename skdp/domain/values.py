"""Plain values: categories, numbers and flags as they are declared."""

from __future__ import annotations

import enum
import math
import numbers
import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from .._keys import key_of, number_of_text
from ..exceptions import DomainError

Category: TypeAlias = str | int | bool | float


# An array over the codes of a column must fit into memory.
MAX_BINS = 2**24


# Integers up to this are exact in float64, in which every engine computes bins.
MAX_INTEGER = 2**53


def refuse_placeholder(value: Any, what: str) -> None:
    """Refuse the dots that `Domain.propose` leaves to be filled in, in code or in JSON."""
    if value is ... or (isinstance(value, str) and value == "..."):
        raise DomainError(
            f"{what} is still `...`, a placeholder. Replace it by what is publicly known, never by "
            "what the records hold."
        )


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
    if isinstance(value, bool):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    raise DomainError(
        f"{what} {value!r} has type {type(value).__name__}; categories must be str, int, bool or "
        "finite float. Convert it to text, here and in the data; for gaps use nullable=True."
    )


def plain_text(value: str, what: str) -> str:
    """A str that every library can store."""
    if any("\ud800" <= sign <= "\udfff" for sign in value):
        raise DomainError(f"{what} {value!r} is not valid Unicode text: half of a surrogate pair.")
    return str(value)


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
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        how = "Declare the range that is publicly known; values beyond it are clipped."
        raise DomainError(f"{name} must be finite, got {value!r}. {how}")
    return number + 0.0  # no negative zero


def as_list(value: Any, name: str) -> list[Any]:
    """A declared list of values."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        kind = type(value).__name__
        raise DomainError(f"{name} must be a list of values, got {value!r} of type {kind}.")
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


def is_missing(value: Any) -> bool:
    """Whether one value stands for "no value": None, NaN, NaT, pandas.NA; no text does."""
    return not issubclass(type(value), str) and key_of(value) is None


def number_in(value: Any) -> float:
    """The number that a value is or that its text writes, also as people write it; else NaN."""
    if type(value) is float:
        return value
    if issubclass(type(value), str):
        # What a subclass of text does when it is read would depend on a value.
        return number_written(str.__str__(value))
    key = key_of(value)
    return key if isinstance(key, float) else math.nan


# Numbers as people write them: a sign or brackets, a sign of money before or after, groups of three
# digits, decimals. The decimal mark decides what stands between groups.
_MONEY = "[$€£¥]"
_WRITTEN = {
    mark: re.compile(
        rf"(?P<minus>[-\u2212(]|\+)?\s?{_MONEY}?\s?(?P<low>[-\u2212])?"
        rf"(?P<whole>\d{{1,3}}(?P<between>[{groups}'\u2019\s])\d{{3}}(?:(?P=between)\d{{3}})*|\d*)"
        rf"(?:{re.escape(mark)}(?P<part>\d*))?(?P<power>[eE][-+]?\d+)?\s?(?:{_MONEY}|%)?\)?"
    )
    for mark, groups in ((".", ","), (",", "."))
}


def number_written(text: str, decimal: str = ".") -> float:
    """The number that a text writes, NaN if it writes none: a map of the text alone.

    Parameters
    ----------
    text : str
        As Python reads floats, and with groups of three digits, signs of money, a percent sign
        (which is left out: 5% is 5), and brackets around negative numbers.
    decimal : {".", ","}, default="."
        With a decimal comma, a point stands between groups.
    """
    if decimal == "." or text.strip().lower() in ("true", "false"):
        read = number_of_text(text)
        if read is not None:
            return read
    found = _WRITTEN[decimal].fullmatch(text.strip()) if len(text) < 64 else None
    if found is None or not (found["whole"] or found["part"]):
        return math.nan
    bracket = found["minus"] == "("
    if bracket != text.rstrip().endswith(")") or (found["low"] and found["minus"]):
        return math.nan
    digits = "".join(d for d in found["whole"] if d.isdigit())
    size = float(f"{digits or 0}.{found['part'] or 0}{found['power'] or ''}")
    return -size if found["low"] or (found["minus"] or "+") not in "+" else size
