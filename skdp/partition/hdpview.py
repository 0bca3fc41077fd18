r"""Recursive bisection of a table of counts by aggregation error, under pure epsilon-DP.

The kernel behind ``HDPViewSynthesizer``: arrays in, arrays out, no estimator. Blocks are boxes
of cells. A block is bisected while its aggregation error AE (the sum over its cells of
\|count - mean count\|), less a bias that grows with the depth, exceeds a threshold under noise;
where, is chosen by a noisy maximum among all cuts of all attributes. Each final block gets a noisy
count. All blocks of one depth are treated at once.

Privacy (neighbours add or remove one record). A block without the record has the same law in both
tables, so the argument follows the record down its path:

* *converge tests*: all tests of one path together lose at most `converge_loss`, whatever their
  number, because the tested errors fall by at least the bias a level;
* *cuts*: the first ``kappa`` of a path lose ``parts["cut"] / kappa`` each; deeper ones are drawn
  from public randomness and lose nothing;
* *counts*: final blocks are disjoint, a record lies in one of them: ``parts["counts"]``.

The three add up to the budget. Exact counts are read only to be tested, scored or released under
that noise; `HDPViewParameters` are computed from the budget and the domain alone.

References
----------
F. Kato, T. Takahashi, S. Takagi, Y. Cao, S. P. Liew, M. Yoshikawa. HDPView: Differentially
Private Materialized View for Exploring High Dimensional Relational Data. PVLDB 15(9), 2022.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._random import NoiseSource, noise_source
from .._validation import dyadic_floor, split_epsilon
from ..mechanisms import above_threshold, discrete_laplace, noisy_max
from ..release import LeafErrorBound
from ..rows import CountTable

__all__ = [
    "CALIBRATIONS",
    "Calibration",
    "HDPViewParameters",
    "HDPViewRelease",
    "certified_rate",
    "converge_loss",
    "hdpview",
    "hdpview_parameters",
    "hdpview_parts",
]

IntArray = NDArray[np.int64]
CodeArray = NDArray[np.int32]

# Errors and scores are rounded to multiples of 1/_GRID records: public, and fine against any noise.
_GRID = 4
# One record moves an aggregation error by less than 2, hence its rounding by at most this.
_SENSITIVITY = 2 * _GRID
# Numbers of cells are only compared with numbers of records; from here on they are all "many".
_MANY_CELLS = 2**61
# Scores held at once.
_CUTS_AT_ONCE = 2**22
# Largest domain that may fall apart into single cells.
_MOST_SINGLE_CELLS = 2**22


@dataclass(frozen=True)
class Calibration:
    """Public choices that turn a budget and a domain into `HDPViewParameters`; any are private."""

    # Shares of the budget.
    converge: Fraction
    cut: Fraction
    counts: Fraction
    # delta = ln(alpha) * noise scale.
    alpha: Fraction
    # Most private cuts on a path.
    most_cuts: int | None
    # Level of the root: how many times delta is taken off its error. Where it is negative, the
    # first cuts are made even in sparse tables, and delta weighs less further down.
    root_level: int
    # What a cut is chosen by, a key of _SCORES.
    score: str
    # Noise, bias and floor by the published formulas, not from the exact worst case.
    published: bool = False
    # Private cuts on a path, in multiples of log2(number of cells).
    beta: Fraction = Fraction(6, 5)


CALIBRATIONS = {
    # The constants are tuned on real tables at epsilon .1 and 1; none of them matters for privacy,
    # which `_certified_test` establishes whatever they are.
    "tight": Calibration(
        Fraction(40, 100), Fraction(35, 100), Fraction(25, 100), Fraction(4), 15, -2, "imbalance"
    ),
    "paper": Calibration(
        Fraction(81, 100),
        Fraction(9, 100),
        Fraction(10, 100),
        Fraction(8, 5),
        None,
        1,
        "error",
        published=True,
    ),
}


@dataclass(frozen=True)
class HDPViewParameters:
    """What `hdpview` takes from the budget and the domain; all of it is public.

    Attributes
    ----------
    kappa : int
        Private cuts on a path; deeper blocks are cut at random.
    score : {"imbalance", "error"}
        What a cut is chosen by: see `hdpview`.
    rate : Fraction
        The noise of a converge test is discrete Laplace, with this epsilon for a grid step.
    delta_steps, theta_steps, floor_steps : int
        Bias for each level, threshold, and smallest biased error, in grid steps.
    root_level : int
        Level of the root: a block ``depth`` levels below it is biased by
        ``(root_level + depth) * delta``.
    loss : float
        Certified bound of the privacy loss of all converge tests on one path.
    """

    kappa: int
    score: str
    rate: Fraction
    delta_steps: int
    theta_steps: int
    floor_steps: int
    root_level: int
    loss: float

    @property
    def step(self) -> float:
        """Grid step of errors and noise, in records."""
        return 1 / _GRID

    @property
    def lam(self) -> float:
        """Scale of the converge noise, in records."""
        return float(1 / (self.rate * _GRID))

    @property
    def delta(self) -> float:
        """Bias for each level, in records."""
        return self.delta_steps / _GRID

    @property
    def theta(self) -> float:
        """Threshold of the biased error, in records."""
        return self.theta_steps / _GRID

    @property
    def floor(self) -> float:
        """Smallest biased error, in records."""
        return self.floor_steps / _GRID


class HDPViewRelease(NamedTuple):
    """What `hdpview` releases; every array has one entry for each box.

    Attributes
    ----------
    lower, upper : ndarray of int64, shape (m, d)
        Disjoint boxes of codes that cover the domain; ``upper`` is exclusive.
    counts : ndarray of int64, shape (m,)
        Counts with discrete Laplace noise of epsilon ``parts["counts"]``; may be negative.
    depth : ndarray of int64, shape (m,)
        Times delta was taken off the error of the box, at least 0.
    test_number : ndarray of int64, shape (m,)
        Number of the converge test that stopped the box, from 1 in the order of the run; 0 for a
        box of one cell, which is not tested.
    parameters : HDPViewParameters
    """

    lower: IntArray
    upper: IntArray
    counts: IntArray
    depth: IntArray
    test_number: IntArray
    parameters: HDPViewParameters

    def leaf_errors(self) -> LeafErrorBound:
        """Upper bounds on the aggregation errors of the boxes, which the stops give for free."""
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
    theta = math.floor(_GRID / parts["counts"] + Fraction(1, 2))
    if cells == 1:
        # Nothing is tested and nothing cut.
        return HDPViewParameters(
            0, rule.score, Fraction(1), _SENSITIVITY, theta, theta, rule.root_level, 0.0
        )
    test = _certified_test(parts["converge"], rule)
    if test.split_at_floor > 0.5 and cells > _MOST_SINGLE_CELLS:
        raise ValueError(
            f"With calibration={calibration!r} and {float(sum(parts.values())):g} of epsilon, even "
            f"an empty block is cut with probability {test.split_at_floor:.2f}: the {cells:.3g} "
            "cells of this domain would all become blocks of their own. Nothing was read or spent. "
            "Use calibration='tight', or an epsilon below 2.7."
        )
    # floor(beta log2(cells)), in integers.
    kappa = ((cells**rule.beta.numerator).bit_length() - 1) // rule.beta.denominator
    return HDPViewParameters(
        kappa if rule.most_cuts is None else min(kappa, rule.most_cuts),
        rule.score,
        test.rate,
        test.delta,
        theta,
        theta + test.floor,
        rule.root_level,
        test.loss,
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
        is as small as the exact worst case allows, the floor is set apart from the bias, and
        the score of a cut is its imbalance, \|S_left - S n_left / n\|: how many records the
        uniform block puts on the wrong side. In wide sparse tables all cuts leave about the same
        aggregation error, twice the records, and only the imbalance tells them apart; it also has
        half the range, and costs no pass over the cells.
    random_state : None, int or NoiseSource, default=None
        None: the operating system's entropy. An int is for experiments and protects nobody.

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
    lower, upper, exact, depth, test_number = _bisect(table, parameters, epsilon_cut, noise)
    # Privacy. Released: the count of every box. The boxes are disjoint: one record changes one
    # count by 1, sensitivity 1. The boxes themselves are released before (sequential composition).
    counts = discrete_laplace(exact, parts["counts"], random_state=noise)
    return HDPViewRelease(lower, upper, counts, depth, test_number, parameters)


def _rule(calibration: str | Calibration) -> Calibration:
    if isinstance(calibration, Calibration):
        return calibration
    if calibration not in CALIBRATIONS:
        raise ValueError(f"calibration must be 'tight' or 'paper', got {calibration!r}.")
    return CALIBRATIONS[calibration]


# The converge test: how much it loses, and how to set it up.


# Noise of this rate is never seen. Of much more the loss cannot be certified: exp(-rate) is then
# zero in floats, and the loss not a number.
_NO_NOISE = Fraction(512)


class _Test(NamedTuple):
    rate: Fraction
    delta: int
    floor: int  # relative to the threshold
    loss: float
    split_at_floor: float


def _split_gain(low: IntArray, high: IntArray, rate: float) -> NDArray[np.float64]:
    """Log-ratio of P(high + N > 0) to P(low + N > 0), low <= high, N discrete Laplace.

    P(b + N > 0) is r**(1 - b) / (1 + r) for b <= 0 and 1 - r**b / (1 + r) for b >= 0, where
    r = exp(-rate). Nothing cancels, so the relative precision is full however small the rate.
    """
    base = rate * np.maximum(low, 0)
    rise = rate * (np.maximum(high, 0) - np.maximum(low, 0))
    above = np.log1p(-np.exp(-base) * np.expm1(-rise) / (math.exp(-rate) - np.expm1(-base)))
    return above + rate * (np.minimum(high, 0) - np.minimum(low, 0))


def converge_loss(rate: float, sensitivity: int, delta: int, floor: int) -> float:
    r"""Upper bound of the privacy loss of all converge tests on one path.

    A block at level k whose error is a splits if max(a - k delta, floor) + N exceeds 0, where N is
    discrete Laplace with r = exp(-rate). All in grid steps, relative to the threshold.

    Parameters
    ----------
    rate : float
        Epsilon of the noise for one grid step.
    sensitivity : int
        Largest change of an error by one record.
    delta : int
        Bias for each level, at least 1.
    floor : int
        Smallest biased error, relative to the threshold.

    Returns
    -------
    float
        A bound for every table, neighbour and sequence of cuts, of any depth.

    Notes
    -----
    Let a_i and a'_i be the biased errors of the record's blocks in the two tables. Both sequences
    fall by at least delta a level, since no sub-block has a larger error than its block, and
    \|a_i - a'_i\| <= s. Let l(x) be the log-ratio of a split at max(x, floor) to one at
    max(x - s, floor); it grows up to floor + s and falls from there, P(b + N > 0) being
    log-concave.

    If the stop at the end does not favour the first table, only splits with a_i > floor count, by
    at most l(a_i) each: the loss is a sum of l over points at least delta apart. The largest such
    sum is found from the top down.

    Else the stop happens with z = a'_k > floor and counts for its log-ratio from max(z - s, floor)
    to z, which grows with z; the splits above it count for at most l(z + s + j delta), j >= 1,
    which falls with z. So on an interval of z the stop at its right end and the splits at its left
    end are a bound, and not every z need be visited. From max(floor, 0) + s on the stop is
    constant.
    """
    s = sensitivity

    def split(x: IntArray) -> NDArray[np.float64]:
        return _split_gain(np.maximum(x - s, floor), np.maximum(x, floor), rate)

    def splits_from(x: IntArray) -> NDArray[np.float64]:
        # l(x) + l(x + delta) + ...: terms until r**(x - s) is below exp(-40), and from there the
        # geometric series that bounds the rest, l(y) <= r**(y - s) (1 - r**s) / r.
        n_terms = max(math.ceil((40 / rate + s - int(x[0])) / delta), 1)
        total = split(x[:, None] + delta * np.arange(n_terms)).sum(axis=1)
        beyond = rate * (x + delta * n_terms - s)
        rest = np.exp(rate - beyond) * math.expm1(-rate * s) / math.expm1(-rate * delta)
        return total + rest

    best = {floor + s + 1: 0.0}
    for x in range(floor + s, floor, -1):
        if x + delta > floor + s:
            chain = float(splits_from(np.array([x]))[0])
        else:
            chain = float(split(np.array([x]))[0]) + best[x + delta]
        best[x] = max(chain, best[x + 1])

    left = np.unique(np.linspace(floor + 1, max(floor, 0) + s, 513).astype(np.int64))
    right = np.append(left[1:] - 1, left[-1])
    # N is symmetric, so P(b + N <= 0) = P((1 - b) + N > 0).
    stop = _split_gain(1 - right, 1 - np.maximum(right - s, floor), rate)
    worst = max(best[floor + 1], float(np.max(stop + splits_from(left + delta + s))))
    # The terms are off by some units in the last place of a double, a few parts in 1e14: the
    # margin is ten thousand times that.
    return worst * (1 + 1e-9)


def certified_rate(
    epsilon: Fraction,
    most: Fraction,
    test: Callable[[float], tuple[int, int]],
    sensitivity: int,
) -> Fraction:
    """Largest rate of the noise whose tests on one path lose at most epsilon, by bisection.

    Parameters
    ----------
    epsilon : Fraction
    most : Fraction
        Rates above this, or above 512, are not looked at.
    test : callable
        Bias and floor, in grid steps, for a rate; see `converge_loss`.
    sensitivity : int

    Returns
    -------
    Fraction
        A dyadic one: the noise is drawn at exactly this rate.
    """

    def loss(rate: Fraction) -> float:
        return converge_loss(float(rate), sensitivity, *test(float(rate)))

    # The noise is drawn at the dyadic floor of a rate, so only such rates are looked at.
    high = low = dyadic_floor(min(most, _NO_NOISE))
    while loss(low) > epsilon:
        high, low = low, dyadic_floor(low / 2)
    while (middle := dyadic_floor((low + high) / 2)) > low:
        if loss(middle) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def _tight_test(rate: float, alpha: Fraction) -> tuple[int, int]:
    """Bias and floor, in grid steps relative to the threshold, for noise of this rate."""
    delta = math.ceil(math.log(alpha) / rate)
    # At -eta a block splits with probability r**(1 + eta) / (1 + r); with a quarter for each of its
    # two sides an empty block has half a child on average, and empty regions stay in few blocks.
    eta = math.ceil(math.log(4 / (1 + math.exp(-rate))) / rate) - 1
    return max(delta, _SENSITIVITY), -max(eta, 0)


def _paper_test(rate: float, alpha: Fraction) -> tuple[int, int]:
    delta = math.ceil(math.log(alpha) / rate)
    return delta, _SENSITIVITY - delta


@lru_cache(maxsize=256)
def _certified_test(epsilon: Fraction, rule: Calibration) -> _Test:
    """Converge test with the least noise of a calibration whose certified loss is within epsilon.

    The paper gives its noise by a formula, which is taken as the least. Beyond a total epsilon of
    2.7 its bias falls below the sensitivity and its floor, 2 - delta, rises above the threshold:
    still private, but then every block splits with probability above a half, empty ones too.
    """
    alpha = rule.alpha
    # The stop alone can lose the sensitivity times the rate.
    most = epsilon / _SENSITIVITY
    if rule.published:
        most *= (alpha - 1) / (3 * alpha - 2)

    def test(rate: float) -> tuple[int, int]:
        return (_paper_test if rule.published else _tight_test)(rate, alpha)

    low = certified_rate(epsilon, most, test, _SENSITIVITY)
    delta, floor = test(float(low))
    gain = _split_gain(np.array([min(floor, 0)]), np.array([max(floor, 0)]), float(low))[0]
    at_zero = 1 / (1 + math.exp(float(low)))
    loss = converge_loss(float(low), _SENSITIVITY, delta, floor)
    return _Test(low, delta, floor, loss, at_zero * math.exp(math.copysign(gain, floor)))


# Exact arithmetic on many blocks at once.


def _starts(lengths: IntArray) -> IntArray:
    """Where each of consecutive segments begins."""
    return np.cumsum(lengths) - lengths


def _times(a: IntArray, b: IntArray) -> IntArray:
    """Products of positive numbers up to _MANY_CELLS, cut off there."""
    fits = a <= _MANY_CELLS // b
    return np.where(fits, a * np.where(fits, b, 1), _MANY_CELLS)


def _cells(sides: IntArray) -> tuple[IntArray, IntArray]:
    """Cells of each block, and of a slice of it of width 1 on each axis; cut off at _MANY_CELLS."""
    d = sides.shape[1]
    before, after = np.ones_like(sides), np.ones_like(sides)
    for axis in range(1, d):
        before[:, axis] = _times(before[:, axis - 1], sides[:, axis - 1])
        after[:, d - 1 - axis] = _times(after[:, d - axis], sides[:, d - axis])
    rest = _times(before, after)
    return _times(rest[:, 0], sides[:, 0]), rest


def _sums(group: IntArray, values: IntArray, n_groups: int) -> IntArray:
    """Sum of the values of each group."""
    # Sums of integers below 2**53 are exact in the floats of bincount.
    return np.bincount(group, weights=values, minlength=n_groups).astype(np.int64)


def _running(values: IntArray) -> IntArray:
    """Sums of the first 0, 1, ..., all values."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(values)])


def _error_steps(heavy: IntArray, n_heavy: IntArray, total: IntArray, cells: IntArray) -> IntArray:
    """Aggregation errors in grid steps, rounded to the nearest, exactly.

    Deviations above the mean and below it are equal, so the error of n cells with the sum S is
    2 (A - c S / n), where c occupied cells with the sum A lie above the mean S / n. In a block of
    no more records than cells these are all occupied cells.
    """
    if 4 * _GRID * int(total.max(initial=0)) * int(n_heavy.max(initial=0)) >= _MANY_CELLS:
        total, n_heavy, cells = total.astype(object), n_heavy.astype(object), cells.astype(object)
    spread = (4 * _GRID * total * n_heavy + cells - 1) // (2 * cells)
    return 2 * _GRID * heavy - spread.astype(np.int64)


def _above(
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
        running = _running(x)
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


# Scores of cuts. A score is a vector: the blocks one after the other, in a block the attributes in
# order, and in an attribute its cuts from left to right; in grid steps.


class _Blocks(NamedTuple):
    """Blocks of one depth, with the rows that lie in them."""

    lower: IntArray  # (n_blocks, d)
    upper: IntArray
    total: IntArray  # (n_blocks,): records
    row: IntArray  # (n_rows,): positions in the table
    block: IntArray  # (n_rows,): block of each

    def select(self, kept: IntArray) -> _Blocks:
        """Some of the blocks, in increasing order, with their rows."""
        number = np.full(len(self.lower), -1)
        number[kept] = np.arange(len(kept))
        block = number[self.block]
        inside = np.flatnonzero(block >= 0)
        return _Blocks(
            self.lower[kept], self.upper[kept], self.total[kept], self.row[inside], block[inside]
        )


class _Cuts(NamedTuple):
    """All cuts of one attribute in some blocks; rows are counted in slots, one for each code."""

    owner: IntArray  # block of each cut
    left: IntArray  # codes in its left part
    begin: IntArray  # first slot of the block; the cut is at begin + left
    end: IntArray
    slot: IntArray  # (n_rows,)
    n_slots: int


def _cuts(blocks: _Blocks, axis: int, column: CodeArray) -> _Cuts:
    side = blocks.upper[:, axis] - blocks.lower[:, axis]
    offset = _starts(side)
    owner = np.repeat(np.arange(len(side)), side - 1)
    left = np.arange(1, len(owner) + 1) - _starts(side - 1)[owner]
    slot = (offset - blocks.lower[:, axis])[blocks.block] + column[blocks.row]
    begin = offset[owner]
    return _Cuts(owner, left, begin, begin + side[owner], slot, int(side.sum()))


def _imbalance(blocks: _Blocks, columns: Sequence[CodeArray], counts: IntArray) -> IntArray:
    """How many records a uniform block would put on the wrong side of each cut, rounded down."""
    sides = blocks.upper - blocks.lower
    first = _starts((sides - 1).ravel()).reshape(sides.shape)
    scores = np.zeros(int((sides - 1).sum()), dtype=np.int64)
    x = counts[blocks.row]
    for axis, column in enumerate(columns):
        cuts = _cuts(blocks, axis, column)
        sums = _running(_sums(cuts.slot, x, cuts.n_slots))
        in_left = sums[cuts.begin + cuts.left] - sums[cuts.begin]
        side = cuts.end - cuts.begin
        # S n_left / n = S left / side, in whole records and a rest of part / side; products of
        # records and codes, which might overflow, are not formed.
        quotient, remainder = np.divmod(blocks.total[cuts.owner], side)
        whole, part = np.divmod(remainder * cuts.left, side)
        excess = in_left - quotient * cuts.left - whole
        scores[first[cuts.owner, axis] + cuts.left - 1] = np.where(
            excess > 0,
            _GRID * excess + -_GRID * part // side,
            _GRID * part // side - _GRID * excess,
        )
    return scores


def _imbalance_range(sides: IntArray) -> IntArray:
    """Length of the interval in which one record moves all imbalances of a block.

    A record on the left moves S_left - S f, f = left / side, by 1 - f and one on the right by -f:
    at most 1 - 1 / side, up or down; in grid steps by at most the next integer.
    """
    return 2 * (_GRID - _GRID // sides.max(axis=1))


def _remaining_error(blocks: _Blocks, columns: Sequence[CodeArray], counts: IntArray) -> IntArray:
    """Minus the sum of the aggregation errors of the two parts that each cut leaves."""
    sides = blocks.upper - blocks.lower
    rest = _cells(sides)[1]
    scores = np.repeat(-2 * _GRID * blocks.total, (sides - 1).sum(axis=1))
    # The error of a sparse part is 2 S - 2 S c / n. Where the second term rounds to zero even for
    # all records in the smallest part, all cuts of the block are equal and no row need be read:
    # the usual case in wide tables. (The 1 is for the rounding of the floats.)
    occupied = np.bincount(blocks.block, minlength=len(sides))
    share = (4 * _GRID + 1) * blocks.total.astype(float) * occupied
    uneven = np.flatnonzero(share > rest.min(axis=1))
    first = _starts((sides - 1).ravel()).reshape(sides.shape)[uneven]
    blocks, rest = blocks.select(uneven), rest[uneven]
    x = counts[blocks.row]
    for axis, column in enumerate(columns):
        cuts = _cuts(blocks, axis, column)
        sums = _running(_sums(cuts.slot, x, cuts.n_slots))
        rows = _running(np.bincount(cuts.slot, minlength=cuts.n_slots))
        middle = cuts.begin + cuts.left
        score = np.zeros(len(middle), dtype=np.int64)
        for low, high in ((cuts.begin, middle), (middle, cuts.end)):
            total, n_heavy = sums[high] - sums[low], rows[high] - rows[low]
            cells = _times(high - low, rest[cuts.owner, axis])
            heavy = total.copy()
            dense = np.flatnonzero(total > cells)
            if len(dense):
                needed = np.zeros(len(blocks.total), dtype=bool)
                needed[cuts.owner[dense]] = True
                inside = needed[blocks.block]
                heavy[dense], n_heavy[dense] = _above(
                    cuts.slot[inside],
                    x[inside],
                    low[dense],
                    high[dense],
                    total[dense] // cells[dense],
                )
            score -= _error_steps(heavy, n_heavy, total, cells)
        scores[first[cuts.owner, axis] + cuts.left - 1] = score
    return scores


def _remaining_error_range(sides: IntArray) -> IntArray:
    """Length of the interval in which one record moves all remaining errors of a block.

    A record lies in one part of each cut and moves the error of a part of n cells by at most
    2 (1 - 1 / n), up or down; in grid steps by at most the next integer. The largest part of any
    cut lacks one slice of the longest axis.
    """
    largest = _times(_cells(sides)[1].min(axis=1), np.maximum(sides.max(axis=1) - 1, 1))
    return 2 * (_SENSITIVITY - _SENSITIVITY // largest)


_SCORES = {
    "imbalance": (_imbalance, _imbalance_range),
    "error": (_remaining_error, _remaining_error_range),
}


# The recursion, one depth at a time.


def _choose_cuts(
    blocks: _Blocks,
    columns: Sequence[CodeArray],
    counts: IntArray,
    score: str,
    epsilon: Fraction,
    noise: NoiseSource,
) -> IntArray:
    """Private choice of one cut in each block, counted from the first cut of the block."""
    sides = blocks.upper - blocks.lower
    n_cuts = (sides - 1).sum(axis=1)
    if len(sides) > 1 and int(n_cuts.sum()) > _CUTS_AT_ONCE:
        half = np.arange(len(sides)) < len(sides) // 2
        halves = [blocks.select(np.flatnonzero(part)) for part in (half, ~half)]
        return np.concatenate(
            [_choose_cuts(part, columns, counts, score, epsilon, noise) for part in halves]
        )
    score_of, range_of = _SCORES[score]
    scores, score_range = score_of(blocks, columns, counts), range_of(sides)
    starts = _starts(n_cuts)
    chosen = np.zeros(len(sides), dtype=np.int64)
    # Privacy. Released: one cut of each block. A record lies in one block, so the choices of one
    # depth compose in parallel; its choice costs epsilon, because the score range, a function of
    # the public shape of the block, bounds how far apart one record can move two scores. A block
    # of two cells has one cut, and nothing to choose.
    for value in np.unique(score_range[n_cuts > 1]):
        members = np.flatnonzero((score_range == value) & (n_cuts > 1))
        lengths = n_cuts[members]
        begin = _starts(lengths)
        candidates = np.repeat(starts[members] - begin, lengths) + np.arange(lengths.sum())
        winners = noisy_max(
            scores[candidates], epsilon, int(value), starts=begin, random_state=noise
        )
        chosen[members] = winners - begin
    return chosen


def _bisect(
    table: CountTable, parameters: HDPViewParameters, epsilon_cut: Fraction, noise: NoiseSource
) -> tuple[IntArray, ...]:
    """Final blocks: lower, upper, exact count (private!), times delta counted, test number."""
    d = len(table.shape)
    columns = [np.ascontiguousarray(table.codes[:, axis]) for axis in range(d)]
    lower = np.zeros((1, d), dtype=np.int64)
    upper = np.array([table.shape], dtype=np.int64)
    row = np.arange(len(table.counts))
    block = np.zeros(len(row), dtype=np.int64)
    leaves = []
    depth = n_tests = 0
    while len(lower):
        level = parameters.root_level + depth
        x = table.counts[row]
        total = _sums(block, x, len(lower))
        cells = _cells(upper - lower)[0]
        heavy = x > (total // cells)[block]
        error = _error_steps(
            _sums(block[heavy], x[heavy], len(lower)),
            np.bincount(block[heavy], minlength=len(lower)),
            total,
            cells,
        )
        # A block of one cell has no error and no cut: its public shape makes it final, untested.
        tested = np.flatnonzero(cells > 1)
        # Privacy. Released: which blocks are cut. See `converge_loss`: the errors never grow from
        # a block to its parts, rounding keeps that, and one record moves them by at most
        # _SENSITIVITY steps; the certified loss of all tests on a path is within its part.
        biased = np.maximum(error - level * parameters.delta_steps, parameters.floor_steps)
        above = above_threshold(
            biased[tested], parameters.rate, parameters.theta_steps, random_state=noise
        )
        test_number = np.zeros(len(lower), dtype=np.int64)
        test_number[tested] = n_tests + 1 + np.arange(len(tested))
        n_tests += len(tested)
        split = tested[above]
        final = np.ones(len(lower), dtype=bool)
        final[split] = False
        times = np.full(np.count_nonzero(final), max(level, 0))
        leaves.append((lower[final], upper[final], total[final], times, test_number[final]))

        blocks = _Blocks(lower, upper, total, row, block).select(split)
        cuts = blocks.upper - blocks.lower - 1
        if depth < parameters.kappa:
            chosen = _choose_cuts(
                blocks, columns, table.counts, parameters.score, epsilon_cut, noise
            )
        else:
            chosen = noise.below(cuts.sum(axis=1))
        # The attribute is the last one whose cuts begin at or before the chosen one: those
        # without cuts share the beginning of the next.
        first = np.cumsum(cuts, axis=1) - cuts
        axis = (first <= chosen[:, None]).sum(axis=1) - 1
        each = np.arange(len(split))
        code = blocks.lower[each, axis] + chosen - first[each, axis] + 1
        lower, upper = np.repeat(blocks.lower, 2, axis=0), np.repeat(blocks.upper, 2, axis=0)
        upper[2 * each, axis] = code
        lower[2 * each + 1, axis] = code
        row = blocks.row
        right = table.codes[row, axis[blocks.block]] >= code[blocks.block]
        block = 2 * blocks.block + right
        depth += 1
    lower, upper, exact, times, test_number = (
        np.concatenate(part) for part in zip(*leaves, strict=True)
    )
    return lower, upper, exact, times, test_number
