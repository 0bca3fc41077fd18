"""All that noisy tables tell about the margins of a few attributes, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from ..._types import FloatArray
from ...hierarchy import project_to_simplex
from ...release import couple
from .population import Target
from .posterior import mean_of_pair, posterior_mean

__all__ = ["Evidence", "parts_of_set", "with_margins"]

Axes = tuple[int, ...]
# Margins of a table of more attributes than this have at most so many, or all of them.
_NARROW = 3
# Rounds of proportional fitting of a wide table to the tables of its pairs.
_ROUNDS = 12


class Evidence:
    """Noisy tables, each beside the model that was there before it was measured.

    A table of three attributes tells something about each pair and each single attribute too: its
    margins, whose noise is that of the cells summed. What several tables tell about the same
    attributes is averaged by precision.

    Parameters
    ----------
    singles : sequence of ndarray
        Counts of the groups of each attribute, with equal sums.
    variances : sequence of float
        Of a count of each attribute.
    """

    def __init__(self, singles: Sequence[FloatArray], variances: Sequence[float]) -> None:
        self._sums: dict[Axes, FloatArray] = {}
        self._precision: dict[Axes, float] = {}
        self._models: dict[Axes, FloatArray] = {}
        self._given: dict[Axes, FloatArray] = {}
        self.total = float(singles[0].sum())
        for axis, (counts, variance) in enumerate(zip(singles, variances, strict=True)):
            self._add((axis,), counts, variance)

    def measured(self, axes: Axes, noisy: FloatArray, variance: float, model: FloatArray) -> None:
        """Add the noisy counts of all cells of some attributes.

        Parameters
        ----------
        axes : tuple of int
            Ascending.
        noisy : ndarray of float64
        variance : float
            Of each cell.
        model : ndarray of float64
            Shares of the cells by the model so far.
        """
        for order in [*range(1, min(len(axes), _NARROW + 1)), len(axes)]:
            for places in combinations(range(len(axes)), order):
                others = tuple(p for p in range(len(axes)) if p not in places)
                part = tuple(axes[p] for p in places)
                summed = np.prod([noisy.shape[p] for p in others]) if others else 1.0
                self._add(part, noisy.sum(axis=others), variance * float(summed))
                if order > 1:
                    self._models.setdefault(part, model.sum(axis=others))

    def counted(self, axis: int, counts: FloatArray, variance: float) -> None:
        """Add counts of the groups of one attribute, with the variance of each."""
        self._add((axis,), counts, variance)

    def estimated(self, axes: Axes, table: FloatArray) -> None:
        """Add a table that is an estimate already, as shares."""
        self._given[axes] = table

    def noise_of_pairs(self) -> dict[tuple[int, int], float]:
        """Standard deviation of the noise of a cell, of each pair that was counted by cells."""
        return {
            (axes[0], axes[1]): precision**-0.5
            for axes, precision in self._precision.items()
            if len(axes) == 2
        }

    def _add(self, axes: Axes, counts: FloatArray, variance: float) -> None:
        precision = 1.0 / variance
        self._sums[axes] = self._sums.get(axes, 0.0) + precision * counts
        self._precision[axes] = self._precision.get(axes, 0.0) + precision

    def targets(self) -> list[Target]:
        """The margins that a model should have, as shares: single attributes first."""
        found: dict[Axes, FloatArray] = {}
        known = {*self._sums, *self._given}
        for axes in sorted(known, key=lambda each: (len(each), each)):
            parts = parts_of_set(axes, found)
            if axes in self._given:
                found[axes] = with_margins(self._given[axes], axes, parts)
                continue
            counts, variance = self._sums[axes] / self._precision[axes], 1 / self._precision[axes]
            if not parts:
                found[axes] = project_to_simplex(counts, self.total) / self.total
                continue
            model = with_margins(self._models[axes], axes, parts)
            near = self.total * model
            if len(axes) == 2:
                mean = mean_of_pair(counts, variance, near)
            else:
                mean = posterior_mean(counts, variance, near, empty=True)
            found[axes] = with_margins(mean / self.total, axes, parts)
        return [Target(axes, table) for axes, table in found.items()]


def parts_of_set(axes: Axes, found: Mapping[Axes, FloatArray]) -> dict[Axes, FloatArray]:
    """Known margins of a set: the widest, and single attributes that these do not hold."""
    parts: dict[Axes, FloatArray] = {}
    for order in range(len(axes) - 1, 0, -1):
        for part in combinations(axes, order):
            if part in found and not any(set(part) <= set(wider) for wider in parts):
                parts[part] = found[part]
    return parts


def with_margins(table: FloatArray, axes: Axes, parts: Mapping[Axes, FloatArray]) -> FloatArray:
    """A table scaled until it has the given margins."""
    if len(axes) == 2:
        return couple(table, parts[axes[:1]], parts[axes[1:]])
    fitted = np.maximum(table, 1e-15)
    for _ in range(_ROUNDS):
        for part, wanted in parts.items():
            others = tuple(place for place, axis in enumerate(axes) if axis not in part)
            found = fitted.sum(axis=others)
            ratio = np.divide(wanted, found, out=np.zeros_like(found), where=found > 0)
            fitted *= np.expand_dims(ratio, others)
    if not fitted.sum() > 0:
        # The zeros of noisy parts can contradict each other in every cell.
        fitted = np.maximum(table, 1e-15)
    return fitted / fitted.sum()
