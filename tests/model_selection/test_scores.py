"""Scores of predictions."""

import numpy as np
import pytest

from skdp._random import noise_source
from skdp.model_selection import private_score

# --- scores


def test_odd_labels_are_wrong_answers():
    for truth, guess, expected in (
        ([], [], 0.5),
        ([None, float("nan"), "a"], ["a", "a", "a"], 1 / 3),
        # Text that writes a number is that number: one text in a file makes text of all.
        ([1, 2, 3], ["1", "2", "4"], 2 / 3),
        (["x"], ["y"], 0),
    ):
        truth, guess = np.array(truth, dtype=object), np.array(guess, dtype=object)
        score = private_score(truth, guess, "accuracy", epsilon=50)
        assert float(score) == pytest.approx(expected)
    # One text makes objects of numbers: the other labels are the same as before.
    large = np.array([2**53 + 1] * 9)
    for column in (large, large.astype(object)):
        assert float(private_score(column, large - 1, "accuracy", epsilon=50)) == 1


def test_mse():
    truth = np.random.default_rng(1).uniform(0, 4, 5_000)
    guess = truth + 1
    exact = np.mean((np.clip(truth, 0, 5) - np.clip(guess, 0, 5)) ** 2)
    runs, name = 1_500, "mean_squared_error"
    given = {"domain": (0, 5), "epsilon": 1, "level": 0.9, "random_state": noise_source(3)}
    results = [private_score(truth, guess, name, **given) for _ in range(runs)]
    assert np.mean([r.lower <= exact <= r.upper for r in results]) > 0.9 - 4 * 0.0078
    values = np.array([r.value for r in results])
    assert abs(values.mean() - exact) < 5 * values.std() / np.sqrt(runs) + 1e-4
    # Laplace noise of scale 25 on two parts of the sum, and on what is left of the largest sum. The
    # spread is known to 2.7 %; a scale off by 20 % is more than 4 errors away.
    expected = np.sqrt(2) * np.sqrt(2 * (25 - exact) ** 2 + exact**2) / 5_000
    assert 0.88 < values.std() / expected < 1.12
    # Two clipped values, and a missing one is as wrong as can be.
    wild = private_score([1e9, np.nan], [-1e9, 0.0], name, domain=(0, 2), epsilon=500)
    assert float(wild) == pytest.approx(4, rel=0.05)
