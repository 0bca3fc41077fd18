"""Who wrote an object: a known library, or the user.

What an object says about itself is not trusted: a class counts as a library's only if the library's
module holds it under its name.
"""

from __future__ import annotations

import os
import sys
import sysconfig

# Libraries whose functions and estimators hold no data of their own.
TRUSTED = {
    "catboost",
    "imblearn",
    "lightgbm",
    "numpy",
    "pandas",
    "polars",
    "scipy",
    "skdp",
    "sklearn",
    "xgboost",
}
# Modules of the standard library that reach only their arguments.
_PURE = {
    "_collections",
    "_functools",
    "_operator",
    "_random",
    "_statistics",
    "_thread",
    "abc",
    "builtins",
    "cmath",
    "collections",
    "copy",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
    "fractions",
    "functools",
    "itertools",
    "logging",
    "math",
    "numbers",
    "operator",
    "random",
    "re",
    "reprlib",
    "statistics",
    "string",
    "time",
    "typing",
    "unicodedata",
    "warnings",
}


def library(thing: object) -> str:
    """The top-level package that defines an object's class, or "" where that cannot be verified.

    A class can name any module as its own. It counts as a library's only where that module holds
    it under its name. A subclass belongs to whoever wrote it; a class with a borrowed name belongs
    to no library.
    """
    kind = thing if isinstance(thing, type) else type(thing)
    return kind.__module__.partition(".")[0] if is_held(kind) else ""


def is_held(thing: object) -> bool:
    """Whether a class or function is found in its module under its own name."""
    found: object = sys.modules.get(getattr(thing, "__module__", None) or "")
    for part in getattr(thing, "__qualname__", "?").split("."):
        found = getattr(found, part, None)
    return found is thing


def is_library(module: str | None) -> bool:
    """Whether a module is installed, as opposed to written by whoever runs this."""
    top = (module or "").partition(".")[0]
    if top in TRUSTED or top in sys.stdlib_module_names - {"__main__"}:
        return True
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    return any(file.startswith(sysconfig.get_path(key) + os.sep) for key in ("purelib", "platlib"))


def is_pure(module: str | None) -> bool:
    """Whether functions of a module reach only their arguments (and files)."""
    return (module or "").partition(".")[0] in TRUSTED | _PURE


def replaced(thing: object) -> str:
    """The first method or property of the class that the instance overrides, or ""."""
    classes = [vars(kind) for kind in type(thing).__mro__]
    for name in getattr(thing, "__dict__", {}):
        held = next((names[name] for names in classes if name in names), None)
        if hasattr(held, "__get__"):
            return name
    return ""


def kind_of(thing: object) -> str:
    """Name of an object's class."""
    return type(thing).__name__


def call_name(func: object) -> str:
    """Name of a function or class in a message; of another object, the name of its class."""
    return getattr(func, "__name__", None) or kind_of(func)
