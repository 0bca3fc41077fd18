"""Records of a CSV file: one line is one record, and none can change how another is read."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np
import pandas as pd

from ..domain import Attribute, Categorical, Date, Datetime, Domain, Identifier, Numeric
from ..domain.values import number_written
from ..rows import UNFIT

__all__ = [
    "LONGEST_LINE",
    "Declared",
    "Form",
    "lines_of",
    "names_of",
    "no_records",
    "read_records",
    "records_of",
]

# Longer lines are skipped.
LONGEST_LINE = 1 << 24

Line = bytes | None
Value = object
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
        Text that stands for no value, such as "NA".

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

    def __post_init__(self) -> None:
        if len(self.sep) != 1 or not self.sep.isascii() or self.sep in '"\r\n':
            raise ValueError(f"--sep must be one sign, such as ';' or a tab, got {self.sep!r}.")
        if self.encoding is None:
            return
        try:
            plain = f'a{self.sep}"\n'.encode(self.encoding) == f'a{self.sep}"\n'.encode()
        except (LookupError, UnicodeError):
            raise ValueError(f"--encoding {self.encoding!r} is not known.") from None
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


def names_of(line: Line, path: str, form: Form) -> list[str]:
    """Names of the columns, without blanks at the ends, from the first line of a file.

    In a file without a header the first line is a record, so messages never quote it.

    Raises
    ------
    ValueError
        If the line is empty or not well formed.
    """
    if line is not None:
        if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise ValueError(f"{path} is in UTF-16: save it in UTF-8, as CSV or as .xlsx.")
        line = line.removeprefix(codecs.BOM_UTF8)
    if line == b"":
        raise ValueError(f"The first line of {path} is empty: it must name the columns.")
    names = fields_of(line, form)
    if names is None:
        raise ValueError(f"The first line of {path} names no columns.")
    return [name.strip() for name in names]


def read_records(
    records: Iterable[Sequence[Value] | None],
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
    records : iterable of sequence or None
        Fields of each record: text, or what a cell of a workbook holds. None: not well formed.
    header : sequence of str
        Names of all columns of the file, each of ``columns`` once.
    columns : mapping of str to attribute or None
        The columns to read. None reads text, which identifies persons.
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
    read: list[list[Value]] = [[] for _ in columns]
    into = [
        (column, place_of[name], _reader(attribute, decimal, texts))
        for column, (name, attribute) in zip(read, columns.items(), strict=True)
    ]
    unfit: list[bool] = []
    width = len(header)
    for fields in records:
        bad = fields is None or any(field not in (None, "") for field in fields[width:])
        unfit.append(bad)
        given: Sequence[Value] = () if bad or fields is None else fields
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


def no_records(domain: Domain, unit: str | None) -> pd.DataFrame:
    """A table without records that has the columns of a domain, and that of persons."""
    names = [*domain.names, *([unit] if unit is not None and unit not in domain.names else [])]
    return read_records([], names, {n: domain.declared(n) if n in domain else None for n in names})


def _numeric(attribute: Declared) -> bool:
    # Dates lie on a line of numbers too, but the domain reads them from text by itself.
    return isinstance(attribute, Numeric) and not isinstance(attribute, Date | Datetime)


def _reader(attribute: Declared, decimal: str, texts: bool) -> Callable[[Value], Value]:
    """A function from a field to its value."""
    if isinstance(attribute, Categorical):
        return _category_reader(attribute, decimal)
    if not _numeric(attribute) and not (texts and decimal == "," and attribute is None):
        return lambda field: None if field == "" else field

    def number(field: Value) -> Value:
        if isinstance(field, str):
            found = number_written(field, decimal)
            if not texts or not np.isnan(found) or not field.strip():
                return found
            # What has a point is read as a number elsewhere.
            return field if np.isnan(number_written(field)) else f"{field} (a decimal point)"
        if not isinstance(field, int | float):
            return np.nan
        try:
            return float(field)
        except OverflowError:  # a whole number of hundreds of digits
            return np.inf if field > 0 else -np.inf

    return number


def _category_reader(attribute: Categorical, decimal: str) -> Callable[[Value], Value]:
    # Files hold text: a declared 1 is written "1", or "1.0" where pandas made it a float.
    declared = {str(category): category for category in attribute.categories}
    numbers = {category: category for category in attribute.categories if category != str(category)}
    truth = {str(each).lower(): each for each in attribute.categories if isinstance(each, bool)}

    def read(field: Value) -> Value:
        text = field if isinstance(field, str) else _cell_text(field)
        # Blanks at the ends are part of a category only where it is declared with them.
        text = text if text in declared else text.strip()
        if text in declared:
            return declared[text]
        if numbers:
            if text.lower() in truth:
                return truth[text.lower()]
            return numbers.get(number_written(text, decimal), text) if text else None
        return text or None

    return read


def _cell_text(cell: Value) -> str:
    """What a cell of a workbook shows; whole numbers without a point."""
    if cell is None:
        return ""
    try:
        return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
    except ValueError:  # a whole number of thousands of digits
        return ""
