"""Quantiles of integers from noisy counts of ranges: for many quantiles on a short line.

The counts of a range tree, made consistent and non-negative, give all quantiles at once; their
error does not grow with the number of quantiles, as that of `quantiles` does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from .. import hierarchy
from .._random import NoiseSource
from .._types import FloatArray, IntArray
from .._validation import dyadic_floor
from ..hierarchy import Blue, Tree

__all__ = ["MOST_LEAVES", "TreePlan", "prefix_tree"]

# Longest line that is counted integer by integer.
MOST_LEAVES = 2**16
# Mean error in standard deviations of the unbiased estimates. A normal one has 0.8; it is less
# where counts near 0 are recognised and values have several ranks. Measured on the eight generated
# columns of benchmarks/quantiles.py.
_MEAN_ERROR = 0.4
# Ranges from the first integer to this many others are planned for.
_SAMPLE = 64
_GOLDEN = (math.sqrt(5) - 1) / 2


class TreePlan:
    """Noisy counts of a tree, planned for ranges that begin with the first integer.

    Parameters
    ----------
    quantiles : sequence of Fraction
    epsilon : Fraction
        Budget of one record.
    size : int
        Number of integers on the line, at least 2 and at most `MOST_LEAVES`.
    """

    method = "tree"

    def __init__(self, quantiles: Sequence[Fraction], epsilon: Fraction, size: int) -> None:
        self._shares = np.array([float(q) for q in quantiles])
        self._epsilon = epsilon
        self._tree, self._millionths = prefix_tree(size)
        self._blue = Blue(self._tree, hierarchy.measured_variances(self._millionths, epsilon))

    def expected_errors(self) -> FloatArray:
        """Predicted errors in records, the same for all quantiles."""
        variances = self._prefix_variances(np.array(_lengths(self._tree.n_bins)))
        return np.full(len(self._shares), _MEAN_ERROR * float(np.sqrt(variances).mean()))

    def release(
        self, positions: IntArray, size: int, level: float, source: NoiseSource
    ) -> tuple[IntArray, FloatArray]:
        """Quantiles of integers below ``size``, and errors that hold with probability ``level``."""
        # Privacy. Released: the noisy counts of the tree, by hierarchy.measure at epsilon. The rest
        # is computed from them.
        counts = np.bincount(positions, minlength=size)
        noisy = hierarchy.measure(
            self._tree, counts, self._millionths, self._epsilon, random_state=source
        ).values
        leaves = self._tree.leaves
        estimates = hierarchy.non_negative(self._blue, noisy)[leaves]
        below = np.cumsum(estimates if estimates.sum() > 0 else np.ones(size))
        found = np.searchsorted(below, self._shares * below[-1]).clip(0, size - 1)
        ranks = np.concatenate([[0.0], np.cumsum(self._blue.estimate(noisy)[leaves])])
        return found.astype(np.int64), self._errors(found, ranks, level)

    def _errors(self, found: IntArray, ranks: FloatArray, level: float) -> FloatArray:
        """Bounds of the rank errors of integers, from the unbiased estimates of all ranks."""
        # All ranks are within `reach` standard deviations of their estimates, with probability
        # ``level``: a weighted sum of Laplace variables has at most the moment generating function
        # of one with its variance, and discrete noise at most that of Laplace noise of its scale.
        size = self._tree.n_bins
        reach = _reach((1 - level) / (size + 1)) * self._widening()
        ends = np.stack([found, found + 1, np.full_like(found, size)])
        under, until, total = reach * np.sqrt(self._prefix_variances(ends.ravel())).reshape(3, -1)
        wanted = self._shares * ranks[-1]
        over = np.maximum(ranks[found] - wanted + under, wanted - ranks[found + 1] + until)
        errors: FloatArray = np.maximum(over, 0.0) + self._shares * total
        return errors

    def _prefix_variances(self, ends: IntArray) -> FloatArray:
        """Variances of the estimated numbers of records below ``ends``."""
        some = np.flatnonzero(ends)
        variances = np.zeros(len(ends))
        variances[some] = self._blue.range_variances(np.zeros(len(some), np.int64), ends[some])
        return variances

    def _widening(self) -> float:
        """Largest ratio of the standard deviation of Laplace noise to that of the discrete one."""
        parts = np.unique(self._millionths[self._millionths > 0])
        discrete = hierarchy.measured_variances(parts, self._epsilon)
        each = [dyadic_floor(self._epsilon * Fraction(part, 10**6)) for part in parts.tolist()]
        laplace = 2 / np.array(each, dtype=np.float64) ** 2
        return float(np.sqrt(laplace / discrete).max())


@lru_cache(maxsize=16)
def prefix_tree(size: int) -> tuple[Tree, IntArray]:
    """A tree for ranges that begin at the first integer, and its shares in millionths."""
    lengths = _lengths(size)
    weights = (1 / len(lengths),) * len(lengths)
    workload = hierarchy.Workload(lengths, weights, anchored=True)
    tree = hierarchy.level_tree(size, hierarchy.plan_levels(size, workload).counts)
    return tree, hierarchy.exact_shares(tree, hierarchy.optimal_shares(tree, workload))


def _lengths(size: int) -> tuple[int, ...]:
    """Lengths from 1 to size - 1, which no level of a tree divides alike."""
    if size - 1 <= _SAMPLE:
        return tuple(range(1, size))
    places = np.arange(1, _SAMPLE + 1) * _GOLDEN % 1
    return tuple(np.unique(1 + (places * (size - 1)).astype(np.int64)).tolist())


def _reach(alpha: float) -> float:
    """Standard deviations that a Laplace variable exceeds with probability alpha (Chernoff)."""
    rates = math.sqrt(2) * np.linspace(0.001, 0.999, 999)
    return float(((math.log(2 / alpha) - np.log1p(-(rates**2) / 2)) / rates).min())
