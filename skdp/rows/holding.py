"""Which type of column can hold the values that a domain draws: a public rule.

It depends on the type of the input and on the domain alone, never on the values drawn, so that
every draw has the same types.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from .._random import sampling_generator
from .types import OWN, ColumnType

__all__ = ["Held", "held_type", "scaled"]

# Integers that are exact in floats of this many bits.
_EXACT = {16: 2**11, 32: 2**24, 64: 2**53}

# Most digits of a decimal, by its bits.
_DIGITS = {32: 9, 64: 18, 128: 38, 256: 76}


@dataclass(frozen=True)
class Held:
    """What is publicly known of the values that an attribute decodes to.

    Attributes
    ----------
    kind : {"number", "boolean", "text", "mixed", "day", "time"}
        "day" for dates without a time of day.
    low, high : int or float
        Range of numbers.
    whole : bool
        Whether all numbers are integers.
    gaps : bool
        Whether a value may be missing.
    categories : tuple
        The declared categories; empty if there are none.
    ordered : bool
        Whether the order of the categories is declared to be meaningful.
    attribute : Attribute or None
        The declaration itself, where rounded numbers must keep their bins.
    """

    kind: str
    low: Any = 0
    high: Any = 0
    whole: bool = False
    gaps: bool = False
    categories: tuple[Any, ...] = ()
    ordered: bool = False
    attribute: Any = None

    @classmethod
    def by(cls, attribute: Any) -> Held:
        """What an attribute of a domain decodes to."""
        if not hasattr(attribute, "decode"):
            dtype = attribute.fresh(0).dtype
            return cls._of_numbers(attribute, True, False) if dtype == "int64" else cls("text")
        # The type of decoded values is the same for any codes, so for none.
        dtype = attribute.decode(np.zeros(0, dtype=np.int64), sampling_generator(0)).dtype
        gaps = bool(getattr(attribute, "nullable", False))
        categories = tuple(getattr(attribute, "categories", ()))
        ordered = bool(getattr(attribute, "ordered", False))
        if pd.api.types.is_datetime64_any_dtype(dtype):
            kind = "day" if type(attribute).__name__ == "Date" else "time"
            return cls(kind, attribute.lower, attribute.upper, gaps=gaps)
        if all(isinstance(value, str) for value in categories) and categories:
            return cls("text", gaps=gaps, categories=categories, ordered=ordered)
        if pd.api.types.is_bool_dtype(dtype):
            whole: Any = {"low": min(categories), "high": max(categories), "whole": True}
            return cls("boolean", **whole, gaps=gaps, categories=categories, ordered=ordered)
        if not pd.api.types.is_numeric_dtype(dtype):
            kind = "mixed" if categories else "text"
            return cls(kind, gaps=gaps, categories=categories, ordered=ordered)
        if categories:
            low, high = min(categories), max(categories)
            whole = pd.api.types.is_integer_dtype(dtype)
            return cls("number", low, high, whole, gaps, categories, ordered)
        return cls._of_numbers(attribute, bool(pd.api.types.is_integer_dtype(dtype)), gaps)

    @classmethod
    def _of_numbers(cls, attribute: Any, whole: bool, gaps: bool) -> Held:
        if not hasattr(attribute, "lower"):
            # Fresh identifiers count up from 1.
            return cls("number", 1, 2**31 - 1, True, gaps)
        special = tuple(getattr(attribute, "special", None) or ())
        low, high = min([attribute.lower, *special]), max([attribute.upper, *special])
        whole = whole or _on_whole_grid(attribute, special)
        return cls("number", low, high, whole, gaps, attribute=attribute)


def _on_whole_grid(attribute: Any, special: tuple[Any, ...]) -> bool:
    """Whether ``step`` or ``decimals`` allow integers only."""
    step, decimals = getattr(attribute, "step", None), getattr(attribute, "decimals", None)
    parts = list(special)
    if step is not None:
        parts += [step, attribute.lower]
    elif decimals is None or decimals > 0:
        return False
    return all(float(part).is_integer() for part in parts)


def held_type(wanted: ColumnType, held: Held, library: str) -> ColumnType:
    """The wanted type, or the next wider one that can hold the values of the domain.

    Parameters
    ----------
    wanted : ColumnType
        That of the input.
    held : Held
    library : {"numpy", "pandas", "polars", "pyarrow"}
        Of the output.
    """
    rule = _RULES.get(wanted.kind)
    return OWN if rule is None else rule(wanted, held, library)


def _integer(wanted: ColumnType, held: Held, library: str) -> ColumnType:
    if held.kind not in ("number", "boolean"):
        return OWN
    if not held.whole:
        return _float(_plain_float(wanted), held, library)
    for bits in (8, 16, 32, 64, 128):
        signed = wanted.signed or held.low < 0
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        if bits >= wanted.bits and low <= held.low and held.high <= high:
            if bits > max(64, wanted.bits):
                break
            return _with_gaps(wanted.but(bits=bits, signed=signed), held, library)
    return _float(_plain_float(wanted), held, library)


def _plain_float(wanted: ColumnType) -> ColumnType:
    return ColumnType("float", 64, flavour=wanted.flavour)


def _with_gaps(found: ColumnType, held: Held, library: str) -> ColumnType:
    """Integers and truth values, in a type that has missing values where they are needed."""
    if held.gaps and library == "numpy":
        return ColumnType("float", 64, flavour=found.flavour)
    if held.gaps and found.flavour == "numpy":
        return found.but(flavour="masked")
    return found


def _float(wanted: ColumnType, held: Held, library: str) -> ColumnType:
    if held.kind not in ("number", "boolean"):
        return OWN
    largest = max(abs(held.low), abs(held.high))
    for bits in (16, 32, 64):
        if bits < wanted.bits:
            continue
        dtype = np.dtype(f"f{bits // 8}").type
        if held.whole and not held.categories:
            fits = largest <= _EXACT[bits]
        elif held.categories:
            # A category stands for itself: it is not rounded.
            fits = largest <= float(np.finfo(dtype).max)
            fits = fits and all(float(dtype(value)) == value for value in held.categories)
        else:
            fits = largest <= float(np.finfo(dtype).max)
        if fits:
            return wanted.but(bits=bits)
    return OWN


def _decimal(wanted: ColumnType, held: Held, library: str) -> ColumnType:
    if held.kind not in ("number", "boolean"):
        return OWN
    if any(scaled(value, wanted.scale).denominator != 1 for value in held.categories):
        return OWN
    low = math.ceil(scaled(held.low, wanted.scale))
    high = math.floor(scaled(held.high, wanted.scale))
    if low > high:
        return OWN
    digits = max(len(str(abs(low))), len(str(abs(high))), wanted.precision)
    fitting = [bits for bits in sorted(_DIGITS) if bits >= wanted.bits and _DIGITS[bits] >= digits]
    if not fitting or (library == "polars" and digits > 38):
        return OWN
    return wanted.but(bits=fitting[0], precision=digits)


def scaled(value: Any, scale: int) -> Fraction:
    """A declared number, as it is written, in units of the last digit of a decimal."""
    written = value if isinstance(value, int) else Decimal(repr(float(value)))
    return Fraction(written) * Fraction(10) ** scale


def _boolean(wanted: ColumnType, held: Held, library: str) -> ColumnType:
    if held.whole and held.low >= 0 and held.high <= 1:
        return _with_gaps(wanted, held, library)
    return OWN


def _text(wanted: ColumnType, held: Held, library: str) -> ColumnType:
    if held.kind == "mixed":
        return OWN
    if library == "numpy" and held.gaps:
        return ColumnType("object")
    longest = max((len(str(value)) for value in held.categories), default=32)
    return wanted.but(bits=max(wanted.bits, longest)) if wanted.flavour == "U" else wanted


def _category(wanted: ColumnType, held: Held, library: str) -> ColumnType:
    if not held.categories:
        # A range of numbers has no list of categories: the type of the values.
        return OWN if wanted.values is None else held_type(wanted.values, held, library)
    if library == "polars":
        # Polars has categories of text only.
        return wanted if held.kind == "text" else OWN
    # A missing cell is no category.
    listed = replace(held, gaps=False)
    values = OWN if wanted.values is None else held_type(wanted.values, listed, library)
    bits = wanted.bits
    if bits:
        # A dictionary of Arrow, whose indices must reach the last category.
        while 2 ** (bits - wanted.signed) < len(held.categories):
            bits *= 2
    return wanted.but(values=values, bits=bits)


def _date(wanted: ColumnType, held: Held, library: str) -> ColumnType:
    if held.kind == "day":
        return wanted
    if held.kind != "time":
        return OWN
    flavour = "arrow:" if wanted.flavour.startswith("arrow:") else ""
    return ColumnType("datetime", flavour=flavour, unit="us")


def _datetime(wanted: ColumnType, held: Held, library: str) -> ColumnType:
    return wanted if held.kind in ("day", "time") else OWN


_RULES = {
    "integer": _integer,
    "float": _float,
    "decimal": _decimal,
    "boolean": _boolean,
    "text": _text,
    "category": _category,
    "date": _date,
    "datetime": _datetime,
    "period": _datetime,
    "object": lambda wanted, held, library: wanted,
}
