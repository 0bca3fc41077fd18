"""`Taxonomy`: nested groups of categories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._validation import Category, IntArray, as_integer, plain_category, some
from ..exceptions import DomainError


class Taxonomy:
    """A tree of nested groups over an ordered list of leaves.

    Made by :meth:`from_tree`. Nodes are numbered level by level, the root is node 0; leaves are
    ordered depth first, so that the leaves below any node are consecutive.

    Attributes
    ----------
    labels : tuple
        Label of each node. Leaves are labelled by category.
    parents : ndarray of shape (n_nodes,)
        Parent of each node, -1 for the root.
    depths : ndarray of shape (n_nodes,)
        Number of edges from the root.
    height : int
        Number of edges from the root to the deepest leaf.
    first, last : ndarray of shape (n_nodes,)
        The leaves below node i are ``leaves[first[i]:last[i]]``.
    leaves : tuple
        Labels of the leaves.
    """

    def __init__(self, labels: Sequence[Category], parents: ArrayLike) -> None:
        """Build from node labels and parent numbers, level by level from the root."""
        above = [as_integer(parent, "Taxonomy parent") for parent in np.asarray(parents)]
        before = all(0 <= parent < node for node, parent in enumerate(above) if node)
        if len(labels) != len(above) or above[:1] != [-1] or not before or above != sorted(above):
            how = "level by level from the root, each after its parent, in the order of the parents"
            raise DomainError(f"A taxonomy needs one parent for each node. They stand {how}.")
        self.labels = tuple(plain_category(label, "Taxonomy label") for label in labels)
        self.parents = np.array(above)
        # Leaves below each node, bottom up; then the place of its first leaf, top down.
        width = (~np.isin(np.arange(len(above)), self.parents)).astype(np.int64)
        leaves = np.flatnonzero(width)
        for position in range(len(above) - 1, 0, -1):
            width[self.parents[position]] += width[position]
        self.depths, self.first, taken = np.zeros((3, len(above)), dtype=np.int64)
        for position, parent in enumerate(above[1:], start=1):
            self.depths[position] = self.depths[parent] + 1
            self.first[position] = self.first[parent] + taken[parent]
            taken[parent] += width[position]
        self.last, self.height = self.first + width, int(self.depths.max())
        leaves = leaves[np.argsort(self.first[leaves])]
        self.leaves = tuple(self.labels[node] for node in leaves)
        if len(set(self.leaves)) != len(self.leaves):
            repeated = [x for x in dict.fromkeys(self.leaves) if self.leaves.count(x) > 1]
            how = "groups must be nested or disjoint"
            raise DomainError(f"Taxonomy leaves {some(repeated)} occur more than once: {how}.")

    @classmethod
    def from_tree(cls, tree: Any) -> Taxonomy:
        """Build from nested mappings and lists, for example ``{"Any": {"EU": ["FR", "DE"]}}``.

        Parameters
        ----------
        tree : mapping or sequence
            Keys of a mapping are groups, values what is below them: a mapping, a list (of leaves
            or again of mappings), a single leaf, or None for a key that is itself a leaf. The key
            of a mapping with one key is the root; otherwise a root labelled "Any" is put on top.

        Raises
        ------
        DomainError
            If a group is empty or a leaf occurs twice.
        """
        rooted = isinstance(tree, Mapping) and len(tree) == 1
        root, below = next(iter(tree.items())) if rooted else ("Any", tree)
        labels, above = [root], [-1]
        waiting: list[tuple[int, Any]] = [(0, below)]
        for node, part in waiting:
            single = isinstance(part, str | Mapping) or not isinstance(part, Iterable)
            branches: list[tuple[Any, Any]] = []
            for item in [part] if single else part:
                branches += item.items() if isinstance(item, Mapping) else [(item, None)]
            if not branches:
                raise DomainError(f"Taxonomy group {labels[node]!r} is empty.")
            for label, inner in branches:
                labels.append(label)
                above.append(node)
                if inner is not None:
                    waiting.append((len(labels) - 1, inner))
        return cls(labels, above)

    def cut(self, level: int) -> IntArray:
        """Nodes of one level, from left to right: a partition of the leaves.

        Parameters
        ----------
        level : int
            From 0 (the root) to ``height`` (the leaves). Leaves above the level belong to it.
        """
        is_leaf = ~np.isin(np.arange(len(self.labels)), self.parents)
        nodes = np.flatnonzero((self.depths == level) | (is_leaf & (self.depths < level)))
        return nodes[np.argsort(self.first[nodes])]

    def groups(self, level: int) -> IntArray:
        """Position in ``cut(level)`` of the node above each leaf, in the order of ``leaves``."""
        nodes = self.cut(level)
        return np.repeat(np.arange(len(nodes)), self.last[nodes] - self.first[nodes])

    def __repr__(self) -> str:
        return f"Taxonomy({len(self.leaves)} leaves, height {self.height}, root {self.labels[0]!r})"
