"""Samples with rounded counts: exact bounds, the rules of the domain, seeds, odd sizes."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import over

from skdp.release import Boxes, BoxModel
from skdp.release.rounding import count_records, round_line

SLACK = 1e-6


def generator(seed=0):
    return np.random.default_rng(seed)


# -- lines and tables ------------------------------------------------------------------------------


@settings(max_examples=60)
@given(size=st.integers(1, 40), total=st.integers(0, 500), seed=st.integers(0, 10_000))
def test_counts_of_a_line_and_its_running_sums_are_off_by_less_than_one(size, total, seed):
    rng = generator(seed)
    expected = rng.gamma(0.3, size=size) * (rng.random(size) < 0.7) + (np.arange(size) == 0)
    counts = round_line(expected, total, rng)
    wanted = expected / expected.sum() * total
    assert counts.sum() == total and not counts[expected == 0].any()
    assert (np.abs(counts - wanted) < 1 + SLACK).all()
    assert (np.abs(np.cumsum(counts - wanted)) < 1 + SLACK).all()


def test_counts_of_a_line_are_unbiased():
    expected = np.array([0.1, 1.4, 0.0, 2.2, 0.3])
    rng = generator()
    mean = np.mean([round_line(expected, 4, rng) for _ in range(20_000)], axis=0)
    # Standard errors are at most 0.0036.
    np.testing.assert_allclose(mean, expected, atol=0.025)


# -- models ----------------------------------------------------------------------------------------


@over("n", [0, 1, 7, 400, 5000])
def test_records_are_taken_as_often_as_expected(n):
    rng = generator(n)
    rows = rng.integers(0, (3, 8, 20), (2000, 3)).astype(np.int32)
    weights = rng.gamma(0.5, size=2000) * (rng.random(2000) < 0.9)
    weights[0] += weights.sum() * 1e-4
    features = [rows[:, axis] for axis in range(3)]
    counts = count_records(weights, n, rng.permutation(2000), features, rng)
    expected = n * weights / weights.sum()
    assert counts.sum() == n and not counts[weights == 0].any()
    if n * 8 >= 2000:
        assert (np.abs(counts - expected) < 1 + SLACK).all()
    for feature in features:
        assert np.abs(np.bincount(feature, weights=counts - expected)).max() < 3.5


def test_boxes_get_their_counts_and_sides_theirs():
    rng = generator()
    lower = np.stack(np.meshgrid(np.arange(12), np.arange(15), indexing="ij"), axis=-1)
    lower = 2 * lower.reshape(-1, 2)
    counts = rng.gamma(0.4, size=180) * 10 - 0.5
    model = BoxModel(Boxes(lower, lower + 2), counts, (24, 30))
    for n in (1, 50, 3000):
        codes = model.sample_codes(n, rng, {}, rounded=True)
        expected = np.maximum(counts, 0)
        expected *= n / expected.sum()
        found = np.bincount(codes[:, 0] // 2 * 15 + codes[:, 1] // 2, minlength=180)
        assert np.abs(found - expected).max() < 3
        table = (found - expected).reshape(12, 15)
        assert max(np.abs(table.sum(axis=axis)).max() for axis in (0, 1)) < 5
