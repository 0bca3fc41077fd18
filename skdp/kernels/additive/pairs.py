"""Functions of two columns together: which pairs, and what residuals say about them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from ..._types import FloatArray, IntArray
from ...mechanisms import discrete_laplace, discrete_laplace_variance, noisy_max
from .links import UNIT, Link
from .model import Axis, Draft, Prior, mean_size
from .records import Records
from .tuning import TINY, TUNING

__all__ = ["PairPlan", "add_pairs", "coarse_axis"]


@dataclass(frozen=True)
class PairPlan:
    """Which functions of two columns are asked for: public.

    Attributes
    ----------
    chains : sequence of (sequence of int or None)
        Of each column the groups in their order.
    pairs : tuple of (int, int) or None
        Positions of columns. None: they are chosen.
    n_pairs : int or None
        How many are chosen. None: as many as pay.
    """

    chains: Sequence[Sequence[int] | None]
    pairs: tuple[tuple[int, int], ...] | None = None
    n_pairs: int | None = None

    def most(self, signal: float) -> int:
        """Pairs that the budget is divided by; ``signal`` is records times the epsilon of pairs."""
        if self.pairs is not None:
            return len(self.pairs)
        n_columns = min(len(self.chains), TUNING.columns)
        possible = n_columns * (n_columns - 1) // 2
        if self.n_pairs is not None:
            return min(self.n_pairs, possible)
        paid = TUNING.hope * signal * float(1 - TUNING.choice) / (TUNING.pays * TUNING.groups**2)
        return min(int(paid), possible, TUNING.most_pairs)


def coarse_axis(sizes: FloatArray, chain: Sequence[int] | None) -> Axis:
    """Few groups of the groups of a column, with about equal released numbers of records.

    Neighbours in the order are merged; of the groups outside it, all but the largest ones.
    """
    ordered = [] if chain is None else list(chain)
    places, n_ordered = np.zeros(len(sizes), dtype=np.int64), 0
    if ordered:
        # Empty groups belong somewhere too.
        within = sizes[ordered] + max(float(sizes.sum()), 1.0) * 1e-3 / len(sizes)
        middles = np.cumsum(within) - within / 2
        parts = np.floor(middles / within.sum() * TUNING.groups)
        places[ordered] = np.unique(parts, return_inverse=True)[1]
        n_ordered = int(places[ordered].max()) + 1
    inside = set(ordered)
    others = [group for group in range(len(sizes)) if group not in inside]
    last = max(TUNING.groups - n_ordered, 1) - 1
    for rank, group in enumerate(sorted(others, key=lambda group: -sizes[group])):
        places[group] = n_ordered + min(rank, last)
    return Axis(places, int(places.max()) + 1, n_ordered)


def add_pairs(
    records: Records,
    link: Link,
    draft: Draft,
    curvature: FloatArray,
    plan: PairPlan,
    epsilon: Fraction,
    total: float,
    random_state: Any,
) -> Fraction:
    """Add functions of pairs to a draft, one after the other.

    Parameters
    ----------
    records : Records
    link : Link
    draft : Draft
        Changed in place.
    curvature : ndarray of shape (n_outputs,)
        Sum over the records of the second derivative in each score, released.
    plan : PairPlan
    epsilon : Fraction
    total : float
        Released number of records.
    random_state : NoiseSource

    Returns
    -------
    Fraction
        What is left of epsilon, because no other pair pays.
    """
    # Privacy. By sequential composition each pair spends `each`: its choice, where there is one,
    # and its sums. That no more pairs follow is the outcome of a paid choice.
    axes = [coarse_axis(*column) for column in zip(draft.sizes, plan.chains, strict=True)]
    most = plan.most(max(total, 1.0) * float(epsilon))
    each, left = epsilon / most, epsilon
    pairs = list(plan.pairs or ())
    candidates = _candidates(draft)
    places, n_places = [axis.groups for axis in axes], [axis.n_groups for axis in axes]
    coarse = Records.grouped(records.groups, records.labels, records.counts, places, n_places)
    for number in range(most):
        coarse = replace(coarse, scores=records.at(draft.finished()).scores)
        paid = each
        if plan.pairs is None:
            choice = each * TUNING.choice
            paid, left = each - choice, left - choice
            # The expected absolute noise of a sum is about its scale.
            least = (
                None
                if plan.n_pairs is not None
                else TUNING.pays / float(paid) * min(link.reach / UNIT, 1.0)
            )
            scale = curvature * link.dispersion
            found = _choose(
                coarse, link, draft, axes, candidates, scale, least, choice, random_state
            )
            if found is None:
                break
            pairs.append(candidates.pop(found))
        _measure(coarse, link, draft, axes, pairs[number], paid, random_state)
        left -= paid
    return left


def _candidates(draft: Draft) -> list[tuple[int, int]]:
    """Pairs of the columns whose released functions matter most."""
    sizes = [mean_size(*column) for column in zip(draft.shapes, draft.sizes, strict=True)]
    kept = np.argsort(-np.array(sizes), kind="stable")[: TUNING.columns]
    return list(combinations(sorted(kept.tolist()), 2))


def _choose(
    records: Records,
    link: Link,
    draft: Draft,
    axes: Sequence[Axis],
    pairs: Sequence[tuple[int, int]],
    variance: FloatArray,
    least: float | None,
    epsilon: Fraction,
    random_state: Any,
) -> int | None:
    """Position of the pair with the most to say, or None if that is less than pays."""
    # Privacy. Released: the pair with the largest noisy score, the sum over its cells of absolute
    # sums of residuals. The residuals of a record, whole numbers, sum to at most `link.reach` units
    # and are in one cell of each pair: they move each score by at most as much, up or down: the
    # range is twice that. What is subtracted, and the score 0 of "none", follow from released
    # numbers.
    exact = _sums(
        records, pairs, link.n_outputs, lambda each: link.residuals(each.scores, each.labels)
    )
    scores = []
    for pair, table in zip(pairs, exact, strict=True):
        expected = draft.cell_shares(pair, _of(axes, pair)).reshape(-1, 1) * np.maximum(variance, 0)
        # Mean absolute sum of as many residuals that depend on nothing, and what pays.
        by_chance = np.sqrt(2 / np.pi * expected).sum() + len(table) * (least or 0.0)
        scores.append(int(np.abs(table).sum()) - round(UNIT * by_chance))
    if least is not None:
        scores.append(0)
    best = int(
        noisy_max(
            np.array(scores, dtype=np.int64),
            epsilon,
            2 * link.reach,
            random_state=random_state,
        )
    )
    return best if best < len(pairs) else None


def _measure(
    records: Records,
    link: Link,
    draft: Draft,
    axes: Sequence[Axis],
    pair: tuple[int, int],
    epsilon: Fraction,
    random_state: Any,
) -> None:
    """Add the function of a pair to the draft."""

    # Privacy. Released: the sums of residuals and of weights of the cells of a pair. A record is
    # in one cell, where its residuals and its weight, whole numbers, sum to at most `link.joint`.
    def values(block: Records) -> IntArray:
        residuals = link.residuals(block.scores, block.labels)
        return np.column_stack([residuals, link.weights(block.scores)])

    (exact,) = _sums(records, [pair], link.n_outputs + 1, values)
    noisy = discrete_laplace(exact, epsilon, link.joint, random_state=random_state) / UNIT
    variance = discrete_laplace_variance(epsilon, link.joint) / UNIT**2
    both = _of(axes, pair)
    # Weights are about what they would be if the columns were independent.
    expected = max(noisy[:, -1].sum(), 1.0) * draft.cell_shares(pair, both).ravel()
    trust = expected**2 / (expected**2 + variance)
    weights = np.maximum(expected + trust * (noisy[:, -1] - expected), TUNING.kept * expected)
    prior, updates = Prior.of_pair(*both), []
    for output, factor in enumerate(link.per_weight(draft.intercept)):
        h = np.maximum(weights * factor, TINY)
        # The mean belongs to the intercept.
        seen = noisy[:, output] - h / h.sum() * noisy[:, output].sum()
        updates.append(prior.update(seen, h, variance + link.dispersion * h))
    draft.add_pair(pair, both, updates, variance)


def _sums(
    records: Records,
    pairs: Sequence[tuple[int, int]],
    n_values: int,
    values: Callable[[Records], IntArray],
) -> list[IntArray]:
    """Exact sums of integers over the cells of each pair, (n_cells, n_values)."""
    # The sums of two columns at a time by two others hold those of four pairs.
    columns = sorted({column for pair in pairs for column in pair})
    parts = [columns[start : start + 2] for start in range(0, len(columns), 2)]
    sizes = [tuple(records.n_groups[column] for column in part) for part in parts]
    every: list[tuple[int, ...]] = [*combinations(range(len(parts)), 2)] or [(0,)]
    found = [
        np.zeros((n_values, math.prod(math.prod(sizes[part]) for part in block))) for block in every
    ]
    for block in records.blocks():
        seen = (values(block) * block.counts[:, None]).T
        # Sums of integers below 2**53 are exact in floating point.
        seen = seen.astype(np.float64, order="C")
        places = []
        for part in parts:
            place = np.zeros(len(block.counts), dtype=np.int64)
            for column in part:
                place = place * records.n_groups[column] + block.groups[:, column]
            places.append(place)
        for chosen, table in zip(every, found, strict=True):
            cells = places[chosen[0]]
            if len(chosen) > 1:
                cells = cells * math.prod(sizes[chosen[1]]) + places[chosen[1]]
            for each, sums in zip(seen, table, strict=True):
                sums += np.bincount(cells, each, len(sums))
    exact = {}
    for chosen, table in zip(every, found, strict=True):
        members = [column for part in chosen for column in parts[part]]
        shaped = table.reshape(n_values, *(records.n_groups[column] for column in members))
        for pair in combinations(members, 2):
            others = tuple(1 + members.index(column) for column in members if column not in pair)
            exact[pair] = shaped.sum(axis=others).reshape(n_values, -1).T.astype(np.int64)
    return [exact[pair] for pair in pairs]


def _of(axes: Sequence[Axis], pair: tuple[int, int]) -> tuple[Axis, Axis]:
    return axes[pair[0]], axes[pair[1]]
