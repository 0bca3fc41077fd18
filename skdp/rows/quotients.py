"""Integer quotients that engines and NumPy compute alike."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw

__all__ = ["floor", "quotient"]


def floor(value: Any) -> Any:
    """Largest integer below, where int64 holds it; engines cast by rounding or by truncation."""
    near = value.cast(nw.Int64)
    return near - nw.when(near > value).then(nw.lit(1)).otherwise(nw.lit(0))


def quotient(value: Any, divisor: int) -> Any:
    """Integer part of a quotient of integers that are not negative, below 2**45 and 2**22.

    Adding a half keeps the quotient of floats 0.5 / divisor away from the integers. Within these
    limits that is more than rounding can move it, even twice where an engine takes the reciprocal.
    """
    if isinstance(value, nw.Expr):
        return floor((value.cast(nw.Float64) + 0.5) / float(divisor))
    return value // divisor
