"""Regions: the part of one attribute that a condition covers, as a weight for each code.

The numbers of a region lie between cuts, each the first number that is covered, or the first that
is no more: after x comes the next float, and on a grid cuts are places. So regions are joined, cut
and turned round by comparing cuts, for integers and real numbers alike.
"""

from __future__ import annotations

import bisect
import difflib
import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from operator import and_, or_, xor
from typing import Any

import numpy as np

from .._validation import FloatArray
from .attributes import Attribute, Categorical
from .numeric import Numeric


@dataclass(frozen=True)
class Region:
    """Some values of an attribute. Regions of one column are combined by ``&``, ``|`` and ``^``.

    Attributes
    ----------
    column : str
    attribute : Numeric or Categorical
    cuts : tuple of float
        Where the numbers of bins that it covers begin and end, in turn, ascending.
    cells : frozenset of int
        The other codes: categories, special values, missing.
    """

    column: str = field(compare=False)
    attribute: Attribute = field(compare=False)
    cuts: tuple[float, ...]
    cells: frozenset[int]

    def __bool__(self) -> bool:
        return bool(self.cuts or self.cells)

    def _combined(self, other: Region, by: Callable[[Any, Any], Any]) -> Region:
        kept: list[float] = []
        for cut in sorted({*self.cuts, *other.cuts}):
            # After an odd number of its cuts a number is covered.
            inside = by(*(bisect.bisect(each.cuts, cut) % 2 for each in (self, other)))
            if inside != len(kept) % 2:
                kept.append(cut)
        return Region(self.column, self.attribute, tuple(kept), by(self.cells, other.cells))

    def __and__(self, other: Region) -> Region:
        return self._combined(other, and_)

    def __or__(self, other: Region) -> Region:
        return self._combined(other, or_)

    def __xor__(self, other: Region) -> Region:
        return self._combined(other, xor)

    @functools.cached_property
    def complement(self) -> Region:
        """What it does not cover."""
        return everything(self.column, self.attribute) ^ self

    @property
    def without_missing(self) -> Region:
        """What it covers of the values that are there."""
        return replace(self, cells=self.cells - {self.attribute.n_values})

    def extent(self) -> tuple[float, float]:
        """The smallest and the largest number that it covers; no end if it covers the missing."""
        if self.attribute.n_values in self.cells or not self:
            return -math.inf, math.inf
        assert isinstance(self.attribute, Numeric)
        held, (starts, stops) = self.attribute.contents, self.runs
        ends = held.after(starts[:1]), held.before(stops[-1:])
        numbers = np.concatenate([*ends, self.attribute.means()[[*self.cells]]])
        return float(numbers.min()), float(numbers.max())

    @functools.cached_property
    def weights(self) -> FloatArray:
        """Share of each code that it covers."""
        weigh([self])
        found: FloatArray = vars(self)["weights"]
        return found

    @property
    def moment(self) -> FloatArray:
        """The same times the mean of the values that it covers; 0 for what is missing."""
        attribute, found = self.attribute, np.zeros(self.attribute.size)
        if isinstance(attribute, Numeric):
            found[attribute.bins : attribute.n_values] = attribute.special
            found *= self.weights
            owner = np.zeros(len(self.cuts) // 2, dtype=np.int64)
            found[: attribute.bins] = attribute.contents.between(*self.runs, owner, 1)[1][0]
            return found
        assert isinstance(attribute, Categorical)
        if any(isinstance(value, str) for value in attribute.categories):
            what = f"Column {self.column!r} has categories that are not numbers"
            raise ValueError(f"{what}: no sum or mean. Count its categories instead.")
        found[: attribute.n_values] = attribute.categories
        return found * self.weights

    @property
    def runs(self) -> tuple[FloatArray, FloatArray]:
        """Cuts at which runs of numbers begin and end."""
        cuts = np.array(self.cuts, dtype=np.float64)
        return cuts[::2], cuts[1::2]


def weigh(regions: Iterable[Region]) -> None:
    """Find the weights of regions that have none yet, those of a column together."""
    by_column: dict[int, list[Region]] = {}
    for region in regions:
        if "weights" not in vars(region):
            by_column.setdefault(id(region.attribute), []).append(region)
    for alike in by_column.values():
        attribute = alike[0].attribute
        found = np.zeros((len(alike), attribute.size))
        if isinstance(attribute, Numeric):
            cuts = np.array([cut for each in alike for cut in each.cuts], dtype=np.float64)
            owners = np.repeat(np.arange(len(alike)), [len(each.cuts) // 2 for each in alike])
            shares, _ = attribute.contents.between(cuts[::2], cuts[1::2], owners, len(alike))
            found[:, : attribute.bins] = shares
        for region, weights in zip(alike, found, strict=True):
            if region.cells:
                weights[[*region.cells]] = 1.0
            weights.flags.writeable = False
            vars(region)["weights"] = weights


def known_values(given: Any, known: Iterable[Any]) -> str:
    """What there is, and what of it may have been meant, for a message."""
    by_text = {str(each): each for each in known}
    close = difflib.get_close_matches(str(given), by_text, n=1)
    hint = f" Did you mean {by_text[close[0]]!r}?" if close else ""
    shown = ", ".join(map(repr, [*by_text.values()][:20]))
    return f"{hint} It has {shown}{', ...' if len(by_text) > 20 else ''}."


def everything(column: str, attribute: Any) -> Region:
    """The region of no condition."""
    if isinstance(attribute, Categorical):
        return Region(column, attribute, (), frozenset(range(attribute.size)))
    cuts = tuple(map(attribute.contents.cut, (-math.inf, math.inf)))
    return Region(column, attribute, cuts, frozenset(range(attribute.bins, attribute.size)))


def code_of(column: str, attribute: Categorical, value: Any) -> int:
    """Position of a category."""
    try:
        return attribute.index_of(value)
    except KeyError:
        known = known_values(value, attribute.categories)
        raise ValueError(f"Column {column!r} has no category {value!r}.{known}") from None


def _codes(column: str, attribute: Categorical, value: Any) -> list[int]:
    """Position of a category, or of all categories in a group of the taxonomy."""
    tree = attribute.taxonomy
    if tree is not None and value in tree.labels and value not in attribute.categories:
        leaf_codes = attribute.leaf_codes
        nodes = [node for node, label in enumerate(tree.labels) if label == value]
        return [code for node in nodes for code in leaf_codes[tree.first[node] : tree.last[node]]]
    return [code_of(column, attribute, value)]


def region_of_range(column: str, attribute: Any, low: Any, high: Any, strict: str = "") -> Region:
    """Values from low to high; None is an open end, ``strict`` names the ends left out."""
    ends: list[Any] = [-math.inf, math.inf]
    if isinstance(attribute, Categorical):
        if not attribute.ordered:
            how = "Ask for a list of categories, or declare it with ordered=True."
            raise ValueError(
                f"Column {column!r} is an unordered Categorical, without ranges. {how}"
            )
        ends = [0, attribute.n_values - 1]
    for place, end in enumerate((low, high)):
        if isinstance(attribute, Numeric):
            ends[place] = ends[place] if end is None else attribute.number(end, column)
        elif end not in (None, -math.inf, math.inf):
            ends[place] = code_of(column, attribute, end)
    if ends[0] > ends[1]:
        what = f"it goes from {low!r} to {high!r}. Write the lower end first"
        raise ValueError(f"The range for column {column!r} is reversed: {what}.")
    if isinstance(attribute, Categorical):
        codes = range(ends[0] + ("<" in strict), ends[1] + (">" not in strict))
        return Region(column, attribute, (), frozenset(codes))
    start = math.nextafter(ends[0], math.inf) if "<" in strict else ends[0]
    stop = ends[1] if ">" in strict else math.nextafter(ends[1], math.inf)
    special = enumerate(attribute.special, start=attribute.bins)
    cells = frozenset(code for code, value in special if start <= value < stop)
    cuts = tuple(map(attribute.contents.cut, (start, stop)))
    return Region(column, attribute, cuts if cuts[0] < cuts[1] else (), cells)


def region_of_values(column: str, attribute: Any, values: Iterable[Any]) -> Region:
    """Any of the values; None is the missing cell."""
    cells: set[int] = set()
    runs: set[tuple[float, ...]] = set()
    for value in values:
        if value is None:
            if not attribute.nullable:
                what = f"Column {column!r} has no missing cell to ask for"
                raise ValueError(f"{what}: it is declared without nullable=True.")
            cells.add(attribute.n_values)
        elif isinstance(attribute, Categorical):
            cells.update(_codes(column, attribute, value))
        else:
            one = region_of_range(column, attribute, value, value)
            cells |= one.cells
            runs |= {one.cuts} if not one.cells else set()
    # Where a run begins that another ends at, there is no cut.
    cuts = functools.reduce(xor, map(set, runs), set[float]())
    return Region(column, attribute, tuple(sorted(cuts)), frozenset(cells))


def region_of_comparison(column: str, attribute: Any, operator: str, value: Any) -> Region:
    """The region of ``column operator value``; a list is any of its values, a tuple a range."""
    # As in pandas, == [..] means in.
    if operator in ("in", "not in", "==", "!="):
        if isinstance(value, tuple):
            found = region_of_range(column, attribute, *value)
        else:
            values = value if isinstance(value, list) else [value]
            found = region_of_values(column, attribute, values)
        return found if operator in ("in", "==") else found.complement
    if value is None:
        what = f"Missing values of column {column!r} have no order"
        raise ValueError(f"{what}: compare None with == or !=.")
    if operator in ("<", "<="):
        return region_of_range(column, attribute, None, value, ">" if operator == "<" else "")
    return region_of_range(column, attribute, value, None, "<" if operator == ">" else "")
