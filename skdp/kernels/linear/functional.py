"""The functional mechanism: a quadratic objective with noise in its coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from ..._types import FloatArray
from ..additive import UNIT, Identity, Logit, Records, released_total
from .design import Design
from .model import LinearModel
from .moments import Moments, noisy_moments

__all__ = ["fit_functional"]


def fit_functional(
    records: Records,
    design: Design,
    link: Logit | Identity,
    parts: Mapping[str, Fraction],
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
    parts : mapping of str to Fraction
        "total" and "model".
    random_state : NoiseSource
    alpha : float, default=0.0
        Weight of the squared coefficients in the objective.
    """
    # Privacy. Released: the number of records (sensitivity 1), and then the moments of
    # `noisy_moments`, composed sequentially. The objective is made of them and of nothing else.
    total, noise = released_total(records, parts["total"], random_state)
    if isinstance(link, Identity):
        outcomes = np.stack([np.full_like(link.outcomes, UNIT), link.outcomes], axis=1)
        reach, ones = 2, np.array([1.0, 0.0])
    else:
        outcomes = np.eye(link.n_classes, dtype=np.int64) * UNIT
        reach, ones = 1, np.ones(link.n_classes)
    moments = noisy_moments(records, design, outcomes, reach, ones, parts["model"], random_state)
    if isinstance(link, Identity):
        beta, std = _minimum(moments, moments.cross[:, 1:], alpha)
    else:
        k = link.n_classes
        beta, std = _minimum(moments, moments.cross, alpha)
        beta[0] -= 1.0 / k
        beta, std = k * beta, k * std
        if link.n_outputs == 1:
            beta, std = beta[:, 1:] - beta[:, :1], np.hypot(std[:, 1:], std[:, :1])
    return LinearModel(beta[0], beta[1:].T, std[1:].T, total, noise)


def _minimum(moments: Moments, cross: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Coefficients of least squares by noisy moments, and their errors, (1 + n_features, n)."""
    values, vectors = np.linalg.eigh(moments.products)
    # Eigenvalues of noise alone reach about this; directions below it say nothing, and those above
    # it are shrunk.
    noise = 2.0 * moments.std * np.sqrt(len(values))
    kept = np.maximum(values, 0.0)
    gain = kept / (kept * (kept + alpha) + noise**2 + 1e-300)
    inverse = (vectors * gain) @ vectors.T
    beta = inverse @ cross
    # To first order, noise in the products counts as much as the coefficients are large.
    each = moments.std * np.sqrt(1.0 + (beta**2).sum(axis=0))
    std = np.sqrt((inverse**2).sum(axis=1))[:, None] * each
    return beta, std
