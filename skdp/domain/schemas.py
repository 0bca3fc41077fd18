"""Declarations as data: pairs and lists, JSON, types of columns, code books, code with blanks.

No row is ever read. All of these become a `Draft`: the entries that JSON has for a column, of which
some may be blank. Attributes are made of them in one place, by the parameters of their classes;
`Domain.propose` and `Domain.check` write drafts as code or JSON.
"""

from __future__ import annotations

import csv
import datetime
import inspect
import io
import json
import numbers
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import pandas as pd

from ..exceptions import DomainError
from .attributes import Attribute, Categorical, Identifier, call
from .dates import DAY, Date, Datetime, moment
from .numeric import AUTO, MOST_SINGLE, Numeric
from .taxonomy import Taxonomy
from .values import digits, refuse_placeholder, some

# What every domain in JSON begins with; one that was read from records is none.
_HEAD = {"format": "skdp.domain", "version": 1, "inferred": False}
# What JSON calls each kind of column. Its entries are the parameters of the class.
_CLASSES = {
    "numeric": Numeric,
    "date": Date,
    "datetime": Datetime,
    "categorical": Categorical,
    "identifier": Identifier,
}
_PARAMETERS = {kind: [*inspect.signature(made).parameters] for kind, made in _CLASSES.items()}
# Those without which a column is not declared. They stand first in code, without their names.
_NEEDED = {
    **dict.fromkeys(("numeric", "date", "datetime"), ("lower", "upper")),
    "categorical": ("categories",),
}


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
        What is to be known of it, such as the type that a schema gives it.
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

    def as_code(self) -> str:
        """Its line in the code of a domain; a column that cannot be declared is a comment."""
        said, note = self.entries, f"  # {self.note}" if self.note else ""
        kind = said.pop("type")
        if self.data["type"] is None:
            return f"    # {self.name!r}: {self.note}"
        declared = "..." if kind is ... else call(kind.capitalize(), said, _code)
        return f"    {self.name!r}: {declared},{note}"


def _code(value: Any) -> str:
    if isinstance(value, dict):
        return f"Taxonomy(**{value!r})"
    return "..." if value is ... else digits(value)


class Code(str):
    """Text that shows itself as it is, so that a notebook prints it readably."""

    __repr__ = str.__str__


_ABOUT = "Replace every `...` by what is publicly known, never by what the records hold."


def draft_text(drafts: Sequence[Draft], style: str, rules: Sequence[Any] = ()) -> Code:
    """Declarations with blanks, as Python or as JSON that `Domain.from_json` reads.

    Columns stand on a line each. The rules are those that are declared already.
    """
    if style == "json":
        about = f"{_ABOUT} Then: skdp domain check DATA --domain FILE"
        return Code(_lined(drafts, rules, about=about))
    body = "\n".join(draft.as_code() for draft in drafts)
    more = "".join(f"\n    {_rule(rule)}," for rule in rules)
    structure = f", structure=[{more}\n]" if rules else ""
    known = [each.__name__ for each in (*_CLASSES.values(), Taxonomy)]
    used = {"Domain", *(name for name in known if f"{name}(" in body), *(r.kind for r in rules)}
    head = f"from skdp import {', '.join(sorted(used))}\n\n# {_ABOUT}\n# Then: domain.check(frame)"
    return Code(f"{head}\ndomain = Domain({{\n{body}\n}}{structure})\n")


def _rule(rule: Any) -> str:
    """A rule as code, with all of its map."""
    if not rule.map:
        return repr(rule)
    return f"{rule.kind}({rule.column!r}, from_={rule.from_!r}, map={dict(rule.map)!r})"


# --- attributes


def _attribute(said: dict[str, Any]) -> Any:
    """The attribute that entries of JSON declare; raises if anything is wrong with them."""
    kind = said.pop("type")
    refuse_placeholder(kind, "the type (numeric, categorical, date, ...)")
    if kind not in _CLASSES:
        raise DomainError(f"the type {kind!r} is unknown: give {some([*_CLASSES])}.")
    if said.pop("fine", False):
        return _attribute({"type": kind, **said}).fine
    if unknown := [key for key in said if key not in _PARAMETERS[kind]]:
        known = f"{_CLASSES[kind].__name__} takes {some(_PARAMETERS[kind], 10)}"
        raise DomainError(f"{known}, not {some(unknown)}.")
    refuse_placeholder(said.get("categories"), "the list of categories")
    if said.get("taxonomy") is not None:
        said["taxonomy"] = Taxonomy(**said["taxonomy"])
    return _CLASSES[kind](**dict.fromkeys(_NEEDED.get(kind, ())) | said)


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
    if isinstance(given, list):
        return Categorical(given)
    if not isinstance(given, dict | tuple):
        kinds = "Numeric, Date, Datetime, Categorical or Identifier, which ignores it"
        what = f"a pair (smallest, largest), a list of all values, or by {kinds}"
        got = f"got {type(given).__name__}. No release can hold free text: leave it out"
        raise DomainError(f"it must be declared by {what}, {got}.")
    data = given if isinstance(given, dict) else _of_pair(given)
    # A proposal has notes, too.
    data = {key: value for key, value in data.items() if key not in ("name", "note")}
    ends: Any = [data.get("lower"), data.get("upper")]
    if data.get("integer") and all(isinstance(end, int | float) for end in ends):
        # One code each for a million integers is rarely meant.
        data = {"bins": AUTO, **data} if ends[1] - ends[0] >= MOST_SINGLE else data
    return _attribute(data)


def _of_pair(pair: Any) -> dict[str, Any]:
    """Entries of a range.

    A pair of whole numbers is a range of whole numbers, a pair of ISO dates a `Date`, with times a
    `Datetime`, and any other pair of numbers a range of all numbers.
    """
    if isinstance(pair, tuple) and len(pair) == 2:
        data = dict(zip(("lower", "upper"), pair, strict=True))
        if all(isinstance(end, numbers.Real) and not isinstance(end, bool) for end in pair):
            return {"type": "numeric", **data, "integer": all(isinstance(end, int) for end in pair)}
        found = [moment(end, "month") for end in pair if isinstance(end, str | datetime.date)]
        if len(found) == 2 and None not in found:
            zoned = any(getattr(end, "tzinfo", None) is not None for end in pair)
            timed = zoned or any(isinstance(end, str) and ":" in end for end in pair)
            timed |= any(micros % DAY for micros in found if micros)
            return {"type": "datetime" if timed else "date", **data}
    what = f"A tuple is a range, (smallest, largest) in numbers or in ISO dates, got {pair!r}"
    raise DomainError(f"{what}. All values of a column of categories are given as a list.")


# --- JSON


def domain_to_text(domain: Any) -> str:
    """JSON text of a domain: its columns in order, and its rules."""
    columns = [{"name": name, **domain.declared(name).to_data()} for name in domain.columns]
    more = {"structure": domain.structure.to_data()} if domain.structure.rules else {}
    return json.dumps({**_HEAD, "attributes": columns, **more}, allow_nan=False)


def parts_from_text(source: str | os.PathLike[str]) -> tuple[list[tuple[str, Any]], list[Any]]:
    """Entries of the columns of a domain in JSON, and its rules; raises any error if damaged."""
    data = read_json(source)
    for key, value in _HEAD.items():
        found = data.get(key, False) if isinstance(data, dict) else data
        if found != value:
            what = f"It says {key}={found!r:.60}, and only {key}={value!r} can be read"
            raise DomainError(f"{what}. Declare it from public knowledge, or with an older skdp.")
    return [(item["name"], item) for item in data["attributes"]], list(data.get("structure", ()))


def read_json(source: str | os.PathLike[str]) -> Any:
    """What JSON holds: that of a text, or of the file of a path.

    Raises
    ------
    DomainError
        If it is none, or a key occurs twice in an object.
    OSError
        If it cannot be read.
    """
    try:
        text = source if isinstance(source, str) else Path(source).read_text("utf-8-sig")
        return json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise DomainError(f"It is not JSON in UTF-8 (or no pathlib.Path): {error}.") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON in which no key occurs twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = [name for name, n in Counter(name for name, _ in pairs).items() if n > 1]
        raise DomainError(f"{some(twice)} occurs twice in one object; names must be unique")
    return found


def drafts_of(domain: Any) -> list[Draft]:
    """The columns of a domain, without the bins that real numbers have by themselves."""
    drafts = []
    for name in domain.columns:
        data = domain.declared(name).to_data()
        if data.get("bins") == AUTO and not data["integer"]:
            del data["bins"]
        drafts.append(Draft(name, data))
    return drafts


def editable(domain: Any) -> str:
    """A domain in JSON with a line for each column and rule, shortened."""
    return _lined(drafts_of(domain), domain.structure.rules)


def _lined(drafts: Sequence[Draft], rules: Sequence[Any], **more: Any) -> str:
    """A domain as JSON with a line for each column and rule."""
    parts = [f'"{key}": {_dumped(value)}' for key, value in {**_HEAD, **more}.items()]
    columns, kept = [draft.as_json() for draft in drafts], [rule.to_data() for rule in rules]
    for key, items in (("attributes", columns), ("structure", kept)):
        if items:
            parts.append(f'"{key}": [\n  ' + ",\n  ".join(map(_dumped, items)) + "\n]")
    return "{" + ",\n".join(parts) + "}\n"


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


# --- types of columns

# What names of types mean by their beginnings, in any library; the first that fits counts.
_TYPES: dict[str, dict[str, Any]] = {
    r"u?int(eger)?\d*$|long$": {"type": "numeric", "integer": True},
    "float|double|real|num|decimal": {"type": "numeric", "integer": False},
    "bool": {"type": "categorical", "categories": [False, True]},
    "ordinal": {"type": "categorical", "ordered": True},
    "category|categorical|enum|dictionary|str|text|varchar": {"type": "categorical"},
    # Times with a time zone.
    r"(datetime|timestamp)(.*\[\w+, |.*zone='| with)": {"type": "datetime", "tz": "UTC"},
    "datetime64": {"type": "date"},  # the one type of NumPy for days and times
    "datetime|timestamp": {"type": "datetime"},
    "date": {"type": "date"},
    "id|uuid": {"type": "identifier"},
    "object": {"type": ...},
}


def of_name(type_name: str) -> dict[str, Any]:
    """Entries of the type that a name means, such as "int64", "Float64", "date"."""
    found = (data for name, data in _TYPES.items() if re.match(name, type_name, re.IGNORECASE))
    data = {**next(found, {"type": type_name})}
    if data.get("integer") is False and (places := re.search(r",\D*(\d+)\)$", type_name)):
        data["decimals"] = int(places[1])
    return data


def _of_type(name: Any, dtype: Any) -> Draft:
    """The column that a type means: of NumPy, pandas, Polars, narwhals or Python, or its name."""
    text = getattr(dtype, "__name__", str(dtype))
    data = of_name(text)
    if data["type"] != "identifier":
        # Integers and booleans of NumPy hold no gaps.
        data["nullable"] = not re.fullmatch(r"u?int\d*|bool", text)
    return Draft(name, data, text.partition("(categories")[0])


def from_schema(source: Any, ranges: Any) -> list[tuple[str, Any]]:
    """Pairs of `Domain.from_schema`."""
    if not isinstance(ranges, Mapping):
        raise DomainError(f"ranges must be a dict from column names, got {ranges!r:.60}.")
    if isinstance(source, str | os.PathLike):
        drafts = _drafts_of_codebook(Path(source))
    else:
        types = source.dtypes if isinstance(source, pd.DataFrame) else source
        if not isinstance(types, Mapping | pd.Series):
            types = nw.from_native(source).collect_schema()
        drafts = [_of_type(name, dtype) for name, dtype in types.items()]
    names = [draft.name for draft in drafts]
    if unknown := [name for name in ranges if name not in names]:
        raise DomainError(f"ranges names {some(unknown)}, but the columns are {some(names)}.")
    drafts = [_given(each, ranges[each.name]) if each.name in ranges else each for each in drafts]
    gaps = [draft for draft in drafts if ... in draft.entries.values()]
    if not gaps:
        return [(draft.name, draft.data) for draft in drafts]
    lines = "\n".join(draft.as_code() for draft in gaps)
    raise DomainError(
        f"The schema does not say all of {len(gaps)} columns. Fill in what is publicly known, not "
        f"what the records hold, and pass\n\nranges={{\n{lines}\n}}\n\nwhere a pair (smallest, "
        "largest) or a list of all values does, too."
    )


def _given(draft: Draft, given: Any) -> Draft:
    """A column with what the caller says: a range, all the values, or an attribute."""
    data = draft.data
    if isinstance(given, Attribute | Identifier):
        return replace(draft, data=given.to_data())
    if isinstance(given, list):
        ordered = data["type"] == "numeric" or data.get("ordered", False)
        more = {"ordered": ordered, "nullable": data.get("nullable", False)}
        return replace(draft, data={"type": "categorical", "categories": given, **more})
    said = _of_pair(given)
    if data["type"] is not ... and (data["type"], said["type"]) != ("date", "datetime"):
        said = {key: said[key] for key in ("lower", "upper")}
    return replace(draft, data=data | said)


# --- code books: a CSV file with one row for each column of the table
#
# A header is what JSON calls an entry, or one of four words; other columns are ignored. A cell is a
# value of JSON, or else text; lists have | or ; or commas between their values, each of which may
# have a label, as in 1=Male; 2=Female.

_CALLED = {"min": "lower", "max": "upper", "values": "categories", "missing": "nullable"}
HEADERS = {"name", "type"}.union(*_PARAMETERS.values())


def _drafts_of_codebook(path: Path) -> list[Draft]:
    """Columns of a code book in CSV.

    Raises
    ------
    DomainError
        If it is no CSV file, has no column for names, or two columns with the same meaning.
    OSError
        If it cannot be read.
    """
    try:
        text = path.read_text("utf-8-sig")
        mark = max(",;\t|", key=text.partition("\n")[0].count)
        header, *lines = [*csv.reader(io.StringIO(text, newline=""), delimiter=mark)] or [[]]
    except (ValueError, csv.Error) as error:
        raise DomainError(f"{path.name} is no code book, a CSV file in UTF-8: {error}.") from error
    means = [_CALLED.get(each, each) for each in (cell.strip().casefold() for cell in header)]
    known = [each for each in means if each in HEADERS]
    if "name" not in known or len(set(known)) < len(known):
        what = "must name one column 'name', and no two columns that mean the same"
        raise DomainError(f"The first row of {path.name} {what}. It is {some(header, 20)}.")
    pairs = [zip(means, map(str.strip, cells), strict=False) for cells in lines]
    rows = [{each: cell for each, cell in row if each in known and cell} for row in pairs]
    if nameless := [at for at, row in enumerate(rows, start=2) if row and "name" not in row]:
        raise DomainError(f"The code book has no name in row {nameless[0]}.")
    return [_of_row(row) for row in rows if row]


def _of_row(row: dict[str, str]) -> Draft:
    """What the row of a variable says; what does not fit together is refused later."""
    name, type_name = row.pop("name"), row.pop("type", "category")
    data = of_name(type_name)
    if data["type"] == "identifier":
        return Draft(name, data)
    said = {key: _READ.get(key, _cell)(text) for key, text in row.items()}
    if "categories" in said:
        data = {"type": "categorical", "ordered": data.get("ordered", False)}
    return Draft(name, data | said, type_name)


def _cell(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _flag(text: str) -> Any:
    return {"yes": True, "no": False}.get(text.casefold(), _cell(text.casefold()))


def _list(text: str) -> list[Any]:
    """Values without their labels: numbers or booleans where all are, else text."""
    mark = next((mark for mark in "|;," if mark in text), ";")
    parts = [part.strip() for part in text.split(mark)]
    texts = [part.partition("=")[0].strip() or part for part in parts if part]
    values = [_cell(each) for each in texts]
    kinds = {bool} if bool in map(type, values) else {int, float}
    return values if {*map(type, values)} <= kinds else texts


# How the cells of some columns are read.
_READ: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("nullable", "ordered", "integer"), _flag),
    **dict.fromkeys(("categories", "special", "edges"), _list),
    **dict.fromkeys(("other", "format"), str),
}
