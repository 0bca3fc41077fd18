"""Nested groups of the codes of a column, what rows need to know of it, and what was tuned.

The facts about an attribute that rows need, all released or public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ..._validation import TINY, FloatArray, IntArray, running_sums
from ...release.basis import Ladder


class Attribute(NamedTuple):
    """Released probabilities of an attribute, and the groups that rows tell apart.

    Attributes
    ----------
    mu : ndarray of float64
        Probability of each code.
    groups : ndarray of int64
        Group of each code, without gaps.
    order : ndarray of int64
        Groups in the order in which they are cut.
    """

    mu: FloatArray
    groups: IntArray
    order: IntArray

    @property
    def grouped(self) -> FloatArray:
        """Probability of each group."""
        return np.bincount(self.groups, weights=self.mu).astype(np.float64, copy=False)

    def codes(self, drawn: NDArray[np.integer], generator: np.random.Generator) -> NDArray[Any]:
        """Codes drawn inside of the given groups by their probabilities."""
        if len(self.order) == len(self.mu):
            return drawn
        sequence = np.argsort(self.groups, kind="stable")
        ends = np.searchsorted(self.groups[sequence], np.arange(len(self.order) + 1))
        first, stop = ends[drawn], ends[drawn + 1]
        # Codes of a group of probability zero are equally likely.
        reach = running_sums(self.mu[sequence] + _EVEN)
        wanted = reach[first] + generator.random(len(drawn)) * (reach[stop] - reach[first])
        found = np.searchsorted(reach, wanted, side="right") - 1
        return sequence[np.clip(found, first, stop - 1)]


def equal_mass_bins(mass: FloatArray, order: IntArray, n_bins: int) -> IntArray:
    """Bin of each code: consecutive in the order, about equal in mass, without gaps."""
    ordered = mass[order]
    middle = (np.cumsum(ordered) - ordered / 2) / max(ordered.sum(), 1e-300)
    wanted = np.minimum((middle * n_bins).astype(np.int64), n_bins - 1)
    bins = np.empty(len(mass), dtype=np.int64)
    bins[order] = np.unique(wanted, return_inverse=True)[1].reshape(-1)
    return bins


# ------------------------------------------------------------------------------------------------
# The numbers of views that change a release, each with unit, meaning and what chose it.
#
# "Plan": errors of questions on all tables but one, by value. "Questions":
# ``benchmarks/questions.py``. "Fidelity": marginals and ranges of the tables of
# ``benchmarks/_fidelity_tables.py``.


@dataclass(frozen=True)
class Tuning:
    """How epsilon is divided, what is measured, and how rows follow it."""

    # ---------------------------------------------------------------- shares of epsilon

    # By how much "ranges" raises the budget of single columns, and "cells" lowers it; questions.
    word: float = 2.0
    # Share that the choice of sets takes, and what of it the distances of the others; questions.
    choice: Fraction = Fraction(1, 20)
    rest: Fraction = Fraction(2, 5)
    # Share of single columns beside one table of all, and joint counts; plan.
    beside: Fraction = Fraction(1, 10)
    # Mean distance of pairs of columns from independent ones, as a share of the records, for each
    # ordered column and one more: its median over tables, and the standard deviation of its
    # logarithm; distances of the tables of ``benchmarks/_question_tables.py``.
    dependence: float = 0.07
    unlike: float = 0.8

    # ---------------------------------------------------------------- what is measured

    # The square of the number of sets, for each unit of records times epsilon and cell; plan.
    sets: float = 2.0
    # Records times epsilon of a mean cell from which on all columns are one table; plan.
    whole: float = 5.0
    # Empty cells that may pass as joint counts, for each record and for each empty cell; fidelity.
    false: float = 0.01

    # ---------------------------------------------------------------- groups of codes

    # Most groups of a column in tables of several; fidelity.
    groups: int = 128
    # Columns of at most so many codes have a group for each; fidelity.
    few: int = 16
    # Blocks of a column, for each cube root of its records times epsilon; the share of its budget
    # that they take; and after how many halvings it is measured again; questions.
    blocks: float = 4.5
    of_blocks: Fraction = Fraction(7, 10)
    halvings: int = 3

    # ---------------------------------------------------------------- the choice of sets

    # Bins of an attribute in the scores of sets; fidelity.
    bins: int = 8

    # ---------------------------------------------------------------- rows

    # Rows that are fitted first, and in the end at least; questions.
    rows: int = 30_000
    # Rows of a trial that asks for the sizes of errors only, and of the public table that it reads;
    # widths of `tests/test_expected.py`.
    rows_of_trial: int = 10_000
    # Sweeps of fitting few rows and then all; weights alone have twice as many; questions.
    sweeps: int = 2
    # Share of the rows that take a new code when a column is drawn again; questions.
    redrawn: float = 0.25
    # Share of a step of a factor that is taken: the steps of views that overlap add up; fidelity.
    damped: float = 0.5
    # A model's count below this is as uncertain as this one, in standard deviations of the noise;
    # fidelity.
    floor: float = 0.02
    # Share of even widths in the mass by which codes are grouped; fidelity.
    kept: float = 0.1
    # Standard deviations by which a prior must be nearer to tables to be used;
    # `tests/algorithms/marginals/test_prior.py`.
    clear: float = 2.0
    # Records that rows without a prior count for beside those of one; the same tests.
    without: float = 200.0


TUNING = Tuning()

# What rounding may leave of a probability of zero.
_EVEN = 1e-15
# A table of several columns has at most so many cells, and there are at most so many rows.
MOST_CELLS = 1 << 18
ROWS_ONCE = 100_000

# ------------------------------------------------------------------------------------------------
# How codes are grouped for tables of several columns, and in which blocks a column is measured.


def ladder_of(
    counts: FloatArray,
    order: IntArray | None,
    most_units: int = TUNING.groups,
    finest: float = math.inf,
    told: IntArray | None = None,
) -> Ladder:
    """Nested groups of the codes of a column, from its released counts.

    Parameters
    ----------
    counts : ndarray of float64
        Released; negative ones count as zero.
    order : ndarray of int64 or None
        Codes in an order in which neighbours are similar. None: there is none, and they are taken
        by their counts, the largest first.
    most_units : int, default=128
        A power of two.
    finest : float, optional
        Groups of a column that tables can afford. With no more codes there is a unit for each, and
        some units are empty; with more, none is.
    told : ndarray of int64, optional
        Public group of each code, ascending: units hold whole ones. By default the codes.
    """
    if told is not None and int(told.max()) + 1 < len(counts):
        own = np.bincount(told, weights=counts).astype(np.float64, copy=False)
        coarse = ladder_of(own, np.arange(len(own)), most_units, finest)
        return coarse._replace(units=coarse.units[told])
    n_codes = len(counts)
    mass = np.maximum(counts, 0.0)
    sequence = np.argsort(-mass, kind="stable") if order is None else np.asarray(order)
    units = np.empty(n_codes, dtype=np.int64)
    if n_codes <= TUNING.few:
        units[sequence] = np.arange(n_codes)
        return Ladder(units, (1, n_codes) if n_codes > 1 else (1,))
    least = 1 << ((n_codes - 1).bit_length() - 1)
    n_units = min(2 * least if least < n_codes <= finest else least, most_units)
    share = mass[sequence] / max(mass.sum(), 1e-300)
    units[sequence] = _halved((1 - TUNING.kept) * share + TUNING.kept / n_codes, n_units)
    return Ladder(units, tuple(1 << level for level in range(n_units.bit_length())))


def _halved(mass: FloatArray, n_units: int) -> IntArray:
    """Units of consecutive codes, halved by mass again and again.

    With no more codes than units each holds one code or none. A frequent code is alone in a group
    early, and leaves units without a code.
    """
    reach = np.concatenate([[0.0], np.cumsum(mass)])
    ends = [0, len(mass)]
    n_parts = 1
    while n_parts < n_units:
        n_parts *= 2
        room = n_units // n_parts
        cut = [0]
        for start, stop in zip(ends[:-1], ends[1:], strict=True):
            middle = (reach[start] + reach[stop]) / 2
            at = int(np.searchsorted(reach, middle))
            if at > start and middle - reach[at - 1] < reach[min(at, len(mass))] - middle:
                at -= 1
            if stop - start <= 2 * room:
                # No unit holds two codes if there are enough.
                at = min(max(at, stop - room), start + room)
            cut += [min(max(at, start), stop), stop]
        ends = cut
    return np.repeat(np.arange(n_units), np.diff(ends))


def between_groups(mass: FloatArray, groups: IntArray, size: int, ordered: IntArray) -> FloatArray:
    """What makes values of codes, (n_codes, size), from those of consecutive groups of them.

    Values of ordered codes are linear in normal scores of ranks between the middles of groups, and
    for one step beyond, as the logarithm of the density of normal variables is in each of them. The
    others have the values of their groups.
    """
    found, own = np.eye(size)[groups], groups[ordered]
    mass = np.maximum(mass[ordered], 0.0) + TINY
    scores = ndtri((np.cumsum(mass) - mass / 2.0) / mass.sum())
    middles = np.bincount(own, mass * scores, size) / np.maximum(np.bincount(own, mass, size), TINY)
    held = np.unique(own)
    middles = middles[held]
    if len(held) < 2 or not (np.diff(middles) > 0).all():
        return found
    at = np.clip(np.searchsorted(middles, scores) - 1, 0, len(held) - 2)
    steps = np.clip((scores - middles[at]) / np.diff(middles)[at], -1.0, 2.0)[:, None]
    found[ordered] = (1.0 - steps) * np.eye(size)[held[at]] + steps * np.eye(size)[held[at + 1]]
    return found


class ColumnPlan(NamedTuple):
    """In which blocks a column is measured, and with which shares of its budget.

    Attributes
    ----------
    sizes : tuple of int
        Levels of blocks from 1 to the lattice.
    shares : dict of int to Fraction
        Of each level that is measured; they add up to 1.
    """

    sizes: tuple[int, ...]
    shares: dict[int, Fraction]


def column_plan(n_codes: int, ordered: bool, signal: float = math.inf) -> ColumnPlan:
    """In which blocks a column is measured for this signal.

    The noise of a range grows with the square root of the number of blocks, and what a cut block
    hides falls with it; so the number grows slowly with the signal. The blocks take most of the
    budget, and some levels below them the rest, down to the codes: what is inside a block matters
    where the blocks differ much, and noise of fine codes is left out elsewhere
    (`ColumnEstimate.fit`). A column without an order is measured code by code, as is one of codes
    that are as many as the blocks.

    Parameters
    ----------
    n_codes : int
    ordered : bool
        Whether neighbouring codes are similar.
    signal : float, default=inf
        Released number of records times the epsilon of the column.
    """
    few = max(TUNING.blocks * signal ** (1 / 3), 2.0) if ordered else math.inf
    halvings = max(round(math.log2(n_codes / few)), 0) if few < n_codes else 0
    if not halvings:
        return ColumnPlan((1, n_codes) if n_codes > 1 else (1,), {n_codes: Fraction(1)})
    blocks = math.ceil(n_codes / (1 << halvings))
    sizes = (1, *(blocks << level for level in range(halvings + 1)))
    depth = math.ceil(halvings / TUNING.halvings)
    finer = [blocks << (halvings * (level + 1) // depth) for level in range(depth)]
    rest = (1 - TUNING.of_blocks) / depth
    return ColumnPlan(sizes, {blocks: TUNING.of_blocks, **dict.fromkeys(finer, rest)})
