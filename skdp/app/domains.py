"""``domain check``, and files of domains."""

from __future__ import annotations

import os
import sys
import warnings
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np

from .._keys import number_written
from .._validation import some
from ..domain import Domain, DomainReport
from ..domain.check import rows_kept
from ..exceptions import DomainError, PrivacyLeakWarning
from ..tables import as_frame, identities
from .csv import Form, columns_of, open_source


def read_domain(path: str, data: str | None = None, *, owner: bool = False) -> Domain:
    """A domain from a file: JSON, or a code book.

    Parameters
    ----------
    path : str
    data : str, default=None
        The file of records, which declares no domain.
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
    if data is not None and os.path.exists(data) and file.exists() and file.samefile(data):
        raise DomainError(
            f"{path} was given both as the data and as the domain. The domain is public and "
            "declared in a file of its own, JSON or a code book."
        )
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
    print(
        "NOT PRIVATE: this is exact. It is for the data owner only and must not be passed on.",
        file=sys.stderr,
    )
    if options.domain is None:
        report = proposed(options)
        # A file that keeps what is printed has the declaration alone.
        print("\n".join(f"- {line}" for line in report.findings), file=sys.stderr)
        print(report.declaration())
        return 1
    report = checked(options, read_domain(options.domain, options.data, owner=True))
    print(report)
    if report.findings:
        print(f"\n{report.declaration()}")
    return 0 if report.clean else 1


def checked(options: Namespace, domain: Domain) -> DomainReport:
    """What a domain would do to the records of a file. Exact: NOT private."""
    more = {name: domain.declared(name) for name in domain.columns}
    form = Form.of(options)
    with open_source(options.data, columns_of(domain), form, more=more) as source:
        schema = as_frame(source.empty())
        domain.check_schema(schema.select([n for n in schema.names if n in domain.columns]))
        records = source.rows(texts=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return domain.check(records)


def proposed(options: Namespace) -> DomainReport:
    """A declaration with blanks for a file, and findings. Exact: NOT private."""
    with open_source(options.data, form=Form.of(options)) as source:
        records = source.rows(texts=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        report = Domain.propose(records)
    numbers = [name for name in source.columns if not np.isnan(number_written(name))]
    if not numbers:
        return report
    said = f"{some(numbers)}: numbers as names. Does the first line name the columns?"
    return replace(report, findings=(said, *report.findings))


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
