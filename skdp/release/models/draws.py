"""Draws that several models share: positions inside ranges, and rows that agree with others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..._arrays import places_by_group, running_sums
from ..._types import BoolArray, CodeArray, FloatArray, IntArray

__all__ = ["codes_under", "draw_in_ranges", "patterns", "product_of_weights", "shared_keys"]

# Keys of rows stay below this.
_MOST_KEYS = 1 << 62


def draw_in_ranges(mass: FloatArray, first: IntArray, stop: IntArray, u: FloatArray) -> IntArray:
    """Positions drawn in proportion to ``mass`` between ``first`` and ``stop``, one for each row.

    A position without mass is never drawn where its range has any; where it has none, all
    positions of the range are equally likely.

    Parameters
    ----------
    mass : ndarray of shape (n_positions,)
        Not negative.
    first, stop : ndarray of int, shape (n_rows,)
        ``first < stop``.
    u : ndarray of shape (n_rows,)
        Uniform in [0, 1).

    Examples
    --------
    >>> mass = np.array([0.0, 0.5, 1.0, 0.0])
    >>> draw_in_ranges(mass, np.array([0, 0, 3]), np.array([2, 4, 4]), np.array([0.9, 0.4, 0.5]))
    array([1, 2, 3])
    """
    reach = running_sums(mass)
    low, high = reach[first], reach[stop]
    found = np.searchsorted(reach, low + u * (high - low), side="right") - 1
    found = np.clip(found, first, stop - 1)
    # Rounding may lead to a neighbour without mass: take the nearest position that has some.
    positions = np.arange(len(mass))
    before = np.maximum.accumulate(np.where(mass > 0, positions, -1))
    after = np.minimum.accumulate(np.where(mass > 0, positions, len(mass))[::-1])[::-1]
    nearest = np.where(before[found] >= first, before[found], after[found])
    evenly = first + np.floor(u * (stop - first)).astype(np.int64)
    chosen: IntArray = np.where(nearest < stop, nearest, np.minimum(evenly, stop - 1))
    return chosen


def codes_under(
    mass: FloatArray, weights: FloatArray | None, n_rows: int, generator: np.random.Generator
) -> IntArray:
    """Codes of one attribute in proportion to mass times weight; to the weight if that is zero.

    Parameters
    ----------
    mass : ndarray of shape (size,)
        Negative numbers count as zero.
    weights : ndarray of shape (size,), or None
        None: all codes count.
    n_rows : int
    generator : numpy.random.Generator
    """
    allowed = np.ones(len(mass)) if weights is None else weights
    law = np.maximum(mass, 0.0) * allowed
    law = law if law.any() else allowed
    zeros = np.zeros(n_rows, dtype=np.int64)
    return draw_in_ranges(law, zeros, zeros + len(law), generator.random(n_rows))


def product_of_weights(
    rows: CodeArray, start: FloatArray, weights: Mapping[int, FloatArray]
) -> FloatArray:
    """Weight of each row of codes under a condition."""
    product = start
    for axis, vector in weights.items():
        product = product * vector[rows[:, axis]]
    return product


def shared_keys(
    first: CodeArray, second: CodeArray, sizes: Sequence[int]
) -> tuple[IntArray, IntArray]:
    """A number for each row of two tables of codes: equal where the rows are equal."""
    both = np.concatenate([first, second]).astype(np.int64)
    keys = np.zeros(len(both), dtype=np.int64)
    n_keys = 1
    for column, size in enumerate(sizes):
        if n_keys * size >= _MOST_KEYS:
            distinct, keys = np.unique(keys, return_inverse=True)
            keys, n_keys = keys.reshape(-1).astype(np.int64), len(distinct)
        keys = keys * size + both[:, column]
        n_keys *= size
    return keys[: len(first)], keys[len(first) :]


def patterns(told: BoolArray) -> list[tuple[BoolArray, IntArray]]:
    """The distinct rows of a table of flags, and where each of them stands."""
    if not len(told):
        return []
    packed = np.packbits(told, axis=1)
    _, first, inverse = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    rows = places_by_group(inverse.reshape(-1), len(first))
    return [(told[start], same) for start, same in zip(first, rows, strict=True)]
