"""Which views are worth measuring: those whose counts are far from what the model expects."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from ..._random import NoiseSource
from ..._validation import IntArray
from ...mechanisms import discrete_laplace, discrete_laplace_variance, noisy_max
from ...tables import Counts
from .fit import Population
from .groups import MOST_CELLS, TUNING, Attribute, equal_mass_bins

__all__ = ["Candidates", "Workload"]

Axes = tuple[int, ...]
# "all", "ranges", "cells", or sets of attributes with weights in (0, 1].
Workload = str | Mapping[Axes, float | Fraction]

# Wider sets are candidates only if there are at most so many, or they hold pairs that were chosen.
_WIDE_COUNTS = 600
# Weights of a workload are multiples of 1 / _PARTS; scores are sums of so many units for a record.
_PARTS = 16


class Candidates:
    """Sets of attributes that can be measured, with their exact counts in a few bins.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private; counts of the candidates are kept here, and go with this object.
    attributes : sequence of Attribute
    used : sequence of int
        Attributes with more than one code.
    max_order : int
    workload : str or mapping of tuple of int to float
        Sets of used attributes, or a word for all.
    label : int or None
        Sets without it count half.
    most_cells : float
        Wider sets than pairs are candidates only if they have at most so many cells.
    """

    def __init__(
        self,
        table: Counts,
        attributes: Sequence[Attribute],
        used: Sequence[int],
        max_order: int,
        workload: Workload,
        label: int | None,
        most_cells: float,
    ) -> None:
        self._most_cells = min(most_cells, MOST_CELLS)
        self._table = table
        self._attributes = attributes
        self._used = list(used)
        self._max_order = max_order
        self._sizes = [len(each.grouped) for each in attributes]
        self._workload = workload
        self._label = label
        self._counts: dict[Axes, IntArray] = {}
        self._bins: dict[int, list[IntArray]] = {}
        self._codes: dict[int, list[IntArray | None]] = {}

    def best(
        self,
        population: Population,
        total: float,
        taken: Sequence[Axes],
        n_views: int,
        epsilon: Fraction,
        view_epsilon: Fraction,
        source: NoiseSource,
    ) -> list[Axes]:
        """The sets with the highest noisy scores, one after the other.

        Sets that share a pair tell much the same: in one call none is chosen that shares one with
        another, as long as there are others.

        Parameters
        ----------
        population : Population
            The model so far: released.
        total : float
            The released number of records, positive.
        taken : sequence of tuple of int
            Sets that are measured already.
        n_views : int
        epsilon : Fraction
            Cost of the choice; 0 if all sets will be measured, which are then taken in order.
        view_epsilon : Fraction
            What a view will be measured with.
        source : NoiseSource
        """
        # Privacy. Released: the set of the highest noisy score, n_views times, each with an equal
        # share of epsilon: they compose. A score is the sum of the absolute differences of exact
        # counts and released integers, times a public whole number of at most _PARTS, less
        # released numbers; a record changes one count by one, so that every score changes by at
        # most _PARTS, up or down: the range is 2 * _PARTS. Which sets are candidates, and their
        # bins, follow from released values and the sets chosen before. Without a budget nothing is
        # looked at: sets are taken in a public order.
        sets = self._sets(taken)
        n_views = min(n_views, len(sets))
        if not n_views:
            return []
        if not epsilon:
            return sets[:n_views]
        self._count(sets)
        orders = {len(axes) for axes in sets}
        binned = {order: population.grouped(self._binning(order)) for order in orders}
        scores = np.array(
            [self._score(axes, binned[len(axes)], total, view_epsilon) for axes in sets],
            dtype=np.int64,
        )
        return _one_by_one(sets, scores, n_views, epsilon / n_views, source)

    def misfit(
        self,
        population: Population,
        total: float,
        taken: Sequence[Axes],
        epsilon: Fraction,
        source: NoiseSource,
    ) -> float | None:
        """Mean distance from the rows of pairs that were not measured, as a share of the records.

        Without what chance adds, and with one standard deviation of its noise; None if all pairs
        were measured. Parameters are those of `best`.
        """
        # Privacy. Released: over all such pairs the sum of the absolute differences of exact counts
        # and released integers. A record changes one count of each pair by one: the sensitivity is
        # the number of pairs. Which these are, and their bins, follow from releases before.
        pairs = [
            axes
            for axes in self._sets(taken)
            if len(axes) == 2 and not any({*axes} <= {*each} for each in taken)
        ]
        self._count(pairs)
        binned = population.grouped(self._binning(2))
        found = [self._distance(axes, binned, total) for axes in pairs]
        exact, most = np.array(sum(distance for distance, _ in found)), max(len(pairs), 1)
        noisy = float(discrete_laplace(exact, epsilon, most, random_state=source))
        if not pairs:
            return None
        deviation = math.sqrt(discrete_laplace_variance(epsilon, most))
        apart = noisy - sum(by_chance for _, by_chance in found)
        return (max(apart, 0.0) + deviation) / (len(pairs) * total)

    def number(self, taken: Sequence[Axes]) -> int:
        """How many sets can be chosen beside those that are measured already."""
        return len(self._sets(taken))

    def _sets(self, taken: Sequence[Axes]) -> list[Axes]:
        """Candidates: of the workload, or all pairs and the wider sets that can be held."""
        if isinstance(self._workload, Mapping):
            sets = sorted(self._workload)
            return [axes for axes in sets if len(axes) <= self._max_order and axes not in taken]
        found: list[Axes] = list(combinations(self._used, 2))
        pairs: set[Axes] = {axes for axes in taken if len(axes) == 2}
        for order in range(3, self._max_order + 1):
            if math.comb(len(self._used), order) <= _WIDE_COUNTS:
                found += combinations(self._used, order)
            else:
                found += list(_grown(self._used, pairs, order))[:_WIDE_COUNTS]
        return [
            axes
            for axes in found
            if axes not in taken
            and (len(axes) == 2 or math.prod(self._sizes[a] for a in axes) <= self._most_cells)
        ]

    def _count(self, sets: Sequence[Axes]) -> None:
        new = [axes for axes in sets if axes not in self._counts]
        asked = [(axes, [self._coded(len(axes))[axis] for axis in axes]) for axes in new]
        for axes, counts in zip(new, self._table.regrouped_many(asked), strict=True):
            self._counts[axes] = counts

    def _coded(self, order: int) -> list[IntArray | None]:
        """Bin of each code of each attribute."""
        if order not in self._codes:
            self._codes[order] = [
                each.of_codes(bins)
                for each, bins in zip(self._attributes, self._binning(order), strict=True)
            ]
        return self._codes[order]

    def _binning(self, order: int) -> list[IntArray]:
        """Bin of each group of each attribute."""
        if order not in self._bins:
            n_bins = TUNING.bins
            self._bins[order] = [
                equal_mass_bins(each.grouped, each.group_order, n_bins) for each in self._attributes
            ]
        return self._bins[order]

    def _score(
        self, axes: Axes, population: Population, total: float, view_epsilon: Fraction
    ) -> int:
        """Distance from the model in records, less what chance and the noise of the view add."""
        weight = self._weight(axes)
        distance, by_chance = self._distance(axes, population, total)
        cells: float = math.prod(self._sizes[a] for a in axes)
        most = total * float(view_epsilon) if len(axes) > 2 else TUNING.typical
        cells = min(cells, max(most, 2.0 ** len(axes)))
        noise = TUNING.noise * cells / float(view_epsilon)
        return weight * (distance - int(by_chance) - int(min(noise, 1e12)))

    def _distance(self, axes: Axes, population: Population, total: float) -> tuple[int, float]:
        """Distance of exact bins from those of binned rows, in records, and what chance adds."""
        expected, counts = total * population.margin(axes), self._counts[axes]
        rounded = np.rint(expected).astype(np.int64)
        by_chance = np.sqrt(2 / math.pi * expected * (1 + total / population.worth)).sum()
        return int(np.abs(counts - rounded).sum()), float(by_chance)

    def _weight(self, axes: Axes) -> int:
        if isinstance(self._workload, Mapping):
            return min(max(1, math.floor(_PARTS * self._workload[axes])), _PARTS)
        halved = self._label is not None and self._label not in axes
        return _PARTS // 2 if halved else _PARTS


def _one_by_one(
    sets: Sequence[Axes],
    scores: IntArray,
    n_views: int,
    epsilon: Fraction,
    source: NoiseSource,
) -> list[Axes]:
    """Sets of the highest noisy scores, each for epsilon; none shares a pair if others do not."""
    left = np.ones(len(scores), dtype=bool)
    apart = left.copy()
    holds = np.zeros((len(sets), 1 + max(map(max, sets))), dtype=bool)
    for place, axes in enumerate(sets):
        holds[place, list(axes)] = True
    chosen: list[Axes] = []
    for _ in range(n_views):
        free = left & apart
        among = np.flatnonzero(free if free.any() else left)
        best = noisy_max(scores[among], epsilon, 2 * _PARTS, random_state=source)
        axes = sets[int(among[best])]
        chosen.append(axes)
        left[among[best]] = False
        apart &= holds[:, list(axes)].sum(axis=1) < 2
    return chosen


def _grown(used: Sequence[int], pairs: set[Axes], order: int) -> Iterator[Axes]:
    """Sets of attributes that chosen pairs connect."""
    near: dict[int, set[int]] = {axis: set() for axis in used}
    for a, b in sorted(pairs):
        near[a].add(b)
        near[b].add(a)
    found: set[Axes] = set(pairs)
    for _ in range(order - 2):
        found = {
            tuple(sorted((*axes, other)))
            for axes in found
            for axis in axes
            for other in near[axis]
            if other not in axes
        }
    yield from sorted(found)
