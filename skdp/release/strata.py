"""Codes dealt to rows inside strata, evenly along an order of the rows."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .._arrays import exclusive_cumsum
from .._types import IntArray

__all__ = ["deal", "sort_within", "stable_order"]

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def stable_order(keys: IntArray) -> IntArray:
    """Positions that sort small whole numbers; equal ones keep their order."""
    largest = int(keys.max()) if len(keys) else 0
    # Short integers are sorted by counting.
    kind = np.uint8 if largest < 1 << 8 else np.uint16 if largest < 1 << 16 else np.int64
    order: IntArray = np.argsort(keys.astype(kind), kind="stable")
    return order


def sort_within(order: IntArray, keys: IntArray) -> IntArray:
    """An order of rows, sorted by keys of the rows."""
    return order[stable_order(keys[order])]


def deal(
    counts: IntArray, sizes: IntArray, generator: np.random.Generator, share: float = GOLDEN
) -> NDArray[np.int32]:
    """Values for the rows of each stratum, with given counts of each value.

    Consecutive rows of a stratum get each value in about its share: row i gets the value at place
    ``i * step + start`` (modulo the size) of the sorted values, where the step is near the golden
    section of the size and has no factor in common with it.

    Parameters
    ----------
    counts : ndarray of int, shape (n_strata, n_values)
    sizes : ndarray of int, shape (n_strata,)
        Sums of the rows of ``counts``.
    generator : numpy.random.Generator

    Returns
    -------
    ndarray of int32, shape (sum of sizes,)
        Those of the first stratum first.
    """
    values = np.tile(np.arange(counts.shape[1], dtype=np.int32), len(counts))
    return places_dealt(np.repeat(values, counts.ravel()), sizes, generator, share)


def places_dealt(
    line: NDArray[np.int32],
    sizes: IntArray,
    generator: np.random.Generator,
    share: float = GOLDEN,
) -> NDArray[np.int32]:
    """Values of a line that lists those of each stratum, dealt to its rows; see `deal`."""
    sizes = sizes.astype(np.int64)
    step = np.maximum(np.rint(sizes * share).astype(np.int64), 1)
    while (shared := np.gcd(step, sizes) > 1).any():
        step[shared] += 1
    start = np.floor(generator.random(len(sizes)) * sizes).astype(np.int64)
    first = exclusive_cumsum(sizes)
    # i * step + start - i of the whole line, without a look-up for each term.
    place = np.arange(int(sizes.sum()))
    place -= np.repeat(first, sizes)
    place *= np.repeat(step, sizes)
    place += np.repeat(start, sizes)
    place %= np.repeat(sizes, sizes)
    place += np.repeat(first, sizes)
    dealt: NDArray[np.int32] = line[place]
    return dealt
