"""Queries with or, not, bands and names, against pandas on tables known exactly."""

import numpy as np
import pandas as pd
import pytest
from boxed import one_box_each
from hypothesis import example, given, settings
from hypothesis import strategies as st
from loops import over

from skdp import Categorical, Domain, Numeric
from skdp.domain import Taxonomy
from skdp.domain.bins import POINT
from skdp.domain.query import parts_of
from skdp.release import Intervals, parse

DOMAIN = Domain(
    {
        "n": Numeric(0, 4, integer=True, nullable=True),
        "m": Numeric(10, 13, integer=True),
        "s": Categorical(["F", "M"]),
        "o": Categorical(["low", "mid", "high"], ordered=True, nullable=True),
    }
)


CELLS = np.indices(DOMAIN.shape).reshape(4, -1).T
COUNTS = np.random.default_rng(0).integers(0, 9, len(CELLS))
RELEASE = one_box_each(DOMAIN, COUNTS, Intervals(1.0))
ROWS = pd.DataFrame(
    {
        "n": np.where(CELLS[:, 0] < 5, CELLS[:, 0], np.nan),
        "m": CELLS[:, 1] + 10,
        "s": np.array(["F", "M"])[CELLS[:, 2]],
        "o": np.array(["low", "mid", "high", None], dtype=object)[CELLS[:, 3]],
    }
)
VALUES = {"n": range(5), "m": range(10, 14), "s": ["F", "M"]}


@st.composite
def comparison(draw):
    """A condition that pandas reads too."""
    name = draw(st.sampled_from([*VALUES]))
    one = st.sampled_from(list(VALUES[name]))
    operators = ["==", "!=", "in", "not in"]
    operator = draw(st.sampled_from(operators + ["<", "<=", ">", ">="] * (name != "s")))
    value = draw(st.lists(one, min_size=1, max_size=3) if "in" in operator else one)
    return f"{name} {operator} {value!r}"


expressions = st.recursive(
    comparison(),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({' '.join(t)})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join),
        inner.map(lambda text: f"not ({text})"),
    ),
    max_leaves=8,
)


@settings(max_examples=200)
@given(expressions)
def test_any_expression_counts_the_rows_that_pandas_finds(text):
    found = ROWS.query(text, engine="python").index
    assert RELEASE.count(text) == pytest.approx(COUNTS[found].sum())
    # The conjunctions are disjoint.
    covered = np.zeros(DOMAIN.shape)
    for weights in parse(text, DOMAIN).products:
        part = np.ones(DOMAIN.shape)
        for axis, vector in weights.items():
            part *= vector.reshape([-1 if a == axis else 1 for a in range(4)])
        covered += part
    expected = np.zeros(len(ROWS))
    expected[found] = 1
    np.testing.assert_array_equal(covered.ravel(), expected)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=4))
def test_ranges_that_share_a_bin_count_it_once(ranges):
    domain = Domain({"x": Numeric(0, 10, bins=4), "y": Categorical(["a", "b"])})
    text = " or ".join(f"{min(r) / 4} <= x <= {max(r) / 4}" for r in ranges)
    fine = (np.arange(4000) + 0.5) / 400
    inside = np.any([(min(r) / 4 <= fine) & (fine <= max(r) / 4) for r in ranges], axis=0)
    weights = one(text, "x", domain)
    np.testing.assert_allclose(weights, inside.reshape(4, -1).mean(axis=1), atol=2e-3)


def test_too_many_conjunctions_are_refused():
    many = Domain({f"c{i}": Categorical([0, 1]) for i in range(900)})
    for text in (
        " and ".join(f"(c{i} == 1 or c{i + 1} == 0)" for i in range(0, 30, 2)),
        " or ".join(f"c{i} == 1" for i in range(900)),
    ):
        with pytest.raises(ValueError, match="too complicated: .* more than 5,000 conditions"):
            parts_of(text, many)
    assert len(parts_of(" and ".join(f"c{i} == 1" for i in range(900)), many)) == 1


# --- bands


@over("right", [True, False])
def test_bands_are_those_of_pandas(right):
    text = "n <= 1 and s == 'F' or n >= 3 and m == 12 or o in ['low', 'mid']"
    held = ROWS.loc[ROWS.index.repeat(COUNTS)].query(text)
    how = {"bands": {"n": [-1, 1, 3, 5]}, "right": right}
    cut = pd.cut(held["n"], how["bands"]["n"], right=right)
    expected = held.groupby(cut, observed=False)["m"].agg(["count", "sum", "mean"])
    found = RELEASE.aggregate("n", "m", text, **how).set_index("n")
    assert found.index.tolist() == expected.index.tolist()
    np.testing.assert_allclose(found.to_numpy(), expected.to_numpy())
    two = pd.crosstab(held["s"], cut, dropna=False)
    table = RELEASE.crosstab("s", "n", text, **how)
    np.testing.assert_allclose(table.to_numpy(), two.to_numpy()[:, :3])
    assert table.columns.name == "n"


# --- one condition

WIDE = Domain(
    {
        "age": Numeric(17, 90, integer=True),
        "pay": Numeric(0, 200, bins=10),
        "sex": Categorical(["Female", "Male"]),
        "año": Categorical(["low", "mid", "high"], ordered=True),
        "odd name!": Categorical(["it's", 'say "x"', "a\\b", "tab\t"]),
        "wage": Numeric(-1.0, 1.0, bins=4, nullable=True),
        "kids": Numeric(0, 5, integer=True, nullable=True),
        "flag": Categorical([False, True], nullable=True),
    }
)


def one(query, name, domain=WIDE):
    [weights] = parse(query, domain).products
    assert list(weights) == [domain.index(name)]
    vector = weights[domain.index(name)]
    assert vector.dtype == np.float64
    assert vector.shape == (domain[name].size,)
    return vector


def test_a_single_number_of_a_continuous_column_has_next_to_no_share_of_its_bin():
    same = [{"pay": (50, 50)}, "pay >= 50 and pay <= 50", "50 <= pay <= 50", {"pay": 50}]
    for query in (*same, "pay == 50", {"pay": [50]}):
        assert one(query, "pay").tolist() == [0, 0, POINT, *[0] * 7]
        assert parse(query, WIDE).at_points and not parse("pay < 50", WIDE).at_points
    assert one("pay != 50", "pay").all() and one("not pay == 50", "pay").all()
    # Also where a bin is not many floats wide.
    narrow = Domain({"x": Numeric(1e9, 1e9 + 1, bins=1000)})
    assert one("x == 1000000000.5004", "x", narrow).sum() == POINT
    # The only number of its bin with so few digits may have all of it; 0 is rounder than any.
    near = Domain({"x": Numeric(edges=[-0.25, 0.15, 0.25, 1, 1.5, 2])})
    for at, share in {"0": 2, "0.1": 1, "0.2": 2, "0.21": 1, "0.9": 1, "1": 2, "2": 2}.items():
        assert one(f"x == {at}", "x", near).sum() == share * POINT
    for query in ("x != 1000000000.5004", "x < 1000000000.5 or x > 1000000000.5"):
        assert set(one(query, "x", narrow)) <= {1.0, 1 - POINT, 1 - 2 * POINT}
    # Cuts at the end of a bin, beside a number that is there or not.
    for query, last in {"< 1": 0, "<= 1": 2, "> 1": -2, ">= 1": 1, "<= 2": 1, "< 2": 1}.items():
        share = one(f"x {query}", "x", near)[3]
        assert share == (last * POINT if last > 1 else 1 - 2 * POINT if last < 0 else last)


@over(
    "query, name, expected",
    [
        ("`odd name!` == 'it\\'s'", "odd name!", [1, 0, 0, 0]),
        (r"`odd name!` in ['a\\b', 'tab\t', ]", "odd name!", [0, 0, 1, 1]),
        (" año=='mid' ", "año", [0, 1, 0]),
        ("wage >= -5e-1 & wage<+.5", "wage", [0, 1, 1, 0, 0]),
        ("`a``b` == 'x'", "a`b", [1, 0]),
        ("`and` == 2 AND NOT ~ `and` == 2", "and", [0, 1]),
    ],
)
def test_strings_with_odd_names_and_literals(query, name, expected):
    backtick = Domain({"a`b": Categorical(["x", "y"]), "and": Categorical([1, 2])})
    assert one(query, name, backtick if name in backtick else WIDE).tolist() == expected


def test_a_group_of_the_taxonomy_stands_for_its_categories():
    tree = Taxonomy.from_tree({"Any": {"EU": ["FR", "DE"], "Asia": ["JP"], "UK": ["UK"]}})
    domain = Domain(
        {"country": Categorical(["UK", "JP", "DE", "FR"], taxonomy=tree), "x": Numeric(0, 1)}
    )
    assert one({"country": "EU"}, "country", domain).tolist() == [0, 0, 1, 1]
    assert one("country in ['Asia', 'FR']", "country", domain).tolist() == [0, 1, 0, 1]
    assert one("country != 'Any'", "country", domain).tolist() == [0, 0, 0, 0]


SNIPPETS = st.sampled_from(
    "age sex año == < <= >= != in not and or & ( ) [ ] , 30 -5 2.5e3 'Male' \"mid\" None "
    "True ` ' @ \\ = ! ~ \x00".split(" ")
)


@settings(max_examples=300)
@given(st.one_of(st.text(max_size=40), st.lists(SNIPPETS, max_size=12).map(" ".join)))
@example("age > 3 and " * 2000 + "age > 3")
def test_any_text_parses_or_raises_value_error(text):
    try:
        query = parse(text, WIDE)
    except ValueError as error:
        assert str(error)
    else:
        for axis, vector in (item for part in query.products for item in part.items()):
            assert vector.shape == (WIDE.shape[axis],)
            assert ((vector >= 0) & (vector <= 1)).all()


def test_kinds_of_conditions():
    for query, name, expected in (
        ({"pay": (30, 70)}, "pay", [0, 0.5, 1, 0.5, *[0] * 6]),
        ({"kids": [1, None]}, "kids", [0, 1, 0, 0, 0, 0, 1]),
        ("kids is not null", "kids", [1, 1, 1, 1, 1, 1, 0]),
        ("flag in [False, None]", "flag", [1, 0, 1]),
    ):
        assert one(query, name).tolist() == expected, query
    for query, number in (
        ({"age": (-5, 3)}, 0),
        ({"age": {30, 31}}, 2), ({"age": np.array([31, 30])}, 2), ("age > 1e300", 0),
    ):  # fmt: skip
        assert one(query, "age").sum() == number, query
    special = Domain({"pay": Numeric(0, 100, bins=10, special=[-1, 999], nullable=True)})
    assert one("pay < 20 or pay >= 95", "pay", special).tolist() == [1, 1, *[0] * 7, 0.5, 1, 1, 0]
