"""Parquet files: their columns, and their rows in DuckDB or in memory.

DuckDB and PyArrow are optional. What they say about a file they cannot read is not passed on,
because it may quote bytes of it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..tables.frame import check_unique

_MAGIC = b"PAR1"
_SUFFIXES = {".parquet", ".pq"}
# Files of at most this many bytes are loaded if PyArrow is installed: rows in memory are counted
# faster than by an engine, which reads a wide table once for every few columns. The release is the
# same.
_LOADED = 1 << 28
_UNREADABLE = "{} is not a Parquet file, or it is damaged."


class ParquetFile:
    """The columns of a Parquet file; no value is read until its rows are asked for.

    DuckDB counts files of more than 256 MiB where they are, and all files if PyArrow is missing.

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
        If it is not a Parquet file, is damaged, names a column twice, or neither DuckDB nor PyArrow
        is installed.
    OSError
        If it cannot be opened.
    """

    names: list[str]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        with open(path, "rb"):
            pass  # raises what files raise, with the name of the file
        if not is_parquet_file(path):
            raise ValueError(_UNREADABLE.format(self._path))
        check_library()
        self._relation: Any = None
        if _has("duckdb"):
            self._relation, self.names = self._opened(self._scan)
        self._empty: Any = None
        if _has("pyarrow"):
            scanned = self.names if self._relation is not None else None
            self._empty, self.names = self._opened(self._read_schema)
            if scanned != self.names:
                # DuckDB renames columns whose names differ in case only.
                self._relation = None
        check_unique(self.names)

    def empty(self, columns: Sequence[str]) -> Any:
        """A table of these columns without rows: names and types."""
        if self._lazy(columns):
            return self._relation.select(_listed(columns)).limit(0)
        return self._empty.select(list(columns))

    def schema(self, columns: Sequence[str]) -> Any:
        """A table of these columns without rows, in memory."""
        if self._empty is None:
            return self.empty(columns).df()
        return self._empty.select(list(columns))

    def rows(self, columns: Sequence[str]) -> Any:
        """These columns: lazy in DuckDB, or in memory."""
        if self._lazy(columns):
            return self._relation.select(_listed(columns))
        return self.table(columns)

    def table(self, columns: Sequence[str]) -> Any:
        """These columns in memory: a table of PyArrow if it is installed, of pandas otherwise."""
        if self._empty is None:
            return self._relation.select(_listed(columns)).df()
        from pyarrow import parquet

        return parquet.read_table(self._path, columns=list(columns), partitioning=None)

    def _lazy(self, columns: Sequence[str]) -> bool:
        """Whether DuckDB counts these columns where they are."""
        if self._relation is None or self._empty is None:
            return self._relation is not None
        if os.path.getsize(self._path) <= _LOADED:
            return False
        # A column that was written without any value has no type; DuckDB calls it an integer.
        return all(str(self._empty.schema.field(name).type) != "null" for name in columns)

    def _opened(self, read: Callable[[], tuple[Any, list[str]]]) -> tuple[Any, list[str]]:
        """What a library reads of the columns; damaged files raise almost anything."""
        found = None
        with contextlib.suppress(Exception):
            found = read()
        # Raised here, without the library's error as its context.
        if found is None:
            raise ValueError(_UNREADABLE.format(self._path))
        return found

    def _scan(self) -> tuple[Any, list[str]]:
        import duckdb

        # What does not fit into memory is written to a folder that only this user can read, and
        # that is gone when the process ends.
        spill = tempfile.mkdtemp(prefix="skdp-")
        weakref.finalize(self, shutil.rmtree, spill, ignore_errors=True)
        # A connection of its own; * ? [ in the name of a file are not patterns.
        self._connection = duckdb.connect(config={"temp_directory": spill})
        name = re.sub(r"([*?\[])", r"[\1]", self._path)
        relation = self._connection.read_parquet(name, hive_partitioning=False)
        return relation, list(relation.columns)

    def _read_schema(self) -> tuple[Any, list[str]]:
        from pyarrow import parquet

        empty = parquet.read_schema(self._path).remove_metadata().empty_table()
        return empty, list(empty.column_names)


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


def check_library() -> None:
    """Raise ValueError if no library for Parquet is installed."""
    if not (_has("duckdb") or _has("pyarrow")):
        raise ValueError(
            "Parquet files need DuckDB or PyArrow: `pip install 'skdp[duckdb]'` (larger than "
            "memory) or `pip install 'skdp[parquet]'`. CSV files need neither."
        )


def _has(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


def _listed(columns: Sequence[str]) -> str:
    """Names of columns in SQL."""
    return ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
