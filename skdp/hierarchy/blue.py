"""Best linear unbiased estimates on a tree: exact, non-negative, by GBLUE and by Boost."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._random import warn_after_charge
from .._validation import (
    BoolArray,
    FloatArray,
    IntArray,
    as_integer,
    batches,
    exclusive_cumsum,
    running_sums,
)
from .tree import Family, Tree, column

# Numbers held at once while many queries are computed on a tree.
_CHUNK = 1 << 23


class Blue:
    """Best linear unbiased estimates on a tree with independent noise of known variances.

    Upward, every node combines the estimate of its subtree with its own measurement; downward, the
    correction of the parent is divided among the children in proportion to their variances. This is
    exact weighted least squares in O(n_nodes).

    Parameters
    ----------
    tree : Tree
    variances : array-like of float, shape (n_nodes,)
        Noise variance of each node in level order. 0 is an exact value (if exact values contradict
        each other, those nearest to the leaves win), infinity an unmeasured node.

    Attributes
    ----------
    tree : Tree
    noise_variances : ndarray of float64, shape (n_nodes,)
        As given.
    measured : ndarray of bool, shape (n_nodes,)
        Whether the noise variance is finite.
    variances : ndarray of float64, shape (n_nodes,)
        Exact variance of the estimate of each node; infinite where the measurements do not
        determine it (unmeasured siblings then share equally).

    Raises
    ------
    ValueError
        If a variance is negative or not a number.

    Examples
    --------
    >>> from skdp.hierarchy import Blue, perfect_tree
    >>> blue = Blue(perfect_tree(2, 1), [1.0, 1.0, 1.0])
    >>> blue.estimate([10.0, 4.0, 3.0])
    array([9., 5., 4.])
    >>> blue.variances.round(3)
    array([0.667, 0.667, 0.667])
    """

    # Notation of the comments: y and v are the measurement of a node and its variance, z and s
    # the estimate from its subtree alone and its variance, c and C the sums of z and s over its
    # children, x and V the final estimate and its variance.

    def __init__(self, tree: Tree, variances: ArrayLike) -> None:
        v = as_variances(tree, variances)
        self.tree = tree
        self.noise_variances = v
        self.measured = np.isfinite(v)
        s = tree.fold_up(v, lambda nodes, C: _combined(C, v[nodes]))
        self._subtree = s
        self._infinite = np.isinf(s)
        # C without infinite terms, and how many there are.
        known = tree.child_sums(np.where(self._infinite, 0.0, s))
        unknown = tree.child_sums(self._infinite.astype(np.float64))
        C = np.where(unknown > 0, np.inf, known)
        # z = keep c + (1 - keep) y
        keep = C + v
        exact = keep == 0
        with np.errstate(invalid="ignore", divide="ignore"):
            np.divide(v, keep, out=keep)
        keep[np.isinf(C)] = 0.0
        keep[~self.measured | exact] = 1.0
        keep[tree.is_leaf & self.measured] = 0.0
        self._keep = keep
        share = known[tree.above]
        with np.errstate(invalid="ignore", divide="ignore"):
            np.divide(s, share, out=share)
        # Exact siblings do not move.
        share[(known == 0)[tree.above]] = 0.0
        several = unknown[tree.above]
        share = np.where(several > 0, self._infinite / np.maximum(several, 1.0), share)
        share[0] = 0.0
        self._share = share
        self._known, self._unknown = known, unknown

    def __reduce__(self) -> tuple[Any, ...]:
        return Blue, (self.tree, self.noise_variances)

    @cached_property
    def variances(self) -> FloatArray:
        """Exact variance of the estimate of each node; infinite where it is not determined."""
        # V = s (1 - share) + share^2 V_parent. A single infinite child is the parent minus its
        # siblings; several infinite children are not determined.
        s, share, above = self._subtree, self._share, self.tree.above
        rest = np.where(self._unknown[above] > 1, np.inf, self._known[above])
        finite = np.where(self._infinite, 0.0, s)
        own = np.where(self._infinite, rest, finite * (1.0 - share))
        own[0] = s[0]
        lost = np.isinf(own)
        variances = self.tree.spread_down(np.where(lost, 0.0, own), share**2)
        if lost.any():
            reached = self.tree.spread_down(lost.astype(np.float64), (share > 0).astype(np.float64))
            variances[reached > 0] = np.inf
        return variances

    def subtree_estimate(self, values: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Estimate of each node from its own subtree alone, and its variance.

        Returns
        -------
        estimates, variances : ndarray of float64, shape (n_nodes,)
        """
        y = as_values(self.tree, self.measured, values)
        return self.tree.sum_up((1.0 - self._keep) * y, gain=self._keep), self._subtree

    def estimate(self, values: ArrayLike) -> FloatArray:
        """Consistent estimates of all nodes.

        Parameters
        ----------
        values : array-like, shape (n_nodes,)
            Noisy counts in level order; ignored where the variance is infinite.

        Returns
        -------
        ndarray of float64, shape (n_nodes,)
            Each parent is the sum of its children, up to rounding.

        Raises
        ------
        ValueError
            If a measured value is not finite.
        """
        tree = self.tree
        x, _ = self.subtree_estimate(values)
        for family in tree.families:
            gap = x[family.parents] - np.add.reduceat(x[family.children], family.starts)
            x[family.children] += self._share[family.children] * np.repeat(gap, family.sizes)
        return x

    # -- errors of sums of leaves

    def _regression(self, weights: ArrayLike) -> FloatArray:
        """Slope of a weighted sum of the leaves below a node on the count of that node.

        Given the count of v, the sum over its subtree has mean const + slope_v * count, and the
        remaining uncertainty is independent of everything outside. So the variance of the whole sum
        is the sum over nodes of s_u (slope_u - slope_parent)^2, plus V_root slope_root^2: a sum of
        squares, without cancellation.
        """
        q = np.asarray(weights, dtype=np.float64)
        tree = self.tree
        if q.ndim not in (1, 2) or len(q) != len(tree.leaves):
            raise ValueError(
                f"Weights must have one row for each of the {len(tree.leaves)} leaves, got shape "
                f"{q.shape}."
            )
        start = np.zeros((tree.n_nodes, *q.shape[1:]))
        start[tree.leaves] = q
        return tree.sum_up(start, weight=self._share)

    def _spread(self, slope: FloatArray) -> FloatArray:
        """slope_u - slope_parent, exactly 0 where infinite siblings agree."""
        difference = slope - slope[self.tree.above]
        alike = np.abs(difference) <= 1e-12 * np.abs(slope)
        difference[alike & column(self._infinite, slope.ndim)] = 0.0
        return difference

    def _scaled(self, weights: ArrayLike) -> FloatArray:
        """Independent standardised components of the error of weighted sums of leaves."""
        slope = self._regression(weights)
        parts = self._spread(slope)
        parts[0] = slope[0]
        scale = np.sqrt(self._subtree)
        scale[0] = math.sqrt(self.variances[0])
        with np.errstate(invalid="ignore"):
            return np.where(parts == 0, 0.0, parts * column(scale, parts.ndim))

    def query_variance(self, weights: ArrayLike) -> FloatArray | float:
        """Exact variance of the estimate of one or more weighted sums of leaves.

        Parameters
        ----------
        weights : array-like of float, shape (n_leaves,) or (n_leaves, m)
            One row for each leaf, from left to right.

        Returns
        -------
        float, or ndarray of float64 of shape (m,)
            Infinite where the measurements do not determine the sum.
        """
        parts = self._scaled(weights)
        variance = np.einsum("i...,i...->...", parts, parts)
        return float(variance) if variance.ndim == 0 else variance

    def noise_weights(self, weights: ArrayLike) -> FloatArray:
        """Weight of each node's noise in the estimate of weighted sums of leaves.

        The estimate is the truth plus ``sum(result * noise)`` over the nodes, so this gives the
        exact distribution of the error. Exact and unmeasured nodes get 0.

        Parameters
        ----------
        weights : array-like of float, shape (n_leaves,) or (n_leaves, m)

        Returns
        -------
        ndarray of float64, shape (n_nodes,) or (n_nodes, m)

        Raises
        ------
        ValueError
            If the measurements do not determine one of the sums.
        """
        tree = self.tree
        slope = self._regression(weights)
        spread = self._spread(slope)
        infinite = self._infinite
        if spread[infinite].any() or (infinite[0] and np.any(slope[0])):
            raise ValueError("The measurements do not determine all of these sums of leaves.")
        # Covariance of each node with the sum, given its parent. Within a family these add up
        # to 0, which settles the infinite ones.
        given = spread * column(np.where(infinite, 0.0, self._subtree), slope.ndim)
        if infinite.any():
            above = tree.parent[infinite]
            columns = given.reshape(tree.n_nodes, -1)
            for j in range(columns.shape[1]):
                known = tree.child_sums(columns[:, j])
                columns[infinite, j] = -known[above] / np.maximum(self._unknown[above], 1.0)
        given[0] = slope[0] * (0.0 if infinite[0] else self.variances[0])
        covariance = tree.spread_down(given, self._share)
        usable = self.measured & (self.noise_variances > 0)
        scale = np.divide(1.0, self.noise_variances, out=np.zeros(tree.n_nodes), where=usable)
        return covariance * column(scale, slope.ndim)

    def range_variances(self, start: ArrayLike, stop: ArrayLike) -> FloatArray:
        """Exact variances of many ranges of bins; the time of each is proportional to the height.

        Parameters
        ----------
        start, stop : array-like of float, shape (m,)
            Ranges ``start <= position < stop``, bin j being [j, j + 1). Partly covered leaves
            count in proportion; an empty range has variance 0.

        Returns
        -------
        ndarray of float64, shape (m,)
        """
        tree, s = self.tree, self._subtree
        a, b = np.broadcast_arrays(*np.atleast_1d(start, stop))
        a = np.clip(a, 0, tree.n_bins).astype(np.float64)
        b = np.clip(b, a, tree.n_bins)
        if np.isinf(s).any():
            parts = batches(len(a), max(1, _CHUNK // tree.n_nodes))
            each = [self.query_variance(tree.overlaps(a[part], b[part])) for part in parts]
            return np.concatenate([np.zeros(0), *each])
        # A range is what lies before its stop less what lies before its start. Along the path from
        # each of these ends up to the root, ``slope`` is the regression of what lies before it on
        # the node reached (see `_regression`): 1 left of the path, 0 right of it, so that running
        # sums of the variances settle all other nodes.
        ends = np.stack([a, b])
        place = np.searchsorted(tree.lower[tree.leaves], ends, side="right") - 1
        node = tree.leaves[place]
        slope = (ends - tree.lower[node]) / tree.leaf_widths[place]
        before = running_sums(s)
        found = np.zeros(len(a))
        for level in range(tree.n_levels - 1, 0, -1):
            on, parent, own = tree.depth[node] == level, tree.above[node], s[node]
            total = self._known[parent]
            left = before[node] - before[tree.first_child[parent]]
            mean = np.divide(left + own * slope, total, out=np.zeros_like(total), where=total > 0)
            right = np.maximum(total - left - own, 0.0)
            alone = left * (1 - mean) ** 2 + own * (slope - mean) ** 2 + right * mean**2
            # Where both ends have one parent, the slopes of the range itself: below, only its
            # children from the start to the stop have one that is not 0.
            same, apart = node[0] == node[1], own[1] * (node[0] != node[1])
            first = np.where(same, slope[1], 1.0) - slope[0]
            inside = np.maximum(before[node[1]] - before[node[0] + 1], 0.0)
            outside = np.maximum(total[0] - own[0] - apart - inside, 0.0)
            step = mean[1] - mean[0]
            both = own[0] * (first - step) ** 2 + apart * (slope[1] - step) ** 2
            both += inside * (1 - step) ** 2 + outside * step**2
            met = on.all(axis=0) & (parent[0] == parent[1])
            found += np.where(met, both, (on * alone).sum(axis=0))
            slope, node = np.where(on, mean, slope), np.where(on, parent, node)
        return found + self.variances[0] * (slope[1] - slope[0]) ** 2


def as_variances(tree: Tree, variances: ArrayLike) -> FloatArray:
    """Noise variances as floats; ValueError if one is negative or NaN, or their number is wrong."""
    v = tree.per_node(variances, "variances")
    bad = np.flatnonzero(~(v >= 0))
    if len(bad):
        raise ValueError(
            f"variances must not be negative or NaN, got {v[bad[0]]} at node {bad[0]}. Use "
            "infinity for a node that was not measured and 0 for an exact count."
        )
    return v


def as_values(tree: Tree, measured: BoolArray, values: ArrayLike) -> FloatArray:
    """Values as floats, 0 where nothing was measured; ValueError if one is not finite."""
    y = np.where(measured, tree.per_node(values, "values"), 0.0)
    bad = np.flatnonzero(~np.isfinite(y))
    if len(bad):
        raise ValueError(
            f"The value of node {bad[0]} is {y[bad[0]]}; every node with a finite variance needs a "
            "finite value."
        )
    return y


def _combined(C: FloatArray, v: FloatArray) -> FloatArray:
    """Variance of the best combination of two estimates with variances C and v."""
    s = C + v
    with np.errstate(invalid="ignore"):
        np.divide(C, s, out=s)
        s *= v
    # NaN results from an infinite variance, or from two exact values.
    return np.where(np.isnan(s), np.where(np.isinf(C), v, C), s)


# --- consistent counts without negative ones: projections onto simplices, from the top down


# Fewer children than this are never pulled together.
_FEWEST_EVENED = 4


def non_negative(blue: Blue, values: ArrayLike, *, even: bool = False) -> FloatArray:
    """Consistent estimates without negative counts, from the top down.

    The children of each node are projected onto {x >= 0, sum = parent}, distances weighted by
    their subtree variances; where nothing is negative this is `Blue.estimate`. Empty regions are
    recognised high up, where the noise is small against the count, and stay empty below. (One
    projection of all leaves at once would spread the mass of the true counts over the noise of
    all empty leaves.)

    Parameters
    ----------
    blue : Blue
    values : array-like, shape (n_nodes,)
        Noisy counts in level order.
    even : bool, default=False
        First pull the children of each node below the root towards equal counts for each bin, by
        as much as their differences may be noise (James and Stein's estimate, positive part).

    Returns
    -------
    ndarray of float64, shape (n_nodes,)
    """
    tree = blue.tree
    z, s = blue.subtree_estimate(values)
    positive = s[np.isfinite(s) & (s > 0)]
    unit = float(positive.max()) if len(positive) else 1.0
    # Finite substitutes: exact children hardly move, unmeasured ones take the rest.
    s = np.clip(s, 1e-9 * unit, 1e9 * unit)
    out = z.copy()
    out[0] = max(out[0], 0.0)
    width = (tree.upper - tree.lower).astype(np.float64)
    for level, family in enumerate(tree.families):
        children = family.children
        estimates, totals = z[children], np.repeat(out[family.parents], family.sizes)
        if even and level > 0:
            estimates = _evened(estimates, s[children], totals, width[children], family)
        out[children] = _project(estimates, s[children], totals, family)
    return out


def _evened(
    z: FloatArray, s: FloatArray, totals: FloatArray, width: FloatArray, family: Family
) -> FloatArray:
    """Estimates of siblings with the sum ``totals``, pulled towards proportion to the widths.

    In proportion they would differ by their noise alone, and the sum of their squared standardised
    differences would be about the number of siblings less one.
    """

    def sums(each: FloatArray) -> FloatArray:
        return np.repeat(np.add.reduceat(each, family.starts), family.sizes)

    moved = z + s * (totals - sums(z)) / sums(s)
    level = totals * width / sums(width)
    differences = sums((moved - level) ** 2 / s)
    size = np.repeat(family.sizes, family.sizes)
    kept = 1.0 - (size - 3.0) / np.maximum(differences, 1e-300)
    return level + np.where(size >= _FEWEST_EVENED, np.maximum(kept, 0.0), 1.0) * (moved - level)


def _project(z: FloatArray, s: FloatArray, totals: FloatArray, family: Family) -> FloatArray:
    """Project each family onto {x >= 0, sum = total}, distances weighted by 1 / s.

    Without the bound x = z + s * shift; children that this makes negative are set to 0 permanently
    and the rest is solved again; this ends after a few rounds.
    """
    out = np.empty_like(z)
    # Rounds after the first look only at the families that changed.
    left = np.arange(len(z))
    starts, sizes = family.starts, family.sizes
    active = np.ones(len(z), dtype=bool)
    while True:
        weight = np.where(active, s, 0.0)
        gap = totals[starts] - np.add.reduceat(np.where(active, z, 0.0), starts)
        weight_sum = np.add.reduceat(weight, starts)
        shift = np.divide(gap, weight_sum, out=np.zeros_like(gap), where=weight_sum > 0)
        moved = np.where(active, z + s * np.repeat(shift, sizes), 0.0)
        out[left] = np.maximum(moved, 0.0)
        negative = active & (moved < 0)
        again = np.logical_or.reduceat(negative, starts)
        if not again.any():
            return out
        rows = np.repeat(again, sizes)
        z, s, totals, left = z[rows], s[rows], totals[rows], left[rows]
        active = (active & ~negative)[rows]
        sizes = sizes[again]
        starts = exclusive_cumsum(sizes)


# ------------------------------------------------------------------------------------------------
# Two published methods: the sweeps of GBLUE, and Boost for perfect trees.
#
# Both agree with `Blue`, which is exact in two passes on any tree.


def gblue(
    tree: Tree,
    values: ArrayLike,
    variances: ArrayLike | None = None,
    *,
    tol: float = 1e-6,
    max_sweeps: int = 100_000,
) -> tuple[FloatArray, int]:
    """Best linear unbiased estimates by the iterative algorithm of the GBLUE paper.

    A sweep corrects every parent and its children, from the bottom to the top, so that they
    agree; sweeps repeat until no parent differs from the sum of its children by ``tol``. Each
    correction is a projection, so the limit is the least-squares solution. `Blue.estimate` gives
    that limit directly; this is the paper's method, extended to unequal variances (a node moves
    in proportion to its variance) and unmeasured nodes (which are left out and filled in).

    Parameters
    ----------
    tree : Tree
    values : array-like, shape (n_nodes,)
    variances : array-like, shape (n_nodes,), optional
        Equal by default, as in the paper.
    tol : float, default=1e-6
        In records.
    max_sweeps : int, default=100_000
        After these, a RuntimeWarning is given and the current estimates are returned.

    Returns
    -------
    estimates : ndarray of float64, shape (n_nodes,)
    n_sweeps : int

    Raises
    ------
    ValueError
        As `Blue`, or if ``tol`` is not positive.
    """
    if not tol > 0:
        raise ValueError(f"tol must be positive, got {tol!r}.")
    v = as_variances(tree, np.ones(tree.n_nodes) if variances is None else variances)
    y = as_values(tree, np.isfinite(v), values)
    hidden = np.isinf(v) & ~tree.is_leaf
    kept, short = _without_hidden(tree, hidden)
    start = np.zeros(tree.n_nodes)
    start[kept], n_sweeps = _sweep(short, y[kept], v[kept], tol, max_sweeps)
    return tree.sum_up(start, gain=hidden.astype(np.float64)), n_sweeps


def _without_hidden(tree: Tree, hidden: BoolArray) -> tuple[IntArray, Tree]:
    """The tree without its unmeasured inner nodes (but with the root), and the nodes kept."""
    parent, skipped = tree.parent.tolist(), hidden.tolist()
    for node in range(1, tree.n_nodes):
        above = parent[node]
        if above > 0 and skipped[above]:
            parent[node] = parent[above]
    keep = ~hidden
    keep[0] = True
    nodes = np.flatnonzero(keep)
    number = np.cumsum(keep) - 1
    above = np.array(parent, dtype=np.int64)[nodes]
    above[1:] = number[above[1:]]
    short = Tree.from_parents(above)
    return nodes[short.order], short


def _sweep(
    tree: Tree, h: FloatArray, v: FloatArray, tol: float, max_sweeps: int
) -> tuple[FloatArray, int]:
    """Sweeps of local corrections of ``h`` until every family agrees within ``tol``."""
    total = tree.child_sums(v) + v
    infinite = np.isinf(v).astype(np.float64)
    n_infinite = tree.child_sums(infinite)
    above = tree.parent[1:]
    with np.errstate(invalid="ignore", divide="ignore"):
        down = np.where(
            n_infinite[above] > 0, infinite[1:] / n_infinite[above], v[1:] / total[above]
        )
        up = np.where(n_infinite > 0, 0.0, v / total)
    # Families of exact counts are not corrected, nor is a root that was not measured.
    down, up = np.nan_to_num(down), np.nan_to_num(up)
    parents = ~tree.is_leaf & (total > 0) & np.isfinite(v)
    down[np.isinf(v)[above]] = 0.0
    down = np.concatenate([[0.0], down])
    for n_sweeps in range(max_sweeps + 1):
        gaps = h - tree.child_sums(h)
        if not (np.abs(gaps[parents]) >= tol).any():
            return h, n_sweeps
        if n_sweeps == max_sweeps:
            break
        for family in reversed(tree.families):
            gap = h[family.parents] - np.add.reduceat(h[family.children], family.starts)
            h[family.parents] -= up[family.parents] * gap
            h[family.children] += down[family.children] * np.repeat(gap, family.sizes)
    warn_after_charge(
        f"GBLUE did not reach the tolerance {tol:g} in {max_sweeps} sweeps; the two-pass method "
        "(skdp.hierarchy.Blue) is exact.",
        RuntimeWarning,
    )
    return h, max_sweeps


def boost(values: ArrayLike, branching: int) -> FloatArray:
    """Hay et al.'s closed form for a perfect tree with equal variances.

    Parameters
    ----------
    values : array-like, shape (n_nodes,)
        Noisy counts of `perfect_tree(branching, height)`, in level order.
    branching : int

    Returns
    -------
    ndarray of float64, shape (n_nodes,)

    Raises
    ------
    ValueError
        If the number of nodes is not that of a perfect tree.
    """
    k = as_integer(branching, "branching", 2)
    y = np.asarray(values, dtype=np.float64)
    sizes = [1]
    while sum(sizes) < y.size:
        sizes.append(sizes[-1] * k)
    if y.ndim != 1 or sum(sizes) != y.size:
        raise ValueError(
            f"A perfect tree of branching {k} cannot have {y.size} nodes (shape {y.shape})."
        )
    levels = np.split(y, np.cumsum(sizes)[:-1])
    z = [levels[-1]]
    power = float(k)
    for level in reversed(levels[:-1]):
        sums = z[0].reshape(-1, k).sum(axis=1)
        z.insert(0, ((k * power - power) * level + (power - 1) * sums) / (k * power - 1))
        power *= k
    x = [z[0]]
    for below in z[1:]:
        families = below.reshape(-1, k)
        x.append((families + ((x[-1] - families.sum(axis=1)) / k)[:, None]).ravel())
    return np.concatenate(x)
