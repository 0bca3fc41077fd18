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
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from ..._random import noise_source
from ..._types import IntArray
from ..._validation import dyadic_floor, split_epsilon
from ...counts import CountTable
from ...mechanisms import (
    discrete_laplace,
    discrete_laplace_variance,
)
from ..splitting import halves, medians, slots
from .release import KDTreeRelease

__all__ = ["kd_boxes", "two_step_kdtree", "two_step_parts"]

# Thresholds of the two-step tree in units of the mean noise of a box: chosen by trial on the tables
# of the benchmark.
_XI0 = 10.0

_XI1 = 5.0


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
        side, offset, begin = slots(lower, upper, axis)
        code = codes[cell, axis[block]]
        slot = offset[block] + code
        sums = np.bincount(slot, weights=y[cell], minlength=int(side.sum()))
        cut = begin + medians(sums.astype(np.float64), side)
        block = 2 * block + (code >= cut[block])
        lower, upper = halves(lower, upper, axis, cut)
    return (
        np.concatenate([part[0] for part in leaves]),
        np.concatenate([part[1] for part in leaves]),
        label,
    )
