"""A target that is a number: its declaration, and its values as shares of half its range."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import IntArray
from ..domain import Domain, Numeric
from ..exceptions import DomainError
from ..kernels.additive import UNIT, Identity

__all__ = ["declared_range", "middle_and_half", "number_link"]

# Bins of a target that is declared by its range alone.
_TARGET_BINS = 256


def declared_range(target_range: Any) -> Numeric | None:
    """The attribute of a target that ``target_range`` declares; None without one.

    Raises
    ------
    ValueError
        If it is not a pair.
    """
    if target_range is None:
        return None
    try:
        low, high = target_range
    except (TypeError, ValueError):
        raise ValueError(
            f"target_range must be a pair (low, high), got {target_range!r}."
        ) from None
    return Numeric(low, high, bins=_TARGET_BINS)


def middle_and_half(attribute: Any) -> tuple[float, float]:
    """Middle and half width of the values of a target; special values may lie outside the range."""
    values = np.append(attribute.means(), [attribute.lower, attribute.upper])
    low, high = values.min(), values.max()
    return low / 2 + high / 2, high / 2 - low / 2


def number_link(domain: Domain, target: str) -> tuple[Identity, IntArray]:
    """How scores and targets belong together, and the label of each code; -1 if it is missing.

    Raises
    ------
    DomainError
        If the target is no number.
    """
    attribute = domain[target]
    if not isinstance(attribute, Numeric) or not attribute.summable:
        raise DomainError(
            f"The target {target!r} is declared as a {type(attribute).__name__}; a regressor "
            "needs a Numeric."
        )
    middle, half = middle_and_half(attribute)
    # A range of one value says nothing: its outcomes are 0.
    values = (attribute.means() - middle) / (half or 1.0)
    outcomes = np.clip(np.rint(values * UNIT), -UNIT, UNIT).astype(np.int64)
    # A missing target is skipped.
    labels = np.append(np.arange(attribute.n_values), -1)[: attribute.size]
    return Identity(outcomes), labels
