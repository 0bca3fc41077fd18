"""What is worth measuring: blocks and groups of codes, sets that are far off, or joint counts.

Joint counts are those of all columns together, where they stand out from the noise of a large
epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from sklearn.isotonic import IsotonicRegression

from ..._random import NoiseSource, sampling_generator
from ..._validation import TINY, CodeArray, FloatArray, IntArray
from ...domain import Zeros
from ...mechanisms import (
    discrete_laplace,
    discrete_laplace_variance,
    least_threshold,
    noisy_max,
    sparse_counts,
)
from ...release.basis import ColumnEstimate, Ladder
from ...release.prior import SCALES
from ...tables import Counts, CountTable
from .fit import ROWS_ONCE, TUNING, Attribute, Population, equal_mass_bins

Axes = tuple[int, ...]
# "all", "ranges", "cells", or sets of attributes with weights in (0, 1].
Workload = str | Mapping[Axes, float | Fraction]

# Weights of a workload are multiples of 1 / _PARTS; scores are sums of so many units for a record.
_PARTS = 16
# Columns whose pairs with all others are compared at once.
_COLUMNS_AT_ONCE = 128


# ------------------------------------------------------------------------------------------------
# How codes are grouped for tables of several columns, and in which blocks a column is measured.


def ladder_of(
    counts: FloatArray,
    order: IntArray | None,
    most_units: int = TUNING.groups,
    finest: float = math.inf,
    told: IntArray | None = None,
) -> Ladder:
    """Nested groups of the codes of a column, from its released counts.

    Parameters
    ----------
    counts : ndarray of float64
        Released; negative ones count as zero.
    order : ndarray of int64 or None
        Codes in an order in which neighbours are similar. None: there is none, and they are taken
        by their counts, the largest first.
    most_units : int, default=128
        A power of two.
    finest : float, optional
        Groups of a column that tables can afford. With no more codes there is a unit for each, and
        some units are empty; with more, none is.
    told : ndarray of int64, optional
        Public group of each code, ascending: units hold whole ones. By default the codes.
    """
    if told is not None and int(told.max()) + 1 < len(counts):
        own = np.bincount(told, weights=counts).astype(np.float64, copy=False)
        coarse = ladder_of(own, np.arange(len(own)), most_units, finest)
        return coarse._replace(units=coarse.units[told])
    n_codes = len(counts)
    mass = np.maximum(counts, 0.0)
    sequence = np.argsort(-mass, kind="stable") if order is None else np.asarray(order)
    units = np.empty(n_codes, dtype=np.int64)
    if n_codes <= TUNING.few:
        units[sequence] = np.arange(n_codes)
        return Ladder(units, (1, n_codes) if n_codes > 1 else (1,))
    least = 1 << ((n_codes - 1).bit_length() - 1)
    n_units = min(2 * least if least < n_codes <= finest else least, most_units)
    share = mass[sequence] / max(mass.sum(), 1e-300)
    units[sequence] = _halved((1 - TUNING.kept) * share + TUNING.kept / n_codes, n_units)
    return Ladder(units, tuple(1 << level for level in range(n_units.bit_length())))


def _halved(mass: FloatArray, n_units: int) -> IntArray:
    """Units of consecutive codes, halved by mass again and again.

    With no more codes than units each holds one code or none. A frequent code is alone in a group
    early, and leaves units without a code.
    """
    reach = np.concatenate([[0.0], np.cumsum(mass)])
    ends = [0, len(mass)]
    n_parts = 1
    while n_parts < n_units:
        n_parts *= 2
        room = n_units // n_parts
        cut = [0]
        for start, stop in zip(ends[:-1], ends[1:], strict=True):
            middle = (reach[start] + reach[stop]) / 2
            at = int(np.searchsorted(reach, middle))
            if at > start and middle - reach[at - 1] < reach[min(at, len(mass))] - middle:
                at -= 1
            if stop - start <= 2 * room:
                # No unit holds two codes if there are enough.
                at = min(max(at, stop - room), start + room)
            cut += [min(max(at, start), stop), stop]
        ends = cut
    return np.repeat(np.arange(n_units), np.diff(ends))


class ColumnPlan(NamedTuple):
    """In which blocks a column is measured, and with which shares of its budget.

    Attributes
    ----------
    sizes : tuple of int
        Levels of blocks from 1 to the lattice.
    shares : dict of int to Fraction
        Of each level that is measured; they add up to 1.
    """

    sizes: tuple[int, ...]
    shares: dict[int, Fraction]


def column_plan(n_codes: int, ordered: bool, signal: float = math.inf) -> ColumnPlan:
    """In which blocks a column is measured for this signal.

    The noise of a range grows with the square root of the number of blocks, and what a cut block
    hides falls with it; so the number grows slowly with the signal. The blocks take most of the
    budget, and some levels below them the rest, down to the codes: what is inside a block matters
    where the blocks differ much, and noise of fine codes is left out elsewhere
    (`ColumnEstimate.fit`). A column without an order is measured code by code, as is one of codes
    that are as many as the blocks.

    Parameters
    ----------
    n_codes : int
    ordered : bool
        Whether neighbouring codes are similar.
    signal : float, default=inf
        Released number of records times the epsilon of the column.
    """
    few = max(TUNING.blocks * signal ** (1 / 3), 2.0) if ordered else math.inf
    halvings = max(round(math.log2(n_codes / few)), 0) if few < n_codes else 0
    blocks = math.ceil(n_codes / (1 << halvings))
    sizes = (1, *(blocks << level for level in range(halvings + 1)))
    depth = math.ceil(halvings / TUNING.halvings)
    finer = [blocks << (halvings * (level + 1) // depth) for level in range(depth)]
    rest = (1 - TUNING.of_blocks) / max(depth, 1)
    return ColumnPlan(sizes, {blocks: 1 - depth * rest, **dict.fromkeys(finer, rest)})


# --- sets of columns


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
    ) -> None:
        self._weights, self._total = weights, total
        self._sizes = [len(each.order) for each in attributes]
        self._bins = [equal_mass_bins(each.grouped, each.order, TUNING.bins) for each in attributes]
        # The bin of each code.
        self._codes = [own[each.groups] for each, own in zip(attributes, self._bins, strict=True)]
        asked = [(axes, [self._codes[axis] for axis in axes]) for axes in weights]
        # Counts of pairs stand in one matrix, in which the bins of a column are side by side.
        self._starts = np.cumsum([0, *(int(each.max()) + 1 for each in self._bins)])
        self._pairs = np.zeros((self._starts[-1], self._starts[-1]), dtype=np.int64)
        self._wider: dict[Axes, IntArray] = {}
        for axes, counts in zip(weights, table.regrouped_many(asked), strict=True):
            if len(axes) == 2:
                self._pairs[self._place(axes[0]), self._place(axes[1])] = counts
            else:
                self._wider[axes] = counts

    def _place(self, axis: int) -> slice:
        """Where the bins of a column stand."""
        return slice(self._starts[axis], self._starts[axis + 1])

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
            Rows of independent columns: released.
        taken : collection of tuple of int
            Sets that are measured already.
        number : int
        epsilon : Fraction
            Cost of the choice, positive.
        each : Fraction
            What a table will be measured with.
        source : NoiseSource
        """
        # Privacy. Released: the set of the highest noisy score, so many times, each with an equal
        # share of epsilon: they compose. A score is the sum of the absolute differences of exact
        # counts and released integers, times a public whole number of at most _PARTS, less
        # released numbers; a record changes one count by one, so that every score changes by at
        # most _PARTS, up or down: the range is 2 * _PARTS. Which sets are candidates, and their
        # bins, follow from released values and the sets chosen before.
        sets = [axes for axes in self._weights if axes not in taken]
        seen, by_chance, _ = self._distances(population, sets, {})
        cells = [math.prod(self._sizes[axis] for axis in axes) for axes in sets]
        noise = np.minimum(np.minimum(cells, TUNING.bins**2) / float(each), 1e12)
        weights = [math.floor(_PARTS * self._weights[axes]) for axes in sets]
        less = by_chance.astype(np.int64) + noise.astype(np.int64)
        scores = np.clip(weights, 1, _PARTS) * (seen - less)
        chosen: list[Axes] = []
        for _ in range(number):
            place = noisy_max(scores, epsilon / number, 2 * _PARTS, random_state=source)
            chosen.append(sets.pop(int(place)))
            scores = np.delete(scores, place)
        return chosen

    def misfits(
        self,
        population: Population,
        columns: Mapping[int, ColumnEstimate],
        kinds: Mapping[int, Sequence[Axes]],
        epsilon: Fraction,
        source: NoiseSource,
    ) -> dict[int, float]:
        """How far from the rows pairs are that were not measured: see `distance_of_pairs`.

        Parameters
        ----------
        population : Population
            The rows: released.
        columns : mapping of int to ColumnEstimate
            To which the rows were fitted.
        kinds : mapping of int to sequence of tuple of int
            Pairs, at least one of a kind, by how many of their columns are ordered.
        epsilon : Fraction
        source : NoiseSource
        """
        # Privacy. Released for each kind, one after the other with equal parts of epsilon: over all
        # its sets the sum of the absolute differences of exact counts and released integers. A
        # record changes one count of each set by one: the sensitivity is the number of sets. Which
        # these are, and their bins, follow from releases before.
        sets = [axes for _, some in sorted(kinds.items()) for axes in some]
        each = self._distances(population, sets, columns)
        part, first, found = epsilon / len(kinds), 0, {}
        for kind, some in sorted(kinds.items()):
            n, first = len(some), first + len(some)
            seen, by_chance, doubt = (values[first - n : first].sum() for values in each)
            noisy = discrete_laplace(seen, part, n, random_state=source)
            deviation = math.sqrt(discrete_laplace_variance(part, n))
            means = (float(sums) / n / self._total for sums in (noisy, deviation, by_chance, doubt))
            found[kind] = distance_of_pairs(kind, n, *means)
        return found

    def _distances(
        self, population: Population, sets: Sequence[Axes], columns: Mapping[int, ColumnEstimate]
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """How far exact bins of sets are from those of rows, and what adds to it, in records.

        Returns
        -------
        seen : ndarray of int64
            Distances.
        by_chance : ndarray of float64
            What rows drawn at random add to them.
        doubt : ndarray of float64
            What the noise of the two columns of a pair adds.
        """
        variances = np.zeros(self._starts[-1])
        for axis, column in columns.items():
            # One for each bin.
            bins = np.eye(int(self._codes[axis].max()) + 1)[self._codes[axis]]
            variances[self._place(axis)] = column.variance(bins)
        number = len(self._bins)
        binned = population.grouped(range(number), self._bins, np.diff(self._starts).tolist())
        squares = np.concatenate([binned.margin([axis]) ** 2 for axis in range(number)])
        found = np.zeros((3, number, number))
        # Some columns at a time: memory grows with the number of columns.
        for first, last in pairwise([*range(0, number, _COLUMNS_AT_ONCE), number]):
            here, on = slice(*self._starts[[first, last]]), slice(self._starts[first], None)
            expected = self._total * binned.margins_of_pairs(first, last)
            variance = np.outer(variances[here], squares[on])
            variance += np.outer(squares[here], variances[on])
            tables = (
                np.abs(self._pairs[here, on] - np.rint(expected).astype(np.int64)),
                self._chance(expected, binned),
                np.sqrt(2 / math.pi * variance),
            )
            starts = self._starts[first:-1] - self._starts[first]
            for sums, cells in zip(found, tables, strict=True):
                lines = np.add.reduceat(cells, starts[: last - first], axis=0)
                sums[first:last, first:] = np.add.reduceat(lines, starts, axis=1)
        one, other = np.array([axes[:2] for axes in sets], dtype=np.int64).reshape(-1, 2).T
        seen, by_chance, doubt = found[:, one, other]
        for place, axes in enumerate(sets):
            if axes in self._wider:
                expected = self._total * binned.margin(axes)
                seen[place] = np.abs(self._wider[axes] - np.rint(expected).astype(np.int64)).sum()
                by_chance[place] = self._chance(expected, binned).sum()
        # Whole numbers far below 2**53, which a float holds exactly.
        return seen.astype(np.int64), by_chance, doubt

    def _chance(self, expected: FloatArray, binned: Population) -> FloatArray:
        return np.sqrt(2 / math.pi * expected * (1 + self._total / binned.n_rows))


# A quadrature of exponential laws. As shares of the records the scales are mean distances.
_POINTS, _WEIGHTS = np.polynomial.laguerre.laggauss(len(SCALES))


def distance_of_pairs(
    n_ordered: int, n_pairs: int, seen: float, noise: float, by_chance: float, doubt: float
) -> float:
    """Mean of the exponential law with the mean square that questions meet.

    Distances of the pairs of a table have an exponential law, whose mean is log-normal over tables.
    Chance and the noise of columns add to them as independent errors do. People ask about numbers
    that go together, and about frequent categories, which deviate less than rare ones.

    Parameters
    ----------
    n_ordered : int
        How many columns are numbers.
    n_pairs : int
        How many pairs were not measured.
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
    # Of n exponential numbers of mean m, the mean power 1 + k is about this times that power of m:
    # the square of the mean for categories, the mean square with one number, and with two that of
    # pairs drawn by their distance.
    power = math.prod((1 + k) * n_pairs / (n_pairs + k) for k in range(1, 1 + n_ordered))
    return math.sqrt(float(shares @ SCALES**2) * power / 2)


# --- joint counts

# Bins by density in which cells are counted that are tried, to see where empty ones pass.
_DENSITIES = 100
# Released rows: a bound on memory.
_JOINT_COUNTS = 5_000_000


class JointCounts(NamedTuple):
    """Rows of codes and their released counts.

    Attributes
    ----------
    rows : ndarray of int32, shape (n_rows, n_attributes)
    counts : ndarray of float64, shape (n_rows,)
    noise : float
        Variance of the noise of a count.
    elsewhere : float
        Variance of the sum over all other cells.
    """

    rows: CodeArray
    counts: FloatArray
    noise: float
    elsewhere: float

    def completed(
        self, rows: CodeArray, weights: FloatArray, zeros: Zeros, total: float
    ) -> tuple[CodeArray, FloatArray]:
        """These rows and masses, and weighted ones for the records that they lack."""
        lawful = ~zeros.breaks(self.rows)
        counts = self.counts[lawful]
        lacking = max(total - counts.sum(), 0.0)
        if counts.sum() > 0 and not lacking:
            return np.asfortranarray(self.rows[lawful]), counts
        both = np.concatenate([self.rows[lawful], rows])
        return np.asfortranarray(both), np.append(counts, max(lacking, TINY) * weights)


def joint_share(views: Fraction, total: float, shape: tuple[int, ...]) -> Fraction:
    """Budget of the joint counts: 0 if more than a few empty cells would pass for records.

    Parameters
    ----------
    views : Fraction
    total : float
        The released number of records.
    shape : tuple of int
    """
    share = views * (1 - TUNING.beside)
    # Of the empty cells too no larger part may pass.
    if not 1 <= total <= _JOINT_COUNTS or float(share) < -math.log(TUNING.false):
        return Fraction(0)
    few = max(round(TUNING.false * total), 1)
    return share if least_threshold(math.prod(shape), share, few) <= 1 else Fraction(0)


def measure_joint(
    table: Counts, epsilon: Fraction, attributes: Sequence[Attribute], source: NoiseSource
) -> JointCounts:
    """Noisy counts of all cells where they are at least 1.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    epsilon : Fraction
        Their cost.
    attributes : sequence of Attribute
        Released: where records are likely.
    source : NoiseSource
    """
    # Privacy. Released: the cells of the whole domain whose noisy count is at least 1, with these
    # counts. Every cell gets noise, the empty ones too, and a record adds one to one cell:
    # sensitivity 1.
    whole = table if isinstance(table, CountTable) else table.project(range(len(table.shape)))
    rows, noisy = sparse_counts(
        whole.codes, whole.counts, table.shape, epsilon, 1, random_state=source
    )
    counts = noisy * _real(rows, noisy, table.shape, attributes, epsilon, source)
    # How many empty cells pass is as uncertain as a Poisson number.
    passing = math.exp(math.log(math.prod(table.shape)) - float(epsilon))
    return JointCounts(rows.astype(np.int32), counts, discrete_laplace_variance(epsilon), passing)


def _real(
    rows: CodeArray | IntArray,
    noisy: IntArray,
    shape: Sequence[int],
    attributes: Sequence[Attribute],
    epsilon: Fraction,
    source: NoiseSource,
) -> FloatArray:
    """Probability that a cell that passed is not empty.

    Empty cells pass everywhere alike, records lie where single attributes have them: cells with a
    count of 1 are compared with as many as must be empty among those of equal density by
    independent attributes. Above it hardly any is empty, as epsilon is large.
    """
    at = noisy == 1
    if not at.any():
        return np.ones(len(rows))
    logs = [np.log(np.maximum(each.mu, TINY)) for each in attributes]
    generator = sampling_generator(source)
    anywhere = sum(
        log[generator.integers(0, size, ROWS_ONCE)] for log, size in zip(logs, shape, strict=True)
    )
    dense = sum(log[codes] for log, codes in zip(logs, rows[at].T, strict=True))
    inner = np.linspace(0, 1, _DENSITIES + 1)[1:-1]
    edges = np.unique(np.concatenate([np.quantile(each, inner) for each in (dense, anywhere)]))
    bin_of = np.searchsorted(edges, dense)
    share = np.bincount(np.searchsorted(edges, anywhere), minlength=len(edges) + 1) / ROWS_ONCE
    # Noise is t with probability q**t (1 - q) / (1 + q), where q = exp(-epsilon).
    q = math.exp(-float(epsilon))
    passing = math.exp(math.log(math.prod(shape)) - float(epsilon))
    false = share * passing * (1 - q) / (1 + q)
    # The share of real cells grows with density. Bins without cells count too: noise averages out.
    cells = np.maximum(np.bincount(bin_of, minlength=len(share)), TINY)
    growing = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    real = growing.fit_transform(np.arange(len(cells)), 1 - false / cells, sample_weight=cells)
    kept = np.ones(len(rows))
    kept[at] = real[bin_of]
    return kept
