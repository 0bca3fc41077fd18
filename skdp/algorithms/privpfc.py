"""PrivPfC: select one grid for classification, then count its cells.

The grid is selected in a single private step (two for many records). Predictors come as
*options*: groupings of the codes of one predictor, from coarse to fine. A grid is one option
number for each predictor; 0 stands for "everything in one group".

* `candidates`: the numbers that change a release, the groupings of a predictor, and the grids that
  a selection may take;
* `scores`: the score of a grid, how much one record can change it, and scores of many at once;
* `selection`: the private choice, the noisy counts of the cells, and groupings made from noisy
  counts, for many records.

References
----------
D. Su, "Differentially private data publishing for data analysis", Purdue University, 2016.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations, groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._random import NoiseSource, noise_source
from .._validation import FloatArray, IntArray, as_share, dyadic_floor, running_sums, split_epsilon
from ..mechanisms import discrete_laplace, discrete_laplace_variance, exponential, noisy_max
from ..tables import Counts
from .additive import TUNING as ADDITIVE
from .additive import column_shares

# ------------------------------------------------------------------------------------------------
# PrivPfC: the grids that a selection may take, from public facts and a noisy number of records.


@dataclass(frozen=True)
class Tuning:
    """The numbers of "auto" that change a release; all by ``benchmarks/models.py``."""

    # Largest number of predictors in a set; the cells of the random grid than which the grids of a
    # set are coarser, in limits of cells; and the factor by which pools near a choice are smaller.
    breadth: int = 8
    # Records times the budget of selection for each further selection near the first choice, and
    # how many there are at most.
    further: float = 5_000.0
    most_further: int = 6
    # With further selections there are enough records for grids that are too fine: this share of
    # what a grid gains by fitting its own records is taken off, and twice as much where the
    # groupings fit the records too.
    penalty: float = 0.35
    # Groups in which the values of a predictor are counted by label at most, and into which they
    # are merged at most.
    finest: int = 256
    merged: int = 32
    # Share of the budget of the grid that these counts take.
    merging: Fraction = Fraction(2, 5)


TUNING = Tuning()

# --- PrivPfC: the ways to group the codes of a predictor, from coarse to fine


@dataclass(frozen=True)
class Options:
    """The ways to group the codes of one predictor.

    Parameters
    ----------
    groups : tuple of ndarray of shape (n_codes,)
        Group of each code, one array for each option beyond "everything in one group".
    n_first : int, optional
        How many of them, from the front, a first selection may take; a second one may take all.
        Default all.
    """

    groups: tuple[IntArray, ...]
    n_first: int | None = None

    @cached_property
    def sizes(self) -> IntArray:
        """Number of groups of every option, the trivial one first."""
        return np.array([1, *(int(groups.max()) + 1 for groups in self.groups)], dtype=np.int64)

    @cached_property
    def coarser(self) -> tuple[IntArray, ...]:
        """For every option the options whose groups are unions of its groups, itself included."""
        result = [np.zeros(1, dtype=np.int64)]
        for fine in self.groups:
            options = []
            for option, groups in enumerate(self.groups, start=1):
                width = self.sizes[option]
                if len(np.unique(fine * width + groups)) == int(fine.max()) + 1:
                    options.append(option)
            result.append(np.array(options, dtype=np.int64))
        return tuple(result)

    @cached_property
    def first(self) -> Options:
        """The options that a first selection may take."""
        return self if self.n_first is None else Options(self.groups[: self.n_first])


# --- the grids

# If a set has at most this many combinations of options, all are listed; options are dropped at
# random while there are more.
_LISTED_ONCE = 4096
# Largest number of noisy counts in a release, over all cells and labels; of the dissertation's only
# memory sets it.
_MOST_COUNTS = 2**17
_PAPER_COUNTS = 2**25
# Grids of one set, which share a table of counts, at most.
_SHARED_ONCE = 32
# Cells of a random grid than which those of one set are coarser.
_SHARED_CELLS = 2**14


def cell_limit(
    n_records: float, epsilon: Fraction, n_classes: int = 2, calibration: str = "paper"
) -> int:
    """Largest number of cells of a candidate.

    In the paper the noise is at most a fifth of the average count. The quality is low for cells
    dominated by noise, so by default the noise may be as large as the average count of a cell, or
    less with many classes, and the noise of a class over all cells as large as its average count;
    a last bound keeps the release and the training set small.

    Parameters
    ----------
    n_records : float
        A noisy number of records; below 1 counts as 0.
    epsilon : Fraction
        Budget of the counts.
    n_classes : int, default=2
    calibration : {"tight", "paper"}, default="paper"
    """
    paper = calibration == "paper"
    signal, n_classes = max(float(n_records), 0.0) * float(epsilon), max(n_classes, 2)
    if paper:
        cells = 0.2 * signal
    else:
        cells = min(signal * (2 / n_classes) ** 0.5, (signal / n_classes) ** 2 / 2)
    most = _PAPER_COUNTS if paper else _MOST_COUNTS
    return max(1, min(math.floor(cells), most // n_classes))


def max_useful_groups(limit: int, calibration: str = "paper") -> int:
    """Largest number of groups of one predictor in a candidate.

    By default this leaves a hundred cells for the other predictors, or is sixteen: with fewer
    options the pool has room for more combinations.
    """
    most = 64 if calibration == "paper" else min(64, max(16, limit // 100))
    return max(1, min(limit, most))


def paper_grids(sizes: Sequence[IntArray], limit: int, max_grids: int) -> list[NDArray[np.int16]]:
    """The candidates in the order of the dissertation: level by level, cut off at the maximum.

    Grids that go beyond the top in one predictor come first, then those in two, and so on; a grid
    that is reached in two ways counts twice towards ``max_grids`` and is kept once.

    Parameters
    ----------
    sizes : sequence of ndarray
        Number of groups of every option of each predictor.
    limit : int
        Largest number of cells.
    max_grids : int

    Returns
    -------
    list of ndarray of shape (n_grids, n_predictors)
        The grids of each set of predictors.
    """
    top = (0,) * len(sizes)
    found = {top: 1}
    level = {top: 1}
    generated = 0
    while level:
        following: dict[tuple[int, ...], int] = {}
        for grid, cells in level.items():
            for axis, options in enumerate(sizes):
                if grid[axis]:
                    continue
                for option in range(1, len(options)):
                    size = cells * int(options[option])
                    if size > limit:
                        continue
                    if generated >= max_grids - 1:
                        return _by_predictors([*found, *following])
                    following[(*grid[:axis], option, *grid[axis + 1 :])] = size
                    generated += 1
        found.update(following)
        level = following
    return _by_predictors(list(found))


def _by_predictors(grids: list[tuple[int, ...]]) -> list[NDArray[np.int16]]:
    families: dict[tuple[bool, ...], list[tuple[int, ...]]] = {}
    for grid in grids:
        families.setdefault(tuple(map(bool, grid)), []).append(grid)
    return [np.array(family, dtype=np.int16) for family in families.values()]


def candidate_grids(
    options: Sequence[Options], limit: int, max_grids: int, *, random_state: Any = None
) -> list[NDArray[np.int16]]:
    """A pool of distinct candidates that does not depend on the order of columns.

    The all-top grid is always in it, then every option of every predictor, then every pair of
    predictors (with as many options as fit into a tenth of the pool), then random larger sets. It
    is a function of public facts, of ``limit`` and of randomness.

    Parameters
    ----------
    options : sequence of Options
        One for each predictor.
    limit : int
        Largest number of cells.
    max_grids : int
    random_state : None, int or NoiseSource

    Returns
    -------
    list of ndarray of shape (n_grids, n_predictors)
        Families of grids that can be counted together.
    """
    source = noise_source(random_state)
    sizes = [each.sizes for each in options]
    n_axes = len(sizes)
    usable = [np.flatnonzero(each <= limit)[1:] for each in sizes]
    axes = [axis for axis in range(n_axes) if len(usable[axis])]
    builder = _Builder(np.zeros(n_axes, dtype=np.int16), max_grids)
    for axis in _shuffled(axes, source):
        builder.add((axis,), usable[axis][:, None])

    pairs = []
    for pair in combinations(axes, 2):
        combos = _combinations([usable[axis] for axis in pair])
        fits = _cells(sizes, pair, combos) <= limit
        if fits.any():
            pairs.append((pair, combos[fits]))
    room = max(builder.room - max_grids * 9 // 10, min(builder.room, len(pairs)))
    for pair, combos in _thinned(_shuffled(pairs, source), room, source):
        builder.add(pair, combos)

    # Larger sets: each size in turn gets half of the remaining room, the last gets the rest.
    smallest = np.sort([min(int(sizes[axis][option]) for option in usable[axis]) for axis in axes])
    largest = int(np.searchsorted(np.cumprod(smallest.astype(np.float64)), limit, side="right"))
    orders = range(3, min(largest, TUNING.breadth, len(axes)) + 1)
    for order in orders:
        share = builder.room if order == orders[-1] else math.ceil(builder.room / 2)
        _add_random_sets(builder, options, axes, usable, order, limit, share, source)
    return builder.families


class _Builder:
    """Collects distinct grids that differ from one in some predictors, that one first."""

    def __init__(self, start: NDArray[np.int16], max_grids: int) -> None:
        self.start = start
        self.families = [start[None]]
        self.seen = {start.tobytes()}
        self.room = max_grids - 1

    def add(self, axes: Sequence[int], combos: IntArray) -> int:
        """Add combinations of options of some predictors if there is room; count the new ones."""
        block = np.repeat(self.start[None], len(combos), axis=0)
        block[:, list(axes)] = combos
        new: list[int] = []
        for number, row in enumerate(block):
            key = row.tobytes()
            if key not in self.seen and len(new) < self.room:
                self.seen.add(key)
                new.append(number)
        if new:
            self.families.append(block[new])
        self.room -= len(new)
        return len(new)


def _shuffled(items: Sequence[Any], source: NoiseSource) -> list[Any]:
    keys = source.words(len(items)) if len(items) else np.zeros(0)
    return [items[position] for position in np.argsort(keys, kind="stable")]


def _combinations(choices: Sequence[IntArray]) -> IntArray:
    """All combinations of one choice each, one row each."""
    mesh = np.meshgrid(*choices, indexing="ij")
    return np.stack([part.ravel() for part in mesh], axis=1)


def _cells(sizes: Sequence[IntArray], axes: Sequence[int], combos: IntArray) -> FloatArray:
    cells = np.ones(len(combos))
    for position, axis in enumerate(axes):
        cells *= np.asarray(sizes[axis], dtype=np.float64)[combos[:, position]]
    return cells


def _thinned(pairs: list[Any], room: int, source: NoiseSource) -> list[Any]:
    """Random combinations of each pair, equally many if a pair has enough."""
    lengths = np.array([len(combos) for _, combos in pairs], dtype=np.int64)
    if lengths.sum() <= room:
        return pairs
    quota = np.zeros(len(pairs), dtype=np.int64)
    while room > 0:
        open_ = np.flatnonzero(quota < lengths)[:room]
        each = max(1, room // len(open_))
        more = np.minimum(lengths[open_] - quota[open_], each)
        quota[open_] += more
        room -= int(more.sum())
    return [
        (pair, combos[np.argsort(source.words(len(combos)), kind="stable")[:most]])
        for (pair, combos), most in zip(pairs, quota.tolist(), strict=True)
        if most
    ]


def _add_random_sets(
    builder: _Builder,
    options: Sequence[Options],
    axes: Sequence[int],
    usable: Sequence[IntArray],
    order: int,
    limit: int,
    most: int,
    source: NoiseSource,
) -> None:
    """Random sets of ``order`` predictors, a family of each, until ``most`` have been added.

    The grids of a family are coarser than one random grid, so that they can be counted together,
    or have the option of the first grid.
    """
    sizes = [each.sizes for each in options]

    @cache
    def coarser(axis: int, option: int) -> IntArray:
        found = np.intersect1d(options[axis].coarser[option], usable[axis])
        return np.union1d(found, builder.start[axis])

    n_draws = 2 * math.ceil(most / _SHARED_ONCE) + 8
    keys = source.words((n_draws, len(axes)))
    for drawn in np.argsort(keys, axis=1, kind="stable")[:, :order]:
        if most <= 0:
            break
        members = sorted(axes[place] for place in drawn.tolist())
        others = math.prod(
            int(sizes[axis][option])
            for axis, option in enumerate(builder.start.tolist())
            if axis not in members
        )
        room = limit // others
        cells = max(min(limit * TUNING.breadth, _SHARED_CELLS) // others, 1)
        finest = _random_grid(sizes, members, usable, cells, source)
        if finest is None:
            continue
        below = [coarser(axis, option) for axis, option in zip(members, finest, strict=True)]
        while math.prod(map(len, below)) > _LISTED_ONCE:
            longest = max(range(order), key=lambda position: len(below[position]))
            below[longest] = below[longest][source.words(len(below[longest])) >> np.uint64(63) == 1]
        combos = _combinations(below)
        combos = combos[_cells(sizes, members, combos) <= room]
        if len(combos) > _SHARED_ONCE:
            chosen = np.argsort(source.words(len(combos)), kind="stable")[:_SHARED_ONCE]
            combos = combos[chosen]
        most -= builder.add(members, combos[:most])


def _random_grid(
    sizes: Sequence[IntArray],
    members: Sequence[int],
    usable: Sequence[IntArray],
    limit: int,
    source: NoiseSource,
) -> list[int] | None:
    """An option for each of ``members`` with at most ``limit`` cells; None if there are none."""
    least = [int(sizes[axis][usable[axis]].min()) for axis in members]
    rest = math.prod(least)
    cells = 1
    result = []
    for axis, smallest in zip(members, least, strict=True):
        rest //= smallest
        fits = usable[axis][sizes[axis][usable[axis]] * cells * rest <= limit]
        if not len(fits):
            return None
        option = int(fits[source.below(len(fits))])
        cells *= int(sizes[axis][option])
        result.append(option)
    return result


def neighbouring_grids(
    start: NDArray[np.int16],
    options: Sequence[Options],
    limit: int,
    max_grids: int,
    *,
    random_state: Any = None,
) -> list[NDArray[np.int16]]:
    """Distinct grids that differ from ``start`` in at most three predictors, itself included.

    All that differ in one, then some that differ in up to three random predictors each.

    Parameters
    ----------
    start : ndarray of shape (n_predictors,)
    options, limit, max_grids, random_state
        As for :func:`candidate_grids`.

    Returns
    -------
    list of ndarray of shape (n_grids, n_predictors)
        Families of grids that can be counted together.
    """
    source = noise_source(random_state)
    sizes = [each.sizes for each in options]
    cells = math.prod(int(size[option]) for size, option in zip(sizes, start, strict=True))
    usable = [
        np.flatnonzero(size <= limit // (cells // int(size[option])))
        for size, option in zip(sizes, start, strict=True)
    ]
    axes = [axis for axis, each in enumerate(usable) if len(each) > 1]
    builder = _Builder(start, max_grids)
    alone = [((axis,), usable[axis][:, None]) for axis in axes]
    for axis, combos in _thinned(_shuffled(alone, source), builder.room, source):
        builder.add(axis, combos)
    usable = [np.flatnonzero(size <= limit) for size in sizes]
    axes = [axis for axis, each in enumerate(usable) if len(each) > 1]
    if axes:
        order = min(3, len(axes))
        _add_random_sets(builder, options, axes, usable, order, limit, builder.room, source)
    return builder.families


# ------------------------------------------------------------------------------------------------
# PrivPfC: exact scores of many grids, counted together.


# --- PrivPfC: the quality of a grid
#
# It is the expected number of correct predictions of a classifier that predicts, in each cell, the
# class with the largest noisy count. It is defined by an integer table, so that its range is exact
# and no floating-point error affects the privacy.
#
# With many records these are the predictions for the very records that decide the majorities, and
# the finest grid always wins. A quality with a *penalty* takes off, in each cell, about what its
# majority gains by being chosen from the same records.

# Scores are in units of 1/4096 of a record.
UNIT = 4096
# Longest quality table; differences beyond it count as certain wins.
_QUALITY_CELLS = 2**20
# Scores of cells with a largest count below this are looked up.
_LOOKED_UP_COUNTS = 256
# Density of the standard normal law at 0.
_NORMAL = 1 / math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class Quality:
    """Integer table of the expected number of correct predictions in a cell.

    A cell whose two largest class counts are n1 >= n2 scores ``UNIT * n2 + table[n1 - n2]``; past
    its end the table goes on with steps of ``UNIT``.

    The penalty is a share of `_optimism`. All of it suits a classifier that trusts every cell;
    those that smooth the cells gain from finer grids.

    Parameters
    ----------
    table : ndarray of shape (length,), int64
    penalty : float, default=0.0
        Share of the optimism that is taken off.
    noise : float, default=0.0
        Variance of the difference of the noises of two counts, for the penalty.
    """

    table: IntArray
    penalty: float = 0.0
    noise: float = 0.0

    @classmethod
    def for_counts(cls, epsilon: Fraction, penalty: float = 0.0) -> Quality:
        """The table for counts with discrete Laplace noise of budget ``epsilon``."""
        rate = float(dyadic_floor(epsilon))
        x = np.arange(_table_length(rate), dtype=np.float64)
        # Distribution of the difference of the noises of two counts.
        r = math.exp(-rate)
        law = (math.tanh(rate / 2)) ** 2 * r**x * (x + 1 / math.tanh(rate))
        below = 0.5 + np.cumsum(law) - law / 2 - law[0] / 2
        return cls(_scaled(x, below), penalty, 4 * r / (1 - r) ** 2)

    @classmethod
    def of_the_paper(cls, epsilon: Fraction) -> Quality:
        """The table for Laplace noise of scale 1 / epsilon, as in the dissertation."""
        rate = float(epsilon)
        x = np.arange(_table_length(rate), dtype=np.float64)
        return cls(_scaled(x, 1 - np.exp(-rate * x) / 2 * (1 + rate * x / 2)))

    @property
    def score_range(self) -> int:
        """Length of the interval that holds the changes of all scores when a record is added.

        Only one cell of each grid changes. If the record's class is (or becomes) the largest,
        the difference x grows and the score changes by a step s(x) of the table; if it is (or
        becomes) the second, the difference falls and the score changes by UNIT - s(x - 1);
        otherwise by nothing. If one class overtakes another, their names are exchanged but the
        sorted counts are not. Hence all changes, of all grids, lie between the least and the
        largest of s, UNIT - s and 0.
        """
        length = int(self._changes.max() - self._changes.min())
        if not self.penalty:
            return length
        # Privacy. The penalty is P = c (n / s) f(z), f the normal density, s^2 = 1 + noise + n and
        # z = x / s. Adding a record moves (n, x) to (n + 1, x + 1) or (n + 1, x - 1), so P changes
        # by dP/dn + dP/dx or dP/dn - dP/dx at a point between them. There |dP/dx| is
        # c (n / s^2) z f(z) <= c f(1); with r = n / s^2 < 1, dP/dn is (c / s) f(z) (1 - r/2 +
        # r z^2/2), which is positive and at most c f(0) / s: (1 - r/2 + r u) exp(-u) <= 1 for
        # u >= 0, as 1 - r/2 + r u <= 1 + u. So the interval grows by at most 2 c f(1) +
        # c f(0) / sqrt(1 + noise), and by at most 3 units by the rounding of P.
        slope = 2 * _NORMAL * math.exp(-1 / 2) + _NORMAL / math.sqrt(1 + self.noise)
        return length + math.ceil(UNIT * math.sqrt(2) * self.penalty * slope) + 3

    @cached_property
    def _changes(self) -> IntArray:
        """All that one record can add to a score, without the penalty."""
        # Past the end of the table every step is UNIT.
        steps = np.append(np.diff(self.table), UNIT)
        return np.concatenate([steps, UNIT - steps, [0]])

    @property
    def sensitivity(self) -> int:
        """Largest change of a score, up or down, by one record: eq. 3.3 of the dissertation."""
        return int(np.abs(self._changes).max())

    def score(self, largest: IntArray, second: IntArray) -> IntArray:
        """Score of each cell from its two largest class counts."""
        large = np.flatnonzero(largest >= _LOOKED_UP_COUNTS)
        scores = self._small.take(largest * _LOOKED_UP_COUNTS + second, mode="clip")
        scores[large] = self._score(largest[large], second[large])
        return scores

    @cached_property
    def _small(self) -> IntArray:
        """Scores of cells of small counts, which are most."""
        return self._score(*np.divmod(np.arange(_LOOKED_UP_COUNTS**2), _LOOKED_UP_COUNTS))

    def _score(self, largest: IntArray, second: IntArray) -> IntArray:
        difference = np.maximum(largest - second, 0)
        last = len(self.table) - 1
        inside = np.minimum(difference, last)
        scores = UNIT * (second + difference - inside) + self.table[inside]
        if self.penalty:
            gained = _optimism(largest + second, difference, self.noise)
            penalty = math.sqrt(2) * self.penalty * gained
            scores -= np.rint(UNIT * penalty).astype(np.int64)
        return scores


def _optimism(n: IntArray, difference: IntArray, noise: float) -> FloatArray:
    """Correct predictions that a cell of n records owes to deciding over its own records.

    Left out of its cell, a record changes the majority if the (noisy) difference of the counts is
    nearly zero. Its density there is that of a normal law with the variance of the noise and of
    drawing n records. For labels like coin flips, without noise, the mean over the differences is
    the mean gain of the majority, about 0.4 sqrt(n), divided by sqrt(2).
    """
    spread = np.sqrt(1 + noise + n)
    return _NORMAL * n / spread * np.exp(-((difference / spread) ** 2) / 2)


def _scaled(x: FloatArray, below: FloatArray) -> IntArray:
    return np.rint(UNIT * x * np.minimum(below, 1.0)).astype(np.int64)


def _table_length(rate: float) -> int:
    # Beyond 45 / rate the smaller count wins with a probability below 1e-17.
    return min(_QUALITY_CELLS, math.ceil(45 / rate) + 2)


# --- scores of many grids, counted together

# Cells by label of a table that several grids share, and of all grids that are scored at once.
_TABLE_CELLS = 2**18
_CHUNK = 2**20


def grid_scores(
    table: Counts,
    options: Sequence[Options],
    families: Sequence[NDArray[np.int16]],
    quality: Quality,
) -> IntArray:
    """Exact integer score of every grid.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        The predictors in order, and the class as the last attribute.
    options : sequence of Options
        One for each predictor.
    families : sequence of ndarray of shape (n_grids, n_predictors)
        Grids that are counted together; quickest where few predictors differ in a family.
    quality : Quality

    Returns
    -------
    scores : ndarray of shape (n_grids,), int64
        Of all families, one after the other.
    """
    # Rows are read once for each family: its table has the coarsest grouping of each predictor that
    # all of its grids can use, and is summed over one predictor after the other.
    label = len(table.shape) - 1
    joins = _Joins(options)
    grids = np.concatenate(families)
    starts = np.cumsum([0, *map(len, families)])
    batches = [
        part
        for first, last in pairwise(starts.tolist())
        for part in joins.batches(grids, np.arange(first, last), table.shape[label])
    ]
    asked = [
        ((*axes, label), (*(join.groups for join in shared), None)) for _, axes, shared in batches
    ]
    scores = np.zeros(len(grids), dtype=np.int64)
    for (batch, axes, shared), counts in zip(batches, table.regrouped_many(asked), strict=True):
        # Sums of counts are whole numbers below 2**53, which the floats of a product hold.
        flat = counts.reshape(len(counts), -1).astype(np.float64)
        sizes = [*counts.shape[1:], 1]
        chosen = sorted(zip(grids[batch][:, axes].tolist(), batch.tolist(), strict=True))
        numbers: list[int] = []
        tables: list[FloatArray] = []
        for number, cells in _summed(flat, shared, sizes, chosen):
            numbers.append(number)
            tables.append(cells)
            if sum(each.size for each in tables) > _CHUNK:
                scores[numbers] = _scored(tables, quality)
                numbers, tables = [], []
        if numbers:
            scores[numbers] = _scored(tables, quality)
    return scores


def _summed(
    counts: FloatArray,
    joins: Sequence[_Join],
    sizes: Sequence[int],
    chosen: Sequence[tuple[list[int], int]],
    place: int = 0,
) -> Iterator[tuple[int, FloatArray]]:
    """Number and counts by class (a row each) and cell of grids whose options are given in order.

    What grids with the same first options share is summed once.
    """
    if place == len(joins):
        for _, number in chosen:
            yield number, counts
        return
    for option, same in groupby(chosen, key=lambda each: each[0][place]):
        # The next predictor, or the class, comes first afterwards, and this one last.
        summed = (counts.T @ joins[place].maps[option]).reshape(sizes[place], -1)
        yield from _summed(summed, joins, sizes, list(same), place + 1)


def _scored(tables: Sequence[FloatArray], quality: Quality) -> IntArray:
    """Score of each grid from its counts."""
    cells = quality.score(*two_largest(np.concatenate(tables, axis=1).T))
    ends = np.cumsum([0, *(each.shape[1] for each in tables)])
    return np.diff(running_sums(cells)[ends])


class _Join(NamedTuple):
    """The coarsest grouping that refines several options of a predictor."""

    groups: IntArray  # group of each code
    maps: dict[int, FloatArray]  # for each option, 1 where one of these groups is in one of its own


class _Joins:
    """Joins of options, each made once."""

    def __init__(self, options: Sequence[Options]) -> None:
        self._options = options
        self._made: dict[tuple[int, tuple[int, ...]], _Join] = {}
        # Equal groups are one array.
        self._groups: dict[tuple[int, bytes], IntArray] = {}

    def join(self, axis: int, used: tuple[int, ...]) -> _Join:
        """The coarsest grouping that refines the ``used`` options of a predictor."""
        if (axis, used) not in self._made:
            options = self._options[axis]
            every = {option: options.groups[option - 1] for option in used if option}
            joined = np.zeros_like(next(iter(every.values())))
            for groups in every.values():
                pairs = joined * (int(groups.max()) + 1) + groups
                joined = np.unique(pairs, return_inverse=True)[1].reshape(-1)
            joined = self._groups.setdefault((axis, joined.tobytes()), joined)
            maps = {}
            for option in used:
                maps[option] = np.zeros((int(joined.max()) + 1, int(options.sizes[option])))
                maps[option][joined, every[option] if option else 0] = 1.0
            self._made[axis, used] = _Join(joined, maps)
        return self._made[axis, used]

    def batches(
        self, grids: NDArray[np.int16], numbers: IntArray, n_classes: int
    ) -> Iterator[tuple[IntArray, list[int], list[_Join]]]:
        """One grid alone, or several that together need few cells.

        Yields their numbers, and the predictors that they use with the joins of their options.
        """
        todo = [numbers]
        while todo:
            batch = todo.pop()
            used = {
                axis: tuple(np.unique(grids[batch, axis]).tolist())
                for axis in np.flatnonzero(grids[batch].any(axis=0)).tolist()
            }
            joins = {axis: self.join(axis, options) for axis, options in used.items()}
            widths = {axis: int(each.groups.max()) + 1 for axis, each in joins.items()}
            if math.prod(widths.values()) * n_classes <= _TABLE_CELLS or len(batch) == 1:
                # The widest first, so that little is left to sum.
                axes = sorted(used, key=lambda axis: -widths[axis])
                yield batch, axes, [joins[axis] for axis in axes]
                continue
            # Too many cells together: divide at the predictor with several options that is widest.
            axis = max(used, key=lambda axis: (len(used[axis]) > 1) * widths[axis])
            low = grids[batch, axis] < used[axis][len(used[axis]) // 2]
            todo += [batch[~low], batch[low]]


def two_largest(counts: NDArray[Any]) -> tuple[IntArray, IntArray]:
    """Largest and second largest count of each row; counts are whole numbers below 2**53."""
    whole, n_classes = counts.astype(np.int64), counts.shape[1]
    if n_classes == 1:
        return whole[:, 0], np.zeros_like(whole[:, 0])
    if n_classes == 2:
        first, second = whole.T
        return np.maximum(first, second), np.minimum(first, second)
    ends = np.partition(whole, n_classes - 2, axis=1)[:, n_classes - 2 :]
    return ends[:, 1], ends[:, 0]


# ------------------------------------------------------------------------------------------------
# PrivPfC: the private selection of one grid.


def privpfc_parts(epsilon: Fraction, shares: Any = (0.03, 0.37, 0.60)) -> dict[str, Fraction]:
    """Parts of epsilon for the number of records, the choice of the grid, and the counts.

    Parameters
    ----------
    epsilon : Fraction
    shares : sequence of three numbers
        In proportion; by default those of the dissertation.

    Raises
    ------
    TypeError, ValueError
        If they are not three positive numbers, or one is less than a thousandth of their sum.
    """
    names = ("total", "grid", "counts")
    if not isinstance(shares, tuple | list) or len(shares) != len(names):
        raise ValueError(
            "shares must be three numbers, for the number of records, the choice of the grid and "
            f"the counts, got {shares!r}."
        )
    parts = split_epsilon(epsilon, dict(zip(names, shares, strict=True)))
    for name in names:
        as_share(parts.get(name, 0) / epsilon, f"the part {name!r} of shares={shares!r}")
    return parts


def select_grid(
    table: Counts,
    options: Sequence[Options],
    n_records: float,
    parts: dict[str, Fraction],
    *,
    max_grids: int = 10_000,
    calibration: str = "tight",
    sensitivity: str = "bound",
    merged: bool = False,
    random_state: Any = None,
) -> NDArray[np.int16]:
    """Select a grid at the cost of ``parts["grid"]``.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        The predictors in order, and the class as the last attribute.
    options : sequence of Options
    n_records : float
        Noisy number of records.
    parts : dict
        From :func:`privpfc_parts`.
    max_grids : int, default=10_000
    calibration : {"tight", "paper"}, default="tight"
    sensitivity : {"bound", "exact"}, default="bound"
        Of "paper": 1.1 for every budget of the counts, or that of the table for this one (eq. 3.3).
    merged : bool, default=False
        Whether the options hold groupings that follow the labels of these records.
    random_state : None, int or NoiseSource

    Returns
    -------
    grid : ndarray of shape (n_predictors,)
        Option number of each predictor.
    """
    # Privacy. Candidates, the number of selections and the kind of quality depend on public facts,
    # the noisy number of records and what was released before, hence cost nothing. All scores of
    # a selection change within one interval of length `score_range` when a record is added (proof
    # there), so each noisy maximum costs its budget; equal budgets add up to the part "grid". The
    # exponential mechanism takes exp(epsilon q / 2.2) for the dissertation's sensitivity of 1.1, or
    # exp(epsilon q / (2 s)) for s the largest change of a score: both exceed the range.
    source = noise_source(random_state)
    first = [each.first for each in options]
    limit = cell_limit(n_records, parts["counts"], table.shape[-1], calibration)
    if calibration == "paper":
        families = paper_grids([each.sizes for each in first], limit, max_grids)
        quality = Quality.of_the_paper(parts["counts"])
        scores = grid_scores(table, first, families, quality)
        # The dissertation's bound is 1.1 in either direction.
        reach = 2 * quality.sensitivity if sensitivity == "exact" else math.ceil(2.2 * UNIT)
        best = exponential(scores, parts["grid"], reach, random_state=source)
        return np.concatenate(families)[best]
    signal = n_records * float(parts["grid"])
    further = min(max(int(signal / TUNING.further), 0), TUNING.most_further)
    penalty = 2 * TUNING.penalty if merged else TUNING.penalty if further else 0.0
    quality = Quality.for_counts(parts["counts"], penalty)
    budget = parts["grid"] / (1 + further)
    families = candidate_grids(first, limit, max_grids, random_state=source)
    for left in range(further, -1, -1):
        scores = grid_scores(table, options, families, quality)
        best = noisy_max(scores, budget, quality.score_range, random_state=source)
        grid = np.concatenate(families)[best]
        if left:
            most = max(1, max_grids // TUNING.breadth)
            families = neighbouring_grids(grid, options, limit, most, random_state=source)
    return grid


# --- PrivPfC: the noisy counts of the selected grid


def measure_grid_counts(
    table: Counts, axes: Sequence[int], groups: Sequence[IntArray], epsilon: Fraction, source: Any
) -> IntArray:
    """Noisy number of records in each cell and class.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        The predictors in order, and the class as the last attribute.
    axes : sequence of int
        Predictors that the grid uses.
    groups : sequence of ndarray
        Group of each code of each of these.
    epsilon : Fraction

    Returns
    -------
    counts : ndarray of shape (n_groups, ..., n_classes), int64
    """
    # Privacy. A record is in one cell and one class, so adding it changes one count by one; every
    # count, empty ones included, gets its own noise. Cost: epsilon, once.
    asked = (*axes, len(table.shape) - 1), (*groups, None)
    (exact,) = table.regrouped_many([asked])
    return discrete_laplace(exact, epsilon, random_state=source)


# --- PrivPfC: groupings that follow the labels, by merging values with similar shares of them
#
# Public groupings know nothing of the labels: where one cut matters, they divide all the rest as
# finely. With enough records it pays to count every predictor by label first, with noise, and then
# to merge two groups with similar shares of the labels again and again: neighbours in the order, or
# any two of categories without order.


class Line(NamedTuple):
    """How the values of a predictor may be merged."""

    groups: IntArray  # finest group of each code
    n_groups: int  # of these may be merged, and are numbered from 0; others stay alone
    ordered: bool  # whether only neighbours may be merged


def merging_budget(lines: Sequence[Line], n_records: float, epsilon: Fraction) -> Fraction:
    """Share of ``epsilon``, the budget of the grid, that pays for merging; 0 if none does.

    It depends on public facts and the noisy number of records alone.
    """
    part, n_measured = epsilon * TUNING.merging, sum(line.n_groups > 2 for line in lines)
    needed = max(TUNING.further * float(TUNING.merging), ADDITIVE.wanted * n_measured)
    return part if n_measured and n_records * float(part) >= needed else Fraction(0)


def merged_groupings(
    table: Counts, lines: Sequence[Line], most: int, epsilon: Fraction, *, random_state: Any = None
) -> list[list[IntArray]]:
    """Groupings of every predictor that follow the labels, at the cost of ``epsilon``.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        The predictors in order, and the class as the last attribute.
    lines : sequence of Line
        One for each predictor.
    most : int
        Largest number of groups.
    epsilon : Fraction
    random_state : None, int or NoiseSource

    Returns
    -------
    groupings : list of list of ndarray of shape (n_codes,)
        For each predictor the group of each code, from few groups to many.
    """
    # Privacy. Released: for each predictor with something to merge the numbers of records by group
    # and label. A record is in one cell of the counts of a predictor (sensitivity 1); every cell,
    # empty ones too, gets its own noise. The predictors share the budget in proportions that
    # follow from public numbers of groups, and are composed one after the other. Merging is
    # post-processing of these counts.
    source = noise_source(random_state)
    measured = [axis for axis, line in enumerate(lines) if line.n_groups > 2]
    shares = column_shares([lines[axis].n_groups for axis in measured])
    label = len(table.shape) - 1
    wanted = [((axis, label), (lines[axis].groups, None)) for axis in measured]
    result: list[list[IntArray]] = [[] for _ in lines]
    counted = table.regrouped_many(wanted)
    for axis, share, exact in zip(measured, shares, counted, strict=True):
        noisy = discrete_laplace(exact, epsilon * share, random_state=source)
        variance = discrete_laplace_variance(epsilon * share)
        result[axis] = _groupings(noisy, lines[axis], most, variance)
    return result


def _groupings(noisy: IntArray, line: Line, most: int, variance: float) -> list[IntArray]:
    """Groupings into the offered numbers of groups, from few to many."""
    n = line.n_groups
    alone = np.arange(len(noisy) - n)
    # Two numbers of groups for each doubling.
    offered = {round(2 ** (half / 2)) for half in range(2, 2 * TUNING.merged.bit_length())}
    result = []
    for groups in _merges(noisy[:n].astype(np.float64), variance, line.ordered):
        size = int(groups.max()) + 1
        if size in offered and size < n and size <= TUNING.merged and size + len(alone) <= most:
            result.append(np.concatenate([groups, size + alone])[line.groups])
    return result[::-1]


def _merges(counts: FloatArray, variance: float, ordered: bool) -> Iterator[IntArray]:
    """Group of each row, every row alone at first, then after each merge of two groups.

    Two groups of n and m records, whose shares of the labels differ by the vector d, lose
    n m / (n + m) |d|^2 of the Gini index when they are merged. What chance and noise add to
    |d|^2 on average is taken off.
    """
    n_rows, n_classes = counts.shape
    overall = np.maximum(counts.sum(axis=0), 1.0)
    impurity = 1 - np.sum((overall / overall.sum()) ** 2)
    sums = counts.copy()
    noise = np.full(n_rows, n_classes * variance)
    groups = np.arange(n_rows)
    while len(sums) > 1:
        yield groups
        # A group has at least as many records as its noise can hide.
        n = np.maximum(sums.sum(axis=1), np.sqrt(noise) + 1)
        shares = np.maximum(sums, 0.0) + 1e-9
        shares /= shares.sum(axis=1, keepdims=True)
        chance = impurity / n + noise / n**2
        if ordered:
            low = np.arange(len(sums) - 1)
            high = low + 1
        else:
            low, high = np.triu_indices(len(sums), 1)
        apart = np.sum((shares[low] - shares[high]) ** 2, axis=1) - chance[low] - chance[high]
        best = int(np.argmin(apart * n[low] * n[high] / (n[low] + n[high])))
        kept, gone = int(low[best]), int(high[best])
        sums[kept] += sums[gone]
        noise[kept] += noise[gone]
        sums = np.delete(sums, gone, axis=0)
        noise = np.delete(noise, gone)
        groups = np.where(groups == gone, kept, groups - (groups > gone))
