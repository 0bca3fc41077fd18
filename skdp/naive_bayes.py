"""Naive Bayes: columns that are independent in each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._models import ModelOfClasses, ModelOfGroups
from ._validation import FloatArray
from .algorithms.additive import (
    TUNING,
    Logit,
    Prior,
    Records,
    calibrate,
    first_of_classes,
    paying_share,
    shared_weight,
)

__all__ = ["PrivateNaiveBayes"]

# --- the classes, and the groups of each column in each class


@dataclass(frozen=True, eq=False)
class NaiveBayesModel:
    """Probabilities, as released.

    Attributes
    ----------
    prior : ndarray of shape (n_classes,)
        Logarithms of the probabilities of the classes.
    groups : tuple of ndarray of shape (n_classes, n_groups)
        Of each column the logarithms of the probabilities of its groups in each class.
    std : tuple of ndarray of shape (n_outputs, n_groups)
        How far off they may be: with two classes their difference, with more each class.
    constant : ndarray of shape (n_classes,)
    factor : float
        The calibrated logarithms of the probabilities of a row with each class are, up to what all
        classes have in common, ``constant`` and ``factor`` times those that follow from the above.
    """

    prior: FloatArray
    groups: tuple[FloatArray, ...]
    std: tuple[FloatArray, ...]
    constant: FloatArray
    factor: float


def fit_naive_bayes(
    records: Records,
    priors: Sequence[Prior],
    link: Logit,
    epsilon: Fraction,
    total: float,
    random_state: Any,
) -> NaiveBayesModel:
    """Learn the classes and each column given the class.

    Parameters
    ----------
    records : Records
    priors : sequence of Prior
        What the score of a class may look like along the groups of each column.
    link : Logit
    epsilon : Fraction
    total : float
        Released number of records.
    random_state : NoiseSource
    """
    # Privacy. Released: the histograms of the first round of an additive model, and that of the
    # scores which it gives; sequential composition. The rest is computed from them.
    part = paying_share(epsilon, total, TUNING.known)
    model = first_of_classes(records, link, priors, epsilon - part, total, random_state)
    prior = np.log(link.probabilities(model.intercept[None])[0])
    found, constant = [], np.zeros(link.n_classes)
    for term in model.terms:
        # By Bayes' theorem, from the classes of each group and the sizes of the groups.
        classes = link.probabilities(model.intercept + term.scores)
        joint = np.maximum(term.sizes, 0.5)[:, None] * np.maximum(classes, 1e-12)
        found.append(np.log(joint / joint.sum(axis=0)).T.copy())
        # Scores and probabilities of a row differ by a constant of each class in each column.
        constant += found[-1][:, 0] - (0.0, *term.scores[0])[-link.n_classes :]
    errors = tuple(term.std_errors.T.copy() for term in model.terms)
    weight = shared_weight(len(priors))
    model.scale(weight)
    shift, factor, _ = calibrate(records, link, model, part, total, random_state)
    moved = prior - weight * factor * (prior + constant)
    # Of two classes the second is shifted.
    moved[-1] += shift
    return NaiveBayesModel(prior, tuple(found), errors, moved, weight * factor)


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateNaiveBayes(ModelOfGroups, ModelOfClasses):
    """Naive Bayes of categories and bins, under pure epsilon-differential privacy.

    One noisy histogram of each column and the label is measured. Probabilities of
    groups are smooth along ordered values, and pulled towards those of all classes together where
    the noise is large. Columns that say the same count twice; a histogram of the model's score and
    the class corrects that by one factor. As a model to predict with, `PrivateAdditiveClassifier`
    is better.

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
    max_groups : int, default=32
        Most groups of an ordered column. Numbers are cut where released counts are about equal.
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
    class_log_prior_ : ndarray of shape (n_classes,)
        Logarithm of the released share of each class.
    feature_log_prob_ : dict of str to ndarray of shape (n_classes, n_groups)
        Of each column the logarithms of the probabilities of its groups in each class.
    feature_log_prob_std_ : dict of str to ndarray of shape (1, n_groups) or (n_classes, n_groups)
        How far off they may be: with two classes their difference, with more each class.
    calibration_ : (ndarray of shape (n_classes,), ndarray of shape (n_classes,))
        ``predict_proba`` adds the first to the second times what `predict_joint_log_proba` returns.
    feature_labels_ : dict of str to list of str
        Of each column the names of its groups.
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
    number of records; for each column the counts of groups and classes (sensitivity 1, with a
    public share of the budget); the counts of scores and classes (sensitivity 1), or of more than
    two classes alone and of differences of scores (sensitivity 1 each).
    *Cost*: sequential composition. Predicting is post-processing.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import Numeric, PrivateNaiveBayes
    >>> X = np.repeat([[0.2, 0.3], [0.8, 0.7]], 5_000, axis=0)
    >>> y = np.repeat(["low", "high"], 5_000)
    >>> model = PrivateNaiveBayes(domain=Numeric(0, 1, bins=4), classes=["low", "high"])
    >>> model.fit(X, y).predict([[0.8, 0.7]]).tolist()
    ['high']
    """

    max_groups: Any = 32

    def _learn(self, records, groupings, link, epsilon, total, source):
        priors = [Prior(len(each.labels), each.chain) for each in groupings.values()]
        return fit_naive_bayes(records, priors, link, epsilon, total, source)

    def _publish(self, model, groupings):
        self.classes_ = self._declared_classes()
        self.class_log_prior_ = model.prior[: len(self.classes_)]
        tables = [each[: len(self.classes_)] for each in model.groups]
        self.feature_log_prob_ = dict(zip(groupings, tables, strict=True))
        self.feature_log_prob_std_ = dict(zip(groupings, model.std, strict=True))
        self.feature_labels_ = {name: list(each.labels) for name, each in groupings.items()}
        n = len(self.classes_)
        self.calibration_ = model.constant[:n], np.full(n, model.factor)
        self._columns = {name: each.groups for name, each in groupings.items()}

    def predict_joint_log_proba(self, X) -> np.ndarray:
        """Logarithm of the probability of each row together with each class.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            A value that the domain cannot represent says nothing of the class.
        """
        check_is_fitted(self)
        codes = self._codes(X, list(self._columns))
        result = np.tile(self.class_log_prior_, (len(codes), 1))
        for column, (name, groups) in enumerate(self._columns.items()):
            known = codes[:, column] >= 0
            result[known] += self.feature_log_prob_[name].T[groups[codes[known, column]]]
        return result

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
        joint = self.predict_joint_log_proba(X)
        constant, factor = self.calibration_
        joint = constant + factor * joint
        parts = np.exp(joint - joint.max(axis=1, keepdims=True))
        return parts / parts.sum(axis=1, keepdims=True)
