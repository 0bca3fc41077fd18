"""Meta-estimators that train ordinary scikit-learn estimators on a private release."""

from __future__ import annotations

import copy
import numbers
import warnings

import numpy as np
import pandas as pd
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    RegressorMixin,
    clone,
)
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from ._base import Published, ShowsPrivacy, declare_label, full_domain
from ._pipelines import Rows, child, is_inferred, price, walk
from ._random import sampling_generator
from .domain import Categorical, Numeric
from .exceptions import DomainError, TrainingError
from .rows import as_frame, select_columns, take_rows

__all__ = ["PrivateClassifier", "PrivateRegressor"]

# Labels with less than this part of an equal share of the synthetic rows are hardly released.
_HARDLY = 0.02
# Rows of the public domain that an estimator is tried on before the charge: at least so many, so
# many for each label, and at most so many. The second row is for estimators that need many.
_TRIALS = ((64, 10, 2_000), (2_000, 20, 20_000))


def _offers_probabilities(self):
    fitted = getattr(self, "estimator_", self.estimator)
    return hasattr(fitted, "predict_proba")


class _TrainedOnRelease(Published, ShowsPrivacy, MetaEstimatorMixin, BaseEstimator):
    """What the classifier and the regressor share: release, train on the release, predict."""

    def fit(self, X, y):
        """Charge, release, and train on the release.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)

        Returns
        -------
        self

        Raises
        ------
        DomainError
            If the schema does not fit or the label is not declared; nothing is spent.
        ValueError
            If ``estimator`` cannot be trained on a few rows drawn from the public domain, or
            cannot predict them; nothing is spent.
        BudgetExceededError
            If the ledger cannot pay; no value has been read.
        TrainingError
            If ``estimator`` cannot be trained on the release; ``synthesizer_`` keeps it.
        """
        self._check_sampling()
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        if isinstance(self.synthesizer, FrozenEstimator):
            return self._train_frozen(self.synthesizer.estimator, X)
        release = clone(self.synthesizer)
        if getattr(release, "unit", None) is not None:
            raise ValueError(
                f"The synthesizer's unit={release.unit!r} is a column that X has for training "
                f"and new rows have not. Fit the synthesizer first, and give it to "
                f"{type(self).__name__} as FrozenEstimator(synthesizer)."
            )
        rows = as_frame(X)
        label = self._label_attribute()
        if getattr(release, "classes", None) is not None:
            if label is not None:
                raise ValueError(
                    f"Both this {type(self).__name__} and its synthesizer declare the label. "
                    "Declare it once."
                )
            label = release.classes
            release.set_params(classes=None)
        domain, target = declare_label(release.domain, rows, release.target, label)
        if target is None:
            raise DomainError(
                "No column is declared as the label: give the synthesizer a target= (a column of "
                f"its domain), or {type(self).__name__} {self._shorthand}."
            )
        domain = full_domain(domain, rows)
        self._check_label(domain[target], target)
        release.set_params(domain=domain, target=target)
        self._try_out(release, domain, rows.library)
        try:
            release.fit(X, y)
        finally:
            # Also where a warning of the fit is made an error: the release was paid for.
            if hasattr(release, "privacy_loss_"):
                self._keep(release)
        validate_data(self, X, skip_check_array=True)
        return self._train_release(release)

    def _train_frozen(self, release, X):
        """Train on a release that was made, and paid for, before."""
        check_is_fitted(release)
        if self._label_attribute() is not None or getattr(release, "target", None) is None:
            raise ValueError(
                "A frozen release holds its label already, in the column that its target= names: "
                f"fit it with a target, and give {type(self).__name__} no label of its own."
            )
        self._check_label(release.domain_[release.target], release.target)
        validate_data(self, X, skip_check_array=True)
        return self._train_release(copy.copy(release))

    def _train_on(self, fitted, X):
        """Become what a fit would have made, had it drawn the release that ``fitted`` holds."""
        validate_data(self, X, skip_check_array=True)
        return self._train_release(copy.copy(fitted.synthesizer_))

    def _train_release(self, release):
        # From here on everything is post-processing of the release, which has been charged. It is
        # kept even if training fails, and an error of training depends on the release only.
        self._keep(release)
        try:
            self.estimator_ = self._train_on_rows_of(release, self.n_samples, self.random_state)
        except Exception as error:
            raise TrainingError(
                f"The release was made and paid for, but {type(self.estimator).__name__} could not "
                f"be trained on it: {type(error).__name__}: {error}\nThe release is kept: it is "
                "synthesizer_ of this model and synthesizer of this error. Training on it "
                "again costs nothing: "
                f"{type(self).__name__}(another_estimator, FrozenEstimator(release)).fit(X, y).",
                release,
            ) from error
        return self

    def _keep(self, release):
        """Keep a fitted release, and drop what was trained on an earlier one."""
        for name in ("estimator_", "classes_"):
            vars(self).pop(name, None)
        self.synthesizer_ = release
        self.privacy_loss_ = release.privacy_loss_

    def _train_on_rows_of(self, release, n_samples, random_state):
        rng = sampling_generator(random_state)
        X, y, weight = release.make_training_set(n_samples, random_state=rng)
        return self._train(X, y, weight, release.domain_[release.target], rng)

    def _try_out(self, release, domain, library):
        """Train and predict on rows of the public domain, before anything is charged.

        No private row is read: an error here follows from the parameters and the domain.
        """
        if not hasattr(release, "_stand_in"):
            return
        public = clone(release)._stand_in(domain, library)
        twin = copy.copy(self)
        # Of private estimators, a ledger that a training on a release would charge.
        inner = clone(self.estimator)
        books = [key for key in inner.get_params() if key.rpartition("__")[2] == "ledger"]
        twin.estimator = inner.set_params(**dict.fromkeys(books))
        n_labels = domain[release.target].n_values
        failure = None
        for least, each, most in _TRIALS:
            n_rows = min(max(least, each * n_labels), most)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    trained = twin._train_on_rows_of(public, n_rows, 0)
                    trained.predict(public.make_training_set(n_rows, random_state=0)[0])
                return
            except Exception as error:
                failure = error
        raise ValueError(
            f"{type(self.estimator).__name__} cannot be trained on rows of this domain. Tried on "
            f"{n_rows:,} rows drawn from the declared domain, with every label and, in nullable "
            f"columns, with gaps, it raised {type(failure).__name__}: {failure}\nNothing was read "
            "or spent. Text needs an encoder, and gaps an imputer, inside the estimator. If it "
            "needs other rows than these, fit the synthesizer first, and pass it as "
            "FrozenEstimator(synthesizer)."
        ) from failure

    def _check_sampling(self):
        """Refuse parameters of the synthetic draw, before anything is spent."""
        sampling_generator(self.random_state)
        n_samples = self.n_samples
        if n_samples is None:
            return
        if isinstance(n_samples, bool) or not isinstance(n_samples, numbers.Integral):
            raise TypeError(f"n_samples must be an integer or None, got {n_samples!r}.")
        if n_samples < 0:
            raise ValueError(f"n_samples must not be negative, got {n_samples!r}.")

    def __sklearn_is_fitted__(self):
        # A release whose training failed is kept, but predicts nothing.
        return hasattr(self, "estimator_")

    def predict(self, X):
        """Predict the label of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        rows = self._test_rows(X)
        return self.estimator_.predict(rows)

    def _test_rows(self, X):
        check_is_fitted(self)
        as_frame(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        target = self.synthesizer_.target
        features = [name for name in self.synthesizer_.domain_.names if name != target]
        return self.synthesizer_.prepare(select_columns(X, features))

    def _privacy_steps(self, name, rows):
        # The true rows meet the release only; what is trained sees the release only.
        made = getattr(self, "synthesizer_", None)
        # A seed stays behind when a fitted model travels; that there was one does not. Nor does a
        # domain that was declared after the fit take back what was released before.
        flawed = made is not None and (
            made.privacy_loss_.seeded or is_inferred(getattr(made, "domain_", None))
        )
        return [
            *walk(made if flawed else self.synthesizer, child(name, "synthesizer"), rows),
            *walk(self.estimator, child(name, "estimator"), Rows(released=True)),
        ]

    def _price(self):
        return price(self)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = get_tags(self.synthesizer)
        tags.input_tags = inner.input_tags
        tags.non_deterministic = True
        return tags


class PrivateClassifier(ClassifierMixin, _TrainedOnRelease):
    """Release the training data privately, then train any classifier on the release.

    The true rows and labels meet the release only; ``estimator`` sees synthetic (or weighted)
    rows, so that whatever it stores is post-processing of an epsilon-DP release and costs nothing
    more. Prediction reads the rows that it is given and releases nothing of the training data.

    Parameters
    ----------
    estimator : scikit-learn classifier
        Trained on the release. It is cloned. Text columns need an encoder in it, as with
        ordinary data (a ``Pipeline`` is fine).
    synthesizer : release of skdp
        For example ``HDPViewSynthesizer(epsilon=1, domain=domain, target="income")``. It is
        cloned; its ledger is charged by every ``fit``. ``FrozenEstimator(release)`` around a fitted
        one, with a ``target``, is trained on as it is and not paid for again.
    classes : array-like of shape (n_classes,), default=None
        The public list of labels, where the synthesizer's domain has no column for the label
        and the synthesizer has no ``classes`` itself. Giving both this and the synthesizer's
        ``target`` is an error.
    n_samples : int, default=None
        Number of synthetic rows to train on; None means the release's noisy total (never the
        exact number of rows).
    random_state : int or None, default=None
        Seed of the synthetic draw only. The draw is post-processing: seeding it harms nothing.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The declared labels, in the declared order when the domain is ordered, else sorted.
        They never come from ``y``.
    estimator_ : estimator
        The classifier trained on the release. Where the release shows fewer than two labels,
        a constant classifier stands in.
    synthesizer_ : estimator
        The fitted release.
    privacy_loss_ : PrivacyLoss
        What the fit spent: the synthesizer's. Of a frozen release: what it cost when it was made.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the training rows had column names.

    Notes
    -----
    A score computed from true held-out rows (``score``, ``cross_val_score``) is exact and not
    private: it is for the data owner only. Cross-validation fits k releases and
    charges each of them.

    Before the charge ``estimator`` is trained on a few rows drawn from the declared domain, so that
    an estimator that cannot be trained costs no epsilon. If training on the release fails, the
    release is kept in ``synthesizer_``.

    Meta-estimators of scikit-learn (voting, stacking, bagging, one-vs-rest) encode the labels as 0,
    1, ... before they fit the inner estimators. Put them inside, as ``estimator``, or declare
    ``classes=range(k)``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdp import HDPViewSynthesizer, Numeric, PrivateClassifier
    >>> X = np.repeat([[0.2, 0.3], [0.8, 0.7]], 5_000, axis=0)
    >>> y = np.repeat(["low", "high"], 5_000)
    >>> release = HDPViewSynthesizer(epsilon=2.0, domain=Numeric(0, 1, bins=4))
    >>> model = PrivateClassifier(LogisticRegression(), release, classes=["low", "high"])
    >>> model.fit(X, y).predict([[0.8, 0.7]]).tolist()
    ['high']
    """

    def __init__(self, estimator, synthesizer, *, classes=None, n_samples=None, random_state=None):
        self.estimator = estimator
        self.synthesizer = synthesizer
        self.classes = classes
        self.n_samples = n_samples
        self.random_state = random_state

    _shorthand = "the list of classes="

    def _label_attribute(self):
        return self.classes

    def _check_label(self, attribute, target):
        _declared_classes(attribute, target)

    def _train(self, X, y, weight, attribute, rng):
        classes = _declared_classes(attribute, self.__class__.__name__)
        _warn_of_numbering(classes, y, weight)
        estimator = _train_classifier(self.estimator, X, y, weight, classes, rng)
        self.classes_ = classes
        return estimator

    @available_if(_offers_probabilities)
    def predict_proba(self, X):
        """Predict the probability of each declared label.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns as in ``classes_``; zero for a label that the release does not show.
        """
        rows = self._test_rows(X)
        shown = self.estimator_.predict_proba(rows)
        full = np.zeros((len(shown), len(self.classes_)))
        full[:, np.searchsorted(self.classes_, self.estimator_.classes_)] = shown
        return full

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # On the few rows of a small table noise wins.
        tags.classifier_tags.poor_score = True
        return tags


class PrivateRegressor(RegressorMixin, _TrainedOnRelease):
    """Release the training data privately, then train any regressor on the release.

    As `PrivateClassifier`, for a number: the true rows and targets meet the release only, and
    ``estimator`` sees synthetic (or weighted) rows.

    Parameters
    ----------
    estimator : scikit-learn regressor
        Trained on the release. It is cloned.
    synthesizer : release of skdp
        Whose ``target`` is a `Numeric` column of its domain. It is cloned; its ledger is charged
        by every ``fit``. ``FrozenEstimator(release)`` around a fitted one is trained on as it is
        and not paid for again.
    target_range : (low, high), default=None
        The public range of the target, where the synthesizer's domain has no column for it. It is
        cut into 32 bins; for other bins put a `Numeric` into the domain. Giving both this and the
        synthesizer's ``target`` is an error.
    n_samples : int, default=None
        Number of synthetic rows to train on; None means the release's noisy total (never the
        exact number of rows).
    random_state : int or None, default=None
        Seed of the synthetic draw only. The draw is post-processing: seeding it harms nothing.

    Attributes
    ----------
    estimator_ : estimator
        The regressor trained on the release. Where the release shows nobody, a constant in the
        middle of the range stands in.
    synthesizer_ : estimator
        The fitted release.
    privacy_loss_ : PrivacyLoss
        What the fit spent: the synthesizer's. Of a frozen release: what it cost when it was made.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the training rows had column names.

    Notes
    -----
    ``estimator`` is tried on public rows before the charge, and a release whose training fails is
    kept, as by `PrivateClassifier`. Targets are clipped to the declared range before they are
    counted, and spread evenly in their bin when rows are drawn. A score computed from true held-out
    rows is exact and not private; `private_mse` releases one.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skdp import Numeric, PairViewSynthesizer, PrivateRegressor
    >>> X = np.linspace(0, 1, 5_000)[:, None]
    >>> y = 10 * X[:, 0]
    >>> release = PairViewSynthesizer(epsilon=2.0, domain=Numeric(0, 1))
    >>> model = PrivateRegressor(LinearRegression(), release, target_range=(0, 10)).fit(X, y)
    >>> model.predict([[0.5]]).round().tolist()
    [5.0]
    """

    def __init__(
        self, estimator, synthesizer, *, target_range=None, n_samples=None, random_state=None
    ):
        self.estimator = estimator
        self.synthesizer = synthesizer
        self.target_range = target_range
        self.n_samples = n_samples
        self.random_state = random_state

    _shorthand = "its target_range=(low, high)"

    def _label_attribute(self):
        return None if self.target_range is None else Numeric(*self.target_range)

    def _check_label(self, attribute, target):
        if not isinstance(attribute, Numeric):
            raise DomainError(
                f"The label {target!r} is declared as a {type(attribute).__name__}. A regressor "
                "needs a Numeric; for a Categorical take PrivateClassifier."
            )

    def _train(self, X, y, weight, attribute, rng):
        known = ~pd.isna(np.asarray(y))
        if not known.any():
            middle = (float(attribute.lower) + float(attribute.upper)) / 2
            return DummyRegressor(strategy="constant", constant=middle).fit([[0.0]], [middle])
        X, y, weight = _usable(self.estimator, X, y, weight, known, rng)
        return _fit(self.estimator, X, np.asarray(y, dtype=float), weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


def _declared_classes(attribute, target):
    """The labels that the domain declares, sorted as scikit-learn does."""
    if isinstance(attribute, Categorical):
        return np.unique(np.array(attribute.categories))
    if attribute.integer:
        return np.arange(attribute.lower, attribute.upper + 1, dtype=np.int64)
    raise DomainError(
        f"The label {target!r} is declared as a continuous Numeric. A classifier needs a "
        "Categorical, or a Numeric with integer=True."
    )


def _warn_of_numbering(classes, y, weight):
    """Warn if a meta-estimator seems to have encoded the labels; from RELEASED rows only.

    y is private and must not be looked at. But if it was encoded as 0, 1, ..., declared labels
    outside that range have no records.
    """
    n = len(classes)
    above = classes[(classes < 0) | (classes >= n)] if classes.dtype.kind in "iu" else []
    if not len(above) or not len(y):
        return
    weight = np.ones(len(y)) if weight is None else weight
    share = weight[pd.Series(y).isin(above).to_numpy()].sum() / weight.sum()
    if share < _HARDLY * len(above) / n:
        warnings.warn(
            f"The release shows hardly a record of the labels {above.tolist()}. If y holds them, "
            "a meta-estimator of scikit-learn has encoded the labels as 0, 1, ... (voting, "
            "stacking, bagging, one-vs-rest, cross_val_predict(method='predict_proba')). Turn it "
            "inside out, PrivateClassifier(VotingClassifier(...), synthesizer), or declare the "
            f"labels that it passes on, classes=range({n}) ([0, 1] within one-vs-rest).",
            UserWarning,
            stacklevel=2,
        )


def _train_classifier(estimator, X, y, weight, classes, rng):
    """Train a clone of ``estimator``, or a constant where there is nothing to tell apart."""
    known = pd.Series(y).isin(classes).to_numpy()
    present = classes[pd.Series(classes).isin(y[known]).to_numpy()]
    if len(present) < 2:
        constant = present[0] if len(present) else classes[0]
        dummy = DummyClassifier(strategy="constant", constant=constant)
        return dummy.fit(np.zeros((1, 1)), classes[classes == constant])
    return _fit(estimator, *_usable(estimator, X, y, weight, known, rng))


def _usable(estimator, X, y, weight, known, rng):
    """The rows with a label; drawn in proportion where the estimator takes no weights."""
    if known.all() and (weight is None or has_fit_parameter(estimator, "sample_weight")):
        return X, y, weight
    if weight is None:
        chosen = np.flatnonzero(known)
    else:
        # Not every estimator takes weights: drawing rows in proportion does the same on average.
        share = known * weight
        n_rows = max(1, round(share.sum()))
        chosen = rng.choice(len(y), size=n_rows, p=share / share.sum())
    return take_rows(X, chosen), y[chosen], None


def _fit(estimator, X, y, weight):
    estimator = clone(estimator)
    return estimator.fit(X, y) if weight is None else estimator.fit(X, y, sample_weight=weight)
