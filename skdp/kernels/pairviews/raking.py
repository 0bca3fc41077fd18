"""Raking: weights of sampled records that agree with pairs beyond the tree.

Iterative proportional fitting, on weights of records instead of cells of a table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..._types import CodeArray, FloatArray
from ...release import PairTable, TreeDensity

__all__ = ["SAMPLED_ROWS", "rake"]

# Number of records sampled from the tree model.
SAMPLED_ROWS = 200_000


def rake(
    rows: CodeArray,
    tree: TreeDensity,
    pairs: Sequence[PairTable],
    rounds: int = 20,
) -> FloatArray:
    """Weights of sampled records that agree with the views of all attributes and pairs.

    Parameters
    ----------
    rows : ndarray of int32, shape (n_rows, n_attributes)
    tree : TreeDensity
        Its views of single attributes are kept, and its groups tell which codes pairs join.
    pairs : sequence of PairTable
    rounds : int

    Returns
    -------
    ndarray of float64, shape (n_rows,)
        Not negative, sum 1.
    """
    grouped = [
        rows[:, axis] if axis not in tree.groups else tree.groups[axis][rows[:, axis]]
        for axis in range(rows.shape[1])
    ]
    targets: list[tuple[NDArray[np.integer], FloatArray]] = []
    for pair in pairs:
        a, b = pair.axes
        cell = grouped[a].astype(np.int32) * np.int32(tree.sizes[b]) + grouped[b]
        targets.append((cell, pair.table.ravel()))
    for axis, mu in enumerate(tree.marginals):
        if len(mu) > 1:
            targets.append((np.ascontiguousarray(rows[:, axis]), mu))
    weights = np.full(len(rows), 1.0 / len(rows))
    for _ in range(rounds):
        for cell, target in targets:
            found = np.bincount(cell, weights=weights, minlength=len(target))
            ratio = np.divide(target, found, out=np.zeros_like(found), where=found > 0)
            # Much noise and rules of three columns can leave a view that no row agrees with.
            if ratio.any():
                weights *= ratio[cell]
    return weights / weights.sum()
