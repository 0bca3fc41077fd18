"""Noisy sums over the groups of all columns: what each column may spend, and totals that agree."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..._types import FloatArray, IntArray
from ...mechanisms import discrete_laplace, discrete_laplace_variance

__all__ = ["agreed", "column_shares", "measure_columns", "total_of"]


def column_shares(n_groups: Sequence[int]) -> list[Fraction]:
    """Share of each column of a budget: the cube root of its number of groups.

    Noise of n groups adds up to n / share**2; these shares make the sum over the columns least.
    """
    roots = [round(64 * n ** (1 / 3)) for n in n_groups]
    return [Fraction(root, sum(roots)) for root in roots]


def measure_columns(
    exact: Sequence[IntArray], epsilon: Fraction, sensitivity: int, random_state: Any
) -> tuple[list[FloatArray], list[float]]:
    """Sums of each column with noise, and the variance of the noise.

    Parameters
    ----------
    exact : sequence of ndarray of shape (n_groups, n_sums)
        Of each column.
    epsilon : Fraction
        Of all columns together.
    sensitivity : int
        Largest sum of absolute changes of one column when a record is added or removed.
    random_state : NoiseSource
    """
    # Privacy. Released: the sums of each column, which one record changes by at most `sensitivity`
    # in all, with noise for the column's share of epsilon. The shares follow from public numbers
    # of groups and sum to 1: sequential composition over the columns.
    noisy, variances = [], []
    for table, share in zip(exact, column_shares([len(each) for each in exact]), strict=True):
        part = epsilon * share
        found = discrete_laplace(table, part, sensitivity, random_state=random_state)
        noisy.append(found.astype(np.float64))
        variances.append(discrete_laplace_variance(part, sensitivity))
    return noisy, variances


def total_of(tables: Sequence[FloatArray], variances: Sequence[float]) -> FloatArray:
    """Sums over all records: what the columns say, weighted by precision, (n_sums,)."""
    weights = [1.0 / (len(t) * v) for t, v in zip(tables, variances, strict=True)]
    return np.average([table.sum(axis=0) for table in tables], axis=0, weights=weights)


def agreed(tables: Sequence[FloatArray], variances: Sequence[float]) -> list[FloatArray]:
    """The same sums, shifted so that those of every column add up to the same totals."""
    total = total_of(tables, variances)
    return [table + (total - table.sum(axis=0)) / len(table) for table in tables]
