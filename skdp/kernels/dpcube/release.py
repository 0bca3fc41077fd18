"""The release of either kd-tree of DPCube."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from ..._types import FloatArray, IntArray

__all__ = ["KDTreeRelease", "MOST_CELLS"]

# Largest histogram of all cells: an array of 32 MB, and boxes of as many rows.
MOST_CELLS = 2**22


class KDTreeRelease(NamedTuple):
    """The release of a kd-tree.

    Attributes
    ----------
    lower, upper : ndarray of int64, shape (m, d)
        Disjoint boxes of codes that cover the domain; ``upper`` is exclusive.
    counts : ndarray of float64, shape (m,)
        Estimated counts, fused from all measurements; may be negative.
    measured : ndarray of int64, shape (m,)
        The last counts of the boxes alone. Their noise is independent of the boxes. That of the
        other measurements is not, because the boxes were made from them.
    epsilon : list of Fraction, length m
        Epsilon of the discrete Laplace noise in ``measured``.
    """

    lower: IntArray
    upper: IntArray
    counts: FloatArray
    measured: IntArray
    epsilon: list[Fraction]
