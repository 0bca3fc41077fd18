"""PrivPfC: the grids that a selection may take, from public facts and a noisy number of records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._random import NoiseSource, noise_source
from ..._types import FloatArray, IntArray

__all__ = [
    "TUNING",
    "Options",
    "Tuning",
    "candidate_grids",
    "cell_limit",
    "max_useful_groups",
    "neighbouring_grids",
    "paper_grids",
]


@dataclass(frozen=True)
class Tuning:
    """The numbers of "auto" that change a release; all by ``benchmarks/models.py``."""

    # Largest number of predictors in a set.
    predictors: int = 8
    # Grids of one set, which share a table of counts, at most.
    shared: int = 32
    # The grids of a set are coarser than one random grid, of at most this many times the limit of
    # cells.
    finer: int = 8
    # Records times the budget of selection for each further selection near the first choice, how
    # many there are at most, and by what factor their pools are smaller.
    further: float = 5_000.0
    most_further: int = 6
    near: int = 8
    # With further selections there are enough records for grids that are too fine: this share of
    # what a grid gains by fitting its own records is taken off, and twice as much where the
    # groupings fit the records too.
    penalty: float = 0.35
    # Groups in which the values of a predictor are counted by label at most, and into which they
    # are merged at most.
    finest: int = 256
    merged: int = 32
    # Share of the budget of the grid that these counts take, and the least product of that budget
    # and the noisy number of records for each predictor that is counted.
    merging: Fraction = Fraction(2, 5)
    each: float = 600.0


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
# Cells of a random grid than which those of one set are coarser.
_SHARED_CELLS = 2**14


def cell_limit(
    n_records: float, epsilon: Fraction, n_classes: int = 2, selection: str = "paper"
) -> int:
    """Largest number of cells of a candidate.

    In the paper the noise is at most a fifth of the average count. The quality is low for cells
    dominated by noise, so by default the noise may be as large as the average count; a second bound
    keeps the release and the training set small.

    Parameters
    ----------
    n_records : float
        A noisy number of records; below 1 counts as 0.
    epsilon : Fraction
        Budget of the counts.
    n_classes : int, default=2
    selection : {"paper", "auto"}, default="paper"
    """
    paper = selection == "paper"
    cells = max(float(n_records), 0.0) * float(epsilon) * (0.2 if paper else 1)
    most = _PAPER_COUNTS if paper else _MOST_COUNTS
    return max(1, min(math.floor(cells), most // max(n_classes, 2)))


def max_useful_groups(limit: int, selection: str = "paper") -> int:
    """Largest number of groups of one predictor in a candidate.

    By default this leaves a hundred cells for the other predictors, or is sixteen: with fewer
    options the pool has room for more combinations.
    """
    most = 64 if selection == "paper" else min(64, max(16, limit // 100))
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
    options: Sequence[Options],
    limit: int,
    max_grids: int,
    *,
    random_state: Any = None,
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
    orders = range(3, min(largest, TUNING.predictors, len(axes)) + 1)
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

    n_draws = 2 * math.ceil(most / TUNING.shared) + 8
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
        cells = max(min(limit * TUNING.finer, _SHARED_CELLS) // others, 1)
        finest = _random_grid(sizes, members, usable, cells, source)
        if finest is None:
            continue
        below = [coarser(axis, option) for axis, option in zip(members, finest, strict=True)]
        while math.prod(map(len, below)) > _LISTED_ONCE:
            longest = max(range(order), key=lambda position: len(below[position]))
            below[longest] = below[longest][source.words(len(below[longest])) >> np.uint64(63) == 1]
        combos = _combinations(below)
        combos = combos[_cells(sizes, members, combos) <= room]
        if len(combos) > TUNING.shared:
            chosen = np.argsort(source.words(len(combos)), kind="stable")[: TUNING.shared]
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
