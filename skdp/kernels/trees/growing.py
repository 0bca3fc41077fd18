"""Growing a tree level by level: the best split of every node, chosen with noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from ..._arrays import batches, exclusive_cumsum, integer_sums
from ..._types import BoolArray, FloatArray, IntArray
from ..._validation import check_choice
from ...mechanisms import noisy_max
from ..additive import Records
from .model import Node, Splits

__all__ = ["QUALITIES", "TUNING", "Growth", "Tuning", "check_quality", "make_quality"]


@dataclass(frozen=True)
class Tuning:
    """The numbers of trees that change a release.

    All but those of papers were chosen by ``benchmarks/models.py`` on electricity and phoneme.
    """

    # Share of the classes of all records, and of the rest that of the choice of splits.
    total: Fraction = Fraction(1, 50)
    splits: Fraction = Fraction(4, 5)
    # Records times epsilon of a mean leaf, and levels at most.
    leaf: float = 64.0
    depth: int = 12
    # "clipped" ignores shares below half of that of the rarest class, and never more than this.
    edge: float = 0.1
    # Variance that the share of a class is expected to have between the children of a node.
    spread: float = 0.03
    # A split stays if it changes shares by this times what chance would: the best of fifty splits
    # that say nothing does so by 2 log(50), however little noise there is.
    chances: float = 8.0
    # Confidence of C4.5's pessimistic errors, as published.
    confidence: float = 0.25


TUNING = Tuning()

# --- how good a split is: scores in integers, and how far one record moves them

QUALITIES = ("max", "gini", "clipped", "information")
# Scores are multiples of one part in so many of a record.
_UNIT = 2**10
# Larger counts are taken as this one, so that no product overflows; a clamped count still moves by
# at most one.
_MOST_COUNTS = 2**26
# Largest table of the information of counts.
_TABLE_CELLS = 2**20


class _Quality(Protocol):
    """Score of a node that is not divided further; that of a split is the sum over its children.

    A record enters one child of each split, so the change of the score of a split is that of one
    child.
    """

    score_range: int

    def of(self, counts: IntArray) -> IntArray:
        """Score from the counts of classes, which are the last axis."""


class _Majority:
    """DiffPID3's max operator: the records of the most frequent class."""

    # Privacy. One record more raises the largest count by one or not at all: an interval of
    # length 1.
    score_range = 1

    def of(self, counts: IntArray) -> IntArray:
        return np.asarray(counts.max(axis=-1), dtype=np.int64)


class _Gini:
    """Records minus their Gini impurity: the sum of n_c squared, divided by n."""

    # Privacy. Let S be the sum of n_c^2 over the classes of a child with n records, f = S / n. A
    # record of class c changes f by (2 n_c + 1 - S/n) / (n + 1). As n_c^2 <= S n <= n^2 this is at
    # most (2 n + 1 - n) / (n + 1) = 1 and at least (1 - n) / (n + 1) > -1; the first record gives
    # 1. So all changes lie in [-1, 1], those of floor(U f) in [-U, U]: a range of 2 U.
    score_range = 2 * _UNIT

    def of(self, counts: IntArray) -> IntArray:
        counts = np.minimum(counts, _MOST_COUNTS)
        sizes = np.maximum(counts.sum(axis=-1), 1)
        squares = (counts * counts).sum(axis=-1)
        whole = squares // sizes
        return np.asarray(whole * _UNIT + (squares - whole * sizes) * _UNIT // sizes)


class _Clipped:
    """Between the max operator and Gini: shares of a class count where they lie in [a, 1 - a].

    With F the sum over classes of n f(n_c / n), where f is 0 up to a, has the second derivative 2
    from a to 1 - a, and is linear beyond, the score is F / (1 - 2 a). A split is worth up to
    1 / (1 - 2 a) times as much as with Gini (a = 0) for the same noise, unless its shares are
    beyond a or 1 - a. The larger a, the more it is like the max operator.
    """

    # Privacy. F is homogeneous, so the change by a record of class c is a mean of derivatives
    # d = f(p_c) + (1 - p_c) f'(p_c) + sum over k != c of (f(p_k) - p_k f'(p_k)). The first two
    # are the integral of (1 - t) f'' up to p_c: between 0 and 1 - 2 a. Each term of the sum is
    # minus the integral of t f'' up to p_k, which is p_k^2 - a^2 cut to [0, 1 - 2 a]; as the
    # shares sum to 1 at most, the sum of these is at most 1 - 2 a. So the score moves by at most 1
    # either way. Floats: counts are clamped so that n <= 2^31, and a score of at most U n has an
    # error below half a unit per 2^11 classes; with the floor, U + 1 + that units either way.
    def __init__(self, edge: float, n_classes: int) -> None:
        self._edge = edge
        self._most = 2**31 // n_classes
        self.score_range = 2 * (_UNIT + 1 + -(-(n_classes + 10) // 2**11))

    def of(self, counts: IntArray) -> IntArray:
        counts = np.minimum(counts, self._most).astype(np.float64)
        sizes = np.maximum(counts.sum(axis=-1, keepdims=True), 1.0)
        low = np.maximum(counts - self._edge * sizes, 0.0)
        high = np.maximum(counts - (1.0 - self._edge) * sizes, 0.0)
        total = ((low * low - high * high) / sizes).sum(axis=-1)
        return np.asarray(np.floor(total * (_UNIT / (1.0 - 2.0 * self._edge))).astype(np.int64))


class _Information:
    """Minus the entropy of the classes times the records, in bits, from a table of integers."""

    # Privacy. With h(n) = n log2 n in a table up to a released number B, and beyond it a line with
    # the last slope, the score of a child is sum_c h(n_c) - h(n). A record changes it by
    # g(n_c) - g(n), g(i) = h(i + 1) - h(i), where n_c <= n: the least and the largest such
    # difference in the table itself, rounding included, bound all changes. Without B the slope,
    # about log2 n, would have no bound; N itself is not public.
    def __init__(self, total: float) -> None:
        most = int(np.clip(total, 2, _TABLE_CELLS))
        counts = np.arange(most + 1, dtype=np.float64)
        table = np.zeros(most + 1)
        table[1:] = counts[1:] * np.log2(counts[1:])
        self._table = np.rint(table * _UNIT).astype(np.int64)
        slopes = np.diff(self._table)
        self._slope = int(slopes[-1])
        highest = int((np.maximum.accumulate(slopes) - slopes).max())
        lowest = int((np.minimum.accumulate(slopes) - slopes).min())
        self.score_range = highest - lowest

    def of(self, counts: IntArray) -> IntArray:
        # The limit on counts of classes is lower by far than what would overflow.
        counts = np.minimum(counts, _MOST_COUNTS)
        return np.asarray(self._h(counts).sum(axis=-1) - self._h(counts.sum(axis=-1)))

    def _h(self, counts: IntArray) -> IntArray:
        most = len(self._table) - 1
        inside = np.minimum(counts, most)
        return self._table[inside] + (counts - inside) * self._slope


def make_quality(name: str, counts: FloatArray) -> _Quality:
    """A quality function by its name.

    Parameters
    ----------
    name : {"max", "gini", "clipped", "information"}
    counts : ndarray of shape (n_classes,)
        Released numbers of records of the classes.
    """
    if name == "information":
        return _Information(float(counts.sum()))
    if name == "clipped":
        # Shares of a rare class must not all lie below the edge.
        rarest = counts.min() / max(counts.sum(), 1.0)
        return _Clipped(float(np.clip(rarest / 2, 0.0, TUNING.edge)), len(counts))
    return _Majority() if name == "max" else _Gini()


def check_quality(name: str | None) -> None:
    """Refuse a quality that does not exist or has no bounded sensitivity; None is the default."""
    if isinstance(name, str) and name.replace("_", " ") == "gain ratio":
        raise ValueError(
            f"quality={name!r} is refused: it divides the gain by the entropy of the sizes of the "
            "children, which may be as near to 0 as the data like, so no public number bounds how "
            "far one record moves it. Use quality='gini' or quality='information'."
        )
    check_choice(name, "quality", (None, *QUALITIES))


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

    def divide(
        self, columns: IntArray, quality: _Quality, epsilon: Fraction, random_state: Any
    ) -> None:
        """Divide every active node by the best split of some columns; children become active.

        Parameters
        ----------
        columns : ndarray of int
            Columns whose splits are tried: public.
        quality : Quality
        epsilon : Fraction
            What it costs a record.
        random_state : NoiseSource
        """
        # Privacy. Released: for each active node one split, a selection whose scores have the
        # range of the quality (see there). A record is in one node: all selections together cost
        # epsilon. Which nodes are active and which splits can divide them follows from earlier
        # releases and public facts; a node that none can divide stays a leaf.
        scores, usable, columns_of, splits_of = self._scores(columns, quality)
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
        self._split(columns_of[winners], splits_of[winners])

    def _scores(
        self, columns: IntArray, quality: _Quality
    ) -> tuple[IntArray, BoolArray, IntArray, IntArray]:
        """Scores of all splits of some columns in each active node, and which can divide it."""
        n_active = len(self.active)
        tables = self._tables(columns)
        scores, usable = [], []
        columns_of: list[int] = []
        splits_of: list[int] = []
        for column in columns.tolist():
            splits = self.menu[column]
            if not len(splits):
                continue
            table = tables.pop(column)
            children = splits.divide(table.reshape(n_active, splits.n_groups, self.n_classes))
            scores.append(quality.of(children).sum(axis=-1))
            reachable = splits.divide(self.possible[column][:, :, None].astype(np.int64))
            usable.append((reachable[..., 0] > 0).sum(axis=-1) > 1)
            columns_of += [column] * len(splits)
            splits_of += range(len(splits))
        if not scores:
            none = np.zeros((n_active, 0))
            return none.astype(np.int64), none.astype(bool), *np.zeros((2, 0), dtype=np.int64)
        return (
            np.concatenate(scores, axis=1),
            np.concatenate(usable, axis=1),
            np.array(columns_of),
            np.array(splits_of),
        )

    def _tables(self, columns: IntArray) -> dict[int, IntArray]:
        """Exact counts by active node, group and class, for each column that can be split."""
        n_active = len(self.active)
        index = np.full(len(self.nodes), -1, dtype=np.int64)
        index[self.active] = np.arange(n_active)
        widths = {c: self.menu[c].n_groups * self.n_classes for c in columns.tolist()}
        tables = {
            column: np.zeros(n_active * width, dtype=np.int64)
            for column, width in widths.items()
            if len(self.menu[column])
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
            routes = firsts[i] + self.menu[column].routes(split)
            targets[i, : len(routes)] = routes
            self.nodes[self.active[i]] = Node(column, routes)
        self._send(columns, targets)
        for column, before in enumerate(self.possible):
            after = before[parents]
            rows = np.flatnonzero(columns[parents] == column)
            there = targets[parents[rows], : after.shape[1]] == children[rows, None]
            after[rows] &= there
            self.possible[column] = after
        self.nodes += [None] * len(children)
        self.active = children

    def _send(self, columns: IntArray, targets: IntArray) -> None:
        """Send the records of the active nodes to their children."""
        index = np.full(len(self.nodes), -1, dtype=np.int64)
        index[self.active] = np.arange(len(self.active))
        for part in batches(len(self.places)):
            places = self.places[part]
            node = index[places]
            mine = np.flatnonzero(node >= 0)
            node = node[mine]
            group = self._pairs[columns[node], mine + part.start] // self.n_classes
            places[mine] = targets[node, group]

    def class_counts(self, nodes: IntArray) -> IntArray:
        """Exact counts of the classes in some nodes, (len(nodes), n_classes): private."""
        index = np.full(len(self.nodes), -1, dtype=np.int64)
        index[nodes] = np.arange(len(nodes))
        node = index[self.places]
        mine = node >= 0
        cells = node[mine] * self.n_classes + self.records.labels[mine]
        counts = self.records.counts[mine]
        return integer_sums(cells, len(nodes) * self.n_classes, counts).reshape(len(nodes), -1)

    def leaves(self) -> IntArray:
        """Nodes that are not divided."""
        return np.flatnonzero([node is None for node in self.nodes])
