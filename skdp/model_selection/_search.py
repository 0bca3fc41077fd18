"""A search that compares candidates on true rows with noise and releases only the winner."""

from __future__ import annotations

import contextlib
import copy
import io
import logging
import math
import numbers
import operator
import os
import sys
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
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
from .._foreign import attempt, copied, kept_apart, settings_kept, shared_generators
from .._pipelines import Rows, Step, child, price, walk, walk_all
from .._random import NoiseSource, Tape, noise_source, shared_generators_kept, warn_after_charge
from .._types import FloatArray
from .._validation import as_between, as_epsilon, check_choice
from ..accounting import PrivacyLedger, PrivacyLoss, charge
from ..exceptions import InsecureSeedWarning, TrainingError
from ..mechanisms import discrete_laplace, noisy_max, top_k
from ..rows import as_frame
from ._cross_val import one_ledger, own_step, prepaid_clones, price_of_fit, rehearse
from ._guard import Labels, Take, answers_of, draw_places, true_rows
from ._metrics import Metric, Scored, as_metric, check_rate, class_positions

# --- a secret number of private runs, of which the best is released: its law, and what it costs
#
# Random stopping of Liu and Talwar [1]_ (a geometric number of runs), and the truncated negative
# binomial laws of Papernot and Steinke [2]_, of which the geometric and the logarithmic are two.
#
# References ---------- .. [1] J. Liu, K. Talwar, "Private selection from private candidates", STOC
# 2019. .. [2] N. Papernot, T. Steinke, "Hyperparameter tuning with Renyi differential privacy",
# ICLR 2022.

# Shapes below this have so heavy a tail that few runs are nearly always all there are.
_LEAST_SHAPE = Fraction(-1, 2)
_MOST_RUNS = 1_000


def as_shape(eta: Any) -> Fraction:
    """The shape of the law of the number of runs, exactly."""
    told = "0 is the logarithmic law, 1 the geometric one."
    return as_between(eta, "eta", _LEAST_SHAPE, 1, meaning=told)


def price_of_runs(epsilon: Fraction, eta: Fraction) -> Fraction:
    """What the best of a secret number of runs costs, each of which costs ``epsilon`` alone."""
    # Privacy. Let Q be the law of one run's outcome and f the generating function of the number of
    # runs K. Outcomes are ordered by their noisy scores; with u uniform between Q(better) and
    # Q(better or equal), P(y is released) = Q(y) E f'(1 - u). On a neighbour Q(y) changes by a
    # factor of at most e^epsilon, and so does u. For this law f'(x) is proportional to
    # (g + (1 - g)(1 - x))^-(eta + 1), which changes by at most e^((eta + 1) epsilon). Together:
    # (2 + eta) epsilon, whatever the expected number of runs. K itself must stay secret.
    return (2 + eta) * epsilon


def mean_runs(spread: int, eta: Fraction) -> float:
    """Expected number of runs, where a run is the last with probability 1 / ``spread``."""
    if spread == 1:
        return 1.0
    if eta == 0:
        return (spread - 1) / math.log(spread)
    shape = float(eta)
    return shape * (spread - 1) / (1 - spread**-shape)


def spread_of(runs: Any, eta: Fraction) -> int:
    """The least ``spread`` at which so many runs are expected."""
    known = isinstance(runs, numbers.Real) and not isinstance(runs, bool)
    if not known or not 1 <= float(runs) <= _MOST_RUNS:
        raise ValueError(
            f"runs must be a number between 1 and {_MOST_RUNS:,}, the expected number of runs, "
            f"got {runs!r}."
        )
    spreads = range(1, 1 << 60)
    return spreads[bisect_left(spreads, float(runs), key=lambda spread: mean_runs(spread, eta))]


def draw_runs(spread: int, eta: Fraction, source: NoiseSource) -> int:
    """Draw the secret number of runs, exactly: from uniform integers only.

    P(K = k) is proportional to (1 - 1/spread)^k times (1 + eta)(2 + eta)...(k - 1 + eta) / k!.

    Parameters
    ----------
    spread : int
        A run is the last with probability 1 / ``spread``, before the correction for ``eta``.
    eta : Fraction
        From -1/2 to 1.
    source : NoiseSource
    """
    if isinstance(source, Tape):
        # A tape adds up the losses of all runs that it sees: as many as the price would pay for,
        # if each were released. The mixture over secret numbers of runs costs less than most of
        # its parts, and is tested by its exact law.
        return 1 + source.below(math.floor(2 + eta))
    top, bottom = eta.numerator, eta.denominator
    while True:
        runs = 1
        while source.below(spread):
            # Going on with probability (runs + eta) / (runs + 1), else all over again, turns the
            # geometric law into that of eta.
            if source.below(bottom * (runs + 1)) >= bottom * runs + top:
                break
            runs += 1
        else:
            return runs


@contextlib.contextmanager
def unseen(generators: Iterable[Any] = ()) -> Iterator[Callable[[Iterable[int]], None]]:
    """Nothing that a run prints, logs, warns of or draws gets out: it would tell of the runs.

    Parameters
    ----------
    generators : iterable
        Those that runs share, besides the ones of the process.

    Yields
    ------
    callable
        Seeds all of them.
    """
    before = logging.root.manager.disable
    try:
        logging.disable(logging.CRITICAL)
        with (
            kept_apart(generators) as seed,
            _closed_descriptors(),
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            # Where noise is seeded there is no secret.
            warnings.simplefilter("default", InsecureSeedWarning)
            yield seed
    finally:
        logging.disable(before)


@contextlib.contextmanager
def _closed_descriptors() -> Iterator[None]:
    """Nothing is written to standard output and error: compiled code prints past Python's."""
    kept: list[tuple[int, int]] = []
    for stream in (sys.stdout, sys.stderr):
        # Its buffer holds what was printed before. Windows without a console has no streams.
        if stream is not None:
            attempt(stream.flush, None)
    try:
        with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:
            for descriptor in (1, 2):
                kept.append((descriptor, os.dup(descriptor)))
                os.dup2(nowhere.fileno(), descriptor)
        yield
    finally:
        for descriptor, own in kept:
            os.dup2(own, descriptor)
            os.close(own)


_WHY = {
    "noisy-max": "by {}.",
    "random-stopping": "by the best of a secret number of runs.",
    "halving": "by noisy scores that keep the better half, again and again.",
}


def _offers(method: str) -> Callable[[Any], bool]:
    def check(self: Any) -> bool:
        fitted = getattr(self, "best_estimator_", self.estimator)
        return hasattr(fitted, method)

    return check


class PrivateGridSearchCV(Published, HidesSeed, ShowsPrivacy, MetaEstimatorMixin, BaseEstimator):
    """Search a grid of candidates and release only the winner.

    Candidates are compared by the numbers of true rows that they predict correctly (or the sums of
    their squared errors), with noise. The choice costs ``epsilon`` in total, however many
    candidates there are; what their fits cost depends on the strategy.

    Parameters
    ----------
    estimator : private estimator
        Typically ``PrivateClassifier(classifier, synthesizer)``.
    param_grid : dict or list of dict
        As in scikit-learn's ``GridSearchCV``. Where it changes only the inner ``estimator`` of a
        `PrivateClassifier` or `PrivateRegressor`, all candidates are trained on one release,
        which is paid for once. Otherwise the strategy says what the fits cost.
    epsilon : number or Fraction, default=0.1
        Privacy budget of the choice. The fits cost their own epsilon in addition.
    strategy : {"noisy-max", "random-stopping", "halving"}, default="noisy-max"
        How the winner is found. "noisy-max": every candidate is fitted once, and the largest noisy
        score wins; the fits cost the sum of their epsilons, or that of one where all share a
        release. "random-stopping": a candidate is drawn at random, fitted and scored, a secret
        number of times, and the best run is released; the fits cost ``2 + eta`` times the most
        expensive candidate, however many there are. "halving": rounds at a growing epsilon, up to
        the candidate's own for the last one, each of which keeps the better half; the fits cost
        about ``1 + log2(n_candidates)`` times one of them. The last two make a release in every
        fit, even if the candidates could share one: take "noisy-max" then.
    eta : number or Fraction, default=1
        For "random-stopping": shape of the law of the number of runs, between -1/2 and 1. 1 is the
        geometric law, 0 the logarithmic one. The smaller, the lower the price, and the more often
        there are only a few runs.
    runs : number, default=None
        For "random-stopping": expected number of runs, at most 1,000. The price does not depend on
        it, only the time. By default four times the number of candidates.
    metric : str, default="accuracy"
        Score by which candidates are compared, by a name of `private_score`.
        Accuracy and means of errors are compared by one noisy maximum; for "roc_auc",
        "average_precision", "f1" and "balanced_accuracy" every candidate's score is released at an
        equal part of ``epsilon``, so that many candidates cost accuracy. "log_likelihood" compares
        synthesizers, and whatever else has ``score_samples``; ``y`` may then be None.
    bounds : (low, high), default=None
        Public range of the target; needed for metrics of numbers. With "log_likelihood" that of a
        row, in nats, such as (-40, 0): rows beyond are clipped, and the noise grows with its width.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set; by default the ledger in the estimator or in ``param_grid``,
        where there may be only one. It is charged once, for the whole search, before a value is
        read. The winner keeps it: fitting ``best_estimator_`` again is charged.
    random_state : None or int, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.
    verbose : int, default=0
        Whether to print progress to standard output. "random-stopping" prints no progress of its
        runs, because their number is secret; so is the time that it takes.

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
    warnings of ``predict`` on true rows are caught, as `make_private_scorer` describes, under the
    same assumption: a row that a candidate cannot predict counts as wrong.

    Candidates are first trained on a few rows drawn from the public domain, before anything is
    charged. A candidate that still cannot be trained on its release is left out, with a warning
    (without one in "random-stopping", where it would tell of the runs).

    In "random-stopping" every run has a copy of its candidate and draws from generators of Python
    and NumPy that were seeded for it, in secret; they are put back at the end. *Not protected* are
    candidates that draw from generators of other libraries, or keep counters or caches on classes,
    in modules or in files (``memory=`` of a pipeline): these tell how many runs there were.

    The rows that train the release also choose the winner. That is sound: the two costs add up, and
    candidates cannot fit the true rows more closely than the release lets them.

    A small epsilon is enough: the noise is about ``1 / epsilon`` rows. Choosing on synthetic rows
    is free; in the measurements of the user guide it was worse by up to two points of accuracy.

    The user guide proves the price of "random-stopping" and compares the strategies.

    References
    ----------
    J. Liu, K. Talwar, "Private selection from private candidates", STOC 2019. N. Papernot,
    T. Steinke, "Hyperparameter tuning with Renyi differential privacy", ICLR 2022.

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

    def __init__(
        self,
        estimator: Any,
        param_grid: dict[str, Any] | list[dict[str, Any]],
        *,
        epsilon: float | Fraction = 0.1,
        strategy: str = "noisy-max",
        eta: float | Fraction = 1,
        runs: float | None = None,
        metric: str = "accuracy",
        bounds: tuple[float, float] | None = None,
        ledger: PrivacyLedger | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.strategy = strategy
        self.eta = eta
        self.runs = runs
        self.metric = metric
        self.bounds = bounds
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Charge for the whole search, fit every candidate, and choose.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            With ``metric="log_likelihood"`` it may be None.

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
        metric = as_metric(self.metric, self.bounds)
        if metric.reads_labels:
            require_y(self, y)
        choice = as_epsilon(self.epsilon)
        check_rate(choice)
        check_choice(self.strategy, "strategy", _WHY)
        candidates, variants = self._candidates()
        if not candidates:
            raise ValueError(f"param_grid={self.param_grid!r} has no candidates: give it some.")
        spread = 1
        if self.strategy == "random-stopping":
            wanted = 4 * len(candidates) if self.runs is None else self.runs
            spread = spread_of(wanted, as_shape(self.eta))
        # Every candidate is checked: one that is trained on a release may carry what others
        # learned.
        prices = [price_of_fit(variant) for variant in variants]
        fits = self._price_of_fits([each for each, _ in prices])
        if self.strategy == "halving":
            for variant in variants:
                scaled(variant, Fraction(1, 2))
        book = one_ledger([self.estimator, *variants], self.ledger)
        as_frame(X)
        labels, take = true_rows(X, y)
        for variant in variants:
            metric.check_model(variant)
            rehearse(variant, X, y)
        generators: list[Any] = []
        if self.strategy != "noisy-max":
            generators = shared_generators(variants, copied(variants, "A candidate"))
        source = noise_source(self.random_state)
        parts = {"fits": fits, "choice": choice}
        seeded = source.seeded or any(seeded for _, seeded in prices)
        loss = PrivacyLoss(fits + choice, parts, seeded=seeded)
        charge(book, type(self).__name__, loss)
        judge = Judge(X, y, take, labels, metric, source, generators)
        runs = 1
        if self.strategy == "random-stopping":
            runs = draw_runs(spread, as_shape(self.eta), source)
        # The handle pays for all runs; the ledger was charged for the best of them.
        with prepaid_clones(variants, book, runs * fits) as variants:
            if self.strategy == "random-stopping":
                best, winner = self._stop_at_random(variants, runs, judge, choice)
            elif self.strategy == "halving":
                best, winner = self._halve(variants, judge, choice)
            else:
                best, winner = self._compare_all(variants, judge, choice)

        validate_data(self, X, skip_check_array=True)
        self.best_index_ = best
        self.best_params_ = candidates[best]
        self.best_estimator_ = winner
        self.privacy_loss_ = loss
        return self

    def _price_of_fits(self, prices: list[Fraction]) -> Fraction:
        """What all fits cost in total."""
        if self.strategy == "random-stopping":
            return price_of_runs(max(prices), as_shape(self.eta))
        if self.strategy == "halving":
            return halving_price(prices)
        return prices[0] if self._shares_a_release() else sum(prices, Fraction(0))

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

    def _compare_all(self, variants: list[Any], judge: Judge, epsilon: Fraction) -> tuple[int, Any]:
        """Fit every candidate once; position of the winner, and the winner."""
        # Privacy. The fits are releases and cost what they cost, in sequence; candidates that are
        # trained on one release are post-processing of it. Given them, the choice costs `epsilon`.
        fitted = self._fit_candidates(variants, judge)
        # Which candidates could be trained follows from the releases alone.
        able = [i for i, one in enumerate(fitted) if one is not None]
        best = able[judge.best([fitted[i] for i in able], epsilon)]
        return best, fitted[best]

    def _stop_at_random(
        self, variants: list[Any], runs: int, judge: Judge, epsilon: Fraction
    ) -> tuple[int, Any]:
        """Fit and score random candidates; position and model of the best run."""
        # Privacy. A run draws a public coin (which candidate), releases a fit, and takes a
        # noisy score at `each`: at most the most expensive fit + `each` in sequence. Outcomes are
        # ordered by the noisy scores, runs that cannot be trained last, and the first of equal
        # runs is released: price_of_runs gives the price of all. Nothing else of a run leaves: no
        # error, and no state that the next run, or whoever draws after the search, would find. A
        # run has generators that were seeded for it, and a copy of all that its candidate holds.
        each = epsilon / price_of_runs(Fraction(1), as_shape(self.eta))
        best: tuple[int, Any] | None = None
        highest = 0.0
        if self.verbose:
            print("Random stopping: the number of runs is secret.")
        with unseen(judge.generators) as seed:
            for _ in range(runs):
                place = judge.source.below(len(variants))
                seed(judge.source.words(4))

                def run(candidate: Any = variants[place]) -> tuple[Any, float]:
                    model = copy.deepcopy(candidate).fit(judge.X, judge.y)
                    return model, judge.noisy_score(model, each)

                with settings_kept():
                    found = attempt(run, None)
                if found is not None and (best is None or found[1] > highest):
                    best, highest = (place, found[0]), found[1]
        if best is None:
            raise TrainingError(
                "No candidate could be trained on its release. Errors of runs are withheld, as "
                "they would tell of the runs: fit a candidate by itself to see its error."
            )
        return best

    def _halve(self, variants: list[Any], judge: Judge, epsilon: Fraction) -> tuple[int, Any]:
        """Keep the better half at a growing epsilon; position of the last one, and its model."""
        # Privacy. Rounds in sequence: the fits of the survivors, each a release at its share of
        # the candidate's epsilon, and one choice of the better half at an equal part of `epsilon`,
        # by their scores. Who survived is released; halving_price takes the most expensive
        # survivors there could be.
        # A round has generators of its own: predictions of true rows have drawn from the others.
        sizes = sizes_of_rounds(len(variants))
        left = list(range(len(variants)))
        with shared_generators_kept(judge.generators) as seed:
            for turn, keep in enumerate(sizes[1:], start=1):
                seed(judge.source.words(4))
                share = Fraction(1, 2 ** (len(sizes) - turn))
                fitted = self._fit_candidates([scaled(variants[i], share) for i in left], judge)
                able = [i for i, one in enumerate(fitted) if one is not None]
                if len(able) > keep:
                    part = epsilon / (len(sizes) - 1)
                    able = [able[i] for i in judge.better([fitted[i] for i in able], keep, part)]
                left = [left[i] for i in able]
            seed(judge.source.words(4))
            # Fewer may be left than planned, if some could not be trained.
            return left[0], self._fit_candidates([variants[left[0]]], judge)[0]

    def _fit_candidates(self, variants: list[Any], judge: Judge) -> list[Any]:
        """Fit the candidates; None stands for one that could not be trained on its release."""
        shared = self.strategy == "noisy-max" and self._shares_a_release()
        fitted: list[Any] = []
        made: Any = None
        failure: TrainingError | None = None
        for i, variant in enumerate(variants):
            if self.verbose:
                print(f"[{i + 1}/{len(variants)}] {variant}")
            try:
                again = shared and made is not None
                X, y = judge.X, judge.y
                fitted.append(variant._train_on(made, X) if again else variant.fit(X, y))
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

    def _privacy_steps(self, name: str, rows: Rows) -> list[Step]:
        candidates, variants = self._candidates()
        shared = self.strategy == "noisy-max" and self._shares_a_release()
        steps = walk_all(variants, child(name, "estimator"), rows, shared=shared)
        if self.strategy != "noisy-max":
            steps = self._repriced(steps, variants)
        by_sum = as_metric(self.metric, self.bounds).is_sum
        way = _WHY.get(self.strategy, "").format(
            "one noisy maximum" if by_sum else "a noisy score of each"
        )
        why = f"chooses among {len(candidates):,} candidates {way}"
        return [*steps, own_step(self, name, rows, why)]

    def _repriced(self, steps: list[Step], variants: list[Any]) -> list[Step]:
        """Steps of all candidates, whose prices add up to what the strategy pays for fits."""
        prices = [price(variant) for variant in variants]
        known = [each for each in prices if each is not None]
        if len(known) < len(prices):
            return [replace(step, epsilon=None if step.epsilon else step.epsilon) for step in steps]
        total = sum(known, Fraction(0))
        share = self._price_of_fits(known) / total if total else Fraction(1)
        return [replace(step, epsilon=(step.epsilon or 0) * share) for step in steps]

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


# --- comparing fitted candidates with true labels


# Without a repr, which would show true rows.
@dataclass(repr=False, eq=False)
class Judge:
    """Chooses among fitted candidates by a metric on true rows.

    Attributes
    ----------
    X, y
        True rows, as they were given.
    take : callable
        Gives the rows at some positions.
    labels : ndarray
        True labels of all rows.
    metric : Metric
    source : NoiseSource
    generators : list
        Those that candidates share.
    """

    X: Any
    y: Any
    take: Take
    labels: Labels
    metric: Metric
    source: NoiseSource
    generators: list[Any]

    # Privacy. Of a metric that is a sum over rows, one record adds to every candidate's total a
    # number of [0, R]: all totals move in the same direction by at most R, and one noisy maximum or
    # one choice of a set at epsilon costs epsilon, whatever the number of candidates. Any other
    # metric is released for each candidate at an equal part of epsilon, in sequence, and the best
    # are taken of what was released. Predictions are made row by row in a guard.

    def __post_init__(self) -> None:
        self._everyone = np.arange(len(self.labels))
        self._places = draw_places(len(self.labels))

    def best(self, models: list[Any], epsilon: Fraction) -> int:
        """Position of the winner, at epsilon."""
        if not self.metric.is_sum:
            return int(np.argmax(self._released(models, epsilon)))
        totals, spread = self._totals(models)
        return int(noisy_max(totals, epsilon, spread, random_state=self.source))

    def better(self, models: list[Any], keep: int, epsilon: Fraction) -> list[int]:
        """Positions of the best few, at epsilon."""
        if not self.metric.is_sum:
            order = np.argsort(self._released(models, epsilon), kind="stable")[::-1]
            return sorted(order[:keep].tolist())
        totals, spread = self._totals(models)
        chosen = top_k(totals, keep, epsilon, spread, ordered=False, random_state=self.source)
        found: list[int] = chosen.tolist()
        return found

    def noisy_score(self, model: Any, epsilon: Fraction) -> float:
        """A noisy score of one candidate, the higher the better, at epsilon."""
        if not self.metric.is_sum:
            return self._released([model], epsilon)[0]
        totals, spread = self._totals([model])
        noisy = discrete_laplace(np.array(totals), epsilon, spread, random_state=self.source)
        return int(noisy[0])

    def _totals(self, models: list[Any]) -> tuple[list[int], int]:
        """Exact sums, and by how much one record may change them."""
        totals = []
        for model in models:
            scores, spread = self.metric.row_scores(self._scored(model))
            totals.append(int(scores.sum()))
        return totals, spread

    def _released(self, models: list[Any], epsilon: Fraction) -> list[float]:
        part = epsilon / len(models)
        scored = map(self._scored, models)
        return [float(self.metric.release(each, part, self.source)) for each in scored]

    def _scored(self, model: Any) -> Scored:
        classes = getattr(model, "classes_", ())
        how = self.metric.method, self.take, self._everyone, self._places
        guesses = answers_of(model, *how, len(classes))
        return Scored(self.labels, guesses, class_positions(classes))


# --- halving: many cheap fits first, one good fit last


def sizes_of_rounds(n_candidates: int) -> list[int]:
    """How many candidates each round fits: half as many each time, and one in the last."""
    sizes = [n_candidates]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // 2))
    return sizes


def halving_price(prices: list[Fraction]) -> Fraction:
    """What the fits of all rounds cost at most, if a fit at full epsilon costs ``prices``.

    Each round spends twice the epsilon per candidate of the round before. Which candidates are
    left is not known beforehand, so the most expensive ones are assumed.
    """
    dearest = sorted(prices, reverse=True)
    sizes = sizes_of_rounds(len(prices))
    rounds = enumerate(reversed(sizes))
    return sum((sum(dearest[:size]) / Fraction(2**back) for back, size in rounds), Fraction(0))


def scaled(estimator: Any, share: Fraction) -> Any:
    """A clone whose fit spends ``share`` times as much.

    Raises
    ------
    ValueError
        If its price is not proportional to the epsilons of its steps.
    """
    twin = clone(estimator)
    for step in walk(twin):
        if step.epsilon and "epsilon" in getattr(step.estimator, "get_params", dict)():
            step.estimator.set_params(epsilon=as_epsilon(step.estimator.epsilon) * share)
    before, after = price(estimator), price(twin)
    if before is None or after != before * share:
        raise ValueError(
            f"What {type(estimator).__name__} spends cannot be scaled by its steps' epsilon, "
            'which strategy="halving" needs: take another strategy.'
        )
    return twin
