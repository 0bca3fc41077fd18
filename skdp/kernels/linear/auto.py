"""The most accurate way to a linear model that is known for the signal at hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..additive import Identity, Logit, Records
from .design import Design
from .functional import fit_functional
from .model import LinearModel
from .moments import most_products
from .smooth import fit_smooth

__all__ = ["fit_auto"]

# Least ratio of signal to noise at which second moments are better, see `_clear`. Chosen on
# generated tables of 3 to 30 numbers, and of numbers and categories, of 5,000 and 50,000 rows.
_CLEAR = 15.0
# Features whose table of all products is too large for memory and time.
_MOST = 1024


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
    # Privacy. Which of the two is fitted follows from the released number and public facts.
    clear = isinstance(link, Identity) and _clear(design, float(epsilon) * total)
    solve = fit_functional if clear else fit_smooth
    return solve(records, design, link, epsilon, total, random_state, alpha)


def _clear(design: Design, signal: float) -> bool:
    """Whether second moments, whose noise grows with the pairs of columns, stand out from it."""
    m, p = len(design.columns), design.n_features
    if p > _MOST:
        return False
    # Records of a feature of average size, against the largest eigenvalue of noise alone.
    return signal * m / p > _CLEAR * most_products(design, 2) * p**0.5
