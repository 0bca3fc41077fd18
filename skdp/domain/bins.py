"""How a range of numbers is cut into bins, and the scales it is cut on."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import CodeArray, FloatArray, IntArray, run_starts
from ..exceptions import DomainError
from .attributes import MISSING_LABEL, Attribute, Level, halvings
from .taxonomy import Taxonomy
from .values import MAX_BINS, MAX_INTEGER, as_float, as_int, digits, some

# ------------------------------------------------------------------------------------------------
# Scales: on which numbers are cut into bins of equal width, and spread evenly within a bin.


SCALES = ("linear", "log", "sqrt")

# From 0 on, a log scale is linear up to about this share of the range.
_LINEAR_SHARE = 1000.0


class Linear:
    """Numbers as they are."""

    def forward(self, x: Any) -> FloatArray:
        """Place on the scale of each number."""
        return np.asarray(x, dtype=np.float64)

    def inverse(self, t: Any) -> FloatArray:
        """Number at each place."""
        return np.asarray(t, dtype=np.float64)

    def density(self, x: Any) -> FloatArray:
        """Derivative of `forward`."""
        return np.ones(np.shape(x))

    def mean(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Mean of numbers between ``low`` and ``high`` whose places are uniform."""
        return low + (high - low) / 2


class LogScale:
    """``log(1 + (x - origin) / unit)``: ``log(x / origin)`` where both are the same.

    Parameters
    ----------
    origin, unit : float
    """

    def __init__(self, origin: float, unit: float) -> None:
        self.origin = origin
        self.unit = unit

    def forward(self, x: Any) -> FloatArray:  # noqa: D102
        return np.log1p(np.maximum(np.subtract(x, self.origin), 0.0) / self.unit)

    def inverse(self, t: Any) -> FloatArray:  # noqa: D102
        return self.origin + self.unit * np.expm1(t)

    def density(self, x: Any) -> FloatArray:  # noqa: D102
        return 1.0 / (np.maximum(np.subtract(x, self.origin), 0.0) + self.unit)

    def mean(self, low: FloatArray, high: FloatArray) -> FloatArray:  # noqa: D102
        base = low - self.origin + self.unit
        growth = (high - low) / base
        # growth / log1p(growth), which is 1 at 0.
        ratio = np.divide(growth, np.log1p(growth), out=np.ones_like(growth), where=growth > 0)
        return np.clip(self.origin - self.unit + base * ratio, low, high)


class SqrtScale:
    """``sqrt(x - origin)``.

    Parameters
    ----------
    origin : float
    """

    def __init__(self, origin: float) -> None:
        self.origin = origin

    def forward(self, x: Any) -> FloatArray:  # noqa: D102
        return np.sqrt(np.maximum(np.subtract(x, self.origin), 0.0))

    def inverse(self, t: Any) -> FloatArray:  # noqa: D102
        return self.origin + np.square(t)

    def density(self, x: Any) -> FloatArray:  # noqa: D102
        return 0.5 / np.maximum(self.forward(x), 1e-150)

    def mean(self, low: FloatArray, high: FloatArray) -> FloatArray:  # noqa: D102
        a, b = self.forward(low), self.forward(high)
        return np.clip(self.origin + (a * a + a * b + b * b) / 3, low, high)


Scale = Linear | LogScale | SqrtScale


def scale_of(name: str, lower: float, upper: float) -> Scale:
    """The scale of a declared name over a range."""
    if name not in SCALES:
        raise DomainError(f"scale must be 'linear', 'log' or 'sqrt', got {name!r}.")
    if name == "linear":
        return Linear()
    if name == "sqrt":
        return SqrtScale(lower)
    if lower < 0:
        raise DomainError(
            f"scale='log' needs lower >= 0, got lower={digits(lower)}. Use scale='sqrt', or a "
            "positive lower with the other values in special=[...], such as special=[0]."
        )
    if upper <= 0:
        raise DomainError(f"scale='log' needs upper > 0, got upper={digits(upper)}.")
    return LogScale(lower, lower if lower > 0 else upper / _LINEAR_SHARE)


# --- grids: the numbers that a column can hold, where these are multiples of a step


@dataclass(frozen=True)
class Grid:
    """The numbers ``(k * numerator + offset) / denominator`` for whole k from first to last.

    The quotient of integers below 2**53 is the float nearest to the decimal number.
    """

    first: int
    last: int
    numerator: int = 1
    offset: int = 0
    denominator: int = 1

    def value(self, k: Any) -> FloatArray:
        """Number at each place; places between two numbers are allowed."""
        return (np.asarray(k) * self.numerator + self.offset) / self.denominator

    def place(self, x: Any) -> FloatArray:
        """Place of each number, between two whole places where it is none of the grid."""
        return (np.asarray(x, dtype=np.float64) * self.denominator - self.offset) / self.numerator

    def at_least(self, x: Any) -> IntArray:
        """Place of the smallest number that is at least x; ``last + 1`` where there is none."""
        wanted = np.asarray(x, dtype=np.float64)
        near = np.clip(np.nan_to_num(np.ceil(self.place(wanted))), self.first, self.last + 1)
        k = near.astype(np.int64)
        # Rounding is off by one place at most; twice, to be safe.
        for _ in range(2):
            k = np.where((k > self.first) & (self.value(k - 1) >= wanted), k - 1, k)
            k = np.where((k <= self.last) & (self.value(k) < wanted), k + 1, k)
        return k

    def at_most(self, x: Any) -> IntArray:
        """Place of the largest number that is at most x; ``first - 1`` where there is none."""
        wanted = np.asarray(x, dtype=np.float64)
        k = self.at_least(wanted)
        return np.where((k <= self.last) & (self.value(k) == wanted), k, k - 1)

    def step(self) -> float:
        """Distance of two neighbours."""
        return self.numerator / self.denominator


def declared_grid(
    lower: float, upper: float, *, integer: bool, step: Any, decimals: Any
) -> tuple[Grid | None, float | int | None, int | None]:
    """The grid of a declaration, with ``step`` and ``decimals`` as plain numbers."""
    if step is None and decimals is None:
        return (Grid(int(lower), int(upper)) if integer else None), None, None
    if step is not None and decimals is not None:
        raise DomainError("step and decimals say the same: give one of them.")
    if decimals is not None:
        if integer:
            raise DomainError(
                f"integer=True has no decimals, got decimals={decimals!r}: leave one of them out."
            )
        places = as_int(decimals, "decimals")
        if not -15 <= places <= 15:
            raise DomainError(f"decimals must be in -15..15, got {decimals!r}.")
        width, origin, plain = Fraction(10) ** -places, Fraction(0), None
    else:
        plain = as_int(step, "step") if integer else as_float(step, "step")
        if plain <= 0:
            raise DomainError(f"step must be positive, got {step!r}.")
        # As written: 0.1 is a tenth.
        width, origin, places = Fraction(repr(plain)), Fraction(repr(lower)), None
    below = math.ceil((Fraction(repr(lower)) - origin) / width)
    above = math.floor((Fraction(repr(upper)) - origin) / width)
    if above < below:
        raise DomainError(
            f"No multiple of {digits(float(width))} lies between {digits(lower)} and "
            f"{digits(upper)}: use a smaller step, or more decimals."
        )
    denominator = math.lcm(width.denominator, origin.denominator)
    grid = Grid(below, above, int(width * denominator), int(origin * denominator), denominator)
    ends = [abs(k * grid.numerator + grid.offset) for k in (below - 1, above + 1)]
    if max(*ends, denominator, above - below) >= MAX_INTEGER:
        raise DomainError(
            f"The values from {digits(lower)} to {digits(upper)} in steps of "
            f"{digits(float(width))} are more than float64 can tell apart: use a larger step, or "
            "fewer decimals."
        )
    return grid, plain, places


# ------------------------------------------------------------------------------------------------
# Bins: where a range of numbers is cut, and the bin of each number.


# Each is compared with every value.
_MOST_SPECIAL = 256


@dataclass(frozen=True)
class EvenBins:
    """Bins of equal width: the code of x is ``floor((x - lower) * bins / (upper - lower))``."""

    lower: float
    upper: float
    bins: int
    integer: bool

    @property
    def one_each(self) -> bool:
        """Whether there is a bin for each integer."""
        return self.integer and self.bins == self.upper - self.lower + 1

    def encode(self, x: FloatArray) -> CodeArray:
        """Bin of each number of the range; ``x`` is overwritten."""
        x = bin_positions(
            x,
            self.lower,
            self.upper,
            self.bins,
            one_each=self.one_each,
            divide=lambda numbers, divisor: np.divide(numbers, divisor, out=numbers),
        )
        codes = x.astype(np.int32)
        np.minimum(codes, self.bins - 1, out=codes)
        return codes

    def edges_at(self, positions: IntArray) -> NDArray[Any]:
        """Left ends of bins; at ``bins`` the end of the last (after ``upper`` for integers)."""
        if self.integer:
            # Smallest integer in each bin: the formula solved for x, in exact arithmetic.
            if self.one_each:
                return int(self.lower) + positions
            span = int(self.upper - self.lower)
            first = int(self.lower) - (-positions * span) // self.bins
            # The last bin is closed: it ends after `upper`.
            return np.where(positions == self.bins, int(self.upper) + 1, first)
        edges = self.lower + positions * ((self.upper - self.lower) / self.bins)
        return np.where(positions == self.bins, self.upper, edges)


@dataclass(frozen=True, eq=False)
class UnevenBins:
    """Bins between given edges: bin j is ``[edges[j], edges[j + 1])``, the last one closed.

    The last edge is ``upper``, or ``upper + 1`` for integers.
    """

    edges: NDArray[Any]

    @property
    def bins(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    def encode(self, x: FloatArray) -> CodeArray:
        """Bin of each number of the range."""
        return np.searchsorted(self.inner(), x, side="right").astype(np.int32)

    def edges_at(self, positions: IntArray) -> NDArray[Any]:
        """Left ends of bins; at ``bins`` the end of the last (after ``upper`` for integers)."""
        return self.edges[positions]

    def inner(self) -> FloatArray:
        """The edges between two bins."""
        return self.edges[1:-1].astype(np.float64)


# What NumPy says of an underflow would tell of a value.
@np.errstate(all="ignore")
def bin_positions(
    x: Any,
    lower: float,
    upper: float,
    bins: int,
    *,
    one_each: bool,
    divide: Callable[[Any, float], Any],
) -> Any:
    """Positions of numbers in units of bins of equal width: the integer part is the code.

    The one formula for arrays and for expressions of engines, which must agree bit for bit.

    Parameters
    ----------
    x : array of float64, which is overwritten, or expression
        Numbers within the range.
    one_each : bool
        Whether there is a bin for each integer.
    divide : callable
        How numbers are divided by a constant, rounded once.
    """
    x -= lower
    if not one_each:
        x *= float(bins)
        x = divide(x, upper - lower)
    return x


def declared_edges(given: Any, lower: Any, upper: Any, bins: Any, *, integer: bool) -> NDArray[Any]:
    """The edges of a declaration, as `UnevenBins` has them."""
    if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
        raise DomainError(f"edges must be a list of numbers, got {given!r}.")
    read = as_int if integer else as_float
    listed = [read(edge, f"edges[{place}]") for place, edge in enumerate(given)]
    if len(listed) < 2:
        raise DomainError(f"edges needs at least two numbers, got {listed!r}.")
    if len(listed) - 1 > MAX_BINS:
        raise DomainError(f"edges declare at most {MAX_BINS} bins.")
    for place, (left, right) in enumerate(zip(listed[:-1], listed[1:], strict=True)):
        if not left < right:
            raise DomainError(
                f"edges must increase, but edges[{place}]={digits(left)} is followed by "
                f"{digits(right)}. Sort them, and give each once."
            )
    for name, value, end in (("lower", lower, listed[0]), ("upper", upper, listed[-1])):
        if value is not None and as_float(value, name) != end:
            raise DomainError(
                f"{name}={value!r} differs from the {'first' if name == 'lower' else 'last'} of "
                f"edges, {digits(end)}. Leave it out: the range follows from edges."
            )
    if bins is not None and as_int(bins, "bins") != len(listed) - 1:
        raise DomainError(
            f"bins={bins!r}, but edges declare {len(listed) - 1} bins. Leave bins out."
        )
    if not math.isfinite(float(listed[-1]) - float(listed[0])):
        raise DomainError(
            f"The range from {listed[0]!r} to {listed[-1]!r} is too wide for float64."
        )
    if integer:
        if max(abs(listed[0]), abs(listed[-1])) > MAX_INTEGER:
            raise DomainError("edges of integers must lie within -2**53..2**53.")
        return np.array([*listed[:-1], listed[-1] + 1], dtype=np.int64)
    return np.array(listed, dtype=np.float64) + 0.0


def scale_edges(scale: Scale, lower: float, upper: float, bins: int, integer: bool) -> NDArray[Any]:
    """Edges that are equally far apart on a scale; each bin of integers holds at least one."""
    assert not isinstance(scale, Linear)
    end = upper + 1 if integer else upper
    places = np.linspace(0.0, float(scale.forward(np.float64(end))), bins + 1)
    # Twelve digits, because the last bits of a logarithm differ between machines.
    edges = np.array([float(f"{edge:.12g}") for edge in scale.inverse(places).tolist()])
    edges[0], edges[-1] = lower, end
    if not integer:
        _check_apart(edges, lower, upper)
        return edges
    whole = np.ceil(edges).astype(np.int64)
    # Where the scale cuts finer than integers, each bin gets one.
    steps = np.arange(bins + 1)
    whole = np.maximum.accumulate(whole - steps) + steps
    return np.minimum(whole, int(end) - bins + steps)


def _check_apart(edges: FloatArray, lower: float, upper: float) -> None:
    if (np.diff(edges) < 8 * np.spacing(np.maximum(np.abs(edges[:-1]), np.abs(edges[1:])))).any():
        raise DomainError(
            f"{len(edges) - 1} bins between {lower!r} and {upper!r} are narrower than float64 can "
            "tell apart; use fewer bins."
        )


def check_integer_bins(low: int, high: int, bins: int | None) -> int:
    """Number of bins over integers; None is one for each."""
    span = high - low
    if max(abs(low), abs(high)) > MAX_INTEGER or (span > MAX_BINS - 1 and bins is None):
        raise DomainError(
            f"The integers {low} to {high} are too many for one code each; bounds up to 2**53 "
            "with fewer bins are possible: give bins=, such as bins=32, with scale='log' where "
            "most values are small, or edges=[...]."
        )
    if bins is None:
        return span + 1
    if bins > span + 1:
        raise DomainError(
            f"bins={bins} exceeds the number of integers from {low} to {high} ({span + 1}): some "
            "bins would be empty. Use bins=None for one per integer."
        )
    return bins


def check_even_integers(low: int, high: int, bins: int) -> None:
    """Refuse what the formula of even bins cannot compute exactly."""
    if bins != high - low + 1 and bins * (high - low) >= MAX_INTEGER:
        raise DomainError(
            f"bins={bins} over the integers {low} to {high} cannot be computed exactly in "
            "float64; use fewer bins, or integer=False."
        )


def check_real_bins(low: float, high: float, bins: int) -> None:
    """Refuse even bins that float64 cannot tell apart."""
    span = high - low
    if not math.isfinite(span * bins):
        raise DomainError(f"The range from {low!r} to {high!r} is too wide for float64.")
    if span / bins < 8 * float(np.spacing(max(abs(low), abs(high)))):
        raise DomainError(
            f"{bins} bins between {low!r} and {high!r} are narrower than float64 can tell apart; "
            "use fewer bins."
        )


def frozen(cuts: NDArray[Any]) -> NDArray[Any]:
    """An array that cannot be changed."""
    cuts.setflags(write=False)
    return cuts


def declared_range(lower: Any, upper: Any, integer: bool) -> tuple[float, float]:
    """The range of a declaration."""
    for name, value in (("lower", lower), ("upper", upper)):
        if value is None:
            raise DomainError(
                f"{name} must be a number, got None: Numeric needs lower and upper, or edges. "
                "Declare the range that is publicly known; values beyond it are clipped. If nobody "
                "knows it, leave out both: a synthesizer can find it, for a part of epsilon."
            )
    low, high = as_float(lower, "lower"), as_float(upper, "upper")
    if low > high or (low == high and not integer):
        raise DomainError(f"Numeric needs lower < upper, got lower={lower!r} and upper={upper!r}.")
    if integer:
        return as_int(lower, "lower"), as_int(upper, "upper")
    return low, high


def declared_special(given: Any, integer: bool) -> tuple[float, ...]:
    """The special values as plain numbers, in the declared order."""
    if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
        raise DomainError(f"special must be a list of numbers, such as [0, 999], got {given!r}.")
    values = tuple(
        as_int(value, "A special value of integer=True")
        if integer
        else as_float(value, "A special value") + 0.0
        for value in given
    )
    repeated = [value for value in set(values) if values.count(value) > 1]
    if repeated:
        raise DomainError(f"special values must differ, but {some(repeated)} is repeated.")
    if len(values) > _MOST_SPECIAL:
        raise DomainError(
            f"special takes at most {_MOST_SPECIAL} values, got {len(values)}. Use a Categorical "
            "for columns with a list of values."
        )
    return values


# --- binned: labels and groups of the bins and special values of an attribute

# From this many bins on, intervals that grow with the distance from 0 are offered.
_LOG_BINS = 128


class Binned(Attribute):
    """Labels and groups of bins, special values and the missing cell: a part of `Numeric`."""

    lower: float
    upper: float
    bins: int
    integer: bool
    scale: str = "linear"
    special: tuple[float, ...] = ()
    _edges: NDArray[Any] | None = None

    @property
    def n_values(self) -> int:
        """Number of bins and special values."""
        return self.bins + len(self.special)

    @property
    def n_alone(self) -> int:  # noqa: D102
        return len(self.special) + self.nullable

    @property
    def one_each(self) -> bool:
        """Whether there is a bin for each integer."""
        return self.integer and self.bins == self.upper - self.lower + 1

    @property
    def uneven(self) -> bool:
        """Whether the bins follow from ``edges`` or a ``scale``."""
        return self._edges is not None

    @property
    def _bins(self) -> EvenBins | UnevenBins:
        if self._edges is not None:
            return UnevenBins(self._edges)
        return EvenBins(self.lower, self.upper, self.bins, self.integer)

    @property
    def edges(self) -> NDArray:
        """Bin j is ``[edges[j], edges[j + 1])``: array of shape (bins + 1,).

        float64, the last edge being ``upper``, which belongs to the last bin; for an integer
        attribute int64, the last edge being ``upper + 1``.
        """
        return self._bins.edges_at(np.arange(self.bins + 1))

    def labels(self) -> list[str]:  # noqa: D102
        if self.one_each:
            texts = [str(value) for value in self.edges[:-1]]
        else:
            edges = self._edge_texts(np.arange(self.bins + 1))
            texts = [f"[{low}, {high})" for low, high in zip(edges[:-1], edges[1:], strict=True)]
            if not self.integer:
                texts[-1] = texts[-1][:-1] + "]"
        return texts + self._special_labels() + [MISSING_LABEL] * self.nullable

    def _edge_texts(self, positions: IntArray) -> list[str]:
        edges = self._bins.edges_at(positions).tolist()
        if self.scale != "linear" and not self.integer:
            # Edges of a scale are not round: six digits, if these tell them apart.
            all_edges = self.edges
            if (np.diff(all_edges) > 2e-6 * np.abs(all_edges[1:])).all():
                edges = [float(f"{edge:.6g}") for edge in edges]
        return [digits(edge) for edge in edges]

    def _special_labels(self) -> list[str]:
        return [digits(value) for value in self.special]

    def span_label(self, start: int, stop: int) -> str:
        """Text for the values of the bins from ``start`` up to ``stop``, exclusive."""
        closed = stop == self.bins and not self.integer
        low, high = self._edge_texts(np.array([start, stop]))
        return f"[{low}, {high}{']' if closed else ')'}"

    def hierarchy(self) -> tuple[Taxonomy, IntArray]:  # noqa: D102
        return Taxonomy.dyadic(self), np.arange(self.bins)

    def _families(
        self, limit: int, against_rest: bool
    ) -> Iterator[list[tuple[IntArray, list[str]]]]:
        limit -= len(self.special)
        finest = []
        for family in self._bin_families(limit):
            yield [self._with_special(groups, texts) for groups, texts in family]
            finest += [groups for groups, _ in family[-1:]]
        if against_rest and limit > 1:
            for groups in finest:
                for cut in range(1, int(groups[-1]) + 1):
                    yield [self._with_special(*self._spans((groups >= cut).astype(np.int64)))]

    def _bin_families(self, limit: int) -> Iterator[list[tuple[IntArray, list[str]]]]:
        codes = np.arange(self.bins, dtype=np.int64)
        yield [self._spans(groups) for groups in halvings(codes, self.bins, limit)]
        crowded = self.upper >= 0 and self.lower <= self.upper / 100
        if self._edges is not None or self.bins < _LOG_BINS or not crowded:
            return
        # In a finely divided range from about 0 (or below) to a large number, values often crowd
        # near 0: money, durations. Positions are on a scale that is linear within each octave of
        # the distance from 0 in bins: 0, 1, 2, 4, 8, ... bins away are equally far apart.
        zero = int(self._bins.encode(np.clip(np.zeros(1), self.lower, self.upper))[0])
        away = np.abs(codes - zero)
        octave = np.frexp(away.astype(np.float64))[1]
        start = np.where(away > 0, np.exp2(octave - 1.0), 0.0)
        position = octave + np.where(away > 0, (away - start) / np.maximum(start, 1.0), 0.0)
        position *= np.where(codes < zero, -1, 1)
        # A left edge belongs to the interval on its right, on both sides of 0.
        span = position[-1] + 1 - position[0]
        levels = []
        for depth in range(1, (limit if limit > 1 else 1).bit_length()):
            groups = np.floor((position - position[0]) / span * 2**depth).astype(np.int64)
            groups = np.unique(groups, return_inverse=True)[1].astype(np.int64)
            levels.append(self._spans(groups))
        yield levels

    def equal_parts(self, n_parts: int) -> Level:
        """Merge the bins into ``n_parts`` groups, as equal as possible.

        Parameters
        ----------
        n_parts : int
            At most the number of bins. Special values and the missing cell are further groups.
        """
        codes = np.arange(self.bins, dtype=np.int64)
        groups, texts = self._with_special(*self._spans(codes * n_parts // self.bins))
        if self.nullable:
            return Level(np.append(groups, len(texts)), [*texts, MISSING_LABEL])
        return Level(groups, texts)

    def _with_special(self, groups: IntArray, texts: list[str]) -> tuple[IntArray, list[str]]:
        """Groups of bins, and each special value as a group of its own."""
        if not self.special:
            return groups, texts
        own = len(texts) + np.arange(len(self.special))
        return np.concatenate([groups, own]), texts + self._special_labels()

    def _spans(self, groups: IntArray) -> tuple[IntArray, list[str]]:
        """Groups of consecutive bins with their labels."""
        starts = run_starts(groups)
        stops = np.append(starts[1:], self.bins)
        if self.one_each:
            values = (int(self.lower) + starts, int(self.lower) + stops - 1)
            texts = [
                str(low) if low == high else f"{low} to {high}"
                for low, high in zip(*(part.tolist() for part in values), strict=True)
            ]
        else:
            texts = [
                self.span_label(low, high)
                for low, high in zip(starts.tolist(), stops.tolist(), strict=True)
            ]
        return groups, texts


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
def lattice_edges(lower: float, upper: float, least: Fraction = Fraction(0)) -> FloatArray:
    """Edges of at most `MOST_BINS` bins from ``lower`` to ``upper``; cannot be changed.

    Parameters
    ----------
    lower, upper : float
        ``lower < upper``, both finite.
    least : Fraction, default=0
        Least width of a bin: the distance of the numbers of a grid.
    """
    low, high = Fraction(lower), Fraction(upper)
    largest = max(abs(low), abs(high))
    # Edges must differ as floats.
    least = max(least, 8 * Fraction(float(np.spacing(max(abs(lower), abs(upper))))))
    fine = max((high - low) / MOST_BINS, least)
    for decades in _DECADES:
        near = max(_at_most(largest / (_PARTS * 10**decades)), _at_least(least))
        for far in range(_at_least(fine), _at_least(largest / _PARTS) + 1):
            pieces = list(_pieces(low, high, min(near, far), far))
            if sum(last - first + 1 for first, last, _ in pieces) < MOST_BINS:
                return _edges(lower, upper, pieces)
    raise AssertionError("one width for all bins fits always")


def _width(index: int) -> Fraction:
    """..., 0.5, 1, 2, 5, 10, ...; 1 at 0."""
    power, digit = divmod(index, 3)
    return (1, 2, 5)[digit] * Fraction(10) ** power


def _at_most(x: Fraction) -> int:
    """Index of the largest width that is at most x."""
    # The logarithm is near; whole numbers decide.
    index = 3 * (len(str(x.numerator)) - len(str(x.denominator)) + 1)
    while _width(index) > x:
        index -= 1
    return index


def _at_least(x: Fraction) -> int:
    """Index of the smallest width that is at least x."""
    index = _at_most(x)
    return index if _width(index) == x else index + 1


def _pieces(low: Fraction, high: Fraction, near: int, far: int) -> Iterator[tuple[int, int, int]]:
    """Edges between low and high, as multiples from first to last of the width of an index.

    From 0 the widths are that of ``near``, from 50 times a width on that one, up to that of
    ``far``; on both sides of 0.
    """
    for index in range(near, far + 1):
        width = _width(index)
        start = _PARTS if index > near else 0
        # The end of a piece is the start of the next.
        end = math.inf if index == far else _PARTS * _width(index + 1) / width - 1
        for sign, left, right in ((1, low, high), (-1, -high, -low)):
            # 0 is on the first side alone.
            first = max(start, int(sign < 0), math.floor(left / width) + 1)
            last = int(min(end, math.ceil(right / width) - 1))
            if first <= last:
                yield (first, last, index) if sign > 0 else (-last, -first, index)


def _edges(lower: float, upper: float, pieces: list[tuple[int, int, int]]) -> FloatArray:
    inner: list[tuple[float, float]] = []
    for first, last, index in pieces:
        width = _width(index)
        # A quotient of whole numbers is the float nearest to the decimal number.
        numbers = (k * width.numerator / width.denominator for k in range(first, last + 1))
        inner += [(number, float(width)) for number in numbers]
    inner.sort()
    # No sliver at an end: its records lie in the bin beside it.
    while inner and inner[0][0] - lower < inner[0][1] / 2:
        del inner[0]
    while inner and upper - inner[-1][0] < inner[-1][1] / 2:
        del inner[-1]
    edges = np.array([lower, *(number for number, _ in inner), upper])
    edges.setflags(write=False)
    return edges


@functools.cache
def exponent_edges() -> FloatArray:
    """0 and 1, 2 and 5 times all powers of ten from 1e-100 to 1e100, of both signs.

    Cells of numbers of about the same size, for a column whose range is not known.
    """
    ends = [float(f"{digit}e{power}") for power in range(-100, 100) for digit in (1, 2, 5)]
    edges = np.array([*(-end for end in [1e100, *ends[::-1]]), 0.0, *ends, 1e100])
    edges.setflags(write=False)
    return edges
