"""Where the records are along each axis: noisy histograms, cut finer where all records are.

Declared bounds are often far wider than the data. All records then lie in a few of the even bins of
an axis. Bayes' rule tells from the noisy counts where these begin and end, and how sure that is.
If it is sure that the range is narrow, it is divided again, and again; if it is only likely, the
same bins are measured once more. Bins beyond a range stay as wide as they were, so that nothing is
clipped.

Privacy (neighbours add or remove one record). A record is in one bin of each axis, so a histogram
of some of the d axes at ``epsilon / d`` each costs that number of times ``epsilon / d``. Whether
and where an axis is measured again is computed from its earlier noisy counts and the number of
records, which is public or released: costs add up, and what was spent is returned exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..._arrays import integer_sums, running_sums
from ..._random import NoiseSource
from ..._types import BoolArray, CodeArray, FloatArray, IntArray
from ...hierarchy import project_to_simplex
from ...mechanisms import discrete_laplace
from ...rows import CodedRows, part_of
from ..grid import even_edges
from .rows import Points

__all__ = ["BINS", "Binned", "Margins", "measure_margins"]

# Bins of an axis at first.
BINS = 64
# This share of a margin is spread evenly, so that cuts and positions do not depend on its noise
# alone.
_EVEN = 0.02
# The number of times that axes are measured again: three reach data 10,000 times narrower than the
# bounds.
_MOST_TIMES = 4
# Each time for this part of the budget of the first time, or of all that may be spent as long as
# that is less than so many records per unit of noise, or these at least.
_AGAIN = Fraction(1, 2)
_AGAIN_OF_ALL = Fraction(1, 8)
_LEAST_AGAIN, _MOST_AGAIN = 60, 80
import os
# More records per unit of noise cannot make a range much clearer.
_ENOUGH = int(os.environ.get('EN',300))
# Chance that a range ends too early on one side: if it shall be divided; of the narrower range that
# a grid may divide; and of one that is likely.
import os
_SURE, _ABOUT, _LIKELY = float(os.environ.get('SU',0.05)), float(os.environ.get('AB',0.25)), 0.3
WB=int(os.environ.get('WB',1));WT=int(os.environ.get('WT',1))
# A range is divided again if it has at most this share of the bins, and measured again if that may
# be.
_NARROW = 0.5
_MAYBE = float(os.environ.get('MB', .6))
# Records in an axis of so many bins: the share of its bins that hold none or few, inside a range and
# beyond it, and the mean of the few, as a share of all records.
_EMPTY_INSIDE, _EMPTY_BEYOND = [float(x) for x in os.environ.get('EI','.5,.95').split(',')], 0.98
_FEW = 1/float(os.environ.get('OM',200))
# Bins inside hold their share, or so many times as much.
_CROWDED = 4.0
# Records per unit of noise in bins that show how much of a range is filled.
_FULL = 2.0
_STANDS_OUT = 6.0
import os
_LOOK = int(os.environ.get('LO',60))
_NEAR = 0.001
F0 = float(os.environ.get('F0', .01)); LL = int(os.environ.get('LL', 60))
_FAR = float(os.environ.get('FA',.03))
# Beyond the range bins grow: this many, then as many of twice the width, and so on. Where no
# records stand out they get so little mass that no box of the range is cut for it.
_OCTAVE = 16
_NOTHING = 1e-6


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
    def of(cls, points: Points, shape: Sequence[int]) -> Binned:
        """Even bins of points in memory; in an engine, distinct rows of bins and their counts."""
        sides = [min(size, BINS) for size in shape]
        edges = [even_edges(size, side) for size, side in zip(shape, sides, strict=True)]
        if isinstance(points, CodedRows):
            return cls(*points.parts(sides), edges)
        bins = np.empty(points.shape, dtype=np.int32, order="F")
        for axis, (size, side) in enumerate(zip(shape, sides, strict=True)):
            bins[:, axis] = part_of(points[:, axis].astype(np.int64), size, side)
        return cls(bins, None, edges)

    def cut_again(self, points: Points, edges: list[IntArray]) -> Binned:
        """The same points in other bins; axes keep theirs where the edges are the same array."""
        if isinstance(points, CodedRows):
            return Binned(*points.parts(edges), edges)
        bins = np.empty(points.shape, dtype=np.int32, order="F")
        for axis, edge in enumerate(edges):
            if edge is self.edges[axis]:
                bins[:, axis] = self.bins[:, axis]
            else:
                bin_of_code = np.repeat(np.arange(len(edge) - 1, dtype=np.int32), np.diff(edge))
                bins[:, axis] = bin_of_code[points[:, axis]]
        return Binned(bins, None, edges)

    def tally(self, labels: NDArray, rows: IntArray | None, size: int) -> IntArray:
        """Exact number of points by label, of some of the rows: private."""
        counts = self.counts
        if counts is not None and rows is not None:
            counts = counts[rows]
        return integer_sums(labels, size, counts)

    def inside(self, box: IntArray) -> BoolArray:
        """Whether each row is in a box of bins, (d, 2): private."""
        low, high = box.T
        found: BoolArray = ((self.bins >= low) & (self.bins < high)).all(axis=1)
        return found

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
    filled : ndarray of float64, shape (d,)
        How much of the range is filled: 0 if the records are in one bin, 1 if in all evenly.
    loose : float
        Volume of the ranges in multiples of what they would be if their ends were certain.
    near : bool
        Whether few records are beyond the ranges.
    """

    edges: list[IntArray]
    masses: list[FloatArray]
    cores: IntArray
    filled: FloatArray
    loose: float
    near: bool

    @property
    def ranges(self) -> IntArray:
        """First code of the range that holds nearly all records, and its end, (d, 2)."""
        return np.array([edge[core] for edge, core in zip(self.edges, self.cores, strict=True)])

    @classmethod
    def even(cls, edges: list[IntArray]) -> Margins:
        """Records spread evenly along each axis: the assumption before anything is measured."""
        whole = np.array([[0, len(edge) - 1] for edge in edges])
        even = [np.diff(edge) / edge[-1] for edge in edges]
        return cls(edges, even, whole, np.ones(len(edges)), 1.0, True)

    def quantiles(self, axis: int, lower: IntArray, upper: IntArray, u: FloatArray) -> FloatArray:
        """Positions in codes, at the fraction u of the mass between two edges of an axis."""
        places = self.edges[axis] - 0.5
        levels = running_sums(self.masses[axis])
        low, high = (np.interp(end - 0.5, places, levels) for end in (lower, upper))
        found: FloatArray = np.interp(low + u * (high - low), levels, places)
        return found


@dataclass
class _Axis:
    """Released bins of an axis: those from ``first`` to ``last`` divide the range evenly.

    Attributes
    ----------
    edges : ndarray of int64
    counts : ndarray of float64
        Noisy.
    scales : ndarray of float64
        Of the noise of each count.
    first, last : int
    """

    edges: IntArray
    counts: FloatArray
    scales: FloatArray
    first: int
    last: int

    def likely(self, n: int, doubt: float) -> tuple[int, int]:
        """First bin and end of the range of all records; each end is too early with this chance."""
        low, high = _likely_range(self.counts[self.first : self.last], self.scale, n, doubt)
        return self.first + low, self.first + high

    @property
    def scale(self) -> float:
        """Of the noise of a bin of the range."""
        return float(self.scales[self.first])

    @property
    def narrow(self) -> bool:
        """Whether the range is only a part of the axis."""
        return self.last - self.first < len(self.counts)

    def bulk(self, n: int) -> tuple[int, int]:
        """First bin and end of the narrower range that probably holds nearly all records."""
        if not self.narrow:
            return self.first, self.last
        low, high = self.likely(n, _ABOUT)
        return max(low - WT, self.first), min(high + WT, self.last)

    def loose(self, n: int, bulk: tuple[int, int]) -> float:
        """Length of the bulk in lengths of what it would be if its ends were certain."""
        if not self.narrow:
            return 1.0
        low, high = self.likely(n, 0.5)
        return (bulk[1] - bulk[0]) / max(high - low, 1)

    def again(self, n: int, units: float) -> _Axis | None:
        """The axis with the bins to measure next, its own or those of a range; None if enough.

        ``units`` is the number of records per unit of noise that it will be measured with.
        """
        bins = self.last - self.first
        low, high = self.likely(n, _SURE)
        low, high = max(low - WB, self.first), min(high + WB, self.last)
        if high - low <= _NARROW * bins:
            if np.diff(self.edges[low : high + 1]).min() == 1:
                return None
            # As many bins for the records as an axis has whose bounds are tight.
            first, last = self.likely(n, 0.5)
            parts = BINS * (high - low) / max(last - first, 1) if units >= 2 * BINS else BINS
            return self._divided(low, high, min(int(parts), 2 * BINS))
        low, high = self.likely(n, _LIKELY)
        doubtful = not self.narrow and high - low <= _MAYBE * bins and n < _ENOUGH * self.scale
        return self if doubtful else None

    def measured(self, exact: IntArray, epsilon: Fraction, source: NoiseSource) -> None:
        """Add noisy counts of the range to what is known of it, weighted by precision.

        Privacy. A record is in one bin of the axis: the counts cost ``epsilon``.
        """
        inner = slice(self.first, self.last)
        noisy = discrete_laplace(exact[inner], epsilon, random_state=source)
        old = self.scales[inner] ** -2.0
        new = float(epsilon) ** 2
        self.counts[inner] = (old * self.counts[inner] + new * noisy) / (old + new)
        self.scales[inner] = (old + new) ** -0.5

    def _divided(self, low: int, high: int, parts: int) -> _Axis:
        """The bins from ``low`` to ``high`` as a range with bins of its own, not yet measured."""
        start, stop = self.edges[[low, high]]
        parts = min(parts, int(stop - start))
        inner = start + even_edges(int(stop - start), parts)

        def around(values: FloatArray) -> FloatArray:
            return np.concatenate([values[:low], np.zeros(parts), values[high:]])

        edges = np.concatenate([self.edges[:low], inner, self.edges[high + 1 :]])
        scales = around(self.scales)
        scales[low : low + parts] = np.inf
        return _Axis(edges, around(self.counts), scales, low, low + parts)

    def filled(self, n: int, first: int, last: int) -> float:
        """How much of the range is filled: 0 if the records are in one bin, 1 if in all evenly.

        By the chance of two records to meet in a bin, without that of the noise. Bins are put
        together until they have some records per unit of noise on average.
        """
        counts, scale = self.counts[first:last], self.scale
        bins = int(np.clip(n / scale / _FULL, 1, len(counts)))
        sums = np.diff(running_sums(counts)[even_edges(len(counts), bins)])
        met = float((sums**2).sum()) - 2 * scale**2 * len(counts)
        if bins == 1 or met * bins <= n**2:
            return 1.0
        return min(float(max(n**2 / met - 1, 0.0)) / (bins - 1), 1.0)

    def finished(self, n: int) -> tuple[IntArray, FloatArray, IntArray]:
        """Edges, shares of the records between them, and first and last bin of the range.

        Beyond the range bins grow with the distance, and only records that stand out have a share:
        noise far away would decide where boxes are cut, and where their records are.
        """
        inner = self.edges[self.first : self.last + 1]
        low, high, size = int(inner[0]), int(inner[-1]), int(self.edges[-1])
        width = max((high - low) // _OCTAVE, 1)
        growing = width * np.cumsum(np.repeat(2 ** np.arange(size.bit_length()), _OCTAVE))
        before, after = (low - growing)[::-1], high + growing
        parts = [[0] * (low > 0), before[before > 0], inner, after[after < size]]
        edges = np.concatenate([*parts, [size] * (high < size)]).astype(np.int64)
        first = int(np.searchsorted(edges, low))
        last = first + len(inner) - 1

        loud = self._standing_out()
        left = max(n - loud.sum(), 0.0)
        spread = np.diff(np.interp(edges, self.edges, running_sums(loud)))
        # Each doubling of the distance has a quarter of the mass of the one before.
        middle = (edges[1:] + edges[:-1]) / 2
        distance = 1 + np.maximum(low - middle, middle - high) / (high - low)
        mass = np.maximum(spread, 0.0)
        beyond = np.concatenate([np.arange(first), np.arange(last, len(mass))])
        mass[beyond] += (
            _NOTHING * n * (np.diff(edges) / (high - low))[beyond] / distance[beyond] ** 3
        )
        widths = np.diff(inner)
        within = project_to_simplex(self.counts[self.first : self.last], left)
        mass[first:last] = (1 - _EVEN) * within + _EVEN * left * widths / widths.sum()
        return edges, mass / mass.sum(), np.array([first, last])

    def _standing_out(self) -> FloatArray:
        """Counts of the bins beyond the range, in blocks that grow, zero where a block is noise."""
        found = np.zeros(len(self.counts))
        for side in (np.arange(self.first - 1, -1, -1), np.arange(self.last, len(found))):
            for block in np.split(side, 2 ** np.arange(len(side).bit_length()) - 1):
                if len(block):
                    total = self.counts[block].sum()
                    if total > _STANDS_OUT * self.scales[block].max() * math.sqrt(len(block)):
                        found[block] = total / len(block)
        return found


def measure_margins(
    points: Points, binned: Binned, n: int, epsilon: Fraction, most: Fraction, source: NoiseSource, grid: bool = False
) -> tuple[Margins, Binned, Fraction]:
    """Noisy histogram of every axis, and of the ranges that the records are in.

    Parameters
    ----------
    points, binned
        Private.
    n : int
        Public or released number of records.
    epsilon : Fraction
        Of the first histograms together.
    most : Fraction
        Bound of all that is spent, at least ``epsilon``.
    source : NoiseSource

    Returns
    -------
    margins : Margins
    binned : Binned
        The points in the bins of the margins.
    spent : Fraction
        All that was spent: ``epsilon`` if no range is narrow, nor may be.
    """
    global _SURE, _ABOUT, WB, WT
    g = (lambda k, v: float(os.environ.get(k + ('G' if grid else 'T'), v)))
    _SURE, _ABOUT, WB, WT = g('SU', .2 if grid else .05), g('AB', .35 if grid else .1), int(g('WB', 0 if grid else 1)), int(g('WT', 0 if grid else 1))
    d = len(binned.edges)
    share, spent = epsilon / d, epsilon
    axes = []
    for axis, edge in enumerate(binned.edges):
        bins = len(edge) - 1
        axes.append(_Axis(edge, np.zeros(bins), np.full(bins, np.inf), 0, bins))
        axes[-1].measured(binned.margin(axis), share, source)
    again = min(max(most / d * _AGAIN_OF_ALL, Fraction(_LEAST_AGAIN, n)), Fraction(_MOST_AGAIN, n))
    share = max(share * _AGAIN, again)
    for _ in range(_MOST_TIMES):
        tried = {axis: each.again(n, float(share * n)) for axis, each in enumerate(axes)}
        narrow = {axis: each for axis, each in tried.items() if each is not None}
        if not narrow or spent + share * len(narrow) > most:
            break
        edges = [narrow[axis].edges if axis in narrow else e for axis, e in enumerate(binned.edges)]
        binned = binned.cut_again(points, edges)
        for axis, each in narrow.items():
            each.measured(binned.margin(axis), share, source)
            axes[axis] = each
            spent += share
    near = True
    bulks = [each.bulk(n) for each in axes]
    loose = [each.loose(n, bulk) for each, bulk in zip(axes, bulks, strict=True)]
    if any(each.narrow for each in axes):
        look = min(max(most / 20, Fraction(LL, n)), Fraction(300, n), most / 4)
        exact = binned.tally((~binned.inside(np.array(bulks))).astype(np.int64), None, 2)[1:]
        near = float(discrete_laplace(exact, look, random_state=source)[0]) < F0 * n + 1.5 / float(look)
        spent += look
    filled = np.array([each.filled(n, *bulk) for each, bulk in zip(axes, bulks, strict=True)])
    ended = [each.finished(n) for each in axes]
    if any(each.narrow for each in axes):
        kept = zip(binned.edges, ended, strict=True)
        edges = [old if np.array_equal(old, new[0]) else new[0] for old, new in kept]
        binned = binned.cut_again(points, edges)
    masses = [mass for _, mass, _ in ended]
    cores = np.array([core for *_, core in ended])
    beyond = max(1.0 - float(mass[slice(*core)].sum()) for mass, core in zip(masses, cores, strict=True))
    if near:
        cores = np.array(bulks) + (cores[:, :1] - [[each.first] for each in axes])
    return Margins(binned.edges, masses, cores, filled, math.prod(loose), near and beyond < _NEAR), binned, spent


def _likely_range(counts: FloatArray, scale: float, n: int, doubt: float) -> tuple[int, int]:
    """Bins between which the records are, by Bayes' rule: each end is too early with a chance.

    A bin beyond the range holds none or few records, one inside its share, much more, or none. All
    lengths of a range are equally likely on a logarithmic scale, and all places for a length.

    Parameters
    ----------
    counts : ndarray of float64, shape (b,)
        With Laplace noise.
    scale : float
        Of the noise.
    n : int
    doubt : float
        Chance that records are before the first bin, and that they are behind the last one.
    """
    size = len(counts)
    lengths = np.arange(1, size + 1)
    none = _noisy_density(counts, scale, np.array(0.0))
    few = _noisy_density(counts, scale, np.array(_FEW * n))
    beyond = np.log(_EMPTY_BEYOND * none + (1 - _EMPTY_BEYOND) * few + np.finfo(float).tiny)
    low, length = np.nonzero(np.add.outer(np.arange(size), lengths) <= size)
    high = low + length + 1
    chances = []
    for empty in _EMPTY_INSIDE:
        some = _noisy_density(counts, scale, np.minimum(n / (1 - empty) / lengths[:, None], n))
        inside = np.log(empty * none + (1 - empty) * some + np.finfo(float).tiny)
        levels = np.zeros((size, size + 1))
        levels[:, 1:] = np.cumsum(inside - beyond, axis=1)
        chances.append(levels[length, high] - levels[length, low])
    chance = np.logaddexp(*chances) - np.log(length + 1.0) - np.log(size - length)
    chance = np.exp(chance - chance.max())
    chance /= chance.sum()
    begun = running_sums(np.bincount(low, chance, minlength=size))[1:]
    ended = running_sums(np.bincount(high, chance, minlength=size + 1))[1:]
    return int(np.searchsorted(begun, doubt)), int(np.searchsorted(ended, 1 - doubt))


def _noisy_density(counts: FloatArray, scale: float, mean: FloatArray) -> FloatArray:
    """Density of numbers with an exponential distribution of this mean plus Laplace noise."""
    y = counts / scale
    noise = np.exp(-np.abs(y)) / 2
    if not mean.any():
        return noise
    rate = scale / mean
    # Near 1 the formula divides zero by zero.
    rate = np.where(np.abs(rate - 1) < 1e-6, 1 + 1e-5, rate)
    above = np.maximum(y, 0.0)
    fall, drop = np.exp(-rate * above), np.exp(-above)
    right = (fall - drop) / (1 - rate) + fall / (1 + rate)
    density: FloatArray = rate / 2 * np.where(y < 0, 2 * noise / (1 + rate), right)
    return density
