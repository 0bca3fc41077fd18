"""Where the records are along each axis: noisy histograms, cut finer where all records are.

Declared bounds are often far wider than the data. All records then lie in a few of the even bins of
an axis. The range of these bins is divided again, and again, as long as the records still fill
only a part of it; bins beyond a range stay as wide as they were, so that nothing is clipped.

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
from ..._types import CodeArray, FloatArray, IntArray
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
# A range is divided again if the records are in at most this share of its bins: at first, where
# bounds that fit a long tail should not count as wide, and later.
_NARROW = 0.125
_NARROW_RANGE = 0.25
# The number of times: three reach data 10,000 times narrower than the bounds.
_MOST_TIMES = 3
# Every other histogram gets this part of the budget of the first one, or of all that may be spent
# as long as that is less than so many records per unit of noise, or these at least.
_AGAIN = Fraction(1, 2)
_AGAIN_OF_ALL = Fraction(1, 8)
_LEAST_AGAIN, _MOST_AGAIN = 30, 60
# An axis that may be narrow, as far as its noise tells, is measured more precisely, unless it has
# this many records per unit of noise: by this part of all that may be spent, and so many at least.
_SURE = 60
_CLOSER = Fraction(1, 4)
_LEAST_CLOSER = 50
# Below this many it is not.
_DIM = 20
# How many standard deviations of its noise a range may lack of all records.
_MAY_LACK = 2.5
# Records per unit of noise in bins that show how much of a range is filled.
_FULL = 2.0
# Share of the records that may be beyond a range.
_TAIL = 0.005
_TOLERANCE = 1.5
# Nor unless there are this many records for each unit of noise of a bin, at first and later.
_VISIBLE = 50
_VISIBLE_AGAIN = 25
# A range gets this part of its length on both sides, and so much more for each unit of noise in the
# share of a record.
_WIDER = 0.125
_WIDER_BY_NOISE = 15.0
# Bins beside a range belong to it if they hold this many scales of their noise.
_CLEAR = 1.5
# A range is not narrowed unless its blocks that stand out hold this share of all records.
_MAJORITY = 0.7
_STANDS_OUT = 6.0
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
    """

    edges: list[IntArray]
    masses: list[FloatArray]
    cores: IntArray
    filled: FloatArray

    @property
    def ranges(self) -> IntArray:
        """First code of the range that holds nearly all records, and its end, (d, 2)."""
        return np.array([edge[core] for edge, core in zip(self.edges, self.cores, strict=True)])

    @classmethod
    def even(cls, edges: list[IntArray]) -> Margins:
        """Records spread evenly along each axis: the assumption before anything is measured."""
        whole = np.array([[0, len(edge) - 1] for edge in edges])
        even = [np.diff(edge) / edge[-1] for edge in edges]
        return cls(edges, even, whole, np.ones(len(edges)))

    def beyond(self) -> float:
        """Largest share of the records beyond the range of an axis."""
        inside = [
            mass[slice(*core)].sum() for mass, core in zip(self.masses, self.cores, strict=True)
        ]
        return 1.0 - float(min(inside))

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

    ``loose`` is its length in lengths of what seemed to hold the records before it was widened.

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
    loose: float = 1.0

    def narrowed(self, n: int) -> _Axis | None:
        """The fewest bins of the range that hold nearly all records; None if they are not few.

        They are widened, and divided into bins of their own that are not yet measured.
        """
        counts, scale = self.counts[self.first : self.last], float(self.scales[self.first])
        whole = len(counts) == len(self.counts)
        if n < (_VISIBLE if whole else _VISIBLE_AGAIN) * scale:
            return None
        levels = running_sums(counts)
        # The noisy number of records may be too large.
        most = min(float(n), float((levels - np.minimum.accumulate(levels)).max()))
        if most < _MAJORITY * n:
            return None
        share = _NARROW if whole else _NARROW_RANGE
        noise = math.sqrt(len(counts) / 2) if whole else 0.0
        for length in range(1, int(share * len(counts)) + 1):
            sums = levels[length:] - levels[:-length]
            missing = scale * (_TOLERANCE * math.sqrt(length) + noise)
            if sums.max() >= (1 - _TAIL) * most - missing:
                low = int(sums.argmax())
                first, last = self._widened(levels, n, low, low + length)
                if np.diff(self.edges[first : last + 1]).min() == 1:
                    return None
                return self._divided(first, last, (last - first) / length)
        return None

    def may_be_narrow(self, n: int) -> bool:
        """Whether few bins may hold all records, but there is too much noise to be sure."""
        scale = float(self.scales.max())
        # One more by rounding of the share.
        if not (_DIM - 1) * scale < n < _SURE * scale:
            return False
        length = max(int(_NARROW * len(self.counts)), 1)
        levels = running_sums(self.counts)
        most = float((levels[length:] - levels[:-length]).max())
        return most >= n - _MAY_LACK * scale * math.sqrt(2 * length)

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

    def _widened(self, levels: FloatArray, n: int, low: int, high: int) -> tuple[int, int]:
        """A range with the bins beside it as long as they seem to hold records, and some more."""
        wider = _WIDER + _WIDER_BY_NOISE * float(self.scales[self.first]) / n
        step, last = 1 + int(wider * (high - low)), len(levels) - 1
        noise = _CLEAR * float(self.scales[self.first]) * math.sqrt(step)
        while levels[low] - levels[max(low - step, 0)] > noise:
            low = max(low - step, 0)
        while levels[min(high + step, last)] - levels[high] > noise:
            high = min(high + step, last)
        return self.first + max(low - step, 0), self.first + min(high + step, last)

    def _divided(self, low: int, high: int, loose: float) -> _Axis:
        """The bins from ``low`` to ``high`` as a range with bins of its own, not yet measured."""
        start, stop = self.edges[[low, high]]
        # As many bins for the records as an axis has whose bounds are tight.
        parts = int(min(BINS * (high - low) // max(high - low - 2, 1), 2 * BINS, stop - start))
        inner = start + even_edges(int(stop - start), parts)

        def around(values: FloatArray) -> FloatArray:
            return np.concatenate([values[:low], np.zeros(parts), values[high:]])

        edges = np.concatenate([self.edges[:low], inner, self.edges[high + 1 :]])
        scales = around(self.scales)
        scales[low : low + parts] = np.inf
        return _Axis(edges, around(self.counts), scales, low, low + parts, loose)

    def filled(self, n: int) -> float:
        """How much of the range is filled: 0 if the records are in one bin, 1 if in all evenly.

        By the chance of two records to meet in a bin, without that of the noise. Bins are put
        together until they have some records per unit of noise on average.
        """
        counts, scale = self.counts[self.first : self.last], float(self.scales[self.first])
        bins = int(np.clip(n / scale / _FULL, 1, len(counts)))
        sums = np.diff(running_sums(counts)[even_edges(len(counts), bins)])
        met = float((sums**2).sum()) - 2 * scale**2 * len(counts)
        if bins == 1 or met * bins <= n**2:
            return 1.0
        return min(self.loose * float(max(n**2 / met - 1, 0.0)) / (bins - 1), 1.0)

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
    points: Points, binned: Binned, n: int, epsilon: Fraction, most: Fraction, source: NoiseSource
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
    d = len(binned.edges)
    share, spent = epsilon / d, epsilon
    axes = []
    for axis, edge in enumerate(binned.edges):
        bins = len(edge) - 1
        axes.append(_Axis(edge, np.zeros(bins), np.full(bins, np.inf), 0, bins))
        axes[-1].measured(binned.margin(axis), share, source)
    closer = min(max(most / d * _CLOSER, Fraction(_LEAST_CLOSER, n)), Fraction(_SURE, n))
    doubtful = [axis for axis, each in enumerate(axes) if each.may_be_narrow(n)]
    if spent + closer * len(doubtful) <= most:
        for axis in doubtful:
            axes[axis].measured(binned.margin(axis), closer, source)
            spent += closer
    again = min(max(most / d * _AGAIN_OF_ALL, Fraction(_LEAST_AGAIN, n)), Fraction(_MOST_AGAIN, n))
    share = max(share * _AGAIN, again)
    for _ in range(_MOST_TIMES):
        tried = {axis: each.narrowed(n) for axis, each in enumerate(axes)}
        narrow = {axis: each for axis, each in tried.items() if each is not None}
        if not narrow or spent + share * len(narrow) > most:
            break
        edges = [narrow[axis].edges if axis in narrow else e for axis, e in enumerate(binned.edges)]
        binned = binned.cut_again(points, edges)
        for axis, each in narrow.items():
            each.measured(binned.margin(axis), share, source)
            axes[axis] = each
            spent += share
    filled = np.array([each.filled(n) for each in axes])
    ended = [each.finished(n) for each in axes]
    if any(each.last - each.first < len(each.counts) for each in axes):
        kept = zip(binned.edges, ended, strict=True)
        edges = [old if np.array_equal(old, new[0]) else new[0] for old, new in kept]
        binned = binned.cut_again(points, edges)
    cores = np.array([core for *_, core in ended])
    return Margins(binned.edges, [mass for _, mass, _ in ended], cores, filled), binned, spent
