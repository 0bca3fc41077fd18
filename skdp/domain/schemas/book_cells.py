"""What a person writes into the cells of a code book: ranges, lists of values, yes and no."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from typing import Any

from ...exceptions import DomainError
from .bounds import number

__all__ = ["Coded", "Span", "as_span", "as_values", "as_yes_no", "plain", "plain_list"]

_DATE = r"\d{4}-\d{2}(?:-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?)?"
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d*)?|[\d_]*\d(?:\.\d*)?|\.\d+)"
_NUMBER = rf"[-+−]?\s?[$€£]?{_DIGITS}(?:[eE][-+]?\d+)?\s?[%€£]?"
_BETWEEN = r"\s*(?:\.\.\.?|…|–|—|;|:|/|\bto\b|\bthrough\b|\buntil\b|-)\s*"
_DATES = re.compile(rf"({_DATE}){_BETWEEN.replace(':|', '')}({_DATE})")
_NUMBERS = re.compile(rf"({_NUMBER}){_BETWEEN.replace('/|', '')}({_NUMBER})")
# Within brackets, and only there, a comma stands between two numbers before it groups thousands.
_COMMA = re.compile(r"\s*([^,;]*?)\s*,\s*([^,;]*?)\s*")
_BRACKETS = re.compile(r"([\[(\]])(.*)([\])\[])")
_ONE_SIDED = re.compile(r"(>=|≥|=>|>|<=|≤|=<|<)\s*(.+)|(.+?)\s*(\+|\bor more\b|\bor less\b)")

_YES = frozenset("yes y true t 1 x ok allowed optional possible nullable blank null na nan".split())
_NO = frozenset("no n false f 0 - none never required mandatory not".split())

# A cell longer than this is no range.
_LONGEST_RANGE = 80


@dataclass(frozen=True)
class Span:
    """A range as it is written: texts of its ends, None where it is open."""

    low: str | None
    high: str | None
    without_low: bool = False
    without_high: bool = False


@dataclass(frozen=True)
class Coded:
    """A value and its label, both as they are written."""

    value: str
    label: str | None = None


def as_span(text: str, *, listed: bool = False) -> Span | None:
    """A range such as ``0-99``, ``0..99``, ``0 to 99``, ``[0, 99]`` or ``>= 0``, or None.

    Ends are numbers or ISO dates; brackets that are turned outward or round leave an end out.

    Parameters
    ----------
    text : str
    listed : bool, default=False
        Whether two numbers with a comma or semicolon between them are a list, not a range.
    """
    text = text.strip()
    if not text or len(text) > _LONGEST_RANGE:
        return None
    bracketed = _BRACKETS.fullmatch(text)
    if bracketed:
        inside = bracketed[2].strip()
        pair = _COMMA.fullmatch(inside)
        ends = pair.groups() if pair and all(map(_is_end, pair.groups())) else _two(inside)
        if ends is None:
            return None
        return Span(ends[0], ends[1], bracketed[1] != "[", bracketed[3] != "]")
    if listed and re.search(r"[,;]\s*[-+\d]", re.sub(r"\d,\d{3}\b", "0", text)):
        return None
    ends = _two(text)
    if ends is not None:
        return Span(*ends)
    pair = _COMMA.fullmatch(text)
    if not listed and pair and all(map(_is_end, pair.groups())) and number(text) is None:
        return Span(pair[1], pair[2])
    return _one_sided(text)


def _is_end(text: str) -> bool:
    return bool(re.fullmatch(_DATE, text)) or number(text) is not None


def _two(text: str) -> tuple[str, str] | None:
    for pattern in (_DATES, _NUMBERS):
        match = pattern.fullmatch(text)
        if match:
            return match[1].strip(), match[2].strip()
    return None


def _one_sided(text: str) -> Span | None:
    match = _ONE_SIDED.fullmatch(text)
    if match is None:
        return None
    sign, end = (match[1], match[2]) if match[1] else (match[4], match[3])
    end = end.strip()
    if not _is_end(end):
        return None
    if sign in (">=", "≥", "=>", ">", "+", "or more"):
        return Span(end, None, without_low=sign == ">")
    return Span(None, end, without_high=sign == "<")


def as_values(text: str) -> list[Coded]:
    """A list of values such as ``1=Male; 2=Female``, ``a|b|c`` or ``1, Yes | 2, No``.

    The separator is the first of a new line, ``|``, ``;`` and a comma that occurs; quotes keep one.
    A label follows ``=``, ``:`` or `` - ``; between ``|`` or lines it may follow a comma.

    Raises
    ------
    DomainError
        If quotes are not closed.
    """
    text = text.strip().strip("{}").strip()
    bare = re.sub(r'"[^"]*"', "", text)
    separator = next((mark for mark in ("\n", "|", ";", ",") if mark in bare), ";")
    try:
        parts = _split(text, separator)
    except csv.Error as error:
        raise DomainError(f"the list {text[:60]!r} cannot be split ({error})") from None
    items = [part.strip() for part in parts if part.strip()]
    marks = ["=", ":"] + ([","] if separator in "\n|" else [])
    if len(items) > 1 and all(" - " in item for item in items):
        return [_coded(item, " - ") for item in items]
    for mark in marks:
        # Every value has a label, or none has: a colon may be part of a category.
        if items and all(mark in item.strip(mark) for item in items):
            return [_coded(item, mark) for item in items]
    return [_coded(item, "=") if "=" in item.strip("=") else Coded(item) for item in items]


def _split(text: str, separator: str) -> list[str]:
    if separator == "\n":
        return text.splitlines()
    csv_rows = csv.reader([text.replace("\n", " ")], delimiter=separator, skipinitialspace=True)
    return next(csv_rows, [])


def _coded(item: str, mark: str) -> Coded:
    value, _, label = item.partition(mark)
    return Coded(value.strip().strip('"'), label.strip().strip('"') or None)


def as_yes_no(text: str) -> bool | None:
    """Whether a cell says yes; None if it says something else. An empty cell says no."""
    word = text.strip().casefold()
    if not word or word in _NO:
        return False
    return True if word in _YES else None


def plain(text: str) -> Any:
    """A value as a reader of CSV files takes it: a number where it is written like one."""
    if re.fullmatch(r"-?(0|[1-9]\d{0,17})", text):
        return int(text)
    if re.fullmatch(r"-?(0|[1-9]\d*)\.\d+", text) and len(text) < 30:
        return float(text)
    return text


def plain_list(texts: list[str]) -> list[Any]:
    """Values of one column: numbers if all are, truth values if all are, else text."""
    words = [text.casefold() for text in texts]
    if texts and set(words) <= {"true", "false"}:
        return [word == "true" for word in words]
    values = [plain(text) for text in texts]
    return texts if any(isinstance(value, str) for value in values) else values
