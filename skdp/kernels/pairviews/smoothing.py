"""Smooth counts of uneven bins: post-processing of released counts, free of privacy cost.

The last bins of a skewed column are nearly empty and their values are large, so noise in a few of
them decides the mean. A smooth histogram takes what is there from all bins together.

The logarithms eta of the counts minimise

    sum |noisy - expected| / b  +  1.5 sum log(1 + rigidity d^2 / 2),   d: third differences of eta

The first sum is the exact log likelihood of Laplace noise. The second is a Student prior with two
degrees of freedom: log-normal and power-law columns on a log scale have d = 0 and are not biased;
an edge or a narrow peak costs a few large d, not a rough curve everywhere. How rigid the curve is
follows from the data: the fits of a short grid are averaged with their marginal likelihoods
(Laplace's approximation). Where the average does not fit the counts (much data, many spikes), the
counts stay as they were measured.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._types import BoolArray, FloatArray
from ...hierarchy import project_to_simplex

__all__ = ["FEWEST_BINS", "smooth_counts"]

# Fewer bins have no shape to speak of.
FEWEST_BINS = 8
# Grid of rigidities, from loose to nearly parametric: jumps stay found while the curve stiffens.
_RIGIDITY = (1.0, 10.0, 100.0, 1000.0, 30_000.0, 1e6)
_FIRST, _NEXT = 8, 3
# A count this many standard deviations above twice the median around it is a spike, kept as it is.
_SPIKE = 5.5
# The curve hardly turns up again over its last differences, where there is little data.
_TAIL, _TAIL_WEIGHT = 6, 10.0
# Curvature of eta towards 0, which makes every equation solvable.
_RIDGE = 1e-3
# The absolute value in the likelihood is rounded off within this many scales of the noise.
_ROUND = 0.3
# Excess of the last bin, in scales of the noise, from which on values beyond the range are assumed.
_BEYOND = 0.7
# The slowest fall of the curve beyond the range, per bin.
_SLOWEST = -0.1
# Below this many standard deviations a total says nothing about a shape.
_FAINT = 3.0


class _Columns(NamedTuple):
    """Columns to fit, in units of the scale of the noise: arrays of shape (columns, bins)."""

    noisy: FloatArray
    used: FloatArray
    total: FloatArray
    offset: FloatArray


def smooth_counts(
    noisy: FloatArray, totals: FloatArray, stds: FloatArray, widths: FloatArray
) -> FloatArray:
    """Fit smooth counts to noisy ones; where they do not fit, project these.

    Parameters
    ----------
    noisy : ndarray of float64, shape (n_columns, n_bins)
        Counts with Laplace noise, of at least 8 bins in their order.
    totals : ndarray of float64, shape (n_columns,)
        Number of records in all bins of a column, not negative.
    stds : ndarray of float64, shape (n_columns,)
        Standard deviations of the noise.
    widths : ndarray of float64, shape (n_columns, n_bins)
        Widths of the bins on their scale: counts per width are smooth.

    Returns
    -------
    ndarray of float64, shape (n_columns, n_bins)
        Not negative; the sums are the totals.
    """
    result = np.array([project_to_simplex(*each) for each in zip(noisy, totals, strict=True)])
    std = np.maximum(np.maximum(stds, 0.5), 1e-5 * totals)[:, None]
    around = np.pad(noisy, ((0, 0), (2, 2)), mode="edge")
    middle = np.median(np.lib.stride_tricks.sliding_window_view(around, 5, axis=1), axis=2)
    middle = np.maximum(middle, 0.0)
    spikes = noisy > 2 * middle + _SPIKE * std
    rest = totals[:, None] - (noisy * spikes).sum(axis=1, keepdims=True)
    shaped = rest >= _FAINT * std * np.sqrt(np.maximum(spikes.sum(axis=1, keepdims=True), 1))
    scale = std / np.sqrt(2)
    columns = _Columns(noisy / scale, 1.0 - spikes, np.maximum(rest, 1) / scale, np.log(widths))
    start = np.log(np.maximum(np.where(spikes, middle, noisy), 0.3 * std) / scale)
    fits, evidence = _path(columns, start, np.zeros(len(noisy), dtype=bool))
    # Values beyond the range are in the last bin. If it holds more than a curve that ends there,
    # the curve may go on.
    best = fits[evidence.argmax(axis=0), np.arange(len(noisy))]
    more = np.flatnonzero(((columns.noisy - best) * columns.used)[:, -1] > _BEYOND)
    if len(more):
        some = _Columns(*(each[more] for each in columns))
        beyond, likely = np.zeros_like(fits), np.full_like(evidence, -np.inf)
        beyond[:, more], likely[:, more] = _path(some, start[more], np.ones(len(more), dtype=bool))
        fits, evidence = np.concatenate([fits, beyond]), np.concatenate([evidence, likely])
    weights = np.exp(evidence - evidence.max(axis=0))
    smooth = scale * np.einsum("gc,gcb->cb", weights / weights.sum(axis=0), fits)
    smooth = np.where(spikes, noisy, smooth * shaped)
    smooth *= totals[:, None] / np.maximum(smooth.sum(axis=1, keepdims=True), 1e-300)
    # Squares of Laplace noise of variance 1 have the variance 5.
    misfit = (columns.used * ((noisy - smooth) / std) ** 2).sum(axis=1)
    used = columns.used.sum(axis=1)
    fine = (shaped[:, 0] | spikes.any(axis=1)) & (misfit <= used + 4 * np.sqrt(5 * used))
    result[fine] = smooth[fine]
    return result


def _path(
    columns: _Columns, eta: FloatArray, clipped: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Counts and log marginal likelihood (up to a constant) for each rigidity and column.

    Damped Gauss-Newton steps, from one rigidity to the next.
    """
    fits, evidence = [], []
    damping = np.full(len(eta), 0.1)
    eye = np.eye(eta.shape[1])
    for rigidity in _RIGIDITY:
        counts, jacobian = _expected(columns, eta, clipped)
        value, slope, curve = _objective(columns, eta, counts, jacobian, rigidity)
        for _ in range(_NEXT if fits else _FIRST):
            matrix = curve + damping[:, None, None] * eye
            step = np.linalg.solve(matrix, -slope[:, :, None])[:, :, 0]
            step *= np.minimum(1, 3 / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-9))
            there, jacobian = _expected(columns, eta + step, clipped)
            new = _objective(columns, eta + step, there, jacobian, rigidity)
            better = new[0] <= value
            damping = np.where(better, np.maximum(damping / 5, 1e-6), damping * 8)
            eta = np.where(better[:, None], eta + step, eta)
            counts = np.where(better[:, None], there, counts)
            value = np.where(better, new[0], value)
            slope = np.where(better[:, None], new[1], slope)
            curve = np.where(better[:, None, None], new[2], curve)
        fits.append(counts)
        occam = np.linalg.slogdet(curve)[1] - (eta.shape[1] - 3) * np.log(rigidity)
        evidence.append(-value - occam / 2)
    return np.array(fits), np.array(evidence)


def _expected(
    columns: _Columns, eta: FloatArray, clipped: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Expected counts and their derivatives. Where clipped, the last bin holds all beyond it."""
    last = eta[:, -1] - eta[:, -2]
    fall = np.exp(np.minimum(last, _SLOWEST)) * clipped
    counts = np.exp(eta - eta.max(axis=1, keepdims=True)) * columns.used
    counts[:, -1] /= 1 - fall
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    counts = share * columns.total
    jacobian = counts[:, :, None] * (np.eye(eta.shape[1]) - share[:, None, :])
    reach = (fall / (1 - fall) * (last < _SLOWEST))[:, None]
    jacobian[:, :, -2] -= reach * jacobian[:, :, -1]
    jacobian[:, :, -1] *= 1 + reach
    return counts, jacobian


def _objective(
    columns: _Columns, eta: FloatArray, counts: FloatArray, jacobian: FloatArray, rigidity: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What is minimised, its gradient, and a positive matrix like its second derivative."""
    miss = counts - columns.noisy
    loss = np.sqrt(miss * miss + _ROUND**2)
    value = (columns.used * loss).sum(axis=1) + 0.5 * _RIDGE * (eta * eta).sum(axis=1)
    slope = ((columns.used * miss / loss)[:, None, :] @ jacobian)[:, 0] + _RIDGE * eta
    curve = jacobian.transpose(0, 2, 1) @ jacobian + _RIDGE * np.eye(eta.shape[1])
    density = eta - columns.offset
    third = np.diff(density, n=3, axis=1)
    turn = np.maximum(np.diff(density, n=2, axis=1)[:, -_TAIL:], 0.0)
    third_rows, turn_rows = (np.diff(np.eye(eta.shape[1]), n=n, axis=0) for n in (3, 2))
    for d, rows, weight in (
        (third, third_rows, np.full_like(third, rigidity)),
        (turn, turn_rows[-_TAIL:], _TAIL_WEIGHT * (turn > 0)),
    ):
        value += 1.5 * np.log1p(weight * d * d / 2).sum(axis=1)
        pull = 3 * weight / (2 + weight * d * d)
        slope += (pull * d) @ rows
        curve += (rows.T * pull[:, None, :]) @ rows
    return value, slope, curve
