"""Metrics: what each reads of a model, what is released for it, and how candidates compare by it.

Names are those of scikit-learn's scorers: a name with ``neg_`` is the negated score, and the same
name without it is the loss itself. True rows are predicted in a guard, from which no error and no
warning gets out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._keys import NO_KEY, Key
from .._keys import positions_of as places_of
from .._random import NoiseSource, noise_source, quietly, sampling_generator, shared_generators_kept
from .._validation import (
    BoolArray,
    FloatArray,
    IntArray,
    as_fraction,
    as_level,
    attempt,
    dyadic_floor,
)
from ..accounting import PrivacyLedger, PrivacyLoss, charge
from ..algorithms import binned_scores
from ..algorithms.binned_scores import STEPS, BinnedScores, on_grid, release_parts
from ..base import epsilon_of_row, range_of
from ..domain.attributes import Coding
from ..mechanisms import discrete_laplace, discrete_laplace_quantile, discrete_laplace_variance
from ..release import QueryResult
from ..tables import Column, as_column, as_frame, as_labels, object_array, row_taker

# --- true rows, predicted and compared one by one, with every error and warning caught: either
# would depend on a value

# Labels or predictions, one for each row.
Labels: TypeAlias = NDArray[Any]
# Takes rows of a container by position.
Take: TypeAlias = Callable[[NDArray[np.integer]], Any]

# Rows of every table that a model is given to predict.
TABLE = 1024


def true_rows(X: Any, y: Any) -> tuple[Labels, Take]:
    """The labels, and a function that takes rows of ``X`` by position; lengths are compared.

    Without labels, for a metric that reads none, all are 0.
    """
    n_rows, take = row_taker(X)
    labels = np.zeros(n_rows) if y is None else as_labels(y)
    if n_rows != len(labels):
        raise ValueError("X and y have different numbers of rows; how many is private.")
    return labels, take


# --- predictions


def draw_places(n_rows: int) -> IntArray:
    """A position in a table of predictions for each row, drawn independently."""
    return noise_source().record_below(TABLE, n_rows)


def no_answers(method: str, n_rows: int, n_classes: int = 0) -> Labels:
    """Answers of a method for rows that have none: NaN."""
    shape = (n_rows, n_classes) if method == "predict_proba" else (n_rows,)
    return np.full(shape, np.nan, dtype=object if method == "predict" else np.float64)


def classes_of(model: Any) -> list[Any]:
    """The labels of a fitted model; none where it has none."""
    return np.asarray(getattr(model, "classes_", ())).tolist()


def answers_of(model: Any, method: str, take: Take, rows: IntArray, places: IntArray) -> Labels:
    """What a method of ``model`` gives for each row, NaN for a row that it gives nothing for.

    Parameters
    ----------
    model : fitted estimator
    method : {"predict", "predict_proba", "score_samples"}
    take : callable (positions) -> table
        Rows by position, as `row_taker` gives it.
    rows : ndarray of int
        Positions of the rows to predict.
    places : ndarray of int
        From `draw_places`, for these rows.

    Returns
    -------
    ndarray of shape (n_rows,) or (n_rows, n_classes), of objects if they are predictions
    """
    # Privacy. The prediction for a row may not depend on the other rows, not even by one ulp of a
    # sum: otherwise one record would change the scores of several. So every table that is
    # predicted has the same number of rows, and the place of each row in it is drawn for this row
    # alone: the arithmetic on it is the same whichever rows stand in the other places. A table that
    # fails is divided, and free places are filled by rows of the same part, until each row that
    # fails stands alone, with copies of itself; the other rows are predicted again in their old
    # places. No exception and no warning leaves. Assumption: the model treats the rows of a table
    # of this fixed size independently of each other, and equal tables equally. For that, every
    # table finds the generators of the process in the same state; how far they went is undone.
    guesses = no_answers(method, len(rows), len(classes_of(model)))

    def answers(table: IntArray) -> Labels | None:
        found = getattr(model, method)(take(table))
        if method == "predict":
            found = object_array(as_labels(found).tolist())
        else:
            found = np.asarray(found, dtype=np.float64)
        return found if found.shape == (len(table), *guesses.shape[1:]) else None

    words = noise_source().words(4)
    order = np.argsort(places, kind="stable")
    # One row of each place in a table.
    turn = np.arange(len(rows)) - np.searchsorted(places[order], places[order])
    parts = [order[turn == number] for number in range(turn.max(initial=-1) + 1)]
    with shared_generators_kept() as seed:
        while parts:
            part = parts.pop()
            table = np.full(TABLE, rows[part[0]])
            table[places[part]] = rows[part]
            seed(words)
            with quietly():
                found = attempt(partial(answers, table), None)
            if found is not None:
                guesses[part] = found[places[part]]
            elif len(part) > 1:
                parts += [part[: len(part) // 2], part[len(part) // 2 :]]
    return guesses


# --- comparisons


def equal(truth: Labels, guess: Labels) -> BoolArray:
    """Whether labels are the same, row by row; what is missing, or no label, differs."""
    known = places_of(as_column(truth, "y").factorize()[1])
    known.pop(None, None)
    one, other = (positions_of(values, known) for values in (truth, guess))
    return np.asarray((one == other) & (one >= 0))


def positions_of(values: Labels, places: Mapping[Key, int]) -> IntArray:
    """Place of the canonical key of each value; -1 for one that has none.

    A number and text that writes it are the same: one record with text makes text of numbers in a
    file.
    """
    known = {key: place for key, place in places.items() if key != NO_KEY}
    coding = Coding(known, missing=known.get(None, -1))
    return as_column(values, "y").codes(coding).astype(np.int64)


# --- metrics by name

# Both ends of the public range of a target.
Ends: TypeAlias = tuple[float, float]

# Ranges of a target whose squares, and sums of many of them, are ordinary floats.
_NARROWEST, _WIDEST = Fraction(1, 10**100), Fraction(10**100)

# Of each metric the method of a model that it reads; what it needs besides, the public list of
# labels, a public range or clusters; and how a search compares candidates by it: by sums over rows
# of scores, or of losses, or by what is released for each.
_METRICS = {
    "accuracy": ("predict", "nothing", "sums"),
    "balanced_accuracy": ("predict", "labels", "releases"),
    "f1": ("predict", "labels", "releases"),
    "roc_auc": ("predict_proba", "labels", "releases"),
    "log_loss": ("predict_proba", "labels", "losses"),
    "mean_absolute_error": ("predict", "range", "losses"),
    "mean_squared_error": ("predict", "range", "losses"),
    "log_likelihood": ("score_samples", "range", "sums"),
    "nicv": ("score_samples", "clusters", "losses"),
}
_LOSSES = {f"neg_{name}": name for name, (*_, sums) in _METRICS.items() if sums == "losses"}
_NAMES = {name: name for name in _METRICS} | _LOSSES


# --- parameters


def charge_score(
    name: str, epsilon: Any, ledger: PrivacyLedger | None, random_state: Any
) -> tuple[PrivacyLoss, NoiseSource]:
    """Charge one score, before a value is read; give its loss and the source of its noise."""
    exact = epsilon_of_row(epsilon)
    source = noise_source(random_state)
    loss = PrivacyLoss(exact, seeded=source.seeded)
    charge(ledger, name, loss)
    return loss, source


def ends_of(domain: Any) -> Ends | None:
    """Both ends of a public range, exactly; None where none is given."""
    if domain is None:
        return None
    low, high = (as_fraction(end, "domain") for end in range_of(domain, "domain"))
    if max(abs(low), abs(high)) > _WIDEST or not float(high) - float(low) >= _NARROWEST:
        raise ValueError(
            "domain must be numbers between -1e100 and 1e100 that differ by at least 1e-100 as "
            f"floats, got {domain!r}: squared errors are computed in floats. Rescale the numbers."
        )
    return float(low), float(high)


class Scored(NamedTuple):
    """True labels, what a model says of each row, and the positions of its labels by their keys."""

    truth: Labels
    guess: Labels
    positions: Mapping[Key, int]


def scored_by(model: Any, metric: Metric, labels: Labels, take: Take, places: IntArray) -> Scored:
    """What a fitted model says of all true rows."""
    guess = answers_of(model, metric.method, take, np.arange(len(labels)), places)
    return Scored(labels, guess, places_of(classes_of(model)))


def label_positions(labels: Any) -> dict[Key, int]:
    """Position of each label of a public list."""
    names = pd.Index(list(labels)).tolist()
    positions = places_of(names)
    if len(names) < 2 or len(positions) < len(names):
        raise ValueError(f"labels must be a list of at least two different labels, got {names!r}.")
    return positions


def as_metric(
    name: Any, domain: Any = None, level: Any = 0.95, *, searches: bool = False
) -> Metric:
    """The metric of this name, with the public range that belongs to it.

    Raises
    ------
    ValueError
        If there is none, or a range is missing, out of place or no range.
    """
    base = _NAMES.get(name) if isinstance(name, str) else None
    if base is None:
        raise ValueError(f"The metric must be one of {sorted(_NAMES)}, got {name!r}.")
    if base == "log_likelihood" and not searches:
        raise ValueError("log_likelihood is a metric of PrivateGridSearchCV alone.")
    ends, (method, needs, compares) = ends_of(domain), _METRICS[base]
    if (needs == "range") != (ends is not None):
        raise ValueError(
            f"The metric {name!r} needs domain=(low, high), the public range of the target, or of "
            "a row's log-likelihood."
            if needs == "range"
            else "domain= belongs to metrics of numbers, such as 'mean_squared_error', not to "
            f"{name!r}."
        )
    return Metric(base, method, needs, compares, name in _LOSSES, ends, float(as_level(level)))


@dataclass(frozen=True)
class Metric:
    """A metric that was asked for by name.

    Attributes
    ----------
    name : str
        Without ``neg_``.
    method, needs, compares : str
        As in the table of metrics.
    negated : bool
        Whether the name began with ``neg_``.
    ends : (low, high), optional
        Public range of the target.
    level : float
        Of intervals.
    """

    name: str
    method: str
    needs: str
    compares: str
    negated: bool
    ends: Ends | None
    level: float

    @property
    def reads_labels(self) -> bool:
        """Whether it compares with labels; otherwise it scores whole rows."""
        return self.method != "score_samples"

    def check_model(self, model: Any) -> None:
        """Refuse a model that cannot give what the metric reads."""
        if not hasattr(model, self.method):
            hint = getattr(_last(model), "_belongs", "")
            raise TypeError(
                f"The metric {self.name!r} needs {self.method}; {type(model).__name__} has none. "
                f"{hint}".rstrip()
            )
        if self.needs == "clusters" and not hasattr(_last(model), "_farthest_squared"):
            raise TypeError(
                f"The metric {self.name!r} is of DPKMeans, which has a public box and centres; "
                f"{type(model).__name__} has none."
            )
        if self.needs == "labels" and not (hasattr(model, "classes_") or is_classifier(model)):
            raise TypeError(
                f"The metric {self.name!r} is of labels; {type(model).__name__} is no classifier."
            )

    def for_models(self, models: Sequence[Any]) -> Metric:
        """The same metric with one range for these fitted models, which follows from releases."""
        if self.needs != "clusters":
            return self
        farthest = max((_last(model)._farthest_squared() for model in models), default=1.0)
        return replace(self, ends=(-farthest, 0.0))

    def release(self, scored: Scored, epsilon: Fraction, source: NoiseSource) -> QueryResult:
        """Release the metric; it was charged before."""
        result = self._release(scored, epsilon, source)
        return _scaled(result, -1.0) if self.negated else result

    def _release(self, scored: Scored, epsilon: Fraction, source: NoiseSource) -> QueryResult:
        (truth, guess, positions), level = scored, self.level
        if self.name == "accuracy":
            return _release_accuracy(truth, guess, epsilon, source, level)
        if self.compares == "losses":
            losses, largest, known = self._losses(scored)
            return _scaled(_mean_loss(losses[known], epsilon, source, level), largest)
        found = positions_of(truth, positions)
        if self.method == "predict":
            answers = positions_of(guess, positions)
            counts = predicted_counts(found, answers, len(positions), epsilon, source)
            formula = f1 if self.name == "f1" else balanced_accuracy
            return with_interval(lambda arrays: formula(arrays[0]), [counts], level)
        scores = guess[:, -1:] if len(positions) == 2 else guess
        return mean_area(one_against_others(scores, found, epsilon, source), level)

    def _losses(self, scored: Scored) -> tuple[FloatArray, float, BoolArray]:
        """Loss of each row as a share of the largest; the largest; whether a row's label is known.

        What is missing is NaN.
        """
        truth, guess, positions = scored
        if self.ends is not None:
            low, high = self.ends
            power = 2 if self.name == "mean_squared_error" else 1
            true, guessed = (numbers_between(each, low, high) for each in (truth, guess))
            # A small error squared may underflow, which NumPy can be told to raise.
            with np.errstate(all="ignore"):
                errors = np.abs(true - guessed) ** power if self.reads_labels else 1.0 - guessed
            return errors, (high - low) ** power, np.ones(len(errors), dtype=bool)
        found = positions_of(truth, positions)
        # Of two labels the probability of the second.
        scores = guess[:, -1:] if len(positions) == 2 else guess
        return _log_losses(np.maximum(found, 0), scores), _LARGEST_LOSS, found >= 0

    def row_scores(self, scored: Scored) -> tuple[IntArray, int]:
        """An integer for each row, the higher the better, for a comparison of candidates.

        Returns
        -------
        scores : ndarray of int
        spread : int
            The range of these integers: the largest change of their sum by one row.
        """
        if self.name == "accuracy":
            return equal(scored.truth, scored.guess).astype(np.int64), 1
        losses, _, known = self._losses(scored)
        return -np.where(known, on_grid(losses), STEPS), STEPS


def _last(model: Any) -> Any:
    """The last step of a pipeline; the model itself if it is none."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def _scaled(result: QueryResult, factor: float) -> QueryResult:
    """A multiple of a score."""
    lower, upper = sorted(factor * end for end in (result.lower, result.upper))
    spreads = {"std": abs(factor) * result.std, "sampling_std": abs(factor) * result.sampling_std}
    return replace(result, value=factor * result.value, lower=lower, upper=upper, **spreads)


# --- intervals, by simulation of the noise

# Draws behind each interval.
_DRAWS = 1000
COVERS = (
    "covers the score on the population that these rows were drawn from in about {:.0%} of all "
    "releases: sampling error and noise"
)
_TAILS = (0.005, 0.995)


@dataclass(frozen=True)
class Noisy:
    """Released numbers and the law of the noise in them.

    Attributes
    ----------
    values : ndarray of float
        In records.
    epsilon : Fraction
        Each number has discrete Laplace noise of this rate for a record.
    steps : int, default=1
        Integers for a record on the grid of the noise.
    """

    values: FloatArray
    epsilon: Fraction
    steps: int = 1

    @property
    def variance(self) -> float:
        """Variance of the noise of each number."""
        return discrete_laplace_variance(self.epsilon / self.steps) / self.steps**2

    @property
    def present(self) -> bool:
        """Whether each sum over the last axis is larger than noise alone can make it."""
        reach = _PRESENT * np.sqrt(self.variance * self.values.shape[-1])
        return bool((self.values.sum(-1) > reach).all())

    def noise(self, draws: int, rng: np.random.Generator) -> FloatArray:
        """Noise as it was drawn, shape (draws, *values.shape)."""
        rate = float(dyadic_floor(self.epsilon / self.steps))
        shape = (draws, *self.values.shape)
        # Whole parts of exponential variables are geometric.
        more, less = (np.floor(rng.standard_exponential(shape) / rate) for _ in range(2))
        return (more - less) / self.steps


# From arrays, with one more axis in front or without, to one number for each.
Statistic: TypeAlias = Callable[[Sequence[FloatArray]], FloatArray]


def with_interval(
    statistic: Statistic,
    parts: Sequence[Noisy],
    level: float,
    *,
    value: float | None = None,
    resolution: float = 0.0,
    sampling_std: float | None = None,
) -> QueryResult:
    """A score from 0 to 1 with its interval, for the population that the rows were drawn from.

    Where too few records are left above the noise the interval is all that is possible.

    Parameters
    ----------
    statistic : callable
    parts : sequence of Noisy
        Its arguments.
    level : float
    value : float, optional
        A better estimate than ``statistic`` of the parts.
    resolution : float, default=0.0
        Widens the interval: what bins hide.
    sampling_std : float, optional
        Of the statistic; by default the spread over Poisson counts. Parts may count the same rows,
        so the spreads of all parts are added up.
    """
    # Computed from the release alone, with public coins, so that a report does not change when
    # it is read again.
    rng = sampling_generator(0)
    values = [part.values for part in parts]
    base = float(statistic(values))
    errors = statistic([part.values + part.noise(_DRAWS, rng) for part in parts]) - base
    sampling = sampling_std or 0.0
    if sampling_std is None:
        for place, part in enumerate(parts):
            drawn = [np.broadcast_to(each, (_DRAWS, *each.shape)) for each in values]
            # Counts of other samples of rows of the same population.
            rates = np.maximum(part.values, 0.0)
            drawn[place] = rng.poisson(rates, drawn[place].shape).astype(float)
            sampling += float(statistic(drawn).std())
    # A quotient of noisy numbers may have no standard deviation: its tails are cut off.
    spread = float(np.hypot(np.clip(errors, *np.quantile(errors, _TAILS)).std(), resolution))
    errors = errors + sampling_generator(1).normal(0.0, sampling, errors.shape)
    ends = np.quantile(errors, [(1 - level) / 2, (1 + level) / 2])
    value = float(np.clip(base if value is None else value, 0.0, 1.0))
    lower, upper = value - ends[1] - resolution, value - ends[0] + resolution
    if not all(part.present for part in parts):
        lower, upper = 0.0, 1.0
    return QueryResult(
        value,
        spread,
        float(np.clip(min(lower, value), 0.0, 1.0)),
        float(np.clip(max(upper, value), 0.0, 1.0)),
        f"{COVERS.format(level)}, by simulation",
        sampling,
    )


# --- classifiers

# Probabilities below count as this in log losses.
CLIP = 0.001
_LARGEST_LOSS = float(-np.log(CLIP))
# Records are known to be there where their noisy number exceeds this many standard deviations.
_PRESENT = 4.0
# What bins still hide, as a share of what half as many would change: the error of an area falls
# with the square of their number.
_LEFT = 1 / 3


# --- formulas


def roc_auc(negatives: FloatArray, positives: FloatArray) -> FloatArray:
    """Share of pairs that are in order; pairs in one bin count half."""
    below = np.cumsum(negatives, axis=-1) - negatives / 2
    pairs = np.maximum(negatives.sum(-1), 1.0) * np.maximum(positives.sum(-1), 1.0)
    return np.asarray((below * positives).sum(-1) / pairs)


def balanced_accuracy(matrix: FloatArray) -> FloatArray:
    """Mean over the true labels of the share that was predicted."""
    right = np.diagonal(matrix, axis1=-2, axis2=-1)
    # Not cut at 1, nor is that of the draws behind an interval: their errors would seem small.
    return np.asarray((right / np.maximum(matrix.sum(-1), 1.0)).mean(-1))


def f1(matrix: FloatArray) -> FloatArray:
    """F1 of the second of two labels; of more labels the mean over all.

    The last column of a matrix is of labels not declared.
    """
    right = np.diagonal(matrix, axis1=-2, axis2=-1)
    predicted = matrix.sum(-2)[..., : right.shape[-1]]
    each = 2.0 * right / np.maximum(matrix.sum(-1) + predicted, 1.0)
    return np.asarray(each[..., 1] if each.shape[-1] == 2 else each.mean(-1))


# --- released counts


def _release_accuracy(
    truth: Labels, guess: Labels, exact: Fraction, source: NoiseSource, level: float
) -> QueryResult:
    """Release the accuracy; it was charged before."""
    # Privacy. Released are two counts, of correct and of wrong rows. One record is in exactly one
    # of them: together they have L1 sensitivity 1 and cost epsilon, noise on both. The share and
    # its interval are computed from these two numbers and the public distribution of the noise.
    right = equal(truth, guess)
    counts = np.array([right.sum(), right.size - right.sum()], dtype=np.int64)
    part = Noisy(discrete_laplace(counts, exact, random_state=source).astype(float), exact)
    kept = np.maximum(part.values, 0.0)
    value = float(kept[0] / kept.sum()) if kept.any() else 0.5
    # Shares that noise and sampling, of (1 - share) * right - share * wrong, leave possible.
    shares = np.append(np.linspace(0.0, 1.0, 100_001), value)
    noise = discrete_laplace_quantile(level, exact) * np.hypot(shares, 1.0 - shares)
    spread = shares * (1.0 - shares) * max(kept.sum(), 1.0)
    reach = np.hypot(noise, float(ndtri(0.5 + level / 2)) * np.sqrt(spread))
    held = shares[np.abs((1.0 - shares) * kept[0] - shares * kept[1]) <= reach]
    # Of a share of a few rows, as if two more were right and two wrong: it is never 0.
    expected = float((kept[0] + 2.0) / (kept.sum() + 4.0))
    return QueryResult(
        value,
        min(float(np.sqrt(part.variance) * np.hypot(value, 1 - value) / max(kept.sum(), 1.0)), 0.5),
        float(held.min()),
        float(held.max()),
        COVERS.format(level),
        math.sqrt(expected * (1 - expected) / (kept.sum() + 4.0)),
    )


def predicted_counts(
    classes: IntArray, guesses: IntArray, n_labels: int, epsilon: Fraction, source: NoiseSource
) -> Noisy:
    """A noisy confusion matrix; its last column is of labels not declared."""
    # Privacy. Released are counts over a public list of cells, empty ones included; one record is
    # in at most one cell: L1 sensitivity 1, noise of rate epsilon on every cell.
    known = classes >= 0
    column = np.where(guesses < 0, n_labels, guesses)
    cell = (classes * (n_labels + 1) + column)[known]
    shape = (n_labels, n_labels + 1)
    exact = np.bincount(cell, minlength=int(np.prod(shape)))
    noisy = discrete_laplace(exact, epsilon, random_state=source).reshape(shape)
    return Noisy(noisy.astype(float), epsilon)


def one_against_others(
    scores: FloatArray, classes: IntArray, epsilon: Fraction, source: NoiseSource
) -> list[BinnedScores]:
    """One release of scores by class for two classes, and one for each of more.

    A missing score is as wrong as can be.
    """
    # Privacy. Of k > 2 classes each record is in the counts of all k: k releases in sequence, each
    # at epsilon / k. Of two classes there is one.
    several = scores.shape[1] > 1
    part = epsilon / scores.shape[1]
    tables = []
    for k in range(scores.shape[1]):
        positive = classes == (k if several else 1)
        found = binned_scores.interval_of(scores[:, k])
        found = np.where(found < 0, np.where(positive, 0, binned_scores.INTERVALS - 1), found)
        known = np.where(classes < 0, -1, positive)
        tables.append(binned_scores.release_scores(found, known, part, source))
    return tables


def fine_counts(binned: BinnedScores, *, merged: bool = False) -> FloatArray:
    """Counts of both classes in each public interval, shape (2, INTERVALS).

    Within a bin both classes have the shape of the whole. ``merged`` gives what half as many bins
    would show.
    """
    bin_of = binned.bin_of
    fine = binned.counts[:, bin_of] * binned.within
    if not merged:
        return fine
    whole = np.maximum(fine.sum(0), 0.0)
    pair_of = (bin_of[-1] - bin_of) // 2
    pairs = np.stack([np.bincount(pair_of, weights=row) for row in fine])
    mass = np.maximum(np.bincount(pair_of, weights=whole), 1e-12)
    return pairs[:, pair_of] * whole / mass[pair_of]


# --- the order of the scores


def mean_area(tables: Sequence[BinnedScores], level: float) -> QueryResult:
    """Area under the ROC curve; of several classes, each against the others, the mean."""

    def statistic(arrays: Sequence[FloatArray]) -> FloatArray:
        return np.mean([roc_auc(each[..., 0, :], each[..., 1, :]) for each in arrays], axis=0)

    value, halved = (
        float(np.mean([roc_auc(*fine_counts(table, merged=merged)) for table in tables]))
        for merged in (False, True)
    )
    return with_interval(
        statistic,
        [Noisy(table.counts.astype(float), table.epsilon) for table in tables],
        level,
        value=value,
        resolution=_LEFT * abs(value - halved),
    )


# --- means of losses of rows


@np.errstate(all="ignore")
def _log_losses(classes: IntArray, probabilities: FloatArray) -> FloatArray:
    """Log loss of each row as a share of the largest; NaN where the probability is missing.

    Parameters
    ----------
    classes : ndarray of int, shape (n_rows,)
    probabilities : ndarray of float, shape (n_rows, n_classes) or (n_rows, 1)
        One column holds the probability of the second of two classes.
    """
    several = probabilities.shape[1] > 1
    clipped = np.clip(probabilities, 0.0, 1.0)
    places = np.arange(len(classes)), classes
    true = clipped[places] if several else np.abs(1 - classes - clipped[:, 0])
    # One by one: a vectorised logarithm may round a row by its place in the array.
    logs = map(math.log, np.maximum(true, CLIP).tolist())
    return -np.fromiter(logs, np.float64, len(true)) / _LARGEST_LOSS


def _mean_loss(
    losses: FloatArray, epsilon: Fraction, source: NoiseSource, level: float
) -> QueryResult:
    """Mean of losses of rows, as shares of the largest; missing is 1."""
    # Squares are needed for the sampling error only.
    part = Noisy(release_parts(losses, epsilon, source), epsilon, STEPS)

    def mean(arrays: Sequence[FloatArray]) -> FloatArray:
        return np.asarray(arrays[0][..., :-1].sum(-1) / np.maximum(arrays[0].sum(-1), 1.0))

    records = max(float(part.values.sum()), 1.0)
    first, second = float(part.values[:2].sum()) / records, float(part.values[0]) / records
    sampling = float(np.sqrt(max(second - first**2, 0.0) / records))
    return with_interval(mean, [part], level, sampling_std=sampling)


# --- numbers


@np.errstate(all="ignore")
def numbers_between(values: Labels, low: float, high: float) -> FloatArray:
    """Numbers as shares of the range, clipped to it; NaN where there is none."""
    numbers = np.clip(as_column(values, "y").numbers(), low, high)
    return np.asarray((numbers - low) / (high - low))


# --- one score


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
        model that is a release itself or was trained without these rows, split off by
        `PrivateKFold`: what a prediction reveals about *other* records is not covered here. What is
        missing, or is no text, number or date, counts as wrong: as the worst score, or the largest
        error. For "nicv" the model: a fitted `DPKMeans`, or a pipeline that ends in one.
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
    probability 0.001, which is 6.9. If noise alone could have made one of the classes, the interval
    is everything possible.

    Examples
    --------
    >>> from skdp.model_selection import private_score
    >>> truth, score = [0] * 8_000 + [1] * 2_000, [0.1] * 8_500 + [0.9] * 1_500
    >>> auc = private_score(truth, score, metric="roc_auc", epsilon=1.0)
    >>> round(float(auc), 1)
    0.9
    >>> truth, guess = [1.0] * 10_000, [3.0] * 10_000
    >>> name = "neg_mean_absolute_error"
    >>> round(float(private_score(truth, guess, name, domain=(0, 5), epsilon=1.0)), 1)
    -2.0
    """
    asked = as_metric(metric, domain, level)
    if not asked.reads_labels:
        return _score_of_rows(y, y_true, asked, epsilon, ledger, random_state)
    if labels is not None and asked.needs != "labels":
        raise ValueError(f"labels= is for metrics of declared labels: leave it out for {metric!r}.")
    names = (0, 1) if labels is None else labels
    positions = label_positions(names) if asked.needs == "labels" else {}
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
    scored = scored_by(model, metric, truth, take, draw_places(len(truth)))
    return metric.release(scored, loss.epsilon, source)
