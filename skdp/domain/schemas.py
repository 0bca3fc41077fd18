"""Declarations as data: pairs and lists, JSON, a frame's columns, code books, drafts with blanks.

No row is ever read. All of these become entries of JSON, of which some may be blank in a `Draft`.
Attributes are made of them in one place, by the parameters of their classes.
"""

from __future__ import annotations

import csv
import datetime
import inspect
import io
import json
import numbers
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw

from .._validation import refuse_placeholder, some
from ..exceptions import DomainError
from .attributes import AUTO, MOST_SINGLE, Attribute, Categorical, Identifier, Numeric
from .dates import Date, Datetime, moment
from .taxonomy import Taxonomy

# What every domain in JSON begins with; one that was read from records is none.
_HEAD = {"format": "skdp.domain", "version": 1, "inferred": False}
# What JSON calls each kind of column. Its entries are the parameters of the class.
_KINDS: Any = (Numeric, Date, Datetime, Categorical, Identifier)
_CLASSES = {each.__name__.lower(): each for each in _KINDS}
# Those without which a column is not declared.
_NEEDED: dict[str, tuple[str, ...]] = {"categorical": ("categories",)}
_NEEDED |= dict.fromkeys(("numeric", "date", "datetime"), ("lower", "upper"))


@dataclass(frozen=True)
class Draft:
    """A column as far as it is known.

    Attributes
    ----------
    name : str
    data : dict
        Its entries in JSON: ``type``, and parameters of the class; ``...`` is to be filled in. The
        type None is none that a column can have.
    note : str
        What is to be known of it.
    """

    name: str
    data: dict[str, Any]
    note: str = ""

    @property
    def entries(self) -> dict[str, Any]:
        """Entries that say something, and blanks."""
        # A flag that is not set is left out; `other` may be the category False.
        data = self.data.items()
        kept = {k: v for k, v in data if v is not None and (v is not False or k == "other")}
        needed = () if "edges" in kept else _NEEDED.get(kept.get("type", ""), ())
        return {"type": ..., **dict.fromkeys(needed, ...), **kept}

    def as_json(self) -> dict[str, Any]:
        """Its entry in a file that a person edits."""
        found = {key: "..." if value is ... else value for key, value in self.entries.items()}
        return {"name": self.name, **found, **({"note": self.note} if self.note else {})}


def drafts_of(domain: Any) -> list[Draft]:
    """The columns of a domain."""
    return [Draft(name, domain.declared(name).to_data()) for name in domain.columns]


def json_text(drafts: Iterable[Draft], rules: Iterable[Any], **more: Any) -> str:
    """A domain as JSON that `Domain.from_json` reads, with a line for each column and rule."""
    parts = [f'"{key}": {_dumped(value)}' for key, value in {**_HEAD, **more}.items()]
    columns, kept = [draft.as_json() for draft in drafts], [rule.to_data() for rule in rules]
    for key, items in (("attributes", columns), ("structure", kept)):
        if items:
            parts.append(f'"{key}": [\n  ' + ",\n  ".join(map(_dumped, items)) + "\n]")
    return "{" + ",\n".join(parts) + "}\n"


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


# --- attributes


def _attribute(said: dict[str, Any]) -> Any:
    """The attribute that entries of JSON declare; raises if anything is wrong with them."""
    kind = said.pop("type")
    refuse_placeholder(kind, "the type (numeric, categorical, date, ...)")
    if kind not in _CLASSES:
        raise DomainError(f"the type {kind!r} is unknown: give {some([*_CLASSES])}.")
    if said.pop("fine", False):
        return _attribute({"type": kind, **said}).fine
    refuse_placeholder(said.get("categories"), "the list of categories")
    if said.get("taxonomy") is not None:
        said["taxonomy"] = Taxonomy(**said["taxonomy"])
    try:
        return _CLASSES[kind](**dict.fromkeys(_NEEDED.get(kind, ())) | said)
    except TypeError as error:
        raise DomainError(f"it declares no column: {error}.") from error


def short_form(given: Any) -> Any:
    """The attribute that a pair, a list of all values, or the entries of JSON declare, or itself.

    Raises
    ------
    DomainError
        If it declares no column.
    """
    refuse_placeholder(given, "the declaration")
    if isinstance(given, Attribute | Identifier):
        return given
    if not isinstance(given, dict | tuple | list):
        what = "a pair (smallest, largest), a list of all values, or an attribute such as Numeric"
        raise DomainError(f"it must be declared by {what}. Leave out free text.")
    # A proposal has notes, too.
    data = {key: value for key, value in _entries(given).items() if key not in ("name", "note")}
    ends: Any = [data.get("lower"), data.get("upper")]
    if data.get("integer") and all(isinstance(end, int | float) for end in ends):
        # One code each for a million integers is rarely meant.
        data = {"bins": AUTO, **data} if ends[1] - ends[0] >= MOST_SINGLE else data
    return _attribute(data)


def _entries(given: Any) -> dict[str, Any]:
    """Entries of a list of all values, or of a range; those of JSON as they are.

    A pair of whole numbers is a range of whole numbers, a pair of ISO dates a `Date`, with times a
    `Datetime`, and any other pair of numbers a range of all numbers.
    """
    if isinstance(given, list):
        return {"type": "categorical", "categories": given}
    if not isinstance(given, tuple):
        return given  # type: ignore[no-any-return]
    if len(given) == 2:
        data = {"lower": given[0], "upper": given[1]}
        if all(isinstance(end, numbers.Real) and not isinstance(end, bool) for end in given):
            whole = all(isinstance(end, int) for end in given)
            return {"type": "numeric", **data, "integer": whole}
        found = [moment(end, "month") for end in given if isinstance(end, str | datetime.date)]
        if len(found) == 2 and None not in found:
            # Midnight is no time of the day.
            timed = any(":" in str(end).removesuffix(" 00:00:00") for end in given)
            return {"type": "datetime" if timed else "date", **data}
    what = f"A tuple is a range, (smallest, largest) in numbers or in ISO dates, got {given!r}"
    raise DomainError(f"{what}. All values of a column of categories are given as a list.")


# --- JSON


def parts_from_text(source: str | os.PathLike[str]) -> tuple[list[tuple[str, Any]], list[Any]]:
    """Entries of the columns of a domain in JSON, and its rules; raises any error if damaged."""
    data = read_json(source)
    found = {key: data.get(key, False) for key in _HEAD} if isinstance(data, dict) else data
    if found != _HEAD:
        what = f"It says {found!r:.90}, and only {_HEAD} can be read"
        raise DomainError(f"{what}. Declare it from public knowledge, or with an older skdp.")
    return [(item["name"], item) for item in data["attributes"]], list(data.get("structure", ()))


def read_json(source: str | os.PathLike[str]) -> Any:
    """What JSON holds: that of a text, or of the file of a path.

    Raises
    ------
    DomainError
        If it is none.
    OSError
        If it cannot be read.
    """
    try:
        return json.loads(source if isinstance(source, str) else Path(source).read_bytes())
    except (ValueError, RecursionError) as error:
        raise DomainError(f"It is not JSON in UTF-8 (or no pathlib.Path): {error}.") from error


# --- the columns of a frame, and code books


def from_schema(source: Any, ranges: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Pairs of `Domain.from_schema`."""
    book = isinstance(source, str | os.PathLike)
    if book:
        known = _of_codebook(Path(source))
    else:
        types = nw.from_native(source).collect_schema()
        known = [(name, [False, True] if of == nw.Boolean else ...) for name, of in types.items()]
    names = [name for name, _ in known]
    if unknown := [name for name in ranges if name not in names]:
        raise DomainError(f"ranges names {some(unknown)}, but the columns are {some(names)}.")
    pairs = [(name, ranges.get(name, given)) for name, given in known]
    if gaps := [name for name, given in pairs if given is ...]:
        raise DomainError(
            f"Types do not say what {len(gaps)} columns can hold: {some(gaps, 20)}. Give each, by "
            "public knowledge, a range, a list of all values or an attribute in ranges={...}."
        )
    # Only records show which columns of a frame have gaps, so all may have some.
    gap = {} if book else {"nullable": True}
    return [(name, _entries(x) | gap if isinstance(x, list | tuple) else x) for name, x in pairs]


# A code book is a CSV file with one row for each column of the table. A header is what JSON calls
# an entry, or one of four words; other columns are ignored. A cell is a value of JSON, or else
# text. Lists have | or ; or commas between values, each perhaps with a label, as in 1=Male; 2=F.

_CALLED = {"min": "lower", "max": "upper", "values": "categories", "missing": "nullable"}
_ENTRIES = set[str]().union(*(inspect.signature(each).parameters for each in _KINDS))
_TYPES = {"integer": "numeric", "number": "numeric", "category": "categorical"}
_FLAGS = {"yes": True, "true": True, "no": False, "false": False}


def _of_codebook(path: Path) -> list[tuple[str, Any]]:
    """Columns of a code book, and their entries; what does not fit together is refused later.

    Raises
    ------
    DomainError
        If it is no CSV file with a name in each row.
    OSError
        If it cannot be read.
    """
    try:
        text = path.read_text("utf-8-sig")
        mark = max(",;\t|", key=text.partition("\n")[0].count)
        header, *lines = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
        means = [_CALLED.get(each, each) for each in (cell.strip().casefold() for cell in header)]
        pairs = [zip(means, map(str.strip, cells), strict=False) for cells in lines]
        rows = [{each: cell for each, cell in row if cell} for row in pairs]
        return [(row.pop("name"), _of_row(row)) for row in rows if row]
    except (KeyError, ValueError, csv.Error) as error:
        what = "a CSV file in UTF-8 that names each variable in a column 'name'"
        raise DomainError(f"{path.name} is no code book, {what}: {error}.") from error


def _of_row(row: dict[str, str]) -> dict[str, Any]:
    """What the row of a variable says."""
    kind = "category" if "categories" in row else row.pop("type", "category").casefold()
    said = {key: _cell(key, text) for key, text in row.items() if key in _ENTRIES}
    whole = {"integer": True} if kind == "integer" else {}
    return {"type": _TYPES.get(kind, kind), **whole, **said}


def _cell(entry: str, text: str) -> Any:
    """What a cell says of an entry; lists hold numbers or booleans where all are, else text."""
    if entry not in ("categories", "special", "edges"):
        return text if entry in ("other", "format") else _FLAGS.get(text.casefold(), _value(text))
    mark = next((mark for mark in "|;," if mark in text), ";")
    parts = [part.strip() for part in text.split(mark)]
    texts = [part.partition("=")[0].strip() or part for part in parts if part]
    values = [_value(each) for each in texts]
    kinds = {bool} if bool in map(type, values) else {int, float}
    return values if {*map(type, values)} <= kinds else texts


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
