"""Domains from types and code books; no row is ever read."""

import contextlib
import datetime
import re

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import over

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
from skdp.domain.schemas import HEADERS, editable

duckdb = pytest.importorskip("duckdb")


def declared(domain):
    """Attributes of all columns, identifiers too."""
    return {name: domain.declared(name) for name in domain.columns}


GRADES = pd.CategoricalDtype(["a", "b"], ordered=True)
LIST = ["F", "M"]
DAYS = ("2020-01-01", "2020-12-31")


@over(
    "kind, given, expected",
    [
        ("int8", (0, 9), Numeric(0, 9, integer=True)),
        ("Int64", (0, 9), Numeric(0, 9, integer=True, nullable=True)),
        ("object", (0, 9), Numeric(0, 9, integer=True, nullable=True)),
        # What a type of categories lists may have been read from the records.
        (GRADES, LIST, Categorical(LIST, nullable=True)),
        (pl.Enum(["a", "b"]), LIST, Categorical(LIST, nullable=True)),
        ("int64", (0, 10**6), Numeric(0, 10**6, "auto", integer=True)),
        ("int64", Numeric(0, 9, 5), Numeric(0, 9, 5)),
        ("int64", [36, 60], Categorical([36, 60], ordered=True)),
        ("float64", [0.5, 1.5], Categorical([0.5, 1.5], ordered=True, nullable=True)),
        ("object", (0.0, 1.5), Numeric(0, 1.5, nullable=True)),
        ("NUMERIC(10, 2)", (0.0, 1.5), Numeric(0, 1.5, decimals=2, nullable=True)),
        ("integer", (0, 9), Numeric(0, 9, integer=True, nullable=True)),
        ("datetime64[ns]", DAYS, Date(*DAYS, nullable=True)),
        ("datetime64[ns]", ("2020-01-01T00:00", DAYS[1]), Datetime(*DAYS, nullable=True)),
        ("datetime64[ns, UTC]", DAYS, Datetime(*DAYS, tz="UTC", nullable=True)),
        ("timestamp[us, tz=Europe/Berlin]", DAYS, Datetime(*DAYS, tz="UTC", nullable=True)),
        ("TIMESTAMP WITH TIME ZONE", DAYS, Datetime(*DAYS, tz="UTC", nullable=True)),
        ("Datetime(time_unit='us', time_zone=None)", DAYS, Datetime(*DAYS, nullable=True)),
        ("date32[day]", DAYS, Date(*DAYS, nullable=True)),
        ("VARCHAR(20)", ["a", "b"], Categorical(["a", "b"], nullable=True)),
        ("Ordinal", ["a", "b"], Categorical(["a", "b"], ordered=True, nullable=True)),
        ("int64", Identifier(), Identifier()),
        ("UUID", None, Identifier()),
    ],
)
def test_types_by_name(kind, given, expected):
    ranges = {} if given is None else {"x": given}
    domain = Domain.from_schema({"x": kind, "y": "bool"}, ranges=ranges)
    assert declared(domain) == {"x": expected, "y": Categorical([False, True])}


def test_no_value_is_read():
    def boom(frame):
        raise AssertionError("rows were read")

    frame = pl.DataFrame({"age": [1], "sex": ["F"]}, schema_overrides={"sex": pl.Enum(["F", "M"])})
    lazy = frame.lazy().map_batches(boom, schema=frame.schema)
    with pytest.raises((AssertionError, pl.exceptions.ComputeError), match="rows were read"):
        lazy.collect()
    expected = Domain.from_schema(frame.schema, ranges={"age": (0, 9), "sex": LIST})
    assert Domain.from_schema(lazy, ranges={"age": (0, 9), "sex": LIST}) == expected
    table = pd.DataFrame({"age": [1, 200], "name": ["x", "secret"]})
    for source in (table[["age"]], table[["age"]].dtypes):
        assert declared(Domain.from_schema(source, ranges={"age": (0, 9)}))["age"].size == 10
    with pytest.raises(DomainError) as caught:
        Domain.from_schema(table)
    assert "secret" not in str(caught.value) and "200" not in str(caught.value)


def test_one_error_names_every_gap_and_its_code_can_be_filled_in():
    types = {"age": "int64", "pay": "float64", "city": "str", "d": "date", "ok": "bool"}
    with pytest.raises(DomainError, match="not say all of 4 columns") as caught:
        Domain.from_schema(types)
    code = re.search(r"ranges=(\{.*?\n\})", str(caught.value), re.S)[1]
    with pytest.raises(DomainError, match=r"still `\.\.\.`"):
        eval(code)
    code = code.replace("Date(..., ...", "Date('2020-01-01', '2020-02-01'")
    code = code.replace("(..., ...", "(0, 9").replace("(...", "(['x']")
    filled = Domain.from_schema(types, ranges=eval(code))
    assert filled.names == tuple(types) and filled["city"].nullable


BOOK = """\
Name,Type,Min,Max,Values,Special,Missing,Decimals,Scale,Bins,Unit,Other,Label
loan_id,id,,,,,,,,,,,Number of the loan
amount,number,0,40000,,0,no,2,log,40,,,Amount
paid,real,1e3,2000,,,,,,,,,Paid
grade,ordinal,,,A|B|C,,,,,,,C,Grade
status,integer,,,1=current; 2=late; 9=unknown,,yes,,,,,9,Status
score,integer,300,850,,999; -1,,,,auto,,,Score
term,,,,"36, 60",,TRUE,,,,,,Months
rate,number,0,0.3,,,,,,20,,,Rate
change,float,-9,-1,,,,,,,,,Change
issued,date,2015-01,2020-12-31,,1900-01-01,,,,,month,,Month of issue
joint,category,,,0=no;1=yes,,,,,,,,Two applicants
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
        "paid": Numeric(1000, 2000),
        "grade": Categorical(["A", "B", "C"], ordered=True, other="C"),
        "status": Categorical([1, 2, 9], other=9, nullable=True),
        "score": Numeric(300, 850, "auto", integer=True, special=[999, -1]),
        "term": Categorical([36, 60], nullable=True),
        "rate": Numeric(0, 0.3, 20),
        "change": Numeric(-9, -1),
        "issued": Date("2015-01-01", "2020-12-31", unit="month", special=["1900-01-01"]),
        "joint": Categorical([0, 1]),
    }


@over(
    "kind, values, expected",
    [
        ("category", "18-24|25-34", Categorical(["18-24", "25-34"])),
        ("", "a, b", Categorical(["a", "b"])),
        ("", "01, 02", Categorical(["01", "02"])),
        ("", "1, 2.5", Categorical([1, 2.5])),
        ("", "1, b", Categorical(["1", "b"])),
        ("", "1=Yes, or so|2=No", Categorical([1, 2])),
        ("", "a:b; c", Categorical(["a:b", "c"])),
        ("", "=;a", Categorical(["=", "a"])),
        ("", "true|false", Categorical([True, False])),
        ("", "true|x", Categorical(["true", "x"])),
    ],
)
def test_values_of_code_books(tmp_path, kind, values, expected):
    book = write(tmp_path, f'name,type,values\na,{kind},"{values}"')
    assert Domain.from_schema(book)["a"] == expected


@over(
    "rows, message",
    [
        ("", "must name one column 'name'"),
        ("name,type\n", "has no attributes"),
        ("name,min,lower\na,1,2", "no two columns that mean the same. It is 'name', 'min'"),
        ("name,type\n,bool", "no name in row 2"),
        ("name,type\na,geopoint", "'a': the type 'geopoint' is unknown"),
        ("name,type,min\na,int,3", r"Numeric\(3, ..., integer=True\)"),
        ("name,type,min,max\na,int,$0,9", "lower must be a number, got '\\$0'"),
        ("name,type,min,max,bins\na,int,0,9,many", "bins must be a number, got 'many'"),
        ("name,type,min,max,ordered\na,int,0,9,perhaps", "Numeric takes .*, not 'ordered'"),
        ("name,type,min,max,values\na,int,0,9,3", "Categorical takes .*, not 'lower', 'upper'"),
        ("name,values,missing\na,x|y,perhaps", "nullable must be True or False, got 'perhaps'"),
    ],
)
def test_code_books_that_are_refused(tmp_path, rows, message):
    with pytest.raises(DomainError, match=message):
        Domain.from_schema(write(tmp_path, rows))


CELLS = st.text('019-.,;|=[] ab\n"Ny/:>$%é\x00', max_size=12) | st.sampled_from(
    ["int", "date", "category", "0-9", "1=a;2=b", "yes", "2020-01-01", "log", "text", "1e999", "id"]
)


BOOKS = st.tuples(
    st.lists(st.sampled_from([*sorted(HEADERS), "Notes", ""]), min_size=1, max_size=6),
    st.lists(st.lists(CELLS, min_size=6, max_size=6), max_size=4),
).map(lambda book: pd.DataFrame([row[: len(book[0])] for row in book[1]], columns=book[0]))


@settings(max_examples=250)
@given(st.binary(max_size=60) | BOOKS.map(lambda book: book.to_csv(index=False).encode()))
def test_files_raise_nothing_but_domain_errors(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("books")
    for ending, read in ((".csv", Domain.from_schema), (".json", Domain.from_json)):
        path = folder / f"schema{ending}"
        path.write_bytes(content)
        with contextlib.suppress(DomainError):
            read(path)


def test_json_that_a_person_edits_is_short():
    tree = Taxonomy.from_tree({"any": {"x": ["a", "b"], "y": ["c", "d"]}})
    domain = Domain(
        {
            "id": Identifier(),
            "n": Numeric(0, 9, integer=True, nullable=True),
            "log": Numeric(0, 9, 10, integer=True, scale="log"),
            "wide": Numeric(0, 10**6, 50, integer=True, special=[-1]),
            "index": Numeric(0, 501, "auto", integer=True, special=[501]),
            "edges": Numeric(edges=[0, 1, 10, 100], integer=True),
            "cents": Numeric(0, 9, 4, decimals=2),
            "tree": Categorical(tree.leaves, taxonomy=tree, other="d", ordered=True),
            "zero": Categorical([0, 1], other=0),
            "at": Datetime("2020-01-01", "2020-01-02", "hour", tz="UTC"),
        },
        structure=[forbid("n > 3 and cents > 3")],
    )
    text = editable(domain)
    assert Domain.from_json(text) == domain and ": null" not in text
    assert len(text.splitlines()) == len(domain.columns) + 8
    wider = Domain.from_json(text.replace('"upper": 9, "integer"', '"upper": 19, "integer"'))
    assert wider["n"] == Numeric(0, 19, integer=True, nullable=True)


@pytest.mark.parametrize("kind", ["eager", "lazy", "schema", "arrow", "duckdb"])
def test_types_of_other_libraries(kind):
    frame = pl.DataFrame(
        {"a": [1], "b": ["x"], "d": [datetime.date(2020, 1, 1)]},
        schema_overrides={"b": pl.Enum(["x", "y"])},
    ).with_columns(
        c=pl.lit(1).cast(pl.Decimal(10, 2)),
        t=pl.lit(datetime.datetime(2020, 1, 1), pl.Datetime("us", "UTC")),
    )
    sources = {
        "eager": frame,
        "lazy": frame.lazy(),
        "schema": frame.schema,
        "arrow": frame.to_arrow(),
        "duckdb": duckdb.sql(
            "select 1::BIGINT a, 'x'::ENUM('x', 'y') b, date '2020-01-01' d, "
            "1.5::DECIMAL(10, 2) c, now() t"
        ),
    }
    category = Categorical(["x", "y"], nullable=True)
    ranges = {"a": (0, 9), "c": (0, 1.5), "d": DAYS, "t": DAYS, "b": ["x", "y"]}
    # Older versions of narwhals do not say how many places there are, but Polars does.
    places = 2 if hasattr(nw.Decimal(), "scale") or kind == "schema" else None
    assert declared(Domain.from_schema(sources[kind], ranges=ranges)) == {
        "a": Numeric(0, 9, integer=True, nullable=True),
        "b": category,
        "d": Date(*DAYS, nullable=True),
        "c": Numeric(0, 1.5, decimals=places, nullable=True),
        "t": Datetime(*DAYS, tz="UTC", nullable=True),
    }


@over(
    "schema, ranges, message",
    [
        (pd.DataFrame([[True, True]], columns=["a", "a"]), None, "'a' is repeated"),
        (pd.DataFrame([[True, True]]), None, "must be strings, got 0 of type int"),
        (np.zeros((3, 2)), None, "ndarray"),
        (7, None, "int"),
        ({"a": "bool", "s": "duration[ns]"}, None, "'s': the type .*unknown: give 'numeric'"),
        ({"x": "list<item: int64>"}, None, "the type 'list<item: int64>' is unknown"),
        ({"a": "int64"}, {"b": (0, 1)}, "ranges names 'b', but the columns are 'a'"),
        ({"a": "int64"}, ["a"], "ranges must be a dict"),
        ({"a": "int64"}, {"a": (1, 0)}, "Column 'a': Numeric needs lower"),
        ({"c": "str"}, {"c": ("F", "M")}, "got \\('F', 'M'\\).*given as a list"),
    ],
)
def test_schemas_that_are_refused(schema, ranges, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Domain.from_schema(schema, ranges=ranges)
