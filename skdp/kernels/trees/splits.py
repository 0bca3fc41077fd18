"""The public ways to divide the groups of a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._types import IntArray

__all__ = ["Splits", "binary_splits", "one_split"]


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
