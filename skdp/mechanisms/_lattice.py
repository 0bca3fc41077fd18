"""Answers of queries as integers: clamped integers, or rounded to a declared lattice."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._types import IntArray
from .._validation import as_fraction

# Values, noisy values, answers and thresholds are clamped to +-REACH: beyond it, noise of any
# admitted scale decides as for the limit itself, and sums with noise (below 2**62) fit into 64
# bits.
REACH = 2**60
# Answers on a lattice are clamped to this many steps, where doubles still hold half steps.
LATTICE_REACH = 2**51
# Up to this, the error of one floating-point division is less than a step.
LATTICE_SURE = 2**46


def as_answers(values: ArrayLike) -> NDArray[Any]:
    """Answers as an array; Python integers of any size keep their type.

    NumPy turns integers beyond 64 bits into floats or objects, so that the type of a whole list
    would depend on one value.
    """
    if isinstance(values, np.ndarray):
        return values
    array = np.asarray(values)
    if array.dtype.kind not in "fO" or array.ndim != 1:
        return array
    listed: list[Any] = list(values)  # type: ignore[arg-type]
    if not all(isinstance(v, int | np.integer) and not isinstance(v, bool) for v in listed):
        return array
    return np.array([max(-REACH, min(int(v), REACH)) for v in listed], dtype=np.int64)


def as_held(value: Any, name: str) -> Fraction:
    """A number as its binary floating-point value, not as its decimal text."""
    rounded = as_fraction(value, name)
    return Fraction(value) if isinstance(value, float) else rounded


def as_lattice(lattice: Any) -> Fraction:
    step = as_held(lattice, "lattice")
    if not Fraction(1, 10**280) <= step <= 10**280:
        raise ValueError(
            f"lattice must be positive and within 1e-280 and 1e280, got {lattice!r}: it is the "
            "step to which real answers are rounded."
        )
    return step


def round_to_lattice(array: NDArray[Any], step: Fraction) -> IntArray:
    """Nearest multiple of ``step``, halves upward, exactly: floor(value / step + 1/2).

    Exact, so that values at most m steps apart get codes at most m apart; a plain floating-point
    quotient may add one.
    """
    if array.dtype.kind in "iu":
        array = np.clip(array, 0 if array.dtype.kind == "u" else -(2**53), 2**53)
    values = array.astype(np.float64)
    values[np.isnan(values)] = -np.inf
    with np.errstate(over="ignore"):
        quotients = np.clip(values / float(step), -2.0 * LATTICE_REACH, 2.0 * LATTICE_REACH)
    below = np.floor(quotients)
    fractions = quotients - below
    codes = below.astype(np.int64) + (fractions >= 0.5)
    # Step and quotient are each rounded once; results close to a half are computed exactly.
    size = np.abs(quotients)
    doubt = np.abs(fractions - 0.5) <= size * 2.0**-50
    doubt |= (size > LATTICE_SURE) & (size < 1.5 * LATTICE_REACH)
    for i in np.flatnonzero(doubt & (size < 1.5 * LATTICE_REACH)):
        codes[i] = math.floor(Fraction(float(values[i])) / step + Fraction(1, 2))
    return np.clip(codes, -LATTICE_REACH, LATTICE_REACH)
