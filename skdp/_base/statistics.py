"""`AnswersStatistics`: statistics of a release as methods of the estimator that made it."""

from __future__ import annotations

from typing import Any

__all__ = ["AnswersStatistics"]


class AnswersStatistics:
    """Statistics with intervals; ``_asked()`` is the `Synopsis` that answers."""

    def _asked(self) -> Any:
        """The synopsis; NotFittedError without a fit."""
        raise NotImplementedError

    def std(self, column: str, query: Any = None, **how: Any) -> Any:
        """Standard deviation of a column over a query; see :meth:`skdp.Synopsis.std`."""
        return self._asked().std(column, query, **how)

    def quantile(self, column: str, q: Any = 0.5, query: Any = None, **how: Any) -> Any:
        """Quantiles of a column over a query; see :meth:`skdp.Synopsis.quantile`."""
        return self._asked().quantile(column, q, query, **how)

    def proportion(self, query: Any, among: Any = None, **how: Any) -> Any:
        """Share of a query among another's records; see :meth:`skdp.Synopsis.proportion`."""
        return self._asked().proportion(query, among, **how)

    def covariance(self, first: str, second: str, query: Any = None, **how: Any) -> Any:
        """Covariance of two columns over a query; see :meth:`skdp.Synopsis.covariance`."""
        return self._asked().covariance(first, second, query, **how)

    def correlation(
        self, first: Any = None, second: str | None = None, query: Any = None, **how: Any
    ) -> Any:
        """Correlation of two columns or a matrix; see :meth:`skdp.Synopsis.correlation`."""
        return self._asked().correlation(first, second, query, **how)

    def aggregate(self, by: Any, column: Any = None, query: Any = None, **how: Any) -> Any:
        """Counts, sums and means of groups; see :meth:`skdp.Synopsis.aggregate`."""
        return self._asked().aggregate(by, column, query, **how)

    def crosstab(self, index: str, columns: str, query: Any = None, **how: Any) -> Any:
        """Counts of all combinations of two columns; see :meth:`skdp.Synopsis.crosstab`."""
        return self._asked().crosstab(index, columns, query, **how)

    def describe(self, *, level: float = 0.95, numbers: bool = False) -> Any:
        """Statistics of every column with margins; see :meth:`skdp.Synopsis.describe`."""
        return self._asked().describe(level=level, numbers=numbers)
