"""Date and Datetime: one number line whatever holds the values; values that are no dates."""

import datetime as dt
import itertools

import numpy as np
import pandas as pd
import pytest
from engines import ENGINE_WARNINGS
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import over

from skdp import Date, Datetime, Domain, Numeric
from skdp.domain.dates import Clock, moment
from skdp.release import parse
from skdp.tables import Coded, as_column, read_rows

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

pytestmark = ENGINE_WARNINGS

UTC = dt.UTC

DATE_UNITS = ("day", "week", "month", "quarter", "year")

UNITS = ("microsecond", "millisecond", "second", "minute", "hour", *DATE_UNITS)

EPOCH = dt.datetime(1970, 1, 1)


# Leap days, ends of months and years, before 1970, out of every range.
MOMENTS = [
    dt.datetime(2020, 2, 29, 23, 59, 59, 999999),
    dt.datetime(2000, 2, 29),
    dt.datetime(1969, 12, 31, 23, 59, 59, 500000),
    dt.datetime(2021, 1, 3, 23),
    dt.datetime(1, 1, 1),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
]


def number_by_hand(when, unit, tz):
    """The definition: with Python's calendar alone."""
    if unit in DATE_UNITS:
        if unit in ("day", "week"):
            days = when.date().toordinal() - EPOCH.toordinal()
            return days if unit == "day" else (days + 3) // 7
        months = (when.year - 1970) * 12 + when.month - 1
        return months // {"month": 1, "quarter": 3, "year": 12}[unit]
    since = when - (EPOCH if tz is None else EPOCH.replace(tzinfo=UTC))
    length = 1 if unit == "microsecond" else 1000 if unit == "millisecond" else 10**6
    length *= {"minute": 60, "hour": 3600}.get(unit, 1)
    return since // dt.timedelta(microseconds=1) // length


def read(values):
    """A column of its own; arrays of Arrow as in a table."""
    return as_column(pa.chunked_array([values]) if isinstance(values, pa.Array) else values, "t")


def encoded(attribute, values):
    return read(values).codes(attribute.coding()).tolist()


def attributes():
    for unit in DATE_UNITS:
        yield Date("1890-01-01", "2030-12-31", unit, nullable=True)
    for unit, tz in itertools.product(UNITS, [None, "UTC"]):
        yield Datetime("1999-06-01", "2025-05-31", unit, tz=tz, nullable=True)
    yield Date("2020-01-01", "2020-12-31", special=["1900-01-01"], format="%d.%m.%y", nullable=True)


@settings(max_examples=60)
@given(
    st.datetimes(dt.datetime(1950, 1, 1), dt.datetime(2090, 1, 1)),
    st.sampled_from(UNITS),
    st.sampled_from([None, "UTC"]),
)
def test_a_moment_has_the_number_of_its_unit(when, unit, tz):
    value = when if tz is None else when.replace(tzinfo=UTC)
    expected = number_by_hand(value, unit, tz)
    line = Clock(unit, tz)
    micros = np.array([moment(value, unit)])
    assert line.numbers(micros)[0] == expected
    assert line.number(value)[0] == expected
    # Its first moment has the same number, the one before it another, and its text is read as it.
    start = line.stamps(np.array([expected]))[0]
    assert line.number(start) == (expected, True)
    assert line.number(start - pd.Timedelta(1, "us"))[0] == expected - 1
    assert line.number(line.text(expected)) == (expected, True)


@over("unit, tz", itertools.product(["s", "ms", "us", "ns"], [None, "UTC"]))
def test_all_libraries_and_types_read_alike(unit, tz):
    moments = [when for when in MOMENTS if unit != "ns" or 1700 < when.year < 2200]
    exact = pa.array([*moments, None], pa.timestamp("us", tz))
    # Resolutions round down.
    array = exact.cast(pa.timestamp(unit, tz), safe=False)
    values = array.to_pylist()
    texts = [None if value is None else value.isoformat() for value in values]
    series = pa.table({"t": array}).to_pandas()["t"]
    columns = {
        "arrow in pieces": pa.chunked_array([array[:3], array[3:]]),
        "polars": pl.from_arrow(array),
        "pandas": series,
        "pandas arrow": pd.Series(array, dtype=pd.ArrowDtype(array.type)),
        "numpy": series.dt.tz_localize(None).to_numpy(),
        "timestamps": list(series),
        "text": pd.Series(texts, dtype="str"),
        "text in Arrow": pa.array(texts),
        "text in Polars": pl.Series(texts),
        "category": series.astype("category"),
        "dictionary": array.dictionary_encode(),
        "list": [*texts[:3], *values[3:]],
    }
    expected = [np.nan if v is None else number_by_hand(v, "microsecond", tz) for v in values]
    for name, column in columns.items():
        found = read(column).numbers(Clock("microsecond", tz))
        np.testing.assert_array_equal(found, expected, name)


NO_DATES = [
    *("2021-02-30", "2021-13-01", "2021-2-3", "01/03/2021", "2021-03-01T24:00", "2021-03", "2021"),
    *("2021-03-01T12:00:60", "2021-03-01T12:00+25:00", "2021-03-01Z", "٢٠٢١-٠٣-٠١", "today", ""),
]


class Raises(dt.datetime):
    def utcoffset(self):
        raise RuntimeError("a value")


class Computes(dt.date):
    """A date that counts its days in its own way."""

    days = float("nan")

    def toordinal(self):
        return self.days


def test_what_is_no_date_is_missing():
    odd = [
        *(None, pd.NaT, np.datetime64("NaT", "s"), float("nan"), 18_690, 18_690.0, True),
        *(b"2021-03-01", dt.time(12), dt.timedelta(1), np.timedelta64(1, "D"), [2021, 3, 1]),
        *(Raises(2021, 3, 1), Computes(2021, 3, 1), object(), *NO_DATES),
    ]
    last = "2021-03-01 23:59:59.999999999"
    for nullable, missing in ((True, 365), (False, -1)):
        day = Date("2021-01-01", "2021-12-31", nullable=nullable)
        assert encoded(day, pa.array([*NO_DATES, last])) == [missing] * len(NO_DATES) + [59]
        assert encoded(day, [*odd, last]) == [missing] * len(odd) + [59]


def in_form(form):
    return Date("2020-11-01", "2020-11-30", format=form)


HOUR_IN_UTC = Datetime("2021-01-01", "2021-01-01", "hour", tz="UTC")


@over(
    "attribute, values, code",
    [
        # In UTC where that is declared and nothing else is said.
        (HOUR_IN_UTC, ["2021-01-01T01:00", "2021-01-01T02:00+01:00", "2021-01-01T01:00Z"], 1),
        # A moment in UTC, also where no zone is declared.
        (in_form(None), ["2020-11-07T23:00Z", "2020-11-06T23:00-09:00"], 6),
        (in_form(None), ["2020-11-08 01:00:00+14:00", pd.Timestamp("2020-11-07T23", tz="UTC")], 6),
        # As Arrow reads text into a type of moments.
        (in_form(None), ["2020-11-07T12", dt.datetime(2020, 11, 7, tzinfo=UTC)], 6),
        (in_form(None), [" 2020-11-07 ", "20201107T1200Z", "2020-11-07 00:00:00Z"], 6),
        (in_form("%m/%d/%Y"), ["11/07/2020", "11/7/2020", "2020-11-07"], 6),
        (in_form("%m/%d/%y %I:%M %p"), ["11/07/20 02:30 PM", "11/7/20 2:30 a.m."], 6),
        (in_form("%A, %d-%B-%Y %H:%M:%S.%f %z"), ["Friday, 6-Nov-2020 15:00:00.5 -0900"], 6),
        # Readers of files decide by other records whether digits are text or a number.
        (in_form(None), ["20201107", 20201107, 20201107.0], 6),
        (in_form("%d%m%Y"), ["07112020", "7112020", 7112020, 7112020.0], 6),
        (in_form("excel"), ["44142", 44142, 44142.0, "2020-11-07"], 6),
        (Date("2005-09-01", "2005-09-30", format="%d%m%y"), ["70905", 70905, 70905.0], 6),
    ],
)
def test_values_that_are_read(attribute, values, code):
    assert encoded(attribute, values) == [code] * len(values)
    assert encoded(attribute, pa.array(list(map(str, values)))) == [code] * len(values)
    odd = ["17.11.202٠", "31.02.2020", "07 Novel 2020", "00/00/0000", "1/1", "", "2020-11-7"]
    assert encoded(attribute, odd) == [-1] * len(odd)
    assert attribute.format is None or attribute != in_form(None)

    # What looks like the declared form is in it, and not ISO.
    looks = encoded(in_form("%Y-%d-%m"), ["2020-07-11", "2020-07-13", "7.11.2020"])
    assert looks == [6, -1, -1] and encoded(in_form("%d%m%Y"), ["2112020", 2112020]) == [1, 1]
    # No digit of a year goes to the month: 11 and 202 are not 1 and 1202.
    assert encoded(in_form("%d%b%Y"), ["07Nov2020", "07Nov202"]) == [6, -1]


def test_a_zone_that_duckdb_sniffs_decides_nothing(tmp_path):
    connection = pytest.importorskip("duckdb").connect()
    connection.execute("SET TimeZone = 'America/New_York'")
    domain = Domain({"t": Date("2021-01-01", "2021-12-31")})
    kinds, found = set(), []
    for last in ("2021-05-05T00:00:00Z", "x"):
        lines = ["t", *["2021-03-01T02:00:00Z"] * 3, last, ""]
        (tmp_path / "t.csv").write_text("\n".join(lines))
        frame = connection.read_csv(str(tmp_path / "t.csv"))
        for form in (frame, frame.to_arrow_table(), frame.df()):
            rows = read_rows(form)
            kinds.add(rows.kinds["t"])
            domain.check_schema(rows)
            found.append((Coded(rows, domain).codes[:, 0] == 59).sum())
    assert "zoned" in kinds and kinds & {"string", "object"} and found == [3] * 6


def test_ends_may_be_written_in_many_ways():
    ends = [
        (dt.date(2021, 3, 1), dt.datetime(2021, 9, 30, 12)),
        (pd.Timestamp("2021-03-01"), np.datetime64("2021-09-30")),
        ("2021-03-01T13:00", "2021-09-30 23:59:59"),
    ]
    assert {Date(*each) for each in ends} == {Date("2021-03-01", "2021-09-30")}
    # With a distance from UTC, where that is declared.
    here = Datetime("2021-01-01", "2021-12-31T23:00", "hour", tz="UTC")
    assert here == Datetime("2021-01-01T01:00+01:00", "2021-12-31T23:00Z", "hour", tz="UTC")
    # An upper end without a time is a whole day.
    assert Datetime("2021-01-01", dt.date(2021, 1, 1), "hour").size == 24
    assert Datetime("2021-01-01", dt.datetime(2021, 1, 1), "hour").size == 1


@over("attribute", attributes())
def test_every_code_and_declaration_comes_back(attribute):
    codes = np.arange(attribute.size)
    drawn = attribute.decode(codes, np.random.default_rng(0))
    assert encoded(attribute, drawn) == codes.tolist()
    zone = None if attribute.tz is None else str(drawn.dt.tz)
    assert (zone, drawn.isna().tolist()) == (attribute.tz, [False] * attribute.n_values + [True])
    low, high = (attribute.shown(end) for end in attribute.span(codes))
    inside = codes < attribute.n_values
    assert (drawn[inside] >= low[inside]).all() and (drawn[inside] <= high[inside]).all()
    assert eval(repr(attribute)) == attribute
    assert Domain.from_json(Domain({"t": attribute}).to_json())["t"] == attribute


YEAR = Domain({"t": Date("2021-01-01", "2021-12-31"), "k": Numeric(0, 1)})

MONTHS = Domain({"t": Date("2021-01", "2021-12", "month", nullable=True)})

HOURS = Domain({"t": Datetime("2021-03-28", "2021-03-28", "hour", tz="UTC")})


@over(
    "domain, query, codes",
    [
        (YEAR, "t >= '2021-12-31'", [364]),
        (YEAR, "t in ['2021-03-01', '2021-03-05']", [59, 63]),
        (YEAR, {"t": pd.Timestamp("2021-03-01")}, [59]),
        # They compare with the first moment of a unit.
        (YEAR, "t >= '2021-12-30T12:00'", [364]),
        (MONTHS, "t >= '2021-11-15'", [11]),
        (MONTHS, {"t": ("2021-03", "2021-04-30")}, [2, 3]),
        (MONTHS, "t == None", [12]),
        (HOURS, "t < '2021-03-28T03:00+01:00'", [0, 1]),
        (HOURS, {"t": pd.Timestamp("2021-03-28T11:00", tz="Asia/Tokyo")}, [2]),
    ],
)
def test_queries(domain, query, codes):
    [[weights]] = [part.values() for part in parse(query, domain).products]
    assert np.flatnonzero(weights).tolist() == list(codes) and set(weights) <= {0, 1}
