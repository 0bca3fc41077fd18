"""Principal components of columns of numbers, from noisy second moments."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ..._types import FloatArray
from ..additive import UNIT, Records
from .design import Design
from .moments import check_products, noisy_moments

__all__ = ["Components", "check_components", "principal_components"]


class Components(NamedTuple):
    """Means and covariances of features, as released, and their axes.

    Attributes
    ----------
    total : float
    mean : ndarray of shape (n_features,)
    covariance : ndarray of shape (n_features, n_features)
        Without negative eigenvalues.
    std : float
        Standard deviation of the noise in an entry of the covariance.
    total_std : float
    """

    total: float
    mean: FloatArray
    covariance: FloatArray
    std: float
    total_std: float


def check_components(design: Design, epsilon: Fraction) -> None:
    """Refuse an epsilon whose noise does not fit into the integers of `principal_components`.

    Raises
    ------
    ValueError
        If it is too small for so many columns.
    """
    check_products(design, 1, epsilon)


def principal_components(
    records: Records, design: Design, epsilon: Fraction, random_state: Any
) -> Components:
    """Release means and covariances of numbers.

    Parameters
    ----------
    records : Records
        With the label 0 everywhere.
    design : Design
    epsilon : Fraction
    random_state : NoiseSource
    """
    # Privacy. Released: `noisy_moments` with the constant outcome 1, in one call. The rest is
    # computed from it.
    moments = noisy_moments(
        records, design, np.array([[UNIT]]), 1, np.ones(1), epsilon, random_state
    )
    total = max(float(moments.products[0, 0]), 1.0)
    mean = np.clip(moments.products[0, 1:] / total, -1.0, 1.0)
    covariance = moments.products[1:, 1:] / total - np.outer(mean, mean)
    values, vectors = np.linalg.eigh(covariance)
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    std = moments.std / total
    return Components(float(moments.products[0, 0]), mean, positive, std, moments.std)
