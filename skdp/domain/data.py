"""Domains as JSON holds them."""

from __future__ import annotations

import datetime
import json
import numbers
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..exceptions import DomainError
from .attributes import Identifier
from .categorical import Categorical
from .dates import Date, Datetime
from .numeric import AUTO, MOST_SINGLE, Numeric
from .taxonomy import Taxonomy
from .values import refuse_placeholder

_FORMAT = "skdp.domain"

_VERSION = 1


def domain_to_text(pairs: list[tuple[str, Any]], rules: list[dict[str, Any]]) -> str:
    """JSON text of a domain: its columns in order, and its rules."""
    attributes = [{"name": name, **attribute.to_data()} for name, attribute in pairs]
    # A domain that was read from records is none.
    data = {"format": _FORMAT, "version": _VERSION, "inferred": False, "attributes": attributes}
    if rules:
        data["structure"] = rules
    return json.dumps(data, allow_nan=False)


def parts_from_text(
    source: str | os.PathLike[str],
) -> tuple[list[tuple[str, Any]], list[Any]]:
    """Columns and rules of a domain in JSON.

    Parameters
    ----------
    source : str or path-like
        A str is JSON text; a file is named by a ``pathlib.Path``.

    Raises
    ------
    DomainError
        If the text is not JSON, not a domain, of a later version, or declares no valid attribute.
    OSError
        If the file cannot be read.
    """
    if not isinstance(source, str | os.PathLike):
        raise DomainError(f"from_json takes JSON text or a path, got {type(source).__name__}.")
    try:
        data = _parsed(source) if isinstance(source, str) else read_json(source)
    except DomainError:
        raise
    except (ValueError, RecursionError) as error:
        raise DomainError(
            f"This is not a domain in JSON: {error}. A file is read with "
            "`Domain.from_json(pathlib.Path(...))`."
        ) from error
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise DomainError("This JSON is not a domain: it lacks the format 'skdp.domain'.")
    if data.get("version") != _VERSION:
        raise DomainError(
            f"This domain has version {data.get('version')!r}, but only version {_VERSION} can be "
            "read. Use the skdp that wrote it, or a newer one."
        )
    if data.get("inferred", False) is not False:
        raise DomainError(
            "This domain says that it was inferred from records: nothing that is released over it "
            "would be private. Declare it from public knowledge."
        )
    try:
        pairs, wrong = [], []
        for item in data["attributes"]:
            try:
                pairs.append((item["name"], attribute_from_data(item)))
            except DomainError as error:
                wrong.append(f"Column {item['name']!r}: {error}")
        if wrong:
            raise DomainError("\n".join(wrong))
        return pairs, list(data.get("structure", ()))
    except DomainError as error:
        raise DomainError(f"This JSON declares no valid domain. {error}") from error
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DomainError(f"This domain is damaged: {error!r}.") from error


def attribute_from_data(data: Mapping[str, Any]) -> Any:
    """One attribute of a JSON domain; raises if anything is wrong with it."""
    # A proposal has notes, too.
    said = {key: value for key, value in data.items() if key not in ("name", "type", "note")}
    kind = data["type"]
    for end in ("lower", "upper"):
        refuse_placeholder(said.get(end), end)
    if said.pop("fine", False):
        return attribute_from_data({"type": kind, **said}).fine
    if kind in ("numeric", "date", "datetime"):
        declared = {"numeric": Numeric, "date": Date, "datetime": Datetime}[kind]
        return declared(said.pop("lower", None), said.pop("upper", None), **said)
    if kind == "categorical":
        refuse_placeholder(said["categories"], "the list of categories")
        tree = said.pop("taxonomy", None)
        taxonomy = None if tree is None else Taxonomy(tree["labels"], tree["parents"])
        return Categorical(said.pop("categories"), taxonomy=taxonomy, **said)
    if kind == "identifier":
        return Identifier(said.get("format"))
    refuse_placeholder(kind, "the type (numeric, categorical, date, ...)")
    raise DomainError(f"Attribute type {kind!r} is unknown.")


# --- declarations in short: pairs and lists


def short_form(given: Any) -> Any:
    """The attribute that a pair or a list declares; anything else as it is.

    A list holds all values. A pair of whole numbers is a range of whole numbers, a pair of ISO
    dates a `Date`, with times a `Datetime`, and any other pair of numbers a range of all numbers.
    """
    if isinstance(given, list):
        return Categorical(given)
    if not isinstance(given, tuple):
        return given
    data = data_of_pair(given)
    if data is None:
        raise DomainError(
            f"A tuple is a range, (smallest, largest) in numbers or in ISO dates, got {given!r}. "
            "All values of a column of categories are given as a list."
        )
    return attribute_from_data(data)


def data_of_pair(pair: Sequence[Any]) -> dict[str, Any] | None:
    """What JSON says of a range of numbers, dates or times; None if it is none of these."""
    if len(pair) != 2:
        return None
    data = {"lower": pair[0], "upper": pair[1]}
    if all(isinstance(end, numbers.Real) and not isinstance(end, bool) for end in pair):
        data |= {"type": "numeric", "integer": all(isinstance(end, int) for end in pair)}
        return data | ({"bins": AUTO} if single_or_auto(data) else {})
    if all(
        is_date(end) if isinstance(end, str) else isinstance(end, datetime.date) for end in pair
    ):
        return data | {"type": "datetime" if any(map(has_time, pair)) else "date"}
    return None


def single_or_auto(data: Mapping[str, Any]) -> str | None:
    """Bins where nobody gives any: one code each for a million integers is rarely meant."""
    ends = [data["lower"], data["upper"]]
    known = data.get("integer") and all(isinstance(end, int | float) for end in ends)
    return AUTO if known and ends[1] - ends[0] >= MOST_SINGLE else None


_DATE = re.compile(r"\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?)?")


def is_date(text: str) -> bool:
    """Whether a text is a date as ISO writes it, perhaps with a time."""
    return bool(_DATE.fullmatch(text))


def has_time(end: Any) -> bool:
    """Whether an end of a range names a time of day."""
    if isinstance(end, str):
        return bool(re.search(r"\d[T ]\d", end))
    if isinstance(end, datetime.datetime):
        return end.time() != datetime.time() or end.tzinfo is not None
    return False


# --- domains that a person can edit


def short(item: Mapping[str, Any]) -> dict[str, Any]:
    """An attribute without entries that follow from the rest: so one change is made once."""
    # A flag that is not set is left out; `other` may be the category False.
    kept = {k: v for k, v in item.items() if v is not None and (v is not False or k == "other")}
    even = not kept.keys() & {"edges", "scale", "decimals"}
    ends = [kept[key] for key in ("lower", "upper") if isinstance(kept.get(key), int | float)]
    if kept["type"] == "numeric" and "integer" in kept and even and len(ends) == 2:
        if kept.get("bins") == ends[1] - ends[0] + 1:
            del kept["bins"]
    return kept


def lined(attributes: Sequence[Mapping[str, Any]], rules: Sequence[Any], **more: Any) -> str:
    """A domain as JSON with a line for each column and rule."""
    head = {"format": _FORMAT, "version": _VERSION, **more}
    parts = [f"{_dumped(key)}: {_dumped(value)}" for key, value in head.items()]
    for key, items in (("attributes", attributes), ("structure", rules)):
        if items:
            parts.append(f"{_dumped(key)}: [\n  " + ",\n  ".join(map(_dumped, items)) + "\n]")
    return "{" + ",\n".join(parts) + "}\n"


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def editable(domain_json: str) -> str:
    """A domain in JSON with a line for each column and rule, shortened."""
    data = json.loads(domain_json)
    return lined([short(item) for item in data["attributes"]], data.get("structure", []))


def read_json(path: str | os.PathLike[str]) -> Any:
    """What a JSON file holds.

    Raises
    ------
    DomainError
        If it is none, or a key occurs twice in an object.
    OSError
        If it cannot be read.
    """
    path = Path(path)
    try:
        return _parsed(path.read_text("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DomainError(f"{path.name} is not JSON in UTF-8: {error}.") from error


def _parsed(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON in which no key occurs twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        repeated = next(name for name, times in Counter(n for n, _ in pairs).items() if times > 1)
        raise DomainError(f"{repeated!r} occurs twice in one object; names must be unique.")
    return found
