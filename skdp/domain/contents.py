"""Contents of bins: which numbers a bin holds, how they are drawn, and their mean.

Draws, means and the shares of partly covered bins follow one law: within a bin, numbers are uniform
on the scale on which the bins were cut. `Spread` holds real numbers, `Points` those of a grid.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, IntArray, running_sums, snapped
from .bins import EvenBins, Grid, Linear, Scale, UnevenBins

# Sums over a grid on a scale are exact for this many points, and by Euler and Maclaurin beyond.
_EXACT_POINTS = 64
# Bins whose points are added at once.
_AT_ONCE = 4096


@dataclass(frozen=True)
class Spread:
    """Real numbers in bins, without those of ``special``.

    Attributes
    ----------
    bins : EvenBins or UnevenBins
    lower, upper : float
    scale : Scale
    special : ndarray of float64
        Numbers with a cell of their own.
    """

    bins: EvenBins | UnevenBins
    lower: float
    upper: float
    scale: Scale
    special: FloatArray

    def draw(
        self,
        codes: IntArray,
        rng: np.random.Generator,
        low: FloatArray | None = None,
        high: FloatArray | None = None,
    ) -> FloatArray:
        """A number of each bin, within closed bounds where the bin meets them."""
        share = rng.random(len(codes))
        if low is None and high is None and isinstance(self.bins, EvenBins):
            step = (self.upper - self.lower) / self.bins.bins
            values = self.lower + (codes + share) * step
            # Rounding can carry a draw at an edge into the next bin; its bin's middle is safe.
            astray = self.bins.encode(np.clip(values, self.lower, self.upper)) != codes
            if len(self.special):
                astray |= np.isin(values, self.special)
            values[astray] = self.lower + (codes[astray] + 0.5) * step
            return values
        left, right = self.span(codes)
        left, right = _within(left, right, low, high)
        start, stop = self.scale.forward(left), self.scale.forward(right)
        values = self.scale.inverse(start + share * (stop - start))
        values = np.clip(values, left, right)
        if len(self.special):
            # A draw that meets a special value would change its cell.
            hit = np.isin(values, self.special)
            up = np.minimum(np.nextafter(values, np.inf), right)
            values = np.where(hit, np.where(up > values, up, left), values)
        return values

    def span(self, codes: IntArray) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest number of each bin."""
        used, where = np.unique(codes, return_inverse=True)
        low, high = self._ends(used), np.nextafter(self._ends(used + 1), -np.inf)
        high[used + 1 == self.bins.bins] = self.upper
        for _ in range(len(self.special)):
            low = np.where(np.isin(low, self.special), np.nextafter(low, np.inf), low)
            high = np.where(np.isin(high, self.special), np.nextafter(high, -np.inf), high)
        where = where.reshape(-1)
        return low[where], high[where]

    def _ends(self, positions: IntArray) -> FloatArray:
        """Smallest float with each code; the formula of even bins rounds, so edges are near it."""
        edges = self.bins.edges_at(positions).astype(np.float64)
        if not isinstance(self.bins, EvenBins):
            return edges
        margin = (self.upper - self.lower) / self.bins.bins / 4
        low = _as_order(np.maximum(edges - margin, self.lower))
        high = _as_order(np.minimum(edges + margin, self.upper))
        # Invariant: the code of `high` is at least the position, that of `low` is below it.
        for _ in range(64):
            # The mean, rounded down, of integers whose sum may not fit.
            middle = (low & high) + ((low ^ high) >> 1)
            above = self.bins.encode(_from_order(middle)) >= positions
            high, low = np.where(above, middle, high), np.where(above, low, middle)
        found = _from_order(high)
        found[positions == 0] = self.lower
        return found

    def widths(self) -> FloatArray:
        """Width of each bin on the scale."""
        return np.diff(self.scale.forward(self.bins.edges_at(np.arange(self.bins.bins + 1))))

    def means(self) -> FloatArray:
        """Mean of the numbers of each bin."""
        edges = self.bins.edges_at(np.arange(self.bins.bins + 1)).astype(np.float64)
        return self.scale.mean(edges[:-1], edges[1:])

    def covered(self, low: float, high: float) -> tuple[FloatArray, FloatArray]:
        """Share of each bin that lies in [low, high], and that share times the mean there."""
        n = self.bins.bins
        start, stop = self.positions(np.clip([low, high], self.lower, self.upper)).tolist()
        if high < self.lower or low > self.upper:  # outside: covers nothing
            start, stop = 0.0, 0.0
        left = np.arange(n, dtype=np.float64)
        begin, end = np.maximum(left, start), np.minimum(left + 1.0, max(stop, start))
        share = np.clip(end - begin, 0.0, 1.0)
        if isinstance(self.bins, EvenBins):
            middle = self.lower + (begin + end) / 2 * ((self.upper - self.lower) / n)
        else:
            begin, end = np.clip(begin, left, left + 1), np.clip(end, left, left + 1)
            ends = (self._inside(left, part - left) for part in (begin, np.maximum(begin, end)))
            middle = self.scale.mean(*ends)
        return share, share * middle

    def positions(self, values: ArrayLike, *, closed: bool = True) -> FloatArray:
        """Numbers of the range in units of bins: bin and share of it that lies below.

        ``closed`` is for `Points`, where a number itself may count as below.
        """
        x = np.asarray(values, dtype=np.float64)
        if isinstance(self.bins, EvenBins):
            return snapped((x - self.lower) / (self.upper - self.lower) * self.bins.bins)
        code = self.bins.encode(x.reshape(-1).copy()).reshape(x.shape).astype(np.int64)
        left, right = (self.scale.forward(self.bins.edges_at(code + side)) for side in (0, 1))
        return snapped(code + (self.scale.forward(x) - left) / (right - left))

    def values_at(self, codes: IntArray, shares: FloatArray) -> FloatArray:
        """Numbers of bins below which the shares of the bin lie."""
        if isinstance(self.bins, EvenBins):
            low, high = self.bins.edges_at(codes), self.bins.edges_at(codes + 1)
            return low + shares * (high - low)
        return self._inside(codes, shares)

    def _inside(self, codes: NDArray[Any], shares: FloatArray) -> FloatArray:
        whole = codes.astype(np.int64)
        low, high = self.bins.edges_at(whole), self.bins.edges_at(whole + 1)
        start, stop = self.scale.forward(low), self.scale.forward(high)
        inside = np.clip(self.scale.inverse(start + shares * (stop - start)), low, high)
        return np.where(shares <= 0, low, np.where(shares >= 1, high, inside))


@dataclass(frozen=True)
class Points:
    """The numbers of a grid in bins, without those of ``special``.

    Attributes
    ----------
    bins : EvenBins or UnevenBins
    grid : Grid
    integer : bool
        Whether the grid is that of the integers, and the bins are bins of integers.
    scale : Scale
    special : ndarray of int64
        Places of the grid with a cell of their own, ascending.
    """

    bins: EvenBins | UnevenBins
    grid: Grid
    integer: bool
    scale: Scale
    special: IntArray

    @property
    def even(self) -> bool:
        """Whether all points of a bin are equally likely."""
        return isinstance(self.scale, Linear)

    def first(self, positions: IntArray) -> IntArray:
        """Place of the smallest point of each bin; at ``bins`` after the last point."""
        edges = self.bins.edges_at(positions)
        if self.integer:
            return edges
        grid = self.grid
        k = grid.at_least(edges)
        last_edge = grid.value(grid.last)
        for _ in range(2):  # the formula of even bins rounds: a point may lie beside its edge
            below = grid.value(np.maximum(k - 1, grid.first))
            k = np.where((k > grid.first) & (self.bins.encode(below) >= positions), k - 1, k)
            here = np.minimum(grid.value(k), last_edge)
            k = np.where((k <= grid.last) & (self.bins.encode(here) < positions), k + 1, k)
        k = np.where(positions == 0, grid.first, k)
        return np.where(positions == self.bins.bins, grid.last + 1, k)

    def empty(self, among: IntArray | None) -> IntArray:
        """Bins without points, of all bins or those of some places."""
        codes = np.arange(self.bins.bins)
        if among is not None:
            codes = np.unique(self.bins.encode(self.grid.value(among))).astype(np.int64)
        first, stop = self.first(codes), self.first(codes + 1)
        return codes[stop - first - self._n_special(first, stop) < 1]

    def _n_special(self, first: IntArray, stop: IntArray) -> IntArray:
        return np.searchsorted(self.special, stop) - np.searchsorted(self.special, first)

    def draw(
        self,
        codes: IntArray,
        rng: np.random.Generator,
        low: FloatArray | None = None,
        high: FloatArray | None = None,
    ) -> FloatArray:
        """A point of each bin, within closed bounds where the bin meets them."""
        first, stop = self._ends(codes)
        if low is not None or high is not None:
            # Places within the bounds; the nearest of the bin where it has none there.
            least, most = self._inner(first, stop)
            start = least if low is None else np.clip(self.grid.at_least(low), least, most)
            end = most if high is None else np.clip(self.grid.at_most(high), least, most)
            start, end = self._inner(start, end + 1)
            nearest = np.where(end >= least, end, np.minimum(start, most))
            empty = start > end
            first, stop = np.where(empty, nearest, start), np.where(empty, nearest, end) + 1
        draw = self._evenly if self.even else self._by_scale
        return self.grid.value(draw(first, stop, rng))

    def _ends(self, codes: IntArray) -> tuple[IntArray, IntArray]:
        """Place of the smallest point of each bin, and the place after its largest."""
        if self.integer or self.bins.bins > len(codes):
            return self.first(codes), self.first(codes + 1)
        firsts = self.first(np.arange(self.bins.bins + 1))
        return firsts[codes], firsts[codes + 1]

    def _inner(self, first: IntArray, stop: IntArray) -> tuple[IntArray, IntArray]:
        """Smallest and largest place without a cell of its own."""
        low, high = first, stop - 1
        for special in self.special.tolist():
            low = np.where(low == special, low + 1, low)
        for special in reversed(self.special.tolist()):
            high = np.where(high == special, high - 1, high)
        return low, high

    def _evenly(self, first: IntArray, stop: IntArray, rng: np.random.Generator) -> IntArray:
        width = stop - first
        if len(self.special):
            width = np.maximum(width - self._n_special(first, stop), 1)
        return self._passing(first + rng.integers(0, width), first)

    def _passing(self, k: IntArray, first: IntArray) -> IntArray:
        """Places counted without those that have a cell of their own."""
        for special in self.special.tolist():
            k = np.where((first <= special) & (special <= k), k + 1, k)
        return k

    def _by_scale(self, first: IntArray, stop: IntArray, rng: np.random.Generator) -> IntArray:
        """Uniform on the scale."""
        mass = self._mass(first, stop)
        inside = []
        for special in self.special.tolist():
            at = (first <= special) & (special < stop)
            point = float(self._mass(np.int64(special), np.int64(special + 1)))
            inside.append((special, point, at))
            mass = mass - point * at
        place = self._forward(first) + rng.random(len(first)) * np.maximum(mass, 0.0)
        for special, point, at in inside:
            place = place + point * (at & (place >= self._forward(np.int64(special))))
        k = np.floor(self.grid.place(self.scale.inverse(place)) + 1e-9).astype(np.int64)
        k = np.clip(k, first, stop - 1)
        if not len(self.special):
            return k
        # Rounding may meet a special value.
        return np.where(np.isin(k, self.special), self._evenly(first, stop, rng), k)

    def positions(self, values: ArrayLike, *, closed: bool = True) -> FloatArray:
        """Numbers in units of bins: bin and share of its points below (or at, if ``closed``)."""
        x = np.asarray(values, dtype=np.float64)
        k = self.grid.at_most(x) + 1 if closed else self.grid.at_least(x)
        firsts = self.first(np.arange(self.bins.bins + 1))
        code = np.clip(np.searchsorted(firsts, k, side="right") - 1, 0, self.bins.bins - 1)
        below, whole = (self._weight(firsts[code], end) for end in (k, firsts[code + 1]))
        return code + below / whole

    def values_at(self, codes: IntArray, shares: FloatArray) -> FloatArray:
        """Points of bins up to which the shares of the bin lie."""
        first, stop = self.first(codes), self.first(codes + 1)
        free = self._weight(first, stop)
        if self.even:
            k = np.clip(np.ceil(first + shares * free) - 1, first, first + free - 1)
            return self.grid.value(self._passing(k.astype(np.int64), first))
        on_scale = self._forward(first) + shares * free
        for special in self.special.tolist():
            passed = (first <= special) & (self._forward(np.int64(special)) < on_scale)
            on_scale = on_scale + passed * self._mass(np.int64(special), np.int64(special + 1))
        # A share that rounding puts above a point means the point.
        place = self.grid.place(self.scale.inverse(on_scale)) - 1e-9
        k = np.clip(np.ceil(place) - 1, first, stop - 1).astype(np.int64)
        return self.grid.value(self._inner(first, k + 1)[1])

    def _weight(self, first: IntArray, stop: IntArray) -> NDArray[Any]:
        """Number of points, or their mass on the scale, without special values."""
        if self.even:
            return stop - first - self._n_special(first, stop)
        masses = running_sums(self._mass(self.special, self.special + 1))
        start, end = np.searchsorted(self.special, first), np.searchsorted(self.special, stop)
        return self._mass(first, stop) - (masses[end] - masses[start])

    def _forward(self, k: Any) -> FloatArray:
        return self.scale.forward(self.grid.value(k))

    def _mass(self, first: Any, stop: Any) -> FloatArray:
        return self._forward(stop) - self._forward(first)

    def span(self, codes: IntArray) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest number of each bin."""
        low, high = self._inner(self.first(codes), self.first(codes + 1))
        return self.grid.value(low), self.grid.value(high)

    def widths(self) -> NDArray[Any]:
        """Number of points of each bin, or their mass on the scale."""
        firsts = self.first(np.arange(self.bins.bins + 1))
        return self._weight(firsts[:-1], firsts[1:])

    def means(self) -> FloatArray:
        """Mean of the points of each bin."""
        if self.even and not len(self.special):
            firsts = self.first(np.arange(self.bins.bins + 1)).astype(np.float64)
            return self.grid.value(firsts[:-1] + (np.diff(firsts) - 1) / 2)
        share, total = self.covered(self.grid.first, self.grid.last)
        return total / share

    def covered(
        self, low: int, high: int, only: Iterable[int] | None = None, never: Iterable[int] = ()
    ) -> tuple[FloatArray, FloatArray]:
        """Share of each bin that is covered, and that share times the mean there.

        Parameters
        ----------
        low, high : int
            Covered are the places from low to high,
        only : iterable of int, default=None
            among these,
        never : iterable of int
            without these.
        """
        firsts = self.first(np.arange(self.bins.bins + 1))
        first, stop = firsts[:-1], firsts[1:]
        size = self._sums(first, stop)[0]
        gone = self.special
        if len(gone):
            size = size - self._by_bin(firsts, gone)[0]
        if only is None:
            begin = np.maximum(first, low)
            end = np.maximum(np.minimum(stop, high + 1), begin)
            number, total = self._sums(begin, end)
            chosen, sign = {*never, *gone.tolist()}, -1
        else:
            number, total = np.zeros(len(first), dtype=np.int64), np.zeros(len(first))
            chosen, sign = {*only} - {*never} - {*gone.tolist()}, 1
        places = np.array([k for k in sorted(chosen) if low <= k <= high], dtype=np.int64)
        one, those = self._by_bin(firsts, places)
        number, total = number + sign * one, total + sign * those
        if not self.even:
            number = np.maximum(number, 0.0)
        grid = self.grid
        moment = total * grid.numerator + number * grid.offset
        return number / size, moment / (grid.denominator * size)

    def _by_bin(self, firsts: IntArray, places: IntArray) -> tuple[NDArray[Any], NDArray[Any]]:
        """Weight of some points by bin, and weight times place."""
        n = len(firsts) - 1
        bins = np.searchsorted(firsts, places, side="right") - 1
        weight = None if self.even else self._mass(places, places + 1)
        product = places if weight is None else weight * places
        return np.bincount(bins, weight, n), np.bincount(bins, product, n)

    def _sums(self, first: IntArray, stop: IntArray) -> tuple[NDArray[Any], FloatArray]:
        """Weight of the points from first to before stop, and weight times place."""
        if self.even:
            number = stop - first
            return number, number * (first + (number - 1) / 2.0)
        if len(first) > _AT_ONCE:
            cuts = range(0, len(first), _AT_ONCE)
            parts = [self._sums(first[i : i + _AT_ONCE], stop[i : i + _AT_ONCE]) for i in cuts]
            return np.concatenate([w for w, _ in parts]), np.concatenate([t for _, t in parts])
        # One after the other: the sum does not depend on how NumPy pairs the terms.
        ends = np.minimum(first[:, None] + np.arange(_EXACT_POINTS + 1), stop[:, None])
        exact = ends[:, :-1] * self._mass(ends[:, :-1], ends[:, 1:])
        total = np.cumsum(np.where(ends[:, :-1] < ends[:, 1:], exact, 0.0), axis=1)[:, -1]
        start = ends[:, -1]
        # The rest: the mean of the points below x, where x is uniform on the scale.
        low, high = self.grid.value(start), self.grid.value(stop)
        mass = self._mass(start, stop)
        slope = (self.scale.density(high) - self.scale.density(low)) * self.grid.step()
        rest = self.grid.place(self.scale.mean(low, high)) * mass - mass / 2 - slope / 12
        total += np.where(start < stop, rest, 0.0)
        weight: NDArray[Any] = self._mass(first, stop)
        return weight, total


def _within(
    left: FloatArray, right: FloatArray, low: FloatArray | None, high: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """The part of intervals within bounds; their nearest number where there is none."""
    start = left if low is None else np.clip(low, left, right)
    stop = right if high is None else np.clip(high, left, right)
    return start, np.maximum(start, stop)


def _as_order(x: FloatArray) -> IntArray:
    """Integers in the order of floats."""
    bits = (x + 0.0).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _from_order(k: IntArray) -> FloatArray:
    return np.where(k < 0, np.int64(-(2**63)) - k, k).view(np.float64)
