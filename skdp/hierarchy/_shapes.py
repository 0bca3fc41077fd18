"""Trees of regular shapes: perfect, near-balanced, with given levels, and with one more bin."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._arrays import exclusive_cumsum, running_sums
from .._types import FloatArray, IntArray
from ._tree import Tree

__all__ = ["balanced_tree", "level_tree", "perfect_tree", "with_extra_bin"]


def _stack(parents: list[IntArray], lowers: list[IntArray], uppers: list[IntArray]) -> Tree:
    """Tree from its levels; parents are numbered within their level."""
    starts = running_sums(np.array([len(level) for level in lowers]))
    above = [np.array([-1])]
    above += [parents[i] + starts[i - 1] for i in range(1, len(lowers))]
    n = int(starts[-1])
    return Tree(np.concatenate(above), np.concatenate(lowers), np.concatenate(uppers), np.arange(n))


def perfect_tree(branching: int, height: int) -> Tree:
    """Perfect tree: ``height`` levels below the root, ``branching**height`` leaves.

    Raises
    ------
    ValueError
        If ``branching < 2`` or ``height < 0``.
    """
    k = as_branching(branching)
    if height < 0:
        raise ValueError(f"height must not be negative, got {height}.")
    parents, lowers, uppers = [], [], []
    for level in range(height + 1):
        nodes = np.arange(k**level, dtype=np.int64)
        parents.append(nodes // k)
        lowers.append(nodes * k ** (height - level))
        uppers.append((nodes + 1) * k ** (height - level))
    return _stack(parents, lowers, uppers)


def balanced_tree(n_bins: int, branching: int) -> Tree:
    """Near-balanced tree over any number of bins (the k-range tree of the GBLUE paper).

    A node of more than ``branching`` bins has ``branching`` children whose sizes differ by at
    most one; a smaller node has one child for each bin.

    Raises
    ------
    ValueError
        If ``n_bins < 1`` or ``branching < 2``.
    """
    k = as_branching(branching)
    lower, upper = np.zeros(1, dtype=np.int64), np.array([as_n_bins(n_bins)], dtype=np.int64)
    parents, lowers, uppers = [np.zeros(1, dtype=np.int64)], [lower], [upper]
    while True:
        size = upper - lower
        parts = np.where(size > 1, np.minimum(size, k), 0)
        parent = np.repeat(np.arange(len(size)), parts)
        if not len(parent):
            return _stack(parents, lowers, uppers)
        rank = np.arange(len(parent)) - np.repeat(exclusive_cumsum(parts), parts)
        begin, size, parts = lower[parent], size[parent], parts[parent]
        lower, upper = begin + rank * size // parts, begin + (rank + 1) * size // parts
        parents.append(parent)
        lowers.append(lower)
        uppers.append(upper)


def level_tree(n_bins: int, counts: Sequence[int]) -> Tree:
    """Tree with a given number of near-equal nodes on each level.

    Parameters
    ----------
    n_bins : int
    counts : sequence of int
        Numbers of nodes, increasing, each dividing the next; the last is always ``n_bins``
        (appended if missing), which the others need not divide. A root is put on top.

    Raises
    ------
    ValueError
        If the counts do not nest.
    """
    n = as_n_bins(n_bins)
    levels = sorted({1, n, *(int(count) for count in counts)})
    inner = levels[:-1]
    if (
        levels[0] < 1
        or levels[-1] > n
        or any(b % a for a, b in zip(inner, inner[1:], strict=False))
    ):
        raise ValueError(
            f"counts must lie in 1..{n} and each divide the next (the number of bins excepted), "
            f"got {list(counts)}."
        )
    parents, lowers, uppers = [], [], []
    above = np.zeros(1, dtype=np.int64)
    for count in levels:
        edges = np.arange(count + 1, dtype=np.int64) * n // count
        parents.append(np.searchsorted(above, edges[:-1], side="right") - 1)
        lowers.append(edges[:-1])
        uppers.append(edges[1:])
        above = edges[:-1]
    return _stack(parents, lowers, uppers)


def with_extra_bin(tree: Tree, shares: FloatArray) -> tuple[Tree, FloatArray]:
    """Append one bin that belongs to no range (for missing values): a leaf below the root.

    Parameters
    ----------
    tree : Tree
    shares : ndarray of float64, shape (n_nodes,)
        Share of epsilon of each node; the new leaf gets all that remains after the root.

    Returns
    -------
    tree : Tree
    shares : ndarray of float64
    """
    n = tree.n_bins
    if tree.n_nodes == 1:
        both = Tree.from_intervals([(0, n + 1), (0, n), (n, n + 1)])
        return both, np.array([0.0, shares[0], 1.0])
    at = int(tree.level_starts[2])
    parent = np.insert(tree.parent + (tree.parent >= at), at, 0)
    upper = np.insert(tree.upper, at, n + 1)
    upper[0] = n + 1
    longer = Tree(parent, np.insert(tree.lower, at, n), upper, np.arange(tree.n_nodes + 1))
    return longer, np.insert(shares, at, 1.0 - shares[0])


def as_branching(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 2:
        raise ValueError(f"branching must be an integer of at least 2, got {value!r}.")
    return int(value)


def as_n_bins(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"n_bins must be a positive integer, got {value!r}.")
    return int(value)
