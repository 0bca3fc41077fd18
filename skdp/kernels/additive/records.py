"""The distinct records of a fit: their groups and labels, read block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ..._types import IntArray
from ...mechanisms import discrete_laplace, discrete_laplace_variance

__all__ = ["Records", "released_total"]

_BLOCK = 2**15


@dataclass(frozen=True, eq=False)
class Records:
    """Distinct records with their exact numbers: private.

    Attributes
    ----------
    groups : ndarray of shape (m, n_columns)
        Group of each column.
    labels : ndarray of shape (m,)
        Code of the label.
    counts : ndarray of shape (m,), int64
    n_groups : tuple of int
        Number of groups of each column: public.
    """

    groups: IntArray
    labels: IntArray
    counts: IntArray
    n_groups: tuple[int, ...]

    def blocks(self, size: int = _BLOCK) -> Iterator[Records]:
        """The records, some at a time."""
        for start in range(0, len(self.counts), size):
            part = slice(start, start + size)
            yield Records(self.groups[part], self.labels[part], self.counts[part], self.n_groups)

    def sums(self, column: int, values: IntArray) -> IntArray:
        """Sum of integers over the records of each group of a column, (n_groups,)."""
        # Sums of integers below 2**53 are exact in floating point.
        found = np.bincount(
            self.groups[:, column], weights=values * self.counts, minlength=self.n_groups[column]
        )
        return found.astype(np.int64)

    def tables(self, column: int, n_labels: int) -> IntArray:
        """Number of records of each group of a column and each label, (n_groups, n_labels)."""
        n = self.n_groups[column]
        keys = self.groups[:, column] * n_labels + self.labels
        found = np.bincount(keys, weights=self.counts, minlength=n * n_labels)
        return found.astype(np.int64).reshape(n, n_labels)


def released_total(records: Records, epsilon: Fraction, random_state: Any) -> tuple[float, float]:
    """Noisy number of records, and the standard deviation of its noise."""
    # Privacy. Released: the number of records, which one record changes by 1.
    exact = int(records.counts.sum())
    total = discrete_laplace(exact, epsilon, random_state=random_state)
    return float(total), float(np.sqrt(discrete_laplace_variance(epsilon)))
