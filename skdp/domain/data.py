"""Domains as JSON holds them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..exceptions import DomainError
from .attributes import Identifier
from .categorical import Categorical
from .dates import Date, Datetime
from .numeric import Numeric
from .taxonomy import Taxonomy
from .values import as_flag, refuse_placeholder

_FORMAT = "skdp.domain"

# Version 2 has rules, and attributes that version 1 does not know; it is written only for them.
_VERSIONS = (1, 2)

_FIRST = {
    "numeric": {"name", "type", "lower", "upper", "bins", "integer", "nullable"},
    "categorical": {"name", "type", "categories", "ordered", "taxonomy", "other", "nullable"},
}


def domain_to_text(
    pairs: list[tuple[str, Any]], rules: list[dict[str, Any]], inferred: bool
) -> str:
    """JSON text of a domain.

    Parameters
    ----------
    pairs : list of (str, attribute)
        All columns in order.
    rules : list of dict
        Its structure.
    inferred : bool
    """
    attributes = [{"name": name, **attribute._to_data()} for name, attribute in pairs]
    new = bool(rules) or not all(
        set(data) <= _FIRST.get(data["type"], set()) and data.get("bins") != "auto"
        for data in attributes
    )
    data = {
        "format": _FORMAT,
        "version": _VERSIONS[new],
        "inferred": inferred,
        "attributes": attributes,
    }
    if rules:
        data["structure"] = rules
    return json.dumps(data, allow_nan=False)


def parts_from_text(
    source: str | os.PathLike[str],
) -> tuple[list[tuple[str, Any]], list[Any], bool]:
    """Columns, rules and mark of a domain in JSON.

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
    if data.get("version") not in _VERSIONS:
        raise DomainError(
            f"This domain has version {data.get('version')!r}, but only versions up to "
            f"{_VERSIONS[-1]} can be read. Use the skdp that wrote it, or a newer one."
        )
    try:
        pairs, wrong = [], []
        for item in data["attributes"]:
            try:
                pairs.append(_attribute_from_data(dict(item)))
            except DomainError as error:
                wrong.append(f"Column {item['name']!r}: {error}")
        if wrong:
            raise DomainError("\n".join(wrong))
        inferred = as_flag(data.get("inferred", False), "inferred")
        return pairs, list(data.get("structure", ())), inferred
    except DomainError as error:
        raise DomainError(f"This JSON declares no valid domain. {error}") from error
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DomainError(f"This domain is damaged: {error!r}.") from error


def _attribute_from_data(data: dict[str, Any]) -> tuple[str, Any]:
    """One attribute of a JSON domain; raises if anything is wrong with it."""
    name, kind = data.pop("name"), data.pop("type")
    data.pop("note", None)  # of a skeleton
    for end in ("lower", "upper"):
        refuse_placeholder(data.get(end), end)
    if kind == "numeric":
        return name, Numeric(data.pop("lower", None), data.pop("upper", None), **data)
    if kind in ("date", "datetime"):
        declared = Date if kind == "date" else Datetime
        return name, declared(data.pop("lower"), data.pop("upper"), **data)
    if kind == "categorical":
        refuse_placeholder(data["categories"], "the list of categories")
        tree = data.pop("taxonomy", None)
        taxonomy = None if tree is None else Taxonomy(tree["labels"], tree["parents"])
        return name, Categorical(data.pop("categories"), taxonomy=taxonomy, **data)
    if kind == "identifier":
        return name, Identifier(**data)
    refuse_placeholder(kind, "the type (numeric, categorical, date, ...)")
    raise DomainError(f"Attribute type {kind!r} is unknown.")


# --- domains that a person can edit


def short(item: Mapping[str, Any]) -> dict[str, Any]:
    """An attribute without entries that follow from the rest: so one change is made once."""
    # A flag that is not set is left out; `other` may be the category False.
    kept = {k: v for k, v in item.items() if v is not None and (v is not False or k == "other")}
    even = not kept.keys() & {"edges", "scale", "step", "decimals"}
    ends = [kept[key] for key in ("lower", "upper") if isinstance(kept.get(key), int | float)]
    if kept["type"] == "numeric" and "integer" in kept and even and len(ends) == 2:
        if kept.get("bins") == ends[1] - ends[0] + 1:
            del kept["bins"]
    return kept


def lined(attributes: Sequence[Mapping[str, Any]], rules: Sequence[Any], **more: Any) -> str:
    """A domain as JSON with a line for each column and rule."""
    head = {"format": _FORMAT, "version": _VERSIONS[-1], **more}
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
    marked = {"inferred": True} if data["inferred"] else {}
    return lined([short(item) for item in data["attributes"]], data.get("structure", []), **marked)


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
