"""What a search or a cross-validation costs, and one ledger that pays for all of its fits."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from .._base import PrivateEstimator
from .._pipelines import PRIVATE, RELEASE, Rows, Step, ledgers, seeded, total_price, walk
from .._validation import as_epsilon
from ..accounting import PrivacyLedger, prepaid, same_budget, settle
from ..exceptions import BudgetExceededError
from ._scores import _PrivateScorer

__all__ = ["one_ledger", "own_step", "prepaid_clones", "price_of_fit", "rehearse"]


def price_of_fit(estimator: Any) -> tuple[Fraction, bool]:
    """Epsilon of one fit, and whether its noise is seeded.

    Raises
    ------
    ValueError
        If a step is not private, or protects a person instead of a row, or no step is private, or
        the price is not known.
    """
    steps = walk(estimator)
    bad = [step for step in steps if not step.sound]
    if not all(step.seeded for step in bad):
        step = bad[0]
        raise ValueError(
            f"{step.name or step.kind} is not private: {step.kind} {step.why} {step.remedy}"
        )
    if any(getattr(step.estimator, "unit", None) is not None for step in steps):
        raise ValueError(
            "Folds and scores are drawn and protected row by row, but unit= makes the person the "
            "unit of privacy. Choose on synthetic rows, which is free, or leave out unit=."
        )
    total = total_price(step.epsilon for step in steps)
    if total is None:
        raise ValueError(
            f"What a fit of {type(estimator).__name__} spends is not known beforehand."
        )
    # A frozen release is private and was paid for.
    if not total and not any(step.verdict == PRIVATE for step in steps):
        raise ValueError(f"{type(estimator).__name__} has no private step: nothing protects X.")
    return total, bool(bad)


def own_step(meta: Any, name: str, rows: Rows, why: str) -> Step:
    """What a search or a calibration spends itself, beside its estimator."""
    cost = as_epsilon(meta.epsilon)
    step = Step(name, type(meta).__name__, rows.read, PRIVATE, why, epsilon=cost, estimator=meta)
    if rows.released:
        free = meta.ledger is None and not ledgers(meta.estimator)
        return replace(step, verdict=RELEASE, epsilon=Fraction(0) if free else cost)
    loss = getattr(meta, "privacy_loss_", None)
    has_seed = meta.random_state is not None or (loss is not None and loss.seeded)
    return seeded(step) if has_seed else step


# Less than any fit costs.
_NOTHING = Fraction(1, 2**100)


def rehearse(estimator: Any, X: Any, y: Any) -> None:
    """Raise the errors that a fit would raise before its charge: about schema and parameters.

    No row is read: fits of skdp charge before they read, and the ledger here is empty. Pipelines
    are left out, because their first steps read before a later one charges.
    """
    if not isinstance(estimator, PrivateEstimator) and not hasattr(estimator, "_train_on"):
        return
    twin = clone(estimator)
    empty = PrivacyLedger(_NOTHING)
    params = twin.get_params(deep=True)
    twin.set_params(**{key: empty for key in params if key.rpartition("__")[2] == "ledger"})
    # The fit itself will warn, so nothing is shown. Warnings that are errors raise here, where they
    # cost nothing.
    with warnings.catch_warnings(record=True), contextlib.suppress(BudgetExceededError):
        twin.fit(X, y)


def one_ledger(estimators: Sequence[Any], ledger: PrivacyLedger | None) -> PrivacyLedger | None:
    """The ledger to charge; only one is allowed, because all of a search reads one data set.

    Ledgers in a grid are found as well: a fit of the candidate would charge them.
    """
    found = [] if ledger is None else [ledger]
    for one in _ledgers_in(list(estimators)):
        if not any(same_budget(one, other) for other in found):
            found.append(one)
    if len(found) > 1:
        raise ValueError(
            f"{len(found)} ledgers were found, but only one data set is read: give the same "
            f"ledger everywhere, in the grid too. Found: {', '.join(map(repr, found))}."
        )
    return found[0] if found else None


def _ledgers_in(value: Any) -> Iterator[PrivacyLedger]:
    """All ledgers in a parameter or an estimator: also in grids and scorers of searches."""
    if isinstance(value, PrivacyLedger):
        yield value
    elif isinstance(value, _PrivateScorer):
        yield from _ledgers_in(value.ledger)
    elif isinstance(value, Mapping):
        yield from _ledgers_in(list(value.values()))
    elif isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype == "O"):
        for one in value:
            yield from _ledgers_in(one)
    elif hasattr(value, "get_params") and not isinstance(value, type | FrozenEstimator):
        yield from _ledgers_in(value.get_params(deep=False))


@contextlib.contextmanager
def prepaid_clones(
    estimators: Sequence[Any], book: PrivacyLedger | None, epsilon: Fraction
) -> Iterator[list[Any]]:
    """Clones of ``estimators`` whose fits charge a handle on ``book``, prepaid up to epsilon.

    They keep a ledger, so that fitting one of them again, after the search or after an error during
    it, is charged. Private steps without a ledger get it too, because the search has been charged
    for them.
    """
    twins = [clone(estimator) for estimator in estimators]
    if book is None:
        yield twins
        return
    handle = prepaid(book, epsilon)
    for twin in twins:
        twin.set_params(**dict.fromkeys(ledgers(twin), handle))
        for step in walk(twin):
            # A frozen release is the caller's own object, and not fitted again.
            frozen = hasattr(step.estimator, "privacy_loss_")
            bare = getattr(step.estimator, "ledger", handle) is None
            if step.verdict == PRIVATE and bare and not frozen:
                step.estimator.set_params(ledger=handle)
    try:
        yield twins
    finally:
        settle(handle)
