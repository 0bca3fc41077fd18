"""Meta-estimators that train ordinary scikit-learn estimators on a private release."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from ._base import declare_label, full_domain
from ._random import sampling_generator
from .domain import Categorical
from .exceptions import DomainError
from .frames import as_frame, select_columns, take_rows

__all__ = ["PrivateClassifier"]


def _offers_probabilities(self):
    fitted = getattr(self, "estimator_", self.estimator)
    return hasattr(fitted, "predict_proba")


class PrivateClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
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
        cloned; its ledger is charged by every ``fit``.
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
        What the fit spent: the synthesizer's.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only where the training rows had column names.

    Notes
    -----
    A score computed from true held-out rows (``score``, ``cross_val_score``) is exact and not
    private: it is for the eyes of the data's holder. Cross-validation fits k releases and
    charges each of them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdp import HDPViewSynthesizer, Numeric, PrivateClassifier
    >>> X = np.repeat([[0.2, 0.3], [0.8, 0.7]], 500, axis=0)
    >>> y = np.repeat(["low", "high"], 500)
    >>> release = HDPViewSynthesizer(epsilon=2.0, domain=Numeric(0, 1, bins=4))
    >>> model = PrivateClassifier(LogisticRegression(), release, classes=["low", "high"])
    >>> model.fit(X, y).predict([[0.9, 0.9]]).tolist()
    ['high']
    """

    def __init__(self, estimator, synthesizer, *, classes=None, n_samples=None, random_state=None):
        self.estimator = estimator
        self.synthesizer = synthesizer
        self.classes = classes
        self.n_samples = n_samples
        self.random_state = random_state

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
        BudgetExceededError
            If the ledger cannot pay; no value has been read.
        """
        if y is None:
            raise ValueError("PrivateClassifier requires y to be passed, but the target y is None.")
        release = clone(self.synthesizer)
        rows = as_frame(X)
        classes = self.classes
        if getattr(release, "classes", None) is not None:
            if classes is not None:
                raise ValueError(
                    "Both this classifier and its synthesizer have classes=. Give them once."
                )
            classes = release.classes
            release.set_params(classes=None)
        domain, target = declare_label(release.domain, rows, release.target, classes)
        if target is None:
            raise DomainError(
                "No column is declared as the label: give the synthesizer a target= (a column of "
                "its domain), or this classifier the list of classes=."
            )
        classes = _declared_classes(full_domain(domain, rows), target)
        release.set_params(domain=domain, target=target).fit(X, y)

        # From here on everything is post-processing of the release.
        rng = sampling_generator(self.random_state)
        X_train, y_train, weight = release.make_training_set(self.n_samples, random_state=rng)
        estimator = _train(self.estimator, X_train, y_train, weight, classes, rng)

        validate_data(self, X, skip_check_array=True)
        self.classes_ = classes
        self.estimator_ = estimator
        self.synthesizer_ = release
        self.privacy_loss_ = release.privacy_loss_
        return self

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

    def _test_rows(self, X):
        check_is_fitted(self)
        as_frame(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        target = self.synthesizer_.target
        features = [name for name in self.synthesizer_.domain_.names if name != target]
        return self.synthesizer_.prepare(select_columns(X, features))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = get_tags(self.synthesizer)
        tags.input_tags = inner.input_tags
        tags.non_deterministic = True
        # On the few rows of a small table noise wins.
        tags.classifier_tags.poor_score = True
        return tags


def _declared_classes(domain, target):
    """The labels that the domain declares, sorted as scikit-learn does."""
    attribute = domain[target]
    if isinstance(attribute, Categorical):
        return np.unique(np.array(attribute.categories))
    if attribute.integer:
        return np.arange(attribute.lower, attribute.upper + 1, dtype=np.int64)
    raise DomainError(
        f"The label {target!r} is declared as a continuous Numeric. A classifier needs a "
        "Categorical, or a Numeric with integer=True."
    )


def _train(estimator, X, y, weight, classes, rng):
    """Train a clone of ``estimator``, or a constant where there is nothing to tell apart."""
    known = pd.Series(y).isin(classes).to_numpy()
    present = classes[pd.Series(classes).isin(y[known]).to_numpy()]
    if len(present) < 2:
        constant = present[0] if len(present) else classes[0]
        dummy = DummyClassifier(strategy="constant", constant=constant)
        return dummy.fit(np.zeros((1, 1)), classes[classes == constant])
    estimator = clone(estimator)
    if not known.all() or (
        weight is not None and not has_fit_parameter(estimator, "sample_weight")
    ):
        # A synthetic row may lack its label (a nullable target), and not every classifier takes
        # weights: drawing rows in proportion does the same on average.
        share = known if weight is None else known * weight
        n_rows = int(known.sum()) if weight is None else max(1, round(share.sum()))
        chosen = (
            np.flatnonzero(known)
            if weight is None
            else rng.choice(len(y), size=n_rows, p=share / share.sum())
        )
        X, y, weight = take_rows(X, chosen), y[chosen], None
    if weight is None:
        return estimator.fit(X, y)
    return estimator.fit(X, y, sample_weight=weight)
