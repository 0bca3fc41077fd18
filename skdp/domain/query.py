"""Conditions on columns: parsed from text or from a dict, as regions, joined by or and not."""

from __future__ import annotations

import ast
import bisect
import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
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
# Token by token the text becomes an expression of Python, in which columns are numbered, and whose
# tree Python reads. That becomes a tree of `Node`: conditions on single columns, joined.


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
_SYMBOLS = {"=": "==", "<>": "!=", "&": "and", "&&": "and", "|": "or", "||": "or", "~": "not",
            "!": "not"}  # fmt: skip
# Words of the language; in capitals too, where no column has that name.
_WORDS = ("and", "or", "not", "in", "is", "between", "null")
_OPERATORS: dict[type, tuple[str, str]] = {
    ast.Lt: ("<", ">"), ast.LtE: ("<=", ">="), ast.Gt: (">", "<"), ast.GtE: (">=", "<="),
    ast.Eq: ("==", "=="), ast.NotEq: ("!=", "!="), ast.In: ("in", ""), ast.NotIn: ("not in", ""),
}  # fmt: skip
# Limits of a text: characters, parentheses and negations inside each other, conditions.
_MAX_LENGTH = 1_000_000
_MAX_DEPTH = 50
_MAX_CONDITIONS = 1000
# Characters on each side of an error that a message shows of a long text.
_SHOWN = 100


@dataclass(frozen=True)
class _Column:
    """A column that a text names."""

    name: str
    attribute: Any


def quoted(name: str) -> str:
    """The name of a column as a query takes it: between backquotes, unless it is a plain word."""
    plain = name.isidentifier() and name.casefold() not in _WORDS
    return name if plain else "`{}`".format(name.replace("`", "``"))


class _Text:
    """A query as text: what it says, and where.

    Parameters
    ----------
    text : str
    schema : Schema
        The columns that may be named.
    names : mapping of str to value
        What ``@name`` in the text stands for.
    """

    def __init__(self, text: str, schema: Schema, names: Mapping[str, Any]) -> None:
        self.text, self.schema, self.names = text, schema, names
        if len(text) > _MAX_LENGTH:
            raise ValueError(
                f"A query has at most {_MAX_LENGTH:,} characters, got {len(text):,}. Give a long "
                "list of values by name: 'column in @values'."
            )
        # Columns and given values, by their numbers in the expression.
        self.known: list[Any] = []
        self.conditions = 0

    def read(self) -> Node:
        """The conditions of the text and how they are joined."""
        tokens = list(self._tokens())
        if not tokens:
            raise self.error("the query is empty; use None or {} to ask for all records", 0)
        # The expression, and where its pieces begin and where they stand in the text.
        self.source, self.starts, self.places = "", list[int](), list[int]()
        for piece, place in self._pieces([*tokens, ("end", "", len(self.text.rstrip()))]):
            self.starts.append(len(self.source))
            self.places.append(place)
            self.source += f"{piece} "
        try:
            tree = ast.parse(f"({self.source})", mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            raise self._unexpected(tokens, (getattr(error, "offset", 0) or 0) - 2) from None
        return self._node(tree)

    def _tokens(self) -> Iterator[tuple[str, Any, int]]:
        position, end = 0, len(self.text.rstrip())
        while position < end:
            match = _TOKEN.match(self.text, position)
            if match is None:
                rest = self.text[position:]
                raise self._unreadable(position + len(rest) - len(rest.lstrip()))
            kind = str(match.lastgroup)
            raw, start = match.group(kind), match.start(kind)
            word = raw.lower() if raw.isupper() else raw
            if kind == "name" and word in _WORDS and self.schema.find(raw) is None:
                kind, raw = "word", word
            yield kind, raw, start
            position = match.end()

    def _pieces(self, tokens: list[tuple[str, Any, int]]) -> Iterator[tuple[str, int]]:
        """The expression of Python, piece by piece, with places in the text."""
        closing: list[str] = []
        depth, at, listing, ended = 0, 0, False, False
        while tokens[at][0] != "end":
            kind, raw, place = tokens[at]
            following = tokens[at + 1]
            at += 1
            said = _SYMBOLS.get(raw, raw) if kind == "symbol" else raw if kind == "word" else ""
            if said == "not" and following[1] not in ("in", "between"):
                depth += 1
                if raw in ("~", "!") and following[1] not in ("(", "~", "!"):
                    # pandas would negate the column alone.
                    raise self.error("after '~' come parentheses; or write 'not'", following[2])
            elif said in ("(", "["):
                depth += 1
                closing.append("]" if listing or said == "[" else ")")
                said = "[" if listing else said
            elif said in (")", "]") and closing:
                said, depth = closing.pop(), max(depth - 1, 0)
            elif said in ("and", "or"):
                depth = len(closing)
            elif said in ("+", "-") and ended:
                raise self.error(
                    "arithmetic is not supported; a column name with a sign in it goes between "
                    "backticks",
                    place,
                )
            elif said == "is":
                negative = following[1] == "not"
                at += negative
                if tokens[at][1] not in ("null", "None"):
                    raise self.error("after 'is' comes 'null' or 'not null'", tokens[at][2])
                said, at = "!= None" if negative else "== None", at + 1
            elif said == "between":
                low, at = self._value(tokens, at)
                if tokens[at][1] != "and":
                    here = tokens[at][2]
                    raise self.error("'between' needs two ends, as in 'between 1 and 2'", here)
                high, at = self._value(tokens, at + 1)
                said = f"in {{{low}, {high}}}"
            elif not said:
                said = self._operand(kind, raw, place)
            if depth > _MAX_DEPTH:
                raise self.error(
                    f"more than {_MAX_DEPTH} parentheses or negations inside each other", place
                )
            yield said, place
            listing = said == "in"
            ended = kind not in ("symbol", "word") or said in (")", "]")

    def _value(self, tokens: list[tuple[str, Any, int]], at: int) -> tuple[str, int]:
        """One end of a range, perhaps with a sign, and where it ends."""
        kind, raw, place = tokens[at]
        if kind == "symbol" and raw in "+-":
            value, after = self._value(tokens, at + 1)
            return raw + value, after
        if kind not in ("number", "text", "given"):
            raise self.error("the end of a range is a value", place)
        return self._operand(kind, raw, place), at + 1

    def _operand(self, kind: str, raw: str, place: int) -> str:
        """A column, a value that is given by name, or a literal of Python."""
        if kind == "number":
            try:
                return repr(int(raw) if re.fullmatch(r"[\d_]+", raw) else float(raw))
            except ValueError:
                raise self.error(f"{raw[:40]!r} is not a number", place) from None
        if kind == "text":
            return ascii(_ESCAPE.sub(lambda each: self._escaped(each[1], place), raw[1:-1]))
        if raw in ("True", "False", "None"):
            return raw
        self.known.append(self._given(raw[1:], place) if kind == "given" else None)
        if kind != "given":
            name = raw[1:-1].replace("``", "`") if kind == "quoted" else raw
            try:
                self.known[-1] = _Column(name, attribute_of(name, self.schema))
            except ValueError as error:
                unknown = kind == "name" and self.schema.why_not(name) is None
                hint = self._hint(place) if unknown else ""
                raise ValueError(f"{self._where(place)}: {error}{hint}") from None
        return f"_{len(self.known) - 1}"

    def _escaped(self, escape: str, place: int) -> str:
        if len(escape) == 1:
            return _ESCAPES.get(escape, "\\" + escape)
        point = int(escape[1:], 16)
        if point > 0x10FFFF:
            raise self.error(f"\\{escape} is not a character", place)
        return chr(point)

    def _given(self, name: str, place: int) -> Any:
        """What ``@name`` stands for."""
        if name not in self.names:
            close = difflib.get_close_matches(name, [*map(str, self.names)], n=1)
            hint = f"; did you mean @{close[0]}?" if close else ""
            raise self.error(
                f"nothing is given for @{name}{hint}; pass it as names={{{name!r}: ...}}", place
            )
        value = self.names[name]
        if isinstance(value, list | tuple | range | AbstractSet):
            return list(value)
        if hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0:
            return value.tolist()
        return value

    # --- the tree

    def _place(self, node: ast.expr) -> int:
        """Where a part of the expression stands in the text."""
        return self.places[bisect.bisect_right(self.starts, node.col_offset - 1) - 1]

    def _node(self, tree: ast.expr) -> Node:
        if isinstance(tree, ast.BoolOp):
            members = [self._node(each) for each in tree.values]
            return both(members) if isinstance(tree.op, ast.And) else either(members)
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
            return negated(self._node(tree.operand))
        if isinstance(tree, ast.Compare):
            return self._chain(tree)
        value = self._read(tree)
        if isinstance(value, _Column):
            raise self.error(
                f"column {value.name!r} is not compared with anything; write for example "
                f"{value.name} == True",
                self._place(tree),
            )
        raise self.error(f"unexpected {value!r}", self._place(tree))

    def _read(self, tree: ast.expr) -> Any:
        """A column, a value, or a list of values."""
        if isinstance(tree, ast.Name):
            return self.known[int(tree.id[1:])]
        if isinstance(tree, ast.List | ast.Tuple | ast.Set):
            found = [self._read(each) for each in tree.elts]
            if isinstance(tree, ast.Set):
                return tuple(found)
            if not any(isinstance(each, _Column | list) for each in found):
                return found
        if isinstance(tree, ast.Constant):
            return tree.value
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.operand, ast.Constant):
            value = tree.operand.value
            if isinstance(value, int | float) and not isinstance(value, bool):
                return -value if isinstance(tree.op, ast.USub) else value
        raise self.error(
            "unexpected " + repr(self.text[self._place(tree) :][:20]), self._place(tree)
        )

    def _chain(self, tree: ast.Compare) -> Node:
        """Comparisons such as ``a < x <= b``; each has a column on one side only."""
        parts = [tree.left, *tree.comparators]
        values = [self._read(each) for each in parts]
        found: list[Node] = []
        ends: dict[str, tuple[Any, _Column]] = {}
        for number, operator in enumerate(tree.ops):
            left, right = values[number : number + 2]
            place = self._place(parts[number + 1])
            if isinstance(left, _Column) == isinstance(right, _Column):
                raise self.error(
                    "a comparison needs a column on one side and a value on the other", place
                )
            said, mirrored = _OPERATORS[type(operator)]
            if not isinstance(left, _Column):
                left, right, said = right, left, mirrored
                place = self._place(parts[number])
                if not said:
                    raise self.error("'in' needs the column on its left side", place)
            self.conditions += 1
            if self.conditions > _MAX_CONDITIONS:
                raise self.error(
                    f"a query has at most {_MAX_CONDITIONS:,} conditions; for many values of one "
                    "column use 'in'",
                    place,
                )
            found.append(self._condition(left, said, right, place))
            if said[0] in "<>" and right is not None and not isinstance(right, list):
                ends[said[0]] = right, left
        if len(ends) == 2 and ends["<"][1] == ends[">"][1]:
            # A reversed range, 40 <= x <= 30, is refused.
            self._condition(ends["<"][1], "in", (ends[">"][0], ends["<"][0]), self._place(tree))
        return both(found)

    def _condition(self, column: _Column, operator: str, value: Any, place: int) -> Node:
        try:
            if not isinstance(value, tuple):
                return region_of_comparison(column.name, column.attribute, operator, value)
            within = region_of_range(column.name, column.attribute, *value)
        except ValueError as error:
            raise ValueError(f"{self._where(place)}: {error}") from None
        return within if operator == "in" else negated(within)

    # --- errors

    def error(self, reason: str, place: int) -> ValueError:
        """What is wrong at a place of the text."""
        return ValueError(f"{self._where(place)}: {reason}.")

    def _where(self, place: int) -> str:
        """Which query cannot be read, and where; of a long one the part around that place."""
        text = self.text
        if len(text) > 2 * _SHOWN:
            start = max(0, place - _SHOWN)
            text = f"{'...' if start else ''}{text[start : place + _SHOWN]}..."
        return f"Cannot read the query {text!r} at position {place}"

    def _unexpected(self, tokens: list[tuple[str, Any, int]], offset: int) -> ValueError:
        if offset >= len(self.source) - 1 or self.source.count("(") > self.source.count(")"):
            return self.error("it ends too early", len(self.text.rstrip()))
        number = max(bisect.bisect_right(self.starts, max(offset, 0)) - 1, 0)
        place = self.places[number]
        shown = next((str(raw) for _, raw, start in tokens if start == place), "")
        return self.error(f"unexpected {shown!r}", place)

    def _unreadable(self, place: int) -> ValueError:
        reasons = {
            **dict.fromkeys("'\"`", "a quotation mark is never closed"),
            "@": "'@' stands before the name of a value, as in @limit",
            ".": "methods of columns are not supported; write for example 'x is null', "
            "'x between 1 and 2' or 'x in [1, 2]'",
        }
        character = self.text[place]
        what = "not a number" if character.isdigit() else f"unexpected {character!r}"
        other = f"{what}; a column name that is not an identifier goes between backticks"
        return self.error(reasons.get(character, other), place)

    def _hint(self, place: int) -> str:
        """What a word that is no column may have been meant to be."""
        rest = self.text[place:]
        meant = [name for name in self.schema.known if rest.startswith(name)]
        if meant:
            return f" Write the column name between backticks: `{max(meant, key=len)}`."
        return " Text goes between quotation marks."


# --- conditions: a dict or a text becomes the region of each column that it constrains

# Weights of conditions that are kept.
_KEPT_AT_ONCE = 1 << 22


class Remembered:
    """Conditions that were read, and what they mean: those that repeat are read once.

    Parameters
    ----------
    most : int
        Codes of the column that has most of them: so much is kept of a condition.
    """

    def __init__(self, most: int) -> None:
        self._most, self._known = most, dict[Any, Any]()

    def once(self, key: Any, read: Callable[[], Any]) -> Any:
        """What a condition means, by what distinguishes it."""
        found = self._known.get(key)
        if found is None:
            if len(self._known) * self._most > _KEPT_AT_ONCE:
                self._known.clear()
            found = self._known[key] = read()
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        # A release that is passed on does not say what was asked of it.
        return Remembered, (self._most,)


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
        return schema.remembered.once(query, lambda: conjunctions(_Text(query, schema, {}).read()))
    if isinstance(query, NamedQuery):
        return conjunctions(_Text(query.text, schema, query.names).read())
    if isinstance(query, Mapping):
        return [{column: _region(column, value, schema) for column, value in query.items()}]
    raise TypeError(
        f"A query must be a dict or a string, got a value of type {type(query).__name__}. It names "
        "columns and values, such as {'age': (0, 17)} or 'age < 18'; a mask of rows is not a query."
    )


def _region(column: Any, value: Any, schema: Schema) -> Region:
    """The region of a condition of a dict."""
    if not _is_plain(value):
        return _region_of(column, value, schema)
    # 1, 1.0 and True are equal, but not the same condition.
    kinds = tuple(map(type, value)) if type(value) is tuple else type(value)
    return schema.remembered.once((column, value, kinds), lambda: _region_of(column, value, schema))


_PLAIN = frozenset([int, float, str, bool, type(None)])


def _is_plain(value: Any) -> bool:
    """Whether a condition in a dict is a number, a text, or a range of these."""
    return type(value) in _PLAIN or (type(value) is tuple and _PLAIN.issuperset(map(type, value)))


def _region_of(column: Any, value: Any, schema: Schema) -> Region:
    attribute = attribute_of(column, schema)
    if isinstance(value, tuple):
        if len(value) != 2:
            raise ValueError(
                f"The range for column {column!r} must be a tuple (low, high), got {value!r}. "
                "For a set of values use a list."
            )
        return region_of_range(column, attribute, *value)
    if isinstance(value, list | AbstractSet | range):
        return region_of_values(column, attribute, value)
    if isinstance(value, Mapping):
        raise ValueError(f"The condition on column {column!r} cannot be a dict: {value!r}.")
    if hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0:
        return region_of_values(column, attribute, value.tolist())
    return region_of_values(column, attribute, [value])


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
    if isinstance(query, str):
        found: Query = domain.remembered.once(("weights", query), lambda: _parsed(query, domain))
        return found
    return _parsed(query, domain)


def _parsed(query: Any, domain: Any) -> Query:
    return Query(tuple(weights_of(regions, domain) for regions in parts_of(query, domain)))


def weights_of(regions: Mapping[str, Region], domain: Any) -> dict[int, FloatArray]:
    """Weights of a conjunction, by attribute."""
    weights = domain.structure.weights_of_regions(regions)
    found = {domain.index(name): vector for name, vector in weights.items()}
    return found if len(found) < 2 else dict(sorted(found.items()))
