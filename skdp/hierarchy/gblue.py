"""Two published methods for consistent counts: the sweeps of GBLUE, and Boost for perfect trees.

Both agree with `Blue`, which is exact in two passes on any tree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._random import warn_after_charge
from .._validation import BoolArray, FloatArray, IntArray, as_integer
from .blue import as_values, as_variances
from .tree import Tree


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
    h, n_sweeps = _sweep(short, y[kept], v[kept], bool(hidden[0]), tol, max_sweeps)
    start = np.zeros(tree.n_nodes)
    start[kept] = h
    start[hidden] = 0.0
    return tree.sum_up(start, gain=hidden.astype(np.float64)), n_sweeps


def _without_hidden(tree: Tree, hidden: BoolArray) -> tuple[IntArray, Tree]:
    """The tree without its unmeasured inner nodes (but with the root), and the nodes kept."""
    if not hidden[1:].any():
        return np.arange(tree.n_nodes), tree
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
    tree: Tree, h: FloatArray, v: FloatArray, free_root: bool, tol: float, max_sweeps: int
) -> tuple[FloatArray, int]:
    """Sweeps of local corrections until every family agrees within ``tol``."""
    if tree.n_nodes == 1:
        return h, 0
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
    parents = ~tree.is_leaf & (total > 0)
    if free_root:
        parents[0] = False
        down[above == 0] = 0.0
        up[0] = 0.0
    h = h.copy()
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
