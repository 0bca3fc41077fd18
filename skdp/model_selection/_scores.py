"""Scores of predictions on true rows, each released with noise."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..accounting import PrivacyLedger
from ..release import QueryResult
from ..tables import Column, as_column, as_frame, as_labels
from ._guard import answers_of, draw_places, true_rows
from ._metrics import Metric, Scored, as_metric, charge_score, label_positions


def private_score(
    y_true: Any,
    y: Any,
    metric: str = "accuracy",
    *,
    epsilon: float | Fraction,
    labels: Any = None,
    domain: Any = None,
    level: float = 0.95,
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
        Probability that the interval covers the score on the population that the rows are a random
        sample of; ``sampling_std`` of the result is the part of sampling.
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
                                                        largest, of their squares, and of
                                                        what is left
    neg_brier_score          probabilities  ``labels``  the same                           1
    neg_mean_absolute_error  numbers        ``domain``  the same of errors                 1
    neg_mean_squared_error   numbers        ``domain``  the same of squared errors         1
    nicv                     a model        nothing     the same of squared distances to   1
                                                        the nearest centre
    =======================  =============  ==========  =================================  =======

    For "roc_auc" a fifth of epsilon finds where the scores lie, by counts
    of both classes in a tree over 4,096 public intervals, whose levels share this part. The rest
    counts both classes in bins of about equal mass: 24 of them at 9,000 rows, of which a fifth is
    positive, and epsilon 0.5; more where epsilon or the rows allow. The interval is widened by what
    the bins may hide. Of k > 2 labels each is released at epsilon / k, because each row is in the
    counts of all labels.

    "nicv" is the mean squared distance of a row to its nearest centre, in the units of the model's
    domain. It is cut at that of the corner of the domain that is farthest from the most central
    centre, which both are public; "neg_nicv" is the negated one.

    The number of rows is private too and costs nothing extra. A log loss is clipped at that of the
    probability 0.001, which is 6.9. The Brier score of more than two labels adds the squares up
    over the labels, as in scikit-learn, which gives up to 2. If
    noise alone could have made one of the classes, the interval is everything possible.

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
    asked = as_metric(metric, domain, level)
    if asked.name == "log_likelihood":
        raise ValueError("log_likelihood is a metric of PrivateGridSearchCV alone.")
    if not asked.reads_labels:
        return _score_of_rows(y, y_true, asked, epsilon, ledger, random_state)
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


def _score_of_rows(
    model: Any, X: Any, metric: Metric, epsilon: Any, ledger: Any, random_state: Any
) -> QueryResult:
    """Release a metric of what a fitted model says of rows."""
    metric.check_model(model)
    check_is_fitted(model)
    metric = metric.for_models([model])
    truth, take = true_rows(X, None)
    # What is wrong with the columns is said before the charge.
    getattr(model, metric.method)(take(np.zeros(0, dtype=np.int64)))
    loss, source = charge_score(f"private_score: {metric.name}", epsilon, ledger, random_state)
    everyone, places = np.arange(len(truth)), draw_places(len(truth))
    guess = answers_of(model, metric.method, take, everyone, places)
    return metric.release(Scored(truth, guess, {}), loss.epsilon, source)
