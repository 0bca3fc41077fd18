"""A table of two columns and nothing else: boxes as small as the counts over the noise allow.

Whether a box is divided, into how many parts, and whether these are final follows from its noisy
count and the budget that is left. Where a box holds enough records for all of its cells, they are
measured at once; elsewhere a small part of what is left pays for the next level, and boxes that
are not divided get all of the rest. So dense tables are measured cell by cell, nearly with the
whole budget, and sparse ones in boxes that are large where there is nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median_filter

from ..._arrays import running_sums
from ..._random import noise_source
from ..._types import BoolArray, FloatArray, IntArray
from ...hierarchy import Tree
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from .box_trees import TreeMeasurement, combined, joined, root, spread, without_impossible
from .boxes import box_counts, divide, leaf_numbers, prefix_sums
from .structured import fitted

__all__ = ["cutting_mass", "map_counts", "measure_map"]

# Share of what is left for the boxes of a level that are not final.
_SHARE = Fraction(1, 7)
# A part of a box should hold at least this many records, in units of the scale of its noise.
_RECORDS = 3.0
# Parts of a box on the way to many more, and of the whole table at least.
_PARTS, _FIRST = 16, 36
# Cells of a box that are measured at once: of more, the sums of ranges would be too noisy.
_CELLS = 256
# The view of a column alone is believed where it is off by this many standard deviations of a cell;
# where it was measured by boxes, a cell has about twice the noise.
_APART = 8.0
# Independence is believed in as far as no level of boxes is further from it than noise alone is, in
# standard deviations of its mean square; entirely up to the first, not at all from the second.
_BELIEVED, _REFUTED = 1.0, 3.0


class _Wish(NamedTuple):
    """Into how many parts boxes should be divided (inf: all cells), and whether these are final."""

    parts: FloatArray
    final: BoolArray

    @classmethod
    def of(
        cls, count: FloatArray, cells: IntArray, budget: Fraction, *, least: float = 0.0
    ) -> _Wish:
        """From noisy counts and what is left of the budget; fewer than 2 parts: do not divide."""
        noise = math.sqrt(discrete_laplace_variance(budget) / 2)
        affordable = np.maximum(count, 0.0) / max(_RECORDS * noise, 1e-300)
        dense = affordable >= cells
        most = np.minimum(np.maximum(affordable, least), cells)
        steps = np.ceil(np.log(np.maximum(most, 1.0)) / math.log(_PARTS))
        steps = np.maximum(np.where(dense, np.where(cells > _CELLS, 2, 1), steps), 1)
        parts = np.where(dense & (steps == 1), np.inf, np.maximum(most ** (1 / steps), 2.0))
        return cls(np.where(most >= 2, parts, 1.0), steps == 1)


def measure_map(
    counts: NDArray[np.integer],
    epsilon: Fraction,
    total: float,
    variance: float,
    masses: Sequence[FloatArray] | None = None,
    *,
    random_state: Any = None,
) -> TreeMeasurement:
    """Measure a table by boxes whose number, size and budget follow from noisy counts.

    Parameters
    ----------
    counts : ndarray of int
        Exact and private; at least two cells.
    epsilon : Fraction
        Cost of all boxes together.
    total : float
        The released number of records, the value of the root.
    variance : float
        Variance of its noise.
    masses : sequence of ndarray, default=None
        Released or public mass of the codes of each axis, all positive: boxes that are not divided
        into cells are cut into parts of equal mass. None: of equal width.
    random_state : None, int or NoiseSource, default=None

    Returns
    -------
    TreeMeasurement
    """
    # Privacy. Released: noisy counts of boxes. How a box is divided, and with which budget its
    # parts are measured, follows from its released count and public numbers only. Boxes of a level
    # are disjoint: they compose in parallel, levels one after the other. Of what is left on a path,
    # final boxes take all and others `_SHARE`; of these, a box that is not divided is measured
    # once more with all of the rest. So every path costs exactly epsilon.
    source = noise_source(random_state)
    sums = prefix_sums(counts)
    masses = masses or [np.full(size, 1 / size) for size in counts.shape]
    edges = [running_sums(mass) for mass in masses]
    level = root(counts.shape, total, variance)
    levels, prices, left = [level], [Fraction(0)], epsilon
    wish = _Wish.of(level.values, _cells(level.lower, level.upper), left, least=_FIRST)
    divided = np.ones(1, dtype=bool)
    n_above = 0
    while divided.any():
        above, low, high = _divide(
            level.lower[divided], level.upper[divided], wish.parts[divided], edges
        )
        parent = n_above + np.flatnonzero(divided)[above]
        last = wish.final[divided][above]
        n_above += len(level.parent)
        exact = box_counts(sums, low, high)
        noisy, variances = np.empty(len(low)), np.empty(len(low))
        price = np.where(last, len(prices), len(prices) + 1)
        spent = left * _SHARE
        prices += [left, spent]
        for these, budget in ((last, left), (~last, spent)):
            noisy[these] = discrete_laplace(exact[these], budget, random_state=source)
            variances[these] = discrete_laplace_variance(budget)
        left -= spent
        wish = _Wish.of(noisy, _cells(low, high), left)
        divided = ~last & (wish.parts >= 2)
        ends = ~last & ~divided
        again = discrete_laplace(exact[ends], left, random_state=source)
        noisy[ends], variances[ends] = combined(
            noisy[ends], variances[ends], again, discrete_laplace_variance(left)
        )
        price[ends] = len(prices)
        prices.append(spent + left)
        level = level._replace(
            lower=low, upper=high, parent=parent, values=noisy, variances=variances, price=price
        )
        levels.append(level)
    return joined(levels, prices)


def _divide(
    low: IntArray, high: IntArray, parts: FloatArray, edges: Sequence[FloatArray]
) -> tuple[IntArray, IntArray, IntArray]:
    """Divide some boxes into all of their cells and the others into parts of equal mass."""
    even = [np.arange(len(each), dtype=np.float64) for each in edges]
    found = []
    for these, cumulated in ((np.isinf(parts), even), (np.isfinite(parts), edges)):
        at = np.flatnonzero(these)
        if len(at):
            above, lower, upper = divide(low[at], high[at], parts[at], cumulated)
            found.append((at[above], lower, upper))
    above, lower, upper = (np.concatenate(each) for each in zip(*found, strict=True))
    return above, lower, upper


def _cells(low: IntArray, high: IntArray) -> IntArray:
    return np.prod(high - low, axis=1)


def map_counts(
    measured: TreeMeasurement,
    allowed: BoolArray,
    views: Sequence[tuple[FloatArray, float]] = (),
) -> tuple[FloatArray, float]:
    """Estimated counts of all cells, not negative, and of all records.

    The count of a box is spread in proportion to the rows and columns of the map of evenly filled
    boxes, and to codes that stand out in the views of single columns. If the product of rows and
    columns explains all boxes, it replaces the map: it has far less noise.

    Parameters
    ----------
    measured : TreeMeasurement
        Of a table of two axes.
    allowed : ndarray of bool
        Of the shape of the table: the cells that records can have.
    views : sequence of tuple of ndarray and float, default=()
        Released view of each axis, of any sum, and the standard deviation of a count in it.

    Returns
    -------
    counts : ndarray of float64
        Of the shape of the table; 0 where not allowed.
    total : float
        Unbiased; may be negative.
    """
    if not allowed.all():
        measured = without_impossible(measured, allowed)
    total = measured.total()
    even = spread(measured, allowed.astype(np.float64))
    rows, columns = even.sum(axis=1), even.sum(axis=0)
    if not even.any():
        return allowed / allowed.sum(), total
    if views:
        rows, columns = _sharpened(rows, *views[0]), _sharpened(columns, *views[1])
    product = np.outer(rows, columns) / even.sum()
    if not allowed.all():
        rows, columns = rows / rows.sum(), columns / columns.sum()
        product = fitted(product, allowed, rows, columns) * even.sum()
    seen = _refuted(measured, product)
    belief = min(max((_REFUTED - seen) / (_REFUTED - _BELIEVED), 0.0), 1.0)
    return belief * product + (1 - belief) * spread(measured, product), total


def cutting_mass(view: FloatArray, noise: float) -> FloatArray:
    """Half of it even, half on codes that stand out from those around, so that cuts part them."""
    around = median_filter(view, 5, mode="mirror")
    apart = np.where(view - 2 * around > _APART * noise, view - around, 0.0)
    even = np.full(len(view), 1 / len(view))
    return even if not apart.any() else (even + apart / apart.sum()) / 2


def _sharpened(margin: FloatArray, view: FloatArray, noise: float) -> FloatArray:
    """A margin with the counts of single codes that stand out in a view, and the same sum."""
    view = view * (margin.sum() / view.sum())
    sharp = np.where(view - margin > _APART * noise, view, margin)
    return np.asarray(sharp * (margin.sum() / sharp.sum()))


def _refuted(measured: TreeMeasurement, model: FloatArray) -> float:
    """How far a level of boxes is from a model beyond noise, in standard deviations; the most."""
    leaf = np.flatnonzero(measured.is_leaf)
    number = leaf_numbers(measured.lower[leaf], measured.upper[leaf], model.shape)
    expected = np.zeros(len(measured.parent))
    expected[leaf] = np.bincount(number.ravel(), weights=model.ravel(), minlength=len(leaf))
    tree = Tree.from_parents(measured.parent)
    expected = tree.sum_up(expected[tree.order])
    noise = measured.variances[tree.order]
    known = noise > 0
    squares = (measured.values[tree.order] - expected)[known] ** 2 / noise[known]
    # Squares of Laplace noise of variance 1 have the variance 5.
    depth = tree.depth[known]
    number = np.bincount(depth)
    excess = np.bincount(depth, weights=squares - 1) / np.sqrt(5 * np.maximum(number, 1))
    return float(excess.max(initial=-1.0))
