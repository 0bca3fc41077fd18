"""One charge of a ledger, the unit of privacy it protects, and the rules for the next charge."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import NoReturn

from ..exceptions import BudgetExceededError, LedgerError
from ._loss import PrivacyLoss, short_text

RECORD, PERSON = "record", "person"
# Suffix by which earlier versions marked the name of a charge that protects a person.
OLD_MARK = ", unit: person"


@dataclass(frozen=True)
class Entry:
    """One recorded charge.

    ``unit`` is what the loss protects, a record or a person. It is the unit of ``loss``, except
    in files of earlier versions, which did not store the bound on the records of a person.
    """

    time: str
    name: str
    loss: PrivacyLoss
    process: int
    unit: str


def new_entry(name: str, loss: PrivacyLoss) -> Entry:
    """A charge made now, by this process."""
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    unit = RECORD if loss.max_contributions is None else PERSON
    return Entry(now, name, loss, os.getpid(), unit)


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


def within(total: Fraction | None, spent: Fraction, asked: Fraction) -> Fraction:
    """Total spent after the charge; BudgetExceededError if the budget does not cover it."""
    if total is not None and spent + asked > total:
        raise BudgetExceededError(asked, total - spent, total)
    return spent + asked
