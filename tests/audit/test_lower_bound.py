"""The auditor: it convicts what is broken, acquits what is right, and refuses what says nothing.

False alarms: each audit of a correct mechanism fails with probability at most .001 (confidence
.999); all draws here repeat, so that a run that passed passes again. Only what other processes draw
of skdp's own noise does not, so its audit has the confidence SURE.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from audited import ALL_AUDITS
from broken import BROKEN, on_grid
from loops import over
from sklearn.base import BaseEstimator

import skdp
from skdp import PrivacyLedger, mechanisms
from skdp.audit import audit, reachable_epsilon
from skdp.audit._lower_bound import log_ratio_bound
from skdp.audit._released import check_neighbours

SURE = 1 - 1e-5


def noisy(seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    return lambda value, n: on_grid(value + rng.laplace(0, scale, n))


def noisy_count(seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    return lambda records: on_grid(len(records) + rng.laplace(0, scale))


# The bounds


@over("p, n", [(0.6, 400), (0.05, 2_000), (0.002, 20_000)])
def test_bounds_hold_and_are_not_slack(p, n):
    # 500 experiments at alpha .05. A valid bound is above the truth in at most .05 of them;
    # 5 standard deviations of the count make false alarms of this test rarer than 1e-6.
    rng = np.random.default_rng(5)
    truth, runs = 1.0, 500
    counts = np.stack([rng.binomial(n, p, runs), rng.binomial(n, p / np.exp(truth), runs)], axis=1)
    bounds = np.array([log_ratio_bound(*pair, n, 0.05) for pair in counts.tolist()])
    assert np.mean(bounds > truth) < 0.05 + 5 * np.sqrt(0.05 / runs)
    # This would reject bounds that are too large by .5.
    assert np.mean(bounds + 0.5 > truth) > 0.05 + 5 * np.sqrt(0.05 / runs)
    # A bound that claimed 20% less privacy loss than it could would be caught: at 3e5 trials
    # it comes close to the truth.
    many = 300_000
    assert 0.97 < log_ratio_bound(round(many * 0.5), round(many * 0.5 / np.e), many, 0.001) < 1


def test_reachable_epsilon():
    # (alpha/2)^(1/n) and 1 - (alpha/2)^(1/n) with n = 500,000.
    low = 0.0005 ** (1 / 500_000)
    assert reachable_epsilon(1_000_000) == pytest.approx(np.log(low / (1 - low)))
    assert reachable_epsilon(2) < 0


# Convictions and acquittals

# Fewer trials than the benchmark's, for the fast ring; what needs all of them is in the slow one.
QUICK = {
    "Algorithm 19, c=1": 200_000,
    "Algorithm 20, c=2": 40_000,
    "Algorithm 21": 20_000,
    "Algorithm 22, t=2": 100_000,
    "Laplace, scale 25% too small": 100_000,
    "exact N divides": 20_000,
    "exact N decides the shape": 5_000,
}


def run_variant(name, repaired, n_trials):
    variant = BROKEN[name]
    mechanism = (variant.repaired if repaired else variant.make)(np.random.default_rng(11))
    pair = variant.dataset, variant.neighbour
    return audit(mechanism, *pair, 1.0, n_trials, vectorised=True, name=name)


@over("name", QUICK)
def test_broken_is_convicted_and_repaired_is_not(name):
    convicted = run_variant(name, False, QUICK[name])
    assert convicted.epsilon_lower_bound > 1 and not convicted.passed
    assert "refuted" in str(convicted) and convicted.confidence == 0.999
    assert all(name in text for text in (str(convicted), repr(convicted)))
    assert "Event" in repr(convicted.event)
    truth = BROKEN[name].ratio
    if truth is not None and "19" not in name:
        # The events of the table are the most telling ones, or nearly: no bound is far above.
        assert convicted.epsilon_lower_bound < math.log(truth) + 0.25
    assert run_variant(name, True, QUICK[name]).passed


@over("scale", [0.5, 1.0])
def test_laplace_is_reached(scale):
    result = audit(noisy(1, scale), 0, 1, 1 / scale, 1_000_000, vectorised=True)
    assert 0.95 / scale < result.epsilon_lower_bound < 1 / scale


PEOPLE = pd.DataFrame({"age": [30, 41, 41], "sex": ["F", "M", None]})


@over(
    "dataset, neighbour",
    [
        ([1, 2, 3, 4], [1, 2]),
        (["Ann", "Bob"], ["Ann", "Eve"]),
        (PEOPLE, PEOPLE.assign(age=[30, 41, 42])),
        ((np.zeros((3, 1)), [0, 0, 1]), (np.zeros((2, 1)), [1, 1])),
        (0, 3),
        ([0.0, 1.0], [0.0, 3.0]),
        ([0, 0], [0, 0]),
        ("abc", "abd"),
        (object(), object()),
    ],
)
def test_other_than_one_record_is_refused(dataset, neighbour):
    refusals = "not neighbours|nothing can be learned|records of an? (str|object)"
    with pytest.raises((ValueError, TypeError), match=refusals):
        audit(noisy_count(), dataset, neighbour, 1.0, 2_000)
    # One record more is none of these.
    for fewer, more in (
        (PEOPLE[:2], PEOPLE),
        ([], [3.5]),
        ((PEOPLE[:2], [0, 1]), (PEOPLE, [0, 1, 1])),
    ):
        check_neighbours(fewer, more, 1)


@over("sensitivity", [3, None])
def test_a_sensitivity_can_be_given(sensitivity):
    assert audit(noisy(0, 3.0), 0, 3, 1.0, 2_000, sensitivity=sensitivity, vectorised=True).passed


# Bad input


class Scale(BaseEstimator):
    """A noisy count; with a seed it warns as skdp's estimators do, if told to."""

    def __init__(self, epsilon=1.0, random_state=None, seed=None, ledger=None):
        self.epsilon = epsilon
        self.random_state = random_state
        self.seed = seed
        self.ledger = ledger

    def fit(self, X, y=None):
        if self.ledger is not None:
            raise RuntimeError("an audit must not charge the ledger")
        mechanisms_seed = self.seed if self.random_state is None else self.random_state
        source = skdp._random.noise_source(mechanisms_seed)
        self.count_ = int(
            mechanisms.discrete_laplace(np.array([len(X)]), self.epsilon, random_state=source)[0]
        )
        return self


def count_of(estimator):
    return estimator.count_


TWO, THREE = np.zeros((2, 1)), np.zeros((3, 1))


def draws_from_seed(value):
    return value + np.random.default_rng(0).laplace()


def with_a_seed_of_skdp(value):
    return int(mechanisms.discrete_laplace(np.array([value]), 1.0, random_state=0)[0])


class Opaque:
    pass


@over(
    "mechanism, options, match",
    [
        (noisy(), {"n_trials": 20}, "too small"),
        (noisy(), {"n_trials": 2.5}, "n_trials"),
        (noisy(), {"epsilon": 12, "n_trials": 1_000_000}, "claim is epsilon=12"),
        (noisy(), {"confidence": 1}, "confidence"),
        (noisy(), {"epsilon": None}, "epsilon"),
        (lambda value, n: np.full(n, value), {}, "no noise"),
        (lambda value, n: np.zeros(n - 1), {}, "one for each trial"),
        (lambda value, n: {}, {}, "one for each trial"),
        (lambda value: Opaque(), {"vectorised": False}, "features="),
        (lambda value: BaseEstimator(), {"vectorised": False}, "features="),
        (3, {}, "function of the data or an estimator"),
        (Scale(), {"features": count_of}, "vectorised"),
        (lambda value, n: value + np.random.default_rng(0).laplace(size=n), {}, "Two batches"),
        (draws_from_seed, {"vectorised": False}, "or a seed"),
        (with_a_seed_of_skdp, {"vectorised": False}, "seed"),
        (Scale(random_state=3), {"features": count_of, "vectorised": False}, "is seeded"),
        (Scale(seed=3), {"features": count_of, "vectorised": False}, "seed"),
    ],
)
@pytest.mark.filterwarnings("default::skdp.exceptions.InsecureSeedWarning")
def test_what_says_nothing_is_refused(mechanism, options, match):
    data = (TWO, THREE) if isinstance(mechanism, BaseEstimator) else (0, 1)
    given = {"epsilon": 1.0, "n_trials": 2_000, "vectorised": True, **options}
    with pytest.raises((ValueError, TypeError), match=match):
        audit(mechanism, *data, **given)


def test_mechanisms_that_raise_in_some_trials():
    rng = np.random.default_rng(0)

    def raising(rates):
        def mechanism(value):
            if rng.random() < rates[value]:
                raise ArithmeticError(f"noise overflow {rng.random()}")
            return on_grid(rng.laplace())

        return mechanism

    # Equally often on both sides: no loss. The messages differ each time, which must not matter.
    assert audit(raising([0.3, 0.3]), 0, 1, 1.0, 4_000).passed
    result = audit(raising([0.01, 0.5]), 0, 1, 1.0, 4_000)
    assert not result.passed and "ArithmeticError" in str(result.event)
    with pytest.raises(ValueError, match="every trial on both"):
        audit(raising([1.0, 1.0]), 0, 1, 1.0, 2_000)


@dataclass(frozen=True)
class Point:
    x: int


def shapes_of_output(value, rng):
    """The same telling number in many wrappings."""
    coin = bool(rng.random() < (0.8 if value else 0.1))
    number = value + rng.laplace(scale=0.2)
    return {
        "number": number,
        "bool": coin,
        "none": None if coin else 0,
        "object": Point(int(coin)),
        "huge": 10**400 if coin else -(10**400),
        "ragged arrays": np.zeros(2 if coin else 3),
        "nested": ("a", (number, "b")),
        "mixed": ("above", number) if coin else "below",
        "set": {"a", "b"} if coin else {"a"},
        "frame": pd.DataFrame({"x": [number]}),
        "nan": math.nan if coin else 1.0,
        "infinite": number * (math.inf if coin else 1e307),
    }


@pytest.mark.filterwarnings("error")
@over("kind", shapes_of_output(0, np.random.default_rng(0)))
def test_outputs_of_all_kinds(kind):
    rng = np.random.default_rng(1)
    assert not audit(lambda v: shapes_of_output(v, rng)[kind], 0, 1, 1.0, 600).passed
    # The same on both sides tells nothing.
    quiet = audit(lambda v: shapes_of_output(0, rng)[kind], 0, 1, 1.0, 600)
    assert quiet.passed and quiet.epsilon_lower_bound < 0.5


def test_estimators():
    sure = {"features": count_of, "confidence": SURE}
    result = audit(Scale(ledger=PrivacyLedger(1)), TWO, THREE, n_trials=3_000, **sure)
    assert result.epsilon == 1.0 and result.name == "Scale"
    assert 0.3 < result.epsilon_lower_bound <= 1
    labelled = (TWO, np.zeros(2)), (THREE, np.zeros(3))
    assert audit(Scale(), *labelled, n_trials=2_000, **sure).passed
    # A wrong claim is convicted.
    assert not audit(Scale(2.0), TWO, THREE, 1.0, 4_000, features=count_of).passed


# The library


@over("name", ALL_AUDITS)
def test_entries_are_sound(name):
    case = ALL_AUDITS[name]
    claim = case.epsilon if case.epsilon is not None else case.mechanism.epsilon
    assert reachable_epsilon(case.n_trials, 0.9999) > 2 * claim
    public = {*mechanisms.__all__, *skdp.__all__, *skdp.quality.__all__}
    public |= {*skdp.preprocessing.__all__, *skdp.model_selection.__all__}
    assert name.split(",")[0] in public


@pytest.mark.slow
@over("name, case", ALL_AUDITS.items())
def test_the_library_is_acquitted(name, case):
    # Unseeded. All entries together, fewer than 200, convict a correct library with probability at
    # most .001.
    result = case.run(name, 1 - 0.001 / 200)
    assert result.passed, str(result)
