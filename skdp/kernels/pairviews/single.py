"""One-way marginals: every attribute measured by itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..._random import NoiseSource, noise_source
from ..._types import FloatArray, IntArray
from ...hierarchy import project_to_simplex
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from ...rows import Counts
from .box_trees import TreePlan, measure_tree, spread
from .budget import used_attributes
from .smoothing import FEWEST_BINS, smooth_counts

__all__ = ["DIRECT", "single_shares", "single_views"]

# Attributes with fewer codes are measured cell by cell.
DIRECT = 48
# Columns smoothed together at most: a bound on memory.
_BATCH = 256


def single_views(
    table: Counts,
    epsilon: Fraction,
    first_total: int,
    total_epsilon: Fraction,
    orders: Sequence[IntArray | None],
    *,
    widths: Mapping[int, FloatArray] | None = None,
    random_state: Any = None,
) -> tuple[list[FloatArray], float]:
    """Measure every attribute by itself.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    epsilon : Fraction
    first_total : int
        The released total.
    total_epsilon : Fraction
        What it cost.
    orders : sequence of ndarray of int or None
        For each attribute its codes in an order in which neighbours are similar; None if there is
        no such order.
    widths : mapping of int to ndarray of float64, default=None
        Attributes whose counts are smooth on a scale, with the width of each code on it, nan for
        codes that are no bins. Their counts are smoothed if they are measured cell by cell.
    random_state : None, int or NoiseSource, default=None

    Returns
    -------
    views : list of ndarray of float64
        Counts of the codes, not negative, with the same sum.
    total : float
        Improved estimate of the number of records, which may be negative.
    """
    # Privacy. Released: noisy counts of the codes of each attribute. A record adds one to one
    # cell of each view. Attribute j is measured with its share of epsilon, either cell by cell
    # (sensitivity 1) or by a tree that costs it on every path; the attributes compose one after
    # the other, and their shares, fixed by the public domain, add up to 1.
    source = noise_source(random_state)
    budgets = [epsilon * share for share in single_shares(table.shape)]
    cells: dict[int, FloatArray] = {}
    precision = 1 / discrete_laplace_variance(total_epsilon)
    weighted = precision * first_total
    used = used_attributes(table.shape)
    ordered = [axis for axis in used if table.shape[axis] >= DIRECT and orders[axis] is not None]
    direct = [axis for axis in used if axis not in ordered]
    tables = table.regrouped_many([((axis,), (None,)) for axis in [*direct, *ordered]])
    for axis, exact in zip(direct, tables, strict=False):
        noisy = discrete_laplace(exact, budgets[axis], random_state=source)
        cells[axis] = noisy.astype(np.float64)
        weight = 1 / (len(exact) * discrete_laplace_variance(budgets[axis]))
        precision += weight
        weighted += weight * cells[axis].sum()
    total = weighted / precision
    whole = max(total, 1.0)
    views: list[FloatArray] = []
    for axis, size in enumerate(table.shape):
        order = orders[axis]
        if size < 2:
            views.append(np.array([whole]))
        elif axis in cells:
            views.append(project_to_simplex(cells[axis], whole))
        else:
            assert order is not None
            views.append(_ordered_view(next(tables)[order], order, budgets[axis], whole, source))
    stds = {axis: math.sqrt(discrete_laplace_variance(budgets[axis])) for axis in cells}
    _smooth(views, cells, stds, widths or {})
    return views, total


def _smooth(
    views: list[FloatArray],
    cells: Mapping[int, FloatArray],
    stds: Mapping[int, float],
    widths: Mapping[int, FloatArray],
) -> None:
    """Smooth the bins of some views; other codes, such as missing, keep their counts."""
    bins = {axis: np.flatnonzero(~np.isnan(widths[axis])) for axis in cells if axis in widths}
    # Columns with equally many bins together: this is many times faster.
    alike: dict[tuple[int, int], list[int]] = {}
    for place, axis in enumerate(bins):
        if len(bins[axis]) >= FEWEST_BINS:
            alike.setdefault((len(bins[axis]), place // _BATCH), []).append(axis)
    for axes in alike.values():
        smooth = smooth_counts(
            np.array([cells[axis][bins[axis]] for axis in axes]),
            np.array([views[axis][bins[axis]].sum() for axis in axes]),
            np.array([stds[axis] for axis in axes]),
            np.array([widths[axis][bins[axis]] for axis in axes]),
        )
        for axis, counts in zip(axes, smooth, strict=True):
            views[axis][bins[axis]] = counts


def single_shares(shape: Sequence[int]) -> list[Fraction]:
    """Shares of the attributes in proportion to the fourth root of their sizes."""
    weights = [0 if size < 2 else round(1000 * size**0.25) for size in shape]
    return [Fraction(weight, max(sum(weights), 1)) for weight in weights]


def _ordered_view(
    exact: IntArray, order: IntArray, budget: Fraction, total: float, source: NoiseSource
) -> FloatArray:
    """Measure an attribute of many ordered codes, given their counts in that order, by a tree."""
    size = len(exact)
    flat = np.ones(size)
    measured = measure_tree(exact, budget, total, [flat], _tree_plan(size), random_state=source)
    view = np.empty(size)
    view[order] = spread(measured, flat)
    return view * (total / view.sum())


def _tree_plan(size: int) -> TreePlan:
    # As many levels of up to 8 parts as are needed to separate all codes. With many levels, the
    # upper ones need a larger share, and boxes should end earlier: a range adds up the noise of
    # many boxes.
    levels = max(2, math.ceil(math.log(size, 8) - 1e-9))
    if levels > 3:
        return TreePlan(levels=levels, ratio=Fraction(6, 5), cap=8, noise_ratio=4.0)
    return TreePlan(levels=levels, ratio=Fraction(5, 2) if levels == 2 else Fraction(2), cap=8)
