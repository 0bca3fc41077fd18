"""Rooted trees over bins, as arrays, and the two sweeps that all algorithms on trees use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order

from .._validation import (
    BoolArray,
    FloatArray,
    IntArray,
    as_integer,
    exclusive_cumsum,
    running_sums,
)


class Family(NamedTuple):
    """All parents of one level, and their children: the whole next level."""

    parents: Any
    children: slice
    starts: NDArray[np.intp]
    sizes: NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """A rooted tree over consecutive positions (bins), as arrays in level order.

    Use :meth:`from_parents`, :meth:`from_intervals`, `perfect_tree`, `balanced_tree` or
    `level_tree`; the constructor takes the arrays as they are stored, and checks them. They are
    copied and read-only.

    Parameters
    ----------
    parent : ndarray of int64, shape (n_nodes,)
        Parent of each node, -1 for the root, which is node 0. Non-decreasing.
    lower, upper : ndarray of int64, shape (n_nodes,)
        Node i holds the bins ``lower[i] <= bin < upper[i]``.
    order : ndarray of int64, shape (n_nodes,)
        Number of each node in the caller's numbering.

    Raises
    ------
    ValueError
        If the nodes are not in level order, or the children of some node do not tile it: the cost
        of a record is computed along one path, which is correct only if no two nodes of a level
        overlap.
    """

    parent: IntArray
    lower: IntArray
    upper: IntArray
    order: IntArray

    def __post_init__(self) -> None:
        for name in ("parent", "lower", "upper", "order"):
            # Copied into read-only memory; setting the writeable flag does not help.
            array = _integers(getattr(self, name), name)
            object.__setattr__(self, name, np.frombuffer(array.tobytes(), dtype=np.int64))
        _check_tree(self.parent, self.lower, self.upper, self.order)

    @classmethod
    def _bare(cls, parent: IntArray) -> Tree:
        """The shape of a tree whose intervals are not known yet, unchecked."""
        tree: Tree = object.__new__(cls)
        for name in ("parent", "lower", "upper", "order"):
            object.__setattr__(tree, name, parent)
        return tree

    def __reduce__(self) -> tuple[Any, ...]:
        # Derived arrays are left out.
        return Tree, (self.parent, self.lower, self.upper, self.order)

    @classmethod
    def from_parents(cls, parent: ArrayLike) -> Tree:
        """Build from the parent of each node; leaves become bins, from left to right.

        Parameters
        ----------
        parent : array-like of int, shape (n_nodes,)
            -1 for the root. Nodes may come in any order; siblings keep theirs.

        Raises
        ------
        ValueError
            If there is not exactly one root, a parent does not exist, or there is a cycle.
        """
        given = _integers(parent, "parent")
        order = _level_order(given)
        position = np.empty(len(given), dtype=np.int64)
        position[order] = np.arange(len(given))
        above = given[order]
        above[1:] = position[above[1:]]
        lower, upper = cls._bare(above)._leaf_ranges()
        return cls(above, lower, upper, order)

    @classmethod
    def from_intervals(cls, intervals: Iterable[tuple[int, int]]) -> Tree:
        """Build from nested half-open intervals ``(lower, upper)`` of bins, in any order.

        The parent of an interval is the smallest one that contains it. An interval given twice
        is measured twice. A leaf may hold several bins.

        Raises
        ------
        ValueError
            If intervals overlap without being nested, the children of one leave a gap in it, no
            interval holds all others, or the widest does not begin at 0.
        """
        pairs = np.asarray(list(intervals))
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise ValueError(
                "intervals must be pairs of integers (lower, upper), upper exclusive, got an "
                f"array of shape {pairs.shape} and dtype {pairs.dtype}."
            )
        # Outer intervals first; of each, those that are still open are its ancestors.
        low, high = pairs.astype(np.int64).T
        order = np.lexsort((-high, low))
        low, high = low[order], high[order]
        parent = np.full(len(pairs), -1)
        ancestors: list[int] = []
        for node, (start, stop) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
            while ancestors and start >= high[ancestors[-1]]:
                ancestors.pop()
            parent[node] = ancestors[-1] if ancestors else -1
            if stop > start:
                ancestors.append(node)
        shape = cls.from_parents(parent)
        return cls(shape.parent, low[shape.order], high[shape.order], order[shape.order])

    # -- sizes

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.parent)

    @property
    def n_bins(self) -> int:
        """Number of bins that the root holds."""
        return int(self.upper[0])

    @property
    def n_levels(self) -> int:
        """Number of levels; the root is the first."""
        return len(self.level_starts) - 1

    def __repr__(self) -> str:
        return (
            f"Tree({self.n_nodes} nodes, {len(self.leaves)} leaves over {self.n_bins} bins, "
            f"{self.n_levels} levels)"
        )

    # -- derived structure

    @cached_property
    def n_children(self) -> IntArray:
        """Number of children of each node."""
        return np.bincount(self.parent[1:], minlength=self.n_nodes)

    @cached_property
    def above(self) -> IntArray:
        """Parent of each node; the root is its own."""
        return np.maximum(self.parent, 0)

    @cached_property
    def first_child(self) -> IntArray:
        """First child of each node; for a leaf, where its children would be."""
        return 1 + exclusive_cumsum(self.n_children)

    @cached_property
    def level_starts(self) -> IntArray:
        """First node of each level, and the number of nodes."""
        behind = (self.first_child + self.n_children).tolist()
        starts = [0, 1]
        while starts[-1] < self.n_nodes:
            starts.append(behind[starts[-1] - 1])
        return np.array(starts, dtype=np.int64)

    @cached_property
    def depth(self) -> IntArray:
        """Number of edges from the root to each node."""
        return np.repeat(np.arange(self.n_levels), np.diff(self.level_starts))

    @cached_property
    def is_leaf(self) -> BoolArray:
        """Whether each node has no children."""
        return self.n_children == 0

    @cached_property
    def leaves(self) -> IntArray:
        """Nodes of the leaves, from left to right."""
        nodes = np.flatnonzero(self.is_leaf)
        return nodes[np.argsort(self.lower[nodes], kind="stable")]

    @cached_property
    def leaf_widths(self) -> IntArray:
        """Number of bins in each leaf, from left to right."""
        return self.upper[self.leaves] - self.lower[self.leaves]

    @cached_property
    def families(self) -> list[Family]:
        """Parents and children of each level but the last, top down."""
        starts = self.level_starts
        families = []
        for level in range(self.n_levels - 1):
            first, stop = int(starts[level]), int(starts[level + 1])
            inner = np.flatnonzero(self.n_children[first:stop]) + first
            parents: Any = slice(first, stop) if len(inner) == stop - first else inner
            families.append(
                Family(
                    parents,
                    slice(stop, int(starts[level + 2])),
                    self.first_child[inner] - stop,
                    self.n_children[inner],
                )
            )
        return families

    def _leaf_ranges(self) -> tuple[IntArray, IntArray]:
        """Leaves below each node, as a range of leaf numbers from left to right."""
        width = self.sum_up(self.is_leaf.astype(np.float64))
        before = exclusive_cumsum(width)
        # Leaves of earlier siblings; the first child has none.
        shift = before - before[np.minimum(self.first_child[self.parent], self.n_nodes - 1)]
        shift[0] = 0.0
        lower = self.spread_down(shift).astype(np.int64)
        return lower, lower + width.astype(np.int64)

    def per_node(self, values: ArrayLike, name: str) -> FloatArray:
        """A copy of one float for each node; ValueError if there are more or fewer."""
        found = np.array(values, dtype=np.float64)
        if found.shape != (self.n_nodes,):
            raise ValueError(
                f"{name} must have one entry for each of the {self.n_nodes} nodes, got shape "
                f"{found.shape}."
            )
        return found

    # -- the two sweeps that all algorithms use

    def sum_up(
        self,
        start: FloatArray,
        weight: FloatArray | None = None,
        gain: FloatArray | None = None,
    ) -> FloatArray:
        """Solve ``x[v] = start[v] + gain[v] * sum over children u of weight[u] * x[u]``.

        Parameters
        ----------
        start : ndarray of float64, shape (n_nodes,) or (n_nodes, m)
        weight, gain : ndarray of float64, shape (n_nodes,), optional
            Ones by default.

        Returns
        -------
        ndarray of the shape of ``start``
        """
        out = np.array(start, dtype=np.float64)
        for family in reversed(self.families):
            below = out[family.children]
            if weight is not None:
                below = below * column(weight[family.children], out.ndim)
            total = np.add.reduceat(below, family.starts, axis=0)
            if gain is not None:
                total *= column(gain[family.parents], out.ndim)
            out[family.parents] += total
        return out

    def spread_down(self, start: FloatArray, weight: FloatArray | None = None) -> FloatArray:
        """Solve ``x[u] = start[u] + weight[u] * x[parent of u]``.

        Parameters
        ----------
        start : ndarray of float64, shape (n_nodes,) or (n_nodes, m)
        weight : ndarray of float64, shape (n_nodes,), optional
            Ones by default.

        Returns
        -------
        ndarray of the shape of ``start``
        """
        out = np.array(start, dtype=np.float64)
        for family in self.families:
            above = np.repeat(out[family.parents], family.sizes, axis=0)
            if weight is not None:
                above *= column(weight[family.children], out.ndim)
            out[family.children] += above
        return out

    def fold_up(
        self, start: FloatArray, combine: Callable[[Any, FloatArray], FloatArray]
    ) -> FloatArray:
        """Replace the start of every parent by a function of the sum over its children.

        Parameters
        ----------
        start : ndarray of float64, shape (n_nodes,)
            Values of the leaves; those of parents are not used.
        combine : callable
            ``combine(nodes, sums)`` gives the values of several parents.

        Returns
        -------
        ndarray of float64, shape (n_nodes,)
        """
        out = np.array(start, dtype=np.float64)
        for family in reversed(self.families):
            sums = np.add.reduceat(out[family.children], family.starts)
            out[family.parents] = combine(family.parents, sums)
        return out

    def child_sums(self, values: FloatArray) -> FloatArray:
        """Sum over the children of each node, shape (n_nodes,); 0 at leaves."""
        sums = np.bincount(self.parent[1:], weights=values[1:], minlength=self.n_nodes)
        return sums.astype(np.float64, copy=False)

    def node_counts(self, bin_counts: ArrayLike) -> NDArray[Any]:
        """Exact count of each node, shape (n_nodes,), from one count per bin."""
        counts = np.asarray(bin_counts)
        if counts.shape != (self.n_bins,):
            raise ValueError(
                f"bin_counts must have one entry for each of the {self.n_bins} bins, got shape "
                f"{counts.shape}."
            )
        before = running_sums(counts)
        return before[self.upper] - before[self.lower]

    def leaf_weights(self, bin_weights: ArrayLike) -> FloatArray:
        """Mean of weights over the bins of each leaf; shape (n_leaves,) or (n_leaves, m)."""
        weights = np.asarray(bin_weights, dtype=np.float64)
        if len(weights) != self.n_bins:
            raise ValueError(
                f"Weights must have one row for each of the {self.n_bins} bins, got {len(weights)}."
            )
        sums = np.add.reduceat(weights, self.lower[self.leaves], axis=0)
        return sums / column(self.leaf_widths, weights.ndim)

    def overlaps(self, start: NDArray[Any], stop: NDArray[Any]) -> FloatArray:
        """Share of each leaf that each range of bins covers, shape (n_leaves, m)."""
        low = self.lower[self.leaves][:, None]
        high = self.upper[self.leaves][:, None]
        covered = np.minimum(high, stop) - np.maximum(low, start)
        return np.maximum(covered, 0.0) / (high - low)


def _integers(values: ArrayLike, name: str) -> IntArray:
    array = np.asarray(values)
    if array.ndim != 1 or not len(array) or array.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be a non-empty one-dimensional array of integers, got shape "
            f"{array.shape} and dtype {array.dtype}."
        )
    return array.astype(np.int64)


def _check_tree(parent: IntArray, lower: IntArray, upper: IntArray, order: IntArray) -> None:
    """Raise ValueError unless the arrays are a tree of tiles in level order; linear time."""
    n = len(parent)
    if not n == len(lower) == len(upper) == len(order):
        raise ValueError(
            "parent, lower, upper and order must have one entry for each node, got "
            f"{n}, {len(lower)}, {len(upper)} and {len(order)}."
        )

    def refuse(bad: BoolArray, rule: str) -> None:
        if bad.any():
            node = int(np.argmax(bad))
            above = max(int(parent[node]), 0) % n
            raise ValueError(
                f"[{lower[node]}, {upper[node]}), node {node}, below [{lower[above]}, "
                f"{upper[above]}) breaks the rule that {rule}. Intervals are half-open, (lower, "
                "upper); Tree.from_intervals and Tree.from_parents bring nodes into order."
            )

    # Parents before their children, which excludes cycles, and siblings side by side.
    places = np.arange(n)
    refuse((parent < 0) != (places == 0), "node 0, and no other, is the root")
    refuse(parent >= places, "a parent comes before its children")
    refuse(np.diff(parent, prepend=-1) < 0, "nodes come in the order of their parents")
    refuse(lower >= upper, "a node holds at least one bin")
    refuse((places == 0) & (lower != 0), "the root begins at bin 0")
    # Each child begins where its sibling before it ends, or with its parent, and the last ends
    # with its parent: every bin of a node is in one of its children.
    first = np.diff(parent, prepend=-2) != 0
    last = np.append(first[1:], True)
    above = np.maximum(parent, 0)
    begin = np.where(first, lower[above], np.roll(upper, 1))
    refuse(lower != begin, "the children of a node tile it from left to right")
    refuse(last & (upper != upper[above]), "the last child of a node ends where the node does")
    if (np.sort(order) != places).any():
        raise ValueError(f"order must hold each of the numbers 0 to {n - 1} once.")


def column(values: NDArray[Any], ndim: int) -> NDArray[Any]:
    """Values of each node, shaped to multiply an array of so many dimensions."""
    return values if ndim == 1 else values[:, None]


def _level_order(parent: IntArray) -> NDArray[Any]:
    """Nodes breadth first, siblings in their order; ValueError if it is not a tree."""
    n = len(parent)
    roots = np.flatnonzero(parent == -1)
    if len(roots) != 1:
        raise ValueError(
            f"A tree needs exactly one root (parent -1), found {len(roots)}: {roots[:5].tolist()}."
        )
    wrong = np.flatnonzero((parent < -1) | (parent >= n))
    if wrong.size:
        bad = int(wrong[0])
        raise ValueError(f"Node {bad} has the parent {parent[bad]}, which is not in 0..{n - 1}.")
    child = np.argsort(parent, kind="stable")[1:]
    pointers = running_sums(np.bincount(parent[child], minlength=n))
    graph = csr_matrix((np.ones(n - 1), child, pointers), shape=(n, n))
    order = breadth_first_order(graph, int(roots[0]), return_predecessors=False)
    if len(order) != n:
        bad = int(np.setdiff1d(np.arange(n), order)[0])
        raise ValueError(f"From node {bad} parents never lead to the root: there is a cycle.")
    return order.astype(np.int64)


# --- trees of regular shapes: perfect, near-balanced, with given levels, and with one more bin


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
    k = as_integer(branching, "branching", 2)
    levels = range(as_integer(height, "height", 0) + 1)
    return level_tree(k**height, [k**level for level in levels])


def balanced_tree(n_bins: int, branching: int) -> Tree:
    """Near-balanced tree over any number of bins (the k-range tree of the GBLUE paper).

    A node of more than ``branching`` bins has ``branching`` children whose sizes differ by at
    most one; a smaller node has one child for each bin.

    Raises
    ------
    ValueError
        If ``n_bins < 1`` or ``branching < 2``.
    """
    k = as_integer(branching, "branching", 2)
    n = as_integer(n_bins, "n_bins", 1)
    lower, upper = np.zeros(1, dtype=np.int64), np.array([n], dtype=np.int64)
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
    n = as_integer(n_bins, "n_bins", 1)
    levels = sorted({1, n, *(int(count) for count in counts)})
    if levels[0] < 1 or levels[-1] > n or any(b % a for a, b in pairwise(levels[:-1])):
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
