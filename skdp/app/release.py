"""``domain check``, ``plan`` and ``release``; files of domains, and those that are written."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from .. import synthesis
from .._validation import write_text as write_file
from ..accounting import LedgerError, PrivacyLedger, PrivacyLoss, extremes_text
from ..domain import Domain, DomainReport
from ..domain.check import rows_kept
from ..exceptions import BudgetExceededError, DomainError, PrivacyLeakWarning, RecordsLostError
from ..expected import bar_texts
from ..release import Synopsis
from ..tables import as_frame, identities
from .cli import METHODS
from .csv import Form, Source, columns_of, open_source, try_out


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def cost_text(loss: PrivacyLoss) -> str:
    """Epsilon and its parts, as every command writes them."""
    parts = ", ".join(f"{name} {float(part):.4g}" for name, part in loss.parts.items())
    return f"{float(loss.epsilon):g}, of which {parts}"


def estimator_of(options: Namespace, domain: Any) -> Any:
    """The synthesizer that the options describe, without a ledger."""
    return getattr(synthesis, METHODS[options.method])(
        epsilon=options.epsilon,
        domain=domain,
        target=options.target,
        privacy_id=options.privacy_id,
        max_rows_per_id=options.max_rows_per_id,
    )


# --- files


def ledger_files(path: str | os.PathLike[str] | None) -> list[str]:
    """The file of a ledger, and those that SQLite keeps beside it."""
    ends = ("", "-journal", "-wal", "-shm")
    return [] if path is None else [os.path.expanduser(path) + end for end in ends]


def refuse_inputs(path: str | os.PathLike[str], inputs: Iterable[str]) -> None:
    """Refuse to write over an input or a ledger, whether or not it exists yet."""
    if os.path.realpath(path) in map(os.path.realpath, inputs):
        raise ValueError(f"{path} is an input, or the ledger: give another file.")


@contextmanager
def output(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Claim a new file, which is written within the block.

    It is created first, empty, so that a path that cannot be written, or that another run is
    writing, is refused before anything is spent. If nothing is written, it is removed.

    Raises
    ------
    ValueError
        If there is anything at the path.
    OSError
        If it cannot be written.
    """
    target = Path(path)
    try:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    except FileExistsError:
        raise ValueError(
            f"{path} exists already, or another run is writing it: nothing is replaced. Remove it, "
            "or give another --out."
        ) from None
    try:
        yield target
    finally:
        with contextlib.suppress(OSError):
            if not target.stat().st_size:
                target.unlink()


def write_text(text: str, out: str) -> None:
    """Write a text to a new file."""
    with output(out) as path:
        write_file(path, text + "\n")


class Withheld(Exception):
    """An error of which only the type is shown, because its message may quote values.

    Parameters
    ----------
    error : Exception
    left : str
        What became of the charge.
    """

    def __init__(self, error: BaseException, left: str) -> None:
        super().__init__(
            f"Failed ({type(error).__name__}). The message is withheld, because it may quote "
            f"values of the data. {left}"
        )


# --- domains


def read_domain(path: str, *, owner: bool = False) -> Domain:
    """A domain from a file: JSON, or a code book.

    Parameters
    ----------
    path : str
    owner : bool, default=False
        Whether what the file holds is quoted to the owner of the records, which it may be by
        mistake.

    Raises
    ------
    DomainError
        If it declares no valid domain.
    OSError
        If it cannot be opened.
    """
    file = Path(path)
    json = file.suffix.lower() == ".json"
    try:
        return Domain.from_json(file) if json else Domain.from_schema(file)
    except (DomainError, TypeError, ValueError) as error:
        why = str(error).removeprefix("This JSON declares no valid domain. ")
        # Only a file that says what it is cannot be one of records.
        if not owner and not (json and b'"skdp.domain"' in file.read_bytes()[:99]):
            why = (
                f"`skdp domain check DATA --domain {path}` says why: it quotes what it cannot "
                "read, so run it on public files only."
            )
    raise DomainError(f"{path} declares no valid domain. {why}")


def check(options: Namespace) -> int:
    """Count what a domain would change in a file, and propose a better one: exact, not private."""
    domain = None if options.domain is None else read_domain(options.domain, owner=True)
    report = checked(options, domain)
    # A file that keeps what is printed has the declaration alone.
    _say(str(report))
    if domain is None or report.findings:
        print(report.declaration())
    return 0 if domain is not None and report.clean else 1


def checked(options: Namespace, domain: Domain | None = None) -> DomainReport:
    """What a domain would do to the records of a file, or a proposal of one. Exact: NOT private."""
    columns = None if domain is None else columns_of(domain)
    with open_source(options.data, columns, Form.of(options), others=columns is not None) as source:
        records = source.rows(texts=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return Domain.propose(records) if domain is None else domain.check(records)


def kept(options: Namespace, privacy_id: str) -> str:
    """Which share of the rows each bound on the rows of a person keeps. Exact: NOT private."""
    with open_source(options.data, {privacy_id: None}, Form.of(options)) as source:
        rows = as_frame(source.rows())
    persons = identities(rows.column(privacy_id))
    shares = rows_kept(np.bincount(persons[persons >= 0]), len(persons))
    return (
        f"Share of the rows that count, by how many of each person do: {shares}. This is for the "
        "data owner only, not protected: choose the bound from public knowledge."
    )


# --- the release


def release(options: Namespace) -> int:
    """Charge the ledger, measure the file, and write the release."""
    domain = read_domain(options.domain)
    refuse_inputs(options.out, [options.data, options.domain, *ledger_files(options.ledger)])
    columns = columns_of(domain, options.privacy_id)
    with open_source(options.data, columns, Form.of(options)) as source, output(options.out) as out:
        estimator = estimator_of(options, domain)
        # Its errors contain no value, so they are shown in full.
        try_out(estimator)
        if unusual := extremes_text(estimator.privacy_loss_.epsilon):
            _say(unusual)
        ledger = _ledger(options, source)
        # Somebody is there who can correct the declaration, before the rest is spent.
        lost = "warn" if options.accept_loss else "stop"
        estimator.set_params(ledger=ledger, on_loss=lost)
        synopsis = _measured(estimator, source, ledger)
        try:
            synopsis.save(out)
        except OSError as error:
            why = f"The release could not be written: {error.strerror}."
            raise ValueError(f"{why} It has been charged and is lost.") from error
    loss = synopsis.privacy_loss or estimator.privacy_loss_
    print(f"{options.out}: epsilon {cost_text(loss)}\nprotects: {loss.neighbours}")
    print(f"records: {synopsis.skipped}")
    if ledger is not None:
        print(ledger)
    return 0


def _ledger(options: Namespace, source: Source) -> PrivacyLedger | None:
    """The ledger, which writes to each charge what it is for; a warning where there is none."""
    if options.ledger is None:
        if options.budget is not None:
            raise ValueError("--budget belongs to a ledger: give --ledger FILE too.")
        _say(
            "Warning: no --ledger: what this release spends is recorded nowhere, and must be "
            "added up by hand with all other releases of these records."
        )
        return None
    ledger = PrivacyLedger(options.budget, path=options.ledger)
    if not options.purpose:
        _say("Warning: no --purpose: the ledger will not say what this release is for.")
    about = {"purpose": options.purpose, "source": options.data, "assumes": source.assumes}
    return ledger.noted(Path(options.out).name, **about)


def _measured(estimator: Any, source: Source, ledger: PrivacyLedger | None) -> Synopsis:
    """Read the file, charge, and measure.

    The file is parsed before the charge, so that a disk that fails costs nothing. The values are
    not looked at until the fit has charged.
    """
    before = None if ledger is None else ledger.spent
    records = None
    try:
        _say("Reading.")
        records = source.rows()
        synopsis: Synopsis = estimator.fit(records).synopsis_
    except (BudgetExceededError, LedgerError, RecordsLostError):
        raise
    except (Exception, KeyboardInterrupt) as error:
        if records is None and isinstance(error, OSError | MemoryError):
            raise
        left = "What it spent stays spent, and the release is lost: a new one is a new charge."
        if records is None or (ledger is not None and ledger.spent == before):
            left = "Nothing was charged."
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(f"Interrupted. {left}") from None
        raise Withheld(error, left) from None
    if source.assumes and synopsis.privacy_loss is not None:
        synopsis.privacy_loss = synopsis.privacy_loss.assuming(source.assumes)
    return synopsis


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of text in aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


# --- what it would cost, and the error bars to expect, from public facts alone


def plan(options: Namespace) -> int:
    """Print the parts of the budget, and the error bars to expect of questions."""
    domain = read_domain(options.domain)
    if options.ask and (options.rows or 0) < 1:
        raise ValueError("--ask needs --rows N, a public guess of the number of records.")
    if options.data is not None and options.privacy_id is None:
        raise ValueError("DATA is read to count the rows of each person: give --privacy-id too.")
    estimator = estimator_of(options, domain)
    try_out(estimator)
    loss: PrivacyLoss = estimator.privacy_loss_
    domain = estimator.domain_
    print(f"{options.method} on {len(domain.names)} columns, epsilon {float(loss.epsilon):g}")
    print(f"protects: {loss.neighbours}")
    print(f"{extremes_text(loss.epsilon)}\nNothing was spent.\nepsilon: {cost_text(loss)}".lstrip())
    if options.data is not None:
        print(f"\n{kept(options, options.privacy_id)}")
    if options.ask:
        # From releases of generated tables.
        at = [loss.epsilon * Fraction(2) ** power for power in (-2, -1, 0, 1, 2)]
        estimator = estimator_of(options, domain)
        found = estimator.expected_error(options.rows, at, questions=options.ask, n_tables=1)
        bars = [(question, *each) for question, each in bar_texts(found, domain).items()]
        print(
            f"\n{options.rows:,} records: half the 95% interval, by epsilon, {found.attrs['how']}:"
        )
        print(_table([("question", *(f"{float(each):g}" for each in at)), *bars]))
    return 0
