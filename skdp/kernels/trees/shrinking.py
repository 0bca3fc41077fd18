"""Shares of the classes in every node of a tree, from the noisy counts of its leaves; pruning."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import beta

from ..._types import FloatArray, IntArray
from .model import Node, TreeModel, parents_of

__all__ = ["plain_shares", "prune_errors", "prune_noise", "shrunk_shares", "summed"]

# Variance that the share of a class is expected to have between the children of a node.
_SPREAD = 0.03
# A split stays if it changes shares by this times what chance would.
_CHANCES = 4.0
# Confidence of C4.5's pessimistic errors.
_CONFIDENCE = 0.25


def summed(nodes: Sequence[Node | None], leaves: IntArray, values: FloatArray) -> FloatArray:
    """Sums over the leaves below each node.

    Parameters
    ----------
    nodes : sequence of Node or None
    leaves : ndarray of int
    values : ndarray of shape (n_leaves, ...)
    """
    sums = np.zeros((len(nodes), *values.shape[1:]))
    sums[leaves] = values
    parents = parents_of(nodes)
    for node in range(len(nodes) - 1, 0, -1):
        sums[parents[node]] += sums[node]
    return sums


def plain_shares(nodes: Sequence[Node | None], counts: FloatArray) -> FloatArray:
    """Shares of the counts; a node without any has those of its parent."""
    return shrunk_shares(nodes, counts, np.zeros(len(nodes)), spread=np.inf)


def shrunk_shares(
    nodes: Sequence[Node | None],
    counts: FloatArray,
    variances: FloatArray,
    n_trees: int = 1,
    *,
    spread: float = _SPREAD,
) -> FloatArray:
    """Shares of the counts, drawn towards those of the parent where noise or chance is large.

    Parameters
    ----------
    nodes : sequence of Node or None
    counts : ndarray of shape (n_nodes, n_classes)
        Noisy.
    variances : ndarray of shape (n_nodes,)
        Variance of the noise of each count.
    n_trees : int
        Of whose shares the mean is taken: their errors cancel in part.
    spread : float
        Variance of a share between siblings.
    """
    n_classes = counts.shape[1]
    parents = parents_of(nodes)
    shares = np.full(counts.shape, 1.0 / n_classes)
    for node, parent in enumerate(parents.tolist()):
        seen = np.maximum(counts[node], 0.0)
        before = shares[max(parent, 0)]
        if not seen.sum():
            shares[node] = before
            continue
        own = seen / seen.sum()
        if parent < 0 or np.isinf(spread):
            shares[node] = own
            continue
        size = max(counts[node].sum(), 1.0)
        chance = (before * (1.0 - before)).max() / size
        weight = spread / (spread + (chance + variances[node] / size**2) / n_trees)
        shares[node] = before + weight * (own - before)
    return shares


def prune_errors(model: TreeModel) -> TreeModel:
    """C4.5's pruning: a node becomes a leaf where that promises no more errors.

    Errors are pessimistic: upper limits of a binomial share, on noisy counts.
    """
    counts = np.maximum(model.class_counts, 0.0)
    sizes = counts.sum(axis=1)
    wrong = sizes - counts.max(axis=1)
    alone = sizes * beta.ppf(1.0 - _CONFIDENCE, wrong + 1.0, np.maximum(sizes - wrong, 1e-9))
    below = alone.copy()

    def useless(place: int, children: IntArray) -> bool:
        below[place] = below[children].sum()
        if alone[place] > below[place] + 0.1:
            return False
        below[place] = alone[place]
        return True

    return _prune(model, useless)


def prune_noise(model: TreeModel, variance: float) -> TreeModel:
    """Take away splits that change the shares by less than noise or chance would.

    Parameters
    ----------
    model : TreeModel
    variance : float
        Of the noise of the count of a class in a leaf.
    """
    sizes = np.maximum(model.class_counts, 0.0).sum(axis=1)

    def useless(place: int, children: IntArray) -> bool:
        moved = ((model.shares[children] - model.shares[place]) ** 2).sum(axis=1)
        # What records that are divided at random change, on average.
        chance = (len(children) - 1) * (1.0 - (model.shares[place] ** 2).sum())
        return bool(sizes[children] @ moved < _CHANCES * chance + 0.1 * np.sqrt(variance))

    return _prune(model, useless, leaves_only=True)


def _prune(
    model: TreeModel, useless: Callable[[int, IntArray], bool], leaves_only: bool = False
) -> TreeModel:
    """Make leaves of nodes, the deepest first, and renumber what is left."""
    nodes = list(model.nodes)
    for place in range(len(nodes) - 1, -1, -1):
        node = nodes[place]
        if node is None:
            continue
        children = np.unique(node.children)
        inner = any(nodes[child] is not None for child in children.tolist())
        if leaves_only and inner:
            continue
        if useless(place, children):
            nodes[place] = None
    return _reachable(nodes, model)


def _reachable(nodes: Sequence[Node | None], model: TreeModel) -> TreeModel:
    """The nodes below the root, with numbers of their own."""
    kept = np.zeros(len(nodes), dtype=bool)
    kept[0] = True
    for place, node in enumerate(nodes):
        if node is not None and kept[place]:
            kept[node.children] = True
    number = np.cumsum(kept) - 1
    left = tuple(
        None if node is None else Node(node.column, number[node.children])
        for node, stays in zip(nodes, kept, strict=True)
        if stays
    )
    return TreeModel(left, model.class_counts[kept], model.shares[kept])
