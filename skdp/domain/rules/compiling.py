"""Checks of rules on the way to a `Structure`, and which comparisons follow from others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...exceptions import DomainError
from ..numeric import Numeric
from ..values import some
from .consistency import MOST_CELLS
from .declared import AtMost, Derived, Rule, TotalOf
from .numberline import spans

__all__ = [
    "as_rules",
    "check_cells",
    "check_total",
    "check_whole",
    "closure",
    "columns_named",
    "contradiction",
]

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


def columns_named(rule: Any) -> tuple[str, ...]:
    """Columns that are fields of a rule."""
    if isinstance(rule, Derived):
        return rule.column, rule.from_
    if isinstance(rule, TotalOf):
        return rule.column, *rule.parts
    if isinstance(rule, AtMost):
        return rule.column, rule.bound
    return tuple(rule.columns)


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
                    "be equal. Measure one of them, and declare the others as total_of or derived, "
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


def check_total(rule: TotalOf, total: Any, parts: Sequence[Any]) -> None:
    """Refuse a total that cannot hold the sums of its parts."""
    for name, attribute in zip((rule.column, *rule.parts), (total, *parts), strict=True):
        if type(attribute) is not Numeric:
            raise DomainError(
                f"{rule!r}: column {name!r} must be Numeric, got {type(attribute).__name__}."
            )
    if total.integer and not all(part.integer for part in parts):
        raise DomainError(
            f"{rule!r}: the total is declared integer=True but not all of its parts are. "
            "Declare it without integer=True."
        )
    if any(part.nullable for part in parts) and not total.nullable:
        raise DomainError(
            f"{rule!r}: a part may be missing, and then the total is. Declare "
            f"{rule.column!r} with nullable=True."
        )
    ends = [spans(part) for part in parts]
    low = sum(float(np.nanmin(lows)) for lows, _ in ends)
    high = sum(float(np.nanmax(highs)) for _, highs in ends)
    if not (total.lower <= low and high <= total.upper):
        raise DomainError(
            f"{rule!r}: the parts add up to values from {low:g} to {high:g}, beyond the "
            f"declared range of the total, {total.lower:g} to {total.upper:g}. Widen the range "
            "of the total, or narrow those of the parts."
        )
