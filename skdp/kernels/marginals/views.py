"""Views of two and more attributes, measured cell by cell or by trees of boxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ..._random import NoiseSource
from ..._types import FloatArray, IntArray
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from ...rows import Counts
from ..pairviews.attributes import Attribute, cut_mass
from ..pairviews.box_trees import measure_tree, spread
from ..pairviews.pairs import PAIR_PLAN
from .evidence import Evidence
from .population import Population

__all__ = ["measure_sets"]

Axes = tuple[int, ...]

# Budgets of views grow with this power of their number of cells.
_POWER = 0.33
# Cells are measured one by one if so many noise scales of records lie in one on average; in large
# tables there must be more, because boxes follow the records.
_RECORDS, _RECORDS_LARGE = 2.0, 20.0
_SMALL, _LARGE = 100, 512
# Weight of the smoothing term mixed into the model that spreads a box over its cells, and the
# assumed precision of this model.
_SMOOTH, _TRUST = 0.03, 2.0


def measure_sets(
    table: Counts,
    sets: Sequence[Axes],
    attributes: Sequence[Attribute],
    epsilon: Fraction,
    total: float,
    population: Population,
    evidence: Evidence,
    source: NoiseSource,
) -> None:
    """Measure views, and add what they tell to the evidence.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    sets : sequence of tuple of int
        Attributes of each view.
    attributes : sequence of Attribute
    epsilon : Fraction
        Cost of all views together.
    total : float
        The released number of records, positive.
    population : Population
        The model so far.
    evidence : Evidence
        Is added to.
    source : NoiseSource
    """
    # Privacy. Released: noisy counts of the cells of each set (a record lies in one of them:
    # sensitivity 1), or of the boxes of a tree, which costs its budget along every path. How a
    # set is measured follows from public sizes and the released total. The sets are measured one
    # after the other, and their shares add up to at most one.
    sizes = [math.prod(len(attributes[axis].grouped) for axis in axes) for axes in sets]
    weights = [round(1000 * size**_POWER) for size in sizes]
    groups = [[attributes[axis].groups for axis in axes] for axes in sets]
    counted = table.regrouped_many(list(zip(sets, groups, strict=True)))
    for axes, exact, size, weight in zip(sets, counted, sizes, weights, strict=True):
        share = epsilon * Fraction(weight, sum(weights))
        model = population.margin(axes)
        if len(axes) == 2 and not _by_cells(size, total * float(share)):
            pair = [attributes[axis] for axis in axes]
            evidence.estimated(axes, _by_boxes(exact, pair, share, total, model, source))
        else:
            noisy = discrete_laplace(exact, share, random_state=source).astype(np.float64)
            evidence.measured(axes, noisy, discrete_laplace_variance(share), model)


def _by_cells(n_cells: int, signal: float) -> bool:
    if n_cells <= _SMALL:
        return True
    return signal / n_cells >= (_RECORDS if n_cells <= _LARGE else _RECORDS_LARGE)


def _by_boxes(
    exact: IntArray,
    pair: Sequence[Attribute],
    epsilon: Fraction,
    total: float,
    model: FloatArray,
    source: NoiseSource,
) -> FloatArray:
    """Shares of the cells of a pair, from a tree of boxes."""
    ordered = np.ix_(*(each.group_order for each in pair))
    masses = [cut_mass(each.grouped)[each.group_order] for each in pair]
    measured = measure_tree(exact[ordered], epsilon, total, masses, PAIR_PLAN, random_state=source)
    shape = (1 - _SMOOTH) * model[ordered] + _SMOOTH * np.outer(*masses)
    counts = spread(measured, shape, trust=_TRUST)
    found = np.empty_like(counts)
    found[ordered] = counts / max(counts.sum(), 1e-300)
    return found
