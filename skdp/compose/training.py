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

# Parameters of estimators that compare with a number of rows, whatever their weights.
_COUNT_ROWS = ("min_samples_leaf", "min_samples_split", "min_child_samples")
# Rows that weighted rows are expanded to, roughly, at most.
_MOST_EXPANDED = 200_000


def usable_rows(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    weight: FloatArray | None,
    known: BoolArray,
    rng: np.random.Generator,
) -> tuple[Any, NDArray[Any], FloatArray | None]:
    """The rows with a label; drawn in proportion to weights that the estimator cannot take.

    An estimator that takes weights but counts rows, as trees do against ``min_samples_leaf``, gets
    each row as many times as it weighs, each copy with an equal share of its weight.
    """
    if known.all() and (weight is None or has_fit_parameter(estimator, "sample_weight")):
        if weight is None or not _counts_rows(estimator):
            return X, y, weight
        scale = min(1.0, _MOST_EXPANDED / max(float(weight.sum()), 1.0))
        times = np.maximum(np.ceil(weight * scale), 1).astype(np.int64)
        chosen = np.repeat(np.arange(len(y)), times)
        return take_rows(X, chosen), y[chosen], (weight / times)[chosen]
    if weight is None:
        chosen = np.flatnonzero(known)
    else:
        # Not every estimator takes weights: drawing rows in proportion does the same on average.
        share = known * weight
        n_rows = max(1, round(share.sum()))
        chosen = rng.choice(len(y), size=n_rows, p=share / share.sum())
    return take_rows(X, chosen), y[chosen], None


def _counts_rows(estimator: Any) -> bool:
    """Whether a parameter of the estimator, or of one inside it, is a number of rows above two."""
    for name, value in estimator.get_params().items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        # Two rows is the least that can be split; a float below one is a share of the rows.
        if name.rpartition("__")[2] in _COUNT_ROWS and is_number and (value > 2 or 0 < value < 1):
            return True
    return False


def fit_clone(estimator: Any, X: Any, y: NDArray[Any], weight: FloatArray | None) -> Any:
    """Fit a clone of ``estimator``."""
    estimator = clone(estimator)
    return estimator.fit(X, y) if weight is None else estimator.fit(X, y, sample_weight=weight)
