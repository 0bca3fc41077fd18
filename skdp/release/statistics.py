"""Statistics of a release with intervals, from `Release.answer` and `Release.covariances` alone.

A mean, a share, a correlation is a function of a few linear answers. Its interval is that of the
function over simulated releases: the answers plus normal errors of their covariance. No case is
special: a mean of no one has an interval as wide as the range of its column. Counts and sums are
linear and have their own law, `Release.reach`.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import numpy as np
from scipy.special import ndtri

from .._validation import BoolArray, FloatArray
from ..domain import Categorical, Domain, Numeric
from ..domain.query import (
    Query,
    Region,
    Weights,
    attribute_of,
    both,
    everything,
    is_cut,
    parse_all,
    parts_of,
    weights_of,
)
from .grouping import Groups
from .model import Release, roots
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
    places = [first, first + 1, -2 - first, -1 - first]
    a, b, c, d = np.partition(values, places, axis=1)[:, places].T
    return a + part * (b - a), d - part * (d - c)


# --- what an interval is meant to cover


class How(TypedDict, total=False):
    """What a user asks for beside a statistic; `Synopsis.count` says what each means."""

    return_interval: bool
    level: float


@dataclass(frozen=True)
class Confidence:
    """What an interval is meant to cover.

    Attributes
    ----------
    level : float
    about : str, default=""
        Which records answers are about, where not about all.
    """

    level: float
    about: str = ""

    @property
    def quantile(self) -> float:
        """How many standard deviations a normal law stays within at this level."""
        return float(ndtri(0.5 + self.level / 2))


class Estimates(NamedTuple):
    """Estimates with their errors: an array of each, and what each interval covers."""

    value: FloatArray
    std: FloatArray
    lower: FloatArray
    upper: FloatArray
    guarantee: Sequence[str]

    @classmethod
    def joined(cls, parts: Sequence[Estimates]) -> Estimates:
        """One after the other."""
        *arrays, texts = zip(*parts, strict=True)
        return cls._make([*map(np.concatenate, arrays), list(itertools.chain(*texts))])

    def shown(self, as_value: Callable[[FloatArray], Any]) -> dict[str, Any]:
        """Values, standard deviations and ends as users see them, such as dates."""
        value, std, lower, upper = map(as_value, self[:4])
        std = std - as_value(np.zeros(1))[0]
        return {"value": value, "std_error": std, "lower": lower, "upper": upper}

    def results(self, as_value: Callable[[FloatArray], Any] = np.asarray) -> list[QueryResult]:
        """One result for each estimate."""
        shown = [each.tolist() for each in self.shown(as_value).values()]
        return list(itertools.starmap(QueryResult, zip(*shown, self.guarantee, strict=True)))


IN_PROPORTION = " Bins covered in part are taken as covered in proportion."
BINS = " Numbers may lie anywhere in their bins."
_CORRELATED = " Small correlations are taken as likelier than large ones."
_EVEN = " Inside bins, numbers are taken as spread evenly and independently of other columns."
NOTHING = " It may be any value that was declared: there are too few records for this noise."


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
    low, high : ndarray of float64
        Smallest and largest number, within the ends of a condition; infinite of codes without one.
    """

    axis: int
    mean: FloatArray
    variance: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, column: str, region: Region, domain: Domain) -> Numbers:
        """Of the part of a column that a condition covers."""
        attribute = domain[column]
        share, moment = region.weights, region.moment
        mean = np.divide(moment, share, out=np.zeros(len(share)), where=share > 0)
        variance, low, high = np.zeros(len(mean)), mean + np.inf, mean - np.inf
        if isinstance(attribute, Numeric):
            bins, held = attribute.bins, attribute.contents
            width = np.diff(np.asarray(attribute.edges, dtype=np.float64)) * share[:bins]
            variance[:bins] = np.maximum(width**2 - held.step**2, 0.0) / 12.0
            ends = region.extent()
            low[: attribute.n_values], high[: attribute.n_values] = spans_of(attribute)
            low, high = (np.where(share > 0, np.clip(each, *ends), each) for each in (low, high))
        else:
            low[: attribute.n_values] = high[: attribute.n_values] = attribute.categories
        structure = domain.structure
        axis = domain.index(structure.base_of(column))
        each = (mean, variance, low, high)
        return cls(axis, *(structure.lifted(column, of_codes) for of_codes in each))

    @property
    def reach(self) -> FloatArray:
        """Largest distance of a number from ``mean``, for each code."""
        return np.maximum(np.maximum(self.high - self.mean, self.mean - self.low), 0.0)

    def power(self, exponent: int, centre: float, scale: float) -> FloatArray:
        """Mean of a power of (number - centre) / scale for each code; of -1 `reach`."""
        if exponent < 0:
            return self.reach
        mean = (self.mean - centre) / scale
        return mean if exponent == 1 else mean**2 + self.variance / scale**2

    def times(self, weights: FloatArray, *power: Any) -> FloatArray:
        """Weights of codes times a power of their numbers."""
        return weights * self.power(*power)

    def ends(self, weights: FloatArray) -> tuple[float, float]:
        """Smallest and largest number of records with a weight; of any, where none has one."""
        held = weights > 0
        held |= not held.any()
        return float(self.low[held].min()), float(self.high[held].max())


def spans_of(attribute: Numeric | Categorical) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest number of each code; of categories their places."""
    if isinstance(attribute, Categorical):
        places = np.arange(attribute.n_values, dtype=np.float64)
        return places, places
    low, high = attribute.contents.span(np.arange(attribute.bins))
    special = np.array(attribute.special, dtype=np.float64)
    return np.append(low, special).astype(np.float64), np.append(high, special).astype(np.float64)


def has_numbers(attribute: Numeric | Categorical) -> bool:
    """Whether a mean of a column can be asked for."""
    if isinstance(attribute, Numeric):
        return True
    return not any(isinstance(each, str) for each in attribute.categories)


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


Case = Sequence[Selected]  # records of disjoint conjunctions
Powers = Sequence[int]  # of the numbers of each column


def case_of(query: Any, domain: Domain, columns: Sequence[str]) -> Case:
    """The records of a query with numbers in some columns."""
    return [Selected.of(regions, domain, columns) for regions in parts_of(query, domain)]


class Cases:
    """Records of many queries; what follows from an array is found once for all that share it."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.cases = cases
        self._seen: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self.cases)

    def _once(self, of: Callable[..., Any], weights: FloatArray, *how: float) -> Any:
        key = of, id(weights), *how
        if key not in self._seen:
            self._seen[key] = of(weights, *how)
        return self._seen[key]

    def moments(
        self, terms: Sequence[Powers], centre: FloatArray, scale: FloatArray
    ) -> list[list[Query]]:
        """Of each case the queries for sums over records of products of powers of their numbers.

        Of the numbers less ``centre``, in units of ``scale``, (n_cases, n_columns).
        """
        return [
            [Query(tuple(self._product(one, each, *units) for one in case)) for each in terms]
            for case, *units in zip(self.cases, centre.tolist(), scale.tolist(), strict=True)
        ]

    def plain(self, terms: Sequence[Powers]) -> list[Query]:
        """`moments` of the numbers as they are, in one list."""
        none = np.zeros((len(self), len(terms[0])))
        return list(itertools.chain.from_iterable(self.moments(terms, none, none + 1.0)))

    def _product(
        self, one: Selected, powers: Powers, centre: Sequence[float], scale: Sequence[float]
    ) -> Weights:
        product = dict(one.weights)
        for of, *power in zip(one.numbers, powers, centre, scale, strict=True):
            if power[0]:
                product[of.axis] = self._once(of.times, product[of.axis], *power)
        return product

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest number of each column among the records, (n_cases, n_columns)."""

        def of(one: Selected) -> list[tuple[float, float]]:
            return [self._once(of.ends, one.weights[of.axis]) for of in one.numbers]

        each = [np.array(list(map(of, case))) for case in self.cases]
        low = np.array([ends[..., 0].min(axis=0) for ends in each])
        return low, np.array([ends[..., 1].max(axis=0) for ends in each])

    @property
    def cut(self) -> list[bool]:
        """Whether each covers a bin in part."""
        vectors = ([each for one in case for each in one.weights.values()] for case in self.cases)
        return [any(self._once(is_cut, each) for each in some) for some in vectors]


# --- ends, and functions of answers


def possible_ends(
    value: Any, below: Any, above: Any, confidence: Confidence, bounds: Any = (0.0, math.inf)
) -> tuple[FloatArray, FloatArray]:
    """Ends of intervals within bounds.

    Where a value lies further beyond a bound than its interval reaches, the other end is that of
    the law of what is possible.
    """
    tail, (least, most) = -math.log1p(-confidence.level) / confidence.quantile**2, bounds
    lower, upper = (
        np.minimum(np.maximum(each, least), most) for each in (value - below, value + above)
    )
    short, over = least - value, value - most
    with np.errstate(divide="ignore", invalid="ignore"):
        upper = np.where((short > 0) & (short >= above), least + tail * above**2 / short, upper)
        lower = np.where((over > 0) & (over >= below), most - tail * below**2 / over, lower)
    return lower, upper


def _terms(statistic: str) -> list[Powers]:
    """Sums over records that a statistic is a function of: powers of the numbers of each column."""
    if statistic == "mean":
        return [(0,), (1,)]
    if statistic == "std":
        return [(0,), (1,), (2,)]
    return [(0, 0), (1, 0), (0, 1), (2, 0), (0, 2), (1, 1)]


def _spread(statistic: str, drawn: FloatArray) -> tuple[FloatArray, BoolArray]:
    """A statistic of numbers in units of their range from their sums, and where there is one."""
    known = drawn[0] > _WHOLE
    mean, *more = drawn[1:] / np.maximum(drawn[0], _WHOLE)
    if statistic == "mean":
        return mean, known
    if statistic == "std":
        return np.sqrt(np.maximum(more[0] - mean**2, 0.0)), known
    other, *squares, product = more
    found = product - mean * other
    if statistic == "covariance":
        return found, known
    one, two = (np.maximum(s - m**2, 0.0) for s, m in zip(squares, (mean, other), strict=True))
    both = np.sqrt(one * two)
    return np.divide(found, both, out=np.full_like(found, np.nan), where=both > 0), known


def _correlation(drawn: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Correlations, believable ones in the place of draws where enough are possible.

    Sums with normal errors alone would make spreads that noise hides large, and so correlations
    small. Instead a spread may be of any order of size: its density is its inverse. That of a
    correlation r is 1 - r^2, up to a factor: of four columns whose correlations are all that are
    possible together, equally likely (D. Lewandowski, D. Kurowicka, H. Joe, Journal of
    Multivariate Analysis 100, 2009).
    """
    (found, known), (covariance, _) = (_spread(of, drawn) for of in ("correlation", "covariance"))
    possible = known & (np.abs(found) <= 1.0 + _WHOLE)
    enough = possible.sum(axis=1) >= _FEWEST
    places = (np.arange(found.shape[1]) + 0.5) / found.shape[1]
    for row in np.flatnonzero(enough).tolist():
        order = np.flatnonzero(possible[row])[np.argsort(found[row, possible[row]])]
        r = found[row, order]
        spread = np.divide(covariance[row, order], r, out=np.ones(len(r)), where=r != 0)
        spread = np.maximum(spread, np.median(spread) * _LEAST_SPREAD)
        likely = np.maximum(1.0 - r**2, _WHOLE) / spread**3
        found[row] = np.interp(places, (np.cumsum(likely) - likely / 2) / likely.sum(), r)
    return found, known & enough[:, None]


Scale = tuple[FloatArray, FloatArray, FloatArray, FloatArray]  # start, unit, least and most


def _value(statistic: str, answers: FloatArray, scale: Scale) -> FloatArray:
    """A statistic of k answers, (n, k); NaN where nobody is left."""
    shift, unit, least, most = scale
    found, known = (each[:, 0] for each in _spread(statistic, answers.T[:, :, None]))
    return np.where(known, np.clip(shift + unit * found, least, most), np.nan)


def _simulated(
    statistic: str, answers: FloatArray, scale: Scale, errors: FloatArray, quantile: float
) -> tuple[FloatArray, FloatArray]:
    """Ends of the intervals of `_value`; where nothing is known, each bound in turn counts."""
    of = _correlation if statistic == "correlation" else functools.partial(_spread, statistic)
    draws = normal_draws(answers.shape[1])
    # At other levels the 95% interval of errors that are as much larger or smaller.
    lower = quantile / float(ndtri(0.975)) * roots(errors)
    low, high = np.zeros((2, len(errors)))
    for start in range(0, len(errors), _SIMULATED):
        part = slice(start, start + _SIMULATED)
        shift, unit, least, most = (each[part, None] for each in scale)
        found, known = of(np.moveaxis(lower[part] @ draws + answers[part, :, None], 1, 0))
        found = np.minimum(np.maximum(shift + unit * found, least), most)
        unknown = np.flatnonzero(~known.all(axis=1))
        either = np.where(np.arange(draws.shape[1]) % 2 == 0, least[unknown], most[unknown])
        found[unknown] = np.where(known[unknown], found[unknown], either)
        low[part], high[part] = _ends(found)
    return low, high


def said_of(release: Release, confidence: Confidence, cut: bool = False) -> str:
    """What a simulated interval covers; ``cut`` says whether bins are covered in part."""
    return (
        f"The interval is made to contain the true answer with a probability of "
        f"{100 * confidence.level:g}%, by simulation from a covariance that covers "
        f"{release.covers}.{IN_PROPORTION * cut}{confidence.about}"
    )


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

    # -- counts and sums: linear, by their own law

    def counts(self, queries: Sequence[Any]) -> Any:
        """Numbers of records."""
        parts = (queries[at : at + _AT_ONCE] for at in range(0, len(queries), _AT_ONCE))
        return self.counted([query for part in parts for query in parse_all(part, self.domain)])

    def counted(self, asked: Sequence[Query]) -> Any:
        """Numbers of records, of queries as they are understood."""
        value = self.release.answer(asked) if asked else np.zeros(0)
        if self.confidence is None or not asked:
            return value
        return self._linear(self.confidence, asked, value).results()

    def sums(self, column: str, queries: Sequence[Any]) -> Any:
        """Sums of a column."""
        cases = Cases([case_of(query, self.domain, [column]) for query in queries])
        value = self._sums(cases, 1)[:, 1]
        if self.confidence is None or not len(cases):
            return value
        asked, more = cases.plain([(1,)]), self._off(cases)
        low, high = (each[:, 0] for each in cases.ends())
        bounds = np.where(low < 0, -np.inf, 0.0), np.where(high > 0, np.inf, 0.0)
        said = BINS * bool(more.any()) + IN_PROPORTION * any(cases.cut)
        return self._linear(self.confidence, asked, value, bounds, more, said).results()

    def _linear(
        self,
        confidence: Confidence,
        queries: Sequence[Query],
        value: FloatArray,
        bounds: tuple[Any, Any] = (0.0, math.inf),
        more: Any = 0.0,
        said: str = "",
    ) -> Estimates:
        """Intervals of counts and sums.

        Parameters
        ----------
        confidence : Confidence
        queries : sequence of Query
        value : ndarray of float64
            Answers.
        bounds : tuple of float or ndarray
            Smallest and largest possible value.
        more : float or ndarray, default=0.0
            Standard deviation of what else is not known.
        said : str, default=""
            What that is, in words.
        """
        found = self.release.reach(queries, confidence.level)
        beside = confidence.quantile * more
        below, above = np.hypot(found.below, beside), np.hypot(found.above, beside)
        lower, upper = possible_ends(value, below, above, confidence, bounds)
        text = found.guarantee + confidence.about + said
        return Estimates(value, np.hypot(found.std, more), lower, upper, [text] * len(value))

    def _sums(self, cases: Cases, n_columns: int) -> FloatArray:
        """Number of records and sums of each column, (n_cases, 1 + n_columns)."""
        asked = cases.plain(np.eye(1 + n_columns, n_columns, -1, dtype=int).tolist())
        found = self.release.answer(asked) if asked else np.zeros(0)
        return found.reshape(len(cases), -1 if asked else 1 + n_columns) + 0.0  # no minus zero

    def _off(self, cases: Cases) -> FloatArray:
        """Standard deviation of sums of numbers that lie anywhere in their bins, alike in all bins.

        Half of how far they may be off: by itself it makes 95% intervals as wide as that.
        """
        if not any(each.numbers[0].reach.any() for each in cases.cases[0]):
            return np.zeros(len(cases))
        return np.maximum(self.release.answer(cases.plain([(-1,)])), 0.0) / 2

    # -- functions of sums, by simulation

    def moments(self, statistic: str, columns: Sequence[str], queries: Sequence[Any]) -> Any:
        """Means, standard deviations, covariances or correlations of the records of each query.

        Raises
        ------
        ValueError
            If the columns are not different, or one holds dates, which have a mean only.
        """
        if len(set(columns)) < len(columns):
            raise ValueError(f"The columns must be different, got {columns[0]!r} twice.")
        shown: Callable[..., Any] = np.asarray
        for each in columns:
            if each in self.domain and not self.domain[each].summable:
                shown = self.domain[each].shown
                if statistic != "mean":
                    raise ValueError(
                        f"Column {each!r} holds dates. Ask for its mean, its quantiles, or counts "
                        "of ranges."
                    )
        cases = Cases([case_of(query, self.domain, columns) for query in queries])
        found = self._moments(statistic, cases, self._sums(cases, len(columns)))
        return shown(found) if isinstance(found, np.ndarray) else found.results(shown)

    def _moments(self, statistic: str, cases: Cases, sums: FloatArray) -> FloatArray | Estimates:
        """Statistics from numbers of records and sums; estimates where there is a confidence."""
        count, totals, terms = sums[:, :1], sums[:, 1:], _terms(statistic)
        if not len(cases):
            return count[:, 0]
        low, high = cases.ends()
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.clip(np.where(count > _WHOLE, totals / count, np.nan), low, high)
        # Numbers count from their mean, in units of their range.
        scale = np.where(high > low, high - low, 1.0)
        centre = np.where(np.isnan(means), (low + high) / 2, means)
        asked = cases.moments(terms, centre, scale)
        values = [count, (totals - centre * count) / scale]
        if others := [query for each in asked for query in each[sums.shape[1] :]]:
            values.append(self.release.answer(others).reshape(len(cases), -1))
        zero, unit, one = np.zeros(len(cases)), scale.prod(axis=1), np.ones(len(cases))
        # The largest that a covariance, and a half of a spread, can be of numbers in this range.
        most = (high - low).prod(axis=1) / 4.0
        units = {
            "mean": (centre[:, 0], unit, low[:, 0], high[:, 0]),
            "std": (zero, unit, zero, 2.0 * most),
            "covariance": (zero, unit, -most, most),
            "correlation": (zero, one, -one, one),
        }
        bins = self._off(cases) / scale[:, 0] if statistic == "mean" else zero
        answers = np.column_stack(values)
        return self._function(statistic, answers, units[statistic], asked, cases.cut, bins)

    def proportion(self, query: Any, among: Any) -> QueryResult | float:
        """Share of a query among the records of another: the mean of being among them."""
        whole = parts_of(among, self.domain)
        within = [both(one, two) for one in whole for two in parts_of(query, self.domain)]
        asked = [
            Query(tuple(weights_of(part, self.domain) for part in parts))
            for parts in (whole, within)
        ]
        zero, one = np.zeros(1), np.ones(1)
        answers = self.release.answer(asked)[None]
        cut, scale = [any(each.cuts for each in asked)], (zero, one, zero, one)
        found = self._function("mean", answers, scale, [asked], cut, zero)
        return float(found[0]) if isinstance(found, np.ndarray) else found.results()[0]

    def _function(
        self,
        statistic: str,
        answers: FloatArray,
        scale: Scale,
        asked: Sequence[Sequence[Query]],
        cut: Sequence[bool],
        bins: FloatArray,
    ) -> FloatArray | Estimates:
        """The same function of k answers each, with intervals where there is a confidence.

        Parameters
        ----------
        statistic : str
            A mean, std, covariance or correlation, of k sums over records.
        answers : ndarray of float64, shape (n, k)
        scale : tuple of ndarray of float64, shape (n,)
            Where values count from, their unit, the smallest and the largest.
        asked : sequence of n sequences of k Query
            What the answers are to.
        cut : sequence of bool
            Which cover bins in part.
        bins : ndarray of float64
            Standard deviation of what else is not known of the second answer.
        """
        value, confidence = _value(statistic, answers, scale), self.confidence
        if confidence is None:
            return value
        errors = self.release.covariances(asked)
        errors[:, 1, 1] += bins**2
        low, high = _simulated(statistic, answers, scale, errors, confidence.quantile)
        *_, least, most = scale
        nothing = (low <= least) & (high >= most) & (least < most)
        beside = _EVEN * (statistic != "mean") + _CORRELATED * (statistic == "correlation")
        texts = [
            said_of(self.release, confidence, each)
            + BINS * bool(off)
            + beside
            + NOTHING * bool(none)
            for each, off, none in zip(cut, bins.tolist(), nothing.tolist(), strict=True)
        ]
        return Estimates(value, (high - low) / (2.0 * confidence.quantile), low, high, texts)

    def groups(self, groups: Groups, query: Any, column: str | None) -> tuple[Any, Any, Any]:
        """Counts of all groups among the records of a query, sums of a column, and its means.

        With a column, only records that have a value in it count. With a confidence the means, or
        without a column the counts, come as estimates.

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
        columns = [] if column is None else [column]
        every = groups.within(query, lambda part: Selected.of(part, self.domain, columns))
        sums, found = [], []
        while few := list(itertools.islice(every, _AT_ONCE)):
            cases = Cases(few)
            sums.append(self._sums(cases, len(columns)))
            if column is not None:
                found.append(self._moments("mean", cases, sums[-1]))
            elif self.confidence is not None:
                found.append(self._linear(self.confidence, cases.plain([()]), sums[-1][:, 0]))
        count, *total = np.concatenate(sums).T
        whole: Any = Estimates.joined if self.confidence else np.concatenate
        return count, total[0] if total else None, whole(found) if found else None


_AT_ONCE = 1024  # queries or groups that are asked together
_MAX_GROUPS = 100_000
_FEWEST = 500  # possible draws, of 2,000, below which nothing is known
_LEAST_SPREAD = 0.03  # as a part of the median draw, by which the weight of a draw is bounded
_SIMULATED = 32  # functions that are simulated together: their draws fit into a core's cache
_WHOLE = 1e-9  # by which rounding may exceed what is possible, and nobody
