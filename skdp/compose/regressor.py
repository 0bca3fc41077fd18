"""Any regressor, trained on a private release."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.dummy import DummyRegressor
from sklearn.utils import Tags

from .._types import FloatArray
from ..domain import Attribute, Numeric
from ..exceptions import DomainError
from ..models import PrivateAdditiveRegressor
from .base import TrainedOnRelease, fit_clone, usable_rows

__all__ = ["PrivateRegressor"]


class PrivateRegressor(RegressorMixin, TrainedOnRelease):
    """A private regressor: the best one known, or any, trained on a release.

    Like `PrivateClassifier`, for a number. Without an estimator it fits a
    `PrivateAdditiveRegressor`. With one, only the release reads the true rows and targets, and
    ``estimator`` is trained on synthetic (or weighted) rows.

    Parameters
    ----------
    estimator : scikit-learn regressor, default=None
        Trained on the release. It is cloned. None: the best regressor known.
    synthesizer : release of skdp, default=None
        What releases the training data. None: a `MarginalSynthesizer` of the parameters below. Its
        ``target`` is a `Numeric` column of its domain. It is cloned; every ``fit`` charges its
        ledger. A fitted one can be given as ``FrozenEstimator(release)``: the model is trained on
        it, and it is not paid for again.
    epsilon : float, default=None
        Privacy budget spent by one call of ``fit``. Required without a synthesizer; this and the
        other parameters of a release are refused beside one.
    domain : Domain, attribute, or list of attributes, default=None
        Public range or categories of every column; required without a synthesizer.
    target : str, default=None
        Column of the domain that is the label and takes ``y``.
    target_range : (low, high), default=None
        The public range of the target, where the domain has no column for it. Its bins are those
        of ``Numeric(low, high)``, which the synthesizer chooses; without an estimator there are
        256. For others put a `Numeric` into the domain. Giving both this and ``target`` is an
        error.
    n_samples : int, default=None
        Number of synthetic rows to train on. None: the release's noisy total, never the exact
        number of rows.
    max_contributions : int, default=None
        Keep at most this many rows of each person, chosen secretly; epsilon then protects the
        person. Needs ``unit``. None: epsilon protects one row.
    unit : str, default=None
        Column of the data, not of the domain, that identifies the person a row belongs to. Only
        without an estimator.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read; also for a synthesizer
        that has none.
    random_state : int or None, default=None
        Seed of the synthetic draw only. The draw is post-processing, so a seed is harmless. The
        noise has none.

    Attributes
    ----------
    estimator_ : estimator
        The regressor trained on the release, a constant in the middle of the range where the
        release is empty; or the default regressor.
    synthesizer_ : estimator
        The fitted release; only with an estimator.
    privacy_loss_ : PrivacyLoss
        What the fit spent, which is the loss of the synthesizer. For a frozen release: what it cost
        when it was made.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the training rows had column names.

    Notes
    -----
    ``estimator`` is tried on public rows before the charge, and a release whose training fails is
    kept, as in `PrivateClassifier`. Targets are clipped to the declared range before they are
    counted, and drawn uniformly within their bin. A score computed from true held-out rows is exact
    and not private; `private_score` releases one.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skdp import MarginalSynthesizer, Numeric, PrivateRegressor
    >>> X = np.linspace(0, 1, 5_000)[:, None]
    >>> y = 10 * X[:, 0]
    >>> release = MarginalSynthesizer(epsilon=2.0, domain=Numeric(0, 1))
    >>> model = PrivateRegressor(LinearRegression(), release, target_range=(0, 10)).fit(X, y)
    >>> model.predict([[0.5]]).round().tolist()
    [5.0]
    """

    def __init__(
        self,
        estimator: Any = None,
        synthesizer: Any = None,
        *,
        epsilon: Any = None,
        domain: Any = None,
        target: str | None = None,
        target_range: tuple[float, float] | None = None,
        n_samples: int | None = None,
        max_contributions: int | None = None,
        unit: str | None = None,
        ledger: Any = None,
        random_state: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.synthesizer = synthesizer
        self.epsilon = epsilon
        self.domain = domain
        self.target = target
        self.target_range = target_range
        self.n_samples = n_samples
        self.max_contributions = max_contributions
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    _shorthand = "its target_range=(low, high)"
    _label = "target_range"

    def _default(self, **params: Any) -> Any:
        return PrivateAdditiveRegressor(**params)

    def _label_attribute(self) -> Numeric | None:
        return None if self.target_range is None else Numeric(*self.target_range)

    def _check_label(self, attribute: Attribute, target: str) -> None:
        if not (isinstance(attribute, Numeric) and attribute.summable):
            raise DomainError(
                f"The label {target!r} is declared as a {type(attribute).__name__}. A regressor "
                "needs a Numeric; for a Categorical take PrivateClassifier."
            )

    def _train(
        self,
        X: Any,
        y: NDArray[Any],
        weight: FloatArray | None,
        attribute: Attribute,
        rng: np.random.Generator,
    ) -> Any:
        assert isinstance(attribute, Numeric)
        known = ~pd.isna(np.asarray(y))
        if not known.any():
            middle = (float(attribute.lower) + float(attribute.upper)) / 2
            return DummyRegressor(strategy="constant", constant=middle).fit([[0.0]], [middle])
        X, y, weight = usable_rows(self.estimator, X, y, weight, known, rng)
        return fit_clone(self.estimator, X, np.asarray(y, dtype=float), weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
