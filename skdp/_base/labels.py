"""The label of a classification task: its declared values, and rows without its column."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import IntArray
from ..domain import Categorical, Domain
from ..exceptions import DomainError
from ..rows import Frame, select_columns

__all__ = ["label_classes", "without_label"]


def label_classes(domain: Domain, target: str) -> tuple[Any, IntArray]:
    """Declared labels, sorted, and the position among them of each code."""
    attribute = domain[target]
    if isinstance(attribute, Categorical):
        classes, class_of = np.unique(np.array(attribute.categories), return_inverse=True)
        return classes, class_of.astype(np.int64)
    if attribute.summable and attribute.one_each:
        values = np.arange(attribute.lower, attribute.upper + 1, dtype=np.int64)
        values = np.append(values, np.array(attribute.special, dtype=np.int64))
        classes, class_of = np.unique(values, return_inverse=True)
        return classes, class_of.astype(np.int64)
    kind = "Numeric of intervals" if attribute.summable else type(attribute).__name__
    raise DomainError(
        f"The label {target!r} is declared as a {kind}. A classifier needs a "
        "Categorical, or a Numeric with integer=True and one bin for each integer."
    )


def without_label(X: Any, rows: Frame, domain: Domain, target: str) -> Any:
    """The table ``X``, of which ``rows`` was read, without the column of the label."""
    if rows.n_unnamed:
        names = domain.names_for(rows.n_unnamed) or domain.names
        return np.delete(np.asarray(X), names.index(target), axis=1)
    return select_columns(X, [name for name in rows.names if name != target])
