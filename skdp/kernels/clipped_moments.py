"""Sums of powers of numbers between 0 and 1, as noisy counts of parts of records.

A record is divided into parts that sum to 1: ``x`` and ``1 - x``, or ``x**2``, ``x - x**2`` and
``1 - x``. The sums of the parts together have the sensitivity of one count, and give the number of
records, the sum and the sum of squares.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from .._random import NoiseSource
from .._types import FloatArray, IntArray
from ..mechanisms import discrete_laplace

__all__ = ["STEPS", "on_grid", "release_parts"]

# Numbers from 0 to 1 are multiples of one part in this many.
STEPS = 2**20


def on_grid(numbers: FloatArray) -> IntArray:
    """Numbers between 0 and 1 as integers up to `STEPS`; NaN becomes the largest."""
    found = np.rint(np.clip(np.where(np.isnan(numbers), 1.0, numbers), 0.0, 1.0) * STEPS)
    return found.astype(np.int64)


def release_parts(
    numbers: FloatArray, epsilon: Fraction, source: NoiseSource, *, squares: bool
) -> FloatArray:
    """Noisy sums of the parts of all records, in records.

    Parameters
    ----------
    numbers : ndarray of float, shape (n_rows,)
        Clipped to [0, 1]; NaN counts as 1.
    epsilon : Fraction
    source : NoiseSource
    squares : bool
        Whether ``x`` is divided into its square and the rest.

    Returns
    -------
    ndarray of float, shape (2,) or (3,)
        Sums of ``x`` and ``1 - x``; or of ``x**2``, ``x - x**2`` and ``1 - x``.
    """
    # Privacy. Every record becomes, by itself, two or three integers that are not negative and
    # sum to STEPS exactly. Released are their sums over all records: one record changes them by
    # STEPS in all, and the noise of each sum has that sensitivity. No float is summed.
    first = on_grid(numbers)
    parts = [first, STEPS - first]
    if squares:
        square = (first * first + STEPS // 2) // STEPS
        parts = [square, first - square, STEPS - first]
    sums = np.array([part.sum() for part in parts], dtype=np.int64)
    noisy: FloatArray = discrete_laplace(sums, epsilon, STEPS, random_state=source) / STEPS
    return noisy
