"""Answers: the result of a query with its error bar, and many queries answered in parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..domain import Domain
from .model import Model, Weights
from .queries import first_moment

__all__ = [
    "QueryResult",
    "answer_all",
    "answer_groups",
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


def answer_groups(
    model: Model, base: Weights, axes: Sequence[int], sizes: Sequence[int]
) -> np.ndarray:
    """Answers to a query for each combination of the codes of attributes of these sizes."""

    def groups() -> Iterator[Weights]:
        for codes in np.ndindex(*sizes):
            group = dict(base)
            for axis, code, size in zip(axes, codes, sizes, strict=True):
                only = np.zeros(size)
                only[code] = base[axis][code] if axis in base else 1.0
                group[axis] = only
            yield group

    return answer_all(model, groups())


def sums_and_counts(
    model: Model, domain: Domain, column: str, queries: Sequence[Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of a column under queries, and numbers of records with a value in it."""
    axis = domain.index(column) if column in domain else -1

    def both() -> Iterator[Weights]:
        for one in queries:
            weights, moment = first_moment(one, domain, column)
            yield {**weights, axis: moment}
            yield weights

    answers = answer_all(model, both())
    return answers[::2], answers[1::2]


def means_of(domain: Domain, column: str, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Means, brought into the range that the column can have; nan where nobody is counted."""
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(counts > 0, sums / counts, np.nan)
    _, values = first_moment(None, domain, column)
    seen = values[: domain[column].n_values]
    return np.clip(means, float(seen.min()), float(seen.max()))
