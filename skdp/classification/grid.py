"""Grid: a partition of the domain by groups of the codes of a few predictors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .._types import IntArray

__all__ = ["Grid", "one_hot"]


@dataclass(frozen=True, eq=False)
class Grid:
    """A partition of the domain: the codes of some predictors merged into groups.

    Attributes
    ----------
    columns : tuple of str
        Predictors that the grid uses, in the order of the domain.
    groups : tuple of ndarray of shape (n_codes,)
        Group of each code of each of these predictors.
    labels : tuple of tuple of str
        Text for each group.
    """

    columns: tuple[str, ...]
    groups: tuple[IntArray, ...]
    labels: tuple[tuple[str, ...], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of groups of each predictor that is used."""
        return tuple(len(labels) for labels in self.labels)

    def to_frame(self) -> pd.DataFrame:
        """One row for each group: the predictor, the group's number and its label.

        Returns
        -------
        pandas.DataFrame
        """
        rows = [
            (column, number, label)
            for column, labels in zip(self.columns, self.labels, strict=True)
            for number, label in enumerate(labels)
        ]
        return pd.DataFrame(rows, columns=["column", "group", "label"])

    def __repr__(self) -> str:
        parts = [f"{name}: {size}" for name, size in zip(self.columns, self.shape, strict=True)]
        return f"Grid({', '.join(parts) or 'one cell'})"


def one_hot(coordinates, shape):
    """Indicators of the groups of each predictor; a constant column if there is no predictor."""
    if not shape:
        return np.ones((len(coordinates), 1))
    result = np.zeros((len(coordinates), sum(shape)))
    begin = 0
    for position, size in enumerate(shape):
        known = np.flatnonzero(coordinates[:, position] >= 0)
        result[known, begin + coordinates[known, position]] = 1.0
        begin += size
    return result
