"""Classes of the values of one column that some conditions do not separate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._types import BoolArray
from .categorical import Categorical
from .contents import Points, Spread
from .numeric import Numeric
from .regions import GridRegion, RealRegion, Region, RegionUnion, _Categories

__all__ = ["Classes"]


class Classes:
    """The coarsest division of a column such that each region is a union of classes.

    Parameters
    ----------
    column : str
    attribute : Numeric or Categorical
    regions : sequence of Region
        Conditions on the column.

    Attributes
    ----------
    number : int
        Number of classes.
    all : int
        All classes, as bits.
    members : list of int
        The classes of each region, as bits.
    """

    def __init__(
        self, column: str, attribute: Numeric | Categorical, regions: Sequence[Any]
    ) -> None:
        self.column, self.attribute = column, attribute
        self._ends: list[tuple[Any, Any]] = []
        if isinstance(attribute, Categorical):
            held = np.stack([region.mask for region in regions])
        else:
            held = self._held_numbers(attribute, regions)
        patterns, classes = np.unique(held, axis=1, return_inverse=True)
        self._class = classes.reshape(-1)
        self.number = patterns.shape[1]
        self.all = (1 << self.number) - 1
        self.members = [sum(1 << int(k) for k in np.flatnonzero(row)) for row in patterns]

    def _held_numbers(self, attribute: Numeric, regions: Sequence[Any]) -> BoolArray:
        """Which regions hold each piece of the number line, special value, and the missing cell."""
        self._ends = _pieces(attribute, regions)
        low, high = (np.array([piece[end] for piece in self._ends]) for end in (0, 1))
        rows = []
        for region in regions:
            inside = (region.low <= low) & (high <= region.high)
            if isinstance(region, GridRegion):
                if region.only is not None:
                    inside &= np.isin(low, _on_grid(attribute, region.only))
                inside &= ~np.isin(low, _on_grid(attribute, region.never))
            special = [place in region.special for place in range(len(attribute.special))]
            missing = [region.missing] * attribute.nullable
            rows.append(np.concatenate([inside, special, missing]).astype(bool))
        return np.stack(rows)

    def union(self, bits: int) -> Region:
        """The values of some classes."""
        chosen = np.array([bool(bits >> int(k) & 1) for k in self._class])
        attribute = self.attribute
        if isinstance(attribute, Categorical):
            return _Categories(self.column, attribute, chosen)
        n = len(self._ends)
        places = np.flatnonzero(chosen[n : n + len(attribute.special)]).tolist()
        missing = bool(attribute.nullable and chosen[-1])
        return _joined(attribute, self._runs(chosen[:n]), frozenset(places), missing)

    def _runs(self, chosen: BoolArray) -> list[tuple[Any, Any]]:
        """Adjacent pieces as one."""
        runs: list[tuple[Any, Any]] = []
        last = -2
        for piece in np.flatnonzero(chosen).tolist():
            low, high = self._ends[piece]
            runs[-1:] = [(runs[-1][0], high)] if piece == last + 1 else [*runs[-1:], (low, high)]
            last = piece
        return runs


def _on_grid(attribute: Numeric, places: frozenset[int]) -> list[int]:
    """Places that lie on the grid of an attribute, ascending."""
    held = attribute.contents
    assert isinstance(held, Points)
    return sorted(k for k in places if held.grid.first <= k <= held.grid.last)


def _pieces(attribute: Numeric, regions: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Pieces of the number line between the ends of regions: intervals, or places of a grid."""
    held = attribute.contents
    if isinstance(held, Spread):
        ends = {end for region in regions for end in (region.low, region.high)}
        cuts = [-math.inf, *sorted(end for end in ends if math.isfinite(end)), math.inf]
        return list(zip(cuts[:-1], cuts[1:], strict=True))
    first, stop = int(held.grid.first), int(held.grid.last) + 1
    starts = {first}
    for region in regions:
        starts |= {int(region.low), int(region.high) + 1}
        for places in (region.only or (), region.never):
            starts |= {start for k in places for start in (int(k), int(k) + 1)}
    cuts = [*sorted(start for start in starts if first <= start < stop), stop]
    return [(low, high - 1) for low, high in zip(cuts[:-1], cuts[1:], strict=True)]


def _joined(
    attribute: Numeric, runs: list[tuple[Any, Any]], special: frozenset[int], missing: bool
) -> Region:
    """Runs of the number line, special values and the missing cell as one region."""
    held = attribute.contents
    parts: list[RealRegion | GridRegion] = []
    none = frozenset[int]()
    if isinstance(held, Spread):
        # What is no number belongs to the first part.
        for low, high in runs or [(math.inf, -math.inf)]:
            own = (none, False) if parts else (special, missing)
            parts.append(RealRegion(attribute, low, high, own[1], own[0]))
        return parts[0] if len(parts) == 1 else RegionUnion(attribute, tuple(parts))
    grid = held.grid
    single = frozenset(low for low, high in runs if low == high)
    wide = [run for run in runs if run[0] < run[1]]
    if single or not wide:
        parts.append(GridRegion(attribute, grid.first, grid.last, missing, special, single))
    for low, high in wide:
        own = (none, False) if parts else (special, missing)
        parts.append(GridRegion(attribute, low, high, own[1], own[0]))
    return parts[0] if len(parts) == 1 else RegionUnion(attribute, tuple(parts))
