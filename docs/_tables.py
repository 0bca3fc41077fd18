"""Tables that can be read on a phone: numbers stay whole, long remarks move below the table."""

from __future__ import annotations

import re

from docutils import nodes

# A number with its signs, units, standard error, or several numbers separated by slashes or commas.
NUMBER = re.compile(r"(?:delta\s|[<>~])?\s*[-+−±]?[\d.,]+\s*(%|s|ms|MB|GB|e-?\d+)?")
BETWEEN = re.compile(r"\s*(?:±|/|,\s|\bto\b|–)\s*")
# Cells that are longer move below the table, if the table has a column "Note".
LONGEST = 36


def is_number(text):
    """Whether a cell holds nothing but numbers."""
    parts = BETWEEN.split(text.strip())
    return bool(text.strip()) and all(NUMBER.fullmatch(part.strip()) for part in parts if part)


def arrange(app, doctree):
    """Mark the cells that are numbers; move remarks of the wide tables below them."""
    for table in list(doctree.findall(nodes.table)):
        notes_below(table)
        if "stack" in table["classes"] and list(table.findall(nodes.thead)):
            repeat_headings(table)
        for entry in table.findall(nodes.entry):
            if is_number(entry.astext()):
                entry["classes"].append("number")


def repeat_headings(table):
    """Put the heading of its column before each cell but the first, for phones."""
    rows = list(table.findall(nodes.row))
    for row in rows[1:]:
        for heading, entry in list(zip(rows[0], row, strict=True))[1:]:
            if entry.astext():
                entry[0].insert(
                    0, nodes.inline("", heading.astext() + ": ", classes=["only-on-phones"])
                )


def notes_below(table):
    """Replace the last column, if it is called "Note", by letters, and list their texts below."""
    (group,) = table.findall(nodes.tgroup)
    rows = list(group.findall(nodes.row))
    headings = [entry.astext() for entry in rows[0]]
    if len(headings) < 7 or headings[-1] != "Note":
        return
    name = headings.index("Method") if "Method" in headings else 0
    found = {}

    def letter(text):
        return found.setdefault(text, chr(ord("a") + len(found)))

    for row in rows[1:]:
        if text := row[-1].astext():
            row[name][0] += [nodes.Text("\N{NO-BREAK SPACE}"), nodes.superscript("", letter(text))]
        for entry in row[name + 1 : -1]:
            if len(entry.astext()) > LONGEST:
                text = entry.astext()
                entry.clear()
                entry += nodes.paragraph("", "failed ", nodes.superscript("", letter(text)))
    for row in rows:
        row.pop()
    group.remove(list(group.findall(nodes.colspec))[-1])
    group["cols"] -= 1
    below = nodes.line_block(classes=["below"])
    for text, mark in found.items():
        below += nodes.line("", "", nodes.superscript("", mark), nodes.Text(f" {text}"))
    table.parent.insert(table.parent.index(table) + 1, below)
