"""Expected errors of a release by kind of question and epsilon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["ExpectedError"]


class ExpectedError:
    """Expected errors of a release, before anything is spent.

    Attributes
    ----------
    errors : DataFrame
        Root mean square error of each kind of question (rows) at each epsilon (columns); of
        questions that were given, the error bar.
    n : int
        Number of records.
    unit : str
        Unit of the errors.
    how : str
        "formula", "simulated on a generated table" or "simulated on the table given".
    estimator : str
        What would be released.
    what : str
        "error", or what the numbers of questions that were given are.

    Examples
    --------
    >>> from skdp import Domain, Numeric, RangeTreeHistogram
    >>> ages = RangeTreeHistogram(domain=Numeric(0, 100, bins=128))
    >>> expected = ages.expected_error(n=10_000, epsilon=[0.1, 1.0])
    >>> list(expected.errors.columns)
    [0.1, 1.0]
    """

    def __init__(
        self,
        runs: Mapping[float, Sequence[Mapping[str, float]]],
        *,
        n: int,
        unit: str,
        how: str,
        estimator: str,
        what: str = "error",
    ) -> None:
        self.n = n
        self.unit = unit
        self.how = how
        self.estimator = estimator
        self.what = what
        # Of each epsilon the errors of every run, a row each.
        self._runs = {epsilon: pd.DataFrame(list(found)) for epsilon, found in runs.items()}
        self.errors = pd.DataFrame(
            {epsilon: np.sqrt((each**2).mean()) for epsilon, each in self._runs.items()}
        )
        self.errors.index.name = "question"
        self.errors.columns.name = "epsilon"

    def to_frame(self) -> pd.DataFrame:
        """One row for each kind of question and epsilon.

        Returns
        -------
        DataFrame
            ``question``, ``epsilon``, ``error`` (root mean square), ``lowest`` and ``highest`` (of
            the tables tried), ``share`` (of the number of records; NaN for errors that are not in
            records), ``unit``.
        """
        parts = []
        for epsilon, runs in self._runs.items():
            error = self.errors[epsilon]
            parts.append(
                pd.DataFrame(
                    {
                        "question": error.index,
                        "epsilon": epsilon,
                        "error": error.to_numpy(),
                        "lowest": runs.min().to_numpy(),
                        "highest": runs.max().to_numpy(),
                        "share": error.to_numpy() / self.n if self._of_records else np.nan,
                        "unit": self.unit,
                    }
                )
            )
        return pd.concat(parts, ignore_index=True)

    def plot(self, *, ax: Any = None) -> Any:
        """Draw error against epsilon, a line for each kind of question, both axes logarithmic.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is missing.
        """
        from ..plotting import plot_errors

        title = f"{self.estimator}, {self.n:,} records"
        return plot_errors(self.to_frame(), unit=self.unit, title=title, ax=ax)

    @property
    def _of_records(self) -> bool:
        return self.unit == "records"

    def _shown(self) -> pd.DataFrame:
        return self.errors.map(lambda value: f"{value:.3g}")

    @property
    def _caption(self) -> str:
        return (
            f"{self.estimator}: expected {self.what} in {self.unit}, {self.n:,} records "
            f"({self.how}; nothing was spent)"
        )

    def __repr__(self) -> str:
        return f"{self._caption}\n{self._shown().to_string()}"

    def _repr_html_(self) -> str:
        return f"<div>{self._caption}{self._shown().to_html()}</div>"
