"""A search that fits every candidate and releases only the winner of one noisy maximum."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from .._base import HidesSeed, Published, ShowsPrivacy, as_seed, require_y
from .._pipelines import LEAKS, PRIVATE, RELEASE, Rows, Step, child, ledgers, price, walk_all
from .._random import NoiseSource, noise_source
from .._types import FloatArray
from .._validation import as_epsilon
from ..accounting import PrivacyLedger, PrivacyLoss, charge
from ..exceptions import TrainingError
from ..mechanisms import noisy_max
from ..rows import as_frame
from ._budget import one_ledger, prepaid_clones, price_of_fit, rehearse
from ._guard import Labels, Take, draw_places, true_rows
from ._named import check_metric, find_metric
from ._scores import range_of

__all__ = ["PrivateGridSearchCV"]


def _offers(method: str) -> Callable[[Any], bool]:
    def check(self: Any) -> bool:
        fitted = getattr(self, "best_estimator_", self.estimator)
        return hasattr(fitted, method)

    return check


class PrivateGridSearchCV(Published, HidesSeed, ShowsPrivacy, MetaEstimatorMixin, BaseEstimator):
    """Search a grid of candidates and release the winner of one noisy maximum.

    Every candidate is fitted. The numbers of true rows that they predict correctly (or the sums of
    their squared errors) are compared with noise, and only the winner is released. The choice costs
    ``epsilon`` in total, however many candidates there are.

    Parameters
    ----------
    estimator : private estimator
        Typically ``PrivateClassifier(classifier, synthesizer)``.
    param_grid : dict or list of dict
        As in scikit-learn's ``GridSearchCV``. Where it changes only the inner ``estimator`` of a
        `PrivateClassifier` or `PrivateRegressor`, all candidates are trained on one release,
        which is paid for once. Otherwise every candidate's own fit is paid for.
    epsilon : number or Fraction, default=0.1
        Privacy budget of the choice. The fits cost their own epsilon in addition.
    metric : str, default="accuracy"
        Score by which candidates are compared, by one of the names of `make_private_scorer`.
        Accuracy and means of errors are compared by one noisy maximum; for "roc_auc",
        "average_precision", "f1" and "balanced_accuracy" every candidate's score is released at an
        equal part of ``epsilon``, so that many candidates cost accuracy.
    bounds : (low, high), default=None
        Public range of the target; needed for metrics of numbers.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set; by default the ledger in the estimator or in ``param_grid``,
        where there may be only one. It is charged once, for the whole search, before a value is
        read. The winner keeps it: fitting ``best_estimator_`` again is charged.
    random_state : None or int, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.
    verbose : int, default=0
        Whether to print progress to standard output.

    Attributes
    ----------
    best_index_ : int
        Position of the winner in the grid.
    best_params_ : dict
        Parameters of the winner.
    best_estimator_ : estimator
        The winner, fitted.
    privacy_loss_ : PrivacyLoss
        What the whole search spent, with its parts ``fits`` and ``choice``.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the training rows had column names.

    Notes
    -----
    No score is released; if you need one, score the winner with `private_accuracy`. Errors and
    warnings of ``predict`` on true rows are caught, as `make_private_scorer` describes, under the
    same assumption: a row that a candidate cannot predict counts as wrong.

    Candidates are first trained on a few rows drawn from the public domain, before anything is
    charged. A candidate that still cannot be trained on its release is left out, with a warning.

    The rows that train the release also choose the winner. That is sound: the two costs add up, and
    candidates cannot fit the true rows more closely than the release lets them.

    A small epsilon is enough: the noise is about ``1 / epsilon`` rows. Choosing on synthetic rows
    is free; in the measurements of the user guide it was worse by up to two points of accuracy.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skdp import MarginalSynthesizer, Numeric, PrivateClassifier, PrivateGridSearchCV
    >>> X = np.repeat([[0.2, 0.3], [0.8, 0.7]], 5_000, axis=0)
    >>> y = np.repeat(["low", "high"], 5_000)
    >>> release = MarginalSynthesizer(epsilon=2.0, domain=Numeric(0, 1, bins=4))
    >>> model = PrivateClassifier(DecisionTreeClassifier(), release, classes=["low", "high"])
    >>> search = PrivateGridSearchCV(model, {"estimator__max_depth": [1, 2, 3]}, epsilon=0.5)
    >>> search.fit(X, y).predict([[0.8, 0.7]]).tolist()
    ['high']
    >>> float(search.privacy_loss_.epsilon)
    2.5
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: dict[str, Any] | list[dict[str, Any]],
        *,
        epsilon: float | Fraction = 0.1,
        metric: str = "accuracy",
        bounds: tuple[float, float] | None = None,
        ledger: PrivacyLedger | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.metric = metric
        self.bounds = bounds
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Charge for the whole search, fit every candidate, and choose.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the estimator is not private or the grid does not fit it; nothing is spent.
        BudgetExceededError
            If the ledger cannot pay for all; no value has been read.
        """
        require_y(self, y)
        metric = check_metric(self.metric, self.bounds)
        choice = as_epsilon(self.epsilon)
        candidates, variants = self._candidates()
        if not candidates:
            raise ValueError(f"param_grid={self.param_grid!r} has no candidates: give it some.")
        shared = self._shares_a_release()
        # Every candidate is checked: one that is trained on a release may carry what others
        # learned.
        prices = [price_of_fit(variant) for variant in variants][: 1 if shared else None]
        book = one_ledger([self.estimator, *variants], self.ledger)
        as_frame(X)
        labels, take = true_rows(X, y)
        for variant in variants:
            metric.check_model(variant)
            rehearse(variant, X, y)
        source = noise_source(self.random_state)
        # Privacy. The fits are releases and cost what they cost, in sequence; candidates that are
        # trained on one release are post-processing of it. Given them, one record adds to every
        # candidate's score a number of [0, 1] (right or wrong), or of [0, largest] on the grid of
        # squared errors: all scores move in the same direction by at most the range R, and the
        # noisy maximum at `choice` costs `choice`, whatever the number of candidates. Scores that
        # are no sums are released one by one, see `_choose`.
        parts = {"fits": sum((each for each, _ in prices), Fraction(0)), "choice": choice}
        seeded = source.seeded or any(seeded for _, seeded in prices)
        loss = PrivacyLoss(sum(parts.values(), Fraction(0)), parts, seeded=seeded)
        charge(book, type(self).__name__, loss)
        with prepaid_clones(variants, book, parts["fits"]) as variants:
            fitted = self._fit_candidates(variants, X, y, shared)
        # Which candidates could be trained follows from the releases alone.
        able = [i for i, one in enumerate(fitted) if one is not None]
        best = able[self._choose([fitted[i] for i in able], take, labels, choice, source)]

        validate_data(self, X, skip_check_array=True)
        self.best_index_ = best
        self.best_params_ = candidates[best]
        self.best_estimator_ = fitted[best]
        self.privacy_loss_ = loss
        return self

    def _candidates(self) -> tuple[list[dict[str, Any]], list[Any]]:
        """Parameters of the candidates, and the estimators that have them."""
        candidates = list(ParameterGrid(self.param_grid))
        return candidates, [clone(self.estimator).set_params(**params) for params in candidates]

    def _shares_a_release(self) -> bool:
        """Whether the candidates differ only in what is trained on the release."""
        grids = self.param_grid if isinstance(self.param_grid, list) else [self.param_grid]
        if not all(isinstance(grid, Mapping) for grid in grids):
            raise TypeError("param_grid must be a dict of lists, or a list of such dicts.")
        return hasattr(self.estimator, "_train_on") and all(
            key == "estimator" or key.startswith("estimator__") for grid in grids for key in grid
        )

    def _fit_candidates(self, variants: list[Any], X: Any, y: Any, shared: bool) -> list[Any]:
        """Fit the candidates; None stands for one that could not be trained on its release."""
        fitted: list[Any] = []
        made: Any = None
        failure: TrainingError | None = None
        for i, variant in enumerate(variants):
            if self.verbose:
                print(f"[{i + 1}/{len(variants)}] {variant}")
            try:
                fitted.append(variant._train_on(made, X) if shared and made else variant.fit(X, y))
            except TrainingError as error:
                fitted.append(None)
                failure = error
                warnings.warn(f"Candidate {i} is left out. {error}", stacklevel=3)
            made = made or variant
        if failure is not None and all(one is None for one in fitted):
            raise failure
        return fitted

    def _choose(
        self, fitted: list[Any], take: Take, labels: Labels, epsilon: Fraction, source: NoiseSource
    ) -> int:
        """Position of the winner."""
        everyone, places = np.arange(len(labels)), draw_places(len(labels))
        bounds, metric = range_of(self.bounds), check_metric(self.metric, self.bounds)
        totals, released = [], []
        for model in fitted:
            classes = getattr(model, "classes_", ())
            guesses = metric.guesses(model, take, everyone, places, classes)
            if metric.is_sum:
                scores, spread = metric.row_scores(labels, guesses, classes, bounds)
                totals.append(int(scores.sum()))
                continue
            # Privacy. Not a sum over rows: each candidate's score is released at an equal part of
            # `choice`, in sequence, and the best is taken of what was released.
            part = epsilon / len(fitted)
            found = metric.release(labels, guesses, classes, part, source, 0.95, bounds)
            released.append(float(found))
        if released:
            return int(np.argmax(released))
        return int(noisy_max(totals, epsilon, spread, random_state=source))

    @available_if(_offers("predict"))
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict with the winner.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @available_if(_offers("predict_proba"))
    def predict_proba(self, X: Any) -> FloatArray:
        """Predict the probability of each label with the winner.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    @available_if(_offers("score"))
    def score(self, X: Any, y: Any) -> float:
        """Score the winner on true rows: exact and not private, for the data owner only.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)

        Returns
        -------
        float
        """
        check_is_fitted(self)
        return self.best_estimator_.score(X, y)

    @property
    def classes_(self) -> NDArray[Any]:
        """The winner's declared labels."""
        return self.best_estimator_.classes_

    def _was_seeded(self) -> bool:
        loss = getattr(self, "privacy_loss_", None)
        return loss is not None and loss.seeded

    def _privacy_steps(self, name: str, rows: Rows) -> list[Step]:
        candidates, variants = self._candidates()
        shared = self._shares_a_release()
        steps = walk_all(variants, child(name, "estimator"), rows, shared=shared)
        own = Step(
            name,
            type(self).__name__,
            rows.read,
            PRIVATE,
            f"chooses among {len(candidates):,} candidates {self._way()}.",
            epsilon=as_epsilon(self.epsilon),
            estimator=self,
        )
        if rows.released:
            own = replace(own, verdict=RELEASE)
            if self.ledger is None and not ledgers(self.estimator):
                own = replace(own, epsilon=Fraction(0))
        elif self.random_state is not None or self._was_seeded():
            own = replace(
                own,
                verdict=LEAKS,
                why="its choice comes from a seed: anyone who knows or guesses it can subtract the "
                "noise.",
                remedy="random_state=None, the operating system's entropy.",
                seeded=True,
            )
        return [*steps, own]

    def _way(self) -> str:
        """How candidates are compared, in words."""
        if find_metric(self.metric).is_sum:
            return "by one noisy maximum"
        return "by a noisy score of each"

    def _price(self) -> Fraction | None:
        return price(self)

    # Grid and winner may hold ledgers and seeds, as values or within estimators.
    _repeats = ("best_params_",)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "param_grid":
            value = self._hide_seeds(value)
        super().__setattr__(name, value)

    def _hide_seeds(self, grid: Any) -> Any:
        """The grid itself, or one with `Seed` for seeds of noise: those of the models are harmless.

        A grid that needs no change stays the same object, because clone() requires it.
        """
        if isinstance(grid, list):
            hidden = [self._hide_seeds(part) for part in grid]
            return grid if all(map(operator.is_, grid, hidden)) else hidden
        if not isinstance(grid, Mapping):
            return grid
        changed = {
            key: seeds
            for key, values in grid.items()
            if self._draws_noise(key)
            and any(map(operator.is_not, seeds := [as_seed(one) for one in values], values))
        }
        return {**grid, **changed} if changed else grid

    def _draws_noise(self, key: str) -> bool:
        parent, _, name = str(key).rpartition("__")
        if name != "random_state":
            return False
        owner = self.estimator.get_params(deep=True).get(parent) if parent else self.estimator
        return owner is None or isinstance(owner, HidesSeed)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.target_tags = inner.target_tags
        tags.input_tags = inner.input_tags
        tags.non_deterministic = True
        return tags
