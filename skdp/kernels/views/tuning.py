"""The numbers of views that change a release, each with unit, meaning and what chose it.

Benchmarks: "plan" is ``benchmarks/plan.py`` (leave one table out), "questions"
``benchmarks/questions.py``, "fidelity" ``benchmarks/fidelity.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

__all__ = ["MOST_CELLS", "TINY", "TUNING", "Tuning"]


@dataclass(frozen=True)
class Tuning:
    """How epsilon is divided, what is measured, and how rows follow it."""

    # ---------------------------------------------------------------- shares of epsilon

    # Budget of a single column, as a part of that of a table of a chosen set; plan.
    column: float = 0.5
    # By how much "ranges" raises it, and "cells" lowers it; questions.
    word: float = 2.0
    # Share that the coarse tables of all pairs take together, if they pay; plan.
    coarse: Fraction = Fraction(12, 100)
    # Share that the choice of sets takes; plan.
    choice: Fraction = Fraction(10, 100)
    # Share of single columns where pairs with a label follow; plan.
    beside_label: Fraction = Fraction(10, 100)
    # Share of the grid of a label; plan.
    grid: Fraction = Fraction(20, 100)
    # Sets of other columns beside pairs with a label, as a part of those without one; plan.
    others: float = 0.5
    # Share of single columns beside a table of all columns, where a mean cell has less than so many
    # noise scales of records; questions.
    beside_whole: float = 0.2
    well_above: float = 30.0
    # Share of single columns beside joint counts; fidelity.
    beside_joint: Fraction = Fraction(1, 20)
    # Most of epsilon for sums by group; questions.
    means: Fraction = Fraction(1, 3)
    # Noise of the mean distance of pairs that are not measured, as a share of the records;
    # questions.
    misfit: float = 0.03

    # ---------------------------------------------------------------- what is measured

    # Records times the epsilon of a coarse table from which on they pay; plan.
    pays: float = 8.0
    # The square of the number of sets, for each unit of records times epsilon and cell; plan.
    sets: float = 1.0
    # Power of the number of cells by which the error of a table grows; plan.
    spread: float = 1.2
    # Cells of a typical table of a set: larger tables have coarser grids; plan.
    typical: int = 60
    # Cells of a grid, for each unit of (records times epsilon) to the power 0.8; plan.
    cells: float = 1.0
    # Records times epsilon of a mean cell from which on categories are told apart; plan.
    told_apart: float = 1.4
    # Records times epsilon of a mean cell from which on all columns are one table, and of one of a
    # grid of a label; plan.
    whole: float = 5.0
    # Most groups of a column in the grid of a label; fidelity.
    most_in_grid: int = 8
    # Empty cells that are expected to pass as joint counts, for each record, and the least epsilon
    # of these; fidelity.
    false: float = 0.02
    least_joint: int = 5
    # Share of the records that joint counts must hold; fidelity.
    enough: float = 0.8

    # ---------------------------------------------------------------- groups of codes

    # Most groups of a column in tables of several; fidelity.
    groups: int = 128
    # Most groups of a column in the coarse tables of pairs; questions.
    coarse_groups: int = 5
    # Columns of at most so many codes have a group for each; fidelity.
    few: int = 16
    # By how much a level of groups counts more than the next coarser one; fidelity.
    finer: float = 4.0
    # Weight of even widths in the mass by which codes are grouped; fidelity.
    even: float = 0.1
    # Columns of at most so many codes are measured code by code, those of more than `many` first in
    # about so many blocks, with this share of their budget, and again after so many halvings;
    # questions.
    direct: int = 24
    many: int = 48
    blocks: int = 16
    of_blocks: Fraction = Fraction(7, 10)
    halvings: int = 6

    # ---------------------------------------------------------------- the choice of sets

    # Bins of an attribute in the scores of sets of two columns, and how many less for each more;
    # fidelity.
    bins: int = 8
    fewer_bins: int = 2
    # Noise of a set's table that counts against its score, in its expected absolute noise;
    # questions.
    noise: float = 0.6
    # Most bins of an attribute by which pairs that are not measured are judged; questions.
    judged: int = 4
    # Rounds of choices after the first; questions.
    rounds: int = 3
    # Rounds of AIM for each column, and the share of a round that its choice takes; fidelity.
    aim_rounds: int = 16
    aim_choice: Fraction = Fraction(1, 4)

    # ---------------------------------------------------------------- rows

    # Rows while sets are chosen; questions.
    rows: int = 30_000
    # In the end so many a record, within bounds; fidelity.
    last_rows: int = 4
    fewest_rows: int = 20_000
    most_rows: int = 100_000
    # Sweeps of fitting after a round, and in the end; questions.
    sweeps: int = 3
    last_sweeps: int = 2
    # Rounds of fitting weights alone, and in the end to rows of a prior; questions.
    settled: int = 6
    last_settled: int = 24
    # Largest step of a factor in one round, as a logarithm, and the share of a step that is taken:
    # the steps of views that overlap add up; fidelity.
    step: float = 1.5
    damped: float = 0.6
    # Shares are compared as if so many more rows lay in each cell; fidelity.
    more_rows: float = 3.0
    # A model's count below this is as uncertain as this one, in standard deviations of the noise;
    # fidelity.
    floor: float = 0.02
    # Share of what rows have in a cell of a grid of a label that is kept at least; fidelity.
    kept: float = 0.1
    # Sets of at most so many columns within a wider one are looked at by themselves; fidelity.
    narrow: int = 3
    # Standard deviations by which a block of codes stands out from the noise; questions.
    clear: float = 3.0
    # Standard deviations of the noise that a prior must be nearer to tables to be used, and that a
    # column must be away from it to be told from it; `tests/test_prior.py`.
    apart: float = 2.0
    # Records that rows without a prior count for beside those of one; `tests/test_prior.py`.
    without: float = 200.0


TUNING = Tuning()

# Keeps ratios and logarithms finite.
TINY = 1e-9
# A table of more than two columns has at most so many cells.
MOST_CELLS = 200_000
