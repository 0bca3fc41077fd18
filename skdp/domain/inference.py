"""Attributes read from data: not private."""

from __future__ import annotations

import numpy as np

from .._types import FloatArray
from ..exceptions import DomainError
from .categorical import Categorical
from .numeric import Numeric
from .reading import Column
from .values import MAX_INTEGER, as_int, is_missing, plain_category

# In an inferred domain, integers in a range of at most this size get one code each.
_INFER_INTEGERS = 256


def infer_attribute(column: Column, name: str, bins: int) -> Numeric | Categorical:
    """Smallest attribute that holds a column's values."""
    if column.kind in ("temporal", "zoned"):
        raise DomainError(
            f"Column {name!r} (type {column.dtype}) holds dates or times, which are not inferred; "
            "leave it out, or declare the domain, with Date or Datetime."
        )
    if column.kind in ("duration", "other"):
        raise DomainError(
            f"Column {name!r} (type {column.dtype}) holds neither numbers nor text; convert it."
        )
    if column.kind == "numeric":
        return _infer_numeric(column.numbers(), name, bins)
    codes, uniques = column.factorize()
    occurring = [uniques[code] for code in np.unique(codes[codes >= 0])]
    plain = {
        plain_category(value, f"Column {name!r} cannot be inferred: value")
        for value in occurring
        if not is_missing(value)
    }
    if not plain:
        raise _nothing_to_infer(name)
    missing = bool((codes < 0).any()) or any(is_missing(value) for value in occurring)
    categories = sorted(plain, key=lambda value: (isinstance(value, str), str(value)))
    if not any(isinstance(value, str) for value in plain):
        categories = sorted(plain)  # type: ignore[type-var]
    return Categorical(categories, nullable=missing)


def _infer_numeric(values: FloatArray, name: str, bins: int) -> Numeric:
    present = values[np.isfinite(values)]
    missing = bool(np.isnan(values).any())
    if not len(present):
        raise _nothing_to_infer(name)
    low, high = float(present.min()), float(present.max())
    integers = bool((present == np.floor(present)).all())
    if integers and high - low < _INFER_INTEGERS:
        return Numeric(low, high, integer=True, nullable=missing)
    n_bins = as_int(bins, "bins")
    if integers and 1 <= n_bins <= high - low and (high - low) * n_bins < MAX_INTEGER:
        return Numeric(low, high, n_bins, integer=True, nullable=missing)
    # A constant column gets a range above its value, because numbers need a range.
    return Numeric(low, high if high > low else low + max(1.0, abs(low)), n_bins, nullable=missing)


def _nothing_to_infer(name: str) -> DomainError:
    return DomainError(f"Column {name!r} has no value to infer a range or categories from.")
