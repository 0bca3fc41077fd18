"""Dates and times of a column in an engine, as numbers of a clock.

Engines differ in what they know of calendars and time zones. So they only say how many seconds and
microseconds a value is from 1970. Everything else is arithmetic with integers, as in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import narwhals.stable.v2 as nw

from ..domain.clock import Clock
from .quotients import quotient as whole

__all__ = ["lazy_number", "moment_columns"]

# Moments further away than a domain can declare are moved to the ends, so that nothing overflows:
# seconds from 1970 to the beginning of the year 1 and to the end of the year 9999.
_FIRST = -62_135_596_800
_LAST = 253_402_300_799
_A_DAY = 86_400
# Days from 0000-03-01, where a cycle of 400 years begins, to 1970-01-01.
_CYCLE_START = 719_468


def lazy_number(moment: tuple[nw.Expr, nw.Expr], clock: Clock, let: Callable[[Any], Any]) -> Any:
    """Units of a clock of a column of an engine, as an expression; null where missing.

    Parameters
    ----------
    moment : tuple of expressions
        Whole seconds since 1970, and the microseconds beyond them.
    clock : Clock
    let : callable
        Makes a column of an expression, so that it is not repeated.
    """
    seconds, micros = moment
    if clock.local:
        seconds = let(seconds + _offset(seconds, clock))
    unit = clock.unit
    if unit == "microsecond":
        return seconds * 1_000_000 + micros
    if unit == "millisecond":
        return seconds * 1000 + whole(micros, 1000)
    if unit in ("second", "minute", "hour"):
        length = {"second": 1, "minute": 60, "hour": 3600}[unit]
        shift = _CYCLE_START * _A_DAY // length
        return whole(seconds + shift * length, length) - shift
    # Days since the beginning of a cycle, not negative.
    days = let(whole(seconds + _CYCLE_START * _A_DAY, _A_DAY))
    if unit == "day":
        return days - _CYCLE_START
    if unit == "week":
        shift = _CYCLE_START // 7
        return whole(days - _CYCLE_START + 3 + shift * 7, 7) - shift
    months = _months(days, let)
    if unit == "month":
        return months - 1970 * 12
    return whole(months, 3) - 1970 * 4 if unit == "quarter" else whole(months, 12) - 1970


def _months(days: Any, let: Callable[[Any], Any]) -> Any:
    """Months since January of the year 0, of days since 0000-03-01."""
    # Years from March to February, so that the leap day is the last one: a cycle has 146,097 days,
    # and the months of a year 153 days in five.
    cycle = let(whole(days, 146_097))
    day = let(days - cycle * 146_097)
    year = let(whole(day - whole(day, 1460) + whole(day, 36_524) - whole(day, 146_096), 365))
    rest = day - (year * 365 + whole(year, 4) - whole(year, 100))
    return let((cycle * 400 + year) * 12 + whole(rest * 5 + 2, 153) + 2)


def _offset(seconds: Any, clock: Clock) -> Any:
    """Seconds from UTC to the clock of the zone, by a tree of its changes."""
    changes = (clock.changes // 1_000_000).tolist()
    offsets = (clock.offsets // 1_000_000).tolist()

    def tree(start: int, stop: int) -> Any:
        if start == stop:
            return nw.lit(offsets[start])
        middle = (start + stop) // 2
        before, after = tree(start, middle), tree(middle + 1, stop)
        return nw.when(seconds < changes[middle]).then(before).otherwise(after)

    return tree(0, len(changes))


def moment_columns(
    frame: nw.LazyFrame, engine: str, columns: Mapping[str, str], prefix: str
) -> nw.LazyFrame:
    """The rows with two more columns for each column of dates.

    Parameters
    ----------
    frame : narwhals LazyFrame
    engine : str
    columns : mapping of str to str
        Names of columns and of their types.
    prefix : str
        The new columns are this and "seconds" or "micros" with the place of the column: whole
        seconds since 1970, and the microseconds beyond them.
    """
    return nw.from_native(_ENGINES[engine](nw.to_native(frame), columns, prefix))


def _polars(frame: Any, columns: Mapping[str, str], prefix: str) -> Any:
    pl = nw.get_native_namespace(nw.from_native(frame))
    schema = frame.collect_schema()
    made = []
    for place, (name, dtype) in enumerate(columns.items()):
        ticks = pl.col(name).cast(pl.Int64)
        if dtype == "Date":
            seconds, rest = ticks.clip(_FIRST // _A_DAY, _LAST // _A_DAY) * _A_DAY, ticks * 0
        else:
            unit = schema[name].time_unit
            a_second = {"ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}[unit]
            seconds, rest = (ticks // a_second).clip(_FIRST, _LAST), ticks % a_second
            rest = rest * 1000 if unit == "ms" else rest // (a_second // 1_000_000)
        made += [seconds.alias(f"{prefix}seconds{place}"), rest.alias(f"{prefix}micros{place}")]
    return frame.with_columns(*made)


def _duckdb(frame: Any, columns: Mapping[str, str], prefix: str) -> Any:
    made = ["*"]
    types = dict(zip(frame.columns, map(str, frame.types), strict=True))
    for place, (name, dtype) in enumerate(columns.items()):
        value = column = '"' + name.replace('"', '""') + '"'
        a_second = 1_000_000
        # An infinity has no distance from 1970, but a sign.
        before = f"{column}::VARCHAR LIKE '-%'"
        if types[name] in ("TIMESTAMP_S", "TIMESTAMP_MS"):
            # They reach further than microseconds. All that may be asked of a value beyond these
            # is a comparison: the rest fails, and as text it makes the whole database unusable.
            first, last = (f"'{day}'::{types[name]}" for day in ("0001-01-01", "9999-12-31"))
            near = f"CASE WHEN {column} BETWEEN {first} AND {last} THEN {column} END"
            value, before = f"({near})::TIMESTAMP", f"{column} < '1970-01-01'::{types[name]}"
        if dtype == "Date":
            ticks, a_second = f"({column} - DATE '1970-01-01') * {_A_DAY}", 1
        else:
            ticks = f"epoch_us({value})"
        # The remainder has the sign of the number.
        rest = f"(({ticks}) % {a_second} + {a_second}) % {a_second}"
        clipped = f"greatest(least((({ticks}) - {rest}) // {a_second}, {_LAST}), {_FIRST})"
        ends = f"CASE WHEN {before} THEN {_FIRST} ELSE {_LAST} END"
        made += [
            f"(CASE WHEN {column} IS NULL THEN NULL WHEN isfinite({value}) THEN {clipped} "
            f"ELSE {ends} END)::BIGINT AS {prefix}seconds{place}",
            f"coalesce({rest}, 0)::BIGINT AS {prefix}micros{place}",
        ]
    return frame.select(", ".join(made))


def _pyspark(frame: Any, columns: Mapping[str, str], prefix: str) -> Any:
    made = ["*"]
    for place, name in enumerate(columns):
        column = "`" + name.replace("`", "``") + "`"
        kind = frame.schema[name].dataType.typeName()
        a_second = 1 if kind == "date" else 1_000_000
        # Without a zone: the distance in wall-clock time, whatever the session's zone is.
        ticks = f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {column})"
        if kind == "date":
            ticks = f"CAST(unix_date({column}) AS BIGINT) * {_A_DAY}"
        elif kind == "timestamp":
            ticks = f"unix_micros({column})"
        rest = f"pmod({ticks}, {a_second}L)"
        clipped = f"greatest(least(({ticks} - {rest}) DIV {a_second}L, {_LAST}L), {_FIRST}L)"
        # The greatest and the least leave nulls out.
        made += [
            f"CASE WHEN {column} IS NULL THEN NULL ELSE {clipped} END AS {prefix}seconds{place}",
            f"{rest} AS {prefix}micros{place}",
        ]
    return frame.selectExpr(*made)


_ENGINES = {"polars": _polars, "duckdb": _duckdb, "pyspark": _pyspark}
