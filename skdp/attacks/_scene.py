"""The rows that are attacked, which of them are members, and what an attacker knows besides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._types import BoolArray, CodeArray, FloatArray
from ..domain import Domain
from ..quality._wasserstein import is_ordered

__all__ = ["Scene", "distances", "neighbours_among", "rows_as_numbers"]

# Nearest neighbours are looked for among at most this many rows.
_NEIGHBOURS = 20_000


@dataclass(frozen=True)
class Scene:
    """Codes of rows under attack.

    Attributes
    ----------
    domain : Domain
    codes : ndarray of int32, shape (n_rows, n_columns)
    member : ndarray of bool, shape (n_rows,)
        Whether each row was in the table that was released. The attacks do not look at it.
    reference : ndarray of int32, shape (n_reference, n_columns)
        Other rows of the same population, none of them a member; may be empty.
    rng : numpy.random.Generator
    """

    domain: Domain
    codes: CodeArray
    member: BoolArray
    reference: CodeArray
    rng: np.random.Generator


def rows_as_numbers(*tables: CodeArray) -> list[np.ndarray]:
    """The same number for equal rows, over all tables."""
    whole = np.concatenate(tables)
    found = np.zeros(len(whole), dtype=np.int64)
    for axis in range(whole.shape[1]):
        column = whole[:, axis].astype(np.int64)
        # Renumbered after each column, so that no number overflows.
        both = found * (int(column.max(initial=0)) + 1) + column
        found = np.unique(both, return_inverse=True)[1].ravel()
    return np.split(found, np.cumsum([len(table) for table in tables])[:-1])


def neighbours_among(rows: CodeArray, rng: np.random.Generator) -> CodeArray:
    """The rows, or a random 20,000 of them: distances from all of more would take too long."""
    if len(rows) <= _NEIGHBOURS:
        return rows
    return rows[rng.choice(len(rows), _NEIGHBOURS, replace=False)]


def distances(domain: Domain, left: CodeArray, right: CodeArray, axis: int) -> FloatArray:
    """Distance in one column of every left from every right row: 0 to 1.

    Ordered codes: the share of the range between them. Others, and missing values: 0 or 1.
    """
    a, b = left[:, axis][:, None], right[:, axis][None, :]
    unequal = a != b
    if not is_ordered(domain, axis):
        return unequal.astype(np.float32)
    n = domain.attributes[axis].n_values
    near = np.abs(a - b).astype(np.float32) / np.float32(n - 1)
    return np.where((a < n) & (b < n), near, unequal).astype(np.float32)
