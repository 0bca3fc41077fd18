"""Commands and options; the docstring of what adds the options of a command is its help."""

from __future__ import annotations

import argparse
import inspect
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from .. import __version__

if TYPE_CHECKING:
    Commands: TypeAlias = argparse._SubParsersAction[ArgumentParser]

# Names of synthesizers, by the words with which their releases say how they were made.
METHODS = {
    "grid": "GridSynthesizer",
    "hdpview": "HDPViewSynthesizer",
    "kdtree": "KDTreeSynthesizer",
    "marginals": "MarginalSynthesizer",
    "privbayes": "PrivBayesSynthesizer",
    "privtree": "PrivTreeSynthesizer",
}
_DOMAIN = "the public domain: JSON that a domain wrote, or a code book in CSV"


def parser() -> ArgumentParser:
    """Releases of private tables, without writing Python.

        %(prog)s domain check DATA.csv > DOMAIN.json
        %(prog)s plan --domain DOMAIN.json --epsilon 1
        %(prog)s release DATA.csv --domain DOMAIN.json --epsilon 1 --out VIEW.skdp
        %(prog)s query VIEW.skdp "age >= 30 and sex == 'Female'"
        %(prog)s sample VIEW.skdp --out ROWS.csv
        %(prog)s page VIEW.skdp

    `%(prog)s COMMAND --help` explains each command.
    """
    top = ArgumentParser(
        prog="skdp",
        description=inspect.getdoc(parser),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"skdp {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    domains = _group(commands, "domain", "Check or propose a public domain.")
    _command(domains, check, "release.check")
    _command(commands, plan, "release.plan")
    _command(commands, release, "release.release")
    _command(commands, wizard, "wizard.server.wizard")
    for add in (info, query, sample, page, verify):
        _command(commands, add, f"views.{add.__name__}")
    ledgers = _group(commands, "ledger", "What has been spent, on what.")
    _command(ledgers, show, "views.ledger")
    _command(ledgers, find, "views.verify_ledger", "verify")
    return top


def _command(
    commands: Commands, add: Callable[[ArgumentParser], None], run: str, name: str = ""
) -> None:
    """A command, which a function of a module of this package runs."""
    text, _, more = (inspect.getdoc(add) or "").partition("\n\n")
    command: ArgumentParser = commands.add_parser(
        name or add.__name__,
        help=text,
        description=text,
        epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=partial(_run, run))
    add(command)


def _run(path: str, options: Namespace) -> int:
    # Loaded by the command that needs it, so that help and the ledger are quick.
    module, _, function = path.rpartition(".")
    return int(getattr(import_module(f".{module}", __package__), function)(options))


def _group(commands: Commands, name: str, text: str) -> Commands:
    """A command that has actions."""
    group = commands.add_parser(name, help=text, description=text)
    return group.add_subparsers(dest="action", required=True, metavar="ACTION")


# -- options of several commands; docstrings go below those of the commands


def _explained(command: ArgumentParser, options: Callable[..., None]) -> None:
    command.epilog = f"{command.epilog}\n\n{inspect.getdoc(options) or ''}".strip()


def _data_options(command: ArgumentParser, **how: Any) -> None:
    """DATA is a CSV file: one record per line, read by itself; the first line names the columns.

    Nothing is guessed from the records: say with --sep, --encoding and --decimal how the file is
    written. Numbers may be written as $1,234.50 or (12); empty fields, and text that is no number,
    are missing values. Lines with an odd number of quotes or too many fields fit no domain. Columns
    that the domain does not declare are not read.
    """
    _explained(command, _data_options)
    add = command.add_argument
    add("data", help="CSV file", **how)
    between = "between fields (default: a comma)"
    add("--sep", metavar="SIGN", type=lambda sign: "\t" if sign == "tab" else sign, help=between)
    add("--encoding", help="default: UTF-8, and Windows-1252 for bytes that are not")
    add("--decimal", choices=[".", ","], help="decimal mark (default: a point)")
    missing = "text that stands for no value, such as NA; may be given several times"
    add("--missing", metavar="TEXT", action="append", help=missing)
    lines = "lines above the one that names the columns, such as a title or sep=;"
    add("--skip-lines", type=int, metavar="N", help=lines)
    breaks = "fields in quotes hold line breaks: assumes that every record has its quotes closed"
    add("--multiline", action="store_true", help=breaks)


def _estimator_options(command: ArgumentParser) -> None:
    add = command.add_argument
    add("--domain", required=True, metavar="DOMAIN", help=_DOMAIN)
    add("--epsilon", type=float, required=True, help="privacy budget of the release")
    add("--method", choices=[*METHODS], default="marginals", help="default: marginals")
    add("--target", metavar="COLUMN", help="column that models will predict")
    person = (
        "column of the data, not of the domain, that identifies the person whom epsilon protects"
    )
    add("--privacy-id", metavar="COLUMN", help=person)
    most = "with --privacy-id: keep at most K rows of each person, chosen secretly"
    add("--max-rows-per-id", type=int, metavar="K", help=most)


def _questions(command: ArgumentParser, name: str, **how: Any) -> None:
    """A QUESTION counts records, as in "age >= 30 and sex == 'Female'", or asks for a statistic.

    Statistics are "mean(pay)", "median(pay) where age >= 65", "quantile(pay, 0.9)", "sum(pay)",
    "std(pay)", "proportion(age >= 65) where sex == 'F'" or "correlation(age, pay)"; "" counts all
    records. Dates are written as in 2021-03-31, or as the domain declares. In conditions, names
    that are no words stand between backticks, and the whole between apostrophes, which keep them
    from the shell: '`hours.per.week` > 40 and sex == "F"'.
    """
    _explained(command, _questions)
    command.add_argument(name, metavar="QUESTION", **how)


def _view(command: ArgumentParser) -> None:
    command.add_argument("view", help="file of a release")


def _out(command: ArgumentParser, text: str, **how: Any) -> None:
    command.add_argument("--out", metavar="FILE", help=f"{text}; a new file", **how)


# -- domains and releases


def check(command: ArgumentParser) -> None:
    """Count what a domain would clip or skip, and correct it: exact, for the data owner only.

    NOT PRIVATE: the counts are exact. Do not pass them on, and do not choose a domain by them
    that would tell what they are. Corrections have blanks to be filled in from what is publicly
    known. Without --domain one is proposed. The declaration alone goes to standard output.
    """
    _data_options(command)
    command.add_argument("--domain", metavar="DOMAIN", help=_DOMAIN)


def plan(command: ArgumentParser) -> None:
    """Show what a release would cost, and the error bars to expect.

    Nothing is spent. With --privacy-id and DATA, the share of the rows that each K keeps is
    shown too: exact, for the data owner only. Without DATA nothing is read.
    """
    bars = "with --rows: error bars to expect of a question, at several epsilons; may be repeated"
    _questions(command, "--ask", action="append", default=[], help=bars)
    _data_options(command, nargs="?")
    _estimator_options(command)
    rows = "public guess of the number of records, for --ask"
    command.add_argument("--rows", type=int, metavar="N", help=rows)


def release(command: ArgumentParser) -> None:
    """Release a private view of a file of records."""
    _data_options(command)
    _estimator_options(command)
    _out(command, "file for the release, which holds no record", required=True)
    add = command.add_argument
    add("--ledger", metavar="FILE", help="ledger to charge; made if missing, with --budget")
    add("--budget", type=float, help="total budget of a new ledger")
    add("--purpose", default="", metavar="TEXT", help="what the release is for, for the ledger")
    loss = (
        "go on if more than a tenth of the records is skipped, beyond the noise; without it the "
        "release stops then, after 1%% of epsilon"
    )
    add("--accept-loss", action="store_true", help=loss)


def wizard(command: ArgumentParser) -> None:
    """Make a release by filling in pages in a browser, on this machine alone.

    Needs `pip install 'skdp[app]'`. Nothing is charged before the last page is confirmed. The
    table stays where it is: the browser is never given the records.
    """
    _explained(command, _data_options)
    command.set_defaults(read=lambda words: parser().parse_args(words))
    add = command.add_argument
    add("data", help="CSV file")
    add("--domain", metavar="DOMAIN", help="begin with this declaration")
    add("--ledger", metavar="FILE", help="ledger to charge; made if missing")
    add("--folder", default=".", help="where the release and its files are written (default: here)")
    add("--port", type=int, default=0, help="default: any that is free")
    add("--no-browser", action="store_true", help="print the address only")


# -- views


def info(command: ArgumentParser) -> None:
    """Show what was released, at what cost, and how."""
    _view(command)


def query(command: ArgumentParser) -> None:
    """Answer questions about a release, with intervals."""
    _view(command)
    _questions(command, "query", nargs="+")
    text = "confidence of the intervals (default: 0.95)"
    command.add_argument("--level", type=float, default=0.95, help=text)


def sample(command: ArgumentParser) -> None:
    """Draw synthetic rows from a release."""
    _view(command)
    add = command.add_argument
    add("--rows", type=int, metavar="N", help="default: the noisy number of records")
    add("--where", metavar="QUERY", help="rows that satisfy a query only")
    add("--seed", type=int, help="seed of the draws, which are not noise: safe to set")
    _out(command, "CSV file; default: standard output")


def page(command: ArgumentParser) -> None:
    """Write a page that answers questions about a release: HTML, one file.

    It shows what was released at what cost and every column with its error bars. In any
    browser it answers counts, shares, means, quantiles and tables, with intervals. It
    requests nothing from the network, and costs no privacy.
    """
    _view(command)
    command.add_argument("--title", help="title of the page; default: the name of the file")
    _out(command, "HTML file; default: that of the release, ending in .html")


# -- for an officer


def show(command: ArgumentParser) -> None:
    """List the releases that a ledger paid for."""
    command.add_argument("ledger", help="file of a ledger")
    _out(command, "file for a page (HTML) of all releases, for a privacy officer")


def find(command: ArgumentParser) -> None:
    """Check a ledger, and find the charges of releases in it."""
    command.add_argument("ledger", help="file of a ledger")
    command.add_argument("view", nargs="*", help="files of releases that it must have paid for")


def verify(command: ArgumentParser) -> None:
    """Check a release: format, epsilon, seed, skipped records, ledger, fingerprint, replay.

    The replay runs the method of the release on neighbouring tables of its own and computes its
    privacy loss. The variances that the release states must be those that its epsilon buys: this
    shows consistency, and is no proof. Only the fingerprint shows that no number was changed. The
    exit code is 1 if anything is not as it should be.
    """
    _view(command)
    add = command.add_argument
    add("--ledger", metavar="FILE", help="ledger in which its charge must be")
    add("--fingerprint", metavar="DIGITS", help="the published fingerprint, to compare with")
    add("--no-replay", action="store_true", help="leave out the replay")
    _out(command, "file for a certificate of one page (HTML)")
