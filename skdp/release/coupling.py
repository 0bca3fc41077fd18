"""Tables with given margins, and sums over groups of codes."""

from __future__ import annotations

import numpy as np

from .._types import FloatArray, IntArray

__all__ = ["couple"]


def couple(
    table: FloatArray, rows: FloatArray, columns: FloatArray, rounds: int = 20
) -> FloatArray:
    """Scale a table until its margins are exactly the given ones, without negative cells.

    Iterative proportional fitting comes close. Then rows and columns with too large sums are scaled
    down and the remainder is added as an outer product, which makes both margins exact for any
    table.

    Parameters
    ----------
    table : ndarray of shape (m, n)
        Not negative.
    rows, columns : ndarray of shape (m,), (n,)
        The margins to reach, not negative, with equal sums.
    rounds : int, default=20
        Number of rounds of the fitting.

    Returns
    -------
    ndarray of float64, shape (m, n)

    References
    ----------
    J. Altschuler, J. Weed, P. Rigollet, "Near-linear time approximation algorithms for optimal
    transport via Sinkhorn iteration", NeurIPS 2017 (the last step).
    """
    fitted = np.array(table, dtype=np.float64)
    for _ in range(rounds):
        fitted *= _ratio(rows, fitted.sum(axis=1))[:, None]
        fitted *= _ratio(columns, fitted.sum(axis=0))[None, :]
    fitted *= np.minimum(_ratio(rows, fitted.sum(axis=1)), 1.0)[:, None]
    fitted *= np.minimum(_ratio(columns, fitted.sum(axis=0)), 1.0)[None, :]
    below = np.maximum(rows - fitted.sum(axis=1), 0.0)
    right = np.maximum(columns - fitted.sum(axis=0), 0.0)
    missing = right.sum()
    if missing > 0:
        fitted += np.outer(below, right / missing)
    return fitted


def _ratio(wanted: FloatArray, found: FloatArray) -> FloatArray:
    return np.divide(wanted, found, out=np.zeros_like(found), where=found > 0)


def group_sums(values: FloatArray, groups: IntArray | None, n_groups: int) -> FloatArray:
    """Sums of ``values`` over the groups of codes; without groups the values themselves."""
    if groups is None:
        return values
    sums: FloatArray = np.bincount(groups, weights=values, minlength=n_groups).astype(
        np.float64, copy=False
    )
    return sums
