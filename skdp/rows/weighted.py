"""Sums of integers of the rows over the cells of many tables, in memory or batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from .._arrays import batches
from .._types import CodeArray, IntArray
from .coded import CodedRows
from .passes import Codes, Tallies, marginals_of, plan_pass, split

__all__ = ["weighted_tables"]


def weighted_tables(
    coded: CodeArray | CodedRows,
    shape: Sequence[int],
    sets: Sequence[Sequence[int]],
    numbers: Callable[[IntArray], Sequence[IntArray]],
) -> list[list[IntArray]]:
    """Sums over the cells of many tables of integers that the last attribute decides.

    Parameters
    ----------
    coded : ndarray of int32, shape (n, d), or CodedRows that give batches
        Rows with a negative code are skipped.
    shape : tuple of int
        Number of codes of each attribute.
    sets : sequence of sequence of distinct int
        Attributes of each table, without the last attribute.
    numbers : callable
        Turns codes of the last attribute into one array of integers or several.

    Returns
    -------
    list of list of ndarray of int64
        For each of these arrays the tables, in the order of ``sets``. They are exact.

    Raises
    ------
    EngineError
        If an engine fails.
    """
    last = len(shape) - 1
    many = len(numbers(np.zeros(0, dtype=np.int64)))
    found: list[list[IntArray]] = [[] for _ in range(many)]
    for some in split(marginals_of(shape, [(axes, [None] * len(axes)) for axes in sets])):
        blocks = plan_pass(some)
        tallies = [Tallies(some, blocks) for _ in range(many)]

        def add(codes: Codes, n_rows: int, to: list[Tallies] = tallies) -> None:
            for each, weights in zip(
                to, numbers(np.asarray(codes[last], dtype=np.int64)), strict=True
            ):
                each.add(codes, n_rows, weights)

        axes = sorted({*tallies[0].axes, last})
        if isinstance(coded, CodedRows):
            coded.each_batch(axes, add)
        else:
            for codes in _batches(coded, axes):
                add(codes, len(codes[last]))
        for tables, each in zip(found, tallies, strict=True):
            by_number = each.tables()
            tables += [by_number[number] for number in range(len(some))]
    return found


def _batches(coded: CodeArray, axes: Sequence[int]) -> Iterator[Codes]:
    for each in batches(len(coded)):
        part = coded[each]
        part = part[(part >= 0).all(axis=1)]
        yield {axis: part[:, axis] for axis in axes}
