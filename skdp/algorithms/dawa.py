"""DAWA, AHP and adaptive range trees: histograms of one column whose buckets follow the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from .. import hierarchy
from .._random import NoiseSource, noise_source
from .._validation import FloatArray, IntArray, exclusive_cumsum, running_sums
from ..hierarchy import LevelPlan, Tree, Workload
from ..mechanisms import choose_buckets, discrete_laplace

# ------------------------------------------------------------------------------------------------
# A range tree that is divided only where its noisy counts say that it pays.
#
# The levels and shares are those of the planned range tree. A node is divided into the more parts
#   the
# larger its noisy count is, up to the parts of the plan. A node that is not divided is measured
#   once
# more, with all that its path has left. Where all counts are large this is the planned tree itself;
# where most bins are empty, a few nodes hold most of epsilon.


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


# ------------------------------------------------------------------------------------------------
# AHP: groups of bins with similar noisy counts, which need not be neighbours.
#
# All bins are counted with noise; small noisy counts become zero; the sorted rest is cut greedily
# into groups of similar counts. Each group is then counted again, and its bins share the count.
#
# References
# ----------
# X. Zhang, R. Chen, J. Xu, X. Meng, Y. Xie: Towards Accurate Histogram Publication under
# Differential Privacy, SDM 2014.


# Shares of epsilon as published.
AHP_SHARES = {"partition": Fraction(1, 2), "counts": Fraction(1, 2)}
# Published constant of the threshold below which a noisy count becomes zero.
_THRESHOLD = 0.35


def ahp(
    counts: IntArray, n_values: int, parts: Mapping[str, Fraction], *, random_state: Any = None
) -> LineRelease:
    """Release groups of bins with similar noisy counts, and their noisy counts.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_values,) or (n_values + 1,)
        Exact and private; the missing values last, if they have a cell.
    n_values : int
    parts : mapping of str to Fraction
        Budget for "partition" and "counts".
    random_state : None, int or NoiseSource, default=None

    Returns
    -------
    LineRelease
    """
    # Privacy. Released: groups that follow from noisy counts of all bins (sensitivity 1, part
    # "partition"), and a noisy count of each group (sensitivity 1, as groups are disjoint, part
    # "counts"): sequential composition. A missing value is in no group and is counted with all of
    # epsilon.
    source = noise_source(random_state)
    epsilon = sum(parts.values(), Fraction(0))
    noisy = discrete_laplace(counts[:n_values], parts["partition"], random_state=source)
    threshold = _THRESHOLD * math.log(max(n_values, 2)) / float(parts["partition"])
    order, edges = similar_groups(noisy, threshold, float(parts["counts"]))
    n = len(edges) - 1
    # A root that is not measured, and one leaf for each group.
    low, high = np.append(0, edges[:-1]), np.append(n_values, edges[1:])
    tree = Tree(np.append(-1, np.zeros(n, dtype=np.int64)), low, high, np.arange(n + 1))
    share = parts["counts"] / epsilon
    shares = np.append(0, np.full(n, SHARE_UNIT * share.numerator // share.denominator))
    if len(counts) > n_values:
        tree, shares = with_missing(tree, shares)
        order = np.append(order, n_values)
    measured = hierarchy.measure(tree, counts[order], shares, epsilon, random_state=source)
    return LineRelease(tree, order, shares, measured)


def similar_groups(noisy: IntArray, threshold: float, epsilon: float) -> tuple[IntArray, IntArray]:
    """Bins in the order of their noisy counts, and where groups of similar ones begin and end.

    A bin joins the group of the next larger ones if that costs less than a group of its own: the
    squared distances to the mean of the group, against the noise of one more count.

    Parameters
    ----------
    noisy : ndarray of int64, shape (n_bins,)
    threshold : float
        Noisy counts of at most this become zero; these bins are one group.
    epsilon : float
        Of the count of each group.
    """
    kept = np.where(noisy > threshold, noisy, 0)
    order = np.argsort(-kept, kind="stable")
    ordered = kept[order].astype(np.float64)
    n_large = int(np.count_nonzero(ordered))
    starts = _greedy_starts(ordered[:n_large], 2.0 / epsilon**2)
    if n_large < len(ordered):
        starts.append(n_large)
    return order, np.array([*starts, len(ordered)], dtype=np.int64)


def _greedy_starts(ordered: FloatArray, noise: float) -> list[int]:
    """Where groups begin in a decreasing list of values."""
    starts: list[int] = []
    size, mean = 0, 0.0
    for place, value in enumerate(ordered.tolist()):
        # Squared distances to the mean grow by this if the value joins.
        if size and (value - mean) ** 2 * size / (size + 1) <= noise:
            size, mean = size + 1, mean + (value - mean) / (size + 1)
        else:
            starts.append(place)
            size, mean = 1, value
    return starts


# ------------------------------------------------------------------------------------------------
# DAWA: buckets of bins with similar counts, chosen privately, and a range tree over them.
#
# Step 1 chooses buckets of 1, 2, 4, ... bins by dynamic programming over noisy costs. The cost of a
# bucket is how far its counts are from their median in total. Step 2 measures the buckets; the
#   paper
# uses its GreedyH tree, here it is the library's own planned tree.
#
# References
# ----------
# C. Li, M. Hay, G. Miklau, Y. Wang: A Data- and Workload-Aware Algorithm for Range Queries Under
# Differential Privacy, PVLDB 7, 2014.


# Shares of epsilon as published.
DAWA_SHARES = {"partition": Fraction(1, 4), "counts": Fraction(3, 4)}
# Up to this many bins buckets begin anywhere, as published. Beyond it a bucket of 2**k bins begins
# at a multiple of 2**k: all starts would take time with the square of the number of bins.
_MOST_STARTS = 8192
# Penalty of each bucket beside the published 1 / epsilon of the counts, in mean noises of a cost.
# One of them makes up for the mean of the one-sided noise; the rest for the luck of the winner
# among many candidates. Chosen on generated histograms.
_LUCK_OF_ALL = 3
_LUCK_OF_ALIGNED = 2
# Numbers held at once while costs are computed.
_CHUNK = 1 << 22
# A record changes the cost of a bucket by -1, 0 or 1.
_COST_RANGE = 2


def dawa(
    counts: IntArray,
    n_values: int,
    parts: Mapping[str, Fraction],
    workload_of: Callable[[int], Workload],
    *,
    random_state: Any = None,
) -> LineRelease:
    """Release buckets of similar bins, and a tree of noisy counts over them.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_values,) or (n_values + 1,)
        Exact and private, in the order of the line; then the missing values, if they have a cell.
    n_values : int
    parts : mapping of str to Fraction
        Budget for "partition" and "counts".
    workload_of : callable
        Workload to plan for, given the number of buckets.
    random_state : None, int or NoiseSource, default=None

    Returns
    -------
    LineRelease
    """
    # Privacy. Released: the buckets, at the part "partition", and noisy counts of the tree over
    # them, at the part "counts" on every path: sequential composition. A record moves the cost of
    # a bucket that holds it by at most 1 in either direction: a median minimises the sum of
    # distances, each set of counts has one that is an integer, and for a fixed centre one record
    # changes one distance by 1. So R = 2; no other cost changes. A missing value is in no bucket
    # and is counted with all of epsilon.
    source = noise_source(random_state)
    epsilon = sum(parts.values(), Fraction(0))
    aligned = n_values > _MOST_STARTS
    luck = _LUCK_OF_ALIGNED if aligned else _LUCK_OF_ALL
    penalty = math.ceil(1 / parts["counts"] + luck * _COST_RANGE / parts["partition"])
    edges = choose_buckets(
        bucket_costs(counts[:n_values], aligned=aligned),
        n_values,
        parts["partition"],
        _COST_RANGE,
        penalty=penalty,
        random_state=source,
    )
    tree, shares = bucket_tree(edges, workload_of(len(edges) - 1), parts["counts"] / epsilon)
    if len(counts) > n_values:
        tree, shares = with_missing(tree, shares)
    noisy = hierarchy.measure(tree, counts, shares, epsilon, random_state=source)
    return LineRelease(tree, np.arange(len(counts)), shares, noisy)


def bucket_costs(counts: IntArray, *, aligned: bool = False) -> list[IntArray]:
    """Sum of distances to the median, of all buckets of 1, 2, 4, ... bins.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_bins,)
        Exact and private.
    aligned : bool, default=False
        Whether a bucket begins at a multiple of its length only. The last one may be shorter.
    """
    n = len(counts)
    costs = [np.zeros(n, dtype=np.int64)]
    length = 2
    while length <= n or (aligned and length < 2 * n):
        if aligned:
            whole = n // length
            each = _distances(counts[: whole * length].reshape(whole, length))
            if whole * length < n:
                each = np.append(each, _distances(counts[None, whole * length :]))
            costs.append(each)
        else:
            costs.append(_distances(np.lib.stride_tricks.sliding_window_view(counts, length)))
        length *= 2
    return costs


def _distances(buckets: IntArray) -> IntArray:
    """Upper half minus lower half of each row, which is the sum of distances to its median."""
    number, length = buckets.shape
    half, step = length // 2, max(1, _CHUNK // length)
    out = np.zeros(number, dtype=np.int64)
    if half == 0:
        return out
    for first in range(0, number, step):
        rows = np.partition(buckets[first : first + step], half, axis=1)
        upper, lower = rows[:, length - half :], rows[:, :half]
        out[first : first + step] = upper.sum(axis=1) - lower.sum(axis=1)
    return out
