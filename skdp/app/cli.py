"""Commands and options, and which function runs each."""

from __future__ import annotations

import argparse
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    Commands: TypeAlias = argparse._SubParsersAction[ArgumentParser]

_DESCRIPTION = """\
Releases of private tables, without writing Python.

    {prog} domain check DATA.csv > DOMAIN.json
    {prog} plan --domain DOMAIN.json --epsilon 1
    {prog} release DATA.csv --domain DOMAIN.json --epsilon 1 --out VIEW.skdp
    {prog} query VIEW.skdp "age >= 30 and sex == 'Female'"
    {prog} sample VIEW.skdp --out ROWS.csv
    {prog} page VIEW.skdp

`{prog} COMMAND --help` explains each command."""

_DATA = """\
DATA is a CSV file: one record per line, read by itself; the first line names the columns. Nothing
is guessed from the records: say with --sep, --encoding and --decimal how the file is written.
Numbers may be written as $1,234.50 or (12); empty fields, and text that is no number, are missing
values. Lines with an odd number of quotes or too many fields fit no domain. Columns that the domain
does not declare are not read."""

_QUESTIONS = """\
A QUESTION counts records, as in "age >= 30 and sex == 'Female'", or asks for a statistic of them:
"mean(pay)", "median(pay) where age >= 65", "quantile(pay, 0.9)", "sum(pay)", "std(pay)",
"proportion(age >= 65) where sex == 'F'" or "correlation(age, pay)"; "" counts all records. Dates
are written as in 2021-03-31, or as the domain declares. In conditions, names that are no words
stand between backticks, and the whole between apostrophes, which keep them from the shell:
'`hours.per.week` > 40 and sex == "F"'."""

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
    """All commands."""
    # As it was called: `skdp` or `python -m skdp`.
    module = Path(sys.argv[0]).parts[-2:] == ("skdp", "__main__.py")
    prog = "python -m skdp" if module else "skdp"
    top = ArgumentParser(
        prog=prog,
        description=_DESCRIPTION.format(prog=prog),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (_domain, _plan, _release, _wizard, _info, _query, _sample, _page, _ledger, _verify):
        add(commands)
    return top


def parsed(arguments: Sequence[str] | None) -> Namespace:
    """Options of one command."""
    return parser().parse_args(arguments)


def _command(commands: Commands, name: str, run: str, text: str, more: str = "") -> ArgumentParser:
    """A command, which a function of a module of this package runs."""
    command: ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=more or None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=partial(_run, run))
    return command


def _run(path: str, options: Namespace) -> int:
    # Loaded by the command that needs it, so that help and the ledger are quick.
    module, _, function = path.rpartition(".")
    return int(getattr(import_module(f".{module}", __package__), function)(options))


def _group(commands: Commands, name: str, text: str) -> Commands:
    """A command that has actions."""
    group = commands.add_parser(name, help=text, description=f"{text.capitalize()}.")
    return group.add_subparsers(dest="action", required=True, metavar="ACTION")


# -- options of several commands


def _data_options(command: ArgumentParser, **how: Any) -> None:
    add = command.add_argument
    add("data", help="CSV file", **how)
    tabs = {"tab": "\t", "\\t": "\t"}
    between = "between fields (default: a comma)"
    add("--sep", metavar="SIGN", type=lambda sign: tabs.get(sign, sign), help=between)
    add("--encoding", help="default: UTF-8, and Windows-1252 for bytes that are not")
    add("--decimal", choices=[".", ","], help="decimal mark (default: a point)")
    missing = "text that stands for no value, such as NA; may be given several times"
    add("--missing", metavar="TEXT", action="append", help=missing)
    lines = "lines above the one that names the columns, such as a title or sep=;"
    add("--skip-lines", type=int, metavar="N", help=lines)
    add(
        "--multiline",
        action="store_true",
        help="fields in quotes hold line breaks: the guarantee then assumes that the file was "
        "written with the quotes of every record closed",
    )


def _estimator_options(command: ArgumentParser) -> None:
    add = command.add_argument
    add("--domain", required=True, metavar="DOMAIN", help=_DOMAIN)
    add("--epsilon", type=float, required=True, help="privacy budget of the release")
    add("--method", choices=[*METHODS], default="marginals", help="default: marginals")
    add("--target", metavar="COLUMN", help="column that models will predict")
    add(
        "--privacy-id",
        metavar="COLUMN",
        help="column of the data, not of the domain, that identifies the person a row belongs to; "
        "epsilon then protects the person",
    )
    most = "with --privacy-id: keep at most K rows of each person, chosen secretly"
    add("--max-rows-per-id", type=int, metavar="K", help=most)


def _out(command: ArgumentParser, text: str, *, required: bool = False) -> None:
    command.add_argument("--out", metavar="FILE", required=required, help=f"{text}; a new file")


def _level(command: ArgumentParser) -> None:
    text = "confidence of the intervals (default: 0.95)"
    command.add_argument("--level", type=float, default=0.95, help=text)


# -- domains and releases


def _domain(commands: Commands) -> None:
    check = _command(
        _group(commands, "domain", "check or propose a public domain"),
        "check",
        "domains.check",
        "count what a domain would clip or skip, and correct it: exact, for the data owner only",
        "NOT PRIVATE: the counts are exact. Do not pass them on, and do not choose a domain by "
        "them\nthat would tell what they are. Corrections have blanks to be filled in from what is "
        "publicly\nknown. Without --domain one is proposed.\n\n" + _DATA,
    )
    _data_options(check)
    check.add_argument("--domain", metavar="DOMAIN", help=_DOMAIN)


def _plan(commands: Commands) -> None:
    plan = _command(
        commands,
        "plan",
        "release.plan",
        "show what a release would cost, and the error bars to expect",
        "Nothing is spent. With --privacy-id and DATA, the share of the rows that each K keeps is\n"
        "shown too: exact, for the data owner only. Without DATA nothing is read.\n\n"
        f"{_QUESTIONS}\n\n{_DATA}",
    )
    _data_options(plan, nargs="?")
    _estimator_options(plan)
    add = plan.add_argument
    add("--rows", type=int, metavar="N", help="public guess of the number of records, for --ask")
    text = (
        "with --rows: the error bars to expect of a question, at several epsilons; may be repeated"
    )
    add("--ask", action="append", default=[], metavar="QUESTION", help=text)


def _release(commands: Commands) -> None:
    release = _command(
        commands, "release", "release.release", "release a private view of a file of records", _DATA
    )
    _data_options(release)
    _estimator_options(release)
    _out(release, "file for the release, which is safe to publish", required=True)
    add = release.add_argument
    add("--ledger", metavar="FILE", help="ledger to charge; made if missing, with --budget")
    add("--budget", type=float, help="total budget of a new ledger")
    add("--purpose", default="", metavar="TEXT", help="what the release is for, for the ledger")
    add(
        "--accept-loss",
        action="store_true",
        help="go on if more than a tenth of the records is skipped, beyond the noise; without it "
        "the release stops then, after 1%% of epsilon",
    )


def _wizard(commands: Commands) -> None:
    wizard = _command(
        commands,
        "wizard",
        "wizard.server.wizard",
        "make a release by filling in pages in a browser, on this machine alone",
        "Needs `pip install 'skdp[wizard]'`. Nothing is charged before the last page is confirmed. "
        "The\ntable stays where it is: the browser is never given the records.\n\n" + _DATA,
    )
    wizard.set_defaults(read=parsed)
    add = wizard.add_argument
    add("data", help="CSV file")
    add("--domain", metavar="DOMAIN", help="begin with this declaration")
    add("--ledger", metavar="FILE", help="ledger to charge; made if missing")
    add("--folder", default=".", help="where the release and its files are written (default: here)")
    add("--port", type=int, default=0, help="default: any that is free")
    add("--no-browser", action="store_true", help="print the address only")


# -- views


def _view(commands: Commands, name: str, text: str, more: str = "") -> ArgumentParser:
    command = _command(commands, name, f"views.{name}", text, more)
    command.add_argument("view", help="file of a release")
    return command


def _info(commands: Commands) -> None:
    _view(commands, "info", "show what was released, at what cost, and how")


def _query(commands: Commands) -> None:
    text = "answer questions about a release, with intervals"
    query = _view(commands, "query", text, _QUESTIONS)
    query.add_argument("query", nargs="+", metavar="QUESTION")
    _level(query)


def _sample(commands: Commands) -> None:
    sample = _view(commands, "sample", "draw synthetic rows from a release")
    add = sample.add_argument
    add("--rows", type=int, metavar="N", help="default: the noisy number of records")
    add("--where", metavar="QUERY", help="rows that satisfy a query only")
    add("--seed", type=int, help="seed of the draws, which are not noise: safe to set")
    _out(sample, "CSV file; default: standard output")


def _page(commands: Commands) -> None:
    page = _view(
        commands,
        "page",
        "write a page that answers questions about a release: HTML, one file",
        "It shows what was released at what cost and every column with its error bars. In any\n"
        "browser it answers counts, shares, means, quantiles and tables, with intervals. It\n"
        "requests nothing from the network, and costs no privacy.",
    )
    page.add_argument("--title", help="title of the page; default: the name of the file")
    _level(page)
    _out(page, "HTML file; default: that of the release, ending in .html")


# -- for an officer


def _ledger(commands: Commands) -> None:
    inside = _group(commands, "ledger", "what has been spent, on what")
    show = _command(inside, "show", "views.ledger", "list the releases that a ledger paid for")
    _out(show, "file for a page (HTML) of all releases, for a privacy officer")
    text = "check a ledger, and find the charges of releases in it"
    verify = _command(inside, "verify", "views.verify_ledger", text)
    for command in (show, verify):
        command.add_argument("ledger", help="file of a ledger")
    verify.add_argument("view", nargs="*", help="files of releases that it must have paid for")


def _verify(commands: Commands) -> None:
    verify = _view(
        commands,
        "verify",
        "check a release: format, epsilon, seed, skipped records, ledger, fingerprint, replay",
        "The replay runs the method of the release on neighbouring tables of its own and computes "
        "its\nprivacy loss. The variances that the release states must be those that its epsilon "
        "buys: this\nshows consistency, and is no proof. The exit code is 1 if anything is not as "
        "it should be.",
    )
    add = verify.add_argument
    add("--ledger", metavar="FILE", help="ledger in which its charge must be")
    add("--fingerprint", metavar="DIGITS", help="the published fingerprint, to compare with")
    add("--no-replay", action="store_true", help="leave out the replay")
    _out(verify, "file for a certificate of one page (HTML)")
