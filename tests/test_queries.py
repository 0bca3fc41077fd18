import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skdp.domain import Categorical, Domain, Numeric, Taxonomy
from skdp.domain.query import parse, parse_all, parts_of
from skdp.domain.regions import POINT
from skdp.release.statistics import Selected

DOMAIN = Domain(
    {
        "age": Numeric(17, 90, integer=True),
        "hours": Numeric(-3, 20, bins=5, integer=True),
        "pay": Numeric(0, 200, bins=10),
        "sex": Categorical(["Female", "Male"]),
        "año": Categorical(["low", "mid", "high"], ordered=True),
        "odd name!": Categorical(["it's", 'say "x"', "a\\b", "tab\t"]),
        "wage": Numeric(-1.0, 1.0, bins=4, nullable=True),
        "kids": Numeric(0, 5, integer=True, nullable=True),
        "flag": Categorical([False, True], nullable=True),
    }
)
PARTS_PER_BIN = 20


def fine_values(name):
    """Values that stand for equal shares of their cells, and the code of each."""
    attribute = DOMAIN[name]
    if isinstance(attribute, Categorical):
        values = list(attribute.categories)
    elif attribute.integer:
        values = list(range(attribute.lower, attribute.upper + 1))
    else:
        parts = attribute.bins * PARTS_PER_BIN
        width = (attribute.upper - attribute.lower) / parts
        values = [attribute.lower + (i + 0.5) * width for i in range(parts)]
    missing = [None] if attribute.nullable else []
    codes = DOMAIN.select([name]).encode(pd.DataFrame({name: pd.Series(values + missing)}))
    assert (codes >= 0).all()
    return values + missing, codes[:, 0]


def brute_force(name, condition):
    """Share of the fine values of each code that meet a condition."""
    values, codes = fine_values(name)
    met = np.array([bool(condition(value)) for value in values])
    size = DOMAIN[name].size
    return np.bincount(codes, weights=met, minlength=size) / np.bincount(codes, minlength=size)


def weights_of(query, domain=DOMAIN):
    """Weights of a conjunction."""
    [weights] = parse(query, domain).products
    return weights


def first_moment(query, domain, column):
    """Weights of the records with a value, and for each code of it the mean of what is covered."""
    [part] = parts_of(query, domain)
    found = Selected.of(part, domain, [column])
    [numbers] = found.numbers
    return found.weights, found.weights[numbers.axis] * numbers.mean


def one(query, name, domain=DOMAIN):
    weights = weights_of(query, domain)
    assert list(weights) == [domain.index(name)]
    vector = weights[domain.index(name)]
    assert vector.dtype == np.float64
    assert vector.shape == (domain[name].size,)
    return vector


def literal(value):
    return repr(value)


def column(name):
    return f"`{name}`" if not name.isidentifier() else name


# Ends on the borders of the fine values, so that the brute force is exact
fine_ends = {
    "age": st.integers(10, 95),
    "hours": st.integers(-6, 25),
    "kids": st.integers(-2, 8),
    "pay": st.integers(-10, 210),
    "wage": st.integers(-50, 50).map(lambda i: i / 40),
}
categorical = ["sex", "año", "odd name!", "flag"]


@st.composite
def conditions(draw):
    """One condition as (column, dict value, string, predicate)."""
    name = draw(st.sampled_from(DOMAIN.names))
    attribute = DOMAIN[name]
    shown = column(name)
    if isinstance(attribute, Categorical):
        values = list(attribute.categories)
        if attribute.ordered and draw(st.booleans()):
            low, high = sorted(draw(st.tuples(*[st.integers(0, len(values) - 1)] * 2)))
            text = f"{values[low]!r} <= {shown} <= {values[high]!r}"
            return name, (values[low], values[high]), text, values[low : high + 1].__contains__
        chosen = draw(st.lists(st.sampled_from(values), unique=True))
        if draw(st.booleans()) and attribute.nullable:
            chosen.append(None)
        if len(chosen) == 1 and draw(st.booleans()):
            return name, chosen[0], f"{shown} == {chosen[0]!r}", lambda v: v == chosen[0]
        return name, chosen, f"{shown} in {chosen!r}", lambda v: v in chosen
    if attribute.integer and draw(st.booleans()):
        chosen = draw(st.lists(fine_ends[name], max_size=4))
        if draw(st.booleans()) and attribute.nullable:
            chosen.append(None)
        return name, chosen, f"{shown} in {chosen!r}", lambda v: v in chosen
    low, high = sorted(draw(st.tuples(fine_ends[name], fine_ends[name])))
    kind = draw(st.sampled_from(["closed", "low", "high", "two", "mirrored"]))
    if kind == "low":
        return name, (low, None), f"{shown} >= {low}", lambda v: v is not None and low <= v
    if kind == "high":
        return name, (-math.inf, high), f"{shown} <= {high}", lambda v: v is not None and v <= high
    text = {
        "closed": f"{low} <= {shown} <= {high}",
        "two": f"{shown} >= {low} and {shown} <= {high}",
        "mirrored": f"({high} >= {shown} >= {low})",
    }[kind]
    return name, (low, high), text, lambda v: v is not None and low <= v <= high


@settings(max_examples=150)
@given(st.lists(conditions(), min_size=1, max_size=4, unique_by=lambda c: c[0]))
def test_dict_and_string_agree_with_a_brute_force(parts):
    from_dict = weights_of({name: value for name, value, _, _ in parts}, DOMAIN)
    from_text = weights_of(" and ".join(text for _, _, text, _ in parts), DOMAIN)
    assert list(from_dict) == list(from_text) == sorted(DOMAIN.index(part[0]) for part in parts)
    for name, _, _, condition in parts:
        expected = brute_force(name, condition)
        np.testing.assert_allclose(from_dict[DOMAIN.index(name)], expected, atol=1e-9)
        np.testing.assert_array_equal(from_text[DOMAIN.index(name)], from_dict[DOMAIN.index(name)])


@st.composite
def comparisons(draw):
    """A comparison that pandas understands too."""
    name = draw(st.sampled_from(["age", "hours", "kids", "sex", "odd name!", "pay"]))
    attribute = DOMAIN[name]
    if isinstance(attribute, Categorical):
        values = st.sampled_from(attribute.categories)
        operators = ["==", "!=", "in", "not in"]
    else:
        values = fine_ends[name]
        operators = ["<", "<=", ">", ">="]
        operators += ["==", "!=", "in", "not in"] if attribute.integer else []
    operator = draw(st.sampled_from(operators))
    value = draw(st.lists(values, max_size=3) if "in" in operator else values)
    return name, f"{column(name)} {operator} {value!r}"


@settings(max_examples=150)
@given(comparisons(), comparisons())
def test_strings_mean_what_pandas_means(first, second):
    text = f"{first[1]} & {second[1]}" if first[0] != second[0] else first[1]
    if first[0] == second[0]:
        # Several conditions on one column intersect.
        text = f"({first[1]}) and {second[1]}"
    for name, weights in zip(DOMAIN.names, range(len(DOMAIN.names)), strict=True):
        conditions_here = [part[1] for part in (first, second) if part[0] == name]
        if not conditions_here:
            assert weights not in weights_of(text)
            continue
        values, codes = fine_values(name)
        frame = pd.DataFrame({name: pd.Series(values, dtype="float64" if None in values else None)})
        frame["row"] = range(len(values))
        met = np.ones(len(values), dtype=bool)
        for condition in conditions_here:
            selected = frame.query(condition, engine="python")["row"]
            met &= np.isin(frame["row"], selected)
        size = DOMAIN[name].size
        expected = np.bincount(codes, weights=met, minlength=size)
        expected /= np.bincount(codes, minlength=size)
        np.testing.assert_allclose(weights_of(text)[weights], expected, atol=1e-9)


def test_no_query_constrains_nothing():
    assert parse(None, DOMAIN).products == parse({}, DOMAIN).products == ({},)


def test_partly_covered_bins_count_in_proportion():
    np.testing.assert_allclose(one({"pay": (30, 70)}, "pay")[:5], [0, 0.5, 1, 0.5, 0])
    # hours has 24 integers in 5 bins: -3..1, 2..6, ...
    edges = DOMAIN["hours"].edges
    weights = one({"hours": (edges[0] + 1, edges[1] - 1)}, "hours")
    assert weights[0] == (edges[1] - edges[0] - 1) / (edges[1] - edges[0])
    assert weights[1:].tolist() == [0, 0, 0, 0]


def test_ends_on_a_bin_border_are_exact_in_decimals():
    domain = Domain({"x": Numeric(0, 1, bins=10), "y": Numeric(0, 1)})
    assert one({"x": (0.1, 0.3)}, "x", domain).tolist() == [0, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    assert one("x > 0.7", "x", domain).tolist() == [0] * 7 + [1] * 3


def test_a_single_number_of_a_continuous_column_has_next_to_no_share_of_its_bin():
    same = [{"pay": (50, 50)}, "pay >= 50 and pay <= 50", "50 <= pay <= 50", {"pay": 50}]
    for query in (*same, "pay == 50", {"pay": [50]}):
        assert one(query, "pay").tolist() == [0, 0, POINT, *[0] * 7]
        assert parse(query, DOMAIN).at_points and not parse("pay < 50", DOMAIN).at_points
        assert parse(query, DOMAIN).with_whole_bins.products[0][2].tolist() == [0, 0, 1, *[0] * 7]
    assert one("pay in [50, 199]", "pay").tolist() == [0, 0, POINT, *[0] * 6, POINT]
    assert one({"pay": 200}, "pay")[-1] == POINT and not one({"pay": 201}, "pay").any()
    assert one("pay != 50", "pay").all() and parse("not pay == 50", DOMAIN).products == ({},)
    assert one("wage not in [0.5]", "wage").tolist() == [1] * 5


def test_many_queries_are_read_as_each_by_itself():
    queries = [
        {"age": (20, 30), "sex": "Male"}, {"age": (20, 30)}, {"flag": True}, {"flag": 1.0},
        "age > 30", "age > 30", None, {"pay": [3, 4]}, "age > 30 or sex == 'Male'",
    ]  # fmt: skip
    for found, query in zip(parse_all(queries, DOMAIN), queries, strict=True):
        alone = parse(query, DOMAIN)
        assert len(found.products) == len(alone.products)
        for one_part, other in zip(found.products, alone.products, strict=True):
            assert list(one_part) == list(other)
            assert all(np.array_equal(one_part[axis], other[axis]) for axis in other)


def test_ranges_beyond_the_domain():
    assert one({"pay": (-1e9, math.inf)}, "pay").tolist() == [1] * 10
    assert one({"age": (None, None)}, "age").all()
    for query in ({"pay": (201, 300)}, {"age": (-5, 3)}, {"age": 200}, "age > 1e300", "age < -4"):
        (weights,) = weights_of(query).values()
        assert not weights.any(), query


def test_strict_ends():
    assert one("age > 30", "age").sum() == 60
    assert one("age >= 30", "age").sum() == 61
    assert one("age > 29.5", "age").sum() == 61
    assert one("30 < age < 31", "age").sum() == 0
    np.testing.assert_array_equal(one("pay < 30", "pay"), one("pay <= 30", "pay"))
    assert one("año > 'low'", "año").tolist() == [0, 1, 1]
    assert one("año > 'high'", "año").tolist() == [0, 0, 0]
    assert one("'low' < año < 'high'", "año").tolist() == [0, 1, 0]


def test_conditions_on_one_column_intersect():
    assert one("age >= 30 and age < 40 and age != 35", "age").sum() == 9
    assert one("age in [30, 31, 32] and age not in [31] and age > 30", "age").sum() == 1
    assert not one("age < 30 and age > 40", "age").any()
    assert not one("sex == 'Male' and sex == 'Female'", "sex").any()
    np.testing.assert_allclose(one("pay > 30 and pay < 70", "pay"), one("30 < pay < 70", "pay"))


def test_missing_cells():
    assert one({"kids": None}, "kids").tolist() == [0, 0, 0, 0, 0, 0, 1]
    assert one("kids == None", "kids").tolist() == [0, 0, 0, 0, 0, 0, 1]
    assert one("kids != None", "kids").tolist() == [1, 1, 1, 1, 1, 1, 0]
    assert one("kids != 2", "kids").tolist() == [1, 1, 0, 1, 1, 1, 1]
    assert one("kids != 2 and kids >= 0", "kids").tolist() == [1, 1, 0, 1, 1, 1, 0]
    assert one("kids >= 0", "kids")[-1] == 0
    assert one({"kids": [1, None]}, "kids").tolist() == [0, 1, 0, 0, 0, 0, 1]
    assert one({"wage": None}, "wage").tolist() == [0, 0, 0, 0, 1]
    assert one("wage != None", "wage").tolist() == [1, 1, 1, 1, 0]
    assert one({"wage": [None]}, "wage").tolist() == [0, 0, 0, 0, 1]
    assert one("flag == None", "flag").tolist() == [0, 0, 1]
    assert one({"flag": True}, "flag").tolist() == [0, 1, 0]
    assert one("flag in [False, None]", "flag").tolist() == [1, 0, 1]


def test_kinds_of_sets_and_numbers():
    expected = one({"age": [30, 31]}, "age")
    for values in (
        {30, 31},
        np.array([31, 30]),
        range(30, 32),
        [30.0, np.int64(31)],
        frozenset([30, 31]),
    ):
        np.testing.assert_array_equal(one({"age": values}, "age"), expected)
    np.testing.assert_array_equal(one({"age": (np.int16(30), np.float32(31))}, "age"), expected)
    assert not one({"age": []}, "age").any()
    assert one("age == [30, 31]", "age").sum() == 2


def test_strings_with_odd_names_and_literals():
    assert one("`odd name!` == 'it\\'s'", "odd name!").tolist() == [1, 0, 0, 0]
    assert one('`odd name!` = "it\'s"', "odd name!").tolist() == [1, 0, 0, 0]
    assert one("'say \"x\"' == `odd name!`", "odd name!").tolist() == [0, 1, 0, 0]
    assert one(r"`odd name!` in ['a\\b', 'tab\t', ]", "odd name!").tolist() == [0, 0, 1, 1]
    assert one("`odd name!` == 'tab\\x09'", "odd name!").tolist() == [0, 0, 0, 1]
    assert one("`odd name!` == 'tab\\u0009'", "odd name!").tolist() == [0, 0, 0, 1]
    assert one(" año=='mid' ", "año").tolist() == [0, 1, 0]
    assert one("wage > -5e-1 & wage<+.5", "wage").tolist() == [0, 1, 1, 0, 0]
    assert one("((age >= 1_7) and (age<=2e1))", "age").sum() == 4
    backtick = Domain({"a`b": Categorical(["x", "y"]), "and": Categorical([1, 2])})
    assert one("`a``b` == 'x'", "a`b", backtick).tolist() == [1, 0]
    assert one("`and` == 2", "and", backtick).tolist() == [0, 1]


def test_a_group_of_the_taxonomy_stands_for_its_categories():
    tree = Taxonomy.from_tree({"Any": {"EU": ["FR", "DE"], "Asia": ["JP"], "UK": ["UK"]}})
    domain = Domain(
        {"country": Categorical(["UK", "JP", "DE", "FR"], taxonomy=tree), "x": Numeric(0, 1)}
    )
    assert one({"country": "EU"}, "country", domain).tolist() == [0, 0, 1, 1]
    assert one("country in ['Asia', 'FR']", "country", domain).tolist() == [0, 1, 0, 1]
    assert one({"country": "UK"}, "country", domain).tolist() == [1, 0, 0, 0]
    assert one("country != 'Any'", "country", domain).tolist() == [0, 0, 0, 0]


BAD = [
    ({"agee": 3}, "no column 'agee'.*Did you mean 'age'.*'hours'"),
    ({3: 3}, "no column 3"),
    ({"age": (40, 30)}, "'age' is reversed: it goes from 40 to 30"),
    ({"pay": (1.5, 1)}, "reversed"),
    ({"año": ("high", "low")}, "reversed"),
    ({"age": (30, 35, 40)}, "tuple .low, high.*list"),
    ({"age": "30"}, "numeric and cannot be compared with '30' of type str"),
    ({"age": True}, "numeric and cannot be compared with True"),
    ({"age": (float("nan"), 3)}, "nan.*None"),
    ({"age": float("inf")}, "holds integers"),
    ({"age": 30.5}, "holds integers.*integer or a range"),
    ({"age": None}, "no missing cell.*nullable=True"),
    ({"pay": {"from": 3}}, "cannot be a dict"),
    ({"sex": "female"}, "no category 'female'. Did you mean 'Female'"),
    ({"sex": ["Male", 3]}, "no category 3"),
    ({"sex": ("Female", "Male")}, "unordered Categorical.*list.*ordered=True"),
    ({"sex": [["Male"]]}, "no category"),
    ("40 <= age <= 30", "reversed"),
    ("30 >= age >= 40", "reversed"),
    ("", "empty"),
    ("   ", "empty"),
    ("age >", "position 5: it ends too early"),
    ("age > 30 and", "position 12: it ends too early"),
    ("age > 30 or", "position 11: it ends too early"),
    ("not", "position 3: it ends too early"),
    ("~ age > 30", "position 2: after '~' come parentheses; or write 'not'"),
    ("age between 30", "position 14: 'between' needs two ends"),
    ("age between 40 and 30", "position 12: .*reversed"),
    ("age between 30 and [40]", "position 19: the end of a range is a value"),
    ("age between None and 40", "position 12: the end of a range is a value"),
    ("kids is 3", "position 8: after 'is' comes 'null' or 'not null'"),
    ("age is null", "position 0: .*no missing cell"),
    ("kids.isna()", "position 4: methods of columns.*is null"),
    ("sex == 'female'", "position 7: .*no category 'female'. Did you mean 'Female'"),
    ("(" * 51 + "age > 3" + ")" * 51, "position 50: more than 50 parentheses"),
    ("not " * 51 + "age > 3", "position 200: more than 50 parentheses or negations"),
    (" and ".join(["age > 3"] * 1001), "position 12006: .*at most 1,000 conditions"),
    ("age > 3" + " " * 1_000_000, "at most 1,000,000 characters"),
    ("age > 30 sex == 'Male'", "position 9: unexpected 'sex'"),
    ("age > 30)", r"position 8: unexpected '\)'"),
    ("(age > 30", "position 9: it ends too early"),
    ("agee > 30", "position 0: .*'agee'. Did you mean 'age'"),
    ("sex == Female", "position 7.*'Female'.*Text goes between quotation marks"),
    ("odd name! == 'x'", "position 0.*'odd'.*column name between backticks: `odd name!`"),
    ("sex == 'Male", "position 7: a quotation mark is never closed"),
    ("`age > 3", "quotation mark is never closed"),
    ("age > @limit", "position 6: nothing is given for @limit; pass it as names="),
    ("age > @", "position 6: '@' stands before the name"),
    ("age - 3 > 4", "position 4: arithmetic"),
    ("age > 3 + 4", "position 8: arithmetic"),
    ("age > -'a'", "position 7: a sign must stand before a number"),
    ("age", "column 'age' is not compared with anything"),
    ("3", "ends too early"),
    ("age > pay", "column on one side and a value on the other"),
    ("3 < 4", "column on one side"),
    ("age > [30]", "cannot be compared by '>' with a list"),
    ("30 in age", "'in' needs the column on its left"),
    ("age in 30", r"needs a list, as in age in \[30\]"),
    ("age in [30, ", "ends too early"),
    ("age in [30 31]", "position 11: unexpected 31"),
    ("age in [30, pay]", "position 12: unexpected 'pay'"),
    ("age not 30", "position 4: unexpected 'not'"),
    ("age > None", "no order"),
    ("age > 1.2.3", "not a number"),
    ("age > 1__0", "not a number"),
    ("2cool > 3", "backticks"),
    ("age > 3; import os", "position 7: unexpected ';'"),
    ("__import__('os')", "no column '__import__'"),
    ("age.real > 3", "position 3"),
    ("sex == '\\UFFFFFFFF'", "not a character"),
    ("age > " + "9" * 5000, "is not a number"),
]


@pytest.mark.parametrize(("query", "message"), BAD, ids=[str(query)[:40] for query, _ in BAD])
def test_errors_say_what_and_where(query, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        parse(query, DOMAIN)


@pytest.mark.parametrize("query", [3, [("age", 3)], b"age > 3", ("age", 3)])
def test_other_types_are_refused(query):
    with pytest.raises(TypeError, match="a dict or a string"):
        parse(query, DOMAIN)


SNIPPETS = st.sampled_from(
    "age sex año == < <= >= != in not and or & ( ) [ ] , 30 -5 2.5e3 'Male' \"mid\" None "
    "True ` ' @ \\ = ! ~ \x00".split(" ")
)


@settings(max_examples=300)
@given(st.one_of(st.text(max_size=40), st.lists(SNIPPETS, max_size=12).map(" ".join)))
@example("age > 3 and " * 2000 + "age > 3")
def test_any_text_parses_or_raises_value_error(text):
    try:
        query = parse(text, DOMAIN)
    except ValueError as error:
        assert str(error)
    else:
        for axis, vector in (item for part in query.products for item in part.items()):
            assert vector.shape == (DOMAIN.shape[axis],)
            assert ((vector >= 0) & (vector <= 1)).all()


# --- moments


@settings(max_examples=100)
@given(st.sampled_from(["age", "hours", "kids", "pay", "wage"]), st.data())
def test_moments_match_a_brute_force(name, data):
    low, high = sorted(data.draw(st.tuples(fine_ends[name], fine_ends[name])))
    weights, moment = first_moment({name: (low, high), "sex": "Male"}, DOMAIN, name)
    assert set(weights) == {DOMAIN.index(name), DOMAIN.index("sex")}
    values, codes = fine_values(name)
    met = [value if value is not None and low <= value <= high else 0.0 for value in values]
    size = DOMAIN[name].size
    expected = np.bincount(codes, weights=met, minlength=size) / np.bincount(codes, minlength=size)
    np.testing.assert_allclose(moment, expected, atol=1e-9)


def test_moments_without_a_condition_leave_out_missing_values():
    weights, moment = first_moment(None, DOMAIN, "kids")
    assert weights[DOMAIN.index("kids")].tolist() == [1, 1, 1, 1, 1, 1, 0]
    assert moment.tolist() == [0, 1, 2, 3, 4, 5, 0]
    weights, moment = first_moment("kids != 3", DOMAIN, "kids")
    assert moment.tolist() == [0, 1, 2, 0, 4, 5, 0]
    _, moment = first_moment(None, DOMAIN, "flag")
    assert moment.tolist() == [0, 1, 0]
    _, moment = first_moment(None, DOMAIN, "wage")
    np.testing.assert_allclose(moment, [-0.75, -0.25, 0.25, 0.75, 0])


def test_moments_need_numbers():
    with pytest.raises(ValueError, match="'sex' has categories that are not numbers"):
        first_moment(None, DOMAIN, "sex")
    with pytest.raises(ValueError, match="no column 'aged'"):
        first_moment(None, DOMAIN, "aged")
