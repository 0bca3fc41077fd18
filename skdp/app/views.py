"""What a release says, at no cost; what an officer checks of it, and of the ledger."""

from __future__ import annotations

import hashlib
import math
import re
import sys
from argparse import Namespace
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from .._documents import Markup, document, filled, markup, protected, table_html
from .._validation import replacing
from ..accounting import PrivacyLedger, at_most, parts_text
from ..expected import Asked
from ..release import SKIPPED, BoxModel, StrategyModel, Synopsis, ViewsModel
from ..release.page import Page
from .cli import METHODS
from .release import cost_text, output, write_text


def info(options: Namespace) -> int:
    """Show what was released, what it cost, and which columns it has."""
    synopsis = Synopsis.load(options.view)
    for name, (text, _) in _facts(synopsis).items():
        print(f"{name}: {text}")
    domain = synopsis.domain
    print(f"columns: {len(domain.columns)}\n")
    for name in domain.columns:
        print(f"{name}: {domain.declared(name)!r}")
    for rule in domain.structure.rules:
        print(f"rule: {rule!r}")
    return 0


# What was found of a release, and whether that is as it should be; None: it cannot be known.
Found: TypeAlias = dict[str, tuple[str, bool | None]]


def _facts(synopsis: Synopsis) -> Found:
    """What a release says of itself."""
    loss, lost = synopsis.privacy_loss, synopsis.skipped
    epsilon = protects = "unknown"
    if loss is not None:
        epsilon, protects = cost_text(loss), loss.neighbours
    known = "YES, NO GUARANTEE. Whoever knows or guesses the seed can subtract the noise."
    rows = f", of {synopsis.rows}" * bool(synopsis.rows)
    return {
        "made by": (synopsis.mechanism or "an unknown method", True),
        "epsilon": (epsilon, loss is not None),
        "protects": (protects, loss is not None),
        "seeded": (known if synopsis.seeded else "no", not synopsis.seeded),
        "domain": (synopsis.domain.fingerprint, True),
        "estimated records": (f"{synopsis.total:,.0f}{rows}", True),
        "records": (str(lost or "not known how many were skipped"), lost is not None),
    }


def verify(options: Namespace) -> int:
    """Check a release; 1 if anything is not as it should be."""
    synopsis, file = Synopsis.load(options.view), Path(options.view)
    checks = _checks(synopsis, file, options)
    wrong = [name for name, (_, fine) in checks.items() if fine is False]
    for name, (text, _) in checks.items():
        print(f"{name}: {text}{'  <- NOT AS IT SHOULD BE' * (name in wrong)}")
    if options.out is not None:
        write_text(_certificate(synopsis, file.name, checks, wrong), options.out)
    return 1 if wrong else 0


def _checks(synopsis: Synopsis, file: Path, options: Namespace) -> Found:
    """What was found of a release."""
    loss, checks = synopsis.privacy_loss, _facts(synopsis)
    if loss is not None:
        stated, cost = float(loss.of_record.epsilon), _cost_of_noise(synopsis)
        fits, text = cost <= stated * (1 + 1e-6), "the variances that it states fit its epsilon"
        lower = f"as small as epsilon {cost:.3g} of one record buys, not {stated:.3g}"
        checks["noise"] = (text if fits else lower, fits)
    if options.ledger is not None:
        releases = releases_of(PrivacyLedger(path=options.ledger).to_frame())
        checks["ledger entry"] = _entry_of(synopsis, releases, file.name)[1:]
    # The description of a release begins with the name of its method.
    made_by = METHODS.get(re.split("[,;]", synopsis.mechanism)[0].replace("-", "").lower())
    if made_by is not None and not options.no_replay:
        from ..audit import replay_library

        [replayed] = replay_library([made_by], n=4)
        text = "computed losses within epsilon" if replayed.passed else "FAILED"
        checks["replay"] = (f"{made_by}: {text}", replayed.passed)
    digits = hashlib.sha256(file.read_bytes()).hexdigest()
    if options.fingerprint is None:
        checks["fingerprint"] = (digits, None)
        text = (
            "UNVERIFIED: a ledger shows that such a release was paid for, and only the published "
            "--fingerprint that no number of this file was changed since"
        )
        checks["numbers"] = (text, None)
    else:
        published = options.fingerprint.strip().lower()
        same = published == digits
        checks["fingerprint"] = (digits if same else f"{digits}, not {published}", same)
    return checks


def _cost_of_noise(synopsis: Synopsis) -> float:
    """Least epsilon of one record at which the stated noise can have been drawn.

    Of what was measured one after another, the epsilons add up. A release whose stated epsilon was
    edited, and nothing else, is found out; one that was edited throughout is not.
    """
    model, lost = synopsis.model, synopsis.skipped
    cost = 0.0 if lost is None else float(lost.epsilon)
    if isinstance(model, StrategyModel):
        return cost + _epsilon_of(model.noise) / model.unit
    if isinstance(model, BoxModel):
        return cost + max(map(float, model.intervals.epsilons), default=0.0)
    if not isinstance(model, ViewsModel):
        return cost
    for column in model.columns.values():
        cost += sum(map(_epsilon_of, column.variances.values()))
    ladders, tables = model.coefficients.ladders, model.coefficients.looks
    for axes, table in tables.items():
        # What a table of more columns says of these would count twice.
        if len(axes) > 1 and not any(set(axes) < set(other) for other in tables):
            sides = (ladders[axis].sizes[-1] for axis in axes)
            units = math.prod(sides) / math.prod(side + 1 for side in table.values.shape)
            cost += _epsilon_of(float(np.max(table.variances)) * units)
    return cost


def _epsilon_of(variance: float) -> float:
    """The epsilon of discrete Laplace noise of sensitivity 1."""
    return math.acosh(1 + 1 / variance) if variance > 0 else math.inf


def releases_of(charges: pd.DataFrame) -> pd.DataFrame:
    """Charges of a ledger, one row a release, by the number of its last charge.

    A release that could have stopped was charged in two steps, the part of skipped records first.
    """
    rows: dict[int, dict[Any, Any]] = {}
    begun: dict[tuple[str, str, int], int] = {}
    for number, charge in enumerate(charges.to_dict("records"), start=1):
        key = (charge["name"], charge["domain"], charge["process"])
        first = begun.pop(key, None)
        if charge["parts"].startswith(f"{SKIPPED}=") and "," not in charge["parts"]:
            begun[key] = number
        elif first is not None:
            before = rows.pop(first)
            charge["epsilon"] += before["epsilon"]
            charge["parts"] = f"{before['parts']}, {charge['parts']}"
        # Folders of the machine are nobody's business.
        charge["source"] = Path(charge["source"]).name
        rows[number] = {**charge, "numbers": f"{first} and {number}" if first else f"{number}"}
    return pd.DataFrame(rows.values(), columns=[*charges, "numbers"])


def _entry_of(
    synopsis: Synopsis, releases: pd.DataFrame, name: str
) -> tuple[pd.DataFrame, str, bool | None]:
    """Charges that can have paid for a release; what is said of them, and whether it is paid for.

    An entry that names a release pays for that one alone. What Python charged may name the class
    of the estimator only: then it is not known which release it is of.
    """
    loss = synopsis.privacy_loss
    if loss is None:
        return releases[:0], "none", False
    same = releases["domain"] == synopsis.domain.fingerprint
    same &= (releases["seeded"] == loss.seeded) & (releases["parts"] == parts_text(loss.parts))
    same &= releases["max_rows_per_id"].fillna(0) == (loss.max_rows_per_id or 0)
    own = same & (releases["name"] == name)
    unnamed = same & (releases["name"] == releases["estimator"])
    if own.any():
        return releases[own], _told(releases[own]), True
    if unnamed.any():
        text = f"{_told(releases[unnamed])} (names no release: `ledger verify` with all releases)"
        return releases[unnamed], text, None
    if not same.any():
        return releases[:0], "none", False
    text = f"none of this name, but {_told(releases[same])}. Was the file renamed? Rename it back"
    return releases[:0], text, False


def _unit_of(row: Mapping[Any, Any]) -> str:
    """What a charge protects, for people: a record, or a person by which column."""
    if pd.isna(row["max_rows_per_id"]):
        return str(row["unit"])
    of = f" by {row['privacy_id']!r}" * bool(row["privacy_id"])
    return f"{row['unit']}{of}, {at_most(row['max_rows_per_id'])}"


def _told(charges: pd.DataFrame) -> str:
    found = []
    for row in charges.to_dict("records"):
        notes = {"for": row["purpose"], "from": row["source"], "assuming that": row["assumes"]}
        more = "".join(f" {word} {text!r}" for word, text in notes.items() if text)
        when = f"{row['time']:%Y-%m-%d %H:%M} UTC"
        found.append(f"{row['numbers']} of {when}, {row['name']!r}{more}: one {_unit_of(row)}")
    return "; ".join(found)


def _as_table(rows: pd.DataFrame) -> Markup:
    """A table of texts that scrolls where it is too wide, so that no number or word is broken."""
    whole = r'<span class="whole">\g<0></span>'
    cells = rows.map(lambda each: re.sub(r"\S*-\S*", whole, markup("{each}", each=each)))
    table = table_html(cells, index=False, escape=False)
    return markup('<div class="scroll texts">{table}</div>', table=table)


def _certificate(synopsis: Synopsis, name: str, checks: Found, wrong: list[str]) -> str:
    """One page for the file: what was checked, when, and what it means."""
    verdict = "As it should be."
    if wrong:
        verdict = f"Not as it should be: {', '.join(wrong)}."
    elif "numbers" in checks:
        verdict = "Consistent, but unverified: its numbers were compared with no fingerprint."
    promise = protected(synopsis.privacy_loss)
    if wrong:
        promise = Markup("<p>None: it is not as it should be.</p>")
    words = {True: "yes", False: "NO", None: "not known"}
    rows = [(each, words[fine], text) for each, (text, fine) in checks.items()]
    body = filled(
        "check.html",
        release=name,
        verdict=verdict,
        version=version("skdp"),
        time=f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
        checks=_as_table(pd.DataFrame(rows, columns=["what", "fine", "found"])),
        promise=promise,
        columns=", ".join(map(str, synopsis.domain.columns)),
    )
    return document(f"Check of {name}", body)


def query(options: Namespace) -> int:
    """Answer questions in words, each with its interval, and say what the intervals cover.

    A release without error bars answers without them, and says why.
    """
    synopsis, level, said = Synopsis.load(options.view), options.level, defaultdict(list)
    try:
        _ = synopsis.model.covers
    except ValueError as why:
        level, none = None, f"none. {why}"
    # All or none, so that no answer stands without what its interval covers.
    answers = [Asked.read(text).answer(synopsis, level) for text in options.query]
    for text, answer in zip(options.query, answers, strict=True):
        shown, name = str(answer), text or "all records"
        if level is None and isinstance(answer, float):
            shown = f"{answer:,.4g}"
        print(f"{shown}  {name}")
        said[none if level is None else answer.guarantee].append(name)
    for covers, names in said.items():
        of = f" of {'; '.join(names)}" if len(said) > 1 else ""
        print(f"intervals{of}: {covers}")
    return 0


def sample(options: Namespace) -> int:
    """Draw synthetic rows."""
    synopsis = Synopsis.load(options.view)
    rows = synopsis.sample(options.rows, options.seed, where=options.where)
    if options.out is None:
        rows.to_csv(sys.stdout, index=False)
        return 0
    with output(options.out) as path, replacing(path) as part:
        rows.to_csv(part, index=False)
    return 0


def page(options: Namespace) -> int:
    """Write a page that answers questions about the release."""
    synopsis = Synopsis.load(options.view)
    file = Path(options.view)
    out = options.out or str(file.with_suffix(".html"))
    made = Page(synopsis, options.title or file.name, 0.95, file.name)
    write_text(made.text, out)
    print(f"{out}: the page of the release with the fingerprint {made.fingerprint}")
    return 0


def ledger(options: Namespace) -> int:
    """List the releases that a ledger paid for, as text and as a page."""
    opened = PrivacyLedger(path=options.ledger)
    shown, title = _releases(opened), f"Privacy ledger {opened.name or Path(options.ledger).name}"
    if options.out is not None:
        body = filled("ledger.html", title=title, balance=opened, releases=_as_table(shown))
        write_text(document(title, body), options.out)
    with pd.option_context("display.width", None, "display.max_colwidth", None):
        print(shown.to_string(index=False))
    print(opened)
    return 0


def _releases(opened: PrivacyLedger) -> pd.DataFrame:
    """The releases of a ledger as they are shown: without paths, and without empty columns."""
    found = releases_of(opened.to_frame())
    found["time"] = [f"{time:%Y-%m-%d %H:%M}" for time in found["time"]]
    found["epsilon"] = [f"{epsilon:.4g}" for epsilon in found["epsilon"]]
    found["seeded"] = ["SEEDED" if seeded else "" for seeded in found["seeded"]]
    found["unit"] = [*map(_unit_of, found.to_dict("records"))]
    columns = ["numbers", "time", "name", "epsilon", "unit", "purpose", "source", "parts"]
    columns += ["estimator", "domain", "seeded", "assumes"]
    return found[[name for name in columns if name in columns[:5] or (found[name] != "").any()]]


def verify_ledger(options: Namespace) -> int:
    """Check a ledger, and find the charges of releases; 1 if anything is not as it should be."""
    # Opening it compares its charges with its balance.
    opened = PrivacyLedger(path=options.ledger)
    charges = opened.to_frame()
    print(f"charges: {len(charges)}, which add up to its balance")
    releases, missing = releases_of(charges), False
    named = set(releases["name"])
    # A charge pays for one release: first for that of its name.
    for path in sorted(map(Path, options.view), key=lambda path: path.name not in named):
        found, text, fine = _entry_of(Synopsis.load(path), releases, path.name)
        print(f"{path.name}: {'NOT IN THIS LEDGER: ' * (fine is False)}{text}")
        releases, missing = releases.drop(found.index[:1]), missing or fine is False
    print(f"{opened}. Its total is what the file says: compare it with what was agreed.")
    return 1 if missing else 0
