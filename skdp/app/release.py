"""``plan`` and ``release``: what a private view of a file of records would cost, and the view."""

from __future__ import annotations

import math
import os
import sys
from argparse import Namespace
from fractions import Fraction
from pathlib import Path
from typing import Any

from .._validation import as_epsilon
from ..accounting import LedgerError, PrivacyLedger, PrivacyLoss, extremes_text
from ..domain import Domain
from ..exceptions import BudgetExceededError, RecordsLostError
from ..expected import bar_texts
from ..mechanisms import discrete_laplace_variance
from ..release import Synopsis
from . import outputs
from .csv import Source, no_records, open_source, try_out
from .domains import kept, read_domain, text_table
from .outputs import Progress, Withheld, estimator_of, read


def release(options: Namespace) -> int:
    """Charge the ledger, measure the file, and write the release."""
    progress = Progress(options.quiet)
    domain = read_domain(options.domain, data=options.data)
    ledger_file = _ledger_file(options)
    inputs = [options.data, options.domain]
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
        progress.say(extremes_text(estimator.privacy_loss_.epsilon))
        ledger = _opened(ledger_file, options, source)
        synopsis = _measured(options, estimator, source, ledger, progress)
        progress.say(f"Writing {options.out}.")
        outputs.save(synopsis, out)
    loss = synopsis.privacy_loss or estimator.privacy_loss_
    print(f"{options.out}: epsilon {float(loss.epsilon):g}\nprotects: {loss.neighbours}")
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
    if ledger_file is not None and not options.purpose:
        print(
            "Warning: no --purpose: the ledger will not say what this release is for.",
            file=sys.stderr,
        )
    if ledger_file is not None:
        return PrivacyLedger(options.budget, path=ledger_file).noted(
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


# --- what a release would cost, and the error bars to expect, from public facts alone


def plan(options: Namespace) -> int:
    """Print the parts of the budget, and the error bars to expect of questions."""
    domain = read_domain(options.domain)
    if options.rows is not None and options.rows < 0:
        raise ValueError(f"--rows must not be negative, got {options.rows}.")
    if options.ask and not options.rows:
        raise ValueError("--ask needs --rows N, a public guess of the number of records.")
    if options.at and not options.ask:
        raise ValueError("--at needs --ask, a question.")
    if options.data is not None and options.privacy_id is None:
        raise ValueError("DATA is read to count the rows of each person: give --privacy-id too.")
    estimator = estimator_of(options, domain)
    try_out(estimator, no_records(domain, options.privacy_id))
    loss: PrivacyLoss = estimator.privacy_loss_
    domain = estimator.domain_
    print(f"{options.method} on {len(domain.names)} columns, epsilon {float(loss.epsilon):g}")
    print(f"protects: {loss.neighbours}")
    print(f"{extremes_text(loss.epsilon)}\nNothing was spent.\n".lstrip())
    rows = [("part", "epsilon", "noise")]
    for name, part in loss.parts.items():
        noise = math.sqrt(discrete_laplace_variance(loss.of_record.parts[name]))
        rows.append((name, f"{float(part):.4g}", f"{noise:.3g}"))
    print(text_table(rows))
    print("\nnoise: standard deviation of a count that a part is spent on alone, in records")
    if options.data is not None:
        print(f"\n{kept(options, options.privacy_id)}")
    if options.ask:
        _print_bars(options, domain, loss.epsilon)
    return 0


def _print_bars(options: Namespace, domain: Domain, epsilon: Fraction) -> None:
    """Error bars of questions at several epsilons, from releases of generated tables."""
    at = [epsilon * Fraction(2) ** power for power in (-2, -1, 0, 1, 2)]
    if options.at is not None:
        at = [as_epsilon(each, "--at") for each in options.at]
    made = estimator_of(options, domain)
    found = made.expected_error(options.rows, at, questions=options.ask, n_tables=1)
    rows = [(question, *bars) for question, bars in bar_texts(found, domain).items()]
    print(f"\n{options.rows:,} records: half the 95% interval, by epsilon, {found.attrs['how']}:")
    print(text_table([("question", *(f"{float(each):g}" for each in at)), *rows]))
