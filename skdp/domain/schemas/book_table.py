"""The rows of a code book: from CSV, Excel or a frame, under headers that are matched loosely."""

from __future__ import annotations

import csv
import datetime
import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ...exceptions import DomainError
from ..values import some

__all__ = ["HEADERS", "Row", "read_book"]

# What a column of a code book may be called: case, spaces and signs are ignored.
HEADERS: dict[str, str] = {
    "name": """name variable variablename varname var column columnname col field fieldname
        attribute attributename feature variablefieldname item""",
    "type": """type datatype dtype kind class vartype variabletype fieldtype columntype
        measurement measurementlevel level levelofmeasurement""",
    "range": "range validrange allowedrange valuerange limits bounds interval",
    "min": """min minimum lower lowerbound lo low minvalue minimumvalue smallest from first
        textvalidationmin start""",
    "max": """max maximum upper upperbound hi high maxvalue maximumvalue largest to last
        textvalidationmax end""",
    "values": """values value categories category codes code valuecodes allowedvalues validvalues
        permittedvalues possiblevalues enum choices options coding responses answers domain
        choicescalculationsorsliderlabels""",
    "labels": "labels valuelabels label valuelabel meaning meanings codelabels codelabel",
    "special": "special specialvalues specialcodes pointmasses sentinels reserved",
    "missing": """missing nullable canbemissing maybemissing optional na nulls missingvalues
        missingcodes missingvalue missingcode allowmissing hasnull""",
    "required": "required mandatory notnull requiredfield",
    "decimals": "decimals decimalplaces places precision digits",
    "step": "step increment resolution multipleof",
    "unit": "unit units",
    "bins": "bins nbins numberofbins cells",
    "edges": "edges breaks cutpoints binedges",
    "scale": "scale spacing binscale",
    "ordered": "ordered isordered order ordinal",
    "other": "other othercategory default",
    "tz": "tz timezone zone",
    "format": "format dateformat",
    "validation": "textvalidationtypeorshowslidernumber validation validationtype",
    "identifier": "identifier isidentifier isid primarykey key",
}
_MEANING = {word: header for header, words in HEADERS.items() for word in words.split()}
# Rows that may stand above the header: a title, an empty line.
_MOST_ABOVE = 20


class Row(dict[str, str]):
    """Cells of a row by the meaning of their columns; empty text where there is nothing.

    Parameters
    ----------
    cells : mapping of str to str
    where : str
        Such as "row 7", for messages.
    """

    def __init__(self, cells: dict[str, str], where: str) -> None:
        super().__init__(cells)
        self.where = where

    def __missing__(self, key: str) -> str:
        return ""


def read_book(
    source: Any, *, sheet: str | int | None, encoding: str, delimiter: str | None
) -> list[Row]:
    """The rows of a code book that say anything.

    Parameters
    ----------
    source : path, frame or list of dict
    sheet : str or int, optional
        Sheet of a workbook; default: the first that has the headers.
    encoding, delimiter : str
        Of a CSV file; by default the delimiter is recognised.

    Raises
    ------
    DomainError
        If it has no column for names, or two columns with the same meaning.
    ImportError
        For a workbook, without openpyxl.
    OSError
        If it cannot be read.
    """
    if not isinstance(source, str | os.PathLike):
        source = _as_pandas(source)
        body = [[_text(cell) for cell in row] for row in source.itertuples(index=False)]
        return _rows([[_text(name) for name in source.columns], *body], "the frame", 0)
    path = Path(source)
    if path.suffix.casefold() in (".xlsx", ".xlsm"):
        return _workbook(path, sheet)
    if sheet is not None:
        raise DomainError("sheet= is for workbooks (.xlsx); a CSV file has one table.")
    try:
        text = _decoded(path, encoding)
    except (UnicodeDecodeError, LookupError) as error:
        raise DomainError(
            f"{path.name} cannot be read as {encoding}: {error}. Name its encoding, such as "
            "encoding='latin-1'."
        ) from error
    marks = [delimiter] if delimiter is not None else [",", ";", "\t", "|"]
    grids = [_grid(text, mark, path.name) for mark in marks]
    best = max(grids, key=lambda grid: _header(grid)[1])
    return _rows(best, path.name, 1)


def _as_pandas(source: Any) -> pd.DataFrame:
    """A code book that was read already: a frame, or a list of rows."""
    if isinstance(source, pd.DataFrame):
        return source
    if hasattr(source, "to_pydict"):  # Arrow
        return pd.DataFrame(source.to_pydict())
    if hasattr(source, "iter_rows") and hasattr(source, "columns"):  # Polars
        return pd.DataFrame(list(source.iter_rows()), columns=source.columns, dtype=object)
    if isinstance(source, list) and source and all(isinstance(row, Mapping) for row in source):
        return pd.DataFrame(source, dtype=object)
    raise DomainError(
        f"A code book is a file (.csv, .xlsx), a frame, or a list of dicts, got "
        f"{type(source).__name__}."
    )


def _decoded(path: Path, encoding: str) -> str:
    raw = path.read_bytes()
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff") and encoding == "utf-8-sig":
        encoding = "utf-16"  # "Unicode text" of Excel
    return raw.decode(encoding)


def _grid(text: str, delimiter: str, name: str) -> list[list[str]]:
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        return [[cell.strip() for cell in row] for row in reader]
    except (csv.Error, TypeError) as error:
        raise DomainError(f"{name} is not a CSV file: {error}.") from None


def _workbook(path: Path, sheet: str | int | None) -> list[Row]:
    try:
        import openpyxl
    except ImportError as error:
        raise ImportError(
            "Workbooks need openpyxl: pip install 'skdp[schemas]', or save the sheet as CSV."
        ) from error
    try:
        book = openpyxl.load_workbook(os.fspath(path), read_only=True, data_only=True)
        grids = {
            page.title: [[_text(cell) for cell in row] for row in page.iter_rows(values_only=True)]
            for page in book.worksheets
        }
        book.close()
    except OSError:
        raise
    except Exception as error:  # openpyxl lets errors of zip, XML and its own escape
        raise DomainError(f"{path.name} is not a workbook that can be read: {error}.") from error
    titles = list(grids)
    if isinstance(sheet, int) and -len(titles) <= sheet < len(titles):
        sheet = titles[sheet]
    if sheet is not None and sheet not in grids:
        raise DomainError(f"{path.name} has no sheet {sheet!r}; it has {some(titles)}.")
    if sheet is None:
        sheet = next((t for t in titles if _header(grids[t])[1] > 1), titles[0] if titles else "")
    return _rows(grids.get(sheet, []), f"sheet {sheet!r} of {path.name}", 1)


def _text(cell: Any) -> str:
    """A cell as a person would have typed it."""
    if (
        cell is None
        or (isinstance(cell, float) and cell != cell)
        or cell is pd.NA
        or cell is pd.NaT
    ):
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    if isinstance(cell, datetime.datetime):
        return cell.isoformat().removesuffix("T00:00:00")
    return str(cell).strip()


def _means(header: str) -> str | None:
    word = re.sub(r"[^a-z0-9]", "", re.sub(r"\(.*?\)", "", header.casefold()))
    return _MEANING.get(word)


def _header(grid: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Position of the header, and how many columns are understood there; 0 if there is none."""
    best = (0, 0)
    for position, row in enumerate(grid[:_MOST_ABOVE]):
        found = {_means(cell) for cell in row} - {None}
        if "name" in found and len(found) > best[1]:
            best = (position, len(found))
    return best


def _rows(grid: Sequence[Sequence[str]], what: str, first: int) -> list[Row]:
    start, known = _header(grid)
    if not known:
        shown = some(list(grid[0]) if grid else [])
        raise DomainError(
            f"{what} has no column for the names of the variables. Its first row is {shown}; the "
            f"column may be called {some(HEADERS['name'].split(), 6)}."
        )
    meanings = [_means(cell) for cell in grid[start]]
    _refuse_repeated(meanings, grid[start], what)
    rows = []
    for offset, cells in enumerate(grid[start + 1 :], start=start + 1 + first):
        said = {m: cell for m, cell in zip(meanings, cells, strict=False) if m and cell.strip()}
        if said:
            rows.append(Row(said, f"row {offset}"))
    if not rows:
        raise DomainError(f"{what} has a header, but no rows below it.")
    return rows


def _refuse_repeated(meanings: Iterable[str | None], header: Sequence[str], what: str) -> None:
    seen: dict[str, str] = {}
    for meaning, cell in zip(meanings, header, strict=True):
        if meaning is not None and meaning in seen:
            raise DomainError(
                f"{what} has two columns for the {meaning}: {seen[meaning]!r} and {cell!r}. Rename "
                "or remove one of them."
            )
        if meaning is not None:
            seen[meaning] = cell
