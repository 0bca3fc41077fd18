"""WeightedRows: the records of a release, what they say, and draws among them.

Marginals are released with such records; of boxes and networks they are drawn once. Where few of
them meet a condition, those are drawn that meet most of it, and codes of the other columns by
themselves.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array

from .._random import caller_level, even_points
from .._validation import CodeArray, FloatArray, IntArray
from ..domain.query import Weights
from .model import product_of_weights
from .rounding import count_records

# Fewer weighted rows than this that meet a condition, by their effective number, say too little
# about the other columns.
ENOUGH = 50
# Rounded rows keep the counts of at most this many columns, and of as many pairs.
_ROUNDED = 64
# Records that stand for a release that can draw any number of them, and most of their codes.
_DRAWN, _MOST_NUMBERS = 1 << 17, 1 << 24


def inverse(probabilities: FloatArray, u: FloatArray) -> IntArray:
    """Positions drawn with the given probabilities, from uniform numbers."""
    return inverse_rows(probabilities[None], np.zeros(len(u), dtype=np.int64), u)


def inverse_rows(table: FloatArray, rows: IntArray, u: FloatArray) -> IntArray:
    """Positions drawn with the probabilities in one row each of a table."""
    reach = np.cumsum(table, axis=1, dtype=np.float64)
    reach /= reach[:, -1:]
    # All rows as one sorted array: row r lies between r and r + 1.
    line = (reach + np.arange(len(table))[:, None]).ravel()
    found = np.searchsorted(line, rows + u, side="right") - rows * table.shape[1]
    last = table.shape[1] - 1 - np.argmax(table[:, ::-1] > 0, axis=1)
    return np.clip(found, 0, last[rows])


class WeightedRows:
    """Records, and how much each of them counts.

    Parameters
    ----------
    codes : ndarray of int32, shape (n_rows, n_attributes)
    weights : ndarray of float64, shape (n_rows,)
        They sum to 1.
    shape : sequence of int
        Number of codes of each attribute.

    Raises
    ------
    ValueError
        If the parts do not fit together.
    """

    def __init__(self, codes: CodeArray, weights: FloatArray, shape: Sequence[int]) -> None:
        self.codes, self.weights, self.shape = codes, weights, tuple(shape)
        if codes.shape != (len(weights), len(self.shape)):
            raise ValueError("rows and row_weights do not fit together.")
        if codes.size and ((codes < 0).any() or (codes >= np.array(self.shape)).any()):
            raise ValueError("rows hold codes outside of the domain.")

    # ---------------------------------------------------------------- shares

    def cells(self, first: int, others: Sequence[int]) -> tuple[Any, list[CodeArray]]:
        """Shares of the rows in each cell of some columns, by the codes of one more; and the cells.

        Of cells without rows there are none.
        """
        place = np.zeros(len(self.codes), dtype=np.int64)
        for axis in others:
            place, _ = pd.factorize(place * self.shape[axis] + self.codes[:, axis])
        rows = np.zeros(int(place.max(initial=0)) + 1, dtype=np.int64)
        rows[place] = np.arange(len(place))
        at, shape = (place, self.codes[:, first]), (len(rows), self.shape[first])
        return csr_array((self.weights, at), shape), [self.codes[rows, axis] for axis in others]

    def table(self, axes: Sequence[int]) -> FloatArray:
        """Shares of the rows with each combination of codes."""
        columns = [self.codes[:, axis] for axis in axes]
        return self.table_of(columns, [self.shape[axis] for axis in axes])

    def table_of(self, columns: Sequence[NDArray[np.integer]], sizes: Sequence[int]) -> FloatArray:
        """Shares of the rows in the cells of a table, from the place of each row on each axis."""
        cell = np.ravel_multi_index(tuple(columns), tuple(sizes))
        sums = np.bincount(cell, weights=self.weights, minlength=math.prod(sizes))
        return sums.reshape(sizes).astype(np.float64, copy=False)

    # ---------------------------------------------------------------- draws

    def _meeting(self, weights: Weights, enough: float) -> tuple[FloatArray, dict[int, FloatArray]]:
        """Weights of rows under the conditions that enough of them meet, and the other conditions.

        One condition after the other is left out, each time the one that leaves most rows.
        """
        agreeing = partial(product_of_weights, self.codes, self.weights)
        kept, others = dict(weights), {}
        agree = agreeing(kept)
        if not agree.any():
            warnings.warn(
                "No record of the release meets this condition. The rows drawn satisfy it, but "
                "some of their columns are drawn by themselves.",
                UserWarning,
                stacklevel=caller_level(),
            )
        while kept and _effective(agree) < enough:
            without = {
                axis: agreeing({a: w for a, w in kept.items() if a != axis}) for axis in kept
            }
            axis = max(without, key=lambda each: _effective(without[each]))
            others[axis], agree = kept.pop(axis), without[axis]
        return agree, others

    def draw(
        self,
        n_samples: int,
        generator: np.random.Generator,
        weights: Weights,
        enough: float = ENOUGH,
        pairs: Sequence[IntArray] | None = None,
    ) -> CodeArray:
        """Draw records by their weights, under those of a condition.

        Parameters
        ----------
        n_samples : int
        generator : numpy.random.Generator
        weights : mapping of int to ndarray
        enough : float, default=50
            How many records must agree, by their effective number, to say anything about the other
            columns.
        pairs : sequence of ndarray of int, default=None
            The cell of each row in tables. Each record is then taken as often as is expected,
            rounded, so that counts of single columns and of these cells are kept. None: the
            records drawn are independent.
        """
        agree, others = self._meeting(weights, enough)
        if pairs is None:
            codes = self.codes[inverse(agree, generator.random(n_samples))]
        else:
            codes = self.codes[self._rounded(n_samples, generator, agree, pairs)]
        # New codes of the columns of conditions that too few records meet.
        for axis, vector in others.items():
            law = self.table((axis,)) * vector
            codes[:, axis] = inverse(law if law.any() else vector, generator.random(len(codes)))
        return codes

    def _rounded(
        self, number: int, generator: np.random.Generator, agree: FloatArray, pairs: Any
    ) -> IntArray:
        """Positions of records in random order, each as often as is expected, rounded."""
        possible = np.flatnonzero(agree > 0)
        codes = self.codes[possible]
        single = [codes[:, axis] for axis, size in enumerate(self.shape) if size > 1]
        # Neighbours agree in many columns, those of few codes first.
        by_size = np.argsort(self.shape, kind="stable")[::-1]
        order = np.lexsort([codes[:, axis] for axis in by_size.tolist()])
        features: list[NDArray[np.integer]] = list(single[:_ROUNDED])
        features += [cells[possible] for cells in pairs[:_ROUNDED]]
        counts = count_records(agree[possible], number, order, features, generator)
        return generator.permutation(np.repeat(possible, counts))


def _effective(weights: FloatArray) -> float:
    """How many equal weights would say as much."""
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


class DrawsRecords:
    """What a kind of release inherits that defines `from_uniform`: draws, also under conditions.

    Records under conditions, and rounded ones, are taken from records that are made once from
    points that lie evenly, so that equal questions have equal answers.
    """

    shape: tuple[int, ...]

    def from_uniform(self, u: FloatArray) -> tuple[CodeArray, list[IntArray]]:
        """Records, and of each the cells whose counts rounded records keep.

        From uniform numbers in [0, 1), (n_samples, n_attributes + 1).
        """
        raise NotImplementedError

    @cached_property
    def drawn(self) -> tuple[WeightedRows, list[IntArray]]:
        """Records that stand for the release, and their cells."""
        return self.even(max(min(_DRAWN, _MOST_NUMBERS // len(self.shape)), 2))

    def even(self, n_rows: int) -> tuple[WeightedRows, list[IntArray]]:
        """Records of points that lie evenly, a power of 2 of at most so many, and their cells."""
        codes, cells = self.from_uniform(even_points(n_rows, len(self.shape) + 1))
        return WeightedRows(codes, np.full(len(codes), 1.0 / len(codes)), self.shape), cells

    def sample_codes(
        self, number: int, generator: np.random.Generator, weights: Weights, rounded: bool = False
    ) -> CodeArray:
        """Draw records; see `Release`."""
        if not rounded and not weights:
            return self.from_uniform(generator.random((number, len(self.shape) + 1)))[0]
        rows, cells = self.drawn
        if rounded and number > len(rows.codes):
            return self.sample_codes(number, generator, weights)
        return rows.draw(number, generator, weights, pairs=cells if rounded else None)
