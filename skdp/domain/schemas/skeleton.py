"""Code that declares a domain, made from types alone, with every range to fill in."""

from __future__ import annotations

from typing import Any

from .dtypes import fields_of_dtypes
from .field import Field

__all__ = ["Code", "skeleton"]

# Categories of a type are written out up to this many.
_MOST_WRITTEN = 200


class Code(str):
    """Text that shows itself as it is, so that a notebook prints it readably."""

    def __repr__(self) -> str:
        return str(self)


def skeleton(source: Any) -> Code:
    """See `Domain.skeleton`."""
    fields = fields_of_dtypes(source)
    lines = [_line(field) for field in fields]
    body = "\n".join(lines)
    known = ("Categorical", "Date", "Datetime", "Identifier", "Numeric")
    used = [name for name in known if f" {name}(" in body]
    return Code(
        f"from skdp import {', '.join(sorted([*used, 'Domain']))}\n\n"
        "# Replace every `...` by what is publicly known: a code book, a questionnaire, the law.\n"
        "# Never take it from the records. Then see what it does to them: domain.check(frame)\n"
        f"domain = Domain({{\n{body}\n}})\n"
    )


def _line(field: Field) -> str:
    """One column as code."""
    options = ", nullable=True" if field.nullable else ""
    note = f"  # {field.type}"
    if field.kind == "unknown":
        return f"    # {field.name!r}: {field.type} has no attribute; convert it, or leave it out"
    if field.kind == "boolean":
        code = f"Categorical([False, True]{options})"
    elif field.kind == "identifier":
        code = "Identifier()"
    elif field.kind in ("category", "object", "text"):
        code, note = _categorical(field, options)
    elif field.kind == "datetime" and not field.loose:
        zone = "" if field.tz is None else f", tz={field.tz!r}"
        code = f"Datetime(..., ...{zone}{options})"
    elif field.kind in ("date", "datetime"):
        unit = "" if field.unit is None else f", unit={field.unit!r}"
        code = f"Date(..., ...{unit}{options})"
        note += "; Datetime(..., ...) if there is a time of day" if field.loose else ""
    elif field.kind == "integer":
        code = f"Numeric(..., ..., integer=True{options})"
    else:
        decimals = "" if field.decimals is None else f", decimals={field.decimals}"
        code = f"Numeric(..., ...{decimals}{options})"
    return f"    {field.name!r}: {code},{note}"


def _categorical(field: Field, options: str) -> tuple[str, str]:
    note = f"  # {field.type}"
    ordered = ", ordered=True" if field.ordered else ""
    values = field.categories
    if values is None:
        if field.kind == "object":
            note += ": all categories, or a Numeric or Date"
        return f"Categorical([...]{ordered}{options})", note
    if len(values) > _MOST_WRITTEN:
        note += f": {len(values):,} categories, which `Categorical(dtype)` takes from the type"
        return f"Categorical([...]{ordered}{options})", note
    return f"Categorical([{', '.join(map(repr, values))}]{ordered}{options})", note
