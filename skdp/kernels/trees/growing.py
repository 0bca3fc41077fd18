"""Growing a tree level by level: the best split of every node, chosen with noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from ..._arrays import exclusive_cumsum, integer_sums
from ..._types import BoolArray, IntArray
from ...mechanisms import noisy_max
from ..additive import Records
from .model import Node
from .qualities import Quality
from .splits import Splits

__all__ = ["Growth"]


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
        self, columns: IntArray, quality: Quality, epsilon: Fraction, random_state: Any
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
        self, columns: IntArray, quality: Quality
    ) -> tuple[IntArray, BoolArray, IntArray, IntArray]:
        """Scores of all splits of some columns in each active node, and which can divide it."""
        n_active = len(self.active)
        index = np.full(len(self.nodes), -1, dtype=np.int64)
        index[self.active] = np.arange(n_active)
        node = index[self.places]
        mine = np.flatnonzero(node >= 0)
        node, labels, counts = node[mine], self.records.labels[mine], self.records.counts[mine]
        n_classes = self.n_classes
        scores, usable = [], []
        columns_of: list[int] = []
        splits_of: list[int] = []
        for column in columns.tolist():
            splits = self.menu[column]
            if not len(splits):
                continue
            n_groups = splits.n_groups
            cells = (node * n_groups + self.records.groups[mine, column]) * n_classes + labels
            table = integer_sums(cells, n_active * n_groups * n_classes, counts)
            children = splits.divide(table.reshape(n_active, n_groups, n_classes))
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
        node = index[self.places]
        mine = np.flatnonzero(node >= 0)
        node = node[mine]
        self.places[mine] = targets[node, self.records.groups[mine, columns[node]]]

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
