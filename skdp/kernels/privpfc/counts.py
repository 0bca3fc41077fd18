"""PrivPfC: the noisy counts of the selected grid."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..._types import IntArray
from ...mechanisms import discrete_laplace
from ...rows import CountTable

__all__ = ["measure_grid_counts"]


def measure_grid_counts(
    table: CountTable,
    groups: Sequence[IntArray],
    sizes: Sequence[int],
    epsilon: Fraction,
    *,
    random_state: Any = None,
) -> IntArray:
    """Noisy number of records in each cell and class.

    Parameters
    ----------
    table : CountTable
        The predictors that the grid uses, in order, and the class as the last attribute.
    groups : sequence of ndarray
        Group of each code of each predictor.
    sizes : sequence of int
        Number of groups of each predictor.
    epsilon : Fraction

    Returns
    -------
    counts : ndarray of shape (*sizes, n_classes), int64
    """
    # Privacy. A record is in one cell and one class, so adding it changes one count by one; every
    # count, empty ones included, gets its own noise. Cost: epsilon, once.
    n_classes = table.shape[-1]
    codes = [group[table.codes[:, axis]] for axis, group in enumerate(groups)]
    stacked = np.stack([*codes, table.codes[:, -1].astype(np.int64)], axis=1)
    shape = (*(int(size) for size in sizes), n_classes)
    exact = CountTable.from_codes(stacked, shape, table.counts).dense()
    return discrete_laplace(exact, epsilon, random_state=random_state)
