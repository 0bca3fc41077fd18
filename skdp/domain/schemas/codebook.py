"""Code books: a CSV file with one row for each column of the table.

Whatever the book says twice in different ways is an error, never a guess.
"""

from __future__ import annotations

import csv
import io
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ...exceptions import DomainError
from ..numeric import AUTO
from ..values import some
from .cells import as_range, as_values, as_yes_no, meaning, number, plain_list
from .field import Field

# What columns of a code book may be called, in any case; others are ignored.
_HEADERS = {
    "name": "name variable column field",
    "type": "type",
    "range": "range",
    "min": "min lower",
    "max": "max upper",
    "values": "values categories",
    "special": "special",
    "missing": "missing nullable",
    "decimals": "decimals",
    "step": "step",
    "unit": "unit",
    "bins": "bins",
    "edges": "edges",
    "scale": "scale",
    "ordered": "ordered",
    "other": "other",
    "tz": "tz",
    "format": "format",
}
HEADERS = {word: header for header, words in _HEADERS.items() for word in words.split()}
_BOOKS = (".csv", ".tsv", ".txt")

# Cells of a row by the meaning of their columns; "" where there is nothing.
Row = defaultdict[str, str]


def fields_of_codebook(
    source: str | os.PathLike[str], encoding: str = "utf-8-sig"
) -> Iterator[Field]:
    """Columns of a code book in CSV.

    Raises
    ------
    DomainError
        If it is no CSV file, has no column for names, or two columns with the same meaning.
    OSError
        If it cannot be read.
    """
    path = Path(source)
    header, *rows = _table(path, encoding) or [[]]
    means = [HEADERS.get(cell.casefold()) for cell in header]
    if "name" not in means:
        raise DomainError(
            f"{path.name} has no column for the names of the variables. Its first row is "
            f"{some(header)}; the column may be called {some(_HEADERS['name'].split())}."
        )
    twice = next((each for each in means if each and means.count(each) > 1), None)
    if twice is not None:
        cells = [cell for cell, each in zip(header, means, strict=True) if each == twice]
        raise DomainError(
            f"{path.name} has two columns for the {twice}: {cells[0]!r} and {cells[1]!r}. Rename "
            "or remove one of them."
        )
    if not any(map(any, rows)):
        raise DomainError(f"{path.name} has a header, but no rows below it.")
    for at, cells in enumerate(rows, start=2):
        said = {each: cell for each, cell in zip(means, cells, strict=False) if each and cell}
        if not said:
            continue
        if "name" not in said:
            raise DomainError(f"The code book has no name in row {at}.")
        row: Row = defaultdict(str, said)
        field = Field(row["name"], "", row["type"] or "no type", f"row {at}")
        try:
            _fill(field, row)
        except DomainError as error:
            field.wrong = str(error)
        yield field


def _table(path: Path, encoding: str) -> list[list[str]]:
    """All cells of a CSV file; between them is the sign that makes most columns."""
    if path.suffix.casefold() not in _BOOKS:
        raise DomainError(
            f"A code book is a file that ends in {', '.join(_BOOKS)}, got {path.name!r}. Save a "
            "workbook as CSV; a domain in JSON is read with `Domain.from_json(pathlib.Path(...))`."
        )
    try:
        raw = path.read_bytes()
        utf16 = encoding == "utf-8-sig" and raw[:2] in (b"\xff\xfe", b"\xfe\xff")  # of Excel
        text = raw.decode("utf-16" if utf16 else encoding)
        lines = [csv.reader(io.StringIO(text, newline=""), delimiter=mark) for mark in ",;\t|"]
        tables = [[[cell.strip() for cell in row] for row in rows] for rows in lines]
    except (LookupError, ValueError, csv.Error) as error:
        what = f"no CSV file in {encoding} (encoding='latin-1'?)"
        raise DomainError(f"{path.name} is {what}: {error}.") from error
    return max(tables, key=lambda table: len(table[0]) if table else 0)


def _fill(field: Field, row: Row) -> None:
    """Fill in what the row of a variable says."""
    kind, said = meaning(row["type"]) if row["type"] else ("category", {})
    field.kind = kind
    for key, value in said.items():
        setattr(field, key, value)
    if row["range"]:
        ends = as_range(row["range"])
        if ends is None:
            raise DomainError(
                f"the range {row['range']!r} is not understood. Write it as 0..99, or as dates, "
                "2020-01-01..2020-12-31."
            )
        field.lower, field.upper = ends
    field.lower, field.upper = row["min"] or field.lower, row["max"] or field.upper
    field.bins = AUTO if row["bins"].casefold() == AUTO else _cell(row, "bins", "a whole number")
    if row["decimals"]:
        field.decimals = _cell(row, "decimals", "a whole number")
    field.ordered = bool(_cell(row, "ordered", "yes or no")) or field.ordered
    field.nullable = bool(_cell(row, "missing", "yes or no"))
    field.step = _cell(row, "step", "a number")
    field.edges, field.special = (_cell(row, key, _LIST) for key in ("edges", "special"))
    field.tz, field.format = row["tz"] or field.tz, row["format"] or None
    field.unit = row["unit"].casefold() or field.unit if field.is_moment else field.unit
    field.scale = row["scale"].casefold() or None
    if not row["values"] or kind == "identifier":
        return
    if field.is_moment or field.lower is not None or field.edges is not None:
        raise DomainError(
            f"the type is {field.type}, and it has both values and a range, or is a date. Values "
            "are all that there are: leave the range out, and numbers beside a range are special."
        )
    texts = as_values(row["values"])
    is_text = row["type"].casefold().startswith(("str", "char", "varchar", "text"))
    as_read: Callable[[list[str]], list[Any]] = list if is_text else plain_list
    field.kind, field.categories = "category", as_read(texts)
    field.other = as_read([*texts, row["other"]])[-1] if row["other"] else None


_LIST = "numbers such as 0; 10; 100"
_CELLS: dict[str, Callable[[str], Any]] = {
    "a number": number,
    "a whole number": lambda text: found if isinstance(found := number(text), int) else None,
    _LIST: lambda text: None if None in (found := [number(v) for v in as_values(text)]) else found,
    "yes or no": as_yes_no,
}


def _cell(row: Row, key: str, what: str) -> Any:
    """What a cell holds; None if it is empty."""
    found = _CELLS[what](row[key]) if row[key] else None
    if row[key] and found is None:
        raise DomainError(f"{key} must be {what}, got {row[key]!r}.")
    return found
