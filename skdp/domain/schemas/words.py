"""Names of types, as databases, libraries and people write them."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["meaning"]

_WORDS = {
    "integer": """int integer int8 int16 int32 int64 int128 uint uint8 uint16 uint32 uint64 i8 i16
        i32 i64 u8 u16 u32 u64 bigint smallint tinyint mediumint hugeint ubigint uinteger usmallint
        utinyint uhugeint long short byte count whole wholenumber year serial bigserial""",
    "number": """number numeric num float float16 float32 float64 halffloat double doubleprecision
        real decimal decimal32 decimal64 decimal128 decimal256 money currency amount continuous
        percent percentage ratio f32 f64 scale quantity""",
    "boolean": "bool boolean boolean_ logical flag bit",
    "category": """category categorical enum factor nominal coded code codes choice radio dropdown
        select dictionary binary dichotomous str string string_ varchar nvarchar char nchar bpchar
        character charactervarying utf8 largestring stringview largeutf8 singlechoice""",
    "date": "date date32 date64 day dateymd datemdy datedmy yearmonth",
    "datetime": """datetime datetime64 timestamp timestamptz timestamps timestampms timestampns
        timestampntz timestampwithtimezone timestampwithouttimezone datetimeymd
        datetimesecondsymd smalldatetime datetime2 instant""",
    "identifier": """id identifier key uuid guid primarykey recordid uniqueidentifier
        uniqueid personid""",
    "text": """text freetext memo notes note comment comments longtext clob openended open prose
        verbatim""",
    "object": "object any objectdtype",
}
_KIND = {word: kind for kind, words in _WORDS.items() for word in words.split()}


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
    text = type_name.strip().casefold()
    head, _, inside = re.sub(r"[)\]>]\s*$", "", text).partition(
        next((mark for mark in text if mark in "([<"), "(")
    )
    word = re.sub(r"[^a-z0-9]", "", head)
    if word in ("ordinal", "ordered", "orderedcategory", "orderedfactor", "likert"):
        return "category", {"ordered": True}
    kind = _KIND.get(word) or _KIND.get(re.sub(r"[^a-z0-9]", "", text), "unknown")
    said: dict[str, Any] = {}
    if word == "yearmonth":
        said["unit"] = "month"
    if word in ("timestamptz", "timestampwithtimezone"):
        said["tz"] = "UTC"
    digits = re.fullmatch(r"\s*(?:precision=)?\d+\s*,\s*(?:scale=)?(\d+)\s*", inside)
    if kind == "number" and digits:
        said["decimals"] = int(digits[1])
    zone = re.search(
        r"(?:^|[, ])\s*(?:tz=|time_zone=)?['\"]?([a-z_]+(?:/[a-z_+\-0-9]+)*)['\"]?$", inside
    )
    if kind == "datetime" and zone and "," in inside and zone[1] not in ("none", "ns", "us", "ms"):
        # The name of the zone with its capitals.
        start = type_name.casefold().rindex(zone[1])
        said["tz"] = type_name[start : start + len(zone[1])]
    return kind, said
