"""Pictures of attacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._allowed import allowed_right

if TYPE_CHECKING:
    from ._report import AttackReport

__all__ = ["plot_attacks"]


def plot_attacks(report: AttackReport, axes: Any = None) -> Any:
    """Success of every attack on the left, the surest guesses of membership on the right."""
    if axes is None:
        import matplotlib.pyplot as plt

        height = 1.6 + 0.32 * len(report.attacks)
        _, axes = plt.subplots(1, 2, figsize=(11, max(height, 3.6)), layout="constrained")
    left, right = axes
    _plot_success(report, left)
    _plot_guesses(report, right)
    return left.figure


def _plot_success(report: AttackReport, ax: Any) -> None:
    from ..plotting import current_inks

    table, inks = report.attacks, current_inks()
    places = np.arange(len(table))[::-1]
    ax.hlines(places, table["baseline"], table["allowed"], color=inks.faint, lw=6, zorder=1)
    ax.plot(table["baseline"], places, "|", color=inks.grey, ms=10, label="without the release")
    if report.epsilon is not None:
        ax.plot(table["allowed"], places, ">", color=inks.grey, ms=6, label="most that is allowed")
    ax.plot(table["success"], places, "o", color=inks.main, label="release")
    ax.plot(table["copy"], places, "X", color=inks.bad, label="copy of the records")
    ax.set_yticks(places, table["attack"])
    ax.set_xlim(-0.02, 1.02)
    ax.set_xlabel("success")
    ax.set_title("NOT PRIVATE: what attacks achieve", fontsize="medium")
    ax.legend(fontsize="small")


def _plot_guesses(report: AttackReport, ax: Any) -> None:
    from ..plotting import current_inks

    inks = current_inks()
    for (name, curve), style in zip(report.curves.items(), ("-", "--"), strict=False):
        ax.plot(curve["guesses"], curve["release"], style, color=inks.main, label=name)
        ax.plot(curve["guesses"], curve["copy"], style, color=inks.bad, label=f"{name}, copy")
    if report.epsilon is not None:
        ax.axhline(allowed_right(report.epsilon), color=inks.grey, lw=1)
        text = f"allowed at epsilon = {report.epsilon:g}"
        ax.annotate(text, (0, allowed_right(report.epsilon)), va="bottom", color=inks.grey)
    ax.axhline(0.5, color=inks.grey, lw=1, ls=":")
    ax.set_ylim(0.4, 1.03)
    ax.set_xlabel("guesses, the surest first")
    ax.set_ylabel("share that is right")
    ax.set_title("NOT PRIVATE: guesses of membership", fontsize="medium")
    ax.legend(fontsize="small")
