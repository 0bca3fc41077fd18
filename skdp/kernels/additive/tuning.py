"""The numbers of additive models that change a release, each with unit, meaning and what chose it.

Benchmark: ``benchmarks/models.py``, ``--default`` for classes and ``--regression`` for numbers.
Scores of classes are logits, those of numbers shares of half the public range.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

__all__ = ["TINY", "TUNING", "Tuning"]


@dataclass(frozen=True)
class Tuning:
    """How epsilon is divided, what is measured, and what functions are expected to be."""

    # ---------------------------------------------------------------- shares of epsilon

    # Share of the number of records.
    total: Fraction = Fraction(1, 50)
    # Records times epsilon that a calibration takes, and as many the mean and the spread of a
    # number; and the least and the most that either takes of epsilon.
    known: float = 250.0
    least_known: float = 0.01
    most_known: float = 0.15
    # Share of the weights of columns, in each of two steps.
    weights: Fraction = Fraction(3, 40)
    # Of the rest, share of the first histograms where rounds of residuals follow, and of each round
    # share of its line search.
    first: Fraction = Fraction(1, 2)
    search: Fraction = Fraction(1, 10)
    # Share of functions of two columns, where they may pay; what they leave goes to one more round.
    pairs: Fraction = Fraction(1, 4)
    # Of the budget of a pair the share that chooses it.
    choice: Fraction = Fraction(1, 5)
    # Of the first histograms of numbers the share that counts records.
    counting: Fraction = Fraction(1, 4)
    # Of a Newton step the share of the gradient.
    gradient: Fraction = Fraction(4, 5)

    # ---------------------------------------------------------------- what is measured

    # Records times epsilon from which on each column has a weight, not one factor for all.
    weights_pay: float = 4_000.0
    # Records times epsilon, for each group, that a round of residuals takes; rounds grow with its
    # cube root, up to a number.
    round_pays: float = 60.0
    most_rounds: int = 8
    # Largest sum of a record's absolute scores that counts in full in a Newton step.
    reach: int = 5
    # Residuals of numbers are cut to so many of their mean absolute values.
    cut: float = 3.0
    # Scores are counted by class in intervals of this width, up to this score either way.
    width: float = 1.0
    ends: float = 10.0
    # Most groups of a column in a pair, columns that pairs are chosen among, and pairs.
    groups: int = 8
    columns: int = 12
    most_pairs: int = 6
    # A pair pays if its sums of residuals are in each cell this times the scale of their noise, and
    # one can hope for sums of this share of the records.
    pays: float = 0.5
    hope: float = 0.02

    # ---------------------------------------------------------------- what is expected

    # Variance of a function of a column, of what sets apart each group of an ordered one, and the
    # pull to the mean beside that of neighbours to each other.
    function: float = 4.0
    rough: float = 0.25
    pull: float = 0.01
    # Each of so many powers of ten, from 1 down, may be the scale of these variances.
    scales: int = 4
    # Of a function of a pair: share of the variance that all places of an axis have in common, and
    # of the rest the share that each has by itself.
    pair: float = 0.4
    # Functions stay within this of their mean.
    most: float = 4.0
    # Standard deviation of shifts, factors and weights about what is expected.
    spread: float = 0.2
    # Step along residuals that is expected.
    step: float = 0.5
    # Standard deviation of the mean of a number and of features.
    mean: float = 0.4
    # Share of what is expected that is kept whatever noise says: of the factor of all functions, of
    # the records in a cell of a pair, and of the curvature of a record, without which Newton's
    # steps would leave all bounds where scores are far too large.
    kept: float = 0.1
    # Newton's steps for what was released.
    steps: int = 10

    @property
    def all_scales(self) -> list[float]:
        """The scales of the prior that are tried."""
        return [10.0**-power for power in range(self.scales)]


TUNING = Tuning()

# Keeps ratios and logarithms finite.
TINY = 1e-9
