"""Smooth counts of bins on a scale: post-processing of released counts, free of privacy cost.

The last bins of a skewed column are nearly empty and their values large, so the noise of a few
counts decides the mean. A curve takes what they hold from all bins. Its logarithm eta minimises

    sum |noisy - exp(eta)| / b  +  1.5 sum log(1 + rigidity d^2 / 2),   d: third differences of eta

The first sum is the likelihood of Laplace noise, the second a Student prior: log-normal columns and
power laws on a log scale have d = 0, and edges cost a few large d, not a rough curve everywhere.
Curves of several rigidities are averaged with their marginal likelihoods (by Laplace's method).
Where the average does not fit, as with little noise, the counts stay as they were measured.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..._types import BoolArray, FloatArray, IntArray
from ...hierarchy import project_to_simplex

__all__ = ["FEWEST_BINS", "smooth_counts"]

# Fewer bins have no shape to speak of.
FEWEST_BINS = 8
# From loose to nearly parametric: edges are found first, and kept. Each curve takes at most this
# many steps, and none after one that gained less than this.
_RIGIDITY = (1.0, 10.0, 100.0, 1000.0, 1e5)
_STEPS, _ENOUGH = 6, 0.3
# A count this many standard deviations above twice the median around it is a spike, kept as it is.
# A total below this many has no shape.
_SPIKE, _FAINT = 5.5, 3.0
# Over this many last bins the curve is unlikely to turn up: two noisy counts would look like it.
_TAIL, _TAIL_WEIGHT = 6, 100.0
# Weight of eta^2, which gives every equation a solution; |x| is rounded off within this many b.
_RIDGE, _ROUND = 1e-3, 0.3
# With the last bin this many b above the curve, values beyond the range may be in it: the curve
# then goes on, falling at least so much per bin.
_BEYOND, _SLOWEST = 1.2, -0.1


class _Columns(NamedTuple):
    """Columns to fit, in units of the scale b of the noise: arrays of shape (columns, bins)."""

    noisy: FloatArray
    used: FloatArray  # 1, or 0 for spikes
    total: FloatArray
    offset: FloatArray


def smooth_counts(
    noisy: FloatArray, totals: FloatArray, stds: FloatArray, widths: FloatArray
) -> FloatArray:
    """Fit smooth counts to noisy ones of shape (columns, bins), with at least 8 bins in order.

    ``totals`` and ``stds`` (of the noise), one for each column, are not negative; counts per
    ``widths`` are smooth. The result is not negative, and its sums are the totals.
    """
    measured = np.array([project_to_simplex(*each) for each in zip(noisy, totals, strict=True)])
    std = np.maximum(np.maximum(stds, 0.5), 1e-5 * totals)[:, None]
    around = np.pad(noisy, ((0, 0), (2, 2)), mode="reflect")
    middle = np.median(np.lib.stride_tricks.sliding_window_view(around, 5, axis=1), axis=2)
    spikes = noisy > 2 * np.maximum(middle, 0.0) + _SPIKE * std
    rest = totals[:, None] - (noisy * spikes).sum(axis=1, keepdims=True)
    shaped = rest >= _FAINT * std * np.sqrt(np.maximum(spikes.sum(axis=1, keepdims=True), 1))
    b = std / math.sqrt(2)
    used = 1 - spikes.astype(np.float64)
    columns = _Columns(noisy / b, used, np.maximum(rest, 1.0) / b, np.log(widths))
    start = np.log(np.maximum(np.where(spikes, middle, noisy), 0.3 * std) / b)
    fits, evidence = _curves(columns, start, np.zeros(len(noisy), dtype=bool))
    best = fits[evidence.argmax(axis=0), np.arange(len(noisy)), -1]
    high = (columns.noisy[:, -1] - best) * used[:, -1] > _BEYOND
    if high.any():
        some = _Columns(*(each[high] for each in columns))
        longer, likely = np.zeros_like(fits), np.full_like(evidence, -np.inf)
        longer[:, high], likely[:, high] = _curves(some, start[high], high[high])
        fits, evidence = np.concatenate([fits, longer]), np.concatenate([evidence, likely])
    weights = np.exp(evidence - evidence.max(axis=0))
    smooth = b * np.einsum("gc,gcb->cb", weights / weights.sum(axis=0), fits)
    smooth = np.where(spikes, noisy, smooth * shaped)
    smooth *= totals[:, None] / np.maximum(smooth.sum(axis=1, keepdims=True), 1e-300)
    # Squares of Laplace noise of variance 1 have the variance 5.
    excess = (used * (((noisy - smooth) / std) ** 2 - 1)).sum(axis=1)
    fine = (excess <= 4 * np.sqrt(5 * used.sum(axis=1))) & (shaped[:, 0] | spikes.any(axis=1))
    return np.where(fine[:, None], smooth, measured)


def _curves(columns: _Columns, start: FloatArray, longer: BoolArray) -> tuple[FloatArray, ...]:
    """Counts and log marginal likelihoods of each rigidity, by damped Gauss-Newton steps."""
    fits, evidence = [], []
    eta, size = start.copy(), start.shape[1]
    third, second = (np.diff(np.eye(size), n=n, axis=0) for n in (3, 2))
    rows = np.concatenate([third, second[-_TAIL:]])
    squares = (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
    is_third = np.arange(len(rows)) < len(third)

    def objective(eta: FloatArray, which: IntArray, weight: FloatArray) -> tuple[FloatArray, ...]:
        """What is minimised, its gradient, a positive second derivative, and the counts."""
        noisy, used, total, offset = (each[which] for each in columns)
        counts, jacobian = _expected(eta, used, total, longer[which])
        miss = counts - noisy
        loss = np.sqrt(miss * miss + _ROUND**2)
        d = (eta - offset) @ rows.T
        d *= is_third | (d > 0)
        pull = 3 * weight / (2 + weight * d * d) * (is_third | (d > 0))
        value = (used * loss + 0.5 * _RIDGE * eta * eta).sum(axis=1)
        value += 1.5 * np.log1p(weight * d * d / 2).sum(axis=1)
        slope = ((used * miss / loss)[:, None, :] @ jacobian)[:, 0]
        slope += _RIDGE * eta + (pull * d) @ rows
        curve = jacobian.transpose(0, 2, 1) @ jacobian
        curve += (pull @ squares).reshape(curve.shape)
        np.einsum("cbb->cb", curve)[:] += _RIDGE
        return value, slope, curve, counts

    damping = np.full(len(eta), 0.1)
    for rigidity in _RIGIDITY:
        weight = np.where(is_third, rigidity, _TAIL_WEIGHT)
        moving = np.arange(len(eta))
        value, slope, curve, counts = objective(eta, moving, weight)
        for _ in range(_STEPS):
            matrix = curve[moving]
            np.einsum("cbb->cb", matrix)[:] += damping[moving, None]
            step = np.linalg.solve(matrix, -slope[moving, :, None])[:, :, 0]
            step *= np.minimum(1, 3 / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-9))
            new = (eta[moving] + step, *objective(eta[moving] + step, moving, weight))
            gain = value[moving] - new[1]
            better, to = gain >= 0, moving[gain >= 0]
            damping[moving] = np.maximum(damping[moving] * np.where(better, 0.2, 8.0), 1e-6)
            for old, each in zip((eta, value, slope, curve, counts), new, strict=True):
                old[to] = each[better]
            moving = moving[~better | (gain > _ENOUGH)]
        fits.append(counts)
        occam = np.linalg.slogdet(curve)[1] - len(third) * np.log(rigidity)
        evidence.append(-value - occam / 2)
    return np.array(fits), np.array(evidence)


def _expected(
    eta: FloatArray, used: FloatArray, total: FloatArray, longer: BoolArray
) -> tuple[FloatArray, ...]:
    """Counts of curves and their derivatives; the last bin holds all beyond it if longer."""
    last = eta[:, -1] - eta[:, -2]
    ratio = np.exp(np.minimum(last, _SLOWEST)) * longer
    share = np.exp(eta - eta.max(axis=1, keepdims=True)) * used
    share[:, -1] /= 1 - ratio
    share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
    counts = share * total
    jacobian = -counts[:, :, None] * share[:, None, :]
    np.einsum("cbb->cb", jacobian)[:] += counts
    reach = (ratio / (1 - ratio) * (last < _SLOWEST))[:, None]
    jacobian[:, :, -2] -= reach * jacobian[:, :, -1]
    jacobian[:, :, -1] *= 1 + reach
    return counts, jacobian
