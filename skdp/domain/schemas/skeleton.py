"""Declarations with blanks to fill in, as code or as JSON, made from names and types alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .. import domains
from ..data import lined, short
from ..domains import known_name
from .dtypes import fields_of_dtypes
from .field import Field, with_names

# Name of a column, its declaration as JSON holds it with ``...`` for blanks, and a note. The type
# "known" is a function of `skdp.domains`; None is no type that a column can have.
Draft = tuple[str, Mapping[str, Any], str]

# Categories of a type are written out up to this many.
_MOST_WRITTEN = 200
_TYPES = ("categorical", "date", "datetime", "identifier", "numeric")
# Kinds that names speak of, where a column may hold anything.
_BY_NAME = (
    ("identifier", r"id|uuid|guid|.*_id|id_.*"),
    ("date", r"date|day|dob|timestamp|date_.*|.*_(date|at|on|dt|d|day|time)|.*date"),
    ("integer", r"(n|num|no|number)_.*|.*(count|_n|_no|_num|years|months|days)|year|.*_year"),
    ("number", r".*(amount|amnt|amt|income|price|cost|fee|salary|balance|rate|percent|pct|weight"
               r"|height|total|value|score|pay|wage|latitude|longitude)"),
)  # fmt: skip
_ABOUT = (
    "Replace every `...` by what is publicly known: a code book, a questionnaire, the law.",
    "Never take it from the records. Then see what it does to them: ",
)


class Code(str):
    """Text that shows itself as it is, so that a notebook prints it readably."""

    def __repr__(self) -> str:
        return str(self)


def skeleton(source: Any, style: str = "python") -> Code:
    """See `Domain.skeleton`."""
    return draft_text([_draft(field) for field in with_names(fields_of_dtypes(source))], style)


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
    used += ["domains"] if " domains." in body else []
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
    if data["type"] == "known":
        data = getattr(domains, data["name"])(nullable=data["nullable"])._to_data()
    return short({**data, "type": data["type"] or ...})


def _blank(value: Any) -> bool:
    return value is ... or value == [...]


def _line(name: str, data: Mapping[str, Any], note: str) -> str:
    """One column as code."""
    comment = f"  # {note}" if note else ""
    if data["type"] == "known":
        gaps = "nullable=True" if data["nullable"] else ""
        return f"    {name!r}: domains.{data['name']}({gaps}),{comment}"
    if data["type"] is None:
        return f"    # {name!r}: {note}"
    if data["type"] is ...:
        return f"    {name!r}: ...,{comment}"
    inside = {k: v for k, v in entries(data).items() if k != "type"}
    first = [inside.pop(key) for key in ("lower", "upper", "categories") if key in inside]
    texts = [_code(value) for value in first] + [f"{k}={_code(v)}" for k, v in inside.items()]
    return f"    {name!r}: {data['type'].title()}({', '.join(texts)}),{comment}"


def _code(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_code, value))}]"
    return "..." if value is ... else repr(value)


def _draft(field: Field) -> Draft:
    """What the name and the type of a column say."""
    name, kind, note = field.name, field.kind, str(field.type)
    ends: dict[str, Any] = {"lower": ..., "upper": ...}
    gaps: dict[str, Any] = {"nullable": field.nullable}
    if known := known_name(name, kind):
        return name, {"type": "known", "name": known, **gaps}, note
    if kind == "unknown":
        return name, {"type": None}, f"{note} has no attribute; convert it, or leave it out"
    if kind == "object":
        plain = re.sub(r"[^a-z0-9]+", "_", name.casefold())
        kind = next((kind for kind, names in _BY_NAME if re.fullmatch(names, plain)), kind)
        note += ": by its name" if kind != "object" else ""
    data: dict[str, Any] = {"type": "identifier"}
    if kind == "object":
        note += ": Numeric(..., ...), Categorical([...]), Date(..., ...) or Identifier()"
        data = {"type": ...}
    elif kind == "boolean":
        data = {"type": "categorical", "categories": [False, True], **gaps}
    elif kind in ("category", "text"):
        listed = list(field.categories or [...])
        if len(listed) > _MOST_WRITTEN:
            note += f": {len(listed):,} categories, which `Categorical(dtype)` takes from the type"
            listed = [...]
        data = {"type": "categorical", "categories": listed, "ordered": field.ordered, **gaps}
    elif kind in ("date", "datetime"):
        day = kind == "date" or field.loose
        note += "; Datetime(..., ...) if there is a time of day" if field.loose else ""
        ends |= {"unit": field.unit, "tz": None if day else field.tz}
        data = {"type": "date" if day else "datetime", **ends, **gaps}
    elif kind != "identifier":
        ends |= {"integer": kind == "integer", "decimals": field.decimals}
        data = {"type": "numeric", **ends, **gaps}
    return name, data, note
