"""Checks of parameters, shared by all layers, and the wording of their errors."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Container, Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

# Largest number of values (rows times columns) drawn by default: 2 to 10 GB.
MOST_VALUES_DRAWN = 500_000_000
# Largest number that can be asked for: 4 TB of codes.
_MOST_VALUES_HELD = 10**12


def as_number(value: Any, name: str) -> float:
    """Read a real number; it may be infinite.

    Raises
    ------
    TypeError
        If ``value`` is not a real number (strings and booleans are not).
    """
    _check_number(value, name)
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _check_number(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}.")


def as_fraction(value: Any, name: str) -> Fraction:
    """Read a finite real number as the decimal that the user wrote.

    ``0.1`` becomes 1/10 and not the double next to it, so three charges of 0.1 fit into
    a budget of 0.3.

    Raises
    ------
    TypeError
        If ``value`` is not a real number (strings and booleans are not).
    ValueError
        If it is not finite.
    """
    _check_number(value, name)
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {value!r}.")
    return Fraction(repr(number))


def as_between(value: Any, name: str, least: Any, most: Any, *, meaning: str = "") -> Fraction:
    """Read a number from ``least`` to ``most``, as `as_fraction`; ``meaning`` is why, in an error.

    Raises
    ------
    TypeError, ValueError
        As `as_fraction`, or if it lies elsewhere.
    """
    number = as_fraction(value, name)
    if not as_fraction(least, name) <= number <= as_fraction(most, name):
        raise ValueError(
            f"{name} must lie between {float(least):g} and {float(most):g}, got {value!r}"
            + (f": {meaning}" if meaning else ".")
        )
    return number


def as_share(
    value: Any, name: str, most: Any = Fraction(999, 1000), *, meaning: str = ""
) -> Fraction:
    """Read a share of a budget, of which something is left: at least 0.001, at most ``most``."""
    return as_between(value, name, Fraction(1, 1000), most, meaning=meaning)


def as_epsilon(value: Any, name: str = "epsilon", *, digits: int = 1_000) -> Fraction:
    """Read a privacy parameter as an exact fraction.

    Its parts have some more digits than epsilon, and Python writes 4,300 at most.

    Raises
    ------
    TypeError
        If ``value`` is not a number.
    ValueError
        If it is not positive and finite, or a fraction of more ``digits`` than allowed.
    """
    epsilon = as_fraction(value, name)
    if max(abs(epsilon.numerator), epsilon.denominator) >= 10**digits:
        raise ValueError(
            f"{name} must be a fraction whose numerator and denominator have at most "
            f"{digits:,} digits. Give a shorter one: Fraction(...).limit_denominator(10**12)."
        )
    if epsilon > sys.float_info.max:
        raise ValueError(f"{name} must be finite, and less than 1e308.")
    if epsilon <= 0:
        raise ValueError(
            f"{name} must be positive, got {value!r}: without privacy loss nothing can be "
            "released. Typical values lie between 0.01 and 10."
        )
    return epsilon


def as_integer(
    value: Any, name: str, least: int | None = None, *, meaning: str | None = None
) -> int:
    """Read an integer, by default of any sign.

    Parameters
    ----------
    value : int
    name : str
        Name of the parameter in messages.
    least : int, default=None
        Smallest value that is allowed.
    meaning : str, default=None
        What the parameter is, added to messages after a colon; it ends with a full stop.

    Raises
    ------
    TypeError
        If ``value`` is not an integer (floats and booleans are not).
    ValueError
        If it is less than ``least``.
    """
    end = "." if meaning is None else f": {meaning}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        kind = type(value).__name__
        raise TypeError(f"{name} must be an integer, got {value!r} of type {kind}{end}")
    if least is not None and value < least:
        raise ValueError(f"{name} must be at least {least}, got {value!r}{end}")
    return int(value)


def as_jobs(n_jobs: Any) -> int:
    """Read a number of processes: None is one, -1 as many as there are cores."""
    told = "how many processes work at once; -1 is as many as there are cores, None is one."
    if n_jobs is None or n_jobs == -1:
        return n_jobs or 1
    return as_integer(n_jobs, "n_jobs", 1, meaning=told)


def is_word(value: Any, word: str) -> bool:
    """Whether a parameter is the given string; safe for arrays and trees, unlike ``==``."""
    return isinstance(value, str) and value == word


def check_choice(value: Any, name: str, allowed: Iterable[str | None]) -> None:
    """Check that a parameter is one of a few strings (or None, if that is allowed).

    Raises
    ------
    ValueError
        If it is anything else.
    """
    choices = list(allowed)
    if not (isinstance(value, str) or value is None) or value not in choices:
        *most, last = (repr(choice) for choice in choices)
        listed = f"{', '.join(most)} or {last}" if most else last
        raise ValueError(f"{name} must be {listed}, got {value!r}.")


def check_flag(value: Any, name: str) -> None:
    """Check that a parameter is a truth value.

    Raises
    ------
    TypeError
        If it is anything else; numbers are not.
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}.")


def as_level(level: Any, name: str = "level") -> float:
    """Read a confidence level.

    Raises
    ------
    TypeError
        If ``level`` is not a number (strings and booleans are not).
    ValueError
        If it does not lie strictly between 0 and 1.
    """
    number = as_number(level, name)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must be between 0 and 1, for example 0.95, got {level!r}.")
    return number


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
    """Largest multiple of 2**-bits that is at most ``epsilon``; it scales the noise.

    Never rounds up. More bits are taken for small values, so that at most one part in 2**10
    of the budget is left unused.
    """
    while epsilon * 2**bits < 2**10:
        bits += 10
    return Fraction(math.floor(epsilon * 2**bits), 2**bits)


def as_sample_size(n_samples: Any, total: float, n_columns: int, *, most: bool = False) -> int:
    """Number of synthetic rows to draw; by default the noisy number of records.

    Parameters
    ----------
    n_samples : int or None
    total : float
        Released number of records.
    n_columns : int
    most : bool, default=False
        Whether None means at most as many rows as fit into `MOST_VALUES_DRAWN`, for training data,
        where fewer rows are enough.

    Raises
    ------
    TypeError, ValueError
        If it is not a number of rows, more than any memory holds, or None would draw more than
        `MOST_VALUES_DRAWN` values.
    """
    if n_samples is None:
        number, limit = max(0, round(total)), MOST_VALUES_DRAWN // max(n_columns, 1)
        if number <= limit or most:
            return min(number, limit)
        raise ValueError(
            f"The release holds about {number:,} records of {n_columns} columns, and drawing as "
            f"many synthetic rows would take about {number * n_columns * 12 / 1e9:,.0f} GB of "
            "memory. Give the number of rows: n_samples=1_000_000 is enough for most uses, and the "
            "release itself answers counts. Drawing again spends no budget."
        )
    number = as_integer(
        n_samples, "n_samples", 0, meaning="None draws as many rows as the noisy row count says."
    )
    if number * n_columns > _MOST_VALUES_HELD:
        raise ValueError(
            f"n_samples={number:,} rows of {n_columns} columns do not fit into memory: the largest "
            f"number is {_MOST_VALUES_HELD // n_columns:,}. Draw fewer rows at a time, each time "
            "with another random_state. Drawing again spends no budget."
        )
    return number


# --- names of columns that a result adds to columns with names of the user's choice


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
