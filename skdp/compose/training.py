"""Training an estimator on the rows of a release, which may be weighted or without a label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from .._types import BoolArray, FloatArray
from ..rows import take_rows

__all__ = ["fit_clone", "usable_rows"]


def usable_rows(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    weight: FloatArray | None,
    known: BoolArray,
    rng: np.random.Generator,
) -> tuple[Any, NDArray[Any], FloatArray | None]:
    """The rows with a label; drawn in proportion to weights that the estimator cannot take."""
    if known.all() and (weight is None or has_fit_parameter(estimator, "sample_weight")):
        return X, y, weight
    if weight is None:
        chosen = np.flatnonzero(known)
    else:
        # Not every estimator takes weights: drawing rows in proportion does the same on average.
        share = known * weight
        n_rows = max(1, round(share.sum()))
        chosen = rng.choice(len(y), size=n_rows, p=share / share.sum())
    return take_rows(X, chosen), y[chosen], None


def fit_clone(estimator: Any, X: Any, y: NDArray[Any], weight: FloatArray | None) -> Any:
    """Fit a clone of ``estimator``."""
    estimator = clone(estimator)
    return estimator.fit(X, y) if weight is None else estimator.fit(X, y, sample_weight=weight)
