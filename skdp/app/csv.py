"""The file of records, a CSV: names of its columns first, values when asked for."""

from __future__ import annotations

import codecs
import csv
import itertools
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import pandas as pd

from .._keys import key_of, number_written
from .._validation import some
from ..domain import Attribute, Categorical, Date, Datetime, Domain, Identifier, Numeric
from ..tables import UNFIT

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
        None: UTF-8, and bytes that are not are read as Windows-1252.
    decimal : {".", ","}, default="."
    multiline : bool, default=False
        Whether fields in quotes may hold line breaks.
    missing : sequence of str, default=()
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
    missing: Sequence[str] = ()
    skip_lines: int = 0

    def __post_init__(self) -> None:
        if len(self.sep) != 1 or not self.sep.isascii() or self.sep in '"\r\n':
            raise ValueError(f"--sep must be one sign, such as ';' or a tab, got {self.sep!r}.")
        if self.sep == self.decimal:
            raise ValueError("--decimal and --sep are the same sign: give --sep ';', or another.")
        if self.skip_lines < 0:
            raise ValueError(f"--skip-lines must not be negative, got {self.skip_lines}.")
        if self.encoding is not None and not self._keeps_lines(self.encoding):
            raise ValueError(
                f"--encoding {self.encoding!r} is no encoding of files that are read line by "
                "line: give one such as utf-8, latin-1 or cp1252."
            )

    def _keeps_lines(self, encoding: str) -> bool:
        signs = f'a{self.sep}"\n'
        with suppress(LookupError, UnicodeError):
            # Some codecs, such as "idna", cannot replace what they do not read.
            b"\xff".decode(encoding, errors="replace")
            return signs.encode(encoding) == signs.encode()
        return False

    @classmethod
    def of(cls, options: Any) -> Form:
        """The form that options of the command line describe."""
        given = {each: getattr(options, each) for each in cls.__dataclass_fields__}
        return cls(**{name: value for name, value in given.items() if value is not None})


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
    # Privacy. Byte by byte: how a field is read, so whose record it is, no other field decides.
    text = line.decode(form.encoding or "utf-8", errors="replace" if form.encoding else _WINDOWS)
    if '"' not in text:
        return text.split(form.sep)
    try:
        return next(csv.reader([text], strict=True, delimiter=form.sep))
    except csv.Error:
        return None


# All of a process share the names of such handlers.
_WINDOWS = "skdp.windows-1252"


def _as_windows(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("cp1252", errors="replace"), error.end


codecs.register_error(_WINDOWS, _as_windows)


def _names_of(line: Line, place: str, form: Form) -> list[str]:
    """Names of the columns, without blanks at the ends, from a line of a file.

    In a file without a header that line is a record, so messages never quote it.

    Raises
    ------
    ValueError
        If the line is empty or not well formed.
    """
    line = line and line.removeprefix(codecs.BOM_UTF8)
    names = fields_of(line, form) if line else None
    # Files of spreadsheets, packed ones and those in UTF-16 have such bytes.
    if names is None or "\0" in "".join(names):
        raise ValueError(
            f"{place} names no columns: save or unpack the file as CSV in UTF-8, and leave out "
            "lines above the names with --skip-lines."
        )
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


def try_out(estimator: Any) -> Any:
    """A trial fit without records, which divides the budget: what it refuses, a release refuses.

    It warns that its release is nearly empty, which says nothing about the file.
    """
    columns = columns_of(estimator.domain, estimator.privacy_id)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(read_records([], [*columns], columns))


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


@dataclass
class Source:
    """A CSV file of which the names of the columns have been read, and no record.

    Attributes
    ----------
    header : list of str
    columns : mapping of str to attribute or None
        The columns to read.
    """

    header: list[str]
    columns: Mapping[str, Declared]
    lines: Iterator[Line]
    form: Form

    @property
    def assumes(self) -> str:
        """What must be true of the file for each record to be read by itself."""
        closed = "the file was written with the quotes of every record closed"
        return closed if self.form.multiline else ""

    def rows(self, texts: bool = False) -> pd.DataFrame:
        """All records, as ``fit`` takes them; or with text that is no number, for the owner."""
        records = records_of(self.lines, self.form)
        return read_records(records, self.header, self.columns, self.form.decimal, texts)


@contextmanager
def open_source(
    path: str,
    columns: Mapping[str, Declared] | None = None,
    form: Form | None = None,
    *,
    others: bool = False,
) -> Iterator[Source]:
    """Open a file of records and match its columns with those that are declared, by names alone.

    Parameters
    ----------
    path : str
    columns : mapping of str to attribute or None, default=None
        Those that are needed; by default all that have a name.
    form : Form, default=None
    others : bool, default=False
        Whether all other columns that occur once are read too, as text: for the owner.

    Raises
    ------
    ValueError
        If a declared column is missing or occurs twice, or the file is no CSV file. The names that
        were found are not quoted: in a file without a header they are a record.
    OSError
        If it cannot be opened.
    """
    form = form or Form()
    with open(path, "rb") as file:
        lines = lines_of(file, multiline=form.multiline)
        first = next(itertools.islice(lines, form.skip_lines, None), b"")
        place = f"Line {form.skip_lines + 1} of {path}"
        header = _names_of(first, place, form)
        other = next((sign for sign in ";\t|" if sign in header[0]), None)
        if len(header) == 1 and other is not None and form.sep == ",":
            name = "tab" if other == "\t" else other
            raise ValueError(
                f"{place} has no comma, and has {name!r}: if that stands between the fields, give "
                f"--sep '{name}'."
            )
        often = Counter(name for name in header if name)
        if columns is None:
            columns = dict.fromkeys(often)
        if odd := [name for name in columns if often[name] != 1]:
            raise ValueError(
                f"{place} must name each column once, and does not: {some(odd)}. Leave out lines "
                'that stand above the names with --skip-lines, such as a title, "sep=;" or the '
                "first of two rows of names."
            )
        once = [name for name, times in often.items() if times == 1]
        undeclared = dict.fromkeys(once) if others else {}
        yield Source(header, {**undeclared, **columns}, lines, form)


def columns_of(domain: Domain, privacy_id: str | None = None) -> dict[str, Declared]:
    """The columns that a release reads: those that are measured, and the one of persons."""
    found: dict[str, Declared] = {} if privacy_id is None else {privacy_id: None}
    return {**found, **{name: domain.declared(name) for name in domain.names}}
