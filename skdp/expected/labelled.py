"""Expected errors of models that predict a label: scores on held-out public rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from ..rows import as_array, as_frame, select_columns
from .mixin import ExpectsErrors
from .tables import TrialTable

__all__ = ["ExpectsScores"]


class ExpectsScores(ExpectsErrors):
    """Classifiers and regressors: the error on rows of ``like`` that were held out.

    ``like`` is ``(X, y)``, or a table with a column for the label.
    """

    def _unit_of_errors(self) -> str:
        return "units of the target" if is_regressor(self) else "share of rows"

    def _label_name(self) -> str | None:
        """Column of the label, where the domain has one."""
        return self.target  # type: ignore[attr-defined,no-any-return]

    def _public_table(self, n: int, like: Any, seed: int) -> TrialTable:
        if like is None:
            raise ValueError(
                f"The error of {type(self).__name__} depends on how well the label can be "
                "predicted at all, which no domain says. Give like=(X, y), public rows with their "
                "labels."
            )
        if isinstance(like, tuple):
            return TrialTable.of(like, n, seed)
        label = self._label_name()
        names = as_frame(like).named
        if label is None or label not in names:
            raise ValueError(
                "like has no column for the label: give like=(X, y), public rows and their labels."
            )
        X = select_columns(like, [name for name in names if name != label])
        y = as_array(select_columns(like, [label]))[:, 0]
        return TrialTable.of((X, y), n, seed)

    def _tried_errors(self, table: TrialTable) -> Mapping[str, float]:
        (X, y), (X_new, y_new) = table.rows, table.held_out
        predicted = self.fit(X, y).predict(X_new)  # type: ignore[attr-defined]
        y_new = np.asarray(y_new)
        if is_regressor(self):
            return {"root mean square error": float(np.sqrt(np.mean((predicted - y_new) ** 2)))}
        return {"error rate": float(np.mean(predicted != y_new))}
