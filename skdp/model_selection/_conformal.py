"""Prediction sets and intervals whose coverage is calibrated on true rows, privately."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from .._base import HidesSeed, Published, ShowsPrivacy, require_y
from .._pipelines import Rows, Step, child, price, walk
from .._types import BoolArray, FloatArray, IntArray
from .._validation import as_fraction
from ..accounting import PrivacyLedger
from ..kernels.conformal import BINS, covered_bins, measure_scores
from ..rows import as_column
from ._cross_val import one_ledger, own_step
from ._guard import Take, answers_of, check_model, draw_places, positions_of, true_rows
from ._metrics import charge_score, class_positions, range_of


class _TrueScores:
    """Stands for a model in `answers_of`: gives the score of the true target of each row."""

    def __init__(
        self, score: Callable[[Any, NDArray[Any]], FloatArray], take: Take, targets: NDArray[Any]
    ) -> None:
        self._score, self._take, self._targets = score, take, targets

    def predict(self, rows: IntArray) -> FloatArray:
        return self._score(self._take(rows), self._targets[rows])


class _Conformal(Published, HidesSeed, ShowsPrivacy, BaseEstimator):
    """What the classifier and the regressor share: fit, conformalize, predict."""

    def __init__(
        self,
        estimator: Any,
        *,
        epsilon: float | Fraction = 0.5,
        confidence_level: Any = 0.9,
        prefit: bool = True,
        ledger: PrivacyLedger | None = None,
        random_state: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.confidence_level = confidence_level
        self.prefit = prefit
        self.ledger = ledger
        self.random_state = random_state

    # --- of the task

    def _edges(self) -> FloatArray:
        """Ends of the bins of scores, from 0 to the largest score."""
        raise NotImplementedError

    def _prepare(self, model: Any, X: Any) -> None:
        """Refuse what cannot be calibrated, before the charge."""
        raise NotImplementedError

    def _targets(self, y: NDArray[Any]) -> tuple[NDArray[Any], BoolArray]:
        """Targets as the scores need them, and which rows have one."""
        raise NotImplementedError

    def _score(self, X: Any, targets: NDArray[Any]) -> FloatArray:
        """How badly the model predicts each row: 0 for perfectly, nan where it cannot."""
        raise NotImplementedError

    # --- MAPIE's methods

    def fit(self, X: Any, y: Any) -> Self:
        """Fit a clone of the estimator, where it is not fitted yet (``prefit=False``).

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Rows other than those of `conformalize`.
        y : array-like of shape (n_rows,)

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If ``prefit=True``.
        """
        if self.prefit:
            raise ValueError(
                "The estimator is fitted already (prefit=True): call conformalize, or say "
                "prefit=False to have a clone fitted here."
            )
        self.estimator_ = clone(self.estimator).fit(X, y)
        return self

    def conformalize(self, X: Any, y: Any) -> Self:
        """Charge, and calibrate the thresholds on rows that the model was not trained on.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Rows without a declared target are skipped.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the estimator is not fitted or lacks something, or a parameter is out of range;
            nothing is spent.
        BudgetExceededError
            If the ledger cannot pay; no value has been read.
        """
        require_y(self, y)
        misses = self._miscoverages()
        if not self.prefit:
            check_is_fitted(self, "estimator_")
        model = self.estimator if self.prefit else self.estimator_
        check_model(model, X)
        self._prepare(model, X)
        book = one_ledger([model], self.ledger)
        labels, take = true_rows(X, y)
        name = type(self).__name__
        loss, source = charge_score(name, self.epsilon, book, self.random_state)
        # Privacy. Given the model, which is a release or was not trained on these rows, the score
        # of a row depends on that row alone (see `answers_of`): one record adds at most one score
        # to one bin. The histogram is released with noise at epsilon, and the thresholds follow
        # from it. If the model is a release of the same rows, the two costs add up.
        self.estimator_ = model
        targets, known = self._targets(labels)
        rows, places = np.flatnonzero(known), draw_places(len(labels))
        judge = _TrueScores(self._score, take, targets)
        scores = answers_of(judge, "predict", lambda at: at, rows, places[rows])
        edges = self._edges()
        # A score that is not a number sorts behind all others.
        bins = np.minimum(np.searchsorted(edges[1:], scores.astype(float)), BINS - 1)
        counts = measure_scores(bins, loss.epsilon, source)
        self.thresholds_ = edges[[covered_bins(counts, miss) for miss in misses]]
        self.privacy_loss_ = loss
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict with the estimator.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict(X))

    def _miscoverages(self) -> list[Fraction]:
        """1 - level for each confidence level."""
        levels = self.confidence_level
        levels = list(levels) if np.ndim(levels) else [levels]
        exact = [as_fraction(level, "confidence_level") for level in levels]
        if not exact or not all(0 < level < 1 for level in exact):
            raise ValueError(
                "confidence_level must be a number between 0 and 1, or a list of them, got "
                f"{self.confidence_level!r}."
            )
        return [1 - level for level in exact]

    # --- what is spent

    def _privacy_steps(self, name: str, rows: Rows) -> list[Step]:
        inner = FrozenEstimator(self.estimator) if self.prefit else self.estimator
        own = own_step(self, name, rows, "releases thresholds of a noisy histogram of scores.")
        return [*walk(inner, child(name, "estimator"), rows), own]

    def _price(self) -> Fraction | None:
        return price(self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "thresholds_")


class PrivateConformalClassifier(_Conformal):
    """Sets of labels that contain the true one as often as promised, calibrated privately.

    Split conformal prediction around any fitted classifier, with the names of MAPIE: the set of a
    row has all labels to which the model gives at least a certain probability ("lac"). The
    threshold comes from a noisy histogram of the probabilities of true labels.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``
        A private release, such as a fitted `PrivateClassifier`, or a model that was not trained on
        private rows: what it reveals itself is not covered here.
    epsilon : number or Fraction, default=0.5
        Privacy budget of the calibration.
    confidence_level : float or list of float, default=0.9
        Probability that the set contains the true label. Several levels cost the same as one.
    prefit : bool, default=True
        Whether ``estimator`` is fitted. If not, `fit` fits a clone, which spends what it spends.
    ledger : PrivacyLedger, default=None
        Privacy budget of the calibration rows, charged before a value is read; by default the
        ledger in the estimator.
    random_state : None or int, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model.
    thresholds_ : ndarray of shape (n_levels,)
        For each level the largest score, one minus the probability of the label, in a set.
    privacy_loss_ : PrivacyLoss
        What `conformalize` spent.

    Notes
    -----
    *Guarantee.* The rows of `conformalize` and a new row are exchangeable and were not used for
    training; then the set of the new row contains its label with a probability of at least
    ``confidence_level``, over rows and noise, for every number of rows. Rows with a label that the
    model does not know are left out, in the promise too. With few rows (about
    ``7 / (epsilon * (1 - confidence_level))``) sets have all labels. If the model was trained on
    the same rows, epsilons add up and the promise is lost.

    A row for which the model fails during `conformalize` has the largest score; one for which it
    gives nan later has all labels.

    References
    ----------
    V. Vovk, A. Gammerman, G. Shafer, *Algorithmic Learning in a Random World*, 2005. A. N.
    Angelopoulos, S. Bates, T. Zrnic, M. I. Jordan, "Private prediction sets", 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skdp import MarginalSynthesizer, Numeric, PrivateClassifier
    >>> from skdp.model_selection import PrivateConformalClassifier
    >>> X = np.repeat([[0.2, 0.3], [0.8, 0.7]], 5_000, axis=0)
    >>> y = np.repeat(["low", "high"], 5_000)
    >>> release = MarginalSynthesizer(epsilon=2.0, domain=Numeric(0, 1, bins=4))
    >>> model = PrivateClassifier(DecisionTreeClassifier(), release, classes=["low", "high"])
    >>> sets = PrivateConformalClassifier(model.fit(X[::2], y[::2]), confidence_level=0.95)
    >>> labels, sets = sets.conformalize(X[1::2], y[1::2]).predict_set([[0.8, 0.7]])
    >>> labels.tolist(), sets.shape, bool(sets[0, 0, 0])
    (['high'], (1, 2, 1), True)
    """

    def predict_set(self, X: Any) -> tuple[NDArray[Any], BoolArray]:
        """Predict the label of each row, and the sets of labels.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        labels : ndarray of shape (n_rows,)
        sets : ndarray of bool, shape (n_rows, n_classes, n_levels)
            Which labels of ``classes_`` are in the set of each level. A set may be empty.
        """
        check_is_fitted(self)
        shares = np.asarray(self.estimator_.predict_proba(X), dtype=float)
        scores = np.clip(1 - shares, 0, 1)
        # Where there is no probability, nothing is left out.
        scores = np.where(np.isnan(scores).any(axis=1, keepdims=True), 0.0, scores)
        return self.predict(X), scores[:, :, None] <= self.thresholds_

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels of the model."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.classes_)

    def _edges(self) -> FloatArray:
        return np.linspace(0, 1, BINS + 1)

    def _prepare(self, model: Any, X: Any) -> None:
        if not hasattr(model, "predict_proba"):
            raise ValueError(
                f"{type(model).__name__} has no predict_proba: the sets of labels need "
                "probabilities."
            )

    def _targets(self, y: NDArray[Any]) -> tuple[NDArray[Any], BoolArray]:
        codes = positions_of(y, class_positions(self.classes_))
        return codes, codes >= 0

    def _score(self, X: Any, targets: NDArray[Any]) -> FloatArray:
        shares = np.asarray(self.estimator_.predict_proba(X), dtype=float)
        return np.clip(1 - shares[np.arange(len(targets)), targets], 0, 1)


class PrivateConformalRegressor(_Conformal):
    """Intervals that contain the target as often as promised, calibrated privately.

    Split conformal prediction around any fitted regressor, with the names of MAPIE: the interval of
    a row is the prediction plus and minus one width ("absolute"), which comes from a noisy
    histogram of the absolute errors.

    Parameters
    ----------
    estimator : regressor
        A private release, such as a fitted `PrivateRegressor`, or a model that was not trained on
        private rows: what it reveals itself is not covered here.
    epsilon : number or Fraction, default=0.5
        Privacy budget of the calibration.
    confidence_level : float or list of float, default=0.9
        Probability that the interval contains the target. Several levels cost the same as one.
    bounds : (low, high), default=None
        Public range of the target, to which targets, predictions and intervals are clipped. By
        default the range that the estimator declares.
    prefit : bool, default=True
        Whether ``estimator`` is fitted. If not, `fit` fits a clone, which spends what it spends.
    ledger : PrivacyLedger, default=None
        Privacy budget of the calibration rows, charged before a value is read; by default the
        ledger in the estimator.
    random_state : None or int, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model.
    thresholds_ : ndarray of shape (n_levels,)
        Half the width of the interval of each level, in units of the target.
    privacy_loss_ : PrivacyLoss
        What `conformalize` spent.

    Notes
    -----
    The guarantee is that of `PrivateConformalClassifier`, for targets clipped to ``bounds``. Rows
    without a target are left out. Absolute errors are counted in 256 bins, narrow ones near zero:
    errors of a tenth of the range are known to within 3%. With few rows an interval is the whole
    range.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skdp import MarginalSynthesizer, Numeric, PrivateRegressor
    >>> from skdp.model_selection import PrivateConformalRegressor
    >>> X = np.linspace(0, 1, 10_000)[:, None]
    >>> y = 10 * X[:, 0]
    >>> release = MarginalSynthesizer(epsilon=2.0, domain=Numeric(0, 1))
    >>> model = PrivateRegressor(LinearRegression(), release, target_range=(0, 10))
    >>> intervals = PrivateConformalRegressor(model.fit(X[::2], y[::2]), confidence_level=0.9)
    >>> value, interval = intervals.conformalize(X[1::2], y[1::2]).predict_interval([[0.5]])
    >>> interval.shape, bool(interval[0, 0, 0] < 5 < interval[0, 1, 0])
    ((1, 2, 1), True)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        epsilon: float | Fraction = 0.5,
        confidence_level: Any = 0.9,
        bounds: tuple[float, float] | None = None,
        prefit: bool = True,
        ledger: PrivacyLedger | None = None,
        random_state: int | None = None,
    ) -> None:
        more: dict[str, Any] = {"prefit": prefit, "ledger": ledger, "random_state": random_state}
        super().__init__(estimator, epsilon=epsilon, confidence_level=confidence_level, **more)
        self.bounds = bounds

    def predict_interval(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Predict the target of each row, and the intervals.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        values : ndarray of shape (n_rows,)
        intervals : ndarray of shape (n_rows, 2, n_levels)
            Lower and upper end for each level, within ``bounds``.
        """
        check_is_fitted(self)
        values = self.predict(X)
        low, high = self._range(self.estimator_)
        middle = np.clip(np.asarray(values, dtype=float).reshape(-1, 1), low, high)
        ends = np.stack([middle - self.thresholds_, middle + self.thresholds_], axis=1)
        # Nothing is known where the model gives no number.
        ends = np.where(np.isnan(ends), np.array([[low], [high]]), ends)
        return values, np.clip(ends, low, high)

    def _range(self, model: Any) -> tuple[float, float]:
        """The public range of the target."""
        bounds = self.bounds
        if bounds is None:
            bounds = getattr(model, "target_range", None)
        if bounds is None:
            release = getattr(model, "synthesizer_", model)
            domain, target = (getattr(release, key, None) for key in ("domain_", "target"))
            if domain is None or target is None:
                raise ValueError(
                    f"{type(model).__name__} declares no range of the target: give bounds=(low, "
                    "high), known publicly."
                )
            bounds = domain[target].lower, domain[target].upper
        ends = range_of(bounds)
        assert ends is not None
        return float(ends[0]), float(ends[1])

    def _edges(self) -> FloatArray:
        low, high = self._range(self.estimator_)
        # Errors of a good model are a small part of the range: bins are finest there.
        return (high - low) * np.linspace(0, 1, BINS + 1) ** 3

    def _prepare(self, model: Any, X: Any) -> None:
        self._range(model)

    def _targets(self, y: NDArray[Any]) -> tuple[NDArray[Any], BoolArray]:
        numbers = as_column(y, "y").numbers()
        return numbers, ~np.isnan(numbers)

    def _score(self, X: Any, targets: NDArray[Any]) -> FloatArray:
        low, high = self._range(self.estimator_)
        values = np.asarray(self.estimator_.predict(X), dtype=float).reshape(len(targets))
        return np.abs(np.clip(values, low, high) - np.clip(targets, low, high))
