"""Conditions on columns: parsed from text or from a dict, as regions, joined by or and not."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._validation import FloatArray
from .regions import (
    POINT,
    Region,
    Schema,
    attribute_of,
    everything,
    region_of_comparison,
    region_of_range,
    region_of_values,
)

# ------------------------------------------------------------------------------------------------
# Conditions joined by and, or, not: rewritten as disjoint conjunctions.
#
# A release answers a conjunction of one condition per column. Any other condition on rows is the
# union of disjoint conjunctions, so that its answer is the sum of theirs: never negative where
# theirs are not, and together with the answer to its negation the number of all records.

# Largest number of columns that are joined, and of conjunctions also on the way to them.
_MAX_COLUMNS = 200
_MAX_PARTS = 1000

# A conjunction: the region of each column that it constrains.
Part = dict[str, Region]


@dataclass(frozen=True, eq=False)
class _Joined:
    """Conditions joined by "and", "or", or one condition after "not"."""

    how: str
    members: tuple[Any, ...]


Node = Region | _Joined


def both(members: Sequence[Node]) -> Node:
    """All of some conditions."""
    return members[0] if len(members) == 1 else _Joined("and", tuple(members))


def either(members: Sequence[Node]) -> Node:
    """Any of some conditions."""
    return members[0] if len(members) == 1 else _Joined("or", tuple(members))


def negated(member: Node) -> Node:
    """The rows that do not satisfy a condition, those with missing values among them."""
    return _Joined("not", (member,))


def conjunctions(node: Node) -> list[Part]:
    """Disjoint conjunctions whose union are the rows that satisfy a condition; at least one.

    Raises
    ------
    ValueError
        If there would be too many.
    """
    found = list(_regions(node))
    whole = {each.column: everything(each.column, each.attribute) for each in found}
    if not _is_plain_and(node):
        if len(whole) > _MAX_COLUMNS:
            raise _too_much()
        # What nothing satisfies is one, too: no value of the first column.
        column, region = next(iter(whole.items()))
        return _parts_of(node, whole) or [{column: region.without(region)}]
    part: Part = {}
    for region in found:
        part[region.column] = part.get(region.column, region).intersect(region)
    return [part]


def _regions(node: Node) -> Iterator[Region]:
    if isinstance(node, Region):
        yield node
        return
    for member in node.members:
        yield from _regions(member)


def _is_plain_and(node: Node) -> bool:
    return isinstance(node, Region) or (node.how == "and" and all(map(_is_plain_and, node.members)))


def _parts_of(node: Node, whole: Part) -> list[Part]:
    """Disjoint parts that satisfy a condition; ``whole`` has all values of each column."""
    if isinstance(node, Region):
        return list(_narrowed({}, node, whole))
    members = [_parts_of(member, whole) for member in node.members]
    if node.how == "not":
        return _merged(_less([{}], members[0], whole), whole)
    found = members[0]
    for more in members[1:]:
        if node.how == "or":
            found = found + _less(more, found, whole)
        else:
            found = [part for one in found for two in more for part in _common(one, two, whole)]
        if len(found) > _MAX_PARTS:
            raise _too_much()
    return _merged(found, whole)


def _narrowed(part: Part, region: Region, whole: Part) -> Iterator[Part]:
    """The part of a part with some values of a column, if there is any."""
    column = region.column
    kept = part.get(column, whole[column]).intersect(region)
    if kept:
        yield {**part, column: kept} if kept != whole[column] else part


def _common(one: Part, two: Part, whole: Part) -> Iterator[Part]:
    found = [one]
    for region in two.values():
        found = [each for part in found for each in _narrowed(part, region, whole)]
    yield from found


def _less(parts: list[Part], others: list[Part], whole: Part) -> list[Part]:
    """What of some parts lies in none of others."""
    for other in others:
        parts = [piece for part in parts for piece in _without(part, other, whole)]
        if len(parts) > _MAX_PARTS:
            raise _too_much()
    return parts


def _without(part: Part, other: Part, whole: Part) -> Iterator[Part]:
    if not list(_common(part, other, whole)):
        yield part
        return
    for column, region in other.items():
        yield from _narrowed(part, whole[column].without(region), whole)
        [part] = _narrowed(part, region, whole)


def _merged(parts: list[Part], whole: Part) -> list[Part]:
    """The same with parts as one that differ in one column only."""
    for column in sorted({column for part in parts for column in part}):
        alike: dict[frozenset[tuple[str, Region]], Region] = {}
        for part in parts:
            rest = frozenset(item for item in part.items() if item[0] != column)
            own = part.get(column, whole[column])
            alike[rest] = alike.get(rest, own).joined(own)
        parts = [each for rest, own in alike.items() for each in _narrowed(dict(rest), own, whole)]
    return parts


def _too_much() -> ValueError:
    return ValueError(
        f"The query is too complicated: with 'or' or 'not' it may take at most {_MAX_COLUMNS} "
        f"columns and {_MAX_PARTS:,} disjoint conjunctions. Ask for parts of it, and add the "
        "answers up."
    )


# ------------------------------------------------------------------------------------------------
# Queries written as text, as for ``DataFrame.query``; nothing in them is ever executed.
#
# The text becomes a tree of `Node`: conditions on single columns, joined by and, or, not.


_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])
      | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<quoted>`(?:[^`]|``)+`)
      | (?P<given>@[^\W\d]\w*)
      | (?P<name>[^\W\d]\w*)
      | (?P<symbol>==|!=|<=|>=|<>|&&|\|\||[=<>()\[\],&|+\-~!])
    )""",
    re.VERBOSE | re.DOTALL,
)


_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", "'": "'", '"': '"', "\n": ""}


_CONSTANTS = {"True": True, "False": False, "None": None}


_MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


# Words of the language; in capitals too, where no column has that name.
_WORDS = ("and", "or", "not", "in", "is", "between", "null")
_RESERVED = ("and", "or", "not", "in")


# Limits of a text: characters, parentheses and negations inside each other, conditions.
_MAX_LENGTH = 1_000_000
_MAX_DEPTH = 50
_MAX_CONDITIONS = 1000
# Characters on each side of an error that a message shows of a long text.
_SHOWN = 100


@dataclass(frozen=True)
class _Column:
    """A column name in a query string."""

    name: str
    position: int


def quoted(name: str) -> str:
    """The name of a column as a query takes it: between backquotes, unless it is a plain word."""
    plain = name.isidentifier() and name.casefold() not in _WORDS
    return name if plain else "`{}`".format(name.replace("`", "``"))


def read_query(text: str, schema: Schema, names: Mapping[str, Any] | None = None) -> Node:
    """The conditions of a text and how they are joined.

    Parameters
    ----------
    text : str
    schema : Schema
        The columns that may be named.
    names : mapping of str to value, default=None
        What ``@name`` in the text stands for.

    Raises
    ------
    ValueError
        If the text cannot be read; the message says where.
    """
    return _QueryText(text, schema, names or {}).read()


class _QueryText:
    """Recursive descent over one query string."""

    def __init__(self, text: str, domain: Schema, names: Mapping[str, Any]) -> None:
        self.text = text
        self.domain = domain
        self.names = names
        if len(text) > _MAX_LENGTH:
            raise ValueError(
                f"A query has at most {_MAX_LENGTH:,} characters, got {len(text):,}. Give a long "
                "list of values by name: 'column in @values'."
            )
        self.tokens = self._tokenize()
        self.at = 0
        self.depth = 0
        self.conditions = 0

    def read(self) -> Node:
        """The whole text."""
        if len(self.tokens) == 1:
            raise self._error("the query is empty; use None or {} to ask for all records", 0)
        found = self._any_of()
        kind, value, position = self.tokens[self.at]
        if kind != "end":
            raise self._unexpected(kind, value, position)
        return found

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
            elif kind == "name":
                # A word of the language in lower case; another name as it is.
                word = raw.lower() if raw.isupper() else raw
                value = word if word in _WORDS and self.domain.find(raw) is None else raw
            elif kind == "given":
                value = raw[1:]
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
            return self._error("'@' stands before the name of a value, as in @limit", position)
        if character == ".":
            return self._error(
                "methods of columns are not supported; write for example 'x is null', "
                "'x between 1 and 2' or 'x in [1, 2]'",
                position,
            )
        if character.isdigit():
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
        return ValueError(f"{self._where(position)}: {reason}.")

    def _where(self, position: int) -> str:
        """Which query cannot be read, and where; of a long one the part around that place."""
        text = self.text
        if len(text) > 2 * _SHOWN:
            start = max(0, position - _SHOWN)
            text = f"{'...' if start else ''}{text[start : position + _SHOWN]}..."
        return f"Cannot read the query {text!r} at position {position}"

    def _unexpected(self, kind: str, value: Any, position: int) -> ValueError:
        if kind == "end":
            return self._error("it ends too early", position)
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

    def _any_of(self) -> Node:
        found = [self._all_of()]
        while self._word("or") or self._symbol("|"):
            found.append(self._all_of())
        return either(found)

    def _all_of(self) -> Node:
        found = [self._term()]
        while self._word("and") or self._symbol("&"):
            found.append(self._term())
        return both(found)

    def _term(self) -> Node:
        """A condition, a negation, or what stands between parentheses."""
        position = self.tokens[self.at][2]
        if self._word("not"):
            with self._deeper(position):
                return negated(self._term())
        if self._symbol("~", "!"):
            kind, value, after = self.tokens[self.at]
            if kind != "symbol" or value not in ("(", "~", "!"):
                # pandas would negate the column alone.
                raise self._error("after '~' come parentheses; or write 'not'", after)
            with self._deeper(position):
                return negated(self._term())
        if self._symbol("("):
            with self._deeper(position):
                found = self._any_of()
            if not self._symbol(")"):
                raise self._unexpected(*self.tokens[self.at])
            return found
        return self._chain(position)

    def _chain(self, start: int) -> Node:
        """Comparisons such as ``a < x <= b``; each has a column on one side only."""
        left = self._operand()
        if isinstance(left, _Column):
            told = self._worded(left)
            if told is not None:
                return told
        operators: list[tuple[_Column, str, Any, int]] = []
        while (operator := self._operator()) is not None:
            position = self.tokens[self.at][2]
            right = self._operand()
            if isinstance(left, _Column) == isinstance(right, _Column):
                raise self._error(
                    "a comparison needs a column on one side and a value on the other", position
                )
            if isinstance(left, _Column):
                operators.append((left, operator, right, position))
            elif operator in _MIRROR and isinstance(right, _Column):
                operators.append((right, _MIRROR[operator], left, start))
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
        self._check_ends(operators, start)
        return both([self._atom(*each) for each in operators])

    def _worded(self, column: _Column) -> Node | None:
        """``is null`` or ``between``, if one of them follows the column."""
        if self._word("is"):
            negative = self._word("not")
            kind, value, position = self.tokens[self.at]
            if kind != "name" or value not in ("null", "None"):
                raise self._error("after 'is' comes 'null' or 'not null'", position)
            self.at += 1
            return self._atom(column, "!=" if negative else "==", None, column.position)
        ahead = self.tokens[self.at + 1 : self.at + 2]
        negative = bool(ahead) and ahead[0][:2] == ("name", "between") and self._word("not")
        if not self._word("between"):
            return None
        position = self.tokens[self.at][2]
        low = self._value()
        if not self._word("and"):
            here = self.tokens[self.at][2]
            raise self._error("'between' needs two ends, as in 'between 1 and 2'", here)
        high = self._value()
        attribute = attribute_of(column.name, self.domain)
        with self._reading_at(position):
            found = region_of_range(column.name, attribute, low, high)
        self._count(position)
        return negated(found) if negative else found

    def _value(self) -> Any:
        """One end of a range."""
        position = self.tokens[self.at][2]
        value = self._operand()
        if isinstance(value, _Column | list) or value is None:
            raise self._error("the end of a range is a value", position)
        return value

    def _atom(self, column: _Column, operator: str, value: Any, position: int) -> Region:
        self._count(position)
        attribute = attribute_of(column.name, self.domain)
        with self._reading_at(position):
            return region_of_comparison(column.name, attribute, operator, value)

    def _count(self, position: int) -> None:
        self.conditions += 1
        if self.conditions > _MAX_CONDITIONS:
            raise self._error(
                f"a query has at most {_MAX_CONDITIONS:,} conditions; for many values of one "
                "column use 'in'",
                position,
            )

    def _check_ends(self, operators: list[tuple[_Column, str, Any, int]], position: int) -> None:
        """Refuse a reversed range written as one chain, ``40 <= x <= 30``."""
        ends: dict[str, tuple[Any, str]] = {}
        for column, operator, value, _ in operators:
            if operator[0] in "<>" and value is not None and not isinstance(value, list):
                ends[operator[0]] = (value, column.name)
        if len(ends) == 2 and ends["<"][1] == ends[">"][1]:
            column_name = ends["<"][1]
            attribute = attribute_of(column_name, self.domain)
            with self._reading_at(position):
                region_of_range(column_name, attribute, ends[">"][0], ends["<"][0])

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
        if kind == "given":
            self.at += 1
            return self._given(value, position)
        if kind == "quoted" or (
            kind == "name" and value not in _CONSTANTS and value not in _RESERVED
        ):
            self.at += 1
            try:
                attribute_of(value, self.domain)
            except ValueError as error:
                unknown = kind == "name" and self.domain.why_not(value) is None
                hint = self._hint(position) if unknown else ""
                raise ValueError(f"{self._where(position)}: {error}{hint}") from None
            return _Column(value, position)
        return self._literal()

    def _given(self, name: str, position: int) -> Any:
        """What ``@name`` stands for."""
        if name not in self.names:
            known = [*map(str, self.names)]
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean @{close[0]}?" if close else ""
            raise self._error(
                f"nothing is given for @{name}{hint}; pass it as names={{{name!r}: ...}}", position
            )
        value = self.names[name]
        if isinstance(value, list | tuple | range | AbstractSet):
            return list(value)
        if hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0:
            return value.tolist()
        return value

    def _hint(self, position: int) -> str:
        """What a word that is no column may have been meant to be."""
        rest = self.text[position:]
        meant = [name for name in self.domain.known if rest.startswith(name)]
        if meant:
            return f" Write the column name between backticks: `{max(meant, key=len)}`."
        return " Text goes between quotation marks."

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

    @contextmanager
    def _deeper(self, position: int) -> Iterator[None]:
        """A step into parentheses or a negation."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self._error(
                f"more than {_MAX_DEPTH} parentheses or negations inside each other", position
            )
        yield
        self.depth -= 1

    @contextmanager
    def _reading_at(self, position: int) -> Iterator[None]:
        """Says in which text and where, if a condition does not fit its column."""
        try:
            yield
        except ValueError as error:
            raise ValueError(f"{self._where(position)}: {error}") from None


# --- conditions: a dict or a text becomes the region of each column that it constrains


@dataclass(frozen=True)
class NamedQuery:
    """A query text and what ``@name`` in it stands for."""

    text: str
    names: Mapping[str, Any]

    def __repr__(self) -> str:
        return repr(self.text)


def with_names(query: Any, names: Mapping[str, Any] | None) -> Any:
    """A query, or each of a list of queries, with values for ``@name``.

    Raises
    ------
    TypeError
        If ``names`` is not a mapping of texts.
    """
    if names is None:
        return query
    if not isinstance(names, Mapping) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"names must be a mapping of names to values, got {names!r}.")
    if isinstance(query, list | tuple):
        return [with_names(one, names) for one in query]
    return NamedQuery(query, names) if isinstance(query, str) else query


def parts_of(query: Any, schema: Schema) -> list[dict[str, Region]]:
    """Disjoint conjunctions whose union a query asks for: the region of each column in them.

    Parameters
    ----------
    query : dict, str, NamedQuery or None
        As for `skdp.release.parse`.
    schema : Schema
        The columns that may be named, such as a domain.

    Raises
    ------
    ValueError
        As `skdp.release.parse`, or if there would be too many conjunctions.
    TypeError
        If the query is neither a dict nor a string.
    """
    if query is None:
        return [{}]
    if isinstance(query, str):
        return conjunctions(read_query(query, schema))
    if isinstance(query, NamedQuery):
        return conjunctions(read_query(query.text, schema, query.names))
    if isinstance(query, Mapping):
        return [_from_dict(query, schema)]
    raise TypeError(
        f"A query must be a dict or a string, got a value of type {type(query).__name__}. It names "
        "columns and values, such as {'age': (0, 17)} or 'age < 18'; a mask of rows is not a query."
    )


def _from_dict(query: Mapping[str, Any], schema: Schema) -> dict[str, Region]:
    regions: dict[str, Region] = {}
    for column, value in query.items():
        attribute = attribute_of(column, schema)
        if isinstance(value, tuple):
            if len(value) != 2:
                raise ValueError(
                    f"The range for column {column!r} must be a tuple (low, high), got {value!r}. "
                    "For a set of values use a list."
                )
            regions[column] = region_of_range(column, attribute, *value)
        elif isinstance(value, list | AbstractSet | range):
            regions[column] = region_of_values(column, attribute, value)
        elif isinstance(value, Mapping):
            raise ValueError(f"The condition on column {column!r} cannot be a dict: {value!r}.")
        elif hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0:
            regions[column] = region_of_values(column, attribute, value.tolist())
        else:
            regions[column] = region_of_values(column, attribute, [value])
    return regions


# ------------------------------------------------------------------------------------------------
# Queries as weights: what a release is asked.
#
# The answer to a conjunction of one condition per attribute on a box of the domain is a product
# over the attributes. A weight is the share of a code's cell that the condition covers: 1 or 0 for
# a category, a fraction for a bin that a range cuts. Any other query is a union of disjoint
# conjunctions, and its answer is the sum of theirs. Statistics ask for weights of any sign.

Weights = Mapping[int, FloatArray]


class Query(NamedTuple):
    """What a text or a dict means: a sum of products of weights.

    Attributes
    ----------
    products : tuple of mapping of int to ndarray of float64
        At least one. Position of an attribute -> a weight for each of its codes; attributes that
        are not there have the weight 1.
    """

    products: tuple[Weights, ...]

    def times(self, axis: int, vector: FloatArray) -> Query:
        """The query with the weights of an attribute multiplied by others."""
        return Query(
            tuple(
                {**each, axis: each[axis] * vector if axis in each else vector}
                for each in self.products
            )
        )

    def plus(self, other: Query) -> Query:
        """The query whose answer is the sum of the answers to this and another one."""
        return Query(self.products + other.products)

    @property
    def cuts(self) -> bool:
        """Whether a code is covered in part."""
        return any(
            bool(((vector > 0) & (vector < 1)).any())
            for weights in self.products
            for vector in weights.values()
        )

    @property
    def at_points(self) -> bool:
        """Whether it asks for single numbers of a continuous column."""
        return any(
            bool(((vector > 0) & (vector <= POINT)).any())
            for weights in self.products
            for vector in weights.values()
        )

    @property
    def with_whole_bins(self) -> Query:
        """The query with the bins of single numbers in place of these."""
        return Query(
            tuple(
                {
                    axis: np.where((vector > 0) & (vector <= POINT), 1.0, vector)
                    for axis, vector in weights.items()
                }
                for weights in self.products
            )
        )


def parse(query: Any, domain: Any) -> Query:
    """Weights of a query.

    Parameters
    ----------
    query : dict, str or None
        None and the empty dict ask for all records. In a dict the value for a column is

        - a tuple ``(a, b)``: the closed range from a to b. ``None`` or an infinity leaves an end
          open. On a continuous `Numeric` a partly covered bin counts in proportion (on the
          ``scale`` of its bins); on ``integer=True`` the range means the integers from a to b, and
          a partly covered bin counts by its share of integers; on an ordered `Categorical` the
          categories from a to b. A range never contains the missing cell.
        - a list, set or array: any of these values (``None`` in it is the missing cell).
        - a scalar: this value; in a `Categorical` with a taxonomy the name of a group stands for
          all categories in it. A special value of a `Numeric` is its cell; with
          ``decimals`` a single number is its share of the bin. On a continuous `Numeric` it has
          next to no share of its bin: the answer is about 0, and its interval reaches to all that
          the bin may hold.
        - None: the missing cell, if the attribute is nullable.

        A string is written as for ``DataFrame.query``: ``=``, ``==``, ``!=``, ``<``, ``<=``,
        ``>``, ``>=``, ``in``, ``not in``, chains such as ``30 <= age < 40``, ``between 30 and 40``
        (both ends included), ``is null`` and ``is not null``, joined by ``and``, ``or``, ``not``
        or ``&``, ``|``, ``~``, with parentheses, backticks around column names that are not
        identifiers, ``None`` for the missing cell. ``not`` binds first, then ``and``, then ``or``.
        On a continuous column ``<`` and ``<=`` are the same but for special values. Conditions
        that contradict each other give weight zero everywhere. As in pandas, ``!=``, ``not in``
        and ``not`` keep missing values and the comparisons drop them. At most 1,000 conditions,
        50 parentheses or negations inside each other, 1,000,000 characters, and 1,000 conjunctions.
    domain : Domain
        The public schema.

    Returns
    -------
    Query
        Its products are disjoint conjunctions, with weights in [0, 1].

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
    >>> for weights in parse("pay < 30 or sex == 'F'", domain).products:
    ...     print(weights)
    {0: array([1. , 0.5, 0. , 0. ])}
    {0: array([0. , 0.5, 1. , 1. ]), 1: array([1., 0.])}
    """
    return Query(tuple(weights_of(regions, domain) for regions in parts_of(query, domain)))


def weights_of(regions: Mapping[str, Region], domain: Any) -> dict[int, FloatArray]:
    """Weights of a conjunction, by attribute."""
    weights = domain.structure.weights_of_regions(regions)
    found = {domain.index(name): vector for name, vector in weights.items()}
    return found if len(found) < 2 else dict(sorted(found.items()))


def parse_all(queries: Sequence[Any], domain: Any) -> list[Query]:
    """Weights of many queries; texts and conditions of dicts that repeat are read once."""
    known: dict[Any, Any] = {}

    def read(key: Any, query: Any) -> Query:
        if key not in known:
            known[key] = parse(query, domain)
        found: Query = known[key]
        return found

    found = []
    for query in queries:
        if isinstance(query, str):
            found.append(read(query, query))
        elif type(query) is dict and len(query) and all(map(_is_plain, query.values())):
            product: dict[int, FloatArray] = {}
            for column, value in query.items():
                # 1, 1.0 and True are equal, but not the same condition.
                kinds = tuple(map(type, value)) if type(value) is tuple else type(value)
                [weights] = read((column, value, kinds), {column: value}).products
                for axis, vector in weights.items():
                    product[axis] = product[axis] * vector if axis in product else vector
            found.append(Query((product if len(product) < 2 else dict(sorted(product.items())),)))
        else:
            found.append(parse(query, domain))
    return found


_PLAIN = frozenset([int, float, str, bool, type(None)])


def _is_plain(value: Any) -> bool:
    """Whether a condition in a dict is a number, a text, or a range of these."""
    return type(value) in _PLAIN or (type(value) is tuple and _PLAIN.issuperset(map(type, value)))
