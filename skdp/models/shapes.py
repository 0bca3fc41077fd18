"""Functions of one column and of two, as a released model has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from .._types import CodeArray, FloatArray, IntArray
from ..kernels.additive import mean_size

__all__ = ["PairFunction", "ShapeFunction", "merged_labels"]


@dataclass(frozen=True, eq=False)
class ShapeFunction:
    """What one column adds to the score, for each group of its values.

    Attributes
    ----------
    groups : ndarray of shape (n_codes,)
        Group of each code of the column.
    labels : tuple of str
        One for each group.
    scores : ndarray of shape (n_groups,), or (n_groups, n_classes) with more than two classes
        In logits for classifiers, in units of the target for regressors. The mean over the
        records is about 0.
    std_errors : ndarray like ``scores``
        Standard deviation that the privacy noise gives them. Shrinkage towards 0, and which
        records there are, are not in it.
    sizes : ndarray of shape (n_groups,)
        Released number of records of each group.
    edges : ndarray or None
        Borders of the groups of a number; special and missing values are the groups after them.
    chain : tuple of int or None
        The groups in their order; None for categories without one.
    """

    groups: IntArray
    labels: tuple[str, ...]
    scores: FloatArray
    std_errors: FloatArray
    sizes: FloatArray
    edges: FloatArray | None
    chain: tuple[int, ...] | None

    def at(self, codes: CodeArray) -> FloatArray:
        """Scores of records by their codes; a negative code adds 0.

        Parameters
        ----------
        codes : ndarray of shape (n,)
        """
        known = self.scores[np.append(self.groups, 0)[codes]]
        missing = codes < 0
        known[missing] = 0.0
        return known

    @property
    def importance(self) -> float:
        """Mean absolute score over the released records."""
        return mean_size(self.scores, self.sizes)

    def to_frame(self) -> pd.DataFrame:
        """One row for each group.

        Returns
        -------
        pandas.DataFrame
            Columns "group", "score" and "std_error" (with more than two classes "score_0" and so
            on), and "records".
        """
        columns: dict[str, object] = {"group": list(self.labels)}
        if self.scores.ndim == 1:
            columns |= {"score": self.scores, "std_error": self.std_errors}
        else:
            for label, (score, error) in enumerate(
                zip(self.scores.T, self.std_errors.T, strict=True)
            ):
                columns |= {f"score_{label}": score, f"std_error_{label}": error}
        return pd.DataFrame(columns | {"records": np.round(self.sizes)})


@dataclass(frozen=True, eq=False)
class PairFunction:
    """What two columns together add to the score, beyond what each adds alone.

    Attributes
    ----------
    columns : (str, str)
    groups : tuple of two ndarray of shape (n_codes,)
        Group of each code of either column.
    labels : tuple of two tuple of str
        One for each group of either column.
    scores : ndarray of shape (n_first, n_second), or with a last axis of classes
        As in `ShapeFunction`. The mean along each axis is about 0.
    std_errors : ndarray like ``scores``
    sizes : ndarray of shape (n_first, n_second)
        Records of each cell if the columns were independent, from released numbers.
    edges : tuple of two (ndarray or None)
        Borders of the groups of a number; special and missing values are the groups after them.
    chains : tuple of two (tuple of int or None)
        The groups in their order.
    """

    columns: tuple[str, str]
    groups: tuple[IntArray, IntArray]
    labels: tuple[tuple[str, ...], tuple[str, ...]]
    scores: FloatArray
    std_errors: FloatArray
    sizes: FloatArray
    edges: tuple[FloatArray | None, FloatArray | None]
    chains: tuple[tuple[int, ...] | None, tuple[int, ...] | None]

    def at(self, first: CodeArray, second: CodeArray) -> FloatArray:
        """Scores of records by their codes; a negative code adds 0.

        Parameters
        ----------
        first, second : ndarray of shape (n,)
        """
        rows, columns = (
            np.append(groups, 0)[codes]
            for groups, codes in zip(self.groups, (first, second), strict=True)
        )
        known = self.scores[rows, columns]
        known[(first < 0) | (second < 0)] = 0.0
        return known

    @property
    def importance(self) -> float:
        """Mean absolute score over the released records."""
        flat = self.scores.reshape(self.sizes.size, -1)
        return mean_size(flat, self.sizes.ravel())

    def to_frame(self) -> pd.DataFrame:
        """One row for each cell.

        Returns
        -------
        pandas.DataFrame
            The labels of both columns, then as `ShapeFunction.to_frame`.
        """
        n = self.sizes.size
        cells = pd.MultiIndex.from_product(self.labels).to_frame(index=False)
        flat = ShapeFunction(
            np.arange(n), ("",) * n, self.scores.reshape(n, *self.scores.shape[2:]),
            self.std_errors.reshape(n, *self.scores.shape[2:]), self.sizes.ravel(), None, None,
        ).to_frame()  # fmt: skip
        flat = flat.drop(columns="group")
        for place, name in enumerate(self.columns):
            flat.insert(place, name, cells[place], allow_duplicates=True)
        return flat


def merged_labels(labels: Sequence[str], places: IntArray, n_ordered: int) -> list[str]:
    """Labels of groups of groups: from the first to the last where there is an order.

    Parameters
    ----------
    labels : sequence of str
    places : ndarray of shape (n_groups,)
        Where each group went.
    n_ordered : int
        So many places, the first, hold neighbours.
    """
    found = []
    for place in range(int(places.max()) + 1):
        inside = [label for label, other in zip(labels, places, strict=True) if other == place]
        if len(inside) == 1:
            found.append(inside[0])
        elif place < n_ordered:
            # Of runs the ends.
            found.append(f"{inside[0].split(' .. ')[0]} to {inside[-1].split(' .. ')[-1]}")
        else:
            found.append("others")
    return found
