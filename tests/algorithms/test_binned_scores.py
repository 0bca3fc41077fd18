"""Binned scores: every cell is noised, and a row has parts of one record."""

from fractions import Fraction

import numpy as np

from skdp._random import noise_source
from skdp.algorithms import binned_scores
from skdp.mechanisms import discrete_laplace_variance

# Noise of 0 for sure, and bins as many as there can be.
EXACTLY = 1_000_000
rng = np.random.default_rng(0)


def test_bins_hold_all_rows_and_every_cell_is_noised():
    positions = np.repeat([10, 4_000], [700, 300])
    classes = np.repeat([0, 1, -1], [700, 250, 50])
    found = binned_scores.release_scores(positions, classes, Fraction(EXACTLY), noise_source())
    assert found.counts.sum(axis=1).tolist() == [700, 250]
    assert (np.diff(found.bin_of) >= 0).all() and (np.diff(found.bin_of) <= 1).all()
    assert np.allclose(np.bincount(found.bin_of, weights=found.within), 1)
    assert found.counts[1, found.bin_of[2048] :].sum() == 250
    source = noise_source(3)
    empty = [
        binned_scores.release_scores(positions[:0], classes[:0], Fraction(1), source).counts.ravel()
        for _ in range(180)
    ]
    # Four fifths of epsilon; the kurtosis of 6 gives a relative error of 4%.
    assert abs(np.concatenate(empty).var() / discrete_laplace_variance(Fraction(4, 5)) - 1) < 0.19


def test_a_row_is_divided_into_parts_of_one_record():
    numbers = np.r_[rng.random(1000), 0, 1, np.nan, -5, 7, np.inf]
    first = binned_scores.on_grid(numbers)
    assert first.min() == 0 and first.max() == binned_scores.STEPS
    square = (first * first + binned_scores.STEPS // 2) // binned_scores.STEPS
    parts = np.stack([square, first - square, binned_scores.STEPS - first])
    assert (parts >= 0).all() and (parts.sum(0) == binned_scores.STEPS).all()
    sums = binned_scores.release_parts(numbers, Fraction(EXACTLY) ** 2, noise_source())
    assert np.allclose(sums * binned_scores.STEPS, parts.sum(1), atol=1)
    given = numbers[:0], Fraction(1, 2), noise_source(4)
    noise = np.array([binned_scores.release_parts(*given) for _ in range(400)])
    assert abs(noise.var() / 8 - 1) < 0.3
