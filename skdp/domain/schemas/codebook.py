"""Code books: a CSV file with one row for each variable, or for each of its values.

Headers and cells are read as people write them. Whatever the book says
twice in different ways is an error, never a guess.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ...exceptions import DomainError
from ..numeric import AUTO
from ..values import some
from .cells import as_span, as_values, as_yes_no, meaning, number, plain_list
from .field import Field, same_text

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
_BOOKS = (".csv", ".tsv", ".txt")
# A span of categories, such as 1-5, is written out up to this many.
_MOST_LISTED = 10_000
_ABSENT = frozenset(". na n/a nan null none blank empty missing".split())
_SCALES = {"logarithmic": "log", "squareroot": "sqrt", "square root": "sqrt"}
_LEVELS = ("", "ordinal", "nominal", "ratio", "interval", "metric")

# Cells of a row by the meaning of their columns, and "where" it stands; "" where there is nothing.
Row = defaultdict[str, str]


def fields_of_codebook(
    source: str | os.PathLike[str],
    *,
    labels: bool = False,
    na_values: Any = (),
    encoding: str = "utf-8-sig",
) -> Iterator[Field]:
    """Columns of a code book in CSV.

    Parameters
    ----------
    source : path
    labels : bool, default=False
        Whether the table holds the labels ("Male"), not the codes (1).
    na_values : value or list of values, default=()
        Codes that the rows were read without, as for ``pandas.read_csv``: they are the missing
        cell instead of values.
    encoding : str, default="utf-8-sig"

    Raises
    ------
    DomainError
        If it is no CSV file, has no column for names, or two columns with the same meaning.
    OSError
        If it cannot be read.
    """
    groups: list[list[Row]] = []
    for row in _rows(*_grid(Path(source), encoding)):
        last = groups[-1] if groups else None
        if last is not None and row["name"] in ("", last[0]["name"]) and _adds(row, last[0]):
            last.append(row)
        elif not row["name"]:
            raise DomainError(
                f"The code book has no name in {row['where']}. A row without a name adds a value "
                "to the variable above, and says nothing else."
            )
        else:
            groups.append([row])
    for group in groups:
        field = Field(group[0]["name"], "", group[0]["type"] or "no type", group[0]["where"])
        try:
            _fill(field, group, labels, same_text(na_values))
        except (DomainError, csv.Error) as error:
            field.wrong = str(error)
        yield field


def _adds(row: Row, top: Row) -> bool:
    """Whether a row adds a value to a variable without contradicting its first row."""
    aside = ("name", "values", "labels", "where")
    same = all(top[key] == cell for key, cell in row.items() if key not in aside)
    return same and bool(row["values"] or row["labels"])


def _grid(path: Path, encoding: str) -> tuple[list[list[str]], str]:
    """All cells of a code book, and what it is called."""
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
    return max(tables, key=lambda grid: _header(grid)[1]), path.name


def _header(grid: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Position of the header, and how many columns are understood there; 0 if there is none."""
    found = [{_means(cell) for cell in row} - {None} for row in grid[:_MOST_ABOVE]]
    known = [len(meanings) if "name" in meanings else 0 for meanings in found]
    return max(enumerate(known), key=lambda entry: entry[1], default=(0, 0))


def _means(header: str) -> str | None:
    return _MEANING.get(re.sub(r"[^a-z0-9]", "", re.sub(r"\(.*?\)", "", header.casefold())))


def _rows(grid: list[list[str]], what: str) -> list[Row]:
    """The rows of a code book that say anything."""
    start, known = _header(grid)
    if not known:
        raise DomainError(
            f"{what} has no column for the names of the variables. Its first row is "
            f"{some(grid[0] if grid else [])}; the column may be called "
            f"{some(HEADERS['name'].split(), 6)}."
        )
    meanings = [_means(cell) for cell in grid[start]]
    for twice, times in Counter(filter(None, meanings)).items():
        if times > 1:
            cells = [cell for cell in grid[start] if _means(cell) == twice]
            raise DomainError(
                f"{what} has two columns for the {twice}: {cells[0]!r} and {cells[1]!r}. Rename or "
                "remove one of them."
            )
    rows = []
    for at, cells in enumerate(grid[start + 1 :], start=start + 2):
        said = {m: cell for m, cell in zip(meanings, cells, strict=False) if m and cell}
        if said:
            rows.append(defaultdict(str, said, where=f"row {at}"))
    if not rows:
        raise DomainError(f"{what} has a header, but no rows below it.")
    return rows


def _fill(field: Field, rows: Sequence[Row], labels: bool, absent: set[str]) -> None:
    """Fill in what the rows about one variable say."""
    row = rows[0]
    kind, said = meaning(row["type"]) if row["type"] else ("", {})
    checked = meaning(row["validation"])
    if checked[0] not in ("unknown", "category", "text"):
        kind, said = checked
    kind = "identifier" if as_yes_no(row["identifier"]) else "" if kind == "object" else kind
    field.kind, field.missing = kind, absent
    for key, value in said.items():
        setattr(field, key, value)
    spans, values = _values(rows, kind)
    _options(field, row)
    if row["range"]:
        span = as_span(row["range"])
        if span is None:
            raise DomainError(
                f"the range {row['range']!r} is not understood. Write it as 0-99, 0..99 or "
                "[0, 99], or as dates, 2020-01-01..2020-12-31."
            )
        spans = [span]
    rules = _hull(spans)
    for side in ("min", "max"):
        if row[side]:
            rules = {rule: end for rule, end in rules.items() if side not in rule.lower()}
            rules[f"{side}imum"] = row[side]
    field.bound(rules)
    field.kind = kind or _guessed(field)
    # Codes for missing values that the table holds stand for themselves.
    extra = []
    if row["required"]:
        field.nullable = not _cell(row, "required", "yes or no")
    elif (yes := as_yes_no(row["missing"])) is not None:
        field.nullable = yes
    else:
        codes = [code for code, _ in as_values(row["missing"])]
        extra = [c for c in codes if c not in absent and c.casefold() not in _ABSENT]
        field.nullable = len(extra) < len(codes)
    if field.is_moment and (values or extra) and not field.bounded:
        raise DomainError(
            f"the type is {field.type}, so it needs a range such as 2020-01-01..2020-12-31."
        )
    if field.bounded:
        field.codes = [code for code, _ in values]
        gone = {code for code in field.codes if code.casefold() in _ABSENT}
        field.missing, field.special = absent | gone, [*(field.special or ()), *extra]
    elif (values or extra) and field.kind != "identifier":
        kept = [(code, label) for code, label in values if code not in absent]
        field.nullable = field.nullable or len(kept) < len(values)
        labels = labels and any(label for _, label in kept)
        texts = [(labels and label) or code for code, label in kept]
        texts += [code for code in extra if code not in texts]
        is_text = labels or row["type"].casefold().startswith(("str", "char", "varchar", "text"))
        as_read: Callable[[list[str]], list[Any]] = list if is_text else plain_list
        field.kind, field.categories = "category", as_read(texts)
        field.other = as_read([*texts, row["other"]])[-1] if row["other"] else None


def _guessed(field: Field) -> str:
    """Kind of a variable without a type."""
    ends = [end for end in (field.lower, field.upper) if end is not None]
    if not ends:
        return "number" if field.edges is not None else "category"
    numbers = [number(end) for end in ends]
    if None in numbers and any("-" in end for end in ends):
        return "datetime" if any(":" in end for end in ends) else "date"
    whole = all(isinstance(end, int) for end in numbers) and not field.decimals
    return "integer" if whole and field.step is None else "number"


def _values(
    rows: Sequence[Row], kind: str
) -> tuple[list[dict[str, str]], list[tuple[str, str | None]]]:
    """Ranges and single values, with labels, of the cells for values."""
    items: list[tuple[str, str | None]] = []
    for row in rows:
        text, label = row["values"], row["labels"]
        if not text and "=" in label:
            text, label = label, ""
        single = len(rows) > 1 and (label or "=" not in text)
        if text and (single or as_span(text, listed=True)):
            items.append((text, label or None))
            continue
        listed = as_values(text)
        named = [name for name, _ in as_values(label)] if "=" not in label else []
        if len(named) == len(listed) and not any(label for _, label in listed):
            listed = [(code, name) for (code, _), name in zip(listed, named, strict=True)]
        items += listed
    spans = [as_span(code, listed=True) for code, _ in items]
    ranges = [span for span in spans if span is not None]
    if kind == "category" and len(ranges) == 1:
        return [], _counted(items)
    if kind == "category" or (not kind and len(ranges) != 1):
        return [], items  # several ranges are names of groups: 18-24|25-34
    return ranges, [item for item, span in zip(items, spans, strict=True) if span is None]


def _counted(items: list[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    """Values of a category with a range of codes, as in "1-5; 9", written out."""
    found: list[tuple[str, str | None]] = []
    for code, label in items:
        ends = list((as_span(code, listed=True) or {"": code}).values())
        whole = plain_list(ends)
        if not all(type(end) is int for end in whole) or len(ends) > 2:
            return items
        if len(whole) == 1:
            found.append((code, label))
        elif 0 <= whole[1] - whole[0] < _MOST_LISTED:
            found += [(str(value), str(value)) for value in range(whole[0], whole[1] + 1)]
        else:
            return items
    return found


def _hull(spans: Sequence[dict[str, str]]) -> dict[str, str]:
    """One range that holds several, such as those of age groups."""
    found = {}
    for side, pick in (("min", min), ("max", max)):
        ends = [(rule, end) for span in spans for rule, end in span.items() if side in rule.lower()]
        if ends and len(ends) == len(spans):
            rule, end = pick(ends, key=lambda entry: (number(entry[1]) or 0, entry[1]))
            found[rule] = end
    return found


def _options(field: Field, row: Row) -> None:
    """What cells say that stand for parameters of attributes."""
    field.bins = AUTO if row["bins"].casefold() == AUTO else _cell(row, "bins", "a whole number")
    for key, what in (("decimals", "a whole number"), ("ordered", "yes or no")):
        if row[key]:
            setattr(field, key, _cell(row, key, what))
    field.step = _cell(row, "step", "a number")
    field.edges, field.special = (_cell(row, key, _LIST) for key in ("edges", "special"))
    field.tz = row["tz"] or field.tz
    field.format = row["format"] if "%" in row["format"] else None
    if field.is_moment and row["unit"]:
        field.unit = row["unit"].casefold().removesuffix("s")
    scale = row["scale"].casefold()
    field.ordered = field.ordered or scale == "ordinal"
    if scale not in _LEVELS:
        field.scale = _SCALES.get(scale, scale)  # `Numeric` refuses what is none


_LIST = "numbers such as 0; 10; 100"
_CELLS: dict[str, Callable[[str], Any]] = {
    "a number": number,
    "a whole number": lambda text: found if isinstance(found := number(text), int) else None,
    _LIST: lambda text: (
        None if None in (found := [number(v) for v, _ in as_values(text)]) else found
    ),
    "yes or no": as_yes_no,
}


def _cell(row: Row, key: str, what: str) -> Any:
    """What a cell holds; None if it is empty."""
    found = _CELLS[what](row[key]) if row[key] else None
    if row[key] and found is None:
        raise DomainError(f"{key} must be {what}, got {row[key]!r}.")
    return found
