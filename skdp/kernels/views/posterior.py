"""What a noisy table says beside a model: the posterior mean of its cells.

Post-processing of released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations

import numpy as np

from ..._types import FloatArray
from ...release import EffectLaw, couple

__all__ = ["parts_of_set", "posterior_mean", "with_margins"]

Axes = tuple[int, ...]

# A model's count below this is as uncertain as this one, in standard deviations of the noise.
_FLOOR = 0.02
# Rounds of proportional fitting of a wide table to the tables of its parts.
_WIDE_ROUNDS = 12


def posterior_mean(noisy: FloatArray, variance: float, model: FloatArray) -> FloatArray:
    """Expected true counts of cells, given noisy ones and those of a model.

    A cell is off the model by something whose variance is in proportion to the model's count, as
    that of a count by chance. The factor has one law for all cells of the table (`EffectLaw`): many
    may agree with the model, and some be far from it.

    Parameters
    ----------
    noisy : ndarray of float64
    variance : float
        Of the noise of a cell.
    model : ndarray of float64
        Counts of the same shape, not negative.

    Returns
    -------
    ndarray of float64
        Not negative.
    """
    counts = model + _FLOOR * math.sqrt(variance)
    away = (noisy - model).ravel()
    cells = away**2 / counts.ravel(), np.ones(away.size, dtype=np.int64), variance / counts.ravel()
    share, _, _ = EffectLaw.fitted(*cells).told(*cells)
    mean: FloatArray = np.maximum(model + (share * away).reshape(model.shape), 0.0)
    return mean


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
    for _ in range(_WIDE_ROUNDS):
        for part, wanted in parts.items():
            others = tuple(place for place, axis in enumerate(axes) if axis not in part)
            found = fitted.sum(axis=others)
            ratio = np.divide(wanted, found, out=np.zeros_like(found), where=found > 0)
            fitted *= np.expand_dims(ratio, others)
    if not fitted.sum() > 0:
        # The zeros of noisy parts can contradict each other in every cell.
        fitted = np.maximum(table, 1e-15)
    return fitted / fitted.sum()
