"""The page of a release as HTML, in which a reader asks.

The page of a release holds what the release holds and nothing else: it is post-processing and costs
no privacy, however often it is asked. What it calls rows are the synthetic rows of the release.
Its script answers from the same numbers by the same formulas as `Synopsis`: ``web/page.mjs``
computes and ``web/desk.mjs`` draws. Bases of groups, and what tables of groups say of columns,
become plain matrices here, so that the script only multiplies and adds.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import math
import tempfile
import zlib
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

from .._documents import (
    Document,
    Markup,
    document,
    filled,
    joined,
    markup,
    protected,
    warning,
    web,
)
from .._validation import FloatArray, some
from ..accounting import unit_of
from ..domain import Categorical, Date, Datetime, Domain, Numeric
from ..domain.bins import Points
from ..domain.query import Query
from .basis import basis_of
from .boxes import BoxModel, LeafErrorBound
from .grouping import Bands, Groups, case_of, spans_of, view_of
from .marginals import ViewsModel
from .network import NetworkModel
from .quantiles import pieces_of
from .result import range_label, rounded_to
from .statistics import BINS, NOTHING, Confidence, normal_draws, said_of

# --- the page of a release

_MAX_BARS = 40
_MAX_CATEGORIES = 20
_LEVELS = (0.8, 0.9, 0.95, 0.99)


class Page(Document):
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
            _prepared_column(domain, name, model)
            | {"caption": _caption(domain[name], of), "bars": _bars(synopsis, name, level)}
            for name, (_, of) in zip(domain.known, described.iterrows(), strict=True)
        ]
        answers, barred = _prepared_model(model), not isinstance(model, NetworkModel)
        levels = _LEVELS if answers else ()
        confidences = [Confidence(each, about=synopsis.about) for each in levels]
        data: dict[str, Any] = {
            "source": source,
            "epsilon": None if loss is None else epsilon,
            "level": 100 * level,
            "levels": {f"{100 * each.level:g}": _law(model, each) for each in confidences},
            "columns": columns,
            "counted": synopsis.rows,
            "estimated": not barred,
            "bins": BINS,
            "nothing": NOTHING,
            "draws": normal_draws(2),
            "model": answers,
        }
        self.fingerprint = _fingerprint(synopsis)
        limits = _limits(synopsis, columns, described)
        body = filled(
            "release.html",
            title=title,
            records=f"{max(synopsis.total, 0.0):,.0f}",
            counted=f"counting {synopsis.rows}" * bool(synopsis.rows),
            columns=f"{len(domain.known):,}",
            unit=unit_of(loss),
            margin=f", the line on it the margin of error at {100 * level:g}%" * barred,
            epsilon=epsilon + " (seeded: no guarantee)" * synopsis.seeded,
            mechanism=synopsis.mechanism or "an unknown method",
            about=model.about,
            skipped=_skipped(synopsis.skipped),
            protected=protected(loss),
            limits=joined(markup("<li>{text}</li>", text=each) for each in limits),
            fingerprint=self.fingerprint,
        )
        # What reads and what draws are one script.
        script = web("page.mjs") + web("desk.mjs").partition('from "./page.mjs";')[2]
        self.text = document(title, body, script, _packed(data))


def _packed(data: dict[str, Any]) -> str:
    """Data as JSON, whose last entry has all arrays of the others, compressed."""
    packed = bytearray()

    def placed(value: Any) -> Any:
        """What JSON does not know: a number of NumPy, or an array, as its place and length."""
        if isinstance(value, np.generic):
            return value.item()
        array = np.ascontiguousarray(value).ravel()
        # Integers in few bytes: most arrays are codes of rows.
        whole = array.dtype.kind != "f"
        kind = f"u{np.min_scalar_type(int(array.max(initial=0))).itemsize}" if whole else "f8"
        packed.extend(bytes(-len(packed) % 8) + array.astype(f"<{kind}").tobytes())
        at = len(packed) - len(array) * int(kind[1])
        return {"array": kind, "at": at, "length": len(array)}

    text = json.dumps(data, default=placed, ensure_ascii=False, allow_nan=False)
    arrays = base64.b64encode(zlib.compress(bytes(packed), 9)).decode()
    # Half of a pair of surrogates is no text of UTF-8; nor would HTML keep the end of a line.
    text = f'{text[:-1]}, "bytes": "{arrays}"}}'.encode("utf-8", "backslashreplace").decode()
    return text.replace("<", "\\u003c").replace("\r", "\\r")


# --- columns


def _bars(synopsis: Any, name: str, level: float) -> list[list[Any]]:
    """Label, condition, count and margin of each bar of a column."""
    domain, structure = synopsis.counted, synopsis.counted.structure
    attribute: Any = domain[name]
    known = view_of(synopsis.model, Groups([name], domain, by_code=True))
    n, most, ends = attribute.n_values, _MAX_CATEGORIES, np.arange(attribute.n_values + 1)
    others = 0
    if isinstance(attribute, Categorical) and not attribute.ordered and n > most:
        order, others = np.argsort(-known[:n], kind="stable").tolist(), n - most + 1
        bars = [*([code] for code in order[:-others]), sorted(order[-others:])]
    else:
        if isinstance(attribute, Numeric):
            # The declared bins, or even ones, of those that are measured.
            most, even = _MAX_BARS, attribute.resolved(_MAX_BARS).edges
            ends = np.unique(np.searchsorted(attribute.edges, even))
        # As many in every bar, but for the last one.
        cuts = [*ends[: -1 : -(-(len(ends) - 1) // most)].tolist(), *range(ends[-1], n + 1)]
        bars = [list(range(*cut)) for cut in pairwise(cuts)]
    bars += [[n]] * attribute.nullable
    names = [range_label(attribute, codes[0], codes[-1] + 1) for codes in bars]
    if others:
        names[most - 1] = f"{others:,} others"
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


def _skipped(skipped: Any) -> Markup:
    """What the table that was measured lacks."""
    if skipped is None:
        return Markup('<p class="soft">How many records were skipped is not known.</p>')
    loud = joined(warning(f"Skipped: {one}.") for one in skipped.texts())
    return filled("skipped.html", loud=loud, std=f"{skipped.std:,.3g}", table=skipped.table())


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
    points.append(f"How far answers are off. {described.attrs['guarantee']}")
    if absent := [name for name in domain.columns if name not in domain.known]:
        points.append(f"Columns that were not measured (identifiers): {some(absent)}.")
    n, joined = len(domain.names), len(set(getattr(model, "pairs", ())))
    pairs = n * (n - 1) // 2
    if joined and n > 2:
        points.append(
            f"Combinations that were not measured. {joined:,} of {pairs:,} pairs of columns were "
            "measured together; what is said about others, and about three or more columns, "
            "follows from these and may miss how they depend on each other."
        )
    return points


def _fingerprint(synopsis: Any) -> str:
    """That of the release, as a file has it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "release.skdp"
        synopsis.save(file)
        return hashlib.sha256(file.read_bytes()).hexdigest()


# ------------------------------------------------------------------------------------------------
# What the script computes from: a model and its columns as arrays, prepared once.

# Groups of a column in a table; columns of more codes have bands.
_MOST_GROUPS = 40
_BANDS = 10
# Records that stand for a network.
_EVEN = 1 << 14
_PIECES = ("codes", "parts", "low", "high", "points")

# --- a model as arrays


def _prepared_model(model: Any) -> dict[str, Any] | None:
    """A model as arrays that are multiplied and added; None where the page cannot answer."""
    if isinstance(model, ViewsModel):
        return _views(model)
    if isinstance(model, NetworkModel):
        return _network(model)
    known = isinstance(model, BoxModel) and model.intervals.epsilons
    return _boxes(model) if known else None


def _network(model: NetworkModel) -> dict[str, Any]:
    """The records that stand for a network, and nothing of errors: answers are estimates."""
    rows, _ = model.even(_EVEN)
    columns = [
        {"axis": axis, "rows": rows.codes[:, axis], "allowed": np.ones(size, dtype=np.int64)}
        for axis, size in enumerate(model.shape)
    ]
    none = np.zeros(0)
    cells = {"noise": none, "scatter": none, "elsewhere": 0.0}
    masses = {"total": model.total, "masses": model.total * rows.weights}
    return {**masses, "columns": columns, "cells": cells}


def _views(model: ViewsModel) -> dict[str, Any]:
    cells, believed = None, model.believed
    if model.cells is not None:
        # How far the counts of all columns together are known.
        noise, elsewhere = model.cells
        each = np.full(len(model.rows.weights), noise)
        cells = {"noise": each, "scatter": np.zeros(0), "elsewhere": elsewhere}
    joint = [axes for axes in model.coefficients.looks if len(axes) > 1]
    sets = [*combinations(sorted(model.columns), 2), *joint]
    tables = [
        {
            "axes": axes,
            "sizes": model.sizes(axes),
            "corrected": model.corrected(axes),
            "taken": model.taken(axes),
            "removed": believed.belief(axes).removed,
            "variances": believed.belief(axes).variance,
            "rows": model.rows_in_groups(axes),
        }
        for axes in joint
    ]
    return {
        "total": model.total,
        "totalVariance": model.total_variance,
        "cells": cells,
        "masses": model.rows.weights * (1.0 if cells is None else model.total),
        "columns": [_measured(model, axis) for axis in range(len(model.shape))],
        "possible": [
            {"axes": axes, "masks": [np.moveaxis(mask, place, 0) for place in range(len(axes))]}
            for axes, mask in model.possible.items()
        ],
        "tables": tables,
        "distances": {
            ",".join(map(str, axes)): [believed.distance(axes), believed.any_pair(axes)]
            for axes in sets
        },
    }


def _boxes(model: BoxModel) -> dict[str, Any]:
    """Boxes as rows, whose codes are the distinct sides of boxes on each axis."""
    intervals, columns = model.intervals, []
    for axis, size in enumerate(model.shape):
        starts, stops, rows = model.sides(axis)
        column = {"axis": axis, "rows": rows, "starts": starts, "stops": stops}
        columns.append(column | {"allowed": np.ones(size, dtype=np.int64)})
    counts = model.counts.astype(np.float64)
    scatter = intervals.scatter(counts) ** 2
    cells = {
        "noise": intervals.variances(len(counts)),
        "scatter": scatter if scatter.any() else np.zeros(0),
        "elsewhere": 0.0,
        "counts": counts if intervals.measured is None else intervals.measured * 1.0,
        "uneven": intervals.spread is not None,
    }
    return {"total": model.total, "masses": counts, "columns": columns, "cells": cells}


def _law(model: Any, confidence: Confidence) -> dict[str, Any]:
    """How wide intervals are at a level, and what they cover."""
    found: dict[str, Any] = {"quantile": confidence.quantile}
    try:
        # Of two, as the law of one has no short form.
        text = model.reach([Query(({},))] * 2, confidence.level).guarantee
        found |= {"counts": text + confidence.about, "simulated": said_of(model, confidence)}
    except ValueError as error:
        # Nothing is known of errors: answers are estimates.
        return found | dict.fromkeys(("counts", "simulated"), str(error))
    if not isinstance(model, BoxModel):
        return found
    alpha, spread = (1.0 - confidence.level) / 2, model.intervals.spread

    def law(tail: float) -> dict[str, Any]:
        """How far normal noise and that of a single box go, in standard deviations."""
        return {"normal": -ndtri(tail), "single": -math.log(2 * tail) / math.sqrt(2)}

    tails = [law(alpha)] * 2
    if isinstance(spread, LeafErrorBound):
        # Half of it for the bounds on the boxes that are cut.
        tails[1] = {**law(alpha / 2), "bounds": spread.bounds(alpha)}
    cut = text.partition(", the only error")[0] + model.intervals.covers + confidence.about
    return {**found, "tails": tails, "cut": cut}


def _measured(model: ViewsModel, axis: int) -> dict[str, Any]:
    """What is known of a measured column."""
    allowed = model.possible.get((axis,), np.ones(model.shape[axis], dtype=bool))
    found: dict[str, Any] = {"axis": axis, "rows": model.rows.codes[:, axis], "allowed": allowed}
    if axis not in model.columns:
        return found
    column, basis, codes = model.columns[axis], model.bases[axis], np.flatnonzero(allowed)
    ladder, sizes = basis.ladder, column.sizes
    found |= {
        "counts": column.counts,
        # What is counted less what the rows say.
        "residual": model.column_residual(axis),
        **{name: getattr(basis, name) for name in ("mass", "even", "steps", "reach")},
        "alone": model.mean_of(axis, (axis,)),
        "lumps": model.lumps(axis),
        "codes": codes,
        "sizes": sizes,
        "scales": np.concatenate(column.scales),
        "units": ladder.units,
        "groups": {},
    }
    for axes in model.coefficients.looks:
        if len(axes) > 1 and axis in axes:
            size = model.sizes(axes)[axes.index(axis)]
            of, whole = ladder.groups(size), ladder.sums(basis.mass, size)
            functions = np.stack([ladder.sums(row, size) for row in basis.of_codes(size)])
            shares = basis.mass / whole[of]
            found["groups"][size] = {"of": of, "shares": shares, "functions": functions}
    if column.looks is not None:
        # How far sums over groups, which were measured too, are known.
        functions = basis_of(column.looks[0].sizes)[:, 1 : len(column.looks[1]) + 1]
        asked = functions[ladder.units[codes]]
        inverse = np.linalg.inv(asked.T @ column.covered(asked) + np.diag(column.looks[1]))
        found |= {"groupsTell": functions @ inverse @ functions.T, "restored": column.restored}
    return found


# --- a column as arrays


def _prepared_column(domain: Domain, name: str, model: Any) -> dict[str, Any]:
    """A column: its codes, what they hold, its groups, and its values as Python writes them."""
    attribute: Any = domain[name]
    structure = domain.structure
    base, labels = structure.base_of(name), attribute.labels()
    found: dict[str, Any] = {
        "name": name,
        "axis": domain.index(base),
        "size": attribute.size,
        "values": attribute.n_values,
        "bins": getattr(attribute, "bins", 0),
        "labels": labels,
        "groups": [[label, {"codes": [code]}] for code, label in enumerate(labels)],
    }
    if base != name:
        found["of"] = structure.lifted(name, np.arange(attribute.size))
    low, high = spans_of(attribute)
    # Numbers, or days; times of other units need calendars.
    plain = getattr(attribute, "unit", "day") == "day" and not getattr(attribute, "tz", None)
    if isinstance(attribute, Categorical):
        found |= {"kind": "category", "literals": [repr(each) for each in attribute.categories]}
        if attribute.ordered:
            one = np.ones(len(low))
            found["pieces"] = dict(zip(_PIECES, (low, one, low, high, one), strict=True))
    else:
        if not isinstance(attribute.contents, Points):
            starts, stops = attribute.edges[:-1], attribute.edges[1:]
            low[: attribute.bins], high[: attribute.bins] = starts, stops
            # A range of Python holds its ends, a bin the number at its start alone.
            found["last"] = np.append(np.nextafter(stops[:-1], -np.inf), stops[-1])
        found |= {"kind": "number", "integer": attribute.integer}
        found["literals"] = [repr(float(value)) for value in attribute.special]
        if isinstance(attribute, Date | Datetime):
            texts = [text.partition(" to ") for text in labels[: attribute.bins]]
            found |= {"kind": "date", "texts": [[first, last or first] for first, _, last in texts]}
            found["literals"] = [repr(text) for text in labels[attribute.bins : attribute.n_values]]
        if plain:
            found["pieces"] = _pieces(attribute)
            found["wide"] = bool(attribute.bins < attribute.upper - attribute.lower)
        if attribute.size > _MOST_GROUPS:
            found |= _bands(domain, name, low, high) if plain else {"groups": None}
    found |= {"low": low, "high": high, "order": np.argsort(low, kind="stable")}
    # Text is no number.
    if plain:
        with contextlib.suppress(ValueError):
            [[_, [of]]] = case_of(None, domain, [name])
            found["numbers"] = {part: getattr(of, part) for part in ("mean", "low", "high")}
            found["numbers"]["reach"] = of.reach * model.leaning(of.axis, of.width)
    return found


def _pieces(attribute: Numeric) -> dict[str, FloatArray]:
    """Parts of codes in the order of their numbers; special values cut the bins they lie in.

    Of each the code, what part of it, the first and the last number, and of how many on a grid.
    """
    codes, starts, stops = pieces_of(attribute)
    held, bins, parts = attribute.contents, attribute.bins, stops - starts
    at, edges = np.minimum(codes, bins - 1), np.asarray(attribute.edges, dtype=np.float64)
    low, high = (np.interp(codes + each, np.arange(bins + 1), edges) for each in (starts, stops))
    points = np.zeros(len(codes))
    if isinstance(held, Points):
        points, high = np.rint(parts * held.whole[0][at]), held.values_at(at, stops)
        low = high - (points - 1.0) * held.step
    single = np.append(np.zeros(bins), attribute.special)[codes]
    each = ((single, low), (single, high), (1.0, points))
    rows = (np.where(codes >= bins, *both) for both in each)
    return dict(zip(_PIECES, (codes, parts, *rows), strict=True))


def _bands(domain: Domain, name: str, low: FloatArray, high: FloatArray) -> dict[str, Any]:
    """Groups of a column of many codes, and the edges that make them in Python."""
    attribute: Any = domain[name]
    bins = attribute.bins
    ends = [*range(0, bins, -(-bins // _BANDS)), bins]
    step, top = attribute.contents.step, float(high[bins - 1])
    # The last band holds the last number.
    last = top + step if step else math.nextafter(top, math.inf)
    edges: list[Any] = [*low[ends[:-1]].tolist(), last]
    if isinstance(attribute, Date):
        edges = [f"{day:%Y-%m-%d}" for day in attribute.shown(np.array(edges))]
    regions = Bands(name, edges, domain, right=False).regions
    groups = [
        [range_label(attribute, *cut), {"codes": np.flatnonzero(region.weights)}]
        for cut, region in zip(pairwise(ends), regions, strict=True)
    ]
    return {"bands": repr(edges), "groups": groups}
