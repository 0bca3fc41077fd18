"""Synthesizers of boxes and grids, and questions to their releases."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from boxed import WIDE, dense_tables
from densities import asked, reach_of
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import over

import skdp
from skdp.mechanisms import discrete_laplace
from skdp.release import AnySpread, Boxes, BoxModel


def test_uneven_boxes_are_covered_whatever_is_in_them():
    # All records of every box at its worst place; 95% nominal on each of 400 releases.
    n, missed_above, missed_below = 400, 0, 0
    lower, upper = np.array([[0], [4], [8]]), np.array([[4], [8], [16]])
    records = np.array([100, 300, 50])
    inside = {0: ((np.arange(16) >= 2) & (np.arange(16) < 12)).astype(float)}
    widths = []
    for seed in range(n):
        counts = discrete_laplace(records, 0.2, random_state=seed)
        model = BoxModel(Boxes(lower, upper), counts, (16,), AnySpread(0.2))
        _, below, above, guarantee = reach_of(model, inside, 0.95)
        [value] = model.answer(asked([inside]))
        widths.append(below + above)
        missed_above += value + above < 450
        missed_below += value - below > 300
        assert "any spread" in guarantee
    # Each side misses 2.5%: below 2.5% + 4 standard errors, and not never.
    assert 0 < missed_above <= 0.025 * n + 4 * math.sqrt(0.025 * n)
    assert 0 < missed_below <= 0.025 * n + 4 * math.sqrt(0.025 * n)
    # As wide as the cut boxes and the noise, no more.
    assert np.median(widths) < 150 + 2 * 4.8 * 5 * math.sqrt(2)


@settings(max_examples=40)
@given(cells=dense_tables(least=-3), seed=st.integers(0, 100))
def test_answers_from_projections_equal_those_box_by_box(cells, seed):
    rng = np.random.default_rng(seed)
    lower = np.argwhere(np.ones(cells.shape))
    model = BoxModel(Boxes(lower, lower + 1), cells.ravel(), cells.shape)
    queries = []
    for _ in range(7):
        axes = rng.permutation(cells.ndim)[: rng.integers(0, cells.ndim + 1)]
        queries.append({int(i): rng.random(cells.shape[i]) for i in axes})
    expected = []
    for query in queries:
        table = cells.astype(float)
        for axis, weights in query.items():
            shape = [-1 if i == axis else 1 for i in range(cells.ndim)]
            table = table * weights.reshape(shape)
        expected.append(table.sum())
    np.testing.assert_allclose(model.answer(asked(queries)), expected, atol=1e-8)


# --- estimators

PLANE = skdp.Domain({"x": skdp.Numeric(0, 1, bins=16), "y": skdp.Numeric(0, 1, bins=16)})
ROWS = pd.DataFrame(np.random.default_rng(0).beta(2, 5, size=(3000, 2)), columns=["x", "y"])
VARIANTS = {
    "privtree": (skdp.PrivTreeSynthesizer, {}),
    "privtree paper": (skdp.PrivTreeSynthesizer, {"calibration": "paper", "split_attributes": 1}),
    "two-step": (skdp.KDTreeSynthesizer, {}),
    "cell": (skdp.KDTreeSynthesizer, {"strategy": "cell"}),
    "hierarchical": (skdp.KDTreeSynthesizer, {"strategy": "hierarchical", "height": 5}),
    "identity": (skdp.GridSynthesizer, {"rule": "identity"}),
    "uniform": (skdp.GridSynthesizer, {"rule": "uniform"}),
    "extended": (skdp.GridSynthesizer, {"rule": "extended"}),
    "m-estimator": (skdp.GridSynthesizer, {"rule": "m-estimator"}),
    "eight": (skdp.GridSynthesizer, {"rule": 8}),
}


def made(name, **more):
    estimator, params = VARIANTS[name]
    return estimator(**{"domain": PLANE, **params, **more})


@over("name", VARIANTS)
def test_releases_answer_close_to_the_truth(name):
    view = made(name, epsilon=20, random_state=1).fit(ROWS)
    query = "x < 0.25 and y >= 0.5"
    truth = len(ROWS.query(query))
    answer = view.count(query, return_interval=True, level=0.999)
    assert abs(answer.value - truth) < 0.2 * truth + 20
    assert answer.lower <= truth <= answer.upper
    assert abs(view.count() - len(ROWS)) < 30
    assert view.mean("x") == pytest.approx(ROWS["x"].mean(), abs=0.05)


def test_intervals_cover_fresh_queries():
    # 100 fresh ranges a release at nominal 90%: at least that less three standard errors, taking
    # the answers of one release for ten.
    for name in VARIANTS:
        rng, covered = np.random.default_rng(5), []
        view = made(name, epsilon=0.5, random_state=0).fit(ROWS)
        # Ranges of whole bins, so that the truth is that of the codes.
        low = np.floor(rng.random((100, 2)) * 13) / 16
        high = np.minimum(low + np.ceil(rng.random((100, 2)) * 16) / 16, 1)
        for (a, c), (b, d) in zip(low.tolist(), high.tolist(), strict=True):
            query = {"x": (a, b - 1e-9), "y": (c, d - 1e-9)}
            answer = view.count(query, return_interval=True, level=0.9)
            inside = ROWS["x"].between(a, b, "left") & ROWS["y"].between(c, d, "left")
            covered.append(answer.lower <= inside.sum() <= answer.upper)
        assert np.mean(covered) >= 0.9 - 3 * math.sqrt(0.09 / 10), name


def test_domains_too_large_are_refused_before_the_charge(monkeypatch):
    ledger = skdp.PrivacyLedger(1)
    rows = pd.DataFrame(np.random.default_rng(0).random((5, 12)), columns=WIDE.names)
    monkeypatch.setattr(
        skdp.Domain, "encode_columns", lambda *_: pytest.fail("values were read before the refusal")
    )
    for name in ("two-step", "cell", "identity", "eight"):
        with pytest.raises(skdp.DomainError, match=r"hierarchical|extended") as refusal:
            made(name, domain=WIDE, ledger=ledger).fit(rows)
        assert "Nothing was read or spent" in str(refusal.value)
    assert ledger.spent == 0


@over(
    "estimator, params, error, message",
    [
        (skdp.KDTreeSynthesizer, {"strategy": "range-tree", "height": 99}, ValueError, "height"),
        (skdp.KDTreeSynthesizer, {"strategy": "hierarchical", "height": 3.0}, TypeError, "height"),
        (skdp.KDTreeSynthesizer, {"xi1": math.inf}, ValueError, "xi1"),
        (skdp.KDTreeSynthesizer, {"cell_share": 1}, ValueError, "cell_share"),
        (skdp.KDTreeSynthesizer, {"cell_share": 1e-30}, ValueError, "cell_share"),
        (skdp.PrivTreeSynthesizer, {"split_attributes": 11}, ValueError, "split_attributes"),
        (skdp.GridSynthesizer, {"rule": 0}, ValueError, "fewer than one"),
        (skdp.GridSynthesizer, {"rule": True}, ValueError, "rule must be"),
    ],
)
def test_wrong_parameters_cost_nothing(estimator, params, error, message):
    ledger = skdp.PrivacyLedger(1)
    with pytest.raises(error, match=message):
        estimator(domain=PLANE, ledger=ledger, **params).fit(ROWS)
    assert ledger.spent == 0


def test_measured_counts_are_checked():
    boxes = Boxes([[0], [4]], [[4], [8]])
    for wrong in ([1], [1, math.inf], ["a", "b"]):
        with pytest.raises(ValueError, match="counts must"):
            BoxModel(boxes, [10.5, 20], (8,), AnySpread(1, wrong))
    model = BoxModel(boxes, [10.5, 20], (8,), AnySpread(1, [5000, 21]))
    # An unlucky measurement far from the answer: the interval reaches both.
    _, below, above, _ = reach_of(model, {}, 0.9)
    assert below == 0 and above > 4990


# --- groups


def test_groups_agree_with_pandas():
    domain = skdp.Domain(
        {
            "age": skdp.Numeric(20, 24, integer=True),
            "pay": skdp.Numeric(0, 10, bins=5, nullable=True),
            "sex": skdp.Categorical(["F", "M"]),
        }
    )
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(
        {
            "age": rng.integers(20, 25, 400),
            "pay": rng.choice([1.0, 3.0, 5.0, 7.0, 9.0, np.nan], 400),
            "sex": rng.choice(["F", "M"], 400),
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        view = skdp.GridSynthesizer(
            epsilon=1000, domain=domain, rule="identity", random_state=0
        ).fit(rows)
    found = view.aggregate("age", "pay", "sex == 'F'").set_index("age")
    expected = rows[rows["sex"] == "F"].groupby("age")["pay"].agg(["count", "sum", "mean"])
    pd.testing.assert_frame_equal(
        found, expected.astype({"count": float}), check_index_type=False, atol=1e-9
    )
    both = view.aggregate(["sex", "age"]).set_index(["sex", "age"])["count"]
    assert both["M", 22] == len(rows.query("sex == 'M' and age == 22"))
    bins = view.aggregate("pay")
    assert bins["pay"][1] == pd.Interval(2.0, 4.0, closed="left") and bins["pay"][5] is None
    assert bins["count"][5] == rows["pay"].isna().sum()
    ages = view.synopsis_.aggregate("age", "age")
    assert ages["mean"].tolist() == [20, 21, 22, 23, 24]


def test_groups_without_records_have_no_mean():
    domain = skdp.Domain({"a": skdp.Categorical(["x", "y"]), "b": skdp.Numeric(0, 4, bins=4)})
    release = skdp.Synopsis(
        domain, BoxModel(Boxes([[0, 0], [1, 0]], [[1, 4], [2, 4]]), [8, -3], domain.shape)
    )
    groups = release.aggregate("a", "b")
    assert groups["mean"][0] == 2 and math.isnan(groups["mean"][1])
    for by in ([], ["a", "a"], "z", ["a", "b", "z"]):
        with pytest.raises(ValueError, match=r"column|group|attribute"):
            release.aggregate(by)
    domain = skdp.Domain({"x": skdp.Numeric(0, 1, bins=10**6)})
    release = skdp.Synopsis(domain, BoxModel(Boxes([[0]], [[10**6]]), [8], domain.shape))
    with pytest.raises(ValueError, match="100,000"):
        release.aggregate("x")


@over("strategy", ["cell", "two-step", "range-tree"])
def test_the_largest_and_smallest_value_show_above_the_noise(strategy):
    rows = pd.DataFrame({"x": np.r_[np.repeat(np.arange(20, 60), 200), 99], "s": 0})
    rows.loc[rows["x"] < 40, "s"] = 1
    domain = skdp.Domain({"x": skdp.Numeric(0, 99, integer=True), "s": skdp.Categorical([0, 1])})
    reached = []
    for seed in range(20):
        view = skdp.KDTreeSynthesizer(
            epsilon=2, domain=domain, strategy=strategy, random_state=seed
        )
        release = view.fit(rows).synopsis_
        reached.append((release.min("x"), release.max("x"), release.max("x", "s == 1")))
        assert release.max("x", level=0.999) <= release.max("x", level=0.5)
    low, high, part = np.array(reached).T
    # Each fails with probability 0.05 at most: more than 6 of 20 have one of 1e-4. The one record
    # at 99 is not seen, and boxes cut off at most a few values.
    assert (high >= 50).all() and (low <= 30).all()
    assert np.count_nonzero(high > 59) <= 6 and np.count_nonzero(low < 20) <= 6
    assert np.count_nonzero(part > 39) <= 6 and (part >= 30).all()
