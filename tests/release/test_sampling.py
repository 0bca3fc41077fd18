"""Samples under conditions."""

import itertools
import warnings
from collections import Counter
from functools import partial

import numpy as np
import pandas as pd
import pytest
from boxed import expanded, weighted
from exact_laws import fit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loops import over
from ruled import RULED, lawful_rows, violations
from scipy.stats import chisquare, ks_2samp, kstest

import skdp
from skdp import Categorical, Date, Datetime, Domain, Numeric, Synopsis
from skdp.release import Boxes, BoxModel
from skdp.release.marginals import WeightedRows

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
    "pairs": skdp.MarginalSynthesizer(epsilon=3, domain=DOMAIN),
    "pairs by class": skdp.MarginalSynthesizer(epsilon=3, domain=DOMAIN, target="sex"),
    "network": skdp.PrivBayesSynthesizer(epsilon=3, domain=DOMAIN, theta=1),
    "boxes": skdp.PrivTreeSynthesizer(epsilon=3, domain=DOMAIN),
    "boxes without gaps": skdp.HDPViewSynthesizer(epsilon=3, domain=DOMAIN),
}


@pytest.fixture(scope="module", params=ESTIMATORS)
def release(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ESTIMATORS[request.param].set_params(random_state=0).fit(people())


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
    """A condition that pandas reads too."""
    column = draw(st.sampled_from(DOMAIN.names))
    orders, values = ["<", "<=", ">", ">="], VALUES[column]
    equals = ["==", "!=", "in", "not in"] + orders * (column not in ("sex", "job"))
    # No row has a given number of a continuous column, and pandas finds no moment by its text.
    sign = draw(st.sampled_from(orders if column in ("pay", "day", "time") else equals))
    if column == "age" and sign not in orders:
        values = [value for value in values if value == int(value)]
    one = st.sampled_from(values)
    value = draw(st.lists(one, min_size=1, max_size=4) if "in" in sign else one)
    return f"{column} {sign} {value!r}"


def satisfying(rows, text):
    """What pandas finds: a missing value differs from every value, and is in no order."""
    sizes = pd.Categorical(rows["size"], ["S", "M", "L"], ordered=True)
    return rows.assign(kids=rows["kids"].astype(float), size=sizes).query(text, engine="python")


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(parts=st.lists(comparisons(), min_size=1, max_size=4), seed=st.integers(0, 100))
def test_every_row_satisfies_the_condition(release, parts, seed):
    query = " and ".join(parts)
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
    assert len(satisfying(rows, query)) == 80
    # What the domain makes of the rows is what was drawn: values lie in their bins.
    assert (DOMAIN.encode(rows) >= 0).all()


def test_rows_are_as_many_as_the_release_estimates_and_repeat(release):
    query = "age >= 65 and sex == 'F'"
    rows = release.sample(where=query, random_state=4)
    assert len(rows) == round(release.count(query)) > 0
    pd.testing.assert_frame_equal(rows, release.sample(where=query, random_state=4))
    assert not rows.equals(release.sample(where=query, random_state=5))
    assert len(release.sample(0, where=query)) == 0
    with pytest.raises(ValueError, match="No row can satisfy.*'pay'"):
        release.sample(5, where={"pay": (2000, 3000)})
    codes = release.synopsis_.sample_codes(200, 1, where=query)
    assert (codes[:, 3] == 0).all() and len(codes) == 200
    # An empty condition is none, bit for bit.
    pd.testing.assert_frame_equal(release.sample(50, 1, where={}), release.sample(50, 1))


def test_every_synthesizer_draws_both_ways(release):
    for method, n in itertools.product(("rounded", "independent"), (0, 1, 50, 4000)):
        rows = release.sample(n, random_state=1, method=method)
        assert len(rows) == n
        pd.testing.assert_frame_equal(rows, release.sample(n, random_state=1, method=method))
        if n == 4000:
            assert not rows.equals(release.sample(n, random_state=2, method=method))
            # Rows are in random order: each half is like the other. False alarm 1e-6.
            codes, _ = pd.factorize(rows.iloc[:, 0], sort=True)
            assert ks_2samp(codes[:2000], codes[2000:]).pvalue > 1e-6
    pd.testing.assert_frame_equal(
        release.sample(50, random_state=1), release.sample(50, random_state=1, method="rounded")
    )
    with pytest.raises(ValueError, match="method must be 'rounded' or 'independent', got"):
        release.sample(5, method="round")
    # Rounded rows have the expected counts; boxes without records have none.
    rows = release.sample(1000, 0, where="age >= 40")
    share = release.count("age >= 40 and sex == 'F'") / release.count("age >= 40")
    assert (rows["age"] >= 40).all()
    if isinstance(release, skdp.MarginalSynthesizer):
        assert abs((rows["sex"] == "F").sum() - 1000 * share) < 5


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


@pytest.fixture(scope="module", params=[None, "type"])
def ruled(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        synthesizer = skdp.MarginalSynthesizer(
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


# --- models against the exact conditional law

SHAPE = (3, 4, 5, 2)
# Probability that a test of a law fails although the law is right.
FALSE_ALARM = 1e-6


def under(table, weights):
    """The law of records under weights, as a table that sums to 1."""
    table = weighted(table, weights)
    return table / table.sum()


def fits(codes, table):
    """Whether codes follow a law."""
    seen = Counter(np.ravel_multi_index(codes.T, table.shape).tolist())
    law = dict(enumerate(table.ravel().tolist()))
    return all(law[cell] > 0 for cell in seen) and fit(seen, law) > FALSE_ALARM


WHERE = {1: np.array([1.0, 0.5, 0.0, 1.0]), 2: np.array([0.0, 1.0, 0.3, 1.0, 0.0])}


def random_rows(rng, shape, n=20_000):
    """Weighted rows of a random law, and the table of what they say."""
    law = rng.dirichlet(np.full(np.prod(shape), 0.5))
    rows = np.stack(np.unravel_index(rng.choice(len(law), n, p=law), shape), axis=1)
    weights = rng.gamma(2.0, size=n)
    found = WeightedRows(rows.astype(np.int32), weights / weights.sum(), shape)
    return found, found.table(range(len(shape)))


@over("rounded", [False, True])
def test_draws_under_a_condition_follow_the_exact_law(rounded):
    rows, table = random_rows(np.random.default_rng(5), SHAPE)
    codes = rows.draw(60_000, np.random.default_rng(1), WHERE, pairs=[] if rounded else None)
    assert codes.dtype == np.int32 and codes.shape == (60_000, 4)
    assert fits(codes, under(table, WHERE))
    # Wrong laws are rejected: no condition, weights taken as all or nothing, independent columns.
    assert not fits(codes, table)
    assert not fits(codes, under(table, {axis: np.ceil(w) for axis, w in WHERE.items()}))
    alone = np.ones(())
    for axis in range(len(SHAPE)):
        alone = np.multiply.outer(alone, rows.table((axis,)) * WHERE.get(axis, 1.0))
    assert not fits(codes, alone / alone.sum())


@settings(max_examples=60)
@given(shape=st.lists(st.integers(1, 5), min_size=1, max_size=5), seed=st.integers(0, 10_000))
def test_codes_of_weight_zero_are_never_drawn(shape, seed):
    rng = np.random.default_rng(seed)
    rows, _ = random_rows(rng, shape, int(rng.integers(1, 200)))
    weights = {axis: rng.random(shape[axis]) for axis in range(len(shape)) if rng.random() < 0.5}
    for axis in weights:
        weights[axis][rng.random(shape[axis]) < 0.5] = 0.0
        weights[axis][rng.integers(shape[axis])] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        drawn = rows.draw(15, rng, weights), rows.draw(15, rng, weights, pairs=[])
    for codes in drawn:
        assert codes.shape == (15, len(shape)) and (codes >= 0).all() and (codes < shape).all()
        for axis, vector in weights.items():
            assert (vector[codes[:, axis]] > 0).all()


def test_a_condition_of_probability_zero_follows_what_is_nearest_and_warns():
    # Three columns that are equal, but in a fourth row of no weight that matters.
    codes = np.repeat([[0, 0, 0], [1, 1, 1]], [600, 400], axis=0).astype(np.int32)
    rows = WeightedRows(codes, np.full(1000, 0.001), (2, 2, 2))
    never = {0: np.array([1.0, 0.0]), 1: np.array([0.0, 1.0])}
    for draw in (rows.draw, partial(rows.draw, pairs=[])):
        with pytest.warns(UserWarning, match="No record of the release meets"):
            drawn = draw(1000, np.random.default_rng(0), never)
        # The third column follows the condition that more rows meet.
        assert (drawn == [0, 1, 0]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (rows.draw(9, np.random.default_rng(0), {0: never[0]})[:, 1] == 0).all()


def test_of_a_rare_condition_rows_meet_as_much_as_enough_of_them_do():
    rng = np.random.default_rng(3)
    rows, table = random_rows(rng, SHAPE)
    # No row has the last code of the first column with the last of the third, but for one.
    codes = rows.codes.copy()
    codes[codes[:, 0] == 2, 2] %= 4
    codes[0] = [2, 0, 4, 1]
    rows = WeightedRows(codes, rows.weights, SHAPE)
    table = rows.table(range(4))
    rare = {0: np.eye(3)[2], 2: np.eye(5)[4], 3: np.eye(2)[1]}
    share = {axis: rows.table((axis,))[np.argmax(rare[axis])] for axis in (0, 2)}
    kept, lost = (0, 2) if share[0] > share[2] else (2, 0)
    drawn = rows.draw(40_000, rng, rare)
    assert (drawn[:, lost] == rare[lost].argmax()).all()
    law = under(table, {axis: rare[axis] for axis in (kept, 3)}).sum(axis=lost)
    assert fits(np.delete(drawn, lost, axis=1), law)
    # Any row will do where rows are cells: then the condition is met by one alone.
    assert (rows.draw(5, rng, {axis: rare[axis] for axis in (0, 2)}, 0.5) == codes[0]).all()


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


@pytest.mark.parametrize("bins", [(9, 12), (32, 7)])
@pytest.mark.parametrize("options", [{}, {"decimals": 2}, {"scale": "log", "special": [0]}])
def test_conditions_within_the_bins_of_compared_columns_leave_rows(bins, options):
    # Most draws of codes were in vain, and rows that exist were called contradictory.
    columns = {
        name: Numeric(0, 50_000, n, **options)
        for name, n in zip(("balance", "amount"), bins, strict=True)
    }
    domain = Domain(columns, structure=[skdp.at_most("balance", "amount")])
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
