"""Rows that satisfy a condition and the public structure of the domain at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._types import BoolArray, CodeArray, FloatArray
from ..domain import Domain

__all__ = ["Lawful", "must_be_missing"]

# How often rows are drawn again that break the structure, before a search takes their place.
_ROUNDS = 30
# How often the search for one row begins anew.
_STARTS = 200


class Lawful:
    """Draws of rows that break no rule.

    A release that honours the structure gives such rows little or no probability. Few are drawn:
    where a condition has probability zero, or where rules hold in its weighted records only.

    Parameters
    ----------
    domain : Domain
    weights : mapping of int to ndarray
        Weight of each code, for the attributes with a condition.
    query : dict, str or None
        The condition, for messages.

    Attributes
    ----------
    weights : dict of int to ndarray
        Without the codes that the rules exclude under the condition.

    Raises
    ------
    ValueError
        If the rules leave no code of some attribute.
    """

    def __init__(self, domain: Domain, weights: Mapping[int, FloatArray], query: Any) -> None:
        self.domain = domain
        self.zeros = domain.structure.zeros
        self.weights = dict(weights)
        self._query = query
        if not self.zeros or not weights:
            return
        start = {axis: each > 0 for axis, each in weights.items()}
        possible = self._propagated(start)
        if possible is None:
            if query is None:
                return  # contradicting values of given rows: each row is repaired by itself
            raise ValueError(
                f"No row can satisfy where={query!r}: the structure of the domain forbids it."
            )
        for axis, allowed in possible.items():
            if axis in self.weights or not allowed.all():
                own = self.weights.get(axis, np.ones(len(allowed)))
                self.weights[axis] = own * allowed

    def draw(
        self,
        draw: Callable[[CodeArray], CodeArray],
        known: CodeArray,
        generator: np.random.Generator,
    ) -> CodeArray:
        """Fill rows of codes where they are -1.

        Parameters
        ----------
        draw : callable
            Fills rows by the model, under the weights.
        known : ndarray of int32, shape (n_rows, n_attributes)
        generator : numpy.random.Generator
        """
        codes = draw(known)
        if not self.zeros:
            return codes
        structure = self.domain.structure
        rows = np.flatnonzero(structure.breaks(codes))
        for _ in range(_ROUNDS):
            if not len(rows):
                return codes
            codes[rows] = draw(known[rows])
            rows = rows[structure.breaks(codes[rows])]
        for row in rows.tolist():
            found = self._search(codes[row], known[row], generator)
            if found is None:
                # Known values that no rule allows together count as unknown.
                found = self._search(codes[row], np.full_like(known[row], -1), generator)
            if found is None:
                raise ValueError(
                    f"No row was found that satisfies where={self._query!r} and the structure of "
                    "the domain."
                )
            codes[row] = found
        return codes

    def _propagated(self, start: Mapping[int, BoolArray]) -> dict[int, BoolArray] | None:
        """Codes of each attribute under rules that some allowed cell has; None if there are none.

        Each table of rules is looked at by itself, until nothing changes.
        """
        shape = self.domain.shape
        possible = {
            axis: np.asarray(start.get(axis, np.ones(shape[axis], dtype=bool)))
            for axis in {*start, *(axis for zeros in self.zeros for axis in zeros.axes)}
        }
        changed = set(possible)
        while changed:
            touched, changed = changed, set()
            for zeros in self.zeros:
                if not touched & set(zeros.axes):
                    continue
                table = zeros.allowed
                for place, axis in enumerate(zeros.axes):
                    table = table & np.expand_dims(
                        possible[axis], [p for p in range(table.ndim) if p != place]
                    )
                for place, axis in enumerate(zeros.axes):
                    left: Any = table.any(axis=tuple(p for p in range(table.ndim) if p != place))
                    if not left.any():
                        return None
                    if not np.array_equal(left, possible[axis]):
                        possible[axis] = left
                        changed.add(axis)
        return possible if all(each.any() for each in possible.values()) else None

    def _search(
        self, drawn: CodeArray, known: CodeArray, generator: np.random.Generator
    ) -> CodeArray | None:
        """A row that breaks no rule, near the one drawn."""
        start = {axis: each > 0 for axis, each in self.weights.items()}
        for axis in np.flatnonzero(known >= 0).tolist():
            start[axis] = np.arange(self.domain.shape[axis]) == known[axis]
        first = self._propagated(start)
        if first is None:
            return None
        for _ in range(_STARTS):
            possible: dict[int, BoolArray] | None = dict(first)
            row = drawn.copy()
            for axis in generator.permutation(sorted(first)).tolist():
                assert possible is not None
                codes = np.flatnonzero(possible[axis])
                if not possible[axis][row[axis]]:
                    row[axis] = codes[int(generator.integers(len(codes)))]
                possible[axis] = np.arange(len(possible[axis])) == row[axis]
                possible = self._propagated(possible)
                if possible is None:
                    break
            if possible is not None:
                return row
        return None


def must_be_missing(domain: Domain, codes: CodeArray, axis: int) -> BoolArray:
    """Rows in which a rule leaves a nullable column no value, given the known values of others.

    Parameters
    ----------
    domain : Domain
    codes : ndarray of int32, shape (n_rows, n_attributes)
        -1 where they are unknown.
    axis : int
    """
    forced = np.zeros(len(codes), dtype=bool)
    for zeros in domain.structure.zeros:
        if axis not in zeros.axes:
            continue
        others = [other for other in zeros.axes if other != axis]
        rows = np.flatnonzero((codes[:, others] >= 0).all(axis=1))
        table = np.moveaxis(zeros.allowed, zeros.axes.index(axis), -1)
        allowed = table[tuple(codes[rows, other] for other in others)]
        forced[rows] |= ~np.broadcast_to(allowed, (len(rows), table.shape[-1]))[:, :-1].any(axis=1)
    return forced
