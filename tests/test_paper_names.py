"""A reader of a paper finds its algorithm: the table in the glossary names what exists and runs."""

from __future__ import annotations

import ast
import csv
import functools
import importlib
import inspect
import itertools
import re
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from estimators import CASES, people
from loops import over

from skdp import hierarchy, inspection, mechanisms, private_quantiles

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PACKAGE = ROOT / "skdp"

# What the papers call their algorithms, as they spell it.
NAMES = [
    "AHP",
    "AllC",
    "BMax",
    "BMaxC",
    "Base",
    "Boost",
    "DAWA",
    "DPCube",
    "DPLloyd",
    "DPLloyd-Impr",
    "DPSelect",
    "DiffGen",
    "DiffPC-4.5",
    "DiffPID3",
    "EUG",
    "EUGkM",
    "GBLUE",
    "GUPT",
    "GkM",
    "HDPView",
    "Hierarchical kd-tree",
    "Hybrid",
    "Identity",
    "LBLUE",
    "MkM",
    "PGkM",
    "PMost",
    "PMostC",
    "PPH",
    "PrivBayes",
    "PrivGene",
    "PrivLocal",
    "PrivPfC",
    "PrivTree",
    "SVT with retraversal",
    "SVT-DPBook",
    "SVT-ReTr",
    "SVT-S",
    "UG",
    "UGkM",
    "functional mechanism",
]
# Variants and parts of the above, which the docstring of a module need not name.
PARTS = {"AllC", "BMaxC", "DPSelect", "LBLUE", "PMostC"}
# Named in the five works and not implemented: the table says so.
NOT_IMPLEMENTED = [
    "HDMM",
    "PrivateERM",
    "SVT with a history",
    "randomised response",
]


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


def has_name(name, text):
    """Whether the name occurs in a text by itself and not as part of another."""
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


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


@functools.cache
def module_docstring(path):
    return ast.get_docstring(ast.parse(path.read_text())) or ""


def test_the_table_was_read():
    assert len(ROWS) > 50
    assert all(len(row) == COLUMNS and row[0] for row in ROWS)


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


# --- and every row runs

CASE_OF = {case.name: case for case in CASES}
# Values for parameters that rows name without one: as (class or function, parameter) or parameter.
GIVEN = {
    ("MarginalSynthesizer", "workload"): "all",
    ("RangeTreeHistogram", "workload"): "all",
    ("DataCube", "weights"): {("sex",): 2, (): 1},
    ("PrivPfCClassifier", "shares"): [0.3, 0.1, 0.6],
    ("GridSynthesizer", "theta"): 5,
    ("PrivBayesSynthesizer", "theta"): 6,
    ("DPKMeans", "theta"): 5,
    ("SparseVector", "ratio"): 2,
    ("HDPViewSynthesizer", "ratio"): 0.8,
    **{"xi0": 50, "xi1": 2, "height": 3, "branching": 3, "answer_share": Fraction(1, 4)},
    **{"max_variance": 1e13, "gamma": 0.5, "alpha": 2, "beta": 1.5, "max_order": 2},
    **{"n_specializations": 2, "n_attributes": 2, "n_rounds": 2, "n_blocks": 5},
    **{"max_grids": 100, "n_clusters": [2, 3], "raise_by": 2, "n_records": 1000},
}
# Parameters with which they are quick.
QUICK = {
    "SampleAggregate": {"n_blocks": 5},
    "DataCube": {"dimensions": ["sex"]},
}
CALLS = {
    "discrete_laplace": lambda: mechanisms.discrete_laplace([3], 1),
    "exponential": lambda: mechanisms.exponential([3, 1], 1, 1),
    "noisy_max": lambda: mechanisms.noisy_max([3, 1], 1, 1),
    "usefulness": lambda **given: inspection.usefulness(10, 1.0, **given),
    "sufficient_epsilon": lambda: inspection.sufficient_epsilon(0.5, 0.9),
    "boost": lambda: hierarchy.boost([3.0, 1.0, 1.0], 2),
    "SparseVector": lambda **given: mechanisms.SparseVector(1, 5, 2, **given).query(9),
    "sparse_vector_top_k": lambda **given: mechanisms.sparse_vector_top_k(
        [9, 1, 8], 2, 1, 5, noise="two-sided", **given
    ),
    "top_k": lambda **given: mechanisms.top_k([9, 1, 8], 2, 1, 1, **given),
    "private_quantiles": lambda **given: private_quantiles(
        np.arange(50), [0.5], domain=(0, 50), **given
    ),
}


def settings_of(cell):
    """What a cell asks to be run: {class or function: its settings, one after the other}."""
    linked, asked = things(cell), {}
    for place, name, text in parameters(cell):
        owner = owner_of(name, place, linked)
        given = GIVEN.get((owner.__name__, name), GIVEN.get(name))
        value = ast.literal_eval(text) if text else given
        assert value is not None or text, f"no value for {name} of {owner.__name__}"
        asked.setdefault(owner, {}).setdefault(name, []).append(value)
    for _, thing in linked:
        names = asked.get(thing, {})
        yield (
            thing,
            [dict(zip(names, each, strict=True)) for each in itertools.product(*names.values())],
        )


@over("row", ROWS)
def test_a_row_runs(row):
    if "not implemented" in row[1]:
        pytest.skip("not implemented")
    for thing, each in settings_of(row[1]):
        case, call = CASE_OF.get(thing.__name__), CALLS.get(thing.__name__)
        for settings in each:
            if case is not None:
                more = QUICK.get(case.name, {})
                if settings.get("score_function") == "F":
                    more = case.branches["F"]
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    case.fit(case.make(**{**more, **settings}), people(200))
            elif call is not None:
                call(**settings)
            else:
                assert not settings, thing


def test_links_of_the_text_lead_somewhere():
    for row in ROWS:
        for cell in row[:3]:
            for target in re.findall(r":ref:`sphx_glr_auto_examples_(\w+\.py)`", cell):
                assert (ROOT / "examples" / target).exists(), target


def rows_named(name):
    found = [row for row in ROWS if has_name(name, row[0])]
    assert found, f"the table of the glossary does not name {name}"
    return found


@over("name", NOT_IMPLEMENTED)
def test_what_is_not_implemented_is_said_to_be(name):
    for row in rows_named(name):
        assert "not implemented" in row[1]


@over("name", NAMES)
def test_a_name_of_a_paper_is_in_the_table(name):
    for row in rows_named(name):
        assert not row[1].startswith("not implemented")
        assert things(row[1]) and row[2]


@over("name", [name for name in NAMES if name not in PARTS])
def test_the_module_of_an_algorithm_gives_its_name_in_the_paper(name):
    named = set()
    for _, cell, kernels in rows_named(name):
        named |= {thing.__name__ for _, thing in things(cell)}
        named |= set(re.findall(r"``(\w+)``", kernels))
    modules = set().union(*(definitions().get(each, set()) for each in named))
    assert any(has_name(name, module_docstring(path)) for path in modules), sorted(modules)


def test_what_does_not_exist_is_found():
    kernel = "``lloyd`` in ``algorithms/kmeans/dplloyd.py``"
    row = ["X", ":class:`~skdp.DPKMeans`, ``algorithm={}``", kernel]

    def changed(place, cell):
        return [*row[:place], cell, *row[place + 1 :]]

    check_row(changed(1, row[1].format('"lloyd"')))
    for broken in (
        changed(1, row[1].format('"no-such"')),
        changed(1, ":class:`~skdp.DPKMeans`, ``strategy=``"),
        changed(2, "``lloyd``"),
        changed(2, "``no_such_kernel`` in ``algorithms/kmeans/dplloyd.py``"),
        changed(2, "``lloyd`` in ``algorithms/kmeans/auto.py``"),
    ):
        with pytest.raises(AssertionError):
            check_row(broken)
    with pytest.raises(AttributeError):
        check_row(changed(1, ":class:`~skdp.NoSuchClass`"))
