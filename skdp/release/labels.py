"""Text for codes and ranges of codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ..domain import Categorical, Date, Datetime, Numeric


def range_label(attribute: Numeric | Categorical, start: int, stop: int) -> str:
    """Text for the codes from start to stop (exclusive)."""
    if stop - start == attribute.size:
        return "any"
    if start == attribute.n_values:
        return "missing"
    tail = " or missing" if stop > attribute.n_values else ""
    stop = min(stop, attribute.n_values)
    if isinstance(attribute, Categorical):
        shown = attribute.labels()[start:stop]
        if attribute.ordered and len(shown) > 1:
            return f"{shown[0]} to {shown[-1]}{tail}"
        if len(shown) > 5:
            shown = [*shown[:3], f"... ({len(shown)} in all)"]
        return ", ".join(shown) + tail
    if stop > attribute.bins:
        # Special values, and perhaps bins before them.
        texts = attribute.labels()[max(start, attribute.bins) : stop]
        if start < attribute.bins:
            texts.insert(0, range_label(attribute, start, attribute.bins))
        return " or ".join(texts) + tail
    if isinstance(attribute, Date | Datetime):
        return attribute.span_label(start, stop) + tail
    low, high = attribute.edges[[start, stop]].tolist()
    if attribute.integer:
        return (f"{low}" if high == low + 1 else f"{low} to {high - 1}") + tail
    return f"[{low:.6g}, {high:.6g}{']' if stop == attribute.bins else ')'}{tail}"


def group_labels(attribute: Numeric | Categorical) -> list[Any]:
    """The value shown for each code in a table of groups; None for the missing cell."""
    labels: list[Any]
    if isinstance(attribute, Categorical):
        labels = list(attribute.categories)
    else:
        edges: list[Any] = attribute.edges.tolist()
        special: list[Any] = list(attribute.special)
        if isinstance(attribute, Date | Datetime):
            edges, special = attribute.shown(edges).tolist(), attribute.shown(special).tolist()
        if attribute.one_each:
            labels = edges[:-1]
        else:
            labels = list(pd.IntervalIndex.from_breaks(edges, closed="left"))
        labels += special
    return labels + [None] * attribute.nullable


def tick_labels(attribute: Numeric | Categorical) -> list[str]:
    """Text under each bar of a plot, without the missing cell: ends of bins in three digits."""
    labels = attribute.labels()[: attribute.n_values]
    if isinstance(attribute, Categorical | Date | Datetime) or attribute.integer:
        return labels
    edges = [f"{float(f'{edge:.3g}'):.15g}" for edge in attribute.edges.tolist()]
    if len(set(edges)) == len(edges):
        bins = attribute.bins
        labels[:bins] = [
            f"{low} to {high}" for low, high in zip(edges[:-1], edges[1:], strict=True)
        ]
    return labels


def plot_axis(name: str, attribute: Numeric | Categorical) -> dict[str, Any]:
    """What `skdp.plotting.PlotAxis` needs to know of a column."""
    if isinstance(attribute, Categorical):
        edges = np.arange(attribute.n_values + 1) - 0.5
        labels: list[str] | None = attribute.labels()[: attribute.n_values]
    elif attribute.special:
        # Special values lie anywhere on the number line: each code has a bar of its own.
        edges = np.arange(attribute.n_values + 1) - 0.5
        labels = tick_labels(attribute)
    else:
        # A bar stands over its integers, the first one included.
        edges = attribute.edges - 0.5 * attribute.integer
        labels = None
    dates = isinstance(attribute, Date | Datetime) and labels is None
    if isinstance(attribute, Date | Datetime) and labels is None:
        edges = attribute.days(attribute.edges)
    log = labels is None and isinstance(attribute, Numeric) and attribute.scale == "log"
    missing = attribute.nullable
    axis = {"name": name, "edges": edges, "labels": labels, "missing": missing, "dates": dates}
    ordered, n_alone = getattr(attribute, "ordered", True), attribute.n_alone - missing
    return {**axis, "log": log, "ordered": ordered, "n_alone": n_alone}
