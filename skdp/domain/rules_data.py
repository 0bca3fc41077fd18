"""Rules read from plain data, such as the content of a JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..exceptions import DomainError
from .rules import (
    FORMS,
    Rule,
    at_most,
    derived,
    forbid,
    missing_together,
    only_if,
    total_of,
    within,
)
from .values import some

__all__ = ["structure_from_data"]


def structure_from_data(data: Any) -> list[Rule]:
    """Rules from what :meth:`Rule.to_data` gave, such as the content of a JSON file.

    Parameters
    ----------
    data : list of dict
        Each with the key ``rule``, the name of the function, and its arguments.

    Raises
    ------
    DomainError
        If an entry is no rule; the message says which.

    Examples
    --------
    >>> structure_from_data([{"rule": "at_most", "column": "balance", "bound": "amount"}])
    [at_most('balance', 'amount')]
    """
    if not isinstance(data, list):
        raise DomainError(f"A structure is a list of rules, got {type(data).__name__}.")
    return [_rule_from_data(item, number) for number, item in enumerate(data, start=1)]


def _rule_from_data(item: Any, number: int) -> Rule:
    if not isinstance(item, Mapping) or item.get("rule") not in _READERS:
        got = item.get("rule") if isinstance(item, Mapping) else item
        raise DomainError(
            f"Entry {number} of the structure is no rule: {got!r}. A rule has the key 'rule' with "
            f"one of {', '.join(sorted(_READERS))}."
        )
    allowed, optional, read = _READERS[item["rule"]]
    given = set(item) - {"rule"}
    missing, extra = set(allowed) - optional - given, given - set(allowed)
    if missing or extra:
        raise DomainError(
            f"Entry {number} of the structure, {item['rule']!r}, "
            + (f"lacks {some(sorted(missing))}" if missing else "")
            + (" and " if missing and extra else "")
            + (f"has the unknown keys {some(sorted(map(str, extra)))}" if extra else "")
            + "."
        )
    try:
        return read(item)
    except DomainError as error:
        raise DomainError(f"Entry {number} of the structure: {error}") from None


def _map_from_data(data: Any) -> Any:
    if isinstance(data, Mapping):
        return data
    try:
        pairs = [(tuple(key) if isinstance(key, list) else key, value) for key, value in data]
        found = dict(pairs)
    except (TypeError, ValueError):
        raise DomainError("a map is an object, or a list of [value, result] pairs.") from None
    if len(found) < len(pairs):
        raise DomainError("a map has the same value twice.")
    return found


_READERS: dict[str, Any] = {
    "derived": (
        ("column", "from", "map"),
        set(),
        lambda item: derived(item["column"], item["from"], _map_from_data(item["map"])),
    ),
    "within": (
        ("column", "group", "map"),
        set(),
        lambda item: within(item["column"], item["group"], _map_from_data(item["map"])),
    ),
    "at_most": (("column", "bound"), set(), lambda item: at_most(item["column"], item["bound"])),
    "only_if": (
        ("column", "condition", "otherwise"),
        {"otherwise"},
        lambda item: only_if(
            item["column"], _condition_from_data(item["condition"]), item.get("otherwise")
        ),
    ),
    "forbid": (
        ("condition",),
        set(),
        lambda item: forbid(_condition_from_data(item["condition"])),
    ),
    "missing_together": (
        ("columns",),
        set(),
        lambda item: missing_together(*_listed(item["columns"])),
    ),
    "total_of": (
        ("column", "parts"),
        set(),
        lambda item: total_of(item["column"], item["parts"]),
    ),
}


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise DomainError(f"columns must be a list of names, got {value!r}.")
    return value


def _condition_from_data(data: Any) -> Any:
    if not isinstance(data, Mapping):
        return data
    found = {}
    for column, asked in data.items():
        if not isinstance(asked, Mapping):
            found[column] = asked
            continue
        [(form, values)] = asked.items() if len(asked) == 1 else [("", None)]
        if form not in FORMS or not isinstance(values, list) or (form == "is" and not values):
            raise DomainError(
                f"the condition on {column!r} must be a value, a list of values, or "
                "{'range': [low, high]}."
            )
        found[column] = FORMS[form](values)
    return found
