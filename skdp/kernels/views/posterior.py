"""What a noisy table says beside a model: the posterior mean of its cells.

A cell is near the model, or far from it, or perhaps empty. How far, and how many are, follows from
all cells of the table together (empirical Bayes). Post-processing of released numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from itertools import combinations

import numpy as np
from scipy.optimize import least_squares

from ..._types import FloatArray
from ...release import couple

__all__ = [
    "mean_of_pair",
    "nearer_model",
    "parts_of_set",
    "posterior_mean",
    "tilted_model",
    "with_margins",
]

Axes = tuple[int, ...]

# Scales of the distance between truth and model that are tried: of cells near the model in units of
# the square root of the count, of those far from it in units of the count.
_NEAR = (0.0, 0.3, 1.0, 3.0, 10.0)
_FAR = (0.1, 0.2, 0.4, 0.8, 1.6)
_SHARES_FAR = (0.05, 0.2, 0.5, 0.9)
_SHARES_EMPTY = (0.0, 0.1, 0.3, 0.6)
# A model's count below this is as uncertain as this one, in standard deviations of the noise.
_FLOOR = 0.02
# Share of cells of which the model says nothing at all, and the variance of their counts, in units
# of that of the noise, above the square of the mean count.
_SHARE_WIDE, _WIDE = 0.002, 10.0
# Moments of a pair: degrees of polynomials, standard deviations of the noise above which one
# counts, and that of a coefficient before anything is seen.
_DEGREES, _SURE, _TILT = 3, 3.0, 1.0
# Steps of the fit to moments, and rounds of proportional fitting in each.
_STEPS, _ROUNDS = 20, 5
# Rounds of proportional fitting of a wide table to the tables of its parts.
_WIDE_ROUNDS = 12
# Likelihoods that are multiplied before a logarithm is taken, cells that are looked at at once, and
# the least likelihood, as a part of that of the likeliest kind of cell.
_FACTORS, _CHUNK, _UNLIKELY = 16, 512, 1e-18
# Models learned from the counts follow the noise too: log likelihood that each number must add.
_WORTH = 1.0


def posterior_mean(
    noisy: FloatArray, variance: float, model: FloatArray, *, empty: bool = False
) -> FloatArray:
    """Expected true counts of cells, given noisy ones and those of a model.

    Parameters
    ----------
    noisy : ndarray of float64
    variance : float
        Of the noise of a cell.
    model : ndarray of float64
        Counts of the same shape, not negative.
    empty : bool, default=False
        Whether some cells may be empty whatever the model says. Means are then not negative.

    Returns
    -------
    ndarray of float64
        It may be negative, unless ``empty``.
    """
    return _posterior(noisy, variance, model, empty)[0]


def mean_of_pair(noisy: FloatArray, variance: float, model: FloatArray) -> FloatArray:
    """Expected true counts of a pair, whose model first learns what all cells show together.

    Low moments are learned where they stand out; patterns as well where the counts become much
    likelier by them (:func:`tilted_model`, :func:`nearer_model`).

    Parameters
    ----------
    noisy : ndarray of float64, shape (n_rows, n_columns)
        Counts.
    variance : float
        Of the noise of a cell.
    model : ndarray of float64, shape (n_rows, n_columns)
        Counts, not negative.

    Returns
    -------
    ndarray of float64, shape (n_rows, n_columns)
        Not negative.
    """
    tilted = tilted_model(noisy, variance, model)
    best, found = -np.inf, model
    for start, n_tilts in ((model, 0), (tilted, _DEGREES**2)):
        if n_tilts and tilted is model:
            break
        moved, n_patterns = _moved(noisy, variance, start)
        nearer = ((start, n_tilts), (moved, n_tilts + n_patterns))
        for near, n_numbers in nearer if n_patterns else nearer[:1]:
            mean, likely = _posterior(noisy, variance, near, True)
            if likely - _WORTH * n_numbers > best:
                best, found = likely - _WORTH * n_numbers, mean
    return found


def _posterior(
    noisy: FloatArray, variance: float, model: FloatArray, empty: bool
) -> tuple[FloatArray, float]:
    """Expected counts, and the logarithm of the likelihood of the noisy ones."""
    shape = noisy.shape
    y, m = noisy.ravel(), model.ravel()
    distance = y - m
    count = m + _FLOOR * np.sqrt(variance)
    least = -m if empty else -np.inf
    log_none = _log_density(y, np.full_like(y, variance)) if empty else np.full_like(y, -np.inf)
    shares = np.array(
        [
            ((1 - none) * (1 - far), (1 - none) * far, none)
            for far, none in itertools.product(_SHARES_FAR, _SHARES_EMPTY if empty else (0.0,))
        ]
    )
    near, far = np.array(list(itertools.product(_NEAR, _FAR))).T[..., None]

    def densities(part: slice, scales: slice) -> tuple[FloatArray, FloatArray]:
        """Of cells near the model, far from it, and empty, (scales, 3, cells); and their maxima."""
        v_near = near[scales] ** 2 * count[part]
        v_far = v_near + far[scales] ** 2 * count[part] ** 2
        logs = np.empty((len(v_near), 3, v_near.shape[1]))
        logs[:, 0] = _log_density(distance[part], variance + v_near)
        logs[:, 1] = _log_density(distance[part], variance + v_far)
        logs[:, 2] = log_none[part]
        shift = logs.max(axis=1)
        return np.exp(logs - shift[:, None]), shift

    fits = np.zeros((len(near), len(shares)))
    for first in range(0, len(y), _CHUNK):
        p, shift = densities(slice(first, first + _CHUNK), slice(None))
        fits += _sums_of_logs(shares @ p) + shift.sum(axis=1)[:, None]
    scale, share = np.unravel_index(int(fits.argmax()), fits.shape)
    p, shift = densities(slice(None), slice(int(scale), int(scale) + 1))
    mixed = np.maximum(shares[share] @ p[0], _UNLIKELY)
    likely = np.log(mixed) + shift[0]
    _, is_far, is_none = shares[share][:, None] * p[0] / mixed
    v_near = near[scale] ** 2 * count
    v_far = v_near + far[scale] ** 2 * count**2
    at_near = np.maximum(v_near / (v_near + variance) * distance, least)
    at_far = np.maximum(v_far / (v_far + variance) * distance, least)
    found = (1 - is_far - is_none) * at_near + is_far * at_far - is_none * m
    # A model of drawn rows has empty cells, of which it says nothing.
    wide = _WIDE * variance + m.mean() ** 2
    odds = np.exp(np.clip(_log_density(distance, variance + wide) - likely, -50.0, 50.0))
    is_wide = _SHARE_WIDE * odds / (1 + _SHARE_WIDE * odds)
    at_wide = np.maximum(wide / (variance + wide) * distance, least)
    mean: FloatArray = m + (1 - is_wide) * found + is_wide * at_wide
    return (np.maximum(mean, 0.0) if empty else mean).reshape(shape), float(fits[scale, share])


def nearer_model(noisy: FloatArray, variance: float, model: FloatArray) -> FloatArray:
    """A model of a pair, moved by the patterns of all cells together that stand out from the noise.

    Columns that rise together move each cell by less than its noise, but all cells in one pattern.
    Patterns are the singular vectors of the difference; those of noise alone have values up to
    its standard deviation times the sum of the roots of both sizes. The others are shrunk as is
    best for the squared error [1]_.

    Parameters
    ----------
    noisy : ndarray of float64, shape (n_rows, n_columns)
        Counts.
    variance : float
        Of the noise of a cell.
    model : ndarray of float64, shape (n_rows, n_columns)
        Counts, not negative.

    Returns
    -------
    ndarray of float64, shape (n_rows, n_columns)
        Not negative.

    References
    ----------
    .. [1] M. Gavish and D. L. Donoho. Optimal shrinkage of singular values. IEEE Transactions on
       Information Theory 63(4), 2017.
    """
    return _moved(noisy, variance, model)[0]


def _moved(noisy: FloatArray, variance: float, model: FloatArray) -> tuple[FloatArray, int]:
    """The model moved by patterns, and how many numbers these are."""
    rows, columns = noisy.shape
    left, values, right = np.linalg.svd(noisy - model, full_matrices=False)
    squares = values**2
    both = (squares - (rows + columns) * variance) ** 2 - 4.0 * rows * columns * variance**2
    out = squares > (np.sqrt(rows) + np.sqrt(columns)) ** 2 * variance
    kept = np.sqrt(np.where(out, np.maximum(both, 0.0), 0.0)) / np.maximum(values, 1e-300)
    moved: FloatArray = np.maximum(model + (left * kept) @ right, 0.0)
    rank = int(np.count_nonzero(kept))
    return moved, rank * (rows + columns - rank)


def tilted_model(noisy: FloatArray, variance: float, model: FloatArray) -> FloatArray:
    """A model of a pair, tilted until it has the low moments that stand out from the noise.

    How two columns rise and curve together is a sum over all cells, and so known much better than
    any of them. The model is multiplied by the exponential of a sum of products of polynomials of
    degree 1 to 3, of codes: of all tables with these moments and its margins the nearest to it.

    Parameters
    ----------
    noisy : ndarray of float64, shape (n_rows, n_columns)
        Counts.
    variance : float
        Of the noise of a cell.
    model : ndarray of float64, shape (n_rows, n_columns)
        Counts, not negative.

    Returns
    -------
    ndarray of float64, shape (n_rows, n_columns)
        Not negative, with the margins of the model.
    """
    total = model.sum()
    if min(model.shape) < 3 or not total > 0:
        return model
    rows, columns = model.sum(axis=1), model.sum(axis=0)
    x, y = _polynomials(rows), _polynomials(columns)
    seen = x.T @ noisy @ y
    noise = np.sqrt(variance * np.outer((x**2).sum(axis=0), (y**2).sum(axis=0)))
    if not (np.abs(seen - x.T @ model @ y) > _SURE * noise).any():
        return model

    def tilted(tilt: FloatArray) -> FloatArray:
        exponent = x @ tilt.reshape(seen.shape) @ y.T
        scaled = model * np.exp(np.maximum(exponent - exponent.max(), -60.0))
        return couple(scaled, rows, columns, rounds=_ROUNDS)

    def residuals(tilt: FloatArray) -> FloatArray:
        gap = (x.T @ tilted(tilt) @ y - seen) / noise
        return np.append(gap.ravel(), tilt / scale)

    # Smooth dependence has small coefficients of high degrees.
    degrees = np.outer(np.arange(1, x.shape[1] + 1), np.arange(1, y.shape[1] + 1))
    scale = _TILT / degrees.ravel()

    found = least_squares(residuals, np.zeros(seen.size), max_nfev=_STEPS)
    return tilted(found.x)


def _polynomials(weights: FloatArray) -> FloatArray:
    """Polynomials of the codes of degree 1 to 3, orthonormal under weights, and to 1."""
    n = len(weights)
    mass = np.sqrt(np.maximum(weights, 1e-9 * weights.sum()) / weights.sum())
    powers = np.linspace(-1.0, 1.0, n)[:, None] ** np.arange(min(_DEGREES, n - 1) + 1)
    basis = np.linalg.qr(powers * mass[:, None])[0] / mass[:, None]
    found: FloatArray = basis[:, 1:]
    return found


def _sums_of_logs(numbers: FloatArray) -> FloatArray:
    """Sums of logarithms along the last axis, of numbers from 0 to 1: few logs, of products."""
    numbers = np.maximum(numbers, _UNLIKELY)
    n = numbers.shape[-1] // _FACTORS * _FACTORS
    whole, rest = numbers[..., :n], numbers[..., n:]
    products = whole.reshape(*numbers.shape[:-1], _FACTORS, -1).prod(axis=-2)
    found: FloatArray = np.log(products).sum(axis=-1) + np.log(rest).sum(axis=-1)
    return found


def _log_density(distance: FloatArray, variance: FloatArray) -> FloatArray:
    return -0.5 * (distance**2 / variance + np.log(variance))


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
