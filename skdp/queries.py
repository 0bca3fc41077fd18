"""Queries: a dict or a string becomes one weight vector for each constrained attribute.

A query is a conjunction of one condition per attribute, so that its answer on a box of the domain
is a product over the attributes. A weight is the share of a code's cell that the condition covers:
1 or 0 for a category, something between for a bin that a range cuts through.

Two forms are read::

    {"age": (30, 40), "sex": "Female", "job": ["clerk", "cook"]}
    "30 <= age <= 40 and sex == 'Female' and job in ['clerk', 'cook']"

Strings go through the tokenizer and parser of this module; nothing in them is ever executed.
"""

from __future__ import annotations

import difflib
import math
import numbers
import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np

from .domain import Categorical, Domain, Numeric

__all__ = ["first_moment", "parse"]

Query = Mapping[str, Any] | str | None

# Positions closer than this (in bins) to an edge are on the edge: 0.3 is meant as the edge that
# float arithmetic puts at 0.30000000000000004.
_EDGE = 1e-9


def parse(query: Query, domain: Domain) -> dict[int, np.ndarray]:
    """Weights of a query, one vector for each attribute that it constrains.

    Parameters
    ----------
    query : dict, str or None
        None and the empty dict ask for all records. In a dict the value for a column is

        - a tuple ``(a, b)``: the closed range from a to b. ``None`` or an infinity leaves an end
          open. On a continuous `Numeric` a partly covered bin counts in proportion, so a range of
          length zero covers nothing; on ``integer=True`` the range means the integers from a to b,
          and a partly covered bin counts by its share of integers; on an ordered `Categorical` the
          categories from a to b. A range never contains the missing cell.
        - a list, set or array: any of these values (``None`` in it is the missing cell).
        - a scalar: this value; in a `Categorical` with a taxonomy the name of a group stands for
          all categories in it. A continuous `Numeric` refuses scalars and lists: a single number
          has no share of a bin, ask for a range.
        - None: the missing cell, if the attribute is nullable.

        A string is written as for ``DataFrame.query``: ``=``, ``==``, ``!=``, ``<``, ``<=``,
        ``>``, ``>=``, ``in``, ``not in``, chains such as ``30 <= age < 40``, joined by ``and`` or
        ``&``, parentheses round a condition, backticks round odd column names, ``None`` for the
        missing cell. On a continuous column ``<`` and ``<=`` are the same. Several conditions on
        one column intersect; conditions that contradict each other give weight zero everywhere.
        As in pandas, ``!=`` and ``not in`` keep missing values and the comparisons drop them.
    domain : Domain
        The public schema.

    Returns
    -------
    dict of int to ndarray of float64
        Position of the attribute in the domain -> vector of its ``size`` weights in [0, 1].

    Raises
    ------
    ValueError
        Unknown column, unknown category, reversed range, a comparison that the attribute does not
        support, or a string that cannot be read; the message says where and what to do.
    TypeError
        If the query is neither a dict nor a string.

    Examples
    --------
    >>> from skdp import Categorical, Domain, Numeric
    >>> domain = Domain({"pay": Numeric(0, 80, bins=4), "sex": Categorical(["F", "M"])})
    >>> parse("10 <= pay < 50 and sex == 'F'", domain)
    {0: array([0.5, 1. , 0.5, 0. ]), 1: array([1., 0.])}
    """
    regions = _regions(query, domain)
    return {axis: region.weights() for axis, region in sorted(regions.items())}


def first_moment(
    query: Query, domain: Domain, column: str
) -> tuple[dict[int, np.ndarray], np.ndarray]:
    """Weights of a query, and the same for one column with every cell weighted by its value.

    Parameters
    ----------
    query : dict, str or None
        As in `parse`.
    domain : Domain
    column : str
        A `Numeric`, or a `Categorical` whose categories are numbers.

    Returns
    -------
    weights : dict of int to ndarray of float64
        As from `parse`; it always has a vector for ``column``, with 0 for the missing cell.
    moment : ndarray of float64
        For each code of ``column`` its weight times the mean of the values covered: the middle of
        the covered part of a bin, the mean of the covered integers, the category itself.

    Raises
    ------
    ValueError
        As in `parse`, or if ``column`` has no numbers.
    """
    regions = _regions(query, domain)
    axis = _axis(column, domain)
    region = regions.setdefault(axis, _everything(column, domain.attributes[axis]))
    regions[axis] = region = region.without_missing()
    moment = region.moment()
    return {axis: region.weights() for axis, region in sorted(regions.items())}, moment


# --------------------------------------------------------------------------------------------------
# Regions: what a conjunction of conditions leaves of one attribute


@dataclass(frozen=True)
class _Continuous:
    """An interval [low, high] of a continuous attribute, and its missing cell or not."""

    attribute: Numeric
    low: float
    high: float
    missing: bool

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
        start, stop = (
            _snap((min(max(end, lower), upper) - lower) / (upper - lower) * bins)
            for end in (self.low, self.high)
        )
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

    def _with_missing(self, weights: np.ndarray) -> np.ndarray:
        return np.append(weights, float(self.missing)) if self.attribute.nullable else weights


@dataclass(frozen=True)
class _Integer:
    """Integers from low to high, among ``only`` (if given), except ``never``."""

    attribute: Numeric
    low: int
    high: int
    missing: bool
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

    def _with_missing(self, weights: np.ndarray) -> np.ndarray:
        return np.append(weights, float(self.missing)) if self.attribute.nullable else weights


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


_Region = _Continuous | _Integer | _Categories


def _snap(position: float) -> float:
    nearest = round(position)
    return float(nearest) if abs(position - nearest) < _EDGE else position


def _axis(column: Any, domain: Domain) -> int:
    if column in domain:
        return domain.index(column)
    names = domain.names
    close = difflib.get_close_matches(str(column), names, n=1)
    shown = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"The domain has no column {column!r}.{hint} It has {shown}.")


def _everything(column: str, attribute: Numeric | Categorical) -> _Region:
    if isinstance(attribute, Categorical):
        return _Categories(column, attribute, np.ones(attribute.size, dtype=bool))
    if attribute.integer:
        return _Integer(attribute, int(attribute.lower), int(attribute.upper), True)
    return _Continuous(attribute, -math.inf, math.inf, True)


def _missing(column: str, attribute: Numeric | Categorical) -> _Region:
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


def _range(
    column: str, attribute: Numeric | Categorical, low: Any, high: Any, strict: str = ""
) -> _Region:
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


def _values(
    column: str, attribute: Numeric | Categorical, values: Iterable[Any], negate: bool = False
) -> _Region:
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


def _compare(column: str, attribute: Numeric | Categorical, operator: str, value: Any) -> _Region:
    """The region of ``column operator value``."""
    if operator in ("in", "not in"):
        if not isinstance(value, list):
            raise ValueError(
                f"'{operator}' on column {column!r} needs a list, as in "
                f"{column} {operator} [{value!r}]."
            )
        return _values(column, attribute, value, negate=operator == "not in")
    if isinstance(value, list):
        if operator in ("==", "!="):  # as in pandas: == [..] means in
            return _values(column, attribute, value, negate=operator == "!=")
        raise ValueError(f"Column {column!r} cannot be compared by '{operator}' with a list.")
    if operator in ("==", "!="):
        return _values(column, attribute, [value], negate=operator == "!=")
    if value is None:
        raise ValueError(
            f"Missing values of column {column!r} have no order: compare None with == or !=."
        )
    if operator in ("<", "<="):
        return _range(column, attribute, None, value, ">" if operator == "<" else "")
    return _range(column, attribute, value, None, "<" if operator == ">" else "")


def _from_dict(query: Mapping[str, Any], domain: Domain) -> dict[int, _Region]:
    regions: dict[int, _Region] = {}
    for column, value in query.items():
        axis = _axis(column, domain)
        attribute = domain.attributes[axis]
        if isinstance(value, tuple):
            if len(value) != 2:
                raise ValueError(
                    f"The range for column {column!r} must be a tuple (low, high), got {value!r}. "
                    "For a set of values use a list."
                )
            regions[axis] = _range(column, attribute, *value)
        elif isinstance(value, list | AbstractSet | range):
            regions[axis] = _values(column, attribute, value)
        elif isinstance(value, Mapping):
            raise ValueError(f"The condition on column {column!r} cannot be a dict: {value!r}.")
        elif hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0:
            regions[axis] = _values(column, attribute, value.tolist())
        else:
            regions[axis] = _values(column, attribute, [value])
    return regions


def _regions(query: Query, domain: Domain) -> dict[int, _Region]:
    if query is None:
        return {}
    if isinstance(query, str):
        return _Parser(query, domain).regions()
    if isinstance(query, Mapping):
        return _from_dict(query, domain)
    raise TypeError(
        f"A query must be a dict or a string, got {query!r} of type {type(query).__name__}."
    )


# --------------------------------------------------------------------------------------------------
# Strings

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])
      | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<quoted>`(?:[^`]|``)+`)
      | (?P<name>[^\W\d]\w*)
      | (?P<symbol>==|!=|<=|>=|<>|&&|\|\||[=<>()\[\],&|+\-~!])
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", "'": "'", '"': '"', "\n": ""}
_CONSTANTS = {"True": True, "False": False, "None": None}
_MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_MAX_DEPTH = 50


@dataclass(frozen=True)
class _Column:
    """A column name in a query string."""

    name: str
    position: int


class _Parser:
    """Recursive descent over one query string; ``regions`` gives what it asks for."""

    def __init__(self, text: str, domain: Domain) -> None:
        self.text = text
        self.domain = domain
        self.tokens = self._tokenize()
        self.at = 0
        self.depth = 0
        self.found: dict[int, _Region] = {}

    def regions(self) -> dict[int, _Region]:
        if len(self.tokens) == 1:
            raise self._error("the query is empty; use None or {} to ask for all records", 0)
        self._conjunction()
        kind, value, position = self.tokens[self.at]
        if kind != "end":
            raise self._unexpected(kind, value, position)
        return self.found

    def _tokenize(self) -> list[tuple[str, Any, int]]:
        tokens: list[tuple[str, Any, int]] = []
        position, end = 0, len(self.text.rstrip())
        while position < end:
            match = _TOKEN.match(self.text, position)
            if match is None:
                start = position + len(self.text[position:]) - len(self.text[position:].lstrip())
                raise self._unreadable(start)
            kind = str(match.lastgroup)
            raw, start = match.group(kind), match.start(kind)
            value: Any = raw
            if kind == "number":
                value = self._read_number(raw, start)
            elif kind == "text":
                value = self._unescape(raw[1:-1], start)
            elif kind == "quoted":
                value = raw[1:-1].replace("``", "`")
            elif kind == "symbol":
                value = {"=": "==", "&&": "&", "||": "|", "<>": "!="}.get(raw, raw)
            tokens.append((kind, value, start))
            position = match.end()
        tokens.append(("end", "", end))
        return tokens

    def _read_number(self, raw: str, start: int) -> int | float:
        try:
            return int(raw) if re.fullmatch(r"[\d_]+", raw) else float(raw)
        except ValueError:
            raise self._error(f"{raw[:40]!r} is not a number", start) from None

    def _unescape(self, body: str, start: int) -> str:
        def replace(match: re.Match[str]) -> str:
            escape = match.group(1)
            if len(escape) > 1:
                point = int(escape[1:], 16)
                if point > 0x10FFFF:
                    raise self._error(f"\\{escape} is not a character", start)
                return chr(point)
            return _ESCAPES.get(escape, "\\" + escape)

        return _ESCAPE.sub(replace, body)

    def _unreadable(self, position: int) -> ValueError:
        character = self.text[position]
        if character in "'\"`":
            return self._error("a quotation mark is never closed", position)
        if character == "@":
            return self._error(
                "'@' variables are not looked up; put the value into the text, or use a dict",
                position,
            )
        if character.isdigit() or character == ".":
            return self._error(
                "not a number; a column name that is not an identifier goes between backticks",
                position,
            )
        return self._error(
            f"unexpected {character!r}; a column name that is not an identifier goes between "
            "backticks",
            position,
        )

    def _error(self, reason: str, position: int) -> ValueError:
        return ValueError(f"Cannot read the query {self.text!r} at position {position}: {reason}.")

    def _unexpected(self, kind: str, value: Any, position: int) -> ValueError:
        if kind == "end":
            return self._error("it ends too early", position)
        if value in ("or", "|") and kind in ("name", "symbol"):
            return self._error(
                "'or' is not supported, a query is a conjunction; for several values of one "
                "column use 'in', otherwise ask two queries, add the answers, and subtract the "
                "answer to both conditions at once",
                position,
            )
        if kind == "symbol" and value in ("+", "-"):
            return self._error(
                "arithmetic is not supported; a column name with a sign in it goes between "
                "backticks",
                position,
            )
        shown = f"the column name `{value}`" if kind == "quoted" else repr(value)
        return self._error(f"unexpected {shown}", position)

    def _symbol(self, *symbols: str) -> str | None:
        """Take the next token if it is one of these symbols."""
        kind, value, _ = self.tokens[self.at]
        if kind == "symbol" and value in symbols:
            self.at += 1
            return str(value)
        return None

    def _word(self, word: str) -> bool:
        """Take the next token if it is this word."""
        if self.tokens[self.at][:2] == ("name", word):
            self.at += 1
            return True
        return False

    def _conjunction(self) -> None:
        self._term()
        while self._word("and") or self._symbol("&"):
            self._term()

    def _term(self) -> None:
        kind, value, position = self.tokens[self.at]
        if (kind == "name" and value == "not") or (kind == "symbol" and value in ("~", "!")):
            raise self._error("negation is not supported; use '!=' or 'not in'", position)
        if self._symbol("("):
            self.depth += 1
            if self.depth > _MAX_DEPTH:
                raise self._error("too many parentheses inside each other", position)
            self._conjunction()
            if not self._symbol(")"):
                raise self._unexpected(*self.tokens[self.at])
            self.depth -= 1
            return
        self._chain(position)

    def _chain(self, start: int) -> None:
        """Comparisons such as ``a < x <= b``; each has a column on one side only."""
        left = self._operand()
        operators: list[tuple[_Column, str, Any]] = []
        while (operator := self._operator()) is not None:
            position = self.tokens[self.at][2]
            right = self._operand()
            if isinstance(left, _Column) == isinstance(right, _Column):
                raise self._error(
                    "a comparison needs a column on one side and a value on the other", position
                )
            if isinstance(left, _Column):
                operators.append((left, operator, right))
            elif operator in _MIRROR and isinstance(right, _Column):
                operators.append((right, _MIRROR[operator], left))
            else:
                raise self._error(f"'{operator}' needs the column on its left side", position)
            left = right
        if not operators:
            if isinstance(left, _Column) and self.tokens[self.at][0] == "end":
                raise self._error(
                    f"column {left.name!r} is not compared with anything; write for example "
                    f"{left.name} == True",
                    start,
                )
            raise self._unexpected(*self.tokens[self.at])
        self._check_ends(operators)
        for column, operator, value in operators:
            axis = _axis(column.name, self.domain)
            region = _compare(column.name, self.domain.attributes[axis], operator, value)
            known = self.found.get(axis)
            # Regions of one attribute are of one kind, which the type checker cannot see.
            self.found[axis] = region if known is None else known.intersect(region)  # type: ignore[arg-type]

    def _check_ends(self, operators: list[tuple[_Column, str, Any]]) -> None:
        """Refuse a reversed range written as one chain, ``40 <= x <= 30``."""
        ends: dict[str, tuple[Any, str]] = {}
        for column, operator, value in operators:
            if operator[0] in "<>" and value is not None and not isinstance(value, list):
                ends[operator[0]] = (value, column.name)
        if len(ends) == 2 and ends["<"][1] == ends[">"][1]:
            column_name = ends["<"][1]
            attribute = self.domain.attributes[_axis(column_name, self.domain)]
            _range(column_name, attribute, ends[">"][0], ends["<"][0])

    def _operator(self) -> str | None:
        symbol = self._symbol("==", "!=", "<=", ">=", "<", ">")
        if symbol is not None:
            return symbol
        if self._word("in"):
            return "in"
        if self.tokens[self.at][:2] == ("name", "not"):
            if self.tokens[self.at + 1][:2] == ("name", "in"):
                self.at += 2
                return "not in"
            raise self._unexpected(*self.tokens[self.at])
        return None

    def _operand(self) -> Any:
        """A column, a value, or a list of values."""
        kind, value, position = self.tokens[self.at]
        if kind == "symbol" and value in ("[", "("):
            return self._list("]" if value == "[" else ")")
        if kind == "quoted" or (
            kind == "name" and value not in _CONSTANTS and value not in ("and", "or", "in", "not")
        ):
            self.at += 1
            try:
                _axis(value, self.domain)
            except ValueError as error:
                hint = " Text goes between quotation marks." if kind == "name" else ""
                raise ValueError(
                    f"Cannot read the query {self.text!r} at position {position}: {error}{hint}"
                ) from None
            return _Column(value, position)
        return self._literal()

    def _literal(self) -> Any:
        sign = self._symbol("-", "+")
        kind, value, position = self.tokens[self.at]
        if kind == "number":
            self.at += 1
            return -value if sign == "-" else value
        if sign is not None:
            raise self._error("a sign must stand before a number", position)
        if kind == "text":
            self.at += 1
            return value
        if kind == "name" and value in _CONSTANTS:
            self.at += 1
            return _CONSTANTS[value]
        raise self._unexpected(kind, value, position)

    def _list(self, closing: str) -> list[Any]:
        self.at += 1
        values: list[Any] = []
        while not self._symbol(closing):
            if values and not self._symbol(","):
                raise self._unexpected(*self.tokens[self.at])
            if values and self._symbol(closing):  # a trailing comma
                break
            values.append(self._literal())
        return values
