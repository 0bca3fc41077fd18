"""Noisy sketches of points: grids, ranges of the axes, and a tree of boxes.

Noisy grids over integer points, and their completion to a partition of the box.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ..._random import NoiseSource
from ..._validation import (
    BoolArray,
    CodeArray,
    FloatArray,
    IntArray,
    exclusive_cumsum,
    running_sums,
)
from ...mechanisms import discrete_laplace, discrete_laplace_variance, noisy_max
from ..boxes import renumbered
from ..grid import even_edges, least_parts

# Cells whose noise is drawn at once.
_CELLS_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class Cells:
    """Released cells: boxes of codes and their noisy counts.

    Attributes
    ----------
    lower, upper : ndarray of int64, shape (m, d)
        Codes of cell i on axis j: ``lower[i, j] <= code < upper[i, j]``.
    places : ndarray of int64, shape (m, d)
        Their positions in the grid, in lexicographic order.
    counts : ndarray of int64, shape (m,)
        Noisy, may be negative.
    """

    lower: IntArray
    upper: IntArray
    places: IntArray
    counts: IntArray

    @property
    def centers(self) -> FloatArray:
        """Middles of the cells, (m, d)."""
        return (self.lower + self.upper - 1) / 2

    def select(self, keep: BoolArray) -> Cells:
        """Some of the cells."""
        return Cells(self.lower[keep], self.upper[keep], self.places[keep], self.counts[keep])


def grid_edges(shape: Sequence[int], n_cells: float) -> list[IntArray]:
    """Edges of a grid of about cubic cells, at least ``n_cells`` of them if there are enough codes.

    Parameters
    ----------
    shape : sequence of int
        Codes of each axis.
    n_cells : float
        With axes of equal length each has ceil(n_cells^(1/d)) parts.
    """
    longest = max(shape)

    def sides(parts: int) -> list[int]:
        return [min(size, max(1, -(-parts * size // longest))) for size in shape]

    parts = least_parts(longest, lambda parts: math.prod(sides(parts)) >= n_cells)
    return [even_edges(size, side) for size, side in zip(shape, sides(parts), strict=True)]


def full_grid_edges(shape: Sequence[int], n_cells: float) -> list[IntArray]:
    """Edges of a grid of at least ``n_cells`` cells, cut as the dissertation's authors do.

    Axis by axis, those with the fewest codes first: while j axes are left and M cells are still
    needed, the next axis gets ceil(M^(1/j)) parts, and M is divided by them. Later axes may stay
    whole, so that the number of cells stays close to ``n_cells`` in any dimension.
    """
    edges: list[IntArray] = [np.empty(0, dtype=np.int64)] * len(shape)
    wanted = max(1.0, n_cells)
    for done, axis in enumerate(np.argsort(shape, kind="stable")):
        size = shape[axis]
        parts = max(1, min(size, math.ceil(wanted ** (1 / (len(shape) - done)) - 1e-9)))
        edges[axis] = even_edges(size, parts)
        wanted = max(1.0, wanted / parts)
    return edges


def count_cells(points: CodeArray, edges: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Numbers of the occupied cells of a grid, ascending, and their exact counts."""
    sides = [len(edge) - 1 for edge in edges]
    key = np.zeros(len(points), dtype=np.int64)
    for axis, (edge, side) in enumerate(zip(edges, sides, strict=True)):
        if side > 1:
            key *= side
            key += np.searchsorted(edge[1:-1], points[:, axis], side="right")
    if math.prod(sides) <= _CELLS_AT_ONCE:
        exact = np.bincount(key, minlength=1)
        present = np.flatnonzero(exact)
        return present, exact[present]
    return np.unique(key, return_counts=True)


def measure_cells(
    points: CodeArray,
    edges: Sequence[IntArray],
    epsilon: Fraction,
    threshold: int | None,
    source: NoiseSource,
) -> Cells:
    """Noisy count of every cell of a grid, or of those that reach a threshold.

    Noise is drawn for every cell of the grid, a block of cells at a time: the distribution of the
    result is exactly that of the full noisy grid with the small counts removed. Only one block is
    held at a time.

    Parameters
    ----------
    points : ndarray of int, shape (n, d)
    edges : list of ndarray of int64
        First codes of the parts of each axis, and the end.
    epsilon : Fraction
        Cost of the counts, because a record is in one cell.
    threshold : int or None
        Public, or computed from earlier releases.
    source : NoiseSource
    """
    sides = [len(edge) - 1 for edge in edges]
    present, occupied = count_cells(points, edges)
    kept_blocks, count_blocks = [], []
    total = math.prod(sides)
    for first in range(0, total, _CELLS_AT_ONCE):
        stop = min(first + _CELLS_AT_ONCE, total)
        exact = np.zeros(stop - first, dtype=np.int64)
        here = slice(*np.searchsorted(present, [first, stop]))
        exact[present[here] - first] = occupied[here]
        noisy = discrete_laplace(exact, epsilon, random_state=source)
        kept = np.arange(len(noisy)) if threshold is None else np.flatnonzero(noisy >= threshold)
        kept_blocks.append(kept + first)
        count_blocks.append(noisy[kept])
    kept, counts = np.concatenate(kept_blocks), np.concatenate(count_blocks)
    places = np.stack(np.unravel_index(kept, sides), axis=1)
    lower = np.stack([edge[places[:, axis]] for axis, edge in enumerate(edges)], axis=1)
    upper = np.stack([edge[places[:, axis] + 1] for axis, edge in enumerate(edges)], axis=1)
    return Cells(lower, upper, places, counts)


def cover(places: IntArray, sides: Sequence[int]) -> tuple[IntArray, IntArray, IntArray]:
    """Complete some cells of a grid to a partition of it into boxes.

    Gaps are closed axis by axis: one box lies between two neighbouring values on an axis, among
    cells that agree on the earlier axes. There are at most 2d + 1 boxes for a cell, plus one.

    Parameters
    ----------
    places : ndarray of int64, shape (m, d)
        Distinct cells, in lexicographic order.
    sides : sequence of int
        Cells of the grid along each axis.

    Returns
    -------
    lower, upper : ndarray of int64, shape (n, d)
        Boxes of places; the cells come first, in their order.
    index : ndarray of int64, shape (n,)
        Position of the cell that a box is, -1 for gaps.
    """
    m, d = places.shape
    whole = np.array(sides, dtype=np.int64)
    lower, upper, index = [places], [places + 1], [np.arange(m)]
    if m == 0:
        return np.zeros((1, d), dtype=np.int64), whole[None], np.array([-1])
    starts_parent = np.zeros(m, dtype=bool)
    starts_parent[0] = True
    for axis in range(d):
        starts_child = starts_parent.copy()
        starts_child[1:] |= places[1:, axis] != places[:-1, axis]
        rows = np.flatnonzero(starts_child)
        value = places[rows, axis]
        is_first = starts_parent[rows]
        is_last = np.append(is_first[1:], True)
        before = np.where(is_first, 0, np.append(0, value[:-1] + 1))
        gaps = [(rows, before, value), (rows[is_last], value[is_last] + 1, None)]
        for at, low, high in gaps:
            stop = np.full(len(at), sides[axis]) if high is None else high
            open_gap = low < stop
            boxes_low = np.zeros((int(open_gap.sum()), d), dtype=np.int64)
            boxes_high = np.tile(whole, (len(boxes_low), 1))
            boxes_low[:, :axis] = places[at[open_gap], :axis]
            boxes_high[:, :axis] = places[at[open_gap], :axis] + 1
            boxes_low[:, axis] = low[open_gap]
            boxes_high[:, axis] = stop[open_gap]
            lower.append(boxes_low)
            upper.append(boxes_high)
            index.append(np.full(len(boxes_low), -1))
        starts_parent = starts_child
    return np.concatenate(lower), np.concatenate(upper), np.concatenate(index)


# ------------------------------------------------------------------------------------------------
# Where the records are along each axis: a range of each, then a noisy histogram of it.
#
# Declared bounds are often far wider than the data. Whether they are is one cheap question for all
# axes together. Only then is epsilon spent on ranges: of intervals of many widths, one is selected
#   on
# every axis that holds nearly all records and is narrow: each halving of the width is worth some of
# the records. Beyond a range bins grow with the distance: records there are counted in boxes of
#   their
# own, so nothing is clipped.
#
# Privacy (neighbours add or remove one record). *Question*: the largest number of records in any
# short interval of any axis changes by at most 1: Laplace noise of sensitivity 1. *Ranges*: the
#   score
# of an interval is minus the number of records beyond it, plus a number that depends on its width,
# the budget, and the number of records, which are public or released. One record more lowers scores
# by 0 or 1: a range of 1. Selections on d axes at ``epsilon / d`` each add up. *Histograms*: a
#   record
# is in at most one bin of the range of each axis, so those of d axes at ``epsilon / d`` each cost
# ``epsilon``.


# Up to this many dimensions data are flat: cells are small, and one round is enough.
MOST_FLAT = 3


@dataclass(frozen=True)
class Tuning:
    """Numbers of ranges and margins, chosen on generated tables.

    Attributes
    ----------
    least_bins, most_bins : int
        Bins of a range.
    filled : float
        Records per unit of noise that a bin should have on average.
    halving : float
        Records, in units of noise, that a range of half the width may lose.
    tight : float
        Length of an axis, in ranges, from which on the first range of an axis is narrower.
    wide, clearly : float
        Part of all records, and records in units of noise, that it may lose for each halving of
        this length: the larger of both.
    narrow : float
        Part of an axis that a range has at most if it is searched again.
    certain : float
        Units of noise by which all records outweigh the narrowest interval that is tried, and by
        which a bin of a margin beyond the range stands out.
    narrowest : int
        Most halvings at once: more intervals make the selection less certain.
    look, units : int
        Records, in units of noise, of a look whether any range is narrow, and of a selection on
        an axis: at least.
    share, most_spent : Fraction
        Parts of the budget for a selection on all axes, at least, and for all that is spent.
    short, most : int, float
        An axis is narrow if an interval that is so many times shorter holds this part of the
        records.
    margin : float
        Part of the width that is added to a range on both sides.
    clear : float
        Squared noise by which halves of a margin must differ.
    even : float
        Part of a margin that is spread evenly over the range, so that cuts do not depend on noise
        alone.
    octave : int
        Bins beyond a range before their width doubles; the first have this part of its width.
    nothing : float
        Mass beyond the range, for each width of it: too little to cut a box of the range for.
    """

    least_bins: int = 8
    most_bins: int = 128
    filled: float = 1.25
    halving: float = 1.6
    tight: float = 4.0
    wide: float = 1 / 25
    clearly: float = 5.0
    narrow: float = 0.4
    certain: float = 8.0
    narrowest: int = 5
    look: int = 20
    units: int = 30
    share: Fraction = Fraction(1, 20)
    most_spent: Fraction = Fraction(3, 5)
    short: int = 8
    most: float = 0.8
    margin: float = 0.15
    clear: float = 1.0
    even: float = 0.02
    octave: int = 16
    nothing: float = 1e-6


TUNING = Tuning()


def find_ranges(
    points: CodeArray, shape: Sequence[int], n: float, budget: Fraction, source: NoiseSource
) -> tuple[IntArray, Fraction]:
    """Codes that nearly all records are between, (d, 2), and what was spent.

    One look tells whether any axis is narrow. If so, a range is selected on every axis, and again
    within those that are narrow.

    Privacy. The look and every selection are charged; the ranges depend on what they release.

    Parameters
    ----------
    points : ndarray of int, shape (n, d)
        Private.
    shape : sequence of int
    n : float
        Number of records, public or released; at most the true one, almost surely.
    budget : Fraction
        Of all that follows too.
    source : NoiseSource
    """
    found, most = np.array([[0, size] for size in shape]), TUNING.most_spent * budget
    known = max(Fraction(n), Fraction(1))
    look = TUNING.look / known
    least = TUNING.share * budget / len(shape)
    share = min(max(TUNING.units / known, least), (most - look) / len(shape))
    units = float(known * share)
    certain = (units - TUNING.certain) / (TUNING.halving + math.log(2))
    if certain < 1:
        return found, Fraction(0)
    parts = 4 * 2 ** min(int(certain), TUNING.narrowest)
    unclear = [axis for axis, size in enumerate(shape) if size >= parts]
    counts = {axis: _counts(points, shape, axis, found[axis], parts) for axis in unclear}
    spent = look
    if not _any_narrow(list(counts.values()), n, look, source):
        return found, spent
    while unclear and spent + share * len(unclear) <= most:
        spent += share * len(unclear)
        for axis in unclear.copy():
            low, high = found[axis].tolist()
            first = high - low == shape[axis]
            ends = _selected(counts[axis], units, share, first, source)
            start, stop = (low + even_edges(high - low, parts)[ends]).tolist()
            more = round(TUNING.margin * (stop - start))
            found[axis] = max(start - more, low), min(stop + more, high)
            if stop - start > TUNING.narrow * (high - low) or np.diff(found[axis])[0] < parts:
                unclear.remove(axis)
        counts = {axis: _counts(points, shape, axis, found[axis], parts) for axis in unclear}
    return found, spent


def _counts(
    points: CodeArray, shape: Sequence[int], axis: int, ends: IntArray, parts: int
) -> IntArray:
    """Exact number of records in each part of an axis between two codes: private."""
    low, high = ends.tolist()
    grid = [np.array([0, size]) for size in shape]
    edges = low + even_edges(high - low, parts)
    grid[axis] = np.unique(np.concatenate([[0], edges, [shape[axis]]]))
    place, occupied = count_cells(points, grid)
    counts = np.zeros(len(grid[axis]) - 1, dtype=np.int64)
    counts[place] = occupied
    return counts[int(low > 0) :][:parts]


def _any_narrow(counts: list[IntArray], n: float, epsilon: Fraction, source: NoiseSource) -> bool:
    """Whether a short interval of any axis holds most records; costs ``epsilon``.

    Privacy. A record changes the count of an interval by 0 or 1, and so the largest count of all
    intervals of all axes by at most 1.
    """
    most = 0
    for each in counts:
        length = len(each) // TUNING.short
        below = exclusive_cumsum(np.append(each, 0))
        most = max(most, int((below[length:] - below[:-length]).max()))
    noisy = discrete_laplace(np.array([most]), epsilon, random_state=source)
    return bool(noisy[0] >= TUNING.most * n)


def _selected(
    counts: IntArray, units: float, epsilon: Fraction, first: bool, source: NoiseSource
) -> list[int]:
    """First part and end of an interval of nearly all records; costs ``epsilon``.

    ``first``: the parts are those of a whole axis.
    """
    parts = len(counts)
    below = exclusive_cumsum(np.append(counts, 0))
    start, stop = _intervals(parts)
    worth = TUNING.halving * np.log2(parts / (stop - start))
    if first:
        # Bounds that are not that wide stay, so that no cluster is cut off.
        wider = np.maximum(np.log2(parts / (stop - start) / TUNING.tight), 0.0)
        worth = max(TUNING.wide * units, TUNING.clearly) * wider
    # Privacy. One more record is in some intervals and not in others: the score of those that it
    # is beyond falls by 1 relative to the others.
    scores = below[stop] - below[start] + np.rint(worth / float(epsilon)).astype(np.int64)
    best = int(noisy_max(scores, epsilon, 1, random_state=source))
    return [int(start[best]), int(stop[best])]


def _intervals(parts: int) -> tuple[IntArray, IntArray]:
    """Intervals of 4 parts or more, the widths by half octaves, and steps of a quarter of them."""
    widths = {round(2 ** (i / 2)) for i in range(4, 2 * parts.bit_length())}
    low, high = [np.zeros(1, dtype=np.int64)], [np.full(1, parts)]
    for width in sorted(each for each in widths if each < parts):
        starts = np.append(np.arange(0, parts - width, width // 4), parts - width)
        low.append(starts)
        high.append(starts + width)
    return np.concatenate(low), np.concatenate(high)


def bins_of(points: CodeArray, edges: list[IntArray]) -> CodeArray:
    """Bins of private points on every axis, (n, d), whose first codes and end are ``edges``."""
    bins = np.empty(points.shape, dtype=np.int32, order="F")
    for axis, edge in enumerate(edges):
        bin_of_code = np.repeat(np.arange(len(edge) - 1, dtype=np.int32), np.diff(edge))
        bins[:, axis] = bin_of_code[points[:, axis]]
    return bins


@dataclass(frozen=True)
class Margins:
    """How the records are spread along each axis, from released numbers.

    Attributes
    ----------
    edges : list of ndarray of int64
        First codes of the bins, and the end.
    masses : list of ndarray of float64
        Shares of the records in the bins, positive, with sum 1.
    cores : ndarray of int64, shape (d, 2)
        First bin of the range that holds nearly all records, and its end.
    """

    edges: list[IntArray]
    masses: list[FloatArray]
    cores: IntArray

    @property
    def ranges(self) -> IntArray:
        """First code of the range that holds nearly all records, and its end, (d, 2)."""
        return np.array([edge[core] for edge, core in zip(self.edges, self.cores, strict=True)])

    @classmethod
    def even(cls, shape: Sequence[int], ranges: IntArray, units: float) -> Margins:
        """Records spread evenly over ranges of codes, (d, 2): before anything is measured.

        ``units``: records per unit of the noise in which they will be.
        """
        bins = int(np.clip(units / TUNING.filled, TUNING.least_bins, TUNING.most_bins))
        edges, cores, masses = [], [], []
        for size, (low, high) in zip(shape, ranges.tolist(), strict=True):
            inner = low + even_edges(high - low, min(high - low, bins))
            edges.append(edges_around(inner, size, TUNING.octave))
            first = int(np.searchsorted(edges[-1], low))
            cores.append([first, first + len(inner) - 1])
            evenly = np.zeros(len(edges[-1]) - 1)
            evenly[slice(*cores[-1])] = np.diff(inner) / (high - low)
            masses.append(_masses_around(evenly, edges[-1], *cores[-1]))
        return cls(edges, masses, np.array(cores))

    def quantiles(self, axis: int, lower: IntArray, upper: IntArray, u: FloatArray) -> FloatArray:
        """Positions in codes, at the fraction u of the mass between two edges of an axis."""
        places = self.edges[axis] - 0.5
        levels = running_sums(self.masses[axis])
        low, high = (np.interp(end - 0.5, places, levels) for end in (lower, upper))
        found: FloatArray = np.interp(low + u * (high - low), levels, places)
        return found


def edges_around(inner: IntArray, size: int, octave: int) -> IntArray:
    """Edges of all bins of an axis: beyond the range they grow, ``octave`` before they double."""
    low, high = int(inner[0]), int(inner[-1])
    width = max((high - low) // octave, 1)
    growing = width * np.cumsum(np.repeat(2 ** np.arange(size.bit_length()), octave))
    before, after = (low - growing)[::-1], high + growing
    parts = [[0] * (low > 0), before[before > 0], inner, after[after < size]]
    return np.concatenate([*parts, [size] * (high < size)]).astype(np.int64)


def _masses_around(shares: FloatArray, edges: IntArray, first: int, last: int) -> FloatArray:
    """Shares of all bins of an axis, positive also where none is known."""
    inside, widths = slice(first, last), np.diff(edges)
    whole = widths[inside].sum()
    middle = (edges[1:] + edges[:-1]) / 2
    beyond = np.maximum(edges[inside.start] - middle, middle - edges[inside.stop])
    # Each doubling of the distance has a quarter of the mass of the one before.
    mass: FloatArray = TUNING.nothing * widths / whole / (1 + np.maximum(beyond, 0) / whole) ** 3
    mass[inside] = TUNING.even * widths[inside] / whole
    mass += (1 - TUNING.even) * shares
    return mass / mass.sum()


def measure_margins(
    bins: CodeArray, margins: Margins, n: int, epsilon: Fraction, source: NoiseSource
) -> Margins:
    """Noisy histogram of every axis.

    Beyond the range bins count that stand out from their noise: clusters of few records lie there
    where most have one value.

    Privacy. A record is in one bin of an axis: d times ``epsilon / d``. The ranges were released.

    Parameters
    ----------
    bins : ndarray of int32, shape (m, d)
        Bins of the points: private.
    margins : Margins
        Ranges and bins.
    n : int
        Public or released number of records.
    epsilon : Fraction
    source : NoiseSource
    """
    masses, each = [], epsilon / len(margins.edges)
    for axis, (first, last) in enumerate(margins.cores.tolist()):
        edges = margins.edges[axis]
        exact = np.bincount(bins[:, axis], minlength=len(edges) - 1)
        noisy = discrete_laplace(exact, each, random_state=source).astype(np.float64)
        counts = np.where(noisy * float(each) >= TUNING.certain, noisy, 0.0)
        counts[first:last] = 0.0
        within = max(n - counts.sum(), 1.0)
        counts[first:last] = _smoothed(noisy[first:last], discrete_laplace_variance(each), within)
        masses.append(_masses_around(counts / counts.sum(), edges, first, last))
    return replace(margins, masses=masses)


def _smoothed(counts: FloatArray, variance: float, total: float) -> FloatArray:
    """Counts of bins that sum to ``total``: halves differ as far as that stands out from noise."""
    size = len(counts)
    if size == 1:
        return np.array([total])
    half = size // 2
    upper = size - half
    # Both halves tell the share of the lower one; one of twice the bins has twice the noise.
    lower = (counts[:half].sum() * upper + (total - counts[half:].sum()) * half) / size
    noise = variance * half * upper / size
    step = lower - total * half / size
    step *= max(1 - TUNING.clear * noise / max(step**2, noise * 1e-9), 0.0)
    lower = min(max(total * half / size + step, 0.0), total)
    parts = (counts[:half], lower), (counts[half:], total - lower)
    return np.concatenate([_smoothed(some, variance, each) for some, each in parts])


# ------------------------------------------------------------------------------------------------
# A noisy tree of boxes over integer points, cut by the margins of the axes.
#
# In many dimensions most cells of a grid hold few records or none: either the noise of the empty
# ones outweighs the records, or the records of sparse cells are lost with them. A tree has small
# boxes where the records are and loses none: its leaves cover the whole box, with large leaves
#   where
# it is empty.
#
# Privacy (neighbours add or remove one record). *Margins*: a record is in one bin of each axis, so
# a histogram of every axis at ``epsilon / d`` costs ``epsilon``. *Tree*: a level of the tree counts
# disjoint boxes, so it costs its part of the budget once. A box that is not divided gets all of the
# remaining budget instead of one part, and no descendant of it is counted: along the path of a
#   record
# the parts add up to ``epsilon``. Which boxes are divided, and where, depends on margins and
#   earlier
# levels, which are released. Making the counts agree with each other is post-processing.


# Parts of the budget for the levels, from the top.
_LEVELS = (Fraction(4, 19), Fraction(6, 19), Fraction(9, 19))
_MOST_CHILDREN = 16
# Records that a child should have, in units of the noise of its level; more if the leaves would
# become too many.
_CHILD = 2.0
_MOST_LEAVES = 4000
# Leaves for each requested cluster, where these are more.
_LEAVES_EACH = 160
# A count below this many standard deviations becomes zero, unless all of its siblings do.
_ZERO = 1.0


class Leaves(NamedTuple):
    """Boxes that divide the domain, with estimates of their counts.

    Attributes
    ----------
    lower, upper : ndarray of int64, shape (m, d)
        Ends in bins; upper ends are excluded.
    counts : ndarray of float64, shape (m,)
        Not negative.
    """

    lower: IntArray
    upper: IntArray
    counts: FloatArray


class _Level(NamedTuple):
    """Children that are counted together; those that are not final are divided again, in order."""

    lower: IntArray
    upper: IntArray
    parent: IntArray
    final: BoolArray
    values: FloatArray
    variances: FloatArray


def measure_tree(
    bins: CodeArray, margins: Margins, n: int, k: int, epsilon: Fraction, source: NoiseSource
) -> Leaves:
    """Noisy counts of a tree's boxes, made to agree; the parts along a path sum to ``epsilon``.

    Parameters
    ----------
    bins : ndarray of int32, shape (m, d)
        Bins of the points: private.
    margins : Margins
        Released: a box is cut on the axis along which it is widest by its margin, at the mean.
    n : int
        Public or released number of records.
    k : int
        Number of clusters that the leaves should tell apart.
    epsilon : Fraction
    source : NoiseSource
    """
    cuts = _Cuts.of(margins)
    # ``bins`` are those of rows in boxes that may be divided; ``box`` is that of each.
    lower, upper, box = _roots(bins, margins)
    estimates = np.zeros(len(lower))
    estimates[0] = n
    least = max(_CHILD, n * float(epsilon) / max(_MOST_LEAVES, _LEAVES_EACH * k))
    levels: list[_Level] = []
    for depth, part in enumerate(_LEVELS):
        parts = np.maximum(estimates, 0.0) * float(part * epsilon) / least
        wanted = np.clip(parts, 1, _MOST_CHILDREN).astype(np.int64)
        lower, upper, parent, box = _children(lower, upper, box, bins, wanted, cuts)
        if depth == 0:
            # The parts of the ranges and the boxes beyond them are one family.
            parent = np.zeros_like(parent)
        last = depth == len(_LEVELS) - 1
        final = (np.bincount(parent)[parent] == 1) | last
        exact = np.bincount(box, minlength=len(lower))
        budgets = (final, sum(_LEVELS[depth:]) * epsilon), (~final, part * epsilon)
        values, variances = _measured(exact, budgets, source)
        levels.append(_Level(lower, upper, parent, final, values, variances))
        open_boxes = np.flatnonzero(~final)
        if not len(open_boxes):
            break
        box = renumbered(open_boxes, len(final))[box]
        stay = box >= 0
        bins, box = bins[stay], box[stay]
        lower, upper, estimates = lower[open_boxes], upper[open_boxes], values[open_boxes]
    counts = _agreeing(levels, float(n))
    return Leaves(
        np.concatenate([level.lower[level.final] for level in levels]),
        np.concatenate([level.upper[level.final] for level in levels]),
        np.concatenate([count[level.final] for level, count in zip(levels, counts, strict=True)]),
    )


def _roots(bins: CodeArray, margins: Margins) -> tuple[IntArray, IntArray, IntArray]:
    """The box of the ranges and, beyond them, boxes that are counted with its parts.

    Clusters of few records may be there, but cuts by the margins would not find them.
    """
    low = np.zeros(len(margins.edges), dtype=np.int64)
    high = np.array([len(mass) for mass in margins.masses])
    lower, upper = [low], [high]
    box = np.zeros(len(bins), dtype=np.int64)
    for axis, (first, last) in enumerate(margins.cores.tolist()):
        for beyond, start, stop in (
            (bins[:, axis] < first, 0, first),
            (bins[:, axis] >= last, last, int(high[axis])),
        ):
            if start < stop:
                box[(box == 0) & beyond] = len(lower)
                lower.append(lower[0].copy())
                upper.append(upper[0].copy())
                lower[-1][axis], upper[-1][axis] = start, stop
        lower[0][axis], upper[0][axis] = first, last
    return np.stack(lower), np.stack(upper), box


def _children(
    lower: IntArray, upper: IntArray, box: IntArray, bins: CodeArray, wanted: IntArray, cuts: _Cuts
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Cut boxes in two, and their parts again, until each box has the requested number of parts.

    Parameters
    ----------
    lower, upper : ndarray of int64, shape (m, d)
    box : ndarray of int64, shape (n,)
        Box of each row.
    bins : ndarray of int32, shape (n, d)
        The rows.
    wanted : ndarray of int64, shape (m,)
        Number of parts, at least 1; a box that cannot be cut further has fewer parts.
    cuts : _Cuts

    Returns
    -------
    lower, upper, parent : ndarray of int64
        Of each part.
    box : ndarray of int64, shape (n,)
        Part of each row.
    """
    parent = np.arange(len(lower))
    while True:
        axis, cut, able = cuts.best(lower, upper)
        at = np.flatnonzero(able & (wanted > 1))
        if not len(at):
            return lower, upper, parent, box
        first = len(lower)
        # New box of the rows after the cut of a box; boxes that are not cut have no such rows.
        beyond = np.zeros(first, dtype=np.int64)
        beyond[at] = first + np.arange(len(at))
        border = np.full(first, np.iinfo(np.int32).max, dtype=np.int32)
        border[at] = cut[at]
        over = bins[np.arange(len(bins)), axis[box]] >= border[box]
        box = np.where(over, beyond[box], box)
        above = wanted[at] * (1 - cuts.share(lower[at], upper[at], axis[at], cut[at]))
        right = np.clip(np.rint(above).astype(np.int64), 1, wanted[at] - 1)
        new_lower, new_upper = lower[at], upper[at]
        new_lower[np.arange(len(at)), axis[at]] = cut[at]
        upper = upper.copy()
        upper[at, axis[at]] = cut[at]
        rest = wanted.copy()
        rest[at] -= right
        lower = np.concatenate([lower, new_lower])
        upper = np.concatenate([upper, new_upper])
        parent = np.concatenate([parent, parent[at]])
        wanted = np.concatenate([rest, right])


def _measured(
    exact: IntArray, budgets: Sequence[tuple[BoolArray, Fraction]], source: NoiseSource
) -> tuple[FloatArray, FloatArray]:
    """Noisy counts of disjoint boxes, some with one budget and some with another; variances."""
    values, variances = np.empty(len(exact)), np.empty(len(exact))
    for these, budget in budgets:
        if these.any():
            values[these] = discrete_laplace(exact[these], budget, random_state=source)
            variances[these] = discrete_laplace_variance(budget)
    return values, variances


def _agreeing(levels: list[_Level], n: float) -> list[FloatArray]:
    """Counts that add up to those of their parents, none negative.

    Upward every box's count is averaged with the sum of its children, by their precision;
    downward the children divide the count of their parent; those near zero get nothing.
    """
    upward: list[tuple[FloatArray, FloatArray]] = []
    below = None
    for level in reversed(levels):
        values, variances = level.values.copy(), level.variances.copy()
        if below is not None:
            inner = ~level.final
            own, theirs = 1 / variances[inner], 1 / below[1]
            values[inner] = (values[inner] * own + below[0] * theirs) / (own + theirs)
            variances[inner] = 1 / (own + theirs)
        upward.append((values, variances))
        below = np.bincount(level.parent, values), np.bincount(level.parent, variances)
    totals = np.array([n])
    counts = []
    for level, (values, variances) in zip(levels, reversed(upward), strict=True):
        parent = level.parent
        shares = values > _ZERO * np.sqrt(variances)
        shares |= np.bincount(parent, shares)[parent] == 0
        while True:
            loose = np.where(shares, variances, 0.0)
            gap = totals - np.bincount(parent, np.where(shares, values, 0.0))
            fitted = np.where(shares, values, 0.0)
            fitted += loose * (gap / np.bincount(parent, loose))[parent]
            # Removes rounding: with a total of zero the last share of a family may be slightly
            # negative.
            below_zero = fitted < -1e-6
            if not below_zero.any():
                break
            shares &= ~below_zero
        counts.append(np.maximum(fitted, 0.0))
        totals = counts[-1][~level.final]
    return counts


@dataclass(frozen=True)
class _Cuts:
    """Where to cut boxes, by the first moments of the margins up to every edge.

    Attributes
    ----------
    sums : ndarray of float64, shape (3, d, b)
        Mass, first and second moment of an axis below each edge.
    places : ndarray of float64, shape (d, b)
        The edges, in codes; infinite beyond the last one.
    """

    sums: FloatArray
    places: FloatArray

    @classmethod
    def of(cls, margins: Margins) -> _Cuts:
        longest = max(len(edge) for edge in margins.edges)
        sums = np.zeros((3, len(margins.edges), longest))
        places = np.full(sums.shape[1:], np.inf)
        for axis, (edge, mass) in enumerate(zip(margins.edges, margins.masses, strict=True)):
            width = np.diff(edge).astype(np.float64)
            middle = (edge[:-1] + edge[1:] - 1) / 2
            places[axis, : len(edge)] = edge - 0.5
            squares = middle**2 + width**2 / 12
            for power, moment in enumerate((np.ones(len(mass)), middle, squares)):
                sums[power, axis, 1 : len(edge)] = np.cumsum(mass * moment)
        return cls(sums, places)

    def best(self, lower: IntArray, upper: IntArray) -> tuple[IntArray, IntArray, BoolArray]:
        """Axis of largest variance of each box, edge nearest the mean, and whether it exists."""
        axes = np.arange(lower.shape[1])
        mass, first, second = self.sums[:, axes, upper] - self.sums[:, axes, lower]
        mean = first / mass
        variance = np.where(upper - lower > 1, second / mass - mean**2, -np.inf)
        axis = variance.argmax(axis=1)
        at = np.arange(len(lower))
        distance = np.abs(self.places[axis] - mean[at, axis][:, None])
        low, high = lower[at, axis] + 1, upper[at, axis] - 1
        cut = np.clip(distance.argmin(axis=1), low, np.maximum(high, low))
        return axis, cut, high >= low

    def share(self, lower: IntArray, upper: IntArray, axis: IntArray, cut: IntArray) -> FloatArray:
        """Share of a box's records below a cut, from the margin of the axis."""
        at = np.arange(len(axis))
        mass = self.sums[0]
        below = mass[axis, cut] - mass[axis, lower[at, axis]]
        share: FloatArray = below / (mass[axis, upper[at, axis]] - mass[axis, lower[at, axis]])
        return share
