"""The distinct records of a fit: their groups and labels, read block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays import integer_sums
from ..._types import IntArray
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from .model import AdditiveModel

__all__ = ["Records", "released_total"]

_CHUNK = 2**15


@dataclass(frozen=True, eq=False)
class Records:
    """Distinct records with their exact numbers: private.

    Attributes
    ----------
    groups : ndarray of shape (m, n_columns), int32
        Group of each column; quickest in Fortran order.
    labels : ndarray of shape (m,)
        Code of the label.
    counts : ndarray of shape (m,), int64
    n_groups : tuple of int
        Number of groups of each column: public.
    scores : ndarray of shape (m, n_outputs), int64
        What a released model says of each record, see `at`.
    """

    groups: NDArray[Any]
    labels: IntArray
    counts: IntArray
    n_groups: tuple[int, ...]
    scores: IntArray = field(default_factory=lambda: np.zeros((0, 1), dtype=np.int64))

    def at(self, model: AdditiveModel) -> Records:
        """The records with their scores, which several steps read."""
        scores = np.empty((len(self.counts), len(model.intercept)), dtype=np.int64)
        for start, block in enumerate(self.blocks()):
            part = slice(start * _CHUNK, (start + 1) * _CHUNK)
            scores[part] = model.exact_scores(block.groups)
        return replace(self, scores=scores)

    def blocks(self, size: int = _CHUNK) -> Iterator[Records]:
        """The records, some at a time."""
        for start in range(0, len(self.counts), size):
            part = slice(start, start + size)
            groups, labels, counts = self.groups[part], self.labels[part], self.counts[part]
            yield Records(groups, labels, counts, self.n_groups, self.scores[part])

    @classmethod
    def grouped(
        cls,
        codes: NDArray[np.integer],
        labels: IntArray,
        counts: IntArray,
        groups: Sequence[IntArray],
        n_groups: Sequence[int],
    ) -> Records:
        """Records by the group of the code of each column."""
        found = codes[:, : len(groups)]
        if any((group != np.arange(len(group))).any() for group in groups):
            found = np.empty(found.shape, dtype=np.int32, order="F")
            maps = [group.astype(np.int32) for group in groups]
            # Some rows at a time stay in the cache.
            for start in range(0, len(codes), _CHUNK):
                part = slice(start, start + _CHUNK)
                for column, group in enumerate(maps):
                    # Without a mode, NumPy copies; no code is out of range.
                    group.take(codes[part, column], out=found[part, column], mode="clip")
        return cls(found, labels, counts, tuple(n_groups))

    def sums(self, n_values: int, values: Callable[[Records], IntArray]) -> list[IntArray]:
        """Sums of integers (n, n_values) over the records of each group of each column."""
        found = [np.zeros((n_values, n), dtype=np.int64) for n in self.n_groups]
        for block in self.blocks():
            # Sums of integers below 2**53 are exact in floating point.
            seen = (values(block) * block.counts[:, None]).T.astype(np.float64, order="C")
            for column, table in enumerate(found):
                groups = block.groups[:, column]
                for each, sums in zip(seen, table, strict=True):
                    sums += np.bincount(groups, each, len(sums)).astype(np.int64)
        return [table.T for table in found]

    def tables(self, n_labels: int) -> list[IntArray]:
        """Number of records of each group of a column and each label, (n_groups, n_labels)."""
        found = [np.zeros(n * n_labels, dtype=np.int64) for n in self.n_groups]
        alone = bool((self.counts == 1).all())
        for block in self.blocks():
            for column, table in enumerate(found):
                keys = block.groups[:, column] * np.int64(n_labels) + block.labels
                table += integer_sums(keys, len(table), None if alone else block.counts)
        return [table.reshape(-1, n_labels) for table in found]


def released_total(records: Records, epsilon: Fraction, random_state: Any) -> tuple[float, float]:
    """Noisy number of records, and the standard deviation of its noise."""
    # Privacy. Released: the number of records, which one record changes by 1.
    total = discrete_laplace(int(records.counts.sum()), epsilon, random_state=random_state)
    return float(total), float(np.sqrt(discrete_laplace_variance(epsilon)))
