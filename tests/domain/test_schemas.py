"""Domains from types and code books; no row is ever read."""

import datetime
import enum
import re

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp import (
    Categorical,
    Date,
    Datetime,
    Domain,
    DomainError,
    Identifier,
    Numeric,
    Taxonomy,
    forbid,
)
from skdp.domain.schemas import HEADERS, as_range, as_values, editable


def declared(domain):
    """Attributes of all columns, identifiers too."""
    return {name: domain.declared(name) for name in domain.columns}


def test_types_with_ranges_are_a_domain():
    frame = pd.DataFrame(
        {"age": [1], "city": ["x"], "sex": pd.Categorical(["F"], ["F", "M"]), "ok": [True]}
    )
    domain = Domain.from_schema(frame, ranges={"age": (0, 99), "city": ["x", "y"]})
    assert domain == Domain(
        {
            "age": Numeric(0, 99, integer=True),
            "city": Categorical(["x", "y"], nullable=True),
            "sex": Categorical(["F", "M"], nullable=True),
            "ok": Categorical([False, True]),
        }
    )
    assert Domain.from_schema(frame.dtypes, ranges={"age": (0, 99), "city": ["x", "y"]}) == domain


def test_no_value_is_read():
    def boom(frame):
        raise AssertionError("rows were read")

    frame = pl.DataFrame({"age": [1], "sex": ["F"]}, schema_overrides={"sex": pl.Enum(["F", "M"])})
    lazy = frame.lazy().map_batches(boom, schema=frame.schema)
    with pytest.raises((AssertionError, pl.exceptions.ComputeError), match="rows were read"):
        lazy.collect()
    expected = Domain.from_schema(frame.schema, ranges={"age": (0, 9)})
    assert Domain.from_schema(lazy, ranges={"age": (0, 9)}) == expected
    table = pd.DataFrame({"age": [1, 200], "name": ["x", "secret"]})
    with pytest.raises(DomainError) as caught:
        Domain.from_schema(table)
    assert "secret" not in str(caught.value) and "200" not in str(caught.value)


def test_types_of_dates_become_dates_or_instants_as_their_bounds_say():
    types = {"d": "datetime64[ns]", "t": "datetime64[ns]", "z": "datetime64[ns, Europe/Berlin]"}
    day = ("2020-01-01", "2020-12-31")
    domain = Domain.from_schema(
        types, ranges={"d": day, "t": ("2020-01-01T00:00", "2020-12-31T23:00"), "z": day}
    )
    assert type(domain["d"]) is Date
    assert type(domain["t"]) is Datetime and domain["t"].tz is None
    assert type(domain["z"]) is Datetime and domain["z"].tz == "UTC"


def test_one_error_names_every_gap_and_its_code_can_be_filled_in():
    types = {"age": "int64", "pay": "float64", "city": "str", "d": "date", "ok": "bool"}
    with pytest.raises(DomainError, match="4 columns need") as caught:
        Domain.from_schema(types)
    code = re.search(r"ranges=(\{.*?\n\})", str(caught.value), re.S)[1]
    again = eval(code)
    assert set(again) == {"age", "pay", "city", "d"}
    with pytest.raises(DomainError, match="4 columns need"):
        Domain.from_schema(types, ranges=again)
    code = code.replace("(..., ...),  # date", "('2020-01-01', '2020-02-01'),  #")
    code = code.replace("(..., ...)", "(0, 9)").replace("[...]", "['x']")
    assert Domain.from_schema(types, ranges=eval(code)).names == tuple(types)


def test_unknown_types_are_named_with_the_known_ones():
    with pytest.raises(
        DomainError, match=r"'s' has type Duration\(time_unit='ns'\)\. Known are: integer, num"
    ):
        Domain.from_schema(pa.schema([("s", pa.duration("ns")), ("b", pa.bool_())]).empty_table())
    with pytest.raises(DomainError, match="'b' has type geopoint"):
        Domain.from_schema({"a": "bool", "b": "geopoint"})


def test_overrides():
    types = {"id": "int64", "age": "int64", "zip": "int64", "x": "object", "w": "int64"}
    domain = Domain.from_schema(
        types,
        ranges={
            "id": Identifier(),
            "zip": Categorical([1, 2]),
            "x": (0.0, 1.5),
            "age": Numeric(0, 9),
            "w": Numeric(0, 10**6, 50, integer=True),
        },
    )
    assert domain.columns == tuple(types) and domain.names == ("age", "zip", "x", "w")
    assert domain["zip"] == Categorical([1, 2]) and domain["x"] == Numeric(0, 1.5, nullable=True)
    assert domain["w"] == Numeric(0, 10**6, 50, integer=True)
    assert Domain.from_schema({"w": "int64"}, ranges={"w": (0, 10**6)})["w"].size == 800


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ranges": {"b": (0, 1)}}, "ranges names 'b', which the schema does not have"),
        ({"ranges": ["a"]}, "ranges must be a dict"),
        ({"ranges": {"a": (0, 1, 2)}}, "takes a pair"),
        ({"ranges": {"a": 3}}, "takes a pair"),
        ({"ranges": {"a": (1, 0)}}, "Column 'a': Numeric needs lower"),
        ({"ranges": {"a": ("x", "y")}}, "Column 'a': lower must be a number"),
    ],
)
def test_wrong_parameters_are_refused(options, message):
    with pytest.raises((DomainError, ValueError), match=message):
        Domain.from_schema({"a": "int64"}, **options)


BOOK = """\
Variable,Type,Range,Values,Special,Missing,Decimals,Scale,Bins,Unit,Label
loan_id,id,,,,,,,,,Number of the loan
amount,money,"0 to 40,000",,0,no,2,log,40,,Amount
grade,ordinal,,A|B|C,,,,,,,Grade
status,integer,,1=current; 2=late; 9=unknown,,yes,,,,,Status
score,integer,300..850,,999,,,,auto,,Score
term,,,"36, 60",,,,,,,Months
sex,string,,1=Male;2=Female,,,,,,,Sex
rate,number,0-0.3,,,,,,20,,Rate
issued,date,2015-01-01..2020-12-31,,,,,,,month,Month of issue
joint,category,,0=no;1=yes,,,,,,,Two applicants
"""


def write(tmp_path, text, name="book.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_code_book(tmp_path):
    domain = Domain.from_schema(write(tmp_path, BOOK))
    assert declared(domain) == {
        "loan_id": Identifier(),
        "amount": Numeric(0, 40_000, 40, scale="log", special=[0], decimals=2),
        "grade": Categorical(["A", "B", "C"], ordered=True),
        "status": Categorical([1, 2, 9], nullable=True),
        "score": Numeric(300, 850, "auto", integer=True, special=[999]),
        "term": Categorical([36, 60]),
        "sex": Categorical(["1", "2"]),
        "rate": Numeric(0, 0.3, 20),
        "issued": Date("2015-01-01", "2020-12-31", unit="month"),
        "joint": Categorical([0, 1]),
    }


def book_of(tmp_path, **columns):
    """A code book with these columns."""
    path = tmp_path / "book.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("category", "18-24|25-34", Categorical(["18-24", "25-34"])),
        ("", "a, b", Categorical(["a", "b"])),
        ("", "01, 02", Categorical(["01", "02"])),
        ("", "1, 2.5", Categorical([1, 2.5])),
        ("", "1, b", Categorical(["1", "b"])),
        ("boolean", "true|false", Categorical([True, False])),
        ("string", "true|false", Categorical(["true", "false"])),
    ],
)
def test_values_of_code_books(tmp_path, kind, values, expected):
    domain = Domain.from_schema(book_of(tmp_path, name=["a"], type=[kind], values=[values]))
    assert domain["a"] == expected


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,b\n1,2", "has no column for the names"),
        ("", "has no column for the names"),
        ("name,type\n", "has no columns"),
        ("name,variable\na,b", "two columns for the name: 'name' and 'variable'"),
        ("name,type\na,bool\nb,bool\na,bool", "'a' are repeated"),
        ("name,type\na,bool\na,bool", "'a' are repeated"),
        ("name,type\n,bool", "no name in row 2"),
        ("name,type\na,geopoint", "'a' has type geopoint"),
        ("name,type,range\na,int,zero to nine", "'a' .row 2.: the range 'zero to nine' is not"),
        ("name,type,range\na,int,9-0", "lower < upper|lower"),
        ("name,type,min,max\na,int,x,9", "'x' is not a number"),
        ("name,type,range,bins\na,int,0-9,many", "bins must be a whole number"),
        (
            "name,type,range,scale\na,float,0-9,cubic",
            "scale must be 'linear', 'log' or 'sqrt', got 'cubic'",
        ),
        ("name,type,range,ordered\na,int,0-9,perhaps", "ordered must be yes or no"),
        ("name,type,range,values\na,int,0-9,3", "both values and a range"),
        ("name,type,missing\na,bool,perhaps", "missing must be yes or no"),
        ("name,type\na,int", "1 column needs"),
        ("name,type,values\na,date,2020-01-01", "or is a date"),
    ],
)
def test_code_books_that_are_refused(tmp_path, rows, message):
    with pytest.raises(DomainError, match=message):
        Domain.from_schema(write(tmp_path, rows))


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("0-99", ("0", "99")),
        ("0..99", ("0", "99")),
        ("0 to 99", ("0", "99")),
        ("-9..-1", ("-9", "-1")),
        ("$1,000 - $2,000", ("$1,000", "$2,000")),
        ("2020-01 to 2020-12", ("2020-01", "2020-12")),
        ("2020-01-01T00:00..2020-01-01T12:00", ("2020-01-01T00:00", "2020-01-01T12:00")),
        ("-5-5", None),
        ("5", None),
        ("a-b", None),
        (">= 18", None),
        ("", None),
    ],
)
def test_ranges_in_cells(text, ends):
    assert as_range(text) == ends


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1=Male; 2=Female", ["1", "2"]),
        ("1=Yes, or so|2=No", ["1", "2"]),
        ("1|2|3", ["1", "2", "3"]),
        ("a, b", ["a", "b"]),
        ("a:b; c", ["a:b", "c"]),
        ("=;a", ["=", "a"]),
        ("", []),
    ],
)
def test_lists_in_cells(text, values):
    assert as_values(text) == values


CELLS = st.text('019-.,;|=[] ab\n"Ny/:>$%é\x00', max_size=12) | st.sampled_from(
    ["int", "date", "category", "0-9", "1=a;2=b", "yes", "2020-01-01", "log", "text", "1e999", "id"]
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from([*sorted(HEADERS), "Notes", ""]), min_size=1, max_size=6),
    st.lists(st.lists(CELLS, max_size=6), max_size=4),
)
def test_code_books_raise_nothing_but_domain_errors(tmp_path_factory, header, rows):
    width = len(header)
    cells = [(row + [""] * width)[:width] for row in rows]
    path = tmp_path_factory.mktemp("books") / "book.csv"
    pd.DataFrame(cells, columns=header, dtype=object).to_csv(path, index=False)
    try:
        Domain.from_schema(path)
    except DomainError:
        pass


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_files_raise_nothing_but_domain_errors(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("books")
    for ending, read in ((".csv", Domain.from_schema), (".json", Domain.from_json)):
        path = folder / f"schema{ending}"
        path.write_bytes(content)
        with pytest.raises(DomainError):
            read(path)


def test_json_that_a_person_edits_holds_every_kind_of_column():
    tree = Taxonomy.from_tree({"any": {"x": ["a", "b"], "y": ["c", "d"]}})
    domain = Domain(
        {
            "id": Identifier("C{:03d}"),
            "n": Numeric(0, 9, integer=True, nullable=True),
            "wide": Numeric(0, 10**6, 50, integer=True, special=[-1]),
            "log": Numeric(0, 9, 10, integer=True, scale="log"),
            "edges": Numeric(edges=[0, 1, 10, 100]),
            "whole": Numeric(edges=[0, 1, 3], integer=True),
            "cents": Numeric(0, 9, 4, decimals=2, special=[0]),
            "tree": Categorical(tree.leaves, taxonomy=tree, other="d", ordered=True),
            "zero": Categorical([0, 1], other=0),
            "day": Date("2020-01-01", "2020-12-31", "month", nullable=True),
            "at": Datetime("2020-01-01", "2020-01-02", "hour", tz="UTC"),
        },
        structure=[forbid("n > 3 and log > 3")],
    )
    text = editable(domain.to_json())
    assert Domain.from_json(text) == domain and ": null" not in text
    assert len(text.splitlines()) == len(domain.columns) + 7
    whole = '"lower": 0, "upper": 9, "integer": true, "nullable"'
    wider = Domain.from_json(text.replace(whole, whole.replace("9", "19")))
    assert wider["n"] == Numeric(0, 19, integer=True, nullable=True)


ENDS = {"integer": (0, 9), "number": (0.0, 1.5), "date": ("2020-01-01", "2020-12-31")}
WALL = Datetime(*ENDS["date"], nullable=True)
UTC = Datetime(*ENDS["date"], tz="UTC", nullable=True)


def test_pandas_types():
    frame = pd.DataFrame(
        {
            "age": np.array([1], dtype="int8"),
            "pay": [1.5],
            "sex": pd.Categorical(["F"], categories=["F", "M"]),
            "grade": pd.Categorical(["b"], categories=["a", "b"], ordered=True),
            "ok": [True],
            "gap": pd.array([1], dtype="Int64"),
            "any": np.array([1], dtype=object),
        }
    )
    ranges = {"age": (0, 9), "pay": (0, 1.5), "gap": (0, 9), "any": (0, 9)}
    whole = Numeric(0, 9, integer=True, nullable=True)
    assert declared(Domain.from_schema(frame, ranges=ranges)) == {
        "age": Numeric(0, 9, integer=True),
        "pay": Numeric(0, 1.5, nullable=True),
        "sex": Categorical(["F", "M"], nullable=True),
        "grade": Categorical(["a", "b"], ordered=True, nullable=True),
        "ok": Categorical([False, True]),
        "gap": whole,
        "any": whole,
    }


@pytest.mark.parametrize("kind", ["eager", "lazy", "schema", "arrow", "duckdb"])
def test_types_of_other_libraries(kind):
    frame = pl.DataFrame(
        {"a": [1], "b": ["x"], "d": [datetime.date(2020, 1, 1)]},
        schema_overrides={"b": pl.Enum(["x", "y"])},
    ).with_columns(
        c=pl.lit(1).cast(pl.Decimal(10, 2)),
        t=pl.lit(datetime.datetime(2020, 1, 1), pl.Datetime("us", "UTC")),
    )
    source = frame
    if kind == "lazy":
        source = frame.lazy()
    if kind == "schema":
        source = frame.schema
    if kind == "arrow":
        source = frame.to_arrow()
    if kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        source = duckdb.sql(
            "select 1::BIGINT a, 'x'::ENUM('x', 'y') b, date '2020-01-01' d, "
            "1.5::DECIMAL(10, 2) c, now() t"
        )
    days = ENDS["date"]
    ranges = {"a": (0, 9), "c": (0, 1.5), "d": days, "t": days}
    if kind == "arrow":
        # The type of a dictionary does not say which values there are.
        ranges["b"] = Categorical(["x", "y"], ordered=True, nullable=True)
    found = declared(Domain.from_schema(source, ranges=ranges))
    # Older versions of narwhals, and of Polars for schemas, do not say how many places there are.
    places = 2 if hasattr(nw.Decimal(), "scale") else None
    if kind == "schema" and tuple(map(int, pl.__version__.split(".")[:2])) < (1, 30):
        places = None
    assert found == {
        "a": Numeric(0, 9, integer=True, nullable=True),
        "b": Categorical(["x", "y"], ordered=True, nullable=True),
        "d": Date(*days, nullable=True),
        "c": Numeric(0, 1.5, decimals=places, nullable=True),
        "t": Datetime(*days, tz="UTC", nullable=True),
    }


def test_arrays_and_mappings():
    ranges = {"x0": (0, 1), "x1": (0, 1)}
    found = Domain.from_schema(np.zeros((3, 2)), ranges=ranges)
    assert found == Domain.from_schema({"x0": "float64", "x1": float}, ranges=ranges)

    class Colour(enum.Enum):
        RED = "red"

    found = Domain.from_schema({"c": Colour, "a": "bool"})
    assert found["c"] == Categorical(["red"], nullable=True)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame([[True, True]], columns=["a", "a"]), "'a' are repeated"),
        (pd.DataFrame([[True, True]]), "must be strings, got 0 of type int"),
        (pd.DataFrame(), "no columns"),
        (np.zeros(3), "two dimensions"),
        (7, "does not list columns"),
    ],
)
def test_names_that_no_domain_can_have_are_refused(frame, message):
    with pytest.raises(DomainError, match=message):
        Domain.from_schema(frame)


def test_lists_are_all_values():
    types = {"term": "int64", "rate": "float64", "age": "int64"}
    ranges = {"term": [36, 60], "rate": [0.5, 1.5], "age": (0, 99)}
    domain = Domain.from_schema(types, ranges=ranges)
    assert domain["term"] == Categorical([36, 60], ordered=True)
    assert domain["rate"] == Categorical([0.5, 1.5], ordered=True, nullable=True)
    assert domain["age"] == Numeric(0, 99, integer=True)
    with pytest.raises(DomainError, match="'c': .*Give all values as a list"):
        Domain.from_schema({"c": "str"}, ranges={"c": ("F", "M")})


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("NUMERIC(10, 2)", "number", Numeric(0, 1.5, decimals=2, nullable=True)),
        ("Whole number", "integer", Numeric(0, 9, integer=True, nullable=True)),
        ("datetime64[ns, UTC]", "date", UTC),
        (
            "timestamp[us, tz=Europe/Berlin]",
            "date",
            Datetime(*ENDS["date"], tz="UTC", nullable=True),
        ),
        ("TIMESTAMP WITH TIME ZONE", "date", UTC),
        (
            "Datetime(time_unit='us', time_zone=None)",
            "date",
            Datetime(*ENDS["date"], nullable=True),
        ),
        ("date32[day]", "date", Date(*ENDS["date"], nullable=True)),
    ],
)
def test_names_of_types(name, kind, expected):
    assert Domain.from_schema({"x": name}, ranges={"x": ENDS[kind]})["x"] == expected


@pytest.mark.parametrize(
    ("name", "ordered"), [("VARCHAR(20)", False), ("Ordinal", True), ("Free text", False)]
)
def test_names_of_types_of_categories(name, ordered):
    found = Domain.from_schema({"x": name}, ranges={"x": ["a", "b"]})["x"]
    assert found == Categorical(["a", "b"], ordered=ordered, nullable=True)


def test_names_of_identifiers_and_names_without_a_meaning():
    domain = Domain.from_schema({"x": "UUID", "y": "bool"})
    assert domain.declared("x") == Identifier()
    for name in ("list<item: int64>", "", "geopoint"):
        with pytest.raises(DomainError, match="Types that are not known"):
            Domain.from_schema({"x": name})
