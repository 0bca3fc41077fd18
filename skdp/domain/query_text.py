"""Queries written as text, as for ``DataFrame.query``; nothing in them is ever executed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .regions import Region, Schema, attribute_of, region_of_comparison, region_of_range

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


class QueryText:
    """Recursive descent over one query string; ``regions`` gives what it asks for."""

    def __init__(self, text: str, domain: Schema) -> None:
        self.text = text
        self.domain = domain
        self.tokens = self._tokenize()
        self.at = 0
        self.depth = 0
        self.found: dict[str, Region] = {}

    def regions(self) -> dict[str, Region]:
        """The region of each column that the text constrains."""
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
                "column use 'in', otherwise run two queries, add the answers, and subtract the "
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
            attribute = attribute_of(column.name, self.domain)
            region = region_of_comparison(column.name, attribute, operator, value)
            known = self.found.get(column.name)
            # Regions of one attribute are of one kind, which the type checker cannot see.
            self.found[column.name] = region if known is None else known.intersect(region)  # type: ignore[arg-type]

    def _check_ends(self, operators: list[tuple[_Column, str, Any]]) -> None:
        """Refuse a reversed range written as one chain, ``40 <= x <= 30``."""
        ends: dict[str, tuple[Any, str]] = {}
        for column, operator, value in operators:
            if operator[0] in "<>" and value is not None and not isinstance(value, list):
                ends[operator[0]] = (value, column.name)
        if len(ends) == 2 and ends["<"][1] == ends[">"][1]:
            column_name = ends["<"][1]
            attribute = attribute_of(column_name, self.domain)
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
        if kind == "quoted" or (
            kind == "name" and value not in _CONSTANTS and value not in ("and", "or", "in", "not")
        ):
            self.at += 1
            try:
                attribute_of(value, self.domain)
            except ValueError as error:
                unknown = kind == "name" and self.domain.why_not(value) is None
                hint = self._hint(position) if unknown else ""
                raise ValueError(
                    f"Cannot read the query {self.text!r} at position {position}: {error}{hint}"
                ) from None
            return _Column(value, position)
        return self._literal()

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
