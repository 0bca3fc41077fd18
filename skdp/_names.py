"""Names of columns that a result adds to columns with names of the user's choice."""

from __future__ import annotations

from collections.abc import Container

__all__ = ["free_name"]


def free_name(wanted: str, taken: Container[str]) -> str:
    """``wanted``, followed by underscores until it differs from every name in ``taken``.

    Examples
    --------
    >>> free_name("count", {"age", "count"})
    'count_'
    """
    while wanted in taken:
        wanted += "_"
    return wanted
