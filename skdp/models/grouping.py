"""Public groups of the values of a column, and which of them are neighbours."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._types import FloatArray, IntArray
from ..domain import Attribute, Level, Numeric

__all__ = ["Grouping", "group_values"]


class Grouping(NamedTuple):
    """Groups of the codes of a column.

    Attributes
    ----------
    groups : ndarray of shape (n_codes,)
        Group of each code.
    labels : list of str
    chain : list of int or None
        The groups in an order in which neighbours are similar; None if there is no order. Special
        and missing values are groups of their own, outside the order.
    edges : ndarray of shape (len(chain) + 1,) or None
        Borders of the groups in the order; None for categories.
    """

    groups: IntArray
    labels: list[str]
    chain: list[int] | None
    edges: FloatArray | None


def group_values(attribute: Attribute, max_groups: int) -> Grouping:
    """At most ``max_groups`` groups of ordered values; each unordered category alone.

    Parameters
    ----------
    attribute : Attribute
    max_groups : int
    """
    if isinstance(attribute, Numeric):
        n = min(attribute.bins, max_groups)
        level = attribute.equal_parts(n)
        bins = level.groups[: attribute.bins]
        starts = np.searchsorted(bins, np.arange(n))
        edges = attribute.edges[np.append(starts, attribute.bins)].astype(np.float64)
        return Grouping(level.groups, level.labels, list(range(n)), edges)
    if attribute.order() is None:
        level = attribute.levels()[-1]
        return Grouping(level.groups, level.labels, None, None)
    level = _finest(attribute, max_groups)
    order = np.asarray(attribute.order())[: attribute.n_values]
    labels, names = list(level.labels), attribute.labels()
    chain = list(dict.fromkeys(level.groups[order].tolist()))
    if getattr(attribute, "taxonomy", None) is None:
        # Runs of categories without names of their own: from the first to the last.
        for group in chain:
            inside = order[level.groups[order] == group]
            if len(inside) > 1:
                labels[group] = f"{names[inside[0]]} .. {names[inside[-1]]}"
    return Grouping(level.groups, labels, chain, None)


def _finest(attribute: Attribute, max_groups: int) -> Level:
    """The finest level with at most so many groups, or the next to the coarsest."""
    levels = attribute.levels()
    few = [level for level in levels[1:] if len(level.labels) <= max_groups + attribute.nullable]
    return few[-1] if few else levels[min(1, len(levels) - 1)]
