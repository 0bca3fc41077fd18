"""Data cubes: exact without noise, stated errors, questions and plans."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from boxed import one_box_each
from cubes import DIMENSIONS, ROWS, fitted_without_noise, make, people, recorded, true_table
from loops import over

import skdp
from skdp import Categorical, DataCube, Domain, Numeric
from skdp.datacube import cube as cube_module
from skdp.datacube import plan as plan_module
from skdp.mechanisms import discrete_laplace_quantile, discrete_laplace_variance

AGES = [pd.Interval(low, low + 10, closed="left") for low in (20, 30, 40, 50)]


@pytest.fixture(autouse=True)
def few_simulations(monkeypatch):
    """Linear programs take long; their errors are compared with measured ones in one test."""
    monkeypatch.setattr(plan_module, "_MAX_SIMULATIONS", 3)


# --- exactness ------------------------------------------------------------------------------------


@over("strategy", ["all", "base", "bmax", "optimized"])
@over("consistency", ["l2", "l1", "linf", None])
def test_without_noise_every_cuboid_is_exact(monkeypatch, strategy, consistency):
    calls = recorded(monkeypatch)
    cube = make(strategy=strategy, consistency=consistency).fit(ROWS)
    assert len(cube.tables_) == 8
    for dimensions, table in cube.tables_.items():
        np.testing.assert_allclose(table, true_table(ROWS, dimensions), atol=1e-6)
    # Each source was measured once, with its share, and the shares are all of epsilon.
    assert len(calls) == len(cube.sources_) == len(cube.privacy_loss_.parts)
    for (values, epsilon, sensitivity, source), names in zip(calls, cube.sources_, strict=True):
        np.testing.assert_array_equal(values, true_table(ROWS, names))
        assert values.dtype.kind == "i"
        assert epsilon == cube.plan_.sources[names] * cube.privacy_loss_.epsilon
        assert sensitivity == 1 and not source.seeded
    assert sum(epsilon for _, epsilon, _, _ in calls) == 1


def test_sums_are_exact_within_the_grid(monkeypatch):
    calls = recorded(monkeypatch)
    make(measure="mean", value="pay", resolution=0.01).fit(ROWS)
    assert calls.pop()[2] == 10_000
    # Values are treated one by one; fractions go to the nearest whole number.
    domain = Domain({"g": Categorical(["a", "b"]), "v": Numeric(-5, 10, integer=True)})
    numbers = [np.nan, 3.7, -np.inf, np.inf, -0.5, 9]
    rows = pd.DataFrame({"g": ["a", "a", "b", "b", "b", "?"], "v": numbers})
    cube = DataCube(domain=domain, measure="mean", value="v", resolution=1).fit(rows)
    assert cube.aggregate("g", "v")["sum"].to_list() == pytest.approx([4, -5 + 10 - 0])
    assert calls.pop()[2] == 15


# --- questions ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def exact():
    return fitted_without_noise(make(strategy="bmax"), ROWS)


def test_cuboid_is_tidy(exact):
    table = exact.cuboid(["sex", "age"])
    assert table.columns.to_list() == ["sex", "age", "count", "std_error"]
    assert table["sex"].to_list() == ["F"] * 4 + ["M"] * 4 and table["age"].to_list() == AGES * 2
    assert set(table["std_error"]) == {exact.plan_.std_error(["age", "sex"])}
    frame = exact.to_frame().query("cuboid == 'age, sex'")
    assert (frame["region"] == "*").all()
    for found, order in ((table, ["sex", "age"]), (frame, ["age", "sex"])):
        np.testing.assert_allclose(found["count"], true_table(ROWS, order).ravel())
    assert exact.cuboid("region")["region"].isna().to_list() == [False] * 4 + [True]


def test_slice(exact):
    female = ROWS[ROWS["sex"] == "F"]
    table = exact.cuboid(["age"], {"sex": "F"})
    np.testing.assert_allclose(table["count"], true_table(female, ["age"]))
    young = exact.cuboid(["region", "sex"], "age < 40 and region in ['N', 'E']")
    assert young["region"].to_list() == ["N", "N", "E", "E"]
    chosen = ROWS[(ROWS["age"] < 40) & ROWS["region"].isin(["N", "E"])]
    counts = true_table(chosen, ["region", "sex"])[[0, 2]].ravel()
    np.testing.assert_allclose(young["count"], counts)
    everything = exact.cuboid("age", {"sex": ["F", "M"]})
    assert everything["std_error"][0] == pytest.approx(exact.plan_.std_error("age"))
    # Half of the second bin has weight one half, in the estimate and in its error.
    half, whole = (exact.cuboid(query={"age": (30, end)}) for end in (34, 39))
    assert half["count"][0] == pytest.approx(whole["count"][0] / 2)
    assert half["std_error"][0] == pytest.approx(exact.plan_.std_error("age") / 2)


def test_rollup(exact):
    coarse = exact.cuboid(["region", "sex"], levels={"region": 1})
    counts = true_table(ROWS, ["region", "sex"])
    assert coarse["region"].to_list() == ["polar"] * 2 + ["other"] * 2 + ["missing"] * 2
    merged = np.stack([counts[:2].sum(0), counts[2:4].sum(0), counts[4]])
    np.testing.assert_allclose(coarse["count"], merged.ravel())
    assert coarse["std_error"][4] == pytest.approx(exact.plan_.std_error(["region", "sex"]))
    # Of the noise of two cells, and of what they share.
    assert coarse["std_error"][0] > coarse["std_error"][4]
    both = exact.count({"region": ["N", "S"], "sex": "F"}, return_interval=True)
    assert coarse["std_error"][0] == pytest.approx(both.std)
    finest = exact.cuboid(["region", "sex"], levels={"region": -1})
    np.testing.assert_allclose(finest["count"], counts.ravel())
    # A level of what satisfies conditions holds only that.
    cold = exact.cuboid("region", "region == 'N' and age < 40", levels={"region": 1})
    few = ROWS[(ROWS["region"] == "N") & (ROWS["age"] < 40)]
    assert cold["count"].to_list() == pytest.approx([len(few), 0, 0])


def test_means_by_a_column_that_follows_from_another():
    rows = pd.DataFrame({"age": [5, 12, 30, 60] * 250, "pay": [1.0, 3.0, 8.0, 4.0] * 250})
    adult = skdp.derived("adult", "age", {(None, 18): "no", (18, None): "yes"})
    ages = Numeric(0, 79, bins=4, integer=True)
    domain = Domain({"age": ages, "pay": (0.0, 10.0), "adult": ["no", "yes"]}, structure=[adult])
    cube = DataCube(epsilon=1000, domain=domain, measure="mean", value="pay").fit(rows)
    assert cube.count("adult == 'no'") == pytest.approx(500, abs=0.1)
    for query in ("adult == 'no'", "age < 18"):
        assert cube.mean(query=query) == pytest.approx(2, abs=0.01)


# --- the plan -------------------------------------------------------------------------------------


def test_plan_is_what_fit_uses():
    cube = make(strategy="optimized", objective="mean")
    plan = cube.plan()
    assert cube.fit(ROWS).plan_.sources == plan.sources
    table = plan.to_frame().set_index("cuboid")
    assert table["epsilon"].sum() == pytest.approx(1) and table.index[0] == "(total)"
    assert table.loc["age, sex", "std_error"] == plan.std_error(["sex", "age"])
    assert plan.max_std_error == table["std_error"].max()
    assert plan.mean_variance == pytest.approx((table["std_error"] ** 2).mean())


def test_a_plan_can_be_given_to_another_cube(monkeypatch):
    plan = make(strategy="optimized").plan()

    def search_again(*args, **kwargs):
        raise AssertionError("planned again")

    monkeypatch.setattr(cube_module, "find_sources", search_again)
    given = pickle.loads(pickle.dumps(plan))
    other = make(strategy=given, epsilon=0.5, consistency=None).fit(ROWS)
    assert other.plan_.sources == plan.sources and other.plan_.epsilon == Fraction(1, 2)
    # Shares that were changed since are those that are charged and those that noise is drawn for.
    plan.sources = {("sex",): Fraction(1)}
    changed = make(strategy=plan).fit(ROWS).plan_
    assert changed.std_error("sex") == make(strategy={"sex": 1}).plan().std_error("sex")
    # As after JSON: shares are divided by their sum, so that no part of epsilon is lost.
    again = make(strategy={key: float(share) for key, share in given.sources.items()}).plan()
    assert sum(again.sources.values()) == 1
    parts = make(strategy={"age": 1, "sex": 3}).plan().sources
    assert parts == {("age",): Fraction(1, 4), ("sex",): Fraction(3, 4)}


def test_variances_of_the_plan_are_those_of_the_noise():
    plan = make(strategy={("age", "sex"): Fraction(1, 4), "region": Fraction(3, 4)}).plan()
    table = plan.to_frame().set_index("cuboid")
    assert table.loc["region", "noise_std"] ** 2 == pytest.approx(discrete_laplace_variance(0.75))
    assert table.loc["region", "std_error"] < table.loc["region", "noise_std"]
    assert math.isnan(table.loc["sex", "noise_std"])
    means = make(strategy="base", measure="mean", value="pay", resolution=0.5).plan()
    variance = discrete_laplace_variance(1, 200) / 4
    assert means.std_error(DIMENSIONS) == pytest.approx(math.sqrt(variance))


def test_pmost_publishes_what_it_can():
    table = make(strategy="pmost", max_variance=30, consistency=None, epsilon=0.5).plan().to_frame()
    assert 0 < (table["std_error"] ** 2 <= 30).sum() < 8
    assert set(make(strategy={"age": 1}).fit(ROWS).tables_) == {(), ("age",)}


# --- bad input -------------------------------------------------------------------


# ------------------------------------------------------------------------------------------------
# Questions, means and engines.


HOLES = people(600, 3)
HOLES.loc[::7, "pay"] = np.nan
CLIPPED = HOLES.assign(pay=HOLES["pay"].clip(0, 100))


MEANS = {"measure": "mean", "value": "pay", "resolution": 0.01}


@pytest.fixture(scope="module")
def means():
    return fitted_without_noise(make(strategy="bmax", **MEANS), HOLES)


# --- counts ---------------------------------------------------------------------------------------


def test_errors_of_counts_are_those_of_slices(exact):
    for query in ({"age": (20, 29), "region": ["N", None]}, "age > 25"):
        result = exact.count(query, return_interval=True)
        sliced = exact.cuboid(query=query).iloc[0]
        assert float(result) == pytest.approx(sliced["count"])
        assert result.std == pytest.approx(sliced["std_error"])
        assert result.lower < result.value < result.upper
        assert "at least 95%" in result.guarantee and "exact law" in result.guarantee


@over("params, method, reach, step", [({}, "count", 1, 1), (MEANS, "sum", 10_000, 0.01)])
def test_the_interval_of_a_cell_is_that_of_its_noise(params, method, reach, step):
    cube = make(strategy="base", epsilon=0.5, **params).fit(ROWS)
    # The range begins at 0: a sum has the noise of one table alone.
    cell = {"query": {"age": (20, 29), "sex": "F", "region": "N"}, "level": 0.9}
    found = getattr(cube, method)(**cell, return_interval=True)
    half = discrete_laplace_quantile(0.9, Fraction(1, 2) / reach) * step
    assert half <= found.upper - found.value <= 1.07 * half + 1


# --- means ----------------------------------------------------------------------------------------


def test_without_noise_means_are_exact(means):
    expected = CLIPPED.groupby("sex")["pay"].agg(["count", "sum", "mean"])
    table = means.cuboid("sex")
    assert list(table) == ["sex", "count", "mean", "std_error"]
    np.testing.assert_allclose(table["count"], expected["count"], rtol=1e-9)
    np.testing.assert_allclose(table["mean"], expected["mean"], rtol=1e-9)
    for sex, row in expected.iterrows():
        query = {"sex": sex}
        assert means.count(query) == pytest.approx(row["count"])
        assert means.sum("pay", query) == pytest.approx(row["sum"])
        assert means.mean(query=query) == pytest.approx(row["mean"])
    cells, sums = means.tables_[tuple(DIMENSIONS)]
    known = HOLES[HOLES["pay"].notna()]
    np.testing.assert_allclose(cells, true_table(known, DIMENSIONS), atol=1e-9)
    assert sums.sum() == pytest.approx(CLIPPED["pay"].sum())


def test_errors_of_means_are_those_measured():
    """Z-scores of means, counts and sums over seeds have the variance 1, up to 5 sigma."""
    params = {"measure": "mean", "value": "pay", "resolution": 1}
    plan, runs = make(strategy="bmax", **params).plan(), 100
    truth = CLIPPED.assign(pay=CLIPPED["pay"].round()).groupby("sex")["pay"]
    expected = truth.agg(["mean", "count", "sum"])
    scores = []
    for seed in range(runs):
        cube = make(strategy=plan, random_state=seed, **params).fit(CLIPPED)
        table = cube.cuboid("sex")
        score = (table["mean"] - expected["mean"].to_numpy()) / table["std_error"]
        count = cube.count({"sex": "F"}, return_interval=True)
        total = cube.sum(query={"sex": "F"}, return_interval=True)
        score = [*score, (float(count) - expected["count"]["F"]) / count.std]
        scores.append([*score, (float(total) - expected["sum"]["F"]) / total.std])
    square = np.mean(np.square(scores), axis=0)
    # The fourth moment of the scores is below 6.
    assert (np.abs(square - 1) < 5 * np.sqrt(5 / runs)).all()
    assert (np.abs(np.mean(square) - 1)) < 0.36


# --- persons and engines --------------------------------------------------------------------------


def test_engines_sum_as_memory_does():
    # Older versions of DuckDB close a connection that nobody holds.
    lazy = pytest.importorskip("duckdb").connect().from_arrow(pl.from_pandas(HOLES).to_arrow())
    for params in ({"resolution": 0.01}, {"dimensions": ["sex", "pay"]}):
        here, there = (
            make(measure="mean", value="pay", random_state=5, **params).fit(rows).sources_
            for rows in (HOLES, lazy)
        )
        assert here.keys() == there.keys()
        for names, values in here.items():
            np.testing.assert_array_equal(values, there[names])


# --- statistics as of synopses --------------------------------------------------------------------


def test_statistics_of_dimensions_are_those_of_the_cells(exact):
    synopsis = one_box_each(exact.domain_.select(DIMENSIONS), exact.tables_[tuple(DIMENSIONS)])
    questions = [
        lambda r: r.std("age", "sex == 'F'"),
        lambda r: r.quantile("age", [0.25, 0.5]),
        lambda r: r.quantile("age", 0.5, "region is null"),
        lambda r: r.proportion("sex == 'F' or region == 'N'", "age >= 30"),
        lambda r: r.aggregate(["region", "sex"], "age").drop(columns=["region", "sex"]),
        lambda r: r.aggregate("age", "age", bands={"age": [20, 40, 60]}).drop(columns="age"),
        lambda r: r.crosstab("region", "sex", "age >= 40"),
        lambda r: r.aggregate(["region", "age", "sex"])["count"],
    ]
    for asked in questions:
        np.testing.assert_allclose(asked(exact), asked(synopsis), atol=1e-6)
