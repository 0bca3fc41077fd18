"""Distances of marginals: total variation, and NIST's k-marginal score."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .._types import IntArray
from ..domain import Categorical, Domain

# --- how far the values of a column would have to move to become those of another table


def is_ordered(domain: Domain, axis: int) -> bool:
    """Whether values of a column have distances: numbers, dates and ordered categories."""
    attribute = domain.attributes[axis]
    plain = isinstance(attribute, Categorical) and not attribute.ordered
    return not plain and attribute.n_values > 1


def displacement(left: NDArray[np.integer], right: NDArray[np.integer], n_values: int) -> int:
    """The sum over the codes k of ``abs(m C_k - n S_k)``, an integer.

    C and S count the ``n`` left and ``m`` right codes up to k. A code of ``n_values``, which stands
    for a missing value, counts as above all others.
    """
    below = [
        np.cumsum(np.bincount(codes, minlength=n_values)[: n_values - 1]) for codes in (left, right)
    ]
    return int(np.abs(len(right) * below[0] - len(left) * below[1]).sum())


def wasserstein(left: NDArray[np.integer], right: NDArray[np.integer], n_values: int) -> float:
    """Mean distance that codes move, as a share of the range; NaN if a table is empty.

    Parameters
    ----------
    left, right : ndarray of int, shape (n,)
        Codes of one column in order; codes of missing values lie at the upper end of the range.
    n_values : int
        Number of codes without that of missing values, at least 2.
    """
    if not len(left) or not len(right):
        return float("nan")
    return displacement(left, right, n_values) / (len(left) * len(right) * (n_values - 1))


# --- distances of marginals

# Numbers are compared in at most this many groups of codes, as NIST's excerpts are, and
# categories in at most this many.
_GROUPS, _CATEGORIES = 20, 100
# If there are more sets of columns than this, a random subset of this size is compared.
_MOST_SETS = {1: 1000, 2: 1000, 3: 300}


def grouped(
    codes: NDArray[np.integer], domain: Domain
) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """Codes in groups, numbers of at most 20 and categories of at most 100, and their numbers.

    A missing value keeps a group of its own.
    """
    columns, shape = [], []
    for axis, attribute in enumerate(domain.attributes):
        whole = isinstance(attribute, Categorical) and not attribute.ordered
        n = attribute.n_values
        parts = min(n, _CATEGORIES if whole else _GROUPS)
        column = codes[:, axis].astype(np.int64)
        columns.append(np.where(column < n, column * parts // max(n, 1), parts))
        shape.append(parts + attribute.size - n)
    return np.column_stack(columns), tuple(shape)


def chosen_axes(n_columns: int, order: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """All sets of ``order`` columns, or a random subset if there are too many."""
    most = _MOST_SETS[order]
    if math.comb(n_columns, order) <= most:
        return list(itertools.combinations(range(n_columns), order))
    chosen: set[tuple[int, ...]] = set()
    while len(chosen) < most:
        chosen.add(tuple(sorted(rng.choice(n_columns, order, replace=False).tolist())))
    return sorted(chosen)


def _counts(
    left: NDArray[np.integer], right: NDArray[np.integer], shape: Sequence[int], axes: Sequence[int]
) -> tuple[IntArray, IntArray]:
    """Counts of both tables in the cells of a marginal; cells empty in both may be left out."""
    cells = []
    for codes in (left, right):
        cell = np.zeros(len(codes), dtype=np.int64)
        for axis in axes:
            cell = cell * shape[axis] + codes[:, axis]
        cells.append(cell)
    size = math.prod(shape[axis] for axis in axes)
    if size > 4 * (len(left) + len(right)) + 1000:
        found = np.unique(np.concatenate(cells), return_inverse=True)[1]
        cells, size = [found[: len(left)], found[len(left) :]], int(found.max(initial=-1)) + 1
    here, there = (np.bincount(cell, minlength=size).astype(np.int64) for cell in cells)
    return here, there


def imbalance(
    left: NDArray[np.integer], right: NDArray[np.integer], shape: Sequence[int], axes: Sequence[int]
) -> int:
    """The sum over the cells of ``abs(m c - n s)``, an integer.

    c and s are the counts of the ``n`` left and ``m`` right rows: over 2 n m it is the total
    variation distance.
    """
    here, there = _counts(left, right, shape, axes)
    return int(np.abs(len(right) * here - len(left) * there).sum())


def marginal_distance(
    left: NDArray[np.integer], right: NDArray[np.integer], shape: Sequence[int], axes: Sequence[int]
) -> float:
    """Total variation distance of one marginal; 1 if one of the tables is empty, 0 if both are."""
    n, m = len(left), len(right)
    if not n or not m:
        return float(n != m)
    return imbalance(left, right, shape, axes) / (2 * n * m)


def total_variation(
    records: NDArray[np.integer],
    synthetic: NDArray[np.integer],
    shape: Sequence[int],
    order: int = 2,
    columns: Sequence[int] | None = None,
) -> float:
    """Mean total variation distance of all marginals of ``order`` columns: 0 equal, 1 disjoint.

    Parameters
    ----------
    records, synthetic : ndarray of int, shape (n, d)
        Codes.
    shape : sequence of int
        Number of codes of each column.
    order : int, default=2
        Number of columns of a marginal.
    columns : sequence of int, default=None
        The columns to compare; by default all.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.quality import total_variation
    >>> total_variation(np.array([[0, 0], [1, 1]]), np.array([[0, 0], [0, 1]]), (2, 2))
    0.5
    """
    axes = range(len(shape)) if columns is None else columns
    return float(
        np.mean(
            [
                marginal_distance(records, synthetic, shape, chosen)
                for chosen in itertools.combinations(axes, order)
            ]
        )
    )


def k_marginal(
    records: NDArray[np.integer],
    synthetic: NDArray[np.integer],
    shape: Sequence[int],
    order: int = 2,
) -> float:
    """NIST's k-marginal score: (2 - L1 distance) * 500, mean of all marginals.

    Parameters
    ----------
    records, synthetic : ndarray of int, shape (n, d)
        Codes.
    shape : sequence of int
        Number of codes of each column.
    order : int, default=2
        Number of columns of a marginal.

    Returns
    -------
    float
        0 (disjoint) to 1,000 (equal).

    References
    ----------
    NIST, "Collaborative Research Cycle: SDNist deidentified data report tool", 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.quality import k_marginal
    >>> k_marginal(np.array([[0, 0], [1, 1]]), np.array([[0, 0], [0, 1]]), (2, 2))
    500.0
    """
    return 1000.0 * (1.0 - total_variation(records, synthetic, shape, order))
