"""Field: what a schema says about one column, before it becomes an attribute."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...exceptions import DomainError
from ..values import as_float, plain_text, some
from .cells import is_date, number

# What `types=` may say, and what messages name.
KINDS = ("integer", "number", "boolean", "category", "date", "datetime", "identifier", "text")
_REMEDY = (
    "Rename the columns first, in the schema and in the data: `frame.columns.map(str)` makes all "
    "names text, and `[f'c{i}' for i in range(frame.shape[1])]` makes them different."
)


@dataclass
class Field:
    """What a schema says about one column: readers fill it in as it is written, `settle` reads it.

    Attributes
    ----------
    name : str
    kind : str
        One of `KINDS`; "object" where a type may hold anything; "unknown" where it has no meaning
        here.
    type : str
        What the schema calls it, for messages.
    where : str
        Where it is said, such as "row 7"; empty if the name says enough.
    lower, upper : number, date or text, optional
        None where the schema does not say.
    categories : list, optional
        All values that there are.
    nullable : bool, default=False
    loose : bool, default=False
        Whether a "datetime" may turn out to be a date, because the type is used for both.
    bins, edges, scale, special, step, decimals, unit, tz, format, ordered, other
        As the parameters of `Numeric`, `Date`, `Datetime` and `Categorical`; None where the schema
        does not say.
    wrong : str
        What cannot be understood.
    """

    name: str
    kind: str
    type: str
    where: str = ""
    lower: Any = None
    upper: Any = None
    categories: Sequence[Any] | None = None
    nullable: bool = False
    loose: bool = False
    ordered: bool = False
    other: Any = None
    bins: int | str | None = None
    edges: Sequence[float] | None = None
    scale: str | None = None
    special: Sequence[Any] | None = None
    step: float | None = None
    decimals: int | None = None
    unit: str | None = None
    tz: str | None = None
    format: str | None = None
    wrong: str = ""

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers."""
        return self.kind in ("integer", "number")

    @property
    def is_moment(self) -> bool:
        """Whether it holds dates, with or without a time."""
        return self.kind in ("date", "datetime")

    @property
    def bounded(self) -> bool:
        """Whether it holds numbers or dates of a range that is known."""
        known = self.edges is not None or None not in (self.lower, self.upper)
        return known and (self.is_number or self.is_moment)

    @property
    def complete(self) -> bool:
        """Whether it has the range or the categories that its kind needs."""
        fixed = self.kind in ("boolean", "identifier") or self.categories is not None
        return fixed or self.bounded

    def settle(self) -> None:
        """Read bounds and special values as the kind asks.

        Raises
        ------
        DomainError
            If something cannot be understood, such as a bound that is no number or date.
        """
        if self.wrong:
            raise DomainError(self.wrong)
        if self.kind == "integer" and self.decimals:
            self.kind = "number"
        if self.is_number or self.is_moment:
            self.lower, self.upper = (self._read(end, "bound") for end in (self.lower, self.upper))
        whole = [isinstance(end, int) for end in (self.lower, self.upper)]
        if self.kind == "number" and self.decimals == 0 and not self.step and all(whole):
            self.kind, self.decimals = "integer", None
        self.special = [self._read(value, "value") for value in self.special or ()] or None

    def _read(self, value: Any, what: str) -> Any:
        """A value of the schema as the kind asks: a number, or ISO text of a date."""
        text, said = isinstance(value, str), f"the {what} {value!r} is not a"
        if self.is_moment and text and self.format and not is_date(value):
            try:
                return datetime.datetime.strptime(value, self.format).isoformat()
            except ValueError as error:
                raise DomainError(f"{said} date in the format {self.format!r} ({error}).") from None
        if self.is_moment and isinstance(value, int | float | list | dict):
            raise DomainError(f"{said} date. Write it as 2020-01-31.")
        if self.is_number and value is not None:
            if not text:
                as_float(value, f"the {what}")
            elif (found := number(value)) is not None:
                value = found
            else:
                raise DomainError(f"{said} number, but the type is {self.type}.")
        whole = self.kind == "integer" and isinstance(value, float) and value.is_integer()
        return int(value) if whole else value


def with_names(fields: Iterable[Field]) -> list[Field]:
    """The fields, if a domain can have their names.

    Raises
    ------
    DomainError
        If there are no names, or one is not a str, is empty, or occurs twice.
    """
    fields = list(fields)
    if not fields:
        raise DomainError("The schema has no columns.")
    for name in (field.name for field in fields):
        if not isinstance(name, str):
            kind = type(name).__name__
            raise DomainError(
                f"Column names must be strings, got {name!r} of type {kind}. {_REMEDY}"
            )
        if not name.strip():
            raise DomainError(f"A column has an empty name. {_REMEDY}")
        plain_text(name, "Column name")
    times = Counter(field.name for field in fields)
    if repeated := sorted(name for name in times if times[name] > 1):
        what = f"{some(repeated)} are repeated"
        raise DomainError(f"Column names must be unique, but {what}. {_REMEDY}")
    return fields
