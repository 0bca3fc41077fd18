"""Closed-form variances of ranges of 4,096 bins, by length, for several range trees.

Plain bins (Identity), Hay et al.'s perfect tree of branching 2 (Boost), the tree of the GBLUE paper
with branching 12, and `RangeTreeHistogram`. Unbiased estimates have the same error on any data.
Measured by ``python -m benchmarks.numbers --measure one_column``.
"""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp import Numeric, RangeTreeHistogram, hierarchy
from skdp.exceptions import InsecureSeedWarning
from skdp.hierarchy import Blue, Tree

__all__ = ["LENGTHS", "noise", "peers", "range_variances"]

N_BINS = 4096
LENGTHS = tuple(2**i for i in range(12))

Floats = NDArray[np.float64]


def range_variances(blue: Blue) -> Floats:
    """Mean variance of all ranges of each of `LENGTHS`."""
    means = []
    for length in LENGTHS:
        start = np.arange(N_BINS - length + 1)
        means.append(blue.range_variances(start, start + length).mean())
    return np.array(means)


def uniform(tree: Tree, epsilon: float) -> Blue:
    """Every level measured with the same share of epsilon, with the library's noise."""
    shares = hierarchy.exact_shares(tree, np.full(tree.n_nodes, 1.0 / tree.n_levels))
    return Blue(tree, hierarchy.measured_variances(shares, Fraction(str(epsilon))))


def peers(epsilon: float) -> dict[str, Floats]:
    """Mean variances of the three methods to compare with."""
    bins = hierarchy.measured_variances(np.array([10**6]), Fraction(str(epsilon)))[0]
    trees = {
        "Boost-2": hierarchy.perfect_tree(2, 12),
        "GBLUE-12": hierarchy.balanced_tree(N_BINS, 12),
    }
    return {
        "Identity": bins * np.array(LENGTHS, dtype=np.float64),
        **{name: range_variances(uniform(tree, epsilon)) for name, tree in trees.items()},
    }


def noise(epsilon: float, seed: int, **parameters: Any) -> RangeTreeHistogram:
    """A release of an empty table: noise alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureSeedWarning)
        # The table is empty, so that a total near zero is expected.
        warnings.filterwarnings("ignore", r"RangeTreeHistogram released a total of ", UserWarning)
        return RangeTreeHistogram(
            epsilon=epsilon, domain=Numeric(0, N_BINS, N_BINS), random_state=seed, **parameters
        ).fit(np.zeros(0))
