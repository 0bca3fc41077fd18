"""Scorers for scikit-learn's searches, whose every call releases one private number."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from .._validation import as_epsilon
from ..accounting import PrivacyLedger
from ._guard import check_model, draw_places, true_rows
from ._judge import Covers
from ._named import check_metric, find_metric
from ._scores import charge_score, range_of

__all__ = ["make_private_scorer"]


class _PrivateScorer:
    """Callable ``scorer(estimator, X, y)``; scikit-learn's searches take it as ``scoring=``."""

    def __init__(self, metric: str, epsilon: Any, options: dict[str, Any]) -> None:
        self.metric = metric
        self.epsilon = epsilon
        self.options = options

    @property
    def _score_epsilon(self) -> Fraction:
        return as_epsilon(self.epsilon)

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        metric = find_metric(self.metric)
        check_model(estimator, X, metric.method)
        metric.check_model(estimator)
        classes = getattr(estimator, "classes_", ())
        truth, take = true_rows(X, y)
        bounds = range_of(self.options.get("bounds"))
        name = f"private_{metric.name}"
        exact, source = charge_score(name, self.epsilon, self.options["ledger"], None)
        everyone = np.arange(len(truth))
        guess = metric.guesses(estimator, take, everyone, draw_places(len(truth)), classes)
        score = float(
            metric.release(truth, guess, classes, exact, source, Covers(0.95, False), bounds)
        )
        return -score if metric.is_loss and not metric.negated else score

    def __repr__(self) -> str:
        return f"make_private_scorer({self.metric!r}, epsilon={self.epsilon})"


def make_private_scorer(
    metric: str = "accuracy",
    *,
    epsilon: float | Fraction,
    bounds: tuple[float, float] | None = None,
    ledger: PrivacyLedger | None = None,
) -> _PrivateScorer:
    """Make a scorer whose every call releases one private number and is charged.

    Parameters
    ----------
    metric : str, default="accuracy"
        Score that is released: "accuracy", "balanced_accuracy", "f1", "roc_auc",
        "average_precision", "neg_log_loss", "neg_brier_score", "r2", "neg_mean_absolute_error" or
        "neg_mean_squared_error", or the name in one of the functions ``private_...``. Losses are
        negated, so that higher is better. Scores of probabilities need ``predict_proba``;
        "log_likelihood", which reads no ``y``, needs ``score_samples``.
    epsilon : number or Fraction
        Privacy budget of each call: k folds cost k times as much, and m candidates m times.
    bounds : (low, high), default=None
        Public range of the target; needed for metrics of numbers.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged by every call.

    Returns
    -------
    callable
        ``scorer(estimator, X, y) -> float``, for ``scoring=`` of scikit-learn.

    Raises
    ------
    ValueError
        If the metric is unknown, or its bounds are missing or not a range.

    Notes
    -----
    The scorer charges the ledger, and then predicts in a guard that catches every error and warning
    of ``predict``, because either would reveal something about a value. A row counts as wrong (in a
    mean of errors as the largest error, in an order of scores as the worst score) if predicting it
    raises an error, or gives NaN, a list, or an array of several values. An infinite number is
    clipped to the bounds.

    A row that fails does not change the score of another row. Rows are predicted in tables of 1,024
    rows. The position of each row is drawn independently, and free positions hold copies; a table
    that fails is split until the failing rows are isolated. *Assumption*: in tables of this size
    the estimator predicts each row independently of the others, and equal rows equally. For a
    ``predict`` that uses the whole table (ranks it, standardises it by its own mean, draws from a
    generator of its own) there is no guarantee. The generators of Python and NumPy that a process
    shares are in the same state for every table, and put back afterwards. An index of pandas is not
    passed on. Each failing row takes about ten extra predictions.

    Examples
    --------
    >>> from skdp import make_private_scorer
    >>> make_private_scorer("accuracy", epsilon=0.1)
    make_private_scorer('accuracy', epsilon=0.1)
    """
    check_metric(metric, bounds)
    as_epsilon(epsilon)
    options: dict[str, Any] = {"ledger": ledger}
    if bounds is not None:
        options["bounds"] = bounds
    return _PrivateScorer(metric, epsilon, options)
