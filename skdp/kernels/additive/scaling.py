"""How much each of several known functions counts: a step of Newton's method on noisy moments.

Columns that say the same would count twice if each kept the function it has by itself. There are
far fewer columns than groups, so their weights can be learnt where the groups are lost in noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ..._types import FloatArray, IntArray
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from .links import UNIT, Link
from .records import Records

__all__ = ["Spread", "Weights", "newton_step"]

# Moments are in units of 1/256, and so is the weight of a record.
_GRAIN = 256
# Largest sum of a record's absolute scores that counts in full; records beyond it count less.
_REACH = 5
# Share of the gradient.
_GRADIENT = Fraction(4, 5)


class Spread(NamedTuple):
    """Standard deviations of what a Newton step looks for, before it is taken.

    Attributes
    ----------
    intercept : float
    common, own : float
        Of all weights together about the centre, and of each by itself.
    """

    intercept: float
    common: float
    own: float


@dataclass(frozen=True, eq=False)
class Weights:
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
    scores: Callable[[IntArray], IntArray],
    functions: Callable[[IntArray], IntArray],
    start: FloatArray,
    centre: float,
    spread: Spread,
    epsilon: Fraction,
    random_state: Any,
) -> Weights:
    """One step from the scores so far, in the intercepts and the weights of functions.

    Parameters
    ----------
    records : Records
    link : Link
    scores : callable
        Scores of records by their groups, in units, (n, n_outputs).
    functions : callable
        Values of the functions by groups, in units, (n_functions, n, n_outputs).
    start : ndarray of shape (n_functions,)
        The weights that the functions have in ``scores``.
    centre : float
        Where the weights are expected.
    spread : Spread
    epsilon : Fraction
    random_state : NoiseSource
    """
    # Privacy. Released: the gradient and the upper triangle of the curvature, integers. A
    # record's part of the gradient is cut to an L1 norm of _REACH, and the vectors t whose outer
    # products are its part of the curvature to squared L1 norms that sum to `most`**2: the absolute
    # entries of a triangle of t t' sum to at most |t|_1**2. Both are composed sequentially.
    most = _REACH * _GRAIN // 2 if link.n_outputs == 1 else _REACH * _GRAIN
    gradient, hessian = _moments(records, link, scores, functions, len(start), most)
    rate, other = epsilon * _GRADIENT, epsilon * (1 - _GRADIENT)
    reach = _REACH * _GRAIN
    g = discrete_laplace(gradient, rate, reach, random_state=random_state) / _GRAIN
    noise = discrete_laplace_variance(rate, reach) / _GRAIN**2
    upper = np.triu_indices(len(gradient))
    h = np.zeros_like(hessian, dtype=np.float64)
    h[upper] = discrete_laplace(hessian[upper], other, most**2, random_state=random_state)
    h = (h + np.triu(h, 1).T) / _GRAIN**2
    floor = np.sqrt(discrete_laplace_variance(other, most**2)) / _GRAIN**2
    h = _positive(h, 0.5 * floor * np.sqrt(len(g)))
    return _posterior(g, h, noise, link.n_outputs, start, centre, spread)


def _posterior(
    g: FloatArray,
    h: FloatArray,
    noise: float,
    n_outputs: int,
    start: FloatArray,
    centre: float,
    spread: Spread,
) -> Weights:
    """Weights given noisy moments, and a normal prior about the centre."""
    n = len(g)
    prior = np.zeros((n, n))
    prior[:n_outputs, :n_outputs] = spread.intercept**2 * np.eye(n_outputs)
    prior[n_outputs:, n_outputs:] = spread.common**2 + spread.own**2 * np.eye(n - n_outputs)
    pull = np.linalg.inv(prior)
    away = np.concatenate([np.zeros(n_outputs), centre - start])
    # The records vary as much as the curvature says, the released gradient by the noise too.
    gain = h @ np.linalg.inv(h + noise * np.eye(n))
    precision = gain @ h + pull
    step = np.linalg.solve(precision, gain @ g + pull @ away)
    moved = np.linalg.solve(precision, gain)
    variances = noise * (moved**2).sum(axis=1)
    return Weights(
        step[:n_outputs],
        start + step[n_outputs:],
        variances[n_outputs:],
        np.diag(h)[:n_outputs].copy(),
    )


def _positive(matrix: FloatArray, least: float) -> FloatArray:
    """The symmetric matrix with no eigenvalue below ``least``."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, max(least, 1e-9))) @ vectors.T)


def _moments(
    records: Records,
    link: Link,
    scores: Callable[[IntArray], IntArray],
    functions: Callable[[IntArray], IntArray],
    n_functions: int,
    most: int,
) -> tuple[IntArray, IntArray]:
    """Exact sums over the records of bounded integer gradients and curvatures."""
    n_moments = link.n_outputs + n_functions
    gradient, hessian = np.zeros(n_moments), np.zeros((n_moments, n_moments))
    # Whole numbers below 2**53, and their sums, are exact in floating point, in any order.
    for block in records.blocks():
        scored, values = scores(block.groups), functions(block.groups).astype(np.float64)
        counts, weight = block.counts.astype(np.float64), _weights(values)
        g = _gradients(link.residuals(scored, block.labels), values, weight)
        gradient += _within(g, _REACH * _GRAIN) @ counts
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
    return np.minimum(_GRAIN, np.floor((_REACH * UNIT) ** 2 * _GRAIN / size**2))


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
