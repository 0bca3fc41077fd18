"""MST and AIM as settings of this engine: what they measure with which budget.

What is chosen, and what it costs, follows the papers; noise, scores, and the population that joins
the views are those of all marginals. So a comparison is one of choices. The papers have a delta;
shares of rho become shares of epsilon by their noise: a tenth and nine tenths of rho are scales
one to three.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from ..._random import NoiseSource
from ..._types import FloatArray
from ...rows import Counts
from ..pairviews.attributes import Attribute
from ..pairviews.budget import used_attributes
from .candidates import MOST_CELLS, Candidates
from .evidence import Evidence
from .plan import Plan, Workload, plan_views
from .population import Population, Target
from .views import measure_sets

__all__ = ["PLANS", "aim_sets", "annealed_views", "planned", "told_nothing"]

Axes = tuple[int, ...]

# Ways to divide the budget and to choose views: ours, and those of two papers.
PLANS = ("adaptive", "mst", "aim")
# AIM: most rounds for each attribute, and the share of a round that its choice takes.
_ROUNDS, _CHOICE = 16, Fraction(1, 4)
# Wider sets are candidates of AIM only if its workload holds no more sets than this.
_MOST_SETS = 2000
# Sweeps of fitting after a round.
_SWEEPS = 3


def planned(
    name: str,
    views: Fraction,
    total: float,
    shape: Sequence[int],
    *,
    max_order: int,
    workload: Workload,
    labelled: bool,
) -> Plan:
    """Divide the part "views" by a named plan; the other parameters are those of `plan_views`."""
    plan = plan_views(
        views, total, shape, max_order=max_order, workload=workload, labelled=labelled
    )
    used = used_attributes(shape)
    if name == "adaptive" or len(used) < 2 or max_order < 2 or workload == {}:
        return plan
    plan = plan._replace(test=Fraction(0), first_round=Fraction(0))
    if name == "mst":
        # Single attributes, the choice of a tree, and its pairs share the budget equally.
        third = views / 3
        left = views - 2 * third
        return plan._replace(
            single=third,
            choice=third,
            views=left,
            n_first=len(used) - 1,
            rounds=[],
            most_cells=math.inf,
            by_cells=True,
        )
    # Single attributes are measured like the view of a first round each.
    single = views / _ROUNDS * (1 - _CHOICE)
    choice = (views - single) * _CHOICE
    return plan._replace(
        single=single,
        choice=choice,
        views=views - single - choice,
        n_first=0,
        rounds=[],
        most_cells=math.inf,
        by_cells=True,
        first_round=views / (_ROUNDS * len(used)),
    )


def aim_sets(workload: Workload, sizes: Sequence[int], max_order: int) -> dict[Axes, float]:
    """Sets that AIM chooses among, weighted by how much they share with those of the workload.

    Parameters
    ----------
    workload : str or mapping of tuple of int to float
        From `used_sets`; a word stands for all sets of ``max_order`` attributes.
    sizes : sequence of int
        Most groups of each attribute in a view.
    max_order : int
    """
    if isinstance(workload, Mapping):
        asked = dict(workload)
    else:
        used = used_attributes(sizes)
        order = min(max_order, len(used))
        if math.comb(len(used), order) > _MOST_SETS:
            order = 2
        asked = dict.fromkeys(combinations(used, order), 1.0) if order > 1 else {}
    # The paper's weight of a set, the attributes that it shares with each set of the workload
    # times its weight, is a sum over attributes.
    weights = np.zeros(len(sizes))
    for axes, weight in asked.items():
        weights[list(axes)] += float(weight)
    sets = {
        part
        for axes in asked
        for order in range(2, len(axes) + 1)
        for part in combinations(axes, order)
        if math.prod(sizes[axis] for axis in part) <= MOST_CELLS
    }
    found = {axes: float(weights[list(axes)].sum()) for axes in sorted(sets)}
    most = max(found.values(), default=1.0)
    return {axes: weight / most for axes, weight in found.items()}


def annealed_views(
    table: Counts,
    plan: Plan,
    attributes: Sequence[Attribute],
    total: float,
    candidates: Candidates,
    population: Population,
    evidence: Evidence,
    source: NoiseSource,
) -> list[Target]:
    """Choose and measure one view a round, as AIM does; all margins to be had.

    A round costs twice what the one before did where its view told no more than its noise. A set
    may be measured again.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    plan : Plan
        From `planned`.
    attributes : sequence of Attribute
    total : float
        The released number of records, positive.
    candidates : Candidates
    population : Population
        Fitted to what is known; it is fitted to the views too.
    evidence : Evidence
        Is added to.
    source : NoiseSource
    """
    # Privacy. Rounds follow each other: a round spends a share of its cost on the choice of one set
    # (`Candidates.best`) and the rest on its view (`measure_sets`). Costs depend on releases before
    # them alone, and none is above what is left of the budget: what is spent adds up to at most
    # "choice" and "views" on every way through, which suffices for pure epsilon with costs chosen
    # on the way. How many rounds there are follows from releases too.
    left, cost = plan.choice + plan.views, plan.first_round
    targets = evidence.targets()
    while left > 0:
        cost = left if left <= 2 * cost else cost
        choice = cost * _CHOICE
        view = cost - choice
        sets = candidates.best(population, total, (), 1, choice, view, source)
        if not sets:
            break
        left -= cost
        before = population.margin(sets[0])
        measure_sets(
            table, sets, attributes, view, total, population, evidence, source, by_cells=True
        )
        targets = evidence.targets()
        after = next(each.table for each in targets if each.axes == sets[0])
        population.fit(targets, _SWEEPS)
        if told_nothing(before, after, total, float(view), population.n_rows):
            cost *= 2
    return targets


def told_nothing(
    before: FloatArray, after: FloatArray, total: float, epsilon: float, n_rows: int
) -> bool:
    """Whether a view moved the model by no more than its noise, and chance in the model's rows."""
    moved = total * float(np.abs(after - before).sum())
    # The mean absolute value of Laplace noise is its scale.
    noise = before.size / epsilon
    by_chance = total * float(np.sqrt(2 / math.pi * before / n_rows).sum())
    return moved <= noise + by_chance
