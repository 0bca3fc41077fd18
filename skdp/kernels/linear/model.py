"""The released linear model: intercepts, and a coefficient of each feature."""

from __future__ import annotations

from dataclasses import dataclass

from ..._types import FloatArray

__all__ = ["LinearModel"]


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Scores that are linear in the features of a `Design`.

    Attributes
    ----------
    intercept : ndarray of shape (n_outputs,)
    coef : ndarray of shape (n_outputs, n_features)
    std : ndarray of shape (n_outputs, n_features)
        Standard errors of ``coef`` from the noise alone; NaN where nothing is known of them.
    """

    intercept: FloatArray
    coef: FloatArray
    std: FloatArray
