"""DPLloyd and DPLloyd-Impr: Lloyd's algorithm with noise in every round."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from ..._validation import FloatArray
from ...mechanisms import discrete_laplace
from .lloyd import residual_sums, sphere_packing
from .task import Clustering, Task

__all__ = ["count_weight", "lloyd", "lloyd_improved", "lloyd_rounds", "tuned_round"]

# Mean normalised coordinate of a centroid, estimated by Su on simulated data.
_RHO = 0.225


def lloyd_round(
    task: Task, centroids: FloatArray, epsilon_count: Fraction, epsilon_axis: Fraction
) -> tuple[FloatArray, FloatArray]:
    """One round with unclipped coordinates: centroids and noisy counts.

    Privacy: assignments use the frozen centroids, so a record is in one cluster. It changes one
    count by 1 (``epsilon_count``) and, on every axis, one sum of coordinates centred in the box by
    at most half the axis (``epsilon_axis`` each): epsilon_count + d * epsilon_axis in all. Empty
    clusters get the same noise.
    """
    frozen = np.rint(centroids).astype(np.int64)
    k, _ = frozen.shape
    exact, residuals = residual_sums(task.points, frozen, None)
    counts = discrete_laplace(exact, epsilon_count, random_state=task.source)
    moved = frozen.astype(np.float64)
    for axis, size in enumerate(task.shape):
        # Each row adds twice its distance to the middle of the axis: an integer of at most
        # size - 1.
        centred = 2 * (residuals[:, axis] + frozen[:, axis] * exact) + (1 - size) * exact
        sums = discrete_laplace(centred, epsilon_axis, max(1, size - 1), random_state=task.source)
        # If the noisy count is not positive, the sums are only noise, and the centroid stays.
        mean = np.divide(sums, counts, out=np.zeros(k), where=counts > 0)
        moved[:, axis] = np.where(counts > 0, (mean + size - 1) / 2, moved[:, axis])
    return np.clip(moved, 0.0, np.array(task.shape) - 1.0), counts.astype(np.float64)


def count_weight(n_axes: int) -> float:
    """Best budget of the count over that of one axis, (4 d rho^2)^(1/3)."""
    return float((4 * n_axes * _RHO**2) ** (1 / 3))


def tuned_round(
    task: Task, centroids: FloatArray, epsilon: Fraction
) -> tuple[FloatArray, FloatArray]:
    """A round with the best split of its budget between the count and the axes."""
    ratio = Fraction(count_weight(task.n_axes)).limit_denominator(1000)
    epsilon_axis = epsilon / (task.n_axes + ratio)
    return lloyd_round(task, centroids, epsilon - task.n_axes * epsilon_axis, epsilon_axis)


def lloyd(task: Task) -> Clustering:
    """DPLloyd: Lloyd's algorithm with noise in every round; uniform starts, equal budgets.

    Privacy: the rounds compose sequentially, each costs an equal part of "rounds".
    """
    (k,) = task.clusters
    centroids = task.init
    if centroids is None:
        centroids = task.generator.random((k, task.n_axes)) * (np.array(task.shape) - 1)
    counts = np.zeros(k)
    share = task.parts["rounds"] / task.n_rounds / (task.n_axes + 1)
    for number in range(task.n_rounds):
        task.progress(f"round {number + 1} of {task.n_rounds}")
        centroids, counts = lloyd_round(task, centroids, share, share)
    return Clustering(centroids, counts)


def lloyd_rounds(epsilon: float, n_records: int, k: int, n_axes: int) -> int:
    """Number of rounds, 2 to 7: each has enough budget to keep the error below 0.004 r^2."""
    least = math.sqrt(500 * k**3 * (n_axes + count_weight(n_axes)) ** 3) / n_records
    return int(min(7, max(2, epsilon // least)))


def lloyd_improved(task: Task) -> Clustering:
    """DPLloyd-Impr: sphere-packing starts, the best split of a round, and rounds by epsilon.

    Privacy: the number of rounds follows from the noisy or public number of records; the rounds
    share the part "rounds" equally.
    """
    (k,) = task.clusters
    centroids = task.init
    if centroids is None:
        centroids = sphere_packing(task.shape, k, 1, task.generator)[0]
    epsilon = task.parts["rounds"]
    rounds = lloyd_rounds(float(epsilon), task.measure_total(), k, task.n_axes)
    counts = np.zeros(k)
    for number in range(rounds):
        task.progress(f"round {number + 1} of {rounds}")
        centroids, counts = tuned_round(task, centroids, epsilon / rounds)
    return Clustering(centroids, counts)
