"""Bounds and values as schemas write them: text that stands for numbers and dates."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable
from typing import Any

from ...exceptions import DomainError

__all__ = ["after", "before", "cast", "number", "same_text"]

_NUMBER = re.compile(r"[-+]?(\d{1,3}(,\d{3})+(\.\d*)?|[\d_]*\d\.?\d*|\.\d+)([eE][-+]?\d+)?")
_LONGEST = 400


def number(text: str) -> int | float | None:
    """The number that a text writes, such as "-5", "1,000", "$2.50", "1e3"; None if it is none."""
    text = re.sub(r"^([-+]?)\s*[$€£]\s*", r"\1", text.strip().replace("−", "-"))
    text = re.sub(r"\s*[%€£]$", "", text)
    if len(text) > _LONGEST or not _NUMBER.fullmatch(text):
        return None
    plain = text.replace(",", "").replace("_", "")
    if re.fullmatch(r"[-+]?\d+", plain):
        return int(plain)
    value = float(plain)
    return value if math.isfinite(value) else None


def cast(value: Any, kind: str, where: str, pattern: str | None = None) -> Any:
    """A bound of a schema as the kind of its column asks: a number, or ISO text of a date.

    Raises
    ------
    DomainError
        If it is none.
    """
    if value is None:
        return None
    if kind in ("date", "datetime"):
        return _moment(value, where, pattern)
    if isinstance(value, str):
        found = number(value)
        if found is None:
            raise DomainError(f"{where}: {value!r} is not a number.")
        value = found
    if isinstance(value, float) and kind == "integer" and value.is_integer():
        return int(value)
    return value


def _moment(value: Any, where: str, pattern: str | None) -> Any:
    if not isinstance(value, str) or pattern is None:
        if isinstance(value, int | float) and not isinstance(value, bool):
            raise DomainError(f"{where}: {value!r} is not a date. Write it as 2020-01-31.")
        return value
    try:
        return datetime.datetime.strptime(value, pattern).isoformat()
    except ValueError as error:
        raise DomainError(
            f"{where}: {value!r} is not a date in the format {pattern!r} ({error})."
        ) from None


def after(bound: Any, kind: str) -> Any:
    """The closed lower bound for one that is not itself allowed."""
    return bound + 1 if kind == "integer" and isinstance(bound, int) else bound


def before(bound: Any, kind: str) -> Any:
    """The closed upper bound for one that is not itself allowed."""
    return bound - 1 if kind == "integer" and isinstance(bound, int) else bound


def same_text(values: Iterable[Any]) -> set[str]:
    """Values as text, for comparing what files write in different ways."""
    return {str(value).strip() for value in values}
