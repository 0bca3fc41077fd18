"""Categories that a type declares: of pandas, Polars, narwhals, or an Enum of Python."""

from __future__ import annotations

import enum
from typing import Any

import pandas as pd

from ..exceptions import DomainError

__all__ = ["declared_categories"]


def declared_categories(declared: Any) -> tuple[Any, bool]:
    """The categories of a type, and whether it orders them; other things as they are.

    Parameters
    ----------
    declared : CategoricalDtype, Enum of Polars or narwhals, class of enum.Enum, or anything else
        No import is needed to recognise them.

    Raises
    ------
    DomainError
        If it is a type of categories that does not say which they are.
    """
    if isinstance(declared, pd.CategoricalDtype):
        if declared.categories is None:
            raise _without_categories("CategoricalDtype")
        return declared.categories.tolist(), bool(declared.ordered)
    if isinstance(declared, type) and issubclass(declared, enum.Enum):
        return [member.value for member in declared], False
    home = (declared if isinstance(declared, type) else type(declared)).__module__
    name = declared.__name__ if isinstance(declared, type) else type(declared).__name__
    library = home.partition(".")[0]
    if library in ("polars", "narwhals") and name in ("Enum", "Categorical"):
        known = None if isinstance(declared, type) else getattr(declared, "categories", None)
        if name == "Categorical" or known is None:
            raise _without_categories(f"{library}.{name}")
        # Polars compares the values of an Enum by their place.
        return list(known), True
    if library == "pyarrow" and name == "DictionaryType":
        raise _without_categories(str(declared))
    return declared, False


def _without_categories(name: str) -> DomainError:
    return DomainError(
        f"The type {name} does not say which categories there are. List them, as in "
        "Categorical(['F', 'M']); reading them from the data would leak them."
    )
