"""Readings: maps from outputs to integer codes, among which events are chosen.

A reading is the bin of a number, a frequent value, the structure of a mixed output, or a tuple of
readings. `_events` chooses their bins from trials.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from .._validation import BoolArray, FloatArray, IntArray
from ._trials import Outputs, Raised, Vocabulary

LARGEST = np.finfo(float).max


@dataclass(frozen=True)
class Column:
    """One number of the output."""

    index: int
    name: str

    def __call__(self, outputs: Outputs) -> NDArray[Any]:
        return outputs.column(self.index)


@dataclass
class Statistic:
    """A number computed from the row of numbers."""

    name: str
    compute: Callable[[NDArray[Any]], NDArray[Any]]
    d: int

    def __call__(self, outputs: Outputs) -> NDArray[Any]:
        rows = outputs.numbers[:, : self.d].astype(float)
        if rows.shape[1] < self.d:
            missing = self.d - rows.shape[1]
            rows = np.pad(rows, ((0, 0), (0, missing)), constant_values=np.nan)
        return np.concatenate(
            [self.compute(rows[i : i + 200_000]) for i in range(0, len(rows), 200_000)]
            or [np.empty(0)]
        )


class Reading:
    """A map from outputs to integer codes."""

    name: str
    # Whether an event of it cannot be seen in an output.
    opaque = False

    def __call__(self, outputs: Outputs) -> IntArray:
        raise NotImplementedError

    def describe(self, codes: IntArray) -> str:
        """A set of codes in words."""
        raise NotImplementedError


class Binned(Reading):
    """The bin of a number; bin 0 holds NaN, bin i the numbers from the i-1st to the ith cut."""

    def __init__(self, statistic: Any, cuts: FloatArray) -> None:
        self.statistic = statistic
        self.cuts = cuts
        self.integer = bool(np.all(cuts == np.rint(cuts)) and np.all(np.diff(cuts) == 1))
        self.name = statistic.name
        self.opaque = isinstance(statistic, Statistic)
        self.size = len(cuts) + 2

    def __call__(self, outputs: Outputs) -> IntArray:
        values = self.statistic(outputs)
        codes = np.searchsorted(self.cuts, values, side="right") + 1
        if values.dtype.kind == "f":
            codes[np.isnan(values)] = 0
        return codes

    def describe(self, codes: IntArray) -> str:
        chosen = np.zeros(self.size, dtype=bool)
        chosen[codes] = True
        edges = np.concatenate([[-np.inf], self.cuts, [np.inf]])
        pieces = ["NaN"] if chosen[0] else []
        starts = np.flatnonzero(np.diff(np.concatenate([[False], chosen[1:], [False]])))
        for first, last in starts.reshape(-1, 2):
            low, high = edges[first], edges[last]
            if low == np.inf or high == -LARGEST:
                pieces.append("= inf" if low > 0 else "= -inf")
            elif high == np.nextafter(low, np.inf) or (self.integer and high == low + 1):
                pieces.append(f"= {low:.6g}")
            elif np.isinf(low) and np.isinf(high):
                pieces.append("any number")
            elif np.isinf(low):
                pieces.append(f"< {high:.6g}")
            elif np.isinf(high):
                pieces.append(f">= {low:.6g}")
            else:
                pieces.append(f"in [{low:.6g}, {high:.6g})")
        shown = " or ".join(pieces[:4])
        more = f" or {len(pieces) - 4} more intervals" if len(pieces) > 4 else ""
        return f"{self.name} {shown}{more}"


class Atoms(Reading):
    """Single values, which distinguish outputs that lie on a lattice of their own."""

    def __init__(self, statistic: Any, values: FloatArray) -> None:
        self.statistic = statistic
        self.values = values
        self.name = f"exact value of {statistic.name}"

    def __call__(self, outputs: Outputs) -> IntArray:
        values = self.statistic(outputs)
        place = np.minimum(np.searchsorted(self.values, values), len(self.values) - 1)
        return np.where(self.values[place] == values, place + 1, 0)

    def describe(self, codes: IntArray) -> str:
        values = [f"{self.values[code - 1]:.6g}" if code else "another value" for code in codes]
        return f"{self.statistic.name} is {_some(values)}"


class Structure(Reading):
    """Exceptions, strings, keys and lengths; ``coarse`` forgets an exception's message."""

    def __init__(self, vocabulary: Vocabulary, coarse: bool) -> None:
        self.vocabulary = vocabulary
        self.coarse = coarse
        self.name = "exception" if coarse else "structure"
        self._first: dict[Any, int] = {}

    def __call__(self, outputs: Outputs) -> IntArray:
        if not self.coarse:
            return outputs.structure
        kinds = [token.kind if isinstance(token, Raised) else None for token in self.vocabulary]
        merged = [self._first.setdefault(kind, len(self._first)) for kind in kinds]
        return np.array(merged, dtype=np.int64)[outputs.structure]

    def describe(self, codes: IntArray) -> str:
        if self.coarse:
            kinds = list(self._first)
            return _some([f"raises {kinds[c]}" if kinds[c] else "does not raise" for c in codes])
        tokens = list(self.vocabulary)
        return f"output is {_some([_show(tokens[code]) for code in codes])}"


@dataclass(eq=False)
class Tuple(Reading):
    """Several readings at once."""

    parts: Sequence[Any]
    name: str
    opaque: bool = False

    def __call__(self, outputs: Outputs) -> IntArray:
        # A mixed radix with wrap-around: collisions merge outputs, which is harmless here.
        total = np.zeros(len(outputs), dtype=np.uint64)
        for part in self.parts:
            radix = getattr(part, "size", 0) or 1_000_003
            total = total * np.uint64(radix) + part(outputs).astype(np.uint64)
        return total.view(np.int64)

    def describe(self, codes: IntArray) -> str:
        binned = all(isinstance(part, Binned) for part in self.parts)
        if binned and math.prod(part.size for part in self.parts) < 2**63:
            return f"({', '.join(p.name for p in self.parts)}) is {_some(self._rows(codes))}"
        return f"{self.name} is one of {len(codes)}"

    def _rows(self, codes: IntArray) -> list[str]:
        rows = []
        for code in codes[:4]:
            rest, cells = int(code), []
            for part in reversed(self.parts):
                rest, digit = divmod(rest, part.size)
                cells.append(
                    part.describe(np.array([digit]))[len(part.name) + 1 :].removeprefix("= ")
                )
            rows.append(f"({', '.join(reversed(cells))})")
        return rows + [""] * (len(codes) - len(rows))


class Given(Reading):
    """An event given by the user."""

    def __init__(self, contains: Callable[[Any], Any], vectorised: bool) -> None:
        self.contains = contains
        self.vectorised = vectorised
        self.name = getattr(contains, "__name__", "given event")

    def __call__(self, outputs: Outputs) -> IntArray:
        if self.vectorised and isinstance(outputs.raw, np.ndarray):
            inside = np.asarray(self.contains(outputs.raw))
            if inside.shape != (len(outputs),):
                raise ValueError(
                    f"Event {self.name!r} must give one truth value for each of the "
                    f"{len(outputs)} outputs, got shape {inside.shape}."
                )
        else:
            inside = np.array(
                [not isinstance(row, Raised) and bool(self.contains(row)) for row in outputs.raw]
            )
        return inside.astype(np.int64)

    def describe(self, codes: IntArray) -> str:
        return self.name if 1 in codes else f"not {self.name}"


def _some(items: list[str]) -> str:
    shown = [item for item in items[:3] if item]
    more = f" or one of {len(items) - len(shown)} more" if len(items) > len(shown) else ""
    return " or ".join(shown) + more


def _show(token: Any) -> str:
    text = _spell(token)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _spell(token: Any) -> str:
    if isinstance(token, Raised):
        return f"{token.kind}({token.message!r})"
    if isinstance(token, tuple) and token and token[0] == "value":
        return repr(token[1])
    if isinstance(token, tuple) and token and token[0] == "sequence":
        return f"({', '.join(_spell(part) for part in token[1:])})"
    if isinstance(token, tuple) and len(token) == 2 and token[0] == "array":
        return f"an array of shape {token[1]}"
    return "a number" if token == "number" else repr(token)


# --- readings of the representation of a number, not its size: divisibility and bits of floats
#
# Noise of any scale hides the size of a number. It does not hide the lattice on which it lies: a
# noisy sum divided by the exact number of records is a multiple of 1/N, and a float ``value +
# noise`` reaches only some doubles, which depend on this value. The readings here test for that.
# The lattices and formulas to try are learned from a first part of the trials and from the sizes
# and values of the two data sets; only readings whose codes differ between the sides there are
# added to the search. Like all readings, they are measured on separate trials.

_ROWS = 10_000  # trials on each side that decide which readings are added
_SAMPLE = 128  # numbers on each side from which lattices are learned
_NUMBERS = 8  # numbers of one output that are examined in this way
_LOOKED_UP = 2  # numbers of one output that are compared with all earlier ones
_KEEP = 6  # largest number of readings that are added
_CHANCE = 1e-4  # largest p-value of a reading that is added
_FEW = 512  # up to this many values have a bin each, so that nothing is lost
_MODULI = (16, 9, 5, 7, 11, 13)
_EXACT = 2.0**53  # above this, doubles skip integers


def anchors(*datasets: Any) -> list[float]:
    """Numbers that a mechanism may have used exactly: sizes of the data, sums, single values."""
    found: list[float] = []
    for data in datasets:
        parts = data if isinstance(data, tuple) else (data,)
        for part in parts[:8]:
            if hasattr(part, "__len__") and not isinstance(part, str | bytes):
                found.append(float(len(part)))
            try:
                values = np.asarray(part, dtype=float).ravel()
            except (TypeError, ValueError):
                continue
            if 0 < len(values) <= 100_000:
                found += [*np.unique(values)[:4].tolist(), float(values.sum())]
    return [value for value in dict.fromkeys(found) if math.isfinite(value)][:12]


class _OfColumn(Reading):
    """A reading of one column; subclasses give codes below ``size`` for an array of numbers."""

    def __init__(self, column: Any) -> None:
        self.column = column
        self.name = column.name

    def __call__(self, outputs: Outputs) -> IntArray:
        return self.codes(self.column(outputs))

    def codes(self, x: NDArray[Any]) -> IntArray:
        raise NotImplementedError

    def spell(self, code: int) -> str:
        raise NotImplementedError

    def describe(self, codes: IntArray) -> str:
        return f"{self.name} {_some([self.spell(int(code)) for code in codes])}"


class _Marks(_OfColumn):
    """Several yes-or-no questions about a number; the code has a bit for each."""

    def __init__(
        self, column: Any, questions: Sequence[tuple[str, Callable[[NDArray[Any]], NDArray[Any]]]]
    ) -> None:
        super().__init__(column)
        self.questions = questions
        self.size = 2 ** len(questions)

    def codes(self, x: NDArray[Any]) -> IntArray:
        total = np.zeros(len(x), dtype=np.int64)
        with np.errstate(all="ignore"):
            for i, (_, holds) in enumerate(self.questions):
                total |= holds(x).astype(np.int64) << i
        return total

    def spell(self, code: int) -> str:
        words = [
            f"is {'' if code >> i & 1 else 'not '}{what}"
            for i, (what, _) in enumerate(self.questions)
        ]
        return " and ".join(words)


class _Residue(_OfColumn):
    """Class of a number modulo ``modulus`` times ``pitch``; other numbers have a separate class."""

    def __init__(self, column: Any, pitch: Fraction, modulus: int) -> None:
        super().__init__(column)
        self.pitch = pitch
        self.modulus = modulus
        self.size = modulus + 1

    def codes(self, x: NDArray[Any]) -> IntArray:
        with np.errstate(all="ignore"):
            k, on = _multiples(x, self.pitch)
        rest = np.zeros(len(x), dtype=np.int64)
        rest[on] = np.mod(k[on], self.modulus).astype(np.int64)
        return np.where(on, rest, self.modulus)

    def spell(self, code: int) -> str:
        if code == self.modulus:
            return f"is not a multiple of {self.pitch}"
        if self.pitch == 1:
            return f"= {code} modulo {self.modulus}"
        return f"is {code} modulo {self.modulus} in units of {self.pitch}"


class _LowestBit(_OfColumn):
    """Place of the lowest bit that is set: the largest power of two that divides the number."""

    size = 2200

    def codes(self, x: NDArray[Any]) -> IntArray:
        mantissa, exponent = _taken_apart(x)
        place = exponent + _trailing_zeros(mantissa)
        return np.where(mantissa == 0, 0, np.clip(place + 1100, 1, self.size - 1))

    def spell(self, code: int) -> str:
        return f"has its lowest bit at 2**{code - 1100}" if code else "has no bits"


class _LastBits(_OfColumn):
    """The last bits of the mantissa, in the precision that the outputs have."""

    def __init__(self, column: Any, shift: int, width: int) -> None:
        super().__init__(column)
        self.shift = shift
        self.width = width
        self.size = 2**width

    def codes(self, x: NDArray[Any]) -> IntArray:
        mantissa, _ = _taken_apart(x)
        return (mantissa >> self.shift) & (self.size - 1)

    def spell(self, code: int) -> str:
        return f"has a mantissa that ends in {code:0{self.width}b}"


class _Seen(_OfColumn):
    """Whether the very same number occurred before, on which of the sides.

    Doubles of a good generator hardly ever recur; those made from 24 or 32 random bits do, and only
    those that can be reached from the given value.
    """

    size = 4
    opaque = True

    def __init__(self, column: Any, here: NDArray[Any], there: NDArray[Any]) -> None:
        super().__init__(column)
        self.sides = [np.unique(side[np.isfinite(side)]) for side in (here, there)]

    def codes(self, x: NDArray[Any]) -> IntArray:
        total = np.zeros(len(x), dtype=np.int64)
        for i, values in enumerate(self.sides):
            if len(values):
                place = np.minimum(np.searchsorted(values, x), len(values) - 1)
                total |= (values[place] == x).astype(np.int64) << i
        return total

    def spell(self, code: int) -> str:
        where = ("neither data set", "the dataset only", "the neighbour only", "both data sets")
        return f"was seen before on {where[code]}"


def written_readings(
    fitting: tuple[Outputs, ...],
    columns: Sequence[Any],
    numbers: Sequence[float],
    representation: bool,
) -> list[Any]:
    """Readings whose codes differ between the two sides of ``fitting``, most informative first.

    Parameters
    ----------
    fitting : pair of Outputs
    columns : sequence of columns
        The single numbers of an output.
    numbers : sequence of float
        See `anchors`.
    representation : bool
        Also the bits of floating-point numbers.
    """
    found: list[tuple[float, int, Any]] = []
    for column in columns[:_NUMBERS]:
        sides = [column(part[:_ROWS]) for part in fitting]
        sides = [side[np.isfinite(side)] for side in sides]
        if min(map(len, sides)) < 100 or len(np.unique(np.concatenate(sides))) <= _FEW:
            continue
        readings = _of_lattices(column, sides, numbers)
        if representation and all(side.dtype.kind == "f" for side in sides):
            readings += _of_bits(column, sides, numbers)
        both = np.concatenate(sides)
        side = np.repeat([0, 1], [len(part) for part in sides])
        bins = np.searchsorted(np.quantile(both, np.arange(1, 16) / 16), both)
        for reading in readings:
            chance = _chance(reading.codes(both), reading.size, bins, side)
            if chance < _CHANCE:
                found.append((chance, len(found), reading))
    return [reading for *_, reading in sorted(found, key=lambda entry: entry[:2])[:_KEEP]]


def recurrences(ranking: tuple[Outputs, ...], columns: Sequence[Any]) -> list[Any]:
    """Readings that look numbers up among those of ``ranking``, if any of these recur."""
    readings = []
    for column in columns[:_LOOKED_UP]:
        here, there = (side[np.isfinite(side)] for side in map(column, ranking))
        some = np.concatenate([here[:_ROWS], there[:_ROWS]])
        if len(some) < 100 or np.all(some == np.rint(some)) or len(np.unique(some)) <= _FEW:
            continue
        if len(here) + len(there) - len(np.unique(np.concatenate([here, there]))) >= 10:
            readings.append(_Seen(column, here, there))
    return readings


def _chance(codes: IntArray, size: int, bins: IntArray, side: IntArray) -> float:
    """p-value of the chi-squared test that, in each bin, codes are independent of the side."""
    width = int(bins.max()) + 1
    cells = ((side * width) + bins) * size + codes
    seen = np.bincount(cells, minlength=2 * width * size).reshape(2, width, size)
    # Rare codes of a bin are merged.
    rare = seen.sum(axis=0) < 20
    seen = np.dstack([np.where(rare, 0, seen), np.where(rare, seen, 0).sum(axis=2)])
    share = seen.sum(axis=2) / np.maximum(seen.sum(axis=(0, 2)), 1)
    expected = share[:, :, None] * seen.sum(axis=0)
    kept = expected.min(axis=0) > 5
    statistic = np.sum((seen - expected)[:, kept] ** 2 / expected[:, kept])
    freedom = np.count_nonzero(kept) - np.count_nonzero(kept.any(axis=1))
    return float(chdtrc(freedom, statistic)) if freedom > 0 else 1.0


# Lattices


def _multiples(x: NDArray[Any], pitch: Fraction) -> tuple[NDArray[Any], BoolArray]:
    """Which multiple of ``p / q`` each number is, and whether it is one, up to rounding."""
    p, q = pitch.numerator, pitch.denominator
    whole = x.dtype.kind in "iu"
    if x.dtype != np.uint64:
        x = x.astype(np.int64 if whole else float)
    if q == 1:
        # Exact, for integers and for floats of any size.
        on = np.fmod(x, p) == 0
        return np.where(on, x // p if whole else np.rint(x / p), 0), on
    x = x.astype(float)
    k = np.rint(x * q / p)
    near = np.abs(k * p / q - x) <= 4 * np.spacing(np.abs(x))
    # A lattice as fine as the doubles themselves holds every number.
    return k, near & (np.abs(x) * 2.0**-48 < p / q)


def _of_lattices(column: Any, sides: Sequence[NDArray[Any]], numbers: Sequence[float]) -> list[Any]:
    """Divisibility by what each side seems to be divisible by, and classes modulo small numbers."""
    sizes = [int(v) for v in numbers if v == int(v) and 2 <= v <= 1e9]
    learned = [pitch for side in sides for pitch in _pitches(side)]
    pitches = [*learned, *map(Fraction, sizes), *(Fraction(1, n) for n in sizes)]
    pitches = [pitch for pitch in dict.fromkeys(pitches) if pitch != 1]
    questions = [
        (f"a multiple of {pitch}", lambda x, pitch=pitch: _multiples(x, pitch)[1])
        for pitch in pitches
    ]
    readings: list[Any] = [_Marks(column, [question]) for question in questions]
    if len(learned) > 1:
        readings.append(_Marks(column, questions[: min(len(learned), 6)]))
    units = dict.fromkeys([*_pitches(np.concatenate([s[:_SAMPLE] for s in sides])), Fraction(1)])
    moduli = [*_MODULI, *(n for n in sizes if n <= 4096 and n not in (2, 3, 4, 8))]
    readings += [_Residue(column, unit, m) for unit in units for m in dict.fromkeys(moduli)]
    return readings


def _pitches(values: NDArray[Any]) -> list[Fraction]:
    """Pitches of lattices that hold most of the values, the likeliest first."""
    step = max(1, len(values) // _SAMPLE)
    ratios = [_simplest(value) for value in values[::step][:_SAMPLE].tolist() if value]
    known = [ratio for ratio in ratios if ratio is not None]
    if len(known) < 0.5 * len(ratios) or len(known) < 8:
        return []
    # A multiple of 1/N in lowest terms has a divisor of N as its denominator.
    below = [q for q, _ in Counter(each.denominator for each in known).most_common(3)]
    common = math.lcm(*below)
    if common < 10**9:
        below.append(common)
    found: list[Fraction] = []
    for q in dict.fromkeys(below):
        tops = [int(each * q) for each in known if q % each.denominator == 0]
        pairs = Counter(math.gcd(a, b) for a, b in zip(tops, tops[1:], strict=False))
        found += [Fraction(p, q) for p, _ in pairs.most_common(2) if 0 < p < _EXACT]
    return list(dict.fromkeys(found))[:4]


def _simplest(value: float) -> Fraction | None:
    """The fraction with the least denominator that rounds to ``value``; None if that may be chance.

    Every number is near some fraction with a large denominator. A fraction is accepted only if the
    next one of the same size is far away.
    """
    if isinstance(value, int):
        return Fraction(value)
    ulp = math.ulp(value)
    limit = min(0.03 / math.sqrt(ulp), 1e6)
    # Convergents of the continued fraction.
    p0, q0, p1, q1 = 0, 1, 1, 0
    rest = value
    while True:
        whole = math.floor(rest)
        p0, q0, p1, q1 = p1, q1, whole * p1 + p0, whole * q1 + q0
        if q1 > limit:
            return None
        if abs(p1 / q1 - value) <= 2 * ulp:
            return Fraction(p1, q1)
        if rest - whole < 1e-300:
            return None
        rest = 1 / (rest - whole)


# Bits of floating-point numbers


def _of_bits(column: Any, sides: Sequence[NDArray[Any]], numbers: Sequence[float]) -> list[Any]:
    both = np.concatenate(sides)
    mantissa, _ = _taken_apart(both)
    shift = int(_trailing_zeros(mantissa[mantissa != 0]).min())
    readings: list[Any] = [
        _LowestBit(column),
        *(_LastBits(column, shift, width) for width in (1, 8)),
    ]
    if shift > 0 and both.dtype == float:
        # Not of full precision, so not a rounded sum or quotient of doubles.
        return readings
    divisors = dict.fromkeys([*(abs(v) for v in numbers), 3.0, 5.0, 7.0, 10.0])
    for c in divisors:
        if c not in (0.0, 1.0) and math.frexp(c)[0] != 0.5:
            product = f"a double times {c:g}, rounded"
            quotient = f"a double divided by {c:g}, rounded"
            readings.append(_Marks(column, [(product, partial(_is_product, factor=c))]))
            readings.append(_Marks(column, [(quotient, partial(_is_quotient, divisor=c))]))
    return readings + _of_laplace(column, sides, numbers)


def _of_laplace(column: Any, sides: Sequence[NDArray[Any]], numbers: Sequence[float]) -> list[Any]:
    """Whether a number can be ``location + scale * log(uniform)``, for likely formulas."""
    with np.errstate(all="ignore"):
        centre = [float(np.median(side)) for side in sides]
        spread = float(np.mean([np.abs(s - c).mean() for s, c in zip(sides, centre, strict=True)]))
    if not 1e-300 < spread < 1e300:
        return []
    locations = [*numbers, 0.0]
    if spread < 0.1 * math.sqrt(len(sides[0])):
        # The integers that the medians cannot distinguish.
        locations += [float(round(c) + i) for c in centre for i in (0, 1, -1)]
    forms = [(_rounded(spread, digits), True) for digits in (1, 2)]
    forms += [(_rounded(1 / spread, digits), False) for digits in (1, 2)]
    readings = []
    for a in dict.fromkeys(locations):
        for b, times in dict.fromkeys(forms):
            # The right formula explains all numbers of one side.
            with np.errstate(all="ignore"):
                explained = [_reachable(side[:300], a, b, times).mean() for side in sides]
            if max(explained) < 0.9:
                continue
            text = f"{a:g} plus or minus log(u) {'*' if times else '/'} {b:g} of a uniform double u"
            readings.append(
                _Marks(column, [(text, partial(_reachable, location=a, scale=b, times=times))])
            )
    return readings


def _is_product(x: NDArray[Any], factor: float) -> BoolArray:
    """Whether x is a double times ``factor``, rounded."""
    return x / factor * factor == x


def _is_quotient(x: NDArray[Any], divisor: float) -> BoolArray:
    """Whether x is a double divided by ``divisor``, rounded."""
    return x * divisor / divisor == x


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}")


def _reachable(x: NDArray[Any], location: float, scale: float, times: bool) -> BoolArray:
    """Whether ``location`` plus or minus a scaled logarithm of a multiple of 2**-53 rounds to x."""
    x = np.asarray(x, dtype=float)
    distance = np.abs(x - location)
    sign = np.where(x < location, 1.0, -1.0)
    middle = np.rint(np.exp(-distance / scale if times else -distance * scale) * _EXACT)
    found = np.zeros(len(x), dtype=bool)
    for i in (0, 1, -1, 2, -2):
        logarithm = _log(np.clip(middle + i, 1, _EXACT) / _EXACT)
        found |= location + sign * (logarithm * scale if times else logarithm / scale) == x
    return found


# The logarithm of the C library, which generators use; some versions of NumPy's differ in the last
# bit.
_log = np.vectorize(math.log, otypes=[float])


def _taken_apart(x: NDArray[Any]) -> tuple[IntArray, IntArray]:
    """Integer mantissa of 53 bits, without sign, and exponent; zero for what is not finite."""
    x = np.asarray(x, dtype=float)
    fraction, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
    return np.abs(fraction * _EXACT).astype(np.int64), exponent.astype(np.int64) - 53


def _trailing_zeros(mantissa: IntArray) -> IntArray:
    lowest = (mantissa & -mantissa).astype(float)
    return np.where(mantissa == 0, 0, np.frexp(lowest)[1] - 1).astype(np.int64)
