"""The interface through which a domain reads rows.

A domain knows the schema only. Releases hold domains, and a release must not be able to reach rows.
So the package for rows imports this one, never the other way round, and registers its reader here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from .clock import Clock


class Column(Protocol):
    """A column in memory."""

    kind: str
    dtype: str
    # Whether the type may have been chosen by looking at values.
    guessed: bool
    # Whether one record with text makes text of the numbers of others, however they are written.
    mixes: bool

    def numbers(self) -> FloatArray:
        """Values as float64, NaN where missing or not a number. Never raises."""

    def instants(self, clock: Clock) -> FloatArray:
        """Dates as whole units of a clock, NaN where missing or no date. Never raises."""

    def factorize(self) -> tuple[NDArray[np.intp], list[Any]]:
        """Values as positions in a list of distinct values; -1 where missing. Never raises."""


class LazyColumn(Protocol):
    """A column in an engine: codes are expressions that the engine evaluates."""

    kind: str
    dtype: str

    @property
    def guessed(self) -> bool:
        """Whether the type may have been chosen by looking at values."""

    def instants(self, clock: Clock) -> LazyColumn:
        """The column of the whole units of a clock, of a column of dates."""

    def binned(
        self,
        lower: float,
        upper: float,
        bins: int,
        *,
        integer: bool,
        missing: int,
        edges: Sequence[float] | None = None,
        special: Sequence[float] = (),
    ) -> Any:
        """Bin of each number, and the codes of special ones."""

    def looked_up(self, codes: Any, *, unknown: int, missing: int) -> Any:
        """Code of each value in a table of them."""


class Rows(Protocol):
    """Columns of a table in memory."""

    n_rows: int
    # Records that fit no domain, whatever their columns say; None: there are none.
    unfit: Any

    @property
    def names(self) -> tuple[str, ...]:
        """Column names; columns of arrays are called x0, x1, ..."""

    def column(self, name: str) -> Column:
        """One column by name."""


class LazyRows(Protocol):
    """Columns of a table in an engine."""

    def column(self, name: str) -> LazyColumn:
        """One column by name."""


_reader: Callable[[Any], Any] | None = None


def provide_reader(reader: Callable[[Any], Any]) -> None:
    """Register the reader of row containers; `skdp.tables` calls this once, on import."""
    global _reader
    _reader = reader


def read(data: Any) -> Any:
    """The columns of a container; only names and types have been looked at."""
    if _reader is None:
        # A script may have asked for names of domains and releases alone. The top level loads
        # the package for rows, which registers its reader, when it is asked for it.
        _ = sys.modules[__name__.partition(".")[0]].rows
    assert _reader is not None
    return _reader(data)


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
