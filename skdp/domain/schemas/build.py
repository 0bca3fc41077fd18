"""Fields of a schema become a domain, or one error that names everything that is missing."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from ...exceptions import DomainError
from ..attribute import Attribute
from ..categorical import Categorical
from ..domains import known_name
from ..numeric import AUTO, Numeric
from ..values import as_float, some
from .dtypes import of_dtype
from .field import KINDS, Field

if TYPE_CHECKING:
    from ..domain import Domain

__all__ = ["MOST_SINGLE", "Overrides", "build"]

# Integers in a range of at most this size get one code each unless the schema gives bins, others
# those of "auto".
MOST_SINGLE = 256

# A longer list of numbers at equal distances is a range with a step; others are categories.
_MOST_LISTED = 32

_HINTS = {
    "integer": "(..., ...)",
    "number": "(..., ...)",
    "date": "(..., ...)",
    "datetime": "(..., ...)",
    "category": "[...]",
    "object": "[...]",
    "text": "[...]",
}
_MEANINGS = {
    "integer": "smallest, largest",
    "number": "smallest, largest",
    "date": 'first, last, such as "2020-01-31"',
    "datetime": 'first, last, such as "2020-01-31"',
    "category": "all categories",
    "object": 'all categories; numbers with types={"...": "number"}',
    "text": "free text: all values, or leave it out with drop=",
}


class Overrides:
    """What the caller says about columns, over what the schema says.

    Parameters
    ----------
    types, ranges, attributes : mapping, optional
        Type, range or categories, and whole attribute of some of the columns.
    drop : str or iterable of str
        Columns that are left out.
    nullable : bool or iterable of str, optional
        Which columns have a missing cell.
    bins : int, "auto" or mapping, optional
    """

    def __init__(
        self,
        types: Mapping[str, Any] | None,
        ranges: Mapping[str, Any] | None,
        attributes: Mapping[str, Any] | None,
        drop: str | Iterable[str],
        nullable: bool | Iterable[str] | None,
        bins: int | str | Mapping[str, int | str] | None,
    ) -> None:
        self.types = _mapping(types, "types")
        self.ranges = _mapping(ranges, "ranges")
        self.attributes = _mapping(attributes, "attributes")
        self.drop = _names(drop, "drop")
        self.nullable = (
            nullable
            if nullable is None or isinstance(nullable, bool)
            else _names(nullable, "nullable")
        )
        self.bins = bins

    def check(self, names: Sequence[str]) -> None:
        """Refuse names that the schema does not have."""
        known = set(names)
        given: dict[str, Iterable[Any]] = {
            "types": self.types,
            "ranges": self.ranges,
            "attributes": self.attributes,
            "drop": self.drop,
            "nullable": () if isinstance(self.nullable, bool | None) else self.nullable,
            "bins": self.bins if isinstance(self.bins, Mapping) else (),
        }
        for parameter, columns in given.items():
            unknown = [name for name in columns if name not in known]
            if unknown:
                raise DomainError(
                    f"{parameter} names {some(unknown)}, which the schema does not have; it has "
                    f"{some(names)}."
                )

    def applied(self, field: Field) -> Field:
        """The field with what the caller says about it."""
        name = field.name
        if name in self.types:
            said = of_dtype(name, self.types[name])
            field = replace(
                field,
                kind=said.kind,
                type=said.type if said.kind == "unknown" else field.type,
                categories=said.categories or field.categories,
                ordered=said.ordered or field.ordered,
                decimals=said.decimals if field.decimals is None else field.decimals,
                tz=said.tz or field.tz,
                unit=said.unit or field.unit,
                loose=False,
            )
        if name in self.ranges:
            field = _ranged(field, self.ranges[name])
        if isinstance(self.nullable, bool):
            field = replace(field, nullable=self.nullable)
        elif self.nullable is not None:
            field = replace(field, nullable=name in self.nullable)
        bins = self.bins.get(name) if isinstance(self.bins, Mapping) else self.bins
        if field.bins is None and bins is not None:
            field = replace(field, bins=bins)
        return field


def _mapping(given: Any, parameter: str) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise DomainError(
            f"{parameter} must be a dict from column names, got {type(given).__name__}."
        )
    return dict(given)


def _names(given: Any, parameter: str) -> tuple[Any, ...]:
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable):
        raise DomainError(f"{parameter} must be a list of column names, got {given!r}.")
    return tuple(given)


def _ranged(field: Field, given: Any) -> Field:
    """The field with a range or list of categories that the caller gave."""
    if isinstance(given, Attribute):
        raise DomainError(
            f"ranges holds {type(given).__name__} for column {field.name!r}; attributes go into "
            "attributes=."
        )
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise DomainError(
            f"ranges takes a pair (smallest, largest) or a list of categories for column "
            f"{field.name!r}, got {given!r}."
        )
    values = list(given)
    if field.kind in ("category", "object", "text", "boolean"):
        # A pair of numbers or dates for a column that may hold anything is a range.
        pair = isinstance(given, tuple) and len(values) == 2
        kind = _kind_of(values) if field.kind == "object" and pair else None
        if kind is None:
            listed = None if any(value is ... for value in values) else values
            return replace(field, kind="category", categories=listed)
        field = replace(field, kind=kind)
    if field.kind in ("integer", "number") and isinstance(given, list) and ... not in values:
        return _listed(field, values)
    if len(values) != 2:
        raise DomainError(
            f"Column {field.name!r} has type {field.type}, so ranges needs a pair (smallest, "
            f"largest), got {len(values)} values. For categories add "
            f"types={{{field.name!r}: 'category'}}."
        )
    low, high = (None if value is ... else value for value in values)
    return replace(
        field,
        lower=field.lower if low is None else low,
        upper=field.upper if high is None else high,
    )


def _listed(field: Field, values: Sequence[Any]) -> Field:
    """The field with a list of the numbers that there are: a step where they are many, or codes."""
    gaps = {b - a for a, b in zip(values[:-1], values[1:], strict=True)}
    if len(values) > _MOST_LISTED and len(gaps) == 1:
        return replace(field, lower=values[0], upper=values[-1], step=gaps.pop())
    return replace(field, kind="category", categories=values, ordered=True)


def _kind_of(values: Sequence[Any]) -> str | None:
    """Kind of column that a pair of bounds speaks of; None if they bound nothing."""
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return "integer"
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return "number"
    if all(isinstance(value, datetime.date) for value in values):
        return "datetime" if any(_has_time(value) for value in values) else "date"
    return None


def _has_time(bound: Any) -> bool:
    """Whether a bound names a time of day."""
    if isinstance(bound, str):
        return bool(re.search(r"\d[T ]\d", bound))
    if isinstance(bound, datetime.datetime):
        return bound.time() != datetime.time() or bound.tzinfo is not None
    return False


def build(fields: Sequence[Field], overrides: Overrides, structure: Any) -> Domain:
    """The domain of the fields.

    Raises
    ------
    DomainError
        One for everything that is missing or wrong.
    """
    from ..domain import Domain

    overrides.check([field.name for field in fields])
    pairs: list[tuple[str, Any]] = []
    gaps: list[Field] = []
    unknown: list[Field] = []
    wrong: list[str] = []
    for field in fields:
        if field.name in overrides.drop:
            continue
        if field.name in overrides.attributes:
            pairs.append((field.name, overrides.attributes[field.name]))
            continue
        field = overrides.applied(field)
        if field.kind == "unknown":
            unknown.append(field)
        elif lacks_values(field):
            gaps.append(field)
        else:
            try:
                pairs.append((field.name, attribute_of(field)))
            except DomainError as error:
                wrong.append(f"{field.place}: {error}")
    if gaps or unknown or wrong:
        raise DomainError("\n\n".join(_complaints(gaps, unknown, wrong)))
    if not pairs:
        raise DomainError("drop leaves no column.")
    return Domain(pairs, structure=structure) if structure else Domain(pairs)


def lacks_values(field: Field) -> bool:
    """Whether a column has neither the range nor the categories that its kind needs."""
    if field.categories is not None or field.kind in ("boolean", "identifier"):
        return False
    if field.kind in ("category", "object", "text"):
        return True
    return field.edges is None and (field.lower is None or field.upper is None)


def _complaints(
    gaps: Sequence[Field], unknown: Sequence[Field], wrong: Sequence[str]
) -> Iterable[str]:
    if wrong:
        more = [f"... ({len(wrong) - 20} more)"] if len(wrong) > 20 else []
        yield "\n".join([*wrong[:20], *more])
    if unknown:
        shown = ", ".join(f"{field.name!r} has type {field.type}" for field in unknown[:20])
        more_types = f", and {len(unknown) - 20} more" if len(unknown) > 20 else ""
        yield (
            f"Types that are not known: {shown}{more_types}. Known are: {', '.join(KINDS)}. Say "
            f"what a column is with types={{{unknown[0].name!r}: ...}}, declare it with "
            "attributes=, or leave it out with drop=."
        )
    if gaps:
        lines = []
        for field in gaps:
            low, high = ("..." if end is None else _code(end) for end in (field.lower, field.upper))
            hint = _HINTS[field.kind]
            hint = hint if hint.startswith("[") else f"({low}, {high})"
            meaning = _MEANINGS[field.kind].replace('"..."', repr(field.name))
            if known := known_name(field.name, field.kind):
                meaning += f"; perhaps attributes= with domains.{known}()"
            lines.append(f"    {field.name!r}: {hint},  # {field.type}: {meaning}")
        count = "1 column needs" if len(gaps) == 1 else f"{len(gaps)} columns need"
        yield "\n".join(
            [
                f"{count} what the schema does not say: a range, or the categories. Fill in the "
                "dots from what is publicly known, never from the records, and pass",
                "",
                "ranges={",
                *lines,
                "}",
                "",
                "or whole attributes, such as attributes={"
                f"{gaps[0].name!r}: {_example(gaps[0])}}}. Leave columns out with drop=[...]; "
                "columns of identifiers are types={...: 'identifier'}.",
            ]
        )


def _code(bound: Any) -> str:
    """A bound as code that needs no import."""
    if isinstance(bound, datetime.date):
        return repr(bound.isoformat())
    return repr(bound)


def _example(field: Field) -> str:
    if field.kind in ("category", "object", "text"):
        return "Categorical(['a', 'b'])"
    if field.kind == "integer":
        return "Numeric(0, 100, integer=True)"
    if field.kind == "number":
        return "Numeric(0, 1000, bins=50)"
    return 'Date("2020-01-01", "2020-12-31")'


def attribute_of(field: Field) -> Any:
    """The attribute that a complete field declares."""
    if field.kind == "identifier":
        from .. import Identifier

        return Identifier()
    if field.categories is not None:
        return _categorical(field, field.categories)
    if field.kind == "boolean":
        return Categorical([False, True], nullable=field.nullable)
    if field.kind in ("date", "datetime"):
        return _moment(field)
    return _numeric(field)


def _categorical(field: Field, categories: Sequence[Any]) -> Categorical:
    listed = list(categories)
    listed += [value for value in field.special or () if value not in set(listed)]
    return Categorical(listed, ordered=field.ordered, other=field.other, nullable=field.nullable)


def _numeric(field: Field) -> Numeric:
    """A range of numbers."""
    options = _given(field, "edges", "scale", "special", "step", "decimals")
    options |= {"integer": field.kind == "integer", "nullable": field.nullable}
    if field.edges is not None:
        return Numeric(**options)
    lower, upper = as_float(field.lower, "lower"), as_float(field.upper, "upper")
    bins = field.bins
    if options["integer"] and bins is None and upper - lower >= MOST_SINGLE:
        # One code each for a million integers is rarely meant.
        bins = AUTO
    return Numeric(field.lower, field.upper, bins, **options)


def _moment(field: Field) -> Any:
    """A range of dates or of instants."""
    from .. import Date, Datetime

    options = _given(field, "unit", "bins", "special", "format")
    bounds = (field.lower, field.upper)
    kind: Callable[..., Any] = Datetime
    if field.kind == "date" or (
        field.loose and field.tz is None and not any(map(_has_time, bounds))
    ):
        kind = Date
    elif field.tz is not None:
        options["tz"] = field.tz
    return kind(*map(_plain_moment, bounds), nullable=field.nullable, **options)


def _plain_moment(bound: Any) -> Any:
    return (
        bound.to_pydatetime() if isinstance(bound, pd.Timestamp) and not bound.nanosecond else bound
    )


def _given(field: Field, *names: str) -> dict[str, Any]:
    """The fields that the schema says, as keywords."""
    values = {name: getattr(field, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}
