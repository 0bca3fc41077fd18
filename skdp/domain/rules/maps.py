"""Maps of derived columns: the code of the derived column for each code of its base."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._types import IntArray
from ...exceptions import DomainError
from ..categorical import Categorical
from ..numeric import Numeric
from ..values import some
from .declared import Derived
from .numberline import code_of, number_of, spans

__all__ = ["derived_codes"]


def derived_codes(rule: Derived, base: Any, target: Any) -> IntArray:
    """Code of the derived column for each code of its base.

    Parameters
    ----------
    rule : Derived
    base, target : attributes
        Of the column that decides and of the one that follows.

    Raises
    ------
    DomainError
        If a value of the base has no entry, an entry is no value of the base, intervals overlap or
        cut a bin, or a result is no value of the derived column.
    """
    results = _results(rule, target)
    codes = np.full(base.size, -1, dtype=np.int64)
    if isinstance(base, Categorical):
        _by_category(rule, base, results, codes)
    else:
        _by_interval(rule, base, results, codes)
    if base.nullable and codes[-1] < 0:
        if not target.nullable:
            raise DomainError(
                f"{rule!r}: {rule.from_!r} may be missing, and the map has no entry for that. Add "
                f"the key None, or declare {rule.column!r} with nullable=True."
            )
        codes[-1] = target.size - 1
    gaps = np.flatnonzero(codes < 0)
    if len(gaps):
        labels = base.labels()
        shown = ", ".join(labels[code] for code in gaps[:8].tolist())
        more = f", ... ({len(gaps) - 8} more)" if len(gaps) > 8 else ""
        raise DomainError(
            f"{rule!r} has gaps: the map has no entry for {shown}{more} of {rule.from_!r}. Add "
            "entries for all values."
        )
    return codes


def _results(rule: Derived, target: Any) -> list[tuple[Any, int]]:
    """Keys of the map with codes of the derived column."""
    if isinstance(target, Numeric):
        low, high = spans(target)
        if not np.array_equal(low[: target.n_values], high[: target.n_values]):
            raise DomainError(
                f"{rule!r}: a derived column has one code for each value. Declare "
                f"{rule.column!r} as Numeric(lower, upper, integer=True), or as a Categorical of "
                "its values."
            )
    found = []
    for key, value in rule.map:
        if value is None:
            if not target.nullable:
                raise DomainError(
                    f"{rule!r} maps {key!r} to None, but {rule.column!r} has no missing cell. "
                    "Declare it with nullable=True."
                )
            found.append((key, target.size - 1))
            continue
        code = code_of(target, value)
        if code is None:
            raise DomainError(
                f"{rule!r} maps {key!r} to {value!r}, which is not a declared value of "
                f"{rule.column!r}."
            )
        found.append((key, code))
    return found


def _by_category(
    rule: Derived, base: Categorical, results: list[tuple[Any, int]], codes: IntArray
) -> None:
    unknown = []
    for key, code in results:
        if key is None and base.nullable:
            codes[-1] = code
            continue
        try:
            codes[base.index_of(key)] = code
        except KeyError:
            unknown.append(key)
    if unknown:
        raise DomainError(
            f"{rule!r} has entries for {some(unknown)}, which {rule.from_!r} does not have."
        )


def _by_interval(rule: Derived, base: Any, results: list[tuple[Any, int]], codes: IntArray) -> None:
    low, high = spans(base)
    taken = np.zeros(base.size, dtype=bool)
    alone = np.zeros(base.size, dtype=bool)
    for key, code in results:
        if key is None and base.nullable:
            codes[-1] = code
        elif not isinstance(key, tuple):
            number = number_of(base, key)
            here = (low == number) & (high == number)
            if not here.any():
                raise DomainError(
                    f"{rule!r}: {key!r} has no code of its own in {rule.from_!r}. Use intervals "
                    "(low, high), or declare it with special=."
                )
            codes[here] = code
            alone |= here
    for key, code in results:
        if not isinstance(key, tuple):
            continue
        start, stop = (_end(rule, base, end, sign) for end, sign in zip(key, (-1, 1), strict=True))
        if stop == base.upper:
            stop = math.inf
        if not start < stop:
            raise DomainError(f"{rule!r}: the interval {key!r} is empty. Write (low, high).")
        inside = (low >= start) & (high < stop) & ~alone
        cut = ~inside & ~alone & (high >= start) & (low < stop)
        if cut.any():
            label = base.labels()[int(np.flatnonzero(cut)[0])]
            raise DomainError(
                f"{rule!r}: the interval {key!r} cuts the bin {label} of {rule.from_!r}. Let it "
                "begin and end where bins do, or declare the bins so (bins=, or edges=)."
            )
        if (inside & taken).any():
            raise DomainError(f"{rule!r}: the interval {key!r} overlaps another one.")
        codes[inside] = code
        taken |= inside


def _end(rule: Derived, base: Any, value: Any, sign: int) -> float:
    """An end of an interval on the number line; None is open."""
    if value is None:
        return sign * math.inf
    number = number_of(base, value)
    if number is None:
        raise DomainError(f"{rule!r}: {value!r} is no value of {rule.from_!r}.")
    return number
