"""Pages and pictures as text: HTML that requests nothing, and SVG drawn by hand."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

import numpy as np

from .._types import FloatArray

__all__ = [
    "bar_chart",
    "document",
    "element",
    "heat_map",
    "interval_table",
    "listed",
    "named_bars",
    "with_margin",
]

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --soft: #5b6875; --page: #ffffff;
  --card: #f4f6f8; --line: #d5dbe1; --bar: #31688e; --band: #1d2733; --warn: #a33b00; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaee; --soft: #a3afba; --page: #14191f; --card: #1d242c; --line: #38424d;
    --bar: #6aa9d2; --band: #ffffff; --warn: #ff9d66; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 68rem; background: var(--page);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
h3 { margin: 0 0 .25rem; font-size: 1.05rem; }
p.soft, figcaption, .soft { color: var(--soft); font-size: .9rem; }
.warn { color: var(--warn); font-weight: 600; }
.cards { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr));
  align-items: start; }
.card { background: var(--card); border-radius: .5rem; padding: .75rem 1rem; min-width: 0; }
figure { margin: 0; } svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
.bar { fill: var(--bar); } .band { stroke: var(--band); stroke-width: 1.5; opacity: .7; }
.axis { stroke: var(--line); }
table { border-collapse: collapse; width: 100%; } th { text-align: left; font-weight: 600; }
th:first-child { overflow-wrap: normal; min-width: 6.5rem; }
th, td { padding: .25rem .75rem .25rem 0; vertical-align: top;
  border-bottom: 1px solid var(--line); }
.wide { overflow-x: auto; } .wide td { text-align: center; min-width: 4.5rem; padding: .25rem; }
.wide th { padding-right: .5rem; min-width: 5rem; overflow-wrap: break-word; }
"""

_WIDTH, _HEIGHT, _FOOT = 320, 120, 18
# About the width of a letter.
_LETTER = 6.2


def element(tag: str, *inner: str, **attributes: object) -> str:
    """An element; the inner texts are HTML, attributes are escaped."""
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for name, value in attributes.items()
    )
    return f"<{tag}{given}>{''.join(inner)}</{tag}>"


def listed(items: Iterable[str]) -> str:
    """A list of sentences, which are HTML."""
    return element("ul", *(element("li", item) for item in items))


def document(title: str, body: Sequence[str]) -> str:
    """A page that stands by itself."""
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, '
        'initial-scale=1">'
        # Nothing may be loaded or run, whatever the names of columns are.
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style>"
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n'
        f"<body>{''.join(body)}</body></html>\n"
    )


def bar_chart(
    counts: FloatArray,
    margins: FloatArray,
    labels: Sequence[str],
    ticks: Sequence[tuple[float, str]],
    alt: str,
) -> str:
    """Bars from zero, a line of the margin on each, and texts below places from 0 to 1.

    Negative counts, which noise makes of small ones, have no bar; their margin may show.
    """
    reach = np.where(np.isnan(margins), 0.0, margins)
    most = max(float((counts + reach).max(initial=0.0)), 1e-9)
    top, base, width = 16, _HEIGHT - _FOOT, _WIDTH / max(len(counts), 1)
    y = base - (base - top) * np.clip([counts, counts - reach, counts + reach], 0.0, most) / most
    gap = min(1.0, 0.1 * width)
    # The number at the top of the picture.
    parts = [_line("axis", 0, top, _WIDTH, top), f'<text x="0" y="{top - 4}">{most:,.0f}</text>']
    for place, label in enumerate(labels):
        left, middle = place * width, (place + 0.5) * width
        text = f"{label}: {with_margin(counts[place], margins[place])}"
        parts.append(
            f"<g><title>{html.escape(text)}</title>"
            f'<rect class="bar" x="{left + gap:.1f}" y="{y[0, place]:.1f}" '
            f'width="{width - 2 * gap:.1f}" height="{base - y[0, place]:.1f}"/>'
            + (_line("band", middle, y[1, place], middle, y[2, place]) * bool(reach[place] > 0))
            + "</g>"
        )
    parts.append(_line("axis", 0, base, _WIDTH, base))
    for share, text in ticks:
        long = _LETTER * len(text)
        x = min(max(share * _WIDTH - long / 2, 0.0), _WIDTH - long)
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - 4}">{html.escape(text)}</text>')
    return _svg(_WIDTH, _HEIGHT, parts, alt)


def with_margin(count: float, margin: float) -> str:
    """A count and its margin, if it is known."""
    return f"{count:,.0f}" + ("" if np.isnan(margin) else f" \u00b1 {margin:,.0f}")


def named_bars(
    names: Sequence[str],
    texts: Sequence[str],
    values: FloatArray,
    margins: FloatArray,
    most: float,
    alt: str,
) -> str:
    """For each name a text, and below them a bar with a line of its margin; ``most`` is full."""
    row, parts = 30, []
    reach = np.where(np.isnan(margins), 0.0, margins)
    x = _WIDTH * np.clip([values, values - reach, values + reach], 0.0, most) / max(most, 1e-9)
    for place, (name, text) in enumerate(zip(names, texts, strict=True)):
        top = place * row
        name = _cut(name, int((_WIDTH - _LETTER * len(text)) / _LETTER) - 1)
        parts += [
            f'<text x="0" y="{top + 12}">{html.escape(name)}</text>',
            f'<text x="{_WIDTH}" y="{top + 12}" text-anchor="end">{html.escape(text)}</text>',
            f'<rect class="axis" x="0" y="{top + 16}" width="{_WIDTH}" height="8" fill="none"/>',
            f'<rect class="bar" x="0" y="{top + 16}" width="{x[0, place]:.1f}" height="8"/>',
            _line("band", x[1, place], top + 20, x[2, place], top + 20) * bool(reach[place] > 0),
        ]
    return _svg(_WIDTH, max(row * len(names), 1), parts, alt)


def heat_map(table: FloatArray, rows: Sequence[str], columns: Sequence[str], alt: str) -> str:
    """Cells whose shade is their share in their row; the largest is the darkest."""
    share = table / np.maximum(table.sum(axis=1, keepdims=True), 1e-9)
    top = max(float(share.max(initial=0.0)), 1e-9)
    left, high = 96, 16
    wide = (_WIDTH - left) / max(table.shape[1], 1)
    parts = []
    for i, row in enumerate(rows):
        y = i * high
        parts.append(f'<text x="0" y="{y + 12}">{html.escape(_cut(row, 15))}</text>')
        for j, column in enumerate(columns):
            text = f"{row}, {column}: {100 * share[i, j]:.0f}% of the row"
            parts.append(
                f'<rect class="bar" x="{left + j * wide:.1f}" y="{y}" width="{wide - 1:.1f}" '
                f'height="{high - 1}" opacity="{0.04 + 0.96 * share[i, j] / top:.2f}">'
                f"<title>{html.escape(text)}</title></rect>"
            )
    foot = len(rows) * high
    names = [_cut(column, 20) for column in columns]
    longest = _LETTER * max(map(len, names), default=0)
    turned = longest + 4 > wide
    for j, name in enumerate(names):
        x = left + (j + 0.5) * wide
        place = f'text-anchor="middle" x="{x:.1f}" y="{foot + 14}"'
        if turned:
            place = f'text-anchor="end" transform="translate({x + 4:.1f} {foot + 4}) rotate(-90)"'
        parts.append(f"<text {place}>{html.escape(name)}</text>")
    return _svg(_WIDTH, foot + (longest + 8 if turned else 18), parts, alt)


def interval_table(
    names: Sequence[str], values: FloatArray, ends: Sequence[FloatArray] | None
) -> str:
    """A square table of numbers from -1 to 1, half the widths of their intervals, and bars."""
    rows = [f"<tr><th></th>{''.join(f'<th>{html.escape(name)}</th>' for name in names)}</tr>"]
    for i, row in enumerate(names):
        cells = []
        for j in range(len(names)):
            value = values[i, j]
            inner = "unknown" if np.isnan(value) else f"{value:.2f}"
            if ends is not None and i != j:
                low, high = float(ends[0][i, j]), float(ends[1][i, j])
                bar = [_line("axis", 0, 5, 100, 5), _line("axis", 50, 0, 50, 10)]
                bar.append(_line("band", 50 + 50 * low, 5, 50 + 50 * high, 5))
                alt = f"from {low:.2f} to {high:.2f}"
                inner += f"<br>\u00b1 {(high - low) / 2:.2f}{_svg(100, 10, bar, alt)}"
            colour = "49, 104, 142" if value > 0 else "179, 71, 11"
            shade = 0.0 if np.isnan(value) or i == j else 0.45 * abs(value)
            cells.append(f'<td style="background: rgba({colour}, {shade:.2f})">{inner}</td>')
        rows.append(f"<tr><th>{html.escape(row)}</th>{''.join(cells)}</tr>")
    return element(
        "div", f"<table><tbody>{''.join(rows)}</tbody></table>", class_="wide", tabindex=0
    )


def _line(kind: str, x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<line class="{kind}" x1="{x:.1f}" x2="{to_x:.1f}" y1="{y:.1f}" y2="{to_y:.1f}"/>'


def _svg(width: float, height: float, parts: Sequence[str], alt: str) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{html.escape(alt)}">'
        f"{''.join(parts)}</svg>"
    )


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "\u2026"
