"""Statistics of queries as a synopsis gives them: numbers, or results with intervals."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ..._types import FloatArray
from ...domain import Domain
from ...domain.values import some
from ..grouping import Groups
from ..models.model import Model
from ..queries import parse_parts
from ..result import QueryResult
from .column_values import Selected, selected
from .estimates import Confidence, Estimates, answer_queries, joined, means_of, sums_and_counts
from .moments import correlation, counts_with_error, means_with_error, sums_with_error

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
