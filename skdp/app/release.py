"""``release``: a private view of a file of records."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from ..accounting import LedgerError, PrivacyLedger
from ..exceptions import BudgetExceededError, RecordsLostError
from ..release import Synopsis
from . import outputs
from .csv import Source, open_source, try_out
from .domains import read_domain
from .outputs import Progress, Withheld, estimator_of, number, read


def release(options: Namespace) -> int:
    """Charge the ledger, measure the file, and write the release."""
    progress = Progress(options.quiet)
    domain = read_domain(options.domain, options.structure, data=options.data)
    ledger_file = _ledger_file(options)
    files = (options.data, options.domain, options.structure)
    inputs = [each for each in files if each is not None]
    if ledger_file is not None:
        inputs += [ledger_file + suffix for suffix in outputs.SQLITE]
    with (
        open_source(options.data, domain, options.privacy_id, options=options) as source,
        outputs.output(Path(options.out), options.force, inputs) as out,
    ):
        estimator = estimator_of(options, domain)
        if ledger_file and options.budget is None and not Path(ledger_file).exists():
            raise ValueError(
                f"There is no ledger file {options.ledger!r}. To start one, give its total "
                "budget: --budget EPSILON."
            )
        # Its errors contain no value, so they are shown in full.
        try_out(estimator, source.empty())
        ledger = _opened(ledger_file, options, source)
        synopsis = _measured(options, estimator, source, ledger, progress)
        progress.say(f"Writing {options.out}.")
        outputs.save(synopsis, out)
    print(f"{options.out}: {synopsis.privacy_loss}")
    print(f"records: {synopsis.skipped}")
    if options.privacy_id is not None:
        print(
            "Answers are about the rows kept: those of a person beyond the bound, and rows or "
            "lines of which no person can be read, count nowhere."
        )
    if ledger is not None:
        print(ledger)
    return 0


def _ledger_file(options: Namespace) -> str | None:
    """Path of the ledger, if there is one, as `PrivacyLedger` reads it."""
    if options.ledger is None:
        if options.budget is not None:
            raise ValueError("--budget belongs to a ledger: give --ledger FILE too.")
        return None
    return os.path.expanduser(options.ledger)


def _opened(ledger_file: str | None, options: Namespace, source: Source) -> PrivacyLedger | None:
    """The ledger, which writes to each charge what it is for; a warning where there is none."""
    if ledger_file is not None:
        return PrivacyLedger(number(options.budget, "--budget"), path=ledger_file).noted(
            Path(options.out).name,
            purpose=options.purpose,
            source=options.data,
            assumes=source.assumes,
        )
    print(
        "Warning: no --ledger: what this release spends is recorded nowhere, and must be "
        "added up by hand with all other releases of these records.",
        file=sys.stderr,
    )
    return None


def _measured(
    options: Namespace,
    estimator: Any,
    source: Source,
    ledger: PrivacyLedger | None,
    progress: Progress,
) -> Synopsis:
    """Read the file, charge, and measure.

    The file is parsed before the charge, so that a disk that fails costs nothing. The values are
    not looked at until the fit has charged.
    """
    # Somebody is there who can correct the declaration, before the rest is spent.
    estimator.set_params(ledger=ledger, on_loss="warn" if options.accept_loss else "stop")
    spent = None if ledger is None else ledger.spent
    try:
        records = read(source.rows, progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("Interrupted. Nothing was charged.") from None
    progress.say("Measuring.")
    try:
        estimator.fit(records)
    except (BudgetExceededError, LedgerError, RecordsLostError):
        raise
    except (Exception, KeyboardInterrupt) as error:
        free = ledger is not None and ledger.spent == spent
        lost = (
            "What it spent stays spent, and the release is lost: start it anew, for a new charge."
        )
        left = "Nothing was charged." if free else lost
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(f"Interrupted. {left}") from None
        raise Withheld(error, left) from None
    synopsis: Synopsis = estimator.synopsis_
    if source.assumes and synopsis.privacy_loss is not None:
        synopsis.privacy_loss = synopsis.privacy_loss.assuming(source.assumes)
    return synopsis
