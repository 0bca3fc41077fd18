"""The stores of a ledger that are not files: detached, in memory, and prepaid."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from .._random import process_mark
from ..exceptions import LedgerError
from ._entries import Entry, booked, refuse_other_unit
from ._file_store import FileStore


class DetachedStore:
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

    def charge(self, entry: Entry) -> None:
        self._refuse()

    def spent(self) -> Fraction:
        self._refuse()

    def entries(self) -> tuple[Entry, ...]:
        self._refuse()


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


class HandleStore:
    """Another way to the same charges."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def charge(self, entry: Entry) -> None:
        self.store.charge(entry)

    @property
    def base(self) -> Store:
        """The underlying store, which is charged."""
        return base_of(self.store)

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

    def entries(self) -> tuple[Entry, ...]:
        return self.store.entries()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "store": for_travel(self.store)}


class NotedStore(HandleStore):
    """Writes a name, a purpose and a source to every charge."""

    def __init__(self, store: Store, name: str | None, about: dict[str, str]) -> None:
        super().__init__(store)
        self._name, self._about = name, about

    def charge(self, entry: Entry) -> None:
        name = entry.name if self._name is None else self._name
        self.store.charge(replace(entry, name=name, about={**entry.about, **self._about}))


class PrepaidStore(HandleStore):
    """Accepts charges that ``store`` has already been charged with, up to ``left``.

    Anything beyond that is charged to ``store``, so that a search whose fits cost more than it
    planned for still pays for them.
    """

    def __init__(self, store: Store, left: Fraction) -> None:
        super().__init__(store)
        self._left = left
        self._lock = threading.Lock()
        self._process = process_mark()

    def charge(self, entry: Entry) -> None:
        with self._lock:
            if entry.loss.epsilon + entry.reserve <= self._left:
                self._left -= entry.loss.epsilon
                return
        self.store.charge(entry)

    def exhaust(self) -> None:
        with self._lock:
            self._left = Fraction(0)

    @property
    def direct(self) -> Store:
        """What is charged once nothing is prepaid any more."""
        return self.store.direct if isinstance(self.store, PrepaidStore) else self.store

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in super().__getstate__().items() if key != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()
        if self._process == process_mark():
            # A copy that went to a worker process for a fit of the search, and came back with
            # what was fitted: the search cannot settle it.
            self._left = Fraction(0)


def base_of(store: Store) -> Store:
    return store.base if isinstance(store, HandleStore) else store


def for_travel(store: Store) -> Store:
    """What is pickled of a store: all of a file store, and only the name of a memory store.

    A copy of a memory store would not see what the original spends, and each could spend the whole
    budget. It refuses when it is charged and not when it is pickled, because joblib hides errors
    raised while pickling behind one of its own.
    """
    return DetachedStore(store.name) if isinstance(store, MemoryStore) else store


Store = DetachedStore | MemoryStore | HandleStore | FileStore
