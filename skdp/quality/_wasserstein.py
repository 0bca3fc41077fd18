"""How far the values of a column would have to move to become those of another table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..domain import Categorical, Domain

__all__ = ["displacement", "is_ordered", "wasserstein"]


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
