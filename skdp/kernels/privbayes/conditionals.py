"""From noisy joint counts to conditional probabilities."""

from __future__ import annotations

import numpy as np

from ..._types import FloatArray, IntArray
from ...hierarchy import project_to_simplex

__all__ = ["NEGATIVES", "conditional"]

NEGATIVES = ("project", "zero")


def conditional(noisy: IntArray, total: int, negatives: str) -> FloatArray:
    """Probabilities of an attribute's codes for each combination of its parents.

    Parameters
    ----------
    noisy : ndarray of int64, shape (n_groups, size)
        Released joint counts.
    total : int
        Released number of records.
    negatives : {"project", "zero"}
        How negative counts are removed: by the nearest counts that are not negative and sum to the
        total, or by setting them to zero, as the paper does.

    Returns
    -------
    ndarray of float64, shape (n_groups, size)
        Rows sum to 1. Where no record is left, a row is the mean of the others.

    Examples
    --------
    >>> conditional(np.array([[30, 10], [-4, 0]]), 40, "zero").tolist()
    [[0.75, 0.25], [0.75, 0.25]]
    """
    if negatives == "project":
        counts = project_to_simplex(noisy.ravel(), max(float(total), 0.0)).reshape(noisy.shape)
    else:
        counts = np.maximum(noisy, 0).astype(np.float64)
    overall = counts.sum(axis=0)
    overall = overall if overall.sum() > 0 else np.ones(noisy.shape[1])
    mass = counts.sum(axis=1, keepdims=True)
    rows = np.where(mass > 0, counts, overall)
    result: FloatArray = rows / rows.sum(axis=1, keepdims=True)
    return result
