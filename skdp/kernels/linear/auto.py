"""The most accurate way to a linear model that is known for the signal at hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from ..additive import Identity, Logit, Records, fit_additive, located, location_share
from .design import Design, LinearModel
from .functional import fit_functional
from .moments import most_products

__all__ = ["fit_auto", "fit_smooth"]

# Least ratio of signal to noise at which second moments are better, see `_clear`: they are worse up
# to ratios of 20 to 40, and with many categories to 100 (``benchmarks/models.py --regression``).
_CLEAR = 40.0
# Bins of a number in histograms: the noise of a slope grows with their number. Where there are many
# records times epsilon, each column has more bins, one for so many, up to a limit.
_BINS, _SIGNAL, _MOST_BINS = 16, 1_000.0, 256
# Features whose table of all products is too large for memory and time are more than this.
_FEATURES_ONCE = 1024


def fit_auto(
    records: Records,
    design: Design,
    link: Logit | Identity,
    epsilon: Fraction,
    total: float,
    random_state: Any,
    alpha: float = 0.0,
) -> LinearModel:
    """Second moments of a number and few features; otherwise functions of single columns.

    Parameters are those of `fit_functional`; ``total`` is the released number of records.
    """
    # Privacy. Which of the two is fitted, and in which bins, follows from the released number and
    # public facts. What `located` and `fit_functional` release is composed sequentially.
    signal = float(epsilon) * max(total, 0.0)
    if isinstance(link, Identity) and _clear(design, signal):
        part = location_share(epsilon, total)
        link = located(records, link, part, total, random_state)
        return fit_functional(records, design, link, epsilon - part, total, random_state, alpha)
    n_bins = int(np.clip(signal / (_SIGNAL * len(design.columns)), _BINS, _MOST_BINS))
    records, design = design.merged(records, n_bins)
    return fit_smooth(records, design, link, epsilon, total, random_state, alpha)


def _clear(design: Design, signal: float) -> bool:
    """Whether second moments, whose noise grows with the pairs of columns, stand out from it."""
    m, p = len(design.columns), design.n_features
    if p > _FEATURES_ONCE:
        return False
    # Records of a feature of average size, against the largest eigenvalue of noise alone.
    return signal * m / p > _CLEAR * most_products(design, 2) * p**0.5


# --- coefficients through the additive model of the same columns


def fit_smooth(
    records: Records,
    design: Design,
    link: Logit | Identity,
    epsilon: Fraction,
    total: float,
    random_state: Any,
    alpha: float = 0.0,
) -> LinearModel:
    """Fit an additive model whose functions are linear in the features; see `fit_additive`.

    An indicator of each group of a column is a function of the column. A number is a function with
    a prior that holds straight lines only.

    Parameters
    ----------
    records : Records
    design : Design
    link : Logit or Identity
    epsilon : Fraction
    total : float
        Released number of records.
    random_state : NoiseSource
    alpha : float, default=0.0
        Shrink each coefficient as if so many records had its feature and an outcome of 0.
    """
    priors = [column.prior() for column in design.columns]
    model = fit_additive(records, link, priors, epsilon, total, random_state)
    coef = np.zeros((link.n_outputs, design.n_features))
    std = np.zeros_like(coef)
    intercept = model.intercept.copy()
    for column, block, shape, errors, sizes in zip(
        design.columns, design.blocks, model.shapes, model.std_errors, model.sizes, strict=True
    ):
        found, constant = column.coefficients(shape)
        error = _slopes(column.values, column.free, errors)
        mean = sizes @ column.values / max(sizes.sum(), 1.0)
        known = sizes @ (column.values - mean) ** 2
        kept = known / (known + alpha) if alpha else np.ones(len(known))
        coef[:, block], std[:, block] = kept * found, kept * error
        intercept += constant + ((1 - kept) * found) @ mean
    return LinearModel(intercept, coef, std)


def _slopes(values: Any, free: bool, std: Any) -> Any:
    """Standard errors of coefficients from those of the groups, (n_outputs, n_features)."""
    if free:
        return std.T
    # The groups of a line err together: the one that lies furthest from the middle tells the slope.
    furthest = np.argmax(np.abs(values), axis=0)
    reach = np.abs(values[furthest, np.arange(values.shape[1])])[:, None]
    # A feature that is always 0 has no slope.
    return np.divide(std[furthest], reach, out=np.zeros_like(std[furthest]), where=reach > 0).T
