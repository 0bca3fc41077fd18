"""Questions to cubes, with intervals; cubes of means; sums of persons and in engines."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from boxed import one_box_each
from cubes import DIMENSIONS, ROWS, fitted_without_noise, make, people, true_table
from loops import over

from skdp.mechanisms import discrete_laplace_quantile

HOLES = people(600, 3)
HOLES.loc[::7, "pay"] = np.nan
CLIPPED = HOLES.assign(pay=HOLES["pay"].clip(0, 100))


MEANS = {"measure": "mean", "value": "pay", "resolution": 0.01}


@pytest.fixture(scope="module")
def counts():
    return fitted_without_noise(make(strategy="bmax"), ROWS)


@pytest.fixture(scope="module")
def means():
    return fitted_without_noise(make(strategy="bmax", **MEANS), HOLES)


# --- counts ---------------------------------------------------------------------------------------


def test_errors_of_counts_are_those_of_slices(counts):
    for query in ({"age": (20, 29), "region": ["N", None]}, "age > 25"):
        result = counts.count(query, return_interval=True)
        sliced = counts.cuboid(query=query).iloc[0]
        assert float(result) == pytest.approx(sliced["count"])
        assert result.std == pytest.approx(sliced["std_error"])
        assert result.lower < result.value < result.upper
        assert "at least 95%" in result.guarantee and "exact law" in result.guarantee
    wide = counts.count(query, return_interval=True, level=0.999)
    assert wide.upper > result.upper


@over("params, method, reach, step", [({}, "count", 1, 1), (MEANS, "sum", 10_000, 0.01)])
def test_the_interval_of_a_cell_is_that_of_its_noise(params, method, reach, step):
    cube = make(strategy="base", epsilon=0.5, **params).fit(ROWS)
    # The range begins at 0: a sum has the noise of one table alone.
    cell = {"query": {"age": (20, 29), "sex": "F", "region": "N"}, "level": 0.9}
    found = getattr(cube, method)(**cell, return_interval=True)
    exact = discrete_laplace_quantile(0.9, Fraction(1, 2) / reach) * step
    assert exact <= found.upper - found.value <= 1.07 * exact + 1


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
    cells, sums = means.tables_[("age", "sex", "region")]
    known = HOLES[HOLES["pay"].notna()]
    np.testing.assert_allclose(cells, true_table(known, ["age", "sex", "region"]), atol=1e-9)
    assert sums.sum() == pytest.approx(CLIPPED["pay"].sum())
    assert "mean" in means.to_frame()


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


def test_sums_at_a_bound_on_the_rows_of_a_person():
    rows = CLIPPED.dropna().assign(who=lambda table: np.arange(len(table)) % 40, pay=50.0)
    params = {"measure": "mean", "value": "pay", "strategy": "base", "resolution": 1}
    cube = make(**params, privacy_id="who", max_rows_per_id=2, epsilon=2000).fit(rows)
    assert cube.sum() == pytest.approx(40 * 2 * 50, rel=0.01)
    # Noise is that of a row, and the loss that of a person.
    single = make(**params, epsilon=1000).plan()
    assert cube.plan_.std_error("sex") == single.std_error("sex")
    assert cube.privacy_loss_.epsilon == 2000


def test_engines_sum_as_memory_does():
    # Older versions of DuckDB close a connection that nobody holds.
    connection = pytest.importorskip("duckdb").connect()
    lazy = connection.from_arrow(pl.from_pandas(HOLES).to_arrow())
    for params in ({"resolution": 0.01}, {"dimensions": ["sex", "pay"]}):
        here, there = (
            make(measure="mean", value="pay", random_state=5, **params).fit(rows).sources_
            for rows in (HOLES, lazy)
        )
        assert here.keys() == there.keys()
        for names, values in here.items():
            np.testing.assert_array_equal(values, there[names])


# --- statistics as of synopses --------------------------------------------------------------------


def test_statistics_of_dimensions_are_those_of_the_cells(counts):
    domain = counts.domain_.select(DIMENSIONS)
    synopsis = one_box_each(domain, counts.tables_[tuple(DIMENSIONS)])
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
        np.testing.assert_allclose(asked(counts), asked(synopsis), atol=1e-6)
