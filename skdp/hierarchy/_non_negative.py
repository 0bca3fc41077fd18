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


def non_negative(blue: Blue, values: ArrayLike) -> FloatArray:
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
    if tree.is_deep:
        _fill_deep(tree, out, z.tolist(), s.tolist())
        return out
    for family in tree.families:
        out[family.children] = _project(
            z[family.children],
            s[family.children],
            np.repeat(out[family.parents], family.sizes),
            family,
        )
    return out


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
