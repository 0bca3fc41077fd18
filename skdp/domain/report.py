"""What a domain would do to the records of a frame."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from .._validation import check_choice
from .values import digits, some, with_types

# --- a domain as a table that a person can read, in notebooks and in terminals

# Columns of a domain that a notebook shows.
_MOST_SHOWN = 100
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
    table = columns_table(domain, _MOST_SHOWN)
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


_CHANGES = ["below", "above", "to_other", "skipped", "not_understood"]
_HEADERS = {
    "below": "clipped from below",
    "above": "clipped from above",
    "to_other": "mapped to other",
    "to_missing": "missing, kept",
    "skipped": "skipped",
    "not_understood": "not understood",
}
# Rows of a table that are shown.
_MOST_ROWS = 100


@dataclass(frozen=True)
class DomainReport:
    """What a domain would do to the records of a frame. Exact counts: NOT private.

    Attributes
    ----------
    columns : pandas.DataFrame
        One row per attribute: numbers of values clipped from ``below`` and ``above``, mapped
        ``to_other`` and ``to_missing``, and ``skipped`` with their record; and of the last two
        kinds those that are ``not_understood``: there is a value, but no number or date.
    n_rows : int
        Number of records.
    n_skipped : int
        Number of records that have no code in at least one attribute, or break the structure.
    rules : pandas.DataFrame or None
        One row per rule: number of records that are skipped because they ``break`` it, or, for
        derived columns that the data hold, whose value ``differs`` from what the rule says, which
        is ignored. None without a structure.
    n_unfit : int, default=0
        Number of records of a file that could not be read, which are not counted by column: lines
        with an odd number of quotes, or with more fields than the first.
    findings : tuple of str
        What the declaration misses: gaps, forms of dates, whole numbers, crowded bins, values that
        many records share, categories that differ by case, repeated identifiers, rules that nearly
        all records keep.
    drafts, structure : list
        What :meth:`declaration` writes.
    """

    columns: pd.DataFrame
    n_rows: int
    n_skipped: int
    rules: pd.DataFrame | None = None
    n_unfit: int = 0
    findings: tuple[str, ...] = ()
    drafts: Sequence[Any] = field(default=(), repr=False)
    structure: Sequence[Any] = field(default=(), repr=False)

    def declaration(self, style: str = "python") -> str:
        """The corrected declaration, with blanks where only the records know the value.

        Fill them in from what is publicly known: what the records hold must not go into it.

        Parameters
        ----------
        style : {"python", "json"}, default="python"
        """
        from .schemas import draft_text

        check_choice(style, "style", ("python", "json"))
        return draft_text(self.drafts, style, self.structure)

    @property
    def clean(self) -> bool:
        """Whether every value is represented as it is, and no rule is broken."""
        changed = self.columns[_CHANGES]
        kept = self.rules is None or not self.rules.to_numpy().any()
        return kept and not self.n_unfit and not changed.to_numpy().any()

    @property
    def shares(self) -> pd.DataFrame:
        """The counts of ``columns`` as fractions of the records."""
        return self.columns / max(self.n_rows, 1)

    @property
    def _changed(self) -> pd.DataFrame:
        """Columns with values that are not represented as they are."""
        return self.columns[self.columns[_CHANGES].any(axis=1)]

    @property
    def _broken(self) -> pd.DataFrame:
        """Rules that records break, or whose derived column says something else."""
        return pd.DataFrame() if self.rules is None else self.rules[self.rules.any(axis=1)]

    def _summary(self) -> list[str]:
        """Sentences on all columns and rules."""
        if self.columns.empty:
            return ["no columns are declared; declaration() proposes how"]
        n_columns, n_changed = len(self.columns), len(self._changed)
        share = _share(self.n_skipped, self.n_rows)
        lines = [
            f"records skipped: {self.n_skipped} of {self.n_rows} ({share})",
            f"columns whose values are all represented as they are: {n_columns - n_changed} of "
            f"{n_columns}",
        ]
        if self.n_unfit:
            lines.append(f"records that cannot be read: {self.n_unfit}")
        if self.rules is not None:
            held = len(self.rules) - len(self._broken)
            lines.append(f"rules that hold in all records: {held} of {len(self.rules)}")
        return lines

    def _tables(self) -> list[pd.DataFrame]:
        """Columns and rules with changes, as counts with shares in text."""
        broken = self._broken.rename(index=rule_text)
        tables = [self._changed.rename(columns=_HEADERS), broken]
        return [
            table.map(lambda n: _count(n, self.n_rows) if n else "")
            for table in tables
            if len(table)
        ]

    def __repr__(self) -> str:
        lines = [
            f"NOT PRIVATE: exact counts of {self.n_rows} records, for the data owner only",
            *self._summary(),
        ]
        for table in self._tables():
            more = len(table) - _MOST_ROWS
            lines.append(table[:_MOST_ROWS].to_string())
            lines += [f"... ({more} more)"] * (more > 0)
        lines += [f"- {line}" for line in self.findings]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [
            f"<p><b>NOT PRIVATE</b>: exact counts of {self.n_rows:,} records, for the data owner "
            f"only</p><p>{'<br>'.join(self._summary())}</p>"
        ]
        for table in self._tables():
            rows = [[name, *cells] for name, *cells in table[:_MOST_ROWS].itertuples(name=None)]
            parts.append(html_table(["", *table.columns], rows))
            more = len(table) - _MOST_ROWS
            parts += [f"<p>... ({more} more)</p>"] * (more > 0)
        if self.findings:
            items = "".join(f"<li>{html.escape(line)}</li>" for line in self.findings)
            parts.append(f"<ul>{items}</ul>")
        return "".join(parts)


def _count(n: int, n_rows: int) -> str:
    """A number of records with its share."""
    return f"{n} ({_share(n, n_rows)})"


def _share(n: int, n_rows: int) -> str:
    return f"{100 * n / max(n_rows, 1):.3g}%"


def report_of(domain: Any, frame: Any) -> DomainReport:
    """The report on the records of a frame whose schema was checked. Exact counts.

    Parameters
    ----------
    domain : Domain or None
        None: nothing is declared yet.
    frame : Rows
        With the measured columns, and perhaps the others.
    """
    if domain is None:
        return DomainReport(pd.DataFrame(columns=list(_HEADERS)), frame.n_rows, 0)
    codes = np.empty((frame.n_rows, len(domain)), dtype=np.int32, order="F")
    rows = {}
    unfit = np.zeros(frame.n_rows, dtype=bool) if frame.unfit is None else frame.unfit
    n_unfit = int(unfit.sum())
    for place, (name, attribute) in enumerate(domain.items()):
        column = frame.column(name)
        rows[name] = attribute._diagnose(column)
        rows[name]["to_missing" if attribute.nullable else "skipped"] -= n_unfit
        codes[:, place] = column.codes(attribute.coding())
    columns = pd.DataFrame.from_dict(rows, orient="index")
    structure = domain.structure
    codes[unfit] = -1
    skipped = (codes < 0).any(axis=1) | structure.breaks(codes)
    if not structure:
        return DomainReport(columns, frame.n_rows, int(skipped.sum()), n_unfit=n_unfit)
    broken = {
        repr(rule): {"breaks": int(rows_.sum()), "differs": 0}
        for rule, rows_ in structure.broken_by_rule(codes)
    }
    for name, rule in structure.derived.items():
        if name in frame.names:
            differs = int(_differs(domain, frame, name, codes).sum())
            broken[repr(rule)] = {"breaks": 0, "differs": differs}
    rules = pd.DataFrame.from_dict(broken, orient="index", columns=["breaks", "differs"])
    return DomainReport(columns, frame.n_rows, int(skipped.sum()), rules, n_unfit)


def _differs(domain: Any, frame: Any, name: str, codes: Any) -> Any:
    """Records whose value of a derived column is not what its rule says."""
    structure = domain.structure
    own = codes[:, domain.index(structure.base_of(name))]
    expected = np.where(own < 0, -1, structure.codes_of(name)[own])
    return (frame.column(name).codes(domain.declared(name).coding()) != expected) & (own >= 0)
