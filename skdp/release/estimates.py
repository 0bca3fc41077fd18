"""Linear answers with their errors, and the numbers of columns that they are made of.

The numbers of columns among the records of a conjunction, as weights of codes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from .._validation import FloatArray, IntArray, as_level, as_number, check_choice, exclusive_cumsum
from ..domain import Domain, Numeric
from ..domain.bins import Points
from ..domain.query import parts_of
from ..domain.regions import Region, RegionUnion, attribute_of, everything
from .intervals import Errors
from .model import Model, Weights
from .query import QueryReader, moments, reach_of, weights_of
from .result import QueryResult


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


class Selected(NamedTuple):
    """Records of a conjunction that have a number in each of some columns.

    Attributes
    ----------
    weights : dict of int to ndarray
        Of the records.
    numbers : list of Numbers
        Of each column.
    """

    weights: Weights
    numbers: Sequence[Numbers]

    @classmethod
    def of(cls, regions: Mapping[str, Region], domain: Domain, columns: Sequence[str]) -> Selected:
        """Records of a conjunction; columns are `Numeric`, or have categories that are numbers."""
        told = dict(regions)
        for column in columns:
            attribute = attribute_of(column, domain)
            told[column] = (told.get(column) or everything(column, attribute)).without_missing()
        numbers = [_numbers(column, told[column], domain) for column in columns]
        return cls(weights_of(told, domain), numbers)

    def times(self, *factors: tuple[int, FloatArray]) -> dict[int, FloatArray]:
        """Weights of the records times functions of single columns."""
        result = dict(self.weights)
        for axis, vector in factors:
            result[axis] = result[axis] * vector
        return result

    def ends(self, place: int = 0) -> tuple[float, float]:
        """Smallest and largest number of a column that a record can have."""
        axis, mean, _, reach, (least, most) = self.numbers[place]
        held = self.weights[axis] > 0
        if not held.any():
            return least, most
        low, high = (mean - reach)[held].min(), (mean + reach)[held].max()
        return max(float(low), least), min(float(high), most)


def selected(query: Any, domain: Domain, columns: Sequence[str]) -> list[Selected]:
    """Disjoint conjunctions of the records of a query with numbers in some columns."""
    return [Selected.of(regions, domain, columns) for regions in parts_of(query, domain)]


def scaled(weights: Weights, factor: float, domain: Domain) -> dict[int, FloatArray]:
    """Weights of records, times a number."""
    axis = min(weights, default=0)
    vector = weights.get(axis, np.ones(domain.shape[axis]))
    return {**weights, axis: vector * factor}


def joined_parts(
    first: Sequence[Mapping[str, Region]], second: Sequence[Mapping[str, Region]]
) -> list[dict[str, Region]]:
    """Conjunctions of two unions of disjoint conjunctions."""
    return [_both(one, two) for one in first for two in second]


def _both(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, Region]:
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


def _numbers(column: str, region: Region, domain: Domain) -> Numbers:
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
    return Numbers(axis, mean, variance, reach, reach_of(column, domain))


# ------------------------------------------------------------------------------------------------
# Estimates: linear answers and ratios of them, with intervals that stay within what is possible.
#
# The interval of a ratio A / B is the set of r for which A - r B could be zero (Fieller). The error
# of A - r B is at most that of A - r' B at the estimate r', plus |r - r'| times that of B. So where
# these two reach e and b, the interval reaches e / (B - b); where b is B or more, nothing is known.


# --- confidence: what an interval is meant to cover


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
    quick : bool, default=False
        Whether the law of a sum of noise is approximated even for one question.
    """

    level: float
    population: bool = False
    size: float = math.inf
    quick: bool = False

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

    def sampling_std(self, variance: Any, total: float) -> FloatArray:
        """Standard deviation over samples of a population; zeros if these are not asked for.

        Parameters
        ----------
        variance : array-like
            Variance of the statistic over samples with replacement.
        total : float
            Number of records in the sample.
        """
        variance = np.asarray(variance, dtype=np.float64)
        if not self.population:
            return np.zeros(variance.shape)
        left = 1.0 - min(max(total, 0.0) / self.size, 1.0)
        return np.sqrt(np.maximum(variance, 0.0) * left)

    def with_sampling(self, reach: FloatArray, sampling_std: FloatArray) -> FloatArray:
        """Reach of an interval for an error of the noise and an independent one of sampling."""
        return np.hypot(reach, self.quantile * sampling_std)

    @property
    def text(self) -> str:
        """What is said of sampling beside what is said of the noise."""
        if not self.population:
            return ""
        most = "" if math.isinf(self.size) else f" of {self.size:,.0f}"
        return (
            f" The interval also covers sampling, taken as normal: the records are a simple random "
            f"sample of a population{most}."
        )


_NOTHING = (
    " The noise in the number of records is as large as the number itself: the release says "
    "nothing beyond what was declared."
)


class Estimates(NamedTuple):
    """Estimates with their errors: an array of each, and what the intervals cover."""

    value: FloatArray
    std: FloatArray
    sampling_std: FloatArray
    lower: FloatArray
    upper: FloatArray
    guarantee: str

    @property
    def std_error(self) -> FloatArray:
        """Standard deviation of noise and sampling together."""
        return np.hypot(self.std, self.sampling_std)

    def at(self, places: IntArray) -> Estimates:
        """Some of the estimates, in another order."""
        *arrays, guarantee = self
        return Estimates._make([*(array[places] for array in arrays), guarantee])

    def columns(self, shown: Callable[[FloatArray], Any] | None = None) -> dict[str, Any]:
        """Columns of a table; ``shown`` makes what users see of numbers."""
        ends = {"lower": self.lower, "upper": self.upper}
        if shown is None:
            return {"std_error": self.std_error, **ends}
        error = shown(self.std_error) - shown(np.zeros(1))[0]
        return {"std_error": error, **{name: shown(each) for name, each in ends.items()}}

    def results(self, shown: Callable[[FloatArray], Any] | None = None) -> list[QueryResult]:
        """One result for each estimate; ``shown`` makes what users see of numbers."""
        columns = [self.value, self.std, self.sampling_std, self.lower, self.upper]
        if shown is not None:
            value, lower, upper = (shown(columns[place]) for place in (0, 3, 4))
            zero = shown(np.zeros(1))[0]
            spread = [[each - zero for each in shown(columns[place])] for place in (1, 2)]
            rows = zip(value, *spread, lower, upper, strict=True)
        else:
            rows = zip(*(column.tolist() for column in columns), strict=True)
        return [
            QueryResult(value, std, lower, upper, self.guarantee, sampling)
            for value, std, sampling, lower, upper in rows
        ]


def linear(
    value: FloatArray,
    errors: Errors,
    sampling_variance: FloatArray,
    bounds: tuple[Any, Any],
    confidence: Confidence,
    total: float,
    reach: Any = 0.0,
) -> Estimates:
    """Estimates that are linear in the counts.

    Parameters
    ----------
    value : ndarray of float64
    errors : Errors
        Of the noise.
    sampling_variance : ndarray of float64
        Variance over samples.
    bounds : tuple of float or ndarray
        Smallest and largest possible value.
    confidence : Confidence
    total : float
        Number of records.
    reach : float or ndarray, default=0.0
        How far the value may be off besides.
    """
    sampling = confidence.sampling_std(sampling_variance, total)
    below, above = (
        confidence.with_sampling(each, sampling) + reach for each in (errors.below, errors.above)
    )
    lower, upper = np.clip(value - below, *bounds), np.clip(value + above, *bounds)
    return Estimates(value, errors.std, sampling, lower, upper, errors.guarantee + confidence.text)


def ratios(
    value: FloatArray,
    count: FloatArray,
    errors: Errors,
    count_errors: Errors,
    sampling_variance: FloatArray,
    bounds: tuple[Any, Any],
    confidence: Confidence,
    total: float,
    reach: Any = 0.0,
) -> Estimates:
    """Ratios of linear answers.

    Parameters
    ----------
    value : ndarray of float64
        NaN where there is no estimate.
    count : ndarray of float64
        The denominators.
    errors : Errors
        Of the numerators less the values times the denominators.
    count_errors : Errors
        Of the denominators.
    sampling_variance, bounds, confidence, total, reach
        As for `linear`.
    """
    sure = count - count_errors.below
    known = (sure > 0) & np.isfinite(value)
    divisor = np.where(known, sure, 1.0)
    sampling = confidence.sampling_std(np.where(known, sampling_variance, 0.0), total)
    below, above = (
        confidence.with_sampling(each / divisor, sampling) + reach
        for each in (errors.below, errors.above)
    )
    lowest, highest = (np.broadcast_to(each, value.shape) for each in bounds)
    middle = np.where(known, value, 0.0)
    lower = np.where(known, np.clip(middle - below, lowest, highest), lowest)
    upper = np.where(known, np.clip(middle + above, lowest, highest), highest)
    # Of numbers within bounds, no standard deviation is larger.
    std = np.where(known, errors.std / np.where(known, count, 1.0), np.inf)
    std = np.minimum(std, (highest - lowest) / 2)
    text = errors.guarantee + confidence.text
    text += _NOTHING * bool(len(known) and not known.all())
    return Estimates(value, std, sampling, lower, upper, text)


IN_PROPORTION = " Bins covered in part are taken as covered in proportion."


def telling_cuts(found: Estimates, queries: Iterable[Weights]) -> Estimates:
    """The same, with a guarantee that says so if a query covers a bin in part.

    Parameters
    ----------
    found : Estimates
    queries : iterable of mapping of int to ndarray
        Weights of conjunctions.
    """
    if not covers_in_part(queries):
        return found
    return found._replace(guarantee=found.guarantee + IN_PROPORTION)


def covers_in_part(queries: Iterable[Weights]) -> bool:
    """Whether conjunctions cover a bin in part."""
    return any(
        ((vector > 0) & (vector < 1)).any() for weights in queries for vector in weights.values()
    )


def joined(each: Sequence[Estimates]) -> Estimates:
    """Several estimates as one."""
    *arrays, texts = zip(*each, strict=True)
    guarantee = max(sorted(set(texts)), key=len)
    return Estimates._make([*map(np.concatenate, arrays), guarantee])


# --- errors of linear questions: sums of answers under real weights


def errors_of(
    model: Model, questions: Sequence[Sequence[Weights]], confidence: Confidence
) -> Errors:
    """Errors of sums of answers; weights may be any real numbers.

    A question by itself has its exact law, unless ``confidence.quick``. Several are asked together
    of a model that has a method for this, ``errors_of(questions, level)``.
    """
    level = confidence.level
    many = getattr(model, "errors_of", None)
    if many is not None and (len(questions) > 1 or confidence.quick):
        errors: Errors = many(questions, level)
        return errors
    each = [model.error_of_parts(parts, level) for parts in questions]
    std, below, above = np.array([error[:3] for error in each]).reshape(-1, 3).T
    return Errors(std, below, above, each[0].guarantee if each else "")


# --- answers to many queries, asked for in parts

_HELD_WEIGHTS = 1 << 23


def listed(query: Any) -> tuple[list[Any], bool]:
    """The queries as a list, and whether there was only one without a list."""
    if isinstance(query, list | tuple):
        return list(query), False
    return [query], True


def answer_all(model: Model, queries: Iterable[Weights]) -> np.ndarray:
    """Answers to many queries; a limited number of weights is held at a time."""
    answers: list[np.ndarray] = []
    waiting: list[Weights] = []
    held = 0
    for weights in queries:
        waiting.append(weights)
        held += sum(len(vector) for vector in weights.values())
        if held > _HELD_WEIGHTS:
            answers.append(model.answer(waiting))
            waiting, held = [], 0
    answers.append(model.answer(waiting))
    return np.concatenate(answers)


def answer_queries(model: Model, domain: Domain, queries: Sequence[Any]) -> np.ndarray:
    """Counts of queries, each the sum over its conjunctions."""
    reader = QueryReader(domain)
    return answer_sums(model, (reader.parts(one) for one in queries))


def answer_sums(model: Model, questions: Iterable[Sequence[Weights]]) -> np.ndarray:
    """Sums of answers, one for each question; weights may be any real numbers."""
    numbers: list[int] = []

    def asked() -> Iterator[Weights]:
        for question in questions:
            numbers.append(len(question))
            yield from question

    answers = answer_all(model, asked())
    if len(answers) == len(numbers):
        return answers
    return np.add.reduceat(answers, exclusive_cumsum(np.array(numbers)))


def sums_and_counts(
    model: Model, domain: Domain, column: str, queries: Sequence[Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of a column under queries, and numbers of records with a value in it."""
    if not queries:
        return np.zeros(0), np.zeros(0)
    numbers: list[int] = []

    def asked() -> Iterator[Weights]:
        for one in queries:
            parts = parts_of(one, domain)
            numbers.append(len(parts))
            for regions in parts:
                present, of_sum = moments(regions, domain, column)
                yield of_sum
                yield present

    flat = answer_all(model, asked())
    sums, counts = flat.reshape(-1, 2).T + 0.0  # without minus zero
    starts = exclusive_cumsum(np.array(numbers))
    return np.add.reduceat(sums, starts), np.add.reduceat(counts, starts)


def means_of(domain: Domain, column: str, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Means, clipped to the range of the column; nan where the count is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(counts > 0, sums / counts, np.nan)
    return np.clip(means, *reach_of(column, domain))
