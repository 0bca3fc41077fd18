"""Scores of estimators on records, and other exact values: said to be so once in a process."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, cast

import numpy as np
from sklearn.base import DensityMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._random import caller_level
from .._validation import CodeArray, FloatArray
from ..domain import Domain
from ..exceptions import PrivacyLeakWarning
from ..tables import Frame, as_frame
from .estimator import SAID, match_rows, without_id

_COMPOSED: ContextVar[bool] = ContextVar("composed", default=False)


@contextlib.contextmanager
def composed() -> Iterator[None]:
    """Fits of a composition that was found to be private; nothing exact leaves it."""
    before = _COMPOSED.set(True)
    try:
        yield
    finally:
        _COMPOSED.reset(before)


def warn_of_leak(topic: str, text: str) -> None:
    """Warn that exact values leave, once in a process for each topic."""
    if topic in SAID or _COMPOSED.get():
        return
    SAID.add(topic)
    message = f"{text} This is said once."
    warnings.warn(message, PrivacyLeakWarning, stacklevel=caller_level())


def warn_of_score(estimator: Any) -> None:
    """Warn that a score on records is exact."""
    warn_of_leak(
        "score",
        f"{type(estimator).__name__}.score is exact: on private records it is not private and must "
        "stay with the data owner, as must what cross_validate and GridSearchCV make of it. "
        "private_score, private_cross_val_score and PrivateGridSearchCV of skdp.model_selection "
        "release scores and choices with noise, and quality_report(epsilon=) compares rows.",
    )


class ExactScore:
    """The score of scikit-learn's classifiers and regressors, which is exact, with a warning."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of a classifier, R2 of a regressor: exact, for the data owner only.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            True labels or numbers.
        sample_weight : array-like of shape (n_rows,), default=None

        Returns
        -------
        float

        Warns
        -----
        PrivacyLeakWarning
            Once in a process.
        """
        warn_of_score(self)
        return cast(float, super().score(X, y, sample_weight))  # type: ignore[misc]  # of a mixin

    def __sklearn_tags__(self) -> Tags:
        tags = cast(Tags, super().__sklearn_tags__())  # type: ignore[misc]  # of a mixin
        # On the few rows of a small table the noise dominates.
        for each in (tags.classifier_tags, tags.regressor_tags):
            if each is not None:
                each.poor_score = True
        return tags


class Likelihood(DensityMixin):
    """Log-likelihoods of rows under a release; scikit-learn's tag of a density estimator.

    A subclass has ``_scored_domain``, and counts rows by `_expected_counts`.
    """

    target: Any = None
    privacy_id: Any = None

    def _scored_domain(self) -> tuple[Domain, float]:
        """The domain of rows that are scored, and the released number of records."""
        raise NotImplementedError

    def _expected_counts(self, codes: CodeArray) -> FloatArray:
        """Records that the release expects in the cell of each row of codes."""
        raise NotImplementedError

    def _holds_label(self, rows: Frame) -> bool:
        """Whether rows hold a label that is none of the features of the fit."""
        return False

    def _scored_codes(self, rows: Frame, y: Any, domain: Domain) -> CodeArray:
        """Codes of rows and their labels."""
        target = getattr(self, "target_", self.target)
        rows, matched = match_rows(rows, y, domain, target, structure=True)
        return matched.encode_columns(rows)

    def score_samples(self, X: Any, y: Any = None) -> FloatArray:
        """Logarithm of the probability of each row in the release, in nats.

        Of a number it is the probability of its bin, in views the finest one. A result for private
        records is not private.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), default=None
            Labels, if ``X`` does not hold them.

        Returns
        -------
        ndarray of shape (n_rows,)
            Never below that of one record spread over all cells of the domain, which rows get that
            the release makes impossible or the domain cannot represent.
        """
        check_is_fitted(self)
        domain, total = self._scored_domain()
        total = max(total, 1.0)
        rows = as_frame(X)
        if not (rows.named or self._holds_label(rows)):
            self._check_width(rows)  # type: ignore[attr-defined]  # of the estimator
        codes = self._scored_codes(without_id(rows, self.privacy_id), y, domain)
        known = np.asarray((codes >= 0).all(axis=1))
        counts = self._expected_counts(np.where(known[:, None], codes, 0))
        # Logarithms one by one: a vectorised one may round a row by its place in the array.
        shares = np.maximum(np.where(known, counts / total, 0.0), 1e-300).tolist()
        logs = np.fromiter(map(math.log, shares), np.float64, len(shares))
        return np.maximum(logs, -math.log(total + 1.0) - math.log(domain.size))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of rows, as of scikit-learn's density estimators: NOT private.

        `quality_report` compares synthetic rows with records with noise, and
        ``PrivateGridSearchCV(metric="log_likelihood")`` chooses by this score with noise.

        Parameters
        ----------
        X, y
            As for :meth:`score_samples`.

        Returns
        -------
        float
            Mean of :meth:`score_samples`, in nats.

        Warns
        -----
        PrivacyLeakWarning
            Once in a process.
        """
        found = self.score_samples(X, y)
        warn_of_score(self)
        return float(np.mean(found))


class HasPlace:
    """What belongs inside or in front of something else, or what else belongs behind it."""

    @property
    def _belongs(self) -> str:
        """Where to put it, in words."""
        raise NotImplementedError


class NoScore(HasPlace):
    """Says where an estimator belongs that cannot be scored by itself."""

    @property
    def score(self) -> Any:
        """Not there; the error says where the estimator belongs."""
        raise AttributeError(f"{type(self).__name__} has no score. {self._belongs}")


class KeepsTrueRows(HasPlace, TransformerMixin):
    """A private transformer that learns from labels and passes on true rows."""

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, and transform the same rows, which are as private afterwards as before.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), default=None
        **fit_params
            Passed to ``fit``.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)

        Warns
        -----
        PrivacyLeakWarning
            Once in a process, if ``y`` is given, as by a ``Pipeline``.
        """
        if y is not None:
            warn_of_leak(
                "fit_transform",
                f"{type(self).__name__}.fit_transform returns true rows: what the next step of a "
                f"Pipeline learns from them and true labels is not private. {self._belongs}",
            )
        return super().fit_transform(X, y, **fit_params)
