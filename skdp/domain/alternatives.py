"""Conditions joined by and, or, not: rewritten as disjoint conjunctions.

A release answers a conjunction of one condition per column. Any other condition on rows is the
union of disjoint conjunctions, so that its answer is the sum of theirs: never negative where theirs
are not, and together with the answer to its negation the number of all records.

The conditions on one column divide its values into classes that no condition separates. The
decomposition takes one column after the other: classes after which the same remains to be asked are
taken together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .classes import Classes
from .regions import Region

__all__ = ["Atom", "Node", "both", "conjunctions", "either", "negated"]

# Largest number of columns that are joined, of conjunctions, and of steps on the way to them.
_MAX_COLUMNS = 200
_MAX_PARTS = 1000
_MAX_STEPS = 500_000


@dataclass(frozen=True, eq=False)
class Atom:
    """A condition on one column.

    Attributes
    ----------
    column : str
    attribute : Numeric or Categorical
    region : Region
        The values that satisfy it.
    """

    column: str
    attribute: Any
    region: Region


@dataclass(frozen=True, eq=False)
class _Joined:
    """Conditions joined by "and", "or", or one condition after "not"."""

    how: str
    members: tuple[Any, ...]


Node = Atom | _Joined


def both(members: Sequence[Node]) -> Node:
    """All of some conditions."""
    return members[0] if len(members) == 1 else _Joined("and", tuple(members))


def either(members: Sequence[Node]) -> Node:
    """Any of some conditions."""
    return members[0] if len(members) == 1 else _Joined("or", tuple(members))


def negated(member: Node) -> Node:
    """The rows that do not satisfy a condition, those with missing values among them."""
    return _Joined("not", (member,))


def conjunctions(node: Node) -> list[dict[str, Region]]:
    """Disjoint conjunctions whose union are the rows that satisfy a condition; at least one.

    Raises
    ------
    ValueError
        If there would be too many.
    """
    atoms = _atoms(node)
    if atoms is not None:
        found: dict[str, Region] = {}
        for atom in atoms:
            known = found.get(atom.column)
            # Regions of one attribute are of one kind, which the type checker cannot see.
            found[atom.column] = atom.region if known is None else known.intersect(atom.region)  # type: ignore[arg-type]
        return [found]
    return _Decomposition(node).parts()


def _atoms(node: Node) -> list[Atom] | None:
    """The conditions of a conjunction; None for what is none."""
    if isinstance(node, Atom):
        return [node]
    if node.how != "and":
        return None
    found = []
    for member in node.members:
        inner = _atoms(member)
        if inner is None:
            return None
        found += inner
    return found


# A condition in terms of classes: True, False, ("is", column, classes as bits), or ("and" or "or",
# set of such conditions).
_Form = Any


class _Decomposition:
    """One condition on its way to disjoint conjunctions."""

    def __init__(self, node: Node) -> None:
        self.steps = 0
        self.known: dict[_Form, list[dict[int, int]]] = {}
        atoms: dict[str, list[Atom]] = {}
        self._collect(node, atoms)
        self.columns = list(atoms)
        if len(self.columns) > _MAX_COLUMNS:
            raise self._too_much()
        self.classes = [
            Classes(name, each[0].attribute, [atom.region for atom in each])
            for name, each in atoms.items()
        ]
        self.bits = {
            id(atom): (column, bits)
            for column, name in enumerate(self.columns)
            for atom, bits in zip(atoms[name], self.classes[column].members, strict=True)
        }
        self.node = node

    def _collect(self, node: Node, atoms: dict[str, list[Atom]]) -> None:
        if isinstance(node, Atom):
            atoms.setdefault(node.column, []).append(node)
            return
        for member in node.members:
            self._collect(member, atoms)

    def parts(self) -> list[dict[str, Region]]:
        """The conjunctions."""
        found = self._parts(self._form(self.node, positive=True))
        # What nothing satisfies is a conjunction too: no value of the first column.
        return [self._regions(part) for part in found or [{0: 0}]]

    def _regions(self, part: dict[int, int]) -> dict[str, Region]:
        return {
            self.columns[column]: self.classes[column].union(bits)
            for column, bits in sorted(part.items())
        }

    def _form(self, node: Node, *, positive: bool) -> _Form:
        if isinstance(node, Atom):
            column, bits = self.bits[id(node)]
            return self._is(column, bits if positive else self.classes[column].all & ~bits)
        if node.how == "not":
            return self._form(node.members[0], positive=not positive)
        how = node.how if positive else {"and": "or", "or": "and"}[node.how]
        return self._join(how, [self._form(member, positive=positive) for member in node.members])

    def _is(self, column: int, bits: int) -> _Form:
        return ("is", column, bits) if 0 < bits < self.classes[column].all else bits > 0

    def _join(self, how: str, members: Sequence[_Form]) -> _Form:
        """Members joined, those on one column as one."""
        decided = how == "or"
        columns: dict[int, int] = {}
        others: set[_Form] = set()
        for member in members:
            if isinstance(member, bool):
                if member is decided:
                    return decided
                continue
            inner = member[1] if member[0] == how else [member]
            for one in inner:
                if one[0] != "is":
                    others.add(one)
                elif one[1] not in columns:
                    columns[one[1]] = one[2]
                elif how == "or":
                    columns[one[1]] |= one[2]
                else:
                    columns[one[1]] &= one[2]
        for column, bits in columns.items():
            one = self._is(column, bits)
            if one is decided:
                return decided
            if not isinstance(one, bool):
                others.add(one)
        if not others:
            return not decided
        return others.pop() if len(others) == 1 else (how, frozenset(others))

    def _parts(self, form: _Form) -> list[dict[int, int]]:
        """Disjoint conjunctions, each as classes by column."""
        if isinstance(form, bool):
            return [{}] if form else []
        if form not in self.known:
            column = self._first(form)
            rest: dict[_Form, int] = {}
            for place in range(self.classes[column].number):
                left = self._given(form, column, place)
                rest[left] = rest.get(left, 0) | (1 << place)
            found = []
            for left, bits in rest.items():
                own = {} if bits == self.classes[column].all else {column: bits}
                found += [{**own, **part} for part in self._parts(left)]
                if len(found) > _MAX_PARTS:
                    raise self._too_much()
            self.known[form] = found
        return self.known[form]

    def _first(self, form: _Form) -> int:
        if form[0] == "is":
            return int(form[1])
        return min(self._first(member) for member in form[1])

    def _given(self, form: _Form, column: int, place: int) -> _Form:
        """What remains of a condition for rows of one class of a column."""
        self.steps += 1
        if self.steps > _MAX_STEPS:
            raise self._too_much()
        if isinstance(form, bool):
            return form
        if form[0] == "is":
            return bool(form[2] >> place & 1) if form[1] == column else form
        return self._join(form[0], [self._given(member, column, place) for member in form[1]])

    def _too_much(self) -> ValueError:
        return ValueError(
            f"The query is too complicated: with 'or' or 'not' it may take at most {_MAX_COLUMNS} "
            f"columns and {_MAX_PARTS:,} disjoint conjunctions. Ask for parts of it, and add the "
            "answers up."
        )
