"""The released additive model: intercepts, and a function of each column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._types import FloatArray, IntArray
from .links import fixed

__all__ = ["AdditiveModel"]


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """Scores as a sum of an intercept and a function of each column.

    Attributes
    ----------
    intercept : ndarray of shape (n_outputs,)
    shapes : tuple of ndarray of shape (n_groups, n_outputs)
        Score of each group of each column; the mean over the records is about 0.
    variances : tuple of ndarray of shape (n_groups, n_outputs)
        Of ``shapes``, from the noise alone.
    sizes : tuple of ndarray of shape (n_groups,)
        Released number of records of each group, not negative.
    """

    intercept: FloatArray
    shapes: tuple[FloatArray, ...]
    variances: tuple[FloatArray, ...]
    sizes: tuple[FloatArray, ...]

    def exact_scores(self, groups: IntArray) -> IntArray:
        """Scores in whole units: those of a row depend on nothing but the row and the release."""
        result = np.tile(fixed(self.intercept), (len(groups), 1))
        for column, shape in enumerate(self.shapes):
            result += fixed(shape)[groups[:, column]]
        return result
