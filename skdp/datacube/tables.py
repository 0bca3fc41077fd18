"""Answers from released tables: post-processing of a plan and its published cuboids.

Each function takes the `CubePlan` and ``tables``, the published cuboids by the names of their
dimensions, as `DataCube` has them in ``plan_`` and ``tables_``. Conditions on dimensions come as
``weights``: for some axes of the domain the weight of each code, from `skdp.release.parse`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._names import free_name
from .._types import FloatArray
from .._validation import as_integer, check_choice
from ..domain import Date, Datetime, Numeric
from .names import check_names, titles

__all__ = ["all_cuboids", "cross_table", "tidy_table"]


def tidy_table(plan, tables, names, weights=None, levels=None):
    """One cuboid, sliced or grouped, with a row for each cell.

    Parameters
    ----------
    plan : CubePlan
    tables : dict of tuple of str to ndarray
    names : tuple of str
        Dimensions of the result, in this order.
    weights : dict of int to ndarray, default=None
        Conditions.
    levels : dict of str to int, default=None
        Level of the hierarchy to which a dimension of the result is grouped.
    """
    listed, estimate, std = _answer(plan, tables, names, weights or {}, levels or {})
    columns = {}
    for place, (name, values) in enumerate(zip(names, listed, strict=True)):
        columns[name] = values.take(_spread(np.arange(len(values)), estimate.shape, place))
    columns[free_name(plan._measure, columns)] = estimate.ravel()
    columns[free_name("std_error", columns)] = np.broadcast_to(std, estimate.shape).ravel()
    return pd.DataFrame(columns)


def cross_table(plan, tables, down, across, weights, values):
    """One cuboid with some dimensions down and the others across."""
    if values is not None:
        check_choice(values, "values", (plan._measure, "std_error"))
    both = [name for name in down if name in across]
    if both:
        raise ValueError(f"{both} are in index and in columns. Name each dimension once.")
    listed, estimate, std = _answer(plan, tables, down + across, weights, {})
    shape = estimate.shape
    table = np.broadcast_to(std, shape) if values == "std_error" else estimate
    n_down = len(down)
    return pd.DataFrame(
        table.reshape(math.prod(shape[:n_down]), math.prod(shape[n_down:])),
        index=_index(down, listed[:n_down]),
        columns=_index(across, listed[n_down:]),
    )


def all_cuboids(plan, tables, order, margin):
    """All cuboids (of ``order`` dimensions) in one table, one below the other."""
    chosen = [names for names in tables if order in (None, len(names))]
    if not chosen:
        raise ValueError(
            f"No cuboid of {order!r} dimensions is published; there are those of "
            f"{sorted({len(names) for names in tables})}."
        )
    shapes = {names: tables[names].shape for names in chosen}
    sizes = [tables[names].size for names in chosen]
    columns = {
        name: _column_with_margin(name, attribute, shapes, margin)
        for name, attribute in plan.domain.items()
    }
    which = np.repeat(np.arange(len(chosen)), sizes)
    frame: dict[str, Any] = {
        free_name("cuboid", columns): pd.Categorical.from_codes(which, categories=titles(chosen))
    }
    frame |= columns
    frame[free_name(plan._measure, columns)] = np.concatenate(
        [tables[names].ravel() for names in chosen]
    )
    std = np.array([plan.std_error(names) for names in chosen])
    frame[free_name("std_error", columns)] = np.repeat(std, sizes)
    return pd.DataFrame(frame)


def _column_with_margin(name, attribute, shapes, margin):
    """One dimension over several cuboids; ``margin`` where a cuboid does not have it."""
    values = list(values_of(attribute, np.arange(attribute.n_values)))
    if margin in values:
        raise ValueError(f"margin={margin!r} is a value of {name!r}; choose a different text.")
    # Categories are the margin, then the values; -1 is a missing value.
    codes = np.arange(1, attribute.size + 1, dtype=np.int32)
    if attribute.nullable:
        codes[-1] = -1
    parts = [
        _spread(codes, shape, names.index(name))
        if name in names
        else np.zeros(math.prod(shape), dtype=codes.dtype)
        for names, shape in shapes.items()
    ]
    categories: Any = [margin, *values]
    return pd.Categorical.from_codes(np.concatenate(parts), categories=categories)


# --- the answer to one query ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Axis:
    """How a query uses one dimension of the cuboid that answers it.

    Attributes
    ----------
    name : str
    size : int
        Number of codes.
    values : pandas array or None
        Values along this axis of the answer; None where the query sums over it.
    matrix : ndarray of shape (n_values, size) or None
        Weight of each code in each value of the answer; None if the codes stay as they are.
    """

    name: str
    size: int
    values: pd.api.extensions.ExtensionArray | None
    matrix: FloatArray | None

    def for_errors(self) -> FloatArray:
        """The matrix; where codes stay as they are, one cell, because all have the same error."""
        return np.eye(1, self.size) if self.matrix is None else self.matrix


def _answer(plan, tables, names, weights, levels):
    """Values along each axis, estimates, and standard errors that broadcast to them."""
    domain = plan.domain
    check_names(domain, names)
    involved = sorted({*map(domain.index, names), *weights})
    key = tuple(domain.names[axis] for axis in involved)
    mask = plan._published_mask(key)
    axes = [
        _axis_of(name, domain[name], name in names, weights.get(axis), levels)
        for axis, name in zip(involved, key, strict=True)
    ]
    estimate = _weighted_sums(tables[key], axes)
    std = np.sqrt(plan._box_variances(mask, [axis.for_errors() for axis in axes]))
    kept = [axis for axis in axes if axis.values is not None]
    summed = tuple(place for place, axis in enumerate(axes) if axis.values is None)
    order = [[axis.name for axis in kept].index(name) for name in names]
    listed = [kept[place].values for place in order]
    estimate, std = (np.squeeze(table, summed).transpose(order) for table in (estimate, std))
    return listed, estimate, std


def _axis_of(name, attribute, wanted, weight, levels):
    """One dimension: summed over, grouped, restricted to what the query asks for, or whole."""
    size = attribute.size
    if not wanted:
        return _Axis(name, size, None, weight[None, :])
    if name in levels:
        labels, groups = _groups_of(attribute, name, levels[name])
        matrix = np.zeros((len(labels), size))
        matrix[groups, np.arange(size)] = 1.0
        return _Axis(name, size, labels, matrix)
    if weight is not None:
        chosen = np.flatnonzero(weight)
        return _Axis(name, size, values_of(attribute, chosen), np.eye(size)[chosen] * weight)
    return _Axis(name, size, values_of(attribute, np.arange(size)), None)


def _weighted_sums(table, axes):
    """Sum a table over the codes of each axis, with the weights of its matrix."""
    for place, axis in enumerate(axes):
        if axis.matrix is not None:
            table = np.moveaxis(np.tensordot(table, axis.matrix, ([place], [1])), -1, place)
    return table


def _groups_of(attribute, name, level):
    """Labels of the groups of one level as a pandas array, and the group of each code."""
    levels = attribute.levels()
    place = as_integer(level, f"The level of {name!r}")
    if not -len(levels) <= place < len(levels):
        raise ValueError(
            f"{name!r} has the levels 0 to {len(levels) - 1}, or -{len(levels)} to -1, got {level}."
        )
    chosen = levels[place]
    return pd.array(chosen.labels, dtype=object), chosen.groups


def values_of(attribute, codes):
    """Values of codes as a pandas array; the missing cell is missing."""
    if not isinstance(attribute, Numeric):
        return attribute.decode(codes, None).array
    positions = np.where(codes < attribute.n_values, codes, -1)
    if attribute.integer and attribute.bins == attribute.upper - attribute.lower + 1:
        known = [*attribute.edges[:-1].tolist(), *attribute.special]
        if isinstance(attribute, Date | Datetime):
            return attribute.shown([*known, np.nan])[positions].array
        integers = pd.array(known, dtype="Int64")
        if attribute.nullable:
            return integers.take(positions, allow_fill=True)
        return integers.take(positions).astype("int64")
    labels: Any = attribute.labels()[: attribute.n_values]
    return pd.Categorical.from_codes(positions, categories=labels, ordered=True)


def _spread(values, shape, axis):
    """Entries along one axis, repeated for all cells in their order."""
    inner = math.prod(shape[axis + 1 :])
    return np.tile(np.repeat(values, inner), math.prod(shape[:axis]))


def _index(names, listed):
    """Index of a cross table over some dimensions."""
    if not names:
        return pd.Index(["(total)"])
    if len(names) == 1:
        return pd.Index(listed[0], name=names[0])
    return pd.MultiIndex.from_product(listed, names=names)
