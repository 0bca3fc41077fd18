"""Sample and aggregate: aggregates of the outputs of blocks, and the estimator."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import skdp
from skdp._random import noise_source
from skdp.exceptions import InsecureSeedWarning
from skdp.kernels.blocks import AGGREGATES, STEPS, aggregate, aggregate_parts, paid_blocks

HUGE = Fraction(10**9)


@pytest.fixture(autouse=True)
def _quiet():
    warnings.simplefilter("ignore", InsecureSeedWarning)


def outputs(n=101, seed=0):
    return np.random.default_rng(seed).integers(STEPS // 4, STEPS // 2, (n, 2))


@pytest.mark.parametrize("how", AGGREGATES)
@pytest.mark.parametrize("counted", [False, True])
def test_parts_sum_to_epsilon(how, counted):
    parts = aggregate_parts(Fraction(1, 3), how, counted)
    assert sum(parts.values()) == Fraction(1, 3)
    assert ("total" in parts) == counted
    assert ("limits" in parts) == (how == "winsorised")


def test_without_noise_they_are_what_they_are_called():
    values = outputs()
    found = {
        how: aggregate(values, how, aggregate_parts(HUGE, how, False), noise_source(0))
        for how in AGGREGATES
    }
    np.testing.assert_allclose(found["mean"].values, values.mean(axis=0), atol=1)
    np.testing.assert_allclose(found["median"].values, np.median(values, axis=0), atol=1)
    np.testing.assert_allclose(found["winsorised"].values, values.mean(axis=0), atol=1)
    low, high = np.quantile(values, [0.25, 0.75], axis=0)
    np.testing.assert_allclose(found["winsorised"].limits[:, 1], high + 2 * (high - low), rtol=0.05)
    assert np.isnan(found["median"].stds).all()


def test_the_winsorised_mean_leaves_out_outliers():
    values = np.full((100, 1), STEPS // 2)
    values[:5] = STEPS
    parts = aggregate_parts(HUGE, "winsorised", False)
    found = aggregate(values, "winsorised", parts, noise_source(0))
    assert abs(found.values[0] - STEPS // 2) <= 1


def test_the_stated_noise_is_the_noise():
    values = np.full((20, 1), STEPS // 2)
    parts = aggregate_parts(Fraction(2), "mean", False)
    found = [aggregate(values, "mean", parts, noise_source(seed)) for seed in range(2_000)]
    seen = np.std([each.values[0] for each in found])
    # The standard error of the standard deviation of 2,000 draws is 2.5%.
    assert abs(seen / found[0].stds[0] - 1) < 0.1


def test_the_number_of_blocks_grows_with_that_of_records():
    numbers = [paid_blocks(n, HUGE, noise_source(0)) for n in (0, 100, 10_000, 1_000_000)]
    assert numbers == [2, 16, 251, 3981]


# --- the estimator


def line(n=4_000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, X @ [1.0, -0.5] + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("how", AGGREGATES)
def test_coefficients_are_found(how):
    model = skdp.SampleAggregate(
        LinearRegression(), 4.0, ([-2, -2], [2, 2]), 200, aggregate=how, random_state=0
    ).fit(*line())
    np.testing.assert_allclose(model.value_, [1.0, -0.5], atol=0.1)
    assert model.n_blocks_ == 200
    assert model.n_features_in_ == 2


def test_any_estimator_and_any_output():
    X, y = line()
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    model = skdp.SampleAggregate(
        pipeline, 8.0, (0, 1), 40, output=lambda fitted: fitted.score(X[:50], y[:50] > 0),
        random_state=0,
    ).fit(X, y > 0)  # fmt: skip
    assert isinstance(model.value_, float)
    assert model.value_ > 0.8
    grid = skdp.SampleAggregate(
        StandardScaler(), 8.0, (np.full((2,), -1), np.full((2,), 1)), output="mean_", random_state=0
    ).fit(X)
    assert grid.value_.shape == (2,)
    assert np.abs(grid.value_).max() < 0.3


class Odd(BaseEstimator):
    """Raises, answers something else, or a value that is not a number."""

    def __init__(self, way="raises"):
        self.way = way

    def fit(self, X, y=None):
        if self.way == "raises":
            raise MemoryError(f"the largest is {np.max(X)}")
        warnings.warn(f"the largest is {np.max(X)}", stacklevel=1)
        self.end_ = {"shape": np.zeros(3), "nan": np.nan, "text": "?", "inf": np.inf}[self.way]
        return self


@pytest.mark.parametrize(
    ("way", "expected"), [("raises", 1), ("shape", 1), ("nan", 1), ("text", 1), ("inf", 1)]
)
def test_a_block_that_fails_is_the_middle_and_nothing_is_told(way, expected, capsys):
    model = skdp.SampleAggregate(Odd(way), 1000.0, (-2, 4), 5, output="end_", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", InsecureSeedWarning)
        model.fit(np.ones((30, 1)))
    assert model.value_ == pytest.approx(expected, abs=0.1)
    assert capsys.readouterr() == ("", "")


def test_an_empty_table_and_one_class():
    model = skdp.SampleAggregate(LogisticRegression(), 1000.0, ([[-1]], [[3]]), 4, random_state=0)
    assert model.fit(np.zeros((0, 1)), np.zeros(0)).value_[0, 0] == pytest.approx(1, abs=0.1)
    assert model.fit(np.ones((9, 1)), np.zeros(9)).value_[0, 0] == pytest.approx(1, abs=0.1)


def test_rehearsals_show_errors_and_cost_nothing():
    ledger = skdp.PrivacyLedger()
    model = skdp.SampleAggregate(LinearRegression(), 1.0, ([-2, -2], [2, 2]), ledger=ledger)
    np.testing.assert_allclose(model.rehearse(*line(50)), [1.0, -0.5], atol=0.1)
    with pytest.raises(ValueError, match="shape"):
        model.set_params(output="intercept_").rehearse(*line(50))
    with pytest.raises(MemoryError):
        skdp.SampleAggregate(Odd(), 1.0, (0, 1)).rehearse(np.ones((3, 1)))
    assert ledger.spent == 0


def test_the_parts_of_the_estimator_get_seeds():
    X, y = line(300)
    tree = DecisionTreeClassifier(max_features=1, max_depth=1)
    model = skdp.SampleAggregate(
        tree, 1000.0, (0, 1), 3, output=lambda fitted: fitted.feature_importances_[0],
        random_state=0,
    )  # fmt: skip
    assert model.fit(X, y > 0).value_ == model.fit(X, y > 0).value_
    assert tree.random_state is None


@pytest.mark.parametrize(
    ("params", "error", "match"),
    [
        ({"output_range": None}, skdp.DomainError, "output_range is required"),
        ({"output_range": (1, 0)}, skdp.DomainError, "low < high"),
        ({"output_range": (0, np.inf)}, skdp.DomainError, "finite"),
        ({"output_range": (-np.inf, np.inf)}, skdp.DomainError, "finite"),
        ({"output_range": ([0, 0], [1, 1, 1])}, skdp.DomainError, "one shape"),
        ({"output_range": 3}, skdp.DomainError, "pair"),
        ({"n_blocks": 1}, ValueError, "n_blocks"),
        ({"n_blocks": 2.5}, TypeError, "n_blocks"),
        ({"aggregate": "mode"}, ValueError, "aggregate"),
        ({"estimator": LinearRegression}, TypeError, "estimator"),
        ({"estimator": None}, TypeError, "estimator"),
        ({"output": 3}, TypeError, "output"),
    ],
)
def test_wrong_parameters_cost_nothing(params, error, match):
    ledger = skdp.PrivacyLedger()
    given = {"estimator": LinearRegression(), "output_range": (0, 1), "ledger": ledger, **params}
    with warnings.catch_warnings(), pytest.raises(error, match=match):
        warnings.simplefilter("error", RuntimeWarning)  # NumPy's, beside the error.
        skdp.SampleAggregate(**given).fit(*line(20))
    assert ledger.spent == 0


def test_labels_are_required_where_the_estimator_wants_them():
    ledger = skdp.PrivacyLedger()
    model = skdp.SampleAggregate(LinearRegression(), 1.0, (0, 1), ledger=ledger)
    X, y = line(20)
    with pytest.raises(ValueError, match="requires y"):
        model.fit(X)
    with pytest.raises(ValueError, match="same number of rows"):
        model.fit(X, y[:-1])
    assert ledger.spent == 0
