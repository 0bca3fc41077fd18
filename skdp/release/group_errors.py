"""Intervals of the counts, sums and means of many groups of records."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._types import FloatArray
from .column_values import Selected, summands
from .confidence import Confidence
from .estimates import Estimates, joined
from .grouping import Groups
from .model import Model
from .statistics import counts_with_error, means_with_error, sums_with_error

__all__ = ["group_intervals"]

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
            found.append(means_with_error(model, groups.domain, some, value, count, confidence))
    return joined(found).at(places)


def _cases(groups: Groups, query: Any, column: str | None) -> Iterator[list[Selected]]:
    """The records of each group: by bands, then by codes."""
    columns = () if column is None else summands(column, groups.domain)
    for parts in groups.banded(query):
        each = [Selected(part, groups.domain, columns) for part in parts]
        for weights in zip(*(groups.within(one.weights) for one in each), strict=True):
            yield [one.within(own) for one, own in zip(each, weights, strict=True)]
