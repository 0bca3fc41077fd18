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
from ..pairviews.attributes import Attribute, cut_mass, equal_mass_bins
from ..pairviews.box_trees import measure_tree, spread
from ..pairviews.pairs import PAIR_PLAN
from ..pairviews.single import DIRECT
from .evidence import Evidence
from .population import Population
from .posterior import posterior_mean

__all__ = ["measure_sets", "wide_sizes"]

Axes = tuple[int, ...]

# Budgets of views grow with this power of their number of cells, up to so many.
_POWER, _MOST_CELLS = 0.25, 500
# Cells are measured one by one if they are few, or if so many noise scales of records lie in one on
# average. Over attributes of many codes there must be more: ranges add up the noise of many cells.
_RECORDS, _RECORDS_FINE = 0.5, 60.0
_SMALL = 100
# Attributes of wider sets have bins if fewer noise scales of records than this lie in a cell.
_RECORDS_WIDE, _FEWEST = 1.0, 2
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
    *,
    by_cells: bool = False,
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
    by_cells : bool, default=False
        Whether the sets have equal shares and every cell is measured by itself.
    """
    # Privacy. Released: noisy counts of the cells of each set (a record lies in one of them:
    # sensitivity 1), or of the boxes of a tree, which costs its budget along every path. How a
    # set is measured follows from public sizes and the released total. The sets are measured one
    # after the other, and their shares add up to at most one.
    sizes = [math.prod(len(attributes[axis].grouped) for axis in axes) for axes in sets]
    weights = [1 if by_cells else round(1000 * min(size, _MOST_CELLS) ** _POWER) for size in sizes]
    shares = [epsilon * Fraction(weight, sum(weights)) for weight in weights]
    binned = [
        [None] * len(axes)
        if by_cells
        else _bins([attributes[axis] for axis in axes], total * float(share))
        for axes, share in zip(sets, shares, strict=True)
    ]
    asked = [
        (axes, [attributes[axis].of_codes(each) for axis, each in zip(axes, bins, strict=True)])
        for axes, bins in zip(sets, binned, strict=True)
    ]
    counted = table.regrouped_many(asked)
    for axes, exact, size, share, bins in zip(sets, counted, sizes, shares, binned, strict=True):
        model = population.smooth_margin(axes)
        pair = [attributes[axis] for axis in axes]
        boxes = not by_cells and len(axes) == 2
        if boxes and not _by_cells(pair, size, total * float(share)):
            evidence.estimated(axes, _by_boxes(exact, pair, share, total, model, source))
        else:
            noisy = discrete_laplace(exact, share, random_state=source).astype(np.float64)
            variance = discrete_laplace_variance(share)
            if exact.shape == model.shape:
                evidence.measured(axes, noisy, variance, model)
            else:
                evidence.estimated(axes, _refined(noisy, variance, bins, total * model))


def _bins(attributes: Sequence[Attribute], signal: float) -> list[IntArray | None]:
    """Bins of the groups of each attribute of a wide set, about so many that cells tell something.

    None where groups are told apart: always in pairs, which have boxes.
    """
    sizes = wide_sizes([len(each.grouped) for each in attributes], signal)
    return [
        None
        if size == len(each.grouped)
        else equal_mass_bins(cut_mass(each.grouped), each.group_order, size)
        for each, size in zip(attributes, sizes, strict=True)
    ]


def wide_sizes(sizes: Sequence[int], signal: float) -> list[int]:
    """Number of bins of each attribute of a set that is measured with this signal."""
    found = list(sizes)
    if len(sizes) < 3:
        return found
    most = max(signal / _RECORDS_WIDE, 2.0 ** len(sizes))
    while math.prod(found) > most and max(found) > _FEWEST:
        largest = found.index(max(found))
        found[largest] = max(_FEWEST, min(found[largest] - 1, math.floor(0.9 * found[largest])))
    return found


def _refined(
    noisy: FloatArray, variance: float, bins: Sequence[IntArray | None], model: FloatArray
) -> FloatArray:
    """Shares of the cells of a model whose sums over bins follow noisy counts."""
    lines = [
        np.arange(size) if each is None else each
        for each, size in zip(bins, model.shape, strict=True)
    ]
    cell = np.ravel_multi_index(np.ix_(*lines), noisy.shape)
    sums = np.bincount(cell.ravel(), weights=model.ravel(), minlength=noisy.size)
    known: FloatArray = sums.astype(np.float64, copy=False).reshape(noisy.shape)
    mean = posterior_mean(noisy, variance, known, empty=True)
    ratio = np.divide(mean, known, out=np.zeros_like(known), where=known > 0)
    found: FloatArray = model * ratio.ravel()[cell]
    # Bins that the model leaves empty are spread evenly.
    new = np.where(known > 0, 0.0, mean).ravel() / np.bincount(cell.ravel(), minlength=noisy.size)
    found += new[cell]
    return found / max(found.sum(), 1e-300)


def _by_cells(pair: Sequence[Attribute], n_cells: int, signal: float) -> bool:
    if n_cells <= _SMALL:
        return True
    fine = any(len(each.grouped) >= DIRECT for each in pair)
    return signal / n_cells >= (_RECORDS_FINE if fine else _RECORDS)


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
