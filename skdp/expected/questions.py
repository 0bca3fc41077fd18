"""Random questions of each kind to a release, and its errors on rows that are public."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._random import sampling_generator
from .._types import CodeArray, FloatArray
from ..domain import Domain
from ..release.models.model import Model

__all__ = ["bar_of", "errors_of_answers", "is_of_records", "random_weights"]

# Questions of each kind, and columns or sets of columns that they are on.
_QUESTIONS = 240
_SETS = 24
_KINDS = {"one-column range": 1, "two-column range": 2, "three-column range": 3}


def errors_of_answers(
    model: Model, codes: CodeArray, domain: Domain, seed: int
) -> Mapping[str, float]:
    """Root mean square errors of a release on random questions of each kind.

    Ranges lie between two uniform codes; of unordered categories any subset is asked for, whose
    size is uniform. A cell is one code of each of two columns (of one, if there is only one).

    Parameters
    ----------
    model : Model
        Fitted to ``codes``.
    codes : ndarray of int, shape (n_rows, n_columns)
    domain : Domain
    seed : int
        Of the questions.

    Returns
    -------
    dict of str to float
        In records; kinds that need more columns than exist are left out.
    """
    generator = sampling_generator(seed)
    used = [axis for axis, size in enumerate(domain.shape) if size > 1]
    kinds = {name: order for name, order in _KINDS.items() if order <= len(used)}
    found = {}
    for name, order in {"cell": min(2, len(used)), **kinds}.items():
        errors = _errors(model, codes, domain, used, order, name == "cell", generator)
        found[name] = float(np.sqrt(np.mean(errors**2)))
    return found


def _errors(
    model: Model,
    codes: CodeArray,
    domain: Domain,
    used: list[int],
    order: int,
    cells: bool,
    generator: np.random.Generator,
) -> FloatArray:
    """Answers minus truth for questions on some sets of columns."""
    parts = []
    for _ in range(_SETS):
        axes = sorted(generator.choice(used, order, replace=False).tolist()) if order else []
        queries = []
        for _ in range(_QUESTIONS // _SETS):
            query = {}
            for axis in axes:
                if cells:
                    query[axis] = np.zeros(domain.shape[axis])
                    query[axis][generator.integers(0, domain.shape[axis])] = 1.0
                else:
                    ordered = domain.attributes[axis].order() is not None
                    query[axis] = random_weights(domain.shape[axis], ordered, generator)
            queries.append(query)
        exact = np.zeros(len(queries))
        for number, query in enumerate(queries):
            agree = np.ones(len(codes))
            for axis, weights in query.items():
                agree = agree * weights[codes[:, axis]]
            exact[number] = agree.sum()
        parts.append(np.asarray(model.answer(queries)) - exact)
    return np.concatenate(parts)


def random_weights(size: int, ordered: bool, generator: np.random.Generator) -> FloatArray:
    """Weights 1 on a random range of codes, or on a random subset of unordered ones, else 0."""
    weights = np.zeros(size)
    if ordered:
        low, high = sorted(generator.integers(0, size, size=2).tolist())
        weights[low : high + 1] = 1.0
    else:
        most = int(generator.integers(1, size + 1))
        weights[generator.permutation(size)[:most]] = 1.0
    return weights


# A count is asked for by its query alone.
_STATISTIC = re.compile(
    r"(sum|mean|median|std|quantile|proportion|correlation)\s*\((.*?)\)(?:\s+where\s+(.+))?\s*",
    re.DOTALL,
)


def bar_of(release: Any, question: str, level: float) -> float:
    """Half width of the interval of a release's answer to a question in words."""
    found = _STATISTIC.fullmatch(question.strip())
    how = {"return_interval": True, "level": level}
    if found is None:
        answer = release.count(question, **how)
    else:
        name, inside, query = found.groups()
        given = [inside] if name == "proportion" else [part.strip() for part in inside.split(",")]
        if name == "median":
            given, name = [*given, 0.5], "quantile"
        elif name == "quantile" and len(given) == 2:
            given[1] = float(given[1])
        wanted = 2 if name in ("quantile", "correlation") else 1
        if len(given) != wanted:
            raise ValueError(
                f"{question!r} cannot be read: write a count as 'age >= 65', and others as "
                "'mean(pay)', 'median(pay) where age >= 65', 'quantile(pay, 0.9)', "
                "'proportion(age >= 65)' or 'correlation(age, pay)'."
            )
        answer = getattr(release, name)(*given, query, **how)
    return float(answer.upper - answer.lower) / 2


def is_of_records(question: str) -> bool:
    """Whether a bar grows with the number of records at the same share of noise."""
    found = _STATISTIC.fullmatch(question.strip())
    return found is None or found[1] == "sum"
