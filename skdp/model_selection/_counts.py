"""Scores of classifiers from counts: their formulas, and what follows from noisy counts by class.

Counts of scores have bins in increasing order of the score as their last axis, and confusion
matrices true labels in their last axis but one and predicted labels in their last, which may have
more entries for labels that are not declared. All other axes are looped over. Noisy counts may be
negative; denominators are at least 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .._random import NoiseSource
from .._validation import FloatArray, IntArray
from ..algorithms.binned_scores import INTERVALS, BinnedScores, interval_of, release_scores
from ..release import QueryResult
from ._intervals import Noisy, with_interval

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
    recall = np.clip(right / _at_least_one(matrix.sum(-1)), 0.0, 1.0)
    return np.asarray(recall.mean(-1))


def f1(matrix: FloatArray) -> FloatArray:
    """F1 of the second of two labels; of more labels the mean over all."""
    right = np.diagonal(matrix, axis1=-2, axis2=-1)
    predicted = matrix.sum(-2)[..., : right.shape[-1]]
    each = np.clip(2.0 * right / _at_least_one(matrix.sum(-1) + predicted), 0.0, 1.0)
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

    def fine(self, *, tilted: bool = True, merged: bool = False) -> FloatArray:
        """Counts of both classes in each public interval, shape (2, INTERVALS).

        Within a bin both classes have the shape of the whole, or the share of the positives grows
        as between its neighbours (``tilted``). ``merged`` gives what half as many bins would show.
        """
        bin_of, within = self.binned.bin_of, self.binned.within
        fine = self.noisy.values[:, bin_of] * within
        if merged:
            whole = np.maximum(fine.sum(0), 0.0)
            pair_of = (bin_of[-1] - bin_of) // 2
            pairs = np.stack([np.bincount(pair_of, weights=row) for row in fine])
            mass = np.maximum(np.bincount(pair_of, weights=whole), 1e-12)
            fine = pairs[:, pair_of] * whole / mass[pair_of]
        number = self.noisy.values.shape[1]
        if merged or not tilted or number < 3:
            return fine
        weight = np.maximum(self.noisy.values, 0.0)
        weight = weight / np.maximum(weight.sum(1, keepdims=True), 1.0)
        share = weight[1] / np.maximum(weight.sum(0), 1e-12)
        slope = np.gradient(share)
        # From -1/2 to 1/2 through each bin.
        place = np.cumsum(within) - bin_of - within / 2 - 0.5
        for label, sign in ((1, 1.0), (0, -1.0)):
            own = share if label else 1.0 - share
            tilt = np.clip(sign * slope / np.maximum(own, 1e-9), -2.0, 2.0)
            fine[label] *= 1.0 + tilt[bin_of] * place
        return fine


# --- the order of the scores


def mean_area(tables: Sequence[Counts], level: float) -> QueryResult:
    """Area under the ROC curve; of several classes, each against the others, the mean."""

    def statistic(arrays: Sequence[FloatArray]) -> FloatArray:
        return np.mean([roc_auc(each[..., 0, :], each[..., 1, :]) for each in arrays], axis=0)

    def of_intervals(**options: bool) -> float:
        return float(np.mean([roc_auc(*table.fine(**options)) for table in tables]))

    value = of_intervals()
    flat, halved = of_intervals(tilted=False), of_intervals(tilted=False, merged=True)
    return with_interval(
        statistic,
        [table.noisy for table in tables],
        level,
        value=value,
        known=all(table.present for table in tables),
        resolution=max(abs(value - flat), _LEFT * abs(flat - halved)),
    )


# --- means over rows


def largest_loss(name: str, several: bool) -> float:
    """Largest possible loss of a row."""
    if name == "log_loss":
        return float(-np.log(CLIP))
    return 2.0 if several else 1.0
