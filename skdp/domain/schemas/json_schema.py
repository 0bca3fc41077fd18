"""JSON Schema of the objects that are the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...exceptions import DomainError
from .bounds import after, before, cast
from .field import Field, checked_names

__all__ = ["fields_of_json_schema"]

_KINDS = {
    "string": "category",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
}
_FORMATS = {
    "date": "date",
    "date-time": "datetime",
    "uuid": "identifier",
    "time": "unknown",
    "duration": "unknown",
}
# A reference that refers to references, at most.
_DEEPEST = 50


def fields_of_json_schema(source: Mapping[str, Any]) -> list[Field]:
    """Columns of a JSON Schema: the properties of an object, or of the objects of an array.

    ``minimum``, ``maximum`` and their exclusive forms become the range (``formatMinimum`` and
    ``formatMaximum`` for dates), ``enum`` and ``const`` the categories. A property that is not
    ``required``, or may be null, may be missing. References within the file are followed.

    Raises
    ------
    DomainError
        If it describes no object, or what it says cannot be.
    """
    node = _merged(source, source, "the schema")
    if "properties" not in node and isinstance(node.get("items"), Mapping):
        node = _merged(node["items"], source, "items")
    properties = node.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        raise DomainError(
            "This JSON Schema describes no table: it has no `properties`, which are the columns."
        )
    checked_names(list(properties), "Names of properties are strings.")
    required = node.get("required", [])
    required = required if isinstance(required, list) else []
    return [_field(name, part, source, name in required) for name, part in properties.items()]


def _merged(node: Any, root: Mapping[str, Any], where: str, depth: int = 0) -> dict[str, Any]:
    """A schema with its references and ``allOf`` written out, one over the other."""
    if not isinstance(node, Mapping):
        raise DomainError(f"{where} must be an object, got {node!r}.")
    if depth > _DEEPEST:
        raise DomainError(f"{where}: the references ($ref) go round in a circle.")
    found: dict[str, Any] = {}
    if "$ref" in node:
        found.update(_merged(_target(node["$ref"], root, where), root, where, depth + 1))
    parts = node.get("allOf", [])
    for part in parts if isinstance(parts, list) else []:
        found = _over(found, _merged(part, root, where, depth + 1))
    own = {key: value for key, value in node.items() if key not in ("$ref", "allOf")}
    return _over(found, own)


def _over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Both schemas at once; what the second says wins, and columns are those of both."""
    found = {**below, **above}
    parts = [part.get("properties") for part in (below, above)]
    if all(isinstance(part, Mapping) for part in parts):
        found["properties"] = {**below["properties"], **above["properties"]}
    lists = [part.get("required") for part in (below, above)]
    if all(isinstance(part, list) for part in lists):
        found["required"] = [*below["required"], *above["required"]]
    return found


def _target(reference: Any, root: Mapping[str, Any], where: str) -> Any:
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise DomainError(
            f"{where}: the reference {reference!r} leads out of the file. Put what it refers to "
            "under $defs."
        )
    node: Any = root
    for step in reference[1:].strip("/").split("/"):
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping) and step in node:
            node = node[step]
        elif step:
            raise DomainError(f"{where}: the reference {reference!r} leads nowhere.")
    return node


def _field(name: str, part: Any, root: Mapping[str, Any], required: bool) -> Field:
    where = f"Column {name!r}"
    if part is True:
        part = {}
    node, nullable = _without_null(_merged(part, root, where), root, where)
    nullable = nullable or not required
    declared = node.get("type")
    values = _values(node)
    text = str(declared) if declared is not None else "any"
    form = node.get("format")
    kind = _KINDS.get(text, "object" if declared is None else "unknown")
    if kind in ("category", "object") and isinstance(form, str):
        kind = _FORMATS.get(form, kind)
        text = f"{text}, format {form}"
    field = Field(name, kind, text, nullable=nullable)
    if values is not None and kind != "boolean":
        field.nullable = nullable or None in values
        field.categories = [value for value in values if value is not None]
        field.kind = "category" if kind in ("object", "unknown") else kind
        return field
    if kind in ("integer", "number"):
        _numeric_bounds(field, node, where)
    elif kind in ("date", "datetime"):
        field.lower = node.get("formatMinimum", node.get("formatExclusiveMinimum"))
        field.upper = node.get("formatMaximum", node.get("formatExclusiveMaximum"))
    return field


def _numeric_bounds(field: Field, node: Mapping[str, Any], where: str) -> None:
    low, high = (
        cast(node.get(rule), field.kind, f"{where}, {rule}") for rule in ("minimum", "maximum")
    )
    above, below = node.get("exclusiveMinimum"), node.get("exclusiveMaximum")
    # Draft 4 has flags, later drafts the bounds themselves.
    if above is True:
        low = after(low, field.kind)
    elif above is not None and above is not False:
        low = after(cast(above, field.kind, f"{where}, exclusiveMinimum"), field.kind)
    if below is True:
        high = before(high, field.kind)
    elif below is not None and below is not False:
        high = before(cast(below, field.kind, f"{where}, exclusiveMaximum"), field.kind)
    field.lower, field.upper = low, high
    step = node.get("multipleOf")
    if isinstance(step, float) and field.kind == "number":
        decimals = next((d for d in range(1, 10) if step == float(f"1e-{d}")), None)
        field.decimals = decimals


def _values(node: Mapping[str, Any]) -> list[Any] | None:
    """Values that a schema lists, if it does."""
    if "const" in node:
        return [node["const"]]
    if isinstance(node.get("enum"), list):
        return list(node["enum"])
    for key in ("oneOf", "anyOf"):
        options = node.get(key)
        if isinstance(options, list) and options:
            lists = [_values(option) if isinstance(option, Mapping) else None for option in options]
            if all(part is not None for part in lists):
                return [value for part in lists for value in part or []]
    return None


def _without_null(
    node: dict[str, Any], root: Mapping[str, Any], where: str
) -> tuple[dict[str, Any], bool]:
    """A schema without its alternative null, and whether it had one."""
    nullable = node.get("nullable") is True
    declared = node.get("type")
    if isinstance(declared, list):
        others = [kind for kind in declared if kind != "null"]
        nullable = nullable or len(others) < len(declared)
        node = {**node, "type": others[0] if len(others) == 1 else others}
    for key in ("anyOf", "oneOf"):
        options = node.get(key)
        if not isinstance(options, list):
            continue
        merged = [_merged(option, root, where) for option in options]
        others = [option for option in merged if option.get("type") != "null"]
        nullable = nullable or len(others) < len(merged)
        rest = {name: value for name, value in node.items() if name != key}
        node = {**rest, **others[0]} if len(others) == 1 else {**rest, key: others}
    return node, nullable
