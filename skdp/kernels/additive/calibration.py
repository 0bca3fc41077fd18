"""Intercept and scale that fit what was seen, from few sums over all records.

The functions of single columns exaggerate where columns say the same, and the intercept has the
noise of all their groups. How much, one number for all, and the intercept show for classes in a
histogram of the model's own score and the class, of which a record changes a single cell by 1, and
for numbers in three sums: far less noise than in a gradient of the loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from ..._types import FloatArray, IntArray
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from .links import UNIT, Identity, Link, Logit, fixed
from .model import Draft, Prior
from .records import Records
from .tuning import TINY, TUNING

__all__ = ["calibrate", "monotone", "newton_step", "shared_weight"]

# --- how much each of several known functions counts: a step of Newton's method on noisy moments
#
# Columns that say the same would count twice if each kept the function it has by itself. There are
# far fewer columns than groups, so their weights can be learnt where the groups are lost in noise.

# Moments are in units of 1/256, and so is the weight of a record: finer, noise for the smallest
# epsilons would not fit into 64-bit integers.
_GRAIN = UNIT // 4
# Largest L1 norm of a record's gradient.
_REACH = TUNING.reach * _GRAIN


@dataclass(frozen=True, eq=False)
class _Weights:
    """Weights of functions, as a step of Newton's method gives them.

    Attributes
    ----------
    intercept : ndarray of shape (n_outputs,)
        What is added to the intercepts.
    factors : ndarray of shape (n_functions,)
    variances : ndarray of shape (n_functions,)
        Of ``factors``, from the noise alone.
    curvature : ndarray of shape (n_outputs,)
        Released sum over the records of the second derivative in each intercept.
    """

    intercept: FloatArray
    factors: FloatArray
    variances: FloatArray
    curvature: FloatArray


def newton_step(
    records: Records,
    link: Link,
    functions: Callable[[IntArray], IntArray],
    start: FloatArray,
    centre: float,
    epsilon: Fraction,
    random_state: Any,
) -> _Weights:
    """One step from the scores so far, in the intercepts and the weights of functions.

    Parameters
    ----------
    records : Records
        With the scores so far.
    link : Link
    functions : callable
        Values of the functions by groups, in units, (n_functions, n, n_outputs).
    start : ndarray of shape (n_functions,)
        The weights that the functions have in ``scores``.
    centre : float
        Where the weights are expected.
    epsilon : Fraction
    random_state : NoiseSource
    """
    # Privacy. Released: the gradient and the upper triangle of the curvature, integers. A
    # record's part of the gradient is cut to an L1 norm of _REACH, and the vectors t whose outer
    # products are its part of the curvature to squared L1 norms that sum to `most`**2: the absolute
    # entries of a triangle of t t' sum to at most |t|_1**2. Both are composed sequentially.
    most = _REACH // 2 if link.n_outputs == 1 else _REACH
    gradient, hessian = _moments(records, link, functions, len(start), most)
    rate, other = epsilon * TUNING.gradient, epsilon * (1 - TUNING.gradient)
    g = discrete_laplace(gradient, rate, _REACH, random_state=random_state) / _GRAIN
    noise = discrete_laplace_variance(rate, _REACH) / _GRAIN**2
    upper = np.triu_indices(len(gradient))
    h = np.zeros_like(hessian, dtype=np.float64)
    h[upper] = discrete_laplace(hessian[upper], other, most**2, random_state=random_state)
    h = (h + np.triu(h, 1).T) / _GRAIN**2
    floor = np.sqrt(discrete_laplace_variance(other, most**2)) / _GRAIN**2
    h = _positive(h, 0.5 * floor * np.sqrt(len(g)))
    return _posterior(g, h, noise, link.n_outputs, start, centre)


def _posterior(
    g: FloatArray,
    h: FloatArray,
    noise: float,
    n_outputs: int,
    start: FloatArray,
    centre: float,
) -> _Weights:
    """Weights given noisy moments, and a normal prior about the centre."""
    n = len(g)
    # All weights move together, and each by itself.
    prior = np.eye(n)
    prior[n_outputs:, n_outputs:] += 1.0
    pull = np.linalg.inv(TUNING.spread**2 * prior)
    away = np.concatenate([np.zeros(n_outputs), centre - start])
    # The records vary as much as the curvature says, the released gradient by the noise too.
    gain = h @ np.linalg.inv(h + noise * np.eye(n))
    precision = gain @ h + pull
    step = np.linalg.solve(precision, gain @ g + pull @ away)
    moved = np.linalg.solve(precision, gain)
    variances = noise * (moved**2).sum(axis=1)
    return _Weights(
        step[:n_outputs],
        start + step[n_outputs:],
        variances[n_outputs:],
        np.diag(h)[:n_outputs].copy(),
    )


def _positive(matrix: FloatArray, least: float) -> FloatArray:
    """The symmetric matrix with no eigenvalue below ``least``."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, max(least, TINY))) @ vectors.T)


def _moments(
    records: Records,
    link: Link,
    functions: Callable[[IntArray], IntArray],
    n_functions: int,
    most: int,
) -> tuple[IntArray, IntArray]:
    """Exact sums over the records of bounded integer gradients and curvatures."""
    n_moments = link.n_outputs + n_functions
    gradient, hessian = np.zeros(n_moments), np.zeros((n_moments, n_moments))
    # Whole numbers below 2**53, and their sums, are exact in floating point, in any order.
    for block in records.blocks(4096):
        scored, values = block.scores, functions(block.groups).astype(np.float64)
        counts, weight = block.counts.astype(np.float64), _weights(values)
        g = _gradients(link.residuals(scored, block.labels), values, weight)
        gradient += _within(g, _REACH) @ counts
        parts = [
            _curved(share, direction, values, weight) for share, direction in link.spreads(scored)
        ]
        for part in _all_within(parts, most):
            hessian += (part * counts) @ part.T
    return gradient.astype(np.int64), hessian.astype(np.int64)


def _weights(values: FloatArray) -> FloatArray:
    """Weight of each record in units of 1/256, by the size of its scores alone."""
    if values.shape[2] == 1:
        size = UNIT + np.abs(values[:, :, 0]).sum(axis=0)
    else:
        size = 2 * UNIT + (values.max(axis=2) - values.min(axis=2)).sum(axis=0)
    return np.minimum(_GRAIN, np.floor((TUNING.reach * UNIT) ** 2 * _GRAIN / size**2))


def _gradients(residuals: IntArray, values: FloatArray, weight: FloatArray) -> FloatArray:
    """Gradient of each record in the intercepts and the weights, in units of 1/256."""
    weighted = residuals.T * weight
    of_functions = sum(values[:, :, output] * each for output, each in enumerate(weighted))
    return np.trunc(np.concatenate([weighted * UNIT, of_functions]) / UNIT**2)


def _curved(
    share: IntArray, direction: FloatArray, values: FloatArray, weight: FloatArray
) -> FloatArray:
    """Vectors whose outer products are curvatures, whole multiples of 1/256, (n_moments, n)."""
    root = np.sqrt(weight * share / (_GRAIN * UNIT)) * _GRAIN
    of_functions = sum(values[:, :, output] * each for output, each in enumerate(direction.T))
    return np.trunc(root * np.concatenate([direction.T, of_functions / UNIT]))


def _within(columns: FloatArray, most: int) -> FloatArray:
    """Columns of whole numbers, cut toward zero to an L1 norm of at most ``most``."""
    size = np.abs(columns).sum(axis=0)
    large = size > most
    columns[:, large] = np.trunc(columns[:, large] * most / size[large])
    return columns


def _all_within(parts: list[FloatArray], most: int) -> list[FloatArray]:
    """The same columns of several arrays, cut until their squared norms sum to ``most**2``."""
    squares = np.sum([np.abs(part).sum(axis=0) ** 2 for part in parts], axis=0)
    large = squares > most**2
    # One unit more than the root, so that rounding cannot leave the bound.
    factor = most / (np.floor(np.sqrt(squares[large])) + 1)
    for part in parts:
        part[:, large] = np.trunc(part[:, large] * factor)
    return parts


# --- intercept and scale that fit what was seen

_BORDERS = np.arange(-TUNING.ends, TUNING.ends + TUNING.width, TUNING.width)
_MIDDLES = np.append(_BORDERS, TUNING.ends + TUNING.width) - TUNING.width / 2
_N = len(_MIDDLES)


def shared_weight(n_columns: int) -> float:
    """Weight that is expected of a column: the more there are, the more others said before it."""
    return 1.0 / math.sqrt(1.0 + 0.25 * (n_columns - 1))


def calibrate(
    records: Records,
    link: Logit | Identity,
    draft: Draft,
    centre: float,
    epsilon: Fraction,
    total: float,
    random_state: Any,
) -> None:
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
    """
    if isinstance(link, Logit):
        noise = discrete_laplace_variance(epsilon)
        seen = _seen(records, draft, 1.0, epsilon, random_state)
        found = _line(seen, _MIDDLES, draft.intercept[0], centre, noise)
    else:
        found = _of_numbers(records, link, draft, centre, epsilon, total, random_state)
    shift, factor, variance = found
    draft.scale(factor, variance)
    draft.intercept = draft.intercept + shift


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
    # Scores that were not cut have the mean square 1 / 4.
    trust = 1.0 / (1.0 + 256 * noise / most**2)
    square = max(0.25 + trust * (square - 0.25), TINY + score**2)
    # By how much the intercept and the functions change residuals, and what is expected of both:
    # the intercept is as far off as the noise of the released centre makes it, the factor by 1.
    moved = np.array([[1.0, score], [score, square]]) @ np.diag([UNIT, reach])
    pull = noise * np.diag([1 / link.std**2, 1.0])
    gain = np.linalg.solve(moved.T @ moved + pull, moved.T)
    shift, more = gain @ noisy[:2]
    return shift, max(1.0 + more, 0.0), float((gain[1] ** 2).sum() * noise)


def monotone(
    records: Records, draft: Draft, epsilon: Fraction, random_state: Any
) -> tuple[FloatArray, FloatArray]:
    """What scores of a model of two classes mean: points of a rising line, scores and logits.

    Scores of columns that depend on each other are too large, and not everywhere by one factor. The
    logit is a straight line in the score and a smooth function, as far as the records show one.

    Parameters
    ----------
    records : Records
    draft : Draft
        With functions of columns alone.
    epsilon : Fraction
    random_state : NoiseSource
    """
    centre, noise = shared_weight(len(draft.shapes)), discrete_laplace_variance(epsilon)
    scores, start = _MIDDLES / centre, draft.intercept[0]
    seen = _seen(records, draft, centre, epsilon, random_state)
    shift, factor, _ = _line(seen, scores, start, centre, noise)
    line = start + shift + factor * (scores - start)
    total, bend, prior = seen.sum(axis=0), np.zeros(_N), Prior(_N, range(_N))
    size = _sizes(seen, noise)
    for _ in range(TUNING.steps):
        share = Logit(2).probabilities((line + bend)[:, None])[:, 1]
        curvature = np.maximum(size * share * (1.0 - share), TINY)
        own = noise * (share**2 + (1.0 - share) ** 2) + curvature
        sums = seen[1] - share * total + curvature * bend
        bend = prior.within(prior.update(sums, curvature, own).mean)
    # Pooled where it would fall, but never quite flat: what was ordered stays so.
    least = TUNING.kept * centre * factor * scores
    bend = isotonic_regression(line + bend - least, sample_weight=curvature) + least - line
    # No score is farther from the first one.
    far = abs(start) + 2 * TUNING.most * len(draft.shapes) + scores[-1]
    points = np.array([-far, *scores, far])
    return points, start + shift + factor * (points - start) + np.interp(points, scores, bend)


def _seen(
    records: Records, draft: Draft, scale: float, epsilon: Fraction, random_state: Any
) -> IntArray:
    """Noisy number of records of each class by intervals of the score, borders over ``scale``."""
    # Privacy. Released: the number of records of each class in each of public intervals of the
    # score of the released model, an integer that depends on nothing but the record and the
    # release. A record is in one cell: sensitivity 1. Shifts, factors and lines follow from that.
    model, exact = draft.finished(), np.zeros(2 * _N)
    borders = np.rint(_BORDERS / scale * UNIT).astype(np.int64)
    for block in records.blocks():
        scores = model.exact_scores(block.groups)[:, 0]
        cells = np.searchsorted(borders, scores) + _N * block.labels
        exact += np.bincount(cells, weights=block.counts, minlength=len(exact))
    table = exact.reshape(2, _N).astype(np.int64)
    return discrete_laplace(table, epsilon, random_state=random_state)


def _sizes(seen: IntArray, noise: float) -> FloatArray:
    """Number of records of each interval, as far as it is no noise."""
    total = np.maximum(seen.sum(axis=0), 0.0)
    return np.asarray(total**3 / (total**2 + 2.0 * noise + TINY))


def _line(
    seen: IntArray, scores: FloatArray, intercept: float, centre: float, noise: float
) -> tuple[float, float, float]:
    """Shift, factor, and the variance that the noise gives the factor."""
    # The score of an interval without what belongs to the intercept.
    features = np.stack([np.ones(_N), scores - intercept], axis=1)
    expected, pull = np.array([0.0, centre]), 1.0 / TUNING.spread**2
    found = expected.copy()
    total, size = seen.sum(axis=0), _sizes(seen, noise)
    for step in range(TUNING.steps):
        share = Logit(2).probabilities((intercept + features @ found)[:, None])[:, 1]
        curvature = size * share * (1.0 - share)
        own = noise * (share**2 + (1.0 - share) ** 2)
        # The records vary as much as the curvature says.
        weight = curvature / (curvature + own)
        precision = features.T @ (features * (weight * curvature)[:, None]) + pull * np.eye(2)
        gradient = features.T @ (weight * (seen[1] - share * total)) + pull * (expected - found)
        # Shorter and shorter steps: where scores are far too large, whole ones overshoot for ever.
        most = 1.0 / (1.0 + step)
        found = found + np.clip(np.linalg.solve(precision, gradient), -most, most)
    moved = np.linalg.solve(precision, features.T * weight)
    variance = float((moved[1] ** 2 * own).sum())
    return float(found[0]), max(float(found[1]), TUNING.kept * centre), variance
