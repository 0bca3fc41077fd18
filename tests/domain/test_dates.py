"""Date and Datetime: one number line in every library and engine; values that are no dates."""

from __future__ import annotations

import datetime as dt
import json

import numpy as np
import pandas as pd
import pytest
from engines import ENGINE_WARNINGS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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


every = pytest.mark.parametrize("attribute", list(attributes()), ids=repr)


@pytest.mark.parametrize("tz", [None, "UTC"])
@pytest.mark.parametrize("unit", UNITS)
def test_numbers_are_those_of_pythons_calendar(unit, tz):
    inside = MOMENTS[:-2]
    given_values = inside if tz is None else aware(inside)
    micros = np.array([moment(value, unit)[0] for value in given_values])
    expected = [number_by_hand(value, unit, tz) for value in given_values]
    line = Clock(unit, tz)
    assert line.numbers(micros).tolist() == expected


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


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("attribute", [Date("1960-01-01", "2030-12-31", nullable=True)], ids=repr)
def test_resolutions_of_times_round_down(attribute, unit):
    values = [value for value in MOMENTS if 1700 < value.year < 2200]
    table = table_of([value.replace(microsecond=0) for value in values], None, unit)
    expected = encoded(attribute, pd.DataFrame({"t": pd.Series(values, dtype=object)}))
    assert encoded(attribute, table) == expected
    assert encoded(attribute, table.to_pandas()) == expected
    series = pd.Series(np.array(values, dtype=f"datetime64[{unit}]"))
    assert encoded(attribute, pd.DataFrame({"t": series})) == expected
    frame = pl.from_arrow(table)
    assert encoded(attribute, frame) == expected
    assert encoded(attribute, pl.DataFrame({"t": frame["t"].cast(pl.Date)})) == expected
    for dtype in (pa.date32(), pa.date64()):
        days = pa.array([value.date() for value in values], dtype)
        assert encoded(attribute, pa.table({"t": days})) == expected
        arrow = pd.Series(days, dtype=pd.ArrowDtype(dtype))
        for frame in (pa.table({"t": days}), pd.DataFrame({"t": arrow})):
            assert Domain({"t": attribute}).encode(frame)[:, 0].tolist() == expected


NO_DATES = [
    "2021-02-30",
    "2021-13-01",
    "2021-2-3",
    "01/03/2021",
    "2021-03-01T24:00",
    "2021-03-01T12:00:60",
    "2021-03-01T12:00+25:00",
    "2021-03-01Z",
    "2021-03",
    "2021",
    "٢٠٢١-٠٣-٠١",
    "today",
    "",
    "nan",
]


@pytest.mark.parametrize("nullable", [True, False])
def test_text_that_is_no_date_is_missing(nullable):
    day = Date("2021-01-01", "2021-12-31", nullable=nullable)
    missing = 365 if nullable else -1
    expected = [*[missing] * len(NO_DATES), 59]
    assert encoded(day, pa.table({"t": [*NO_DATES, "2021-03-01"]})) == expected
    objects = pd.Series([*NO_DATES, "2021-03-01 23:59:59.999999999"], dtype=object)
    assert encoded(day, pd.DataFrame({"t": objects})) == expected


class Raises(dt.datetime):
    def utcoffset(self):
        raise RuntimeError("a value")


class Computes(dt.date):
    """A date that counts its days in its own way."""

    def __new__(cls, days):
        self = super().__new__(cls, 2021, 3, 1)
        self.days = days
        return self

    def toordinal(self):
        return self.days


@pytest.mark.parametrize("days", [float("nan"), np.arange(3), "a", None])
def test_dates_that_do_not_compute_are_missing(days):
    day = Date("2021-01-01", "2021-12-31", nullable=True)
    series = pd.Series([dt.date(2021, 3, 1), Computes(days)], dtype=object)
    assert encoded(day, pd.DataFrame({"t": series})) == [59, 365]


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


# By position: pytest would print them.
@pytest.mark.parametrize("position", range(15))
def test_dates_beyond_python_never_raise(position, capfd):
    zone, table = list(far_columns())[position]
    owners = identities(as_frame(table).column("t")).tolist()
    values = FAR if len(owners) == len(FAR) else FAR[:2] + FAR[3:4]
    # Those 140,000 years away are moved nearer, where two would be one.
    near = [value is not None and abs(value) < 2**40 for value in values]
    assert [owner >= 0 for owner in owners] == near or len(values) < len(FAR)
    day = Datetime("2021-01-01", "2021-12-31", "day", tz=zone and "UTC", nullable=True)
    codes = Domain({"t": day}).encode(table)[:, 0].tolist()
    assert codes[0] == 364
    assert codes[len(values) - 1] == 365 if len(values) == 3 else codes[2:4] == [0, 365]
    # Polars prints what it could not convert.
    assert capfd.readouterr() == ("", "")


def test_objects_that_are_no_dates_are_missing():
    day = Date("2021-01-01", "2021-12-31", nullable=True)
    odd = [
        None,
        pd.NaT,
        np.datetime64("NaT", "s"),
        float("nan"),
        18_690,
        18_690.0,
        True,
        b"2021-03-01",
        dt.time(12),
        dt.timedelta(1),
        np.timedelta64(1, "D"),
        Raises(2021, 3, 1),
        [2021, 3, 1],
        object(),
    ]
    series = pd.Series([*odd, dt.date(2021, 3, 1)], dtype=object)
    assert encoded(day, pd.DataFrame({"t": series})) == [365] * len(odd) + [59]


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


@pytest.mark.parametrize(
    ("form", "texts"),
    [
        (
            None,
            ["2020-11-07", " 2020-11-07 ", "20201107", "20201107T1200Z", "2020-11-07 00:00:00Z"],
        ),
        ("%m/%d/%Y", ["11/07/2020", "11/7/2020", "2020-11-07"]),
        ("%d.%m.%Y", ["07.11.2020", "7.11.2020", "20201107"]),
        ("%d %b %Y", ["07 Nov 2020", "7 november  2020", "7 Nov. 2020"]),
        ("%d%m%Y", ["07112020", "7112020"][:1]),
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
    domain = Domain({"t": day, "more": Categorical(["a", "b"])})
    assert Domain.from_json(domain.to_json()) == domain
    assert eval(repr(day)) == day
    assert day == Date("2020-11-01", "2020-11-30", format=form)
    assert (day == Date("2020-11-01", "2020-11-30")) == (form is None)


@pytest.mark.parametrize("form", ["%d", "%Y", "x", "%Y-%Y-%m-%d", "%m/%d/%q", "", 3, "%c"])
def test_forms_that_say_no_date_are_refused(form):
    with pytest.raises(DomainError, match="strptime"):
        Date("2020-11-01", "2020-11-30", format=form)


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


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.lists(st.none() | st.datetimes(), min_size=1, max_size=20),
    st.sampled_from(UNITS),
    st.sampled_from([None, "UTC"]),
)
def test_engines_count_any_dates_as_memory_does(engine, values, unit, tz):
    special = ["1900-01-01"]
    one = Datetime("1980-01-01", "2000-01-01", unit, bins=5, tz=tz, special=special)
    assert_all_counted_alike(ENGINES[engine], values, [one])


def test_infinite_dates_of_duckdb_are_clipped():
    made = "SELECT unnest(['infinity'::{0}, '-infinity'::{0}, NULL, '5000-01-01'::{0}]) AS t"
    for kind in ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"):
        if kind == "TIMESTAMP_NS":
            made = made.replace("5000", "2200")
        relation = CONNECTION.sql(made.format(kind))
        day = Date("2020-01-01", "2020-01-03", nullable=True)
        counts = count_rows(read_rows(relation), Domain({"t": day}))
        assert dict(zip(counts.codes[:, 0].tolist(), counts.counts.tolist(), strict=True)) == {
            0: 1,
            2: 2,
            3: 1,
        }


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


def test_times_with_a_zone_are_refused_by_their_type():
    # DuckDB gives them without their offset, so that two of one moment would differ.
    connection = pytest.importorskip("duckdb").connect()
    rows = read_rows(connection.sql("SELECT TIMETZ '10:30:00+02' AS t"))
    with pytest.raises(DomainError, match="neither numbers, text nor dates"):
        Domain({"t": Categorical(["10:30", "08:30"])}).check_schema(rows)


def test_durations_are_refused_by_their_type():
    day = Date("2021-01-01", "2021-12-31")
    refused = [
        (day, pa.table({"t": pa.array([1], pa.duration("s"))}), "holds durations"),
        (Numeric(0, 1), pa.table({"t": pa.array([1], pa.duration("s"))}), "such as minutes"),
    ]
    for attribute, table, message in refused:
        domain = Domain({"t": attribute})
        for frame in forms_of(table):
            rows = read_rows(frame)
            # Columns of objects are read value by value, whatever they hold.
            if rows.kinds["t"] != "object":
                with pytest.raises(DomainError, match=message):
                    domain.check_schema(rows)


def forms_of(table):
    # A day is an object in pandas and Dask, and a time of the day is nothing to Dask.
    frames = [table, pl.from_arrow(table), ENGINES["polars"](table)]
    kind = table["t"].type
    if not (pa.types.is_time(kind) or pa.types.is_date(kind)):
        frames += [table.to_pandas(), ENGINES["dask"](table)]
    return frames


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Date("2021-02-30", "2021-12-31"),
            "lower of Date must be a date, got '2021-02",
        ),
        (lambda: Date("2021-01-01", 3), "upper of Date must be a date, got 3. Give ISO text"),
        (lambda: Date("2021-12-31", "2021-01-01"), "needs lower <= upper, got lower='2021-12-31'"),
        (lambda: Date("2021-01-01", "2021-12-31", "hour"), "unit must be one of 'day'.*got 'hour'"),
        (lambda: Date("2021-01-01", "2021-12-31", bins=366), "from 1 to the number of days.*365"),
        (lambda: Date("2021-01-01", "2021-12-31", bins=0), "bins=0 must be"),
        (lambda: Date("2021-01", "2021-12"), "must be a date, got '2021-01'"),
        (lambda: Date("2021-01-01T00:00Z", "2021-12-31"), "has a time zone.*Leave it out"),
        (lambda: Date("2021-01-01", "2021-12-31", special="1900-01-01"), "must be a list of dates"),
        (lambda: Date("2021-01-01", "2021-12-31", special=[0]), "A special value of Date must be"),
        (lambda: Date("2021-01-01", "2021-12-31", special=["1900-01-01"] * 2), "must differ"),
        (
            lambda: Datetime("2021-01-01T00:00Z", "2021-12-31"),
            "has a time zone.*Declare it with",
        ),
        (
            lambda: Datetime("2021-01-01", "2021-12-31", tz="Europe/Berlin"),
            "tz must be 'UTC'.*got 'Europe/Berlin'.*pandas first: .dt.tz_convert",
        ),
        (lambda: Datetime("2021-01-01", "2021-12-31", tz=3), "tz must be 'UTC'.*got 3"),
        (
            lambda: Datetime("1000-01-01", "2021-01-01", "microsecond"),
            "too far from 1970 to be counted exactly",
        ),
        (
            lambda: Datetime("2001-01-01", "2021-01-01", "microsecond", bins=100),
            "use at most 14 bins, or a coarser unit",
        ),
    ],
)
def test_declarations_that_are_refused(make, message):
    with pytest.raises(DomainError, match=message):
        make()


def test_ends_may_be_written_in_many_ways():
    expected = Date("2021-03-01", "2021-09-30")
    for low, high in [
        (dt.date(2021, 3, 1), dt.datetime(2021, 9, 30, 12)),
        (pd.Timestamp("2021-03-01"), np.datetime64("2021-09-30")),
        ("2021-03-01T13:00", "2021-09-30 23:59:59"),
    ]:
        assert Date(low, high) == expected
    assert Date("2021", "2022", "year").size == 2
    assert Date("2021-Q2", "2022-Q1", "quarter") == Date("2021-05-03", "2022-03-31", "quarter")
    # With a distance from UTC, where that is declared.
    here = Datetime("2021-01-01", "2021-12-31T23:00", "hour", tz="UTC")
    assert here == Datetime("2021-01-01T01:00+01:00", "2021-12-31T23:00Z", "hour", tz="UTC")
    # An upper end without a time is a whole day.
    assert Datetime("2021-01-01", dt.date(2021, 1, 1), "minute").size == 128
    assert Datetime("2021-01-01", dt.date(2021, 1, 1), "hour").size == 24
    assert Datetime("2021-01-01", dt.datetime(2021, 1, 1), "hour").size == 1


@every
def test_repr_and_json_read_back(attribute):
    names = {"Date": Date, "Datetime": Datetime}
    assert eval(repr(attribute), names) == attribute
    domain = Domain({"t": attribute})
    assert Domain.from_json(domain.to_json()) == domain
    (data,) = json.loads(domain.to_json())["attributes"]
    assert data["type"] == type(attribute).__name__.lower()
    assert isinstance(data["lower"], str)


@every
def test_every_code_comes_back(attribute):
    codes = np.arange(attribute.size)
    drawn = attribute.decode(codes, np.random.default_rng(0))
    assert column_of(drawn).codes(attribute.coding()).tolist() == codes.tolist()
    zone = None if attribute.tz is None else str(drawn.dt.tz)
    assert (zone, drawn.isna().tolist()) == (attribute.tz, [False] * attribute.n_values + [True])
    low, high = (attribute.shown(end) for end in attribute.span(codes))
    inside = codes < attribute.n_values
    assert (drawn[inside] >= low[inside]).all()
    assert (drawn[inside] <= high[inside]).all()


def test_sampled_values_are_the_first_moments_of_units():
    month = Date("2020-01", "2021-12", "month")
    drawn = month.decode(np.arange(24), np.random.default_rng(0))
    assert (drawn.dt.day == 1).all()
    hour = Datetime("2021-01-01", "2021-12-31", "hour")
    drawn = hour.decode(np.arange(128), np.random.default_rng(0))
    assert (drawn.dt.floor("h") == drawn).all()


YEAR = Domain({"t": Date("2021-01-01", "2021-12-31"), "k": Numeric(0, 1)})

MONTHS = Domain({"t": Date("2021-01", "2021-12", "month", nullable=True)})


@pytest.mark.parametrize(
    ("query", "days"),
    [
        ("t >= '2021-12-31'", 1),
        ("t > '2021-12-30'", 1),
        ("'2021-03-01' <= t < '2021-04-01'", 31),
        ("t == '2021-03-01'", 1),
        ("t != '2021-03-01'", 364),
        ("t in ['2021-03-01', '2021-03-05']", 2),
        ({"t": ("2021-03-01", "2021-03-31")}, 31),
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
    def months(query):
        return np.flatnonzero(shares(query, MONTHS)).tolist()

    assert months("t >= '2021-11-15'") == [11]
    assert months("t >= '2021-11'") == [10, 11]
    assert months("t <= '2021-02-15'") == [0, 1]
    assert months("t == '2021-03'") == [2]
    assert months({"t": ("2021-03", "2021-04-30")}) == [2, 3]
    assert months("t == None") == [12]
    with pytest.raises(ValueError, match="no record has the value"):
        months("t == '2021-03-15'")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("t >= 5", "A value compared with column 't' must be a date, got 5. Give ISO text"),
        ("t >= 'March'", "column 't' must be a date, got 'March'"),
        ("t >= '2021-02-30'", "must be a date"),
        ("t >= '2021-03-01T00:00Z'", "has a time zone"),
        ({"t": True}, "must be a date, got True"),
        ({"t": ("2021-03-01", "2021-02-01")}, "reversed"),
        ({"t": float("nan")}, "must be a date"),
    ],
)
def test_queries_that_are_refused(query, message):
    with pytest.raises(ValueError, match=message):
        parse(query, YEAR)


def test_queries_with_a_zone():
    domain = Domain({"t": Datetime("2021-03-28", "2021-03-28", "hour", tz="UTC")})
    assert shares("t < '2021-03-28T02:00'", domain).sum() == 2
    assert shares("t < '2021-03-28T03:00+01:00'", domain).sum() == 2
    assert shares({"t": pd.Timestamp("2021-03-28T11:00", tz="Asia/Tokyo")}, domain)[2] == 1


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
            epsilon=1.0, domain=synopsis.domain, dimensions=["sex"], measure="sum", value="t"
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
    assert table["lower"].iloc[0] == pd.Timestamp("2021-01-01")
    assert pd.isna(table["lower"].iloc[-1])


def test_rules_about_dates():
    month = Date("2020-01", "2021-12", "month", bins=8)
    domain = Domain(
        {
            "start": month,
            "end": month,
            "year": Categorical(["2020", "2021"]),
            "reason": Categorical(["a", "b"], nullable=True),
        },
        structure=[
            skdp.at_most("start", "end"),
            skdp.derived(
                "year", "start", {("2020-01", "2021-01"): "2020", ("2021-01", None): "2021"}
            ),
            skdp.forbid("reason != None and end < '2021-07'"),
        ],
    )
    assert Domain.from_json(domain.to_json()) == domain
    assert domain.names == ("start", "end", "reason")
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, size, 500) for size in domain.shape])
    codes = codes[~domain.structure.breaks(codes)]
    frame = domain.decode(codes, 0)
    assert len(frame) > 100
    assert (frame["start"] <= frame["end"]).all()
    assert (frame["start"].dt.year.astype(str) == frame["year"]).all()
    assert frame["reason"].isna()[frame["end"] < "2021-07-01"].all()
    with pytest.raises(DomainError, match="number line"):
        Domain(
            {"start": month, "end": Date("2020-01-01", "2021-12-31")},
            structure=[skdp.at_most("start", "end")],
        )
    with pytest.raises(DomainError, match="column 'start' must be a date, got 'soon'"):
        Domain(
            {"start": month, "year": Categorical(["2020"])},
            structure=[skdp.derived("year", "start", {("soon", None): "2020"})],
        )


@pytest.mark.parametrize(
    ("form", "written"),
    [("%d%m%Y", "7112020"), ("%d%m%y", "70905"), ("%y%m%d", "70905"), ("%Y%m%d", "20201107")],
)
def test_digits_are_read_alike_as_text_and_as_numbers(form, written):
    """Readers of files decide by other records which of both they are."""
    attribute = Date("1990-01-01", "2030-12-31", format=form, nullable=True)
    domain = Domain({"day": attribute})
    codes = [
        domain.encode(pd.DataFrame({"day": values}))[0, 0]
        for values in ([written, "unknown"], [int(written)], [float(written)])
    ]
    assert len(set(codes)) == 1 and codes[0] != attribute.size - 1
