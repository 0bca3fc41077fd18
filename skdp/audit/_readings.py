"""Readings: maps from outputs to integer codes, among which events are chosen.

A reading is the bin of a number, a frequent value, the structure of a mixed output, or a tuple of
readings. `_fitting` chooses their bins from trials.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._types import FloatArray, IntArray
from ._trials import Outputs, Raised, Vocabulary

LARGEST = np.finfo(float).max


class Column:
    """One number of the output."""

    def __init__(self, index: int, name: str) -> None:
        self.index = index
        self.name = name

    def __call__(self, outputs: Outputs) -> NDArray[Any]:
        return outputs.column(self.index)


class Statistic:
    """A number computed from the row of numbers."""

    def __init__(self, name: str, compute: Callable[[NDArray[Any]], NDArray[Any]], d: int) -> None:
        self.name = name
        self.compute = compute
        self.d = d

    def __call__(self, outputs: Outputs) -> NDArray[Any]:
        rows = outputs.numbers[:, : self.d].astype(float)
        if rows.shape[1] < self.d:
            missing = self.d - rows.shape[1]
            rows = np.pad(rows, ((0, 0), (0, missing)), constant_values=np.nan)
        return np.concatenate(
            [self.compute(rows[i : i + 200_000]) for i in range(0, len(rows), 200_000)]
            or [np.empty(0)]
        )


class Binned:
    """The bin of a number; bin 0 holds NaN, bin i the numbers from the i-1st to the ith cut."""

    ordered = True

    def __init__(self, statistic: Any, cuts: FloatArray) -> None:
        self.statistic = statistic
        self.cuts = cuts
        self.integer = bool(np.all(cuts == np.rint(cuts)) and np.all(np.diff(cuts) == 1))
        self.name = statistic.name
        self.size = len(cuts) + 2

    def __call__(self, outputs: Outputs) -> IntArray:
        values = self.statistic(outputs)
        codes = np.searchsorted(self.cuts, values, side="right") + 1
        if values.dtype.kind == "f":
            codes[np.isnan(values)] = 0
        return codes

    def describe(self, codes: IntArray) -> str:
        chosen = np.zeros(self.size, dtype=bool)
        chosen[codes] = True
        edges = np.concatenate([[-np.inf], self.cuts, [np.inf]])
        pieces = ["NaN"] if chosen[0] else []
        starts = np.flatnonzero(np.diff(np.concatenate([[False], chosen[1:], [False]])))
        for first, last in starts.reshape(-1, 2):
            low, high = edges[first], edges[last]
            if low == np.inf or high == -LARGEST:
                pieces.append("= inf" if low > 0 else "= -inf")
            elif high == np.nextafter(low, np.inf) or (self.integer and high == low + 1):
                pieces.append(f"= {low:.6g}")
            elif np.isinf(low) and np.isinf(high):
                pieces.append("any number")
            elif np.isinf(low):
                pieces.append(f"< {high:.6g}")
            elif np.isinf(high):
                pieces.append(f">= {low:.6g}")
            else:
                pieces.append(f"in [{low:.6g}, {high:.6g})")
        shown = " or ".join(pieces[:4])
        more = f" or {len(pieces) - 4} more intervals" if len(pieces) > 4 else ""
        return f"{self.name} {shown}{more}"


class Atoms:
    """Single values, which distinguish outputs that lie on a lattice of their own."""

    ordered = False

    def __init__(self, statistic: Any, values: FloatArray) -> None:
        self.statistic = statistic
        self.values = values
        self.name = f"exact value of {statistic.name}"

    def __call__(self, outputs: Outputs) -> IntArray:
        values = self.statistic(outputs)
        place = np.minimum(np.searchsorted(self.values, values), len(self.values) - 1)
        return np.where(self.values[place] == values, place + 1, 0)

    def describe(self, codes: IntArray) -> str:
        values = [f"{self.values[code - 1]:.6g}" if code else "another value" for code in codes]
        return f"{self.statistic.name} is {_some(values)}"


class Structure:
    """Exceptions, strings, keys and lengths; ``coarse`` forgets an exception's message."""

    ordered = False

    def __init__(self, vocabulary: Vocabulary, coarse: bool) -> None:
        self.vocabulary = vocabulary
        self.coarse = coarse
        self.name = "exception" if coarse else "structure"
        self._first: dict[Any, int] = {}

    def __call__(self, outputs: Outputs) -> IntArray:
        if not self.coarse:
            return outputs.structure
        kinds = [
            token.kind if isinstance(token, Raised) else None for token in self.vocabulary.tokens
        ]
        merged = [self._first.setdefault(kind, len(self._first)) for kind in kinds]
        return np.array(merged, dtype=np.int64)[outputs.structure]

    def describe(self, codes: IntArray) -> str:
        if self.coarse:
            kinds = list(self._first)
            return _some([f"raises {kinds[c]}" if kinds[c] else "does not raise" for c in codes])
        return f"output is {_some([_show(self.vocabulary.tokens[code]) for code in codes])}"


class Tuple:
    """Several readings at once."""

    ordered = False

    def __init__(self, parts: Sequence[Any], name: str, opaque: bool = False) -> None:
        self.parts = parts
        self.name = name
        self.opaque = opaque

    def __call__(self, outputs: Outputs) -> IntArray:
        # A mixed radix with wrap-around: collisions merge outputs, which is harmless here.
        total = np.zeros(len(outputs), dtype=np.uint64)
        for part in self.parts:
            radix = getattr(part, "size", 0) or 1_000_003
            total = total * np.uint64(radix) + part(outputs).astype(np.uint64)
        return total.view(np.int64)

    def describe(self, codes: IntArray) -> str:
        if all(isinstance(part, Binned) for part in self.parts):
            product = 1
            for part in self.parts:
                product *= part.size
            if product < 2**63:
                return f"({', '.join(p.name for p in self.parts)}) is {_some(self._rows(codes))}"
        return f"{self.name} is one of {len(codes)}"

    def _rows(self, codes: IntArray) -> list[str]:
        rows = []
        for code in codes[:4]:
            rest, cells = int(code), []
            for part in reversed(self.parts):
                rest, digit = divmod(rest, part.size)
                cells.append(
                    part.describe(np.array([digit]))[len(part.name) + 1 :].removeprefix("= ")
                )
            rows.append(f"({', '.join(reversed(cells))})")
        return rows + [""] * (len(codes) - len(rows))


class Given:
    """An event given by the user."""

    ordered = False

    def __init__(self, contains: Callable[[Any], Any], vectorised: bool) -> None:
        self.contains = contains
        self.vectorised = vectorised
        self.name = getattr(contains, "__name__", "given event")

    def __call__(self, outputs: Outputs) -> IntArray:
        if self.vectorised and isinstance(outputs.raw, np.ndarray):
            inside = np.asarray(self.contains(outputs.raw))
            if inside.shape != (len(outputs),):
                raise ValueError(
                    f"Event {self.name!r} must give one truth value for each of the "
                    f"{len(outputs)} outputs, got shape {inside.shape}."
                )
        else:
            inside = np.array(
                [not isinstance(row, Raised) and bool(self.contains(row)) for row in outputs.raw]
            )
        return inside.astype(np.int64)

    def describe(self, codes: IntArray) -> str:
        return self.name if 1 in codes else f"not {self.name}"


def _some(items: list[str]) -> str:
    shown = [item for item in items[:3] if item]
    more = f" or one of {len(items) - len(shown)} more" if len(items) > len(shown) else ""
    return " or ".join(shown) + more


def _show(token: Any) -> str:
    text = _spell(token)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _spell(token: Any) -> str:
    if isinstance(token, Raised):
        return f"{token.kind}({token.message!r})"
    if isinstance(token, tuple) and token and token[0] == "value":
        return repr(token[1])
    if isinstance(token, tuple) and token and token[0] == "sequence":
        return f"({', '.join(_spell(part) for part in token[1:])})"
    if isinstance(token, tuple) and len(token) == 2 and token[0] == "array":
        return f"an array of shape {token[1]}"
    return "a number" if token == "number" else repr(token)
