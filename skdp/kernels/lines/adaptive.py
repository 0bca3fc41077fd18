"""A range tree that is divided only where its noisy counts say that it pays.

The levels and shares are those of the planned range tree. A node is divided into the more parts the
larger its noisy count is, up to the parts of the plan. A node that is not divided is measured once
more, with all that its path has left. Where all counts are large this is the planned tree itself;
where most bins are empty, a few nodes hold most of epsilon.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ... import hierarchy
from ..._arrays import exclusive_cumsum, running_sums
from ..._random import NoiseSource, noise_source
from ..._types import IntArray
from ...hierarchy import LevelPlan, Tree, Workload
from ...mechanisms import discrete_laplace

# --- what a data-dependent histogram of one column releases

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


# --- the tree

# A node is divided into as many parts as leave each a noisy count of this many times 1 / epsilon of
# the next level. Chosen on generated histograms; 3 and 4 are nearly as good.
_RECORDS_OF_A_PART = 2


class _Level(NamedTuple):
    """Nodes of one level: their parent in the level above, and their share in millionths."""

    above: IntArray
    lower: IntArray
    upper: IntArray
    price: IntArray


def adaptive_tree(
    counts: IntArray, n_values: int, epsilon: Fraction, plan: LevelPlan, *, random_state: Any = None
) -> LineRelease:
    """Release a tree of noisy counts that is finer where the counts are large.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_values,) or (n_values + 1,)
        Exact and private, in the order of the line; then the missing values, if they have a cell.
    n_values : int
    epsilon : Fraction
        Cost of the whole tree.
    plan : LevelPlan
        Levels and shares of the tree if every node is divided.
    random_state : None, int or NoiseSource, default=None

    Returns
    -------
    LineRelease
    """
    # Privacy. Released: a noisy count of every node below the root. Whether and how a node is
    # divided depends on its own released count and public numbers, so the choice of what is
    # measured next is post-processing. A record is in one node of each level. A divided node pays
    # the share of its level; one that is not has a single child, itself, which pays all that is
    # left. So the shares along every path sum to 1 at most, and one record changes each count on
    # its path by 1. A missing value is one leaf below the root, with all of epsilon.
    source = noise_source(random_state)
    before = running_sums(counts)
    prices = [int(share * SHARE_UNIT) for share in plan.shares]
    parts = np.array([plan.counts[0]])
    level = _Level(np.array([-1]), np.array([0]), np.array([n_values]), np.zeros(1, dtype=np.int64))
    levels, values = [level], [np.zeros(1, dtype=np.int64)]
    for depth, price in enumerate(prices):
        level = _children(level, parts, price, SHARE_UNIT - sum(prices[:depth]))
        exact = before[level.upper] - before[level.lower]
        noisy = _measured(exact, level.price, epsilon, source)
        levels.append(level)
        values.append(noisy)
        if depth + 1 == len(prices):
            break
        wanted = noisy * (float(epsilon) * prices[depth + 1] / SHARE_UNIT / _RECORDS_OF_A_PART)
        parts = _number_of_parts(level, wanted, plan.counts, depth)
        # What paid all that was left is final.
        parts[level.price != price] = 0
        if not parts.any():
            break
    tree, shares = _joined(levels)
    if len(counts) > n_values:
        tree, shares = with_missing(tree, shares)
        noisy = discrete_laplace(counts[n_values:], epsilon, random_state=source)
        values[1] = np.append(values[1], noisy)
    return LineRelease(tree, np.arange(len(counts)), shares, np.concatenate(values))


def _number_of_parts(level: _Level, wanted: Any, counts: tuple[int, ...], depth: int) -> IntArray:
    """Parts of each node of a level: 1 for a node that is not divided."""
    width = level.upper - level.lower
    # The last level is the bins; on others a node has about as many parts as in the plan.
    last = depth + 2 == len(counts)
    most = width if last else np.minimum(width, max(2, round(counts[depth + 1] / counts[depth])))
    return np.clip(wanted, 1, most).astype(np.int64)


def _children(level: _Level, parts: IntArray, price: int, left: int) -> _Level:
    """The next level: nodes cut into equal parts, and undivided nodes that pay all that is left."""
    above = np.repeat(np.arange(len(parts)), parts)
    place: IntArray = np.arange(len(above)) - exclusive_cumsum(parts)[above]
    width: IntArray = (level.upper - level.lower)[above]
    number: IntArray = parts[above]
    low = level.lower[above]
    alone = (number == 1) & (level.price[above] > 0)
    return _Level(
        above,
        low + width * place // number,
        low + width * (place + 1) // number,
        np.where(alone, left, price),
    )


def _measured(
    exact: IntArray, prices: IntArray, epsilon: Fraction, source: NoiseSource
) -> IntArray:
    values = np.zeros(len(exact), dtype=np.int64)
    for price in np.unique(prices).tolist():
        nodes = prices == price
        part = epsilon * Fraction(price, SHARE_UNIT)
        values[nodes] = discrete_laplace(exact[nodes], part, random_state=source)
    return values


def _joined(levels: list[_Level]) -> tuple[Tree, IntArray]:
    """All levels as one tree."""
    sizes = np.array([len(level.above) for level in levels])
    first = exclusive_cumsum(sizes)
    parents = [
        level.above + shift for level, shift in zip(levels[1:], first.tolist(), strict=False)
    ]
    parent = np.concatenate([levels[0].above, *parents])
    low, high, price = (
        np.concatenate([getattr(level, name) for level in levels])
        for name in ("lower", "upper", "price")
    )
    return Tree(parent, low, high, np.arange(len(parent))), price
