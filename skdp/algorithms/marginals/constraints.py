"""Structural zeros: public, and prepared before anything is measured.

Codes that no record can have are taken out of the table (`Rules.compressed`); rows keep the rules
(`laws`), and answers about nothing but forbidden records are 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ..._validation import BoolArray, FloatArray, IntArray
from ...domain import Zeros
from ...domain.constraints import allowed_row, outer, possible_codes
from ...release import Ladder, MeasuredSums, PairTable, TreeDensity, TreeModel, ViewsModel
from ...tables import Counts, CountTable

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
        tables: dict[Cell, BoolArray] = {}
        for axes, allowed in ((each.axes, each.allowed) for each in zeros):
            tables[axes] = tables[axes] & allowed if axes in tables else np.asarray(allowed)
        possible = possible_codes(tables)
        if possible is None or allowed_row(tables) is None:
            return None
        masks = {
            axes: allowed & outer([possible[axis] for axis in axes])
            for axes, allowed in tables.items()
            if len(axes) > 1
        }
        # A rule of more attributes is one of each two of them as well.
        for axes in [axes for axes in masks if len(axes) > 2]:
            for two in combinations(axes, 2):
                others = tuple(place for place, axis in enumerate(axes) if axis not in two)
                masks.setdefault((two[0], two[1]), np.asarray(masks[axes].any(axis=others)))
        codes = [
            np.flatnonzero(possible.get(axis, np.ones(size))) for axis, size in enumerate(shape)
        ]
        kept = {axes: mask[np.ix_(*(codes[k] for k in axes))] for axes, mask in masks.items()}
        both = [(k[0], k[1]) for k, mask in kept.items() if len(k) == 2 and not mask.all()]
        both.sort(key=lambda pair: (float(kept[pair].mean()), pair))
        pairs = {pair: kept[pair] for pair in both}
        wide = [
            Zeros(axes, mask)
            for axes, mask in kept.items()
            if len(axes) > 2 and not _implied(axes, mask, pairs)
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
        new: list[IntArray | None] = []
        for size, codes in zip(self.shape, self.codes, strict=True):
            to = np.full(size, -1, dtype=np.int64)
            to[codes] = np.arange(len(codes))
            new.append(to if len(codes) < size else None)
        if all(to is None for to in new):
            return table
        if isinstance(table, CountTable):
            return _recoded(table, new)
        for axis, codes_of in enumerate(new):
            if codes_of is not None:
                table = table.recode(axis, codes_of)
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
        marginals, groups = [], {}
        places: list[IntArray] = []
        for axis, (codes, size) in enumerate(zip(self.codes, self.shape, strict=True)):
            marginals.append(np.zeros(size))
            marginals[-1][codes] = density.marginals[axis]
            places.append(codes)
            if axis in density.groups:
                groups[axis] = _of_next(density.groups[axis], codes, size)
                places[-1] = np.arange(density.sizes[axis])

        def spread(pairs: Sequence[PairTable]) -> list[PairTable]:
            found = []
            for pair in pairs:
                a, b = pair.axes
                sizes = [density.sizes[k] if k in groups else self.shape[k] for k in (a, b)]
                table = np.zeros(sizes)
                table[np.ix_(places[a], places[b])] = pair.table
                found.append(PairTable((a, b), table))
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
                _of_next(each.units, self.codes[axis], self.shape[axis]),
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
        return ViewsModel(
            rows,
            known,
            model.coefficients.over(ladders),
            self._possible(zeros),
            cells=model.cells,
            sums={key: self._spread(key, each) for key, each in model.sums.items()},
            prior=model.prior,
            followed=model.followed,
            misfits=model.misfits,
        )

    def _spread(self, key: tuple[int, int], sums: MeasuredSums) -> MeasuredSums:
        """Measured sums over all codes: nothing is known of those that no record has."""
        axis, by = key

        def over(column: int, vector: Any) -> Any:
            found = np.zeros(self.shape[column], dtype=vector.dtype)
            found[self.codes[column]] = vector
            return found

        return MeasuredSums(
            over(axis, sums.values),
            over(axis, sums.has_value),
            over(axis, sums.missing),
            over(by, sums.sums),
            over(by, sums.n_missing),
            sums.variances,
        )

    def _possible(self, zeros: Sequence[Zeros]) -> dict[Cell, BoolArray]:
        """Combinations of codes that rules allow, and what two with a common column imply."""
        inside = [
            np.isin(np.arange(size), codes)
            for size, codes in zip(self.shape, self.codes, strict=True)
        ]
        found: dict[Cell, BoolArray] = {
            (axis,): each for axis, each in enumerate(inside) if not each.all()
        }
        for each in zeros:
            allowed = np.asarray(each.allowed) & outer([inside[axis] for axis in each.axes])
            # A rule of more columns is one of each part of them as well.
            for order in range(2, len(each.axes) + 1):
                for places in combinations(range(len(each.axes)), order):
                    axes = tuple(each.axes[place] for place in places)
                    others = tuple({*range(len(each.axes))} - {*places})
                    mask = np.asarray(allowed.any(axis=others))
                    if order == len(each.axes) or not mask.all():
                        found[axes] = found[axes] & mask if axes in found else mask
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


def _of_next(groups: IntArray, codes: IntArray, size: int) -> IntArray:
    """Group of every code; an impossible one joins the group of the next possible one."""
    near = np.minimum(np.searchsorted(codes, np.arange(size)), len(codes) - 1)
    return np.asarray(groups[near])


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


def _recoded(table: CountTable, new: Sequence[IntArray | None]) -> CountTable:
    codes = table.codes.copy(order="F")
    shape = list(table.shape)
    for axis, to in enumerate(new):
        if to is not None:
            codes[:, axis] = to[codes[:, axis]]
            shape[axis] = int(to.max()) + 1
    return CountTable.from_codes(codes, shape, table.counts)


def _reduced(pairs: dict[tuple[int, int], BoolArray]) -> dict[tuple[int, int], BoolArray]:
    """The rules of two attributes without those that two others imply (a <= b <= c, a <= c).

    Rules that most others imply go first: in a chain, those of its neighbours are left. How many
    imply one is guessed from a few codes of each attribute.
    """
    tables, few = {}, {}
    for (a, b), mask in pairs.items():
        tables[a, b] = mask.astype(np.float64)
        tables[b, a] = tables[a, b].T
        few[a, b] = tables[a, b][np.ix_(*(_some_codes(size) for size in mask.shape))]
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


def _some_codes(size: int) -> IntArray:
    """Up to twelve codes, evenly spaced."""
    return np.unique(np.linspace(0, size - 1, 12).astype(np.int64))


def _implied(axes: Cell, mask: BoolArray, pairs: dict[tuple[int, int], BoolArray]) -> bool:
    """Whether the rules of two attributes forbid all that a rule of more forbids."""
    allowed = np.ones(mask.shape, dtype=bool)
    for (a, b), pair in pairs.items():
        if a in axes and b in axes:
            shape = [1] * len(axes)
            shape[axes.index(a)], shape[axes.index(b)] = pair.shape
            allowed &= pair.reshape(shape)
    return bool((allowed == mask).all())
