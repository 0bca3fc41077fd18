"""What holds for every meta-estimator: scikit-learn's checks, and what a copy or a file keeps."""

import copy
import itertools
import pickle
import warnings
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from typing import Any

import joblib
import numpy as np
import pytest
import searched
from estimators import CASES, CLASSES_ARE_DECLARED, EMPTY_IS_LEGAL, public_estimators
from fitted import fingerprint, seeded_fit, shown
from joblib import Parallel, delayed
from loops import over
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

import skdp
from skdp.accounting import LedgerError
from skdp.inspection import privacy_report
from skdp.model_selection import PrivateGridSearchCV
from skdp.model_selection._cross_val import prepaid_clones

SEED = 1234567891

# As many as scikit-learn's folds and trees need.
X = searched.X[:400]
Y = {"classifier": searched.Y[:400], "regressor": X["a"].rename("label")}


def release(epsilon=1.0, *, domain=searched.SQUARE, **params):
    return skdp.MarginalSynthesizer(epsilon=epsilon, domain=domain, **params)


def classifier(synthesizer, classes=("high", "low"), **params):
    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    return skdp.PrivateClassifier(tree, synthesizer, classes=list(classes), **params)


def regressor(synthesizer, target_range=(0, 1), **params):
    tree = DecisionTreeRegressor(max_depth=4, random_state=0)
    return skdp.PrivateRegressor(tree, synthesizer, target_range=target_range, **params)


GRID = {"estimator__max_depth": [1, 4]}


def class_search(synthesizer, *, inner=None, grid=GRID, model=classifier, **params):
    return PrivateGridSearchCV(model(synthesizer, **(inner or {})), grid, **params)


def value_search(synthesizer, **params):
    params = {"metric": "mean_squared_error", "domain": (0, 1), **params}
    return class_search(synthesizer, model=regressor, **params)


@dataclass(frozen=True)
class Meta:
    """How to make a meta-estimator around a synthesizer, and how scikit-learn's checks take it."""

    make: Any
    kind: str
    for_arrays: dict[str, Any]
    expected_failures: dict[str, str]

    def fit(self, estimator):
        return estimator.fit(X, Y[self.kind])


INFINITE_IS_LEGAL = {
    "check_supervised_y_no_nan": "an infinite target is clipped to the declared range: an error "
    "would depend on a private value"
}
LABELS = {"classes": [0, 1, 2], "random_state": 0}
VALUES = {"target_range": (-200, 200), "random_state": 0}
METAS = {
    "PrivateClassifier": Meta(
        classifier, "classifier", LABELS, EMPTY_IS_LEGAL | CLASSES_ARE_DECLARED
    ),
    "PrivateRegressor": Meta(regressor, "regressor", VALUES, EMPTY_IS_LEGAL | INFINITE_IS_LEGAL),
    "PrivateGridSearchCV": Meta(
        class_search,
        "classifier",
        {"inner": LABELS, "epsilon": 50, "random_state": 0},
        EMPTY_IS_LEGAL | CLASSES_ARE_DECLARED,
    ),
    "PrivateGridSearchCV of regressors": Meta(
        value_search,
        "regressor",
        {"inner": VALUES, "domain": (-200, 200), "epsilon": 50, "random_state": 0},
        EMPTY_IS_LEGAL | INFINITE_IS_LEGAL,
    ),
}


@cache
def seeded_meta(name):
    """One fit with a seed, its ledger and what it cost, for tests that leave it as it is."""
    ledger = skdp.PrivacyLedger(name="clinic")
    made = METAS[name].make(release(1, ledger=ledger, random_state=SEED))
    return METAS[name].fit(made), ledger, ledger.spent


def test_every_meta_estimator_is_here():
    metas = {each for each in public_estimators() if issubclass(each, MetaEstimatorMixin)}
    # It reads records as other estimators do, and is checked with them.
    metas -= {skdp.SampleAggregate}
    assert metas == {type(meta.make(release())) for meta in METAS.values()}


# --- scikit-learn's checks


BOTH = ("check_fit_idempotent", "check_supervised_y_2d")
COMPARES_FITS = {
    "classifier": (*BOTH, "check_classifier_data_not_an_array"),
    "regressor": (*BOTH, "check_regressor_data_not_an_array", "check_regressors_int"),
}
# Seeded everywhere: the checks compare two fits, and expect sense of ten rows.
ARRAYS = {"domain": skdp.Numeric(-10, 10, bins=4), "random_state": 0}
FOR_ARRAYS = [meta.make(release(50, **ARRAYS), **meta.for_arrays) for meta in METAS.values()]
EXPECTED_FAILURES = {
    joblib.hash(estimator): meta.expected_failures
    for estimator, meta in zip(FOR_ARRAYS, METAS.values(), strict=True)
}
# The default models, without an estimator: their noise has no seed.
for name, label in (("classifier", {"classes": [0, 1, 2]}), ("regressor", VALUES)):
    default = {"epsilon": 50, "domain": ARRAYS["domain"], **label}
    FOR_ARRAYS.append(getattr(skdp, f"Private{name.title()}")(**default))
    EXPECTED_FAILURES[joblib.hash(FOR_ARRAYS[-1])] = {
        **METAS[f"Private{name.title()}"].expected_failures,
        **dict.fromkeys(COMPARES_FITS[name], "compares two fits, and noise without a seed differs"),
    }
# These may pass by chance: predictions of labels can agree.
MAY_PASS = {*COMPARES_FITS["classifier"]}


@parametrize_with_checks(
    FOR_ARRAYS, expected_failed_checks=lambda estimator: EXPECTED_FAILURES[joblib.hash(estimator)]
)
def test_sklearn_checks(estimator, check):
    reasons = EXPECTED_FAILURES[joblib.hash(estimator)]
    name = check.func.__name__
    if name in MAY_PASS and "without a seed" in reasons.get(name, ""):
        pytest.skip(reasons[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", skdp.InsecureSeedWarning)
        check(estimator)


# --- the ledger


# What is trusted in a file of skops: skdp, scikit-learn, and what Fractions are made of.
TRUSTED = ("skdp.", "sklearn.", "fractions.Fraction", "builtins.frozenset")


def through_skops(estimator):
    io = pytest.importorskip("skops.io")
    data = io.dumps(estimator)
    types = io.get_untrusted_types(data=data)
    assert all(each.startswith(TRUSTED) for each in types)
    return io.loads(data, trusted=types)


def through_pickle(estimator):
    return pickle.loads(pickle.dumps(estimator))


@over("name, through", itertools.product(METAS, [through_pickle, through_skops]))
def test_what_comes_out_of_a_file_does_not_fit_for_free(name, through):
    estimator, ledger, cost = seeded_meta(name)
    meta, before = METAS[name], ledger.spent
    twin = through(estimator)
    assert twin.privacy_loss_ == estimator.privacy_loss_ and twin.privacy_loss_.seeded
    # Before a fit a seed goes into a file, behind it no longer.
    assert str(SEED) not in shown(twin)
    assert SEED.to_bytes(4, "little") not in pickle.dumps(estimator)
    np.testing.assert_array_equal(twin.predict(X), estimator.predict(X))
    for one in (twin, clone(twin), copy.deepcopy(twin), pickle.loads(pickle.dumps(twin))):
        with pytest.raises(LedgerError, match=r"'clinic' .*set_params\(ledger="):
            meta.fit(one)
    assert ledger.spent == before
    keys = [k for k, v in twin.get_params().items() if isinstance(v, skdp.PrivacyLedger)]
    meta.fit(twin.set_params(**dict.fromkeys(keys, ledger)))
    assert ledger.spent == before + cost


@over("meta", METAS.values())
def test_copies_and_what_is_inside_a_fitted_one_pay_for_a_fit(meta):
    ledger = skdp.PrivacyLedger(20)
    estimator = meta.fit(meta.make(release(1, ledger=ledger)))
    inner, copies = getattr(estimator, "best_estimator_", estimator), (copy.copy, copy.deepcopy)
    for one in (inner, clone(inner), *(each(estimator) for each in copies)):
        before, cost = ledger.spent, meta.fit(one).privacy_loss_.epsilon
        assert cost >= 1 and ledger.spent == before + cost
    before = ledger.spent
    clone(inner.synthesizer_).set_params(target="a", domain=searched.SQUARE).fit(X)
    assert ledger.spent == before + 1


def test_workers_charge_the_file_or_refuse(tmp_path):
    meta = METAS["PrivateClassifier"]
    ledger, memory = skdp.PrivacyLedger(5, tmp_path / "l.db"), skdp.PrivacyLedger(5)
    estimator = meta.make(release(1, ledger=ledger))
    (fitted,) = Parallel(n_jobs=2)([delayed(meta.fit)(estimator)])
    assert ledger.spent == 1
    # It came back from the worker by a pickle.
    with pytest.raises(LedgerError, match="set_params"):
        meta.fit(fitted)
    with pytest.raises(LedgerError, match=r"clone\(est\)"):
        Parallel(n_jobs=2)([delayed(meta.fit)(fitted)])
    validate = partial(cross_val_score, X=X, y=Y[meta.kind], cv=2, n_jobs=2, error_score="raise")
    validate(clone(estimator))
    assert ledger.spent == 3
    with pytest.raises(LedgerError, match=r"n_jobs=2.*path="):
        validate(meta.make(release(1, ledger=memory)))
    assert memory.spent == 0


GRIDS = {
    "with and without": lambda ledger: {"synthesizer__ledger": [None, ledger]},
    "of several grids": lambda ledger: [
        {"estimator__max_depth": [1]},
        {"synthesizer__epsilon": [2], "synthesizer": [release(4, ledger=ledger)]},
    ],
}


@over("grid", GRIDS.values())
def test_a_ledger_in_the_grid_is_charged_once_for_the_search_and_no_second_one(grid):
    ledger = skdp.PrivacyLedger(20)
    search = class_search(release(1), grid=grid(ledger), epsilon=0.5)
    search.fit(X, Y["classifier"])
    assert ledger.spent == search.privacy_loss_.epsilon > 1
    assert len(ledger.to_frame()) == 1
    poor = skdp.PrivacyLedger(Fraction(1, 2))
    with pytest.raises(skdp.BudgetExceededError):
        class_search(release(1), grid=grid(poor), epsilon=0.5).fit(X, Y["classifier"])
    other = skdp.PrivacyLedger(20, name="other")
    for search in (
        class_search(release(1, ledger=poor), grid=grid(other)),
        class_search(release(1), grid=grid(other), ledger=poor),
    ):
        with pytest.raises(ValueError, match="2 ledgers were found.*in the grid too.*'other'"):
            search.fit(X, Y["classifier"])
        assert "has 2 ledgers" in privacy_report(search).reasons[0]
    assert poor.spent == other.spent == 0


def test_a_fit_that_costs_more_than_was_paid_for_is_charged():
    ledger = skdp.PrivacyLedger(10)
    model = classifier(release(1, ledger=ledger))
    # Too little, as a wrong price would make it.
    with prepaid_clones([model], ledger, Fraction(1, 4)) as (paid,):
        paid.fit(X, Y["classifier"])
        assert ledger.spent == 1
    # Enough; the clone pays for a second fit.
    with prepaid_clones([model], ledger, Fraction(1)) as (paid,):
        paid.fit(X, Y["classifier"])
        assert ledger.spent == 1
    paid.fit(X, Y["classifier"])
    assert ledger.spent == 2


# --- seeds


def test_seeds_in_a_grid_are_not_shown_and_stay_behind():
    grid = {"synthesizer": [release(2, random_state=SEED + 1)], "estimator__random_state": [7]}
    search = class_search(release(1), grid=grid, random_state=SEED + 2)
    for one in (search, Pipeline([("search", search)]), clone(search)):
        assert not any(str(SEED + i) in shown(one) for i in range(3))
        # Training on the release is free to be repeated.
        assert "'estimator__random_state': [7]" in repr(one).replace("\n", "")
    search.fit(X, Y["classifier"])
    stored = pickle.dumps(search)
    assert not any((SEED + i).to_bytes(4, "little") in stored for i in range(3))
    twin = pickle.loads(stored)
    assert twin.best_params_["estimator__random_state"] == 7 and twin.privacy_loss_.seeded
    # Noise is nothing to be tuned, so that no grid needs to hide its seeds.
    seeds = class_search(release(1), grid={"synthesizer__random_state": [SEED]})
    with pytest.raises(ValueError, match="a seed of noise"):
        seeds.fit(X, Y["classifier"])


# --- skops


@over("case", CASES)
def test_skops_restores_a_fitted_estimator(case):
    estimator = seeded_fit(case.name).estimator
    twin = through_skops(estimator)
    assert fingerprint(twin) == fingerprint(estimator)
    assert twin.privacy_loss_ == estimator.privacy_loss_
    assert twin.random_state is None
    assert repr(twin.ledger) == "<PrivacyLedger 'clinic': detached>"
