"""Sample and aggregate (GUPT, Mohan and others): one output from those of many blocks of records.

A record is in one block, so it changes the output of one block at most, whatever is computed
there. Outputs are integers on a public grid.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from .._validation import FloatArray, IntArray, split_epsilon
from ..mechanisms import discrete_laplace, discrete_laplace_variance, select_on_line

AGGREGATES = ("mean", "winsorised", "median")
# Steps of the grid between the ends of the range of an output.
STEPS = 2**20
# The winsorised mean keeps what lies within so many distances between the quartiles of them.
_WIDENING = 2
# GUPT's N^0.4 blocks are too few: noise dominates (section 4.6.4 of the dissertation).
_POWER, _MOST_BLOCKS = 0.6, 2**16


class Aggregate(NamedTuple):
    """What is released of the outputs of all blocks, in steps of the grid.

    Attributes
    ----------
    values : ndarray of shape (n_outputs,)
    stds : ndarray of shape (n_outputs,)
        Standard deviation of the noise; NaN for medians.
    limits : ndarray of shape (n_outputs, 2)
        Between which the outputs of blocks were clipped.
    """

    values: FloatArray
    stds: FloatArray
    limits: FloatArray


def aggregate_parts(epsilon: Fraction, how: str, counted: bool) -> dict[str, Fraction]:
    """Parts of epsilon: the number of records, where it is paid for, quartiles, and the output.

    Parameters
    ----------
    epsilon : Fraction
    how : {"mean", "winsorised", "median"}
    counted : bool
        Whether the number of blocks follows from a noisy number of records.
    """
    left = Fraction(19, 20) if counted else Fraction(1)
    limits = left / 2 if how == "winsorised" else Fraction(0)
    return split_epsilon(epsilon, {"total": 1 - left, "limits": limits, "output": left - limits})


def paid_blocks(n_records: int, epsilon: Fraction, source: Any) -> int:
    """N^0.6 blocks, from a noisy number of records."""
    # Privacy. Released: the number of records, sensitivity 1.
    total = float(discrete_laplace(n_records, epsilon, random_state=source))
    return int(np.clip(round(max(total, 1.0) ** _POWER), 2, _MOST_BLOCKS))


def aggregate(outputs: IntArray, how: str, parts: Mapping[str, Fraction], source: Any) -> Aggregate:
    """Mean or median of the outputs of blocks, with noise.

    Parameters
    ----------
    outputs : ndarray of int, shape (n_blocks, n_outputs)
        From 0 to `STEPS`: private.
    how : {"mean", "winsorised", "median"}
    parts : mapping of str to Fraction
        See `aggregate_parts`.
    source : NoiseSource
    """
    # Privacy. A record replaces one row of `outputs`; their number is public or was released. Each
    # output has equal parts of epsilon, which add up. "mean": one value of a sum moves by at most
    # STEPS. "winsorised": the quartiles are two selections; clipped to limits that follow from
    # them, one value moves by at most their distance. "median": one selection.
    n_outputs = outputs.shape[1]
    each = {name: part / n_outputs for name, part in parts.items()}
    found: list[tuple[float, float, int, int]] = []
    for values in outputs.T:
        if how == "median":
            place = _quantile(values, 1, 2, each["output"], source)
            found.append((place, np.nan, 0, STEPS))
            continue
        low, high = 0, STEPS
        if how == "winsorised":
            low, high = _limits(values, each["limits"], source)
        sums = int((np.clip(values, low, high) - low).sum())
        noisy = discrete_laplace(sums, each["output"], high - low, random_state=source)
        std = np.sqrt(discrete_laplace_variance(each["output"], high - low)) / len(values)
        found.append((low + float(np.clip(noisy / len(values), 0, high - low)), std, low, high))
    table = np.array(found, dtype=np.float64)
    return Aggregate(table[:, 0], table[:, 1], table[:, 2:])


def _limits(values: IntArray, epsilon: Fraction, source: Any) -> tuple[int, int]:
    """Selected quartiles, widened; at least one step apart."""
    ends = [_quantile(values, p, 4, epsilon / 2, source) for p in (1, 3)]
    lower, upper = min(ends), max(ends)
    reach = _WIDENING * (upper - lower)
    low, high = max(lower - reach, 0), min(upper + reach, STEPS)
    return min(low, STEPS - 1), max(high, low + 1)


def _quantile(values: IntArray, p: int, t: int, epsilon: Fraction, source: Any) -> int:
    """A step of the grid whose rank is near p / t, selected among all steps."""
    # Privacy. With n values, `under` of them below z and `until` at or below it, the score of z is
    # -max(0, t under - p n, p n - t until). Replacing one value moves `under` and `until` by at
    # most one, so every score by at most t, up or down: a range of 2 t.
    distinct, counts = np.unique(values, return_counts=True)
    until = np.cumsum(counts)
    # Pieces: each value, and the gap after it; before the first value there may be a gap too.
    starts = np.stack([distinct, distinct + 1], axis=1).ravel()
    under = np.stack([until - counts, until], axis=1).ravel()
    upto = np.stack([until, until], axis=1).ravel()
    starts, under, upto = (np.append(0, each) for each in (starts, under, upto))
    ends = np.append(starts[1:], STEPS + 1)
    kept = ends > starts
    target = p * len(values)
    scores = -np.maximum(np.maximum(t * under - target, target - t * upto), 0)
    return select_on_line(
        starts[kept], scores[kept], STEPS + 1, epsilon, 2 * t, random_state=source
    )
