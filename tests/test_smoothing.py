"""Smooth counts of bins on a scale: nearer to the truth than the noisy ones, and never far off."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skdp.kernels.pairviews import pair_views, pair_views_parts, single_views
from skdp.kernels.pairviews.smoothing import FEWEST_BINS, smooth_counts

from skdp import Domain, MarginalSynthesizer, Numeric
from skdp.domain import Zeros
from skdp.hierarchy import project_to_simplex
from skdp.mechanisms import discrete_laplace
from skdp.rows import CountTable

N = 20_000
# The noise of one of 50 columns at epsilon 1.
STD, EPSILON = 132.0, Fraction(107, 10_000)
INCOME = Numeric(0, 30, scale="log")


def counts_of(values, attribute=INCOME):
    return np.bincount(attribute._encode(values), minlength=attribute.bins).astype(float)


def fits(exact, n_columns=60, std=STD, epsilon=EPSILON, seed=0, widths=None):
    """Noisy, projected and smooth counts of many measurements."""
    n = exact.sum()
    noisy = discrete_laplace(
        np.tile(exact, (n_columns, 1)).astype(np.int64), epsilon, random_state=seed
    ).astype(float)
    widths = np.ones(noisy.shape) if widths is None else np.tile(widths, (n_columns, 1))
    smooth = smooth_counts(noisy, np.full(n_columns, n), np.full(n_columns, std), widths)
    assert (smooth >= 0).all()
    np.testing.assert_allclose(smooth.sum(axis=1), n)
    return noisy, np.array([project_to_simplex(each, n) for each in noisy]), smooth


def distance(views, exact):
    """Mean total variation."""
    return np.abs(views - exact).sum(axis=1).mean() / 2 / max(exact.sum(), 1)


def shape(name, rng):
    if name.startswith("log-normal"):
        return rng.lognormal(0, float(name.split()[1]), N)
    if name == "exponential":
        return rng.exponential(2, N)
    if name == "uniform":
        return rng.uniform(0, 30, N)
    if name == "power law":
        return (rng.pareto(1.8, N) + 1) / 2
    if name == "two":
        return np.where(
            rng.random(N) < 0.7, rng.lognormal(-1.2, 0.4, N), rng.lognormal(1.6, 0.4, N)
        )
    assert name == "round"
    return np.where(rng.random(N) < 0.6, rng.choice([0.5, 1, 2, 5, 10], N), rng.lognormal(0, 1, N))


@pytest.mark.parametrize(
    "name",
    ["log-normal 0.5", "log-normal 1", "log-normal 1.5", "exponential", "uniform", "power law"]
    + ["two", "round"],
)
def test_smooth_counts_are_nearer_to_the_truth(name):
    exact = counts_of(shape(name, np.random.default_rng(1)))
    _, plain, smooth = fits(exact)
    assert distance(smooth, exact) < 0.85 * distance(plain, exact)
    truth = exact @ INCOME.means() / N
    errors = [views @ INCOME.means() / N / truth - 1 for views in (plain, smooth)]
    rms = [np.sqrt(np.mean(each**2)) for each in errors]
    assert rms[1] < 1.1 * rms[0]


def test_means_of_log_normal_columns():
    # Noise in empty bins raises the mean of the projected counts by 5 percent; one in six smooth
    # means is off by more than 6 percent, and the median of ten by 2.
    errors = []
    for seed in range(8):
        exact = counts_of(np.random.default_rng(seed).lognormal(0, 1, N))
        _, _, smooth = fits(exact, 10, seed=seed)
        errors.append(smooth @ INCOME.means() / (exact @ INCOME.means()) - 1)
    assert np.sqrt(np.mean(np.square(errors))) < 0.085
    assert abs(np.mean(errors)) < 0.025
    assert (np.abs(np.median(errors, axis=1)) < 0.05).all()


def test_values_beyond_the_range_stay_in_the_last_bin():
    exact = counts_of(np.random.default_rng(0).lognormal(0, 1.5, N))
    assert exact[-1] > 1.3 * exact[-2]
    _, _, smooth = fits(exact)
    assert smooth[:, -1].mean() == pytest.approx(exact[-1], rel=0.35)


def test_spikes_survive():
    exact = counts_of(shape("round", np.random.default_rng(0)))
    round_values = INCOME._encode(np.array([0.5, 1, 2, 5, 10]))
    noisy, _, smooth = fits(exact)
    assert np.abs(smooth[:, round_values] - exact[round_values]).mean() < 1.2 * STD
    # A single value, inside and at the ends of the range.
    for code in (0, 11, 31):
        one = np.zeros(32)
        one[code] = N
        _, plain, smooth = fits(one)
        assert distance(smooth, one) <= distance(plain, one)
        assert distance(smooth, one) < 0.01


@pytest.mark.parametrize("name", ["log-normal 1", "round", "power law", "two"])
def test_little_noise_leaves_the_measured_counts(name):
    exact = counts_of(shape(name, np.random.default_rng(2)))
    for epsilon, std in ((Fraction(3), 0.33), (Fraction(100), 0.0)):
        noisy, _, smooth = fits(exact, 5, std, epsilon)
        assert np.abs(smooth - exact).max() <= 5 + 2 * np.abs(noisy - exact).max()


def test_no_records_and_few():
    for exact in (np.zeros(32), np.eye(32)[3] * 100):
        noisy, plain, smooth = fits(exact)
        assert np.isfinite(smooth).all()
        if not exact.any():
            assert (smooth == 0).all()
    # Totals that say nothing of a shape.
    np.testing.assert_array_equal(plain, smooth)


def test_widths_of_bins_do_not_look_like_noise():
    # Bins of 1, 2, 5, 10, ...: every third is wider by another ratio.
    amounts = Numeric(edges=[m * 10.0**k for k in range(-2, 3) for m in (1, 2, 5)] + [1000.0])
    exact = counts_of(np.random.default_rng(0).lognormal(0, 1.5, N), amounts)
    widths = amounts.contents.widths()
    _, plain, smooth = fits(exact, widths=widths)
    _, _, unaware = fits(exact)
    assert distance(smooth, exact) < distance(unaware, exact) < distance(plain, exact)


@given(
    st.lists(st.integers(-(10**7), 10**7), min_size=FEWEST_BINS, max_size=20),
    st.integers(0, 10**7),
    st.floats(0, 1e4),
)
def test_anything_is_answered(counts, total, std):
    noisy = np.array([counts], dtype=float)
    smooth = smooth_counts(noisy, np.array([float(total)]), np.array([std]), np.ones(noisy.shape))
    assert (smooth >= 0).all()
    np.testing.assert_allclose(smooth.sum(), total, rtol=1e-9)


def test_only_bins_of_columns_with_widths_are_smoothed():
    rng = np.random.default_rng(0)
    rows = np.stack([INCOME._encode(rng.lognormal(0, 1, N))] * 3, axis=1)
    rows[:2000] = 32  # a special value
    table = CountTable.from_codes(rows.astype(np.int32), (33, 33, 33))
    arguments = (table, Fraction(1, 30), N, Fraction(1, 20), [np.arange(33)] * 3)
    widths = np.append(np.ones(32), np.nan)
    plain, total = single_views(*arguments, random_state=0)
    views, same = single_views(*arguments, widths={0: widths}, random_state=0)
    assert total == same
    assert (views[1] == plain[1]).all()
    assert views[0][32] == plain[0][32]
    exact = table.dense((0,))
    assert np.abs(views[0] - exact).sum() < 0.8 * np.abs(plain[0] - exact).sum()


def test_bins_that_rules_forbid_hold_nothing():
    rng = np.random.default_rng(0)
    income = INCOME._encode(rng.lognormal(0, 1, N))
    codes = np.stack([income, rng.integers(0, 2, N)], axis=1)
    codes = codes[(income > 2) & (income != 20)].astype(np.int32)
    allowed = ~np.isin(np.arange(33), [0, 1, 2, 20])[:32]
    model = pair_views(
        CountTable.from_codes(codes, (32, 2)),
        pair_views_parts(Fraction(1, 10), (32, 2), 0),
        zeros=[Zeros((0,), allowed)],
        widths={0: np.ones(32)},
        random_state=0,
    )
    assert (model.density.marginals[0][~allowed] == 0).all()


def test_means_of_a_release():
    rng = np.random.default_rng(0)
    medians = 10 ** rng.uniform(0, 4, 30)
    data = pd.DataFrame(medians * rng.lognormal(0, 1, (N, 30))).rename(columns="c{}".format)
    domain = Domain(
        {
            f"c{i}": Numeric(0, 30 * m, scale="log", nullable=i % 2 == 0, decimals=2)
            for i, m in enumerate(medians)
        }
    )
    release = MarginalSynthesizer(0.6, domain=domain, random_state=0).fit(data)
    errors = np.array([release.mean(name) / data[name].mean() - 1 for name in data])
    assert np.sqrt(np.mean(errors**2)) < 0.09
    assert abs(errors.mean()) < 0.05
