"""Bounds of selections hold where they are simulated, and errors are those of the dissertation."""

import numpy as np
import pytest

from skdp._random import noise_source
from skdp.mechanisms import (
    SparseVector,
    exponential_alpha,
    false_negative_rate,
    score_error_rate,
    sparse_vector_alpha,
)


def test_published_bounds_hold():
    n, epsilon, beta, runs = 50, 1.0, 0.2, 400
    source = noise_source(0)
    alpha = sparse_vector_alpha(n, epsilon, beta)
    assert alpha == pytest.approx(8 * np.log(50 * 2 / 0.2))
    stream = np.array([0] * (n - 1) + [2 * int(alpha) + 2])
    wrong = 0
    for _ in range(runs):
        vector = SparseVector(epsilon, int(alpha) + 1, 1, random_state=source)
        wrong += vector.query_many(stream).tolist() != [False] * (n - 1) + [True]
    assert wrong <= beta * runs
    assert exponential_alpha(n, epsilon, beta) == pytest.approx(np.log(49 * 0.8 / 0.2))


def test_errors_by_hand():
    values = np.array([9, 1, 7, 7, 3, 5])
    assert false_negative_rate(values, [0, 3, 2], 3) == 0 == score_error_rate(values, [0, 3, 2], 3)
    assert false_negative_rate(values, [0, 3], 2) == 0
    assert false_negative_rate(values, [1, 4], 3) == 1 == false_negative_rate(values, [], 2)
    assert false_negative_rate(values, [0, 5, 1], 3) == pytest.approx(2 / 3)
    assert score_error_rate(values, [0, 5, 1], 3) == pytest.approx(1 - 15 / 23)
    # The mean of those that were selected, as in the dissertation, however few.
    assert score_error_rate(values, [3], 3) == pytest.approx(1 - 7 * 3 / 23)
    assert score_error_rate(values, [], 3) == 1
    for places, k in (([0, 0], 2), ([0], 7), ([0], 0)):
        with pytest.raises(ValueError, match="k"):
            score_error_rate(values, places, k)
    with pytest.raises(ValueError, match="beta"):
        sparse_vector_alpha(5, 1.0, beta=0)
