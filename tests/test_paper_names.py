"""A reader of a paper finds its algorithm: the table in the glossary names what exists."""

import ast
import csv
import functools
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

# What the papers call their algorithms, as they spell it.
NAMES = (
    "AHP; AllC; BMax; BMaxC; Base; Boost; DAWA; DPCube; DPLloyd; DPLloyd-Impr; DPSelect; "
    "DiffGen; DiffPC-4.5; DiffPID3; EUG; EUGkM; GBLUE; GUPT; GkM; HDMM; HDPView; "
    "Hierarchical kd-tree; Hybrid; Identity; LBLUE; MkM; PGkM; PMost; PMostC; PPH; PrivBayes; "
    "PrivGene; PrivLocal; PrivPfC; PrivTree; SVT with retraversal; SVT-DPBook; SVT-ReTr; SVT-S; "
    "UG; UGkM; functional mechanism"
).split("; ")


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
    """Classes and functions that a cell links, in order: [(place in the text, object)]."""
    found = []
    for match in re.finditer(r":(?:class|func):`~?([\w.]+)`", cell):
        module, _, name = match[1].rpartition(".")
        found.append((match.start(), getattr(importlib.import_module(module), name)))
    return found


def parameters(cell):
    """Parameters that a cell names: [(place in the text, name, value as text or "")]."""
    pattern = r"``(\w+)=([^`]*)``"
    return [(match.start(), match[1], match[2]) for match in re.finditer(pattern, cell)]


def owner_of(parameter, place, linked):
    """What a parameter belongs to: the nearest link before it that takes it, else one after it."""
    before = [thing for start, thing in reversed(linked) if start < place]
    after = [thing for start, thing in linked if start > place]
    for thing in before + after:
        if parameter in inspect.signature(thing).parameters:
            return thing
    raise AssertionError(f"nothing in the row has a parameter {parameter}")


def places(cell):
    """Where a cell says that kernels are: [(their names, file below skdp)]."""
    assert re.fullmatch(r"((``\w+``,? )+in ``[\w/]+\.py``(, |$))*", cell), cell
    parts = re.findall(r"((?:``\w+``,? )+)in ``([\w/]+\.py)``", cell)
    return [(re.findall(r"\w+", names), file) for names, file in parts]


@functools.cache
def definitions():
    """{name of a function or class: modules of the package that define it}."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.setdefault(node.name, set()).add(path)
    return found


def test_the_package_knows_the_names_of_the_papers():
    assert set(skdp._BY_PAPER) <= {name.replace("-4.", "4") for name in (*NAMES, "BLUE", "SVT")}
    for name, here in skdp._BY_PAPER.items():
        with pytest.raises(AttributeError, match=re.escape(f"{name!r}: here it is skdp.{here}")):
            getattr(skdp, name)
        for each in here.split(" or "):
            maker, _, given = each.partition("(")
            check_row(
                ["", f":class:`~skdp.{maker}`, ``{'``, ``'.join(given[:-1].split(', '))}``", ""]
            )
    with pytest.raises(AttributeError, match="no attribute 'Nothing'$"):
        _ = skdp.Nothing


def test_the_table_was_read():
    assert len(ROWS) > 50
    assert all(len(row) == COLUMNS and row[0] for row in ROWS)
    named = " ".join(row[0] for row in ROWS)
    assert [
        name for name in NAMES if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", named)
    ] == []


@over("row", ROWS)
def test_what_a_row_names_exists(row):
    check_row(row)


def check_row(row):
    """Whether what a row of the table names exists."""
    _, cell, kernels = row
    linked = things(cell)
    assert linked or "not implemented" in cell or kernels, "nothing is said of it"
    for place, name, value in parameters(cell):
        owner = owner_of(name, place, linked)
        if value.startswith('"'):
            # A choice by name: the docstring lists it.
            assert value in inspect.getdoc(owner), f"{owner.__name__}({name}={value})"
        elif value:
            ast.literal_eval(value)
    for names, file in places(kernels):
        for kernel in names:
            here = definitions().get(kernel, ())
            assert PACKAGE / file in here, f"skdp/{file} defines no {kernel}"
