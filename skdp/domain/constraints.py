"""Rules between columns: what is publicly known about how columns depend on each other.

A rule says nothing about any record: it is declared, like a range or a category, and never read
from data. `Domain(..., structure=[...])` compiles rules into two things, and the rest of the
package knows these alone: columns that follow from others, which are never measured, and tables of
the combinations of codes that are allowed (`Zeros`). A record in a forbidden cell is skipped, and
counted with noise among the skipped ones; answers are about the others.
"""

from __future__ import annotations

import contextlib
import functools
import math
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from .._validation import BoolArray, CodeArray, IntArray, as_list, plain_category, plain_text, some
from ..exceptions import DomainError
from .attributes import Identifier, Numeric
from .query import Part, Region, Schema, attribute_of, parts_of, region_of_range, region_of_values

# Cells of one table: 16 MB of booleans.
MAX_CELLS = 2**24
# Partial rows that a search for a row tries: a bound that depends on no record.
MAX_STEPS = 1_000


# --- rules as they are declared


@dataclass(frozen=True, repr=False)
class Rule:
    """One rule of a structure; made by `derived`, `at_most` and `forbid`.

    Attributes
    ----------
    kind : str
        The function that makes it. The others are the arguments of that function.
    """

    kind: str
    column: str = ""
    from_: str = ""
    map: tuple[tuple[Any, Any], ...] = ()
    bound: str = ""
    condition: str = ""

    def to_data(self) -> dict[str, Any]:
        """The rule as values that JSON can hold; `Domain` reads them."""
        said = {name.strip("_"): value for name, value in vars(self).items() if value}
        return {"rule": said.pop("kind"), **said}

    def __repr__(self) -> str:
        kind, *said = (value for value in vars(self).values() if value)
        texts = [reprlib.repr(dict(each)) if each is self.map else repr(each) for each in said]
        return f"{kind}({', '.join(texts)})"


def derived(column: str, from_: str, map: Mapping[Any, Any] | Iterable[Any]) -> Rule:
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
    map : mapping, or list of pairs
        Value of ``column`` for each value of ``from_``. For a `Categorical` every category has an
        entry. For a `Numeric` a key is a pair ``(low, high)``, which stands for low <= x < high
        (None is an open end, and the declared upper end belongs to the last interval), or a single
        number; bins are divided where intervals begin and end. If ``from_`` is nullable, the key
        None says what a missing value gives; without it, ``column`` is missing too. Where entries
        overlap, the later one counts.

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
    try:
        pairs = map.items() if isinstance(map, Mapping) else map
        plain = tuple((_plain(key), _plain(value)) for key, value in pairs)
    except (TypeError, ValueError) as error:
        what = "a dict from values, or intervals (low, high), to values"
        raise DomainError(f"The map of {column!r} must be {what}, got {map!r}. {error}") from None
    return Rule("derived", _text(column), _text(from_), plain)


def at_most(column: str, bound: str) -> Rule:
    """Declare that one column never exceeds another, such as a balance and its limit.

    Parameters
    ----------
    column, bound : str
        Measured columns on the same number line: two `Numeric`, or two dates of one unit. A row in
        which one of them is missing satisfies the rule. Rules chain: with
        ``at_most("a", "b")`` and ``at_most("b", "c")``, a is at most c, also where b is missing.
        A fixed bound is declared as the range of the column.

    Examples
    --------
    >>> at_most("balance", "amount")
    at_most('balance', 'amount')
    """
    return Rule("at_most", _text(column), bound=_text(bound))


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
    return Rule("forbid", condition=_text(condition, 'a query such as "age < 15 and paid > 0"'))


def _text(value: Any, what: str = "the name of a column") -> str:
    """An argument of a rule that is text."""
    if not isinstance(value, str) or not value.strip():
        raise DomainError(f"A rule needs {what}, as text, got {value!r}.")
    return plain_text(value, "A rule")


def _plain(value: Any) -> Any:
    """A value or an interval as JSON can hold it; dates become ISO text."""
    if isinstance(value, tuple | list):
        low, high = value
        return _plain(low), _plain(high)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return None if value is None else plain_category(value, "Value of a rule")


def rules_of(given: Any) -> list[Rule]:
    """Rules from a list of them, or of what :meth:`Rule.to_data` gave, as in a JSON file.

    Raises
    ------
    DomainError
        If an entry is no rule; the message says which.

    Examples
    --------
    >>> rules_of([{"rule": "at_most", "column": "balance", "bound": "amount"}])
    [at_most('balance', 'amount')]
    """
    makers: dict[str, Any] = {make.__name__: make for make in (at_most, derived, forbid)}
    rules = []
    for item in as_list(given, "structure"):
        try:
            if not isinstance(item, Rule):
                said = {"from_" if key == "from" else key: value for key, value in item.items()}
                item = makers[said.pop("rule")](**said)
            rules.append(item)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            how = f"give one of {', '.join(makers)}, in JSON as 'rule' beside what it takes"
            raise DomainError(f"{item!r:.200} is no rule: {how}. {error}") from None
    return rules


# --- what rules allow of the codes


Axes = tuple[int, ...]
# Codes of some attributes.
Codes = Mapping[int, IntArray]


class Zeros(dict[Axes, BoolArray]):
    """Tables of the combinations of codes that rules allow, by positions of attributes, ascending.

    A row breaks a rule exactly if it is in a forbidden cell of a table.
    """

    # A code of each axis, which satisfy all tables together: found when these are declared.
    row: Mapping[int, int]

    @classmethod
    def of(cls, tables: Iterable[tuple[Axes, BoolArray]]) -> Zeros | None:
        """What tables say together; None if no row is found that satisfies them all.

        A code that has no partner in some table is forbidden by itself, and so are combinations of
        fewer codes.
        """
        given, whole = cls(), cls()
        for axes, allowed in tables:
            given[axes] = given.get(axes, np.True_) & allowed
        codes, row = given.narrowed({}), given._search({}, {}, iter(range(MAX_STEPS)))
        if codes is None or row is None:
            return None
        whole.row = row
        found: list[tuple[Axes, Any]] = [*given.items()]
        for axes, allowed in found:
            pairs = zip(axes, allowed.shape, strict=True)
            held = [np.isin(np.arange(size), codes[axis]) for axis, size in pairs]
            inside = functools.reduce(np.multiply.outer, held)
            whole |= {(k,): each for k, each in zip(axes, held, strict=True) if not each.all()}
            if len(axes) > 1 and (inside & ~allowed).any():
                whole[axes] = whole.get(axes, inside) & allowed
                # The list grows while it is read: what is left without one of the columns.
                for place in range(len(axes)):
                    fewer = (*axes[:place], *axes[place + 1 :])
                    found.append((fewer, (inside & allowed).any(axis=place)))
        return whole

    def breaks(self, rows: CodeArray | IntArray) -> BoolArray:
        """Rows of codes of all attributes that any table forbids; negative codes do not."""
        broken = np.zeros(len(rows), dtype=bool)
        for axes, allowed in self.items():
            columns = [rows[:, axis] for axis in axes]
            broken |= ~allowed[tuple(columns)] & (np.min(columns, axis=0) >= 0)
        return broken

    def narrowed(self, codes: Codes) -> dict[int, IntArray] | None:
        """Codes that have a partner in each table, of those given for some axes; None if none has.

        Each table is looked at by itself, until nothing changes.
        """
        left: dict[int, IntArray] = {}
        for axes, allowed in self.items():
            left |= zip(axes, map(np.arange, allowed.shape), strict=True)
        left |= codes
        before: list[int] = []
        while (sizes := [len(each) for each in left.values()]) != before:
            before = sizes
            for axes, allowed in self.items():
                inside = allowed[np.ix_(*(left[axis] for axis in axes))]
                for place, axis in enumerate(axes):
                    others = tuple({*range(len(axes))} - {place})
                    left[axis] = left[axis][inside.any(axis=others)]
        return left if all(before) else None

    def nearest(self, wanted: Mapping[int, int], codes: Codes) -> dict[int, int] | None:
        """One code for each axis that all tables allow, of those given; None if none is found.

        After `MAX_STEPS` it is the row that was found when the rules were declared, if it has codes
        that are given.
        """
        found = self._search(wanted, codes, iter(range(MAX_STEPS)))
        row = self.row.items() if found is None else ()
        fits = all(code in codes.get(axis, [code]) for axis, code in row)
        return dict(row) or found if fits else None

    def _search(
        self, wanted: Mapping[int, int], codes: Codes, steps: Iterator[int]
    ) -> dict[int, int] | None:
        """Depth first: a code that is taken, the nearest to the one wanted, narrows the others."""
        left = None if next(steps, None) is None else self.narrowed(codes)
        axis = next((axis for axis, own in (left or {}).items() if len(own) > 1), None)
        if left is None or axis is None:
            return None if left is None else {axis: int(own[0]) for axis, own in left.items()}
        near = sorted(left[axis].tolist(), key=lambda code: abs(code - wanted.get(axis, 0)))
        rows = (self._search(wanted, {**left, axis: np.array([code])}, steps) for code in near)
        return next((row for row in rows if row is not None), None)

    def mended(self, rows: CodeArray) -> CodeArray:
        """The rows, those that break a rule with some codes of others, which break none."""
        wrong = np.flatnonzero(self.breaks(rows))
        if not len(wrong):
            return rows
        donors = np.delete(rows, wrong, axis=0)
        if not len(donors):
            donors = rows[:1].copy()
            donors[:, [*self.row]] = [*self.row.values()]
        mended = donors[np.arange(len(wrong)) % len(donors)]
        # One column after the other gets back its own code where that breaks no rule.
        for axis in [*range(rows.shape[1])] * 2:
            lent = mended[:, axis].copy()
            mended[:, axis] = rows[wrong, axis]
            mended[:, axis] = np.where(self.breaks(mended), lent, mended[:, axis])
        whole = rows.copy(order="F")
        whole[wrong] = mended
        return whole


# --- rules compiled for a domain


class Structure(Schema):
    """Compiled rules of a domain, as ``domain.structure``.

    Bins are divided where rules cut them, so that a rule allows or forbids all that a code holds.

    Attributes
    ----------
    rules : tuple of Rule
        As they were declared, each once.
    derived : dict of str to Rule
        The rule of each column that is not measured because it follows from another: rules made by
        `derived`, each after that of the column that it follows from.
    pairs : list of (str, str)
        Columns and their bounds by rules of `at_most`, chains included.
    zeros : Zeros
        What rules allow of the codes of the measured columns.
    """

    def __init__(self, rules: Iterable[Rule], declared: Mapping[str, Any]) -> None:
        self.rules = tuple(dict.fromkeys(rules))
        self._declared = _divided(self.rules, declared) if self.rules else declared
        self.derived: dict[str, Rule] = {}
        for rule in self.rules:
            if rule.from_ and self.derived.setdefault(rule.column, rule) is not rule:
                what = f"Column {rule.column!r} follows from two rules"
                raise DomainError(f"{what}. Leave out {rule!r} or the other one.")
        own = {k: x for k, x in self._declared.items() if not isinstance(x, Identifier)}
        self.measured = tuple(name for name in own if name not in self.derived)
        self.numeric = {k: own[k] for k in self.measured if isinstance(own[k], Numeric)}
        self._codes: dict[str, tuple[str, IntArray]] = {}
        self._derive()
        self.pairs = _chained((each.column, each.bound) for each in self.rules if each.bound)
        zeros = Zeros.of(self._tables())
        if zeros is None:
            guilty = some([rule for rule in self.rules if not rule.from_])
            what = f"no row that satisfies all was found in {MAX_STEPS:,} steps: {guilty}"
            raise DomainError(f"These rules contradict each other, {what}.")
        self.zeros = zeros

    def kept_by(self, columns: Iterable[str]) -> tuple[Rule, ...]:
        """Rules all of whose columns are among these."""

        def named(rule: Rule) -> set[str]:
            return {rule.column, rule.from_, rule.bound, *chain(*_regions(rule, self))}

        return tuple(rule for rule in self.rules if named(rule) <= {"", *columns})

    # --- columns that follow from others

    def base_of(self, column: str) -> str:
        """The measured column that decides a column; a measured column decides itself."""
        return self._codes[column][0] if column in self._codes else column

    def lifted(self, column: str, values: np.ndarray) -> np.ndarray:
        """Values for the codes of a column as values for the codes of its base."""
        return values[self._codes[column][1]] if column in self._codes else values

    def weights_of_regions(self, regions: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Weights of regions by measured column; those on one base multiply."""
        found: dict[str, np.ndarray] = {}
        for column, region in regions.items():
            base, own = self.base_of(column), self.lifted(column, region.weights)
            found[base] = found[base] * own if base in found else own
        return found

    def _derive(self) -> None:
        """Find the code of each derived column for each code of the column that decides it."""
        # A column follows from fewer columns than those that follow from it.
        depth = [name for name, _ in _chained((k, each.from_) for k, each in self.derived.items())]
        self.derived = {name: self.derived[name] for name in sorted(self.derived, key=depth.count)}
        for column, rule in self.derived.items():
            with _about(rule):
                codes = self.lifted(rule.from_, self._map(rule))
            self._codes[column] = self.base_of(rule.from_), codes

    def _map(self, rule: Rule) -> IntArray:
        """Code of the derived column for each code of the column that it follows from."""
        base, target = attribute_of(rule.from_, self), attribute_of(rule.column, self)
        codes = np.full(base.size, -1, dtype=np.int64)
        for key, value in rule.map:
            own, meant = _codes(rule.from_, base, key), _codes(rule.column, target, value)
            if not len(own) or len(meant) != 1:
                what = f"no code of {rule.from_!r}, or {value!r} not one of {rule.column!r}"
                raise ValueError(f"{key!r} is {what}: leave the entry out, or mend it.")
            codes[own] = meant
        if base.nullable and target.nullable and codes[-1] < 0:
            codes[-1] = target.size - 1
        if (codes < 0).any():
            gaps = ", ".join(base.labels()[code] for code in np.flatnonzero(codes < 0)[:8])
            raise ValueError(f"the map has no entry for {gaps} of {rule.from_!r}; None is a gap.")
        return codes

    # --- tables of codes

    def _tables(self) -> Iterator[tuple[Axes, BoolArray]]:
        """What rules allow of the codes of the columns that they name."""
        for rule in [each for each in self.rules if each.condition]:
            parts = [self.weights_of_regions(part) for part in _regions(rule, self)]
            parts = [part for part in parts if all(each.any() for each in part.values())]
            if not (parts and all(parts)):
                raise DomainError(f"{rule!r} covers no cell of the domain, or all of them.")
            for part in parts:
                # A code is covered in full or not at all, but for rounding.
                covered = {name: weights > 0.5 for name, weights in part.items()}
                yield self._without(covered, np.logical_and)
        inner = {column for column, _ in self.pairs} & {bound for _, bound in self.pairs}
        for column, bound in self.pairs:
            with _about(at_most(column, bound)):
                one, two = attribute_of(column, self), attribute_of(bound, self)
                # Between 5.6 and 5.9 there is a number, but no integer: in chains grids matter too.
                alike = 2 if inner & {column, bound} else 1
                numeric = {column, bound} <= {*self.numeric}
                if not numeric or _line(one)[:alike] != _line(two)[:alike]:
                    how = "on one number line, in chains on one grid: integers, or equal decimals"
                    raise ValueError(f"declare the columns alike, measured and {how}.")
            # Smallest and largest numbers; a missing value is nan, and satisfies every rule.
            low, high = one.span(np.arange(one.size))[0], two.span(np.arange(two.size))[1]
            yield self._without({column: low, bound: high}, np.greater)

    def _without(self, of: Mapping[str, np.ndarray], relation: np.ufunc) -> tuple[Axes, BoolArray]:
        """A table of what is left of the codes of some columns without those in a relation."""
        n_cells = math.prod(map(len, of.values()))
        if n_cells > MAX_CELLS:
            what = f"{some([*of])} have {n_cells:,} cells together, more than {MAX_CELLS:,}"
            raise DomainError(f"{what}, the most that a rule connects. Declare fewer bins.")
        axes = [self.measured.index(name) for name in of]
        table = functools.reduce(relation.outer, of.values())
        return tuple(sorted(axes)), ~table.transpose(np.argsort(axes))

    # --- rows for codes: numbers are drawn within the cells so that rules hold for them too

    def draw(
        self, codes: Mapping[str, IntArray], rng: Any, within: Mapping[str, tuple[Any, Any]]
    ) -> dict[str, pd.Series]:
        """All columns of rows with these codes, in declared order.

        Parameters
        ----------
        codes : mapping of str to ndarray of int
            Of the measured columns. They do not break the structure.
        rng : numpy.random.Generator
        within : mapping of str to (lower, upper)
            Closed ranges on the number line, for all rows or for each; rules come first.
        """
        ends = {name: within.get(name, (-np.inf, np.inf)) for name in self.numeric}
        # Larger columns come first. A number lies below those that were drawn for its bounds, and
        # not below the least ones of the columns that it bounds, which are nan for missing values.
        # There is such a number: chains are compared as a whole.
        spans = {name: self.numeric[name].span(codes[name]) for name in {*chain(*self.pairs)}}
        least = {k: np.minimum(np.fmax(ends[k][0], low), high) for k, (low, high) in spans.items()}
        numbers: dict[str, Any] = {}
        for name in sorted(self.numeric, key=[column for column, _ in self.pairs].count):
            below = [least[column] for column, bound in self.pairs if bound == name]
            above = [numbers[bound] for column, bound in self.pairs if column == name]
            most = functools.reduce(np.fmin, above, np.inf)
            low = np.fmin(functools.reduce(np.fmax, [ends[name][0], *below], -np.inf), most)
            high = np.fmax(np.fmin(ends[name][1], most), low)
            numbers[name] = self.numeric[name].draw(codes[name], rng, low, high)
        drawn: dict[str, pd.Series] = {}
        for name, attribute in self._declared.items():
            if isinstance(attribute, Identifier):
                drawn[name] = pd.Series(np.arange(len(codes[self.measured[0]])) + 1)
            elif name in numbers:
                drawn[name] = attribute._finish(numbers[name])
            else:
                # Each code stands for one value: nothing is drawn.
                own = self.lifted(name, np.arange(attribute.size))
                drawn[name] = attribute.decode(own[codes[self.base_of(name)]], rng)
        return drawn


@contextlib.contextmanager
def _about(rule: Rule) -> Iterator[None]:
    """Errors about a rule say which."""
    try:
        yield
    except ValueError as error:
        raise DomainError(f"{rule!r}: {error}") from None


def _chained(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Pairs of columns, the first of which depends on the second, and those that follow."""
    found = [*pairs]
    for one, two in found:
        # The list grows while it is read, and what is added is looked at in turn.
        found += [(one, end) for near, end in found if near == two and (one, end) not in found]
    if circle := [one for one, two in found if one == two]:
        what = f"The rules of {' and '.join(map(repr, circle))} form a circle"
        raise DomainError(f"{what}. Leave out one; columns that are always equal are derived.")
    return found


def _line(attribute: Any) -> tuple[Any, Any]:
    """What divides number lines, and grids of values on them."""
    grid = attribute._grid
    special = [x for x in attribute.special if grid and grid.value(grid.at_least(x)) != x]
    line = getattr(attribute, "unit", None), getattr(attribute, "tz", None)
    return line, (grid and grid.denominator, *special)


def _regions(rule: Rule, schema: Schema) -> Sequence[Part]:
    """What a rule says of columns: conjunctions of a condition, keys of a map, special values.

    Columns that are compared are divided at their special values, where numbers of bins have a gap.
    """
    with _about(rule):
        if rule.condition:
            return parts_of(rule.condition, schema)
        if rule.from_:
            base = attribute_of(rule.from_, schema)
            return [{rule.from_: _region(rule.from_, base, key)} for key, _ in rule.map]
        compared = {name: attribute_of(name, schema) for name in (rule.column, rule.bound)}
        return [
            {name: region_of_range(name, each, value, value)}
            for name, each in compared.items()
            for value in each.special
        ]


def _region(column: str, attribute: Any, key: Any) -> Region:
    """What a key of a map stands for: a value, or the values of an interval."""
    if not (isinstance(key, tuple) and isinstance(attribute, Numeric)):
        return region_of_values(column, attribute, [key])
    low, high = key
    last = high is None or attribute.number(high, column) == attribute.upper
    return region_of_range(column, attribute, low, high, "" if last else ">")


def _codes(column: str, attribute: Any, key: Any) -> IntArray:
    """Codes that stand for a key of a map: bins are divided where keys begin and end."""
    return np.flatnonzero(_region(column, attribute, key).weights > 0.5)


def _divided(rules: Iterable[Rule], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Columns with more edges of bins: where rules cut them."""
    schema = Structure((), declared)
    cuts: dict[str, list[np.ndarray]] = {}
    for name, region in chain(*(part.items() for rule in rules for part in _regions(rule, schema))):
        if isinstance(declared[name], Numeric):
            cuts.setdefault(name, []).append(region.edges)
    return {**declared, **{k: declared[k]._cut_at(np.concatenate(cuts[k])) for k in cuts}}
