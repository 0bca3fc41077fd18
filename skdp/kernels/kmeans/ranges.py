"""Where the records are along each axis: a range of each, then a noisy histogram of it.

Declared bounds are often far wider than the data. Whether they are is one cheap question for all
axes together. Only then is epsilon spent on ranges: of intervals of many widths, one is selected on
every axis that holds nearly all records and is narrow: each halving of the width is worth some of
the records. Beyond a range bins grow with the distance: records there are counted in boxes of their
own, so nothing is clipped.

Privacy (neighbours add or remove one record). *Question*: the largest number of records in any
short interval of any axis changes by at most 1: Laplace noise of sensitivity 1. *Ranges*: the score
of an interval is minus the number of records beyond it, plus a number that depends on its width,
the budget, and the number of records, which are public or released. One record more lowers scores
by 0 or 1: a range of 1. Selections on d axes at ``epsilon / d`` each add up. *Histograms*: a record
is in at most one bin of the range of each axis, so those of d axes at ``epsilon / d`` each cost
``epsilon``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..._arrays import exclusive_cumsum, integer_sums, running_sums
from ..._random import NoiseSource
from ..._types import CodeArray, FloatArray, IntArray
from ...mechanisms import discrete_laplace, discrete_laplace_variance, noisy_max
from ...rows import CodedRows, part_of
from ..grid import even_edges
from .cells import count_cells
from .rows import Points

__all__ = ["MOST_FLAT", "Binned", "Margins", "edges_around", "find_ranges", "measure_margins"]

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
        Units of noise by which all records outweigh the narrowest interval that is tried.
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
    points: Points, shape: Sequence[int], n: float, budget: Fraction, source: NoiseSource
) -> tuple[IntArray, Fraction]:
    """Codes that nearly all records are between, (d, 2), and what was spent.

    One look tells whether any axis is narrow. If so, a range is selected on every axis, and again
    within those that are narrow.

    Privacy. The look and every selection are charged; the ranges depend on what they release.

    Parameters
    ----------
    points : ndarray of int32, shape (n, d), or CodedRows
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
    points: Points, shape: Sequence[int], axis: int, ends: IntArray, parts: int
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


@dataclass(frozen=True)
class Binned:
    """Private points by the bins of their axes.

    Attributes
    ----------
    bins : ndarray of int32, shape (m, d)
    counts : ndarray of int64, shape (m,), or None
        Points that a row stands for; None is one each.
    edges : list of ndarray of int64
        First codes of the bins of each axis, and the end: public or released.
    """

    bins: CodeArray
    counts: IntArray | None
    edges: list[IntArray]

    @classmethod
    def of(cls, points: Points, edges: list[IntArray]) -> Binned:
        """Points in memory; in an engine, distinct rows of bins and their counts."""
        if isinstance(points, CodedRows):
            return cls(*points.parts(edges), edges)
        bins = np.empty(points.shape, dtype=np.int32, order="F")
        for axis, edge in enumerate(edges):
            if np.array_equal(edge, even_edges(int(edge[-1]), len(edge) - 1)):
                column = points[:, axis].astype(np.int64)
                bins[:, axis] = part_of(column, int(edge[-1]), len(edge) - 1)
            else:
                bin_of_code = np.repeat(np.arange(len(edge) - 1, dtype=np.int32), np.diff(edge))
                bins[:, axis] = bin_of_code[points[:, axis]]
        return cls(bins, None, edges)

    def tally(self, labels: NDArray, rows: IntArray | None, size: int) -> IntArray:
        """Exact number of points by label, of some of the rows: private."""
        counts = self.counts
        if counts is not None and rows is not None:
            counts = counts[rows]
        return integer_sums(labels, size, counts)

    def margin(self, axis: int) -> IntArray:
        """Exact number of points in each bin of an axis: private."""
        return self.tally(self.bins[:, axis], None, len(self.edges[axis]) - 1)


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
            masses.append(_masses_around(np.diff(inner) / (high - low), edges[-1], first))
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


def _masses_around(within: FloatArray, edges: IntArray, first: int) -> FloatArray:
    """Shares of all bins of an axis, from those in the range."""
    inside = slice(first, first + len(within))
    widths = np.diff(edges)
    whole = widths[inside].sum()
    middle = (edges[1:] + edges[:-1]) / 2
    beyond = np.maximum(edges[inside.start] - middle, middle - edges[inside.stop])
    # Each doubling of the distance has a quarter of the mass of the one before.
    mass: FloatArray = TUNING.nothing * widths / whole / (1 + np.maximum(beyond, 0) / whole) ** 3
    mass[inside] = (1 - TUNING.even) * within + TUNING.even * widths[inside] / whole
    return mass / mass.sum()


def measure_margins(
    binned: Binned, margins: Margins, n: int, epsilon: Fraction, source: NoiseSource
) -> Margins:
    """Noisy histogram of the range of every axis.

    Privacy. A record is in at most one bin of the range of an axis: d times ``epsilon / d``.

    Parameters
    ----------
    binned : Binned
        Private.
    margins : Margins
        Ranges and bins.
    n : int
        Public or released number of records.
    epsilon : Fraction
    source : NoiseSource
    """
    masses = []
    for axis, (first, last) in enumerate(margins.cores.tolist()):
        exact = binned.margin(axis)[first:last]
        noisy = discrete_laplace(exact, epsilon / len(margins.edges), random_state=source)
        variance = discrete_laplace_variance(epsilon / len(margins.edges))
        within = _smoothed(noisy.astype(np.float64), variance, 1.0 * n) / n
        masses.append(_masses_around(within, margins.edges[axis], first))
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
