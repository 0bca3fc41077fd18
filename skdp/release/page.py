"""Pages and pictures as text: HTML that requests nothing, and SVG drawn by hand."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

import numpy as np

from .._types import FloatArray

__all__ = ["bar_chart", "document", "element", "heat_map", "listed", "strength_bars", "with_margin"]

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
.cards { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); }
.card { background: var(--card); border-radius: .5rem; padding: .75rem 1rem; min-width: 0; }
figure { margin: 0; } svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
.bar { fill: var(--bar); } .band { stroke: var(--band); stroke-width: 1.5; opacity: .7; }
.axis { stroke: var(--line); }
table { border-collapse: collapse; width: 100%; } th { text-align: left; font-weight: 600; }
th:first-child { overflow-wrap: normal; min-width: 6.5rem; }
th, td { padding: .25rem .75rem .25rem 0; vertical-align: top;
  border-bottom: 1px solid var(--line); }
"""

_WIDTH, _HEIGHT, _FOOT = 320, 120, 18


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
    counts: FloatArray, margins: FloatArray, labels: Sequence[str], ends: tuple[str, str], alt: str
) -> str:
    """Bars from zero, a line of the margin on each, and text under the first and the last.

    Negative counts, which noise makes of small ones, have no bar; their margin may show.
    """
    reach = np.where(np.isnan(margins), 0.0, margins)
    most = max(float((counts + reach).max(initial=0.0)), 1e-9)
    height, width = _HEIGHT - _FOOT - 4, _WIDTH / max(len(counts), 1)
    y = 4 + height * (1.0 - np.clip([counts, counts - reach, counts + reach], 0.0, most) / most)
    gap = min(1.0, 0.1 * width)
    parts = []
    for place, label in enumerate(labels):
        left, middle = place * width, (place + 0.5) * width
        text = f"{label}: {with_margin(counts[place], margins[place])}"
        parts.append(
            f"<g><title>{html.escape(text)}</title>"
            f'<rect class="bar" x="{left + gap:.1f}" y="{y[0, place]:.1f}" '
            f'width="{width - 2 * gap:.1f}" height="{4 + height - y[0, place]:.1f}"/>'
            + (
                f'<line class="band" x1="{middle:.1f}" x2="{middle:.1f}" '
                f'y1="{y[1, place]:.1f}" y2="{y[2, place]:.1f}"/>'
                if reach[place] > 0
                else ""
            )
            + "</g>"
        )
    base = 4 + height
    parts.append(f'<line class="axis" x1="0" x2="{_WIDTH}" y1="{base}" y2="{base}"/>')
    parts.append(f'<text x="0" y="{_HEIGHT - 4}">{html.escape(ends[0])}</text>')
    parts.append(
        f'<text x="{_WIDTH}" y="{_HEIGHT - 4}" text-anchor="end">{html.escape(ends[1])}</text>'
    )
    return _svg(_WIDTH, _HEIGHT, parts, alt)


def with_margin(count: float, margin: float) -> str:
    """A count and its margin, if it is known."""
    return f"{count:,.0f}" + ("" if np.isnan(margin) else f" \u00b1 {margin:,.0f}")


def strength_bars(names: Sequence[str], shares: Sequence[float], alt: str) -> str:
    """A line for each name with a bar whose length is a share of 1."""
    row, parts = 30, []
    for place, (name, share) in enumerate(zip(names, shares, strict=True)):
        top = place * row
        parts.append(f'<text x="0" y="{top + 12}">{html.escape(_cut(name, 48))}</text>')
        parts.append(f'<text x="{_WIDTH}" y="{top + 12}" text-anchor="end">{share:.2f}</text>')
        parts.append(
            f'<rect class="axis" x="0" y="{top + 16}" width="{_WIDTH}" height="8" fill="none"/>'
        )
        parts.append(
            f'<rect class="bar" x="0" y="{top + 16}" width="{share * _WIDTH:.1f}" height="8"/>'
        )
    return _svg(_WIDTH, max(row * len(names), 1), parts, alt)


def heat_map(table: FloatArray, rows: Sequence[str], columns: Sequence[str], alt: str) -> str:
    """Cells whose shade is their share in their row; the largest is the darkest."""
    share = table / np.maximum(table.sum(axis=1, keepdims=True), 1e-9)
    top = max(float(share.max(initial=0.0)), 1e-9)
    left, high = 88, 16
    wide = (_WIDTH - left) / max(table.shape[1], 1)
    parts = []
    for i, row in enumerate(rows):
        y = i * high
        parts.append(f'<text x="0" y="{y + 12}">{html.escape(_cut(row, 14))}</text>')
        for j, column in enumerate(columns):
            text = f"{row}, {column}: {100 * share[i, j]:.0f}% of the row"
            parts.append(
                f'<rect class="bar" x="{left + j * wide:.1f}" y="{y}" width="{wide - 1:.1f}" '
                f'height="{high - 1}" opacity="{0.04 + 0.96 * share[i, j] / top:.2f}">'
                f"<title>{html.escape(text)}</title></rect>"
            )
    foot = len(rows) * high + 14
    parts.append(f'<text x="{left}" y="{foot}">{html.escape(_cut(columns[0], 18))}</text>')
    parts.append(
        f'<text x="{_WIDTH}" y="{foot}" text-anchor="end">{html.escape(_cut(columns[-1], 18))}'
        "</text>"
    )
    return _svg(_WIDTH, foot + 4, parts, alt)


def _svg(width: float, height: float, parts: Sequence[str], alt: str) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{html.escape(alt)}">'
        f"{''.join(parts)}</svg>"
    )


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "\u2026"
