"""Regions: the part of one attribute that a condition covers, as a weight for each code."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from .bins import Grid, Points, Spread
from .categorical import Categorical
from .numeric import Numeric
from .values import digits

# Share of a bin that a single number of a continuous column has: next to nothing, but asked for.
POINT = 1e-12


@dataclass(frozen=True)
class _Numbers:
    """Numbers of an attribute, and which of its other cells.

    Attributes
    ----------
    attribute : Numeric
    low, high : float
        On a grid, the places of the smallest and the largest number.
    missing : bool
        Whether the missing cell is part of it.
    special : frozenset of int
        Positions of the special values that are part of it.
    """

    attribute: Numeric
    low: float
    high: float
    missing: bool
    special: frozenset[int] = frozenset()

    def without_missing(self) -> Any:
        return replace(self, missing=False)

    def _covered(self) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def weights(self) -> np.ndarray:
        held = [float(place in self.special) for place in range(len(self.attribute.special))]
        return self._joined(self._covered()[0], held)

    def moment(self) -> np.ndarray:
        values = enumerate(self.attribute.special)
        held = [float(value) if place in self.special else 0.0 for place, value in values]
        return self._joined(self._covered()[1], held, values_only=True)

    def _joined(
        self, bins: np.ndarray, special: list[float], *, values_only: bool = False
    ) -> np.ndarray:
        missing = [float(self.missing and not values_only)] * self.attribute.nullable
        return np.concatenate([bins, special, missing])


class RealRegion(_Numbers):
    """An interval [low, high] of a continuous attribute."""

    def intersect(self, other: RealRegion) -> RealRegion:
        """What both regions cover."""
        return RealRegion(
            self.attribute,
            max(self.low, other.low),
            min(self.high, other.high),
            self.missing and other.missing,
            self.special & other.special,
        )

    def _covered(self) -> tuple[np.ndarray, np.ndarray]:
        held = self.attribute.contents
        assert isinstance(held, Spread)
        share, moment = held.covered(self.low, self.high)
        if self.low == self.high and self.attribute.lower <= self.low <= self.attribute.upper:
            bin_of = min(int(held.positions(np.array([self.low]))[0]), self.attribute.bins - 1)
            share[bin_of], moment[bin_of] = POINT, POINT * self.low
        return share, moment


@dataclass(frozen=True)
class GridRegion(_Numbers):
    """Numbers of a grid from low to high, among ``only`` (if given), except ``never``.

    All are places of the grid: of integers, the integers themselves.
    """

    low: int
    high: int
    only: frozenset[int] | None = None
    never: frozenset[int] = frozenset()

    def intersect(self, other: GridRegion) -> GridRegion:
        """What both regions cover."""
        only = self.only if other.only is None else other.only
        if self.only is not None and other.only is not None:
            only = self.only & other.only
        return GridRegion(
            self.attribute,
            max(self.low, other.low),
            min(self.high, other.high),
            self.missing and other.missing,
            self.special & other.special,
            only,
            self.never | other.never,
        )

    def _covered(self) -> tuple[np.ndarray, np.ndarray]:
        held = self.attribute.contents
        assert isinstance(held, Points)
        return held.covered(self.low, self.high, self.only, self.never)


@dataclass(frozen=True)
class RegionUnion:
    """Numbers of any of several disjoint regions of an attribute."""

    attribute: Numeric
    parts: tuple[RealRegion | GridRegion, ...]

    def intersect(self, other: Any) -> RegionUnion:
        """What this covers of a region that is no union."""
        return RegionUnion(self.attribute, tuple(part.intersect(other) for part in self.parts))

    def without_missing(self) -> RegionUnion:  # noqa: D102
        return RegionUnion(self.attribute, tuple(part.without_missing() for part in self.parts))

    def weights(self) -> np.ndarray:  # noqa: D102
        return np.sum([part.weights() for part in self.parts], axis=0)

    def moment(self) -> np.ndarray:  # noqa: D102
        return np.sum([part.moment() for part in self.parts], axis=0)


@dataclass(frozen=True)
class _Categories:
    """A set of codes of a categorical attribute, the missing cell among them."""

    column: str
    attribute: Categorical
    mask: np.ndarray

    def intersect(self, other: _Categories) -> _Categories:
        return _Categories(self.column, self.attribute, self.mask & other.mask)

    def without_missing(self) -> _Categories:
        if not self.attribute.nullable:
            return self
        mask = self.mask.copy()
        mask[-1] = False
        return _Categories(self.column, self.attribute, mask)

    def weights(self) -> np.ndarray:
        return self.mask.astype(np.float64)

    def moment(self) -> np.ndarray:
        numeric = [value for value in self.attribute.categories if not isinstance(value, str)]
        if len(numeric) < self.attribute.n_values:
            raise ValueError(
                f"Column {self.column!r} has categories that are not numbers, so it has no sum or "
                "mean. Count its categories instead."
            )
        values = np.zeros(len(self.mask))
        values[: len(numeric)] = numeric
        return self.mask * values


Region = RealRegion | GridRegion | RegionUnion | _Categories


class Schema(Protocol):
    """Columns that conditions may name."""

    def why_not(self, column: str) -> str | None:
        """Why a declared column cannot be asked for; None if it is not declared."""

    def find(self, column: str) -> Numeric | Categorical | None:
        """The attribute of a column that can be asked for."""

    @property
    def known(self) -> tuple[str, ...]:
        """Columns that can be asked for."""


def attribute_of(column: Any, schema: Schema) -> Numeric | Categorical:
    """Attribute of a column, with a hint where it is misspelt."""
    attribute = schema.find(column) if isinstance(column, str) else None
    if attribute is not None:
        return attribute
    reason = schema.why_not(column) if isinstance(column, str) else None
    if reason is not None:
        raise ValueError(reason)
    names = schema.known
    close = difflib.get_close_matches(str(column), names, n=1)
    shown = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"The domain has no column {column!r}.{hint} It has {shown}.")


def everything(column: str, attribute: Numeric | Categorical) -> Region:
    """The region of no condition."""
    if isinstance(attribute, Categorical):
        return _Categories(column, attribute, np.ones(attribute.size, dtype=bool))
    return _all_but(attribute, frozenset(), frozenset(), missing=True)


def _all_but(
    attribute: Numeric, never: frozenset[int], special: frozenset[int], *, missing: bool
) -> Region:
    """All numbers but some places of the grid and some special values."""
    kept = frozenset(range(len(attribute.special))) - special
    held = attribute.contents
    if isinstance(held, Spread):
        return RealRegion(attribute, -math.inf, math.inf, missing, kept)
    return GridRegion(attribute, held.grid.first, held.grid.last, missing, kept, None, never)


def _none_but(
    attribute: Numeric, only: frozenset[int], special: frozenset[int], *, missing: bool
) -> Region:
    """No numbers but some places of the grid and some special values."""
    held = attribute.contents
    if isinstance(held, Spread):
        return RealRegion(attribute, math.inf, -math.inf, missing, special)
    return GridRegion(attribute, held.grid.first, held.grid.last, missing, special, only)


def _missing(column: str, attribute: Numeric | Categorical) -> Region:
    if not attribute.nullable:
        raise ValueError(
            f"Column {column!r} has no missing cell to ask for: it is declared without "
            "nullable=True."
        )
    if isinstance(attribute, Categorical):
        mask = np.zeros(attribute.size, dtype=bool)
        mask[-1] = True
        return _Categories(column, attribute, mask)
    return _none_but(attribute, frozenset(), frozenset(), missing=True)


def _code(column: str, attribute: Categorical, value: Any) -> int:
    """Position of a category."""
    try:
        return attribute.index_of(value)
    except KeyError:
        pass
    labels = attribute.labels()[: attribute.n_values]
    close = difflib.get_close_matches(str(value), labels, n=1)
    hint = f" Did you mean {attribute.categories[labels.index(close[0])]!r}?" if close else ""
    shown = ", ".join(map(repr, attribute.categories[:20]))
    more = ", ..." if attribute.n_values > 20 else ""
    raise ValueError(f"Column {column!r} has no category {value!r}.{hint} It has {shown}{more}.")


def _codes(column: str, attribute: Categorical, value: Any) -> list[int]:
    """Position of a category, or of all categories in a group of the taxonomy."""
    tree = attribute.taxonomy
    if tree is not None and value in tree.labels and value not in attribute.categories:
        _, leaf_codes = attribute.hierarchy()
        nodes = [node for node, label in enumerate(tree.labels) if label == value]
        return [code for node in nodes for code in leaf_codes[tree.first[node] : tree.last[node]]]
    return [_code(column, attribute, value)]


def region_of_range(
    column: str, attribute: Numeric | Categorical, low: Any, high: Any, strict: str = ""
) -> Region:
    """Values from low to high; None is an open end, ``strict`` names the ends left out."""
    if isinstance(attribute, Categorical):
        if not attribute.ordered:
            raise ValueError(
                f"Column {column!r} is an unordered Categorical, so it has no range. Ask for a "
                "list of categories, or declare it with ordered=True."
            )
        start = 0 if _open_end(low) else _code(column, attribute, low) + ("<" in strict)
        stop = attribute.n_values if _open_end(high) else _code(column, attribute, high) + 1
        if start - ("<" in strict) >= stop:
            raise _reversed(column, low, high)
        stop -= ">" in strict
        mask = np.zeros(attribute.size, dtype=bool)
        mask[start:stop] = True
        return _Categories(column, attribute, mask)
    left = -math.inf if low is None else attribute.number(low, column)
    right = math.inf if high is None else attribute.number(high, column)
    if left > right:
        raise _reversed(column, low, high)
    special = frozenset(
        place
        for place, value in enumerate(attribute.special)
        if (left < value if "<" in strict else left <= value)
        and (value < right if ">" in strict else value <= right)
    )
    held = attribute.contents
    if isinstance(held, Spread):
        return RealRegion(attribute, float(left), float(right), False, special)
    first, last = _places(held.grid, left, right, strict)
    return GridRegion(attribute, first, last, False, special)


def _places(grid: Grid, left: float, right: float, strict: str) -> tuple[int, int]:
    """Places of the smallest and the largest number of a grid in a range; reversed if none."""
    lower, upper = (float(end) for end in grid.value(np.array([grid.first, grid.last])))
    # Bounded to the grid before becoming places: the ends may be infinite.
    if left > upper or right < lower:
        return grid.last + 1, grid.last
    first, last = grid.first, grid.last
    if left >= lower:
        first = int(grid.at_least(left))
        first += "<" in strict and float(grid.value(first)) == left
    if right <= upper:
        last = int(grid.at_most(right))
        last -= ">" in strict and float(grid.value(last)) == right
    return first, last


def _open_end(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isinf(value))


def _reversed(column: str, low: Any, high: Any) -> ValueError:
    return ValueError(
        f"The range for column {column!r} is reversed: it goes from {low!r} to {high!r}. "
        "Write the lower end first."
    )


def region_of_values(
    column: str, attribute: Numeric | Categorical, values: Iterable[Any], negate: bool = False
) -> Region:
    """Any of the values, or all but these."""
    listed = list(values)
    present = [value for value in listed if value is not None]
    missing = len(present) < len(listed)
    if missing:
        _missing(column, attribute)  # refuses where there is no missing cell
    if isinstance(attribute, Categorical):
        mask = np.zeros(attribute.size, dtype=bool)
        mask[[code for value in present for code in _codes(column, attribute, value)]] = True
        if missing:
            mask[-1] = True
        return _Categories(column, attribute, ~mask if negate else mask)
    own = {value: place for place, value in enumerate(attribute.special)}
    asked = [attribute.number(value, column) for value in present]
    special = frozenset(own[value] for value in asked if value in own)
    others = [value for value in asked if value not in own]
    held = attribute.contents
    if isinstance(held, Spread):
        # What is not one of some numbers is nearly everything.
        if negate:
            return _all_but(attribute, frozenset(), special, missing=not missing)
        if not others:
            return _none_but(attribute, frozenset(), special, missing=missing)
        ends = [float(value) for value in dict.fromkeys(others)]
        none = frozenset[int]()
        found = [RealRegion(attribute, ends[0], ends[0], missing, special)]
        found += [RealRegion(attribute, end, end, False, none) for end in ends[1:]]
        return found[0] if len(found) == 1 else RegionUnion(attribute, tuple(found))
    chosen = frozenset(_place(column, attribute, held.grid, value) for value in others)
    if negate:
        return _all_but(attribute, chosen, special, missing=not missing)
    return _none_but(attribute, chosen, special, missing=missing)


def _place(column: str, attribute: Numeric, grid: Grid, value: float) -> int:
    """Place of a single number; one beyond the grid where it lies outside of the range."""
    if attribute.integer and attribute.step is None:
        if math.isinf(value) or value != math.floor(value):
            raise ValueError(
                f"Column {column!r} holds integers, so no record has the value {value!r}. "
                "Ask for an integer or a range."
            )
        return int(value)
    if not attribute.lower <= value <= attribute.upper:
        return grid.last + 1
    place = int(grid.at_least(value))
    if float(grid.value(place)) != value:
        raise ValueError(
            f"Column {column!r} has values in steps of {digits(grid.step())}, and {value!r} is "
            "none of them. Ask for one of them or a range."
        )
    return place


def region_of_comparison(
    column: str, attribute: Numeric | Categorical, operator: str, value: Any
) -> Region:
    """The region of ``column operator value``."""
    if operator in ("in", "not in"):
        if not isinstance(value, list):
            raise ValueError(
                f"'{operator}' on column {column!r} needs a list, as in "
                f"{column} {operator} [{value!r}]."
            )
        return region_of_values(column, attribute, value, negate=operator == "not in")
    if isinstance(value, list):
        if operator in ("==", "!="):  # as in pandas: == [..] means in
            return region_of_values(column, attribute, value, negate=operator == "!=")
        raise ValueError(f"Column {column!r} cannot be compared by '{operator}' with a list.")
    if operator in ("==", "!="):
        return region_of_values(column, attribute, [value], negate=operator == "!=")
    if value is None:
        raise ValueError(
            f"Missing values of column {column!r} have no order: compare None with == or !=."
        )
    if operator in ("<", "<="):
        return region_of_range(column, attribute, None, value, ">" if operator == "<" else "")
    return region_of_range(column, attribute, value, None, "<" if operator == ">" else "")
