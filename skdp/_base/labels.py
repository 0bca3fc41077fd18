"""The label of a model: rows matched with it, its declared values, and rows without its column."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from .._types import IntArray
from ..domain import Categorical, Domain
from ..exceptions import DomainError
from ..release.result import of_a_column, of_records
from ..rows import Frame, LazyRows, as_array, as_frame, select_columns
from .estimator import PrivateEstimator
from .schema import declare_label, match_rows, require_y, without_unit


def match_labelled(
    estimator: PrivateEstimator,
    read: Frame | LazyRows,
    y: Any,
    declared: Any,
    kind: str,
    parameter: str,
) -> tuple[Any, Domain, str]:
    """Match rows and labels to the columns of the domain; checks the schema only.

    Parameters
    ----------
    estimator : PrivateEstimator
        With the parameters ``domain`` and ``target``.
    read : Frame or LazyRows
        What was read of the rows that ``fit`` was given.
    y : array-like or None
        The labels that it was given.
    declared : Attribute, array-like or None
        Declaration of the label by the parameter that may do so.
    kind, parameter : str
        What this parameter holds, and its name, for errors: "the list of", "classes=".

    Returns
    -------
    rows : Frame or LazyRows
    domain : Domain
        With a column for the label.
    target : str
        Its name.

    Raises
    ------
    DomainError, TypeError, ValueError
        If no label is declared, or the schema does not fit.
    """
    unit = estimator._unit()
    domain, target = declare_label(
        estimator.domain, without_unit(read, unit), estimator.target, declared
    )
    if target is None:
        raise DomainError(
            "No column is declared as the label: name a column of the domain in target=, or "
            f"give {kind} {parameter}."
        )
    if declared is not None:
        require_y(estimator, y, f": {parameter} declares a label that X has no column for")
    rows, domain = match_rows(read, y, domain, target, lazy=True, unit=unit, of=estimator)
    return rows, domain, target


def feature_rows(estimator: PrivateEstimator, X: Any, ignored: str | None = None) -> Frame:
    """Rows to predict, without the label, under the names of the domain.

    Parameters
    ----------
    estimator : PrivateEstimator
        Fitted, with ``domain_`` and ``target_``.
    X : array-like or frame
    ignored : str, default=None
        A further column that is left out where it is there.
    """
    check_is_fitted(estimator)
    domain, target = estimator.domain_, estimator.target_
    rows = as_frame(X)
    for name in (target, ignored):
        if name is not None and name in rows.named:
            X = without_label(X, rows, domain, name)
            rows = rows.select([each for each in rows.names if each != name])
    validate_data(estimator, X, reset=False, skip_check_array=True)
    if rows.n_unnamed:
        names = [name for name in domain.names if name != target]
        rows = rows.with_names(domain.names_for(rows.n_unnamed, [target]) or names)
    return rows


def label_classes(domain: Domain, target: str) -> tuple[Any, IntArray]:
    """Declared labels, sorted, and the position among them of each code."""
    attribute = domain[target]
    if isinstance(attribute, Categorical):
        classes, class_of = np.unique(np.array(attribute.categories), return_inverse=True)
        return classes, class_of.astype(np.int64)
    if attribute.summable and attribute.one_each:
        values = np.arange(attribute.lower, attribute.upper + 1, dtype=np.int64)
        values = np.append(values, np.array(attribute.special, dtype=np.int64))
        classes, class_of = np.unique(values, return_inverse=True)
        return classes, class_of.astype(np.int64)
    kind = "Numeric of intervals" if attribute.summable else type(attribute).__name__
    raise DomainError(
        f"The label {target!r} is declared as a {kind}. A classifier needs a "
        "Categorical, or a Numeric with integer=True and one bin for each integer."
    )


def without_label(X: Any, rows: Frame, domain: Domain, target: str) -> Any:
    """The table ``X``, of which ``rows`` was read, without the column of the label."""
    if rows.n_unnamed:
        names = domain.names_for(rows.n_unnamed) or domain.names
        return np.delete(as_array(X), names.index(target), axis=1)
    return select_columns(X, [name for name in rows.names if name != target])


# --- `AnswersStatistics`: statistics of a release as methods of the estimator that made it


class AnswersStatistics:
    """Statistics with intervals; ``_asked()`` is the `Synopsis` that answers."""

    def _asked(self) -> Any:
        """The synopsis; NotFittedError without a fit."""
        raise NotImplementedError

    @of_records
    def count(self, query: Any = None, **how: Any) -> Any:
        """Expected number of records that satisfy a query; see :meth:`skdp.Synopsis.count`."""
        return self._asked().count(query, **how)

    @of_a_column
    def sum(self, column: str, query: Any = None, **how: Any) -> Any:
        """Sum of a numeric column over a query; see :meth:`skdp.Synopsis.sum`."""
        return self._asked().sum(column, query, **how)

    @of_a_column
    def mean(self, column: str, query: Any = None, **how: Any) -> Any:
        """Mean of a numeric column over a query; see :meth:`skdp.Synopsis.mean`."""
        return self._asked().mean(column, query, **how)

    @of_a_column
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
