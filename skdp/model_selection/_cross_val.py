"""Cross-validation that charges k - 1 fits and one score, over folds that are kept secret."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import BaseCrossValidator

from .._keys import positions_of as places_of
from .._random import (
    copied,
    noise_source,
    shared_generators,
    shared_generators_kept,
    warn_after_charge,
)
from .._validation import IntArray, as_integer
from ..accounting import PrivacyLedger, PrivacyLoss, charge, prepaid, same_budget, settle
from ..base import HidesSeed, PrivateEstimator, composed, epsilon_of_row
from ..exceptions import BudgetExceededError, TrainingError
from ..inspection import LEAKS, PRIVATE, ledgers, price, walk
from ..release import QueryResult
from ..tables import as_frame, take_rows
from ._metrics import (
    Labels,
    Metric,
    Scored,
    Take,
    answers_of,
    as_metric,
    classes_of,
    draw_places,
    no_answers,
    true_rows,
)

# --- what a search or a cross-validation costs, and one ledger that pays for all of its fits


def price_of_fit(estimator: Any) -> tuple[Fraction, bool]:
    """Epsilon of one fit, and whether its noise is seeded.

    Raises
    ------
    ValueError
        If a step is not private, or protects a person instead of a row, or no step is private, or
        the price is not known.
    """
    steps = walk(estimator)
    # A seed is for experiments: what it draws is marked as such, and not refused.
    wrong = next((step for step in steps if not step.sound and step.verdict != LEAKS), None)
    if wrong is not None:
        raise ValueError(
            f"{wrong.name or wrong.kind} is not private: {wrong.kind} {wrong.why} {wrong.remedy}"
        )
    if any(getattr(step.estimator, "privacy_id", None) is not None for step in steps):
        raise ValueError(
            "Folds and scores are drawn and protected row by row, but privacy_id= makes the person "
            "the unit of privacy. Choose on synthetic rows, which is free; or make one row of each "
            "person; or, without it, count epsilon times the most rows of a person."
        )
    total = price(steps)
    if total is None:
        raise ValueError(
            f"What a fit of {type(estimator).__name__} spends is not known beforehand."
        )
    # A frozen release is private and was paid for.
    if not total and not any(step.verdict == PRIVATE for step in steps):
        raise ValueError(f"{type(estimator).__name__} has no private step: nothing protects X.")
    return total, any(step.verdict == LEAKS for step in steps)


# Less than any fit costs.
_NOTHING = Fraction(1, 2**100)


def rehearse(estimator: Any, X: Any, y: Any) -> None:
    """Raise the errors that a fit would raise before its charge: about schema and parameters.

    No row is read: fits of skdp charge before they read, and the ledger here is empty. Pipelines
    are left out, because their first steps read before a later one charges.
    """
    if not isinstance(estimator, PrivateEstimator) and not hasattr(estimator, "_train_on"):
        return
    twin = clone(estimator)
    empty = PrivacyLedger(_NOTHING)
    params = twin.get_params(deep=True)
    twin.set_params(**{key: empty for key in params if key.rpartition("__")[2] == "ledger"})
    # The fit itself will warn, so nothing is shown. Warnings that are errors raise here, where they
    # cost nothing.
    with warnings.catch_warnings(record=True), contextlib.suppress(BudgetExceededError):
        twin.fit(X, y)


def budgets_of(estimators: Sequence[Any], ledger: PrivacyLedger | None) -> list[PrivacyLedger]:
    """All ledgers that fits of a search would charge, those in a grid too."""
    found = [] if ledger is None else [ledger]
    for one in _ledgers_in(list(estimators)):
        if not any(same_budget(one, other) for other in found):
            found.append(one)
    return found


def one_ledger(estimators: Sequence[Any], ledger: PrivacyLedger | None) -> PrivacyLedger | None:
    """The ledger to charge; only one is allowed, because all of a search reads one data set."""
    found = budgets_of(estimators, ledger)
    if len(found) > 1:
        raise ValueError(
            f"{len(found)} ledgers were found, but only one data set is read: give the same "
            f"ledger everywhere, in the grid too. Found: {', '.join(map(repr, found))}."
        )
    return found[0] if found else None


def _ledgers_in(value: Any) -> Iterator[PrivacyLedger]:
    """All ledgers in a parameter or an estimator: also in grids of searches."""
    if isinstance(value, PrivacyLedger):
        yield value
    elif isinstance(value, Mapping):
        yield from _ledgers_in(list(value.values()))
    elif isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype == "O"):
        for one in value:
            yield from _ledgers_in(one)
    elif hasattr(value, "get_params") and not isinstance(value, type | FrozenEstimator):
        yield from _ledgers_in(value.get_params(deep=False))


@contextlib.contextmanager
def prepaid_clones(
    estimators: Sequence[Any], book: PrivacyLedger | None, epsilon: Fraction
) -> Iterator[list[Any]]:
    """Clones of ``estimators`` whose fits charge a handle on ``book``, prepaid up to epsilon.

    They keep a ledger, so that fitting one of them again, after the search or after an error during
    it, is charged. Private steps without a ledger get it too, because the search has been charged
    for them.
    """
    twins = [clone(estimator) for estimator in estimators]
    handle = None if book is None else prepaid(book, epsilon)
    for twin in twins:
        twin.set_params(**dict.fromkeys(ledgers(twin), handle))
        for step in walk(twin):
            # A frozen release is the caller's own object, and not fitted again.
            frozen = hasattr(step.estimator, "privacy_loss_")
            bare = getattr(step.estimator, "ledger", "none to set") is None
            if step.verdict == PRIVATE and bare and not frozen:
                step.estimator.set_params(ledger=handle)
    try:
        with composed():
            yield twins
    finally:
        if handle is not None:
            settle(handle)


class PrivateKFold(HidesSeed, BaseCrossValidator):
    """K folds in which every record's fold is drawn independently and kept secret.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    random_state : None or int, default=None
        Seed of the folds. None: the operating system's random source. An int is for experiments
        only: anyone who knows it knows the fold of every record.

    Notes
    -----
    An ordinary splitter divides the rows by position: adding one record moves others from fold to
    fold, and the sum of the folds' epsilon does not bound the loss of all folds together. Here the
    fold of a record does not depend on any other record. Given the folds of all other records, a
    record is in k - 1 of the k training sets, whichever fold it drew: publishing all k models costs
    (k - 1) epsilon. `private_cross_val_score` charges that. A ledger that is charged by the k fits
    one by one, in ``cross_val_score``, is charged for all k: more than is needed, never less.

    Folds differ in size, and in a tiny data set one may be empty.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.model_selection import PrivateKFold
    >>> folds = PrivateKFold(3)
    >>> sum(len(test) for _, test in folds.split(np.zeros((10, 2))))
    10
    >>> train, test = next(folds.split(np.zeros((10, 2))))  # a holdout of about a third
    >>> len(train) + len(test)
    10
    """

    def __init__(self, n_splits: int = 5, *, random_state: int | None = None) -> None:
        self.n_splits = n_splits
        self.random_state = random_state

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Draw new folds, and give each in turn as the test set.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y, groups : ignored

        Yields
        ------
        train, test : ndarray of int
            Positions of rows. They are as secret as the rows.
        """
        n_rows = as_frame(X).n_rows
        folds = noise_source(self.random_state).record_below(self.get_n_splits(), n_rows)
        for fold in range(self.get_n_splits()):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Give the number of folds."""
        return as_integer(self.n_splits, "n_splits", 2)


def private_cross_val_score(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float | Fraction,
    metric: str = "accuracy",
    domain: Any = None,
    cv: int = 5,
    level: float = 0.95,
    ledger: PrivacyLedger | None = None,
    random_state: int | None = None,
) -> QueryResult:
    """Release a cross-validated score: each row is predicted by a model not trained on it.

    Parameters
    ----------
    estimator : private estimator
        For example a `PrivateClassifier`, or a pipeline whose every step is private.
    X : array-like or frame of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
        None with ``metric="nicv"``.
    epsilon : number or Fraction
        Privacy budget of the score. The fits cost (k - 1) times the estimator's own epsilon in
        addition.
    metric : str, default="accuracy"
        Score that is released, by a name of `private_score`. Names that begin with ``neg_``
        give the negated score.
    domain : (low, high) or Numeric, default=None
        Public range of the target; needed for metrics of numbers.
    cv : int, default=5
        Number of folds, drawn by `PrivateKFold`.
    level : float, default=0.95
        Probability that the interval covers the score, as in `private_score`. Sampling is that of
        the rows that are predicted: how much other rows would have changed the models is not in it.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set; by default the ledger in the estimator. It is charged once,
        for everything, before a value is read.
    random_state : None or int, default=None
        Seed of the noise of the score. None: the operating system's random source. An int is for
        experiments only: no guarantee.

    Returns
    -------
    QueryResult
        Score of all folds together.

    Raises
    ------
    ValueError
        If a step of the estimator is not private, or two ledgers are given; nothing is spent.
    BudgetExceededError
        If the ledger cannot pay for all.

    Notes
    -----
    True rows are predicted after the charge, in a guard that catches every error and warning of
    ``predict``, because either would reveal something about a value. A row counts as wrong (in a
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
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skdp import MarginalSynthesizer, Numeric, PrivateClassifier
    >>> from skdp.model_selection import private_cross_val_score
    >>> X = np.repeat([[0.2, 0.3], [0.8, 0.7]], 5_000, axis=0)
    >>> y = np.repeat(["low", "high"], 5_000)
    >>> release = MarginalSynthesizer(epsilon=2.0, domain=Numeric(0, 1, bins=4))
    >>> model = PrivateClassifier(DecisionTreeClassifier(), release, classes=["low", "high"])
    >>> score = private_cross_val_score(model, X, y, epsilon=0.5, cv=3)
    >>> float(score) > 0.9
    True
    """
    asked = as_metric(metric, domain, level)
    exact = epsilon_of_row(epsilon)
    # Of no other class: a subclass may give a record to any number of folds.
    folds = PrivateKFold(cv)
    k = folds.get_n_splits()
    per_fit, seeded_fits = price_of_fit(estimator)
    asked.check_model(estimator)
    book = one_ledger([estimator], ledger)
    assumes = as_frame(X).assumes
    labels, take = true_rows(X, y)
    rehearse(estimator, X, labels)
    copied(estimator, "The estimator")
    source = noise_source(random_state)
    # Privacy. Folds are independent of each other record (PrivateKFold). A record that drew fold
    # j changes the k - 1 other models, each at the estimator's epsilon, and of the score only the
    # row of its own fold: the score of all rows together costs `epsilon` once. Mixing over j
    # changes nothing. Total: (k - 1) * epsilon of a fit + epsilon of the score.
    parts = {"fits": (k - 1) * per_fit, "score": exact}
    seeded = source.seeded or seeded_fits
    loss = PrivacyLoss(sum(parts.values(), Fraction(0)), parts, seeded=seeded, assumes=assumes)
    charge(book, "private_cross_val_score", loss)
    # That pays for all k fits.
    with prepaid_clones([estimator], book, k * per_fit) as (paid,):
        scored, models = _predict_each_fold(folds, paid, X, labels, take, asked)
    return asked.for_models(models).release(scored, exact, source)


def _predict_each_fold(
    folds: PrivateKFold, paid: Any, X: Any, labels: Labels, take: Take, metric: Metric
) -> tuple[Scored, list[Any]]:
    """The prediction for each row by the model that was not trained on it, and the models."""
    places, predicted, failure = draw_places(len(labels)), [], None
    for train, test in folds.split(X):
        model = copied(paid, "The estimator")
        with shared_generators_kept(shared_generators(paid, model)) as seed:
            # Privacy. No fold begins where another has left the generators that they share.
            seed(noise_source().words(4))
            try:
                model.fit(take_rows(X, train), labels[train])
            except TrainingError as error:
                failure = error
                # Whether it is raised, and its text, depend on the release of its fold only.
                warn_after_charge(f"{error} The rows of this fold count as wrong.")
                continue
            found = answers_of(model, metric.method, take, test, places[test])
            predicted.append((test, found, model))
    if failure is not None and metric.needs == "labels" and not predicted:
        raise failure
    models = [model for *_, model in predicted]
    # Declared, and so the same in all folds.
    classes = classes_of(models[-1]) if models else []
    guesses = no_answers(metric.method, len(labels), len(classes))
    for test, found, _ in predicted:
        guesses[test] = found
    return Scored(labels, guesses, places_of(classes)), models
