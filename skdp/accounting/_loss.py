"""The privacy loss of one release: an exact epsilon with named parts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from .._validation import as_epsilon, as_fraction

# What Python reads and writes.
_MOST_DIGITS = 4_300
NEIGHBOURS = "add or remove one record"


def neighbours(max_rows_per_id: int | None = None) -> str:
    """What a guarantee protects: one record, or one person with a bound on the records."""
    if max_rows_per_id is None:
        return NEIGHBOURS
    return f"add or remove one person ({at_most(max_rows_per_id)})"


def at_most(max_rows_per_id: int) -> str:
    return f"at most {max_rows_per_id} record{'s' * (max_rows_per_id > 1)} of each"


def extremes_text(epsilon: Any) -> str:
    """What an unusually small or large epsilon means, in one sentence; "" for others."""
    number = float(epsilon)
    # Less answers next to nothing, and more promises next to nothing.
    if number < 0.01:
        return (
            f"Epsilon {number:g} is very small: the noise of a count has a standard deviation of "
            f"{math.sqrt(2) / number:,.0f} records or more, so that only large groups show."
        )
    if number > 20:
        return (
            f"Epsilon {number:g} protects hardly anybody: what is released may be e^{number:g} "
            "times as likely with a record as without it. Usual are 0.1 to 10."
        )
    return ""


def exact_text(value: Fraction) -> str:
    """Write a decimal if one with at most 6 significant digits is exact, else a fraction."""
    decimal = f"{float(value):.6g}"
    return decimal if Fraction(decimal) == value else str(value)


def short_text(value: Fraction) -> str:
    """Short text for display; ``~`` marks rounded numbers."""
    exact = exact_text(value)
    return exact if len(exact) <= 12 else f"~{float(value):.6g}"


def parts_text(parts: Mapping[str, Fraction]) -> str:
    return ", ".join(f"{name}={short_text(value)}" for name, value in parts.items())


@dataclass(frozen=True, init=False, repr=False)
class PrivacyLoss:
    """The epsilon of one release, exact, with named parts that add up to it.

    Parameters
    ----------
    epsilon : number or Fraction
        The privacy loss, positive. Read as the decimal that was written: 0.1 is 1/10.
    parts : mapping of str to number, default=None
        What epsilon is spent on, in order; non-negative, with sum exactly ``epsilon``. None
        stands for one part, ``{"total": epsilon}``.
    seeded : bool, default=False
        The noise comes from a seed: an experiment, without any guarantee.
    max_rows_per_id : int, default=None
        Largest number of records of each person that count; epsilon then protects the person.
        None: epsilon protects one record.
    assumes : str, default=""
        What must be true of the data for the guarantee to hold, such as that a file was written
        with its quotes closed. Empty: nothing.

    Attributes
    ----------
    epsilon : Fraction
    parts : read-only mapping of str to Fraction
    seeded : bool
    max_rows_per_id : int or None
    assumes : str
    neighbours : str
        What the guarantee protects: the presence of one record, or of one person.
    of_record : PrivacyLoss
        Loss of one record, which scales the noise: the loss over ``max_rows_per_id``.

    Raises
    ------
    ValueError
        If epsilon is not positive and finite, or the parts do not sum to it.

    Examples
    --------
    >>> from fractions import Fraction
    >>> loss = PrivacyLoss(0.3, {"cuts": Fraction(2, 10), "counts": Fraction(1, 10)})
    >>> loss + PrivacyLoss(0.1, {"counts": 0.1})
    PrivacyLoss(epsilon=0.4, parts: cuts=0.2, counts=0.2)
    """

    epsilon: Fraction
    parts: Mapping[str, Fraction] = field(hash=False)
    seeded: bool
    max_rows_per_id: int | None
    assumes: str

    def __init__(
        self,
        epsilon: Any,
        parts: Mapping[str, Any] | None = None,
        *,
        seeded: bool = False,
        max_rows_per_id: int | None = None,
        assumes: str = "",
    ) -> None:
        total, most = as_epsilon(epsilon, digits=_MOST_DIGITS), max_rows_per_id
        if most is not None and not (isinstance(most, int) and most >= 1):
            raise ValueError(f"max_rows_per_id must be None or at least 1, got {most!r}.")
        given = {"total": total} if parts is None else parts
        exact = {
            str(name): as_fraction(value, f"part {name!r}", _MOST_DIGITS)
            for name, value in given.items()
        }
        if any(value < 0 for value in exact.values()):
            raise ValueError(f"No part may be negative, got {parts_text(exact)}.")
        found = sum(exact.values(), Fraction(0))
        if found != total:
            told = ", ".join(f"{name}={exact_text(value)}" for name, value in exact.items())
            raise ValueError(
                f"The parts must sum to epsilon={exact_text(total)} exactly, but "
                f"{told or 'no part at all'} sums to {exact_text(found)}. "
                "Divide epsilon as a Fraction, or give decimals that add up."
            )
        vars(self).update(
            epsilon=total,
            parts=MappingProxyType(exact),
            seeded=bool(seeded),
            max_rows_per_id=most,
            assumes=str(assumes),
        )

    @property
    def neighbours(self) -> str:
        """What the guarantee protects, and what it assumes."""
        assumes = f"; it assumes that {self.assumes}" if self.assumes else ""
        return neighbours(self.max_rows_per_id) + assumes

    def assuming(self, what: str) -> PrivacyLoss:
        """The same loss under one more assumption on the data."""
        if what in self.assumes.split(" and "):
            return self
        return replace(self, assumes=" and ".join(filter(None, [self.assumes, what])))

    @property
    def of_record(self) -> PrivacyLoss:
        """The loss of one record."""
        most = self.max_rows_per_id
        if most is None:
            return self
        parts = {name: value / most for name, value in self.parts.items()}
        return replace(self, epsilon=self.epsilon / most, parts=parts, max_rows_per_id=None)

    # A plain state rather than __reduce__ with a function: skops restores nothing else.
    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "parts": dict(self.parts)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Checked like what a caller gives.
        self.__init__(**state)  # type: ignore[misc]

    def __add__(self, other: object) -> PrivacyLoss:
        """Sequential composition: both releases read the same records."""
        if not isinstance(other, PrivacyLoss):
            return NotImplemented
        most = self.max_rows_per_id
        if (most is None) != (other.max_rows_per_id is None):
            raise ValueError(
                "The loss of a record and that of a person do not add up. Bound the contributions "
                "of both releases, or of none."
            )
        parts = dict(self.parts)
        for name, value in other.parts.items():
            parts[name] = parts.get(name, Fraction(0)) + value
        return PrivacyLoss(
            self.epsilon + other.epsilon,
            parts,
            seeded=self.seeded or other.seeded,
            max_rows_per_id=most and max(most, other.max_rows_per_id or 1),
            assumes=" and ".join(dict.fromkeys(filter(None, [self.assumes, other.assumes]))),
        )

    def __float__(self) -> float:
        return float(self.epsilon)

    def __repr__(self) -> str:
        text = f"epsilon={short_text(self.epsilon)}"
        if list(self.parts) != ["total"]:
            text += f", parts: {parts_text(self.parts)}"
        if self.max_rows_per_id is not None:
            text += f", unit: person ({at_most(self.max_rows_per_id)})"
        if self.assumes:
            text += f", assumes that {self.assumes}"
        if self.seeded:
            text += ", seeded: no guarantee"
        return f"PrivacyLoss({text})"
