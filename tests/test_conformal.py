"""Conformal sets and intervals: the histogram, its margin, coverage, and what is refused."""

from __future__ import annotations

import pickle
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import skdp
from skdp._random import noise_source
from skdp.inspection import assert_private, privacy_report
from skdp.kernels import conformal
from skdp.kernels.conformal import BINS, ScoreCounts, covered_bins, margin_of, measure_scores
from skdp.mechanisms import discrete_laplace
from skdp.model_selection import PrivateConformalClassifier, PrivateConformalRegressor

N = 600
rng = np.random.default_rng(0)
X = pd.DataFrame({"a": rng.uniform(0, 1, N), "b": rng.uniform(0, 1, N)})
Y = np.where(X["a"] + rng.normal(0, 0.2, N) > 0.5, "high", "low")
SQUARE = skdp.Domain({"a": skdp.Numeric(0, 1, bins=8), "b": skdp.Numeric(0, 1, bins=2)})
HALF = slice(0, N // 2), slice(N // 2, None)
LEVELS = [Fraction(1, 10), Fraction(1, 20), Fraction(1, 2)]


def release(**params):
    made = skdp.HDPViewSynthesizer(1, domain=SQUARE, **params)
    tree = DecisionTreeClassifier(max_depth=3)
    return skdp.PrivateClassifier(tree, made, classes=["high", "low"])


@pytest.fixture(scope="module")
def fitted():
    return release().fit(X[HALF[0]], Y[HALF[0]])


def plain_counts(bins, epsilon=Fraction(1)):
    fine = np.bincount(bins, minlength=BINS).reshape(16, 16)
    return ScoreCounts(fine.sum(axis=1), fine, epsilon)


# --- the kernel


def test_sides_of_an_edge_are_sums_of_few_counts():
    values = rng.integers(-9, 9, 272)
    below, above = conformal._sides(ScoreCounts(values[:16], values[16:].reshape(16, 16), 1))
    for edge in range(1, BINS):
        block, part = divmod(edge, 16)
        bins = values[16:].reshape(16, 16)[block]
        whole = values[:16]
        assert below[edge - 1] == whole[:block].sum() + bins[:part].sum()
        rest = whole[block:] if not part else whole[block + 1 :]
        assert above[edge - 1] == rest.sum() + (bins[part:].sum() if part else 0)


def test_histogram_has_the_noise_that_is_charged():
    noisy = [measure_scores(np.array([3, 40]), Fraction(1), noise_source()) for _ in range(400)]
    blocks, bins = (np.array([each[part] for each in noisy]) for part in (0, 1))
    exact = plain_counts(np.array([3, 40]))
    # Rate 1/2: variance 7.84; 25,600 and 102,400 draws, false alarms below 1e-6.
    expected = 2 * np.exp(-0.5) / (1 - np.exp(-0.5)) ** 2
    assert blocks.var() == pytest.approx(expected, rel=0.12)
    assert (bins - exact.bins).var() == pytest.approx(expected, rel=0.06)
    assert (blocks - exact.blocks).mean() == pytest.approx(0, abs=0.3)


def test_number_of_terms_is_that_of_the_sums():
    ones = ScoreCounts(np.ones(16, dtype=int), np.ones((16, 16), dtype=int), Fraction(1))
    terms = set(zip(*(side.tolist() for side in conformal._sides(ones)), strict=True))
    assert terms == conformal._terms()


@pytest.mark.parametrize(("epsilon", "miss"), [(1, LEVELS[0]), (0.1, LEVELS[1]), (5, LEVELS[2])])
def test_margin_is_the_integral_of_the_worst_tail(epsilon, miss):
    epsilon, a = Fraction(epsilon), float(miss)
    draws = discrete_laplace(np.zeros((10_000, 31), dtype=np.int64), epsilon, 2)
    mixed = [
        a * draws[:, :left].sum(axis=1) - (1 - a) * draws[:, left : left + right].sum(axis=1)
        for left, right in conformal._terms()
    ]
    # The largest mean of the positive part is a lower bound of the integral, and near it.
    least = max(np.maximum(each, 0).mean() for each in mixed)
    margin = margin_of(epsilon, miss)
    integral = margin.records - (1 - a)
    assert 0.97 * least < integral < 1.12 * least + 0.01
    total = draws[:, :16].sum(axis=1)
    far = margin.rows - integral / a
    assert (total > far + 0.5).mean() < a + 0.02
    assert (total > far - 1.5).mean() > a - 0.02


def test_margin_without_noise_is_that_of_split_conformal():
    margin = margin_of(Fraction(10_000), LEVELS[0])
    assert margin.records == pytest.approx(0.9) and margin.rows == pytest.approx(0, abs=1e-9)
    for n in (9, 19, 50, 100, 1000):
        bins = np.sort(rng.integers(0, BINS, n))
        covered = covered_bins(plain_counts(bins, Fraction(10_000)), LEVELS[0])
        rank = int(np.ceil(0.9 * (n + 1) - 1e-9))
        assert covered == (bins[rank - 1] + 1 if rank <= n else BINS)


def test_edges_are_tested_from_above_and_few_rows_are_not_trusted():
    far = plain_counts(np.full(2_000, 10), Fraction(100))
    assert covered_bins(far, LEVELS[0]) == 11
    # One bin further up looks as if hundreds of scores were beyond it: everything is covered.
    noisy = far.bins.copy()
    noisy[15, 15] = 900
    assert covered_bins(far._replace(bins=noisy), LEVELS[0]) == BINS
    few = plain_counts(np.zeros(50, dtype=int))
    assert margin_of(Fraction(1), LEVELS[0]).rows > 50
    assert covered_bins(few, LEVELS[0]) == BINS
    assert covered_bins(plain_counts(np.zeros(0, dtype=int)), LEVELS[0]) == BINS


SHAPES = {
    "even": lambda g, n: g.random(n),
    "near zero": lambda g, n: g.beta(0.4, 6, n),
    "few values": lambda g, n: g.choice([0.1, 0.4, 0.9], n, p=[0.88, 0.03, 0.09]),
    "at the top": lambda g, n: g.choice([0.999, 0.0], n, p=[0.15, 0.85]),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("n", "epsilon"), [(15, 4), (100, 1), (1_000, 0.3), (2_000, 1)])
def test_mean_coverage_is_at_least_nominal(shape, n, epsilon):
    generator = np.random.default_rng(1)
    law = np.bincount(
        (SHAPES[shape](generator, 400_000) * BINS).astype(int), minlength=BINS
    ).cumsum()
    law = law / law[-1]
    for miss in LEVELS:
        coverage = []
        for _ in range(200):
            bins = (SHAPES[shape](generator, n) * BINS).astype(int)
            counts = measure_scores(bins, Fraction(epsilon), noise_source())
            coverage.append(law[covered_bins(counts, miss) - 1])
        error = np.std(coverage) / np.sqrt(200) + 1e-3
        assert np.mean(coverage) >= float(1 - miss) - 2 * error
        if n == 2_000 and shape in ("even", "near zero"):
            assert np.mean(coverage) < float(1 - miss) + 0.02


# --- the estimators


def test_sets_have_the_shape_and_the_price_of_one_release(fitted):
    ledger = skdp.PrivacyLedger(1)
    sets = PrivateConformalClassifier(fitted, epsilon=1, confidence_level=[0.5, 0.9], ledger=ledger)
    assert not hasattr(sets, "thresholds_")
    with pytest.raises(NotFittedError):
        sets.predict_set(X)
    labels, found = sets.conformalize(X[HALF[1]], Y[HALF[1]]).predict_set(X)
    assert labels.shape == (N,) and found.shape == (N, 2, 2) and found.dtype == bool
    assert (labels == sets.predict(X)).all() and sets.classes_.tolist() == ["high", "low"]
    assert ledger.spent == 1 == sets.privacy_loss_.epsilon
    assert (found[..., 0] <= found[..., 1]).all()
    truth = sets.classes_[None, :] == Y[:, None]
    assert (found & truth[..., None]).any(axis=1).mean(axis=0) == pytest.approx(
        [0.55, 0.95], abs=0.2
    )
    assert {key for key in vars(sets) if key.endswith("_")} == {
        "estimator_",
        "thresholds_",
        "privacy_loss_",
    }


def test_intervals_lie_in_the_declared_range():
    target = 3 * X["a"]
    made = skdp.MarginalSynthesizer(2, domain=SQUARE)
    model = skdp.PrivateRegressor(LinearRegression(), made, target_range=(0, 3))
    model.fit(X[HALF[0]], target[HALF[0]])
    found = PrivateConformalRegressor(model, epsilon=4, confidence_level=[0.6, 0.95])
    values, ends = found.conformalize(X[HALF[1]], target[HALF[1]]).predict_interval(X)
    assert values.shape == (N,) and ends.shape == (N, 2, 2)
    assert ends.min() >= 0 and ends.max() <= 3
    inside = (ends[:, 0] <= target.to_numpy()[:, None]) & (target.to_numpy()[:, None] <= ends[:, 1])
    assert (inside.mean(axis=0) >= [0.55, 0.9]).all()
    assert found.thresholds_[0] <= found.thresholds_[1] < 3
    # The range is that of the declared column, too.
    domain = SQUARE.with_attribute("y", skdp.Numeric(0, 3))
    declared = skdp.MarginalSynthesizer(2, domain=domain, target="y")
    again = skdp.PrivateRegressor(LinearRegression(), declared).fit(X, target)
    assert PrivateConformalRegressor(again)._range(again) == (0.0, 3.0)


def test_it_may_fit_the_estimator_itself():
    sets = PrivateConformalClassifier(release(), epsilon=1, prefit=False)
    with pytest.raises(NotFittedError):
        sets.conformalize(X, Y)
    sets.fit(X[HALF[0]], Y[HALF[0]]).conformalize(X[HALF[1]], Y[HALF[1]])
    assert sets.predict_set(X)[1].shape == (N, 2, 1)
    assert privacy_report(sets).epsilon == 2
    with pytest.raises(ValueError, match="prefit"):
        PrivateConformalClassifier(release()).fit(X, Y)


def test_only_releases_are_private(fitted):
    assert_private(PrivateConformalClassifier(fitted))
    assert privacy_report(PrivateConformalClassifier(fitted, epsilon=0.25)).epsilon == 0.25
    assert_private(PrivateConformalClassifier(release(), prefit=False))
    on_true_rows = LogisticRegression().fit(X, Y)
    for leaky in (on_true_rows, make_pipeline(StandardScaler(), fitted), release()):
        assert not privacy_report(PrivateConformalClassifier(leaky)).private
    assert not privacy_report(PrivateConformalClassifier(on_true_rows, prefit=False)).private
    assert not privacy_report(PrivateConformalClassifier(fitted, random_state=1)).private


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda m: PrivateConformalClassifier(m, confidence_level=1), "confidence_level"),
        (lambda m: PrivateConformalClassifier(m, confidence_level=[]), "confidence_level"),
        (lambda m: PrivateConformalClassifier(m, epsilon=0), "epsilon"),
        (lambda m: PrivateConformalClassifier(DummyRegressor().fit(X, X["a"])), "proba"),
        (lambda m: PrivateConformalRegressor(DummyRegressor().fit(X, X["a"])), "no range"),
        (lambda m: PrivateConformalRegressor(m, bounds=(1, 0)), "bounds"),
        (lambda m: PrivateConformalClassifier(DummyClassifier()), "not fitted"),
    ],
)
def test_wrong_parameters_cost_nothing(fitted, make, message):
    ledger = skdp.PrivacyLedger()
    with pytest.raises(ValueError, match=message):
        make(fitted).set_params(ledger=ledger).conformalize(X, Y)
    with pytest.raises(ValueError, match="requires y"):
        PrivateConformalClassifier(fitted, ledger=ledger).conformalize(X, None)
    with pytest.raises(ValueError, match="numbers of rows"):
        PrivateConformalClassifier(fitted, ledger=ledger).conformalize(X, Y[:5])
    assert ledger.spent == 0


def test_a_budget_that_is_too_small_is_refused_unread(fitted):
    sets = PrivateConformalClassifier(fitted, epsilon=2, ledger=skdp.PrivacyLedger(1))
    with pytest.raises(skdp.BudgetExceededError):
        sets.conformalize(X, Y)
    # By default the ledger of the model pays.
    book = skdp.PrivacyLedger(3)
    model = release(ledger=book).fit(X, Y)
    PrivateConformalClassifier(model, epsilon=1.5).conformalize(X, Y)
    assert book.spent == Fraction(5, 2)


# --- odd rows


class Moody(ClassifierMixin, BaseEstimator):
    """Raises for some rows and gives nan for others."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, X):
        x = np.asarray(X, dtype=float)[:, 0]
        if (x > 0.9).any():
            raise ValueError(f"a secret: {x.max()}")
        share = np.where(x < 0.1, np.nan, 0.75)
        return np.column_stack([share, 1 - share])

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


class NoNumber(RegressorMixin, BaseEstimator):
    """Gives nan for some rows."""

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        x = np.asarray(X, dtype=float)[:, 0]
        return np.where(x < 0.5, np.nan, x)


def test_rows_on_which_a_model_fails_have_the_largest_score(monkeypatch):
    seen = []

    def exactly(bins, epsilon, source):
        seen.append(np.sort(bins))
        return plain_counts(bins, epsilon)

    monkeypatch.setattr("skdp.model_selection._conformal.measure_scores", exactly)
    rows = np.array([[0.5], [0.95], [0.05], [0.5], [0.5]])
    sets = PrivateConformalClassifier(Moody().fit(None, None), epsilon=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # The last two have labels that nobody declared; they are left out.
        sets.conformalize(rows, np.array([0, 0, 1, 7, None], dtype=object))
        assert seen[-1].tolist() == [63, 255, 255]
        assert sets.predict_set([[0.05], [0.5]])[1].all()
    intervals = PrivateConformalRegressor(NoNumber().fit(None, None), bounds=(0, 1))
    intervals.conformalize([[0.0], [0.6], [0.8], [0.7]], [0.5, np.inf, np.nan, "x"])
    # An error of 0.4 of the range lies in the bin that begins at (188 / 256) ** 3.
    assert seen[-1].tolist() == [188, 255]
    intervals.thresholds_ = np.array([0.1])
    assert intervals.predict_interval([[0.0], [0.95]])[1][..., 0].round(2).tolist() == [
        [0.0, 1.0],
        [0.85, 1.0],
    ]


@pytest.mark.parametrize("n", [0, 1, 3])
def test_hardly_any_rows_and_many_classes_give_full_sets(n):
    labels = np.repeat(np.arange(40), 3)
    model = DecisionTreeClassifier().fit(np.zeros((120, 1)), labels)
    sets = PrivateConformalClassifier(model, epsilon=1)
    sets.conformalize(np.zeros((n, 1)), labels[:n])
    assert sets.predict_set(np.zeros((2, 1)))[1].all()
    one = DummyClassifier().fit(np.zeros((2, 1)), ["only", "only"])
    single = PrivateConformalClassifier(one).conformalize(np.zeros((n, 1)), ["only"] * n)
    assert single.predict_set(np.zeros((2, 1)))[1].shape == (2, 1, 1)


def test_copies_and_files(fitted):
    ledger = skdp.PrivacyLedger()
    sets = PrivateConformalClassifier(fitted, ledger=ledger, epsilon=1)
    assert clone(sets).ledger is ledger and not hasattr(clone(sets), "thresholds_")
    sets.conformalize(X, Y)
    loaded = pickle.loads(pickle.dumps(sets))
    assert (loaded.predict_set(X)[1] == sets.predict_set(X)[1]).all()
    with pytest.raises(skdp.exceptions.LedgerError):
        loaded.conformalize(X, Y)
    with pytest.warns(skdp.exceptions.InsecureSeedWarning):
        seeded = PrivateConformalClassifier(fitted, random_state=5).conformalize(X, Y)
    assert seeded.privacy_loss_.seeded and "5" not in repr(seeded.random_state)
    assert "will spend" in sets.set_params(epsilon=1)._price_text()


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_coverage_of_new_rows_is_at_least_nominal(level):
    def draw(n):
        rows = np.random.default_rng().uniform(0, 1, (n, 2))
        noise = np.random.default_rng().normal(0, 0.25, n)
        return rows, np.where(rows[:, 0] + noise > 0.5, 1, 0), np.clip(rows[:, 0] + noise, 0, 1)

    rows, label, number = draw(500)
    tree = DecisionTreeClassifier(max_depth=4).fit(rows, label)
    line = LinearRegression().fit(rows, number)
    new, labels, numbers = draw(20_000)
    found = []
    for _ in range(200):
        rows, label, number = draw(500)
        sets = PrivateConformalClassifier(tree, epsilon=1, confidence_level=level)
        inside = sets.conformalize(rows, label).predict_set(new)[1][..., 0]
        ends = PrivateConformalRegressor(line, epsilon=1, confidence_level=level, bounds=(0, 1))
        low, high = ends.conformalize(rows, number).predict_interval(new)[1][..., 0].T
        found.append(
            [
                inside[np.arange(len(new)), labels].mean(),
                ((low <= numbers) & (numbers <= high)).mean(),
            ]
        )
    error = np.std(found, axis=0) / np.sqrt(200) + 0.002
    assert (np.mean(found, axis=0) >= level - 2 * error).all()
