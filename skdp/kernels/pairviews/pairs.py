"""Two-way marginals: each selected pair, or the only one, measured by boxes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from ..._random import NoiseSource
from ..._types import BoolArray, FloatArray, IntArray
from ...mechanisms import discrete_laplace_variance
from ...release import PairTable, couple, group_sums
from ...rows import Counts
from .attributes import Attribute, cut_mass
from .box_trees import TreePlan, measure_tree, spread, without_impossible
from .budget import ViewShares
from .maps import cutting_mass, map_counts, measure_map
from .single import single_shares
from .structured import fitted

__all__ = ["PAIR_PLAN", "margins_of", "measure_only_pair", "measure_pairs"]

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
    masks: Mapping[tuple[int, int], BoolArray] | None = None,
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
    masks : mapping of tuple of two int to ndarray of bool, default=None
        Cells of pairs that records can have, for those under public rules.
    """
    share = epsilon / max(len(pairs), 1)
    tables = table.regrouped_many(
        [((a, b), (attributes[a].groups, attributes[b].groups)) for a, b in pairs]
    )
    found = []
    for axes, exact in zip(pairs, tables, strict=True):
        allowed = None if masks is None else masks.get(axes)
        found.append(_measure_pair(exact, axes, attributes, share, total, source, allowed))
    return found


def _measure_pair(
    exact: IntArray,
    axes: tuple[int, int],
    attributes: Sequence[Attribute],
    epsilon: Fraction,
    total: float,
    source: NoiseSource,
    allowed: BoolArray | None,
) -> PairTable:
    """Measure a joint view, given its exact counts over groups.

    Its margins become those of the single views. Cells that are not ``allowed`` are empty.
    """
    a, b = (attributes[axis] for axis in axes)
    exact = exact[np.ix_(a.group_order, b.group_order)]
    mass = [cut_mass(each.grouped)[each.group_order] for each in (a, b)]
    measured = measure_tree(exact, epsilon, total, mass, PAIR_PLAN, random_state=source)
    product = np.outer(a.grouped[a.group_order], b.grouped[b.group_order])
    flat = np.outer(*mass)
    if allowed is not None:
        inside = allowed[np.ix_(a.group_order, b.group_order)]
        product = fitted(product, inside, a.grouped[a.group_order], b.grouped[b.group_order])
        flat = flat * inside / (flat * inside).sum()
        measured = without_impossible(measured, inside)
    model = (1 - _SMOOTH) * product + _SMOOTH * flat
    counts = spread(measured, model, trust=_TRUST)
    joint = np.empty_like(counts)
    joint[np.ix_(a.group_order, b.group_order)] = counts / counts.sum()
    if allowed is None:
        joint = couple(joint, a.grouped, b.grouped)
    else:
        joint = fitted(joint, allowed, a.grouped, b.grouped)
    return PairTable(axes, joint)


def measure_only_pair(
    table: Counts,
    axes: tuple[int, int],
    attributes: Sequence[Attribute],
    shares: ViewShares,
    total: tuple[float, float],
    source: NoiseSource,
    allowed: BoolArray | None,
) -> tuple[PairTable, float]:
    """Measure the joint view of the only two attributes that have more than one code.

    It is better than the views of its attributes, which are then derived from it.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    axes : tuple of two int
    attributes : sequence of Attribute
    shares : ViewShares
        Its budget for pairs is spent; that of the single views says how noisy these are.
    total : tuple of two float
        The released number of records, and the variance of its noise.
    source : NoiseSource
    allowed : ndarray of bool or None
        Cells that records can have; None for all.

    Returns
    -------
    pair : PairTable
    total : float
        A better estimate of the number of records, which may be negative.
    """
    a, b = (attributes[axis] for axis in axes)
    at = np.ix_(a.group_order, b.group_order)
    exact = next(iter(table.regrouped_many([(axes, (a.groups, b.groups))])))[at]
    inside = np.ones(exact.shape, dtype=bool) if allowed is None else allowed[at]
    budgets = [shares.single * each for each in single_shares(table.shape)]
    views = [
        (
            max(total[0], 1.0) * each.grouped[each.group_order],
            math.sqrt(discrete_laplace_variance(budgets[axis])),
        )
        for axis, each in zip(axes, (a, b), strict=True)
    ]
    masses = [cutting_mass(*view) for view in views]
    measured = measure_map(exact, shares.pairs, *total, masses, random_state=source)
    counts, better = map_counts(measured, inside, views)
    joint = np.empty_like(counts)
    joint[at] = counts / counts.sum()
    return PairTable(axes, joint), better


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
