"""A domain as a table that a person can read, in notebooks and in terminals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import pandas as pd

from .values import digits

__all__ = ["columns_table", "cut", "html_page", "html_table", "rule_text", "values_text"]

# Columns of a domain that a notebook shows.
_MOST_ROWS = 100
# Categories that one cell shows, and the characters that it shows of each.
_MOST_CATEGORIES = 6
_LONGEST = 30
# Rules that one cell shows, and the characters that it shows of each.
_MOST_RULES = 2
_LONGEST_RULE = 60


def values_text(attribute: Any) -> str:
    """Range or categories of an attribute, shortened."""
    if hasattr(attribute, "categories"):
        return _listed(attribute.categories)
    # Dates are text here, and numbers elsewhere.
    data = attribute._to_data()
    if "lower" not in data:
        return ""
    text = f"{_plain(data['lower'])} to {_plain(data['upper'])}"
    special = data.get("special") or ()
    return text + (f"; special: {_listed([_plain(value) for value in special])}" * bool(special))


def _plain(value: Any) -> str:
    return digits(value) if isinstance(value, int | float) else str(value)


def _listed(values: Sequence[Any]) -> str:
    shown = [cut(str(value)) for value in values[:_MOST_CATEGORIES]]
    more = len(values) - len(shown)
    return ", ".join(shown) + (f", ... ({more:,} more)" if more else "")


def cut(text: str, longest: int = _LONGEST) -> str:
    """A text, shortened where it is longer."""
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _kind(attribute: Any) -> str:
    kind = type(attribute).__name__
    words = [word for word in ("integer", "ordered") if getattr(attribute, word, False)]
    words = [] if kind in ("Date", "Datetime") else words
    return " ".join([kind, *(f"({word})" for word in words)])


def columns_table(domain: Any, limit: int | None = None) -> pd.DataFrame:
    """One row for each column of the table: kind, values, cells, missing, structure.

    ``cells`` is 0 for columns that are not measured. ``limit`` keeps the first columns only.
    """
    names = domain.columns[:limit]
    rules = _rules(domain)
    measured_names = set(domain.names)
    rows = {}
    for name in names:
        attribute = domain.declared(name)
        measured = name in measured_names
        rows[name] = {
            "kind": _kind(attribute),
            "values": values_text(attribute),
            "cells": attribute.size if measured else 0,
            "missing": bool(getattr(attribute, "nullable", False)),
            "structure": rules.get(name, ""),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _rules(domain: Any) -> dict[str, str]:
    """Text of the rules about each column."""
    found: dict[str, list[str]] = {}
    for rule in domain.structure.rules:
        # A rule about one column names the others as its condition.
        about = [rule.column] if hasattr(rule, "column") else domain.structure.columns_of(rule)
        for name in about:
            found.setdefault(name, []).append(rule_text(rule))
    more = _MOST_RULES
    return {
        name: "; ".join(texts[:more]) + (f"; ... ({len(texts) - more} more)" * (len(texts) > more))
        for name, texts in found.items()
    }


def rule_text(rule: Any) -> str:
    """A rule, or its text, without its map and shortened."""
    text = rule if isinstance(rule, str) else repr(rule)
    return cut(re.sub(r", map=.*\)$", ")", text, flags=re.DOTALL), _LONGEST_RULE)


def html_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table of HTML whose cells are escaped; numbers are set to the right."""
    head = "".join(f"<th>{escape(str(cell))}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<table class="dataframe"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _cell(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f'<td style="text-align:right">{value:,}</td>'
    return f'<td style="text-align:left">{escape(str(value))}</td>'


def html_page(domain: Any) -> str:
    """The domain as HTML for a notebook: its first columns, and how many more there are."""
    table = columns_table(domain, _MOST_ROWS)
    header = ["column", "kind", "range or categories", "cells", "missing", "structure"]
    if not table["structure"].any():
        header = header[:-1]
        table = table.drop(columns="structure")
    table["missing"] = ["may be missing" if missing else "" for missing in table["missing"]]
    rows = [[name, *cells] for name, *cells in table.itertuples(name=None)]
    n_columns = len(domain.columns)
    more = f"<p>... and {n_columns - len(rows):,} more columns</p>" if n_columns > len(rows) else ""
    marked = ", inferred from data: not private" if domain.inferred else ""
    size = f"{domain.size:,}" if domain.size < 10**15 else f"about 10^{len(str(domain.size)) - 1}"
    return (
        f"<p><b>Domain</b>: {n_columns:,} columns, {size} cells{marked}</p>"
        f"{html_table(header, rows)}{more}"
    )
