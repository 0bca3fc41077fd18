"""Domains from pairs and lists, JSON, types of columns and code books; code with blanks to fill in.

No row is ever read. A draft is a column as JSON holds it, with ``...`` for what is not known:
readers of types and of code books make drafts, `Domain.propose` and `Domain.check` write them as
code or JSON, and `from_schema` makes attributes of them, or one error with all that is missing.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import json
import math
import numbers
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from ..exceptions import DomainError
from .attributes import Attribute, Categorical, Identifier, declared_categories
from .dates import Date, Datetime
from .numeric import AUTO, MOST_SINGLE, Numeric
from .taxonomy import Taxonomy
from .values import number_written, refuse_placeholder, some

_FORMAT = "skdp.domain"

_VERSION = 1


def domain_to_text(pairs: list[tuple[str, Any]], rules: list[dict[str, Any]]) -> str:
    """JSON text of a domain: its columns in order, and its rules."""
    attributes = [{"name": name, **attribute.to_data()} for name, attribute in pairs]
    # A domain that was read from records is none.
    data = {"format": _FORMAT, "version": _VERSION, "inferred": False, "attributes": attributes}
    if rules:
        data["structure"] = rules
    return json.dumps(data, allow_nan=False)


def parts_from_text(
    source: str | os.PathLike[str],
) -> tuple[list[tuple[str, Any]], list[Any]]:
    """Columns and rules of a domain in JSON.

    Parameters
    ----------
    source : str or path-like
        A str is JSON text; a file is named by a ``pathlib.Path``.

    Raises
    ------
    DomainError
        If the text is not JSON, not a domain, of a later version, or declares no valid attribute.
    OSError
        If the file cannot be read.
    """
    if not isinstance(source, str | os.PathLike):
        raise DomainError(f"from_json takes JSON text or a path, got {type(source).__name__}.")
    try:
        data = _parsed(source) if isinstance(source, str) else read_json(source)
    except DomainError:
        raise
    except (ValueError, RecursionError) as error:
        raise DomainError(
            f"This is not a domain in JSON: {error}. A file is read with "
            "`Domain.from_json(pathlib.Path(...))`."
        ) from error
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise DomainError("This JSON is not a domain: it lacks the format 'skdp.domain'.")
    if data.get("version") != _VERSION:
        raise DomainError(
            f"This domain has version {data.get('version')!r}, but only version {_VERSION} can be "
            "read. Use the skdp that wrote it, or a newer one."
        )
    if data.get("inferred", False) is not False:
        raise DomainError(
            "This domain says that it was inferred from records: nothing that is released over it "
            "would be private. Declare it from public knowledge."
        )
    try:
        pairs, wrong = [], []
        for item in data["attributes"]:
            try:
                pairs.append((item["name"], attribute_from_data(item)))
            except DomainError as error:
                wrong.append(f"Column {item['name']!r}: {error}")
        if wrong:
            raise DomainError("\n".join(wrong))
        return pairs, list(data.get("structure", ()))
    except DomainError as error:
        raise DomainError(f"This JSON declares no valid domain. {error}") from error
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DomainError(f"This domain is damaged: {error!r}.") from error


def attribute_from_data(data: Mapping[str, Any]) -> Any:
    """One attribute of a JSON domain; raises if anything is wrong with it."""
    # A proposal has notes, too.
    said = {key: value for key, value in data.items() if key not in ("name", "type", "note")}
    kind = data["type"]
    for end in ("lower", "upper"):
        refuse_placeholder(said.get(end), end)
    if said.pop("fine", False):
        return attribute_from_data({"type": kind, **said}).fine
    if kind in ("numeric", "date", "datetime"):
        declared = {"numeric": Numeric, "date": Date, "datetime": Datetime}[kind]
        return declared(said.pop("lower", None), said.pop("upper", None), **said)
    if kind == "categorical":
        refuse_placeholder(said["categories"], "the list of categories")
        tree = said.pop("taxonomy", None)
        taxonomy = None if tree is None else Taxonomy(tree["labels"], tree["parents"])
        return Categorical(said.pop("categories"), taxonomy=taxonomy, **said)
    if kind == "identifier":
        return Identifier()
    refuse_placeholder(kind, "the type (numeric, categorical, date, ...)")
    raise DomainError(f"Attribute type {kind!r} is unknown.")


# --- declarations in short: pairs and lists


def short_form(given: list[Any] | tuple[Any, ...]) -> Any:
    """The attribute that a pair or a list declares.

    A list holds all values. A pair of whole numbers is a range of whole numbers, a pair of ISO
    dates a `Date`, with times a `Datetime`, and any other pair of numbers a range of all numbers.
    """
    if isinstance(given, list):
        return Categorical(given)
    data = data_of_pair(given)
    if data is None:
        raise DomainError(
            f"A tuple is a range, (smallest, largest) in numbers or in ISO dates, got {given!r}. "
            "All values of a column of categories are given as a list."
        )
    return attribute_from_data(data)


def data_of_pair(pair: Sequence[Any]) -> dict[str, Any] | None:
    """What JSON says of a range of numbers, dates or times; None if it is none of these."""
    if len(pair) != 2:
        return None
    data = {"lower": pair[0], "upper": pair[1]}
    if all(isinstance(end, numbers.Real) and not isinstance(end, bool) for end in pair):
        data |= {"type": "numeric", "integer": all(isinstance(end, int) for end in pair)}
        return data | ({"bins": AUTO} if single_or_auto(data) else {})
    if all(
        is_date(end) if isinstance(end, str) else isinstance(end, datetime.date) for end in pair
    ):
        return data | {"type": "datetime" if any(map(has_time, pair)) else "date"}
    return None


def single_or_auto(data: Mapping[str, Any]) -> str | None:
    """Bins where nobody gives any: one code each for a million integers is rarely meant."""
    ends = [data["lower"], data["upper"]]
    known = data.get("integer") and all(isinstance(end, int | float) for end in ends)
    return AUTO if known and ends[1] - ends[0] >= MOST_SINGLE else None


_DATE = re.compile(r"\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?)?")


def is_date(text: str) -> bool:
    """Whether a text is a date as ISO writes it, perhaps with a time."""
    return bool(_DATE.fullmatch(text))


def has_time(end: Any) -> bool:
    """Whether an end of a range names a time of day."""
    if isinstance(end, str):
        return bool(re.search(r"\d[T ]\d", end))
    if isinstance(end, datetime.datetime):
        return end.time() != datetime.time() or end.tzinfo is not None
    return False


# --- domains that a person can edit


def short(item: Mapping[str, Any]) -> dict[str, Any]:
    """An attribute without entries that follow from the rest: so one change is made once."""
    # A flag that is not set is left out; `other` may be the category False.
    kept = {k: v for k, v in item.items() if v is not None and (v is not False or k == "other")}
    even = not kept.keys() & {"edges", "scale", "decimals"}
    ends = [kept[key] for key in ("lower", "upper") if isinstance(kept.get(key), int | float)]
    if kept["type"] == "numeric" and "integer" in kept and even and len(ends) == 2:
        if kept.get("bins") == ends[1] - ends[0] + 1:
            del kept["bins"]
    return kept


def lined(attributes: Sequence[Mapping[str, Any]], rules: Sequence[Any], **more: Any) -> str:
    """A domain as JSON with a line for each column and rule."""
    head = {"format": _FORMAT, "version": _VERSION, **more}
    parts = [f"{_dumped(key)}: {_dumped(value)}" for key, value in head.items()]
    for key, items in (("attributes", attributes), ("structure", rules)):
        if items:
            parts.append(f"{_dumped(key)}: [\n  " + ",\n  ".join(map(_dumped, items)) + "\n]")
    return "{" + ",\n".join(parts) + "}\n"


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def editable(domain_json: str) -> str:
    """A domain in JSON with a line for each column and rule, shortened."""
    data = json.loads(domain_json)
    return lined([short(item) for item in data["attributes"]], data.get("structure", []))


def read_json(path: str | os.PathLike[str]) -> Any:
    """What a JSON file holds.

    Raises
    ------
    DomainError
        If it is none, or a key occurs twice in an object.
    OSError
        If it cannot be read.
    """
    path = Path(path)
    try:
        return _parsed(path.read_text("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DomainError(f"{path.name} is not JSON in UTF-8: {error}.") from error


def _parsed(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON in which no key occurs twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        repeated = next(name for name, times in Counter(n for n, _ in pairs).items() if times > 1)
        raise DomainError(f"{repeated!r} occurs twice in one object; names must be unique.")
    return found


# Name of a column, its declaration as JSON holds it with ``...`` for blanks, and a note. The type
# None is no type that a column can have.
Draft = tuple[str, Mapping[str, Any], str]

# --- types of columns

# What a name of a type means, without its digits.
_WORDS = {
    "integer": """int integer uint i u bigint smallint tinyint mediumint hugeint ubigint uinteger
        usmallint utinyint uhugeint long short byte count whole wholenumber year serial""",
    "number": """number numeric numerical num float halffloat double doubleprecision real decimal
        money currency amount continuous percent percentage ratio f scale quantity""",
    "boolean": "bool boolean logical flag bit",
    "category": """category categorical enum factor nominal coded code codes choice radio dropdown
        select dictionary binary dichotomous str string stringdtype varchar nvarchar char nchar
        character charactervarying utf largestring stringview largeutf singlechoice""",
    "ordered": "ordinal ordered likert",
    "date": "date day dateymd datemdy datedmy",
    "datetime": "datetime timestamp timestamptz timestampwithtimezone smalldatetime instant",
    "identifier": "id identifier key uuid guid primarykey recordid uniqueidentifier uniqueid",
    "text": "text freetext memo notes note comment comments longtext clob openended open prose",
    "object": "object any objectdtype",
}
_KIND = {word: kind for kind, words in _WORDS.items() for word in words.split()}
KINDS = ("integer", "number", "boolean", "category", "ordered", "date", "datetime", "identifier",
         "text")  # fmt: skip


def of_name(type_name: str) -> dict[str, Any]:
    """The column that a name of a type means, such as "int64", "NUMERIC(10, 2)", "Ordinal"."""
    head = re.split(r"[(\[<]", type_name)[0]
    inside, word = type_name[len(head) :], re.sub(r"[^a-z]", "", head.casefold())
    kind = _KIND.get(word)
    ends: dict[str, Any] = {"lower": ..., "upper": ...}
    if kind in ("integer", "number"):
        places = re.fullmatch(r"\(\D*\d+\s*,\D*(\d+)\s*\)\s*", inside)
        decimals = int(places[1]) if places and kind == "number" else None
        whole = kind == "integer" or decimals == 0
        return {"type": "numeric", **ends, "integer": whole, "decimals": decimals or None}
    if kind == "datetime":
        zone = re.search(r""",\s*(?:\w+=)?['"]?([A-Za-z_]+(?:/[\w+-]+)*)['")\]>]*\s*$""", inside)
        utc = zone and zone[1] not in ("None", "ns", "us", "ms")
        return {"type": kind, **ends, "tz": "UTC" if utc or word.endswith(("tz", "zone")) else None}
    if kind in ("category", "ordered", "text"):
        return {"type": "categorical", "categories": [...], "ordered": kind == "ordered"}
    if kind == "boolean":
        return {"type": "categorical", "categories": [False, True]}
    if kind == "date":
        return {"type": kind, **ends}
    return {"type": {None: None, "object": ...}.get(kind, kind)}


def _of_type(dtype: Any) -> tuple[dict[str, Any], str]:
    """The column that a type means, and the name of the type.

    Parameters
    ----------
    dtype : type, dtype or str
        Of NumPy, pandas, Polars, narwhals or Python, or its name.
    """
    text = dtype.__name__ if isinstance(dtype, type) else str(dtype)
    # NumPy names its types otherwise than it writes them.
    said = dtype.name if isinstance(dtype, np.dtype) else text.removesuffix("[pyarrow]")
    data = of_name(said)
    plain = isinstance(dtype, str | type | np.dtype)
    fixed = plain and re.fullmatch(r"u?int\d*|bool_?|integer|boolean", said.strip())
    if plain and data["type"] == "datetime" and "64" in said and not data["tz"]:
        data |= {"type": "date", "loose": True}  # a type of pandas and NumPy for days, too
    with contextlib.suppress(DomainError):  # not a type of categories, or it does not say which
        if data["type"] == "categorical" or isinstance(dtype, type):
            listed, ordered = declared_categories(dtype)
            data = {"type": "categorical", "categories": listed, "ordered": ordered}
            text = text.partition("(")[0]
    return data | {"nullable": not fixed}, text


def drafts_of_types(source: Any) -> list[Draft]:
    """Columns of a frame, lazy frame, array, or mapping from names to types."""
    return [(name, *_of_type(dtype)) for name, dtype in _types(source)]


def _types(source: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(source, np.ndarray):
        if source.ndim != 2:
            raise DomainError(f"An array of rows has two dimensions, got shape {source.shape}.")
        return [(f"x{position}", source.dtype) for position in range(source.shape[1])]
    if isinstance(source, pd.DataFrame):
        source = source.dtypes
    if isinstance(source, Mapping | pd.Series):
        return source.items()
    try:
        return nw.from_native(source).collect_schema().items()
    except TypeError:
        raise DomainError(
            f"{type(source).__name__} does not list columns and types. Give a frame, or a dict of "
            "names and types."
        ) from None


# --- code books: a CSV file with one row for each column of the table

# What columns of a code book may be called, in any case; others are ignored.
_HEADERS = {
    "name": "name variable column field",
    "type": "type",
    "range": "range",
    "lower": "min lower",
    "upper": "max upper",
    "categories": "values categories",
    "nullable": "missing nullable",
    **{
        key: key
        for key in ("special decimals unit bins edges scale ordered other tz format").split()
    },
}
HEADERS = {word: header for header, words in _HEADERS.items() for word in words.split()}
_BOOKS = (".csv", ".tsv", ".txt")


def number(text: str) -> int | float | None:
    """The number that a text writes, such as "-5", "1,000", "$2.50", "1e3"; None if it is none."""
    value = number_written(text)
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and not re.search(r"[.eE]", text) else value


def as_range(text: str) -> tuple[str, str] | None:
    """The ends of a range such as ``0..99``, ``0 to 99`` or ``0-99``, numbers or dates, or None."""
    for mark in ("..", " to ", "-"):
        low, _, high = (part.strip() for part in text.partition(mark))
        if all(is_date(end) or number(end) is not None for end in (low, high)):
            return low, high
    return None


def as_values(text: str) -> list[str]:
    """A list of values such as ``a|b|c`` or ``1=Male; 2=Female``, without their labels.

    The separator is the first of ``|``, ``;`` and a comma that occurs.
    """
    separator = next((mark for mark in "|;," if mark in text), ";")
    parts = [part.strip() for part in text.split(separator)]
    return [part.partition("=")[0].strip() or part for part in parts if part]


def _plain_list(texts: list[str]) -> list[Any]:
    """Values of one column: numbers if all are, truth values if all are, else text."""
    words = {text.casefold() for text in texts}
    if words and words <= {"true", "false"}:
        return [text.casefold() == "true" for text in texts]
    # As a reader of CSV files takes them: 007 is text, and so is what no float holds.
    if not all(re.fullmatch(r"-?(0|[1-9]\d{0,17})(\.\d{1,12})?", text) for text in texts):
        return list(texts)
    return [float(text) if "." in text else int(text) for text in texts]


def _whole(text: str) -> int | None:
    found = number(text)
    return found if isinstance(found, int) else None


def _numbers(text: str) -> list[int | float] | None:
    found = [number(value) for value in as_values(text)]
    return None if None in found else found  # type: ignore[return-value]


def _yes_no(text: str) -> bool | None:
    words = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
    return words.get(text.casefold())


# How the cells of a column of the book are read, and what they must be.
_CELLS: dict[str, tuple[Callable[[str], Any], str]] = {
    "bins": (lambda text: AUTO if text.casefold() == AUTO else _whole(text), "a whole number"),
    "decimals": (_whole, "a whole number"),
    "edges": (_numbers, "numbers such as 0; 10; 100"),
    "special": (_numbers, "numbers such as 0; 10; 100"),
    "ordered": (_yes_no, "yes or no"),
    "nullable": (_yes_no, "yes or no"),
    "unit": (str.casefold, "a unit"),
    "scale": (str.casefold, "a scale"),
    "tz": (str, "UTC"),
    "format": (str, "a form of dates"),
}


def drafts_of_codebook(
    source: str | os.PathLike[str], encoding: str, without: Iterable[str] = ()
) -> list[Draft]:
    """Columns of a code book in CSV, but those that are not asked for.

    Raises
    ------
    DomainError
        If it is no CSV file, has no column for names, or two columns with the same meaning; one
        for all rows that cannot be understood.
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
    drafts: list[Draft] = []
    wrong = []
    for at, cells in enumerate(rows, start=2):
        row = {each: cell for each, cell in zip(means, cells, strict=False) if each and cell}
        if not row:
            continue
        if "name" not in row:
            raise DomainError(f"The code book has no name in row {at}.")
        name, note = row["name"], row.get("type", "no type")
        try:
            drafts.append((name, {} if name in without else _of_row(row), note))
        except DomainError as error:
            wrong.append(f"Column {name!r} (row {at}): {error}")
    if wrong:
        raise DomainError("\n".join(_first(wrong)))
    return drafts


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


def _of_row(row: Mapping[str, str]) -> dict[str, Any]:
    """What the row of a variable says. What it says twice in different ways is an error."""
    data: dict[str, Any] = of_name(row.get("type", "category"))
    for key, (read, what) in _CELLS.items():
        if key in row:
            data[key] = read(row[key])
            if data[key] is None:
                raise DomainError(f"{_HEADERS[key].split()[0]} must be {what}, got {row[key]!r}.")
    data.setdefault("nullable", False)
    if data["type"] == "identifier":
        return {"type": "identifier"}
    lined, ends = "lower" in data, {key: row[key] for key in ("lower", "upper") if key in row}
    if "range" in row:
        pair = as_range(row["range"])
        if pair is None:
            raise DomainError(
                f"the range {row['range']!r} is not understood. Write it as 0..99, or as dates, "
                "2020-01-01..2020-12-31."
            )
        ends = dict(zip(("lower", "upper"), pair, strict=True)) | ends
    if "categories" in row:
        if ends or "edges" in row or data["type"] in ("date", "datetime"):
            raise DomainError(
                f"the type is {row.get('type')}, and it has both values and a range, or is a date. "
                "Values are all that there are: leave the range out, and numbers beside a range "
                "are special."
            )
        is_text = row.get("type", "").casefold().startswith(("str", "char", "varchar", "text"))
        read_list: Callable[[list[str]], list[Any]] = list if is_text else _plain_list
        texts, kept = as_values(row["categories"]), ("ordered", "nullable")
        more = [value for value in data.get("special", ()) if value not in read_list(texts)]
        data = {key: data[key] for key in kept if key in data}
        data |= {"type": "categorical", "categories": read_list(texts) + more}
        return data | ({"other": read_list([*texts, row["other"]])[-1]} if "other" in row else {})
    if not lined:
        return data
    if data["type"] != "numeric":
        return data | ends
    if data.get("decimals"):
        data["integer"] = False
    for key, text in ends.items():
        if (found := number(text)) is None:
            raise DomainError(f"the bound {text!r} is not a number, but the type is {row['type']}.")
        data[key] = found
    if "edges" in row:
        del data["lower"], data["upper"]
    return data


# --- attributes of drafts


def from_schema(source: Any, ranges: Any, encoding: str) -> list[tuple[str, Any]]:
    """Pairs of `Domain.from_schema`."""
    if not isinstance(ranges, Mapping):
        raise DomainError(f"ranges must be a dict from column names, got {ranges!r:.60}.")
    whole = [name for name, given in ranges.items() if isinstance(given, Attribute | Identifier)]
    if isinstance(source, str | os.PathLike):
        drafts = drafts_of_codebook(source, encoding, whole)
    else:
        drafts = drafts_of_types(source)
    names = [name for name, *_ in drafts]
    if unknown := [name for name in ranges if name not in names]:
        what = f"{some(unknown)}, which the schema does not have; it has {some(names)}"
        raise DomainError(f"ranges names {what}.")
    pairs: list[tuple[str, Any]] = []
    gaps, unclear, wrong = [], [], []
    for name, data, note in drafts:
        if name in whole:
            pairs.append((name, ranges[name]))
            continue
        try:
            if name in ranges:
                data = _with_range(data, ranges[name], note)
            if data["type"] == "numeric" and data.get("bins") is None and "edges" not in data:
                data = {**data, "bins": single_or_auto(data)}
            if data["type"] is None:
                unclear.append((name, note))
            elif ... in data.values() or data.get("categories") == [...]:
                gaps.append((name, data, note))
            else:
                timed = data.get("loose") and any(map(has_time, (data["lower"], data["upper"])))
                data = {k: v for k, v in data.items() if v is not None and k != "loose"}
                said = data | ({"type": "datetime"} if timed else {})
                pairs.append((name, attribute_from_data(said)))
        except DomainError as error:
            wrong.append(f"Column {name!r}: {error}")
    if gaps or unclear or wrong:
        raise DomainError("\n\n".join(_complaints(gaps, unclear, wrong)))
    if not pairs:
        raise DomainError("The schema has no columns.")
    return pairs


def _with_range(data: Mapping[str, Any], given: Any, note: str) -> Mapping[str, Any]:
    """A column with the range, a pair, or with all the values, a list, that the caller gave."""
    if isinstance(given, list):
        kept = {"nullable": data.get("nullable", False), "categories": given}
        ordered = data["type"] == "numeric" or data.get("ordered", False)
        return {"type": "categorical", "ordered": ordered, **kept}
    if not isinstance(given, tuple) or len(given) != 2:
        raise DomainError(
            "ranges takes a pair (smallest, largest), a list of all values or an attribute, got "
            f"{given!r}."
        )
    if data["type"] is ...:
        # A pair of numbers or dates for a column that may hold anything is a range.
        data = {"nullable": True, **(data_of_pair(given) or data)}
    if "lower" not in data:
        raise DomainError(
            f"the type is {note}, and a pair is a range of numbers or dates. Give all values as a "
            "list, or an attribute that says what the column holds."
        )
    ends = zip(("lower", "upper"), given, strict=True)
    return {**data, **{key: end for key, end in ends if end is not ...}}


def _first(complaints: Sequence[str]) -> list[str]:
    """As many complaints as a person reads."""
    return [*complaints[:20], *[f"... ({len(complaints) - 20} more)"] * (len(complaints) > 20)]


def _complaints(
    gaps: Sequence[Draft], unclear: Sequence[tuple[str, str]], wrong: Sequence[str]
) -> Iterator[str]:
    if wrong:
        yield "\n".join(_first(wrong))
    if unclear:
        shown = ", ".join(_first([f"{name!r} has type {note}" for name, note in unclear]))
        yield (
            f"Types that are not known: {shown}. Known are: {', '.join(KINDS)}. Give an attribute, "
            f"as in ranges={{{unclear[0][0]!r}: Numeric(0, 9)}}, or leave it out of the schema."
        )
    if gaps:
        lines = []
        for name, data, note in gaps:
            ends = ", ".join(_code(data[key]) for key in ("lower", "upper") if key in data)
            what = {"date": "dates", "datetime": "dates"}.get(data["type"], "smallest, largest")
            what, hint = (what, f"({ends})") if ends else ("all values", "[...]")
            lines.append(f"    {name!r}: {hint},  # {note}: {what}\n")
        count = "1 column needs" if len(gaps) == 1 else f"{len(gaps)} columns need"
        yield (
            f"{count} what the schema does not say: a range, or the categories. Fill in the dots "
            "from what is publicly known, never from the records, and pass\n\n"
            f"ranges={{\n{''.join(lines)}}}\n\nwhere a column may have a whole attribute instead, "
            "such as Identifier()."
        )


# --- declarations with blanks to fill in, as code or as JSON

_TYPES = ("categorical", "date", "datetime", "identifier", "numeric")
_ABOUT = (
    "Replace every `...` by what is publicly known: a code book, a questionnaire, the law.",
    "Never take it from the records. Then see what it does to them: ",
)


class Code(str):
    """Text that shows itself as it is, so that a notebook prints it readably."""

    def __repr__(self) -> str:
        return str(self)


def draft_text(drafts: Sequence[Draft], style: str, rules: Sequence[Any] = ()) -> Code:
    """Declarations with blanks, as Python or as JSON that `Domain.from_json` reads.

    Columns stand on a line each. The rules are those that are declared already.
    """
    if style == "json":
        columns = []
        for name, data, note in drafts:
            found = {key: "..." if _blank(value) else value for key, value in entries(data).items()}
            columns.append({"name": name, **found, **({"note": note} if note else {})})
        about = " ".join(_ABOUT) + "skdp domain check DATA --domain FILE"
        return Code(lined(columns, [rule.to_data() for rule in rules], about=about))
    body = "\n".join(_line(*draft) for draft in drafts)
    used = [kind.title() for kind in _TYPES if f" {kind.title()}(" in body]
    used += sorted({rule.kind for rule in rules})
    more = "".join(f"\n    {_rule(rule)}," for rule in rules)
    structure = f", structure=[{more}\n]" if rules else ""
    return Code(
        f"from skdp import {', '.join(sorted([*used, 'Domain']))}\n\n"
        f"# {_ABOUT[0]}\n# {_ABOUT[1]}domain.check(frame)\n"
        f"domain = Domain({{\n{body}\n}}{structure})\n"
    )


def _rule(rule: Any) -> str:
    """A rule as code, with all of its map."""
    if not hasattr(rule, "map"):
        return repr(rule)
    return f"{rule.kind}({rule.column!r}, from_={rule.from_!r}, map={dict(rule.map)!r})"


def entries(data: Mapping[str, Any]) -> dict[str, Any]:
    """What JSON says of a column."""
    return short({**data, "type": data["type"] or ...})


def _blank(value: Any) -> bool:
    return value is ... or value == [...]


def _line(name: str, data: Mapping[str, Any], note: str) -> str:
    """One column as code."""
    comment = f"  # {note}" if note else ""
    if data["type"] is None:
        return f"    # {name!r}: {note}"
    if data["type"] is ...:
        return f"    {name!r}: ...,{comment}"
    inside = {k: v for k, v in entries(data).items() if k != "type"}
    first = [inside.pop(key) for key in ("lower", "upper", "categories") if key in inside]
    texts = [_code(value) for value in first] + [f"{k}={_code(v)}" for k, v in inside.items()]
    return f"    {name!r}: {data['type'].title()}({', '.join(texts)}),{comment}"


def _code(value: Any) -> str:
    """A value as code that needs no import."""
    if isinstance(value, list):
        return f"[{', '.join(map(_code, value))}]"
    value = value.isoformat() if isinstance(value, datetime.date) else value
    return "..." if value is ... else repr(value)
