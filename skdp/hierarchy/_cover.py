"""Answers without consistency: the fewest measured nodes that make up a query."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import running_sums
from .._types import BoolArray, FloatArray
from ._tree import Tree

__all__ = ["cover_weights"]


def cover_weights(tree: Tree, measured: BoolArray, weights: ArrayLike) -> FloatArray:
    """Weights of the measured nodes in an answer without consistency.

    A node is used where all its leaves have the same weight (or nothing below it is measured)
    and no node above it is used already: for a range, the fewest nodes that make it up.

    Parameters
    ----------
    tree : Tree
    measured : ndarray of bool, shape (n_nodes,)
    weights : array-like of float, shape (n_leaves,)

    Returns
    -------
    ndarray of float64, shape (n_nodes,)
    """
    q = np.asarray(weights, dtype=np.float64)
    edges = tree.lower[tree.leaves]
    first = np.searchsorted(edges, tree.lower)
    behind = np.searchsorted(edges, tree.upper)
    changes = running_sums((q[1:] != q[:-1]).astype(np.int64))
    constant = changes[first] == changes[behind - 1]
    below = tree.sum_up(measured.astype(np.float64)) - measured
    usable = measured & (constant | (below == 0))
    taken = usable & (tree.spread_down(usable.astype(np.float64)) == 1)
    sums = running_sums(q * tree.leaf_widths)
    mean = (sums[behind] - sums[first]) / (tree.upper - tree.lower)
    return np.where(taken, np.where(constant, q[first], mean), 0.0)
