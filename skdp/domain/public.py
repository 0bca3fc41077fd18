"""PublicTable: rows that are declared to be public."""

from __future__ import annotations

from typing import Any

from .reading import read

__all__ = ["PublicTable"]


class PublicTable:
    """Declares that the rows of a table are public: whoever sees them learns nothing private.

    Nothing that an estimator learns from them is charged to a ledger or protected. Rows that were
    published, such as the public sample of an earlier survey, are public. Private records are not,
    even if they are those of other people.

    Parameters
    ----------
    frame : table or 2-D array
        Rows in memory, of any library that ``fit`` takes. They are not copied, and must not be
        changed afterwards.

    Attributes
    ----------
    frame : table or ndarray

    Raises
    ------
    TypeError
        If ``frame`` is no table in memory.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp import PublicTable
    >>> PublicTable(pd.DataFrame({"age": [31, 45], "sex": ["F", "M"]}))
    PublicTable(2 rows, 2 columns)
    """

    def __init__(self, frame: Any) -> None:
        rows = read(frame)
        n_rows = getattr(rows, "n_rows", None)
        if n_rows is None:
            raise TypeError(
                f"PublicTable needs rows in memory, got a {type(frame).__name__}, which an engine "
                "has yet to read. Collect it first."
            )
        self.frame = frame
        self._shape = n_rows, len(rows.names)

    def __repr__(self) -> str:
        n_rows, n_columns = self._shape
        return f"PublicTable({n_rows:,} rows, {n_columns:,} columns)"

    def __deepcopy__(self, memo: dict[int, Any]) -> PublicTable:
        # scikit-learn copies parameters for each clone; these rows never change.
        return self
