"""Rows of codes as integers: mixed-radix numbers, the first column most significant."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._arrays import batches
from .._types import CodeArray, IntArray

__all__ = ["KEY_LIMIT", "Packing", "pack", "unpack"]

# Keys are int64; a group of columns is packed into one key while its cells stay below this.
KEY_LIMIT = 2**62


def pack(columns: Sequence[Any], sizes: Sequence[int], start: Any) -> Any:
    """Number of each row, as arrays or as expressions of an engine.

    Parameters
    ----------
    columns : sequence of arrays or expressions
        Codes, one entry for each size.
    sizes : sequence of int
        Number of codes of each column.
    start : array of int64, or expression
        Zeros, as many as there are rows.
    """
    key = copy.copy(start)
    for column, size in zip(columns, sizes, strict=True):
        key *= size
        key += column
    return key


def unpack(key: IntArray, axes: Sequence[int], sizes: Sequence[int], codes: CodeArray) -> IntArray:
    """Write the codes of the packed ``axes`` and return the rest of the key, a rank."""
    left = np.empty_like(key)
    for part in batches(len(key)):
        rest = key[part]
        for axis in reversed(axes):
            whole = rest // sizes[axis]
            # Faster than `divmod`, whose remainder is a second division.
            codes[part, axis] = rest - whole * sizes[axis]
            rest = whole
        left[part] = rest
    return left


class Packing:
    """Rows of codes as one or a few int64 numbers each.

    Attributes
    ----------
    stages : list of list of int
        Positions of the attributes that share a number.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = list(sizes)
        self.stages: list[list[int]] = [[]]
        cells = 1
        for place, size in enumerate(sizes):
            if cells * size > KEY_LIMIT:
                self.stages.append([])
                cells = 1
            self.stages[-1].append(place)
            cells *= size

    def keys(self, columns: Sequence[Any], start: Any) -> list[Any]:
        """Pack columns of codes, arrays or expressions, beginning with a zero."""
        return [
            pack([columns[p] for p in stage], [self._sizes[p] for p in stage], start)
            for stage in self.stages
        ]

    def codes(self, keys: Sequence[IntArray]) -> CodeArray:
        """The rows of codes of packed numbers."""
        codes = np.empty((len(keys[0]), len(self._sizes)), dtype=np.int32, order="F")
        for stage, key in zip(self.stages, keys, strict=True):
            unpack(key, stage, self._sizes, codes)
        return codes
