"""Private means, spreads and quantiles."""

import numpy as np
import pandas as pd
import pytest
from loops import over

import skdp

N = 4_000
RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(40, 5, N), "b": RNG.uniform(0, 100, N)})


def test_scaler_finds_means_and_spreads():
    scaler = skdp.PrivateStandardScaler(epsilon=20, domain=(0, 100)).fit(X)
    np.testing.assert_allclose(scaler.mean_, X.mean(), atol=0.5)
    np.testing.assert_allclose(scaler.scale_, X.std(), rtol=0.1)
    np.testing.assert_allclose(scaler.inverse_transform(scaler.transform(X)), X, atol=1e-9)
    assert scaler.get_feature_names_out().tolist() == ["a", "b"]


def test_what_the_scaler_gives_has_a_public_range():
    scaler = skdp.PrivateStandardScaler(epsilon=20, domain=(0, 100), clip=2.5).fit(X)
    extreme = pd.DataFrame({"a": [-1e308, np.inf, 40.0, np.nan], "b": [1e9, 50.0, -np.inf, 50.0]})
    for rows in (X, extreme):
        scaled = scaler.transform(rows)
        assert np.nanmax(np.abs(scaled)) == 2.5
    assert np.isnan(scaled).sum() == 1


PEOPLE = X.assign(who=np.arange(N) // 2)


@over("kind", [skdp.PrivateStandardScaler, skdp.PrivateQuantileClipper])
def test_so_many_rows_of_each_person_count(kind):
    persons = {"privacy_id": "who", "max_rows_per_id": 2}
    model = kind(epsilon=40, domain=(0, 100), **persons).fit(PEOPLE)
    alone = kind(epsilon=20, domain=(0, 100)).fit(X)
    ends = ("mean_", "scale_") if kind is skdp.PrivateStandardScaler else ("lower_", "upper_")
    for name in ends:
        np.testing.assert_allclose(getattr(model, name), getattr(alone, name), rtol=0.2)
    assert model.privacy_loss_.max_rows_per_id == 2
    assert model.get_feature_names_out().tolist() == ["a", "b"]
    # The person is no feature, whether new rows have it or not.
    assert np.array_equal(model.transform(PEOPLE), model.transform(X))
    # A person with all rows, whose values are far from the others', hardly counts.
    heavy = PEOPLE.assign(who=np.where(PEOPLE["b"] > 50, -1, PEOPLE["who"]))
    found = kind(epsilon=40, domain=(0, 100), **persons).fit(heavy)
    assert (found.mean_[1] < 30) if ends[0] == "mean_" else (found.upper_[1] < 60)


def test_clipper_finds_quantiles():
    clipper = skdp.PrivateQuantileClipper(
        epsilon=4, domain=(-1000, 1000), quantiles=(0.05, 0.95)
    ).fit(X)
    grid = 2000 / 512
    np.testing.assert_allclose(clipper.lower_, X.quantile(0.05), atol=2 * grid)
    np.testing.assert_allclose(clipper.upper_, X.quantile(0.95), atol=2 * grid)
    assert clipper.transform(X).min(axis=0).tolist() == clipper.lower_.tolist()


@over("high", [300, 10**5, 10**8, 1e300])
def test_wide_bounds_cost_little(high):
    rows = np.random.default_rng(2).normal(50, 5, (20_000, 1))
    clipper = skdp.PrivateQuantileClipper(epsilon=1, domain=(-high, high), random_state=3).fit(rows)
    # Steps of the line.
    finest = high * 2.0**-30
    assert clipper.lower_[0] == pytest.approx(38.4, abs=4 + 2 * finest)
    assert clipper.upper_[0] == pytest.approx(61.6, abs=4 + 2 * finest)
