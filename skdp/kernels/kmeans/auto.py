"""The default of DPKMeans: a noisy grid or tree, then rounds that measure residuals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ..._types import BoolArray, FloatArray, IntArray
from .assign import nearest
from .lloyd import best_kmeans, lloyd_on_cells, swapped
from .ranges import MOST_FLAT
from .rows import Round, noisy_round
from .sketch import Cloud, Sketch, first_sketch, weighted_sums
from .task import Clustering, Task, cluster_masses, cluster_released

__all__ = ["auto", "averaged_counts"]

# A grid is used in flat data if N epsilon / k is at most this.
_GRID_PAYS = 400
# Rounds follow if N epsilon / k^2 is larger.
_ROUNDS_PAY_FLAT = 40
_ROUNDS_PAY = 10
# Residuals are clipped at a multiple of their mean L1 norm: the largest for which noise adds at
# most this share to the mean squared distance.
_REACHES = (2.0, 1.5, 1.0)
_LITTLE = 0.0005
# Share of a round for its counts.
_COUNT_SHARE = Fraction(3, 50)
# In more than three dimensions a first round takes this share of what the tree leaves.
_FIRST_ROUND = Fraction(2, 5)
# It measures more centroids than requested: at most this many for each, this many in total, and as
# many as this bound on their noise allows; they start from this many sets. If many are
# requested, there are this many for each.
_SPLIT = 6
_MOST_SPLIT = 60
_SPLIT_MANY = 3
_SPLIT_NOISE = 0.15
_SPLIT_STARTS = 6
# This many of the best sets on the means are tried on the cloud.
_FINALISTS = 4


def auto(task: Task) -> Clustering:
    """The recommended algorithm: grid or tree, many starts on it, rounds of clipped residuals.

    Privacy: the number of records, then the grid, or margins and tree, then one or two rounds,
    each with its budget; how the budget is divided is decided by the first release and public
    facts. The radii to which residuals are clipped, the starts and the number of clusters are
    read from releases.
    """
    flat = task.n_axes <= MOST_FLAT
    n = task.measure_total()
    budget = task.parts["clustering"]
    k = max(task.clusters)
    rounds = n * float(budget) / k**2 > (_ROUNDS_PAY_FLAT if flat else _ROUNDS_PAY)
    few = n * float(budget) <= _GRID_PAYS * k
    task.progress("boxes")
    sketch = first_sketch(task, n, budget, rounds, few)
    release = sketch.release
    task.progress("clusters of the boxes")
    cloud = sketch.cloud
    judged = (cloud.points, cloud.weights) if len(cloud.weights) else None
    centroids, validity = cluster_released(
        task, sketch.centers, sketch.masses, sketch.ranges, judged
    )
    if task.init is None and len(sketch.centers):
        centroids = swapped(sketch.centers, sketch.masses, centroids, task.shape)
    counts = cluster_masses(sketch.centers, sketch.masses, centroids)
    if rounds and len(sketch.centers):
        left = sketch.left
        task.progress("means of the clusters")
        if not flat:
            cloud, centroids = _first_round(task, sketch, centroids, left * _FIRST_ROUND)
            left -= left * _FIRST_ROUND
        measured = _round(task, cloud, centroids, left)
        centroids, counts = measured.means, measured.counts
    return replace(release, centroids=centroids, counts=counts, validity=validity)


@dataclass(frozen=True)
class _Measured:
    """The state after a round.

    Attributes
    ----------
    cloud : Cloud
        With the counts and means of the clusters as measured.
    means : ndarray of float64, shape (k, d)
    counts : ndarray of float64, shape (k,)
    sure : ndarray of bool, shape (k,)
        Whether the count stands out from its noise.
    """

    cloud: Cloud
    means: FloatArray
    counts: FloatArray
    sure: BoolArray


def _first_round(
    task: Task, sketch: Sketch, centroids: FloatArray, budget: Fraction
) -> tuple[Cloud, FloatArray]:
    """A round with more centroids than requested, then k-means on the cloud that it corrects.

    The means of parts of a cluster show where the boxes were too coarse, and starts are compared
    again on better points.
    """
    k, d = centroids.shape
    n = float(sketch.cloud.weights.sum())
    affordable = int(_SPLIT_NOISE * float(budget) * n / d)
    parts = min(_SPLIT * k, len(sketch.masses), affordable, max(_MOST_SPLIT, _SPLIT_MANY * k))
    if parts <= k or task.init is not None:
        measured = _round(task, sketch.cloud, centroids, budget)
        candidates = measured.means[None]
    else:
        starts = task.greedy_starts(
            sketch.centers, sketch.masses, parts, _SPLIT_STARTS, sketch.ranges
        )
        finer = best_kmeans(sketch.centers, sketch.masses, starts, task.shape)[0]
        measured = _round(task, sketch.cloud, finer, budget)
        candidates = centroids[None]
        means, counts = measured.means[measured.sure], measured.counts[measured.sure]
        if len(means) >= k:
            starts = np.concatenate(
                [
                    task.greedy_starts(means, counts, k, task.n_init, sketch.ranges),
                    centroids[None],
                ]
            )
            found = lloyd_on_cells(means, counts, starts, task.shape)
            best = np.argsort(found[1], kind="stable")[:_FINALISTS]
            candidates = np.concatenate([candidates, found[0][best]])
    cloud = measured.cloud
    final = best_kmeans(cloud.points, cloud.weights, candidates, task.shape)[0]
    if task.init is None:
        final = swapped(cloud.points, cloud.weights, final, task.shape)
    return cloud, final


def _round(task: Task, cloud: Cloud, centroids: FloatArray, budget: Fraction) -> _Measured:
    """One private round; the cloud gives the radii of clipping and a prior of the counts."""
    k, d = centroids.shape
    n = float(cloud.weights.sum())
    frozen = np.rint(centroids).astype(np.int64)
    labels = nearest(cloud.points, frozen.astype(np.float64))
    mass: FloatArray = np.bincount(labels, cloud.weights, minlength=k).astype(np.float64)
    residual = cloud.points - frozen[labels]
    spread = _spread(residual, cloud.weights, labels, mass)
    epsilon_count = budget * _COUNT_SHARE
    epsilon_sum = budget - epsilon_count
    factor = _reach(spread, mass, n, d, float(epsilon_sum))
    reach = np.clip(np.ceil(factor * spread), 1, sum(task.shape)).astype(np.int64)
    released = noisy_round(task.points, frozen, reach, epsilon_count, epsilon_sum, task.source)

    counts, sure = averaged_counts(released, mass, n)
    size = np.maximum(counts, 1.0)
    expected = weighted_sums(residual, cloud.weights, labels, k) / np.maximum(mass, 1e-9)[:, None]
    steps = np.where(sure[:, None], released.sums / size[:, None] - expected, 0.0)
    steps = _pooled(steps, released.sum_variances / size**2, sure)

    top = np.array(task.shape) - 1.0
    moved = frozen + expected + steps
    points = np.clip(cloud.points + steps[labels], 0.0, top)
    scale = np.where(sure, counts / np.maximum(mass, 1e-9), 1.0)[labels]
    means = np.clip(moved, 0.0, top)
    return _Measured(Cloud(points, cloud.weights * scale), means, counts, sure)


def _spread(
    residual: FloatArray, weights: FloatArray, labels: IntArray, mass: FloatArray
) -> FloatArray:
    """Mean L1 norm of the residuals of each cluster of the cloud."""
    k, n = len(mass), float(weights.sum())
    length = np.abs(residual).sum(axis=1)
    # An almost empty cluster uses the mean over all clusters, in part.
    prior = 0.05 * n / k
    total = np.bincount(labels, weights * length, minlength=k)
    spread: FloatArray = (total + prior * (weights @ length) / n) / (mass + prior)
    return spread


def averaged_counts(released: Round, mass: FloatArray, n: float) -> tuple[FloatArray, BoolArray]:
    """Counts of clusters, and whether they stand out from their noise.

    They are averages of the released counts and those of the cloud, weighted by precision; the
    variance of the cloud is a guess.
    """
    guess = (0.3 * mass) ** 2 + (0.01 * n / len(mass)) ** 2
    precision = 1 / released.count_variance + 1 / guess
    counts = (released.counts / released.count_variance + mass / guess) / precision
    return counts, counts > 3 / np.sqrt(precision)


def _reach(spread: FloatArray, mass: FloatArray, n: float, d: int, epsilon: float) -> float:
    """Radius of clipping in mean L1 norms: the largest whose noise matters little."""
    size = np.maximum(mass, 0.05 * n / len(mass))
    noise = 2 * d**2 * float(mass @ (spread / (epsilon * size)) ** 2)
    fitting = [reach for reach in _REACHES if reach**2 * noise <= _LITTLE * (mass @ spread**2)]
    return fitting[0] if fitting else _REACHES[-1]


def _pooled(steps: FloatArray, noise: FloatArray, sure: BoolArray) -> FloatArray:
    """Steps shrunk toward zero: the noisiest steps shrink most.

    The spread beyond the noise is estimated by the method of moments, weighted by precision and
    repeated, because the weights depend on it.
    """
    squares = (steps**2).mean(axis=1)
    spread = float(np.median(squares)) + 1e-9
    for _ in range(8):
        weights = sure / (spread + noise) ** 2
        if not weights.any():
            break
        spread = max(float(weights @ (squares - noise) / weights.sum()), 0.0) + 1e-9
    return steps * (spread / (spread + noise))[:, None]
