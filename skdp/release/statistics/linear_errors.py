"""Errors of linear questions: sums of answers under real weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..models.intervals import Error, Errors
from ..models.model import Model, Weights
from .confidence import Confidence

__all__ = ["error_of", "errors_of"]


def error_of(model: Model, parts: Sequence[Weights], level: float) -> Error:
    """Error of a sum of answers."""
    if len(parts) == 1:
        return model.error(parts[0], level)
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


def errors_of(
    model: Model, questions: Sequence[Sequence[Weights]], confidence: Confidence
) -> Errors:
    """Errors of sums of answers; weights may be any real numbers.

    A question by itself has its exact law, unless ``confidence.quick``. Several are asked together
    of a model that has a method for this, ``errors_of(questions, level)``.
    """
    level = confidence.level
    many = getattr(model, "errors_of", None)
    if many is not None and (len(questions) > 1 or confidence.quick):
        errors: Errors = many(questions, level)
        return errors
    each = [error_of(model, parts, level) for parts in questions]
    std, below, above = np.array([error[:3] for error in each]).reshape(-1, 3).T
    return Errors(std, below, above, each[0].guarantee if each else "")
