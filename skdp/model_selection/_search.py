"""A search that compares candidates on true rows with noise and releases only the winner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from .._random import NoiseSource, noise_source, warn_after_charge
from .._validation import FloatArray
from ..accounting import PrivacyLedger, PrivacyLoss, charge
from ..base import HidesSeed, Published, ShowsPrivacy, epsilon_of_row, require_y
from ..exceptions import TrainingError
from ..inspection import UNKNOWN, Step, child, paid, price, walk
from ..mechanisms import noisy_max
from ..tables import as_frame
from ._cross_val import budgets_of, one_ledger, prepaid_clones, price_of_fit, rehearse
from ._metrics import Labels, Metric, Take, as_metric, draw_places, scored_by, true_rows


def _offers(method: str) -> Callable[[Any], bool]:
    return lambda self: hasattr(getattr(self, "best_estimator_", self.estimator), method)


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateGridSearchCV(Published, HidesSeed, ShowsPrivacy, MetaEstimatorMixin, BaseEstimator):
    """Search a grid of candidates and release only the winner.

    Candidates are compared by the numbers of true rows that they predict correctly (or the sums of
    their squared errors), with noise. The choice costs ``epsilon`` in total, however many
    candidates there are; the fits cost the sum of their epsilons, or that of one where all
    candidates are trained on one release.

    Parameters
    ----------
    estimator : private estimator
        Typically ``PrivateClassifier(classifier, synthesizer)``.
    param_grid : dict or list of dict
        As in scikit-learn's ``GridSearchCV``; without seeds of noise. Where it changes only the
        inner ``estimator`` of a `PrivateClassifier` or `PrivateRegressor`, all candidates are
        trained on one release, which is paid for once. Otherwise every candidate pays for a fit of
        its own.
    epsilon : number or Fraction, default=0.1
        Privacy budget of the choice. The fits cost their own epsilon in addition.
    metric : str, default="accuracy"
        Score by which candidates are compared, by a name of `private_score`; or "log_likelihood",
        which compares releases by their ``score_samples`` and reads no ``y``.
        Accuracy and means of errors are compared by one noisy maximum; for "roc_auc", "f1" and
        "balanced_accuracy" every candidate's score is released at an equal part of ``epsilon``, so
        that many candidates cost accuracy.
    domain : (low, high) or Numeric, default=None
        Public range of the target; needed for metrics of numbers. With "log_likelihood" that of a
        row in nats, such as (-15, 0): others are clipped, and the noise grows with the width.
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
    No score is released; if you need one, score the winner with `private_score`. Errors and
    warnings of ``predict`` on true rows are caught, as `private_cross_val_score` describes, under
    the same assumption: a row that a candidate cannot predict counts as wrong.

    Candidates are first trained on a few rows drawn from the public domain, before anything is
    charged. A candidate that still cannot be trained on its release is left out, with a warning.

    The rows that train the release also choose the winner. That is sound: the two costs add up, and
    candidates cannot fit the true rows more closely than the release lets them.

    A small epsilon is enough: the noise is about ``1 / epsilon`` rows. Choosing on synthetic rows
    is free.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skdp import MarginalSynthesizer, Numeric, PrivateClassifier
    >>> from skdp.model_selection import PrivateGridSearchCV
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

    _doc_link_template = (
        "https://example.org/skdp/docs/api/skdp.model_selection.{estimator_name}.html"
    )
    estimator: Any = field(kw_only=False)
    param_grid: dict[str, Any] | list[dict[str, Any]] = field(kw_only=False)
    epsilon: float | Fraction = 0.1
    metric: str = "accuracy"
    domain: Any = None
    ledger: PrivacyLedger | None = None
    random_state: int | None = None
    verbose: int = 0

    def fit(self, X: Any, y: Any = None) -> Self:
        """Charge for the whole search, fit every candidate, and choose.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), default=None
            None with ``metric="log_likelihood"`` and "nicv" only.

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
        metric = as_metric(self.metric, self.domain, searches=True)
        if metric.reads_labels:
            require_y(self, y)
        elif y is not None:
            raise ValueError(
                f"metric={self.metric!r} scores whole rows: leave out y, and give the label, if "
                "there is one, as a column of X."
            )
        choice = epsilon_of_row(self.epsilon)
        candidates, variants = self._candidates()
        if not candidates:
            raise ValueError(f"param_grid={self.param_grid!r} has no candidates: give it some.")
        parts = {**self.estimator.get_params(deep=True), "": self.estimator}
        for key in {key for params in candidates for key in params}:
            parent, _, name = key.rpartition("__")
            if name == "random_state" and isinstance(parts.get(parent), HidesSeed):
                raise ValueError(
                    f"param_grid varies {key!r}, a seed of noise, which is nothing to be tuned. "
                    "Leave it out."
                )
        # Every candidate is checked: one that is trained on a release may carry what others
        # learned.
        prices = [price_of_fit(variant) for variant in variants]
        shared = self._shares_a_release(candidates)
        fits = prices[0][0] if shared else sum((each for each, _ in prices), Fraction(0))
        book = one_ledger([self.estimator, *variants], self.ledger)
        assumes = as_frame(X).assumes
        labels, take = true_rows(X, y)
        for variant in variants:
            metric.check_model(variant)
            rehearse(variant, X, y)
        source = noise_source(self.random_state)
        parts = {"fits": fits, "choice": choice}
        seeded = source.seeded or any(seeded for _, seeded in prices)
        loss = PrivacyLoss(fits + choice, parts, seeded=seeded, assumes=assumes)
        charge(book, type(self).__name__, loss)
        # Privacy. The fits are releases and cost what they cost, in sequence; candidates that are
        # trained on one release are post-processing of it. Given them, the choice costs `choice`.
        with prepaid_clones(variants, book, fits) as variants:
            fitted = self._fit_candidates(variants, X, y, shared)
            # Which candidates could be trained follows from the releases alone.
            able = [i for i, one in enumerate(fitted) if one is not None]
            trained = [fitted[i] for i in able]
            best = able[best_of(trained, metric, labels, take, choice, source)]

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

    def _shares_a_release(self, candidates: list[dict[str, Any]]) -> bool:
        """Whether the candidates differ only in what is trained on the release."""
        return hasattr(self.estimator, "_train_on") and all(
            key.partition("__")[0] == "estimator" for params in candidates for key in params
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
                again = shared and made is not None
                fitted.append(
                    variant._train_on(made.synthesizer_, X) if again else variant.fit(X, y)
                )
            except TrainingError as error:
                fitted.append(None)
                failure = error
                warn_after_charge(f"Candidate {i} is left out. {error}")
            made = made or variant
        if failure is not None and all(one is None for one in fitted):
            raise failure
        return fitted

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
    def score(self, X: Any, y: Any = None) -> float:
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

    def _privacy_steps(self, name: str) -> list[Step]:
        candidates, variants = self._candidates()
        shared = self._shares_a_release(candidates)
        found: dict[tuple[str, str], list[Step]] = {}
        for place, variant in enumerate(variants):
            for step in walk(variant, child(name, "estimator")):
                step = replace(step, epsilon=Fraction(0)) if shared and place else step
                found.setdefault((step.name, step.kind), []).append(step)
        # Each name and kind once, with the sum of its prices and the worst of its verdicts.
        steps = [
            replace(min(same, key=lambda step: step.sound), epsilon=price(same))
            for same in found.values()
        ]
        compares = as_metric(self.metric, self.domain, searches=True).compares
        way = "a noisy score of each" if compares == "releases" else "one noisy maximum"
        steps.append(paid(self, name, f"chooses among {len(candidates):,} candidates by {way}."))
        books = budgets_of([self.estimator, *variants], self.ledger)
        if len(books) > 1:
            why = f"has {len(books)} ledgers for one data set: a fit refuses them."
            steps.append(Step(name, self, UNKNOWN, why, "The same ledger everywhere."))
        return [replace(step, payer=books[0] if books else None) for step in steps]

    def _price(self) -> Fraction | None:
        return price(walk(self))

    # Grid and winner may hold ledgers and seeds, as values or within estimators.
    _repeats = ("best_params_",)

    def __sklearn_tags__(self) -> Tags:
        return replace(get_tags(self.estimator), non_deterministic=True)


# --- comparing fitted candidates with true labels


def best_of(
    models: list[Any],
    metric: Metric,
    labels: Labels,
    take: Take,
    epsilon: Fraction,
    source: NoiseSource,
) -> int:
    """Position of the best of fitted candidates by a metric on true rows, at epsilon.

    Parameters
    ----------
    models : list of estimator
    metric : Metric
    labels : ndarray
        True labels of all rows.
    take : callable
        Gives the rows at some positions.
    epsilon : Fraction
    source : NoiseSource
    """
    # Privacy. Of a metric that is a sum over rows, one record adds to every candidate's total a
    # number of [0, R]: all totals move in the same direction by at most R, and one noisy maximum at
    # epsilon costs epsilon, whatever the number of candidates. Any other metric is released for
    # each candidate at an equal part of epsilon, in sequence, and the best is taken of what was
    # released. Predictions are made row by row in a guard.
    places, metric = draw_places(len(labels)), metric.for_models(models)
    scored = (scored_by(model, metric, labels, take, places) for model in models)
    if metric.compares == "releases":
        part = epsilon / len(models)
        return int(np.argmax([float(metric.release(each, part, source)) for each in scored]))
    totals = []
    for each in scored:
        scores, spread = metric.row_scores(each)
        totals.append(int(scores.sum()))
    return int(noisy_max(totals, epsilon, spread, random_state=source))
