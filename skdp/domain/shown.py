"""A domain as a table that a person can read, in notebooks and in terminals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import pandas as pd

from .values import digits, some, with_types

__all__ = [
    "DomainDifference",
    "columns_table",
    "cut",
    "difference",
    "html_page",
    "html_table",
    "rule_text",
    "values_text",
]

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


_MOST_LINES = 200


@dataclass(frozen=True)
class DomainDifference:
    """What differs between two domains; false if they are equal.

    Attributes
    ----------
    added, removed : tuple of str
        Columns that only the second, or only the first domain has.
    changed : dict of str to tuple of str
        What changed in a column that both have, one text for each parameter.
    reordered : bool
        Whether the common columns have another order.
    structure : tuple of str
        Rules that only one of the domains has, with "+" or "-" in front.
    inferred : str
        What changed in the mark ``inferred``; empty if nothing did.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: dict[str, tuple[str, ...]]
    reordered: bool = False
    structure: tuple[str, ...] = ()
    inferred: str = ""
    _texts: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __bool__(self) -> bool:
        parts = (self.added, self.removed, self.changed, self.structure, self.inferred)
        return self.reordered or any(map(bool, parts))

    def __repr__(self) -> str:
        if not self:
            return "The domains are equal."
        lines = [f"+ {name}: {self._texts.get(name, '')}" for name in self.added]
        lines += [f"- {name}: {self._texts.get(name, '')}" for name in self.removed]
        lines += [f"~ {name}: {'; '.join(texts)}" for name, texts in self.changed.items()]
        lines += ["~ order of the columns"] * self.reordered
        lines += [f"{text[0]} rule {text[1:].strip()}" for text in self.structure]
        lines += [f"~ {self.inferred}"] * bool(self.inferred)
        more = len(lines) - _MOST_LINES
        return "\n".join(lines[:_MOST_LINES] + ([f"... ({more} more)"] if more > 0 else []))


def difference(first: Any, second: Any) -> DomainDifference:
    """See `Domain.diff`."""
    old, new = _declared(first), _declared(second)
    added = tuple(name for name in new if name not in old)
    removed = tuple(name for name in old if name not in new)
    common = [name for name in old if name in new]
    changed = {}
    for name in common:
        texts = _changes(old[name], new[name])
        if texts:
            changed[name] = texts
    described = {name: _described(new[name]) for name in added}
    described |= {name: _described(old[name]) for name in removed}
    rules = [[str(rule) for rule in domain.structure.rules] for domain in (first, second)]
    return DomainDifference(
        added,
        removed,
        changed,
        common != [name for name in new if name in old],
        tuple(f"- {rule}" for rule in rules[0] if rule not in set(rules[1]))
        + tuple(f"+ {rule}" for rule in rules[1] if rule not in set(rules[0])),
        ""
        if first.inferred == second.inferred
        else f"inferred: {first.inferred} -> {second.inferred}",
        described,
    )


def _declared(domain: Any) -> dict[str, Any]:
    return {name: domain.declared(name) for name in domain.columns}


def _described(attribute: Any) -> str:
    return f"{type(attribute).__name__}, {values_text(attribute)}".removesuffix(", ")


def _changes(old: Any, new: Any) -> tuple[str, ...]:
    """Parameters that differ, each as one text."""
    if old == new:
        return ()
    before, after = old._to_data(), new._to_data()
    if before.get("type") != after.get("type"):
        return (f"{_described(old)} -> {_described(new)}",)
    texts: list[str] = []
    for key in {**before, **after}:
        first, second = before.get(key), after.get(key)
        if key == "categories":
            texts += _categories(first, second)
        elif with_types([first]) != with_types([second]):
            texts.append(f"{key}: {cut(repr(first), 60)} -> {cut(repr(second), 60)}")
    return tuple(texts) or (f"{_described(old)} -> {_described(new)}",)


def _categories(old: Any, new: Any) -> list[str]:
    first, second = dict.fromkeys(with_types(old)), dict.fromkeys(with_types(new))
    gone = [value for key, value in zip(first, old, strict=True) if key not in second]
    come = [value for key, value in zip(second, new, strict=True) if key not in first]
    texts = [f"{len(come):,} more categories: {some(come, 5)}"] if come else []
    texts += [f"{len(gone):,} fewer categories: {some(gone, 5)}"] if gone else []
    if not texts and list(first) != list(second):
        texts = ["categories in another order"]
    return texts
