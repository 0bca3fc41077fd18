"""Fitting a decision tree: DiffPID3 and DiffPC-4.5 (Friedman and Schuster), and "auto"."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.stats import beta

from ..._arrays import integer_sums
from ..._random import sampling_generator
from ..._types import FloatArray, IntArray
from ..._validation import split_epsilon
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from ..additive import Records
from .growing import TUNING, Growth, make_quality
from .model import Node, Splits, TreeModel, parents_of

__all__ = [
    "ALGORITHMS",
    "auto_depth",
    "fit_forest",
    "fit_tree",
    "grow_tree",
    "plain_shares",
    "shrunk_shares",
    "tree_parts",
]

ALGORITHMS = ("auto", "id3", "c4.5")
# Scores of a level that are held at once.
_SCORES_ONCE = 2**23


def tree_parts(
    epsilon: Fraction, algorithm: str = "auto", max_depth: int | None = None
) -> dict[str, Fraction]:
    """Parts of epsilon: the numbers of records of the classes, and the tree.

    In the published algorithms such a count costs 1 of 2 (max_depth + 1) equal parts.
    """
    if algorithm == "auto" or max_depth is None:
        total = TUNING.total
    else:
        total = Fraction(1, 2 * (max_depth + 1))
    return split_epsilon(epsilon, {"total": total, "model": 1 - total})


def auto_depth(signal: float, menu: Sequence[Splits], asked: int | None = None) -> int:
    """Levels of splits, from released and public numbers: those that pay, or that were asked for.

    Parameters
    ----------
    signal : float
        Records times epsilon.
    menu : sequence of Splits
        With very many splits the scores of fewer levels fit into memory.
    asked : int or None
    """
    n_scores = max(sum(len(splits) for splits in menu), 1)
    fits = int(math.log2(max(_SCORES_ONCE / n_scores, 2.0)))
    if asked is not None:
        return min(asked, fits)
    depth = round(math.log2(max(signal, 2.0) / TUNING.leaf))
    return min(max(depth, 1), fits, TUNING.depth)


def fit_tree(
    records: Records,
    menu: Sequence[Splits],
    n_classes: int,
    parts: Mapping[str, Fraction],
    random_state: Any,
    *,
    algorithm: str = "auto",
    quality: str = "clipped",
    max_depth: int | None = None,
    prune: bool = True,
) -> tuple[TreeModel, FloatArray]:
    """Fit a tree to records.

    Parameters
    ----------
    records : Records
    menu : sequence of Splits
        The splits of each column.
    n_classes : int
    parts : mapping of str to Fraction
        See `tree_parts`.
    random_state : NoiseSource
    algorithm : {"auto", "id3", "c4.5"}
        The last two grow alike; only "c4.5" prunes.
    quality : {"max", "gini", "clipped", "information"}
    max_depth : int or None
        None, for "auto" only: as many levels as pay.
    prune : bool

    Returns
    -------
    model : TreeModel
    total : ndarray of shape (n_classes,)
        Released numbers of records of the classes.
    """
    # Privacy. Released: the classes of all records, then the tree, one after the other.
    total = _class_totals(records, n_classes, parts["total"], random_state)
    epsilon = parts["model"]
    growth = Growth(records, menu, n_classes)
    if algorithm == "auto":
        max_depth = auto_depth(float(total.sum()) * float(epsilon), menu, max_depth)
        model = grow_tree(growth, quality, epsilon, total, max_depth, prune, random_state)
        return model, total
    assert max_depth is not None
    model = _published(growth, quality, epsilon, total, max_depth, random_state)
    return (_prune_errors(model) if algorithm == "c4.5" and prune else model), total


def _class_totals(
    records: Records, n_classes: int, epsilon: Fraction, random_state: Any
) -> FloatArray:
    """Noisy number of records of each class."""
    # Privacy. A record is in one class: sensitivity 1.
    exact = integer_sums(records.labels, n_classes, records.counts)
    return discrete_laplace(exact, epsilon, random_state=random_state).astype(np.float64)


def grow_tree(
    growth: Growth,
    quality: str,
    epsilon: Fraction,
    total: FloatArray,
    depth: int,
    prune: bool,
    random_state: Any,
    columns: IntArray | None = None,
    n_trees: int = 1,
) -> TreeModel:
    """Splits level by level, then one count of each class in each leaf, with the rest of epsilon.

    Parameters
    ----------
    growth : Growth
        Of the root only.
    quality, epsilon, total, depth, prune, random_state
        As for `fit_tree`; ``total`` are released numbers.
    columns : ndarray of int, default=None
        Columns that may be split; None: all.
    n_trees : int
        Of the forest that it belongs to.
    """
    # Privacy. Released: a split of each node, level by level, at equal parts of
    # `Tuning.splits` of epsilon; then the counts of the classes in the leaves with what is left. A
    # record is in one node of each level and in one cell of one leaf: sensitivity 1. Depth and
    # parts follow from released and public numbers.
    score = make_quality(quality, total)
    if columns is None:
        columns = np.arange(len(growth.menu))
    splitting = epsilon * TUNING.splits if depth else Fraction(0)
    for _ in range(depth):
        growth.divide(columns, score, splitting / depth, random_state)
    leaves = growth.leaves()
    rest = epsilon - splitting
    noisy = discrete_laplace(growth.class_counts(leaves), rest, random_state=random_state)
    variance = discrete_laplace_variance(rest)
    nodes = tuple(growth.nodes)
    counts = _summed(nodes, leaves, noisy.astype(np.float64))
    variances = _summed(nodes, leaves, np.full(len(leaves), variance))
    model = TreeModel(nodes, counts, shrunk_shares(nodes, counts, variances, n_trees))
    return _prune_chance(model) if prune else model


def _published(
    growth: Growth,
    quality: str,
    epsilon: Fraction,
    total: FloatArray,
    depth: int,
    random_state: Any,
) -> TreeModel:
    """Algorithm 4: a count in each node says whether it is divided."""
    # Privacy. With epsilon' = epsilon / (2 depth + 1): a record's path has a count in each node but
    # the root, whose count is the total, and a split in each but the last, `depth` of either at
    # most; then the counts of the classes of its leaf. All nodes of a level hold different records:
    # sensitivity 1. Whether a node is divided follows from its noisy count.
    score = make_quality(quality, total)
    each = epsilon / (2 * depth + 1)
    sizes = np.array([total.sum()])
    for _ in range(depth):
        needed = growth.widths() * growth.n_classes * math.sqrt(2.0) / float(each)
        growth.keep(sizes >= needed)
        if not len(growth.active):
            break
        growth.divide(np.arange(len(growth.menu)), score, each, random_state)
        if not len(growth.active):
            break
        exact = growth.class_counts(growth.active).sum(axis=1)
        sizes = discrete_laplace(exact, each, random_state=random_state).astype(np.float64)
    leaves = growth.leaves()
    noisy = discrete_laplace(growth.class_counts(leaves), each, random_state=random_state)
    counts = _summed(growth.nodes, leaves, noisy.astype(np.float64))
    nodes = tuple(growth.nodes)
    return TreeModel(nodes, counts, plain_shares(nodes, counts))


# --- shares of the classes in every node of a tree, from the noisy counts of its leaves; pruning


def _summed(nodes: Sequence[Node | None], leaves: IntArray, values: FloatArray) -> FloatArray:
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
    spread: float = TUNING.spread,
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


def _prune_errors(model: TreeModel) -> TreeModel:
    """C4.5's pruning: a node becomes a leaf where that promises no more errors.

    Errors are pessimistic: upper limits of a binomial share, on noisy counts.
    """
    counts = np.maximum(model.class_counts, 0.0)
    sizes = counts.sum(axis=1)
    wrong = sizes - counts.max(axis=1)
    alone = sizes * beta.ppf(1.0 - TUNING.confidence, wrong + 1.0, np.maximum(sizes - wrong, 1e-9))
    below = alone.copy()

    def useless(place: int, children: IntArray) -> bool:
        below[place] = below[children].sum()
        if alone[place] > below[place] + 0.1:
            return False
        below[place] = alone[place]
        return True

    return _prune(model, useless)


def _prune_chance(model: TreeModel) -> TreeModel:
    """Take away splits that change the shares by less than chance would."""
    sizes = np.maximum(model.class_counts, 0.0).sum(axis=1)

    def useless(place: int, children: IntArray) -> bool:
        moved = ((model.shares[children] - model.shares[place]) ** 2).sum(axis=1)
        # What records that are divided at random change, on average.
        chance = (len(children) - 1) * (model.shares[place] * (1.0 - model.shares[place])).sum()
        return bool(sizes[children] @ moved <= TUNING.chances * chance)

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


# --- forests: trees on records of their own, or all trees on all records


def fit_forest(
    records: Records,
    menu: Sequence[Splits],
    n_classes: int,
    parts: Mapping[str, Fraction],
    random_state: Any,
    *,
    n_trees: int,
    rows: str,
    quality: str = "clipped",
    max_depth: int | None = None,
    max_features: float = 1.0,
) -> tuple[list[TreeModel], FloatArray]:
    """Fit a forest to records.

    Parameters
    ----------
    records : Records
    menu : sequence of Splits
        The splits of each column.
    n_classes : int
    parts : mapping of str to Fraction
        See `tree_parts`.
    random_state : NoiseSource
    n_trees : int
    rows : {"apart", "shared"}
        Each record in one tree, which its own coin draws; or all records in all trees.
    quality : {"max", "gini", "clipped", "information"}
    max_depth : int or None
        None: as many levels as pay.
    max_features : float
        Share of the columns that each tree may split, drawn for each.

    Returns
    -------
    models : list of TreeModel
    total : ndarray of shape (n_classes,)
        Released numbers of records of the classes.
    """
    # Privacy. Released: the classes of all records, then the trees with the rest. "apart":
    # a record is in the tree that its own coin draws, whatever other records there are, so all
    # trees together cost the epsilon of one. "shared": they share it in equal parts. Columns of a
    # tree are drawn by public coins.
    total = _class_totals(records, n_classes, parts["total"], random_state)
    epsilon = parts["model"] if rows == "apart" else parts["model"] / n_trees
    mine = total / n_trees if rows == "apart" else total
    depth = auto_depth(float(mine.sum()) * float(epsilon), menu, max_depth)
    coins = sampling_generator(random_state)
    n_columns = max(1, math.ceil(max_features * len(menu)))
    drawn = [np.sort(coins.permutation(len(menu))[:n_columns]) for _ in range(n_trees)]
    of_each = _shared_out(records, n_trees, rows, random_state)
    models = [
        grow_tree(
            Growth(seen, menu, n_classes), quality, epsilon, mine, depth, True, source,
            columns, n_trees,
        )
        for seen, source, columns in zip(
            of_each, random_state.branches(n_trees), drawn, strict=True
        )
    ]  # fmt: skip
    return models, total


def _shared_out(records: Records, n_trees: int, rows: str, source: Any) -> Iterator[Records]:
    """The records of each tree: private."""
    if rows == "shared":
        for _ in range(n_trees):
            yield records
        return
    number = np.repeat(np.arange(len(records.counts)), records.counts)
    content = np.column_stack([records.groups, records.labels])[number]
    tree = source.record_below(n_trees, len(number), content)
    for each in range(n_trees):
        counts: IntArray = np.bincount(number[tree == each], minlength=len(records.counts))
        here = counts > 0
        yield Records(records.groups[here], records.labels[here], counts[here], records.n_groups)
