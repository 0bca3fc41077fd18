"""Intercept and scale that fit what was seen, from few sums over all records.

The functions of single columns exaggerate where columns say the same, and the intercept has the
noise of all their groups. How much, one number for all, and the intercept show for classes in a
histogram of the model's own score and the class, of which a record changes a single cell by 1, and
for numbers in three sums: far less noise than in a gradient of the loss.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from ..._types import FloatArray
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from .draft import Draft
from .links import UNIT, Identity, Logit, fixed
from .records import Records

__all__ = ["calibrate"]

# Borders of the intervals of scores: finer where a class is decided.
_HALF = np.array([0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.5, 8.0, 10.0])
_BORDERS = np.concatenate([-_HALF[::-1], [0.0], _HALF])
_MIDDLES = np.concatenate([[-11.0], (_BORDERS[1:] + _BORDERS[:-1]) / 2, [11.0]])
# Prior standard deviation of what is added to the intercept, and of the factor about 1 or about
# what is expected of so many columns; the factor is never below the last.
_SHIFT, _FACTOR, _LEAST = 0.15, 0.15, 0.05
_STEPS = 30
# The same for numbers, and what the mean square of the scores is expected to be, after they are cut
# to twice their size and divided by it.
_OF_MEAN, _OF_FACTOR, _SQUARE, _OF_SQUARE = 0.3, 0.3, 0.25, 0.1


def calibrate(
    records: Records,
    link: Logit | Identity,
    draft: Draft,
    centre: float,
    epsilon: Fraction,
    total: float,
    random_state: Any,
) -> float:
    """Shift the intercept and scale all functions of a model of a number or of two classes.

    Parameters
    ----------
    records : Records
    link : Logit or Identity
    draft : Draft
        Changed in place.
    centre : float
        The factor that is expected.
    epsilon : Fraction
    total : float
        Released number of records.
    random_state : NoiseSource

    Returns
    -------
    float
        The factor, of a number that of what was expected.
    """
    if isinstance(link, Logit):
        found = _of_classes(records, draft, centre, epsilon, random_state)
    else:
        found = _of_numbers(records, link, draft, centre, epsilon, total, random_state)
    shift, factor, variance = found
    draft.scale(factor, variance)
    draft.intercept = draft.intercept + shift
    return factor


def _of_numbers(
    records: Records,
    link: Identity,
    draft: Draft,
    centre: float,
    epsilon: Fraction,
    total: float,
    random_state: Any,
) -> tuple[float, float, float]:
    # Privacy. Released: sums of residuals, of their products with the scores, of the scores and of
    # their squares, in integers. Scores are without the intercept, cut to `reach`, which follows
    # from the release, and divided by it. One record adds at most `link.reach` to the first two,
    # and half and a quarter of that to the others. The rest is computed from these sums.
    draft.scale(centre, 0.0)
    model, most = draft.finished(), link.reach
    reach = max(2 * UNIT * draft.size(), 1.0)
    exact = np.zeros(4, dtype=np.int64)
    for block in records.blocks():
        at = model.exact_scores(block.groups)
        residuals = link.residuals(at, block.labels)[:, 0]
        scores = np.clip((at[:, 0] - fixed(model.intercept)[0]) / reach, -1.0, 1.0)
        products = np.trunc(residuals * scores)
        every = np.stack([residuals, products, most * scores // 2, most * scores**2 // 4], axis=1)
        exact += block.counts @ every.astype(np.int64)
    sensitivity = 11 * most // 4 + 1
    total = max(total, 1.0)
    noisy = discrete_laplace(exact, epsilon, sensitivity, random_state=random_state) / total
    noise = discrete_laplace_variance(epsilon, sensitivity) / total**2
    score, square = 2 * noisy[2] / most, 4 * noisy[3] / most
    trust = _OF_SQUARE**2 / (_OF_SQUARE**2 + 16 * noise / most**2)
    square = max(_SQUARE + trust * (square - _SQUARE), 0.01 + score**2)
    # By how much the intercept and the functions change residuals, and what is expected of both.
    moved = np.array([[1.0, score], [score, square]]) @ np.diag([UNIT, reach])
    pull = noise * np.diag([1 / _OF_MEAN**2, 1 / _OF_FACTOR**2])
    gain = np.linalg.solve(moved.T @ moved + pull, moved.T)
    shift, more = gain @ noisy[:2]
    return shift, max(1.0 + more, 0.0), float((gain[1] ** 2).sum() * noise)


def _of_classes(
    records: Records, draft: Draft, centre: float, epsilon: Fraction, random_state: Any
) -> tuple[float, float, float]:
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
    return _line(first, second, draft.intercept[0], centre, discrete_laplace_variance(epsilon))


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
    for step in range(_STEPS):
        share = Logit(2).probabilities((intercept + features @ found)[:, None])[:, 1]
        curvature = size * share * (1.0 - share)
        own = noise * (share**2 + (1.0 - share) ** 2)
        # The records vary as much as the curvature says.
        weight = curvature / (curvature + own)
        precision = features.T @ (features * (weight * curvature)[:, None]) + np.diag(pull)
        gradient = features.T @ (weight * (second - share * total)) + pull * (expected - found)
        # Shorter and shorter steps: where scores are far too large, whole ones overshoot for ever.
        most = 0.8**step
        found = found + np.clip(np.linalg.solve(precision, gradient), -most, most)
    moved = np.linalg.solve(precision, features.T * weight)
    variance = float((moved[1] ** 2 * own).sum())
    return float(found[0]), max(float(found[1]), _LEAST), variance
