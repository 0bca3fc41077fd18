"""The file of records: CSV, Excel or Parquet. Names and types first; values when asked for."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import pandas as pd

from ..domain import Domain
from ..rows import ParquetFile, is_parquet_file, is_parquet_name
from .csv_lines import Declared, Form, lines_of, names_of, read_records, records_of
from .progress import Progress

__all__ = ["Source", "header_of", "open_source", "open_table"]

_CLOSED = "the file was written with the quotes of every record closed"


class Source(Protocol):
    """The columns of a file that a domain declares, and perhaps one that identifies persons.

    Attributes
    ----------
    assumes : str
        What must be true of the file for each record to be read by itself.
    """

    assumes: str

    def empty(self) -> Any:
        """A table with these columns and without records, as ``rows`` gives it."""

    def schema(self) -> Any:
        """A table with these columns and without records, in memory."""

    def rows(self, progress: Progress) -> Any:
        """All records, as ``fit`` takes them: in an engine if there is one for the file."""

    def table(self, progress: Progress) -> Any:
        """All records, in memory, with text that is no number: for the owner."""


@contextmanager
def open_source(
    path: str,
    domain: Domain,
    unit: str | None = None,
    *,
    everything: bool = False,
    options: Any = None,
) -> Iterator[Source]:
    """Open a file of records and match its columns with the domain, by names alone.

    Parameters
    ----------
    path : str
    domain : Domain
    unit : str, default=None
        A further column, which identifies the person a row belongs to.
    everything : bool, default=False
        Whether columns that are not measured are read too, and `Source.table` keeps text that is
        no number: for the owner.
    options : Namespace, default=None
        How a CSV file is written, or which sheet of a workbook holds the records.

    Raises
    ------
    ValueError
        If a declared column is missing or occurs twice, or the file is not what its name says.
    OSError
        If it cannot be opened.
    """
    columns = [*domain.names, *([unit] if unit is not None and unit not in domain.names else [])]
    if _is_parquet(path):
        yield _ParquetSource(path, columns, ParquetFile(path).names if everything else [])
        return
    with _opened(path, options) as table:
        check_columns(
            table.header,
            columns,
            f"The first line of {path}",
            "It must name the columns as the domain does. Remove lines that stand above the names.",
        )
        columns += present(table.header, table.header if everything else [], columns)
        known = {name: domain.declared(name) for name in domain.columns}
        yield _TableSource(table, {name: known.get(name) for name in columns})


@contextmanager
def open_table(path: str, columns: Mapping[str, Declared], options: Any) -> Iterator[Source]:
    """Open a file of records whose columns are not declared: for its owner."""
    if _is_parquet(path):
        yield _ParquetSource(path, list(columns), [])
        return
    with _opened(path, options) as table:
        check_columns(table.header, list(columns), f"The first line of {path}", "")
        yield _TableSource(table, columns)


def _is_parquet(path: str) -> bool:
    with open(path, "rb"):
        pass  # raises what files raise, with the name of the file
    return is_parquet_name(path) or is_parquet_file(path)


class _TableSource:
    """Records of a CSV file or a workbook, each read by itself."""

    def __init__(self, table: _Table, columns: Mapping[str, Declared]) -> None:
        self._table, self.assumes, self._columns = table, table.assumes, columns

    def empty(self) -> Any:
        return read_records([], self._table.header, self._columns)

    schema = empty

    def rows(self, progress: Progress, texts: bool = False) -> Any:
        progress.say(f"Reading {self._table.path}.")
        records = self._table.records(progress)
        decimal = self._table.decimal
        return read_records(records, self._table.header, self._columns, decimal, texts)

    def table(self, progress: Progress) -> Any:
        return self.rows(progress, True)


@dataclass(frozen=True)
class _Table:
    """Names of the columns, and a function that gives the fields of each record."""

    path: str
    header: Sequence[str]
    records: Callable[[Progress], Iterator[Sequence[Any] | None]]
    decimal: str = "."
    assumes: str = ""


@contextmanager
def _opened(path: str, options: Any) -> Iterator[_Table]:
    """A CSV file, which may be compressed, or a sheet of a workbook."""
    if Path(path).suffix.lower() in (".xlsx", ".xlsm"):
        with _workbook(path, getattr(options, "sheet", None)) as table:
            yield table
        return
    form = form_of(options)
    with open(path, "rb") as plain, _unpacked(plain, path) as file:
        lines = lines_of(file, multiline=form.multiline)
        try:
            first = next(lines, b"")
        except (EOFError, zlib.error, lzma.LZMAError, OSError, zipfile.BadZipFile):
            raise ValueError(f"{path} is no compressed file, or it is damaged.") from None
        header = names_of(first, path, form)
        other = next((sign for sign in ";\t|" if sign in header[0]), None)
        if len(header) == 1 and other is not None and getattr(options, "sep", None) is None:
            name = "tab" if other == "\t" else other
            raise ValueError(
                f"The first line of {path} has no comma, and has {name!r}: if that stands between "
                f"the fields, give --sep '{name}'. Else give --sep ','."
            )

        def records(progress: Progress) -> Iterator[Sequence[Any] | None]:
            size = os.fstat(plain.fileno()).st_size
            return records_of(progress.reading(plain, size, lines), form)

        yield _Table(path, header, records, form.decimal, _CLOSED if form.multiline else "")


def form_of(options: Any) -> Form:
    """How the file is written, by the options."""
    given = {name: getattr(options, name, None) for name in ("sep", "encoding", "decimal")}
    found = {name: value for name, value in given.items() if value is not None}
    if found.get("sep") in ("tab", "\\t"):
        found["sep"] = "\t"
    if found.get("decimal") == "," and "sep" not in found:
        raise ValueError("--decimal and --sep are the same sign: give --sep ';', or another.")
    missing = tuple(getattr(options, "missing", None) or ())
    return Form(**found, multiline=bool(getattr(options, "multiline", False)), missing=missing)


def _unpacked(file: IO[bytes], path: str) -> Any:
    """The contents of a compressed file, by the ending of its name; others as they are."""
    ending = Path(path).suffix.lower()
    if ending == ".gz":
        return gzip.open(file)
    if ending == ".bz2":
        return bz2.open(file)
    if ending == ".xz":
        return lzma.open(file)
    if ending != ".zip":
        return file
    try:
        archive = zipfile.ZipFile(file)
        names = [name for name in archive.namelist() if not name.endswith("/")]
        if len(names) == 1:
            return archive.open(names[0])
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError):
        raise ValueError(f"{path} is not a zip file that can be read, or it is damaged.") from None
    raise ValueError(f"{path} holds {len(names)} files: unpack it, and give one of them.")


@contextmanager
def _workbook(path: str, sheet: str | None) -> Iterator[_Table]:
    try:
        import openpyxl
    except ImportError as error:
        raise ImportError(
            "Workbooks need openpyxl: pip install 'skdp[schemas]', or save the sheet as CSV."
        ) from error
    with open(path, "rb") as file:
        book = None
        # Errors and warnings of zip and XML may quote the file.
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        if book is None:
            raise ValueError(f"{path} is not a workbook that can be read, or it is damaged.")
        pages = {page.title: page for page in book.worksheets}
        if sheet is not None and sheet not in pages:
            raise ValueError(f"{path} has no sheet {sheet!r}; it has {list(pages)!r}.")
        page: Any = pages[sheet] if sheet is not None else book.worksheets[0]
        # What a workbook says about its size may be wrong.
        page.reset_dimensions()
        rows = page.iter_rows(values_only=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            header = ["" if cell is None else str(cell).strip() for cell in next(rows, ())]
        if not any(header):
            raise ValueError(f"The first row of {path} is empty: it must name the columns.")
        yield _Table(
            path,
            header,
            lambda _: (row for row in rows if any(c is not None for c in row)),
            # A forged cell or number of a row can stop the reader, or hide the rows after it.
            assumes="the workbook was written by a spreadsheet program",
        )


class _ParquetSource:
    assumes = ""

    def __init__(self, path: str, columns: Sequence[str], more: Sequence[str]) -> None:
        self._path = path
        self._file = ParquetFile(path)
        self._columns = [*columns, *present(self._file.names, more, columns)]
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
    often = Counter(found)
    missing = [name for name in wanted if name not in often]
    if missing:
        raise ValueError(
            f"{what} does not name the declared column{'s' if len(missing) > 1 else ''} "
            f"{', '.join(map(repr, missing[:8]))}{' and others' if len(missing) > 8 else ''}. "
            f"{remedy}"
        )
    twice = [name for name in wanted if often[name] > 1]
    if twice:
        raise ValueError(f"{what} names the column {twice[0]!r} more than once.")


def present(found: Sequence[str], wanted: Sequence[str], known: Sequence[str]) -> list[str]:
    """Further columns that a file has, once each."""
    often, seen = Counter(found), set(known)
    return [name for name in wanted if often[name] == 1 and name not in seen]


def header_of(path: str, options: Any = None) -> Any:
    """A table without records that has the columns of a file: for its owner.

    The types are those of a Parquet file; columns of other files hold anything.

    Raises
    ------
    ValueError
        If the first line of a file names no columns, or the other is not Parquet.
    OSError
        If it cannot be opened.
    """
    if _is_parquet(path):
        parquet = ParquetFile(path)
        return parquet.schema(parquet.names)
    with _opened(path, options) as table:
        return pd.DataFrame({name: pd.Series(dtype=object) for name in table.header})
