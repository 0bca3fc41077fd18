"""Plans of measurements: All, Base, BMax and PMost.

All measures every cuboid, Base the base alone; BMax bounds the largest variance, and PMost
publishes most cuboids within a bound on the variance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from .lattice import MAX_SOURCE_CELLS, Lattice, format_bytes
from .variances import blue_variances


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


# ------------------------------------------------------------------------------------------------
# BMax ("bounding the maximum"): few sources with equal budgets that keep all variances small.


# Larger sets of sources are not pruned one by one: dropping one gains too little.
_MAX_PRUNED = 128

# A variance, and a second one that breaks ties.
Score = tuple[float, float]


def plan_bmax(cube: Lattice, weights: FloatArray | None = None, consistent: bool = False) -> Plan:
    """Few sources with equal budgets that keep the largest variance small.

    For every threshold a greedy cover chooses sources such that each cell is the sum of at most
    that many cells of a source. Sources that are not needed are dropped, and the set with the least
    actual variance wins; ties in the largest variance are broken by the mean. Measuring everything,
    and the base alone, are among the candidates.

    Parameters
    ----------
    cube : Lattice
    weights : ndarray of float64, shape (m,), optional
        Keep the mean variance with these weights small instead of the largest one.
    consistent : bool, default=False
        Compare the candidates by their variance after weighted least squares, instead of that
        of cuboids summed from one source.
    """
    covers = Covers.of(cube)
    worth = None if weights is None else weights[cube.published] / weights[cube.published].sum()

    def score(chosen: list[int]) -> Score:
        # The variance with equal budgets, in units of that of a single source.
        return _rank(len(chosen) ** 2 * covers.growth[chosen].min(axis=0), worth)

    def score_consistent(chosen: list[int]) -> Score:
        noise = np.full(len(cube), np.inf)
        noise[chosen] = len(chosen) ** 2
        return _rank(blue_variances(cube, noise)[cube.published], worth)

    candidates = _candidates(covers, np.flatnonzero(cube.published).tolist(), score)
    distinct = {frozenset(chosen): chosen for chosen in candidates}.values()
    return equal_shares(cube, min(distinct, key=score_consistent if consistent else score))


def _candidates(
    covers: Covers, everything: list[int], score: Callable[[list[int]], Score]
) -> list[list[int]]:
    """All published cuboids, and the greedy covers of all thresholds, also pruned."""
    best = score(everything)
    candidates = [everything]
    # Few sources first: their variance bounds how many sources are worth trying.
    for threshold in covers.thresholds()[::-1]:
        # s sources score at least s**2, and pruning drops few, so that many more cannot win.
        chosen = covers.cover(threshold, 2 * math.sqrt(best[0]) + 8)
        if chosen is None:
            continue
        candidates.append(chosen)
        if len(chosen) <= _MAX_PRUNED:
            candidates.append(_prune(chosen, score))
        best = min(best, score(candidates[-1]))
    return candidates


def _prune(chosen: list[int], score: Callable[[list[int]], Score]) -> list[int]:
    """Drop sources as long as that does not make the score worse."""
    reached = score(chosen)
    while len(chosen) > 1:
        best, place = min(
            (score(chosen[:place] + chosen[place + 1 :]), place) for place in range(len(chosen))
        )
        if best > reached:
            break
        reached = best
        chosen = chosen[:place] + chosen[place + 1 :]
    return chosen


def _rank(variances: FloatArray, worth: FloatArray | None) -> Score:
    """Largest and plain mean variance, or weighted mean and largest: the second breaks ties."""
    largest = float(variances.max())
    if math.isinf(largest):
        return math.inf, math.inf
    pair = (largest, variances.mean()) if worth is None else (worth @ variances, largest)
    # Rounded, so that equal variances are equal.
    first, second = (float(f"{value:.12g}") for value in pair)
    return first, second


# ------------------------------------------------------------------------------------------------
# PMost ("publishing most"): bring as many cuboids as possible within a bound on the variance.


def plan_pmost(
    cube: Lattice, limit: float, noise_of: Callable[[int], float], weights: FloatArray | None = None
) -> Plan:
    """Sources with equal budgets that bring most cuboids within a bound on the variance.

    For every number of sources a greedy cover chooses them. The set with the largest total worth
    of cuboids within the bound wins; ties are broken by the smaller variances.

    Parameters
    ----------
    cube : Lattice
    limit : float
        Bound on the cell variance of a cuboid.
    noise_of : callable
        Noise variance in the cells of each of s sources with equal budgets.
    weights : ndarray of float64, shape (m,), optional
        Worth of publishing each cuboid; all the same by default.

    Raises
    ------
    ValueError
        If no cuboid can meet the bound.
    """
    covers = Covers.of(cube)
    worth = np.ones(len(cube)) if weights is None else weights
    worth = worth[cube.published]
    best: tuple[float, float, list[int]] | None = None
    for count in range(1, int(cube.published.sum()) + 1):
        # 1e-9: so that a bound copied from the figures of a plan is met.
        threshold = limit * (1 + 1e-9) / noise_of(count)
        if threshold < 1:
            break
        chosen = list(itertools.islice(covers.greedy(threshold, worth), count))
        growth = covers.growth[chosen].min(axis=0)
        # If the cover needs fewer sources, their budgets are larger and more may meet the bound.
        precise = growth <= limit * (1 + 1e-9) / noise_of(len(chosen))
        gain = float(worth[precise].sum())
        spread = float(worth[precise] @ growth[precise]) * noise_of(len(chosen))
        if best is None or (gain, -spread) > (best[0], -best[1]):
            best = (gain, spread, chosen)
    if best is None or best[0] <= 0:
        raise ValueError(
            f"No cuboid can be published with a cell variance of at most {limit:g}: the whole of "
            f"epsilon in one cuboid gives {noise_of(1):.6g}. Raise max_variance, or epsilon."
        )
    return equal_shares(cube, best[2])
