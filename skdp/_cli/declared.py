"""Files of what is public: domains, code books and structure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..domain import Domain, structure_from_data
from ..domain.schemas.build import load_text
from ..exceptions import DomainError

__all__ = ["read_domain", "with_rules"]


def read_domain(path: str, structure: str | None = None, *, data: str | None = None) -> Domain:
    """A domain from a file: JSON, YAML, or a schema such as a code book.

    Parameters
    ----------
    path : str
    structure : str, default=None
        File of rules between columns, which are added to those of the domain.
    data : str, default=None
        The file of records, which declares no domain.

    Raises
    ------
    DomainError
        If it declares no valid domain, or the rules do not fit it. A file that is not a domain of
        ours may be one of records by mistake, so nothing of it is quoted.
    OSError
        If it cannot be opened.
    """
    if data is not None and _same(path, data):
        raise DomainError(
            f"{path} was given both as the data and as the domain. The domain is public and "
            "declared in a file of its own: `skdp domain skeleton` prints the beginning of one."
        )
    if data is not None and structure is not None and _same(structure, data):
        raise DomainError(f"{structure} was given both as the data and as the structure.")
    return with_rules(_domain(path), path, structure)


def with_rules(domain: Domain, path: str, structure: str | None) -> Domain:
    """The domain of a file with the rules of another.

    Raises
    ------
    DomainError
        If the rules do not fit it.
    OSError
        If the file of rules cannot be opened.
    """
    if structure is None:
        return domain
    rules = _rules(structure)
    try:
        return Domain(domain, structure=rules)
    except DomainError as error:
        raise DomainError(f"The rules of {structure} do not fit {path}. {error}") from None


def _same(path: str, other: str) -> bool:
    return os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)


def _domain(path: str) -> Domain:
    if Path(path).suffix.lower() in (".json", ".yaml", ".yml"):
        source = _loaded(path, "domain")
        if isinstance(source, Mapping) and source.get("format") == "skdp.domain":
            try:
                return Domain.from_schema(source, format="domain")
            except DomainError as error:
                why = str(error).partition("declares no valid domain. ")[2] or error
                raise DomainError(f"{path} declares no valid domain. {why}") from None
    try:
        return Domain.from_schema(Path(path))
    except (DomainError, TypeError, ValueError):
        pass  # raised below, without what the file holds
    raise DomainError(
        f"{path} declares no domain. `skdp domain from-schema {path}` says why: it quotes what it "
        "cannot read, so run it on public files only."
    )


def _rules(path: str) -> list[Any]:
    """Rules in a file: a list, or an object whose key ``structure`` holds the list."""
    source = _loaded(path, "structure")
    if isinstance(source, Mapping) and list(source) == ["structure"]:
        source = source["structure"]
    try:
        return list(structure_from_data(source))
    except DomainError as error:
        raise DomainError(f"{path} is not a structure. {error}") from None


def _loaded(path: str, what: str) -> Any:
    """What a JSON or YAML file holds."""
    try:
        return load_text(path)
    except DomainError as error:
        raise DomainError(f"{path} is not a {what} in JSON or YAML. {error}") from None
