"""Date and Datetime: one number line in every library and engine; values that are no dates."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from engines import ENGINE_WARNINGS
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import over

import skdp
from skdp import Categorical, DataCube, Date, Datetime, Domain, Numeric, RangeTreeHistogram
from skdp.domain.dates import Clock, moment, unit_start
from skdp.exceptions import DomainError
from skdp.release import parse
from skdp.tables import as_frame, code_rows, count_rows, identities, read_rows

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")
dd = pytest.importorskip("dask.dataframe")

pytestmark = ENGINE_WARNINGS

UTC = dt.UTC

DATE_UNITS = ("day", "week", "month", "quarter", "year")

UNITS = ("microsecond", "millisecond", "second", "minute", "hour", *DATE_UNITS)

EPOCH = dt.datetime(1970, 1, 1)


# Leap days, ends of months and years, before 1970, out of every range.
MOMENTS = [
    dt.datetime(2020, 2, 29, 23, 59, 59, 999999),
    dt.datetime(2021, 2, 28),
    dt.datetime(2000, 2, 29),
    dt.datetime(1900, 3, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 500000),
    dt.datetime(1970, 1, 1),
    dt.datetime(2020, 12, 31, 23, 30),
    dt.datetime(2021, 3, 28, 0, 59, 59, 999999),
    dt.datetime(2021, 3, 28, 1),
    dt.datetime(2021, 10, 31, 0, 30),
    dt.datetime(2021, 10, 31, 1, 30),
    dt.datetime(2021, 1, 3, 23),
    dt.datetime(2021, 1, 4),
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


def code_by_hand(when, attribute):
    """The code of a value: far from the range, of the nearer end."""
    if when is None:
        return attribute.size - 1
    number = attribute.lower if when.year == 1 else attribute.upper
    if when.year not in (1, 9999):
        number = number_by_hand(when, attribute.unit, attribute.tz)
    return int(attribute._encode(np.array([float(number)]))[0])


def column_of(values):
    return as_frame(pd.DataFrame({"t": values})).column("t")


def encoded(attribute, data):
    return as_frame(data).column("t").codes(attribute.coding()).tolist()


def table_of(values, tz, unit="us"):
    """The values as a table of Arrow: naive ones, or of UTC."""
    array = pa.array(values, pa.timestamp("us", tz="UTC" if tz else None))
    return pa.table({"t": array.cast(pa.timestamp(unit, tz="UTC" if tz else None), safe=False)})


def aware(values):
    return [None if value is None else value.replace(tzinfo=UTC) for value in values]


def attributes(nullable=True):
    for unit in DATE_UNITS:
        yield Date("1890-01-01", "2030-12-31", unit, nullable=nullable)
    for unit in UNITS:
        yield Datetime("1999-06-01", "2025-05-31", unit, nullable=nullable)
        yield Datetime("1999-06-01", "2025-05-31", unit, tz="UTC", nullable=nullable)


every = over("attribute", list(attributes()))


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
    micros = np.array([moment(value, unit)[0]])
    assert line.numbers(micros)[0] == expected
    assert line.number(value)[0] == expected
    # Its first moment has the same number, and its text is read as it.
    start = line.stamps(np.array([expected]))[0]
    assert line.number(start) == (expected, True)
    assert line.number(line.text(expected)) == (expected, True)


@given(st.sampled_from(UNITS), st.integers(-(10**5), 10**5))
def test_the_first_moment_of_a_unit_is_the_first(unit, number):
    line = Clock(unit)
    start = unit_start(np.array([number]), unit)
    assert line.numbers(start)[0] == number
    assert line.numbers(start - 1)[0] == number - 1


def shares(query, domain):
    """Weights of the one column of a conjunction."""
    [[weights]] = [part.values() for part in parse(query, domain).products]
    return weights


@every
def test_all_libraries_and_types_read_alike(attribute):
    values = [*MOMENTS, None]
    table = table_of(values, attribute.tz)
    kept = aware(values) if attribute.tz else values
    expected = [code_by_hand(value, attribute) for value in kept]
    suffix = "+00:00" if attribute.tz else ""
    texts = [None if value is None else value.isoformat() + suffix for value in values]
    stamps = pd.Series(pd.DatetimeIndex(table["t"].to_pandas()))
    frames = {
        "arrow": table,
        "arrow in pieces": pa.concat_tables([table.slice(0, 3), table.slice(3)]),
        "polars": pl.from_arrow(table),
        "pandas": pd.DataFrame({"t": stamps}),
        "pandas arrow": pd.DataFrame({"t": stamps.astype(pd.ArrowDtype(table["t"].type))}),
        "objects": pd.DataFrame({"t": pd.Series(kept, dtype=object)}),
        "timestamps": pd.DataFrame({"t": pd.Series(list(stamps), dtype=object)}),
        "text": pd.DataFrame({"t": pd.Series(texts, dtype="str")}),
        "text in Arrow": pa.table({"t": texts}),
        "text in Polars": pl.DataFrame({"t": texts}),
        "category": pd.DataFrame({"t": stamps.astype("category")}),
        "dictionary": pa.table({"t": table["t"].dictionary_encode()}),
        "list": pd.DataFrame({"t": pd.Series([*texts[:3], *kept[3:]], dtype=object)}),
    }
    for name, frame in frames.items():
        assert encoded(attribute, frame) == expected, name
    if attribute.tz is None:
        array = np.array(values, dtype="datetime64[us]")
        assert Domain.for_array(attribute, 1).encode(array[:, None])[:, 0].tolist() == expected


@over("unit", ["s", "ms", "us", "ns"])
def test_resolutions_of_times_round_down(unit):
    attribute = Date("1960-01-01", "2030-12-31", nullable=True)
    values = [value for value in MOMENTS if 1700 < value.year < 2200]
    expected = encoded(attribute, pd.DataFrame({"t": pd.Series(values, dtype=object)}))
    table = table_of([value.replace(microsecond=0) for value in values], None, unit)
    frame = pl.from_arrow(table)
    frames = [table, table.to_pandas(), frame, pl.DataFrame({"t": frame["t"].cast(pl.Date)})]
    frames.append(pd.DataFrame({"t": np.array(values, dtype=f"datetime64[{unit}]")}))
    for dtype in (pa.date32(), pa.date64()):
        days = pa.array([value.date() for value in values], dtype)
        arrow = pd.Series(days, dtype=pd.ArrowDtype(dtype))
        frames += [pa.table({"t": days}), pd.DataFrame({"t": arrow})]
    for each in frames:
        assert encoded(attribute, each) == expected


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


# Beyond what Python's dates reach: to read them as objects is an error that quotes them.
FAR = [2**62, 1_614_556_800, -(2**62), None, 1_614_556_800]


def far_columns():
    for zone in (None, "Asia/Tokyo"):
        plain = pa.array(FAR, pa.int64()).cast(pa.timestamp("s", zone))
        for column in (plain, plain.dictionary_encode()):
            series = pd.Series(pd.arrays.ArrowExtensionArray(column))
            yield zone, pa.table({"t": column})
            yield zone, pd.DataFrame({"t": series})
        numpy = np.array([0 if tick is None else tick for tick in FAR], "M8[s]")
        numpy[3] = np.datetime64("NaT", "s")
        series = pd.Series(numpy)
        if zone:
            series = series.dt.tz_localize("UTC").dt.tz_convert(zone)
        yield zone, pd.DataFrame({"t": series})
        yield zone, pd.DataFrame({"t": series.astype("category")})
        yield zone, pl.DataFrame({"t": pl.Series(FAR).cast(pl.Datetime("ms", zone))})
    yield None, pa.table({"t": pa.array([2**31 - 1, 18_687, None], pa.int32()).cast(pa.date32())})


def test_dates_beyond_python_never_raise(capfd):
    # Those 140,000 years away are moved nearer, where two would be one person.
    for zone, table in far_columns():
        n = len(as_frame(table))
        day = Datetime("2021-01-01", "2021-12-31", "day", tz=zone and "UTC", nullable=True)
        codes = Domain({"t": day}).encode(table)[:, 0].tolist()
        owners = identities(as_frame(table).column("t")).tolist()
        if n == len(FAR):
            assert codes[0] == 364 and codes[2:4] == [0, 365]
            assert [owner >= 0 for owner in owners] == [False, True, False, False, True]
        else:
            assert codes[0] == 364 and codes[-1] == 365
    # Polars prints what it could not convert.
    assert capfd.readouterr() == ("", "")


def test_what_is_no_date_is_missing():
    odd = [
        *(None, pd.NaT, np.datetime64("NaT", "s"), float("nan"), 18_690, 18_690.0, True),
        *(b"2021-03-01", dt.time(12), dt.timedelta(1), np.timedelta64(1, "D"), [2021, 3, 1]),
        *(Raises(2021, 3, 1), Computes(2021, 3, 1), object(), *NO_DATES),
    ]
    last = "2021-03-01 23:59:59.999999999"
    for nullable, missing in ((True, 365), (False, -1)):
        day = Date("2021-01-01", "2021-12-31", nullable=nullable)
        texts = pa.table({"t": [*NO_DATES, "2021-03-01"]})
        assert encoded(day, texts) == [missing] * len(NO_DATES) + [59]
        objects = pd.DataFrame({"t": pd.Series([*odd, last], dtype=object)})
        assert encoded(day, objects) == [missing] * len(odd) + [59]


@settings(max_examples=80)
@given(
    st.text(max_size=25) | st.from_regex(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.{0,9})?", fullmatch=True)
)
def test_any_text_is_read_or_missing(text):
    day = Datetime("2021-01-01", "2021-12-31", "day", nullable=True)
    (code,) = encoded(day, pd.DataFrame({"t": pd.Series([text], dtype=object)}))
    assert 0 <= code <= 365
    if code < 365:
        assert dt.date.fromisoformat(text[:10])


def test_text_that_arrow_takes_for_moments_is_read_as_such():
    day = Date("2021-01-01", "2021-12-31")
    for text in ("2021-03-01T12", "0000-01-01"):
        typed = pa.array([text]).cast(pa.timestamp("s"))
        codes = [encoded(day, pa.table({"t": each})) for each in ([text], typed)]
        assert codes[0] == codes[1] != [-1]


def test_a_value_without_a_zone_is_in_utc_where_that_is_declared():
    hour = Datetime("2021-01-01", "2021-12-31", "hour", tz="UTC", nullable=True)
    texts = ["2021-01-01T00:00", "2021-01-01T01:00+01:00", "2021-01-01T00:00Z", "2021-01-01"]
    assert encoded(hour, pa.table({"t": texts})) == [0, 0, 0, 0]
    objects = pd.Series([dt.date(2021, 1, 1), dt.datetime(2021, 1, 1)], dtype=object)
    assert encoded(hour, pd.DataFrame({"t": objects})) == [0, 0]
    assert encoded(hour, pa.table({"t": ["0001-01-01"]})) in ([0], [hour.size - 1])


def test_a_value_with_a_zone_is_a_moment_in_utc():
    day = Date("2021-01-01", "2021-12-31", nullable=True)
    texts = ["2021-03-01T23:00Z", "2021-03-01T23:00-09:00", "2021-03-01 01:00:00+14:00"]
    assert encoded(day, pa.table({"t": texts})) == [59, 60, 58]
    # As in a type of times, which does not hold the zone of each.
    assert encoded(
        day, pa.table({"t": pa.array(pd.to_datetime(texts, utc=True, format="ISO8601"))})
    ) == [59, 60, 58]
    objects = [pd.Timestamp("2021-03-01T23:00", tz="UTC"), dt.datetime(2021, 3, 1, tzinfo=UTC)]
    assert encoded(day, pd.DataFrame({"t": pd.Series(objects, dtype=object)})) == [59, 59]


@over(
    "form, texts",
    [
        (None, [" 2020-11-07 ", "20201107", "20201107T1200Z", "2020-11-07 00:00:00Z"]),
        ("%m/%d/%Y", ["11/07/2020", "11/7/2020", "2020-11-07"]),
        ("%d.%m.%Y", ["07.11.2020", "7.11.2020", "20201107"]),
        ("%d %b %Y", ["07 Nov 2020", "7 november  2020", "7 Nov. 2020"]),
        ("%d%m%Y", ["07112020"]),
        ("%m/%d/%y %I:%M %p", ["11/07/20 02:30 PM", "11/7/20 2:30 a.m."]),
        ("%A, %d-%B-%Y %H:%M:%S.%f %z", ["Saturday, 7-Nov-2020 14:59:59.5 -0900"]),
        ("%Y (%d/%m)", ["2020 (07/11)"]),
    ],
)
def test_text_in_a_declared_form(form, texts):
    day = Date("2020-11-01", "2020-11-30", format=form)
    assert encoded(day, pa.table({"t": texts})) == [6] * len(texts)
    odd = ["11/31/2020", "31.02.2020", "07 Nox 2020", "00/00/0000", "1/1", "", "2020-11-7"]
    assert encoded(day, pa.table({"t": odd})) == [-1] * len(odd)
    assert Domain.from_json(Domain({"t": day}).to_json())["t"] == eval(repr(day)) == day
    assert (day == Date("2020-11-01", "2020-11-30")) == (form is None)


CONNECTION = duckdb.connect()


ENGINES = {
    "polars": lambda table: pl.from_arrow(table).lazy(),
    "duckdb": lambda table: CONNECTION.from_arrow(table),
    "dask": lambda table: dd.from_pandas(table.to_pandas(), npartitions=2),
}


def assert_same_counts(lazy, eager, *attributes):
    names = as_frame(eager).names
    domain = Domain(dict(zip(names, attributes, strict=True)))
    got, expected = count_rows(read_rows(lazy), domain), count_rows(as_frame(eager), domain)
    np.testing.assert_array_equal(got.codes, expected.codes)
    np.testing.assert_array_equal(got.counts, expected.counts)


def assert_all_counted_alike(make, values, many):
    """Many attributes at once: a column for each, and one more of days where there is no zone."""
    columns, declared = {}, []
    for attribute in many:
        columns[f"c{len(columns)}"] = table_of(values, attribute.tz)["t"]
        declared.append(attribute)
        if attribute.tz is None:
            days = [None if value is None else value.date() for value in values]
            columns[f"c{len(columns)}"] = pa.array(days, pa.date32())
            declared.append(attribute)
    table = pa.table(columns)
    assert_same_counts(make(table), table, *declared)


@pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES)
def test_engines_count_what_memory_counts(make):
    # DuckDB takes long to plan so many expressions.
    many = list(attributes())[:: 3 if make is ENGINES["duckdb"] else 1]
    assert_all_counted_alike(make, [*MOMENTS, None, *MOMENTS[:3]], many)


def test_infinite_dates_of_duckdb_are_clipped():
    day = Date("2020-01-01", "2020-01-03", nullable=True)
    for kind in ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"):
        texts = ["'infinity'", "'-infinity'", "NULL", "'2200-01-01'"]
        made = ", ".join(f"{text}::{kind}" for text in texts)
        relation = CONNECTION.sql(f"SELECT unnest([{made}]) AS t")
        counts = count_rows(read_rows(relation), Domain({"t": day}))
        assert counts.codes[:, 0].tolist() == [0, 2, 3] and counts.counts.tolist() == [1, 2, 1]


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_dates_of_duckdb_beyond_microseconds_are_clipped(unit):
    ticks = [10**17, -(10**17), 1_577_836_800, None]
    table = pa.table({"t": pa.array(ticks, pa.int64()).cast(pa.timestamp(unit))})
    day = Date("2020-01-01", "2020-01-03", nullable=True)
    connection = duckdb.connect()  # older versions close what nobody holds
    assert_same_counts(connection.from_arrow(table), table, day)


@pytest.mark.parametrize("engine", ENGINES)
def test_text_in_engines_is_read_as_in_memory(engine):
    table, day = pa.table({"t": ["2021-03-01", "x", "20210302"]}), Date("2021-01-01", "2021-12-31")
    assert_same_counts(ENGINES[engine](table), table, day)


def test_a_type_with_any_zone_is_read_in_utc():
    # A refusal would tell of one record: DuckDB gives text with a zone the zone of its session.
    moments = pa.array([dt.datetime(2021, 1, 1, 20), None], pa.timestamp("us", "Asia/Tokyo"))
    day = Date("2021-01-01", "2021-12-31", nullable=True)
    hours = Datetime("2021-01-01", "2021-12-31", "hour", bins=365 * 24, nullable=True)
    for attribute, codes in ((day, [0, 365]), (hours, [20, 365 * 24])):
        domain = Domain({"t": attribute})
        for frame in forms_of(pa.table({"t": moments})):
            rows = read_rows(frame)
            domain.check_schema(rows)
            assert sorted(code_rows(rows, domain)[:, 0].tolist()) == codes


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
            found.append((code_rows(rows, domain)[:, 0] == 59).sum())
    assert "zoned" in kinds and kinds & {"string", "object"} and found == [3] * 6


def test_durations_and_times_with_a_zone_are_refused_by_their_type():
    durations = pa.table({"t": pa.array([1], pa.duration("s"))})
    # DuckDB gives these without their offset, so that two of one moment would differ.
    times = CONNECTION.sql("SELECT TIMETZ '10:30:00+02' AS t")
    refused = [
        (Date("2021-01-01", "2021-12-31"), forms_of(durations), "holds durations"),
        (Numeric(0, 1), forms_of(durations), "such as minutes"),
        (Categorical(["10:30", "08:30"]), [times], "neither numbers, text nor dates"),
    ]
    for attribute, frames, message in refused:
        for frame in frames:
            with pytest.raises(DomainError, match=message):
                Domain({"t": attribute}).check_schema(read_rows(frame))


def forms_of(table):
    lazy = [ENGINES["polars"](table), ENGINES["dask"](table)]
    return [table, pl.from_arrow(table), table.to_pandas(), *lazy]


YEARS = ("2021-01-01", "2021-12-31")


@over(
    "kind, arguments, options, message",
    [
        (Date, ("2021-02-30", "2021-12-31"), {}, "lower of Date must be a date, got '2021-02"),
        (Date, ("2021-01-01", 3), {}, "upper of Date must be a date, got 3. Give ISO text"),
        (Date, ("2021-12-31", "2021-01-01"), {}, "needs lower <= upper, got lower='2021-12-31'"),
        (Date, (*YEARS, "hour"), {}, "unit must be one of 'day'.*got 'hour'"),
        (Date, YEARS, {"bins": 366}, "from 1 to the number of days.*365"),
        (Date, YEARS, {"bins": 0}, "bins=0 must be"),
        (Date, ("2021-01", "2021-12"), {}, "must be a date, got '2021-01'"),
        (Date, ("2021-01-01T00:00Z", "2021-12-31"), {}, "has a time zone.*Leave it out"),
        (Date, YEARS, {"special": "1900-01-01"}, "must be a list of dates"),
        (Date, YEARS, {"special": [0]}, "A special value of Date must be"),
        (Date, YEARS, {"special": ["1900-01-01"] * 2}, "must differ"),
        (Datetime, ("2021-01-01T00:00Z", "2021-12-31"), {}, "has a time zone.*Declare it with"),
        (Datetime, YEARS, {"tz": "Europe/Berlin"}, "must be 'UTC'.*got 'Eur.*first: .dt.tz_conv"),
        (Datetime, ("1000-01-01", "2021-01-01", "microsecond"), {}, "too far from 1970"),
        (Datetime, ("2001-01-01", "2021-01-01", "microsecond", 100), {}, "at most 14 bins"),
        *((Date, YEARS, {"format": form}, "strptime") for form in ("%d", "%Y-%Y-%m-%d", "", 3)),
    ],
)
def test_declarations_that_are_refused(kind, arguments, options, message):
    with pytest.raises(DomainError, match=message):
        kind(*arguments, **options)


def test_ends_may_be_written_in_many_ways():
    ends = [
        (dt.date(2021, 3, 1), dt.datetime(2021, 9, 30, 12)),
        (pd.Timestamp("2021-03-01"), np.datetime64("2021-09-30")),
        ("2021-03-01T13:00", "2021-09-30 23:59:59"),
    ]
    assert {Date(*each) for each in ends} == {Date("2021-03-01", "2021-09-30")}
    assert Date("2021", "2022", "year").size == 2
    assert Date("2021-Q2", "2022-Q1", "quarter") == Date("2021-05-03", "2022-03-31", "quarter")
    # With a distance from UTC, where that is declared.
    here = Datetime("2021-01-01", "2021-12-31T23:00", "hour", tz="UTC")
    assert here == Datetime("2021-01-01T01:00+01:00", "2021-12-31T23:00Z", "hour", tz="UTC")
    # An upper end without a time is a whole day.
    assert Datetime("2021-01-01", dt.date(2021, 1, 1), "hour").size == 24
    assert Datetime("2021-01-01", dt.datetime(2021, 1, 1), "hour").size == 1


@every
def test_every_code_and_declaration_comes_back(attribute):
    codes = np.arange(attribute.size)
    drawn = attribute.decode(codes, np.random.default_rng(0))
    assert column_of(drawn).codes(attribute.coding()).tolist() == codes.tolist()
    zone = None if attribute.tz is None else str(drawn.dt.tz)
    assert (zone, drawn.isna().tolist()) == (attribute.tz, [False] * attribute.n_values + [True])
    low, high = (attribute.shown(end) for end in attribute.span(codes))
    inside = codes < attribute.n_values
    assert (drawn[inside] >= low[inside]).all() and (drawn[inside] <= high[inside]).all()
    assert eval(repr(attribute)) == attribute
    assert Domain.from_json(Domain({"t": attribute}).to_json())["t"] == attribute


YEAR = Domain({"t": Date("2021-01-01", "2021-12-31"), "k": Numeric(0, 1)})

MONTHS = Domain({"t": Date("2021-01", "2021-12", "month", nullable=True)})


@over(
    "query, days",
    [
        ("t >= '2021-12-31'", 1),
        ("t > '2021-12-30'", 1),
        ("'2021-03-01' <= t < '2021-04-01'", 31),
        ("t != '2021-03-01'", 364),
        ("t in ['2021-03-01', '2021-03-05']", 2),
        ({"t": (dt.date(2021, 3, 1), None)}, 306),
        ({"t": pd.Timestamp("2021-03-01")}, 1),
        ({"t": [np.datetime64("2021-03-01")]}, 1),
        ({"t": ("1990-01-01", "2090-01-01")}, 365),
        ("t < '1990-01-01'", 0),
        ("t >= '2021-12-30T12:00'", 1),
        ("t <= '2021-01-01T12:00'", 1),
    ],
)
def test_queries_count_days(query, days):
    assert shares(query, YEAR).sum() == days


def test_queries_compare_with_the_first_moment_of_a_unit():
    for query, months in (
        ("t >= '2021-11-15'", [11]),
        ("t >= '2021-11'", [10, 11]),
        ("t <= '2021-02-15'", [0, 1]),
        ("t == '2021-03'", [2]),
        ({"t": ("2021-03", "2021-04-30")}, [2, 3]),
        ("t == None", [12]),
    ):
        assert np.flatnonzero(shares(query, MONTHS)).tolist() == months
    hours = Domain({"t": Datetime("2021-03-28", "2021-03-28", "hour", tz="UTC")})
    for query in ("t < '2021-03-28T02:00'", "t < '2021-03-28T03:00+01:00'"):
        assert shares(query, hours).sum() == 2
    assert shares({"t": pd.Timestamp("2021-03-28T11:00", tz="Asia/Tokyo")}, hours)[2] == 1


def test_queries_that_are_refused():
    for query, message in (
        ("t >= 5", "A value compared with column 't' must be a date, got 5. Give ISO text"),
        ("t >= '2021-02-30'", "must be a date"),
        ("t >= '2021-03-01T00:00Z'", "has a time zone"),
        ({"t": True}, "must be a date, got True"),
        ({"t": ("2021-03-01", "2021-02-01")}, "reversed"),
        ({"t": float("nan")}, "must be a date"),
    ):
        with pytest.raises(ValueError, match=message):
            parse(query, YEAR)
    with pytest.raises(ValueError, match="no record has the value"):
        parse("t == '2021-03-15'", MONTHS)


@pytest.fixture(scope="module")
def release():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "t": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 730, 5000), unit="D"),
            "sex": rng.choice(["F", "M"], 5000),
        }
    )
    domain = Domain({"t": Date("2020-01", "2021-12", "month"), "sex": Categorical(["F", "M"])})
    view = skdp.MarginalSynthesizer(epsilon=10.0, domain=domain, random_state=0).fit(frame)
    return frame, view.synopsis_


def test_counts_means_and_groups_of_a_release(release):
    frame, synopsis = release
    true = (frame.t >= "2021-01-01").sum()
    assert abs(synopsis.count("t >= '2021-01-01'") - true) < 100
    mean = synopsis.mean("t")
    assert isinstance(mean, pd.Timestamp)
    months = frame.t.dt.to_period("M").dt.start_time
    assert abs(mean - months.mean()) < pd.Timedelta(days=8)
    by = synopsis.mean("t", ["sex == 'F'", "sex == 'M'"])
    assert isinstance(by, pd.DatetimeIndex)
    table = synopsis.aggregate("sex", "t")
    assert list(table.columns) == ["sex", "count", "mean"]
    assert table["mean"].tolist() == by.tolist()
    assert synopsis.aggregate("t")["t"].tolist() == list(
        pd.date_range("2020-01-01", periods=24, freq="MS")
    )
    assert synopsis.sample(10, random_state=0)["t"].dt.day.eq(1).all()


def test_dates_have_no_sum(release):
    frame, synopsis = release
    with pytest.raises(ValueError, match="holds dates, which have no sum. Ask for its mean"):
        synopsis.sum("t")
    with pytest.raises(DomainError, match="holds dates, which have no sum"):
        DataCube(
            epsilon=1.0, domain=synopsis.domain, dimensions=["sex"], measure="mean", value="t"
        ).fit(frame)


def test_histograms_of_dates():
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 365, 3000), unit="D")
    day = Date("2021-01-01", "2021-12-31", nullable=True)
    tree = RangeTreeHistogram(epsilon=10.0, domain=Domain({"t": day}), random_state=0)
    tree.fit(pd.DataFrame({"t": days}))
    assert abs(tree.quantile(0.5) - pd.Timestamp("2021-07-02")) < pd.Timedelta(days=10)
    ends = [pd.Timestamp("2021-01-01"), pd.Timestamp("2021-12-31")]
    assert list(tree.quantile([1e-6, 1 - 1e-6])) == ends
    assert abs(tree.proportion((None, "2021-06-30")) - 0.5) < 0.05
    assert abs(tree.count(("2021-03-01", "2021-03-31")) - 255) < 50
    table = tree.to_frame()
    assert table["t"].iloc[0] == pd.Timestamp("2021-01-01")
    assert table["t"].iloc[-1] is None


@over(
    "form, written",
    [("%d%m%Y", "7112020"), ("%d%m%y", "70905"), ("%y%m%d", "70905"), ("%Y%m%d", "20201107")],
)
def test_digits_are_read_alike_as_text_and_as_numbers(form, written):
    """Readers of files decide by other records which of both they are."""
    day = Date("1990-01-01", "2030-12-31", format=form, nullable=True)
    columns = ([written, "unknown"], [int(written)], [float(written)])
    codes = {encoded(day, pd.DataFrame({"t": values}))[0] for values in columns}
    assert len(codes) == 1 and codes != {day.size - 1}
