"""The canonical key of a value: what it means, whatever reader of files gave it its type.

Readers of files choose the type of a column by its values: one more record may make text of all
numbers, floats of integers, or dates of text. So codes are looked up by a key that no such choice
changes: the nearest double of the number that a value means; else a date or time of the day in one
written form, in UTC where it has a zone; else its text. Booleans are the numbers 1 and 0,
however they are written. What readers take for a gap in columns of numbers is missing (None)
everywhere; who declares such a text, as "" or "NA", names the gap. Anything else has no key.

It is below the domain, which declares categories by their keys and refuses two with one key.

>>> for values in [
...     (1, 1.0, "1", "01", "1.0", " 1", "0x1", True, "true", "TRUE", complex(1), Decimal("1.00")),
...     (2**53, 2**53 + 1, "9007199254740993"),
...     (10**400, "12e45678", float("inf"), "Infinity"),
...     (0.3, "0.3", "0.29999999999999999", np.float64(0.3), Fraction(3, 10)),
...     (None, "", "NA", "nan", float("nan"), pd.NA, pd.NaT, Decimal("NaN")),
...     ("2020-01-01", date(2020, 1, 1), pd.Timestamp("2020-01-01"), "2020-01-01T00:00Z"),
...     ("2020-01-01 10:30", "2020-01-01T11:30:00+01:00", np.datetime64("2020-01-01T10:30")),
...     ("10:30", "10:30:00", time(10, 30)),
...     ("F", np.str_("F")),
...     ("2020-02-30",), ("1_0",), (" F",), ("None",),
...     ([1], b"1", 1j, pd.Timedelta(1), object()),
... ]:
...     keys = {key_of(value) for value in values}
...     print(*keys, sep=" | ")
1.0
9007199254740992.0
inf
0.3
None
2020-01-01
2020-01-01T10:30:00
10:30:00
F
2020-02-30
1_0
 F
None
()
"""

from __future__ import annotations

import enum
import math
import numbers
import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ._validation import BoolArray, IntArray, reraise_interrupts

Key: TypeAlias = float | str | tuple[()] | None

#: The key of what is neither number, date, text nor missing: no category has it.
NO_KEY: tuple[()] = ()

# Microseconds of a day.
DAY = 86_400_000_000

# Moments beyond this, 140,000 years away, are moved to it, so that arithmetic cannot overflow.
FURTHEST = 2**62

# Microseconds of the units of NumPy, whose names Polars and Arrow share.
TICKS = {
    "W": Fraction(7 * DAY),
    "D": Fraction(DAY),
    "h": Fraction(DAY, 24),
    "m": Fraction(60_000_000),
    "s": Fraction(1_000_000),
    "ms": Fraction(1000),
    "us": Fraction(1),
    "ns": Fraction(1, 10**3),
    "ps": Fraction(1, 10**6),
    "fs": Fraction(1, 10**9),
    "as": Fraction(1, 10**12),
}

# What Arrow and pandas take for a gap in a column of numbers, and Arrow for text beside other text.
_GAPS = frozenset(
    ("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN", "N/A", "NA")
    + ("NULL", "n/a", "null")
)
_TRUTH = {"true": 1.0, "false": 0.0}
_HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
_ZONE = r"Z|[+-]\d\d(?::?\d\d)?"
_TIME = r"(?P<H>\d\d)(?::?(?P<M>\d\d)(?::?(?P<S>\d\d)(?:[.,](?P<f>\d{1,9}))?)?)?"
_DATE = re.compile(rf"(?P<day>\d{{4}}-\d\d-\d\d)(?:[T ]{_TIME}\s?(?P<z>{_ZONE})?)?", re.ASCII)
_CLOCK = re.compile(r"(?P<H>\d\d):(?P<M>\d\d)(?::(?P<S>\d\d)(?:\.(?P<f>\d{1,9}))?)?", re.ASCII)
_EPOCH = datetime(1970, 1, 1)


def key_of(value: Any) -> Key:
    """The key of one value: a float, a text, None where it is missing, else `NO_KEY`.

    Never raises; it depends on the value alone.
    """
    try:
        key = _key(value)
        if key is None or type(key) in (float, str):
            return key
    except BaseException as error:
        reraise_interrupts(error)
        # A signalling NaN refuses to become a float; other objects do as they like.
        if issubclass(type(value), Decimal):
            return None
    return NO_KEY


def _key(value: Any) -> Key:
    if isinstance(value, enum.Enum) and not isinstance(value, str):
        value = value.value
    if isinstance(value, str):
        return _key_of_text(str.__str__(value))
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, timedelta | np.timedelta64):
        return NO_KEY
    if isinstance(value, numbers.Real | np.bool_ | Decimal):
        number = _double(value)
        return None if math.isnan(number) else number + 0.0
    if isinstance(value, numbers.Complex):
        # One complex number makes pandas turn all numbers of a column into complex ones.
        return _key(value.real) if value.imag == 0 else NO_KEY
    if isinstance(value, time):
        return _written_time(value.hour, value.minute, value.second, value.microsecond)
    micros = moment_of(value)
    if micros is None:
        return None if isinstance(value, np.datetime64) else NO_KEY
    return written(micros)


def _double(value: Any) -> float:
    try:
        if isinstance(value, np.longdouble):
            # Without the warning that it lies beyond the doubles.
            with np.errstate(all="ignore"):
                return float(value)
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, 1 if value > 0 else -1)


def _key_of_text(text: str) -> Key:
    number = number_of_text(text)
    if number is not None:
        return None if math.isnan(number) else number + 0.0
    if text in _GAPS:
        return None
    micros = moment_of_text(text)
    if micros is not None:
        return written(micros)
    found = _CLOCK.fullmatch(text)
    if found is not None:
        moment = _within_day(found)
        return text if moment is None else _written_time(*moment)
    return text


def number_of_text(text: str) -> float | None:
    """The number that readers of files take a text for, NaN for a gap; None if it is none."""
    if not text.isascii() or "_" in text:
        # Python reads these as numbers, and no reader of files does.
        return None
    truth = _TRUTH.get(text.strip().lower())
    if truth is not None:
        return truth
    try:
        return float(text)
    except ValueError:
        pass
    if _HEXADECIMAL.fullmatch(text) is None:
        return None
    # Arrow reads these as the bits of an integer.
    whole = int(text, 16)
    return float(whole - 2**64 if whole >= 2**63 else whole)


def is_missing(value: Any) -> bool:
    """Whether one value stands for "no value": None, NaN, NaT, pandas.NA; no text does."""
    kind = type(value)
    return not (kind is int or issubclass(kind, str)) and key_of(value) is None


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


def moment_of(value: Any) -> int | None:
    """Microseconds since 1970, in UTC where there is a zone, of a date or time; None for others."""
    if isinstance(value, pd.Period):
        value = value.start_time
    if isinstance(value, pd.Timestamp):
        value = value.to_datetime64()
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else int(micros_of(np.array([value])).micros[0])
    if isinstance(value, datetime):
        offset = value.utcoffset() or timedelta(0)
        return (value.replace(tzinfo=None) - offset - _EPOCH) // timedelta(microseconds=1)
    if isinstance(value, date):
        return (value.toordinal() - _EPOCH.toordinal()) * DAY
    return None


class Moments(NamedTuple):
    """Moments in microseconds since 1970, rounded down, and which of them lost nothing by that."""

    micros: IntArray
    exact: BoolArray


def micros_of(values: NDArray[np.datetime64]) -> Moments:
    """Moments of a datetime64 array of any unit; anything where missing."""
    missing = np.isnat(values)
    unit, count = np.datetime_data(values.dtype)
    ticks = np.where(missing, 0, values.astype(np.int64))
    if unit in ("Y", "M"):
        furthest = 10**6 // count
        months = np.clip(ticks, -furthest, furthest) * (count * (12 if unit == "Y" else 1))
        ticks = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
        unit, count = "D", 1
    return rescaled(ticks, count * TICKS.get(unit, Fraction(1)))


def rescaled(ticks: IntArray, length: Fraction) -> Moments:
    """Moments of ticks of a length in microseconds."""
    furthest = FURTHEST // length.numerator
    near = np.clip(ticks, -furthest, furthest)
    micros, exact = near * length.numerator, near == ticks
    if length.denominator > 1:
        scaled, micros = micros, micros // length.denominator
        exact &= micros * length.denominator == scaled
    return Moments(micros, exact)


def moment_of_text(text: str) -> int | None:
    """Microseconds since 1970 of an ISO date or time; None if it is none of the calendar."""
    found = _DATE.fullmatch(text.strip())
    if found is None:
        return None
    try:
        day = int(np.datetime64(found["day"], "D").astype(np.int64))
    except ValueError:
        return None
    within = (0, 0, 0, 0) if found["H"] is None else _within_day(found)
    if within is None:
        return None
    hour, minute, second, micro = within
    micros = ((hour * 60 + minute) * 60 + second) * 1_000_000 + micro
    offset = zone_offset(found["z"] or "Z")
    return None if offset is None else day * DAY + micros - offset


def zone_offset(zone: str) -> int | None:
    """Microseconds from UTC of a zone as in "Z", "+01:00" or "-0330"; None if there is none."""
    if zone == "Z":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    if int(digits[:2]) > 23 or int(digits[2:]) > 59:
        return None
    offset = (int(digits[:2]) * 60 + int(digits[2:])) * 60_000_000
    return -offset if zone[0] == "-" else offset


def _within_day(found: re.Match[str]) -> tuple[int, int, int, int] | None:
    hour, minute, second = (int(found[part] or 0) for part in "HMS")
    if hour > 23 or minute > 59 or second > 59:
        return None
    return hour, minute, second, int((found["f"] or "").ljust(9, "0")[:6])


def _written_time(hour: int, minute: int, second: int, micro: int) -> str:
    fraction = f".{micro:06d}".rstrip("0") if micro else ""
    return f"{hour:02d}:{minute:02d}:{second:02d}{fraction}"


def written(micros: int) -> str:
    """A moment in its one written form, without a time of the day where that is midnight."""
    day, rest = divmod(micros, DAY)
    text = str(np.datetime64(day, "D"))
    if not rest:
        return text
    seconds, micro = divmod(rest, 1_000_000)
    return f"{text}T{_written_time(seconds // 3600, seconds // 60 % 60, seconds % 60, micro)}"


def shared_key(values: Sequence[Any]) -> tuple[Any, Any] | None:
    """Two of the values that have one key; None if no two have."""
    seen: dict[Key, Any] = {}
    for value in values:
        if (key := key_of(value)) in seen:
            return seen[key], value
        seen[key] = value
    return None


def positions_of(values: Iterable[Any]) -> dict[Key, int]:
    """Position of each value by its key; they have different keys."""
    return {key_of(value): place for place, value in enumerate(values)}
