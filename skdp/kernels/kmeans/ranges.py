"""Where the records are along each axis: noisy histograms, cut finer where all records are.

Declared bounds are often far wider than the data. All records then lie in a few of the even bins of
an axis. Bayes' rule tells from the noisy counts where these begin and end, and how sure that is.
If it is sure that the range is narrow, it is divided again, and again; if it is only likely, the
same bins are measured once more. Bins beyond a range stay as wide as they were, so that nothing is
clipped.

Privacy (neighbours add or remove one record). A record is in one bin of each axis, so a histogram
of some of the d axes at ``epsilon / d`` each costs that number of times ``epsilon / d``. Whether
and where an axis is measured again is computed from its earlier noisy counts and the number of
records, which is public or released. At the end one count, of the records beyond any of the ranges,
has sensitivity 1. Costs add up, and what was spent is returned exactly.
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

__all__ = ["DIM", "MOST_FLAT", "Binned", "Margins", "measure_margins"]

# Bins of an axis at first.
_BINS = 64
# Up to this many dimensions data are flat: cells are small, and one round is enough.
MOST_FLAT = 3
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
# At most for this part of what an axis may spend, before a grid and before a tree; and one count of
# the records beyond at most for this part of all.
_MOST_GRID, _MOST_TREE = Fraction(1, 2), Fraction(1, 3)
_MOST_OF_LOOK = Fraction(3, 10)
# Chance that a range ends too early on one side: of a range that is divided, and of the final one.
# A tree has boxes for what is beyond; a grid is worse for every empty cell.
_DIVIDED_TREE, _FINAL_TREE = 0.1, 0.05
_DIVIDED_GRID, _FINAL_GRID = 0.1, 0.3
# A range is divided if it has at most this share of the bins. The axis is measured again if it may
# have so few, with this chance on either side, unless there are so many records per unit of noise.
_NARROW = 0.5
_MAYBE, _LIKELY = 0.4, 0.3
_ENOUGH = 300
# And where a grid may be better than a tree, unless there are so many, if less than this part of
# the axis seems to be filled: the choice depends on it.
_TELLS = 60
_HOLLOW = 0.35
# A range has bins without records: in one case this share of them, in the other nearly all.
_EMPTY = (0.5, 0.95)
# Beyond it few bins have any: so many, and this share of all records on average.
_FILLED_BEYOND = 0.02
_FEW = 0.005
# Below this many records per unit of noise nothing is known.
DIM = 10
# The records beyond all final ranges are counted with this part of all that may be spent, or these
# records per unit of noise at least and at most. They are few if they are not more than this share
# and as many units of noise.
_LOOK_OF_ALL = Fraction(1, 20)
_LEAST_LOOK, _MOST_LOOK = 80, 300
_FAR, _FAR_BY_NOISE = 0.005, 2.5
# A tree in flat data loses little with wide ranges, but much with outliers beyond narrow ones.
_FAR_BY_NOISE_TREE = 1.0
# And if no more than this share stands out in blocks beyond the range of an axis.
_NEAR = 0.001
_STANDS_OUT = 6.0
# Records per unit of noise in bins that show how much of a range is filled.
_FULL = 2.0
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
        sides = [min(size, _BINS) for size in shape]
        edges = [even_edges(size, side) for size, side in zip(shape, sides, strict=True)]
        if isinstance(points, CodedRows):
            return cls(*points.parts(sides), edges)
        bins = np.empty(points.shape, dtype=np.int32, order="F")
        for axis, (size, side) in enumerate(zip(shape, sides, strict=True)):
            bins[:, axis] = part_of(points[:, axis].astype(np.int64), size, side)
        return cls(bins, None, edges)

    def cut_again(self, points: Points, edges: list[IntArray]) -> Binned:
        """The same points in other bins; axes keep theirs where the edges are the same array."""
        if all(edge is old for edge, old in zip(edges, self.edges, strict=True)):
            return self
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

    @property
    def scale(self) -> float:
        """Of the noise of a bin of the range."""
        return float(self.scales[self.first])

    @property
    def narrow(self) -> bool:
        """Whether the range is only a part of the axis."""
        return self.last - self.first < len(self.counts)

    def likely(self, n: int, *doubts: float) -> list[tuple[int, int]]:
        """First bins and ends of ranges of all records: too early on a side with these chances."""
        if n < DIM * self.scale:
            return [(self.first, self.last)] * len(doubts)
        begun, ended = _chances_of_ends(self.counts[self.first : self.last], self.scale, n)
        return [
            (
                self.first + int(np.searchsorted(begun, doubt)),
                self.first + int(np.searchsorted(ended, 1 - doubt)) + 1,
            )
            for doubt in doubts
        ]

    def again(self, n: int, units: float, grid: bool) -> _Axis | None:
        """The axis with the bins to measure next, its own or those of a range; None if enough.

        Parameters
        ----------
        n : int
        units : float
            Records per unit of noise of the next measurement.
        grid : bool
            Whether the ranges should be as narrow as a grid needs them.
        """
        doubt = _DIVIDED_GRID if grid else _DIVIDED_TREE
        (low, high), middle, maybe = self.likely(n, doubt, 0.5, _LIKELY)
        bins = self.last - self.first
        if not grid:
            low, high = max(low - 1, self.first), min(high + 1, self.last)
        if high - low <= _NARROW * bins:
            if np.diff(self.edges[low : high + 1]).min() == 1:
                return None
            parts = _BINS
            if units >= 2 * _BINS:
                # As many bins for the records as an axis has whose bounds are tight.
                parts = min(_BINS * (high - low) // max(middle[1] - middle[0], 1), 2 * _BINS)
            return self._divided(low, high, parts)
        if self.narrow:
            return None
        few = maybe[1] - maybe[0] <= _MAYBE * bins and n < _ENOUGH * self.scale
        hollow = (
            grid and n < _TELLS * self.scale and self.filled(n, (self.first, self.last)) < _HOLLOW
        )
        return self if few or hollow else None

    def final(self, n: int, doubt: float) -> tuple[tuple[int, int], float]:
        """First bin and end of the final range, and its length in those of the most likely one."""
        if not self.narrow:
            return (self.first, self.last), 1.0
        (low, high), middle = self.likely(n, doubt, 0.5)
        return (low, high), (high - low) / max(middle[1] - middle[0], 1)

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

    def filled(self, n: int, ends: tuple[int, int], loose: float = 1.0) -> float:
        """How much of the range is filled: 0 if the records are in one bin, 1 if in all evenly.

        By the chance of two records to meet in a bin, without that of the noise. Bins are put
        together until they have some records per unit of noise on average.
        """
        counts, scale = self.counts[slice(*ends)], self.scale
        bins = int(np.clip(n / scale / _FULL, 1, len(counts)))
        sums = np.diff(running_sums(counts)[even_edges(len(counts), bins)])
        met = float((sums**2).sum()) - 2 * scale**2 * len(counts)
        if bins == 1 or met * bins <= n**2:
            return 1.0
        return min(loose * float(max(n**2 / met - 1, 0.0)) / (bins - 1), 1.0)

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
    points: Points,
    binned: Binned,
    n: int,
    epsilon: Fraction,
    most: Fraction,
    grid: bool,
    source: NoiseSource,
) -> tuple[Margins, Binned, Fraction]:
    """Noisy histogram of every axis, and of the ranges that the records are in.

    Privacy. Histograms add up as the module says. How many records are beyond the final ranges is
    one count of sensitivity 1, and costs its own part.

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
    grid : bool
        Whether the ranges should be as narrow as a grid needs them. Public or released.
    source : NoiseSource

    Returns
    -------
    margins : Margins
    binned : Binned
        The points in the bins of the margins.
    spent : Fraction
        All that was spent: ``epsilon`` if no range is narrow, nor may be.
    """
    d = len(binned.edges)
    share, spent = epsilon / d, epsilon
    axes = []
    for axis, edge in enumerate(binned.edges):
        bins = len(edge) - 1
        axes.append(_Axis(edge, np.zeros(bins), np.full(bins, np.inf), 0, bins))
        axes[-1].measured(binned.margin(axis), share, source)
    look = min(max(most * _LOOK_OF_ALL, Fraction(_LEAST_LOOK, n)), Fraction(_MOST_LOOK, n))
    look = min(look, most * _MOST_OF_LOOK)
    again = min(max(most / d * _AGAIN_OF_ALL, Fraction(_LEAST_AGAIN, n)), Fraction(_MOST_AGAIN, n))
    share = max(share * _AGAIN, min(again, most / d * (_MOST_GRID if grid else _MOST_TREE)))
    for _ in range(_MOST_TIMES):
        tried = {axis: each.again(n, float(share * n), grid) for axis, each in enumerate(axes)}
        unclear = {axis: each for axis, each in tried.items() if each is not None}
        if not unclear or spent + share * len(unclear) + look > most:
            break
        binned = binned.cut_again(points, [(tried[a] or each).edges for a, each in enumerate(axes)])
        for axis, each in unclear.items():
            each.measured(binned.margin(axis), share, source)
            axes[axis] = each
            spent += share
    found = [each.final(n, _FINAL_GRID if grid else _FINAL_TREE) for each in axes]
    finals = np.array([ends for ends, _ in found])
    loose = math.prod(length for _, length in found)
    few = True
    if any(each.narrow for each in axes):
        far = binned.tally((~binned.inside(finals)).astype(np.int64), None, 2)[1:]
        noisy = int(discrete_laplace(far, look, random_state=source)[0])
        doubt = _FAR_BY_NOISE_TREE if d <= MOST_FLAT and not grid else _FAR_BY_NOISE
        few = noisy < _FAR * n + doubt / float(look)
        spent += look
    filled = np.array([each.filled(n, *ends) for each, ends in zip(axes, found, strict=True)])
    ended = [each.finished(n) for each in axes]
    edges = [
        old if np.array_equal(old, new) else new
        for old, (new, *_) in zip(binned.edges, ended, strict=True)
    ]
    binned = binned.cut_again(points, edges)
    masses, cores = [mass for _, mass, _ in ended], np.array([core for *_, core in ended])
    inside = [mass[slice(*core)].sum() for mass, core in zip(masses, cores, strict=True)]
    near = few and 1 - float(min(inside)) < _NEAR
    if few:
        cores = finals + cores[:, :1] - np.array([[each.first] for each in axes])
    return Margins(edges, masses, cores, filled, loose, near), binned, spent


def _chances_of_ends(counts: FloatArray, scale: float, n: int) -> tuple[FloatArray, FloatArray]:
    """Chance that the range of all records has begun in each bin, and has ended, by Bayes' rule.

    Of all lengths the logarithm is equally likely, and so are all places. A bin in a range is empty
    with one of two chances, unless it is the first or last one; else its records are exponential,
    with n as the sum of all. A bin beyond is empty, or has few.

    Parameters
    ----------
    counts : ndarray of float64, shape (b,)
        With Laplace noise.
    scale : float
        Of the noise.
    n : int

    Returns
    -------
    begun, ended : ndarray of float64, shape (b,)
    """
    size = len(counts)
    lengths = np.arange(1, size + 1)
    noise = _density(counts, scale, None)
    few = _density(counts, scale, np.array(_FEW * n))
    beyond = _logarithm((1 - _FILLED_BEYOND) * noise + _FILLED_BEYOND * few)
    low, length = np.nonzero(np.add.outer(np.arange(size), lengths) <= size)
    high = low + lengths[length]
    chances = []
    for empty in _EMPTY:
        means = np.minimum(n / ((1 - empty) * lengths[:, None]), n)
        held = _density(counts, scale, means)
        inside = _logarithm(empty * noise + (1 - empty) * held)
        levels = np.zeros((size, size + 1))
        levels[:, 1:] = np.cumsum(inside - beyond, axis=1)
        # The first and the last bin are not empty.
        ends = _logarithm((1 - empty) * held) - inside
        both = ends[length, low] + np.where(length > 0, ends[length, high - 1], 0.0)
        chances.append(levels[length, high] - levels[length, low] + both)
    places = size + 1 - lengths
    logarithms = np.logaddexp(*chances) - np.log(lengths * places)[length]
    chance = np.exp(logarithms - logarithms.max())
    chance /= chance.sum()
    begun = np.bincount(low, chance, minlength=size).cumsum().astype(np.float64)
    ended = np.bincount(high - 1, chance, minlength=size).cumsum().astype(np.float64)
    return begun, ended


def _logarithm(values: FloatArray) -> FloatArray:
    """Natural logarithm, finite for zero."""
    found: FloatArray = np.log(np.maximum(values, np.finfo(float).tiny))
    return found


def _density(counts: FloatArray, scale: float, mean: FloatArray | None) -> FloatArray:
    """Density of Laplace noise, plus a number with an exponential distribution of this mean."""
    y = counts / scale
    noise: FloatArray = np.exp(-np.abs(y)) / 2
    if mean is None:
        return noise
    rate = scale / mean
    # At 1 the formula divides zero by zero.
    rate = np.where(np.abs(rate - 1) < 1e-6, 1 + 1e-5, rate)
    fall, drop = np.exp(-rate * np.maximum(y, 0.0)), np.exp(-np.maximum(y, 0.0))
    above = (fall - drop) / (1 - rate) + fall / (1 + rate)
    density: FloatArray = rate / 2 * np.where(y < 0, 2 * noise / (1 + rate), above)
    return density
