"""Scores of predictions."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from skdp import DPKMeans, PrivateStandardScaler
from skdp._random import noise_source
from skdp.algorithms import binned_scores
from skdp.model_selection import PrivateGridSearchCV, private_cross_val_score, private_score

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
        assert float(private_score(truth, guess, "accuracy", epsilon=50)) == pytest.approx(expected)
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


# --- squared distances to centres


RNG = np.random.default_rng(4)
POINTS = np.concatenate([RNG.normal(m, 0.3, (1_500, 2)) for m in (1.0, 6.0)])


def clusters(k=2, **options):
    return DPKMeans(k, epsilon=20, domain=(0, 8), random_state=0, **options).fit(POINTS[::2])


def test_nicv_is_the_mean_squared_distance_to_the_nearest_centre():
    model, rows = clusters(), POINTS[1::2]
    exact = -model.score_samples(rows).mean()
    found = private_score(rows, model, "nicv", epsilon=20)
    assert float(found) == pytest.approx(exact, abs=0.02)
    assert found.lower <= exact <= found.upper
    assert float(private_score(rows, model, "neg_nicv", epsilon=20)) < 0
    # A far value is cut at the corner that is farthest, and a missing one counts as much.
    for odd in (1e9, np.nan):
        far = np.full((len(rows), 2), odd)
        assert float(private_score(far, model, "nicv", epsilon=20)) == pytest.approx(
            model._farthest_squared(), rel=0.01
        )
    corners = np.array([[x, y] for x in (0, 8) for y in (0, 8)])
    assert (-model.score_samples(corners)).max() <= model._farthest_squared()


def test_a_record_moves_what_is_released_for_nicv_by_one(monkeypatch):
    model, released = clusters(), []

    def watch(values, epsilon, sensitivity, random_state=None):
        released.append((np.array(values), sensitivity))
        return values

    monkeypatch.setattr(binned_scores, "discrete_laplace", watch)
    rows = np.concatenate([POINTS[:20], [[np.nan, 1.0], [1e9, -1e9], [np.inf, 0.0]]])
    for left_out in range(len(rows)):
        for kept in (rows, np.delete(rows, left_out, axis=0)):
            private_score(kept, model, "nicv", epsilon=1)
        (with_it, reach), (without, _) = released[-2:]
        assert np.abs(with_it - without).sum() == reach == binned_scores.STEPS


def test_nicv_validates_and_searches_pipelines():
    scaler = PrivateStandardScaler(epsilon=5, domain=(0, 8))
    model = make_pipeline(scaler, DPKMeans(2, epsilon=5, domain=(-4.0, 4.0)))
    score = private_cross_val_score(model, POINTS, None, metric="nicv", epsilon=5, cv=2)
    assert 0 < float(score) < 0.5
    grid = {"dpkmeans__n_clusters": [1, 2]}
    search = PrivateGridSearchCV(model, grid, metric="nicv", epsilon=5).fit(POINTS)
    assert search.best_params_ == {"dpkmeans__n_clusters": 2}
