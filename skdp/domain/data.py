"""Domains as JSON holds them."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from ..exceptions import DomainError
from .categorical import Categorical
from .dates import Date, Datetime
from .identifiers import Identifier
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


# --- domains and schemas as YAML that a person can edit. Needs PyYAML (the extra ``yaml``)
#
# YAML 1.1 makes a truth value of a bare ``no``, a number of ``12:30``, and a date of
# ``2020-01-31``. A person who edits a list of categories means none of these, so here a bare word
# is text unless JSON would read it as a number, ``true``, ``false`` or ``null``.

_INT = re.compile(r"[-+]?\d+")
_FLOAT = re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+)([eE][-+]?\d+)?|[-+]?\.inf|\.nan")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_NULL = re.compile(r"~|null|Null|NULL|")
# Left out in YAML where an attribute has them; parameters of the same name have these defaults.
_DEFAULTS = {"integer": False, "nullable": False, "ordered": False, "other": None, "taxonomy": None}
_RULES = (
    ("bool", _BOOL, "tTfF"),
    ("null", _NULL, ("~", "n", "N", "")),
    ("int", _INT, "-+0123456789"),
    ("float", _FLOAT, "-+.0123456789"),
)


def _yaml() -> Any:
    try:
        import yaml
    except ImportError as error:
        raise ImportError("YAML needs PyYAML: pip install 'skdp[yaml]'") from error
    return yaml


def _whole(pattern: re.Pattern[str]) -> re.Pattern[str]:
    return re.compile(rf"(?:{pattern.pattern})\Z")


def _loader(yaml: Any) -> Any:
    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """Safe; a bare word is text, and no key may occur twice."""

        yaml_implicit_resolvers: dict[str, Any] = {}

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            self.flatten_mapping(node)
            found: dict[Any, Any] = {}
            for key_node, value_node in node.value:
                key = self.construct_object(key_node, deep=True)
                try:
                    twice = key in found
                except TypeError:
                    raise DomainError("A key of this YAML is a list or an object.") from None
                if twice:
                    raise DomainError(f"{key!r} occurs twice in one object; names must be unique.")
                found[key] = self.construct_object(value_node, deep=deep)
            return found

    def integer(loader: Any, node: Any) -> int:
        return int(node.value)

    for tag, pattern, first in _RULES:
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", _whole(pattern), list(first))
    Loader.add_constructor("tag:yaml.org,2002:int", integer)
    return Loader


def _dumper(yaml: Any) -> Any:
    class Dumper(yaml.SafeDumper):  # type: ignore[misc]
        """Lists of plain values on one line, everything else as a block."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def flat(dumper: Any, values: list[Any]) -> Any:
        plain = not any(isinstance(value, list | dict) for value in values)
        return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=plain)

    Dumper.add_representer(list, flat)
    # Text that the loader above would take for something else is written in quotes.
    for tag, pattern, first in _RULES:
        Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", _whole(pattern), list(first))
    return Dumper


def read_yaml(text: str, what: str) -> Any:
    """What a YAML text holds.

    Raises
    ------
    DomainError
        If it is not YAML, or a key occurs twice.
    ImportError
        Without PyYAML.
    """
    yaml = _yaml()
    try:
        return yaml.load(text, Loader=_loader(yaml))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, DomainError):
            raise
        raise DomainError(f"{what} is not YAML: {error}.") from error


def _shortened(data: dict[str, Any]) -> dict[str, Any]:
    """A domain without what follows from the rest, so that a person changes one thing once."""
    data["attributes"] = [
        {key: value for key, value in item.items() if not _follows(item, key)}
        for item in data["attributes"]
    ]
    return data


def _follows(item: dict[str, Any], key: str) -> bool:
    """Whether an entry of an attribute would be the same if it were left out."""
    if key in _DEFAULTS:
        return bool(item[key] is _DEFAULTS[key])
    if key != "bins" or item["type"] != "numeric" or item.get("integer") is not True:
        return False
    uneven = {"edges", "scale", "step", "decimals"} & set(item)
    if item["lower"] is None:
        return False
    return not uneven and bool(item["bins"] == item["upper"] - item["lower"] + 1)


def completed(data: Any) -> Any:
    """A domain with the entries that must be there and may be left out in YAML."""
    if isinstance(data, dict) and isinstance(data.get("attributes"), list):
        data.setdefault("inferred", False)
        for item in data["attributes"]:
            if isinstance(item, dict) and item.get("type") == "categorical":
                item.setdefault("taxonomy", None)
    return data


def yaml_as_json(source: str | os.PathLike[str]) -> str:
    """A YAML text, or the file of a path, as JSON text.

    Raises
    ------
    DomainError
        If it is not YAML, or holds what JSON cannot.
    OSError
        If the file cannot be read.
    """
    if not isinstance(source, str | os.PathLike):
        raise DomainError(f"from_yaml takes YAML text or a path, got {type(source).__name__}.")
    what = "This text" if isinstance(source, str) else str(source)
    try:
        text = source if isinstance(source, str) else Path(source).read_text("utf-8")
        return json.dumps(completed(read_yaml(text, what)))
    except DomainError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise DomainError(f"{what} is no domain in YAML: {error}.") from error


def write_yaml(domain_json: str) -> str:
    """A domain in JSON as YAML.

    Raises
    ------
    ImportError
        Without PyYAML.
    """
    yaml = _yaml()
    body = yaml.dump(
        _shortened(json.loads(domain_json)),
        Dumper=_dumper(yaml),
        sort_keys=False,
        allow_unicode=True,
        width=100,
        default_flow_style=False,
    )
    return (
        "# The public schema of a table. Edit it from what is publicly known, never from records,\n"
        "# and read it with Domain.from_yaml.\n" + body
    )
