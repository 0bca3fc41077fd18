"""Workloads, the share of epsilon that each node of a tree gets, and measuring within epsilon.

Shares add up to at most 1 on each path from the root to a leaf. A record is counted by the nodes of
one such path, so that the whole tree costs epsilon.
"""

from __future__ import annotations

import functools
import math
import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import ndtri

from .._random import noise_source
from .._validation import FloatArray, IntArray, as_integer, as_level, is_word, running_sums
from ..mechanisms import discrete_laplace, discrete_laplace_variance
from .blue import Blue
from .tree import Tree

# Numbers held at once while a sampled workload is computed on a tree.
_CHUNK = 1 << 23
# Levels with a smaller share are not measured; the bins always get at least this share.
_LEAST_SHARE = 0.01

# --------------------------------------------------------------------------------------------------
# Workloads: the ranges that should be answered accurately


@dataclass(frozen=True)
class Workload:
    """The ranges of a workload: lengths, their weights, and how variances are averaged over them.

    Attributes
    ----------
    lengths : tuple of int
        In bins; each means the ranges of this length at all positions.
    weights : tuple of float
        Sum 1.
    power : float
        The objective is the power mean of the variances: 1 is their mean; 2 their root mean square,
        which keeps the largest variances small; 0 their geometric mean, for which one percent
        counts the same at every length.
    anchored : bool
        Only ranges that begin at the first bin.
    """

    lengths: tuple[int, ...]
    weights: tuple[float, ...]
    power: float = 1.0
    anchored: bool = False

    def __post_init__(self) -> None:
        # Numbers are converted to one type, so that equal workloads share a cached plan.
        object.__setattr__(self, "lengths", tuple(int(length) for length in self.lengths))
        object.__setattr__(self, "weights", tuple(float(weight) for weight in self.weights))
        object.__setattr__(self, "power", float(self.power))

    def objective(self, variances: FloatArray) -> FloatArray:
        """Power mean over the lengths, which are the last axis."""
        weights = np.array(self.weights)
        if self.power == 0:
            return np.exp(np.log(variances) @ weights)
        return (variances**self.power @ weights) ** (1.0 / self.power)

    def positions(self, length: int, n_bins: int, limit: int) -> IntArray:
        """First bins of up to ``limit`` ranges of a length, spread evenly but irregularly."""
        return _irregular(1 if self.anchored else n_bins - length + 1, limit)


def as_workload(workload: Any, n_bins: int) -> Workload:
    """Read a declared workload.

    Parameters
    ----------
    workload : str, int, sequence of int or Workload
        - ``"lengths"``: ranges of 1, 2, 4, 8, ... bins, all lengths of equal importance; the
          root mean square of their variances counts.
        - ``"all"``: every range is equally likely; their mean variance counts.
        - ``"quantiles"``: ranges from the first bin to any other.
        - an integer: ranges up to that many bins; a sequence: ranges of these lengths. Their
          mean variance counts.
    n_bins : int

    Raises
    ------
    ValueError
        If it is none of these, or a length is not positive.
    """
    if isinstance(workload, Workload):
        return workload
    if is_word(workload, "lengths"):
        number = max(1, (n_bins - 1).bit_length())
        return _equal([2**i for i in range(number)], power=2.0)
    if is_word(workload, "quantiles"):
        # Up to 1,024 lengths, which do not favour edges of a tree.
        return _equal(np.unique(1 + _irregular(n_bins, 1024)).tolist(), anchored=True)
    if is_word(workload, "all"):
        lengths = _spread_lengths(n_bins)
        frequency = np.array([n_bins - length + 1 for length in lengths], dtype=np.float64)
        return Workload(tuple(lengths), tuple((frequency / frequency.sum()).tolist()))
    if _is_length(workload):
        return _equal(_spread_lengths(min(int(workload), n_bins)))
    given = list(workload) if isinstance(workload, Iterable) else []
    if not given or not all(map(_is_length, given)):
        raise ValueError(
            "workload must be 'lengths', 'all', 'quantiles', a largest length or a sequence of "
            f"lengths in bins, each at least 1, got {workload!r}."
        )
    return _equal(sorted({min(int(length), n_bins) for length in given}))


def _is_length(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 1


def _equal(lengths: Sequence[int], power: float = 1.0, anchored: bool = False) -> Workload:
    weight = 1.0 / len(lengths)
    return Workload(tuple(lengths), (weight,) * len(lengths), power, anchored)


def _spread_lengths(longest: int) -> list[int]:
    """Up to 64 lengths in 1..longest, evenly spread."""
    n = min(longest, 64)
    return [1 + int((i + 0.5) * longest / n) for i in range(n)]


def _irregular(size: int, limit: int) -> IntArray:
    """Numbers below ``size``: all, or ``limit`` of them, spread evenly but not regularly.

    These are multiples of the golden ratio: regular steps would fall on the edges of a tree, or
    beside them.
    """
    if size <= limit:
        return np.arange(size)
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    return ((np.arange(1, limit + 1) * golden % 1.0) * size).astype(np.int64)


def workload_variances(
    blue: Blue, workload: Workload, *, n_bins: int | None = None, limit: int = 2048
) -> FloatArray:
    """Mean variance of the ranges of each length of a workload, shape (n_lengths,).

    Parameters
    ----------
    blue : Blue
    workload : Workload
    n_bins : int, optional
        Ranges stay within the first ``n_bins`` bins; default: all.
    limit : int, default=2048
        All positions are used up to this number, beyond it an even selection.
    """
    n = blue.tree.n_bins if n_bins is None else n_bins
    means = []
    for length in np.minimum(workload.lengths, n).tolist():
        start = workload.positions(length, n, limit)
        means.append(blue.range_variances(start, start + length).mean())
    return np.array(means)


# --------------------------------------------------------------------------------------------------
# Shares of a given tree


def level_shares(tree: Tree, shares: ArrayLike) -> FloatArray:
    """Shares of the nodes from those of the levels; leaves get the rest of their path.

    Parameters
    ----------
    tree : Tree
    shares : array-like of float, shape (n_levels,)
        From the root downward, non-negative; they are scaled to sum 1. 0 leaves a level
        unmeasured.

    Returns
    -------
    ndarray of float64, shape (n_nodes,)

    Raises
    ------
    ValueError
        If there is not one share for each level, or none is positive.
    """
    s = np.asarray(shares, dtype=np.float64)
    if s.shape != (tree.n_levels,):
        raise ValueError(
            f"Give one share for each of the {tree.n_levels} levels of the tree, from the root to "
            f"the deepest leaves, got shape {s.shape}."
        )
    if not (np.isfinite(s) & (s >= 0)).all() or s.sum() <= 0:
        raise ValueError(f"Shares must be non-negative and not all zero, got {s.tolist()}.")
    s = s / s.sum()
    left = 1.0 - running_sums(s[:-1])
    return np.where(
        tree.is_leaf & (tree.depth < tree.n_levels - 1), left[tree.depth], s[tree.depth]
    )


def uniform_shares(tree: Tree) -> FloatArray:
    """Equal shares on all levels, with the root: the budget of Hay et al. and the GBLUE paper."""
    return level_shares(tree, np.ones(tree.n_levels))


def range_usage(tree: Tree) -> FloatArray:
    """Share of all ranges of bins whose smallest cover contains each node, shape (n_nodes,)."""
    n = tree.n_bins
    holding = (tree.lower + 1.0) * (n - tree.upper + 1.0)
    usage = holding.copy()
    usage[1:] -= holding[tree.parent[1:]]
    return usage / (n * (n + 1.0) / 2.0)


def cube_root_shares(tree: Tree, costs: ArrayLike) -> FloatArray:
    """Shares that minimise ``sum of costs / shares**2``: the optimum without consistency.

    Parameters
    ----------
    tree : Tree
    costs : array-like of float, shape (n_nodes,)
        Weight of the variance of each node, for example `range_usage`.

    Returns
    -------
    ndarray of float64, shape (n_nodes,)
        Nodes without cost get 0, except that leaves get the rest of their path.

    Raises
    ------
    ValueError
        If a cost is negative or not finite.
    """
    c = tree.per_node(costs, "costs")
    if not (np.isfinite(c) & (c >= 0)).all():
        raise ValueError("costs must hold finite non-negative numbers.")
    # The optimum of a subtree with budget E is F / E^2, and F of a parent follows from those of
    # its children by minimising over the parent's own share.
    root = np.cbrt(c)
    F = tree.fold_up(c, lambda nodes, sums: (root[nodes] + np.cbrt(sums)) ** 3)
    taken = np.divide(root, np.cbrt(F), out=np.zeros_like(root), where=F > 0)
    # Rounding may put a node that leaves nothing to its children a little above 1.
    taken = np.minimum(taken, 1.0)
    taken[tree.is_leaf] = 1.0
    start = np.zeros(tree.n_nodes)
    start[0] = 1.0
    available = tree.spread_down(start, 1.0 - taken[tree.above])
    return available * taken


def share_variances(shares: FloatArray) -> FloatArray:
    """Noise variances at epsilon 1 (continuous Laplace), infinite where the share is 0."""
    with np.errstate(divide="ignore"):
        return 2.0 / shares**2


def optimal_shares(tree: Tree, workload: Workload) -> FloatArray:
    """Shares that minimise the closed-form variance of a workload under consistency.

    The problem is not convex, and good budgets leave most levels unmeasured. On a tree whose
    levels are even, levels and shares are searched as in `plan_levels`. On any other tree the best
    of four is taken: equal shares, those that are optimal for random ranges without consistency,
    these without small inner ones, and all for the leaves. Deterministic, and a function of the
    tree and the workload alone.

    Parameters
    ----------
    tree : Tree
    workload : Workload

    Returns
    -------
    ndarray of float64, shape (n_nodes,)
    """
    counts = _even_levels(tree)
    if counts is not None:
        plan = _search(tree.n_bins, counts, workload)
        found = dict(zip(plan.counts, plan.shares, strict=True))
        return level_shares(tree, [float(found.pop(count, 0)) for count in counts])
    usage = cube_root_shares(tree, range_usage(tree))
    leaves = tree.is_leaf.astype(np.float64)
    candidates = (uniform_shares(tree), usage, _pruned(tree, usage), leaves)

    def score(shares: FloatArray) -> float:
        blue = Blue(tree, share_variances(shares))
        return float(workload.objective(workload_variances(blue, workload, limit=256)))

    return min(candidates, key=score)


def _even_levels(tree: Tree) -> tuple[int, ...] | None:
    """Number of parts into which each level cuts the bins, if the parts of a level are alike."""
    depths = tree.depth[tree.leaves]
    if depths.min() < tree.n_levels - 2 or len(tree.leaves) < tree.n_bins:
        return None
    width = tree.upper - tree.lower
    counts = []
    for level, start in enumerate(tree.level_starts[:-1]):
        widths = width[start : tree.level_starts[level + 1]]
        if widths.max() > 2 * widths.min():
            return None
        counts.append(len(widths) + int((depths < level).sum()))
    return tuple(counts)


def _pruned(tree: Tree, shares: FloatArray) -> FloatArray:
    """Without inner shares below 2%, which the leaves get."""
    kept = np.where(~tree.is_leaf & (shares < 0.02), 0.0, shares)
    used = tree.spread_down(np.where(tree.is_leaf, 0.0, kept))
    return np.where(tree.is_leaf, 1.0 - used, kept)


@dataclass(frozen=True)
class LevelPlan:
    """Levels to measure and how epsilon is divided among them.

    Attributes
    ----------
    counts : tuple of int
        Number of nodes of each measured level, increasing; the last level is the bins.
    shares : tuple of Fraction
        Sum exactly 1.
    """

    counts: tuple[int, ...]
    shares: tuple[Fraction, ...]

    def variances(self, n_bins: int, workload: Workload) -> FloatArray:
        """Closed-form mean variance at epsilon 1 for each length of a workload."""
        shares = np.array([float(share) for share in self.shares])
        energies = _energies(n_bins, np.array(self.counts), workload)
        index = np.arange(len(self.counts))[None]
        return _level_variances(n_bins, np.array(self.counts), energies, index, shares[None])[0][0]


def plan_levels(n_bins: int, workload: Workload) -> LevelPlan:
    """Levels and shares with the smallest closed-form variance for a workload.

    Levels are chosen among 1, 2, 4, ... nodes and the bins themselves, from which
    `level_tree` makes a tree; the root is measured only if that reduces the variance. The search is
    deterministic, public (it depends only on its arguments) and cached.

    Parameters
    ----------
    n_bins : int
    workload : Workload

    Returns
    -------
    LevelPlan
    """
    powers = [2**i for i in range((as_integer(n_bins, "n_bins", 1) // 2).bit_length())]
    return _search(n_bins, (*powers, n_bins), workload)


def _energies(n_bins: int, counts: NDArray[Any], workload: Workload) -> FloatArray:
    """Mean squared length of the projection of a range onto the parts of a level.

    For every level (row) and length (column) the mean over positions of the sum over the parts
    of ``overlap**2 / size``.
    """
    out = np.empty((len(counts), len(workload.lengths)))
    size = (n_bins / counts)[:, None]
    for j, length in enumerate(workload.lengths):
        start = workload.positions(length, n_bins, 1024)
        head = np.minimum(length, size - start % size)
        tail = length - head
        whole = np.floor(tail / size)
        rest = tail - whole * size
        out[:, j] = ((head**2 + rest**2) / size + whole * size).mean(axis=1)
    return out


def _level_variances(
    n_bins: int, counts: NDArray[Any], energies: FloatArray, index: NDArray[Any], shares: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean variances (plans, lengths) of many plans, and the terms of their gradient.

    ``index`` (plans, levels) picks rows of ``counts``, coarse to fine, the last one the bins.
    Even levels share their eigenvectors: functions constant on the parts of one level with sum
    zero on those of the level above. There the information is the sum of ``size * share^2 / 2``
    over this level and all finer ones.
    """
    size = n_bins / counts[index]
    information = np.cumsum((size * shares**2 / 2.0)[:, ::-1], axis=1)[:, ::-1]
    detail = np.diff(energies[index], axis=1, prepend=0.0)
    return (detail / information[:, :, None]).sum(axis=1), detail, information


def _optimise(
    n_bins: int, counts: NDArray[Any], energies: FloatArray, index: NDArray[Any], workload: Workload
) -> tuple[FloatArray, FloatArray]:
    """Objectives and shares of many plans at once, by a fixed-point iteration.

    With independent estimates the variance is ``sum(c / share**2)`` and multiplying the shares by
    the cube root of the gradient gives the optimum in one step; here it converges in several.
    """
    size = n_bins / counts[index]
    # Shorter plans repeat their coarsest level, which has no share of its own then.
    extra = np.zeros(index.shape, dtype=bool)
    extra[:, :-1] = index[:, 1:] == index[:, :-1]
    shares = np.where(extra, 0.0, 1.0)
    shares /= shares.sum(axis=1, keepdims=True)
    weight = np.array(workload.weights)
    for _ in range(60):
        variances, detail, information = _level_variances(n_bins, counts, energies, index, shares)
        factor = weight * variances ** (workload.power - 1.0)
        loss = np.einsum("plq,pq->pl", detail, factor) / information**2
        gradient = size * shares * np.cumsum(loss, axis=1)
        shares = shares * np.cbrt(gradient)
        shares /= shares.sum(axis=1, keepdims=True)
        # A workload without short ranges would leave the bins undetermined.
        shares[:, -1] = np.maximum(shares[:, -1], _LEAST_SHARE)
    variances, _, _ = _level_variances(n_bins, counts, energies, index, shares)
    return workload.objective(variances), shares


@functools.lru_cache(maxsize=256)
def _search(n_bins: int, candidates: tuple[int, ...], workload: Workload) -> LevelPlan:
    """Best subset of candidate levels (always with the last one), by moves from even starts."""
    counts = np.unique(np.array(candidates))
    energies = _energies(n_bins, counts, workload)
    last = len(counts) - 1
    known: dict[tuple[int, ...], tuple[float, FloatArray]] = {}

    def evaluate(plans: Iterable[tuple[int, ...]]) -> None:
        new = sorted(set(plans) - known.keys())
        if not new:
            return
        longest = max(map(len, new))
        index = np.array([plan[:1] * (longest - len(plan)) + plan for plan in new])
        # Levels that are not worth their share get one that underflows to nothing.
        with np.errstate(under="ignore"):
            objectives, shares = _optimise(n_bins, counts, energies, index, workload)
        for plan, objective, share in zip(new, objectives, shares, strict=True):
            known[plan] = (float(objective), share[-len(plan) :])

    def moves(plan: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
        inner = set(plan[:-1])
        others = set(range(last)) - inner
        for level in inner:
            yield (*sorted(inner - {level}), last)
            for step in (-2, -1, 1, 2):
                if level + step in others:
                    yield (*sorted(inner - {level} | {level + step}), last)
        for level in others:
            yield (*sorted(inner | {level}), last)

    beginnings = []
    for inner in range(min(last, 6) + 1):
        levels = np.unique(np.round(np.arange(1, inner + 1) * last / (inner + 1)).astype(int))
        beginnings.append((*(int(x) for x in levels if x < last), last))
    evaluate(beginnings)
    for plan in sorted(set(beginnings), key=lambda plan: known[plan][0])[:2]:
        while True:
            evaluate(moves(plan))
            better = min(known, key=lambda plan: known[plan][0])
            if not known[better][0] < known[plan][0] * (1 - 1e-9):
                break
            plan = better
    best = min(known, key=lambda plan: known[plan][0])
    return _rounded_plan(counts, best, known[best][1])


def _rounded_plan(counts: IntArray, plan: tuple[int, ...], shares: FloatArray) -> LevelPlan:
    """Shares in thousandths, rounding going to the largest; small levels are dropped."""
    kept = [i for i, x in enumerate(shares) if x >= _LEAST_SHARE or i == len(plan) - 1]
    share = shares[kept] / shares[kept].sum()
    whole = np.round(share * 1000).astype(int)
    whole[np.argmax(whole)] += 1000 - whole.sum()
    return LevelPlan(
        tuple(int(counts[plan[i]]) for i in kept), tuple(Fraction(int(x), 1000) for x in whole)
    )


# ------------------------------------------------------------------------------------------------
# Measuring a tree within epsilon, and the law of the noise in its estimates.


# Shares of epsilon are multiples of 1 / SHARE_UNIT, so that sums along a path are exact.
SHARE_UNIT = 10**6
# More distinct budgets than this are rounded down to a grid: each needs a table of noise.
_MAX_BUDGETS = 64
# The distribution of a sum is computed over at least this many standard deviations on both sides.
_GAUSSIAN_REACH = 8.0


def exact_shares(tree: Tree, shares: ArrayLike) -> IntArray:
    """Shares as integers, in units of one millionth; sums along each path are at most 10**6.

    More than 64 different shares are rounded down to a grid of 2% steps, because each one needs
    its own table of noise. Otherwise the leaves get the rounding remainder.

    Parameters
    ----------
    tree : Tree
    shares : array-like of float, shape (n_nodes,)
        Non-negative, with a sum of at most 1 on each path from the root to a leaf. 0 leaves a
        node unmeasured.

    Returns
    -------
    ndarray of int64, shape (n_nodes,)

    Raises
    ------
    ValueError
        If a share is negative or not finite, a path spends more than 1, or some path has no
        measured node at all.
    """
    s = tree.per_node(shares, "shares")
    wrong = np.flatnonzero(~(np.isfinite(s) & (s >= 0)))
    if wrong.size:
        raise ValueError(
            f"shares must be finite and not negative, got {s[wrong[0]]:g} for node {wrong[0]}."
        )
    spent = tree.spread_down(s)[tree.leaves]
    if (spent > 1 + 1e-6).any():
        leaf = int(np.argmax(spent))
        raise ValueError(
            f"The nodes above leaf {leaf} get {spent[leaf]:.6g} times epsilon in total, more than "
            "1: a record is counted by every one of them. Scale the shares."
        )
    whole = np.floor(s * SHARE_UNIT + 1e-3).astype(np.int64)
    coarse = len(np.unique(whole)) > _MAX_BUDGETS
    if coarse:
        grid = np.unique(np.floor(SHARE_UNIT * 1.02 ** -np.arange(700)).astype(np.int64))
        whole = np.where(whole > 0, grid[np.searchsorted(grid, whole, side="right") - 1], 0)
    used = tree.spread_down(whole.astype(np.float64))[tree.leaves].astype(np.int64)
    left = SHARE_UNIT - used
    # Rounding can leave a few millionths over, or be a few short, on each path.
    fix = (whole[tree.leaves] > 0) & ((left < 0) | ((left <= tree.n_levels) & (not coarse)))
    whole[tree.leaves] += np.where(fix, left, 0)
    used = used + np.where(fix, left, 0)
    if (used > SHARE_UNIT).any() or (whole < 0).any():
        raise ValueError("The shares of a path exceed 1 by more than rounding: scale them.")
    if (used == 0).any():
        leaf = int(np.flatnonzero(used == 0)[0])
        raise ValueError(
            f"Neither leaf {leaf} nor any node above it has a share, so it is not measured."
        )
    return whole


def measured_variances(shares: IntArray, epsilon: Fraction) -> FloatArray:
    """Exact noise variances for shares in millionths, infinite where the share is 0."""
    variances = np.full(len(shares), np.inf)
    for share in np.unique(shares[shares > 0]).tolist():
        part = epsilon * Fraction(share, SHARE_UNIT)
        variances[shares == share] = discrete_laplace_variance(part)
    return variances


def measure(
    tree: Tree,
    bin_counts: ArrayLike,
    shares: IntArray,
    epsilon: Fraction,
    *,
    random_state: Any = None,
) -> IntArray:
    """Noisy counts of the nodes of a tree.

    Parameters
    ----------
    tree : Tree
    bin_counts : array-like of int, shape (n_bins,)
        Exact and private.
    shares : ndarray of int64, shape (n_nodes,)
        From `exact_shares`: in millionths; they sum to at most 10**6 on each path.
    epsilon : Fraction
        Cost of the whole tree.
    random_state : None, int or NoiseSource, default=None

    Returns
    -------
    ndarray of int64, shape (n_nodes,)
        0 where nothing was measured.

    Raises
    ------
    ValueError
        If shares are negative, or some path spends more than epsilon.
    """
    # Privacy. Released: the noisy counts of the nodes with a share. Adding or removing one
    # record changes by 1 the counts of the nodes on one path from the root to a leaf, and no
    # other. Node v gets independent discrete Laplace noise of sensitivity 1 with epsilon times
    # its share, which is share_v * epsilon-DP; the shares are public and sum to at most 1 on
    # every path (integers, checked here whoever made them), so the whole is epsilon-DP. That the
    # nodes that hold a bin are one path is checked where a Tree is made.
    shares = np.asarray(shares)
    if shares.shape != (tree.n_nodes,) or shares.dtype.kind not in "iu" or (shares < 0).any():
        raise ValueError("shares must be those of exact_shares: one integer for each node.")
    if (tree.spread_down(shares.astype(np.float64)) > SHARE_UNIT).any():
        raise ValueError("The shares of some path sum to more than 1: use those of exact_shares.")
    counts = tree.node_counts(np.asarray(bin_counts, dtype=np.int64))
    values = np.zeros(tree.n_nodes, dtype=np.int64)
    source = noise_source(random_state)
    for share in np.unique(shares[shares > 0]).tolist():
        nodes = shares == share
        part = epsilon * Fraction(share, SHARE_UNIT)
        values[nodes] = discrete_laplace(counts[nodes], part, 1, random_state=source)
    return values


def noise_quantile(
    weights: ArrayLike, variances: ArrayLike, level: float, times: ArrayLike | None = None
) -> float:
    """Half width that covers a weighted sum of independent discrete Laplace noises.

    The characteristic function of the sum is a product of ``1 / (1 + v (1 - cos(w t)))``, v the
    variance and w the weight of a term; it is inverted numerically. A narrow normal kernel makes
    the integral finite, and its width is added to the result, which makes it conservative by about
    2% of a standard deviation. Weights within 5% of each other are replaced by their root mean
    square, terms that together make up less than a thousandth of the variance are replaced by a
    normal term.

    Parameters
    ----------
    weights, variances : array-like of float, shape (n,)
        Weights and variances of the terms; the variance of discrete Laplace noise determines its
        distribution.
    level : float
        In (0, 1).
    times : array-like of float, shape (n,), default=None
        How many independent terms each entry stands for; one each by default.

    Returns
    -------
    float
        x such that the sum lies in [-x, x] with probability at least ``level``.
    """
    level = as_level(level)
    w, v = np.abs(np.asarray(weights, dtype=np.float64)), np.asarray(variances, dtype=np.float64)
    number = np.ones(len(w)) if times is None else np.asarray(times, dtype=np.float64)
    used = (w > 0) & (v > 0) & np.isfinite(v)
    w, v, number = w[used], v[used], number[used]
    # The noise is integer, so it is nonzero with probability at most v. With hardly any noise the
    # sum is almost always zero, and the inversion below would take too long.
    if float(number @ v) <= 1.0 - level:
        return 0.0
    w, v, number, rest = _grouped(w, v, number)
    std = math.sqrt(float((number * w**2) @ v) + rest)
    if std == 0:
        return 0.0
    w, rest = w / std, rest / std**2
    # Allowed error of each approximation, a thousandth of 1 - level: the tail of the kernel, the
    # integrand that it leaves at `top`, and the mass beyond `reach` that a sum with steps of this
    # length folds back.
    slack = 1e-3 * (1.0 - level)
    top = 500.0
    kernel = math.sqrt(-2.0 * math.log(slack)) / top
    reach = max(_reach(w, v, number, slack), _GAUSSIAN_REACH)
    step = math.pi / reach
    t = np.arange(1, int(top / step) + 1) * step
    log_phi = -0.5 * (rest + kernel**2) * t**2
    for weight, variance, many in zip(w, v, number, strict=True):
        # 1 - cos(w t), without cancellation where v is large and w small.
        log_phi -= many * np.log1p(2.0 * variance * np.sin(weight * t / 2.0) ** 2)
    keep = log_phi > math.log(slack) - 5.0
    t, phi = t[keep], np.exp(log_phi[keep]) / t[keep]

    def excess(x: float) -> float:
        inside = 2.0 / math.pi * step * (x / 2.0 + float(phi @ np.sin(x * t)))
        return inside - level - slack

    x = brentq(excess, 0.0, reach, xtol=1e-4) if excess(reach) > 0 else reach
    return std * (x + kernel * float(-ndtri(slack / 2.0)))


def _grouped(
    w: FloatArray, v: FloatArray, number: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Distinct (weight, variance) terms, how often each occurs, and the variance of the rest."""
    power = number * (w**2 * v)
    order = np.argsort(power)
    negligible = np.cumsum(power[order]) < 1e-3 * power.sum()
    rest = float(power[order[negligible]].sum())
    keep = order[~negligible]
    w, v, power, number = w[keep], v[keep], power[keep], number[keep]
    if len(w) <= 64:
        return w, v, number, rest
    _, kind = np.unique(v, return_inverse=True)
    cell = np.floor(np.log(w) / 0.05).astype(np.int64)
    _, first, group = np.unique(
        np.stack([kind.ravel(), cell]), axis=1, return_index=True, return_inverse=True
    )
    times = np.bincount(group.ravel(), weights=number).astype(np.float64)
    variance = v[first]
    square = np.bincount(group.ravel(), weights=power) / (times * variance)
    return np.sqrt(square), variance, times, rest


def _reach(w: FloatArray, v: FloatArray, times: FloatArray, alpha: float) -> float:
    """A bound that the standardised sum exceeds with probability at most alpha (Chernoff)."""
    largest = float((2.0 * np.arcsinh(np.sqrt(0.5 / v)) / w).min())
    rates = largest * np.linspace(0.02, 0.98, 49)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        terms = 2.0 * v[:, None] * np.sinh(w[:, None] * rates / 2.0) ** 2
        moment = -(times[:, None] * np.log1p(-np.minimum(terms, 1.0))).sum(axis=0)
        bounds = (moment + math.log(2.0 / alpha)) / rates
    return float(bounds[np.isfinite(bounds)].min())
