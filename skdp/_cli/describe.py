"""The columns of a domain, in words."""

from __future__ import annotations

from collections.abc import Sequence

from ..domain import Domain

__all__ = ["domain_text", "text_table"]

_WIDEST = 72


def domain_text(domain: Domain) -> str:
    """One line for each column: name, number of codes, declaration; then the rules between them."""
    rows = [("column", "codes", "declared as")]
    for name in domain.columns:
        attribute = domain.declared(name)
        measured = name in domain.names
        codes = str(domain[name].size) if measured else "-"
        derived = ", follows from others" if name in domain.structure.derived else ""
        rows.append((name, codes, shortened(repr(attribute), derived)))
    parts = [text_table(rows)]
    if domain.structure:
        parts += ["", "rules:", *(f"  {shortened(repr(rule))}" for rule in domain.structure)]
    if domain.inferred:
        parts += ["", "INFERRED from data: nothing that is released over this domain is private."]
    return "\n".join(parts)


def shortened(text: str, more: str = "") -> str:
    """A text that fits into a line, and what must stand behind it."""
    return f"{text if len(text) <= _WIDEST else text[: _WIDEST - 4] + ' ...'}{more}"


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
    return text.replace(",", "").replace(".", "").isdigit() or text in ("", "-", "ranges")
