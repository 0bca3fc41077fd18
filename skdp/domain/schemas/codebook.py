"""Code books: a table with one row for each variable, or for each of its values.

The headers and the cells are read as people write them; `book_table` and `book_cells` say how.
Whatever the book says twice in different ways is an error, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ...exceptions import DomainError
from ..numeric import AUTO
from .book_cells import Coded, Span, as_span, as_values, as_yes_no, plain, plain_list
from .book_table import Row, read_book
from .bounds import after, before, number, same_text
from .field import Field, checked_names
from .words import meaning

__all__ = ["fields_of_codebook"]

_MOST_SHOWN = 20
# A span of categories, such as 1-5, is written out up to this many.
_MOST_LISTED = 10_000
_ABSENT = frozenset(". na n/a nan null none blank empty missing".split())


def fields_of_codebook(
    source: Any,
    *,
    labels: bool = False,
    na_values: Any = (),
    sheet: str | int | None = None,
    encoding: str = "utf-8-sig",
    delimiter: str | None = None,
) -> list[Field]:
    """Columns of a code book in CSV, Excel, or a pandas frame.

    Parameters
    ----------
    source : path, frame or list of dict
    labels : bool, default=False
        Whether the table holds the labels ("Male"), not the codes (1).
    na_values : value or list of values, default=()
        Codes that the rows were read without, as for ``pandas.read_csv``: they are the missing
        cell instead of values.
    sheet : str or int, optional
        Sheet of a workbook; default: the first that has the headers.
    encoding : str, default="utf-8-sig"
    delimiter : str, optional
        Of a CSV file; recognised by default.

    Raises
    ------
    DomainError
        One for all cells that cannot be understood.
    """
    rows = read_book(source, sheet=sheet, encoding=encoding, delimiter=delimiter)
    absent = same_text([na_values] if isinstance(na_values, str | int | float) else na_values)
    variables, wrong = [], []
    for group in _groups(rows):
        reader = _Variable(group, labels, absent)
        try:
            variables.append(reader.field())
        except DomainError as error:
            wrong.append(f"Column {group[0]['name']!r} ({group[0].where}): {error}")
    if wrong:
        more = [f"... ({len(wrong) - _MOST_SHOWN} more)"] if len(wrong) > _MOST_SHOWN else []
        raise DomainError("\n".join([*wrong[:_MOST_SHOWN], *more]))
    checked_names([field.name for field in variables], "Name each variable once in the code book.")
    return variables


def _groups(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows of each variable: its own, and those below that only add values."""
    groups: list[list[Row]] = []
    for row in rows:
        last = groups[-1] if groups else None
        if last is not None and row["name"] in ("", last[0]["name"]) and _only_adds(row, last[0]):
            last.append(row)
        elif not row["name"]:
            raise DomainError(
                f"The code book has no name in {row.where}. A row without a name adds a value to "
                "the variable above, and says nothing else."
            )
        else:
            groups.append([row])
    return groups


def _only_adds(row: Row, first: Row) -> bool:
    """Whether a row adds a value to a variable without contradicting its first row."""
    if not row["values"] and not row["labels"]:
        return False
    rest = {key: cell for key, cell in row.items() if key not in ("name", "values", "labels")}
    return all(first[key] == cell for key, cell in rest.items())


class _Variable:
    """One variable of a code book, as the rows about it say."""

    def __init__(self, rows: Sequence[Row], labels: bool, absent: set[str]) -> None:
        self.rows = rows
        self.row = rows[0]
        self.labels = labels
        self.absent = absent

    def field(self) -> Field:
        """What the rows say.

        Raises
        ------
        DomainError
            If a cell cannot be understood, or contradicts another.
        """
        kind, said = self._kind()
        spans, coded = self._values(kind)
        field = Field(self.row["name"], kind, self.row["type"] or "no type", self.row.where, **said)
        self._options(field)
        self._range(field, spans)
        if field.kind == "":
            field.kind = self._guessed(field, coded)
        gaps, extra = self._missing(field)
        field.nullable = gaps
        if field.kind in ("integer", "number") and _bounded(field):
            self._special(field, coded, extra)
        elif field.kind in ("date", "datetime") and (coded or extra):
            self._moments(field, coded, extra)
        elif coded or extra:
            self._categories(field, coded, extra)
        self._whole(field)
        return field

    def _kind(self) -> tuple[str, dict[str, Any]]:
        """Kind that the type names; empty if no type is given."""
        if as_yes_no(self.row["identifier"]):
            return "identifier", {}
        text = self.row["type"]
        kind, said = meaning(text) if text else ("", {})
        refined, more = meaning(self.row["validation"]) if self.row["validation"] else ("", {})
        if kind in ("text", "category", "unknown", "") and refined in (
            "date",
            "datetime",
            "integer",
            "number",
        ):
            return refined, more
        if re.sub(r"[^a-z]", "", text.casefold()) in ("yesno", "noyes"):
            return "category", {"categories": [0, 1]}
        return ("" if kind == "object" else kind), said

    def _values(self, kind: str) -> tuple[list[Span], list[Coded]]:
        """Ranges and single values of the cells for values."""
        items: list[Coded] = []
        many = len(self.rows) > 1
        for row in self.rows:
            text = row["values"] or (row["labels"] if "=" in row["labels"] else "")
            if not text:
                continue
            if as_span(text, listed=True) is not None:
                items.append(Coded(text, row["labels"] or None))
            elif many and row["values"] and (row["labels"] or "=" not in text):
                items.append(Coded(text, row["labels"] or None))
            else:
                items += self._labelled(as_values(text), row["labels"])
        if kind == "category":
            return [], _counted(items)
        spans, single = [], []
        for item in items:
            span = as_span(item.value, listed=True)
            if span is None:
                single.append(item)
            else:
                spans.append(span)
        return (spans, single) if kind else _without_type(spans, single, items)

    def _labelled(self, coded: list[Coded], labels: str) -> list[Coded]:
        """Values with the labels of the other cell, if it has as many."""
        if not labels or "=" in labels or any(item.label for item in coded):
            return coded
        texts = [item.value for item in as_values(labels)]
        if len(texts) != len(coded):
            return coded
        return [Coded(item.value, label) for item, label in zip(coded, texts, strict=True)]

    def _options(self, field: Field) -> None:
        auto = self.row["bins"].casefold() == AUTO
        field.bins = AUTO if auto else self._number("bins", int)
        decimals = self._number("decimals", int)
        field.decimals = field.decimals if decimals is None else decimals
        field.step = self._number("step", float)
        if self.row["edges"]:
            field.edges = self._numbers("edges")
        if self.row["special"]:
            field.special = self._numbers("special")
        field.tz = self.row["tz"] or field.tz
        if "%" in self.row["format"]:
            field.format = self.row["format"]
        if self.row["ordered"]:
            field.ordered = self._yes_no("ordered")
        if field.kind in ("date", "datetime") and self.row["unit"]:
            field.unit = self.row["unit"].casefold().removesuffix("s")
        self._scale(field)

    def _scale(self, field: Field) -> None:
        text = self.row["scale"].casefold()
        names = {"logarithmic": "log", "squareroot": "sqrt", "square root": "sqrt"}
        text = names.get(text, text)
        if text in ("linear", "log", "sqrt"):
            field.scale = text
        elif text == "ordinal":
            field.ordered = True
        elif text not in ("", "nominal", "ratio", "interval", "metric"):
            raise DomainError(f"the scale {text!r} is not known. Known are: linear, log, sqrt.")

    def _range(self, field: Field, spans: list[Span]) -> None:
        """Ends from the cells min and max, from the cell for the range, or from the values."""
        if self.row["range"]:
            span = as_span(self.row["range"])
            if span is None:
                raise DomainError(
                    f"the range {self.row['range']!r} is not understood. Write it as 0-99, 0..99 "
                    "or [0, 99], or as dates, 2020-01-01..2020-12-31."
                )
            spans = [span]
        lows, highs = [], []
        for span in spans:
            low, high = self._end(field, span.low), self._end(field, span.high)
            kind = field.kind or "integer"
            lows.append(after(low, kind) if span.without_low else low)
            highs.append(before(high, kind) if span.without_high else high)
        # Several ranges, such as those of age groups, are one that holds them all.
        field.lower = None if None in lows else min(lows, default=None)
        field.upper = None if None in highs else max(highs, default=None)
        for end, cell in (("lower", self.row["min"]), ("upper", self.row["max"])):
            if cell:
                setattr(field, end, self._end(field, cell))

    def _end(self, field: Field, text: str | None) -> Any:
        if text is None:
            return None
        if field.kind in ("date", "datetime"):
            return text
        found = number(text)
        if found is None and field.kind == "" and "-" in text:
            return text  # a date: the kind is guessed from it
        if found is None:
            raise DomainError(f"{text!r} is not a number, but the type is {field.type}.")
        return found

    def _guessed(self, field: Field, coded: list[Coded]) -> str:
        """Kind of a variable without a type."""
        ends = [end for end in (field.lower, field.upper) if end is not None]
        if any(isinstance(end, str) for end in ends):
            return "datetime" if any(":" in str(end) for end in ends) else "date"
        if not ends:
            return "number" if field.edges is not None else "category"
        whole = all(isinstance(end, int) for end in ends) and not field.decimals
        return "integer" if whole and field.step is None else "number"

    def _missing(self, field: Field) -> tuple[bool, list[str]]:
        """Whether values may be missing, and codes for missing values that the table holds."""
        if self.row["required"]:
            return not self._yes_no("required"), []
        text = self.row["missing"]
        said = as_yes_no(text)
        if said is not None:
            return said, []
        codes = [item.value for item in as_values(text)]
        gone = [code for code in codes if code in self.absent or code.casefold() in _ABSENT]
        return bool(gone), [code for code in codes if code not in gone]

    def _special(self, field: Field, coded: list[Coded], extra: list[str]) -> None:
        """Codes beside the range of a number stand for themselves; labels within it are ignored."""
        special = list(field.special or ())
        low, high = field.lower, field.upper
        for text in [*(item.value for item in coded), *extra]:
            if text in self.absent or text.casefold() in _ABSENT:
                field.nullable = True
                continue
            value = number(text)
            if value is None:
                raise DomainError(
                    f"the value {text!r} is no number. If the rows are read without it, give it in "
                    "na_values=."
                )
            inside = field.edges is None and low <= value <= high
            if value not in special and (not inside or text in extra):
                special.append(value)
        field.special = special or None

    def _moments(self, field: Field, coded: list[Coded], extra: list[str]) -> None:
        """Dates beside the range stand for themselves, such as 1900-01-01 for an unknown one."""
        if not _bounded(field):
            raise DomainError(
                f"the type is {field.type}, so it needs a range such as 2020-01-01..2020-12-31."
            )
        texts = [*(item.value for item in coded), *extra]
        gone = [t for t in texts if t in self.absent or t.casefold() in _ABSENT]
        field.nullable = field.nullable or bool(gone)
        field.special = [text for text in texts if text not in gone] or None

    def _categories(self, field: Field, coded: list[Coded], extra: list[str]) -> None:
        shown: Callable[[Coded], str] = lambda item: (self.labels and item.label) or item.value  # noqa: E731
        values = [item for item in coded if item.value not in self.absent]
        field.nullable = field.nullable or len(values) < len(coded)
        texts = [shown(item) for item in values]
        texts += [code for code in extra if code not in texts]
        declared_text = self.row["type"].casefold().startswith(("str", "char", "varchar", "text"))
        field.categories = texts if declared_text or self.labels else plain_list(texts)
        if field.kind in ("integer", "number") and any(isinstance(v, str) for v in texts):
            field.categories = plain_list(texts)
        if self.row["other"]:
            other = self.row["other"]
            field.other = other if declared_text or self.labels else plain(other)

    def _whole(self, field: Field) -> None:
        if field.kind == "integer" and field.decimals:
            field.kind = "number"
        if field.kind == "number" and field.decimals == 0 and field.step is None:
            ends = (field.lower, field.upper)
            if all(isinstance(end, int) for end in ends):
                field.kind, field.decimals = "integer", None

    def _number(self, key: str, kind: type) -> Any:
        text = self.row[key]
        if not text:
            return None
        found = number(text)
        if found is None or (kind is int and not isinstance(found, int)):
            what = "a whole number" if kind is int else "a number"
            raise DomainError(f"{key} must be {what}, got {text!r}.")
        return found

    def _numbers(self, key: str) -> list[int | float]:
        found = [number(item.value) for item in as_values(self.row[key])]
        if None in found:
            raise DomainError(f"{key} must be numbers such as 0; 10; 100, got {self.row[key]!r}.")
        return [value for value in found if value is not None]

    def _yes_no(self, key: str) -> bool:
        said = as_yes_no(self.row[key])
        if said is None:
            raise DomainError(f"{key} must be yes or no, got {self.row[key]!r}.")
        return said


def _bounded(field: Field) -> bool:
    return field.edges is not None or (field.lower is not None and field.upper is not None)


def _counted(items: list[Coded]) -> list[Coded]:
    """Values of a category with a range of codes, as in "1-5; 9", written out.

    If there are several ranges, or other values than whole numbers, they are names: "18-24|25-34".
    """
    spans = [as_span(item.value, listed=True) for item in items]
    others = [item.value for item, span in zip(items, spans, strict=True) if span is None]
    if len(items) - len(others) != 1 or not all(isinstance(plain(text), int) for text in others):
        return items
    found = []
    for item, span in zip(items, spans, strict=True):
        if span is None:
            found.append(item)
            continue
        low, high = (plain(end or "") for end in (span.low, span.high))
        if not (isinstance(low, int) and isinstance(high, int) and 0 <= high - low < _MOST_LISTED):
            return items
        found += [Coded(str(code), str(code)) for code in range(low, high + 1)]
    return found


def _without_type(
    spans: list[Span], single: list[Coded], items: list[Coded]
) -> tuple[list[Span], list[Coded]]:
    """Ranges and values of a variable without a type: several ranges are names of groups."""
    return (spans, single) if len(spans) == 1 else ([], items)
