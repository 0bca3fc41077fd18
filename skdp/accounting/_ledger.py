"""The ledger of one data set: its budget, and the charges to it."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from .._keys import NO_KEY, key_of
from .._validation import as_epsilon, as_fraction
from ..exceptions import LedgerError
from ._stores import (
    ABOUT,
    PERSON,
    DetachedStore,
    Entry,
    FileStore,
    MemoryStore,
    PrivacyLoss,
    Store,
    for_travel,
    new_entry,
    parts_text,
    short_text,
    total_of,
)


class Part(NamedTuple):
    """Records with one of some keys in a column."""

    column: str
    keys: frozenset[Any]


class PrivacyLedger:
    """The privacy budget of one data set, and all charges to it.

    Every release is charged before a value is read. Losses add up (sequential composition):
    several releases, folds or columns of the same people share one budget.

    Parameters
    ----------
    epsilon : number or Fraction, default=None
        Total budget. None: with the path of an existing ledger, the total in the file; without a
        path, no limit (charges are only recorded).
    path : str or path-like, default=None
        File of the ledger (SQLite), created if it does not exist. It outlives the process, and
        several processes may charge it at the same time (``n_jobs=4``). None keeps the ledger in
        the memory of this process. A pickle of such a ledger holds its name only and refuses
        charges, so that other processes cannot spend the same budget again.
    name : str, default=None
        Name of the data set, stored in the file. Opening the file under another name warns.

    Raises
    ------
    ValueError
        If ``epsilon`` is not positive, or differs from the total in the file.
    LedgerError
        If the file cannot be used: not a ledger, damaged, read-only, locked, replaced, or an
        older copy of the one that was opened. Nothing is spent then. A subclass of RuntimeError.

    Notes
    -----
    Amounts are exact fractions of the decimals as written, so three charges of 0.1 fit
    into a budget of 0.3. Where the denominator of the sum exceeds 10**60, the charge is recorded as
    larger by less than 1e-60, in a part "rounding"; the noise is that of what was asked.
    ``copy.copy``, ``copy.deepcopy`` and ``sklearn.base.clone`` return the same ledger: a clone
    spends from the same budget. A charge stays spent if the release crashes after it.

    A ledger has one unit of privacy, set by its first charge: a record, or a person with a
    bounded number of records (losses of a person add up whatever the bound is). Charges of the
    other unit are refused, because epsilon for a record does not bound the loss of a person with
    many records.

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
    <PrivacyLedger 'mothers': Spent: epsilon 0.25 of 1, by 1 charge; left: 0.75>
    """

    # No instance dictionary: a charge() that is set on a ledger by accident, or by a mock that was
    # left behind, would silently take the place of the real one.
    __slots__ = ("__weakref__", "_note", "_purses", "_store", "part")

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
        if path is None:
            self._enter(MemoryStore(total, name))
        else:
            # Absolute: worker processes may have another current directory.
            file = Path(os.path.abspath(Path(path).expanduser()))
            self._enter(FileStore(file, total, name))

    def _enter(
        self,
        store: Store,
        note: Mapping[str, str] | None = None,
        purses: tuple[_Purse, ...] = (),
        part: Part | None = None,
    ) -> PrivacyLedger:
        self._store = store
        # What it pays for, if that is not the whole table; see `divide`.
        self.part = part
        # What every charge says of itself, also its name.
        self._note = note or {}
        # What has been paid for: the innermost search first.
        self._purses = purses
        return self

    @property
    def epsilon(self) -> Fraction | None:
        """Total budget; None if there is no limit."""
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
        """Epsilon spent so far."""
        return self._store.spent()

    @property
    def remaining(self) -> Fraction | float:
        """Epsilon left; ``math.inf`` if there is no limit."""
        return math.inf if self.epsilon is None else self.epsilon - self.spent

    def charge(
        self,
        name: str,
        loss: PrivacyLoss | Any,
        *,
        about: Mapping[str, str] | None = None,
        reserve: Any = 0,
        part: Part | None = None,
    ) -> None:
        """Spend ``loss``, or raise an error and leave the ledger unchanged.

        Parameters
        ----------
        name : str
            What the charge is for, such as the class of the estimator.
        loss : PrivacyLoss or number
            A number is the epsilon of one record; for a person give
            ``PrivacyLoss(epsilon, max_rows_per_id=...)``.
        about : mapping of str to str, default=None
            What the officer's page says of it: "purpose", "source", "estimator", "domain",
            "assumes", "privacy_id".
        reserve : number or Fraction, default=0
            Epsilon that must be left after this charge, or it is refused: for a release that is
            charged in steps. It is not spent.
        part : Part, default=None
            What of the table the release depends on, as estimators know it. Ledgers of a part
            refuse what is not theirs; see `divide`.

        Raises
        ------
        BudgetExceededError
            If less than ``loss`` and ``reserve`` is left.
        LedgerError
            If the ledger cannot be used from here, or holds charges of the other unit of privacy.
        """
        if not isinstance(name, str) or not name:
            raise TypeError(f"A charge needs a name, a non-empty string; got {name!r}.")
        if not isinstance(loss, PrivacyLoss):
            loss = PrivacyLoss(loss)
        if self.part is not None and (part != self.part or loss.max_rows_per_id is not None):
            raise LedgerError(
                f"This ledger pays for single records of {self.name} alone. Give it to a "
                f"synthesizer whose domain has {self.part.column!r} with these categories and no "
                "others, without other=, nullable=True and privacy_id=. Nothing was spent."
            )
        note = dict(self._note)
        name = note.pop("name", name)
        about = {**(about or {}), **note}
        entry = new_entry(name, loss, about, as_fraction(reserve, "reserve"))
        if not any(purse.pays(entry) for purse in self._purses):
            self._store.charge(entry)

    def noted(
        self, name: str | None = None, *, purpose: str = "", source: str = "", assumes: str = ""
    ) -> PrivacyLedger:
        """A second handle on this ledger, which writes to every charge what it is for.

        Parameters
        ----------
        name : str, default=None
            Name of the charges, such as that of the release; None: the class of the estimator.
        purpose : str, default=""
            Free text.
        source : str, default=""
            Where the records come from, such as the name of a file.
        assumes : str, default=""
            What must be true of the source for the guarantee to hold.

        Returns
        -------
        PrivacyLedger
            It spends the same budget.

        Examples
        --------
        >>> ledger = PrivacyLedger(1)
        >>> ledger.noted("visits", purpose="Annual report, table 3").charge("cube", 0.5)
        >>> ledger.to_frame()[["name", "purpose"]].values.tolist()
        [['visits', 'Annual report, table 3']]
        """
        about = {"purpose": purpose, "source": source, "assumes": assumes}
        note = dict(new_entry("", PrivacyLoss(1), about).about)
        if name is not None:
            note["name"] = name
        return _new_handle()._enter(self._store, {**self._note, **note}, self._purses, self.part)

    def divide(self, column: str, caps: Mapping[Any, Any]) -> dict[Any, PrivacyLedger]:
        """Ledgers of disjoint parts of the records, which together cost the largest of their caps.

        A record is in the part that its value of one column names, by the key with which categories
        are coded whatever reads the table; with another value or none it is in no part. A
        synthesizer with such a ledger must declare the column with categories of the part alone,
        and then depends on no other record: not even those are counted that it skips.

        Parameters
        ----------
        column : str
            A column of the data.
        caps : mapping of a category, or a tuple of categories, to a number
            The budget of each part, fixed now. All of the largest is spent at once, whatever the
            parts will spend.

        Returns
        -------
        dict of the same keys to PrivacyLedger
            In the memory of this process; what a part has left is lost with it.

        Raises
        ------
        ValueError
            If a category is missing, or two parts have one.
        BudgetExceededError
            If less than the largest cap is left.
        LedgerError
            If this is the ledger of a part.

        Examples
        --------
        >>> import pandas as pd
        >>> from skdp import GridSynthesizer, PrivacyLedger
        >>> people = pd.DataFrame({"sex": ["F", "M"] * 500, "age": [30, 40] * 500})
        >>> ledger = PrivacyLedger(1.0)
        >>> women, men = ledger.divide("sex", {"F": 0.5, "M": 0.5}).values()
        >>> for category, part in (("F", women), ("M", men)):
        ...     domain = {"sex": [category], "age": (18, 90)}
        ...     view = GridSynthesizer(epsilon=0.5, domain=domain, ledger=part).fit(people)
        >>> float(ledger.spent)
        0.5
        """
        # Privacy. Parts are fixed sets of keys that share none, and a key depends on one record's
        # value alone: adding a record changes at most one part. What is released from a part
        # depends on its records alone (`Coded`, and the check of `charge`), at most its cap in all
        # (sequential composition). So all parts together cost the largest cap, whatever is chosen
        # by what was released of others: each answer depends on the record in one part only.
        if self.part is not None:
            # Its parts would be parts of the whole table.
            raise LedgerError(f"The records of {self.name} are a part already. Divide once.")
        if not isinstance(column, str):
            raise TypeError(f"column must be the name of a column, a string; got {column!r}.")
        parts: dict[Any, Part] = {}
        for name in caps:
            keys = frozenset(
                key_of(each) for each in (name if isinstance(name, tuple) else (name,))
            )
            if not keys or keys & {None, NO_KEY} or any(keys & p.keys for p in parts.values()):
                raise ValueError(f"{name!r} is no category, or has one of another part.")
            parts[name] = Part(column, keys)
        exact = {name: as_epsilon(cap, f"caps[{name!r}]") for name, cap in caps.items()}
        if not parts:
            raise ValueError("caps is empty: name at least one part.")
        about = {"assumes": f"parts by {column}"}
        self.charge(f"parts by {column}", max(exact.values()), about=about)
        return {
            name: _new_handle()._enter(
                MemoryStore(exact[name], f"{column} = {name!r}"), self._note, (), part
            )
            for name, part in parts.items()
        }

    def to_frame(self) -> pd.DataFrame:
        """All charges in the order in which they were made.

        Returns
        -------
        DataFrame
            Columns ``time`` (UTC), ``name``, ``epsilon`` (float), ``exact`` (the fraction as
            text), ``parts`` (text), ``seeded`` (no guarantee), ``process`` (its id), ``unit``
            ("record" or "person"), ``max_rows_per_id`` (how many records of a person count;
            missing for records), and texts that may be empty: ``purpose``, ``source`` and
            ``assumes`` as they were given (see `noted`), ``estimator`` (the class), ``domain``
            (the first digits of the hash of its JSON), ``privacy_id`` (the column that identifies
            the persons whom it protects).
        """
        entries = self._store.entries()

        def column(values: Iterable[Any], dtype: Any = object) -> pd.Series:
            return pd.Series(list(values), dtype=dtype)

        losses = [entry.loss for entry in entries]
        times = pd.to_datetime([entry.time for entry in entries], utc=True)
        return pd.DataFrame(
            {
                "time": times.as_unit("us"),
                "name": column(entry.name for entry in entries),
                "epsilon": column((float(loss) for loss in losses), float),
                "exact": column(str(loss.epsilon) for loss in losses),
                "parts": column(parts_text(loss.parts) for loss in losses),
                "seeded": column((loss.seeded for loss in losses), bool),
                "process": column((entry.process for entry in entries), "int64"),
                "unit": column(entry.unit for entry in entries),
                "max_rows_per_id": column((loss.max_rows_per_id for loss in losses), "Int64"),
                **{key: column(entry.about.get(key, "") for entry in entries) for key in ABOUT},
            }
        )

    def detached(self) -> PrivacyLedger:
        """Stand-in for this ledger that has its name and cannot be charged.

        A pickle of a fitted estimator holds it in place of the ledger.

        Returns
        -------
        PrivacyLedger
            Its ``charge``, ``epsilon``, ``spent`` and ``remaining`` raise `LedgerError`, which
            says how to attach the real ledger.
        """
        return _new_handle()._enter(DetachedStore(self.name))

    def __copy__(self) -> PrivacyLedger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PrivacyLedger:
        return self

    def __getstate__(self) -> dict[str, Any]:
        # Nothing is prepaid for what goes to another process.
        return {"store": for_travel(self._store), "note": self._note, "part": self.part}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._enter(**state)

    def __repr__(self) -> str:
        named = "" if self.name is None else f" {self.name!r}"
        what = "detached" if isinstance(self._store, DetachedStore) else self
        return f"<PrivacyLedger{named}: {what}>"

    def __str__(self) -> str:
        try:
            entries, total = self._store.entries(), self.epsilon
        except LedgerError as error:
            return str(error)
        spent = total_of(entries)
        person = " for each person" * bool(entries and entries[0].unit == PERSON)
        number = f"{len(entries)} charge{'s' * (len(entries) != 1)}"
        if total is None:
            return f"Spent: epsilon {short_text(spent)}{person}, by {number}; there is no limit"
        of, left = short_text(total), short_text(total - spent)
        return f"Spent: epsilon {short_text(spent)} of {of}{person}, by {number}; left: {left}"


class _Purse:
    """What was charged for a search before its fits; they pay from it as long as it lasts.

    Anything beyond that is charged to the ledger, so that a search whose fits cost more than it
    planned for still pays for them.
    """

    def __init__(self, left: Fraction) -> None:
        self.left = left
        self._lock = threading.Lock()

    def pays(self, entry: Entry) -> bool:
        with self._lock:
            enough = entry.loss.epsilon + entry.reserve <= self.left
            if enough:
                self.left -= entry.loss.epsilon
            return enough

    def empty(self) -> None:
        with self._lock:
            self.left = Fraction(0)


def _new_handle() -> PrivacyLedger:
    return object.__new__(PrivacyLedger)


def prepaid(ledger: PrivacyLedger, epsilon: Fraction) -> PrivacyLedger:
    """A second handle on ``ledger``, whose charges have been paid for up to ``epsilon``.

    For a parameter search, which is charged once for all its fits.
    """
    purses = (_Purse(epsilon), *ledger._purses)
    return _new_handle()._enter(ledger._store, ledger._note, purses, ledger.part)


class _Uncharged(MemoryStore):
    """The store of a trial, which keeps nothing."""

    def charge(self, entry: Entry) -> None:
        pass


def for_trial(ledger: Any) -> PrivacyLedger | None:
    """What a trial has in place of a ledger: nothing to charge, but the same part of the table."""
    part = getattr(ledger, "part", None)
    return part and _new_handle()._enter(_Uncharged(None, ledger.name), part=part)


def settle(handle: PrivacyLedger) -> None:
    """From now on ``handle`` charges its ledger directly, in every estimator that holds it."""
    # A search within this one may have made a handle on this handle.
    for purse in handle._purses[:1]:
        purse.empty()
    handle._purses = ()


def same_budget(first: PrivacyLedger, second: PrivacyLedger) -> bool:
    """Whether two ledgers are the same: one ledger in memory, or one file."""
    mine, theirs = (ledger.path or ledger._store for ledger in (first, second))
    return mine == theirs


def charge(ledger: Any, name: str, loss: PrivacyLoss, **more: Any) -> None:
    """Charge ``ledger`` if there is one; the keywords are those of `PrivacyLedger.charge`.

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
    ledger.charge(name, loss, **more)
