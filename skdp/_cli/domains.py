"""``domain``: declare, check, describe and compare public domains."""

from __future__ import annotations

import sys
import warnings
from argparse import Namespace
from pathlib import Path

from ..domain import Domain
from ..exceptions import PrivacyLeakWarning
from .declared import read_domain, with_rules
from .describe import domain_text
from .outputs import write_text
from .program import read
from .progress import Progress
from .sources import header_of, open_source

__all__ = ["check", "describe", "diff", "from_schema", "skeleton"]

# What turns the code of a skeleton into a file that other commands read.
_SAVED = """
from pathlib import Path

# Then `skdp domain check DATA --domain domain.json`.
Path("domain.json").write_text(domain.to_json())"""


def skeleton(options: Namespace) -> int:
    """Print code that declares the columns of a file."""
    code = str(Domain.skeleton(header_of(options.data, options))) + _SAVED
    write_text(code, options.out, options.force, [options.data])
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
    """Count what a domain would change in a file: exact, not private."""
    domain = read_domain(options.domain, options.structure, data=options.data)
    progress = Progress(options.quiet)
    print(
        "NOT PRIVATE: these counts are exact. They are for the data owner only and must not be "
        "passed on.",
        file=sys.stderr,
    )
    with open_source(options.data, domain, derived=True, options=options) as source:
        domain.check_schema(source.schema())
        records = read(source.table, progress)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            report = read(lambda _: domain.check(records), progress)
    print(report)
    return 0 if report.clean else 1


def describe(options: Namespace) -> int:
    """List the columns of a domain."""
    print(domain_text(read_domain(options.domain)))
    return 0


def diff(options: Namespace) -> int:
    """List the differences of two domains."""
    difference = read_domain(options.first).diff(read_domain(options.second))
    print(difference)
    return 1 if difference else 0
