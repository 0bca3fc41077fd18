"""Plans of measurements, and the two simplest: All (every cuboid) and Base (the base alone)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from .lattices import Lattice
from .limits import MAX_SOURCE_CELLS, format_bytes

__all__ = ["Plan", "equal_shares", "plan_all", "plan_base"]


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
