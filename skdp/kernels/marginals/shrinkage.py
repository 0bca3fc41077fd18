"""Noisy counts in each class, drawn towards what they would be if the classes did not differ.

Learners take every difference between classes for a fact. What noise alone could make is removed by
empirical Bayes: differences of halves of an attribute, of their halves, and so on, then those of
single bins, which stand out where a bin differs from its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..._types import FloatArray
from .posterior import posterior_mean

__all__ = ["shrunk"]

# Least share of the expected count that is left.
_LEAST = 0.02
# Halves of halves differ less than halves, relative to their counts: by this factor at each step.
_FINER = 0.7
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
    scale = np.maximum(np.sqrt(expected * expected.sum(axis=0)), _TINY)
    near = np.zeros_like(apart)
    if ordered:
        near = np.maximum(_by_halves(apart, expected, variance), (_LEAST - 1) * expected)
    found = expected + near + posterior_mean(scale + apart - near, variance, scale) - scale
    return np.maximum(found, _LEAST * expected)


def _by_halves(apart: FloatArray, expected: FloatArray, variance: float) -> FloatArray:
    """Differences from the expected counts, with what noise explains removed at each scale."""
    counts, told = _sums(expected), _sums(apart)
    mass = counts.sum(axis=0)
    cuts = list(_cuts(mass, 0, apart.shape[1]))
    if not cuts:
        return np.zeros_like(apart)
    low, middle, high, depth = np.array(cuts).T
    whole = mass[high] - mass[low]
    share = np.full(len(cuts), 0.5)
    np.divide(mass[middle] - mass[low], whole, out=share, where=whole > 0)
    moved = (told[:, middle] - told[:, low]) - share * (told[:, high] - told[:, low])
    inside = counts[:, high] - counts[:, low]
    scale = np.maximum(
        np.sqrt(inside * inside.sum(axis=0)) * share * (1 - share) * _FINER**depth, _TINY
    )
    # In units of their noise all have the same variance. Empirical Bayes sees all scales together:
    # a few differences would not tell how large differences are.
    unit = np.sqrt(variance * ((1 - share) ** 2 * (middle - low) + share**2 * (high - middle)))
    kept = (posterior_mean((scale + moved) / unit, 1.0, scale / unit) - scale / unit) * unit
    found = np.zeros_like(apart)
    for (first, cut, last, _), each in zip(cuts, kept.T, strict=True):
        found[:, first:cut] += np.outer(each, _portions(expected[:, first:cut]))
        found[:, cut:last] -= np.outer(each, _portions(expected[:, cut:last]))
    return found


def _cuts(
    mass: FloatArray, low: int, high: int, depth: int = 0
) -> Iterator[tuple[int, int, int, int]]:
    """Ranges of bins, each with the bin that divides its mass: all, its halves, and so on."""
    if high - low < 2:
        return
    middle = int(np.searchsorted(mass, (mass[low] + mass[high]) / 2))
    middle = min(max(middle, low + 1), high - 1)
    yield low, middle, high, depth
    yield from _cuts(mass, low, middle, depth + 1)
    yield from _cuts(mass, middle, high, depth + 1)


def _sums(table: FloatArray) -> FloatArray:
    return np.concatenate([np.zeros((len(table), 1)), np.cumsum(table, axis=1)], axis=1)


def _portions(expected: FloatArray) -> FloatArray:
    inside = expected.sum(axis=0)
    return (inside + _TINY) / (inside + _TINY).sum()
