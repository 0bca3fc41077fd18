"""The charges of a ledger as a table, as HTML for notebooks, and as a picture."""

from __future__ import annotations

import html
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd

from ._entries import RECORD, Entry, by_unit, subtotals, total_of
from ._loss import NEIGHBOURS, neighbours, parts_text, short_text

Entries = tuple[Entry, ...]

# The palette of Okabe and Ito, which colour-blind people can distinguish too.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
# The newest charges that HTML shows.
_HTML_ROWS = 20


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
        }
    )


def ledger_html(
    entries: Entries, name: str | None, total: Fraction | None, path: Path | None
) -> str:
    """Balance, notes and newest charges, for a notebook."""
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
    shown = entries[-_HTML_ROWS:]
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
        f"{' (seeded: no guarantee)' if entry.loss.seeded else ''}</td></tr>"
        for entry in entries
    )
    return (
        "<table><thead><tr><th>time (UTC)</th><th style='text-align:left'>charge</th>"
        "<th>&epsilon;</th><th style='text-align:left'>parts</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def plot_budget(entries: Entries, name: str | None, total: Fraction | None, ax: Any = None) -> Any:
    """Draw the budget as one bar: epsilon spent under each name, and epsilon left."""
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(figsize=(7, 1.9), layout="constrained")
    left = 0.0
    for (label, value), colour in zip(_by_name(entries).items(), _COLOURS, strict=False):
        ax.barh(
            0,
            float(value),
            left=left,
            color=colour,
            edgecolor="white",
            # A leading underscore would hide the entry from the legend.
            label=f"{label.lstrip('_')}: {short_text(value)}",
        )
        left += float(value)
    spent = total_of(entries)
    if total is not None:
        rest = total - spent
        ax.barh(
            0,
            float(rest),
            left=left,
            color="white",
            edgecolor="0.6",
            hatch="//",
            label=f"left: {short_text(rest)}",
        )
        ax.set_xlim(0, float(total))
    ax.set_yticks([])
    ax.set_xlabel("epsilon")
    limit = "no limit" if total is None else f"of {short_text(total)}"
    unit = subtotals(entries)
    title = f"{name or 'Privacy ledger'}: {short_text(spent)} spent ({limit})"
    ax.set_title(f"{title}\n{unit}" if unit else title)
    if ax.containers:
        ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize="small")
    return ax


def _by_name(entries: Entries) -> dict[str, Fraction]:
    """Epsilon spent under each name; the smallest together if there are more than colours."""
    spent: dict[str, Fraction] = {}
    for entry in entries:
        label = f"{entry.name} (seeded)" if entry.loss.seeded else entry.name
        spent[label] = spent.get(label, Fraction(0)) + entry.loss.epsilon
    if len(spent) <= len(_COLOURS):
        return spent
    largest = sorted(spent, key=lambda label: spent[label], reverse=True)
    kept = set(largest[: len(_COLOURS) - 1])
    rest = [value for label, value in spent.items() if label not in kept]
    shown = {label: value for label, value in spent.items() if label in kept}
    return shown | {f"{len(rest)} others": sum(rest, Fraction(0))}
