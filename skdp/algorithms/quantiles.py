"""Several quantiles of integers: which selections to make, and the selections.

A quantile is selected among all integers of a public line by how far its rank is from the wanted
one (`select_on_pieces`). Several are selected either independently, each with an equal part of
epsilon ("independent"), or by splitting (AppQuant, Kaplan, Schnapp and Stemmer, ICML 2022): the
middle one first, and then those below and those above it on the records of their own side
("recursive"). A record is on one side only, so that epsilon is divided by the number of levels and
not by the number of quantiles. On a short line they may also come from noisy counts ("tree", see
`TreePlan`). `plan_quantiles` predicts the error of all, from public facts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from .. import hierarchy
from .._random import NoiseSource
from .._validation import FloatArray, IntArray, batches, dyadic_floor
from ..hierarchy import Blue, Tree
from ..mechanisms.laplace import noise_rate
from ..mechanisms.selection import MOST_INTEGERS, select_on_pieces


@dataclass(frozen=True)
class Tuning:
    """The numbers that change a release, chosen on generated histograms."""

    # Longest line that is counted integer by integer, in integers.
    leaves: int = 2**16
    # Mean error of a quantile from a tree, in standard deviations of the unbiased estimates. A
    # normal one has 0.8; it is less where counts near 0 are recognised and values have several
    # ranks.
    error: float = 0.4
    # Ranges from the first integer to so many others are planned for.
    ranges: int = 64
    # Each integer of the line is divided into at most so many places, so that equal values can be
    # divided between the two sides of a quantile.
    places: int = 2**20


TUNING = Tuning()

# Quantiles are whole numbers of these parts.
UNIT = 10**6

# --- quantiles of integers from noisy counts of ranges: for many quantiles on a short line
#
# The counts of a range tree, made consistent and non-negative, give all quantiles at once; their
# error does not grow with the number of quantiles, as that of `quantiles` does.


class TreePlan:
    """Noisy counts of a tree, planned for ranges that begin with the first integer.

    Parameters
    ----------
    quantiles : sequence of Fraction
    epsilon : Fraction
        Budget of one record.
    size : int
        Number of integers on the line, at least 2 and at most `Tuning.leaves`.
    """

    method = "tree"

    def __init__(self, quantiles: Sequence[Fraction], epsilon: Fraction, size: int) -> None:
        self._shares = np.array([float(q) for q in quantiles])
        self._epsilon = epsilon
        self._tree, self._millionths = prefix_tree(size)
        self._blue = Blue(self._tree, hierarchy.measured_variances(self._millionths, epsilon))

    def expected_errors(self) -> FloatArray:
        """Predicted errors in records, the same for all quantiles."""
        variances = self._prefix_variances(np.array(_lengths(self._tree.n_bins)))
        return np.full(len(self._shares), TUNING.error * float(np.sqrt(variances).mean()))

    def release(
        self, positions: IntArray, size: int, level: float, source: NoiseSource
    ) -> tuple[IntArray, FloatArray]:
        """Quantiles of integers below ``size``, and errors that hold with probability ``level``."""
        # Privacy. Released: the noisy counts of the tree, by hierarchy.measure at epsilon. The rest
        # is computed from them.
        counts = np.bincount(positions, minlength=size)
        noisy = hierarchy.measure(
            self._tree, counts, self._millionths, self._epsilon, random_state=source
        )
        leaves = self._tree.leaves
        estimates = hierarchy.non_negative(self._blue, noisy)[leaves]
        below = np.cumsum(estimates if estimates.sum() > 0 else np.ones(size))
        found = np.searchsorted(below, self._shares * below[-1]).clip(0, size - 1)
        ranks = np.concatenate([[0.0], np.cumsum(self._blue.estimate(noisy)[leaves])])
        return found.astype(np.int64), self._errors(found, ranks, level)

    def _errors(self, found: IntArray, ranks: FloatArray, level: float) -> FloatArray:
        """Bounds of the rank errors of integers, from the unbiased estimates of all ranks."""
        # All ranks are within `reach` standard deviations of their estimates, with probability
        # ``level``: a weighted sum of Laplace variables has at most the moment generating function
        # of one with its variance, and discrete noise at most that of Laplace noise of its scale.
        size = self._tree.n_bins
        reach = _reach((1 - level) / (size + 1)) * self._widening()
        ends = np.stack([found, found + 1, np.full_like(found, size)])
        under, until, total = reach * np.sqrt(self._prefix_variances(ends.ravel())).reshape(3, -1)
        wanted = self._shares * ranks[-1]
        over = np.maximum(ranks[found] - wanted + under, wanted - ranks[found + 1] + until)
        errors: FloatArray = np.maximum(over, 0.0) + self._shares * total
        return errors

    def _prefix_variances(self, ends: IntArray) -> FloatArray:
        """Variances of the estimated numbers of records below ``ends``."""
        some = np.flatnonzero(ends)
        variances = np.zeros(len(ends))
        variances[some] = self._blue.range_variances(np.zeros(len(some), np.int64), ends[some])
        return variances

    def _widening(self) -> float:
        """Largest ratio of the standard deviation of Laplace noise to that of the discrete one."""
        parts = np.unique(self._millionths[self._millionths > 0])
        discrete = hierarchy.measured_variances(parts, self._epsilon)
        each = [dyadic_floor(self._epsilon * Fraction(part, 10**6)) for part in parts.tolist()]
        laplace = 2 / np.array(each, dtype=np.float64) ** 2
        return float(np.sqrt(laplace / discrete).max())


@lru_cache(maxsize=16)
def prefix_tree(size: int) -> tuple[Tree, IntArray]:
    """A tree for ranges that begin at the first integer, and its shares in millionths."""
    lengths = _lengths(size)
    weights = (1 / len(lengths),) * len(lengths)
    workload = hierarchy.Workload(lengths, weights, anchored=True)
    tree = hierarchy.level_tree(size, hierarchy.plan_levels(size, workload).counts)
    return tree, hierarchy.exact_shares(tree, hierarchy.optimal_shares(tree, workload))


def line_counts(
    exact: IntArray, epsilon: Fraction, source: NoiseSource
) -> tuple[FloatArray, FloatArray]:
    """Counts of the places of a line, none negative, and the variances of unbiased ones.

    Parameters
    ----------
    exact : ndarray of int, shape (n_places,)
    epsilon : Fraction
    source : NoiseSource
    """
    # Privacy. Released: the noisy counts of a tree over the places, by hierarchy.measure at
    # epsilon: a record is in one node of each level, and the shares of the levels sum to 1.
    tree, millionths = prefix_tree(len(exact))
    blue = Blue(tree, hierarchy.measured_variances(millionths, epsilon))
    noisy = hierarchy.measure(tree, exact, millionths, epsilon, random_state=source)
    leaves = tree.leaves
    return hierarchy.non_negative(blue, noisy)[leaves], blue.variances[leaves]


def equal_groups(mass: FloatArray, n_groups: int) -> IntArray:
    """First place of each of at most so many groups of neighbours of about equal mass.

    What one place holds beyond its group counts for nothing, so that the others share the rest.
    """
    for _ in range(n_groups):  # each time there may be further ones
        mass = np.minimum(mass, mass.sum() / n_groups)
    middles = np.cumsum(mass) - mass / 2
    groups = (middles * (n_groups / mass.sum())).astype(np.int64)
    return np.flatnonzero(np.diff(groups, prepend=-1))


def _lengths(size: int) -> tuple[int, ...]:
    """Lengths from 1 to size - 1, which no level of a tree divides alike."""
    if size - 1 <= TUNING.ranges:
        return tuple(range(1, size))
    golden = (math.sqrt(5) - 1) / 2
    places = np.arange(1, TUNING.ranges + 1) * golden % 1
    return tuple(np.unique(1 + (places * (size - 1)).astype(np.int64)).tolist())


def _reach(alpha: float) -> float:
    """Standard deviations that a Laplace variable exceeds with probability alpha (Chernoff)."""
    rates = math.sqrt(2) * np.linspace(0.001, 0.999, 999)
    return float(((math.log(2 / alpha) - np.log1p(-(rates**2) / 2)) / rates).min())


# --- by private selections


class _Selection(NamedTuple):
    """One quantile, selected on the records between two that were selected before.

    Attributes
    ----------
    which : int
        Which quantile.
    below, above : int
        The quantiles between which it lies, or -1 for an end of the line.
    fraction : Fraction
        Its place between them: 1/2 is the median of the records there.
    epsilon : Fraction
    """

    which: int
    below: int
    above: int
    fraction: Fraction
    epsilon: Fraction

    @property
    def score_range(self) -> int:
        """R of the score, see `LinePieces`."""
        p, t = self.fraction.numerator, self.fraction.denominator
        return 2 * max(p, t - p)

    def error(self, candidates: float) -> float:
        """Error in records that is exceeded with probability 1 / ``candidates`` of the line's.

        Every integer whose score is k below the best passes its coin with probability
        exp(-rate k), so that one of S integers beyond log(S / alpha) / rate is selected with
        probability alpha at most; the best score is 0, and t scores are one record.
        """
        rate = float(noise_rate(self.epsilon, self.score_range))
        return math.log(candidates) / rate / self.fraction.denominator


class Plan(NamedTuple):
    """Selections in the order in which they are made.

    Attributes
    ----------
    method : {"independent", "recursive"}
    selections : list of Selection
    """

    method: str
    selections: list[_Selection]

    def expected_errors(self) -> FloatArray:
        """Predicted errors in records on dense values, with independent signs."""
        found = np.zeros(len(self.selections) + 1)
        for each in self.selections:
            f = float(each.fraction)
            above = f * found[each.above]
            found[each.which] = math.hypot(
                each.error(math.e), (1 - f) * found[each.below], above if each.above >= 0 else 0.0
            )
        return found[:-1]

    def rank_errors(self, size: int, level: float) -> FloatArray:
        """Errors in records that all hold together with probability ``level``, on any data."""
        candidates = size * self.places(size) * len(self.selections) / (1 - level)
        found = np.zeros(len(self.selections) + 1)
        for each in self.selections:
            f = float(each.fraction)
            inherited = (1 - f) * found[each.below] + f * found[each.above]
            found[each.which] = each.error(candidates) + inherited
        if self.method == "independent":
            # Noise may have reversed the values; the k-th smallest then has the errors of several.
            found[:] = found.max()
        return found[:-1]

    def release(
        self, positions: IntArray, size: int, level: float, source: NoiseSource
    ) -> tuple[IntArray, FloatArray]:
        """Quantiles of integers below ``size``, and errors that hold with probability ``level``."""
        return select_quantiles(positions, size, self, source), self.rank_errors(size, level)

    def places(self, size: int) -> int:
        """Number of places into which each integer is divided."""
        return 1 if self.method == "independent" else min(TUNING.places, MOST_INTEGERS // size)


AnyPlan: TypeAlias = Plan | TreePlan


def plan_quantiles(quantiles: Sequence[int], epsilon: Fraction, size: int) -> dict[str, AnyPlan]:
    """Plans for increasing quantiles in parts of `UNIT`, the one of least predicted error first.

    Parameters
    ----------
    quantiles : sequence of int
        Strictly increasing, between 0 and `UNIT`.
    epsilon : Fraction
        Budget of one record.
    size : int
        Number of integers on the line.

    Returns
    -------
    dict of str to Plan or TreePlan

    Raises
    ------
    ValueError
        If epsilon is too small for the noise of some selection.
    """
    count = len(quantiles)
    alone = [
        _Selection(i, -1, -1, Fraction(q, UNIT), epsilon / count) for i, q in enumerate(quantiles)
    ]
    plans: list[AnyPlan] = [Plan("independent", alone)]
    if count > 1:
        plans.append(Plan("recursive", _split(quantiles, epsilon)))
    if size <= TUNING.leaves:
        plans.append(TreePlan([each.fraction for each in alone], epsilon, size))
    plans.sort(key=lambda plan: float(plan.expected_errors().mean()))
    return {plan.method: plan for plan in plans}


def _split(quantiles: Sequence[int], epsilon: Fraction) -> list[_Selection]:
    """The middle quantile, then those of each side with what is left of epsilon.

    The levels that a part still needs have equal shares: of geometric ones these have the least
    predicted error.
    """
    ends = [*quantiles, 0]
    found: list[_Selection] = []
    # First and last quantile of a part, the quantiles around it, and the epsilon left for it.
    parts = [(0, len(quantiles) - 1, -1, -1, epsilon)]
    for first, last, below, above, left in parts:
        height = (last - first + 1).bit_length()
        share = left / height
        middle = (first + last) // 2
        low, high = (ends[below] if below >= 0 else 0), (ends[above] if above >= 0 else UNIT)
        fraction = Fraction(ends[middle] - low, high - low)
        found.append(_Selection(middle, below, above, fraction, share))
        rest = left - share
        if first < middle:
            parts.append((first, middle - 1, below, middle, rest))
        if middle < last:
            parts.append((middle + 1, last, middle, above, rest))
    return found


def select_quantiles(positions: IntArray, size: int, plan: Plan, source: NoiseSource) -> IntArray:
    """Select the quantiles of integers.

    Parameters
    ----------
    positions : ndarray of int64, shape (n_records,)
        Integers of the line, 0 to size - 1. They are overwritten.
    size : int
        Public length of the line, at most 2**62.
    plan : Plan
    source : NoiseSource

    Returns
    -------
    ndarray of int64, shape (n_quantiles,)
        Selected integers; in the order of the quantiles, but noise may have reversed them.
    """
    # Privacy. Each record has a place: its integer, refined by its own coins. Independent: one
    # selection after the other, the epsilons add up. Recursive: a selection reads the records
    # between two places that were released before; of those of one level every record is in one
    # part only, so a level costs its largest epsilon, and the epsilons from the first selection to
    # any last one sum to the whole. Whether a part is empty of places is known from what was
    # released.
    count = plan.places(size)
    # In place: records may be many.
    places = positions
    if count > 1:
        coins = source.record_below(count, len(positions), positions)
        places *= count
        places += coins
        del coins
    places.sort()
    end = size * count
    found = np.zeros(len(plan.selections), dtype=np.int64)
    for each in plan.selections:
        low = 0 if each.below < 0 else int(found[each.below]) + 1
        high = end if each.above < 0 else int(found[each.above]) + 1
        if low >= high:
            # Nothing is left between the two, and nothing in the parts that this one would make.
            found[each.which] = high - 1
            continue
        inside = places[slice(*np.searchsorted(places, [low, high]))]
        found[each.which] = low + select_on_pieces(
            LinePieces(inside, low, high, each.fraction),
            high - low,
            each.epsilon,
            each.score_range,
            random_state=source,
        )
    return found // count


class LinePieces:
    """Pieces on which the score of a quantile is constant, as `select_on_pieces` takes them.

    Parameters
    ----------
    places : ndarray of int64, shape (n_records,)
        Ascending places of records.
    low, high : int
        The line has the integers low, ..., high - 1, counted from 0.
    fraction : Fraction
        The quantile.
    """

    # Privacy. With the quantile p / t, ``under`` records below z and ``until`` at or below it, the
    # score of z is -max(0, t under - p n, p n - t until): how far p n / t is from the ranks that z
    # has, in t-ths of a record. A record more below z moves the second term by t - p and the third
    # by p - t; above z by -p and p; at z by -p and p - t. So every score moves by at most
    # m = max(p, t - p), up or down: all moves lie in an interval of length R = 2 m.

    def __init__(self, places: IntArray, low: int, high: int, fraction: Fraction) -> None:
        self._places, self._low, self._high, self._fraction = places, low, high, fraction
        # Each value is a piece, and so are the integers before it or after the last, if any.
        self.n_pieces, self.widest, before = 0, 1, low - 1
        for part in batches(len(places)):
            steps = np.diff(places[part], prepend=before)
            before = int(places[part.stop - 1])
            self.n_pieces += int(np.count_nonzero(steps) + np.count_nonzero(steps > 1))
            self.widest = max(self.widest, int(steps.max()) - 1)
        self.n_pieces += before + 1 < high
        self.widest = max(self.widest, high - 1 - before)

    def within(self, gap: int | None) -> tuple[IntArray, IntArray, IntArray]:
        """See `Pieces`; the line begins with 0."""
        places, low, high = self._places, self._low, self._high
        p, t, n = self._fraction.numerator, self._fraction.denominator, len(places)
        first, stop = 0, n
        if gap is not None and n:
            # Some piece has the wanted rank, and the score 0; others lose t with each rank.
            first, stop = max(-((gap - p * n) // t) - 1, 0), min((p * n + gap) // t + 1, n)
            first = int(np.searchsorted(places, places[first]))
            stop = int(np.searchsorted(places, places[stop - 1], side="right"))
            low = int(places[first - 1]) + 1 if first else low
            high = int(places[stop]) if stop < n else high
        inside = places[first:stop]
        last = np.flatnonzero(np.diff(inside, append=high))
        # Before each value the integers since the value before it, and after the last one the rest.
        starts, scores, until = np.zeros((3, 2 * len(last) + 1), dtype=np.int64)
        starts[0], starts[1::2], starts[2::2] = low, inside[last], inside[last] + 1
        until[0], until[1::2], until[2::2] = first, first + last + 1, first + last + 1
        until = t * until - p * n
        scores[0], scores[1:] = until[0], until[:-1]
        scores = np.minimum(-np.maximum(scores, -until), 0)
        widths = np.diff(starts, append=high)
        kept = widths > 0
        return starts[kept] - self._low, scores[kept], widths[kept]
