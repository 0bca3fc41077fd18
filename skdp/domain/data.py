"""Domains as JSON holds them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..exceptions import DomainError
from .categorical import Categorical
from .dates import Date, Datetime
from .identifiers import Identifier
from .numeric import Numeric
from .taxonomy import Taxonomy
from .values import as_flag, refuse_placeholder

__all__ = ["domain_to_text", "parts_from_text"]

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
        text = source if isinstance(source, str) else Path(source).read_text("utf-8")
        data = json.loads(text)
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
        return pairs, list(data.get("structure", ())), as_flag(data["inferred"], "inferred")
    except DomainError as error:
        raise DomainError(f"This JSON declares no valid domain. {error}") from error
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DomainError(f"This domain is damaged: {error!r}.") from error


def _attribute_from_data(data: dict[str, Any]) -> tuple[str, Any]:
    """One attribute of a JSON domain; raises if anything is wrong with it."""
    name, kind = data.pop("name"), data.pop("type")
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
