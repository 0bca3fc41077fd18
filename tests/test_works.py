"""A reader of the five works finds every item, and what checks it: the table in `works.toml`."""

import ast
import importlib
import inspect
import re
import tomllib
from pathlib import Path

import pytest
from loops import over

import skdp

TESTS = Path(__file__).parent
TABLE = tomllib.loads((TESTS / "works.toml").read_text(encoding="utf-8"))
FIGURES = TABLE.pop("figures")
ITEMS = [(work, *row) for work, rows in TABLE.items() for row in rows]
# Items that are open, each with its reason, may only become fewer.
MOST_OPEN = 9


def found(name):
    """What a dotted name below skdp stands for."""
    here, *rest = name.split(".")
    thing = getattr(skdp, here)
    for part in rest:
        if inspect.ismodule(thing) and not hasattr(thing, part):
            thing = importlib.import_module(f"{thing.__name__}.{part}")
        else:
            thing = getattr(thing, part)
    return thing


@over("work, item, where, place, check", ITEMS)
def test_an_item_of_a_work_is_here_and_checked(work, item, where, place, check):
    tree = ast.parse(place, mode="eval").body
    thing = found(ast.unparse(tree.func if isinstance(tree, ast.Call) else tree))
    if isinstance(tree, ast.Call):
        parameters = inspect.signature(thing).parameters
        assert {ast.unparse(each) for each in tree.args} <= set(parameters), f"{item}: {place}"
    kind, _, rest = check.partition(" ")
    if kind == "open:":
        assert len(rest) > 20, f"{item} is open without a reason"
    elif kind == "figure":
        assert rest in FIGURES
    else:
        file, _, name = check.partition("::")
        text = (TESTS / f"{file}.py").read_text(encoding="utf-8")
        assert re.search(rf"^def {name}\(", text, re.MULTILINE), f"{item}: no test {check}"


def test_the_table_is_whole():
    shown = [figure for numbers in FIGURES.values() for figure in numbers]
    assert len(ITEMS) + len(shown) >= 150
    assert len({(work, item) for work, item, *_ in ITEMS}) == len(ITEMS)
    assert sum(check.startswith("open:") for *_, check in ITEMS) <= MOST_OPEN
    assert set(FIGURES) == set(pytest.importorskip("benchmarks.reproduce.__main__").figures())


def test_every_rival_is_reproduced_as_published():
    classification = pytest.importorskip("benchmarks.reproduce.classification")
    dpcube = pytest.importorskip("benchmarks.reproduce.dpcube")
    for name, method in classification.RELEASES.items():
        ours = name == "PrivPfC" or name.endswith("ours")
        given = getattr(method, "keywords", {}).get("calibration", "tight")
        assert given == ("tight" if ours else "paper")
    assert {given["calibration"] for given in dpcube.METHODS.values()} == {"paper"}
