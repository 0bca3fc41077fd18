"""DPCube in two steps: a kd-tree on the noisy cells, whose boxes are counted again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from ..._arrays import integer_sums
from ..._random import noise_source
from ..._types import FloatArray, IntArray
from ..._validation import as_share, dyadic_floor, split_epsilon
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from ...rows import CountTable
from ..splitting import Blocks, Slots, medians, renumbered

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
    noise_correction: bool = True,
    unevenness: str = "deviation",
    random_state: Any = None,
) -> KDTreeRelease:
    """Boxes of a kd-tree on the noisy cells, counted again.

    Parameters
    ----------
    table : CountTable
        The private table, of at most `MOST_CELLS` cells.
    parts : mapping of str to Fraction
        Budget for "cells" and "boxes".
    xi0, xi1, noise_correction, unevenness
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
        unevenness=unevenness,
    )
    row = np.ravel_multi_index(tuple(table.codes.T), table.shape)
    exact = integer_sums(box[row], len(lower), table.counts)
    # Privacy. Released: the count of every box. The boxes were computed from the noisy cells
    # alone and are disjoint: one record changes one count by 1, the part "boxes".
    again = discrete_laplace(exact, parts["boxes"], random_state=noise)
    counts = _fused(cells, box, again, parts)
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
