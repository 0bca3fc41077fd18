"""Regions: the part of one attribute that a condition covers, as a weight for each code."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import snapped
from ..domain import Categorical, Domain, Numeric


@dataclass(frozen=True)
class _Numbers:
    """Numbers of an attribute, and its missing cell or not."""

    attribute: Numeric
    low: float
    high: float
    missing: bool

    def _with_missing(self, weights: np.ndarray) -> np.ndarray:
        return np.append(weights, float(self.missing)) if self.attribute.nullable else weights


class _Continuous(_Numbers):
    """An interval [low, high] of a continuous attribute."""

    def intersect(self, other: _Continuous) -> _Continuous:
        return _Continuous(
            self.attribute,
            max(self.low, other.low),
            min(self.high, other.high),
            self.missing and other.missing,
        )

    def without_missing(self) -> _Continuous:
        return _Continuous(self.attribute, self.low, self.high, False)

    def _covered(self) -> tuple[np.ndarray, np.ndarray]:
        """Covered part of every bin, in bin units from the lower bound."""
        lower, upper, bins = self.attribute.lower, self.attribute.upper, self.attribute.bins
        ends = [min(max(end, lower), upper) for end in (self.low, self.high)]
        start, stop = snapped([(end - lower) / (upper - lower) * bins for end in ends]).tolist()
        if self.high < lower or self.low > upper:  # outside: covers nothing
            start, stop = 0.0, 0.0
        left = np.arange(bins, dtype=np.float64)
        return np.maximum(left, start), np.minimum(left + 1.0, max(stop, start))

    def weights(self) -> np.ndarray:
        begin, end = self._covered()
        return self._with_missing(np.clip(end - begin, 0.0, 1.0))

    def moment(self) -> np.ndarray:
        begin, end = self._covered()
        lower, upper = self.attribute.lower, self.attribute.upper
        middle = lower + (begin + end) / 2 * ((upper - lower) / self.attribute.bins)
        return self._with_missing(np.clip(end - begin, 0.0, 1.0) * middle)


@dataclass(frozen=True)
class _Integer(_Numbers):
    """Integers from low to high, among ``only`` (if given), except ``never``."""

    low: int
    high: int
    only: frozenset[int] | None = None
    never: frozenset[int] = frozenset()

    def intersect(self, other: _Integer) -> _Integer:
        only = self.only if other.only is None else other.only
        if self.only is not None and other.only is not None:
            only = self.only & other.only
        return _Integer(
            self.attribute,
            max(self.low, other.low),
            min(self.high, other.high),
            self.missing and other.missing,
            only,
            self.never | other.never,
        )

    def without_missing(self) -> _Integer:
        return _Integer(self.attribute, self.low, self.high, False, self.only, self.never)

    def _counts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Per bin: integers covered, their sum, integers in all."""
        edges = self.attribute.edges
        first, stop = edges[:-1], edges[1:]
        if self.only is None:
            begin = np.maximum(first, self.low)
            number = np.maximum(np.minimum(stop, self.high + 1) - begin, 0)
            total = number * (begin + (number - 1) / 2.0)
            chosen, sign = self.never, -1
        else:
            number = np.zeros(len(first), dtype=np.int64)
            total = np.zeros(len(first))
            chosen, sign = self.only - self.never, 1
        values = np.array(
            [value for value in sorted(chosen) if self.low <= value <= self.high], dtype=np.int64
        )
        bins = np.searchsorted(edges, values, side="right") - 1
        number = number + sign * np.bincount(bins, minlength=len(first))
        total = total + sign * np.bincount(bins, weights=values, minlength=len(first))
        return number, total, stop - first

    def weights(self) -> np.ndarray:
        number, _, size = self._counts()
        return self._with_missing(number / size)

    def moment(self) -> np.ndarray:
        _, total, size = self._counts()
        return self._with_missing(total / size)


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


Region = _Continuous | _Integer | _Categories
# The kinds of regions of numbers, for those who draw from them.
RealNumbers, WholeNumbers = _Continuous, _Integer


def axis_of(column: Any, domain: Domain) -> int:
    """Position of a column, with a hint where it is misspelt."""
    if column in domain:
        return domain.index(column)
    names = domain.names
    close = difflib.get_close_matches(str(column), names, n=1)
    shown = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"The domain has no column {column!r}.{hint} It has {shown}.")


def everything(column: str, attribute: Numeric | Categorical) -> Region:
    """The region of no condition."""
    if isinstance(attribute, Categorical):
        return _Categories(column, attribute, np.ones(attribute.size, dtype=bool))
    if attribute.integer:
        return _Integer(attribute, int(attribute.lower), int(attribute.upper), True)
    return _Continuous(attribute, -math.inf, math.inf, True)


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
    if attribute.integer:
        return _Integer(attribute, 1, 0, True)
    return _Continuous(attribute, math.inf, -math.inf, True)


def _number(column: str, value: Any) -> float | int:
    """A real number; integers stay exact."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise ValueError(
            f"Column {column!r} is numeric and cannot be compared with {value!r} of type "
            f"{type(value).__name__}."
        )
    if isinstance(value, numbers.Integral):
        return int(value)
    number = float(value)
    if math.isnan(number):
        raise ValueError(
            f"Column {column!r} cannot be compared with nan. For missing values ask for None, if "
            "the column is nullable."
        )
    return number


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
    left = -math.inf if low is None else _number(column, low)
    right = math.inf if high is None else _number(column, high)
    if left > right:
        raise _reversed(column, low, high)
    if not attribute.integer:
        return _Continuous(attribute, float(left), float(right), False)
    lower, upper = int(attribute.lower), int(attribute.upper)
    # Bounded to the domain before becoming integers: the ends may be infinite.
    if left > upper or right < lower:
        return _Integer(attribute, 1, 0, False)
    first = lower if left < lower else math.floor(left) + 1 if "<" in strict else math.ceil(left)
    last = upper if right > upper else math.ceil(right) - 1 if ">" in strict else math.floor(right)
    return _Integer(attribute, max(first, lower), min(last, upper), False)


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
    if not attribute.integer:
        if present:
            raise ValueError(
                f"Column {column!r} is continuous: the single value {present[0]!r} has no share of "
                "a bin. Ask for a range, (low, high)."
            )
        if negate:
            return _Continuous(attribute, -math.inf, math.inf, not missing)
        return _Continuous(attribute, math.inf, -math.inf, missing)
    asked = [_number(column, value) for value in present]
    odd = [number for number in asked if math.isinf(number) or number != math.floor(number)]
    if odd:
        raise ValueError(
            f"Column {column!r} holds integers, so no record has the value {odd[0]!r}. "
            "Ask for an integer or a range."
        )
    chosen = frozenset(int(number) for number in asked)
    lower, upper = int(attribute.lower), int(attribute.upper)
    if negate:
        return _Integer(attribute, lower, upper, not missing, None, chosen)
    return _Integer(attribute, lower, upper, missing, chosen)


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
