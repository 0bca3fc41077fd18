"""Checks of rules on the way to a `Structure`, and which comparisons follow from others."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..._validation import BoolArray, CodeArray
from ...exceptions import DomainError
from ..values import some
from .declared import AtMost, Derived, Rule

# --- tables of allowed cells, made consistent with each other; and which of them contradict

# Axes (sorted) and which cells of them are allowed.
Tables = dict[tuple[int, ...], BoolArray]

# Cells of one table: 16 MB of truth values.
MOST_CELLS = 2**24

# Cells that the search for one allowed row may visit, about two seconds of work.
_SEARCH_CELLS = 2**31

Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)
class Zeros:
    """Cells of some attributes that no record can be in.

    Attributes
    ----------
    axes : tuple of int
        Positions of measured attributes, ascending.
    allowed : ndarray of bool
        One axis for each of them, of the size of the attribute; False where the cell is empty.
    """

    axes: tuple[int, ...]
    allowed: BoolArray

    def broken_by(self, rows: CodeArray) -> BoolArray:
        """Rows of codes of all attributes in such a cell; not those with a negative code in it."""
        columns = [rows[:, axis] for axis in self.axes]
        unknown = np.logical_or.reduce([column < 0 for column in columns])
        broken: BoolArray = ~self.allowed[tuple(columns)] & ~unknown
        return broken


def consistent(tables: Mapping[tuple[int, ...], BoolArray]) -> Tables | None:
    """Forbid what cannot be part of any row by looking at two tables at a time.

    A code that one table forbids with every code of the others is forbidden in all tables; so are
    combinations of codes of several attributes that two tables share. Which rows are allowed does
    not change.

    Returns
    -------
    tables : dict or None
        With a table for each single axis too; None if nothing is left.
    """
    known = {axes: allowed.copy() for axes, allowed in sorted(tables.items())}
    for axes, allowed in list(known.items()):
        for place, axis in enumerate(axes):
            known.setdefault((axis,), np.ones(allowed.shape[place], dtype=bool))
    links = _links(list(known))
    if not all(allowed.any() for allowed in known.values()):
        return None
    todo = set(known)
    while todo:
        changed: set[tuple[int, ...]] = set()
        for one, other, shared in links:
            if one not in todo and other not in todo:
                continue
            both = _onto(known[one], one, shared) & _onto(known[other], other, shared)
            for axes in (one, other):
                if _restrict(known[axes], axes, both, shared):
                    changed.add(axes)
            if not both.any():
                return None
        todo = changed
    return known


def _links(
    tables: Sequence[tuple[int, ...]],
) -> list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """Pairs of tables to be compared, and the axes that they share.

    Tables that share one axis meet in the table of that axis alone.
    """
    wide = [axes for axes in tables if len(axes) > 1]
    links: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[int, ...]] = {
        (axes, (axis,)): (axis,) for axes in wide for axis in axes
    }
    meeting: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for axes in wide:
        for pair in itertools.combinations(axes, 2):
            for other in meeting.setdefault(pair, []):
                links[other, axes] = tuple(sorted({*other} & {*axes}))
            meeting[pair].append(axes)
    return [(one, other, shared) for (one, other), shared in links.items()]


def _onto(allowed: BoolArray, axes: tuple[int, ...], kept: tuple[int, ...]) -> BoolArray:
    """Combinations of some axes that are allowed with at least one of the others."""
    gone = tuple(place for place, axis in enumerate(axes) if axis not in kept)
    return np.asarray(allowed.any(axis=gone)) if gone else allowed


def _restrict(
    allowed: BoolArray, axes: tuple[int, ...], mask: BoolArray, shared: tuple[int, ...]
) -> bool:
    """Forbid in place what the mask forbids; whether anything changed."""
    if _onto(allowed, axes, shared).sum() == mask.sum():
        # The mask allows a part of it, so they are equal.
        return False
    shape = [size if axis in shared else 1 for axis, size in zip(axes, allowed.shape, strict=True)]
    allowed &= mask.reshape(shape)
    return True


class _GaveUp(Exception):
    """The search was too long."""


def satisfiable(tables: Mapping[tuple[int, ...], BoolArray]) -> bool | None:
    """Whether a row is allowed by all tables; None if the search had to give up.

    Consistent tables without a cycle always have one. With a cycle, codes are tried one attribute
    after the other. Everything here is public: no record is looked at.
    """
    known = consistent(tables)
    if known is None:
        return False
    if _acyclic([axes for axes in known if len(axes) > 1]):
        return True
    try:
        return _search(known, {}, [_SEARCH_CELLS]) is not None
    except _GaveUp:
        return None


def one_row(tables: Mapping[tuple[int, ...], BoolArray]) -> dict[int, int]:
    """Codes of a row that is allowed by all tables, for the attributes in them."""
    known = consistent(tables)
    row = None if known is None else _search(known, {}, [_SEARCH_CELLS])
    assert row is not None, "the tables contradict each other"
    return row


def _search(known: Tables, row: dict[int, int], budget: list[int]) -> dict[int, int] | None:
    """A row that is allowed, or None; the attribute with the fewest codes left comes next."""
    free = [axes for axes in known if len(axes) == 1 and axes[0] not in row]
    if not free:
        return row
    axes = min(free, key=lambda each: int(known[each].sum()))
    for code in np.flatnonzero(known[axes]).tolist():
        budget[0] -= sum(allowed.size for allowed in known.values())
        if budget[0] < 0:
            raise _GaveUp
        fixed = {each: _fixed(allowed, each, axes[0], code) for each, allowed in known.items()}
        rest = consistent(fixed)
        found = None if rest is None else _search(rest, {**row, axes[0]: code}, budget)
        if found is not None:
            return found
    return None


def _fixed(allowed: BoolArray, axes: tuple[int, ...], axis: int, code: int) -> BoolArray:
    """The table without the other codes of an attribute."""
    if axis not in axes:
        return allowed
    place = axes.index(axis)
    mask = np.zeros_like(allowed)
    index = tuple(code if at == place else slice(None) for at in range(allowed.ndim))
    mask[index] = allowed[index]
    return mask


def _acyclic(edges: Sequence[tuple[int, ...]]) -> bool:
    """Whether the tables form no cycle: attributes of one table, and tables inside others, go."""
    left = [set(edge) for edge in edges]
    while True:
        count: dict[int, int] = {}
        for edge in left:
            for axis in edge:
                count[axis] = count.get(axis, 0) + 1
        smaller = [{axis for axis in edge if count[axis] > 1} for edge in left]
        kept: list[set[int]] = []
        for edge in sorted(smaller, key=len, reverse=True):
            if edge and not any(edge <= other for other in kept):
                kept.append(edge)
        if not kept:
            return True
        if sum(map(len, kept)) == sum(map(len, left)) and len(kept) == len(left):
            return False
        left = kept


def shortest(items: Sequence[Item], fails: Callable[[list[Item]], bool]) -> list[Item]:
    """Few items that fail together, none of which can be left out.

    All single items are tried, and all pairs of a short list; else items are left out one by one.
    """
    for size, most in ((1, 10_000), (2, 2_000), (3, 500)):
        if math.comb(len(items), size) <= most:
            for chosen in itertools.combinations(items, size):
                if fails(list(chosen)):
                    return list(chosen)
    kept = list(items)
    for item in items:
        rest = [other for other in kept if other is not item]
        if fails(rest):
            kept = rest
    return kept


def zeros_of(tables: Tables) -> tuple[Zeros, ...]:
    """Tables that forbid something which those of their single attributes do not."""
    kept = []
    for axes, allowed in sorted(tables.items(), key=lambda item: (len(item[0]), item[0])):
        free = math.prod(int(tables[(axis,)].sum()) for axis in axes) if len(axes) > 1 else None
        if (allowed.size if free is None else free) > int(allowed.sum()):
            allowed.setflags(write=False)
            kept.append(Zeros(axes, allowed))
    return tuple(kept)


# Pairs of columns that chains of `at_most` may compare.
_MOST_COMPARISONS = 2_000


def as_rules(rules: Any) -> list[Rule]:
    """Rules that were given as ``structure=``; errors for anything else."""
    if isinstance(rules, Rule):
        raise DomainError(f"structure must be a list of rules, got one: write [{rules!r}].")
    if isinstance(rules, str | bytes | Mapping) or not isinstance(rules, Iterable):
        raise DomainError(
            "structure must be a list of rules such as [at_most('balance', 'amount')], got "
            f"{rules!r}. Rules in the form of JSON are read by `structure_from_data`."
        )
    found = list(rules)
    for rule in found:
        if not isinstance(rule, Rule):
            raise DomainError(
                f"structure must hold rules such as at_most('balance', 'amount'), got {rule!r} of "
                f"type {type(rule).__name__}."
            )
    return found


def columns_named(rule: Derived | AtMost) -> tuple[str, str]:
    """Columns that are fields of a rule."""
    if isinstance(rule, Derived):
        return rule.column, rule.from_
    return rule.column, rule.bound


def closure(rules: Sequence[Rule]) -> dict[str, tuple[str, ...]]:
    """Bounds of each column, chains included, and first those that nothing exceeds."""
    direct: dict[str, list[str]] = {}
    for rule in rules:
        if isinstance(rule, AtMost):
            direct.setdefault(rule.column, []).append(rule.bound)
    above: dict[str, tuple[str, ...]] = {}
    number = 0
    for column in direct:
        found: dict[str, None] = {}
        todo = list(direct[column])
        while todo:
            bound = todo.pop(0)
            if bound == column:
                raise DomainError(
                    f"Rules of at_most form a circle through {column!r}: its columns would always "
                    "be equal. Measure one of them, and declare the others as derived, "
                    "or leave one rule out."
                )
            if bound not in found:
                found[bound] = None
                todo += direct.get(bound, [])
        above[column] = tuple(found)
        number += len(found)
        if number > _MOST_COMPARISONS:
            raise DomainError(
                f"Chains of at_most compare more than {_MOST_COMPARISONS:,} pairs of columns. "
                "Declare shorter chains."
            )
    return above


def check_cells(rule: Rule, names: Sequence[str], sizes: Sequence[int]) -> None:
    """Refuse a table of more than `MOST_CELLS` cells."""
    cells = math.prod(sizes)
    if cells > MOST_CELLS:
        widest = names[int(np.argmax(sizes))]
        raise DomainError(
            f"{rule!r} connects {some(list(names))}, which have {cells:,} cells together, more "
            f"than {MOST_CELLS:,}. Declare fewer bins or categories; {widest!r} has "
            f"{max(sizes):,}."
        )


def check_whole(rule: Rule, column: str, attribute: Any, weights: np.ndarray) -> None:
    """Refuse a condition that covers a bin in part."""
    cut = np.flatnonzero((weights > 0) & (weights < 1))
    if not len(cut):
        return
    code = int(cut[0])
    raise DomainError(
        f"{rule!r}: the condition on {column!r} cuts the bin {attribute.labels()[code]}, but a "
        "rule is about whole bins. Move it to an end of this bin, or declare the bins so that "
        "they end at the condition (bins=, or edges=)."
    )


def contradiction(rules: Sequence[Rule]) -> str:
    """The error for rules that no row satisfies."""
    if len(rules) == 1:
        return (
            f"The rule {rules[0]!r} forbids every row: no record could be represented. Change it, "
            "or leave it out."
        )
    return (
        f"These {len(rules)} rules contradict each other, no row satisfies them all: "
        + " and ".join(map(repr, rules))
        + ". Change or leave out one of them."
    )
