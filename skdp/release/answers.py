"""Answers: the result of a query with its error bar, and many queries answered in parts."""

from __future__ import annotations

import functools
import html
import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import exclusive_cumsum
from ..domain import Domain
from ..domain.conditions import parts_of
from ..domain.rules import TotalOf
from .intervals import Error
from .model import Model, Weights
from .queries import QueryReader, moments, parse_parts, reach_of

__all__ = [
    "QueryResult",
    "answer_all",
    "answer_queries",
    "answer_with_error",
    "listed",
    "means_of",
    "sums_and_counts",
]

_HELD_WEIGHTS = 1 << 23


@dataclass(frozen=True, repr=False)
class QueryResult:
    """An answer with its error bar; ``float(result)`` is the value.

    Attributes
    ----------
    value : float
        The answer; never clamped, so a count may be negative.
    std : float
        Standard deviation of the noise in it; an upper bound where several measurements were
        combined.
    lower, upper : float
        Ends of the interval.
    guarantee : str
        What the interval covers, in words.
    """

    value: float
    std: float
    lower: float
    upper: float
    guarantee: str

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        value, lower, upper = self._shown()
        return f"QueryResult({value}, interval {lower} to {upper})"

    def _repr_html_(self) -> str:
        value, lower, upper = self._shown()
        return (
            f"<b>{value}</b> <span>({lower} to {upper})</span>"
            f"<details><summary>what the interval covers</summary>"
            f"{html.escape(self.guarantee)}</details>"
        )

    def _shown(self) -> tuple[str, str, str]:
        """The three numbers, in digits that the error does not make meaningless."""
        reach = max(self.upper - self.value, self.value - self.lower)
        value, lower, upper = (
            rounded_to(each, reach) for each in (self.value, self.lower, self.upper)
        )
        return value, lower, upper


def rounded_to(number: float, error: float) -> str:
    """A number as text, without the digits below the first three of its error."""
    if not (math.isfinite(number) and math.isfinite(error) and error > 0):
        return f"{number:,.6g}"
    decimals = 2 - math.floor(math.log10(error))
    return f"{round(number, decimals) + 0.0:,.{min(max(decimals, 0), 15)}f}"


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
    numbers: list[int] = []
    reader = QueryReader(domain)

    def asked() -> Iterator[Weights]:
        for one in queries:
            parts = reader.parts(one)
            numbers.append(len(parts))
            yield from parts

    answers = answer_all(model, asked())
    if len(answers) == len(numbers):
        return answers
    return np.add.reduceat(answers, exclusive_cumsum(np.array(numbers)))


def answer_with_error(model: Model, domain: Domain, query: Any, level: float) -> QueryResult:
    """The count of a query with an interval."""
    parts = parse_parts(query, domain)
    value = functools.reduce(operator.add, model.answer(parts).tolist())
    error = model.error(parts[0], level) if len(parts) == 1 else _error_of(model, parts, level)
    return QueryResult(value, error.std, value - error.below, value + error.above, error.guarantee)


def _error_of(model: Model, parts: Sequence[Weights], level: float) -> Error:
    """Error of a sum of answers to disjoint conjunctions."""
    if hasattr(model, "error_of_parts"):
        error: Error = model.error_of_parts(parts, level)
        return error
    # A model of somebody else: all intervals hold at once with the level that was asked for.
    each = [model.error(part, 1.0 - (1.0 - level) / len(parts)) for part in parts]
    std, below, above = np.sum([error[:3] for error in each], axis=0).tolist()
    return Error(
        std,
        below,
        above,
        f"The answer is a sum of {len(parts)} answers to disjoint conjunctions, and its interval "
        f"the sum of theirs. Each of them: {each[0].guarantee}",
    )


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
                present, terms = moments(regions, domain, column)
                yield from terms
                yield present

    flat = answer_all(model, asked())
    answers = flat.reshape(sum(numbers), -1)
    starts = exclusive_cumsum(np.array(numbers))
    sums, counts = answers[:, :-1].sum(axis=1), answers[:, -1]
    return np.add.reduceat(sums, starts), np.add.reduceat(counts, starts)


def means_of(domain: Domain, column: str, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Means, clipped to the range of the column; nan where the count is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(counts > 0, sums / counts, np.nan)
    rule = domain.structure.derived.get(column)
    columns = rule.parts if isinstance(rule, TotalOf) else (column,)
    reach = np.array([reach_of(name, domain) for name in columns])
    return np.clip(means, *reach.sum(axis=0).tolist())
