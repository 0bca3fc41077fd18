"""The algorithms behind `DPKMeans`: DPLloyd, DPLloyd-Impr, UGkM, MkM, EUGkM, Hybrid; a list of all.

Every algorithm takes a `Task`, spends exactly ``task.parts`` on its points and returns a
`Clustering`, which holds releases only. `algorithm_parts` gives the parts, which are computed from
public parameters, never from the data. Decisions that depend on the number of records (the size of
a grid, the number of rounds or blocks) use a noisy number, released first, or a public one: the
exact number would show in the shape of the release.

References
----------
D. Su, "Differentially private data publishing for data analysis", Purdue 2016, chapter 4;
A. Blum, C. Dwork, F. McSherry, K. Nissim, "Practical privacy: the SuLQ framework", PODS 2005
(DPLloyd); P. Mohan and others, "GUPT", SIGMOD 2012 (sample and aggregate); J. Zhang and others,
"PrivGene", SIGMOD 2013 (genetic).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from ..._validation import FloatArray, split_epsilon
from ...mechanisms import discrete_laplace
from ..grid import grid_size
from .auto import auto
from .genetic import genetic, sample_aggregate
from .lloyd import residual_sums, sphere_packing
from .projection import MANY_AXES, projected
from .sketch import full_grid_edges, measure_cells
from .task import Clustering, Task, cluster_masses, cluster_released

__all__ = ["ALGORITHMS", "GRID_ALGORITHMS", "algorithm_parts"]

# --- DPLloyd and DPLloyd-Impr: Lloyd's algorithm with noise in every round

# Rounds of DPLloyd, by default.
_ROUNDS = 5
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
    rounds = task.n_rounds or _ROUNDS
    share = task.parts["rounds"] / rounds / (task.n_axes + 1)
    for number in range(rounds):
        task.progress(f"round {number + 1} of {rounds}")
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
    rounds = task.n_rounds
    if rounds is None:
        rounds = lloyd_rounds(float(epsilon), task.measure_total(), k, task.n_axes)
    counts = np.zeros(k)
    for number in range(rounds):
        task.progress(f"round {number + 1} of {rounds}")
        centroids, counts = tuned_round(task, centroids, epsilon / rounds)
    return Clustering(centroids, counts)


# --- UGkM, MkM and EUGkM: k-means on a noisy grid; Hybrid: EUGkM, then a round of DPLloyd-Impr

# Largest number of cells of a grid that is released in full: bounds memory.
_MOST_CELLS = 2**18


def _measured_grid(task: Task, rule: str, n_records: int, epsilon: Fraction) -> Clustering:
    """The noisy grid of a rule, and the best k-means on its signed cells.

    Privacy: a record lies in one cell, and every cell gets noise of sensitivity 1: epsilon.
    """
    n_cells = grid_size(rule, n_records, epsilon, task.n_axes, task.theta)
    edges = full_grid_edges(task.shape, min(max(n_cells, 2.0), _MOST_CELLS))
    cells = measure_cells(task.points, edges, epsilon, None, task.source)
    weights = cells.counts.astype(np.float64)
    centroids, validity = cluster_released(task, cells.centers, weights)
    counts = cluster_masses(cells.centers, weights, centroids)
    return Clustering(centroids, counts, cells, edges, epsilon, validity)


def grid(task: Task, rule: str) -> Clustering:
    """K-means on a noisy grid: UGkM, MkM and EUGkM by the rule for its size.

    Parameters
    ----------
    task : Task
    rule : {"uniform", "m-estimator", "extended"}
        See `skdp.algorithms.grid.grid_size`.
    """
    return _measured_grid(task, rule, task.measure_total(), task.parts["grid"])


# Share of the variance of the grid that remains after the round, and of that of the round: Su's
# regression of errors on simulated data.
_GRID_SURVIVES, _ROUND_ADDS = 0.14, 0.42


def hybrid_share(
    epsilon: float, n_records: int, k: int, n_axes: int, theta: float
) -> Fraction | None:
    """Share of the grid, if less error is expected with a round than without, else None.

    The expected squared errors of a centroid on [-1, 1]^d are theoretical: V, the variance of
    a grid, and R, that of a round with the best split of its budget. After a round 0.14 V and
    0.42 R are left; the grid alone keeps all of V.

    Parameters
    ----------
    epsilon : float
    n_records : int
    k, n_axes : int
    theta : float
        Of the grid.

    Notes
    -----
    In the dissertation R is that of a round with an equal split, which is worse. Rounds alone are
    not compared, as in the dissertation's algorithm: their error depends on their starts, which the
    formula does not include. If the V of the grid alone were multiplied by 0.14 too, a round would
    never follow, since a part of a budget cannot give less variance.
    """
    growth = 2 * n_axes / (2 + n_axes)

    def grid_error(budget: float) -> float:
        scale = 3 * theta**growth * (n_records * budget) ** (4 / (2 + n_axes))
        return 2 * n_axes * float(k ** ((n_axes - 2) / n_axes)) / scale

    def round_error(budget: float) -> float:
        return 2 * k**2 * (n_axes + count_weight(n_axes)) ** 3 / (n_records * budget) ** 2

    shares = [Fraction(i, 20) for i in range(1, 20)]
    errors = [
        _GRID_SURVIVES * grid_error(float(f) * epsilon)
        + _ROUND_ADDS * round_error(float(1 - f) * epsilon)
        for f in shares
    ]
    best = int(np.argmin(errors))
    return shares[best] if errors[best] < grid_error(epsilon) else None


def hybrid(task: Task) -> Clustering:
    """An extended grid, then one improved Lloyd round from its centroids if it reduces the error.

    Privacy: the share of the grid follows from public facts and the noisy number of records; grid
    and round compose sequentially.
    """
    n = task.measure_total()
    epsilon = task.parts["clustering"]
    share = hybrid_share(float(epsilon), n, max(task.clusters), task.n_axes, task.theta)
    if share is None:
        return _measured_grid(task, "extended", n, epsilon)
    first = _measured_grid(task, "extended", n, share * epsilon)
    centroids, counts = tuned_round(task, first.centroids, epsilon - share * epsilon)
    return Clustering(
        centroids, counts, first.cells, first.edges, first.cell_epsilon, first.validity
    )


# --- the list of all

# Share of epsilon for the number of records, where it is not public.
_RECORDS_SHARE = Fraction(1, 50)


def algorithm_parts(
    algorithm: str, epsilon: Fraction, n_records: int | None, n_blocks: int | None = None
) -> dict[str, Fraction]:
    """Parts of the budget, from public parameters alone.

    With a public number of blocks, sample and aggregate need not know that of the records.
    """
    _, shares, needs_total = ALGORITHMS[algorithm]
    sized = n_blocks is not None and algorithm == "sample-aggregate"
    if needs_total and n_records is None and not sized:
        left = 1 - _RECORDS_SHARE
        shares = {name: share * left for name, share in shares.items()}
        shares["records"] = _RECORDS_SHARE
    return split_epsilon(epsilon, shares)


def _auto(task: Task) -> Clustering:
    """The recommended algorithm for the number of axes, which is public."""
    return projected(task) if task.n_axes > MANY_AXES else auto(task)


_ONE = Fraction(1)
_HALF = Fraction(1, 2)
# Name: the algorithm, the shares of its parts, and whether it must know the number of records.
ALGORITHMS: dict[str, tuple[Callable[[Task], Clustering], dict[str, Fraction], bool]] = {
    "auto": (_auto, {"clustering": _ONE}, True),
    "lloyd": (lloyd, {"rounds": _ONE}, False),
    "lloyd-improved": (lloyd_improved, {"rounds": _ONE}, True),
    "uniform-grid": (lambda task: grid(task, "uniform"), {"grid": _ONE}, True),
    "m-estimator": (lambda task: grid(task, "m-estimator"), {"grid": _ONE}, True),
    "extended-grid": (lambda task: grid(task, "extended"), {"grid": _ONE}, True),
    "hybrid": (hybrid, {"clustering": _ONE}, True),
    "sample-aggregate": (sample_aggregate, {"range": _HALF, "centroids": _HALF}, True),
    "genetic": (genetic, {"rounds": _ONE}, True),
}

# Algorithms that release a grid, on which the number of clusters can be chosen.
GRID_ALGORITHMS = ("auto", "uniform-grid", "m-estimator", "extended-grid", "hybrid")
