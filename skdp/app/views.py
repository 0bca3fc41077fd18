"""What a release says, at no cost; what an officer checks of it, and of the ledger."""

from __future__ import annotations

import hashlib
import html
import math
import re
import sys
from argparse import Namespace
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._validation import as_level, replacing
from ..accounting import PrivacyLedger, PrivacyLoss, parts_text
from ..expected import Asked
from ..release import SKIPPED, BoxModel, StrategyModel, Synopsis, ViewsModel
from ..release.page import Page, document, protected
from .cli import METHODS
from .release import output, write_text


def info(options: Namespace) -> int:
    """Show what was released, what it cost, and which columns it has."""
    synopsis = Synopsis.load(options.view)
    for name, (text, _) in _facts(synopsis).items():
        print(f"{name}: {text}")
    rows = f", of {synopsis.rows}" * bool(synopsis.rows)
    print(f"estimated records: {synopsis.total:,.6g}{_noise_of_total(synopsis)}{rows}")
    domain = synopsis.domain
    print(f"columns: {len(domain.columns)}\n")
    for name in domain.columns:
        print(f"{name}: {domain.declared(name)!r}")
    for rule in domain.structure.rules:
        print(f"rule: {rule!r}")
    return 0


def _facts(synopsis: Synopsis) -> dict[str, tuple[str, bool]]:
    """What a release says of itself, and whether it is as it should be."""
    loss, lost = synopsis.privacy_loss, synopsis.skipped
    epsilon = "unknown"
    if loss is not None:
        parts = ", ".join(f"{name} {float(part):.4g}" for name, part in loss.parts.items())
        epsilon = f"{float(loss.epsilon):g}, of which {parts}"
    known = "YES, NO GUARANTEE. Whoever knows or guesses the seed can subtract the noise."
    return {
        "made by": (synopsis.mechanism or "an unknown method", True),
        "epsilon": (epsilon, loss is not None),
        "protects": ("unknown" if loss is None else loss.neighbours, loss is not None),
        "seeded": (known if synopsis.seeded else "no", not synopsis.seeded),
        "domain": (synopsis.domain.fingerprint, True),
        "records": (str(lost or "not known how many were skipped"), lost is not None),
    }


def verify(options: Namespace) -> int:
    """Check a release; 1 if anything is not as it should be."""
    synopsis, file = Synopsis.load(options.view), Path(options.view)
    charges = None if options.ledger is None else _ledger(options).to_frame()
    checks = _checks(synopsis, file, charges, options)
    for name, (text, fine) in checks.items():
        print(f"{name}: {text}{'' if fine else '  <- NOT AS IT SHOULD BE'}")
    if options.out is not None:
        write_text(_certificate(synopsis, file.name, checks), options.out)
    return 0 if all(fine for _, fine in checks.values()) else 1


def _checks(
    synopsis: Synopsis, file: Path, charges: pd.DataFrame | None, options: Namespace
) -> dict[str, tuple[str, bool]]:
    """What was found of a release, and whether it is as it should be."""
    from ..audit import replay_library

    loss, checks = synopsis.privacy_loss, _facts(synopsis)
    if loss is not None:
        stated, cost = float(loss.of_record.epsilon), _cost_of_noise(synopsis)
        fine = cost <= stated * (1 + 1e-6)
        text = "the variances that it states fit its epsilon"
        if not fine:
            text = f"as small as epsilon {cost:.3g} of one record buys, not {stated:.3g}"
        checks["noise"] = (text, fine)
    if charges is not None and loss is not None:
        found = _told(_charges_of(synopsis, loss, releases_of(charges), file.name))
        checks["ledger entry"] = (found or "none", bool(found))
    digits = hashlib.sha256(file.read_bytes()).hexdigest()
    published = options.fingerprint and options.fingerprint.strip().lower()
    same = published in (None, digits)
    checks["fingerprint"] = (digits if same else f"{digits}, not {published}", same)
    # The description of a release begins with the name of its method.
    made_by = METHODS.get(re.split("[,;]", synopsis.mechanism)[0].replace("-", "").lower())
    if made_by is not None and not options.no_replay:
        replays = replay_library([made_by], n=4)
        passed = all(each.passed for each in replays)
        text = "computed losses within epsilon" if passed else "FAILED"
        checks["replay"] = (f"{len(replays)} of {made_by}: {text}", passed)
    if charges is None and published is None:
        text = (
            "UNVERIFIED: give --ledger or the published --fingerprint to know that it is this file"
        )
        checks["origin"] = (text, True)
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
        rows[number] = {**charge, "numbers": f"{first} and {number}" if first else f"{number}"}
    return pd.DataFrame(rows.values(), columns=[*charges, "numbers"])


def _charges_of(
    synopsis: Synopsis, loss: PrivacyLoss, releases: pd.DataFrame, name: str
) -> pd.DataFrame:
    """Charges that a release may belong to: those with its parts."""
    same = releases["domain"] == synopsis.domain.fingerprint
    same &= (releases["seeded"] == loss.seeded) & (releases["parts"] == parts_text(loss.parts))
    # Releases of equal parts have different names, unless the file was renamed.
    own = same & (releases["name"] == name)
    return releases[own if own.any() else same]


def _told(charges: pd.DataFrame) -> str:
    found = []
    for row in charges.to_dict("records"):
        notes = {"for": row["purpose"], "from": row["source"], "assuming that": row["assumes"]}
        more = "".join(f" {word} {text!r}" for word, text in notes.items() if text)
        found.append(f"{row['numbers']} of {row['time']:%Y-%m-%d %H:%M} UTC, {row['name']!r}{more}")
    return "; ".join(found)


def _as_table(rows: pd.DataFrame) -> str:
    """A table of texts that scrolls where it is too wide, so that no number or word is broken."""
    whole = r'<span class="whole">\g<0></span>'
    cells = rows.map(lambda each: re.sub(r"\S*-\S*", whole, html.escape(str(each))))
    with pd.option_context("display.max_colwidth", None):
        table = cells.to_html(index=False, border=0, escape=False)
    return f'<div class="scroll texts">{table}</div>'


def _certificate(synopsis: Synopsis, name: str, checks: Mapping[str, tuple[str, bool]]) -> str:
    """One page for the file: what was checked, when, and what it means."""
    wrong = [each for each, (_, fine) in checks.items() if not fine]
    verdict = "As it should be."
    if wrong:
        verdict = f"Not as it should be: {', '.join(wrong)}."
    elif "origin" in checks:
        verdict = "Consistent, but unverified: neither a ledger nor a fingerprint was given."
    words = {each: "yes" if fine else "NO" for each, (_, fine) in checks.items()}
    if "origin" in words:
        words["origin"] = "not known"
    rows = [(each, words[each], text) for each, (text, _) in checks.items()]
    columns = ", ".join(map(str, synopsis.domain.columns))
    body = [
        f"<h1>Check of the release {html.escape(name)}</h1>",
        f"<p class='lead'><b>{html.escape(verdict)}</b> Checked by skdp {version('skdp')} on "
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC.</p>",
        _as_table(pd.DataFrame(rows, columns=["what", "fine", "found"])),
        "<p>Publish the fingerprint beside the release, so that readers can compare theirs. An "
        "entry in the ledger says that a release of this domain and these parts of epsilon was "
        "charged. The check of the noise and the replay show consistency, and are no proof that "
        "this file was made by the method that it names.</p>",
        f"<h2>What it promises</h2>{protected(synopsis.privacy_loss)}",
        f"<h2>Columns</h2><p>{html.escape(columns)}</p>",
    ]
    return document(f"Check of {name}", body)


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
    """Answer questions in words, each with its interval, and say what the intervals cover.

    A release without error bars answers without them, and says why.
    """
    synopsis = Synopsis.load(options.view)
    level, guarantees = options.level, {}
    try:
        _ = synopsis.model.covers
    except ValueError as why:
        level, guarantees = None, {f"none. {why}": None}
    # All or none, so that no answer stands without what its interval covers.
    answers = [Asked.read(text).answer(synopsis, level) for text in options.query]
    for text, answer in zip(options.query, answers, strict=True):
        shown = f"{answer:,.4g}" if level is None and isinstance(answer, float) else str(answer)
        print(f"{shown}  {text or 'all records'}")
    for each in guarantees or dict.fromkeys(answer.guarantee for answer in answers):
        print(f"intervals: {each}")
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
    made = Page(synopsis, options.title or file.name, as_level(options.level), file.name)
    write_text(made.text, out)
    print(f"{out}: the page of the release with the fingerprint {made.fingerprint}")
    return 0


_LEGEND = {
    "numbers": "of its charges in the ledger, in the order in which they were made",
    "epsilon": "what the release cost; what is spent on the same records adds up",
    "parts": "what this epsilon was spent on; they add up to it",
    "unit": "what epsilon protects: one record, or one person with a bounded number of records",
    "domain": "first digits of the hash of the declaration, as skdp verify shows them",
    "seeded": "experiments whose noise came from a seed: no guarantee",
    "assumes": "what must be true of the source for the guarantee to hold",
}


def ledger(options: Namespace) -> int:
    """List the releases that a ledger paid for, as text and as a page."""
    opened = _ledger(options)
    shown, title = _releases(opened), f"Privacy ledger {opened.name or Path(options.ledger).name}"
    if options.out is not None:
        legend = "".join(
            f"<dt>{name}</dt><dd>{text}</dd>" for name, text in _LEGEND.items() if name in shown
        )
        balance = f"<p class='lead'>{html.escape(str(opened))}.</p>"
        body = [f"<h1>{html.escape(title)}</h1>", balance, _as_table(shown), f"<dl>{legend}</dl>"]
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
    found["source"] = [Path(source).name for source in found["source"]]
    found["seeded"] = ["SEEDED" if seeded else "" for seeded in found["seeded"]]
    columns = ["numbers", "time", "name", "epsilon", "unit", "purpose", "source", "parts"]
    columns += ["estimator", "domain", "seeded", "assumes"]
    return found[[name for name in columns if name in columns[:5] or (found[name] != "").any()]]


def verify_ledger(options: Namespace) -> int:
    """Check a ledger, and find the charges of releases; 1 if anything is not as it should be."""
    # Opening it compares its charges with its balance.
    opened = _ledger(options)
    charges = opened.to_frame()
    late = not charges["time"].is_monotonic_increasing
    print(f"charges: {len(charges)}, which add up to its balance")
    print(f"times: {'NOT in order: a clock was set, or rows were edited' if late else 'in order'}")
    releases, missing = releases_of(charges), late
    named = set(releases["name"])
    # A charge pays for one release: first for that of its name.
    for path in sorted(map(Path, options.view), key=lambda path: path.name not in named):
        synopsis = Synopsis.load(path)
        loss = synopsis.privacy_loss
        found = releases[:0] if loss is None else _charges_of(synopsis, loss, releases, path.name)
        print(f"{path.name}: {_told(found) or 'NOT IN THIS LEDGER'}")
        releases, missing = releases.drop(found.index[:1]), missing or found.empty
    print(opened)
    return 1 if missing else 0
