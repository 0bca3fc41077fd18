"""Fits of every estimator, and what they show."""

import contextlib
import functools
import io
import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import joblib
import sklearn
from estimators import CASES, people

import skdp
from skdp.tables import Column

ROWS = people(300)


SEED = 1234567891


# An age that no bin edge, count or other number of the release equals by chance, and a text.
SECRET_AGE, SECRET_TEXT = 43.210987654321, "secret agent"


SECRETS = ROWS.assign(
    age=[SECRET_AGE, *ROWS["age"][1:]], work=[ROWS["work"][0], SECRET_TEXT, *ROWS["work"][2:]]
)


def case_of(estimator):
    return next(case for case in CASES if case.estimator is type(estimator))


def fit(estimator, rows=ROWS):
    return case_of(estimator).fit(estimator, rows)


def refuse_to_read(monkeypatch):
    """From now on no value of a table is read."""

    def read(*args, **kwargs):
        raise AssertionError("a value was read")

    for reader in ("read", "codes", "numbers", "factorize", "objects"):
        monkeypatch.setattr(Column, reader, read)


@dataclass(frozen=True)
class Once:
    """A fit, the parameters before it, and what it printed and warned of."""

    estimator: Any
    ledger: skdp.PrivacyLedger
    params: dict[str, Any]
    printed: str
    warned: list[type]


@functools.cache
def seeded_fit(name):
    """One fit of a case, with a seed and a ledger, for the tests that leave it as it is."""
    (case,) = [case for case in CASES if case.name == name]
    ledger = skdp.PrivacyLedger(name="clinic")
    estimator = case.make(random_state=SEED, ledger=ledger)
    params, out = dict(estimator.get_params()), io.StringIO()
    with (
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
    ):
        warnings.simplefilter("always")
        fit(estimator, SECRETS)
    assert_paid(estimator, ledger, 1)
    return Once(estimator, ledger, params, out.getvalue(), [one.category for one in caught])


def assert_paid(estimator, ledger, epsilon):
    """The ledger was charged with all of epsilon, and the parts sum to it exactly."""
    exact = epsilon if isinstance(epsilon, Fraction) else Fraction(str(float(epsilon)))
    assert sum(estimator.privacy_loss_.parts.values()) == exact == estimator.privacy_loss_.epsilon
    assert ledger.spent == exact


def hashes(estimator):
    """A hash of each thing that a fit has released."""
    return {k: joblib.hash(v) for k, v in vars(estimator).items() if k.endswith("_")}


def fingerprint(estimator):
    """A hash of everything that a fit has released."""
    return joblib.hash(hashes(estimator))


def shown(estimator):
    with sklearn.config_context(print_changed_only=False):
        texts = [repr(estimator), str(estimator)]
    bundle = estimator._repr_mimebundle_()
    return "\n".join([*texts, repr(estimator), bundle["text/plain"], bundle["text/html"]])
