"""Plots of audits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ._audit import AuditResult
    from ._replay import ReplayResult

__all__ = ["plot_audits", "plot_replays", "plot_result"]

# Shades for the parts of a loss, from the colours of the verdicts.
_SHADES = ("#31688e", "#7fb3d5", "#1f4e6b", "#a9cce3", "#5499c7", "#d4e6f1")


def plot_result(result: AuditResult, ax: Any = None) -> Any:
    """Both frequencies of the event with their bounds, and how far apart the claim allows them."""
    from ..plotting import axes_or_new, current_inks

    ax = axes_or_new(ax, (5.0, 4.0))
    inks, table = current_inks(), result.table
    colour = inks.main if result.passed else inks.bad
    floor = 0.2 / table["trials"].iloc[0]
    values = np.maximum(table["frequency"].to_numpy(), floor)
    low = np.maximum(table["lower"].to_numpy(), floor)
    high = table["upper"].to_numpy()
    less = 1 if result.event.direction.startswith("dataset") else 0
    # Above the band the more likely side contradicts the claim, even with the less likely side
    # at the upper end of what its count allows.
    limit = min(high[less] * np.exp(result.epsilon), 1.0)
    bottom = max(low.min() / 4, floor / 2)
    ax.axhspan(bottom, limit, color=inks.faint, alpha=0.5, lw=0)
    errors = [np.maximum(values - low, 0), np.maximum(high - values, 0)]
    ax.errorbar(np.arange(2), values, yerr=errors, fmt="o", color=colour, capsize=6, lw=2)
    for place, value in enumerate(table["frequency"]):
        ax.annotate(
            f"{value:.3g}", (place, values[place]), (10, 0), textcoords="offset points",
            va="center", color=colour,
        )  # fmt: skip
    _plot_bracket(ax, 0.5, values[less], values[less] * np.exp(result.epsilon), result.epsilon)
    ax.set_yscale("log")
    ax.set_ylim(bottom, max(2.0 * values.max(), limit * 1.5, 1.5 * values[less]))
    ax.set_xlim(-0.6, 1.6)
    ax.set_xticks(np.arange(2), ["dataset", "neighbour"])
    ax.set_ylabel("frequency of the event")
    ax.set_title(
        f"{result.name}: {result.verdict}\nclaimed epsilon = {result.epsilon:g}, found at least "
        f"{result.epsilon_lower_bound:.3g} at {100 * result.confidence:.6g}% confidence",
        fontsize="medium",
    )
    return ax


def _plot_bracket(ax: Any, x: float, low: float, high: float, epsilon: float) -> None:
    """From the rate of the less likely side to the largest that the claim allows the other."""
    from ..plotting import current_inks

    style = {"color": current_inks().ink, "lw": 1.0}
    ax.plot([x - 0.06, x, x, x - 0.06], [low, low, high, high], **style)
    words = f"allowed:\n× e$^{{{epsilon:g}}}$ = {np.exp(epsilon):.3g}"
    middle = float(np.sqrt(low * high))
    ax.annotate(words, (x, middle), (4, 0), textcoords="offset points", va="center", fontsize=9)


def plot_audits(results: Sequence[AuditResult], ax: Any = None) -> Any:
    """Draw many audits, one below the other: the bound found, as a multiple of the claim.

    Parameters
    ----------
    results : sequence of AuditResult
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        Bars that pass the line at 1 are convictions. The grey bars show the largest bound that an
        audit of that many trials can reach.
    """
    results = list(results)
    from ..plotting import axes_or_new, current_inks

    ax, inks = axes_or_new(ax, (8.0, 1.2 + 0.32 * len(results))), current_inks()
    left, right = 0.05, 30.0
    for place, result in enumerate(results):
        colour = inks.main if result.passed else inks.bad
        share = result.epsilon_lower_bound / result.epsilon
        reachable = min(result.reachable / result.epsilon, right)
        ax.barh(place, reachable - left, left=left, height=0.8, color=inks.faint, alpha=0.4)
        if share > left:
            ax.barh(place, min(share, right) - left, left=left, height=0.5, color=colour)
        ax.text(
            max(min(share, right), left) * 1.06, place, f"{result.epsilon_lower_bound:.2f}",
            va="center", fontsize="small", color=colour, zorder=3,
            bbox={"facecolor": inks.paper, "edgecolor": "none", "pad": 1.0, "alpha": 0.8},
        )  # fmt: skip
    ax.axvline(1.0, color=inks.ink, lw=1.2)
    ax.set_xscale("log")
    ax.set_xlim(left, right)
    ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    return _labelled(ax, results, "lower bound on epsilon / claimed epsilon")


def plot_replays(results: Sequence[ReplayResult], ax: Any = None) -> Any:
    """Draw the privacy loss of each step of several replays, relative to the claimed epsilon.

    Parameters
    ----------
    results : sequence of ReplayResult
        One bar for each, from top to bottom.
    ax : matplotlib Axes, optional
        Default: a new figure.

    Returns
    -------
    matplotlib Axes
        A bar that passes the line at 1 costs more than was claimed. A hatched bar stands for no
        finite loss: the calls or the release differed between the two data sets.
    """
    results = list(results)
    from ..plotting import axes_or_new, current_inks

    ax, inks = axes_or_new(ax, (8.0, 1.2 + 0.36 * len(results))), current_inks()
    right = max(1.6, *(1.15 * r.loss / r.epsilon for r in results if np.isfinite(r.loss)), 0.0)
    for place, result in enumerate(results):
        if result.differs is not None or not np.isfinite(result.loss):
            ax.barh(
                place, right, height=0.6, color=inks.paper, edgecolor=inks.bad, hatch="///", lw=1
            )
            continue
        left = 0.0
        steps = sorted(result.by_part.items(), key=lambda each: -each[1])
        for number, (_, loss) in enumerate(steps):
            shade = _SHADES[number % len(_SHADES)] if result.passed else inks.bad
            width = loss / result.epsilon
            ax.barh(place, width, left=left, height=0.6, color=shade, edgecolor=inks.paper, lw=0.8)
            left += width
        ax.text(left + 0.01 * right, place, f"{left:.3g}", va="center", fontsize="small")
    ax.axvline(1.0, color="0.4", lw=1.2)
    ax.set_xlim(0, right)
    return _labelled(ax, results, "privacy loss / claimed epsilon, by step")


def _labelled(ax: Any, results: Sequence[AuditResult | ReplayResult], quantity: str) -> Any:
    """Name the bars, one below the other, and count the convictions."""
    ax.set_yticks(np.arange(len(results)), [result.name for result in results])
    ax.set_ylim(len(results) - 0.4, -0.6)
    ax.set_xlabel(quantity)
    convicted = sum(not result.passed for result in results)
    ax.set_title(f"{convicted} of {len(results)} convicted", fontsize="medium")
    return ax
