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
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..._random import noise_source
from ..._types import FloatArray, IntArray
from ..._validation import split_epsilon
from ...counts import CountTable
from ...hierarchy import Blue, Tree
from ...mechanisms import (
    discrete_laplace,
    discrete_laplace_variance,
)
from ..splitting import halves, medians, slots
from .release import KDTreeRelease

__all__ = ["hierarchical_kdtree", "hierarchical_parts"]

# Most counts of one level of a hierarchical tree, and levels.
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
        side, offset, begin = slots(lower, upper, axis)
        code = table.codes[row, axis[block]]
        exact = np.bincount(
            offset[block] + code, weights=table.counts[row], minlength=int(side.sum())
        )
        # Privacy. Released: in every box, the count of each value of one attribute. The boxes and
        # attributes follow from what was released before; a record lies in one box of a level
        # and has one value: sensitivity 1, the part of the level.
        sums = discrete_laplace(exact.astype(np.int64), levels[depth], random_state=noise)
        width = medians(sums.astype(np.float64), side)
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
        lower, upper = halves(lower, upper, axis, cut)
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
