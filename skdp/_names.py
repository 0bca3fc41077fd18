"""Names of columns that a result adds to columns whose names somebody else chose."""

from __future__ import annotations

from collections.abc import Container

__all__ = ["free_name"]


def free_name(wanted: str, taken: Container[str]) -> str:
    """``wanted``, with as many underscores after it as it takes to be no name in ``taken``.

    Examples
    --------
    >>> free_name("count", {"age", "count"})
    'count_'
    """
    while wanted in taken:
        wanted += "_"
    return wanted
