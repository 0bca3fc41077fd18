"""Figures of the papers, redrawn with this library.

Each module holds the figures of one paper in ``FIGURES``, a dict from a name to a function
``(out_dir, quick) -> finding``. The function writes ``NAME.png`` and ``NAME.csv``, which has one
row for each number in the figure. The `Finding` has the claim of the paper, the result of this
run, and the rules by which the two are compared. ``python -m benchmarks.reproduce`` draws them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

# Okabe and Ito's colours, which colour-blind readers can tell apart, without yellow. Lines also
# differ in their markers.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000")
MARKERS = "os^vD*x"


# What a check of a part of a claim can say, besides that the part holds (True) or does not (False):
# the difference lies within the noise of the run, or this run has no numbers on it.
TIE = "tie"
UNTESTED = "not tested"
_SHOWN = {True: "yes", False: "no", TIE: TIE, UNTESTED: UNTESTED}


@dataclass(frozen=True)
class Finding:
    """What a figure shows.

    Parameters
    ----------
    claim : str
        What the paper says, in our words; `benchmarks.reproduce.claims` has its own words.
    found : str
        The numbers of this run.
    checks : mapping of str to bool, TIE or UNTESTED
        Parts of the claim, each as a rule on the numbers, and whether the rule holds.
    incomparable : str, default=""
        Why the run can say nothing about the claim, if it cannot. There are no checks then.
    """

    claim: str
    found: str
    checks: Mapping[str, bool | str]
    incomparable: str = ""

    def __post_init__(self) -> None:
        if bool(self.checks) == bool(self.incomparable):
            raise ValueError(
                "A finding has checks, or says why it is not comparable. Without a check it cannot "
                "agree or disagree."
            )
        for rule, held in self.checks.items():
            if isinstance(held, str) and held not in _SHOWN:
                raise ValueError(f"The check {rule!r} must be a bool, TIE or UNTESTED, not {held}.")

    @property
    def verdict(self) -> str:
        """What the checks say together.

        "agrees" if every check holds, "disagrees" if none holds and one fails, "tie" if all that
        were tested are ties; "agrees in part" otherwise.
        """
        if self.incomparable:
            return "not comparable"
        held = [each if isinstance(each, str) else bool(each) for each in self.checks.values()]
        tested = [each for each in held if each != UNTESTED]
        if held == [True] * len(held):
            return "agrees"
        if True in tested:
            return "agrees in part"
        return "disagrees" if False in tested else "tie" if tested else "not comparable"

    @property
    def rules(self) -> str:
        """The checks in one line, or why there are none."""
        return self.incomparable or "; ".join(
            f"{rule}: {_SHOWN[holds if isinstance(holds, str) else bool(holds)]}"
            for rule, holds in self.checks.items()
        )

    def __str__(self) -> str:
        return (
            f"The paper: {self.claim} Found: {self.found} Verdict: {self.verdict} ({self.rules})."
        )


def compare(difference: float, error: float) -> bool | str:
    """Whether a difference is positive: TIE within two standard errors of it.

    Parameters
    ----------
    difference : float
        By how much the claimed better one is better.
    error : float
        Standard error of ``difference``.
    """
    return TIE if abs(difference) <= 2 * error else bool(difference > 0)


Figure = Callable[[Path, bool], Finding]


def panels(
    n: int = 1,
    size: tuple[float, float] = (6.0, 4.0),
    *,
    ratios: Sequence[float] | None = None,
    grid: bool = True,
    dpi: int = 130,
    rows: int = 1,
) -> tuple[Any, Any]:
    """A picture of n panels in rows, and their axes; the axes alone of a single one."""
    from matplotlib.figure import Figure as Canvas

    figure = Canvas(figsize=size, layout="constrained", dpi=dpi)
    axes = figure.subplots(rows, n // rows, width_ratios=ratios)
    for ax in np.ravel(axes):
        ax.spines[["top", "right"]].set_visible(False)
        if grid:
            ax.grid(axis="y", alpha=0.25)
    return figure, axes.ravel() if rows > 1 else axes


def named(work: str, *drawings: Figure) -> dict[str, Figure]:
    """Figures of a work by name: that of the work and that of the function."""
    return {f"{work}_{draw.__name__}": draw for draw in drawings}


def save(out: Path, name: str, figure: Any, table: pd.DataFrame) -> None:
    """Write NAME.png and NAME.csv."""
    figure.savefig(out / f"{name}.png")
    table.to_csv(out / f"{name}.csv", index=False)
