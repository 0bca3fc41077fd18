import copy
import datetime as dt
import enum
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

from skdp._keys import key_of
from skdp.domain import Categorical, Date, Domain, Numeric, Taxonomy
from skdp.domain.report import report_of
from skdp.exceptions import DomainError, PrivacyLeakWarning
from skdp.tables import CountTable, as_frame

QUICK = settings(max_examples=100)


def codes_of(attribute, values, dtype=object):
    """Codes of values in a column of their own."""
    frame = as_frame(pd.DataFrame({"a": pd.Series(values, dtype=dtype)}))
    return frame.column("a").codes(attribute.coding()).tolist()


# --- strategies -----------------------------------------------------------------------------

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
def trees(draw, labels):
    """A taxonomy over ``labels``: neighbours are merged until one group is left."""
    parts = [[label] for label in draw(st.permutations(labels))]
    nested = [part[0] for part in parts]
    while len(nested) > 1:
        start = draw(st.integers(0, len(nested) - 2))
        stop = draw(st.integers(start + 2, len(nested)))
        nested[start:stop] = [{f"group of {stop - start}": nested[start:stop]}]
    return Taxonomy.from_tree({"all": nested})


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


# --- Numeric --------------------------------------------------------------------------------


def test_bins_follow_the_documented_formula():
    attribute = Numeric(0.1, 0.9, 7)
    x = np.linspace(-0.2, 1.2, 1001)
    formula = np.floor((np.clip(x, 0.1, 0.9) - 0.1) * 7 / (0.9 - 0.1))
    assert codes_of(attribute, x, float) == np.minimum(formula, 6).tolist()
    assert codes_of(attribute, [0.9], float) == [6]


def test_default_bins():
    assert Numeric(0, 1) == Numeric(0, 1, "auto") and Numeric(0, 1).bins == 800
    assert (Numeric(17, 90, integer=True).bins, Numeric(17, 90, integer=True).size) == (74, 74)
    assert Numeric(17, 90, integer=True, nullable=True).size == 75
    assert codes_of(Numeric(17, 90, integer=True), [17, 18, 90]) == [0, 1, 73]


def test_out_of_range_is_clipped_and_missing_is_not():
    values = [-np.inf, -1e308, -1, 0, 1, 2, 1e308, np.inf, np.nan]
    assert codes_of(Numeric(0, 1, 4), values, float) == [0, 0, 0, 0, 3, 3, 3, 3, -1]
    assert codes_of(Numeric(0, 1, 4, nullable=True), values, float)[-1] == 4
    whole = Numeric(0, 9, integer=True, nullable=True)
    assert codes_of(whole, values, float) == [0, 0, 0, 0, 1, 2, 9, 9, 10]


def test_fractions_in_integer_columns_are_rounded_down():
    assert codes_of(Numeric(-2, 2, integer=True), [-0.5, 0.5, 1.999, 2.5]) == [1, 2, 3, 4]


@given(integers())
@QUICK
def test_every_integer_lies_in_the_bin_between_its_edges(attribute):
    values = np.arange(attribute.lower, attribute.upper + 1)
    codes = np.array(codes_of(attribute, values, np.int64))
    edges = attribute.edges
    assert edges.dtype == np.int64
    assert len(edges) == attribute.bins + 1
    assert (edges[codes] <= values).all()
    assert (values < edges[codes + 1]).all()
    # No bin is empty, and sizes differ as little as whole numbers allow, but for the closed end.
    sizes = np.bincount(codes, minlength=attribute.bins)
    assert sizes.min() >= 1
    assert np.ptp(sizes[:-1]) <= 1 if attribute.bins > 1 else True
    np.testing.assert_allclose(
        attribute.centers, [values[codes == code].mean() for code in range(attribute.bins)]
    )


def test_wide_integer_ranges_are_exact():
    top = 2**31 - 3
    attribute = Numeric(0, top, integer=True)
    values = [0, 1, 2**26 + 1, 2**30 + 1, top - 1, top]
    assert codes_of(attribute, values) == values
    coarse = Numeric(-(2**40), 2**40, 2**11, integer=True)
    edges = coarse.edges
    assert codes_of(coarse, edges[:-1].tolist()) == list(range(2**11))
    assert codes_of(coarse, (edges[1:] - 1).tolist()) == list(range(2**11))


def test_edges_of_real_bins():
    attribute = Numeric(-1, 3, 8, nullable=True)
    assert attribute.edges.tolist() == [-1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3]
    assert attribute.centers.tolist() == [-0.75, -0.25, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75]
    assert (attribute.size, attribute.n_values, attribute.bins) == (9, 8, 8)


def test_labels():
    assert Numeric(17, 21, 2).labels() == ["[17, 19)", "[19, 21]"]
    assert Numeric(17, 20, 2, integer=True).labels() == ["[17, 19)", "[19, 21)"]
    assert Numeric(1, 2, integer=True, nullable=True).labels() == ["1", "2", "missing"]
    assert Numeric(0, 0.5, 2).labels() == ["[0, 0.25)", "[0.25, 0.5]"]
    assert Categorical(["ü", 1], nullable=True).labels() == ["ü", "1", "missing"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 0), "lower < upper, got lower=1 and upper=0"),
        ((1, 1), "lower < upper"),
        ((math.nan, 1), "lower must be finite"),
        ((0, math.inf), "upper must be finite"),
        ((0, 10**400), "upper must be finite"),
        (("0", 1), "lower must be a number"),
        ((True, 1), "lower must be a number"),
        ((None, 1), "lower must be a number"),
        ((0, 1, 0), "bins must be in 1"),
        ((0, 1, -3), "bins must be in 1"),
        ((0, 1, 2.5), "bins must be an integer"),
        ((0, 1, "3"), "bins must be a number"),
        ((0, 1, True), "bins must be a number"),
        ((0, 1, 2**31), "bins must be in 1"),
        ((-1e308, 1e308), "too wide for float64"),
        ((1, 1 + 1e-15), "narrower than float64"),
    ],
)
def test_refused_ranges(arguments, message):
    with pytest.raises(DomainError, match=message):
        Numeric(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.5, 3), "lower must be an integer"),
        ((3, 1), "lower < upper"),
        ((0, 9, 11), "exceeds the number of integers"),
        ((0, 2**40), "too many for one code each"),
        ((0, 2**60, 4), "too many for one code each"),
        ((0, 2**50, 2**10), "cannot be computed exactly"),
    ],
)
def test_refused_integer_ranges(arguments, message):
    with pytest.raises(DomainError, match=message):
        Numeric(*arguments, integer=True)


def test_flags_must_be_flags():
    with pytest.raises(DomainError, match="nullable must be True or False"):
        Numeric(0, 1, nullable="yes")
    with pytest.raises(DomainError, match="ordered must be True or False"):
        Categorical(["a"], ordered=1)


def test_single_integer_is_an_attribute():
    attribute = Numeric(5, 5, integer=True, nullable=True)
    assert codes_of(attribute, [4, 5, 6, None]) == [0, 0, 0, 1]
    assert attribute.edges.tolist() == [5, 6]
    assert Domain({"a": attribute}).decode([[0], [1]])["a"].tolist() == [5, pd.NA]


def test_attributes_cannot_be_changed():
    with pytest.raises(AttributeError, match="cannot be changed"):
        Numeric(0, 1).bins = 3
    with pytest.raises(AttributeError, match="cannot be changed"):
        Domain({"a": Numeric(0, 1)}).names = ("b",)


# --- Categorical ----------------------------------------------------------------------------


def test_categories_are_equal_by_value():
    attribute = Categorical([1, 2.5, "x"])
    values = [1, 1.0, np.int64(1), np.float32(2.5), "x", True, Decimal("2.5"), "2.5", b"1"]
    assert codes_of(attribute, values) == [0, 0, 0, 1, 2, 0, 1, 1, -1]
    assert attribute.index_of(np.int8(1)) == 0
    for value in ("2", [1], None, math.nan):
        with pytest.raises(KeyError):
            attribute.index_of(value)


def test_unknown_and_missing():
    values = ["a", "z", None, math.nan, pd.NaT, pd.NA, ["a"], {"a": 1}, object()]
    plain = Categorical(["a", "b"])
    assert codes_of(plain, values) == [0] + [-1] * 8
    nullable = Categorical(["a", "b"], nullable=True)
    assert codes_of(nullable, values) == [0, -1, 2, 2, 2, 2, -1, -1, -1]
    other = Categorical(["a", "b"], other="b")
    assert codes_of(other, values) == [0, 1, -1, -1, -1, -1, 1, 1, 1]
    both = Categorical(["a", "b"], other="b", nullable=True)
    assert codes_of(both, values) == [0, 1, 2, 2, 2, 2, 1, 1, 1]


def test_categories_are_plain_python_values():
    attribute = Categorical(np.array(["a", "b"]), other=np.str_("b"))
    assert [type(value) for value in (*attribute.categories, attribute.other)] == [str] * 3
    assert Categorical(pd.Index([1, 2])).categories == (1, 2)
    assert [type(v) for v in Categorical([np.bool_(True), np.float32(0.5)]).categories] == [
        bool,
        float,
    ]


@pytest.mark.parametrize(
    ("categories", "message"),
    [
        ([], "at least one category"),
        ("ab", "must be a list"),
        (5, "must be a list"),
        (["a", "b", "a"], "'a' occur more than once"),
        ([True, 1], "equal in Python"),
        ([1, 1.0], "more than once"),
        (["a", None], "Category None has type NoneType.*nullable=True"),
        (["a", math.nan], "not finite.*nullable=True"),
        ([math.inf], "not finite"),
        ([("a", "b")], "has type tuple"),
        ([["a"]], "has type list"),
        ([b"a"], "has type bytes"),
        ([dt.date(2020, 1, 1)], "has type date"),
        ([np.datetime64("2020-01-01", "ns")], "has type datetime64"),
        (["\ud800"], "not valid Unicode"),
    ],
)
def test_refused_categories(categories, message):
    with pytest.raises(DomainError, match=message):
        Categorical(categories)


def test_refused_other_and_taxonomy():
    with pytest.raises(DomainError, match="other='c' is not one of the categories"):
        Categorical(["a", "b"], other="c")
    with pytest.raises(DomainError, match="must be a Taxonomy, got dict"):
        Categorical(["a", "b"], taxonomy={"a": "b"})
    with pytest.raises(DomainError, match="'c' are leaves only; 'b' are categories only"):
        Categorical(["a", "b"], taxonomy=Taxonomy.from_tree(["a", "c"]))


# --- Taxonomy -------------------------------------------------------------------------------

WORLD = {"World": {"Europe": ["DE", "FR"], "Asia": {"East": ["JP", "KR"], "South": ["IN"]}}}


def test_taxonomy_from_tree():
    tree = Taxonomy.from_tree(WORLD)
    assert tree.labels[:3] == ("World", "Europe", "Asia")
    assert tree.leaves == ("DE", "FR", "JP", "KR", "IN")
    assert (tree.height, tree.n_leaves) == (3, 5)
    assert [tree.groups(level).tolist() for level in range(4)] == [
        [0, 0, 0, 0, 0],
        [0, 0, 1, 1, 1],
        [0, 1, 2, 2, 3],
        [0, 1, 2, 3, 4],
    ]
    assert [tree.labels[node] for node in tree.cut(2)] == ["DE", "FR", "East", "South"]
    with pytest.raises(ValueError, match=r"level must be in 0\.\.3"):
        tree.cut(4)


def test_taxonomy_shorthands():
    assert Taxonomy.from_tree(["a", "b"]).labels == ("Any", "a", "b")
    assert Taxonomy.from_tree({"x": "a", "y": ["b"]}).labels == ("Any", "x", "y", "a", "b")
    assert Taxonomy.from_tree({"all": ["a", {"rest": ["b", "c"]}]}).leaves == ("a", "b", "c")
    assert Taxonomy.from_tree({"all": {"a": None, "b": None}}).leaves == ("a", "b")
    # A group may be called like its only leaf.
    assert Taxonomy.from_tree({"all": {"other": ["other"], "x": ["a"]}}).leaves == ("other", "a")


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({}, "'Any' is empty"),
        ([], "'Any' is empty"),
        ({"a": {"b": []}}, "'b' is empty"),
        ({"r": {"x": ["a"], "y": ["a"]}}, "'a' occur more than once: groups must be nested"),
    ],
)
def test_refused_trees(tree, message):
    with pytest.raises(DomainError, match=message):
        Taxonomy.from_tree(tree)


def test_refused_arrays_of_parents():
    for labels, parents in (([], []), (["a"], [0]), (["a", "b"], [-1, 1]), (["a"], [-1, 0])):
        with pytest.raises(DomainError):
            Taxonomy(labels, parents)


@given(st.integers(1, 300))
@QUICK
def test_dyadic_tree(n):
    tree = Taxonomy.dyadic(n)
    assert tree.leaves == tuple(range(n))
    assert tree.height == math.ceil(math.log2(n))
    for level in range(tree.height + 1):
        step = 2 ** (tree.height - level)
        assert tree.groups(level).tolist() == [code // step for code in range(n)]


def test_dyadic_labels():
    assert Taxonomy.dyadic(3).labels == ("[0, 3)", "[0, 2)", "[2, 3)", 0, 1, 2)
    ages = Taxonomy.dyadic(Numeric(0, 120, 3))
    assert ages.labels == ("[0, 120]", "[0, 80)", "[80, 120]", 0, 1, 2)
    assert Taxonomy.dyadic(Numeric(1, 4, integer=True)).labels[:2] == ("[1, 5)", "[1, 3)")
    for n in (0, -1, 2.5, "a"):
        with pytest.raises(DomainError):
            Taxonomy.dyadic(n)


@given(st.integers(1, 9).flatmap(lambda n: trees(list(range(n)))))
@QUICK
def test_taxonomies_are_nested(tree):
    assert sorted(tree.leaves) == list(range(tree.n_leaves))
    assert (tree.first[0], tree.last[0]) == (0, tree.n_leaves)
    for node, parent in enumerate(tree.parents.tolist()):
        if parent >= 0:
            assert tree.first[parent] <= tree.first[node] < tree.last[node] <= tree.last[parent]
            assert tree.depths[node] == tree.depths[parent] + 1
        children = np.flatnonzero(tree.parents == node)
        if len(children):
            assert (tree.last - tree.first)[children].sum() == tree.last[node] - tree.first[node]
    assert [tree.labels[node] for node in tree.leaf_nodes] == list(tree.leaves)
    coarser = tree.groups(0)
    for level in range(1, tree.height + 1):
        finer = tree.groups(level)
        # Each group lies in one group of the level above.
        assert len(set(zip(finer.tolist(), coarser.tolist(), strict=True))) == finer.max() + 1
        coarser = finer
    assert coarser.tolist() == list(range(tree.n_leaves))


def test_levels_of_attributes():
    country = Categorical(
        ["IN", "FR", "KR", "DE", "JP"], taxonomy=Taxonomy.from_tree(WORLD), nullable=True
    )
    levels = country.levels()
    assert [level.groups.tolist() for level in levels] == [
        [0, 0, 0, 0, 0, 0],
        [1, 0, 1, 0, 1, 2],
        [3, 1, 2, 0, 2, 4],
        [4, 1, 3, 0, 2, 5],
    ]
    assert levels[1].labels == ["Europe", "Asia", "missing"]
    assert levels[3].labels == ["DE", "FR", "JP", "KR", "IN", "missing"]
    age = Numeric(0, 3, integer=True).levels()
    assert [level.groups.tolist() for level in age] == [[0] * 4, [0, 0, 1, 1], [0, 1, 2, 3]]
    assert [level.labels for level in age[1:]] == [["[0, 2)", "[2, 4)"], ["0", "1", "2", "3"]]
    flat = Categorical(["a", "b", "c"]).levels()
    assert [level.groups.tolist() for level in flat] == [[0, 0, 0], [0, 1, 2]]
    ordered = Categorical(["a", "b", "c"], ordered=True).levels()
    assert [level.groups.tolist() for level in ordered] == [[0] * 3, [0, 0, 1], [0, 1, 2]]
    single = Numeric(1, 1, integer=True, nullable=True).levels()
    assert [level.groups.tolist() for level in single] == [[0, 0], [0, 1]]


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


# --- Domain ---------------------------------------------------------------------------------

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


def test_encode_in_every_container():
    frame = people()
    tables = [
        frame,
        frame[["größe", "sex", "pay", "age"]],
        frame.astype({"sex": "category", "größe": "category", "pay": "Float64", "age": "int8"}),
        frame.astype(object),
        frame.set_index(pd.Index([3, 3, 1, 0])),
        pl.from_pandas(frame),
        pl.from_pandas(frame).with_columns(pl.col("sex").cast(pl.Categorical)),
        pa.Table.from_pandas(frame),
        frame.to_numpy(dtype=object),
        frame.to_numpy(dtype=object).tolist(),
    ]
    for table in tables:
        codes = PEOPLE.encode(table)
        assert codes.tolist() == CODES
        assert (codes.dtype, codes.shape) == (np.int32, (4, 4))


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
        ({"a": (0, 1)}, "'a' must be declared by Numeric, Date, .* or Identifier, got tuple"),
        ({"a": Numeric}, "'a' must be declared by"),
        (["a"], "pairs, got 'a'"),
        (Numeric(0, 1), "declared by a mapping.*for_array"),
        (None, "declared by a mapping"),
    ],
)
def test_refused_domains(attributes, message):
    with pytest.raises(DomainError, match=message):
        Domain(attributes)


def test_huge_domains():
    domain = Domain.for_array(Numeric(0, 1, bins=2000, nullable=True), 27)
    assert domain.size == 2001**27 > 10**88
    rows = np.random.default_rng(0).random((50, 27))
    table = CountTable.from_codes(domain.encode(np.vstack([rows, rows])), domain.shape)
    assert table.counts.tolist() == [2] * 50


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
    assert domain != Domain(domain, inferred=True)
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
    assert repr(Domain(PEOPLE.select(["age"]), inferred=True)).endswith("inferred=True)")


# --- schema ---------------------------------------------------------------------------------


def test_missing_and_extra_columns():
    frame = people().rename(columns={"sex": "gender"})
    with pytest.raises(DomainError, match=r"Missing: 'sex'\. Not declared: 'gender'\. Select"):
        PEOPLE.encode(frame)
    with pytest.raises(DomainError, match=r"Missing: 'größe'\. Add them"):
        PEOPLE.encode(people().drop(columns="größe"))
    with pytest.raises(DomainError, match="Not declared: 'id'"):
        PEOPLE.encode(people().assign(id=1))
    with pytest.raises(DomainError, match="3 columns without names, but the domain declares 4"):
        PEOPLE.encode(np.zeros((5, 3)))


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


def test_pandas_types():
    # A file with one text among its numbers becomes a column of text: its numbers are still read.
    text = pd.Series(["0.9", "x", "0.1", None])
    for series in (text, text.astype(object), text.astype("string"), text.astype("category")):
        codes = Domain({"a": NUMBER}).encode(pd.DataFrame({"a": series}))
        assert codes[:, 0].tolist() == [28, -1, 3, -1]


def test_text_and_numbers_that_readers_of_files_take_for_each_other():
    codes = ["00", "01", "2", "x"]
    attribute = Categorical(codes)
    # Text counts as it is; a number as the text that writes it.
    assert codes_of(attribute, codes) == [0, 1, 2, 3]
    assert codes_of(attribute, [0, 1.0, 2, True]) == [0, 1, 2, 1]
    # One text makes text of all numbers, as they are written.
    assert codes_of(attribute, ["1", "1.0", "0", "2.00", "true"]) == [1, 1, 0, 2, 1]
    # No reader takes these for numbers.
    assert codes_of(attribute, ["0_1", "\u0661"]) == [-1, -1]
    assert codes_of(Categorical([1, 2]), ["01", "2.0", " 1", "x"]) == [0, 1, 0, -1]
    # With a gap among them, integers have 53 bits.
    large = Categorical([2**53 + 1, 7])
    assert codes_of(large, [2**53 + 1, float(2**53), 2**53]) == [0, 0, 0]
    flag = Categorical([True, False])
    assert codes_of(flag, ["True", "FALSE", "true", "yes", "0"]) == [0, 1, 0, -1, 1]
    # Conditions may write categories in any of these ways.
    assert flag.index_of("True") == 0


@pytest.mark.parametrize(
    "categories",
    [
        ["1", "1.0"],
        ["01", "1"],
        ["1.1", "1.10"],
        [1, "1"],
        ["x", 0.5, "a", "5e-1"],
        [2**53, 2**53 + 1],
        ["12e45678", "9e456781"],
        ["True", "true"],
        [True, "true"],
        [False, "0"],
    ],
)
def test_categories_that_mean_one_number_are_refused(categories):
    with pytest.raises(DomainError) as caught:
        Categorical(categories)
    told = str(caught.value)
    assert all(repr(each) in told for each in categories if each not in ("x", "a"))
    assert "mean one number, date or gap" in told and "write them with a letter" in told


def test_categories_of_different_numbers_are_taken():
    for each in (["1", "2", "x"], [True, False], [0, 1, 0.5], ["1_0", "10"], ["None", "none"]):
        assert Categorical(each).categories == tuple(each)


def test_infer_takes_the_first_of_several_ways_to_write_a_number():
    rows = pd.DataFrame({"c": pd.Series(["1", "x", "01", "1.0", "0"], dtype=object)})
    with pytest.warns(PrivacyLeakWarning):
        domain = Domain.infer(rows)
    assert domain["c"].categories == ("0", "01", "x")
    assert domain.encode(rows)[:, 0].tolist() == [1, 2, 1, 1, 0]


def test_schema_errors_do_not_depend_on_values():
    messages = set()
    for values in ([dt.timedelta(1)], [None] * 5, []):
        series = pl.Series(values, dtype=pl.Duration)
        with pytest.raises(DomainError) as caught:
            PEOPLE.encode(pl.DataFrame(dict.fromkeys(PEOPLE, series)))
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_many_bad_columns_give_a_short_message():
    frame = pl.DataFrame({f"c{i}": [dt.timedelta(1)] for i in range(50)})
    with pytest.raises(DomainError, match="and 45 more columns") as caught:
        Domain(dict.fromkeys(frame.columns, NUMBER)).encode(frame)
    assert len(str(caught.value)) < 1000


# --- values never raise ---------------------------------------------------------------------


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


@pytest.mark.filterwarnings("error")
def test_long_doubles():
    array = np.array([[np.longdouble("1e4000")], [np.longdouble("0.5")]])
    assert Domain.for_array(Numeric(0, 1, 8), 1).encode(array).tolist() == [[7], [4]]


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


# --- decode ---------------------------------------------------------------------------------


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


def test_decoded_numbers_are_uniform_in_the_bin():
    domain = Domain({"x": Numeric(0, 1, 2), "n": Numeric(0, 9, 2, integer=True)})
    frame = domain.decode(np.ones((40_000, 2), dtype=int), random_state=1)
    assert frame["x"].between(0.5, 1).all()
    # Mean of 40,000 uniforms on [.5, 1]: standard error .00072; six of them.
    assert abs(frame["x"].mean() - 0.75) < 0.0044
    counts = frame["n"].value_counts()
    assert sorted(counts.index) == [5, 6, 7, 8, 9]
    # Standard deviation of each count is 80; six of them.
    assert (counts - 8000).abs().max() < 480
    same = domain.decode(np.ones((40_000, 2), dtype=int), random_state=1)
    pd.testing.assert_frame_equal(frame, same)


def test_draws_at_bin_edges_stay_inside():
    # Widths that are no multiple of anything, far from zero: rounding shifts draws at the edges.
    domain = Domain({"x": Numeric(1e9 + 0.1, 1e9 + 0.4, 997)})
    codes = np.repeat(np.arange(997), 200)[:, None]
    assert (domain.encode(domain.decode(codes, random_state=0)) == codes).all()


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


# --- check, infer, JSON ---------------------------------------------------------------------


def test_check_reports_and_warns():
    with pytest.warns(PrivacyLeakWarning, match="not private"):
        report = PEOPLE.check(people())
    assert report.columns.loc["age"].tolist() == [0, 1, 0, 0, 0, 0]
    assert report.columns.loc["pay"].tolist() == [0, 0, 0, 1, 0, 0]
    assert report.columns.loc["sex"].tolist() == [0, 0, 0, 0, 2, 0]
    assert report.columns.loc["größe"].tolist() == [0, 0, 1, 1, 0, 0]
    assert list(report.columns) == [
        "below",
        "above",
        "to_other",
        "to_missing",
        "skipped",
        "not_understood",
    ]
    assert (report.n_rows, report.n_skipped, report.clean) == (4, 2, False)
    assert "NOT PRIVATE" in repr(report)
    with pytest.warns(PrivacyLeakWarning):
        assert PEOPLE.check(people()[:1]).clean
    with pytest.raises(DomainError, match="Missing: 'age'"):
        PEOPLE.check(people().drop(columns="age"))


def test_check_counts_values_that_are_there_and_not_understood():
    domain = Domain(
        {
            "day": Date("2024-01-01", "2024-12-31", nullable=True),
            "pay": Numeric(0, 10, nullable=True),
            "age": Numeric(0, 99, integer=True),
        }
    )
    frame = pd.DataFrame(
        {
            "day": ["2024-03-01", "01/03/2024", None, "soon"],
            "pay": pd.Series([" ", "?", np.nan, 2], dtype=object),
            "age": pd.Series([30, 31, None, "old"], dtype=object),
        }
    )
    with pytest.warns(PrivacyLeakWarning):
        report = domain.check(frame)
    assert report.columns["not_understood"].tolist() == [2, 1, 1]
    assert report.columns["to_missing"].tolist() == [3, 3, 0]
    assert report.columns["skipped"].tolist() == [0, 0, 2]
    assert not report.clean and "not understood" in repr(report)
    assert "represented as they are: 0 of 3" in repr(report)


@given(domains(), st.data())
@QUICK
def test_check_agrees_with_encode(domain, data):
    column = st.lists(st.sampled_from([v for v in HOSTILE if not isinstance(v, Hostile)]))
    values = data.draw(column)
    frame = pd.DataFrame({name: pd.Series(holding(values), dtype=object) for name in domain})
    codes = domain.encode(frame)
    report = report_of(domain, as_frame(frame))
    assert report.n_skipped == (codes < 0).any(axis=1).sum()
    assert report.columns["skipped"].tolist() == (codes < 0).sum(axis=0).tolist()
    missing = [
        int((codes[:, axis] == attribute.size - 1).sum()) if attribute.nullable else 0
        for axis, attribute in enumerate(domain.attributes)
    ]
    assert report.columns["to_missing"].tolist() == missing


def test_infer():
    frame = pd.DataFrame(
        {
            "age": [17, 90, 20],
            "id": [0, 10**6, 5],
            "pay": [0.5, np.nan, 99.5],
            "sex": ["M", "F", None],
            "flag": [True, False, True],
            "same": [2.5, 2.5, 2.5],
            "mixed": pd.Series([3, "a", 1], dtype=object),
        }
    )
    with pytest.warns(PrivacyLeakWarning, match="reads private values"):
        domain = Domain.infer(frame)
    assert domain.inferred
    assert domain["age"] == Numeric(17, 90, integer=True)
    assert domain["id"] == Numeric(0, 10**6, 32, integer=True)
    assert domain["pay"] == Numeric(0.5, 99.5, 32, nullable=True)
    assert domain["sex"] == Categorical(["F", "M"], nullable=True)
    assert domain["flag"] == Categorical([False, True])
    assert domain["same"] == Numeric(2.5, 5.0, 32)
    assert domain["mixed"] == Categorical([1, 3, "a"])
    assert Domain.from_json(domain.to_json()).inferred
    assert domain.select(["age"]).inferred
    assert domain.with_attribute("y", Categorical([0, 1])).inferred
    assert not PEOPLE.inferred and not Domain.from_json(PEOPLE.to_json()).inferred
    with pytest.warns(PrivacyLeakWarning):
        assert domain.check(frame).clean


@pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning")
def test_what_is_built_of_an_inferred_domain_is_inferred():
    frame = pd.DataFrame({"a": [1, 2, 3], "s": ["x", "y", None]})
    with pytest.warns(PrivacyLeakWarning):
        domain = Domain.infer(frame)
    declared = Numeric(0, 1)
    mixed = Domain({"b": declared, "s": domain["s"]})
    for built in (
        Domain(domain),
        Domain(dict(domain.items())),
        Domain([*PEOPLE.items(), ("s", domain["s"])]),
        Domain({"t": Domain({"s": domain["s"]})["s"]}),
        Domain.for_array(domain["a"], 2),
        Domain.for_array(list(domain.attributes), 2),
        domain.with_attribute("y", declared),
        Domain({"y": declared}).with_attribute("s", domain["s"]),
        domain.select(["s"]),
        mixed,
        mixed.select(["s"]),
        Domain.from_json(domain.to_json()),
        Domain.from_json(mixed.to_json()),
        Domain({"a": Domain.from_json(domain.to_json())["a"], "s": PEOPLE["sex"]}),
        pickle.loads(pickle.dumps(domain)),
        Domain(pickle.loads(pickle.dumps(dict(domain.items())))),
        copy.deepcopy(domain),
        Domain({"a": copy.copy(domain["a"])}),
        Domain({"a": Domain({"a": declared}, inferred=True)["a"]}),
    ):
        assert built.inferred, built
    assert not mixed.select(["b"]).inferred and not declared.inferred
    # The mark makes no other difference.
    assert domain["a"] == Numeric(1, 3, integer=True)
    assert hash(domain["a"]) == hash(Numeric(1, 3, integer=True))
    again = pickle.loads(pickle.dumps(mixed))
    assert again == mixed and not again["b"].inferred and again["s"].inferred


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([np.nan, np.nan], "'a' has no value"),
        (pd.Series([None, None], dtype=object), "'a' has no value"),
        ([1, 1], "a single cell"),
        (pd.to_datetime(["2020", "2021"]), "'a' .type datetime.* holds dates or times, which"),
        (pd.Series([(1,), (2,)], dtype=object), "'a' cannot be inferred.*has type tuple"),
    ],
)
def test_infer_refuses(column, message):
    with pytest.raises(DomainError, match=message):
        Domain.infer(pd.DataFrame({"a": column}))


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
        (changed(["version"], 3), "version 3, but only versions up to 2"),
        (changed(["inferred"], "no"), "must be True or False"),
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


# --- group-by -------------------------------------------------------------------------------


def test_counts_equal_pandas_group_by():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "age": rng.integers(10, 100, 3000),
            "pay": rng.normal(5e4, 5e4, 3000),
            "sex": rng.choice(["Female", "Male", "?"], 3000),
            "größe": rng.choice(["s", "m", "l", "xl"], 3000),
        }
    )
    table = CountTable.from_codes(PEOPLE.encode(frame), PEOPLE.shape)
    known = frame[frame["sex"] != "?"]
    keys = [
        known["age"].clip(17, 90) - 17,
        np.minimum(np.floor(known["pay"].clip(0, 2e5) * 50 / 2e5), 49).astype(int),
        known["sex"].map({"Female": 0, "Male": 1}),
        known["größe"].map({"s": 0, "m": 1, "l": 2, "xl": 1}),
    ]
    expected = known.groupby(keys, sort=True).size()
    assert [tuple(row) for row in table.codes.tolist()] == list(expected.index)
    assert table.counts.tolist() == expected.tolist()
    assert table.n == len(known)


@pytest.mark.slow
@pytest.mark.parametrize("library", ["pandas", "object", "category", "polars", "pyarrow", "numpy"])
def test_a_million_rows_take_about_a_second(library):
    rng = np.random.default_rng(0)
    n_rows = 1_000_000
    categories = [f"category {number}" for number in range(40)]
    columns, attributes = {}, {}
    for place in range(10):
        name = f"c{place}"
        if place < 3:
            columns[name] = rng.integers(0, 100, n_rows)
            attributes[name] = Numeric(0, 99, integer=True)
        elif place < 6 or library == "numpy":
            columns[name] = rng.normal(0, 100, n_rows)
            attributes[name] = Numeric(-300, 300, bins=50)
        else:
            columns[name] = np.array(categories, dtype=object)[rng.integers(0, 40, n_rows)]
            attributes[name] = Categorical(categories)
    frame = pd.DataFrame(columns)
    text = [name for name in frame if isinstance(attributes[name], Categorical)]
    table = {
        "pandas": lambda: frame,
        "object": lambda: frame.astype(dict.fromkeys(text, object)),
        "category": lambda: frame.astype(dict.fromkeys(text, "category")),
        "polars": lambda: pl.from_pandas(frame),
        "pyarrow": lambda: pa.Table.from_pandas(frame),
        "numpy": lambda: frame.to_numpy(),
    }[library]()
    domain = Domain(attributes)
    counts = CountTable.from_codes(domain.encode(table), domain.shape)
    assert counts.n == n_rows


# -- categories that a type declares


class Sex(str, enum.Enum):  # noqa: UP042
    FEMALE = "F"
    MALE = "M"


class Grade(enum.Enum):
    LOW = 1
    HIGH = 2
    TOP = 2


def test_categories_of_types():
    assert Categorical(pd.CategoricalDtype(["a", "b"])) == Categorical(["a", "b"])
    ordered = pd.CategoricalDtype(["low", "high"], ordered=True)
    assert Categorical(ordered) == Categorical(["low", "high"], ordered=True)
    assert Categorical(ordered, ordered=False) == Categorical(["low", "high"])
    assert Categorical(pd.CategoricalDtype([3, 1])) == Categorical([3, 1])
    assert Categorical(Sex) == Categorical(["F", "M"]) == Categorical(list(Sex))
    assert Categorical(Grade) == Categorical([1, 2])


def test_members_of_an_enum_are_read_as_their_values():
    domain = Domain({"sex": Categorical(Sex), "grade": Categorical(Grade)})
    sexes = pd.Series([Sex.MALE, "F", "x", None], dtype=object)
    grades = pd.Series([Grade.TOP, 1, Grade.LOW, Grade.LOW], dtype=object)
    codes = domain.encode(pd.DataFrame({"sex": sexes, "grade": grades}))
    assert codes.tolist() == [[1, 1], [0, 0], [-1, 0], [-1, 0]]


def test_an_enum_of_polars_is_ordered():
    declared = Categorical(pl.Enum(["low", "high"]))
    assert declared == Categorical(["low", "high"], ordered=True)
    assert Categorical(pl.Enum(["b", "a"]), ordered=False) == Categorical(["b", "a"])
    frame = pl.DataFrame({"a": pl.Series(["high", None, "low"], dtype=pl.Enum(["low", "high"]))})
    assert Domain({"a": declared}).encode(frame).ravel().tolist() == [1, -1, 0]


def test_types_that_do_not_list_their_categories_are_refused():
    for dtype in (
        pd.CategoricalDtype(),
        pl.Categorical,
        pl.Categorical(),
        pl.Enum,
        pa.dictionary(pa.int8(), pa.string()),
    ):
        with pytest.raises(DomainError, match="does not say which categories there are. List them"):
            Categorical(dtype)


@pytest.mark.filterwarnings("ignore::skdp.PrivacyLeakWarning")
def test_check_ignores_columns_that_are_not_declared():
    domain = Domain({"age": Numeric(0, 99, integer=True)})
    assert domain.check(pd.DataFrame({"more": [["x"]], "age": [3]})).clean
    with pytest.raises(DomainError, match="Missing: 'age'"):
        domain.check(pd.DataFrame({"more": [1]}))
