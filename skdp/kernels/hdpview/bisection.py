r"""HDPView: recursive bisection of a table of counts by aggregation error, under pure epsilon-DP.

The kernel behind ``HDPViewSynthesizer``: arrays in, arrays out, no estimator. Blocks are boxes
of cells. A block is bisected while its aggregation error AE (the sum over its cells of
\|count - mean count\|), minus a bias that grows with the depth, exceeds a threshold under noise.
The cut is chosen by a noisy maximum among all cuts of all attributes. Each final block gets a noisy
count. All blocks of one depth are treated at once.

Privacy (neighbours add or remove one record). A block without the record has the same distribution
in both tables, so the argument follows the record down its path:

* *converge tests*: all tests of one path together lose at most `converge_loss`, whatever their
  number, because the tested errors fall by at least the bias per level;
* *cuts*: the first ``kappa`` of a path lose ``parts["cut"] / kappa`` each; deeper ones are drawn
  from public randomness and lose nothing;
* *counts*: final blocks are disjoint, a record lies in one of them: ``parts["counts"]``, and with
  the "tight" calibration also what the cuts of this path did not use: a block after t private cuts
  has ``(kappa - t) parts["cut"] / kappa`` more. How many cuts a path has is released before.

The three add up to the budget on every path. Exact counts are read only to be tested, scored or
released under that noise; `HDPViewParameters` are computed from the budget and the domain alone.

References
----------
F. Kato, T. Takahashi, S. Takagi, Y. Cao, S. P. Liew, M. Yoshikawa. HDPView: Differentially
Private Materialized View for Exploring High Dimensional Relational Data. PVLDB 15(9), 2022.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ..._arrays import exclusive_cumsum, integer_sums
from ..._random import NoiseSource, noise_source
from ..._types import IntArray
from ...mechanisms import above_threshold, discrete_laplace
from ...release import LeafErrorBound
from ...rows import CountTable
from ..splitting import Blocks
from .cuts import choose_cuts
from .errors import cells_of, error_steps
from .parameters import Calibration, HDPViewParameters, hdpview_parameters

__all__ = ["HDPViewRelease", "bisect", "hdpview"]


class HDPViewRelease(NamedTuple):
    """The release of `hdpview`; every array has one entry for each box.

    Attributes
    ----------
    lower, upper : ndarray of int64, shape (m, d)
        Disjoint boxes of codes that cover the domain; ``upper`` is exclusive.
    counts : ndarray of int64, shape (m,)
        Counts with discrete Laplace noise; may be negative.
    depth : ndarray of int64, shape (m,)
        Number of deltas subtracted from the error of the box, at least 0.
    test_number : ndarray of int64, shape (m,)
        Number of the converge test that stopped the box, from 1 in the order of the run; 0 for a
        box of one cell, which is not tested.
    epsilon : list of Fraction, length m
        Of the noise of each count.
    parameters : HDPViewParameters
    """

    lower: IntArray
    upper: IntArray
    counts: IntArray
    depth: IntArray
    test_number: IntArray
    epsilon: list[Fraction]
    parameters: HDPViewParameters

    def leaf_errors(self) -> LeafErrorBound:
        """Upper bounds on the aggregation errors of the boxes, from the stop tests, at no cost."""
        public = self.parameters
        # The tested error is the nearest multiple of the step.
        return LeafErrorBound(
            public.theta + public.step / 2,
            public.delta,
            public.lam,
            self.depth,
            self.test_number,
            public.step,
        )


def hdpview(
    table: CountTable,
    parts: Mapping[str, Fraction],
    *,
    calibration: str | Calibration = "tight",
    random_state: Any = None,
) -> HDPViewRelease:
    r"""Release boxes that cover the domain of a table, and their noisy counts.

    Parameters
    ----------
    table : CountTable
        The private table, of fewer than 2**53 records.
    parts : mapping of str to Fraction
        Budget for "converge", "cut" and "counts", as from `hdpview_parts`.
    calibration : {"tight", "paper"}, default="tight"
        "paper": noise scale, bias, floor and number of private cuts as published, and the score
        of a cut is minus the sum of the two aggregation errors that it leaves. "tight": the noise
        is as small as the exact worst case allows, the floor is set independently of the bias, and
        the score of a cut is its imbalance, \|S_left - S n_left / n\|: how many records the uniform
        block puts on the wrong side. In wide sparse tables all cuts leave about the same
        aggregation error, twice the records, and only the imbalance distinguishes them; it also has
        half the range, and needs no pass over the cells.
    random_state : None, int or NoiseSource, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    HDPViewRelease

    Raises
    ------
    ValueError
        As `hdpview_parts`; nothing has been read then.
    """
    parameters = hdpview_parameters(parts, table.shape, calibration=calibration)
    noise = noise_source(random_state)
    epsilon_cut = parts["cut"] / parameters.kappa if parameters.kappa else Fraction(0)
    lower, upper, exact, depth, test_number, n_cuts = bisect(table, parameters, epsilon_cut, noise)
    # Privacy. Released: the count of every box. The boxes are disjoint: one record changes one
    # count by 1, sensitivity 1. The boxes and the number of private cuts that led to each are
    # released before (sequential composition); on the path of a record, cuts and count together
    # cost at most kappa times `epsilon_cut` and the part "counts".
    unused = epsilon_cut if parameters.reuse else Fraction(0)
    budgets = [
        parts["counts"] + (parameters.kappa - cuts) * unused for cuts in range(parameters.kappa + 1)
    ]
    counts = np.empty_like(exact)
    for cuts in np.unique(n_cuts).tolist():
        members = np.flatnonzero(n_cuts == cuts)
        counts[members] = discrete_laplace(exact[members], budgets[cuts], random_state=noise)
    epsilon = [budgets[cuts] for cuts in n_cuts.tolist()]
    return HDPViewRelease(lower, upper, counts, depth, test_number, epsilon, parameters)


def bisect(
    table: CountTable, parameters: HDPViewParameters, epsilon_cut: Fraction, noise: NoiseSource
) -> tuple[IntArray, ...]:
    """Final blocks: lower, upper, exact count (private!), deltas, test number, private cuts."""
    columns = [np.ascontiguousarray(column) for column in table.codes.T]
    blocks = Blocks.whole(table.shape, table.counts)
    leaves = []
    depth = n_tests = 0
    while len(blocks):
        level = parameters.root_level + depth
        cells = cells_of(blocks.sides)[0]
        # A block of one cell has no error and no cut: its public shape makes it final, untested.
        tested = np.flatnonzero(cells > 1)
        # Privacy. Released: which blocks are cut. See `converge_loss`: the errors never grow from
        # a block to its parts, rounding keeps that, and one record moves them by at most
        # SENSITIVITY steps; the certified loss of all tests on a path is within its part.
        biased = _errors(blocks, cells, table.counts) - level * parameters.delta_steps
        biased = np.maximum(biased, parameters.floor_steps)
        above = above_threshold(
            biased[tested], parameters.rate, parameters.theta_steps, random_state=noise
        )
        test_number = np.zeros(len(blocks), dtype=np.int64)
        test_number[tested] = n_tests + 1 + np.arange(len(tested))
        n_tests += len(tested)
        split = tested[above]
        final = np.ones(len(blocks), dtype=bool)
        final[split] = False
        times = np.full(np.count_nonzero(final), max(level, 0))
        leaves.append(
            (
                blocks.lower[final],
                blocks.upper[final],
                blocks.total[final],
                times,
                test_number[final],
                np.full(len(times), min(depth, parameters.kappa)),
            )
        )

        blocks = blocks.select(split)
        if depth < parameters.kappa:
            chosen = choose_cuts(
                blocks, columns, table.counts, parameters.score, epsilon_cut, noise
            )
        else:
            chosen = noise.below((blocks.sides - 1).sum(axis=1))
        axis, code = _place(blocks, chosen)
        blocks = blocks.halved(axis, code, table.codes, table.counts)
        depth += 1
    return tuple(np.concatenate(part) for part in zip(*leaves, strict=True))


def _errors(blocks: Blocks, cells: IntArray, counts: IntArray) -> IntArray:
    """Aggregation error of each block, in grid steps."""
    x = counts[blocks.row]
    heavy = x > (blocks.total // cells)[blocks.block]
    return error_steps(
        integer_sums(blocks.block[heavy], len(blocks), x[heavy]),
        np.bincount(blocks.block[heavy], minlength=len(blocks)),
        blocks.total,
        cells,
    )


def _place(blocks: Blocks, chosen: IntArray) -> tuple[IntArray, IntArray]:
    """Attribute of the chosen cut of each block, and the code at which its right part begins."""
    cuts = blocks.sides - 1
    # The attribute is the last one whose cuts begin at or before the chosen one: attributes without
    # cuts begin where the next one does.
    first = exclusive_cumsum(cuts, axis=1)
    axis = (first <= chosen[:, None]).sum(axis=1) - 1
    each = np.arange(len(blocks))
    return axis, blocks.lower[each, axis] + chosen - first[each, axis] + 1
