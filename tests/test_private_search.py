"""Searches: what is refused before the charge, what is hidden, and choices by log-likelihood."""

from __future__ import annotations

import math
import threading
import warnings

import numpy as np
import pytest
from searched import X, Y, model
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import DataConversionWarning
from sklearn.frozen import FrozenEstimator

import skdp
from skdp.model_selection import (
    PrivateGridSearchCV,
    _metrics,
    make_private_scorer,
    private_cross_val_score,
)

CONSTANTS = [DummyClassifier(strategy="constant", constant=label) for label in ("high", "low")]
RELEASES = {"synthesizer__epsilon": [0.5, 1]}


@pytest.fixture(autouse=True)
def classes_here_are_a_librarys(monkeypatch):
    """What a user wrote may not stand behind a release; the classes of these tests may."""
    monkeypatch.setattr("skdp._pipelines.is_installed", lambda module: True)


def test_a_warning_that_is_an_error_costs_nothing():
    """Of what is known before the charge; it used to end the search after it."""
    ledger = skdp.PrivacyLedger()
    search = PrivateGridSearchCV(model(), RELEASES, ledger=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataConversionWarning, match="column-vector"):
            search.fit(X, Y.to_numpy()[:, None])
        search.set_params(estimator=model(random_state=0))
        with pytest.raises(skdp.InsecureSeedWarning):
            search.fit(X, Y)
    assert ledger.spent == 0


def test_warnings_of_candidates_end_no_search():
    search = PrivateGridSearchCV(model(1_000), {"estimator": CONSTANTS})
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("error")
        search.fit(X[:0], Y[:0])
    assert hasattr(search, "best_estimator_")
    assert seen


TINY = np.array([[0.2], [0.8]] * 20), ["low", "high"] * 20


class First(ClassifierMixin, BaseEstimator):
    """Predicts the first label."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


def frozen():
    """A model of a release that was made earlier: clones hold the same object."""
    domain = skdp.Domain({"x0": skdp.Numeric(0, 1, bins=2), "y": skdp.Categorical(["low", "high"])})
    release = skdp.GridSynthesizer(epsilon=9.0, domain=domain, target="y").fit(*TINY)
    return skdp.PrivateClassifier(First(), FrozenEstimator(release), n_samples=30), release


def test_an_estimator_that_cannot_be_copied_costs_nothing():
    ledger = skdp.PrivacyLedger()
    private, release = frozen()
    release.lock = threading.Lock()
    with pytest.raises(TypeError, match="cannot be copied"):
        private_cross_val_score(private, *TINY, epsilon=1, ledger=ledger)
    assert ledger.spent == 0


class Panic(BaseException):
    pass


ERRORS = {error.__name__: error for error in (Panic, SystemExit)}


class Panics(First):
    """Raises on a release what is not an Exception, as Polars does."""

    def __init__(self, error="SystemExit"):
        self.error = error

    def fit(self, X, y):
        if len(X) > 500:
            raise ERRORS[self.error](f"a secret: {len(X)}")
        return super().fit(X, y)


def test_an_error_of_training_keeps_the_release():
    with pytest.raises(skdp.exceptions.TrainingError) as raised:
        model().set_params(estimator=Panics("Panic")).fit(X, Y)
    assert raised.value.synthesizer is not None


# ------------------------------------------------------------------------------- log-likelihoods

TABLE = skdp.Domain({"a": skdp.Categorical(range(4)), "b": skdp.Categorical(range(3))})
ROWS = np.array([[0, 0]] * 600 + [[1, 2]] * 200 + [[3, 1]] * 200)


@pytest.mark.parametrize(
    "synthesizer",
    [
        skdp.MarginalSynthesizer,
        skdp.PrivBayesSynthesizer,
        skdp.HDPViewSynthesizer,
        skdp.PrivTreeSynthesizer,
        skdp.KDTreeSynthesizer,
        skdp.GridSynthesizer,
    ],
)
def test_the_score_of_a_release_is_the_mean_log_likelihood_of_rows(synthesizer):
    release = synthesizer(epsilon=1e6, domain=TABLE, random_state=0).fit(ROWS)
    with pytest.warns(skdp.PrivacyLeakWarning, match="log_likelihood"):
        score = release.score(ROWS)
    share = release.synopsis_.view(["a", "b"]) / release.synopsis_.total
    floor = -math.log(release.synopsis_.total + 1) - math.log(12)
    asked = np.array([[0, 0], [3, 1], [2, 2], [9, 0]])
    found = release.score_samples(asked)
    expected = [np.log(max(share[row], np.exp(floor))) for row in [(0, 0), (3, 1), (2, 2)]]
    np.testing.assert_allclose(found, [*expected, floor], rtol=1e-6)
    # A row has the same value in the same place, whatever the others are.
    assert release.score_samples(asked[[0, 3, 3, 3]])[0] == found[0]
    assert score == pytest.approx(release.score_samples(ROWS).mean())


def test_a_search_compares_releases_by_log_likelihood_without_labels():
    ledger = skdp.PrivacyLedger(100)
    release = skdp.HDPViewSynthesizer(domain=TABLE, ledger=ledger)
    search = PrivateGridSearchCV(
        release,
        {"epsilon": [0.001, 8.0]},
        metric="log_likelihood",
        bounds=(-10, 0),
        epsilon=4,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(ROWS)
    assert search.best_params_ == {"epsilon": 8.0}
    assert ledger.spent == search.privacy_loss_.epsilon


def test_a_private_log_likelihood_is_near_the_exact_one_and_needs_its_range():
    release = skdp.HDPViewSynthesizer(epsilon=8.0, domain=TABLE, random_state=0).fit(ROWS)
    scorer = make_private_scorer("log_likelihood", epsilon=100, bounds=(-10, 0))
    assert scorer(release, ROWS) == pytest.approx(release.score_samples(ROWS).mean(), abs=0.01)
    with pytest.raises(ValueError, match="log-likelihood of a row"):
        make_private_scorer("log_likelihood", epsilon=1)
    with pytest.raises(TypeError, match="score_samples"):
        scorer(DummyClassifier().fit(ROWS, ROWS[:, 0]), ROWS)
    with pytest.raises(ValueError, match="requires y"):
        PrivateGridSearchCV(release, {"epsilon": [1]}).fit(ROWS)


def test_one_row_moves_the_sums_of_log_likelihoods_by_at_most_their_range():
    metric = _metrics.as_metric("log_likelihood", (-10, 0))
    logs = np.array([-1e9, -10.0, -4.2, 0.0, np.nan, 3.0])
    scores, spread = metric.row_scores(_metrics.Scored(logs, logs, {}))
    assert scores.max() <= 0 and scores.min() == -spread and scores[4] == -spread
