"""Linear models: coefficients of public features, for classes and for numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._models import (
    ModelOfClasses,
    ModelOfLabels,
    ModelOfNumbers,
    check_pairs,
    coded_features,
    design_of,
    feature_columns,
    plain,
)
from ._validation import as_between, as_integer, check_choice, check_flag
from .algorithms.linear import (
    check_products,
    fit_auto,
    fit_functional,
    fit_genetic,
    fit_local_search,
    moment_reach,
)

__all__ = ["PrivateLinearRegression", "PrivateLinearSVC", "PrivateLogisticRegression"]

# Largest weight at first, and largest step, of a search; and its most rounds, whose noise fits into
# 64 bits at the least epsilon.
_FARTHEST, _MOST_ROUNDS = 100, 1000
_SOLVERS = ("auto", "functional", "local-search", "genetic")


@dataclass(eq=False, repr=False, kw_only=True)
class _LinearEstimator(ModelOfLabels):
    """Fitting and scoring; subclasses define the label, the loss and the predictions."""

    solver: Any = "auto"
    one_hot: Any = "categories"
    max_groups: Any = 32
    crossover: Any = True
    n_rounds: Any = None
    start: Any = 0.0
    step: Any = 0.4
    decay: Any = None

    # What the searches minimise: one of the losses of `skdp.algorithms.linear`.
    _loss: ClassVar[str]
    _solvers: ClassVar[tuple[str, ...]] = _SOLVERS

    def _plan(self, domain, means):
        check_choice(self.solver, "solver", self._solvers)
        max_groups = as_integer(self.max_groups, "max_groups", 2)
        columns = feature_columns(domain, self.one_hot, max_groups, means)
        self._check_search(1 + sum(len(each.labels) for each in columns))
        if self.solver == "functional":
            check_pairs(columns)
        return columns

    def _groups(self, columns):
        return [(each.groups, len(each.column.values)) for each in columns]

    def _check_search(self, n_weights):
        """Refuse wrong parameters of PrivGene and PrivLocal."""
        check_flag(self.crossover, "crossover")
        if self.n_rounds is not None and as_integer(self.n_rounds, "n_rounds", 1) > _MOST_ROUNDS:
            raise ValueError(f"n_rounds must be at most {_MOST_ROUNDS:,}, got {self.n_rounds!r}.")
        as_between(self.step, "step", Fraction(1, 1000), _FARTHEST)
        if self.decay is not None:
            as_between(self.decay, "decay", Fraction(1, 1000), 1)
        start = np.asarray(self.start)
        # In floats: of the least integer the absolute value is negative.
        numeric = start.dtype.kind in "iuf"
        numeric = numeric and bool((np.abs(start.astype(np.float64)) <= _FARTHEST).all())
        if not numeric or start.shape not in ((), (n_weights,)):
            raise ValueError(
                f"start must be a number, or {n_weights} of them: of the constant, and of the "
                f"features in the order of feature_labels_; none beyond {_FARTHEST}. Got "
                f"{self.start!r}."
            )

    def _check_noise(self, columns, link, epsilon):
        if self.solver == "functional":
            check_products(design_of(columns), moment_reach(link), epsilon)

    def _learn(self, records, columns, link, epsilon, total, source):
        given = records, design_of(columns), link, epsilon, total, source
        if self.solver == "genetic":
            return fit_genetic(*given, self._loss, self.crossover, n_rounds=self.n_rounds)
        if self.solver == "local-search":
            return fit_local_search(
                *given,
                self._loss,
                n_rounds=self.n_rounds,
                start=np.asarray(self.start, dtype=np.float64),
                step=float(self.step),
                decay=None if self.decay is None else float(self.decay),
            )
        return fit_functional(*given) if self.solver == "functional" else fit_auto(*given)

    def _publish(self, model, columns):
        factor, shift = self._units()
        scales = np.concatenate([each.scale for each in columns])
        shifts = np.concatenate([each.shift for each in columns])
        coef = model.coef / scales
        self.intercept_ = self._shown((model.intercept - coef @ shifts) * factor + shift)
        self.coef_ = self._shown(coef * factor)
        self.coef_std_ = self._shown(model.std / scales * factor)
        self.feature_labels_ = np.array(
            [label for each in columns for label in each.labels], dtype=object
        )
        self._columns = tuple(columns)

    def _shown(self, values):
        """Released arrays, outputs first, in the shape that users see."""
        return values

    def _scores(self, X):
        """Intercept plus coefficients times features, (n_rows,) or (n_rows, n_outputs)."""
        check_is_fitted(self)
        codes = self._codes(X, [each.name for each in self._columns])
        coef = np.atleast_2d(self.coef_)
        result = np.tile(np.atleast_1d(self.intercept_).astype(np.float64), (len(codes), 1))
        start = 0
        for each, scaled in zip(self._columns, coded_features(self._columns, codes), strict=True):
            features = each.shift + each.scale * scaled
            result += features @ coef[:, start : start + len(each.labels)].T
            start += len(each.labels)
        return plain(result)


# --- logistic regression and the linear support vector machine


@dataclass(eq=False, repr=False, kw_only=True)
class _LinearClassifier(_LinearEstimator, ModelOfClasses):
    def _shown(self, values):
        return np.atleast_1d(values)

    def _publish(self, model, columns):
        self.classes_ = self._declared_classes()
        super()._publish(model, columns)

    def decision_function(self, X) -> np.ndarray:
        """Scores of rows: intercept plus coefficients times features.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,), or (n_rows, n_classes) with more than two
            With two classes, positive where the second is more likely.
        """
        return self._scores(X)

    def predict(self, X) -> np.ndarray:
        """Most likely class of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        shares = self._shares(self._scores(X))
        return self.classes_[np.argmax(shares, axis=1)]


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateLogisticRegression(_LinearClassifier):
    """Logistic regression under pure epsilon-differential privacy, with exact noise.

    Categories become indicators; a number counts with the mean of its bin, or by indicators of its
    bins too (``one_hot="all"``), which is much more accurate where its effect is no straight line.

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
    solver : {"auto", "functional", "local-search", "genetic"}, default="auto"
        How the coefficients are learnt. "auto" measures histograms of each column and the label,
        and residuals, and shrinks what is noise; it is the most accurate of them [1]_. The others
        are published: "functional" minimises a Taylor polynomial of the loss [2]_, "local-search"
        moves one coefficient a round [3]_, and "genetic" selects among whole vectors of them [4]_.
    one_hot : {"categories", "all"}, default="categories"
        Columns of numbers that become indicators of their groups: none or all.
    max_groups : int, default=32
        Indicators of an ordered column are merged into at most so many equal parts.
    crossover : bool, default=True
        With ``solver="genetic"``: whether two parents swap the ends of their vectors.
    n_rounds : int, default=None
        Rounds of a search, at most 1,000. None: by the released number of records and epsilon,
        from 8 to 120 of "local-search" and from 8 to 12 of "genetic".
    start : float or array-like of shape (1 + n_coefficients,), default=0.0
        With "local-search": public weights at first, that of the constant before those of the
        features, which are scaled to between -1 and 1.
    step : float, default=0.4
        With "local-search": by how much a weight moves in the first round, from 0.001 to 100.
    decay : float, default=None
        With "local-search": by how much the step shrinks each round, at most 1. None: so that the
        last step is an eighth of the first.
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
    coef_ : ndarray of shape (1, n_coefficients), or (n_classes, n_coefficients) with more than two
        Added to the logit of the second class, or to the score of each class, by one unit of the
        feature; in the order of ``feature_labels_``.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    coef_std_ : ndarray like ``coef_``
        How far off ``coef_`` may be: standard deviations given what was released, as if columns
        were independent. NaN for searches, which do not know theirs.
    feature_labels_ : ndarray of shape (n_coefficients,)
        Names of the features: a column of numbers, or "column = value" of an indicator. A missing
        number counts as the middle of its range, and has an indicator.
    classes_ : ndarray of shape (n_classes,)
        The declared labels, sorted. They never come from ``y``.
    domain_ : Domain
        The domain, spelled out for every column, the label included.
    target_ : str
        The label's column in ``domain_``.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "groups" (counts of numbers with more than 32 bins), "total"
        (number of records), "model".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record. *Public*: domain, parameters. *Released*: the noisy
    number of records, and with "auto" what `PrivateAdditiveClassifier` releases; with "functional"
    sums of products of features, and of features in each class, of which a record with m columns
    changes the absolute values by 1 + m + m(m - 1)/2 + the number of columns of numbers at most;
    with the searches the candidate that wins each round. *Cost*: sequential composition. The number
    of rounds follows from the released number of records. Predicting is post-processing.

    There are no sample weights and no class weights: a record with weight w would cost w times its
    epsilon. To shift the balance of classes, move the threshold of ``predict_proba``.

    References
    ----------
    .. [1] Y. Lou, R. Caruana and J. Gehrke, "Intelligible models for classification and
       regression", KDD 2012.
    .. [2] J. Zhang, Z. Zhang, X. Xiao, Y. Yang and M. Winslett, "Functional mechanism: regression
       analysis under differential privacy", PVLDB 5(11), 2012; the sensitivity there is
       2(1 + 2d + d^2), for records that are replaced.
    .. [3] D. Su, "Differentially private data publishing and analysis", Purdue University 2016,
       Algorithm 8; the range of its scores is re-derived for records that are added or removed.
    .. [4] J. Zhang, X. Xiao, Y. Yang, Z. Zhang and M. Winslett, "PrivGene: differentially private
       model fitting using genetic algorithms", SIGMOD 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import Numeric, PrivateLogisticRegression
    >>> X = np.linspace(0, 1, 20_000)[:, None]
    >>> y = np.where(X[:, 0] > 0.5, "high", "low")
    >>> model = PrivateLogisticRegression(domain=Numeric(0, 1), classes=["low", "high"])
    >>> model.fit(X, y).predict([[0.9]]).tolist()
    ['high']
    """

    _loss = "logistic"

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
class PrivateLinearSVC(_LinearClassifier):
    """A linear classifier by its margin, under pure epsilon-differential privacy.

    Parameters
    ----------
    epsilon, domain, target, classes, one_hot, max_groups, crossover, n_rounds, start, step, \
decay, max_rows_per_id, privacy_id, ledger, random_state
        As for `PrivateLogisticRegression`.
    solver : {"auto", "local-search", "genetic"}, default="auto"
        The searches minimise the hinge loss, and are published; see `PrivateLogisticRegression`.
        "auto" takes the boundary of logistic regression instead, which is more accurate: under
        noise its smooth loss is learnt from far fewer numbers.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_coefficients), or (n_classes, n_coefficients) with more than two
        In the order of ``feature_labels_``.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    coef_std_ : ndarray like ``coef_``
        How far off ``coef_`` may be; NaN for searches.
    feature_labels_ : ndarray of shape (n_coefficients,)
        Names of the features.
    classes_ : ndarray of shape (n_classes,)
        The declared labels, sorted.
    domain_ : Domain
    target_ : str
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "groups" (counts of numbers with more than 32 bins), "total"
        (number of records), "model".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import Numeric, PrivateLinearSVC
    >>> X = np.linspace(0, 1, 20_000)[:, None]
    >>> y = np.where(X[:, 0] > 0.5, "high", "low")
    >>> model = PrivateLinearSVC(domain=Numeric(0, 1), classes=["low", "high"])
    >>> model.fit(X, y).predict([[0.9]]).tolist()
    ['high']
    """

    _loss = "hinge"
    _solvers = ("auto", "local-search", "genetic")


# --- linear regression


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateLinearRegression(_LinearEstimator, ModelOfNumbers):
    """Linear regression under pure epsilon-differential privacy, with exact noise.

    Categories become indicators; a number counts with the mean of its bin, or by indicators of its
    bins too, which is more accurate where its effect is no straight line.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, dict, pair, attribute, or list of these
        Public range or categories of every column, required. One attribute or pair is for all
        columns of an array.
    target : str, default=None
        Column of the domain that is the target and takes ``y``, a `Numeric`.
    target_range : (low, high), default=None
        The public range of the target, where the domain has no column for it. Giving both this
        and ``target`` is an error.
    solver : {"auto", "functional", "local-search", "genetic"}, default="auto"
        How the coefficients are learnt. "auto" measures histograms and sums of targets of each
        column, and residuals, and shrinks what is noise; it is the most accurate of them [1]_. The
        others are published: "functional" releases all second moments [2]_; "local-search" moves
        one coefficient a round [3]_, and "genetic" selects among whole vectors of them [4]_.
    one_hot : {"categories", "all"}, default="categories"
        Columns of numbers that become indicators of their groups: none or all.
    max_groups : int, default=32
        Indicators of an ordered column are merged into at most so many equal parts.
    crossover : bool, default=True
        With ``solver="genetic"``: whether two parents swap the ends of their vectors.
    n_rounds : int, default=None
        Rounds of a search, at most 1,000. None: by the released number of records and epsilon,
        from 8 to 120 of "local-search" and from 8 to 12 of "genetic".
    start : float or array-like of shape (1 + n_coefficients,), default=0.0
        With "local-search": public weights at first, that of the constant before those of the
        features, which are scaled to between -1 and 1.
    step : float, default=0.4
        With "local-search": by how much a weight moves in the first round, from 0.001 to 100.
    decay : float, default=None
        With "local-search": by how much the step shrinks each round, at most 1. None: so that the
        last step is an eighth of the first.
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
    coef_ : ndarray of shape (n_coefficients,)
        In units of the target for one unit of the feature, in the order of ``feature_labels_``.
    intercept_ : float
    coef_std_ : ndarray of shape (n_coefficients,)
        How far off ``coef_`` may be: standard deviations given what was released, as if columns
        were independent. NaN for searches, which do not know theirs.
    feature_labels_ : ndarray of shape (n_coefficients,)
        Names of the features: a column of numbers, or "column = value" of an indicator. A missing
        number counts as the middle of its range, and has an indicator.
    domain_ : Domain
        The domain, spelled out for every column, the target included.
    target_ : str
        The target's column in ``domain_``.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "groups" (counts of numbers with more than 32 bins), "total"
        (number of records), "model".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record. *Public*: domain, parameters. *Released*: the noisy
    number of records, and with "auto" what `PrivateAdditiveRegressor` releases; with "functional"
    sums of products of features and target, of which a record with m columns changes the absolute
    values by 2 + 2m + m(m - 1)/2 + the number of columns of numbers at most; with the searches the
    candidate that wins each round. *Cost*: sequential composition. The number of rounds follows
    from the released number of records. Predicting is post-processing.

    There are no sample weights: a record with weight w would cost w times its epsilon.

    References
    ----------
    .. [1] Y. Lou, R. Caruana and J. Gehrke, "Intelligible models for classification and
       regression", KDD 2012.
    .. [2] J. Zhang, Z. Zhang, X. Xiao, Y. Yang and M. Winslett, "Functional mechanism: regression
       analysis under differential privacy", PVLDB 5(11), 2012; the sensitivity there is
       2(1 + 2d + d^2), for records that are replaced.
    .. [3] D. Su, "Differentially private data publishing and analysis", Purdue University 2016,
       Algorithm 8.
    .. [4] J. Zhang, X. Xiao, Y. Yang, Z. Zhang and M. Winslett, "PrivGene: differentially private
       model fitting using genetic algorithms", SIGMOD 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import Numeric, PrivateLinearRegression
    >>> X = np.linspace(0, 1, 20_000)[:, None]
    >>> y = 2 + 6 * X[:, 0]
    >>> model = PrivateLinearRegression(epsilon=2.0, domain=Numeric(0, 1), target_range=(0, 10))
    >>> model = model.fit(X, y)
    >>> bool(abs(model.coef_[0] - 6) < 0.5)
    True
    """

    _loss = "squares"

    def _shown(self, values):
        return values[0]
