"""Field: what a schema says about one column, before it becomes an attribute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...exceptions import DomainError
from ..values import plain_text, some

__all__ = ["KINDS", "Field", "checked_names"]

# What `types=` may say, and what messages name.
KINDS = (
    "integer",
    "number",
    "boolean",
    "category",
    "date",
    "datetime",
    "identifier",
    "text",
)


@dataclass
class Field:
    """What a schema says about one column.

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
    lower, upper : number, date or ISO text, optional
        None where the schema does not say.
    categories : list, optional
    nullable : bool, default=False
    loose : bool, default=False
        Whether a "datetime" may turn out to be a date, because the type is used for both.
    bins, edges, scale, special, step, decimals, unit, tz, format, ordered, other
        As the parameters of `Numeric`, `Date`, `Datetime` and `Categorical`; None where the schema
        does not say.
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

    @property
    def place(self) -> str:
        """The column and where it stands, for messages."""
        return f"Column {self.name!r}" + (f" ({self.where})" if self.where else "")


def checked_names(names: Sequence[Any], remedy: str) -> None:
    """Refuse names that no domain can have.

    Raises
    ------
    DomainError
        If there are no names, or one is not a str, is empty, or occurs twice.
    """
    if not names:
        raise DomainError("The schema has no columns.")
    for name in names:
        if not isinstance(name, str):
            raise DomainError(
                f"Column names must be strings, got {name!r} of type {type(name).__name__}. "
                f"{remedy}"
            )
        if not name.strip():
            raise DomainError(f"A column has an empty name. {remedy}")
        plain_text(name, "Column name")
    if len(set(names)) != len(names):
        seen: set[str] = set()
        repeated = sorted({name for name in names if name in seen or seen.add(name)})  # type: ignore[func-returns-value]
        raise DomainError(
            f"Column names must be unique, but {some(repeated)} are repeated. {remedy}"
        )
