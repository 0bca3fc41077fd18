"""Tables that fit: numbers stay whole, long remarks move below, headings are grouped."""

from __future__ import annotations

import itertools
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
    """Mark the cells that are numbers; move remarks below wide tables; group their headings."""
    for table in list(doctree.findall(nodes.table)):
        notes_below(table)
        if "stack" in table["classes"] and list(table.findall(nodes.thead)):
            repeat_headings(table)
        else:
            group_headings(table)
        for entry in table.findall(nodes.entry):
            if is_number(entry.astext()):
                entry["classes"].append("number")
                break_before_error(entry)


def break_before_error(entry):
    """Let the line break before a standard error, and only there, in tables that are too wide."""
    if " ±" not in entry.astext():
        return
    entry["classes"].append("error")
    for text in list(entry.findall(nodes.Text)):
        parts = []
        for part in re.split(r" (?=±)", text):
            parts += [nodes.Text(" "), nodes.inline("", part, classes=["whole"])]
        text.parent.replace(text, parts[1:])


def parted(heading):
    """What a heading says of a group of columns, and what of its own column."""
    if ": " in heading:
        return heading.split(": ", 1)
    return list(heading.rpartition(", ")[::2])


def group_headings(table):
    """Give neighbouring columns whose headings begin alike one heading above them."""
    heads = list(table.findall(nodes.thead))
    if len(heads) != 1 or len(heads[0]) != 1:
        return
    (lower,) = heads[0]
    parts = [parted(entry.astext()) for entry in lower]
    groups = [[*group] for _, group in itertools.groupby(range(len(parts)), lambda i: parts[i][0])]
    if not any(len(group) > 1 and parts[group[0]][0] for group in groups):
        return
    upper, entries = nodes.row(), list(lower)
    for group in groups:
        title = parts[group[0]][0]
        if len(group) > 1 and title:
            upper += nodes.entry("", nodes.paragraph("", title), morecols=len(group) - 1)
            for i in group:
                entries[i].clear()
                entries[i] += nodes.paragraph("", parts[i][1])
            continue
        for i in group:
            lower.remove(entries[i])
            entries[i]["morerows"] = 1
            upper += entries[i]
    heads[0].insert(0, upper)


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
