"""`Domain.from_schema`: one door for all formats."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..._validation import check_choice
from ...exceptions import DomainError
from .build import Overrides, build
from .codebook import fields_of_codebook
from .dtypes import fields_of_dtypes, library
from .field import Field
from .frictionless import fields_of_table_schema
from .json_schema import fields_of_json_schema
from .pandera import fields_of_pandera
from .pydantic import fields_of_pydantic
from .recognise import FORMATS, load_text, recognise
from .sdnist import fields_of_sdnist
from .sdv import fields_of_sdv

if TYPE_CHECKING:
    from ..domain import Domain

__all__ = ["from_schema"]

_READERS: dict[str, Callable[..., list[Field]]] = {
    "dtypes": fields_of_dtypes,
    "codebook": fields_of_codebook,
    "frictionless": fields_of_table_schema,
    "pandera": fields_of_pandera,
    "pydantic": fields_of_pydantic,
    "json_schema": fields_of_json_schema,
    "sdv": fields_of_sdv,
    "sdnist": fields_of_sdnist,
}
_FILES = ("frictionless", "json_schema", "sdv", "sdnist", "domain")


def from_schema(
    source: Any,
    *,
    format: str | None = None,
    types: Mapping[str, Any] | None = None,
    ranges: Mapping[str, Any] | None = None,
    attributes: Mapping[str, Any] | None = None,
    drop: str | Iterable[str] = (),
    nullable: bool | Iterable[str] | None = None,
    bins: int | str | Mapping[str, int | str] | None = None,
    structure: Any = (),
    **options: Any,
) -> Domain:
    """See `Domain.from_schema`."""
    if format is None:
        format, source = recognise(source)
    else:
        check_choice(format, "format", FORMATS)
        if format != "codebook" and isinstance(source, str | os.PathLike):
            source = load_text(source)
    overrides = Overrides(types, ranges, attributes, drop, nullable, bins)
    if format in _FILES and not isinstance(source, Mapping) and library(source) != format:
        raise DomainError(
            f"A schema in the format {format} is an object of JSON, got {type(source).__name__}."
        )
    if format == "domain":
        return _own(source, options)
    reader = _READERS[format]
    _check_options(reader, format, options)
    return build(reader(source, **options), overrides, structure)


def _own(source: Any, options: Mapping[str, Any]) -> Domain:
    """A domain that was written by `Domain.to_json` or `Domain.to_yaml`."""
    from ..domain import Domain
    from ..yaml_text import completed

    if options:
        raise DomainError(f"The format domain takes no options, got {', '.join(options)}.")
    return Domain.from_json(json.dumps(completed(source)))


def _check_options(reader: Callable[..., Any], format: str, options: Mapping[str, Any]) -> None:
    known = [
        name
        for name, parameter in inspect.signature(reader).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise DomainError(
            f"The format {format} has no option {unknown[0]!r}; it takes "
            f"{', '.join(known) or 'none'}."
        )
