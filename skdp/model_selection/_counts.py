"""Intervals of scores, by simulation of the noise; scores of classifiers from counts by class.

Counts of scores have bins in increasing order of the score as their last axis, and confusion
matrices true labels in their last axis but one and predicted labels in their last, which may have
more entries for labels that are not declared. All other axes are looped over. Noisy counts may be
negative; denominators are at least 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from .._random import NoiseSource, sampling_generator
from .._validation import FloatArray, IntArray, dyadic_floor
from ..algorithms.binned_scores import INTERVALS, BinnedScores, interval_of, release_scores
from ..mechanisms import discrete_laplace_variance
from ..release import QueryResult

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

    def noise(self, draws: int, rng: np.random.Generator) -> FloatArray:
        """Noise as it was drawn, shape (draws, *values.shape)."""
        rate = float(dyadic_floor(self.epsilon / self.steps))
        shape = (draws, *self.values.shape)
        # Whole parts of exponential variables are geometric.
        more, less = (np.floor(rng.standard_exponential(shape) / rate) for _ in range(2))
        return (more - less) / self.steps

    def samples(self, draws: int, rng: np.random.Generator) -> FloatArray:
        """Counts of other samples of rows of the same population."""
        return rng.poisson(np.maximum(self.values, 0.0), (draws, *self.values.shape)).astype(float)


# From arrays, with one more axis in front or without, to one number for each.
Statistic: TypeAlias = Callable[[Sequence[FloatArray]], FloatArray]


def with_interval(
    statistic: Statistic,
    parts: Sequence[Noisy],
    level: float,
    *,
    value: float | None = None,
    known: bool = True,
    resolution: float = 0.0,
    sampling_std: float | None = None,
) -> QueryResult:
    """A score from 0 to 1 with its interval, for the population that the rows were drawn from.

    Parameters
    ----------
    statistic : callable
    parts : sequence of Noisy
        Its arguments.
    level : float
    value : float, optional
        A better estimate than ``statistic`` of the parts.
    known : bool, default=True
        False where too few records are left above the noise: the interval is all that is possible.
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
            drawn[place] = part.samples(_DRAWS, rng)
            sampling += float(statistic(drawn).std())
    if value is None:
        value = base
    # A quotient of noisy numbers may have no standard deviation: its tails are cut off.
    spread = float(np.hypot(np.clip(errors, *np.quantile(errors, _TAILS)).std(), resolution))
    errors = errors + sampling_generator(1).normal(0.0, sampling, errors.shape)
    ends = np.quantile(errors, [(1 - level) / 2, (1 + level) / 2])
    value = float(np.clip(value, 0.0, 1.0))
    lower, upper = value - ends[1] - resolution, value - ends[0] + resolution
    if not known:
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
# A class is known to be there where its noisy number exceeds this many standard deviations.
_PRESENT = 4.0
# What bins still hide, as a share of what half as many would change: the error of an area falls
# with the square of their number.
_LEFT = 1 / 3


# --- formulas


def _at_least_one(counts: FloatArray) -> FloatArray:
    return np.maximum(counts, 1.0)


def roc_auc(negatives: FloatArray, positives: FloatArray) -> FloatArray:
    """Share of pairs that are in order; pairs in one bin count half."""
    below = np.cumsum(negatives, axis=-1) - negatives / 2
    pairs = _at_least_one(negatives.sum(-1)) * _at_least_one(positives.sum(-1))
    return np.asarray((below * positives).sum(-1) / pairs)


def balanced_accuracy(matrix: FloatArray) -> FloatArray:
    """Mean over the true labels of the share that was predicted."""
    right = np.diagonal(matrix, axis1=-2, axis2=-1)
    # Not cut at 1, nor is that of the draws behind an interval: their errors would seem small.
    return np.asarray((right / _at_least_one(matrix.sum(-1))).mean(-1))


def f1(matrix: FloatArray) -> FloatArray:
    """F1 of the second of two labels; of more labels the mean over all."""
    right = np.diagonal(matrix, axis1=-2, axis2=-1)
    predicted = matrix.sum(-2)[..., : right.shape[-1]]
    each = 2.0 * right / _at_least_one(matrix.sum(-1) + predicted)
    return np.asarray(each[..., 1] if each.shape[-1] == 2 else each.mean(-1))


OF_MATRIX: dict[str, Callable[[FloatArray], FloatArray]] = {
    "balanced_accuracy": balanced_accuracy,
    "f1": f1,
}


# --- released counts


def one_against_others(
    scores: FloatArray,
    classes: IntArray,
    epsilon: Fraction,
    source: NoiseSource,
) -> list[Counts]:
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
        found = interval_of(scores[:, k])
        found = np.where(found < 0, np.where(positive, 0, INTERVALS - 1), found)
        known = np.where(classes < 0, -1, positive)
        binned = release_scores(found, known, part, source)
        tables.append(Counts(binned, Noisy(binned.counts.astype(float), binned.epsilon)))
    return tables


@dataclass(frozen=True)
class Counts:
    """Counts of both classes, from a release."""

    binned: BinnedScores
    noisy: Noisy

    @property
    def present(self) -> bool:
        """Whether both classes are larger than the noise in their number."""
        number = self.noisy.values.shape[1]
        # A total that noise alone does not reach.
        reach = _PRESENT * float(np.sqrt(self.noisy.variance * number))
        return bool((self.noisy.values.sum(1) > reach).all())

    def fine(self, *, merged: bool = False) -> FloatArray:
        """Counts of both classes in each public interval, shape (2, INTERVALS).

        Within a bin both classes have the shape of the whole. ``merged`` gives what half as many
        bins would show.
        """
        bin_of, within = self.binned.bin_of, self.binned.within
        fine = self.noisy.values[:, bin_of] * within
        if not merged:
            return fine
        whole = np.maximum(fine.sum(0), 0.0)
        pair_of = (bin_of[-1] - bin_of) // 2
        pairs = np.stack([np.bincount(pair_of, weights=row) for row in fine])
        mass = np.maximum(np.bincount(pair_of, weights=whole), 1e-12)
        return pairs[:, pair_of] * whole / mass[pair_of]


# --- the order of the scores


def mean_area(tables: Sequence[Counts], level: float) -> QueryResult:
    """Area under the ROC curve; of several classes, each against the others, the mean."""

    def statistic(arrays: Sequence[FloatArray]) -> FloatArray:
        return np.mean([roc_auc(each[..., 0, :], each[..., 1, :]) for each in arrays], axis=0)

    value, halved = (
        float(np.mean([roc_auc(*table.fine(merged=merged)) for table in tables]))
        for merged in (False, True)
    )
    return with_interval(
        statistic,
        [table.noisy for table in tables],
        level,
        value=value,
        known=all(table.present for table in tables),
        resolution=_LEFT * abs(value - halved),
    )


# --- means over rows


def largest_loss(name: str, several: bool) -> float:
    """Largest possible loss of a row."""
    if name == "log_loss":
        return float(-np.log(CLIP))
    return 2.0 if several else 1.0
