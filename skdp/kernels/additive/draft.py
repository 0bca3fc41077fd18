"""A model while it is being fitted, with the covariance that noise gives its functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..._types import FloatArray
from .effects import Update
from .model import AdditiveModel, Axis, PairTerm

__all__ = ["Draft"]

# What is released are multiples of one over this: further digits depend on the order in which a
# machine adds, and are all that is left of noise that later rounds have corrected.
_STEPS = 2.0**26


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
    pairs : list of PairTerm
    """

    intercept: FloatArray
    shapes: list[FloatArray]
    noise: list[list[FloatArray]]
    sizes: list[FloatArray]
    pairs: list[PairTerm] = field(default_factory=list)

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
        noise = [list(each) for each in self.noise]
        return Draft(self.intercept, shapes, noise, self.sizes, list(self.pairs))

    def weigh(self, alone: Draft, factors: FloatArray, variances: FloatArray) -> None:
        """Take the functions of another draft, each times a factor that is itself noisy."""
        for column, (factor, variance) in enumerate(zip(factors, variances, strict=True)):
            shape = alone.shapes[column]
            self.shapes[column] = factor * shape
            for output, noise in enumerate(alone.noise[column]):
                own = shape[:, output]
                extra = own**2 if noise.ndim == 1 else np.outer(own, own)
                self.noise[column][output] = factor**2 * noise + variance * extra

    def size(self) -> float:
        """Root of the mean square of the scores over the records, if columns were independent."""
        parts = [(shape[:, 0], n) for shape, n in zip(self.shapes, self.sizes, strict=True)]
        parts += [(pair.scores[..., 0].ravel(), pair.sizes.ravel()) for pair in self.pairs]
        return float(np.sqrt(sum(n @ s**2 / max(float(n.sum()), 1.0) for s, n in parts)))

    def scale(self, factor: float, variance: float) -> None:
        """Multiply all functions by a factor that is itself noisy."""
        n = len(self.shapes)
        self.weigh(self.copy(), np.full(n, factor), np.full(n, variance))
        self.pairs = [pair.scaled(factor, variance) for pair in self.pairs]

    def cell_shares(self, pair: tuple[int, int], axes: tuple[Axis, Axis]) -> FloatArray:
        """Share of the records of each cell if the columns were independent."""
        return np.outer(*(self._share(*each) for each in zip(pair, axes, strict=True)))

    def _share(self, column: int, axis: Axis) -> FloatArray:
        """Share of the records of each place on an axis; none is empty."""
        found = np.bincount(axis.groups, weights=self.sizes[column], minlength=axis.n_groups)
        found = np.maximum(found, 1e-4 * max(float(found.sum()), 1.0))
        return found / found.sum()

    def add_pair(
        self,
        pair: tuple[int, int],
        axes: tuple[Axis, Axis],
        updates: Sequence[Update],
        noise: float,
    ) -> None:
        """Add a function of two columns; its means along each axis go to the other column.

        Parameters
        ----------
        pair : (int, int)
        axes : (Axis, Axis)
        updates : sequence of Update
            Of the cells, for each output.
        noise : float
            Variance of what the updates were learnt from.
        """
        first, second = (self._share(*each) for each in zip(pair, axes, strict=True))
        m, n = len(first), len(second)
        # Linear maps of a function of all cells: its parts in either column, and the rest.
        mean = np.kron(first, second)
        parts = np.kron(np.eye(m), second) - mean, np.kron(first, np.eye(n)) - mean
        rest = np.eye(m * n) - mean - np.repeat(parts[0], n, axis=0) - np.tile(parts[1], (m, 1))
        for column, axis, part in zip(pair, axes, parts, strict=True):
            moved = part[axis.groups]
            # A new array: other drafts keep theirs.
            added = np.stack([moved @ update.mean for update in updates], axis=1)
            self.shapes[column] = self.shapes[column] + added
            for output, update in enumerate(updates):
                gain = moved @ update.gain
                before = self.noise[column][output]
                self.noise[column][output] = before + noise * (
                    (gain**2).sum(axis=1) if before.ndim == 1 else gain @ gain.T
                )
        scores = np.stack([rest @ update.mean for update in updates], axis=1)
        gains = [np.square(rest @ update.gain).sum(axis=1) for update in updates]
        variances = noise * np.stack(gains, axis=1)
        total = float(np.mean([sizes.sum() for sizes in self.sizes]))
        self.pairs.append(
            PairTerm(
                pair,
                axes,
                scores.reshape(m, n, -1),
                np.sqrt(variances).reshape(m, n, -1),
                total * np.outer(first, second),
            )
        )

    def finished(self) -> AdditiveModel:
        """The model, with standard errors in place of covariances."""
        variances = [
            np.stack([n if n.ndim == 1 else np.diag(n) for n in outputs], axis=1)
            for outputs in self.noise
        ]
        return AdditiveModel(
            _settled(self.intercept),
            tuple(_settled(shape) for shape in self.shapes),
            tuple(_settled(np.sqrt(np.maximum(each, 0.0))) for each in variances),
            tuple(self.sizes),
            tuple(
                replace(pair, scores=_settled(pair.scores), std_errors=_settled(pair.std_errors))
                for pair in self.pairs
            ),
        )


def _settled(values: FloatArray) -> FloatArray:
    """Without the digits that rounding decides."""
    # Adding 0 makes -0 positive.
    return np.asarray(np.rint(values * _STEPS) / _STEPS + 0.0)


def _spread(gain: FloatArray, noise: FloatArray) -> FloatArray:
    """Covariance of gain times independent noise."""
    if gain.ndim == 1:
        return gain**2 * noise
    return np.asarray((gain * noise) @ gain.T)
