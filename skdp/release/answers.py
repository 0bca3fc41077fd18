"""Answers: the result of a query with its error bar, and many queries answered in parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..domain import Domain
from ..domain.rules import TotalOf
from .model import Model, Weights
from .queries import moments, reach_of

__all__ = [
    "QueryResult",
    "answer_all",
    "listed",
    "means_of",
    "sums_and_counts",
]

_HELD_WEIGHTS = 1 << 23


@dataclass(frozen=True)
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


def sums_and_counts(
    model: Model, domain: Domain, column: str, queries: Sequence[Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of a column under queries, and numbers of records with a value in it."""
    if not queries:
        return np.zeros(0), np.zeros(0)

    def asked() -> Iterator[Weights]:
        for one in queries:
            present, terms = moments(one, domain, column)
            yield from terms
            yield present

    answers = answer_all(model, asked()).reshape(len(queries), -1)
    return answers[:, :-1].sum(axis=1), answers[:, -1]


def means_of(domain: Domain, column: str, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Means, clipped to the range of the column; nan where the count is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(counts > 0, sums / counts, np.nan)
    rule = domain.structure.derived.get(column)
    columns = rule.parts if isinstance(rule, TotalOf) else (column,)
    reach = np.array([reach_of(name, domain) for name in columns])
    return np.clip(means, *reach.sum(axis=0).tolist())
