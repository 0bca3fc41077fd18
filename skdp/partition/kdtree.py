"""Partitions by a kd-tree (DPCube), under pure epsilon-DP.

The kernels behind ``KDTreeSynthesizer``: arrays in, arrays out, no estimator.

* `two_step_kdtree` counts every cell of the domain with noise, grows a kd-tree on these noisy
  cells, and counts its boxes once more.
* `hierarchical_kdtree` grows a kd-tree on the records, a level at a time: the noisy counts of the
  values of one attribute say where a box is halved.

Either way each box is measured more than once. The measurements form a tree of sums, and the
counts returned are estimated from all of them, by the best linear unbiased estimate on that tree.
The tree follows the noise of the counts that made it. Only the noise of the last counts is
independent of it, so error bounds have to be built on these.

Privacy (neighbours add or remove one record). A record lies in one cell, in one box of every
level, and there at one value of the attribute that is counted: each of these families of counts
changes by 1 in one place. The families are released one after the other, each with its own part
of the budget; where to cut follows from what is released before.

References
----------
Y. Xiao, L. Xiong, C. Yuan. Differentially Private Data Release through Multidimensional
Partitioning. SDM 2010.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from .._random import noise_source
from .._validation import as_epsilon, dyadic_floor, split_epsilon
from ..hierarchy import Blue, Tree
from ..mechanisms import discrete_laplace, discrete_laplace_quantile, discrete_laplace_variance
from ..rows import CountTable

__all__ = [
    "MOST_CELLS",
    "KDTreeRelease",
    "Usefulness",
    "hierarchical_kdtree",
    "hierarchical_parts",
    "kd_boxes",
    "two_step_kdtree",
    "two_step_parts",
    "usefulness",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# Largest histogram of all cells: an array of 32 MB, and boxes of as many rows.
MOST_CELLS = 2**22
# Most counts of one level of a hierarchical tree, and levels.
_MOST_VALUES = 2**24
_MOST_LEVELS = 16
_DEFAULT_LEVELS = 12

# Thresholds of the two-step tree in units of the mean noise of a box: chosen by trial on the tables
# of the benchmark.
_XI0 = 10.0
_XI1 = 5.0


class KDTreeRelease(NamedTuple):
    """What a kd-tree releases.

    Attributes
    ----------
    lower, upper : ndarray of int64, shape (m, d)
        Disjoint boxes of codes that cover the domain; ``upper`` is exclusive.
    counts : ndarray of float64, shape (m,)
        Estimated counts, fused from all measurements; may be negative.
    measured : ndarray of int64, shape (m,)
        The last counts of the boxes alone. Their noise is independent of what the boxes are; that
        of the other measurements is not, because the boxes were made from them.
    epsilon : list of Fraction, length m
        Of the discrete Laplace noise in ``measured``.
    """

    lower: IntArray
    upper: IntArray
    counts: FloatArray
    measured: IntArray
    epsilon: list[Fraction]


def two_step_parts(epsilon: Fraction, cell_share: float = 0.5) -> dict[str, Fraction]:
    """Divide a budget among the cells and the boxes of a two-step kd-tree.

    Parameters
    ----------
    epsilon : Fraction
    cell_share : float, default=0.5
        In (0, 1).

    Returns
    -------
    dict of str to Fraction
        Parts "cells" and "boxes" that sum to ``epsilon``.

    Raises
    ------
    TypeError, ValueError
        If the share is no number in (0, 1).
    """
    if isinstance(cell_share, bool) or not isinstance(cell_share, numbers.Real):
        raise TypeError(f"cell_share must be a number, got {cell_share!r}.")
    if not 0 < float(cell_share) < 1:
        raise ValueError(
            f"cell_share must lie between 0 and 1, got {cell_share!r}: both the cells and the "
            "boxes of the tree need a part of epsilon. strategy='cell' counts the cells alone."
        )
    share = Fraction(repr(float(cell_share)))
    return split_epsilon(epsilon, {"cells": share, "boxes": 1 - share})


def two_step_kdtree(
    table: CountTable,
    parts: Mapping[str, Fraction],
    *,
    xi0: float | None = None,
    xi1: float | None = None,
    noise_correction: bool = True,
    random_state: Any = None,
) -> KDTreeRelease:
    """Boxes of a kd-tree on the noisy cells, counted again.

    Parameters
    ----------
    table : CountTable
        The private table, of at most `MOST_CELLS` cells.
    parts : mapping of str to Fraction
        Budget for "cells" and "boxes".
    xi0, xi1, noise_correction
        As in `kd_boxes`; by default xi0 and xi1 are 10 and 5 times the mean noise of a box,
        ``1 / parts["boxes"]``.
    random_state : None, int or NoiseSource, default=None

    Returns
    -------
    KDTreeRelease
    """
    noise = noise_source(random_state)
    # Privacy. Released: every cell with noise, empty ones too. One record changes one cell by 1:
    # sensitivity 1, the part "cells".
    cells = discrete_laplace(table.dense(), parts["cells"], random_state=noise)
    unit = float(1 / parts["boxes"])
    lower, upper, box = kd_boxes(
        cells,
        parts["cells"],
        xi0=_XI0 * unit if xi0 is None else xi0,
        xi1=_XI1 * unit if xi1 is None else xi1,
        noise_correction=noise_correction,
    )
    m = len(lower)
    # bincount adds in floats, exact for sums below 2**53.
    row = np.ravel_multi_index(tuple(table.codes.T), table.shape)
    exact = np.bincount(box[row], weights=table.counts, minlength=m).astype(np.int64)
    # Privacy. Released: the count of every box. The boxes were computed from the noisy cells
    # alone and are disjoint: one record changes one count by 1, the part "boxes".
    again = discrete_laplace(exact, parts["boxes"], random_state=noise)
    # Weights of the best linear unbiased estimate from the two measurements of a box, itself and
    # the sum of its cells. It would be unbiased if the boxes did not follow the noise of the cells.
    # They do: noise makes small boxes, whose cells then hold more of it than chance would have it.
    # So what the sums exceed the last counts by, on average over the boxes of about the same size,
    # is taken off; the total stays that of the last counts.
    number = np.bincount(box, minlength=m)
    own = discrete_laplace_variance(parts["boxes"])
    weight = own / (own + number * discrete_laplace_variance(parts["cells"]))
    excess = np.bincount(box, weights=cells.ravel(), minlength=m) - again
    size = np.where(number <= 8, number, 5 + np.frexp(number.astype(np.float64))[1])
    mean = np.bincount(size, weights=weight * excess) / np.maximum(
        np.bincount(size, weights=weight), 1e-300
    )
    counts = again + weight * (excess - mean[size])
    return KDTreeRelease(lower, upper, counts, again, [parts["boxes"]] * m)


def kd_boxes(
    cells: IntArray,
    epsilon: Fraction,
    *,
    xi0: float,
    xi1: float,
    noise_correction: bool = True,
) -> tuple[IntArray, IntArray, IntArray]:
    r"""Boxes of a kd-tree on a noisy histogram; free post-processing of it.

    A box is divided while the unevenness H of its cells, the sum of \|count - mean count\|,
    exceeds ``xi1`` or the sum of its cells exceeds ``xi0``: along its longest side, at the median
    (the cut whose two sides differ least in their noisy counts; of equal ones, the one nearest to
    the middle).

    Parameters
    ----------
    cells : ndarray of int64
        Noisy counts of all cells, one axis for each attribute.
    epsilon : Fraction
        Of the discrete Laplace noise in the cells.
    xi0, xi1 : float
        In records.
    noise_correction : bool, default=True
        Take off H what noise alone adds to it in n cells, n E\|Z\|. Without, as published, H of
        any box of many cells exceeds the threshold, and empty ones are divided down to a few cells.

    Returns
    -------
    lower, upper : ndarray of int64, shape (m, d)
    box : ndarray of int64, shape (n_cells,)
        Box of each cell, in row-major order.
    """
    shape = cells.shape
    d = len(shape)
    y = cells.ravel()
    codes = np.stack([axis.ravel() for axis in np.indices(shape, dtype=np.int32)], axis=1)
    ratio = math.exp(-float(dyadic_floor(epsilon)))
    mean_noise = 2 * ratio / (1 - ratio**2)

    lower = np.zeros((1, d), dtype=np.int64)
    upper = np.array([shape], dtype=np.int64)
    cell = np.arange(len(y))
    block = np.zeros(len(y), dtype=np.int64)
    label = np.zeros(len(y), dtype=np.int64)
    leaves: list[tuple[IntArray, IntArray]] = []
    n_leaves = 0
    while len(lower):
        n_blocks = len(lower)
        size = (upper - lower).prod(axis=1)
        total = np.bincount(block, weights=y[cell], minlength=n_blocks)
        deviation = np.abs(y[cell] - (total / size)[block])
        uneven = np.bincount(block, weights=deviation, minlength=n_blocks)
        if noise_correction:
            uneven -= size * mean_noise
        divided = (size > 1) & ((uneven > xi1) | (total > xi0))

        final = np.flatnonzero(~divided)
        leaves.append((lower[final], upper[final]))
        name = np.full(n_blocks, -1)
        name[final] = n_leaves + np.arange(len(final))
        n_leaves += len(final)
        done = ~divided[block]
        label[cell[done]] = name[block[done]]

        split = np.flatnonzero(divided)
        number = np.full(n_blocks, -1)
        number[split] = np.arange(len(split))
        cell, block = cell[~done], number[block[~done]]
        lower, upper = lower[split], upper[split]
        axis = (upper - lower).argmax(axis=1)
        side, offset, begin = _slots(lower, upper, axis)
        code = codes[cell, axis[block]]
        slot = offset[block] + code
        sums = np.bincount(slot, weights=y[cell], minlength=int(side.sum()))
        cut = begin + _medians(sums.astype(np.float64), side)
        block = 2 * block + (code >= cut[block])
        lower, upper = _halves(lower, upper, axis, cut)
    return (
        np.concatenate([part[0] for part in leaves]),
        np.concatenate([part[1] for part in leaves]),
        label,
    )


def hierarchical_parts(
    epsilon: Fraction, shape: Sequence[int], height: int | None = None
) -> dict[str, Fraction]:
    """Divide a budget evenly among the levels of a hierarchical kd-tree and its final counts.

    Parameters
    ----------
    epsilon : Fraction
    shape : sequence of int
        Number of codes of each attribute.
    height : int, default=None
        Number of levels, at most 16. None: 12, or as many as the domain can use.

    Returns
    -------
    dict of str to Fraction
        Parts "level 1" to "level height" and "counts" that sum to ``epsilon``.

    Raises
    ------
    TypeError, ValueError
        If the height is not an integer from 1 to 16, or a level of so many boxes might need too
        many counts on the longest attribute.
    """
    cells = math.prod(int(size) for size in shape)
    # More levels than bits in the number of cells would all be spent on single cells.
    useful = max((cells - 1).bit_length(), 1)
    longest = max(int(size) for size in shape)
    # Where cuts fall is not known beforehand: at worst all boxes keep the longest side.
    fitting = (_MOST_VALUES // longest).bit_length()
    if height is None:
        height = max(min(_DEFAULT_LEVELS, useful, fitting), 1)
    elif isinstance(height, bool) or not isinstance(height, numbers.Integral):
        raise TypeError(f"height must be an integer or None, got {height!r}.")
    if not 1 <= height <= _MOST_LEVELS:
        raise ValueError(
            f"height must lie between 1 and {_MOST_LEVELS}, got {height}: every level takes its "
            "part of epsilon and doubles the number of boxes."
        )
    if height > fitting:
        raise ValueError(
            f"With height={height} and an attribute of {longest:,} codes a level may need more "
            f"than {_MOST_VALUES:,} counts. Take height={max(fitting, 1)} or declare fewer bins."
            if fitting
            else f"An attribute has {longest:,} codes, more than {_MOST_VALUES:,}: a level of a "
            "kd-tree counts them all. Declare fewer bins or categories."
        )
    names = [f"level {i + 1}" for i in range(int(height))]
    return split_epsilon(epsilon, dict.fromkeys([*names, "counts"], 1))


def hierarchical_kdtree(
    table: CountTable, parts: Mapping[str, Fraction], *, random_state: Any = None
) -> KDTreeRelease:
    """Boxes of a kd-tree that spends one part of the budget a level.

    At each level every box counts, with noise, the values of the attribute along its longest
    side, and is halved at the median. These counts serve again: added up on either side of the
    cut, they measure the two parts.

    Parameters
    ----------
    table : CountTable
        The private table, of fewer than 2**53 records; domains of any size.
    parts : mapping of str to Fraction
        Budget for "level 1", "level 2", ... and "counts", as from `hierarchical_parts`.
    random_state : None, int or NoiseSource, default=None

    Returns
    -------
    KDTreeRelease
    """
    noise = noise_source(random_state)
    levels = [part for name, part in parts.items() if name != "counts"]
    d = len(table.shape)
    lower = np.zeros((1, d), dtype=np.int64)
    upper = np.array([table.shape], dtype=np.int64)
    row = np.arange(len(table.counts))
    block = np.zeros(len(row), dtype=np.int64)
    # Nodes of the tree of sums: those of the boxes, and below each final box its own count.
    node = np.zeros(1, dtype=np.int64)
    parent = [np.array([-1])]
    value = [np.zeros(1)]
    number = [np.ones(1, dtype=np.int64)]
    node_epsilon: list[Fraction | None] = [None]
    finished = []
    epsilon: list[Fraction] = []
    for depth in range(len(levels) + 1):
        n_blocks = len(lower)
        divided = (upper - lower > 1).any(axis=1) & (depth < len(levels))
        final = np.flatnonzero(~divided)
        exact = np.bincount(block, weights=table.counts[row], minlength=n_blocks)
        # All the budget that is left on the path of a box which cannot be divided any more.
        left = parts["counts"] + sum(levels[depth:], Fraction(0))
        if len(final):
            # Privacy. Released: the counts of final boxes. They are disjoint, over all levels: a
            # record changes one of them by 1. The path to it has spent the parts of the levels
            # above; with what is left that makes epsilon.
            noisy = discrete_laplace(exact[final].astype(np.int64), left, random_state=noise)
            finished.append((lower[final], upper[final], noisy))
            epsilon += [left] * len(final)
            parent.append(node[final])
            value.append(noisy.astype(np.float64))
            number.append(np.ones(len(final), dtype=np.int64))
            node_epsilon += [left] * len(final)
        split = np.flatnonzero(divided)
        if not len(split):
            break
        renumbered = np.full(n_blocks, -1)
        renumbered[split] = np.arange(len(split))
        inside = renumbered[block] >= 0
        row, block = row[inside], renumbered[block[inside]]
        lower, upper, node = lower[split], upper[split], node[split]
        axis = (upper - lower).argmax(axis=1)
        side, offset, begin = _slots(lower, upper, axis)
        code = table.codes[row, axis[block]]
        exact = np.bincount(
            offset[block] + code, weights=table.counts[row], minlength=int(side.sum())
        )
        # Privacy. Released: in every box, the count of each value of one attribute. The boxes and
        # attributes follow from what was released before; a record lies in one box of a level
        # and has one value: sensitivity 1, the part of the level.
        sums = discrete_laplace(exact.astype(np.int64), levels[depth], random_state=noise)
        width = _medians(sums.astype(np.float64), side)
        cut = begin + width
        running = np.concatenate([[0], np.cumsum(sums)])
        start = np.cumsum(side) - side
        middle = running[start + width]
        measured = np.stack([middle - running[start], running[start + side] - middle], axis=1)

        first = sum(len(each) for each in parent)
        parent.append(np.repeat(node, 2))
        value.append(measured.ravel().astype(np.float64))
        number.append(np.stack([width, side - width], axis=1).ravel())
        node_epsilon += [levels[depth]] * (2 * len(split))
        node = first + np.arange(2 * len(split))
        block = 2 * block + (code >= cut[block])
        lower, upper = _halves(lower, upper, axis, cut)
    counts = _fused(
        np.concatenate(parent), node_epsilon, np.concatenate(number), np.concatenate(value)
    )
    lower, upper, measured = (np.concatenate(part) for part in zip(*finished, strict=True))
    return KDTreeRelease(lower, upper, counts, measured, epsilon)


def _fused(
    parent: IntArray,
    node_epsilon: Sequence[Fraction | None],
    number: IntArray,
    values: FloatArray,
) -> FloatArray:
    """Best linear unbiased estimates of the leaves of a tree of sums, from all its nodes.

    The measurement of a node is the sum of ``number`` counts with noise of its epsilon.
    """
    is_leaf = np.ones(len(parent), dtype=bool)
    is_leaf[parent[1:]] = False
    box = np.full(len(parent), -1)
    box[is_leaf] = np.arange(np.count_nonzero(is_leaf))
    tree = Tree.from_parents(parent)
    known = {
        epsilon: math.inf if epsilon is None else discrete_laplace_variance(epsilon)
        for epsilon in set(node_epsilon)
    }
    variances = number * np.array([known[epsilon] for epsilon in node_epsilon])
    estimates = Blue(tree, variances[tree.order]).estimate(values[tree.order])
    counts = np.empty(np.count_nonzero(is_leaf))
    counts[box[tree.order[tree.leaves]]] = estimates[tree.leaves]
    return counts


def _slots(lower: IntArray, upper: IntArray, axis: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Codes of each box along its axis, counted one after the other.

    Returns the sides, what is added to a code to get its slot, and the first codes.
    """
    each = np.arange(len(axis))
    begin = lower[each, axis]
    side = upper[each, axis] - begin
    return side, np.cumsum(side) - side - begin, begin


def _medians(sums: FloatArray, side: IntArray) -> IntArray:
    """Codes on the left of the cut that halves the sums of each box best, from 1 to side - 1."""
    owner = np.repeat(np.arange(len(side)), side - 1)
    left = np.arange(1, len(owner) + 1) - (np.cumsum(side - 1) - (side - 1))[owner]
    start = np.cumsum(side) - side
    running = np.concatenate([[0.0], np.cumsum(sums)])
    low, high = running[start], running[start + side]
    lopsided = np.abs(2 * running[start[owner] + left] - (low + high)[owner])
    off_centre = np.abs(2 * left - side[owner])
    order = np.lexsort((off_centre, lopsided, owner))
    return left[order[np.cumsum(side - 1) - (side - 1)]]


def _halves(
    lower: IntArray, upper: IntArray, axis: IntArray, cut: IntArray
) -> tuple[IntArray, IntArray]:
    each = np.arange(len(axis))
    lower, upper = np.repeat(lower, 2, axis=0), np.repeat(upper, 2, axis=0)
    upper[2 * each, axis] = cut
    lower[2 * each + 1, axis] = cut
    return lower, upper


class Usefulness(NamedTuple):
    """Error bounds of counts over noisy cells; each holds with probability 1 - delta.

    Attributes
    ----------
    published : float
        The bound of the DPCube paper for one query, ``n_cells * log(n_cells / delta) / epsilon``.
    queries : float
        For the given number of queries together, each over any set of cells.
    every_query : float
        For all sets of cells together.
    """

    published: float
    queries: float
    every_query: float


def usefulness(
    n_cells: int, epsilon: float, delta: float = 0.05, *, n_queries: int = 1
) -> Usefulness:
    """How far off counts over noisy cells can be: the published bound, and tight ones.

    Cells are counted with discrete Laplace noise, as by ``KDTreeSynthesizer(strategy="cell")`` and
    ``GridSynthesizer(rule="identity")``; a query adds up any cells.

    Parameters
    ----------
    n_cells : int
        Cells of the domain; a query that needs only some of them has the bounds of their number.
    epsilon : float
        Of the counts.
    delta : float, default=0.05
        Probability that a bound fails.
    n_queries : int, default=1
        Queries, chosen before looking at the release, that a bound shall hold for together.

    Returns
    -------
    Usefulness

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range.

    Notes
    -----
    The published bound asks every cell to be off by at most its share of the error. In truth errors
    cancel: a sum of n noises Z exceeds ``t`` with probability at most
    ``exp(-u t) E[exp(u Z)]**n`` for any u > 0 (Chernoff), for one query on either side. For all
    sets of cells at once the worst set takes all positive noises or all negative ones, so the same
    is applied to max(Z, 0).

    References
    ----------
    Y. Xiao, L. Xiong, C. Yuan, "Differentially Private Data Release through Multidimensional
    Partitioning", SDM 2010, Corollary 41.

    Examples
    --------
    >>> bounds = usefulness(100, 0.05, 0.05)
    >>> [round(bound) for bound in bounds]
    [15202, 775, 1528]
    """
    for name, value in {"n_cells": n_cells, "n_queries": n_queries}.items():
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise TypeError(f"{name} must be an integer, got {value!r}.")
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}.")
    if isinstance(delta, bool) or not isinstance(delta, numbers.Real):
        raise TypeError(f"delta must be a number, got {delta!r}.")
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1, got {delta!r}.")
    exact = as_epsilon(epsilon)
    rate = float(dyadic_floor(exact))

    def chernoff(log_moment: Callable[[float], float], failure: float) -> float:
        def bound(share: float) -> float:
            u = share * rate
            return (n_cells * log_moment(u) + math.log(1 / failure)) / u

        found = minimize_scalar(
            bound, bounds=(1e-6, 1 - 1e-9), method="bounded", options={"xatol": 1e-6}
        )
        return float(found.fun)

    def two_sided(u: float) -> float:
        # E exp(uZ) = (cosh(rate) - 1) / (cosh(rate) - cosh(u)), in a form that does not cancel.
        return -math.log(-math.expm1(u - rate) * -math.expm1(-u - rate) / math.expm1(-rate) ** 2)

    def positive(u: float) -> float:
        # E exp(u max(Z, 0)) = tanh(rate/2) (1 / (1 - exp(u - rate)) + 1 / (exp(rate) - 1)).
        return math.log(math.tanh(rate / 2) * (-1 / math.expm1(u - rate) + 1 / math.expm1(rate)))

    # A union bound over the cells, as published but for this noise, is better for few of them.
    apart = n_cells * discrete_laplace_quantile(1 - delta / n_cells, exact)
    every = min(chernoff(positive, delta / 2), float(apart))
    return Usefulness(
        n_cells * math.log(n_cells / delta) / float(exact),
        min(chernoff(two_sided, delta / (2 * n_queries)), every),
        every,
    )
