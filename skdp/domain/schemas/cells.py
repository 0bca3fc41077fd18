"""What people write into schemas: names of types, numbers, ranges, lists of values, yes and no."""

from __future__ import annotations

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


def as_range(text: str) -> tuple[str, str] | None:
    """The ends of a range such as ``0..99``, ``0 to 99`` or ``0-99``, numbers or dates, or None."""
    for mark in ("..", " to ", "-"):
        low, _, high = (part.strip() for part in text.partition(mark))
        if all(is_date(end) or number(end) is not None for end in (low, high)):
            return low, high
    return None


def as_values(text: str) -> list[str]:
    """A list of values such as ``a|b|c`` or ``1=Male; 2=Female``, without their labels.

    The separator is the first of ``|``, ``;`` and a comma that occurs.
    """
    separator = next((mark for mark in "|;," if mark in text), ";")
    parts = [part.strip() for part in text.split(separator)]
    return [part.partition("=")[0].strip() or part for part in parts if part]


def as_yes_no(text: str) -> bool | None:
    """Whether a cell says yes; None if it says something else."""
    return {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}.get(
        text.casefold()
    )


def plain_list(texts: list[str]) -> list[Any]:
    """Values of one column: numbers if all are, truth values if all are, else text."""
    words = {text.casefold() for text in texts}
    if words and words <= {"true", "false"}:
        return [text.casefold() == "true" for text in texts]
    # As a reader of CSV files takes them: 007 is text, and so is what no float holds.
    if not all(re.fullmatch(r"-?(0|[1-9]\d{0,17})(\.\d{1,12})?", text) for text in texts):
        return list(texts)
    return [float(text) if "." in text else int(text) for text in texts]
