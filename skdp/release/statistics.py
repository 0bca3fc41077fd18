"""Statistics of a release with intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from .._validation import FloatArray
from ..domain import Domain
from ..domain.query import parts_of
from ..domain.values import some
from .estimates import (
    IN_PROPORTION,
    Confidence,
    Estimates,
    Numbers,
    Selected,
    answer_queries,
    answer_sums,
    covers_in_part,
    errors_of,
    joined,
    joined_parts,
    linear,
    means_of,
    ratios,
    scaled,
    selected,
    sums_and_counts,
    telling_cuts,
)
from .grouping import Groups
from .intervals import Errors
from .model import Model, Weights
from .query import parse_parts, weights_of
from .result import QueryResult

# ------------------------------------------------------------------------------------------------
# Spreads and associations of columns with intervals: standard deviation, covariance, correlation.
#
# All are made of means of products of centred numbers. With m' the estimated mean and m the true
#   one,
# the mean of (x - m')^2 is the variance plus (m' - m)^2, and so on: intervals of these means,
#   widened
# by products of the errors of means, hold without supposing that errors are small. The interval of
#   a
# correlation r is that of its influence function z_x z_y - r (z_x^2 + z_y^2) / 2 for numbers z of
# mean 0 and variance 1, with a bound on what this leaves out: where variances are off by a share d
# and the influence by h, it is at most (h d + 2 d^2) / (1 - d).


# --- counts, sums, means and shares with intervals: linear in the released counts, or ratios
# of such
#
# The error of a mean is that of the sum of (value - mean) over its records, divided by their
# number; the error of a share p that of the records of the query less p times those that it is a
# share of.

_BINS = " Numbers may lie anywhere in their bins."


def counts_with_error(
    model: Model,
    questions: Sequence[Sequence[Weights]],
    value: FloatArray,
    confidence: Confidence,
) -> Estimates:
    """Intervals of numbers of records, each the sum of the answers to disjoint conjunctions.

    Over samples of as many records, a count of a share p of them has the variance n p (1 - p).
    """
    total = max(model.total, 1.0)
    share = np.clip(value / total, 0.0, 1.0)
    errors = _anywhere_in_bins(
        model, questions, value, errors_of(model, questions, confidence), confidence
    )
    variance = total * share * (1.0 - share)
    return linear(value, errors, variance, (0.0, np.inf), confidence, model.total)


def _anywhere_in_bins(
    model: Model,
    questions: Sequence[Sequence[Weights]],
    value: FloatArray,
    errors: Errors,
    confidence: Confidence,
) -> Errors:
    """Errors that cover what bins covered in part may hold, unless those of the model do.

    The true count is at least that without such bins, and at most that with all of them. So the
    interval goes from the lower end of the one to the upper end of the other.
    """
    cut = [place for place, parts in enumerate(questions) if covers_in_part(parts)]
    if not cut:
        return errors
    if getattr(model, "knows_cuts", False):
        return errors._replace(guarantee=errors.guarantee + IN_PROPORTION)

    def rounded(to: Callable[[FloatArray], FloatArray]) -> tuple[FloatArray, Errors]:
        asked = [
            [{axis: to(vector) for axis, vector in part.items()} for part in questions[place]]
            for place in cut
        ]
        return answer_sums(model, asked), errors_of(model, asked, confidence)

    below, above = errors.below.copy(), errors.above.copy()
    without, of_least = rounded(np.floor)
    entire, of_most = rounded(np.ceil)
    below[cut] = value[cut] - without + of_least.below
    above[cut] = entire - value[cut] + of_most.above
    text = errors.guarantee + " Bins covered in part may hold their records anywhere."
    return Errors(errors.std, below, above, text)


def sums_with_error(
    model: Model, cases: Sequence[Sequence[Selected]], value: FloatArray, confidence: Confidence
) -> Estimates:
    """Intervals of sums of a column over the records of each case."""
    total = max(model.total, 1.0)
    errors = errors_of(model, [_first(case) for case in cases], confidence)
    variance = _seconds(model, cases, confidence) - value**2 / total
    reach = _reach(model, cases)
    low, high = _bounds(cases)
    bounds = np.where(low < 0, -np.inf, 0.0), np.where(high > 0, np.inf, 0.0)
    found = linear(value, errors, variance, bounds, confidence, model.total, reach)
    return _told(found, reach, cases)


def means_with_error(
    model: Model,
    cases: Sequence[Sequence[Selected]],
    value: FloatArray,
    count: FloatArray,
    confidence: Confidence,
) -> Estimates:
    """Intervals of means of a column over the records of each case.

    Parameters
    ----------
    model : Model
    cases : sequence of sequence of Selected
        Disjoint conjunctions.
    value, count : ndarray of float64
        Means, NaN where there is none, and the numbers of records.
    confidence : Confidence
    """
    centred = [
        [_less(each, 0.0 if np.isnan(mean) else mean) for each in case]
        for case, mean in zip(cases, value.tolist(), strict=True)
    ]
    errors = errors_of(model, centred, confidence)
    present = [[each.weights for each in case] for case in cases]
    count_errors = errors_of(model, present, confidence)
    divisor = np.where(count > 0, count, np.nan)
    variance = (_seconds(model, cases, confidence) / divisor - value**2) / divisor
    reach = np.nan_to_num(_reach(model, cases) / divisor)
    bounds = _bounds(cases)
    found = ratios(
        value, count, errors, count_errors, variance, bounds, confidence, model.total, reach
    )
    return _told(found, reach, cases)


def proportion(
    model: Model, domain: Domain, query: Any, among: Any, confidence: Confidence | None
) -> Estimates | float:
    """Share of a query among the records of another; only the share without a confidence."""
    whole = parts_of(among, domain)
    bottom = [weights_of(part, domain) for part in whole]
    top = [weights_of(part, domain) for part in joined_parts(whole, parts_of(query, domain))]
    count, of_both = answer_sums(model, [bottom, top])
    share = float(np.clip(of_both / count, 0.0, 1.0)) if count > 0 else np.nan
    if confidence is None:
        return share
    at = 0.0 if np.isnan(share) else share
    less = [scaled(part, -at, domain) for part in bottom]
    if len(top) == len(bottom) == 1:
        differing = _one_axis_less(top[0], bottom[0], at)
    else:
        differing = None
    errors = errors_of(model, [[*top, *less] if differing is None else [differing]], confidence)
    count_errors = errors_of(model, [bottom], confidence)
    variance = np.array([share * (1.0 - share) / max(count, 1.0)])
    found = ratios(
        np.array([share]),
        np.array([count]),
        errors,
        count_errors,
        variance,
        (0.0, 1.0),
        confidence,
        model.total,
    )
    return telling_cuts(found, [*top, *bottom])


def _one_axis_less(top: Weights, bottom: Weights, share: float) -> Weights | None:
    """``top - share * bottom`` as one product, where the two differ in one column at most."""
    axes = [
        axis for axis in top if axis not in bottom or not np.array_equal(top[axis], bottom[axis])
    ]
    if len(axes) != 1:
        return None
    [axis] = axes
    return {**bottom, axis: top[axis] - share * bottom.get(axis, np.ones(len(top[axis])))}


def _first(case: Sequence[Selected]) -> list[Weights]:
    """Weights whose answers add up to the sum of the column."""
    return [_less(each, 0.0) for each in case]


def _less(each: Selected, mean: float) -> Weights:
    """Weights whose answer is the sum of the column less a number for each record."""
    [of] = each.numbers
    return each.times((of.axis, of.mean - mean))


def _seconds(
    model: Model, cases: Sequence[Sequence[Selected]], confidence: Confidence
) -> FloatArray:
    """Sums of squares of the column; zeros where sampling is not asked for."""
    if not confidence.population:
        return np.zeros(len(cases))
    return answer_sums(model, [[_square(each) for each in case] for case in cases])


def _square(each: Selected) -> Weights:
    [of] = each.numbers
    return each.times((of.axis, of.mean**2 + of.variance))


def _reach(model: Model, cases: Sequence[Sequence[Selected]]) -> FloatArray:
    """How far sums are off if all numbers lie at the ends of their bins."""
    if not any(of.reach.any() for each in cases[0] for of in each.numbers) if cases else True:
        return np.zeros(len(cases))
    found = [
        [each.times((of.axis, of.reach)) for each in case for of in each.numbers] for case in cases
    ]
    return np.maximum(answer_sums(model, found), 0.0)


def _bounds(cases: Sequence[Sequence[Selected]]) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest value of a mean of each case."""
    ends = np.array([_ends(case) for case in cases]).reshape(-1, 2)
    return ends[:, 0], ends[:, 1]


def _ends(case: Sequence[Selected]) -> tuple[float, float]:
    each = [one.ends() for one in case]
    return min(low for low, _ in each), max(high for _, high in each)


def _told(found: Estimates, reach: FloatArray, cases: Sequence[Sequence[Selected]]) -> Estimates:
    found = found._replace(guarantee=found.guarantee + _BINS * bool(reach.any()))
    return telling_cuts(found, (each.weights for case in cases for each in case))


# Where a variance may be off by this share of itself, a correlation may be anything.
_TOO_FAR = 0.5
_EVEN = " Inside bins, numbers are taken as spread evenly and independently of other columns."
_CONSTANT = " A column whose numbers may all be equal has no correlation: it may be anything."

Function = Callable[[Numbers], FloatArray]


def standard_deviation(
    model: Model, domain: Domain, case: Sequence[Selected], confidence: Confidence | None
) -> float | Estimates:
    """Standard deviation of a column; only the number without a confidence."""
    among = _Among(model, domain, case)
    mean = among.mean(lambda x: x.mean)
    variance = max(among.mean(lambda x: (x.mean - mean) ** 2 + x.variance), 0.0)
    value = math.sqrt(variance) if among.any else math.nan
    if confidence is None:
        return value
    found = among.intervals(
        [0.0, variance],
        [
            among.weighted(lambda x: x.mean - mean),
            among.weighted(lambda x: (x.mean - mean) ** 2 + x.variance - variance),
        ],
        [0.0, among.mean(lambda x: (x.mean - mean) ** 4) - variance**2],
        [among.width(0) / 2, (among.width(0) / 2) ** 2],
        confidence,
    )
    off = _half(found, 0)
    # The spread inside bins may be anything between none and all numbers at their ends.
    inside = among.mean(lambda x: x.variance)
    most = among.mean(lambda x: x.reach**2)
    low = np.sqrt(max(float(found.lower[1]) - off**2 - inside, 0.0))
    high = np.sqrt(float(found.upper[1]) + max(most - inside, 0.0))
    slope = 2.0 * value if value > 0 else 1.0
    return found._replace(
        value=np.array([value]),
        std=found.std[1:] / slope,
        sampling_std=found.sampling_std[1:] / slope,
        lower=np.array([low]),
        upper=np.array([min(high, among.width(0) / 2)]),
        guarantee=found.guarantee + _EVEN * bool(inside > 0),
    )


def covariance(
    model: Model, domain: Domain, case: Sequence[Selected], confidence: Confidence | None
) -> float | Estimates:
    """Covariance of two columns; only the number without a confidence."""
    among = _Among(model, domain, case)
    means = [among.mean(lambda x: x.mean, None), among.mean(None, lambda y: y.mean)]

    def x(of: Numbers) -> FloatArray:
        return of.mean - means[0]

    def y(of: Numbers) -> FloatArray:
        return of.mean - means[1]

    value = among.mean(x, y)
    if confidence is None:
        return value if among.any else math.nan
    found = among.intervals(
        [0.0, 0.0, value],
        [
            among.weighted(x, None),
            among.weighted(None, y),
            [*among.weighted(x, y), *among.constant(-value)],
        ],
        [0.0, 0.0, among.mean(lambda of: x(of) ** 2, lambda of: y(of) ** 2) - value**2],
        [among.width(0) / 2, among.width(1) / 2, among.width(0) * among.width(1) / 4],
        confidence,
    )
    off = _half(found, 0) * _half(found, 1)
    return _last(found, value if among.any else math.nan, off, among.width(0) * among.width(1) / 4)


def correlation(
    model: Model, domain: Domain, case: Sequence[Selected], confidence: Confidence | None
) -> float | Estimates:
    """Pearson's correlation of two columns; only the number without a confidence."""
    among = _Among(model, domain, case)
    means = [among.mean(lambda x: x.mean, None), among.mean(None, lambda y: y.mean)]
    variances = [
        among.mean(lambda x: (x.mean - means[0]) ** 2 + x.variance, None),
        among.mean(None, lambda y: (y.mean - means[1]) ** 2 + y.variance),
    ]
    known = among.any and min(variances) > 0
    stds = [math.sqrt(each) if known else 1.0 for each in variances]

    def x(of: Numbers) -> FloatArray:
        return (of.mean - means[0]) / stds[0]

    def y(of: Numbers) -> FloatArray:
        return (of.mean - means[1]) / stds[1]

    def xx(of: Numbers) -> FloatArray:
        return x(of) ** 2 + of.variance / variances[0]

    def yy(of: Numbers) -> FloatArray:
        return y(of) ** 2 + of.variance / variances[1]

    value = float(np.clip(among.mean(x, y), -1.0, 1.0)) if known else math.nan
    if confidence is None:
        return value
    if not known:
        return _anything(_CONSTANT, value)
    influence = [
        *among.weighted(x, y),
        *among.weighted(lambda of: -value / 2 * xx(of), None),
        *among.weighted(None, lambda of: -value / 2 * yy(of)),
    ]
    sizes = [among.width(0) / stds[0], among.width(1) / stds[1]]
    found = among.intervals(
        [0.0] * 5,
        [
            among.weighted(x, None),
            among.weighted(None, y),
            among.weighted(lambda of: xx(of) - 1.0, None),
            among.weighted(None, lambda of: yy(of) - 1.0),
            influence,
        ],
        [0.0] * 4 + [_influence_variance(among, value, x, y)],
        [*sizes, sizes[0] ** 2, sizes[1] ** 2, 2.0],
        confidence,
    )
    first, second = _half(found, 0), _half(found, 1)
    off = max(_half(found, 2) + first**2, _half(found, 3) + second**2)
    if off >= _TOO_FAR:
        return _anything(found.guarantee + _CONSTANT, value)
    reach = _half(found, 4)
    more = (reach * off + 2.0 * off**2) / (1.0 - off) + (first**2 + second**2) / 2
    return _last(found, value, more, 1.0)


def _influence_variance(among: _Among, r: float, x: Function, y: Function) -> float:
    """Mean square of the influence function of a correlation."""

    def power(f: Function, exponent: int) -> Function | None:
        return (lambda of: f(of) ** exponent) if exponent else None

    terms = {(2, 2): 1 + r**2 / 2, (3, 1): -r, (1, 3): -r, (4, 0): r**2 / 4, (0, 4): r**2 / 4}
    return sum(factor * among.mean(power(x, a), power(y, b)) for (a, b), factor in terms.items())


class _Among:
    """The records of a query with numbers in some columns, and means over them.

    Parameters
    ----------
    model : Model
    domain : Domain
    case : sequence of Selected
        Disjoint conjunctions.
    """

    def __init__(self, model: Model, domain: Domain, case: Sequence[Selected]) -> None:
        self.model, self.domain, self.case = model, domain, case
        self.present = [each.weights for each in case]
        self.count = float(answer_sums(model, [self.present])[0])

    @property
    def any(self) -> bool:
        """Whether the release has such records."""
        return self.count > 0

    def weighted(self, *functions: Function | None) -> list[Weights]:
        """Weights of a product of functions, one for each column; None is 1."""
        return [
            each.times(
                *(
                    (of.axis, function(of))
                    for of, function in zip(each.numbers, functions, strict=True)
                    if function is not None
                )
            )
            for each in self.case
        ]

    def constant(self, number: float) -> list[Weights]:
        """Weights of the records times a number."""
        return [scaled(weights, number, self.domain) for weights in self.present]

    def mean(self, *functions: Function | None) -> float:
        """Mean of a product of functions; 0 if there are no records."""
        if not self.any:
            return 0.0
        return float(answer_sums(self.model, [self.weighted(*functions)])[0]) / self.count

    def width(self, column: int) -> float:
        """Width of the range of a column."""
        ends = np.array([each.ends(column) for each in self.case])
        return float(ends[:, 1].max() - ends[:, 0].min())

    def intervals(
        self,
        values: Sequence[float],
        centred: Sequence[list[Weights]],
        variances: Sequence[float],
        most: Sequence[float],
        confidence: Confidence,
    ) -> Estimates:
        """Intervals of means, from the weights of what is left when they are taken off."""
        errors = errors_of(self.model, [*centred, self.present], confidence)
        own, of_count = errors.part(slice(-1)), errors.part(slice(-1, None))
        value, n = np.array(values), len(values)
        limit = np.array(most)
        found = ratios(
            value,
            np.full(n, self.count),
            own,
            of_count,
            np.array(variances) / max(self.count, 1.0),
            (-limit, limit),
            confidence,
            self.model.total,
        )
        return telling_cuts(found, self.present)


def _half(found: Estimates, place: int) -> float:
    """Half width of an interval."""
    value = found.value[place]
    return float(max(found.upper[place] - value, value - found.lower[place]))


def _last(found: Estimates, value: float, more: float, limit: float) -> Estimates:
    """The last of some estimates around zero or a value, widened, within +-limit."""
    middle = 0.0 if math.isnan(value) else value - float(found.value[-1])
    lower, upper = (
        np.clip(each + middle + sign * more, -limit, limit)
        for each, sign in ((found.lower[-1:], -1), (found.upper[-1:], 1))
    )
    return Estimates(
        np.array([value]),
        found.std[-1:],
        found.sampling_std[-1:],
        lower,
        upper,
        found.guarantee + _EVEN,
    )


def _anything(guarantee: str, value: float) -> Estimates:
    """Nothing is known of a correlation."""
    one = np.ones(1)
    return Estimates(np.full(1, value), one, 0.0 * one, -one, one, guarantee.strip())


# ------------------------------------------------------------------------------------------------
# Statistics of queries as a synopsis gives them: numbers, or results with intervals.


# --- intervals of the counts, sums and means of many groups of records

# Groups whose weights are held at once.
_AT_ONCE = 2048


def group_intervals(
    model: Model,
    groups: Groups,
    query: Any,
    column: str | None,
    statistic: str,
    values: FloatArray,
    counts: FloatArray,
    confidence: Confidence,
) -> Estimates:
    """Intervals of a statistic of all groups.

    Parameters
    ----------
    model : Model
    groups : Groups
    query : dict, str or None
    column : str or None
        Records without a value in it do not count.
    statistic : {"count", "sum", "mean"}
    values, counts : ndarray of float64
        The statistic, and the numbers of records, in the order of groups.
    confidence : Confidence
    """
    # Groups are asked for by bands first.
    places = groups.in_order(np.arange(groups.number, dtype=np.float64)).astype(np.int64)
    asked = np.empty_like(places)
    asked[places] = np.arange(len(places))
    values, counts = values[asked], counts[asked]
    found = []
    cases = _cases(groups, query, column)
    for start in range(0, len(values), _AT_ONCE):
        some = list(itertools.islice(cases, _AT_ONCE))
        value, count = (each[start : start + _AT_ONCE] for each in (values, counts))
        if statistic == "count":
            questions = [[each.weights for each in case] for case in some]
            found.append(counts_with_error(model, questions, value, confidence))
        elif statistic == "sum":
            found.append(sums_with_error(model, some, value, confidence))
        else:
            found.append(means_with_error(model, some, value, count, confidence))
    return joined(found).at(places)


def _cases(groups: Groups, query: Any, column: str | None) -> Iterator[list[Selected]]:
    """The records of each group: by bands, then by codes."""
    columns = () if column is None else (column,)
    for parts in groups.banded(query):
        each = [Selected.of(part, groups.domain, columns) for part in parts]
        for weights in zip(*(groups.within(one.weights) for one in each), strict=True):
            yield [one._replace(weights=own) for one, own in zip(each, weights, strict=True)]


# Of more queries the law of a sum of noise is approximated: the exact one takes up to half a second
# each.
_MANY = 100


def _for_all(queries: Sequence[Any], confidence: Confidence) -> Confidence:
    """The same confidence, quick for a long list."""
    return replace(confidence, quick=True) if len(queries) > _MANY else confidence


def count_results(
    model: Model, domain: Domain, queries: Sequence[Any], confidence: Confidence
) -> list[QueryResult]:
    """Counts with intervals."""
    confidence = _for_all(queries, confidence)
    values = answer_queries(model, domain, queries)
    return [
        counts_with_error(model, [parse_parts(query, domain)], value, confidence).results()[0]
        for query, value in zip(queries, values.reshape(-1, 1), strict=True)
    ]


def sum_results(
    model: Model, domain: Domain, column: str, queries: Sequence[Any], confidence: Confidence
) -> list[QueryResult]:
    """Sums with intervals."""
    confidence = _for_all(queries, confidence)
    values, _ = sums_and_counts(model, domain, column, queries)
    cases = [selected(query, domain, [column]) for query in queries]
    return [
        sums_with_error(model, [case], value, confidence).results()[0]
        for case, value in zip(cases, values.reshape(-1, 1), strict=True)
    ]


def mean_results(
    model: Model, domain: Domain, column: str, queries: Sequence[Any], confidence: Confidence
) -> list[QueryResult]:
    """Means with intervals, as users see them."""
    confidence = _for_all(queries, confidence)
    sums, counts = sums_and_counts(model, domain, column, queries)
    values = means_of(domain, column, sums, counts)
    attribute = domain[column]
    shown = None if attribute.summable else attribute.shown
    cases = [selected(query, domain, [column]) for query in queries]
    return [
        means_with_error(model, [case], value, count, confidence).results(shown)[0]
        for case, value, count in zip(
            cases, values.reshape(-1, 1), counts.reshape(-1, 1), strict=True
        )
    ]


def column_statistic(
    statistic: Callable[..., float | Estimates],
    model: Model,
    domain: Domain,
    columns: Sequence[str],
    queries: Sequence[Any],
    confidence: Confidence | None,
) -> list[Any]:
    """A statistic of the numbers of one or two columns, for each query.

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
    if confidence is not None:
        confidence = _for_all(queries, confidence)
    found = [statistic(model, domain, case, confidence) for case in cases]
    return [each.results()[0] if isinstance(each, Estimates) else each for each in found]


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
    model: Model, domain: Domain, columns: Sequence[str], query: Any, confidence: Confidence | None
) -> pd.DataFrame:
    """Correlations of all pairs of columns; see `Synopsis.correlation`."""
    if isinstance(query, list | tuple):
        raise ValueError("A matrix of correlations is of one query: ask for each of the list.")
    if len(columns) < 2:
        raise ValueError(
            f"Correlations need two columns of numbers, got {some(list(columns)) or 'none'}: "
            "declare a column as Numeric, or its categories as numbers."
        )
    parts = ("value",) if confidence is None else ("value", "std_error", "lower", "upper")
    tables = {part: np.eye(len(columns)) for part in parts}
    if "std_error" in tables:
        np.fill_diagonal(tables["std_error"], 0.0)
    guarantee = ""
    for (i, one), (j, two) in itertools.combinations(enumerate(columns), 2):
        [found] = column_statistic(correlation, model, domain, [one, two], [query], confidence)
        each = [found]
        if confidence is not None:
            guarantee = guarantee or found.guarantee
            std = float(np.hypot(found.std, found.sampling_std))
            each = [found.value, std, found.lower, found.upper]
        for part, number in zip(parts, each, strict=True):
            tables[part][i, j] = tables[part][j, i] = number
    names = pd.Index(columns)
    frames = {part: pd.DataFrame(table, names, names) for part, table in tables.items()}
    if confidence is None:
        return frames["value"]
    result = pd.concat(frames, axis=1)
    result.attrs = {"level": confidence.level, "guarantee": guarantee}
    return result
