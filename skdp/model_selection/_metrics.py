"""Metrics of scikit-learn, each from one release with noise."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .._random import NoiseSource
from .._types import FloatArray, IntArray
from .._validation import as_integer
from ..accounting import PrivacyLedger
from ..kernels.binned_scores import BinnedScores, Scale
from ..mechanisms import discrete_laplace
from ..release import QueryResult
from ..rows import as_labels
from . import _formulas
from ._guard import positions_of
from ._judge import Covers, Noisy, judge
from ._reading import as_numbers, label_positions, read_labels, score_columns
from ._row_losses import (
    mean_loss,
    number_moments,
    number_score,
    numbers_between,
    probability_losses,
)
from ._score_table import (
    PROBABILITIES,
    Counts,
    calibration_curve,
    class_counts,
    largest_loss,
    ranking,
    roc_curve,
    score_table,
)
from ._scores import charge_score, range_of

__all__ = [
    "matrix_score",
    "number_range",
    "one_against_others",
    "predicted_counts",
    "private_average_precision",
    "private_balanced_accuracy",
    "private_brier",
    "private_calibration_curve",
    "private_f1",
    "private_log_loss",
    "private_mae",
    "private_r2",
    "private_roc_auc",
    "private_roc_curve",
    "probability_loss",
    "table_scores",
]


class _Paid(NamedTuple):
    """How a release is paid for."""

    name: str
    epsilon: Any
    ledger: PrivacyLedger | None
    random_state: Any

    def charge(self) -> tuple[Fraction, NoiseSource]:
        """Charge it, before a value is read."""
        return charge_score(*self)


# --- from one release of scores by class


def private_roc_auc(
    y_true: Any,
    y_score: Any,
    *,
    epsilon: float | Fraction,
    labels: Any = (0, 1),
    score_range: tuple[float, float] | None = None,
    level: float = 0.95,
    interval: str = "population",
    ledger: PrivacyLedger | None = None,
    random_state: int | None = None,
) -> QueryResult:
    """Release the area under the ROC curve.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        True labels. Rows with a label that is not declared are skipped.
    y_score : array or frame of shape (n_rows,) or (n_rows, n_labels), or list of numbers
        Score of the positive label, or probabilities of all labels in the order of ``labels``, from
        a model that is a release itself or was trained without these rows. A missing score counts
        as the worst.
    epsilon : number or Fraction
        Privacy parameter of the metric.
    labels : array-like, default=(0, 1)
        The public list of labels. Of two, the second is the positive one. Of more, the metric is
        the mean over all labels, each against the others, and every label gets an equal part of
        epsilon, because each row is in the counts of all labels.
    score_range : (low, high), default=None
        Public range of the scores, which are clipped to it. None stands for probabilities.
    level : float, default=0.95
        Probability that the interval covers the metric.
    interval : {"noise", "population"}, default="population"
        "population": the interval is for the metric on the population that the rows are a random
        sample of; ``sampling_std`` of the result is the part of sampling. "noise": for the exact
        metric on these rows.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before a label is read.
    random_state : None or int, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    QueryResult
        ``float(result)`` is the metric; it comes with a standard deviation and an interval.

    Raises
    ------
    ValueError
        If labels repeat, shapes do not fit, or a parameter is out of range; nothing is spent.
    BudgetExceededError
        If the ledger cannot pay.

    Notes
    -----
    A fifth of epsilon finds where the scores lie, on 4,096 public intervals. The rest counts both
    classes in bins of about equal mass: 24 of them at 9,000 rows, of which a fifth is positive, and
    epsilon 0.5; more where epsilon or the rows allow. The area under the curve follows from the
    counts, the interval from the public law of their noise, and it is widened by what the bins may
    hide. If noise alone could have made one of the classes, the interval is everything possible.

    Several metrics of the same scores cost less together: `private_score_report`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import private_roc_auc
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 10_000)
    >>> auc = private_roc_auc(truth, 0.5 * truth + 0.5 * rng.random(10_000), epsilon=1.0)
    >>> float(auc) > 0.9
    True
    """
    covers = Covers.asked(level, interval)
    paid = _Paid("private_roc_auc", epsilon, ledger, random_state)
    tables = _released(y_true, y_score, labels, score_range, paid)
    return ranking("roc_auc", [class_counts(each) for each in tables], covers)


def private_average_precision(
    y_true: Any,
    y_score: Any,
    *,
    epsilon: float | Fraction,
    labels: Any = (0, 1),
    score_range: tuple[float, float] | None = None,
    level: float = 0.95,
    interval: str = "population",
    ledger: PrivacyLedger | None = None,
    random_state: int | None = None,
) -> QueryResult:
    """Release the average precision: the area under the curve of precision and recall.

    Parameters
    ----------
    y_true, y_score, epsilon, labels, score_range, level, interval, ledger, random_state
        As in `private_roc_auc`, and so is what is released.

    Returns
    -------
    QueryResult
        Between 0 and 1; of more than two labels the mean over all.

    Raises
    ------
    ValueError
        As in `private_roc_auc`; nothing is spent.
    BudgetExceededError
        If the ledger cannot pay.

    Examples
    --------
    >>> from skdp import private_average_precision
    >>> truth, score = [0] * 8_000 + [1] * 2_000, [0.1] * 9_000 + [0.9] * 1_000
    >>> float(private_average_precision(truth, score, epsilon=1.0)) > 0.5
    True
    """
    covers = Covers.asked(level, interval)
    paid = _Paid("private_average_precision", epsilon, ledger, random_state)
    tables = _released(y_true, y_score, labels, score_range, paid)
    return ranking("average_precision", [class_counts(each) for each in tables], covers)


def private_roc_curve(
    y_true: Any,
    y_score: Any,
    *,
    epsilon: float | Fraction,
    labels: Any = (0, 1),
    score_range: tuple[float, float] | None = None,
    level: float = 0.95,
    interval: str = "population",
    ledger: PrivacyLedger | None = None,
    random_state: int | None = None,
) -> pd.DataFrame:
    """Release the ROC curve of two labels.

    Parameters
    ----------
    y_true, y_score, epsilon, labels, score_range, level, interval, ledger, random_state
        As in `private_roc_auc`, and so is what is released.

    Returns
    -------
    DataFrame
        A row for each end of a bin, from the highest threshold to the lowest, with the columns
        ``threshold``, ``fpr``, ``fpr_lower``, ``fpr_upper``, ``tpr``, ``tpr_lower`` and
        ``tpr_upper``. Rows above the threshold are predicted positive. Intervals are pointwise.

    Raises
    ------
    ValueError
        If there are more than two labels, and as in `private_roc_auc`; nothing is spent.
    BudgetExceededError
        If the ledger cannot pay.

    Examples
    --------
    >>> from skdp import private_roc_curve
    >>> truth, score = [0] * 8_000 + [1] * 2_000, [0.1] * 9_000 + [0.9] * 1_000
    >>> curve = private_roc_curve(truth, score, epsilon=1.0)
    >>> curve[["fpr", "tpr"]].iloc[-1].tolist()
    [1.0, 1.0]
    """
    covers = Covers.asked(level, interval)
    _only_two(labels)
    paid = _Paid("private_roc_curve", epsilon, ledger, random_state)
    (table,) = _released(y_true, y_score, labels, score_range, paid)
    return roc_curve(class_counts(table), covers)


def private_calibration_curve(
    y_true: Any,
    y_prob: Any,
    *,
    epsilon: float | Fraction,
    n_bins: int = 10,
    labels: Any = (0, 1),
    level: float = 0.95,
    interval: str = "population",
    ledger: PrivacyLedger | None = None,
    random_state: int | None = None,
) -> pd.DataFrame:
    """Release a calibration curve: how often the label is positive where its probability is p.

    Parameters
    ----------
    y_true, epsilon, labels, level, interval, ledger, random_state
        As in `private_roc_auc`, and so is what is released.
    y_prob : array-like of shape (n_rows,) or (n_rows, 2)
        Probability of the positive label.
    n_bins : int, default=10
        Largest number of bins, which hold about equally many records.

    Returns
    -------
    DataFrame
        A row for each bin with the columns ``mean_predicted``, ``fraction_positive``,
        ``fraction_positive_lower``, ``fraction_positive_upper`` and ``records``, the noisy number
        of records.

    Raises
    ------
    ValueError
        If there are more than two labels, and as in `private_roc_auc`; nothing is spent.
    BudgetExceededError
        If the ledger cannot pay.

    Examples
    --------
    >>> from skdp import private_calibration_curve
    >>> truth, prob = [0] * 8_000 + [1] * 2_000, [0.1] * 9_000 + [0.9] * 1_000
    >>> curve = private_calibration_curve(truth, prob, epsilon=1.0, n_bins=4)
    >>> bool(curve["fraction_positive"].between(0, 1).all())
    True
    """
    covers = Covers.asked(level, interval)
    n_bins = as_integer(n_bins, "n_bins", least=1)
    _only_two(labels)
    paid = _Paid("private_calibration_curve", epsilon, ledger, random_state)
    (table,) = _released(y_true, y_prob, labels, None, paid)
    return calibration_curve(class_counts(table), n_bins, covers)


def _only_two(labels: Any) -> None:
    if len(label_positions(labels)) != 2:
        raise ValueError(
            f"A curve is of two labels, got {list(labels)!r}. Give one label against the others."
        )


def _released(
    y_true: Any, y_score: Any, labels: Any, score_range: Any, paid: _Paid
) -> list[BinnedScores]:
    """Read, charge and release the scores of one function."""
    positions = label_positions(labels)
    scale = PROBABILITIES
    ends = range_of(score_range)
    if ends is not None:
        scale = Scale(float(ends[0]), float(ends[1]), bent=False)
    n_rows, columns = score_columns(y_score, len(positions), "y_score")
    truth = read_labels(y_true, n_rows)
    exact, source = paid.charge()
    classes = positions_of(truth, positions)
    middle = (scale.low + scale.high) / 2
    scores = as_numbers(columns)
    return one_against_others(scores, classes, exact, source, scale=scale, threshold=middle)


def one_against_others(
    scores: FloatArray,
    classes: IntArray,
    epsilon: Fraction,
    source: NoiseSource,
    *,
    groups: IntArray | None = None,
    n_groups: int = 1,
    scale: Scale = PROBABILITIES,
    threshold: float = 0.5,
) -> list[BinnedScores]:
    """One release of scores for two classes, and one for each of more."""
    # Privacy. Of k > 2 classes each record is in the counts of all k: k releases in sequence, each
    # at epsilon / k. Of two classes there is one.
    group = np.zeros(len(classes), dtype=np.int64) if groups is None else groups
    several = scores.shape[1] > 1
    tables = []
    for k in range(scores.shape[1]):
        positive = classes == (k if several else 1)
        cells = np.where(classes < 0, -1, 2 * group + positive)
        part = epsilon / scores.shape[1]
        tables.append(
            score_table(
                scores[:, k], cells, n_groups, part, source, scale=scale, threshold=threshold
            )
        )
    return tables


def table_scores(
    name: str,
    classes: IntArray,
    scores: FloatArray,
    epsilon: Fraction,
    source: NoiseSource,
    covers: Covers,
) -> QueryResult:
    """Release one metric of the order of probabilities."""
    released = one_against_others(scores, classes, epsilon, source)
    tables: list[Counts] = [class_counts(each) for each in released]
    return ranking(name, tables, covers)


# --- from a confusion matrix


def private_f1(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float | Fraction,
    labels: Any = (0, 1),
    level: float = 0.95,
    interval: str = "population",
    ledger: PrivacyLedger | None = None,
    random_state: int | None = None,
) -> QueryResult:
    """Release the F1 score.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        As in `private_accuracy`. Rows whose true label is not declared are skipped; a predicted
        label that is not declared counts as wrong.
    epsilon, level, interval, ledger, random_state
        As in `private_roc_auc`.
    labels : array-like, default=(0, 1)
        The public list of labels. Of two, the second is the positive one; of more, the score is the
        mean over all labels.

    Returns
    -------
    QueryResult
        From one noisy confusion matrix, in which a record is in one cell.

    Raises
    ------
    ValueError
        If labels repeat, lengths differ, or a parameter is out of range; nothing is spent.
    BudgetExceededError
        If the ledger cannot pay.

    Examples
    --------
    >>> from skdp import private_f1
    >>> score = private_f1([0] * 4_000 + [1] * 1_000, [0] * 4_500 + [1] * 500, epsilon=1.0)
    >>> round(float(score), 1)
    0.7
    """
    covers = Covers.asked(level, interval)
    paid = _Paid("private_f1", epsilon, ledger, random_state)
    return _of_matrix("f1", y_true, y_pred, labels, paid, covers)


def private_balanced_accuracy(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float | Fraction,
    labels: Any = (0, 1),
    level: float = 0.95,
    interval: str = "population",
    ledger: PrivacyLedger | None = None,
    random_state: int | None = None,
) -> QueryResult:
    """Release the balanced accuracy: the mean over the labels of the recall.

    Parameters
    ----------
    y_true, y_pred, epsilon, labels, level, interval, ledger, random_state
        As in `private_f1`.

    Returns
    -------
    QueryResult
        From one noisy confusion matrix, in which a record is in one cell.

    Raises
    ------
    ValueError
        As in `private_f1`; nothing is spent.
    BudgetExceededError
        If the ledger cannot pay.

    Examples
    --------
    >>> from skdp import private_balanced_accuracy
    >>> truth, guess = [0] * 4_000 + [1] * 1_000, [0] * 4_500 + [1] * 500
    >>> bool(0.7 < float(private_balanced_accuracy(truth, guess, epsilon=1.0)) < 0.8)
    True
    """
    covers = Covers.asked(level, interval)
    paid = _Paid("private_balanced_accuracy", epsilon, ledger, random_state)
    return _of_matrix("balanced_accuracy", y_true, y_pred, labels, paid, covers)


def _of_matrix(
    name: str, y_true: Any, y_pred: Any, labels: Any, paid: _Paid, covers: Covers
) -> QueryResult:
    """Read, charge and release a metric of a confusion matrix."""
    positions = label_positions(labels)
    guess = as_labels(y_pred, "y_pred")
    truth = read_labels(y_true, len(guess))
    exact, source = paid.charge()
    classes, guesses = positions_of(truth, positions), positions_of(guess, positions)
    counts = predicted_counts(classes, guesses, len(positions), exact, source)
    return matrix_score(name, Noisy(counts[0].astype(float), exact), covers)


def predicted_counts(
    classes: IntArray,
    guesses: IntArray,
    n_labels: int,
    epsilon: Fraction,
    source: NoiseSource,
    *,
    groups: IntArray | None = None,
    n_groups: int = 1,
) -> IntArray:
    """Noisy confusion matrices of all groups; the last column is of labels not declared."""
    # Privacy. Released are counts over a public list of cells, empty ones included; one record is
    # in at most one cell: L1 sensitivity 1, noise of rate epsilon on every cell.
    group = np.zeros(len(classes), dtype=np.int64) if groups is None else groups
    known = classes >= 0
    column = np.where(guesses < 0, n_labels, guesses)
    cell = ((group * n_labels + classes) * (n_labels + 1) + column)[known]
    shape = (n_groups, n_labels, n_labels + 1)
    exact = np.bincount(cell, minlength=int(np.prod(shape)))
    noisy: IntArray = discrete_laplace(exact, epsilon, random_state=source).reshape(shape)
    return noisy


def matrix_score(name: str, counts: Noisy, covers: Covers) -> QueryResult:
    """A metric of a noisy confusion matrix, with a last column for labels not declared."""
    formula = getattr(_formulas, name)
    rows = counts.values.sum(-1)
    spread = np.sqrt(counts.variance * counts.values.shape[-1])
    # All rows together have more noise than one.
    known = (
        rows.sum() > 4 * spread * np.sqrt(len(rows))
        if name == "accuracy"
        else rows.min() > 4 * spread
    )
    return judge(lambda arrays: formula(arrays[0]), [counts], covers, known=bool(known))


# --- means over rows


def private_log_loss(
    y_true: Any,
    y_proba: Any,
    *,
    epsilon: float | Fraction,
    labels: Any = (0, 1),
    level: float = 0.95,
    interval: str = "population",
    ledger: PrivacyLedger | None = None,
    random_state: int | None = None,
) -> QueryResult:
    """Release the log loss: the mean of minus the logarithm of the true label's probability.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        True labels. Rows with a label that is not declared are skipped.
    y_proba : array-like of shape (n_rows,) or (n_rows, n_labels)
        Probabilities, as ``y_score`` of `private_roc_auc`. The loss of a row is clipped at that of
        the probability 0.001, which is 6.9; a missing probability counts as that.
    epsilon, labels, level, interval, ledger, random_state
        As in `private_roc_auc`.

    Returns
    -------
    QueryResult
        From two noisy sums: of the losses, as shares of the largest, and of what each row has left
        to it. A record changes them by 1 in all. For ``interval="population"`` the squares of the
        losses are released as well, as a third part of each row.

    Raises
    ------
    ValueError
        As in `private_roc_auc`; nothing is spent.
    BudgetExceededError
        If the ledger cannot pay.

    Examples
    --------
    >>> from skdp import private_log_loss
    >>> loss = private_log_loss([0, 1] * 5_000, [0.2, 0.8] * 5_000, epsilon=1.0)
    >>> round(float(loss), 1)
    0.2
    """
    covers = Covers.asked(level, interval)
    paid = _Paid("private_log_loss", epsilon, ledger, random_state)
    return _of_rows("log_loss", y_true, y_proba, labels, paid, covers)


def private_brier(
    y_true: Any,
    y_proba: Any,
    *,
    epsilon: float | Fraction,
    labels: Any = (0, 1),
    level: float = 0.95,
    interval: str = "population",
    ledger: PrivacyLedger | None = None,
    random_state: int | None = None,
) -> QueryResult:
    """Release the Brier score: the mean squared error of probabilities.

    Parameters
    ----------
    y_true, y_proba, epsilon, labels, level, interval, ledger, random_state
        As in `private_log_loss`.

    Returns
    -------
    QueryResult
        Between 0 and 1 for two labels. For more labels the squares are added up over the labels,
        as in scikit-learn, which gives up to 2.

    Raises
    ------
    ValueError
        As in `private_roc_auc`; nothing is spent.
    BudgetExceededError
        If the ledger cannot pay.

    Examples
    --------
    >>> from skdp import private_brier
    >>> score = private_brier([0, 1] * 5_000, [0.2, 0.8] * 5_000, epsilon=1.0)
    >>> round(float(score), 2)
    0.04
    """
    covers = Covers.asked(level, interval)
    paid = _Paid("private_brier", epsilon, ledger, random_state)
    return _of_rows("brier", y_true, y_proba, labels, paid, covers)


def _of_rows(
    name: str, y_true: Any, y_proba: Any, labels: Any, paid: _Paid, covers: Covers
) -> QueryResult:
    """Read, charge and release a mean of losses of rows."""
    positions = label_positions(labels)
    n_rows, columns = score_columns(y_proba, len(positions), "y_proba")
    truth = read_labels(y_true, n_rows)
    exact, source = paid.charge()
    return probability_loss(
        name, positions_of(truth, positions), as_numbers(columns), exact, source, covers
    )


def probability_loss(
    name: str,
    classes: IntArray,
    scores: FloatArray,
    epsilon: Fraction,
    source: NoiseSource,
    covers: Covers,
) -> QueryResult:
    """Release log loss or Brier score."""
    known = classes >= 0
    losses = probability_losses(name, classes[known], scores[known])
    largest = largest_loss(name, scores.shape[1] > 1)
    return mean_loss(losses, largest, epsilon, source, covers)


def private_mae(
    y_true: Any,
    y_pred: Any,
    *,
    bounds: tuple[float, float],
    epsilon: float | Fraction,
    level: float = 0.95,
    interval: str = "population",
    ledger: PrivacyLedger | None = None,
    random_state: int | None = None,
) -> QueryResult:
    """Release the mean absolute error.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        Numbers, as in `private_mse`: clipped to the bounds; what is missing counts as the largest
        error.
    bounds : (low, high)
        Public range of the target. The noise grows with its width.
    epsilon, level, interval, ledger, random_state
        As in `private_roc_auc`.

    Returns
    -------
    QueryResult
        In units of ``y``, from two noisy sums as in `private_log_loss`.

    Raises
    ------
    ValueError
        If the bounds are reversed or too wide, or lengths differ; nothing is spent.
    BudgetExceededError
        If the ledger cannot pay.

    Examples
    --------
    >>> from skdp import private_mae
    >>> score = private_mae([1.0] * 10_000, [2.0] * 10_000, bounds=(0, 5), epsilon=1.0)
    >>> round(float(score), 1)
    1.0
    """
    covers = Covers.asked(level, interval)
    low, high = number_range(bounds)
    guess = as_labels(y_pred, "y_pred")
    truth = read_labels(y_true, len(guess))
    exact, source = charge_score("private_mae", epsilon, ledger, random_state)
    true, guessed = (numbers_between(each, low, high) for each in (truth, guess))
    return mean_loss(np.abs(true - guessed), high - low, exact, source, covers)


def private_r2(
    y_true: Any,
    y_pred: Any,
    *,
    bounds: tuple[float, float],
    epsilon: float | Fraction,
    level: float = 0.95,
    interval: str = "population",
    ledger: PrivacyLedger | None = None,
    random_state: int | None = None,
) -> QueryResult:
    """Release R2, the share of the target's variance that predictions explain.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        Numbers, as in `private_mae`; a target that is missing lies in the middle of the bounds.
    bounds : (low, high)
        Public range of the target. The noise grows with its width.
    epsilon, level, interval, ledger, random_state
        As in `private_roc_auc`. For ``interval="population"`` the sampling error is that of normal
        errors and targets.

    Returns
    -------
    QueryResult
        At most 1, from noisy sums of clipped moments: three quarters of epsilon for the errors, one
        for the target. If noise alone could have made the variance of the target, the interval has
        no lower end.

    Raises
    ------
    ValueError
        If the bounds are reversed or too wide, or lengths differ; nothing is spent.
    BudgetExceededError
        If the ledger cannot pay.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import private_r2
    >>> truth = np.linspace(0, 5, 10_000)
    >>> score = private_r2(truth, truth, bounds=(0, 5), epsilon=1.0)
    >>> round(float(score), 1)
    1.0
    """
    covers = Covers.asked(level, interval)
    low, high = number_range(bounds)
    guess = as_labels(y_pred, "y_pred")
    truth = read_labels(y_true, len(guess))
    exact, source = charge_score("private_r2", epsilon, ledger, random_state)
    true, guessed = (numbers_between(each, low, high) for each in (truth, guess))
    return number_score("r2", number_moments(true, guessed, exact, source), high - low, covers)


def number_range(bounds: Any) -> tuple[float, float]:
    """Ends of the public range of a target."""
    ends = range_of(bounds)
    if ends is None:
        raise ValueError("bounds=(low, high), the public range of the target, is needed.")
    return float(ends[0]), float(ends[1])
