"""What a page about a release says: see `Synopsis.report`."""

from __future__ import annotations

import html
import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from .._types import FloatArray
from ..accounting import PrivacyLoss
from ..domain import Categorical, Domain, Numeric
from ..domain.values import some
from .description import ColumnCounts, told
from .labels import range_label
from .models.box_model import BoxModel
from .models.model import Model
from .models.network_model import NetworkModel
from .models.tree_model import TreeModel
from .page import (
    bar_chart,
    document,
    element,
    heat_map,
    interval_table,
    listed,
    named_bars,
    with_margin,
)
from .pictures import plot_correlation_parts
from .skipped import SkippedRecords
from .statistics.with_errors import summable_columns

if TYPE_CHECKING:
    from .synopsis import Synopsis

__all__ = ["Association", "report_page", "strongest"]

# --- associations: how strongly pairs of columns of a release depend on each other

# Groups of codes of each column, and pairs and cells that are looked at.
_GROUPS = 12
_MAX_PAIRS = 400
_MAX_CELLS = 4_000_000


class Association(NamedTuple):
    """A pair of columns.

    Attributes
    ----------
    names : tuple of str
    strength : float
        Cramer's V of the table: 0 for independent columns, 1 if one decides the other.
    table : ndarray of float64
        Expected counts by groups of codes.
    starts : tuple of list of int
        First code of each group, for both columns.
    """

    names: tuple[str, str]
    strength: float
    table: FloatArray
    starts: tuple[list[int], list[int]]


def strongest(model: Model, domain: Domain, number: int) -> list[Association]:
    """The pairs that depend on each other most, as the release has it; the strongest first.

    Looked at are the pairs that the model joins; of a model that joins none, all pairs, or the
    first ones if there are very many.
    """
    held = getattr(model, "pairs", None)
    if held is None:
        held = itertools.combinations(range(len(domain.names)), 2)
    pairs = dict.fromkeys(tuple(sorted(pair)) for pair in itertools.islice(held, _MAX_PAIRS))
    found = [
        _association(model, domain, pair)
        for pair in pairs
        if pair[0] != pair[1] and domain.shape[pair[0]] * domain.shape[pair[1]] <= _MAX_CELLS
    ]
    return sorted(found, key=lambda each: -each.strength)[:number]


def _association(model: Model, domain: Domain, pair: tuple[int, ...]) -> Association:
    table = np.maximum(model.view(list(pair)), 0.0)
    starts = [_starts(domain.attributes[axis]) for axis in pair]
    for place, first in enumerate(starts):
        table = np.add.reduceat(table, first, axis=place)
    names = tuple(domain.names[axis] for axis in pair)
    return Association((names[0], names[1]), _cramer(table), table, (starts[0], starts[1]))


def _starts(attribute: Any) -> list[int]:
    """First code of each group: codes that follow each other, or categories by themselves."""
    if isinstance(attribute, Categorical) and not attribute.ordered:
        return list(range(attribute.size))
    n = attribute.n_values
    starts = np.unique(np.linspace(0, n, min(_GROUPS, n) + 1).astype(int)[:-1]).tolist()
    return starts + [n] * attribute.nullable


def _cramer(table: FloatArray) -> float:
    """Cramer's V of a table of counts."""
    total = table.sum()
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    if total <= 0 or min(table.shape) < 2:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    chi2 = ((table - expected) ** 2 / expected).sum() / total
    return float(np.sqrt(min(chi2 / (min(table.shape) - 1), 1.0)))


_MAX_BARS = 40
_MAX_CATEGORIES = 20
_PAIRS, _PICTURES = 10, 3
_MAX_CORRELATED = 8
# Letters of a text below a picture, which has room for four.
_LONGEST = 12


def report_page(synopsis: Synopsis, title: str, level: float) -> str:
    """The page as HTML.

    Parameters
    ----------
    synopsis : Synopsis
    title : str
    level : float
        Confidence of the margins.
    """
    counted = [
        ColumnCounts(synopsis.model, synopsis.domain, name, level) for name in synopsis.domain.known
    ]
    described = synopsis.describe(level=level, numbers=True)
    body = [
        element("h1", html.escape(title)),
        *_released(synopsis),
        *_protected(synopsis.privacy_loss),
        *_columns(synopsis, counted, described, level),
        *_correlations(synopsis, level),
        *_pairs(synopsis),
        *_limits(synopsis, counted, described, level),
        element(
            "p",
            "Everything on this page is computed from the release alone. Making it, reading it and "
            "passing it on cost no further privacy.",
            class_="soft",
        ),
    ]
    return document(title, body)


def _released(synopsis: Synopsis) -> list[str]:
    domain = synopsis.domain
    facts = {
        "Made by": synopsis.mechanism or "an unknown method",
        "Estimated records": f"{synopsis.total:,.0f}",
        "Columns": some(list(domain.known)),
        "It holds": _held(synopsis.model),
    }
    rows = "".join(
        f"<tr><th>{name}</th><td>{html.escape(value)}</td></tr>" for name, value in facts.items()
    )
    warning = []
    if domain.inferred:
        warning = [
            element(
                "p",
                "The ranges and categories of the columns were read from the data. That is not "
                "private: the guarantee below does not hold.",
                class_="warn",
            )
        ]
    return [
        element("h2", "What was released"),
        element(
            "p",
            "A summary of a table with random noise in it. The table itself was not released, and "
            "nobody can compute it from this.",
        ),
        *warning,
        f"<table><tbody>{rows}</tbody></table>",
        *_skipped(synopsis.skipped),
    ]


def _skipped(skipped: SkippedRecords | None) -> list[str]:
    """What the table that was measured lacks."""
    if skipped is None:
        return [element("p", "How many records were skipped is not known.", class_="soft")]
    text = (
        "Records that do not fit what was declared were skipped, by the first column that does "
        f"not fit. The counts have noise of standard deviation {skipped.std:,.3g}."
    )
    loud = [element("p", html.escape(f"Skipped: {one}."), class_="warn") for one in skipped.texts()]
    return [*loud, element("p", text), skipped.table()]


def _held(model: Any) -> str:
    if isinstance(model, BoxModel):
        return f"noisy counts of {len(model.boxes):,} groups of records"
    if isinstance(model, NetworkModel):
        return f"noisy tables of a network with {len(model.pairs):,} links between columns"
    if isinstance(model, TreeModel):
        return f"noisy counts of each column and of {len(model.pairs):,} pairs of columns"
    return "a model of the records"


def _protected(loss: PrivacyLoss | None) -> list[str]:
    heading = element("h2", "Whom it protects, and how much")
    if loss is None:
        text = "What the release cost is not recorded: nothing can be said about its guarantee."
        return [heading, element("p", text, class_="warn")]
    if loss.seeded:
        text = (
            "The noise comes from a seed: this is an experiment, without any guarantee. Whoever "
            "knows or guesses the seed can subtract the noise."
        )
        return [heading, element("p", text, class_="warn")]
    epsilon = float(loss.epsilon)
    one = "record" if loss.max_contributions is None else "person"
    factor = math.exp(min(epsilon, 700.0))
    parts = ", ".join(f"{name} {float(part):.4g}" for name, part in loss.parts.items())
    return [
        heading,
        element(
            "p",
            f"The release is differentially private with <b>epsilon = {epsilon:g}</b> for every "
            f"{one}: neighbouring tables differ by this ({html.escape(loss.neighbours)}).",
        ),
        listed(
            [
                f"Whatever the release says, it could have said without any one {one} too: the "
                f"probability changes by a factor of at most {_factor(factor)}.",
                f"Somebody who thinks it equally likely that a {one} is in the table or not, and "
                f"knows everything else, can be at most {_percent(factor)} sure after reading the "
                "release.",
                f"This holds whatever else is known about the {one}, now or later. It does not "
                "prevent conclusions about people in general, which would be drawn from a table "
                f"without this {one} too.",
                "If several releases were made of the same table, their epsilons add up.",
            ]
        ),
        element("p", f"Parts of epsilon: {html.escape(parts)}.", class_="soft"),
    ]


def _factor(factor: float) -> str:
    return f"{factor:,.3g}" if factor < 1e6 else "more than a million, which is no protection"


def _percent(factor: float) -> str:
    return f"{100 * factor / (1.0 + factor):.3g}%"


def _columns(
    synopsis: Synopsis, counted: list[ColumnCounts], described: pd.DataFrame, level: float
) -> list[str]:
    text = (
        f"A bar is an estimated number of records. The line on it is the margin of error at "
        f"{100 * level:g}%. Point at a bar that has no number to read it."
    )
    cards = [
        element("div", _column(each, statistics), class_="card")
        for each, (_, statistics) in zip(counted, described.iterrows(), strict=True)
    ]
    return [
        element("h2", "Every column"),
        element("p", text),
        element("div", *cards, class_="cards"),
    ]


def _column(counted: ColumnCounts, statistics: pd.Series) -> str:
    starts, stops, labels = _bars(counted)
    weights = np.zeros((len(starts), counted.attribute.size))
    for row, (codes, _) in enumerate(zip(starts, stops, strict=True)):
        weights[row, codes] = 1.0
    counts, margins = weights @ counted.counts, counted.margins(weights)
    alt = f"Number of records by {counted.name}, from {labels[0]} to {labels[-1]}"
    if isinstance(counted.attribute, Categorical):
        most = float((counts + np.nan_to_num(margins)).max(initial=0.0))
        texts = [with_margin(*each) for each in zip(counts, margins, strict=True)]
        picture, numbers = named_bars(labels, texts, counts, margins, most, alt), ""
    else:
        picture = bar_chart(counts, margins, labels, _ticks(counted.attribute, starts, labels), alt)
        numbers = _numbers(counts, margins, labels)
    return element(
        "figure",
        element("h3", html.escape(counted.name)),
        picture,
        element("figcaption", html.escape(_caption(counted, statistics))),
        numbers,
    )


def _bars(counted: ColumnCounts) -> tuple[list[Any], list[Any], list[str]]:
    """Codes of each bar, and its label."""
    attribute, n = counted.attribute, counted.attribute.n_values
    if isinstance(attribute, Categorical) and not attribute.ordered and n > _MAX_CATEGORIES:
        order = np.argsort(-counted.known, kind="stable")
        bars = [[code] for code in order[: _MAX_CATEGORIES - 1].tolist()]
        names = [attribute.labels()[codes[0]] for codes in bars]
        bars.append(order[_MAX_CATEGORIES - 1 :].tolist())
        names.append(f"{len(bars[-1])} others")
    else:
        most = _MAX_CATEGORIES if isinstance(attribute, Categorical) else _MAX_BARS
        # As many codes in every bar, but for the last one.
        cuts = [*range(0, n, -(-n // most)), n]
        bars = [list(range(low, high)) for low, high in zip(cuts[:-1], cuts[1:], strict=True)]
        names = [
            _label(attribute, low, high) for low, high in zip(cuts[:-1], cuts[1:], strict=True)
        ]
    if attribute.nullable:
        bars.append([n])
        names.append("missing")
    return bars, bars, names


def _label(attribute: Any, low: int, high: int) -> str:
    """Text for the codes of a bar."""
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


def _ticks(attribute: Any, bars: list[Any], labels: list[str]) -> list[tuple[float, str]]:
    """Texts below the first bar, at each third, and of the end or of what is no number."""
    n = len(bars)
    found = [(k, labels[k].split(" to ")[0]) for k in sorted({0, n // 3, 2 * n // 3} - {n - 1})]
    others = [text for codes, text in zip(bars, labels, strict=True) if codes[-1] >= attribute.bins]
    found.append((n - 1, ", ".join(others) or labels[-1].split(" to ")[-1]))
    return [
        ((k + 0.5) / n, text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")
        for k, text in found
    ]


def _numbers(counts: FloatArray, margins: FloatArray, labels: list[str]) -> str:
    """The bars as a table, for those who cannot point at one."""
    rows = [
        f"<tr><th>{html.escape(label)}</th><td>{with_margin(count, margin)}</td></tr>"
        for label, count, margin in zip(labels, counts.tolist(), margins.tolist(), strict=True)
    ]
    return element(
        "details", element("summary", "Numbers"), f"<table><tbody>{''.join(rows)}</tbody></table>"
    )


def _caption(counted: ColumnCounts, statistics: pd.Series) -> str:
    def of(row: str) -> str:
        return told(statistics.get(row), statistics.get(f"{row}_margin")) or "unknown"

    if isinstance(counted.attribute, Categorical):
        return f"Most frequent: {statistics['top']} ({of('freq')} records)"
    return f"Mean {of('mean')}; median {of('50%')}"


def _correlations(synopsis: Synopsis, level: float) -> list[str]:
    columns = summable_columns(synopsis.domain)
    if len(columns) < 2:
        return []
    found = plot_correlation_parts(synopsis, columns[:_MAX_CORRELATED], level)
    text = "How two columns of numbers go together, from -1 to 1; 0 is not at all."
    if found["interval"] is not None:
        text += (
            f" Below each number is its interval at {100 * level:g}%, from -1 at the left to 1 at "
            "the right: where it holds 0, the noise alone may be seen."
        )
    if len(columns) > _MAX_CORRELATED:
        text += f" The first {_MAX_CORRELATED} of {len(columns)} columns are shown."
    return [
        element("h2", "Correlations"),
        element("p", text),
        interval_table(found["names"], found["matrix"], found["interval"]),
    ]


def _pairs(synopsis: Synopsis) -> list[str]:
    heading = element("h2", "Strongest pairs of columns")
    found = strongest(synopsis.model, synopsis.domain, _PAIRS)
    if not found:
        return [heading, element("p", "The release joins no two columns.")]
    names = [" and ".join(each.names) for each in found]
    text = (
        "How strongly two columns depend on each other, from 0 (not at all) to 1 (one decides the "
        "other): Cram\u00e9r's V of the released counts, noise included. Weak values may be noise "
        "alone, and an association is no cause."
    )
    strengths = np.array([each.strength for each in found])
    texts = [f"{strength:.2f}" for strength in strengths]
    alt = f"Strongest pairs: {some(names)}"
    bars = named_bars(names, texts, strengths, np.zeros(len(found)), 1.0, alt)
    pictures = [
        element("div", _picture(synopsis, each), class_="card") for each in found[:_PICTURES]
    ]
    return [
        heading,
        element("p", text),
        element("div", element("div", bars, class_="card"), *pictures, class_="cards"),
    ]


def _picture(synopsis: Synopsis, each: Association) -> str:
    labels = []
    for name, starts in zip(each.names, each.starts, strict=True):
        attribute = synopsis.domain[name]
        stops = [*starts[1:], attribute.size]
        labels.append(
            [_label(attribute, low, high) for low, high in zip(starts, stops, strict=True)]
        )
    table, rows, columns = each.table, labels[0], labels[1]
    keep = [np.sort(np.argsort(-table.sum(axis=1 - axis))[:_MAX_CATEGORIES]) for axis in (0, 1)]
    table = table[np.ix_(*keep)]
    rows, columns = ([side[i] for i in held] for side, held in zip(labels, keep, strict=True))
    first, second = each.names
    return element(
        "figure",
        element("h3", html.escape(f"{second} for each {first}")),
        heat_map(table, rows, columns, f"Shares of {second} for each {first}"),
        element("figcaption", "Strong colour: a large share of the row"),
    )


def _limits(
    synopsis: Synopsis, counted: list[ColumnCounts], described: pd.DataFrame, level: float
) -> list[str]:
    domain, model = synopsis.domain, synopsis.model
    points = [
        "Exact numbers. Every answer has noise, and asking again gives the same answer.",
        "Anything about a single record or person.",
    ]
    margins = described["count_margin"].astype(float)
    if np.isfinite(margins).any():
        least = _smallest(counted)
        points.append(
            f"Small groups. In the columns above, counts below about {least:,.0f} cannot be told "
            "from zero."
        )
        points.append(f"What the margins cover: {html.escape(described.attrs['guarantee'])}")
    else:
        points.append(f"How far answers are off. {html.escape(described.attrs['guarantee'])}")
    n, joined = len(domain.names), len(set(getattr(model, "pairs", ())))
    if isinstance(model, TreeModel | NetworkModel) and n > 1:
        points.append(
            f"Combinations that were not measured. {joined:,} of {n * (n - 1) // 2:,} pairs of "
            "columns were measured together; what is said about other pairs, and about three or "
            "more columns, follows from these and may miss how they depend on each other."
        )
    points.append(
        "Values outside of what was declared: numbers beyond the range of a column count at its "
        "end, and categories that were not declared have no count of their own."
    )
    absent = [name for name in domain.columns if name not in domain.known]
    if absent:
        points.append(
            "Columns that were not measured (identifiers, or totals of others): "
            f"{html.escape(some(absent))}."
        )
    return [element("h2", "What cannot be answered"), listed(points)]


def _smallest(counted: list[ColumnCounts]) -> float:
    """A typical margin of a count that is nearly zero."""
    found = []
    for each in counted:
        code = int(np.argmin(np.abs(each.known)))
        found.append(each.margin_of(code))
    return float(np.nanmedian(found))
