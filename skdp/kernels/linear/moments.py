"""Noisy sums of products of features and outcomes, in integers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ..._types import FloatArray, IntArray
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from ..additive import UNIT, Records
from .design import Design

__all__ = [
    "Components",
    "Moments",
    "check_components",
    "check_products",
    "most_products",
    "noisy_moments",
    "principal_components",
]


class Moments(NamedTuple):
    """Sums over the records, with noise; a feature 1 comes first.

    Attributes
    ----------
    products : ndarray of shape (1 + n_features, 1 + n_features)
        Of features with features: symmetric, perhaps with negative eigenvalues.
    cross : ndarray of shape (1 + n_features, n_outcomes)
        Of features with outcomes.
    std : float
        Standard deviation of the noise of each sum.
    """

    products: FloatArray
    cross: FloatArray
    std: float


def noisy_moments(
    records: Records,
    design: Design,
    outcomes: IntArray,
    reach: int,
    ones: FloatArray,
    epsilon: Fraction,
    random_state: Any,
) -> Moments:
    """Release the second moments of features and outcomes.

    Parameters
    ----------
    records : Records
    design : Design
    outcomes : ndarray of shape (n_labels, n_outcomes)
        Outcomes of each label, in units.
    reach : int
        Largest sum of the absolute outcomes of a record; outcomes are in units.
    ones : ndarray of shape (n_outcomes,)
        Weights with which the outcomes of any record sum to 1: sums of features follow from sums
        of products with outcomes.
    epsilon : Fraction
    random_state : NoiseSource
    """
    # Privacy. Released: sums of products of a feature and an outcome, and of features of two
    # columns, integers. The features of a column are at most 1 together, so one record adds at most
    # `reach` for each column and for the constant, 1 for each pair of columns, and 1 for the square
    # of each number; squares of indicators follow from their sums. All noise has this sensitivity.
    cross, products = _sums(records, design, outcomes)
    asked = _asked(design)
    most = most_products(design, reach) * UNIT**2
    exact = np.concatenate([cross.ravel(), products[asked]])
    noisy = discrete_laplace(exact, epsilon, most, random_state=random_state) / UNIT**2
    crossed, rest = noisy[: cross.size].reshape(cross.shape), noisy[cross.size :]
    firsts = crossed @ ones
    full = np.zeros((len(firsts), len(firsts)))
    full[1:, 1:][asked] = rest
    full += np.triu(full, 1).T
    full[0], full[:, 0] = firsts, firsts
    free = np.flatnonzero(_free(design)) + 1
    full[free, free] = firsts[free]
    return Moments(
        full, crossed, float(np.sqrt(discrete_laplace_variance(epsilon, most))) / UNIT**2
    )


def check_products(design: Design, reach: int, epsilon: Fraction) -> None:
    """Refuse an epsilon whose noise does not fit into the integers of `noisy_moments`.

    Raises
    ------
    ValueError
        If it is too small for so many columns.
    """
    discrete_laplace_variance(epsilon, most_products(design, reach) * UNIT**2)


def most_products(design: Design, reach: int) -> int:
    """Largest sum of the absolute products that one record adds, see `noisy_moments`."""
    m = len(design.columns)
    numbers = sum(not column.free for column in design.columns)
    return (1 + m) * reach + m * (m - 1) // 2 + numbers


def _sums(records: Records, design: Design, outcomes: IntArray) -> tuple[IntArray, IntArray]:
    """Exact sums of products with outcomes, and of features."""
    p = design.n_features
    cross, products = np.zeros((1 + p, outcomes.shape[1])), np.zeros((p, p))
    for block in records.blocks():
        features = np.hstack([np.full((len(block.counts), 1), UNIT), design.rows(block.groups)])
        # Products of matrices of integers are exact in floating point below 2**53, in any order.
        weighted = (features * block.counts[:, None]).T
        cross += weighted @ outcomes[block.labels].astype(np.float64)
        products += weighted[1:] @ features[:, 1:]
    return cross.astype(np.int64), products.astype(np.int64)


def _asked(design: Design) -> tuple[IntArray, IntArray]:
    """Products that are measured: above the diagonal, and squares of numbers."""
    p, free = design.n_features, _free(design)
    wanted = np.triu(np.ones((p, p), dtype=bool), 1)
    for column, block in zip(design.columns, design.blocks, strict=True):
        if column.free:
            # Indicators of one column exclude each other.
            wanted[block, block] = False
    wanted[~free, ~free] = True
    first, second = np.nonzero(wanted)
    return first, second


def _free(design: Design) -> Any:
    """Which features are indicators of the groups of a column."""
    return np.repeat(
        [column.free for column in design.columns],
        [column.values.shape[1] for column in design.columns],
    ).astype(bool)


# --- principal components of columns of numbers, from noisy second moments


class Components(NamedTuple):
    """Means and covariances of features, as released, and their axes.

    Attributes
    ----------
    total : float
    mean : ndarray of shape (n_features,)
    covariance : ndarray of shape (n_features, n_features)
        Without negative eigenvalues.
    total_std : float
    """

    total: float
    mean: FloatArray
    covariance: FloatArray
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
    return Components(float(moments.products[0, 0]), mean, positive, moments.std)
