"""The columns of a domain, in words."""

from __future__ import annotations

from collections.abc import Sequence

from ..domain import Attribute, Categorical, Domain

__all__ = ["columns_table", "text_table"]

_WIDEST = 60


def columns_table(domain: Domain) -> str:
    """One line for each column: its name, number of codes, and declaration."""
    rows = [("column", "codes", "declared as")]
    rows += [(name, str(each.size), _declaration(each)) for name, each in domain.items()]
    return text_table(rows)


def _declaration(attribute: Attribute) -> str:
    if isinstance(attribute, Categorical) and len(repr(attribute)) > _WIDEST:
        kind = "ordered categories" if attribute.ordered else "categories"
        return f"{attribute.n_values:,} {kind}: {repr(attribute)[:_WIDEST]}..."
    return repr(attribute)


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of text in aligned columns; numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    right = [all(_is_number(text) for text in column[1:]) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(row, widths, right, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "").isdigit() or text in ("", "ranges")
