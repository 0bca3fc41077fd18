"""What is attacked: a release, or synthetic rows of any library."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from .._types import CodeArray, FloatArray
from ..domain import Domain
from ..quality._frames import valid_codes
from ..release import Synopsis
from ._scene import rows_as_numbers

__all__ = ["Target", "claim_of", "synopsis_of"]


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
