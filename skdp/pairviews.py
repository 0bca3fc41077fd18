"""Measuring the views of a table: its total, single attributes, and privately chosen pairs.

In a wide sparse table no partition of the full domain can learn much, but single attributes and
pairs of attributes can be measured well. The released views are joined into a forest
(`skdp.forest`), and pairs beyond a forest by weighting a sample of it.

All that is private happens here, on integers: exact counts, integer scores, integer noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._random import NoiseSource, noise_source, sampling_generator
from ._validation import as_fraction
from .hierarchy import Blue, Tree, non_negative, project_to_simplex
from .mechanisms import (
    discrete_laplace,
    discrete_laplace_quantile,
    discrete_laplace_variance,
    noisy_max,
    top_k,
)
from .release import ErrorBars, MixtureModel, PairTable, TreeDensity, TreeModel, couple, group_sums
from .rows import Counts, CountTable, ProjectedCounts

__all__ = [
    "MOST_CLASSES",
    "TreeMeasurement",
    "TreePlan",
    "choose_forest",
    "coarse_attributes",
    "gram",
    "measure_tree",
    "pair_scores",
    "pair_views",
    "pair_views_parts",
    "view_shares",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# One selection score changes by one, up or down, with one record.
SCORE_RANGE = 2
# Bins of an attribute in the scores of pairs.
_BINS = 8
# Attributes with fewer codes are measured cell by cell.
_DIRECT = 48
# Codes that a pair table tells apart; attributes with more are grouped in it.
_GROUPS, _GROUPS_OF_TWO = 512, 2048
# The cuts are of equal mass under this much of the released view, the rest uniform.
_BY_MASS = 0.6
# Part of a leaf that is spread less boldly than the model says.
_SMOOTH = 0.03
# A leaf of a pair view departs from the model by about one part in this many.
_TRUST = 2.0
# Below this number of records times epsilon pairs are not worth their noise.
_LEAST_SIGNAL = 2000.0
# A label with at most this many codes gets a model for each of them.
MOST_CLASSES = 20
_ROWS = 200_000
_RAKING_ROUNDS = 20
_ERROR_QUERIES, _ERROR_PAIRS = 2000, 200
_ERROR_CELLS = 1 << 17
# Records that are drawn one by one to simulate the errors of a model of two attributes, and cells
# among which more of them are divided: some 300 MB at most.
MOST_ROWS_DRAWN = 1 << 22
MOST_CELLS_DRAWN = 1 << 23
_ERROR_WEIGHTS, _BATCH_WEIGHTS = 1 << 29, 1 << 22
_ERROR_SEED = 20260101
_ERROR_LEVEL = 0.95
_ERROR_CONFIDENCE = 0.95
# How often records drawn from a release are measured again. Where few records or much noise make
# few boxes, all errors of a release hang on a handful of draws (that of the total above all), and
# those of a single simulation can be small by luck.
_SIMULATIONS = 8


# --------------------------------------------------------------------------------------------------
# The budget


def pair_views_parts(
    epsilon: Fraction, shape: Sequence[int], error_share: Any
) -> dict[str, Fraction]:
    """Divide epsilon into what is fixed before a record is read.

    Parameters
    ----------
    epsilon : Fraction
    shape : sequence of int
        Number of codes of each attribute.
    error_share : number
        Share of epsilon for the error bars, in [0, 1).

    Returns
    -------
    dict of str to Fraction
        "total", "views" and, if the share is positive, "errors"; they sum to epsilon. How
        "views" is divided further depends on the released total, see `view_shares`.

    Raises
    ------
    TypeError, ValueError
        If ``error_share`` is not a number in [0, 1).
    """
    share = as_fraction(error_share, "error_share")
    if not 0 <= share < 1:
        raise ValueError(
            f"error_share must lie in [0, 1), got {error_share!r}: it is the share of epsilon that "
            "is kept for the error bars; 0.05 is usual, and 0 releases none."
        )
    rest = epsilon * (1 - share)
    total = rest * (Fraction(2, 100) if len(_used(shape)) > 2 else Fraction(5, 100))
    parts = {"total": total, "views": rest - total, "errors": epsilon * share}
    return {name: part for name, part in parts.items() if part}


def _used(shape: Sequence[int]) -> list[int]:
    """Attributes that have anything to tell: those with more than one code."""
    return [axis for axis, size in enumerate(shape) if size > 1]


def _group_limit(shape: Sequence[int]) -> int:
    n_used = len(_used(shape))
    if n_used < 2:
        return max(shape)
    return _GROUPS_OF_TWO if n_used == 2 else _GROUPS


def coarse_attributes(shape: Sequence[int]) -> list[int]:
    """Attributes whose codes pair tables group, because tables of all codes would be too large."""
    used = _used(shape)
    return [axis for axis in used if shape[axis] > _group_limit(shape)]


class ViewShares(NamedTuple):
    """Division of the part "views": exact, public given the released total."""

    single: Fraction
    choice: Fraction
    forest: Fraction
    extra: Fraction
    n_forest: int
    n_extra: int


def view_shares(
    views: Fraction,
    total: float,
    n_columns: int,
    *,
    labelled: bool = False,
    forest_only: bool = False,
) -> ViewShares:
    """Divide the part "views" between single attributes, the choice of pairs, and pairs.

    Parameters
    ----------
    views : Fraction
    total : float
        The released number of records.
    n_columns : int
        Attributes with more than one code.
    labelled : bool, default=False
        Whether all pairs contain the label.
    forest_only : bool, default=False
        Whether there are to be no pairs beyond the forest.

    Returns
    -------
    ViewShares
        Its four budgets sum to ``views``.
    """
    zero = Fraction(0)
    if n_columns < 2:
        return ViewShares(views, zero, zero, zero, 0, 0)
    if n_columns == 2:
        single = views * Fraction(10, 95)
        return ViewShares(single, zero, views - single, zero, 1, 0)
    # Shares of everything but the errors, of which the total has taken 2%.
    everything = views / Fraction(98, 100)
    records = max(total, 1.0)
    signal = records * float(everything)
    if signal < _LEAST_SIGNAL:
        return ViewShares(views, zero, zero, zero, 0, 0)
    if labelled:
        share = Fraction(4, 10)
    else:
        wanted = min(max(0.4 + 0.39 * math.log10(5e4 / signal), 0.3), 0.8)
        share = Fraction(round(1000 * wanted), 1000)
    single, choice = everything * share, everything * Fraction(4, 100)
    pairs = views - single - choice
    power = records * float(pairs)
    n_forest = int(min(max(power / 200, 1), n_columns - 1))
    left = 0 if forest_only else n_columns * (n_columns - 1) // 2 - n_forest
    n_extra = int(min(max(0.4 * (power - 300 * (n_columns - 1)) / 500, 0), left))
    extra = pairs * Fraction(4, 10) if n_extra else zero
    return ViewShares(single, choice, pairs - extra, extra, n_forest, n_extra)


# --------------------------------------------------------------------------------------------------
# Adaptive trees of boxes


@dataclass(frozen=True)
class TreePlan:
    """How a tree of boxes is measured.

    Parameters
    ----------
    levels : int
        Number of measured levels below the root.
    ratio : Fraction
        Budget of a level over that of the level above.
    cap : int
        Most children of a box.
    noise_ratio : float, default=2.0
        A box with the noisy count z is divided into ``z * budget / noise_ratio`` boxes.
    """

    levels: int
    ratio: Fraction
    cap: int
    noise_ratio: float = 2.0

    def budgets(self, epsilon: Fraction) -> list[Fraction]:
        """Budget of each level; they sum to ``epsilon``."""
        powers = [self.ratio**level for level in range(self.levels)]
        return [epsilon * power / sum(powers) for power in powers]

    def children(self, counts: Floats, budget: Fraction) -> Floats:
        """Into how many boxes, measured with ``budget``, boxes of these counts are divided."""
        return np.minimum(np.maximum(counts, 0.0) * (float(budget) / self.noise_ratio), self.cap)


PAIR_PLAN = TreePlan(levels=5, ratio=Fraction(3, 2), cap=16)


class TreeMeasurement(NamedTuple):
    """A measured tree of boxes in level order.

    Attributes
    ----------
    lower, upper : ndarray of int64, shape (n_nodes, n_axes)
    parent : ndarray of int64, shape (n_nodes,)
        -1 for the root.
    values, variances : ndarray of float64, shape (n_nodes,)
    prices : list of Fraction
        What the measurements of a node may have cost.
    price : ndarray of int64, shape (n_nodes,)
        Which of the prices each node has.
    """

    lower: Ints
    upper: Ints
    parent: Ints
    values: Floats
    variances: Floats
    prices: list[Fraction]
    price: Ints

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Whether a node has no children."""
        leaf = np.ones(len(self.parent), dtype=bool)
        leaf[self.parent[1:]] = False
        return leaf

    def estimates(self) -> Floats:
        """Consistent counts of all nodes without negative ones."""
        tree = Tree.from_parents(self.parent)
        out = np.empty(len(self.parent))
        values, variances = self.values[tree.order], self.variances[tree.order]
        out[tree.order] = non_negative(Blue(tree, variances), values)
        return out


def measure_tree(
    counts: NDArray[np.integer],
    epsilon: Fraction,
    total: float,
    masses: Sequence[Floats],
    plan: TreePlan,
    *,
    random_state: Any = None,
) -> TreeMeasurement:
    """Measure a table of one or more axes by boxes that get smaller where the counts are large.

    Parameters
    ----------
    counts : ndarray of int
        Exact and private.
    epsilon : Fraction
        What the whole tree costs.
    total : float
        The released number of records, the value of the root.
    masses : sequence of ndarray
        Released or public mass of the positions of each axis, all positive: boxes are cut
        into parts of equal mass.
    plan : TreePlan
    random_state : None, int or NoiseSource, default=None

    Returns
    -------
    TreeMeasurement
    """
    # Privacy. Released: noisy counts of boxes. A box is divided, or measured again, by its
    # released noisy count and public numbers only, so what is measured next is post-processing of
    # what was measured before. A record lies in one box of each level it reaches: boxes of one
    # level are disjoint and compose in parallel, levels one after the other. A level costs its
    # budget; a box that is not divided is measured once more with the budgets of all levels that
    # its path does not reach. Every path so costs epsilon, exactly (the prices along it add up).
    source = noise_source(random_state)
    budgets = plan.budgets(epsilon)
    sums = _prefix_sums(counts)
    reach = [np.concatenate([[0.0], np.cumsum(mass)]) for mass in masses]
    low = np.zeros((1, counts.ndim), dtype=np.int64)
    high = np.array([counts.shape], dtype=np.int64)
    lower, upper, parents = [low], [high], [np.array([-1])]
    values, variances = [np.array([float(total)])], [np.array([0.0])]
    prices: list[Fraction] = [Fraction(0)]
    price_of = [np.array([0])]
    # The root is divided whatever its count: measuring it again would tell nothing new.
    wanted = np.maximum(plan.children(np.array([float(total)]), budgets[0]), 2.0)
    divided = (high > 1).any(axis=1)
    frontier, n_nodes = np.array([0]), 1
    for level, budget in enumerate(budgets):
        if not divided.any():
            break
        frontier = frontier[divided]
        above, low, high = _divide(low[divided], high[divided], wanted[divided], reach)
        exact = _box_counts(sums, low, high)
        noisy = discrete_laplace(exact, budget, random_state=source).astype(np.float64)
        variance = np.full(len(noisy), discrete_laplace_variance(budget))
        price = np.full(len(noisy), len(prices))
        prices.append(budget)
        rest = sum(budgets[level + 1 :], Fraction(0))
        if rest:
            wanted = plan.children(noisy, budgets[level + 1])
            divided = (wanted >= 2.0) & (high - low > 1).any(axis=1)
            ends = ~divided
            again = discrete_laplace(exact[ends], rest, random_state=source)
            v, w = variance[ends], discrete_laplace_variance(rest)
            noisy[ends] = (w * noisy[ends] + v * again) / (v + w)
            variance[ends] = v * w / (v + w)
            price[ends] = len(prices)
            prices.append(budget + rest)
        else:
            divided = np.zeros(len(noisy), dtype=bool)
        lower.append(low)
        upper.append(high)
        parents.append(frontier[above])
        values.append(noisy)
        variances.append(variance)
        price_of.append(price)
        frontier = n_nodes + np.arange(len(noisy))
        n_nodes += len(noisy)
    return TreeMeasurement(
        np.concatenate(lower),
        np.concatenate(upper),
        np.concatenate(parents),
        np.concatenate(values),
        np.concatenate(variances),
        prices,
        np.concatenate(price_of),
    )


def _prefix_sums(counts: NDArray[np.integer]) -> Ints:
    sums = np.zeros([size + 1 for size in counts.shape], dtype=np.int64)
    sums[(slice(1, None),) * counts.ndim] = counts
    for axis in range(counts.ndim):
        np.cumsum(sums, axis=axis, out=sums)
    return sums


def _box_counts(sums: Ints, low: Ints, high: Ints) -> Ints:
    """Exact counts of boxes from prefix sums."""
    result = np.zeros(len(low), dtype=np.int64)
    for corner in np.ndindex(*(2,) * sums.ndim):
        at = np.where(np.array(corner, dtype=bool), high, low)
        sign = -1 if (sums.ndim - sum(corner)) % 2 else 1
        result += sign * sums[tuple(at.T)]
    return result


def _divide(
    low: Ints, high: Ints, wanted: Floats, reach: Sequence[Floats]
) -> tuple[Ints, Ints, Ints]:
    """Divide boxes into about ``wanted`` near-square boxes of equal mass.

    Every box has at least two cells and wants at least two parts; it then gets two or more.

    Returns
    -------
    above, low, high
        Position of the parent, and the new boxes; those of one parent are consecutive.
    """
    n_axes = low.shape[1]
    width = high - low
    extent = np.stack(
        [reach[axis][high[:, axis]] - reach[axis][low[:, axis]] for axis in range(n_axes)], axis=1
    )
    parts = _parts_per_axis(width, extent, wanted)
    starts, edges, numbers = [], [], []
    for axis in range(n_axes):
        cuts, number = _cuts(low[:, axis], high[:, axis], parts[:, axis], reach[axis])
        starts.append(np.cumsum(number + 1) - (number + 1))
        edges.append(cuts)
        numbers.append(number)
    children = np.prod(np.stack(numbers, axis=1), axis=1)
    above = np.repeat(np.arange(len(low)), children)
    local = np.arange(len(above)) - np.repeat(np.cumsum(children) - children, children)
    child_low = np.empty((len(above), n_axes), dtype=np.int64)
    child_high = np.empty_like(child_low)
    for axis in reversed(range(n_axes)):
        local, at = np.divmod(local, numbers[axis][above])
        at = at + starts[axis][above]
        child_low[:, axis], child_high[:, axis] = edges[axis][at], edges[axis][at + 1]
    return above, child_low, child_high


def _parts_per_axis(width: Ints, extent: Floats, wanted: Floats) -> Ints:
    """How many parts each axis of each box is cut into."""
    n_axes = width.shape[1]
    parts = np.ones_like(width)
    left = wanted.copy()
    # Axes in the order of their width: what a narrow one cannot take goes to the others.
    order = np.argsort(width, axis=1, kind="stable")
    rows = np.arange(len(width))
    for step in range(n_axes):
        axis = order[:, step]
        rest = order[:, step:]
        mean = np.exp(np.log(np.take_along_axis(extent, rest, axis=1)).mean(axis=1))
        side = left ** (1.0 / (n_axes - step)) * extent[rows, axis] / mean
        most = np.minimum(width[rows, axis], np.floor(left + 1e-6))
        whole = np.clip(np.rint(side), 1, np.maximum(most, 1.0))
        parts[rows, axis] = whole.astype(np.int64)
        left = np.maximum(left / parts[rows, axis], 1.0)
    return parts


def _cuts(low: Ints, high: Ints, parts: Ints, reach: Floats) -> tuple[Ints, Ints]:
    """Edges of equal mass, one line after the other, and the number of parts that came out."""
    box = np.repeat(np.arange(len(low)), parts - 1)
    local = np.arange(len(box)) - np.repeat(np.cumsum(parts - 1) - (parts - 1), parts - 1) + 1
    start, stop = reach[low], reach[high]
    target = start[box] + (stop - start)[box] * local / parts[box]
    cut = np.searchsorted(reach, target)
    # The nearer of the two edges round the target, and inside the box: there always is one.
    cut -= target - reach[cut - 1] < reach[np.minimum(cut, len(reach) - 1)] - target
    cut = np.clip(cut, low[box] + 1, high[box] - 1)
    everything = np.concatenate([low, cut, high])
    owner = np.concatenate([np.arange(len(low)), box, np.arange(len(low))])
    key = np.unique(owner * np.int64(len(reach)) + everything)
    number = np.bincount(key // len(reach), minlength=len(low)) - 1
    return key % len(reach), number


def _leaf_numbers(lower: Ints, upper: Ints, shape: Sequence[int]) -> Ints:
    """Number of the box that each cell lies in; the boxes are disjoint and cover the table."""
    grid = np.zeros([size + 1 for size in shape], dtype=np.int64)
    for corner in np.ndindex(*(2,) * len(shape)):
        at = np.where(np.array(corner, dtype=bool), upper, lower)
        np.add.at(grid, tuple(at.T), (-1) ** sum(corner) * np.arange(len(lower)))
    for axis in range(len(shape)):
        np.cumsum(grid, axis=axis, out=grid)
    return grid[(slice(-1),) * len(shape)]


def spread(measurement: TreeMeasurement, model: Floats, *, trust: float = 0.0) -> Floats:
    """Estimated counts of all cells: leaves of a measured tree spread in proportion to a model.

    Parameters
    ----------
    measurement : TreeMeasurement
    model : ndarray of float64
        Of the shape of the table; only proportions matter.
    trust : float, default=0.0
        If positive, the count of each leaf is drawn towards that of the model, which is expected
        to be wrong by 1 / ``trust`` of the larger of the two: the noisier the leaf, the more.

    Returns
    -------
    ndarray of float64
        Of the shape of ``model``, not negative.
    """
    leaf = np.flatnonzero(measurement.is_leaf)
    estimates = measurement.estimates()
    counts = estimates[leaf]
    number = _leaf_numbers(measurement.lower[leaf], measurement.upper[leaf], model.shape)
    mass = np.bincount(number.ravel(), weights=model.ravel(), minlength=len(leaf))
    if trust:
        # Discrete Laplace noise has heavy tails: now and then the measured count of a leaf is off
        # by all that it holds, and the sums above it are too noisy to set that right.
        modelled = mass * (estimates[0] / mass.sum())
        doubt = (np.maximum(modelled, counts) / trust) ** 2
        known = np.divide(
            doubt, doubt + measurement.variances[leaf], out=np.ones(len(leaf)), where=doubt > 0
        )
        counts = modelled + known * (counts - modelled)
    density = np.divide(counts, mass, out=np.zeros(len(leaf)), where=mass > 0)
    return density[number] * model


# --------------------------------------------------------------------------------------------------
# Single attributes


def _single_plan(size: int) -> TreePlan:
    # As many levels of up to 8 parts as it takes to tell all codes apart. Where there are many, the
    # upper ones need more, and boxes are better ended earlier: ranges add up the noise of many.
    levels = max(2, math.ceil(math.log(size, 8) - 1e-9))
    if levels > 3:
        return TreePlan(levels=levels, ratio=Fraction(6, 5), cap=8, noise_ratio=4.0)
    return TreePlan(levels=levels, ratio=Fraction(5, 2) if levels == 2 else Fraction(2), cap=8)


def _single_shares(shape: Sequence[int]) -> list[Fraction]:
    """Shares of the attributes in proportion to the fourth root of their sizes."""
    weights = [0 if size < 2 else round(1000 * size**0.25) for size in shape]
    return [Fraction(weight, max(sum(weights), 1)) for weight in weights]


def single_views(
    table: Counts,
    epsilon: Fraction,
    first_total: int,
    total_epsilon: Fraction,
    orders: Sequence[Ints | None],
    *,
    random_state: Any = None,
) -> tuple[list[Floats], float]:
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
        For each attribute its codes in an order in which neighbours are alike; None if there is
        no such order.
    random_state : None, int or NoiseSource, default=None

    Returns
    -------
    views : list of ndarray of float64
        Counts of the codes, not negative, with the same sum.
    total : float
        Better estimate of the number of records, which may be negative.
    """
    # Privacy. Released: noisy counts of the codes of each attribute. A record adds one to one
    # cell of each view. Attribute j is measured with its share of epsilon, either cell by cell
    # (sensitivity 1) or by a tree that costs it on every path; the attributes compose one after
    # the other, and their shares, fixed by the public domain, add up to 1.
    source = noise_source(random_state)
    shares = _single_shares(table.shape)
    cells: dict[int, Floats] = {}
    precision = 1 / discrete_laplace_variance(total_epsilon)
    weighted = precision * first_total
    for axis, size in enumerate(table.shape):
        if size < 2 or (size >= _DIRECT and orders[axis] is not None):
            continue
        budget = epsilon * shares[axis]
        noisy = discrete_laplace(table.dense((axis,)), budget, random_state=source)
        cells[axis] = noisy.astype(np.float64)
        weight = 1 / (size * discrete_laplace_variance(budget))
        precision += weight
        weighted += weight * cells[axis].sum()
    total = weighted / precision
    whole = max(total, 1.0)
    views: list[Floats] = []
    for axis, size in enumerate(table.shape):
        order = orders[axis]
        if size < 2:
            views.append(np.array([whole]))
        elif axis in cells:
            views.append(project_to_simplex(cells[axis], whole))
        else:
            assert order is not None
            exact = table.dense((axis,))[order]
            flat = np.ones(size)
            measured = measure_tree(
                exact,
                epsilon * shares[axis],
                whole,
                [flat],
                _single_plan(size),
                random_state=source,
            )
            view = np.empty(size)
            view[order] = spread(measured, flat)
            views.append(view * (whole / view.sum()))
    return views, total


# --------------------------------------------------------------------------------------------------
# Choosing pairs


def gram(table: Counts, bins: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Exact counts of all pairs of binned attributes at once.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    bins : sequence of ndarray of int
        Bin of each code of each attribute, 0, 1, ... without gaps.

    Returns
    -------
    counts : ndarray of int64, shape (n_bins, n_bins)
        Bins of all attributes one after the other, on both axes.
    starts : ndarray of int64, shape (n_attributes + 1,)
        Where the bins of an attribute begin.
    """
    sizes = [int(bin_of.max()) + 1 for bin_of in bins]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    result = np.zeros((starts[-1], starts[-1]), dtype=np.int64)
    if isinstance(table, ProjectedCounts):
        for i, j in itertools.combinations(range(len(sizes)), 2):
            pair = table.regrouped((i, j), (bins[i], bins[j]))
            rows, columns = slice(*starts[i : i + 2]), slice(*starts[j : j + 2])
            result[rows, columns], result[columns, rows] = pair, pair.T
        for i in range(len(sizes)):
            rows = slice(*starts[i : i + 2])
            result[rows, rows] = np.diag(table.regrouped((i,), (bins[i],)))
        return result, starts
    weights = None if (table.counts == 1).all() else table.counts.astype(np.float64)
    # Attributes two by two, so that one pass over the records counts several pairs.
    groups = [list(range(first, min(first + 2, len(sizes)))) for first in range(0, len(sizes), 2)]
    cells, lengths = [], []
    for group in groups:
        cell = np.zeros(len(table.counts), dtype=np.int64)
        for axis in group:
            cell = cell * sizes[axis] + bins[axis][table.codes[:, axis]]
        cells.append(cell.astype(np.int32))
        lengths.append(math.prod(sizes[axis] for axis in group))
    for i in range(len(groups)):
        for j in range(i + 1, len(groups)) or [i]:
            axes = groups[i] + groups[j] if i != j else groups[i]
            joined = cells[i] * lengths[j] + cells[j] if i != j else cells[i]
            length = lengths[i] * lengths[j] if i != j else lengths[i]
            # Sums of float64 are exact below 2**53.
            found = np.bincount(joined, weights=weights, minlength=length)
            joint = np.rint(found).astype(np.int64).reshape([sizes[axis] for axis in axes])
            for p, first in enumerate(axes):
                for q, second in enumerate(axes):
                    others = tuple(k for k in range(len(axes)) if k not in (p, q))
                    counts: Ints = joint.sum(axis=others)
                    block = np.diag(counts) if p == q else counts.T if p > q else counts
                    result[
                        starts[first] : starts[first + 1], starts[second] : starts[second + 1]
                    ] = block
    return result, starts


def pair_scores(counts: Ints, expected: Ints, starts: Ints) -> Ints:
    """Distance of the counts of each pair of attributes from what is expected of it.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_bins, n_bins)
        Exact and private, from `gram`.
    expected : ndarray of int64, shape (n_bins, n_bins)
        Whole numbers made of released values only.
    starts : ndarray of int64, shape (n_attributes + 1,)

    Returns
    -------
    ndarray of int64, shape (n_attributes, n_attributes)
        Sums of absolute differences; one record changes each by exactly one, up or down.
    """
    distance = np.abs(counts - expected)
    by_row = np.add.reduceat(distance, starts[:-1], axis=0)
    return np.add.reduceat(by_row, starts[:-1], axis=1)


def choose_forest(
    scores: Ints,
    n_pairs: int,
    epsilon: Fraction,
    *,
    among: Sequence[int] | None = None,
    label: int | None = None,
    random_state: Any = None,
) -> list[tuple[int, int]]:
    """Choose pairs with high scores that form no cycle.

    Parameters
    ----------
    scores : ndarray of int64, shape (n_attributes, n_attributes)
        From `pair_scores`.
    n_pairs : int
        At most the number of attributes less one.
    epsilon : Fraction
        What the whole choice costs.
    among : sequence of int, default=None
        Attributes that pairs may consist of; by default all.
    label : int, default=None
        An attribute that all pairs must contain.
    random_state : None, int or NoiseSource, default=None

    Returns
    -------
    list of tuple of two int
        Each in increasing order.
    """
    # Privacy. Released: the pairs in the order of their choice. Each is a noisy maximum over the
    # pairs that close no cycle with those chosen before, which are released. One record changes
    # every score by one up or down (the counts of one cell change, the expected ones are made of
    # released values): all changes lie in [-1, 1], the range is 2. Each choice costs
    # epsilon / n_pairs; they compose one after the other.
    source = noise_source(random_state)
    n = len(scores)
    component = np.arange(n)
    axes = np.arange(n) if among is None else np.sort(np.asarray(among))
    at_first, at_second = np.triu_indices(len(axes), 1)
    first, second = axes[at_first], axes[at_second]
    chosen: list[tuple[int, int]] = []
    for _ in range(n_pairs):
        allowed = component[first] != component[second]
        if label is not None:
            allowed &= (first == label) | (second == label)
        candidates = np.flatnonzero(allowed)
        at = noisy_max(
            scores[first[candidates], second[candidates]],
            epsilon / n_pairs,
            SCORE_RANGE,
            random_state=source,
        )
        a, b = int(first[candidates[at]]), int(second[candidates[at]])
        component[component == component[b]] = component[a]
        chosen.append((a, b))
    return chosen


def _equal_mass_bins(mass: Floats, order: Ints, n_bins: int) -> Ints:
    """Bin of each code: consecutive in the order, about equal in mass, without gaps."""
    ordered = mass[order]
    middle = (np.cumsum(ordered) - ordered / 2) / max(ordered.sum(), 1e-300)
    wanted = np.minimum((middle * n_bins).astype(np.int64), n_bins - 1)
    bins = np.empty(len(mass), dtype=np.int64)
    bins[order] = np.unique(wanted, return_inverse=True)[1].reshape(-1)
    return bins


# --------------------------------------------------------------------------------------------------
# Pair views


class _Attribute(NamedTuple):
    """What the pair views need to know of an attribute; all of it released or public."""

    mu: Floats  # probability of each code
    order: Ints  # codes in the order in which they are cut
    groups: Ints | None  # group of each code, or None for the codes themselves
    grouped: Floats  # probability of each group
    group_order: Ints  # groups in the order in which they are cut


def _attribute(view: Floats, order: Ints | None, limit: int) -> _Attribute:
    mu = view / view.sum()
    if order is None:
        # Categories have no order of their own; by size the rare ones stay together.
        order = np.argsort(-mu, kind="stable")
    if len(mu) <= limit:
        return _Attribute(mu, order, None, mu, order)
    groups = _equal_mass_bins(_cut_mass(mu), order, limit)
    grouped = group_sums(mu, groups, int(groups.max()) + 1)
    _, first = np.unique(groups[order], return_index=True)
    return _Attribute(mu, order, groups, grouped, groups[order][np.sort(first)])


def _cut_mass(mu: Floats) -> Floats:
    return _BY_MASS * mu + (1 - _BY_MASS) / len(mu)


def measure_pair(
    table: Counts,
    axes: tuple[int, int],
    attributes: Sequence[_Attribute],
    epsilon: Fraction,
    total: float,
    *,
    fit_margins: bool,
    random_state: Any = None,
) -> PairTable:
    """Measure the joint view of two attributes by a tree of boxes.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    axes : tuple of two int
    attributes : sequence of _Attribute
    epsilon : Fraction
        What the view costs.
    total : float
        The released number of records, positive.
    fit_margins : bool
        Whether the margins become those of the views of the single attributes.
    random_state : None, int or NoiseSource, default=None
    """
    a, b = (attributes[axis] for axis in axes)
    exact = table.regrouped(axes, (a.groups, b.groups))
    exact = exact[np.ix_(a.group_order, b.group_order)]
    mass = [_cut_mass(each.grouped)[each.group_order] for each in (a, b)]
    measured = measure_tree(exact, epsilon, total, mass, PAIR_PLAN, random_state=random_state)
    product = np.outer(a.grouped[a.group_order], b.grouped[b.group_order])
    model = (1 - _SMOOTH) * product + _SMOOTH * np.outer(*mass)
    counts = spread(measured, model, trust=_TRUST if fit_margins else 0.0)
    joint = np.empty_like(counts)
    joint[np.ix_(a.group_order, b.group_order)] = counts / counts.sum()
    if fit_margins:
        joint = couple(joint, a.grouped, b.grouped)
    return PairTable(axes, joint)


# --------------------------------------------------------------------------------------------------
# Pairs beyond the forest


def rake(
    rows: NDArray[np.int32],
    forest: TreeDensity,
    pairs: Sequence[PairTable],
    rounds: int = _RAKING_ROUNDS,
) -> Floats:
    """Weights of sampled records that agree with the views of all attributes and pairs.

    Parameters
    ----------
    rows : ndarray of int32, shape (n_rows, n_attributes)
    forest : TreeDensity
        Its views of single attributes are kept, and its groups tell which codes pairs join.
    pairs : sequence of PairTable
    rounds : int

    Returns
    -------
    ndarray of float64, shape (n_rows,)
        Not negative, sum 1.
    """
    grouped = [
        rows[:, axis] if axis not in forest.groups else forest.groups[axis][rows[:, axis]]
        for axis in range(rows.shape[1])
    ]
    targets: list[tuple[NDArray[np.integer], Floats]] = []
    for pair in pairs:
        a, b = pair.axes
        cell = grouped[a].astype(np.int32) * np.int32(forest.sizes[b]) + grouped[b]
        targets.append((cell, pair.table.ravel()))
    for axis, mu in enumerate(forest.marginals):
        if len(mu) > 1:
            targets.append((np.ascontiguousarray(rows[:, axis]), mu))
    weights = np.full(len(rows), 1.0 / len(rows))
    for _ in range(rounds):
        for cell, target in targets:
            found = np.bincount(cell, weights=weights, minlength=len(target))
            ratio = np.divide(target, found, out=np.zeros_like(found), where=found > 0)
            weights *= ratio[cell]
    return weights / weights.sum()


# --------------------------------------------------------------------------------------------------
# Error bars


def error_class(
    shape: Sequence[int], ordered: Sequence[bool]
) -> Iterator[tuple[tuple[int, ...], list[dict[int, Floats]]]]:
    """The public class of queries whose errors are published, a batch on the same axes at a time.

    Two attributes (or the only one) are drawn, and on each a range between two codes drawn
    uniformly; on an unordered attribute as many categories as are drawn uniformly from 1 to all,
    any of them. Drawn with a fixed seed, so that everybody knows the class.
    """
    generator = sampling_generator(_ERROR_SEED)
    used = _used(shape)
    if len(used) < 2:
        chosen: list[tuple[int, ...]] = [(axis,) for axis in used]
    else:
        first, second = np.triu_indices(len(used), 1)
        some = generator.permutation(len(first))[:_ERROR_PAIRS]
        chosen = [(used[first[i]], used[second[i]]) for i in some]
    # Long vectors of weights take time; fewer queries give a less sharp quantile.
    longest = max(sum(shape[axis] for axis in axes) for axes in chosen)
    n_queries = min(max(_ERROR_WEIGHTS // longest, _ERROR_QUERIES // 4), _ERROR_QUERIES)
    for i, axes in enumerate(chosen):
        left = n_queries // len(chosen) + (i < n_queries % len(chosen))
        batch = max(1, _BATCH_WEIGHTS // max(shape[axis] for axis in axes))
        while left > 0:
            number = min(batch, left)
            left -= number
            yield (
                axes,
                [
                    {axis: _random_weights(shape[axis], ordered[axis], generator) for axis in axes}
                    for _ in range(number)
                ],
            )


def _random_weights(size: int, ordered: bool, generator: np.random.Generator) -> Floats:
    weights = np.zeros(size)
    if ordered:
        low, high = sorted(generator.integers(0, size, size=2).tolist())
        weights[low : high + 1] = 1.0
    else:
        most = int(generator.integers(1, size + 1))
        weights[generator.permutation(size)[:most]] = 1.0
    return weights


def _exact_answers(
    table: Counts, axes: tuple[int, ...], queries: Sequence[dict[int, Floats]]
) -> Ints:
    """Exact numbers of records under queries with weights 0 and 1."""
    if math.prod(table.shape[axis] for axis in axes) <= _ERROR_CELLS:
        stacked = [np.stack([query[axis] for query in queries]) for axis in axes]
        found = stacked[0] @ table.dense(axes).astype(np.float64)
        if len(axes) == 2:
            found = np.einsum("qi,qi->q", found, stacked[1])
        return np.rint(found).astype(np.int64)
    part = table.project(axes)
    answers = np.empty(len(queries), dtype=np.int64)
    for i, query in enumerate(queries):
        inside = np.ones(len(part.counts), dtype=bool)
        for place, axis in enumerate(axes):
            inside &= query[axis][part.codes[:, place]] > 0
        answers[i] = part.counts[inside].sum()
    return answers


def publish_errors(
    table: Counts,
    model: TreeModel | MixtureModel,
    epsilon: Fraction,
    ordered: Sequence[bool],
    *,
    simulated: tuple[CountTable, Sequence[TreeModel]] | None = None,
    random_state: Any = None,
) -> ErrorBars:
    """Publish a quantile of the errors of a released model over a public class of queries.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    model : TreeModel
        Released.
    epsilon : Fraction
        What the quantile costs.
    ordered : sequence of bool
        Whether ranges of the attribute mean something.
    simulated : tuple of CountTable and sequence of TreeModel, default=None
        Records drawn from ``model`` and what was measured of them, time and again, where there are
        two attributes or fewer: their errors are those of noise alone.
    random_state : None, int or NoiseSource, default=None
    """
    # Privacy. Released: one order statistic, with noise. The model is released already and its
    # answers are rounded to integers, so that one record changes the error |answer - truth| of
    # each query by at most 1 and, where errors are multiplied by released integers of at most
    # MOST, by at most MOST. Then every order statistic changes by at most that much: as many
    # errors as before lie below a bound moved by it. Discrete Laplace noise of that sensitivity
    # costs epsilon. Which of the two scales is used follows from the domain and the released
    # total. The simulation sees nothing but the released model.
    parts_answers, parts_exact, parts_simulated = [], [], []
    n_queries = 0
    for axes, queries in error_class(table.shape, ordered):
        parts_answers.append(model.answer(queries))
        parts_exact.append(_exact_answers(table, axes, queries))
        if simulated is not None:
            drawn, models = simulated
            exact = _exact_answers(drawn, axes, queries)
            # The simulated releases take turns, so that many cost no more answers than one.
            turns = (n_queries + np.arange(len(queries))) % len(models)
            for turn, again in enumerate(models):
                mine = np.flatnonzero(turns == turn)
                if len(mine):
                    parts_simulated.append(again.answer([queries[i] for i in mine]) - exact[mine])
        n_queries += len(queries)
    answers = np.concatenate(parts_answers)
    errors = np.abs(np.rint(answers).astype(np.int64) - np.concatenate(parts_exact))
    wide = len(_used(table.shape)) > 2
    scaled = wide and max(model.total, 1.0) * float(epsilon) >= _SCALED_FROM
    sensitivity = 1
    if scaled:
        errors *= ErrorBars.factors(answers, model.total)
        sensitivity = ErrorBars.MOST
    # A few ranks higher, so that the class as a whole and not these queries alone is covered.
    slack = 2.0 * math.sqrt(_ERROR_LEVEL * (1 - _ERROR_LEVEL) / n_queries)
    rank = min(math.ceil((_ERROR_LEVEL + slack) * n_queries), n_queries)
    quantile = int(np.partition(errors, rank - 1)[rank - 1])
    noisy = int(discrete_laplace(quantile, epsilon, sensitivity, random_state=random_state))
    margin = discrete_laplace_quantile(2 * _ERROR_CONFIDENCE - 1, epsilon, sensitivity)
    reach = max(noisy + margin, 0.0)
    if simulated is not None:
        # The errors are small and mostly noise, which the published quantile with its own noise
        # often cannot resolve: twice what noise alone does, within what the quantile leaves
        # possible.
        by_noise = np.abs(np.concatenate(parts_simulated))
        noise = float(np.partition(by_noise, rank - 1)[rank - 1])
        reach = max(min(max(2 * noise, noisy - margin), reach), noise)
    kind = "two attributes" if len(_used(table.shape)) > 1 else "one attribute"
    return ErrorBars(
        level=_ERROR_LEVEL,
        reach=float(reach),
        scaled=bool(scaled),
        confidence=_ERROR_CONFIDENCE,
        simulated=simulated is not None,
        n_queries=n_queries,
        text=f"all random ranges (any subset of unordered categories) on {kind}",
    )


_SCALED_FROM = 2000.0


# --------------------------------------------------------------------------------------------------
# All together


def pair_views(
    table: Counts,
    parts: dict[str, Fraction],
    *,
    orders: Sequence[Ints | None] | None = None,
    label: int | None = None,
    random_state: Any = None,
) -> TreeModel | MixtureModel:
    """Measure the views of a table within the parts of `pair_views_parts`.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    parts : dict of str to Fraction
    orders : sequence of ndarray of int or None, default=None
        For each attribute its codes in an order in which neighbours are alike; None for
        attributes without one. By default all are in the order of their codes.
    label : int, default=None
        An attribute that everything is to be measured together with: the records of each of its
        codes get a model of their own, or, if it has more than 20 codes, all pairs of the forest
        contain it.
    random_state : None, int or NoiseSource, default=None

    Returns
    -------
    TreeModel or MixtureModel
    """
    # Privacy. The part "errors" follows the others, one after the other. Without a label all
    # records are measured together; with one, the records of each class by themselves, each class
    # within the same parts: a record lies in one class, so the classes compose in parallel. That
    # all classes are measured, and how, is public.
    source = noise_source(random_state)
    if orders is None:
        orders = [np.arange(size) for size in table.shape]
    model: TreeModel | MixtureModel
    if label is not None and 1 < table.shape[label] <= MOST_CLASSES:
        model = MixtureModel(
            [
                _measure_class(table, code, label, parts, orders, source)
                for code in range(table.shape[label])
            ]
        )
    else:
        telling = label if label is not None and table.shape[label] > 1 else None
        model = _measure(table, parts, orders, source, label=telling)
    if "errors" in parts:
        simulated = None
        if isinstance(model, TreeModel) and len(_used(table.shape)) <= 2:
            drawn = _drawn(model, source)
            if drawn is not None:
                again = [_measure(drawn, parts, orders, source) for _ in range(_SIMULATIONS)]
                simulated = drawn, again
        model.error_bars = publish_errors(
            table,
            model,
            parts["errors"],
            [order is not None for order in orders],
            simulated=simulated,
            random_state=source,
        )
    return model


def _drawn(model: TreeModel, source: NoiseSource) -> CountTable | None:
    """As many records as a released model of one or two attributes holds, drawn from it.

    Row by row up to `MOST_ROWS_DRAWN`, beyond it as a number for each cell, which has the same
    law; None where there are too many cells for that too. So memory is bounded for any total. Only
    released numbers decide.
    """
    generator = sampling_generator(source)
    number = max(round(model.total), 0)
    if number <= MOST_ROWS_DRAWN:
        return CountTable.from_codes(model.sample_codes(number, generator), model.shape)
    axes = _used(model.shape) or [0]
    shape = [model.shape[axis] for axis in axes]
    if math.prod(shape) > MOST_CELLS_DRAWN:
        return None
    weights = np.maximum(model.view(axes).ravel(), 0.0)
    counts = generator.multinomial(number, weights / weights.sum())
    cells = np.flatnonzero(counts)
    codes = np.zeros((len(cells), len(model.shape)), dtype=np.int32)
    codes[:, axes] = np.stack(np.unravel_index(cells, shape), axis=1)
    return CountTable.from_codes(codes, model.shape, counts[cells])


def _measure_class(
    table: Counts,
    code: int,
    label: int,
    parts: dict[str, Fraction],
    orders: Sequence[Ints | None],
    source: NoiseSource,
) -> TreeModel:
    """Measure the records of one class, as a table whose label has this code only.

    There are no pairs beyond the forest: synthetic rows drawn from weighted ones trained worse
    classifiers than those of the forest.
    """
    members = table.where(label, code)
    alone = [np.zeros(1, dtype=np.int64) if i == label else o for i, o in enumerate(orders)]
    part = _measure(members, parts, alone, source, forest_only=True)
    marginals = list(part.density.marginals)
    marginals[label] = np.zeros(table.shape[label])
    marginals[label][code] = 1.0
    forest = TreeDensity(marginals, part.density.edges, part.density.groups)
    return TreeModel(forest, part.total, budget=part.budget)


def _measure(
    table: Counts,
    parts: dict[str, Fraction],
    orders: Sequence[Ints | None],
    source: NoiseSource,
    *,
    label: int | None = None,
    forest_only: bool = False,
) -> TreeModel:
    """Measure a table within "total" and "views"."""
    # Privacy. The total (sensitivity 1), the views of single attributes, the choice of pairs (the
    # forest, then the extra ones), and the pair views (a record lies in each of them) compose one
    # after the other; their budgets add up to the two parts. What each is asked depends on the
    # data through released values only.
    shape = table.shape
    first_total = int(discrete_laplace(table.n, parts["total"], random_state=source))
    used = _used(shape)
    shares = view_shares(
        parts["views"],
        first_total,
        len(used),
        labelled=label is not None,
        forest_only=forest_only,
    )
    views, total = single_views(
        table, shares.single, first_total, parts["total"], orders, random_state=source
    )
    whole = max(total, 1.0)
    limit = _group_limit(shape)
    attributes = [_attribute(view, order, limit) for view, order in zip(views, orders, strict=True)]

    def measured(chosen: Sequence[tuple[int, int]], budget: Fraction) -> list[PairTable]:
        return [
            measure_pair(
                table,
                axes,
                attributes,
                budget / len(chosen),
                whole,
                fit_margins=len(used) > 2,
                random_state=source,
            )
            for axes in chosen
        ]

    groups = {axis: each.groups for axis, each in enumerate(attributes) if each.groups is not None}
    marginals = [each.mu for each in attributes]
    edges: list[PairTable] = []
    extra: list[PairTable] = []
    if len(used) == 2:
        edges = measured([(used[0], used[1])], shares.forest)
        marginals = _margins(marginals, groups, edges[0])
    elif shares.n_forest:
        n_chosen = shares.n_forest + shares.n_extra
        bins = [_equal_mass_bins(each.mu, each.order, _BINS) for each in attributes]
        counts, starts = gram(table, bins)
        binned = np.concatenate(
            [
                group_sums(each.mu, bin_of, int(bin_of.max()) + 1)
                for each, bin_of in zip(attributes, bins, strict=True)
            ]
        )
        expected = np.rint(whole * np.outer(binned, binned)).astype(np.int64)
        pairs = choose_forest(
            pair_scores(counts, expected, starts),
            shares.n_forest,
            shares.choice * shares.n_forest / n_chosen,
            among=used,
            label=label,
            random_state=source,
        )
        edges = measured(pairs, shares.forest)
    forest = TreeDensity(marginals, edges, groups)
    rows = weights = None
    if shares.n_extra:
        first, second = np.triu_indices(len(shape), 1)
        candidates = [
            (int(a), int(b))
            for a, b in zip(first, second, strict=True)
            if (a, b) not in pairs and shape[a] > 1 and shape[b] > 1
        ]
        scores = np.empty(len(candidates), dtype=np.int64)
        for i, (a, b) in enumerate(candidates):
            implied = _binned_pair(forest, a, b, bins)
            block = counts[starts[a] : starts[a + 1], starts[b] : starts[b + 1]]
            scores[i] = np.abs(block - np.rint(whole * implied).astype(np.int64)).sum()
        best = top_k(
            scores,
            shares.n_extra,
            shares.choice * shares.n_extra / n_chosen,
            SCORE_RANGE,
            random_state=source,
        )
        extra = measured([candidates[i] for i in best], shares.extra)
        rows = forest.sample(_ROWS, sampling_generator(source))
        weights = rake(rows, forest, [*edges, *extra])
    budget = {
        "total": parts["total"],
        **{k: v for k, v in shares._asdict().items() if isinstance(v, Fraction) and v},
    }
    return TreeModel(
        forest,
        total,
        extra=extra,
        rows=rows,
        row_weights=weights,
        budget={name: float(part) for name, part in budget.items()},
    )


def _margins(marginals: list[Floats], groups: dict[int, Ints], pair: PairTable) -> list[Floats]:
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


def _binned_pair(forest: TreeDensity, a: int, b: int, bins: Sequence[Ints]) -> Floats:
    """Joint probabilities of the bins of two attributes in the forest."""
    table = forest.pair(a, b)
    for position, axis in enumerate((a, b)):
        bin_of = bins[axis]
        group = forest.groups.get(axis)
        size = int(bin_of.max()) + 1
        # Bins may cut through groups: each group goes to the bins in proportion to its codes.
        share = np.zeros((forest.sizes[axis], size))
        mass = forest.grouped[axis]
        codes = np.arange(len(bin_of)) if group is None else group
        inside = np.divide(
            forest.marginals[axis], mass[codes], out=np.zeros(len(codes)), where=mass[codes] > 0
        )
        np.add.at(share, (codes, bin_of), inside)
        table = np.moveaxis(np.tensordot(share, table, axes=(0, position)), 0, position)
    return table
