"""Columns: names and declarations of the columns of a domain."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..exceptions import DomainError
from .categorical import Categorical
from .identifiers import Identifier, Text
from .numeric import Numeric
from .rules.structure import Structure
from .values import plain_text, refuse_placeholder, some

__all__ = ["Columns", "checked_columns"]


class Columns:
    """What `Domain` knows of its columns: which there are, and which of them are measured."""

    names: tuple[str, ...]
    attributes: tuple[Numeric | Categorical, ...]
    inferred: bool
    structure: Structure
    _positions: dict[str, int]
    _declared: dict[str, Numeric | Categorical | Identifier]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of codes of each attribute."""
        return tuple(attribute.size for attribute in self.attributes)

    @property
    def size(self) -> int:
        """Number of cells, a Python integer of any size."""
        return math.prod(self.shape)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the table, in declared order: measured, derived and identifiers."""
        return tuple(self._declared)

    @property
    def known(self) -> tuple[str, ...]:
        """Columns that a query may name: measured and derived ones, without totals."""
        return self.structure.known

    def declared(self, name: str) -> Numeric | Categorical | Identifier:
        """Declaration of any column, measured or not.

        Raises
        ------
        DomainError
            If it is not declared.
        """
        if isinstance(name, str) and name in self._declared:
            return self._declared[name]
        raise DomainError(f"Column {name!r} is not in the domain; it has {some(self.columns)}.")

    def find(self, column: str) -> Numeric | Categorical | None:
        """Attribute of a column that a query may name; None for others."""
        return self.structure.find(column)

    def why_not(self, column: str) -> str | None:
        """Why a declared column cannot be in a query; None if it is not declared."""
        return self.structure.why_not(column)

    def items(self) -> list[tuple[str, Numeric | Categorical]]:
        """(name, attribute) pairs of the measured columns, in order."""
        return list(zip(self.names, self.attributes, strict=True))

    def index(self, name: str) -> int:
        """Position of a measured column.

        Raises
        ------
        DomainError
            If it is not declared, or not measured.
        """
        try:
            return self._positions[name]
        except (KeyError, TypeError):
            pass
        if name in self:
            raise DomainError(
                f"Column {name!r} is not measured: it follows from other columns, by "
                f"{self.structure.derived[name]!r}."
            )
        raise DomainError(f"Column {name!r} is not in the domain; it has {some(self.names)}.")

    def __getitem__(self, name: str) -> Numeric | Categorical:
        attribute = self._declared.get(name) if isinstance(name, str) else None
        if attribute is None or isinstance(attribute, Identifier):
            return self.attributes[self.index(name)]
        return attribute

    def __contains__(self, name: object) -> bool:
        """Whether a column is measured or follows from measured ones."""
        return isinstance(name, str) and (name in self._positions or name in self.structure.derived)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def follow_from(self, names: Iterable[str]) -> list[str]:
        """Derived columns that follow from these columns alone, totals included."""
        chosen = set(names)
        found: list[str] = []
        # A chain of derived columns is found step by step.
        for _ in self.structure.derived:
            for name, rule in self.structure.derived.items():
                if name not in chosen and chosen.issuperset(self.structure.columns_of(rule)[1:]):
                    chosen.add(name)
                    found.append(name)
        return [name for name in self.columns if name in found]

    def names_for(self, n_unnamed: int, taken: Iterable[str] = ()) -> list[str] | None:
        """The columns that columns without names stand for, by position.

        Parameters
        ----------
        n_unnamed : int
            Number of columns without names.
        taken : iterable of str
            Columns that were given by name.

        Returns
        -------
        list of str, or None
            All free columns or the measured ones among them; None if neither are as many.
        """
        named = set(taken)
        for columns in (self.columns, self.names):
            free = [name for name in columns if name not in named]
            if len(free) == n_unnamed:
                return free
        return None

    def with_names(self, frame: Any, taken: Iterable[str] = ()) -> Any:
        """The frame with names for its columns without names, by position.

        Raises
        ------
        DomainError
            If there are more or fewer of them than columns that they can stand for.
        """
        if not frame.n_unnamed:
            return frame
        named = {*frame.named, *taken}
        names = self.names_for(frame.n_unnamed, named)
        if names is None:
            free = [name for name in self.names if name not in named]
            raise DomainError(
                f"The data has {frame.n_unnamed} columns without names, but the domain declares "
                f"{len(free)} for them: {some(free)}."
            )
        return frame.with_names(names)

    def _named(self, frame: Any) -> Any:
        """The columns by name; errors if they are not those of the domain."""
        frame = self.with_names(frame)
        present = set(frame.names)
        missing = [name for name in self.names if name not in present]
        extra = [name for name in frame.names if name not in self._declared]
        if missing or extra:
            raise DomainError(
                "The columns of the data are not those of the domain."
                + (f" Missing: {some(missing)}." if missing else "")
                + (f" Not declared: {some(extra)}." if extra else "")
                + (
                    " Select those of the domain first, as in data[[*domain.columns]], or declare "
                    "the others."
                    if extra
                    else " Add them, or leave them out of the domain (`domain.select`)."
                )
            )
        return frame

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("A Domain cannot be changed; declare a new one.")

    def _key(self) -> tuple[Any, ...]:
        return (tuple(self._declared.items()), self.structure, self.inferred)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Columns) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        shown = [f"{name!r}: {part!r}" for name, part in list(self._declared.items())[:12]]
        if len(self.columns) > len(shown):
            shown.append(f"... ({len(self.columns) - len(shown)} more)")
        rules = list(map(repr, self.structure.rules[:6]))
        if len(self.structure) > len(rules):
            rules.append(f"... ({len(self.structure) - len(rules)} more)")
        tail = f", structure=[{', '.join(rules)}]" if rules else ""
        return f"Domain({{{', '.join(shown)}}}{tail}{', inferred=True' * self.inferred})"


def checked_columns(pairs: Sequence[Any]) -> dict[str, Any]:
    """Declarations by name; errors for anything that declares no column."""
    if not pairs:
        raise DomainError("The domain has no attributes. Declare at least one column.")
    declared: dict[str, Any] = {}
    repeated: dict[str, None] = {}
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise DomainError(f"Expected (name, attribute) pairs, got {pair!r}.")
        name, attribute = pair
        if not isinstance(name, str):
            raise DomainError(
                f"Column names must be strings, got {name!r} of type {type(name).__name__}."
            )
        plain_text(name, "Column name")
        refuse_placeholder(attribute, f"The declaration of column {name!r}")
        if isinstance(attribute, Text) or attribute is Text:
            raise DomainError(
                f"Column {name!r} is free text, which no release can hold. Leave the column out; "
                "or declare Identifier(), which ignores it and gives synthetic rows fresh ids; or "
                "replace it by a Categorical of what is in it."
            )
        if not isinstance(attribute, Numeric | Categorical | Identifier):
            raise DomainError(
                f"Column {name!r} must be declared by Numeric, Date, Datetime, Categorical or "
                f"Identifier, got {type(attribute).__name__}."
            )
        if name in declared:
            repeated[name] = None
        declared[str(name)] = attribute
    if repeated:
        raise DomainError(
            f"Column names must be unique, but {some(sorted(repeated))} are repeated."
        )
    return declared
