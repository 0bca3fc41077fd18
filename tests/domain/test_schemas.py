"""Domains from types and code books, and skeletons of domains; no row is ever read."""

import datetime
import enum
import re

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
    domains,
    forbid,
)
from skdp.domain.data import editable
from skdp.domain.schemas import HEADERS, as_range, as_values


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
    assert Domain.skeleton(lazy) == Domain.skeleton(frame)
    table = pd.DataFrame({"age": [1, 200], "name": ["x", "secret"]})
    assert Domain.skeleton(table) == Domain.skeleton(table[:0])
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
    with pytest.raises(DomainError, match=r"'s' has type duration\[ns\]\. Known are: integer, num"):
        Domain.from_schema(pa.schema([("s", pa.duration("ns")), ("b", pa.bool_())]))
    with pytest.raises(DomainError, match="'b' has type geopoint"):
        Domain.from_schema({"a": "bool", "b": "geopoint"})
    domain = Domain.from_schema({"a": "bool", "b": "geopoint"}, drop="b")
    assert domain.names == ("a",)


def test_overrides():
    types = {"id": "int64", "age": "int64", "zip": "int64", "x": "object", "w": "int64"}
    domain = Domain.from_schema(
        types,
        types={"id": "identifier", "zip": "category"},
        ranges={"zip": [1, 2], "x": (0.0, 1.5), "w": (0, 10**6)},
        attributes={"age": Numeric(0, 9)},
        nullable=["x"],
        bins={"w": 50},
    )
    assert domain.columns == tuple(types) and domain.names == ("age", "zip", "x", "w")
    assert domain["zip"] == Categorical([1, 2]) and domain["x"] == Numeric(0, 1.5, nullable=True)
    assert domain["w"] == Numeric(0, 10**6, 50, integer=True)
    assert Domain.from_schema({"w": "int64"}, ranges={"w": (0, 10**6)})["w"].size == 800


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ranges": {"b": (0, 1)}}, "ranges names 'b', which the schema does not have"),
        ({"types": ["a"]}, "types must be a dict"),
        ({"drop": 3}, "drop must be a list"),
        ({"drop": ["a"]}, "drop leaves no column"),
        ({"ranges": {"a": (0, 1, 2)}}, "takes a pair"),
        ({"ranges": {"a": 3}}, "takes a pair"),
        ({"ranges": {"a": Numeric(0, 1)}}, "go into attributes="),
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
        ("name,type\n", "no rows below"),
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
            "steps": Numeric(0, 9, step=3),
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
    inferred = Domain({"a": Categorical(["x", "y"], other="y")}, inferred=True)
    assert Domain.from_json(editable(inferred.to_json())) == inferred


def test_domains_that_everybody_knows():

    for name in domains.__all__:
        plain, gaps = getattr(domains, name)(), getattr(domains, name)(nullable=True)
        # Namibia's "NA" is how files write a gap.
        assert gaps.size == plain.size + (name != "countries")
        assert Domain.from_json(Domain({"a": plain}).to_json())["a"] == plain
    assert (len(domains.us_states().categories), len(domains.countries().categories)) == (51, 249)
    assert domains.weekdays().ordered and domains.weekdays().categories[0] == "Monday"
    assert domains.months().size == 12 and len(domains.icd_chapters().categories) == 22
    with pytest.raises(DomainError, match=r"domains\.age\(\)"):
        Domain.from_schema({"Age": "int64"})
    with pytest.raises(DomainError) as error:
        Domain.from_schema({"age": "str", "ages": "int64"})
    assert "domains." not in str(error.value)


def lines(source):
    return [line.strip() for line in Domain.skeleton(source).splitlines() if line[:5] == "    '"]


def test_skeleton_of_pandas_types():
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
    assert lines(frame) == [
        "'age': domains.age(),  # int8",
        "'pay': Numeric(..., ..., nullable=True),  # float64",
        "'sex': Categorical(['F', 'M'], nullable=True),  # category",
        "'grade': Categorical(['a', 'b'], ordered=True, nullable=True),  # category",
        "'ok': Categorical([False, True]),  # bool",
        "'gap': Numeric(..., ..., integer=True, nullable=True),  # Int64",
        "'any': ...,  # object: Numeric(..., ...), Categorical([...]), Date(..., ...) or "
        "Identifier()",
    ]


@pytest.mark.parametrize("lazy", [False, True])
def test_skeleton_of_polars_types(lazy):
    frame = pl.DataFrame(
        {"a": [1], "b": ["x"], "d": [datetime.date(2020, 1, 1)], "l": [[1]]},
        schema_overrides={"b": pl.Enum(["x", "y"])},
    ).with_columns(t=pl.lit(datetime.datetime(2020, 1, 1), pl.Datetime("ms", "UTC")))
    code = Domain.skeleton(frame.lazy() if lazy else frame)
    assert "'a': Numeric(..., ..., integer=True, nullable=True),  # Int64" in code
    assert "'b': Categorical(['x', 'y'], ordered=True, nullable=True),  # Enum" in code
    assert "'d': Date(..., ..., nullable=True),  # Date" in code
    assert "'t': Datetime(..., ..., tz='UTC', nullable=True)," in code
    assert "# 'l': List(Int64) has no attribute" in code
    assert Domain.skeleton(frame.schema) == code


def test_skeleton_of_arrow_types():
    schema = pa.schema(
        [
            pa.field("a", pa.uint8(), nullable=False),
            pa.field("b", pa.dictionary(pa.int8(), pa.string())),
            pa.field("c", pa.decimal128(10, 2)),
            pa.field("d", pa.date32()),
            pa.field("t", pa.timestamp("us", "UTC")),
            pa.field("x", pa.binary()),
        ]
    )
    code = Domain.skeleton(schema)
    assert "'a': Numeric(..., ..., integer=True, nullable=True),  # uint8" in code
    assert "'b': Categorical([...], nullable=True)," in code
    assert "'c': Numeric(..., ..., decimals=2, nullable=True)," in code
    assert "'d': Date(..., ..., nullable=True),  # date32[day]" in code
    assert "'t': Datetime(..., ..., tz='UTC', nullable=True)," in code
    assert "# 'x': binary has no attribute" in code
    assert Domain.skeleton(schema.empty_table()) == code


def test_skeleton_of_engines():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql(
        "select 1::BIGINT a, 'x' b, 1.5::DECIMAL(10, 2) c, 'u'::ENUM('u', 'v') e, "
        "date '2020-01-01' d, timestamp '2020-01-01 00:00:00' t"
    )
    code = Domain.skeleton(relation)
    assert "'a': Numeric(..., ..., integer=True, nullable=True)," in code
    assert "'b': Categorical([...], nullable=True)," in code
    assert "'c': Numeric(..., ..., decimals=2, nullable=True)," in code
    assert "'e': Categorical(['u', 'v'], nullable=True)," in code
    assert "'d': Date(..., ..., nullable=True)," in code
    assert "'t': Datetime(..., ..., nullable=True)," in code


def test_skeleton_of_arrays_and_mappings():
    assert lines(np.zeros((3, 2))) == lines({"x0": "float64", "x1": "float64"})
    assert lines({"a": float}) == ["'a': Numeric(..., ..., nullable=True),  # float"]
    assert lines(np.dtype([("a", "i4"), ("b", "U3")]))[0].startswith("'a': Numeric(")

    class Colour(enum.Enum):
        RED = "red"

    assert "Categorical(['red'], nullable=True)" in lines({"c": Colour})[0]


def test_skeleton_shows_itself_and_runs_only_when_filled():
    code = Domain.skeleton({"age": "int64", "sex": "category", "pay": "float64"})
    assert repr(code) == str(code) and isinstance(code, str)
    with pytest.raises(DomainError, match=r" is still `\.\.\.`, a placeholder"):
        exec(code, {})
    with pytest.raises(DomainError, match=r"lower is still `\.\.\.`, a placeholder"):
        exec(Domain.skeleton({"d": "date"}), {})
    with pytest.raises(DomainError, match=r"Category is still `\.\.\.`, a placeholder"):
        exec(code.replace("Numeric(..., ...", "Numeric(0, 9"), {})
    names: dict = {}
    exec(code.replace("Numeric(..., ...", "Numeric(0, 9").replace("[...]", "['F', 'M']"), names)
    assert names["domain"].names == ("age", "sex", "pay")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "'a' are repeated.*makes them different"),
        (pd.DataFrame([[1, 2]]), "must be strings, got 0 of type int"),
        (pd.DataFrame([[1]], columns=[" "]), "empty name"),
        (pd.DataFrame(), "no columns"),
        (pa.table([[1], [2]], names=["a", "a"]), "'a' are repeated"),
        (np.zeros(3), "two dimensions"),
        (7, "does not list columns"),
    ],
)
def test_skeleton_refuses_names_that_no_domain_can_have(frame, message):
    with pytest.raises(DomainError, match=message):
        Domain.skeleton(frame)


def test_lists_are_all_values():
    types = {"term": "int64", "rate": "float64", "age": "int64"}
    ranges = {"term": [36, 60], "rate": [0.5, 1.5], "age": (0, 99)}
    domain = Domain.from_schema(types, ranges=ranges, nullable=False)
    assert domain["term"] == Categorical([36, 60], ordered=True)
    assert domain["rate"] == Categorical([0.5, 1.5], ordered=True)
    assert domain["age"] == Numeric(0, 99, integer=True)
    with pytest.raises(DomainError, match="'c': .*Give all values as a list"):
        Domain.from_schema({"c": "str"}, ranges={"c": ("F", "M")})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NUMERIC(10, 2)", "Numeric(..., ..., decimals=2"),
        ("Whole number", "Numeric(..., ..., integer=True"),
        ("VARCHAR(20)", "Categorical([...]"),
        ("Ordinal", "Categorical([...], ordered=True"),
        ("datetime64[ns, UTC]", "Datetime(..., ..., tz='UTC'"),
        ("timestamp[us, tz=Europe/Berlin]", "Datetime(..., ..., tz='UTC'"),
        ("TIMESTAMP WITH TIME ZONE", "Datetime(..., ..., tz='UTC'"),
        ("Datetime(time_unit='us', time_zone=None)", "Datetime(..., ..., nullable"),
        ("date32[day]", "Date(..., ..."),
        ("Free text", "Categorical([...]"),
        ("UUID", "Identifier()"),
    ],
)
def test_names_of_types(name, expected):
    assert f"'x': {expected}" in Domain.skeleton({"x": name})


def test_names_without_a_meaning_have_no_attribute():
    for name in ("list<item: int64>", "", "geopoint"):
        assert "has no attribute" in Domain.skeleton({"x": name})
