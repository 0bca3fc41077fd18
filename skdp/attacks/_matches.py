"""Rows that occur in the synthetic table, and predicates from it that single out one row."""

from __future__ import annotations

import numpy as np

from .._types import IntArray
from ._scene import Scene, rows_as_numbers
from ._target import Target

__all__ = ["exact_matches", "singled_out"]

_SETS = 32


def exact_matches(target: Target, scene: Scene) -> IntArray:
    """Guess "in" for a row that occurs once under attack and among the synthetic rows."""
    here, there = rows_as_numbers(scene.codes, target.rows)
    size = max(here.max(initial=-1), there.max(initial=-1)) + 1
    once = np.bincount(here, minlength=size)[here] == 1
    return (once & (np.bincount(there, minlength=size)[here] > 0)).astype(np.int64)


def singled_out(target: Target, scene: Scene) -> IntArray:
    """Guess "in" for a row that values of synthetic rows single out, in most sets of columns.

    The predicates are the values of a synthetic row in a set of columns, where no other synthetic
    row has the same values: one that is true of a single row under attack singles it out. Drawn are
    32 sets, each of half of the columns or more.

    References
    ----------
    M. Giomi, F. Boenisch, C. Wehmeyer, B. Tasnadi, "A unified framework for quantifying privacy
    risk in synthetic data", PoPETs 2023(2).
    """
    n_columns, rng = scene.codes.shape[1], scene.rng
    times = np.zeros(len(scene.codes), dtype=np.int64)
    for _ in range(_SETS):
        size = int(rng.integers((n_columns + 1) // 2, n_columns + 1))
        axes = rng.choice(n_columns, size, replace=False)
        here, there = rows_as_numbers(scene.codes[:, axes], target.rows[:, axes])
        size = max(here.max(initial=-1), there.max(initial=-1)) + 1
        alone = [np.bincount(each, minlength=size)[here] == 1 for each in (here, there)]
        times += alone[0] & alone[1]
    return (2 * times > _SETS).astype(np.int64)
