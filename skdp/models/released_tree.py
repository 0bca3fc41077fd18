"""A released decision tree: its conditions in words, as text, as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .._types import FloatArray, IntArray
from ..kernels.trees import TreeModel
from .grouping import Grouping

__all__ = ["ReleasedTree", "condition"]

# Groups that a condition names before it says how many more there are.
_MOST_NAMED = 4
# Leaves of a picture, two inches each: more could not be saved at usual resolutions.
_MOST_LEAVES = 100


@dataclass(frozen=True, eq=False)
class ReleasedTree:
    """A decision tree whose splits and counts are released; reading it is free.

    Attributes
    ----------
    columns : tuple of str
    classes : ndarray of shape (n_classes,)
    groupings : tuple
        The public groups of the values of each column.
    model : TreeModel
        Nodes, noisy counts and shares; node 0 is the root.
    """

    columns: tuple[str, ...]
    classes: np.ndarray
    groupings: tuple[Grouping, ...]
    model: TreeModel

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.model.nodes)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return sum(node is None for node in self.model.nodes)

    @property
    def depth(self) -> int:
        """Number of conditions on the longest path."""
        parents = self.model.parents()
        depths = np.zeros(len(parents), dtype=np.int64)
        for node in range(1, len(parents)):
            depths[node] = depths[parents[node]] + 1
        return int(depths.max())

    def importances(self) -> FloatArray:
        """Decrease of the Gini impurity by the splits of each column; they sum to 1, or are all 0.

        Returns
        -------
        ndarray of shape (n_columns,)
            From released counts and shares.
        """
        found = np.zeros(len(self.columns))
        sizes = np.maximum(self.model.class_counts, 0.0).sum(axis=1)
        gini = 1.0 - (self.model.shares**2).sum(axis=1)
        for place, node in enumerate(self.model.nodes):
            if node is not None:
                children = np.unique(node.children)
                weights = sizes[children]
                if weights.sum() > 0:
                    left = weights @ gini[children] / weights.sum()
                    found[node.column] += weights.sum() * max(gini[place] - left, 0.0)
        total = found.sum()
        return found / total if total > 0 else found

    def branches(self, node: int) -> Iterator[tuple[int, str]]:
        """Children of a node, each with its condition in words.

        Parameters
        ----------
        node : int

        Yields
        ------
        child : int
        condition : str
        """
        inner = self.model.nodes[node]
        if inner is None:
            return
        grouping = self.groupings[inner.column]
        for child in np.unique(inner.children).tolist():
            here = np.flatnonzero(inner.children == child)
            yield child, condition(self.columns[inner.column], grouping, here)

    def leaf_text(self, node: int) -> str:
        """The class of a node, its share, and the released number of records."""
        share = self.model.shares[node]
        best = int(np.argmax(share))
        size = max(float(self.model.class_counts[node].sum()), 0.0)
        return f"{self.classes[best]} ({share[best]:.0%} of about {size:,.0f})"

    def to_text(self, max_depth: int | None = None) -> str:
        """The tree as text, like scikit-learn's ``export_text``.

        Parameters
        ----------
        max_depth : int, default=None
            Deeper conditions are left out, and the nodes above them shown like leaves. None: all.

        Returns
        -------
        str
        """
        if self.model.nodes[0] is None or max_depth == 0:
            return f"|--- {self.leaf_text(0)}\n"
        return "".join(f"{line}\n" for line in self._lines(0, 0, max_depth))

    def _lines(self, node: int, level: int, max_depth: int | None) -> Iterator[str]:
        indent = "|   " * level
        for child, words in self.branches(node):
            yield f"{indent}|--- {words}"
            if self.model.nodes[child] is None or level + 1 == max_depth:
                yield f"{indent}|   |--- {self.leaf_text(child)}"
            else:
                yield from self._lines(child, level + 1, max_depth)

    def plot(self, max_depth=3, *, ax=None, title=""):
        """Draw the tree.

        Parameters
        ----------
        max_depth : int, default=3
            Deeper conditions are left out, and so are levels with which the picture would have
            more than 100 leaves. The first level is always drawn.
        ax : matplotlib Axes, default=None
            None: those of a new figure.
        title : str, default=""
            Above the picture.

        Returns
        -------
        matplotlib Axes
        """
        from ..plotting import plot_tree

        max_depth = self._drawable(max_depth)
        rows = [(0, -1, 0, "", self._drawn(0, 0, max_depth))]
        waiting = [(0, 0)]
        while waiting:
            node, level = waiting.pop()
            if level == max_depth:
                continue
            for child, words in self.branches(node):
                rows.append(
                    (child, node, level + 1, words, self._drawn(child, level + 1, max_depth))
                )
                waiting.append((child, level + 1))
        return plot_tree(rows, title=title, ax=ax)

    def _drawable(self, max_depth: int) -> int:
        """At most so many levels that a picture has room for their leaves."""
        ends, depth, here = 0, 0, [0]
        while here and depth < max_depth:
            below = [[child for child, _ in self.branches(node)] for node in here]
            ends += sum(not children for children in below)
            here = [child for children in below for child in children]
            if depth and ends + len(here) > _MOST_LEAVES:
                return depth
            depth += 1
        return max_depth

    def _drawn(self, node: int, level: int, max_depth: int) -> str:
        """Text in a box: leaves say their class."""
        inner = self.model.nodes[node]
        if inner is None or level == max_depth:
            return self.leaf_text(node)
        return self.columns[inner.column]


def condition(column: str, grouping: Grouping, groups: IntArray) -> str:
    """Which values of a column belong to some of its groups, in words.

    Parameters
    ----------
    column : str
    grouping : Grouping
    groups : ndarray of int
        Ascending.
    """
    chain = [] if grouping.chain is None else list(grouping.chain)
    places = sorted(chain.index(group) for group in groups.tolist() if group in chain)
    others = [grouping.labels[group] for group in groups.tolist() if group not in chain]
    run = bool(places) and places == list(range(places[0], places[-1] + 1))
    if run and grouping.edges is not None:
        low, high = places[0], places[-1] + 1
        words = _between(column, grouping, low, high, len(chain))
        return " or ".join([words, *others[:_MOST_NAMED]])
    rest = np.setdiff1d(np.arange(len(grouping.labels)), groups)
    if len(rest) == 1 and len(groups) > 1:
        return f"{column} is not {grouping.labels[rest[0]]}"
    ordered = [*(chain[place] for place in places), *np.setdiff1d(groups, chain).tolist()]
    names = [grouping.labels[group] for group in ordered]
    more = f" or {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{column} is {' or '.join(names[:_MOST_NAMED])}{more}"


def _between(column: str, grouping: Grouping, low: int, high: int, n_groups: int) -> str:
    """Numbers between two borders; dates by the labels of their bins, which say them in words."""
    assert grouping.edges is not None
    labels: Sequence[str] = [grouping.labels[group] for group in grouping.chain or []]
    if " to " in labels[0]:
        first, last = labels[low].split(" to ")[0], labels[high - 1].split(" to ")[-1]
        if low == 0:
            return f"{column} <= {last}"
        return f"{column} >= {first}" if high == n_groups else f"{first} <= {column} <= {last}"
    start, end = (f"{grouping.edges[place]:.6g}" for place in (low, high))
    if low == 0:
        return f"{column} < {end}" if high < n_groups else f"{column} is a number"
    return f"{column} >= {start}" if high == n_groups else f"{start} <= {column} < {end}"
