"""The numbers of views that change a release, each with unit, meaning and what chose it.

"Plan": errors of questions on all tables but one, by value. "Questions":
``benchmarks/questions.py``. "Fidelity": marginals and ranges of the tables of
``benchmarks/_fidelity_tables.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

__all__ = ["MOST_CELLS", "ROWS_ONCE", "TINY", "TUNING", "Tuning"]


@dataclass(frozen=True)
class Tuning:
    """How epsilon is divided, what is measured, and how rows follow it."""

    # ---------------------------------------------------------------- shares of epsilon

    # Budget of a single column, as a part of that of a table of a chosen set; plan.
    column: float = 0.5
    # By how much "ranges" raises it, and "cells" lowers it; questions.
    word: float = 2.0
    # Share that the coarse tables of all pairs take together, if they pay; plan.
    coarse: Fraction = Fraction(3, 25)
    # Share that the choice of sets takes, in AIM as published; plan.
    choice: Fraction = Fraction(1, 10)
    # Share of single columns beside pairs with a label, one table of all, and joint counts; plan.
    beside: Fraction = Fraction(1, 10)
    # Share of the grid of a label; plan.
    grid: Fraction = Fraction(1, 5)
    # Sets of other columns beside pairs with a label, as a part of those without one; plan.
    others: float = 0.5
    # Most of epsilon for sums by group; questions.
    means: Fraction = Fraction(1, 3)

    # ---------------------------------------------------------------- what is measured

    # Records times the epsilon of a coarse table from which on they pay; plan.
    pays: float = 8.0
    # The square of the number of sets, for each unit of records times epsilon and cell; plan.
    sets: float = 0.5
    # Cells of a typical table of a set: larger tables have coarser grids; plan.
    typical: int = 60
    # Records times epsilon of a mean cell from which on categories are told apart; plan.
    told_apart: float = 1.5
    # Records times epsilon of a mean cell from which on all columns are one table, and of one of a
    # grid of a label; plan.
    whole: float = 5.0
    # Empty cells that may pass as joint counts, for each record and for each empty cell; fidelity.
    false: float = 0.01
    # Bins of joint counts by density, and levels of their counts, in which they are compared with
    # empty cells; fidelity.
    densities: int = 100
    levels: int = 3

    # ---------------------------------------------------------------- groups of codes

    # Most groups of a column in tables of several; fidelity.
    groups: int = 128
    # Most groups of a column in the coarse tables of pairs; questions.
    coarse_groups: int = 5
    # Columns of at most so many codes have a group for each, those of more than `many` are measured
    # in about so many blocks; fidelity.
    few: int = 16
    # By how much a level of groups counts more than the next coarser one; fidelity.
    finer: float = 4.0
    # Columns of at most so many codes are measured code by code; questions.
    direct: int = 24
    # Columns of more codes are measured in blocks, with this share of their budget, and again after
    # so many halvings; questions.
    many: int = 48
    of_blocks: Fraction = Fraction(7, 10)
    halvings: int = 6

    # ---------------------------------------------------------------- the choice of sets

    # Bins of an attribute in the scores of sets; fidelity.
    bins: int = 8
    # Noise of a set's table that counts against its score, in its expected absolute noise;
    # questions.
    noise: float = 1.0
    # Rounds of choices after the first; questions.
    rounds: int = 3

    # ---------------------------------------------------------------- rows

    # Rows while sets are chosen, and in the end at least; questions.
    rows: int = 30_000
    # Sweeps of fitting after a round and in the end; questions.
    sweeps: int = 2
    # Rounds of fitting weights alone; questions.
    settled: int = 12
    # Share of a step of a factor that is taken: the steps of views that overlap add up; fidelity.
    damped: float = 0.5
    # Shares are compared as if so many more rows lay in each cell; fidelity.
    more_rows: float = 3.0
    # A model's count below this is as uncertain as this one, in standard deviations of the noise;
    # fidelity.
    floor: float = 0.02
    # Share of what is expected that is kept whatever noisy counts say: of even widths in the mass
    # by which codes are grouped, and of the rows in a cell of a grid of a label; fidelity.
    kept: float = 0.1
    # Standard deviations of the noise by which blocks of codes must stand out, a prior be nearer to
    # tables to be used, and a column be away from a prior to be told from it; questions,
    # `tests/test_prior.py`.
    clear: float = 2.0
    # Records that rows without a prior count for beside those of one; `tests/test_prior.py`.
    without: float = 200.0


TUNING = Tuning()

# Keeps ratios and logarithms finite.
TINY = 1e-9
# A table of several columns has at most so many cells, and there are at most so many rows.
MOST_CELLS = 1 << 18
ROWS_ONCE = 100_000
