"""Records of a CSV file: one line is one record, and none can change how another is read."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO

import numpy as np
import pandas as pd

from .._base import UNREAD
from ..domain import Attribute, Categorical, Date, Datetime, Identifier, Numeric

__all__ = ["LONGEST_LINE", "Declared", "fields_of", "lines_of", "names_of", "read_records"]

# Longer lines are skipped.
LONGEST_LINE = 1 << 24

Line = str | None
Value = object
Declared = Attribute | Identifier | None


def lines_of(file: IO[bytes]) -> Iterator[Line]:
    """Lines of a binary file as text, without their ends; None for one that is too long.

    Only a line feed ends a line, so an odd byte in one record does not shift the others.
    """
    while line := file.readline(LONGEST_LINE):
        if len(line) < LONGEST_LINE or line.endswith(b"\n"):
            yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", errors="replace")
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(LONGEST_LINE)
        yield None


def fields_of(line: Line) -> list[str] | None:
    """Fields of one line, or None if it is not well formed."""
    if line is None or line.count('"') % 2:
        return None
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error:
        return None


def names_of(line: Line, path: str) -> list[str]:
    """Names of the columns, from the first line of a file.

    In a file without a header the first line is a record, so messages never quote it.

    Raises
    ------
    ValueError
        If the line is empty or not well formed.
    """
    if line == "":
        raise ValueError(f"The first line of {path} is empty: it must name the columns.")
    names = None if line is None else fields_of(line.removeprefix("\ufeff"))
    if names is None:
        raise ValueError(f"The first line of {path} names no columns.")
    return names


def read_records(
    lines: Iterator[Line] | Sequence[Line],
    header: Sequence[str],
    columns: Mapping[str, Declared],
) -> pd.DataFrame:
    """Columns of a file, with the types that the domain declares.

    Each line and each value is parsed by itself, and none of them raises. Lines that are not well
    formed, and those with more or fewer fields than the header, are skipped; how many there are
    goes along, exact and private, so that a release counts them with noise.

    Parameters
    ----------
    lines : iterable of str or None
        Without the first line.
    header : sequence of str
        Names of all columns of the file, each of ``columns`` once.
    columns : mapping of str to attribute or None
        The columns to read. None reads text, which identifies persons.
    """
    places = [list(header).index(name) for name in columns]
    readers = [_reader(attribute) for attribute in columns.values()]
    read: list[list[Value]] = [[] for _ in places]
    malformed = 0
    for line in lines:
        fields = fields_of(line)
        # Skip empty lines; in a file of one column an empty value is written "".
        if line and fields is not None and len(fields) == len(header):
            for column, reader, place in zip(read, readers, places, strict=True):
                column.append(reader(fields[place]))
        elif line != "":
            malformed += 1
    frame = pd.DataFrame(
        {
            name: pd.Series(column, dtype=np.float64 if reader is _as_float else object)
            for name, column, reader in zip(columns, read, readers, strict=True)
        }
    )
    frame.attrs[UNREAD] = malformed
    return frame


def _reader(attribute: Declared) -> Callable[[str], Value]:
    """A function from the text of a field to its value."""
    if isinstance(attribute, Categorical):
        return _category_reader(attribute)
    # Dates lie on a line of numbers too, but the domain reads them from text by itself.
    if isinstance(attribute, Numeric) and not isinstance(attribute, Date | Datetime):
        return _as_float
    return _as_text


def _category_reader(attribute: Categorical) -> Callable[[str], Value]:
    # Files hold text: a declared 1 is written "1", or "1.0" where pandas made it a float.
    declared = {str(category): category for category in attribute.categories}
    numbers = {category: category for category in attribute.categories if category != str(category)}

    def read(text: str) -> Value:
        if text in declared:
            return declared[text]
        return numbers.get(_as_float(text), text) if text else None

    return read


def _as_text(text: str) -> Value:
    return text or None


def _as_float(text: str) -> float:
    """The number that a text writes; text that is not a number is missing."""
    try:
        return float(text)
    except ValueError:
        return np.nan
