"""The person that a row belongs to, and which rows of a person are kept."""

from __future__ import annotations

import datetime
import math
import numbers
import re
import string
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._keys import NO_KEY, is_missing, key_of, micros_of
from .._random import NoiseSource
from .._validation import CodeArray, IntArray, digits, reraise_interrupts
from ..domain.bins import MAX_INTEGER
from .columns import Column


@dataclass(frozen=True)
class Contributions:
    """A bound on what one person contributes.

    Attributes
    ----------
    privacy_id : str
        Column that identifies the person a row belongs to.
    most : int
        How many rows of a person are kept.
    source : NoiseSource
        Randomness that decides which rows are kept: fresh random words.
    """

    privacy_id: str
    most: int
    source: NoiseSource


def some_of_each(codes: CodeArray, owners: IntArray, bound: Contributions) -> CodeArray:
    """The rows that are kept of each person, in their order, without rows that belong to no person.

    Privacy. Which rows of a person are kept is decided by that person's own rows and by coins that
    are drawn without looking at any row. So, whatever the coins, a person more with any number of
    rows adds at most `most` rows to what is counted and takes none away: `most` steps between
    neighbours in records. What loses epsilon / most for each record loses epsilon for the person.
    """
    known = np.flatnonzero((codes >= 0).all(axis=1) & (owners >= 0))
    coins = bound.source.record_words(len(known), codes[known], owners[known])
    return codes[np.sort(known[few_of_each(owners[known], coins, bound.most)])]


def few_of_each(owners: IntArray, coins: NDArray[Any], most: int) -> IntArray:
    """Positions of at most ``most`` rows of each owner, those with the least coins; by owner."""
    order = np.lexsort((coins, owners))
    ordered = owners[order]
    place = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    return order[place < most]


# Text that some reader of files takes for a number or a boolean, if all of a column is such.
_GUESSABLE = re.compile(
    r"\s*(?:[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|0x[0-9a-f]+|inf|infinity|nan)|true|false)\s*",
    re.ASCII | re.IGNORECASE,
)
_PLAIN = [*map(id, (str, int, float, bool, bytes, Decimal))]
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
# Letters with which no such text begins: whatever begins with one is a person, without more ado.
_NAMING = frozenset(string.ascii_letters).difference("fintFINT")


def identities(column: Column, known: dict[Any, int] | None = None) -> NDArray[np.intp]:
    """A number for each value, the same for equal values; -1 where it identifies no person.

    An integer and the text that writes it are the same. What a reader of files may have changed
    identifies nobody: floats of 2**53 and more, infinities, booleans, text that writes one
    of these, and in columns of objects text that writes a number in another form than its
    shortest, such as "01". Nor do moments that are no whole microseconds, which would be one, nor
    values that are neither text nor numbers nor dates, whose equality may be unreliable.

    Parameters
    ----------
    column : Column
    known : dict, default=None
        Persons of the batches before, with their numbers; those of this one are added.
    """
    # Privacy. The person of a row follows from its own value and the type of the column, so that in
    # tables of one schema no record changes it for another. No two values that were written
    # apart have one key: what a reader may have merged (12e45678 and 9e456781 are both
    # infinite) is nobody's, a public rule. Such rows do not count, and a person more adds at
    # most the bound, as in `some_of_each`.
    known = {} if known is None else known
    values = column.read(exactly=True)
    positions, uniques = values.factorize()
    if values.exact is not None:
        positions = np.where(values.exact, positions, -1)
    # The list may hold a value twice, but a person must have one number.
    typed = column.kind == "string"
    table = [
        known.setdefault(value, len(known))
        if type(value) is int or (type(value) is str and value[:1] in _NAMING)
        else _identity(value, known, typed)
        for value in uniques
    ]
    return np.array([*table, -1], dtype=np.intp)[positions]


def _identity(value: Any, known: dict[Any, int], typed: bool) -> int:
    """Number of a value that identifies a person, a new number for a new value; else -1."""
    try:
        key = _person(value, typed)
        # A class of its own may call itself equal to other persons.
        plain = all(id(type(part)) in _PLAIN for part in (key if type(key) is tuple else (key,)))
        return known.setdefault(key, len(known)) if plain else -1
    except BaseException as error:  # an object that cannot be hashed: it depends on a value
        reraise_interrupts(error)
    return -1


def _person(value: Any, typed: bool) -> Any:
    """What a value says of the person of its row: a number or a text; None for nobody.

    Parameters
    ----------
    value : object
    typed : bool
        Whether the type of the column holds nothing but text.
    """
    if isinstance(value, str):
        return _person_of_text(str.__str__(value), typed)
    if isinstance(value, bool | np.bool_ | np.timedelta64) or is_missing(value):
        return None
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, Decimal):
        return value if value.is_finite() else None
    if isinstance(value, numbers.Real):
        # NaN was missing. From 2**53 on a float may stand for several integers, and it may be near
        # several fractions.
        number = float(value)
        return number if number == value and abs(number) < MAX_INTEGER else None
    if isinstance(value, bytes | uuid.UUID):
        return ("uuid", value.int) if isinstance(value, uuid.UUID) else ("", value)
    if isinstance(value, pd.Period):
        return value.freqstr, value.ordinal
    # All that have no key would be one person; times of the day have a zone that it lacks.
    key = key_of(value) if isinstance(value, datetime.date | np.datetime64) else NO_KEY
    if key == NO_KEY:
        return None
    if isinstance(value, np.datetime64):
        return (key, False) if micros_of(np.array([value])).exact[0] else None
    if isinstance(value, datetime.datetime):
        return None if getattr(value, "nanosecond", 0) else (key, value.utcoffset() is not None)
    return key


def _person_of_text(text: str, typed: bool) -> Any:
    if _GUESSABLE.fullmatch(text) is None:
        # Where text is no number, Arrow reads a field without anything as empty text.
        return text or None
    # One text in a file makes pandas read the numbers around it as text, and one gap as floats:
    # whoever is written as an integer or a short fraction is the same in all three.
    if _INTEGER.fullmatch(text):
        whole = int(text)
        if str(whole) == text:
            return whole
        return text if typed else None
    try:
        number = float(text)
    except ValueError:  # a boolean, or hexadecimal digits, which Arrow reads
        return text if typed and "x" in text.lower() else None
    if not math.isfinite(number) or abs(number) >= MAX_INTEGER:
        return None
    if digits(number) == text:
        return number
    # A type of text alone holds it as it was written. Among objects, pandas may have read the same
    # text as a number elsewhere: it reads large files in parts, each with types of its own.
    return text if typed else None
