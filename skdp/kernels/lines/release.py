"""What a data-dependent histogram of one column releases."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ... import hierarchy
from ..._types import IntArray
from ...hierarchy import Tree, Workload

__all__ = ["SHARE_UNIT", "LineRelease", "bucket_tree", "with_missing"]

# Shares of epsilon are integers, in millionths.
SHARE_UNIT = 10**6


class LineRelease(NamedTuple):
    """Released buckets and counts; public numbers from here on.

    Attributes
    ----------
    tree : Tree
        Over positions; its leaves are the buckets.
    order : ndarray of int64, shape (n_bins,)
        Bin at each position.
    shares : ndarray of int64, shape (n_nodes,)
        Share of epsilon of each node, in millionths; 0 where nothing was measured.
    values : ndarray of int64, shape (n_nodes,)
        Noisy counts; 0 where nothing was measured.
    """

    tree: Tree
    order: IntArray
    shares: IntArray
    values: IntArray


def bucket_tree(edges: IntArray, workload: Workload, share: Fraction) -> tuple[Tree, IntArray]:
    """Tree over released buckets, as a range tree over as many bins, and its shares.

    Parameters
    ----------
    edges : ndarray of int64, shape (n_buckets + 1,)
    workload : Workload
        Ranges to plan for, in buckets.
    share : Fraction
        Share of epsilon that each path gets.
    """
    n = len(edges) - 1
    plan = hierarchy.plan_levels(n, workload)
    tree = hierarchy.level_tree(n, plan.counts)
    whole = hierarchy.exact_shares(tree, hierarchy.optimal_shares(tree, workload))
    over_bins = Tree(tree.parent, edges[tree.lower], edges[tree.upper], tree.order)
    return over_bins, whole * share.numerator // share.denominator


def with_missing(tree: Tree, shares: IntArray) -> tuple[Tree, IntArray]:
    """The tree with a leaf for missing values, which gets all of epsilon that the root leaves."""
    longer, exact = hierarchy.with_extra_bin(tree, shares / SHARE_UNIT)
    return longer, np.rint(exact * SHARE_UNIT).astype(np.int64)
