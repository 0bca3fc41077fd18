"""Which queries a release of views is planned for, as the user says it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from .._types import FloatArray
from .._validation import as_fraction, check_choice
from ..domain import Domain, Numeric
from ..exceptions import DomainError
from ..kernels.views import most_groups

__all__ = ["as_workload", "means_of", "used_sets"]

_WORDS = ("all", "ranges", "cells")
# Cells of the largest table that a set may have, with its columns in groups.
_MOST_CELLS = 2**22


def as_workload(
    workload: Any, domain: Domain, max_order: int
) -> str | dict[tuple[int, ...], Fraction]:
    """Check a workload and find the columns of its sets.

    Parameters
    ----------
    workload : {"all", "ranges", "cells"} or dict
        Sets of column names, as tuples or frozensets, with weights in (0, 1]; and "means", which
        `means_of` reads. With nothing but "means" the other queries are "all".
    domain : Domain
    max_order : int
        Largest number of columns of a set.

    Returns
    -------
    str or dict of tuple of int to Fraction
        The word as it is, or the weights of the sets, each as the ascending positions of its
        columns.

    Raises
    ------
    DomainError
        If a column is not declared, or not measured.
    TypeError, ValueError
        If it is another word or no dict; if there is no set; if a set is empty, has more than
        ``max_order`` columns, names a column twice, or has a table of more than 2**22 cells (with
        at most 128 groups of codes a column); if two sets have the same columns; if a
        weight is not a number in (0, 1].
    """
    if isinstance(workload, str):
        check_choice(workload, "workload", _WORDS)
        return workload
    if not isinstance(workload, Mapping):
        raise TypeError(
            "workload must be 'all', 'ranges', 'cells', or a dict from sets of columns to weights "
            "such as {('age', 'sex'): 1}, "
            f"got {workload!r} of type {type(workload).__name__}."
        )
    if not workload:
        raise ValueError(
            "workload has no set of columns. Name at least one, or give 'all' for every query."
        )
    if [*workload] == ["means"]:
        return "all"
    weights: dict[tuple[int, ...], Fraction] = {}
    for columns, weight in workload.items():
        if isinstance(columns, str) and columns == "means":
            continue
        axes = _axes(columns, domain, max_order)
        if axes in weights:
            names = tuple(domain.names[axis] for axis in axes)
            raise ValueError(f"workload has the set of columns {names} twice. Give it one weight.")
        weights[axes] = _weight(weight, columns)
    return weights


def means_of(workload: Any, domain: Domain) -> dict[tuple[int, int], FloatArray]:
    """Means by group that a workload asks for.

    Parameters
    ----------
    workload : {"all", "ranges", "cells"} or dict
        A dict may have the key "means", with a dict from the name of a numeric column to a column
        name or a list of them: by which its means are asked for.
    domain : Domain

    Returns
    -------
    dict of (int, int) to ndarray of float64, shape (size of the numeric column,)
        Positions of the numeric column and of that by which it is grouped: mean value of each code
        of the first, NaN where it has none.

    Raises
    ------
    DomainError
        If a column is not declared, not measured, or not numeric.
    TypeError, ValueError
        If "means" is something else, or asks for a mean by the column itself, or for a table of
        more than 2**22 cells.
    """
    if not isinstance(workload, Mapping) or "means" not in workload:
        return {}
    asked = workload["means"]
    form = 'a dict such as {"pay": ["sex", "region"]}'
    if not isinstance(asked, Mapping) or not asked:
        raise TypeError(f"The means of workload must be {form}, got {asked!r}.")
    found: dict[tuple[int, int], FloatArray] = {}
    for column, groups in asked.items():
        attribute = domain[column]
        if not isinstance(attribute, Numeric):
            raise DomainError(
                f"Column {column!r} of the means of workload is not numeric. Name a numeric column "
                f"and the columns to group it by, as {form}."
            )
        names = [groups] if isinstance(groups, str) else groups
        if not isinstance(names, list | tuple) or not names:
            raise TypeError(
                f"Name the columns by which means of {column!r} are asked for in a list, "
                f"got {groups!r}."
            )
        axis = domain.index(column)
        values = np.full(attribute.size, np.nan)
        values[: attribute.n_values] = attribute.means()
        for name in names:
            by = domain.index(name)
            if by == axis:
                raise ValueError(f"The means of {column!r} by the column itself are its values.")
            if attribute.size * domain.shape[by] > _MOST_CELLS:
                raise ValueError(
                    f"Means of {column!r} by {name!r} need a table of more than {_MOST_CELLS:,} "
                    "cells, which would not fit into memory. Declare fewer bins or categories."
                )
            found[axis, by] = values
    return found


def used_sets(
    workload: str | Mapping[tuple[int, ...], Fraction], shape: Sequence[int]
) -> str | dict[tuple[int, ...], Fraction]:
    """Sets of columns of more than one code; the largest weight of equal sets counts."""
    if isinstance(workload, str):
        return workload
    found: dict[tuple[int, ...], Fraction] = {}
    for axes, weight in workload.items():
        used = tuple(axis for axis in axes if shape[axis] > 1)
        if len(used) > 1:
            found[used] = max(weight, found.get(used, weight))
    return found


def _axes(columns: Any, domain: Domain, max_order: int) -> tuple[int, ...]:
    """Ascending positions of the columns of a set."""
    if not isinstance(columns, tuple | frozenset):
        raise TypeError(
            f"The sets of workload are tuples of column names, got {columns!r} of type "
            f"{type(columns).__name__}. A single column is written ('age',)."
        )
    if not columns:
        raise ValueError("workload has an empty set. The number of records is always released.")
    axes = tuple(sorted(domain.index(name) for name in columns))
    if len(set(axes)) < len(axes):
        raise ValueError(f"A column is named twice in the set {columns!r} of workload.")
    if len(axes) > max_order:
        raise ValueError(
            f"The set {columns!r} of workload has {len(axes)} columns, and max_order={max_order} "
            "allows fewer. Raise max_order (at most 4), or name smaller sets."
        )
    most = most_groups(domain.shape, max_order)
    cells = math.prod(min(domain.shape[axis], most) for axis in axes)
    if cells > _MOST_CELLS:
        raise ValueError(
            f"The set {columns!r} of workload has a table of {cells:,} cells, more than "
            f"{_MOST_CELLS:,}, which would not fit into memory. Name smaller sets, or declare "
            "fewer bins or categories."
        )
    return axes


def _weight(weight: Any, columns: Any) -> Fraction:
    name = f"The weight of {columns!r} in workload"
    found = as_fraction(weight, name)
    if not 0 < found <= 1:
        raise ValueError(
            f"{name} must be in (0, 1], got {weight!r}. Divide all weights by the largest, "
            "and leave out sets without weight."
        )
    return found
