"""Domains: codes and back, copies, JSON; those from frames and code books, without any row."""

import contextlib
import copy
import datetime as dt
import json
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from loops import over
from odd_values import ODD_VALUES, hostile
from trees import trees

import skdp
from skdp._keys import key_of
from skdp.domain import Categorical, Date, Domain, Numeric
from skdp.exceptions import DomainError
from skdp.tables import as_column, object_array

duckdb = pytest.importorskip("duckdb")


def codes_of(attribute, values):
    return as_column(object_array(values), "a").codes(attribute.coding()).tolist()


NAMES = st.text(min_size=1, max_size=8).filter(lambda s: s.isprintable())


CATEGORIES = st.one_of(
    st.text(max_size=5).filter(lambda s: "\0" not in s),
    st.integers(-(10**6), 10**6),
    st.floats(-1e6, 1e6, allow_nan=False),
    st.booleans(),
)


@st.composite
def categoricals(draw):
    # Two categories must not mean the same.
    values = draw(st.lists(CATEGORIES, min_size=1, max_size=8, unique_by=(lambda v: v, key_of)))
    return Categorical(
        values,
        ordered=draw(st.booleans()),
        taxonomy=draw(st.one_of(st.none(), trees(values))),
        other=draw(st.one_of(st.none(), st.sampled_from(values))),
        nullable=None not in map(key_of, values) and draw(st.booleans()),
    )


# `test_numeric` draws declarations of numbers.
NUMBERS = [
    Numeric(-1e9, 0.001, 300),
    Numeric(-0.5, 2, 3, nullable=True),
    Numeric(10**9, 10**9 + 500, 7, integer=True, nullable=True),
    Numeric(0, 0, integer=True),
]

ATTRIBUTES = st.one_of(st.sampled_from(NUMBERS), categoricals())


@st.composite
def domains(draw):
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    attributes = {name: draw(ATTRIBUTES) for name in names}
    assume(math.prod(attribute.size for attribute in attributes.values()) > 1)
    return Domain(attributes)


@given(ATTRIBUTES)
def test_levels_cover_every_code_and_are_nested(attribute):
    levels = attribute.levels()
    assert set(levels[0].groups.tolist()) == {0}
    assert len(set(levels[-1].groups.tolist())) == attribute.size
    for coarse, fine in zip(levels, levels[1:], strict=False):
        assert len(fine.groups) == attribute.size
        assert set(fine.groups.tolist()) == set(range(len(fine.labels)))
        pairs = set(zip(fine.groups.tolist(), coarse.groups.tolist(), strict=True))
        assert len(pairs) == len(fine.labels)


PEOPLE = Domain(
    {
        "age": Numeric(17, 90, integer=True),
        "pay": Numeric(0, 200_000, bins=50, nullable=True),
        "sex": Categorical(["Female", "Male"]),
        "größe": Categorical(["s", "m", "l"], ordered=True, other="m", nullable=True),
    }
)


@given(domains())
def test_equality_hash_copies_and_json(domain):
    twin = Domain(domain)
    others = [copy.deepcopy(domain), pickle.loads(pickle.dumps(domain))]
    for other in [twin, *others, Domain.from_json(domain.to_json())]:
        assert other == domain
        assert hash(other) == hash(domain)
        assert repr(other) == repr(domain)
        assert other.shape == domain.shape
    assert domain != domain.with_attribute("\0", Numeric(0, 1))
    json.loads(domain.to_json(), parse_constant=pytest.fail)


def test_equality_tells_types_apart():
    variants = [Categorical(c) for c in ([1, 0], [1.0, 0.0], [True, False], ["1", "0"], [0, 1])]
    assert len(set(variants)) == 5 and Numeric(0, 1, 2) != Numeric(0, 1, 2, integer=True)
    with pytest.raises(AttributeError, match="cannot be changed"):
        PEOPLE["age"].bins = 3


def test_repr():
    names = {"Domain": Domain, "Numeric": Numeric, "Categorical": Categorical}
    assert eval(repr(PEOPLE), names) == PEOPLE
    long = repr(Domain.for_array(Categorical(range(100)), 100))
    assert len(long) < 2000 and "... (92 more)" in long and "... (88 more)" in long


@pytest.mark.filterwarnings("error")
@over(
    "attribute",
    [
        Numeric(0, 9, integer=True, nullable=True),
        Categorical(["a", "b", 1, 0.5], other="b", nullable=True),
        Categorical([True, False]),
    ],
)
def test_no_value_raises_or_warns_and_each_stands_for_itself(attribute):
    values = [*ODD_VALUES.values(), *hostile()]
    alone = [codes_of(attribute, [value])[0] for value in values]
    domain = Domain({"a": attribute, "b": Numeric(0, 1, 2)})
    column, zeros = object_array(values), np.zeros(len(values))
    for table in (
        pd.DataFrame({"a": column, "b": zeros}),
        np.column_stack([column, zeros.astype(object)]),
        [[value, 0] for value in values],
        pl.DataFrame({"a": pl.Series(values, dtype=pl.Object), "b": zeros}),
    ):
        assert domain.encode(table)[:, 0].tolist() == alone


@given(domains(), st.data(), st.integers(0, 2**32))
@settings(max_examples=150)
def test_codes_of_decoded_rows_are_the_codes_in_every_container(domain, data, seed):
    rows = data.draw(
        st.lists(st.tuples(*[st.integers(0, s - 1) for s in domain.shape]), max_size=9)
    )
    codes = np.array(rows, dtype=np.int64).reshape(-1, len(domain))
    frame = domain.decode(codes, random_state=seed)
    assert tuple(frame.columns) == domain.names
    tables = [frame, frame.to_numpy(dtype=object)]
    # Mixed types exist in object columns only.
    listed = [getattr(attribute, "categories", ()) for attribute in domain.attributes]
    if not any(len({*map(type, categories)}) > 1 for categories in listed):
        tables += [pl.from_pandas(frame), pa.Table.from_pandas(frame)]
    for table in tables:
        assert domain.encode(table).tolist() == codes.tolist()
    # Types are the domain's, whatever the codes.
    assert frame.dtypes.equals(domain.decode(codes[:0]).dtypes)


def test_decoded_types():
    text = pd.Series(["a"]).dtype
    declared = {
        "real?": (Numeric(0, 1, nullable=True), np.float64),
        "int?": (Numeric(0, 9, integer=True, nullable=True), pd.Int64Dtype()),
        "text?": (Categorical(["a", "b"], nullable=True), text),
        "flag?": (Categorical([True, False], nullable=True), pd.BooleanDtype()),
        "mixed?": (Categorical(["a", 1], nullable=True), object),
        "big": (Categorical([2**70, 1]), object),
        "fine": (Categorical([2**53 + 1, 0.5]), object),
    }
    domain = Domain({name: attribute for name, (attribute, _) in declared.items()})
    frame = domain.decode([np.zeros(len(domain), int), np.array(domain.shape) - 1])
    assert frame.dtypes.tolist() == [dtype for _, dtype in declared.values()]
    assert frame.isna().loc[1].tolist() == [name[-1] == "?" for name in domain]
    assert not frame.isna().loc[0].any()
    assert frame["mixed?"].tolist() == ["a", None]
    assert frame["fine"].tolist() == [2**53 + 1, 0.5]


def test_pairs_and_lists_are_attributes():
    for short, full in (
        ((18, 90), Numeric(18, 90, integer=True)),
        ((0, 100_000), Numeric(0, 100_000, "auto", integer=True)),
        ((0, 1.5), Numeric(0, 1.5)),
        (["F", "M"], Categorical(["F", "M"])),
        (("2015-01-01", "2024-12-31"), Date("2015-01-01", "2024-12-31")),
        ((dt.date(2015, 1, 1), pd.Timestamp("2024-12-31")), Date("2015-01-01", "2024-12-31")),
        (("2015-01-01T10:00", "2015-01-02"), skdp.Datetime("2015-01-01T10:00", "2015-01-02")),
    ):
        assert Domain({"a": short}) == Domain({"a": full})
    assert Domain.for_array((0, 9), 2) == Domain.for_array([Numeric(0, 9, integer=True)] * 2, 2)


# --- from frames and code books; no row is ever read


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
band,category,,,18-24|25-34,,,,,,,,Band of ages
zip,,,,"01, 02",,,,,,,,Digits with a zero are text
kind,,,,"1, b",,,,,,,,One is no number
said,,,,"1=Yes, or so|2=No",,,,,,,,Answer
sign,,,,=;a,,,,,,,,Sign
"""


def write(tmp_path, text, name="book.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_code_book(tmp_path):
    domain = Domain.from_schema(write(tmp_path, BOOK))
    assert declared(domain) == {
        "loan_id": skdp.Identifier(),
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
        "band": Categorical(["18-24", "25-34"]),
        "zip": Categorical(["01", "02"]),
        "kind": Categorical(["1", "b"]),
        "said": Categorical([1, 2]),
        "sign": Categorical(["=", "a"]),
    }


DECLARED = {
    ".json": (Domain.from_json, PEOPLE.to_json().encode()),
    ".csv": (Domain.from_schema, BOOK.encode()),
}
DAMAGE = st.binary(max_size=3) | st.sampled_from([b"1e999", b"2020-01-01", b"log", b"date", b"9=1"])


@settings(max_examples=300)
@given(st.sampled_from([*DECLARED]), st.data())
def test_a_damaged_file_is_a_domain_error_or_a_domain(tmp_path_factory, ending, data):
    read, content = DECLARED[ending]
    start = data.draw(st.integers(0, len(content) - 1))
    stop = data.draw(st.integers(start, min(len(content), start + 20)))
    path = tmp_path_factory.mktemp("declared") / f"domain{ending}"
    path.write_bytes(content[:start] + data.draw(DAMAGE) + content[stop:])
    with contextlib.suppress(DomainError):
        assert isinstance(read(path), Domain)


def test_json_that_a_person_edits_is_short():
    tree = skdp.Taxonomy.from_tree({"any": {"x": ["a", "b"], "y": ["c", "d"]}})
    domain = Domain(
        {
            "id": skdp.Identifier(),
            "n": Numeric(0, 9, integer=True, nullable=True),
            "log": Numeric(0, 9, 10, integer=True, scale="log"),
            "edges": Numeric(edges=[0, 1, 10, 100], integer=True),
            "cents": Numeric(0, 9, 4, decimals=2),
            "tree": Categorical(tree.leaves, taxonomy=tree, other="d", ordered=True),
            "zero": Categorical([0, 1], other=0),
            "at": skdp.Datetime("2020-01-01", "2020-01-02", "hour", tz="UTC"),
        },
        structure=[skdp.forbid("n > 3 and cents > 3")],
    )
    text = domain.to_json()
    assert Domain.from_json(text) == domain and ": null" not in text
    assert len(text.splitlines()) == len(domain.columns) + 8
    wider = Domain.from_json(text.replace('"upper": 9, "integer"', '"upper": 19, "integer"'))
    assert wider["n"] == Numeric(0, 19, integer=True, nullable=True)


@pytest.mark.parametrize("kind", ["eager", "lazy", "arrow", "duckdb"])
def test_types_of_other_libraries(kind):
    frame = pl.DataFrame(
        {"a": [1], "b": ["x"], "d": [dt.date(2020, 1, 1)]},
        schema_overrides={"b": pl.Enum(["x", "y"])},
    ).with_columns(
        f=pl.lit(True),
        c=pl.lit(1).cast(pl.Decimal(10, 2)),
        t=pl.lit(dt.datetime(2020, 1, 1), pl.Datetime("us", "UTC")),
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
