"""Structural zeros as a population keeps them: no row breaks a public rule at any time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..._types import BoolArray, CodeArray, FloatArray
from ...domain import Zeros
from ...release import TreeDensity
from ..pairviews.attributes import Attribute
from ..pairviews.rules import Rules
from ..pairviews.structured import (
    breaks,
    fit_tree,
    masks_of,
    possible_rows,
    redrawn,
    unmeasured,
)

__all__ = ["Laws"]

# Logarithm of the factor of a combination that rules forbid: below what any view can outweigh.
_FORBIDDEN = -1e4


class Laws(NamedTuple):
    """Public rules over the groups of attributes; none if ``rules`` is None.

    Attributes
    ----------
    rules : Rules or None
    masks : dict
        Pairs of groups that records can have.
    rest : list of Zeros
        Rules over codes that a tree of these pairs does not hold.
    """

    rules: Rules | None
    masks: dict[tuple[int, int], BoolArray]
    rest: list[Zeros]

    @classmethod
    def of(cls, rules: Rules | None, attributes: Sequence[Attribute]) -> Laws:
        """Prepare rules over the codes that records can have."""
        if rules is None:
            return cls(None, {}, [])
        masks, rest = masks_of(rules, attributes)
        return cls(rules, masks, rest)

    @property
    def forest(self) -> list[tuple[int, int]]:
        """Pairs under rules that form a tree."""
        return [] if self.rules is None else self.rules.forest()

    def independent(self, attributes: Sequence[Attribute]) -> TreeDensity:
        """Attributes that depend on each other through the rules only."""
        if self.rules is not None:
            tables = unmeasured(self.forest, attributes, self.masks)
            return fit_tree(attributes, tables, self.masks)
        groups = {i: each.groups for i, each in enumerate(attributes) if each.groups is not None}
        return TreeDensity([each.mu for each in attributes], [], groups)

    def rows(self, density: TreeDensity, n_rows: int, generator: np.random.Generator) -> CodeArray:
        """Rows of a density that satisfy all rules, at least one."""
        if self.rules is None or not self.rest:
            return density.sample(n_rows, generator)
        return possible_rows(density, self.rules, self.rest, n_rows, generator)

    def barriers(self, attributes: Sequence[Attribute]) -> list[tuple[tuple[int, ...], FloatArray]]:
        """Factors, as logarithms, that keep rows from what is forbidden."""
        if self.rules is None:
            return []
        found: list[tuple[tuple[int, ...], BoolArray]] = [*self.masks.items()]
        for each in self.rules.wide:
            allowed = each.allowed
            for place, axis in enumerate(each.axes):
                allowed = _grouped(allowed, place, attributes[axis])
            found.append((tuple(each.axes), allowed))
        return [(axes, np.where(allowed, 0.0, _FORBIDDEN)) for axes, allowed in found]

    def kept(self, rows: CodeArray) -> BoolArray:
        """Which rows satisfy all rules."""
        if self.rules is None:
            return np.ones(len(rows), dtype=bool)
        return ~breaks(rows, self.rules.zeros)

    def mended(
        self,
        rows: CodeArray,
        weights: FloatArray,
        density: TreeDensity,
        generator: np.random.Generator,
    ) -> tuple[CodeArray, FloatArray]:
        """Rows whose codes were drawn inside groups, without those that break a rule."""
        good = self.kept(rows)
        if good.all() or self.rules is None:
            return rows, weights
        again = redrawn(rows[~good], density, self.rules.zeros, generator)
        rows = np.concatenate([rows[good], again])
        if not len(rows):
            rows = possible_rows(density, self.rules, self.rest, len(weights), generator)
            return rows, np.full(len(rows), 1.0 / len(rows))
        # Those drawn again share the weight of all that broke a rule.
        share = np.full(len(again), weights[~good].sum() / max(len(again), 1))
        found = np.concatenate([weights[good], share])
        return rows, found / found.sum()


def _grouped(allowed: BoolArray, place: int, attribute: Attribute) -> BoolArray:
    """Allowed groups of one attribute: those with an allowed code."""
    if attribute.groups is None:
        return allowed
    order = np.argsort(attribute.groups, kind="stable")
    starts = np.searchsorted(attribute.groups[order], np.arange(len(attribute.grouped)))
    return np.logical_or.reduceat(np.take(allowed, order, axis=place), starts, axis=place)
