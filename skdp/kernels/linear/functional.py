"""The functional mechanism: a quadratic objective with noise in its coefficients."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from ..._types import FloatArray
from ..additive import OF_MEAN, UNIT, Identity, Logit, Records, fixed
from .design import Design, LinearModel
from .moments import Moments, check_products, noisy_moments

__all__ = ["check_moments", "fit_functional"]


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
    kept = OF_MEAN**2 / (OF_MEAN**2 + (moments.std / total) ** 2)
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
