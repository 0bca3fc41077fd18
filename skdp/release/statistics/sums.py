"""Counts, sums, means and shares with intervals: linear in the released counts, or ratios of such.

The error of a mean is that of the sum of (value - mean) over its records, divided by their number;
the error of a share p that of the records of the query less p times those that it is a share of.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from ..._types import FloatArray
from ...domain import Domain
from ...domain.queries.conditions import parts_of
from ..models.model import Model, Weights
from ..queries import weights_of
from .answers import answer_sums
from .column_values import Selected, joined_parts, scaled
from .confidence import Confidence
from .estimates import Estimates, linear, ratios, telling_cuts
from .linear_errors import errors_of

__all__ = ["counts_with_error", "means_with_error", "proportion", "sums_with_error"]

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
    errors = errors_of(model, questions, confidence)
    variance = total * share * (1.0 - share)
    found = linear(value, errors, variance, (0.0, np.inf), confidence, model.total)
    return telling_cuts(found, chain.from_iterable(questions))


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
    domain: Domain,
    cases: Sequence[Sequence[Selected]],
    value: FloatArray,
    count: FloatArray,
    confidence: Confidence,
) -> Estimates:
    """Intervals of means of a column over the records of each case.

    Parameters
    ----------
    model : Model
    domain : Domain
    cases : sequence of sequence of Selected
        Disjoint conjunctions.
    value, count : ndarray of float64
        Means, NaN where there is none, and the numbers of records.
    confidence : Confidence
    """
    centred = [
        [term for each in case for term in _less(each, 0.0 if np.isnan(mean) else mean, domain)]
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
    return [each.times((of.axis, of.mean)) for each in case for of in each.numbers]


def _less(each: Selected, mean: float, domain: Domain) -> list[Weights]:
    """Weights whose answers add up to the sum of the column less a number."""
    if len(each.numbers) == 1:
        [of] = each.numbers
        return [each.times((of.axis, of.mean - mean))]
    return [*_first([each]), scaled(each.weights, -mean, domain)]


def _seconds(
    model: Model, cases: Sequence[Sequence[Selected]], confidence: Confidence
) -> FloatArray:
    """Sums of squares of the column; zeros where sampling is not asked for."""
    if not confidence.population:
        return np.zeros(len(cases))
    return answer_sums(model, [[s for each in case for s in _squares(each)] for case in cases])


def _squares(each: Selected) -> list[Weights]:
    found: list[Weights] = []
    for one in each.numbers:
        found.append(each.times((one.axis, one.mean**2 + one.variance)))
        found += [
            each.times((one.axis, one.mean), (two.axis, two.mean))
            for two in each.numbers
            if two is not one
        ]
    return found


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
    each = [np.sum([one.ends(place) for place in range(len(one.numbers))], axis=0) for one in case]
    return min(low for low, _ in each), max(high for _, high in each)


def _told(found: Estimates, reach: FloatArray, cases: Sequence[Sequence[Selected]]) -> Estimates:
    found = found._replace(guarantee=found.guarantee + _BINS * bool(reach.any()))
    return telling_cuts(found, (each.weights for case in cases for each in case))
