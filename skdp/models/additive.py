"""Additive models: an intercept and a function of each column."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from .._validation import check_choice
from ..exceptions import DomainError
from ..kernels.additive import Prior, fit_additive
from .base import ModelOfClasses, ModelOfGroups, ModelOfNumbers, plain
from .shapes import ShapeFunction

__all__ = ["PrivateAdditiveClassifier", "PrivateAdditiveRegressor"]


class _Additive(ModelOfGroups):
    """Fitting, reading and editing; subclasses define the label and the predictions."""

    def _learn(self, records, groupings, link, epsilon, total, source):
        priors = [Prior(len(each.labels), each.chain) for each in groupings.values()]
        return fit_additive(records, link, priors, epsilon, total, source)

    def _publish(self, model, groupings):
        """Set the released attributes, in the units that users see."""
        scale, shift = self._units()
        self.intercept_ = plain(model.intercept[None] * scale + shift)[0]
        shapes = zip(model.shapes, model.variances, model.sizes, strict=True)
        self._keep(
            {
                name: ShapeFunction(
                    grouping.groups,
                    tuple(grouping.labels),
                    plain(shape * scale),
                    plain(np.sqrt(variance) * scale),
                    sizes,
                    grouping.edges,
                    None if grouping.chain is None else tuple(grouping.chain),
                )
                for (name, grouping), (shape, variance, sizes) in zip(
                    groupings.items(), shapes, strict=True
                )
            }
        )

    def _keep(self, shapes):
        """Set the functions and what follows from them."""
        self.shape_functions_ = shapes
        self.feature_importances_ = np.array([shape.importance for shape in shapes.values()])

    def explain(self, X):
        """What each column adds to the score of each row; post-processing.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_columns), or (n_rows, n_columns, n_classes) with more than two
            In the order of the columns of ``shape_functions_``. With ``intercept_`` they sum to
            the score. A value that the domain cannot represent adds 0.
        """
        check_is_fitted(self)
        codes = self._codes(X, list(self.shape_functions_))
        shapes = self.shape_functions_.values()
        return np.stack([shape.at(codes[:, i]) for i, shape in enumerate(shapes)], axis=1)

    def set_shape(self, column, scores):
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

    def make_monotone(self, column, direction="increasing"):
        """Replace the function of an ordered column by the nearest monotone one; free.

        Parameters
        ----------
        column : str
        direction : {"increasing", "decreasing"}, default="increasing"
            Of the score (with more than two classes, of each class) along the order of the values.
            Special and missing values keep their scores.

        Returns
        -------
        self
        """
        check_choice(direction, "direction", ("increasing", "decreasing"))
        shape = self._shape(column)
        if shape.chain is None:
            raise ValueError(
                f"Column {column!r} has no order; declare its categories with ordered=True."
            )
        chain = list(shape.chain)
        # Groups of few records follow their neighbours.
        weights = np.maximum(shape.sizes[chain], 1.0)
        scores = shape.scores.reshape(len(shape.sizes), -1).copy()
        for output in range(scores.shape[1]):
            scores[chain, output] = isotonic_regression(
                scores[chain, output], sample_weight=weights, increasing=direction == "increasing"
            )
        return self.set_shape(column, scores.reshape(shape.scores.shape))

    def plot(self, columns=None, *, level=0.95):
        """Draw the functions of some columns, with bands of the privacy noise.

        Parameters
        ----------
        columns : list of str, default=None
            None: the six with the largest ``feature_importances_``.
        level : float, default=0.95
            Of the bands, which take the noise as normal.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from ..plotting import loss_title, plot_shapes

        check_is_fitted(self)
        if columns is None:
            order = np.argsort(-self.feature_importances_, kind="stable")[:6]
            columns = [list(self.shape_functions_)[position] for position in order]
        shapes = {name: self._shape(name) for name in columns}
        title = loss_title(f"{100 * level:g}% bands of the noise", self.privacy_loss_)
        return plot_shapes(shapes, self._score_text(), level=level, title=title)

    def _shape(self, column):
        check_is_fitted(self)
        if column not in self.shape_functions_:
            raise DomainError(
                f"The model has no column {column!r}; it has {list(self.shape_functions_)}."
            )
        return self.shape_functions_[column]

    def _scores(self, X):
        """Sum of the intercept and the functions of all columns."""
        check_is_fitted(self)
        codes = self._codes(X, list(self.shape_functions_))
        result = np.tile(self.intercept_, (len(codes), 1))
        result = result[:, 0] if np.ndim(self.intercept_) == 0 else result
        for column, shape in enumerate(self.shape_functions_.values()):
            result = result + shape.at(codes[:, column])
        return result


class PrivateAdditiveClassifier(_Additive, ModelOfClasses):
    """Generalised additive model of class probabilities: glass-box, exact noise, pure epsilon.

    The score of a class is an intercept plus a function of each column, which can be read, drawn,
    edited and made monotone after the fit. It is learnt from few noisy sums: one histogram of each
    column and the label; the weights of the columns, so that columns that say the same do not
    count twice; and, where records times epsilon pay for it, rounds of sums of residuals. Two
    classes are calibrated by a histogram of the scores that the model gives the records.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, attribute, or list of attributes
        Public range or categories of every column, required. One attribute stands for all
        columns of an array.
    target : str, default=None
        Column of the domain that is the label and takes ``y``.
    classes : array-like of shape (n_classes,), default=None
        The public list of labels, where the domain has no column for the label. Giving both this
        and ``target`` is an error.
    max_groups : int, default=32
        Ordered columns are merged into at most so many equal parts.
    max_contributions : int, default=None
        Keep at most this many rows of each person, chosen secretly; epsilon then protects the
        person. Needs ``unit``. None: epsilon protects one row.
    unit : str, default=None
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
        Epsilon and its parts: "total" (number of records), "model".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record. *Public*: domain, parameters. *Released*: the noisy
    number of records; for each column the counts of groups and classes (sensitivity 1, with a
    public share of the budget); the gradient and curvature of the loss in the weights of the
    columns (each record's part is bounded in integers); sums of residuals by group of each column
    (sensitivity 1, with more than two classes 2); with two classes the counts of scores and classes
    (sensitivity 1). *Cost*: sequential composition; how the part "model" is divided follows from
    the released number of records. Reading, editing and predicting are post-processing.

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

    def __init__(
        self,
        epsilon=1.0,
        *,
        domain=None,
        target=None,
        classes=None,
        max_groups=32,
        max_contributions=None,
        unit=None,
        ledger=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.domain = domain
        self.target = target
        self.classes = classes
        self.max_groups = max_groups
        self.max_contributions = max_contributions
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    def _publish(self, model, groupings):
        self.classes_ = self._declared_classes()
        super()._publish(model, groupings)

    def _score_text(self):
        if len(self.classes_) > 2:
            return "score of each class"
        return f"adds to the logit of {self.classes_[-1]}"

    def predict_proba(self, X):
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

    def predict(self, X):
        """Most probable class of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        shares = self.predict_proba(X)
        return self.classes_[np.argmax(shares, axis=1)]


class PrivateAdditiveRegressor(_Additive, ModelOfNumbers):
    """Additive model of a number: glass-box, exact noise, pure epsilon.

    Like `PrivateAdditiveClassifier`; the functions add to the expected value of the target.

    Parameters
    ----------
    epsilon, domain, target, max_groups, max_contributions, unit, ledger, random_state
        As for `PrivateAdditiveClassifier`. The column ``target`` is a `Numeric`.
    target_range : (low, high), default=None
        The public range of the target, where the domain has no column for it. It is divided into
        256 bins. Giving both this and ``target`` is an error.

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
        Epsilon and its parts: "total" (number of records), "model".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    As for `PrivateAdditiveClassifier`; instead of counts of classes, the counts of groups and the
    sums of targets, as shares of half the declared range, are released. Targets are clipped to the
    range, and stand in the middle of their bin.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import Numeric, PrivateAdditiveRegressor
    >>> X = np.linspace(0, 1, 20_000)[:, None]
    >>> y = 10 * X[:, 0]
    >>> model = PrivateAdditiveRegressor(2.0, domain=Numeric(0, 1), target_range=(0, 10)).fit(X, y)
    >>> bool(abs(model.predict([[0.5]])[0] - 5) < 0.5)
    True
    """

    def __init__(
        self,
        epsilon=1.0,
        *,
        domain=None,
        target=None,
        target_range=None,
        max_groups=32,
        max_contributions=None,
        unit=None,
        ledger=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.domain = domain
        self.target = target
        self.target_range = target_range
        self.max_groups = max_groups
        self.max_contributions = max_contributions
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    def _score_text(self):
        return f"adds to {self.target_}"

    def predict(self, X):
        """Expected target of each row, within the declared range.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self._within(self._scores(X))
