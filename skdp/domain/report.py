"""What a domain would do to the records of a frame."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

__all__ = ["DomainReport"]


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
        Number of records that have no code in at least one attribute.
    """

    columns: pd.DataFrame
    n_rows: int
    n_skipped: int

    @property
    def clean(self) -> bool:
        """Whether every value is represented as it is: nothing clipped, mapped or skipped."""
        changed = self.columns[["below", "above", "to_other", "skipped"]]
        return not changed.to_numpy().any()

    def __repr__(self) -> str:
        return (
            f"NOT PRIVATE: exact counts of {self.n_rows} records, for the data owner only\n"
            f"{self.columns.to_string()}\n"
            f"records skipped: {self.n_skipped} of {self.n_rows}"
        )
