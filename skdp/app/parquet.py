"""Parquet files: their columns, and their rows in memory, by PyArrow, which is optional.

What it says about a file that it cannot read is not passed on, because it may quote bytes of it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..tables.frame import check_unique

_MAGIC = b"PAR1"
_SUFFIXES = {".parquet", ".pq"}


class ParquetFile:
    """The columns of a Parquet file; no value is read until its rows are asked for.

    Parameters
    ----------
    path : str or path-like

    Attributes
    ----------
    names : list of str
        Names of the columns of the top level.

    Raises
    ------
    ValueError
        If it is not a Parquet file, is damaged, names a column twice, or PyArrow is not installed.
    OSError
        If it cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        whole = is_parquet_file(path)
        if whole and not _has("pyarrow"):
            raise ValueError(
                "Parquet files need PyArrow: `pip install 'skdp[parquet]'`. CSV files do not."
            )
        self._empty: Any = None
        self.names: list[str] = []
        # Damaged files raise almost anything.
        with contextlib.suppress(Exception):
            self._empty, self.names = self._columns() if whole else (None, [])
        # Raised here, without the library's error as its context.
        if self._empty is None:
            raise ValueError(f"{self._path} is not a Parquet file, or it is damaged.")
        check_unique(self.names)

    def _columns(self) -> tuple[Any, list[str]]:
        from pyarrow import parquet

        empty = parquet.read_schema(self._path).remove_metadata().empty_table()
        return empty, list(empty.column_names)

    def empty(self, columns: Sequence[str]) -> Any:
        """A table of these columns without rows: names and types."""
        return self._empty.select(list(columns))

    def rows(self, columns: Sequence[str]) -> Any:
        """A table of these columns."""
        from pyarrow import parquet

        return parquet.read_table(self._path, columns=list(columns), partitioning=None)


def is_parquet_name(path: str | os.PathLike[str]) -> bool:
    """Whether the name of a file ends in .parquet or .pq."""
    return Path(path).suffix.lower() in _SUFFIXES


def is_parquet_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins and ends like a Parquet file."""
    with open(path, "rb") as file:
        if file.read(4) != _MAGIC:
            return False
        # A table has 12 more bytes at least.
        if file.seek(0, os.SEEK_END) < 12:
            return False
        file.seek(-4, os.SEEK_END)
        return file.read(4) == _MAGIC


def _has(library: str) -> bool:
    return importlib.util.find_spec(library) is not None
