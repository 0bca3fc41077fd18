"""``release``: a private view of a file of records."""

from __future__ import annotations

import contextlib
import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from .._random import Journal, noise_source
from ..accounting import LedgerError, PrivacyLedger
from ..domain import Domain
from ..exceptions import BudgetExceededError, RecordsLostError
from ..release import Synopsis
from ..release.files import read_archive, write_archive
from . import outputs
from .domains import read_domain
from .methods import estimator_of, number, workload_file
from .outputs import Progress, Withheld, read
from .sources import Source, no_records, open_source, try_out

# What a file of measurements is, by its metadata, and the most bytes that it unpacks to.
_KIND, _VERSION, _MOST_BYTES = "skdp measurements", 1, 1 << 34


def release(options: Namespace) -> int:
    """Charge the ledger, measure the file, and write the release."""
    progress = Progress(options.quiet)
    domain = read_domain(options.domain, options.structure, data=options.data)
    ledger_file = _ledger_file(options)
    files = (options.data, options.domain, options.structure, workload_file(options.workload))
    inputs = [each for each in files if each is not None]
    if ledger_file is not None:
        inputs += [ledger_file + suffix for suffix in outputs.SQLITE]
    part = Path(f"{options.out}.part")
    outputs.refuse_inputs(part, inputs)
    ledger = None
    if options.resume:
        if ledger_file is not None:
            if not Path(ledger_file).is_file():
                raise ValueError(
                    f"There is no ledger file {options.ledger!r}: give the one that was charged, "
                    "or leave --ledger out. Finishing charges nothing."
                )
            ledger = PrivacyLedger(path=ledger_file)
        estimator = estimator_of(options, domain)
        with outputs.output(Path(options.out), options.force, inputs) as out:
            synopsis = _finished(options, estimator, domain, part, progress)
            outputs.save(synopsis, out, part)
    else:
        with (
            open_source(options.data, domain, options.unit, options=options) as source,
            outputs.output(Path(options.out), options.force, inputs) as out,
        ):
            estimator = estimator_of(options, domain)
            if part.exists():
                raise ValueError(
                    f"{part} holds all measurements of a release that was killed. Finish it with "
                    "--resume, which costs nothing; or remove the file."
                )
            if ledger_file and options.budget is None and not Path(ledger_file).exists():
                raise ValueError(
                    f"There is no ledger file {options.ledger!r}. To start one, give its total "
                    "budget: --budget EPSILON."
                )
            # Its errors contain no value, so they are shown in full.
            try_out(estimator, source.empty())
            ledger = _opened(ledger_file, options, source)
            synopsis = _measured(options, estimator, domain, source, ledger, part, progress)
            progress.say(f"Writing {options.out}.")
            outputs.save(synopsis, out, part)
    part.unlink(missing_ok=True)
    print(f"{options.out}: {synopsis.privacy_loss}")
    print(f"records: {synopsis.skipped}")
    if options.unit is not None:
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
    domain: Domain,
    source: Source,
    ledger: PrivacyLedger | None,
    part: Path,
    progress: Progress,
) -> Synopsis:
    """Read the file, charge, and measure.

    A file is parsed before the charge, so that a disk that fails costs nothing; in an engine it is
    read after it. The values are not looked at until the fit has charged.
    """
    resumable = options.method == "marginals"

    def keep(answers: list[Any]) -> None:
        metadata = {
            "format": _KIND,
            "version": _VERSION,
            "skdp": __version__,
            "release": _described(options, estimator, domain),
            "assumes": source.assumes,
        }
        arrays = {
            f"{turn}.{place}": np.asarray(array)
            for turn, answer in enumerate(answers)
            for place, array in enumerate(answer if isinstance(answer, tuple) else [answer])
        }
        # A release that can still be finished must not fail because it cannot be resumed.
        with contextlib.suppress(OSError):
            write_archive(part, metadata, arrays)

    # Somebody is there who can correct the declaration, before the rest is spent.
    estimator.set_params(ledger=ledger, on_loss="warn" if options.accept_loss else "stop")
    if resumable:
        estimator.set_params(random_state=Journal(noise_source(estimator.random_state), keep))
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
        if part.exists():
            left = f"All is measured, in {part}: --resume finishes the release, at no cost."
        elif ledger is not None and ledger.spent == spent:
            left = "Nothing was charged."
        else:
            why = "not everything was measured" if resumable else f"{options.method} cannot resume"
            left = f"What it spent stays spent, and the release is lost: {why}."
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(f"Interrupted. {left}") from None
        raise Withheld(error, left) from None
    synopsis: Synopsis = estimator.synopsis_
    return _assuming(synopsis, source.assumes)


def _finished(
    options: Namespace, estimator: Any, domain: Domain, part: Path, progress: Progress
) -> Synopsis:
    """Finish a release from its measurements, as post-processing: see `Journal`.

    Raises
    ------
    ValueError
        If there are none, or they are damaged, or those of another release.
    """
    if not part.exists():
        raise ValueError(
            f"There is no {part}: nothing is left to finish. If the release was killed, that was "
            "before everything was measured, and what was charged for it is lost."
            if options.method == "marginals"
            else "Only releases by --method marginals can be resumed."
        )
    version, theirs, assumes, told = read_archive(part, _KIND, _VERSION, _held, _MOST_BYTES)
    if version != __version__:
        raise ValueError(
            f"{part} was written by skdp {version}, and this is {__version__}: finish the release "
            "with that version."
        )
    mine = _described(options, estimator, domain)
    for name in [name for name, value in mine.items() if theirs.get(name) != value]:
        raise ValueError(
            f"{part} holds the measurements of another release: its {name} was "
            f"{theirs.get(name)}, and {mine[name]} is given. Repeat the command that was killed, "
            "with --resume."
        )
    source = noise_source(estimator.random_state)
    left = iter(told)
    estimator.set_params(random_state=Journal(source, lambda answers: None, left))
    progress.say(f"Finishing from {part}.")
    try:
        estimator.fit(no_records(domain, options.unit))
        if [*left]:
            raise ValueError("There are more than this release takes.")
    except Exception as error:
        raise ValueError(
            f"{part} does not hold the measurements of this release: it is damaged."
        ) from error
    synopsis: Synopsis = estimator.synopsis_
    return _assuming(synopsis, assumes)


def _held(
    known: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> tuple[str, Mapping[str, str], str, list[Any]]:
    """Version, release, assumption and answers of a file of measurements."""
    answers: dict[int, list[np.ndarray]] = {}
    for name in arrays:
        answers.setdefault(int(name.split(".")[0]), []).append(arrays[name].copy())
    told = [each[0][()] if len(each) == 1 else tuple(each) for each in answers.values()]
    return known["skdp"], dict(known["release"]), str(known["assumes"]), told


def _described(options: Namespace, estimator: Any, domain: Domain) -> Mapping[str, str]:
    """What decides a release, in words; nothing else of the options does."""
    left_out = ("domain", "ledger", "on_loss", "random_state", "verbose")
    given = {n: repr(v) for n, v in estimator.get_params().items() if n not in left_out}
    return {
        "data": repr(options.data),
        "domain": domain.fingerprint,
        "method": options.method,
        **given,
    }


def _assuming(synopsis: Synopsis, assumes: str) -> Synopsis:
    if assumes and synopsis.privacy_loss is not None:
        synopsis.privacy_loss = synopsis.privacy_loss.assuming(assumes)
    return synopsis
