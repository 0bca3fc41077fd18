"""Samples under conditions, samples that complete given columns, and filled gaps."""

import itertools
import operator
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from boxed import expanded, weighted
from densities import by_tree, dense, random_forest
from exact_laws import fit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loops import over
from ruled import RULED, lawful_rows, violations
from scipy.stats import chisquare, kstest

from skdp import (
    Categorical,
    Date,
    Datetime,
    Domain,
    HDPViewSynthesizer,
    MarginalSynthesizer,
    Numeric,
    PrivBayesSynthesizer,
    PrivTreeSynthesizer,
    Synopsis,
    at_most,
)
from skdp.release import Boxes, BoxModel, PairTable, TreeDensity, TreeModel

DOMAIN = Domain(
    {
        "age": Numeric(17, 90, bins=10, integer=True),
        "pay": Numeric(0, 1000, bins=20, nullable=True),
        "kids": Numeric(0, 9, integer=True, nullable=True),
        "sex": Categorical(["F", "M"]),
        "job": Categorical(["a", "b", "c"], nullable=True),
        "size": Categorical(["S", "M", "L"], ordered=True),
        "money": Numeric(0, 5000, bins=12, scale="log", special=[0, -1], decimals=2),
        "day": Date("2020-01-01", "2020-12-31", bins=10, nullable=True),
        "time": Datetime("2020-01-01", "2020-01-31", unit="minute", bins=30),
    }
)


def people(n=3000, seed=0):
    return lawful_rows(n, DOMAIN, seed)


ESTIMATORS = {
    "pairs": MarginalSynthesizer(epsilon=3, domain=DOMAIN),
    "pairs by class": MarginalSynthesizer(epsilon=3, domain=DOMAIN, target="sex"),
    "network": PrivBayesSynthesizer(epsilon=3, domain=DOMAIN, theta=1),
    "boxes": PrivTreeSynthesizer(epsilon=3, domain=DOMAIN),
    "boxes without gaps": HDPViewSynthesizer(epsilon=3, domain=DOMAIN),
}


@pytest.fixture(scope="module", params=ESTIMATORS)
def release(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ESTIMATORS[request.param].set_params(random_state=0).fit(people())


COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
# Values that rows have, and some at and beyond the ends of columns.
VALUES = {name: people(12, seed=9)[name].dropna().tolist() for name in DOMAIN.names}
VALUES["age"] += [15, 17, 90, 92, 33.3]
VALUES["pay"] += [-1, 0, 50, 1000, 1001]
VALUES["kids"] += [-1, 0, 9, 10]
VALUES["money"] += [0, -1, 0.01, 5000]
VALUES |= {name: [*map(str, VALUES[name])] for name in ("day", "time")}
VALUES["day"] += ["2019-12-25", "2021-01-05"]


@st.composite
def comparisons(draw):
    """A comparison as text, and the function that tells which rows of a frame satisfy it."""
    column = draw(st.sampled_from(DOMAIN.names))
    signs, values = ["==", "!=", "in", "not in"], VALUES[column]
    if column not in ("sex", "job"):
        signs += ["<", ">="] if column == "size" else ["<", "<=", ">", ">="]
    # No row has a given number of a continuous column.
    sign = draw(st.sampled_from(signs[4:] if column == "pay" else signs))
    if column == "age" and sign not in ("<", "<=", ">", ">="):
        values = [value for value in values if value == int(value)]
    read = pd.Timestamp if column in ("day", "time") else lambda value: value
    if sign in ("in", "not in"):
        listed = draw(st.lists(st.sampled_from(values), min_size=1, max_size=4))
        known = [read(value) for value in listed]
        return f"{column} {sign} {listed!r}", lambda f: f[column].isin(known) == (sign == "in")
    value = draw(st.sampled_from(values))

    def holds(frame):
        series = frame[column]
        order = {"S": 0, "M": 1, "L": 2}
        if column == "size" and sign in ("<", ">="):
            return COMPARISONS[sign](series.map(order), order[value])
        found = COMPARISONS[sign](series.astype(object), read(value))
        # Missing values differ from every value, and are in no order.
        return found.where(series.notna(), sign == "!=").astype(bool)

    return f"{column} {sign} {value!r}", holds


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(parts=st.lists(comparisons(), min_size=1, max_size=4), seed=st.integers(0, 100))
def test_every_row_satisfies_the_condition(release, parts, seed):
    query = " and ".join(text for text, _ in parts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            rows = release.sample(80, seed, where=query)
        except ValueError as error:
            # Nothing satisfies it: then the query covers no records either.
            assert "No row can satisfy" in str(error)
            assert release.count(query) == 0
            return
    assert len(rows) == 80 and list(rows.columns) == list(DOMAIN.names)
    assert rows.dtypes.equals(release.sample(1).dtypes)
    for text, holds in parts:
        assert holds(rows).all(), text
    # What the domain makes of the rows is what was drawn: values lie in their bins.
    assert (DOMAIN.encode(rows) >= 0).all()


def test_rows_are_as_many_as_the_release_estimates_and_repeat(release):
    query = "age >= 65 and sex == 'F'"
    rows = release.sample(where=query, random_state=4)
    assert len(rows) == round(release.count(query)) > 0
    pd.testing.assert_frame_equal(rows, release.sample(where=query, random_state=4))
    assert not rows.equals(release.sample(where=query, random_state=5))
    assert len(release.sample(0, where=query)) == 0
    codes = release.synopsis_.sample_codes(200, 1, where=query)
    assert (codes[:, 3] == 0).all() and len(codes) == 200
    # An empty condition is none, bit for bit.
    pd.testing.assert_frame_equal(release.sample(50, 1, where={}), release.sample(50, 1))


def test_numbers_in_a_cut_bin_follow_their_law():
    # False alarm 1e-6 each; one column with one box, so that laws are known.
    domain = Domain({"x": Numeric(0, 10, bins=2), "k": Numeric(0, 99, bins=2, integer=True)})
    release = Synopsis(domain, BoxModel(Boxes([[0, 0]], [[2, 2]]), [100], domain.shape))
    rows = release.sample(20_000, 0, where="1 <= x < 9 and k in [3, 7, 40, 60]")
    assert kstest(rows["x"], "uniform", args=(1, 8)).pvalue > 1e-6
    assert chisquare(rows["k"].value_counts().sort_index()).pvalue > 1e-6
    rows = release.sample(20_000, 0, where="k != 4 and k not in [0, 49, 50] and k < 60")
    assert sorted(rows["k"].unique()) == [k for k in range(60) if k not in (0, 4, 49, 50)]
    assert chisquare(rows["k"].value_counts()).pvalue > 1e-6
    rows = release.sample(20_000, 0, where="k < 60")
    assert chisquare(rows["k"].value_counts()).pvalue > 1e-6


def test_conditions_that_are_refused(release):
    known = people(3)[["age"]]
    durations = pd.DataFrame({"age": pd.Series([1], dtype="m8[s]")})
    for call, message in (
        (lambda: release.sample(5, where="age > 80 and age < 20"), "No row can satisfy.*'age'"),
        (lambda: release.sample(5, where={"pay": (2000, 3000)}), "No row can satisfy.*'pay'"),
        (lambda: release.sample(5, where="agee > 3"), "no column 'agee'.*'age'"),
        (lambda: release.sample(where="age > 3", given=known), "on 'age', which given holds"),
        (lambda: release.sample(10, given=known), "given has 3 rows"),
        (lambda: release.sample(given=known.assign(colour=1)), "does not declare: 'colour'"),
        (lambda: release.sample(given=np.zeros((3, 2))), "columns without names"),
        (lambda: release.sample(given=durations), "'age' .* holds durations"),
        (lambda: release.impute(known, columns=["size"]), "names 'size', but frame has 'age'"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_given_columns_come_back_as_they_were(release):
    known = people(40, seed=3)[["size", "pay", "kids"]]
    known.index = [f"r{i}" for i in range(40)]
    known.loc["r0", "pay"], known.loc["r1", "size"] = 5000.0, "XXL"
    rows = release.sample(given=known, where="sex == 'F' and age < 40", random_state=0)
    assert list(rows.columns) == list(DOMAIN.names)
    pd.testing.assert_frame_equal(rows[known.columns], known)
    assert (rows["sex"] == "F").all() and (rows["age"] < 40).all()
    again = release.sample(given=known, where="sex == 'F' and age < 40", random_state=0)
    pd.testing.assert_frame_equal(rows, again)
    assert len(release.sample(given=known[:0])) == 0


@over("make", [pl.from_pandas, pa.Table.from_pandas])
def test_other_libraries_keep_their_types(make):
    view = ESTIMATORS["pairs"].set_params(random_state=0).fit(people())
    known = people(30, seed=3)[["sex", "pay", "job"]]
    table = make(known)
    rows = view.sample(given=table, random_state=0)
    assert type(rows) is type(table) and rows.select(["sex", "pay", "job"]).equals(table)
    np.testing.assert_array_equal(rows["age"], view.sample(given=known, random_state=0)["age"])
    filled = view.impute(table, random_state=0)
    assert type(filled) is type(table) and filled.schema == table.schema
    assert pl.DataFrame(filled).null_count().sum_horizontal()[0] == 0


def test_gaps_are_filled_and_nothing_else(release):
    frame = people(200, seed=5)
    frame.loc[::7, "sex"] = None
    filled = release.impute(frame, random_state=0)
    assert not filled.isna().any().any() and list(filled.columns) == list(frame.columns)
    assert filled.dtypes.equals(frame.dtypes)
    there = frame.notna()
    pd.testing.assert_frame_equal(filled.where(there), frame.where(there))
    some = release.impute(frame, columns="sex", random_state=0)
    pd.testing.assert_frame_equal(some.drop(columns="sex"), frame.drop(columns="sex"))
    assert some["sex"].notna().all()
    pd.testing.assert_frame_equal(release.impute(filled), filled)
    pd.testing.assert_frame_equal(release.synopsis_.impute(frame, random_state=0), filled)


@pytest.fixture(scope="module", params=[None, "type"])
def ruled(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        synthesizer = MarginalSynthesizer(
            epsilon=3, domain=RULED, target=request.param, random_state=0
        )
        return synthesizer.fit(lawful_rows(2000))


@over(
    "query",
    [
        "balance >= 900 and amount <= 950",
        "balance == 0 and amount > 0.5",
        "balance in [900.01, 900.02] and amount in [900.01, 900.03, 4000]",
        "state == 'A' and age < 12",
        "old == 'old' and city in ['b1', 'b2'] and married == 'y' and age != 70",
        "type == 'joint' and joint == None and amount < 20",
    ],
)
def test_conditions_and_rules_hold_together(ruled, query):
    rows = ruled.sample(300, 0, where=query)
    assert violations(rows) == 0
    for part in query.split(" and "):
        if "None" not in part:
            assert len(rows.query(part)) == 300, part
    assert rows["joint"].isna().all() or "None" not in query


def test_conditions_against_the_rules_are_refused(ruled):
    for query in (
        "balance >= 901 and amount <= 900",
        "joint > 10 and type == 'single'",
        "old == 'old' and age < 60",
        "state == 'A' and city == 'b1'",
    ):
        with pytest.raises(ValueError, match="No row"):
            ruled.sample(30, 0, where=query)
    known = lawful_rows(200)[["old", "amount", "id"]]
    known.loc[0, "amount"] = 1e9
    rows = ruled.sample(given=known, where="state == 'B'", random_state=0)
    pd.testing.assert_frame_equal(rows[known.columns], known)
    assert violations(rows) == 0 and (rows["state"] == "B").all()
    with pytest.raises(ValueError, match="where has a condition on 'age', which given holds"):
        ruled.sample(given=known, where="age > 60")


def test_filled_rows_keep_the_rules(ruled):
    frame = lawful_rows(400)
    rng = np.random.default_rng(3)
    for name in ("balance", "city", "state", "age", "old", "married"):
        frame.loc[rng.random(400) < 0.15, name] = None
    filled = ruled.impute(frame, random_state=0)
    assert filled.drop(columns="joint").notna().all().all()
    # A single applicant has no joint income; every other gap is filled.
    assert (filled["joint"].isna() == (filled["type"] == "single")).all()
    assert violations(filled) == 0
    there = frame.notna()
    pd.testing.assert_frame_equal(
        filled.where(there).astype(object), frame.where(there).astype(object)
    )


def test_numbers_beside_given_ones_keep_rules_over_uneven_bins():
    """A cell may begin above the known value of the other column."""
    first = "2022-01-01"
    domain = Domain(
        {"start": Date(first, "2023-12-31", bins=20), "end": Date(first, "2024-12-31", bins=16)},
        structure=[at_most("start", "end")],
    )
    rows = lawful_rows(500, domain)
    view = MarginalSynthesizer(epsilon=5, domain=domain, random_state=0).fit(rows)
    for name in ("start", "end"):
        drawn = view.sample(given=rows[[name]], random_state=0)
        pd.testing.assert_frame_equal(drawn[[name]], rows[[name]])
        assert (drawn["start"] <= drawn["end"]).all()


def test_fractions_given_in_a_column_of_integers_count_as_the_nearest():
    whole = Numeric(0, 100_000, "auto", integer=True)
    domain = Domain({"low": whole, "high": whole}, structure=[at_most("low", "high")])
    view = MarginalSynthesizer(epsilon=5, domain=domain, random_state=0)
    release = view.fit(pd.DataFrame({"low": [50_100] * 200, "high": [50_150] * 200}))
    drawn = release.sample(given=pd.DataFrame({"low": [50_198.7] * 300}), random_state=0)
    assert drawn["high"].min() == 50_199


# --- models against the exact conditional law

SHAPE = (3, 4, 5, 2)
# Probability that a test of a law fails although the law is right.
FALSE_ALARM = 1e-6


def under(table, weights):
    """The law of records under weights, as a table that sums to 1."""
    table = weighted(table, weights)
    return table / table.sum()


def one_hot(size, code):
    return (np.arange(size) == code).astype(np.float64)


def fits(codes, table):
    """Whether codes follow a law."""
    seen = Counter(np.ravel_multi_index(codes.T, table.shape).tolist())
    law = dict(enumerate(table.ravel().tolist()))
    return all(law[cell] > 0 for cell in seen) and fit(seen, law) > FALSE_ALARM


WHERE = {1: np.array([1.0, 0.5, 0.0, 1.0]), 2: np.array([0.0, 1.0, 0.3, 1.0, 0.0])}


@over("grouped", [(), (1, 2)])
def test_draws_under_a_condition_follow_the_exact_law(grouped):
    tree = random_forest(np.random.default_rng(5), SHAPE, grouped=grouped)
    table = dense(tree)
    codes = by_tree(tree).sample_codes(60_000, np.random.default_rng(1), WHERE)
    assert codes.dtype == np.int32 and codes.shape == (60_000, 4)
    assert fits(codes, under(table, WHERE))
    # Wrong laws are rejected: no condition, weights taken as all or nothing, independent columns.
    assert not fits(codes, table)
    assert not fits(codes, under(table, {axis: np.ceil(w) for axis, w in WHERE.items()}))
    alone = np.ones(())
    for axis, mu in enumerate(tree.marginals):
        alone = np.multiply.outer(alone, mu * WHERE.get(axis, 1.0))
    assert not fits(codes, alone / alone.sum())


@over("grouped, told", itertools.product([(), (0, 2), (1, 2)], [(0,), (3, 0), (1, 2)]))
def test_draws_given_known_values_follow_the_exact_law(grouped, told):
    rng = np.random.default_rng(11)
    tree = random_forest(rng, SHAPE, grouped=grouped)
    table = dense(tree)
    weights = {axis: w for axis, w in WHERE.items() if axis not in told}
    known = np.full((40_000, 4), -1)
    # Rows of two kinds in turn: each must follow its own law.
    first = [int(rng.integers(SHAPE[axis])) for axis in told]
    second = [(code + 1) % SHAPE[axis] for axis, code in zip(told, first, strict=True)]
    known[::2, told], known[1::2, told] = first, second
    codes = by_tree(tree).sample_given(known, np.random.default_rng(2), weights)
    laws = [
        under(table, weights | {a: one_hot(SHAPE[a], c) for a, c in zip(told, kind, strict=True)})
        for kind in (first, second)
    ]
    assert fits(codes[::2], laws[0]) and fits(codes[1::2], laws[1])
    assert not fits(codes[::2], laws[1])


@settings(max_examples=60)
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    seed=st.integers(0, 10_000),
    zeros=st.booleans(),
)
def test_known_codes_stay_and_codes_of_weight_zero_are_never_drawn(shape, seed, zeros):
    rng = np.random.default_rng(seed)
    grouped = [axis for axis in range(len(shape)) if shape[axis] > 1 and rng.random() < 0.3]
    tree = random_forest(rng, shape, grouped=grouped, zeros=zeros)
    known = np.stack([rng.integers(-1, size, 15) for size in shape], axis=1)
    weights = {axis: rng.random(shape[axis]) for axis in range(len(shape)) if rng.random() < 0.5}
    for axis in weights:
        weights[axis][rng.random(shape[axis]) < 0.5] = 0.0
        weights[axis][rng.integers(shape[axis])] = 1.0
    model = by_tree(tree)
    codes = model.sample_given(known, rng, weights)
    assert (codes >= 0).all() and (codes < shape).all()
    assert (codes[known >= 0] == known[known >= 0]).all()
    for axis, vector in weights.items():
        assert (vector[codes[known[:, axis] < 0, axis]] > 0).all()


def test_a_condition_of_probability_zero_follows_what_is_nearest_and_warns():
    mu = np.array([0.5, 0.5])
    pair = np.array([[0.5, 0.0], [0.0, 0.5]])
    tree = TreeDensity([mu, mu, mu], [PairTable((0, 1), pair), PairTable((1, 2), pair)])
    model = by_tree(tree)
    never = {0: np.array([1.0, 0.0]), 1: np.array([0.0, 1.0])}
    with pytest.warns(UserWarning, match="probability zero"):
        codes = model.sample_codes(1000, np.random.default_rng(0), never)
    # The third column follows its neighbour, as the tree has it.
    assert (codes[:, 0] == 0).all() and (codes[:, 1] == 1).all()
    assert (codes[:, 2] == 1).mean() > 0.99
    with warnings.catch_warnings():
        # What given rows hold may be private: no warning depends on it.
        warnings.simplefilter("error")
        known = np.array([[0, -1, 1], [0, -1, 0]])
        codes = model.sample_given(known, np.random.default_rng(0))
    assert codes[1].tolist() == [0, 0, 0] and codes[0, [0, 2]].tolist() == [0, 1]


def test_weighted_records_serve_where_enough_of_them_agree():
    rng = np.random.default_rng(3)
    tree = random_forest(rng, SHAPE)
    rows = tree.sample(60_000, rng)
    weights = rng.gamma(2.0, size=len(rows)) * (1 + (rows[:, 0] == rows[:, 1]))
    model = TreeModel(tree, 1.0, rows=rows, row_weights=weights / weights.sum())
    table = np.zeros(model.shape)
    np.add.at(table, tuple(rows.T), model.row_weights)
    codes = model.sample_codes(60_000, np.random.default_rng(0), WHERE)
    assert fits(codes, under(table, WHERE)) and not fits(codes, under(dense(model.density), WHERE))
    known = np.full((40_000, 4), -1)
    known[:, 3], known[::2, 0] = 1, 2
    codes = model.sample_given(known, np.random.default_rng(0), WHERE)
    hot = {3: one_hot(2, 1)}
    assert fits(codes[1::2], under(table, WHERE | hot))
    assert fits(codes[::2], under(table, WHERE | hot | {0: one_hot(3, 2)}))


def boxes():
    lower = [[0, 0, 0], [2, 0, 0], [2, 1, 0], [2, 1, 2]]
    upper = [[2, 3, 4], [4, 1, 4], [4, 3, 2], [4, 3, 4]]
    return BoxModel(Boxes(lower, upper), [40, 100, -5, 20], (4, 3, 4))


def test_boxes_draw_in_their_covered_part():
    model = boxes()
    table = expanded(model.boxes, np.maximum(model.counts, 0), model.shape)
    where = {0: np.array([0.0, 1.0, 0.2, 1.0]), 1: np.array([1.0, 1.0, 0.0])}
    for asked_for in ({}, where):
        codes = model.sample_codes(40_000, np.random.default_rng(0), asked_for)
        assert codes.dtype == np.int32 and fits(codes, under(table, asked_for))
    assert not fits(codes, table / table.sum())
    known = np.full((60_000, 3), -1)
    known[::2, 2], known[1::3, 1] = 3, 1
    codes = model.sample_given(known, np.random.default_rng(0), {0: where[0]})
    hot = {2: one_hot(4, 3), 1: one_hot(3, 1)}
    for axes in itertools.product([0, 1], repeat=2):
        rows = ((known[:, 2] >= 0) == axes[0]) & ((known[:, 1] >= 0) == axes[1])
        told = {axis: hot[axis] for axis, flag in zip((2, 1), axes, strict=True) if flag}
        assert fits(codes[rows], under(table, {0: where[0]} | told))


@pytest.mark.parametrize("bins", [(9, 12), (32, 7)])
@pytest.mark.parametrize("options", [{}, {"decimals": 2}, {"scale": "log", "special": [0]}])
def test_conditions_within_the_bins_of_compared_columns_leave_rows(bins, options):
    # Most draws of codes were in vain, and rows that exist were called contradictory.
    columns = {
        name: Numeric(0, 50_000, n, **options)
        for name, n in zip(("balance", "amount"), bins, strict=True)
    }
    domain = Domain(columns, structure=[at_most("balance", "amount")])
    model = BoxModel(Boxes([[0, 0]], [domain.shape]), [1000], domain.shape)
    release = Synopsis(domain, model)
    for low in (10.66, 166.17, 24_512.74):
        for where in (
            f"balance > {low} and amount < {low + 0.5}",
            f"balance > {low} and amount < {low + 5} and amount != {low + 1}",
            f"(balance > {low} and amount < {low + 1}) or amount < {low / 2}",
        ):
            rows = release.sample(30, 0, where=where)
            assert len(rows.query(where)) == 30 and (rows["balance"] <= rows["amount"]).all()
    with pytest.raises(ValueError, match=r"No row can satisfy.*or a rule"):
        release.sample(3, where="balance > 1000 and amount < 900")
