"""Date and Datetime: ranges of days and of times, as whole units since 1970.

A moment is an integer: microseconds since 1970-01-01T00:00, in UTC where that is declared, else in
wall-clock time.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from .._keys import DAY, FURTHEST, key_of, moment_of, moment_of_text
from .._validation import (
    FloatArray,
    IntArray,
    is_word,
    refuse_placeholder,
    reraise_interrupts,
    some,
)
from ..exceptions import DomainError
from .attributes import AUTO, Coding, Numeric, runs
from .bins import MAX_INTEGER, MOST_BINS, even_edges

# Units, and how NumPy names them.
UNITS = {
    "microsecond": "us",
    "millisecond": "ms",
    "second": "s",
    "minute": "m",
    "hour": "h",
    "day": "D",
    "week": "7D",
    "month": "M",
    "quarter": "3M",
    "year": "Y",
}
_DATES = ("day", "week", "month", "quarter", "year")
# Weeks begin on Monday; 1970-01-01 was a Thursday.
_THURSDAY = 3 * DAY

# ISO 8601 without signs between the parts, and a zone at the end.
_BASIC = re.compile(r"\d{8}(?:T\d{4}(?:\d\d)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII)
_ZONED = re.compile(r"(?:Z|[+-]\d\d(?::?\d\d)?)\s*$", re.ASCII)
# A whole month, quarter or year, read where the unit is no finer.
_PART = re.compile(r"(\d{4})(?:-(?:Q([1-4])|(\d\d)))?", re.ASCII)
_MONTHS = {"month": 1, "quarter": 3, "year": 12}

# Days as spreadsheets count them, and their day 0.
EXCEL = "excel"
_EXCEL_ZERO = datetime.datetime.fromisoformat("1899-12-30")
# Parts of a declared format.
_LETTERS = "YymdbBaAHIMSfpz"
# Words in text, and halves of days as in "a.m.".
_WORD = re.compile(r"(?<![A-Za-z%])(?:([A-Za-z]{3,})\.?|([AaPp])\.?([Mm])\b\.?)", re.ASCII)
# Numbers for months, and one word for all days: `strptime` reads names as the settings of the
# system say, and these are English on every machine. They may be cut off after three letters.
_NAMES = {}
for _number, _name in enumerate(
    "january february march april may june july august september october november december".split()
    + "monday tuesday wednesday thursday friday saturday sunday".split()
):
    for _end in range(3, len(_name) + 1):
        _NAMES[_name[:_end]] = f"#{_number + 1}#" if _number < 12 else "day"


def unit_number(micros: IntArray, unit: str) -> IntArray:
    """Whole units from 1970 to moments in wall-clock time."""
    if unit in _MONTHS:
        return micros.astype("M8[us]").astype(f"M8[{UNITS[unit]}]").astype(np.int64)
    begin, end = unit_start(np.arange(2), unit)
    return (micros - begin) // (end - begin)


def unit_start(numbers: IntArray, unit: str) -> IntArray:
    """First moment of each unit, in wall-clock time."""
    shift = _THURSDAY if unit == "week" else 0
    return numbers.astype(f"M8[{UNITS[unit]}]").astype("M8[us]").astype(np.int64) - shift


def check_form(form: Any) -> None:
    """Refuse a format that does not say a date, as ``"%m/%d/%Y"`` does.

    Raises
    ------
    DomainError
        If it is no format of dates, or names no year.
    """
    letters = {*re.findall("%(.)", str(form))}
    # A year is needed, without which Python 3.15 will read no day.
    known = letters <= {*_LETTERS} and not letters.isdisjoint("yY")
    day = datetime.datetime(2011, 12, 31, tzinfo=datetime.UTC)
    if not known or in_form(day.strftime(_plain(form)), form) is None:
        raise DomainError(
            f"format={form!r} says no date. Write it as for strptime, with each part once: "
            f"'%d.%m.%Y' for 07.11.2020; known are %{', %'.join(_LETTERS)}. ISO needs no format."
        )


def in_form(text: str, form: str) -> datetime.datetime | None:
    """The date that a text writes in a declared format; None if it writes none."""
    if text.isdecimal() and re.fullmatch("(%[dmyYHMS])+", form):
        # Digits may be a number that lost zeros in front, as in 7112020: the same for text.
        text = text.zfill(form.count("%") * 2 + form.count("Y") * 2)
    if not text.isascii():
        return None
    try:
        if form == EXCEL:
            return _EXCEL_ZERO + datetime.timedelta(days=int(text))
        return datetime.datetime.strptime(_plain(text), _plain(form))
    except (ValueError, OverflowError, re.error):
        return None


def _plain(text: str) -> str:
    """A text or a format with signed numbers for the names of months, and one name for all days."""
    text = re.sub(r"%[bB]\.?", "#%m#", re.sub(r"%[aA]\.?", "day", re.sub(r"%p\.", "%p", text)))
    return _WORD.sub(
        lambda word: _NAMES.get(word[1].lower(), word[1]) if word[1] else word[2] + word[3], text
    )


def moment(value: Any, unit: str, form: str | None = None) -> int | None:
    """Microseconds from 1970 to the moment of one value, in UTC if it has a zone; None if no date.

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
        found = None if isinstance(value, str) else moment_of(value)
        if found is None:
            # Digits as the number that readers make of them where no record holds other text.
            key = key_of(value)
            if isinstance(key, float) and key.is_integer():
                found = _text_moment(f"{key:.0f}", unit, form)
            elif isinstance(value, str):
                found = _text_moment(value.strip(), unit, form)
        # A subclass may compute anything: no integer, or one that no array holds.
        return None if found is None else min(max(int(found), -FURTHEST), FURTHEST)
    except BaseException as error:
        reraise_interrupts(error)
        # Objects that only look like dates, and dates that do not exist.
        return None


def _text_moment(text: str, unit: str, form: str | None) -> int | None:
    """The moment of a text; None or ValueError if it is not a date of the calendar."""
    if form is not None:
        found = in_form(text, form)
        # What looks like the declared form is in it, also where there is no such day.
        if found is not None or in_form(re.sub(r"\d", "1", text), form) is not None:
            return None if found is None else moment_of(found)
    micros = moment_of_text(text)
    if micros is not None:
        return micros
    if _BASIC.fullmatch(text):
        return moment_of(datetime.datetime.fromisoformat(text))
    part = _PART.fullmatch(text)
    if part is None or _MONTHS.get(unit, 0) < (3 if part[2] else 1 if part[3] else 12):
        return None
    month = 3 * int(part[2]) - 2 if part[2] else int(part[3] or 1)
    return moment_of(datetime.date(int(part[1]), month, 1))


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
        return unit_number(micros, self.unit)

    def moment(self, value: Any) -> int | None:
        """The moment of a value of a record; None if it is no date.

        A value with a time zone is a moment in UTC, whether its column is text or a type of times.
        """
        return moment(value, self.unit, self.form)

    def number(self, value: Any) -> tuple[int, bool] | None:
        """Number of the unit of a declared value, and whether the unit begins with it.

        None for what is no date, and for a value with a time zone where UTC is not declared.
        """
        micros = moment(value, self.unit)
        if micros is None and self.form:
            # Not where text in the format may be taken for ISO text, as in %Y-%d-%m.
            like = moment(datetime.date(2021, 3, 1).strftime(self.form), self.unit)
            micros = moment(value, self.unit, self.form) if like is None else None
        is_text = isinstance(value, str)
        zone = _ZONED.search(value, 10) if is_text else getattr(value, "tzinfo", None)
        if micros is None or (zone is not None and self.tz is None):
            return None
        number = unit_number(np.array([micros]), self.unit)
        return int(number[0]), bool(unit_start(number, self.unit)[0] == micros)

    def stamps(self, numbers: ArrayLike) -> pd.DatetimeIndex:
        """First moment of each unit as datetime64[us]; NaT for nan.

        Fractions of a unit count as the same part of its length.
        """
        values = np.asarray(numbers, dtype=np.float64)
        known = np.nan_to_num(values)
        whole = np.floor(known).astype(np.int64)
        begin, end = (unit_start(whole + side, self.unit) for side in (0, 1))
        moments = (begin + ((known - whole) * (end - begin)).astype(np.int64)).astype("M8[us]")
        moments[np.isnan(values)] = np.datetime64("NaT", "us")
        index = pd.DatetimeIndex(moments)
        return index if self.tz is None else index.tz_localize(self.tz)

    def text(self, number: int) -> str:
        """A unit as ISO text, which `moment` reads."""
        begin = unit_start(np.array([number]), self.unit).astype("M8[us]")[0]
        if self.unit == "quarter":
            return f"{str(begin)[:4]}-Q{number % 4 + 1}"
        finest = {"week": "D", "hour": "m"}.get(self.unit, UNITS[self.unit])
        zone = "+00:00" if self.tz is not None and self.unit not in _DATES else ""
        return f"{begin.astype(f'M8[{finest}]')}{zone}"


# More units than this are divided into bins by default; a leap year has a bin for each day.
_MOST_SINGLE = 366
_DEFAULT_BINS = 128


class _Temporal(Numeric):
    """What :class:`Date` and :class:`Datetime` share: an integer for each unit."""

    # Units, the first of which is that by default, and time zones.
    _units: ClassVar[tuple[str, ...]] = ("second", *UNITS)
    _zones: ClassVar[tuple[str | None, ...]] = (None, "UTC")
    summable = False

    def __init__(
        self,
        lower: Any,
        upper: Any,
        unit: str | None = None,
        bins: int | str | None = None,
        *,
        tz: str | None = None,
        special: Any = (),
        nullable: bool = False,
        format: str | None = None,
    ) -> None:
        unit = self._units[0] if unit is None else unit
        if unit not in self._units:
            raise DomainError(f"unit must be one of {some(self._units[1:], 10)}, got {unit!r}.")
        if tz not in self._zones:
            raise DomainError(
                f"tz must be in {self._zones}, got {tz!r}: convert local times first."
            )
        if format not in (None, EXCEL):
            check_form(format)
        self.unit, self.tz, self.format = unit, tz, format
        super().__init__(lower, upper, bins, integer=True, nullable=nullable, special=special)

    def _read(self, value: Any, name: str) -> int:
        refuse_placeholder(value, name)
        is_day = len(value) == 10 if isinstance(value, str) else type(value) is datetime.date
        if name == "upper" and self.unit not in _DATES and is_day:
            # A day without a time is meant to the end.
            value = pd.Timestamp(value) + datetime.timedelta(days=1, microseconds=-1)
        found = self._clock.number(value)
        if found is None:
            raise DomainError(f"{name} of {type(self).__name__} {_not_a_date(value)}")
        return found[0]

    def _cut(self, bins: Any) -> None:
        plain = bins is None or is_word(bins, AUTO)
        super()._cut(self._default_bins() if plain else bins)

    def _default_bins(self) -> int:
        # Fewer of very many units. A release does not say these numbers: they must not change.
        units = int(self.upper - self.lower) + 1
        most = units if units <= _MOST_SINGLE else _DEFAULT_BINS
        return max(1, min(most, (MAX_INTEGER - 1) // max(units - 1, 1)))

    def _auto_edges(self) -> NDArray[Any]:
        units = int(self.upper - self.lower) + 1
        bins = max(1, min(MOST_BINS, units, MAX_INTEGER // units))
        return even_edges(self.lower, self.upper, bins, True)

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
            raise ValueError(f"A value compared with column {column!r} {_not_a_date(value)}")
        number, exact = found
        return number if exact else number + 0.5

    def coding(self) -> Coding:  # noqa: D102
        # Privacy. No zone is refused: DuckDB gives text with zones the zone of the session, so that
        # one record decides whether a column has one.
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
        return self._clock.stamps(numbers)

    def days(self, numbers: ArrayLike) -> FloatArray:
        """First moments of units in days since 1970, as pictures need them."""
        return unit_start(np.asarray(numbers, dtype=np.int64), self.unit) / DAY

    def _written(self, value: float) -> str:
        return self._clock.text(int(value))

    def _texts(self, cuts: IntArray) -> list[str]:
        return runs(self.edges[cuts].tolist(), self._written)

    def _said(self) -> dict[str, Any]:
        low, high = self._written(self.lower), self._written(self.upper)
        said: dict[str, Any] = {"lower": low, "upper": high, "unit": self.unit}
        if self.bins != self._default_bins():
            said["bins"] = self.bins
        if self.special:
            said["special"] = [self._written(value) for value in self.special]
        return said


def _not_a_date(value: Any) -> str:
    how = "Give ISO text such as '2021-03-01', a date, datetime or Timestamp; with a time zone only"
    return f"must be a date, got {value!r}. {how} for a Datetime with tz='UTC'."


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
    tz : None
        Dates have no time zone.
    nullable : bool, default=False
        Whether a missing value has a cell of its own, the last code. Otherwise records without
        this value are skipped.
    format : str, optional
        How text in the data is written, in the letters of strptime: ``"%m/%d/%Y"`` for 11/07/2020,
        ``"%d %b %Y"`` for 07 Nov 2020. Names of months are English. ISO text is read as well,
        unless it has this form too. ``"excel"``: whole numbers are days as spreadsheets count
        them, 43831 for 2020-01-01.

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

    _units = ("day", *_DATES)
    _zones = (None,)


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
        unless it has this form too. ``"excel"``: whole numbers are days as spreadsheets count
        them, 43831 for 2020-01-01.

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
