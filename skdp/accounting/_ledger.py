"""The ledger of one data set: its budget, and the charges to it."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd

from .._validation import as_epsilon, as_fraction
from ..exceptions import LedgerError
from ._loss import PrivacyLoss, parts_text, short_text
from ._stores import (
    ABOUT,
    DetachedStore,
    FileStore,
    MemoryStore,
    NotedStore,
    PrepaidStore,
    Store,
    base_of,
    for_travel,
    new_entry,
    total_of,
    unit_of,
)


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
        self._store: Store
        self._stand_in: PrivacyLedger | None = None
        if path is None:
            self._store = MemoryStore(total, name)
        else:
            # Absolute: worker processes may have another current directory.
            file = Path(os.path.abspath(Path(path).expanduser()))
            self._store = FileStore(file, total, name)

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
            "assumes".
        reserve : number or Fraction, default=0
            Epsilon that must be left after this charge, or it is refused: for a release that is
            charged in steps. It is not spent.

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
        self._store.charge(new_entry(name, loss, about, as_fraction(reserve, "reserve")))

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
        entry = new_entry(name or "charge", PrivacyLoss(1), about)
        return _with_store(NotedStore(self._store, name, dict(entry.about)))

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
            (the first digits of the hash of its JSON).
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
            The same object each time. Its ``charge``, ``epsilon``, ``spent`` and ``remaining``
            raise `LedgerError`, which says how to attach the real ledger.
        """
        if self._stand_in is None:
            self._stand_in = _with_store(DetachedStore(self.name))
        return self._stand_in

    def __copy__(self) -> PrivacyLedger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PrivacyLedger:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {"_store": for_travel(self._store)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._store = state["_store"]
        self._stand_in = None

    def _repr_html_(self) -> str:
        try:
            return self.to_html(rows=20)
        except LedgerError as error:
            return f"<div><b>Privacy ledger</b>: {html.escape(str(error))}</div>"

    def to_html(self, *, rows: int | None = None) -> str:
        """Balance and charges for a page: what each cost, when, for what, from which source.

        Parameters
        ----------
        rows : int, default=None
            The newest charges that are shown; None: all.
        """
        charges = self.to_frame().drop(columns=["exact", "process"])
        charges["time"] = charges["time"].dt.strftime("%Y-%m-%d %H:%M:%S UTC")
        shown = charges if rows is None else charges.tail(rows)
        notes = [html.escape(repr(self))]
        if charges["seeded"].any():
            notes.append(f"<b>{charges['seeded'].sum()} seeded: no guarantee</b>")
        if len(shown) < len(charges):
            notes.append(f"the last {len(shown)} are shown")
        # Texts are escaped and never cut.
        with pd.option_context("display.max_colwidth", None):
            table = shown.to_html(index=False, border=0, na_rep="")
        return f"<div>{'; '.join(notes)}{table}</div>"

    def __repr__(self) -> str:
        fields: list[str] = []
        if isinstance(base_of(self._store), DetachedStore):
            named = "" if self.name is None else f", name={self.name!r}"
            return f"PrivacyLedger(detached{named})"
        if self.epsilon is not None:
            fields.append(f"epsilon={short_text(self.epsilon)}")
        try:
            entries = self._store.entries()
        except LedgerError as error:
            fields.append(f"unreadable: {error}")
        else:
            spent = total_of(entries)
            units = unit_of(entries)
            fields.append(f"spent={short_text(spent)}" + (f" ({units})" if units else ""))
            if self.epsilon is not None:
                fields.append(f"remaining={short_text(self.epsilon - spent)}")
            fields.append(f"charges={len(entries)}")
        if self.name is not None:
            fields.append(f"name={self.name!r}")
        if self.path is not None:
            fields.append(f"path={str(self.path)!r}")
        return f"PrivacyLedger({', '.join(fields)})"


def _with_store(store: Store) -> PrivacyLedger:
    ledger = object.__new__(PrivacyLedger)
    ledger.__setstate__({"_store": store})
    return ledger


def prepaid(ledger: PrivacyLedger, epsilon: Fraction) -> PrivacyLedger:
    """A second handle on ``ledger``, whose charges have been paid for up to ``epsilon``.

    For a parameter search, which is charged once for all its fits.
    """
    return _with_store(PrepaidStore(ledger._store, epsilon))


def settle(handle: PrivacyLedger) -> None:
    """From now on ``handle`` charges its ledger directly, in every estimator that holds it."""
    if isinstance(handle._store, PrepaidStore):
        # A search within this one may have made a handle on this handle.
        handle._store.exhaust()
        handle._store = handle._store.direct


def same_budget(first: PrivacyLedger, second: PrivacyLedger) -> bool:
    """Whether two ledgers are the same: one ledger in memory, or one file."""
    mine, theirs = (base_of(ledger._store) for ledger in (first, second))
    if isinstance(mine, FileStore) and isinstance(theirs, FileStore):
        return mine.path == theirs.path
    return mine is theirs


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
