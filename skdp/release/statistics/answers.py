"""Answers to many queries, asked for in parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..._arrays import exclusive_cumsum
from ...domain import Domain
from ...domain.queries.text import parts_of
from ...domain.rules.declared import TotalOf
from ..models.model import Model, Weights
from ..queries import QueryReader, moments, reach_of
from ..result import QueryResult

__all__ = [
    "QueryResult",
    "answer_all",
    "answer_queries",
    "answer_sums",
    "listed",
    "means_of",
    "sums_and_counts",
]

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
