"""The interface through which a domain reads rows.

A domain knows the schema only. Releases hold domains, and a release must not be able to reach rows.
So the package for rows imports this one, never the other way round, and registers its reader here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._keys import Key, key_of
from .._validation import CodeArray, FloatArray
from .clock import Clock


@dataclass(frozen=True)
class Coding:
    """How the values of a column become codes: a public description that `skdp.tables` applies.

    Privacy. The code of a value depends on its key and the declaration alone, never on another
    value or on the type that a reader gave to the column.

    Attributes
    ----------
    table : mapping of Key to int
        Code of each declared category, by its key.
    unknown, missing : int
        Code of values that are not in the table, and of missing ones; -1: there is none.
    place : callable, or None
        Of numbers and dates: codes of float64 numbers, NaN where missing.
    clock : Clock or None
        Of dates: the line of numbers on which they are read.
    """

    table: Mapping[Key, int] = field(default_factory=dict)
    unknown: int = -1
    missing: int = -1
    place: Callable[[FloatArray], CodeArray] | None = None
    clock: Clock | None = None

    def code_of(self, value: Any) -> int:
        """Code of one value. Never raises."""
        key = key_of(value)
        return self.missing if key is None else self.table.get(key, self.unknown)


class Column(Protocol):
    """A column: its type, which says what it may hold; in memory also its values."""

    kind: str
    dtype: str

    def codes(self, coding: Coding) -> CodeArray:
        """Code of each value, -1 where there is none. Never raises."""

    def numbers(self) -> FloatArray:
        """Values as float64, NaN where missing or not a number. Never raises."""

    def instants(self, clock: Clock) -> FloatArray:
        """Dates as whole units of a clock, NaN where missing or no date. Never raises."""

    def factorize(self) -> tuple[NDArray[np.intp], list[Any]]:
        """Values as positions in a list of distinct values; -1 where missing. Never raises."""


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
        _ = sys.modules[__name__.partition(".")[0]].tables
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
