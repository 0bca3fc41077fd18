"""The file of records: CSV or Parquet. Names and types first; values when asked for."""

from __future__ import annotations

import codecs
import csv
import errno
import gzip
import importlib.util
import itertools
import os
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import pandas as pd

from .._keys import key_of, number_written
from ..domain import Attribute, Categorical, Date, Datetime, Domain, Identifier, Numeric
from ..tables import TYPES_DECLARED, UNFIT
from ..tables.frame import check_unique
from .outputs import Progress

# --- records of a CSV file: one line is one record, and none can change how another is read

# Longer lines are skipped.
LONGEST_LINE = 1 << 24

Line = bytes | None
Declared = Attribute | Identifier | None


@dataclass(frozen=True)
class Form:
    """How a CSV file is written, as its owner says; nothing of it is guessed from the file.

    Attributes
    ----------
    sep : str, default=","
        What stands between fields.
    encoding : str or None, default=None
        None: UTF-8, and a field that is not is read as Windows-1252.
    decimal : {".", ","}, default="."
    multiline : bool, default=False
        Whether fields in quotes may hold line breaks.
    missing : tuple of str, default=()
        Text that stands for no value, such as "unknown".
    skip_lines : int, default=0
        Lines above the one that names the columns: titles, or "sep=;".

    Raises
    ------
    ValueError
        If the separator or the encoding cannot be used.
    """

    sep: str = ","
    encoding: str | None = None
    decimal: str = "."
    multiline: bool = False
    missing: tuple[str, ...] = ()
    skip_lines: int = 0

    def __post_init__(self) -> None:
        if len(self.sep) != 1 or not self.sep.isascii() or self.sep in '"\r\n':
            raise ValueError(f"--sep must be one sign, such as ';' or a tab, got {self.sep!r}.")
        if self.skip_lines < 0:
            raise ValueError(f"--skip-lines must not be negative, got {self.skip_lines}.")
        if self.encoding is None:
            return
        try:
            plain = f'a{self.sep}"\n'.encode(self.encoding) == f'a{self.sep}"\n'.encode()
            # Some codecs, such as "idna", cannot replace what they do not read.
            b"\xff".decode(self.encoding, errors="replace")
        except (LookupError, UnicodeError):
            raise ValueError(
                f"--encoding {self.encoding!r} is not known, or no encoding of files: give one "
                "such as utf-8, latin-1 or cp1252."
            ) from None
        if not plain:
            raise ValueError(
                f"--encoding {self.encoding!r} has no lines that can be read one by one: save the "
                "file in UTF-8."
            )


def lines_of(file: IO[bytes], *, multiline: bool = False) -> Iterator[Line]:
    """Lines of a binary file without their ends; None for one that is too long.

    Only a line feed ends a line, so an odd byte in one record does not shift the others.

    Parameters
    ----------
    file : binary file
    multiline : bool, default=False
        Whether a line goes on until its quotes are closed.
    """
    while line := file.readline(LONGEST_LINE):
        # Privacy. With `multiline` an open quote takes the lines of other records with it. Where
        # every record was written with its quotes closed, it never does: each is again read by
        # itself. The release states that assumption.
        parts, left = [line], LONGEST_LINE - len(line)
        open_quote = multiline and line.count(b'"') % 2
        while open_quote and left > 0 and (more := file.readline(left)):
            parts.append(more)
            left -= len(more)
            open_quote ^= more.count(b'"') % 2
        line = b"".join(parts)
        if len(line) < LONGEST_LINE or line.endswith(b"\n"):
            yield line.removesuffix(b"\n").removesuffix(b"\r")
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(LONGEST_LINE)
        yield None


def records_of(lines: Iterable[Line], form: Form) -> Iterator[list[str] | None]:
    """Fields of each line that is not empty; None for those that are not well formed."""
    # In a file of one column an empty value is written "".
    records = (fields_of(line, form) for line in lines if line != b"")
    if not form.missing:
        return records
    blank = dict.fromkeys(form.missing, "")
    return (each and [blank.get(field.strip(), field) for field in each] for each in records)


def fields_of(line: Line, form: Form) -> list[str] | None:
    """Fields of one line, or None if it is not well formed."""
    if line is None or line.count(b'"') % 2:
        return None
    mixed = False
    if form.encoding is not None:
        text = line.decode(form.encoding, errors="replace")
    else:
        try:
            text = line.decode()
        except UnicodeDecodeError:
            # A sign for each byte; each field is decoded by itself below.
            text, mixed = line.decode("latin-1"), True
    if '"' not in text:
        fields = text.split(form.sep)
    else:
        try:
            fields = next(csv.reader([text], strict=True, delimiter=form.sep))
        except csv.Error:
            return None
    return [_decoded(field.encode("latin-1")) for field in fields] if mixed else fields


def _decoded(field: bytes) -> str:
    """A field in UTF-8, or else in Windows-1252, whose unused bytes are those of Latin-1."""
    try:
        return field.decode()
    except UnicodeDecodeError:
        return field.decode("cp1252", errors="latin-1")


def _as_latin(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error("latin-1", _as_latin)


def _names_of(line: Line, place: str, form: Form) -> list[str]:
    """Names of the columns, without blanks at the ends, from a line of a file.

    In a file without a header that line is a record, so messages never quote it.

    Raises
    ------
    ValueError
        If the line is empty or not well formed.
    """
    if line is not None:
        if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise ValueError(f"{place} is in UTF-16: save the file as CSV in UTF-8.")
        line = line.removeprefix(codecs.BOM_UTF8)
    if line == b"":
        raise ValueError(f"{place} is empty: it must name the columns (see --skip-lines).")
    names = fields_of(line, form)
    if names is None:
        raise ValueError(f"{place} names no columns.")
    return [name.strip() for name in names]


def read_records(
    records: Iterable[Sequence[str] | None],
    header: Sequence[str],
    columns: Mapping[str, Declared],
    decimal: str = ".",
    texts: bool = False,
) -> pd.DataFrame:
    """Columns of a file, with the types that the domain declares.

    Each record and each value is read by itself, and none of them raises. Fields that are lacking
    at the end of a record are missing values. A record that is not well formed, or has more fields
    than the header that hold anything, is kept as one that fits no domain.

    Parameters
    ----------
    records : iterable of sequence of str, or None
        Fields of each record. None: not well formed.
    header : sequence of str
        Names of all columns of the file, each of ``columns`` once.
    columns : mapping of str to attribute or None
        The columns to read. None, or an Identifier, reads text, which identifies persons.
    decimal : {".", ","}, default="."
    texts : bool, default=False
        Whether text that is no number is kept, for the owner to look at.

    Returns
    -------
    frame : pandas.DataFrame
        Its ``attrs`` tell which records fit no domain, by their index, as `Frame` reads them:
        private.
    """
    place_of = {name: place for place, name in enumerate(header)}
    read: list[list[object]] = [[] for _ in columns]
    into = [
        (column, place_of[name], _reader(attribute, decimal, texts))
        for column, (name, attribute) in zip(read, columns.items(), strict=True)
    ]
    unfit: list[bool] = []
    width = len(header)
    for fields in records:
        bad = fields is None or any(fields[width:])
        unfit.append(bad)
        given: Sequence[str] = () if bad or fields is None else fields
        have = len(given)
        for column, place, reader in into:
            column.append(reader(given[place]) if place < have else reader(""))
    frame = pd.DataFrame(
        {
            name: pd.Series(
                column, dtype=np.float64 if _numeric(attribute) and not texts else object
            )
            for (name, attribute), column in zip(columns.items(), read, strict=True)
        },
        index=pd.RangeIndex(len(unfit), name=UNFIT),
    )
    frame.attrs[UNFIT] = np.array(unfit, dtype=bool).tobytes()
    return frame


def no_records(domain: Domain, privacy_id: str | None) -> pd.DataFrame:
    """A table without records that has the columns of a domain, and that of persons."""
    names = _with_id(domain, privacy_id)
    return read_records([], names, {n: domain.declared(n) if n in domain else None for n in names})


def _with_id(domain: Domain, privacy_id: str | None) -> list[str]:
    return list(dict.fromkeys([*domain.names, *([] if privacy_id is None else [privacy_id])]))


def try_out(estimator: Any, records: Any) -> Any:
    """A trial fit without records, which divides the budget: what it refuses, a release refuses.

    It warns that its release is nearly empty, which says nothing about the file.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(records)


def _numeric(attribute: Declared) -> bool:
    # Dates lie on a line of numbers too, but the domain reads them from text by itself.
    return isinstance(attribute, Numeric) and not isinstance(attribute, Date | Datetime)


def _reader(attribute: Declared, decimal: str, texts: bool) -> Callable[[str], object]:
    """A function from a field to its value, which the domain gives its meaning."""
    if isinstance(attribute, Categorical):
        known = attribute.coding().table

        def category(field: str) -> object:
            # Blanks at the ends are part of a category only where it is declared with them.
            text = field if key_of(field) in known else field.strip()
            if decimal == "." or key_of(text) in known:
                return text
            number = number_written(text, decimal)
            return number if number in known else text

        return category
    if not texts and (attribute is None or isinstance(attribute, Identifier)):
        # Privacy. Bytes, which nothing takes for a number: "01" and "1", or "12e45678" and
        # "9e456781", which are both infinite, are different persons, by the text of their records.
        # What the declared encoding cannot read may be several persons, so it is nobody's.
        return lambda field: (
            field.encode(errors="surrogatepass") if field and "\ufffd" not in field else None
        )
    if not _numeric(attribute) and not (texts and decimal == "," and attribute is None):
        return lambda field: field or None

    def number(field: str) -> object:
        found = number_written(field, decimal)
        if not texts or not np.isnan(found) or not field.strip():
            return found
        # What has a point is read as a number elsewhere.
        return field if np.isnan(number_written(field)) else f"{field} (a decimal point)"

    return number


# --- the source, by its name

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

    def rows(self, progress: Progress) -> Any:
        """All records, as ``fit`` takes them."""

    def table(self, progress: Progress) -> Any:
        """All records, in memory, with text that is no number: for the owner."""


@contextmanager
def open_source(
    path: str,
    domain: Domain,
    privacy_id: str | None = None,
    *,
    everything: bool = False,
    options: Any = None,
) -> Iterator[Source]:
    """Open a file of records and match its columns with the domain, by names alone.

    Parameters
    ----------
    path : str
    domain : Domain
    privacy_id : str, default=None
        A further column, which identifies the person a row belongs to.
    everything : bool, default=False
        Whether columns that are not measured are read too, and `Source.table` keeps text that is
        no number: for the owner.
    options : Namespace, default=None
        How a CSV file is written.

    Raises
    ------
    ValueError
        If a declared column is missing or occurs twice, or the file is not what its name says.
    OSError
        If it cannot be opened.
    """
    columns = _with_id(domain, privacy_id)
    if _is_parquet(path):
        yield _ParquetSource(path, columns, ParquetFile(path).names if everything else [])
        return
    with _opened(path, options) as table:
        check_columns(
            table.header,
            columns,
            table.place,
            "It must name the columns as the domain does. Leave out lines that stand above the "
            "names with --skip-lines, such as a title or the first of two rows of names.",
        )
        columns += present(table.header, table.header if everything else [], columns)
        known = {name: domain.declared(name) for name in domain.columns}
        yield replace(table, columns={name: known.get(name) for name in columns})


@contextmanager
def open_table(path: str, columns: Mapping[str, Declared], options: Any) -> Iterator[Source]:
    """Open a file of records whose columns are not declared: for its owner."""
    if _is_parquet(path):
        yield _ParquetSource(path, list(columns), [])
        return
    with _opened(path, options) as table:
        check_columns(table.header, list(columns), table.place, "")
        yield replace(table, columns=columns)


def _is_parquet(path: str) -> bool:
    # Opened first, which raises what files raise, with the name of the file.
    return is_parquet_file(path) or is_parquet_name(path)


@dataclass
class _TableSource:
    """A CSV file: an iterator of its records, each of which is read by itself."""

    path: str
    place: str
    header: Sequence[str]
    records: Iterator[Sequence[Any] | None]
    decimal: str = "."
    assumes: str = ""
    columns: Mapping[str, Declared] = field(default_factory=dict)

    def empty(self) -> Any:
        return read_records([], self.header, self.columns)

    def rows(self, progress: Progress, texts: bool = False) -> Any:
        progress.say(f"Reading {self.path}.")
        return read_records(self.records, self.header, self.columns, self.decimal, texts)

    def table(self, progress: Progress) -> Any:
        return self.rows(progress, True)


@contextmanager
def _opened(path: str, options: Any) -> Iterator[_TableSource]:
    """A CSV file, which may be compressed by gzip."""
    ending = Path(path).suffix.lower()
    if ending in (".xlsx", ".xlsm"):
        raise ValueError(f"{path} is a workbook: save the sheet of the records as CSV.")
    if ending in (".zip", ".bz2", ".xz"):
        raise ValueError(f"{path} is packed: unpack it, and give the CSV file.")
    form = form_of(options)
    with open(path, "rb") as plain:
        file: Any = gzip.open(plain) if ending == ".gz" else plain
        lines = _undamaged(lines_of(file, multiline=form.multiline), path)
        first = next(itertools.islice(lines, form.skip_lines, None), b"")
        place = f"Line {form.skip_lines + 1} of {path}"
        header = _names_of(first, place, form)
        other = next((sign for sign in ";\t|" if sign in header[0]), None)
        if len(header) == 1 and other is not None and getattr(options, "sep", None) is None:
            name = "tab" if other == "\t" else other
            raise ValueError(
                f"{place} has no comma, and has {name!r}: if that stands between the fields, give "
                f"--sep '{name}'. Else give --sep ','."
            )
        records = records_of(lines, form)
        assumes = _CLOSED if form.multiline else ""
        yield _TableSource(path, place, header, records, form.decimal, assumes)


def form_of(options: Any) -> Form:
    """How the file is written, by the options."""
    given = {name: getattr(options, name, None) for name in ("sep", "encoding", "decimal")}
    found = {name: value for name, value in given.items() if value is not None}
    if found.get("sep") in ("tab", "\\t"):
        found["sep"] = "\t"
    if found.get("decimal") == "," and "sep" not in found:
        raise ValueError("--decimal and --sep are the same sign: give --sep ';', or another.")
    found |= {"missing": tuple(getattr(options, "missing", None) or ())}
    found |= {name: getattr(options, name, None) or 0 for name in ("multiline", "skip_lines")}
    return Form(**found)


def _undamaged(lines: Iterator[Line], path: str) -> Iterator[Line]:
    """The lines, with one error for all that compressed files raise, also at their end."""
    try:
        yield from lines
    except (EOFError, zlib.error, OSError) as error:
        if getattr(error, "errno", None) is not None:
            raise
        what = "It is no compressed file, or it is cut off or damaged: copy it again"
        raise OSError(errno.EIO, what, path) from None


class _ParquetSource:
    # Of a Parquet file: a program may have taken them from the records when it wrote the file.
    assumes = TYPES_DECLARED

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

    def rows(self, progress: Progress) -> Any:
        progress.say(f"Reading {self._path}.")
        return self._file.rows(self._columns)

    table = rows


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
        raise ValueError(
            f"{what} names the column {twice[0]!r} more than once: give each a name of its own."
        )


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
        If the line of names in a file names no columns, or the other is not Parquet.
    OSError
        If it cannot be opened.
    """
    if _is_parquet(path):
        parquet = ParquetFile(path)
        return parquet.empty(parquet.names)
    with _opened(path, options) as table:
        # Columns without a name, as spreadsheets write them at the end, are not read.
        return pd.DataFrame({name: pd.Series(dtype=object) for name in table.header if name})


# --- Parquet files, by PyArrow, which is optional; what it says about a file that it cannot read is
# not passed on, because it may quote bytes of it

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
        if whole and importlib.util.find_spec("pyarrow") is None:
            raise ValueError(
                "Parquet files need PyArrow: `pip install 'skdp[parquet]'`. CSV files do not."
            )
        self._empty: Any = None
        self.names: list[str] = []
        # Damaged files raise almost anything.
        with suppress(Exception):
            if whole:
                from pyarrow import parquet

                self._empty = parquet.read_schema(path).remove_metadata().empty_table()
                self.names = list(self._empty.column_names)
        # Raised here, without the library's error as its context.
        if self._empty is None:
            raise ValueError(f"{self._path} is not a Parquet file, or it is damaged.")
        check_unique(self.names)

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
