"""A function of one column, as a released model has it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .._types import CodeArray, FloatArray, IntArray

__all__ = ["ShapeFunction"]


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
        total = self.sizes.sum()
        n = len(self.sizes)
        weights = self.sizes / total if total > 0 else np.full(n, 1.0 / n)
        return float(weights @ np.abs(self.scores).reshape(n, -1).mean(axis=1))

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
