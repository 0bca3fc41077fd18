"""The pages of the API reference, made from the public names of the package.

A name belongs to the section of the module that defines it. A module without a section is an
error, so that nothing public can be missing from the reference.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import shutil
import tomllib
from pathlib import Path

from sklearn.base import BaseEstimator

# Title and what the section is about. Which modules a section holds is said in layers.toml.
SECTIONS = {
    "The public domain": "What is known without reading a record: columns, ranges, categories.",
    "Releases": (
        "Estimators that release a private synopsis of a table: run queries on it, draw synthetic "
        "rows from it, train on it."
    ),
    "Histograms and cubes": "Estimators that release counts of a few columns with the least error.",
    "Clustering and classification": "Estimators made for one task.",
    "Selection": "Which features are most informative, which items are most frequent.",
    "The released object": (
        "What a synthesizer publishes, and how to query it. All its methods are free."
    ),
    "Models": "Models fitted to the records with noise in every sum; they can be read and edited.",
    "Training on a release": (
        "Any scikit-learn estimator, trained on a release instead of on the records."
    ),
    "Model selection": (
        "Scores, folds and searches, private as well. They are in ``skdp.model_selection``."
    ),
    "Preprocessing": "Means, spreads and quantiles of columns, learned with noise.",
    "Accounting": "What a release costs, and what may be spent on one data set.",
    "Errors and warnings": (
        "Errors about the schema, parameters and the ledger come before a value is read, and cost "
        "nothing. :doc:`skdp.exceptions <skdp.exceptions>` has those that may come later, too."
    ),
}

STABILITY = """\
**Stability of 1.x.** A public name, parameter, default or file keeps its meaning from one version
1.x to the next. What has to go warns with a ``FutureWarning`` in two releases before, and says what
to use instead. Files of releases and ledgers of any version 1.x can be read by all later ones. What
may change in any release: random results with equal seeds, widths of intervals, pages and pictures,
wordings, how epsilon is divided, and what a privacy bug makes necessary, which is done at once.
"""

_LAYERS = Path(__file__).resolve().parent.parent / "layers.toml"

# Public modules whose names are not all in the top level of the package: {module: title}.
MODULES = {
    "skdp.mechanisms": "Noise and selection",
    "skdp.audit": "Audits and replays",
    "skdp.quality": "Quality of synthetic rows",
    "skdp.workloads": "Workloads",
    "skdp.hierarchy": "Trees of counts",
    "skdp.exceptions": "Errors and warnings",
    "skdp.inspection": "Privacy reports and expected errors",
    "skdp.release": "Parts of the released object",
    "skdp.additive": "Additive models and their functions",
    "skdp.tree": "Trees",
}

# Public names outside the top level that have pages of their own: all of these modules, except of
# the domain, whose other names appear in results only.
OUTSIDE = {
    "model_selection": None,
    "datacube": None,
    "preprocessing": ("QuantileResult",),
}

# Methods that scikit-learn adds to every estimator; its own documentation explains them.
_INHERITED = {"get_params", "set_params", "get_metadata_routing", "set_output", "fit_transform"}


def public_names():
    """{name: object} of all names with pages of their own, as they follow ``skdp.``."""
    package = importlib.import_module("skdp")
    found = {name: getattr(package, name) for name in package.__all__}
    for home, names in OUTSIDE.items():
        module = importlib.import_module(f"skdp.{home}")
        for name in names or module.__all__:
            if name not in package.__all__:
                found[f"{home}.{name}"] = getattr(module, name)
    return found


def sections():
    """[(title, text, names)] in the order of the reference, every public name exactly once."""
    layers = tomllib.loads(_LAYERS.read_text(encoding="utf-8"))["layer"]
    home = {layer["module"]: layer["section"] for layer in layers if "section" in layer}
    names = {title: [] for title in SECTIONS}
    for name, thing in sorted(public_names().items()):
        # A package stands for everything in it.
        module = ".".join(thing.__module__.split(".")[:2])
        if home.get(module) not in names:
            raise LookupError(
                f"skdp.{name} is defined in {module}, which has no section: name one of those in "
                "docs/_api.py in its entry in layers.toml."
            )
        names[home[module]].append(name)
    return [(title, text, names[title]) for title, text in SECTIONS.items() if names[title]]


def summary(thing):
    """First sentence of a docstring."""
    return " ".join(inspect.getdoc(thing).split("\n\n")[0].split())


def methods(cls):
    """Public methods and properties that this library defines, in the order of the source."""
    found = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("skdp."):
            for name, member in vars(base).items():
                wanted = inspect.isroutine(member) or isinstance(
                    member, property | classmethod | staticmethod
                )
                if hasattr(member, "__wrapped__") or hasattr(member, "fn"):
                    wanted = True  # decorated, such as with `available_if`
                request = name.startswith("set_") and name.endswith("_request")
                if wanted and not (name.startswith("_") or name in _INHERITED or request):
                    found[name] = None
    return [name for name in found if inspect.getdoc(getattr(cls, name, None))]


def heading(text, line="="):
    """Title with its underline."""
    return f"{text}\n{line * len(text)}\n"


def table(rows):
    """Two columns: a link and a sentence."""
    lines = [".. list-table::", "   :widths: 35 65", "   :class: autosummary", ""]
    for role, target, text in rows:
        lines += [f"   * - :{role}:`~{target}`", f"     - {text}"]
    return "\n".join(lines) + "\n"


def toctree(caption, names):
    """Hidden table of contents of the pages below a page, with its title in the sidebar."""
    head = [".. toctree::", "   :hidden:", f"   :caption: {caption}", ""]
    return "\n".join([*head, *(f"   {name}" for name in names)]) + "\n"


def page(name, thing):
    """Reference page of one public name."""
    parts = [heading(name), ".. currentmodule:: skdp\n"]
    if not inspect.isclass(thing):
        return "\n".join([*parts, f".. autofunction:: skdp.{name}\n"])
    parts.append(f".. autoclass:: skdp.{name}\n")
    if issubclass(thing, BaseEstimator):
        parts.append(
            "The parameters can be read and set as in scikit-learn, with ``get_params`` and "
            "``set_params``.\n"
        )
    members = methods(thing)
    if members:
        parts.append(".. rubric:: Methods\n")
        parts.append(
            table(("obj", f"skdp.{name}.{m}", summary(getattr(thing, m))) for m in members)
        )
        for member in members:
            kinds = property | functools.cached_property
            is_property = isinstance(inspect.getattr_static(thing, member), kinds)
            directive = "autoproperty" if is_property else "automethod"
            parts.append(f".. {directive}:: skdp.{name}.{member}\n")
    return "\n".join(parts)


def module_page(module, title):
    """Reference page of a module with public names of its own."""
    source = importlib.import_module(module)
    at_home = public_names()
    parts = [heading(f"{title}: ``{module}``"), summary(source) + "\n"]
    for name in sorted(source.__all__):
        thing = getattr(source, name)
        if at_home.get(name) is thing:
            parts.append(f":obj:`skdp.{name}`: {summary(thing)}\n")
        elif inspect.isclass(thing):
            parts.append(f".. autoclass:: {module}.{name}\n   :members:\n")
        elif not callable(thing):
            parts.append(f".. autodata:: {module}.{name}\n   :no-value:\n")
        else:
            parts.append(f".. autofunction:: {module}.{name}\n")
    return "\n".join(parts)


def pages():
    """{file name: text} of the whole reference."""
    names = public_names()
    index = [
        heading("API reference"),
        "Everything that is public. Names that are not here may change without notice.\n",
        STABILITY,
    ]
    made, contents = {}, []
    for title, text, members in sections():
        index += [heading(title, "-"), text + "\n"]
        index.append(table(("obj", f"skdp.{m}", summary(names[m])) for m in members))
        made.update({f"skdp.{m}.rst": page(m, names[m]) for m in members})
        contents.append(toctree(title, [f"skdp.{m}" for m in members]))
    index.append(heading("Modules", "-"))
    rows = [f"* :doc:`{m} <{m}>`: {title.lower()}" for m, title in MODULES.items()]
    index.append("\n".join(rows) + "\n")
    made.update({f"{m}.rst": module_page(m, title) for m, title in MODULES.items()})
    index += [*contents, toctree("Modules", MODULES)]
    return {"index.rst": "\n".join(index), **made}


def write(folder):
    """Write the reference into a folder of its own, replacing what an earlier build left."""
    folder = Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file, text in pages().items():
        # The gallery, which was made before, has the examples that use a name.
        used = f"/auto_examples/backreferences/{file.removesuffix('.rst')}.examples"
        if (folder.parent / used[1:]).exists():
            text += f"\n.. include:: {used}\n"
        (folder / file).write_text(text, encoding="utf-8")
