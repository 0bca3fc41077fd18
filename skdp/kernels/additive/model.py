"""The released additive model: intercepts, functions of each column, and of pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..._types import FloatArray, IntArray
from .links import fixed

__all__ = ["AdditiveModel", "Axis", "PairTerm", "mean_size"]


class Axis(NamedTuple):
    """Few groups of the groups of a column.

    Attributes
    ----------
    groups : ndarray of shape (n_groups_of_column,)
        Place on the axis of each group of the column.
    n_groups : int
        Places on the axis.
    n_ordered : int
        So many of them, the first, are in an order.
    """

    groups: IntArray
    n_groups: int
    n_ordered: int


@dataclass(frozen=True, eq=False)
class PairTerm:
    """A function of two columns, without what belongs to either alone.

    Attributes
    ----------
    columns : (int, int)
        Positions of the columns.
    axes : (Axis, Axis)
    scores, std_errors : ndarray of shape (n_first, n_second, n_outputs)
        Standard errors are those of the scores, from the noise alone.
    sizes : ndarray of shape (n_first, n_second)
        Records of each cell if the columns were independent, from released numbers.
    """

    columns: tuple[int, int]
    axes: tuple[Axis, Axis]
    scores: FloatArray
    std_errors: FloatArray
    sizes: FloatArray

    def exact(self, first: IntArray, second: IntArray) -> IntArray:
        """Scores of groups of the two columns in whole units, (n, n_outputs)."""
        one, other = self.axes
        cells = one.groups.take(first) * other.n_groups + other.groups.take(second)
        return self._table.take(cells, axis=0)

    @cached_property
    def _table(self) -> IntArray:
        return fixed(self.scores).reshape(-1, self.scores.shape[2])

    def scaled(self, factor: float, variance: float) -> PairTerm:
        """Times a factor that has itself a variance."""
        noise = np.sqrt(factor**2 * self.std_errors**2 + variance * self.scores**2)
        return replace(self, scores=factor * self.scores, std_errors=noise)


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """Scores as a sum of an intercept, a function of each column, and some of two columns.

    Attributes
    ----------
    intercept : ndarray of shape (n_outputs,)
    shapes : tuple of ndarray of shape (n_groups, n_outputs)
        Score of each group of each column; the mean over the records is about 0.
    std_errors : tuple of ndarray of shape (n_groups, n_outputs)
        Of ``shapes``, from the noise alone.
    sizes : tuple of ndarray of shape (n_groups,)
        Released number of records of each group, not negative.
    pairs : tuple of PairTerm
    """

    intercept: FloatArray
    shapes: tuple[FloatArray, ...]
    std_errors: tuple[FloatArray, ...]
    sizes: tuple[FloatArray, ...]
    pairs: tuple[PairTerm, ...] = ()

    def exact_scores(self, groups: IntArray) -> IntArray:
        """Scores in whole units: those of a row depend on nothing but the row and the release."""
        result = np.tile(fixed(self.intercept), (len(groups), 1))
        for column, table in enumerate(self._tables):
            result += table.take(groups[:, column], axis=0)
        for pair in self.pairs:
            first, second = pair.columns
            result += pair.exact(groups[:, first], groups[:, second])
        return result

    @cached_property
    def _tables(self) -> list[IntArray]:
        return [fixed(shape) for shape in self.shapes]


def mean_size(scores: FloatArray, sizes: FloatArray) -> float:
    """Mean absolute score over the records, of groups of these sizes."""
    n, total = len(sizes), sizes.sum()
    weights = sizes / total if total > 0 else np.full(n, 1.0 / n)
    return float(weights @ np.abs(scores).reshape(n, -1).mean(axis=1))
