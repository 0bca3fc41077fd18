"""The rows that are attacked, which of them are members, and what an attacker knows besides."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from .._types import BoolArray, CodeArray, FloatArray
from ..domain import Domain
from ..quality._frames import valid_codes
from ..quality._marginals import is_ordered
from ..release import Synopsis

__all__ = [
    "Scene",
    "Target",
    "claim_of",
    "distances",
    "neighbours_among",
    "rows_as_numbers",
    "synopsis_of",
]

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


# --- what is attacked: a release, or synthetic rows of any library


def synopsis_of(release: Any) -> Synopsis | None:
    """The synopsis of a fitted estimator, or a synopsis itself; None for rows."""
    found = getattr(release, "synopsis_", release)
    return found if isinstance(found, Synopsis) else None


def claim_of(release: Any, epsilon: Any) -> float | None:
    """The epsilon that was claimed: as given, or as recorded in the release."""
    if epsilon is not None:
        return float(epsilon)
    found = synopsis_of(release)
    recorded: Fraction | None = None if found is None else found.epsilon
    return None if recorded is None else float(recorded)


class Target:
    """Draws and expected counts of a release, over codes.

    Parameters
    ----------
    release : fitted synthesizer, Synopsis, table, or codes of shape (n, n_columns)
    domain : Domain
    n_rows : int
        Rows to draw from a release.
    rng : numpy.random.Generator

    Attributes
    ----------
    rows : ndarray of int32, shape (n, n_columns)
        Codes of the synthetic rows: drawn, or as given.
    """

    def __init__(self, release: Any, domain: Domain, n_rows: int, rng: np.random.Generator) -> None:
        self._synopsis = synopsis_of(release)
        self._domain = domain
        if self._synopsis is not None:
            self.rows = self._synopsis.sample_codes(n_rows, rng)
        else:
            self.rows = as_codes(release, domain)
            if not len(self.rows):
                raise ValueError("No synthetic row lies in the domain: there is nothing to attack.")

    def counts(self, codes: CodeArray) -> tuple[FloatArray, float]:
        """Expected number of records equal to each row, and of all records.

        By the model of a release; rows without a model are counted themselves.
        """
        if self._synopsis is None:
            return counted(self.rows, codes), float(len(self.rows))
        model, shape = self._synopsis.model, self._domain.shape
        unit = [np.eye(size) for size in shape]
        questions = [
            {axis: unit[axis][code] for axis, code in enumerate(row)} for row in codes.tolist()
        ]
        found = np.asarray(model.answer(questions)) if questions else np.zeros(0)
        return np.maximum(found, 0.0), max(float(self._synopsis.total), 1.0)


def as_codes(rows: Any, domain: Domain) -> CodeArray:
    """Codes of a table, without rows outside of the domain; codes are taken as they are."""
    if isinstance(rows, np.ndarray) and rows.dtype == np.int32 and rows.ndim == 2:
        return rows
    return valid_codes(domain.check_schema(rows), domain).astype(np.int32)


def counted(rows: CodeArray, codes: CodeArray) -> FloatArray:
    """How many of the rows are equal to each of the others."""
    here, there = rows_as_numbers(rows, codes)
    size = max(here.max(initial=-1), there.max(initial=-1)) + 1
    return np.bincount(here, minlength=size)[there].astype(np.float64)
