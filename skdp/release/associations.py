"""Associations: how strongly pairs of columns of a release depend on each other."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from .._types import FloatArray
from ..domain import Categorical, Domain
from .model import Model

__all__ = ["Association", "strongest"]

# Groups of codes of each column, and pairs and cells that are looked at.
_GROUPS = 12
_MAX_PAIRS = 400
_MAX_CELLS = 4_000_000


class Association(NamedTuple):
    """A pair of columns.

    Attributes
    ----------
    names : tuple of str
    strength : float
        Cramer's V of the table: 0 for independent columns, 1 if one decides the other.
    table : ndarray of float64
        Expected counts by groups of codes.
    starts : tuple of list of int
        First code of each group, for both columns.
    """

    names: tuple[str, str]
    strength: float
    table: FloatArray
    starts: tuple[list[int], list[int]]


def strongest(model: Model, domain: Domain, number: int) -> list[Association]:
    """The pairs that depend on each other most, as the release has it; the strongest first.

    Looked at are the pairs that the model joins; of a model that joins none, all pairs, or the
    first ones if there are very many.
    """
    held = getattr(model, "pairs", None)
    if held is None:
        held = itertools.combinations(range(len(domain.names)), 2)
    pairs = dict.fromkeys(tuple(sorted(pair)) for pair in itertools.islice(held, _MAX_PAIRS))
    found = [
        _association(model, domain, pair)
        for pair in pairs
        if pair[0] != pair[1] and domain.shape[pair[0]] * domain.shape[pair[1]] <= _MAX_CELLS
    ]
    return sorted(found, key=lambda each: -each.strength)[:number]


def _association(model: Model, domain: Domain, pair: tuple[int, ...]) -> Association:
    table = np.maximum(model.view(list(pair)), 0.0)
    starts = [_starts(domain.attributes[axis]) for axis in pair]
    for place, first in enumerate(starts):
        table = np.add.reduceat(table, first, axis=place)
    names = tuple(domain.names[axis] for axis in pair)
    return Association((names[0], names[1]), _cramer(table), table, (starts[0], starts[1]))


def _starts(attribute: Any) -> list[int]:
    """First code of each group: codes that follow each other, or categories by themselves."""
    if isinstance(attribute, Categorical) and not attribute.ordered:
        return list(range(attribute.size))
    n = attribute.n_values
    starts = np.unique(np.linspace(0, n, min(_GROUPS, n) + 1).astype(int)[:-1]).tolist()
    return starts + [n] * attribute.nullable


def _cramer(table: FloatArray) -> float:
    """Cramer's V of a table of counts."""
    total = table.sum()
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    if total <= 0 or min(table.shape) < 2:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    chi2 = ((table - expected) ** 2 / expected).sum() / total
    return float(np.sqrt(min(chi2 / (min(table.shape) - 1), 1.0)))
