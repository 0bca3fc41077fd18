"""Files of what is public: domains, code books and structure."""

from __future__ import annotations

from pathlib import Path

from ..domain import Domain

__all__ = ["read_domain"]


def read_domain(path: str, structure: str | None = None) -> Domain:
    """A domain from a file: JSON, YAML, or a schema such as a code book.

    Parameters
    ----------
    path : str
    structure : str, default=None
        File of rules between columns, which are added to those of the domain.

    Raises
    ------
    DomainError
        If it declares no valid domain, or the rules contradict each other.
    OSError
        If it cannot be opened.
    """
    return Domain.from_json(Path(path))
