"""Statistics of a release with intervals, from `Release.answer` and `Release.covariances` alone.

A mean, a share, a correlation is a function of a few linear answers. Its interval is that of the
function over simulated releases: the answers plus normal errors of their covariance. No case is
special: a mean of no one has an interval as wide as the range of its column. Counts and sums are
linear and have their own law, `Release.reach`; quantiles invert the intervals of the numbers of
records below.

The q-quantile is the first value x up to which at least a share q of the records lies. A value
stays in the interval if the sum of (1 if at most x, else 0) - q over the records may be zero or
more, and that up to the value before zero or less (R. S. Woodruff, "Confidence intervals for
medians and other position measures", Journal of the American Statistical Association 47, 1952).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import numpy as np
import pandas as pd
from scipy.special import ndtri

from .._validation import BoolArray, FloatArray, IntArray, as_level, as_number, check_choice
from ..domain import Categorical, Domain, Numeric
from ..domain.bins import Points
from ..domain.query import Query, Weights, attribute_of, both, parse, parts_of, weights_of
from ..domain.regions import Region, everything
from ..domain.values import some
from ..hierarchy import without_negatives
from .grouping import Groups, view_of
from .model import Release, roots
from .ranks import categories_below, values_below
from .result import QueryResult

# --- draws: normal numbers that every language finds alike

_DRAWS = 2000
_PRIMES = (2, 3, 5, 7, 11)


@functools.cache
def normal_draws(n: int) -> FloatArray:
    """Evenly spread normal numbers, (n, 2000): by Box and Muller, each with its negative.

    Each row is scaled so that its own 95% interval is that of the normal law.
    """
    step = np.arange(_DRAWS // 2) + 0.5
    uniform = [step / len(step), *(step * math.sqrt(prime) % 1.0 for prime in _PRIMES)]
    found = []
    for u, v in zip(uniform[::2], uniform[1::2], strict=True):
        length = np.sqrt(-2.0 * np.log(u))
        found += [length * np.cos(2.0 * math.pi * v), length * np.sin(2.0 * math.pi * v)]
    draws = np.concatenate([np.stack(found), -np.stack(found)], axis=1)
    scaled: FloatArray = draws * (float(ndtri(0.975)) / _ends(draws)[1])[:, None]
    return scaled[:n]


def _ends(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What leaves a fortieth of each row below and above."""
    tail = 0.025 * (values.shape[1] - 1)
    first, part = int(tail), tail % 1.0
    kept = [first, first + 1, -2 - first, -1 - first]
    a, b, c, d = np.partition(values, kept, axis=1)[:, kept].T
    return a + part * (b - a), d - part * (d - c)


# --- what an interval is meant to cover


class How(TypedDict, total=False):
    """What a user asks for beside a statistic; `Synopsis.count` says what each means."""

    return_interval: bool
    level: float
    interval: str
    population_size: float | None


@dataclass(frozen=True)
class Confidence:
    """What an interval is meant to cover.

    Attributes
    ----------
    level : float
    population : bool, default=False
        Whether it covers sampling too: the records are a random sample of a population.
    size : float, default=inf
        Number of records of the population.
    rules : bool, default=False
        Whether the domain has rules: answers are about the records that satisfy them.
    """

    level: float
    population: bool = False
    size: float = math.inf
    rules: bool = False

    @classmethod
    def asked(
        cls,
        *,
        return_interval: Any = False,
        level: Any = 0.95,
        interval: Any = "noise",
        population_size: Any = None,
        rules: bool = False,
    ) -> Confidence | None:
        """What a user asks for; None where no interval is asked for.

        Raises
        ------
        TypeError, ValueError
            If ``level`` is not between 0 and 1, ``interval`` is another word, or
            ``population_size`` is not a positive number or stands without a population.
        """
        level = as_level(level)
        check_choice(interval, "interval", ("noise", "population"))
        if not return_interval and (interval != "noise" or population_size is not None):
            raise ValueError(
                "interval and population_size say what intervals cover: they need "
                "return_interval=True."
            )
        if population_size is None:
            return cls(level, interval == "population", rules=rules) if return_interval else None
        if interval != "population":
            raise ValueError(
                "population_size says how large the population is that the records are a sample "
                'of: it needs interval="population".'
            )
        size = as_number(population_size, "population_size")
        if not size > 0:
            raise ValueError(f"population_size must be positive, got {population_size!r}.")
        return cls(level, True, size, rules)

    @property
    def quantile(self) -> float:
        """How many standard deviations a normal law stays within at this level."""
        return float(ndtri(0.5 + self.level / 2))

    def left(self, total: float) -> float:
        """Share of the variance over samples with replacement that samples without it have."""
        return 1.0 - min(max(total, 0.0) / self.size, 1.0) if self.population else 0.0

    @property
    def text(self) -> str:
        """What is said of rules and of sampling beside what is said of the noise."""
        about = " It is about the records that satisfy the rules of the domain." * self.rules
        if not self.population:
            return about
        most = "" if math.isinf(self.size) else f" of {self.size:,.0f}"
        return (
            f"{about} The interval also covers sampling, taken as normal: the records are a simple "
            f"random sample of a population{most}."
        )


class Estimates(NamedTuple):
    """Estimates with their errors: an array of each, and what each interval covers."""

    value: FloatArray
    std: FloatArray
    sampling_std: FloatArray
    lower: FloatArray
    upper: FloatArray
    guarantee: Sequence[str]

    @classmethod
    def plain(cls, value: FloatArray) -> Estimates:
        """Without intervals."""
        none = np.full(len(value), np.nan)
        return cls(value, none, none, none, none, [""] * len(value))

    @classmethod
    def joined(cls, parts: Sequence[Estimates]) -> Estimates:
        """One after the other."""
        *arrays, texts = zip(*parts, strict=True)
        return cls._make([*map(np.concatenate, arrays), list(itertools.chain(*texts))])

    def at(self, places: IntArray) -> Estimates:
        """In another order."""
        *arrays, texts = self
        return Estimates._make([*(each[places] for each in arrays), [texts[i] for i in places]])

    def shown(self, as_value: Callable[[FloatArray], Any]) -> list[Any]:
        """Values, both standard deviations, and ends as users see them, such as dates."""
        zero = as_value(np.zeros(1))[0]
        value, std, sampling, lower, upper = map(as_value, self[:5])
        return [value, std - zero, sampling - zero, lower, upper]

    def results(self, as_value: Callable[[FloatArray], Any] | None = None) -> list[QueryResult]:
        """One result for each estimate."""
        shown = [each.tolist() for each in self[:5]] if as_value is None else self.shown(as_value)
        return [
            QueryResult(value, std, lower, upper, text, sampling)
            for value, std, sampling, lower, upper, text in zip(*shown, self.guarantee, strict=True)
        ]

    @property
    def said(self) -> str:
        """What is said of them together: of any."""
        return max(sorted(set(self.guarantee)), key=len)

    def columns(self, as_value: Callable[[FloatArray], Any]) -> dict[str, Any]:
        """Columns of a table."""
        both = self._replace(std=np.hypot(self.std, self.sampling_std))
        _, std, _, lower, upper = both.shown(as_value)
        return {"std_error": std, "lower": lower, "upper": upper}


IN_PROPORTION = " Bins covered in part are taken as covered in proportion."
_BINS = " Numbers may lie anywhere in their bins."
_EVEN = " Inside bins, numbers are taken as spread evenly and independently of other columns."
_NOTHING = " It may be any value that was declared: there are too few records for this noise."


# --- the numbers of columns among the records of a conjunction, as weights of codes


class Numbers(NamedTuple):
    """The numbers of a column, for each code of the measured column that decides it.

    Attributes
    ----------
    axis : int
    mean : ndarray of float64
        Of the numbers that the code stands for, or of those covered by a condition.
    variance : ndarray of float64
        Of numbers that are spread evenly.
    reach : ndarray of float64
        Largest distance of a number from ``mean``.
    span : tuple of float
        Smallest and largest number of the column.
    """

    axis: int
    mean: FloatArray
    variance: FloatArray
    reach: FloatArray
    span: tuple[float, float]

    @classmethod
    def of(cls, column: str, region: Region, domain: Domain) -> Numbers:
        """Of the part of a column that a condition covers."""
        attribute = domain[column]
        share, moment = region.weights, region.moment
        mean = np.divide(moment, share, out=np.zeros(len(share)), where=share > 0)
        variance, reach = np.zeros(len(mean)), np.zeros(len(mean))
        if isinstance(attribute, Numeric):
            bins, held = attribute.bins, attribute.contents
            width = np.diff(np.asarray(attribute.edges, dtype=np.float64)) * share[:bins]
            step = held.grid.step() if isinstance(held, Points) else 0.0
            variance[:bins] = np.maximum(width**2 - step**2, 0.0) / 12.0
            low, high = held.span(np.arange(bins))
            reach[:bins] = np.maximum(high - mean[:bins], mean[:bins] - low) * (share[:bins] > 0)
        structure = domain.structure
        mean, variance, reach = (structure.lifted(column, each) for each in (mean, variance, reach))
        axis = domain.index(structure.base_of(column))
        return cls(axis, mean, variance, reach, span_of(column, domain))

    def power(self, exponent: int, centre: float, scale: float) -> FloatArray:
        """Mean of a power of (number - centre) / scale for each code."""
        m, v = (self.mean - centre) / scale, self.variance / scale**2
        if exponent < 3:
            return m if exponent == 1 else m**2 + v
        return m**3 + 3 * m * v if exponent == 3 else m**4 + 6 * m**2 * v + 1.8 * v**2


def spans_of(attribute: Numeric | Categorical) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest number of each code; of categories their places."""
    if isinstance(attribute, Categorical):
        places = np.arange(attribute.n_values, dtype=np.float64)
        return places, places
    low, high = attribute.contents.span(np.arange(attribute.bins))
    special = np.array(attribute.special, dtype=np.float64)
    return np.append(low, special).astype(np.float64), np.append(high, special).astype(np.float64)


def span_of(column: str, domain: Domain) -> tuple[float, float]:
    """Smallest and largest value that a mean of a column can have."""
    attribute = attribute_of(column, domain)
    if isinstance(attribute, Numeric):
        low, high = spans_of(attribute)
        return float(low.min()), float(high.max())
    region = everything(column, attribute).without_missing
    seen = region.moment[region.weights > 0]
    return float(seen.min()), float(seen.max())


class Selected(NamedTuple):
    """Records of a conjunction that have a number in each of some columns."""

    weights: Weights
    numbers: Sequence[Numbers]

    @classmethod
    def of(cls, regions: Mapping[str, Region], domain: Domain, columns: Sequence[str]) -> Selected:
        """Records of a conjunction; columns are `Numeric`, or have categories that are numbers."""
        told = dict(regions)
        for column in columns:
            attribute = attribute_of(column, domain)
            told[column] = (told.get(column) or everything(column, attribute)).without_missing
        numbers = [Numbers.of(column, told[column], domain) for column in columns]
        return cls(weights_of(told, domain), numbers)

    def ends(self, place: int) -> tuple[float, float]:
        """Smallest and largest number of a column that a record can have."""
        axis, mean, _, reach, (least, most) = self.numbers[place]
        held = self.weights[axis] > 0
        if not held.any():
            return least, most
        low, high = (mean - reach)[held].min(), (mean + reach)[held].max()
        return max(float(low), least), min(float(high), most)

    def times(self, exponents: Sequence[int], centres: Any, scales: Any) -> Weights:
        """Weights times powers of the numbers."""
        product = dict(self.weights)
        powers = zip(self.numbers, exponents, centres, scales, strict=False)
        for of, exponent, centre, scale in powers:
            if exponent:
                product[of.axis] = product[of.axis] * of.power(exponent, centre, scale)
        return product


class Case(tuple[Selected, ...]):
    """Records of disjoint conjunctions."""

    __slots__ = ()

    @classmethod
    def of(cls, query: Any, domain: Domain, columns: Sequence[str]) -> Case:
        """The records of a query with numbers in some columns."""
        return cls(Selected.of(regions, domain, columns) for regions in parts_of(query, domain))

    @property
    def present(self) -> Query:
        """Their number."""
        return Query(tuple(each.weights for each in self))

    @property
    def anywhere(self) -> Query:
        """By how much a sum of the first column is off if all numbers lie at ends of bins."""
        products = []
        for each in self:
            [of] = each.numbers[:1]
            products.append({**each.weights, of.axis: each.weights[of.axis] * of.reach})
        return Query(tuple(products))

    def moment(
        self, exponents: Sequence[int], centres: Any = (0.0, 0.0), scales: Any = (1.0, 1.0)
    ) -> Query:
        """The query for the sum over records of a product of powers of their numbers."""
        return Query(tuple(each.times(exponents, centres, scales) for each in self))

    def ends(self, place: int = 0) -> tuple[float, float]:
        """Smallest and largest number of a column among the records."""
        lows, highs = zip(*(each.ends(place) for each in self), strict=True)
        return min(lows), max(highs)


# --- linear statistics and functions of them


def linear(
    release: Release,
    queries: Sequence[Query],
    value: FloatArray,
    confidence: Confidence,
    sampling: Any = 0.0,
    bounds: tuple[Any, Any] = (0.0, math.inf),
    more: Any = 0.0,
) -> Estimates:
    """Counts and sums with their intervals.

    Parameters
    ----------
    release : Release
    queries : sequence of Query
    value : ndarray of float64
    confidence : Confidence
    sampling : float or ndarray of float64, default=0.0
        Variance over samples with replacement.
    bounds : tuple of float or ndarray
        Smallest and largest possible value.
    more : float or ndarray, default=0.0
        Standard deviation of what else is not known.
    """
    found = release.reach(queries, confidence.level)
    left = np.zeros(len(value))
    if confidence.population:
        left += np.sqrt(np.maximum(sampling, 0.0) * confidence.left(release.total))
    beside = confidence.quantile * np.hypot(left, more)
    below, above = np.hypot(found.below, beside), np.hypot(found.above, beside)
    lower, upper = np.clip(value - below, *bounds), np.clip(value + above, *bounds)
    # Where all of it is beyond what is possible: the end of the law of what is possible.
    tail = -math.log1p(-confidence.level) / confidence.quantile**2
    upper = _nearest(upper, bounds[0], bounds[0] - value, above, tail)
    lower = _nearest(lower, bounds[1], value - bounds[1], below, -tail)
    text = found.guarantee + confidence.text
    return Estimates(value, np.hypot(found.std, more), left, lower, upper, [text] * len(value))


def _nearest(end: FloatArray, bound: Any, past: FloatArray, reach: FloatArray, tail: float) -> Any:
    """Ends of intervals; another one where a value lies further past a bound than it reaches."""
    far = (past >= reach) & (past > 0)
    return np.where(far, bound + tail * reach**2 / np.where(far, past, 1.0), end)


Powers = tuple[int, ...]  # of the numbers of each column


def _terms(statistic: str) -> list[Powers]:
    """Sums over records that a statistic is a function of."""
    if statistic == "mean":
        return [(0,), (1,)]
    if statistic == "std":
        return [(0,), (1,), (2,)]
    return [(0, 0), (1, 0), (0, 1), (2, 0), (0, 2), (1, 1)]


def _spread(statistic: str, drawn: FloatArray, n_columns: int) -> tuple[FloatArray, BoolArray]:
    """A statistic of numbers in units of their range from their sums, and where there is one."""
    known = drawn[0] > 0
    sums = drawn[1:] / np.maximum(drawn[0], 1e-9)
    means = sums[:n_columns]
    if statistic == "mean":
        return means[0], known
    squares = np.maximum(sums[n_columns : 2 * n_columns] - means**2, 0.0)
    if statistic == "std":
        return np.sqrt(squares[0]), known
    found = sums[-1] - means[0] * means[1]
    if statistic == "covariance":
        return found, known
    both = np.sqrt(squares[0] * squares[1])
    return np.divide(found, both, out=np.full_like(found, np.nan), where=both > 0), known


def _without_impossible(found: FloatArray, known: BoolArray) -> BoolArray:
    """Put possible correlations in the place of others, where enough draws of a row have one."""
    possible = known & (np.abs(found) <= 1.0 + _WHOLE)
    enough = possible.sum(axis=1) >= _FEWEST
    for row in np.flatnonzero(enough).tolist():
        other = known[row] & ~possible[row]
        found[row, other] = np.resize(found[row, possible[row]], other.sum())
    return known & enough[:, None]


class Statistics:
    """Statistics of a release, with intervals where a confidence is given.

    Parameters
    ----------
    release : Release
    domain : Domain
    confidence : Confidence or None
    """

    def __init__(self, release: Release, domain: Domain, confidence: Confidence | None) -> None:
        self.release, self.domain, self.confidence = release, domain, confidence

    def counts(self, queries: Sequence[Any]) -> Any:
        """Numbers of records."""
        asked = [parse(query, self.domain) for query in queries]
        value = self.release.answer(asked) if asked else np.zeros(0)
        return self._in_parts(self._counts, asked, value)

    def _in_parts(self, of: Callable[..., Estimates], asked: Sequence[Any], value: Any) -> Any:
        """Linear statistics, with their intervals where there is a confidence."""
        if self.confidence is None or not asked:
            return value
        # The law of the noise in one answer is found exactly, that of many together quickly.
        step = 1 if len(asked) <= _MANY else _AT_ONCE
        parts = (slice(start, start + step) for start in range(0, len(asked), step))
        return Estimates.joined([of(asked[part], value[part]) for part in parts]).results()

    def _counts(self, asked: Sequence[Query], value: FloatArray) -> Estimates:
        """Intervals of numbers of records.

        Over samples of as many records, a count of a share p of them has the variance n p (1 - p).
        A single number of a continuous column has next to no share of its bin: all that this holds
        may be there.
        """
        release, confidence = self.release, self._confidence
        sampling: Any = 0.0
        if confidence.population:
            sampling = value * (1.0 - np.clip(value / max(release.total, 1.0), 0.0, 1.0))
        found = linear(release, asked, value, confidence, sampling)
        at_points = [place for place, query in enumerate(asked) if query.at_points]
        if at_points:
            whole = [asked[place].with_whole_bins for place in at_points]
            more = linear(release, whole, release.answer(whole), confidence)
            found.upper[at_points] = more.upper
        return found

    @property
    def _confidence(self) -> Confidence:
        assert self.confidence is not None
        return self.confidence

    def _sums(self, cases: Sequence[Case], n_columns: int) -> FloatArray:
        """Number of records and sums of each column, (n_cases, 1 + n_columns)."""
        units = [
            [int(place == column) for place in range(n_columns)] for column in range(n_columns)
        ]
        asked = [query for case in cases for query in (case.present, *map(case.moment, units))]
        found = self.release.answer(asked) if asked else np.zeros(0)
        return found.reshape(-1, 1 + n_columns) + 0.0  # without minus zero

    def _off(self, cases: Sequence[Case]) -> FloatArray:
        """Standard deviation of sums of numbers that lie anywhere in their bins, alike in all bins.

        Half of how far they may be off: by itself it makes 95% intervals as wide as that.
        """
        if not any(each.numbers[0].reach.any() for each in cases[0]):
            return np.zeros(len(cases))
        return np.maximum(self.release.answer([case.anywhere for case in cases]), 0.0) / 2.0

    def sums(self, column: str, queries: Sequence[Any]) -> Any:
        """Sums of a column."""
        cases = [Case.of(query, self.domain, [column]) for query in queries]
        return self._in_parts(self._sums_with_ends, cases, self._sums(cases, 1)[:, 1])

    def _sums_with_ends(self, cases: Sequence[Case], value: FloatArray) -> Estimates:
        release, confidence = self.release, self._confidence
        sampling = np.zeros(len(cases))
        if confidence.population:
            squares = release.answer([case.moment([2]) for case in cases])
            sampling = squares - value**2 / max(release.total, 1.0)
        more = self._off(cases)
        low, high = np.array([case.ends() for case in cases]).T
        bounds = np.where(low < 0, -np.inf, 0.0), np.where(high > 0, np.inf, 0.0)
        asked = [case.moment([1]) for case in cases]
        found = linear(release, asked, value, confidence, sampling, bounds, more)
        text = found.guarantee[0] + _BINS * bool(more.any())
        text += IN_PROPORTION * any(case.present.cuts for case in cases)
        return found._replace(guarantee=[text] * len(cases))

    def moments(self, statistic: str, columns: Sequence[str], queries: Sequence[Any]) -> Any:
        """Means, standard deviations, covariances or correlations of the records of each query.

        Raises
        ------
        ValueError
            If the columns are not different, or one holds dates, which have a mean only.
        """
        domain = self.domain
        if len(set(columns)) < len(columns):
            raise ValueError(f"The columns must be different, got {columns[0]!r} twice.")
        for column in columns:
            if statistic != "mean" and column in domain and not domain[column].summable:
                raise ValueError(
                    f"Column {column!r} holds dates. Ask for its mean, its quantiles, or counts of "
                    "ranges."
                )
        cases = [Case.of(query, domain, columns) for query in queries]
        found = self._moments(statistic, cases, self._sums(cases, len(columns)))
        as_value = None if domain[columns[0]].summable else domain[columns[0]].shown
        if self.confidence is None or not cases:
            return found.value if as_value is None else as_value(found.value)
        return found.results(as_value)

    def _moments(self, statistic: str, cases: Sequence[Case], sums: FloatArray) -> Estimates:
        """Statistics from numbers of records and sums; intervals where there is a confidence."""
        release, terms, n_columns = self.release, _terms(statistic), sums.shape[1] - 1
        count, totals = sums[:, 0], sums[:, 1:]
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.where(count[:, None] > 0, totals / count[:, None], np.nan)
        if not cases:
            return Estimates.plain(count)
        clipped = np.clip(means[:, 0], *cases[0][0].numbers[0].span)
        if statistic == "mean" and self.confidence is None:
            return Estimates.plain(clipped)
        ends = np.array([[case.ends(place) for place in range(n_columns)] for case in cases])
        low, high = ends[:, :, 0], ends[:, :, 1]
        scale = np.where(high > low, high - low, 1.0)
        centre = np.where(np.isnan(means), (low + high) / 2, np.clip(means, low, high))
        places = list(zip(cases, centre.tolist(), scale.tolist(), strict=True))

        def centred(powers: Sequence[Powers]) -> list[list[Query]]:
            return [[case.moment(each, *units) for each in powers] for case, *units in places]

        def answered(powers: Sequence[Powers]) -> FloatArray:
            asked = list(itertools.chain.from_iterable(centred(powers)))
            return release.answer(asked).reshape(len(cases), -1) if asked else sums[:, :0]

        off = (totals - centre * count[:, None]) / scale
        values = np.column_stack([count, off, answered(terms[1 + n_columns :])])
        width, least, most = (high - low).prod(axis=1), low[:, 0], high[:, 0]
        unit, shift = scale.prod(axis=1), centre[:, 0]
        if statistic != "mean":
            most = width / (2.0 if statistic == "std" else 4.0)
            shift, least = 0.0 * most, -most if statistic == "covariance" else 0.0 * most
        if statistic == "correlation":
            unit = most = np.ones(len(cases))
            least = -most

        def function(drawn: FloatArray) -> tuple[FloatArray, BoolArray]:
            found, known = _spread(statistic, drawn, n_columns)
            if statistic == "correlation":
                # No table has another correlation: what is left is the law of those that have one.
                known = _without_impossible(found, known)
            return shift[:, None] + unit[:, None] * found, known

        value = clipped
        if statistic != "mean":
            found, known = (
                each[:, 0] for each in _spread(statistic, values.T[:, :, None], n_columns)
            )
            value = np.where(known, np.clip(unit * found, least, most), np.nan)
        if self.confidence is None:
            return Estimates.plain(value)
        covariance = release.covariances(centred(terms))
        bins = np.zeros(len(cases))
        if statistic == "mean":
            bins = self._off(cases) / scale[:, 0]
            covariance[:, 1, 1] += bins**2
        second = None
        if self.confidence.population:
            products = [
                tuple(map(sum, zip(*each, strict=True)))
                for each in itertools.product(terms, repeat=2)
            ]
            second = answered(products).reshape(len(cases), len(terms), -1)
        cut = [case.present.cuts for case in cases]
        more = [_BINS * bool(each) + _EVEN * (statistic != "mean") for each in bins]
        return self._simulated(
            value, values, covariance, second, function, (least, most), cut, more
        )

    def proportion(self, query: Any, among: Any) -> QueryResult | float:
        """Share of a query among the records of another."""
        whole = parts_of(among, self.domain)
        within = [both(one, two) for one in whole for two in parts_of(query, self.domain)]
        asked = [
            Query(tuple(weights_of(part, self.domain) for part in parts))
            for parts in (whole, within)
        ]
        count, top = values = self.release.answer(asked)
        share = float(np.clip(top / count, 0.0, 1.0)) if count > 0 else math.nan
        if self.confidence is None:
            return share

        def function(drawn: FloatArray) -> tuple[FloatArray, BoolArray]:
            return drawn[1] / np.maximum(drawn[0], 1e-9), drawn[0] > 0

        covariance = self.release.covariances([asked])
        second = np.array([[[count, top], [top, top]]]) if self.confidence.population else None
        bounds, cut = (np.zeros(1), np.ones(1)), any(each.cuts for each in asked)
        found = self._simulated(
            np.array([share]), values[None], covariance, second, function, bounds, [cut], [""]
        )
        return found.results()[0]

    def _simulated(
        self,
        value: FloatArray,
        values: FloatArray,
        covariance: FloatArray,
        second: FloatArray | None,
        function: Callable[[FloatArray], tuple[FloatArray, BoolArray]],
        bounds: tuple[FloatArray, FloatArray],
        cut: Sequence[bool],
        more: Sequence[str],
    ) -> Estimates:
        """Intervals of functions of answers.

        Parameters
        ----------
        value : ndarray of float64, shape (n,)
        values : ndarray of float64, shape (n, k)
            Answers.
        covariance : ndarray of float64, shape (n, k, k)
        second : ndarray of float64, shape (n, k, k), or None
            Sums over records of the products of two terms of a record, for a population.
        function : callable
            From answers, (k, n, n_draws), to statistics and where they are known, (n, n_draws).
        bounds : tuple of ndarray of float64, shape (n,)
            Smallest and largest possible value.
        cut : sequence of bool
            Whether bins are covered in part.
        more : sequence of str
            What else is said.
        """
        confidence, total = self._confidence, self.release.total
        least, most = (each[:, None] for each in bounds)
        draws, width = normal_draws(values.shape[1]), 2.0 * confidence.quantile
        # At other levels the 95% interval of errors that are as much larger or smaller.
        factor = confidence.quantile / float(ndtri(0.975))

        def ends(errors: FloatArray) -> tuple[FloatArray, FloatArray]:
            """Of statistics within the bounds; where nothing is known, each of these in turn."""
            drawn = (factor * roots(errors)) @ draws
            drawn += values[:, :, None]
            found, known = function(np.moveaxis(drawn, 1, 0))
            found = np.minimum(np.maximum(found, least), most)
            unknown = np.flatnonzero(~known.all(axis=1))
            either = np.where(np.arange(found.shape[1]) % 2 == 0, least[unknown], most[unknown])
            found[unknown] = np.where(known[unknown], found[unknown], either)
            return _ends(found)

        low, high = ends(covariance)
        std, spread = (high - low) / width, np.zeros(len(low))
        if second is not None:
            outer = values[:, :, None] * values[:, None, :] / max(total, 1.0)
            low, high = ends(covariance + (second - outer) * confidence.left(total))
            spread = np.sqrt(np.maximum(((high - low) / width) ** 2 - std**2, 0.0))
        nothing = (low <= bounds[0]) & (high >= bounds[1]) & (bounds[0] < bounds[1])
        facts = zip(cut, more, nothing.tolist(), strict=True)
        texts = [self._said(each) + text + _NOTHING * none for each, text, none in facts]
        return Estimates(value, std, spread, low, high, texts)

    def _said(self, cut: bool) -> str:
        confidence = self._confidence
        return (
            f"The interval is made to contain the true answer with a probability of "
            f"{100 * confidence.level:g}%, by simulation from a covariance that covers "
            f"{self.release.covers}.{IN_PROPORTION * cut}{confidence.text}"
        )

    def quantiles(self, column: str, shares: Sequence[float], query: Any) -> list[Any]:
        """Quantiles of a column."""
        ranked = _Ranked(self, column, query)
        return [ranked.found(share) for share in shares]

    def groups(self, groups: Groups, query: Any, column: str | None) -> tuple[Any, Any, Any]:
        """Counts of all groups among the records of a query, sums of a column, and intervals.

        With a column, only records that have a value in it count. Intervals are of the counts, or
        of the means; None where there is no confidence.

        Raises
        ------
        ValueError
            If there are too many groups.
        """
        if groups.number > _MAX_GROUPS:
            raise ValueError(
                f"Grouping by {' and '.join(groups.names)} makes {groups.number:,} groups, more "
                f"than {_MAX_GROUPS:,}. Group by fewer columns or by bands, or count the groups "
                "that matter by queries."
            )
        sums, found = [], []
        for cases in self._cases(groups, query, () if column is None else (column,)):
            sums.append(self._sums(cases, 0 if column is None else 1))
            if column is not None:
                found.append(self._moments("mean", cases, sums[-1]))
            elif self.confidence is not None:
                found.append(self._counts([case.present for case in cases], sums[-1][:, 0]))
        # Groups are asked for by bands first.
        places = groups.in_order(np.arange(groups.number, dtype=np.float64)).astype(np.int64)
        count, *total = np.concatenate(sums)[places].T
        return (
            count,
            total[0] if total else None,
            Estimates.joined(found).at(places) if found else None,
        )

    def _cases(self, groups: Groups, query: Any, columns: Sequence[str]) -> Iterator[list[Case]]:
        """The records of each group, by bands, then by codes; some groups at a time."""

        def cases() -> Iterator[Case]:
            for parts in groups.banded(query):
                each = [Selected.of(part, self.domain, columns) for part in parts]
                for weights in zip(*(groups.within(one.weights) for one in each), strict=True):
                    pairs = zip(each, weights, strict=True)
                    yield Case(one._replace(weights=own) for one, own in pairs)

        every = cases()
        while few := list(itertools.islice(every, _AT_ONCE)):
            yield few

    # -- all columns

    @property
    def summable(self) -> list[str]:
        """Columns of numbers that have a spread: no dates, and no names."""

        def has_numbers(name: str) -> bool:
            try:
                Case.of(None, self.domain, [name])
            except ValueError:
                return False
            return bool(self.domain[name].summable)

        return [name for name in self.domain.known if has_numbers(name)]

    def correlations(self, columns: Sequence[str], query: Any) -> pd.DataFrame:
        """Correlations of all pairs of columns; see `Synopsis.correlation`."""
        if isinstance(query, list | tuple):
            raise ValueError("A matrix of correlations is of one query: ask for each of the list.")
        if len(columns) < 2:
            raise ValueError(
                f"Correlations need two columns of numbers, got {some(list(columns)) or 'none'}: "
                "declare a column as Numeric, or its categories as numbers."
            )
        names, tables, guarantee = pd.Index(columns), np.tile(np.eye(len(columns)), (4, 1, 1)), ""
        tables[1] = 0.0
        for (i, one), (j, two) in itertools.combinations(enumerate(columns), 2):
            [found] = self.moments("correlation", [one, two], [query])
            if self.confidence is None:
                tables[0, i, j] = tables[0, j, i] = found
                continue
            guarantee = guarantee or found.guarantee
            std = math.hypot(found.std, found.sampling_std)
            tables[:, i, j] = tables[:, j, i] = found.value, std, found.lower, found.upper
        frames = [pd.DataFrame(table, names, names) for table in tables]
        if self.confidence is None:
            return frames[0]
        parts = ("value", "std_error", "lower", "upper")
        result = pd.concat(dict(zip(parts, frames, strict=True)), axis=1)
        result.attrs = {"level": self.confidence.level, "guarantee": guarantee}
        return result


_MANY = 100  # queries, above which the law of a sum of noise is not found for each by itself
_AT_ONCE = 1024  # queries or groups that are simulated together
_MAX_GROUPS = 100_000
_FEWEST = 500  # possible draws, of 2,000, below which nothing is known
_WHOLE = 1e-9  # by which rounding may exceed what is possible


# --- quantiles

_PLACES = 40  # at which the errors of numbers of records below are computed


class _Ranked:
    """The codes of a column in the order of their values, and the records of a query with each.

    Raises
    ------
    ValueError
        If the categories of the column have no order.
    """

    def __init__(self, asked: Statistics, column: str, query: Any) -> None:
        self.release, self.domain, self.confidence = asked.release, asked.domain, asked.confidence
        self.asked, self.column, self.query = asked, column, query
        self.attribute = attribute = attribute_of(column, self.domain)
        if isinstance(attribute, Categorical) and not attribute.ordered:
            raise ValueError(
                f"The categories of column {column!r} have no order, so it has no quantiles. Count "
                "its categories, or declare Categorical(..., ordered=True)."
            )
        groups = Groups([column], self.domain, by_code=True)
        plain = Statistics(self.release, self.domain, None)
        found = (
            view_of(self.release, groups) if query is None else plain.groups(groups, query, None)[0]
        )
        self.counts = np.asarray(found, dtype=np.float64)[: attribute.n_values]
        self.low, self.high = spans_of(attribute)
        # Special values lie among the bins.
        self.order = np.argsort(self.low, kind="stable")
        self.rising = without_negatives(self.counts, self.order)

    def value(self, share: float) -> Any:
        """The quantile; NaN (of categories None) if the release has no such records."""
        shares = np.array([share])
        if not self.rising.any():
            return None if isinstance(self.attribute, Categorical) else math.nan
        if isinstance(self.attribute, Categorical):
            return categories_below(self.attribute, self.rising, shares)[0]
        return float(values_below(self.attribute, self.rising, shares)[0])

    def shown(self, value: Any) -> Any:
        """A value as users see it."""
        if isinstance(self.attribute, Categorical):
            return value
        return self.attribute.shown(np.array([value])).tolist()[0]

    def found(self, share: float) -> Any:
        """The quantile, with its interval if there is a confidence."""
        value, total, confidence = self.value(share), self.counts.sum(), self.confidence
        if confidence is None:
            return self.shown(value)
        balance = np.cumsum(self.counts[self.order]) - share * total
        variance, cut = self._variances(share)
        sampling = max(total, 0.0) * share * (1.0 - share) * confidence.left(self.release.total)
        noise, both = (
            self._held(balance, confidence.quantile * np.sqrt(variance + more))
            for more in (0.0, sampling)
        )
        text = self.asked._said(cut)
        if len(balance) > 1 and both == (self.order[0], self.order[-1]):
            text += _NOTHING
        if isinstance(self.attribute, Categorical):
            low, high = (self.attribute.categories[code] for code in both)
            return QueryResult(value, math.nan, low, high, text, math.nan)
        (low, high), inner = self._numbers(value, both), self._numbers(value, noise)
        text += _BINS * bool(self.attribute.bins < self.attribute.upper - self.attribute.lower)
        twice = 2.0 * confidence.quantile
        std = (inner[1] - inner[0]) / twice
        spread = math.sqrt(max((high - low) ** 2 - (inner[1] - inner[0]) ** 2, 0.0)) / twice
        arrays = (np.array([each]) for each in (value, std, spread, low, high))
        found = Estimates._make([*arrays, [text]])
        return found.results(None if self.attribute.summable else self.attribute.shown)[0]

    def _variances(self, share: float) -> tuple[FloatArray, bool]:
        """Variance of the balance after each code, and whether the query cuts bins.

        It is computed at places evenly spread by the share below; elsewhere the larger one of the
        places on either side counts.
        """
        n = len(self.order)
        below = np.cumsum(self.rising[self.order])
        wanted = np.append(np.linspace(0.0, 1.0, _PLACES), share) * below[-1]
        # A little less: where codes are empty, rounding would decide which of them it is.
        at = np.unique(np.minimum(np.searchsorted(below, wanted * (1.0 - 1e-9)), n - 1))
        ranks = np.argsort(self.order)
        everyone = everything(self.column, self.attribute)
        parts = [
            {**part, self.column: part.get(self.column, everyone).without_missing}
            for part in parts_of(self.query, self.domain)
        ]
        present = Query(tuple(weights_of(part, self.domain) for part in parts))
        structure = self.domain.structure
        axis = self.domain.index(structure.base_of(self.column))
        asked = []
        for place in at.tolist():
            vector = np.zeros(self.attribute.size)
            vector[:n] = (ranks <= place) - share
            asked.append(present.times(axis, structure.lifted(self.column, vector)))
        known = self.release.variance(asked)
        left = np.maximum(np.searchsorted(at, np.arange(n), side="right") - 1, 0)
        right = np.minimum(np.searchsorted(at, np.arange(n)), len(at) - 1)
        return np.maximum(known[left], known[right]), present.cuts

    def _held(self, balance: FloatArray, reach: FloatArray) -> tuple[int, int]:
        """First and last code, in the order of values, that the quantile may have."""
        possible: BoolArray = balance + reach >= 0
        possible[1:] &= (balance - reach)[:-1] <= 0
        held = np.flatnonzero(possible) if possible.any() else np.arange(len(balance))
        return int(self.order[held[0]]), int(self.order[held[-1]])

    def _numbers(self, value: float, codes: tuple[int, int]) -> tuple[float, float]:
        """The interval from the smallest number of one code to the largest of another."""
        low, high = float(self.low[codes[0]]), float(self.high[codes[1]])
        return (low, high) if math.isnan(value) else (min(low, value), max(high, value))
