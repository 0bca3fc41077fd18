"""Answers: the result of a query with its error bar, and many queries answered in parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .model import Model, Weights

__all__ = ["QueryResult", "answer_all", "listed"]

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
