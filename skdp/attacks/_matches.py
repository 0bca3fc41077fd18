"""Rows that occur in the synthetic table, and predicates from it that single out one row."""

from __future__ import annotations

import numpy as np

from .._types import IntArray
from ._scene import Scene, rows_as_numbers
from ._target import Target

__all__ = ["exact_matches", "singled_out"]

_PREDICATES = 1000
_TRIES = 4


def exact_matches(target: Target, scene: Scene) -> IntArray:
    """Guess "in" for a row that occurs once under attack and among the synthetic rows."""
    here, there = rows_as_numbers(scene.codes, target.rows)
    size = max(here.max(initial=-1), there.max(initial=-1)) + 1
    once = np.bincount(here, minlength=size)[here] == 1
    return (once & (np.bincount(there, minlength=size)[here] > 0)).astype(np.int64)


def singled_out(target: Target, scene: Scene) -> IntArray:
    """Guess "in" for a row that is the only one with some values of a synthetic row.

    A predicate is the values of a synthetic row in a random set of columns in which no other
    synthetic row has the same. 1,000 predicates are tried, of rows and columns drawn at random.

    References
    ----------
    M. Giomi, F. Boenisch, C. Wehmeyer, B. Tasnadi, "A unified framework for quantifying privacy
    risk in synthetic data", PoPETs 2023(2).
    """
    made = np.zeros(len(scene.codes), dtype=np.int64)
    n_columns, rng = scene.codes.shape[1], scene.rng
    found = 0
    for _ in range(_TRIES * _PREDICATES):
        size = int(rng.integers(min(2, n_columns), n_columns + 1))
        axes = rng.choice(n_columns, size, replace=False)
        values = target.rows[rng.integers(len(target.rows)), axes]
        if _matching(target.rows, axes, values).size != 1:
            continue
        found += 1
        rows = _matching(scene.codes, axes, values)
        if rows.size == 1:
            made[rows] = 1
        if found == _PREDICATES:
            break
    return made


def _matching(codes: np.ndarray, axes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Positions of the rows with these values in these columns."""
    rows = np.flatnonzero(codes[:, axes[0]] == values[0])
    for axis, value in zip(axes[1:], values[1:], strict=True):
        rows = rows[codes[rows, axis] == value]
    return rows
