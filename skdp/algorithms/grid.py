"""UG and M-estimator grids: how finely to cut a coded domain, and the noisy count of every cell.

The rules are those of the uniform grid (UG, Qardaji, Yang, Li), of its extension to d dimensions
(EUG, Su) and of Lei's M-estimators; Identity counts every cell of the domain.

Privacy (neighbours add or remove one record): the size of the grid depends on public facts and on a
noisy total alone, so it is post-processing. A record lies in one grid cell, hence noise of
sensitivity 1 in every cell, empty ones included, costs ``epsilon`` once.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from .._validation import IntArray, as_between, integer_sums
from ..mechanisms import discrete_laplace
from ..release import Boxes, BoxModel, Intervals
from ..tables import CountTable

GRID_RULES = ("identity", "uniform", "extended", "m-estimator")


def grid_size(
    rule: str, n_records: float, epsilon: Fraction, n_axes: int, theta: float = 10.0
) -> float:
    """Number of grid cells by a published rule.

    Parameters
    ----------
    rule : {"identity", "uniform", "extended", "m-estimator"}
        "identity" keeps every cell of the domain; "uniform" is N epsilon / theta; "extended" is
        (N epsilon / theta)^(2d / (2 + d)), which balances noise against uneven spread in d
        dimensions; "m-estimator" is (N / sqrt(log N))^(2d / (2 + d)), whatever epsilon is.
    n_records : float
        A noisy or public number of records; below 2 counts as 2.
    epsilon : Fraction
        Budget of the counts.
    n_axes : int
    theta : float, default=10.0
        Records times epsilon for one cell of "uniform".

    References
    ----------
    W. Qardaji, W. Yang, N. Li, "Differentially private grids for geospatial data", ICDE 2013;
    J. Lei, "Differentially private M-estimators", NeurIPS 2011; D. Su, dissertation, Purdue 2016.
    """
    n = max(float(n_records), 2.0)
    growth = 2 * n_axes / (2 + n_axes)
    if rule == "identity":
        return math.inf
    if rule == "uniform":
        return n * float(epsilon) / theta
    if rule == "extended":
        return float((n * float(epsilon) / theta) ** growth)
    if rule == "m-estimator":
        return float((n / math.sqrt(math.log(n))) ** growth)
    raise ValueError(f"rule must be one of {GRID_RULES}, got {rule!r}.")


def as_theta(value: Any) -> float:
    """Read the constant of `grid_size`, from 0.001 to 1,000,000."""
    return float(as_between(value, "theta", Fraction(1, 1000), 10**6))


def grid_sides(shape: Sequence[int], n_cells: float) -> tuple[int, ...]:
    """Parts of each axis: equal, except for axes with fewer codes, and at least ``n_cells`` cells.

    The smallest s such that the product of min(s, size) over the axes reaches ``n_cells``; with
    axes that are long enough, s = ceil(n_cells^(1/d)).
    """
    parts = least_parts(
        max(shape), lambda parts: math.prod(min(size, parts) for size in shape) >= n_cells
    )
    return tuple(min(size, parts) for size in shape)


def least_parts(most: int, enough: Callable[[int], bool]) -> int:
    """Least number of parts from 1 to ``most`` that is enough, or ``most``, by bisection."""
    return 1 + bisect_left(range(1, most), True, key=enough)


def even_edges(size: int, parts: int) -> IntArray:
    """First codes of parts of an axis, of equal width up to rounding, and the end."""
    return np.arange(parts + 1, dtype=np.int64) * size // parts


def measure_grid(
    table: CountTable, sides: Sequence[int], epsilon: Fraction, *, random_state: Any = None
) -> BoxModel:
    """Noisy count of every grid cell, the cells in row-major order.

    Parameters
    ----------
    table : CountTable
    sides : sequence of int
        Parts of each axis, from public facts or released numbers.
    epsilon : Fraction
        A record changes one count by 1: discrete Laplace noise of sensitivity 1 in each cell.
    random_state : None, int or NoiseSource

    Returns
    -------
    BoxModel
        Signed counts: nothing is clamped. Intervals cover any spread of the records inside cells.
    """
    edges = [even_edges(size, side) for size, side in zip(table.shape, sides, strict=True)]
    cell = np.zeros(len(table.counts), dtype=np.int64)
    for axis, (edge, side) in enumerate(zip(edges, sides, strict=True)):
        cell = cell * side + np.searchsorted(edge, table.codes[:, axis], side="right") - 1
    exact = integer_sums(cell, math.prod(sides), table.counts)
    counts = discrete_laplace(exact, epsilon, random_state=random_state)
    places = np.indices(tuple(sides)).reshape(len(sides), -1)
    lower, upper = (
        np.stack([edge[place + end] for edge, place in zip(edges, places, strict=True)], axis=1)
        for end in (0, 1)
    )
    return BoxModel(Boxes(lower, upper), counts, table.shape, Intervals(epsilon, "any"))
