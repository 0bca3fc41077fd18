"""PrivPfC: select one grid for classification in a single private step, then count its cells.

Predictors come as *options*: groupings of the codes of one predictor, from coarse to fine. A grid
is one option number for each predictor, 0 standing for "everything in one group".

The quality of a grid is the expected number of records that a classifier gets right which predicts,
in each cell, the class with the largest noisy count. It is defined by an integer table, so that
its range is exact and no float error touches the privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._random import NoiseSource, noise_source
from .._validation import dyadic_floor, split_epsilon
from ..mechanisms import discrete_laplace, exponential, noisy_max
from ..rows import Counts, CountTable, ProjectedCounts

__all__ = [
    "Options",
    "Quality",
    "candidate_grids",
    "cell_limit",
    "grid_scores",
    "max_useful_groups",
    "measure_grid_counts",
    "neighbouring_grids",
    "paper_grids",
    "privpfc_parts",
    "select_grid",
]

IntArray = NDArray[np.int64]

# Scores are in units of 1/4096 of a record.
UNIT = 4096
# The dissertation divides epsilon so: number of records, choice of the grid, counts.
SHARES = {"total": "0.03", "grid": "0.37", "counts": "0.60"}
# Its bound on the change of the quality, 1.1 in either direction.
_PAPER_RANGE = math.ceil(2.2 * UNIT)
# Longest quality table; differences beyond it count as certain wins.
_LONGEST_TABLE = 2**20
# A second selection near the first pays from this many records times the budget of selection on.
_TWO_STAGES_FROM = 3_000
# Level combinations taken of one set of predictors: they share one table of counts.
_GRIDS_PER_SET = 16
_LARGEST_SET = 8
# Combinations of options of one set that are listed; of more, as many are drawn.
_ENUMERABLE = 4096
# Positions of one counting pass, and cells of a shared table.
_CHUNK = 2**20
_TABLE_CELLS = 2**18
_LARGEST_POOL_FACTOR = 8
# Counts of a release: the noisy ones of every cell and label.
_MOST_COUNTS = 2**17
# Grids of one set are coarser than a grid with up to so many times the limit of cells.
_FINER_BY = 8
_SHARED_CELLS = 2**15


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
        """For every option those, itself included, whose groups are unions of its groups."""
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
        """What is left of the options for a first selection."""
        return self if self.n_first is None else Options(self.groups[: self.n_first])


@dataclass(frozen=True)
class Quality:
    """Integer table of the expected number of correct predictions in a cell.

    A cell whose two largest class counts are n1 >= n2 scores ``UNIT * n2 + table[n1 - n2]``; past
    its end the table goes on with steps of ``UNIT``.

    Parameters
    ----------
    table : ndarray of shape (length,), int64
    """

    table: IntArray

    @classmethod
    def for_counts(cls, epsilon: Fraction) -> Quality:
        """The table for counts with discrete Laplace noise of budget ``epsilon``."""
        rate = float(dyadic_floor(epsilon))
        x = np.arange(_table_length(rate), dtype=np.float64)
        # Law of the difference of the noises of two counts.
        r = math.exp(-rate)
        law = (math.tanh(rate / 2)) ** 2 * r**x * (x + 1 / math.tanh(rate))
        below = 0.5 + np.cumsum(law) - law / 2 - law[0] / 2
        return cls._from_distribution(x, below)

    @classmethod
    def of_the_paper(cls, epsilon: Fraction) -> Quality:
        """The table for Laplace noise of scale 1 / epsilon, as in the dissertation."""
        rate = float(epsilon)
        x = np.arange(_table_length(rate), dtype=np.float64)
        return cls._from_distribution(x, 1 - np.exp(-rate * x) / 2 * (1 + rate * x / 2))

    @classmethod
    def _from_distribution(cls, x: NDArray[np.float64], below: NDArray[np.float64]) -> Quality:
        return cls(np.rint(UNIT * x * np.minimum(below, 1.0)).astype(np.int64))

    @property
    def score_range(self) -> int:
        """Length of the interval that holds the changes of all scores when a record is added.

        Only one cell of each grid changes. If the record's class is (or becomes) the largest,
        the difference x grows and the score changes by a step s(x) of the table; if it is (or
        becomes) the second, the difference falls and the score changes by UNIT - s(x - 1);
        otherwise by nothing. An overtaking exchanges names, not the sorted counts. Hence all
        changes, of all grids, lie between the least and the largest of s, UNIT - s and 0.
        """
        # Past the end of the table every step is UNIT.
        steps = np.append(np.diff(self.table), UNIT)
        changes = np.concatenate([steps, UNIT - steps, [0]])
        return int(changes.max() - changes.min())

    def score(self, largest: IntArray, second: IntArray) -> IntArray:
        """Score of each cell from its two largest class counts."""
        difference = largest - second
        last = len(self.table) - 1
        inside = np.minimum(difference, last)
        return UNIT * (second + difference - inside) + self.table[inside]


def _table_length(rate: float) -> int:
    # Beyond 45 / rate the smaller count wins with a probability below 1e-17.
    return min(_LONGEST_TABLE, math.ceil(45 / rate) + 2)


def privpfc_parts(epsilon: Fraction) -> dict[str, Fraction]:
    """Parts of epsilon for the number of records, the choice of the grid, and the counts."""
    return split_epsilon(epsilon, {name: Fraction(share) for name, share in SHARES.items()})


def cell_limit(
    n_records: float, epsilon: Fraction, n_classes: int = 2, selection: str = "paper"
) -> int:
    """Largest number of cells of a candidate.

    In the paper the noise is a fifth of the average count at most. The quality itself turns down
    cells that drown in noise, so by default the noise may be as large as the average count; a
    second bound keeps the release and the training set small.

    Parameters
    ----------
    n_records : float
        A noisy number of records; below 1 counts as 0.
    epsilon : Fraction
        Budget of the counts.
    n_classes : int, default=2
    selection : {"paper", "auto"}, default="paper"
    """
    cells = max(float(n_records), 0.0) * float(epsilon)
    if selection == "paper":
        return max(1, math.floor(0.2 * cells))
    return max(1, min(math.floor(cells), _MOST_COUNTS // max(n_classes, 2)))


def max_useful_groups(limit: int, selection: str = "paper") -> int:
    """Largest number of groups of one predictor that is worth a candidate.

    By default a hundred cells are left for the other predictors, or there are sixteen groups at
    most: fewer options leave room in the pool for more combinations.
    """
    most = 64 if selection == "paper" else min(64, max(16, limit // 100))
    return max(1, min(limit, most))


# ------------------------------------------------------------------------------------ candidates


def paper_grids(sizes: Sequence[IntArray], limit: int, max_grids: int) -> NDArray[np.int16]:
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
    grids : ndarray of shape (n_grids, n_predictors)
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
                        found.update(following)
                        return np.array(list(found), dtype=np.int16)
                    following[(*grid[:axis], option, *grid[axis + 1 :])] = size
                    generated += 1
        found.update(following)
        level = following
    return np.array(list(found), dtype=np.int16)


def candidate_grids(
    options: Sequence[Options], limit: int, max_grids: int, *, random_state: Any = None
) -> NDArray[np.int16]:
    """A pool of distinct candidates that prefers no column for its position.

    The all-top grid is always in it, then every option of every predictor, then every pair of
    predictors (in as many options as a tenth of the pool has room for), then random larger
    sets.
    It is a function of public facts, of ``limit`` and of randomness.

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
    grids : ndarray of shape (n_grids, n_predictors)
    """
    source = noise_source(random_state)
    sizes = [each.sizes for each in options]
    n_axes = len(sizes)
    usable = [np.flatnonzero(each <= limit)[1:] for each in sizes]
    axes = [axis for axis in range(n_axes) if len(usable[axis])]
    builder = _Builder(n_axes, max_grids)
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

    # Larger sets: half of the room that is left for each size in turn, the last takes the rest.
    smallest = np.sort([min(int(sizes[axis][option]) for option in usable[axis]) for axis in axes])
    largest = int(np.searchsorted(np.cumprod(smallest.astype(np.float64)), limit, side="right"))
    orders = range(3, min(largest, _LARGEST_SET, len(axes)) + 1)
    for order in orders:
        share = builder.room if order == orders[-1] else math.ceil(builder.room / 2)
        _add_random_sets(builder, options, axes, usable, order, limit, share, source)
    return builder.grids()


class _Builder:
    """Collects distinct grids up to a maximum, the all-top grid first."""

    def __init__(self, n_axes: int, max_grids: int) -> None:
        self.blocks = [np.zeros((1, n_axes), dtype=np.int16)]
        self.seen = {self.blocks[0].tobytes()}
        self.room = max_grids - 1
        self.n_axes = n_axes

    def add(self, axes: Sequence[int], combos: IntArray) -> int:
        """Add combinations of options of some predictors while there is room; count the new."""
        block = np.zeros((len(combos), self.n_axes), dtype=np.int16)
        block[:, list(axes)] = combos
        new: list[int] = []
        for number, row in enumerate(block):
            key = row.tobytes()
            if key not in self.seen and len(new) < self.room:
                self.seen.add(key)
                new.append(number)
        self.blocks.append(block[new])
        self.room -= len(new)
        return len(new)

    def grids(self) -> NDArray[np.int16]:
        return _distinct(np.concatenate(self.blocks))


def _distinct(grids: NDArray[np.int16]) -> NDArray[np.int16]:
    """Distinct rows, in lexicographic order."""
    return np.unique(grids, axis=0)


def _shuffled(items: Sequence[Any], source: NoiseSource) -> list[Any]:
    keys = source.words(len(items)) if len(items) else np.zeros(0)
    return [items[position] for position in np.argsort(keys, kind="stable")]


def _combinations(choices: Sequence[IntArray]) -> IntArray:
    """All combinations of one choice each, one row each."""
    mesh = np.meshgrid(*choices, indexing="ij")
    return np.stack([part.ravel() for part in mesh], axis=1)


def _cells(sizes: Sequence[IntArray], axes: Sequence[int], combos: IntArray) -> NDArray[np.float64]:
    cells = np.ones(len(combos))
    for position, axis in enumerate(axes):
        cells *= np.asarray(sizes[axis], dtype=np.float64)[combos[:, position]]
    return cells


def _thinned(pairs: list[Any], room: int, source: NoiseSource) -> list[Any]:
    """Random combinations of each pair, equally many of each where it has them."""
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
    """Random sets of ``order`` predictors, a few grids of each, until ``most`` have been added.

    The grids of a set are coarser than one random grid, so that they can be counted together.
    """
    sizes = [each.sizes for each in options]
    n_draws = 2 * math.ceil(most / _GRIDS_PER_SET) + 8
    keys = source.words((n_draws, len(axes)))
    for drawn in np.argsort(keys, axis=1, kind="stable")[:, :order]:
        if most <= 0:
            break
        members = [axes[place] for place in drawn.tolist()]
        cells = max(limit, min(limit * _FINER_BY, _SHARED_CELLS))
        finest = _random_grid(sizes, members, usable, cells, source)
        if finest is None:
            continue
        below = [
            np.intersect1d(options[axis].coarser[option], usable[axis])
            for axis, option in zip(members, finest, strict=True)
        ]
        while math.prod(map(len, below)) > _ENUMERABLE:
            longest = max(range(order), key=lambda position: len(below[position]))
            below[longest] = below[longest][source.words(len(below[longest])) >> np.uint64(63) == 1]
        combos = _combinations(below)
        combos = combos[_cells(sizes, members, combos) <= limit]
        if len(combos) > _GRIDS_PER_SET:
            chosen = np.argsort(source.words(len(combos)), kind="stable")[:_GRIDS_PER_SET]
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
) -> NDArray[np.int16]:
    """Distinct grids that differ from ``start`` in at most three predictors, itself included.

    All that differ in one, then all that differ in two if half of the pool has room for them,
    then random ones.

    Parameters
    ----------
    start : ndarray of shape (n_predictors,)
    options, limit, max_grids, random_state
        As for :func:`candidate_grids`.
    """
    source = noise_source(random_state)
    sizes = [each.sizes for each in options]
    n_axes = len(sizes)
    others = [
        np.array(
            [o for o in range(len(sizes[axis])) if o != start[axis] and sizes[axis][o] <= limit],
            dtype=np.int64,
        )
        for axis in range(n_axes)
    ]
    axes = [axis for axis in range(n_axes) if len(others[axis])]
    pool = start[None, :].astype(np.int16)
    for order in (1, 2, 3):
        room = max_grids - len(pool)
        if room <= 0:
            break
        if order == 2:
            room = max(1, room // 2)
        pool = np.concatenate(
            [pool, _changed(start, sizes, others, axes, order, limit, room, source)]
        )
    return _distinct(pool)


def _changed(
    start: NDArray[np.int16],
    sizes: Sequence[IntArray],
    others: Sequence[IntArray],
    axes: Sequence[int],
    order: int,
    limit: int,
    room: int,
    source: NoiseSource,
) -> NDArray[np.int16]:
    """Grids with exactly ``order`` changed predictors that fit, a random ``room`` of them."""
    n_axes = len(start)
    if len(axes) < order:
        return np.zeros((0, n_axes), dtype=np.int16)
    weights = [len(others[axis]) for axis in axes]
    total = sum(math.prod(part) for part in combinations(weights, order))
    if total <= _LARGEST_POOL_FACTOR * room:
        blocks = []
        for chosen_axes in combinations(axes, order):
            combos = _combinations([others[axis] for axis in chosen_axes])
            block = np.repeat(start[None, :], len(combos), axis=0).astype(np.int16)
            block[:, list(chosen_axes)] = combos
            blocks.append(block)
        grids = np.concatenate(blocks)
    else:
        # Uniform: draw changes independently, and keep the draws with distinct predictors.
        flat_axes = np.repeat(np.asarray(axes), weights)
        flat_options = np.concatenate([others[axis] for axis in axes])
        drawn = source.below(len(flat_axes), size=(_LARGEST_POOL_FACTOR * room, order))
        members = flat_axes[drawn]
        ordered = np.sort(members, axis=1)
        drawn = drawn[(ordered[:, 1:] != ordered[:, :-1]).all(axis=1)]
        grids = np.repeat(start[None, :], len(drawn), axis=0).astype(np.int16)
        for position in range(order):
            chosen = drawn[:, position]
            grids[np.arange(len(drawn)), flat_axes[chosen]] = flat_options[chosen]
        grids = _distinct(grids)
    everything = list(range(n_axes))
    grids = grids[_cells(sizes, everything, grids.astype(np.int64)) <= limit]
    if len(grids) > room:
        grids = grids[np.argsort(source.words(len(grids)), kind="stable")[:room]]
    return grids


# --------------------------------------------------------------------------------------- scoring


def grid_scores(
    table: Counts,
    options: Sequence[Options],
    grids: NDArray[np.int16],
    quality: Quality,
) -> IntArray:
    """Exact integer score of every grid.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        The predictors in order, and the class as the last attribute.
    options : sequence of Options
        One for each predictor.
    grids : ndarray of shape (n_grids, n_predictors)
    quality : Quality

    Returns
    -------
    scores : ndarray of shape (n_grids,), int64
    """
    # Grids over the same predictors share one table of counts, grouped as finely as all of them
    # need together; it is far smaller than the rows.
    used = grids > 0
    order = np.lexsort((*grids.T[::-1], *used.T[::-1]))
    ordered = used[order]
    starts = np.flatnonzero(
        np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)])
    ).tolist()
    scores = np.zeros(len(grids), dtype=np.int64)
    rows = None if isinstance(table, ProjectedCounts) else _Rows(table, options)
    for begin, end in zip(starts, [*starts[1:], len(grids)], strict=True):
        axes = np.flatnonzero(ordered[begin]).tolist()
        members = order[begin:end]
        if rows is not None:
            _score_set(rows, axes, grids, members, quality, scores)
            continue
        # The rows by these predictors and the label alone.
        some = _Rows(table.project([*axes, len(table.shape) - 1]), [options[axis] for axis in axes])
        _score_set(some, range(len(axes)), grids[:, axes], members, quality, scores)
    return scores


class _Rows:
    """Columns of groups of the rows, made when first needed."""

    def __init__(self, table: CountTable, options: Sequence[Options]) -> None:
        self.codes = table.codes
        self.n_classes = table.shape[-1]
        self.label = self.codes[:, -1].astype(np.int32)
        self.options = options
        # Sums of counts are whole numbers below 2**53.
        self.weights = table.counts.astype(np.float64)
        self._columns: dict[tuple[int, bytes], NDArray[np.int32]] = {}
        self._joins: dict[
            tuple[int, tuple[int, ...]], tuple[int, IntArray, list[NDArray[np.int32]]]
        ] = {}

    def join(
        self, axis: int, used: tuple[int, ...]
    ) -> tuple[int, IntArray, list[NDArray[np.int32]]]:
        """The coarsest grouping that refines the ``used`` options of a predictor.

        Returns its number of groups, the group of each code, and for each of the options the
        group of each of its groups.
        """
        key = (axis, used)
        if key not in self._joins:
            groups = [self.options[axis].groups[option - 1] for option in used]
            joined = groups[-1]
            size = int(joined.max()) + 1
            for other in groups[:-1]:
                pairs = joined * (int(other.max()) + 1) + other
                distinct, inverse = np.unique(pairs, return_inverse=True)
                if len(distinct) > size:
                    joined, size = inverse.reshape(-1), len(distinct)
            maps = []
            for other in groups:
                mapping = np.zeros(size, dtype=np.int32)
                mapping[joined] = other
                maps.append(mapping)
            self._joins[key] = (size, joined, maps)
        return self._joins[key]

    def column(self, axis: int, used: tuple[int, ...]) -> NDArray[np.int32]:
        """Group of each row under the join."""
        joined = self.join(axis, used)[1]
        # Many sets of options have the same join.
        name = (axis, joined.tobytes())
        if name not in self._columns:
            self._columns[name] = joined.astype(np.int32)[self.codes[:, axis]]
        return self._columns[name]


def _score_set(
    rows: _Rows,
    axes: Sequence[int],
    grids: NDArray[np.int16],
    members: IntArray,
    quality: Quality,
    scores: IntArray,
) -> None:
    """Write the scores of the grids numbered ``members``, which all use the same predictors."""
    used = [tuple(np.unique(grids[members, axis]).tolist()) for axis in axes]
    joins = [rows.join(axis, options) for axis, options in zip(axes, used, strict=True)]
    widths = [join[0] for join in joins]
    n_classes = rows.n_classes
    cells = math.prod(widths)
    if cells * n_classes > _TABLE_CELLS and len(members) > 1:
        # Too many cells together: part the grids at the predictor that has most to gain.
        position = max(range(len(axes)), key=lambda place: (len(used[place]) > 1) * widths[place])
        options = used[position]
        low = grids[members, axes[position]] < options[len(options) // 2]
        for half in (members[low], members[~low]):
            _score_set(rows, axes, grids, half, quality, scores)
        return
    columns: list[NDArray[Any]] = [
        rows.column(axis, options) for axis, options in zip(axes, used, strict=True)
    ]
    # With the label in front, the counts of one class lie together.
    if cells * n_classes <= _TABLE_CELLS:
        key = rows.label.copy()
        for column, width in zip(columns, widths, strict=True):
            key *= np.int32(width)
            key += column
        flat = np.bincount(key, weights=rows.weights, minlength=cells * n_classes)
        counts = flat.reshape(n_classes, cells)
        occupied = np.flatnonzero(counts.any(axis=0))
        weights: NDArray[Any] = counts[:, occupied]
        rest: NDArray[Any] = occupied
        for position in reversed(range(len(axes))):
            rest, columns[position] = np.divmod(rest, widths[position])
    else:
        weights = np.zeros((n_classes, len(rows.label)))
        weights[rows.label, np.arange(len(rows.label))] = rows.weights
    mapped = [
        {option: mapping[column] for option, mapping in zip(options, join[2], strict=True)}
        for options, join, column in zip(used, joins, columns, strict=True)
    ]
    sizes = [rows.options[axis].sizes for axis in axes]
    n_cells = weights.shape[1]
    at_once = max(1, _CHUNK // max(1, n_cells))
    for begin in range(0, len(members), at_once):
        part = members[begin : begin + at_once]
        keys = np.zeros((len(part), n_cells), dtype=np.int64)
        offsets = np.zeros(len(part) + 1, dtype=np.int64)
        for number, choice in enumerate(grids[part][:, axes].tolist()):
            key_of = keys[number]
            size = 1
            for position, option in enumerate(choice):
                width = int(sizes[position][option])
                if position:
                    key_of *= width
                key_of += mapped[position][option]
                size *= width
            key_of += offsets[number]
            offsets[number + 1] = offsets[number] + size
        positions = keys.ravel()
        total = int(offsets[-1])
        by_class = np.empty((n_classes, total))
        for label in range(n_classes):
            each = np.broadcast_to(weights[label], keys.shape).ravel()
            by_class[label] = np.bincount(positions, weights=each, minlength=total)
        # An empty cell scores nothing, and most cells of fine grids are empty.
        occupied = np.flatnonzero(by_class.any(axis=0))
        cell_scores = quality.score(*_two_largest(by_class[:, occupied].T))
        sums = np.concatenate([[0], np.cumsum(cell_scores)])
        scores[part] = np.diff(sums[np.searchsorted(occupied, offsets)])


def _two_largest(counts: NDArray[Any]) -> tuple[IntArray, IntArray]:
    """Largest and second largest count of each row; counts are whole numbers below 2**53."""
    n_classes = counts.shape[1]
    if n_classes == 1:
        largest = counts[:, 0].astype(np.int64)
        return largest, np.zeros_like(largest)
    if n_classes == 2:
        first, second = counts[:, 0], counts[:, 1]
        return np.maximum(first, second).astype(np.int64), np.minimum(first, second).astype(
            np.int64
        )
    ends = np.partition(counts, n_classes - 2, axis=1)[:, n_classes - 2 :].astype(np.int64)
    return ends[:, 1], ends[:, 0]


# ------------------------------------------------------------------------------------- selection


def select_grid(
    table: Counts,
    options: Sequence[Options],
    n_records: float,
    parts: dict[str, Fraction],
    *,
    max_grids: int = 10_000,
    selection: str = "auto",
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
    selection : {"auto", "paper"}, default="auto"
    random_state : None, int or NoiseSource

    Returns
    -------
    grid : ndarray of shape (n_predictors,)
        Option number of each predictor.
    """
    # Privacy. Candidates depend on public facts, the noisy number of records and (in the second
    # stage) the grid released by the first, hence cost nothing. All scores of a stage change
    # within one interval of length `score_range` when a record is added (see there), so each
    # noisy maximum costs its budget, and the two halves of the part "grid" add up to it. The
    # exponential mechanism takes exp(epsilon q / 2.2) for the dissertation's sensitivity of 1.1:
    # 2.2 exceeds the range.
    source = noise_source(random_state)
    first = [each.first for each in options]
    limit = cell_limit(n_records, parts["counts"], table.shape[-1], selection)
    if selection == "paper":
        grids = paper_grids([each.sizes for each in first], limit, max_grids)
        scores = grid_scores(table, first, grids, Quality.of_the_paper(parts["counts"]))
        return grids[exponential(scores, parts["grid"], _PAPER_RANGE, random_state=source)]
    quality = Quality.for_counts(parts["counts"])
    grids = candidate_grids(first, limit, max_grids, random_state=source)
    two_stages = n_records * float(parts["grid"]) >= _TWO_STAGES_FROM
    budget = parts["grid"] / 2 if two_stages else parts["grid"]
    scores = grid_scores(table, first, grids, quality)
    best = grids[noisy_max(scores, budget, quality.score_range, random_state=source)]
    if two_stages:
        grids = neighbouring_grids(best, options, limit, max_grids, random_state=source)
        scores = grid_scores(table, options, grids, quality)
        best = grids[noisy_max(scores, budget, quality.score_range, random_state=source)]
    return best


# ---------------------------------------------------------------------------------------- counts


def measure_grid_counts(
    table: CountTable,
    groups: Sequence[IntArray],
    sizes: Sequence[int],
    epsilon: Fraction,
    *,
    random_state: Any = None,
) -> IntArray:
    """Noisy number of records in each cell and class.

    Parameters
    ----------
    table : CountTable
        The predictors that the grid uses, in order, and the class as the last attribute.
    groups : sequence of ndarray
        Group of each code of each predictor.
    sizes : sequence of int
        Number of groups of each predictor.
    epsilon : Fraction

    Returns
    -------
    counts : ndarray of shape (*sizes, n_classes), int64
    """
    # Privacy. A record is in one cell and one class, so adding it changes one count by one; every
    # count, empty ones included, gets its own noise. Cost: epsilon, once.
    n_classes = table.shape[-1]
    codes = [group[table.codes[:, axis]] for axis, group in enumerate(groups)]
    stacked = np.stack([*codes, table.codes[:, -1].astype(np.int64)], axis=1)
    shape = (*(int(size) for size in sizes), n_classes)
    exact = CountTable.from_codes(stacked, shape, table.counts).dense()
    return discrete_laplace(exact, epsilon, random_state=random_state)
