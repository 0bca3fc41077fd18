"""Structural zeros: public, and prepared before anything is measured.

Codes that no record can have are taken out of the table (`Rules.compressed`); no row breaks a rule
(`Rules.mended`), and answers about nothing but forbidden records are 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ..._validation import BoolArray, CodeArray, FloatArray, IntArray
from ...domain import Zeros
from ...domain.constraints import allowed_row, breaks, merged, narrowed, outer
from ...release import (
    Ladder,
    MeasuredSums,
    ViewsModel,
    WeightedRows,
    inverse_rows,
)
from ...tables import Counts
from .groups import TINY

__all__ = ["Rules"]

Cell = tuple[int, ...]

# Rounds of drawing rows again before what breaks rules is left out.
_ROUNDS = 40


class Rules(NamedTuple):
    """Structural zeros of a table.

    Attributes
    ----------
    shape : tuple of int
        Number of all codes of each attribute.
    codes : list of ndarray of int64
        Codes of each attribute that records can have, ascending.
    zeros : list of Zeros
        Rules of two and more attributes over these codes.
    """

    shape: tuple[int, ...]
    codes: list[IntArray]
    zeros: list[Zeros]

    @classmethod
    def of(cls, shape: Sequence[int], zeros: Sequence[Zeros] = ()) -> Rules | None:
        """Prepare structural zeros; None if no record satisfies them.

        Codes without a partner under some rule are excluded too (arc consistency).
        """
        tables = narrowed(merged(zeros))
        if tables is None or allowed_row(tables) is None:
            return None
        codes = [
            np.flatnonzero(tables.get((axis,), np.ones(size))) for axis, size in enumerate(shape)
        ]
        found = [
            Zeros(axes, mask[np.ix_(*(codes[axis] for axis in axes))])
            for axes, mask in tables.items()
            if len(axes) > 1
        ]
        return cls(tuple(shape), codes, [each for each in found if not each.allowed.all()])

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of codes of each attribute that records can have."""
        return tuple(len(codes) for codes in self.codes)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of attributes under a rule of their own."""
        return [(each.axes[0], each.axes[1]) for each in self.zeros if len(each.axes) == 2]

    def mended(
        self,
        rows: CodeArray,
        weights: FloatArray,
        shares: Sequence[FloatArray],
        generator: np.random.Generator,
    ) -> tuple[CodeArray, FloatArray]:
        """Rows that break no rule, at least one, and their weights.

        One column of a broken rule is drawn again given its others, which keeps what other rules
        ask of those; rows that still break a rule after some rounds are left out.

        Parameters
        ----------
        rows : ndarray of int32, shape (n_rows, n_attributes)
            Over the codes that records can have.
        weights : ndarray of float64, shape (n_rows,)
        shares : sequence of ndarray of float64
            Probabilities of the codes of each attribute.
        generator : numpy.random.Generator
        """
        at = np.flatnonzero(breaks(rows, self.zeros))
        if not len(at):
            return rows, weights
        rows = np.array(rows)
        for _ in range(_ROUNDS):
            for each in self.zeros:
                broken = at[each.broken_by(rows[at])]
                position = int(generator.integers(len(each.axes)))
                axis = each.axes[position]
                others = [other for other in each.axes if other != axis]
                table = np.moveaxis(each.allowed, position, -1) * np.maximum(shares[axis], TINY)
                columns = [rows[broken, other] for other in others]
                line = np.ravel_multi_index(columns, table.shape[:-1])
                table = table.reshape(-1, table.shape[-1])
                possible: BoolArray = np.any(table, axis=1)
                some = possible[line]
                if some.any():
                    used, own = np.unique(line[some], return_inverse=True)
                    u = generator.random(len(own))
                    rows[broken[some], axis] = inverse_rows(table[used], own.reshape(-1), u)
            at = at[breaks(rows[at], self.zeros)]
            if not len(at):
                break
        kept = ~breaks(rows, self.zeros)
        if not kept.any():
            # The rules leave so little that it must be searched for; `Rules.of` found a row.
            for axis, code in (allowed_row(dict(self.zeros)) or {}).items():
                rows[:, axis] = code
            kept[:] = True
        return rows[kept], weights[kept] / weights[kept].sum()

    def barriers(self, groups: Sequence[IntArray | None]) -> list[tuple[Cell, BoolArray]]:
        """Which groups of codes each rule leaves possible: those with an allowed combination."""
        found = []
        for axes, allowed in self.zeros:
            for place, axis in enumerate(axes):
                allowed = _grouped(allowed, place, groups[axis])
            found.append((axes, allowed))
        return found

    def compressed(self, table: Counts) -> Counts:
        """The table over the codes that records can have.

        Records that break the structure are skipped before they are counted; any that are left
        are dropped, each by itself.
        """
        for axis, (size, codes) in enumerate(zip(self.shape, self.codes, strict=True)):
            if len(codes) < size:
                new = np.full(size, -1, dtype=np.int64)
                new[codes] = np.arange(len(codes))
                table = table.recode(axis, new)
        return table

    def orders(self, orders: Sequence[IntArray | None]) -> list[IntArray | None]:
        """Orders of all codes as orders of those that records can have."""
        return [
            None if order is None else np.searchsorted(codes, order[np.isin(order, codes)])
            for order, codes in zip(orders, self.codes, strict=True)
        ]

    def expanded(self, model: ViewsModel, zeros: Sequence[Zeros]) -> ViewsModel:
        """A model over the possible codes as one over all; the others have count 0."""
        columns = [codes[model.rows.codes[:, axis]] for axis, codes in enumerate(self.codes)]
        codes = np.stack(columns, axis=1).astype(np.int32)
        rows = WeightedRows(codes, model.rows.weights, self.shape)
        ladders = {
            axis: Ladder(
                self._of_next(axis, each.units),
                each.sizes,
                # As far as the last possible code that stands in the order.
                int(self.codes[axis][each.n_ordered - 1]) + 1 if each.n_ordered else 0,
            )
            for axis, each in model.coefficients.ladders.items()
        }
        known = {
            axis: each.expanded(self.codes[axis], self.shape[axis], ladders[axis])
            for axis, each in model.columns.items()
        }
        # Nothing is known of sums of codes that no record has.
        sums = {
            (axis, by): MeasuredSums(
                self._over(axis, sums.values),
                self._over(axis, sums.has_value),
                self._over(axis, sums.missing),
                self._over(by, sums.sums),
                self._over(by, sums.n_missing),
                sums.variances,
            )
            for (axis, by), sums in model.sums.items()
        }
        return ViewsModel(
            rows,
            known,
            model.coefficients.over(ladders),
            self._possible(zeros),
            cells=model.cells,
            sums=sums,
            prior=model.prior,
            followed=model.followed,
            misfits=model.misfits,
            budget=model.budget,
        )

    def _over(self, axis: int, values: Any, place: int = 0) -> Any:
        """Values of the codes that records can have as values of all codes, along one axis."""
        shape = [*values.shape]
        shape[place] = self.shape[axis]
        found = np.zeros(shape, dtype=values.dtype)
        np.moveaxis(found, place, 0)[self.codes[axis]] = np.moveaxis(values, place, 0)
        return found

    def _of_next(self, axis: int, groups: IntArray) -> IntArray:
        """Group of every code; an impossible one joins the group of the next possible one."""
        codes = self.codes[axis]
        near = np.searchsorted(codes, np.arange(self.shape[axis])).clip(max=len(codes) - 1)
        return np.asarray(groups[near])

    def _possible(self, zeros: Sequence[Zeros]) -> dict[Cell, BoolArray]:
        """Combinations of codes that rules allow, and what two with a common column imply."""
        inside = [
            np.isin(np.arange(size), codes)
            for size, codes in zip(self.shape, self.codes, strict=True)
        ]
        found: dict[Cell, BoolArray] = {
            (axis,): each for axis, each in enumerate(inside) if not each.all()
        }
        for axes, allowed in zeros:
            allowed = allowed & outer([inside[axis] for axis in axes])
            margins = _margins(axes, allowed, range(2, len(axes)))
            less = [(key, mask) for key, mask in margins if not mask.all()]
            found = merged([*found.items(), *less, (axes, allowed)])
        near: dict[int, set[int]] = {}
        both = {axes: mask for axes, mask in found.items() if len(axes) == 2}
        for a, b in list(both):
            both[b, a] = both[a, b].T
            near.setdefault(a, set()).add(b)
            near.setdefault(b, set()).add(a)
        for b in sorted(near):
            for a, c in combinations(sorted(near[b]), 2):
                implied = both[a, b].astype(np.float64) @ both[b, c] > 0
                allowed = both[a, c] & implied if (a, c) in both else implied
                if not allowed.all():
                    both[a, c], both[c, a] = allowed, allowed.T
                    found[a, c] = allowed
        return found


def _margins(axes: Cell, allowed: BoolArray, orders: Iterable[int]) -> Iterator[tuple[Any, Any]]:
    """A rule of more attributes is one of some of them as well: the tables of each few."""
    for order in orders:
        for places in combinations(range(len(axes)), order):
            others = tuple({*range(len(axes))} - {*places})
            yield tuple(axes[place] for place in places), allowed.any(axis=others)


def _grouped(allowed: BoolArray, place: int, groups: IntArray | None) -> BoolArray:
    """Allowed groups of the codes of one axis: those with an allowed code."""
    if groups is None:
        return allowed
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(int(groups.max()) + 1))
    return np.logical_or.reduceat(np.take(allowed, order, axis=place), starts, axis=place)
