"""Verdicts on estimators of other libraries and of users.

Some treat each row independently (`row_by_row`); some hold private estimators and fit them
repeatedly; all others are fitted to the true rows and keep what they learned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from .._base import PrivateEstimator
from .carried import carries
from .fits import inner_of, wrapper_fits
from .origin import call_name, kind_of, library
from .rules import row_by_row
from .steps import LEAKS, PRIVATE, PUBLIC, RELEASE, TAME, UNKNOWN, Range, Refusal, Rows, Step, child
from .verdicts import seeded, step_of, unknown
from .walk import Result, visits, walk, walk_all

__all__ = ["brought_along", "brought_by", "foreign", "is_paid", "judged"]

# --- whether what a fitted estimator learned was paid for, and what its parameters carry

# Rows on which no step that treats each row independently can raise.
_TAME = Rows(range=Range(0, 1, False, TAME))
# Parameters of composites that are visited, each by itself.
_PARTS = {
    "estimator",
    "estimators",
    "param_distributions",
    "param_grid",
    "regressor",
    "remainder",
    "steps",
    "transformer",
    "transformer_list",
    "transformers",
}


def is_paid(fitted: Any) -> bool:
    """Whether an estimator is fitted, and what it learned is private."""
    try:
        check_is_fitted(fitted)
    except (NotFittedError, TypeError):
        return False
    loss = getattr(fitted, "privacy_loss_", None)
    steps = walk(fitted)
    return (
        all(step.sound for step in steps)
        and any(step.verdict == PRIVATE for step in steps)
        and not (loss is not None and loss.seeded)
        and all(step.sound for one, on in _fitted_parts(fitted) for step in walk(one, rows=on))
    )


def brought_along(estimator: Any, name: str, thing: object, rows: Rows) -> list[Step]:
    """A step, if ``thing`` carries true rows into an ``estimator`` that reads a release."""
    what = carries(thing, is_paid, rows.lengths)
    if not what:
        return []
    why = f"reads a release, but carries {what}."
    remedy = (
        "Freeze fitted private estimators only; give functions that refer only to their "
        "arguments and libraries, and lists of public values in place of tables."
    )
    return [Step(name, kind_of(estimator), "a release", UNKNOWN, why, remedy)]


def brought_by(composite: Any, name: str, rows: Rows) -> list[Step]:
    """A step, if parameters of a composite after a release carry true rows."""
    if not rows.released or isinstance(composite, FrozenEstimator):
        return []
    params = composite.get_params(deep=False)
    own = [value for key, value in params.items() if key not in _PARTS]
    return [step for value in own for step in brought_along(composite, name, value, rows)][:1]


def _params_of(estimator: Any) -> dict[str, Any]:
    """Parameters of an estimator; none of what has no ``get_params``."""
    return estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}


def _fitted_parts(estimator: Any) -> list[tuple[Any, Rows]]:
    """What composites fitted, and on what; their parameters may have been changed since."""
    parts: list[tuple[Any, Rows]] = []
    for one in [estimator, *_deep(estimator)]:
        if isinstance(one, FrozenEstimator):
            continue
        held = vars(one)
        if library(one) == "skdp":
            if "estimator_" in held:
                # A clone, because training on the release is not a warm start.
                parts.append((clone(held["estimator_"]), Rows(released=True)))
            names = ("synthesizer_", "best_estimator_")
            parts += [(held[name], _TAME) for name in names if name in held]
            continue
        learned = [value for name, value in held.items() if name.endswith("_")]
        parts += [(value, _TAME) for value in _estimators_in(learned)]
    return parts


def _estimators_in(values: list[Any]) -> list[Any]:
    """Estimators among values, and in lists, mappings and arrays of objects among them."""
    found, left = [], list(values)
    while left:
        value = left.pop()
        if isinstance(value, list | tuple):
            left += value
        elif isinstance(value, Mapping):
            left += value.values()
        elif isinstance(value, np.ndarray) and value.dtype == object:
            left += value.tolist()
        elif hasattr(value, "fit") and not isinstance(value, type):
            found.append(value)
    return found


def _deep(estimator: Any) -> list[Any]:
    """Estimators within an estimator, those within skdp's own left out."""
    params = _params_of(estimator)
    inner = estimator.get_params(deep=True) if params else {}
    ours = [key for key, value in inner.items() if library(value) == "skdp"]
    return [
        value
        for key, value in inner.items()
        if hasattr(value, "fit") and not any(key.startswith(f"{other}__") for other in ours)
    ]


# --- the verdicts

# Libraries whose estimators are known to keep what they learn.
_LEARNERS = ("sklearn", "imblearn", "xgboost", "lightgbm", "catboost")
# Meta-estimators that set every random_state inside them, that of the noise too.
_SEEDERS = (BaggingClassifier, BaggingRegressor, AdaBoostClassifier, AdaBoostRegressor)


@visits(object)
def foreign(estimator: Any, name: str, rows: Rows) -> Result:
    """An estimator that no other visitor knows."""
    if rows.released:
        why = "learns from a release only, which is free."
        learns = step_of(estimator, name, rows, RELEASE, why)
        return brought_along(estimator, name, estimator, rows) or [learns], rows
    outcome = row_by_row(estimator, rows.range)
    if (kind_of(estimator), library(estimator)) == ("FunctionSampler", "imblearn"):
        outcome = _sampler(estimator)
    if outcome is not None:
        return judged(outcome, name, kind_of(estimator), rows)
    steps = _wrapper(estimator, name, rows)
    if not steps:
        if library(estimator) not in _LEARNERS:
            why = "is not known: it may keep anything of the true rows"
            return unknown(estimator, name, rows, why)
        why = "is fitted to the true rows and keeps what it learned, exactly."
        steps = [step_of(estimator, name, rows, LEAKS, why, _remedy(estimator))]
    mixed = rows.mixed_by or name or kind_of(estimator)
    return steps, replace(rows, mixed_by=mixed, range=Range())


def judged(outcome: Range | Refusal | None, name: str, kind: str, rows: Rows) -> Result:
    """The step of a transformer whose class is known, and what the next step is given."""
    if isinstance(outcome, Range):
        why = "transforms each row independently and learns nothing from them."
        return [Step(name, kind, "nothing", PUBLIC, why)], replace(rows, range=outcome)
    assert outcome is not None
    behind = replace(rows, range=Range())
    if outcome.learns:
        behind = replace(behind, mixed_by=rows.mixed_by or name or kind)
    elif not outcome.alone:
        behind = replace(behind, doubtful=rows.doubtful or name or kind)
    verdict = LEAKS if outcome.alone or outcome.learns else UNKNOWN
    return [Step(name, kind, "raw rows", verdict, outcome.why, outcome.remedy)], behind


def _sampler(sampler: Any) -> Refusal:
    """imbalanced-learn's sampler that calls a function."""
    why = "raises unless two labels occur in the raw data"
    if sampler.func is not None:
        why += f", and calls {call_name(sampler.func)}, which may let a row depend on the others"
    return Refusal(f"{why}.", "Put it behind the release.", alone=sampler.func is None)


# --- meta-estimators: bagging, stacking, calibration, boosting, elimination of features


def _wrapper(meta: Any, name: str, rows: Rows) -> list[Step]:
    """Steps of a meta-estimator that holds private estimators; none where it holds none.

    It fits them several times, to parts of the rows, and keeps labels, weights or predictions of
    true rows beside them.
    """
    inner = _inner_private(meta)
    if not inner:
        return []
    parts, times = _held(meta)
    steps = []
    if times is not None:
        for part, held in parts:
            steps += walk_all([held], child(name, part), rows, times=times)
    if isinstance(meta, _SEEDERS):
        steps = [
            seeded(step, kind_of(meta))
            if step.sound and "random_state" in _params_of(step.estimator)
            else step
            for step in steps
        ]
    count = "an unknown number of" if times is None else f"{times:,}"
    why = f"fits {', '.join(inner)} {count} times to parts of the rows"
    if times is not None and isinstance(
        meta, OneVsRestClassifier | OneVsOneClassifier | OutputCodeClassifier
    ):
        why += ", if y has no label that is not declared"
    own = step_of(
        meta,
        name,
        rows,
        LEAKS if library(meta) == "sklearn" else UNKNOWN,
        f"{why}, and keeps what it reads of the true rows and labels beside it.",
        f"Turn it inside out: {_private_twin(is_regressor(meta), meta)}",
    )
    return [*steps, replace(own, epsilon=None if times is None else Fraction(0))]


def _inner_private(estimator: Any) -> list[str]:
    """Names of the private estimators that a meta-estimator holds, and fits."""
    try:
        params = estimator.get_params(deep=True)
    except Exception:  # a user's estimator may raise anything
        return []
    frozen = [key for key, value in params.items() if isinstance(value, FrozenEstimator)]
    return sorted(
        {
            kind_of(value)
            for key, value in params.items()
            if isinstance(value, PrivateEstimator) or hasattr(value, "_privacy_steps")
            if not any(key == other or key.startswith(f"{other}__") for other in frozen)
        }
    )


def _held(meta: Any) -> tuple[list[tuple[str, Any]], int | None]:
    """What a meta-estimator holds, with its name, and how often it fits that."""
    times = wrapper_fits(meta)
    several = getattr(meta, "estimators", None)
    if not isinstance(several, list):
        return [("estimator", inner_of(meta))], times
    # A private estimator on top reads predictions of the others: its price is not known.
    top = getattr(meta, "final_estimator", None)
    known = top is None or not (_inner_private(top) or hasattr(top, "_privacy_steps"))
    parts = [(part, inner) for part, inner in several if not isinstance(inner, str)]
    return parts, times if known else None


# --- what to do instead


def _private_twin(regressor: bool, estimator: Any) -> str:
    twin = "PrivateRegressor" if regressor else "PrivateClassifier"
    return f"{twin}({kind_of(estimator)}(...), synthesizer)."


def _remedy(estimator: Any) -> str:
    if hasattr(estimator, "fit_resample"):
        return "Use a synthesizer of skdp in its place: it draws synthetic rows."
    task = _task(estimator)
    if task in ("classifier", "regressor"):
        return _private_twin(task == "regressor", estimator)
    if task == "clusterer":
        return "DPKMeans, or cluster the synthetic rows of a release."
    if kind_of(estimator) in ("StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler"):
        return "PrivateStandardScaler, or put it behind the release, inside PrivateClassifier."
    if hasattr(estimator, "get_support"):
        return "DPTopKSelector, or select on synthetic rows."
    return "Put it behind the release: inside PrivateClassifier, or on synthetic rows."


def _task(estimator: Any) -> str | None:
    task = getattr(estimator, "_estimator_type", None)
    if task is not None:
        return task
    try:
        return get_tags(estimator).estimator_type
    except Exception:  # a user's estimator may raise anything
        return None
