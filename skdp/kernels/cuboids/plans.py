"""Plans of measurements, and the two simplest: All (every cuboid) and Base (the base alone)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..._types import FloatArray
from .lattices import MAX_SOURCE_CELLS, Lattice, format_bytes


@dataclass(frozen=True)
class Plan:
    """Which cuboids to measure, and which share of epsilon each gets.

    Attributes
    ----------
    masks : tuple of int
        The sources.
    shares : tuple of Fraction
        Positive; they sum to 1 exactly.
    """

    masks: tuple[int, ...]
    shares: tuple[Fraction, ...]


def equal_shares(cube: Lattice, places: NDArray[np.integer] | list[int]) -> Plan:
    """Plan that measures the cuboids at ``places`` with equal budgets."""
    masks = tuple(int(cube.masks[place]) for place in sorted(places))
    return Plan(masks, (Fraction(1, len(masks)),) * len(masks))


def plan_all(cube: Lattice) -> Plan:
    """All: noise in every published cuboid."""
    return equal_shares(cube, np.flatnonzero(cube.published))


def plan_base(cube: Lattice) -> Plan:
    """Base: noise in the base cuboid alone, the table over all dimensions.

    Raises
    ------
    ValueError
        If that table is too large to be measured.
    """
    base = (1 << len(cube.sizes)) - 1
    if base not in cube.position:
        cells = math.prod(cube.sizes)
        raise ValueError(
            f"strategy='base' measures the table over all dimensions, which has {cells:,} cells "
            f"({format_bytes(8 * cells)}); at most {MAX_SOURCE_CELLS:,} can be measured. Use "
            "another strategy, which measures smaller tables."
        )
    return Plan((base,), (Fraction(1),))


# --- the greedy cover that BMax and PMost share: few sources that answer all cuboids accurately

# Number of thresholds for which the greedy cover is tried. Cubes of up to 8 dimensions have fewer;
# in larger cubes, neighbouring thresholds give nearly the same cover.
_MAX_THRESHOLDS = 400


@dataclass(frozen=True, eq=False)
class Covers:
    """How much the noise grows from any source to any published cuboid.

    Attributes
    ----------
    growth : ndarray of float64, shape (m, n_published)
        Number of cells of the source that are summed into one cell of the cuboid; inf where the
        cuboid is not below the source.
    """

    growth: FloatArray

    @classmethod
    def of(cls, cube: Lattice) -> Covers:
        """Compare all cuboids of a lattice."""
        growth = np.full((len(cube), len(cube)), np.inf)
        for place in range(len(cube)):
            below = cube.below_of(place)
            growth[place, below] = cube.cells[place] / cube.cells[below]
        return cls(growth[:, cube.published])

    def thresholds(self) -> FloatArray:
        """The distinct values of ``growth``, ascending, or 400 of them."""
        distinct = np.unique(self.growth[np.isfinite(self.growth)])
        if len(distinct) > _MAX_THRESHOLDS:
            chosen = np.geomspace(1, len(distinct), _MAX_THRESHOLDS).round().astype(int) - 1
            distinct = distinct[np.unique(chosen)]
        return distinct

    def greedy(self, threshold: float, worth: FloatArray) -> Iterator[int]:
        """Sources in the order of a greedy cover within the threshold."""
        covers = self.growth <= threshold
        left = np.ones(covers.shape[1], dtype=bool)
        gain = covers @ worth
        while True:
            # Ties go to the first, which has the fewest dimensions.
            chosen = int(np.argmax(gain))
            if gain[chosen] <= 1e-12 * worth.sum():
                return
            yield chosen
            new = covers[chosen] & left
            left &= ~new
            gain -= covers[:, new] @ worth[new]

    def cover(self, threshold: float, limit: float = math.inf) -> list[int] | None:
        """Sources that cover everything within the threshold; None if more than ``limit``."""
        chosen: list[int] = []
        for source in self.greedy(threshold, np.ones(self.growth.shape[1])):
            if len(chosen) >= limit:
                return None
            chosen.append(source)
        return chosen
