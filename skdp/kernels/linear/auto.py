"""The most accurate way to a linear model that is known for the signal at hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from ..additive import Identity, Logit, Records, located, location_share
from .design import Design
from .functional import fit_functional
from .model import LinearModel
from .moments import most_products
from .smooth import fit_smooth

__all__ = ["fit_auto"]

# Least ratio of signal to noise at which second moments are better, see `_clear`. Chosen on
# generated tables of 3 to 30 numbers, and of numbers and categories, of 5,000 and 50,000 rows.
_CLEAR = 15.0
# Bins of a number in histograms: the noise of a slope grows with their number. Where there are many
# records times epsilon, each column has more bins, one for so many, up to a limit.
_BINS, _SIGNAL, _MOST_BINS = 16, 1_000.0, 256
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
    if p > _MOST:
        return False
    # Records of a feature of average size, against the largest eigenvalue of noise alone.
    return signal * m / p > _CLEAR * most_products(design, 2) * p**0.5
