"""Coefficients through the additive model of the same columns."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from ..additive import Identity, Logit, Records, fit_additive
from .design import Design
from .model import LinearModel

__all__ = ["fit_smooth"]


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
