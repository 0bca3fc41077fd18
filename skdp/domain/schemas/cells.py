"""What people write into schemas: names of types, numbers, ranges, lists of values, yes and no."""

from __future__ import annotations

import csv
import math
import re
from typing import Any

from ..values import number_written

# Without digits: int64, varchar2. What starts like a date with a time is one.
_WORDS = {
    "integer": """int integer uint i u bigint smallint tinyint mediumint hugeint ubigint uinteger
        usmallint utinyint uhugeint long short byte count whole wholenumber year serial
        bigserial""",
    "number": """number numeric numerical num float halffloat double doubleprecision real decimal
        money currency amount continuous percent percentage ratio f scale quantity""",
    "boolean": "bool boolean logical flag bit",
    "category": """category categorical enum factor nominal coded code codes choice radio dropdown
        select dictionary binary dichotomous str string stringdtype varchar nvarchar char nchar
        bpchar character charactervarying utf largestring stringview largeutf singlechoice""",
    "date": "date day dateymd datemdy datedmy yearmonth",
    "datetime": "smalldatetime instant",
    "identifier": """id identifier key uuid guid primarykey recordid uniqueidentifier uniqueid
        personid""",
    "text": """text freetext memo notes note comment comments longtext clob openended open prose
        verbatim""",
    "object": "object any objectdtype",
}
_KIND = {word: kind for kind, words in _WORDS.items() for word in words.split()}
_DATE = re.compile(r"\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?)?")
_BETWEEN = re.compile(r"\.\.\.?|…|–|—|;|:|/|\bto\b|\bthrough\b|\buntil\b|-")
_ONE_SIDED = re.compile(r"(>=|≥|=>|>|<=|≤|=<|<)\s*(.+)|(.+?)\s*(\+|\bor more\b|\bor less\b)")
_YES = frozenset("yes y true t 1 x ok allowed optional possible nullable blank null na nan".split())
_NO = frozenset(["", *"no n false f 0 - none never required mandatory not".split()])
# A cell longer than this is no range.
_LONGEST_RANGE = 80


def meaning(type_name: str) -> tuple[str, dict[str, Any]]:
    """Kind of column that a name of a type stands for, and what else the name says.

    Parameters
    ----------
    type_name : str
        Such as "int64", "NUMERIC(10, 2)", "datetime64[ns, UTC]", "Ordinal", "free text".

    Returns
    -------
    kind : str
        One of `KINDS`, "object" or "unknown".
    said : dict
        Fields of `Field` that the name implies: ``decimals``, ``ordered``, ``tz``, ``unit``.
    """
    head = re.split(r"[(\[<]", type_name)[0]
    inside = type_name[len(head) :]
    word = re.sub(r"[^a-z]", "", head.casefold())
    if word.startswith(("ordinal", "ordered", "likert")):
        return "category", {"ordered": True}
    if word in ("yesno", "noyes"):
        return "category", {"categories": [0, 1]}
    if word.startswith(("datetime", "timestamp")):
        zone = re.search(r""",\s*(?:\w+=)?['"]?([A-Za-z_]+(?:/[\w+-]+)*)['")\]>]*\s*$""", inside)
        if zone and zone[1] not in ("None", "ns", "us", "ms"):
            return "datetime", {"tz": "UTC"}
        utc = word in ("timestamptz", "timestampwithtimezone")
        return "datetime", {"tz": "UTC"} if utc else {}
    kind = _KIND.get(word, "unknown")
    places = re.fullmatch(r"\(\D*\d+\s*,\D*(\d+)\s*\)\s*", inside)
    if kind == "number" and places:
        return kind, {"decimals": int(places[1])}
    return kind, {"unit": "month"} if word == "yearmonth" else {}


def number(text: str) -> int | float | None:
    """The number that a text writes, such as "-5", "1,000", "$2.50", "1e3"; None if it is none."""
    value = number_written(text)
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and not re.search(r"[.eE]", text) else value


def is_date(text: str) -> bool:
    """Whether a text is a date as ISO writes it, perhaps with a time."""
    return bool(_DATE.fullmatch(text))


def as_span(text: str, *, listed: bool = False) -> dict[str, str] | None:
    """A range such as ``0-99``, ``0..99``, ``0 to 99``, ``[0, 99]`` or ``>= 0``, or None.

    Ends are numbers or ISO dates; brackets that are turned outward or round leave an end out.

    Parameters
    ----------
    text : str
    listed : bool, default=False
        Whether two numbers with a comma or semicolon between them are a list, not a range.

    Returns
    -------
    span : dict or None
        Texts of the ends by the rules of `Field.bound`.
    """
    text = text.strip()
    if len(text) > _LONGEST_RANGE:
        return None
    brackets = re.fullmatch(r"([\[(\]])(.*)([\])\[])", text)
    if listed and not brackets and re.search(r"[,;]\s*[-+\d]", re.sub(r"\d,\d{3}\b", "0", text)):
        return None
    comma = bool(brackets) or (not listed and number(text) is None)
    ends = _two(brackets[2] if brackets else text, comma)
    if ends is not None:
        low = "minimum" if not brackets or brackets[1] == "[" else "exclusiveMinimum"
        high = "maximum" if not brackets or brackets[3] == "]" else "exclusiveMaximum"
        return {low: ends[0], high: ends[1]}
    one = _ONE_SIDED.fullmatch(text)
    sign, end = (one[1] or one[4], (one[2] or one[3]).strip()) if one else ("", "")
    if brackets or not (is_date(end) or number(end) is not None):
        return None
    side = "Minimum" if sign in (">=", "≥", "=>", ">", "+", "or more") else "Maximum"
    return {f"exclusive{side}" if sign in "<>" else side.casefold(): end}


def _two(text: str, comma: bool) -> tuple[str, str] | None:
    """Two numbers or two dates with a sign of a range between them, or the only comma."""
    marks = [(mark.start(), mark.end()) for mark in _BETWEEN.finditer(text)]
    if comma and text.count(",") == 1:
        marks.insert(0, (text.index(","), text.index(",") + 1))
    for start, stop in marks:
        ends = text[:start].strip(), text[stop:].strip()
        if all(map(is_date, ends)) and text[start] != ":":
            return ends
        if text[start] != "/" and None not in map(number, ends):
            return ends
    return None


def as_values(text: str) -> list[tuple[str, str | None]]:
    """A list of values such as ``1=Male; 2=Female``, ``a|b|c`` or ``1, Yes | 2, No``, with labels.

    The separator is the first of a new line, ``|``, ``;`` and a comma that occurs; quotes keep one.
    A label follows ``=``, ``:`` or `` - ``; between ``|`` or lines it may follow a comma.
    """
    text = text.strip().strip("{}").strip()
    bare = re.sub(r'"[^"]*"', "", text)
    separator = next((mark for mark in "\n|;," if mark in bare), ";")
    parts = text.splitlines()
    if separator != "\n":
        line = text.replace("\n", " ")
        parts = next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    items = [part.strip() for part in parts if part.strip()]
    # Every value has a label, or none has: a colon may be part of a category.
    marks = [" - "] * (len(items) > 1) + ["=", ":"] + [","] * (separator in "\n|")
    mark = next((m for m in marks if all(m in item.strip(m) for item in items)), "=")
    found = []
    for item in items:
        value, _, label = item.partition(mark) if mark in item.strip(mark) else (item, "", "")
        found.append((value.strip().strip('"'), label.strip().strip('"') or None))
    return found


def as_yes_no(text: str) -> bool | None:
    """Whether a cell says yes; None if it says something else. An empty cell says no."""
    word = text.strip().casefold()
    return True if word in _YES else False if word in _NO else None


def plain_list(texts: list[str]) -> list[Any]:
    """Values of one column: numbers if all are, truth values if all are, else text."""
    words = {text.casefold() for text in texts}
    if words and words <= {"true", "false"}:
        return [text.casefold() == "true" for text in texts]
    # As a reader of CSV files takes them: 007 is text, and so is what no float holds.
    if not all(re.fullmatch(r"-?(0|[1-9]\d{0,17})(\.\d{1,12})?", text) for text in texts):
        return list(texts)
    return [float(text) if "." in text else int(text) for text in texts]
