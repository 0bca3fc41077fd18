"""What a domain would do to the records of a frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .rules import TotalOf

__all__ = ["DomainReport", "report_of"]


@dataclass(frozen=True)
class DomainReport:
    """What a domain would do to the records of a frame. Exact counts: NOT private.

    Attributes
    ----------
    columns : pandas.DataFrame
        One row per attribute: numbers of values clipped from ``below`` and ``above``, mapped
        ``to_other`` and ``to_missing``, and ``skipped`` with their record.
    n_rows : int
        Number of records.
    n_skipped : int
        Number of records that have no code in at least one attribute, or break the structure.
    rules : pandas.DataFrame or None
        One row per rule: number of records that are skipped because they ``break`` it, or, for
        derived columns that the data hold, whose value ``differs`` from what the rule says, which
        is ignored. None without a structure.
    """

    columns: pd.DataFrame
    n_rows: int
    n_skipped: int
    rules: pd.DataFrame | None = None

    @property
    def clean(self) -> bool:
        """Whether every value is represented as it is, and no rule is broken."""
        changed = self.columns[["below", "above", "to_other", "skipped"]]
        kept = self.rules is None or not self.rules.to_numpy().any()
        return kept and not changed.to_numpy().any()

    def __repr__(self) -> str:
        return (
            f"NOT PRIVATE: exact counts of {self.n_rows} records, for the data owner only\n"
            f"{self.columns.to_string()}\n"
            + ("" if self.rules is None or self.rules.empty else f"{self.rules.to_string()}\n")
            + f"records skipped: {self.n_skipped} of {self.n_rows}"
        )


def report_of(domain: Any, frame: Any) -> DomainReport:
    """The report on the records of a frame whose schema was checked. Exact counts.

    Parameters
    ----------
    domain : Domain
    frame : Rows
        With the measured columns, and perhaps the others.
    """
    codes = np.empty((frame.n_rows, len(domain)), dtype=np.int32, order="F")
    rows = {}
    for place, (name, attribute) in enumerate(domain.items()):
        column = frame.column(name)
        rows[name] = attribute._diagnose(column)
        codes[:, place] = attribute.encode(column)
    columns = pd.DataFrame.from_dict(rows, orient="index")
    structure = domain.structure
    skipped = (codes < 0).any(axis=1) | structure.breaks(codes)
    if not structure:
        return DomainReport(columns, frame.n_rows, int(skipped.sum()))
    broken = {
        repr(rule): {"breaks": int(rows_.sum()), "differs": 0}
        for rule, rows_ in structure.broken_by_rule(codes)
    }
    for name, rule in structure.derived.items():
        if name in frame.names:
            differs = int(_differs(domain, frame, name, codes).sum())
            broken[repr(rule)] = {"breaks": 0, "differs": differs}
    rules = pd.DataFrame.from_dict(broken, orient="index", columns=["breaks", "differs"])
    return DomainReport(columns, frame.n_rows, int(skipped.sum()), rules)


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
