"""One charge of a ledger, the unit of privacy it protects, and the rules for the next charge."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import NoReturn

from ..exceptions import BudgetExceededError, LedgerError
from ._loss import PrivacyLoss, short_text

RECORD, PERSON = "record", "person"
# What a charge says of itself beside its name: free text; the source of the records as given; the
# class that made the release; a hash of the domain; and what its guarantee assumes of the source.
ABOUT = ("purpose", "source", "estimator", "domain", "assumes")
# Suffix by which earlier versions marked the name of a charge that protects a person.
OLD_MARK = ", unit: person"
# Largest denominator of what was spent, and the part of a charge that rounding adds: less than
# 1e-60.
_FINEST = 10**60
_ROUNDING = "rounding"


@dataclass(frozen=True)
class Entry:
    """One recorded charge.

    ``about`` says what it was for, in texts with the keys of `ABOUT`. ``reserve`` is the epsilon
    that must be left after it, for what the same release will charge next; it is not recorded.
    ``unit`` is what the loss protects, a record or a person. It is the unit of ``loss``, except
    in files of earlier versions, which did not store the bound on the records of a person.
    """

    time: str
    name: str
    loss: PrivacyLoss
    process: int
    unit: str
    about: Mapping[str, str] = field(default_factory=dict)
    reserve: Fraction = Fraction(0)


def new_entry(
    name: str,
    loss: PrivacyLoss,
    about: Mapping[str, str] | None = None,
    reserve: Fraction = Fraction(0),
) -> Entry:
    """A charge made now, by this process."""
    told = {"assumes": loss.assumes, **(about or {})}
    told = {key: value for key, value in told.items() if value}
    wrong = [key for key, value in told.items() if key not in ABOUT or not isinstance(value, str)]
    if wrong:
        raise TypeError(
            f"about takes texts for {', '.join(ABOUT)}, got {wrong[0]!r}: {told[wrong[0]]!r}."
        )
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    unit = RECORD if loss.max_contributions is None else PERSON
    return Entry(now, name, loss, os.getpid(), unit, told, reserve)


def total_of(entries: tuple[Entry, ...]) -> Fraction:
    """Epsilon of all charges."""
    return sum((entry.loss.epsilon for entry in entries), Fraction(0))


def by_unit(entries: tuple[Entry, ...]) -> dict[str, Fraction]:
    """What was spent on each unit of privacy, in the order of the first charges."""
    spent: dict[str, Fraction] = {}
    for entry in entries:
        spent[entry.unit] = spent.get(entry.unit, Fraction(0)) + entry.loss.epsilon
    return spent


def subtotals(entries: tuple[Entry, ...]) -> str:
    """The unit of privacy of what was spent, if it is not a record."""
    spent = by_unit(entries)
    if len(spent) > 1:
        parts = " and ".join(f"{short_text(value)} per {unit}" for unit, value in spent.items())
        return f"{parts}, which do not add up"
    return "per person" if PERSON in spent else ""


def refuse_other_unit(entry: Entry) -> NoReturn:
    """Refuse a charge for a person in a ledger of records, or the reverse.

    Epsilon for a record does not bound the loss of a person with many records, so the sum of the
    two would be a bound for neither unit.
    """
    other = PERSON if entry.unit == RECORD else RECORD
    raise LedgerError(
        f"The charge {entry.name!r} protects one {entry.unit}, but this ledger holds charges that "
        f"protect one {other}. The two do not add up. Nothing was spent. Keep a ledger for each "
        "unit of privacy, or bound the contributions of all releases (max_contributions= and "
        "unit=). If each person has at most m records, a release that costs a "
        "record epsilon costs a person m * epsilon: "
        "charge(name, PrivacyLoss(m * epsilon, max_contributions=m))."
    )


def booked(total: Fraction | None, spent: Fraction, entry: Entry) -> tuple[Fraction, Entry]:
    """Total spent after a charge, and the charge as it is recorded.

    Sums of fractions with different denominators grow without bound. Where the denominator of the
    sum exceeds `_FINEST`, the sum is rounded up, though not beyond the total, and the charge is
    recorded as larger by the difference. The noise of the release stays that of what was asked.

    Raises
    ------
    BudgetExceededError
        If the budget does not cover the charge.
    """
    asked = entry.loss.epsilon
    after = spent + asked
    if total is not None and after + entry.reserve > total:
        raise BudgetExceededError(asked + entry.reserve, total - spent, total)
    if after.denominator <= _FINEST:
        return after, entry
    exact, after = after, Fraction(math.ceil(after * _FINEST), _FINEST)
    if total is not None:
        after = min(after, total - entry.reserve)
    loss = entry.loss
    parts = dict(loss.parts)
    parts[_ROUNDING] = parts.get(_ROUNDING, Fraction(0)) + after - exact
    loss = PrivacyLoss(
        after - spent, parts, seeded=loss.seeded, max_contributions=loss.max_contributions
    )
    return after, replace(entry, loss=loss)
