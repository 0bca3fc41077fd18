"""Whether what a fitted estimator learned was paid for, and what its parameters carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from .carried import carries
from .origin import kind_of, library
from .steps import PRIVATE, TAME, UNKNOWN, Range, Rows, Step
from .walk import walk

__all__ = ["brought_along", "brought_by", "is_paid", "params_of"]

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


def params_of(estimator: Any) -> dict[str, Any]:
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
    params = params_of(estimator)
    inner = estimator.get_params(deep=True) if params else {}
    ours = [key for key, value in inner.items() if library(value) == "skdp"]
    return [
        value
        for key, value in inner.items()
        if hasattr(value, "fit") and not any(key.startswith(f"{other}__") for other in ours)
    ]
