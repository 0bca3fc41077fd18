"""Probabilities that fit what was seen: one histogram of the model's own score and the class.

The functions of single columns exaggerate where columns say the same. How much, one number for
all, and the intercept show in a histogram of which a record changes a single cell by 1: far less
noise than in a gradient of the loss.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from ..._types import FloatArray
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from .draft import Draft
from .links import UNIT, Logit
from .records import Records

__all__ = ["calibrate"]

# Borders of the intervals of scores: finer where a class is decided.
_HALF = np.array([0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.5, 8.0, 10.0])
_BORDERS = np.concatenate([-_HALF[::-1], [0.0], _HALF])
_MIDDLES = np.concatenate([[-11.0], (_BORDERS[1:] + _BORDERS[:-1]) / 2, [11.0]])
# Prior standard deviation of what is added to the intercept, and of the factor about 1 or about
# what is expected of so many columns; the factor is never below the last.
_SHIFT, _FACTOR, _LEAST = 0.15, 0.15, 0.05
_STEPS = 15


def calibrate(
    records: Records, link: Logit, draft: Draft, centre: float, epsilon: Fraction, random_state: Any
) -> None:
    """Shift the intercept and scale all functions of a model of two classes.

    Parameters
    ----------
    records : Records
    link : Logit
        Of two classes.
    draft : Draft
        Changed in place.
    centre : float
        The factor that is expected.
    epsilon : Fraction
    random_state : NoiseSource
    """
    # Privacy. Released: the number of records of each class in each of public intervals of the
    # score of the released model, an integer that depends on nothing but the record and the
    # release. A record is in one cell: sensitivity 1. The rest is computed from that.
    model, n_cells = draft.finished(), len(_MIDDLES)
    exact = np.zeros(2 * n_cells)
    borders = np.rint(_BORDERS * UNIT).astype(np.int64)
    for block in records.blocks():
        scores = model.exact_scores(block.groups)[:, 0]
        cells = np.searchsorted(borders, scores) + n_cells * block.labels
        exact += np.bincount(cells, weights=block.counts, minlength=len(exact))
    noisy = discrete_laplace(exact.astype(np.int64), epsilon, random_state=random_state)
    first, second = noisy.astype(np.float64).reshape(2, n_cells)
    shift, factor, variance = _line(
        first, second, draft.intercept[0], centre, discrete_laplace_variance(epsilon)
    )
    draft.scale(factor, variance)
    draft.intercept = draft.intercept + shift


def _line(
    first: FloatArray, second: FloatArray, intercept: float, centre: float, noise: float
) -> tuple[float, float, float]:
    """Shift, factor, and the variance that the noise gives the factor."""
    # The score of an interval without what belongs to the intercept.
    features = np.stack([np.ones(len(_MIDDLES)), _MIDDLES - intercept], axis=1)
    expected, pull = np.array([0.0, centre]), 1.0 / np.array([_SHIFT, _FACTOR]) ** 2
    found = expected.copy()
    total = first + second
    size = np.maximum(total, 0.0)
    for _ in range(_STEPS):
        share = Logit(2).probabilities((intercept + features @ found)[:, None])[:, 1]
        curvature = size * share * (1.0 - share)
        own = noise * (share**2 + (1.0 - share) ** 2)
        # The records vary as much as the curvature says.
        weight = curvature / (curvature + own)
        precision = features.T @ (features * (weight * curvature)[:, None]) + np.diag(pull)
        gradient = features.T @ (weight * (second - share * total)) + pull * (expected - found)
        found = found + np.clip(np.linalg.solve(precision, gradient), -1.0, 1.0)
    moved = np.linalg.solve(precision, features.T * weight)
    variance = float((moved[1] ** 2 * own).sum())
    return float(found[0]), max(float(found[1]), _LEAST), variance
