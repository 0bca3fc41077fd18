"""Rules: what is publicly known about how the columns of a table depend on each other.

A rule says nothing about any record of the data: it is declared, like a range or a category. The
functions here make rules; `Domain(..., structure=[...])` checks and compiles them.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar

import numpy as np

from ...exceptions import DomainError
from ..values import plain_category, plain_text, some

# Text as a query, or (column, what is asked) pairs: see `_frozen`.
Condition = str | tuple[tuple[str, tuple[Any, ...]], ...]


@dataclass(frozen=True, repr=False)
class Rule:
    """One rule of a structure; made by functions such as `derived` and `at_most`."""

    kind: ClassVar[str]

    def to_data(self) -> dict[str, Any]:
        """The rule as values that JSON can hold; `skdp.domain.structure_from_data` reads them."""
        raise NotImplementedError

    def _arguments(self) -> list[str]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(self._arguments())})"


@dataclass(frozen=True, repr=False)
class Derived(Rule):
    """``column`` is a function of another column: see `derived`."""

    kind: ClassVar[str] = "derived"
    column: str
    from_: str
    map: tuple[tuple[Any, Any], ...]

    def to_data(self) -> dict[str, Any]:  # noqa: D102
        pairs = [[list(k) if isinstance(k, tuple) else k, v] for k, v in self.map]
        plain = all(isinstance(key, str) for key, _ in pairs)
        data = {"rule": self.kind, "column": self.column, "from": self.from_}
        return {**data, "map": dict(pairs) if plain else pairs}

    def _arguments(self) -> list[str]:
        shown = ", ".join(f"{key!r}: {value!r}" for key, value in self.map[:4])
        more = f", ... ({len(self.map) - 4} more)" if len(self.map) > 4 else ""
        return [repr(self.column), f"from_={self.from_!r}", f"map={{{shown}{more}}}"]


@dataclass(frozen=True, repr=False)
class AtMost(Rule):
    """``column`` is at most ``bound``: see `at_most`."""

    kind: ClassVar[str] = "at_most"
    column: str
    bound: str

    def to_data(self) -> dict[str, Any]:  # noqa: D102
        return {"rule": self.kind, "column": self.column, "bound": self.bound}

    def _arguments(self) -> list[str]:
        return [repr(self.column), repr(self.bound)]


@dataclass(frozen=True, repr=False)
class Forbid(Rule):
    """No record satisfies a condition: see `forbid`."""

    kind: ClassVar[str] = "forbid"
    condition: Condition

    def to_data(self) -> dict[str, Any]:  # noqa: D102
        return {"rule": self.kind, "condition": _condition_to_data(self.condition)}

    def _arguments(self) -> list[str]:
        return [repr(query_of(self.condition))]


def derived(column: str, from_: str, map: Mapping[Any, Any]) -> Rule:
    """Declare that a column is a function of another, such as the grade of a sub-grade.

    The column is not measured: its share of the budget goes to the others. Synthetic rows get its
    value from the other column, and queries on it are rewritten. So are hierarchies declared, such
    as the state of each city.

    Parameters
    ----------
    column : str
        A `Categorical`, or a `Numeric` with one code for each integer.
    from_ : str
        The column that decides, measured or derived itself.
    map : mapping
        Value of ``column`` for each value of ``from_``. For a `Categorical` every category has an
        entry. For a `Numeric` a key is a pair ``(low, high)``, which stands for low <= x < high
        (None is an open end, and the declared upper end belongs to the last interval), or a single
        number; intervals must begin and end at edges of bins. If ``from_`` is nullable, the key
        None says what a missing value gives; without it, ``column`` is missing too.

    Raises
    ------
    DomainError
        If names or map have the wrong type; what depends on the domain is checked by `Domain`.

    Examples
    --------
    >>> from skdp import Categorical, Domain
    >>> Domain(
    ...     {"sub_grade": Categorical(["A1", "A2", "B1"]), "grade": Categorical(["A", "B"])},
    ...     structure=[derived("grade", "sub_grade", {"A1": "A", "A2": "A", "B1": "B"})],
    ... ).names
    ('sub_grade',)
    """
    column, from_ = _name(column, "column"), _name(from_, "from_")
    if not isinstance(map, Mapping) or not map:
        raise DomainError(
            f"derived({column!r}) needs a map, a dict from values of {from_!r} to values of "
            f"{column!r}, got {map!r}."
        )
    pairs = tuple((_map_key(column, key), _value(value, "value")) for key, value in map.items())
    if column == from_:
        raise DomainError(f"Column {column!r} cannot be derived from itself.")
    return Derived(column, from_, pairs)


def at_most(column: str, bound: str) -> Rule:
    """Declare that one column never exceeds another, such as a balance and its limit.

    Parameters
    ----------
    column, bound : str
        Columns on the same number line: two `Numeric`, two dates of one unit, or categories that
        are numbers. A row in which one of them is missing satisfies the rule. Rules chain: with
        ``at_most("a", "b")`` and ``at_most("b", "c")``, a is at most c, also where b is missing.

    Examples
    --------
    >>> at_most("balance", "amount")
    at_most('balance', 'amount')
    """
    if not isinstance(bound, str):
        raise DomainError(
            f"at_most({column!r}, {bound!r}) needs the name of another column as its bound. A "
            "fixed bound is declared as the range of the column: Numeric(lower, upper)."
        )
    column, bound = _name(column, "column"), _name(bound, "bound")
    if column == bound:
        raise DomainError(f"at_most({column!r}, {bound!r}) compares a column with itself.")
    return AtMost(column, bound)


def forbid(condition: Any) -> Rule:
    """Declare that no record satisfies a condition.

    Parameters
    ----------
    condition : str or dict
        A query on one or more columns, as for `skdp.release.parse`. On a `Numeric` its ends
        must be edges of bins, so that whole cells are forbidden. ``None`` is a missing value.

    Examples
    --------
    >>> forbid("age < 15 and married == 'yes'")
    forbid("age < 15 and married == 'yes'")

    A column that has values only where a condition holds:

    >>> forbid("type != 'joint' and joint_income != None")
    forbid("type != 'joint' and joint_income != None")
    """
    return Forbid(_frozen(condition))


def _name(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise DomainError(
            f"{what} must be the name of a column, got {value!r} of type {type(value).__name__}."
        )
    return plain_text(value, "Column name")


def _value(value: Any, what: str) -> Any:
    return None if value is None else plain_category(value, what)


def _map_key(column: str, key: Any) -> Any:
    if not isinstance(key, tuple):
        return _plain(key)
    if len(key) != 2 or any(isinstance(end, bool) for end in key):
        raise DomainError(
            f"An interval in the map of {column!r} must be a pair (low, high) of numbers or dates, "
            f"got {key!r}."
        )
    return tuple(_plain(end) for end in key)


def _frozen(condition: Any) -> Condition:
    """A condition that cannot be changed: what is asked is "range", "in" or "is", and values."""
    if isinstance(condition, str):
        if not condition.strip():
            raise DomainError("A condition is empty. Write it as a query, such as 'age < 15'.")
        return plain_text(condition, "Condition")
    if not isinstance(condition, Mapping) or not condition:
        raise DomainError(
            "A condition must be a query as text, such as \"age < 15 and married == 'yes'\", or a "
            f"dict, got {condition!r}."
        )
    return tuple((_name(column, "column"), _asked(value)) for column, value in condition.items())


def _asked(value: Any) -> tuple[Any, ...]:
    if isinstance(value, tuple):
        return ("range", *(_plain(end) for end in value))
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | range):
        return ("in", *(_plain(each) for each in value))
    if isinstance(value, AbstractSet):
        return ("in", *sorted((_plain(each) for each in value), key=repr))
    return ("is", _plain(value))


def _plain(value: Any) -> Any:
    """A value of a condition as JSON can hold it; dates become ISO text."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return _value(value, "Value of a condition")


# What is asked, as the value of a dict in a query.
FORMS: dict[str, Any] = {"range": tuple, "in": list, "is": lambda values: values[0]}


def query_of(condition: Condition) -> Any:
    """The condition as a query: text or dict."""
    if isinstance(condition, str):
        return condition
    return {column: FORMS[asked[0]](asked[1:]) for column, asked in condition}


def _condition_to_data(condition: Condition) -> Any:
    if isinstance(condition, str):
        return condition
    return {column: {asked[0]: list(asked[1:])} for column, asked in condition}


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
    if not isinstance(item, Mapping) or item.get("rule") not in _MAKERS:
        got = item.get("rule") if isinstance(item, Mapping) else item
        raise DomainError(
            f"Entry {number} of the structure is no rule: {got!r}. A rule has the key 'rule' with "
            f"one of {', '.join(sorted(_MAKERS))}."
        )
    make = _MAKERS[item["rule"]]
    # A parameter that would be a word of Python has an underscore behind it.
    parameters = {key.rstrip("_"): each for key, each in signature(make).parameters.items()}
    missing = [
        key for key, each in parameters.items() if key not in item and each.default is each.empty
    ]
    extra = set(item) - {"rule", *parameters}
    if missing or extra:
        raise DomainError(
            f"Entry {number} of the structure, {item['rule']!r}, "
            + (f"lacks {some(sorted(missing))}" if missing else "")
            + (" and " if missing and extra else "")
            + (f"has the unknown keys {some(sorted(map(str, extra)))}" if extra else "")
            + "."
        )
    try:
        given = [_READ.get(key, _as_it_is)(item[key]) for key in parameters if key in item]
        return make(*given)
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


def _as_it_is(value: Any) -> Any:
    return value


# How values of some keys are read, and what makes each kind of rule of the values of its keys.
_READ = {"map": _map_from_data, "condition": _condition_from_data}
_MAKERS: dict[str, Any] = {make.__name__: make for make in (derived, at_most, forbid)}
