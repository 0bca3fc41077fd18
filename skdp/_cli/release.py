"""``release``: a private view of a file of records."""

from __future__ import annotations

import os
import sys
import warnings
from argparse import Namespace
from pathlib import Path
from typing import Any

from ..accounting import LedgerError, PrivacyLedger
from ..exceptions import BudgetExceededError, RecordsLostError
from . import outputs
from .declared import read_domain
from .methods import estimator_of, number
from .program import Withheld, read
from .progress import Progress
from .sources import Source, open_source
from .workloads import workload_file

__all__ = ["release"]


def release(options: Namespace) -> int:
    """Charge the ledger, measure the file, and write the release."""
    progress = Progress(options.quiet)
    domain = read_domain(options.domain, options.structure, data=options.data)
    ledger_file = _ledger_file(options)
    files = (options.data, options.domain, options.structure, workload_file(options.workload))
    inputs = [each for each in files if each is not None]
    if ledger_file is not None:
        inputs += [ledger_file + suffix for suffix in outputs.SQLITE]
    with (
        open_source(options.data, domain, options.unit, options=options) as source,
        outputs.output(Path(options.out), options.force, inputs) as out,
    ):
        estimator = estimator_of(options, domain)
        if ledger_file and options.budget is None and not Path(ledger_file).exists():
            raise ValueError(
                f"There is no ledger file {options.ledger!r}. To start one, give its total "
                "budget: --budget EPSILON."
            )
        _try_out(estimator, source)
        ledger = None
        if ledger_file is not None:
            ledger = PrivacyLedger(number(options.budget, "--budget"), path=ledger_file).noted(
                Path(options.out).name, purpose=options.purpose, source=options.data
            )
        else:
            print(
                "Warning: no --ledger: what this release spends is recorded nowhere, and must be "
                "added up by hand with all other releases of these records.",
                file=sys.stderr,
            )
        # Somebody is there who can correct the declaration, before the rest is spent.
        on_loss = "warn" if options.accept_loss else "stop"
        estimator.set_params(ledger=ledger, on_loss=on_loss)
        _fit(estimator, source, progress, charged=ledger is not None)
        progress.say(f"Writing {options.out}.")
        synopsis = estimator.synopsis_
        if source.assumes:
            synopsis.privacy_loss = synopsis.privacy_loss.assuming(source.assumes)
        outputs.save(synopsis, out)
    print(f"{options.out}: {synopsis.privacy_loss}")
    print(f"records: {synopsis.skipped}")
    if options.unit is not None:
        print("Answers are about the rows kept: those of a person beyond the bound count nowhere.")
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


def _try_out(estimator: Any, source: Source) -> None:
    """A trial fit without records: its errors contain no value, so they are shown in full.

    It warns that its release is nearly empty, which says nothing about the file.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(source.empty())


def _fit(estimator: Any, source: Source, progress: Progress, *, charged: bool) -> None:
    """Read the file, charge, and measure.

    A file is parsed before the charge, so that a disk that fails costs nothing; in an engine it is
    read after it. The values are not looked at until the fit has charged.
    """
    records = read(source.rows, progress)
    progress.say("Measuring.")
    try:
        estimator.fit(records)
    except (BudgetExceededError, LedgerError, RecordsLostError):
        raise
    except Exception as error:
        raise Withheld(error, charged=charged) from None
