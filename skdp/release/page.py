"""Pages as HTML: the page of a release, in which a reader asks, and plain documents.

The page of a release holds what the release holds and nothing else: it is post-processing and costs
no privacy, however often it is asked. What it calls rows are the synthetic rows of the release.
Its script answers from the same numbers by the same formulas as `Synopsis`: ``web/page.mjs``
computes, from arrays that `prepared` makes, and ``web/desk.mjs`` draws.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
import tempfile
import zlib
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pandas as pd

from .._validation import some
from ..accounting import PrivacyLoss, extremes_text
from ..domain import Categorical, Numeric
from .description import ColumnCounts
from .network import NetworkModel
from .prepared import label_of, prepared_column, prepared_law, prepared_model
from .result import rounded_to
from .skipped import SkippedRecords
from .statistics import (
    BINS,
    NOTHING,
    Confidence,
    normal_draws,
    said_of,
)

# --- documents


def document(title: str, body: Sequence[str], script: str = "", data: str = "") -> str:
    """A page that stands by itself: nothing may be loaded, nor run but ``script``."""
    style, end = _web("page.css"), ""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    if script:
        policy = (
            f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
            "base-uri 'none'; form-action 'none'"
        )
        end = f'<script type="application/json" id="data">{data}</script>\n'
        end += f'<script type="module">{script}</script>'
    whole = "".join(body) + end
    title = html.escape(title)
    return filled("document.html", policy=policy, title=title, style=style, body=whole)


def as_table(rows: pd.DataFrame) -> str:
    """A table of texts that scrolls where it is too wide, so that no number or word is broken."""
    whole = r'<span class="whole">\g<0></span>'
    cells = rows.map(lambda each: re.sub(r"\S*-\S*", whole, html.escape(str(each))))
    with pd.option_context("display.max_colwidth", None):
        table = cells.to_html(index=False, border=0, escape=False)
    return f'<div class="scroll texts">{table}</div>'


def filled(name: str, **values: Any) -> str:
    """A template of HTML with its values, which are HTML."""
    return Template(_web(name)).substitute(values)


def _web(name: str) -> str:
    return files(__package__).joinpath("web", name).read_text(encoding="utf-8")


def _script() -> str:
    """What reads and what draws, as one script."""
    _, _, desk = _web("desk.mjs").partition('from "./page.mjs";')
    return _web("page.mjs") + desk


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


# --- the page of a release

_MAX_BARS = 40
_MAX_CATEGORIES = 20
_LEVELS = (0.8, 0.9, 0.95, 0.99)


class Page:
    """The page of a release: one HTML file that answers questions and requests nothing.

    Parameters
    ----------
    synopsis : Synopsis
    title : str
    level : float
        Confidence of the margins of columns.
    source : str
        File of the release, for lines of Python.

    Attributes
    ----------
    text : str
        The file.
    fingerprint : str
        SHA-256 of the file of the release, as the page shows it.
    """

    def __init__(self, synopsis: Any, title: str, level: float, source: str) -> None:
        domain, model, loss = synopsis.counted, synopsis.model, synopsis.privacy_loss
        epsilon = "unknown" if loss is None else f"{float(loss.epsilon):.4g}"
        counted = [ColumnCounts(model, domain, name, level) for name in domain.known]
        described = synopsis.describe(level=level)
        columns = [
            prepared_column(each)
            | {"name": each.name, "caption": _caption(each, statistics), "bars": _bars(each)}
            for each, (_, statistics) in zip(counted, described.iterrows(), strict=True)
        ]
        answers = prepared_model(model)
        confidences = [Confidence(each, about=synopsis.about) for each in _LEVELS]
        data: dict[str, Any] = {
            "source": source,
            "epsilon": None if loss is None else epsilon,
            "level": 100 * level,
            "levels": dict(_law(each, synopsis) for each in confidences) if answers else {},
            "columns": columns,
            "counted": synopsis.rows,
            "estimated": isinstance(model, NetworkModel),
            "bins": BINS,
            "nothing": NOTHING,
            "draws": normal_draws(2),
            "model": answers,
        }
        packed = _Packed()
        text = json.dumps(data, default=packed.add, ensure_ascii=False, allow_nan=False)
        # The last entry: it has all arrays of the others.
        text = f'{text[:-1]}, "bytes": "{packed.text()}"}}'
        # Half of a pair of surrogates is no text of UTF-8; nor would HTML keep the end of a line.
        text = text.encode("utf-8", "backslashreplace").decode()
        text = text.replace("<", "\\u003c").replace("\r", "\\r")
        self.fingerprint = _fingerprint(synopsis)
        absent = [name for name in domain.columns if name not in domain.known]
        unmeasured = f"Columns that were not measured (identifiers): {some(absent)}."
        body = filled(
            "release.html",
            title=html.escape(title),
            records=f"{max(synopsis.total, 0.0):,.0f}",
            counted=f"counting {synopsis.rows}" * bool(synopsis.rows),
            columns=f"{len(domain.known):,}",
            unit=_unit(loss),
            level=f"{100 * level:g}",
            epsilon=epsilon + " (seeded: no guarantee)" * synopsis.seeded,
            mechanism=html.escape(synopsis.mechanism or "an unknown method"),
            about=html.escape(model.about),
            skipped=_skipped(synopsis.skipped),
            protected=protected(loss),
            limits=_listed(_limits(synopsis, counted, described)),
            absent=_listed([unmeasured] if absent else []),
            fingerprint=self.fingerprint,
        )
        self.text = document(title, [body], _script(), text)

    def _repr_html_(self) -> str:
        # A frame of its own: neither the page nor the notebook reaches the other.
        return filled("frame.html", page=html.escape(self.text))


class _Packed:
    """Arrays as one compressed text."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, value: Any) -> Any:
        """What JSON does not know: an array, as where it lies; integers in few bytes."""
        if isinstance(value, np.generic):
            return value.item()
        array = np.ascontiguousarray(value).ravel()
        if array.dtype.kind == "f":
            kind = "f8"
        else:
            most = int(array.max(initial=0))
            kind = "u1" if most < 1 << 8 else "u2" if most < 1 << 16 else "u4"
        self._bytes += bytes(-len(self._bytes) % 8)
        placed = {"array": kind, "at": len(self._bytes), "length": len(array)}
        self._bytes += array.astype(f"<{kind}").tobytes()
        return placed

    def text(self) -> str:
        return base64.b64encode(zlib.compress(bytes(self._bytes), 9)).decode()


def _law(confidence: Confidence, synopsis: Any) -> tuple[str, dict[str, Any]]:
    """A level, how wide its intervals are, and what they cover."""
    try:
        simulated = said_of(synopsis.model, confidence)
        law = {**prepared_law(synopsis.model, confidence), "simulated": simulated}
    except ValueError as error:
        # Nothing is known of errors: answers are estimates.
        law = {"quantile": confidence.quantile} | dict.fromkeys(("counts", "simulated"), str(error))
    return f"{100 * confidence.level:g}", law


# --- columns


def _bars(counted: ColumnCounts) -> list[list[Any]]:
    """Label, condition, count and margin of each bar of a column."""
    attribute, n = counted.attribute, counted.attribute.n_values
    bars: list[list[int]]
    if isinstance(attribute, Categorical) and not attribute.ordered and n > _MAX_CATEGORIES:
        order = np.argsort(-counted.known, kind="stable").tolist()
        bars = [[code] for code in order[: _MAX_CATEGORIES - 1]]
        names = [attribute.labels()[codes[0]] for codes in bars]
        bars.append(sorted(order[_MAX_CATEGORIES - 1 :]))
        names.append(f"{len(bars[-1]):,} others")
    else:
        most, ends = _MAX_CATEGORIES, np.arange(n + 1)
        if isinstance(attribute, Numeric):
            # The declared bins, or even ones, of those that are measured.
            most, even = _MAX_BARS, attribute.resolved(_MAX_BARS).edges
            ends = np.unique(np.searchsorted(attribute.edges, even))
        # As many in every bar, but for the last one.
        cuts = [*ends[: -1 : -(-(len(ends) - 1) // most)].tolist(), *range(ends[-1], n + 1)]
        bars = [list(range(*cut)) for cut in zip(cuts[:-1], cuts[1:], strict=True)]
        names = [label_of(attribute, codes[0], codes[-1] + 1) for codes in bars]
    if attribute.nullable:
        bars.append([n])
        names.append("missing")
    weights = np.zeros((len(bars), attribute.size))
    for row, codes in enumerate(bars):
        weights[row, codes] = 1.0
    counts = np.maximum(weights @ counted.counts, 0.0)
    margins = [each if np.isfinite(each) else None for each in counted.margins(weights)]
    chosen = [
        {"from": codes[0], "to": codes[-1]}
        if codes[0] < getattr(attribute, "bins", 0)
        else {"codes": codes}
        for codes in bars
    ]
    return [list(each) for each in zip(names, chosen, counts, margins, strict=True)]


def _caption(counted: ColumnCounts, statistics: Any) -> str:
    def of(row: str) -> str:
        value = statistics.get(row)
        if isinstance(value, float):
            return "unknown" if math.isnan(value) else rounded_to(value, math.nan)
        return "unknown" if value is None else str(value)

    if isinstance(counted.attribute, Categorical):
        # By itself: a name that is written from right to left does not turn the number.
        return f"Most frequent: \u2068{statistics['top']}\u2069 ({of('freq')} records)"
    return f"Mean {of('mean')}; median {of('50%')}"


# --- what is said


def _unit(loss: PrivacyLoss | None) -> str:
    """What is protected."""
    return "record" if loss is None or loss.max_rows_per_id is None else "person"


def _warning(text: str) -> str:
    return f'<p class="warn">{html.escape(text)}</p>'


def _skipped(skipped: SkippedRecords | None) -> str:
    """What the table that was measured lacks."""
    if skipped is None:
        return '<p class="soft">How many records were skipped is not known.</p>'
    loud = "".join(_warning(f"Skipped: {one}.") for one in skipped.texts())
    return filled("skipped.html", loud=loud, std=f"{skipped.std:,.3g}", table=skipped.table())


def protected(loss: PrivacyLoss | None) -> str:
    """What a release promises, as HTML."""
    if loss is None:
        return _warning(
            "What the release cost is not recorded: nothing can be said about its guarantee."
        )
    if loss.seeded:
        return _warning(
            "The noise comes from a seed: this is an experiment, without any guarantee. Whoever "
            "knows or guesses the seed can subtract the noise."
        )
    epsilon = float(loss.epsilon)
    factor, said = math.exp(min(epsilon, 700.0)), extremes_text(loss.epsilon)
    parts = ", ".join(f"{name} {float(part):.4g}" for name, part in loss.parts.items())
    return filled(
        "protected.html",
        epsilon=f"{epsilon:g}",
        one=_unit(loss),
        neighbours=html.escape(loss.neighbours),
        factor=f"{factor:,.3g}" if factor < 1e6 else "more than a million",
        extreme=_warning(said) if said else "",
        percent=f"{100 * factor / (1.0 + factor):.3g}%",
        parts=html.escape(parts),
    )


def _limits(synopsis: Any, counted: list[ColumnCounts], described: Any) -> list[str]:
    """What cannot be answered, as far as it depends on the release."""
    domain, model, points = synopsis.counted, synopsis.model, []
    # A typical margin of a count that is nearly zero.
    least = np.median([each.margin_of(np.argmin(np.abs(each.known))) for each in counted])
    if np.isfinite(least):
        points.append(
            f"Small groups. In the columns above, counts below about {least:,.0f} cannot be told "
            "from zero."
        )
        points.append(f"What the margins cover: {described.attrs['guarantee']}")
    else:
        points.append(f"How far answers are off. {described.attrs['guarantee']}")
    n, joined = len(domain.names), len(set(getattr(model, "pairs", ())))
    pairs = n * (n - 1) // 2
    if joined and n > 2:
        others = (
            "other pairs, and about three or more columns," if joined < pairs else "more columns"
        )
        points.append(
            f"Combinations that were not measured. {joined:,} of {pairs:,} pairs of columns were "
            f"measured together; what is said about {others} follows from these and may miss how "
            "they depend on each other."
        )
    return points


def _listed(texts: Iterable[str]) -> str:
    """Entries of a list."""
    return "".join(f"<li>{html.escape(text)}</li>" for text in texts)


def _fingerprint(synopsis: Any) -> str:
    """That of the release, as a file has it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "release.skdp"
        synopsis.save(file)
        return hashlib.sha256(file.read_bytes()).hexdigest()
