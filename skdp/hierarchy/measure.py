"""Measuring a tree within epsilon, and the distribution of the noise in its estimates."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import ndtri

from .._random import noise_source
from .._validation import FloatArray, IntArray, as_level
from ..mechanisms import discrete_laplace, discrete_laplace_variance
from .tree import Tree

# Shares of epsilon are multiples of 1 / SHARE_UNIT, so that sums along a path are exact.
SHARE_UNIT = 10**6
# More distinct budgets than this are rounded down to a grid: each needs a table of noise.
_MAX_BUDGETS = 64
# The distribution of a sum is computed over at least this many standard deviations on both sides.
_GAUSSIAN_REACH = 8.0


def exact_shares(tree: Tree, shares: ArrayLike) -> IntArray:
    """Shares as integers, in units of one millionth; sums along each path are at most 10**6.

    More than 64 different shares are rounded down to a grid of 2% steps, because each one needs
    its own table of noise. Otherwise the leaves get the rounding remainder.

    Parameters
    ----------
    tree : Tree
    shares : array-like of float, shape (n_nodes,)
        Non-negative, with a sum of at most 1 on each path from the root to a leaf. 0 leaves a
        node unmeasured.

    Returns
    -------
    ndarray of int64, shape (n_nodes,)

    Raises
    ------
    ValueError
        If a share is negative or not finite, a path spends more than 1, or some path has no
        measured node at all.
    """
    s = np.asarray(shares, dtype=np.float64)
    if s.shape != (tree.n_nodes,):
        raise ValueError(
            f"shares must hold a number for each of the {tree.n_nodes} nodes, got shape {s.shape}."
        )
    wrong = np.flatnonzero(~(np.isfinite(s) & (s >= 0)))
    if wrong.size:
        raise ValueError(
            f"shares must be finite and not negative, got {s[wrong[0]]:g} for node {wrong[0]}."
        )
    spent = tree.spread_down(s)[tree.leaves]
    if (spent > 1 + 1e-6).any():
        leaf = int(np.argmax(spent))
        raise ValueError(
            f"The nodes above leaf {leaf} get {spent[leaf]:.6g} times epsilon in total, more than "
            "1: a record is counted by every one of them. Scale the shares."
        )
    whole = np.floor(s * SHARE_UNIT + 1e-3).astype(np.int64)
    coarse = len(np.unique(whole)) > _MAX_BUDGETS
    if coarse:
        grid = np.unique(np.floor(SHARE_UNIT * 1.02 ** -np.arange(700)).astype(np.int64))
        whole = np.where(whole > 0, grid[np.searchsorted(grid, whole, side="right") - 1], 0)
    used = tree.spread_down(whole.astype(np.float64))[tree.leaves].astype(np.int64)
    left = SHARE_UNIT - used
    # Rounding can leave a few millionths over, or be a few short, on each path.
    fix = (whole[tree.leaves] > 0) & ((left < 0) | ((left <= tree.n_levels) & (not coarse)))
    whole[tree.leaves] += np.where(fix, left, 0)
    used = used + np.where(fix, left, 0)
    if (used > SHARE_UNIT).any() or (whole < 0).any():
        raise ValueError("The shares of a path exceed 1 by more than rounding: scale them.")
    if (used == 0).any():
        leaf = int(np.flatnonzero(used == 0)[0])
        raise ValueError(
            f"Neither leaf {leaf} nor any node above it has a share, so it is not measured."
        )
    return whole


class Measurement(NamedTuple):
    """Noisy counts of the nodes and their variances (infinite where nothing was measured)."""

    values: IntArray
    variances: FloatArray


def measured_variances(shares: IntArray, epsilon: Fraction) -> FloatArray:
    """Exact noise variances for shares in millionths, infinite where the share is 0."""
    variances = np.full(len(shares), np.inf)
    for share in np.unique(shares[shares > 0]).tolist():
        part = epsilon * Fraction(share, SHARE_UNIT)
        variances[shares == share] = discrete_laplace_variance(part)
    return variances


def measure(
    tree: Tree,
    bin_counts: ArrayLike,
    shares: IntArray,
    epsilon: Fraction,
    *,
    random_state: Any = None,
) -> Measurement:
    """Noisy counts of the nodes of a tree.

    Parameters
    ----------
    tree : Tree
    bin_counts : array-like of int, shape (n_bins,)
        Exact and private.
    shares : ndarray of int64, shape (n_nodes,)
        From `exact_shares`: in millionths; they sum to at most 10**6 on each path.
    epsilon : Fraction
        Cost of the whole tree.
    random_state : None, int or NoiseSource, default=None

    Returns
    -------
    Measurement
        Values are 0 where nothing was measured.

    Raises
    ------
    ValueError
        If shares are negative, or some path spends more than epsilon.
    """
    # Privacy. Released: the noisy counts of the nodes with a share. Adding or removing one
    # record changes by 1 the counts of the nodes on one path from the root to a leaf, and no
    # other. Node v gets independent discrete Laplace noise of sensitivity 1 with epsilon times
    # its share, which is share_v * epsilon-DP; the shares are public and sum to at most 1 on
    # every path (integers, checked here whoever made them), so the whole is epsilon-DP. That the
    # nodes that hold a bin are one path is checked where a Tree is made.
    shares = np.asarray(shares)
    if shares.shape != (tree.n_nodes,) or shares.dtype.kind not in "iu" or (shares < 0).any():
        raise ValueError("shares must be those of exact_shares: one integer for each node.")
    if (tree.spread_down(shares.astype(np.float64)) > SHARE_UNIT).any():
        raise ValueError("The shares of some path sum to more than 1: use those of exact_shares.")
    counts = tree.node_counts(np.asarray(bin_counts, dtype=np.int64))
    values = np.zeros(tree.n_nodes, dtype=np.int64)
    source = noise_source(random_state)
    for share in np.unique(shares[shares > 0]).tolist():
        nodes = shares == share
        part = epsilon * Fraction(share, SHARE_UNIT)
        values[nodes] = discrete_laplace(counts[nodes], part, 1, random_state=source)
    return Measurement(values, measured_variances(shares, epsilon))


def noise_quantile(
    weights: ArrayLike, variances: ArrayLike, level: float, times: ArrayLike | None = None
) -> float:
    """Half width that covers a weighted sum of independent discrete Laplace noises.

    The characteristic function of the sum is a product of ``1 / (1 + v (1 - cos(w t)))``, v the
    variance and w the weight of a term; it is inverted numerically. A narrow normal kernel makes
    the integral finite, and its width is added to the result, which makes it conservative by about
    2% of a standard deviation. Weights within 5% of each other are replaced by their root mean
    square, terms that together make up less than a thousandth of the variance are replaced by a
    normal term.

    Parameters
    ----------
    weights, variances : array-like of float, shape (n,)
        Weights and variances of the terms; the variance of discrete Laplace noise determines its
        distribution.
    level : float
        In (0, 1).
    times : array-like of float, shape (n,), default=None
        How many independent terms each entry stands for; one each by default.

    Returns
    -------
    float
        x such that the sum lies in [-x, x] with probability at least ``level``.
    """
    level = as_level(level)
    w, v = np.abs(np.asarray(weights, dtype=np.float64)), np.asarray(variances, dtype=np.float64)
    number = np.ones(len(w)) if times is None else np.asarray(times, dtype=np.float64)
    used = (w > 0) & (v > 0) & np.isfinite(v)
    w, v, number = w[used], v[used], number[used]
    # The noise is integer, so it is nonzero with probability at most v. With hardly any noise the
    # sum is almost always zero, and the inversion below would take too long.
    if float(number @ v) <= 1.0 - level:
        return 0.0
    w, v, number, rest = _grouped(w, v, number)
    std = math.sqrt(float((number * w**2) @ v) + rest)
    if std == 0:
        return 0.0
    w, rest = w / std, rest / std**2
    # Allowed error of each approximation, a thousandth of 1 - level: the tail of the kernel, the
    # integrand that it leaves at `top`, and the mass beyond `reach` that a sum with steps of this
    # length folds back.
    slack = 1e-3 * (1.0 - level)
    top = 500.0
    kernel = math.sqrt(-2.0 * math.log(slack)) / top
    reach = max(_reach(w, v, number, slack), _GAUSSIAN_REACH)
    step = math.pi / reach
    t = np.arange(1, int(top / step) + 1) * step
    log_phi = -0.5 * (rest + kernel**2) * t**2
    for weight, variance, many in zip(w, v, number, strict=True):
        # 1 - cos(w t), without cancellation where v is large and w small.
        log_phi -= many * np.log1p(2.0 * variance * np.sin(weight * t / 2.0) ** 2)
    keep = log_phi > math.log(slack) - 5.0
    t, phi = t[keep], np.exp(log_phi[keep]) / t[keep]

    def excess(x: float) -> float:
        inside = 2.0 / math.pi * step * (x / 2.0 + float(phi @ np.sin(x * t)))
        return inside - level - slack

    x = brentq(excess, 0.0, reach, xtol=1e-4) if excess(reach) > 0 else reach
    return std * (x + kernel * float(-ndtri(slack / 2.0)))


def _grouped(
    w: FloatArray, v: FloatArray, number: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Distinct (weight, variance) terms, how often each occurs, and the variance of the rest."""
    if len(w) == 0:
        return w, v, w, 0.0
    power = number * (w**2 * v)
    order = np.argsort(power)
    negligible = np.cumsum(power[order]) < 1e-3 * power.sum()
    rest = float(power[order[negligible]].sum())
    keep = order[~negligible]
    w, v, power, number = w[keep], v[keep], power[keep], number[keep]
    if len(w) <= 64:
        return w, v, number, rest
    _, kind = np.unique(v, return_inverse=True)
    cell = np.floor(np.log(w) / 0.05).astype(np.int64)
    _, first, group = np.unique(
        np.stack([kind.ravel(), cell]), axis=1, return_index=True, return_inverse=True
    )
    times = np.bincount(group.ravel(), weights=number).astype(np.float64)
    variance = v[first]
    square = np.bincount(group.ravel(), weights=power) / (times * variance)
    return np.sqrt(square), variance, times, rest


def _reach(w: FloatArray, v: FloatArray, times: FloatArray, alpha: float) -> float:
    """A bound that the standardised sum exceeds with probability at most alpha (Chernoff)."""
    if len(w) == 0:
        return 0.0
    largest = float((2.0 * np.arcsinh(np.sqrt(0.5 / v)) / w).min())
    rates = largest * np.linspace(0.02, 0.98, 49)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        terms = 2.0 * v[:, None] * np.sinh(w[:, None] * rates / 2.0) ** 2
        moment = -(times[:, None] * np.log1p(-np.minimum(terms, 1.0))).sum(axis=0)
        bounds = (moment + math.log(2.0 / alpha)) / rates
    return float(bounds[np.isfinite(bounds)].min())
