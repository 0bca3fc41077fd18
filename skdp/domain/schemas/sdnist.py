"""Schemas and data dictionaries of NIST's data excerpts (SDNist)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...exceptions import DomainError
from .bounds import number, same_text
from .field import Field, checked_names
from .words import meaning

__all__ = ["fields_of_sdnist"]


def fields_of_sdnist(source: Mapping[str, Any], *, na_values: Any = ()) -> list[Field]:
    """Columns of a schema (``dtype``, ``values``, ``min``, ``max``, ``has_null``) or a dictionary.

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
    checked_names(list(columns), "Names are strings in the file.")
    absent = same_text([na_values] if isinstance(na_values, str) else na_values)
    return [_field(name, said, absent) for name, said in columns.items()]


def _field(name: str, said: Any, absent: set[str]) -> Field:
    if not isinstance(said, Mapping):
        raise DomainError(f"Column {name!r} must be an object, got {said!r}.")
    if "dtype" in said:
        return _of_schema(name, said, absent)
    return _of_dictionary(name, said, absent)


def _of_schema(name: str, said: Mapping[str, Any], absent: set[str]) -> Field:
    declared = str(said["dtype"])
    kind, _ = meaning(declared)
    field = Field(name, kind, declared, nullable=bool(said.get("has_null", False)))
    values = said.get("values")
    if isinstance(values, list):
        field.kind = "category" if kind == "object" else kind
        field.categories = _listed(values, absent)
        null = str(said.get("null_value"))
        # Where the null value is a category, nothing is missing.
        field.nullable = field.nullable and (null in absent or null not in same_text(values))
        return field
    field.lower, field.upper = said.get("min"), said.get("max")
    if kind == "object" and field.lower is not None:
        # The column has text only where the value does not apply.
        whole = isinstance(field.lower, int) and isinstance(field.upper, int)
        field.kind = "integer" if whole else "number"
    return field


def _of_dictionary(name: str, said: Mapping[str, Any], absent: set[str]) -> Field:
    values = said.get("values")
    if not isinstance(values, Mapping):
        return Field(name, "category", "no values given")
    listed = [value for value in values if value not in ("min", "max")]
    if "min" not in values:
        categories = _listed(listed, absent)
        numbers = [number(value) for value in listed]
        if None not in numbers and all(str(n) == v for n, v in zip(numbers, listed, strict=True)):
            categories = numbers
        return Field(
            name,
            "category",
            "values",
            categories=categories,
            nullable=len(listed) > len(categories),
        )
    low, high = values["min"], values.get("max")
    codes = [number(value) for value in listed]
    whole = all(isinstance(bound, int) for bound in (low, high))
    field = Field(name, "integer" if whole else "number", "min to max", lower=low, upper=high)
    # A code that is a number stands for itself; text says that there is none.
    special = [code for code in codes if code is not None]
    field.special = special or None
    field.nullable = None in codes
    return field


def _listed(values: list[Any], absent: set[str]) -> list[Any]:
    """Categories; as numbers where rows read without the missing values have numbers."""
    kept = [value for value in values if str(value) not in absent]
    if len(kept) < len(values):
        numbers = [number(value) if isinstance(value, str) else value for value in kept]
        if all(isinstance(n, int) and str(n) == str(v) for n, v in zip(numbers, kept, strict=True)):
            return numbers
    return kept
