"""PrivTree: halve boxes that hold many records, at public cuts, under pure epsilon-DP.

The kernel behind ``PrivTreeSynthesizer``: arrays in, arrays out, no estimator. A box is divided
while its number of records, minus a bias that grows with the depth, exceeds zero under noise. All
boxes that are divided are halved along some attributes in turn, so the cuts are public. Each final
box gets a noisy count. All boxes of one depth are treated at once.

Privacy (neighbours add or remove one record). A box without the record has the same distribution in
both tables, so the argument follows the record down its path:

* *tests*: all tests of one path together lose at most the part ``tree``, whatever their number,
  because the tested numbers fall by at least the bias per level (`converge_loss`, with sensitivity
  1: no part of a box has more records than the box, and one record changes each by 1);
* *counts*: final boxes are disjoint, a record lies in one of them: the part ``counts``.

References
----------
J. Zhang, X. Xiao, X. Xie. PrivTree: A Differentially Private Algorithm for Hierarchical
Decompositions. SIGMOD 2016.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from .._random import NoiseSource, noise_source
from .._validation import IntArray, as_integer, check_choice, exclusive_cumsum, split_epsilon
from ..mechanisms import above_threshold, discrete_laplace
from ..release import Boxes, BoxModel, Intervals
from ..tables import CountTable
from .boxes import GRID, Blocks, InRecords, certified_test, quiet_floor

# A box is divided into at most 2**_MOST_SPLIT parts: all of them are tested, empty ones too.
_MOST_SPLIT = 10
# The paper halves all attributes, and so does "paper", up to the most. On the tables of the
# benchmark the error falls up to about this number of attributes; in wide tables the number of
# boxes doubles with each further one.
_DEFAULT_SPLIT = 6


@dataclass(frozen=True)
class PrivTreeParameters(InRecords):
    """Parameters of `privtree` from the budget and the domain; all of them are public.

    Attributes
    ----------
    n_split : int
        Attributes that are halved at each level; a box gets 2**n_split parts, or fewer near the
        end.
    rate : Fraction
        The noise of a test is discrete Laplace, with this epsilon for a quarter of a record.
    delta_steps, floor_steps : int
        Bias for each level and smallest biased number, in quarters of a record.
    loss : float
        Certified bound of the privacy loss of all tests on one path.
    """

    n_split: int
    rate: Fraction
    delta_steps: int
    floor_steps: int
    loss: float


def privtree_parts(
    epsilon: Fraction,
    shape: Sequence[int],
    *,
    n_split: int | None = None,
    calibration: str = "tight",
) -> dict[str, Fraction]:
    """Divide a budget among the tests and the counts: one half each.

    Parameters
    ----------
    epsilon : Fraction
    shape : sequence of int
        Number of codes of each attribute.
    n_split, calibration
        As in `privtree`.

    Returns
    -------
    dict of str to Fraction
        Parts "tree" and "counts" that sum to ``epsilon``; "counts" alone for a domain of one cell.

    Raises
    ------
    TypeError, ValueError
        If ``n_split`` or ``calibration`` cannot be used.
    """
    single = math.prod(int(size) for size in shape) == 1
    parts = split_epsilon(epsilon, {"counts": 1} if single else {"tree": 1, "counts": 1})
    privtree_parameters(parts, shape, n_split=n_split, calibration=calibration)
    return parts


def privtree_parameters(
    parts: Mapping[str, Fraction],
    shape: Sequence[int],
    *,
    n_split: int | None = None,
    calibration: str = "tight",
) -> PrivTreeParameters:
    """Parameters of `privtree`, computed from the budget and the domain alone.

    Parameters
    ----------
    parts : mapping of str to Fraction
        Budget for "tree" and "counts".
    shape : sequence of int
        Number of codes of each attribute.
    n_split, calibration
        As in `privtree`.

    Returns
    -------
    PrivTreeParameters

    Raises
    ------
    TypeError, ValueError
        As `privtree_parts`.
    """
    check_choice(calibration, "calibration", ("tight", "paper"))
    divisible = sum(int(size) > 1 for size in shape)
    if n_split is None:
        n_split = min(divisible, _MOST_SPLIT if calibration == "paper" else _DEFAULT_SPLIT)
    elif not 1 <= as_integer(n_split, "split_attributes") <= _MOST_SPLIT:
        raise ValueError(
            f"split_attributes must lie between 1 and {_MOST_SPLIT}, got {n_split}: a box is "
            f"divided into 2**split_attributes parts, and every part costs a test and a count, "
            "empty ones too."
        )
    n_split = min(int(n_split), divisible)
    if n_split == 0:
        return PrivTreeParameters(0, Fraction(1), GRID, 0, 0.0)
    return _certified_parameters(parts["tree"], n_split, calibration)


@lru_cache(maxsize=256)
def _certified_parameters(epsilon: Fraction, n_split: int, calibration: str) -> PrivTreeParameters:
    fanout = 2**n_split

    def test(rate: float) -> tuple[int, int]:
        # The published bias, lambda ln(fanout); the floor lies as far below the threshold.
        delta = math.ceil(math.log(fanout) / rate)
        if calibration == "paper":
            return delta, -delta
        return max(delta, GRID), quiet_floor(rate, fanout)

    # The stop alone can cost the sensitivity times the rate. The published noise, which is
    # (2 fanout - 1) / (fanout - 1) times larger, is taken as the least under "paper".
    most = epsilon / GRID
    if calibration == "paper":
        most *= Fraction(fanout - 1, 2 * fanout - 1)
    return PrivTreeParameters(n_split, *certified_test(epsilon, most, test, GRID))


def privtree(
    table: CountTable,
    parts: Mapping[str, Fraction],
    *,
    n_split: int | None = None,
    calibration: str = "tight",
    random_state: Any = None,
) -> BoxModel:
    """Release boxes that cover the domain of a table, and their noisy counts.

    Parameters
    ----------
    table : CountTable
        The private table, of fewer than 2**53 records.
    parts : mapping of str to Fraction
        Budget for "tree" and "counts", as from `privtree_parts`.
    n_split : int, default=None
        Attributes that are halved at each level, at most 10; the attributes take turns. None: all,
        but at most 6 with "tight".
    calibration : {"tight", "paper"}, default="tight"
        "paper": the published noise (2b - 1) / (b - 1) / epsilon for b parts of a box. "tight": the
        least noise for which the exact worst case of the tests on a path stays within the part.
    random_state : None, int or NoiseSource, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    BoxModel
        Its intervals cover any spread of the records inside boxes.

    Raises
    ------
    TypeError, ValueError
        As `privtree_parts`; nothing has been read then.
    """
    parameters = privtree_parameters(parts, table.shape, n_split=n_split, calibration=calibration)
    noise = noise_source(random_state)
    lower, upper, exact = _decompose(table, parameters, noise)
    # Privacy. Released: the count of every box. The boxes are disjoint: one record changes one
    # count by 1, sensitivity 1. The boxes themselves are released before (sequential composition).
    counts = discrete_laplace(exact, parts["counts"], random_state=noise)
    intervals = Intervals(parts["counts"], "any")
    return BoxModel(Boxes(lower, upper), counts, table.shape, intervals)


def _decompose(
    table: CountTable, parameters: PrivTreeParameters, noise: NoiseSource
) -> tuple[IntArray, ...]:
    """Final boxes: lower, upper, exact count (private!)."""
    blocks = Blocks.whole(table.shape, table.counts)
    halvings = np.zeros_like(blocks.lower)
    leaves = []
    depth = 0
    while len(blocks):
        # Privacy. Released: which boxes are divided. One record changes the counts on one path,
        # by 1 each; the counts never grow from a box to its parts, and the certified loss of all
        # tests on the path is within the part "tree". A box of one cell is final by its public
        # shape, untested.
        tested = np.flatnonzero((blocks.sides > 1).any(axis=1))
        biased = GRID * blocks.total[tested] - depth * parameters.delta_steps
        biased = np.maximum(biased, parameters.floor_steps)
        above = above_threshold(biased, parameters.rate, 0, random_state=noise)
        split = tested[above]
        final = np.ones(len(blocks), dtype=bool)
        final[split] = False
        leaves.append((blocks.lower[final], blocks.upper[final], blocks.total[final]))
        blocks, halvings = _divided(
            blocks.select(split), halvings[split], table, parameters.n_split
        )
        depth += 1
    return tuple(np.concatenate(part) for part in zip(*leaves, strict=True))


def _divided(
    blocks: Blocks, halvings: IntArray, table: CountTable, n_split: int
) -> tuple[Blocks, IntArray]:
    """Halve boxes along the attributes whose turn it is: the parts, and how often each was halved.

    An attribute's turn comes when no other divisible one was halved less often; earlier
    attributes go first. A side of odd length has the larger half on the left.
    """
    n, d = blocks.lower.shape
    divisible = blocks.sides > 1
    turn = np.where(divisible, halvings * d + np.arange(d), np.iinfo(np.int64).max)
    axes = np.argsort(turn, axis=1, kind="stable")[:, :n_split]
    halved = np.take_along_axis(divisible, axes, axis=1)
    middle = np.take_along_axis((blocks.lower + blocks.upper + 1) // 2, axes, axis=1)

    n_parts = 1 << halved.sum(axis=1)
    first = exclusive_cumsum(n_parts)
    parent = np.repeat(np.arange(n), n_parts)
    part = np.arange(len(parent)) - first[parent]
    lower, upper, halvings = blocks.lower[parent], blocks.upper[parent], halvings[parent]
    row, block = blocks.row, blocks.block
    place = np.zeros(len(block), dtype=np.int64)
    each = np.arange(len(parent))
    # Divisible attributes come first in a turn, so the halved ones are bits 0, 1, ... of a part.
    for bit in range(axes.shape[1]):
        on = halved[parent, bit]
        axis, cut = axes[parent, bit], middle[parent, bit]
        right = (part >> bit & 1).astype(bool)
        lower[each[on & right], axis[on & right]] = cut[on & right]
        upper[each[on & ~right], axis[on & ~right]] = cut[on & ~right]
        halvings[each[on], axis[on]] += 1
        beyond = table.codes[row, axes[block, bit]] >= middle[block, bit]
        place += (beyond & halved[block, bit]) << bit
    return Blocks.counted(lower, upper, row, first[block] + place, table.counts), halvings
