"""Values dealt to the rows of strata, evenly along an order of the rows."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..._arrays import exclusive_cumsum
from ..._types import FloatArray, IntArray

__all__ = ["GOLDEN", "deal", "places", "share_of", "sort_within"]

# The irrational number whose multiples are spread most evenly.
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
# Shares by which columns are dealt, in turn: with the same one they would depend on each other.
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83)


def share_of(number: int) -> float:
    """Share by which a column of this number is dealt."""
    return math.sqrt(_PRIMES[number % len(_PRIMES)]) % 1.0


def sort_within(order: IntArray, keys: NDArray[np.integer]) -> IntArray:
    """An order of rows, sorted by keys of the rows; rows with equal keys keep their order.

    Parameters
    ----------
    order : ndarray of int, shape (n_rows,)
    keys : ndarray of int, shape (n_rows,)
        Not negative.
    """
    ordered = keys[order]
    largest = int(ordered.max(initial=0))
    # Short integers are sorted by counting.
    kind = np.uint8 if largest < 1 << 8 else np.uint16 if largest < 1 << 16 else np.int64
    found: IntArray = order[np.argsort(ordered.astype(kind), kind="stable")]
    return found


def places(sizes: IntArray, share: float | FloatArray, generator: np.random.Generator) -> IntArray:
    """A place in its stratum for each row, each place once, so that neighbours are far apart.

    Row i has the place ``i * step + start`` modulo the size of the stratum. The start is random.
    The step is near a share of the size and has no factor in common with it.

    Parameters
    ----------
    sizes : ndarray of int, shape (n_strata,)
    share : float or ndarray of shape (n_strata,)
        Between 0 and 1.
    generator : numpy.random.Generator

    Returns
    -------
    ndarray of int64, shape (sum of sizes,)
        Those of the first stratum first.
    """
    sizes = sizes.astype(np.int64)
    step = np.maximum(np.rint(sizes * share).astype(np.int64), 1)
    while (shared := np.gcd(step, sizes) > 1).any():
        step[shared] += 1
    start = np.floor(generator.random(len(sizes)) * sizes).astype(np.int64)
    place = np.arange(int(sizes.sum()))
    place -= np.repeat(exclusive_cumsum(sizes), sizes)
    place *= np.repeat(step, sizes)
    place += np.repeat(start, sizes)
    place %= np.repeat(sizes, sizes)
    return place


def deal(
    line: NDArray[np.int32], sizes: IntArray, share: float, generator: np.random.Generator
) -> NDArray[np.int32]:
    """Values of each stratum, dealt to its rows so that consecutive rows get each in its share.

    Parameters
    ----------
    line : ndarray of int32, shape (sum of sizes,)
        The values of the first stratum, sorted, then those of the next.
    sizes, share, generator
        As for `places`.

    Returns
    -------
    ndarray of int32, shape (sum of sizes,)
    """
    place = places(sizes, share, generator)
    place += np.repeat(exclusive_cumsum(sizes), sizes)
    dealt: NDArray[np.int32] = line[place]
    return dealt
