"""Conditions on drawn rows: weights of codes, and the numbers that are allowed inside a bin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._types import CodeArray, FloatArray, IntArray
from ..domain import Domain, Numeric
from .model import Weights
from .queries import regions_of
from .regions import RealNumbers, Region, WholeNumbers

__all__ = ["Bounds", "Condition"]

# Smallest and largest number allowed, for all rows or for each.
Bounds = tuple[Any, Any]


class Condition:
    """What drawn rows must satisfy: a query that covers something.

    Parameters
    ----------
    query : dict, str or None
        As in `parse`.
    domain : Domain

    Attributes
    ----------
    weights : dict of int to ndarray
        As from `parse`, each with a positive weight.

    Raises
    ------
    ValueError
        As in `parse`, or if no value of some column satisfies it.
    """

    def __init__(self, query: Any, domain: Domain) -> None:
        self.domain = domain
        self.regions: dict[int, Region] = dict(sorted(regions_of(query, domain).items()))
        self.weights: Weights = {axis: each.weights() for axis, each in self.regions.items()}
        empty = [domain.names[axis] for axis, each in self.weights.items() if not each.any()]
        if empty:
            raise ValueError(
                f"No row can satisfy where={query!r}: it leaves no value of column {empty[0]!r}. "
                "Its conditions contradict each other, lie outside of the declared range, or ask "
                "for a single number of a continuous column."
            )

    def bounds(self, codes: CodeArray, generator: np.random.Generator) -> dict[str, Bounds]:
        """Bounds on the numbers that may be drawn for rows of codes, by column.

        Where the numbers allowed in a bin are no range, one of them is drawn for each row: both
        ends are that number.
        """
        return {
            self.domain.names[axis]: _bounds_of(region, codes[:, axis], generator)
            for axis, region in self.regions.items()
            if isinstance(self.domain.attributes[axis], Numeric)
        }


def _bounds_of(region: Region, codes: IntArray, generator: np.random.Generator) -> Bounds:
    """Bounds on the numbers of one column."""
    if isinstance(region, WholeNumbers):
        if region.only is None and not region.never:
            return region.low, region.high
        value = _allowed_integers(region, codes, generator)
        return value, value
    assert isinstance(region, RealNumbers)
    # Floats strictly between the ends satisfy ``<`` and ``<=`` alike.
    low, high = math.nextafter(region.low, math.inf), math.nextafter(region.high, -math.inf)
    return (low, high) if low <= high else (region.low, region.high)


def _allowed_integers(
    region: WholeNumbers, codes: IntArray, generator: np.random.Generator
) -> FloatArray:
    """One of the covered integers of each bin, evenly; nan for the missing cell."""
    attribute = region.attribute
    missing = codes >= attribute.n_values
    positions = np.where(missing, 0, codes)
    first, stop = attribute.edges[positions], attribute.edges[positions + 1]
    u = generator.random(len(codes))
    if region.only is not None:
        listed = sorted(v for v in region.only - region.never if region.low <= v <= region.high)
        values = np.array(listed or [0], dtype=np.int64)
        start, end = np.searchsorted(values, first), np.searchsorted(values, stop)
        place = start + np.floor(u * (end - start)).astype(np.int64)
        drawn = values[np.clip(place, 0, len(values) - 1)]
    else:
        start, end = np.maximum(first, region.low), np.minimum(stop, region.high + 1)
        never = np.array(sorted(region.never), dtype=np.int64)
        left = end - start - (np.searchsorted(never, end) - np.searchsorted(never, start))
        drawn = start + np.floor(u * left).astype(np.int64)
        for value in never.tolist():
            drawn += (start <= value) & (value <= drawn)
    return np.where(missing, np.nan, drawn)
