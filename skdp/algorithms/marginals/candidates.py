"""Which sets of columns are measured: those whose counts are far from what the rows expect."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

import numpy as np

from ..._random import NoiseSource
from ..._validation import FloatArray, IntArray
from ...mechanisms import discrete_laplace, discrete_laplace_variance, noisy_max
from ...release import ColumnEstimate
from ...release.basis import SCALES
from ...tables import Counts
from .fit import Population
from .groups import TINY, TUNING, Attribute, equal_mass_bins

__all__ = ["Candidates", "Workload", "distance_of_pairs"]

Axes = tuple[int, ...]
# "all", "ranges", "cells", or sets of attributes with weights in (0, 1].
Workload = str | Mapping[Axes, float | Fraction]

# Weights of a workload are multiples of 1 / _PARTS; scores are sums of so many units for a record.
_PARTS = 16


class Candidates:
    """Sets of columns that can be measured, with their exact counts in a few bins.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private; counts of the candidates are kept here, and go with this object.
    attributes : sequence of Attribute
        Released.
    weights : mapping of tuple of int to float
        The sets, with weights in (0, 1].
    total : float
        The released number of records, positive.
    """

    def __init__(
        self,
        table: Counts,
        attributes: Sequence[Attribute],
        weights: Mapping[Axes, float | Fraction],
        total: float,
        columns: Mapping[int, ColumnEstimate],
    ) -> None:
        self._weights, self._total = weights, total
        self._sizes = [len(each.grouped) for each in attributes]
        self._bins = [
            equal_mass_bins(each.grouped, each.group_order, TUNING.bins) for each in attributes
        ]
        codes = [each.of_codes(own) for each, own in zip(attributes, self._bins, strict=True)]
        asked = [(axes, [codes[axis] for axis in axes]) for axes in weights]
        self._counts = dict(zip(weights, table.regrouped_many(asked), strict=True))
        # Of the released counts of the bins.
        self._variances = {
            axis: _variances(column, np.asarray(codes[axis])) for axis, column in columns.items()
        }

    def best(
        self,
        population: Population,
        taken: Collection[Axes],
        number: int,
        epsilon: Fraction,
        each: Fraction,
        source: NoiseSource,
    ) -> list[Axes]:
        """The sets with the highest noisy scores, one after the other.

        Parameters
        ----------
        population : Population
            The rows so far: released.
        taken : collection of tuple of int
            Sets that are measured already.
        number : int
        epsilon : Fraction
            Cost of the choice; 0 if all sets are measured, which are then taken in order.
        each : Fraction
            What a table will be measured with.
        source : NoiseSource
        """
        # Privacy. Released: the set of the highest noisy score, so many times, each with an equal
        # share of epsilon: they compose. A score is the sum of the absolute differences of exact
        # counts and released integers, times a public whole number of at most _PARTS, less
        # released numbers; a record changes one count by one, so that every score changes by at
        # most _PARTS, up or down: the range is 2 * _PARTS. Which sets are candidates, and their
        # bins, follow from released values and the sets chosen before. Without a budget nothing is
        # looked at: sets are taken in a public order.
        sets = [axes for axes in self._weights if axes not in taken]
        if number >= len(sets) or not epsilon:
            return sets[:number]
        binned = population.grouped(self._bins)
        scores = np.array([self._score(axes, binned, each) for axes in sets], dtype=np.int64)
        chosen: list[Axes] = []
        for _ in range(number):
            place = noisy_max(scores, epsilon / number, 2 * _PARTS, random_state=source)
            chosen.append(sets.pop(int(place)))
            scores = np.delete(scores, place)
        return chosen

    def misfit(
        self,
        population: Population,
        sets: Sequence[Axes],
        n_ordered: int,
        epsilon: Fraction,
        source: NoiseSource,
    ) -> float:
        """Distance from the rows of pairs that were not measured: see `distance_of_pairs`.

        Parameters
        ----------
        population : Population
            The rows: released.
        sets : sequence of tuple of int
            Pairs, at least one.
        n_ordered : int
            How many columns of each are ordered.
        epsilon : Fraction
        source : NoiseSource
        """
        # Privacy. Released: over all these sets the sum of the absolute differences of exact counts
        # and released integers. A record changes one count of each set by one: the sensitivity is
        # the number of sets. Which these are, and their bins, follow from releases before.
        binned = population.grouped(self._bins)
        found = [self._distance(axes, binned) for axes in sets]
        exact = np.array(sum(distance for distance, _ in found))
        noisy = float(discrete_laplace(exact, epsilon, len(sets), random_state=source))
        deviation = math.sqrt(discrete_laplace_variance(epsilon, len(sets)))
        by_chance = sum(by_chance for _, by_chance in found)
        sums = noisy, deviation, by_chance, sum(self._doubt(axes, binned) for axes in sets)
        return distance_of_pairs(n_ordered, *(each / len(sets) / self._total for each in sums))

    def _score(self, axes: Axes, binned: Population, each: Fraction) -> int:
        """Distance from the rows in records, less what chance and the noise of a table add."""
        distance, by_chance = self._distance(axes, binned)
        cells = min(math.prod(self._sizes[axis] for axis in axes), TUNING.bins**2)
        noise = min(cells / float(each), 1e12)
        weight = min(max(1, math.floor(_PARTS * self._weights[axes])), _PARTS)
        return weight * (distance - int(by_chance) - int(noise))

    def _distance(self, axes: Axes, binned: Population) -> tuple[int, float]:
        """Distance of exact bins from those of binned rows, in records, and what chance adds."""
        expected: FloatArray = self._total * binned.margin(axes)
        rounded: IntArray = np.rint(expected).astype(np.int64)
        by_chance = np.sqrt(2 / math.pi * expected * (1 + self._total / binned.worth)).sum()
        return int(np.abs(self._counts[axes] - rounded).sum()), float(by_chance)

    def _doubt(self, axes: Axes, binned: Population) -> float:
        """What the noise of two columns adds to a distance, in records."""
        shares = [binned.margin([axis]) for axis in axes]
        one, other = (self._variances[axis] for axis in axes)
        variance = np.outer(one, shares[1] ** 2) + np.outer(shares[0] ** 2, other)
        return float(np.sqrt(2 / math.pi * variance).sum())


def _variances(column: ColumnEstimate, bins: IntArray) -> FloatArray:
    """Variances of the released counts of some bins of the codes of a column."""
    return np.array([column.variance(1.0 * (bins == k)) for k in range(int(bins.max()) + 1)])


# A quadrature of exponential laws. As shares of the records the scales are mean distances.
_POINTS, _WEIGHTS = np.polynomial.laguerre.laggauss(len(SCALES))


def distance_of_pairs(
    n_ordered: int, seen: float, noise: float, by_chance: float, doubt: float
) -> float:
    """Mean of the exponential law with the mean square expected of pairs that people ask about.

    Distances of the pairs of a table have an exponential law, whose mean is log-normal over tables.
    Chance and the noise of columns add to them as independent errors do. People ask about numbers
    that go together: a pair is asked about in proportion to its distance, once for each number in
    it; less so the more is known, as the most distant pairs are measured then.

    Parameters
    ----------
    n_ordered : int
        How many columns are numbers.
    seen, noise : float
        Mean distance of the pairs of a table as released, and the standard deviation of its noise.
    by_chance, doubt : float
        What chance, and the noise of columns, add to pairs that agree.
    """
    away = SCALES[:, None] * _POINTS
    expected = np.sqrt(away**2 + by_chance**2 + doubt**2) @ _WEIGHTS
    # The relative deviation of a sum of so many absolute values.
    rough = doubt * math.sqrt((math.pi / 2 - 1) / TUNING.bins)
    size = np.log(SCALES)
    logs = -0.5 * ((size - math.log(TUNING.dependence * (1 + n_ordered))) / TUNING.unlike) ** 2
    logs -= 0.5 * (seen - expected) ** 2 / (noise**2 + rough**2 + TINY**2)
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    # Under an exponential law E[x^(2 + k)] / E[x^k] is (1 + k) (2 + k) / 2 times E[x^2].
    unknown = float(shares @ (size - shares @ size) ** 2) / TUNING.unlike**2
    asked = n_ordered * min(unknown, 1.0)
    return math.sqrt(float(shares @ SCALES**2) * (1.0 + asked) * (2.0 + asked) / 2.0)
