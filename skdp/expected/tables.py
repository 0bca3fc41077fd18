"""Public tables on which a release is tried out: given rows, or rows generated from a domain."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .._random import sampling_generator
from .._types import CodeArray, FloatArray
from ..domain import Domain
from ..exceptions import DomainError
from ..release.models.model import Model
from ..rows import as_frame, take_rows

__all__ = [
    "TrialTable",
    "bar_of",
    "errors_of_answers",
    "generated_codes",
    "generated_points",
    "generated_table",
    "is_of_records",
    "random_weights",
]

# Constants of generated tables, chosen on tables of benchmarks/expected_error.py.
# Hidden causes of all columns, and the range of their share in the variance of a column.
_CAUSES = 1
_DEPENDENCE = (0.0, 0.8)
# Exponents of the frequencies of categories.
_ZIPF = (0.3, 1.5)
# Share of columns of numbers in which one value is frequent, and how frequent it is.
_SPIKED = 0.4
_SPIKE = (0.5, 0.95)
# Spread of the bumps of a column of numbers, as parameters of beta distributions.
_BUMPS = (1.0, 6.0)


class TrialTable(NamedTuple):
    """Rows that are public, to fit an estimator to, and others to test it on.

    Attributes
    ----------
    rows : table or ndarray
        To fit.
    held_out : table, ndarray or None
        Other rows of the table that was given; None for a generated one.
    seed : int
        For what else is drawn.
    """

    rows: Any
    held_out: Any
    seed: int

    @classmethod
    def of(cls, like: Any, n: int, seed: int) -> TrialTable:
        """``n`` rows drawn from a table, repeated if it has fewer; a fifth of it is held out.

        Rows are held out only where that leaves at least as many as are needed, or where they are
        repeated anyway.
        """
        generator = sampling_generator(seed)
        parts = like if isinstance(like, tuple) else (like,)
        size = len(as_frame(parts[0]))
        if not size:
            raise ValueError("like has no rows.")
        order = generator.permutation(size)
        fifth = order[: max(size // 5, 1)]
        rest = order[len(fifth) :] if size > 1 else order
        drawn = rest[:n] if n <= len(rest) else rest[generator.integers(0, len(rest), n)]
        if len(rest) < n <= size:
            drawn = order[:n]
        taken = [tuple(take_rows(part, at) for part in parts) for at in (drawn, fifth)]
        rows, held_out = taken if isinstance(like, tuple) else [part for (part,) in taken]
        return cls(rows, held_out, seed)


def generated_table(domain: Any, n: int, seed: int) -> tuple[Domain, TrialTable]:
    """The domain with all its columns, and a table that is generated from it."""
    found = require_columns(domain)
    generator = sampling_generator(seed)
    rows = found.decode(generated_codes(found, n, seed), generator)
    return found, TrialTable(rows, None, seed)


def require_columns(domain: Any) -> Domain:
    """The domain with all its columns; DomainError if it does not name or number them."""
    if isinstance(domain, Domain):
        if domain.open:
            raise DomainError(
                f"Column {domain.open[0]!r} has no range to generate numbers in: declare a guess, "
                "or give like=, public rows."
            )
        return domain
    if isinstance(domain, Mapping):
        return Domain(domain)
    if isinstance(domain, list | tuple) and domain:
        return Domain.for_array(domain, len(domain))
    raise DomainError(
        "A domain is needed that lists its columns, such as Domain({'age': Numeric(0, 120)}), or "
        "like=, public rows: one attribute for all columns of an array does not say how many "
        "columns there are."
    )


def generated_codes(domain: Domain, n: int, seed: int) -> CodeArray:
    """Codes of a table with skewed columns that depend on each other.

    Every column follows a normal variable, which is partly a mixture of a few hidden causes. Its
    ranks are cut into codes, whose frequencies are drawn at random: of numbers a smooth density
    with one or two bumps, and sometimes one frequent value; of categories those of Zipf's law.

    Parameters
    ----------
    domain : Domain
    n : int
    seed : int

    Returns
    -------
    ndarray of int32, shape (n, n_columns)
    """
    generator = sampling_generator(seed)
    causes = generator.standard_normal((n, _CAUSES))
    codes = np.empty((n, len(domain.shape)), dtype=np.int32)
    for axis, attribute in enumerate(domain.attributes):
        size = domain.shape[axis]
        ordered = attribute.order() is not None
        frequencies = _frequencies(size, ordered, generator)
        direction = generator.standard_normal(_CAUSES)
        direction /= np.linalg.norm(direction)
        share = generator.uniform(*_DEPENDENCE)
        noise = generator.standard_normal(n)
        score = np.sqrt(share) * (causes @ direction) + np.sqrt(1 - share) * noise
        codes[:, axis] = _cut(score, frequencies)
    lawful: CodeArray = domain.structure.lawful_codes(codes, generator)
    return lawful


def _frequencies(size: int, ordered: bool, generator: np.random.Generator) -> FloatArray:
    """Probabilities of the codes of a column."""
    if size < 2:
        return np.ones(size)
    if not ordered or size == 2:
        weights = np.arange(1.0, size + 1) ** -generator.uniform(*_ZIPF)
        return generator.permutation(weights / weights.sum())
    middles = (np.arange(size) + 0.5) / size
    density = np.zeros(size)
    for _ in range(int(generator.integers(1, 3))):
        a, b = generator.uniform(*_BUMPS, size=2)
        bump = middles ** (a - 1) * (1 - middles) ** (b - 1)
        density += generator.uniform(0.2, 1.0) * bump / bump.sum()
    density /= density.sum()
    if generator.random() < _SPIKED:
        spike = generator.uniform(*_SPIKE)
        at = 0 if generator.random() < 0.5 else int(generator.integers(0, size))
        density *= 1 - spike
        density[at] += spike
    return density


def _cut(score: FloatArray, frequencies: FloatArray) -> CodeArray:
    """Ranks of scores as codes with these frequencies."""
    ranks = np.empty(len(score))
    ranks[np.argsort(score, kind="stable")] = (np.arange(len(score)) + 0.5) / max(len(score), 1)
    edges = np.cumsum(frequencies)[:-1]
    return np.searchsorted(edges, ranks).astype(np.int32)


def generated_points(
    low: FloatArray, high: FloatArray, n: int, n_clusters: int, seed: int
) -> FloatArray:
    """Points of normal clusters within bounds, with sizes 1 : 2 : ... and a few outliers."""
    generator = sampling_generator(seed)
    n_features = len(low)
    centers = generator.uniform(0.1, 0.9, (n_clusters, n_features))
    sizes = np.arange(1.0, n_clusters + 1)
    of_cluster = generator.choice(n_clusters, size=n, p=sizes / sizes.sum())
    spread = 0.35 / n_clusters ** (1.0 / n_features) * generator.uniform(0.3, 0.7)
    points = centers[of_cluster] + spread * generator.standard_normal((n, n_features))
    outliers = generator.random(n) < 0.01
    points[outliers] = generator.random((int(outliers.sum()), n_features))
    return low + (high - low) * np.clip(points, 0.0, 1.0)


# --- random questions of each kind to a release, and its errors on rows that are public

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
