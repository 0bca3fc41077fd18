"""The rules of the house that a parser can check: who may import whom, and what nobody may use.

Imports go down the list in `layers.toml`. A released object must not be able to hold private rows:
the package that defines it does not import, even indirectly, the one for rows and exact counts.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from loops import over

import skdp

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "skdp"

LAYERS = tomllib.loads((PACKAGE.parent / "layers.toml").read_text(encoding="utf-8"))["layer"]
# From the roof to the ground.
ORDER = [layer["module"] for layer in LAYERS]
ESTIMATORS = {layer["module"] for layer in LAYERS if layer.get("estimator")}
RELEASES = {layer["module"] for layer in LAYERS if layer.get("release")}

# Libraries that one module alone may touch.
ONLY_IN = {
    # The second reads the schema of a frame, never a value.
    "narwhals": {"skdp.tables", "skdp.domain.schemas"},
    "polars": {"skdp.tables"},
    "pyarrow": {"skdp.tables", "skdp.app.parquet"},
    "duckdb": {"skdp.tables", "skdp.app.parquet"},
    "dask": {"skdp.tables"},
    "pyspark": {"skdp.tables"},
    "sqlite3": {"skdp.accounting"},
    "pickle": set(),
    "random": {"skdp._random"},
    "secrets": {"skdp._random"},
    "numpy.random": {"skdp._random"},
    "scipy.stats.qmc": {"skdp._random"},
}
# Calls and attributes that make randomness without importing a generator.
RANDOM_ATTRIBUTES = {"urandom", "getrandom", "default_rng", "rvs", "check_random_state"}
PRIVATE_SKLEARN = {"_fit_context", "_parameter_constraints", "_validate_params"}


def place(module):
    """Position in the list of the module or of the package it is in; KeyError without an entry."""
    name = module if module == "skdp" else unit(module)
    if name not in ORDER:
        raise KeyError(f"{module} has no place: add {name} to layers.toml")
    return ORDER.index(name)


def unit(module):
    """First two parts of a name: the module, or the package that it is in."""
    return ".".join(module.split(".")[:2])


@dataclass
class Source:
    name: str
    tree: ast.Module
    is_package: bool = False

    @classmethod
    def read(cls, path):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        return cls(name, ast.parse(path.read_text(encoding="utf-8")), is_package)

    def resolve(self, node):
        """Absolute name of the module in a `from ... import` statement."""
        if not node.level:
            return node.module
        parts = self.name.split(".")
        base = parts[: len(parts) - node.level + self.is_package]
        return ".".join([*base, node.module] if node.module else base)

    def on_loading(self):
        """Import statements that run when the module is loaded."""
        todo = [self.tree]
        while todo:
            node = todo.pop()
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield node
            elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                todo += node.orelse
            elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                todo += ast.iter_child_nodes(node)

    def imported(self, nodes=None):
        """(node, absolute dotted name) of everything imported anywhere, lazily or not."""
        for node in ast.walk(self.tree) if nodes is None else nodes:
            if isinstance(node, ast.Import):
                yield from ((node, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                module = self.resolve(node)
                yield from ((node, f"{module}.{alias.name}") for alias in node.names)

    def edges(self, modules, nodes=None):
        """Modules of skdp imported here, given the set of all module names."""
        found = set()
        for _, name in self.imported(nodes):
            if name.split(".")[0] != "skdp":
                continue
            while name not in modules:
                name = name.rpartition(".")[0]
            found.add(name)
        return found - {self.name}

    def aliases(self):
        """Local names bound to modules or objects of other libraries: {local: dotted name}."""
        bound = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    local = alias.asname or alias.name.split(".")[0]
                    bound[local] = alias.name if alias.asname else local
            elif isinstance(node, ast.ImportFrom):
                module = self.resolve(node)
                for alias in node.names:
                    bound[alias.asname or alias.name] = f"{module}.{alias.name}"
        return bound


@functools.cache
def sources():
    return [Source.read(path) for path in sorted(PACKAGE.rglob("*.py"))]


def graph_of(modules):
    names = {source.name for source in modules}
    return {source.name: source.edges(names) for source in modules}


def circles(modules):
    """Modules that cannot be loaded without having been loaded."""
    names = {source.name for source in modules}
    graph = {source.name: source.edges(names, list(source.on_loading())) for source in modules}
    return [module for module in graph if module in reachable(graph, module)]


def reachable(graph, start):
    seen, todo = set(), [start]
    while todo:
        for target in graph.get(todo.pop(), ()):
            # The top level holds names only, and loads everything.
            if target not in seen and target != "skdp":
                seen.add(target)
                todo.append(target)
    return seen


def dotted(node, bound):
    """Full name of a chain of attributes on an imported name, or None."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name) and node.id in bound:
        return ".".join([bound[node.id], *reversed(parts)])
    return None


def generator_types(tree, bound):
    """Nodes of annotations that name the class of a generator: it may be passed on, not made."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign):
            annotation = node.annotation
        else:
            annotation = getattr(node, "returns", None)
        for part in ast.walk(annotation) if annotation else ():
            if dotted(part, bound) == "numpy.random.Generator":
                found.update(ast.walk(part))
    return found


def layer_faults(graph):
    """Violations of the layer rule, as sentences."""
    faults = []
    for module, targets in graph.items():
        for target in sorted(targets):
            edge = (unit(module), unit(target))
            if edge[0] == edge[1] and edge[0] != "skdp":
                continue
            if place(target) <= place(module):
                faults.append(f"{module} must not import {target}: it does not stand below it")
            if {*edge} <= ESTIMATORS:
                faults.append(f"{module} must not import {target}: both define estimators")
    for module in graph:
        reached = {unit(target) for target in reachable(graph, module)}
        if unit(module) in RELEASES and "skdp.tables" in reached:
            faults.append(f"{module} reaches skdp.tables: a release could hold rows")
    return faults


def use_faults(source):
    """Uses of names that are private, random or reserved for one module, as sentences."""
    faults = []

    def fault(node, text):
        faults.append(f"{source.name}:{node.lineno}: {text}")

    def check_name(node, name):
        parts = name.split(".")
        if parts[0] == "sklearn":
            private = [p for p in parts[1:] if p.startswith("_") and not p.startswith("__")]
            if private:
                fault(node, f"{name} is private to scikit-learn")
        for library, owners in ONLY_IN.items():
            allowed = {source.name, unit(source.name)} & owners
            if (name + ".").startswith(library + ".") and not allowed:
                fault(node, f"{library} is used outside {sorted(owners) or 'this library'}")
        if parts[0] != "skdp" and parts[-1] in RANDOM_ATTRIBUTES and outside_random:
            fault(node, f"{name} makes randomness outside skdp._random")
        # These name what they import in a table, which tests below compare.
        by_string = name in ("importlib.import_module", "importlib.__import__")
        if by_string and source.name not in ("skdp", "skdp.synthesis"):
            fault(node, "an import by string hides from these tests")

    outside_random = source.name != "skdp._random"
    bound = source.aliases()
    types = generator_types(source.tree, bound)
    for node, name in source.imported():
        check_name(node, name)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute):
            name = dotted(node, bound)
            if node in types:
                continue
            if name is not None:
                check_name(node, name)
            elif node.attr in RANDOM_ATTRIBUTES and outside_random:
                fault(node, f".{node.attr} makes randomness outside skdp._random")
            if node.attr in PRIVATE_SKLEARN:
                fault(node, f"{node.attr} is private to scikit-learn")
        elif isinstance(node, ast.Name):
            if node.id in PRIVATE_SKLEARN:
                fault(node, f"{node.id} is private to scikit-learn")
            if node.id == "__import__":
                fault(node, "an import by string hides from these tests")
        elif isinstance(node, ast.FunctionDef) and node.name in PRIVATE_SKLEARN:
            fault(node, f"{node.name} is private to scikit-learn")
        elif isinstance(node, ast.Constant) and node.value in PRIVATE_SKLEARN:
            fault(node, f"{node.value} is private to scikit-learn")
    return faults


def plotting_faults(source):
    """Imports of matplotlib or of skdp.plotting outside the body of a plot method."""
    allowed = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef) and "plot" in node.name:
            allowed.update(ast.walk(node))
    return [
        f"{source.name}:{node.lineno}: {name} is imported outside a plot method"
        for node, name in source.imported()
        if name.startswith(("matplotlib", "skdp.plotting"))
        and node not in allowed
        and source.name not in ("skdp.plotting", "skdp.demo", "skdp.app.views")
    ]


# The package as it is


def test_the_list_is_that_of_the_modules():
    assert sorted(ORDER) == sorted({unit(source.name) for source in sources()})
    assert len(set(ORDER)) == len(ORDER)
    assert LAYERS[0]["about"]


def test_contributing_shows_the_list():
    text = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = []
    for layer in LAYERS:
        if "about" in layer:
            rows.append(([], layer["about"]))
        rows[-1][0].append(f"`{layer['module']}`")
    # To be pasted where the list has changed.
    assert "\n".join(f"| {', '.join(names)} | {about} |" for names, about in rows) in text
    assert len(rows) <= 30


def test_the_walks_of_contributing_go_through_what_is_there():
    text = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    steps = re.findall(r"`([\w/]+\.py)::([\w.]+)`", text)
    assert len(steps) > 20
    assert not [step for step in steps if not defined(*step)]


def defined(path, name):
    """Whether a function, class or constant, or something in a class, is defined in a file."""
    body = ast.parse((PACKAGE / path).read_text(encoding="utf-8")).body
    for part in name.split("."):
        found = [each for each in body if part in names_of(each)]
        if not found:
            return False
        body = getattr(found[0], "body", [])
    return True


def names_of(node):
    """What a statement defines."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return {target.id for target in targets if isinstance(target, ast.Name)}
    return {getattr(node, "name", None)}


@over("path", sorted(PACKAGE.rglob("*/__init__.py")))
def test_a_package_says_what_each_of_its_modules_is_for(path):
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    inside = {each.stem for each in path.parent.glob("*.py")} - {"__init__"}
    inside |= {each.parent.name for each in path.parent.glob("*/__init__.py")}
    assert not [name for name in inside if f"`{name}`" not in text]


def test_contributing_says_where_tests_are():
    text = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:[\w/]+/)?(test_\w+)(?:\.py)?`", text))
    tests = {path.stem for path in TESTS.rglob("test_*.py")}
    assert not named - tests
    modules = {f"test_{path.stem.strip('_')}" for path in PACKAGE.rglob("*")}
    assert not tests - named - modules


def test_imports_go_downward():
    assert not layer_faults(graph_of(sources()))


def test_no_module_needs_itself():
    assert not circles(sources())


def test_the_graph_is_not_empty():
    # A parser that finds no import would find no fault either.
    graph = graph_of(sources())
    assert "skdp.exceptions" in graph["skdp.accounting"]
    assert "skdp.tables.counts" in reachable(graph, "skdp.cluster")
    assert sum(map(len, graph.values())) > 20


@over("source", sources())
def test_no_private_or_reserved_names(source):
    assert not use_faults(source) + plotting_faults(source)


def test_types_are_checked_everywhere_else():
    config = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["tool"]["mypy"]
    assert config["files"] == ["skdp"] and config["disallow_untyped_defs"]
    for key, option in (("untyped", "ignore_errors"), ("unannotated", "disallow_untyped_defs")):
        (listed,) = (entry["module"] for entry in config["overrides"] if option in entry)
        expected = [layer["module"] for layer in LAYERS if layer.get(key)]
        assert sorted({module.removesuffix(".*") for module in listed}) == sorted(expected)


def test_the_top_level_imports_each_name_when_it_is_asked_for():
    top = Source.read(PACKAGE / "__init__.py")
    loaded = [name for _, name in top.imported(top.on_loading())]
    assert {name.partition(".")[0] for name in loaded} == {"__future__", "importlib", "typing"}
    (typed,) = (node for node in top.tree.body if isinstance(node, ast.If))
    homes = {
        node.module: tuple(alias.name for alias in node.names)
        for node in typed.body
        if isinstance(node, ast.ImportFrom)
    }
    assert homes == skdp._HOMES
    assert sorted(name for names in homes.values() for name in names) == sorted(skdp.__all__)


def test_the_top_level_gives_names_and_packages():
    statement = (
        "import sys, skdp\n"
        "assert not any(name.startswith('skdp.') for name in sys.modules)\n"
        "assert set(skdp.__all__) | set(skdp._PACKAGES) <= set(dir(skdp))\n"
        "for name in skdp.__all__: assert getattr(skdp, name).__name__ == name, name\n"
        "for name in skdp._PACKAGES: assert getattr(skdp, name).__name__ == 'skdp.' + name\n"
        "assert not hasattr(skdp, 'no_such_name')"
    )
    subprocess.run([sys.executable, "-c", statement], check=True, cwd=PACKAGE.parent)


def test_a_synthesizer_loads_no_other():
    statement = (
        "import sys, skdp.synthesis as s\n"
        "home = lambda name: s._HOMES.get(name, 'boxes')\n"
        "s.MarginalSynthesizer\n"
        "assert not {f'skdp.synthesis.{home(name)}' for name in s.__all__\n"
        "    if name != 'MarginalSynthesizer'} & set(sys.modules)\n"
        "import skdp\n"
        "assert s.__all__ == [name for name in skdp.__all__ if name.endswith('Synthesizer')]\n"
        "for name in s.__all__:\n"
        "    assert getattr(s, name).__module__ == f'skdp.synthesis.{home(name)}'\n"
        "assert not hasattr(s, 'no_such_name')"
    )
    subprocess.run([sys.executable, "-c", statement], check=True, cwd=PACKAGE.parent)


# The rules themselves, on modules that break them


def parsed(name, code):
    return Source(name, ast.parse(code))


@over(
    "name, code",
    [
        ("skdp.domain", "from skdp.tables import CountTable"),
        ("skdp.domain", "from .synthesis import HDPViewSynthesizer"),
        ("skdp.domain", "def f():\n    import skdp.tables"),
        (
            "skdp.domain",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import tables",
        ),
        ("skdp.domain", "from skdp import Domain"),
        ("skdp.accounting", "from .tables import Frame"),
        ("skdp.mechanisms", "from .hierarchy import x"),
        ("skdp.release", "from .synopsis import Synopsis"),
        ("skdp.release", "from .tables import CountTable"),
        ("skdp.cluster", "from .synthesis import GridSynthesizer"),
        ("skdp.synthesis", "from .cluster import DPKMeans"),
        ("skdp.compose", "from .model_selection import x"),
        ("skdp.exceptions", "from . import _validation"),
    ],
)
def test_layer_rule_refuses(name, code):
    others = [parsed(module, "") for module in ORDER if module != name]
    assert layer_faults(graph_of([parsed(name, code), *others]))


@over(
    "name, code",
    [
        ("skdp.synthesis", "from .base import Base\nfrom .algorithms.hdpview import hdpview"),
        ("skdp.mechanisms", "from skdp.mechanisms.laplace import discrete_laplace"),
        ("skdp.tables", "import numpy as np\nfrom .domain import Domain"),
        ("skdp", "from skdp.domain import Domain"),
    ],
)
def test_layer_rule_accepts(name, code):
    extra = ["skdp.algorithms.hdpview", "skdp.mechanisms.laplace"]
    others = [parsed(module, "") for module in [*ORDER, *extra] if module != name]
    assert not layer_faults(graph_of([parsed(name, code), *others]))


def test_releases_cannot_reach_rows_through_another_module():
    chain = [
        parsed("skdp.release", "from .domain import Domain"),
        parsed("skdp.domain", "from .mechanisms import f"),
        parsed("skdp.mechanisms", "from . import tables"),
        parsed("skdp.tables", ""),
    ]
    assert any(
        "skdp.release reaches skdp.tables" in fault for fault in layer_faults(graph_of(chain))
    )


def test_circles_are_found():
    noise = parsed("skdp.mechanisms.laplace", "from .selection import f")
    selection = parsed("skdp.mechanisms.selection", "from .laplace import g")
    third = parsed("skdp.mechanisms._third", "class A:\n    from .laplace import g")
    assert circles([noise, selection, third]) == [noise.name, selection.name]


@over(
    "code",
    [
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .laplace import g",
        "def f():\n    from .laplace import g",
        "from ._third import g",
    ],
)
def test_circles_need_imports_that_run_on_loading(code):
    noise = parsed("skdp.mechanisms.laplace", "from .selection import f")
    third = parsed("skdp.mechanisms._third", "")
    assert not circles([noise, third, parsed("skdp.mechanisms.selection", code)])


def test_a_module_without_a_place_fails():
    with pytest.raises(KeyError, match="has no place"):
        place("skdp.brand_new")
    with pytest.raises(KeyError, match="has no place"):
        place("skdp.brand_new.part")
    assert place("skdp.mechanisms.laplace") == ORDER.index("skdp.mechanisms")


@over(
    "code",
    [
        # private parts of scikit-learn
        "from sklearn.base import _fit_context",
        "from sklearn.utils._param_validation import Interval",
        "import sklearn.utils._tags",
        "from sklearn.utils import _safe_indexing",
        "import sklearn.utils as u\nu._safe_indexing(X, 0)",
        "import sklearn.tree\nsklearn.tree._tree.DOUBLE",
        "class E:\n    _parameter_constraints = {}",
        "class E:\n    _parameter_constraints: dict = {}",
        "class E:\n    def fit(self):\n        self._validate_params()",
        "class E:\n    def _validate_params(self):\n        pass",
        "getattr(estimator, '_validate_params')()",
        # randomness
        "import random",
        "from random import choice",
        "import secrets",
        "def f():\n    import secrets",
        "import numpy as np\nnp.random.default_rng()",
        "import numpy\nnumpy.random.normal()",
        "from numpy import random as r\nr.normal()",
        "from numpy.random import Generator",
        "import numpy.random as npr",
        "import numpy as np\ndef f(rng=np.random.Generator(bits)): ...",
        "import numpy as np\ndef f(rng: np.random.Philox): ...",
        "import os\nos.urandom(8)",
        "from os import urandom",
        "from scipy import stats\nstats.norm.rvs(3)",
        "distribution.rvs(3)",
        "from sklearn.utils import check_random_state",
        # what one module alone may touch, and imports that hide
        "import narwhals.stable.v2 as nw",
        "import polars",
        "import sqlite3",
        "import pickle",
        "import importlib\nimportlib.import_module('skdp.counts')",
        "__import__('random')",
    ],
)
def test_bans_refuse(code):
    assert use_faults(parsed("skdp.cluster", code))


@over(
    "name, code",
    [
        (
            "skdp._random",
            "import secrets\nimport numpy as np\nnp.random.Generator(np.random.Philox())",
        ),
        ("skdp._random", "import os\nos.urandom(8)"),
        ("skdp.tables", "import narwhals.stable.v2 as nw"),
        ("skdp.accounting", "import sqlite3"),
        ("skdp.cluster", "import sklearn\nsklearn.__version__\nself._validate_rows()"),
        (
            "skdp.cluster",
            "from sklearn.utils import get_tags\nfrom sklearn.base import BaseEstimator",
        ),
        ("skdp.cluster", "import numpy as np\nnp.linalg.norm(self.random_state)"),
        ("skdp.cluster", "from skdp._random import sampling_generator"),
        ("skdp.cluster", "import numpy as np\ndef f(rng: np.random.Generator | None) -> int: ..."),
    ],
)
def test_bans_accept(name, code):
    assert not use_faults(parsed(name, code))


def test_pictures_are_drawn_only_on_demand():
    bad = parsed("skdp.release", "import matplotlib.pyplot as plt")
    lazy = parsed("skdp.release", "def plot(self):\n    from skdp import plotting")
    elsewhere = parsed("skdp.release", "def fit(self):\n    from . import plotting")
    assert plotting_faults(bad) and plotting_faults(elsewhere)
    assert not plotting_faults(lazy)


def undeclared(source, needed, optional):
    """Libraries that are imported and not declared: those of extras may be imported when needed."""
    on_loading = set() if source.name == "skdp.demo" else {*source.on_loading()}
    found = set()
    for node, name in source.imported():
        library = name.partition(".")[0]
        if library not in (needed if node in on_loading else needed | optional):
            found.add(library)
    return found - {*sys.stdlib_module_names, "skdp"}


def test_imports_are_declared():
    # The check of the wheel does not see one that comes with a declared library.
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]
    modules = {"scikit-learn": "sklearn"}

    def declared(lines):
        names = (re.match(r"[\w-]+", line)[0] for line in lines)
        return {modules.get(name, name) for name in names}

    extras = project["optional-dependencies"]
    needed = declared(project["dependencies"])
    optional = declared(line for name in extras if name != "dev" for line in extras[name])
    assert not {source.name: found for source in sources()
                if (found := undeclared(source, needed, optional))}  # fmt: skip
    for code in ("import jinja2", "import dateutil", "def f():\n    import dateutil"):
        assert undeclared(Source("skdp.domain.x", ast.parse(code)), needed, optional)
    lazily = Source("skdp.domain.x", ast.parse("def f():\n    import jinja2"))
    assert not undeclared(lazily, needed, optional)
