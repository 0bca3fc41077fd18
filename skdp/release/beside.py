"""Numbers drawn beside known ones: rules of `at_most` hold for the values, not only for codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .._types import BoolArray, CodeArray, FloatArray, IntArray
from ..domain import Categorical, Domain
from ..domain.reading import read
from ..domain.rules.numberline import spans
from .known import Known

__all__ = ["Beside"]


class Beside:
    """Compares drawn numbers with known ones.

    A cell may hold values below a known bound and lie mostly above it, or begin above it: the
    rules, which are about cells, do not see where in its cell a known value is.

    Parameters
    ----------
    known : Known
    """

    def __init__(self, known: Known) -> None:
        self.domain: Domain = known.domain
        structure = known.domain.structure
        self.pairs = [
            (name, bound) for name, bounds in structure.bounds_of().items() for bound in bounds
        ]
        names = {name for pair in self.pairs for name in pair}
        self.known: dict[str, FloatArray] = {
            name: _given_number(known, name) if name in known.names else _nothing(known.n_rows)
            for name in names
        }

    def astray(self, rows: IntArray, frame: pd.DataFrame, codes: CodeArray) -> BoolArray:
        """Rows whose drawn numbers break a rule beside the known ones.

        Parameters
        ----------
        rows : ndarray of int
            Positions of the rows.
        frame, codes
            What was drawn for them.
        """
        numbers = {
            name: np.where(np.isnan(given[rows]), self._drawn(name, frame, codes), given[rows])
            for name, given in self.known.items()
        }
        wrong = np.zeros(len(rows), dtype=bool)
        for name, bound in self.pairs:
            fixed = ~np.isnan(self.known[name][rows]) & ~np.isnan(self.known[bound][rows])
            wrong |= (numbers[name] > numbers[bound]) & ~fixed
        return wrong

    def groups(self, rows: IntArray) -> list[tuple[IntArray, dict[int, FloatArray]]]:
        """Rows whose known values leave the same codes of other columns, and weights of these."""
        found: dict[tuple[Any, ...], tuple[list[int], dict[int, FloatArray]]] = {}
        for row in rows.tolist():
            possible = self._possible(row)
            key = tuple((axis, each.tobytes()) for axis, each in possible.items())
            found.setdefault(key, ([], possible))[0].append(row)
        return [(np.array(group), possible) for group, possible in found.values()]

    def _possible(self, row: int) -> dict[int, FloatArray]:
        """Weights of the codes that have values on the right side of the known ones of a row."""
        structure = self.domain.structure
        weights: dict[int, FloatArray] = {}
        for name, bound in self.pairs:
            least, most = self.known[name][row], self.known[bound][row]
            if np.isnan(least) == np.isnan(most):
                continue
            unknown = name if np.isnan(least) else bound
            low, high = spans(self.domain[unknown])
            # The missing cell compares as nan, and satisfies every rule.
            own = structure.lifted(unknown, ~(low > most) if unknown == name else ~(high < least))
            axis = self.domain.index(structure.base_of(unknown))
            weights[axis] = own * weights.get(axis, 1.0)
        return weights

    def _drawn(self, name: str, frame: pd.DataFrame, codes: CodeArray) -> FloatArray:
        attribute = self.domain[name]
        if isinstance(attribute, Categorical) or name not in self.domain.names:
            base = codes[:, self.domain.index(self.domain.structure.base_of(name))]
            return self.domain.structure.lifted(name, spans(attribute)[0])[base]
        return attribute._numbers(read(frame[[name]]).column(name))


def _nothing(n_rows: int) -> FloatArray:
    return np.full(n_rows, np.nan)


def _given_number(known: Known, name: str) -> FloatArray:
    """A known column on the number line; nan where it has no value. Out of range is the nearest."""
    attribute, column = known.domain[name], known.frame.column(name)
    low, high = spans(attribute)
    codes = attribute.encode(column)
    there = codes >= 0
    numbers = np.where(there, low[codes], np.nan)
    if isinstance(attribute, Categorical):
        return numbers
    own = attribute._numbers(column)
    own = np.floor(own) if attribute.integer else own
    return np.where(there, np.clip(own, low[codes], high[codes]), np.nan)
