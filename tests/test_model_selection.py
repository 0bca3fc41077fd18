"""Private folds, scores and searches: what is released, what is charged, how far it is off."""

from __future__ import annotations

import pickle
import sys
from fractions import Fraction

import numpy as np
import pytest
from estimators import DOMAIN, other_processes, people
from searched import SQUARE, N, X, Y, model
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import skdp
from skdp._random import noise_source, recording
from skdp.audit._tapes import Alignment, Recorder
from skdp.mechanisms import discrete_laplace_variance
from skdp.model_selection import (
    PrivateGridSearchCV,
    PrivateKFold,
    make_private_scorer,
    private_confusion_matrix,
    private_cross_val_score,
    private_score,
)


def compared(search, X, y):
    """Scores, rate of the noise and range of the noisy maximum by which a search chooses."""
    tape = Recorder(0, "exact", Alignment((X, y), (X, y)))
    with recording(tape):
        search.fit(X, y)
    (call,) = (call for call in tape.calls if "Judge" in call.site and call.shape)
    assert call.mechanism == "selection"
    return call.values, *call.public[:2]


# --- scores


def test_accuracy_is_a_share_of_two_noisy_counts():
    truth = np.array(["a"] * 600 + ["b"] * 400)
    score = private_score(truth, np.array(["a"] * 1000), "accuracy", epsilon=50, interval="noise")
    # At epsilon 50 the noise is 0 but for one draw in 1e21.
    assert float(score) == 0.6 and score.lower == score.upper == 0.6


@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_accuracy_interval_covers(epsilon):
    truth, guess = np.zeros(300, dtype=int), np.r_[np.zeros(240, dtype=int), np.ones(60, dtype=int)]
    source = noise_source(1)
    results = [
        private_score(truth, guess, "accuracy", epsilon=epsilon, level=0.9, random_state=source)
        for _ in range(1_500)
    ]
    covered = np.mean([result.lower <= 0.8 <= result.upper for result in results])
    # Guaranteed 0.9; four standard errors below, another seed would fail at 3e-5 or less.
    assert covered > 0.9 - 4 * np.sqrt(0.09 / 1_500)
    # The noise really is there: half its scale would show as half the spread.
    values = np.array([result.value for result in results])
    spread = np.median([result.std for result in results])
    if epsilon == 1.0:
        assert 0.85 < values.std() / spread < 1.15
    assert values.std() > 0 and ((values >= 0) & (values <= 1)).all()


@pytest.mark.parametrize(
    ("truth", "guess"),
    [
        ([], []),
        ([None, float("nan"), "a"], ["a", "a", "a"]),
        ([1, 2, 3], ["1", "2", "4"]),
        (["x"], ["y"]),
    ],
)
def test_odd_labels_are_wrong_answers(truth, guess):
    truth, guess = np.array(truth, dtype=object), np.array(guess, dtype=object)
    score = private_score(truth, guess, "accuracy", epsilon=50)
    expected = 0.5 if not len(truth) else (truth == guess).mean()
    if 1 in truth:
        # Text that writes a number is that number: one text in a file makes text of all.
        expected = 2 / 3
    assert float(score) == pytest.approx(expected)


def test_confusion_matrix_has_every_cell_and_skips_what_is_not_declared():
    truth, guess = ["a", "a", "b", "z", None], ["a", "b", "b", "a", "a"]
    table = private_confusion_matrix(truth, guess, labels=["a", "b", "c"], epsilon=50)
    expected = [[1, 1, 0], [0, 1, 0], [0, 0, 0]]
    assert table.to_numpy().tolist() == expected
    assert (table.index.name, table.columns.name) == ("true", "predicted")
    source, labels = noise_source(2), ["a", "b", "c"]
    noisy = np.array(
        [
            private_confusion_matrix(truth, guess, labels=labels, epsilon=1, random_state=source)
            for _ in range(600)
        ]
    )
    # Empty cells too. Variance of 5,400 draws: kurtosis 6 gives a relative error of 0.04 at most.
    variance = (noisy - expected).var()
    assert abs(variance / discrete_laplace_variance(1) - 1) < 0.18
    assert (noisy[:, 2, 2] != 0).any()


def test_one_odd_label_does_not_change_how_others_compare():
    # NumPy would make text of every label in a list because of one text among them.
    truth, guess = [1] * 100, np.ones(100, dtype=int)
    for more in ("one", [1, 1], None, 2.5, {}):
        score = private_score([*truth, more], np.append(guess, 1), "accuracy", epsilon=10_000)
        assert float(score) == pytest.approx(100 / 101)
        table = private_confusion_matrix(
            [*truth, more], np.append(guess, 1), labels=[1, 2], epsilon=10_000
        )
        assert table.to_numpy().tolist() == [[100, 0], [0, 0]]
        # The sums are of steps of 4 / 2**20, with noise of scale 1.05 of them.
        error = private_score(
            [*truth, more],
            np.append(guess, 1),
            "mean_squared_error",
            bounds=(0, 2),
            epsilon=1_000_000,
        )
        worst = 1.0 if more == 2.5 else 4.0
        assert float(error) == pytest.approx(worst / 101, rel=1e-3)


def test_mse():
    truth = np.random.default_rng(1).uniform(0, 4, 5_000)
    guess = truth + 1
    exact = np.mean((np.clip(truth, 0, 5) - np.clip(guess, 0, 5)) ** 2)
    runs, source = 1_500, noise_source(3)
    results = [
        private_score(
            truth,
            guess,
            "mean_squared_error",
            bounds=(0, 5),
            epsilon=1,
            level=0.9,
            random_state=source,
        )
        for _ in range(runs)
    ]
    assert np.mean([r.lower <= exact <= r.upper for r in results]) > 0.9 - 4 * 0.0078
    values = np.array([r.value for r in results])
    assert abs(values.mean() - exact) < 5 * values.std() / np.sqrt(runs) + 1e-4
    # Laplace noise of scale 25 on two parts of the sum, and on what is left of the largest sum. The
    # spread is known to 2.7 %; a scale off by 20 % is more than 4 errors away.
    expected = np.sqrt(2) * np.sqrt(2 * (25 - exact) ** 2 + exact**2) / 5_000
    assert 0.88 < values.std() / expected < 1.12
    # Two clipped values, and a missing one is as wrong as can be.
    wild = private_score(
        [1e9, np.nan], [-1e9, 0.0], "mean_squared_error", bounds=(0, 2), epsilon=500
    )
    assert float(wild) == pytest.approx(4, rel=0.05)
    words = np.array(["x", 1.0], dtype=object)
    worst = private_score(words, [1.0, 1.0], "mean_squared_error", bounds=(0, 2), epsilon=500)
    assert float(worst) == pytest.approx(2, rel=0.05)


@pytest.mark.parametrize(
    "call",
    [
        lambda **k: private_score(["a", "b"], ["a"], "accuracy", epsilon=1, **k),
        lambda **k: private_score(["a"], ["a"], "accuracy", epsilon=0, **k),
        lambda **k: private_score(["a"], ["a"], "accuracy", epsilon=1, level=1.0, **k),
        lambda **k: private_score(np.zeros((2, 2)), np.zeros((2, 2)), "accuracy", epsilon=1, **k),
        lambda **k: private_confusion_matrix(["a"], ["a"], labels=["a", "a"], epsilon=1, **k),
        lambda **k: private_confusion_matrix(["a"], ["a"], labels=[], epsilon=1, **k),
        lambda **k: private_score([1], [1], "mean_squared_error", bounds=(1, 1), epsilon=1, **k),
        lambda **k: private_score(
            [1], [1], "mean_squared_error", bounds=(0, float("inf")), epsilon=1, **k
        ),
    ],
)
def test_refusals_cost_nothing(call):
    ledger = skdp.PrivacyLedger(5)
    with pytest.raises(ValueError):
        call(ledger=ledger)
    assert ledger.spent == 0


def test_scores_are_charged_before_reading():
    ledger = skdp.PrivacyLedger(1)

    class Unreadable:
        """One-dimensional, and raises when its values are looked at."""

        def __eq__(self, other):
            raise RuntimeError("read")

        __hash__ = None

    secret = np.array([Unreadable()], dtype=object)
    with pytest.raises(skdp.BudgetExceededError):
        private_score(secret, secret, "accuracy", epsilon=2, ledger=ledger)
    # Affordable: a label that cannot be compared is a wrong answer, not an error.
    private_score(secret, secret, "accuracy", epsilon=1, ledger=ledger)
    assert ledger.spent == 1


def test_scorer_in_a_search_is_charged_every_time():
    ledger = skdp.PrivacyLedger()
    scorer = make_private_scorer("accuracy", epsilon=0.25, ledger=ledger)
    search = GridSearchCV(
        model(0.5, ledger=ledger), {"estimator__max_depth": [1, 2]}, cv=2, scoring=scorer
    )
    search.fit(X, Y)
    assert ledger.spent == 5 * Fraction(1, 2) + 4 * Fraction(1, 4)
    assert 0 <= search.best_score_ <= 1
    loss = make_private_scorer("mean_squared_error", epsilon=50, bounds=(0, 1))
    constant = DummyRegressor(strategy="constant", constant=1.0).fit([[0]], [1.0])
    assert loss(constant, np.zeros((100, 1)), np.zeros(100)) == pytest.approx(-1, abs=0.05)
    for bad in ({"metric": "auc"}, {"metric": "mean_squared_error"}, {"bounds": (0, 1)}):
        with pytest.raises(ValueError):
            make_private_scorer(epsilon=1, **bad)


# --- folds


def test_folds_partition_and_do_not_move_others():
    folds = PrivateKFold(3)
    tests = [test for _, test in folds.split(X)]
    assert sorted(np.concatenate(tests)) == list(range(N))
    for train, test in PrivateKFold(3).split(X, Y):
        assert sorted([*train, *test]) == list(range(N))
    # The fold of a record is the same whoever comes behind it: seeded, one row more at the end.
    seeded = PrivateKFold(4, random_state=7)
    first = [set(test) for _, test in seeded.split(X)]
    fewer = [set(test) for _, test in seeded.split(X.iloc[:-1])]
    assert all(b == a - {N - 1} for a, b in zip(first, fewer, strict=True))


def test_folds_are_uniform_and_differ_between_calls():
    folds = PrivateKFold(4)
    sizes = np.array([[len(test) for _, test in folds.split(X)] for _ in range(50)])
    chi2 = ((sizes.sum(axis=0) - 25_000) ** 2 / 25_000).sum()
    assert chi2 < 40.2  # 3 degrees of freedom: false alarm 1e-8
    assert len({tuple(row) for row in sizes.tolist()}) > 10
    for bad in (1, 2.5, True, "3"):
        with pytest.raises(ValueError, match="n_splits"):
            PrivateKFold(bad).get_n_splits()


def test_cross_validation_charges_k_minus_one_fits_and_one_score():
    ledger = skdp.PrivacyLedger(3.5)
    score = private_cross_val_score(model(0.75, ledger=ledger), X, Y, epsilon=0.5, cv=5)
    assert ledger.spent == Fraction(7, 2)
    assert ledger.to_frame()["parts"].tolist() == ["fits=3, score=0.5"]
    assert 0.85 < score.value <= 1 and score.lower < score.value < score.upper + 1e-9
    with pytest.raises(skdp.BudgetExceededError):
        private_cross_val_score(model(0.75, ledger=ledger), X, Y, epsilon=0.5, cv=5)
    assert len(ledger.to_frame()) == 1


def test_cross_validation_scores_rows_by_the_model_that_did_not_see_them(monkeypatch):
    seen = []
    predict = DummyClassifier.predict

    def spy(self, X):
        seen.append(X)
        return predict(self, X)

    monkeypatch.setattr(DummyClassifier, "predict", spy)
    spied = model(estimator=DummyClassifier())
    private_cross_val_score(spied, X, Y, epsilon=1, cv=PrivateKFold(3))
    # The estimator is tried out on 64 public rows; true ones are predicted in tables of one size.
    assert {len(rows) for rows in seen} == {64, 1024}
    assert set().union(*(rows["a"] for rows in seen if len(rows) == 1024)) == set(X["a"])


def test_cross_validation_does_not_depend_on_the_number_of_processes(monkeypatch):
    def score(n_jobs):
        estimator = skdp.PrivateDecisionTreeClassifier(
            domain=SQUARE, classes=["high", "low"], ledger=ledger, random_state=0
        )
        return private_cross_val_score(
            estimator,
            X,
            Y,
            epsilon=1,
            cv=PrivateKFold(3, random_state=1),
            n_jobs=n_jobs,
            random_state=2,
        )

    ledger = skdp.PrivacyLedger(6)
    here = score(None)
    used = other_processes(monkeypatch, sys.modules["skdp.model_selection._cross_val"])
    assert score(2) == here
    assert used == [2]
    # Fits in other processes are paid for here.
    assert ledger.spent == 6
    with pytest.raises(TypeError, match="n_jobs"):
        score(1.5)


def test_cross_validation_of_regressors():
    release = skdp.MarginalSynthesizer(epsilon=5, domain=SQUARE.select(["a"]))
    estimator = skdp.PrivateRegressor(LinearRegression(), release, target_range=(0, 2))
    score = private_cross_val_score(
        estimator, X[["a"]], 2 * X["a"], epsilon=1, metric="mean_squared_error", bounds=(0, 2), cv=2
    )
    assert score.value < 0.1


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (make_pipeline(StandardScaler(), model()), {}, "standardscaler is not private"),
        (DecisionTreeClassifier(), {}, "is not private"),
        (make_pipeline(FunctionTransformer(), FunctionTransformer()), {}, "no private step"),
        (model(), {"cv": KFold(3)}, "PrivateKFold"),
        (model(), {"cv": 1}, "n_splits"),
        (model(), {"metric": "mean_squared_error"}, "bounds"),
        (model(ledger=skdp.PrivacyLedger()), {"ledger": skdp.PrivacyLedger()}, "2 ledgers"),
    ],
)
def test_cross_validation_refuses(estimator, options, message):
    with pytest.raises(ValueError, match=message):
        private_cross_val_score(estimator, X, Y, epsilon=1, **options)


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


def test_search_over_releases_pays_for_each():
    ledger = skdp.PrivacyLedger()
    grid = [{"synthesizer__epsilon": [0.5, 1]}, {"synthesizer__epsilon": [2]}]
    search = PrivateGridSearchCV(model(ledger=ledger), grid, epsilon=0.5).fit(X, Y)
    assert ledger.spent == 4 and len(ledger.to_frame()) == 1
    assert search.privacy_loss_.epsilon == 4


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
        base, {"estimator": constants}, metric="mean_squared_error", bounds=(0, 2), epsilon=1
    )
    (more, _, width), (fewer, _, _) = (
        compared(search, X[["a"]][rows], 2 * X["a"][rows]) for rows in (slice(None), slice(1, None))
    )
    moved = np.subtract(fewer, more)
    assert moved.min() >= 0 and moved.max() <= width and moved.max() > width / 50


def test_search_is_right_at_a_large_epsilon_and_random_at_a_tiny_one():
    grid = {
        "estimator": [
            DummyClassifier(strategy="constant", constant="low"),
            DecisionTreeClassifier(max_depth=2),
        ]
    }
    sure = [PrivateGridSearchCV(model(5), grid, epsilon=5).fit(X, Y).best_index_ for _ in range(5)]
    assert sure == [1] * 5
    few = X.iloc[:40], Y.iloc[:40]
    blind = [
        PrivateGridSearchCV(model(5), grid, epsilon=1e-4).fit(*few).best_index_ for _ in range(40)
    ]
    # A fair coin gives the same side 40 times with probability 2e-12.
    assert 0 < sum(blind) < 40


def test_search_keeps_nothing_private_and_marks_seeds():
    search = PrivateGridSearchCV(model(), {"estimator__max_depth": [1, 2]}).fit(X, Y)
    fitted = {key for key in vars(search) if key.endswith("_")}
    assert fitted == {
        "best_index_",
        "best_params_",
        "best_estimator_",
        "privacy_loss_",
        "n_features_in_",
        "feature_names_in_",
    }
    assert not search.privacy_loss_.seeded
    seeded = PrivateGridSearchCV(model(random_state=0), {"estimator__max_depth": [1]})
    assert seeded.fit(X, Y).privacy_loss_.seeded


@pytest.mark.parametrize(
    ("estimator", "grid", "message"),
    [
        (DecisionTreeClassifier(), {"max_depth": [1]}, "is not private"),
        (model(), {"estimator__depth": [1]}, "Invalid parameter"),
        (model(epsilon=-1), {"estimator__max_depth": [1]}, "refuse"),
        (model(), [], "no candidates"),
    ],
)
def test_search_refuses(estimator, grid, message):
    ledger = skdp.PrivacyLedger()
    search = PrivateGridSearchCV(estimator, grid, ledger=ledger)
    with pytest.raises(ValueError, match=message):
        search.fit(X, Y)
    assert ledger.spent == 0


def test_search_in_a_pipeline():
    search = PrivateGridSearchCV(model(), {"estimator__max_depth": [1, 2]})
    pipeline = make_pipeline(FunctionTransformer(), search).fit(X, Y)
    assert pipeline.score(X, Y) > 0.8


# --- regressors


def test_regressor_learns_from_the_release():
    ledger = skdp.PrivacyLedger()
    domain = SQUARE.with_attribute("y", skdp.Numeric(0, 3))
    release = skdp.MarginalSynthesizer(epsilon=2, domain=domain, target="y", ledger=ledger)
    target = 3 * X["a"]
    estimator = skdp.PrivateRegressor(DecisionTreeRegressor(max_depth=4), release).fit(X, target)
    assert estimator.score(X, target) > 0.8 and ledger.spent == 2


def test_regressor_wants_a_number_declared_once():
    release = skdp.MarginalSynthesizer(epsilon=1, domain=DOMAIN, target="income")
    rows = people(50)
    with pytest.raises(skdp.DomainError, match="PrivateClassifier"):
        skdp.PrivateRegressor(LinearRegression(), release).fit(
            rows.drop(columns="income"), rows["income"]
        )
    both = skdp.MarginalSynthesizer(epsilon=1, domain=SQUARE, target="a")
    with pytest.raises(ValueError, match="Both target"):
        skdp.PrivateRegressor(LinearRegression(), both, target_range=(0, 1)).fit(X, X["a"])
    with pytest.raises(skdp.DomainError, match="target_range"):
        skdp.PrivateRegressor(
            LinearRegression(), skdp.MarginalSynthesizer(epsilon=1, domain=SQUARE)
        ).fit(X, X["a"])


@pytest.mark.parametrize("n_rows", [0, 1])
def test_regressor_on_no_rows(n_rows):
    release = skdp.MarginalSynthesizer(epsilon=0.01, domain=SQUARE)
    estimator = skdp.PrivateRegressor(LinearRegression(), release, target_range=(0, 2))
    predicted = estimator.fit(X[:n_rows], X["a"][:n_rows]).predict(X)
    assert predicted.shape == (N,) and np.isfinite(predicted).all()


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


def test_a_fitted_search_travels_without_ledger():
    ledger = skdp.PrivacyLedger(2)
    search = PrivateGridSearchCV(
        model(ledger=ledger), {"estimator__max_depth": [1, 2]}, epsilon=0.5
    ).fit(X, Y)
    twin = pickle.loads(pickle.dumps(search))
    assert repr(twin.estimator.synthesizer.ledger) == "PrivacyLedger(detached)"
    assert twin.best_params_ == search.best_params_
    assert (twin.predict(X) == search.predict(X)).all()
    assert search.estimator.synthesizer.ledger is ledger


# --- ways around the ledger and the checks of searches


def grid_with_ledger(ledger):
    return PrivateGridSearchCV(model(), {"synthesizer__ledger": [ledger]}, epsilon=0.5)


def test_a_ledger_in_the_grid_of_an_inner_search_pays_for_the_outer_one():
    book = skdp.PrivacyLedger(100)
    private_cross_val_score(make_pipeline(grid_with_ledger(book)), X, Y, epsilon=7, cv=2)
    assert book.spent == Fraction(17, 2)
    book = skdp.PrivacyLedger(100)
    search = PrivateGridSearchCV(grid_with_ledger(book), {"epsilon": [0.5, 0.25]}, epsilon=3)
    assert search.fit(X, Y).privacy_loss_.epsilon == book.spent == Fraction(23, 4)
    with pytest.raises(ValueError, match="2 ledgers"):
        private_cross_val_score(
            grid_with_ledger(skdp.PrivacyLedger(100)), X, Y, epsilon=7, ledger=book
        )


def fails_on_many(self, X, y):
    """It can be trained on the few rows of a trial, and not on a release."""
    if len(X) > 100:
        raise ValueError("too many")
    self.classes_ = np.unique(y)
    return self


@pytest.mark.filterwarnings("ignore:.*could not be trained")
@pytest.mark.parametrize("search", [True, False])
def test_what_is_left_of_a_search_that_broke_off_is_not_free(search, monkeypatch):
    monkeypatch.setattr(DummyClassifier, "fit", fails_on_many)
    monkeypatch.setattr(DummyClassifier, "predict", lambda self, X: self.classes_[[0] * len(X)])
    book = skdp.PrivacyLedger(100)
    estimator = model(estimator=DummyClassifier(), ledger=book)
    with pytest.raises(skdp.exceptions.TrainingError) as raised:
        if search:
            PrivateGridSearchCV(estimator, {"synthesizer__epsilon": [1, 2]}).fit(X, Y)
        else:
            private_cross_val_score(estimator, X, Y, epsilon=0.5, cv=3, metric="brier_score")
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


class AllRowsInAllFolds(PrivateKFold):
    def split(self, X, y=None, groups=None):
        for _ in range(self.n_splits):
            yield np.arange(len(X)), np.arange(len(X))


def test_folds_of_a_users_class_are_not_secret():
    book = skdp.PrivacyLedger(100)
    folds = PrivateKFold(2)
    folds.split = AllRowsInAllFolds(2).split
    for cv in (AllRowsInAllFolds(2), folds):
        with pytest.raises(ValueError, match="PrivateKFold"):
            private_cross_val_score(model(ledger=book), X, Y, epsilon=1, cv=cv)
    assert book.spent == 0
