"""A function of one column, as a released model has it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .._types import FloatArray

__all__ = ["ShapeFunction"]


@dataclass(frozen=True, eq=False)
class ShapeFunction:
    """What one column adds to the score, for each group of its values.

    Attributes
    ----------
    labels : list of str
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
    chain : list of int or None
        The groups in their order; None for categories without one.
    """

    labels: list[str]
    scores: FloatArray
    std_errors: FloatArray
    sizes: FloatArray
    edges: FloatArray | None
    chain: list[int] | None

    def to_frame(self) -> pd.DataFrame:
        """One row for each group.

        Returns
        -------
        pandas.DataFrame
            Columns "group", "score" and "std_error" (with more than two classes "score_0" and so
            on), and "records".
        """
        columns: dict[str, object] = {"group": self.labels}
        if self.scores.ndim == 1:
            columns |= {"score": self.scores, "std_error": self.std_errors}
        else:
            for label, (score, error) in enumerate(
                zip(self.scores.T, self.std_errors.T, strict=True)
            ):
                columns |= {f"score_{label}": score, f"std_error_{label}": error}
        return pd.DataFrame(columns | {"records": np.round(self.sizes)})
