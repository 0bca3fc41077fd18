"""Two-way marginals: each selected pair measured by a tree of boxes."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ..._random import NoiseSource
from ..._types import FloatArray, IntArray
from ...release import PairTable, couple, group_sums
from ...rows import Counts
from .attributes import Attribute, cut_mass
from .box_trees import TreePlan, measure_tree, spread
from .budget import used_attributes

__all__ = ["PAIR_PLAN", "margins_of", "measure_pairs"]

PAIR_PLAN = TreePlan(levels=5, ratio=Fraction(3, 2), cap=16)
# Weight of the smoothing term mixed into the model that spreads a leaf over its cells.
_SMOOTH = 0.03
# The assumed relative error of the model in a leaf is 1 / _TRUST.
_TRUST = 2.0


def measure_pairs(
    table: Counts,
    pairs: Sequence[tuple[int, int]],
    attributes: Sequence[Attribute],
    epsilon: Fraction,
    total: float,
    source: NoiseSource,
) -> list[PairTable]:
    """Measure the joint views of pairs of attributes with equal budgets.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    pairs : sequence of tuple of two int
        At least one.
    attributes : sequence of Attribute
    epsilon : Fraction
        Cost of all views together.
    total : float
        The released number of records, positive.
    source : NoiseSource
    """
    # A pair view that is the only one is better than the views of its attributes, which are then
    # derived from it.
    fit_margins = len(used_attributes(table.shape)) > 2
    return [
        _measure_pair(table, axes, attributes, epsilon / len(pairs), total, fit_margins, source)
        for axes in pairs
    ]


def _measure_pair(
    table: Counts,
    axes: tuple[int, int],
    attributes: Sequence[Attribute],
    epsilon: Fraction,
    total: float,
    fit_margins: bool,
    source: NoiseSource,
) -> PairTable:
    """Measure a joint view; with ``fit_margins`` its margins become those of the single views."""
    a, b = (attributes[axis] for axis in axes)
    exact = table.regrouped(axes, (a.groups, b.groups))
    exact = exact[np.ix_(a.group_order, b.group_order)]
    mass = [cut_mass(each.grouped)[each.group_order] for each in (a, b)]
    measured = measure_tree(exact, epsilon, total, mass, PAIR_PLAN, random_state=source)
    product = np.outer(a.grouped[a.group_order], b.grouped[b.group_order])
    model = (1 - _SMOOTH) * product + _SMOOTH * np.outer(*mass)
    counts = spread(measured, model, trust=_TRUST if fit_margins else 0.0)
    joint = np.empty_like(counts)
    joint[np.ix_(a.group_order, b.group_order)] = counts / counts.sum()
    if fit_margins:
        joint = couple(joint, a.grouped, b.grouped)
    return PairTable(axes, joint)


def margins_of(
    pair: PairTable, marginals: list[FloatArray], groups: dict[int, IntArray]
) -> list[FloatArray]:
    """Single views that agree with the only pair view, which is the better of the two."""
    result = list(marginals)
    for position, axis in enumerate(pair.axes):
        margin = pair.table.sum(axis=1 - position)
        if axis not in groups:
            result[axis] = margin
            continue
        group = groups[axis]
        mass = group_sums(marginals[axis], group, len(margin))
        even = 1.0 / np.bincount(group)
        inside = np.where(
            mass[group] > 0, marginals[axis] / np.where(mass > 0, mass, 1.0)[group], even[group]
        )
        result[axis] = inside * margin[group]
    return result
