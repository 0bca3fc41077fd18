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
_PASSED, _CONVICTED, _FAINT = "#31688e", "#c1272d", "#d9d9d9"


def plot_result(result: AuditResult, ax: Any = None) -> Any:
    """Frequencies of the event with their confidence bounds, and what the claim allows."""
    from ..plotting import axes_or_new

    ax = axes_or_new(ax, (5.0, 4.0))
    table = result.table
    colour = _PASSED if result.passed else _CONVICTED
    n = table["trials"].iloc[0]
    floor = 0.2 / n
    values = np.maximum(table["frequency"].to_numpy(), floor)
    low = values - np.maximum(table["lower"].to_numpy(), floor)
    high = table["upper"].to_numpy() - values
    places = np.arange(2)
    less = 1 if result.event.direction.startswith("dataset") else 0
    # Above the band the more likely side contradicts the claim, even with the less likely side
    # at the upper end of what its count allows.
    limit = min(float(table["upper"].iloc[less]) * np.exp(result.epsilon), 1.0)
    ax.axhspan(floor / 2, limit, color=_FAINT, alpha=0.5, lw=0)
    ax.text(0.5, limit, f"allowed at epsilon = {result.epsilon:g}", ha="center", va="top")
    ax.errorbar(
        places, values, yerr=[np.maximum(low, 0), np.maximum(high, 0)], fmt="o", color=colour,
        capsize=6, lw=2,
    )  # fmt: skip
    ax.set_yscale("log")
    ax.set_ylim(floor / 2, 1.5)
    ax.set_xlim(-0.6, 1.6)
    ax.set_xticks(places, ["dataset", "neighbour"])
    ax.set_ylabel("frequency of the event")
    ax.set_title(
        f"{result.name}: {result.verdict}\nepsilon >= {result.epsilon_lower_bound:.3g} at "
        f"{100 * result.confidence:.6g}% confidence",
        fontsize="medium",
    )
    return ax


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
    from ..plotting import axes_or_new

    ax = axes_or_new(ax, (8.0, 1.2 + 0.32 * len(results)))
    left, right = 0.05, 30.0
    for place, result in enumerate(results):
        colour = _PASSED if result.passed else _CONVICTED
        share = result.epsilon_lower_bound / result.epsilon
        reachable = min(result.reachable / result.epsilon, right)
        ax.barh(place, reachable - left, left=left, height=0.8, color=_FAINT, alpha=0.4)
        if share > left:
            ax.barh(place, min(share, right) - left, left=left, height=0.5, color=colour)
        ax.text(
            max(min(share, right), left) * 1.06, place, f"{result.epsilon_lower_bound:.2f}",
            va="center", fontsize="small", color=colour, zorder=3,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.8},
        )  # fmt: skip
    ax.axvline(1.0, color="black", lw=1.2)
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
    from ..plotting import axes_or_new

    ax = axes_or_new(ax, (8.0, 1.2 + 0.36 * len(results)))
    right = max(1.6, *(1.15 * r.loss / r.epsilon for r in results if np.isfinite(r.loss)), 0.0)
    for place, result in enumerate(results):
        if result.differs is not None or not np.isfinite(result.loss):
            ax.barh(
                place, right, height=0.6, color="white", edgecolor=_CONVICTED, hatch="///", lw=1
            )
            continue
        left = 0.0
        steps = sorted(result.by_part.items(), key=lambda each: -each[1])
        for shade, (_, loss) in zip(_cycled(result.passed, len(steps)), steps, strict=True):
            width = loss / result.epsilon
            ax.barh(place, width, left=left, height=0.6, color=shade, edgecolor="white", lw=0.8)
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


def _cycled(passed: bool, n: int) -> list[str]:
    if not passed:
        return [_CONVICTED] * n
    return [_SHADES[i % len(_SHADES)] for i in range(n)]
