"""The loss of a release, a charge of it, and where the charges of a ledger are kept.

In memory, or in an SQLite file which several processes may share.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sqlite3
import threading
import uuid
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from .._random import process_mark
from .._validation import as_epsilon, as_fraction
from ..exceptions import BudgetExceededError, LedgerError

# --- the loss of one release: an exact epsilon with named parts

# What Python reads and writes.
_MOST_DIGITS = 4_300


def neighbours(max_rows_per_id: int | None = None) -> str:
    """What a guarantee protects: one record, or one person with a bound on the records."""
    if max_rows_per_id is None:
        return "add or remove one record"
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


def short_text(value: Fraction) -> str:
    """A decimal if one of at most 6 digits is exact, else a fraction; ``~`` marks rounded ones."""
    decimal = f"{float(value):.6g}"
    exact = decimal if Fraction(decimal) == value else str(value)
    return exact if len(exact) <= 12 else f"~{decimal}"


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
            raise ValueError(
                f"The parts must sum to epsilon={short_text(total)} exactly, but "
                f"{parts_text(exact) or 'no part at all'} sums to {short_text(found)}. "
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


# --- one charge of a ledger, the unit of privacy it protects, and the rules for the next charge

RECORD, PERSON = "record", "person"
# What a charge says of itself beside its name: free text; the source of the records as given; the
# class that made the release; a hash of the domain; what its guarantee assumes of the source; and
# the column that identifies the persons whom it protects.
ABOUT = ("purpose", "source", "estimator", "domain", "assumes", "privacy_id")
# Largest denominator of what was spent, and the part of a charge that rounding adds: less than
# 1e-60.
_FINEST = 10**60
_ROUNDING = "rounding"


def unit_of(loss: PrivacyLoss | None) -> str:
    """What is protected, as far as that is known."""
    return RECORD if loss is None or loss.max_rows_per_id is None else PERSON


@dataclass(frozen=True)
class Entry:
    """One recorded charge.

    ``about`` says what it was for, in texts with the keys of `ABOUT`. ``reserve`` is the epsilon
    that must be left after it, for what the same release will charge next; it is not recorded.
    """

    time: str
    name: str
    loss: PrivacyLoss
    process: int
    about: Mapping[str, str] = field(default_factory=dict)
    reserve: Fraction = Fraction(0)

    @property
    def unit(self) -> str:
        """What the loss protects, a record or a person."""
        return unit_of(self.loss)


def new_entry(
    name: str,
    loss: PrivacyLoss,
    about: Mapping[str, str] | None = None,
    reserve: Fraction = Fraction(0),
) -> Entry:
    """A charge made now, by this process."""
    told = {key: value for key, value in (about or {}).items() if value}
    if loss.assumes:
        told.setdefault("assumes", loss.assumes)
    wrong = [key for key, value in told.items() if key not in ABOUT or not isinstance(value, str)]
    if wrong:
        raise TypeError(
            f"about takes texts for {', '.join(ABOUT)}, got {wrong[0]!r}: {told[wrong[0]]!r}."
        )
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    return Entry(now, name, loss, os.getpid(), told, reserve)


def total_of(entries: tuple[Entry, ...]) -> Fraction:
    """Epsilon of all charges."""
    return sum((entry.loss.epsilon for entry in entries), Fraction(0))


def refuse_other_unit(entry: Entry) -> NoReturn:
    """Refuse a charge for a person in a ledger of records, or the reverse.

    Epsilon for a record does not bound the loss of a person with many records, so the sum of the
    two would be a bound for neither unit.
    """
    other = PERSON if entry.unit == RECORD else RECORD
    raise LedgerError(
        f"The charge {entry.name!r} protects one {entry.unit}, but this ledger holds charges that "
        f"protect one {other}. The two do not add up. Nothing was spent. Bound the contributions "
        "of all releases (max_rows_per_id= and privacy_id=). If each person has at most m "
        "records, a release that costs a record epsilon costs a person m * epsilon: "
        "charge(name, PrivacyLoss(m * epsilon, max_rows_per_id=m))."
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
    return after, replace(entry, loss=replace(loss, epsilon=after - spent, parts=parts))


class FileStore:
    """Charges in an SQLite file, shared by all processes that know its path.

    Every operation opens its own connection: nothing is carried through a fork, between threads
    or in a pickle. The file is opened through SQLite only, because closing any
    handle of a file drops all POSIX locks that the process holds on it.
    """

    # "skdp" in ASCII; kept in the header of the file.
    APPLICATION_ID = 0x736B6470
    SCHEMA_VERSION = 4
    BUSY_SECONDS = 10.0

    # What identifies a charge, and the newest one that was seen in the file.
    _NEWEST = "SELECT id, time, name, epsilon, process, spent, token FROM charges"
    _last: tuple[Any, ...] | None = None

    def __init__(self, path: Path, total: Fraction | None, name: str | None) -> None:
        self.path = path
        self._header: tuple[str, Fraction] | None = None
        if path.exists() and not path.is_file():
            raise LedgerError(
                f"{str(path)!r} is a directory or a device; a ledger is a file. Nothing was spent. "
                "Give the path of a file."
            )
        if not path.exists() or path.stat().st_size == 0:
            self._create(total, name)
        with self._transaction() as connection:
            self._check_balance(connection)
        if total not in (None, self.total):
            raise ValueError(
                f"The ledger at {str(path)!r} has the total epsilon={short_text(self.total)}, but "
                f"epsilon={short_text(total)} was given. The budget of a data set is decided once: "
                "leave epsilon out to use the ledger as it is."
            )
        if name is not None and name != self.name:
            known = "an unnamed data set" if self.name is None else f"the data set {self.name!r}"
            warnings.warn(
                f"The ledger at {str(path)!r} belongs to {known}, but was opened for {name!r}. "
                "Use one ledger for each data set; what is charged now is charged to the old one.",
                UserWarning,
                stacklevel=3,
            )

    def _create(self, total: Fraction | None, name: str | None) -> None:
        """Begin a ledger; LedgerError if its total is not given."""
        if total is None:
            raise LedgerError(
                f"There is no ledger at {str(self.path)!r}. If these records were released before, "
                "find it: a new one forgets what was spent. To start one, give the total budget: "
                "PrivacyLedger(epsilon, path=...)."
            )
        with self._connect("rwc") as connection:
            connection.execute("BEGIN IMMEDIATE")
            # Under the lock: another process may have been faster.
            if self.path.stat().st_size == 0:
                self._write_schema(connection, str(total), name)
            connection.execute("COMMIT")

    def _check_balance(self, connection: sqlite3.Connection) -> None:
        """Refuse a damaged file, or one whose balance is not the sum of its charges."""
        check = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if check != "ok":
            raise self._damaged(check)
        summed, balance = total_of(self._read_entries(connection)), self._read_spent(connection)
        if summed != balance:
            raise self._damaged(f"its charges sum to {summed}, its balance says {balance}")

    def _write_schema(self, connection: sqlite3.Connection, total: str, name: str | None) -> None:
        connection.execute(f"PRAGMA application_id = {self.APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {self.SCHEMA_VERSION}")
        connection.execute(
            "CREATE TABLE ledger (identity TEXT NOT NULL, total TEXT NOT NULL, name TEXT, "
            "created TEXT NOT NULL)"
        )
        # Append-only; `spent` is the running sum, so that a charge need not add up all rows.
        connection.execute(
            "CREATE TABLE charges (id INTEGER PRIMARY KEY, time TEXT NOT NULL, "
            "name TEXT NOT NULL, epsilon TEXT NOT NULL, parts TEXT NOT NULL, "
            "seeded INTEGER NOT NULL, process INTEGER NOT NULL, spent TEXT NOT NULL, "
            "max_rows_per_id INTEGER, token TEXT NOT NULL, "
            "about TEXT NOT NULL)"
        )
        created = datetime.now(UTC).isoformat(timespec="seconds")
        connection.execute(
            "INSERT INTO ledger VALUES (?, ?, ?, ?)", (uuid.uuid4().hex, total, name, created)
        )

    def charge(self, entry: Entry) -> None:
        # The write lock is taken before the balance is read: no other charge can come between the
        # check and the entry.
        with self._transaction("BEGIN IMMEDIATE") as connection:
            differs = "SELECT 1 FROM charges WHERE (max_rows_per_id IS NULL) != ? LIMIT 1"
            if connection.execute(differs, (entry.unit == RECORD,)).fetchone():
                refuse_other_unit(entry)
            after, entry = booked(self.total, self._read_spent(connection), entry)
            loss = entry.loss
            row = {
                "time": entry.time,
                "name": entry.name,
                "epsilon": str(loss.epsilon),
                "parts": json.dumps({part: str(value) for part, value in loss.parts.items()}),
                "seeded": loss.seeded,
                "process": entry.process,
                "spent": str(after),
                "max_rows_per_id": loss.max_rows_per_id,
                "token": uuid.uuid4().hex,
                "about": json.dumps(dict(entry.about)),
            }
            places = ", ".join(f":{column}" for column in row)
            connection.execute(f"INSERT INTO charges VALUES (NULL, {places})", row)

    def spent(self) -> Fraction:
        with self._transaction() as connection:
            return self._read_spent(connection)

    def entries(self) -> tuple[Entry, ...]:
        with self._transaction() as connection:
            return self._read_entries(connection)

    @contextlib.contextmanager
    def _transaction(self, begin: str = "BEGIN") -> Iterator[sqlite3.Connection]:
        """Read or charge, if this is still the ledger that was opened, and no older copy."""
        with self._connect("rw") as connection:
            connection.execute(begin)
            self._read_header(connection)
            self._refuse_older_copy(connection)
            yield connection
            newest = connection.execute(f"{self._NEWEST} ORDER BY id DESC LIMIT 1").fetchone()
            connection.execute("COMMIT")
            self._last = newest

    def _refuse_older_copy(self, connection: sqlite3.Connection) -> None:
        """Refuse a file that has lost the newest charge that was seen in it."""
        last = self._last
        if last is None:
            return
        if connection.execute(f"{self._NEWEST} WHERE id = ?", last[:1]).fetchone() != last:
            raise LedgerError(
                f"The ledger at {str(self.path)!r} has lost the charge {last[2]!r} of "
                f"{last[1][:19]} UTC, which was seen in it: an older copy of the file was put "
                "back, or the charge was deleted or edited. Nothing was spent now, but what "
                "was spent since that copy was made stays spent. Restore the newest copy. If there "
                "is none, open the ledger again and charge what it has lost."
            )

    def _read_entries(self, connection: sqlite3.Connection) -> tuple[Entry, ...]:
        rows = connection.execute(
            "SELECT time, name, epsilon, parts, seeded, process, max_rows_per_id, about "
            "FROM charges ORDER BY id"
        ).fetchall()
        return tuple(
            Entry(
                datetime.fromisoformat(time).isoformat(timespec="microseconds"),
                name,
                PrivacyLoss(
                    Fraction(epsilon),
                    {part: Fraction(value) for part, value in json.loads(parts).items()},
                    seeded=bool(seeded),
                    max_rows_per_id=most,
                ),
                process,
                json.loads(told),
            )
            for time, name, epsilon, parts, seeded, process, most, told in rows
        )

    def _read_header(self, connection: sqlite3.Connection) -> None:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        if application != self.APPLICATION_ID:
            raise LedgerError(
                f"{str(self.path)!r} is not a ledger of skdp: it is empty or belongs to other "
                "software. It was left as it is and nothing was spent. Give another path."
            )
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version != self.SCHEMA_VERSION:
            raise LedgerError(
                f"The ledger at {str(self.path)!r} has format {version}; this version of skdp "
                f"knows format {self.SCHEMA_VERSION}. Use the skdp that wrote it, or a newer one. "
                "Nothing was spent."
            )
        [(text, name, identity)] = connection.execute(
            "SELECT total, name, identity FROM ledger"
        ).fetchall()
        total = as_epsilon(Fraction(text))
        if self._header not in (None, (identity, total)):
            raise LedgerError(
                f"The file {str(self.path)!r} is no longer the ledger that was opened: it was "
                "replaced or its total was edited. Nothing was spent. If that was intended, "
                "open it again."
            )
        self._header, self.total, self.name = (identity, total), total, name

    def _read_spent(self, connection: sqlite3.Connection) -> Fraction:
        row = connection.execute("SELECT spent FROM charges ORDER BY id DESC LIMIT 1").fetchone()
        return Fraction(row[0]) if row else Fraction(0)

    @contextlib.contextmanager
    def _connect(self, mode: str) -> Iterator[sqlite3.Connection]:
        """Open for one operation; whatever SQLite or the contents refuse is a LedgerError."""
        connection = None
        try:
            # isolation_level=None: transactions are begun and ended explicitly here.
            connection = sqlite3.connect(
                f"{self.path.as_uri()}?mode={mode}",
                uri=True,
                timeout=self.BUSY_SECONDS,
                isolation_level=None,
            )
            # FULL, and the directory too: once COMMIT returns, not even a power cut gives the
            # budget back.
            connection.execute("PRAGMA synchronous = EXTRA")
            yield connection
        except sqlite3.Error as error:
            # A read-only file among others, or one that was locked for too long.
            where = f"Cannot use the ledger at {str(self.path)!r}"
            raise LedgerError(f"{where}: {error}. Nothing was spent.") from error
        except (ValueError, TypeError, AttributeError, ZeroDivisionError) as error:
            raise self._damaged(error) from error
        finally:
            # An open transaction is rolled back by closing.
            if connection is not None:
                connection.close()

    def _damaged(self, reason: object) -> LedgerError:
        return LedgerError(
            f"{str(self.path)!r} is not a ledger of skdp, or it is damaged ({reason}). It was "
            "left as it is and nothing was spent. Restore the newest copy, and charge what it "
            "has lost."
        )


# --- the stores of a ledger that are not files: detached, and in memory


class DetachedStore:
    """Replaces a ledger in a pickle: it has the name and cannot be charged."""

    path = None

    def __init__(self, name: str | None) -> None:
        self.name = name

    def _refuse(self, *given: object) -> NoReturn:
        named = "" if self.name is None else f" {self.name!r}"
        raise LedgerError(
            f"The ledger{named} of this estimator is not here: pickles (files, or estimators sent "
            "to worker processes) contain no ledger that lives in memory, and pickles of fitted "
            "estimators contain none at all. Nothing was spent. Attach the real one, "
            "est.set_params(ledger=...). "
            "For worker processes (n_jobs=2) give the ledger a file, "
            "PrivacyLedger(epsilon, path=...), which all processes can charge, and send them "
            "clone(est), which is not fitted; or use threads, or n_jobs=1."
        )

    total = property(_refuse)
    charge = spent = entries = _refuse


class MemoryStore:
    """Charges in the memory of one process."""

    path = None

    def __init__(self, total: Fraction | None, name: str | None) -> None:
        self.total = total
        self.name = name
        # Not the process id alone, which a later process may get again.
        self._process = process_mark()
        self._lock = threading.Lock()
        # Spent, and how many of the entries count. Replaced as a whole under the lock, after the
        # entry is there, so that readers need no lock: after a fork the copied lock may be held by
        # a thread that does not exist in the child.
        self._state = (Fraction(0), 0)
        self._entries: list[Entry] = []

    def charge(self, entry: Entry) -> None:
        if process_mark() != self._process:
            raise LedgerError(
                f"This ledger lives in the memory of process {self._process[0]}; process "
                f"{os.getpid()} "
                "has only a copy of it, and what it spends would be lost. Nothing was spent. "
                "Give the ledger a file, PrivacyLedger(epsilon, path=...), which all processes "
                "can charge, or run in threads."
            )
        with self._lock:
            spent, count = self._state
            # One entry is enough: all have the same unit.
            if count and self._entries[0].unit != entry.unit:
                refuse_other_unit(entry)
            after, entry = booked(self.total, spent, entry)
            # In the place of one whose charge was interrupted.
            self._entries[count:] = [entry]
            self._state = (after, count + 1)

    def spent(self) -> Fraction:
        return self._state[0]

    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries[: self._state[1]])


def for_travel(store: Store) -> Store:
    """What is pickled of a store: all of a file store, and only the name of a memory store.

    A copy of a memory store would not see what the original spends, and each could spend the whole
    budget. It refuses when it is charged and not when it is pickled, because joblib hides errors
    raised while pickling behind one of its own.
    """
    return DetachedStore(store.name) if isinstance(store, MemoryStore) else store


Store = DetachedStore | MemoryStore | FileStore
