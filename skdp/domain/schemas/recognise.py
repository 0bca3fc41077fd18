"""Which format a schema has, and what is in a file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...exceptions import DomainError
from .dtypes import is_listing, library

__all__ = ["FORMATS", "load_text", "recognise"]

FORMATS = (
    "dtypes",
    "codebook",
    "frictionless",
    "pandera",
    "pydantic",
    "json_schema",
    "sdv",
    "sdnist",
    "domain",
)
_BOOKS = (".csv", ".tsv", ".txt", ".xlsx", ".xlsm")


def recognise(source: Any) -> tuple[str, Any]:
    """Format of a schema, and the schema with the contents of a JSON or YAML file in its place.

    Raises
    ------
    DomainError
        If it has none of the formats.
    OSError
        If a file cannot be read.
    """
    if isinstance(source, str | os.PathLike):
        ending = Path(source).suffix.casefold()
        if ending in _BOOKS:
            return "codebook", source
        source = load_text(source)
    found = _format_of(source)
    if found is None:
        raise DomainError(
            f"This {type(source).__name__} has none of the formats that can be read. Name its "
            f"format with format=, one of {', '.join(FORMATS)}, or give another source."
        )
    return found, source


def _format_of(source: Any) -> str | None:
    home = library(source)
    if home == "frictionless":
        return "frictionless"
    if home == "sdv":
        return "sdv"
    if home == "pandera" or _is_model(source, "pandera"):
        return "pandera"
    if isinstance(source, type) and hasattr(source, "model_fields"):
        return "pydantic"
    if isinstance(source, Mapping):
        return _format_of_mapping(source)
    if is_listing(source):
        return "dtypes"
    if isinstance(source, list) and source and all(isinstance(e, tuple) for e in source):
        return "dtypes"
    return None


def _is_model(source: Any, home: str) -> bool:
    """Whether a class inherits from one of a library."""
    return isinstance(source, type) and any(library(base) == home for base in source.__mro__)


def _format_of_mapping(source: Mapping[Any, Any]) -> str | None:
    if source.get("format") == "skdp.domain":
        return "domain"
    if isinstance(source.get("fields"), list) or isinstance(source.get("resources"), list):
        return "frictionless"
    if "METADATA_SPEC_VERSION" in source or _any_has(source.get("columns"), "sdtype"):
        return "sdv"
    if _any_has(source.get("schema"), "dtype"):
        return "sdnist"
    keys = ("$schema", "properties", "$ref", "items", "allOf")
    if any(key in source for key in keys) and not all(
        isinstance(value, str) for value in source.values()
    ):
        return "json_schema"
    values = list(source.values())
    if values and all(isinstance(value, Mapping) for value in values):
        return "sdnist"
    if values and not any(isinstance(value, Mapping | list) for value in values):
        return "dtypes"
    return None


def _any_has(columns: Any, key: str) -> bool:
    return isinstance(columns, Mapping) and any(
        isinstance(column, Mapping) and key in column for column in columns.values()
    )


def load_text(path: str | os.PathLike[str]) -> Any:
    """What a JSON or YAML file holds.

    Raises
    ------
    DomainError
        If it is neither, or a key occurs twice.
    OSError
        If it cannot be read.
    """
    path = Path(path)
    if not path.suffix and str(path).lstrip()[:1] in ("{", "["):
        raise DomainError(
            "A text is taken for the path of a file. Read JSON with `json.loads` first, and give "
            "what it returns."
        )
    if path.suffix.casefold() not in (".json", ".yaml", ".yml"):
        raise DomainError(
            f"Files that can be read end in {', '.join(_BOOKS)}, .json, .yaml or .yml, got "
            f"{path.name!r}. Save a workbook of another format as .xlsx or .csv."
        )
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DomainError(f"{path.name} is not text in UTF-8: {error}.") from error
    if path.suffix.casefold() == ".json":
        try:
            return json.loads(text, object_pairs_hook=_unique)
        except (ValueError, RecursionError) as error:
            if isinstance(error, DomainError):
                raise
            raise DomainError(f"{path.name} is not JSON: {error}.") from error
    from ..yaml_text import read_yaml

    return read_yaml(text, path.name)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON in which no key occurs twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise DomainError(f"{repeated!r} occurs twice in one object; names must be unique.")
    return found
