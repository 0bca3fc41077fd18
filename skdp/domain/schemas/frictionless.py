"""Frictionless Table Schema, also within a data package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...exceptions import DomainError
from .bounds import after, before, cast
from .field import Field, checked_names

__all__ = ["fields_of_table_schema"]

_KINDS = {
    "string": "category",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
    "date": "date",
    "datetime": "datetime",
    "year": "integer",
    "yearmonth": "date",
    "any": "object",
}


def fields_of_table_schema(source: Any, *, resource: str | None = None) -> list[Field]:
    """Columns of a Table Schema.

    ``minimum`` and ``maximum`` become the range, ``enum`` and ``categories`` the categories; a
    field that is not ``required`` may be missing; a primary key of one field is an identifier;
    values in ``missingValues`` are no categories.

    Parameters
    ----------
    source : mapping or frictionless.Schema
    resource : str, optional
        Name of the resource of a data package; needed if it has several.

    Raises
    ------
    DomainError
        If it is no Table Schema, or what it says cannot be.
    """
    if not isinstance(source, Mapping):
        source = source.to_dict() if hasattr(source, "to_dict") else source.to_descriptor()
    if "resources" in source:
        source = _resource(source["resources"], resource)
    listed = source.get("fields")
    if not isinstance(listed, list) or not all(isinstance(field, Mapping) for field in listed):
        raise DomainError("A Table Schema has a list `fields` of objects with name and type.")
    checked_names([field.get("name") for field in listed], "Names are strings in the schema.")
    missing = {
        str(value.get("value") if isinstance(value, Mapping) else value)
        for value in _listed(source.get("missingValues", [""]), "missingValues")
    }
    key = source.get("primaryKey", [])
    keys = [key] if isinstance(key, str) else key
    return [_field(field, missing, keys == [field["name"]]) for field in listed]


def _resource(resources: Any, name: str | None) -> Mapping[str, Any]:
    """The table schema of one resource of a package."""
    found = [
        entry
        for entry in resources
        if isinstance(entry, Mapping)
        and isinstance(entry.get("schema"), Mapping)
        and name in (None, entry.get("name"))
    ]
    if len(found) != 1:
        names = [entry.get("name") for entry in resources if isinstance(entry, Mapping)]
        raise DomainError(
            f"The package has {len(found)} resources with a schema for resource={name!r}; name one "
            f"of {names} with resource=."
        )
    schema: Mapping[str, Any] = found[0]["schema"]
    return schema


def _listed(values: Any, what: str) -> list[Any]:
    if not isinstance(values, list):
        raise DomainError(f"{what} must be a list, got {values!r}.")
    return values


def _field(said: Mapping[str, Any], missing: set[str], is_key: bool) -> Field:
    name = said["name"]
    declared = said.get("type", "any")
    kind = _KINDS.get(declared, "unknown") if isinstance(declared, str) else "unknown"
    field = Field(name, kind, str(declared))
    if is_key or (kind == "category" and said.get("format") == "uuid"):
        field.kind = "identifier"
        return field
    rules = said.get("constraints", {})
    if not isinstance(rules, Mapping):
        raise DomainError(f"Column {name!r}: constraints must be an object, got {rules!r}.")
    pattern = said.get("format")
    pattern = pattern if isinstance(pattern, str) and "%" in pattern else None
    if kind in ("date", "datetime"):
        field.format = pattern
    if declared == "yearmonth":
        field.unit = "month"
    field.nullable = not rules.get("required", False)

    def bound(rule: str) -> Any:
        return cast(rules.get(rule), kind, f"Column {name!r}, {rule}", pattern)

    if kind in ("integer", "number", "date", "datetime"):
        field.lower, field.upper = bound("minimum"), bound("maximum")
        if "exclusiveMinimum" in rules:
            field.lower = after(bound("exclusiveMinimum"), kind)
        if "exclusiveMaximum" in rules:
            field.upper = before(bound("exclusiveMaximum"), kind)
    values = rules.get("enum", said.get("categories"))
    if values is not None and kind != "boolean":
        values = [v.get("value") if isinstance(v, Mapping) else v for v in _listed(values, "enum")]
        listed = [value for value in values if str(value) not in missing]
        if kind in ("integer", "number"):
            listed = [cast(value, kind, f"Column {name!r}, enum") for value in listed]
        field.categories = listed
        field.ordered = said.get("categoriesOrdered") is True
    return field
