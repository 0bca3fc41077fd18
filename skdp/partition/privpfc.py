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
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._random import NoiseSource, noise_source
from skdp._validation import dyadic_floor, split_epsilon
from skdp.counts import CountTable
from skdp.mechanisms import discrete_laplace, exponential, noisy_max

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
    "project_to_simplex",
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
# A second selection near the first pays when a record's share of the score is well above the noise.
_TWO_STAGES_FROM = 8_000
# Level combinations taken of one set of predictors: they share one table of counts.
_GRIDS_PER_SET = 16
_LARGEST_SET = 8
# Combinations of options of one set that are listed; of more, as many are drawn.
_ENUMERABLE = 4096
# Positions of one counting pass, and cells of a shared table.
_CHUNK = 2**20
_TABLE_CELLS = 2**18
_LARGEST_POOL_FACTOR = 8


@dataclass(frozen=True)
class Options:
    """The ways to group the codes of one predictor.

    Parameters
    ----------
    groups : tuple of ndarray of shape (n_codes,)
        Group of each code, one array for each option beyond "everything in one group".
    families : tuple of int
        Options with equal numbers are nested in each other, from coarse to fine.
    """

    groups: tuple[IntArray, ...]
    families: tuple[int, ...]

    @property
    def sizes(self) -> IntArray:
        """Number of groups of every option, the trivial one first."""
        return np.array([1, *(int(groups.max()) + 1 for groups in self.groups)], dtype=np.int64)


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


def cell_limit(n_records: float, epsilon: Fraction) -> int:
    """Largest number of cells of a grid: the noise is a fifth of the average count at most.

    Parameters
    ----------
    n_records : float
        A noisy number of records; below 1 counts as 0.
    epsilon : Fraction
        Budget of the counts.
    """
    return max(1, math.floor(0.2 * max(float(n_records), 0.0) * float(epsilon)))


def max_useful_groups(limit: int) -> int:
    """Largest number of groups of one predictor that is worth a candidate."""
    return max(1, min(limit, 64))


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
    sizes: Sequence[IntArray], limit: int, max_grids: int, *, random_state: Any = None
) -> NDArray[np.int16]:
    """A pool of distinct candidates that prefers no column for its position.

    The all-top grid is always in it, then every option of every predictor, then every pair of
    predictors (in as many options as half of the pool has room for), then random larger sets.
    It is a function of public facts, of ``limit`` and of randomness.

    Parameters
    ----------
    sizes : sequence of ndarray
        Number of groups of every option of each predictor.
    limit : int
        Largest number of cells.
    max_grids : int
    random_state : None, int or NoiseSource

    Returns
    -------
    grids : ndarray of shape (n_grids, n_predictors)
    """
    source = noise_source(random_state)
    n_axes = len(sizes)
    usable = [np.flatnonzero(np.asarray(options) <= limit)[1:] for options in sizes]
    axes = [axis for axis in range(n_axes) if len(usable[axis])]
    builder = _Builder(n_axes, max_grids)
    builder.add_all([((axis,), usable[axis][:, None]) for axis in _shuffled(axes, source)])

    pairs = []
    for pair in combinations(axes, 2):
        combos = _combinations([usable[axis] for axis in pair])
        fits = _cells(sizes, pair, combos) <= limit
        if fits.any():
            pairs.append((pair, combos[fits]))
    room = max(builder.room - max_grids // 2, min(builder.room, len(pairs)))
    pairs = _shuffled(pairs, source)
    if sum(len(combos) for _, combos in pairs) > room:
        pairs = _thinned(pairs, room, source)
    builder.add_all(pairs)

    # Larger sets: half of the room that is left for each size in turn, the last takes the rest.
    smallest = np.sort([min(int(sizes[axis][option]) for option in usable[axis]) for axis in axes])
    largest = int(np.searchsorted(np.cumprod(smallest.astype(np.float64)), limit, side="right"))
    orders = list(range(3, min(largest, _LARGEST_SET, len(axes)) + 1))
    for order in orders:
        share = builder.room if order == orders[-1] else math.ceil(builder.room / 2)
        builder.add_all(_random_sets(sizes, usable, axes, order, limit, share, source))
    return builder.grids()


class _Builder:
    """Collects distinct grids up to a maximum, the all-top grid first."""

    def __init__(self, n_axes: int, max_grids: int) -> None:
        self.blocks = [np.zeros((1, n_axes), dtype=np.int16)]
        self.room = max_grids - 1
        self.n_axes = n_axes

    def add_all(self, sets: Sequence[tuple[tuple[int, ...], IntArray]]) -> None:
        """Add combinations of options of sets of predictors, while there is room."""
        for axes, combos in sets:
            block = np.zeros((min(len(combos), self.room), self.n_axes), dtype=np.int16)
            block[:, list(axes)] = combos[: len(block)]
            self.blocks.append(block)
            self.room -= len(block)

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
    shuffled = [
        (pair, combos[np.argsort(source.words(len(combos)), kind="stable")])
        for pair, combos in pairs
    ]
    quota = np.zeros(len(pairs), dtype=np.int64)
    lengths = np.array([len(combos) for _, combos in pairs])
    while room > 0:
        open_ = np.flatnonzero(quota < lengths)[:room]
        if not len(open_):
            break
        each = max(1, room // len(open_))
        more = np.minimum(lengths[open_] - quota[open_], each)
        quota[open_] += more
        room -= int(more.sum())
    return [
        (pair, combos[:most])
        for (pair, combos), most in zip(shuffled, quota.tolist(), strict=True)
        if most
    ]


def _random_sets(
    sizes: Sequence[IntArray],
    usable: Sequence[IntArray],
    axes: Sequence[int],
    order: int,
    limit: int,
    most: int,
    source: NoiseSource,
) -> list[tuple[tuple[int, ...], IntArray]]:
    """Random sets of ``order`` predictors, each with random combinations of options that fit."""
    n_sets = math.comb(len(axes), order)
    wanted = 4 * math.ceil(most / _GRIDS_PER_SET)
    if n_sets <= wanted:
        chosen = list(combinations(axes, order))
    else:
        keys = source.words((wanted, len(axes)))
        picked = np.sort(np.argsort(keys, axis=1, kind="stable")[:, :order], axis=1)
        chosen = [tuple(axes[place] for place in row) for row in np.unique(picked, axis=0).tolist()]
    result: list[tuple[tuple[int, ...], IntArray]] = []
    left = most
    for number, members in enumerate(_shuffled(chosen, source)):
        if left <= 0:
            break
        # What earlier sets did not need is shared out among the rest.
        most_here = max(_GRIDS_PER_SET, math.ceil(left / (len(chosen) - number)))
        choices = [usable[axis] for axis in members]
        if math.prod(map(len, choices)) <= _ENUMERABLE:
            combos = _combinations(choices)
        else:
            drawn = [each[source.below(len(each), size=_ENUMERABLE)] for each in choices]
            combos = np.unique(np.stack(drawn, axis=1), axis=0)
        combos = combos[_cells(sizes, members, combos) <= limit]
        if len(combos) > most_here:
            combos = combos[np.argsort(source.words(len(combos)), kind="stable")[:most_here]]
        if len(combos):
            result.append((members, combos))
            left -= len(combos)
    return result


def neighbouring_grids(
    start: NDArray[np.int16],
    sizes: Sequence[IntArray],
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
    sizes, limit, max_grids, random_state
        As for :func:`candidate_grids`.
    """
    source = noise_source(random_state)
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
    table: CountTable,
    options: Sequence[Options],
    grids: NDArray[np.int16],
    quality: Quality,
) -> IntArray:
    """Exact integer score of every grid.

    Parameters
    ----------
    table : CountTable
        The predictors in order, and the class as the last attribute.
    options : sequence of Options
        One for each predictor.
    grids : ndarray of shape (n_grids, n_predictors)
    quality : Quality

    Returns
    -------
    scores : ndarray of shape (n_grids,), int64
    """
    # Grids over the same predictors (and the same family of groupings) share one table of counts,
    # grouped as finely as any of them needs; it is far smaller than the rows.
    families = [np.array([0, *option.families], dtype=np.int64) for option in options]
    kinds = np.zeros(grids.shape, dtype=np.int16)
    for axis, family in enumerate(families):
        column = grids[:, axis]
        kinds[:, axis] = np.where(column > 0, 1 + family[column], 0)
    order = np.lexsort(kinds.T[::-1])
    ordered = kinds[order]
    starts = np.flatnonzero(
        np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)])
    ).tolist()
    scores = np.zeros(len(grids), dtype=np.int64)
    rows = _Rows(table, options)
    for begin, end in zip(starts, [*starts[1:], len(grids)], strict=True):
        members = order[begin:end]
        axes = np.flatnonzero(ordered[begin]).tolist()
        scores[members] = _score_set(rows, axes, grids[members], quality)
    return scores


class _Rows:
    """Columns of groups of the rows, made when first needed."""

    def __init__(self, table: CountTable, options: Sequence[Options]) -> None:
        self.codes = table.codes
        self.counts = table.counts
        self.n_classes = table.shape[-1]
        self.label = self.codes[:, -1].astype(np.int64)
        self.options = options
        self._columns: dict[tuple[int, int], IntArray] = {}

    def column(self, axis: int, option: int) -> IntArray:
        key = (axis, option)
        if key not in self._columns:
            groups = self.options[axis].groups[option - 1]
            self._columns[key] = groups[self.codes[:, axis]]
        return self._columns[key]

    def coarser(self, axis: int, fine: int, option: int) -> IntArray:
        """Group by ``option`` of each group by the finer ``fine``."""
        groups = self.options[axis].groups
        mapping = np.zeros(int(groups[fine - 1].max()) + 1, dtype=np.int64)
        mapping[groups[fine - 1]] = groups[option - 1]
        return mapping


def _score_set(
    rows: _Rows, axes: Sequence[int], grids: NDArray[np.int16], quality: Quality
) -> IntArray:
    """Scores of grids that use the same predictors, each with options nested in each other."""
    n_classes = rows.n_classes
    finest = [int(grids[:, axis].max()) for axis in axes]
    widths = [
        int(rows.options[axis].sizes[option]) for axis, option in zip(axes, finest, strict=True)
    ]
    weights: NDArray[Any] = rows.counts
    label = rows.label
    coordinates = [rows.column(axis, option) for axis, option in zip(axes, finest, strict=True)]
    if math.prod(widths) * n_classes <= _TABLE_CELLS:
        key = np.zeros(len(label), dtype=np.int64)
        for column, width in zip(coordinates, widths, strict=True):
            key *= width
            key += column
        key *= n_classes
        key += label
        counts = np.bincount(key, weights=weights, minlength=math.prod(widths) * n_classes)
        present = np.flatnonzero(counts)
        weights = counts[present]
        rest, label = np.divmod(present, n_classes)
        coordinates = [np.zeros(0, dtype=np.int64)] * len(axes)
        for position in range(len(axes) - 1, -1, -1):
            rest, coordinates[position] = np.divmod(rest, widths[position])
    # Coordinates under every option in use, once for all grids.
    mapped: list[dict[int, IntArray]] = []
    for axis, option, column in zip(axes, finest, coordinates, strict=True):
        used = np.unique(grids[:, axis]).tolist()
        mapped.append(
            {o: column if o == option else rows.coarser(axis, option, o)[column] for o in used}
        )
    sizes = [rows.options[axis].sizes for axis in axes]
    scores = np.zeros(len(grids), dtype=np.int64)
    at_once = max(1, _CHUNK // max(1, len(label)))
    for begin in range(0, len(grids), at_once):
        part = grids[begin : begin + at_once][:, axes]
        keys = np.zeros((len(part), len(label)), dtype=np.int64)
        offsets = np.zeros(len(part) + 1, dtype=np.int64)
        for number, options in enumerate(part.tolist()):
            key = keys[number]
            cells = 1
            for position, option in enumerate(options):
                width = int(sizes[position][option])
                if position:
                    key *= width
                key += mapped[position][option]
                cells *= width
            offsets[number + 1] = offsets[number] + cells
            key += offsets[number]
        keys *= n_classes
        keys += label
        counts = np.bincount(
            keys.ravel(),
            weights=np.broadcast_to(weights, keys.shape).ravel(),
            minlength=int(offsets[-1]) * n_classes,
        )
        cell_scores = quality.score(*_two_largest(counts.reshape(-1, n_classes)))
        scores[begin : begin + at_once] = np.add.reduceat(cell_scores, offsets[:-1])
    return scores


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
    table: CountTable,
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
    table : CountTable
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
    # dissertation's exponential mechanism takes exp(epsilon q / 2.2): 2.2 exceeds the range.
    source = noise_source(random_state)
    sizes = [option.sizes for option in options]
    limit = cell_limit(n_records, parts["counts"])
    if selection == "paper":
        grids = paper_grids(sizes, limit, max_grids)
        scores = grid_scores(table, options, grids, Quality.of_the_paper(parts["counts"]))
        return grids[exponential(scores, parts["grid"], _PAPER_RANGE, random_state=source)]
    quality = Quality.for_counts(parts["counts"])
    grids = candidate_grids(sizes, limit, max_grids, random_state=source)
    two_stages = n_records * float(parts["grid"]) >= _TWO_STAGES_FROM * 0.37
    budget = parts["grid"] / 2 if two_stages else parts["grid"]
    scores = grid_scores(table, options, grids, quality)
    best = grids[noisy_max(scores, budget, quality.score_range, random_state=source)]
    if two_stages:
        grids = neighbouring_grids(best, sizes, limit, max_grids, random_state=source)
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


def project_to_simplex(values: NDArray[Any], total: float) -> NDArray[np.float64]:
    """Nearest non-negative array with the given sum (least squares).

    Parameters
    ----------
    values : ndarray
    total : float
        At least 0.
    """
    flat = np.asarray(values, dtype=np.float64).ravel()
    if total <= 0:
        return np.zeros(np.shape(values))
    ordered = np.sort(flat)[::-1]
    excess = np.cumsum(ordered) - total
    count = np.arange(1, len(flat) + 1)
    last = np.flatnonzero(ordered * count > excess)[-1]
    shift = excess[last] / count[last]
    return np.maximum(flat - shift, 0.0).reshape(np.shape(values))
