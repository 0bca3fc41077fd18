"""The most accurate way to a linear model for the signal at hand, and the functional mechanism."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from ..._types import FloatArray
from ..additive import TUNING as ADDITIVE
from ..additive import UNIT, Identity, Logit, Records, fit_additive, fixed, known_share, located
from .design import Design, LinearModel
from .moments import Moments, check_products, most_products, noisy_moments
from .tuning import TUNING

__all__ = ["check_moments", "fit_auto", "fit_functional", "fit_smooth"]

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
        part = known_share(epsilon, link, total)
        link = located(records, link, part, total, random_state)
        return fit_functional(records, design, link, epsilon - part, total, random_state, alpha)
    n_bins = max(int(signal / (TUNING.signal * len(design.columns))), TUNING.bins)
    records, design = design.merged(records, n_bins)
    return fit_smooth(records, design, link, epsilon, total, random_state, alpha)


def _clear(design: Design, signal: float) -> bool:
    """Whether second moments, whose noise grows with the pairs of columns, stand out from it."""
    m, p = len(design.columns), design.n_features
    if p > _FEATURES_ONCE:
        return False
    # Records of a feature of average size, against the largest eigenvalue of noise alone.
    return signal * m / p > TUNING.clear * most_products(design, 2) * p**0.5


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


# --- the functional mechanism: a quadratic objective with noise in its coefficients


def check_moments(design: Design, link: Logit | Identity, epsilon: Fraction) -> None:
    """Refuse an epsilon whose noise does not fit into the integers of `fit_functional`.

    Raises
    ------
    ValueError
        If it is too small for so many columns.
    """
    check_products(design, _reach(link), epsilon)


def _reach(link: Logit | Identity) -> int:
    """Largest sum of the absolute outcomes of a record: 1 and the number, or its class."""
    return 2 if isinstance(link, Identity) else 1


def fit_functional(
    records: Records,
    design: Design,
    link: Logit | Identity,
    epsilon: Fraction,
    total: float,
    random_state: Any,
    alpha: float = 0.0,
) -> LinearModel:
    """Minimise a quadratic objective that was released: least squares, or a Taylor polynomial.

    The logistic loss becomes its Taylor polynomial of degree 2 at scores of 0. Its minimum is that
    of least squares on indicators of the classes, times the number of classes.

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
        Weight of the squared coefficients in the objective.
    """
    # Privacy. Released: the moments of `noisy_moments`. The objective is made of them alone.
    if isinstance(link, Identity):
        # About the centre, as shares of the largest residual.
        every = np.arange(len(link.outcomes))
        at = np.broadcast_to(fixed(np.array([link.centre])), (len(every), 1))
        apart = np.trunc(link.residuals(at, every) * (UNIT / link.reach)).astype(np.int64)
        outcomes = np.hstack([np.full_like(apart, UNIT), apart])
        ones = np.array([1.0, 0.0])
    else:
        outcomes = np.eye(link.n_classes, dtype=np.int64) * UNIT
        ones = np.ones(link.n_classes)
    moments = noisy_moments(records, design, outcomes, _reach(link), ones, epsilon, random_state)
    if isinstance(link, Identity):
        scale = link.reach / UNIT
        found = _minimum(moments, moments.cross[:, 1:], total, alpha)
        intercept, coef, std = (scale * each for each in found)
        intercept = intercept + fixed(np.array([link.centre])) / UNIT
    else:
        k = link.n_classes
        intercept, coef, std = _minimum(moments, moments.cross, total, alpha)
        intercept, coef, std = k * intercept - 1.0, k * coef, k * std
        if link.n_outputs == 1:
            intercept, coef = intercept[1:] - intercept[:1], coef[1:] - coef[:1]
            std = np.hypot(std[1:], std[:1])
    return LinearModel(intercept, coef, std)


def _minimum(
    moments: Moments, cross: FloatArray, total: float, alpha: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Intercepts, coefficients and their errors of least squares by noisy moments."""
    total = max(total, 1.0)
    # Means that are lost in noise are taken to be 0.
    kept = ADDITIVE.mean**2 / (ADDITIVE.mean**2 + (moments.std / total) ** 2)
    mean = np.clip(kept * moments.products[0, 1:] / total, -1.0, 1.0)
    outcome = np.clip(kept * cross[0] / total, -1.0, 1.0)
    products = moments.products[1:, 1:] - total * np.outer(mean, mean)
    values, vectors = np.linalg.eigh(products)
    # Eigenvalues of noise alone reach about this; directions below it say nothing, and those above
    # it are shrunk.
    noise = 2.0 * moments.std * np.sqrt(len(values))
    kept = np.maximum(values, 0.0)
    gain = kept / (kept * (kept + alpha) + noise**2 + 1e-300)
    inverse = (vectors * gain) @ vectors.T
    coef = (inverse @ (cross[1:] - total * np.outer(mean, outcome))).T
    # To first order, noise in the products counts as much as the coefficients are large.
    each = moments.std * np.sqrt(1.0 + (coef**2).sum(axis=1))
    std = each[:, None] * np.sqrt((inverse**2).sum(axis=1))
    return outcome - coef @ mean, coef, std
