"""Structure: rules compiled into columns that follow from others, and cells that are empty.

Everything here follows from declarations alone. No record is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..._validation import BoolArray, CodeArray, FloatArray, IntArray
from ...exceptions import DomainError
from ..attributes import Identifier
from ..categorical import Categorical
from ..numeric import Numeric
from ..query import parts_of
from ..regions import attribute_of
from ..values import some
from .compiling import (
    Tables,
    Zeros,
    as_rules,
    check_cells,
    check_whole,
    closure,
    columns_named,
    consistent,
    contradiction,
    one_row,
    satisfiable,
    shortest,
    zeros_of,
)
from .declared import AtMost, Derived, Forbid, Rule, query_of
from .numberline import check_chains, check_same_line, code_of, number_of, spans

# --- maps of derived columns: the code of the derived column for each code of its base


def derived_codes(rule: Derived, base: Any, target: Any) -> IntArray:
    """Code of the derived column for each code of its base.

    Parameters
    ----------
    rule : Derived
    base, target : attributes
        Of the column that decides and of the one that follows.

    Raises
    ------
    DomainError
        If a value of the base has no entry, an entry is no value of the base, intervals overlap or
        cut a bin, or a result is no value of the derived column.
    """
    results = _results(rule, target)
    codes = np.full(base.size, -1, dtype=np.int64)
    if isinstance(base, Categorical):
        _by_category(rule, base, results, codes)
    else:
        _by_interval(rule, base, results, codes)
    if base.nullable and codes[-1] < 0:
        if not target.nullable:
            raise DomainError(
                f"{rule!r}: {rule.from_!r} may be missing, and the map has no entry for that. Add "
                f"the key None, or declare {rule.column!r} with nullable=True."
            )
        codes[-1] = target.size - 1
    gaps = np.flatnonzero(codes < 0)
    if len(gaps):
        labels = base.labels()
        shown = ", ".join(labels[code] for code in gaps[:8].tolist())
        more = f", ... ({len(gaps) - 8} more)" if len(gaps) > 8 else ""
        raise DomainError(
            f"{rule!r} has gaps: the map has no entry for {shown}{more} of {rule.from_!r}. Add "
            "entries for all values."
        )
    return codes


def _results(rule: Derived, target: Any) -> list[tuple[Any, int]]:
    """Keys of the map with codes of the derived column."""
    if isinstance(target, Numeric):
        low, high = spans(target)
        if not np.array_equal(low[: target.n_values], high[: target.n_values]):
            raise DomainError(
                f"{rule!r}: a derived column has one code for each value. Declare "
                f"{rule.column!r} as Numeric(lower, upper, integer=True), or as a Categorical of "
                "its values."
            )
    found = []
    for key, value in rule.map:
        if value is None:
            if not target.nullable:
                raise DomainError(
                    f"{rule!r} maps {key!r} to None, but {rule.column!r} has no missing cell. "
                    "Declare it with nullable=True."
                )
            found.append((key, target.size - 1))
            continue
        code = code_of(target, value)
        if code is None:
            raise DomainError(
                f"{rule!r} maps {key!r} to {value!r}, which is not a declared value of "
                f"{rule.column!r}."
            )
        found.append((key, code))
    return found


def _by_category(
    rule: Derived, base: Categorical, results: list[tuple[Any, int]], codes: IntArray
) -> None:
    unknown = []
    for key, code in results:
        if key is None and base.nullable:
            codes[-1] = code
            continue
        try:
            codes[base.index_of(key)] = code
        except KeyError:
            unknown.append(key)
    if unknown:
        raise DomainError(
            f"{rule!r} has entries for {some(unknown)}, which {rule.from_!r} does not have."
        )


def _by_interval(rule: Derived, base: Any, results: list[tuple[Any, int]], codes: IntArray) -> None:
    low, high = spans(base)
    taken = np.zeros(base.size, dtype=bool)
    alone = np.zeros(base.size, dtype=bool)
    for key, code in results:
        if key is None and base.nullable:
            codes[-1] = code
        elif not isinstance(key, tuple):
            number = number_of(base, key)
            here = (low == number) & (high == number)
            if not here.any():
                raise DomainError(
                    f"{rule!r}: {key!r} has no code of its own in {rule.from_!r}. Use intervals "
                    "(low, high), or declare it with special=."
                )
            codes[here] = code
            alone |= here
    for key, code in results:
        if not isinstance(key, tuple):
            continue
        start, stop = (_end(rule, base, end, sign) for end, sign in zip(key, (-1, 1), strict=True))
        if stop == base.upper:
            stop = math.inf
        if not start < stop:
            raise DomainError(f"{rule!r}: the interval {key!r} is empty. Write (low, high).")
        inside = (low >= start) & (high < stop) & ~alone
        cut = ~inside & ~alone & (high >= start) & (low < stop)
        if cut.any():
            label = base.labels()[int(np.flatnonzero(cut)[0])]
            raise DomainError(
                f"{rule!r}: the interval {key!r} cuts the bin {label} of {rule.from_!r}. Let it "
                "begin and end where bins do, or declare the bins so (bins=, or edges=)."
            )
        if (inside & taken).any():
            raise DomainError(f"{rule!r}: the interval {key!r} overlaps another one.")
        codes[inside] = code
        taken |= inside


def _end(rule: Derived, base: Any, value: Any, sign: int) -> float:
    """An end of an interval on the number line; None is open."""
    if value is None:
        return sign * math.inf
    number = number_of(base, value)
    if number is None:
        raise DomainError(f"{rule!r}: {value!r} is no value of {rule.from_!r}.")
    return number


# Codes that a conjunction covers, by measured column.
Masks = dict[str, BoolArray]


class Structure:
    """Compiled rules of a domain, as ``domain.structure``; it is falsy if there are none.

    Attributes
    ----------
    rules : tuple of Rule
        As declared.
    derived : dict of str to Rule
        The rule of each column that is not measured because it follows from others: rules made by
        `derived`.
    zeros : tuple of Zeros
        Cells that no record can be in: one entry for each set of attributes that rules connect,
        single attributes first. The tables are consistent with each other, and a row breaks a rule
        exactly if it is in a forbidden cell of one of them.
    """

    rules: tuple[Rule, ...]
    derived: dict[str, Derived]
    zeros: tuple[Zeros, ...]

    def __init__(
        self, rules: Iterable[Rule] = (), declared: Mapping[str, Any] | None = None
    ) -> None:
        self.rules = tuple(dict.fromkeys(self.read(rules)))
        self._declared = dict(declared or {})
        self.derived = {}
        self._codes: dict[str, tuple[str, IntArray]] = {}
        self.zeros = ()
        self._used: dict[Rule, tuple[str, ...]] = {}
        self._bounds: dict[str, tuple[str, ...]] = {}
        if self.rules:
            self._resolve()
            self._axes = {name: axis for axis, name in enumerate(self.measured)}
            self._compile()

    @staticmethod
    def read(rules: Any) -> list[Rule]:
        """Rules that were given as ``structure=``; errors for anything else."""
        return list(rules.rules) if isinstance(rules, Structure) else as_rules(rules)

    def __bool__(self) -> bool:
        return bool(self.rules)

    @property
    def measured(self) -> tuple[str, ...]:
        """Declared columns that are measured, in order."""
        return tuple(
            name
            for name, attribute in self._declared.items()
            if name not in self.derived and not isinstance(attribute, Identifier)
        )

    # What conditions may name: see `regions.Schema`.

    @property
    def known(self) -> tuple[str, ...]:
        """Columns that a condition may name: measured and derived."""
        return tuple(name for name in self._declared if self.find(name) is not None)

    def find(self, column: str) -> Numeric | Categorical | None:
        """Attribute of a column that a condition may name."""
        attribute = self._declared.get(column)
        return None if isinstance(attribute, Identifier) else attribute

    def why_not(self, column: str) -> str | None:
        """Why a declared column cannot be asked for."""
        if isinstance(self._declared.get(column), Identifier):
            return f"Column {column!r} is an Identifier: it is not measured and has no statistics."
        return None

    def base_of(self, column: str) -> str:
        """The measured column that decides a column; a measured column decides itself."""
        return self._codes[column][0] if column in self._codes else column

    def codes_of(self, column: str) -> IntArray:
        """Code of a derived column for each code of its base.

        Raises
        ------
        KeyError
            If the column is not derived from one other.
        """
        return self._codes[column][1]

    def weights_of_regions(self, regions: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Weights of regions by measured column; those on one base multiply."""
        found: dict[str, np.ndarray] = {}
        for column, region in regions.items():
            weights = self.lifted(column, region.weights())
            base = self.base_of(column)
            found[base] = found[base] * weights if base in found else weights
        return found

    def lifted(self, column: str, values: np.ndarray) -> np.ndarray:
        """Values for the codes of a column as values for the codes of its base."""
        return values[self.codes_of(column)] if column in self._codes else values

    def lawful_codes(self, wanted: CodeArray, rng: np.random.Generator) -> CodeArray:
        """Rows that break no rule and have as many of the wanted codes as they easily can.

        They have no distribution in particular: they are examples of rows, such as those on which
        a model is tried before anything is charged.

        Parameters
        ----------
        wanted : ndarray of int, shape (n, n_measured)
        rng : numpy.random.Generator
        """
        rows = np.array(wanted)
        if not self.zeros:
            return rows
        first = one_row({zeros.axes: zeros.allowed for zeros in self.zeros})
        axes = np.array(sorted(first))
        rows[:, axes] = [first[axis] for axis in axes.tolist()]
        for proposed in (wanted, wanted[rng.permutation(len(wanted))], wanted):
            for axis in rng.permutation(axes).tolist():
                own = rows[:, axis].copy()
                rows[:, axis] = proposed[:, axis]
                broken = self.breaks(rows, axis)
                rows[broken, axis] = own[broken]
        return rows

    def breaks(self, codes: ArrayLike, axis: int | None = None) -> BoolArray:
        """Whether each row is in a cell that is declared empty.

        Parameters
        ----------
        codes : array-like of shape (n, n_measured), integers
            A row with a negative code in the attributes of a rule does not break it: it cannot be
            represented anyway.
        axis : int, default=None
            Look only at rules about this attribute.

        Returns
        -------
        ndarray of bool, shape (n,)
        """
        rows = np.asarray(codes)
        broken = np.zeros(len(rows), dtype=bool)
        for zeros in self.zeros:
            if axis is None or axis in zeros.axes:
                broken |= zeros.broken_by(rows)
        return broken

    def broken_by_rule(self, codes: ArrayLike) -> list[tuple[Rule, BoolArray]]:
        """Which rows break each rule that forbids cells: for reports to the data owner."""
        result = []
        for rule in self.rules:
            tables = self._tables([rule])
            if tables:
                part = Structure()
                part.zeros = tuple(Zeros(axes, allowed) for axes, allowed in tables.items())
                result.append((rule, part.breaks(codes)))
        return result

    def bounds_of(self) -> dict[str, tuple[str, ...]]:
        """Columns that each column must not exceed, chains included."""
        return self._bounds

    @property
    def compared(self) -> tuple[str, ...]:
        """Columns that rules of `at_most` compare."""
        bounds = (bound for above in self._bounds.values() for bound in above)
        return (*dict.fromkeys([*self._bounds, *bounds]),)

    def kept_by(self, columns: Iterable[str]) -> tuple[Rule, ...]:
        """Rules all of whose columns are among these."""
        chosen = set(columns)
        return tuple(rule for rule in self.rules if chosen.issuperset(self._used[rule]))

    def columns_of(self, rule: Rule) -> tuple[str, ...]:
        """The columns that a rule names."""
        return self._used[rule]

    def to_data(self) -> list[dict[str, Any]]:
        """The rules as values that JSON can hold."""
        return [rule.to_data() for rule in self.rules]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self.to_data() == other.to_data()

    def __hash__(self) -> int:
        return hash(self.rules)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def __repr__(self) -> str:
        return f"Structure([{', '.join(map(repr, self.rules))}])"

    def _resolve(self) -> None:
        """Find the derived columns and the measured columns behind them."""
        for rule in self.rules:
            if not isinstance(rule, Derived):
                continue
            for name in columns_named(rule):
                self._attribute(name, rule)
            if rule.column in self.derived:
                raise DomainError(
                    f"Column {rule.column!r} follows from two rules, {self.derived[rule.column]!r} "
                    f"and {rule!r}. Leave out one of them."
                )
            self.derived[rule.column] = rule
        for column, rule in self.derived.items():
            self._used[rule] = columns_named(rule)
            self._derive(column)

    def _derive(self, column: str, seen: tuple[str, ...] = ()) -> tuple[str, IntArray]:
        if column in self._codes:
            return self._codes[column]
        rule = self.derived[column]
        if column in seen:
            circle = " from ".join(map(repr, [*seen[seen.index(column) :], column]))
            raise DomainError(
                f"Derived columns form a circle: {circle}. One of them must be measured."
            )
        codes = derived_codes(rule, self._declared[rule.from_], self._declared[column])
        base = rule.from_
        if rule.from_ in self.derived:
            base, inner = self._derive(rule.from_, (*seen, column))
            codes = codes[inner]
        self._codes[column] = base, codes
        return base, codes

    def _attribute(self, name: str, rule: Rule) -> Any:
        """Declaration of a column that a rule names."""
        if name not in self._declared:
            try:
                attribute_of(name, self)
            except ValueError as error:
                raise DomainError(f"{rule!r}: {error}") from None
        attribute = self._declared[name]
        if isinstance(attribute, Identifier):
            raise DomainError(
                f"{rule!r}: column {name!r} is an Identifier, which no rule can be about."
            )
        return attribute

    def _compile(self) -> None:
        others = [rule for rule in self.rules if rule not in self._used]
        for rule in others:
            self._used[rule] = self._check(rule)
        self._bounds = closure(others)
        check_chains(self._bounds, self._declared)
        tables = self._tables(others)
        possible = satisfiable(tables)
        if possible is False:
            guilty = shortest(others, lambda some_: satisfiable(self._tables(some_)) is False)
            raise DomainError(contradiction(guilty))
        if possible is None:
            raise DomainError(
                "No row that satisfies all rules was found, and the search was stopped. Leave out "
                "rules until one is found: "
                + some([rule for rule in others if not isinstance(rule, AtMost)] or others)
                + "."
            )
        found = consistent(tables)
        assert found is not None
        self.zeros = zeros_of(found)

    def _check(self, rule: Rule) -> tuple[str, ...]:
        """The columns that a rule names; raises if it does not fit the declarations."""
        if isinstance(rule, AtMost):
            one, other = (self._attribute(name, rule) for name in (rule.column, rule.bound))
            check_same_line(rule, one, other)
            return columns_named(rule)
        if not isinstance(rule, Forbid):
            raise DomainError(f"{rule!r} is no rule that a Domain knows.")
        return tuple(self._masks(rule)[1])

    def _masks(self, rule: Forbid) -> tuple[list[Masks], list[str]]:
        """Disjoint conjunctions of the condition that cover a cell, and the columns it names.

        A conjunction is the codes of each measured column that it covers.
        """
        try:
            parts = parts_of(query_of(rule.condition), self)
        except ValueError as error:
            raise DomainError(f"{rule!r}: {error}") from None
        found = [self._masks_of(rule, regions) for regions in parts]
        found = [masks for masks in found if all(mask.any() for mask in masks.values())]
        if not all(found) or not found:
            raise DomainError(
                f"{rule!r}: the condition covers no cell of the domain, or all of them. Check its "
                "values against the declared ranges, or leave the rule out."
            )
        return found, list(dict.fromkeys(column for regions in parts for column in regions))

    def _masks_of(self, rule: Rule, regions: Mapping[str, Any]) -> Masks:
        masks: Masks = {}
        for column, region in regions.items():
            weights = region.weights()
            check_whole(rule, column, self._declared[column], weights)
            mask = self.lifted(column, weights > 0)
            base = self.base_of(column)
            masks[base] = masks[base] & mask if base in masks else mask
        return masks

    def _tables(self, rules: Sequence[Rule]) -> Tables:
        """Allowed cells by each set of attributes that the rules connect."""
        tables: Tables = {}
        for rule in rules:
            for masks in self._masks(rule)[0] if isinstance(rule, Forbid) else ():
                _intersect(tables, *self._table(rule, masks))
        bounds = [rule for rule in rules if isinstance(rule, AtMost)]
        for column, above in closure(bounds).items():
            for bound in above:
                _intersect(tables, *self._comparison(column, bound))
        return tables

    def _table(self, rule: Rule, masks: Masks) -> tuple[tuple[int, ...], BoolArray]:
        """Allowed cells of a rule that forbids a conjunction."""
        names = sorted(masks, key=self._axes.__getitem__)
        sizes = [self._declared[name].size for name in names]
        check_cells(rule, names, sizes)
        inside = np.ones(sizes, dtype=bool)
        for place, name in enumerate(names):
            inside &= _along(masks[name], place, len(names))
        return tuple(self._axes[name] for name in names), ~inside

    def _comparison(self, column: str, bound: str) -> tuple[tuple[int, ...], BoolArray]:
        """Cells in which a value of ``column`` can be at most one of ``bound``."""
        low = self._ends(column)[0]
        high = self._ends(bound)[1]
        names = [self.base_of(name) for name in (column, bound)]
        rule = AtMost(column, bound)
        check_cells(rule, names, [len(low), len(high)])
        # A missing value compares as nan, and satisfies every rule.
        allowed = ~(low[:, None] > high[None, :])
        axes = tuple(self._axes[name] for name in names)
        if axes[0] == axes[1]:
            return axes[:1], np.diagonal(allowed).copy()
        return (axes, allowed) if axes[0] < axes[1] else (axes[::-1], allowed.T.copy())

    def _ends(self, column: str) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest value of a column for each code of its base."""
        low, high = spans(self._declared[column])
        return self.lifted(column, low), self.lifted(column, high)


def _along(mask: BoolArray, place: int, n_axes: int) -> BoolArray:
    return mask.reshape([-1 if axis == place else 1 for axis in range(n_axes)])


def _intersect(tables: Tables, axes: tuple[int, ...], allowed: BoolArray) -> None:
    tables[axes] = tables[axes] & allowed if axes in tables else allowed


# --- rows for codes: values are drawn within the cells so that rules hold for the values too

Bounds = Mapping[str, tuple[Any, Any]]


def draw_columns(
    declared: Mapping[str, Any],
    structure: Structure,
    codes: Mapping[str, IntArray],
    n_rows: int,
    rng: np.random.Generator,
    bounds: Bounds,
) -> dict[str, pd.Series]:
    """All columns of rows with these codes, in declared order.

    Parameters
    ----------
    declared : mapping of str to attribute
        All columns in order.
    structure : Structure
    codes : mapping of str to ndarray of int
        Of the measured columns. They do not break the structure.
    n_rows : int
    rng : numpy.random.Generator
    bounds : mapping of str to (lower, upper)
        Closed ranges on the number line, for all rows or for each.
    """
    drawn: dict[str, pd.Series] = {}
    linked = structure.compared
    for name, attribute in declared.items():
        if name not in codes or name in linked:
            continue
        if name in bounds:
            lower, upper = bounds[name]
            drawn[name] = attribute.decode(codes[name], rng, lower=lower, upper=upper)
        else:
            drawn[name] = attribute.decode(codes[name], rng)
    drawn |= _draw_linked(declared, structure, codes, rng, bounds)
    for name, attribute in declared.items():
        if isinstance(attribute, Identifier):
            drawn[name] = attribute.fresh(n_rows)
        elif name in structure.derived:
            own = structure.codes_of(name)[codes[structure.base_of(name)]]
            # Each of its codes stands for one value: nothing is drawn.
            drawn[name] = attribute.decode(own, rng)
    return {name: drawn[name] for name in declared}


def _draw_linked(
    declared: Mapping[str, Any],
    structure: Structure,
    codes: Mapping[str, IntArray],
    rng: np.random.Generator,
    bounds: Bounds,
) -> dict[str, pd.Series]:
    """Columns that rules of `at_most` compare, the larger ones first.

    A column is drawn from what its cell allows, but not below the least value of any column that
    it bounds, and not above the values drawn for its own bounds. There always is such a value,
    because chains are compared as a whole: no allowed row has a column whose least value exceeds
    the greatest value of one of its bounds.
    """
    above, names = structure.bounds_of(), structure.compared
    if not names:
        return {}
    below = {name: [other for other in above if name in above[other]] for name in names}
    of_cell = {name: _cells(declared, structure, codes, name, bounds) for name in names}
    plain = {name: _cells(declared, structure, codes, name, {}) for name in names}
    # Where bounds from outside contradict a rule, the rule holds and the bounds do not.
    astray = np.zeros(len(next(iter(codes.values()))), dtype=bool)
    for name in names:
        for bound in above.get(name, ()):
            astray |= of_cell[name][0] > of_cell[bound][1]
    for name in names:
        for end in (0, 1):
            of_cell[name][end][astray] = plain[name][end][astray]
    numbers: dict[str, FloatArray] = {}
    drawn: dict[str, pd.Series] = {}
    # A bound has fewer columns above it than what it bounds.
    for name in sorted(names, key=lambda each: len(above.get(each, ()))):
        attribute = declared[name]
        if name in structure.derived or isinstance(attribute, Categorical):
            # Each code stands for one value.
            numbers[name] = of_cell[name][0]
            if name in codes:
                drawn[name] = attribute.decode(codes[name], rng)
            continue
        low, high = of_cell[name]
        for other in below[name]:
            low = np.where(np.isnan(low), low, np.fmax(low, of_cell[other][0]))
        for bound in above.get(name, ()):
            high = np.where(np.isnan(high), high, np.fmin(high, numbers[bound]))
        numbers[name] = attribute.draw(codes[name], rng, low, high)
        drawn[name] = attribute._finish(numbers[name])
    return drawn


def _cells(
    declared: Mapping[str, Any],
    structure: Structure,
    codes: Mapping[str, IntArray],
    name: str,
    bounds: Bounds,
) -> tuple[FloatArray, FloatArray]:
    """Least and greatest value that each row can have, within bounds that reach into its cell."""
    own = codes[structure.base_of(name)]
    if name in structure.derived:
        own = structure.codes_of(name)[own]
    low, high = (end[own] for end in spans(declared[name]))
    if name in bounds and name not in structure.derived:
        least = -np.inf if bounds[name][0] is None else bounds[name][0]
        most = np.inf if bounds[name][1] is None else bounds[name][1]
        reach = np.fmax(low, least) <= np.fmin(high, most)
        low = np.where(reach, np.fmax(low, least), low)
        high = np.where(reach, np.fmin(high, most), high)
    return low, high
