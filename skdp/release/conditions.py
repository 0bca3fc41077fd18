"""Conditions on drawn rows: weights of codes, and the numbers that are allowed inside a bin."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import BoolArray, CodeArray, FloatArray, IntArray
from ..domain import Domain
from ..domain.conditions import regions_of
from ..domain.contents import Points
from ..domain.regions import GridRegion, RealRegion
from .draws import draw_in_ranges
from .model import Weights
from .queries import parse

__all__ = ["Bounds", "Condition", "within_bounds"]

# Smallest and largest number allowed, for each row.
Bounds = tuple[FloatArray, FloatArray]
# How often numbers of a grid are drawn again that are excluded.
_ROUNDS = 50


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
    columns : tuple of str
        Columns that the query names.

    Raises
    ------
    ValueError
        As in `parse`, or if no value of some column satisfies it.
    """

    def __init__(self, query: Any, domain: Domain) -> None:
        regions = regions_of(query, domain)
        self.query = query
        self.columns = tuple(regions)
        self.weights: Weights = parse(query, domain)
        empty = [domain.names[axis] for axis, each in self.weights.items() if not each.any()]
        if empty:
            raise ValueError(
                f"No row can satisfy where={query!r}: it leaves no value of column {empty[0]!r}. "
                "Its conditions contradict each other, lie outside of the declared range, or ask "
                "for a single number of a continuous column."
            )
        # Each code of a derived column stands for one value: codes satisfy conditions on it.
        self._numbers = {
            name: (domain.index(name), region)
            for name, region in regions.items()
            if name in domain.names and isinstance(region, RealRegion | GridRegion)
        }

    def bounds(self, codes: CodeArray, generator: np.random.Generator) -> dict[str, Bounds]:
        """Bounds on the numbers that may be drawn for rows of codes, by column.

        Where the numbers allowed in a bin are no range, one of them is drawn for each row: both
        ends are that number. NaN where a code is no bin.
        """
        return {
            name: _bounds_of(region, codes[:, axis].astype(np.int64), generator)
            for name, (axis, region) in self._numbers.items()
        }


def within_bounds(numbers: FloatArray, bounds: Bounds) -> BoolArray:
    """Whether numbers lie in bounds, as far as these and the numbers are known."""
    low, high = bounds
    return ~((numbers < low) | (numbers > high))


def _bounds_of(
    region: RealRegion | GridRegion, codes: IntArray, generator: np.random.Generator
) -> Bounds:
    """Bounds on the numbers of one column."""
    attribute = region.attribute
    inside = codes < attribute.bins
    if isinstance(region, GridRegion) and (region.only is not None or region.never):
        value = np.full(len(codes), np.nan)
        value[inside] = _allowed_numbers(region, codes[inside], generator)
        return value, value
    ends = np.array([region.low, region.high], dtype=np.float64)
    if isinstance(region, GridRegion):
        held = attribute.contents
        assert isinstance(held, Points)
        ends = held.grid.value(np.array([region.low, region.high]))
    elif np.nextafter(ends[0], np.inf) <= np.nextafter(ends[1], -np.inf):
        # Floats strictly between the ends satisfy ``<`` and ``<=`` alike.
        ends = np.nextafter(ends, [np.inf, -np.inf])
    return np.where(inside, ends[0], np.nan), np.where(inside, ends[1], np.nan)


def _allowed_numbers(
    region: GridRegion, codes: IntArray, generator: np.random.Generator
) -> FloatArray:
    """One of the covered numbers of each bin, in proportion to their shares of it."""
    attribute, held = region.attribute, region.attribute.contents
    assert isinstance(held, Points)
    if region.only is None:
        low, high = held.grid.value(np.array([region.low, region.high]))
        never = held.grid.value(np.array(sorted(region.never)))
        drawn = attribute.draw(codes, generator, low, high)
        for _ in range(_ROUNDS):
            again = np.flatnonzero(np.isin(drawn, never))
            if not len(again):
                return drawn
            drawn[again] = attribute.draw(codes[again], generator, low, high)
        # Nearly all numbers of a bin are excluded: list those that are left.
        return _listed_numbers(region, held, codes, drawn, generator)
    return _from_list(held, sorted(region.only - region.never), region, codes, generator)


def _listed_numbers(
    region: GridRegion,
    held: Points,
    codes: IntArray,
    drawn: FloatArray,
    generator: np.random.Generator,
) -> FloatArray:
    excluded = held.grid.value(np.array(sorted(region.never)))
    for code in np.unique(codes[np.isin(drawn, excluded)]).tolist():
        rows = np.flatnonzero((codes == code) & np.isin(drawn, excluded))
        first, stop = held.first(np.array([code, code + 1])).tolist()
        gone = region.never | set(held.special.tolist())
        places = [k for k in range(first, stop) if k not in gone]
        drawn[rows] = _from_list(held, places, region, codes[rows], generator)
    return drawn


def _from_list(
    held: Points,
    places: list[int],
    region: GridRegion,
    codes: IntArray,
    generator: np.random.Generator,
) -> FloatArray:
    """Numbers drawn among some places of the grid; each bin holds one of them."""
    listed = np.array(
        [k for k in places if region.low <= k <= region.high] or [held.grid.first], dtype=np.int64
    )
    mass = np.ones(len(listed))
    if not held.even:
        mass = np.array([held.covered(k, k)[0].sum() for k in listed.tolist()])
    first = np.minimum(np.searchsorted(listed, held.first(codes)), len(listed) - 1)
    stop = np.searchsorted(listed, held.first(codes + 1))
    u = generator.random(len(codes))
    return held.grid.value(listed[draw_in_ranges(mass, first, np.maximum(stop, first + 1), u)])
