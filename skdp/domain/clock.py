"""Clock: the number line of dates, whole units since 1970, and moments as users write them.

A moment is an integer: microseconds since 1970-01-01T00:00, in UTC where that is declared, else in
wall-clock time.
"""

from __future__ import annotations

import datetime
import functools
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._foreign import reraise_interrupts
from .._keys import DAY, FURTHEST, moment_of, moment_of_text, zone_offset
from .._validation import BoolArray, IntArray
from ..exceptions import DomainError
from .values import is_missing, number_meant

# Units of fixed length, in microseconds.
FIXED = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": DAY,
    "week": 7 * DAY,
}

# Units of the calendar, in months.
MONTHS = {"month": 1, "quarter": 3, "year": 12}

UNITS = (*FIXED, *MONTHS)


# ISO 8601, extended and basic.
_ZONE = r"Z|[+-]\d\d(?::?\d\d)?"
_ZONED = re.compile(rf"(?:{_ZONE})\s*$", re.ASCII)
_BASIC = re.compile(
    r"(?P<Y>\d{4})(?P<m>\d\d)(?P<d>\d\d)"
    rf"(?:T(?P<H>\d\d)(?P<M>\d\d)(?:(?P<S>\d\d))?(?P<z>{_ZONE})?)?",
    re.ASCII,
)

# What the letters of a declared format stand for. Names of months and days are English on every
# machine, where `strptime` follows the settings of the system.
_LETTERS = {
    "Y": r"\d{4}",
    "y": r"\d\d",
    "m": r"\d{1,2}",
    "d": r"\d{1,2}",
    "b": r"[A-Za-z]{3,9}\.?",
    "a": r"[A-Za-z]{3,9}\.?",
    "H": r"\d{1,2}",
    "I": r"\d{1,2}",
    "M": r"\d{1,2}",
    "S": r"\d{1,2}",
    "f": r"\d{1,9}",
    "p": r"[AaPp]\.?[Mm]\.?",
    "z": _ZONE,
}
_MONTH_NAMES = (
    "january february march april may june july august september october november december"
).split()

# Text for a whole month, quarter or year, read where the unit is no finer.
_PARTS = {
    re.compile(r"(\d{4})-(\d\d)", re.ASCII): ("month", 1),
    re.compile(r"(\d{4})-Q([1-4])", re.ASCII): ("quarter", 3),
    re.compile(r"(\d{4})", re.ASCII): ("year", 12),
}


def unit_number(micros: Any, unit: str) -> Any:
    """Whole units from 1970 to moments in wall-clock time: array of integers."""
    if unit == "week":
        # Weeks begin on Monday; 1970-01-01 was a Thursday.
        return (micros // DAY + 3) // 7
    if unit in FIXED:
        return micros // FIXED[unit]
    months = (micros // DAY).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return months // MONTHS[unit]


def unit_start(numbers: IntArray, unit: str) -> IntArray:
    """First moment of each unit, in wall-clock time."""
    if unit == "week":
        return (numbers * 7 - 3) * DAY
    if unit in FIXED:
        return numbers * FIXED[unit]
    months = (numbers * MONTHS[unit]).astype("datetime64[M]")
    return months.astype("datetime64[D]").astype(np.int64) * DAY


@functools.lru_cache(maxsize=128)
def date_form(form: str | None, unit: str) -> re.Pattern[str] | None:
    """What texts in a declared format look like, such as ``"%m/%d/%Y"``; None for None.

    Raises
    ------
    DomainError
        If it is no such format, or names no year, month or day that the unit needs.
    """
    if form is None:
        return None
    letters: list[str] = []
    pattern, end = "", 0
    text = form if isinstance(form, str) else ""
    for found in re.finditer(r"%(.)", text):
        between, letter = text[end : found.start()], {"B": "b", "A": "a"}.get(found[1], found[1])
        # Numbers that touch have all their digits.
        touching = text[found.end() : found.end() + 1] == "%" or (letters and not between)
        shape = _LETTERS.get(letter, "").replace("{1,2}", "{2}" if touching else "{1,2}")
        pattern += re.sub(r"(\\?\s)+", r"\\s+", re.escape(between)) + f"(?P<{letter}>{shape})"
        letters, end = [*letters, letter], found.end()
    has = {"Y": {"Y", "y"}, "m": {"m", "b"}, "d": {"d"}}
    needed = has.values() if unit not in MONTHS else [has[x] for x in "Ym"[: 3 - MONTHS[unit] // 6]]
    if (
        not set(letters) <= set(_LETTERS)
        or len(set(letters)) < len(letters)
        or not all(set(letters) & each for each in needed)
    ):
        raise DomainError(
            f"format={form!r} says no date. Write it as for strptime, with each part once: "
            "'%m/%d/%Y' for 11/07/2020, '%d.%m.%Y' for 07.11.2020, '%d %b %Y' for 07 Nov 2020; "
            f"known are %{', %'.join(_LETTERS)}, %B and %A. ISO dates need no format."
        )
    return re.compile(pattern + re.escape(text[end:]), re.ASCII)


def moment(value: Any, unit: str, form: str | None = None) -> tuple[int, int | None] | None:
    """The moment of one value, and a number if it has a zone; None if it is no date.

    Parameters
    ----------
    value : date, datetime, Timestamp, datetime64, Period, number, or text
        Text is in the declared format, or else as ISO 8601 writes it. A period stands for its first
        moment. Whole numbers stand for their digits, such as 20201107, or 2020 where the unit is
        the year: readers of files decide by other records whether digits are numbers or text.
    unit : str
        Text may stop at the month, quarter or year where the unit does.
    form : str, default=None
        Declared format of text.
    """
    try:
        found = _moment_of(value, unit, form)
        if found is not None:
            # A subclass may compute anything: no integer, or one that no array holds.
            micros = min(max(int(found[0]), -FURTHEST), FURTHEST)
            return micros, None if found[1] is None else int(found[1])
    except BaseException as error:
        reraise_interrupts(error)
        # Objects that only look like dates, and dates that do not exist.
    return None


def _moment_of(value: Any, unit: str, form: str | None) -> tuple[Any, Any] | None:
    """The same; raises for some values that are no dates."""
    if isinstance(value, str):
        # Digits as the number that readers make of them where no record holds other text.
        number = number_meant(value)
        if number is None or not number.is_integer():
            return _text_moment(value.strip(), unit, form)
        value = number
    if isinstance(value, int | float | np.integer | np.floating):
        if value != int(value):
            return None
        return _text_moment(f"{value:.0f}", unit, form)
    if is_missing(value):
        return None
    micros = moment_of(value)
    if micros is None:
        return None
    return micros, _offset(value) if isinstance(value, datetime.datetime) else None


def _offset(value: Any) -> int | None:
    offset = value.utcoffset()
    return None if offset is None else offset // datetime.timedelta(microseconds=1)


def _text_moment(text: str, unit: str, form: str | None) -> tuple[int, int | None] | None:
    """The moment of a text; None or ValueError if it is not a date of the calendar."""
    declared = date_form(form, unit)
    if form is not None and text.isdecimal() and re.fullmatch("(%[dmyYHMS])+", form):
        # Digits may be a number that lost zeros in front, as in 7112020: the same for text.
        text = text.zfill(form.count("%") * 2 + form.count("Y") * 2)
    # What looks like the declared form is in it, also where there is no such day.
    match = declared and declared.fullmatch(text)
    if match is None:
        # As a reader of files that makes a type of dates of such text.
        micros = moment_of_text(text)
        if micros is not None:
            return micros, 0 if _ZONED.search(text, 10) else None
    match = match or _BASIC.fullmatch(text)
    if match is None:
        for pattern, (finest, months) in _PARTS.items():
            part = pattern.fullmatch(text)
            if part is not None and MONTHS.get(unit, 0) >= MONTHS[finest]:
                place = int(part[2]) - 1 if pattern.groups == 2 else 0
                return _moment_of(
                    datetime.datetime(int(part[1]), place * months + 1, 1), unit, None
                )
        return None
    said = {letter: text for letter, text in match.groupdict().items() if text}
    day = datetime.datetime(_year(said), _month(said), int(said.get("d", 1)), _hour(said))
    wall, _ = _moment_of(day, unit, None) or (0, None)
    minute, second = int(said.get("M", 0)), int(said.get("S", 0))
    if minute > 59 or second > 59:
        return None
    wall += minute * FIXED["minute"] + second * FIXED["second"]
    wall += int(said.get("f", "").ljust(9, "0")[:6])
    if "z" not in said:
        return wall, None
    offset = zone_offset(said["z"])
    return None if offset is None else (wall - offset, offset)


def _year(said: dict[str, str]) -> int:
    """The year; of two digits, those from 69 on are in the last century."""
    if "Y" in said:
        return int(said["Y"])
    return int(said["y"]) + (1900 if int(said["y"]) >= 69 else 2000)


def _month(said: dict[str, str]) -> int:
    if "b" not in said:
        return int(said.get("m", 1))
    name = said["b"].rstrip(".").lower()
    return next(n for n, month in enumerate(_MONTH_NAMES, 1) if month.startswith(name))


def _hour(said: dict[str, str]) -> int:
    if "I" not in said:
        return int(said.get("H", 0))
    hour = int(said["I"])
    if not 1 <= hour <= 12:
        raise ValueError
    return hour % 12 + (12 if said.get("p", "a").lower().startswith("p") else 0)


@dataclass(frozen=True)
class Clock:
    """Whole units since 1970, of moments.

    Attributes
    ----------
    unit : str
    tz : "UTC" or None
        None: moments are in wall-clock time.
    form : str or None
        Declared format of text.
    """

    unit: str
    tz: str | None = None
    form: str | None = None

    def numbers(self, micros: IntArray) -> IntArray:
        """Number of the unit that each moment lies in."""
        found: IntArray = unit_number(micros, self.unit)
        return found

    def moment(self, value: Any) -> int | None:
        """The moment of a value of a record; None if it is no date.

        A value with a time zone is a moment in UTC, whether its column is text or a type of times.
        """
        found = moment(value, self.unit, self.form)
        return None if found is None else found[0]

    def number(self, value: Any) -> tuple[int, bool] | None:
        """Number of the unit of a declared value, and whether the unit begins with it.

        None for what is no date, and for a value with a time zone where UTC is not declared.
        """
        found = moment(value, self.unit)
        if found is None or (found[1] is not None and self.tz is None):
            return None
        number = unit_number(np.array([found[0]]), self.unit)
        return int(number[0]), bool(unit_start(number, self.unit)[0] == found[0])

    def stamps(self, numbers: NDArray[Any], missing: BoolArray | None = None) -> pd.DatetimeIndex:
        """First moment of each unit as datetime64[us]; NaT where missing.

        Fractions of a unit count as the same part of its length.
        """
        whole = np.floor(numbers).astype(np.int64)
        begin = unit_start(whole, self.unit)
        part = numbers - whole
        if np.any(part):
            begin = begin + (part * (unit_start(whole + 1, self.unit) - begin)).astype(np.int64)
        values = begin.astype("datetime64[us]")
        if missing is not None:
            values[missing] = np.datetime64("NaT", "us")
        index = pd.DatetimeIndex(values)
        return index if self.tz is None else index.tz_localize(self.tz)

    def text(self, number: int) -> str:
        """A unit as ISO text, which `moment` reads."""
        stamp = self.stamps(np.array([number]))[0]
        if self.unit == "quarter":
            return f"{stamp.year:04d}-Q{stamp.quarter}"
        if self.unit in MONTHS:
            return stamp.strftime("%Y-%m-%d")[: 4 if self.unit == "year" else 7]
        if FIXED[self.unit] >= DAY:
            return str(stamp.date())
        exact = {"hour": "minutes", "minute": "minutes", "second": "seconds"}
        return str(stamp.to_pydatetime().isoformat(timespec=exact.get(self.unit, self.unit + "s")))
