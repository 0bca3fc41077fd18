"""UGkM, MkM and EUGkM: k-means on a noisy grid; Hybrid: EUGkM, then a round of DPLloyd-Impr."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..grid import grid_size
from .dplloyd import count_weight, tuned_round
from .sketch import full_grid_edges, measure_cells
from .task import Clustering, Task, cluster_masses, cluster_released

__all__ = ["grid", "hybrid", "hybrid_share"]

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
