"""Splitting, scoring and choosing, so that no exact number about a record leaves."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import BaseCrossValidator, ParameterGrid
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from ._base import HidesSeed, PrivateEstimator, Published, ShowsPrivacy, as_seed
from ._pipelines import (
    LEAKS,
    PRIVATE,
    RELEASE,
    Step,
    child,
    ledgers,
    price,
    replaced,
    walk,
    walk_all,
)
from ._random import noise_source
from ._validation import as_epsilon, as_fraction
from .accounting import PrivacyLedger, PrivacyLoss, charge, prepaid, same_budget, settle
from .exceptions import BudgetExceededError, TrainingError
from .mechanisms import (
    bounded_sum,
    discrete_laplace,
    discrete_laplace_quantile,
    discrete_laplace_variance,
    noisy_max,
)
from .release import QueryResult
from .rows import as_column, as_frame, as_labels, column_names, object_array, row_taker, take_rows

__all__ = [
    "PrivateGridSearchCV",
    "PrivateKFold",
    "make_private_scorer",
    "private_accuracy",
    "private_confusion_matrix",
    "private_cross_val_score",
    "private_mse",
]

# Squared errors are summed on a grid of this many steps from 0 to the largest.
_STEPS = 2**20
# Ranges of a target whose squares, and sums of many of them, are ordinary floats.
_NARROWEST, _WIDEST = Fraction(1, 10**100), Fraction(10**100)
# Rows of every table that a model is given to predict.
_TABLE = 1024


# --- scores


def _charge(name, epsilon, ledger, random_state):
    """Charge one score, before a value is read."""
    exact = as_epsilon(epsilon)
    source = noise_source(random_state)
    charge(ledger, name, PrivacyLoss(exact, seeded=source.seeded))
    return exact, source


def _aligned(y_true, y_pred):
    """Both as one-dimensional arrays; only their containers are looked at."""
    truth, guess = as_labels(y_true, "y_true"), as_labels(y_pred, "y_pred")
    if len(truth) != len(guess):
        raise ValueError(
            "y_true and y_pred must be one-dimensional and of the same length, got the shapes "
            f"{truth.shape} and {guess.shape}."
        )
    return truth, guess


def _level(level):
    if not 0 < float(level) < 1:
        raise ValueError(f"level must be between 0 and 1, got {level!r}.")
    return float(level)


def _range(bounds):
    """Both ends of the public range of a target, exactly."""
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


def private_accuracy(y_true, y_pred, *, epsilon, level=0.95, ledger=None, random_state=None):
    """Release the share of correct predictions.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        True and predicted labels. ``y_pred`` must come from a model that is a release itself or
        was trained without these rows: what a prediction tells about *other* records is not
        covered here. Each row counts by itself: values that cannot be compared, and entries of
        a list that hold several values, are a wrong answer.
    epsilon : number or Fraction
        Privacy parameter of the score.
    level : float, default=0.95
        Probability that the interval covers.
    ledger : PrivacyLedger, default=None
        Charged before a label is read.
    random_state : None or int, default=None
        None: the operating system's entropy. An int is for experiments and protects nobody.

    Returns
    -------
    QueryResult
        ``float(result)`` is the accuracy, between 0 and 1; with a standard deviation and an
        interval for the exact accuracy on these rows.

    Raises
    ------
    ValueError
        If the lengths differ, or ``epsilon`` or ``level`` is out of range; nothing is spent.
    BudgetExceededError
        If the ledger cannot pay.

    Notes
    -----
    The number of rows is private too and costs nothing extra: released are the noisy numbers of
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
    level = _level(level)
    exact, source = _charge("private_accuracy", epsilon, ledger, random_state)
    return _accuracy(truth, guess, exact, source, level)


def _accuracy(truth, guess, exact, source, level, bounds=None):
    # Privacy. Released are two counts, of correct and of wrong rows. One record is in exactly one
    # of them: together they have L1 sensitivity 1 and cost epsilon, noise on both. The share and
    # its interval are computed from these two numbers and the public law of the noise.
    right = _equal(truth, guess)
    counts = np.array([right.sum(), right.size - right.sum()], dtype=np.int64)
    correct, wrong = discrete_laplace(counts, exact, random_state=source).tolist()
    # Each of the two counts is within `reach` with probability 1 - (1 - level) / 2.
    reach = discrete_laplace_quantile((1 + level) / 2, exact)
    return _share(correct, wrong, reach, discrete_laplace_variance(exact), level)


def _equal(truth, guess):
    """Row by row; what cannot be compared differs, and NaN differs from everything."""
    if truth.dtype == guess.dtype and truth.dtype.kind in "biufUS":
        return truth == guess
    pairs = zip(truth.tolist(), guess.tolist(), strict=True)
    with _quietly():
        return np.fromiter((_same(a, b) for a, b in pairs), bool, truth.size)


def _same(a, b):
    try:
        return bool(a == b)
    except Exception:  # a label with an odd __eq__ must not raise: that would depend on a value
        return False


@contextmanager
def _quietly():
    """Suppress warnings, and errors made from them: both would depend on a value."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _share(part, rest, reach, variance, level):
    """The share part / (part + rest) of two noisy counts."""
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


def private_confusion_matrix(y_true, y_pred, *, labels, epsilon, ledger=None, random_state=None):
    """Release how often each label was taken for each.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        As in `private_accuracy`. Rows with a label that is not declared are skipped.
    labels : array-like of shape (n_labels,)
        The public list of labels.
    epsilon : number or Fraction
    ledger : PrivacyLedger, default=None
    random_state : None or int, default=None

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
    exact, source = _charge("private_confusion_matrix", epsilon, ledger, random_state)
    # Privacy. Released is a histogram over a public list of cells, empty ones included; one record
    # is in at most one cell: L1 sensitivity 1, noise of rate epsilon on every cell.
    size = len(names)
    row, column = (_positions(values, positions) for values in (truth, guess))
    known = (row >= 0) & (column >= 0)
    counts = np.bincount((row * size + column)[known], minlength=size * size)
    noisy = discrete_laplace(counts, exact, random_state=source).reshape(size, size)
    table = pd.DataFrame(noisy, index=names.rename("true"), columns=names.rename("predicted"))
    table.attrs["std"] = math.sqrt(discrete_laplace_variance(exact))
    return table


def _positions(values, positions):
    """Place of each value, found by itself; -1 for what has none."""

    def place(value):
        try:
            return positions.get(value, -1)
        except Exception:  # an unhashable label must not raise: that would depend on a value
            return -1

    return np.fromiter(map(place, values.tolist()), np.int64, values.size)


def private_mse(y_true, y_pred, *, bounds, epsilon, level=0.95, ledger=None, random_state=None):
    """Release the mean squared error.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        As in `private_accuracy`; numbers. Both are clipped to the bounds; a value that is missing
        or not a number counts as the largest error.
    bounds : (low, high)
        Public range of the target. The noise grows with the square of its width, so do not make it
        wider than needed. Both ends lie between -1e100 and 1e100.
    epsilon : number or Fraction
        A tenth goes to the number of rows, the rest to the sum of squares.
    level : float, default=0.95
    ledger : PrivacyLedger, default=None
    random_state : None or int, default=None

    Returns
    -------
    QueryResult
        In squared units of ``y``; the interval is for the exact value on these rows.

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
    level = _level(level)
    bounds = _range(bounds)
    exact, source = _charge("private_mse", epsilon, ledger, random_state)
    return _mse(truth, guess, exact, source, level, bounds)


def _mse(truth, guess, exact, source, level, bounds):
    low, high = bounds
    # Privacy. Two releases in sequence: the number of rows (sensitivity 1) at epsilon/10, and the
    # sum of squared errors, each clipped to [0, (high - low)^2] by itself, at the rest.
    count_share, sum_share = exact / 10, exact * 9 / 10
    largest = (high - low) ** 2
    squares = _squared_errors(truth, guess, float(low), float(high))
    n_rows = int(discrete_laplace(np.array([truth.size]), count_share, random_state=source)[0])
    step = largest / _STEPS
    total = bounded_sum(squares, 0, largest, sum_share, resolution=step, random_state=source)
    # Each within its reach with probability 1 - (1 - level) / 2.
    side = (1 + level) / 2
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
    return QueryResult(
        value,
        spread,
        min(max((total - reach) / most, 0.0), worst),
        min(max((total + reach) / fewest, 0.0), worst),
        f"covers the exact mean on these rows with probability at least {level:g}; how far these "
        "rows stand for others is not in it",
    )


def _squared_errors(truth, guess, low, high):
    """One number per row; a row that holds no number counts as the largest error."""
    numbers = [np.clip(as_column(y, "y").numbers(), low, high) for y in (truth, guess)]
    squares = (numbers[0] - numbers[1]) ** 2
    return np.where(np.isnan(squares), (high - low) ** 2, squares)


_METRICS = {"accuracy": _accuracy, "mse": _mse}


# --- predictions of true rows


def _places(n_rows):
    """A position in a table of predictions for each row, drawn independently."""
    return noise_source().record_below(_TABLE, n_rows)


def _predictions(model, take, rows, places):
    """What ``model`` predicts for each row, NaN for a row that it cannot predict.

    Parameters
    ----------
    model : fitted estimator
    take : callable (positions) -> table
        Rows by position, as `row_taker` gives it.
    rows : ndarray of int
        Positions of the rows to predict.
    places : ndarray of int
        From `_places`, for these rows.

    Returns
    -------
    ndarray of objects of shape (n_rows,)
    """
    # Privacy. Whether and what a row is answered may not depend on the other rows, not by one ulp
    # of a sum, for then one record would change the scores of several. So every table that is
    # predicted has the same number of rows, and each row a place in it that is drawn for this row
    # alone: the arithmetic on it is the same whoever stands in the other places. A table that
    # fails is divided, the free places being filled by rows of its part, until each row that fails
    # stands alone, with copies of itself: its neighbours are then asked again in their old places.
    # No exception and no warning leaves. Assumed of the model: it treats the rows of a table of
    # this fixed size independently of each other, and repeats itself.
    guesses = np.full(len(rows), np.nan, dtype=object)
    order = np.argsort(places, kind="stable")
    # One row of each place in a table.
    turn = np.arange(len(rows)) - np.searchsorted(places[order], places[order])
    parts = [order[turn == number] for number in range(turn.max(initial=-1) + 1)]
    while parts:
        part = parts.pop()
        table = np.full(_TABLE, rows[part[0]])
        table[places[part]] = rows[part]
        answers = _answers(model, take, table)
        if answers is not None:
            guesses[part] = answers[places[part]]
        elif len(part) > 1:
            parts += [part[: len(part) // 2], part[len(part) // 2 :]]
    return guesses


def _answers(model, take, table):
    """One prediction for each row of a table; None if there are none."""
    with _quietly():
        try:
            answers = as_labels(model.predict(take(table)))
            return object_array(answers.tolist()) if len(answers) == len(table) else None
        except Exception:  # its text may hold values, and that it was raised depends on them
            return None


def _check_model(model, X):
    """Refuse, by names and shapes alone, a model that could predict no row of ``X``."""
    if not hasattr(model, "predict"):
        raise TypeError(f"{type(model).__name__} has no predict, so that nothing can be scored.")
    if type(model).__module__.partition(".")[0] in ("skdp", "sklearn"):
        check_is_fitted(model)
    given = column_names(X)
    names = getattr(model, "feature_names_in_", None)
    if names is not None and given is not None:
        missing = [name for name in names if name not in given]
        if missing:
            raise ValueError(f"X lacks columns that the model was fitted to: {missing[:8]}.")
    width, shape = getattr(model, "n_features_in_", None), getattr(X, "shape", ())
    if given is None and width is not None and len(shape) == 2 and shape[1] != width:
        raise ValueError(
            f"X has {shape[1]} features, but {type(model).__name__} was fitted to {width}."
        )


def _check_length(n_rows, labels):
    if n_rows != len(labels):
        raise ValueError(f"X has {n_rows} rows, but y has {len(labels)} labels.")


class _PrivateScorer:
    """Callable ``scorer(estimator, X, y)``; scikit-learn's searches take it as ``scoring=``."""

    def __init__(self, metric, epsilon, options):
        self.metric = metric
        self.epsilon = epsilon
        self.options = options

    @property
    def _score_epsilon(self):
        return as_epsilon(self.epsilon)

    def __call__(self, estimator, X, y):
        _check_model(estimator, X)
        truth = as_labels(y)
        n_rows, take = row_taker(X)
        _check_length(n_rows, truth)
        bounds = self.options.get("bounds")
        bounds = None if bounds is None else _range(bounds)
        name = f"private_{self.metric}"
        exact, source = _charge(name, self.epsilon, self.options["ledger"], None)
        guess = _predictions(estimator, take, np.arange(n_rows), _places(n_rows))
        score = float(_METRICS[self.metric](truth, guess, exact, source, 0.95, bounds))
        return -score if self.metric == "mse" else score

    def __repr__(self):
        return f"make_private_scorer({self.metric!r}, epsilon={self.epsilon})"


def make_private_scorer(metric="accuracy", *, epsilon, bounds=None, ledger=None):
    """Make a scorer whose every call releases one private number and is charged.

    Parameters
    ----------
    metric : {"accuracy", "mse"}, default="accuracy"
        "mse" is negated, as scikit-learn wants of losses.
    epsilon : number or Fraction
        Of each call: k folds cost k times as much as one, m candidates m times.
    bounds : (low, high), default=None
        Of the target, for "mse".
    ledger : PrivacyLedger, default=None

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
    of ``predict``, because either would reveal something about a value. A row counts as wrong (for
    "mse" as the largest error) if predicting it raises, or does not give exactly one value: NaN, a
    list, an array of several. An infinite number is clipped to the bounds of "mse".

    A row that fails does not change the score of another row. Rows are predicted in tables of 1,024
    rows. The position of each row is drawn independently, and free positions hold copies; a table
    that fails is split until the failing rows are isolated. *Assumption*: in tables of this size
    the estimator predicts each row independently of the others, and equal rows equally. For a
    ``predict`` that uses the whole table (ranks it, standardises it by its own mean, draws at
    random) there is no guarantee. An index of pandas is not passed on. Each failing row takes about
    ten extra predictions.

    Examples
    --------
    >>> from skdp import make_private_scorer
    >>> make_private_scorer("accuracy", epsilon=0.1)
    make_private_scorer('accuracy', epsilon=0.1)
    """
    _check_metric(metric, bounds)
    as_epsilon(epsilon)
    options = {"ledger": ledger} if bounds is None else {"ledger": ledger, "bounds": bounds}
    return _PrivateScorer(metric, epsilon, options)


def _check_metric(metric, bounds):
    if metric not in _METRICS:
        raise ValueError(f"The metric must be one of {sorted(_METRICS)}, got {metric!r}.")
    if (metric == "mse") != (bounds is not None):
        raise ValueError(
            "The metric 'mse' needs bounds=(low, high), the public range of the target."
            if metric == "mse"
            else f"bounds= belongs to the metric 'mse', not to {metric!r}."
        )
    if bounds is not None:
        _range(bounds)


# --- folds


class PrivateKFold(HidesSeed, BaseCrossValidator):
    """K folds in which every record's fold is drawn by itself and kept secret.

    Parameters
    ----------
    n_splits : int, default=5
        At least 2.
    random_state : None or int, default=None
        None: the operating system's entropy. An int is for experiments: whoever knows it knows
        the fold of every record.

    Notes
    -----
    An ordinary splitter divides the rows by position: one record more moves others from fold to
    fold, and the sum of the folds' epsilon says nothing about all of them together. Here the fold
    of a record does not depend on any other record. Given everybody else's folds, a record is in
    k - 1 of the k training sets, whichever fold it drew: publishing all k models costs (k - 1)
    epsilon. `private_cross_val_score` charges that. A ledger that sees the k fits one by one, in
    ``cross_val_score``, charges all k: more than is needed, never less.

    Folds differ in size, and in a tiny data set one may be empty.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import PrivateKFold
    >>> folds = PrivateKFold(3)
    >>> sum(len(test) for _, test in folds.split(np.zeros((10, 2))))
    10
    """

    def __init__(self, n_splits=5, *, random_state=None):
        self.n_splits = n_splits
        self.random_state = random_state

    def _draw(self, n_rows):
        """Fold of each row."""
        return noise_source(self.random_state).record_below(self.get_n_splits(), n_rows)

    def _iter_test_masks(self, X=None, y=None, groups=None):
        folds = self._draw(as_frame(X).n_rows)
        for fold in range(self.get_n_splits()):
            yield folds == fold

    def split(self, X, y=None, groups=None):
        """Draw the folds anew and give each in turn as the test set.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y, groups : ignored

        Yields
        ------
        train, test : ndarray of int
            Positions of rows. They are as secret as the rows.
        """
        rows = np.arange(as_frame(X).n_rows)
        for test in self._iter_test_masks(X):
            yield rows[~test], rows[test]

    # Read by privacy_report.
    _secret_folds = True

    def get_n_splits(self, X=None, y=None, groups=None):
        """Give the number of folds."""
        n_splits = self.n_splits
        if not isinstance(n_splits, int | np.integer) or isinstance(n_splits, bool) or n_splits < 2:
            raise ValueError(f"n_splits must be an integer of at least 2, got {n_splits!r}.")
        return int(n_splits)


def _per_fit(estimator):
    """Epsilon of one fit, or an error where it is not private or has no known price."""
    steps = walk(estimator)
    bad = [step for step in steps if not step.sound]
    seeded_only = all(step.seeded for step in bad)
    if bad and not seeded_only:
        step = bad[0]
        raise ValueError(
            f"{step.name or step.kind} is not private: {step.kind} {step.why} {step.remedy}"
        )
    if any(getattr(step.estimator, "unit", None) is not None for step in steps):
        raise ValueError(
            "Folds and scores are drawn and protected row by row, but unit= makes the person the "
            "unit of privacy. Choose on synthetic rows, which is free, or leave out unit=."
        )
    total = sum((step.epsilon for step in steps), Fraction(0))
    # A frozen release is private and was paid for.
    if not total and not any(step.verdict == PRIVATE for step in steps):
        raise ValueError(f"{type(estimator).__name__} has no private step: nothing protects X.")
    return total, bool(bad)


# Less than any fit costs.
_NOTHING = Fraction(1, 2**100)


def _rehearse(estimator, X, y):
    """Let a fit raise what it raises before its charge: errors of the schema and of parameters.

    Nothing is read, since no fit of ours reads before it charges, and the ledger refuses. Pipelines
    are left out, whose first steps read before a later one charges.
    """
    if not isinstance(estimator, PrivateEstimator) and not hasattr(estimator, "_train_on"):
        return
    twin = clone(estimator)
    empty = PrivacyLedger(_NOTHING)
    params = twin.get_params(deep=True)
    twin.set_params(**{key: empty for key in params if key.rpartition("__")[2] == "ledger"})
    with warnings.catch_warnings():
        # The fit itself will give them.
        warnings.simplefilter("ignore")
        try:
            twin.fit(X, y)
        except BudgetExceededError:
            pass


def _one_ledger(estimators, ledger):
    """The ledger to charge: all of a search reads one data set.

    Candidates count, too: a ledger in a grid is one that a fit would charge.
    """
    found = [] if ledger is None else [ledger]
    for one in _ledgers_in(list(estimators)):
        if not any(same_budget(one, other) for other in found):
            found.append(one)
    if len(found) > 1:
        raise ValueError(
            f"{len(found)} ledgers are in play, but all that is read is one data set: give the "
            f"same ledger everywhere, in the grid too. Found: {', '.join(map(repr, found))}."
        )
    return found[0] if found else None


def _ledgers_in(value):
    """All ledgers in a parameter or an estimator: also in grids and scorers of searches."""
    if isinstance(value, PrivacyLedger):
        yield value
    elif isinstance(value, _PrivateScorer):
        yield from _ledgers_in(value.options)
    elif isinstance(value, Mapping):
        yield from _ledgers_in(list(value.values()))
    elif isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype == "O"):
        for one in value:
            yield from _ledgers_in(one)
    elif hasattr(value, "get_params") and not isinstance(value, type | FrozenEstimator):
        yield from _ledgers_in(value.get_params(deep=False))


@contextmanager
def _prepaid(estimators, book, epsilon):
    """Clones of ``estimators`` whose fits charge a handle on ``book`` that is paid up to epsilon.

    They keep a ledger, so that fitting one of them again, after the search or an error in its
    midst, is charged. Private steps without one get it too, as the search has been charged for
    them.
    """
    twins = [clone(estimator) for estimator in estimators]
    if book is None:
        yield twins
        return
    handle = prepaid(book, epsilon)
    for twin in twins:
        twin.set_params(**dict.fromkeys(ledgers(twin), handle))
        for step in walk(twin):
            # A frozen release is the caller's own object, and not fitted again.
            frozen = hasattr(step.estimator, "privacy_loss_")
            bare = getattr(step.estimator, "ledger", handle) is None
            if step.verdict == PRIVATE and bare and not frozen:
                step.estimator.set_params(ledger=handle)
    try:
        yield twins
    finally:
        settle(handle)


def private_cross_val_score(
    estimator,
    X,
    y,
    *,
    epsilon,
    metric="accuracy",
    bounds=None,
    cv=5,
    level=0.95,
    ledger=None,
    random_state=None,
):
    """Release how good an estimator's predictions are for rows it was not fitted to.

    Parameters
    ----------
    estimator : private estimator
        For example a `PrivateClassifier`, or a pipeline whose every step is private.
    X : array-like or frame of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
    epsilon : number or Fraction
        Of the score. The fits cost (k - 1) times the estimator's own epsilon besides.
    metric : {"accuracy", "mse"}, default="accuracy"
    bounds : (low, high), default=None
        Of the target, for "mse".
    cv : int or PrivateKFold, default=5
        Number of folds, drawn by `PrivateKFold`.
    level : float, default=0.95
    ledger : PrivacyLedger, default=None
        Default the one in the estimator. It is charged once, for everything, before a value is
        read.
    random_state : None or int, default=None

    Returns
    -------
    QueryResult
        Score of all folds together. Each row is predicted by the model that was not trained on it,
        in the guard that `make_private_scorer` describes: a row that cannot be predicted counts as
        wrong.

    Raises
    ------
    ValueError
        If a step of the estimator is not private, the folds are not those of `PrivateKFold`, or
        two ledgers are in play; nothing is spent.
    BudgetExceededError
        If the ledger cannot pay for all.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skdp import Numeric, PairViewSynthesizer, PrivateClassifier, private_cross_val_score
    >>> X = np.repeat([[0.2, 0.3], [0.8, 0.7]], 5_000, axis=0)
    >>> y = np.repeat(["low", "high"], 5_000)
    >>> release = PairViewSynthesizer(epsilon=2.0, domain=Numeric(0, 1, bins=4))
    >>> model = PrivateClassifier(DecisionTreeClassifier(), release, classes=["low", "high"])
    >>> score = private_cross_val_score(model, X, y, epsilon=0.5, cv=3)
    >>> float(score) > 0.9
    True
    """
    _check_metric(metric, bounds)
    _level(level)
    exact = as_epsilon(epsilon)
    # A subclass may give a record to any number of folds.
    folds = cv if type(cv) is PrivateKFold and not replaced(cv) else None
    if folds is None:
        if not isinstance(cv, int | np.integer) or isinstance(cv, bool):
            raise ValueError(
                f"cv must be a number of folds or a PrivateKFold, got {cv!r}: other splitters "
                "divide by position, and one record would move others."
            )
        folds = PrivateKFold(int(cv))
    k = folds.get_n_splits()
    per_fit, seeded_fits = _per_fit(estimator)
    book = _one_ledger([estimator], ledger)
    labels = as_labels(y)
    as_frame(X)
    n_rows, take = row_taker(X)
    _check_length(n_rows, labels)
    _rehearse(estimator, X, labels)
    source = noise_source(random_state)
    seeded = source.seeded or seeded_fits or folds.random_state is not None
    # Privacy. Folds are independent of each other record (PrivateKFold). A record that drew fold
    # j changes the k - 1 other models, each at the estimator's epsilon, and of the score only the
    # row of its own fold: the score of all rows together costs `epsilon` once. Mixing over j
    # changes nothing. Total: (k - 1) * epsilon of a fit + epsilon of the score.
    parts = {"fits": (k - 1) * per_fit, "score": exact}
    loss = PrivacyLoss(sum(parts.values()), parts, seeded=seeded)
    charge(book, "private_cross_val_score", loss)
    # That pays for all k fits.
    guesses, places = np.full(n_rows, np.nan, dtype=object), _places(n_rows)
    with _prepaid([estimator], book, k * per_fit) as (paid,):
        for train, test in folds.split(X):
            try:
                model = clone(paid).fit(take_rows(X, train), labels[train])
            except TrainingError as error:
                # It depends on the release of this fold alone, as its text does.
                warnings.warn(f"{error} The rows of this fold count as wrong.", stacklevel=2)
                continue
            guesses[test] = _predictions(model, take, test, places[test])
    return _METRICS[metric](
        labels, guesses, exact, source, level, None if bounds is None else _range(bounds)
    )


# --- choosing


def _offers(method):
    def check(self):
        fitted = getattr(self, "best_estimator_", self.estimator)
        return hasattr(fitted, method)

    return check


class PrivateGridSearchCV(Published, HidesSeed, ShowsPrivacy, MetaEstimatorMixin, BaseEstimator):
    """Choose among candidates by one noisy maximum, whatever their number.

    Every candidate is fitted; the number of true rows that each predicts correctly (or the sum of
    its squared errors) is compared through noise, and only the winner is released. The choice
    costs ``epsilon`` in all, not per candidate.

    Parameters
    ----------
    estimator : private estimator
        Typically ``PrivateClassifier(classifier, synthesizer)``.
    param_grid : dict or list of dict
        As in scikit-learn's ``GridSearchCV``. Where it changes only the inner ``estimator`` of a
        `PrivateClassifier` or `PrivateRegressor`, all candidates are trained on one release,
        which is paid for once. Otherwise every candidate's own fit is paid for.
    epsilon : number or Fraction, default=0.1
        Of the choice. The fits cost their own epsilon besides.
    metric : {"accuracy", "mse"}, default="accuracy"
    bounds : (low, high), default=None
        Public range of the target, for "mse".
    ledger : PrivacyLedger, default=None
        Default the one in the estimator, or in ``param_grid``; there may be only one. It is charged
        once, for the whole search, before a value is read. The winner keeps it: fitting
        ``best_estimator_`` again is charged.
    random_state : None or int, default=None
        None: the operating system's entropy. An int is for experiments and protects nobody.
    verbose : int, default=0
        Progress to standard output.

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
    No score is released; if you need one, score the winner with `private_accuracy`. True rows are
    predicted in the guard that `make_private_scorer` describes, under the same assumption: a row
    that a candidate cannot predict counts as wrong.

    Candidates are trained on a few rows drawn from the public domain before anything is charged. A
    candidate that still cannot be trained on its release is left out, with a warning.

    The rows that train the release also choose the winner. That is sound (the two costs add up),
    and candidates cannot fit the true rows more closely than the release lets them.

    Little epsilon is enough: the noise is about ``1 / epsilon`` rows. Choosing on synthetic rows is
    free, and by what was measured in the user guide worse by up to two points of accuracy.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skdp import Numeric, PairViewSynthesizer, PrivateClassifier, PrivateGridSearchCV
    >>> X = np.repeat([[0.2, 0.3], [0.8, 0.7]], 5_000, axis=0)
    >>> y = np.repeat(["low", "high"], 5_000)
    >>> release = PairViewSynthesizer(epsilon=2.0, domain=Numeric(0, 1, bins=4))
    >>> model = PrivateClassifier(DecisionTreeClassifier(), release, classes=["low", "high"])
    >>> search = PrivateGridSearchCV(model, {"estimator__max_depth": [1, 2, 3]}, epsilon=0.5)
    >>> search.fit(X, y).predict([[0.8, 0.7]]).tolist()
    ['high']
    >>> float(search.privacy_loss_.epsilon)
    2.5
    """

    def __init__(
        self,
        estimator,
        param_grid,
        *,
        epsilon=0.1,
        metric="accuracy",
        bounds=None,
        ledger=None,
        random_state=None,
        verbose=0,
    ):
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.metric = metric
        self.bounds = bounds
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y):
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
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        _check_metric(self.metric, self.bounds)
        choice = as_epsilon(self.epsilon)
        candidates = list(ParameterGrid(self.param_grid))
        variants = [clone(self.estimator).set_params(**params) for params in candidates]
        shared = self._shares_a_release()
        # Each is looked at: what is trained on one release may bring along what others learned.
        prices = [_per_fit(variant) for variant in variants][: 1 if shared else None]
        book = _one_ledger([self.estimator, *variants], self.ledger)
        labels = as_labels(y)
        as_frame(X)
        n_rows, take = row_taker(X)
        _check_length(n_rows, labels)
        for variant in variants:
            _rehearse(variant, X, y)
        source = noise_source(self.random_state)
        parts = {"fits": sum((price for price, _ in prices), Fraction(0)), "choice": choice}
        loss = PrivacyLoss(
            sum(parts.values()),
            parts,
            seeded=source.seeded or any(seeded for _, seeded in prices),
        )
        # Privacy. The fits are releases and cost what they cost, in sequence; candidates that are
        # trained on one release are post-processing of it. Given them, one record adds to every
        # candidate's score a number of [0, 1] (right or wrong), or of [0, largest] on the grid of
        # squared errors: all scores move in the same direction by at most the range R, and the
        # noisy maximum at `choice` costs `choice`, whatever the number of candidates.
        charge(book, type(self).__name__, loss)
        with _prepaid(variants, book, parts["fits"]) as variants:
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

    def _shares_a_release(self):
        """Whether the candidates differ only in what is trained on the release."""
        grids = self.param_grid if isinstance(self.param_grid, list) else [self.param_grid]
        if not all(isinstance(grid, Mapping) for grid in grids):
            raise TypeError("param_grid must be a dict of lists, or a list of such dicts.")
        inner = hasattr(self.estimator, "_train_on") and all(
            key == "estimator" or key.startswith("estimator__") for grid in grids for key in grid
        )
        return inner

    def _fit_candidates(self, variants, X, y, shared):
        """The fitted candidates; None for one that could not be trained on its release."""
        fitted, made, failure = [], None, None
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
        if all(one is None for one in fitted):
            raise failure
        return fitted

    def _choose(self, fitted, take, labels, epsilon, source):
        everyone, places = np.arange(len(labels)), _places(len(labels))
        guesses = [_predictions(model, take, everyone, places) for model in fitted]
        if self.metric == "accuracy":
            scores = [int(_equal(labels, guess).sum()) for guess in guesses]
            return int(noisy_max(scores, epsilon, 1, random_state=source))
        low, high = (float(bound) for bound in _range(self.bounds))
        # Each row is rounded to the grid by itself: integer sums.
        unit = (high - low) ** 2 / _STEPS
        scores = [
            -int(np.rint(_squared_errors(labels, guess, low, high) / unit).astype(np.int64).sum())
            for guess in guesses
        ]
        return int(noisy_max(scores, epsilon, _STEPS, random_state=source))

    @available_if(_offers("predict"))
    def predict(self, X):
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
    def predict_proba(self, X):
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
    def score(self, X, y):
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
    def classes_(self):
        """The declared labels, of the winner."""
        return self.best_estimator_.classes_

    def _was_seeded(self):
        loss = getattr(self, "privacy_loss_", None)
        return loss is not None and loss.seeded

    def _privacy_steps(self, name, rows):
        candidates = list(ParameterGrid(self.param_grid))
        variants = [clone(self.estimator).set_params(**params) for params in candidates]
        shared = self._shares_a_release()
        steps = walk_all(variants, child(name, "estimator"), rows, shared=shared)
        own = Step(
            name,
            type(self).__name__,
            "a release" if rows.released else "raw rows and labels",
            PRIVATE,
            f"chooses among {len(candidates):,} candidates by one noisy maximum.",
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
                why="its choice comes from a seed: who knows or guesses it takes the noise off.",
                remedy="random_state=None, the operating system's entropy.",
                seeded=True,
            )
        return [*steps, own]

    def _price(self):
        return price(self)

    # Grid and winner may hold ledgers and seeds, as values or within estimators.
    _repeats = ("best_params_",)

    def __setattr__(self, name, value):
        if name == "param_grid":
            value = self._hide_seeds(value)
        super().__setattr__(name, value)

    def _hide_seeds(self, grid):
        """The grid itself, or one with `Seed` for seeds of noise: those of the models are harmless.

        A grid that needs no change stays the same object, as clone() demands of parameters.
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

    def _draws_noise(self, key):
        parent, _, name = str(key).rpartition("__")
        if name != "random_state":
            return False
        owner = self.estimator.get_params(deep=True).get(parent) if parent else self.estimator
        return owner is None or isinstance(owner, HidesSeed)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.target_tags = inner.target_tags
        tags.input_tags = inner.input_tags
        tags.non_deterministic = True
        return tags
