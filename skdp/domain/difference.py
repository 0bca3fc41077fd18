"""What differs between two domains."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .shown import cut, values_text
from .values import some, with_types

__all__ = ["DomainDifference", "difference"]

_MOST_LINES = 200


@dataclass(frozen=True)
class DomainDifference:
    """What differs between two domains; false if they are equal.

    Attributes
    ----------
    added, removed : tuple of str
        Columns that only the second, or only the first domain has.
    changed : dict of str to tuple of str
        What changed in a column that both have, one text for each parameter.
    reordered : bool
        Whether the common columns have another order.
    structure : tuple of str
        Rules that only one of the domains has, with "+" or "-" in front.
    inferred : str
        What changed in the mark ``inferred``; empty if nothing did.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: dict[str, tuple[str, ...]]
    reordered: bool = False
    structure: tuple[str, ...] = ()
    inferred: str = ""
    _texts: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __bool__(self) -> bool:
        parts = (self.added, self.removed, self.changed, self.structure, self.inferred)
        return self.reordered or any(map(bool, parts))

    def __repr__(self) -> str:
        if not self:
            return "The domains are equal."
        lines = [f"+ {name}: {self._texts.get(name, '')}" for name in self.added]
        lines += [f"- {name}: {self._texts.get(name, '')}" for name in self.removed]
        lines += [f"~ {name}: {'; '.join(texts)}" for name, texts in self.changed.items()]
        lines += ["~ order of the columns"] * self.reordered
        lines += [f"{text[0]} rule {text[1:].strip()}" for text in self.structure]
        lines += [f"~ {self.inferred}"] * bool(self.inferred)
        more = len(lines) - _MOST_LINES
        return "\n".join(lines[:_MOST_LINES] + ([f"... ({more} more)"] if more > 0 else []))


def difference(first: Any, second: Any) -> DomainDifference:
    """See `Domain.diff`."""
    old, new = _declared(first), _declared(second)
    added = tuple(name for name in new if name not in old)
    removed = tuple(name for name in old if name not in new)
    common = [name for name in old if name in new]
    changed = {}
    for name in common:
        texts = _changes(old[name], new[name])
        if texts:
            changed[name] = texts
    described = {name: _described(new[name]) for name in added}
    described |= {name: _described(old[name]) for name in removed}
    rules = [[str(rule) for rule in domain.structure.rules] for domain in (first, second)]
    return DomainDifference(
        added,
        removed,
        changed,
        common != [name for name in new if name in old],
        tuple(f"- {rule}" for rule in rules[0] if rule not in set(rules[1]))
        + tuple(f"+ {rule}" for rule in rules[1] if rule not in set(rules[0])),
        ""
        if first.inferred == second.inferred
        else f"inferred: {first.inferred} -> {second.inferred}",
        described,
    )


def _declared(domain: Any) -> dict[str, Any]:
    return {name: domain.declared(name) for name in domain.columns}


def _described(attribute: Any) -> str:
    return f"{type(attribute).__name__}, {values_text(attribute)}".removesuffix(", ")


def _changes(old: Any, new: Any) -> tuple[str, ...]:
    """Parameters that differ, each as one text."""
    if old == new:
        return ()
    before, after = old._to_data(), new._to_data()
    if before.get("type") != after.get("type"):
        return (f"{_described(old)} -> {_described(new)}",)
    texts: list[str] = []
    for key in {**before, **after}:
        first, second = before.get(key), after.get(key)
        if key == "categories":
            texts += _categories(first, second)
        elif with_types([first]) != with_types([second]):
            texts.append(f"{key}: {cut(repr(first), 60)} -> {cut(repr(second), 60)}")
    return tuple(texts) or (f"{_described(old)} -> {_described(new)}",)


def _categories(old: Any, new: Any) -> list[str]:
    first, second = dict.fromkeys(with_types(old)), dict.fromkeys(with_types(new))
    gone = [value for key, value in zip(first, old, strict=True) if key not in second]
    come = [value for key, value in zip(second, new, strict=True) if key not in first]
    texts = [f"{len(come):,} more categories: {some(come, 5)}"] if come else []
    texts += [f"{len(gone):,} fewer categories: {some(gone, 5)}"] if gone else []
    if not texts and list(first) != list(second):
        texts = ["categories in another order"]
    return texts
