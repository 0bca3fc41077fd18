"""Statistics of a release with intervals, from `Release.answer` and `Release.covariance` alone.

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
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri

from .._validation import BoolArray, FloatArray, IntArray, as_level, as_number, check_choice
from ..domain import Categorical, Domain, Numeric
from ..domain.bins import Points
from ..domain.query import Query, Weights, parse_all, parts_of, weights_of
from ..domain.regions import Region, RegionUnion, attribute_of, everything
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
        return_interval: Any,
        level: Any = 0.95,
        interval: Any = "noise",
        population_size: Any = None,
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
        if not return_interval:
            if interval != "noise" or population_size is not None:
                raise ValueError(
                    "interval and population_size say what intervals cover: they need "
                    "return_interval=True."
                )
            return None
        if population_size is None:
            return cls(level, interval == "population")
        if interval != "population":
            raise ValueError(
                "population_size says how large the population is that the records are a sample "
                'of: it needs interval="population".'
            )
        size = as_number(population_size, "population_size")
        if not size > 0:
            raise ValueError(f"population_size must be positive, got {population_size!r}.")
        return cls(level, True, size)

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
    """Estimates with their errors: an array of each, and what the intervals cover."""

    value: FloatArray
    std: FloatArray
    sampling_std: FloatArray
    lower: FloatArray
    upper: FloatArray
    guarantee: str

    def at(self, places: IntArray) -> Estimates:
        """Some of the estimates, in another order."""
        *arrays, guarantee = self
        return Estimates._make([*(array[places] for array in arrays), guarantee])

    def columns(self, shown: Callable[[FloatArray], Any] | None = None) -> dict[str, Any]:
        """Columns of a table; ``shown`` makes what users see of numbers."""
        ends = {"lower": self.lower, "upper": self.upper}
        std = np.hypot(self.std, self.sampling_std)
        if shown is None:
            return {"std_error": std, **ends}
        return {
            "std_error": shown(std) - shown(np.zeros(1))[0],
            **{name: shown(each) for name, each in ends.items()},
        }

    def results(self, shown: Callable[[FloatArray], Any] | None = None) -> list[QueryResult]:
        """One result for each estimate; ``shown`` makes what users see of numbers."""
        arrays: list[Any] = [each.tolist() for each in self[:5]]
        if shown is not None:
            zero = shown(np.zeros(1))[0]
            arrays = [shown(each) for each in self[:5]]
            arrays[1:3] = [[each - zero for each in arrays[place]] for place in (1, 2)]
        return [
            QueryResult(value, std, lower, upper, self.guarantee, sampling)
            for value, std, sampling, lower, upper in zip(*arrays, strict=True)
        ]


IN_PROPORTION = " Bins covered in part are taken as covered in proportion."
_BINS = " Numbers may lie anywhere in their bins."
_EVEN = " Inside bins, numbers are taken as spread evenly and independently of other columns."
_CONSTANT = " A column whose numbers may all be equal has no correlation: it may be anything."
_NOTHING = " It may be any value that was declared: there are too few records for this noise."


def _said(release: Release, confidence: Confidence, cut: bool) -> str:
    return (
        f"The interval is made to contain the true answer with a probability of "
        f"{100 * confidence.level:g}%, by simulation from a covariance that covers "
        f"{release.covers}.{IN_PROPORTION * cut}{confidence.text}"
    )


# --- linear statistics and functions of them


def linear(
    release: Release,
    queries: Sequence[Query],
    value: FloatArray,
    sampling: FloatArray,
    confidence: Confidence,
    bounds: tuple[Any, Any] = (0.0, math.inf),
    more: Any = 0.0,
) -> Estimates:
    """Counts and sums with their intervals.

    Parameters
    ----------
    release : Release
    queries : sequence of Query
    value : ndarray of float64
    sampling : ndarray of float64
        Variance over samples with replacement.
    confidence : Confidence
    bounds : tuple of float or ndarray
        Smallest and largest possible value.
    more : float or ndarray, default=0.0
        Standard deviation of what else is not known.
    """
    found = release.reach(queries, confidence.level)
    left = np.sqrt(np.maximum(sampling, 0.0) * confidence.left(release.total))
    beside = confidence.quantile * np.hypot(left, more)
    below, above = np.hypot(found.below, beside), np.hypot(found.above, beside)
    lower, upper = np.clip(value - below, *bounds), np.clip(value + above, *bounds)
    # Where all of it is beyond what is possible: the end of the law of what is possible.
    tail = -math.log1p(-confidence.level) / confidence.quantile**2
    with np.errstate(divide="ignore", invalid="ignore"):
        over, under = bounds[0] - value, value - bounds[1]
        upper = np.where(over >= above, bounds[0] + np.nan_to_num(tail * above**2 / over), upper)
        lower = np.where(under >= below, bounds[1] - np.nan_to_num(tail * below**2 / under), lower)
    return Estimates(
        value, np.hypot(found.std, more), left, lower, upper, found.guarantee + confidence.text
    )


def simulated(
    values: FloatArray,
    covariance: FloatArray,
    sampling: FloatArray | None,
    function: Callable[[FloatArray], FloatArray],
    confidence: Confidence,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Standard deviations of noise and sampling, and ends of intervals, of functions of answers.

    Parameters
    ----------
    values : ndarray of float64, shape (n, k)
        Answers.
    covariance : ndarray of float64, shape (n, k, k)
    sampling : ndarray of float64, shape (n, k, k), or None
        Covariance over samples.
    function : callable
        From answers, (k, n, n_draws), to statistics that are possible, (n, n_draws).
    confidence : Confidence
    """
    draws = normal_draws(values.shape[1])
    # At other levels the 95% interval of errors that are as much larger or smaller.
    factor = confidence.quantile / float(ndtri(0.975))

    def ends(each: FloatArray) -> tuple[FloatArray, FloatArray]:
        drawn = values[:, :, None] + factor * (roots(each) @ draws)
        return _ends(function(np.moveaxis(drawn, 1, 0)))

    low, high = ends(covariance)
    std = (high - low) / (2.0 * confidence.quantile)
    if sampling is None:
        return std, np.zeros(len(std)), low, high
    low, high = ends(covariance + sampling)
    both = (high - low) / (2.0 * confidence.quantile)
    return std, np.sqrt(np.maximum(both**2 - std**2, 0.0)), low, high


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
        share, moment = region.weights(), region.moment()
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
        return cls(axis, mean, variance, reach, reach_of(column, domain))

    def power(self, exponent: int, centre: float, scale: float) -> FloatArray:
        """Mean of a power of (number - centre) / scale for each code."""
        m, v = (self.mean - centre) / scale, self.variance / scale**2
        if exponent < 3:
            return m if exponent == 1 else m**2 + v
        return m**3 + 3 * m * v if exponent == 3 else m**4 + 6 * m**2 * v + 1.8 * v**2


def reach_of(column: str, domain: Domain) -> tuple[float, float]:
    """Smallest and largest value that a mean of a column can have."""
    attribute = attribute_of(column, domain)
    if isinstance(attribute, Numeric):
        ends = attribute.contents.span(np.arange(attribute.bins))
        low, high = (np.append(each, attribute.special).astype(np.float64) for each in ends)
        return float(low.min()), float(high.max())
    region = everything(column, attribute).without_missing()
    seen = region.moment()[region.weights() > 0]
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
            told[column] = (told.get(column) or everything(column, attribute)).without_missing()
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


Case = Sequence[Selected]  # disjoint conjunctions


def selected(query: Any, domain: Domain, columns: Sequence[str]) -> list[Selected]:
    """Disjoint conjunctions of the records of a query with numbers in some columns."""
    return [Selected.of(regions, domain, columns) for regions in parts_of(query, domain)]


def ends_of(case: Case, place: int = 0) -> tuple[float, float]:
    """Smallest and largest number of a column among the records of a case."""
    each = [one.ends(place) for one in case]
    return min(low for low, _ in each), max(high for _, high in each)


def moment(
    case: Case,
    exponents: Sequence[int],
    centres: Sequence[float] = (0.0, 0.0),
    scales: Sequence[float] = (1.0, 1.0),
) -> Query:
    """The query whose answer is the sum over records of a product of powers of their numbers."""

    def weights(each: Selected) -> Weights:
        product = dict(each.weights)
        for of, exponent, centre, scale in zip(
            each.numbers, exponents, centres, scales, strict=False
        ):
            if exponent:
                product[of.axis] = product[of.axis] * of.power(exponent, centre, scale)
        return product

    return Query(tuple(map(weights, case)))


def _bins_of(case: Case) -> Query:
    """The query whose answer is by how much a sum is off if all numbers lie at ends of bins."""
    return Query(
        tuple(
            {**each.weights, of.axis: each.weights[of.axis] * of.reach}
            for each in case
            for of in each.numbers[:1]
        )
    )


def _bins_std(release: Release, cases: Sequence[Case]) -> FloatArray:
    """Standard deviation of sums of numbers that lie anywhere in their bins, alike in all bins.

    Half of how far they may be off: by itself it makes 95% intervals as wide as that.
    """
    if not any(of.reach.any() for each in cases[0] for of in each.numbers) if cases else True:
        return np.zeros(len(cases))
    return np.maximum(release.answer([_bins_of(case) for case in cases]), 0.0) / 2.0


# --- statistics


def counts(
    release: Release, queries: Sequence[Query], confidence: Confidence, value: FloatArray
) -> Estimates:
    """Intervals of numbers of records.

    Over samples of as many records, a count of a share p of them has the variance n p (1 - p). A
    single number of a continuous column has next to no share of its bin: all that this holds may
    be there.
    """
    share = np.clip(value / max(release.total, 1.0), 0.0, 1.0)
    found = linear(release, queries, value, value * (1.0 - share), confidence)
    at_points = [place for place, query in enumerate(queries) if query.at_points]
    if not at_points:
        return found
    whole = [queries[place].with_whole_bins for place in at_points]
    upper = found.upper.copy()
    upper[at_points] = linear(
        release, whole, release.answer(whole), np.zeros(len(whole)), confidence
    ).upper
    return found._replace(upper=upper)


def sums(
    release: Release, cases: Sequence[Case], confidence: Confidence, value: FloatArray
) -> Estimates:
    """Intervals of sums of a column over the records of each case."""
    total = max(release.total, 1.0)
    sampling = np.zeros(len(cases))
    if confidence.population:
        sampling = release.answer([moment(case, [2]) for case in cases]) - value**2 / total
    more = _bins_std(release, cases)
    low, high = np.array([ends_of(case) for case in cases]).reshape(-1, 2).T
    bounds = np.where(low < 0, -np.inf, 0.0), np.where(high > 0, np.inf, 0.0)
    asked = [moment(case, [1]) for case in cases]
    found = linear(release, asked, value, sampling, confidence, bounds, more)
    cut = any(query.cuts for query in _present(cases))
    text = found.guarantee + _BINS * bool(more.any()) + IN_PROPORTION * cut
    return found._replace(guarantee=text)


def _present(cases: Sequence[Case]) -> list[Query]:
    return [moment(case, []) for case in cases]


def means(
    release: Release,
    cases: Sequence[Case],
    confidence: Confidence,
    total: FloatArray,
    count: FloatArray,
) -> Estimates:
    """Means of a column over the records of each case, from sums and numbers of records."""
    value = quotients(total, count, cases[0][0].numbers[0].span)
    low, high = np.array([ends_of(case) for case in cases]).T
    centre = np.where(np.isnan(value), (low + high) / 2, np.clip(value, low, high))
    scale = np.where(high > low, high - low, 1.0)
    places = list(zip(cases, centre.tolist(), scale.tolist(), strict=True))
    present = _present(cases)
    centred = [moment(case, [1], [middle], [width]) for case, middle, width in places]
    off = (total - centre * count) / scale
    values = np.stack([count, off], axis=1)
    covariance = np.stack([release.covariance(each) for each in zip(present, centred, strict=True)])
    bins = _bins_std(release, cases) / scale
    covariance[:, 1, 1] += bins**2
    sampling = None
    if confidence.population:
        squares = [moment(case, [2], [middle], [width]) for case, middle, width in places]
        second = [[count, off], [off, release.answer(squares)]]
        sampling = _sampling(release, confidence, values, second)

    def mean(drawn: FloatArray) -> FloatArray:
        found = centre[:, None] + scale[:, None] * _ratio(drawn[1], drawn[0])
        return _possible(found, drawn[0] > 0, low[:, None], high[:, None])

    found = simulated(values, covariance, sampling, mean, confidence)
    text = _said(release, confidence, any(query.cuts for query in present))
    text += _BINS * bool(bins.any()) + _nothing(found, low, high)
    return Estimates(value, *found, text)


def _nothing(found: Sequence[FloatArray], low: Any, high: Any) -> str:
    """What is said where an interval is all that is possible."""
    return _NOTHING * bool(((found[2] <= low) & (found[3] >= high) & (low < high)).any())


def quotients(total: FloatArray, count: FloatArray, span: tuple[float, float]) -> FloatArray:
    """Means, clipped to the range of the column; nan where the count is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.clip(np.where(count > 0, total / count, np.nan), *span)


def _ratio(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """A quotient, of some number where there are no records."""
    return top / np.maximum(bottom, 1e-9)


def _possible(found: FloatArray, known: BoolArray, low: Any, high: Any) -> FloatArray:
    """Statistics within their bounds; where nothing is known, each of the bounds in turn."""
    either = np.where(np.arange(found.shape[1]) % 2 == 0, low, high)
    return np.where(known, np.clip(found, low, high), either)


def _sampling(
    release: Release, confidence: Confidence, values: FloatArray, products: Any
) -> FloatArray:
    """Covariance of sums over samples, from the sums of the products of two terms of a record."""
    second = np.moveaxis(np.array(products, dtype=np.float64), -1, 0)
    outer = values[:, :, None] * values[:, None, :] / max(release.total, 1.0)
    return (second - outer) * confidence.left(release.total)


def proportion(
    release: Release, domain: Domain, query: Any, among: Any, confidence: Confidence | None
) -> QueryResult | float:
    """Share of a query among the records of another; only the share without a confidence."""
    whole = parts_of(among, domain)
    both = [_both(one, two) for one in whole for two in parts_of(query, domain)]
    asked = [Query(tuple(weights_of(part, domain) for part in parts)) for parts in (whole, both)]
    count, top = release.answer(asked)
    share = float(np.clip(top / count, 0.0, 1.0)) if count > 0 else math.nan
    if confidence is None:
        return share
    values = np.array([[count, top]])
    sampling = None
    if confidence.population:
        sampling = _sampling(release, confidence, values, [[[count], [top]], [[top], [top]]])

    def of(drawn: FloatArray) -> FloatArray:
        return _possible(_ratio(drawn[1], drawn[0]), drawn[0] > 0, 0.0, 1.0)

    found = simulated(values, release.covariance(asked)[None], sampling, of, confidence)
    text = _said(release, confidence, any(query.cuts for query in asked))
    text += _nothing(found, np.zeros(1), np.ones(1))
    return Estimates(np.array([share]), *found, text).results()[0]


def _both(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, Region]:
    """What two conjunctions cover together."""
    result = dict(one)
    for name, region in two.items():
        if name not in result:
            result[name] = region
        elif isinstance(region, RegionUnion) and isinstance(result[name], RegionUnion):
            pieces = [result[name].intersect(part).parts for part in region.parts]
            result[name] = RegionUnion(region.attribute, sum(pieces, ()))
        elif isinstance(region, RegionUnion):
            result[name] = region.intersect(result[name])
        else:
            result[name] = result[name].intersect(region)
    return result


def spread(
    statistic: str, release: Release, case: Case, confidence: Confidence | None
) -> QueryResult | float:
    """A standard deviation, covariance or correlation; only the number without a confidence.

    Parameters
    ----------
    statistic : {"std", "covariance", "correlation"}
    release : Release
    case : Case
    confidence : Confidence or None
    """
    # The number of records, sums, sums of squares, and the sum of products.
    exponents: list[tuple[int, ...]] = [(0,), (1,), (2,)]
    if statistic != "std":
        exponents = [(0, 0), (1, 0), (0, 1), (2, 0), (0, 2), (1, 1)]
    n_columns = len(exponents[0])
    widths = [high - low for low, high in (ends_of(case, place) for place in range(n_columns))]
    scales = [width or 1.0 for width in widths]
    plain = [moment(case, each) for each in exponents[: 1 + n_columns]]
    count, *totals = release.answer(plain).tolist()
    if not count > 0:
        centres = [0.0] * n_columns
    else:
        centres = [total / count for total in totals]

    def asked(each: Sequence[int]) -> Query:
        return moment(case, each, centres, scales)

    queries = [asked(each) for each in exponents]
    values = release.answer(queries)[None]
    most = math.prod(widths) / (2.0 if statistic == "std" else 4.0)
    bounds = {"std": (0.0, most), "covariance": (-most, most), "correlation": (-1.0, 1.0)}

    def of(drawn: FloatArray) -> FloatArray:
        means = [_ratio(drawn[1 + place], drawn[0]) for place in range(n_columns)]
        squares = [
            np.maximum(_ratio(drawn[1 + n_columns + place], drawn[0]) - mean**2, 0.0)
            for place, mean in enumerate(means)
        ]
        known = drawn[0] > 0
        if statistic == "std":
            found = np.sqrt(squares[0]) * scales[0]
        else:
            found = _ratio(drawn[-1], drawn[0]) - means[0] * means[1]
            if statistic == "covariance":
                found = found * scales[0] * scales[1]
            else:
                known = known & (np.minimum(*squares) > 0)
                found = found / np.where(known, np.sqrt(squares[0] * squares[1]), 1.0)
        return _possible(found, known, *bounds[statistic])

    value = float(of(values.T[:, :, None])[0, 0]) if count > 0 else math.nan
    if statistic == "correlation" and not min(values[0, 3:5]) > 0:
        value = math.nan
    if confidence is None:
        return value
    sampling = None
    if confidence.population:
        products = [
            [asked([a + b for a, b in zip(one, two, strict=True)]) for two in exponents]
            for one in exponents
        ]
        second = release.answer([each for row in products for each in row])
        sampling = _sampling(
            release, confidence, values, second.reshape(len(exponents), -1)[..., None]
        )
    found = simulated(values, release.covariance(queries)[None], sampling, of, confidence)
    text = _said(release, confidence, plain[0].cuts) + _EVEN
    if statistic == "correlation" and math.isnan(value):
        text += _CONSTANT
    return Estimates(np.array([value]), *found, text).results()[0]


# --- statistics of queries as a synopsis gives them: numbers, or results with intervals

_MANY = 100  # queries, above which the law of a sum of noise is not found for each by itself
_AT_ONCE = 1024  # queries or groups that are simulated together


def count_of(
    release: Release, domain: Domain, queries: Sequence[Any], confidence: Confidence | None
) -> Any:
    """Counts of queries."""
    asked = parse_all(queries, domain)
    value = release.answer(asked) if asked else np.zeros(0)
    if confidence is None:
        return value
    return _in_parts(
        lambda part: counts(release, asked[part], confidence, value[part]), len(asked), None
    )


def _in_parts(
    of: Callable[[slice], Estimates], n: int, shown: Callable[[FloatArray], Any] | None
) -> list[QueryResult]:
    """Results of many queries together, of few each by itself."""
    step = 1 if n <= _MANY else _AT_ONCE
    parts = (of(slice(start, start + step)) for start in range(0, n, step))
    return [result for part in parts for result in part.results(shown)]


def sums_and_counts(
    release: Release, domain: Domain, column: str, queries: Sequence[Any]
) -> tuple[list[list[Selected]], FloatArray, FloatArray]:
    """The records of queries, sums of a column, and numbers of records with a value in it."""
    cases = [selected(query, domain, [column]) for query in queries]
    asked = [query for case in cases for query in (moment(case, [1]), moment(case, []))]
    found = release.answer(asked) if asked else np.zeros(0)
    sums, count = found.reshape(-1, 2).T + 0.0  # without minus zero
    return cases, sums, count


def sum_of(
    release: Release,
    domain: Domain,
    column: str,
    queries: Sequence[Any],
    confidence: Confidence | None,
) -> Any:
    """Sums of a column."""
    cases, value, _ = sums_and_counts(release, domain, column, queries)
    if confidence is None:
        return value
    return _in_parts(
        lambda part: sums(release, cases[part], confidence, value[part]), len(cases), None
    )


def mean_of(
    release: Release,
    domain: Domain,
    column: str,
    queries: Sequence[Any],
    confidence: Confidence | None,
) -> Any:
    """Means of a column, as users see them."""
    cases, total, count = sums_and_counts(release, domain, column, queries)
    attribute = domain[column]
    if confidence is None or not cases:
        return attribute.shown(quotients(total, count, reach_of(column, domain)))
    return _in_parts(
        lambda part: means(release, cases[part], confidence, total[part], count[part]),
        len(cases),
        None if attribute.summable else attribute.shown,
    )


def spread_of(
    statistic: str,
    release: Release,
    domain: Domain,
    columns: Sequence[str],
    queries: Sequence[Any],
    confidence: Confidence | None,
) -> list[Any]:
    """A standard deviation, covariance or correlation of the records of each query.

    Raises
    ------
    ValueError
        If a column holds dates, or the columns are not different.
    """
    if len(set(columns)) < len(columns):
        raise ValueError(f"The columns must be different, got {columns[0]!r} twice.")
    for column in columns:
        if column in domain and not domain[column].summable:
            raise ValueError(
                f"Column {column!r} holds dates. Ask for its mean, its quantiles, or counts of "
                "ranges."
            )
    cases = [selected(query, domain, columns) for query in queries]
    return [spread(statistic, release, case, confidence) for case in cases]


def summable_columns(domain: Domain) -> list[str]:
    """Columns of numbers that have a spread: no dates, and no names."""

    def has_numbers(name: str) -> bool:
        try:
            selected(None, domain, [name])
        except ValueError:
            return False
        return bool(domain[name].summable)

    return [name for name in domain.known if has_numbers(name)]


def correlation_matrix(
    release: Release,
    domain: Domain,
    columns: Sequence[str],
    query: Any,
    confidence: Confidence | None,
) -> pd.DataFrame:
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
        [found] = spread_of("correlation", release, domain, [one, two], [query], confidence)
        if confidence is None:
            tables[0, i, j] = tables[0, j, i] = found
            continue
        guarantee = guarantee or found.guarantee
        std = math.hypot(found.std, found.sampling_std)
        tables[:, i, j] = tables[:, j, i] = found.value, std, found.lower, found.upper
    frames = [pd.DataFrame(table, names, names) for table in tables]
    if confidence is None:
        return frames[0]
    parts = ("value", "std_error", "lower", "upper")
    result = pd.concat(dict(zip(parts, frames, strict=True)), axis=1)
    result.attrs = {"level": confidence.level, "guarantee": guarantee}
    return result


# --- quantiles

_PLACES = 40  # at which the errors of numbers of records below are computed


class Ranked:
    """The codes of a column in the order of their values, and the records of a query with each.

    Raises
    ------
    ValueError
        If the categories of the column have no order.
    """

    def __init__(self, release: Release, domain: Domain, column: str, query: Any) -> None:
        attribute = attribute_of(column, domain)
        if isinstance(attribute, Categorical) and not attribute.ordered:
            raise ValueError(
                f"The categories of column {column!r} have no order, so it has no quantiles. Count "
                "its categories, or declare Categorical(..., ordered=True)."
            )
        self.release, self.domain, self.column, self.attribute = release, domain, column, attribute
        groups = Groups([column], domain, by_code=True)
        found = view_of(release, groups) if query is None else grouped(release, groups, query)[0]
        self.counts = np.asarray(found, dtype=np.float64)[: attribute.n_values]
        self.query = query
        self.low, self.high = spans_of(attribute)
        # Special values lie among the bins.
        self.order = np.argsort(self.low, kind="stable")
        self.rising = without_negatives(self.counts, self.order)

    def value(self, share: float) -> Any:
        """The quantile; NaN (of categories None) if the release has no such records."""
        shares, any_record = np.array([share]), self.rising.any()
        if isinstance(self.attribute, Categorical):
            return categories_below(self.attribute, self.rising, shares)[0] if any_record else None
        found = values_below(self.attribute, self.rising, shares)[0] if any_record else math.nan
        return float(found)

    def shown(self, value: Any) -> Any:
        """A value as users see it."""
        if isinstance(self.attribute, Categorical):
            return value
        return self.attribute.shown(np.array([value])).tolist()[0]

    def found(self, share: float, confidence: Confidence | None) -> Any:
        """The quantile, with its interval if there is a confidence."""
        value, total = self.value(share), self.counts.sum()
        if confidence is None:
            return self.shown(value)
        balance = np.cumsum(self.counts[self.order]) - share * total
        variance, cut = self._variances(share)
        sampling = max(total, 0.0) * share * (1.0 - share) * confidence.left(self.release.total)
        noise, both = (
            self._held(balance, confidence.quantile * np.sqrt(variance + more))
            for more in (0.0, sampling)
        )
        text = _said(self.release, confidence, cut)
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
        zero = self.shown(0.0)
        std, spread = self.shown(std) - zero, self.shown(spread) - zero
        ends = self.shown(low), self.shown(high)
        return QueryResult(self.shown(value), std, *ends, text, spread)

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
        ranks = np.empty(n, dtype=np.int64)
        ranks[self.order] = np.arange(n)
        everyone = everything(self.column, self.attribute)
        parts = [
            {**part, self.column: part.get(self.column, everyone).without_missing()}
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


def spans_of(attribute: Numeric | Categorical) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest number of each code; of categories their places."""
    if isinstance(attribute, Categorical):
        places = np.arange(attribute.n_values, dtype=np.float64)
        return places, places
    special = np.array(attribute.special, dtype=np.float64)
    low, high = attribute.contents.span(np.arange(attribute.bins))
    return np.append(low, special).astype(np.float64), np.append(high, special).astype(np.float64)


# --- groups of records

_MAX_GROUPS = 100_000


def grouped(
    release: Release, groups: Groups, query: Any, column: str | None = None
) -> tuple[FloatArray, FloatArray | None]:
    """Counts of all groups among the records of a query, and sums of a column.

    With a column, only records that have a value in it count.

    Raises
    ------
    ValueError
        If there are too many groups.
    """
    if groups.number > _MAX_GROUPS:
        raise ValueError(
            f"Grouping by {' and '.join(groups.names)} makes {groups.number:,} groups, more than "
            f"{_MAX_GROUPS:,}. Group by fewer columns or by bands, or count the groups that "
            "matter by queries."
        )
    counts, sums = [], []
    for few in _cases(groups, query, column):
        counts.append(release.answer(_present(few)))
        if column is not None:
            sums.append(release.answer([moment(case, [1]) for case in few]))
    ordered = groups.in_order(np.concatenate(counts))
    return ordered, groups.in_order(np.concatenate(sums)) if sums else None


def group_intervals(
    release: Release,
    groups: Groups,
    query: Any,
    column: str | None,
    values: FloatArray,
    count: FloatArray,
    confidence: Confidence,
) -> Estimates:
    """Intervals of counts, or of means of a column from its sums, in the order of groups."""
    # Groups are asked for by bands first.
    places = groups.in_order(np.arange(groups.number, dtype=np.float64)).astype(np.int64)
    asked = np.argsort(places)
    values, count, found, start = values[asked], count[asked], [], 0
    for few in _cases(groups, query, column):
        part = slice(start, start := start + len(few))
        if column is None:
            found.append(counts(release, _present(few), confidence, values[part]))
        else:
            found.append(means(release, few, confidence, values[part], count[part]))
    *arrays, texts = zip(*found, strict=True)
    text = max(sorted(set(texts)), key=len)
    return Estimates._make([*map(np.concatenate, arrays), text]).at(places)


def _cases(groups: Groups, query: Any, column: str | None) -> Iterator[list[Case]]:
    """The records of each group, by bands, then by codes; some groups at a time."""
    columns = () if column is None else (column,)

    def cases() -> Iterator[Case]:
        for parts in groups.banded(query):
            each = [Selected.of(part, groups.domain, columns) for part in parts]
            for weights in zip(*(groups.within(one.weights) for one in each), strict=True):
                yield [one._replace(weights=own) for one, own in zip(each, weights, strict=True)]

    every = cases()
    while few := list(itertools.islice(every, _AT_ONCE)):
        yield few
