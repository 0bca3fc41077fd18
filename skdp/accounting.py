"""What was spent: the privacy loss of one release, and the ledger of one data set.

Losses are exact fractions and compose sequentially (they add up): every release reads the same
people, whichever columns it uses.
"""

from __future__ import annotations

import contextlib
import html
import json
import math
import os
import sqlite3
import stat
import threading
import uuid
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import pandas as pd

from ._random import process_mark
from ._validation import as_epsilon, as_fraction
from .exceptions import BudgetExceededError

__all__ = ["LedgerError", "PrivacyLedger", "PrivacyLoss"]

NEIGHBOURS = "add or remove one record"

# Okabe and Ito's palette, told apart by colour-blind readers too.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
_HTML_ROWS = 20


class LedgerError(RuntimeError):
    """The ledger cannot be read or written, or does not take this charge; nothing was spent."""


def neighbours(max_contributions: int | None = None) -> str:
    """What a guarantee protects: one record, or one person of whom some records count."""
    if max_contributions is None:
        return NEIGHBOURS
    return f"add or remove one person ({_at_most(max_contributions)})"


def _at_most(max_contributions: int) -> str:
    return f"at most {max_contributions} record{'s' * (max_contributions > 1)} of each"


def _exact_text(value: Fraction) -> str:
    """Write a decimal if one with at most 6 significant digits is exact, else a fraction."""
    decimal = f"{float(value):.6g}"
    return decimal if Fraction(decimal) == value else str(value)


def _text(value: Fraction) -> str:
    """Short, for display: ``~`` marks what is rounded."""
    exact = _exact_text(value)
    return exact if len(exact) <= 12 else f"~{float(value):.6g}"


def _parts_text(parts: Mapping[str, Fraction]) -> str:
    return ", ".join(f"{name}={_text(value)}" for name, value in parts.items())


class PrivacyLoss:
    """The epsilon of one release, exact, with named parts that add up to it.

    Parameters
    ----------
    epsilon : number or Fraction
        Positive. Read as the decimal that was written: .1 is 1/10.
    parts : mapping of str to number, default=None
        What epsilon is spent on, in order; non-negative, with sum exactly ``epsilon``. None
        stands for one part, ``{"total": epsilon}``.
    seeded : bool, default=False
        The noise comes from a seed: an experiment, without any guarantee.
    max_contributions : int, default=None
        How many records of each person count at most. Epsilon is then that of the person; None:
        of one record.

    Attributes
    ----------
    epsilon : Fraction
    parts : read-only mapping of str to Fraction
    seeded : bool
    max_contributions : int or None
    neighbours : str
        What the guarantee protects: the presence of one record, or of one person.
    of_record : PrivacyLoss
        The loss of one record, which noise is drawn at: a ``max_contributions``-th.

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

    __slots__ = ("_epsilon", "_max_contributions", "_parts", "_seeded")

    _epsilon: Fraction
    _parts: Mapping[str, Fraction]
    _seeded: bool
    _max_contributions: int | None

    def __init__(
        self,
        epsilon: Any,
        parts: Mapping[str, Any] | None = None,
        *,
        seeded: bool = False,
        max_contributions: int | None = None,
    ) -> None:
        total = as_epsilon(epsilon)
        if max_contributions is not None and not (
            isinstance(max_contributions, int) and max_contributions >= 1
        ):
            raise ValueError(
                f"max_contributions must be None or at least 1, got {max_contributions!r}."
            )
        if parts is None:
            exact = {"total": total}
        else:
            exact = {
                str(name): as_fraction(value, f"part {name!r}") for name, value in parts.items()
            }
            if any(value < 0 for value in exact.values()):
                raise ValueError(f"No part may be negative, got {_parts_text(exact)}.")
            found = sum(exact.values(), Fraction(0))
            if found != total:
                given = ", ".join(f"{name}={_exact_text(value)}" for name, value in exact.items())
                raise ValueError(
                    f"The parts must sum to epsilon={_exact_text(total)} exactly, but "
                    f"{given or 'no part at all'} sums to {_exact_text(found)}. "
                    "Divide epsilon as a Fraction, or give decimals that add up."
                )
        object.__setattr__(self, "_epsilon", total)
        object.__setattr__(self, "_parts", MappingProxyType(exact))
        object.__setattr__(self, "_seeded", bool(seeded))
        object.__setattr__(self, "_max_contributions", max_contributions)

    @property
    def epsilon(self) -> Fraction:
        """The whole loss."""
        return self._epsilon

    @property
    def parts(self) -> Mapping[str, Fraction]:
        """What it consists of."""
        return self._parts

    @property
    def seeded(self) -> bool:
        """Whether a seed drew the noise, which voids the guarantee."""
        return self._seeded

    @property
    def max_contributions(self) -> int | None:
        """How many records of each person count, or None where the unit is the record."""
        return self._max_contributions

    @property
    def neighbours(self) -> str:
        """What the guarantee protects."""
        return neighbours(self._max_contributions)

    @property
    def of_record(self) -> PrivacyLoss:
        """The loss of one record."""
        most = self._max_contributions
        if most is None:
            return self
        parts = {name: value / most for name, value in self._parts.items()}
        return PrivacyLoss(self._epsilon / most, parts, seeded=self._seeded)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"PrivacyLoss is frozen: {name!r} cannot be set.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"PrivacyLoss is frozen: {name!r} cannot be deleted.")

    # A plain state rather than __reduce__ with a function: skops restores nothing else.

    def __getstate__(self) -> dict[str, Any]:
        return {
            "epsilon": self._epsilon,
            "parts": dict(self._parts),
            "seeded": self._seeded,
            "max_contributions": self._max_contributions,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Checked like what a caller gives.
        self.__init__(**state)  # type: ignore[misc]

    def __copy__(self) -> PrivacyLoss:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PrivacyLoss:
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PrivacyLoss):
            return NotImplemented
        return (
            self._epsilon == other._epsilon
            and dict(self._parts) == dict(other._parts)
            and self._seeded == other._seeded
            and self._max_contributions == other._max_contributions
        )

    def __hash__(self) -> int:
        parts = frozenset(self._parts.items())
        return hash((self._epsilon, parts, self._seeded, self._max_contributions))

    def __add__(self, other: object) -> PrivacyLoss:
        """Sequential composition: both releases read the same records."""
        if not isinstance(other, PrivacyLoss):
            return NotImplemented
        most = self._max_contributions
        if (most is None) != (other._max_contributions is None):
            raise ValueError(
                "The loss of a record and that of a person do not add up. Bound the contributions "
                "of both releases, or of none."
            )
        parts = dict(self._parts)
        for name, value in other._parts.items():
            parts[name] = parts.get(name, Fraction(0)) + value
        return PrivacyLoss(
            self._epsilon + other._epsilon,
            parts,
            seeded=self._seeded or other._seeded,
            max_contributions=most and max(most, other._max_contributions or 1),
        )

    def __mul__(self, times: object) -> PrivacyLoss:
        """The loss of ``times`` such releases, a positive integer."""
        if isinstance(times, bool) or not isinstance(times, int):
            return NotImplemented
        if times < 1:
            raise ValueError(f"A loss can be repeated 1, 2, ... times, got {times}.")
        parts = {name: value * times for name, value in self._parts.items()}
        return PrivacyLoss(
            self._epsilon * times,
            parts,
            seeded=self._seeded,
            max_contributions=self._max_contributions,
        )

    __rmul__ = __mul__

    def __float__(self) -> float:
        return float(self._epsilon)

    def __repr__(self) -> str:
        text = f"epsilon={_text(self._epsilon)}"
        if list(self._parts) != ["total"]:
            text += f", parts: {_parts_text(self._parts)}"
        if self._max_contributions is not None:
            text += f", unit: person ({_at_most(self._max_contributions)})"
        if self._seeded:
            text += ", seeded: no guarantee"
        return f"PrivacyLoss({text})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td style='text-align:left'>{html.escape(name)}</td><td>{_text(value)}</td>"
            f"<td>{float(value / self._epsilon):.0%}</td></tr>"
            for name, value in self._parts.items()
        )
        seeded = " &middot; <b>seeded: no guarantee</b>" if self._seeded else ""
        return (
            f"<div><b>Privacy loss &epsilon; = {_text(self._epsilon)}</b> &middot; neighbours: "
            f"{self.neighbours}{seeded}<table><thead><tr><th style='text-align:left'>part</th>"
            f"<th>&epsilon;</th><th>share</th></tr></thead><tbody>{rows}</tbody></table></div>"
        )


# Pickles of earlier versions call it.
def _loss_from_state(
    epsilon: Fraction,
    parts: dict[str, Fraction],
    seeded: bool,
    max_contributions: int | None = None,
) -> PrivacyLoss:
    return PrivacyLoss(epsilon, parts, seeded=seeded, max_contributions=max_contributions)


RECORD, PERSON = "record", "person"
# How estimators of earlier versions marked a charge whose unit is the person: in its name only.
_OLD_MARK = ", unit: person"


@dataclass(frozen=True)
class _Entry:
    """One charge as it is recorded.

    ``unit`` is what the loss protects, a record or a person. It is the unit of ``loss``, except
    in files of earlier versions, which did not keep the bound on a person's records.
    """

    time: str
    name: str
    loss: PrivacyLoss
    process: int
    unit: str


def _entry(name: str, loss: PrivacyLoss) -> _Entry:
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    return _Entry(now, name, loss, os.getpid(), _unit(loss))


def _unit(loss: PrivacyLoss) -> str:
    return RECORD if loss.max_contributions is None else PERSON


def _by_unit(entries: tuple[_Entry, ...]) -> dict[str, Fraction]:
    """What was spent on each unit of privacy, in the order of the first charges."""
    spent: dict[str, Fraction] = {}
    for entry in entries:
        spent[entry.unit] = spent.get(entry.unit, Fraction(0)) + entry.loss.epsilon
    return spent


def _subtotals(entries: tuple[_Entry, ...]) -> str:
    """The unit of privacy of what was spent, if it is not a record."""
    by_unit = _by_unit(entries)
    if len(by_unit) > 1:
        parts = " and ".join(f"{_text(value)} per {unit}" for unit, value in by_unit.items())
        return f"{parts}, which do not add up"
    return "per person" if PERSON in by_unit else ""


def _refuse_other_unit(entry: _Entry) -> NoReturn:
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


class _DetachedStore:
    """Replaces a ledger in a pickle: it has the name and cannot be charged."""

    path = None

    def __init__(self, name: str | None) -> None:
        self.name = name

    def _refuse(self) -> NoReturn:
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

    @property
    def total(self) -> Fraction | None:
        self._refuse()

    def charge(self, entry: _Entry) -> None:
        self._refuse()

    def spent(self) -> Fraction:
        self._refuse()

    def entries(self) -> tuple[_Entry, ...]:
        self._refuse()


class _MemoryStore:
    """Charges in the memory of one process."""

    path = None

    def __init__(self, total: Fraction | None, name: str | None) -> None:
        self.total = total
        self.name = name
        # Not the process id alone, which a later process may get again.
        self._process = process_mark()
        self._lock = threading.Lock()
        # Replaced as a whole under the lock, so that readers need no lock: after a fork the
        # copied lock may be held by a thread that does not exist in the child.
        self._state: tuple[Fraction, tuple[_Entry, ...]] = (Fraction(0), ())

    def charge(self, entry: _Entry) -> None:
        if process_mark() != self._process:
            raise LedgerError(
                f"This ledger lives in the memory of process {self._process[0]}; process "
                f"{os.getpid()} "
                "has only a copy of it, and what it spends would be lost. Nothing was spent. "
                "Give the ledger a file, PrivacyLedger(epsilon, path=...), which all processes "
                "can charge, or run in threads."
            )
        with self._lock:
            spent, entries = self._state
            # One entry tells: all have the same unit.
            if any(other.unit != entry.unit for other in entries[:1]):
                _refuse_other_unit(entry)
            after = _within(self.total, spent, entry.loss.epsilon)
            self._state = (after, (*entries, entry))

    def spent(self) -> Fraction:
        return self._state[0]

    def entries(self) -> tuple[_Entry, ...]:
        return self._state[1]


class _PrepaidStore:
    """Takes charges that ``store`` has been charged with already, up to ``left``.

    What goes beyond is charged to ``store``, so that a search whose fits cost more than it
    reckoned pays for them all the same.
    """

    def __init__(self, store: _Store, left: Fraction) -> None:
        self.store = store
        self._left = left
        self._lock = threading.Lock()
        self._process = process_mark()

    def charge(self, entry: _Entry) -> None:
        with self._lock:
            if entry.loss.epsilon <= self._left:
                self._left -= entry.loss.epsilon
                return
        self.store.charge(entry)

    def exhaust(self) -> None:
        with self._lock:
            self._left = Fraction(0)

    @property
    def base(self) -> _Store:
        """What is charged in the end."""
        return _base(self.store)

    @property
    def name(self) -> str | None:
        return self.store.name

    @property
    def path(self) -> Path | None:
        return self.store.path

    @property
    def total(self) -> Fraction | None:
        return self.store.total

    def spent(self) -> Fraction:
        return self.store.spent()

    def entries(self) -> tuple[_Entry, ...]:
        return self.store.entries()

    def __getstate__(self) -> dict[str, Any]:
        store = _for_travel(self.store)
        return {"store": store, "_left": self._left, "_process": self._process}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()
        if self._process == process_mark():
            # A copy that went to a worker process for a fit of the search, and came back with
            # what was fitted: the search cannot settle it.
            self._left = Fraction(0)


def _base(store: _Store) -> _Store:
    return store.base if isinstance(store, _PrepaidStore) else store


def _for_travel(store: _Store) -> _Store:
    """What is pickled of a store: all of a file, and the name of one that lives in memory.

    A copy of the latter would not see what the original spends, and both could spend the whole.
    It refuses where it is charged and not where it is pickled, because joblib puts an error of
    its own in front of whatever is raised there.
    """
    return _DetachedStore(store.name) if isinstance(store, _MemoryStore) else store


def _within(total: Fraction | None, spent: Fraction, asked: Fraction) -> Fraction:
    """Amount spent after the charge, or the refusal."""
    if total is not None and spent + asked > total:
        raise BudgetExceededError(asked, total - spent, total)
    return spent + asked


class _FileStore:
    """Charges in an SQLite file, shared by all processes that know its path.

    Every operation opens its own connection: nothing is carried through a fork, between threads
    or in a pickle. The file is never opened by other means than SQLite, because closing any
    handle of a file drops all POSIX locks that the process holds on it.
    """

    # "skdp" in ASCII; kept in the header of the file.
    APPLICATION_ID = 0x736B6470
    # Version 1 had no unit, max_contributions and token. It is read as it is, and becomes
    # version 2 with its next charge.
    SCHEMA_VERSION = 2
    BUSY_SECONDS = 10.0

    # The newest charge that was seen in the file: its columns as `_read_newest` gives them.
    _last: tuple[Any, ...] | None = None

    def __init__(self, path: Path, total: Fraction | None, name: str | None) -> None:
        self.path = path
        if path.exists() and not path.is_file():
            kind = "directory" if path.is_dir() else "device"
            raise LedgerError(
                f"{str(path)!r} is a {kind}; a ledger is a file. Nothing was spent. Give the "
                "path of a file."
            )
        create = not path.exists() or path.stat().st_size == 0
        if create:
            if total is None:
                raise LedgerError(
                    f"There is no ledger at {str(path)!r}. To start one, say what may be spent "
                    "in all: PrivacyLedger(epsilon, path=...)."
                )
            self._refuse_read_only()
        self._header: tuple[str, Fraction] | None = None
        with self._connect("rwc" if create else self._read_mode()) as connection:
            if create and total is not None:
                connection.execute("BEGIN IMMEDIATE")
                # Under the lock: another process may have been faster.
                if path.stat().st_size == 0:
                    self._write_schema(connection, total, name)
                connection.execute("COMMIT")
            self.total, self.name = self._read_header(connection)
            check = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if check != "ok":
                raise self._damaged(check)
            # One transaction: no charge may come between the two readings.
            connection.execute("BEGIN")
            entries = self._read_entries(connection)
            balance = self._read_spent(connection)
            self._last = self._read_newest(connection)
            connection.execute("COMMIT")
            booked = sum((entry.loss.epsilon for entry in entries), Fraction(0))
            if booked != balance:
                raise self._damaged(f"its charges sum to {booked}, its balance says {balance}")
            if total is not None and total != self.total:
                raise ValueError(
                    f"The ledger at {str(path)!r} allows epsilon={_exact_text(self.total)} in "
                    f"all, but epsilon={_exact_text(total)} was given. What may be spent on a "
                    "data set is decided once: leave epsilon out to use the ledger as it is."
                )
            if self.name is None and name is not None and not self._read_only_path():
                # The first name given to a ledger stays.
                connection.execute("UPDATE ledger SET name = ? WHERE name IS NULL", (name,))
                self.total, self.name = self._read_header(connection)
        if name is not None and name != self.name:
            known = "an unnamed data set" if self.name is None else f"the data set {self.name!r}"
            warnings.warn(
                f"The ledger at {str(path)!r} belongs to {known}, but was opened for {name!r}. "
                "Use one ledger for each data set; what is charged now counts for the old one.",
                UserWarning,
                stacklevel=3,
            )

    _NEW_COLUMNS = (
        f"unit TEXT NOT NULL DEFAULT '{RECORD}'",
        "max_contributions INTEGER",
        "token TEXT NOT NULL DEFAULT ''",
    )

    def _migrate(self, connection: sqlite3.Connection) -> None:
        """Bring a file of version 1 to this one, within the transaction of a charge."""
        for column in self._NEW_COLUMNS:
            connection.execute(f"ALTER TABLE charges ADD COLUMN {column}")
        connection.execute(
            "UPDATE charges SET unit = ? WHERE substr(name, -?) = ?",
            (PERSON, len(_OLD_MARK), _OLD_MARK),
        )
        connection.execute(f"PRAGMA user_version = {self.SCHEMA_VERSION}")

    def _write_schema(
        self, connection: sqlite3.Connection, total: Fraction, name: str | None
    ) -> None:
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
            f"{', '.join(self._NEW_COLUMNS)})"
        )
        created = datetime.now(UTC).isoformat(timespec="seconds")
        connection.execute(
            "INSERT INTO ledger VALUES (?, ?, ?, ?)", (uuid.uuid4().hex, str(total), name, created)
        )

    def charge(self, entry: _Entry) -> None:
        self._refuse_read_only()
        loss = entry.loss
        parts = json.dumps({name: str(value) for name, value in loss.parts.items()})
        with self._connect("rw") as connection:
            # The write lock is taken before the balance is read: no other charge can come
            # between the check and the entry.
            connection.execute("BEGIN IMMEDIATE")
            self._read_header(connection)
            self._refuse_older_copy(connection)
            if self._version(connection) < self.SCHEMA_VERSION:
                self._migrate(connection)
            differs = "SELECT 1 FROM charges WHERE unit != ? LIMIT 1"
            if connection.execute(differs, (entry.unit,)).fetchone():
                _refuse_other_unit(entry)
            after = _within(self.total, self._read_spent(connection), loss.epsilon)
            connection.execute(
                "INSERT INTO charges (time, name, epsilon, parts, seeded, process, spent, unit, "
                "max_contributions, token) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    entry.time,
                    entry.name,
                    str(loss.epsilon),
                    parts,
                    int(loss.seeded),
                    entry.process,
                    str(after),
                    entry.unit,
                    loss.max_contributions,
                    uuid.uuid4().hex,
                ),
            )
            newest = self._read_newest(connection)
            connection.execute("COMMIT")
            self._last = newest

    def spent(self) -> Fraction:
        with self._reading() as connection:
            return self._read_spent(connection)

    def entries(self) -> tuple[_Entry, ...]:
        with self._reading() as connection:
            return self._read_entries(connection)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._connect(self._read_mode()) as connection:
            connection.execute("BEGIN")
            self._read_header(connection)
            self._refuse_older_copy(connection)
            yield connection
            self._last = self._read_newest(connection)

    def _version(self, connection: sqlite3.Connection) -> int:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        return version

    def _read_newest(
        self, connection: sqlite3.Connection, row: int | None = None
    ) -> tuple[Any, ...] | None:
        """The newest charge, or that of a row: what tells it from every other one."""
        token = "token" if self._version(connection) > 1 else "''"
        which = "ORDER BY id DESC LIMIT 1" if row is None else "WHERE id = ?"
        found: tuple[Any, ...] | None = connection.execute(
            f"SELECT id, time, name, epsilon, process, spent, {token} FROM charges {which}",
            () if row is None else (row,),
        ).fetchone()
        return found

    def _refuse_older_copy(self, connection: sqlite3.Connection) -> None:
        """Refuse a file that has lost the newest charge that was seen in it."""
        last = self._last
        if last is not None and self._read_newest(connection, last[0]) != last:
            raise LedgerError(
                f"The ledger at {str(self.path)!r} has lost the charge {last[2]!r} of "
                f"{last[1][:19]} UTC, which was seen in it: an older copy of the file was put "
                "back, or the charge was deleted or edited. Nothing was spent now, but what "
                "was spent since that copy was made stays spent. Restore the newest copy. If there "
                "is none, open the ledger again and charge what it has lost."
            )

    def _read_entries(self, connection: sqlite3.Connection) -> tuple[_Entry, ...]:
        new = self._version(connection) > 1
        units = "unit, max_contributions" if new else "NULL, NULL"
        rows = connection.execute(
            f"SELECT time, name, epsilon, parts, seeded, process, {units} FROM charges ORDER BY id"
        ).fetchall()
        try:
            return tuple(
                _Entry(
                    time,
                    name,
                    PrivacyLoss(
                        Fraction(epsilon),
                        {part: Fraction(value) for part, value in json.loads(parts).items()},
                        seeded=bool(seeded),
                        max_contributions=most,
                    ),
                    process,
                    unit or (PERSON if name.endswith(_OLD_MARK) else RECORD),
                )
                for time, name, epsilon, parts, seeded, process, unit, most in rows
            )
        except (ValueError, TypeError, AttributeError, ZeroDivisionError) as error:
            raise self._damaged(error) from error

    def _read_header(self, connection: sqlite3.Connection) -> tuple[Fraction, str | None]:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        if application != self.APPLICATION_ID:
            raise LedgerError(
                f"{str(self.path)!r} is not a ledger of skdp: it is empty or belongs to other "
                "software. It was left as it is and nothing was spent. Give another path."
            )
        version = self._version(connection)
        if not 1 <= version <= self.SCHEMA_VERSION:
            raise LedgerError(
                f"The ledger at {str(self.path)!r} has format {version}; this version of skdp "
                f"knows formats up to {self.SCHEMA_VERSION}. Update skdp. Nothing was spent."
            )
        rows = connection.execute("SELECT total, name, identity FROM ledger").fetchall()
        try:
            [(text, name, identity)] = rows
            total = as_epsilon(Fraction(text))
        except (ValueError, TypeError, ZeroDivisionError) as error:
            raise self._damaged(error) from error
        if self._header not in (None, (identity, total)):
            raise LedgerError(
                f"The file {str(self.path)!r} is no longer the ledger that was opened: it was "
                "replaced or its total was edited. Nothing was spent. If that was intended, "
                "open it again."
            )
        self._header = (identity, total)
        return total, name

    def _read_spent(self, connection: sqlite3.Connection) -> Fraction:
        row = connection.execute("SELECT spent FROM charges ORDER BY id DESC LIMIT 1").fetchone()
        try:
            return Fraction(row[0]) if row else Fraction(0)
        except (ValueError, TypeError, ZeroDivisionError) as error:
            raise self._damaged(error) from error

    @contextlib.contextmanager
    def _connect(self, mode: str) -> Iterator[sqlite3.Connection]:
        """Open for one operation; every failure of SQLite becomes a LedgerError."""
        connection = None
        try:
            # isolation_level=None: transactions are begun and ended here, by name.
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
            raise self._explain(error) from error
        finally:
            # An open transaction is rolled back by closing.
            if connection is not None:
                connection.close()

    def _explain(self, error: sqlite3.Error) -> LedgerError:
        kind = getattr(error, "sqlite_errorname", None) or ""
        where = f"ledger at {str(self.path)!r}"
        if kind.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return LedgerError(
                f"The {where} has been locked by another process for more than "
                f"{self.BUSY_SECONDS:g} seconds. Nothing was spent. Find out which program "
                "keeps it open, and try again."
            )
        if kind.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
            return self._damaged(error)
        if kind.startswith("SQLITE_CANTOPEN"):
            return LedgerError(
                f"Cannot open the {where}: it does not exist, or its directory is missing or "
                f"may not be read. Nothing was spent. ({error})"
            )
        if kind.startswith(("SQLITE_READONLY", "SQLITE_PERM")):
            return self._read_only(self.path)
        return LedgerError(f"Cannot use the {where}: {error}. Nothing was spent.")

    def _damaged(self, reason: object) -> LedgerError:
        return LedgerError(
            f"{str(self.path)!r} is not a ledger of skdp, or it is damaged ({reason}). It was "
            "left as it is and nothing was spent. Restore it from a backup, or give another path."
        )

    def _read_only(self, path: Path) -> LedgerError:
        return LedgerError(
            f"Cannot charge the ledger at {str(self.path)!r}: {str(path)!r} is read-only. "
            "Nothing was spent. Make it writable, or use another ledger."
        )

    def _read_mode(self) -> str:
        return "ro" if self._read_only_path() else "rw"

    def _read_only_path(self) -> Path | None:
        """Return the file or its directory (which holds SQLite's journal) if it is read-only."""
        for path in (self.path, self.path.parent):
            try:
                mode = path.stat().st_mode
            except OSError:
                continue
            # An administrator may write anything; a file that nobody may write was protected
            # on purpose.
            if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(
                path, os.W_OK
            ):
                return path
        return None

    def _refuse_read_only(self) -> None:
        path = self._read_only_path()
        if path is not None:
            raise self._read_only(path)


_Store = _DetachedStore | _MemoryStore | _PrepaidStore | _FileStore


class PrivacyLedger:
    """What may be spent on one data set, and what has been spent on it.

    Every release is charged before a value is read. Losses add up (sequential composition):
    several releases, folds or columns of the same people share one budget.

    Parameters
    ----------
    epsilon : number or Fraction, default=None
        What may be spent in all. None: with the path of an existing ledger, what the file says;
        without a path, no limit (charges are only recorded).
    path : str or path-like, default=None
        File of the ledger (SQLite), made if it does not exist. It survives restarts, and any
        number of processes may charge it at once (``n_jobs=4``). None keeps the ledger in the
        memory of this process: a pickle of it holds the name only and refuses charges, so that
        other processes cannot spend the same budget again.
    name : str, default=None
        Name of the data set; kept in the file. Opening the file under another name warns.

    Raises
    ------
    ValueError
        If ``epsilon`` is not positive, or differs from what the file says.
    LedgerError
        If the file cannot be used: not a ledger, damaged, read-only, locked, replaced, or an
        older copy of the one that was opened. Nothing is spent then. A subclass of RuntimeError.

    Notes
    -----
    Amounts are exact fractions of the decimals as written, so that three times 0.1 fit into 0.3.
    ``copy.copy``, ``copy.deepcopy`` and ``sklearn.base.clone`` return the same ledger: a clone
    spends from the same budget. A charge stays spent if the release crashes after it.

    A ledger has one unit of privacy, set by its first charge: a record, or a person with a
    bounded number of records (losses of a person add up whatever the bound is). Charges of the
    other unit are refused, because epsilon for a record does not bound the loss of a person with
    many records. A file of an earlier version may hold both. ``spent`` is then the sum, which is no
    guarantee for either unit; subtotals are shown, and further charges are refused.

    The pickle of a fitted estimator does not contain its ledger. The loaded estimator has a
    detached ledger, which has the name only and refuses every charge until the real one is attached
    with ``set_params(ledger=...)``.

    An open ledger remembers the newest charge, and notices if the file is replaced by an older
    copy. It cannot notice a replacement made before it was opened: protect the file like the data.

    Examples
    --------
    >>> ledger = PrivacyLedger(1, name="mothers")
    >>> ledger.charge("histogram", 0.25)
    >>> ledger
    PrivacyLedger(epsilon=1, spent=0.25, remaining=0.75, charges=1, name='mothers')
    """

    # No instance dictionary: a charge() that is set on a ledger by accident, or by a mock that was
    # left behind, would silently take the place of the real one.
    __slots__ = ("__weakref__", "_stand_in", "_store")

    def __init__(
        self,
        epsilon: Any = None,
        path: str | os.PathLike[str] | None = None,
        *,
        name: str | None = None,
    ) -> None:
        total = None if epsilon is None else as_epsilon(epsilon)
        if name is not None and not isinstance(name, str):
            raise TypeError(f"name must be a string, got {name!r}.")
        self._store: _Store
        self._stand_in: PrivacyLedger | None = None
        if path is None:
            self._store = _MemoryStore(total, name)
        else:
            # Absolute: worker processes may have another current directory.
            file = Path(os.path.abspath(Path(path).expanduser()))
            self._store = _FileStore(file, total, name)

    @property
    def epsilon(self) -> Fraction | None:
        """What may be spent in all; None if there is no limit."""
        return self._store.total

    @property
    def name(self) -> str | None:
        """Name of the data set."""
        return self._store.name

    @property
    def path(self) -> Path | None:
        """File of the ledger; None in memory."""
        return self._store.path

    @property
    def spent(self) -> Fraction:
        """What has been spent; where an older file mixes units of privacy, the sum of both."""
        return self._store.spent()

    @property
    def remaining(self) -> Fraction | float:
        """What is left; ``math.inf`` if there is no limit."""
        return math.inf if self.epsilon is None else self.epsilon - self.spent

    def charge(self, name: str, loss: PrivacyLoss | Any) -> None:
        """Spend ``loss``, or refuse and leave the ledger as it is.

        Parameters
        ----------
        name : str
            What the charge is for, such as the class of the estimator.
        loss : PrivacyLoss or number
            A number is the epsilon of one record; for a person give
            ``PrivacyLoss(epsilon, max_contributions=...)``.

        Raises
        ------
        BudgetExceededError
            If less than ``loss`` is left.
        LedgerError
            If the ledger cannot be used from here, or holds charges of the other unit of privacy.
        """
        if not isinstance(name, str) or not name:
            raise TypeError(f"A charge needs a name, a non-empty string; got {name!r}.")
        if not isinstance(loss, PrivacyLoss):
            loss = PrivacyLoss(loss)
        self._store.charge(_entry(name, loss))

    def to_frame(self) -> pd.DataFrame:
        """All charges in the order in which they were made.

        Returns
        -------
        DataFrame
            Columns ``time`` (UTC), ``name``, ``epsilon`` (float), ``exact`` (the fraction as
            text), ``parts`` (text), ``seeded`` (no guarantee), ``process`` (its id), ``unit``
            ("record" or "person"), ``max_contributions`` (how many records of a person count;
            missing for records, and where an earlier version did not keep it).
        """
        entries = self._store.entries()
        times = pd.to_datetime([entry.time for entry in entries], utc=True)
        return pd.DataFrame(
            {
                "time": times.as_unit("us"),
                "name": pd.Series([entry.name for entry in entries], dtype=object),
                "epsilon": pd.Series([float(entry.loss) for entry in entries], dtype=float),
                "exact": pd.Series([str(entry.loss.epsilon) for entry in entries], dtype=object),
                "parts": pd.Series(
                    [_parts_text(entry.loss.parts) for entry in entries], dtype=object
                ),
                "seeded": pd.Series([entry.loss.seeded for entry in entries], dtype=bool),
                "process": pd.Series([entry.process for entry in entries], dtype="int64"),
                "unit": pd.Series([entry.unit for entry in entries], dtype=object),
                "max_contributions": pd.Series(
                    [entry.loss.max_contributions for entry in entries], dtype="Int64"
                ),
            }
        )

    def detached(self) -> PrivacyLedger:
        """Stand-in for this ledger that has its name and cannot be charged.

        A pickle of a fitted estimator holds it in place of the ledger.

        Returns
        -------
        PrivacyLedger
            The same object each time. Its ``charge``, ``epsilon``, ``spent`` and ``remaining``
            raise `LedgerError`, which says how to attach the real ledger.
        """
        if self._stand_in is None:
            self._stand_in = _with_store(_DetachedStore(self.name))
        return self._stand_in

    def __copy__(self) -> PrivacyLedger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PrivacyLedger:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {"_store": _for_travel(self._store)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._store = state["_store"]
        self._stand_in = None

    def _repr_html_(self) -> str:
        try:
            entries = self._store.entries()
        except LedgerError as error:
            return f"<div><b>Privacy ledger</b>: {html.escape(str(error))}</div>"
        spent = sum((entry.loss.epsilon for entry in entries), Fraction(0))
        title = "" if self.name is None else f" of <i>{html.escape(self.name)}</i>"
        seeded = sum(entry.loss.seeded for entry in entries)
        kinds = {(entry.unit, entry.loss.max_contributions) for entry in entries}
        protects = "; ".join(
            NEIGHBOURS.replace(RECORD, unit) if most is None else neighbours(most)
            for unit, most in sorted(kinds, key=lambda kind: (kind[0] != RECORD, kind[1] or 0))
        )
        notes = [f"neighbours: {protects or NEIGHBOURS}", f"{len(entries)} charges"]
        if len(_by_unit(entries)) > 1:
            notes.append(f"<b>{_subtotals(entries)}</b>")
        if seeded:
            notes.append(f"<b>{seeded} seeded: no guarantee</b>")
        if self.path is not None:
            notes.append(html.escape(str(self.path)))
        if self.epsilon is None:
            state, bar = f"&epsilon; = {_text(spent)} spent, no limit", ""
        else:
            state = (
                f"&epsilon; = {_text(spent)} of {_text(self.epsilon)} spent, "
                f"{_text(self.epsilon - spent)} left"
            )
            share = 100 * float(spent / self.epsilon)
            bar = (
                "<div style='width:24em;height:1em;border:1px solid currentColor;margin:.3em 0'>"
                f"<div style='width:{share:.4g}%;height:100%;background:{_COLOURS[0]}'>"
                "</div></div>"
            )
        shown = entries[-_HTML_ROWS:]
        if len(shown) < len(entries):
            notes.append(f"the last {len(shown)} are shown")
        rows = "".join(
            f"<tr><td>{entry.time[:19].replace('T', ' ')}</td>"
            f"<td style='text-align:left'>{html.escape(entry.name)}</td>"
            f"<td>{_text(entry.loss.epsilon)}</td>"
            f"<td style='text-align:left'>{html.escape(_parts_text(entry.loss.parts))}"
            f"{' (seeded: no guarantee)' if entry.loss.seeded else ''}</td></tr>"
            for entry in shown
        )
        table = (
            "<table><thead><tr><th>time (UTC)</th><th style='text-align:left'>charge</th>"
            "<th>&epsilon;</th><th style='text-align:left'>parts</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
            if rows
            else ""
        )
        return (
            f"<div><b>Privacy ledger</b>{title}: {state}{bar}"
            f"<small>{' &middot; '.join(notes)}</small>{table}</div>"
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the budget as one bar: what each name has spent, and what is left.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None draws on a new figure.

        Returns
        -------
        matplotlib Axes
        """
        import matplotlib.pyplot as plt

        by_name: dict[str, Fraction] = {}
        entries = self._store.entries()
        for entry in entries:
            label = f"{entry.name} (seeded)" if entry.loss.seeded else entry.name
            by_name[label] = by_name.get(label, Fraction(0)) + entry.loss.epsilon
        spent = sum(by_name.values(), Fraction(0))
        if len(by_name) > len(_COLOURS):
            largest = sorted(by_name, key=lambda label: by_name[label], reverse=True)
            kept = set(largest[: len(_COLOURS) - 1])
            rest = {label: value for label, value in by_name.items() if label not in kept}
            by_name = {label: value for label, value in by_name.items() if label in kept}
            by_name[f"{len(rest)} others"] = sum(rest.values(), Fraction(0))
        if ax is None:
            _, ax = plt.subplots(figsize=(7, 1.9), layout="constrained")
        left = 0.0
        for (label, value), colour in zip(by_name.items(), _COLOURS, strict=False):
            width = float(value)
            ax.barh(
                0,
                width,
                left=left,
                color=colour,
                edgecolor="white",
                # A leading underscore would hide the entry from the legend.
                label=f"{label.lstrip('_')}: {_text(value)}",
            )
            left += width
        if self.epsilon is not None:
            rest_of_it = self.epsilon - spent
            ax.barh(
                0,
                float(rest_of_it),
                left=left,
                color="white",
                edgecolor="0.6",
                hatch="//",
                label=f"left: {_text(rest_of_it)}",
            )
            ax.set_xlim(0, float(self.epsilon))
        ax.set_yticks([])
        ax.set_xlabel("epsilon")
        total = "no limit" if self.epsilon is None else f"of {_text(self.epsilon)}"
        whose = _subtotals(entries)
        title = f"{self.name or 'Privacy ledger'}: {_text(spent)} spent ({total})"
        ax.set_title(f"{title}\n{whose}" if whose else title)
        if ax.containers:
            ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize="small")
        return ax

    def __repr__(self) -> str:
        fields: list[str] = []
        if isinstance(_base(self._store), _DetachedStore):
            named = "" if self.name is None else f", name={self.name!r}"
            return f"PrivacyLedger(detached{named})"
        if self.epsilon is not None:
            fields.append(f"epsilon={_text(self.epsilon)}")
        try:
            entries = self._store.entries()
        except LedgerError as error:
            fields.append(f"unreadable: {error}")
        else:
            spent = sum((entry.loss.epsilon for entry in entries), Fraction(0))
            whose = _subtotals(entries)
            fields.append(f"spent={_text(spent)}" + (f" ({whose})" if whose else ""))
            if self.epsilon is not None:
                fields.append(f"remaining={_text(self.epsilon - spent)}")
            fields.append(f"charges={len(entries)}")
        if self.name is not None:
            fields.append(f"name={self.name!r}")
        if self.path is not None:
            fields.append(f"path={str(self.path)!r}")
        return f"PrivacyLedger({', '.join(fields)})"


def _with_store(store: _Store) -> PrivacyLedger:
    ledger = object.__new__(PrivacyLedger)
    ledger.__setstate__({"_store": store})
    return ledger


def prepaid(ledger: PrivacyLedger, epsilon: Fraction) -> PrivacyLedger:
    """A second handle on ``ledger``, whose charges have been paid for up to ``epsilon``.

    For a search, which is charged once for all its fits.
    """
    return _with_store(_PrepaidStore(ledger._store, epsilon))


def settle(handle: PrivacyLedger) -> None:
    """From now on ``handle`` charges its ledger directly, in every estimator that holds it."""
    if isinstance(handle._store, _PrepaidStore):
        # A search within this one may have made a handle on this handle.
        handle._store.exhaust()
        handle._store = handle._store.base


def same_budget(first: PrivacyLedger, second: PrivacyLedger) -> bool:
    """Whether two ledgers are one: the same memory or the same file."""
    mine, theirs = (_base(ledger._store) for ledger in (first, second))
    if isinstance(mine, _FileStore) and isinstance(theirs, _FileStore):
        return mine.path == theirs.path
    return mine is theirs


def charge(ledger: Any, name: str, loss: PrivacyLoss) -> None:
    """Charge ``ledger`` if there is one.

    Raises
    ------
    TypeError
        If it is neither None nor a ledger.
    """
    if ledger is None:
        return
    if not isinstance(ledger, PrivacyLedger):
        raise TypeError(
            f"ledger must be a skdp.PrivacyLedger or None, got {type(ledger).__name__}."
        )
    ledger.charge(name, loss)
