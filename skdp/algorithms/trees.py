"""Decision trees and forests: DiffPID3, DiffPC-4.5, and a better plan of the budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import beta

from .._validation import (
    BoolArray,
    FloatArray,
    IntArray,
    batches,
    exclusive_cumsum,
    integer_sums,
    split_epsilon,
)
from ..mechanisms import discrete_laplace, discrete_laplace_variance, noisy_max
from .additive import TUNING as ADDITIVE
from .additive import Records, class_shares

# ------------------------------------------------------------------------------------------------
# A released tree: its splits, its noisy counts, and the shares of the classes.


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
        return len(self.routes)

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

    @cached_property
    def routes(self) -> IntArray:
        """Child of each group by every split, (n_splits, n_groups)."""
        groups = np.eye(self.n_groups, dtype=np.int64)
        found = self.divide(groups[None])[0].argmax(axis=1)
        return found if self.n_groups > 1 else found[:0]


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
        steps = Steps(self.nodes)
        reached, before = np.zeros(len(groups), dtype=np.int64), None
        while before is None or (reached != before).any():
            before, reached = reached, steps.taken(groups, reached)
        return reached


class Steps:
    """Where records go from each node: to a child, or nowhere if there is none for their group.

    Parameters
    ----------
    nodes : sequence of Node or None
    """

    def __init__(self, nodes: Sequence[Node | None]) -> None:
        children = [node.children if node else np.zeros(0, dtype=np.int64) for node in nodes]
        self._columns = np.array([node.column if node else 0 for node in nodes])
        # The last column is for those without a group, and for those of leaves.
        self._targets = np.tile(np.arange(len(nodes))[:, None], max(map(len, children)) + 1)
        for targets, own in zip(self._targets, children, strict=True):
            targets[: len(own)] = own

    def taken(self, groups: IntArray, places: IntArray) -> IntArray:
        """Nodes of records of groups, (n, n_columns), one step from their nodes, (n,)."""
        group = groups[np.arange(len(places)), self._columns[places]]
        return self._targets[places, np.minimum(group, self._targets.shape[1] - 1)]


def parents_of(nodes: Sequence[Node | None]) -> IntArray:
    """Parent of each node; -1 for the root."""
    found = np.full(len(nodes), -1, dtype=np.int64)
    for place, node in enumerate(nodes):
        if node is not None:
            found[node.children] = place
    return found


# ------------------------------------------------------------------------------------------------
# Growing a tree level by level: the best split of every node, chosen with noise.


@dataclass(frozen=True)
class Tuning:
    """The numbers of trees that change a release.

    All but those of papers were chosen by ``benchmarks/models.py`` on electricity and phoneme.
    """

    # Of what the numbers of the classes leave, the share of the choice of splits.
    splits: Fraction = Fraction(4, 5)
    # Records times epsilon of a mean leaf.
    leaf: float = 64.0
    # "clipped" ignores shares below half of that of the rarest class, and never more than this.
    edge: float = 0.1
    # Variance that the share of a class is expected to have between the children of a node.
    spread: float = 0.03
    # A split stays if it changes shares by this times what chance would: the best of fifty splits
    # that say nothing does so by 2 log(50), however little noise there is.
    chances: float = 8.0


TUNING = Tuning()

# --- how good a split is: scores in integers, and how far one record moves them

QUALITIES = ("max", "gini", "clipped")
# Scores are multiples of one part in so many of a record.
_UNIT = 2**10


@dataclass(frozen=True)
class Quality:
    """Score of a node that is not divided further; that of a split is the sum over its children.

    "max" counts the records of the most frequent class, DiffPID3's max operator. The others are the
    sum F over the classes of n f(n_c / n), divided by 1 - 2 a, where f is 0 up to a, has the second
    derivative 2 from a to 1 - a, and is linear beyond. With a = 0 this is the number of records
    less their Gini impurity. "clipped" is worth up to 1 / (1 - 2 a) times as much for the same
    noise, unless shares are beyond a or 1 - a. The larger a, the more it is like "max".

    Attributes
    ----------
    edge : float or None
        The number a below 1/2; None for "max".
    n_classes : int
    """

    edge: float | None
    n_classes: int

    @classmethod
    def named(cls, name: str, counts: FloatArray) -> Quality:
        """One of `QUALITIES`, given the released numbers of records of the classes."""
        # Shares of a rare class must not all lie below the edge of "clipped".
        rarest = float(np.clip(counts.min() / max(counts.sum(), 1.0) / 2, 0.0, TUNING.edge))
        return cls({"max": None, "gini": 0.0, "clipped": rarest}[name], len(counts))

    # Privacy. A record enters one child of each split, so the change of the score of a split is
    # that of one child. "max": one record more raises the largest count by one or not at all: an
    # interval of length 1. Else F is homogeneous, so the change by a record of class c is a mean of
    # derivatives d = f(p_c) + (1 - p_c) f'(p_c) + sum over k != c of (f(p_k) - p_k f'(p_k)). The
    # first two are the integral of (1 - t) f'' up to p_c: between 0 and 1 - 2 a. Each term of the
    # sum is minus the integral of t f'' up to p_k, which is p_k^2 - a^2 cut to [0, 1 - 2 a]; as the
    # shares sum to 1 at most, the sum of these is at most 1 - 2 a. So the score moves by at most 1
    # either way. Floats: counts are clamped so that n <= 2^31, and a score of at most U n has an
    # error below half a unit per 2^11 classes; with the floor, U + 1 + that units either way.
    @property
    def score_range(self) -> int:
        """Length of the interval that holds the changes of all scores by one record."""
        if self.edge is None:
            return 1
        return 2 * (_UNIT + 1 + -(-(self.n_classes + 10) // 2**11))

    def of(self, counts: IntArray) -> IntArray:
        """Score from the counts of classes, which are the last axis."""
        if self.edge is None:
            return np.asarray(counts.max(axis=-1), dtype=np.int64)
        known = np.minimum(counts, 2**31 // self.n_classes).astype(np.float64)
        sizes = np.maximum(known.sum(axis=-1, keepdims=True), 1.0)
        low = np.maximum(known - self.edge * sizes, 0.0)
        high = np.maximum(known - (1.0 - self.edge) * sizes, 0.0)
        total = ((low * low - high * high) / sizes).sum(axis=-1)
        return np.asarray(np.floor(total * (_UNIT / (1.0 - 2.0 * self.edge))).astype(np.int64))


# --- growing, level by level


@dataclass(eq=False)
class Growth:
    """A tree while it grows. ``places`` is private; all else is released or public.

    Attributes
    ----------
    records : Records
    menu : sequence of Splits
        The splits of each column.
    n_classes : int
    nodes : list of Node or None
    active : ndarray of int
        Nodes that may be divided.
    places : ndarray of int
        Node of each distinct record.
    possible : list of ndarray of bool, shape (n_active, n_groups)
        For each column the groups that a record of an active node may have.
    """

    records: Records
    menu: Sequence[Splits]
    n_classes: int
    nodes: list[Node | None] = field(default_factory=lambda: [None])

    def __post_init__(self) -> None:
        self.active = np.zeros(1, dtype=np.int64)
        # First split of each column among those of all.
        self.starts = exclusive_cumsum(np.array(list(map(len, self.menu))))
        self.places = np.zeros(len(self.records.counts), dtype=np.int64)
        # Group and class of each record, column by column.
        widest = max(each.n_groups for each in self.menu) * self.n_classes
        pairs = self.records.groups.T * self.n_classes + self.records.labels
        self._pairs = np.ascontiguousarray(pairs, dtype=np.min_scalar_type(widest))
        self.possible: list[BoolArray] = [
            np.ones((1, splits.n_groups), dtype=bool) for splits in self.menu
        ]

    def keep(self, chosen: BoolArray) -> None:
        """Divide only some of the active nodes; the others stay leaves."""
        self.active = self.active[chosen]
        self.possible = [each[chosen] for each in self.possible]

    def widths(self) -> IntArray:
        """Most children that a split of each active node can have."""
        widest = np.zeros(len(self.active), dtype=np.int64)
        for splits, possible in zip(self.menu, self.possible, strict=True):
            if len(splits):
                of_column = possible.sum(axis=1)
                widest = np.maximum(widest, np.minimum(of_column, splits.n_children))
        return np.maximum(widest, 1)

    def divide(self, quality: Quality, epsilon: Fraction, random_state: Any) -> None:
        """Divide every active node by its best split, at epsilon; children become active."""
        # Privacy. Released: for each active node one split, a selection whose scores have the
        # range of the quality (see there). A record is in one node: all selections together cost
        # epsilon. Which nodes are active and which splits can divide them follows from earlier
        # releases and public facts; a node that none can divide stays a leaf.
        scores, usable = self._scores(quality)
        divisible: BoolArray = np.asarray(usable.any(axis=1))
        self.keep(divisible)
        scores, usable = scores[divisible], usable[divisible]
        if not len(self.active):
            return
        starts = exclusive_cumsum(usable.sum(axis=1))
        won = noisy_max(
            scores[usable], epsilon, quality.score_range, starts=starts, random_state=random_state
        )
        winners = np.nonzero(usable)[1][won]
        columns = np.searchsorted(self.starts, winners, side="right") - 1
        self._split(columns, winners - self.starts[columns])

    def _scores(self, quality: Quality) -> tuple[IntArray, BoolArray]:
        """Scores of all splits in each active node, and which can divide it."""
        n_active = len(self.active)
        scores = [np.zeros((n_active, 0), dtype=np.int64)]
        usable = [np.zeros((n_active, 0), dtype=bool)]
        for column, table in self._tables().items():
            splits = self.menu[column]
            children = splits.divide(table.reshape(n_active, splits.n_groups, self.n_classes))
            scores.append(quality.of(children).sum(axis=-1))
            reachable = splits.divide(self.possible[column][:, :, None].astype(np.int64))
            usable.append((reachable[..., 0] > 0).sum(axis=-1) > 1)
        return np.concatenate(scores, axis=1), np.concatenate(usable, axis=1)

    def _tables(self) -> dict[int, IntArray]:
        """Exact counts by active node, group and class, for each column that can be split."""
        n_active = len(self.active)
        index = self._index(self.active)
        widths = [splits.n_groups * self.n_classes for splits in self.menu]
        tables = {
            column: np.zeros(n_active * widths[column], dtype=np.int64)
            for column, splits in enumerate(self.menu)
            if len(splits)
        }
        # Batches of all columns, so that what is made of them stays in the cache.
        for part in batches(len(self.places)):
            node = index[self.places[part]]
            mine = np.flatnonzero(node >= 0)
            node, counts = node[mine], self.records.counts[part][mine]
            weights = None if (counts == 1).all() else counts
            for column, table in tables.items():
                pairs = self._pairs[column, part]
                cells = node * widths[column] + (pairs if len(mine) == len(pairs) else pairs[mine])
                table += integer_sums(cells, len(table), weights)
        return tables

    def _split(self, columns: IntArray, splits: IntArray) -> None:
        """Give every active node its children, and send the records to them."""
        n_children = np.array([self.menu[column].n_children for column in columns.tolist()])
        parents = np.repeat(np.arange(len(columns)), n_children)
        children = len(self.nodes) + np.arange(len(parents))
        firsts = len(self.nodes) + exclusive_cumsum(n_children)
        targets = np.full((len(columns), max(each.n_groups for each in self.menu)), -1)
        for i, (column, split) in enumerate(zip(columns.tolist(), splits.tolist(), strict=True)):
            routes = firsts[i] + self.menu[column].routes[split]
            targets[i, : len(routes)] = routes
            self.nodes[self.active[i]] = Node(column, routes)
        for column, before in enumerate(self.possible):
            other = (columns[parents] != column)[:, None]
            there = targets[parents, : before.shape[1]] == children[:, None]
            self.possible[column] = before[parents] & (other | there)
        self.nodes += [None] * len(children)
        self.active, steps = children, Steps(self.nodes)
        for part in batches(len(self.places)):
            self.places[part] = steps.taken(self.records.groups[part], self.places[part])

    def _index(self, nodes: IntArray) -> IntArray:
        """Place of each node among some of them; -1 if it is none of these."""
        index = np.full(len(self.nodes), -1, dtype=np.int64)
        index[nodes] = np.arange(len(nodes))
        return index

    def class_counts(self, nodes: IntArray) -> IntArray:
        """Exact counts of the classes in some nodes, (len(nodes), n_classes): private."""
        node = self._index(nodes)[self.places]
        mine = node >= 0
        cells = node[mine] * self.n_classes + self.records.labels[mine]
        counts = self.records.counts[mine]
        return integer_sums(cells, len(nodes) * self.n_classes, counts).reshape(-1, self.n_classes)

    def leaves(self) -> IntArray:
        """Nodes that are not divided."""
        return np.flatnonzero([node is None for node in self.nodes])


# ------------------------------------------------------------------------------------------------
# Fitting a decision tree: DiffPID3 and DiffPC-4.5 (Friedman and Schuster), and "auto".


ALGORITHMS = ("auto", "id3", "c4.5")
# Scores of a level that are held at once.
_SCORES_ONCE = 2**23
# Levels at most where none were asked for, a limit of time: without it a million records took two
# to four times as long, and the tree was no better.
_MOST_LEVELS = 12


def tree_parts(
    epsilon: Fraction, algorithm: str = "auto", max_depth: int | None = None
) -> dict[str, Fraction]:
    """Parts of epsilon: the numbers of records of the classes, and the tree.

    In the published algorithms such a count costs 1 of 2 (max_depth + 1) equal parts.
    """
    total = ADDITIVE.total
    if algorithm != "auto" and max_depth is not None:
        total = Fraction(1, 2 * (max_depth + 1))
    return split_epsilon(epsilon, {"total": total, "model": 1 - total})


def auto_depth(
    signal: float, menu: Sequence[Splits], n_classes: int, asked: int | None = None
) -> int:
    """Levels of splits, from released and public numbers: those that pay, or that were asked for.

    Parameters
    ----------
    signal : float
        Records times epsilon.
    menu : sequence of Splits
        With very many splits the scores of fewer levels fit into memory.
    n_classes : int
    asked : int or None
    """
    n_scores = max(sum(len(splits) for splits in menu), 1)
    fits = int(math.log2(max(_SCORES_ONCE / n_scores, 2.0)))
    if asked is not None:
        return min(asked, fits)
    leaf = TUNING.leaf * math.sqrt(n_classes / 2)
    return min(max(round(math.log2(max(signal / leaf, 1.0))), 0), fits, _MOST_LEVELS)


def fit_trees(
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
    n_trees: int = 1,
) -> tuple[list[TreeModel], FloatArray]:
    """Fit trees to records: each to all of them, at an equal share of epsilon.

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
    quality : {"max", "gini", "clipped"}
    max_depth : int or None
        None, for "auto" only: as many levels as pay.
    prune : bool
    n_trees : int
        Above 1 for "auto" only.

    Returns
    -------
    models : list of TreeModel
    total : ndarray of shape (n_classes,)
        Released numbers of records of the classes.
    """
    # Privacy. Released: the classes of all records, then the trees, one after the other, which
    # share the rest in equal parts.
    # A record is in one class: sensitivity 1.
    exact = integer_sums(records.labels, n_classes, records.counts)
    noisy = discrete_laplace(exact, parts["total"], random_state=random_state)
    total, epsilon = noisy.astype(np.float64), parts["model"] / n_trees
    score = Quality.named(quality, total)
    if algorithm == "auto":
        # The released number of records less the standard deviation of its noise.
        least = float(total.sum() - (n_classes * discrete_laplace_variance(parts["total"])) ** 0.5)
        depth = auto_depth(least * float(epsilon), menu, n_classes, max_depth)
        grown = (Growth(records, menu, n_classes) for _ in range(n_trees))
        models = [
            grow_tree(growth, score, epsilon, depth, prune, random_state, n_trees)
            for growth in grown
        ]
        return models, total
    assert max_depth is not None
    growth = Growth(records, menu, n_classes)
    model = _published(growth, score, epsilon, float(total.sum()), max_depth, random_state)
    return [_prune_errors(model) if algorithm == "c4.5" and prune else model], total


def grow_tree(
    growth: Growth, score: Quality, epsilon: Fraction, depth: int, prune: bool, source: Any, n: int
) -> TreeModel:
    """Splits level by level, then one count of each class in each leaf, with the rest of epsilon.

    Parameters
    ----------
    growth : Growth
        Of the root only.
    score : Quality
    epsilon, depth, prune, source
        As for `fit_trees`; the depth follows from released numbers.
    n : int
        Number of trees of the forest that it belongs to.
    """
    # Privacy. Released: a split of each node, level by level, at equal parts of
    # `Tuning.splits` of epsilon; then the counts of the classes in the leaves with what is left. A
    # record is in one node of each level and in one cell of one leaf: sensitivity 1. Depth and
    # parts follow from released and public numbers.
    splitting = epsilon * TUNING.splits if depth else Fraction(0)
    for _ in range(depth):
        growth.divide(score, splitting / depth, source)
    model = _counted(growth, epsilon - splitting, TUNING.spread, source, n)
    return _prune_chance(model) if prune else model


def _published(
    growth: Growth, score: Quality, epsilon: Fraction, total: float, depth: int, source: Any
) -> TreeModel:
    """Algorithm 4: a count in each node says whether it is divided."""
    # Privacy. With epsilon' = epsilon / (2 depth + 1): a record's path has a count in each node but
    # the root, whose count is the total, and a split in each but the last, `depth` of either at
    # most; then the counts of the classes of its leaf. All nodes of a level hold different records:
    # sensitivity 1. Whether a node is divided follows from its noisy count.
    each, sizes = epsilon / (2 * depth + 1), np.array([total])
    for _ in range(depth):
        needed = growth.widths() * growth.n_classes * math.sqrt(2.0) / float(each)
        growth.keep(sizes >= needed)
        growth.divide(score, each, source)
        exact = growth.class_counts(growth.active).sum(axis=1)
        sizes = discrete_laplace(exact, each, random_state=source).astype(np.float64)
    return _counted(growth, each, np.inf, source)


def _counted(
    growth: Growth, epsilon: Fraction, spread: float, random_state: Any, n_trees: int = 1
) -> TreeModel:
    """The released tree, with noisy counts of the classes in its leaves at the cost of epsilon."""
    # Privacy. A record is in one cell of one leaf: sensitivity 1.
    nodes, leaves = tuple(growth.nodes), growth.leaves()
    noisy = discrete_laplace(growth.class_counts(leaves), epsilon, random_state=random_state)
    counts = _summed(nodes, leaves, noisy.astype(np.float64))
    variances = _summed(nodes, leaves, np.full(len(leaves), discrete_laplace_variance(epsilon)))
    return TreeModel(nodes, counts, shrunk_shares(nodes, counts, variances, spread, n_trees))


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


def shrunk_shares(
    nodes: Sequence[Node | None], counts: FloatArray, variances: FloatArray, spread: float, n: int
) -> FloatArray:
    """Shares of the counts, drawn towards those of the parent where noise or chance is large.

    Parameters
    ----------
    nodes : sequence of Node or None
    counts : ndarray of shape (n_nodes, n_classes)
        Noisy.
    variances : ndarray of shape (n_nodes,)
        Variance of the noise of each count.
    spread : float
        Variance of a share between siblings. Infinite: the shares are those of the counts.
    n : int
        Number of trees of whose shares the mean is taken: their errors cancel in part.
    """
    n_classes = counts.shape[1]
    parents = parents_of(nodes)
    shares = np.full(counts.shape, 1.0 / n_classes)
    for node, parent in enumerate(parents.tolist()):
        seen = np.maximum(counts[node], 0.0)
        before = shares[max(parent, 0)]
        own = seen / seen.sum() if seen.sum() else before
        if parent < 0:
            shares[node] = class_shares(counts[node], float(variances[node]))
            continue
        size = max(counts[node].sum(), 1.0)
        chance = (before * (1.0 - before)).mean() / size + variances[node] / size**2
        # Many classes show themselves how far they are apart.
        apart = (n_classes - 2) * max(float(np.mean((own - before) ** 2) - chance), 0.0)
        expected = (spread + apart) / max(n_classes - 1, 1)
        weight = 1.0 / (1.0 + chance / n / expected)
        shares[node] = before + weight * (own - before)
    return shares


def _prune_errors(model: TreeModel, confidence: float = 0.25) -> TreeModel:
    """C4.5's pruning: a node becomes a leaf where that promises no more errors.

    Errors are pessimistic: upper limits of a binomial share, on noisy counts; the confidence is
    the published one.
    """
    counts = np.maximum(model.class_counts, 0.0)
    sizes = counts.sum(axis=1)
    wrong = sizes - counts.max(axis=1)
    alone = sizes * beta.ppf(1.0 - confidence, wrong + 1.0, np.maximum(sizes - wrong, 1e-9))
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
        inner = leaves_only and any(nodes[child] is not None for child in children.tolist())
        if not inner and useless(place, children):
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
