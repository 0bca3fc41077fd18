"""The numbers of linear models that change a release, each with unit, meaning and what chose it.

Benchmark: ``benchmarks/models.py``, ``--regression`` for `fit_auto`. Shares of epsilon, and what
else is expected, are those of additive models.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TUNING", "Tuning"]


@dataclass(frozen=True)
class Tuning:
    """Which solver, in which bins, and how searches move."""

    # Least ratio of signal to noise at which second moments are better: they are worse up to ratios
    # of 20 to 40, and with many categories to 100.
    clear: float = 40.0
    # Bins of a number in histograms at least, because the noise of a slope grows with their number;
    # and records times epsilon of each column for one more.
    bins: int = 16
    signal: float = 1_000.0
    # Records that each group has at least in naive Bayes, so that none is impossible.
    records: float = 0.5
    # Rounds of a search at least, and at most those of PrivLocal; records times epsilon for each,
    # its first step and the last, in weights; chosen on generated tables.
    least: int = 8
    most: int = 120
    round: float = 400.0
    first: float = 0.4
    last: float = 0.05
    # Of PrivGene, as published: candidates, those that survive a round, records times epsilon for
    # each of them; rounds at most; and the largest mutation of a weight, beside that of the round
    # before.
    population: int = 200
    survivors: int = 10
    record: float = 800.0
    most_genetic: int = 12
    decay: float = 0.9


TUNING = Tuning()
