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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import numpy as np
from scipy.special import ndtri

from .._validation import BoolArray, FloatArray
from ..domain import Domain
from ..domain.query import Query, both, is_cut, parse_all, parts_of, weights_in, weights_of
from .grouping import Cases, Groups, Powers, case_of
from .model import Release, roots
from .prior import Roundest
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
    scaled: FloatArray = draws * (ndtri(0.975) / np.quantile(draws, 0.975, axis=1))[:, None]
    return scaled[:n]


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
AT_ROUNDEST = " Records lie at the roundest number of a bin as far as bins without one are empty."
_EVEN = " Inside bins, numbers are taken as spread evenly and independently of other columns."
NOTHING = " It may be any value that was declared: there are too few records for this noise."


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
    of_one: list[Powers] = [(0,), (1,), (2,)]
    if statistic in ("mean", "std"):
        return of_one[: 2 + (statistic == "std")]
    return [(0, 0), (1, 0), (0, 1), (2, 0), (0, 2), (1, 1)]


def _spread(statistic: str, drawn: FloatArray) -> tuple[FloatArray, BoolArray]:
    """A statistic of numbers in units of their range from their sums, and where there is one."""
    known = drawn[0] > _WHOLE
    mean, *more = drawn[1:] / np.maximum(drawn[0], _WHOLE)
    if statistic == "mean":
        return mean, known
    if statistic == "std":
        return np.sqrt(np.maximum(more[0] - mean**2, 0.0)), known
    other, square, another, product = more
    found = product - mean * other
    both = np.sqrt(np.maximum(square - mean**2, 0.0) * np.maximum(another - other**2, 0.0))
    ratios = np.divide(found, both, out=np.full_like(found, np.nan), where=both > 0)
    return {"covariance": found, "spreads": both, "correlation": ratios}[statistic], known


def _correlation(drawn: FloatArray, own: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Correlations, believable ones in the place of draws where enough are possible.

    What is not known of a covariance beside the spreads, ``own``, is in proportion to these: where
    columns vary less than it seems, so does what they have in common. Sums with normal errors alone
    would make spreads that noise hides large. Instead all spreads are equally likely.
    """
    (covariance, known), (spread, _) = (_spread(of, drawn) for of in ("covariance", "spreads"))
    usual, _ = _spread("spreads", drawn.mean(axis=2, keepdims=True))
    own = own / np.maximum(drawn[0], _WHOLE)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (covariance - own) / spread + own / usual
    possible = known & (np.abs(found) <= 1.0 + _WHOLE)
    enough = possible.sum(axis=1) >= _FEWEST
    places = (np.arange(found.shape[1]) + 0.5) / found.shape[1]
    for row in np.flatnonzero(enough).tolist():
        order = np.flatnonzero(possible[row])[np.argsort(found[row, possible[row]])]
        mass = 1.0 / spread[row, order]
        found[row] = np.interp(places, (np.cumsum(mass) - mass / 2) / mass.sum(), found[row, order])
    return found, known & enough[:, None]


Scale = tuple[FloatArray, FloatArray, FloatArray, FloatArray]  # start, unit, least and most


def _scaled(found: FloatArray, scale: Sequence[FloatArray]) -> FloatArray:
    """Statistics (n, m) in their unit, within their bounds."""
    shift, unit, least, most = (each[:, None] for each in scale)
    return np.minimum(np.maximum(shift + unit * found, least), most)


def _simulated(
    statistic: str, answers: FloatArray, scale: Scale, errors: FloatArray, quantile: float
) -> tuple[FloatArray, FloatArray]:
    """Ends of the intervals of functions; where nothing is known, each bound in turn counts."""
    draws = normal_draws(answers.shape[1])
    first = np.arange(draws.shape[1]) % 2 == 0
    # At other levels the 95% interval of errors that are as much larger or smaller.
    lower = quantile / float(ndtri(0.975)) * roots(errors)
    low, high = np.zeros((2, len(errors)))
    for start in range(0, len(errors), _SIMULATED):
        part = slice(start, start + _SIMULATED)
        *_, least, most = own = [each[part] for each in scale]
        drawn = np.moveaxis(lower[part] @ draws + answers[part, :, None], 1, 0)
        found, known = _spread(statistic, drawn)
        if statistic == "correlation":
            found, known = _correlation(drawn, lower[part, -1, -1:] * draws[-1])
        either = np.where(first, least[:, None], most[:, None])
        drawn = np.where(known, _scaled(found, own), either)
        low[part], high[part] = np.quantile(drawn, [0.025, 0.975], axis=1)
    return low, high


def _cut(queries: Sequence[Query]) -> bool:
    """Whether some cover a bin in part."""
    return any(map(is_cut, weights_in(queries)))


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
        self.roundest = Roundest(release, domain, confidence.quantile if confidence else 2.0)

    # -- counts and sums: linear, by their own law

    def counts(self, queries: Sequence[Any]) -> Any:
        """Numbers of records."""
        return self.counted(parse_all(queries, self.domain))

    def counted(self, asked: Sequence[Query]) -> Any:
        """Numbers of records, of queries as they are understood."""
        value = self._answers(asked)
        if self.confidence is None or not asked:
            return value
        return self._linear(self.confidence, asked, value).results()

    def _answers(self, asked: Sequence[Query]) -> FloatArray:
        """Expected counts and sums."""
        settled = self.roundest.settled(asked)
        return self.release.answer(settled[0][0] if settled else asked) + 0.0  # no minus zero

    def sums(self, column: str, queries: Sequence[Any]) -> Any:
        """Sums of a column; ValueError if it holds dates."""
        self._check_summable([column])
        cases = Cases([case_of(query, self.domain, [column]) for query in queries])
        value = self.sums_of(cases, 1)[:, 1]
        if self.confidence is None or not queries:
            return value
        asked, more = cases.plain([(1,)]), self._off(cases)
        low, high = (each[:, 0] for each in cases.ends())
        bounds = np.where(low < 0, -np.inf, 0.0), np.where(high > 0, np.inf, 0.0)
        said = BINS * bool(more.any()) + IN_PROPORTION * _cut(cases.plain([(0,)]))
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
        quantile, text, beside = confidence.quantile, confidence.about + said, more
        low = high = value
        if settled := self.roundest.settled(queries):
            (_, *ends, queries), variances = settled
            # Of negative numbers more is less.
            low, high = np.sort([self.release.answer(each) for each in ends], axis=0)
            text, beside = text + AT_ROUNDEST, np.hypot(more, np.sqrt(variances))
        found = self.release.reach(queries, confidence.level)
        below, above = (np.hypot(each, quantile * beside) for each in (found.below, found.above))
        lower, upper = possible_ends(
            value, value - low + below, high - value + above, confidence, bounds
        )
        std = np.hypot(np.hypot(found.std, beside), (high - low) / (2.0 * quantile))
        return Estimates(value, std, lower, upper, [found.guarantee + text] * len(value))

    def sums_of(self, cases: Cases, n_columns: int) -> FloatArray:
        """Number of records and sums of each column, (n_cases, 1 + n_columns)."""
        asked = cases.plain(np.eye(1 + n_columns, n_columns, -1, dtype=int).tolist())
        return self._answers(asked).reshape(-1, 1 + n_columns)

    def _off(self, cases: Cases) -> FloatArray:
        """Standard deviation of sums of numbers that may all lie to one side of their bins."""
        numbers = [each.numbers[0] for each in cases.cases[0]]
        if not any(each.reach.any() for each in numbers):
            return np.zeros(len(cases.cases))
        leaning = self.release.leaning(numbers[0].axis, numbers[0].width)
        asked = [each.times(numbers[0].axis, leaning) for each in cases.plain([(-1,)])]
        return np.maximum(self.release.answer(asked), 0.0)

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
        if statistic != "mean":
            self._check_summable(columns)
        cases = Cases([case_of(query, self.domain, columns) for query in queries])
        found = self._moments(statistic, cases, len(columns)) if queries else np.zeros(0)
        shown = self.domain[columns[0]].shown if statistic == "mean" else np.asarray
        return shown(found) if isinstance(found, np.ndarray) else found.results(shown)

    def _check_summable(self, columns: Sequence[str]) -> None:
        """Refuse dates, which have no sums nor what follows from them, but a mean."""
        for each in columns:
            if each in self.domain and not self.domain[each].summable:
                raise ValueError(
                    f"Column {each!r} holds dates. Ask for its mean, its quantiles, or counts of "
                    "ranges."
                )

    def _moments(self, statistic: str, cases: Cases, n: int) -> FloatArray | Estimates:
        """Statistics of n columns from numbers of records and sums; estimates with a confidence."""
        cases = cases.mapped(self.roundest.rounded)
        sums = self.sums_of(cases, n)
        count, totals, (low, high) = sums[:, :1], sums[:, 1:], cases.ends()
        none = np.full_like(totals, np.nan)
        means = np.clip(np.divide(totals, count, out=none, where=count > _WHOLE), low, high)
        # Numbers count from their mean, in units of their range.
        scale = np.where(high > low, high - low, 1.0)
        centre = np.where(np.isnan(means), (low + high) / 2, means)
        asked = cases.moments(_terms(statistic), centre, scale)
        values = [count, (totals - centre * count) / scale]
        if others := [query for each in asked for query in each[1 + n :]]:
            values.append(self.release.answer(others).reshape(len(asked), -1))
        zero, unit, one = np.zeros(len(asked)), scale.prod(axis=1), np.ones(len(asked))
        # The largest that a covariance, and a half of a spread, can be of numbers in this range.
        most = (high - low).prod(axis=1) / 4.0
        units = {
            "mean": (centre[:, 0], unit, low[:, 0], high[:, 0]),
            "std": (zero, unit, zero, 2.0 * most),
            "covariance": (zero, unit, -most, most),
            "correlation": (zero, one, -one, one),
        }
        bins = self._off(cases) / unit if statistic == "mean" else zero
        answers, cut = np.column_stack(values), _cut([each[0] for each in asked])
        return self._function(statistic, answers, units[statistic], asked, cut, bins)

    def proportion(self, query: Any, among: Any) -> QueryResult | float:
        """Share of a query among the records of another: the mean of being among them."""
        whole = parts_of(among, self.domain)
        within = [both(one, two) for one in whole for two in parts_of(query, self.domain)]
        asked = [
            Query(tuple(weights_of(part, self.domain) for part in parts))
            for parts in (whole, within)
        ]
        zero, one = np.zeros(1), np.ones(1)
        if asked[1].at_points and not asked[0].at_points:
            # What is not known of a single number is far more than what is not known of the whole.
            count, value = max(float(self.release.answer(asked)[0]), 1.0), self._answers(asked[1:])
            if self.confidence is None:
                return min(float(value[0]) / count, 1.0)
            *linear, said = self._linear(self.confidence, asked[1:], value)
            value, std, lower, upper = np.minimum(np.array(linear) / count, 1.0)
            return Estimates(value, std, lower, upper, said).results()[0]
        asked = [query.replaced(self.roundest.rounded) for query in asked]
        answers = self.release.answer(asked)[None]
        scale = zero, one, zero, one
        found = self._function("mean", answers, scale, [asked], _cut(asked), zero)
        return float(found[0]) if isinstance(found, np.ndarray) else found.results()[0]

    def _function(
        self,
        statistic: str,
        answers: FloatArray,
        scale: Scale,
        asked: Sequence[Sequence[Query]],
        cut: bool,
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
        cut : bool
            Whether some cover bins in part.
        bins : ndarray of float64
            Standard deviation of what else is not known of the second answer.
        """
        found, known = _spread(statistic, answers.T[:, :, None])
        value, confidence = np.where(known, _scaled(found, scale), np.nan)[:, 0], self.confidence
        if confidence is None:
            return value
        errors = self.release.covariances(asked)
        errors[:, 1, 1] += bins**2
        low, high = _simulated(statistic, answers, scale, errors, confidence.quantile)
        *_, least, most = scale
        nothing = (low <= least) & (high >= most) & (least < most)
        said = said_of(self.release, confidence, cut) + _EVEN * (statistic != "mean")
        each = zip((bins > 0).tolist(), nothing.tolist(), strict=True)
        texts = [said + BINS * anywhere + NOTHING * none for anywhere, none in each]
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
        cases = Cases([*groups.within(query, columns)])
        sums = self.sums_of(cases, len(columns))
        if column is not None:
            return sums[:, 0], sums[:, 1], self._moments("mean", cases, 1)
        if self.confidence is None:
            return sums[:, 0], None, None
        return sums[:, 0], None, self._linear(self.confidence, cases.plain([()]), sums[:, 0])


_MAX_GROUPS = 100_000
_FEWEST = 500  # possible draws, of 2,000, below which nothing is known
_SIMULATED = 32  # functions that are simulated together: their draws fit into a core's cache
_WHOLE = 1e-9  # by which rounding may exceed what is possible, and nobody
