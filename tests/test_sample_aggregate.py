"""Sample and aggregate: the estimator, and one record in one block."""

import random
import threading
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import sklearn
from designs import refused
from loops import over
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import skdp
from skdp._random import noise_source
from skdp.sample_aggregate import AGGREGATES, STEPS, aggregate, aggregate_parts, paid_blocks
from skdp.tables import object_array

# --- the estimator


def blocks(estimator, **changes):
    return skdp.SampleAggregate(estimator, **{"epsilon": 1.0, "output_range": (0, 1), **changes})


def line(n=4_000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, X @ [1.0, -0.5] + 0.1 * rng.normal(size=n)


@over("how", AGGREGATES)
def test_coefficients_are_found(how):
    ends = ([-2, -2], [2, 2])
    model = blocks(
        LinearRegression(), epsilon=4.0, output_range=ends, n_blocks=200, aggregate=how
    ).fit(*line())
    np.testing.assert_allclose(model.value_, [1.0, -0.5], atol=0.1)
    assert model.n_blocks_ == 200
    assert model.n_features_in_ == 2


class Odd(BaseEstimator):
    """Raises, answers something else, or a value that is not a number."""

    def __init__(self, way=MemoryError):
        self.way = way

    def fit(self, X, y=None):
        if isinstance(self.way, type):
            raise self.way(f"the largest is {np.max(X)}")
        warnings.warn(f"the largest is {np.max(X)}", stacklevel=1)
        # In small blocks only: made-up rows do not show it.
        shaped = np.zeros(3) if len(X) < 30 else np.zeros(())
        self.end_ = {"shape": shaped, "nan": np.nan, "text": "?", "inf": np.inf}[self.way]
        return self


@over("way", [MemoryError, SystemExit, GeneratorExit, "shape", "nan", "text", "inf"])
def test_a_block_that_fails_is_the_middle_and_nothing_is_told(way, capsys):
    model = blocks(Odd(way), epsilon=1000.0, output_range=(-2, 4), n_blocks=5, output="end_")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(np.ones((30, 1)))
    assert isinstance(model.value_, float) and model.value_ == pytest.approx(1, abs=0.1)
    assert capsys.readouterr() == ("", "")


def test_rehearsals_show_errors_and_cost_nothing():
    ledger = skdp.PrivacyLedger()
    model = blocks(LinearRegression(), output_range=([-2, -2], [2, 2]), ledger=ledger)
    np.testing.assert_allclose(model.rehearse(*line(50)), [1.0, -0.5], atol=0.1)
    with pytest.raises(MemoryError):
        model.set_params(estimator=Odd()).rehearse(np.ones((3, 1)))
    assert ledger.spent == 0


# --- one record, one block


def blocks_of(monkeypatch, model, *data):
    """Exact outputs of all blocks."""
    seen = []

    def noted(outputs, *rest):
        seen.append(outputs.copy())
        return aggregate(outputs, *rest)

    monkeypatch.setattr("skdp.sample_aggregate.aggregate", noted)
    model.set_params(random_state=0).fit(*data)
    return seen[0]


def changed(monkeypatch, model, data, neighbour):
    """How many blocks differ; coins of records are drawn by position, so the last one may go."""
    here, there = (blocks_of(monkeypatch, model, *each) for each in (data, neighbour))
    return int((here != there).any(axis=1).sum())


class Types(BaseEstimator):
    """Tells what its rows and labels become as arrays."""

    def fit(self, X, y=None):
        parts = [np.asarray(part) for part in (X, y) if part is not None]
        self.kinds_ = [float(part.dtype.kind in "if") for part in parts]
        return self


ODD = ["x", 1 + 2j, None, [1, 2], 2**70, np.array([1, 2]), {"a": 1}, b"x"]


@over("odd", ODD)
@over("built", [list, object_array, pd.Series])
def test_an_odd_value_changes_its_own_block_alone(monkeypatch, odd, built):
    model = blocks(Types(), output_range=([0, 0], [1, 1]), n_blocks=10, output="kinds_")
    X, y = [[0.5, 1.0]] * 60, [0, 1] * 30
    assert changed(monkeypatch, model, (X, built(y)), (X, built([*y[:-1], odd]))) <= 1
    assert changed(monkeypatch, model, (X, built(y)), (X[:-1], built(y[:-1]))) <= 1
    # In a row.
    rows = [*X[:-1], [odd, 1.0]]
    assert changed(monkeypatch, model, (X, built(y)), (rows, built(y))) <= 1


class Coins(BaseEstimator):
    """Tells what it draws, then draws as often as it has records."""

    def __init__(self, held=None):
        self.held = held

    def fit(self, X, y=None):
        draws = [np.random.random, random.random]  # noqa: NPY002
        if self.held is not None:
            draws = [self.held.estimator.random]
        self.coin_ = float(np.mean([draw() for draw in draws]))
        for draw in draws:
            for _ in range(len(X)):
                draw()
        return self


SHARED, BITS, PLAIN = np.random.default_rng(0), np.random.PCG64(0), random.Random(0)


class OnClass(BaseEstimator):
    """Draws from generators that its copies share, as often as it has records."""

    own = np.random.RandomState(0)  # noqa: NPY002

    def fit(self, X, y=None, *, other=PLAIN):
        for _ in range(len(X) + 1):
            self.coin_ = (self.own.random() + SHARED.random() + other.random()) / 3
        return self


def jittered(fitted, bits=BITS):
    """An output that draws: more often for blocks with more records."""
    return np.random.Generator(bits).random(int(fitted.n_samples_seen_) + 1)[-1]


@over(
    "estimator, output",
    [
        (Coins(), "coin_"),
        # Clones hold the same frozen object.
        (Coins(FrozenEstimator(np.random.RandomState(0))), "coin_"),  # noqa: NPY002
        (OnClass(), "coin_"),
        (StandardScaler(), jittered),
        (
            make_pipeline(
                FunctionTransformer(lambda X: X + SHARED.random(len(X) + 1)[-1]), StandardScaler()
            ),
            lambda fitted: fitted[-1].mean_[0] - 1,
        ),
    ],
)
def test_no_block_tells_another_how_many_records_it_has(monkeypatch, estimator, output):
    model = blocks(estimator, n_blocks=20, output=output)
    X = np.ones((200, 1))
    assert changed(monkeypatch, model, (X,), (X[:-1],)) <= 1
    before = np.random.get_state()[1], random.getstate()  # noqa: NPY002
    mine = SHARED.bit_generator.state, OnClass.own.get_state()[2]
    model.fit(X)
    assert mine == (SHARED.bit_generator.state, OnClass.own.get_state()[2])
    np.testing.assert_array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert random.getstate() == before[1]


def test_blocks_draw_independently(monkeypatch):
    found = blocks_of(monkeypatch, blocks(Coins(), n_blocks=50, output="coin_"), np.ones((100, 1)))
    assert len(np.unique(found)) == 50
    assert 0.3 < found.mean() / STEPS < 0.7


class Careless(BaseEstimator):
    """Changes settings of the process and its rows, and sees whether another one has."""

    def fit(self, X, y=None):
        changed = np.geterr()["divide"] == "raise" or sklearn.get_config()["assume_finite"]
        self.seen_ = changed or min((row[0] for row in X), default=0.5) < 0.5
        np.seterr(divide="raise")
        sklearn.set_config(assume_finite=True)
        warnings.simplefilter("error")
        for row in X:
            row[0] = 0.0
        return self


def test_no_block_changes_settings_or_rows_of_another(monkeypatch):
    before = np.geterr(), sklearn.get_config(), list(warnings.filters)
    model, rows = blocks(Careless(), n_blocks=4, output="seen_"), [[1.0]] * 40
    assert not blocks_of(monkeypatch, model, rows).any() and rows[0] == [1.0]
    assert changed(monkeypatch, model, (rows,), (rows[:-1],)) == 0
    assert before == (np.geterr(), sklearn.get_config(), warnings.filters)


def test_who_ends_the_process_is_heard_and_what_cannot_be_copied_costs_nothing():
    with pytest.raises(KeyboardInterrupt):
        blocks(Odd(KeyboardInterrupt), n_blocks=5).fit(np.ones((30, 1)))
    held = FrozenEstimator(StandardScaler())
    held.lock = threading.Lock()
    refused(blocks(held, output="mean_"), TypeError, "cannot be copied", np.ones((30, 1)))


@over("box", [np.asarray, pd.DataFrame])
def test_an_output_of_another_shape_is_refused_before_the_charge(box):
    X = np.random.default_rng(0).normal(size=(400, 3))
    wrong = blocks(LinearRegression(), output="coef_", output_range=(-5, 5))
    refused(wrong, ValueError, r"has shape \(3,\), and output_range has \(\)", box(X), X[:, 0])
    # As many rows of coefficients as there are labels, which nobody knows beforehand.
    ends = (np.full((3, 3), -5), np.full((3, 3), 5))
    right = blocks(LogisticRegression(), output="coef_", output_range=ends)
    assert right.fit(box(X), np.arange(400) % 3).value_.shape == (3, 3)


# --- aggregates of the outputs of blocks

HUGE = Fraction(10**9)


def test_without_noise_they_are_what_they_are_called():
    values = np.random.default_rng(0).integers(STEPS // 4, STEPS // 2, (101, 2))
    values[:5, 0] = STEPS
    found = {
        how: aggregate(values, how, aggregate_parts(HUGE, how, False), noise_source(0))[0]
        for how in AGGREGATES
    }
    low, high = np.quantile(values, [0.25, 0.75], axis=0)
    cut = np.clip(values, 3 * low - 2 * high, 3 * high - 2 * low)
    for how, truth in (("mean", values.mean(0)), ("winsorised", cut.mean(0))):
        np.testing.assert_allclose(found[how], truth, rtol=2e-3)
    np.testing.assert_allclose(found["median"], np.median(values, axis=0), atol=1)
    # The number of blocks grows with that of records.
    numbers = [paid_blocks(n, HUGE, noise_source(0)) for n in (0, 100, 10_000, 1_000_000)]
    assert numbers == [2, 16, 251, 3981]
