"""Figures of the papers, redrawn with this library.

Each module holds the figures of one paper in ``FIGURES``, a dict from a name to a function
``(out_dir, quick) -> finding``. The function writes ``NAME.png`` and ``NAME.csv``, which has one
row for each number in the figure. The `Finding` has the claim of the paper, the result of this
run, and the rules by which the two are compared. Run one module as
``python -m benchmarks.reproduce.gblue --out DIR``, all as ``python -m benchmarks.reproduce``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["MARKERS", "PALETTE", "Figure", "Finding", "run"]

# Okabe and Ito's colours, which colour-blind readers can tell apart, without yellow. Lines also
# differ in their markers.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000")
MARKERS = "os^vD*x"


@dataclass(frozen=True)
class Finding:
    """What a figure shows.

    Parameters
    ----------
    claim : str
        What the paper says, in our words.
    found : str
        The numbers of this run.
    checks : mapping of str to bool
        Parts of the claim, each as a rule on the numbers, and whether the rule holds.
    """

    claim: str
    found: str
    checks: Mapping[str, bool]

    def __post_init__(self) -> None:
        if not self.checks:
            raise ValueError("A finding without a check cannot agree or disagree.")

    @property
    def verdict(self) -> str:
        """Whether all, some or none of the checks hold."""
        held = [bool(holds) for holds in self.checks.values()]
        return "agrees" if all(held) else "agrees in part" if any(held) else "disagrees"

    @property
    def rules(self) -> str:
        """The checks in one line."""
        return "; ".join(
            f"{rule}: {'yes' if holds else 'no'}" for rule, holds in self.checks.items()
        )

    def __str__(self) -> str:
        return f"The paper: {self.claim} Found: {self.found} It {self.verdict} ({self.rules})."


Figure = Callable[[Path, bool], Finding]


def run(figures: Mapping[str, Figure]) -> None:
    """Command line of a module: draw its figures and print the findings."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder to write")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("names", nargs="*", help="figures to draw; all by default")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(figures)
    if unknown:
        parser.error(f"no figure {', '.join(sorted(unknown))}; there are {', '.join(figures)}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or figures:
        print(f"{name}: {figures[name](arguments.out, arguments.quick)}")
