"""``domain``: declare and check public domains."""

from __future__ import annotations

import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from .._keys import number_written
from ..domain import Domain, DomainReport
from ..domain.check import rows_kept
from ..domain.schemas import read_json
from ..domain.values import some
from ..exceptions import DomainError, PrivacyLeakWarning
from ..tables import as_frame, identities
from .csv import Declared, header_of, open_source, open_table
from .outputs import Progress, read, write_text

# --- files of what is public: domains and code books


def read_domain(path: str, *, data: str | None = None) -> Domain:
    """A domain from a file: JSON, or a code book.

    Parameters
    ----------
    path : str
    data : str, default=None
        The file of records, which declares no domain.

    Raises
    ------
    DomainError
        If it declares no valid domain. A file that is not a domain of ours may be one of records by
        mistake, so nothing of it is quoted.
    OSError
        If it cannot be opened.
    """
    if data is not None and _same(path, data):
        raise DomainError(
            f"{path} was given both as the data and as the domain. The domain is public and "
            "declared in a file of its own, JSON or a code book."
        )
    if Path(path).suffix.lower() == ".json":
        try:
            source = read_json(Path(path))
        except DomainError as error:
            raise DomainError(f"{path} is not a domain in JSON. {error}") from None
        if isinstance(source, Mapping) and source.get("format") == "skdp.domain":
            try:
                return Domain.from_json(Path(path))
            except DomainError as error:
                why = str(error).partition("declares no valid domain. ")[2] or error
                raise DomainError(f"{path} declares no valid domain. {why}") from None
    try:
        return Domain.from_schema(Path(path))
    except (DomainError, TypeError, ValueError):
        pass  # raised below, without what the file holds
    raise DomainError(
        f"{path} declares no domain. `skdp domain from-schema {path}` says why: it quotes what it "
        "cannot read, so run it on public files only."
    )


def _same(path: str, other: str) -> bool:
    return os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)


# --- the columns of a domain, in words

_WIDEST = 72


def domain_text(domain: Domain) -> str:
    """One line for each column: name, number of codes, declaration; then the rules between them."""
    rows = [("column", "codes", "declared as")]
    for name in domain.columns:
        attribute = domain.declared(name)
        measured = name in domain.names
        codes = str(domain[name].size) if measured else "-"
        derived = ", follows from others" if name in domain.structure.derived else ""
        rows.append((name, codes, shortened(repr(attribute), derived)))
    parts = [text_table(rows)]
    if domain.structure.rules:
        parts += ["", "rules:", *(f"  {shortened(repr(rule))}" for rule in domain.structure.rules)]
    return "\n".join(parts)


def shortened(text: str, more: str = "") -> str:
    """A text that fits into a line, and what must stand behind it."""
    return f"{text if len(text) <= _WIDEST else text[: _WIDEST - 4] + ' ...'}{more}"


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of text in aligned columns; numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    right = [all(_is_number(text) for text in column[1:]) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(row, widths, right, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "").isdigit() or text in ("", "-", "ranges")


# --- the commands


def from_schema(options: Namespace) -> int:
    """Make a domain from a code book."""
    domain = Domain.from_schema(Path(options.schema))
    write_text(domain.to_json(), options.out, options.force, [options.schema])
    return 0


def check(options: Namespace) -> int:
    """Count what a domain would change in a file, and propose a better one: exact, not private."""
    if options.domain is None:
        return _propose(options)
    domain = read_domain(options.domain, data=options.data)
    print(
        "NOT PRIVATE: these counts are exact. They are for the data owner only and must not be "
        "passed on.",
        file=sys.stderr,
    )
    report = checked(options, domain, Progress(options.quiet))
    if _shows(options):
        print(report)
        if report.findings:
            print(f"\n{report.declaration()}")
    else:
        print(replace(report, findings=()))
    return 0 if report.clean else 1


def checked(options: Namespace, domain: Domain, progress: Progress) -> DomainReport:
    """What a domain would do to the records of a file. Exact: NOT private."""
    with open_source(options.data, domain, everything=True, options=options) as source:
        schema = as_frame(source.empty())
        domain.check_schema(schema.select([n for n in schema.names if n in domain.columns]))
        records = read(source.table, progress)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return read(lambda _: domain.check(records), progress)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _shows(options: Namespace) -> bool:
    """Whether findings are shown: at a terminal, where nothing keeps them."""
    if options.show or sys.stdout.isatty():
        return True
    if options.domain is None:
        raise ValueError(
            "Without --domain a declaration is proposed from what the records hold, which is shown "
            "at a terminal only: run this there, or with --show. With --domain FILE it is counted "
            "what that declaration skips."
        )
    _say("Findings and a corrected declaration: at a terminal, or with --show.")
    return False


def _propose(options: Namespace) -> int:
    """Propose a domain for a file of which nothing is declared: exact, not private."""
    _shows(options)
    print("NOT PRIVATE: exact findings, for the data owner only.", file=sys.stderr)
    report = proposed(options, Progress(options.quiet))
    # A file that keeps what is printed has the declaration alone.
    print("\n".join(f"- {line}" for line in report.findings), file=sys.stderr)
    print(report.declaration())
    return 1


def proposed(options: Namespace, progress: Progress) -> DomainReport:
    """A declaration with blanks for a file, and findings. Exact: NOT private."""
    texts: dict[str, Declared] = dict.fromkeys(header_of(options.data, options).columns)
    with open_table(options.data, texts, options) as source:
        records = read(source.table, progress)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            report = read(lambda _: Domain.propose(records), progress)
    numbers = [name for name in texts if not np.isnan(number_written(str(name)))]
    if not numbers:
        return report
    said = f"{some(numbers)}: numbers as names. Does the first line name the columns?"
    return replace(report, findings=(said, *report.findings))


def kept(options: Namespace, privacy_id: str) -> str:
    """Which share of the rows each bound on the rows of a person keeps. Exact: NOT private."""
    with open_table(options.data, {privacy_id: None}, options) as source:
        rows = as_frame(read(source.rows, Progress(True)))
    persons = identities(rows.column(privacy_id))
    shares = rows_kept(np.bincount(persons[persons >= 0]), len(persons))
    return (
        f"Share of the rows that count, by how many of each person do: {shares}. This is for the "
        "data owner only, not protected: choose the bound from public knowledge."
    )
