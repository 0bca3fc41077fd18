"""Conditions on columns, as text or as a dict: parsed as regions, and what they mean as weights."""

from __future__ import annotations

import ast
import bisect
import contextlib
import difflib
import functools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from operator import and_, or_, xor
from typing import Any, NamedTuple

import numpy as np

from .._validation import BoolArray, FloatArray, some
from .attributes import Attribute, Categorical, Identifier, Numeric
from .bins import ROUNDEST, Cut

# ------------------------------------------------------------------------------------------------
# Regions: the part of one attribute that a condition covers, as a weight for each code.
#
# The numbers of a region lie between cuts, so that regions are joined, cut and turned round by
# comparing cuts, for integers and real numbers alike.


@dataclass(frozen=True)
class Region:
    """Some values of an attribute. Regions of one column are combined by ``&`` and ``|``.

    Attributes
    ----------
    column : str
    attribute : Numeric or Categorical
    cuts : tuple of Cut
        Where the numbers of bins that it covers begin and end, in turn, ascending.
    cells : frozenset of int
        The other codes: categories, special values, missing.
    """

    column: str = field(compare=False)
    attribute: Attribute = field(compare=False)
    cuts: tuple[Cut, ...]
    cells: frozenset[int]

    def __bool__(self) -> bool:
        return bool(self.cuts or self.cells)

    def _combined(self, other: Region, by: Callable[[Any, Any], Any]) -> Region:
        kept: list[Cut] = []
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

    @functools.cached_property
    def complement(self) -> Region:
        """What it does not cover."""
        return everything(self.column, self.attribute)._combined(self, xor)

    @property
    def without_missing(self) -> Region:
        """What it covers of the values that are there."""
        return replace(self, cells=self.cells - {self.attribute.n_values})

    def extent(self) -> tuple[float, float]:
        """The smallest and the largest number that it covers; no end if it covers the missing."""
        if self.attribute.n_values in self.cells or not self:
            return -math.inf, math.inf
        assert isinstance(self.attribute, Numeric)
        runs = self.attribute.contents.numbers(*runs_of(self.cuts)[:2])
        numbers = np.concatenate([*runs, self.attribute.means()[[*self.cells]]])
        return float(numbers.min()), float(numbers.max())

    @functools.cached_property
    def weights(self) -> FloatArray:
        """Share of each code that it covers."""
        weigh([self])
        return np.asarray(vars(self)["weights"])

    @property
    def moment(self) -> FloatArray:
        """The same times the mean of the values that it covers; 0 for what is missing."""
        attribute, found = self.attribute, np.zeros(self.attribute.size)
        if isinstance(attribute, Numeric):
            found[attribute.bins : attribute.n_values] = attribute.special
            found *= self.weights
            owner = np.zeros(len(self.cuts) // 2, dtype=np.int64)
            _, moments = attribute.contents.between(*runs_of(self.cuts), owner, 1)
            found[: attribute.bins] = moments[0]
            return found
        assert isinstance(attribute, Categorical)
        if any(isinstance(value, str) for value in attribute.categories):
            what = f"Column {self.column!r} has categories that are not numbers"
            raise ValueError(f"{what}: no sum or mean. Count its categories instead.")
        found[: attribute.n_values] = attribute.categories
        return found * self.weights

    @property
    def edges(self) -> FloatArray:
        """The cuts as edges of bins."""
        assert isinstance(self.attribute, Numeric)
        numbers, after = np.array(self.cuts, dtype=np.float64).reshape(-1, 2).T
        edges, _ = self.attribute.contents.numbers(numbers, numbers)
        return np.where(after > 0, np.nextafter(edges, np.inf), edges)


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
            cuts = [cut for each in alike for cut in each.cuts]
            owners = np.repeat(np.arange(len(alike)), [len(each.cuts) // 2 for each in alike])
            shares, _ = attribute.contents.between(*runs_of(cuts), owners, len(alike))
            found[:, : attribute.bins] = shares
        for region, weights in zip(alike, found, strict=True):
            if region.cells:
                weights[[*region.cells]] = 1.0
            weights.flags.writeable = False
            vars(region)["weights"] = weights


def runs_of(cuts: Sequence[Cut]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Numbers at which runs begin and end; of both whether the cut is after the number."""
    numbers, after = np.array(cuts, dtype=np.float64).reshape(-1, 2).T
    return numbers[::2], numbers[1::2], np.append(after[::2], after[1::2])


def known_values(given: Any, known: Iterable[Any]) -> str:
    """What there is, and what of it may have been meant, for a message."""
    listed = list(known)
    by_text = {str(each).casefold(): each for each in listed}
    close = difflib.get_close_matches(str(given).casefold(), by_text, n=1)
    hint = f" Did you mean {by_text[close[0]]!r}?" if close else ""
    return f"{hint} It has {some(listed, 20)}."


def everything(column: str, attribute: Any) -> Region:
    """The region of no condition."""
    if isinstance(attribute, Categorical):
        return Region(column, attribute, (), frozenset(range(attribute.size)))
    cuts = attribute.contents.cut(-math.inf, 0), attribute.contents.cut(math.inf, 1)
    return Region(column, attribute, cuts, frozenset(range(attribute.bins, attribute.size)))


def _codes(column: str, attribute: Categorical, value: Any) -> list[int]:
    """Position of a category, or of all categories in a group of the taxonomy."""
    with contextlib.suppress(KeyError):
        return [attribute.index_of(value)]
    if (tree := attribute.taxonomy) is not None and value in tree.labels:
        nodes = [node for node, label in enumerate(tree.labels) if label == value]
        runs = [attribute.leaf_codes[tree.first[node] : tree.last[node]] for node in nodes]
        return [code for run in runs for code in run.tolist()]
    known = known_values(value, attribute.categories)
    raise ValueError(f"Column {column!r} has no category {value!r}.{known}")


def region_of_range(column: str, attribute: Any, low: Any, high: Any, strict: str = "") -> Region:
    """Values from low to high; None is an open end, ``strict`` names the ends left out."""
    if isinstance(attribute, Categorical) and not attribute.ordered:
        how = "Ask for a list of categories, or declare it with ordered=True."
        raise ValueError(f"Column {column!r} is an unordered Categorical, without ranges. {how}")
    first = -math.inf if low is None else _number(column, attribute, low)
    last = math.inf if high is None else _number(column, attribute, high)
    if first > last:
        what = f"it goes from {low!r} to {high!r}. Write the lower end first"
        raise ValueError(f"The range for column {column!r} is reversed: {what}.")
    start, stop = (first, int("<" in strict)), (last, int(">" not in strict))
    if isinstance(attribute, Categorical):
        codes = frozenset(code for code in range(attribute.n_values) if start <= (code, 0) < stop)
        return Region(column, attribute, (), codes)
    special = enumerate(attribute.special, start=attribute.bins)
    cells = frozenset(code for code, value in special if start <= (value, 0) < stop)
    cuts = attribute.contents.cut(*start), attribute.contents.cut(*stop)
    return Region(column, attribute, cuts if cuts[0] < cuts[1] else (), cells)


def _number(column: str, attribute: Any, value: Any) -> float:
    """Where a value lies on the line of numbers, or of the codes of ordered categories."""
    if isinstance(attribute, Numeric):
        return attribute.number(value, column)
    return value if value in (-math.inf, math.inf) else _codes(column, attribute, value)[0]


def region_of_values(column: str, attribute: Any, values: Iterable[Any]) -> Region:
    """Any of the values; None is the missing cell."""
    cells: set[int] = set()
    runs: set[tuple[Cut, ...]] = set()
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
    cuts = functools.reduce(xor, map(set, runs), set[Cut]())
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


# --- columns that conditions name


# Numbers in the weights of conditions that are kept.
_NUMBERS = 1 << 20


class Schema:
    """Columns that conditions may name: measured and derived ones.

    Attributes
    ----------
    _declared : mapping of str to attribute
        All columns, also those that cannot be asked for.
    """

    _declared: Mapping[str, Any]

    def find(self, column: str) -> Any:
        """The attribute of a column that can be asked for; None for others."""
        attribute = self._declared.get(column)
        return None if isinstance(attribute, Identifier) else attribute

    @functools.cached_property
    def _regions(self) -> dict[Any, Region]:
        """The latest conditions, and what they mean: questions share most of them."""
        return {}

    def region(self, column: str, attribute: Any, operator: str, value: Any) -> Region:
        """The region of ``column operator value``; as it is where it was asked for lately."""
        # 1, 1.0, True and "1" are different values.
        key = column, operator, repr(value)
        if key not in self._regions:
            if len(self._regions) * attribute.size >= _NUMBERS:
                self._regions.clear()
            self._regions[key] = region_of_comparison(column, attribute, operator, value)
        return self._regions[key]

    @functools.cached_property
    def asked(self) -> dict[str, Query]:
        """The latest question as text, and what it means. What is passed on of it has none."""
        return {}

    @property
    def known(self) -> tuple[str, ...]:
        """Columns that can be asked for."""
        return tuple(name for name in self._declared if self.find(name) is not None)


def attribute_of(column: Any, schema: Schema) -> Any:
    """Attribute of a column, with a hint where it is misspelt."""
    attribute = schema.find(column) if isinstance(column, str) else None
    if attribute is not None:
        return attribute
    if isinstance(column, str) and column in schema._declared:
        what = "is an Identifier: it is not measured and has no statistics"
        raise ValueError(f"Column {column!r} {what}.")
    raise ValueError(f"The domain has no column {column!r}.{known_values(column, schema.known)}")


# ------------------------------------------------------------------------------------------------
# Conditions joined by and, or, not: disjoint conjunctions.
#
# A release answers a conjunction of one condition per column. Any other condition on rows is the
# union of disjoint conjunctions, so that its answer is the sum of theirs: never negative where
# theirs are not, and together with the answer to its negation the number of all records.

# Conditions on single columns in all conjunctions of a query, also on the way to them.
_MAX_PARTS = 5_000

# A conjunction: the region of each column that it constrains.
Part = Mapping[str, Region]


def both(one: Part, two: Part) -> dict[str, Region]:
    """The conjunction of two conjunctions."""
    found = dict(one)
    for column, region in two.items():
        found[column] = found[column] & region if column in found else region
    return found


class _Joined(NamedTuple):
    """Conditions of which every one must hold, or any."""

    every: bool
    members: Sequence[_Joined | Region]


def _negated(condition: _Joined | Region) -> _Joined | Region:
    """What holds where a condition does not."""
    if isinstance(condition, Region):
        return condition.complement
    return _Joined(not condition.every, [*map(_negated, condition.members)])


def _within(parts: list[Part], condition: _Joined | Region) -> list[Part]:
    """Disjoint conjunctions of the rows of some conjunctions that satisfy a condition."""
    if isinstance(condition, Region):
        return [both(part, {condition.column: condition}) for part in parts]
    if condition.every:
        return functools.reduce(_within, condition.members, parts)
    done: list[Part] = []
    for member in condition.members:
        done += _within(parts, member)
        parts = _within(parts, _negated(member))
    return _merged(_checked(done))


def _merged(parts: list[Part]) -> list[Part]:
    """The same with those as one that differ in one column only."""
    if len(parts) < 2:
        return parts
    for column in sorted({column for part in parts for column in part}):
        alike: dict[Any, list[Region | None]] = {}
        for part in parts:
            rest = tuple(sorted(item for item in part.items() if item[0] != column))
            alike.setdefault(rest, []).append(part.get(column))
        parts = []
        for rest, own in alike.items():
            union = None if None in own else functools.reduce(or_, own)
            # A column without a condition has all its values.
            limited = {column: union} if union is not None and union.complement else {}
            parts.append({**dict(rest), **limited})
    return parts


def _checked(parts: Iterable[Part]) -> list[Part]:
    """Those that some row satisfies, or one that none does; an error if they are too many."""
    found: list[Part] = []
    size = 0
    for part in parts:
        size += 1 + len(part)
        if size > _MAX_PARTS:
            raise ValueError(
                "The query is too complicated: written with 'and' alone, as a sum, it has more "
                f"than {_MAX_PARTS:,} conditions. Ask for parts of it, and add the answers up."
            )
        found.append(part)
    return [part for part in found if all(part.values())] or found[:1]


# ------------------------------------------------------------------------------------------------
# Queries written as text, as for ``DataFrame.query``; nothing in them is ever executed.
#
# Token by token the text becomes an expression of Python, a token on each line, in which columns
# and values have numbers, so that few expressions are different. Python reads its tree, and that
# becomes disjoint conjunctions.


_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>[+-]?(?:\d+(?:_\d+)*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])
      | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<quoted>`(?:[^`]|``)+`)
      | (?P<word>(?i:and|or|not|in|is)\b)
      | (?P<name>[^\W\d]\w*)
      | (?P<symbol>[=!<>]=|[=<>()\[\],&|+\-~])
      | (?P<other>\S)
    )""",
    re.VERBOSE | re.DOTALL,
)
_SYMBOLS = {"=": "==", "&": "and", "|": "or", "~": "not"}
# Columns of these names stand between backticks.
_WORDS = ("and", "or", "not", "in", "is")
_CONSTANTS = {"None": None, "null": None, "NULL": None, "True": True, "False": False}
# What an operator says of the column on its left, and of one on its right.
_OPERATORS: dict[type, tuple[str, str]] = {
    ast.Lt: ("<", ">"), ast.LtE: ("<=", ">="), ast.Gt: (">", "<"), ast.GtE: (">=", "<="),
    ast.Eq: ("==", "=="), ast.NotEq: ("!=", "!="), ast.In: ("in", ""), ast.NotIn: ("not in", ""),
    ast.Is: ("==", ""), ast.IsNot: ("!=", ""),
}  # fmt: skip
# What is wrong where no token begins with a character, and elsewhere.
_UNREADABLE = {
    **dict.fromkeys("'\"`", "a quotation mark is never closed"),
    "@": "values stand in the text itself, as in f'age > {{limit}}'",
}
_UNEXPECTED = (
    "something is missing or unexpected at {!r}; arithmetic is not supported, and a column name "
    "that is not an identifier goes between backticks"
)


class _Column(NamedTuple):
    """A column that a text names."""

    name: str
    attribute: Any


@functools.lru_cache(maxsize=256)
def _tree(expression: str) -> ast.expr:
    """The tree of an expression of Python."""
    return ast.parse(expression, mode="eval").body


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
    """

    def __init__(self, text: str, schema: Schema) -> None:
        self.text, self.schema = text, schema
        # Columns and values, by their numbers in the expression, and where its lines stand.
        self.known: list[Any] = []
        self.places: list[int] = []

    def read(self) -> list[Part]:
        """Disjoint conjunctions whose union the text asks for; at least one."""
        lines = list(self._lines())
        if not lines:
            raise self.error("the query is empty; use None or {} to ask for all records", 0)
        try:
            return _checked(_within([{}], self._condition(_tree("\\\n".join(lines)))))
        except SyntaxError as error:
            raise self._unexpected(self.places[(error.end_lineno or 1) - 1]) from None
        except (MemoryError, RecursionError):
            raise self.error("too many operations are inside each other", 0) from None

    def _lines(self) -> Iterator[str]:
        """The expression of Python, a token on each line."""
        for match in _TOKEN.finditer(self.text):
            kind, group = match.lastgroup or "", match.lastindex or 0
            raw, place = match[group], match.start(group)
            self.places.append(place)
            if kind == "symbol":
                yield _SYMBOLS.get(raw, raw)
            elif kind == "word":
                yield raw.lower()
            elif kind == "other":
                raise self._unexpected(place, _UNREADABLE.get(raw, _UNEXPECTED))
            else:
                yield f"_{len(self.known)}"
                self.known.append(self._operand(kind, raw, place))

    def _operand(self, kind: str, raw: str, place: int) -> Any:
        """A column, or a value."""
        if kind == "number":
            return int(raw) if raw.isdecimal() else float(raw)
        if kind == "text":
            try:
                return ast.literal_eval(raw) if "\\" in raw else raw[1:-1]
            except (SyntaxError, ValueError):
                raise self.error(f"{raw[:40]!r} is not a text", place) from None
        if kind == "name" and raw in _CONSTANTS and self.schema.find(raw) is None:
            return _CONSTANTS[raw]
        name = raw[1:-1].replace("``", "`") if kind == "quoted" else raw
        hint = " Text goes between quotation marks, names of several words in backticks."
        try:
            return _Column(name, attribute_of(name, self.schema))
        except ValueError as error:
            raise self.error(f"{error}{hint if kind == 'name' else ''}", place) from None

    # --- the tree

    def _place(self, node: ast.expr) -> int:
        """Where a part of the expression stands in the text."""
        return self.places[node.lineno - 1]

    def _condition(self, tree: ast.expr) -> _Joined | Region:
        if isinstance(tree, ast.Compare):
            trees = [tree.left, *tree.comparators]
            return _Joined(True, [*map(self._comparison, trees, tree.ops, trees[1:])])
        if isinstance(tree, ast.BoolOp):
            return _Joined(isinstance(tree.op, ast.And), [*map(self._condition, tree.values)])
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
            return _negated(self._condition(tree.operand))
        how = "write for example 'x == True' for a column x"
        raise self.error(f"nothing is compared; {how}", self._place(tree))

    def _read(self, tree: ast.expr) -> Any:
        """A column, a value, or a list of values."""
        if isinstance(tree, ast.Name):
            return self.known[int(tree.id[1:])]
        if isinstance(tree, ast.List | ast.Tuple):
            values = [self._read(each) for each in tree.elts]
            if not any(isinstance(each, _Column | list) for each in values):
                return values
        raise self._unexpected(self._place(tree))

    def _comparison(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Region:
        """A column, what is said of it, and a value; or the other way round."""
        column, value, place = self._read(left), self._read(right), self._place(right)
        said, mirrored = _OPERATORS[type(operator)]
        if isinstance(column, _Column) == isinstance(value, _Column):
            reason = "a comparison needs a column on one side and a value on the other"
            raise self.error(reason, place)
        if not isinstance(column, _Column):
            column, value, said, place = value, column, mirrored, self._place(left)
        try:
            if not said:
                raise ValueError("'in' needs the column on its left side.")
            return self.schema.region(column.name, column.attribute, said, value)
        except ValueError as error:
            raise self.error(str(error), place) from None

    def _unexpected(self, place: int, reason: str = _UNEXPECTED) -> ValueError:
        return self.error(reason.format(self.text[place:][:20].strip()), place)

    def error(self, reason: str, place: int) -> ValueError:
        """What is wrong at a place of the text, which is shown if it is long."""
        near = self.text[max(0, place - 100) : place + 100]
        where = f"Cannot read the query {near!r} at position {place}"
        return ValueError(f"{where}: {reason.removesuffix('.')}.")


# --- what a text or a dict asks for


def parts_of(query: Any, schema: Schema) -> list[Part]:
    """Disjoint conjunctions whose union a query asks for: the region of each column in them.

    Parameters
    ----------
    query : dict, str or None
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
        return _Text(query, schema).read()
    if isinstance(query, Mapping):
        return [{name: _region(name, value, schema) for name, value in query.items()}]
    raise TypeError(
        f"A query must be a dict or a string, got a value of type {type(query).__name__}. It names "
        "columns and values, such as {'age': (0, 17)} or 'age < 18'; a mask of rows is not a query."
    )


# Values that differ where their texts do: conditions on them are kept.
_PLAIN = {str, int, float, bool, type(None)}


def _region(column: Any, value: Any, schema: Schema) -> Region:
    """The region of a condition of a dict."""
    if isinstance(value, AbstractSet | range) or getattr(value, "ndim", False):
        value = list(value)
    if isinstance(value, tuple) and len(value) != 2:
        what = f"a tuple (low, high), got {value!r}. For a set of values use a list"
        raise ValueError(f"The range for column {column!r} must be {what}.")
    attribute = attribute_of(column, schema)
    if {*map(type, value if isinstance(value, list | tuple) else [value])} <= _PLAIN:
        return schema.region(column, attribute, "==", value)
    return region_of_comparison(column, attribute, "==", value)


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
        return Query(tuple({**each, axis: each.get(axis, 1.0) * vector} for each in self.products))

    def plus(self, other: Query) -> Query:
        """The query whose answer is the sum of the answers to this and another one."""
        return Query(self.products + other.products)

    @property
    def cuts(self) -> bool:
        """Whether a code is covered in part."""
        return any(map(is_cut, weights_in([self])))

    @property
    def at_points(self) -> bool:
        """Whether single numbers of a continuous column matter to it."""
        return any(at_points(each).any() for each in weights_in([self]))

    def mapped(self, of: Callable[[FloatArray], FloatArray]) -> Query:
        """The query with a function of each vector of weights in its place."""
        return self.replaced(lambda weights, _: of(weights))

    def replaced(self, of: Callable[[FloatArray, int], FloatArray]) -> Query:
        """The query with a function of each vector of weights and its column in its place."""
        parts = ({axis: of(each, axis) for axis, each in p.items()} for p in self.products)
        return Query(tuple(parts))


def weights_in(queries: Iterable[Query]) -> Iterable[FloatArray]:
    """The weights of some queries, each array once."""
    products = (weights for query in queries for weights in query.products)
    return {id(vector): vector for each in products for vector in each.values()}.values()


def is_cut(weights: FloatArray) -> bool:
    """Whether a code is covered in part."""
    return bool(((weights > 0) & (weights < 1)).any())


def at_points(weights: FloatArray, among: bool | None = None) -> BoolArray:
    """Of which codes a single number is covered and no more, or all but one; by default either."""
    alone = (weights > 0) & (weights <= ROUNDEST)
    others = (weights < 1) & (weights >= 1 - ROUNDEST)
    return alone | others if among is None else others if among else alone


def with_bins(weights: FloatArray) -> FloatArray:
    """Weights of single numbers with their whole bins, if there are no others; else the same."""
    return np.ceil(weights) if 0 < weights.max() <= ROUNDEST else weights


def plain(weights: FloatArray) -> FloatArray:
    """Weights in which single numbers do not matter beside others."""
    if weights.max() <= ROUNDEST:
        return weights
    return np.where(at_points(weights), np.rint(weights), weights)


def at_roundest(weights: FloatArray, of_one: Any, of_others: Any) -> FloatArray:
    """Weights with others for the roundest number of a bin, and for all but it; else the same."""
    one, others = weights == ROUNDEST, weights == 1 - ROUNDEST
    if not (one | others).any():
        return weights
    return np.where(one, of_one, np.where(others, of_others, weights))


def parse(query: Any, domain: Any) -> Query:
    """Weights of a query.

    Parameters
    ----------
    query : dict, str or None
        None and the empty dict ask for all records. In a dict the value for a column is

        - a tuple ``(a, b)``: the closed range from a to b. ``None`` or an infinity leaves an end
          open. On a continuous `Numeric` a partly covered bin counts in proportion; on
          ``integer=True`` the range means the integers from a to b, and a partly covered bin counts
          by its share of integers; on an ordered `Categorical` the categories from a to b. A range
          never contains the missing cell.
        - a list, set or array: any of these values (``None`` in it is the missing cell).
        - a scalar: this value; in a `Categorical` with a taxonomy the name of a group stands for
          all categories in it. A special value of a `Numeric` is its cell; with
          ``decimals`` a single number is its share of the bin. On a continuous `Numeric` it has
          next to no share of its bin; marginals count the records of the bin at its roundest
          number, as far as bins without one are empty. The interval reaches to all of the bin.
        - None: the missing cell, if the attribute is nullable.

        A string is written as for ``DataFrame.query``: ``=``, ``==``, ``!=``, ``<``, ``<=``,
        ``>``, ``>=``, ``in``, ``not in``, chains such as ``30 <= age < 40``, ``is null`` and ``is
        not null``, joined by ``and``, ``or``, ``not`` or ``&``, ``|``, ``~``, with parentheses,
        backticks around column names that are not identifiers or are one of these words, ``None``
        for the missing cell. ``~ age == 3`` is ``not age == 3``.
        ``not`` binds first, then ``and``, then ``or``. On a continuous column ``<`` and ``<=`` are
        the same but for special values and what marginals know of single numbers. Conditions that
        contradict each other give weight zero
        everywhere. As in pandas, ``!=``, ``not in`` and ``not`` keep missing values and the
        comparisons drop them. At most 5,000 conditions in the disjoint conjunctions.
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
    return parse_all([query], domain)[0]


def parse_all(queries: Sequence[Any], domain: Any) -> list[Query]:
    """`parse` of each of many queries: weights of the conditions on a column are found together."""
    one = queries[0] if len(queries) == 1 and isinstance(queries[0], str) else ""
    if one in domain.asked:
        return [domain.asked[one]]
    read = [parts_of(query, domain) for query in queries]
    weigh(region for parts in read for part in parts for region in part.values())
    found = [Query(tuple(weights_of(part, domain) for part in parts)) for parts in read]
    if one:
        domain.asked.clear()
        domain.asked[one] = found[0]
    return found


def weights_of(regions: Mapping[str, Region], domain: Any) -> dict[int, FloatArray]:
    """Weights of a conjunction, by attribute."""
    weights = domain.structure.weights_of_regions(regions)
    return dict(sorted((domain.index(name), vector) for name, vector in weights.items()))
