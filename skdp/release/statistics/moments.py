"""Spreads and associations of columns with intervals: standard deviation, covariance, correlation.

All are made of means of products of centred numbers. With m' the estimated mean and m the true one,
the mean of (x - m')^2 is the variance plus (m' - m)^2, and so on: intervals of these means, widened
by products of the errors of means, hold without supposing that errors are small. The interval of a
correlation r is that of its influence function z_x z_y - r (z_x^2 + z_y^2) / 2 for numbers z of
mean 0 and variance 1, with a bound on what this leaves out: where variances are off by a share d
and the influence by h, it is at most (h d + 2 d^2) / (1 - d).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._types import FloatArray
from ...domain import Domain
from ...domain.queries.text import parts_of
from ..models.intervals import Errors
from ..models.model import Model, Weights
from ..queries import weights_of
from .column_values import Numbers, Selected, joined_parts, scaled
from .estimates import (
    IN_PROPORTION,
    Confidence,
    Estimates,
    answer_sums,
    covers_in_part,
    errors_of,
    linear,
    ratios,
    telling_cuts,
)

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
