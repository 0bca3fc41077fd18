"""Checks of parameters, shared by all layers, and the wording of their errors."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

__all__ = ["as_epsilon", "as_fraction", "dyadic_floor", "split_epsilon"]


def as_fraction(value: Any, name: str) -> Fraction:
    """Read a finite real number as the decimal that the user wrote.

    ``0.1`` becomes 1/10 and not the double next to it, so that three times .1 fit into .3.

    Raises
    ------
    TypeError
        If ``value`` is not a real number (strings and booleans are not).
    ValueError
        If it is not finite.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}.")
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {value!r}.")
    return Fraction(repr(number))


def as_epsilon(value: Any, name: str = "epsilon") -> Fraction:
    """Read a privacy parameter as an exact fraction.

    Raises
    ------
    TypeError
        If ``value`` is not a number.
    ValueError
        If it is not positive and finite.
    """
    epsilon = as_fraction(value, name)
    if epsilon <= 0:
        raise ValueError(
            f"{name} must be positive, got {value!r}: without privacy loss nothing can be "
            "released. Typical values lie between 0.01 and 10."
        )
    return epsilon


def split_epsilon(epsilon: Fraction, shares: Mapping[str, Any]) -> dict[str, Fraction]:
    """Divide ``epsilon`` into named parts in proportion to ``shares``; the parts sum to it exactly.

    Parameters
    ----------
    epsilon : Fraction
    shares : mapping of str to number
        Non-negative weights; zero shares get no part.
    """
    weights = {name: as_fraction(share, f"share {name!r}") for name, share in shares.items()}
    total = sum(weights.values())
    if total <= 0 or any(weight < 0 for weight in weights.values()):
        raise ValueError(f"Shares must be non-negative and not all zero, got {dict(shares)!r}.")
    return {name: epsilon * weight / total for name, weight in weights.items() if weight}


def dyadic_floor(epsilon: Fraction, bits: int = 20) -> Fraction:
    """Largest multiple of 2**-bits at most ``epsilon``: what the noise is drawn at.

    Never rounds up. More bits are taken for small values, so that at most one part in 2**10
    of the budget is left unused.
    """
    while epsilon * 2**bits < 2**10:
        bits += 10
    return Fraction(math.floor(epsilon * 2**bits), 2**bits)
