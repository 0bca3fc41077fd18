import copy
import datetime as dt
import json
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from trees import trees

import skdp
from skdp._keys import key_of
from skdp.domain import Categorical, Date, Datetime, Domain, Identifier, Numeric, Taxonomy
from skdp.exceptions import DomainError
from skdp.tables import as_frame

QUICK = settings(max_examples=100)


def codes_of(attribute, values, dtype=object):
    """Codes of values in a column of their own."""
    frame = as_frame(pd.DataFrame({"a": pd.Series(values, dtype=dtype)}))
    return frame.column("a").codes(attribute.coding()).tolist()


NAMES = st.text(min_size=1, max_size=8).filter(lambda s: s.isprintable())


CATEGORIES = st.one_of(
    st.text(max_size=5).filter(lambda s: "\0" not in s),
    st.integers(-(10**6), 10**6),
    st.floats(-1e6, 1e6, allow_nan=False),
    st.booleans(),
)


@st.composite
def reals(draw):
    lower = draw(st.floats(-1e9, 1e9))
    width = draw(st.floats(1e-3, 1e9))
    bins = draw(st.integers(1, 300))
    assume(width / bins > 1e-6 * abs(lower) / 1e8 + 1e-5)
    return Numeric(lower, lower + width, bins, nullable=draw(st.booleans()))


@st.composite
def integers(draw):
    lower = draw(st.integers(-(10**9), 10**9))
    span = draw(st.integers(0, 500))
    bins = draw(st.one_of(st.none(), st.integers(1, span + 1)))
    return Numeric(lower, lower + span, bins, integer=True, nullable=draw(st.booleans()))


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


ATTRIBUTES = st.one_of(reals(), integers(), categoricals())


@st.composite
def domains(draw):
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    attributes = {name: draw(ATTRIBUTES) for name in names}
    assume(math.prod(attribute.size for attribute in attributes.values()) > 1)
    return Domain(attributes)


def test_attributes_cannot_be_changed():
    with pytest.raises(AttributeError, match="cannot be changed"):
        Numeric(0, 1).bins = 3
    with pytest.raises(AttributeError, match="cannot be changed"):
        Domain({"a": Numeric(0, 1)}).names = ("b",)


@given(ATTRIBUTES)
@QUICK
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


def people():
    return pd.DataFrame(
        {
            "age": [17, 95, 20, 21],
            "pay": [1.0, math.nan, 2e5, 5e4],
            "sex": ["Female", "Male", "?", None],
            "größe": ["l", None, "xxl", "s"],
        }
    )


CODES = [[0, 0, 0, 2], [73, 50, 1, 3], [3, 49, -1, 1], [4, 12, -1, 0]]


def test_basic_properties():
    assert PEOPLE.names == ("age", "pay", "sex", "größe") == tuple(PEOPLE)
    assert (PEOPLE.shape, PEOPLE.size, len(PEOPLE)) == ((74, 51, 2, 4), 74 * 51 * 2 * 4, 4)
    assert PEOPLE["age"] is PEOPLE.attributes[0]
    assert PEOPLE.index("größe") == 3
    assert "age" in PEOPLE and "x" not in PEOPLE and 3 not in PEOPLE
    with pytest.raises(DomainError, match="'x' is not in the domain; it has 'age'"):
        PEOPLE["x"]
    with pytest.raises(DomainError, match="not in the domain"):
        PEOPLE.index(["age"])


def test_encode_arrays_by_position():
    domain = Domain.for_array(Numeric(-10, 10, bins=4), 3)
    assert domain.names == ("x0", "x1", "x2")
    array = np.array([[-11, 0, 11], [np.nan, -np.inf, np.inf]])
    assert domain.encode(array).tolist() == [[0, 2, 3], [-1, 0, 3]]
    assert domain.encode(pd.DataFrame(array)).tolist() == domain.encode(array).tolist()
    named = Domain({"u": Numeric(0, 1, 2), "label": Categorical([0, 1]), "v": Numeric(0, 1, 2)})
    rows = as_frame(np.array([[0.1, 0.9]])).with_column("label", [1])
    assert named.encode(rows).tolist() == [[0, 1, 1]]


def test_for_array():
    parts = [Numeric(0, 1), Categorical(["a", "b"])]
    assert Domain.for_array(parts, 2).attributes == tuple(parts)
    assert Domain.for_array(PEOPLE, 4) is PEOPLE
    for given_, n, message in [
        (parts, 3, "declares 2 columns, but the data has 3"),
        (PEOPLE, 3, "declares 4 columns, but the data has 3"),
        ("a", 1, "must be a Domain"),
        (5, 1, "must be a Domain"),
    ]:
        with pytest.raises(DomainError, match=message):
            Domain.for_array(given_, n)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({}, "no attributes"),
        ([], "no attributes"),
        ({"a": Categorical(["x"])}, "a single cell"),
        ({"a": Categorical(["x"]), "b": Numeric(0, 1, 1)}, "a single cell"),
        ([("a", Numeric(0, 1)), ("a", Numeric(0, 2))], "unique, but 'a' are repeated"),
        ({1: Numeric(0, 1)}, "must be strings, got 1 of type int"),
        ({("a",): Numeric(0, 1)}, "must be strings"),
        ({"\udfff": Numeric(0, 1)}, "not valid Unicode"),
        ({"a": (0, 1, 2)}, "'a': A tuple is a range"),
        ({"a": ("F", "M")}, "'a': A tuple is a range.*as a list"),
        ({"a": (1, 0)}, "'a': Numeric needs lower < upper"),
        ({"a": ["x", None]}, "'a': Category None"),
        ({"a": ("2021-01-01", "2020-01-01")}, "'a': Date needs lower <= upper"),
        ({"a": Numeric}, "'a' must be declared by"),
        (["a"], "pairs, got 'a'"),
        (Numeric(0, 1), "declared by a mapping.*for_array"),
        (None, "declared by a mapping"),
    ],
)
def test_refused_domains(attributes, message):
    with pytest.raises(DomainError, match=message):
        Domain(attributes)


def test_select_and_with_attribute():
    part = PEOPLE.select(["größe", "age"])
    assert part.names == ("größe", "age")
    assert part.with_attribute("y", Categorical([0, 1])).names == ("größe", "age", "y")
    with pytest.raises(DomainError, match="'age' is declared twice"):
        part.with_attribute("age", Categorical([0, 1]))
    with pytest.raises(DomainError, match="'x' is not in the domain"):
        PEOPLE.select(["x"])
    # Parts may have a single cell, which cannot be declared.
    constant = Domain({"a": Numeric(0, 1), "b": Categorical(["only"])})
    assert constant.select(["b"]).size == 1
    assert Domain.from_json(constant.select(["b"]).to_json()) == constant.select(["b"])


@given(domains())
@QUICK
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
    assert len(set(variants)) == 5
    assert Numeric(0, 1, 2) != Numeric(0, 1, 2, integer=True)
    assert Numeric(0, 1, 32) == Numeric(0.0, 1.0, 32) != Numeric(0.0, 1.0)
    assert Numeric(0, 1) != Categorical([0, 1])


def test_repr():
    assert repr(PEOPLE) == (
        "Domain({'age': Numeric(17, 90, integer=True), "
        "'pay': Numeric(0, 200000, bins=50, nullable=True), "
        "'sex': Categorical(['Female', 'Male']), "
        "'größe': Categorical(['s', 'm', 'l'], ordered=True, other='m', nullable=True)})"
    )
    names = {"Domain": Domain, "Numeric": Numeric, "Categorical": Categorical}
    assert eval(repr(PEOPLE), names) == PEOPLE
    long = Domain.for_array(Categorical(range(100)), 100)
    assert len(repr(long)) < 2000
    assert "... (92 more)" in repr(long) and "... (88 more)" in repr(long)


NUMBER = Numeric(0, 1, 32)

TEXT = Categorical(["a", "b"])

DIGIT = Categorical([0, 1])

MIXED = Categorical(["a", 1])


@pytest.mark.parametrize(
    ("attribute", "series", "message"),
    [
        (NUMBER, pl.Series([dt.timedelta(1)]), "holds durations"),
        (NUMBER, pl.Series([[1]]), "holds neither numbers"),
        (TEXT, pl.Series([dt.date(2020, 1, 1)]), None),
        (MIXED, pl.Series([b"a"]), "holds neither numbers"),
        (NUMBER, pl.Series(["1"]), None),
        (DIGIT, pl.Series(["0"]), None),
        (Categorical(["00", "01"]), pl.Series([1]), None),
        (TEXT, pl.Series([1.5, None]), None),
        (TEXT, pl.Series([1]), None),
        (TEXT, pl.Series([True]), None),
        (NUMBER, pl.Series([1]), None),
        (NUMBER, pl.Series([True]), None),
        (NUMBER, pl.Series([None]), None),
        (TEXT, pl.Series(["0"]), None),
        (TEXT, pl.Series([None]), None),
        (DIGIT, pl.Series([7.5]), None),
        (DIGIT, pl.Series([True]), None),
        (MIXED, pl.Series(["0"]), None),
        (MIXED, pl.Series([0]), None),
    ],
)
def test_declared_types(attribute, series, message):
    domain = Domain({"ä": attribute})
    frame = pl.DataFrame({"ä": series})
    if message is None:
        assert len(domain.encode(frame)) == len(frame)
    else:
        with pytest.raises(DomainError, match=message):
            domain.check_schema(frame)


def test_schema_errors_do_not_depend_on_values():
    messages = set()
    for values in ([dt.timedelta(1)], [None] * 5, []):
        series = pl.Series(values, dtype=pl.Duration)
        with pytest.raises(DomainError) as caught:
            PEOPLE.encode(pl.DataFrame(dict.fromkeys(PEOPLE, series)))
        messages.add(str(caught.value))
    assert len(messages) == 1


class Hostile:
    """Raises whatever is asked of it."""

    def __hash__(self):
        raise RuntimeError("hash")

    def __eq__(self, other):
        raise RuntimeError("eq")

    def __float__(self):
        raise RuntimeError("float")


class HostileEqual(Hostile):
    """Falls into the bucket of a category, then refuses the comparison."""

    def __hash__(self):
        return hash("a")


HOSTILE = [
    None, math.nan, math.inf, -math.inf, pd.NA, pd.NaT, 0, 1, -1, True, False, 0.5, 1e308,
    10**400, -(10**400), 2**63, 2**64 + 1, -(2**63) - 1, Fraction(1, 2), Fraction(10**400),
    Decimal("0.5"), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("1e999"),
    "", "a", "b", "0.5", "nan", "inf", "1e999", " 1 ", "1_0", "\ud800", "é", "x" * 10_000, b"a",
    b"1", 1j, complex("nan"), complex(1), np.complex128(1), [1], [], (1,), {"a": 1}, {1},
    np.zeros(2), np.array(0.5),
    np.float32(0.5), np.float16(0.5), np.longdouble("1e4000"), np.int8(1), np.bool_(True),
    np.str_("a"), np.datetime64("NaT", "s"), np.datetime64("2020-01-01"), np.timedelta64(1, "D"),
    dt.date(2020, 1, 1), dt.datetime(2020, 1, 1), dt.timedelta(1), pd.Timestamp("2020"),
    pd.Interval(0, 1), object, object(), Hostile(), HostileEqual(), Ellipsis, range(3), len,
]  # fmt: skip

HOSTILE_ATTRIBUTES = [
    Numeric(0, 1, 8),
    Numeric(0, 9, integer=True, nullable=True),
    Categorical(["a", "b"]),
    Categorical(["a", "b", 1, 0.5], other="b", nullable=True),
    Categorical([True, False], nullable=True),
]


def holding(values):
    array = np.empty(len(values), dtype=object)
    for position, value in enumerate(values):
        array[position] = value
    return array


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("attribute", HOSTILE_ATTRIBUTES, ids=repr)
def test_no_value_raises_or_warns_and_each_stands_for_itself(attribute):
    alone = [codes_of(attribute, holding([value]))[0] for value in HOSTILE]
    domain = Domain({"a": attribute, "b": Numeric(0, 1, 2)})
    column = holding(HOSTILE)
    zeros = np.zeros(len(column))
    together = [
        pd.DataFrame({"a": column, "b": zeros}),
        np.column_stack([column, zeros.astype(object)]),
        [[value, 0] for value in HOSTILE],
        pl.DataFrame({"a": pl.Series(HOSTILE, dtype=pl.Object), "b": zeros}),
    ]
    for table in together:
        assert domain.encode(table)[:, 0].tolist() == alone
    # The same without what cannot be hashed, which takes another way.
    tame = [(v, code) for v, code in zip(HOSTILE, alone, strict=True) if not unhashable(v)]
    assert len(tame) > 40
    values, codes = zip(*tame, strict=True)
    assert codes_of(attribute, holding(values)) == list(codes)


def unhashable(value):
    try:
        hash(value)
    except Exception:
        return True
    return isinstance(value, HostileEqual)


def test_meaning_of_odd_values():
    number = Numeric(0, 8, 8, nullable=True)
    cases = {
        10**400: 7, -(10**400): 0, "2.5": 2, " 3 ": 3, "inf": 7, "x": 8, Decimal("1.5"): 1,
        True: 1, 1j: 8, dt.date(2020, 1, 1): 8, Fraction(9, 2): 4,
    }  # fmt: skip
    assert codes_of(number, holding(list(cases))) == list(cases.values())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("library", [pl.DataFrame, pa.table, pd.DataFrame])
def test_typed_columns_with_extreme_values(library):
    number = Numeric(0, 8, 8, nullable=True)
    both = Domain({"i": number, "f": number})
    table = library(
        {"i": np.array([2**63 - 1, -(2**63), 2**53 + 1]), "f": np.array([1e308, -np.inf, np.nan])}
    )
    assert both.encode(table).tolist() == [[7, 7], [0, 0], [7, 8]]
    large = Domain({"i": Categorical([2**53 + 1, 2**63 - 1]), "f": Categorical([1e308, 0.0])})
    assert large.encode(table).tolist() == [[1, 0], [-1, -1], [0, -1]]


def test_empty_and_single_rows():
    frame = people()
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        assert PEOPLE.encode(table[:0]).shape == (0, 4)
        assert PEOPLE.encode(table[:1]).tolist() == CODES[:1]
    assert Domain.for_array(Numeric(0, 1), 2).encode(np.zeros((0, 2))).shape == (0, 2)


@given(domains(), st.data())
@QUICK
def test_containers_give_identical_codes(domain, data):
    rows = data.draw(
        st.lists(st.tuples(*[st.integers(0, s - 1) for s in domain.shape]), max_size=9)
    )
    frame = domain.decode(np.array(rows, dtype=int).reshape(-1, len(domain)), random_state=0)
    wanted = domain.encode(frame).tolist()
    assert domain.encode(frame.to_numpy(dtype=object)).tolist() == wanted
    # Mixed types exist in object columns only.
    if not any(isinstance(a, Categorical) and a._dtype() is object for a in domain.attributes):
        assert domain.encode(pl.from_pandas(frame)).tolist() == wanted
        assert domain.encode(pa.Table.from_pandas(frame)).tolist() == wanted


@given(domains(), st.data(), st.integers(0, 2**32))
@settings(max_examples=200)
def test_codes_of_decoded_rows_are_the_codes(domain, data, seed):
    rows = data.draw(
        st.lists(st.tuples(*[st.integers(0, s - 1) for s in domain.shape]), max_size=9)
    )
    codes = np.array(rows, dtype=np.int64).reshape(-1, len(domain))
    frame = domain.decode(codes, random_state=seed)
    assert tuple(frame.columns) == domain.names
    assert domain.encode(frame).tolist() == codes.tolist()
    # Types are the domain's, whatever the codes.
    assert frame.dtypes.equals(domain.decode(codes[:0]).dtypes)


def test_decoded_types():
    text = pd.Series(["a"]).dtype
    domain = Domain(
        {
            "real": Numeric(0, 1),
            "real?": Numeric(0, 1, nullable=True),
            "int": Numeric(0, 9, integer=True),
            "int?": Numeric(0, 9, integer=True, nullable=True),
            "text": Categorical(["a", "b"]),
            "text?": Categorical(["a", "b"], nullable=True),
            "flag": Categorical([True, False]),
            "flag?": Categorical([True, False], nullable=True),
            "code": Categorical([3, 5]),
            "code?": Categorical([3, 5], nullable=True),
            "half": Categorical([0.5, 1], nullable=True),
            "mixed?": Categorical(["a", 1], nullable=True),
            "big": Categorical([2**70, 1]),
            "fine": Categorical([2**53 + 1, 0.5]),
        }
    )
    last = np.array(domain.shape) - 1
    frame = domain.decode([np.zeros(14, int), last])
    assert frame.dtypes.tolist() == [
        np.float64, np.float64, np.int64, pd.Int64Dtype(), text, text, bool, pd.BooleanDtype(),
        np.int64, pd.Int64Dtype(), np.float64, object, object, object,
    ]  # fmt: skip
    assert frame.isna().loc[1].tolist() == [name[-1] == "?" or name == "half" for name in domain]
    assert not frame.isna().loc[0].any()
    assert frame["mixed?"].tolist() == ["a", None]
    assert frame["fine"].tolist() == [2**53 + 1, 0.5]
    assert isinstance(frame.index, pd.RangeIndex)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([[0, 0, 0]], "shape \\(n, 4\\)"),
        ([0, 0, 0, 0], "shape \\(n, 4\\)"),
        ([[0, 0, 0, -1]], "0..size - 1"),
        ([[0, 0, 2, 0]], "0..size - 1"),
        ([[0.0, 0, 0, 0]], "must be integers"),
    ],
)
def test_refused_codes(codes, message):
    with pytest.raises(ValueError, match=message):
        PEOPLE.decode(codes)


def test_json_files(tmp_path):
    path = tmp_path / "domain.json"
    path.write_text(PEOPLE.to_json(), encoding="utf-8")
    assert Domain.from_json(path) == PEOPLE
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DomainError, match="not JSON in UTF-8"):
        Domain.from_json(path)
    with pytest.raises(FileNotFoundError):
        Domain.from_json(tmp_path / "none.json")
    with pytest.raises(DomainError, match=r"pathlib\.Path"):
        Domain.from_json(str(tmp_path / "domain.json"))
    with pytest.raises(DomainError, match="takes JSON text or a path, got dict"):
        Domain.from_json({})


def changed(path, value):
    data = json.loads(
        Domain(
            {"n": Numeric(0, 9), "c": Categorical(["a"], taxonomy=Taxonomy.from_tree(["a"]))}
        ).to_json()
    )
    part = data
    for key in path[:-1]:
        part = part[key]
    if value is KeyError:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a domain in JSON"),
        ("{", "not a domain in JSON"),
        ("[" * 100_000, "not a domain in JSON"),
        ("[]", "not a domain"),
        ("null", "not a domain"),
        ('{"format": "other"}', "lacks the format"),
        (changed(["version"], 3), "version 3, but only version 1"),
        (changed(["inferred"], True), "inferred from records"),
        (changed(["attributes"], {}), "no attributes"),
        (changed(["attributes"], None), "damaged"),
        (changed(["attributes"], [1]), "damaged"),
        (changed(["attributes", 0, "name"], 3), "must be strings"),
        (changed(["attributes", 0, "name"], "c"), "unique"),
        (changed(["attributes", 0, "type"], "colour"), "type 'colour' is unknown"),
        (changed(["attributes", 0, "lower"], 10), "lower < upper"),
        (changed(["attributes", 0, "lower"], math.nan), "finite"),
        (changed(["attributes", 0, "upper"], 10**400), "finite"),
        (changed(["attributes", 0, "upper"], KeyError), "upper must be a number"),
        (changed(["attributes", 0, "bins"], 1e30), "bins must be in"),
        (changed(["attributes", 0, "extra"], 1), "damaged"),
        (changed(["attributes", 1, "categories"], ["b"]), "leaves of the taxonomy"),
        (changed(["attributes", 1, "categories"], [["b"]]), "has type list"),
        (changed(["attributes", 1, "taxonomy"], [1]), "damaged"),
        (changed(["attributes", 1, "taxonomy", "parents"], [-1, 5]), "after its parent"),
        (changed(["attributes", 1, "taxonomy", "parents"], [-1, 0.5]), "must be an integer"),
        (changed(["attributes", 1, "taxonomy", "parents"], [-1, [0]]), "damaged|no valid domain"),
        (changed(["attributes", 1, "taxonomy", "parents"], "x"), "damaged|no valid domain"),
    ],
)
def test_corrupted_json(text, message):
    with pytest.raises(DomainError, match=message):
        Domain.from_json(text)


@given(st.data())
@settings(max_examples=150)
def test_any_damage_to_json_is_a_domain_error_or_a_domain(data):
    text = PEOPLE.to_json()
    start = data.draw(st.integers(0, len(text) - 1))
    stop = data.draw(st.integers(start, min(len(text), start + 20)))
    damaged = text[:start] + data.draw(st.text(max_size=3)) + text[stop:]
    try:
        assert isinstance(Domain.from_json(damaged), Domain)
    except DomainError:
        pass


@pytest.mark.filterwarnings("ignore::skdp.PrivacyLeakWarning")
def test_check_ignores_columns_that_are_not_declared():
    domain = Domain({"age": Numeric(0, 99, integer=True)})
    assert domain.check(pd.DataFrame({"more": [["x"]], "age": [3]})).clean
    with pytest.raises(DomainError, match="Missing: 'age'"):
        domain.check(pd.DataFrame({"more": [1]}))


def test_pairs_and_lists_are_attributes():
    short = {
        "age": (18, 90),
        "score": (0, 100_000),
        "pay": (0.0, 200_000.0),
        "mixed": (0, 1.5),
        "sex": ["F", "M"],
        "joined": ("2015-01-01", "2024-12-31"),
        "left": (dt.date(2015, 1, 1), pd.Timestamp("2024-12-31")),
        "at": ("2015-01-01T10:00", "2015-01-02T10:00"),
        "id": Identifier(),
        "told": Numeric(0, 9, integer=True, nullable=True),
    }
    full = {
        "age": Numeric(18, 90, integer=True),
        "score": Numeric(0, 100_000, "auto", integer=True),
        "pay": Numeric(0, 200_000),
        "mixed": Numeric(0, 1.5),
        "sex": Categorical(["F", "M"]),
        "joined": Date("2015-01-01", "2024-12-31"),
        "left": Date("2015-01-01", "2024-12-31"),
        "at": Datetime("2015-01-01T10:00", "2015-01-02T10:00"),
        "id": short["id"],
        "told": short["told"],
    }
    assert Domain(short) == Domain(full)
    assert Domain.for_array((0, 9), 2) == Domain.for_array([Numeric(0, 9, integer=True)] * 2, 2)
    listed = Domain.for_array([(0.0, 1.0), ["a", "b"]], 2)
    assert listed.attributes == (Numeric(0, 1), Categorical(["a", "b"]))


def test_columns_that_are_not_those_of_the_domain_are_named():
    domain = Domain({"a": (0, 9), "sex": ["F", "M"]})
    frame = pd.DataFrame({"a": [1], "gender": ["F"]})
    with pytest.raises(DomainError, match=r"Missing: 'sex'\. Not declared: 'gender'\. Select"):
        domain.encode(frame)
    with pytest.raises(DomainError, match="3 columns without names, but the domain declares 2"):
        domain.encode(np.zeros((5, 3)))
    days = pl.DataFrame({f"c{i}": [[1]] for i in range(50)})
    with pytest.raises(DomainError, match="and 45 more columns"):
        Domain(dict.fromkeys(days.columns, (0, 9))).encode(days)


@pytest.mark.filterwarnings("ignore::skdp.InsecureSeedWarning")
def test_estimators_take_domains_in_short():
    rows = pd.DataFrame({"age": [20, 30, 95], "sex": ["F", "M", "F"]})
    short, full = {"age": (18, 90), "sex": ["F", "M"]}, {"age": Numeric(18, 90, integer=True)}
    view = skdp.GridSynthesizer(epsilon=1, domain=short, random_state=0).fit(rows)
    assert view.synopsis_.domain == Domain({**full, "sex": Categorical(["F", "M"])})
    array = np.array([[0.5, 3.0], [1.0, 9.0]])
    for domain in ([(0.0, 1.0), (0.0, 9.0)], (0.0, 9.0)):
        cube = skdp.DataCube(epsilon=1, domain=domain, random_state=0).fit(array)
        assert cube.cuboid(["x1"]).shape[0] == 32
    for pair, bins, expected in (
        ((0, 9), None, Numeric(0, 9, integer=True)),
        ((0.0, 9.0), None, Numeric(0, 9)),
        ((0, 9), 3, Numeric(0, 9, 3)),
    ):
        tree = skdp.RangeTreeHistogram(epsilon=1, domain=pair, bins=bins, random_state=0)
        assert tree.fit([1.0, 8.5]).domain_.attributes == (expected,)
    ranges = {"x0": (0, 1), "x1": Numeric(0, 9, integer=True)}
    scaler = skdp.PrivateStandardScaler(epsilon=1, domain=ranges, random_state=0).fit(
        pd.DataFrame(array, columns=["x0", "x1"])
    )
    assert 0 <= scaler.mean_[0] <= 1 and 0 <= scaler.mean_[1] <= 9
