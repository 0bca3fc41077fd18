"""Constraints: what is publicly known about how the columns of a table depend on each other.

A rule says nothing about any record: it is declared, like a range or a category, and never read
from data. `Domain(..., structure=[...])` checks rules and compiles them into columns that follow
from others, which are never measured, and into cells that no record can be in, whose counts are
exactly 0. Answers are about the records that satisfy the rules; the others are skipped, and
counted with noise among the skipped ones.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import math
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from .._validation import BoolArray, CodeArray, FloatArray, IntArray
from ..exceptions import DomainError
from .attributes import Categorical, Identifier
from .bins import Points
from .numeric import Numeric
from .query import Schema, attribute_of, parts_of
from .regions import Region, code_of, region_of_range, region_of_values
from .values import plain_category, plain_text, some

# Cells of one table: 16 MB of booleans.
MAX_CELLS = 2**24
# Steps of the search for one row that all rules allow.
_MAX_STEPS = 100_000
# A share of a bin that rounding may leave: a bin is not divided there.
_ROUNDING = 1e-9
# How often numbers are drawn again that exceed their bounds.
_REDRAWS = 100


class Rule:
    """One rule of a structure; made by `derived`, `at_most` and `forbid`."""

    kind: ClassVar[str]

    def to_data(self) -> dict[str, Any]:
        """The rule as values that JSON can hold; `skdp.domain.structure_from_data` reads them."""
        return {"rule": self.kind, **vars(self)}

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(map(repr, vars(self).values()))})"


@dataclass(frozen=True, repr=False)
class Derived(Rule):
    """``column`` is a function of another column: see `derived`."""

    kind: ClassVar[str] = "derived"
    column: str
    from_: str
    map: tuple[tuple[Any, Any], ...]

    def to_data(self) -> dict[str, Any]:  # noqa: D102
        plain = all(isinstance(key, str) for key, _ in self.map)
        data = {"rule": self.kind, "column": self.column, "from": self.from_}
        return {**data, "map": dict(self.map) if plain else [list(pair) for pair in self.map]}

    def __repr__(self) -> str:
        return f"derived({self.column!r}, {self.from_!r}, {reprlib.repr(dict(self.map))})"


@dataclass(frozen=True, repr=False)
class AtMost(Rule):
    """``column`` is at most ``bound``: see `at_most`."""

    kind: ClassVar[str] = "at_most"
    column: str
    bound: str


@dataclass(frozen=True, repr=False)
class Forbid(Rule):
    """No record satisfies a condition: see `forbid`."""

    kind: ClassVar[str] = "forbid"
    condition: str


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
        number; bins are divided where intervals begin and end. If ``from_`` is nullable, the key
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
    column, from_ = _name(column), _name(from_)
    if not isinstance(map, Mapping) or not map or column == from_:
        raise DomainError(
            f"derived({column!r}) needs the name of another column, and a map, a dict from its "
            f"values to values of {column!r}, got {from_!r} and {map!r}."
        )
    if any(isinstance(key, tuple) and len(key) != 2 for key in map):
        raise DomainError(f"An interval in the map of {column!r} must be a pair (low, high).")
    return Derived(column, from_, tuple((_plain(key), _plain(map[key])) for key in map))


def at_most(column: str, bound: str) -> Rule:
    """Declare that one column never exceeds another, such as a balance and its limit.

    Parameters
    ----------
    column, bound : str
        Measured columns on the same number line: two `Numeric`, or two dates of one unit. A row in
        which one of them is missing satisfies the rule. Rules chain: with
        ``at_most("a", "b")`` and ``at_most("b", "c")``, a is at most c, also where b is missing.

    Examples
    --------
    >>> at_most("balance", "amount")
    at_most('balance', 'amount')
    """
    if not isinstance(bound, str) or column == bound:
        raise DomainError(
            f"at_most({column!r}, {bound!r}) needs the name of another column as its bound. A "
            "fixed bound is declared as the range of the column: Numeric(lower, upper)."
        )
    return AtMost(_name(column), _name(bound))


def forbid(condition: str) -> Rule:
    """Declare that no record satisfies a condition.

    Parameters
    ----------
    condition : str
        A query on one or more columns. ``None`` is a missing value. A bin that it cuts is divided
        there, so that records which satisfy it have cells of their own: their count is 0, and
        they are never drawn. A single real number is no part of a bin: ``"pay > 100"`` forbids
        100 too. Declare ``decimals`` to keep it.

    Examples
    --------
    >>> forbid("age < 15 and married == 'yes'")
    forbid("age < 15 and married == 'yes'")

    A column that has values only where a condition holds:

    >>> forbid("type != 'joint' and joint_income != None")
    forbid("type != 'joint' and joint_income != None")
    """
    if not isinstance(condition, str) or not condition.strip():
        raise DomainError(
            "A condition must be a query as text, such as \"age < 15 and married == 'yes'\", got "
            f"{condition!r}."
        )
    return Forbid(plain_text(condition, "Condition"))


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise DomainError(f"A rule needs the name of a column, got {value!r}.")
    return plain_text(value, "Column name")


def _plain(value: Any) -> Any:
    """A value or an interval as JSON can hold it; dates become ISO text."""
    if isinstance(value, tuple):
        return tuple(_plain(end) for end in value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return None if value is None else plain_category(value, "Value of a rule")


_MAKERS: dict[str, Any] = {make.__name__: make for make in (at_most, derived, forbid)}


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
    rules = []
    for number, item in enumerate(data, start=1):
        try:
            given = dict(item)
            make = _MAKERS[given.pop("rule")]
            if isinstance(given.get("map"), list):
                pairs = [(tuple(k) if isinstance(k, list) else k, v) for k, v in given["map"]]
                given["map"] = dict(pairs)
                if len(given["map"]) < len(pairs):
                    raise DomainError("a map has the same value twice.")
            rules.append(make(**{"from_" if key == "from" else key: given[key] for key in given}))
        except (KeyError, TypeError, ValueError) as error:
            raise DomainError(
                f"Entry {number} of the structure is no rule: {item!r:.200}. A rule has the key "
                f"'rule' with one of {', '.join(_MAKERS)}, and what this takes. {error}"
            ) from None
    return rules


# --- cells that no record can be in


class Zeros(NamedTuple):
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

    def broken_by(self, rows: CodeArray | IntArray) -> BoolArray:
        """Rows of codes of all attributes in such a cell; not those with a negative code in it."""
        columns = [rows[:, axis] for axis in self.axes]
        unknown = np.logical_or.reduce([column < 0 for column in columns])
        broken: BoolArray = ~self.allowed[tuple(columns)] & ~unknown
        return broken


def breaks(rows: CodeArray | IntArray, zeros: Iterable[Zeros]) -> BoolArray:
    """Rows of codes of all attributes in such a cell of any of some."""
    none = np.zeros(len(rows), dtype=bool)
    return np.logical_or.reduce([none, *(each.broken_by(rows) for each in zeros)])


Tables = Mapping[tuple[int, ...], BoolArray]


def outer(vectors: Iterable[np.ndarray]) -> Any:
    """Products of one element of each vector, one axis for each."""
    return functools.reduce(np.multiply.outer, vectors)


def narrowed(tables: Tables) -> dict[tuple[int, ...], BoolArray] | None:
    """The same without what tables exclude of an axis, with one for each axis; None if no row fits.

    Each table is looked at by itself, until nothing changes.
    """
    found: dict[tuple[int, ...], BoolArray] = {
        (axis,): np.ones(size, dtype=bool)
        for axes, allowed in tables.items()
        for axis, size in zip(axes, allowed.shape, strict=True)
    }
    found |= tables
    before: list[int] = []
    while (sizes := [int(allowed.sum()) for allowed in found.values()]) != before:
        if 0 in sizes:
            return None
        before = sizes
        for axes, allowed in found.items():
            found[axes] = allowed & outer(found[axis,] for axis in axes)
            for place, axis in enumerate(axes):
                others = tuple(k for k in range(len(axes)) if k != place)
                found[axis,] = found[axis,] & found[axes].any(axis=others)
    return found


def allowed_row(tables: Tables) -> dict[int, int] | None:
    """Codes of one row that all tables allow, for the axes in them; None if none was found.

    Depth first: a code that is taken narrows the others. Everything here is public.
    """
    stack: list[Tables] = [{}]
    for _ in range(_MAX_STEPS):
        if not stack:
            return None
        found = narrowed({**tables, **stack.pop()})
        if found is None:
            continue
        single = {axes: codes for axes, codes in found.items() if len(axes) == 1}
        axes = min((axes for axes, codes in single.items() if codes.sum() > 1), default=None)
        if axes is None:
            return {axis: int(codes.argmax()) for (axis,), codes in single.items()}
        first = np.arange(len(single[axes])) == single[axes].argmax()
        stack += [single | {axes: taken} for taken in (single[axes] & ~first, first)]
    return None


def merged(found: Iterable[tuple[tuple[int, ...], BoolArray]]) -> dict[tuple[int, ...], BoolArray]:
    """One table for each set of axes, which allows what all its tables allow."""
    tables: dict[tuple[int, ...], BoolArray] = {}
    for axes, allowed in found:
        tables[axes] = tables[axes] & allowed if axes in tables else allowed
    return tables


def joined(tables: Tables, axes: tuple[int, ...]) -> BoolArray:
    """What tables allow together that have some of these axes."""
    found = np.array(True)
    for own, allowed in tables.items():
        sizes = dict(zip(own, allowed.shape, strict=True))
        found = found & allowed.reshape([sizes.get(axis, 1) for axis in axes])
    return found


# --- rules compiled for a domain


# Codes of rows by measured column.
Codes = Mapping[str, IntArray]


class Structure(tuple[Rule, ...], Schema):
    """Compiled rules of a domain, as ``domain.structure``; it is falsy if there are none.

    Bins are divided where rules cut them, so that a rule allows or forbids all that a code holds.

    Attributes
    ----------
    derived : dict of str to Rule
        The rule of each column that is not measured because it follows from another: rules made by
        `derived`, each after that of the column that it follows from.
    zeros : tuple of Zeros
        Cells that no record can be in: one entry for each set of attributes that rules connect,
        single attributes first. A row breaks a rule exactly if it is in a forbidden cell of one.
    """

    def __new__(cls, rules: Iterable[Rule], declared: Mapping[str, Any]) -> Structure:
        """Rules, each once."""
        return super().__new__(cls, dict.fromkeys(rules))

    def __init__(self, rules: Iterable[Rule], declared: Mapping[str, Any]) -> None:
        self._declared = _divided(self, declared) if self else declared
        self.derived = {each.column: each for each in self if isinstance(each, Derived)}
        self.measured = tuple(
            name
            for name, each in declared.items()
            if name not in self.derived and not isinstance(each, Identifier)
        )
        self.bounds: dict[str, tuple[str, ...]] = {}
        self.zeros: tuple[Zeros, ...] = ()
        self._axes = {name: axis for axis, name in enumerate(self.measured)}
        self._codes: dict[str, tuple[str, IntArray]] = {}
        if self:
            self._compile()

    @staticmethod
    def read(rules: Any) -> list[Rule]:
        """Rules that were given as ``structure=``; errors for anything else."""
        found = list(rules) if isinstance(rules, Iterable) else [rules]
        if isinstance(rules, Rule) or not all(isinstance(rule, Rule) for rule in found):
            raise DomainError(
                "structure must be a list of rules such as [at_most('balance', 'amount')], got "
                f"{rules!r}. Rules in the form of JSON are read by `structure_from_data`."
            )
        return found

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules as a plain tuple."""
        return tuple(self)

    def to_data(self) -> list[dict[str, Any]]:
        """The rules as values that JSON can hold."""
        return [rule.to_data() for rule in self]

    def base_of(self, column: str) -> str:
        """The measured column that decides a column; a measured column decides itself."""
        return self._codes[column][0] if column in self._codes else column

    def codes_of(self, column: str) -> IntArray:
        """Code of a derived column for each code of its base; KeyError if it is measured."""
        return self._codes[column][1]

    def lifted(self, column: str, values: np.ndarray) -> np.ndarray:
        """Values for the codes of a column as values for the codes of its base."""
        return values[self.codes_of(column)] if column in self._codes else values

    def weights_of_regions(self, regions: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Weights of regions by measured column; those on one base multiply."""
        found: dict[str, np.ndarray] = {}
        for column, region in regions.items():
            base, own = self.base_of(column), self.lifted(column, region.weights)
            found[base] = found[base] * own if base in found else own
        return found

    def columns_of(self, rule: Rule) -> tuple[str, ...]:
        """Columns that a rule names."""
        parts = _parts(rule, self)
        return tuple(dict.fromkeys(chain(*parts) if parts else [*vars(rule).values()][:2]))

    def kept_by(self, columns: Iterable[str]) -> tuple[Rule, ...]:
        """Rules all of whose columns are among these."""
        chosen = set(columns)
        return tuple(rule for rule in self if chosen.issuperset(self.columns_of(rule)))

    @property
    def compared(self) -> tuple[str, ...]:
        """Columns that rules of `at_most` compare."""
        return tuple(dict.fromkeys([*self.bounds, *chain(*self.bounds.values())]))

    def breaks(self, codes: ArrayLike) -> BoolArray:
        """Whether each row is in a cell that is declared empty; not where a code is negative."""
        return breaks(np.asarray(codes), self.zeros)

    def broken_by_rule(self, codes: ArrayLike) -> list[tuple[Rule, BoolArray]]:
        """Which rows break each rule that forbids cells: for reports to the data owner."""
        return [
            (rule, Structure([*self.derived.values(), rule], self._declared).breaks(codes))
            for rule in self
            if not isinstance(rule, Derived)
        ]

    def lawful_codes(self, wanted: CodeArray) -> CodeArray:
        """Rows that break no rule and have as many of the wanted codes as they easily can.

        They have no distribution in particular: they are examples of rows, such as those on which
        a model is tried before anything is charged.
        """
        rows, first = np.array(wanted), allowed_row(dict(self.zeros)) or {}
        # One column after the other keeps the wanted code where that breaks no rule.
        rows[:, [*first]] = [*first.values()]
        for axis in [*first, *first]:
            own = rows[:, axis].copy()
            rows[:, axis] = wanted[:, axis]
            rows[:, axis] = np.where(self.breaks(rows), own, rows[:, axis])
        return rows

    def _compile(self) -> None:
        self._derive()
        self.bounds = _closure(self)
        self._check_chains()
        tables = narrowed(self._tables())
        if tables is None or allowed_row(tables) is None:
            guilty = [rule for rule in self if not isinstance(rule, Derived)]
            raise DomainError(
                "These rules contradict each other, no row was found that satisfies them all: "
                f"{some(guilty)}. Change or leave out one of them."
            )
        for axes, allowed in sorted(tables.items(), key=lambda each: (len(each[0]), each[0])):
            # Tables of several axes that say more than those of single ones.
            inside = outer(tables[axis,] for axis in axes) if len(axes) > 1 else True
            if (inside & ~allowed).any():
                self.zeros += (Zeros(axes, allowed),)

    # --- columns that follow from others

    def _derive(self) -> None:
        for rule in self:
            if isinstance(rule, Derived) and self.derived[rule.column] != rule:
                raise DomainError(
                    f"Column {rule.column!r} follows from two rules, {rule!r} and "
                    f"{self.derived[rule.column]!r}. Leave out one of them."
                )
        order = _in_order({column: [rule.from_] for column, rule in self.derived.items()})
        self.derived = {name: self.derived[name] for name in order if name in self.derived}
        for column, rule in self.derived.items():
            with _about(rule):
                codes = self.lifted(rule.from_, self._map(rule))
            self._codes[column] = self.base_of(rule.from_), codes

    def _map(self, rule: Derived) -> IntArray:
        """Code of the derived column for each code of the column that it follows from."""
        base, target = attribute_of(rule.from_, self), attribute_of(rule.column, self)
        codes = np.full(base.size, -1, dtype=np.int64)
        of = {
            value: _codes_for(rule.column, target, value)
            for value in dict.fromkeys(value for _, value in rule.map)
        }
        # A value with an entry of its own is in no interval.
        for key, value in sorted(rule.map, key=lambda pair: not isinstance(pair[0], tuple)):
            own = _codes_for(rule.from_, base, key)
            if isinstance(key, tuple) and (codes[own] >= 0).any():
                raise ValueError(f"the interval {key!r} overlaps another one.")
            if len(of[value]) != 1:
                raise ValueError(f"{value!r} is not one value of {rule.column!r}.")
            codes[own] = of[value]
        if base.nullable and target.nullable and codes[-1] < 0:
            codes[-1] = target.size - 1
        if (codes < 0).any():
            gaps = [base.labels()[code] for code in np.flatnonzero(codes < 0)[:8].tolist()]
            raise ValueError(
                f"gaps: the map has no entry for {', '.join(gaps)} of {rule.from_!r}. Add entries "
                "for all values (None is a missing one)."
            )
        return codes

    # --- what rules allow of the codes

    def _tables(self) -> Tables:
        """Allowed codes by each set of attributes that the rules connect."""
        found = []
        for rule in self:
            parts = [self.weights_of_regions(part) for part in _parts(rule, self)]
            parts = [part for part in parts if all(each.any() for each in part.values())]
            if isinstance(rule, Forbid) and not (parts and all(parts)):
                raise DomainError(
                    f"{rule!r}: the condition covers no cell of the domain, or all of them. Check "
                    "its values against the declared ranges, or leave the rule out."
                )
            for part in parts:
                # A code is covered in full or not at all, but for rounding.
                covered = {name: weights > 0.5 for name, weights in part.items()}
                found.append(self._without(covered, np.logical_and))
        for column, above in self.bounds.items():
            low, _ = self._span(column)
            for bound in above:
                _, high = self._span(bound)
                # A missing value compares as nan, and satisfies every rule.
                found.append(self._without({column: low, bound: high}, np.greater))
        return merged(found)

    def _without(
        self, of: Mapping[str, np.ndarray], relation: np.ufunc
    ) -> tuple[tuple[int, ...], BoolArray]:
        """A table of what is left of the codes of some columns without those in a relation."""
        axes = [self._axes[name] for name in of]
        self._check_size(dict(zip(axes, map(len, of.values()), strict=True)))
        table = functools.reduce(relation.outer, of.values())
        return tuple(sorted(axes)), ~table.transpose(np.argsort(axes))

    def _span(self, column: str) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest number of each code of a column; nan for the missing cell."""
        attribute = self._declared[column]
        return attribute.span(np.arange(attribute.size))

    def _check_size(self, sizes: Mapping[int, int]) -> None:
        """Refuse tables that are too large."""
        if math.prod(sizes.values()) > MAX_CELLS:
            names = [self.measured[axis] for axis in sizes]
            widest = max(sizes, key=sizes.__getitem__)
            raise DomainError(
                f"Rules connect {some(names)}, which have {math.prod(sizes.values()):,} cells "
                f"together, more than {MAX_CELLS:,}. Declare fewer bins or categories; "
                f"{self.measured[widest]!r} has {sizes[widest]:,}."
            )

    def _check_chains(self) -> None:
        """Refuse comparisons of values without a common order, and chains between two grids.

        Between 5.6 and 5.9 there is a number, but no integer: a column that has others below it and
        above it must have their grid of values.
        """
        for column, above in self.bounds.items():
            below = [other for other, others in self.bounds.items() if column in others]
            names = (*below, column, *above)
            with _about(AtMost(column, above[0])):
                lines = {_line(attribute_of(name, self)) for name in names}
                alike = len(lines if below else {line for line, _ in lines}) == 1
                if not alike or not self._axes.keys() >= {*names}:
                    raise ValueError(
                        f"the columns {some(names)} must be measured, on one number line (numbers, "
                        "or dates of one unit), and if one of them stands between others, on one "
                        "grid (integers, equal decimals, or all numbers). Declare them in the same "
                        "way; use forbid() for combinations of categories."
                    )

    # --- rows for codes: numbers are drawn within the cells so that rules hold for them too

    def draw(
        self,
        codes: Codes,
        rng: np.random.Generator,
        bounds: Mapping[str, tuple[Any, Any]],
    ) -> dict[str, pd.Series]:
        """All columns of rows with these codes, in declared order.

        Parameters
        ----------
        codes : mapping of str to ndarray of int
            Of the measured columns. They do not break the structure.
        rng : numpy.random.Generator
        bounds : mapping of str to (lower, upper)
            Closed ranges on the number line, for all rows or for each; rules come first.
        """
        n_rows = len(codes[self.measured[0]])
        limits = {k: [np.broadcast_to(end, n_rows) for end in ends] for k, ends in bounds.items()}
        pairs = [(column, bound) for column, above in self.bounds.items() for bound in above]
        # Larger columns come first: a bound has fewer columns above it than what it bounds.
        order = sorted(self.measured, key=lambda name: len(self.bounds.get(name, ())))
        numeric = {k: self.find(k) for k in order if isinstance(self.find(k), Numeric)}
        numbers = {name: np.empty(n_rows) for name in numeric}
        rows = np.arange(n_rows)
        for attempt in range(_REDRAWS + 1):
            own: dict[str, FloatArray] = {}
            for name, attribute in numeric.items():
                ends = [end[rows] for end in limits.get(name, ())]
                if attempt == _REDRAWS and name in self.compared:
                    ends = self._room(name, codes, rows, own)
                own[name] = attribute.draw(codes[name][rows], rng, *ends)
                numbers[name][rows] = own[name]
            broken = [own[column] > own[bound] for column, bound in pairs]
            rows = rows[np.logical_or.reduce([np.zeros(len(rows), dtype=bool), *broken])]
            if not len(rows):
                break
        drawn: dict[str, pd.Series] = {}
        for name, attribute in self._declared.items():
            if isinstance(attribute, Identifier):
                drawn[name] = attribute.fresh(n_rows)
            elif name in numbers:
                drawn[name] = attribute._finish(numbers[name])
            else:
                # Each code stands for one value: nothing is drawn.
                own_codes = self.lifted(name, np.arange(attribute.size))
                drawn[name] = attribute.decode(own_codes[codes[self.base_of(name)]], rng)
        return drawn

    def _room(
        self, name: str, codes: Codes, rows: IntArray, drawn: Mapping[str, FloatArray]
    ) -> list[FloatArray]:
        """Bounds of a column that leave a number for all others.

        It lies below the numbers drawn for its bounds, and not below the least number of any column
        that it bounds. There is such a number, because chains are compared as a whole.
        """
        low, high = np.full((2, len(rows)), np.nan)
        for below in (column for column, above in self.bounds.items() if name in above):
            low = np.fmax(low, self._span(below)[0][codes[below][rows]])
        for bound in self.bounds.get(name, ()):
            high = np.fmin(high, drawn[bound])
        return [low, high]


@contextlib.contextmanager
def _about(rule: Rule) -> Iterator[None]:
    """Errors about a rule say which."""
    try:
        yield
    except ValueError as error:
        raise DomainError(f"{rule!r}: {error}") from None


def _in_order(graph: Mapping[str, Sequence[str]]) -> list[str]:
    """Columns after those that they depend on."""
    try:
        return [*TopologicalSorter(graph).static_order()]
    except CycleError as error:
        circle = " and ".join(map(repr, error.args[1][1:]))
        raise DomainError(
            f"The rules of {circle} form a circle: each depends on another one. One of them must "
            "be measured by itself; columns that are always equal are declared as derived."
        ) from None


def _closure(rules: Iterable[Rule]) -> dict[str, tuple[str, ...]]:
    """Bounds of each column, chains included."""
    direct: dict[str, list[str]] = {}
    for rule in rules:
        if isinstance(rule, AtMost):
            direct.setdefault(rule.column, []).append(rule.bound)
    above: dict[str, tuple[str, ...]] = {}
    for column in _in_order(direct):
        bounds = direct.get(column, [])
        above[column] = tuple(dict.fromkeys([*bounds, *chain(*(above[each] for each in bounds))]))
    return {column: above[column] for column in direct}


def _parts(rule: Rule, schema: Schema) -> list[Any]:
    """The conjunctions of a condition."""
    with _about(rule):
        return parts_of(rule.condition, schema) if isinstance(rule, Forbid) else []


def _region_of(column: str, attribute: Any, key: Any) -> Region:
    """What a key of a map stands for: a value, or the values of an interval."""
    if not isinstance(key, tuple):
        return region_of_values(column, attribute, [key])
    low, high = key
    last = high is None or attribute.number(high, column) == attribute.upper
    return region_of_range(column, attribute, low, high, "" if last else ">")


def _codes_for(column: str, attribute: Any, key: Any) -> IntArray:
    """Codes that stand for a key of a map, and for nothing else."""
    if isinstance(attribute, Categorical) and key is not None:
        return np.array([code_of(column, attribute, key)])
    codes = np.flatnonzero(_region_of(column, attribute, key).weights > 1 - _ROUNDING)
    if not len(codes):
        raise ValueError(
            f"{key!r} is nothing that {column!r} has a code for: leave the entry out, or mend it."
        )
    return codes


def _divided(rules: Iterable[Rule], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Columns with more edges of bins: where rules cut them.

    Compared columns are cut at their special values too, where numbers of their bins have a gap.
    """
    cuts: dict[str, list[Any]] = {name: [] for name in declared}
    schema = Structure((), declared)
    for rule in rules:
        regions = [region for part in _parts(rule, schema) for region in part.values()]
        with _about(rule):
            if isinstance(rule, Derived):
                base = attribute_of(rule.from_, schema)
                keys = rule.map if isinstance(base, Numeric) else ()
                regions = [_region_of(rule.from_, base, key) for key, _ in keys]
            for region in regions:
                if isinstance(region.attribute, Numeric):
                    cuts[region.column].append(region.edges)
            if isinstance(rule, AtMost):
                for name in (rule.column, rule.bound):
                    special = getattr(attribute_of(name, schema), "special", ())
                    # On a grid the next float is the next place; between real numbers it is none.
                    cuts[name] += [special, np.nextafter(special, np.inf)]
    return {
        name: _cut_at(each, np.concatenate(cuts[name])) if cuts[name] else each
        for name, each in declared.items()
    }


def _cut_at(attribute: Any, cuts: FloatArray) -> Any:
    """The attribute with bins that are divided at cuts."""
    if not isinstance(attribute, Numeric):
        return attribute
    if attribute._coarse is not None:
        return _cut_at(attribute._coarse, cuts).fine
    edges, held = attribute.edges, attribute.contents
    if isinstance(held, Points):
        places = held.grid.at_least(np.unique(cuts))
        inner = held.grid.value(places[(places > held.grid.first) & (places <= held.grid.last)])
        # The upper end may be a bin by itself.
        inner = np.minimum(inner, np.nextafter(edges[-1], -np.inf))
    else:
        inner = np.unique(cuts[(cuts > edges[0]) & (cuts < edges[-1])])
        # No bin that rounding leaves, such as that between < 5 and <= 5.
        place = held.positions(inner)
        inner = inner[(place % 1 > 0) & (np.diff(place, prepend=-1) > _ROUNDING)]
    divided = copy.copy(attribute)
    divided._recut(np.union1d(edges, inner).astype(edges.dtype))
    divided._join_empty(edges)
    return divided if divided.bins > attribute.bins else attribute


def _line(attribute: Any) -> tuple[Any, Any]:
    """What tells number lines apart, and grids of values on them."""
    if not isinstance(attribute, Numeric):
        return object(), None  # equal categories lie on none, either
    grid = attribute._grid
    special = [x for x in attribute.special if grid and grid.at_most(x) != grid.at_least(x)]
    line = getattr(attribute, "unit", None), getattr(attribute, "tz", None)
    return line, (grid and grid.denominator, *special)
