"""The rules of the house that a parser can check: who may import whom, and what nobody may use.

Imports go strictly downward by level. A released object must not be able to hold private rows:
the modules that define it do not import, even indirectly, the one that holds exact counts.
"""

from __future__ import annotations

import ast
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "skdp"

# A package stands for everything in it: its modules share its level.
LEVELS = {
    "skdp.exceptions": 0,
    "skdp._random": 0,
    "skdp._types": 0,
    "skdp._arrays": 0,
    "skdp._validation": 0,
    "skdp.mechanisms": 1,
    "skdp.accounting": 1,
    "skdp.frames": 1,
    "skdp.engines": 1,
    "skdp.plotting": 1,
    "skdp._archive": 2,
    "skdp.domain": 2,
    "skdp.queries": 3,
    "skdp.hierarchy": 3,
    "skdp.forest": 3,
    "skdp.synopsis": 3,
    "skdp.counts": 3,
    "skdp.partition": 4,
    "skdp.pairviews": 4,
    "skdp.cuboids": 4,
    # What all estimators share: above the kernels, below every estimator.
    "skdp._base": 4.5,
    # What is known of the objects of others; knows none of ours.
    "skdp._foreign": 4.6,
    # What a composed estimator reads and spends, known by protocol.
    "skdp._steps": 4.75,
    # Compares codes with codes; knows no estimator.
    "skdp.quality": 4.75,
    "skdp.synthesis": 5,
    "skdp.histogram": 5,
    "skdp.preprocessing": 5,
    "skdp.datacube": 5,
    "skdp.cluster": 5,
    "skdp.selection": 5,
    "skdp.classification": 5,
    "skdp.compose": 6,
    "skdp.model_selection": 6,
    "skdp.inspection": 7,
    "skdp.audit": 7,
    # The public names, and the command line that uses them.
    "skdp": 8,
    "skdp.demo": 9,
    "skdp.__main__": 9,
}

# Edges on one level, each with its reason.
SIDEWAYS = {
    ("skdp.mechanisms", "skdp.accounting"): "a sparse vector is charged when it is made",
    ("skdp.engines", "skdp.frames"): "the same kinds of columns, in memory or in an engine",
    ("skdp.synopsis", "skdp.forest"): "one interface over boxes or a forest",
    ("skdp.synopsis", "skdp.queries"): "both releases read the same query language",
    ("skdp.forest", "skdp.queries"): "both releases read the same query language",
    ("skdp._random", "skdp.exceptions"): "the warning about seeds",
    ("skdp._random", "skdp._types"): "the names of arrays",
    ("skdp._random", "skdp._validation"): "the wording of errors",
    ("skdp._validation", "skdp.exceptions"): "errors raised by the checks",
}

# Modules that define estimators: none imports another.
ESTIMATORS = {
    "skdp.synthesis",
    "skdp.histogram",
    "skdp.preprocessing",
    "skdp.datacube",
    "skdp.cluster",
    "skdp.selection",
    "skdp.classification",
    "skdp.compose",
}

# What is released, and what it must not be able to hold.
RELEASES = {"skdp.synopsis", "skdp.forest", "skdp.queries"}

# Libraries that one module alone may touch.
ONLY_IN = {
    "narwhals": {"skdp.frames", "skdp.engines"},
    "polars": {"skdp.frames"},
    "pyarrow": {"skdp.frames"},
    "duckdb": {"skdp.engines"},
    "dask": {"skdp.engines"},
    "pyspark": {"skdp.engines"},
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


def level_of(module):
    """Level of the module or of the package it is in; KeyError if nobody declared it."""
    name = module
    while name not in LEVELS or (name == "skdp" and module != "skdp"):
        name = name.rpartition(".")[0]
        if name in ("", "skdp"):
            raise KeyError(f"{module} has no level: add it to LEVELS in tests/test_layers.py")
    return LEVELS[name]


def unit(module):
    """First two parts of a name: the module, or the package whose level it shares."""
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


def reachable(graph, start, without=()):
    seen, todo = set(), [start]
    while todo:
        for target in graph.get(todo.pop(), ()):
            if target not in seen and unit(target) not in without:
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
            inside = edge[0] == edge[1] and edge[0] != "skdp"
            downward = level_of(target) < level_of(module)
            if not (inside or downward or edge in SIDEWAYS or module == "skdp"):
                faults.append(f"{module} must not import {target}: not a lower layer")
            if edge[0] != edge[1] and {*edge} <= ESTIMATORS:
                faults.append(f"{module} must not import {target}: both define estimators")
    for module in sorted(RELEASES & set(graph)):
        if "skdp.counts" in reachable(graph, module):
            faults.append(f"{module} reaches skdp.counts: a release could hold exact counts")
        if "skdp.frames" in reachable(graph, module, without={"skdp.domain"}):
            faults.append(f"{module} reaches skdp.frames: a release could hold rows")
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
            if (name + ".").startswith(library + ".") and unit(source.name) not in owners:
                fault(node, f"{library} is used outside {sorted(owners) or 'this library'}")
        if parts[0] != "skdp" and parts[-1] in RANDOM_ATTRIBUTES and outside_random:
            fault(node, f"{name} makes randomness outside skdp._random")
        if name in ("importlib.import_module", "importlib.__import__"):
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
        and source.name not in ("skdp.plotting", "skdp.demo", "skdp.__main__")
    ]


# The package as it is


def test_every_module_has_a_level():
    for source in sources():
        level_of(source.name)


def test_imports_go_downward():
    assert not layer_faults(graph_of(sources()))


def test_no_module_needs_itself():
    assert not circles(sources())


def test_the_graph_is_not_empty():
    # A parser that finds no import would find no fault either.
    graph = graph_of(sources())
    assert "skdp.exceptions" in graph["skdp.accounting"]
    assert "skdp.counts" in reachable(graph, "skdp.synthesis")
    assert sum(map(len, graph.values())) > 20


@pytest.mark.parametrize("source", sources(), ids=lambda source: source.name)
def test_no_private_or_reserved_names(source):
    assert not use_faults(source) + plotting_faults(source)


def test_types_are_checked_below_the_estimators():
    config = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["tool"]["mypy"]
    assert config["files"] == ["skdp"] and config["disallow_untyped_defs"]
    (exempt,) = (entry["module"] for entry in config["overrides"] if entry["ignore_errors"])
    high = {module for module, level in LEVELS.items() if level > 4 and module != "skdp"}
    # Typed all the same.
    high -= {"skdp._foreign", "skdp._steps", "skdp.audit", "skdp.histogram", "skdp.selection"}
    assert {module.removesuffix(".*") for module in exempt} == high


def test_the_top_level_holds_only_names():
    tree = Source.read(PACKAGE / "__init__.py").tree
    kinds = (ast.Import, ast.ImportFrom, ast.Assign)
    docstring, *body = tree.body
    assert isinstance(docstring, ast.Expr)
    assert all(isinstance(node, kinds) for node in body)


# The rules themselves, on modules that break them


def parsed(name, code):
    return Source(name, ast.parse(code))


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("skdp.domain", "from skdp.counts import CountTable"),
        ("skdp.domain", "from .synthesis import HDPViewSynthesizer"),
        ("skdp.domain", "def f():\n    import skdp.counts"),
        (
            "skdp.domain",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import counts",
        ),
        ("skdp.domain", "from skdp import Domain"),
        ("skdp.accounting", "from .frames import rows"),
        ("skdp.hierarchy", "from .forest import x"),
        ("skdp.forest", "from .synopsis import Synopsis"),
        ("skdp.synopsis", "from .counts import CountTable"),
        ("skdp.synopsis", "from .frames import columns"),
        ("skdp.cluster", "from .synthesis import GridSynthesizer"),
        ("skdp.compose", "from .synthesis import GridSynthesizer"),
        ("skdp.exceptions", "from . import _validation"),
    ],
)
def test_layer_rule_refuses(name, code):
    others = [parsed(module, "") for module in LEVELS if module != name]
    assert layer_faults(graph_of([parsed(name, code), *others]))


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("skdp.synopsis", "from skdp.forest import Forest\nfrom .queries import parse"),
        ("skdp.synthesis", "from ._base import Base\nfrom .partition.hdpview import hdpview"),
        ("skdp.mechanisms", "from skdp.mechanisms._noise import discrete_laplace"),
        ("skdp.counts", "import numpy as np\nfrom .domain import Domain"),
        ("skdp", "from skdp.domain import Domain"),
    ],
)
def test_layer_rule_accepts(name, code):
    extra = ["skdp.partition.hdpview", "skdp.mechanisms._noise"]
    others = [parsed(module, "") for module in [*LEVELS, *extra] if module != name]
    assert not layer_faults(graph_of([parsed(name, code), *others]))


def test_releases_cannot_reach_counts_through_another_module():
    chain = [
        parsed("skdp.synopsis", "from .forest import Forest"),
        parsed("skdp.forest", "from .domain import Domain"),
        parsed("skdp.domain", "from .counts import CountTable"),
        parsed("skdp.counts", ""),
    ]
    faults = layer_faults(graph_of(chain))
    assert any("skdp.synopsis reaches skdp.counts" in fault for fault in faults)
    assert any("skdp.forest reaches skdp.counts" in fault for fault in faults)


def test_releases_may_reach_frames_only_inside_the_domain():
    domain = [parsed("skdp.domain", "from . import frames"), parsed("skdp.frames", "")]
    fine = parsed("skdp.synopsis", "from .domain import Domain")
    assert not layer_faults(graph_of([fine, *domain]))
    around = [
        parsed("skdp.synopsis", "from .domain import Domain\nfrom .mechanisms import f"),
        parsed("skdp.mechanisms", "from . import frames"),
    ]
    assert any("reaches skdp.frames" in fault for fault in layer_faults(graph_of(around + domain)))


def test_circles_are_found():
    noise = parsed("skdp.mechanisms._noise", "from ._selection import f")
    selection = parsed("skdp.mechanisms._selection", "from ._noise import g")
    third = parsed("skdp.mechanisms._third", "class A:\n    from ._noise import g")
    assert circles([noise, selection, third]) == [noise.name, selection.name]


@pytest.mark.parametrize(
    "code",
    [
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ._noise import g",
        "def f():\n    from ._noise import g",
        "from ._third import g",
    ],
)
def test_circles_need_imports_that_run_on_loading(code):
    noise = parsed("skdp.mechanisms._noise", "from ._selection import f")
    third = parsed("skdp.mechanisms._third", "")
    assert not circles([noise, third, parsed("skdp.mechanisms._selection", code)])


def test_a_module_without_a_level_fails():
    with pytest.raises(KeyError, match="has no level"):
        level_of("skdp.brand_new")
    with pytest.raises(KeyError, match="has no level"):
        level_of("skdp.brand_new.part")
    assert level_of("skdp.mechanisms._noise") == LEVELS["skdp.mechanisms"]


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (
            "skdp._random",
            "import secrets\nimport numpy as np\nnp.random.Generator(np.random.Philox())",
        ),
        ("skdp._random", "import os\nos.urandom(8)"),
        ("skdp.frames", "import narwhals.stable.v2 as nw"),
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
    bad = parsed("skdp.synopsis", "import matplotlib.pyplot as plt")
    lazy = parsed("skdp.synopsis", "def plot(self):\n    from skdp import plotting")
    elsewhere = parsed("skdp.synopsis", "def fit(self):\n    from . import plotting")
    assert plotting_faults(bad) and plotting_faults(elsewhere)
    assert not plotting_faults(lazy)
