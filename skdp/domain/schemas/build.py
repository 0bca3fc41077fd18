"""`Domain.from_schema`: code books and types, and one error for all that they lack."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pandas as pd

from ...exceptions import DomainError
from ..attributes import Attribute, Identifier
from ..categorical import Categorical
from ..dates import Date, Datetime
from ..domains import known_name
from ..numeric import AUTO, MOST_SINGLE, Numeric
from ..values import as_float, some
from .codebook import fields_of_codebook
from .dtypes import fields_of_dtypes, of_dtype
from .field import KINDS, Field, with_names

# A longer list of numbers at equal distances is a range with a step; others are categories.
_MOST_LISTED = 32

_LISTS = {
    "category": "all categories",
    "object": "all categories; numbers with types={{{!r}: 'number'}}",
    "text": "free text: all values, or leave it out with drop=",
}


def from_schema(source: Any, given: dict[str, Any], encoding: str) -> list[tuple[str, Any]]:
    """Pairs of `Domain.from_schema`; ``given`` is about single columns."""
    path = isinstance(source, str | os.PathLike)
    fields = fields_of_codebook(source, encoding) if path else fields_of_dtypes(source)
    found = with_names(fields)
    names = {field.name: given["bins"] for field in found}
    nullable = given["nullable"]
    if nullable is None or isinstance(nullable, bool):
        given["nullable"] = list(names) if nullable else []
    if not isinstance(given["bins"], Mapping):
        given["bins"] = names
    for parameter, said in given.items():
        listed = parameter in ("drop", "nullable")
        said = [said] if listed and isinstance(said, str) else {} if said is None else said
        if not isinstance(said, Iterable if listed else Mapping):
            kind = "a list of" if listed else "a dict from"
            raise DomainError(f"{parameter} must be {kind} column names, got {said!r:.60}.")
        given[parameter] = list(said) if listed else said
        if unknown := [name for name in given[parameter] if name not in names]:
            what = f"{some(unknown)}, which the schema does not have; it has {some(list(names))}"
            raise DomainError(f"{parameter} names {what}.")
    pairs: list[tuple[str, Any]] = []
    gaps: list[Field] = []
    unclear: list[Field] = []
    wrong: list[str] = []
    for field in found:
        name = field.name
        if name in given["drop"]:
            continue
        if name in given["attributes"]:
            pairs.append((name, given["attributes"][name]))
            continue
        try:
            if name in given["types"]:
                _retype(field, of_dtype(name, given["types"][name]))
            field.settle()
            if name in given["ranges"]:
                field = _ranged(field, given["ranges"][name])
            if nullable is not None:
                field.nullable = name in given["nullable"]
            field.bins = given["bins"].get(name) if field.bins is None else field.bins
            if field.kind == "unknown":
                unclear.append(field)
            elif not field.complete:
                gaps.append(field)
            else:
                pairs.append((name, attribute_of(field)))
        except DomainError as error:
            where = f" ({field.where})" if field.where else ""
            wrong.append(f"Column {name!r}{where}: {error}")
    if gaps or unclear or wrong:
        raise DomainError("\n\n".join(_complaints(gaps, unclear, wrong)))
    if not pairs:
        raise DomainError("drop leaves no column.")
    return pairs


def _retype(field: Field, said: Field) -> None:
    """Take the type that the caller gives to a column."""
    field.type = said.type if said.kind == "unknown" else field.type
    field.kind, field.loose = said.kind, False
    field.decimals = said.decimals if field.decimals is None else field.decimals
    for key in ("categories", "ordered", "tz", "unit"):
        setattr(field, key, getattr(said, key) or getattr(field, key))


def _ranged(field: Field, given: Any) -> Field:
    """The field with a range or list of categories that the caller gave."""
    if isinstance(given, Attribute):
        raise DomainError(f"ranges holds a {type(given).__name__}; attributes go into attributes=.")
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise DomainError(
            f"ranges takes a pair (smallest, largest) or a list of categories, got {given!r}."
        )
    values = list(given)
    pair = isinstance(given, tuple) and len(values) == 2
    if field.kind == "object" and pair:
        # A pair of numbers or dates for a column that may hold anything is a range.
        field.kind = _kind_of(values)
    if not (field.is_number or field.is_moment):
        listed = None if any(value is ... for value in values) else values
        return replace(field, kind="category", categories=listed)
    if field.is_number and isinstance(given, list) and ... not in values:
        # All the numbers that there are: a step where they are many, or codes.
        gaps = {b - a for a, b in pairwise(values)}
        if len(values) > _MOST_LISTED and len(gaps) == 1:
            return replace(field, lower=values[0], upper=values[-1], step=gaps.pop())
        return replace(field, kind="category", categories=values, ordered=True)
    if len(values) != 2:
        raise DomainError(
            f"the type is {field.type}, so ranges needs a pair (smallest, largest), got "
            f"{len(values)} values. For categories add types={{{field.name!r}: 'category'}}."
        )
    low, high = (None if value is ... else value for value in values)
    low, high = (field.lower if low is None else low), (field.upper if high is None else high)
    return replace(field, lower=low, upper=high)


def _kind_of(values: Sequence[Any]) -> str:
    """Kind of column that a pair speaks of: bounds, or two categories."""
    if all(isinstance(value, datetime.date) for value in values):
        return "datetime" if any(_has_time(value) for value in values) else "date"
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        return "object"
    return "integer" if all(isinstance(value, int) for value in values) else "number"


def _has_time(bound: Any) -> bool:
    """Whether a bound names a time of day."""
    if isinstance(bound, str):
        return bool(re.search(r"\d[T ]\d", bound))
    if isinstance(bound, datetime.datetime):
        return bound.time() != datetime.time() or bound.tzinfo is not None
    return False


def _first(complaints: Sequence[str]) -> list[str]:
    """As many complaints as a person reads."""
    return [*complaints[:20], *[f"... ({len(complaints) - 20} more)"] * (len(complaints) > 20)]


def _complaints(
    gaps: Sequence[Field], unclear: Sequence[Field], wrong: Sequence[str]
) -> Iterable[str]:
    if wrong:
        yield "\n".join(_first(wrong))
    if unclear:
        shown = ", ".join(_first([f"{field.name!r} has type {field.type}" for field in unclear]))
        yield (
            f"Types that are not known: {shown}. Known are: {', '.join(KINDS)}. Say "
            f"what a column is with types={{{unclear[0].name!r}: ...}}, declare it with "
            "attributes=, or leave it out with drop=."
        )
    if gaps:
        lines = []
        for field in gaps:
            what = _LISTS.get(field.kind, "smallest, largest").format(field.name)
            what = 'first, last, such as "2020-01-31"' if field.is_moment else what
            known = known_name(field.name, field.kind)
            perhaps = f"; perhaps attributes= with domains.{known}()" if known else ""
            pair = f"({_code(field.lower)}, {_code(field.upper)})"
            hint = "[...]" if field.kind in _LISTS else pair
            lines.append(f"    {field.name!r}: {hint},  # {field.type}: {what}{perhaps}\n")
        count = "1 column needs" if len(gaps) == 1 else f"{len(gaps)} columns need"
        yield (
            f"{count} what the schema does not say: a range, or the categories. Fill in the dots "
            "from what is publicly known, never from the records, and pass\n\n"
            f"ranges={{\n{''.join(lines)}}}\n\nor declare columns with attributes=. Leave columns "
            "out with drop=[...]; columns of identifiers are types={...: 'identifier'}."
        )


def _code(bound: Any) -> str:
    """A bound as code that needs no import."""
    bound = bound.isoformat() if isinstance(bound, datetime.date) else bound
    return "..." if bound is None else repr(bound)


def attribute_of(field: Field) -> Any:
    """The attribute that a complete field declares."""
    if field.kind == "identifier":
        return Identifier()
    if field.kind == "boolean" and field.categories is None:
        return Categorical([False, True], nullable=field.nullable)
    if field.categories is not None:
        more = [value for value in field.special or () if value not in field.categories]
        options = _given(field, "ordered", "other", "nullable")
        return Categorical([*field.categories, *more], **options)
    ends: Any = (field.lower, field.upper)
    bins = field.bins
    if field.is_number:
        options = _given(field, "edges", "scale", "special", "step", "decimals", "nullable")
        options["integer"] = whole = field.kind == "integer"
        if field.edges is not None:
            return Numeric(**options)
        if whole and bins is None:
            # One code each for a million integers is rarely meant.
            lower, upper = as_float(ends[0], "lower"), as_float(ends[1], "upper")
            bins = AUTO if upper - lower >= MOST_SINGLE else None
        return Numeric(field.lower, field.upper, bins, **options)
    options = _given(field, "unit", "bins", "special", "format", "nullable")
    ends = tuple(
        end.to_pydatetime() if isinstance(end, pd.Timestamp) and not end.nanosecond else end
        for end in ends
    )
    timed = field.tz is not None or any(map(_has_time, ends))
    if field.kind == "date" or (field.loose and not timed):
        return Date(*ends, **options)
    return Datetime(*ends, **(options | _given(field, "tz")))


def _given(field: Field, *names: str) -> dict[str, Any]:
    """The fields that the schema says, as keywords."""
    values = {name: getattr(field, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}
