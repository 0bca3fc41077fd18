"""Structural zeros: public, and prepared before anything is measured.

Codes that no record can have are taken out of the table (`Rules.compressed`); rows keep the rules
(`laws`), and answers about nothing but forbidden records are 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ..._validation import BoolArray, FloatArray, IntArray
from ...domain import Zeros
from ...domain.constraints import allowed_row, joined, merged, narrowed, outer
from ...release import Ladder, MeasuredSums, PairTable, TreeDensity, TreeModel, ViewsModel
from ...tables import Counts

__all__ = ["Rules", "first_row", "group_mask"]

Cell = tuple[int, ...]


class Rules(NamedTuple):
    """Structural zeros of a table.

    Attributes
    ----------
    shape : tuple of int
        Number of all codes of each attribute.
    codes : list of ndarray of int64
        Codes of each attribute that records can have, ascending.
    pairs : dict
        Allowed combinations of two attributes over the codes in ``codes``, the strictest first,
        without those that two others imply.
    wide : list of Zeros
        Rules of more attributes over these codes, where those of two do not imply them.
    """

    shape: tuple[int, ...]
    codes: list[IntArray]
    pairs: dict[tuple[int, int], BoolArray]
    wide: list[Zeros]

    @classmethod
    def of(cls, shape: Sequence[int], zeros: Sequence[Zeros]) -> Rules | None:
        """Prepare structural zeros; None if no record satisfies them.

        Codes without a partner under some rule are excluded too (arc consistency).
        """
        tables = narrowed(merged(zeros))
        if tables is None or allowed_row(tables) is None:
            return None
        masks = {axes: allowed for axes, allowed in tables.items() if len(axes) > 1}
        for axes in [axes for axes in masks if len(axes) > 2]:
            for two, mask in _margins(axes, masks[axes], [2]):
                masks.setdefault(two, mask)
        codes = [
            np.flatnonzero(tables.get((axis,), np.ones(size))) for axis, size in enumerate(shape)
        ]
        kept = {axes: mask[np.ix_(*(codes[k] for k in axes))] for axes, mask in masks.items()}
        both = [(k[0], k[1]) for k, mask in kept.items() if len(k) == 2 and not mask.all()]
        both.sort(key=lambda pair: (float(kept[pair].mean()), pair))
        pairs = {pair: kept[pair] for pair in both}
        wide = [
            Zeros(axes, mask)
            for axes, mask in kept.items()
            if len(axes) > 2
            and (joined({k: m for k, m in pairs.items() if {*k} <= {*axes}}, axes) & ~mask).any()
        ]
        return cls(tuple(shape), codes, _reduced(pairs), wide)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of codes of each attribute that records can have."""
        return tuple(len(codes) for codes in self.codes)

    @property
    def zeros(self) -> list[Zeros]:
        """All rules over the codes that records can have."""
        return [*(Zeros(axes, mask) for axes, mask in self.pairs.items()), *self.wide]

    def forest(self) -> list[tuple[int, int]]:
        """Pairs of the rules that fit into a tree: the strictest first, none closing a cycle."""
        component = list(range(len(self.shape)))
        found = []
        for a, b in self.pairs:
            if component[a] != component[b]:
                found.append((a, b))
                component = [component[a] if c == component[b] else c for c in component]
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
        density = model.density
        marginals = [self._over(axis, each) for axis, each in enumerate(density.marginals)]
        groups = {axis: self._of_next(axis, each) for axis, each in density.groups.items()}

        def spread(pairs: Sequence[PairTable]) -> list[PairTable]:
            found = []
            for pair in pairs:
                table = pair.table
                # Groups are as many as before.
                for place, axis in enumerate(pair.axes):
                    table = table if axis in groups else self._over(axis, table, place)
                found.append(PairTable(pair.axes, table))
            return found

        columns = [codes[model.rows[:, axis]] for axis, codes in enumerate(self.codes)]
        rows = TreeModel(
            TreeDensity(marginals, spread(density.edges), groups),
            model.total,
            extra=spread(model.extra),
            rows=np.stack(columns, axis=1).astype(np.int32),
            row_weights=model.row_weights,
            budget=model.budget,
        )
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


def group_mask(allowed: BoolArray, groups: Sequence[IntArray | None]) -> tuple[BoolArray, bool]:
    """Pairs of groups with an allowed pair of codes, and whether all their pairs are allowed."""
    counts = allowed.astype(np.int64)
    cells = np.ones_like(counts)
    for position, group in enumerate(groups):
        if group is not None:
            first = np.argsort(group, kind="stable")
            starts = np.searchsorted(group[first], np.arange(int(group.max()) + 1))
            counts, cells = (
                np.add.reduceat(np.take(each, first, axis=position), starts, axis=position)
                for each in (counts, cells)
            )
    return counts > 0, bool(((counts == 0) | (counts == cells)).all())


def first_row(rules: Rules) -> list[int]:
    """Codes of one row that no rule forbids."""
    row = allowed_row(dict(rules.zeros))
    assert row is not None  # `Rules.of` found one
    return [row.get(axis, 0) for axis in range(len(rules.codes))]


def _reduced(pairs: dict[tuple[int, int], BoolArray]) -> dict[tuple[int, int], BoolArray]:
    """The rules of two attributes without those that two others imply (a <= b <= c, a <= c).

    Rules that most others imply go first: in a chain, those of its neighbours are left. How many
    imply one is guessed from a few codes of each attribute.
    """
    tables, few = {}, {}
    for (a, b), mask in pairs.items():
        tables[a, b] = mask.astype(np.float64)
        tables[b, a] = tables[a, b].T
        few[a, b] = tables[a, b][tuple(slice(None, None, -(-n // 12)) for n in mask.shape)]
        few[b, a] = few[a, b].T
    near: dict[int, set[int]] = {}
    for a, b in tables:
        near.setdefault(a, set()).add(b)

    def implies(by: dict[tuple[int, int], FloatArray], a: int, b: int, c: int) -> bool:
        return not ((by[a, b] @ by[b, c] > 0) & (by[a, c] == 0)).any()

    between = {
        (a, c): [b for b in sorted(near[a] & near[c]) if implies(few, a, b, c)] for a, c in pairs
    }
    left = set(pairs)
    for a, c in sorted(pairs, key=lambda pair: -len(between[pair])):
        for b in between[a, c]:
            others = {(min(a, b), max(a, b)), (min(b, c), max(b, c))}
            if others <= left and implies(tables, a, b, c):
                left.remove((a, c))
                break
    return {pair: mask for pair, mask in pairs.items() if pair in left}
