"""Searches: what is refused before the charge, and what is hidden."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from loops import over
from searched import SQUARE, N, X, Y, model
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import DataConversionWarning
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import skdp
from skdp._random import recording
from skdp.audit._tapes import Alignment, Recorder
from skdp.model_selection import PrivateGridSearchCV, private_cross_val_score


def compared(search, X, y):
    """Scores, rate of the noise and range of the noisy maximum by which a search chooses."""
    tape = Recorder(0, "exact", Alignment((X, y), (X, y)))
    with recording(tape):
        search.fit(X, y)
    (call,) = (call for call in tape.calls if "best_of" in call.site and call.shape)
    assert call.mechanism == "selection"
    return call.values, *call.public[:2]


# --- choosing


def test_search_shares_one_release_and_charges_once():
    ledger = skdp.PrivacyLedger(1.5)
    search = PrivateGridSearchCV(
        model(1, ledger=ledger), {"estimator__max_depth": [1, 2, 3, 4]}, epsilon=0.5
    )
    search.fit(X, Y)
    assert ledger.spent == search.privacy_loss_.epsilon == Fraction(3, 2)
    assert dict(search.privacy_loss_.parts) == {"fits": 1, "choice": Fraction(1, 2)}
    assert search.best_params_ == {"estimator__max_depth": search.best_index_ + 1}
    assert search.score(X, Y) > 0.85
    assert search.predict_proba(X).shape == (N, 2)
    assert search.classes_.tolist() == ["high", "low"]
    with pytest.raises(skdp.BudgetExceededError):
        clone(search).fit(X, Y)


def test_search_chooses_by_noisy_max_over_numbers_of_correct_rows():
    grid = {
        "estimator": [DummyClassifier(strategy="constant", constant=c) for c in ("high", "low")]
    }
    search = PrivateGridSearchCV(model(), grid, epsilon=Fraction(1, 4))
    scores, rate, score_range = compared(search, X, Y)
    assert scores.tolist() == [(Y == "high").sum(), (Y == "low").sum()]
    assert (rate, score_range) == (Fraction(1, 4), 1)


def test_scores_move_together_by_at_most_the_range():
    release = skdp.MarginalSynthesizer(epsilon=1, domain=SQUARE.select(["a"]))
    base = skdp.PrivateRegressor(DummyRegressor(), release, target_range=(0, 2))
    constants = [DummyRegressor(strategy="constant", constant=c) for c in (0.0, 1.0, 5.0)]
    search = PrivateGridSearchCV(
        base, {"estimator": constants}, metric="mean_squared_error", domain=(0, 2), epsilon=1
    )
    (more, _, width), (fewer, _, _) = (
        compared(search, X[["a"]][rows], 2 * X["a"][rows]) for rows in (slice(None), slice(1, None))
    )
    moved = np.subtract(fewer, more)
    assert moved.min() >= 0 and moved.max() <= width and moved.max() > width / 50


# --- regressors


def test_a_search_on_a_frozen_release_pays_for_the_choice_only():
    ledger = skdp.PrivacyLedger(1)
    release = skdp.HDPViewSynthesizer(
        epsilon=1.0, domain=SQUARE.with_attribute("label", skdp.Categorical(["high", "low"])),
        target="label",
    ).fit(X, Y)  # fmt: skip
    search = PrivateGridSearchCV(
        skdp.PrivateClassifier(DecisionTreeClassifier(), FrozenEstimator(release)),
        {"estimator__max_depth": [1, 2]},
        epsilon=0.5,
        ledger=ledger,
    ).fit(X, Y)
    assert search.privacy_loss_.epsilon == ledger.spent == Fraction(1, 2)
    assert search.score(X, Y) > 0.8


# --- ways around the ledger and the checks of searches


def test_a_ledger_in_the_grid_of_an_inner_search_pays_for_the_outer_one():
    def inner(ledger):
        return PrivateGridSearchCV(model(), {"synthesizer__ledger": [ledger]}, epsilon=0.5)

    book = skdp.PrivacyLedger(100)
    private_cross_val_score(make_pipeline(inner(book)), X, Y, epsilon=7, cv=2)
    assert book.spent == Fraction(17, 2)
    book = skdp.PrivacyLedger(100)
    search = PrivateGridSearchCV(inner(book), {"epsilon": [0.5, 0.25]}, epsilon=3)
    assert search.fit(X, Y).privacy_loss_.epsilon == book.spent == Fraction(23, 4)
    # So do the winners of both.
    for winner in (search.best_estimator_, search.best_estimator_.best_estimator_):
        before, cost = book.spent, winner.fit(X, Y).privacy_loss_.epsilon
        assert book.spent == before + cost
    with pytest.raises(ValueError, match="2 ledgers"):
        private_cross_val_score(inner(skdp.PrivacyLedger()), X, Y, epsilon=7, ledger=book)


LABELLED = {"epsilon": 1, "domain": SQUARE, "classes": ["high", "low"]}


@over(
    "estimator",
    [
        *(skdp.PrivateClassifier(each, **LABELLED) for each in (DecisionTreeClassifier(), None)),
        model(),
    ],
)
def test_a_winner_keeps_the_ledger_of_the_search(estimator):
    book = skdp.PrivacyLedger()
    search = PrivateGridSearchCV(estimator, {"n_samples": [50, 100]}, epsilon=1, ledger=book)
    winner = search.fit(X, Y).best_estimator_
    before = book.spent
    winner.fit(X, Y)
    assert book.spent == before + 1
    # What was given has none still.
    assert not [one for one in estimator.get_params().values() if one is book]


def fails_on_many(self, X, y):
    """It can be trained on the few rows of a trial, and not on a release."""
    if len(X) > 500:
        raise ValueError("too many")
    self.classes_ = np.unique(y)
    return self


@pytest.mark.filterwarnings("ignore:.*could not be trained")
def test_what_is_left_of_a_search_that_broke_off_is_not_free(monkeypatch):
    monkeypatch.setattr(DummyClassifier, "fit", fails_on_many)
    monkeypatch.setattr(DummyClassifier, "predict", lambda self, X: self.classes_[[0] * len(X)])
    book = skdp.PrivacyLedger(100)
    estimator = model(estimator=DummyClassifier(), ledger=book)
    with pytest.raises(skdp.exceptions.TrainingError) as raised:
        PrivateGridSearchCV(estimator, {"synthesizer__epsilon": [1, 2]}).fit(X, Y)
    release = raised.value.synthesizer
    before = book.spent
    release.set_params(target="target").fit(X, Y)
    assert book.spent == before + release.privacy_loss_.epsilon


def test_every_candidate_is_looked_at_where_they_share_a_release():
    book = skdp.PrivacyLedger(100)
    raw = DecisionTreeClassifier().fit(X, Y)
    grid = {"estimator": [DecisionTreeClassifier(), CalibratedClassifierCV(FrozenEstimator(raw))]}
    with pytest.raises(ValueError, match="may carry a FrozenEstimator"):
        PrivateGridSearchCV(model(ledger=book), grid).fit(X, Y)
    assert book.spent == 0


def test_a_warning_that_is_an_error_costs_nothing():
    """Of what is known before the charge; it used to end the search after it."""
    ledger = skdp.PrivacyLedger()
    search = PrivateGridSearchCV(model(), {"synthesizer__epsilon": [0.5, 1]}, ledger=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataConversionWarning, match="column-vector"):
            search.fit(X, Y.to_numpy()[:, None])
        search.set_params(estimator=model(random_state=0))
        with pytest.raises(skdp.InsecureSeedWarning):
            search.fit(X, Y)
    assert ledger.spent == 0
