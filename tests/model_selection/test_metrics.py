"""Private metrics: exact without noise, intervals that cover, and what odd input costs."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from loops import over
from scored import of_model
from sklearn import metrics as exact
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import skdp
from skdp._random import noise_source
from skdp.model_selection import _metrics, private_score

# Noise of 0 for sure, and bins as many as there can be.
EXACTLY = 1_000_000
rng = np.random.default_rng(0)

N = 3_000
X = rng.normal(size=(2 * N, 3))
Y = (X[:, 0] + rng.normal(size=2 * N) > 0.8).astype(int)
Y3 = np.digitize(X[:, 0] + 0.5 * rng.normal(size=2 * N), [-0.5, 0.8])
REAL = np.clip(X[:, 0] + 0.5 * rng.normal(size=2 * N), -3, 3)
TEST = slice(N, None)
MODEL = LogisticRegression().fit(X[:N], Y[:N])
MODEL3 = LogisticRegression().fit(X[:N], Y3[:N])
REGRESSOR = LinearRegression().fit(X[:N], REAL[:N])
PROBA, PROBA3 = MODEL.predict_proba(X[TEST])[:, 1], MODEL3.predict_proba(X[TEST])
TRUTH, TRUTH3, NUMBERS = Y[TEST], Y3[TEST], REAL[TEST]
GUESS = np.clip(REGRESSOR.predict(X[TEST]), -3, 3)
BOUNDS = (-3, 3)

VALUES = {
    "accuracy": exact.accuracy_score(TRUTH, PROBA > 0.5),
    "f1": exact.f1_score(TRUTH, PROBA > 0.5),
    "roc_auc": exact.roc_auc_score(TRUTH, PROBA),
    "log_loss": exact.log_loss(TRUTH, np.clip(PROBA, 0.001, 0.999)),
    "mean_absolute_error": exact.mean_absolute_error(NUMBERS, GUESS),
}
VALUES3 = {
    "roc_auc": exact.roc_auc_score(TRUTH3, PROBA3, multi_class="ovr"),
    "log_loss": exact.log_loss(TRUTH3, np.maximum(PROBA3, 1e-9)),
}
# What bins hide at most.
HIDDEN = {"roc_auc": 5e-4, "log_loss": 2e-3}


# --- without noise


@over("name", HIDDEN)
def test_metrics_of_probabilities(name):
    found = private_score(TRUTH, PROBA, name, epsilon=EXACTLY)
    assert float(found) == pytest.approx(VALUES[name], abs=HIDDEN[name])
    assert found.lower - 3e-4 <= VALUES[name] <= found.upper + 3e-4
    both = np.column_stack([1 - PROBA, PROBA])
    assert float(private_score(TRUTH, both, name, epsilon=EXACTLY)) == pytest.approx(float(found))
    if name == "roc_auc":
        # Ties count half.
        ties = np.where(PROBA > 0.5, 0.9, 0.1)
        found = private_score(TRUTH, ties, name, epsilon=EXACTLY)
        assert float(found) == pytest.approx(exact.roc_auc_score(TRUTH, ties))
    found = private_score(TRUTH3, pd.DataFrame(PROBA3), name, epsilon=EXACTLY, labels=[0, 1, 2])
    assert float(found) == pytest.approx(VALUES3[name], abs=2 * HIDDEN[name])


def test_balanced_accuracy_of_three_classes():
    guess = PROBA3.argmax(1)
    expected = exact.balanced_accuracy_score(TRUTH3, guess)
    found = private_score(TRUTH3, guess, "balanced_accuracy", epsilon=EXACTLY, labels=[0, 1, 2])
    assert float(found) == pytest.approx(expected)


def test_names_of_scikit_learn_have_its_sign_and_the_ledger_tells_the_metric():
    ledger = skdp.PrivacyLedger(1)
    given = {"domain": BOUNDS, "epsilon": Fraction(1, 2), "random_state": 0, "ledger": ledger}
    lost = private_score(NUMBERS, GUESS, "mean_absolute_error", **given)
    gained = private_score(NUMBERS, GUESS, "neg_mean_absolute_error", **given)
    assert float(gained) == -float(lost) < 0
    assert (gained.lower, gained.upper) == (-lost.upper, -lost.lower)
    named = [f"private_score: {sign}mean_absolute_error" for sign in ("", "neg_")]
    assert ledger.spent == 1 and list(ledger.to_frame()["name"]) == named


@over(
    "metric, score, n, share, epsilon",
    [
        *(("accuracy", share, n, share, epsilon) for n, share, epsilon in (
            (20, 0.9, 0.1), (50, 0.95, 0.2), (1000, 0.97, 0.02), (1000, 0.97, 1.0)
        )),
        ("balanced_accuracy", 0.95, 2000, 0.95, 0.03),
        ("f1", 0.57 / 0.62, 2000, 0.95, 0.03),
    ],
)  # fmt: skip
def test_intervals_near_1_hold_where_noise_is_large(metric, score, n, share, epsilon):
    rng, runs, held = np.random.default_rng(0), 100, 0
    for seed in range(runs):
        truth = rng.random(n) < 0.3
        guess = np.where(rng.random(n) < share, truth, ~truth).astype(int)
        found = private_score(truth.astype(int), guess, metric, epsilon=epsilon, random_state=seed)
        held += found.lower <= score <= found.upper
        assert found.lower < found.upper
    assert held >= 0.88 * runs


def test_scores_tell_their_sampling_error():
    n = len(TRUTH)
    share = VALUES["accuracy"]
    guess = (PROBA > 0.5).astype(int)
    std = np.sqrt(share * (1 - share) / n)
    alone = private_score(TRUTH, guess, "accuracy", epsilon=EXACTLY)
    assert alone.sampling_std == pytest.approx(std, rel=0.05)
    assert alone.upper - alone.value == pytest.approx(1.96 * std, rel=0.1)
    told = private_score(NUMBERS, GUESS, "mean_squared_error", domain=BOUNDS, epsilon=EXACTLY)
    squares = (np.asarray(NUMBERS) - np.asarray(GUESS)) ** 2
    assert told.sampling_std == pytest.approx(squares.std() / np.sqrt(len(squares)), rel=0.01)
    assert "population" in told.guarantee


# --- with noise


@pytest.mark.parametrize("name", ["accuracy", "log_loss", "f1", "mean_absolute_error", "roc_auc"])
def test_intervals_cover_and_the_noise_is_there(name):
    source, runs = noise_source(2), 60
    given = {"metric": name, "epsilon": 0.3, "level": 0.9, "random_state": source}
    value, truth = VALUES[name], TRUTH
    scores = PROBA if name in HIDDEN else (PROBA > 0.5).astype(int)
    if name == "mean_absolute_error":
        truth, scores, given["domain"] = NUMBERS, GUESS, BOUNDS
    found = [private_score(truth, scores, **given) for _ in range(runs)]
    covered = np.mean([one.lower <= value <= one.upper for one in found])
    assert covered > 0.9 - 4 * np.sqrt(0.09 / runs)
    errors = np.array([float(one) for one in found]) - value
    # Quotients of noisy sums have long tails.
    spread = np.subtract(*np.quantile(errors, [0.84, 0.16])) / 2
    assert 0.6 < spread / np.median([one.std for one in found]) < 1.5


def test_intervals_of_whole_scale_where_noise_may_have_made_a_class():
    found = private_score(TRUTH[:40], PROBA[:40], "roc_auc", epsilon=0.1)
    assert (found.lower, found.upper) == (0, 1)


# --- by name


def test_scorers_have_the_names_of_scikit_learn():
    forest = DecisionTreeClassifier(max_depth=3).fit(X[:N], Y[:N])
    tree = DecisionTreeRegressor(max_depth=3).fit(X[:N], REAL[:N])
    for name in {*_metrics._LOSSES} - {"neg_nicv"} | {"roc_auc", "f1", "balanced_accuracy"}:
        errors = name.endswith("_error")
        scorer = of_model(name, epsilon=EXACTLY, domain=BOUNDS if errors else None)
        model, truth = (tree, NUMBERS) if errors else (forest, TRUTH)
        expected = exact.get_scorer(name)(model, X[TEST], truth)
        near = 0.08 if name.startswith("neg_") else 5e-3
        assert scorer(model, X[TEST], truth) == pytest.approx(expected, abs=near), name
    with pytest.raises(TypeError, match="predict_proba"):
        of_model("roc_auc", epsilon=1)(tree, X, Y)
    for bad in (3, ["f1"]):
        with pytest.raises(ValueError, match="one of"):
            of_model(bad, epsilon=1)


def test_rows_of_a_search_add_up_to_the_metric():
    both = np.column_stack([1 - PROBA, PROBA])
    scored = _metrics.Scored(TRUTH, both, {0: 0, 1: 1})
    scores, spread = _metrics.as_metric("log_loss").row_scores(scored)
    assert scores.min() >= -spread and scores.max() <= 0
    assert scores.mean() * np.log(0.001) / spread == pytest.approx(VALUES["log_loss"], abs=1e-4)
    metric = _metrics.as_metric("mean_absolute_error", BOUNDS)
    scores, spread = metric.row_scores(_metrics.Scored(NUMBERS, GUESS, {}))
    assert -scores.mean() * 6 / spread == pytest.approx(VALUES["mean_absolute_error"], abs=1e-4)
