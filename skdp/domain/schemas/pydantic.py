"""Models of pydantic: one row of a table."""

from __future__ import annotations

import datetime
import enum
import types
import uuid
from decimal import Decimal
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from ...exceptions import DomainError
from .bounds import after, before
from .field import Field, checked_names

__all__ = ["fields_of_pydantic"]

# In this order: a bool is an int, a datetime a date.
_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (Decimal, "number"),
    (datetime.datetime, "datetime"),
    (datetime.date, "date"),
    (uuid.UUID, "identifier"),
    (str, "category"),
)


def fields_of_pydantic(source: Any) -> list[Field]:
    """Columns of a model: ``Field(ge, gt, le, lt)``, ``Literal``, ``Enum``, ``Optional``.

    An alias is the name of the column. A field with ``None`` in its type may be missing; one with a
    default may not, because the model fills it in.

    Raises
    ------
    DomainError
        If it is no model, or has no fields.
    """
    if not isinstance(source, type) or not hasattr(source, "model_fields"):
        raise DomainError(f"A model of pydantic is a class, got {type(source).__name__}.")
    model_fields = source.model_fields
    names = [info.alias or name for name, info in model_fields.items()]
    checked_names(names, "Give the fields of the model other aliases.")
    return [
        _field(name, info.annotation, list(info.metadata))
        for name, info in zip(names, model_fields.values(), strict=True)
    ]


def _field(name: str, annotation: Any, metadata: list[Any]) -> Field:
    annotation, metadata, nullable = _plain(annotation, metadata)
    field = Field(name, "unknown", _text(annotation), nullable=nullable)
    values = _values(annotation)
    if values is not None:
        field.kind = "category"
        field.nullable = nullable or None in values
        field.categories = [value for value in values if value is not None]
    elif annotation is Any:
        field.kind = "object"
    elif isinstance(annotation, type):
        field.kind = next((k for kind, k in _KINDS if issubclass(annotation, kind)), "unknown")
    for constraint in metadata:
        _apply(field, constraint)
    return field


def _plain(annotation: Any, metadata: list[Any]) -> tuple[Any, list[Any], bool]:
    """A type without ``Annotated`` and ``Optional``, what was annotated, and if None may be."""
    nullable = False
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation, *more = get_args(annotation)
            metadata = [*metadata, *_unpacked(more)]
        elif origin in (Union, types.UnionType):
            others = [part for part in get_args(annotation) if part is not type(None)]
            nullable = nullable or len(others) < len(get_args(annotation))
            if len(others) != 1:
                return annotation, metadata, nullable
            annotation = others[0]
        elif hasattr(annotation, "__supertype__"):  # NewType
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        else:
            return annotation, metadata, nullable


def _unpacked(metadata: list[Any]) -> list[Any]:
    """Constraints; a ``Field`` within ``Annotated`` carries its own list."""
    found = []
    for entry in metadata:
        inner = getattr(entry, "metadata", None)
        found += inner if isinstance(inner, list) else [entry]
    return found


def _values(annotation: Any) -> list[Any] | None:
    """Values that a type lists."""
    if get_origin(annotation) is Literal:
        return [v.value if isinstance(v, enum.Enum) else v for v in get_args(annotation)]
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return [member.value for member in annotation]
    if get_origin(annotation) in (Union, types.UnionType):
        lists = [_values(part) for part in get_args(annotation) if part is not type(None)]
        if lists and all(part is not None for part in lists):
            return [value for part in lists for value in part or []]
    return None


def _apply(field: Field, constraint: Any) -> None:
    """What one constraint says: `annotated_types`, or pydantic's own."""

    def said(name: str) -> Any:
        value = getattr(constraint, name, None)
        return float(value) if isinstance(value, Decimal) else value

    if said("ge") is not None:
        field.lower = said("ge")
    if said("gt") is not None:
        field.lower = after(said("gt"), field.kind)
    if said("le") is not None:
        field.upper = said("le")
    if said("lt") is not None:
        field.upper = before(said("lt"), field.kind)
    places = said("decimal_places")
    if isinstance(places, int):
        field.decimals = places


def _text(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)
