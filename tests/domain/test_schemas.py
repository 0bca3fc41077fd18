"""Domains from frames and code books; no row is ever read."""

import contextlib
import datetime

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

duckdb = pytest.importorskip("duckdb")


def declared(domain):
    """Attributes of all columns, identifiers too."""
    return {name: domain.declared(name) for name in domain.columns}


LIST = ["F", "M"]
DAYS = ("2020-01-01", "2020-12-31")


def test_no_value_is_read():
    def boom(frame):
        raise AssertionError("rows were read")

    frame = pl.DataFrame({"age": [1], "sex": ["F"]}, schema_overrides={"sex": pl.Enum(["F", "M"])})
    lazy = frame.lazy().map_batches(boom, schema=frame.schema)
    with pytest.raises((AssertionError, pl.exceptions.ComputeError), match="rows were read"):
        lazy.collect()
    expected = Domain.from_schema(frame, ranges={"age": (0, 9), "sex": LIST})
    assert Domain.from_schema(lazy, ranges={"age": (0, 9), "sex": LIST}) == expected
    table = pd.DataFrame({"age": [1, 200], "name": ["x", "secret"]})
    with pytest.raises(DomainError, match="2 columns can hold: 'age', 'name'") as caught:
        Domain.from_schema(table)
    assert "secret" not in str(caught.value) and "200" not in str(caught.value)


BOOK = """\
Name,Type,Min,Max,Values,Special,Missing,Decimals,Scale,Bins,Unit,Other,Label
loan_id,identifier,,,,,,,,,,,Number of the loan
amount,number,0,40000,,0,no,2,log,40,,,Amount
paid,number,1e3,2000,,,,,,,,,Paid
grade,category,,,A|B|C,,,,,,,C,Grade
status,integer,,,1=current; 2=late; 9=unknown,,yes,,,,,9,Status
score,integer,300,850,,999; -1,,,,auto,,,Score
term,,,,"36, 60",,TRUE,,,,,,Months
rate,number,0,0.3,,,,,,20,,,Rate
change,Number,-9,-1,,,,,,,,,Change
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
        "grade": Categorical(["A", "B", "C"], other="C"),
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
        ("", "01, 02", Categorical(["01", "02"])),
        ("", "1, b", Categorical(["1", "b"])),
        ("", "1=Yes, or so|2=No", Categorical([1, 2])),
        ("", "=;a", Categorical(["=", "a"])),
        ("", "true|x", Categorical(["true", "x"])),
    ],
)
def test_values_of_code_books(tmp_path, kind, values, expected):
    book = write(tmp_path, f'name,type,values\na,{kind},"{values}"')
    assert Domain.from_schema(book)["a"] == expected


@over(
    "rows, message",
    [
        ("", "is no code book, a CSV file"),
        ("name,type\n,category", "a column 'name': 'name'"),
        ("name,type,min\na,integer,3", "'a': .* upper must be a number, got None"),
        ("name,type,min,max,ordered\na,integer,0,9,yes", "unexpected keyword argument 'ordered'"),
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
    st.lists(
        st.sampled_from("name type min Max values lower missing special edges unit Notes".split()),
        min_size=1,
        max_size=6,
    ),
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
            "edges": Numeric(edges=[0, 1, 10, 100], integer=True),
            "cents": Numeric(0, 9, 4, decimals=2),
            "tree": Categorical(tree.leaves, taxonomy=tree, other="d", ordered=True),
            "zero": Categorical([0, 1], other=0),
            "at": Datetime("2020-01-01", "2020-01-02", "hour", tz="UTC"),
        },
        structure=[forbid("n > 3 and cents > 3")],
    )
    text = domain.to_json()
    assert Domain.from_json(text) == domain and ": null" not in text
    assert len(text.splitlines()) == len(domain.columns) + 8
    wider = Domain.from_json(text.replace('"upper": 9, "integer"', '"upper": 19, "integer"'))
    assert wider["n"] == Numeric(0, 19, integer=True, nullable=True)


@pytest.mark.parametrize("kind", ["eager", "lazy", "arrow", "duckdb"])
def test_types_of_other_libraries(kind):
    frame = pl.DataFrame(
        {"a": [1], "b": ["x"], "d": [datetime.date(2020, 1, 1)]},
        schema_overrides={"b": pl.Enum(["x", "y"])},
    ).with_columns(
        f=pl.lit(True),
        c=pl.lit(1).cast(pl.Decimal(10, 2)),
        t=pl.lit(datetime.datetime(2020, 1, 1), pl.Datetime("us", "UTC")),
    )
    sources = {
        "eager": frame,
        "lazy": frame.lazy(),
        "arrow": frame.to_arrow(),
        "duckdb": duckdb.sql(
            "select 1::BIGINT a, 'x'::ENUM('x', 'y') b, date '2020-01-01' d, "
            "true f, 1.5::DECIMAL(10, 2) c, now() t"
        ),
    }
    given = {"a": (0, 9), "c": Numeric(0, 1.5, 3), "d": DAYS, "t": DAYS, "b": ["x", "y"]}
    domain = Domain.from_schema(sources[kind], ranges=given)
    # A pair means the same everywhere, but there may be gaps; a whole attribute stays as it is.
    assert declared(domain) == {
        "a": Numeric(0, 9, integer=True, nullable=True),
        "b": Categorical(["x", "y"], nullable=True),
        "d": Date(*DAYS, nullable=True),
        "f": Categorical([False, True], nullable=True),
        "c": Numeric(0, 1.5, 3),
        "t": Date(*DAYS, nullable=True),
    }


@over(
    "source, ranges, message",
    [
        (np.zeros((3, 2)), {}, "ndarray"),
        (pd.DataFrame([[True, True]]), {}, "must be strings, got 0 of type int"),
        (pd.DataFrame({"a": [True]}), {"b": (0, 1)}, "ranges names 'b', but the columns are 'a'"),
    ],
)
def test_schemas_that_are_refused(source, ranges, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Domain.from_schema(source, ranges=ranges)
