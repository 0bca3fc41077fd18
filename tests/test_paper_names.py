"""A reader of a paper finds its algorithm: the table in the glossary names what exists."""

import ast
import csv
import importlib
import inspect
import re
from pathlib import Path

import pytest
from loops import over

import skdp

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PACKAGE = ROOT / "skdp"


def rows_of(page, title):
    """The rows of all tables of one section, as lists of cells."""
    start = re.search(rf"^{re.escape(title)}\n(-+)\n", page, re.MULTILINE)
    section = page[start.end() :]
    end = re.search(r"^\S.*\n-{4,}\n", section, re.MULTILINE)
    section = section[: end.start()] if end else section
    tables = re.findall(r"^\.\. csv-table::\n(?:   :.*\n)*\n((?:   .*\n)+)", section, re.MULTILINE)
    lines = [line.strip() for table in tables for line in table.splitlines()]
    return list(csv.reader(lines, delimiter=";", skipinitialspace=True))


ROWS = rows_of((DOCS / "glossary.rst").read_text(), "Where each paper's algorithm is")
COLUMNS = 3


def things(cell):
    """Classes and functions that a cell links."""
    linked = re.findall(r":(?:class|func):`~?([\w.]+)\.(\w+)`", cell)
    return [getattr(importlib.import_module(module), name) for module, name in linked]


def places(cell):
    """Where a cell says that kernels are: [(their names, file below skdp)]."""
    part = r"``([\w/]+\.py)``: (``\w+``(?:, ``\w+``)*)"
    assert re.fullmatch(rf"({part}(, |$))*", cell), cell
    return [(re.findall(r"\w+", names), file) for file, names in re.findall(part, cell)]


def test_the_package_knows_the_names_of_the_papers():
    assert len(ROWS) > 50 and all(len(row) == COLUMNS and row[0] for row in ROWS)
    named = " ".join(row[0].replace("-4.", "4") for row in ROWS)
    for name, here in skdp._BY_PAPER.items():
        assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", named), name
        with pytest.raises(AttributeError, match=re.escape(f"{name!r}: here it is skdp.{here}")):
            getattr(skdp, name)
        for each in here.split(" or "):
            maker, _, given = each.partition("(")
            check_row(
                ["", f":class:`~skdp.{maker}`, ``{'``, ``'.join(given[:-1].split(', '))}``", ""]
            )
    with pytest.raises(AttributeError, match="no attribute 'Nothing'$"):
        _ = skdp.Nothing


@over("row", ROWS)
def test_what_a_row_names_exists(row):
    check_row(row)


def check_row(row):
    """Whether what a row of the table names exists."""
    _, cell, kernels = row
    linked = things(cell)
    assert linked or "not implemented" in cell or kernels, "nothing is said of it"
    for name, value in re.findall(r"``(\w+)=([^`]*)``", cell):
        owners = [each for each in linked if name in inspect.signature(each).parameters]
        assert owners, f"nothing in the row has a parameter {name}"
        if value.startswith('"'):
            # A choice by name: the docstring lists it.
            assert any(value in inspect.getdoc(owner) for owner in owners), f"{name}={value}"
        elif value:
            ast.literal_eval(value)
    for names, file in places(kernels):
        code = (PACKAGE / file).read_text()
        for kernel in names:
            assert re.search(rf"^ *(def|class) {kernel}\b", code, re.M), f"{file}: no {kernel}"
