"""``release``: a private view of a file of records."""

from __future__ import annotations

import warnings
from argparse import Namespace
from pathlib import Path
from typing import Any

from ..accounting import LedgerError, PrivacyLedger
from ..exceptions import BudgetExceededError
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
    _check_ledger(options)
    files = (
        options.data,
        options.domain,
        options.structure,
        options.ledger,
        workload_file(options.workload),
    )
    inputs = [each for each in files if each is not None]
    with (
        open_source(options.data, domain, options.unit) as source,
        outputs.output(Path(options.out), options.force, inputs) as part,
    ):
        estimator = estimator_of(options, domain)
        if options.ledger and options.budget is None and not Path(options.ledger).exists():
            raise ValueError(
                f"There is no ledger file {options.ledger!r}. To start one, give its total "
                "budget: --budget EPSILON."
            )
        _try_out(estimator, source)
        ledger = None
        if options.ledger is not None:
            ledger = PrivacyLedger(number(options.budget, "--budget"), path=options.ledger)
        estimator.set_params(ledger=ledger)
        _fit(estimator, source, progress, charged=ledger is not None)
        progress.say(f"Writing {options.out}.")
        outputs.save(estimator.synopsis_, part)
    print(f"{options.out}: {estimator.privacy_loss_}")
    if ledger is not None:
        print(ledger)
    return 0


def _check_ledger(options: Namespace) -> None:
    if options.budget is not None and options.ledger is None:
        raise ValueError("--budget belongs to a ledger: give --ledger FILE too.")


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
    except (BudgetExceededError, LedgerError):
        raise
    except Exception as error:
        raise Withheld(error, charged=charged) from None
