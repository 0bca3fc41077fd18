"""Quantiles of errors of several kinds of questions, each with noise: what they tell together.

One model makes the errors of all kinds, so their quantiles are alike: where one is lost in its
noise, the others say how large it is. Post-processing of released numbers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from ..._types import FloatArray

__all__ = ["NoisyQuantile", "likely_reach"]

# Share of the questions outside of intervals, of what the level allows: the rest is for tables
# whose kinds are less alike than expected.
_SAFETY = 0.7
# Errors of a range of half of the records are at most this share of all: what two dependent columns
# can differ from independent ones.
_MOST = 0.25
# No quantile is below this share of what the noise of single attributes makes.
_LEAST = 0.75
# Points at which common scales, and the distance of a kind from them in standard deviations, are
# tried.
_SCALES, _KINDS, _WIDEST = 41, 21, 2.5


class NoisyQuantile(NamedTuple):
    """A published quantile of the errors of a kind of questions.

    Attributes
    ----------
    noisy : int
    scale : float
        Of its Laplace noise.
    unit : float
        Errors of a question with the largest spread, in records, are so many times the quantile.
    least : float
        The quantile if all errors came from the noise of single attributes.
    usual : float
        Errors of this kind in multiples of those of the first, as on other tables.
    spread : float
        How far this differs between tables: a standard deviation of logarithms.
    """

    noisy: int
    scale: float
    unit: float
    least: float
    usual: float
    spread: float


def likely_reach(
    kinds: list[NoisyQuantile], total: float, level: float
) -> list[tuple[float, float]]:
    """Half widths that cover at a level on average, over what the quantiles may be.

    A common scale of all kinds has a prior that is even in its logarithm, each kind a log-normal
    distance from it. Of errors a share of ``(1 - level) ** (r / quantile)`` is beyond r.

    Parameters
    ----------
    kinds : list of NoisyQuantile
    total : float
        The released number of records.
    level : float
        Of the quantiles, and of the half widths.

    Returns
    -------
    list of (float, float)
        The half width and the expected quantile of each kind.
    """
    least = min(each.unit * each.least for each in kinds)
    low = max(_LEAST * least / 1.5, 0.5)
    scales = np.geomspace(low, max(_MOST * total, 4.0 * low), _SCALES)
    z = np.linspace(-_WIDEST, _WIDEST, _KINDS)
    quantiles, logs = [], []
    for each in kinds:
        q = np.outer(scales, each.usual * np.exp(each.spread * z)) / each.unit
        prior = np.where(q < _LEAST * each.least, -50.0, -(z**2) / 2)
        quantiles.append(q)
        logs.append(prior - np.abs(each.noisy - q) / each.scale)
    told = [logsumexp(each, axis=1, keepdims=True) for each in logs]
    whole = sum(told)
    found = []
    for q, log, own in zip(quantiles, logs, told, strict=True):
        joint = log + whole - own
        weights = np.exp(joint - logsumexp(joint))
        found.append((_reach(q, weights, level), float((weights * q).sum())))
    return found


def _reach(quantiles: FloatArray, weights: FloatArray, level: float) -> float:
    """The half width beyond which few enough errors are expected."""
    low, high = 0.1 * float(quantiles.min()), 4.0 * float(quantiles.max())
    while high > 1.001 * low:
        middle = math.sqrt(low * high)
        beyond = float((weights * (1.0 - level) ** (middle / quantiles)).sum())
        low, high = (middle, high) if beyond > _SAFETY * (1.0 - level) else (low, middle)
    return high
