"""Consistent counts without negative ones: projections onto simplices, from the top down."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import exclusive_cumsum
from .._types import FloatArray
from ._blue import Blue
from ._tree import Family, Tree

__all__ = ["non_negative", "project_to_simplex"]


def project_to_simplex(values: ArrayLike, total: float) -> FloatArray:
    """Nearest point of {x >= 0, sum = total} by least squares; zeros if there is no such point.

    Parameters
    ----------
    values : array-like
    total : float

    Returns
    -------
    ndarray of float64, of the shape of ``values``
    """
    v = np.asarray(values, dtype=np.float64)
    if total <= 0:
        return np.zeros(v.shape)
    ordered = np.sort(v, axis=None)[::-1]
    shift = (np.cumsum(ordered) - total) / np.arange(1, v.size + 1)
    last = int(np.flatnonzero(ordered > shift)[-1])
    return np.maximum(v - shift[last], 0.0)


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
    if tree.is_deep and not even:
        _fill_deep(tree, out, z.tolist(), s.tolist())
        return out
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


def _fill_deep(tree: Tree, out: FloatArray, z: list[float], s: list[float]) -> None:
    """The projections of `non_negative` in plain loops."""
    first, number = tree.first_child.tolist(), tree.n_children.tolist()
    x = out.tolist()
    for node in range(tree.n_nodes):
        active = list(range(first[node], first[node] + number[node]))
        total = x[node]
        while active:
            weight = sum(s[child] for child in active)
            shift = (total - sum(z[child] for child in active)) / weight
            rest = []
            for child in active:
                x[child] = max(z[child] + s[child] * shift, 0.0)
                if z[child] + s[child] * shift >= 0:
                    rest.append(child)
            if len(rest) == len(active):
                break
            active = rest
    out[:] = x
