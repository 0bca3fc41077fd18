"""Aggregates of the outputs of blocks."""

from fractions import Fraction

import numpy as np

from skdp._random import noise_source
from skdp.algorithms.blocks import AGGREGATES, STEPS, aggregate, aggregate_parts, paid_blocks

HUGE = Fraction(10**9)


def outputs(n=101, seed=0):
    return np.random.default_rng(seed).integers(STEPS // 4, STEPS // 2, (n, 2))


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


def test_the_number_of_blocks_grows_with_that_of_records():
    numbers = [paid_blocks(n, HUGE, noise_source(0)) for n in (0, 100, 10_000, 1_000_000)]
    assert numbers == [2, 16, 251, 3981]
