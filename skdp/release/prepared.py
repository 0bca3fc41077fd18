"""What the script of a page computes from: a model and its columns as arrays, prepared once.

Bases of groups, and what tables of groups say of columns, become plain matrices here, so that the
script only multiplies and adds. Post-processing of what a release holds.
"""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from scipy.special import ndtri

from .._validation import FloatArray
from ..domain import Categorical, Date, Datetime, Domain, Numeric
from ..domain.bins import Points
from ..domain.query import Query
from .basis import basis_of
from .boxes import BoxModel
from .grouping import Bands, case_of, has_numbers, spans_of
from .intervals import LeafErrorBound
from .marginals import ViewsModel
from .network import NetworkModel
from .products import lumps
from .result import range_label
from .statistics import Confidence

__all__ = ["label_of", "prepared_column", "prepared_law", "prepared_model"]

# Groups of a column in a table; columns of more codes have bands.
_MOST_GROUPS = 40
_BANDS = 10
# Records that stand for a network.
_EVEN = 1 << 14
_PIECES = ("codes", "parts", "low", "high", "points")

# --- a model


def prepared_model(model: Any) -> dict[str, Any] | None:
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
    return {**masses, "columns": columns, "cells": cells, "possible": [], "tables": []}


def _views(model: ViewsModel) -> dict[str, Any]:
    tables = []
    scales = [*combinations(sorted(model.columns), 2), *model.coefficients.looks]
    for axes in model.coefficients.looks:
        if len(axes) > 1:
            belief = model.believed.belief(axes)
            tables.append(
                {
                    "axes": axes,
                    "sizes": model.sizes(axes),
                    "corrected": model.corrected(axes),
                    "taken": model.taken(axes),
                    "removed": belief.removed,
                    "variances": belief.variance,
                    "rows": model.rows_in_groups(axes),
                }
            )
    return {
        "total": model.total,
        "totalVariance": model.total_variance,
        "cells": None if model.cells is None else _cells(model, *model.cells),
        "masses": model.rows.weights * (1.0 if model.cells is None else model.total),
        "columns": [_measured(model, axis) for axis in range(len(model.shape))],
        "possible": [
            {"axes": axes, "mask": mask} for axes, mask in model.possible.items() if len(axes) > 1
        ],
        "tables": tables,
        "scales": {
            ",".join(map(str, axes)): model.believed.scale(axes) for axes in scales if len(axes) > 1
        },
    }


def _cells(model: ViewsModel, noise: float, elsewhere: float) -> dict[str, Any]:
    """How far the counts of all columns together are known."""
    each = np.full(len(model.rows.weights), noise)
    return {"noise": each, "scatter": np.zeros(0), "elsewhere": elsewhere}


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
    nothing: dict[str, Any] = {"possible": [], "tables": []}
    return {"total": model.total, "masses": counts, "columns": columns, "cells": cells, **nothing}


def prepared_law(model: Any, confidence: Confidence) -> dict[str, Any]:
    """How wide the intervals of counts are at a level, and what they cover."""
    # Of two, as the law of one has no short form.
    text = model.reach([Query(({},))] * 2, confidence.level).guarantee
    found = {"quantile": confidence.quantile, "counts": text + confidence.about}
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
    rows = np.bincount(found["rows"], model.rows.weights, len(allowed))
    found |= {
        "counts": column.counts,
        # What is counted less what the rows say.
        "residual": column.counts - model.total * rows,
        "mass": basis.mass,
        "even": basis.even,
        "alone": model.mean_of(axis, (axis,)),
        "steps": basis.steps,
        "lumps": lumps(column.counts),
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


# --- columns


def prepared_column(domain: Domain, name: str) -> dict[str, Any]:
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
    if isinstance(attribute, Categorical):
        found |= {"kind": "category", "literals": [repr(each) for each in attribute.categories]}
        if attribute.ordered:
            one = np.ones(len(low))
            found["pieces"] = dict(zip(_PIECES, (low, one, low, high, one), strict=True))
    else:
        if not isinstance(attribute.contents, Points):
            low[: attribute.bins], high[: attribute.bins] = (
                attribute.edges[:-1],
                attribute.edges[1:],
            )
        found |= _numbers_of(domain, name, low, high)
    found |= {"low": low, "high": high, "order": np.argsort(low, kind="stable")}
    # Times of other units need calendars.
    if has_numbers(attribute) and _is_plain(attribute):
        [each] = case_of(None, domain, [name])
        [of] = each.numbers
        found["numbers"] = {part: getattr(of, part) for part in ("mean", "reach", "low", "high")}
    return found


def _is_plain(attribute: Any) -> bool:
    """Whether values are numbers, or days without a zone."""
    dates = isinstance(attribute, Date | Datetime)
    return not dates or (attribute.unit == "day" and attribute.tz is None)


def _numbers_of(domain: Domain, name: str, low: FloatArray, high: FloatArray) -> dict[str, Any]:
    """What only numbers and dates have."""
    attribute: Any = domain[name]
    bins, labels = attribute.bins, attribute.labels()
    literals = [repr(float(value)) for value in attribute.special]
    found: dict[str, Any] = {"kind": "number", "integer": attribute.integer, "literals": literals}
    if isinstance(attribute, Date | Datetime):
        texts = [text.partition(" to ") for text in labels[:bins]]
        found |= {"kind": "date", "texts": [[low, high or low] for low, _, high in texts]}
        found["literals"] = [repr(text) for text in labels[bins : attribute.n_values]]
    if _is_plain(attribute):
        found["pieces"] = _pieces(attribute)
        found["wide"] = bool(bins < attribute.upper - attribute.lower)
    if attribute.size > _MOST_GROUPS:
        found |= _bands(domain, name, low, high) if _is_plain(attribute) else {"groups": None}
    return found


def _pieces(attribute: Numeric) -> dict[str, FloatArray]:
    """Parts of codes in the order of their numbers; special values cut the bins they lie in.

    Of each the code, what part of it, the first and the last number, and of how many on a grid.
    """
    held, bins = attribute.contents, attribute.bins
    special = np.array(attribute.special, dtype=np.float64)
    rising = np.argsort(special)
    positions = held.positions(special[rising])
    cuts = np.unique([*range(bins + 1), *positions])
    codes, parts = cuts[:-1].astype(np.int64), np.diff(cuts)
    ends = np.interp(cuts, np.arange(bins + 1), np.asarray(attribute.edges, dtype=np.float64))
    low, high, points = ends[:-1], ends[1:], np.zeros(len(codes))
    if isinstance(held, Points):
        points = np.rint(parts * held.whole[0][codes])
        high = held.values_at(codes, cuts[1:] - codes)
        low = high - (points - 1.0) * held.step
    one = np.ones(len(special))
    single = np.stack([rising + bins, one, special[rising], special[rising], one])
    both = np.concatenate([single, np.stack([codes, parts, low, high, points])], axis=1)
    rows = both[:, np.argsort(np.append(positions, cuts[:-1]), kind="stable")]
    return dict(zip(_PIECES, rows, strict=True))


def _bands(domain: Domain, name: str, low: FloatArray, high: FloatArray) -> dict[str, Any]:
    """Groups of a column of many codes, and the edges that make them in Python."""
    attribute: Any = domain[name]
    bins = attribute.bins
    ends = [*range(0, bins, -(-bins // _BANDS)), bins]
    last = float(high[bins - 1] + attribute.contents.step)
    edges: list[Any] = [*low[ends[:-1]].tolist(), last]
    if isinstance(attribute, Date):
        edges = [f"{day:%Y-%m-%d}" for day in attribute.shown(np.array(edges))]
    regions = Bands(name, edges, domain, right=False).regions
    groups = [
        [label_of(attribute, *cut), {"codes": np.flatnonzero(region.weights)}]
        for cut, region in zip(pairwise(ends), regions, strict=True)
    ]
    return {"bands": repr(edges), "groups": groups}


def label_of(attribute: Any, low: int, high: int) -> str:
    """Text for the codes of a bar or a band."""
    if isinstance(attribute, Categorical) and high == low + 1:
        return str(attribute.labels()[low])
    if isinstance(attribute, Numeric) and not attribute.integer and high <= attribute.bins:
        ends = [_rounded(edge) for edge in attribute.edges[[low, high]]]
        if ends[0] != ends[1]:
            return " to ".join(ends)
    return range_label(attribute, low, high)


def _rounded(number: float) -> str:
    """Three digits; years have no comma."""
    number = float(f"{number:.3g}")
    return f"{number:,.15g}" if abs(number) >= 10_000 else f"{number:.15g}"
