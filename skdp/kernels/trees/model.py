"""A released tree: its splits, its noisy counts, and the shares of the classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._types import FloatArray, IntArray

__all__ = ["Node", "Splits", "TreeModel", "binary_splits", "one_split"]

# --- the public ways to divide the groups of a column


@dataclass(frozen=True, eq=False)
class Splits:
    """Ways to divide the groups of one column; public.

    Attributes
    ----------
    n_groups : int
    chain : ndarray of int or None
        Groups in an order: a split after each but the last. None: no such splits.
    alone : ndarray of int
        Groups that are split off from all others.
    apart : bool
        Whether there is one split instead, into all groups.
    """

    n_groups: int
    chain: IntArray
    alone: IntArray
    apart: bool = False

    def __len__(self) -> int:
        if self.apart:
            return int(self.n_groups > 1)
        return max(len(self.chain) - 1, 0) + len(self.alone)

    @property
    def n_children(self) -> int:
        """Number of children of each split."""
        return self.n_groups if self.apart else 2

    def divide(self, counts: IntArray) -> IntArray:
        """Counts of the children of every split.

        Parameters
        ----------
        counts : ndarray of shape (n_nodes, n_groups, n_classes)

        Returns
        -------
        ndarray of shape (n_nodes, n_splits, n_children, n_classes)
        """
        if self.apart:
            return counts[:, None]
        below = np.cumsum(counts[:, self.chain[:-1]], axis=1)
        left = np.concatenate([below, counts[:, self.alone]], axis=1)
        right = counts.sum(axis=1, keepdims=True) - left
        return np.stack([left, right], axis=2)

    def routes(self, split: int) -> IntArray:
        """Child of each group, (n_groups,)."""
        if self.apart:
            return np.arange(self.n_groups)
        child = np.ones(self.n_groups, dtype=np.int64)
        n_cuts = max(len(self.chain) - 1, 0)
        if split < n_cuts:
            child[self.chain[: split + 1]] = 0
        else:
            child[self.alone[split - n_cuts]] = 0
        return child


def binary_splits(n_groups: int, chain: Sequence[int] | None) -> Splits:
    """Cuts along the order, and each group without a place in it against all others.

    Parameters
    ----------
    n_groups : int
    chain : sequence of int or None
        The groups in their order; None if there is none.
    """
    ordered = np.array([] if chain is None else chain, dtype=np.int64)
    alone = np.setdiff1d(np.arange(n_groups), ordered)
    if n_groups == 2 and len(ordered) < 2:
        # Either group against the other is the same split.
        alone = alone[:1]
    return Splits(n_groups, ordered, alone if n_groups > 1 else alone[:0])


def one_split(n_groups: int) -> Splits:
    """One split, into all groups."""
    none = np.array([], dtype=np.int64)
    return Splits(n_groups, none, none, apart=True)


# --- the released tree


@dataclass(frozen=True, eq=False)
class Node:
    """An inner node.

    Attributes
    ----------
    column : int
    children : ndarray of int, shape (n_groups,)
        Node that the records of each group go to.
    """

    column: int
    children: IntArray


@dataclass(frozen=True, eq=False)
class TreeModel:
    """A tree; everything in it is released. A child has a larger number than its parent.

    Attributes
    ----------
    nodes : tuple of Node or None
        None for leaves.
    class_counts : ndarray of shape (n_nodes, n_classes)
        Noisy; those of an inner node are the sums of its children.
    shares : ndarray of shape (n_nodes, n_classes)
        Of the classes, between 0 and 1.
    """

    nodes: tuple[Node | None, ...]
    class_counts: FloatArray
    shares: FloatArray

    def reach(self, groups: IntArray) -> IntArray:
        """The node where each record ends: a leaf, or where its value has no group (-1).

        Parameters
        ----------
        groups : ndarray of int, shape (n, n_columns)
        """
        reached = np.zeros(len(groups), dtype=np.int64)
        # Children have larger numbers, so one pass is enough.
        waiting = {0: np.arange(len(groups))}
        for place, node in enumerate(self.nodes):
            mine = waiting.pop(place, None)
            if mine is None:
                continue
            reached[mine] = place
            if node is None or not len(mine):
                continue
            values = groups[mine, node.column]
            targets = np.where(values >= 0, node.children[values], -1)
            for child in np.unique(node.children).tolist():
                waiting[child] = mine[targets == child]
        return reached

    def parents(self) -> IntArray:
        """Parent of each node; -1 for the root."""
        return parents_of(self.nodes)


def parents_of(nodes: Sequence[Node | None]) -> IntArray:
    """Parent of each node; -1 for the root."""
    found = np.full(len(nodes), -1, dtype=np.int64)
    for place, node in enumerate(nodes):
        if node is not None:
            found[node.children] = place
    return found
