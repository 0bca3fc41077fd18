"""Small helpers for arrays that several packages use: sums of pieces, sums of groups, runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._types import FloatArray, IntArray

Number = TypeVar("Number", bound=np.number)

# Positions closer than this (in bins) to an edge are on the edge: 0.3 is meant as the edge that
# float arithmetic puts at 0.30000000000000004.
_EDGE = 1e-9

# Rows of a batch: enough to outweigh the calls for it, few enough for a processor's cache.
BATCH_ROWS = 2**17


def batches(n: int) -> list[slice]:
    """Where the batches of n rows are.

    Examples
    --------
    >>> batches(200_000)
    [slice(0, 131072, None), slice(131072, 200000, None)]
    """
    return [slice(first, min(first + BATCH_ROWS, n)) for first in range(0, n, BATCH_ROWS)]


def exclusive_cumsum(values: NDArray[Number], axis: int | None = None) -> NDArray[Number]:
    """Sum of the elements before each one: where each of consecutive pieces begins.

    Parameters
    ----------
    values : ndarray
        Lengths of the pieces.
    axis : int, default=None
        Axis to sum along; None needs one dimension.

    Returns
    -------
    ndarray of the shape of ``values``

    Examples
    --------
    >>> exclusive_cumsum(np.array([3, 2, 5]))
    array([0, 3, 5])
    """
    return np.cumsum(values, axis=axis) - values


def places_by_group(groups: IntArray, n_groups: int) -> list[IntArray]:
    """Where the members of each group stand, ascending.

    Parameters
    ----------
    groups : ndarray of int, shape (n,), in 0..n_groups - 1
    n_groups : int

    Examples
    --------
    >>> [places.tolist() for places in places_by_group(np.array([1, 0, 1]), 3)]
    [[1], [0, 2], []]
    """
    ends = np.cumsum(np.bincount(groups, minlength=n_groups))
    return np.split(np.argsort(groups, kind="stable"), ends[:-1])


def running_sums(values: NDArray[Number]) -> NDArray[Number]:
    """Zero, then the sum up to and including each element: one more than there are elements.

    The sum of ``values[i:j]`` is the difference of elements ``j`` and ``i``.

    Parameters
    ----------
    values : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n + 1,)

    Examples
    --------
    >>> running_sums(np.array([3, 2, 5]))
    array([ 0,  3,  5, 10])
    """
    sums = np.cumsum(values)
    return np.concatenate([np.zeros(1, dtype=sums.dtype), sums])


def integer_sums(group: NDArray[Any], size: int, weights: NDArray[Any] | None = None) -> IntArray:
    """Sum of the whole numbers of each group, exactly.

    Parameters
    ----------
    group : ndarray of int, shape (n,)
        Group of each number, from 0 to ``size - 1``.
    size : int
        Number of groups.
    weights : ndarray of int, shape (n,), default=None
        The numbers; None counts.

    Returns
    -------
    ndarray of int64, shape (size,)

    Examples
    --------
    >>> integer_sums(np.array([0, 2, 2]), 3, np.array([5, 1, -4])).tolist()
    [5, 0, -3]
    """
    if weights is None or int(np.abs(weights).sum()) < 2**53:
        # No partial sum is larger, so all are exact in the floats of bincount.
        sums = np.bincount(group, weights=weights, minlength=size)
        return sums.astype(np.int64, copy=False)
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, group, weights)
    return total


def run_starts(values: NDArray[Any]) -> IntArray:
    """Where runs of equal numbers, or of equal rows, begin; there is at least one.

    Examples
    --------
    >>> run_starts(np.array([4, 4, 7, 7, 7, 4]))
    array([0, 2, 5])
    """
    changes = values[1:] != values[:-1]
    if changes.ndim > 1:
        changes = changes.any(axis=1)
    return np.flatnonzero(np.concatenate([[True], changes]))


def snapped(positions: ArrayLike) -> FloatArray:
    """Positions in bins, those that are all but at an edge moved onto it.

    Examples
    --------
    >>> snapped([0.1 + 0.2, 2.9999999999, 3.5]).tolist()
    [0.30000000000000004, 3.0, 3.5]
    """
    values = np.asarray(positions, dtype=np.float64)
    nearest = np.round(values)
    return np.where(np.abs(values - nearest) < _EDGE, nearest, values)


def ratio(wanted: FloatArray, found: FloatArray) -> FloatArray:
    """By what sums are multiplied to be those that are wanted; 0 where nothing was found."""
    return np.divide(wanted, found, out=np.zeros_like(found), where=found > 0)


def used_attributes(shape: Sequence[int]) -> list[int]:
    """Attributes with more than one code; the others carry no information."""
    return [axis for axis, size in enumerate(shape) if size > 1]
