"""Pages as HTML: the page of a release, in which a reader asks, and plain documents.

The page of a release holds what the release holds and nothing else: it is post-processing and costs
no privacy, however often it is asked. What it calls rows are the synthetic rows of the release.
Its script answers from the same numbers by the same formulas as `Synopsis`: ``web/page.mjs``
computes, from arrays that `prepared` makes, and ``web/desk.mjs`` draws.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import html
import json
import math
import tempfile
import zlib
from collections.abc import Sequence
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from .._validation import some
from ..accounting import PrivacyLoss, extremes_text
from ..domain import Categorical, Numeric
from ..domain.query import Query
from .grouping import Groups, view_of
from .network import NetworkModel
from .prepared import label_of, prepared_column, prepared_law, prepared_model
from .result import rounded_to
from .skipped import SkippedRecords
from .statistics import BINS, NOTHING, Confidence, normal_draws, said_of

# --- documents


def document(title: str, body: Sequence[str], script: str = "", data: str = "") -> str:
    """A page that stands by itself: nothing may be loaded, nor run but ``script``."""
    style, end = _web("page.css"), ""
    policy = f"default-src 'none'; style-src '{_hash(style)}'; base-uri 'none'; form-action 'none'"
    if script:
        policy += f"; script-src '{_hash(script)}'"
        end = f'<script type="application/json" id="data">{data}</script>\n'
        end += f'<script type="module">{script}</script>'
    whole = "".join(body) + end
    title = html.escape(title)
    return filled("document.html", policy=policy, title=title, style=style, body=whole)


def filled(name: str, **values: Any) -> str:
    """A template of HTML with its values, which are HTML."""
    return Template(_web(name)).substitute(values)


def _web(name: str) -> str:
    return files(__package__).joinpath("web", name).read_text(encoding="utf-8")


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
        described = synopsis.describe(level=level)
        columns = [
            prepared_column(domain, name)
            | {"caption": _caption(domain[name], of), "bars": _bars(synopsis, name, level)}
            for name, (_, of) in zip(domain.known, described.iterrows(), strict=True)
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
        self.fingerprint = _fingerprint(synopsis)
        limits = _limits(synopsis, columns, described)
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
            limits="".join(f"<li>{html.escape(each)}</li>" for each in limits),
            fingerprint=self.fingerprint,
        )
        # What reads and what draws are one script.
        script = _web("page.mjs") + _web("desk.mjs").partition('from "./page.mjs";')[2]
        self.text = document(title, [body], script, _packed(data))

    def _repr_html_(self) -> str:
        # A frame of its own: neither the page nor the notebook reaches the other.
        return filled("frame.html", page=html.escape(self.text))


def _packed(data: dict[str, Any]) -> str:
    """Data as JSON, whose last entry has all arrays of the others, compressed."""
    packed = bytearray()

    def placed(value: Any) -> Any:
        """What JSON does not know: a number of NumPy, or an array, as its place and length."""
        if isinstance(value, np.generic):
            return value.item()
        array = np.ascontiguousarray(value, dtype="<f8").ravel()
        packed.extend(array.tobytes())
        return {"array": [len(packed) - array.nbytes, len(array)]}

    text = json.dumps(data, default=placed, ensure_ascii=False, allow_nan=False)
    arrays = base64.b64encode(zlib.compress(bytes(packed), 9)).decode()
    # Half of a pair of surrogates is no text of UTF-8; nor would HTML keep the end of a line.
    text = f'{text[:-1]}, "bytes": "{arrays}"}}'.encode("utf-8", "backslashreplace").decode()
    return text.replace("<", "\\u003c").replace("\r", "\\r")


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


def _bars(synopsis: Any, name: str, level: float) -> list[list[Any]]:
    """Label, condition, count and margin of each bar of a column."""
    domain, structure = synopsis.counted, synopsis.counted.structure
    attribute: Any = domain[name]
    known = view_of(synopsis.model, Groups([name], domain, by_code=True))
    n, most, ends = attribute.n_values, _MAX_CATEGORIES, np.arange(attribute.n_values + 1)
    bars: list[list[int]]
    if isinstance(attribute, Categorical) and not attribute.ordered and n > most:
        order = np.argsort(-known[:n], kind="stable").tolist()
        bars = [*([code] for code in order[: most - 1]), sorted(order[most - 1 :])]
        names = [*(attribute.labels()[code] for [code] in bars[:-1]), f"{len(bars[-1]):,} others"]
    else:
        if isinstance(attribute, Numeric):
            # The declared bins, or even ones, of those that are measured.
            most, even = _MAX_BARS, attribute.resolved(_MAX_BARS).edges
            ends = np.unique(np.searchsorted(attribute.edges, even))
        # As many in every bar, but for the last one.
        cuts = [*ends[: -1 : -(-(len(ends) - 1) // most)].tolist(), *range(ends[-1], n + 1)]
        bars = [list(range(*cut)) for cut in pairwise(cuts)]
        names = [label_of(attribute, codes[0], codes[-1] + 1) for codes in bars]
    if attribute.nullable:
        bars.append([n])
        names.append("missing")
    weights = np.zeros((len(bars), attribute.size))
    for row, codes in enumerate(bars):
        weights[row, codes] = 1.0
    axis, margins = domain.index(structure.base_of(name)), [None] * len(bars)
    # With that of all records: the law of several is found quickly.
    asked = [Query(({axis: structure.lifted(name, row)},)) for row in weights] + [Query(({},))]
    with contextlib.suppress(ValueError):
        found = synopsis.model.reach(asked, level)
        margins = np.maximum(found.below, found.above)[:-1].tolist()
    chosen = [
        {"from": codes[0], "to": codes[-1]}
        if codes[0] < getattr(attribute, "bins", 0)
        else {"codes": codes}
        for codes in bars
    ]
    counts = np.maximum(weights @ known, 0.0)
    return [list(each) for each in zip(names, chosen, counts, margins, strict=True)]


def _caption(attribute: Any, statistics: Any) -> str:
    def of(row: str) -> str:
        value = statistics.get(row)
        if isinstance(value, float):
            shown = f"{value:,.0f}" if row == "freq" else rounded_to(value, math.nan)
            return "unknown" if math.isnan(value) else shown
        return "unknown" if value is None else str(value)

    if isinstance(attribute, Categorical):
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


def _limits(synopsis: Any, columns: list[dict[str, Any]], described: Any) -> list[str]:
    """What cannot be answered, as far as it depends on the release."""
    domain, model, points = synopsis.counted, synopsis.model, []
    # Typical margins of counts that are nearly zero.
    least = [min(column["bars"], key=lambda bar: bar[2])[3] for column in columns]
    if None not in least:
        points.append(
            f"Small groups. In the columns above, counts below about {np.median(least):,.0f} "
            "cannot be told from zero."
        )
        points.append(f"What the margins cover: {described.attrs['guarantee']}")
    else:
        points.append(f"How far answers are off. {described.attrs['guarantee']}")
    if absent := [name for name in domain.columns if name not in domain.known]:
        points.append(f"Columns that were not measured (identifiers): {some(absent)}.")
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


def _fingerprint(synopsis: Any) -> str:
    """That of the release, as a file has it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "release.skdp"
        synopsis.save(file)
        return hashlib.sha256(file.read_bytes()).hexdigest()
