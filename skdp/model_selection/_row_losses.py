"""Losses of single rows between 0 and 1, and scores that follow from their noisy sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from .._random import NoiseSource
from .._types import FloatArray, IntArray
from ..kernels.clipped_moments import STEPS, release_parts
from ..release import QueryResult
from ..rows import as_column
from ._guard import Labels
from ._judge import Covers, Noisy, judge
from ._score_table import CLIP, largest_loss

__all__ = [
    "mean_loss",
    "number_moments",
    "number_score",
    "numbers_between",
    "probability_losses",
]


def probability_losses(name: str, classes: IntArray, probabilities: FloatArray) -> FloatArray:
    """Log loss or Brier score of each row, divided by the largest possible; missing is 1.

    Parameters
    ----------
    name : {"log_loss", "brier"}
    classes : ndarray of int, shape (n_rows,)
    probabilities : ndarray of float, shape (n_rows, n_classes) or (n_rows, 1)
        One column holds the probability of the second of two classes.
    """
    several = probabilities.shape[1] > 1
    clipped = np.clip(probabilities, 0.0, 1.0)
    rows = np.arange(len(classes))
    true = clipped[rows, classes] if several else np.abs(1 - classes - clipped[:, 0])
    with np.errstate(invalid="ignore"):
        if name == "log_loss":
            # One by one: a vectorised logarithm may round a row by its place in the array.
            logs = map(math.log, np.maximum(true, CLIP).tolist())
            losses = -np.fromiter(logs, np.float64, len(true))
        elif several:
            # One column at a time: the sum of a row may not depend on how many rows there are.
            losses = sum(
                (clipped[:, k] - (classes == k)) ** 2 for k in range(clipped.shape[1])
            ) * np.ones(len(classes))
        else:
            losses = (1.0 - true) ** 2
    return np.asarray(losses / largest_loss(name, several))


def mean_loss(
    losses: FloatArray, largest: float, epsilon: Fraction, source: NoiseSource, covers: Covers
) -> QueryResult:
    """Mean of losses of rows, each between 0 and 1, times ``largest``."""
    # Squares are needed for the sampling error only.
    squares = covers.population
    sums = release_parts(losses, epsilon, source, squares=squares)
    part = Noisy(sums, epsilon, STEPS)

    def mean(arrays: Sequence[FloatArray]) -> FloatArray:
        loss = arrays[0][..., :-1].sum(-1) / np.maximum(arrays[0].sum(-1), 1.0)
        return np.asarray(largest * loss)

    sampling = 0.0
    if squares:
        records = max(float(sums.sum()), 1.0)
        first, second = float(sums[:-1].sum()) / records, float(sums[0]) / records
        sampling = largest * float(np.sqrt(max(second - first**2, 0.0) / records))
    return judge(
        mean,
        [part],
        covers,
        span=(0.0, largest),
        known=_many(part),
        sampling_std=sampling,
    )


def _many(part: Noisy) -> bool:
    """Whether there are more records than noise."""
    return bool(part.values.sum() > 4 * np.sqrt(part.variance * part.values.size))


# --- numbers


def numbers_between(values: Labels, low: float, high: float) -> FloatArray:
    """Numbers as shares of the range, clipped to it; NaN where there is none."""
    numbers = np.clip(as_column(values, "y").numbers(), low, high)
    return np.asarray((numbers - low) / (high - low))


def number_moments(
    truth: FloatArray, guess: FloatArray, epsilon: Fraction, source: NoiseSource
) -> list[Noisy]:
    """Release the moments of errors and of the target, both as shares of the range."""
    # Privacy. Two releases of clipped integer moments in sequence: of the absolute errors at three
    # quarters of epsilon, because their squares are the smallest sum, and of the target at the
    # rest. A target that is missing is in the middle of the range, and its error the largest.
    of_errors, of_target = epsilon * 3 / 4, epsilon / 4
    wrong = release_parts(np.abs(truth - guess), of_errors, source, squares=True)
    middle = np.where(np.isnan(truth), 0.5, truth)
    target = release_parts(middle, of_target, source, squares=True)
    return [Noisy(wrong, of_errors, STEPS), Noisy(target, of_target, STEPS)]


def number_score(name: str, parts: Sequence[Noisy], width: float, covers: Covers) -> QueryResult:
    """Mean absolute error, mean squared error or R2 of released moments."""

    def statistic(arrays: Sequence[FloatArray]) -> FloatArray:
        absolute, squared = _moments(arrays[0])
        if name == "mae":
            return np.asarray(width * absolute)
        if name == "mse":
            return np.asarray(width**2 * squared)
        return np.asarray(1.0 - np.maximum(squared, 0.0) / _variance(arrays[1]))

    wrong, target = parts
    absolute, squared = (float(each) for each in _moments(wrong.values))
    variance = float(_variance(target.values))
    records = max(float(wrong.values.sum()), 1.0)
    # Errors and target as if they were normal: the fourth moment is three squares of the second.
    relative = np.sqrt(2.0 / records)
    sampling = {
        "mae": width * np.sqrt(max(squared - absolute**2, 0.0) / records),
        "mse": width**2 * relative * max(squared, 0.0),
        "r2": np.sqrt(2.0) * relative * max(squared, 0.0) / variance,
    }[name]
    span = {"mae": (0.0, width), "mse": (0.0, width**2), "r2": (-np.inf, 1.0)}[name]
    # A variance that the noise may have made is no denominator.
    known = _many(wrong) and (name != "r2" or records * variance > 4 * np.sqrt(target.variance))
    return judge(statistic, parts, covers, span=span, known=known, sampling_std=float(sampling))


def _moments(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and mean square of numbers from the sums of their parts."""
    records = np.maximum(sums.sum(-1), 1.0)
    return sums[..., :2].sum(-1) / records, sums[..., 0] / records


def _variance(sums: FloatArray) -> FloatArray:
    """Variance, at least the square of one step of the grid: a constant target has a score."""
    mean, square = _moments(sums)
    return np.asarray(np.maximum(square - mean**2, 1.0 / STEPS))
