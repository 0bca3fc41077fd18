"""Bands of a column: intervals that make groups, as ``pandas.cut`` makes them from edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..domain import Categorical, Domain
from ..domain.queries.regions import Region, attribute_of, region_of_range

__all__ = ["Bands", "read_bands"]

_MAX_BANDS = 10_000


class Bands:
    """Intervals of a numeric column.

    Parameters
    ----------
    column : str
    edges : array-like or pandas.IntervalIndex
        Ascending edges of adjacent intervals, or the intervals themselves.
    domain : Domain
    right : bool
        Whether intervals between edges contain their right edge, else the left.

    Attributes
    ----------
    labels : pandas.IntervalIndex
    regions : list of Region
        What each interval covers.

    Raises
    ------
    ValueError
        If the column has no numbers, or the edges do not ascend.
    """

    def __init__(self, column: str, edges: Any, domain: Domain, right: bool) -> None:
        attribute = attribute_of(column, domain)
        if isinstance(attribute, Categorical):
            raise ValueError(
                f"Column {column!r} is a Categorical, which has no bands. Group by its "
                "categories, or declare a derived column that joins some."
            )
        self.labels = _intervals(column, edges, right)
        if not 0 < len(self.labels) <= _MAX_BANDS:
            raise ValueError(
                f"bands of {column!r} must be 1 to {_MAX_BANDS:,} intervals, got "
                f"{len(self.labels):,}."
            )
        strict = {"right": "<", "left": ">", "both": "", "neither": "<>"}[self.labels.closed]
        self.regions: list[Region] = [
            region_of_range(column, attribute, _end(one.left), _end(one.right), strict)
            for one in self.labels
        ]


def read_bands(bands: Mapping[str, Any] | None, domain: Domain, right: bool) -> dict[str, Bands]:
    """Bands by column.

    Raises
    ------
    TypeError
        If ``bands`` is not a mapping.
    ValueError
        As `Bands`.
    """
    if bands is None:
        return {}
    if not isinstance(bands, Mapping):
        raise TypeError(f"bands must be a mapping of columns to edges, got {bands!r}.")
    return {column: Bands(column, edges, domain, right) for column, edges in bands.items()}


def _end(value: Any) -> Any:
    """An end of an interval; None if it is open."""
    return None if isinstance(value, float) and np.isinf(value) else value


def _intervals(column: str, edges: Any, right: bool) -> pd.IntervalIndex:
    if isinstance(edges, pd.IntervalIndex):
        if edges.is_overlapping or edges.hasnans:
            raise ValueError(f"bands of {column!r} must be intervals that do not overlap.")
        return edges
    if isinstance(edges, str) or not np.iterable(edges):
        raise ValueError(
            f"bands of {column!r} must be a list of edges, such as [18, 40, 65], got {edges!r}."
        )
    listed = list(edges)
    if listed and isinstance(listed[0], str):
        listed = [pd.Timestamp(edge) for edge in listed]
    try:
        index = pd.Index(listed)
        rising = len(index) > 1 and not index.hasnans and index.is_monotonic_increasing
        if rising and index.is_unique and index.dtype != object:
            return pd.IntervalIndex.from_breaks(index, closed="right" if right else "left")
    except (TypeError, ValueError):
        pass
    raise ValueError(
        f"bands of {column!r} must be two or more ascending edges, such as [18, 40, 65], got "
        f"{edges!r}."
    )
