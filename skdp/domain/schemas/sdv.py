"""Metadata of SDV: types of the columns of one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...exceptions import DomainError
from .field import Field, checked_names

__all__ = ["fields_of_sdv"]

_KINDS = {
    "numerical": "number",
    "categorical": "category",
    "boolean": "boolean",
    "datetime": "datetime",
    "id": "identifier",
    "unknown": "unknown",
}


def fields_of_sdv(source: Any, *, table: str | None = None) -> list[Field]:
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
        tables = source["tables"]
        names = [name for name in tables if table in (None, name)]
        if len(names) != 1:
            raise DomainError(
                f"The metadata describe the tables {list(tables)}; name one with table=."
            )
        source = tables[names[0]]
    columns = source.get("columns") if isinstance(source, Mapping) else None
    if not isinstance(columns, Mapping):
        raise DomainError("Metadata of SDV have an object `columns` with the sdtype of each.")
    checked_names(list(columns), "Names are strings in the metadata.")
    return [_field(name, said, name == source.get("primary_key")) for name, said in columns.items()]


def _field(name: str, said: Any, is_key: bool) -> Field:
    if not isinstance(said, Mapping) or not isinstance(said.get("sdtype"), str):
        raise DomainError(f"Column {name!r} has no sdtype in the metadata.")
    sdtype = said["sdtype"]
    # Every other type is one of personal data, which Faker would make up.
    field = Field(name, _KINDS.get(sdtype, "text"), sdtype, nullable=True)
    if is_key:
        field.kind = "identifier"
    representation = str(said.get("computer_representation", ""))
    if sdtype == "numerical" and representation.startswith(("Int", "UInt")):
        field.kind = "integer"
        field.type = f"{sdtype}, {representation}"
    if sdtype == "categorical" and isinstance(said.get("order"), list):
        field.categories, field.ordered = said["order"], True
    if sdtype == "datetime":
        form = str(said.get("datetime_format", ""))
        field.loose = not form or "%H" not in form
    return field
