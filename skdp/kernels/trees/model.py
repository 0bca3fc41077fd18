"""A released tree: its splits, its noisy counts, and the shares of the classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._types import FloatArray, IntArray

__all__ = ["Node", "TreeModel"]


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
