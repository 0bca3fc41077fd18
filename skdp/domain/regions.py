"""Regions: the part of one attribute that a condition covers, as a weight for each code.

The numbers of a region lie between cuts. A cut is a number, and whether it lies before (0) or after
(1) the number itself; on a grid all cuts are places, before them. So regions are joined, cut and
turned round by comparing cuts, for integers and real numbers alike.
"""

from __future__ import annotations

import difflib
import functools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

import numpy as np

from .._validation import BoolArray, FloatArray
from .attributes import Attribute, Categorical
from .bins import Grid, Points
from .numeric import Numeric
from .values import digits

# Share of a bin that a single number of a continuous column has: next to nothing, but asked for.
POINT = 1e-12

Cut: TypeAlias = tuple[float, int]


@dataclass(frozen=True)
class Region:
    """Some values of an attribute.

    Attributes
    ----------
    column : str
    attribute : Numeric or Categorical
    runs : tuple of (cut, cut)
        The numbers that it covers in bins: disjoint and ascending.
    cells : frozenset of int
        The other codes: categories, special values, missing.
    """

    column: str = field(compare=False)
    attribute: Attribute = field(compare=False)
    runs: tuple[tuple[Cut, Cut], ...]
    cells: frozenset[int]

    def __bool__(self) -> bool:
        return bool(self.runs or self.cells)

    def intersect(self, other: Region) -> Region:
        """What both regions cover."""
        runs = _common(self.runs, other.runs) if self.runs and other.runs else ()
        return replace(self, runs=tuple(runs), cells=self.cells & other.cells)

    def without(self, other: Region) -> Region:
        """What this region covers and the other does not."""
        cuts = [_LEAST, *(cut for run in other.runs for cut in run), _MOST]
        between = [pair for pair in zip(cuts[::2], cuts[1::2], strict=True) if pair[0] < pair[1]]
        found = tuple(_common(self.runs, between))
        return replace(self, runs=found, cells=self.cells - other.cells)

    def joined(self, other: Region) -> Region:
        """What any of the two regions covers."""
        runs: list[tuple[Cut, Cut]] = []
        for start, stop in sorted([*self.runs, *other.runs]):
            if runs and start <= runs[-1][1]:
                start, stop = runs[-1][0], max(stop, runs.pop()[1])
            runs.append((start, stop))
        return replace(self, runs=tuple(runs), cells=self.cells | other.cells)

    def clipped(self, low: float, high: float) -> Region:
        """What it covers of the numbers from low to high, and of what is missing."""
        assert isinstance(self.attribute, Numeric)
        runs, cells = _between(self.attribute, low, high)
        return self.intersect(replace(self, runs=runs, cells=cells | {self.attribute.n_values}))

    def extent(self) -> tuple[float, float]:
        """The smallest and the largest number that it covers; no end if it covers the missing."""
        assert isinstance(self.attribute, Numeric)
        if self.attribute.n_values in self.cells or not self:
            return -math.inf, math.inf
        held, (starts, stops) = self.attribute.contents, self.ends
        if isinstance(held, Points):
            starts, stops = held.grid.value(starts), held.grid.value(stops - 1)
        own = [self.attribute.special[code - self.attribute.bins] for code in self.cells]
        return min([*starts[:1].tolist(), *own]), max([*stops[-1:].tolist(), *own])

    def without_missing(self) -> Region:
        """What it covers of the values that are there."""
        return replace(self, cells=self.cells - {self.attribute.n_values})

    @functools.cached_property
    def _weights(self) -> FloatArray:
        found = np.zeros(self.attribute.size)
        found[[*self.cells]] = 1.0
        if isinstance(self.attribute, Numeric):
            found[: self.attribute.bins] = self._covered[0]
        found.flags.writeable = False
        return found

    def weights(self) -> FloatArray:
        """Share of each code that it covers."""
        return self._weights

    def moment(self) -> FloatArray:
        """The same times the mean of the values that it covers; 0 for what is missing."""
        if isinstance(self.attribute, Numeric):
            special = np.concatenate([np.zeros(self.attribute.bins), self.attribute.special, [0.0]])
            found = self.weights() * special[: self.attribute.size]
            found[: self.attribute.bins] = self._covered[1]
            return found
        assert isinstance(self.attribute, Categorical)
        if any(isinstance(value, str) for value in self.attribute.categories):
            raise ValueError(
                f"Column {self.column!r} has categories that are not numbers, so it has no sum or "
                "mean. Count its categories instead."
            )
        values = np.array([*self.attribute.categories, 0.0], dtype=np.float64)
        return self.weights() * values[: self.attribute.size]

    @functools.cached_property
    def _covered(self) -> tuple[FloatArray, FloatArray]:
        held = self._held
        share, moment = held.between(*self.ends)
        points = [start[0] for start, stop in self.runs if start[0] == stop[0]]
        if points and not isinstance(held, Points):
            inside = [x for x in points if held.lower <= x <= held.upper]
            where = held.bins.encode(np.array(inside, dtype=np.float64))
            share[where] = np.maximum(share[where], POINT)
            moment[where] = np.where(share[where] > POINT, moment[where], POINT * np.array(inside))
        return share, moment

    @property
    def _held(self) -> Any:
        assert isinstance(self.attribute, Numeric)
        return self.attribute.contents

    @property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Where runs begin and end, places on a grid; what no attribute reaches is left out."""
        ends = np.array([[start[0], stop[0]] for start, stop in self.runs], dtype=np.float64)
        ends = ends.reshape(-1, 2)
        return ends[:, 0], ends[:, 1]

    @property
    def edges(self) -> FloatArray:
        """Numbers at which runs begin and after which they end, as edges of bins."""
        if isinstance(held := self._held, Points):
            return held.grid.value(np.concatenate(self.ends).astype(np.int64))
        cuts = np.array([cut for run in self.runs for cut in run]).reshape(-1, 2)
        return np.where(cuts[:, 1] > 0, np.nextafter(cuts[:, 0], np.inf), cuts[:, 0])

    def holds(self, numbers: FloatArray) -> BoolArray:
        """Whether it covers numbers of the bins."""
        held, found = self._held, np.zeros(len(numbers), dtype=bool)
        if isinstance(held, Points):
            numbers = held.grid.at_least(np.nan_to_num(numbers)).astype(np.float64)
        for (start, after), (stop, last) in self.runs:
            below = numbers <= stop if last else numbers < stop
            found |= below & (numbers > start if after else numbers >= start)
        return found


_LEAST, _MOST = (-math.inf, 0), (math.inf, 1)


def _common(one: Iterable[tuple[Cut, Cut]], two: Iterable[tuple[Cut, Cut]]) -> Iterator[Any]:
    """What runs of both have in common."""
    rest, others = iter(one), iter(two)
    first, second = next(rest, None), next(others, None)
    while first is not None and second is not None:
        start, stop = max(first[0], second[0]), min(first[1], second[1])
        if start < stop:
            yield start, stop
        if first[1] < second[1]:
            first = next(rest, None)
        else:
            second = next(others, None)


class Schema(Protocol):
    """Columns that conditions may name."""

    @property
    def remembered(self) -> Any:
        """Conditions that were read before: a `skdp.domain.query.Remembered`."""

    def why_not(self, column: str) -> str | None:
        """Why a declared column cannot be asked for; None if it is not declared."""

    def find(self, column: str) -> Any:
        """The attribute of a column that can be asked for."""

    @property
    def known(self) -> tuple[str, ...]:
        """Columns that can be asked for."""


def attribute_of(column: Any, schema: Schema) -> Any:
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


def everything(column: str, attribute: Any) -> Region:
    """The region of no condition."""
    if isinstance(attribute, Categorical):
        return Region(column, attribute, (), frozenset(range(attribute.size)))
    runs = ((_LEAST, _MOST),)
    if isinstance(held := attribute.contents, Points):
        runs = (((held.grid.first, 0), (held.grid.last + 1, 0)),)
    return Region(column, attribute, runs, frozenset(range(attribute.bins, attribute.size)))


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


def region_of_range(column: str, attribute: Any, low: Any, high: Any, strict: str = "") -> Region:
    """Values from low to high; None is an open end, ``strict`` names the ends left out."""
    if isinstance(attribute, Categorical):
        if not attribute.ordered:
            raise ValueError(
                f"Column {column!r} is an unordered Categorical, so it has no range. Ask for a "
                "list of categories, or declare it with ordered=True."
            )
        start, stop = 0, attribute.n_values - 1
        if not (low is None or low == -math.inf):
            start = _code(column, attribute, low)
        if not (high is None or high == math.inf):
            stop = _code(column, attribute, high)
        if start > stop:
            raise _reversed(column, low, high)
        codes = range(start + ("<" in strict), stop + 1 - (">" in strict))
        return Region(column, attribute, (), frozenset(codes))
    left = -math.inf if low is None else attribute.number(low, column)
    right = math.inf if high is None else attribute.number(high, column)
    if left > right:
        raise _reversed(column, low, high)
    return Region(column, attribute, *_between(attribute, left, right, strict))


def _between(
    attribute: Numeric, left: float, right: float, strict: str = ""
) -> tuple[tuple[tuple[Cut, Cut], ...], frozenset[int]]:
    """Runs and cells of the numbers from left to right."""
    cells = frozenset(
        attribute.bins + place
        for place, value in enumerate(attribute.special)
        if (left < value if "<" in strict else left <= value)
        and (value < right if ">" in strict else value <= right)
    )
    after, last = int("<" in strict), int(">" not in strict)
    begin: Cut = float(left), after
    end: Cut = float(right), last
    if isinstance(held := attribute.contents, Points):
        begin, end = (_place(held.grid, left, after), 0), (_place(held.grid, right, last), 0)
    return ((begin, end),) if begin < end else (), cells


def _place(grid: Grid, x: float, after: int) -> int:
    """Place of the smallest number of a grid that is at least x, or above it."""
    # The ends may be infinite, and integers beyond all floats.
    if x < grid.first / grid.denominator:
        return grid.first
    if x > grid.last / grid.denominator:
        return grid.last + 1
    # The product is off by one place at most.
    place = math.floor(x * grid.denominator) - 1
    while place / grid.denominator < x or (after and place / grid.denominator == x):
        place += 1
    return place


def _reversed(column: str, low: Any, high: Any) -> ValueError:
    return ValueError(
        f"The range for column {column!r} is reversed: it goes from {low!r} to {high!r}. "
        "Write the lower end first."
    )


def region_of_values(column: str, attribute: Any, values: Iterable[Any]) -> Region:
    """Any of the values; None is the missing cell."""
    cells: set[int] = set()
    runs: set[tuple[Cut, Cut]] = set()
    special = {value: code for code, value in enumerate(getattr(attribute, "special", ()))}
    for value in values:
        if value is None:
            if not attribute.nullable:
                raise ValueError(
                    f"Column {column!r} has no missing cell to ask for: it is declared without "
                    "nullable=True."
                )
            cells.add(attribute.n_values)
        elif isinstance(attribute, Categorical):
            cells.update(_codes(column, attribute, value))
        elif (number := attribute.number(value, column)) in special:
            cells.add(attribute.bins + special[number])
        else:
            runs.add(_run_of(column, attribute, number))
    region = Region(column, attribute, tuple(sorted(runs)), frozenset(cells))
    return region.intersect(everything(column, attribute))


def _run_of(column: str, attribute: Numeric, number: float) -> tuple[Cut, Cut]:
    """The run of a single number."""
    held = attribute.contents
    if not isinstance(held, Points):
        return (float(number), 0), (float(number), 1)
    place = _place(held.grid, number, 0)
    inside = held.grid.first <= place <= held.grid.last
    if attribute.integer and isinstance(number, float) and not number.is_integer():
        raise ValueError(
            f"Column {column!r} holds integers, so no record has the value {number!r}. "
            "Ask for an integer or a range."
        )
    if inside and attribute.lower <= number and float(held.grid.value(place)) != number:
        raise ValueError(
            f"Column {column!r} has values in steps of {digits(held.grid.step())}, and {number!r} "
            "is none of them. Ask for one of them or a range."
        )
    if number < attribute.lower or number > attribute.upper:
        place = held.grid.last + 1
    return (place, 0), (place + 1, 0)


def region_of_comparison(column: str, attribute: Any, operator: str, value: Any) -> Region:
    """The region of ``column operator value``."""
    if operator in ("in", "not in") and not isinstance(value, list):
        raise ValueError(
            f"'{operator}' on column {column!r} needs a list, as in "
            f"{column} {operator} [{value!r}]."
        )
    # As in pandas, == [..] means in.
    if operator in ("in", "=="):
        return region_of_values(column, attribute, value if isinstance(value, list) else [value])
    if operator in ("not in", "!="):
        listed = value if isinstance(value, list) else [value]
        return everything(column, attribute).without(region_of_values(column, attribute, listed))
    if isinstance(value, list):
        raise ValueError(f"Column {column!r} cannot be compared by '{operator}' with a list.")
    if value is None:
        raise ValueError(
            f"Missing values of column {column!r} have no order: compare None with == or !=."
        )
    if operator in ("<", "<="):
        return region_of_range(column, attribute, None, value, ">" if operator == "<" else "")
    return region_of_range(column, attribute, value, None, "<" if operator == ">" else "")
