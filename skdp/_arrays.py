"""Small array helpers that several layers use."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["exclusive_cumsum", "running_sums"]

Number = TypeVar("Number", bound=np.number)


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
