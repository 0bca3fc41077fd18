"""Scores of predictions on true rows, each released with noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from .._validation import as_epsilon
from ..accounting import PrivacyLedger
from ..release import QueryResult
from ..tables import Column, as_column, as_frame, as_labels
from ._guard import answers_of, check_model, draw_places, true_rows
from ._intervals import Covers
from ._metrics import (
    Metric,
    Scored,
    as_metric,
    charge_score,
    class_positions,
    label_positions,
)


def private_score(
    y_true: Any,
    y: Any,
    metric: str = "accuracy",
    *,
    epsilon: float | Fraction,
    labels: Any = None,
    domain: Any = None,
    level: float = 0.95,
    interval: str = "population",
    ledger: PrivacyLedger | None = None,
    random_state: int | None = None,
) -> QueryResult:
    """Release one score of predictions on true rows.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        True labels or numbers. Rows with a label that is not declared are skipped, except by
        "accuracy". For "nicv" the rows themselves, which the model was not fitted to.
    y : array or frame of shape (n_rows,) or (n_rows, n_labels), or list
        What the metric reads, see the table below: predicted labels, probabilities of all labels in
        the order of ``labels`` (of two labels, that of the second is enough; other scores, scaled
        by a public range to 0..1, have the same order), or predicted numbers. It must come from a
        model that is a release itself or was trained without these rows: what a prediction reveals
        about *other* records is not covered here. What is missing, or is no text, number or date,
        counts as wrong: as the worst score, or the largest error. For "nicv" the model: a fitted
        `DPKMeans`, or a pipeline that ends in one.
    metric : str, default="accuracy"
        What is released, by the name of scikit-learn's scorer. A name with ``neg_`` gives the
        negated loss, as in scikit-learn; the same name without it the loss itself.
    epsilon : number or Fraction
        Privacy parameter of the score.
    labels : array-like, default=None
        The public list of labels; None stands for (0, 1). Of two, the second is the positive one;
        of more, "f1" and "roc_auc" are means over all labels, each against the others.
        "accuracy" needs none.
    domain : (low, high) or Numeric, default=None
        Public range of the target; needed for metrics of numbers, which are clipped to it. The
        noise grows with its width, so do not make it wider than needed. Both ends lie between
        -1e100 and 1e100.
    level : float, default=0.95
        Probability that the interval covers the score.
    interval : {"noise", "population"}, default="population"
        "population": the interval is for the score on the population that the rows are a random
        sample of; ``sampling_std`` of the result is the part of sampling. "noise": for the exact
        score on these rows.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before a value is read.
    random_state : None or int, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    QueryResult
        ``float(result)`` is the score; it comes with the standard deviations of the noise and of
        sampling, and an interval.

    Raises
    ------
    ValueError
        If the metric is unknown, an argument is missing or belongs to another metric, labels
        repeat, shapes do not fit, or a parameter is out of range; nothing is spent.
    BudgetExceededError
        If the ledger cannot pay.

    Notes
    -----
    What is released with noise, and its L1 sensitivity: by how much one record changes all released
    numbers together (the width is that of ``domain``).

    =======================  =============  ==========  =================================  =======
    ``metric``               ``y``          Needs       Released                           Changes
    =======================  =============  ==========  =================================  =======
    accuracy                 labels         nothing     numbers of right and wrong rows    1
    balanced_accuracy        labels         ``labels``  a confusion matrix, with a column  1
                                                        for labels that are not declared
    f1                       labels         ``labels``  the same                           1
    roc_auc                  probabilities  ``labels``  numbers of rows by class, in bins  1
                                                        of scores
    neg_log_loss             probabilities  ``labels``  sums of losses, as shares of the   1
                                                        largest, and of what is left
    neg_brier_score          probabilities  ``labels``  the same                           1
    neg_mean_absolute_error  numbers        ``domain``  the same of errors                 1
    neg_mean_squared_error   numbers        ``domain``  the same of squared errors         1
    r2                       numbers        ``domain``  sums as above of errors (3/4 of    1 and 1
                                                        epsilon) and of targets (1/4)
    nicv                     a model        nothing     the same of squared distances to   1
                                                        the nearest centre
    =======================  =============  ==========  =================================  =======

    For "roc_auc" a fifth of epsilon finds where the scores lie, by counts
    of both classes in a tree over 4,096 public intervals, whose levels share this part. The rest
    counts both classes in bins of about equal mass: 24 of them at 9,000 rows, of which a fifth is
    positive, and epsilon 0.5; more where epsilon or the rows allow. The interval is widened by what
    the bins may hide. Of k > 2 labels each is released at epsilon / k, because each row is in the
    counts of all labels.

    With ``interval="population"``, and for "r2", each loss and error is divided into three parts
    instead of two, so that the sum of squares is released too: the parts of a row sum to 1.

    "nicv" is the mean squared distance of a row to its nearest centre, in the units of the model's
    domain. It is cut at that of the corner of the domain that is farthest from the most central
    centre, which both are public; "neg_nicv" is the negated one.

    The number of rows is private too and costs nothing extra. A log loss is clipped at that of the
    probability 0.001, which is 6.9. The Brier score of more than two labels adds the squares up
    over the labels, as in scikit-learn, which gives up to 2. For "r2" a target that is missing lies
    in the middle of the range. The sampling error of "r2" is that of normal errors and
    targets. If noise alone could have made one of the classes, or the variance of the
    target, the interval is everything possible.

    Examples
    --------
    >>> from skdp.model_selection import private_score
    >>> truth, score = [0] * 8_000 + [1] * 2_000, [0.1] * 8_500 + [0.9] * 1_500
    >>> auc = private_score(truth, score, metric="roc_auc", epsilon=1.0)
    >>> round(float(auc), 2)
    0.88
    >>> truth, guess = [1.0] * 10_000, [3.0] * 10_000
    >>> name = "neg_mean_absolute_error"
    >>> round(float(private_score(truth, guess, name, domain=(0, 5), epsilon=1.0)), 1)
    -2.0
    """
    covers = Covers.asked(level, interval)
    asked = as_metric(metric, domain, covers)
    if not asked.reads_labels:
        return _score_of(y, y_true, None, asked, epsilon, ledger, random_state)
    if labels is not None and not asked.needs_classes:
        raise ValueError(f"labels= belongs to metrics of declared labels, not to {metric!r}.")
    names = (0, 1) if labels is None else labels
    positions = label_positions(names) if asked.needs_classes else {}
    scored = asked.method == "predict_proba"
    columns: Any = _score_columns(y, len(positions)) if scored else [as_labels(y, "y")]
    truth = as_labels(y_true, "y_true")
    if len(truth) != len(columns[0]):
        raise ValueError("y_true has more or fewer rows than predictions; how many is private.")
    loss, source = charge_score(f"private_score: {metric}", epsilon, ledger, random_state)
    # Columns side by side, NaN where there is no number; never raises.
    guess = np.column_stack([each.numbers() for each in columns]) if scored else columns[0]
    return asked.release(Scored(truth, guess, positions), loss.epsilon, source)


def _score_columns(scores: Any, n_labels: int) -> list[Column]:
    """Columns of scores: one for two labels, one for each of more. No value is looked at."""
    if len(getattr(scores, "shape", ())) == 2:
        frame = as_frame(scores)
        columns = [frame.column(column) for column in frame.names]
    else:
        columns = [as_column(scores, "y")]
    if len(columns) not in ((1, 2) if n_labels == 2 else (n_labels,)):
        raise ValueError(
            f"y must be an array or a frame with one column for each of the {n_labels} labels, in "
            f"their order (of two labels the second is enough), got {len(columns)}."
        )
    return columns[-1:] if n_labels == 2 else columns


def _score_of(
    model: Any, X: Any, y: Any, metric: Metric, epsilon: Any, ledger: Any, random_state: Any
) -> QueryResult:
    """Release a metric of what a fitted model says of rows."""
    metric.check_model(model)
    check_model(model, X)
    metric = metric.for_models([model])
    classes = getattr(model, "classes_", ())
    truth, take = true_rows(X, y)
    name = f"private_score: {'neg_' if metric.negated else ''}{metric.name}"
    loss, source = charge_score(name, epsilon, ledger, random_state)
    everyone = np.arange(len(truth))
    places = draw_places(len(truth))
    guess = answers_of(model, metric.method, take, everyone, places, len(classes))
    return metric.release(Scored(truth, guess, class_positions(classes)), loss.epsilon, source)


# --- scorers


@dataclass(eq=False, repr=False)
class _PrivateScorer:
    """Callable ``scorer(estimator, X, y)``; scikit-learn's searches take it as ``scoring=``."""

    metric: str
    epsilon: Any
    domain: Any
    ledger: PrivacyLedger | None

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        metric = as_metric(self.metric, self.domain)
        found = _score_of(estimator, X, y, metric, self.epsilon, self.ledger, None)
        score = float(found)
        return -score if metric.is_loss and not metric.negated else score

    def __repr__(self) -> str:
        return f"make_private_scorer({self.metric!r}, epsilon={self.epsilon})"


def make_private_scorer(
    metric: str = "accuracy",
    *,
    epsilon: float | Fraction,
    domain: Any = None,
    ledger: PrivacyLedger | None = None,
) -> _PrivateScorer:
    """Make a scorer whose every call releases one private number and is charged.

    Parameters
    ----------
    metric : str, default="accuracy"
        Score that is released, by a name of `private_score`. Losses are negated under either of
        their names, so that higher is better. Scores of probabilities need ``predict_proba``.
    epsilon : number or Fraction
        Privacy budget of each call: k folds cost k times as much, and m candidates m times.
    domain : (low, high) or Numeric, default=None
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
        If the metric is unknown, or its domain is missing or not a range.

    Notes
    -----
    The scorer charges the ledger, and then predicts in a guard that catches every error and warning
    of ``predict``, because either would reveal something about a value. A row counts as wrong (in a
    mean of errors as the largest error, in an order of scores as the worst score) if predicting it
    raises an error, or gives NaN, a list, or an array of several values. An infinite number is
    clipped to the range.

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
    >>> from skdp.model_selection import make_private_scorer
    >>> make_private_scorer("accuracy", epsilon=0.1)
    make_private_scorer('accuracy', epsilon=0.1)
    """
    as_metric(metric, domain)
    as_epsilon(epsilon)
    return _PrivateScorer(metric, epsilon, domain, ledger)
