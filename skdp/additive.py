"""Additive models: a function of each column, fitted with noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from ._models import ModelOfClasses, ModelOfGroups, ModelOfNumbers, plain
from ._validation import CodeArray, FloatArray, IntArray
from .algorithms.additive import Prior, fit_additive, mean_size
from .domain import Date, Datetime
from .exceptions import DomainError

__all__ = ["PrivateAdditiveClassifier", "PrivateAdditiveRegressor", "ShapeFunction"]


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
        How far off they may be: standard deviations given what was released, which noise, chance
        and shrinkage leave open, as if columns were independent.
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
        ends = [""] if self.scores.ndim == 1 else [f"_{k}" for k in range(self.scores.shape[1])]
        each = (np.atleast_2d(values.T) for values in (self.scores, self.std_errors))
        for end, score, error in zip(ends, *each, strict=True):
            columns |= {f"score{end}": score, f"std_error{end}": error}
        return pd.DataFrame(columns | {"records": np.round(self.sizes)})


# ------------------------------------------------------------------------------------------------
# Additive models: an intercept and a function of each column.


@dataclass(eq=False, repr=False, kw_only=True)
class _Additive(ModelOfGroups):
    """Fitting, reading and editing; subclasses define the label and the predictions."""

    max_groups: Any = None

    def _learn(self, records, groupings, link, epsilon, total, source):
        priors = [Prior(len(each.labels), each.chain) for each in groupings.values()]
        return fit_additive(records, link, priors, epsilon, total, source)

    def _publish(self, model, groupings):
        """Set the released attributes, in the units that users see."""
        scale, shift = self._units()
        self.intercept_ = plain(model.intercept[None] * scale + shift)[0]
        functions = {
            name: ShapeFunction(
                grouping.groups,
                tuple(grouping.labels),
                plain(term.scores * scale),
                plain(term.std_errors * scale),
                term.sizes,
                grouping.edges,
                None if grouping.chain is None else tuple(grouping.chain),
            )
            for (name, grouping), term in zip(groupings.items(), model.terms, strict=True)
        }
        self._keep(functions)

    def _keep(self, functions):
        """Set the functions and what follows from them."""
        self.shape_functions_ = functions
        self.feature_importances_ = np.array([each.importance for each in functions.values()])

    def _added(self, X):
        """What each function adds to the scores of the rows."""
        check_is_fitted(self)
        codes = self._codes(X, list(self.shape_functions_))
        functions = self.shape_functions_.values()
        return codes, [each.at(column) for each, column in zip(functions, codes.T, strict=True)]

    def explain(self, X) -> np.ndarray:
        """What each column adds to the score of each row; post-processing.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_functions)
            With more than two classes (n_rows, n_functions, n_classes). In the order of
            ``shape_functions_``. With ``intercept_`` they sum to the score. A value that the domain
            cannot represent adds 0.
        """
        return np.stack(self._added(X)[1], axis=1)

    def set_shape(self, column, scores) -> Self:
        """Replace the function of a column; free, and the next ``fit`` forgets it.

        Parameters
        ----------
        column : str
        scores : array-like like ``shape_functions_[column].scores``
            New scores of the groups, in the same units.

        Returns
        -------
        self
        """
        shape = self._shape(column)
        scores = np.array(scores, dtype=np.float64)
        if scores.shape != shape.scores.shape:
            raise ValueError(
                f"Column {column!r} needs scores of shape {shape.scores.shape}, one for each "
                f"group, got {scores.shape}."
            )
        if not np.isfinite(scores).all():
            raise ValueError(f"scores of column {column!r} must be finite.")
        # A new dict: copies of the estimator keep theirs.
        self._keep({**self.shape_functions_, column: replace(shape, scores=scores)})
        return self

    def plot(self, columns=None, *, level=0.95) -> Any:
        """Draw the functions of some columns, with bands of what is not known.

        Parameters
        ----------
        columns : list of str, default=None
            None: the six whose functions add most to scores. Special and missing values of a number
            are not drawn; ``shape_functions_`` has their scores.
        level : float, default=0.95
            Of the bands, which take errors as normal.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from .plotting import loss_title, plot_shapes

        check_is_fitted(self)
        if columns is None:
            sizes = {name: each.importance for name, each in self.shape_functions_.items()}
            columns = sorted(sizes, key=lambda name: -sizes[name])[:6]
        shapes = {name: self._shape(name) for name in columns}
        title = loss_title(f"{100 * level:g}% bands", self.privacy_loss_)
        dates = {
            name: replace(shapes[name], edges=each.days(shapes[name].edges))
            for name, each in self.domain_.items()
            if name in shapes and isinstance(each, Date | Datetime)
        }
        return plot_shapes(
            {**shapes, **dates},
            self._score_text(),
            level=level,
            title=title,
            outputs=self._score_names(),
            dates=dates,
        )

    def _shape(self, column):
        check_is_fitted(self)
        if column not in self.shape_functions_:
            raise DomainError(
                f"The model has no column {column!r}; it has {list(self.shape_functions_)}."
            )
        return self.shape_functions_[column]

    def _scores(self, X):
        """Sum of the intercept and the functions of all columns."""
        codes, parts = self._added(X)
        result = np.tile(self.intercept_, (len(codes), 1))
        result = result[:, 0] if np.ndim(self.intercept_) == 0 else result
        for part in parts:
            result = result + part
        return result


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateAdditiveClassifier(_Additive, ModelOfClasses):
    """Generalised additive model of class probabilities: glass-box, exact noise, pure epsilon.

    The score of a class is an intercept plus a function of each column, which can be read, drawn
    and edited after the fit. It is learnt from few noisy sums: one histogram of each
    column and the label; and, where records times epsilon pay for it, rounds of sums of residuals,
    one column after the other, so that columns that say the same do not count twice. A histogram of
    the scores that the model gives the records calibrates it. What two columns say only together is
    not learnt: `PrivPfCClassifier` and trees do.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, dict, pair, attribute, or list of these
        Public range or categories of every column, required. One attribute or pair is for all
        columns of an array.
    target : str, default=None
        Column of the domain that is the label and takes ``y``.
    classes : array-like of shape (n_classes,), default=None
        The public list of labels, where the domain has no column for the label. Giving both this
        and ``target`` is an error.
    max_groups : int, default=None
        Most groups of an ordered column. Numbers are cut where released counts are about equal.
        None: 32; of numbers up to 128 where there are many records times epsilon.
    max_rows_per_id : int, default=None
        Keep at most this many rows of each person, chosen secretly; epsilon then protects the
        person. Needs ``privacy_id``. None: epsilon protects one row.
    privacy_id : str, default=None
        Column of the data, not of the domain, that identifies the person a row belongs to. Rows
        without a value in it are skipped.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read.
    random_state : int or None, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Attributes
    ----------
    shape_functions_ : dict of str to ShapeFunction
        What each column adds to the score: with two classes the logit of the second, with more
        one score for each class.
    intercept_ : float or ndarray of shape (n_classes,)
    feature_importances_ : ndarray of shape (n_columns,)
        Mean absolute contribution of each column.
    classes_ : ndarray of shape (n_classes,)
        The declared labels, sorted. They never come from ``y``.
    domain_ : Domain
        The domain, spelled out for every column, the label included.
    target_ : str
        The label's column in ``domain_``.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "groups" (counts of numbers with more than 32 bins), "total" (number
        of records), "model".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record. *Public*: domain, parameters. *Released*: the noisy
    number of records; for each column the counts of groups and classes (sensitivity 1, with a
    public share of the budget); sums of residuals by group of each column (sensitivity 1, with more
    than two classes 2); the counts of scores and classes (sensitivity 1), with more than two
    classes of differences of scores, and those of the classes (sensitivity 1 each). *Cost*:
    sequential composition; how the part "model" is divided follows from the released number of
    records. Reading, editing and predicting are post-processing.

    References
    ----------
    Y. Lou, R. Caruana and J. Gehrke, "Intelligible models for classification and regression",
    KDD 2012; H. Nori, R. Caruana, Z. Bu, J. Shen and J. Kulkarni, "Accuracy, interpretability, and
    differential privacy via explainable boosting", ICML 2021 (with delta and many rounds).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import Numeric, PrivateAdditiveClassifier
    >>> X = np.repeat([[0.2, 0.3], [0.8, 0.7]], 5_000, axis=0)
    >>> y = np.repeat(["low", "high"], 5_000)
    >>> model = PrivateAdditiveClassifier(domain=Numeric(0, 1, bins=4), classes=["low", "high"])
    >>> model.fit(X, y).predict([[0.8, 0.7]]).tolist()
    ['high']
    """

    def _publish(self, model, groupings):
        self.classes_ = self._declared_classes()
        super()._publish(model, groupings)

    def _score_text(self):
        if len(self.classes_) > 2:
            return "score of each class"
        return f"adds to the logit of {self.classes_[-1]}"

    def _score_names(self):
        return [str(label) for label in self.classes_]

    def predict_proba(self, X) -> np.ndarray:
        """Probability of each class.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns as in ``classes_``.
        """
        return self._shares(self._scores(X))


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateAdditiveRegressor(_Additive, ModelOfNumbers):
    """Additive model of a number: glass-box, exact noise, pure epsilon.

    Like `PrivateAdditiveClassifier`; the functions add to the expected value of the target.

    Parameters
    ----------
    epsilon, domain, target, max_groups, max_rows_per_id, privacy_id, ledger, random_state
        As for `PrivateAdditiveClassifier`. The column ``target`` is a `Numeric`.
    target_range : (low, high), default=None
        The public range of the target, where the domain has no column for it. It is divided into
        2,048 bins. Giving both this and ``target`` is an error.

    Attributes
    ----------
    shape_functions_ : dict of str to ShapeFunction
        What each column adds to the prediction, in units of the target.
    intercept_ : float
    feature_importances_ : ndarray of shape (n_columns,)
        Mean absolute contribution of each column.
    domain_ : Domain
    target_ : str
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "groups" (counts of numbers with more than 32 bins), "total" (number
        of records), "model".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    As for `PrivateAdditiveClassifier`; instead of counts of classes, the counts of groups and the
    sums of targets are released, and before them the median of the target, a distance from it
    beyond which few records are, and the means of what is within. All else is in units of the
    released spread, so that a range may be declared far too wide. Targets are clipped to the range,
    and stand in the middle of their bin.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import Numeric, PrivateAdditiveRegressor
    >>> X = np.linspace(0, 1, 20_000)[:, None]
    >>> y = 10 * X[:, 0]
    >>> model = PrivateAdditiveRegressor(epsilon=2.0, domain=Numeric(0, 1), target_range=(0, 10))
    >>> model = model.fit(X, y)
    >>> bool(abs(model.predict([[0.5]])[0] - 5) < 0.5)
    True
    """

    def _score_text(self):
        return f"adds to {self.target_}"

    def _score_names(self):
        return []
