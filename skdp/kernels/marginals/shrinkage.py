"""Noisy counts in each class, drawn towards what they would be if the classes did not differ.

Learners take every difference between classes for a fact. What noise alone could make is removed:
differences of halves of an attribute, of their halves, and so on, each by empirical Bayes.
"""

from __future__ import annotations

import numpy as np

from ..._types import FloatArray
from .posterior import posterior_mean

__all__ = ["shrunk"]

# Least share of the expected count that is left.
_LEAST = 0.02
_TINY = 1e-9


def shrunk(noisy: FloatArray, variance: float, expected: FloatArray, ordered: bool) -> FloatArray:
    """Counts of each class, without the differences that noise could explain.

    Parameters
    ----------
    noisy : ndarray of float64, shape (n_classes, n_bins)
        Counts, unbiased.
    variance : float
        Of the noise of a count.
    expected : ndarray of float64, shape (n_classes, n_bins)
        Counts if the classes do not differ.
    ordered : bool
        Whether neighbouring bins are similar.

    Returns
    -------
    ndarray of float64
        Not negative.
    """
    # What is told of a bin or of a class as a whole is known already. A rare class can differ from
    # what is expected by more than this: up to all records of a bin.
    apart = noisy - expected
    apart = apart - apart.mean(axis=0)
    apart = apart - expected * (apart.sum(axis=1) / expected.sum(axis=1))[:, None]
    if ordered:
        found = expected + _by_halves(apart, expected, variance)
    else:
        scale = np.maximum(np.sqrt(expected * expected.sum(axis=0)), _TINY)
        found = expected + posterior_mean(scale + apart, variance, scale) - scale
    return np.maximum(found, _LEAST * expected)


def _by_halves(apart: FloatArray, expected: FloatArray, variance: float) -> FloatArray:
    """Differences from the expected counts, with what noise explains removed at each scale."""
    found = np.zeros_like(apart)
    counts, told = _sums(expected), _sums(apart)
    mass = counts.sum(axis=0)
    parts = [(0, apart.shape[1])]
    while parts:
        cuts = [_halved(mass, low, high) for low, high in parts if high - low > 1]
        if not cuts:
            break
        low, middle, high = np.array(cuts).T
        whole = mass[high] - mass[low]
        share = np.divide(
            mass[middle] - mass[low], whole, out=np.full(len(cuts), 0.5), where=whole > 0
        )
        moved = (told[:, middle] - told[:, low]) - share * (told[:, high] - told[:, low])
        inside = counts[:, high] - counts[:, low]
        scale = np.maximum(np.sqrt(inside * inside.sum(axis=0)) * share * (1 - share), _TINY)
        noise = variance * ((1 - share) ** 2 * (middle - low) + share**2 * (high - middle))
        # Counts in units of their noise, so that all have the same variance.
        unit = np.sqrt(noise)
        kept = (posterior_mean((scale + moved) / unit, 1.0, scale / unit) - scale / unit) * unit
        for (a, b, c), each in zip(cuts, kept.T, strict=True):
            found[:, a:b] += np.outer(each, _portions(expected[:, a:b]))
            found[:, b:c] -= np.outer(each, _portions(expected[:, b:c]))
        parts = [part for a, b, c in cuts for part in ((a, b), (b, c))]
    return found


def _sums(table: FloatArray) -> FloatArray:
    return np.concatenate([np.zeros((len(table), 1)), np.cumsum(table, axis=1)], axis=1)


def _halved(mass: FloatArray, low: int, high: int) -> tuple[int, int, int]:
    """A range of bins with the bin that divides its mass."""
    middle = int(np.searchsorted(mass, (mass[low] + mass[high]) / 2))
    return low, min(max(middle, low + 1), high - 1), high


def _portions(expected: FloatArray) -> FloatArray:
    inside = expected.sum(axis=0)
    return (inside + _TINY) / (inside + _TINY).sum()
