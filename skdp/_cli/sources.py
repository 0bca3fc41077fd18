"""The file of records: CSV, or Parquet. Names and types first; values when they are asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Protocol

import pandas as pd

from ..domain import Domain
from ..rows import ParquetFile, is_parquet_file, is_parquet_name
from .csv_lines import lines_of, names_of, read_records
from .progress import Progress

__all__ = ["Source", "header_of", "open_source"]


class Source(Protocol):
    """The columns of a file that a domain declares, and perhaps one that identifies persons.

    Attributes
    ----------
    malformed : int
        Lines that ``table`` skipped because they are not well formed. Private.
    """

    malformed: int

    def empty(self) -> Any:
        """A table with these columns and without records, as ``rows`` gives it."""

    def schema(self) -> Any:
        """A table with these columns and without records, in memory."""

    def rows(self, progress: Progress) -> Any:
        """All records, as ``fit`` takes them: in an engine if there is one for the file."""

    def table(self, progress: Progress) -> Any:
        """All records, in memory."""


@contextmanager
def open_source(
    path: str, domain: Domain, unit: str | None = None, *, derived: bool = False
) -> Iterator[Source]:
    """Open a file of records and match its columns with the domain, by names alone.

    Parameters
    ----------
    path : str
    domain : Domain
    unit : str, default=None
        A further column, which identifies the person a row belongs to.
    derived : bool, default=False
        Whether columns that follow from others are read where the file has them.

    Raises
    ------
    ValueError
        If a declared column is missing or occurs twice, or the file is not what its name says.
    OSError
        If it cannot be opened.
    """
    columns = [*domain.names, *([unit] if unit is not None and unit not in domain.names else [])]
    more = [name for name in domain.structure.derived if derived]
    with open(path, "rb") as file:
        if is_parquet_name(path) or is_parquet_file(path):
            yield _ParquetSource(path, columns, more)
        else:
            yield _CSVSource(file, path, domain, columns, more)


class _CSVSource:
    malformed = 0

    def __init__(
        self,
        file: IO[bytes],
        path: str,
        domain: Domain,
        columns: Sequence[str],
        more: Sequence[str],
    ) -> None:
        self._file, self._path = file, path
        self._lines = lines_of(file)
        self._header = names_of(next(self._lines, ""), path)
        check_columns(
            self._header,
            columns,
            f"The first line of {path}",
            "It must be a text file in UTF-8 with commas between its fields, whose first line "
            "names the columns as the domain does.",
        )
        columns = [*columns, *present(self._header, more)]
        self._columns = {
            name: domain.declared(name) if name in domain else None for name in columns
        }

    def empty(self) -> Any:
        return read_records([], self._header, self._columns)

    schema = empty

    def rows(self, progress: Progress) -> Any:
        progress.say(f"Reading {self._path}.")
        size = os.fstat(self._file.fileno()).st_size
        lines = progress.reading(self._file, size, self._lines)
        return read_records(lines, self._header, self._columns)

    def table(self, progress: Progress) -> Any:
        self._lines = self._counted(self._lines)
        frame = self.rows(progress)
        self.malformed -= len(frame)
        return frame

    def _counted(self, lines: Iterator[str | None]) -> Iterator[str | None]:
        for line in lines:
            self.malformed += line != ""
            yield line


class _ParquetSource:
    malformed = 0

    def __init__(self, path: str, columns: Sequence[str], more: Sequence[str]) -> None:
        self._path = path
        self._file = ParquetFile(path)
        self._columns = [*columns, *present(self._file.names, more)]
        check_columns(
            self._file.names,
            columns,
            path,
            "The columns of the file must be named as the domain names them.",
        )

    def empty(self) -> Any:
        return self._file.empty(self._columns)

    def schema(self) -> Any:
        return self._file.schema(self._columns)

    def rows(self, progress: Progress) -> Any:
        progress.say(f"Reading {self._path}.")
        return self._file.rows(self._columns)

    def table(self, progress: Progress) -> Any:
        progress.say(f"Reading {self._path}.")
        return self._file.table(self._columns)


def check_columns(found: Sequence[str], wanted: Sequence[str], what: str, remedy: str) -> None:
    """Raise ValueError for declared columns that are missing or occur twice.

    The names that were found are not quoted: in a file without a header they are a record.
    """
    missing = [name for name in wanted if name not in found]
    if missing:
        raise ValueError(
            f"{what} does not name the declared column{'s' if len(missing) > 1 else ''} "
            f"{', '.join(map(repr, missing[:8]))}{' and others' if len(missing) > 8 else ''}. "
            f"{remedy}"
        )
    twice = [name for name in wanted if list(found).count(name) > 1]
    if twice:
        raise ValueError(f"{what} names the column {twice[0]!r} more than once.")


def present(found: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The columns that a file has, once each."""
    return [name for name in wanted if list(found).count(name) == 1]


def header_of(path: str) -> Any:
    """A table without records that has the columns of a file: for its owner.

    The types are those of a Parquet file; columns of a CSV file hold text.

    Raises
    ------
    ValueError
        If the first line of a CSV file names no columns, or the other is not Parquet.
    OSError
        If it cannot be opened.
    """
    with open(path, "rb") as file:
        if is_parquet_name(path) or is_parquet_file(path):
            parquet = ParquetFile(path)
            return parquet.schema(parquet.names)
        names = names_of(next(lines_of(file), ""), path)
    return pd.DataFrame({name: pd.Series(dtype=object) for name in names})
