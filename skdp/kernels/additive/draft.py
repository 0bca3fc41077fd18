"""A model while it is being fitted, with the covariance that noise gives its functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._types import FloatArray
from .effects import Update
from .model import AdditiveModel

__all__ = ["Draft"]

# Variances of scores below this are those of rounding.
_ROUNDING = 1e-16


@dataclass(eq=False)
class Draft:
    """Intercepts, functions, and noise of the functions; nothing but released numbers.

    Attributes
    ----------
    intercept : ndarray of shape (n_outputs,)
    shapes : list of ndarray of shape (n_groups, n_outputs)
    noise : list of list of ndarray
        Covariance of each function of each column, (n_groups, n_groups) or its diagonal.
    sizes : list of ndarray of shape (n_groups,)
        Released number of records of each group.
    """

    intercept: FloatArray
    shapes: list[FloatArray]
    noise: list[list[FloatArray]]
    sizes: list[FloatArray]

    @classmethod
    def empty(cls, intercept: FloatArray, n_groups: Sequence[int]) -> Draft:
        """The constant model."""
        n_outputs = len(intercept)
        return cls(
            intercept,
            [np.zeros((n, n_outputs)) for n in n_groups],
            [[np.zeros(n)] * n_outputs for n in n_groups],
            [np.zeros(n) for n in n_groups],
        )

    def replace(
        self, column: int, output: int, shape: FloatArray, update: Update, noise: FloatArray
    ) -> None:
        """Take another function, known from sums with noise of this variance."""
        self.shapes[column][:, output] = shape
        self.noise[column][output] = _spread(update.gain, noise)

    def move(
        self,
        column: int,
        output: int,
        update: Update,
        curvature: FloatArray,
        noise: FloatArray,
        step: float,
    ) -> None:
        """Go a step towards what sums of residuals say; they correct earlier noise as well."""
        self.shapes[column][:, output] += step * update.mean
        before = self.noise[column][output]
        gain = step * update.gain
        if gain.ndim == 1:
            kept = (1.0 - gain * curvature) ** 2 * before
        else:
            keep = np.eye(len(gain)) - gain * curvature
            kept = keep @ (np.diag(before) if before.ndim == 1 else before) @ keep.T
        self.noise[column][output] = kept + _spread(gain, noise)

    def centre(self, column: int) -> None:
        """Make the mean over the records 0."""
        sizes = self.sizes[column]
        share = sizes / sizes.sum() if sizes.sum() > 0 else np.full(len(sizes), 1 / len(sizes))
        self.shapes[column] = self.shapes[column] - share @ self.shapes[column]

    def copy(self) -> Draft:
        """A draft that stays as it is when this one changes."""
        shapes = [shape.copy() for shape in self.shapes]
        return Draft(self.intercept, shapes, [list(each) for each in self.noise], self.sizes)

    def weigh(self, alone: Draft, factors: FloatArray, variances: FloatArray) -> None:
        """Take the functions of another draft, each times a factor that is itself noisy."""
        for column, (factor, variance) in enumerate(zip(factors, variances, strict=True)):
            shape = alone.shapes[column]
            self.shapes[column] = factor * shape
            for output, noise in enumerate(alone.noise[column]):
                own = shape[:, output]
                extra = own**2 if noise.ndim == 1 else np.outer(own, own)
                self.noise[column][output] = factor**2 * noise + variance * extra

    def finished(self) -> AdditiveModel:
        """The model, with variances only."""
        variances = [
            np.stack([n if n.ndim == 1 else np.diag(n) for n in outputs], axis=1)
            for outputs in self.noise
        ]
        # Rounding leaves about so much of noise that later rounds have corrected.
        variances = [np.where(each < _ROUNDING, 0.0, each) for each in variances]
        return AdditiveModel(
            self.intercept, tuple(self.shapes), tuple(variances), tuple(self.sizes)
        )


def _spread(gain: FloatArray, noise: FloatArray) -> FloatArray:
    """Covariance of gain times independent noise."""
    if gain.ndim == 1:
        return gain**2 * noise
    return np.asarray((gain * noise) @ gain.T)
