"""HDPView: recursive bisection of a table by aggregation error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from .._random import NoiseSource, noise_source
from .._validation import (
    CodeArray,
    IntArray,
    as_between,
    as_share,
    check_choice,
    exclusive_cumsum,
    integer_sums,
    running_sums,
    split_epsilon,
)
from ..mechanisms import above_threshold, discrete_laplace, noisy_max
from ..release import Boxes, BoxModel, Intervals, LeafErrorBound
from ..tables import CountTable
from .boxes import (
    GRID,
    Blocks,
    InRecords,
    StopTest,
    certified_test,
    inner_cuts,
    quiet_floor,
    split_gain,
)

# ------------------------------------------------------------------------------------------------
# HDPView: how the budget is divided, and the public parameters that follow from it.


# One record moves an aggregation error by less than 2, hence its rounding by at most this.
SENSITIVITY = 2 * GRID
# Largest domain that may be divided down to single cells.
_MOST_SINGLE_CELLS = 2**22


@dataclass(frozen=True)
class Calibration:
    """Public choices that turn a budget and a domain into `HDPViewParameters`; all keep privacy."""

    # Shares of the budget.
    converge: Fraction
    cut: Fraction
    counts: Fraction
    # delta = ln(alpha) * noise scale.
    alpha: Fraction
    # Most private cuts on a path.
    most_cuts: int | None
    # Level of the root: how many deltas are subtracted from its error. If it is negative, the first
    # cuts are made even in sparse tables, and delta matters less further down.
    root_level: int
    # Score by which a cut is chosen, a key of SCORES.
    score: str
    # Noise, bias and floor by the published formulas, not from the exact worst case.
    published: bool = False
    # Whether counts get what the cuts of a shallow path did not use.
    reuse: bool = False
    # Private cuts on a path, in multiples of log2(number of cells).
    beta: Fraction = Fraction(6, 5)


def published(alpha: Any = 1.6, beta: Any = 1.2, gamma: Any = 0.9, ratio: Any = 0.9) -> Calibration:
    """The paper's calibration with its four hyperparameters, by default as in its experiments.

    Parameters
    ----------
    alpha : number from 1.01 to 1000
    beta : number from 0.01 to 100
    gamma : number from 0.001 to 0.999
        The tests' share of what the blocks cost; the cuts have the rest.
    ratio : number from 0.001 to 0.999
        The blocks' share of epsilon; the counts have the rest.

    Raises
    ------
    TypeError, ValueError
        If one is no number, or out of range.
    """
    tests, blocks = as_share(gamma, "gamma"), as_share(ratio, "ratio")
    # The noise scale grows as 1 / (alpha - 1).
    rise = as_between(alpha, "alpha", Fraction(101, 100), 1000)
    depth = as_between(beta, "beta", Fraction(1, 100), 100)
    shares = (blocks * tests, blocks * (1 - tests), 1 - blocks)
    return Calibration(*shares, rise, None, 1, "error", published=True, beta=depth)


CALIBRATIONS = {
    # The constants are tuned on real tables at epsilon 0.1 and 1. None of them affects privacy,
    # which `converge_test` ensures for any constants.
    "tight": Calibration(
        Fraction(2, 5),
        Fraction(7, 20),
        Fraction(1, 4),
        Fraction(4),
        15,
        -2,
        "imbalance",
        reuse=True,
    ),
    "paper": published(),
}


@dataclass(frozen=True)
class HDPViewParameters(InRecords):
    """Parameters of `hdpview` from the budget and the domain; all of them are public.

    Attributes
    ----------
    rule : Calibration
    kappa : int
        Private cuts on a path; deeper blocks are cut at random.
    rate : Fraction
        The noise of a converge test is discrete Laplace, with this epsilon for a grid step.
    delta_steps, theta_steps, floor_steps : int
        Bias for each level, threshold, and smallest biased error, in grid steps. A block ``depth``
        levels below the root is biased by ``(rule.root_level + depth) * delta``.
    loss : float
        Certified bound of the privacy loss of all converge tests on one path.
    """

    rule: Calibration
    kappa: int
    rate: Fraction
    delta_steps: int
    theta_steps: int
    floor_steps: int
    loss: float


def hdpview_parts(
    epsilon: Fraction, shape: Sequence[int], *, calibration: str | Calibration = "tight"
) -> dict[str, Fraction]:
    """Divide a budget among the converge tests, the cuts and the counts.

    Parameters
    ----------
    epsilon : Fraction
    shape : sequence of int
        Number of codes of each attribute.
    calibration : {"tight", "paper"}, default="tight"

    Returns
    -------
    dict of str to Fraction
        Parts "converge", "cut" and "counts" that sum to ``epsilon``; "counts" alone for a domain
        of one cell.

    Raises
    ------
    ValueError
        If the calibration is unknown, or it is "paper" and epsilon so large that every block of
        a large domain would be cut down to its single cells.
    """
    rule = _rule(calibration)
    shares = {"counts": rule.counts}
    if math.prod(int(size) for size in shape) > 1:
        shares = {"converge": rule.converge, "cut": rule.cut, "counts": rule.counts}
    parts = split_epsilon(epsilon, shares)
    hdpview_parameters(parts, shape, calibration=calibration)
    return parts


def hdpview_parameters(
    parts: Mapping[str, Fraction], shape: Sequence[int], *, calibration: str | Calibration = "tight"
) -> HDPViewParameters:
    """Parameters of `hdpview`, computed from the budget and the domain alone.

    Parameters
    ----------
    parts : mapping of str to Fraction
        Budget for "converge", "cut" and "counts".
    shape : sequence of int
        Number of codes of each attribute.
    calibration : {"tight", "paper"}, default="tight"

    Returns
    -------
    HDPViewParameters

    Raises
    ------
    ValueError
        As `hdpview_parts`.
    """
    rule = _rule(calibration)
    cells = math.prod(int(size) for size in shape)
    # The threshold is the mean absolute noise of a count.
    theta = math.floor(GRID / parts["counts"] + Fraction(1, 2))
    if cells == 1:
        # Nothing is tested and nothing cut.
        return HDPViewParameters(rule, 0, Fraction(1), SENSITIVITY, theta, theta, 0.0)
    test = converge_test(parts["converge"], rule)
    if (chance := split_at_floor(test)) > 0.5 and cells > _MOST_SINGLE_CELLS:
        most = math.log(rule.alpha) * (3 + 1 / (rule.alpha - 1)) / rule.converge
        raise ValueError(
            f"With calibration='paper' and {float(sum(parts.values())):g} of epsilon, even "
            f"an empty block is cut with probability {chance:.2f}: the {cells:.3g} "
            "cells of this domain would all become blocks of their own. Nothing was read or spent. "
            f"Use calibration='tight', or an epsilon below {float(most):.2g}."
        )
    # The logarithm of a power of two is exact; no other gives a whole number.
    kappa = max(math.floor(rule.beta * Fraction(math.log2(cells))), 1)
    kappa = kappa if rule.most_cuts is None else min(kappa, rule.most_cuts)
    return HDPViewParameters(
        rule, kappa, test.rate, test.delta, theta, theta + test.floor, test.loss
    )


def _rule(calibration: str | Calibration) -> Calibration:
    if isinstance(calibration, Calibration):
        return calibration
    check_choice(calibration, "calibration", CALIBRATIONS)
    return CALIBRATIONS[calibration]


@lru_cache(maxsize=256)
def converge_test(epsilon: Fraction, rule: Calibration) -> StopTest:
    """Converge test with the least noise of a calibration whose certified loss is within epsilon.

    The paper gives its noise by a formula, which is taken as the least. Beyond a total epsilon of
    2.7 its bias falls below the sensitivity and its floor, 2 - delta, rises above the threshold:
    still private, but then every block splits with probability above a half, empty ones too.
    """
    # The stop alone can cost the sensitivity times the rate.
    most = epsilon / SENSITIVITY
    if rule.published:
        most *= (rule.alpha - 1) / (3 * rule.alpha - 2)

    def test(rate: float) -> tuple[int, int]:
        """Bias and floor, in grid steps relative to the threshold, for noise of this rate."""
        delta = math.ceil(math.log(rule.alpha) / rate)
        if rule.published:
            return delta, SENSITIVITY - delta
        return max(delta, SENSITIVITY), quiet_floor(rate, 2)

    return certified_test(epsilon, most, test, SENSITIVITY)


def split_at_floor(test: StopTest) -> float:
    """Probability that an empty block is divided."""
    rate = float(test.rate)
    gain = split_gain(np.array([min(test.floor, 0)]), np.array([max(test.floor, 0)]), rate)[0]
    at_zero = 1 / (1 + math.exp(rate))
    return at_zero * math.exp(math.copysign(gain, test.floor))


# ------------------------------------------------------------------------------------------------
# HDPView: recursive bisection of a table of counts by aggregation error, under pure epsilon-DP.
#
# The kernel behind ``HDPViewSynthesizer``: arrays in, arrays out, no estimator. Blocks are boxes
# of cells. A block is bisected while its aggregation error AE (the sum over its cells of
# \|count - mean count\|), minus a bias that grows with the depth, exceeds a threshold under noise.
# The cut is chosen by a noisy maximum among all cuts of all attributes. Each final block gets a
#   noisy
# count. All blocks of one depth are treated at once.
#
# Privacy (neighbours add or remove one record). A block without the record has the same
#   distribution
# in both tables, so the argument follows the record down its path:
#
# * *converge tests*: all tests of one path together lose at most `converge_loss`, whatever their
#   number, because the tested errors fall by at least the bias per level;
# * *cuts*: the first ``kappa`` of a path lose ``parts["cut"] / kappa`` each; deeper ones are drawn
#   from public randomness and lose nothing;
# * *counts*: final blocks are disjoint, a record lies in one of them: ``parts["counts"]``, and with
#   the "tight" calibration also what the cuts of this path did not use: a block after t private
#   cuts
#   has ``(kappa - t) parts["cut"] / kappa`` more. How many cuts a path has is released before.
#
# The three add up to the budget on every path. Exact counts are read only to be tested, scored or
# released under that noise; `HDPViewParameters` are computed from the budget and the domain alone.
#
# References
# ----------
# F. Kato, T. Takahashi, S. Takagi, Y. Cao, S. P. Liew, M. Yoshikawa. HDPView: Differentially
# Private Materialized View for Exploring High Dimensional Relational Data. PVLDB 15(9), 2022.


# --- HDPView: aggregation errors of many blocks at once, in exact integers

# Numbers of cells are only compared with numbers of records, so they are capped here.
MANY_CELLS = 2**61


def _capped_product(a: IntArray, b: IntArray) -> IntArray:
    """Products of positive numbers up to MANY_CELLS, capped there."""
    fits = a <= MANY_CELLS // b
    return np.where(fits, a * np.where(fits, b, 1), MANY_CELLS)


def cells_of(sides: IntArray) -> tuple[IntArray, IntArray]:
    """Cells of each block, and of a slice of it of width 1 on each axis; capped at MANY_CELLS."""
    d = sides.shape[1]
    before, after = np.ones_like(sides), np.ones_like(sides)
    for axis in range(1, d):
        before[:, axis] = _capped_product(before[:, axis - 1], sides[:, axis - 1])
        after[:, d - 1 - axis] = _capped_product(after[:, d - axis], sides[:, d - axis])
    rest = _capped_product(before, after)
    return _capped_product(rest[:, 0], sides[:, 0]), rest


def _error_steps(heavy: IntArray, n_heavy: IntArray, total: IntArray, cells: IntArray) -> IntArray:
    """Aggregation errors in grid steps, rounded to the nearest, exactly.

    Deviations above the mean and below it are equal, so the error of n cells with the sum S is
    2 (A - c S / n), where c occupied cells with the sum A lie above the mean S / n. In a block of
    no more records than cells these are all occupied cells.
    """
    if 4 * GRID * int(total.max(initial=0)) * int(n_heavy.max(initial=0)) >= MANY_CELLS:
        total, n_heavy, cells = total.astype(object), n_heavy.astype(object), cells.astype(object)
    spread = (4 * GRID * total * n_heavy + cells - 1) // (2 * cells)
    return 2 * GRID * heavy - spread.astype(np.int64)


def _sums_above(
    slot: IntArray, x: IntArray, start: IntArray, stop: IntArray, threshold: IntArray
) -> tuple[IntArray, IntArray]:
    """Sum and number of the x above a threshold with start <= slot < stop, for many queries.

    A range of slots is a union of nodes of a binary tree over all slots, at most two on each
    level. On each level the rows are sorted by node and then by value, so that two binary
    searches in them and running sums answer a node.
    """
    values, rank = np.unique(x, return_inverse=True)
    least = np.searchsorted(values, threshold, side="right")
    width = len(values) + 1
    node, start, stop = slot, start.copy(), stop.copy()
    total, number = np.zeros_like(start), np.zeros_like(start)
    active = np.arange(len(start))
    while len(active):
        key = node * width + rank
        order = np.argsort(key, kind="stable")
        node, rank, x, key = node[order], rank[order], x[order], key[order]
        running = running_sums(x)
        odd_start = active[start[active] % 2 == 1]
        odd_stop = active[stop[active] % 2 == 1]
        for query, taken in ((odd_start, start[odd_start]), (odd_stop, stop[odd_stop] - 1)):
            low = np.searchsorted(key, taken * width + least[query])
            high = np.searchsorted(key, (taken + 1) * width)
            total[query] += running[high] - running[low]
            number[query] += high - low
        node, start, stop = node >> 1, (start + 1) >> 1, stop >> 1
        active = active[start[active] < stop[active]]
    return total, number


# --- HDPView: scores of all cuts of all blocks, and the private choice among them
#
# Scores are vectors in grid steps: block by block, within a block attribute by attribute, and
# within an attribute its cuts from left to right.

# Number of scores held at once: arrays of this length stay in the cache.
_CUTS_AT_ONCE = 2**16


def _imbalance(blocks: Blocks, columns: Sequence[CodeArray], counts: IntArray) -> IntArray:
    """How many records a uniform block would put on the wrong side of each cut, rounded down."""
    sides, cuts = blocks.sides, blocks.sides - 1
    ends = np.cumsum(cuts).reshape(sides.shape)
    # With `left` of the n codes on the left, the score is |n S_left - S left| / n. The numerator
    # rises by n records - S with each code, and ends at 0: what the last code adds, which has no
    # cut, stands where the next attribute begins, and one running sum serves all. Quotients of
    # floats below 2**52 round down as those of integers do.
    small = GRID * int(blocks.total.max(initial=0)) * int(sides.max(initial=1)) < 2**52
    rise = np.zeros(int(cuts.sum()) + 1, dtype=float if small else object)
    total = GRID * blocks.total.astype(rise.dtype)
    weight = GRID * sides.astype(rise.dtype)
    x = counts[blocks.row]
    for axis, column in enumerate(columns):
        slot = (ends - cuts - blocks.lower)[:, axis][blocks.block] + column[blocks.row]
        np.add.at(rise, slot, weight[:, axis][blocks.block] * x)
        np.subtract.at(rise, ends[:, axis], total)
    rise[:-1] -= np.repeat(total, cuts.sum(axis=1))
    score = rise[:-1]
    np.abs(np.cumsum(score, out=score), out=score)
    width = np.repeat(sides.ravel().astype(rise.dtype), cuts.ravel())
    score = np.divide(score, width, out=score) if small else score // width
    return score.astype(np.int64)


def _imbalance_range(sides: IntArray) -> IntArray:
    """Length of the interval in which one record moves all imbalances of a block.

    A record on the left moves S_left - S f, f = left / side, by 1 - f and one on the right by -f:
    at most 1 - 1 / side, up or down; in grid steps by at most the next integer.
    """
    return 2 * (GRID - GRID // sides.max(axis=1))


def _remaining_error(blocks: Blocks, columns: Sequence[CodeArray], counts: IntArray) -> IntArray:
    """Minus the sum of the aggregation errors of the two parts that each cut leaves."""
    sides = blocks.sides
    rest = cells_of(sides)[1]
    scores = np.repeat(-2 * GRID * blocks.total, (sides - 1).sum(axis=1))
    # The error of a sparse part is 2 S - 2 S c / n. Where the second term rounds to zero even for
    # all records in the smallest part, all cuts of the block are equal and no row need be read.
    # This is the usual case in wide tables. (The 1 allows for rounding in floats.)
    occupied = np.bincount(blocks.block, minlength=len(sides))
    share = (4 * GRID + 1) * blocks.total.astype(float) * occupied
    uneven = np.flatnonzero(share > rest.min(axis=1))
    first = exclusive_cumsum((sides - 1).ravel()).reshape(sides.shape)[uneven]
    blocks, rest = blocks.select(uneven), rest[uneven]
    x = counts[blocks.row]
    for axis, column in enumerate(columns):
        # A slot for each code of each block: the ends of the blocks, and the slot of each row.
        ends = running_sums(blocks.sides[:, axis])
        begin, slot = ends, (ends[:-1] - blocks.lower[:, axis])[blocks.block] + column[blocks.row]
        owner, left = inner_cuts(blocks.sides[:, axis])
        parts = _Parts(owner, slot, int(begin[-1]), blocks.block, x, rest[owner, axis])
        low, high = begin[owner], begin[owner + 1]
        score = -(parts.errors(low, low + left) + parts.errors(low + left, high))
        scores[first[owner, axis] + left - 1] = score
    return scores


class _Parts:
    """Parts of blocks, as ranges of slots: their aggregation errors.

    Parameters
    ----------
    owner : ndarray of int64, shape (n_cuts,)
        Block of each cut.
    slot, block, x : ndarray of int64, shape (n_rows,)
        Slot, block and count of each row.
    slice_cells : ndarray of int64, shape (n_cuts,)
        Cells in a slice of width 1 of the block of each cut.
    """

    def __init__(
        self,
        owner: IntArray,
        slot: IntArray,
        n_slots: int,
        block: IntArray,
        x: IntArray,
        slice_cells: IntArray,
    ) -> None:
        self._owner, self._slot, self._block, self._x = owner, slot, block, x
        self._slice_cells = slice_cells
        self._sums = running_sums(integer_sums(slot, n_slots, x))
        self._rows = running_sums(np.bincount(slot, minlength=n_slots))

    def errors(self, low: IntArray, high: IntArray) -> IntArray:
        """Error of the slots from ``low`` to ``high``, excluded, of the block of each cut."""
        total = self._sums[high] - self._sums[low]
        n_heavy = self._rows[high] - self._rows[low]
        cells = _capped_product(high - low, self._slice_cells)
        heavy = total.copy()
        dense = np.flatnonzero(total > cells)
        if len(dense):
            needed = np.zeros(self._block.max() + 1, dtype=bool)
            needed[self._owner[dense]] = True
            inside = needed[self._block]
            heavy[dense], n_heavy[dense] = _sums_above(
                self._slot[inside],
                self._x[inside],
                low[dense],
                high[dense],
                total[dense] // cells[dense],
            )
        return _error_steps(heavy, n_heavy, total, cells)


def _remaining_error_range(sides: IntArray) -> IntArray:
    """Length of the interval in which one record moves all remaining errors of a block.

    A record lies in one part of each cut and moves the error of a part of n cells by at most
    2 (1 - 1 / n), up or down; in grid steps by at most the next integer. The largest part of any
    cut lacks one slice of the longest axis.
    """
    largest = _capped_product(cells_of(sides)[1].min(axis=1), np.maximum(sides.max(axis=1) - 1, 1))
    return 2 * (SENSITIVITY - SENSITIVITY // largest)


SCORES = {
    "imbalance": (_imbalance, _imbalance_range),
    "error": (_remaining_error, _remaining_error_range),
}


def choose_cuts(
    blocks: Blocks,
    columns: Sequence[CodeArray],
    counts: IntArray,
    score: str,
    epsilon: Fraction,
    noise: NoiseSource,
) -> IntArray:
    """Private choice of one cut in each block, counted from the first cut of the block."""
    sides = blocks.sides
    n_cuts = (sides - 1).sum(axis=1)
    if len(blocks) > 1 and int(n_cuts.sum()) > _CUTS_AT_ONCE:
        half = np.arange(len(sides)) < len(sides) // 2
        halves = [blocks.select(np.flatnonzero(part)) for part in (half, ~half)]
        return np.concatenate(
            [choose_cuts(part, columns, counts, score, epsilon, noise) for part in halves]
        )
    score_of, range_of = SCORES[score]
    scores, score_range = score_of(blocks, columns, counts), range_of(sides)
    chosen = np.zeros(len(sides), dtype=np.int64)
    # Privacy. Released: one cut of each block. A record lies in one block, so the choices of one
    # depth compose in parallel; its choice costs epsilon, because the score range, a function of
    # the public shape of the block, bounds how far apart one record can move two scores. A block
    # of two cells has one cut, and nothing to choose.
    for value in np.unique(score_range[n_cuts > 1]):
        members = (score_range == value) & (n_cuts > 1)
        begin = exclusive_cumsum(n_cuts[members])
        candidates = scores if members.all() else scores[np.repeat(members, n_cuts)]
        winners = noisy_max(candidates, epsilon, int(value), starts=begin, random_state=noise)
        chosen[members] = winners - begin
    return chosen


# --- the bisection


def hdpview(
    table: CountTable,
    parts: Mapping[str, Fraction],
    *,
    calibration: str | Calibration = "tight",
    random_state: Any = None,
) -> BoxModel:
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
    BoxModel
        With upper bounds on the aggregation errors of the boxes, from the stop tests, at no cost.

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
    unused = epsilon_cut if parameters.rule.reuse else Fraction(0)
    budgets = [
        parts["counts"] + (parameters.kappa - cuts) * unused for cuts in range(parameters.kappa + 1)
    ]
    counts = np.empty_like(exact)
    for cuts in np.unique(n_cuts).tolist():
        members = np.flatnonzero(n_cuts == cuts)
        counts[members] = discrete_laplace(exact[members], budgets[cuts], random_state=noise)
    # The tested error is the nearest multiple of a grid step.
    theta, lam = (parameters.theta_steps + 0.5) / GRID, parameters.lam
    bounds = LeafErrorBound(theta, parameters.delta, lam, depth, test_number, 1 / GRID)
    epsilon = [budgets[cuts] for cuts in n_cuts.tolist()]
    intervals = Intervals(epsilon if len(set(epsilon)) > 1 else epsilon[0], bounds)
    return BoxModel(Boxes(lower, upper), counts, table.shape, intervals)


def bisect(
    table: CountTable, parameters: HDPViewParameters, epsilon_cut: Fraction, noise: NoiseSource
) -> tuple[IntArray, ...]:
    """Final blocks: lower, upper, exact count (private!), deltas, test number, private cuts."""
    columns = [np.ascontiguousarray(column) for column in table.codes.T]
    blocks = Blocks.whole(table.shape, table.counts)
    leaves = []
    depth = n_tests = 0
    while len(blocks):
        level = parameters.rule.root_level + depth
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
                blocks, columns, table.counts, parameters.rule.score, epsilon_cut, noise
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
    return _error_steps(
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
