"""What a domain would do to the records of a frame."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from .._validation import check_choice
from .rules.declared import TotalOf
from .shown import html_table, rule_text

__all__ = ["DomainReport", "report_of"]

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
        style : {"python", "yaml"}, default="python"
        """
        from .schemas import draft_text

        check_choice(style, "style", ("python", "yaml"))
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
        codes[:, place] = attribute.encode(column)
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
    rule = structure.derived[name]
    if isinstance(rule, TotalOf):
        parts = [frame.column(part).numbers() for part in rule.parts]
        total, said = np.sum(parts, axis=0), frame.column(name).numbers()
        return ~(np.isclose(total, said, rtol=1e-9, atol=1e-6) | np.isnan(total) & np.isnan(said))
    own = codes[:, domain.index(structure.base_of(name))]
    expected = np.where(own < 0, -1, structure.codes_of(name)[own])
    return (domain.declared(name).encode(frame.column(name)) != expected) & (own >= 0)
