"""Scores of records of additive models."""

import numpy as np

from skdp.algorithms.additive import UNIT


def some_scores(n_outputs, n=400, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-40 * UNIT, 40 * UNIT, size=(n, n_outputs))
    return np.concatenate([scores, np.zeros((1, n_outputs), dtype=np.int64), scores // 50])
