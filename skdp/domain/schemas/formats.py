"""Formats with one object for each column: Frictionless, JSON Schema, models, SDV, NIST.

Each reader fills in a `Field` for each column, and leaves it to the field what is written there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...exceptions import DomainError
from .cells import meaning, number, plain_list
from .codebook import fields_of_codebook
from .dtypes import fields_of_dtypes, of_dtype
from .field import Field, same_text

# Checks of pandera, and the rule that each is; others do not say which values are possible.
_CHECKS = {
    "greater_than_or_equal_to": {"min_value": "minimum"},
    "greater_than": {"min_value": "exclusiveMinimum"},
    "less_than_or_equal_to": {"max_value": "maximum"},
    "less_than": {"max_value": "exclusiveMaximum"},
    "in_range": {"min_value": "minimum", "max_value": "maximum",
                 "include_min": "exclusiveMinimum", "include_max": "exclusiveMaximum"},
    "isin": {"allowed_values": "enum"},
    "equal_to": {"value": "const"},
}  # fmt: skip


def fields_of_table_schema(source: Any, *, resource: str | None = None) -> Iterator[Field]:
    """Columns of a Table Schema of Frictionless Data, also within a data package.

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
        If it is no Table Schema.
    """
    if not isinstance(source, Mapping):
        source = source.to_dict() if hasattr(source, "to_dict") else source.to_descriptor()
    if "resources" in source:
        tables = [(part.get("name"), part.get("schema")) for part in _objects(source["resources"])]
        source = _one(tables, resource, "resource")
    absent, key = _valued(source.get("missingValues", [""])), source.get("primaryKey")
    for said in _objects(source.get("fields")):
        name: Any = said.get("name")
        rules = _object(said.get("constraints") or {}, f"Column {name!r}: constraints")
        listed = rules.get("enum", said.get("categories"))
        values = {} if listed is None else {"enum": _valued(listed)}
        field = _described(name, {**said, **rules, **values})
        field.kind = "identifier" if key in (name, [name]) else field.kind
        field.nullable, field.missing = not rules.get("required", False), absent
        field.ordered = said.get("categoriesOrdered") is True
        yield field


def _described(name: Any, said: Mapping[str, Any]) -> Field:
    """A column by the words that Table Schema and JSON Schema have in common."""
    declared, form = str(said.get("type", "any")), str(said.get("format", "default"))
    kind, more = meaning(declared)
    told = declared if form == "default" else f"{declared}, format {form}"
    field = Field(name, "unknown" if declared == "object" else kind, told, **more)
    finer = meaning(form)[0]
    if kind in ("category", "object") and finer in ("date", "datetime", "identifier"):
        field.kind = finer
    elif kind == "category" and form in ("time", "duration", "binary"):
        field.kind = "unknown"
    field.format = form if "%" in form else None
    if "enum" in said and field.kind not in ("boolean", "identifier"):
        field.categories = said["enum"]
    if field.is_moment:
        rules = {key[6:7].lower() + key[7:]: said[key] for key in said if key[:6] == "format"}
        said = {**said, **rules}
    field.bound(said)
    if field.kind == "number":
        step = said.get("multipleOf")
        field.decimals = next((d for d in range(10) if step == float(f"1e-{d}")), None)
    return field


def _object(said: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(said, Mapping):
        raise DomainError(f"{where} must be an object, got {said!r}.")
    return said


def _objects(listed: Any) -> list[Mapping[str, Any]]:
    if not isinstance(listed, list):
        raise DomainError("A Table Schema has a list `fields` of objects with name and type.")
    return [_object(said, "An entry of the Table Schema") for said in listed]


def _valued(values: Any) -> list[Any]:
    """A list of values, or of objects with a value and a label."""
    if not isinstance(values, list):
        raise DomainError(f"enum and missingValues must be lists, got {values!r}.")
    return [value.get("value") if isinstance(value, Mapping) else value for value in values]


def _one(tables: list[tuple[Any, Any]], wanted: str | None, option: str) -> Mapping[str, Any]:
    """The table of that name, or the only one."""
    found = [t for name, t in tables if wanted in (None, name) and isinstance(t, Mapping)]
    if len(found) != 1:
        names = [name for name, _ in tables]
        raise DomainError(
            f"There are {len(found)} tables for {option}={wanted!r}; name one of {names} with "
            f"{option}=."
        )
    return found[0]


def fields_of_json_schema(source: Mapping[str, Any]) -> Iterator[Field]:
    """Columns of a JSON Schema: the properties of an object, or of the objects of an array.

    ``minimum``, ``maximum`` and their exclusive forms become the range (``formatMinimum`` and
    ``formatMaximum`` for dates), ``enum`` and ``const`` the categories. A property that is not
    ``required``, or may be null, may be missing. References within the file are followed.

    Raises
    ------
    DomainError
        If it describes no object, or a reference leads nowhere.
    """
    node = _flat(source, source, "the schema")
    if "properties" not in node and isinstance(node.get("items"), Mapping):
        node = _flat(node["items"], source, "items")
    columns = node.get("properties")
    if not isinstance(columns, Mapping) or not columns:
        raise DomainError(
            "This JSON Schema describes no table: it has no `properties`, which are the columns."
        )
    required = node.get("required")
    for name, part in columns.items():
        said = _flat(part, source, f"Column {name!r}")
        field = _described(name, said)
        optional = not isinstance(required, list) or name not in required
        field.nullable = optional or said.get("nullable") is True
        yield field


def _flat(
    node: Any, root: Mapping[str, Any], where: str, path: tuple[str, ...] = ()
) -> dict[str, Any]:
    """A schema with references, ``allOf`` and alternatives written out; null becomes a flag."""
    if node is True:
        return {}
    node = _object(node, where)

    def parts(key: str) -> list[dict[str, Any]]:
        listed = node.get(key)
        return [_flat(p, root, where, path) for p in (listed if isinstance(listed, list) else [])]

    below = parts("allOf")
    if "$ref" in node:
        target = _target(node["$ref"], root, where)
        if node["$ref"] in path:
            raise DomainError(f"{where}: the references ($ref) go round in a circle.")
        below.insert(0, _flat(target, root, where, (*path, node["$ref"])))
    # What a later part says wins, and columns are those of all.
    found: dict[str, Any] = {}
    for part in [*below, {k: v for k, v in node.items() if k not in ("$ref", "allOf")}]:
        columns = [p["properties"] for p in (found, part) if isinstance(p.get("properties"), dict)]
        required = [p["required"] for p in (found, part) if isinstance(p.get("required"), list)]
        found |= part
        if len(columns) == 2:
            found["properties"] = columns[0] | columns[1]
        if len(required) == 2:
            found["required"] = required[0] + required[1]
    if "const" in found:
        found["enum"] = [found["const"]]
    if not isinstance(found.get("enum"), list):
        found.pop("enum", None)
    types = found.get("type")
    for key in ("anyOf", "oneOf"):
        if options := parts(key):
            kept = [option for option in options if option.get("type") != "null"]
            types = [option.get("type", "any") for option in options]
            if len(kept) == 1:
                found |= kept[0]
            elif kept and all("enum" in option for option in kept):
                found["enum"] = [value for option in kept for value in option["enum"]]
                types = [found.get("type", "any")] + ["null"] * (len(kept) < len(options))
    if isinstance(types, list):
        others = [kind for kind in dict.fromkeys(map(str, types)) if kind != "null"]
        found["type"] = " or ".join(others)
        found["nullable"] = found.get("nullable") is True or "null" in types
    if found.get("type") == "any":
        del found["type"]
    return found


def _target(reference: Any, root: Mapping[str, Any], where: str) -> Any:
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise DomainError(
            f"{where}: the reference {reference!r} leads out of the file. Put what it refers to "
            "under $defs."
        )
    node: Any = root
    for step in filter(None, reference[1:].split("/")):
        step = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, Mapping) or step not in node:
            raise DomainError(f"{where}: the reference {reference!r} leads nowhere.")
        node = node[step]
    return node


def fields_of_pydantic(source: Any) -> Iterator[Field]:
    """Columns of a model, from the JSON Schema that pydantic makes of it.

    An alias is the name of the column. A field with ``None`` in its type may be missing; one with a
    default may not, because the model fills it in.

    Raises
    ------
    DomainError
        If it is no model, or has no fields.
    """
    if not isinstance(source, type) or not hasattr(source, "model_json_schema"):
        raise DomainError(f"A model of pydantic is a class, got {type(source).__name__}.")
    from pydantic.json_schema import GenerateJsonSchema

    class Bounded(GenerateJsonSchema):
        """Dates with their bounds, decimals as numbers, and a name for types that JSON lacks."""

        ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}

        def date_schema(self, schema: Any) -> dict[str, Any]:
            return {"type": "string", "format": "date", **_bounds(schema)}

        def datetime_schema(self, schema: Any) -> dict[str, Any]:
            return {"type": "string", "format": "date-time", **_bounds(schema)}

        def decimal_schema(self, schema: Any) -> dict[str, Any]:
            bounds = {rule: float(end) for rule, end in _bounds(schema).items()}
            places = schema.get("decimal_places")
            step = {} if places is None else {"multipleOf": float(f"1e-{places}")}
            return {"type": "number", **step, **bounds}

        def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> dict[str, Any]:
            return {"type": error_info}

    found = source.model_json_schema(schema_generator=Bounded)
    schema = _flat(found, found, "the model")
    yield from fields_of_json_schema({**schema, "required": list(schema.get("properties", ()))})


def _bounds(schema: Mapping[str, Any]) -> dict[str, Any]:
    rules = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
    return {rule: schema[key] for key, rule in rules.items() if key in schema}


def fields_of_pandera(source: Any) -> Iterator[Field]:
    """Columns of a DataFrameSchema or a DataFrameModel of pandera.

    The checks ``in_range``, ``ge``, ``gt``, ``le``, ``lt`` become the range, ``isin`` and
    ``equal_to`` the categories; ``nullable`` is taken as it is. Other checks say nothing about
    which values are possible, and are ignored.

    Raises
    ------
    DomainError
        If it is no such schema, or names columns by a pattern.
    """
    if isinstance(source, type) and hasattr(source, "to_schema"):
        source = source.to_schema()
    columns = getattr(source, "columns", None)
    if not isinstance(columns, dict):
        raise DomainError(
            f"A schema of pandera is a DataFrameSchema or a DataFrameModel, got {type(source)}."
        )
    for name, column in columns.items():
        if getattr(column, "regex", False):
            raise DomainError(
                f"Column {name!r} of the schema is a pattern (regex=True), which does not say how "
                "many columns there are. Name each of them."
            )
        text = "any" if column.dtype is None else str(column.dtype)
        native = None if text in ("date", "decimal") else getattr(column.dtype, "type", None)
        field = of_dtype(name, text if native is None else native)
        field.type = text if field.categories is None else field.type
        field.nullable = bool(column.nullable)
        rules: dict[str, Any] = {}
        for check in column.checks:
            for key, value in (check.statistics or {}).items():
                rule = _CHECKS.get(check.name, {}).get(key, "")
                rules[rule] = not value if key.startswith("include") else value
        field.bound(rules)
        if "const" in rules or "enum" in rules:
            field.categories = [rules["const"]] if "const" in rules else list(rules["enum"])
        yield field


def fields_of_sdv(source: Any, *, table: str | None = None) -> Iterator[Field]:
    """Columns of SDV metadata, which have no ranges: those go into ``ranges=``.

    ``id`` and the primary key become identifiers; types of personal data (``email``, ``name``) are
    free text. The metadata do not say whether values may be missing, so every column has a missing
    cell; ``nullable=`` says otherwise.

    Parameters
    ----------
    source : mapping or sdv.metadata.Metadata
    table : str, optional
        Name of the table; needed if there are several.

    Raises
    ------
    DomainError
        If it is no metadata of one table.
    """
    if not isinstance(source, Mapping):
        source = source.to_dict()
    if isinstance(source.get("tables"), Mapping):
        source = _one(list(source["tables"].items()), table, "table")
    for name, said in _object(source.get("columns"), "`columns` of the metadata").items():
        said = _object(said, f"Column {name!r}")
        sdtype, stored = said.get("sdtype"), str(said.get("computer_representation", ""))
        if not isinstance(sdtype, str):
            raise DomainError(f"Column {name!r} has no sdtype in the metadata.")
        # Every type that has no kind is one of personal data, which Faker would make up.
        kind = meaning(sdtype)[0]
        kind = "text" if kind == "unknown" != sdtype else kind
        kind = "identifier" if name == source.get("primary_key") else kind
        field = Field(name, kind, f"{sdtype}, {stored}" if stored else sdtype, nullable=True)
        if kind == "number" and stored.startswith(("Int", "UInt")):
            field.kind = "integer"
        if kind == "category" and isinstance(said.get("order"), list):
            field.categories, field.ordered = said["order"], True
        field.loose = "%H" not in str(said.get("datetime_format"))
        yield field


def fields_of_sdnist(source: Mapping[str, Any], *, na_values: Any = ()) -> Iterator[Field]:
    """Columns of a schema (``dtype``, ``values``, ``min``, ``max``, ``has_null``) or a dictionary
    of NIST's data excerpts (SDNist).

    The files write "N" where a value does not apply. Read as text it is a category like others,
    and is one here. If the rows were read with ``na_values="N"``, give it here too: it is then the
    missing cell, and lists of whole numbers are numbers, as pandas reads them.

    Parameters
    ----------
    source : mapping
    na_values : str or list of str, default=()
        Values that the rows were read without.

    Raises
    ------
    DomainError
        If an entry is not as in these files.
    """
    columns = source["schema"] if isinstance(source.get("schema"), Mapping) else source
    absent = same_text(na_values)
    for name, said in columns.items():
        said = _object(said, f"Column {name!r}")
        declared = str(said.get("dtype", "any"))
        field = Field(name, meaning(declared)[0], declared, nullable=bool(said.get("has_null")))
        values: Any = said.get("values")
        ends = values if isinstance(values, Mapping) else said
        if isinstance(values, Mapping):
            values = [value for value in values if value not in ("min", "max")]
        field.lower, field.upper = ends.get("min"), ends.get("max")
        if field.kind == "object" and field.lower is not None:
            # The column has text only where the value does not apply.
            whole = isinstance(field.lower, int) and isinstance(field.upper, int)
            field.kind = "integer" if whole else "number"
        texts = [str(value) for value in values] if isinstance(values, list) else []
        if field.bounded:
            field.codes, field.missing = texts, absent | {t for t in texts if number(t) is None}
        elif texts:
            kept = [text for text in texts if text not in absent]
            field.kind, read = "category", "dtype" not in said or len(kept) < len(texts)
            field.categories = plain_list(kept) if read else values
            # Where the null value is a category, nothing is missing.
            null = str(said.get("null_value"))
            field.nullable = len(kept) < len(texts) or (field.nullable and null not in texts)
        yield field


READERS: dict[str, Callable[..., Iterator[Field]]] = {
    "dtypes": fields_of_dtypes,
    "codebook": fields_of_codebook,
    "frictionless": fields_of_table_schema,
    "pandera": fields_of_pandera,
    "pydantic": fields_of_pydantic,
    "json_schema": fields_of_json_schema,
    "sdv": fields_of_sdv,
    "sdnist": fields_of_sdnist,
}
