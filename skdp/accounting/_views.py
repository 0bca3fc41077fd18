"""The charges of a ledger as a table, as HTML for notebooks, and as a picture."""

from __future__ import annotations

import html
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd

from .._validation import check_choice
from ._entries import ABOUT, RECORD, Entry, by_unit, subtotals, total_of
from ._loss import NEIGHBOURS, neighbours, parts_text, short_text

Entries = tuple[Entry, ...]
Steps = list[tuple[str, Fraction]]

# The palette of Okabe and Ito, which colour-blind people can distinguish too.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#888888")
# The newest charges that a picture shows.
_PLOT_ROWS = 25
# How the rest of the budget is drawn.
_REST = {"color": "none", "edgecolor": "0.6", "hatch": "//"}


def ledger_frame(entries: Entries) -> pd.DataFrame:
    """One row for each charge; the columns are those of `PrivacyLedger.to_frame`."""

    def column(values: Iterable[Any], dtype: Any = object) -> pd.Series:
        return pd.Series(list(values), dtype=dtype)

    losses = [entry.loss for entry in entries]
    times = pd.to_datetime([entry.time for entry in entries], utc=True)
    return pd.DataFrame(
        {
            "time": times.as_unit("us"),
            "name": column(entry.name for entry in entries),
            "epsilon": column((float(loss) for loss in losses), float),
            "exact": column(str(loss.epsilon) for loss in losses),
            "parts": column(parts_text(loss.parts) for loss in losses),
            "seeded": column((loss.seeded for loss in losses), bool),
            "process": column((entry.process for entry in entries), "int64"),
            "unit": column(entry.unit for entry in entries),
            "max_contributions": column((loss.max_contributions for loss in losses), "Int64"),
            **{key: column(entry.about.get(key, "") for entry in entries) for key in ABOUT},
        }
    )


def ledger_html(
    entries: Entries,
    name: str | None,
    total: Fraction | None,
    path: Path | None,
    rows: int = 0,
) -> str:
    """Balance, notes and the newest charges, or with 0 rows all of them."""
    spent = total_of(entries)
    title = "" if name is None else f" of <i>{html.escape(name)}</i>"
    if total is None:
        state, bar = f"&epsilon; = {short_text(spent)} spent, no limit", ""
    else:
        state = (
            f"&epsilon; = {short_text(spent)} of {short_text(total)} spent, "
            f"{short_text(total - spent)} left"
        )
        bar = _bar(float(spent / total))
    shown = entries[-rows:]
    notes = _notes(entries, path)
    if len(shown) < len(entries):
        notes.append(f"the last {len(shown)} are shown")
    return (
        f"<div><b>Privacy ledger</b>{title}: {state}{bar}"
        f"<small>{' &middot; '.join(notes)}</small>{_table(shown)}</div>"
    )


def _bar(share: float) -> str:
    return (
        "<div style='width:24em;height:1em;border:1px solid currentColor;margin:.3em 0'>"
        f"<div style='width:{100 * share:.4g}%;height:100%;background:{_COLOURS[0]}'>"
        "</div></div>"
    )


def _notes(entries: Entries, path: Path | None) -> list[str]:
    """What is protected, how many charges there are, and warnings."""
    kinds = {(entry.unit, entry.loss.max_contributions) for entry in entries}
    protects = "; ".join(
        NEIGHBOURS.replace(RECORD, unit) if most is None else neighbours(most)
        for unit, most in sorted(kinds, key=lambda kind: (kind[0] != RECORD, kind[1] or 0))
    )
    notes = [f"neighbours: {protects or NEIGHBOURS}", f"{len(entries)} charges"]
    if len(by_unit(entries)) > 1:
        notes.append(f"<b>{subtotals(entries)}</b>")
    seeded = sum(entry.loss.seeded for entry in entries)
    if seeded:
        notes.append(f"<b>{seeded} seeded: no guarantee</b>")
    if path is not None:
        notes.append(html.escape(str(path)))
    return notes


def _table(entries: Entries) -> str:
    if not entries:
        return ""
    rows = "".join(
        f"<tr><td>{entry.time[:19].replace('T', ' ')}</td>"
        f"<td style='text-align:left'>{html.escape(entry.name)}</td>"
        f"<td>{short_text(entry.loss.epsilon)}</td>"
        f"<td style='text-align:left'>{html.escape(parts_text(entry.loss.parts))}"
        f"{' (seeded: no guarantee)' if entry.loss.seeded else ''}</td>"
        + "".join(
            f"<td style='text-align:left'>{html.escape(entry.about.get(key, ''))}</td>"
            for key in ABOUT
        )
        + "</tr>"
        for entry in entries
    )
    return (
        "<table><thead><tr><th>time (UTC)</th><th style='text-align:left'>charge</th>"
        "<th>&epsilon;</th><th style='text-align:left'>parts</th>"
        + "".join(f"<th style='text-align:left'>{key}</th>" for key in ABOUT)
        + "</tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def plot_budget(
    entries: Entries, name: str | None, total: Fraction | None, by: str, ax: Any = None
) -> Any:
    """Draw the budget: charge by charge as a staircase, or as one bar with a part for each name."""
    import matplotlib.pyplot as plt

    check_choice(by, "by", ("charge", "name"))
    steps = _by_charge(entries) if by == "charge" else list(_by_name(entries).items())
    left = None if total is None else total - total_of(entries)
    if ax is None:
        height = 1.9 if by == "name" else 1.1 + 0.27 * (len(steps) + 1)
        _, ax = plt.subplots(figsize=(7, height), layout="constrained")
    if by == "charge":
        _plot_staircase(ax, steps, left)
    else:
        _plot_bar(ax, steps, left)
    if total is not None:
        ax.set_xlim(0, float(total))
    ax.set_xlabel("epsilon")
    limit = "no limit" if total is None else f"of {short_text(total)}"
    unit = subtotals(entries)
    title = f"{name or 'Privacy ledger'}: {short_text(total_of(entries))} spent ({limit})"
    ax.set_title(f"{title}\n{unit}" if unit else title, fontsize="medium")
    return ax


def _plot_bar(ax: Any, steps: Steps, left: Fraction | None) -> None:
    """All names in one bar, with a legend."""
    from matplotlib import rcParams

    paper, spent = rcParams["axes.facecolor"], 0.0
    for (label, value), colour in zip(steps, _COLOURS, strict=False):
        # A leading underscore would hide the entry from the legend.
        text = f"{label.lstrip('_')}: {short_text(value)}"
        ax.barh(0, float(value), left=spent, color=colour, edgecolor=paper, label=text)
        spent += float(value)
    if left is not None:
        text = f"left: {short_text(left)}"
        ax.barh(0, float(left), left=spent, label=text, **_REST)
    ax.set_yticks([])
    if ax.containers:
        ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize="small")


def _plot_staircase(ax: Any, steps: Steps, left: Fraction | None) -> None:
    """A row for each charge, which begins where the one before ended."""
    names = list(dict.fromkeys(label for label, _ in steps))
    labels, spent = [], 0.0
    for row, (label, value) in enumerate(steps):
        colour = _COLOURS[names.index(label) % len(_COLOURS)]
        ax.barh(row, float(value), left=spent, height=0.7, color=colour)
        spent += float(value)
        labels.append(f"{label}: {short_text(value)}")
    if left is not None:
        ax.barh(len(steps), float(left), left=spent, height=0.7, **_REST)
        labels.append(f"left: {short_text(left)}")
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.grid(axis="x", alpha=0.3)
    ax.set_axisbelow(True)


def _by_charge(entries: Entries) -> Steps:
    """Name and epsilon of every charge; the oldest together if there are more than rows."""
    steps = [(_label(entry), entry.loss.epsilon) for entry in entries]
    older = len(steps) - _PLOT_ROWS
    if older < 2:
        return steps
    spent = sum((value for _, value in steps[:older]), Fraction(0))
    return [(f"{older} earlier charges", spent), *steps[older:]]


def _label(entry: Entry) -> str:
    return f"{entry.name} (seeded)" if entry.loss.seeded else entry.name


def _by_name(entries: Entries) -> dict[str, Fraction]:
    """Epsilon spent under each name; the smallest together if there are more than colours."""
    spent: dict[str, Fraction] = {}
    for entry in entries:
        label = _label(entry)
        spent[label] = spent.get(label, Fraction(0)) + entry.loss.epsilon
    if len(spent) <= len(_COLOURS):
        return spent
    largest = sorted(spent, key=lambda label: spent[label], reverse=True)
    kept = set(largest[: len(_COLOURS) - 1])
    rest = [value for label, value in spent.items() if label not in kept]
    shown = {label: value for label, value in spent.items() if label in kept}
    return shown | {f"{len(rest)} others": sum(rest, Fraction(0))}
