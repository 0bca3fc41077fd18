"""DPCube (Xiao, Xiong, Yuan) and the Hierarchical kd-tree: partitions by kd-trees, usefulness.

* `two_step`: count every cell of the domain with noise, grow a kd-tree on these noisy cells, and
  count its boxes once more. This is the strategy of DPCube.
* `hierarchical_kd`: grow a kd-tree on the records, one level at a time: the noisy counts of the
  values of one attribute determine where a box is halved. The paper compares with it.
* `usefulness`: error bounds of counts over noisy cells.

In both trees each box is measured more than once. The measurements form a tree of sums, and the
counts returned are estimated from all of them, by the best linear unbiased estimate on that tree;
with ``calibration="paper"`` they are the last counts alone. The boxes depend on the noise of the
counts that made them. Only the noise of the last counts is independent of the boxes, so error
bounds must use these.

Privacy (neighbours add or remove one record). A record lies in one cell, in one box of every
level, and there at one value of the attribute that is counted: each of these families of counts
changes by 1 in one place. The families are released one after the other, each with its own part
of the budget; where to cut depends only on earlier releases.

References
----------
Y. Xiao, L. Xiong, C. Yuan. Differentially Private Data Release through Multidimensional
Partitioning. SDM 2010.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from .._random import noise_source
from .._validation import (
    FloatArray,
    IntArray,
    as_between,
    as_epsilon,
    as_integer,
    as_level,
    as_share,
    dyadic_floor,
    exclusive_cumsum,
    integer_sums,
    split_epsilon,
)
from ..hierarchy import Blue, Tree
from ..mechanisms import discrete_laplace, discrete_laplace_quantile, discrete_laplace_variance
from ..mechanisms.laplace import noise_bound
from ..tables import CountTable
from .boxes import Blocks, Slots, medians, renumbered

__all__ = [
    "MOST_CELLS",
    "hierarchical_kdtree",
    "hierarchical_parts",
    "kd_boxes",
    "two_step_kdtree",
    "two_step_parts",
]

# ------------------------------------------------------------------------------------------------
# DPCube in two steps: a kd-tree on the noisy cells, whose boxes are counted again.


# --- the release of either kd-tree of DPCube

# Largest histogram of all cells: an array of 32 MB, and boxes of as many rows.
MOST_CELLS = 2**22


class KDTreeRelease(NamedTuple):
    """The release of a kd-tree.

    Attributes
    ----------
    lower, upper : ndarray of int64, shape (m, d)
        Disjoint boxes of codes that cover the domain; ``upper`` is exclusive.
    counts : ndarray of float64, shape (m,)
        Estimated counts, fused from all measurements; may be negative.
    measured : ndarray of int64, shape (m,)
        The last counts of the boxes alone. Their noise is independent of the boxes. That of the
        other measurements is not, because the boxes were made from them.
    epsilon : list of Fraction, length m
        Epsilon of the discrete Laplace noise in ``measured``.
    """

    lower: IntArray
    upper: IntArray
    counts: FloatArray
    measured: IntArray
    epsilon: list[Fraction]


# --- the two steps

# Thresholds in units of the mean noise of a box, tuned on the tables of the benchmark.
_XI0 = 10.0
_XI1 = 5.0


def two_step_parts(epsilon: Fraction, cell_share: float = 0.5) -> dict[str, Fraction]:
    """Divide a budget among the cells and the boxes of a two-step kd-tree.

    Parameters
    ----------
    epsilon : Fraction
    cell_share : float, default=0.5

    Returns
    -------
    dict of str to Fraction
        Parts "cells" and "boxes" that sum to ``epsilon``.

    Raises
    ------
    TypeError, ValueError
        As `skdp._validation.as_share`.
    """
    told = "both cells and boxes need a part of epsilon. strategy='cell' counts cells alone."
    share = as_share(cell_share, "cell_share", meaning=told)
    return split_epsilon(epsilon, {"cells": share, "boxes": 1 - share})


def two_step_kdtree(
    table: CountTable,
    parts: Mapping[str, Fraction],
    *,
    xi0: float | None = None,
    xi1: float | None = None,
    unevenness: str = "deviation",
    calibration: str = "tight",
    random_state: Any = None,
) -> KDTreeRelease:
    """Boxes of a kd-tree on the noisy cells, counted again.

    Parameters
    ----------
    table : CountTable
        The private table, of at most `MOST_CELLS` cells.
    parts : mapping of str to Fraction
        Budget for "cells" and "boxes".
    xi0, xi1, unevenness
        As in `kd_boxes`; by default xi0 and xi1 are 10 and 5 times the mean noise of a box,
        ``1 / parts["boxes"]``.
    calibration : {"tight", "paper"}, default="tight"
        "paper": H is not corrected for noise, and the counts are those of step 5 alone.
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
        noise_correction=calibration != "paper",
        unevenness=unevenness,
    )
    row = np.ravel_multi_index(tuple(table.codes.T), table.shape)
    exact = integer_sums(box[row], len(lower), table.counts)
    # Privacy. Released: the count of every box. The boxes were computed from the noisy cells
    # alone and are disjoint: one record changes one count by 1, the part "boxes".
    again = discrete_laplace(exact, parts["boxes"], random_state=noise)
    own = again.astype(np.float64)
    counts = own if calibration == "paper" else _fused(cells, box, again, parts)
    return KDTreeRelease(lower, upper, counts, again, [parts["boxes"]] * len(lower))


def _fused(
    cells: IntArray, box: IntArray, again: IntArray, parts: Mapping[str, Fraction]
) -> FloatArray:
    """Counts of boxes, from their own measurements and the sums of their noisy cells.

    The weights are those of the best linear unbiased estimate from the two measurements of a box.
    It would be unbiased if the boxes did not depend on the noise of the cells. But noise makes
    small boxes, whose cells then hold more noise than others. So the mean excess of the sums over
    the last counts, among boxes of about the same size, is subtracted; the total remains that of
    the last counts.
    """
    m = len(again)
    number = np.bincount(box, minlength=m)
    own = discrete_laplace_variance(parts["boxes"])
    weight = own / (own + number * discrete_laplace_variance(parts["cells"]))
    excess = np.bincount(box, weights=cells.ravel(), minlength=m) - again
    size = np.where(number <= 8, number, 5 + np.frexp(number.astype(np.float64))[1])
    mean = np.bincount(size, weights=weight * excess) / np.maximum(
        np.bincount(size, weights=weight), 1e-300
    )
    counts: FloatArray = again + weight * (excess - mean[size])
    return counts


def kd_boxes(
    cells: IntArray,
    epsilon: Fraction,
    *,
    xi0: float,
    xi1: float,
    noise_correction: bool = True,
    unevenness: str = "deviation",
) -> tuple[IntArray, IntArray, IntArray]:
    r"""Boxes of a kd-tree on a noisy histogram; free post-processing of it.

    A box is divided while the unevenness H of its cells, the sum of \|count - mean count\|,
    exceeds ``xi1`` or the sum of its cells exceeds ``xi0``. It is divided along its longest side,
    at the median: the cut whose two sides differ least in their noisy counts, and in a tie the one
    nearest to the middle.

    Parameters
    ----------
    cells : ndarray of int64
        Noisy counts of all cells, one axis for each attribute.
    epsilon : Fraction
        Epsilon of the discrete Laplace noise in the cells.
    xi0, xi1 : float
        In records.
    noise_correction : bool, default=True
        Subtract from H what noise alone adds to it in n cells, n E\|Z\|. Without it, as published,
        H of any box of many cells exceeds the threshold, and empty boxes are divided down to a few
        cells.
    unevenness : {"deviation", "entropy"}, default="deviation"
        "entropy": H is the sum of the counts times what their entropy lacks to that of an even box,
        the sum of count log(count / mean count), where negative counts are zero.

    Returns
    -------
    lower, upper : ndarray of int64, shape (m, d)
    box : ndarray of int64, shape (n_cells,)
        Box of each cell, in row-major order.
    """
    y = cells.ravel()
    codes = np.stack([axis.ravel() for axis in np.indices(cells.shape, dtype=np.int32)], axis=1)
    blocks = Blocks.whole(cells.shape, y)
    label = np.zeros(len(y), dtype=np.int64)
    # E |Z| of discrete Laplace noise Z.
    ratio = math.exp(-float(dyadic_floor(epsilon)))
    deviation = 2 * ratio / (1 - ratio**2)
    leaves: list[tuple[IntArray, IntArray]] = []
    n_leaves = 0
    while len(blocks):
        size = blocks.sides.prod(axis=1)
        by_entropy = unevenness == "entropy"
        uneven = (_entropy_lack if by_entropy else _unevenness)(blocks, size, y)
        if noise_correction:
            noise = _entropy_noise(blocks.total / size, epsilon) if by_entropy else deviation
            uneven = uneven - size * noise
        divided = (size > 1) & ((uneven > xi1) | (blocks.total > xi0))

        final = np.flatnonzero(~divided)
        leaves.append((blocks.lower[final], blocks.upper[final]))
        done = ~divided[blocks.block]
        label[blocks.row[done]] = n_leaves + renumbered(final, len(blocks))[blocks.block[done]]
        n_leaves += len(final)

        blocks = blocks.select(np.flatnonzero(divided))
        axis = blocks.sides.argmax(axis=1)
        slots = Slots.along(blocks, axis, codes)
        sums = slots.sums(y[blocks.row]).astype(np.float64)
        blocks = blocks.halved(axis, slots.begin + medians(sums, slots.side), codes, y)
    return (
        np.concatenate([part[0] for part in leaves]),
        np.concatenate([part[1] for part in leaves]),
        label,
    )


def _unevenness(blocks: Blocks, size: IntArray, y: IntArray) -> FloatArray:
    """Sum of the absolute deviations of the cells of each block from their mean."""
    deviation = np.abs(y[blocks.row] - (blocks.total / size)[blocks.block])
    total = np.bincount(blocks.block, weights=deviation, minlength=len(blocks))
    return total.astype(np.float64)


def _entropy_lack(blocks: Blocks, size: IntArray, y: IntArray) -> FloatArray:
    """Sum of x log(x / mean) over the cells of each block, x the counts that are positive."""
    x = np.maximum(y[blocks.row], 0).astype(np.float64)
    total = np.bincount(blocks.block, weights=x, minlength=len(blocks))
    ratio = x * (size / np.maximum(total, 1))[blocks.block]
    lack = np.bincount(blocks.block, weights=xlogy(x, ratio), minlength=len(blocks))
    return lack.astype(np.float64)


def _entropy_noise(mean: FloatArray, epsilon: Fraction) -> FloatArray:
    """What Laplace noise of scale b adds to the lack of entropy of one cell, within a tenth.

    Without records it is b (1 - 0.577 + log 2) / 2 = b / 1.79; with many, b**2 / mean.
    """
    b = math.sqrt(discrete_laplace_variance(epsilon) / 2)
    mean = np.maximum(mean, 0)
    noise: FloatArray = b**2 / (mean + 1.79 * b * np.exp(-0.7 * mean / b))
    return noise


# ------------------------------------------------------------------------------------------------
# Hierarchical kd-tree, of the DPCube paper: every level is measured, and decides the cuts.
#
# With cuts in the middle instead it is a range tree of several attributes, the future work of
#   GBLUE.


# Most counts of one level, and most levels.
_MOST_VALUES = 2**24
_MOST_LEVELS = 16
_DEFAULT_LEVELS = 12


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
        If the height is not an integer from 1 to 16, or if a level of so deep a tree might need too
        many counts on the longest attribute.
    """
    cells = math.prod(int(size) for size in shape)
    # More levels than bits in the number of cells would all be spent on single cells.
    useful = max((cells - 1).bit_length(), 1)
    longest = max(int(size) for size in shape)
    # The cuts are not known in advance: at worst all boxes keep the longest side.
    fitting = (_MOST_VALUES // longest).bit_length()
    if height is None:
        height = max(min(_DEFAULT_LEVELS, useful, fitting), 1)
    height = as_integer(height, "height", meaning="None takes as many levels as are useful.")
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
    table: CountTable,
    parts: Mapping[str, Fraction],
    *,
    middle: bool = False,
    calibration: str = "tight",
    random_state: Any = None,
) -> KDTreeRelease:
    """Boxes of a kd-tree that spends one part of the budget on each level.

    At each level, every box gets a noisy histogram of the attribute along its longest side, and is
    halved at the median. The same counts, added up on either side of the cut, also measure the two
    parts.

    Parameters
    ----------
    table : CountTable
        The private table, of fewer than 2**53 records; domains of any size.
    parts : mapping of str to Fraction
        Budget for "level 1", "level 2", ... and "counts", as from `hierarchical_parts`.
    middle : bool, default=False
        Halve every box in the middle, and count its two halves alone.
    calibration : {"tight", "paper"}, default="tight"
        "paper": the counts are the last ones of the boxes alone.
    random_state : None, int or NoiseSource, default=None

    Returns
    -------
    KDTreeRelease
    """
    noise = noise_source(random_state)
    levels = [part for name, part in parts.items() if name != "counts"]
    sums = _Sums()
    blocks = Blocks.whole(table.shape, table.counts)
    # The node of each block in the tree of sums.
    node = np.zeros(1, dtype=np.int64)
    finished = []
    epsilon: list[Fraction] = []
    for depth in range(len(levels) + 1):
        divided = (blocks.sides > 1).any(axis=1) & (depth < len(levels))
        final = np.flatnonzero(~divided)
        if len(final):
            # All of the remaining budget on the path of a box that cannot be divided further.
            left = parts["counts"] + sum(levels[depth:], Fraction(0))
            # Privacy. Released: the counts of final boxes. They are disjoint, over all levels: a
            # record changes one of them by 1. The path to it has spent the parts of the levels
            # above; with the rest that makes epsilon.
            noisy = discrete_laplace(blocks.total[final], left, random_state=noise)
            sums.add(node[final], noisy, np.ones_like(final), left)
            finished.append((blocks.lower[final], blocks.upper[final], noisy))
            epsilon += [left] * len(final)
        split = np.flatnonzero(divided)
        if not len(split):
            break
        blocks, node = blocks.select(split), node[split]
        axis = blocks.sides.argmax(axis=1)
        slots = Slots.along(blocks, axis, table.codes)
        exact = slots.sums(table.counts[blocks.row])
        width = slots.side // 2
        if middle:
            number = np.stack([width, slots.side - width], axis=1).ravel()
            exact = np.add.reduceat(exact, exclusive_cumsum(number))
        # Privacy. Released: in every box, the count of each value of one attribute, or of each
        # half. The boxes and attributes follow from what was released before; a record lies in one
        # box of a level and has one value: sensitivity 1, the part of the level.
        halves = noisy = discrete_laplace(exact, levels[depth], random_state=noise)
        number = np.ones_like(noisy)
        if not middle:
            width = medians(noisy.astype(np.float64), slots.side)
            number = np.stack([width, slots.side - width], axis=1).ravel()
            # The same counts, added up on either side of the cut, measure both parts.
            halves = np.add.reduceat(noisy, exclusive_cumsum(number))
        node = sums.add(np.repeat(node, 2), halves, number, levels[depth])
        blocks = blocks.halved(axis, slots.begin + width, table.codes, table.counts)
    lower, upper, measured = (np.concatenate(part) for part in zip(*finished, strict=True))
    counts = measured.astype(np.float64) if calibration == "paper" else sums.estimates()
    return KDTreeRelease(lower, upper, counts, measured, epsilon)


class _Sums:
    """Tree of sums: each box measured as a sum of counts, and below a final box its own count.

    Node 0 is the whole domain, which is not measured.
    """

    def __init__(self) -> None:
        self._parent = [np.array([-1])]
        self._value = [np.zeros(1)]
        self._number = [np.ones(1, dtype=np.int64)]
        self._epsilon: list[Fraction | None] = [None]

    def add(
        self, parent: IntArray, value: IntArray, number: IntArray, epsilon: Fraction
    ) -> IntArray:
        """Add measurements, each the sum of ``number`` counts with noise of ``epsilon``.

        Returns the nodes.
        """
        first = len(self._epsilon)
        self._parent.append(parent)
        self._value.append(value.astype(np.float64))
        self._number.append(number)
        self._epsilon += [epsilon] * len(parent)
        return first + np.arange(len(parent))

    def estimates(self) -> FloatArray:
        """Best linear unbiased estimates of the leaves, from all nodes, in order of entry."""
        parent = np.concatenate(self._parent)
        is_leaf = np.ones(len(parent), dtype=bool)
        is_leaf[parent[1:]] = False
        leaf = renumbered(np.flatnonzero(is_leaf), len(parent))
        tree = Tree.from_parents(parent)
        known = {
            epsilon: math.inf if epsilon is None else discrete_laplace_variance(epsilon)
            for epsilon in set(self._epsilon)
        }
        variances = np.concatenate(self._number) * np.array([known[each] for each in self._epsilon])
        values = np.concatenate(self._value)
        found = Blue(tree, variances[tree.order]).estimate(values[tree.order])
        counts = np.empty(np.count_nonzero(is_leaf))
        counts[leaf[tree.order[tree.leaves]]] = found[tree.leaves]
        return counts


# ------------------------------------------------------------------------------------------------
# DPCube: error bounds of counts over noisy cells, and an epsilon that bounds a belief.


class Usefulness(NamedTuple):
    """Error bounds of counts over noisy cells; each holds with probability 1 - delta.

    Attributes
    ----------
    published : float
        The bound of the DPCube paper for one query, ``n_cells * log(n_cells / delta) / epsilon``.
    queries : float
        Bound for the given number of queries together, each over any set of cells.
    every_query : float
        Bound for all sets of cells together.
    """

    published: float
    queries: float
    every_query: float


def usefulness(
    n_cells: int,
    epsilon: float,
    delta: float = 0.05,
    *,
    n_queries: int = 1,
    n_records: float | None = None,
) -> Usefulness:
    """Error bounds of counts over noisy cells: the published bound, and tight ones.

    Cells are counted with discrete Laplace noise, as by ``KDTreeSynthesizer(strategy="cell")`` and
    ``GridSynthesizer(rule="identity")``; a query adds up any cells.

    Parameters
    ----------
    n_cells : int
        Number of cells of the domain. For queries over fewer cells, give their number.
    epsilon : float
        Privacy parameter of the counts.
    delta : float, default=0.05
        Probability that a bound fails.
    n_queries : int, default=1
        Number of queries, chosen before looking at the release, for which the bound holds
        together.
    n_records : float, default=None
        Public number of records, or a bound on it: the bounds are then of *relative* counts, which
        are counts divided by it.

    Returns
    -------
    Usefulness

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range.

    Notes
    -----
    The published bound requires the error of every cell to be at most its share. In fact errors
    cancel: a sum of n noises Z exceeds ``t`` with probability at most ``exp(-u t) E[exp(u Z)]**n``
    for any u > 0 (Chernoff), for one query on either side. For all sets of cells at once, the worst
    set takes all positive noises or all negative ones, so the same is applied to max(Z, 0).

    Conversely, a relative error of e needs at least ``bound / e`` records, where ``bound`` is
    that of absolute counts: the paper's corollary for relative ones.

    References
    ----------
    Y. Xiao, L. Xiong, C. Yuan, "Differentially Private Data Release through Multidimensional
    Partitioning", SDM 2010, Corollary 41.

    Examples
    --------
    >>> bounds = usefulness(100, 0.05, 0.05)
    >>> [round(bound) for bound in bounds]
    [15202, 775, 1528]
    >>> round(usefulness(100, 0.05, 0.05, n_records=1_000_000).queries, 5)
    0.00078
    """
    as_integer(n_cells, "n_cells", 1)
    as_integer(n_queries, "n_queries", 1)
    as_level(delta, "delta")
    unit = 1.0 if n_records is None else float(as_between(n_records, "n_records", 1, 1e300))
    exact = as_epsilon(epsilon)
    rate = float(dyadic_floor(exact))
    # A union bound over the cells, as published but with this noise, is better for few cells.
    apart = n_cells * discrete_laplace_quantile(1 - delta / n_cells, exact)
    one, rates, number = np.ones(1), np.full(1, rate), np.full(1, float(n_cells))
    every = min(noise_bound(0 * one, one, rates, number, delta / 2), float(apart))
    single = noise_bound(one, one, rates, number, delta / (2 * n_queries))
    published = n_cells * math.log(n_cells / delta) / float(exact)
    return Usefulness(published / unit, min(single, every) / unit, every / unit)


class SufficientEpsilon(NamedTuple):
    """Epsilon of one release that keeps a belief below a bound, after all of them.

    Attributes
    ----------
    published : float
        That of the DPCube paper, log(after / before) / releases, for a single count each.
    presence : float
        If the belief is that a record is in the table.
    value : float
        If it is known to be there, and the belief is about its value: half of ``presence``.
    """

    published: float
    presence: float
    value: float


def sufficient_epsilon(before: float, after: float, *, n_releases: int = 1) -> SufficientEpsilon:
    """Largest epsilon with which a belief about one record rises to a given probability at most.

    Parameters
    ----------
    before : float
        Probability that an attacker gives a statement about one record beforehand, in (0, 1).
    after : float
        The largest that it may become, in (``before``, 1).
    n_releases : int, default=1
        Number of releases, each at the epsilon returned.

    Returns
    -------
    SufficientEpsilon

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range.

    Notes
    -----
    Releases of l times epsilon in all multiply the odds that a record is in the table by at most
    exp(l epsilon), and the odds of one value against others by at most exp(2 l epsilon), since a
    change of value removes a record and adds another. The paper's bound, for probabilities instead
    of odds, is looser; it holds for values where a release is one count, which such a change moves
    by one, but not for histograms, in which it moves two cells.

    References
    ----------
    Y. Xiao, L. Xiong, C. Yuan, "Differentially Private Data Release through Multidimensional
    Partitioning", SDM 2010, Theorem 33 and Corollary 31.

    Examples
    --------
    >>> [round(epsilon, 2) for epsilon in sufficient_epsilon(0.1, 0.5)]
    [1.61, 2.2, 1.1]
    """
    first, last = as_level(before, "before"), as_level(after, "after")
    if last <= first:
        raise ValueError(f"after must be larger than before={before!r}, got {after!r}.")
    number = as_integer(n_releases, "n_releases", 1)
    odds = math.log(last / first) + math.log1p(-first) - math.log1p(-last)
    return SufficientEpsilon(math.log(last / first) / number, odds / number, odds / 2 / number)
