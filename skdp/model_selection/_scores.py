"""Scores of predictions on true rows, released with noise: accuracy, confusion matrix, MSE."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from .._random import NoiseSource, noise_source
from .._types import IntArray
from .._validation import as_epsilon, as_fraction
from ..accounting import PrivacyLedger, PrivacyLoss, charge
from ..mechanisms import (
    bounded_sum,
    discrete_laplace,
    discrete_laplace_quantile,
    discrete_laplace_variance,
)
from ..release import QueryResult
from ..rows import as_labels
from ._guard import Labels, equal, positions_of, squared_errors
from ._judge import Covers, with_sampling

__all__ = [
    "Bounds",
    "charge_score",
    "private_accuracy",
    "private_confusion_matrix",
    "private_mse",
    "range_of",
    "release_accuracy",
    "release_mse",
    "squared_scores",
]

# Both ends of the public range of a target.
Bounds: TypeAlias = tuple[Fraction, Fraction]

# Squared errors are summed on a grid of this many steps from 0 to the largest.
_STEPS = 2**20
# Ranges of a target whose squares, and sums of many of them, are ordinary floats.
_NARROWEST, _WIDEST = Fraction(1, 10**100), Fraction(10**100)


# Parts of a smaller budget may need noise that does not fit into 64-bit integers.
_LEAST = Fraction(1, 10**8)


def check_rate(epsilon: Fraction) -> None:
    """Refuse an epsilon that tells nothing at all, before it is charged."""
    if epsilon < _LEAST:
        raise ValueError(
            f"epsilon={float(epsilon):.3g} is too little: its noise may not fit into 64-bit "
            f"integers, and would hide any number of rows. Use at least {float(_LEAST):g}. Nothing "
            "was spent."
        )


def charge_score(
    name: str, epsilon: Any, ledger: PrivacyLedger | None, random_state: Any
) -> tuple[Fraction, NoiseSource]:
    """Charge one score, before a value is read; give its epsilon and the source of its noise."""
    exact = as_epsilon(epsilon)
    check_rate(exact)
    source = noise_source(random_state)
    charge(ledger, name, PrivacyLoss(exact, seeded=source.seeded))
    return exact, source


def _aligned(y_true: Any, y_pred: Any) -> tuple[Labels, Labels]:
    """Both as one-dimensional arrays, without looking at values."""
    truth, guess = as_labels(y_true, "y_true"), as_labels(y_pred, "y_pred")
    if len(truth) != len(guess):
        raise ValueError(
            "y_true and y_pred must be one-dimensional and of the same length, got the shapes "
            f"{truth.shape} and {guess.shape}."
        )
    return truth, guess


def range_of(bounds: Any) -> Bounds | None:
    """Both ends of the public range of a target, exactly; None where no bounds are given."""
    if bounds is None:
        return None
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be a pair (low, high), got {bounds!r}.") from None
    low, high = as_fraction(low, "bounds"), as_fraction(high, "bounds")
    if low >= high:
        raise ValueError(f"bounds must be (low, high) with low < high, got {bounds!r}.")
    if max(abs(low), abs(high)) > _WIDEST or not float(high) - float(low) >= _NARROWEST:
        raise ValueError(
            f"bounds must be numbers between -1e100 and 1e100 that differ by at least 1e-100 as "
            f"floats, got {bounds!r}: squared errors are computed in floats. Rescale the target."
        )
    return low, high


# --- accuracy


def private_accuracy(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: float | Fraction,
    level: float = 0.95,
    interval: str = "population",
    ledger: PrivacyLedger | None = None,
    random_state: int | None = None,
) -> QueryResult:
    """Release the share of correct predictions.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        True and predicted labels. ``y_pred`` must come from a model that is a release itself or
        was trained without these rows: what a prediction reveals about *other* records is not
        covered here. Rows are compared one by one. Values that cannot be compared, and entries of
        a list that hold several values, count as wrong.
    epsilon : number or Fraction
        Privacy parameter of the score.
    level : float, default=0.95
        Probability that the interval covers the accuracy.
    interval : {"noise", "population"}, default="population"
        As in `private_roc_auc`.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before a label is read.
    random_state : None or int, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    QueryResult
        ``float(result)`` is the accuracy, between 0 and 1. It comes with the standard deviations of
        the noise and of sampling, and an interval.

    Raises
    ------
    ValueError
        If the lengths differ, or ``epsilon`` or ``level`` is out of range; nothing is spent.
    BudgetExceededError
        If the ledger cannot pay.

    Notes
    -----
    The number of rows is private too and costs nothing extra: two noisy counts are released, of
    correct and of wrong predictions.

    Examples
    --------
    >>> from skdp import private_accuracy
    >>> truth = ["a", "b"] * 5_000
    >>> score = private_accuracy(truth, ["a"] * 10_000, epsilon=1.0)
    >>> round(float(score), 2)
    0.5
    """
    truth, guess = _aligned(y_true, y_pred)
    covers = Covers.asked(level, interval)
    exact, source = charge_score("private_accuracy", epsilon, ledger, random_state)
    return release_accuracy(truth, guess, exact, source, covers)


def release_accuracy(
    truth: Labels, guess: Labels, exact: Fraction, source: NoiseSource, covers: Covers
) -> QueryResult:
    """Release the accuracy; it was charged before."""
    # Privacy. Released are two counts, of correct and of wrong rows. One record is in exactly one
    # of them: together they have L1 sensitivity 1 and cost epsilon, noise on both. The share and
    # its interval are computed from these two numbers and the public distribution of the noise.
    right = equal(truth, guess)
    counts = np.array([right.sum(), right.size - right.sum()], dtype=np.int64)
    correct, wrong = discrete_laplace(counts, exact, random_state=source).tolist()
    # Each of the two counts is within `reach` with probability 1 - (1 - level) / 2.
    reach = discrete_laplace_quantile((1 + covers.level) / 2, exact)
    found = _share(correct, wrong, reach, discrete_laplace_variance(exact), covers.level)
    # Of a share of a few rows, as if two more were right and two wrong: it is never 0.
    n = max(correct + wrong, 1) + 4
    share = min(max((correct + 2) / n, 0.0), 1.0)
    return with_sampling(found, covers, math.sqrt(share * (1 - share) / n), (0.0, 1.0))


def _share(part: int, rest: int, reach: int, variance: float, level: float) -> QueryResult:
    """The share part / (part + rest) of two noisy counts, each within ``reach`` of its truth."""
    part, rest = max(part, 0), max(rest, 0)
    total = part + rest
    value = part / total if total else 0.5
    most = part + reach + max(rest - reach, 0)
    least = max(part - reach, 0) + rest + reach
    spread = math.sqrt(variance * (value**2 + (1 - value) ** 2)) / max(total, 1)
    return QueryResult(
        value,
        min(spread, 0.5),
        max(part - reach, 0) / least if least else 0.0,
        (part + reach) / most if most else 1.0,
        f"covers the exact share on these rows with probability at least {level:g}; how far these "
        "rows stand for others is not in it",
    )


# --- confusion matrix


def private_confusion_matrix(
    y_true: Any,
    y_pred: Any,
    *,
    labels: Any,
    epsilon: float | Fraction,
    ledger: PrivacyLedger | None = None,
    random_state: int | None = None,
) -> pd.DataFrame:
    """Release a confusion matrix: how often each label was predicted as each label.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        As in `private_accuracy`. Rows with a label that is not declared are skipped.
    labels : array-like of shape (n_labels,)
        The public list of labels.
    epsilon : number or Fraction
        Privacy parameter of the matrix.
    ledger, random_state
        As in `private_accuracy`.

    Returns
    -------
    DataFrame of shape (n_labels, n_labels)
        Noisy counts, true labels in the rows and predicted ones in the columns; they may be
        negative. ``attrs["std"]`` is the standard deviation of the noise in each.

    Raises
    ------
    ValueError
        If the labels repeat, or lengths differ; nothing is spent.
    BudgetExceededError
        If the ledger cannot pay.

    Examples
    --------
    >>> from skdp import private_confusion_matrix
    >>> table = private_confusion_matrix([0, 1, 1], [0, 1, 0], labels=[0, 1], epsilon=1.0)
    >>> table.shape
    (2, 2)
    """
    truth, guess = _aligned(y_true, y_pred)
    names = pd.Index(list(labels))
    positions = {label: place for place, label in enumerate(names.tolist())}
    if not len(names) or len(positions) < len(names):
        raise ValueError(f"labels must be a list of different labels, got {list(labels)!r}.")
    exact, source = charge_score("private_confusion_matrix", epsilon, ledger, random_state)
    # Privacy. Released is a histogram over a public list of cells, empty ones included; one record
    # is in at most one cell: L1 sensitivity 1, noise of rate epsilon on every cell.
    size = len(names)
    row, column = (positions_of(values, positions) for values in (truth, guess))
    known = (row >= 0) & (column >= 0)
    counts = np.bincount((row * size + column)[known], minlength=size * size)
    noisy = discrete_laplace(counts, exact, random_state=source).reshape(size, size)
    table = pd.DataFrame(noisy, index=names.rename("true"), columns=names.rename("predicted"))
    table.attrs["std"] = math.sqrt(discrete_laplace_variance(exact))
    return table


# --- mean squared error


def private_mse(
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
    """Release the mean squared error.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        Numbers; see `private_accuracy`. Both are clipped to the bounds. A value that is missing or
        not a number counts as the largest error.
    bounds : (low, high)
        Public range of the target. The noise grows with the square of its width, so do not make it
        wider than needed. Both ends lie between -1e100 and 1e100.
    epsilon : number or Fraction
        Privacy parameter of the score. A tenth goes to the number of rows, the rest to the sum of
        squares.
    level : float, default=0.95
        Probability that the interval covers the mean.
    interval : {"noise", "population"}, default="population"
        As in `private_roc_auc`; the sampling error is that of normal errors.
    ledger, random_state
        As in `private_accuracy`.

    Returns
    -------
    QueryResult
        In squared units of ``y``.

    Raises
    ------
    ValueError
        If the bounds are reversed or too wide, or lengths differ; nothing is spent.
    BudgetExceededError
        If the ledger cannot pay.

    Examples
    --------
    >>> from skdp import private_mse
    >>> score = private_mse([1.0] * 10_000, [2.0] * 10_000, bounds=(0, 5), epsilon=1.0)
    >>> round(float(score), 1)
    1.0
    """
    truth, guess = _aligned(y_true, y_pred)
    covers = Covers.asked(level, interval)
    if range_of(bounds) is None:
        raise ValueError("private_mse needs bounds=(low, high), the public range of the target.")
    exact, source = charge_score("private_mse", epsilon, ledger, random_state)
    return release_mse(truth, guess, exact, source, covers, range_of(bounds))


def release_mse(
    truth: Labels,
    guess: Labels,
    exact: Fraction,
    source: NoiseSource,
    covers: Covers,
    bounds: Bounds | None,
) -> QueryResult:
    """Release the mean squared error; it was charged before."""
    assert bounds is not None
    low, high = bounds
    # Privacy. Two releases in sequence: the number of rows (sensitivity 1) at epsilon/10, and the
    # sum of squared errors, each clipped to [0, (high - low)^2] by itself, at the rest.
    count_share, sum_share = exact / 10, exact * 9 / 10
    largest = (high - low) ** 2
    squares = squared_errors(truth, guess, float(low), float(high))
    n_rows = int(discrete_laplace(np.array([truth.size]), count_share, random_state=source)[0])
    step = largest / _STEPS
    total = bounded_sum(squares, 0, largest, sum_share, resolution=step, random_state=source)
    # Each within its reach with probability 1 - (1 - level) / 2.
    side = (1 + covers.level) / 2
    count_reach = discrete_laplace_quantile(side, count_share)
    fewest, most = max(n_rows - count_reach, 1), max(n_rows + count_reach, 1)
    # The grid of the sum moves each row by at most half a step.
    unit = float(step)
    reach = (discrete_laplace_quantile(side, sum_share, _STEPS) + most / 2) * unit
    worst = float(largest)
    value = min(max(total / max(n_rows, 1), 0.0), worst)
    spread = math.hypot(
        math.sqrt(discrete_laplace_variance(sum_share, _STEPS)) * unit,
        value * math.sqrt(discrete_laplace_variance(count_share)),
    ) / max(n_rows, 1)
    found = QueryResult(
        value,
        spread,
        min(max((total - reach) / most, 0.0), worst),
        min(max((total + reach) / fewest, 0.0), worst),
        f"covers the exact mean on these rows with probability at least {covers.level:g}; how far "
        "these rows stand for others is not in it",
    )
    # Errors as if they were normal: the fourth moment is three squares of the second.
    sampling = value * math.sqrt(2.0 / max(n_rows, 1))
    return with_sampling(found, covers, sampling, (0.0, worst))


def squared_scores(truth: Labels, guess: Labels, bounds: Bounds) -> tuple[IntArray, int]:
    """Minus the squared error of each row as an integer, and the range of these integers."""
    low, high = (float(end) for end in bounds)
    # Each row is rounded to the grid by itself: sums are those of integers.
    unit = (high - low) ** 2 / _STEPS
    return -np.rint(squared_errors(truth, guess, low, high) / unit).astype(np.int64), _STEPS
