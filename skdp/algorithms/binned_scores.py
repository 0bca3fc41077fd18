"""Scores of a classifier counted by class, in bins of about equal mass.

A few bins answer best: every bin adds noise to an area under a curve, and a bin that holds much of
both classes hides their order within it. So a fifth of the budget finds where the scores lie, on
4,096 public intervals, and the rest counts both classes in about 24 unions of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .._random import NoiseSource
from .._validation import BoolArray, FloatArray, IntArray
from ..mechanisms import discrete_laplace
from .quantiles import line_counts

# Public intervals of the scores.
INTERVALS = 4096


@dataclass(frozen=True)
class Tuning:
    """The numbers that change a release, chosen by the errors of areas on three tables."""

    # Share of epsilon that finds the bins.
    finding: Fraction = Fraction(1, 5)
    # Bins where epsilon times the smaller class is 1. The error of ties falls with the square of
    # the number of bins and the noise grows with its root, relative to the size of the class: their
    # sum is least at the power 2/5 of the latter.
    bins: float = 1.6
    # How often the highest bin is halved.
    halvings: int = 2
    # An interval with more records than this many standard deviations of its noise is taken for a
    # value that scores repeat.
    peak: float = 4.0


TUNING = Tuning()


def interval_of(scores: FloatArray) -> IntArray:
    """Public interval of each score from 0 to 1, -1 for NaN; an interval holds its upper end.

    They become narrower towards both ends, as probabilities need: the first one ends at 6e-8, and
    those in the middle are twice as wide as equal ones.
    """
    with np.errstate(all="ignore"):
        share = np.clip(scores, 0.0, 1.0)
        one, other = np.sqrt(share), np.sqrt(1.0 - share)
        found = np.clip(np.ceil(one / (one + other) * INTERVALS) - 1, 0, INTERVALS - 1)
    return np.where(np.isnan(found), -1, found).astype(np.int64)


@dataclass(frozen=True)
class BinnedScores:
    """What is released of scores by class.

    Attributes
    ----------
    bin_of : ndarray of int, shape (INTERVALS,)
        The bin of each interval.
    within : ndarray of float, shape (INTERVALS,)
        Share of its bin's scores that an interval is estimated to hold.
    counts : ndarray of int, shape (2, n_bins)
        Noisy numbers of records of the negative and of the positive class.
    epsilon : Fraction
        Rate of the noise of the counts.
    """

    bin_of: IntArray
    within: FloatArray
    counts: IntArray
    epsilon: Fraction


def release_scores(
    positions: IntArray, classes: IntArray, epsilon: Fraction, source: NoiseSource
) -> BinnedScores:
    """Count scores by class, in bins found with noise.

    Parameters
    ----------
    positions : ndarray of int, shape (n_rows,)
        Interval of each score, below `INTERVALS`.
    classes : ndarray of int, shape (n_rows,)
        1 for the positive class, 0 for the negative one; -1 for rows that are not counted.
    epsilon : Fraction
    source : NoiseSource
    """
    # Privacy. Two releases in sequence. First a tree of noisy counts over public intervals for each
    # of the two classes, at epsilon / 5: a record is in one class, so both trees together cost
    # that. Bins are computed from these alone. Then one noisy count for each class and bin, empty
    # ones included: a record is in at most one of these cells, so they have L1 sensitivity 1 and
    # cost the other 4/5.
    finding = epsilon * TUNING.finding
    counting = epsilon - finding
    known = classes >= 0
    at, label_of = positions[known], classes[known]
    shapes, peaks = [], np.zeros(INTERVALS, dtype=bool)
    for label in (0, 1):
        exact = np.bincount(at[label_of == label], minlength=INTERVALS)
        shape, variances = line_counts(exact, finding, source)
        shapes.append(shape)
        peaks |= shape > TUNING.peak * np.sqrt(variances)
    totals = [float(shape.sum()) for shape in shapes]
    even = np.full(INTERVALS, 1.0 / INTERVALS)
    each = [
        shape / total if total > 0 else even for shape, total in zip(shapes, totals, strict=True)
    ]
    mass: FloatArray = (each[0] + each[1]) / 2
    bin_of = _bins(mass, float(epsilon) * min(totals))
    n_bins = int(bin_of[-1]) + 1
    exact = np.bincount(label_of * n_bins + bin_of[at], minlength=2 * n_bins)
    counts = discrete_laplace(exact, counting, random_state=source)
    within = _within(mass, bin_of, peaks)
    return BinnedScores(bin_of, within, counts.reshape(2, n_bins), counting)


def _bins(mass: FloatArray, signal: float) -> IntArray:
    """The bin of each interval: about equal mass, with an end in the middle of the scale."""
    number = max(round(TUNING.bins * max(signal, 1.0) ** 0.4), 2)
    halves = 0.5 ** np.arange(1, TUNING.halvings + 1)
    ends = np.append(np.arange(number), number - halves) / number
    middle = np.cumsum(mass) - mass / 2
    rough = np.searchsorted(np.sort(ends), middle, side="right") * 2
    rough += np.arange(INTERVALS) >= INTERVALS // 2
    return np.concatenate([[0], np.cumsum(np.diff(rough) > 0)]).astype(np.int64)


def _within(mass: FloatArray, bin_of: IntArray, peaks: BoolArray) -> FloatArray:
    """Share of its bin in each interval: even among those that are no peaks.

    Otherwise the noise would make ties where there are none.
    """
    plain = np.where(peaks, 0.0, mass)
    number = np.maximum(np.bincount(bin_of, weights=~peaks), 1.0)
    level = np.bincount(bin_of, weights=plain) / number
    # A little of everything, so that each bin has a shape.
    even = np.where(peaks, mass, level[bin_of]) + 1e-9 / INTERVALS
    return np.asarray(even / np.bincount(bin_of, weights=even)[bin_of])


# --- sums of powers of numbers between 0 and 1, as noisy counts of parts of records
#
# A record is divided into parts that sum to 1: ``x**2``, ``x - x**2`` and ``1 - x``. The sums of
# the parts together have the sensitivity of one count, and give the number of records, the sum and
# the sum of squares.

# Numbers from 0 to 1 are multiples of one part in this many.
STEPS = 2**20


def on_grid(numbers: FloatArray) -> IntArray:
    """Numbers between 0 and 1 as integers up to `STEPS`; NaN becomes the largest."""
    found = np.rint(np.clip(np.where(np.isnan(numbers), 1.0, numbers), 0.0, 1.0) * STEPS)
    return found.astype(np.int64)


def release_parts(numbers: FloatArray, epsilon: Fraction, source: NoiseSource) -> FloatArray:
    """Noisy sums of the parts of all records, in records.

    Parameters
    ----------
    numbers : ndarray of float, shape (n_rows,)
        Clipped to [0, 1]; NaN counts as 1.
    epsilon : Fraction
    source : NoiseSource

    Returns
    -------
    ndarray of float, shape (3,)
        Sums of ``x**2``, ``x - x**2`` and ``1 - x``.
    """
    # Privacy. Every record becomes, by itself, three integers that are not negative and
    # sum to STEPS exactly. Released are their sums over all records: one record changes them by
    # STEPS in all, and the noise of each sum has that sensitivity. No float is summed.
    first = on_grid(numbers)
    square = (first * first + STEPS // 2) // STEPS
    parts = [square, first - square, STEPS - first]
    sums = np.array([part.sum() for part in parts], dtype=np.int64)
    noisy: FloatArray = discrete_laplace(sums, epsilon, STEPS, random_state=source) / STEPS
    return noisy
