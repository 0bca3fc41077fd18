"""Sets chosen one at a time, where there is little signal: as long as one is worth its noise.

A round may find that no set is. Then it costs its choice alone, and the next one more, so that the
choice and the view are more exact. What is left in the end goes to single attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ..._random import NoiseSource
from ...rows import Counts
from ..pairviews.attributes import Attribute
from .candidates import Candidates
from .evidence import Evidence
from .plan import Plan
from .population import Population
from .schemes import told_nothing
from .views import measure_sets

__all__ = ["stepwise_views"]

# Sweeps of fitting after a round.
_SWEEPS = 3


def stepwise_views(
    table: Counts,
    plan: Plan,
    attributes: Sequence[Attribute],
    total: float,
    candidates: Candidates,
    population: Population,
    evidence: Evidence,
    taken: Sequence[tuple[int, ...]],
    source: NoiseSource,
) -> Plan:
    """Choose and measure one set a round; the plan, with what was spent and what is left.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    plan : Plan
        With ``first_round``.
    attributes : sequence of Attribute
    total : float
        The released number of records, positive.
    candidates : Candidates
    population : Population
        Fitted to what is known; it is fitted to the views too.
    evidence : Evidence
        Is added to.
    taken : sequence of tuple of int
        Sets that need no view.
    source : NoiseSource
    """
    # Privacy. Rounds follow each other. A round spends a share of its cost on the choice of one
    # set or of none (`Candidates.best`), and the rest on the view of the set (`measure_sets`);
    # after "none" the rest is still there. Costs depend on releases before them alone, and none
    # is above what is left of "choice" and "views": what is spent and what is returned add up to
    # these on every way through, which suffices for pure epsilon with costs chosen on the way.
    left, cost = plan.choice + plan.views, plan.first_round
    share = plan.choice / left
    spent = {"choice": Fraction(0), "views": Fraction(0)}
    known = list(taken)
    while left and candidates.any(known):
        last = left <= 2 * cost
        cost = left if last else cost
        choice = cost * share
        sets = candidates.best(
            population, total, known, 1, choice, cost - choice, source, or_none=True
        )
        spent["choice"] += choice
        left -= choice
        if sets:
            view = cost - choice
            spent["views"] += view
            left -= view
            known += sets
            before = population.margin(sets[0])
            measure_sets(table, sets, attributes, view, total, population, evidence, source)
            targets = evidence.targets()
            after = next(each.table for each in targets if each.axes == sets[0])
            population.fit(targets, _SWEEPS)
        if last:
            break
        if not sets or told_nothing(before, after, total, float(view), population.n_rows):
            cost *= 2
    return plan._replace(choice=spent["choice"], views=spent["views"], again=left)
