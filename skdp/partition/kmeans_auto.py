"""The recommended private k-means: a thresholded grid, then rounds that measure residuals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from skdp.mechanisms import discrete_laplace_variance
from skdp.partition.grid import grid_size
from skdp.partition.kmeans import (
    Cells,
    FloatArray,
    best_kmeans,
    grid_edges,
    measure_cells,
    nearest,
    noisy_round,
)
from skdp.partition.kmeans_task import Clustering, Task, cluster_masses, cluster_released

__all__ = ["auto"]


# Records per unit of noise that a grid cell should have, up to three dimensions and beyond.
_THETA_FLAT = 5.0
_THETA = 10.0
_MOST_CELLS_FLAT = 2**15
_MOST_CELLS = 2**18
# Up to so many cells the whole grid is released, not only the cells above the threshold.
_MOST_DENSE = 2**15
# Axes that a grid halves at most: a cluster across c cuts falls apart into 2^c cells.
_MOST_AXES = 12
# A cell is kept from this part of the threshold on by itself, and among crowded neighbours.
_ALONE, _AMONG = 0.8, 0.3
# How far neighbours have to stand out together, in standard deviations of their noise.
_CROWDED = 2.0
# Budget of the grid where rounds follow.
_GRID_SHARE_FLAT = Fraction(4, 5)
_GRID_SHARE = Fraction(2, 5)
# Rounds follow if N epsilon / k^2 is larger.
_ROUNDS_PAY_FLAT = 40
_ROUNDS_PAY = 10
# Residuals are clipped at this multiple of their mean L1 norm.
_REACH = 1.0
_COUNT_SHARE = Fraction(3, 50)
# Beyond three dimensions a first round takes this part of what the grid leaves.
_FIRST_ROUND = Fraction(2, 5)
# It measures more centroids than wanted, as far as their noise allows.
_SPLIT = 4
_MOST_SPLIT = 60
_SPLIT_NOISE = 0.15


def auto(task: Task) -> Clustering:
    """The recommended algorithm: sparse grid, many starts on it, rounds of clipped residuals.

    Privacy: the number of records, then the grid, then one or two rounds, each with its budget;
    how the budget is divided is decided by the first release and public facts. The radii to which
    residuals are clipped, the starts and the number of clusters are read from releases.
    """
    d = task.n_axes
    flat = d <= 3
    n = task.total()
    budget = task.parts["clustering"]
    k = max(task.clusters)
    rounds = n * float(budget) / k**2 > (_ROUNDS_PAY_FLAT if flat else _ROUNDS_PAY)
    grid = budget * (_GRID_SHARE_FLAT if flat else _GRID_SHARE) if rounds else budget
    edges = _auto_edges(task, n, grid)
    n_cells = math.prod(len(edge) - 1 for edge in edges)
    threshold = max(1, math.ceil(math.log(max(n_cells / 2, 1)) / float(grid)))
    dense = n_cells <= _MOST_DENSE
    cells = measure_cells(task.points, edges, grid, None if dense else threshold, task.source)
    kept = cells.select(_standing_out(cells.counts, edges, threshold, grid))
    centers, weights = kept.centers, kept.counts.astype(np.float64)

    centroids, validity = cluster_released(task, centers, weights, greedy=True)
    counts = cluster_masses(centers, weights, centroids)
    if rounds and len(kept.counts):
        refine = _Refinement(task, kept, n, grid, centers, weights)
        left = budget - grid
        if not flat:
            centroids = refine.first(centroids, left * _FIRST_ROUND)
            left -= left * _FIRST_ROUND
        measured = refine.round(centroids, left)
        steps = _james_stein(measured)
        centroids = np.clip(measured.frozen + steps, 0.0, np.array(task.shape) - 1.0)
        counts = measured.counts
    return Clustering(centroids, counts, cells, edges, grid, validity)


def _standing_out(
    counts: NDArray[np.int64], edges: list[NDArray[np.int64]], threshold: int, epsilon: Fraction
) -> NDArray[np.bool_]:
    """Cells that are hardly empty: by their own count, or with the help of their neighbours.

    In a dense grid a cell below the threshold is kept as well if the cells around it, 3 on every
    axis, stand out together. Otherwise the sparse rims of clusters would be lost.
    """
    sides = [len(edge) - 1 for edge in edges]
    if len(sides) > 3 or len(counts) != math.prod(sides):
        return counts >= threshold
    around = counts.reshape(sides)
    for axis, side in enumerate(sides):
        sums = np.concatenate([np.zeros_like(around.take([0], axis)), around.cumsum(axis)], axis)
        at = np.arange(side)
        upper, lower = np.minimum(at + 2, side), np.maximum(at - 1, 0)
        around = sums.take(upper, axis) - sums.take(lower, axis)
    noise = math.sqrt((3 ** len(sides) - 1) * discrete_laplace_variance(epsilon))
    crowded = around.ravel() >= threshold + _CROWDED * noise
    return (counts >= _ALONE * threshold) | (crowded & (counts >= _AMONG * threshold))


def _auto_edges(task: Task, n: int, epsilon: Fraction) -> list[NDArray[np.int64]]:
    d = task.n_axes
    size = grid_size("extended", n, epsilon, d, _THETA_FLAT if d <= 3 else _THETA)
    if d <= 3:
        return grid_edges(task.shape, min(max(size, 4.0), _MOST_CELLS_FLAT))
    if d <= _MOST_AXES:
        sides = max(2, math.floor(min(size, _MOST_CELLS) ** (1 / d)))
        return grid_edges(task.shape, sides**d)
    # With more axes a few are halved, drawn blindly; the rounds find the rest.
    edges = [np.array([0, size], dtype=np.int64) for size in task.shape]
    wide = [axis for axis in task.generator.permutation(d) if task.shape[axis] > 1]
    for axis in wide[:_MOST_AXES]:
        size = task.shape[axis]
        edges[axis] = np.array([0, size // 2, size], dtype=np.int64)
    return edges


@dataclass(frozen=True)
class _Measured:
    """Steps from the frozen centroids to the noisy means, and what is known of their noise.

    Attributes
    ----------
    frozen : ndarray of int64, shape (k, d)
    steps : ndarray of float64, shape (k, d)
        Zero for a count that does not stand out of its noise.
    variances : ndarray of float64, shape (k,)
        Of the noise of a step on each axis.
    counts : ndarray of float64, shape (k,)
    sure : ndarray of bool, shape (k,)
        Whether the count stands out.
    """

    frozen: NDArray[np.int64]
    steps: FloatArray
    variances: FloatArray
    counts: FloatArray
    sure: NDArray[np.bool_]


def _james_stein(measured: _Measured) -> FloatArray:
    """Steps shrunk each by itself: one no longer than its noise is noise."""
    d = measured.steps.shape[1]
    length = np.maximum((measured.steps**2).sum(axis=1), 1e-9)
    factor = np.clip(1 - max(d - 2, 0.5) * measured.variances / length, 0.0, 1.0)
    return measured.steps * factor[:, None]


def _pooled(measured: _Measured) -> FloatArray:
    """Steps shrunk by their common spread: of many short ones the noisiest shrink most.

    The spread beyond the noise is estimated by the method of moments, weighted by precision and
    repeated, because the weights depend on it.
    """
    noise = measured.variances
    squares = (measured.steps**2).mean(axis=1)
    spread = float(np.median(squares)) + 1e-9
    for _ in range(8):
        weights = measured.sure / (spread + noise) ** 2
        if not weights.any():
            break
        spread = max(float(weights @ (squares - noise) / weights.sum()), 0.0) + 1e-9
    return measured.steps * (spread / (spread + noise))[:, None]


@dataclass(frozen=True)
class _Refinement:
    """Rounds after a grid: what the grid knows tells how far to clip and how much to believe."""

    task: Task
    cells: Cells
    n_records: int
    epsilon: Fraction
    centers: FloatArray
    weights: FloatArray

    def first(self, centroids: FloatArray, budget: Fraction) -> FloatArray:
        """A round with more centroids than wanted, then k-means on their noisy means.

        The means inside parts of a cluster show where the grid was too coarse, and let the
        starts compete again on better points.
        """
        task = self.task
        k, d = centroids.shape
        affordable = _SPLIT_NOISE * float(budget) * self.n_records / (_REACH * d)
        parts = min(_SPLIT * k, len(self.weights), int(affordable), _MOST_SPLIT)
        split = parts > k and task.init is None
        if split:
            starts = task.greedy_starts(self.centers, self.weights, parts, 12)
            finer = best_kmeans(self.centers, self.weights, starts, task.shape)[0]
        measured = self.round(finer if split else centroids, budget)
        steps = _pooled(measured) if split else _james_stein(measured)
        means = np.clip(measured.frozen + steps, 0.0, np.array(task.shape) - 1.0)
        if not split:
            return means
        means, counts = means[measured.sure], measured.counts[measured.sure]
        if len(means) < k:
            return centroids
        starts = task.greedy_starts(means, counts, k, task.n_init)
        return best_kmeans(means, counts, starts, task.shape)[0]

    def round(self, centroids: FloatArray, budget: Fraction) -> _Measured:
        """One private round, its counts joined with those of the grid."""
        task = self.task
        k = len(centroids)
        labels = nearest(self.centers, centroids)
        masses, variances = self._masses(labels, k)
        spread = self._spread(centroids, labels, k)
        frozen = np.rint(centroids).astype(np.int64)
        reach = np.clip(np.ceil(_REACH * spread), 1, sum(task.shape)).astype(np.int64)
        epsilon_count = budget * _COUNT_SHARE
        released = noisy_round(
            task.points, frozen, reach, epsilon_count, budget - epsilon_count, task.source
        )
        # Two views of the same count, weighted by their precision.
        precision = 1 / released.count_variance + 1 / variances
        counts = (released.counts / released.count_variance + masses / variances) / precision
        sure = counts > 3 / np.sqrt(precision)
        size = np.maximum(counts, 1.0)
        steps = np.where(sure[:, None], released.sums / size[:, None], 0.0)
        return _Measured(frozen, steps, released.sum_variances / size**2, counts, sure)

    def _masses(self, labels: NDArray[np.int64], k: int) -> tuple[FloatArray, FloatArray]:
        """Counts of the clusters by the grid, brought to the total, and their variances."""
        scale = self.n_records / self.weights.sum()
        masses = scale * np.bincount(labels, weights=self.weights, minlength=k)
        noise = discrete_laplace_variance(self.epsilon) * np.bincount(labels, minlength=k)
        # The cells below the threshold and those across a border are guessed.
        lost = (0.5 * float(self.weights.min())) ** 2
        return masses, scale**2 * noise + (0.3 * masses) ** 2 + lost

    def _spread(self, centroids: FloatArray, labels: NDArray[np.int64], k: int) -> FloatArray:
        """Mean L1 distance to the centroid of each cluster, records even inside cells."""
        half = (self.cells.upper - self.cells.lower) / 2
        away = np.abs(self.centers - centroids[labels])
        inside = (away**2 + half**2) / (2 * half)
        distance = np.where(away < half, inside, away).sum(axis=1)
        masses = np.bincount(labels, weights=self.weights, minlength=k)
        pooled = self.weights @ distance / self.weights.sum()
        prior = 0.05 * masses.mean()
        sums = np.bincount(labels, weights=self.weights * distance, minlength=k)
        spread: FloatArray = (sums + prior * pooled) / (masses + prior)
        return spread
