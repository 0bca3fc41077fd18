"""Strategies of `PrivateGridSearchCV`: what they cost, whom they choose, and what they hide."""

from __future__ import annotations

import itertools
import math
import os
import random
import threading
import traceback
import warnings
from fractions import Fraction

import numpy as np
import pytest
import sklearn
from exact_laws import exact_epsilon
from joblib import Parallel, delayed
from scipy.stats import chi2, ks_2samp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import DataConversionWarning
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeClassifier
from test_model_selection import X, Y, model

import skdp
from skdp._random import noise_source
from skdp.inspection import assert_private, privacy_report
from skdp.model_selection import (
    PrivateGridSearchCV,
    _metrics,
    _search,
    make_private_scorer,
    private_cross_val_score,
)
from skdp.model_selection._search import (
    as_shape,
    draw_runs,
    halving_price,
    mean_runs,
    price_of_runs,
    scaled,
    sizes_of_rounds,
    spread_of,
    unseen,
)

SHAPES = [Fraction(-1, 2), Fraction(0), Fraction(1, 3), Fraction(1)]
CONSTANTS = [DummyClassifier(strategy="constant", constant=label) for label in ("high", "low")]
RELEASES = {"synthesizer__epsilon": [0.5, 1]}


@pytest.fixture(autouse=True)
def classes_here_are_a_librarys(monkeypatch):
    """What a user wrote may not stand behind a release; the classes of these tests may."""
    monkeypatch.setattr("skdp._pipelines.is_installed", lambda module: True)


def generating(eta, gamma, rest):
    """Generating function of the number of runs at 1 - rest, from Papernot and Steinke."""
    inner = gamma + (1 - gamma) * rest
    if eta == 0:
        return math.log(inner) / math.log(gamma)
    shape = float(eta)
    return (inner**-shape - 1) / (gamma**-shape - 1)


def law_of_runs(eta, gamma, most):
    """P(K = k) for k up to ``most``, by their recurrence."""
    weights = [1.0]
    for k in range(1, most):
        weights.append(weights[-1] * (1 - gamma) * (k + float(eta)) / (k + 1))
    first = (
        -(1 - gamma) / math.log(gamma)
        if eta == 0
        else float(eta) * (1 - gamma) / (gamma ** -float(eta) - 1)
    )
    return first * np.array(weights)


def law_of_best(base, eta, gamma):
    """Law of the best of K outcomes of ``base``, which lists probabilities from worst to best."""
    better = np.append(np.cumsum(base[::-1])[::-1][1:], 0.0)
    ends = [generating(eta, gamma, rest) for rest in (1.0, *better)]
    return {place: end - start for place, (start, end) in enumerate(itertools.pairwise(ends))}


# --- the number of runs


@pytest.mark.parametrize("eta", SHAPES)
def test_the_number_of_runs_has_its_law(eta):
    spread = spread_of(4, eta)
    draws = [draw_runs(spread, eta, noise_source()) for _ in range(3_000)]
    most = 8
    expected = law_of_runs(eta, 1 / spread, most)
    expected = np.append(expected, 1 - expected.sum()) * len(draws)
    seen = np.bincount(np.minimum(draws, most + 1), minlength=most + 2)[1:]
    # False alarms: 1e-6 for each law.
    limit = chi2.isf(1e-6, most)
    assert ((seen - expected) ** 2 / expected).sum() < limit
    # A law of another spread is refused.
    other = law_of_runs(eta, 1 / (2 * spread), most)
    other = np.append(other, 1 - other.sum()) * len(draws)
    assert ((seen - other) ** 2 / other).sum() > limit


@pytest.mark.parametrize("eta", SHAPES)
def test_expected_number_of_runs(eta):
    for runs in (1, 2.5, 10):
        spread = spread_of(runs, eta)
        assert mean_runs(spread, eta) >= runs
        assert spread == 1 or mean_runs(spread - 1, eta) < runs
        law = law_of_runs(eta, 1 / spread, 20_000) if spread > 1 else np.ones(1)
        assert law.sum() == pytest.approx(1, abs=1e-6)
        mean = (law * np.arange(1, len(law) + 1)).sum()
        assert mean == pytest.approx(mean_runs(spread, eta), rel=1e-6)


@pytest.mark.parametrize("eta", SHAPES)
def test_the_best_of_secret_runs_costs_what_is_charged(eta):
    rng = np.random.default_rng(0)
    epsilon = 0.7
    for gamma in (0.3, 0.01, 1e-6):
        for size in (2, 3, 6):
            for _ in range(30):
                first = rng.dirichlet(np.full(size, 0.3)) + 1e-9
                second = first * np.exp(epsilon * rng.choice([0, 1], size))
                first, second = first / first.sum(), second / second.sum()
                loss = exact_epsilon(
                    lambda base, g=gamma: law_of_best(base, eta, g), first, second, tail=1e-6
                )
                base = np.abs(np.log(first / second)).max()
                assert loss <= float(price_of_runs(Fraction(1), eta)) * base + 1e-6
    # The bound is reached: an outcome becomes rarer, and rare better ones more frequent.
    better, here = 1e-4, 1e-8
    change = math.exp(epsilon)
    first, second = (
        np.array([1 - better * up - here / up, here / up, better * up]) for up in (1, change)
    )
    loss = exact_epsilon(lambda base: law_of_best(base, eta, 1e-9), first, second, tail=1e-6)
    price = float(price_of_runs(Fraction(1), eta)) * epsilon
    assert 0.99 * price < loss <= price


def test_unseen_hides_everything_but_seeds(capfd):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with unseen():
            print("one line for each run")
            os.write(1, b"compiled code\n")
            os.write(2, b"compiled code\n")
            warnings.warn("one for each run", stacklevel=1)
            noise_source(1)
    assert capfd.readouterr() == ("", "")
    print("seen")
    os.write(2, b"seen, too\n")
    assert capfd.readouterr() == ("seen\n", "seen, too\n")
    assert [one.category for one in seen] == [skdp.exceptions.InsecureSeedWarning]


# --- what is charged


def test_random_stopping_costs_twice_the_dearest_whatever_the_grid():
    ledger = skdp.PrivacyLedger()
    grid = {"synthesizer__epsilon": [0.25, 0.5, 1], "estimator__max_depth": [1, 2, 3]}
    search = PrivateGridSearchCV(
        model(ledger=ledger), grid, epsilon=0.5, strategy="random-stopping", eta=0, runs=3
    )
    assert_private(search)
    assert privacy_report(search).epsilon == Fraction(5, 2)
    search.fit(X, Y)
    assert dict(search.privacy_loss_.parts) == {"fits": 2, "choice": Fraction(1, 2)}
    assert ledger.spent == Fraction(5, 2) and len(ledger.to_frame()) == 1
    geometric = PrivateGridSearchCV(model(), grid, epsilon=0.5, strategy="random-stopping")
    assert privacy_report(geometric).epsilon == Fraction(7, 2)
    # The winner pays again when it is fitted again.
    search.best_estimator_.fit(X, Y)
    assert ledger.spent == Fraction(5, 2) + Fraction(search.best_params_["synthesizer__epsilon"])


def test_halving_spends_about_as_much_in_each_round():
    assert sizes_of_rounds(1) == [1]
    assert sizes_of_rounds(5) == [5, 3, 2, 1]
    assert halving_price([Fraction(1)] * 8) == 4
    assert halving_price([Fraction(1)]) == 1
    # Three candidates: all at a quarter, the two dearest at a half, the dearest whole.
    prices = [Fraction(1), Fraction(2), Fraction(4)]
    assert halving_price(prices) == Fraction(7, 4) + Fraction(6, 2) + 4
    ledger = skdp.PrivacyLedger()
    grid = {"synthesizer__epsilon": [0.5, 1], "estimator__max_depth": [1, 2]}
    search = PrivateGridSearchCV(model(ledger=ledger), grid, epsilon=0.5, strategy="halving")
    expected = privacy_report(search).epsilon
    search.fit(X, Y)
    assert ledger.spent == expected == search.privacy_loss_.epsilon
    assert expected == Fraction(3, 4) + Fraction(2, 2) + 1 + Fraction(1, 2)
    spent = search.best_estimator_.privacy_loss_.epsilon
    assert spent == Fraction(search.best_params_["synthesizer__epsilon"])


def test_halving_refuses_what_cannot_be_scaled():
    inner = PrivateGridSearchCV(model(), {"estimator__max_depth": [1, 2]}, epsilon=0.25)
    with pytest.raises(ValueError, match="cannot be scaled"):
        scaled(inner, Fraction(1, 2))
    ledger = skdp.PrivacyLedger()
    outer = PrivateGridSearchCV(inner, {"epsilon": [0.25, 0.5]}, strategy="halving", ledger=ledger)
    with pytest.raises(ValueError, match="cannot be scaled"):
        outer.fit(X, Y)
    assert ledger.spent == 0


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"strategy": "best"}, "strategy must be"),
        ({"strategy": "random-stopping", "eta": 2}, "eta must lie between"),
        ({"strategy": "random-stopping", "eta": -1}, "eta must lie between"),
        ({"strategy": "random-stopping", "runs": 0}, "runs must be"),
        ({"strategy": "random-stopping", "runs": True}, "runs must be"),
        ({"strategy": "random-stopping", "runs": 1e6}, "runs must be"),
    ],
)
def test_wrong_strategies_are_refused_before_the_charge(params, message):
    ledger = skdp.PrivacyLedger()
    search = PrivateGridSearchCV(model(), RELEASES, ledger=ledger, **params)
    with pytest.raises(ValueError, match=message):
        search.fit(X, Y)
    assert ledger.spent == 0
    with pytest.raises(TypeError):
        as_shape("geometric")


def test_a_budget_that_is_too_small_is_refused():
    for strategy in ("random-stopping", "halving"):
        ledger = skdp.PrivacyLedger(1)
        search = PrivateGridSearchCV(model(), RELEASES, ledger=ledger, strategy=strategy)
        with pytest.raises(skdp.BudgetExceededError):
            search.fit(X, Y)
        assert ledger.spent == 0


# --- who wins


@pytest.mark.parametrize("strategy", ["random-stopping", "halving"])
def test_the_better_candidate_wins(strategy):
    grid = {"estimator": [*CONSTANTS, DecisionTreeClassifier(max_depth=2)]}
    search = PrivateGridSearchCV(model(4), grid, epsilon=20, strategy=strategy, eta=1, runs=60)
    # The best of three is not tried with a probability of 17%; the source of a test is fixed.
    assert search.fit(X, Y).best_index_ == 2
    assert search.score(X, Y) > 0.9


def test_halving_keeps_one_of_one():
    search = PrivateGridSearchCV(model(), {"estimator__max_depth": [2]}, strategy="halving")
    assert search.fit(X, Y).best_index_ == 0
    assert search.privacy_loss_.parts["fits"] == 1


class Fails(ClassifierMixin, BaseEstimator):
    """Cannot be trained on a release, only on the few rows of the rehearsal."""

    def fit(self, X, y):
        if len(X) > 500:
            raise ValueError("a secret")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


@pytest.mark.parametrize("strategy", ["random-stopping", "halving"])
def test_candidates_that_cannot_be_trained_lose(strategy, capsys):
    grid = {"estimator": [Fails(), DecisionTreeClassifier(max_depth=2)]}
    search = PrivateGridSearchCV(
        model(), grid, epsilon=1, strategy=strategy, eta=1, runs=8, verbose=1
    )
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        search.fit(X, Y)
    assert search.best_index_ == 1
    if strategy == "random-stopping":
        assert not seen
        assert capsys.readouterr().out == "Random stopping: the number of runs is secret.\n"
    only = PrivateGridSearchCV(model(), {"estimator": [Fails()]}, strategy=strategy)
    with pytest.raises(skdp.exceptions.TrainingError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        only.fit(X, Y)


@pytest.mark.parametrize("strategy", ["noisy-max", "random-stopping", "halving"])
def test_a_warning_that_is_an_error_costs_nothing(strategy):
    """Of what is known before the charge; it used to end the search after it."""
    ledger = skdp.PrivacyLedger()
    search = PrivateGridSearchCV(model(), RELEASES, strategy=strategy, ledger=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataConversionWarning, match="column-vector"):
            search.fit(X, Y.to_numpy()[:, None])
        search.set_params(estimator=model(random_state=0))
        with pytest.raises(skdp.InsecureSeedWarning):
            search.fit(X, Y)
    assert ledger.spent == 0


@pytest.mark.parametrize("strategy", ["noisy-max", "random-stopping", "halving"])
def test_warnings_of_candidates_end_no_search(strategy):
    search = PrivateGridSearchCV(model(1_000), {"estimator": CONSTANTS}, strategy=strategy)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("error")
        search.fit(X[:0], Y[:0])
    assert hasattr(search, "best_estimator_")
    assert bool(seen) == (strategy != "random-stopping")


def test_scores_of_runs_have_noise_of_their_share(monkeypatch):
    asked = []

    def noted(values, epsilon, sensitivity, *, random_state):
        asked.append((epsilon, sensitivity))
        return values

    monkeypatch.setattr(_search, "discrete_laplace", noted)
    search = PrivateGridSearchCV(
        model(), {"estimator": CONSTANTS}, epsilon=0.5, strategy="random-stopping", eta=1, runs=5
    )
    search.fit(X, Y)
    # A third of the choice for each run, because the best of them costs three times as much.
    assert set(asked) == {(Fraction(1, 6), 1)}
    # Without noise the largest number of correct rows wins among the runs.
    assert search.best_index_ in (0, 1)


def test_nothing_of_the_runs_is_kept():
    search = PrivateGridSearchCV(
        model(), RELEASES, epsilon=1, strategy="random-stopping", runs=2
    ).fit(X, Y)
    plain = PrivateGridSearchCV(model(), {}, epsilon=1).fit(X, Y)
    assert vars(search).keys() == vars(plain).keys()


# --- no run tells another anything


class Draws(ClassifierMixin, BaseEstimator):
    """Draws from the generators of the process, as scikit-learn does without a random_state."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.draws_ = np.random.random(), random.random()  # noqa: NPY002
        return self

    def predict(self, X):
        np.random.random(3)  # noqa: NPY002
        return np.repeat(self.classes_[:1], len(X))


def won_at(monkeypatch, place, private, runs=10):
    """What random stopping releases if the run at this place has the highest score."""
    monkeypatch.setattr(_search, "draw_runs", lambda *args: runs)
    turns = itertools.count(1)
    score = lambda self, fitted, epsilon: int(next(turns) == place)  # noqa: E731
    monkeypatch.setattr(_search.Judge, "noisy_score", score)
    search = PrivateGridSearchCV(private, {}, strategy="random-stopping")
    return search.fit(*TINY).best_estimator_


TINY = np.array([[0.2], [0.8]] * 20), ["low", "high"] * 20


def drawing():
    release = skdp.GridSynthesizer(9.0, domain=skdp.Numeric(0, 1, bins=2))
    return skdp.PrivateClassifier(Draws(), release, classes=["low", "high"], n_samples=30)


def seed_session():
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)


def next_draws(n):
    """The next numbers of both generators of the process."""
    return {*np.random.random(n), *(random.random() for _ in range(n))}  # noqa: NPY002


@pytest.mark.parametrize("place", [1, 10])
def test_no_generator_tells_which_run_won(monkeypatch, place):
    seed_session()
    winner = won_at(monkeypatch, place, drawing()).estimator_
    # Neither what the session draws from now on, nor what a known seed gives, is in the winner.
    later = next_draws(200)
    seed_session()
    assert not (later | next_draws(400)) & set(winner.draws_)


class Prefers:
    """A judge for whom the run at one place is the best."""

    def __init__(self, place):
        self.turns, self.place = itertools.count(1), place
        (self.X, self.y), self.source, self.generators = TINY, noise_source(), []

    def noisy_score(self, fitted, epsilon):
        return int(next(self.turns) == self.place)


class DrawsFromClass(Draws):
    own = np.random.default_rng(0)

    def fit(self, X, y):
        super().fit(X, y)
        self.draws_ = self.own.random(), self.own.random()
        return self


class Sets(Draws):
    """Changes a setting of the process with each fit."""

    def fit(self, X, y):
        self.seen_ = sklearn.get_config()["working_memory"]
        sklearn.set_config(working_memory=self.seen_ + 1)
        return super().fit(X, y)


def test_no_setting_tells_which_run_won(monkeypatch):
    seen = set()
    for place in (1, 10):
        with sklearn.config_context():
            private = drawing().set_params(estimator=Sets())
            seen.add(won_at(monkeypatch, place, private).estimator_.seen_)
    assert len(seen) == 1


@pytest.mark.parametrize("place", [1, 10])
def test_no_generator_of_a_class_tells_which_run_won(monkeypatch, place):
    private = drawing().set_params(estimator=DrawsFromClass())
    winner = won_at(monkeypatch, place, private).estimator_
    assert not {*DrawsFromClass.own.random(200)} & set(winner.draws_)
    assert not {*np.random.default_rng(0).random(400)} & set(winner.draws_)


def test_winners_of_all_places_draw_alike():
    search = PrivateGridSearchCV(drawing(), {}, strategy="random-stopping")

    def winner(place):
        seed_session()
        return search._stop_at_random([Draws()], 10, Prefers(place), Fraction(1))[1].draws_

    first, last = (np.array([winner(place) for _ in range(150)]) for place in (1, 10))
    for one, other in zip(first.T, last.T, strict=True):
        # False alarms: 1e-6 each.
        assert ks_2samp(one, other).pvalue > 1e-6
        assert len({*one, *other}) == 300
        # Winners of one place that began alike would be seen.
        assert ks_2samp(one, np.repeat(other[:1], 150)).pvalue < 1e-6


def frozen():
    """A model of a release that was made earlier: clones hold the same object."""
    domain = skdp.Domain({"x0": skdp.Numeric(0, 1, bins=2), "y": skdp.Categorical(["low", "high"])})
    release = skdp.GridSynthesizer(9.0, domain=domain, target="y").fit(*TINY)
    return skdp.PrivateClassifier(Draws(), FrozenEstimator(release), n_samples=30), release


@pytest.mark.parametrize("place", [1, 10])
def test_a_run_has_a_copy_of_what_its_candidate_holds(monkeypatch, place):
    private, release = frozen()
    winner = won_at(monkeypatch, place, private)
    assert winner.synthesizer_.synopsis_ is not release.synopsis_


def test_a_candidate_that_cannot_be_copied_costs_nothing():
    ledger = skdp.PrivacyLedger()
    private, release = frozen()
    release.lock = threading.Lock()
    search = PrivateGridSearchCV(private, {}, ledger=ledger, strategy="random-stopping")
    with pytest.raises(TypeError, match="cannot be copied"):
        search.fit(*TINY)
    with pytest.raises(TypeError, match="cannot be copied"):
        private_cross_val_score(private, *TINY, epsilon=1, ledger=ledger)
    assert ledger.spent == 0


class Panic(BaseException):
    pass


ERRORS = {error.__name__: error for error in (Panic, SystemExit, ValueError, KeyboardInterrupt)}


class Panics(Draws):
    """Raises on a release what is not an Exception, as Polars does."""

    def __init__(self, error="SystemExit"):
        self.error = error

    def fit(self, X, y):
        if len(X) > 500:
            raise ERRORS[self.error](f"a secret: {len(X)}")
        return super().fit(X, y)


def test_no_error_of_a_run_gets_out(monkeypatch):
    for error in ("Panic", "SystemExit", "ValueError"):
        search = PrivateGridSearchCV(
            model(), {"estimator": [Panics(error)]}, strategy="random-stopping", runs=2
        )
        with pytest.raises(skdp.exceptions.TrainingError) as raised:
            search.fit(X, Y)
        assert "a secret" not in "".join(traceback.format_exception(raised.value))
    grid = {"estimator": [Panics("KeyboardInterrupt")]}
    before = np.random.get_state()[1]  # noqa: NPY002
    with pytest.raises(KeyboardInterrupt):
        PrivateGridSearchCV(model(), grid, strategy="random-stopping", runs=2).fit(X, Y)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    # Elsewhere the release is kept, and the error says so.
    with pytest.raises(skdp.exceptions.TrainingError) as raised:
        model().set_params(estimator=Panics("Panic")).fit(X, Y)
    assert raised.value.synthesizer is not None


def test_workers_of_runs_are_threads():
    """Processes would keep generators of their own from run to run, and print."""
    with unseen():
        assert set(Parallel(n_jobs=2)(delayed(os.getpid)() for _ in range(2))) == {os.getpid()}


def test_the_number_of_runs_moves_no_generator_that_others_see(caplog):
    """Trees draw from NumPy's shared generator, and models may log."""
    import logging

    np.random.seed(0)  # noqa: NPY002
    random.seed(0)
    before = np.random.get_state()[1:3], random.getstate()  # noqa: NPY002
    with _search.unseen():
        np.random.rand(3)  # noqa: NPY002
        random.random()
        logging.getLogger("a model").warning("fitted")
    after = np.random.get_state()[1:3], random.getstate()  # noqa: NPY002
    assert after[1] == before[1] and after[0][1] == before[0][1]
    np.testing.assert_array_equal(after[0][0], before[0][0])
    assert not caplog.records
    logging.getLogger("a model").warning("seen again")
    assert len(caplog.records) == 1


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
    release = synthesizer(1e6, domain=TABLE, random_state=0).fit(ROWS)
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


@pytest.mark.parametrize("strategy", ["noisy-max", "halving", "random-stopping"])
def test_a_search_compares_releases_by_log_likelihood_without_labels(strategy):
    ledger = skdp.PrivacyLedger(100)
    release = skdp.HDPViewSynthesizer(domain=TABLE, ledger=ledger)
    search = PrivateGridSearchCV(
        release,
        {"epsilon": [0.001, 8.0]},
        strategy=strategy,
        runs=20,
        metric="log_likelihood",
        bounds=(-10, 0),
        epsilon=4,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(ROWS)
    # Random stopping may have tried the other one alone.
    assert strategy == "random-stopping" or search.best_params_ == {"epsilon": 8.0}
    assert ledger.spent == search.privacy_loss_.epsilon


def test_a_private_log_likelihood_is_near_the_exact_one_and_needs_its_range():
    release = skdp.HDPViewSynthesizer(8.0, domain=TABLE, random_state=0).fit(ROWS)
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
