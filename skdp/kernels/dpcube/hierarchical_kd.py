"""Hierarchical kd-tree, of the DPCube paper: every level is measured, and decides the cuts.

With cuts in the middle instead it is a range tree of several attributes, the future work of GBLUE.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..._arrays import exclusive_cumsum
from ..._random import noise_source
from ..._types import FloatArray, IntArray
from ..._validation import as_integer, split_epsilon
from ...hierarchy import Blue, Tree
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from ...rows import CountTable
from ..splitting import Blocks, Slots, medians, renumbered
from .two_step import KDTreeRelease

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
    return KDTreeRelease(lower, upper, sums.estimates(), measured, epsilon)


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
