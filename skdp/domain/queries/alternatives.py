"""Conditions joined by and, or, not: rewritten as disjoint conjunctions.

A release answers a conjunction of one condition per column. Any other condition on rows is the
union of disjoint conjunctions, so that its answer is the sum of theirs: never negative where theirs
are not, and together with the answer to its negation the number of all records.

The conditions on one column divide its values into classes that no condition separates. The
decomposition takes one column after the other: classes after which the same remains to be asked are
taken together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._types import BoolArray
from ..binning.contents import Points, Spread
from ..categorical import Categorical
from ..numeric import Numeric
from .regions import GridRegion, RealRegion, Region, RegionUnion, _Categories

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


class Classes:
    """The coarsest division of a column such that each region is a union of classes.

    Parameters
    ----------
    column : str
    attribute : Numeric or Categorical
    regions : sequence of Region
        Conditions on the column.

    Attributes
    ----------
    number : int
        Number of classes.
    all : int
        All classes, as bits.
    members : list of int
        The classes of each region, as bits.
    """

    def __init__(
        self, column: str, attribute: Numeric | Categorical, regions: Sequence[Any]
    ) -> None:
        self.column, self.attribute = column, attribute
        self._ends: list[tuple[Any, Any]] = []
        if isinstance(attribute, Categorical):
            held = np.stack([region.mask for region in regions])
        else:
            held = self._held_numbers(attribute, regions)
        patterns, classes = np.unique(held, axis=1, return_inverse=True)
        self._class = classes.reshape(-1)
        self.number = patterns.shape[1]
        self.all = (1 << self.number) - 1
        self.members = [sum(1 << int(k) for k in np.flatnonzero(row)) for row in patterns]

    def _held_numbers(self, attribute: Numeric, regions: Sequence[Any]) -> BoolArray:
        """Which regions hold each piece of the number line, special value, and the missing cell."""
        self._ends = _pieces(attribute, regions)
        low, high = (np.array([piece[end] for piece in self._ends]) for end in (0, 1))
        rows = []
        for region in regions:
            inside = (region.low <= low) & (high <= region.high)
            if isinstance(region, GridRegion):
                if region.only is not None:
                    inside &= np.isin(low, _on_grid(attribute, region.only))
                inside &= ~np.isin(low, _on_grid(attribute, region.never))
            special = [place in region.special for place in range(len(attribute.special))]
            missing = [region.missing] * attribute.nullable
            rows.append(np.concatenate([inside, special, missing]).astype(bool))
        return np.stack(rows)

    def union(self, bits: int) -> Region:
        """The values of some classes."""
        chosen = np.array([bool(bits >> int(k) & 1) for k in self._class])
        attribute = self.attribute
        if isinstance(attribute, Categorical):
            return _Categories(self.column, attribute, chosen)
        n = len(self._ends)
        places = np.flatnonzero(chosen[n : n + len(attribute.special)]).tolist()
        missing = bool(attribute.nullable and chosen[-1])
        return _joined(attribute, self._runs(chosen[:n]), frozenset(places), missing)

    def _runs(self, chosen: BoolArray) -> list[tuple[Any, Any]]:
        """Adjacent pieces as one."""
        runs: list[tuple[Any, Any]] = []
        last = -2
        for piece in np.flatnonzero(chosen).tolist():
            low, high = self._ends[piece]
            runs[-1:] = [(runs[-1][0], high)] if piece == last + 1 else [*runs[-1:], (low, high)]
            last = piece
        return runs


def _on_grid(attribute: Numeric, places: frozenset[int]) -> list[int]:
    """Places that lie on the grid of an attribute, ascending."""
    held = attribute.contents
    assert isinstance(held, Points)
    return sorted(k for k in places if held.grid.first <= k <= held.grid.last)


def _pieces(attribute: Numeric, regions: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Pieces of the number line between the ends of regions: intervals, or places of a grid."""
    held = attribute.contents
    if isinstance(held, Spread):
        ends = {end for region in regions for end in (region.low, region.high)}
        cuts = [-math.inf, *sorted(end for end in ends if math.isfinite(end)), math.inf]
        return list(zip(cuts[:-1], cuts[1:], strict=True))
    first, stop = int(held.grid.first), int(held.grid.last) + 1
    starts = {first}
    for region in regions:
        starts |= {int(region.low), int(region.high) + 1}
        for places in (region.only or (), region.never):
            starts |= {start for k in places for start in (int(k), int(k) + 1)}
    cuts = [*sorted(start for start in starts if first <= start < stop), stop]
    return [(low, high - 1) for low, high in zip(cuts[:-1], cuts[1:], strict=True)]


def _joined(
    attribute: Numeric, runs: list[tuple[Any, Any]], special: frozenset[int], missing: bool
) -> Region:
    """Runs of the number line, special values and the missing cell as one region."""
    held = attribute.contents
    parts: list[RealRegion | GridRegion] = []
    none = frozenset[int]()
    if isinstance(held, Spread):
        # What is no number belongs to the first part.
        for low, high in runs or [(math.inf, -math.inf)]:
            own = (none, False) if parts else (special, missing)
            parts.append(RealRegion(attribute, low, high, own[1], own[0]))
        return parts[0] if len(parts) == 1 else RegionUnion(attribute, tuple(parts))
    grid = held.grid
    single = frozenset(low for low, high in runs if low == high)
    wide = [run for run in runs if run[0] < run[1]]
    if single or not wide:
        parts.append(GridRegion(attribute, grid.first, grid.last, missing, special, single))
    for low, high in wide:
        own = (none, False) if parts else (special, missing)
        parts.append(GridRegion(attribute, low, high, own[1], own[0]))
    return parts[0] if len(parts) == 1 else RegionUnion(attribute, tuple(parts))
