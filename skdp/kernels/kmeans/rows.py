"""Noisy counts and sums of clipped residuals: all that private k-means reads of the rows.

The same integers are computed for rows in memory and, by expressions, for rows in an engine.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from ..._random import NoiseSource
from ..._types import CodeArray, FloatArray, IntArray
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from ...rows import CodedRows, floor_positive, search_sorted
from .lloyd import BLOCK

__all__ = [
    "Points",
    "Round",
    "clipped",
    "count_points",
    "noisy_round",
    "noisy_sums",
    "residual_sums",
]

# Private points: rows of codes in memory, or in an engine.
Points = CodeArray | CodedRows


def count_points(points: Points) -> int:
    """Exact number of points: private."""
    if isinstance(points, CodedRows):
        return int(points.count(())[1].sum())
    return len(points)


def residual_sums(
    points: Points, centroids: IntArray, reach: IntArray | None
) -> tuple[IntArray, IntArray]:
    """Exact number of points of each centroid, and sums of their differences to it: private.

    Parameters
    ----------
    points : ndarray of int32, shape (n, d), or CodedRows
        In an engine, one pass over the rows gives the same integers.
    centroids : ndarray of int64, shape (k, d)
    reach : ndarray of int64, shape (k,), or None
        Largest L1 norm of a difference: a longer one is shrunk, toward zero on each axis. None
        shrinks none.

    Returns
    -------
    counts : ndarray of int64, shape (k,)
    sums : ndarray of int64, shape (k, d)
    """
    residuals = _Residuals(centroids, reach)
    if isinstance(points, CodedRows):
        return points.sums_by_label(residuals)
    return residuals.of_codes(points)


def clipped(residual: IntArray, length: IntArray, limit: IntArray) -> None:
    """Shrink rows, in place, whose L1 norm ``length`` is above their limit."""
    far = np.flatnonzero(length > limit)
    # Toward zero, so that the sum of absolute values cannot exceed the limit.
    shrunk = np.abs(residual[far]) * limit[far, None] // length[far, None]
    residual[far] = np.sign(residual[far]) * shrunk


@dataclass(frozen=True)
class _Residuals:
    """Clipped differences of rows to their nearest centroids, as `skdp.rows.LabelledSums`."""

    centroids: IntArray
    reach: IntArray | None

    @property
    def n_labels(self) -> int:
        """Number of centroids."""
        return len(self.centroids)

    def of_codes(self, codes: CodeArray) -> tuple[IntArray, IntArray]:
        """Counts and sums of rows in memory."""
        centroids, reach = self.centroids, self.reach
        k, d = centroids.shape
        counts = np.zeros(k, dtype=np.int64)
        sums = np.zeros((k, d), dtype=np.int64)
        weights = -2.0 * centroids.T.astype(np.float64)
        norms = (centroids.astype(np.float64) ** 2).sum(axis=1)
        step = max(1, BLOCK // (k + 2 * d))
        for first in range(0, len(codes), step):
            block = codes[first : first + step]
            labels = np.argmin(block.astype(np.float64) @ weights + norms, axis=1)
            residual = block - centroids[labels]
            if reach is not None:
                clipped(residual, np.abs(residual).sum(axis=1), reach[labels])
            counts += np.bincount(labels, minlength=k)
            for axis in range(d):
                # Exact in floats: partial sums are integers below 2**53.
                added = np.bincount(labels, weights=residual[:, axis], minlength=k)
                sums[:, axis] += added.astype(np.int64)
        return counts, sums

    def of_frame(self, frame: Any, names: Sequence[str], skipped: Any, engine: str) -> Any:
        """A lazy frame with the label of each row, and its clipped differences.

        All numbers are integers below 2**53, so that float64 holds each exactly, in any order.
        """
        points = {name: nw.col(name).cast(nw.Float64) for name in names}
        scores = self._scores(points)
        label = self._label(scores, skipped)
        steps = {
            name: points[name] - _of_label(self.centroids[:, axis].tolist())
            for axis, name in enumerate(names)
        }
        frame = frame.with_columns(**scores).with_columns(label=label)
        frame = frame.with_columns(**steps)
        if self.reach is None:
            return frame
        length = functools.reduce(operator.add, (nw.col(name).abs() for name in names))
        frame = frame.with_columns(length=length, limit=_of_label(self.reach.tolist()))
        return frame.with_columns(**{name: _clipped(name, engine) for name in names})

    def _scores(self, points: dict[str, Any]) -> dict[str, Any]:
        """Squared distance of a row to each centroid, minus the squared norm of the row."""
        norms = (self.centroids**2).sum(axis=1)
        return {
            f"score{j}": functools.reduce(
                operator.add,
                (value * float(-2 * c) for value, c in zip(points.values(), center, strict=True)),
            )
            + float(norm)
            for j, (center, norm) in enumerate(zip(self.centroids.tolist(), norms, strict=True))
        }

    def _label(self, scores: dict[str, Any], skipped: Any) -> Any:
        """Number of the nearest centroid, the first among equals; -1 for skipped rows."""
        least = nw.min_horizontal(*scores)
        label: Any = nw.lit(self.n_labels - 1)
        for j in reversed(range(self.n_labels - 1)):
            label = nw.when(nw.col(f"score{j}") == least).then(nw.lit(j)).otherwise(label)
        return nw.when(skipped).then(nw.lit(-1)).otherwise(label)


def _of_label(values: Sequence[int]) -> Any:
    """The value that belongs to the label of a row."""
    return search_sorted(nw.col("label"), [(j, float(v)) for j, v in enumerate(values)], 0.0)


def _clipped(name: str, engine: str) -> Any:
    """A difference, shrunk toward zero where the whole residual is longer than its limit."""
    step, length, limit = nw.col(name), nw.col("length"), nw.col("limit")
    # No division by zero even where the result is not used.
    shrunk = step.abs() * limit / nw.max_horizontal(length, nw.lit(1.0))
    shrunk = floor_positive(shrunk, engine).cast(nw.Float64)
    signed = nw.when(step < 0).then(0.0 - shrunk).otherwise(shrunk)
    return nw.when(length > limit).then(signed).otherwise(step)


@dataclass(frozen=True)
class Round:
    """The release of one private round.

    Attributes
    ----------
    counts : ndarray of int64, shape (k,)
    sums : ndarray of int64, shape (k, d)
        Noisy sums of the clipped differences to the frozen centroids.
    count_variance : float
    sum_variances : ndarray of float64, shape (k,)
        Variance of the noise of each sum of a cluster.
    """

    counts: IntArray
    sums: IntArray
    count_variance: float
    sum_variances: FloatArray


def noisy_round(
    points: Points,
    centroids: IntArray,
    reach: IntArray,
    epsilon_count: Fraction,
    epsilon_sum: Fraction,
    source: NoiseSource,
) -> Round:
    """Release how many points each centroid has, and the sums of their clipped residuals.

    Privacy. With the centroids frozen, a record belongs to one cluster j. It changes one count by
    1 (``epsilon_count``), and the sums of cluster j by an integer vector whose absolute values
    sum to at most reach[j]: a longer residual is shrunk toward zero in integer arithmetic, record
    by record (``epsilon_sum``). Clusters are disjoint, so the cost does not grow with k.

    Parameters
    ----------
    points : ndarray of int32, shape (n, d), or CodedRows
    centroids : ndarray of int64, shape (k, d)
        Released earlier, or public.
    reach : ndarray of int64, shape (k,)
        At least 1: largest L1 norm of a residual, computed from releases.
    epsilon_count, epsilon_sum : Fraction
    source : NoiseSource
    """
    counts, sums = residual_sums(points, centroids, reach)
    return noisy_sums(counts, sums, reach, epsilon_count, epsilon_sum, source)


def noisy_sums(
    counts: IntArray,
    sums: IntArray,
    reach: IntArray,
    epsilon_count: Fraction,
    epsilon_sum: Fraction,
    source: NoiseSource,
) -> Round:
    """Exact counts and sums with noise, as `noisy_round` says; parameters as there."""
    k = len(counts)
    noisy_counts = discrete_laplace(counts, epsilon_count, random_state=source)
    noisy_sums = np.empty_like(sums)
    variances = np.empty(k)
    for j in range(k):
        sensitivity = int(reach[j])
        noisy_sums[j] = discrete_laplace(sums[j], epsilon_sum, sensitivity, random_state=source)
        variances[j] = discrete_laplace_variance(epsilon_sum, sensitivity)
    return Round(noisy_counts, noisy_sums, discrete_laplace_variance(epsilon_count), variances)
