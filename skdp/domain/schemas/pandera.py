"""Schemas of pandera: checks and types of columns."""

from __future__ import annotations

from typing import Any

from ...exceptions import DomainError
from .bounds import after, before
from .dtypes import of_dtype
from .field import Field, checked_names

__all__ = ["fields_of_pandera"]


def fields_of_pandera(source: Any) -> list[Field]:
    """Columns of a DataFrameSchema or a DataFrameModel.

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
    checked_names(list(columns), "Rename the columns in the schema, and in the frame.")
    return [_field(name, column) for name, column in columns.items()]


def _field(name: str, column: Any) -> Field:
    if getattr(column, "regex", False):
        raise DomainError(
            f"Column {name!r} of the schema is a pattern (regex=True), which does not say how many "
            "columns there are. Name each of them."
        )
    field = _typed(name, column.dtype)
    field.nullable = bool(column.nullable)
    for check in column.checks:
        _apply(field, check.name, check.statistics or {})
    return field


def _typed(name: str, dtype: Any) -> Field:
    if dtype is None:
        return Field(name, "object", "any")
    native = getattr(dtype, "type", None)
    text = str(dtype)
    if native is None or text in ("date", "decimal"):
        native = text
    field = of_dtype(name, native)
    field.type = text if field.kind != "category" or field.categories is None else field.type
    return field


def _apply(field: Field, check: Any, said: dict[str, Any]) -> None:
    """What one check says about the values."""
    low, high = said.get("min_value"), said.get("max_value")
    if check == "in_range":
        open_low, open_high = not said.get("include_min", True), not said.get("include_max", True)
    else:
        open_low, open_high = check == "greater_than", check == "less_than"
    if check in ("in_range", "greater_than", "greater_than_or_equal_to"):
        field.lower = after(low, field.kind) if open_low else low
    if check in ("in_range", "less_than", "less_than_or_equal_to"):
        field.upper = before(high, field.kind) if open_high else high
    if check == "isin":
        field.categories = list(said["allowed_values"])
    if check == "equal_to":
        field.categories = [said["value"]]
