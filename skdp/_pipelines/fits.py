"""How often composites of scikit-learn fit what they hold: from parameters, schema, declarations.

All fits read the same people, or parts of them: by sequential composition their prices add up.
Where scores or rows decide how many fits there are, the largest possible number is taken.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from math import ceil, floor, log
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
)
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.model_selection import TunedThresholdClassifierCV, check_cv
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import (
    ClassifierChain,
    MultiOutputClassifier,
    MultiOutputRegressor,
    RegressorChain,
)
from sklearn.pipeline import Pipeline

from .._base import PrivateEstimator
from ..domain import Attribute, Categorical, Domain
from .origin import library, replaced
from .walk import is_behind, n_candidates


def n_folds(cv: Any) -> int | None:
    """Number of folds of a splitter, or None where it is not known or depends on the rows."""
    if isinstance(cv, list | tuple):
        return len(cv)
    if not (cv is None or isinstance(cv, numbers.Integral) or hasattr(cv, "get_n_splits")):
        # An iterable may be read once only: counting would leave nothing to fit.
        return None
    try:
        return int(check_cv(cv).get_n_splits())
    except Exception:  # leave-one-out and the like ask for the rows; others may ask for anything
        return None


def has_secret_folds(cv: Any) -> bool:
    """Whether the fold of each record is drawn independently and kept secret."""
    ours = library(cv) == "skdp" and not replaced(cv) and getattr(cv, "_secret_folds", False)
    return ours and cv.random_state is None


# --- what a meta-estimator holds, and what of it is declared


def inner_of(meta: Any) -> Any:
    """What a meta-estimator holds."""
    inner = getattr(meta, "estimator", None)
    # Chains called it so before scikit-learn 1.7.
    return inner if hasattr(inner, "fit") else getattr(meta, "base_estimator", None)


def _private_inside(estimator: Any) -> tuple[Any, Any]:
    """The private model that a pipeline, a search or the like ends in, and its synthesizer."""
    while True:
        if isinstance(estimator, Pipeline) and estimator.steps:
            estimator = estimator.steps[-1][1]
        elif isinstance(getattr(estimator, "synthesizer", None), PrivateEstimator):
            return estimator, estimator.synthesizer
        elif isinstance(estimator, PrivateEstimator):
            return estimator, estimator
        elif hasattr(estimator, "estimator"):
            estimator = estimator.estimator
        else:
            return None, None


def _n_labels(meta: Any) -> int | None:
    """Number of labels that ``y`` may have, as declared inside; None where it is not declared.

    Labels that occur in ``y`` without being declared are not counted, because ``y`` is private.
    """
    model, release = _private_inside(inner_of(meta))
    declared = getattr(model, "classes", None)
    declared = getattr(release, "classes", None) if declared is None else declared
    target: Any = getattr(release, "target", None)
    domain = getattr(release, "domain", None)
    if declared is None and isinstance(domain, Domain | Mapping) and target in domain:
        declared = domain[target]
    if isinstance(declared, Categorical):
        declared = declared.categories
    if isinstance(declared, Attribute):
        return declared.n_values if getattr(declared, "integer", False) else None
    labels = None if declared is None else set(np.asarray(declared).ravel().tolist())
    # 0 and 1 are what each inner model is given; they say nothing about the labels outside.
    return None if labels is None or labels <= {0, 1} else len(labels)


def _n_features(meta: Any) -> int | None:
    """Number of columns of ``X``: as seen by a fit (it is part of the schema), or declared."""
    seen = getattr(meta, "n_features_in_", None)
    if isinstance(seen, numbers.Integral):
        return int(seen)
    release = _private_inside(inner_of(meta))[1]
    domain = getattr(release, "domain", None)
    if isinstance(domain, Domain | Mapping):
        return len(domain) - (getattr(release, "target", None) in domain)
    return len(domain) if isinstance(domain, list | tuple) else None


def _n_outputs(meta: Any) -> int | None:
    """Number of columns of ``y``: as seen by a fit (it is part of the schema), or declared."""
    order = getattr(meta, "order", None)
    if order is not None and not isinstance(order, str):
        return len(order)
    seen = getattr(meta, "estimators_", None)
    return None if seen is None else len(seen)


# --- the number of fits, by class


def _times(cv: Any, refit: bool) -> int | None:
    if isinstance(cv, str) and cv == "prefit":
        return 0
    k = 1 if isinstance(cv, float) else n_folds(cv)
    return None if k is None else k + refit


def _chain_times(chain: Any) -> int | None:
    """One fit for each output, and cross-validation for all but the last where cv is given."""
    n, k = _n_outputs(chain), 0 if chain.cv is None else n_folds(chain.cv)
    return None if n is None or k is None else n + (n - 1) * k


def _by_labels(times: Callable[[Any, int], int]) -> Callable[[Any], int | None]:
    """A number of fits that follows from the number of labels."""

    def count(meta: Any) -> int | None:
        n = _n_labels(meta)
        return None if n is None else times(meta, n)

    return count


def _elimination_times(n: int, keep: Any, step: Any) -> int:
    """Fits of an elimination from ``n`` columns to ``keep``: one before each step, and a last."""
    if keep is None:
        keep = n // 2
    elif not isinstance(keep, numbers.Integral):
        keep = int(n * keep)
    size = int(max(1, step * n)) if 0 < step < 1 else int(step)
    return ceil(max(n - keep, 0) / size) + 1


def _rfe_times(rfe: Any) -> int | None:
    n = _n_features(rfe)
    return None if n is None else _elimination_times(n, rfe.n_features_to_select, rfe.step)


def _rfecv_times(rfe: Any) -> int | None:
    """An elimination in each fold, one on all rows, and a last fit.

    Scores decide where the elimination on all rows stops: the fewest columns are assumed.
    """
    n, k = _n_features(rfe), n_folds(rfe.cv)
    if n is None or k is None:
        return None
    return (k + 1) * _elimination_times(n, rfe.min_features_to_select, rfe.step) + 1


def _sequential_times(selector: Any) -> int | None:
    """Cross-validation of each remaining column, in each round.

    With a tolerance, scores end the rounds: at the latest when one column is left.
    """
    n, k, keep = _n_features(selector), n_folds(selector.cv), selector.n_features_to_select
    if n is None or k is None:
        return None
    if isinstance(keep, str):
        rounds = n // 2 if selector.tol is None else n - 1
    else:
        keep = int(keep if isinstance(keep, numbers.Integral) else n * keep)
        rounds = keep if selector.direction == "forward" else n - keep
    return k * sum(n - i for i in range(max(min(rounds, n), 0)))


# Meta-estimators of scikit-learn that keep exact numbers.
_WRAPPERS: list[tuple[Any, Callable[[Any], int | None]]] = [
    ((BaggingClassifier, BaggingRegressor), lambda e: e.n_estimators),
    ((StackingClassifier, StackingRegressor), lambda e: _times(e.cv, True)),
    (CalibratedClassifierCV, lambda e: _times(e.cv, e.ensemble is False)),
    (TunedThresholdClassifierCV, lambda e: _times(e.cv, True)),
    # A single fit for two labels.
    (OneVsRestClassifier, _by_labels(lambda e, n: n if n > 2 else 1)),
    (OneVsOneClassifier, _by_labels(lambda e, n: n * (n - 1) // 2)),
    (OutputCodeClassifier, _by_labels(lambda e, n: int(n * e.code_size))),
    ((MultiOutputClassifier, MultiOutputRegressor), _n_outputs),
    ((ClassifierChain, RegressorChain), _chain_times),
    (RFECV, _rfecv_times),
    (RFE, _rfe_times),
    (SequentialFeatureSelector, _sequential_times),
    (SelectFromModel, lambda e: 0 if e.prefit else 1),
]


def wrapper_fits(meta: Any) -> int | None:
    """How often a meta-estimator fits what it holds; None where that is not known."""
    return next((count(meta) for kind, count in _WRAPPERS if isinstance(meta, kind)), None)


def n_halving_fits(search: Any) -> int | None:
    """How often successive halving fits: one in ``factor`` candidates survives each round.

    How many rounds there are depends on the number of rows, which is private. There are at most as
    many as are needed to leave fewer than ``factor`` candidates. The fits of all those rounds are a
    public upper bound, which is exact if there are enough rows.
    """
    k, first = n_folds(search.cv), n_candidates(search)
    known = search.resource == "n_samples" or is_behind(search.estimator, search.resource)
    if k is None or not known or not isinstance(first, numbers.Integral) or not first:
        return None
    rounds = [int(first)]
    for _ in range(floor(log(first, search.factor))):
        rounds.append(ceil(rounds[-1] / search.factor))
    return k * sum(rounds) + bool(search.refit)
