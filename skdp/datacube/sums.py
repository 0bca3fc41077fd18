"""Sums of a bounded column over the cells of cuboids, exact in integers."""

from __future__ import annotations

import math

import numpy as np

from .._arrays import integer_sums
from ..domain import Numeric
from ..exceptions import DomainError
from ..kernels import cuboids
from ..mechanisms._noise import BoundedGrid

__all__ = ["contributions_of", "sum_cells", "value_grid"]


def value_grid(domain, measure, value, resolution):
    """The grid of integers to which the summed column is rounded; None for counts."""
    if measure == "count":
        if value is not None or resolution is not None:
            raise ValueError(
                "value and resolution belong to measure='sum'; with measure='count' leave them out."
            )
        return None
    if value not in domain.names:
        raise DomainError(
            "measure='sum' needs value=, a Numeric column of the domain, which has "
            f"{list(domain.names)}; got {value!r}."
        )
    attribute = domain[value]
    if not isinstance(attribute, Numeric):
        raise DomainError(
            f"value={value!r} is declared Categorical; sums need a Numeric column, whose range "
            "bounds what a record adds."
        )
    if not attribute.summable:
        raise DomainError(f"value={value!r} holds dates, which have no sum; use measure='count'.")
    # Special values may lie outside of the range.
    reach = (attribute.lower, attribute.upper, *attribute.special)
    return BoundedGrid.of(min(reach), max(reach), resolution)


def contributions_of(column, attribute, grid):
    """Integer that each record adds to a sum, from its own value alone: 0 where it is missing."""
    values = column.numbers()
    missing = np.isnan(values)
    if attribute.special:
        inside = np.clip(values, attribute.lower, attribute.upper)
        values = np.where(np.isin(values, attribute.special), values, inside)
    if attribute.integer:
        values = np.floor(values)
    contributions = grid.encode(values)
    contributions[missing] = 0
    return contributions


def sum_cells(codes, contributions, plan):
    """Exact integer sums of each source of the plan, by its mask.

    Parameters
    ----------
    codes : ndarray of shape (n_rows, n_dimensions)
        A record with a negative code is skipped.
    contributions : ndarray of int64 of shape (n_rows,)
    plan : CubePlan
    """
    represented = (codes >= 0).all(axis=1)
    codes, contributions = codes[represented], contributions[represented]
    tables = {}
    for mask in plan._masks:
        axes = list(cuboids.dimensions_of(mask))
        shape = plan._lattice.shape(mask)
        cell = np.zeros(len(codes), dtype=np.int64)
        if axes:
            cell = np.ravel_multi_index(tuple(codes[:, axes].T), shape)
        tables[mask] = integer_sums(cell, math.prod(shape), contributions).reshape(shape)
    return tables
