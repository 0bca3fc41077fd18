"""``domain``: declare, check, describe and compare public domains."""

from __future__ import annotations

import sys
import warnings
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..domain import Domain
from ..exceptions import PrivacyLeakWarning
from ..rows import UNFIT, as_frame
from .csv_lines import Declared
from .declared import read_domain, with_rules
from .describe import domain_text
from .outputs import write_text
from .program import read
from .progress import Progress
from .sources import header_of, open_source, open_table

__all__ = ["check", "describe", "diff", "from_schema", "skeleton"]


def skeleton(options: Namespace) -> int:
    """Print YAML, or code, that declares the columns of a file."""
    style = "python" if options.python else "yaml"
    text = str(Domain.skeleton(header_of(options.data, options), style=style))
    write_text(text, options.out, options.force, [options.data])
    return 0


def from_schema(options: Namespace) -> int:
    """Make a domain from a schema."""
    domain = Domain.from_schema(Path(options.schema), format=options.format)
    domain = with_rules(domain, options.schema, options.structure)
    yaml = options.out is not None and Path(options.out).suffix.lower() in (".yaml", ".yml")
    text = domain.to_yaml() if yaml else domain.to_json()
    write_text(
        text,
        options.out,
        options.force,
        [each for each in (options.schema, options.structure) if each],
    )
    return 0


def check(options: Namespace) -> int:
    """Count what a domain would change in a file, and propose a better one: exact, not private."""
    if options.domain is None:
        return _propose(options)
    domain = read_domain(options.domain, options.structure, data=options.data)
    progress = Progress(options.quiet)
    print(
        "NOT PRIVATE: these counts are exact. They are for the data owner only and must not be "
        "passed on.",
        file=sys.stderr,
    )
    with open_source(options.data, domain, everything=True, options=options) as source:
        schema = as_frame(source.schema())
        domain.check_schema(schema.select([n for n in schema.names if n in domain.columns]))
        records = read(source.table, progress)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        if UNFIT in getattr(records, "attrs", {}):
            _put_back_texts(records, options)
            _warn_of_names(domain, records[:1])
        report = read(lambda _: domain.check(records), progress)
    if report.n_unfit and not options.multiline:
        _say("Lines that cannot be read: another --sep, or --multiline if quotes hold line breaks.")
    if _shows(options):
        print(report)
        if report.findings:
            print(f"\n{report.declaration('python' if options.python else 'yaml')}")
    else:
        print(replace(report, findings=()))
    return 0 if report.clean else 1


def _put_back_texts(records: pd.DataFrame, options: Namespace) -> None:
    """Put texts that are no numbers in the place of the missing values as which they are read."""
    numbers = [str(name) for name in records if records[name].dtype == np.float64]
    with open_table(options.data, dict.fromkeys(numbers), options) as source:
        texts = read(source.table, Progress(True))
    for name in numbers:
        unread = records[name].isna() & texts[name].notna()
        if unread.any():
            records[name] = records[name].astype(object).where(~unread, texts[name])


def _warn_of_names(domain: Domain, first: pd.DataFrame) -> None:
    """Say so if no value of the first record fits."""
    first.attrs = {}
    changes = domain.check(first).columns[["skipped", "not_understood", "to_other"]]
    if len(first) and len(changes) > 1 and changes.any(axis=1).all():
        _say("The first record fits no column. If it is a second line of names, remove it.")


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _shows(options: Namespace) -> bool:
    """Whether findings are shown: at a terminal, where nothing keeps them."""
    if options.show or sys.stdout.isatty():
        return True
    if options.domain is None:
        raise ValueError(
            "Without --domain a declaration is proposed from what the records hold, which is shown "
            "at a terminal only: run this there, or with --show. `skdp domain skeleton` reads no "
            "values. With --domain FILE it is counted what that declaration skips."
        )
    _say("Findings and a corrected declaration: at a terminal, or with --show.")
    return False


def _propose(options: Namespace) -> int:
    """Propose a domain for a file of which nothing is declared: exact, not private."""
    _shows(options)
    names = header_of(options.data, options).columns
    texts: dict[str, Declared] = dict.fromkeys(names)
    progress = Progress(options.quiet)
    print("NOT PRIVATE: exact findings, for the data owner only.", file=sys.stderr)
    with open_table(options.data, texts, options) as source:
        records = read(source.table, progress)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            report = read(lambda _: Domain.propose(records), progress)
    # A file that keeps what is printed has the declaration alone.
    print("\n".join(f"- {line}" for line in report.findings), file=sys.stderr)
    print(report.declaration("python" if options.python else "yaml"))
    return 1


def describe(options: Namespace) -> int:
    """List the columns of a domain."""
    print(domain_text(read_domain(options.domain)))
    return 0


def diff(options: Namespace) -> int:
    """List the differences of two domains."""
    difference = read_domain(options.first).diff(read_domain(options.second))
    print(difference)
    return 1 if difference else 0
