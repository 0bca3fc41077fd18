"""BMax ("bounding the maximum"): few sources with equal budgets that keep all variances small."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..._types import FloatArray
from .lattices import Lattice
from .plans import Covers, Plan, equal_shares
from .variances import blue_variances

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
