"""Date and Datetime: ranges of days and of times, as whole units since 1970.

A moment is an integer: microseconds since 1970-01-01T00:00, in UTC where that is declared, else in
wall-clock time.
"""

from __future__ import annotations

import copy
import datetime
import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from .._foreign import reraise_interrupts
from .._keys import DAY, FURTHEST, moment_of, moment_of_text, zone_offset
from .._validation import BoolArray, FloatArray, IntArray, is_word
from ..exceptions import DomainError
from .attributes import MISSING_LABEL, Coding, Column
from .bins import MOST_BINS
from .numeric import AUTO, Numeric
from .values import (
    MAX_BINS,
    MAX_INTEGER,
    as_int,
    is_missing,
    number_meant,
    refuse_placeholder,
    some,
)

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


# More units than this are divided into bins by default; a leap year has a bin for each day.
_MOST_SINGLE = 366
_DEFAULT_BINS = 128


class _Temporal(Numeric):
    """What :class:`Date` and :class:`Datetime` share: an integer for each unit."""

    unit: str
    tz: str | None
    format: str | None

    _units: ClassVar[tuple[str, ...]]
    _kind: ClassVar[str]
    summable = False

    def _declare(
        self,
        lower: Any,
        upper: Any,
        unit: str,
        bins: int | str | None,
        tz: str | None,
        special: Any,
        nullable: bool,
        format: str | None,
    ) -> None:
        if unit not in self._units:
            raise DomainError(f"unit must be one of {some(self._units, 10)}, got {unit!r}.")
        if tz not in (None, "UTC"):
            raise DomainError(
                f"tz must be 'UTC', or left out for times of a wall clock, got {tz!r}. For local "
                "times convert the column with pandas first: .dt.tz_convert('Europe/Berlin')"
                ".dt.tz_localize(None); then leave tz out."
            )
        date_form(format, unit)
        self._set(unit=unit, tz=tz, format=format)
        low = self._bound(lower, "lower")
        high = self._bound(upper, "upper")
        if isinstance(special, str | bytes) or not isinstance(special, Iterable):
            raise DomainError(
                f"special must be a list of dates, such as ['1900-01-01'], got {special!r}."
            )
        cells = [self._bound(value, "A special value") for value in special]
        if low > high:
            raise DomainError(
                f"{self._name} needs lower <= upper, got lower={str(lower)!r} and "
                f"upper={str(upper)!r}."
            )
        if max(map(abs, [low, high, *cells])) > MAX_INTEGER:
            raise DomainError(
                f"{unit}s from {str(lower)!r} to {str(upper)!r} are too far from 1970 to be "
                "counted exactly; use a coarser unit."
            )
        n_bins = self._checked_bins(high - low + 1, bins)
        super().__init__(low, high, n_bins, integer=True, nullable=nullable, special=cells)

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _bound(self, value: Any, name: str) -> int:
        """Number of the unit of a declared end."""
        refuse_placeholder(value, name)
        if name == "upper" and FIXED.get(self.unit, DAY) < DAY and _is_day(value):
            # A day without a time is meant to the end.
            value = pd.Timestamp(value) + datetime.timedelta(days=1, microseconds=-1)
        found = self._clock.number(value)
        if found is None:
            raise DomainError(f"{name} of {self._name} {self._not_a_date(value)}")
        return found[0]

    def _not_a_date(self, value: Any) -> str:
        """Why a declared value cannot be placed, for messages."""
        if Clock(self.unit, "UTC").number(value) is not None:
            return (
                f"has a time zone, got {str(value)!r}, but {self._name} is declared without one. "
                + ("Leave it out." if self._kind == "date" else "Declare it with tz='UTC'.")
            )
        shown = {"month": "'2021-03'", "quarter": "'2021-Q1'", "year": "'2021'"}.get(self.unit)
        return (
            f"must be a date, got {value!r}. Give ISO text such as "
            + ("'2021-03-01'" if self._kind == "date" else "'2021-03-01T14:30'")
            + (f" or {shown}" if shown else "")
            + ", or a date, datetime or Timestamp."
        )

    def _checked_bins(self, n_units: int, bins: int | str | None) -> int:
        # Bins are computed in float64, exactly up to this many.
        exact = (MAX_INTEGER - 1) // max(n_units - 1, 1)
        if bins is None or is_word(bins, AUTO):
            return n_units if n_units <= _MOST_SINGLE else max(1, min(_DEFAULT_BINS, exact))
        n_bins = as_int(bins, "bins")
        if not 1 <= n_bins <= min(n_units, MAX_BINS):
            raise DomainError(
                f"bins={n_bins} must be from 1 to the number of {self.unit}s in the range, "
                f"{n_units}."
            )
        if exact < n_bins < n_units:
            raise DomainError(
                f"bins={n_bins} over {n_units} {self.unit}s cannot be computed exactly in float64; "
                f"use at most {exact} bins, or a coarser unit."
            )
        return n_bins

    @property
    def _clock(self) -> Clock:
        return Clock(self.unit, self.tz, self.format)

    def number(self, value: Any, column: str) -> float | int:
        """Place of a value of a query on the number line.

        Parameters
        ----------
        value : ISO text, date, datetime or Timestamp
            Without a time zone: UTC if that is declared, else wall-clock time.
        column : str
            For messages.

        Returns
        -------
        int or float
            Number of the unit that begins with the value; half a unit more where the value lies
            within it, so that comparisons are those with the first moment of each unit.

        Raises
        ------
        ValueError
            If it is no date.
        """
        if isinstance(value, float) and np.isinf(value):
            return value
        found = self._clock.number(value)
        if found is None:
            raise ValueError(f"A value compared with column {column!r} {self._not_a_date(value)}")
        number, exact = found
        return number if exact else number + 0.5

    def coding(self) -> Coding:  # noqa: D102
        return Coding(place=self._place, clock=self._clock)

    def _finish(self, numbers: FloatArray) -> pd.Series:
        return pd.Series(self.shown(numbers))

    def shown(self, numbers: ArrayLike) -> pd.DatetimeIndex:
        """Numbers of units as moments; NaT for nan.

        Parameters
        ----------
        numbers : array-like of float
            Half a unit stands for the middle between its first moment and that of the next.

        Returns
        -------
        DatetimeIndex
            In UTC if that is declared.
        """
        values = np.asarray(numbers, dtype=np.float64)
        missing = np.isnan(values)
        return self._clock.stamps(np.where(missing, self.lower, values), missing)

    def days(self, numbers: ArrayLike) -> FloatArray:
        """First moments of units in days since 1970, as pictures need them."""
        return unit_start(np.asarray(numbers, dtype=np.int64), self.unit) / DAY

    def labels(self) -> list[str]:  # noqa: D102
        edges = self.edges.tolist()
        texts = [self._text(*pair) for pair in zip(edges[:-1], edges[1:], strict=True)]
        return texts + self._special_labels() + [MISSING_LABEL] * self.nullable

    def _special_labels(self) -> list[str]:
        return [self._clock.text(int(value)) for value in self.special]

    def _text(self, first: int, stop: int) -> str:
        """Text for units from first up to stop, exclusive."""
        low, high = self._clock.text(first), self._clock.text(stop - 1)
        return low if low == high else f"{low} to {high}"

    def span_label(self, start: int, stop: int) -> str:
        """Text for the values of the bins from ``start`` up to ``stop``, exclusive."""
        return self._text(*self._bins.edges_at(np.array([start, stop])).tolist())

    def _joined(self, start: int, stop: int) -> str:
        return self.span_label(start, stop)

    @property
    def fine(self) -> Any:  # noqa: D102
        if self._coarse is not None:
            return self
        units, n = int(self.upper - self.lower) + 1, self.bins
        if units <= MOST_BINS:
            n = units
        else:  # as many times finer as is exact: such bins of the formula lie inside of each other
            n *= max(1, min(MOST_BINS, MAX_INTEGER // units) // n)
        twin = copy.copy(self)
        twin._set(bins=n, _coarse=self)
        twin._join_empty(self.edges[1:-1])
        return twin

    # Privacy. No zone is refused: DuckDB gives text with zones the zone of the session, so that one
    # record decides whether a column has one.

    def _numbers(self, column: Column) -> FloatArray:
        return column.instants(self._clock)

    def _to_data(self) -> dict[str, Any]:
        ends = {
            "lower": self._clock.text(int(self.lower)),
            "upper": self._clock.text(int(self.upper)),
        }
        zone = {} if self._kind == "date" else {"tz": self.tz}
        rest = {"unit": self.unit, "bins": self.bins, **zone, "nullable": self.nullable}
        more: dict[str, Any] = {"special": self._special_labels()} if self.special else {}
        more |= {"format": self.format} if self.format is not None else {}
        return {"type": self._kind, **ends, **rest, **more}

    def __repr__(self) -> str:
        if self._coarse is not None:
            return f"{self._coarse!r}.fine"
        parts = [repr(self._clock.text(int(end))) for end in (self.lower, self.upper)]
        parts.append(f"unit={self.unit!r}")
        if self.bins != self._checked_bins(int(self.upper - self.lower) + 1, None):
            parts.append(f"bins={self.bins}")
        parts += [] if self.tz is None else [f"tz={self.tz!r}"]
        parts += [f"special={self._special_labels()}"] * bool(self.special)
        parts += ["nullable=True"] * self.nullable
        parts += [] if self.format is None else [f"format={self.format!r}"]
        return f"{self._name}({', '.join(parts)})"


def _is_day(value: Any) -> bool:
    """Whether a declared end is a date without a time."""
    if isinstance(value, str):
        return len(value) == len("2021-03-01")
    return isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)


class Date(_Temporal):
    """A range of dates, without time and time zone.

    Parameters
    ----------
    lower, upper : str, date, datetime or Timestamp
        Publicly known range, both ends included; text as in ISO 8601, ``"2021-03-01"``. Dates
        outside the range are clipped to its ends.
    unit : {"day", "week", "month", "quarter", "year"}, default="day"
        Resolution: values in the data are rounded down to their unit, and sampled values are the
        first day of a unit. Weeks begin on Monday. For months, quarters and years the ends may be
        written ``"2021-03"``, ``"2021-Q1"`` and ``"2021"``.
    bins : int or "auto", optional
        Number of bins, each of about equally many units. "auto", the default: one for each unit, or
        128 if there are more than 366.
    special : list of dates, optional
        Values that stand for something else, such as ``"1900-01-01"`` for "unknown", inside or
        outside of the range. Each has a cell of its own. They are dates to queries and means.
    nullable : bool, default=False
        Whether a missing value has a cell of its own, the last code. Otherwise records without
        this value are skipped.
    format : str, optional
        How text in the data is written, in the letters of strptime: ``"%m/%d/%Y"`` for 11/07/2020,
        ``"%d %b %Y"`` for 07 Nov 2020. Names of months are English. ISO text is read as well,
        unless it has this form too.

    Attributes
    ----------
    lower, upper : int
        The ends on the number line: whole units since 1970-01-01.
    size : int
        Number of codes, the missing cell included.

    Raises
    ------
    DomainError
        If the ends are no dates or reversed, or there are more bins than units.

    Notes
    -----
    Columns may be of any type of dates or times without a time zone, of pandas, Polars, PyArrow and
    NumPy, or text, numbers such as 20210301, or Python objects, each value by itself. Text that is
    neither an ISO date nor in the declared ``format``, such as ``"2021-02-30"`` or, without one,
    ``"01/03/2021"``, counts as missing. A time with a zone, in text or in a type of times, stands
    for its date in UTC: convert local times first, with pandas:
    ``.dt.tz_convert("Europe/Berlin").dt.tz_localize(None)``.

    Examples
    --------
    >>> admitted = Date("2021-01-01", "2021-12-31", unit="month")
    >>> admitted.labels()[:2]
    ['2021-01', '2021-02']
    >>> Date("2010-01-01", "2019-12-31", bins=120).labels()[0]
    '2010-01-01 to 2010-01-31'
    """

    _units = ("day", "week", "month", "quarter", "year")
    _kind = "date"

    def __init__(
        self,
        lower: Any,
        upper: Any,
        unit: str = "day",
        bins: int | str | None = None,
        *,
        special: Any = (),
        nullable: bool = False,
        format: str | None = None,
    ) -> None:
        self._declare(lower, upper, unit, bins, None, special, nullable, format)


class Datetime(_Temporal):
    """A range of times, of a wall clock or in UTC.

    Parameters
    ----------
    lower, upper : str, date, datetime or Timestamp
        Publicly known range, both ends included; text as in ISO 8601, ``"2021-03-01T14:30"``.
        An ``upper`` without a time includes the whole day. Times outside the range are clipped to
        its ends.
    unit : str, default="second"
        Resolution: "microsecond", "millisecond", "second", "minute", "hour", or a unit of `Date`.
        Values in the data are rounded down to their unit, and sampled values are the first moment
        of a unit.
    bins : int or "auto", optional
        Number of bins, each of about equally many units. "auto", the default: one for each unit, or
        128 if there are more than 366.
    tz : {"UTC"}, optional
        "UTC": the column holds times with a time zone, of any zone; they are read, counted and
        sampled in UTC. For local times convert it first, with pandas:
        ``.dt.tz_convert("Europe/Berlin").dt.tz_localize(None)``.
    special : list of dates, optional
        Values that stand for something else, such as ``"1900-01-01"`` for "unknown", inside or
        outside of the range. Each has a cell of its own. They are dates to queries and means.
    nullable : bool, default=False
        Whether a missing value has a cell of its own, the last code. Otherwise records without
        this value are skipped.
    format : str, optional
        How text in the data is written, in the letters of strptime: ``"%m/%d/%Y"`` for 11/07/2020,
        ``"%d %b %Y"`` for 07 Nov 2020. Names of months are English. ISO text is read as well,
        unless it has this form too.

    Attributes
    ----------
    lower, upper : int
        The ends on the number line: whole units since 1970-01-01T00:00.
    size : int
        Number of codes, the missing cell included.

    Raises
    ------
    DomainError
        If the ends are no times or reversed, there are more bins than units, ``tz`` is another
        zone, or an end has a time zone where none is declared.

    Notes
    -----
    Columns are those that `Date` takes. A time with a zone is read in UTC, and one without is taken
    as it is, whatever ``tz`` says: one record may decide which of the two a reader makes of text.

    Examples
    --------
    >>> Datetime("2021-01-01", "2021-12-31", unit="hour", bins=52)
    Datetime('2021-01-01T00:00', '2021-12-31T23:00', unit='hour', bins=52)
    """

    _units = UNITS
    _kind = "datetime"

    def __init__(
        self,
        lower: Any,
        upper: Any,
        unit: str = "second",
        bins: int | str | None = None,
        *,
        tz: str | None = None,
        special: Any = (),
        nullable: bool = False,
        format: str | None = None,
    ) -> None:
        self._declare(lower, upper, unit, bins, tz, special, nullable, format)
