"""Domains from types and code books; no row is ever read."""

from __future__ import annotations

import re
from pathlib import Path

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
    PrivacyLeakWarning,
    Taxonomy,
    at_most,
    derived,
    forbid,
)
from skdp.domain.data import editable
from skdp.domain.schemas.cells import as_range, as_values, meaning
from skdp.domain.schemas.codebook import HEADERS

NIST = Path(__file__).resolve().parents[2] / "shared" / "data" / "nist"


def declared(domain):
    """Attributes of all columns, identifiers too."""
    return {name: domain.declared(name) for name in domain.columns}


# Listings of types


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


def test_free_text_is_refused_with_the_remedy():
    with pytest.raises(DomainError, match="'notes': .*free text.*or leave it out with drop="):
        Domain.from_schema({"notes": "free text", "a": "bool"})


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
        ({"ranges": {"a": (0, 1, 2)}}, "needs a pair"),
        ({"ranges": {"a": 3}}, "takes a pair"),
        ({"ranges": {"a": Numeric(0, 1)}}, "go into attributes="),
        ({"ranges": {"a": (1, 0)}}, "Column 'a': Numeric needs lower"),
        ({"ranges": {"a": ("x", "y")}}, "Column 'a': lower must be a number"),
    ],
)
def test_wrong_parameters_are_refused(options, message):
    with pytest.raises((DomainError, ValueError), match=message):
        Domain.from_schema({"a": "int64"}, **options)


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("NUMERIC(10, 2)", "number", {"decimals": 2}),
        ("decimal(10,2)", "number", {"decimals": 2}),
        ("Whole number", "integer", {}),
        ("VARCHAR(20)", "category", {}),
        ("Ordinal", "category", {"ordered": True}),
        ("datetime64[ns, UTC]", "datetime", {"tz": "UTC"}),
        ("timestamp[us, tz=Europe/Berlin]", "datetime", {"tz": "UTC"}),
        ("TIMESTAMP WITH TIME ZONE", "datetime", {"tz": "UTC"}),
        ("Datetime(time_unit='us', time_zone=None)", "datetime", {}),
        (
            "Datetime(time_unit='us', time_zone='America/New_York')",
            "datetime",
            {"tz": "UTC"},
        ),
        ("datetime64[ns]", "datetime", {}),
        ("date32[day]", "date", {}),
        ("Free text", "text", {}),
        ("UUID", "identifier", {}),
        ("list<item: int64>", "unknown", {}),
        ("", "unknown", {}),
    ],
)
def test_names_of_types(name, kind, said):
    assert meaning(name) == (kind, said)


# Code books

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


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_code_book_with_other_separators(tmp_path, separator):
    rows = [["Name", "Type", "Min", "Max"], ["age", "int", "0", "99"], ["pay", "float", "0", "1,5"]]
    text = "\n".join(separator.join(row) for row in rows[:2])
    domain = Domain.from_schema(write(tmp_path, text, "book.txt"))
    assert domain == Domain({"age": Numeric(0, 99, integer=True)})


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
        ("name,type\na,text", "free text"),
        ("name,type,values\na,date,2020-01-01", "or is a date"),
    ],
)
def test_code_books_that_are_refused(tmp_path, rows, message):
    with pytest.raises(DomainError, match=message):
        Domain.from_schema(write(tmp_path, rows))


def test_all_cells_that_are_wrong_are_named_at_once(tmp_path):
    rows = "name,type,range\n" + "".join(f"c{i},int,none {i}\n" for i in range(30))
    with pytest.raises(DomainError) as caught:
        Domain.from_schema(write(tmp_path, rows))
    assert str(caught.value).count("is not understood") == 20
    assert "(10 more)" in str(caught.value)


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


# Files


def test_sources_that_cannot_be_read_say_what_can(tmp_path):
    with pytest.raises(DomainError, match="no columns"):
        Domain.from_schema({})
    for source in (3, None, ["secret"]):
        with pytest.raises(DomainError, match="does not list columns and types") as caught:
            Domain.from_schema(source)
        assert "secret" not in str(caught.value)
    for name in ("domain.json", "book.xlsx", '{"a": 1}'):
        with pytest.raises(DomainError, match="Save a workbook as CSV; a domain in JSON is read w"):
            Domain.from_schema(name)
    with pytest.raises(FileNotFoundError):
        Domain.from_schema(tmp_path / "gone.csv")
    with pytest.raises(DomainError, match="no CSV file in utf-8-sig .encoding='latin-1'"):
        (tmp_path / "latin.csv").write_bytes("name,values\na,é|b".encode("latin-1"))
        Domain.from_schema(tmp_path / "latin.csv")
    domain = Domain.from_schema(tmp_path / "latin.csv", encoding="latin-1")
    assert domain["a"] == Categorical(["é", "b"])
    (tmp_path / "wide.csv").write_text("name,values\na,é|b", "utf-16")
    assert Domain.from_schema(tmp_path / "wide.csv") == domain


@pytest.mark.parametrize("text", ["", "[", "3", '{"a": 1, "a": 2}', '{"a": NaN}', "\x00"])
def test_json_that_is_no_domain_is_refused(text, tmp_path):
    for source in (text, write(tmp_path, text, "d.json")):
        with pytest.raises(DomainError):
            Domain.from_json(source)
    with pytest.raises(DomainError, match="'a' occurs twice"):
        Domain.from_json('{"a": 1, "a": 2}')


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


# What a person sees


def test_differences_are_readable():
    old = Domain(
        {
            "a": Numeric(0, 9, integer=True),
            "b": Categorical(["x", "y"]),
            "c": Categorical(["u", "v"]),
            "gone": Numeric(0, 1),
        }
    )
    new = Domain(
        {
            "b": Categorical(["y", "z"], nullable=True),
            "a": Numeric(0, 19, integer=True),
            "c": Numeric(0, 1),
            "new": Categorical(["n"]),
        }
    )
    found = old.diff(new)
    assert found and found.added == ("new",) and found.removed == ("gone",) and found.reordered
    text = repr(found)
    for line in (
        "+ new: Categorical, n",
        "- gone: Numeric, 0 to 1",
        "~ b: 1 more categories: 'z'; 1 fewer categories: 'x'; nullable: False -> True",
        "~ c: Categorical, u, v -> Numeric, 0 to 1",
        "~ order of the columns",
    ):
        assert line in text.splitlines()
    assert "~ a: upper: 9 -> 19" in text
    assert not old.diff(old) and repr(old.diff(old)) == "The domains are equal."
    marked = Domain(dict(old.items()), inferred=True)
    assert "inferred: False -> True" in repr(old.diff(marked))
    with pytest.raises(DomainError, match="diff compares with a Domain"):
        old.diff({})


def test_report_names_what_changes_with_shares():
    domain = Domain(
        {
            "a": Numeric(0, 9, integer=True),
            "b": Numeric(0, 9, integer=True),
            "c": Categorical(["x", "y"], nullable=True),
        },
        structure=[at_most("a", "b")],
    )
    frame = pd.DataFrame({"a": [1, 5, 3, 20], "b": [2, 3, 4, 30], "c": ["x", None, "z", "y"]})
    with pytest.warns(PrivacyLeakWarning):
        report = domain.check(frame)
    text = repr(report)
    assert "records skipped: 2 of 4 (50%)" in text
    assert "all represented as they are: 0 of 3" in text
    assert "rules that hold in all records: 0 of 1" in text
    assert re.search(r"at_most\('a', 'b'\) +1 \(25%\)", text)
    assert re.search(r"^a +1 \(25%\)", text, re.M) and "missing, kept" in text
    assert report.shares.loc["a", "above"] == 0.25 and not report.clean
    page = report._repr_html_()
    assert "<td" in page and "1 (25%)" in page and "at_most(&#x27;a&#x27;" in page
    with pytest.warns(PrivacyLeakWarning):
        clean = domain.check(frame[:1])
    assert clean.clean and "all represented as they are: 3 of 3" in repr(clean)
    with pytest.warns(PrivacyLeakWarning):
        assert "records skipped: 0 of 0 (0%)" in repr(domain.check(frame[:0]))


def test_structure_is_shown_and_compared():
    columns = {
        "a": Numeric(0, 9, integer=True),
        "b": Numeric(0, 9, integer=True),
        "g": Categorical(["u", "v"]),
        "s": Categorical(["u1", "v1"]),
        "id": Identifier(),
    }
    rules = [at_most("a", "b"), derived("g", from_="s", map={"u1": "u", "v1": "v"}),
             forbid("a > 3 and s == 'u1'")]  # fmt: skip
    domain = Domain(columns, structure=rules)
    table = domain.describe()
    assert list(table.index) == list(columns)
    assert table.loc["a", "structure"].startswith("at_most('a', 'b'); forbid(")
    assert table.loc["s", "structure"].startswith("forbid(") and table.loc["b", "structure"] == ""
    assert table["cells"].tolist() == [10, 10, 0, 2, 0]
    assert "structure</th>" in domain._repr_html_()
    assert "- rule at_most('a', 'b')" in repr(domain.diff(Domain(columns, structure=rules[1:])))
    assert Domain.from_json(editable(domain.to_json())) == domain


def test_notebook_shows_a_table():
    page = Domain(
        {"<b>": Categorical(["<i>", "M"], nullable=True), "n": Numeric(0, 9)}
    )._repr_html_()
    assert "&lt;b&gt;" in page and "<i>" not in page and "may be missing" in page
    many = Domain({f"c{i}": Categorical([0, 1]) for i in range(2_000)})
    assert many._repr_html_().count("<tr>") == 101
    assert "and 1,900 more columns" in many._repr_html_()
    assert "about 10^602 cells" in many._repr_html_()


@pytest.mark.parametrize("n", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_many_categories_stay_short(n):
    values = [f"v{i}" for i in range(n)]
    domain = Domain({"a": Categorical(values)})
    assert len(repr(domain)) < 500 and len(domain._repr_html_()) < 2_000
    assert f"{n:,} fewer categories" in repr(domain.diff(Domain({"a": Categorical(["n", "m"])})))
    assert Domain.from_schema(pl.Schema({"a": pl.Enum(values)}))["a"].n_values == n
    assert Domain.from_schema({"a": pd.CategoricalDtype(values)}, nullable=False) == domain


def test_thousands_of_columns(tmp_path):
    text = "name,type,range\n" + "".join(f"c{i},int,0-9\n" for i in range(2_000))
    assert len(Domain.from_schema(write(tmp_path, text))) == 2_000
    with pytest.raises(DomainError, match="2000 columns need") as caught:
        Domain.from_schema({f"c{i}": "int" for i in range(2_000)})
    assert "'c1999': (..., ...)" in str(caught.value)


def test_lists_of_numbers_are_categories_or_a_step(tmp_path):
    types = {"term": "int64", "rate": "float64", "pay": "int64", "age": "int64"}
    ranges = {"term": [36, 60], "rate": [0.5, 1.5], "pay": list(range(0, 1000, 10)), "age": (0, 99)}
    domain = Domain.from_schema(types, ranges=ranges, nullable=False)
    assert domain["term"] == Categorical([36, 60], ordered=True)
    assert domain["rate"] == Categorical([0.5, 1.5], ordered=True)
    assert domain["pay"] == Numeric(0, 990, "auto", integer=True, step=10)
    assert domain["age"] == Numeric(0, 99, integer=True)
    book = book_of(tmp_path, name=["term"], type=["integer"], values=["36; 60"])
    assert Domain.from_schema(book)["term"].categories == (36, 60)


def test_domains_that_everybody_knows():
    from skdp import domains

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
