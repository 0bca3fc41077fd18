"""Bins of numbers: where a range is cut, which numbers each bin holds, and the automatic fine bins.

Within a bin all its numbers are taken to be equally likely: draws, means and the shares of partly
covered bins follow this one law. `Spread` holds real numbers, `Points` those of a `Grid` (integers,
cents).
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._validation import CodeArray, FloatArray, IntArray, as_integer, as_list, digits, snapped
from ..exceptions import DomainError

# --- plain values

# An array over the codes of a column must fit into memory.
MAX_BINS = 2**24
# Codes of a number that a model reads: finer than any noise, and squared distances stay exact.
N_CODES = 2**20


# Integers up to this are exact in float64, in which every engine computes bins.
MAX_INTEGER = 2**53


# Where the numbers of bins are divided: a number, and whether before (0) or after it (1). On a grid
# the number is a place, and all cuts are before it.
Cut: TypeAlias = tuple[float, int]
# Share of a bin that a single number of a continuous column has: next to nothing, but asked for, or
# left out of all others. And that of the only number of its bin with so few digits, at which all
# records of the bin may lie.
POINT = 1e-12
ROUNDEST = 2 * POINT

# --- bins: where a range is cut, and the bin of each number


# Rows that are encoded at once, so that they stay in the cache; fewer are searched for among edges.
BLOCK = 2**15


# Bin j is ``[edges[j], edges[j + 1])``, the last one closed. The last edge of integers is the one
# after the largest.


def multiples_in(edges: NDArray[Any], step: float) -> FloatArray:
    """How many multiples of a step each bin holds; of a step beyond the range the one that is 0."""
    places = edges / min(step, 10.0 * float(np.abs(edges).max()))
    near = 1e-12 * np.abs(places)
    ends = np.append(np.ceil(places - near)[:-1], np.floor(places[-1] + near[-1]) + 1.0)
    return np.asarray(np.diff(ends))


def step_of(number: float) -> float:
    """The largest power of ten that a number is a multiple of, as it is written; of 0 any."""
    written = Decimal(repr(number)).normalize()
    return 10.0 ** int(written.as_tuple().exponent) if number else math.inf


def even_edges(lower: float, upper: float, bins: int, integer: bool) -> NDArray[Any]:
    """Edges of bins of equal width, or of about equally many integers each."""
    if not integer:
        with np.errstate(all="ignore"):
            edges = np.arange(bins + 1) * (upper - lower) / bins + lower
        edges[[0, -1]] = lower, upper
        return apart(edges)
    low, span = int(lower), int(upper) - int(lower)
    if bins == span + 1:
        return np.arange(low, low + bins + 1)
    # The smallest integer x with floor((x - lower) * bins / span) of at least each bin.
    return np.array([*(low - (-bin * span) // bins for bin in range(bins)), low + span + 1])


def apart(edges: FloatArray) -> FloatArray:
    """The edges; refused where float64 cannot tell bins apart."""
    low, *_, high = edges.tolist()
    bins, ends = len(edges) - 1, np.maximum(np.abs(edges[:-1]), np.abs(edges[1:]))
    with np.errstate(all="ignore"):
        near = (np.diff(edges) < 8 * np.spacing(ends)).any()
    if near or not math.isfinite((high - low) * bins):
        what = f"Of {bins} bins between {low!r} and {high!r} float64 cannot hold the widths"
        raise DomainError(f"{what}: use fewer bins, or a narrower range.")
    return edges


def number_of_bins(given: Any, grid: Grid | None, scale: str) -> int:
    """The declared number of bins; by default one for each number of a grid."""
    most = MAX_BINS if grid is None else len(grid)
    few = most if scale == "linear" else min(FEW_BINS, most)
    meaning = "a number of bins; edges=[...] says where they end."
    bins = few if given is None else as_integer(given, "bins", meaning=meaning)
    if not 1 <= bins <= min(most, MAX_BINS):
        raise DomainError(
            f"bins must be in 1..{min(most, MAX_BINS)}, got {bins}. Give bins=32 or so, with "
            "scale='log' where most values are small, or edges=[...]."
        )
    return bins


def declared_edges(given: Any, read: Callable[[Any, str], float], integer: bool) -> NDArray[Any]:
    """The edges of a declaration."""
    listed = [read(edge, f"edges[{place}]") for place, edge in enumerate(as_list(given, "edges"))]
    if not 2 <= len(listed) <= MAX_BINS + 1:
        raise DomainError(f"edges needs at least two numbers, for {MAX_BINS} bins at most.")
    # The last bin is closed, so it may hold a single integer.
    cuts = [*listed[:-1], listed[-1] + integer]
    if wrong := [left for left, right in itertools.pairwise(cuts) if left >= right]:
        what = f"edges must increase, but {digits(wrong[0])} is not before what follows it"
        raise DomainError(f"{what}. Sort them, and give each once.")
    if not integer:
        apart(np.array([listed[0], listed[-1]]))
    return np.array(cuts, dtype=np.int64 if integer else np.float64)


# Where a few bins are wanted and none are declared.
FEW_BINS = 32
# From 0 on, a log scale is linear up to about this share of the range.
_LINEAR_SHARE = 1000.0


def edges_on(scale: str, lower: float, upper: float, bins: int, integer: bool) -> NDArray[Any]:
    """Edges that are equally far apart on a scale; each bin of integers holds at least one."""
    if scale == "linear":
        return even_edges(lower, upper, bins, integer)
    if scale not in ("log", "sqrt"):
        raise DomainError(f"scale must be 'linear', 'log' or 'sqrt', got {scale!r}.")
    if scale == "log" and not 0 <= lower <= upper != 0:
        raise DomainError(
            f"scale='log' needs lower >= 0 and upper > 0, got {digits(lower)} and {digits(upper)}. "
            "Use scale='sqrt', or a positive lower with the other values in special=[...]."
        )
    end = upper + 1 if integer else upper
    if scale == "log":
        unit = lower if lower > 0 else upper / _LINEAR_SHARE
        top = np.log1p((end - lower) / unit)
        edges = lower + unit * np.expm1(np.linspace(0.0, top, bins + 1))
    else:
        edges = lower + np.square(np.linspace(0.0, np.sqrt(end - lower), bins + 1))
    # Twelve digits, because the last bits of a logarithm differ between machines.
    edges = np.array([float(f"{edge:.12g}") for edge in edges.tolist()])
    edges[0], edges[-1] = lower, end
    if not integer:
        return apart(edges)
    whole = np.ceil(edges).astype(np.int64)
    # Where the scale cuts finer than integers, each bin gets one.
    steps = np.arange(bins + 1)
    whole = np.maximum.accumulate(whole - steps) + steps
    return np.minimum(whole, int(end) - bins + steps)


# --- grids: the numbers that a column can hold, where these are integers or decimals


@dataclass(frozen=True)
class Grid:
    """The numbers ``k / denominator`` for whole k from first to last, its places.

    The quotient of integers below 2**53 is the float nearest to the decimal number.
    """

    first: int
    last: int
    denominator: int = 1

    def __len__(self) -> int:
        return self.last - self.first + 1

    def value(self, k: Any) -> FloatArray:
        """Number at each place; places between two numbers are allowed."""
        return np.asarray(k) / self.denominator

    def at_least(self, x: Any) -> IntArray:
        """Place of the smallest number that is at least x; ``last + 1`` where there is none."""
        wanted = np.clip(x, self.value(self.first), self.value(self.last))
        k = np.rint(wanted * self.denominator).astype(np.int64)
        return np.where(x > self.value(self.last), self.last + 1, k + (self.value(k) < wanted))

    def place(self, x: float) -> int:
        """The same of one number, without arrays: thousands of questions have two each."""
        if x > self.last / self.denominator:
            return self.last + 1
        k = round(max(x, self.first / self.denominator) * self.denominator)
        return k + (k / self.denominator < x)


def declared_grid(
    lower: float, upper: float, integer: bool, decimals: Any
) -> tuple[Grid | None, int | None]:
    """The grid of a declaration, with ``decimals`` as a plain number."""
    if decimals is None and not integer:
        return None, None
    places = 0 if integer else as_integer(decimals, "decimals")
    if not 0 <= places <= 15 or (integer and decimals is not None):
        what = "decimals must be in 0..15, and left out beside integer=True"
        raise DomainError(f"{what}, got {decimals!r}.")
    # As written: 0.1 is a tenth.
    first, last = (Fraction(repr(end)) * 10**places for end in (lower, upper))
    grid = Grid(math.ceil(first), math.floor(last), 10**places)
    if grid.last < grid.first or max(abs(first), abs(last)) > MAX_INTEGER - 2 * (not integer):
        raise DomainError(
            f"The values from {digits(lower)} to {digits(upper)} with {places} decimals are none, "
            "or more than float64 can tell apart: give other ends, or more or fewer decimals "
            "(dates: a coarser unit)."
        )
    return grid, None if integer else places


# --- contents: the numbers of each bin, without those that have a cell of their own


def _buckets(away: FloatArray, near: int) -> IntArray:
    """Integers that rise with a number, and do not change while its size is small.

    Of its size they are the exponent and ten bits of the mantissa, less those of ``near``.
    """
    buckets = np.abs(away).view(np.int64)
    buckets >>= 42
    buckets -= near
    np.maximum(buckets, 0, out=buckets)
    below = away < 0
    return np.negative(buckets, out=buckets, where=below) if below.any() else buckets


@dataclass(frozen=True)
class Spread:
    """Real numbers in bins, without those of ``special``.

    Attributes
    ----------
    edges : ndarray
        Of the bins.
    special : ndarray
        What has a cell of its own, ascending: numbers, or places of the grid.
    """

    edges: NDArray[Any]
    special: NDArray[Any]
    # Distance of two neighbours on a grid.
    step: ClassVar[float] = 0.0

    def codes(self, x: FloatArray) -> CodeArray:
        """Bin of each number of the range: how many inner edges are at or below it."""
        inner = self.edges[1:-1]
        if len(x) < BLOCK or self._guess is None:
            return np.searchsorted(inner, x, side="right").astype(np.int32)
        anchor, near, first, bins = self._guess
        # All edges of lower buckets are below a number, and it is compared with the one in its own:
        # faster than a search.
        buckets = _buckets(x - anchor, near)
        buckets -= first
        codes = bins[np.clip(buckets, 0, len(bins) - 1, out=buckets)]
        codes += x >= np.append(inner, np.inf)[codes]
        return codes

    @functools.cached_property
    def _guess(self) -> tuple[float, int, int, CodeArray] | None:
        """For `codes`: the bin that numbers of each bucket are in, or the one after it.

        None where there are several edges in a bucket. Before it: where buckets are narrowest, from
        where on they are told apart, and the number of the first.
        """
        anchor = float(np.clip(0.0, self.edges[0], self.edges[-1]))
        away = self.edges[1:-1] - anchor
        if not len(away):
            return None
        near = int(_buckets(np.abs(away[away != 0]), 0).min(initial=2**21)) - 1
        of_edges = _buckets(away, near)
        first = int(of_edges[0]) - 1
        edges = np.bincount(of_edges - first, minlength=int(of_edges[-1]) - first + 2)
        bins = (np.cumsum(edges) - edges).astype(np.int32)
        return (anchor, near, first, bins) if edges.max() == 1 else None

    @functools.cached_property
    def ends(self) -> NDArray[Any]:
        """Where bins begin, and the last one ends: numbers, or places of the grid."""
        return self.edges

    @functools.cached_property
    def whole(self) -> tuple[NDArray[Any], FloatArray]:
        """How much each bin holds, and the sum of its numbers."""
        widths = np.diff(self.edges)
        return np.ones(len(widths)), self.edges[:-1] + widths / 2

    def cut(self, x: float, after: int) -> Cut:
        """What divides the numbers of bins below x, or up to x, from all others."""
        return x, after

    def numbers(self, starts: FloatArray, stops: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The first and the last number of runs from cuts to others."""
        return starts, stops

    def below(self, cuts: NDArray[Any]) -> tuple[IntArray, NDArray[Any], FloatArray]:
        """The bin of each cut, how much of it lies below the cut, and the sum of its numbers."""
        values = np.clip(cuts, self.edges[0], self.edges[-1])
        codes = self.codes(values).astype(np.int64)
        left, right = self.edges[codes], self.edges[codes + 1]
        share = snapped(codes + (values - left) / (right - left)) - codes
        return codes, share, share * (left + share / 2 * (right - left))

    def between(
        self, starts: FloatArray, stops: FloatArray, after: FloatArray, owners: IntArray, n: int
    ) -> tuple[FloatArray, FloatArray]:
        """Share of each bin that lies in the runs of each owner, and that times the mean there.

        A cut at the end of a bin is beside a single number, which the run holds or does not.

        Parameters
        ----------
        starts, stops : ndarray of shape (n_runs,)
            Numbers of cuts, as from `cut`.
        after : ndarray of shape (2 * n_runs,)
            Of starts and stops whether the cut is after the number.
        owners : ndarray of int, shape (n_runs,)
            Whose runs they are, one of ``n``; those of one are disjoint.
        n : int

        Returns
        -------
        ndarray of float64, shape (n, n_bins), twice
        """
        shape, (size, sums) = (n, len(self.edges) - 1), self.whole
        cuts, owners = np.concatenate([starts, stops]), np.concatenate([owners, owners])
        codes, amount, total = self.below(cuts)
        sign, places = np.repeat([-1.0, 1.0], len(starts)), owners * shape[1] + codes

        def added(values: FloatArray) -> FloatArray:
            sums = np.bincount(places, values, math.prod(shape))
            return sums.astype(np.float64, copy=False).reshape(shape)

        # From its own bin on a start counts all that bins hold, and a stop takes it back.
        inside = np.cumsum(added(-sign), axis=1)
        share = (added(sign * amount) + inside * size) / size
        moment = (added(sign * total) + inside * sums) / size
        if self.step:
            return share, moment
        # Single numbers are added to bins without others, and taken from bins with all others: a
        # cut at the end of a bin is beside a number that runs hold or do not.
        known, held = share[owners, codes], (sign > 0) == (after > 0)
        points = np.where(held, known == 0.0, known == 1.0) & ~np.isin(cuts, self.special)
        points &= (self.edges[0] <= cuts) & (cuts <= self.edges[-1])
        at, numbers, here = (owners[points], codes[points]), cuts[points], held[points]
        steps = np.array([*map(step_of, numbers.tolist())])
        part = np.full(len(steps), POINT)
        for step in np.unique(steps):
            held_by = multiples_in(self.edges, step)[at[1]]
            part[(steps == step) & (held_by == 1)] = ROUNDEST
        share[at] = np.where(here, part, 1.0 - part)
        moment[at] = np.where(here, part * numbers, moment[at])
        return share, moment

    def positions(self, values: NDArray[Any]) -> FloatArray:
        """Numbers in units of bins: bin and share of it that lies below."""
        codes, amount, _ = self.below(values)
        return codes + amount / self.whole[0][codes]

    def empty(self) -> IntArray:
        """Bins without numbers."""
        return np.flatnonzero(self.whole[0] == 0)

    def draw(
        self, codes: IntArray, rng: np.random.Generator, low: FloatArray, high: FloatArray
    ) -> FloatArray:
        """A number of each bin, within closed bounds where the bin meets them."""
        share = rng.random(len(codes))
        left, right = self.span(codes)
        start, stop = np.clip(low, left, right), np.clip(high, left, right)
        return np.clip(start + share * (np.maximum(start, stop) - start), left, right)

    def span(self, codes: IntArray) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest number of each bin."""
        low, high = self.edges[codes], np.nextafter(self.edges[codes + 1], -np.inf)
        high[codes == len(self.edges) - 2] = self.edges[-1]
        low = np.where(np.isin(low, self.special), np.nextafter(low, np.inf), low)
        high = np.where(np.isin(high, self.special), np.nextafter(high, -np.inf), high)
        return low, high

    def values_at(self, codes: IntArray, shares: FloatArray) -> FloatArray:
        """Numbers of bins below which the shares of the bin lie."""
        low, high = self.edges[codes], self.edges[codes + 1]
        return np.where(shares < 1, low + shares * (high - low), high)


@dataclass(frozen=True)
class Points(Spread):
    """The numbers of a grid in bins, without those of ``special``.

    Those that are left have ranks, without gaps: counts and draws are of ranks.
    """

    grid: Grid

    @property
    def step(self) -> float:  # type: ignore[override] # noqa: D102
        return 1 / self.grid.denominator

    def cut(self, x: float, after: int) -> Cut:  # noqa: D102
        return self.grid.place(math.nextafter(x, math.inf) if after else x), 0

    def numbers(self, starts: Any, stops: Any) -> tuple[FloatArray, FloatArray]:  # noqa: D102
        return self.grid.value(starts), self.grid.value(stops - 1)

    @functools.cached_property
    def ends(self) -> IntArray:  # noqa: D102
        return np.append(self.grid.at_least(self.edges[:-1]), self.grid.last + 1)

    def codes(self, x: FloatArray) -> CodeArray:  # noqa: D102
        if self.edges.dtype == np.int64 and len(self.grid) == len(self.edges) - 1:
            return (x - self.edges[0]).astype(np.int32)
        return super().codes(x)

    def _rank(self, places: IntArray) -> IntArray:
        """Ranks of the smallest points from places on."""
        return places - self.special.searchsorted(places)

    def _at(self, ranks: IntArray) -> FloatArray:
        """The points of some ranks."""
        before = self.special - np.arange(len(self.special))
        return self.grid.value(ranks + before.searchsorted(ranks, side="right"))

    def _ranks(self, codes: IntArray) -> tuple[IntArray, IntArray]:
        """Ranks of the first and the last point of each bin; reversed if it has none."""
        return self._rank(self.ends[codes]), self._rank(self.ends[codes + 1]) - 1

    def draw(  # noqa: D102
        self, codes: IntArray, rng: np.random.Generator, low: FloatArray, high: FloatArray
    ) -> FloatArray:
        first, last = self._ranks(codes)
        start = np.clip(self._rank(self.grid.at_least(low)), first, last)
        beyond = self.grid.at_least(np.nextafter(high, np.inf))
        stop = np.clip(self._rank(beyond) - 1, first, last)
        # Where no point lies between the bounds, the one before them.
        start = np.minimum(start, stop)
        return self._at(start + rng.integers(0, stop - start + 1))

    @functools.cached_property
    def whole(self) -> tuple[IntArray, FloatArray]:  # noqa: D102
        return np.diff(self._rank(self.ends)), self._total(self.ends[:-1], self.ends[1:])

    def below(self, cuts: NDArray[Any]) -> tuple[IntArray, NDArray[Any], FloatArray]:  # noqa: D102
        k = np.minimum(np.maximum(cuts, self.grid.first), self.grid.last + 1).astype(np.int64)
        codes = self.ends[:-1].searchsorted(k, side="right") - 1
        first = self.ends[codes]
        return codes, self._rank(k) - self._rank(first), self._total(first, k)

    def _total(self, first: IntArray, stop: IntArray) -> FloatArray:
        """Sum of the points from first to before stop."""
        sums = np.concatenate([[0], np.cumsum(self.special)])
        before = sums[self.special.searchsorted([stop, first])]
        total = (stop - first) * (first + (stop - 1 - first) / 2.0)
        return (total - (before[0] - before[1])) / self.grid.denominator

    def positions(self, values: NDArray[Any]) -> FloatArray:  # noqa: D102
        return super().positions(self.grid.at_least(values))

    def values_at(self, codes: IntArray, shares: FloatArray) -> FloatArray:
        """Points of bins up to which the shares of the bin lie."""
        first, last = self._ranks(codes)
        ranks = np.ceil(first + shares * (last - first + 1)) - 1
        return self._at(np.clip(ranks.astype(np.int64), first, last))

    def span(self, codes: IntArray) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest number of each bin."""
        first, last = self._ranks(codes)
        return self._at(first), self._at(last)


# --- the public lattice of ``bins="auto"``: fine bins of a column, finer near zero
#
# Widths are 1, 2 and 5 times powers of ten, and edges are multiples of them: the numbers that
# people ask about. The bin at x has the largest width that is at most a fiftieth of the size of x,
# so that its values differ by two percent at most, with two exceptions. Up to a stated share of the
# range all bins around 0 have the same width. And no bin is wider than a width that is chosen as
# small as the number of bins allows; where the range does not reach near 0, this is the width of
# all.
#
# All arithmetic is in whole numbers, so that the edges are the same on every machine. They are not
# stored with a release, which says "auto": this module must never give other edges for a range.

MOST_BINS = 1024

# A bin is at most this part of its values wide: two percent.
_PARTS = 50
# Widths stay the same up to this part of the largest number, in powers of ten; the first that fits.
_DECADES = (4, 3, 2, 1, 0)


@functools.lru_cache(maxsize=256)
def lattice_edges(lower: float, upper: float, least: Fraction) -> tuple[float, ...]:
    """Edges within a range, of at most `MOST_BINS` bins.

    Parameters
    ----------
    lower, upper : float
        ``lower < upper``, both finite.
    least : Fraction
        Least width of a bin: the distance of the numbers of a grid, or 0.
    """
    low, high = Fraction(lower), Fraction(upper)
    largest = max(abs(low), abs(high))
    # Edges must differ as floats.
    least = max(least, 8 * Fraction(float(np.spacing(max(abs(lower), abs(upper))))))
    widths = _widths()
    first = bisect.bisect_left(widths, max((high - low) / MOST_BINS, least))
    last = bisect.bisect_left(widths, largest / _PARTS)
    for decades in _DECADES:
        near = max(
            bisect.bisect_right(widths, largest / (_PARTS * 10**decades)) - 1,
            bisect.bisect_left(widths, least),
        )
        for far in range(first, last + 1):
            inner = sorted(_multiples(low, high, min(near, far), far))
            if len(inner) < MOST_BINS:
                # No sliver at an end: its records lie in the bin beside it.
                return tuple(x for x, width in inner if min(x - lower, upper - x) >= width / 2)
    raise AssertionError("one width for all bins fits always")


@functools.cache
def _widths() -> list[Fraction]:
    """..., 0.5, 1, 2, 5, 10, ...: all widths that floats have."""
    tens = (Fraction(10) ** power for power in range(-330, 310))
    return [digit * ten for ten in tens for digit in (1, 2, 5)]


def _multiples(low: Fraction, high: Fraction, near: int, far: int) -> Iterator[tuple[float, float]]:
    """Edges between low and high, each with the width that it is a multiple of.

    From 0 the widths are that of ``near``, from 50 times a width on that one, up to that of
    ``far``; on both sides of 0.
    """
    widths = _widths()
    for index in range(near, far + 1):
        width = widths[index]
        start = _PARTS if index > near else 0
        # The end of a piece is the start of the next.
        end = math.inf if index == far else _PARTS * widths[index + 1] / width - 1
        for sign, left, right in ((1, low, high), (-1, -high, -low)):
            # 0 is on the first side alone.
            first = max(start, int(sign < 0), math.floor(left / width) + 1)
            last = int(min(end, math.ceil(right / width) - 1))
            for k in range(first, last + 1):
                # A quotient of whole numbers is the float nearest to the decimal number.
                yield sign * k * width.numerator / width.denominator, float(width)
