"""Linear regression, components and covariances from a release."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import skdp
from skdp import Categorical, Domain, MarginalSynthesizer, Numeric, Synopsis
from skdp.inspection import covariance, linear_regression, pca, regression_workload
from skdp.release import Boxes, BoxModel, KnownNoise


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = 20_000
    age = rng.integers(20, 60, n)
    work = rng.choice(["none", "part", "full"], n, p=[0.2, 0.3, 0.5])
    hours = rng.integers(0, 10, n) + 5 * (work == "full")
    pay = 5 + age / 4 + 2 * (work == "none") - 3 * (work == "part") + hours + rng.normal(0, 4, n)
    return pd.DataFrame({"age": age, "work": work, "hours": hours, "pay": pay})


@pytest.fixture(scope="module")
def domain():
    return Domain(
        {
            "age": Numeric(20, 59, bins=10, integer=True),
            "work": Categorical(["none", "part", "full"]),
            "hours": Numeric(0, 14, bins=5, integer=True),
            "pay": Numeric(0, 40, bins=8),
        }
    )


def exact_synopsis(domain, rows):
    """All cells, without noise."""
    cells = np.array(list(np.ndindex(domain.shape)))
    place = np.ravel_multi_index(domain.encode(rows).T, domain.shape)
    counts = np.bincount(place, minlength=len(cells))
    boxes = Boxes(lower=cells, upper=cells + 1)
    return Synopsis(domain, BoxModel(boxes, counts, domain.shape, KnownNoise(1.0)))


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(1)
    domain = Domain(
        {
            "x": Numeric(0, 3, integer=True),
            "kind": Categorical(["a", "b", "c"]),
            "y": Numeric(0, 4, integer=True),
        }
    )
    cells = np.array(list(np.ndindex(domain.shape)))
    counts = rng.integers(1, 40, len(cells))
    model = BoxModel(Boxes(cells, cells + 1), counts, domain.shape, KnownNoise(1.0))
    return Synopsis(domain, model), np.repeat(cells, counts, axis=0)


def test_without_noise_it_is_least_squares(small):
    synopsis, codes = small
    fit = linear_regression(synopsis, "y", ["x", "kind"])
    exact = np.linalg.lstsq(fit.design(codes), codes[:, 2], rcond=None)[0]
    np.testing.assert_allclose(fit.table["coefficient"], exact, atol=1e-9)
    assert fit.shrinkage == 0.0
    residual = codes[:, 2] - fit.predict(codes)
    assert fit.r_squared == pytest.approx(1 - residual.var() / codes[:, 2].var())
    # As a statistician's table states it, with the number of records as divisor.
    design = fit.design(codes)
    textbook = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * residual.var())
    np.testing.assert_allclose(fit.table["sampling_error"], textbook, rtol=1e-6)


def test_covariance_and_components_without_noise(small):
    synopsis, codes = small
    table = covariance(synopsis)
    assert list(table.columns) == ["x", "y"]
    np.testing.assert_allclose(table, np.cov(codes[:, [0, 2]].T, bias=True), atol=1e-9)
    found = pca(synopsis, scaled=False)
    values = np.linalg.eigvalsh(table)[::-1]
    np.testing.assert_allclose(found.variance, values)
    np.testing.assert_allclose(
        found.components @ table @ found.components.T, np.diag(values), atol=1e-9
    )
    assert found.share.sum() == pytest.approx(1.0)
    assert pca(synopsis).variance.sum() == pytest.approx(2.0)
    assert len(pca(synopsis, n_components=1).to_frame()) == 1
    assert "variance" in repr(found)


def test_categories_have_indicators_of_all_but_the_most_frequent(small):
    synopsis, codes = small
    fit = linear_regression(synopsis, "y", categorical=["x"])
    often = np.bincount(codes[:, 1]).argmax()
    assert fit.references["kind"] == ["a", "b", "c"][often]
    assert len(fit.table) == 1 + 3 + 2
    assert fit.table.index[0] == "(intercept)"


def test_missing_numbers_are_their_mean_and_an_indicator():
    domain = Domain({"x": Numeric(0, 3, integer=True, nullable=True), "y": Numeric(0, 1, bins=2)})
    cells = np.array(list(np.ndindex(domain.shape)))
    counts = np.arange(10, 10 + len(cells))
    model = BoxModel(Boxes(cells, cells + 1), counts, domain.shape, KnownNoise(1.0))
    fit = linear_regression(Synopsis(domain, model), "y")
    assert fit.table.index.tolist() == ["(intercept)", "x", "x is missing"]
    codes = np.repeat(cells, counts, axis=0)
    x = np.where(codes[:, 0] < 4, codes[:, 0], codes[codes[:, 0] < 4, 0].mean())
    np.testing.assert_allclose(fit.design(codes)[:, 1], x)
    with pytest.raises(ValueError, match="can be missing"):
        linear_regression(Synopsis(domain, model), "x")


def test_a_release_gives_coefficients_with_intervals(domain, rows):
    view = MarginalSynthesizer(epsilon=2.0, domain=domain, max_order=2, random_state=0).fit(rows)
    fit = linear_regression(view, "pay")
    codes = domain.encode(rows)
    answers = domain["pay"].means()[codes[:, 3]]
    exact = np.linalg.lstsq(fit.design(codes), answers, rcond=None)[0]
    inside = (fit.table["lower"] <= exact) & (exact <= fit.table["upper"])
    assert inside.mean() >= 0.8
    assert (fit.table["noise_error"] > 0).all()
    np.testing.assert_allclose(fit.table["coefficient"], exact, atol=1.5)
    population = linear_regression(view, "pay", interval="population", level=0.8).table
    np.testing.assert_allclose(
        population["std_error"], np.hypot(population["noise_error"], population["sampling_error"])
    )
    assert "R squared" in repr(fit) and "<table" in fit._repr_html_()


def test_a_column_that_explains_another_fully_is_shrunk(rows):
    twice = rows.assign(again=rows["age"])
    domain = Domain(
        {name: Numeric(0, 60, bins=12) for name in ["age", "again", "pay"]},
    )
    cells = exact_synopsis(domain, twice[["age", "again", "pay"]])
    fit = linear_regression(cells, "pay")
    assert fit.shrinkage > 0
    assert fit.table["coefficient"]["age"] == pytest.approx(fit.table["coefficient"]["again"])


def test_a_category_without_records_has_an_endless_interval():
    domain = Domain({"kind": Categorical(list("abcd")), "y": Numeric(0, 1, bins=2)})
    rows = pd.DataFrame({"kind": list("aabb") * 500, "y": [0.1, 0.9, 0.9, 0.9] * 500})
    fit = linear_regression(exact_synopsis(domain, rows), "y")
    assert fit.table["coefficient"]["kind = d"] == 0.0
    assert fit.table["upper"]["kind = d"] == np.inf


def test_a_release_of_unknown_noise_has_no_standard_errors(domain, rows):
    network = skdp.PrivBayesSynthesizer(epsilon=2.0, domain=domain, random_state=0).fit(rows)
    fit = linear_regression(network, "pay", ["age", "hours"])
    assert fit.table["std_error"].isna().all()
    assert fit.table["coefficient"].notna().all()


def test_more_noise_and_fewer_pairs_give_wider_intervals(small):
    synopsis, _ = small
    narrow = linear_regression(synopsis, "y").table["noise_error"]
    noisier = Synopsis(
        synopsis.domain,
        BoxModel(
            synopsis.model.boxes, synopsis.model.counts, synopsis.domain.shape, KnownNoise(0.25)
        ),
    )
    wide = linear_regression(noisier, "y").table["noise_error"]
    assert (wide > 3 * narrow).all()


def test_workload_of_a_regression(domain):
    pairs = regression_workload(domain, "pay", ["age", "work"])
    assert pairs == {("pay", "age"): 1.0, ("pay", "work"): 1.0, ("age", "work"): 0.3}
    MarginalSynthesizer(domain=domain, max_order=2, workload=pairs)._wanted(domain)
    with pytest.raises(ValueError, match="not columns"):
        regression_workload(domain, "size")


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("work",), "number"),
        (("y",), "not a column"),
        (("pay", ["pay"]), "without the target"),
        (("pay", []), "one or more"),
        (("pay", ["size"]), "not a column"),
    ],
)
def test_wrong_columns_are_refused(domain, rows, arguments, match):
    with pytest.raises(ValueError, match=match):
        linear_regression(exact_synopsis(domain, rows[:50]), *arguments)


def test_other_mistakes(small):
    synopsis, _ = small
    with pytest.raises(TypeError, match="synopsis"):
        linear_regression("y", "y")
    with pytest.raises(ValueError, match="categorical"):
        linear_regression(synopsis, "y", ["x"], categorical=["kind"])
    with pytest.raises(ValueError, match="n_components"):
        pca(synopsis, n_components=3)
    with pytest.raises(ValueError, match="no columns of numbers"):
        covariance(synopsis, [])


@pytest.mark.slow
def test_intervals_cover_least_squares_on_the_same_rows():
    from benchmarks.regression import covered, generated

    table = generated(2)
    shares = [
        covered(release, table, epsilon, seed, 20_000)
        for release in ("label", "workload")
        for epsilon in (0.1, 0.5, 1.0)
        for seed in range(3)
    ]
    assert 0.92 <= np.mean(shares)


def test_a_release_that_says_nothing_says_so():
    domain = Domain({"x": Numeric(0, 9, integer=True), "y": Numeric(0, 9, integer=True)})
    rows = pd.DataFrame({"x": np.arange(300) % 10, "y": np.arange(300) % 7})
    release = skdp.MarginalSynthesizer(0.0001, domain=domain, max_order=2).fit(rows)
    fit = linear_regression(release, "y", ["x"])
    assert np.isinf(fit.table["std_error"]).all()
    assert (fit.table["lower"] == -np.inf).all() and (fit.table["upper"] == np.inf).all()
    assert "too large" in repr(fit)
    median = release.quantile("x", return_interval=True)
    assert (median.lower, median.upper) == (0, 9)
    assert "any value that was declared" in median.guarantee
