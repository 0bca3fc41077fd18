"""Questions to cubes, with intervals; cubes of means; sums of persons and in engines."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cubes import DOMAIN, ROWS, make, people, true_table

import skdp
from skdp import Categorical, DataCube, Domain, Numeric
from skdp.datacube import cube as cube_module
from skdp.datacube.tables import CubeModel
from skdp.exceptions import InsecureSeedWarning
from skdp.release import Query

HOLES = people(600, 3)
HOLES.loc[::7, "pay"] = np.nan
CLIPPED = HOLES.assign(pay=HOLES["pay"].clip(0, 100))


def exact(cube, rows):
    """A cube fitted without noise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            cube_module,
            "discrete_laplace",
            lambda values, epsilon, sensitivity=1, *, random_state=None: np.asarray(values),
        )
        return cube.fit(rows)


@pytest.fixture(scope="module")
def counts():
    return exact(make(strategy="bmax"), ROWS)


@pytest.fixture(scope="module")
def means():
    return exact(make(strategy="bmax", measure="mean", value="pay", resolution=0.01), HOLES)


# --- counts ---------------------------------------------------------------------------------------


def test_counts_answer_queries(counts):
    women = ROWS["sex"] == "F"
    old = ROWS["age"] >= 40
    assert counts.count() == pytest.approx(len(ROWS))
    assert counts.count({"sex": "F"}) == pytest.approx(women.sum())
    both = counts.count(["sex == 'F' or age >= 40", "not sex == 'F'"])
    np.testing.assert_allclose(both, [(women | old).sum(), (~women).sum()])
    assert counts.count("sex == @s", names={"s": "M"}) == pytest.approx((~women).sum())


def test_errors_of_counts_are_those_of_slices(counts):
    for query in ({"sex": "F"}, {"age": (20, 29), "region": ["N", None]}, "age > 25"):
        result = counts.count(query, return_interval=True)
        sliced = counts.slice(query, []).iloc[0]
        assert float(result) == pytest.approx(sliced["count"])
        assert result.std == pytest.approx(sliced["std_error"])
        assert result.lower < result.value < result.upper
        assert "at least 95%" in result.guarantee and "exact law" in result.guarantee
    wide = counts.count(query, return_interval=True, level=0.999)
    assert wide.upper > result.upper
    drawn = counts.count(query, return_interval=True, interval="population")
    assert drawn.sampling_std > 0 and drawn.upper > result.upper


@pytest.mark.parametrize("params", [{}, {"consistency": None}, {"measure": "mean", "value": "pay"}])
def test_intervals_cover(params):
    """Of noise around an empty cube; false alarms at 5 standard deviations of the coverage."""
    plan = make(strategy="bmax", epsilon=0.5, **params).plan()
    rng = np.random.default_rng(8)
    queries = [
        [{1: np.array([1.0, 0.0])}],
        [{0: np.array([0.5, 1, 1, 0]), 1: np.array([1.0, 0])}, {2: np.array([0.0, 1, 0, 0, 0])}],
    ]
    shape = (2,) if plan._measure == "mean" else ()
    covered, runs, halves = np.zeros((2, 2)), 400, {}
    for _ in range(runs):
        noisy = {}
        for mask, share in plan._masks.items():
            rate = float(share * plan.epsilon / plan._sensitivity)
            one, two = rng.geometric(-np.expm1(-rate), (2, *shape, *plan._lattice.shape(mask)))
            noisy[mask] = one - two
        tables = {plan._names(mask): t for mask, t in plan._published_tables(noisy).items()}
        model = CubeModel(plan, tables)
        for place, parts in enumerate(queries):
            query = Query(tuple(parts))
            [value] = model.answer([query])
            if place not in halves:
                halves[place] = model._reach([query], 0.9).above[0]
            half = halves[place]
            covered[place] += abs(value) <= half, abs(value) <= 0.8 * half
    sigma = np.sqrt(0.9 * 0.1 / runs)
    assert (covered[:, 0] / runs >= 0.9 - 5 * sigma).all()
    # An interval that is a fifth too short would be noticed.
    assert (covered[:, 1] / runs < 0.9 - sigma).all()


def test_intervals_of_linear_programs_are_called_approximate():
    cube = make(strategy="all", dimensions=["sex"], consistency="l1").fit(ROWS)
    result = cube.count({"sex": "F"}, return_interval=True)
    assert "about 95%" in result.guarantee
    assert result.std == pytest.approx(cube.cuboid("sex")["std_error"][0])


def test_many_terms_are_taken_as_gaussian(counts, monkeypatch):
    exact = counts.count("age > 25", return_interval=True)
    monkeypatch.setattr("skdp.datacube.tables._MAX_TERMS", 0)
    quick = counts.count("age > 25", return_interval=True)
    assert quick.std == pytest.approx(exact.std) and "about" in quick.guarantee
    assert quick.upper == pytest.approx(exact.upper, rel=0.05)


def test_sums_and_means_of_dimensions(counts):
    ages = (ROWS["age"] // 10 * 10 + 4.5)[ROWS["sex"] == "F"]
    assert counts.sum("age", {"sex": "F"}) == pytest.approx(ages.sum())
    assert counts.mean("age", {"sex": "F"}) == pytest.approx(ages.mean())
    result = counts.mean("age", {"sex": "F"}, return_interval=True)
    assert result.lower < ages.mean() < result.upper and "bins" in result.guarantee


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
    assert set(means.tables_) == {names for names in means.tables_ if len(names) < 4}
    cells, sums = means.tables_[("age", "sex", "region")]
    known = HOLES[HOLES["pay"].notna()]
    np.testing.assert_allclose(cells, true_table(known, ["age", "sex", "region"]), atol=1e-9)
    assert sums.sum() == pytest.approx(CLIPPED["pay"].sum())
    assert "mean" in means.to_frame()


def test_a_record_costs_a_mean_no_more_than_a_sum(means):
    plan = means.plan_
    reach = plan._sensitivity
    assert reach == 10_000
    for names, both in means.sources_.items():
        assert both.shape[0] == 2 and both.dtype == np.int64
        # Every record adds all of the reach, divided between the two tables.
        known = HOLES[HOLES["pay"].notna()]
        np.testing.assert_array_equal(both.sum(axis=0), reach * true_table(known, names))
    assert plan.std_error("sex") == make(
        strategy="bmax", measure="sum", value="pay", resolution=0.01
    ).plan().std_error("sex")


def test_errors_of_means_are_those_measured():
    """Z-scores of means, counts and sums over seeds have the variance 1, up to 5 sigma."""
    plan = make(measure="mean", value="pay", strategy="bmax", resolution=1).plan()
    runs = 100
    truth = CLIPPED.assign(pay=CLIPPED["pay"].round()).groupby("sex")["pay"]
    expected = truth.agg(["mean", "count", "sum"])
    scores = []
    with pytest.warns(InsecureSeedWarning):
        for seed in range(runs):
            cube = make(
                measure="mean", value="pay", strategy=plan, resolution=1, random_state=seed
            ).fit(CLIPPED)
            table = cube.cuboid("sex")
            score = (table["mean"] - expected["mean"].to_numpy()) / table["std_error"]
            count = cube.count({"sex": "F"}, return_interval=True)
            total = cube.sum(query={"sex": "F"}, return_interval=True)
            scores.append(
                [
                    *score,
                    (float(count) - expected["count"]["F"]) / count.std,
                    (float(total) - expected["sum"]["F"]) / total.std,
                ]
            )
    square = np.mean(np.square(scores), axis=0)
    # The fourth moment of the scores is below 6.
    assert (np.abs(square - 1) < 5 * np.sqrt(5 / runs)).all()
    assert (np.abs(np.mean(square) - 1)) < 0.36


def test_means_of_nothing_say_nothing():
    with pytest.warns(UserWarning, match="total of"):
        cube = exact(make(measure="mean", value="pay"), HOLES.iloc[:0])
    result = cube.mean(return_interval=True)
    assert np.isnan(float(result)) and (result.lower, result.upper) == (0, 100)
    assert cube.cuboid("sex")["std_error"].to_list() == [50, 50]


def test_means_far_from_zero_and_special_values():
    domain = Domain(
        {
            "g": Categorical(["a", "b"]),
            "v": Numeric(1_000_000, 1_000_010, special=[1_000_020]),
            "k": Numeric(-3, 5, integer=True),
        }
    )
    rows = pd.DataFrame(
        {
            "g": list("aaabbb?"),
            "v": [1_000_001.25, 1_000_003.5, 1_000_020, 0, np.nan, np.inf, 1_000_005],
            "k": [-2, 4, np.nan, -9, 5.9, 0, 1],
        }
    )

    def of(value):
        cube = DataCube(domain=domain, dimensions="g", measure="mean", value=value)
        return exact(cube, rows).cuboid("g")

    assert of("v")["mean"].to_list() == pytest.approx([1_000_000 + 24.75 / 3, 1_000_005], abs=1e-4)
    assert of("v")["count"].to_list() == pytest.approx([3, 2])
    assert of("k")["mean"].to_list() == pytest.approx([1, 2 / 3], abs=1e-4)


def test_population_intervals_of_means_hold_for_any_spread(means):
    noise = means.mean(return_interval=True)
    wide = means.mean(return_interval=True, interval="population")
    truth = CLIPPED["pay"].dropna()
    assert wide.sampling_std >= truth.std(ddof=0) / np.sqrt(len(truth))
    assert wide.lower < noise.lower


def test_a_dimension_may_be_averaged_too():
    rows = HOLES[["sex", "pay"]]
    domain = DOMAIN.select(["sex", "pay"])
    cube = DataCube(domain=domain, dimensions=["sex", "pay"], measure="mean", value="pay")
    exact(cube, rows)
    table = cube.cuboid("pay")
    low = CLIPPED.loc[CLIPPED["pay"] < 20, "pay"]
    assert table["mean"][0] == pytest.approx(low.mean(), abs=1e-3)


# --- sums -----------------------------------------------------------------------------------------


def test_sums_have_intervals():
    cube = exact(make(measure="sum", value="pay", strategy="bmax", resolution=0.01), HOLES)
    result = cube.sum(query={"sex": "F"}, return_interval=True)
    assert float(result) == pytest.approx(CLIPPED.loc[CLIPPED["sex"] == "F", "pay"].sum(), abs=0.1)
    assert result.std == pytest.approx(cube.cuboid("sex")["std_error"][0])
    assert result.lower > 0
    assert cube.sum(query={"age": 20, "region": "W"}, return_interval=True).lower == 0
    signed = Domain({"g": Categorical(["a"]), "v": Numeric(-5, 10)})
    rows = pd.DataFrame({"g": ["a"], "v": [-1.0]})
    below = exact(DataCube(domain=signed, measure="sum", value="v"), rows)
    assert below.sum(return_interval=True).lower < -1


@pytest.mark.parametrize(
    ("ask", "match"),
    [
        (lambda counts, means, sums: sums.count(), "measure='mean'"),
        (lambda counts, means, sums: sums.mean(), "measure='mean'"),
        (lambda counts, means, sums: sums.sum("age"), "sums of 'pay' only"),
        (lambda counts, means, sums: means.mean("age"), "sums of 'pay' only"),
        (lambda counts, means, sums: counts.mean(), "needs column="),
        (lambda counts, means, sums: counts.mean("sex"), "sex"),
        (lambda counts, means, sums: counts.count({"pay": 3}), "pay"),
        (lambda counts, means, sums: counts.count(level=2), "level"),
        (lambda counts, means, sums: counts.count(interval="population"), "return_interval"),
        (
            lambda counts, means, sums: sums.sum(return_interval=True, interval="population"),
            "how much values vary",
        ),
    ],
)
def test_what_a_cube_does_not_know(ask, match, counts, means):
    sums = make(measure="sum", value="pay", strategy="base").fit(HOLES)
    with pytest.raises(ValueError, match=match):
        ask(counts, means, sums)


def test_unpublished_cuboids_answer_nothing():
    cube = make(max_order=1, strategy="all").fit(ROWS)
    assert np.isfinite(cube.count({"sex": "F"}))
    with pytest.raises(ValueError, match="max_order=1"):
        cube.count({"sex": "F", "age": 25})


# --- persons and engines --------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["sum", "mean"])
def test_sums_at_a_bound_on_the_rows_of_a_person(measure):
    rows = CLIPPED.dropna().assign(who=lambda table: np.arange(len(table)) % 40, pay=50.0)
    most = 2
    cube = make(
        measure=measure,
        value="pay",
        strategy="base",
        privacy_id="who",
        max_rows_per_id=most,
        epsilon=1000 * most,
        resolution=1,
    ).fit(rows)
    assert cube.sum() == pytest.approx(40 * most * 50, rel=0.01)
    # Noise is that of a row, and the loss that of a person.
    single = make(measure=measure, value="pay", strategy="base", epsilon=1000, resolution=1)
    assert cube.plan_.std_error("sex") == single.plan().std_error("sex")
    assert cube.privacy_loss_.epsilon == 2000


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("measure", ["sum", "mean"])
def test_engines_sum_as_memory_does(engine, measure):
    table = pl.from_pandas(HOLES)
    if engine == "polars":
        lazy = table.lazy()
        if not hasattr(lazy, "collect_batches"):
            pytest.skip("this Polars gives no batches, and sums are refused")
    else:
        # Older versions of DuckDB close a connection that nobody holds.
        connection = pytest.importorskip("duckdb").connect()
        lazy = connection.from_arrow(table.to_arrow())

    def release(rows, **params):
        with pytest.warns(InsecureSeedWarning):
            return make(measure=measure, value="pay", random_state=5, **params).fit(rows).sources_

    for params in ({"resolution": 0.01}, {"dimensions": ["sex", "pay"]}):
        here, there = release(HOLES, **params), release(lazy, **params)
        assert here.keys() == there.keys()
        for names, values in here.items():
            np.testing.assert_array_equal(values, there[names])


def test_lazy_frames_are_summed_as_their_rows():
    dd = pytest.importorskip("dask.dataframe")
    rows = HOLES[["sex", "pay"]].astype({"sex": "str"})
    domain = DOMAIN.select(["sex", "pay"])
    cube = DataCube(domain=domain, measure="mean", value="pay", random_state=0)
    found = cube.fit(dd.from_pandas(rows, npartitions=2)).sources_
    for names, table in cube.fit(rows).sources_.items():
        np.testing.assert_array_equal(found[names], table)


def test_expected_errors_of_means():
    found = make(measure="mean", value="pay", strategy="bmax").expected_error(n=1000)
    text = str(found)
    assert "units of pay" in text


# --- statistics as of synopses --------------------------------------------------------------------


def test_statistics_of_dimensions_are_those_of_the_cells(counts):
    table = counts.tables_[("age", "sex", "region")]
    cells = np.indices(table.shape).reshape(3, -1).T
    boxes = skdp.release.Boxes(cells, cells + 1)
    model = skdp.release.BoxModel(boxes, table.ravel(), table.shape)
    synopsis = skdp.Synopsis(counts.domain_, model)
    questions = [
        lambda r: r.std("age", "sex == 'F'"),
        lambda r: r.quantile("age", [0.25, 0.5]),
        lambda r: r.quantile("age", 0.5, "region is null"),
        lambda r: r.proportion("sex == 'F' or region == 'N'", "age >= 30"),
        lambda r: r.aggregate(["region", "sex"], "age").drop(columns=["region", "sex"]),
        lambda r: r.aggregate("age", "age", bands={"age": [20, 40, 60]}).drop(columns="age"),
        lambda r: r.crosstab("region", "sex", "age >= 40"),
    ]
    for asked in questions:
        np.testing.assert_allclose(asked(counts), asked(synopsis), atol=1e-6)


def test_associations_of_dimensions():
    domain = Domain({name: Numeric(0, 4, integer=True) for name in ("a", "b")})
    first = np.arange(300) % 5
    rows = pd.DataFrame({"a": first, "b": (first + np.arange(300) // 200) % 5})
    cube = exact(DataCube(domain=domain, strategy="base"), rows)
    assert cube.covariance("b", "a") == pytest.approx(rows.cov(ddof=0).loc["a", "b"])
    found = cube.correlation("b", "a", return_interval=True)
    assert found.value == pytest.approx(rows.corr().loc["a", "b"])
    assert found.lower < found.value < found.upper


def test_intervals_of_groups_have_the_law_of_the_noise(counts):
    found = counts.aggregate("sex", return_interval=True, level=0.9)
    np.testing.assert_allclose(found["std_error"], counts.cuboid("sex")["std_error"])
    for row in found.itertuples():
        alone = counts.count({"sex": row.sex}, return_interval=True, level=0.9)
        assert (row.lower, row.upper) == pytest.approx((alone.lower, alone.upper))
    crossed = counts.crosstab("sex", "region", return_interval=True)
    tidy = counts.cuboid(["sex", "region"])
    np.testing.assert_allclose(crossed["std_error"].to_numpy().ravel(), tidy["std_error"])
    assert (crossed["lower"] <= crossed["count"]).all(axis=None)


def test_groups_of_a_cube_of_means(means):
    found = means.aggregate("sex", "pay", return_interval=True)
    truth = CLIPPED.groupby("sex")["pay"].agg(["count", "sum", "mean"])
    np.testing.assert_allclose(found[["count", "sum", "mean"]], truth, rtol=1e-3)
    for row in found.itertuples():
        alone = means.mean("pay", {"sex": row.sex}, return_interval=True)
        assert (row.lower, row.upper) == pytest.approx((alone.lower, alone.upper))
    banded = means.aggregate("age", "pay", "sex == 'F'", bands={"age": [20, 40, 60]}, right=False)
    women = CLIPPED[CLIPPED["sex"] == "F"]
    truth = women.groupby(pd.cut(women["age"], [20, 40, 60], right=False), observed=False)["pay"]
    np.testing.assert_allclose(banded["mean"], truth.mean(), rtol=1e-3)
    assert means.aggregate("sex")["count"].sum() == pytest.approx(CLIPPED["pay"].count(), rel=1e-3)


def test_means_of_groups_of_a_cube(means):
    pd.testing.assert_frame_equal(
        means.mean("pay", "age > 30", by="sex", return_interval=True),
        means.aggregate("sex", "pay", "age > 30", return_interval=True),
    )


def test_a_cube_describes_its_dimensions(counts):
    described = counts.describe(level=0.9, numbers=True)
    assert list(described.index) == list(counts.domain_.names)
    assert described.loc["sex", "count"] == pytest.approx(len(ROWS))
    assert described.loc["sex", "count_margin"] > 0
    assert described.attrs["level"] == 0.9


def test_statistics_that_a_cube_has_not(counts, means):
    sums = exact(make(strategy="bmax", measure="sum", value="pay"), HOLES)
    for asked in (
        lambda: sums.aggregate("sex", "pay"),
        lambda: sums.proportion("sex == 'F'"),
        lambda: sums.describe(),
    ):
        with pytest.raises(ValueError, match="measure='mean'"):
            asked()
    with pytest.raises(ValueError, match="no column 'pay'"):
        means.quantile("pay")
    with pytest.raises(ValueError, match="max_order=1"):
        exact(make(max_order=1), ROWS).crosstab("sex", "region")
