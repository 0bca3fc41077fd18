"""The calibration of an additive model: intercept and scale that fit what was seen.

The functions of single columns exaggerate where columns say the same, and the intercept has the
noise of all their groups. How much, one number for all, and the intercept show for classes in a
histogram of the model's own score and the class, of which a record changes a single cell by 1, and
for numbers in two sums: far less noise than in a gradient of the loss.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from ..._validation import FloatArray
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from .model import (
    TINY,
    TUNING,
    UNIT,
    AdditiveModel,
    Identity,
    Link,
    Logit,
    Records,
    fixed,
)

_BORDERS = np.arange(-TUNING.ends, TUNING.ends + TUNING.width, TUNING.width)
_MIDDLES = np.append(_BORDERS, TUNING.ends + TUNING.width) - TUNING.width / 2
_N = len(_MIDDLES)


def shared_weight(n_columns: int) -> float:
    """Weight that is expected of a column: the more there are, the more others said before it."""
    return 1.0 / math.sqrt(1.0 + 0.25 * (n_columns - 1))


def calibrate(
    records: Records,
    link: Link,
    model: AdditiveModel,
    epsilon: Fraction,
    total: float,
    random_state: Any,
) -> tuple[float, float, float]:
    """Shift of the intercept, of many classes 0, and factor of all functions with its variance.

    Parameters
    ----------
    records : Records
    link : Logit or Identity
    model : AdditiveModel
    epsilon : Fraction
    total : float
        Released number of records.
    random_state : NoiseSource
    """
    if isinstance(link, Identity):
        return _of_numbers(records, link, model, epsilon, total, random_state)
    if link.n_outputs > 1:
        return 0.0, *_of_many(records, link, model, epsilon, random_state)
    # Privacy. Released: the number of records of each class in each of public intervals of the
    # score of the released model, an integer that depends on nothing but the record and the
    # release. A record is in one cell: sensitivity 1. Shift and factor follow from that.
    exact, borders = np.zeros(2 * _N), np.rint(_BORDERS * UNIT).astype(np.int64)
    for block in records.blocks():
        scores = model.exact_scores(block.groups)[:, 0]
        cells = np.searchsorted(borders, scores) + _N * block.labels
        exact += np.bincount(cells, weights=block.counts, minlength=len(exact))
    table = exact.reshape(2, _N).astype(np.int64)
    seen = discrete_laplace(table, epsilon, random_state=random_state)
    # The score of an interval without what belongs to the intercept.
    features = np.stack([np.ones(_N), _MIDDLES - model.intercept], axis=1)
    expected = np.array([0.0, 1.0])
    noise = discrete_laplace_variance(epsilon)
    (shift, factor), variance = _fitted(seen, features, model.intercept[0], expected, noise)
    return float(shift), max(float(factor), TUNING.kept), variance


# Differences of scores of two classes are counted in intervals that double.
_APART = 2.0 ** np.arange(-2, 4)
_APARTS = np.append(_APART, 2 * _APART[-1]) * 0.75
_APARTS[0] = _APART[0] / 2


def _of_many(
    records: Records, link: Logit, model: AdditiveModel, epsilon: Fraction, random_state: Any
) -> tuple[float, float]:
    """Factor of all functions of a model of many classes, and the variance that noise gives it.

    A record of class y stands for pairs of y with each other class j, weighted by the share of j
    that the model gives it. If the right factor is f, such pairs occur exp((f - 1) d) times as
    often as those of j with y, where d is what the functions say for y less what they say for j. A
    histogram of d shows f, whatever the number of classes and whatever the intercepts.
    """
    # Privacy. Released: sums of weights by intervals of d, where d and the weights, whole numbers,
    # depend on nothing but the record and the release. The weights of a record sum to at most
    # UNIT, as the shares of the other classes sum to at most UNIT less that of its own.
    exact = np.zeros(2 * len(_APARTS), dtype=np.int64)
    borders = np.rint(_APART * UNIT).astype(np.int64)
    for block in records.blocks(4096):
        scores = model.exact_scores(block.groups)
        shares, apart = link.shares(scores), scores - fixed(model.intercept)
        rows = np.arange(len(shares))
        apart = apart[rows, block.labels][:, None] - apart
        # The same for either class of a pair.
        most = UNIT - np.minimum(shares, shares[rows, block.labels][:, None])
        weights = np.where(apart, shares * UNIT // np.maximum(most, 1), 0) * block.counts[:, None]
        cells = np.searchsorted(borders, np.abs(apart)) + len(_APARTS) * (apart > 0)
        exact += np.bincount(cells.ravel(), weights.ravel(), len(exact)).astype(np.int64)
    seen = discrete_laplace(exact.reshape(2, -1), epsilon, UNIT, random_state=random_state) / UNIT
    noise = discrete_laplace_variance(epsilon, UNIT) / UNIT**2
    found, variance = _fitted(seen, _APARTS[:, None], -_APARTS, np.ones(1), noise)
    return max(float(found[0]), TUNING.kept), variance


def _of_numbers(
    records: Records,
    link: Identity,
    model: AdditiveModel,
    epsilon: Fraction,
    total: float,
    random_state: Any,
) -> tuple[float, float, float]:
    # Privacy. Released: sums of residuals, and of their products with the scores, in integers.
    # Scores are without the intercept, cut to `reach`, which follows from the release, and divided
    # by it: one record adds at most `link.reach` to each. The rest is computed from these sums.
    reach = max(2 * UNIT * model.size(), 1.0)
    exact = np.zeros(2, dtype=np.int64)
    for block in records.blocks():
        at = model.exact_scores(block.groups)
        residuals = link.residuals(at, block.labels)[:, 0]
        scores = np.clip((at[:, 0] - fixed(model.intercept)[0]) / reach, -1.0, 1.0)
        products = np.trunc(residuals * scores).astype(np.int64)
        exact += block.counts @ np.stack([residuals, products], axis=1)
    total = max(total, 1.0)
    noisy = discrete_laplace(exact, epsilon, 2 * link.reach, random_state=random_state) / total
    noise = discrete_laplace_variance(epsilon, 2 * link.reach) / total**2
    # What the intercept and the functions move, in units: scores that are not cut have the mean
    # square 1 / 4. The intercept is as far off as the noise of the released centre makes it, the
    # factor by about 1.
    moved, off = np.array([UNIT, reach / 4]), np.array([link.std, 1.0])
    gain = moved / (moved**2 + noise / off**2)
    shift, more = gain * noisy
    return float(shift), max(1.0 + float(more), 0.0), float(gain[1] ** 2 * noise)


def _fitted(
    seen: Any, features: FloatArray, start: Any, expected: FloatArray, noise: float
) -> tuple[FloatArray, float]:
    """Weights of features in the logits of intervals, and the variance of the last by the noise."""
    pull, found = 1.0 / TUNING.spread**2, expected.copy()
    total = np.maximum(seen.sum(axis=0), 0.0)
    # Number of records of each interval, as far as it is no noise.
    size = total**3 / (total**2 + 2.0 * noise + TINY)
    for step in range(TUNING.steps):
        share = Logit(2).probabilities((start + features @ found)[:, None])[:, 1]
        curvature = size * share * (1.0 - share)
        own = noise * (share**2 + (1.0 - share) ** 2)
        # The records vary as much as the curvature says.
        weight = curvature / (curvature + own)
        precision = features.T @ (features * (weight * curvature)[:, None])
        precision += pull * np.eye(len(expected))
        gradient = features.T @ (weight * (seen[1] - share * seen.sum(axis=0)))
        gradient += pull * (expected - found)
        # Shorter and shorter steps: where scores are far too large, whole ones overshoot for ever.
        most = 1.0 / (1.0 + step)
        found = found + np.clip(np.linalg.solve(precision, gradient), -most, most)
    moved = np.linalg.solve(precision, features.T * weight)
    return found, float((moved[-1] ** 2 * own).sum())
